/* SPDX-License-Identifier: MIT
 *
 * struct ack_screen: the compatibility kit on a terminal. While it works, a live line on stderr (or
 * a line for each verdict where nothing can be redrawn); after that, what came of it.
 *
 *   struct ack_screen screen;
 *   ack_screen_init(&screen, cli);
 *   opts.watcher = ack_screen_watcher(&screen);
 *   ack_screen_note(&screen, "asking codex for its version");
 *   kit_run(…);
 *   ack_screen_done(&screen);
 *   ack_screen_report(&report, width, color, &out);
 */
#pragma once

#include "ack/kit.h"
#include "cli/cli.h"
#include "cli/progress.h"

enum { ACK_SCREEN_RUNNING = 64 };

struct ack_screen {
    struct progress progress;
    nsec began;
    size_t total, done;
    size_t count[VERDICT_COUNT];
    struct {
        const char *adapter;
        const struct scenario *scenario;
    } running[ACK_SCREEN_RUNNING]; /* more of them are not shown */
    size_t running_len;
};

void ack_screen_init(struct ack_screen *s, struct cli *cli);
void ack_screen_note(struct ack_screen *s, const char *text);
struct kit_watcher ack_screen_watcher(struct ack_screen *s);
void ack_screen_done(struct ack_screen *s); /* clears the live line; idempotent */

/* The table of adapters and tiers, every failure with its findings, and the sum. */
void ack_screen_report(struct arena *a, const struct kit_report *r, const struct terminal *t,
                       struct buf *out);

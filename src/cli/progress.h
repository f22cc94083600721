/* SPDX-License-Identifier: MIT
 *
 * struct progress: where a run is, on stderr. On a terminal one line that is redrawn in place, at
 * most ten times a second, and is gone at the end; elsewhere one plain line per change of phase:
 *
 *   [  0.1s] execute  pid 1234
 *
 * It knows nothing of runs: whoever drives one fills a progress_view and calls.
 *
 *   struct progress p;
 *   progress_init(&p, &cli->err, PROGRESS_AUTO);
 *   progress_update(&p, &view, clock_now());      as often as you like
 *   progress_message(&p, "warning: …");           a line of its own, above the live line
 *   progress_done(&p);                            clears the live line; idempotent
 *
 * Nothing here blocks or fails: on a terminal that takes no output (Ctrl-S) drawing is skipped.
 * Text of the view is cleaned. The width is asked at each drawing, so a resized window is right at
 * once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "cli/terminal.h"

struct progress_view {
    const char *phase;
    nsec elapsed;
    uint64_t bytes_out, bytes_err;
    int64_t tokens;    /* 0: not known, not shown */
    double cost_usd;   /* 0: not known, not shown */
    double budget_usd; /* limit; 0: none */
    int64_t calls;     /* of models; 0: not shown */
    nsec time_left;    /* 0: not shown */
    const char *note;  /* "pid 1234", "waiting for the first output"; may be NULL */
};

enum progress_mode {
    PROGRESS_AUTO,     /* live line on a capable terminal, plain lines otherwise or with a log */
    PROGRESS_PLAIN,    /* plain lines always */
    PROGRESS_MESSAGES, /* messages only */
    PROGRESS_QUIET,    /* nothing, also no messages */
};

struct progress {
    struct terminal *terminal;
    enum progress_mode mode; /* after init: AUTO means live */
    nsec drawn_at;
    bool on_screen;
    char phase[32]; /* of the last update */
};

void progress_init(struct progress *p, struct terminal *t, enum progress_mode mode);
void progress_update(struct progress *p, const struct progress_view *v, nsec now);
/* For who has a line of his own in place of a view: drawn on a terminal, as often as
 * progress_update() would; nothing elsewhere. It is cleaned, and cut at the width. */
void progress_line(struct progress *p, struct str line, nsec now);
void progress_message(struct progress *p, const char *text);
void progress_done(struct progress *p);

/* The line without control codes, at most `width` columns; what update draws. */
void progress_format(const struct progress_view *v, size_t width, struct buf *out);

/* SPDX-License-Identifier: MIT
 *
 * struct mask: a stream of bytes in which one secret is overwritten, wherever the borders of its
 * pieces fall. Lengths do not change, and nothing is held back but what may be the beginning of the
 * secret.
 *
 *   struct mask m;
 *   mask_init(&m, secret, on_clean, self);         the secret is borrowed; empty: all passes
 *   mask_feed(&m, piece) …                          on_clean(self, bytes) gets what may be shown
 *   mask_end(&m);                                   and the rest
 *   mask_done(&m);                                  at any time
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

struct mask {
    struct str secret;
    void (*out)(void *arg, struct str bytes);
    void *arg;
    struct buf held; /* may be the beginning of the secret */
};

void mask_init(struct mask *m, struct str secret, void (*out)(void *arg, struct str bytes),
               void *arg);
void mask_feed(struct mask *m, struct str bytes);
void mask_end(struct mask *m);
void mask_done(struct mask *m);
/* A text as a whole: itself, or a copy in the arena. */
struct arena;
struct str mask_text(struct arena *a, struct str secret, struct str text);

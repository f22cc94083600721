/* SPDX-License-Identifier: MIT
 *
 * The trust tables of the harnesses as text: what a text says on a directory, the text with an
 * entry added, the text with it taken out again. Pure functions of their arguments; trust.c puts
 * files, locks and processes around them. `file` of the entry is used for messages only.
 *
 *   trust_text_state(&t, text, &state, e);                 TRUST_STATE_ABSENT
 *   trust_text_add(&t, text, &mark, &out, e);              keep the mark
 *   trust_text_remove(&t, buf_str(&out), &mark, &back, e); back equals text, byte for byte
 *
 * Fail with ERR_PARSE when the text does not parse, with ERR_UNSUPPORTED when it cannot be edited
 * safely; what was in `out` stays then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "adapters/trust.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* .claude.json of a busy user has a few MB; nothing sane comes near. */
enum { TRUST_TEXT_MAX = 16 << 20 };

enum trust_state { TRUST_STATE_ABSENT, TRUST_STATE_GRANTED, TRUST_STATE_REFUSED };

/* How to take an entry out again so that nothing remains. */
struct trust_mark {
    size_t made;    /* tables or objects that came with it */
    bool was_false; /* the value was there as false */
};

/* What the text says on the directory of the entry; ERR_PARSE when the text does not parse. */
int trust_text_state(const struct trust_entry *t, struct str text, enum trust_state *ret,
                     struct err *e) MUST_USE;
int trust_text_add(const struct trust_entry *t, struct str text, struct trust_mark *ret,
                   struct buf *out, struct err *e) MUST_USE;
int trust_text_remove(const struct trust_entry *t, struct str text, const struct trust_mark *mark,
                      struct buf *out, struct err *e) MUST_USE;
struct str trust_text_new(enum trust_style style); /* of a file that does not exist yet */

/* SPDX-License-Identifier: MIT
 *
 * Trust tables as text. Input: a byte that chooses the style, the directory, 0x1e, the text. An
 * entry that is not there is added, must then be granted, and taking it out gives the old bytes
 * back; or the text is refused. The proof inside the editors must never fail (ERR_BUG).
 */
#include <stdint.h>
#include <stdlib.h>

#include "adapters/trust_text.h"
#include "base/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_add(const struct trust_entry *t, struct str text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf back = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    struct trust_mark mark = { 0 };
    enum trust_state state = TRUST_STATE_ABSENT;
    if (trust_text_add(t, text, &mark, &out, &e) < 0) {
        must(e.code != ERR_BUG && out.len == 0);
        return;
    }
    must(trust_text_state(t, buf_str(&out), &state, NULL) == 0 && state == TRUST_STATE_GRANTED);
    must(trust_text_remove(t, buf_str(&out), &mark, &back, NULL) == 0);
    must(str_eq(buf_str(&back), text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    if (size == 0) {
        return 0;
    }
    struct str in = str_n(data + 1, size - 1);
    size_t end = str_find(in, STR("\x1e"));
    struct str text = str_slice(in, end + 1, in.len);
    struct trust_entry t = {
        .style = (enum trust_style)(data[0] % 3),
        .file = "file",
        .dir = arena_dup(a, str_slice(in, 0, end)),
    };
    struct err e = { 0 };
    enum trust_state state = TRUST_STATE_ABSENT;
    if (trust_text_state(&t, text, &state, &e) < 0) {
        must(e.code != ERR_BUG);
        return 0;
    }
    if (state == TRUST_STATE_ABSENT) {
        check_add(&t, text);
        return 0;
    }
    /* Of a granted entry that is not ours only this is asked: it can be taken out, or is refused.
     */
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    int r = trust_text_remove(&t, text, &(struct trust_mark) { .made = 2 }, &out, &e);
    must(r == 0 || e.code != ERR_BUG);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a transcript. What is found does not depend on the pieces they come in (the first
 * byte chooses their size), each finding is in a line that is there, and a transcript whose lines
 * the validator has nothing against has lines that recovery would keep.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "validate/validator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t count_lines(struct str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        n += text.ptr[i] == '\n';
    }
    return n + (text.len > 0 && text.ptr[text.len - 1] != '\n');
}

static void on_entry(void *arg, size_t line, const struct json *fields)
{
    int64_t *entries = arg;
    must(line > 0 && fields != NULL);
    ++*entries;
}

/* The number of findings; all that was found goes to `ret`. */
static size_t ask(struct str text, size_t piece, unsigned checks, struct buf *ret)
{
    int64_t entries = 0;
    CLEANUP(validator)
    struct validator *o = validator_new(&(struct validator_opts) {
        .checks = checks, .tool = "t", .entry = on_entry, .arg = &entries });
    for (size_t i = 0; i < text.len; i += piece) {
        validator_feed(o, str_slice(text, i, i + piece));
    }
    validator_end(o);
    const struct validator_report *r = validator_report(o);
    for (size_t i = 0; i < r->n_findings; i++) {
        const struct validator_finding *f = &r->findings[i];
        must(f->line <= count_lines(text) && f->sentence[0] != '\0');
        buf_addf(ret, "%zu %s %s\n", f->line, validator_check_word(f->check), f->sentence);
    }
    must(entries == r->summary.entries);
    buf_addf(ret, "%zu %lld", r->left_out, (long long)entries);
    return r->n_findings;
}

static void check_lines(struct str text)
{
    CLEANUP(arena) struct arena *a = arena_new();
    while (text.len > 0) {
        struct json *v = NULL;
        must(json_parse(a, str_split(&text, '\n'), NULL, &v, NULL) == 0);
        must(json_is(json_get(v, "context"), JSON_OBJECT) || transcript_is_valid(v));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct str text = str_n(data + 1, size - 1);
    CLEANUP(buf) struct buf whole = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf pieces = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf some = BUF_INIT(BUF_TEXT);
    (void)ask(text, text.len + 1, 0, &whole);
    (void)ask(text, (size_t)data[0] % 70 + 1, 0, &pieces);
    must(str_eq(buf_str(&whole), buf_str(&pieces)));
    unsigned lines_only = 1u << VALIDATOR_ENVELOPE | 1u << VALIDATOR_CANONICAL_TYPES;
    if (ask(text, text.len + 1, lines_only, &some) == 0) {
        check_lines(text);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * PCRE2, and nothing of it to be seen outside. Matches are bounded by counting backtracking, not by
 * time, so that the same input gives the same answer on every machine.
 */
#include "data/regex.h"

#include <stdbool.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "data/regex_priv.h"

/* Most matches end within the first limit and are charged by length. The few that do not are run
 * again with the second one, and pay for it. Backtracking points, plus so many for each byte. */
enum {
    CHEAP_LIMIT = 4096,
    CHEAP_PER_BYTE = 8,
    DEAR_LIMIT = 400 * 1000,
    DEAR_PER_BYTE = 64,
};
/* A quarter of the dear limit is charged: one step of a validator costs about as much as four
 * backtracking points. */
enum { POINTS_PER_STEP = 4 };
/* KiB that one match may use to remember where to go back to. Repeating a group takes some hundred
 * bytes a round, so a text of a quarter million such rounds ends here. */
enum { HEAP_KIB = 64 * 1024 };
/* A match of a longer text than this may have left much memory behind in its scratch. */
enum { KEEP_SCRATCH = 16 * 1024 };

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    char shown[REGEX_SHOW_LEN];
};

/* The answer of PCRE2 to a translated pattern: code, or NULL and its error number. */
static pcre2_code *compile(struct str text, unsigned flags, int *ret_error, size_t *ret_offset)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY |
                       PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C;
    if ((flags & REGEX_ICASE) != 0) {
        options |= PCRE2_CASELESS;
    }
    pcre2_code *code = NULL;
    if (context != NULL) {
        /* \ud800 alone is a pattern that matches nothing, not an error */
        (void)pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALLOW_SURROGATE_ESCAPES);
        code =
            pcre2_compile((PCRE2_SPTR)text.ptr, text.len, options, ret_error, ret_offset, context);
    }
    pcre2_compile_context_free(context);
    return code;
}

static int refuse(struct str pattern, int error, struct err *e)
{
    char shown[REGEX_SHOW_LEN];
    char why[160];
    if (pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why) < 0) {
        why[0] = '\0';
    }
    return ERR(e, ERR_PARSE, "pattern '%s': %s", regex_show(pattern, shown), why);
}

/* Three bytes of a pattern become at most ten: "\x{7e}", or 200 for \S in a class. */
enum { TRANSLATED_MAX = 8 * 1024 * 1024 };

int regex_compile(struct str pattern, unsigned flags, struct regex **ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TRANSLATED_MAX);
    int rc = regex_translate(pattern, &text, e);
    if (rc != 0) {
        return rc;
    }
    int error = 0;
    size_t offset = 0;
    pcre2_code *code = compile(buf_str(&text), flags, &error, &offset);
    if (code == NULL) {
        return refuse(pattern, error, e);
    }
    struct regex *r = xcalloc(1, sizeof *r);
    r->code = code;
    r->data = pcre2_match_data_create_from_pattern(code, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (r->data == NULL || r->context == NULL) {
        regex_free(r);
        return ERR(e, ERR_LIMIT, "out of memory for a pattern");
    }
    (void)regex_show(pattern, r->shown);
    (void)pcre2_set_heap_limit(r->context, HEAP_KIB);
    *ret = r;
    return 0;
}

struct regex *regex_free(struct regex *r)
{
    if (r != NULL) {
        pcre2_match_context_free(r->context);
        pcre2_match_data_free(r->data);
        pcre2_code_free(r->code);
        free(r);
    }
    return NULL;
}

int regex_check(struct str pattern, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TRANSLATED_MAX);
    int rc = regex_translate(pattern, &text, e);
    if (rc != 0) {
        return rc;
    }
    int error = 0;
    size_t offset = 0;
    pcre2_code *code = compile(buf_str(&text), 0, &error, &offset);
    bool is_lookbehind = error == PCRE2_ERROR_LOOKBEHIND_NOT_FIXED_LENGTH ||
                         error == PCRE2_ERROR_LOOKBEHIND_TOO_LONG ||
                         error == PCRE2_ERROR_LOOKBEHIND_TOO_COMPLICATED;
    if (code == NULL && !is_lookbehind) {
        return refuse(pattern, error, e);
    }
    pcre2_code_free(code);
    return 0;
}

/* PCRE2's answer under a limit; the limit holds for depth as well, since each level of it is a
 * backtracking point. */
static int run(struct regex *r, struct str subject, size_t limit)
{
    uint32_t points = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
    (void)pcre2_set_match_limit(r->context, points);
    (void)pcre2_set_depth_limit(r->context, points);
    return pcre2_match(r->code, (PCRE2_SPTR)(subject.ptr == NULL ? "" : subject.ptr), subject.len,
                       0, 0, r->data, r->context);
}

/* PCRE2 keeps the memory of the largest match so far; give it back after an unusual one. */
static void drop_scratch(struct regex *r)
{
    pcre2_match_data *fresh = pcre2_match_data_create_from_pattern(r->code, NULL);
    if (fresh != NULL) {
        pcre2_match_data_free(r->data);
        r->data = fresh;
    }
}

static bool spend(uint64_t *budget, uint64_t cost)
{
    bool enough = *budget >= cost;
    *budget = enough ? *budget - cost : 0;
    return enough;
}

static bool hit_limit(int answer)
{
    return answer == PCRE2_ERROR_MATCHLIMIT || answer == PCRE2_ERROR_DEPTHLIMIT ||
           answer == PCRE2_ERROR_HEAPLIMIT;
}

/* PCRE2's answer, paid for; 0 and *ret, or ERR_LIMIT when the budget does not suffice. */
static int run_within(struct regex *r, struct str subject, uint64_t *budget, int *ret,
                      struct err *e)
{
    bool paid = spend(budget, 1 + subject.len / 8);
    if (paid) {
        *ret = run(r, subject, CHEAP_LIMIT + CHEAP_PER_BYTE * subject.len);
    }
    if (paid && hit_limit(*ret)) {
        size_t limit = DEAR_LIMIT + DEAR_PER_BYTE * subject.len;
        paid = spend(budget, limit / POINTS_PER_STEP);
        *ret = paid ? run(r, subject, limit) : *ret;
    }
    return paid ? 0 : ERR(e, ERR_LIMIT, "pattern '%s': no work budget left", r->shown);
}

/* 1, 0, or why there is no answer. */
static int verdict(const struct regex *r, struct str subject, int answer, struct err *e)
{
    if (answer >= 0) {
        return 1;
    }
    /* No match, or a subject that is not UTF-8 (a range of error numbers of its own). */
    if (answer == PCRE2_ERROR_NOMATCH ||
        (answer <= PCRE2_ERROR_UTF8_ERR1 && answer >= PCRE2_ERROR_UTF8_ERR21)) {
        return 0;
    }
    if (hit_limit(answer)) {
        return ERR(e, ERR_LIMIT,
                   "pattern '%s' backtracks too much on a text of %zu bytes; make it simpler",
                   r->shown, subject.len);
    }
    return ERR(e, ERR_BUG, "pattern '%s': matching failed with PCRE2 error %d", r->shown, answer);
}

/* The same as regex_match_within(), with the scratch left for regex_find() to read. */
static int match(struct regex *r, struct str subject, uint64_t *budget, struct err *e)
{
    int answer = 0;
    int rc = run_within(r, subject, budget, &answer, e);
    return rc != 0 ? rc : verdict(r, subject, answer, e);
}

int regex_match_within(struct regex *r, struct str subject, uint64_t *budget, struct err *e)
{
    int rc = match(r, subject, budget, e);
    if (subject.len > KEEP_SCRATCH || rc == -ERR_LIMIT) {
        drop_scratch(r);
    }
    return rc;
}

int regex_match(struct regex *r, struct str subject, struct err *e)
{
    uint64_t budget = UINT64_MAX;
    return regex_match_within(r, subject, &budget, e);
}

int regex_find(struct regex *r, struct str subject, struct regex_span *spans, size_t count,
               struct err *e)
{
    uint64_t budget = UINT64_MAX;
    int rc = match(r, subject, &budget, e);
    if (rc <= 0) {
        return rc;
    }
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(r->data);
    size_t have = pcre2_get_ovector_count(r->data);
    for (size_t i = 0; i < count; i++) {
        bool set = i < have && found[2 * i] != PCRE2_UNSET;
        spans[i].from = set ? found[2 * i] : REGEX_UNSET;
        spans[i].to = set ? found[2 * i + 1] : REGEX_UNSET;
    }
    return 1;
}

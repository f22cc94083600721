/* SPDX-License-Identifier: MIT
 *
 * The engine as a filter for tests and benchmarks: JSON lines in, JSON lines out.
 *
 * In:  {"template": "…", "context": {…}, "files": {"name": "text"}, "options": {"trim_blocks":
 * true}, "repeat": 100, "limits": {"max_calls": 10}} Out: {"text": "…"} or {"error": "undefined",
 * "message": "…"}; with "repeat" also the seconds that this many renderings and this many
 * compilations took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/json.h"
#include "template/template.h"

static const char *fault_name(enum template_fault fault)
{
    static const char *const names[] = {
        [TEMPLATE_FAULT_NONE] = "none",           [TEMPLATE_FAULT_SYNTAX] = "syntax",
        [TEMPLATE_FAULT_UNDEFINED] = "undefined", [TEMPLATE_FAULT_VALUE] = "value",
        [TEMPLATE_FAULT_MISSING] = "missing",     [TEMPLATE_FAULT_UNSAFE] = "unsafe",
        [TEMPLATE_FAULT_LIMIT] = "limit",
    };
    return names[fault];
}

static int read_member(void *self, const char *name, struct buf *ret, struct err *e)
{
    const struct json *text = json_get(self, name);
    if (text == NULL) {
        return ERR(e, ERR_INPUT, "template '%s' not found", name);
    }
    return buf_append(ret, json_str(text, STR("")), e);
}

static struct template_set *make_set(const struct json *in)
{
    const struct json *o = json_get(in, "options");
    const struct json *l = json_get(in, "limits");
    struct template_opts opts = {
        .loader = { read_member, json_get(in, "files") },
        .trim_blocks = json_bool(json_get(o, "trim_blocks"), false),
        .lstrip_blocks = json_bool(json_get(o, "lstrip_blocks"), false),
        .keep_trailing_newline = json_bool(json_get(o, "keep_trailing_newline"), false),
        .limits = { .max_calls = (unsigned)json_int(json_get(l, "max_calls"), 0),
                    .max_rounds = (uint64_t)json_int(json_get(l, "max_rounds"), 0),
                    .max_steps = (uint64_t)json_int(json_get(l, "max_steps"), 0),
                    .max_output = (size_t)json_int(json_get(l, "max_output"), 0),
                    .max_source = (size_t)json_int(json_get(l, "max_source"), 0),
                    .max_nesting = (unsigned)json_int(json_get(l, "max_nesting"), 0) },
    };
    return template_set_new(&opts);
}

/* Of the processor, not of the wall: other programs must not count. */
static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Times `repeat` renderings and as many compilations. */
static void repeat(struct arena *a, const struct json *in, const struct template *t,
                   struct template_vars *vars, struct json *answer)
{
    int64_t n = json_int(json_get(in, "repeat"), 0);
    struct buf out = BUF_INIT(BUF_TEXT);
    double start = seconds();
    for (int64_t i = 0; i < n; i++) {
        buf_reset(&out);
        if (template_render(t, vars, &out, NULL) < 0) {
            abort();
        }
    }
    json_setc(a, answer, "render_seconds", json_number(a, seconds() - start));
    start = seconds();
    for (int64_t i = 0; i < n; i++) {
        struct template_set *set = make_set(in);
        const struct template *again;
        if (template_parse(set, "main", json_str(json_get(in, "template"), STR("")), &again, NULL) <
            0) {
            abort();
        }
        (void)template_set_free(set);
    }
    json_setc(a, answer, "compile_seconds", json_number(a, seconds() - start));
    buf_done(&out);
}

static struct json *answer_one(struct arena *a, const struct json *in)
{
    struct err e;
    struct json *answer = json_object(a);
    struct template_set *set = make_set(in);
    struct template_vars *vars = template_vars_new(json_get(in, "context"));
    const struct template *t;
    struct buf out = BUF_INIT(BUF_TEXT);
    int r = template_parse(set, "main", json_str(json_get(in, "template"), STR("")), &t, &e);
    r = r < 0 ? r : template_render(t, vars, &out, &e);
    if (r < 0) {
        json_setc(a, answer, "error", json_cstr(a, fault_name(template_set_fault(set))));
        json_setc(a, answer, "message", json_cstr(a, e.msg));
    } else {
        json_setc(a, answer, "text", json_string(a, buf_str(&out)));
        if (json_get(in, "repeat") != NULL) {
            repeat(a, in, t, vars, answer);
        }
    }
    buf_done(&out);
    (void)template_vars_free(vars);
    (void)template_set_free(set);
    return answer;
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        struct arena *a = arena_new();
        struct json *in;
        struct err e;
        struct buf out = BUF_INIT(BUF_TEXT);
        struct json *answer;
        if (json_parse(a, str_n(line, (size_t)n), NULL, &in, &e) < 0) {
            answer = json_object(a);
            json_setc(a, answer, "error", json_cstr(a, "input"));
            json_setc(a, answer, "message", json_cstr(a, e.msg));
        } else {
            answer = answer_one(a, in);
        }
        if (json_write(answer, JSON_COMPACT, &out, &e) < 0) {
            abort();
        }
        (void)printf("%s\n", out.ptr);
        (void)fflush(stdout);
        buf_done(&out);
        (void)arena_free(a);
    }
    free(line);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Renders a prompt of sections for bench/template. Reads {"prompt", "params", "repeat"} as JSON
 * from standard input and prints {"text", "first", "again"}: the seconds of processor time for
 * building and rendering it, and for rendering it once more, the best of `repeat` each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "prompt/section.h"

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int r, const struct err *e)
{
    if (r < 0) {
        (void)fprintf(stderr, "%s\n", e->msg);
        exit(1);
    }
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* One prompt from JSON to text and once more; adds what that took. */
static char *measure(const struct json *in, double *first, double *again)
{
    struct err e;
    CLEANUP(arena) struct arena *a = arena_new();
    struct section_tree *tree = NULL;
    struct section_rendering out;
    struct section_request request = { .params = json_get(in, "params") };
    double start = seconds();
    must(section_tree_new(json_get(in, "prompt"), &(struct section_opts) { 0 }, &tree, &e), &e);
    must(section_tree_render(tree, &request, a, &out, &e), &e);
    double middle = seconds();
    must(section_tree_render(tree, &request, a, &out, &e), &e);
    *first = least(*first, middle - start);
    *again = least(*again, seconds() - middle);
    char *text = xstrdup(out.text.ptr);
    (void)section_tree_free(tree);
    return text;
}

int main(void)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *in = NULL;
    struct err e;
    double first = 1e9;
    double again = 1e9;
    char chunk[65536];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        buf_add(&text, str_n(chunk, n));
    }
    must(json_parse(a, buf_str(&text), NULL, &in, &e), &e);
    char *rendered = NULL;
    for (int64_t i = json_int(json_get(in, "repeat"), 1); i > 0; i--) {
        free(rendered);
        rendered = measure(in, &first, &again);
    }
    struct json *answer = json_object(a);
    json_setc(a, answer, "text", json_cstr(a, rendered));
    json_setc(a, answer, "first", json_number(a, first));
    json_setc(a, answer, "again", json_number(a, again));
    free(rendered);
    buf_reset(&text);
    must(json_write(answer, JSON_COMPACT, &text, &e), &e);
    (void)printf("%s\n", text.ptr);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * TOML reading and writing. What is accepted must be written, read back equal, and written the same
 * again. The plain form may refuse only what the tagged form holds and it cannot: infinity and NaN.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_round_trip(struct arena *a, const struct json *v, const struct toml_opts *opts)
{
    CLEANUP(buf) struct buf once = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf twice = BUF_INIT(BUF_TEXT);
    struct json *back = NULL;
    must(toml_write(v, opts, &once, NULL) == 0);
    must(toml_parse(a, buf_str(&once), opts, &back, NULL) == 0);
    must(json_equal(v, back));
    must(toml_write(back, opts, &twice, NULL) == 0);
    must(toml_parse(a, buf_str(&twice), opts, &back, NULL) == 0);
    must(json_equal(v, back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct str text = str_n(data, size);
    struct err e = { 0 };
    struct json *v = NULL;
    /* Writing takes a deeper nesting apart into headers, so the limit must be the same both ways.
     */
    struct toml_opts tagged = { .name = "x", .tagged = true, .limits = { .max_depth = 40 } };
    struct toml_opts plain = { .name = "x", .limits = tagged.limits };
    if (toml_parse(a, text, &tagged, &v, &e) < 0) {
        must(strncmp(e.msg, "x:", 2) == 0);
        must(toml_parse(a, text, &plain, &v, NULL) < 0);
        return 0;
    }
    check_round_trip(a, v, &tagged);
    if (toml_parse(a, text, &plain, &v, &e) == 0) {
        check_round_trip(a, v, &plain);
    } else {
        must(strstr(e.msg, "not finite") != NULL);
    }
    return 0;
}

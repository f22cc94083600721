/* SPDX-License-Identifier: MIT
 *
 * yaml_parse() on any bytes, with libyaml below it. What it accepts must be a tree that JSON can
 * carry; what it refuses must come with a position and must not print.
 */
#include <stdint.h>
#include <stdlib.h>

#include "data/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *v = NULL;
    struct json *again = NULL;
    struct err e = { 0 };
    struct json_limits limits = { .max_values = 1000, .max_depth = 64 };
    int r = yaml_parse(a, str_n(data, size), "in", &limits, &v, &e);
    if (r < 0) {
        must(e.code == ERR_PARSE || e.code == ERR_LIMIT);
        must(str_starts(str_of(e.msg), STR("in:")));
        return 0;
    }
    must(json_write(v, JSON_COMPACT, &text, &e) == 0);
    must(json_parse(a, buf_str(&text), &limits, &again, &e) == 0);
    must(json_equal(v, again));
    return 0;
}

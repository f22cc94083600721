/* SPDX-License-Identifier: MIT
 *
 * json_parse() on any bytes. What it accepts must survive copying, and writing and reading again,
 * as JSON in both styles and as YAML.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "data/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void check_round_trip(struct arena *a, const struct json *v, enum json_style style)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *again = NULL;
    struct err e = { 0 };
    must(json_write(v, style, &text, &e) == 0);
    must(str_is_utf8(buf_str(&text)));
    must(json_parse(a, buf_str(&text), NULL, &again, &e) == 0);
    must(json_equal(v, again));
}

static void check_yaml(struct arena *a, const struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *again = NULL;
    struct err e = { 0 };
    must(yaml_write(v, &text, &e) == 0);
    must(yaml_parse(a, buf_str(&text), "yaml", NULL, &again, &e) == 0);
    must(json_equal(v, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct str text = str_n(data, size);
    struct json *v = NULL;
    struct err e = { 0 };
    int r = json_parse(a, text, NULL, &v, &e);
    must(r == 0 ? v != NULL : e.code == (enum err_code) - r && e.msg[0] != '\0');
    if (r == 0) {
        check_round_trip(a, v, JSON_COMPACT);
        check_round_trip(a, v, JSON_PRETTY);
        check_yaml(a, v);
        must(json_equal(v, json_copy(a, v)));
        (void)json_merge(a, v, v);
        (void)json_pointer(v, text);
    }
    struct json_limits tight = { .max_bytes = 4096, .max_depth = 4, .max_values = 16 };
    (void)!json_parse(a, text, &tight, &v, NULL);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * What the quick look finds in a body is what a real parser finds, whenever both accept it; and a
 * replaced value is the only thing that changes.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "gateway/scan.h"

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void replace(struct arena *a, struct str body, const struct scan *s, const struct json *v)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *changed;
    check(scan_set_model(body, s, STR("new"), &out, NULL) == 0);
    check(json_parse(a, buf_str(&out), NULL, &changed, NULL) == 0);
    struct json *want = json_copy(a, v);
    json_setc(a, want, "model", json_cstr(a, "new"));
    check(json_equal(changed, want));
    buf_reset(&out);
    check(scan_set_max(body, s, "max_tokens", 42, &out, NULL) == 0);
    check(json_parse(a, buf_str(&out), NULL, &changed, NULL) == 0);
    struct scan again;
    check(scan_request(buf_str(&out), &again) && again.max_output == 42);
    buf_reset(&out);
    if (scan_set_include_usage(body, s, &out, NULL) == 0) {
        check(json_parse(a, buf_str(&out), NULL, &changed, NULL) == 0);
        check(json_bool(json_get(json_get(changed, "stream_options"), "include_usage"), false));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = str_n(data, size);
    CLEANUP(arena) struct arena *a = arena_new();
    struct scan s;
    struct json *v;
    if (!scan_request(body, &s) || json_parse(a, body, NULL, &v, NULL) < 0) {
        return 0;
    }
    const struct json *model = json_get(v, "model");
    check(str_eq(json_str(model, STR_EMPTY), s.model));
    check(json_bool(json_get(v, "stream"), false) == s.stream);
    replace(a, body, &s, v);
    return 0;
}

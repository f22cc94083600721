/* SPDX-License-Identifier: MIT
 *
 * What the quick look finds in a body is what a real parser finds, whenever both accept it; and a
 * replaced value is the only thing that changes.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "gateway/sampling_edit.h"
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

/* What is set is there, and with it taken out again the request is what it was. */
static void set_sampling(struct arena *a, struct str body, const struct json *v)
{
    static const char *const members[] = { "seed", "max_tokens" };
    const struct llm_sampling wish = { .has_seed = true, .seed = 7, .max_tokens = 42 };
    const struct sampling_target t = { .body = body, .format = LLM_CHAT, .model = STR("m") };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct sampling_report report;
    struct json *changed;
    if (sampling_edit(a, &t, &wish, &out, &report, NULL) < 0) {
        return;
    }
    check(json_parse(a, buf_str(&out), NULL, &changed, NULL) == 0);
    check(json_int(json_get(changed, "seed"), 0) == 7);
    struct json *before = json_copy(a, v);
    for (size_t i = 0; i < 2; i++) {
        if (json_get(changed, members[i]) != NULL) {
            json_setc(a, changed, members[i], json_null(a));
            json_setc(a, before, members[i], json_null(a));
        }
    }
    if (json_get(v, "max_completion_tokens") == NULL) {
        check(json_equal(changed, before));
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
    set_sampling(a, body, v);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * The first byte chooses the format, the rest is a request. What is accepted can be asked about,
 * comes out of its own format as it went in, and can be written in every other one or is refused
 * with a reason; and what was written is read again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "llm/codec.h"
#include "llm/dropped.h"
#include "llm/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const targets[LLM_FORMAT_MAX] = {
    [LLM_ANTHROPIC] = "/v1/messages",
    [LLM_RESPONSES] = "/v1/responses",
    [LLM_CHAT] = "/v1/chat/completions",
    [LLM_GEMINI] = "/v1beta/models/m:generateContent",
};

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* Gemini reads snake_case as well and writes camelCase: then the second time is like the first. */
static void check_settled(struct arena *a, struct str text, const struct json *first)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), str_of(targets[LLM_GEMINI]));
    struct llm_request again;
    struct json *second = NULL;
    must(llm_request_read(a, &where, text, &again, NULL) == 0);
    must(llm_request_write(a, LLM_GEMINI, &again, NULL, &out, NULL) == 0);
    must(json_parse(a, buf_str(&out), NULL, &second, NULL) == 0);
    must(json_equal(first, second));
}

static void check_same(struct arena *a, const struct llm_request *r, struct str text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *again = NULL;
    struct err e = { 0 };
    must(llm_request_write(a, r->format, r, NULL, &out, &e) == 0);
    must(json_parse(a, buf_str(&out), NULL, &again, &e) == 0);
    if (r->format == LLM_GEMINI && str_find(text, STR("_")) < text.len) {
        check_settled(a, buf_str(&out), again);
    } else {
        must(json_equal(r->raw, again));
    }
}

/* What earlier responses signed, as a gateway would know it. */
static struct llm_store *make_store(void)
{
    static const char *const names[] = { "anthropic", "responses", "chat", "gemini" };
    struct llm_store *s = llm_store_new(0);
    char key[16], value[160];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(key, sizeof key, "call:c%d", i + 1);
        (void)snprintf(value, sizeof value,
                       "{\"from\":\"%s\",\"signature\":\"S\",\"thoughts\":[{\"id\":\"rs\","
                       "\"text\":\"t\",\"signature\":\"{}\",\"redacted\":false}]}",
                       names[i]);
        llm_store_put(s, str_of(key), str_of(value));
    }
    llm_store_put(s, STR("item:i1"),
                  STR("{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":"
                      "\"f\",\"arguments\":\"{}\"}"));
    llm_store_put(s, STR("item:i2"), STR("{\"type\":\"message\"}"));
    return s;
}

static void check_other(struct arena *a, const struct llm_request *r, enum llm_format f)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), str_of(targets[f]));
    struct llm_request again;
    struct llm_losses losses;
    struct err e = { 0 };
    llm_losses_init(&losses, a);
    int result = llm_request_write(a, f, r, &losses, &out, &e);
    if (result < 0) {
        must(e.msg[0] != '\0' && out.len == 0);
        return;
    }
    must(llm_request_read(a, &where, buf_str(&out), &again, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct str target = str_of(targets[data[0] % LLM_FORMAT_MAX]);
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), target);
    struct llm_request r;
    struct err e = { 0 };
    int result = llm_request_read(a, &where, str_n(data + 1, size - 1), &r, &e);
    if (result < 0) {
        must(e.code == (enum err_code) - result && e.msg[0] != '\0');
        return 0;
    }
    (void)llm_last_text(a, &r);
    must(llm_turn(&r) <= llm_results(&r));
    must(llm_estimate_tokens(&r) > 0);
    check_same(a, &r, str_n(data + 1, size - 1));
    struct llm_store *store = make_store();
    r.store = store;
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        check_other(a, &r, f);
    }
    llm_store_free(store);
    return 0;
}

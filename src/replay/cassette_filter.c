/* SPDX-License-Identifier: MIT
 *
 * The filter that records: what the client asked and what it got, in its own format, so that a
 * replay needs neither the provider nor the translation.
 */
#include "base/arena.h"
#include "base/json.h"
#include "llm/codec.h"
#include "replay/cassette_upstream.h"

/* Packing it takes longer than all the rest: not before it is on its way. */
static void on_started(void *arg, const struct exchange_view *x, void **slot)
{
    struct cassette_request r = {
        .number = x->id,
        .method = x->request->method,
        .target = x->client_target,
        .fields = x->client_fields,
        .body = x->client_body,
        .model = x->model,
        .stream = x->client.stream,
    };
    *slot = cassette_take_new(arg, &r, x->began);
}

/* A translated answer has the type of the client's format, not of the provider's. */
static void on_answer(void *arg, const struct exchange_view *x, void **slot,
                      const struct filter_outcome *o, struct filter_answer *ret)
{
    ret->verdict = FILTER_PASS;
    if (o->status == 0 || o->fields == NULL || *slot == NULL) {
        return;
    }
    struct http_field own[] = { { STR("content-type"),
                                  str_of(llm_content_type(x->client.format, x->client.stream)) } };
    struct http_fields translated = { own, ARRAY_LEN(own) };
    cassette_take_head(*slot, o->status, x->translated ? &translated : o->fields, clock_now());
}

static void on_data(void *arg, const struct exchange_view *x, void **slot, struct str bytes)
{
    cassette_take_data(*slot, bytes, clock_now());
}

static void set_count(struct arena *a, struct json *o, const char *key, int64_t n)
{
    if (n >= 0) {
        json_setc(a, o, key, json_integer(a, n));
    }
}

static void on_done(void *arg, const struct exchange_view *x, void **slot,
                    const struct filter_done *d)
{
    if (*slot == NULL) {
        return; /* refused before it went anywhere */
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *closing = json_object(a);
    struct json *usage = json_object(a);
    set_count(a, usage, "input", d->usage.input);
    set_count(a, usage, "output", d->usage.output);
    set_count(a, usage, "cache_read", d->usage.cache_read);
    set_count(a, usage, "cache_write", d->usage.cache_write);
    set_count(a, usage, "reasoning", d->usage.reasoning);
    json_setc(a, closing, "usage", usage);
    json_setc(a, closing, "attempts", json_integer(a, d->attempts));
    enum cassette_end end = d->cancelled  ? CASSETTE_CANCELLED
                            : d->complete ? CASSETTE_COMPLETE
                                          : CASSETTE_CUT;
    /* what is lost is counted by the writer, and told at the end of the run */
    (void)cassette_take_end(*slot, end, closing, clock_now(), NULL);
    *slot = NULL;
}

void cassette_filter(struct cassette_writer *w, struct filter *ret)
{
    *ret = (struct filter) {
        .name = "cassette",
        .arg = w,
        .on_started = on_started,
        .on_answer = on_answer,
        .on_data = on_data,
        .on_done = on_done,
    };
}

/* SPDX-License-Identifier: MIT
 *
 * The ledger as a tree; see ledger.h and schema/ledger.schema.json.
 */
#include "gateway/ledger.h"

#include "base/json.h"
#include "gateway/meter.h"

static void put_count(struct arena *a, struct json *o, const char *key, int64_t n)
{
    json_setc(a, o, key, n < 0 ? json_null(a) : json_integer(a, n));
}

static void put_usage(struct arena *a, struct json *o, const struct llm_usage *u)
{
    put_count(a, o, "input", u->input);
    put_count(a, o, "output", u->output);
    put_count(a, o, "cache_read", u->cache_read);
    put_count(a, o, "cache_write", u->cache_write);
    put_count(a, o, "reasoning", u->reasoning);
}

/* Money that is only partly known is not known. */
static struct json *cost_of(struct arena *a, const struct meter_sum *s)
{
    return s->unpriced > 0 ? json_null(a) : json_number(a, price_usd(s->cost));
}

static struct json *sum_json(struct arena *a, const struct meter_sum *s)
{
    struct json *o = json_object(a);
    put_usage(a, o, &s->usage);
    put_count(a, o, "calls", s->calls);
    json_setc(a, o, "cost_usd", cost_of(a, s));
    put_count(a, o, "failed", s->failed);
    put_count(a, o, "side", s->side);
    put_count(a, o, "attempts", s->attempts);
    put_count(a, o, "estimated", s->estimated);
    put_count(a, o, "unpriced", s->unpriced);
    return o;
}

static struct json *reported_json(struct arena *a, const struct ledger_reported *r)
{
    if (!r->known) {
        return json_null(a);
    }
    struct json *o = json_object(a);
    put_usage(a, o, &r->usage);
    put_count(a, o, "calls", r->calls);
    json_setc(a, o, "cost_usd", r->cost_known ? json_number(a, r->cost_usd) : json_null(a));
    return o;
}

static void put_difference(struct arena *a, struct json *o, const char *key, int64_t wire,
                           int64_t reported)
{
    json_setc(a, o, key, reported < 0 ? json_null(a) : json_integer(a, wire - reported));
}

static struct json *difference_json(struct arena *a, const struct meter_sum *s,
                                    const struct ledger_reported *r)
{
    if (!r->known) {
        return json_null(a);
    }
    struct json *o = json_object(a);
    put_difference(a, o, "input", s->usage.input, r->usage.input);
    put_difference(a, o, "output", s->usage.output, r->usage.output);
    put_difference(a, o, "cache_read", s->usage.cache_read, r->usage.cache_read);
    put_difference(a, o, "cache_write", s->usage.cache_write, r->usage.cache_write);
    put_difference(a, o, "reasoning", s->usage.reasoning, r->usage.reasoning);
    put_difference(a, o, "calls", s->calls, r->calls);
    bool both = r->cost_known && s->unpriced == 0;
    json_setc(a, o, "cost_usd",
              both ? json_number(a, price_usd(s->cost) - r->cost_usd) : json_null(a));
    return o;
}

static struct json *table_json(struct arena *a, const struct price_table *t)
{
    if (t == NULL) {
        return json_null(a);
    }
    struct json *o = json_object(a);
    json_setc(a, o, "version", json_cstr(a, t->version));
    json_setc(a, o, "source", json_cstr(a, t->source));
    json_setc(a, o, "file", json_cstr(a, t->file));
    return o;
}

static struct json *models_json(struct arena *a, const struct meter *m)
{
    struct json *list = json_array(a);
    for (size_t i = 0; i < meter_rows(m); i++) {
        const struct meter_row *r = meter_row(m, i);
        struct json *o = json_object(a);
        json_setc(a, o, "model", json_cstr(a, r->model));
        json_setc(a, o, "upstream", json_cstr(a, r->upstream));
        struct json *sum = sum_json(a, &r->sum);
        for (size_t k = 0; k < json_len(sum); k++) {
            json_set(a, o, sum->object.members[k].key, sum->object.members[k].value);
        }
        json_setc(a, o, "prices", table_json(a, r->prices));
        json_push(a, list, o);
    }
    return list;
}

struct json *ledger_json(struct arena *a, const struct meter *m,
                         const struct ledger_reported *reported)
{
    const struct meter_sum *s = meter_sum(m);
    struct json *o = json_object(a);
    json_setc(a, o, "schema_version", json_integer(a, 1));
    json_setc(a, o, "simulated", json_boolean(a, s->calls > 0 && s->local == s->calls));
    json_setc(a, o, "wire", sum_json(a, s));
    json_setc(a, o, "reported", reported_json(a, reported));
    json_setc(a, o, "difference", difference_json(a, s, reported));
    json_setc(a, o, "models", models_json(a, m));
    return o;
}

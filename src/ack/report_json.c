/* SPDX-License-Identifier: MIT
 *
 * The report for programs; schema/ack-report.schema.json is its form.
 */
#include "ack/report.h"
#include "base/json.h"

static struct json *lines_of(struct arena *a, const char *text)
{
    struct json *lines = json_array(a);
    struct str rest = str_of(text);
    while (rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        if (line.len > 0) {
            json_push(a, lines, json_string(a, line));
        }
    }
    return lines;
}

static struct json *milliseconds(struct arena *a, nsec t)
{
    return json_integer(a, t / NSEC_PER_MS);
}

static struct json *adapters_of(struct arena *a, const struct kit_report *r)
{
    struct json *list = json_array(a);
    for (size_t i = 0; i < r->adapters_len; i++) {
        const struct kit_adapter *x = &r->adapters[i];
        struct json *o = json_object(a);
        json_setc(a, o, "name", json_cstr(a, x->name));
        json_setc(a, o, "available", json_boolean(a, x->available));
        json_setc(a, o, "version", json_cstr(a, x->version == NULL ? "" : x->version));
        json_setc(a, o, "model", json_cstr(a, x->model));
        json_setc(a, o, "why_not", json_cstr(a, x->available ? NULL : x->why_not));
        json_setc(a, o, "untested", json_cstr(a, x->untested));
        json_push(a, list, o);
    }
    return list;
}

static struct json *verdict_of(struct arena *a, const struct verdict *v)
{
    struct json *o = json_object(a);
    struct json *capabilities = json_array(a);
    for (const char **c = v->scenario->capabilities; c != NULL && *c != NULL; c++) {
        json_push(a, capabilities, json_cstr(a, *c));
    }
    json_setc(a, o, "adapter", json_cstr(a, v->adapter));
    json_setc(a, o, "scenario", json_cstr(a, v->scenario->name));
    json_setc(a, o, "tier", json_cstr(a, capability_tier_word(v->scenario->tier)));
    json_setc(a, o, "capabilities", capabilities);
    json_setc(a, o, "status", json_cstr(a, verdict_word(v->status)));
    json_setc(a, o, "why", lines_of(a, v->why));
    json_setc(a, o, "took_ms", milliseconds(a, v->took));
    json_setc(a, o, "dir", json_cstr(a, v->dir));
    return o;
}

int report_json(const struct kit_report *r, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *o = json_object(a);
    struct json *counts = json_object(a);
    struct json *verdicts = json_array(a);
    struct json *unmatched = json_array(a);
    for (enum verdict_status s = 0; s < VERDICT_COUNT; s++) {
        json_setc(a, counts, verdict_word(s), json_integer(a, (int64_t)r->count[s]));
    }
    for (size_t i = 0; i < r->len; i++) {
        json_push(a, verdicts, verdict_of(a, &r->verdicts[i]));
    }
    for (size_t i = 0; i < r->stale_len; i++) {
        json_push(a, unmatched, json_cstr(a, r->stale[i]));
    }
    json_setc(a, o, "version", json_integer(a, 1));
    json_setc(a, o, "cinch", json_cstr(a, CINCH_VERSION));
    json_setc(a, o, "mode", json_cstr(a, r->live ? "live" : "script"));
    if (r->live) {
        json_setc(a, o, "cost_usd", json_number(a, r->cost_usd));
        json_setc(a, o, "max_usd", r->max_usd > 0 ? json_number(a, r->max_usd) : json_null(a));
    }
    json_setc(a, o, "started_at", json_cstr(a, r->started_at));
    json_setc(a, o, "took_ms", milliseconds(a, r->took));
    json_setc(a, o, "interrupted", json_boolean(a, r->interrupted));
    json_setc(a, o, "failed", json_boolean(a, kit_failed(r)));
    json_setc(a, o, "count", counts);
    json_setc(a, o, "adapters", adapters_of(a, r));
    json_setc(a, o, "verdicts", verdicts);
    json_setc(a, o, "unmatched", unmatched);
    return json_write(o, JSON_PRETTY, out, e);
}

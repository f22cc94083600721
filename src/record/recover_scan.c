/* SPDX-License-Identifier: MIT
 *
 * Reading what a dead run left behind.
 */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "record/event_kind.h"
#include "record/recover.h"
#include "record/recover_priv.h"
#include "record/stamp.h"

/* result.json holds the text of the answer, escaped; the others are small. */
#define OBJECT_BYTES_MAX ((size_t)32 << 20)

static void note_phase(struct leftovers *l, const struct json *context)
{
    const struct json *from = json_get(context, "from");
    const struct json *took = json_get(context, "duration_ms");
    if (!json_is(from, JSON_STRING) || !json_is(took, JSON_INT)) {
        return;
    }
    struct json *sum = json_find(l->phase_ms, from->string);
    if (sum == NULL) {
        sum = json_integer(l->arena, 0);
        json_set(l->arena, l->phase_ms, from->string, sum);
    }
    if (took->integer >= 0 && took->integer < INT64_MAX / 2 && sum->integer < INT64_MAX / 2) {
        sum->integer += took->integer;
    }
}

static void note_exit(struct leftovers *l, const struct json *context)
{
    int64_t code = json_int(json_get(context, "code"), -1);
    int64_t signal = json_int(json_get(context, "signal"), -1);
    if (code >= 0 && code <= 255) {
        l->exit = (struct engine_exit) { ENGINE_EXITED, (int)code };
    } else if (signal > 0 && signal < 128) {
        l->exit = (struct engine_exit) { ENGINE_SIGNALLED, (int)signal };
    }
}

/* Damaged numbers may be anything: a sum stops at its end. */
static void add_count(int64_t *to, const struct json *context, const char *key)
{
    int64_t n = json_int(json_get(context, key), 0);
    if (n > 0 && __builtin_add_overflow(*to, n, to)) {
        *to = INT64_MAX / 4;
    }
}

static void note_call(struct leftovers *l, const struct json *context)
{
    const struct json *cost = json_get(context, "cost_usd");
    add_count(&l->calls.input, context, "input_tokens");
    add_count(&l->calls.output, context, "output_tokens");
    add_count(&l->calls.cache_read, context, "cache_read_tokens");
    add_count(&l->calls.cache_write, context, "cache_write_tokens");
    add_count(&l->calls.reasoning, context, "reasoning_tokens");
    l->calls.total++;
    l->calls.failed += json_int(json_get(context, "status"), 0) >= 400 ||
                       !json_bool(json_get(context, "complete"), true);
    l->calls.side += json_is(json_get(context, "side"), JSON_STRING);
    l->calls.estimated += json_bool(json_get(context, "estimated"), false);
    double usd = json_real(cost, 0);
    struct str upstream = json_str(json_get(context, "upstream"), STR_EMPTY);
    bool simulated = str_eqc(upstream, "script") || str_eqc(upstream, "cassette");
    *(simulated ? &l->calls.simulated_usd : &l->calls.cost_usd) += usd > 0 ? usd : 0;
    l->calls.real += simulated ? 0 : 1;
    l->calls.unpriced = l->calls.unpriced || json_is(cost, JSON_NULL);
    if (l->port != NULL && l->port->model_call != NULL) {
        l->port->model_call(l->port->arg, context);
    }
}

/* It was not under way any more. */
static void close_call(struct leftovers *l, int64_t exchange)
{
    struct event_model_call **to = l->open;
    for (struct event_model_call **from = l->open; *from != NULL; from++) {
        if ((*from)->exchange != exchange) {
            *to++ = *from;
        }
    }
    *to = NULL;
}

void leftovers_add_call(void *arg, enum event_kind kind, const struct json *context)
{
    if (kind == EVENT_MODEL_CALL) {
        note_call(arg, context);
    }
}

/* By the budget; wrong tokens and hosts are refused, too, but were no calls. */
static void note_refusal(struct leftovers *l, struct str kind)
{
    l->calls.refused +=
        !str_eqc(kind, "token") && !str_eqc(kind, "egress") && !str_eqc(kind, "request");
}

static bool keep_event(void *ctx, const struct json *line, struct arena *a)
{
    struct leftovers *l = ctx;
    if (!event_is_valid(line)) {
        return false;
    }
    /* A damaged number must not send all that follow to the end of the scale. */
    enum { SEQ_JUMP_MAX = 1 << 20 };
    int64_t seq = json_int(json_get(line, "seq"), 0);
    l->seq = seq > l->seq && seq - l->seq <= SEQ_JUMP_MAX ? seq : l->seq;
    struct str run_id = json_str(json_get(line, "run_id"), STR_EMPTY);
    memcpy(l->run_id, run_id.ptr, run_id.len); /* its length was checked: it is an id */
    int64_t wall = 0;
    (void)stamp_parse(json_str(json_get(line, "timestamp"), STR_EMPTY), &wall);
    l->first_wall = l->first_wall == 0 ? wall : l->first_wall;
    struct str event = json_str(json_get(line, "event"), STR_EMPTY);
    const struct json *context = json_get(line, "context");
    l->recovered = str_eqc(event, event_kind_info(EVENT_RUN_RECOVERED)->name);
    /* The recovery's own line says nothing about when the run was alive. */
    l->last_wall = wall > l->last_wall && !l->recovered ? wall : l->last_wall;
    if (str_eqc(event, event_kind_info(EVENT_RUN_PHASE)->name)) {
        note_phase(l, context);
    } else if (str_eqc(event, event_kind_info(EVENT_PROCESS_EXITED)->name)) {
        note_exit(l, context);
    } else if (str_eqc(event, event_kind_info(EVENT_PROCESS_SPAWNED)->name)) {
        struct str program = json_str(json_get(context, "program"), STR_EMPTY);
        l->program = arena_dup(l->arena, path_base(program));
    } else if (str_eqc(event, event_kind_info(EVENT_MODEL_CALL)->name)) {
        close_call(l, json_int(json_get(context, "exchange"), 0));
        note_call(l, context);
    } else if (str_eqc(event, event_kind_info(EVENT_GATEWAY_REFUSED)->name)) {
        note_refusal(l, json_str(json_get(context, "kind"), STR_EMPTY));
    }
    return true;
}

/* Copies only when it changes: a transcript repeats these in every line. */
static void note_string(struct leftovers *l, const char **to, const struct json *v)
{
    const char *s = json_cstring(v, NULL);
    if (s != NULL && (*to == NULL || strcmp(*to, s) != 0)) {
        *to = arena_dup(l->arena, str_of(s));
    }
}

/* Entries and stops must lie behind a start; a start within an open pair means its stop was
 * damaged. */
static bool keep_entry(void *ctx, const struct json *line, struct arena *a)
{
    struct leftovers *l = ctx;
    if (!transcript_is_valid(line)) {
        return false;
    }
    struct str event = json_str(json_get(line, "event"), STR_EMPTY);
    bool start = str_eqc(event, "transcript.start");
    if (start == l->transcript_open) {
        return false;
    }
    (void)stamp_parse(json_str(json_get(line, "timestamp"), STR_EMPTY), &l->last_entry);
    note_string(l, &l->prompt_name, json_get(line, "prompt_name"));
    note_string(l, &l->adapter, json_get(line, "adapter"));
    if (start) {
        transcript_count_reset(&l->count, l->arena);
        l->transcript_open = true;
    } else if (str_eqc(event, "transcript.stop")) {
        l->transcript_open = false;
    } else {
        enum entry_type type = ENTRY_UNKNOWN;
        (void)entry_type_find(json_str(json_get(line, "entry_type"), STR_EMPTY), &type);
        transcript_count_add(&l->count, l->arena, type,
                             json_str(json_get(line, "source"), STR_EMPTY));
        note_string(l, &l->session_id, json_get(line, "session_id"));
    }
    return true;
}

int leftovers_gather(struct leftovers *l, const struct rundir *d, struct err *e)
{
    l->phase_ms = json_object(l->arena);
    l->open = open_calls_read(d, l->arena);
    transcript_count_reset(&l->count, l->arena);
    int r = jsonl_repair(d, "events.jsonl", keep_event, l, &l->damage, e);
    if (r == 0) {
        r = jsonl_repair(d, "transcript.jsonl", keep_entry, l, &l->damage, e);
    }
    l->manifest = rundir_read_object(d, "manifest.json", OBJECT_BYTES_MAX, l->arena);
    l->metrics = rundir_read_object(d, "metrics.json", OBJECT_BYTES_MAX, l->arena);
    l->result = rundir_read_object(d, "result.json", OBJECT_BYTES_MAX, l->arena);
    return r;
}

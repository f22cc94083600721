/* SPDX-License-Identifier: MIT
 *
 * What the gateway tells: that it is there, each model call, what it refused.
 */
#include "record/events_priv.h"

static struct json *text_list(struct events *ev, const char *const *texts)
{
    struct json *list = json_array(ev->arena);
    for (; texts != NULL && *texts != NULL; texts++) {
        json_push(ev->arena, list, json_cstr(ev->arena, *texts));
    }
    return list;
}

void events_gateway_opened(struct events *ev, const char *address, const char *const *upstreams)
{
    struct json *c = event_context(ev);
    event_text(ev, c, "address", address);
    event_tree(ev, c, "upstreams", text_list(ev, upstreams));
    event_send(ev, EVENT_GATEWAY_OPENED, arena_printf(ev->arena, "gateway at %s", address), c);
}

void events_gateway_refused(struct events *ev, int64_t exchange, const char *kind, const char *why)
{
    struct json *c = event_context(ev);
    event_count(ev, c, "exchange", exchange > 0 ? exchange : -1);
    event_word(ev, c, "kind", kind);
    event_text(ev, c, "why", why);
    event_send(ev, EVENT_GATEWAY_REFUSED, why, c);
}

static void put_usage(struct events *ev, struct json *c, const struct event_model_call *call)
{
    event_count(ev, c, "input_tokens", call->input);
    event_count(ev, c, "output_tokens", call->output);
    event_count(ev, c, "cache_read_tokens", call->cache_read);
    event_count(ev, c, "cache_write_tokens", call->cache_write);
    event_count(ev, c, "reasoning_tokens", call->reasoning);
    event_bool(ev, c, "estimated", call->estimated);
    json_setc(ev->arena, c, "cost_usd",
              call->cost_usd < 0 ? json_null(ev->arena) : json_number(ev->arena, call->cost_usd));
}

void events_model_call(struct events *ev, const struct event_model_call *call)
{
    struct json *c = event_context(ev);
    event_int(ev, c, "exchange", call->exchange);
    event_word(ev, c, "format", call->format);
    if (call->model.len > 0) {
        event_str(ev, c, "model", call->model);
    } else {
        event_word(ev, c, "model", NULL);
    }
    event_text(ev, c, "upstream", call->upstream);
    event_count(ev, c, "status", call->status > 0 ? call->status : -1);
    event_int(ev, c, "attempts", call->attempts);
    event_bool(ev, c, "complete", call->complete);
    event_bool(ev, c, "translated", call->translated);
    event_word(ev, c, "side", call->side);
    put_usage(ev, c, call);
    event_ms(ev, c, "first_byte_ms", call->first_byte);
    event_int(ev, c, "duration_ms", call->took / NSEC_PER_MS);
    event_tree(ev, c, "dropped", text_list(ev, call->dropped));
    if (call->edits[0] != NULL) {
        event_tree(ev, c, "edits", text_list(ev, call->edits));
    }
    if (call->unsent != NULL && call->unsent[0] != NULL) {
        event_tree(ev, c, "unsent", text_list(ev, call->unsent));
    }
    if (call->fallback_from != NULL) {
        event_tree(ev, c, "fallback_from", text_list(ev, call->fallback_from));
    }
    event_send(ev, EVENT_MODEL_CALL, NULL, c);
}

/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a script. One that is accepted is asked by a request of each format: it answers with
 * a well-formed row of events that renders to bytes, twice the same, or says why it cannot.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "llm/codec.h"
#include "replay/playback.h"
#include "replay/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *target, *body;
} requests[] = {
    { "/v1/messages", "{\"model\":\"m\",\"max_tokens\":9,\"stream\":true,\"messages\":[{\"role\":"
                      "\"user\",\"content\":\"write a.txt\"}],\"tools\":[{\"name\":\"Write\"},"
                      "{\"name\":\"mcp__tiny__add_note\"}]}" },
    { "/v1/responses",
      "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"hi\"},{\"type\":"
      "\"function_call_output\",\"call_id\":\"c\",\"output\":\"done\"}],\"tools\":"
      "[{\"type\":\"custom\",\"name\":\"apply_patch\"}]}" },
    { "/v1/chat/completions",
      "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"You are a title "
      "generator\"},{\"role\":\"user\",\"content\":\"x\"}]}" },
    { "/v1beta/models/g:streamGenerateContent?alt=sse",
      "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"hi\"}]}]}" },
};

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* Frames of the answer, one after the other. */
static bool ask(struct script *s, const struct llm_request *r, struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(playback) struct playback *p = playback_new();
    struct script_request q = { .llm = r };
    struct script_answer answer;
    struct err e = { 0 };
    if (script_answer(s, &q, a, &answer, &e) < 0 || script_render(&answer, r, p, &e) < 0) {
        must(e.msg[0] != '\0');
        must(e.code == ERR_CONFIG || e.code == ERR_LIMIT || e.code == ERR_UNSUPPORTED);
        return false;
    }
    must(answer.n_events >= 2 && answer.events[0].event.kind == LLM_EV_START);
    must(answer.events[answer.n_events - 1].event.kind == LLM_EV_END);
    must(p->status >= 200 && p->status <= 599);
    for (size_t i = 0; i < p->n_frames; i++) {
        must(p->frames[i].wait >= 0);
        must(buf_append(out, p->frames[i].bytes, NULL) == 0);
    }
    return true;
}

static void play(struct script *s, size_t i)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf first = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf again = BUF_INIT(BUF_TEXT);
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), str_of(requests[i].target));
    struct llm_request r;
    must(llm_request_read(a, &where, str_of(requests[i].body), &r, NULL) == 0);
    script_reset(s);
    bool ok = ask(s, &r, &first);
    script_reset(s);
    must(ask(s, &r, &again) == ok);
    must(!ok || str_eq(buf_str(&first), buf_str(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(script) struct script *s = NULL;
    struct err e = { 0 };
    if (size > 16 << 10) {
        return 0;
    }
    if (script_parse(str_n(data, size), "in", &s, &e) < 0) {
        must(e.code == ERR_PARSE || e.code == ERR_CONFIG || e.code == ERR_LIMIT);
        must(str_starts(str_of(e.msg), STR("in")));
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        play(s, i);
    }
    return 0;
}

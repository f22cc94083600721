/* SPDX-License-Identifier: MIT
 *
 * The scripted model on the loop; see script_upstream.h.
 */
#include "replay/script_upstream.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "io/loop.h"
#include "llm/codec.h"
#include "replay/playback.h"

struct script_upstream {
    struct upstream base; /* first */
    struct loop *loop;
    struct script *script;
    const struct json *aliases;
    struct buf miss;
};

static struct script_upstream *self(struct upstream *up)
{
    return (struct script_upstream *)up;
}

static void whole(struct playback *p, int status, struct str body)
{
    struct playback_frame *f = ARENA_NEW(p->arena, struct playback_frame);
    f->bytes = arena_str(p->arena, body);
    p->status = status;
    p->frames = f;
    p->n_frames = 1;
    playback_field(p, STR("content-type"), STR("application/json"));
}

/* A request that is none is answered as a provider would. */
static int answer_malformed(const struct upstream_request *r, const struct err *why,
                            struct playback *p, struct err *e)
{
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    struct llm_error error = { .kind = LLM_ERR_INVALID, .message = str_of(why->msg) };
    int result = llm_error_write(r->endpoint.format, &error, &body, e);
    if (result == 0) {
        whole(p, llm_error_status(error.kind), buf_str(&body));
    }
    return result;
}

static void answer_count(const struct upstream_request *r, const struct llm_request *q,
                         struct playback *p)
{
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    buf_addf(&body, "{\"%s\":%lld}",
             r->endpoint.format == LLM_GEMINI ? "totalTokens" : "input_tokens",
             (long long)llm_estimate_tokens(q));
    whole(p, 200, buf_str(&body));
}

static int answer_step(struct script_upstream *u, const struct upstream_request *r,
                       const struct llm_request *q, struct playback *p, struct err *e)
{
    struct script_request request = { .llm = q, .fields = r->fields, .aliases = u->aliases };
    struct script_answer answer;
    int result = script_answer(u->script, &request, p->arena, &answer, e);
    result = result < 0 ? result : script_render(&answer, q, p, e);
    if (result < 0) {
        return result;
    }
    playback_field(p, STR("x-cinch-step"), arena_str(p->arena, str_of(answer.step)));
    if (answer.side != NULL) {
        playback_field(p, STR("x-cinch-side"), str_of(answer.side));
    }
    return 0;
}

static void answer(struct script_upstream *u, const struct upstream_request *r, struct playback *p)
{
    struct err e = { 0 };
    struct llm_request q;
    if (r->endpoint.call != LLM_CALL_GENERATE && r->endpoint.call != LLM_CALL_COUNT) {
        playback_fail(p, UPSTREAM_REFUSED, "a script answers model calls only");
        return;
    }
    int result = llm_request_read(p->arena, &r->endpoint, r->body, &q, &e);
    if (result < 0) {
        struct err why = e;
        result = answer_malformed(r, &why, p, &e);
    } else if (r->endpoint.call == LLM_CALL_COUNT) {
        answer_count(r, &q, p);
    } else {
        result = answer_step(u, r, &q, p, &e);
    }
    if (result < 0) {
        playback_fail(p, UPSTREAM_REFUSED, e.msg);
        if (u->miss.len == 0) {
            buf_adds(&u->miss, e.msg);
        }
    }
}

static int start(struct upstream *up, const struct upstream_request *r,
                 const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct script_upstream *u = self(up);
    struct playback *p = playback_new();
    answer(u, r, p);
    return playback_start(p, u->loop, port, ret, e);
}

static void destroy(void *arg)
{
    struct script_upstream *u = arg;
    script_free(u->script);
    buf_done(&u->miss);
    free(u);
}

static void retire(struct upstream *up)
{
    loop_retire(self(up)->loop, destroy, up);
}

static const struct upstream_ops ops = {
    .start = start,
    .cancel = playback_cancel,
    .pause = playback_pause,
    .free = retire,
};

int script_upstream_new(struct loop *l, struct script *s, const struct json *aliases,
                        struct upstream **ret, struct err *e)
{
    int r = script_check_aliases(aliases, "aliases of the profile", e);
    if (r < 0) {
        script_free(s);
        return r;
    }
    struct script_upstream *u = xcalloc(1, sizeof *u);
    *u = (struct script_upstream) {
        .base = { .ops = &ops, .name = script_name(s), .any_format = true, .local = true },
        .loop = l,
        .script = s,
        .aliases = aliases,
        .miss = BUF_INIT(BUF_TEXT),
    };
    *ret = &u->base;
    return 0;
}

struct str script_upstream_miss(const struct upstream *up)
{
    return buf_str(&((const struct script_upstream *)up)->miss);
}

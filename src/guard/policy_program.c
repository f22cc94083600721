/* SPDX-License-Identifier: MIT
 *
 * The policy that a program decides. It gets the call as JSON and answers with
 * {"decision": "allow"|"deny", "reason": "…"}. Whatever else happens is a denial.
 */
#include "guard/guard_priv.h"

#include "proc/helper_program.h"

#define DECIDE_TIME (10 * NSEC_PER_SEC)
#define ANSWER_MAX  ((size_t)64 << 10)
#define REASON_MAX  2000 /* bytes that the model gets */

static int program_make(struct policy *p, const struct json *definition, struct err *e)
{
    struct helper_spec *spec = ARENA_NEW(p->guard->arena, struct helper_spec);
    p->self = spec;
    int r = helper_spec_read(p->guard->arena, definition, DECIDE_TIME, spec, e);
    spec->max_output = ANSWER_MAX;
    return r;
}

static struct json *question(struct arena *a, const struct guard_call *call)
{
    struct json *q = json_object(a);
    json_setc(a, q, "tool", json_string(a, call->tool));
    json_setc(a, q, "arguments",
              call->arguments == NULL ? json_object(a) : (struct json *)call->arguments);
    json_setc(a, q, "call_id", json_string(a, call->call_id));
    json_setc(a, q, "native", json_boolean(a, call->native));
    json_setc(a, q, "section", json_string(a, call->section));
    return q;
}

void policy_reply_read(struct arena *a, struct str out, struct policy_reply *ret)
{
    static const struct json_limits limits = { .max_bytes = ANSWER_MAX, .max_depth = 16 };
    struct json *v;
    struct err e;
    *ret = (struct policy_reply) { .allowed = false };
    if (json_parse(a, out, &limits, &v, &e) < 0) {
        ret->detail = str_of(arena_printf(a, "the answer is no JSON: %s", e.msg));
        return;
    }
    struct str decision = json_str(json_get(v, "decision"), STR_EMPTY);
    const struct json *reason = json_get(v, "reason");
    bool allow = str_eqc(decision, "allow");
    if (!allow && !str_eqc(decision, "deny")) {
        ret->detail = STR("the answer has no 'decision' that is \"allow\" or \"deny\"");
        return;
    }
    if (reason != NULL && !json_is(reason, JSON_STRING) && !json_is(reason, JSON_NULL)) {
        ret->detail = STR("'reason' of the answer is no text");
        return;
    }
    struct str text = str_slice(str_trim(json_str(reason, STR_EMPTY)), 0, REASON_MAX);
    ret->reason = arena_str(a, str_slice(text, 0, str_utf8_prefix(text)));
    ret->allowed = allow;
}

static void answered(void *arg, const struct helper_result *r)
{
    struct guard_check *c = arg;
    enum policy_verdict verdict = POLICY_DENIES;
    if (c->guard != NULL) {
        struct policy_reply reply = { 0 };
        if (r->end != HELPER_EXITED || r->value != 0) {
            reply.detail = str_of(r->why == NULL ? "it failed" : r->why);
        } else {
            policy_reply_read(c->arena, r->out, &reply);
        }
        c->reason = reply.reason;
        c->detail = arena_str(c->arena, reply.detail);
        verdict = reply.allowed ? POLICY_ALLOWS : POLICY_DENIES;
        if (reply.allowed) {
            c->reason = STR_EMPTY;
        }
    }
    guard_check_resume(c, verdict);
}

static enum policy_verdict program_check(struct policy *p, struct guard_check *c)
{
    CLEANUP(buf) struct buf input = BUF_INIT(BUF_TEXT);
    struct err e;
    if (json_write(question(c->arena, &c->call), JSON_COMPACT, &input, &e) < 0) {
        return policy_broken(c, "%s", e.msg);
    }
    c->helper = helper_spec_start(p->self, p->guard->opts.host, buf_str(&input), answered, c, &e);
    return c->helper == NULL ? policy_broken(c, "%s", e.msg) : POLICY_LATER;
}

const struct policy_kind policy_kind_program = {
    .type = "program",
    .make = program_make,
    .check = program_check,
};

/* SPDX-License-Identifier: MIT
 *
 * A script and a request, both as text, and the answer as one line of text.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "data/schema.h"
#include "data/yaml.h"
#include "llm/codec.h"
#include "replay/playback.h"
#include "replay/script.h"

struct script_case {
    struct arena *arena;
    struct script *script;
    const struct json *aliases;
    struct http_field fields[4];
    size_t n_fields;
};

static inline int case_make(void **state)
{
    struct script_case *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    *state = c;
    return 0;
}

static inline int case_free(void **state)
{
    struct script_case *c = *state;
    script_free(c->script);
    arena_free(c->arena);
    free(c);
    return 0;
}

#define CASE_TEST(f) cmocka_unit_test_setup_teardown(f, case_make, case_free)

/* Whether schema/script.schema.json accepts it: 1, 0. */
static inline int fits_schema(struct arena *a, const char *yaml)
{
    CLEANUP(schema) struct schema *s = NULL;
    struct json *tree = NULL;
    struct json *v = NULL;
    struct err e = { 0 };
    if (yaml_load(a, SCHEMA_DIR "/script.schema.json", NULL, &tree, &e) < 0 ||
        schema_compile(tree, NULL, &s, &e) < 0 ||
        yaml_parse(a, str_of(yaml), "s.yaml", NULL, &v, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return schema_check(s, v, NULL, &e);
}

/* A script that is good is so for editors too. */
static inline void load(struct script_case *c, const char *yaml)
{
    if (fits_schema(c->arena, yaml) != 1) {
        fail_msg("the schema refuses\n%s", yaml);
    }
    struct err e = { 0 };
    c->script = script_free(c->script);
    if (script_parse(str_of(yaml), "s.yaml", &c->script, &e) < 0) {
        fail_msg("%s\n%s", e.msg, yaml);
    }
}

/* A body written as YAML. */
static inline struct str body_of(struct script_case *c, const char *yaml)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct json *v = NULL;
    struct err e = { 0 };
    if (yaml_parse(c->arena, str_of(yaml), "body", NULL, &v, &e) < 0) {
        fail_msg("%s\n%s", e.msg, yaml);
    }
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    return arena_str(c->arena, buf_str(&b));
}

static inline struct llm_request read_request(struct script_case *c, const char *target,
                                              const char *yaml)
{
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), str_of(target));
    struct llm_request r;
    struct err e = { 0 };
    if (llm_request_read(c->arena, &where, body_of(c, yaml), &r, &e) < 0) {
        fail_msg("%s\n%s", e.msg, yaml);
    }
    return r;
}

static inline void describe_event(const struct llm_event *ev, struct buf *out)
{
    static const char *const stops[] = { "end",     "length", "tool", "sequence",
                                         "refusal", "pause",  "other" };
    switch (ev->kind) {
    case LLM_EV_TEXT:
        buf_addf(out, "say(%.*s) ", STR_ARG(ev->text));
        break;
    case LLM_EV_THINKING:
        buf_addf(out, "think(%.*s) ", STR_ARG(ev->text));
        break;
    case LLM_EV_REFUSAL:
        buf_addf(out, "refuse(%.*s) ", STR_ARG(ev->text));
        break;
    case LLM_EV_CALL_BEGIN:
        buf_addf(out, "%s %.*s%s%.*s", ev->custom ? "custom" : "call", STR_ARG(ev->ns),
                 ev->ns.len > 0 ? "." : "", STR_ARG(ev->name));
        break;
    case LLM_EV_CALL_DATA:
        buf_addf(out, "(%.*s)", STR_ARG(ev->text));
        break;
    case LLM_EV_CALL_END:
        buf_adds(out, " ");
        break;
    case LLM_EV_STOP:
        buf_addf(out, "stop:%s", stops[ev->stop]);
        break;
    case LLM_EV_ERROR:
        buf_addf(out, "error:%.*s:%.*s", STR_ARG(ev->error.code), STR_ARG(ev->error.message));
        break;
    case LLM_EV_START:
    case LLM_EV_SIGNATURE:
    case LLM_EV_USAGE:
    case LLM_EV_PING:
    case LLM_EV_END:
        break;
    case LLM_EV_OTHER:
        buf_addf(out, "%s(%s) ", json_cstring(json_get(ev->raw, "type"), "?"),
                 json_cstring(json_pointer(ev->raw, STR("/arguments/query")), "?"));
        break;
    }
}

static inline int answer(struct script_case *c, const struct llm_request *r,
                         struct script_answer *ret, struct err *e)
{
    struct script_request q = { .llm = r,
                                .fields = { c->fields, c->n_fields },
                                .aliases = c->aliases };
    return script_answer(c->script, &q, c->arena, ret, e);
}

/* "say(hello) stop:end", or "ERROR why". */
static inline const char *play(struct script_case *c, const char *target, const char *yaml)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct llm_request r = read_request(c, target, yaml);
    struct script_answer a;
    struct err e = { 0 };
    if (answer(c, &r, &a, &e) < 0) {
        return arena_printf(c->arena, "ERROR %s", e.msg);
    }
    assert_int_equal(a.events[0].event.kind, LLM_EV_START);
    assert_int_equal(a.events[a.n_events - 1].event.kind, LLM_EV_END);
    for (size_t i = 0; i < a.n_events; i++) {
        describe_event(&a.events[i].event, &out);
    }
    return arena_dup(c->arena, buf_str(&out));
}

#define MESSAGES  "/v1/messages"
#define RESPONSES "/v1/responses"
#define CHAT      "/v1/chat/completions"
#define GEMINI    "/v1beta/models/g:streamGenerateContent?alt=sse"

/* An Anthropic request: words of the user, then so many rounds of one call and its result. */
static inline const char *chat(struct script_case *c, const char *words, size_t rounds,
                               const char *more)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    buf_addf(&b, "model: claude-x\nmax_tokens: 100\nstream: true\n%s\nmessages:\n",
             more != NULL ? more : "");
    buf_addf(&b, "  - {role: user, content: \"%s\"}\n", words);
    for (size_t i = 0; i < rounds; i++) {
        buf_addf(
            &b,
            "  - {role: assistant, content: [{type: tool_use, id: t%zu, name: X, input: {}}]}\n",
            i);
        buf_addf(&b,
                 "  - {role: user, content: [{type: tool_result, tool_use_id: t%zu, content: "
                 "result %zu}]}\n",
                 i, i);
    }
    return arena_dup(c->arena, buf_str(&b));
}

static inline const char *say(struct script_case *c, const char *words, size_t rounds)
{
    return play(c, MESSAGES, chat(c, words, rounds, NULL));
}

static inline void assert_holds(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, text);
    }
}

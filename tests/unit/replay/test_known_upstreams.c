/* SPDX-License-Identifier: MIT
 *
 * Scripts and cassettes behind the border of upstreams: what a client of the loop gets, and that
 * what the recording filter saw is what a replay gives.
 */
#include "../record/scratch.h"
#include "io/loop.h"
#include "io/timer.h"
#include "replay/cassette_upstream.h"
#include "replay/script_upstream.h"

struct caller {
    struct loop *loop;
    struct buf log;
    struct filter *filter; /* records, as the gateway would let it */
    struct exchange_view *view;
    void *slot;
};

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    struct caller *c = arg;
    const struct str *step = http_find(fields, "x-cinch-step");
    const struct str *side = http_find(fields, "x-cinch-side");
    buf_addf(&c->log, "%d", status);
    if (step != NULL) {
        buf_addf(&c->log, " step=%.*s", STR_ARG(*step));
    }
    if (side != NULL) {
        buf_addf(&c->log, " side=%.*s", STR_ARG(*side));
    }
    buf_adds(&c->log, " ");
    if (c->filter != NULL) {
        struct filter_outcome o = { .status = status, .fields = fields };
        struct filter_answer answer = { 0 };
        c->filter->on_answer(c->filter->arg, c->view, &c->slot, &o, &answer);
    }
}

static void on_data(void *arg, struct str bytes)
{
    struct caller *c = arg;
    buf_add(&c->log, bytes);
    if (c->filter != NULL) {
        c->filter->on_data(c->filter->arg, c->view, &c->slot, bytes);
    }
}

static void on_over(struct caller *c, bool complete)
{
    if (c->filter != NULL) {
        struct filter_done d = { .complete = complete, .usage = LLM_USAGE_NONE, .attempts = 1 };
        c->filter->on_done(c->filter->arg, c->view, &c->slot, &d);
    }
    loop_stop(c->loop);
}

static void on_end(void *arg)
{
    struct caller *c = arg;
    buf_adds(&c->log, " end");
    on_over(c, true);
}

static void on_error(void *arg, const struct upstream_error *error)
{
    struct caller *c = arg;
    buf_addf(&c->log, "%s: %s", upstream_error_word(error->kind), error->message);
    on_over(c, false);
}

/* What the call gave, as one text. */
static const char *ask(struct scratch *s, struct loop *l, struct upstream *up, const char *target,
                       const char *body, struct filter *filter)
{
    struct caller c = { .loop = l, .log = BUF_INIT(BUF_TEXT), .filter = filter };
    struct upstream_port port = { on_head, on_data, on_end, on_error, &c };
    struct upstream_request r = {
        .method = STR("POST"),
        .target = str_of(target),
        .endpoint = llm_endpoint_of(STR("POST"), str_of(target)),
        .body = str_of(body),
        .exchange = 1,
    };
    struct exchange_view view = { .id = 1,
                                  .request = &r,
                                  .client_target = r.target,
                                  .client = r.endpoint,
                                  .client_body = r.body,
                                  .began = clock_now() };
    c.view = &view;
    if (filter != NULL) {
        filter->on_started(filter->arg, &view, &c.slot);
    }
    struct upstream_call *call = NULL;
    assert_int_equal(up->ops->start(up, &r, &port, &call, NULL), 0);
    loop_run(l);
    const char *text = arena_dup(s->arena, buf_str(&c.log));
    buf_done(&c.log);
    return text;
}

static void assert_holds(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, text);
    }
}

static struct upstream *script_of(struct loop *l, const char *yaml)
{
    struct script *script = NULL;
    struct upstream *up = NULL;
    struct err e = { 0 };
    if (script_parse(str_of(yaml), "s.yaml", &script, &e) < 0 ||
        script_upstream_new(l, script, NULL, &up, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return up;
}

#define CHAT "/v1/chat/completions"
#define HI   "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"

static void a_script_answers(void **state)
{
    struct scratch *s = *state;
    CLEANUP(loop) struct loop *l = NULL;
    assert_int_equal(loop_new(&l, NULL), 0);
    struct upstream *up =
        script_of(l, "steps:\n  - {name: greet, when: {text: hi}, say: hello, "
                     "delay: 1ms}\n  - {when: {text: bad}, fault: {cut: head}}\n");
    assert_true(up->any_format && up->local);
    assert_string_equal(up->name, "s.yaml");
    const char *got = ask(s, l, up, CHAT, HI, NULL);
    assert_holds(got, "200 step=greet {");
    assert_holds(got, "\"content\":\"hello\"");
    assert_holds(got, "} end");
    assert_holds(ask(s, l, up, "/v1/messages/count_tokens",
                     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
                     NULL),
                 "200 {\"input_tokens\":");
    assert_holds(ask(s, l, up, CHAT, "{\"messages\":3}", NULL), "400 {\"error\":");
    assert_holds(ask(s, l, up, CHAT, "no json", NULL), "400 {\"error\":");
    assert_int_equal(script_upstream_miss(up).len, 0);
    assert_holds(ask(s, l, up, CHAT,
                     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"bad\"}]}",
                     NULL),
                 "cut: ");
    assert_holds(ask(s, l, up, CHAT,
                     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
                     NULL),
                 "refused: script 's.yaml': no step fits request 3");
    assert_true(str_starts(script_upstream_miss(up), STR("script 's.yaml': no step fits")));
    up->ops->free(up);
}

static void side_requests_are_marked(void **state)
{
    struct scratch *s = *state;
    CLEANUP(loop) struct loop *l = NULL;
    assert_int_equal(loop_new(&l, NULL), 0);
    struct upstream *up = script_of(l, "turns: [{say: main}]");
    assert_holds(ask(s, l, up, CHAT,
                     "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"You are a "
                     "title generator\"},{\"role\":\"user\",\"content\":\"x\"}]}",
                     NULL),
                 "200 step=side side=title {");
    up->ops->free(up);
}

/* Recorded from a script, played from the cassette: the same to the byte. */
static void a_recording_is_replayed(void **state)
{
    struct scratch *s = *state;
    CLEANUP(loop) struct loop *l = NULL;
    static const char *const bodies[] = {
        "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"busy\"}]}",
        "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"cut\"}]}",
    };
    const char *first[ARRAY_LEN(bodies)];
    assert_int_equal(loop_new(&l, NULL), 0);
    struct upstream *script =
        script_of(l, "steps:\n  - {when: {text: hi}, say: hello world, chunk: 2, pace: 1ms}\n"
                     "  - {when: {text: busy}, fault: {status: 429, retry_after: 3}}\n"
                     "  - {when: {text: cut}, say: hello, fault: {cut: 100}}\n");
    struct cassette_writer *w = NULL;
    struct filter filter;
    assert_int_equal(
        cassette_writer_new(scratch_path(s, "c"), &(struct cassette_writer_opts) { 0 }, &w, NULL),
        0);
    cassette_filter(w, &filter);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        first[i] = ask(s, l, script, CHAT, bodies[i], &filter);
    }
    assert_int_equal(cassette_writer_lost(w, NULL), 0);
    cassette_writer_free(w);
    script->ops->free(script);

    for (int speed = 0; speed < 3; speed++) {
        struct upstream *up = NULL;
        struct cassette_upstream_opts opts = { .speed = speed };
        assert_int_equal(cassette_upstream_new(l, scratch_path(s, "c"), &opts, &up, NULL), 0);
        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
            const char *again = ask(s, l, up, CHAT, bodies[i], NULL);
            const char *where = strstr(again, "cut when this was recorded");
            size_t n = where == NULL ? strlen(again) : (size_t)(where - again);
            assert_true(strncmp(again, first[i], n) == 0);
            assert_int_equal(where != NULL, i == 2);
        }
        assert_int_equal(cassette_upstream_left(up), 0);
        assert_holds(ask(s, l, up, CHAT, HI, NULL), "refused: replay: request 4 (POST");
        assert_true(cassette_upstream_report(up).len > 0);
        up->ops->free(up);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_script_answers),
        SCRATCH_TEST(side_requests_are_marked),
        SCRATCH_TEST(a_recording_is_replayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

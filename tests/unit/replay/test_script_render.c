/* SPDX-License-Identifier: MIT
 *
 * Answers as bytes: every format, streaming and not; each fault; and the same bytes each time.
 */
#include "replay/script.h"

#include "llm/event.h"
#include "script_case.h"

static struct playback *render(struct script_case *c, const char *target, const char *body)
{
    struct llm_request r = read_request(c, target, body);
    struct script_answer a;
    struct err e = { 0 };
    struct playback *p = playback_new();
    if (answer(c, &r, &a, &e) < 0 || script_render(&a, &r, p, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return p;
}

static struct str all_bytes(struct script_case *c, const struct playback *p)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < p->n_frames; i++) {
        buf_add(&b, p->frames[i].bytes);
    }
    return arena_str(c->arena, buf_str(&b));
}

static struct str bytes_of(struct script_case *c, const char *target, const char *body)
{
    CLEANUP(playback) struct playback *p = render(c, target, body);
    return all_bytes(c, p);
}

static const char *field(struct script_case *c, const struct playback *p, const char *name)
{
    struct http_fields f = { p->fields, p->n_fields };
    const struct str *v = http_find(&f, name);
    return v != NULL ? arena_dup(c->arena, *v) : "";
}

struct seen {
    struct buf text;
};

static void on_event(void *arg, const struct llm_event *ev)
{
    struct seen *s = arg;
    describe_event(ev, &s->text);
}

/* The answer as a client of the format reads it. */
static const char *read_back(struct script_case *c, const char *target, const char *body)
{
    struct llm_request r = read_request(c, target, body);
    struct seen seen = { .text = BUF_INIT(BUF_TEXT) };
    struct llm_reader *reader = llm_reader_new(&(struct llm_reader_opts) {
        .format = r.format, .stream = r.stream, .sink = { on_event, &seen } });
    struct err e = { 0 };
    if (llm_reader_feed(reader, bytes_of(c, target, body), &e) < 0 ||
        llm_reader_end(reader, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    llm_reader_free(reader);
    const char *text = arena_dup(c->arena, buf_str(&seen.text));
    buf_done(&seen.text);
    return text;
}

static const struct {
    const char *target, *body;
} requests[] = {
    { MESSAGES, "{model: m, max_tokens: 9, stream: true, messages: [{role: user, content: hi}]}" },
    { MESSAGES, "{model: m, max_tokens: 9, messages: [{role: user, content: hi}]}" },
    { RESPONSES, "{model: m, stream: true, input: hi}" },
    { RESPONSES, "{model: m, input: hi}" },
    { CHAT, "{model: m, stream: true, messages: [{role: user, content: hi}]}" },
    { CHAT, "{model: m, messages: [{role: user, content: hi}]}" },
    { GEMINI, "{contents: [{role: user, parts: [{text: hi}]}]}" },
    { "/v1beta/models/g:generateContent", "{contents: [{role: user, parts: [{text: hi}]}]}" },
};

static void every_format_reads_it(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: hello, call: {tool: Add, unchecked: true, args: {n: 1}}}]");
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        const char *got = read_back(c, requests[i].target, requests[i].body);
        if (strcmp(got, "say(hello) call Add({\"n\":1}) stop:tool") != 0) {
            fail_msg("%s: %s", requests[i].target, got);
        }
    }
}

static void the_same_bytes_each_time(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: hello, call: {tool: Add, unchecked: true, args: {n: 1}}}]");
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct str first = bytes_of(c, requests[i].target, requests[i].body);
        struct str again = bytes_of(c, requests[i].target, requests[i].body);
        assert_true(str_eq(first, again));
    }
    /* but no id twice in a conversation */
    struct str one = bytes_of(c, MESSAGES, chat(c, "hi", 0, NULL));
    struct str two = bytes_of(c, MESSAGES, chat(c, "hi", 1, NULL));
    size_t at = str_find(one, STR("toolu_"));
    assert_true(at < one.len);
    struct str id = str_slice(one, at, at + 20);
    assert_true(str_find(two, id) == two.len);
}

static void an_error_status_in_the_shape_of_the_provider(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{fault: {status: 429, retry_after: 2, error: {message: slow down}}}]");
    CLEANUP(playback) struct playback *p = render(c, requests[0].target, requests[0].body);
    assert_int_equal(p->status, 429);
    assert_string_equal(field(c, p, "retry-after"), "2");
    assert_string_equal(field(c, p, "content-type"), "application/json");
    struct str body = all_bytes(c, p);
    assert_holds(body.ptr, "\"type\":\"error\"");
    assert_holds(body.ptr, "rate_limit_error");
    assert_holds(body.ptr, "slow down");
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct llm_error error;
        struct llm_request r = read_request(c, requests[i].target, requests[i].body);
        llm_error_read(c->arena, r.format, 429, bytes_of(c, requests[i].target, requests[i].body),
                       &error);
        assert_int_equal(error.kind, LLM_ERR_RATE);
        assert_true(str_eqc(error.message, "slow down"));
    }
}

static void an_error_status_with_a_body_of_its_own(void **state)
{
    struct script_case *c = *state;
    load(c, "steps:\n  - {times: 1, fault: {status: 503, body: <html>, retry_after: 250ms}}\n"
            "  - {fault: {status: 500, body: {a: [1]}}}\n");
    CLEANUP(playback) struct playback *p = render(c, MESSAGES, requests[0].body);
    assert_int_equal(p->status, 503);
    assert_string_equal(field(c, p, "retry-after"), "0.250");
    assert_string_equal(field(c, p, "content-type"), "text/plain");
    assert_true(str_eqc(all_bytes(c, p), "<html>"));
    assert_true(str_eqc(bytes_of(c, MESSAGES, requests[0].body), "{\"a\":[1]}"));
}

static void a_failure_within_the_stream(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: part, fault: {error: {code: context_length_exceeded, message: full}}}]");
    CLEANUP(playback) struct playback *p = render(c, RESPONSES, requests[2].body);
    assert_int_equal(p->status, 200);
    struct str body = all_bytes(c, p);
    assert_holds(body.ptr, "\"type\":\"response.failed\"");
    assert_holds(body.ptr, "\"code\":\"context_length_exceeded\"");
    assert_holds(body.ptr, "part");
    CLEANUP(playback) struct playback *q = render(c, RESPONSES, requests[3].body);
    assert_int_equal(q->status, 400); /* nothing streams: the answer itself is an error */
    CLEANUP(playback) struct playback *m = render(c, MESSAGES, requests[0].body);
    assert_holds(all_bytes(c, m).ptr, "event: error");
}

static void cut_and_hang(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: hello}]");
    struct str whole = bytes_of(c, MESSAGES, requests[0].body);
    for (size_t n = 0; n < whole.len + 10; n += 7) {
        load(c, arena_printf(c->arena, "steps: [{say: hello, fault: {cut: %zu}}]", n));
        CLEANUP(playback) struct playback *p = render(c, MESSAGES, requests[0].body);
        assert_true(str_eq(all_bytes(c, p), str_slice(whole, 0, n)));
        assert_int_equal(p->end, PLAYBACK_FAILS);
        assert_int_equal(p->error.kind, UPSTREAM_CUT);
        assert_false(p->headless);
    }
    load(c, "steps: [{say: hello, fault: {hang: 20}}]");
    CLEANUP(playback) struct playback *h = render(c, MESSAGES, requests[0].body);
    assert_int_equal(h->end, PLAYBACK_HANGS);
    assert_true(str_eq(all_bytes(c, h), str_slice(whole, 0, 20)));
    load(c, "steps: [{say: x, fault: {hang: head}}]");
    CLEANUP(playback) struct playback *n = render(c, MESSAGES, requests[0].body);
    assert_true(n->headless && n->end == PLAYBACK_HANGS && n->n_frames == 0);
    load(c, "steps: [{say: x, fault: {cut: head}}]");
    CLEANUP(playback) struct playback *d = render(c, MESSAGES, requests[0].body);
    assert_true(d->headless && d->end == PLAYBACK_FAILS);
}

static void garbage(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: hello}]");
    struct str whole = bytes_of(c, MESSAGES, requests[0].body);
    load(c, "steps: [{say: hello, fault: {garbage: 30}}]");
    struct str bad = bytes_of(c, MESSAGES, requests[0].body);
    assert_true(str_starts(bad, str_slice(whole, 0, 30)));
    assert_int_equal(bad.len, 30 + 256);
    assert_false(str_is_utf8(bad));
    load(c, "steps: [{say: hello, fault: {garbage: 0, garbage_text: '<html>'}}]");
    assert_true(str_eqc(bytes_of(c, MESSAGES, requests[0].body), "<html>"));
}

static void duplicate_event(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: hello}]");
    struct str whole = bytes_of(c, MESSAGES, requests[0].body);
    size_t first = str_find(whole, STR("\n\n")) + 2;
    size_t second = first + str_find(str_slice(whole, first, whole.len), STR("\n\n")) + 2;
    load(c, "steps: [{say: hello, fault: {duplicate: 2}}]");
    struct str twice = bytes_of(c, MESSAGES, requests[0].body);
    assert_int_equal(twice.len, whole.len + second - first);
    assert_true(str_eq(str_slice(twice, 0, second), str_slice(whole, 0, second)));
    assert_true(str_eq(str_slice(twice, second, twice.len), str_slice(whole, first, whole.len)));
    load(c, "steps: [{say: hello, fault: {duplicate: 999}}]");
    assert_true(str_eq(bytes_of(c, MESSAGES, requests[0].body), whole));
}

static void slow_drip(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: hello}]");
    struct str whole = bytes_of(c, MESSAGES, requests[0].body);
    load(c, "steps: [{say: hello, fault: {drip: {bytes: 3, every: 2ms}, cut: 10}}]");
    CLEANUP(playback) struct playback *p = render(c, MESSAGES, requests[0].body);
    assert_int_equal(p->n_frames, 4);
    assert_int_equal(p->frames[0].wait, 2 * NSEC_PER_MS);
    assert_int_equal(p->frames[0].bytes.len, 3);
    assert_int_equal(p->frames[3].bytes.len, 1);
    assert_true(str_eq(all_bytes(c, p), str_slice(whole, 0, 10)));
}

static void usage_is_told_where_the_format_tells_it(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: x, usage: {input: 1234, output: 56, cache_read: 78}}]");
    struct str body = bytes_of(c, MESSAGES, requests[0].body);
    size_t start = str_find(body, STR("\n\n")); /* message_start */
    assert_true(str_find(str_slice(body, 0, start), STR("\"input_tokens\":1234")) < start);
    assert_true(str_find(str_slice(body, 0, start), STR("\"cache_read_input_tokens\":78")) < start);
    assert_holds(body.ptr, "\"output_tokens\":56");
    assert_holds(bytes_of(c, RESPONSES, requests[2].body).ptr, "\"input_tokens\":1312");
    assert_holds(bytes_of(c, CHAT, requests[5].body).ptr, "\"completion_tokens\":56");
    assert_holds(bytes_of(c, GEMINI, requests[6].body).ptr, "\"promptTokenCount\":1312");
}

static void pace_becomes_pauses(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: abcdef, chunk: 2, pace: 10ms, delay: 50ms}]");
    CLEANUP(playback) struct playback *p = render(c, MESSAGES, requests[0].body);
    nsec total = 0;
    for (size_t i = 0; i < p->n_frames; i++) {
        total += p->frames[i].wait;
    }
    assert_int_equal(total, 20 * NSEC_PER_MS);
    assert_int_equal(p->delay, 50 * NSEC_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_TEST(every_format_reads_it),
        CASE_TEST(the_same_bytes_each_time),
        CASE_TEST(an_error_status_in_the_shape_of_the_provider),
        CASE_TEST(an_error_status_with_a_body_of_its_own),
        CASE_TEST(a_failure_within_the_stream),
        CASE_TEST(cut_and_hang),
        CASE_TEST(garbage),
        CASE_TEST(duplicate_event),
        CASE_TEST(slow_drip),
        CASE_TEST(usage_is_told_where_the_format_tells_it),
        CASE_TEST(pace_becomes_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

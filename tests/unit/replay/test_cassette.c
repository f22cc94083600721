/* SPDX-License-Identifier: MIT
 *
 * What was recorded comes back as it was, without a credential in it; a replay gives each exchange
 * once, in order, and says field by field why a request has none.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "replay/cassette.h"

#include "../record/scratch.h"
#include "data/json_diff.h"
#include "record/redact.h"
#include "replay/pack.h"

#define KEY "tres-secret-value-0815"

static const struct http_field request_fields[] = {
    { STR("Content-Type"), STR("application/json") },
    { STR("Authorization"), STR("Bearer " KEY) },
    { STR("x-api-key"), STR("whatever") },
    { STR("anthropic-version"), STR("2023-06-01") },
    { STR("Cookie"), STR("a=b") },
};
static const struct http_field answer_fields[] = {
    { STR("content-type"), STR("text/event-stream") },
    { STR("set-cookie"), STR("session=1") },
};

static struct redactor *make_redactor(void)
{
    struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("API_KEY"), STR(KEY), NULL), 0);
    redactor_compile(r);
    return r;
}

static struct cassette_request request(uint64_t number, const char *body)
{
    return (struct cassette_request) {
        .number = number,
        .method = STR("POST"),
        .target = STR("/v1/messages?beta=true&key=" KEY),
        .fields = { request_fields, ARRAY_LEN(request_fields) },
        .body = str_of(body),
        .model = STR("m"),
        .stream = true,
    };
}

/* An exchange whose answer is `pieces`, 10 ms apart. */
static void record(struct cassette_writer *w, uint64_t number, const char *body,
                   const char *const *pieces, enum cassette_end end)
{
    struct cassette_request r = request(number, body);
    struct http_fields fields = { answer_fields, ARRAY_LEN(answer_fields) };
    struct err e = { 0 };
    nsec now = clock_now();
    struct cassette_take *t = cassette_take_new(w, &r, now);
    cassette_take_head(t, 200, &fields, now += 10 * NSEC_PER_MS);
    for (size_t i = 0; pieces[i] != NULL; i++) {
        cassette_take_data(t, str_of(pieces[i]), now += 10 * NSEC_PER_MS);
    }
    assert_int_equal(cassette_take_end(t, end, NULL, now + 10 * NSEC_PER_MS, &e), 0);
}

static struct cassette_writer *open_writer(struct scratch *s, const struct redactor *r)
{
    struct cassette_writer *w = NULL;
    struct err e = { 0 };
    if (cassette_writer_new(arena_printf(s->arena, "%s/c", s->path),
                            &(struct cassette_writer_opts) { .redactor = r }, &w, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return w;
}

static struct cassette *open_cassette(struct scratch *s)
{
    struct cassette *c = NULL;
    struct err e = { 0 };
    if (cassette_open(arena_printf(s->arena, "%s/c", s->path), &c, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return c;
}

static void comes_back(void **state)
{
    struct scratch *s = *state;
    CLEANUP(redactor) struct redactor *red = make_redactor();
    struct cassette_writer *w = open_writer(s, red);
    record(w, 2, "{\"b\":2}", (const char *const[]) { "x", NULL }, CASSETTE_CUT);
    record(w, 1, "{\"a\":1}", (const char *const[]) { "one", "tw\xc3", "\xa4", "\xff", NULL },
           CASSETTE_COMPLETE);
    record(w, 3, "no json \xff", (const char *const[]) { NULL }, CASSETTE_CANCELLED);
    cassette_writer_free(w);

    CLEANUP(cassette) struct cassette *c = open_cassette(s);
    struct cassette_exchange x;
    assert_int_equal(cassette_len(c), 3);
    assert_false(cassette_torn(c));
    assert_int_equal(cassette_exchange(c, 0, s->arena, &x, NULL), 0);
    assert_int_equal(x.number, 1); /* by their beginning, not by their end */
    assert_true(str_eqc(x.method, "POST"));
    assert_true(str_eqc(x.target, "/v1/messages?beta=true"));
    assert_true(str_eqc(x.body, "{\"a\":1}"));
    assert_int_equal(x.status, 200);
    assert_int_equal(x.n_frames, 4);
    assert_true(str_eqc(x.frames[0].bytes, "one"));
    assert_true(str_eqc(x.frames[1].bytes, "tw\xc3"));
    assert_true(str_eqc(x.frames[2].bytes, "\xa4"));
    assert_true(str_eqc(x.frames[3].bytes, "\xff"));
    assert_int_equal(x.answered, 10 * NSEC_PER_MS);
    assert_int_equal(x.frames[3].wait, 50 * NSEC_PER_MS);
    assert_int_equal(x.took, 60 * NSEC_PER_MS);
    assert_int_equal(x.end, CASSETTE_COMPLETE);
    assert_int_equal(json_len(x.fields), 2);
    assert_true(
        str_eqc(json_str(json_get(x.fields, "content-type"), STR_EMPTY), "application/json"));
    assert_int_equal(json_len(x.answer_fields), 1);
    assert_int_equal(cassette_exchange(c, 1, s->arena, &x, NULL), 0);
    assert_int_equal(x.end, CASSETTE_CUT);
    assert_int_equal(cassette_exchange(c, 2, s->arena, &x, NULL), 0);
    assert_int_equal(x.end, CASSETTE_CANCELLED);
    assert_true(str_eqc(x.body, "no json \xff"));
    assert_int_equal(x.n_frames, 0);
}

static struct str unpacked(struct scratch *s)
{
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    char *path = arena_printf(s->arena, "%s/c", s->path);
    assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &file, NULL), 0);
    struct str rest = buf_str(&file);
    struct str frame;
    while (pack_frame(&rest, &frame, NULL) == 1) {
        CLEANUP(unpacker) struct unpacker *u = unpacker_new(frame, BUF_TEXT);
        struct str line;
        while (unpacker_line(u, &line, NULL) == 1) {
            buf_addf(&text, "%.*s\n", STR_ARG(line));
        }
    }
    return arena_str(s->arena, buf_str(&text));
}

/* The value stands in the query, in two header fields, in the body (plain and in base64) and split
 * over pieces of the answer; a key that nobody registered in the body. */
static void holds_no_secret(void **state)
{
    struct scratch *s = *state;
    CLEANUP(redactor) struct redactor *red = make_redactor();
    struct cassette_writer *w = open_writer(s, red);
    record(w, 1,
           "{\"text\":\"key " KEY " and dHJlcy1zZWNyZXQtdmFsdWUtMDgxNQ== and "
           "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx and AIzaSyA1234567890abcdefghijklmnopqrs\"}",
           (const char *const[]) { "the tres-sec", "ret-value", "-0815 again", NULL },
           CASSETTE_COMPLETE);
    cassette_writer_free(w);
    struct str text = unpacked(s);
    static const char *const gone[] = { KEY,      "0815",     "tres-sec", "dHJlcy1zZWNyZXQ",
                                        "sk-ant", "AIzaSy",   "Bearer",   "Cookie",
                                        "cookie", "whatever", "session=1" };
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        if (str_find(text, str_of(gone[i])) < text.len) {
            fail_msg("'%s' in\n%.*s", gone[i], STR_ARG(text));
        }
    }
    assert_true(str_find(text, STR("[REDACTED:API_KEY]")) < text.len);
    assert_true(str_find(text, STR("[REDACTED:key]")) < text.len);
    assert_true(str_find(text, STR(" again")) < text.len);
}

static void half_a_secret_at_the_end_is_kept(void **state)
{
    struct scratch *s = *state;
    CLEANUP(redactor) struct redactor *red = make_redactor();
    struct cassette_writer *w = open_writer(s, red);
    record(w, 1, "{}", (const char *const[]) { "it was tres-", NULL }, CASSETTE_COMPLETE);
    cassette_writer_free(w);
    CLEANUP(cassette) struct cassette *c = open_cassette(s);
    CLEANUP(buf) struct buf all = BUF_INIT(BUF_TEXT);
    struct cassette_exchange x;
    assert_int_equal(cassette_exchange(c, 0, s->arena, &x, NULL), 0);
    for (size_t i = 0; i < x.n_frames; i++) {
        buf_add(&all, x.frames[i].bytes);
    }
    assert_string_equal(all.ptr, "it was tres-");
}

static void words_are_no_keys(void **state)
{
    struct scratch *s = *state;
    static const char *const prose[] = {
        "a task-oriented-and-very-long-name-1 here",
        "risk-adjusted-return-of-the-year-2026",
        "sk-short",
        "the sk-learn-compatible-estimator-interface",
        "AIza",
    };
    for (size_t i = 0; i < ARRAY_LEN(prose); i++) {
        struct str text = cassette_clean_text(NULL, s->arena, str_of(prose[i]));
        assert_ptr_equal(text.ptr, prose[i]);
    }
}

static void a_crash_costs_the_last_exchange_only(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = open_writer(s, NULL);
    record(w, 1, "{}", (const char *const[]) { "x", NULL }, CASSETTE_COMPLETE);
    char *path = arena_printf(s->arena, "%s/c", s->path);
    CLEANUP(buf) struct buf before = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &before, NULL), 0);
    record(w, 2, "{}", (const char *const[]) { "y", NULL }, CASSETTE_COMPLETE);
    cassette_writer_free(w);
    CLEANUP(buf) struct buf after = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &after, NULL), 0);
    for (size_t n = before.len; n < after.len; n++) {
        CLEANUP(cassette) struct cassette *c = NULL;
        assert_int_equal(cassette_parse(str_slice(buf_str(&after), 0, n), "c", &c, NULL), 0);
        assert_int_equal(cassette_len(c), 1);
        assert_int_equal(cassette_torn(c), n > before.len);
    }
}

static void never_mixes_recordings(void **state)
{
    struct scratch *s = *state;
    cassette_writer_free(open_writer(s, NULL));
    struct cassette_writer *w = NULL;
    assert_int_equal(cassette_writer_new(arena_printf(s->arena, "%s/c", s->path),
                                         &(struct cassette_writer_opts) { 0 }, &w, NULL),
                     -(int)ERR_EXISTS);
}

static void refuse(struct str bytes, const char *want)
{
    struct err e = { 0 };
    CLEANUP(cassette) struct cassette *c = NULL;
    assert_true(cassette_parse(bytes, "f", &c, &e) < 0);
    if (strstr(e.msg, want) == NULL) {
        fail_msg("'%s' instead of '%s'", e.msg, want);
    }
}

static void foreign_files_are_refused(void **state)
{
    CLEANUP(packer) struct packer *p = packer_new();
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    refuse(STR(""), "f: no cassette");
    refuse(STR("hello"), "no zstd");
    assert_int_equal(packer_add(p, STR("{\"type\":\"cassette\",\"version\":9}\n"), &file, NULL), 0);
    assert_int_equal(packer_end(p, &file, NULL), 0);
    refuse(buf_str(&file), "version 9");
    buf_reset(&file);
    assert_int_equal(packer_add(p, STR("{\"type\":\"cassette\",\"version\":1}\n"), &file, NULL), 0);
    assert_int_equal(packer_end(p, &file, NULL), 0);
    size_t len = file.len;
    assert_int_equal(packer_add(p, STR("{\"type\":\"exchange\"}\n"), &file, NULL), 0);
    assert_int_equal(packer_end(p, &file, NULL), 0);
    refuse(buf_str(&file), "no exchange");
    file.len = len;
    assert_int_equal(packer_add(p, STR("{\"type\":\"exchange\",\"number\":7}\n[\n"), &file, NULL),
                     0);
    assert_int_equal(packer_end(p, &file, NULL), 0);
    CLEANUP(cassette) struct cassette *c = NULL;
    CLEANUP(arena) struct arena *a = arena_new();
    struct cassette_exchange x;
    struct err e = { 0 };
    assert_int_equal(cassette_parse(buf_str(&file), "f", &c, &e), 0);
    assert_int_equal(cassette_exchange(c, 0, a, &x, &e), -(int)ERR_PARSE);
    assert_non_null(strstr(e.msg, "f: exchange 7, line 2: "));
}

/* --- replay --- */

static void assert_holds(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, text);
    }
}

static struct cassette_replay *replay_of(struct scratch *s, const char *rules)
{
    struct cassette_replay *p = NULL;
    struct json *v = NULL;
    struct err e = { 0 };
    if (rules != NULL) {
        assert_int_equal(json_parse(s->arena, str_of(rules), NULL, &v, NULL), 0);
    }
    if (cassette_replay_new(open_cassette(s), v, NULL, &p, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return p;
}

/* The first piece of the answer, or what the miss said. */
static const char *ask(struct scratch *s, struct cassette_replay *p, const char *body)
{
    struct cassette_request r = request(1, body);
    struct cassette_exchange x;
    CLEANUP(arena) struct arena *a = NULL;
    struct err e = { 0 };
    if (cassette_replay_find(p, &r, &a, &x, &e) < 0) {
        assert_int_equal(e.code, ERR_CONFIG);
        return arena_dup(s->arena, str_of(e.msg));
    }
    return arena_dup(s->arena, x.frames[0].bytes);
}

static void equal_requests_get_their_answers_in_order(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = open_writer(s, NULL);
    static const char *const bodies[] = { "{\"q\":1}", "{\"q\":1}", "{\"q\":2}", "{\"q\":1}" };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        record(w, i + 1, bodies[i],
               (const char *const[]) { arena_printf(s->arena, "answer %zu", i + 1), NULL },
               CASSETTE_COMPLETE);
    }
    cassette_writer_free(w);
    CLEANUP(cassette_replay) struct cassette_replay *p = replay_of(s, NULL);
    assert_string_equal(ask(s, p, "{\"q\":1}"), "answer 1");
    assert_string_equal(ask(s, p, "{ \"q\": 2 }"),
                        "answer 3"); /* overtakes; spaces do not matter */
    cassette_replay_prepare(p);
    cassette_replay_prepare(p);
    assert_string_equal(ask(s, p, "{\"q\":1}"), "answer 2");
    assert_int_equal(cassette_replay_left(p), 1);
    assert_string_equal(ask(s, p, "{\"q\":1}"), "answer 4");
    assert_int_equal(cassette_replay_report(p).len, 0);
    assert_non_null(strstr(ask(s, p, "{\"q\":1}"), "all 4 recorded exchanges were played"));
    assert_true(cassette_replay_report(p).len > 0);
}

static void nothing_is_played_twice(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = open_writer(s, NULL);
    record(w, 1, "{\"q\":1}", (const char *const[]) { "one", NULL }, CASSETTE_COMPLETE);
    record(w, 2, "{\"q\":2}", (const char *const[]) { "two", NULL }, CASSETTE_COMPLETE);
    cassette_writer_free(w);
    CLEANUP(cassette_replay) struct cassette_replay *p = replay_of(s, NULL);
    assert_string_equal(ask(s, p, "{\"q\":2}"), "two");
    assert_holds(ask(s, p, "{\"q\":2}"), "differs from exchange 1");
    assert_string_equal(ask(s, p, "{\"q\":1}"), "one");
}

static void places_stand_for_each_other(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = NULL;
    struct json *was = json_object(s->arena);
    struct json *is = json_object(s->arena);
    json_setc(s->arena, was, "run", json_cstr(s->arena, "/tmp/out1"));
    json_setc(s->arena, was, "home", json_cstr(s->arena, "/tmp/out1/home"));
    json_setc(s->arena, is, "home", json_cstr(s->arena, "/var/h"));
    json_setc(s->arena, is, "run", json_cstr(s->arena, "/elsewhere/out2"));
    struct cassette_writer_opts opts = { .places = was };
    assert_int_equal(cassette_writer_new(scratch_path(s, "c"), &opts, &w, NULL), 0);
    record(w, 1, "{\"t\":\"in /tmp/out1/home/x and -tmp-out1-ws of /tmp/out1\"}",
           (const char *const[]) { "yes", NULL }, CASSETTE_COMPLETE);
    cassette_writer_free(w);
    CLEANUP(cassette_replay) struct cassette_replay *p = replay_of(s, NULL);
    cassette_replay_places(p, is);
    assert_holds(ask(s, p, "{\"t\":\"in /tmp/out1/home/x and -tmp-out1-ws of /elsewhere/out2\"}"),
                 "differs");
    assert_string_equal(
        ask(s, p, "{\"t\":\"in /var/h/x and -elsewhere-out2-ws of /elsewhere/out2\"}"), "yes");
}

/* A text that differs in a mapped path and in something else: the report shows the latter. */
static void a_miss_does_not_blame_places(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = NULL;
    struct json *was = json_object(s->arena);
    struct json *is = json_object(s->arena);
    json_setc(s->arena, was, "home", json_cstr(s->arena, "/tmp/out1/home"));
    json_setc(s->arena, is, "home", json_cstr(s->arena, "/tmp/out3/home"));
    struct cassette_writer_opts opts = { .places = was };
    assert_int_equal(cassette_writer_new(scratch_path(s, "c"), &opts, &w, NULL), 0);
    record(w, 1, "{\"t\":\"memory at /tmp/out1/home/m; git status: clean\"}",
           (const char *const[]) { "yes", NULL }, CASSETTE_COMPLETE);
    cassette_writer_free(w);
    CLEANUP(cassette_replay) struct cassette_replay *p = replay_of(s, NULL);
    cassette_replay_places(p, is);
    const char *why = ask(s, p, "{\"t\":\"memory at /tmp/out3/home/m; git status: ?? other.txt\"}");
    assert_holds(why, "memory at <home>/m; git status: ?? other.txt");
    assert_null(strstr(why, "out1"));
    assert_null(strstr(why, "out3"));
}

static void a_miss_names_the_fields(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = open_writer(s, NULL);
    record(w, 1, "{\"model\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"n\":1}",
           (const char *const[]) { "x", NULL }, CASSETTE_COMPLETE);
    cassette_writer_free(w);
    CLEANUP(cassette_replay) struct cassette_replay *p = replay_of(s, NULL);
    const char *why = ask(
        s, p, "{\"model\":\"b\",\"messages\":[{\"role\":\"user\",\"content\":\"ho\"}],\"m\":1}");
    if (strstr(why,
               "request 1 differs from exchange 1 of the cassette at /model: \"a\" is now \"b\" "
               "(and 3 more)") == NULL) {
        fail_msg("%s", why);
    }
    struct str report = cassette_replay_report(p);
    static const char *const lines[] = { "/model: \"a\" is now \"b\"\n",
                                         "/messages/0/content: \"hi\" is now \"ho\"\n",
                                         "/n: removed 1\n", "/m: added 1\n" };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_true(str_find(report, str_of(lines[i])) < report.len);
    }
    assert_int_equal(cassette_replay_left(p), 1);
}

static void another_target_is_another_request(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = open_writer(s, NULL);
    record(w, 1, "{}", (const char *const[]) { "x", NULL }, CASSETTE_COMPLETE);
    cassette_writer_free(w);
    CLEANUP(cassette_replay) struct cassette_replay *p = replay_of(s, NULL);
    struct cassette_request r = request(1, "{}");
    struct cassette_exchange x;
    CLEANUP(arena) struct arena *a = NULL;
    struct err e = { 0 };
    r.target = STR("/v1/responses");
    assert_int_equal(cassette_replay_find(p, &r, &a, &x, &e), -(int)ERR_CONFIG);
    assert_non_null(strstr(e.msg, "POST /v1/responses"));
    r.target = STR("/v1/messages?key=another&beta=true");
    assert_int_equal(cassette_replay_find(p, &r, &a, &x, &e), 0);
}

static size_t differences(struct scratch *s, const char *rules, const char *left, const char *right)
{
    CLEANUP(cassette_rules) struct cassette_rules *r = NULL;
    struct json *v = NULL;
    struct json_diff d;
    assert_int_equal(json_parse(s->arena, str_of(rules), NULL, &v, NULL), 0);
    assert_int_equal(cassette_rules_new(v, &r, NULL), 0);
    cassette_compare(r, cassette_body_tree(s->arena, str_of(left)),
                     cassette_body_tree(s->arena, str_of(right)), 10, s->arena, &d);
    return d.len;
}

static void volatile_fields(void **state)
{
    struct scratch *s = *state;
    /* built in */
    assert_int_equal(differences(s, "{}", "{\"metadata\":{\"user_id\":\"a\"}}",
                                 "{\"metadata\":{\"user_id\":\"b\"}}"),
                     0);
    assert_int_equal(
        differences(s, "{}", "{\"metadata\":{\"user\":\"a\"}}", "{\"metadata\":{\"user\":\"b\"}}"),
        1);
    assert_int_equal(differences(s, "{}", "{\"t\":\"Today is 2026-11-15.\"}",
                                 "{\"t\":\"Today is 2026-11-16.\"}"),
                     0);
    assert_int_equal(differences(s, "{}", "{\"t\":\"Today is Sunday, November 15, 2026 x\"}",
                                 "{\"t\":\"Today is Monday, November 16, 2026 x\"}"),
                     0);
    assert_int_equal(differences(s, "{}", "{\"t\":\"Today is 2026-11-15.\"}",
                                 "{\"t\":\"Today was 2026-11-16.\"}"),
                     1);
    assert_int_equal(differences(s, "{}", "{\"t\":\"id 01a1e0cb-135d-7c12-8bf2-14c15438426f\"}",
                                 "{\"t\":\"id 5e126aa0-9d47-4589-88cf-22fb58ef7960\"}"),
                     0);
    /* of a profile */
    assert_int_equal(differences(s, "{\"paths\":[\"/a/*/b\"]}",
                                 "{\"a\":[{\"b\":1},{\"b\":{\"c\":1}}]}",
                                 "{\"a\":[{\"b\":2},{\"b\":{\"c\":2}}]}"),
                     0);
    assert_int_equal(
        differences(s, "{\"paths\":[\"/a/*/b\"]}", "{\"a\":[{\"c\":1}]}", "{\"a\":[{\"c\":2}]}"),
        1);
    assert_int_equal(differences(s, "{\"paths\":[\"/**/id\"]}", "{\"a\":[{\"id\":1}],\"id\":1}",
                                 "{\"a\":[{\"id\":2}],\"id\":2}"),
                     0);
    assert_int_equal(differences(s, "{\"paths\":[\"/x\"]}", "{\"x\":1}", "{}"), 0);
    assert_int_equal(differences(s, "{\"patterns\":[\"run-\\\\d+\"]}", "{\"t\":\"in run-12 now\"}",
                                 "{\"t\":\"in run-7 now\"}"),
                     0);
    /* a list of several lines that comes in any order */
    const char *list = "{\"patterns\":[\"<list>[\\\\s\\\\S]*?</list>\"]}";
    assert_int_equal(differences(s, list, "{\"t\":\"x <list>\\n <a>\\n <b>\\n</list> y\"}",
                                 "{\"t\":\"x <list>\\n <b>\\n <a>\\n</list> y\"}"),
                     0);
    assert_int_equal(differences(s, list, "{\"t\":\"x <list>\\n <a>\\n</list> y\"}",
                                 "{\"t\":\"x <list>\\n <a>\\n</list> z\"}"),
                     1);
    /* as gemini tells of its skills */
    static const char rules[] =
        "{\"paths\":[\"/tools/*/functionDeclarations/*/parametersJsonSchema/properties/name/"
        "enum\"],\"patterns\":[\"<available_skills>[\\\\s\\\\S]*?</"
        "available_skills>\",\"\\\\(Available: [^)]*\\\\)\"]}";
    static const char one[] =
        "{\"s\":\"x <available_skills>\\n <a>\\n <b>\\n</available_skills> "
        "y\",\"tools\":[{\"functionDeclarations\":[{\"name\":\"o\"},{\"description\":\"By name "
        "(Available: 'a', 'b'). "
        "So.\",\"parametersJsonSchema\":{\"properties\":{\"name\":{\"enum\":[\"a\",\"b\"]}}}}]}]}";
    static const char other[] =
        "{\"s\":\"x <available_skills>\\n <b>\\n <a>\\n</available_skills> "
        "y\",\"tools\":[{\"functionDeclarations\":[{\"name\":\"o\"},{\"description\":\"By name "
        "(Available: 'b', 'a'). "
        "So.\",\"parametersJsonSchema\":{\"properties\":{\"name\":{\"enum\":[\"b\",\"a\"]}}}}]}]}";
    assert_int_equal(differences(s, rules, one, other), 0);
    assert_int_equal(differences(s, "{}", one, other), 4);
    assert_int_equal(differences(s, "{}", "plain", "plain text"), 1);
    /* redacted when it was recorded */
    assert_int_equal(
        differences(s, "{}", "{\"t\":\"use [REDACTED:K] here\"}", "{\"t\":\"use abc here\"}"), 0);
    assert_int_equal(
        differences(s, "{}", "{\"t\":\"use [REDACTED:K] here\"}", "{\"t\":\"use abc there\"}"), 1);
    struct cassette_rules *r = NULL;
    struct json *v = NULL;
    assert_int_equal(json_parse(s->arena, STR("{\"patterns\":[\"(\"]}"), NULL, &v, NULL), 0);
    assert_true(cassette_rules_new(v, &r, NULL) < 0);
    assert_int_equal(json_parse(s->arena, STR("{\"paths\":[\"a\"]}"), NULL, &v, NULL), 0);
    assert_true(cassette_rules_new(v, &r, NULL) < 0);
}

/* --- whole files --- */

static void a_copy_is_clean_and_else_the_same(void **state)
{
    struct scratch *s = *state;
    struct cassette_writer *w = open_writer(s, NULL);
    record(w, 1, "{\"a\":\"" KEY "\"}",
           (const char *const[]) { "tres-secret", "-value-0815", NULL }, CASSETTE_COMPLETE);
    record(w, 2, "{\"b\":1}", (const char *const[]) { "x", "y\xff", NULL }, CASSETTE_CUT);
    cassette_writer_free(w);
    CLEANUP(redactor) struct redactor *red = make_redactor();
    CLEANUP(cassette) struct cassette *c = open_cassette(s);
    CLEANUP(cassette) struct cassette *copy = NULL;
    const char *path = scratch_path(s, "copy");
    assert_int_equal(cassette_copy(c, path, red, NULL), 0);
    assert_int_equal(cassette_copy(c, path, red, NULL), -(int)ERR_EXISTS);
    assert_int_equal(cassette_open(path, &copy, NULL), 0);
    assert_int_equal(cassette_len(copy), 2);
    struct cassette_exchange x;
    struct cassette_exchange y;
    assert_int_equal(cassette_exchange(copy, 0, s->arena, &x, NULL), 0);
    assert_true(str_eqc(x.body, "{\"a\":\"[REDACTED:API_KEY]\"}"));
    assert_int_equal(x.n_frames, 1);
    assert_true(str_eqc(x.frames[0].bytes, "[REDACTED:API_KEY]"));
    assert_int_equal(cassette_exchange(c, 1, s->arena, &x, NULL), 0);
    assert_int_equal(cassette_exchange(copy, 1, s->arena, &y, NULL), 0);
    assert_true(json_equal(x.about, y.about));
    assert_true(json_equal(x.closing, y.closing));
    assert_true(json_equal(cassette_about(c), cassette_about(copy)));
    assert_int_equal(y.n_frames, 2);
    assert_int_equal(y.frames[1].wait, x.frames[1].wait);
    assert_true(str_eq(y.frames[1].bytes, x.frames[1].bytes));
}

static void two_files_are_compared(void **state)
{
    struct scratch *s = *state;
    CLEANUP(cassette_rules) struct cassette_rules *rules = NULL;
    CLEANUP(cassette) struct cassette *left = NULL;
    CLEANUP(cassette) struct cassette *right = NULL;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    static const char *const bodies[2][3] = { { "{\"q\":1}", "{\"q\":2}", "{}" },
                                              { "{\"q\":1}", "{\"q\":3}", "{}" } };
    for (size_t f = 0; f < 2; f++) {
        struct cassette_writer *w = open_writer(s, NULL);
        for (size_t i = 0; i < 3; i++) {
            record(w, i + 1, bodies[f][i],
                   (const char *const[]) { f == 1 && i == 2 ? "other" : "same", NULL },
                   CASSETTE_COMPLETE);
        }
        cassette_writer_free(w);
        assert_int_equal(cassette_open(scratch_path(s, "c"), f == 0 ? &left : &right, NULL), 0);
        assert_int_equal(unlink(scratch_path(s, "c")), 0);
    }
    assert_int_equal(cassette_rules_new(NULL, &rules, NULL), 0);
    assert_int_equal(cassette_diff(left, left, rules, 9, &out, NULL), 0);
    assert_int_equal(out.len, 0);
    assert_int_equal(cassette_diff(left, right, rules, 1, &out, NULL), 1);
    assert_string_equal(out.ptr, "exchange 2, POST /v1/messages?beta=true\n"
                                 "  request /q: 2 is now 3\n");
    buf_reset(&out);
    assert_int_equal(cassette_diff(left, right, rules, 9, &out, NULL), 2);
    assert_non_null(strstr(out.ptr, "answer: status 200, 4 bytes is now status 200, 5 bytes"));
}

/* --- texts side by side --- */

static bool same_text(struct cassette_rules *r, const char *recorded, const char *now)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json_diff d;
    bool same = cassette_same_text(r, NULL, str_of(recorded), str_of(now));
    const struct json *left = cassette_body_tree(a, str_of(recorded));
    const struct json *right = cassette_body_tree(a, cassette_clean_text(NULL, a, str_of(now)));
    cassette_compare(r, left, right, 1, a, &d);
    if (json_is(left, JSON_OBJECT) && json_is(right, JSON_OBJECT)) {
        assert_true(!same || d.len == 0); /* never more lenient than the trees */
    }
    return same;
}

static void texts_tell_what_the_trees_tell(void **state)
{
    struct cassette_rules *r = NULL;
    assert_int_equal(cassette_rules_new(NULL, &r, NULL), 0);
    static const struct {
        const char *recorded, *now;
        bool same;
    } cases[] = {
        { "{\"a\":1}", "{\"a\":1}", true },
        { "{\"metadata\":{\"user_id\":\"one\"},\"b\":[1,2]}",
          "{\"metadata\":{\"user_id\":\"another one\"},\"b\":[1,2]}", true },
        { "{\"metadata\":{\"user_id\":\"one\"},\"b\":[1,2]}",
          "{\"metadata\":{\"user_id\":{\"x\":[\"}\"]}},\"b\":[1,2]}", true },
        { "{\"metadata\":{\"user_id\":\"one\"},\"b\":[1,2]}",
          "{\"metadata\":{\"user_id\":\"two\"},\"b\":[1,3]}", false },
        { "{\"contents\":[{\"parts\":[{\"functionCall\":{\"id\":\"1\",\"name\":\"f\"}}]}]}",
          "{\"contents\":[{\"parts\":[{\"functionCall\":{\"id\":\"22\",\"name\":\"f\"}}]}]}",
          true },
        { "{\"contents\":[{\"parts\":[{\"functionCall\":{\"id\":\"1\",\"name\":\"f\"}}]}]}",
          "{\"contents\":[{\"parts\":[{\"functionCall\":{\"id\":\"1\",\"name\":\"g\"}}]}]}",
          false },
        { "{\"s\":\"on 2026-11-15 at\",\"t\":\"2026-01-01\"}",
          "{\"s\":\"on 2027-01-02 at\",\"t\":\"2026-02-02\"}", true },
        { "{\"s\":\"on 2026-11-15 at\"}", "{\"s\":\"on 2026-11-15 et\"}", false },
        { "{\"s\":\"[REDACTED:key] x\"}", "{\"s\":\"sk-abcdefghijklmnopqrst1234 x\"}", true },
        { "{\"s\":12}", "{\"s\":123}", false },
        { "{\"s\":\"1\"}", "{\"s\":1}", false },
        { "{\"a\":1,\"b\":2}", "{\"a\":1}", false },
        { "{\"a\":1}", "{\"a\":1,\"b\":2}", false },
        { "{\"a\":[1,2]}", "{\"a\":[1,2,3]}", false },
        { "{\"k\":\"2026-11-15\"}", "{\"l\":\"2026-11-15\"}", false },
        { "{\"a\":\"x", "{\"a\":\"y", false },
        { "plain text", "plain", false },
        { "", "{}", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (same_text(r, cases[i].recorded, cases[i].now) != cases[i].same) {
            fail_msg("%s against %s", cases[i].recorded, cases[i].now);
        }
    }
    cassette_rules_free(r);
}

/* Texts of the same letters in another order: whatever they are, texts and trees do not contradict
 * each other. */
static void random_texts_are_never_judged_more_mildly(void **state)
{
    static const char *const pieces[] = { "{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"a\"",
                                          "\"user_id\"",
                                          "\"metadata\"",
                                          "1",
                                          "\"2026-11-15\"",
                                          "\"b\\\"\"" };
    struct cassette_rules *r = NULL;
    uint32_t seed = 3;
    assert_int_equal(cassette_rules_new(NULL, &r, NULL), 0);
    for (size_t round = 0; round < 20000; round++) {
        CLEANUP(buf) struct buf left = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf right = BUF_INIT(BUF_TEXT);
        for (struct buf *b = &left;; b = &right) {
            buf_adds(b, "{\"metadata\":{\"user_id\":");
            for (size_t i = 0; i < 6; i++) {
                seed = seed * 1664525u + 1013904223u;
                buf_adds(b, pieces[(seed >> 16) % ARRAY_LEN(pieces)]);
            }
            buf_adds(b, "}}");
            if (b == &right) {
                break;
            }
        }
        (void)same_text(r, left.ptr, right.ptr);
    }
    cassette_rules_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(comes_back),
        SCRATCH_TEST(holds_no_secret),
        SCRATCH_TEST(half_a_secret_at_the_end_is_kept),
        SCRATCH_TEST(words_are_no_keys),
        SCRATCH_TEST(a_crash_costs_the_last_exchange_only),
        SCRATCH_TEST(never_mixes_recordings),
        SCRATCH_TEST(foreign_files_are_refused),
        SCRATCH_TEST(equal_requests_get_their_answers_in_order),
        SCRATCH_TEST(nothing_is_played_twice),
        SCRATCH_TEST(places_stand_for_each_other),
        SCRATCH_TEST(a_miss_does_not_blame_places),
        SCRATCH_TEST(a_miss_names_the_fields),
        SCRATCH_TEST(another_target_is_another_request),
        SCRATCH_TEST(volatile_fields),
        SCRATCH_TEST(a_copy_is_clean_and_else_the_same),
        SCRATCH_TEST(two_files_are_compared),
        cmocka_unit_test(texts_tell_what_the_trees_tell),
        cmocka_unit_test(random_texts_are_never_judged_more_mildly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

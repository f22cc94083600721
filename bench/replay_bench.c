/* SPDX-License-Identifier: MIT
 *
 * A conversation that is recorded and replayed, for bench/replay.
 *
 *   replay_bench FILE PROMPT_BYTES TURNS
 *
 * Prints {"record", "equal", "volatile", "script", "file_bytes"}: lists of microseconds of
 * processor time a turn. "equal": the requests are those of the recording; "volatile": one field
 * of each differs that does not count, so that both bodies are parsed and compared; "script": the
 * same requests answered by a script.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "llm/codec.h"
#include "replay/cassette_upstream.h"
#include "replay/script.h"

enum { PIECES = 50 };

/* Processor time: the machine may be busy with others. */
static nsec cpu_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (nsec)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static const char target[] = "/v1/messages";

static void must(int r, const struct err *e)
{
    if (r < 0) {
        (void)fprintf(stderr, "replay_bench: %s\n", e->msg);
        exit(1);
    }
}

/* The body of a turn: a long prompt, and two messages more for each turn before. */
static void write_body(struct buf *b, size_t prompt, size_t turn, const char *user)
{
    buf_reset(b);
    buf_addf(
        b,
        "{\"model\":\"m\",\"max_tokens\":100,\"stream\":true,\"metadata\":{\"user_id\":\"%s\"},"
        "\"tools\":[{\"name\":\"Write\",\"input_schema\":{\"type\":\"object\"}}],\"system\":\"",
        user);
    while (b->len < prompt) {
        buf_addf(b, "Rule %zu: look before you leap, and say what you saw.\\n", b->len);
    }
    buf_adds(b, "\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"}");
    for (size_t i = 0; i < turn; i++) {
        buf_addf(b,
                 ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t%zu\","
                 "\"name\":\"Write\",\"input\":{\"file_path\":\"a%zu\"}}]},{\"role\":\"user\","
                 "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t%zu\",\"content\":"
                 "\"written %zu\"}]}",
                 i, i, i, i);
    }
    buf_adds(b, "]}");
}

static struct cassette_request request_of(const struct buf *body, size_t turn)
{
    return (struct cassette_request) {
        .number = turn + 1, .method = STR("POST"), .target = STR(target), .body = buf_str(body)
    };
}

static void print_list(const char *name, const double *us, size_t n)
{
    printf("\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        printf("%s%.1f", i > 0 ? "," : "", us[i]);
    }
    printf("],");
}

static void record(const char *path, size_t prompt, size_t turns, double *us)
{
    CLEANUP(cassette_writer) struct cassette_writer *w = NULL;
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    struct http_field type = { STR("content-type"), STR("text/event-stream") };
    struct http_fields fields = { &type, 1 };
    struct err e = { 0 };
    must(cassette_writer_new(path, &(struct cassette_writer_opts) { 0 }, &w, &e), &e);
    for (size_t i = 0; i < turns; i++) {
        write_body(&body, prompt, i, "one");
        struct cassette_request r = request_of(&body, i);
        nsec began = cpu_now();
        struct cassette_take *t = cassette_take_new(w, &r, began);
        cassette_take_head(t, 200, &fields, began);
        for (int k = 0; k < PIECES; k++) {
            cassette_take_data(t,
                               STR("event: content_block_delta\ndata: {\"type\":"
                                   "\"content_block_delta\",\"delta\":{\"text\":\"word \"}}\n\n"),
                               began);
        }
        must(cassette_take_end(t, CASSETTE_COMPLETE, NULL, began, &e), &e);
        us[i] = (double)(cpu_now() - began) / 1000;
    }
}

static void replay(const char *path, size_t prompt, size_t turns, const char *user, double *us)
{
    CLEANUP(cassette_replay) struct cassette_replay *p = NULL;
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    struct cassette *c = NULL;
    struct err e = { 0 };
    must(cassette_open(path, &c, &e), &e);
    must(cassette_replay_new(c, NULL, NULL, &p, &e), &e);
    for (size_t i = 0; i < turns; i++) {
        write_body(&body, prompt, i, user);
        struct cassette_request r = request_of(&body, i);
        struct cassette_exchange x;
        nsec began = cpu_now();
        struct playback *answer = playback_new();
        arena_free(answer->arena);
        must(cassette_replay_find(p, &r, &answer->arena, &x, &e), &e);
        cassette_playback(&x, 0, answer);
        us[i] = (double)(cpu_now() - began) / 1000;
        cassette_replay_prepare(p); /* as the upstream does while the client reads */
        playback_free(answer);
    }
}

static void play(size_t prompt, size_t turns, double *us)
{
    CLEANUP(script) struct script *s = NULL;
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    must(script_parse(STR("steps: [{say: one two three four five, chunk: 1, call: {tool: "
                          "native.write_file, args: {path: a, content: b}}}]"),
                      "bench", &s, &e),
         &e);
    for (size_t i = 0; i < turns; i++) {
        write_body(&body, prompt, i, "one");
        nsec began = cpu_now();
        struct playback *answer = playback_new();
        struct llm_endpoint where = llm_endpoint_of(STR("POST"), STR(target));
        struct llm_request q;
        struct script_answer a;
        must(llm_request_read(answer->arena, &where, buf_str(&body), &q, &e), &e);
        must(script_answer(s, &(struct script_request) { .llm = &q }, answer->arena, &a, &e), &e);
        must(script_render(&a, &q, answer, &e), &e);
        us[i] = (double)(cpu_now() - began) / 1000;
        playback_free(answer);
    }
}

int main(int argc, char **argv)
{
    int64_t prompt = 0;
    int64_t turns = 0;
    if (argc != 4 || !str_to_i64(str_of(argv[2]), &prompt) ||
        !str_to_i64(str_of(argv[3]), &turns) || prompt < 0 || turns < 1 || turns > 100000) {
        (void)fprintf(stderr, "usage: replay_bench FILE PROMPT_BYTES TURNS\n");
        return 64;
    }
    size_t n = (size_t)turns;
    double *us = xcalloc(n, sizeof *us);
    struct stat st = { 0 };
    (void)unlink(argv[1]);
    printf("{");
    record(argv[1], (size_t)prompt, n, us);
    print_list("record", us, n);
    replay(argv[1], (size_t)prompt, n, "one", us);
    print_list("equal", us, n);
    replay(argv[1], (size_t)prompt, n, "two", us);
    print_list("volatile", us, n);
    play((size_t)prompt, n, us);
    print_list("script", us, n);
    (void)stat(argv[1], &st);
    printf("\"file_bytes\":%lld}\n", (long long)st.st_size);
    free(us);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Answers made at random, within what a format can say: what its writer makes of them, its reader
 * reads as the same, streamed in random chunks and as a body; and the tap counts what the reader
 * counts. A failure names the seed.
 */
#include "digest.h"

#define ROUNDS 300

static uint64_t random_state;

static uint32_t roll(uint32_t sides)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % sides;
}

/* What each format can tell apart. */
static const struct {
    bool many_texts;  /* several texts and thoughts, in any order */
    bool signatures;  /* of thoughts */
    bool cache_write; /* in usage */
    bool reasoning;   /* in usage */
    bool refusals;
} can[LLM_FORMAT_MAX] = {
    [LLM_ANTHROPIC] = { .many_texts = true, .signatures = true, .cache_write = true },
    [LLM_CHAT] = { .cache_write = true, .reasoning = true, .refusals = true },
    [LLM_RESPONSES] = { .reasoning = true },
    [LLM_GEMINI] = { .reasoning = true },
};

/* --- making one --- */

struct made {
    enum llm_format format;
    struct llm_event events[2000];
    size_t n;
};

static struct str some_text(void)
{
    static const char *const pieces[] = {
        "a",    "Gr\u00fc\u00dfe", " ",          "\n",  "\"", "\\", "\t", "\u4f60\u597d", "{", "}",
        "\001", "data: x\n\n",     "\U0001f30d", "</s>"
    };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    uint32_t n = 1 + roll(6);
    for (uint32_t i = 0; i < n; i++) {
        buf_adds(&out, pieces[roll(ARRAY_LEN(pieces))]);
    }
    return arena_str(arena, buf_str(&out));
}

static void add(struct made *m, struct llm_event ev)
{
    assert_true(m->n < ARRAY_LEN(m->events));
    m->events[m->n++] = ev;
}

static void add_text(struct made *m, enum llm_event_kind kind, uint32_t block)
{
    uint32_t pieces = 1 + roll(3);
    for (uint32_t i = 0; i < pieces; i++) {
        add(m, (struct llm_event) { .kind = kind, .block = block, .text = some_text() });
        if (roll(8) == 0) {
            add(m, (struct llm_event) { .kind = LLM_EV_PING });
        }
    }
}

static void add_thought(struct made *m, uint32_t block)
{
    bool redacted = can[m->format].signatures && roll(4) == 0;
    if (!redacted) {
        add_text(m, LLM_EV_THINKING, block);
    }
    if (redacted || (can[m->format].signatures && roll(2) == 0)) {
        struct llm_event ev = { .kind = LLM_EV_SIGNATURE, .block = block, .redacted = redacted };
        ev.text = STR("c2lnbmF0dXJl");
        add(m, ev);
    }
}

/* Calls that interleave: all begin, then their data come in turns. */
static void add_calls(struct made *m, uint32_t first, uint32_t n)
{
    struct str data[8];
    size_t at[8] = { 0 };
    uint32_t open = n;
    for (uint32_t i = 0; i < n; i++) {
        struct json *input = json_object(arena);
        for (uint32_t k = roll(3); k > 0; k--) {
            json_set(arena, input, some_text(), json_string(arena, some_text()));
        }
        data[i] = text_of_json(input);
        struct llm_event ev = { .kind = LLM_EV_CALL_BEGIN, .block = first + i };
        ev.id = str_of(arena_printf(arena, "call_%u", first + i));
        ev.name = str_of(arena_printf(arena, "tool_%u", roll(4)));
        add(m, ev);
    }
    while (open > 0) {
        uint32_t i = roll(n);
        if (at[i] > data[i].len) {
            continue;
        }
        if (at[i] == data[i].len) {
            add(m, (struct llm_event) { .kind = LLM_EV_CALL_END, .block = first + i });
            at[i]++;
            open--;
            continue;
        }
        size_t end = at[i] + 1 + roll(12);
        struct str piece = str_slice(data[i], at[i], end);
        piece.len = piece.len > 4 ? str_utf8_prefix(piece) : data[i].len - at[i];
        add(m, (struct llm_event) { .kind = LLM_EV_CALL_DATA, .block = first + i, .text = piece });
        at[i] += piece.len;
    }
}

static void add_end(struct made *m, uint32_t calls, bool refused)
{
    struct llm_usage u = { roll(1000), roll(1000), roll(500), -1, -1 };
    u.cache_write = can[m->format].cache_write && roll(2) == 0 ? (int64_t)roll(500) : -1;
    u.reasoning = can[m->format].reasoning ? (int64_t)roll((uint32_t)u.output + 1) : -1;
    add(m, (struct llm_event) { .kind = LLM_EV_USAGE, .usage = u });
    struct llm_event stop = { .kind = LLM_EV_STOP };
    stop.stop = calls > 0 ? LLM_STOP_TOOL
                : refused ? LLM_STOP_REFUSAL
                          : (enum llm_stop)(roll(2) == 0 ? LLM_STOP_END : LLM_STOP_LENGTH);
    add(m, stop);
    add(m, (struct llm_event) { .kind = LLM_EV_END });
}

static void make(struct made *m, enum llm_format f)
{
    uint32_t block = 0, calls = roll(5);
    *m = (struct made) { .format = f };
    add(m, (struct llm_event) { .kind = LLM_EV_START, .id = STR("id_1"), .model = STR("m") });
    if (can[f].many_texts) {
        for (uint32_t i = roll(5); i > 0; i--) {
            if (roll(2) == 0) {
                add_thought(m, block++);
            } else {
                add_text(m, LLM_EV_TEXT, block++);
            }
        }
    } else {
        if (roll(2) == 0) {
            add_thought(m, block++);
        }
        if (roll(2) == 0 || calls == 0) {
            add_text(m, LLM_EV_TEXT, block++);
        }
    }
    bool refused = can[f].refusals && calls == 0 && roll(4) == 0;
    if (refused) {
        add_text(m, LLM_EV_REFUSAL, block++);
    }
    add_calls(m, block, calls);
    add_end(m, calls, refused);
}

/* --- checking it --- */

static struct str write_made(const struct made *m, bool stream)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct llm_writer_opts o = { .format = m->format, .stream = stream, .include_usage = true };
    struct llm_writer *w = llm_writer_new(&o);
    struct err e = { 0 };
    for (size_t i = 0; i < m->n; i++) {
        if (llm_writer_event(w, &m->events[i], &out, &e) < 0) {
            fail_msg("%s", e.msg);
        }
    }
    llm_writer_free(w);
    return arena_str(arena, buf_str(&out));
}

static const char *digest_made(const struct made *m)
{
    struct digest d;
    digest_init(&d);
    for (size_t i = 0; i < m->n; i++) {
        digest_event(&d, &m->events[i]);
    }
    const char *text = digest_text(&d);
    digest_done(&d);
    return text;
}

/* Only what is metered, from any listing of events. */
struct meter {
    struct llm_usage usage;
    bool started, ended;
    enum llm_stop stop;
    size_t calls;
};

static void count_event(void *arg, const struct llm_event *ev)
{
    struct meter *m = arg;
    m->started = m->started || ev->kind == LLM_EV_START;
    m->ended = m->ended || ev->kind == LLM_EV_END;
    m->calls += ev->kind == LLM_EV_CALL_BEGIN;
    if (ev->kind == LLM_EV_USAGE) {
        llm_usage_update(&m->usage, &ev->usage);
    } else if (ev->kind == LLM_EV_STOP) {
        m->stop = ev->stop;
    }
    assert_true(ev->kind == LLM_EV_START || ev->kind == LLM_EV_END || ev->kind == LLM_EV_STOP ||
                ev->kind == LLM_EV_CALL_BEGIN || ev->kind == LLM_EV_USAGE ||
                ev->kind == LLM_EV_ERROR);
    assert_true(ev->kind == LLM_EV_STOP || ev->text.len == 0);
}

static void check_tap(const struct made *m, bool stream, struct str answer)
{
    struct meter got = { .usage = LLM_USAGE_NONE };
    struct llm_reader_opts o = { .format = m->format,
                                 .stream = stream,
                                 .sink = { count_event, &got } };
    struct llm_tap *t = llm_tap_new(&o);
    const struct llm_event *usage = &m->events[m->n - 3];
    size_t calls = 0, step = 1 + roll(200);
    for (size_t i = 0; i < m->n; i++) {
        calls += m->events[i].kind == LLM_EV_CALL_BEGIN;
    }
    for (size_t i = 0; i < answer.len; i += step) {
        llm_tap_feed(t, str_slice(answer, i, i + step));
    }
    llm_tap_end(t);
    llm_tap_free(t);
    assert_true(got.started && got.ended);
    assert_int_equal(got.calls, calls);
    assert_int_equal(got.stop, m->events[m->n - 2].stop);
    assert_int_equal(got.usage.input, usage->usage.input);
    assert_int_equal(got.usage.output, usage->usage.output);
    assert_int_equal(got.usage.cache_read, usage->usage.cache_read);
}

static void check(enum llm_format f, uint64_t seed)
{
    static struct made m;
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    make(&m, f);
    const char *want = digest_made(&m);
    for (unsigned stream = 0; stream < 2; stream++) {
        struct str answer = write_made(&m, stream != 0);
        const char *got = digest_answer(f, stream != 0, answer, 1 + roll(100));
        if (strcmp(got, want) != 0) {
            fail_msg("%s, stream %u, seed %llu: should be\n%sis\n%sin\n%.*s", llm_format_name(f),
                     stream, (unsigned long long)seed, want, got, STR_ARG(answer));
        }
        check_tap(&m, stream != 0, answer);
    }
}

static void check_format(enum llm_format f)
{
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        check(f, seed);
        arena_reset(arena);
    }
}

static void test_anthropic(void **state)
{
    check_format(LLM_ANTHROPIC);
}

static void test_chat(void **state)
{
    check_format(LLM_CHAT);
}

static void test_responses(void **state)
{
    check_format(LLM_RESPONSES);
}

static void test_gemini(void **state)
{
    check_format(LLM_GEMINI);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_anthropic, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_chat, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_responses, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_gemini, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

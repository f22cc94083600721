/* SPDX-License-Identifier: MIT
 *
 * Conversations with real agents, as they were heard on the wire (data/acp/NAME.jsonl, reduced),
 * give what stands in NAME.golden: what is sent, asked and told, in order, however the bytes are
 * cut. Lines that begin with # are what the run does. GOLDEN_UPDATE=1 writes the files anew.
 */
#include "acp_case.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"

/* What the profiles of these agents say, and a little more. */
static const struct {
    const char *name;
    const char *sections;
} profiles[] = {
    { "gemini", "mcp: {prefix: mcp_cinch_}\n"
                "acp: {fs: false, tool_id_separator: __, noise: ['[MODE_UPDATE] ']}\n" },
    { "qwen", "mcp: {prefix: mcp__cinch__}\nacp: {fs: false, tool_name: [/_meta/toolName]}\n" },
    { "opencode", "mcp: {prefix: cinch_}\nacp: {tool_name: [/title]}\n" },
    { "claude", "mcp: {prefix: mcp__cinch__}\nacp: {tool_name: [/_meta/claudeCode/toolName]}\n" },
    { "codex", "acp: {tool_name: [/rawInput/tool], tool_server: [/rawInput/server]}\n" },
};

static const char *sections_of(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
        if (str_eqc(name, profiles[i].name)) {
            return profiles[i].sections;
        }
    }
    fail_msg("no profile %.*s", STR_ARG(name));
    return NULL;
}

static void act(struct talk *t, struct str line)
{
    struct str rest = str_slice(line, 2, line.len);
    struct str word = str_split(&rest, ' ');
    if (str_eqc(word, "say")) {
        driver_acp.dialogue->prompt(t->session, rest);
    } else if (str_eqc(word, "deny")) {
        t->deny = true;
    } else if (str_eqc(word, "interrupt")) {
        driver_acp.dialogue->interrupt(t->session);
    } else if (str_eqc(word, "finish")) {
        driver_acp.dialogue->finish(t->session);
    } else {
        fail_msg("no such directive: %.*s", STR_ARG(line));
    }
}

static void log_report(struct talk *t)
{
    const struct agent_report *r = &t->report;
    buf_addf(&t->log, "report text '%.*s' session '%.*s' model '%.*s' error '%.*s'%s%s\n",
             STR_ARG(r->text), STR_ARG(r->session_id), STR_ARG(r->model), STR_ARG(r->error),
             r->failed ? " failed" : "", r->result_seen ? " seen" : "");
    buf_addf(&t->log, "usage %s in %lld out %lld read %lld turns %lld cost %.4f\n",
             r->usage.known ? "known" : "unknown", (long long)r->usage.input,
             (long long)r->usage.output, (long long)r->usage.cache_read, (long long)r->usage.turns,
             r->usage.cost_known ? r->usage.cost_usd : -1);
}

/* The log of a conversation, in the arena of the caller. */
static struct str play(struct arena *a, struct str text, size_t step)
{
    struct talk t;
    struct str rest = text;
    struct str first = str_split(&rest, '\n');
    assert_true(str_starts(first, STR("# profile ")));
    talk_init(&t, sections_of(str_slice(first, 10, first.len)));
    t.spec.has_policies = true;
    t.spec.mcp = (struct driver_mcp) { .url = "http://127.0.0.1:1/mcp", .token = "secret" };
    talk_begin(&t);
    while (rest.ptr != NULL && rest.len > 0) {
        const char *start = rest.ptr;
        struct str line = str_split(&rest, '\n');
        if (str_starts(line, STR("# "))) {
            act(&t, line);
        } else {
            talk_feed(&t, str_n(start, line.len + 1), step);
        }
    }
    talk_end(&t);
    log_report(&t);
    struct str log = arena_str(a, buf_str(&t.log));
    talk_done(&t);
    return log;
}

static struct str contents(struct arena *a, const char *path)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    if (file_read(AT_FDCWD, path, BUF_TEXT, &b, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return arena_str(a, buf_str(&b));
}

static void check(const char *name)
{
    static const size_t steps[] = { 1 << 20, 1, 7, 500 };
    CLEANUP(arena) struct arena *a = arena_new();
    struct str wire = contents(a, arena_printf(a, DATA_DIR "/acp/%s.jsonl", name));
    const char *path = arena_printf(a, DATA_DIR "/acp/%s.golden", name);
    struct str log = play(a, wire, steps[0]);
    if (getenv("GOLDEN_UPDATE") != NULL) {
        assert_int_equal(file_write_atomic(AT_FDCWD, path, log, 0644, NULL), 0);
    }
    assert_string_equal(log.ptr, contents(a, path).ptr);
    for (size_t i = 1; i < ARRAY_LEN(steps); i++) {
        assert_string_equal(play(a, wire, steps[i]).ptr, log.ptr);
    }
}

static void test_gemini(void **state)
{
    check("gemini");
    check("gemini-errors");
}

static void test_opencode(void **state)
{
    check("opencode");
    check("opencode-deny");
}

static void test_claude(void **state)
{
    check("claude");
    check("claude-errors");
}

static void test_qwen(void **state)
{
    check("qwen");
}

static void test_codex(void **state)
{
    check("codex");
    check("codex-errors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemini), cmocka_unit_test(test_opencode),
        cmocka_unit_test(test_claude), cmocka_unit_test(test_codex),
        cmocka_unit_test(test_qwen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * The table of capabilities, and text of reports. That reports can be read is tried by
 * oracle_report.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>

#include "ack/report_priv.h"
#include "base/file.h"
#include "sample_report.h"

static struct json *publish(struct arena *a, const struct kit_report *r, const struct json *before,
                            const char **ret_markdown)
{
    CLEANUP(buf) struct buf markdown = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *table = NULL;
    struct err e = { 0 };
    if (report_compatibility(r, before, &markdown, &text, &e) < 0 ||
        json_parse(a, buf_str(&text), NULL, &table, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    if (ret_markdown != NULL) {
        *ret_markdown = arena_dup(a, buf_str(&markdown));
    }
    return table;
}

static const struct json *cell(const struct json *table, size_t row, const char *capability)
{
    return json_get(json_get(json_item(json_get(table, "rows"), row), "capabilities"), capability);
}

static void assert_state(const struct json *table, size_t row, const char *capability,
                         const char *state)
{
    assert_string_equal(json_cstring(json_get(cell(table, row, capability), "state"), ""), state);
}

static void test_truth(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct sample s;
    const char *markdown;
    sample_fill(&s, "skill_installation: no | folder");
    struct json *t = publish(a, &s.report, NULL, &markdown);
    assert_int_equal(json_len(json_get(t, "rows")), 2);
    /* test_a passed and test_e is stale, which is a pass */
    assert_state(t, 0, "text_response", "proven");
    assert_int_equal(json_int(json_get(cell(t, 0, "text_response"), "scenarios"), 0), 2);
    /* an expected failure is a failure still; it counts for both of its capabilities */
    assert_state(t, 0, "transcript", "failed");
    assert_state(t, 0, "tool_invocation", "failed");
    assert_int_equal(json_len(json_get(cell(t, 0, "tool_invocation"), "failed")), 2);
    /* test_c was skipped, test_f flaky: it ran, and not all passed */
    assert_state(t, 0, "skill_installation", "failed");
    assert_state(t, 1, "transcript", "skipped");
    assert_string_equal(json_cstring(json_get(cell(t, 1, "transcript"), "reason"), ""),
                        "not in PATH: two");
    assert_non_null(strstr(markdown, "| one | 1.2.3 | 2026-11-16 | 1 | 3 | 0 |\n"));
    assert_non_null(strstr(markdown, "| two |  | 2026-11-16 | 0 | 0 | 4 |\n"));
    assert_non_null(strstr(markdown, "\n## one\n\n| capability | 1.2.3 |\n|---|:-:|\n"));
    assert_non_null(strstr(markdown, "| tool_invocation | ✗ |\n"));
    assert_non_null(strstr(markdown, "- tool_invocation: **failed** in 2 of 2: test_b, test_d\n"));

    s.verdicts[5].status = VERDICT_SKIPPED; /* now nothing of it ran: its own reason, cleaned */
    t = publish(a, &s.report, NULL, &markdown);
    assert_state(t, 0, "skill_installation", "skipped");
    assert_non_null(strstr(markdown, "- skill_installation: no \\| folder\n"));
}

static void test_last_time(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct sample s;
    sample_fill(&s, "x");
    s.adapters[1].available = true; /* last time it was here … */
    s.adapters[1].version = "9";
    for (size_t i = SAMPLE_SCENARIOS; i < s.report.len; i++) {
        s.verdicts[i].status = VERDICT_PASSED;
    }
    struct json *before = publish(a, &s.report, NULL, NULL);
    sample_fill(&s, "x"); /* … now it is not, and the other one is newer */
    s.adapters[0].version = "1.3.0";
    (void)memcpy(s.report.started_at, "2027-01-01", 10);
    struct json *t = publish(a, &s.report, before, NULL);
    const struct json *rows = json_get(t, "rows");
    assert_int_equal(json_len(rows), 3);
    assert_string_equal(json_cstring(json_get(json_item(rows, 0), "version"), ""), "1.2.3");
    assert_string_equal(json_cstring(json_get(json_item(rows, 0), "date"), ""), "2026-11-16");
    assert_string_equal(json_cstring(json_get(json_item(rows, 1), "version"), ""), "1.3.0");
    assert_string_equal(json_cstring(json_get(json_item(rows, 1), "date"), ""), "2027-01-01");
    assert_string_equal(json_cstring(json_get(json_item(rows, 2), "version"), ""), "9");
    assert_state(t, 2, "transcript", "proven");
    t = publish(a, &s.report, t, NULL); /* the same again changes nothing */
    assert_int_equal(json_len(json_get(t, "rows")), 3);
}

/* Checks of the file contract: a column for all, in rows of adapters that it applies to. */
static void test_contract(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct profile program = { .name = "one", .driver = "contract" };
    const struct profile other = { .name = "two", .driver = "acp" };
    struct sample s;
    const char *markdown;
    sample_fill(&s, "it exited with 42");
    s.adapters[0].profile = &other;
    s.adapters[1].profile = &other;
    for (size_t i = 0; i < 3; i++) { /* passed, failed, skipped */
        s.scenarios[i].capabilities = NULL;
        s.scenarios[i].contract = "x";
    }
    struct json *t = publish(a, &s.report, NULL, &markdown);
    assert_null(strstr(markdown, "contract"));

    s.adapters[0].profile = &program;
    t = publish(a, &s.report, NULL, &markdown);
    assert_state(t, 0, "contract", "failed");
    assert_null(cell(t, 1, "contract"));
    assert_non_null(strstr(markdown, "| contract | "));
    assert_non_null(strstr(markdown, "- contract: **failed** in 1 of 2: test_b\n"));

    s.verdicts[1].status = VERDICT_PASSED;
    t = publish(a, &s.report, NULL, &markdown);
    assert_state(t, 0, "contract", "proven");
    assert_null(strstr(markdown, "- contract"));
}

/* What is published stays as it is while nothing new is tried. */
static void test_published(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf wanted = BUF_INIT(BUF_TEXT);
    const char *dir = getenv("CINCH_SOURCE");
    struct json *before;
    const char *markdown;
    struct err e;
    if (dir == NULL) {
        skip();
    }
    const char *path = arena_printf(a, "%s/docs/compatibility.json", dir);
    assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &text, &e), 0);
    path = arena_printf(a, "%s/docs/compatibility.md", dir);
    assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &wanted, &e), 0);
    assert_int_equal(json_parse(a, buf_str(&text), NULL, &before, &e), 0);
    const struct kit_report nothing = { .started_at = "2026-11-16" };
    (void)publish(a, &nothing, before, &markdown);
    assert_string_equal(markdown, wanted.ptr);
}

static void test_bad_last_time(void **state)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"version\":2,\"capabilities\":[],\"rows\":[]}",
        "{\"version\":1,\"capabilities\":[],\"rows\":[1]}",
        "{\"version\":1,\"capabilities\":{},\"rows\":[]}",
        "{\"version\":1,\"capabilities\":[],\"rows\":[{\"adapter\":\"a\",\"version\":\"b\"}]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct sample s;
        struct json *before;
        struct err e;
        sample_fill(&s, "x");
        assert_int_equal(json_parse(a, str_of(texts[i]), NULL, &before, &e), 0);
        assert_int_equal(report_compatibility(&s.report, before, &out, &out, &e), -ERR_CONFIG);
        assert_int_equal(out.len, 0);
    }
}

static void test_text(void **state)
{
    static const struct {
        enum report_form form;
        const char *text, *written;
    } cases[] = {
        { REPORT_XML, "a<b>&\"'\n\t", "a&lt;b&gt;&amp;\"'\n\t" },
        { REPORT_ATTRIBUTE, "\"\n\t<", "&quot;&#10;&#9;&lt;" },
        { REPORT_MARKDOWN, "a|b\n*c*`d`<e>[f]", "a\\|b \\*c\\*\\`d\\`&lt;e>\\[f]" },
        { REPORT_XML, "\x1b[0m\r\x7f", "\\x1b[0m\\x0d\\x7f" },
        { REPORT_XML, "\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80" },
        { REPORT_XML, "\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd" },
        { REPORT_XML, "\xef\xbf\xbf\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        report_text(&out, str_of(cases[i].text), cases[i].form);
        assert_string_equal(out.ptr, cases[i].written);
    }
}

/* A report that does not fit is an error, never a half. */
static void test_room(void **state)
{
    CLEANUP(buf) struct buf small = BUF_INIT(100);
    struct sample s;
    struct err e;
    sample_fill(&s, "x");
    assert_int_equal(report_json(&s.report, &small, &e), -ERR_LIMIT);
    assert_int_equal(report_junit(&s.report, &small, &e), -ERR_LIMIT);
    assert_int_equal(report_html(&s.report, &small, &e), -ERR_LIMIT);
    assert_int_equal(report_compatibility(&s.report, NULL, &small, &small, &e), -ERR_LIMIT);
    assert_int_equal(small.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),         cmocka_unit_test(test_contract),
        cmocka_unit_test(test_published),     cmocka_unit_test(test_last_time),
        cmocka_unit_test(test_bad_last_time), cmocka_unit_test(test_text),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

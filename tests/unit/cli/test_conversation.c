/* SPDX-License-Identifier: MIT
 *
 * Transcript entries of several harnesses, as they are read in a terminal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "cli/conversation.h"

#define ENTRY(type, detail) \
    "{\"entry_type\":\"" type "\",\"source\":\"main\",\"detail\":" detail "}"

struct expected {
    const char *entry, *text, *line;
};

static const struct expected cases[] = {
    { ENTRY("user_message", "{\"text\":\"Fix it\\n\\nplease\"}"), "\n> Fix it\n\nplease\n",
      "> Fix it" },
    { ENTRY("assistant_message", "{\"text\":\"if x:\\n    y  = 1\"}"), "\nif x:\n    y  = 1\n",
      "if x:" },
    { ENTRY("assistant_message", "{\"text\":\"I will.\"}"), "\nI will.\n", "I will." },
    { ENTRY("assistant_message", "{\"text\":\" \"}"), "", "" },
    { ENTRY("tool_use", "{\"tool_name\":\"Bash\",\"input\":{\"command\":\"npm test\"}}"),
      "\n$ npm test\n", "$ npm test" },
    { ENTRY("tool_use", "{\"tool_name\":\"codex:command\",\"input\":{\"command\":"
                        "\"/bin/sh -lc 'npm test'\"}}"),
      "\n$ npm test\n", "$ npm test" },
    { ENTRY("tool_use", "{\"tool_name\":\"shell\",\"input\":{\"command\":[\"ls\",\"-l\"]}}"),
      "\n$ ls -l\n", "$ ls -l" },
    { ENTRY("tool_use", "{\"tool_name\":\"Read\",\"input\":{\"file_path\":\"a.c\",\"limit\":3}}"),
      "\nRead a.c\n", "Read a.c" },
    { ENTRY("tool_use", "{\"tool_name\":\"lookup\",\"input\":{\"id\":3}}"), "\nlookup {\"id\":3}\n",
      "lookup {\"id\":3}" },
    { ENTRY("tool_result", "{\"tool_name\":\"Bash\",\"output\":\"two\\nlines\\n\"}"),
      "  two\n  lines\n", "result: two" },
    { ENTRY("tool_result", "{\"exit_code\":2,\"output\":\"no\"}"), "  exit 2\n  no\n",
      "failed: no" },
    { ENTRY("tool_result", "{\"output\":[{\"type\":\"text\",\"text\":\"a\"},{\"text\":\"b\"}]}"),
      "  a\n  b\n", "result: a" },
    { ENTRY("tool_result", "{\"output\":\"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\"}"),
      "  1\n  2\n  3\n  4\n  5\n  6\n  7\n  8\n  ... 2 more lines\n", "result: 1" },
    { ENTRY("error", "{\"error\":\"it broke\"}"), "\nerror: it broke\n", "error: it broke" },
    { ENTRY("system_event", "{\"subtype\":\"init\"}"), "", "" },
    { ENTRY("token_usage", "{\"input\":3}"), "", "" },
    { ENTRY("assistant_message", "{\"text\":\"\\u001b[2Jx\\u202e\"}"), "\n\\x1b[2Jx\\u202e\n",
      "\\x1b[2Jx\\u202e" },
    { "{\"entry_type\":\"assistant_message\",\"source\":\"subagent:7\",\"detail\":{\"text\":\"x\"}"
      "}",
      "\nsubagent:7:\nx\n", "x" },
    { "{}", "", "" },
    { ENTRY("tool_use", "[]"), "\ntool\n", "tool" },
    { ENTRY("tool_result", "null"), "", "result: " },
};

static void test_entries(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
        struct json *entry = NULL;
        assert_int_equal(json_parse(a, str_of(cases[i].entry), NULL, &entry, NULL), 0);
        conversation_add(entry, (struct conversation_style) { .width = 80 }, &text);
        conversation_line(entry, 80, &line);
        assert_string_equal(text.len == 0 ? "" : text.ptr, cases[i].text);
        assert_string_equal(line.len == 0 ? "" : line.ptr, cases[i].line);
    }
}

static void test_verbose_shows_all(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        struct json *entry = NULL;
        assert_int_equal(json_parse(a, str_of(cases[i].entry), NULL, &entry, NULL), 0);
        conversation_add(entry, (struct conversation_style) { .width = 40, .verbose = true },
                         &text);
        assert_null(text.len == 0 ? NULL : strstr(text.ptr, "more line"));
        if (strstr(cases[i].entry, "system_event") != NULL) {
            assert_non_null(strstr(text.ptr, "init"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_verbose_shows_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

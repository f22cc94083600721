/* SPDX-License-Identifier: MIT
 *
 * The examples in data/<format>: a request written again in its own format is what it was; an
 * answer gives its digest however it is cut, as a stream and as a body; and what a writer makes of
 * its events is read back as the same.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"
#include "digest.h"

static const struct {
    enum llm_format format;
    const char *target;
} formats[] = {
    { LLM_ANTHROPIC, "/v1/messages?beta=true" },
    { LLM_CHAT, "/v1/chat/completions" },
};

static struct str contents(const char *path)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    if (file_read(AT_FDCWD, path, BUF_TEXT, &b, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return arena_str(arena, buf_str(&b));
}

static const char *path_of(const char *format, const char *name, const char *ending)
{
    return arena_printf(arena, "%s/%s/%s%s", DATA_DIR, format, name, ending);
}

/* Calls `check` with the name of each file that has this ending; returns how many there were. */
static size_t each(size_t format, const char *ending,
                   void (*check)(size_t format, const char *name))
{
    const char *word = llm_format_name(formats[format].format);
    DIR *dir = opendir(path_of(word, "", ""));
    size_t n = 0;
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct str name = str_of(entry->d_name);
        if (str_ends(name, str_of(ending))) {
            check(format, arena_dup(arena, str_slice(name, 0, name.len - strlen(ending))));
            n++;
        }
    }
    closedir(dir);
    return n;
}

static void check_request(size_t i, const char *name)
{
    const char *word = llm_format_name(formats[i].format);
    print_message("%s/%s\n", word, name);
    assert_same(formats[i].target, contents(path_of(word, name, ".request.json")).ptr);
}

static void test_requests(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        assert_true(each(i, ".request.json", check_request) >= 3);
    }
}

static void check_stream(size_t i, const char *name)
{
    const char *word = llm_format_name(formats[i].format);
    struct str answer = contents(path_of(word, name, ".sse"));
    const char *want = path_of(word, name, ".events");
    print_message("%s/%s\n", word, name);
    if (getenv("GOLDEN_UPDATE") != NULL) {
        const char *text = digest_answer(formats[i].format, true, answer, answer.len);
        assert_int_equal(file_write_atomic(AT_FDCWD, want, str_of(text), 0644, NULL), 0);
    }
    want = contents(want).ptr;
    for (size_t step = 1; step <= answer.len; step++) {
        assert_string_equal(digest_answer(formats[i].format, true, answer, step), want);
    }
}

static void check_body(size_t i, const char *name)
{
    const char *word = llm_format_name(formats[i].format);
    struct str answer = contents(path_of(word, name, ".body.json"));
    const char *want = contents(path_of(word, name, ".events")).ptr;
    print_message("%s/%s\n", word, name);
    for (size_t step = 1; step <= answer.len; step += answer.len / 7 + 1) {
        assert_string_equal(digest_answer(formats[i].format, false, answer, step), want);
    }
    /* Some servers answer with a body although a stream was asked for. */
    assert_string_equal(digest_answer(formats[i].format, true, answer, answer.len), want);
}

static void test_answers(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        assert_true(each(i, ".sse", check_stream) >= 3);
        assert_true(each(i, ".body.json", check_body) >= 3);
    }
}

/* --- written and read again --- */

static void check_written(size_t i, const char *name)
{
    enum llm_format f = formats[i].format;
    const char *word = llm_format_name(f);
    struct str answer = contents(path_of(word, name, ".sse"));
    const char *want = contents(path_of(word, name, ".events")).ptr;
    struct llm_reader_opts from = { .format = f, .stream = true };
    struct llm_writer_opts to = { .format = f, .stream = true, .include_usage = true };
    if (strstr(want, "\nerror ") != NULL) {
        return; /* an error that comes late is not written into a body */
    }
    if (strcmp(name, "legacy") == 0) {
        return; /* calls without an id get one */
    }
    struct str again = rewrite_answer(&from, &to, answer);
    const char *got = digest_answer(f, true, again, again.len);
    if (strcmp(got, want) != 0) {
        fail_msg("%s/%s: was\n%sis\n%s", word, name, want, got);
    }
    to.stream = false;
    again = rewrite_answer(&from, &to, answer);
    got = digest_answer(f, false, again, again.len);
    if (strcmp(name, "full") != 0 && strcmp(got, want) != 0) {
        fail_msg("%s/%s as a body: was\n%sis\n%s", word, name, want, got);
    }
}

static void test_written(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        (void)each(i, ".sse", check_written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_requests, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_answers, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_written, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

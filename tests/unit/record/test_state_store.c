/* SPDX-License-Identifier: MIT
 *
 * Sessions: reducers, transactions, moments, journal and documents. The last test plays random
 * changes on the session and on a model that copies everything.
 */
#include "../values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "record/redact.h"
#include "record/state_store.h"

static const struct store_opts plain = {
    .id = { "s1", 2 },
    .created_at = { "2026-01-01T00:00:00Z", 20 },
    .journal_fd = -1,
};

static struct state_store *with_journal(int *ret_fd)
{
    struct store_opts o = plain;
    *ret_fd = memfd_create("journal", MFD_CLOEXEC);
    assert_true(*ret_fd >= 0);
    o.journal_fd = *ret_fd;
    return store_new(&o);
}

static struct str all_of(int fd)
{
    off_t len = lseek(fd, 0, SEEK_END);
    char *text = arena_alloc(arena, (size_t)len + 1);
    assert_int_equal(pread(fd, text, (size_t)len, 0), len);
    return str_n(text, (size_t)len);
}

/* "a,b,c" of the strings in a slice. */
static const char *joined(const struct state_store *s, const struct store_txn *t, const char *slice)
{
    struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < store_len(s, t, str_of(slice)); i++) {
        const struct json *item = store_item(s, t, str_of(slice), i);
        struct str text =
            json_str(json_is(item, JSON_OBJECT) ? json_get(item, "v") : item, STR("?"));
        buf_addf(&out, "%s%.*s", i > 0 ? "," : "", STR_ARG(text));
    }
    const char *kept = arena_dup(arena, buf_str(&out));
    buf_done(&out);
    return kept;
}

static void put(struct state_store *s, const char *slice, const char *text)
{
    struct store_change c = { .kind = CHANGE_APPEND, .slice = str_of(slice) };
    c.value = json_cstr(arena, text);
    assert_int_equal(store_apply(s, &c, NULL), 0);
}

static void an_event_without_reducer_is_appended(void **state)
{
    struct state_store *s = store_new(&plain);
    assert_int_equal(store_dispatch(s, STR("note"), tree("a"), NULL), 0);
    assert_int_equal(store_dispatch(s, STR("note"), tree("b"), NULL), 0);
    assert_string_equal(joined(s, NULL, "note"), "a,b");
    assert_true(str_eqc(json_str(store_latest(s, NULL, STR("note")), STR_EMPTY), "b"));
    assert_int_equal(store_len(s, NULL, STR("unknown")), 0);
    assert_null(store_latest(s, NULL, STR("unknown")));
    store_free(s);
}

static void reducers_shape_their_slice(void **state)
{
    struct state_store *s = store_new(&plain);
    struct store_rule latest = { STR("e"), STR("one"), REDUCE_REPLACE_LATEST, STR_EMPTY };
    struct store_rule upsert = { STR("e"), STR("by"), REDUCE_UPSERT_BY, STR("/k") };
    struct store_rule every = { STR("e"), STR("log"), REDUCE_APPEND_ALL, STR_EMPTY };
    assert_int_equal(store_reduce(s, &latest, NULL), 0);
    assert_int_equal(store_reduce(s, &upsert, NULL), 0);
    assert_int_equal(store_reduce(s, &every, NULL), 0);
    assert_int_equal(store_dispatch(s, STR("e"), tree("{k: 1, v: a}"), NULL), 0);
    assert_int_equal(store_dispatch(s, STR("e"), tree("{k: 2, v: b}"), NULL), 0);
    assert_int_equal(store_dispatch(s, STR("e"), tree("{k: 1, v: c}"), NULL), 0);
    assert_string_equal(joined(s, NULL, "one"), "c");
    assert_string_equal(joined(s, NULL, "by"), "b,c");
    assert_string_equal(joined(s, NULL, "log"), "a,b,c");
    assert_int_equal(store_len(s, NULL, STR("e")), 0); /* it had reducers */
    store_free(s);
}

static void an_event_without_its_key_changes_nothing(void **state)
{
    struct state_store *s = store_new(&plain);
    struct store_rule first = { STR("e"), STR("log"), REDUCE_APPEND_ALL, STR_EMPTY };
    struct store_rule by = { STR("e"), STR("by"), REDUCE_UPSERT_BY, STR("/k") };
    struct err e;
    assert_int_equal(store_reduce(s, &first, NULL), 0);
    assert_int_equal(store_reduce(s, &by, NULL), 0);
    assert_int_equal(store_dispatch(s, STR("e"), tree("{v: a}"), &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "'/k'"));
    assert_int_equal(store_len(s, NULL, STR("log")), 0);
    store_free(s);
}

static void wrong_declarations_are_refused(void **state)
{
    struct state_store *s = store_new(&plain);
    struct store_rule no_key = { STR("e"), STR("by"), REDUCE_UPSERT_BY, STR_EMPTY };
    assert_int_equal(store_declare(s, STR("x"), SLICE_LOG, NULL), 0);
    assert_int_equal(store_declare(s, STR("x"), SLICE_LOG, NULL), 0);
    assert_int_equal(store_declare(s, STR("x"), SLICE_STATE, NULL), -ERR_EXISTS);
    assert_int_equal(store_declare(s, STR(""), SLICE_STATE, NULL), -ERR_USAGE);
    assert_int_equal(store_reduce(s, &no_key, NULL), -ERR_CONFIG);
    for (int i = 0; i < SESSION_SLICES_MAX - 1; i++) {
        assert_int_equal(store_declare(s, str_of(arena_printf(arena, "s%d", i)), SLICE_STATE, NULL),
                         0);
    }
    assert_int_equal(store_declare(s, STR("more"), SLICE_STATE, NULL), -ERR_LIMIT);
    store_free(s);
}

static void a_call_is_seen_by_nobody_before_its_commit(void **state)
{
    struct state_store *s = store_new(&plain);
    put(s, "x", "a");
    struct store_txn *one = store_begin(s);
    struct store_txn *two = store_begin(s);
    assert_int_equal(store_txn_dispatch(one, STR("x"), tree("b"), NULL), 0);
    assert_int_equal(store_txn_dispatch(two, STR("x"), tree("c"), NULL), 0);
    assert_string_equal(joined(s, NULL, "x"), "a");
    assert_string_equal(joined(s, one, "x"), "a,b");
    assert_string_equal(joined(s, two, "x"), "a,c");
    assert_int_equal(store_commit(two, NULL), 0);
    assert_string_equal(joined(s, one, "x"), "a,b"); /* still its own view */
    assert_int_equal(store_commit(one, NULL), 0);
    assert_string_equal(joined(s, NULL, "x"), "a,c,b");
    store_free(s);
}

static void an_abort_keeps_the_log_only(void **state)
{
    struct state_store *s = store_new(&plain);
    assert_int_equal(store_declare(s, STR("history"), SLICE_LOG, NULL), 0);
    put(s, "x", "a");
    struct store_txn *t = store_begin(s);
    struct store_change wipe = { .kind = CHANGE_CLEAR, .slice = STR("x") };
    assert_int_equal(store_txn_apply(t, &wipe, NULL), 0);
    assert_int_equal(store_txn_dispatch(t, STR("history"), tree("tried"), NULL), 0);
    assert_int_equal(store_len(s, t, STR("x")), 0);
    assert_int_equal(store_abort(t, NULL), 0);
    assert_string_equal(joined(s, NULL, "x"), "a");
    assert_string_equal(joined(s, NULL, "history"), "tried");
    store_free(s);
}

static void a_moment_comes_back(void **state)
{
    struct state_store *s = store_new(&plain);
    assert_int_equal(store_declare(s, STR("log"), SLICE_LOG, NULL), 0);
    put(s, "x", "a");
    struct store_moment before = store_snapshot(s);
    put(s, "x", "b");
    put(s, "log", "l");
    put(s, "born_later", "c");
    struct store_moment after = store_snapshot(s);
    assert_int_equal(store_restore(s, before, true, NULL), 0);
    assert_string_equal(joined(s, NULL, "x"), "a");
    assert_string_equal(joined(s, NULL, "log"), "l");
    assert_string_equal(joined(s, NULL, "born_later"), "");
    put(s, "x", "other");
    assert_int_equal(store_restore(s, after, false, NULL), 0);
    assert_string_equal(joined(s, NULL, "x"), "a,b");
    assert_int_equal(store_restore(s, before, false, NULL), 0);
    assert_string_equal(joined(s, NULL, "log"), "");
    store_free(s);
}

static void what_was_committed_is_in_the_journal(void **state)
{
    int fd;
    struct state_store *s = with_journal(&fd);
    assert_int_equal(store_declare(s, STR("log"), SLICE_LOG, NULL), 0);
    put(s, "x", "a");
    struct store_moment m = store_snapshot(s);
    put(s, "x", "b");
    struct store_txn *aborted = store_begin(s);
    assert_int_equal(store_txn_dispatch(aborted, STR("x"), tree("no"), NULL), 0);
    assert_int_equal(store_txn_dispatch(aborted, STR("log"), tree("yes"), NULL), 0);
    assert_int_equal(store_abort(aborted, NULL), 0);
    struct store_change drop = { CHANGE_CLEAR, STR("x"), tree("a"), STR("") };
    assert_int_equal(store_apply(s, &drop, NULL), 0);
    put(s, "x", "c");
    assert_int_equal(store_restore(s, m, true, NULL), 0);
    put(s, "x", "d");
    struct store_txn *open = store_begin(s);
    assert_int_equal(store_txn_dispatch(open, STR("x"), tree("lost"), NULL), 0);

    struct str journal = all_of(fd);
    struct state_store *again = store_new(&plain);
    assert_int_equal(store_replay(again, journal, NULL), 0);
    assert_string_equal(joined(again, NULL, "x"), "a,d");
    assert_string_equal(joined(again, NULL, "log"), "yes");
    store_free(again);

    /* Killed in the middle of the last line: everything before it is there. */
    again = store_new(&plain);
    assert_int_equal(store_replay(again, str_slice(journal, 0, journal.len - 3), NULL), 0);
    assert_string_equal(joined(again, NULL, "x"), "a");
    store_free(again);
    store_free(s);
    close(fd);
}

/* Killed anywhere while it was written: all of a commit is there, or nothing. */
static void a_torn_commit_is_none(void **state)
{
    int fd;
    struct state_store *s = with_journal(&fd);
    put(s, "x", "before");
    struct store_txn *t = store_begin(s);
    assert_int_equal(store_txn_dispatch(t, STR("x"), tree("a"), NULL), 0);
    assert_int_equal(store_txn_dispatch(t, STR("y"), tree("b"), NULL), 0);
    assert_int_equal(store_txn_dispatch(t, STR("x"), tree("c"), NULL), 0);
    off_t at = lseek(fd, 0, SEEK_END);
    assert_int_equal(store_commit(t, NULL), 0);
    struct str journal = all_of(fd);
    for (size_t len = (size_t)at; len <= journal.len; len++) {
        struct state_store *again = store_new(&plain);
        bool whole = len == journal.len;
        assert_int_equal(store_replay(again, str_slice(journal, 0, len), NULL), 0);
        assert_string_equal(joined(again, NULL, "x"), whole ? "before,a,c" : "before");
        assert_string_equal(joined(again, NULL, "y"), whole ? "b" : "");
        store_free(again);
    }
    store_free(s);
    close(fd);
}

static void secrets_stay_out_of_the_journal(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("TOKEN"), STR("hunter2hunter2"), NULL), 0);
    redactor_compile(r);
    struct store_opts o = plain;
    o.journal_fd = memfd_create("journal", MFD_CLOEXEC);
    o.redactor = r;
    struct state_store *s = store_new(&o);
    put(s, "x", "say hunter2hunter2");
    assert_string_equal(joined(s, NULL, "x"), "say hunter2hunter2");
    struct str journal = all_of(o.journal_fd);
    assert_int_equal(str_find(journal, STR("hunter2")), journal.len);
    assert_true(str_find(journal, STR("[REDACTED:TOKEN]")) < journal.len);
    store_free(s);
    close(o.journal_fd);
}

static void a_journal_that_cannot_be_written_changes_nothing(void **state)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct store_opts o = plain;
    o.journal_fd = fd;
    struct state_store *s = store_new(&o);
    struct err e;
    assert_int_equal(store_dispatch(s, STR("x"), tree("a"), &e), -ERR_OUTPUT);
    assert_int_equal(store_len(s, NULL, STR("x")), 0);
    store_free(s);
    close(fd);
}

static void bad_journals_are_named_by_line(void **state)
{
    static const char *const bad[] = {
        "nonsense\n",
        "{\"slice\":\"x\",\"policy\":\"state\",\"op\":\"explode\"}\n",
        "{\"slice\":\"x\",\"policy\":\"maybe\",\"op\":\"clear\"}\n",
        "{\"slice\":\"\",\"policy\":\"state\",\"op\":\"clear\"}\n",
        "{\"slice\":\"x\",\"policy\":\"state\",\"op\":\"extend\",\"value\":3}\n",
        "{\"slice\":\"x\",\"policy\":\"state\",\"op\":\"append\"}\n",
        "[]\n",
        "\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct state_store *s = store_new(&plain);
        struct err e = { 0 };
        assert_true(store_replay(s, str_of(bad[i]), &e) < 0);
        assert_non_null(strstr(e.msg, "line 1"));
        store_free(s);
    }
}

static void a_document_goes_round(void **state)
{
    struct state_store *s = store_new(&plain);
    assert_int_equal(store_declare(s, STR("z:log"), SLICE_LOG, NULL), 0);
    assert_int_equal(store_declare(s, STR("empty"), SLICE_STATE, NULL), 0);
    put(s, "b:Plan", "1");
    put(s, "a:Note", "2");
    put(s, "z:log", "3");
    struct json *saved = store_save(s, arena, STR("2026-01-02T00:00:00Z"), false);
    assert_true(json_equal(
        saved, tree("{version: '1', created_at: '2026-01-02T00:00:00Z', parent_id: null,"
                    " children_ids: [], tags: {session_id: s1},"
                    " policies: {'a:Note': state, 'b:Plan': state, empty: state, 'z:log': log},"
                    " slices: [{slice_type: 'a:Note', item_type: 'a:Note', items: ['2']},"
                    "          {slice_type: 'b:Plan', item_type: 'b:Plan', items: ['1']}]}")));
    assert_int_equal(json_len(json_get(store_save(s, arena, STR("t"), true), "slices")), 3);
    put(s, "a:Note", "later");
    put(s, "empty", "filled");
    assert_int_equal(store_load(s, saved, NULL), 0);
    assert_string_equal(joined(s, NULL, "a:Note"), "2");
    assert_string_equal(joined(s, NULL, "empty"), "");
    assert_string_equal(joined(s, NULL, "z:log"), "3");
    store_free(s);
}

static void a_document_of_another_task_is_refused(void **state)
{
    struct state_store *s = store_new(&plain);
    put(s, "x", "a");
    struct err e;
    assert_int_equal(
        store_load(s, tree("{version: '1', slices: [{slice_type: alien, items: []}]}"), &e),
        -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "alien"));
    assert_int_equal(store_load(s, tree("{version: '2', slices: []}"), NULL), -ERR_PARSE);
    assert_int_equal(store_load(s, tree("{version: '1', slices: [{slice_type: x}]}"), NULL),
                     -ERR_PARSE);
    assert_int_equal(store_load(s, tree("[]"), NULL), -ERR_PARSE);
    assert_string_equal(joined(s, NULL, "x"), "a");
    store_free(s);
}

/* The model: the joined text of one slice, and those at the moments taken. */
struct model {
    char text[4096];
};

static void model_add(struct model *m, const char *item)
{
    size_t len = strlen(m->text);
    assert_true(len + strlen(item) + 2 < sizeof(m->text));
    (void)snprintf(m->text + len, sizeof(m->text) - len, "%s%s", len > 0 ? "," : "", item);
}

static void random_changes_agree_with_a_model(void **state)
{
    int fd;
    struct state_store *s = with_journal(&fd);
    struct model now = { "" }, moments[8];
    struct store_moment taken[8];
    size_t n_moments = 0;
    unsigned seed = 12345;
    for (int i = 0; i < 2000; i++) {
        char item[16];
        (void)snprintf(item, sizeof(item), "%d", i % 100);
        int what = rand_r(&seed) % 10;
        if (what < 5 && strlen(now.text) < 3000) {
            put(s, "x", item);
            model_add(&now, item);
        } else if (what == 5) {
            struct store_txn *t = store_begin(s);
            struct store_change wipe = { .kind = CHANGE_CLEAR, .slice = STR("x") };
            assert_int_equal(store_txn_apply(t, &wipe, NULL), 0);
            assert_int_equal(store_txn_dispatch(t, STR("x"), json_cstr(arena, item), NULL), 0);
            bool commit = rand_r(&seed) % 2 == 0;
            assert_int_equal(commit ? store_commit(t, NULL) : store_abort(t, NULL), 0);
            if (commit) {
                now.text[0] = '\0';
                model_add(&now, item);
            }
        } else if (what < 8) {
            size_t at = n_moments < 8 ? n_moments++ : (size_t)rand_r(&seed) % 8;
            taken[at] = store_snapshot(s);
            moments[at] = now;
        } else if (n_moments > 0) {
            size_t at = (size_t)rand_r(&seed) % n_moments;
            assert_int_equal(store_restore(s, taken[at], true, NULL), 0);
            now = moments[at];
        }
        assert_string_equal(joined(s, NULL, "x"), now.text);
    }
    struct state_store *again = store_new(&plain);
    assert_int_equal(store_replay(again, all_of(fd), NULL), 0);
    assert_string_equal(joined(again, NULL, "x"), now.text);
    store_free(again);
    store_free(s);
    close(fd);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, arena_setup, arena_teardown)
    const struct CMUnitTest tests[] = {
        T(an_event_without_reducer_is_appended),
        T(reducers_shape_their_slice),
        T(an_event_without_its_key_changes_nothing),
        T(wrong_declarations_are_refused),
        T(a_call_is_seen_by_nobody_before_its_commit),
        T(an_abort_keeps_the_log_only),
        T(a_moment_comes_back),
        T(what_was_committed_is_in_the_journal),
        T(a_torn_commit_is_none),
        T(secrets_stay_out_of_the_journal),
        T(a_journal_that_cannot_be_written_changes_nothing),
        T(bad_journals_are_named_by_line),
        T(a_document_goes_round),
        T(a_document_of_another_task_is_refused),
        T(random_changes_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * libcinch as a program sees it: only include/cinch.h, linked with the shared library. A program as
 * agent is enough here; tools and guards are shown by examples/c.
 */
#include <cinch.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static int make_root(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/cinch-library-XXXXXX");
    char work[80];
    if (mkdtemp(root) == NULL) {
        return -1;
    }
    (void)snprintf(work, sizeof work, "%s/work", root); /* apart from the records */
    return mkdir(work, 0700);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct cinch_task *task_of(const char *command)
{
    char json[1024];
    struct cinch_task *t = cinch_task_new();
    (void)snprintf(json, sizeof json,
                   "{\"agent\": {\"command\": %s}, \"prompt\": \"go\", \"workspace\": \"%s/work\","
                   " \"sandbox\": \"off\", \"limits\": {\"timeout\": 60}}",
                   command, root);
    assert_int_equal(cinch_task_merge(t, json), 0);
    return t;
}

static struct cinch_options options(void)
{
    static char runs[128];
    (void)snprintf(runs, sizeof runs, "%s/runs", root);
    return (struct cinch_options) { .size = sizeof(struct cinch_options), .runs_dir = runs };
}

static void test_a_run(void **state)
{
    (void)state;
    struct cinch_result *r = NULL;
    struct cinch_options o = options();
    struct cinch_task *t = task_of("[\"echo\", \"hello\"]");
    assert_int_equal(cinch_run(t, &o, &r), 0);
    assert_string_equal(cinch_result_reason(r), "success");
    assert_int_equal(cinch_result_exit_status(r), 0);
    assert_non_null(strstr(cinch_result_json(r), "\"text\": \"hello"));
    assert_int_equal(access(cinch_result_dir(r), F_OK), 0);
    cinch_result_free(r);
    /* The same task once more: a run leaves nothing in it. */
    assert_int_equal(cinch_run(t, &o, &r), 0);
    cinch_result_free(r);
    cinch_task_free(t);
}

static void test_what_is_wrong(void **state)
{
    (void)state;
    struct cinch_result *r = NULL;
    struct cinch_options o = options();
    struct cinch_task *t = cinch_task_new();
    assert_string_equal(cinch_task_error(t), "");
    assert_int_equal(cinch_task_merge(t, "{\"agent\": "), -CINCH_EUSAGE);
    assert_int_equal(cinch_task_merge(t, "[]"), -CINCH_EUSAGE);
    assert_int_equal(cinch_task_merge(t, NULL), -CINCH_EUSAGE);
    assert_true(strlen(cinch_task_error(t)) > 0);
    assert_int_equal(cinch_task_merge(t, "{\"agnet\": {}}"), 0);
    assert_int_equal(cinch_run(t, &o, &r), -CINCH_ETASK);
    assert_non_null(strstr(cinch_task_error(t), "agnet"));
    assert_null(r);
    cinch_task_free(t);
}

/* Structs of programs that are older or newer than the library. */
static void test_no_result(void **state)
{
    (void)state;
    assert_null(cinch_result_json(NULL));
    assert_null(cinch_result_dir(NULL));
    assert_null(cinch_result_reason(NULL));
    assert_int_equal(cinch_result_exit_status(NULL), -1);
    cinch_result_free(NULL);
}

static void test_sizes(void **state)
{
    (void)state;
    struct {
        struct cinch_options known;
        const char *later;
    } newer = { .known = options() };
    struct cinch_result *r = NULL;
    struct cinch_task *t = task_of("[\"true\"]");
    newer.known.size = sizeof newer;
    assert_int_equal(cinch_run(t, &newer.known, &r), 0);
    cinch_result_free(r);
    newer.later = "something that must not be ignored";
    assert_int_equal(cinch_run(t, &newer.known, &r), -CINCH_EUSAGE);
    struct cinch_options older = options();
    older.size = offsetof(struct cinch_options, environment);
    older.event = (void (*)(void *, const char *))(uintptr_t)1; /* beyond what it says it has */
    assert_int_equal(cinch_run(t, &older, &r), 0);
    cinch_result_free(r);
    struct cinch_tool tool = { .size = 3 };
    assert_int_equal(cinch_task_add_tool(t, &tool), -CINCH_EUSAGE);
    tool.size = sizeof tool;
    assert_int_equal(cinch_task_add_tool(t, &tool), -CINCH_EUSAGE); /* no definition */
    cinch_task_free(t);
}

static void count_event(void *arg, const char *json)
{
    int *n = arg;
    assert_int_equal(json[0], '{');
    assert_null(strchr(json, '\n'));
    (*n)++;
}

static void test_events(void **state)
{
    (void)state;
    int n = 0;
    struct cinch_result *r = NULL;
    struct cinch_options o = options();
    o.event = count_event;
    o.arg = &n;
    struct cinch_task *t = task_of("[\"true\"]");
    assert_int_equal(cinch_run(t, &o, &r), 0);
    assert_true(n > 5);
    cinch_result_free(r);
    cinch_task_free(t);
}

static int stop_it(void *arg)
{
    int *beats = arg;
    return ++*beats > 2;
}

static void test_cancel(void **state)
{
    (void)state;
    int beats = 0;
    struct cinch_result *r = NULL;
    struct cinch_options o = options();
    o.beat = stop_it;
    o.arg = &beats;
    struct cinch_task *t = task_of("[\"sleep\", \"50\"]");
    assert_int_equal(cinch_run(t, &o, &r), 0);
    assert_string_equal(cinch_result_reason(r), "cancelled");
    cinch_result_free(r);
    cinch_task_free(t);
}

static void *in_a_thread(void *arg)
{
    struct cinch_result *r = NULL;
    struct cinch_options o = { .size = sizeof o, .runs_dir = arg };
    struct cinch_task *t = task_of("[\"echo\", \"x\"]");
    int rc = cinch_run(t, &o, &r);
    bool good = rc == 0 && strcmp(cinch_result_reason(r), "success") == 0;
    if (!good) {
        print_error("%s\n", rc == 0 ? cinch_result_json(r) : cinch_task_error(t));
    }
    cinch_result_free(r);
    cinch_task_free(t);
    return good ? arg : NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    char runs[128];
    (void)snprintf(runs, sizeof runs, "%s/runs", root);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, in_a_thread, runs), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *good;
        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_ptr_equal(good, runs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run),     cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_no_result), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_events),    cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

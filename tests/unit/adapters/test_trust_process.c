/* SPDX-License-Identifier: MIT
 *
 * Trust and processes: this program starts itself as a worker (argv[1] is "worker") for runs that
 * live in other processes, side by side, or die at any point.
 */
#include "trust_case.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "base/json.h"

extern char **environ;

static pid_t start_worker(const char *const args[], int *ret_pipe)
{
    char *argv[8] = { (char *)"test_trust_process", (char *)"worker" };
    posix_spawn_file_actions_t actions;
    int fds[2];
    pid_t pid = -1;
    for (size_t i = 0; args[i] != NULL; i++) {
        argv[i + 2] = (char *)args[i];
    }
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO), 0);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(fds[1]);
    *ret_pipe = fds[0];
    return pid;
}

/* A process that has registered "/w" and lives until it is killed. */
static pid_t start_holder(const char *run)
{
    int fd = -1;
    char byte = 0;
    const char *const args[] = { "hold", style_names[TRUST_CODEX], file, run, NULL };
    pid_t pid = start_worker(args, &fd);
    assert_int_equal(read(fd, &byte, 1), 1);
    (void)close(fd);
    return pid;
}

static void kill_and_reap(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_killed_run_is_swept(void **state)
{
    static const char before[] = "# mine\na = 1\n[projects.\"/own\"]\ntrust_level = \"trusted\"\n";
    write_text(file, before);
    enter(TRUST_CODEX, "/own", "r0", TRUST_OWN);
    pid_t one = start_holder("r1");
    pid_t two = start_holder("r2");
    enter(TRUST_CODEX, "/v", "r3", TRUST_ADDED);
    kill_and_reap(one);
    struct trust_swept swept = sweep(TRUST_CODEX, NULL);
    assert_int_equal(swept.runs, 1);
    assert_int_equal(swept.entries, 0);
    assert_int_equal(swept.kept, 2);
    assert_true(text_has(file, "[projects.\"/w\"]"));
    kill_and_reap(two);
    swept = sweep(TRUST_CODEX, NULL);
    assert_int_equal(swept.entries, 1);
    assert_int_equal(swept.kept, 1);
    assert_false(text_has(file, "[projects.\"/w\"]"));
    leave(TRUST_CODEX, "/v", "r3");
    assert_text(file, before);
    assert_clean();
}

static void test_zombie_is_dead(void **state)
{
    siginfo_t info;
    write_text(file, "a = 1\n");
    pid_t pid = start_holder("r1");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_text(file, "a = 1\n");
}

static void test_next_run_inherits_from_a_killed_one(void **state)
{
    write_text(file, "a = 1\n");
    kill_and_reap(start_holder("r1"));
    enter(TRUST_CODEX, "/w", "r2", TRUST_JOINED);
    leave(TRUST_CODEX, "/w", "r2");
    assert_text(file, "a = 1\n");
    assert_clean();
}

static bool nobody(void *self, const char *run_id, bool process_alive)
{
    assert_true(process_alive);
    assert_string_equal(run_id, "r1");
    return false;
}

static void test_port_overrules(void **state)
{
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    assert_int_equal(sweep(TRUST_CODEX, NULL).kept, 1);
    assert_int_equal(sweep(TRUST_CODEX, &(struct trust_port) { nobody, NULL }).entries, 1);
    assert_text(file, "a = 1\n");
}

/* Sets one field of the only run in the ledger. */
static void forge(const char *field, struct json *(*make)(struct arena *a))
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *doc = NULL;
    assert_int_equal(file_read(AT_FDCWD, with(".cinch.json"), BUF_TEXT, &text, NULL), 0);
    assert_int_equal(json_parse(a, buf_str(&text), NULL, &doc, NULL), 0);
    struct json *run = json_pointer(doc, STR("/entries/~1w/runs/0"));
    assert_non_null(run);
    assert_non_null(json_get(run, field));
    json_setc(a, run, field, make(a));
    buf_reset(&text);
    assert_int_equal(json_write(doc, JSON_PRETTY, &text, NULL), 0);
    write_text(with(".cinch.json"), text.ptr);
}

static struct json *other_start(struct arena *a)
{
    return json_integer(a, 1);
}

static struct json *other_word(struct arena *a)
{
    return json_cstr(a, "other");
}

/* A process id says little: it may be of another process by now, of another boot, of another
 * namespace. */
static void test_process_identity(void **state)
{
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    forge("space", other_word);
    forge("start", other_start); /* says nothing: in that namespace the id is somebody else's */
    assert_int_equal(sweep(TRUST_CODEX, NULL).kept, 1);
    forge("boot", other_word);
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    assert_int_equal(sweep(TRUST_CODEX, NULL).kept, 1);
    forge("start", other_start);
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    assert_text(file, "a = 1\n");
    assert_clean();
}

enum { WORKERS = 8, ROUNDS = 8 }; /* 4 operations in a round: 256 in all */

/* Eight processes, each with registrations and removals in the same directory and in its own. */
static void churn_in_parallel(enum trust_style style, const char *before)
{
    pid_t pids[WORKERS];
    int pipes[WORKERS];
    char count[16];
    use_style(style);
    (void)snprintf(count, sizeof count, "%d", ROUNDS);
    if (before != NULL) {
        write_text(file, before);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        const char *const args[] = { "churn", style_names[style], file, count, NULL };
        pids[i] = start_worker(args, &pipes[i]);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        (void)close(pipes[i]);
    }
    if (before != NULL) {
        assert_text(file, before);
    } else {
        assert_false(file_exists(AT_FDCWD, file));
    }
    assert_clean();
}

static void test_parallel_processes(void **state)
{
    churn_in_parallel(TRUST_CODEX,
                      "# mine\na = 1\n\n[projects.\"/x\"]\ntrust_level = 'trusted' # c");
    churn_in_parallel(TRUST_GEMINI, "{\n  \"/x\": \"DO_NOT_TRUST\"\n}\n");
    churn_in_parallel(TRUST_CLAUDE, NULL);
}

/* Workers die at any point; what they leave is always a good file and swept in the end. */
static void test_killed_anywhere(void **state)
{
    static const char before[] = "# mine\na = 1\n";
    write_text(file, before);
    for (long i = 0; i < 40; i++) {
        const char *const args[] = { "churn", style_names[TRUST_CODEX], file, "100000", NULL };
        int fd = -1;
        char byte = 0;
        pid_t pid = start_worker(args, &fd);
        assert_int_equal(read(fd, &byte, 1), 1);
        (void)close(fd);
        struct timespec t = { .tv_nsec = i * 137000 }; /* anywhere in its few operations a round */
        (void)nanosleep(&t, NULL);
        kill_and_reap(pid);
        if (i % 4 == 3) {
            (void)sweep(TRUST_CODEX, NULL);
            assert_text(file, before);
        }
    }
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED); /* overwrites what lies around half-written */
    leave(TRUST_CODEX, "/w", "r1");
    assert_text(file, before);
    assert_clean();
}

/* --- the worker --- */

static bool registered(const struct trust_entry *t, const char *run)
{
    enum trust_outcome outcome = TRUST_OWN;
    struct err e = { 0 };
    if (trust_register(t, run, &outcome, &e) < 0 || outcome == TRUST_OWN) {
        (void)fprintf(stderr, "register: %s\n", e.msg);
        return false;
    }
    return text_has(t->file, t->dir);
}

static bool removed(const struct trust_entry *t, const char *run)
{
    struct err e = { 0 };
    if (trust_remove(t, run, &e) < 0) {
        (void)fprintf(stderr, "remove: %s\n", e.msg);
        return false;
    }
    return true;
}

/* Two runs, one in the directory of all and one in its own, in any order. */
static bool churn_once(enum trust_style style, const char *path, int i)
{
    char one[64];
    char two[64];
    char own[64];
    (void)snprintf(one, sizeof one, "run-%d-%d-one", (int)getpid(), i);
    (void)snprintf(two, sizeof two, "run-%d-%d-two", (int)getpid(), i);
    (void)snprintf(own, sizeof own, "/own-%d", (int)getpid());
    struct trust_entry a = { style, path, i % 2 == 0 ? "/w" : own };
    struct trust_entry b = { style, path, i % 2 == 0 ? own : "/w" };
    if (!registered(&a, one) || !registered(&b, two)) {
        return false;
    }
    return i % 4 < 2 ? removed(&a, one) && removed(&b, two) : removed(&b, two) && removed(&a, one);
}

static bool signal_ready(void)
{
    return write(STDOUT_FILENO, "r", 1) == 1;
}

static int worker(int argc, char **argv)
{
    enum trust_style style;
    int64_t count = 0;
    if (argc != 6 || !trust_style_of(argv[3], &style)) {
        return 2;
    }
    if (strcmp(argv[2], "hold") == 0) {
        struct trust_entry t = { style, argv[4], "/w" };
        if (trust_register(&t, argv[5], NULL, NULL) < 0 || !signal_ready()) {
            return 1;
        }
        for (;;) {
            (void)pause();
        }
    }
    if (!str_to_i64(str_of(argv[5]), &count)) {
        return 2;
    }
    (void)signal_ready();
    for (int i = 0; i < count; i++) {
        if (!churn_once(style, argv[4], i)) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "worker") == 0) {
        return worker(argc, argv);
    }
    const struct CMUnitTest tests[] = {
        TRUST_TEST(test_killed_run_is_swept),
        TRUST_TEST(test_zombie_is_dead),
        TRUST_TEST(test_next_run_inherits_from_a_killed_one),
        TRUST_TEST(test_port_overrules),
        TRUST_TEST(test_process_identity),
        TRUST_TEST(test_parallel_processes),
        TRUST_TEST(test_killed_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

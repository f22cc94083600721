/* SPDX-License-Identifier: MIT
 *
 * Recovery after death at every place: a program is killed at each system call that changes the
 * record, also in the middle of a write, and the record is closed and held against the schemas. The
 * same for recovery itself, and for directories full of garbage.
 */
#include "record/recover.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "record/record.h"
#include "scratch.h"

extern char **environ;

/* Exit status, or 128 + signal. */
static int spawn_and_wait(const char *const *argv)
{
    pid_t pid;
    int status;
    assert_int_equal(
        posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ), 0);
    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int victim(struct scratch *s, const char *what, const char *dir, int at, bool torn)
{
    const char *number = arena_printf(s->arena, "%d", at);
    const char *const argv[] = { VICTIM, what, dir, number, torn ? "torn" : "whole", NULL };
    return spawn_and_wait(argv);
}

/* One interpreter for all directories: starting it takes longer than checking one. */
static void assert_all_valid(struct scratch *s, const char *const *dirs, size_t count)
{
    const char **argv = arena_array(s->arena, count + 3, sizeof *argv);
    argv[0] = "/usr/bin/python3";
    argv[1] = VALIDATE;
    for (size_t i = 0; i < count; i++) {
        argv[i + 2] = dirs[i];
    }
    assert_int_equal(spawn_and_wait(argv), 0);
}

static enum recover_result recover(const char *dir, struct recover_report *report)
{
    struct err e = { 0 };
    if (recover_run(dir, report, &e) < 0) {
        fail_msg("recover %s: %s", dir, e.msg);
    }
    return report->result;
}

static struct json *manifest_of(struct scratch *s, const char *dir)
{
    return scratch_json(s, scratch_read(s, arena_printf(s->arena, "%s/manifest.json", dir)));
}

enum { DIRS_MAX = 1024 };

/* Kills a run at each place, closes each record, and returns how many there are to look at. */
static size_t kill_everywhere(struct scratch *s, bool torn, const char **dirs)
{
    size_t count = 0;
    int closed = 0;
    for (int at = 1;; at++) {
        const char *name = arena_printf(s->arena, "%s-%d", torn ? "torn" : "whole", at);
        const char *dir = scratch_path(s, name);
        int status = victim(s, "run", dir, at, torn);
        if (status == 0) {
            assert_true(at > 40); /* or it does not reach the places that this is about */
            break;
        }
        assert_int_equal(status, 128 + SIGKILL);
        struct recover_report report;
        enum recover_result result = recover(dir, &report);
        if (result == RECOVER_NO_RECORD) {
            assert_true(at < 5); /* before the first file there is nothing to close */
            continue;
        }
        closed += result == RECOVER_CLOSED;
        /* Only after manifest.json is written has the run decided: then its word stands. */
        if (report.reason == REASON_SUCCESS) {
            assert_false(json_bool(json_get(manifest_of(s, dir), "recovered"), true));
        } else {
            assert_int_equal(report.reason, REASON_INTERRUPTED);
            assert_true(json_bool(json_get(manifest_of(s, dir), "resumable"), false));
        }
        assert_int_equal(recover(dir, &report), RECOVER_FINISHED);
        assert_true(count < DIRS_MAX);
        dirs[count++] = dir;
    }
    assert_true(closed > 40);
    return count;
}

static void death_at_any_place_leaves_a_valid_record(void **state)
{
    struct scratch *s = *state;
    const char **dirs = arena_array(s->arena, DIRS_MAX, sizeof *dirs);
    size_t count = kill_everywhere(s, false, dirs);
    count += kill_everywhere(s, true, dirs + count);
    assert_all_valid(s, dirs, count);
}

static void recovery_itself_may_die_anywhere(void **state)
{
    struct scratch *s = *state;
    const char *dirs[DIRS_MAX];
    size_t count = 0;
    for (int at = 1;; at++) {
        const char *dir = scratch_path(s, arena_printf(s->arena, "r-%d", at));
        assert_int_equal(victim(s, "run", dir, 35, true), 128 + SIGKILL);
        int status = victim(s, "recover", dir, at, at % 2 == 0);
        struct recover_report report;
        enum recover_result result = recover(dir, &report);
        assert_int_equal(result, status == 0 ? RECOVER_FINISHED : RECOVER_CLOSED);
        assert_true(count < DIRS_MAX);
        dirs[count++] = dir;
        if (status == 0) {
            assert_true(at > 8);
            break;
        }
    }
    assert_all_valid(s, dirs, count);
}

static void keeps_what_is_known(void **state)
{
    struct scratch *s = *state;
    const char *dir = scratch_path(s, "out");
    assert_int_equal(victim(s, "run", dir, 0, false), 0);
    /* As if it had died right before the verdict. */
    struct rundir d;
    assert_int_equal(rundir_open(&d, dir, NULL), 0);
    struct state st;
    assert_int_equal(state_read(&st, &d, s->arena, NULL), 0);
    st.reason = REASON_NONE;
    (void)snprintf(st.phase, sizeof st.phase, "collect");
    assert_int_equal(state_write(&st, &d, NULL), 0);
    assert_int_equal(unlinkat(d.dir_fd, "manifest.json", 0), 0);
    assert_int_equal(unlinkat(d.dir_fd, "metrics.json", 0), 0);
    rundir_done(&d);
    struct recover_report report;
    assert_int_equal(recover(dir, &report), RECOVER_CLOSED);
    assert_string_equal(report.phase, "collect");
    assert_int_equal(report.pid, st.owner.pid);
    struct json *metrics = scratch_json(s, scratch_read(s, "out/metrics.json"));
    assert_int_equal(json_int(json_pointer(metrics, STR("/ext/bytes/stdout")), 0), 6);
    assert_int_equal(json_int(json_pointer(metrics, STR("/ext/bytes/stderr")), 0), 10);
    assert_int_equal(json_int(json_pointer(metrics, STR("/ext/engine_exit/code")), -1), 0);
    assert_string_equal(word(metrics, "/ext/session_id"), "session-1");
    assert_non_null(json_pointer(metrics, STR("/ext/phase_ms/execute")));
    assert_true(json_bool(json_pointer(metrics, STR("/ext/recovered")), false));
    struct json *result = scratch_json(s, scratch_read(s, "out/result.json"));
    assert_string_equal(word(result, "/text"), "all done");
    assert_string_equal(word(result, "/reason"), "interrupted");
    assert_string_equal(word(manifest_of(s, dir), "/metadata/engine/name"), "agent");
    assert_non_null(strstr(word(result, "/error"), "phase 'collect'"));
}

static void a_finished_record_is_not_touched(void **state)
{
    struct scratch *s = *state;
    const char *dir = scratch_path(s, "out");
    assert_int_equal(victim(s, "run", dir, 0, false), 0);
    static const char *const names[] = { "state.json",  "manifest.json", "metrics.json",
                                         "result.json", "events.jsonl",  "transcript.jsonl" };
    struct stat before[ARRAY_LEN(names)];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *path = arena_printf(s->arena, "%s/%s", dir, names[i]);
        assert_int_equal(stat(path, &before[i]), 0);
    }
    struct recover_report report;
    assert_int_equal(recover(dir, &report), RECOVER_FINISHED);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct stat after;
        assert_int_equal(stat(arena_printf(s->arena, "%s/%s", dir, names[i]), &after), 0);
        assert_int_equal(after.st_ino, before[i].st_ino);
        assert_int_equal(after.st_size, before[i].st_size);
        assert_int_equal(after.st_mtim.tv_nsec, before[i].st_mtim.tv_nsec);
    }
    assert_all_valid(s, &dir, 1);
}

static void a_living_owner_is_refused(void **state)
{
    struct scratch *s = *state;
    struct record rec;
    const char *dir = scratch_path(s, "out");
    assert_int_equal(record_open(&rec, &(struct record_opts) { .path = dir, .adapter = "a" }, NULL),
                     0);
    struct recover_report report;
    assert_int_equal(recover(dir, &report), RECOVER_ALIVE);
    assert_int_equal(report.pid, getpid());
    /* The lock is gone but the process of state.json lives: our parent stands for it. */
    struct state st = rec.state;
    record_done(&rec);
    struct rundir d;
    assert_int_equal(rundir_open(&d, dir, NULL), 0);
    st.owner.pid = getppid();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const char *proc = arena_printf(s->arena, "/proc/%d/stat", (int)getppid());
    assert_int_equal(file_read(AT_FDCWD, proc, 4096, &text, NULL), 0);
    const char *field = strrchr(text.ptr, ')');
    for (int i = 0; i < 20; i++) {
        field = strchr(field + 1, ' ');
    }
    st.owner.start = strtoull(field, NULL, 10);
    st.adapter = "a";
    assert_int_equal(state_write(&st, &d, NULL), 0);
    rundir_done(&d);
    assert_int_equal(recover(dir, &report), RECOVER_ALIVE);
}

/* In a container whose first process reaps nobody, a dead owner stays a zombie for ever. */
static void a_zombie_is_not_alive(void **state)
{
    struct scratch *s = *state;
    const char *dir = scratch_path(s, "out");
    const char *const argv[] = { VICTIM, "run", dir, "30", "whole", NULL };
    pid_t pid;
    siginfo_t info;
    assert_int_equal(
        posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    struct recover_report report;
    assert_int_equal(recover(dir, &report), RECOVER_CLOSED);
    assert_int_equal(report.pid, pid);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void other_directories_are_left_alone(void **state)
{
    struct scratch *s = *state;
    struct recover_report report;
    assert_int_equal(recover(scratch_path(s, "nothing"), &report), RECOVER_NO_RECORD);
    assert_int_equal(mkdir(scratch_path(s, "empty"), 0755), 0);
    assert_int_equal(recover(scratch_path(s, "empty"), &report), RECOVER_NO_RECORD);
    assert_int_equal(mkdir(scratch_path(s, "web"), 0755), 0);
    scratch_write(s, "web/manifest.json", STR("{\"manifest_version\":3}"));
    scratch_write(s, "web/state.json", STR("{\"tabs\":[]}"));
    assert_int_equal(recover(scratch_path(s, "web"), &report), RECOVER_NO_RECORD);
    assert_false(file_exists(AT_FDCWD, scratch_path(s, "web/metrics.json")));
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void damage(struct scratch *s, const char *name, uint32_t *seed)
{
    const char *path = scratch_path(s, name);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    switch (next_random(seed) % 5) {
    case 0:
        assert_int_equal(unlink(path), 0);
        return;
    case 1:
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("/etc/passwd", path), 0);
        return;
    case 2:
        assert_int_equal(truncate(path, next_random(seed) % 3000), 0);
        return;
    default:
        assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &text, NULL), 0);
        for (uint32_t i = next_random(seed) % 40; i > 0 && text.len > 0; i--) {
            text.ptr[next_random(seed) % text.len] = (char)next_random(seed);
        }
        scratch_write(s, name, buf_str(&text));
    }
}

static void garbage_becomes_a_valid_record(void **state)
{
    struct scratch *s = *state;
    static const char *const names[] = { "state.json", "events.jsonl", "transcript.jsonl",
                                         "stdout.log", "manifest.json" };
    const char *dirs[40];
    for (uint32_t i = 0; i < ARRAY_LEN(dirs); i++) {
        uint32_t seed = i + 1;
        const char *name = arena_printf(s->arena, "g-%u", i);
        dirs[i] = scratch_path(s, name);
        assert_int_equal(victim(s, "run", dirs[i], 38, false), 128 + SIGKILL);
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            const char *file = arena_printf(s->arena, "%s/%s", name, names[k]);
            if (next_random(&seed) % 3 != 0 && file_exists(AT_FDCWD, scratch_path(s, file))) {
                damage(s, file, &seed);
            }
        }
        struct recover_report report;
        assert_int_equal(recover(dirs[i], &report), RECOVER_CLOSED);
        assert_int_equal(recover(dirs[i], &report), RECOVER_FINISHED);
    }
    assert_all_valid(s, dirs, ARRAY_LEN(dirs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(death_at_any_place_leaves_a_valid_record),
        SCRATCH_TEST(recovery_itself_may_die_anywhere),
        SCRATCH_TEST(keeps_what_is_known),
        SCRATCH_TEST(a_finished_record_is_not_touched),
        SCRATCH_TEST(a_living_owner_is_refused),
        SCRATCH_TEST(a_zombie_is_not_alive),
        SCRATCH_TEST(other_directories_are_left_alone),
        SCRATCH_TEST(garbage_becomes_a_valid_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * A program that dies. It writes the record of a small run, or recovers one, and kills itself with
 * SIGKILL at the n-th system call that changes a file: before it, or (torn) after half of it.
 *
 *   record_victim run|recover DIR N whole|torn        N = 0: lives to the end
 *
 * The calls are caught by the linker (--wrap), so that every place in record and base is reached
 * without either knowing about it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/json.h"
#include "record/record.h"
#include "record/recover.h"
#include "record/redact.h"

static long countdown;
static bool torn;

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __real_writev(int fd, const struct iovec *pieces, int count);
int __real_renameat(int from, const char *name, int to, const char *new_name);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __real_unlinkat(int dir, const char *name, int flags);
int __real_ftruncate64(int fd, off_t len);

static bool is_time(void)
{
    return --countdown == 0;
}

static void die(void)
{
    (void)kill(getpid(), SIGKILL);
    (void)pause();
}

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
    if (is_time()) {
        if (torn) {
            (void)!__real_write(fd, data, len / 2);
        }
        die();
    }
    return __real_write(fd, data, len);
}

ssize_t __wrap_writev(int fd, const struct iovec *pieces, int count)
{
    if (is_time()) {
        if (torn) {
            (void)!__real_write(fd, pieces[0].iov_base, pieces[0].iov_len / 2);
        }
        die();
    }
    return __real_writev(fd, pieces, count);
}

int __wrap_renameat(int from, const char *name, int to, const char *new_name)
{
    if (is_time()) {
        die();
    }
    return __real_renameat(from, name, to, new_name);
}

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
    if (is_time()) {
        die();
    }
    return __real_mkdirat(dir, name, mode);
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
    if (is_time()) {
        die();
    }
    return __real_unlinkat(dir, name, flags);
}

int __wrap_ftruncate64(int fd, off_t len)
{
    if (is_time()) {
        die();
    }
    return __real_ftruncate64(fd, len);
}

static void work(struct record *rec, struct arena *a)
{
    struct event_prompt p = { .ns = "demo", .key = "task", .adapter = "command" };
    char id[ID_LEN];
    const char *const argv[] = { "/bin/agent", "--flag", NULL };
    events_prompt_rendered(&rec->events, &p, STR("do it"), id);
    events_rendered_tools(&rec->events, &p, id, NULL);
    transcript_start(&rec->transcript, "demo:task", "command");
    struct json *detail = json_object(a);
    json_setc(a, detail, "text", json_cstr(a, "do it"));
    transcript_add(&rec->transcript, &(struct transcript_entry) { .type = ENTRY_USER_MESSAGE,
                                                                  .session_id = "session-1",
                                                                  .detail = detail });
    record_phase(rec, "execute");
    events_spawned(&rec->events, 12345, argv, "/");
    logfile_write(&rec->out, STR("hello\n"));
    logfile_write(&rec->err, STR("a warning\n"));
    record_beat(rec);
    transcript_add(&rec->transcript, &(struct transcript_entry) { .type = ENTRY_ASSISTANT_MESSAGE,
                                                                  .detail = detail });
    events_exited(&rec->events, 12345, (struct engine_exit) { ENGINE_EXITED, 0 }, NSEC_PER_SEC);
}

static int run(const char *dir)
{
    struct record rec;
    struct err e;
    struct arena *a = arena_new();
    struct redactor *r = redactor_new();
    if (redactor_add(r, STR("KEY"), STR("hunter2-secret"), &e) < 0) {
        return 1;
    }
    redactor_compile(r);
    struct record_opts opts = { .path = dir, .adapter = "command", .redactor = r };
    if (record_open(&rec, &opts, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    struct json *task = json_object(a);
    json_setc(a, task, "version", json_integer(a, 1));
    struct summary sum = { .adapter = "command", .engine.name = "agent", .repair_level = -1 };
    record_phase(&rec, "admit");
    int failed = record_write_json(&rec, "task.json", task, &e) < 0 ||
                 record_write_text(&rec, "logs/prompt.txt", STR("do it"), &e) < 0 ||
                 record_announce(&rec, &sum, &e) < 0;
    work(&rec, a);
    record_phase(&rec, "finish");
    sum.reason = REASON_SUCCESS;
    sum.engine_exit = (struct engine_exit) { ENGINE_EXITED, 0 };
    sum.text = STR("all done");
    failed |= record_finish(&rec, &sum, &e) < 0;
    record_done(&rec);
    redactor_free(r);
    arena_free(a);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void)fprintf(stderr, "usage: record_victim run|recover DIR N whole|torn\n");
        return 64;
    }
    countdown = strtol(argv[3], NULL, 10);
    torn = strcmp(argv[4], "torn") == 0;
    if (strcmp(argv[1], "run") == 0) {
        return run(argv[2]);
    }
    struct recover_report report;
    struct err e;
    return recover_run(argv[2], &report, &e) < 0 ? 1 : 0;
}

/* SPDX-License-Identifier: MIT
 *
 * One supervised program and all that it reported, for the tests of proc. Include after cmocka.h.
 *
 *   struct fixture f;
 *   fixture_run(&f, (struct proc_opts){ 0 }, "exit_with", "7", NULL);      until on_done
 *   assert_int_equal(f.result.value, 7);
 *   fixture_done(&f);
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/macro.h"
#include "io/loop.h"
#include "proc/locate.h"
#include "proc/orphans.h"
#include "proc/proc.h"

#define FIXTURE_ARGS 8

struct fixture {
    struct loop *loop;
    struct proc *proc;
    struct orphans *orphans; /* freed and NULL: as in a library */
    struct buf out[PROC_STREAM_MAX];
    size_t bytes[PROC_STREAM_MAX]; /* counted also when not kept */
    bool keep;
    char order[64]; /* 's'tarted, 'f'ailed, 'o'utput (runs of it), e'x'it, 'd'one */
    pid_t pid;
    struct err why;
    struct proc_result result;
    nsec exit_at; /* when on_exit came */
    nsec done_at;
    /* Called after on_output, to act on "ready" and the like. */
    void (*react)(struct fixture *f);
    char program[4096];
    const char *args[FIXTURE_ARGS + 2];
};

static inline void fixture_note(struct fixture *f, char c)
{
    size_t n = strlen(f->order);
    if (n + 1 < sizeof f->order && !(c == 'o' && n > 0 && f->order[n - 1] == 'o')) {
        f->order[n] = c;
    }
}

static inline void fixture_on_started(void *arg, pid_t pid)
{
    struct fixture *f = arg;
    f->pid = pid;
    fixture_note(f, 's');
}

static inline void fixture_on_failed(void *arg, const struct err *why)
{
    struct fixture *f = arg;
    f->why = *why;
    fixture_note(f, 'f');
}

static inline void fixture_on_output(void *arg, enum proc_stream s, struct str bytes)
{
    struct fixture *f = arg;
    f->bytes[s] += bytes.len;
    if (f->keep) {
        buf_add(&f->out[s], bytes);
    }
    fixture_note(f, 'o');
    if (f->react != NULL) {
        f->react(f);
    }
}

static inline void fixture_on_exit(void *arg, const struct proc_result *r)
{
    struct fixture *f = arg;
    f->result = *r;
    f->exit_at = clock_now();
    fixture_note(f, 'x');
}

static inline void fixture_on_done(void *arg, const struct proc_result *r)
{
    struct fixture *f = arg;
    f->result = *r;
    f->done_at = clock_now();
    fixture_note(f, 'd');
    f->proc = proc_free(f->proc);
    loop_stop(f->loop);
}

static inline void fixture_init(struct fixture *f)
{
    struct err e;
    memset(f, 0, sizeof *f);
    f->keep = true;
    buf_init(&f->out[0], BUF_TEXT);
    buf_init(&f->out[1], BUF_TEXT);
    assert_int_equal(loop_new(&f->loop, &e), 0);
    assert_int_equal(orphans_new(&f->orphans, &e), 0);
    /* Its first use opens the helper for good. */
    char init[PATH_MAX];
    (void)!locate_init_kept(init, NULL);
}

/* Path of a test program. */
static inline const char *fixture_program(struct fixture *f, const char *name)
{
    const char *dir = getenv("CINCH_TEST_PROGRAMS");
    assert_non_null(dir);
    (void)snprintf(f->program, sizeof f->program, "%s/%s", dir, name);
    return f->program;
}

/* Starts tests/programs/<name>, or any path with a slash; the result of proc_start(). */
static inline int fixture_start(struct fixture *f, struct proc_opts o, const char *name,
                                const char *arg1, const char *arg2)
{
    struct proc_port port = {
        .on_started = fixture_on_started,
        .on_spawn_failed = fixture_on_failed,
        .on_output = fixture_on_output,
        .on_exit = fixture_on_exit,
        .on_done = fixture_on_done,
        .on_cpu = o.port.on_cpu,
        .on_stdin_drained = o.port.on_stdin_drained,
        .arg = f,
    };
    f->args[0] = strchr(name, '/') != NULL ? name : fixture_program(f, name);
    f->args[1] = arg1;
    f->args[2] = arg1 == NULL ? NULL : arg2;
    if (o.argv == NULL) {
        o.argv = f->args;
    }
    o.port = port;
    o.orphans = f->orphans;
    return proc_start(f->loop, &o, &f->proc, &f->why);
}

/* Everything from the first byte to on_done. f is initialised here unless it has a loop already. */
static inline void fixture_go(struct fixture *f, struct proc_opts o, const char *name,
                              const char *arg1, const char *arg2)
{
    int rc = fixture_start(f, o, name, arg1, arg2);
    if (rc != 0) {
        (void)fprintf(stderr, "proc_start: %s\n", f->why.msg);
    }
    assert_int_equal(rc, 0);
    loop_run(f->loop);
    assert_null(f->proc);
}

static inline void fixture_done(struct fixture *f)
{
    buf_done(&f->out[0]);
    buf_done(&f->out[1]);
    f->loop = loop_free(f->loop);
    f->orphans = orphans_free(f->orphans);
}

static inline const char *fixture_out(const struct fixture *f, enum proc_stream s)
{
    return f->out[s].ptr == NULL ? "" : f->out[s].ptr;
}

/* Processes that carry a text in their environment, whoever their parent is. */
static inline size_t fixture_marked(const char *mark)
{
    size_t found = 0;
    DIR *d = opendir("/proc");
    const struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        char path[64];
        static char text[65536];
        (void)snprintf(path, sizeof path, "/proc/%.16s/environ", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
        cleanup_fd(&fd);
        if (n > 0 && memmem(text, (size_t)n, mark, strlen(mark)) != NULL) {
            found++;
        }
    }
    assert_non_null(d);
    (void)closedir(d);
    return found;
}

static inline size_t fixture_count_fds(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

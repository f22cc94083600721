/* SPDX-License-Identifier: MIT
 *
 * supervise PROGRAM ARGS…: runs the program under struct proc, copies its output, exits with its
 * code. What a test kills with SIGKILL in order to see that nothing survives.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "io/loop.h"
#include "proc/proc.h"

extern char **environ;

struct job {
    struct loop *loop;
    struct proc *proc;
    int code;
};

static void on_output(void *arg, enum proc_stream s, struct str bytes)
{
    (void)arg;
    (void)!file_write_all(s == PROC_STDOUT ? STDOUT_FILENO : STDERR_FILENO, bytes, NULL);
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct job *j = arg;
    j->code = r->exit_known ? r->value : 99;
    j->proc = proc_free(j->proc);
    loop_stop(j->loop);
}

int main(int argc, char **argv)
{
    struct job j = { .code = 98 };
    struct err e;
    if (argc < 2 || loop_new(&j.loop, &e) < 0) {
        return 97;
    }
    struct proc_opts o = {
        .argv = (const char *const *)(argv + 1),
        .envp = (const char *const *)environ,
        .port = { .on_output = on_output, .on_done = on_done, .arg = &j },
    };
    if (proc_start(j.loop, &o, &j.proc, &e) == 0) {
        loop_run(j.loop);
    } else {
        (void)!file_write_all(STDERR_FILENO, str_of(e.msg), NULL);
    }
    (void)loop_free(j.loop);
    return j.code;
}

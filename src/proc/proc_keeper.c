/* SPDX-License-Identifier: MIT
 *
 * The keeper of a proc: a cinch-init of our own, or one that a place (a sandbox) has let in. The
 * rest of the layer need not know which.
 */
#include "proc/proc_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/child.h"

static void on_gone(void *arg, int status, const struct err *why)
{
    struct proc *p = arg;
    p->gone = true;
    if (why != NULL) {
        p->result.error = *why; /* the place knows more than the keeper that was refused */
    }
    proc_on_init_exit(p, status);
}

static int start_child(struct proc *p, const char *init, int control, struct err *e)
{
    char name[] = "cinch-init";
    char *argv[] = { name, NULL };
    const int fds[] = { -1, -1, -1, control };
    struct child_opts co = { .path = init,
                             .argv = argv,
                             .fds = fds,
                             .n_fds = ARRAY_LEN(fds),
                             .on_exit = proc_on_init_exit,
                             .arg = p };
    _Static_assert(ARRAY_LEN(fds) == CONTROL_FD + 1, "the control socket is the last one");
    return child_start(p->loop, &co, &p->init, e);
}

int proc_keeper_start(struct proc *p, const char *init, int control, struct err *e)
{
    if (!p->placed) {
        return start_child(p, init, control, e);
    }
    return p->place.enter(&p->place, control, on_gone, p, &p->ticket, e);
}

void proc_keeper_kill(struct proc *p)
{
    if (p->placed) {
        p->place.kill(&p->place, p->ticket);
    } else {
        child_kill(p->init, SIGKILL);
    }
}

void proc_keeper_release(struct proc *p)
{
    if (p->placed && p->ticket != 0) {
        p->place.leave(&p->place, p->ticket);
        p->ticket = 0;
    }
    p->init = child_free(p->init);
}

bool proc_keeper_gone(const struct proc *p)
{
    return p->placed ? p->gone : child_exited(p->init);
}

pid_t proc_keeper_pid(const struct proc *p)
{
    if (p->placed) {
        return p->ticket == 0 ? 0 : p->place.pid(&p->place, p->ticket);
    }
    return p->init == NULL ? 0 : child_pid(p->init);
}

/* The keeper knows the program by its number inside; who looks from outside needs the other. The
 * program is the keeper's first child, and unless it has ended already it is in the list. */
pid_t proc_keeper_program(const struct proc *p, pid_t inside)
{
    char text[32] = "";
    char path[64];
    pid_t keeper = p->placed ? proc_keeper_pid(p) : 0;
    if (keeper == 0) {
        return inside;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)keeper, (int)keeper);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    return pid > 0 ? (pid_t)pid : keeper;
}

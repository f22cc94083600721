/* SPDX-License-Identifier: MIT
 *
 * From plan to process. vfork() and not fork(): it is cheaper, and since the child borrows our
 * memory until execve(), it can leave the exact reason of a failure in a struct of ours. All that
 * happens between the two is system calls on the child's own copies (descriptors, directory,
 * limits, dispositions).
 */
#include "init/program.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/exec_error.h"
#include "init/lockdown.h"
#include "init/plan.h"

struct launch {
    struct plan *plan;
    struct plan *entry;
    const int *fds;
    pid_t parent;
    char **argv;
    char **envp;
    struct err *e;
    int rc; /* set by the child when something failed */
};

static int do_fd(const struct launch *l, const struct plan_record *r)
{
    if (dup2(l->fds[r->fd.slot], (int)r->fd.target) < 0) {
        return ERR_SYS(l->e, "set up descriptor %u of the program", r->fd.target);
    }
    return 0;
}

static int do_record(const struct launch *l, const struct plan_record *r)
{
    if (r->op == PLAN_OP_FD) {
        return do_fd(l, r);
    }
    if (r->op == PLAN_OP_CWD && chdir(r->text) != 0) {
        return ERR_SYS_AS(l->e, ERR_INPUT, "enter the working directory '%s'", r->text);
    }
    if (r->op == PLAN_OP_UMASK) {
        (void)umask(r->mask);
    }
    return r->op == PLAN_OP_RLIMIT ? lockdown_rlimit(r, l->e) : 0;
}

static void default_signals(void)
{
    /* Not by sigaction(): it leaves out 32 and 33, which posix_spawn() has set to "ignore" in us.
     * All zero is SIG_DFL without flags, whatever the kernel's struct looks like. */
    static const unsigned long dfl[8];
    for (int signo = 1; signo < NSIG; signo++) {
        /* Refused for SIGKILL, SIGSTOP. */
        (void)syscall(SYS_rt_sigaction, signo, dfl, NULL, NSIG / 8);
    }
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child. Returns only when something failed. */
static int become(struct launch *l)
{
    if (setsid() < 0) {
        return ERR_SYS(l->e, "start a session");
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return ERR_SYS(l->e, "tie the program to cinch-init");
    }
    if (getppid() != l->parent) {
        /* Before prctl(): no signal would come. */
        return ERR(l->e, ERR_CANCELLED, "cinch-init died");
    }
    struct plan_record r;
    plan_rewind(l->plan);
    while (plan_next(l->plan, &r)) {
        int done = do_record(l, &r);
        if (done < 0) {
            return done;
        }
    }
    default_signals();
    int rc = l->entry == NULL ? 0 : lockdown_limits(l->entry, l->e);
    if (rc == 0 && close_range(STDERR_FILENO + 1, ~0u, 0) != 0) {
        rc = ERR_SYS(l->e, "close descriptors");
    }
    if (rc == 0 && l->entry != NULL) {
        rc = lockdown_filter(l->entry, l->e);
    }
    if (rc < 0) {
        return rc;
    }
    (void)execve(l->plan->exe, l->argv, l->envp);
    return exec_error(l->plan->exe, errno, l->e);
}

static void fill_vectors(struct launch *l)
{
    size_t args = 0;
    size_t envs = 0;
    struct plan_record r;
    plan_rewind(l->plan);
    while (plan_next(l->plan, &r)) {
        /* execve() takes char *const[] for historical reasons and does not write. */
        char *text = (char *)(uintptr_t)r.text;
        if (r.op == PLAN_OP_ARG) {
            l->argv[args++] = text;
        } else if (r.op == PLAN_OP_ENV) {
            l->envp[envs++] = text;
        }
    }
    l->argv[args] = NULL;
    l->envp[envs] = NULL;
}

/* Its own function, so that the child never returns through a frame that the parent still needs. */
static __attribute__((noinline)) pid_t launch(struct launch *l)
{
    pid_t pid = vfork();
    if (pid == 0) {
        l->rc = become(l);
        _exit(127);
    }
    return pid;
}

int program_start(const struct program_opts *o, pid_t *ret_pid, struct err *e)
{
    struct plan *plan = o->plan;
    if (plan->n_fds > o->n_fds) {
        return ERR(e, ERR_PROTO, "plan refers to descriptor %u, only %zu came with it",
                   plan->n_fds - 1, o->n_fds);
    }
    struct err local;
    struct launch l = { .plan = plan,
                        .entry = o->entry,
                        .fds = o->fds,
                        .parent = getpid(),
                        .e = e == NULL ? &local : e };
    char **vectors = malloc((plan->n_args + plan->n_envs + 2) * sizeof *vectors);
    if (vectors == NULL) {
        return ERR_SYS(e, "memory for %u arguments and %u variables", plan->n_args, plan->n_envs);
    }
    l.argv = vectors;
    l.envp = vectors + plan->n_args + 1;
    fill_vectors(&l);
    pid_t pid = launch(&l);
    int rc = pid < 0 ? ERR_SYS(e, "create a process") : l.rc;
    free(vectors);
    if (pid > 0 && rc < 0) {
        (void)waitpid(pid, NULL, 0);
    }
    if (rc == 0) {
        *ret_pid = pid;
    }
    return rc;
}

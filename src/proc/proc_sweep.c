/* SPDX-License-Identifier: MIT
 *
 * When cinch-init itself was killed: its program dies by the parent-death signal, and all that the
 * program had started becomes our children if we are a subreaper (proc/orphans.h). They are found,
 * killed and reaped here, in rounds, without waiting.
 */
#include "proc/proc_priv.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "init/process_tree.h"
#include "io/child.h"
#include "proc/orphans.h"

/* While other children of ours live, waitpid() cannot tell that no orphan is left, and the kernel's
 * list of children is not exact while it changes. So it has to be empty several times in a row. */
#define QUIET_ROUNDS 5

/* Not an orphan of a proc: helpers of other procs are known to the loop; anything else that this
 * process started shares its session, which no descendant of a proc does; and what was here before
 * has nothing to do with us. */
static bool is_own(void *arg, pid_t child)
{
    const struct proc *p = arg;
    return child_known(p->loop, child) || getsid(child) == getsid(0) ||
           orphans_predates(p->orphans, child);
}

static void on_dead(void *arg, pid_t pid, int status)
{
    struct proc *p = arg;
    if (pid == p->result.pid && !p->result.exit_known) {
        p->result.exit_known = true;
        p->result.signaled = WIFSIGNALED(status);
        p->result.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    }
}

bool proc_sweep_round(struct proc *p)
{
    if (p->placed) {
        return p->gone; /* the kernel takes the others along */
    }
    if (p->orphans == NULL) {
        p->result.abandoned = true; /* a program may have killed it before it reported the start */
        return proc_keeper_gone(p);
    }
    struct tree_filter f = { is_own, p };
    struct err why = { .code = ERR_OK };
    size_t living = 0;
    bool certain = false;
    int rc = tree_kill_round(&f, &living, &why);
    int empty = rc < 0 ? rc : tree_reap(&f, on_dead, &certain, &why);
    if (empty < 0) {
        LOG_DEBUG("proc", "sweep", LOG_STR("error", why.msg));
    }
    p->quiet_rounds = empty == 1 && living == 0 ? p->quiet_rounds + 1 : 0;
    p->result.stuck = empty == 1 ? 0 : (uint32_t)(living > 0 ? living : 1);
    return proc_keeper_gone(p) && (certain || p->quiet_rounds >= QUIET_ROUNDS);
}

/* SPDX-License-Identifier: MIT
 *
 * The descendants of this process at one moment. A process is known by its pid and its start time,
 * since a pid can be used again.
 */
#include "proc/orphans.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "base/arena.h"
#include "init/process_tree.h"

struct orphans {
    struct tree before;
};

int orphans_new(struct orphans **ret, struct err *e)
{
    struct orphans *o = xcalloc(1, sizeof *o);
    int r = tree_walk(&o->before, NULL, e);
    if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        r = ERR_SYS(e, "become a child subreaper");
    }
    *ret = r < 0 ? orphans_free(o) : o;
    return r;
}

struct orphans *orphans_free(struct orphans *o)
{
    if (o != NULL) {
        tree_done(&o->before);
        free(o);
    }
    return NULL;
}

bool orphans_predates(const struct orphans *o, pid_t child)
{
    struct tree_proc now;
    for (size_t i = 0; i < o->before.n; i++) {
        const struct tree_proc *p = &o->before.procs[i];
        if (p->pid == child) {
            return tree_read(child, &now) && now.start == p->start;
        }
    }
    return false;
}

/* SPDX-License-Identifier: MIT
 *
 * The record first, then the home: if this is interrupted, doing it again finishes it.
 */
#include "run/recover.h"

#include <fcntl.h>
#include <limits.h>

#include "base/file.h"
#include "record/recover.h"
#include "run/run_session.h"

static void complete(void *arg, const struct rundir *d)
{
    (void)arg;
    run_session_recover(d);
}

int run_recover(const char *dir, enum reason *ret_reason, struct err *e)
{
    struct recover_report report;
    struct recover_port port = { complete, NULL };
    int r = recover_run_with(dir, &port, &report, e);
    if (ret_reason != NULL) {
        *ret_reason = r == 0 && report.result == RECOVER_CLOSED ? report.reason : REASON_NONE;
    }
    if (r < 0) {
        return r;
    }
    switch (report.result) {
    case RECOVER_NO_RECORD:
        return ERR(e, ERR_INPUT, "'%s' holds no run", dir);
    case RECOVER_ALIVE:
        if (report.pid == 0) { /* it has only just begun */
            return ERR(e, ERR_EXISTS, "the run in '%s' is still going on", dir);
        }
        return ERR(e, ERR_EXISTS, "the run in '%s' is still going on (pid %d)", dir,
                   (int)report.pid);
    case RECOVER_FINISHED:
        return 0;
    case RECOVER_CLOSED:
        break;
    }
    /* The workspace stays for a look, whatever was asked for: it is all there is of the agent's
     * work. What was only needed while it was looked at goes. */
    static const char *const leftovers[] = { "home", "work/scratch" };
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(leftovers); i++) {
        char path[PATH_MAX];
        r = path_join(dir, leftovers[i], path, sizeof path, e);
        r = r < 0 ? r : file_remove_tree(AT_FDCWD, path, e);
    }
    return r;
}

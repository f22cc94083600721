/* SPDX-License-Identifier: MIT
 *
 * Bounds of memory and their ends; see memory.h.
 */
#include "run/memory.h"

#include <stdio.h>
#include <unistd.h>

#include "run/image.h"
#include "run/run_priv.h"

uint64_t memory_default(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    return pages <= 0 || size <= 0 ? 0 : (uint64_t)pages * (uint64_t)size / 4 * 3;
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

void memory_begin(struct run *run)
{
    struct run_memory *m = &run->memory;
    const struct sandbox *box = sandbox_session_sandbox(run);
    uint64_t bound = box == NULL ? 0 : sandbox_report(box)->memory;
    bool kept = bound > 0;
    m->limit = kept ? (int64_t)bound : run->plan->settings.sandbox.memory;
    /* An image is bounded by its engine. */
    m->polled = !kept && m->limit > 0 && !image_wanted(run);
    if (m->polled && run->confine.policy.mode == SANDBOX_OFF) {
        run_warn(run, "no control group limits the memory of the run: there is no sandbox; the "
                      "memory in use is only checked ten times a second");
    }
}

bool memory_exceeded(struct run *run, int64_t used, char *text, size_t size)
{
    const struct run_memory *m = &run->memory;
    if (!m->polled || used <= m->limit) {
        return false;
    }
    (void)snprintf(text, size,
                   "out of memory: the agent used %.0f MiB and may use %.0f MiB: raise the limit "
                   "with sandbox.memory (--memory)",
                   mib(used), mib(m->limit));
    events_oom(&run->record.events, 0, m->limit);
    return true;
}

void memory_end(struct run *run)
{
    struct run_memory *m = &run->memory;
    struct sandbox *box = run->confine.box;
    int64_t kills = box == NULL ? -1 : sandbox_oom_kills(box);
    if (kills <= m->kills) {
        return;
    }
    m->kills = kills;
    events_oom(&run->record.events, kills, m->limit);
    run_warn(run,
             "out of memory: %lld process%s of the run %s killed, since together they may use %.0f "
             "MiB: raise the limit with sandbox.memory (--memory)",
             (long long)kills, kills == 1 ? "" : "es", kills == 1 ? "was" : "were", mib(m->limit));
}

void memory_judge(struct run *run)
{
    const struct run_memory *m = &run->memory;
    if (m->kills > 0) {
        run_blame(run, REASON_FAILURE, "out of memory (%lld killed, limit %.0f MiB)",
                  (long long)m->kills, mib(m->limit));
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Phases trust_on and trust_off: for harnesses with a shared home whose trust table is global. What
 * was registered is removed in all cases; a failure to remove only warns, the next sweep will do
 * it.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "adapters/trust.h"
#include "base/file.h"
#include "run/run_priv.h"

static bool is_needed(const struct run *run)
{
    return run->plan->settings.home == HOME_SHARED && run->plan->settings.trust_project &&
           run->plan->settings.profile->trust.style != NULL;
}

/* Entries of runs that were killed are removed by the next run of the same harness, whatever home
 * it has. There is a file of notes only while an entry of ours exists. */
static void sweep(struct run *run)
{
    const struct profile_trust *t = &run->plan->settings.profile->trust;
    const char *home = getenv("HOME");
    enum trust_style style;
    struct err e;
    if (home == NULL || t->style == NULL || !trust_style_of(t->style, &style)) {
        return;
    }
    const char *file = arena_printf(run->arena, "%s/%s", home, t->file);
    if (file_exists(AT_FDCWD, arena_printf(run->arena, "%s.cinch.json", file)) &&
        trust_sweep(style, file, NULL, NULL, &e) < 0) {
        run_warn(run, "stale trust entries in '%s' could not be removed: %s", file, e.msg);
    }
}

int phase_trust_on(struct run *run, struct err *e)
{
    sweep(run);
    if (!is_needed(run)) {
        return 0;
    }
    record_beat(&run->record); /* the lock may have to be waited for */
    const struct profile_trust *t = &run->plan->settings.profile->trust;
    const char *home = getenv("HOME");
    if (home == NULL) {
        return ERR(e, ERR_CONFIG, "a shared home needs the variable HOME");
    }
    struct trust_entry *entry = ARENA_NEW(run->arena, struct trust_entry);
    entry->file = arena_printf(run->arena, "%s/%s", home, t->file);
    entry->dir = run->paths.view;
    if (!trust_style_of(t->style, &entry->style)) {
        return ERR(e, ERR_CONFIG, "unknown trust style '%s'", t->style);
    }
    int r = trust_register(entry, run->record.state.run_id, NULL, e);
    if (r < 0) {
        return err_wrap(e, "trust");
    }
    run->trust = entry;
    return 0;
}

int phase_trust_off(struct run *run, struct err *e)
{
    if (run->trust != NULL) {
        struct err why;
        record_beat(&run->record);
        if (trust_remove(run->trust, run->record.state.run_id, &why) < 0) {
            run_warn(run, "the trust entry for '%s' is still there: %s", run->trust->dir, why.msg);
        }
        run->trust = NULL;
    }
    return 0;
}

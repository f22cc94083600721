/* SPDX-License-Identifier: MIT
 *
 * Phases trust_on and trust_off: for harnesses with a shared home whose trust table is global. What
 * was registered is removed in all cases; a failure to remove only warns, the next sweep will do
 * it.
 */
#include <stdlib.h>

#include "adapters/trust.h"
#include "run/run_priv.h"

static bool is_needed(const struct run *run)
{
    return run->plan->settings.home == HOME_SHARED && run->plan->settings.trust_project &&
           run->plan->settings.profile->trust.style != NULL;
}

int phase_trust_on(struct run *run, struct err *e)
{
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

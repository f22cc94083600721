/* SPDX-License-Identifier: MIT
 *
 * manifest.json: Holon's shape (status, outcome, duration, artifacts, metadata, error only on
 * failure), with what cinch adds to it after.
 */
#include <stdio.h>

#include "record/rundir.h"
#include "record/summary_priv.h"

/* Holon's schema wants a string where there is one, and nothing where there is none. */
static void add_known(struct view *v, const char *key, const char *foreign)
{
    if (foreign != NULL) {
        view_text(v, key, foreign);
    }
}

static void add_metadata(struct view *v, const struct summary *s)
{
    struct view metadata = view_inner(v, "metadata");
    view_text(&metadata, "agent", s->adapter);
    view_word(&metadata, "version", CINCH_VERSION);
    view_word(&metadata, "mode", s->mode != NULL ? s->mode : "run");
    struct view engine = view_inner(&metadata, "engine");
    add_known(&engine, "name", s->engine.name);
    add_known(&engine, "version", s->engine.version);
    add_known(&engine, "model", s->engine.model);
}

struct json *manifest_json(const struct summary *s, const struct rundir *d,
                           const struct redactor *r, struct arena *a)
{
    struct view v = { a, r, json_object(a) };
    view_word(&v, "status", reason_status(s->reason));
    view_word(&v, "outcome", reason_outcome(s->reason));
    char duration[32];
    (void)snprintf(duration, sizeof duration, "%.1fs", view_seconds(s->duration));
    view_word(&v, "duration", duration);
    json_setc(a, v.object, "artifacts", redact_json(r, a, rundir_list(d, a)));
    add_metadata(&v, s);
    if (s->reason != REASON_NONE && s->error != NULL) {
        view_text(&v, "error", s->error);
    }
    view_int(&v, "schema_version", SUMMARY_SCHEMA_VERSION);
    view_word(&v, "run_id", s->run_id);
    view_word(&v, "state", reason_state(s->reason));
    view_word(&v, "reason", reason_word(s->reason));
    if (s->reason == REASON_NONE) {
        view_word(&v, "exit_code", NULL);
    } else {
        view_int(&v, "exit_code", summary_contract_exit(s));
    }
    view_stamp(&v, "started_at", s->started_wall);
    view_stamp(&v, "ended_at", s->ended_wall);
    view_flag(&v, "no_changes", s->no_changes);
    view_bool(&v, "resumable", reason_resumable(s->reason));
    view_bool(&v, "recovered", s->recovered);
    struct view sandbox = view_inner(&v, "sandbox");
    view_text(&sandbox, "requested", s->sandbox.requested != NULL ? s->sandbox.requested : "off");
    view_list(&sandbox, "enforced", s->sandbox.enforced);
    view_list(&sandbox, "lost", s->sandbox.lost);
    view_list(&sandbox, "denied", s->sandbox.denied);
    view_word(&sandbox, "plan_sha256", s->sandbox.plan_sha256);
    view_list(&v, "warnings", s->warnings);
    return v.object;
}

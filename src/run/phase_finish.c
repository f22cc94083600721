/* SPDX-License-Identifier: MIT
 *
 * Phases parse, collect, gate and finish: from what the harness printed to a complete record. They
 * happen after every run, also one that was refused or killed.
 */

#include "adapters/version.h"
#include "base/file.h"
#include "record/redact.h"
#include "run/deliverables.h"
#include "run/harness_session.h"
#include "run/helper_environment.h"
#include "run/holon.h"
#include "run/run_error.h"
#include "run/run_priv.h"
#include "run/run_session.h"
#include "run/shared_home.h"
#include "run/short_path.h"

/* --- parse --- */

static bool asks_for_review(const struct run *run)
{
    const struct engine_exit *exit = &run->exec.exit;
    int code = run->outcome.report.review_exit;
    return run->outcome.report.needs_human ||
           (code != 0 && exit->end == ENGINE_EXITED && exit->value == code);
}

/* A harness that says it failed has failed; one that ends badly after a valid result has warned us.
 */
static void judge_exit(struct run *run)
{
    const struct engine_exit *exit = &run->exec.exit;
    bool scylla = strcmp(run->plan->settings.exit_profile, "scylla") == 0;
    if (asks_for_review(run)) {
        struct str why = redact_str(run->redactor, run->arena, run->outcome.report.error);
        run_fail(run, REASON_NEEDS_HUMAN, "the agent requests a review%s%.*s",
                 why.len > 0 ? ": " : "", STR_ARG(str_slice(why, 0, 400)));
    } else if (run->outcome.report.failed) {
        /* Clean before it is cut: half a secret is not found. */
        struct str why = redact_str(run->redactor, run->arena, run->outcome.report.error);
        run_fail(run, REASON_FAILURE, "%s%s%.*s%s",
                 run->outcome.report.ended_early ? "" : "the agent reported a failure",
                 why.len > 0 && !run->outcome.report.ended_early ? ": " : "",
                 STR_ARG(str_slice(why, 0, 400)),
                 run->outcome.report.ended_early ? last_output(run) : "");
    } else if (run->exec.let_go && run->outcome.report.result_seen) {
        if (!run->plan->settings.profile->acp.stays) {
            run_warn(run, "the agent gave a valid result but kept running: it was terminated");
        }
    } else if (exit->end == ENGINE_SIGNALLED) {
        run_fail(run, REASON_FAILURE, "the agent was killed by signal %d%s", exit->value,
                 last_output(run));
    } else if (exit->end == ENGINE_EXITED && exit->value != 0) {
        if ((run->outcome.report.result_seen || run->outcome.answer.value != NULL) && !scylla) {
            run_warn(run, "the agent gave a valid result and then exited with %d", exit->value);
        } else {
            run_fail(run, REASON_FAILURE, "the agent exited with %d%s", exit->value,
                     last_output(run));
        }
    }
}

static void tell_output(struct run *run)
{
    const struct agent_report *r = &run->outcome.report;
    struct arena *a = run->arena;
    if (r->text.len > 0 && !r->told) {
        struct json *detail = json_object(a);
        json_setc(a, detail, "text", json_string(a, r->text));
        transcript_add(
            &run->record.transcript,
            &(struct transcript_entry) { .type = ENTRY_ASSISTANT_MESSAGE, .detail = detail });
    }
    if (r->usage.known && !r->told) {
        struct json *detail = json_object(a);
        json_setc(a, detail, "input_tokens", json_integer(a, r->usage.input));
        json_setc(a, detail, "output_tokens", json_integer(a, r->usage.output));
        transcript_add(&run->record.transcript,
                       &(struct transcript_entry) { .type = ENTRY_TOKEN_USAGE, .detail = detail });
    }
    if (r->overlong_lines > 0) {
        run_warn(run, "%llu lines of output were too long to be read; stdout.log has them",
                 (unsigned long long)r->overlong_lines);
    }
}

/* Without a contract, whatever the harness calls its structured output. */
static struct json *output_of(const struct run *run)
{
    return run->definition.schema != NULL ? run->outcome.answer.value
                                          : (struct json *)run->outcome.report.structured;
}

static void tell_call(struct run *run)
{
    struct agent_usage u = run_usage(run);
    struct event_prompt p = run_event_prompt(run);
    struct events *ev = &run->record.events;
    int64_t in = u.known ? u.input : -1;
    int64_t out = u.known ? u.output : -1;
    if (run->cause.reason != REASON_NONE) {
        events_prompt_error(ev, &p, run_error_phase(run), run->cause.reason, run->cause.message);
        return;
    }
    events_call_complete(ev, &p,
                         &(struct event_call) { .took = run->exec.ended - run->exec.started,
                                                .input_tokens = in,
                                                .output_tokens = out });
    events_executed(ev, &p,
                    &(struct event_executed) { .text = run->outcome.report.text,
                                               .output = output_of(run),
                                               .input_tokens = in,
                                               .output_tokens = out,
                                               .cached_tokens = u.known ? u.cache_read : -1 });
}

/* The driver may have kept only the end of the text: half a secret may stand at the cut. */
static void make_text_safe(struct run *run)
{
    struct agent_report *r = &run->outcome.report;
    unsigned edges = r->text_truncated ? REDACT_CUT_FRONT : 0;
    r->text = redact_cut(run->redactor, run->arena, r->text, edges);
}

/* Of a harness that states its version only when it runs. */
static void warn_about_version(struct run *run)
{
    bool told = run->plan->program_version != NULL || run->outcome.report.version.len == 0;
    const char *version = told ? NULL : arena_dup(run->arena, run->outcome.report.version);
    const char *warning = version_warning(run->arena, run->plan->settings.profile, version);
    if (warning != NULL) {
        run_warn(run, "%s", warning);
    }
}

int phase_parse(struct run *run, struct err *e)
{
    if (run->session == NULL) {
        return 0; /* refused before anything was started */
    }
    logfile_flush(&run->record.out);
    logfile_flush(&run->record.err);
    launch_take_files(run);
    run->plan->driver->end(run->session, &run->outcome.report);
    continuation_add_usage(&run->outcome.report.usage, &run->exec.past);
    make_text_safe(run);
    if (run->exec.launched) {
        output_parse(run);
        judge_exit(run);
        output_judge(run);
        tell_output(run);
    }
    gateway_judge(run);
    plausibility_judge(run);
    warn_about_version(run);
    auth_judge(run);
    disk_look(run);
    disk_judge(run);
    memory_judge(run);
    tell_call(run);
    return 0;
}

/* --- collect, gate --- */

/* What stays on the host carries no setuid and no setgid bit. Everything that could set one is
 * gone; run_collect_workspace() does the same for the workspace. */
static void drop_setid(struct run *run)
{
    static const char *const kept[] = { "artifacts", "home" };
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        struct err why;
        bool stays = i == 0 || run->opts->keep_home;
        if (stays && file_drop_setid(run->record.dir.dir_fd, kept[i], &why) < 0) {
            run_warn(run, "%s/ may hold setuid or setgid files: %s", kept[i], why.msg);
        }
    }
}

/* An agent that removes its record usually fails as well, or makes us fail (its `rm -rf` meets a
 * file that we have just made, the baseline of the diff is gone): the lost record is the cause. */
static void reclaim_record(struct run *run)
{
    const char *const dirs[] = { run->workspace == NULL ? NULL : "work", NULL };
    enum reason now = run->cause.reason;
    bool follows = now == REASON_NONE || now == REASON_FAILURE || now == REASON_NEEDS_HUMAN ||
                   now == REASON_INTERNAL;
    if (record_reclaim(&run->record, dirs) < 0 && follows) {
        run_fail(run, REASON_CANNOT_WRITE_OUTPUT, "%s", run->record.damage.msg);
    }
}

int phase_collect(struct run *run, struct err *e)
{
    struct err why;
    reclaim_record(run);
    if (run->cause.reason != REASON_NONE && run->plan->settings.profile != NULL) {
        struct json *detail = json_object(run->arena);
        json_setc(run->arena, detail, "error", json_cstr(run->arena, run->cause.message));
        transcript_add(&run->record.transcript,
                       &(struct transcript_entry) { .type = ENTRY_ERROR, .detail = detail });
    }
    transcript_stop(&run->record.transcript);
    drop_setid(run);
    run_session_save(run);
    harness_session_keep(run);
    shared_home_close(run);
    holon_collect(run);
    deliverables_collect(run);
    run_collect_workspace(run);
    disk_judge(run); /* making the patch needs room, too */
    auth_inspect(run);
    if (file_remove_tree(run->record.dir.dir_fd, HELPER_HOME, &why) < 0) {
        run_warn(run, "'%s' could not be removed: %s", HELPER_HOME, why.msg);
    }
    /* The private home held the agent's own files, some of which may hold what no record should. */
    if (run->paths.home != NULL && !run->opts->keep_home) {
        /* By the descriptor: the agent may have put a link to something else under our path. */
        if (file_remove_tree(run->record.dir.dir_fd, "home", &why) < 0) {
            run_warn(run, "the run's home could not be removed: %s", why.msg);
        }
    }
    return 0;
}

int phase_gate(struct run *run, struct err *e)
{
    plausibility_gate(run);
    output_gate(run);
    return 0;
}

/* --- finish --- */

static void fill_usage(const struct run *run, struct summary *s)
{
    const struct agent_usage *u = &run->outcome.report.usage;
    s->tokens.input = u->input;
    s->tokens.output = u->output;
    s->tokens.cache_read = u->cache_read;
    s->tokens.cache_creation = u->cache_write;
    s->tokens.reasoning = u->reasoning;
    s->tokens.source = u->known ? TOKENS_STREAM : TOKENS_NONE;
    s->cost_usd = u->cost_usd;
    s->cost_source = u->cost_known ? COST_CLI : COST_NONE;
    s->api_calls = u->api_calls;
    s->turns = u->turns;
    s->tool_calls = run->exec.tool_calls;
    s->tool_failures = run->exec.tool_failures;
    s->rusage.utime = run->exec.usage.utime;
    s->rusage.stime = run->exec.usage.stime;
    s->rusage.maxrss_kb = run->exec.usage.maxrss_kb;
    s->leaked_children = run->exec.usage.leaked;
}

static const char *program_name(const struct run *run)
{
    const char *path = run->paths.program;
    return path == NULL ? NULL : arena_dup(run->arena, path_base(str_of(path)));
}

/* There is no record to tell it to any more: only whoever watches. */
static void tell_damage(struct run *run, const struct err *why)
{
    if (run->cause.reason == REASON_NONE) {
        run_fail(run, REASON_CANNOT_WRITE_OUTPUT, "%s", why->msg);
    } else if (run->cause.reason != REASON_CANNOT_WRITE_OUTPUT &&
               run->opts->watcher.warning != NULL) {
        run->opts->watcher.warning(run->opts->watcher.owner, why->msg);
    }
}

/* Tools of the Scylla contract look for the reason in stderr.log. */
static void write_scylla_error(struct run *run)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const struct cause *c = &run->cause;
    if (c->reason == REASON_NONE) {
        return;
    }
    if (c->reason == REASON_TIMEOUT) {
        buf_addf(&text, "Timeout after %.10g seconds\n", (double)c->limit / 1e9);
    }
    buf_addf(&text, "cinch: error in phase %s (%s): %s\n", phase_word(c->at),
             reason_word(c->reason), c->message);
    logfile_write(&run->record.err, buf_str(&text));
}

int phase_finish(struct run *run, struct err *e)
{
    const struct agent_report *r = &run->outcome.report;
    short_path_remove(run);
    struct summary s = {
        .adapter = run->plan->settings.adapter == NULL ? "none" : run->plan->settings.adapter,
        .mode = json_cstring(json_get(run->plan->settings.env_set, "HOLON_MODE"), NULL),
        .engine = { .name = program_name(run),
                    .version = r->version.len > 0 ? r->version.ptr : run->plan->program_version,
                    .model = r->model.len > 0 ? r->model.ptr : run->plan->settings.model },
        .session_id = r->session_id.len > 0 ? r->session_id.ptr : NULL,
        .reason = run->cause.reason == REASON_NONE ? REASON_SUCCESS : run->cause.reason,
        .error = run->cause.reason == REASON_NONE ? NULL : run->cause.message,
        .timeout = run->cause.reason == REASON_TIMEOUT ? run->cause.timeout : TIMEOUT_NONE,
        .engine_exit = run->exec.exit,
        .first_output =
            run->exec.first_output_at == 0 ? 0 : run->exec.first_output_at - run->exec.started,
        .text = r->text,
        .text_cut = r->text_truncated,
        .output = output_of(run),
        .repair_level = run->outcome.answer.value == NULL ? -1 : (int)run->outcome.answer.repair,
        .output_source = structured_source_name(run->outcome.answer.source),
        .output_repair = structured_repair_name(run->outcome.answer.repair),
        .output_error = run->outcome.answer.error,
        .evaluation_error = run_error_json(run),
        .no_changes = run->outcome.no_changes,
        .warnings = run->warnings,
        .task = run->plan->settings.name,
        .goal = run->prompt.len > 0 ? run->prompt : run->plan->settings.prompt_text,
        .changes = run->outcome.changes,
        .checks = deliverables_checks(run),
    };
    (void)exit_profile_find(run->plan->settings.exit_profile, &s.exit_profile);
    if (s.exit_profile == EXIT_SCYLLA) {
        write_scylla_error(run);
        s.error = s.reason == REASON_TIMEOUT ? "Execution timeout" : s.error;
    }
    fill_usage(run, &s);
    gateway_fill(run, &s);
    sandbox_session_report(run, &s);
    struct err why;
    if (record_finish(&run->record, &s, &why) < 0) {
        tell_damage(run, &why);
    }
    run->outcome.exit_status = summary_contract_exit(&s);
    return 0;
}

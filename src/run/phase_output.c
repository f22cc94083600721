/* SPDX-License-Identifier: MIT
 *
 * What the agent gave, held against what the task asked for: the structured answer (parse) and the
 * gate; files are in deliverables.h. Whatever does not pass is a failure of the run with its
 * reason, and what the agent really said stays in the record.
 */
#include "run/deliverables.h"
#include "run/run_priv.h"
#include "run/skill_files.h"
#include "skill/skill_contract.h"

/* Where programs that answer in an envelope of their own put the text. */
static const char *const envelopes[] = { "/structured_output", "/response", "/result", "/output" };

/* --- parse --- */

static void take(struct run *run, const struct structured_result *found)
{
    const struct definition *d = &run->definition;
    struct answer *answer = &run->outcome.answer;
    answer->value = found->value;
    answer->source = found->source;
    answer->repair = found->repair;
    if (d->package == NULL) {
        return;
    }
    struct skill_answer said;
    skill_answer_read(run->arena, d->package, found->value, &said);
    if (said.done) {
        answer->value = said.data;
    } else {
        answer->question = said.message == NULL ? "the skill asks a question" : said.message;
    }
}

static struct json *describe(struct arena *a, const struct structured_failure *failure)
{
    struct json *error = json_object(a);
    struct json *list = json_array(a);
    for (size_t i = 0; failure->errors != NULL && i < failure->errors->len; i++) {
        const struct schema_error *from = &failure->errors->errors[i];
        struct json *item = json_object(a);
        json_setc(a, item, "instance_path", json_string(a, from->instance_path));
        json_setc(a, item, "schema_path", json_string(a, from->schema_path));
        json_setc(a, item, "message", json_string(a, from->message));
        json_push(a, list, item);
    }
    json_setc(a, error, "type", json_cstr(a, "OutputParseError"));
    json_setc(a, error, "message", json_string(a, failure->message));
    json_setc(a, error, "excerpt", json_string(a, failure->excerpt));
    json_setc(a, error, "raw", json_cstr(a, "evidence/output.txt"));
    json_setc(a, error, "errors", list);
    return error;
}

static void miss(struct run *run, const struct structured_failure *failure)
{
    struct err e;
    run->outcome.answer.why = failure->message;
    run->outcome.answer.error = describe(run->arena, failure);
    if (record_write_text(&run->record, "evidence/output.txt", failure->raw, &e) < 0) {
        run_warn(run, "the raw answer could not be kept: %s", e.msg);
    }
}

/* Looks for a value that fits the contract: given by a tool or by the harness, else in the text.
 * -ERR_PARSE: `failure` of the result says why there is none. */
static int find_value(struct run *run, const struct agent_report *r, struct structured_result *ret,
                      struct err *e)
{
    const struct definition *d = &run->definition;
    struct structured_options options = {
        .schema = d->schema,
        .wanted = d->contract,
        .strict = d->strict,
        .envelopes = envelopes,
        .envelope_count = ARRAY_LEN(envelopes),
    };
    const struct json *by_tool = tools_structured(run);
    const struct json *value = by_tool != NULL ? by_tool : r->structured;
    struct structured_result native;
    if (value != NULL) {
        enum structured_source source = by_tool != NULL ? STRUCTURED_TOOL : STRUCTURED_NATIVE;
        if (structured_accept(value, source, &options, run->arena, &native, e) == 0) {
            *ret = native;
            return 0;
        }
    }
    int rc = structured_parse(r->text, &options, run->arena, ret, e);
    if (rc == -ERR_PARSE && value != NULL) {
        ret->failure = native.failure;
    } else if (rc < 0 && rc != -ERR_PARSE) {
        ret->failure =
            (struct structured_failure) { .message = str_of(arena_dup(run->arena, str_of(e->msg))),
                                          .raw = r->text };
    }
    return rc;
}

void output_parse(struct run *run)
{
    struct structured_result found;
    struct err e = { 0 };
    if (run->definition.schema == NULL) {
        return;
    }
    if (find_value(run, &run->outcome.report, &found, &e) == 0) {
        take(run, &found);
    } else {
        miss(run, &found.failure);
    }
}

/* Only an agent that remembers what it did can be asked for the answer alone: a plain program would
 * do all of its work again. */
static bool can_continue(const struct run *run)
{
    const struct driver *d = run->plan->driver;
    return d->kind == DRIVER_DIALOGUE || d->kind == DRIVER_MODEL_LOOP || run->exec.resume.len > 0;
}

struct str output_repair(struct run *run, const struct agent_report *report, struct str *ret_why)
{
    enum { SCHEMA_SHOWN = 16 << 10 };
    struct structured_result found;
    struct err e = { 0 };
    nsec left;
    if (run->definition.schema == NULL || run->exec.repairs >= run->plan->settings.output_repairs ||
        !can_continue(run) || tools_admit_call(run, &left, NULL) < 0 ||
        find_value(run, report, &found, &e) == 0) {
        return STR_EMPTY;
    }
    run->exec.repairs++;
    *ret_why = found.failure.message;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf schema = BUF_INIT(SCHEMA_SHOWN);
    buf_addf(&text,
             "Your final answer does not have the required form: %.*s\nDo not repeat the work. "
             "Answer again, with nothing but the corrected JSON value.",
             STR_ARG(found.failure.message));
    if (json_write(run->definition.contract, JSON_COMPACT, &schema, NULL) == 0) {
        buf_addf(&text, "\nIt must match this JSON Schema:\n%.*s", STR_ARG(buf_str(&schema)));
    }
    return arena_str(run->arena, buf_str(&text));
}

void output_judge(struct run *run)
{
    if (run->outcome.answer.error != NULL && deliverables_question(run) == NULL) {
        run_fail(run, REASON_FAILURE, "OutputParseError: %.*s", STR_ARG(run->outcome.answer.why));
    }
}

/* --- gate --- */

void output_gate(struct run *run)
{
    if (run->outcome.answer.question != NULL) {
        run_fail(run, REASON_NEEDS_HUMAN, "%s", run->outcome.answer.question);
        return;
    }
    if (run->definition.package != NULL && run->outcome.answer.value != NULL) {
        skill_files_gate(run);
    }
    deliverables_gate(run);
}

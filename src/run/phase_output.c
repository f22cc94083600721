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
    struct answer *answer = &run->answer;
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
    run->answer.why = failure->message;
    run->answer.error = describe(run->arena, failure);
    if (record_write_text(&run->record, "evidence/output.txt", failure->raw, &e) < 0) {
        run_warn(run, "the raw answer could not be kept: %s", e.msg);
    }
}

void output_parse(struct run *run)
{
    const struct definition *d = &run->definition;
    const struct agent_report *r = &run->report;
    struct structured_options options = {
        .schema = d->schema,
        .wanted = d->contract,
        .strict = d->strict,
        .envelopes = envelopes,
        .envelope_count = ARRAY_LEN(envelopes),
    };
    struct structured_result native;
    struct structured_result found;
    struct err e = { 0 };
    if (d->schema == NULL) {
        return;
    }
    int given = -ERR_PARSE;
    const struct json *by_tool = tools_structured(run);
    const struct json *value = by_tool != NULL ? by_tool : r->structured;
    if (value != NULL) {
        given = structured_accept(value, by_tool != NULL ? STRUCTURED_TOOL : STRUCTURED_NATIVE,
                                  &options, run->arena, &native, &e);
        found = native;
    }
    int rc = given == 0 ? 0 : structured_parse(r->text, &options, run->arena, &found, &e);
    if (rc == 0) {
        take(run, &found);
    } else if (rc == -ERR_PARSE) {
        miss(run, value != NULL ? &native.failure : &found.failure);
    } else {
        miss(run,
             &(struct structured_failure) { .message = str_of(arena_dup(run->arena, str_of(e.msg))),
                                            .raw = r->text,
                                            .excerpt = STR_EMPTY });
    }
}

void output_judge(struct run *run)
{
    if (run->answer.error != NULL) {
        run_fail(run, REASON_FAILURE, "OutputParseError: %.*s", STR_ARG(run->answer.why));
    }
}

/* --- gate --- */

void output_gate(struct run *run)
{
    if (run->answer.question != NULL) {
        run_fail(run, REASON_NEEDS_HUMAN, "%s", run->answer.question);
        return;
    }
    if (run->definition.package != NULL && run->answer.value != NULL) {
        skill_files_gate(run);
    }
    deliverables_gate(run);
}

/* SPDX-License-Identifier: MIT
 *
 * What the agent gave, held against what the task asked for: the structured answer (parse), files
 * (collect), and the gate. Whatever does not pass is a failure of the run with its reason, and what
 * the agent really said stays in the record.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "run/run_priv.h"
#include "skill/skill_artifact.h"
#include "skill/skill_contract.h"
#include "workspace/workspace.h"

/* One file of the workspace that is copied into the record; who needs more keeps it elsewhere. */
#define ARTIFACT_MAX ((uint64_t)1 << 30)

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

/* --- collect --- */

/* Makes the directories of "a/b/c" below the fd, following nothing. */
static int open_parent(int fd, struct str path, struct str *ret_base, struct err *e)
{
    CLEANUP(fd) int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    for (;;) {
        struct str part = str_split(&path, '/');
        if (path.ptr == NULL) {
            *ret_base = part;
            return TAKE_FD(at);
        }
        char name[NAME_MAX + 1];
        (void)snprintf(name, sizeof name, "%.*s", STR_ARG(part));
        if (part.len == 0) {
            continue;
        }
        if (mkdirat(at, name, 0700) < 0 && errno != EEXIST) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", name);
        }
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", name);
        }
        cleanup_fd(&at);
        at = next;
    }
}

static int copy_artifact(int from, int artifacts_fd, struct str path, struct err *e)
{
    struct str base = STR_EMPTY;
    int r = open_parent(artifacts_fd, path, &base, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int parent = r;
    char name[NAME_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", STR_ARG(base));
    CLEANUP(fd)
    int to = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (to < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", name);
    }
    r = file_copy(from, to, ARTIFACT_MAX, e);
    if (r < 0) {
        (void)unlinkat(parent, name, 0);
    }
    return r;
}

static void collect_one(struct run *run, int artifacts_fd, struct str path)
{
    CLEANUP(fd) int there = file_open_below(artifacts_fd, path);
    CLEANUP(fd) int from = there >= 0 ? -1 : workspace_open_file(run->workspace, path);
    struct err e;
    if (from >= 0 && copy_artifact(from, artifacts_fd, path, &e) < 0) {
        run_warn(run, "artifact '%.*s' could not be kept: %s", STR_ARG(path), e.msg);
    }
}

static void copy_artifacts(struct run *run)
{
    const struct json *list = run->settings.artifacts;
    if (json_len(list) == 0 || run->workspace == NULL) {
        return;
    }
    CLEANUP(fd)
    int artifacts = openat(run->record.dir.dir_fd, "artifacts",
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; artifacts >= 0 && i < json_len(list); i++) {
        collect_one(run, artifacts, json_str(json_get(json_item(list, i), "path"), STR_EMPTY));
    }
}

void output_collect(struct run *run)
{
    if (run->exec.launched) {
        copy_artifacts(run);
        output_clean_artifacts(run);
    }
}

/* --- gate --- */

static void gate_artifacts(struct run *run)
{
    const struct json *list = run->settings.artifacts;
    CLEANUP(fd)
    int artifacts = openat(run->record.dir.dir_fd, "artifacts",
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        struct str path = json_str(json_get(item, "path"), STR_EMPTY);
        CLEANUP(fd) int fd = artifacts < 0 ? -1 : file_open_below(artifacts, path);
        if (fd < 0 && json_bool(json_get(item, "required"), true)) {
            run_fail(run, REASON_FAILURE,
                     "required artifact '%.*s' is neither in artifacts/ nor in the workspace",
                     STR_ARG(path));
        }
    }
}

static void gate_package(struct run *run)
{
    struct skill_artifact_list list;
    struct skill_root root = { run->record.dir.dir_fd, run->record.dir.path };
    struct err e;
    int r =
        skill_artifacts(run->arena, run->definition.package, run->answer.value, &root, &list, &e);
    if (r < 0) {
        run_fail(run, REASON_FAILURE, "%s", e.msg);
        return;
    }
    run->answer.value = list.output;
    for (size_t i = 0; i < list.len; i++) {
        const struct skill_artifact *item = &list.items[i];
        if (item->fault != NULL && item->required) {
            run_fail(run, REASON_FAILURE, "required artifact '%s' (%s): %s", item->path,
                     item->field, item->fault);
        }
    }
}

void output_gate(struct run *run)
{
    if (run->answer.question != NULL) {
        run_fail(run, REASON_NEEDS_HUMAN, "%s", run->answer.question);
        return;
    }
    if (run->definition.package != NULL && run->answer.value != NULL) {
        gate_package(run);
    }
    gate_artifacts(run);
}

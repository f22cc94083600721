/* SPDX-License-Identifier: MIT
 *
 * Required files, the summary and questions for a human; see deliverables.h. The agent has ended,
 * but what it left may be anything: no link is followed.
 */
#include "run/deliverables.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/redact.h"
#include "run/run_priv.h"
#include "run/run_tools.h"
#include "run/skill_files.h"
#include "workspace/workspace.h"

/* One file of the workspace that is copied into the record. */
#define ARTIFACT_MAX ((uint64_t)1 << 30)

enum {
    QUESTION_MAX = 64 << 10,
    QUESTION_SHOWN = 400,
    SUMMARY_MAX = 8 << 20,
};

#define SUMMARY_FILE "summary.md"

/* Of an artifact, without a slash at its end; NUL-terminated. */
static struct str path_of(const struct run *run, const struct json *item)
{
    struct str path = json_str(json_get(item, "path"), STR_EMPTY);
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path = str_slice(path, 0, path.len - 1);
    }
    return str_of(arena_dup(run->arena, path));
}

static bool is_record_file(struct str path)
{
    static const char *const names[] = { "manifest.json", "diff.patch", SUMMARY_FILE, "evidence" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqc(path, names[i])) {
            return true;
        }
    }
    return false;
}

int deliverables_open(const struct run *run)
{
    return openat(run->record.dir.dir_fd, "artifacts",
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* --- collect --- */

int deliverables_copy(int from, int artifacts_fd, struct str path, struct err *e)
{
    struct str base = STR_EMPTY;
    CLEANUP(fd) int parent = file_open_parent(artifacts_fd, path, 0700, &base, e);
    if (parent < 0) {
        return parent;
    }
    CLEANUP(fd)
    int to = openat(parent, base.ptr, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (to < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", base.ptr);
    }
    int r = file_copy(from, to, ARTIFACT_MAX, e);
    if (r < 0) {
        (void)unlinkat(parent, base.ptr, 0);
    }
    return r;
}

/* A file of the record that the user's tree has, too (the manifest.json of a web extension), is not
 * meant for the record. */
static bool belongs_to_tree(const struct run *run, struct str path)
{
    const char *source = workspace_source(run->workspace);
    return is_record_file(path) &&
           (!str_eqc(path, SUMMARY_FILE) ||
            (source != NULL &&
             file_exists(AT_FDCWD, arena_printf(run->arena, "%s/" SUMMARY_FILE, source))));
}

static void collect_one(struct run *run, int artifacts_fd, struct str path)
{
    CLEANUP(fd) int there = file_open_below(artifacts_fd, path);
    if (there >= 0 || belongs_to_tree(run, path)) {
        return;
    }
    CLEANUP(fd) int from = workspace_open_file(run->workspace, path);
    struct err e;
    if (from >= 0 && deliverables_copy(from, artifacts_fd, path, &e) < 0) {
        run_warn(run, "artifact '%.*s' could not be kept: %s", STR_ARG(path), e.msg);
    }
}

static void copy_artifacts(struct run *run)
{
    const struct json *list = run->plan->settings.artifacts;
    if (json_len(list) == 0 || run->workspace == NULL) {
        return;
    }
    CLEANUP(fd) int artifacts = deliverables_open(run);
    for (size_t i = 0; artifacts >= 0 && i < json_len(list); i++) {
        collect_one(run, artifacts, path_of(run, json_item(list, i)));
    }
}

/* A small text file in artifacts/. */
static bool read_artifact(const struct run *run, const char *name, struct buf *text)
{
    CLEANUP(fd) int artifacts = deliverables_open(run);
    CLEANUP(fd) int fd = artifacts < 0 ? -1 : file_open_below(artifacts, str_of(name));
    return fd >= 0 && file_read_fd(fd, name, text->max, text, NULL) == 0;
}

/* That of an adapter program is in the record already. */
static void take_summary(struct run *run)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SUMMARY_MAX);
    struct err why;
    if (!file_exists(run->record.dir.dir_fd, SUMMARY_FILE) &&
        read_artifact(run, SUMMARY_FILE, &text) &&
        record_write_text(&run->record, SUMMARY_FILE, buf_str(&text), &why) < 0) {
        run_warn(run, "%s", why.msg);
    }
}

void deliverables_collect(struct run *run)
{
    if (run->exec.launched) {
        copy_artifacts(run);
        skill_files_collect(run);
        output_clean_artifacts(run);
        take_summary(run);
    }
}

/* --- gate --- */

const char *deliverables_question(struct run *run)
{
    CLEANUP(buf) struct buf text = BUF_INIT(QUESTION_MAX);
    struct str asked = tools_question(run);
    if (asked.len == 0 && !read_artifact(run, NEEDS_HUMAN_FILE, &text)) {
        return NULL;
    }
    asked = asked.len > 0 ? asked : buf_str(&text);
    struct str clean = str_trim(redact_str(run->redactor, run->arena, asked));
    clean = str_slice(clean, 0, QUESTION_SHOWN);
    clean = str_slice(clean, 0, str_utf8_prefix(clean));
    return clean.len == 0 ? "the agent asks for a human" : arena_dup(run->arena, clean);
}

/* manifest.json and summary.md are written when the run ends, whatever happens. */
static bool is_there(const struct run *run, struct str path)
{
    struct stat st;
    if (str_eqc(path, "manifest.json") || str_eqc(path, SUMMARY_FILE)) {
        return true;
    }
    if (is_record_file(path) && file_exists(run->record.dir.dir_fd, path.ptr)) {
        return true;
    }
    CLEANUP(fd) int artifacts = deliverables_open(run);
    CLEANUP(fd) int fd = artifacts < 0 ? -1 : file_open_below(artifacts, path);
    return fd >= 0 ||
           (artifacts >= 0 && fstatat(artifacts, path.ptr, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode));
}

void deliverables_gate(struct run *run)
{
    const struct json *list = run->plan->settings.artifacts;
    const char *question = deliverables_question(run);
    if (question != NULL) {
        run_fail(run, REASON_NEEDS_HUMAN, "%s", question);
        return;
    }
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        if (json_bool(json_get(item, "required"), true) && !is_there(run, path_of(run, item))) {
            run_fail(run, REASON_FAILURE,
                     "required artifact '%.*s' is neither in artifacts/ nor in the workspace",
                     STR_ARG(path_of(run, item)));
        }
    }
}

const char *const *deliverables_checks(struct run *run)
{
    const struct json *list = run->plan->settings.artifacts;
    const char **lines = arena_array(run->arena, json_len(list) + 2, sizeof *lines);
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        bool required = json_bool(json_get(item, "required"), true);
        lines[n++] = arena_printf(run->arena, "%s artifact %.*s: %s",
                                  required ? "required" : "optional", STR_ARG(path_of(run, item)),
                                  is_there(run, path_of(run, item)) ? "present" : "missing");
    }
    if (json_len(run->plan->settings.completion) > 0 && run->exec.launched) {
        lines[n++] = arena_printf(run->arena, "completion checks: %s, %lld continuations",
                                  run->cause.reason == REASON_NONE ? "passed" : "not passed",
                                  (long long)run->exec.round);
    }
    return lines;
}

/* SPDX-License-Identifier: MIT
 *
 * Files that the answer of a skill package names: collected from wherever the agent wrote them; see
 * skill_files.h.
 */
#include "run/skill_files.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "run/deliverables.h"
#include "run/image.h"
#include "run/run_priv.h"
#include "workspace/workspace.h"

/* Of files with the same name. */
enum { NAMES_MAX = 1000 };

static int open_work_file(void *self, struct str path)
{
    const struct run *run = self;
    int fd = run->workspace == NULL ? -1 : workspace_open_file(run->workspace, path);
    errno = fd < 0 && errno == 0 ? ENOENT : errno;
    return fd;
}

static int open_work_dir(void *self, struct str path)
{
    const struct run *run = self;
    return run->workspace == NULL ? -1 : workspace_open_dir(run->workspace, path);
}

/* "b/report.md", then "b/report-2.md" …: two files of the same name are two artifacts. */
static const char *numbered_name(struct run *run, struct str name, int number)
{
    struct str base = path_base(name);
    const char *dot = memrchr(base.ptr, '.', base.len);
    size_t stem = dot == NULL || dot == base.ptr ? name.len : (size_t)(dot - name.ptr);
    return number == 1 ? arena_dup(run->arena, name)
                       : arena_printf(run->arena, "%.*s-%d%.*s", (int)stem, name.ptr, number,
                                      (int)(name.len - stem), name.ptr + stem);
}

static int keep_file(void *self, int fd, struct str name, const char **ret, struct err *e)
{
    struct run *run = self;
    CLEANUP(fd) int artifacts = deliverables_open(run);
    int r = artifacts < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "open 'artifacts'") : -ERR_EXISTS;
    for (int i = 1; r == -ERR_EXISTS && i <= NAMES_MAX; i++) {
        const char *path = numbered_name(run, name, i);
        CLEANUP(fd) int there = file_open_below(artifacts, str_of(path));
        if (there >= 0) {
            continue;
        }
        r = deliverables_copy(fd, artifacts, str_of(path), e);
        *ret = arena_printf(run->arena, "artifacts/%s", path);
    }
    return r == -ERR_EXISTS ? ERR(e, ERR_OUTPUT, "too many artifacts are called '%.*s'",
                                  STR_ARG(str_slice(name, 0, 200)))
                            : r;
}

static int rewrite_file(void *self, const char *path, struct str text, struct err *e)
{
    const struct run *run = self;
    return file_write_atomic(run->record.dir.dir_fd, path, text, 0644, e);
}

static void warn_missing(struct run *run)
{
    const struct skill_artifact_list *list = &run->outcome.answer.files;
    for (size_t i = 0; i < list->len; i++) {
        const struct skill_artifact *item = &list->items[i];
        if (item->fault != NULL && !item->required && strcmp(item->field, "artifacts") != 0) {
            run_warn(run, "OUTPUT_ARTIFACT_PATH_MISSING: artifact '%s' (%s) %s", item->path,
                     item->field, item->fault);
        }
    }
}

/* What the answer names goes to artifacts/, wherever the agent wrote it, and the answer then names
 * it there. */
void skill_files_collect(struct run *run)
{
    const char *const paths[] = { run->paths.view, image_workspace(run), NULL };
    struct skill_work work = { .paths = paths,
                               .open = open_work_file,
                               .open_dir = open_work_dir,
                               .keep = keep_file,
                               .rewrite = rewrite_file,
                               .self = run };
    struct skill_root root = { run->record.dir.dir_fd, run->record.dir.path, &work };
    struct answer *answer = &run->outcome.answer;
    if (run->definition.package == NULL || answer->value == NULL || answer->question != NULL) {
        return;
    }
    int r = skill_artifacts(run->arena, run->definition.package, answer->value, &root,
                            &answer->files, &answer->files_error);
    if (r == 0) {
        answer->value = answer->files.output;
        warn_missing(run);
    }
}

void skill_files_gate(struct run *run)
{
    const struct answer *answer = &run->outcome.answer;
    if (answer->files_error.code != ERR_OK) {
        run_fail(run, REASON_FAILURE, "%s", answer->files_error.msg);
    }
    for (size_t i = 0; i < answer->files.len; i++) {
        const struct skill_artifact *item = &answer->files.items[i];
        CLEANUP(fd)
        int fd =
            item->fault == NULL ? file_open_below(run->record.dir.dir_fd, str_of(item->path)) : -1;
        const char *fault = item->fault != NULL ? item->fault : fd < 0 ? "was withheld" : NULL;
        if (fault != NULL && item->required) {
            run_fail(run, REASON_FAILURE, "required artifact '%s' (%s): %s", item->path,
                     item->field, fault);
        }
    }
}

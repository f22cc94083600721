/* SPDX-License-Identifier: MIT
 *
 * Input files on their way into the run: copied below uploads/, and looked up there strictly; see
 * skill_input.h. Whoever owns the run's directory may have changed it meanwhile, so nothing here
 * follows a link.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "data/zip.h"
#include "skill/skill.h"
#include "skill/skill_input.h"
#include "skill/skill_priv.h"

static const char uploads[] = "uploads";

/* --- copying --- */

static int copy_file(const struct skill_file *f, int uploads_fd, struct err *e)
{
    CLEANUP(fd) int from = open(f->from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (from < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "MissingInputError: input '%s': file '%s'", f->key,
                          f->from);
    }
    int r = file_remove_tree(uploads_fd, f->key, e);
    if (r == 0 && mkdirat(uploads_fd, f->key, 0700) < 0) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "create '%s/%s'", uploads, f->key);
    }
    if (r < 0) {
        return r;
    }
    CLEANUP(fd)
    int to = openat(uploads_fd, f->to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (to < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s/%s'", uploads, f->to);
    }
    r = file_copy(from, to, 0, e);
    return r < 0 ? err_wrap(e, "copy '%s'", f->from) : 0;
}

static int write_values(struct arena *a, const struct skill_values *v, int dir_fd, struct err *e)
{
    struct json *all = json_object(a);
    json_setc(a, all, "input", v->input);
    json_setc(a, all, "parameter", v->parameter);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = json_write(all, JSON_PRETTY, &text, e);
    return r < 0 ? r : file_write_atomic(dir_fd, "input.json", buf_str(&text), 0644, e);
}

void skill_stage_names(struct arena *a, struct skill_values *v, const char *dir)
{
    for (size_t i = 0; i < v->files_len; i++) {
        const struct skill_file *f = &v->files[i];
        json_setc(a, v->input, f->key,
                  json_cstr(a, arena_printf(a, "%s/%s/%s", dir, uploads, f->to)));
    }
}

int skill_stage(struct arena *a, struct skill_values *v, int dir_fd, const char *dir, struct err *e)
{
    int r = file_mkdirs(dir_fd, uploads, 0700, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd)
    int uploads_fd = openat(dir_fd, uploads, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (uploads_fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s/%s'", dir, uploads);
    }
    for (size_t i = 0; i < v->files_len; i++) {
        const struct skill_file *f = &v->files[i];
        r = copy_file(f, uploads_fd, e);
        if (r < 0) {
            return r;
        }
    }
    skill_stage_names(a, v, dir);
    return write_values(a, v, dir_fd, e);
}

/* --- looking up --- */

static const struct skill_file *staged(const struct skill_values *v, struct str key)
{
    for (size_t i = 0; i < v->files_len; i++) {
        if (str_eqc(key, v->files[i].key)) {
            return &v->files[i];
        }
    }
    return NULL;
}

static bool is_there(int uploads_fd, struct str name)
{
    CLEANUP(fd)
    int fd =
        uploads_fd < 0 || zip_name_fault(name) != NULL ? -1 : file_open_below(uploads_fd, name);
    return fd >= 0;
}

int skill_resolve(struct arena *a, const struct skill *s, int dir_fd, const char *dir,
                  struct skill_values *v, struct err *e)
{
    const struct json *list = json_get(s->schemas[SKILL_INPUT].tree, "properties");
    CLEANUP(fd)
    int uploads_fd = openat(dir_fd, uploads, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; json_is(list, JSON_OBJECT) && i < list->object.len; i++) {
        const struct json_member *m = &list->object.members[i];
        if (!skill_input_is_file(m->value)) {
            continue;
        }
        const struct skill_file *f = staged(v, m->key);
        struct str name = f != NULL ? str_of(f->to) : m->key;
        bool found = is_there(uploads_fd, name);
        if (!found && (f != NULL || skill_input_required(s, m->key))) {
            return ERR(e, ERR_INPUT,
                       "MissingInputError: input '%.*s' of skill '%s' is not at '%s/%s/%.*s'",
                       STR_ARG(str_slice(m->key, 0, 64)), s->name, dir, uploads, STR_ARG(name));
        }
        if (found) {
            json_set(a, v->input, m->key,
                     json_cstr(a, arena_printf(a, "%s/%s/%.*s", dir, uploads, STR_ARG(name))));
        }
    }
    return 0;
}

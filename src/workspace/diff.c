/* SPDX-License-Identifier: MIT
 *
 * The order of things: sides, selection, the patch of the tree, then one for each repository in it.
 */
#include "workspace/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/diff_priv.h"
#include "workspace/git.h"

static bool is_listed(const struct json *nested, const char *path)
{
    for (size_t i = 0; i < json_len(nested); i++) {
        if (str_eqc(json_str(json_get(json_item(nested, i), "path"), STR_EMPTY), path)) {
            return true;
        }
    }
    return false;
}

static int add_nested(struct diff *d, const char *home)
{
    struct arena *a = d->arena;
    size_t number = json_len(d->result->nested) + 1;
    const char *name = arena_printf(a, "%zu.patch", number);
    if (d->o->nested_dir == NULL) {
        diff_leave_out(d, home, "changes in a repository within the tree", 0);
        return 0;
    }
    const char *path = arena_printf(a, "%s/%s", d->o->nested_dir, name);
    int r = file_mkdirs(AT_FDCWD, d->o->nested_dir, 0700, d->e);
    CLEANUP(fd)
    int fd = r < 0 ? r : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        return r < 0 ? r : ERR_SYS_AS(d->e, ERR_OUTPUT, "create '%s'", path);
    }
    struct json *o = json_object(a);
    json_setc(a, o, "path", json_cstr(a, home));
    json_setc(a, o, "patch", json_cstr(a, name));
    json_push(a, d->result->nested, o);
    return diff_write(d, home, fd);
}

static int write_nested(struct diff *d)
{
    const struct diff_side *sides[] = { &d->before, &d->after };
    int r = 0;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; r == 0 && i < sides[k]->len; i++) {
            const struct diff_entry *x = &sides[k]->items[i];
            const char *home = x->dropped ? "" : diff_home_of(d, x->path);
            if (home[0] != '\0' && !is_listed(d->result->nested, home)) {
                r = add_nested(d, home);
            }
        }
    }
    return r;
}

static bool is_empty(const struct diff_side *side)
{
    for (size_t i = 0; i < side->len; i++) {
        if (!side->items[i].dropped) {
            return false;
        }
    }
    return true;
}

static int make_repo(struct diff *d)
{
    const struct diff_opts *o = d->o;
    d->git_dir = arena_printf(d->arena, "%s/git", o->scratch);
    int r = file_mkdirs(AT_FDCWD, o->scratch, 0700, d->e);
    return r < 0 ? r : git_make_repo(d->git_dir, NULL, o->repo != NULL && o->repo->sha256, d->e);
}

static void leave_out_unseen(struct diff *d)
{
    for (size_t i = 0; i < json_len(d->o->unseen); i++) {
        const struct json *o = json_item(d->o->unseen, i);
        diff_leave_out(d, json_cstring(json_get(o, "path"), "?"),
                       json_cstring(json_get(o, "why"), "?"), 0);
        d->result->withheld++;
    }
}

static int make(struct diff *d)
{
    leave_out_unseen(d);
    int r = diff_collect_sides(d);
    if (r < 0 || (is_empty(&d->before) && is_empty(&d->after) && d->o->delta->len < 2)) {
        return r;
    }
    r = make_repo(d);
    r = r < 0 ? r : diff_find_blobs(d);
    r = r < 0 ? r : diff_select(d);
    if (r < 0 || (is_empty(&d->before) && is_empty(&d->after))) {
        return r;
    }
    r = diff_write(d, "", d->o->patch_fd);
    r = r < 0 ? r : diff_read_status(d);
    return r < 0 ? r : write_nested(d);
}

static void side_done(struct diff_side *side)
{
    free(side->items);
    pathmap_done(&side->index);
}

int diff_make(struct arena *a, const struct diff_opts *o, struct diff_result *ret, struct err *e)
{
    struct stat st;
    struct diff d = { .arena = a, .o = o, .result = ret, .blobs_fd = -1, .e = e };
    *ret = (struct diff_result) {
        .files = json_array(a),
        .left_out = json_array(a),
        .ignored_files = json_array(a),
        .source_changed = json_array(a),
        .nested = json_array(a),
        .new_repositories = json_array(a),
    };
    int r = make(&d);
    side_done(&d.before);
    side_done(&d.after);
    cleanup_fd(&d.blobs_fd);
    (void)!file_remove_tree(AT_FDCWD, o->scratch, NULL);
    ret->patch_bytes = fstat(o->patch_fd, &st) == 0 ? st.st_size : 0;
    ret->no_changes = ret->patch_bytes == 0 && json_len(ret->nested) == 0 && ret->withheld == 0;
    return r < 0 ? err_wrap(e, "diff") : 0;
}

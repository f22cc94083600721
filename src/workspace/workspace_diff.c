/* SPDX-License-Identifier: MIT
 *
 * What came of a view: its delta, and from that the patch.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/left_out.h"
#include "workspace/listing.h"
#include "workspace/workspace_priv.h"

/* The tree's own git directory is passed over, however much an agent committed. */
bool workspace_skip(void *arg, const char *path)
{
    const struct workspace *w = arg;
    return strcmp(path, ".git") == 0 || (w->inner != NULL && strcmp(path, w->inner) == 0);
}

struct search {
    struct workspace *w;
    struct arena *a;
    struct json *unseen;
};

static bool is_skipped(void *arg, const char *path)
{
    struct search *s = arg;
    return workspace_skip(s->w, path);
}

void workspace_note_left_out(struct arena *a, struct json *list, const char *path, const char *why)
{
    enum { SHOWN = 200 };
    struct json *o = json_object(a);
    struct str shown = str_slice(str_of(path), 0, SHOWN);
    const char *more = strlen(path) > SHOWN ? "…" : "";
    json_setc(a, o, "path", json_cstr(a, arena_printf(a, "%.*s%s", STR_ARG(shown), more)));
    json_setc(a, o, "why", json_cstr(a, why));
    json_push(a, list, o);
}

static void on_left_out(void *arg, const char *path, const char *why)
{
    struct search *s = arg;
    workspace_note_left_out(s->a, s->unseen, path, why);
}

static int find_delta(struct search *s, struct delta *d, struct err *e)
{
    struct workspace *w = s->w;
    struct delta_filter skip = { is_skipped, s, on_left_out,
                                 .unlock = w->kind != WORKSPACE_IN_PLACE };
    if (w->layered) {
        return delta_of_upper(d, w->tree_fd, w->base_fd, w->marks, &skip, e);
    }
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    CLEANUP(baseline) struct baseline b = { 0 };
    int r = file_read(w->dir_fd, "baseline", SIZE_MAX, &text, e);
    r = r < 0 ? r : baseline_parse(&b, buf_str(&text), e);
    return r < 0 ? r : delta_of_copy(d, w->tree_fd, &b, &skip, e);
}

static const char *const *hidden_list(const struct workspace *w, struct arena *a)
{
    size_t n = json_len(w->hidden);
    const char **list = arena_array(a, n + 1, sizeof *list);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const char *path = json_cstring(json_item(w->hidden, i), NULL);
        if (path != NULL) {
            list[len++] = path;
        }
    }
    return list;
}

/* Anything but directories that are in both, of which the root is always one. */
static bool has_changes(const struct delta *d)
{
    for (size_t i = 0; i < d->len; i++) {
        if (d->items[i].kind != DELTA_DIR) {
            return true;
        }
    }
    return false;
}

static int drop_all_but(int dir_fd, const char *const *keep, struct err *e)
{
    CLEANUP(listing) struct listing names;
    int r = listing_read(&names, dir_fd, e);
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        bool kept = false;
        for (size_t k = 0; keep[k] != NULL; k++) {
            kept = kept || strcmp(keep[k], names.items[i]) == 0;
        }
        r = kept ? 0 : file_remove_tree(dir_fd, names.items[i], e);
    }
    return r;
}

int workspace_keep_beside(struct workspace *w, const struct diff_beside *files, bool alone,
                          struct err *e)
{
    static const char *const layer[] = { "layer", "workspace.json", "left-out.list", NULL };
    static const char *const moved[] = { "left-out", "left-out.list", NULL };
    const char **paths = arena_array(w->arena, files->len + 1, sizeof *paths);
    const char **places = arena_array(w->arena, files->len + 1, sizeof *places);
    memcpy(paths, files->paths, files->len * sizeof *paths);
    memcpy(places, files->places, files->len * sizeof *places);
    paths[files->len] = places[files->len] = NULL;
    struct left_out list = { .paths = paths, .places = places, .since = w->created };
    if (!alone || w->layered) {
        int r = left_out_write(w->dir_fd, &list, e);
        return r < 0 || !alone || strcmp(w->base, w->source) != 0
                   ? r
                   : drop_all_but(w->dir_fd, layer, e);
    }
    int r = left_out_move(w->dir_fd, w->tree_fd, &list, e);
    return r < 0 ? r : drop_all_but(w->dir_fd, moved, e);
}

int workspace_diff(struct workspace *w, struct arena *a, const struct workspace_diff_opts *o,
                   struct diff_result *ret, struct err *e)
{
    CLEANUP(delta) struct delta d;
    delta_init(&d);
    bool live = strcmp(w->base, w->source) == 0 && w->kind != WORKSPACE_IN_PLACE;
    struct diff_opts opts = {
        .delta = &d,
        .base_fd = w->base_fd,
        .base_commit = w->baseline_commit,
        .new_fd = w->tree_fd,
        .is_private = w->kind != WORKSPACE_IN_PLACE,
        .repo = w->has_repo ? &w->repo : NULL,
        .objects = w->has_repo && w->kind != WORKSPACE_OVERLAY &&
                           !(w->repo.foreign && w->kind == WORKSPACE_IN_PLACE)
                       ? workspace_objects(w)
                       : NULL,
        .base_git = w->kind == WORKSPACE_IN_PLACE ? workspace_place(w, "git") : NULL,
        .scratch = workspace_place(w, "scratch"),
        .hidden = hidden_list(w, a),
        .patch_fd = o->patch_fd,
        .nested_dir = o->nested_dir,
        .max_file = o->max_file,
        .changed_since = live ? w->created : 0,
    };
    struct search search = { w, a, json_array(a) };
    opts.unseen = search.unseen;
    int r = find_delta(&search, &d, e);
    if (r == 0 && has_changes(&d) && w->kind == WORKSPACE_IN_PLACE && w->baseline_commit == NULL) {
        r = workspace_name_contents(w, e);
        opts.base_commit = w->baseline_commit;
    }
    r = r < 0 ? r : diff_make(a, &opts, ret, e);
    if (r == 0) {
        workspace_note_new_repositories(w, &d, a, ret->new_repositories);
    }
    delta_lock(&d, w->tree_fd);
    return r;
}

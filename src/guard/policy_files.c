/* SPDX-License-Identifier: MIT
 *
 * The policy read_before_write: what is there may be overwritten only by who has seen it. A file
 * has been seen when it was read, or when it was written before: then its content is the agent's
 * own. Remembered are paths relative to the workspace, each once.
 */
#include "guard/guard_priv.h"

#include "data/pathmap.h"
#include "proc/helper_program.h"
#include "workspace/wspath.h"

/* As our own tools and the known harnesses call them. */
/* clang-format off */
static const char *const readers[] = {
    "read_file", "read", "Read", "acp:read*", "acp:Read", NULL,
};
static const char *const writers[] = {
    "write_file", "edit_file", "write", "edit", "replace", "Write", "Edit", "MultiEdit",
    "NotebookEdit", "acp:write*", "acp:edit*", "acp:replace", "acp:Write", "acp:Edit",
    "acp:MultiEdit", "acp:NotebookEdit", NULL,
};
/* clang-format on */

#define PATHS_MAX 1024 /* of one call; more is denied */

struct files {
    struct policy_names readers, writers;
    struct pathmap seen;
};

static int files_make(struct policy *p, const struct json *definition, struct err *e)
{
    struct files *f = ARENA_NEW(p->guard->arena, struct files);
    p->self = f;
    int r = policy_names_read(p, definition, "read_tools", readers, &f->readers, e);
    return r < 0 ? r : policy_names_read(p, definition, "write_tools", writers, &f->writers, e);
}

/* --- which files a call is about --- */

static void add_path(struct arena *a, struct json *out, const struct json *v)
{
    if (json_is(v, JSON_STRING)) {
        json_push(a, out, (struct json *)v);
    }
}

/* A list of paths or of objects with a path; or a map whose keys are paths. */
static void add_paths(struct arena *a, struct json *out, const struct json *v)
{
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < json_len(v); i++) {
        const struct json *item = json_item(v, i);
        add_path(a, out, json_is(item, JSON_OBJECT) ? json_get(item, "path") : item);
    }
    for (size_t i = 0; json_is(v, JSON_OBJECT) && i < json_len(v); i++) {
        add_path(a, out, json_string(a, v->object.members[i].key));
    }
}

/* Under all names that tools have for it: whatever is named must be fine. */
static struct json *paths_of(struct arena *a, const struct json *arguments)
{
    static const char *const single[] = { "path",     "file_path",     "filePath",
                                          "abs_path", "absolute_path", "notebook_path" };
    static const char *const lists[] = { "paths", "locations", "changes" };
    struct json *out = json_array(a);
    for (size_t i = 0; i < ARRAY_LEN(single); i++) {
        add_path(a, out, json_get(arguments, single[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        add_paths(a, out, json_get(arguments, lists[i]));
    }
    return out;
}

/* --- calls --- */

/* Read for each call: where the agent's view is becomes known only after the policies are made. */
static struct str workspace_root(const struct policy *p)
{
    const struct guard_opts *o = &p->guard->opts;
    return str_of(o->root != NULL || o->host == NULL ? o->root : o->host->cwd);
}

static enum policy_verdict check_path(const struct policy *p, struct guard_check *c,
                                      struct str path)
{
    const struct files *f = p->self;
    const struct guard_opts *o = &p->guard->opts;
    const char *folded;
    if (!wspath_fold(c->arena, workspace_root(p), path, &folded)) {
        return policy_deny(c, "Path '%.*s' is not in the workspace.",
                           STR_ARG(str_slice(path, 0, 512)));
    }
    if (o->exists == NULL || !o->exists(o->arg, str_of(folded)) || pathmap_has(&f->seen, folded)) {
        return POLICY_ALLOWS;
    }
    return policy_deny(c, "File '%s' must be read before overwriting.", folded);
}

static enum policy_verdict files_check(struct policy *p, struct guard_check *c)
{
    const struct files *f = p->self;
    if (!policy_names_match(&f->writers, &c->call)) {
        return POLICY_ALLOWS;
    }
    const struct json *paths = paths_of(c->arena, c->call.arguments);
    if (json_len(paths) == 0 || json_len(paths) > PATHS_MAX) {
        return policy_deny(c, "Tool '%.*s' does not say which file it writes.",
                           STR_ARG(c->call.tool));
    }
    for (size_t i = 0; i < json_len(paths); i++) {
        enum policy_verdict v = check_path(p, c, json_item(paths, i)->string);
        if (v != POLICY_ALLOWS) {
            return v;
        }
    }
    return POLICY_ALLOWS;
}

static struct json *files_note(struct policy *p, struct arena *a, const struct guard_call *call)
{
    const struct files *f = p->self;
    if (!policy_names_match(&f->readers, call) && !policy_names_match(&f->writers, call)) {
        return NULL;
    }
    const struct json *paths = paths_of(a, call->arguments);
    struct json *items = json_array(a);
    for (size_t i = 0; i < json_len(paths) && i < PATHS_MAX; i++) {
        const char *folded;
        if (wspath_fold(a, workspace_root(p), json_item(paths, i)->string, &folded) &&
            !pathmap_has(&f->seen, folded)) {
            struct json *item = json_object(a);
            json_setc(a, item, "tool", json_string(a, call->tool));
            json_setc(a, item, "path", json_cstr(a, folded));
            json_push(a, items, item);
        }
    }
    return items;
}

static void files_learn(struct policy *p, const struct json *item)
{
    struct files *f = p->self;
    const char *path = json_cstring(json_get(item, "path"), NULL);
    if (path != NULL) {
        pathmap_put(&f->seen, path, 1);
    }
}

static void files_forget(struct policy *p)
{
    struct files *f = p->self;
    pathmap_done(&f->seen);
    f->seen = (struct pathmap) { 0 };
}

const struct policy_kind policy_kind_files = {
    .type = "read_before_write",
    .make = files_make,
    .check = files_check,
    .note = files_note,
    .learn = files_learn,
    .forget = files_forget,
    .free = files_forget,
};

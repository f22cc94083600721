/* SPDX-License-Identifier: MIT
 *
 * A layer as it was written into the form that all others have: shorthands widened, paths absolute.
 */
#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "config/settings_priv.h"

/* --- shorthands --- */

static struct json *wrapped(struct arena *a, const char *key, struct json *v)
{
    struct json *wide = json_object(a);
    wide->line = v->line;
    wide->column = v->column;
    json_setc(a, wide, key, v);
    return wide;
}

/* [a, {path: b}] becomes [{path: a}, {path: b}]. */
static void widen_items(struct arena *a, struct json *list)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
        if (json_is(list->array.items[i], JSON_STRING)) {
            list->array.items[i] = wrapped(a, "path", list->array.items[i]);
        }
    }
}

void settings_widen(struct arena *a, struct json *tree)
{
    static const struct {
        const char *key, *inner;
        enum json_type type;
    } shorthands[] = {
        { "prompt", "text", JSON_STRING },      { "prompt", "sections", JSON_ARRAY },
        { "workspace", "path", JSON_STRING },   { "sandbox", "mode", JSON_STRING },
        { "output", "dir", JSON_STRING },       { "secrets", "names", JSON_ARRAY },
        { "gateway", "upstream", JSON_STRING },
    };
    for (size_t i = 0; i < ARRAY_LEN(shorthands); i++) {
        struct json *v = json_get(tree, shorthands[i].key);
        if (json_is(v, shorthands[i].type)) {
            json_setc(a, tree, shorthands[i].key, wrapped(a, shorthands[i].inner, v));
        }
    }
    widen_items(a, json_get(tree, "skills"));
    widen_items(a, json_get(json_get(tree, "output"), "artifacts"));
}

/* --- paths --- */

struct resolving {
    struct arena *a;
    const char *dir;
    struct err *e;
};

static int resolve_one(const struct resolving *w, struct json *v)
{
    char joined[PATH_MAX];
    char absolute[PATH_MAX];
    const char *path = json_cstring(v, NULL);
    if (path == NULL || path[0] == '\0') {
        return 0;
    }
    int r = path_join(w->dir, path, joined, sizeof joined, w->e);
    if (r == 0) {
        r = path_absolute(joined, absolute, sizeof absolute, w->e);
    }
    if (r == 0) {
        v->string = arena_str(w->a, str_of(absolute));
    }
    return r;
}

static int resolve_list(const struct resolving *w, const struct json *list)
{
    int r = 0;
    for (size_t i = 0; r == 0 && json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        r = resolve_one(w, json_item(list, i));
    }
    return r;
}

/* The member `key` of each object in the list. */
static int resolve_members(const struct resolving *w, const struct json *list, const char *key)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        r = resolve_one(w, json_get(json_item(list, i), key));
    }
    return r;
}

/* A command with a slash is a file beside the task; one without is looked for in PATH. */
static int resolve_program(const struct resolving *w, const struct json *command)
{
    struct json *program = json_item(command, 0);
    struct str name = json_str(program, STR_EMPTY);
    bool path = name.len > 0 && name.ptr[0] != '{' && memchr(name.ptr, '/', name.len) != NULL;
    return path ? resolve_one(w, program) : 0;
}

/* Programs and schemas of checks, at any depth that the shape allows. */
static int resolve_checks(const struct resolving *w, const struct json *rules)
{
    static const char *const groups[] = { "all", "any" };
    int r = resolve_program(w, json_get(rules, "command"));
    r = r < 0 ? r : resolve_one(w, json_get(rules, "schema"));
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(groups); i++) {
        const struct json *list = json_get(rules, groups[i]);
        for (size_t j = 0; r == 0 && j < json_len(list); j++) {
            r = resolve_checks(w, json_item(list, j));
        }
    }
    return r;
}

static int resolve_programs(const struct resolving *w, const struct json *tree)
{
    static const char *const lists[] = { "tools", "policies", "feedback" };
    int r = resolve_program(w, json_get(json_get(tree, "agent"), "command"));
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(lists); i++) {
        const struct json *list = json_get(tree, lists[i]);
        for (size_t j = 0; r == 0 && j < json_len(list); j++) {
            const struct json *item = json_item(list, j);
            r = resolve_program(w, json_get(item, "command"));
            r = r < 0 ? r : resolve_program(w, json_get(json_get(item, "mcp"), "command"));
        }
    }
    return r;
}

int settings_resolve_paths(struct arena *a, struct json *tree, const char *dir, struct err *e)
{
    static const char *const single[][2] = {
        { "prompt", "file" },    { "workspace", "path" },  { "output", "dir" },
        { "output", "schema" },  { "gateway", "script" },  { "gateway", "cassette" },
        { "gateway", "prices" }, { "session", "restore" }, { "session", "resume" },
    };
    static const char *const lists[][2] = {
        { "secrets", "files" }, { "sandbox", "read" },      { "sandbox", "write" },
        { "sandbox", "deny" },  { "workspace", "context" },
    };
    struct resolving w = { a, dir, e };
    int r = resolve_one(&w, json_get(json_get(json_get(tree, "prompt"), "overrides"), "dir"));
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(single); i++) {
        r = resolve_one(&w, json_get(json_get(tree, single[i][0]), single[i][1]));
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(lists); i++) {
        r = resolve_list(&w, json_get(json_get(tree, lists[i][0]), lists[i][1]));
    }
    r = r < 0 ? r : resolve_members(&w, json_get(json_get(tree, "workspace"), "mounts"), "source");
    r = r < 0 ? r : resolve_members(&w, json_get(tree, "skills"), "path");
    r = r < 0 ? r : resolve_checks(&w, json_get(tree, "completion"));
    return r < 0 ? r : resolve_programs(&w, tree);
}

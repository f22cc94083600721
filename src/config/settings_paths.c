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
static void widen_items(struct arena *a, struct json *list, const char *member)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
        if (json_is(list->array.items[i], JSON_STRING)) {
            list->array.items[i] = wrapped(a, member, list->array.items[i]);
        }
    }
}

/* How a plain value for this key is written: as text, or as a list. */
static enum json_type plain_type(const struct setting *s)
{
    return s->kind == SHAPE_LIST || s->kind == SHAPE_STRINGS ? JSON_ARRAY : JSON_STRING;
}

/* `prompt: text` becomes `prompt: {text: text}`. */
static void widen_section(struct arena *a, struct json *tree, const struct setting *section)
{
    struct json *v = setting_value(tree, section->key);
    struct str rest = str_of(section->shorthand);
    while (v != NULL && rest.ptr != NULL) {
        const char *member = arena_dup(a, str_split(&rest, '|'));
        const char *key = arena_printf(a, "%s.%s", section->key, member);
        const struct setting *s = setting_find(settings_table, str_of(key));
        if (s != NULL && json_is(v, plain_type(s))) {
            setting_put(a, tree, section->key, wrapped(a, member, v));
            return;
        }
    }
}

void settings_widen(struct arena *a, struct json *tree)
{
    for (const struct setting *s = settings_table; s->key != NULL; s++) {
        if (s->shorthand != NULL && s->kind == SHAPE_LIST) {
            widen_items(a, setting_value(tree, s->key), s->shorthand);
        } else if (s->shorthand != NULL) {
            widen_section(a, tree, s);
        }
    }
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

/* A command with a slash is a file beside the task; one without is looked for in PATH. */
static int resolve_program(const struct resolving *w, const struct json *command)
{
    struct json *program = json_item(command, 0);
    struct str name = json_str(program, STR_EMPTY);
    bool path = name.len > 0 && name.ptr[0] != '{' && memchr(name.ptr, '/', name.len) != NULL;
    return path ? resolve_one(w, program) : 0;
}

static int resolve_object(const struct resolving *w, const struct json *v,
                          const struct shape *table);

static int resolve_items(const struct resolving *w, const struct json *list,
                         const struct shape *table)
{
    int r = 0;
    for (size_t i = 0; r == 0 && table != NULL && i < json_len(list); i++) {
        r = resolve_object(w, json_item(list, i), table);
    }
    return r;
}

/* The path in a reference to an image: "oci-archive:./base.tar", "./rootfs". */
static int resolve_image(const struct resolving *w, struct json *v)
{
    static const char *const before[] = { "docker-archive:", "oci-archive:", "oci:", "dir:", "" };
    struct str text = json_str(v, STR_EMPTY);
    char joined[PATH_MAX];
    char absolute[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        struct str path = str_slice(text, strlen(before[i]), text.len);
        if (!str_starts(text, str_of(before[i])) || path.len == 0) {
            continue;
        }
        if (before[i][0] == '\0' && path.ptr[0] != '.' && path.ptr[0] != '/') {
            return 0; /* a name in a store */
        }
        int r = path_join(w->dir, arena_dup(w->a, path), joined, sizeof joined, w->e);
        r = r < 0 ? r : path_absolute(joined, absolute, sizeof absolute, w->e);
        if (r == 0) {
            v->string = str_of(arena_printf(w->a, "%s%s", before[i], absolute));
        }
        return r;
    }
    return 0;
}

static int resolve_value(const struct resolving *w, struct json *v, const struct shape *s)
{
    if (s->kind == SHAPE_STRING && s->key != NULL && strcmp(s->key, "image") == 0) {
        return resolve_image(w, v);
    }
    if (s->kind == SHAPE_PATH || s->kind == SHAPE_SOURCE) {
        return resolve_one(w, v);
    }
    if (s->kind == SHAPE_PATHS) {
        return resolve_list(w, v);
    }
    if (s->kind == SHAPE_COMMAND) {
        return resolve_program(w, v);
    }
    if (s->kind == SHAPE_LIST) {
        return resolve_items(w, v, s->inner);
    }
    return s->kind == SHAPE_OBJECT ? resolve_object(w, v, s->inner) : 0;
}

static int resolve_object(const struct resolving *w, const struct json *v,
                          const struct shape *table)
{
    int r = 0;
    for (const struct shape *s = table; r == 0 && s->kind != SHAPE_END; s++) {
        struct json *member = json_get(v, s->key);
        r = member == NULL ? 0 : resolve_value(w, member, s);
    }
    return r;
}

int settings_resolve_paths(struct arena *a, struct json *tree, const struct shape *shape,
                           const char *dir, struct err *e)
{
    return resolve_object(&(struct resolving) { a, dir, e }, tree, shape);
}

/* SPDX-License-Identifier: MIT
 *
 * Life of a script: read, given its variables, played, freed. The work is in script_*.c.
 */
#include "replay/script.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"
#include "data/yaml.h"
#include "replay/script_priv.h"

static struct script *script_new(const char *name)
{
    struct script *s = xcalloc(1, sizeof *s);
    s->arena = arena_new();
    s->file = arena_dup(s->arena, str_of(name));
    return s;
}

int script_check(const struct json *root, const char *name, struct err *e)
{
    CLEANUP(script) struct script *s = script_new(name);
    return script_read(s, root, e);
}

int script_parse(struct str text, const char *name, struct script **ret, struct err *e)
{
    struct json *root = NULL;
    CLEANUP(script) struct script *s = script_new(name);
    struct json_limits limits = { .max_bytes = SCRIPT_BYTES_MAX, .max_depth = 64 };
    int r = yaml_parse(s->arena, text, s->file, &limits, &root, e);
    r = r < 0 ? r : script_read(s, root, e);
    if (r < 0) {
        return r;
    }
    *ret = TAKE_PTR(s);
    return 0;
}

int script_load(const char *path, struct script **ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SCRIPT_BYTES_MAX);
    int r = file_read(AT_FDCWD, path, SCRIPT_BYTES_MAX, &text, e);
    return r < 0 ? r : script_parse(buf_str(&text), path, ret, e);
}

struct script *script_free(struct script *s)
{
    if (s == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < s->n_steps; i++) {
        s->steps[i].when.regex = regex_free(s->steps[i].when.regex);
    }
    s->arena = arena_free(s->arena);
    free(s);
    return NULL;
}

void script_reset(struct script *s)
{
    s->requests = 0;
    for (size_t i = 0; i < s->n_steps; i++) {
        s->steps[i].played = 0;
    }
}

const char *script_name(const struct script *s)
{
    return s->name;
}

struct str script_unplayed(const struct script *s, struct arena *a)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < s->n_steps; i++) {
        const struct script_step *t = &s->steps[i];
        if (t->played == 0) {
            buf_addf(&b, "%s'%s' (%u:%u)", b.len > 0 ? ", " : "", t->name, t->at->line,
                     t->at->column);
        }
    }
    return arena_str(a, buf_str(&b));
}

int script_set(struct script *s, struct str name, struct str value, struct err *e)
{
    if (json_find(s->vars, name) == NULL) {
        return ERR(e, ERR_CONFIG, "script '%s' has no variable '%.*s' in its 'vars'", s->name,
                   STR_ARG(str_slice(name, 0, 64)));
    }
    json_set(s->arena, s->vars, name, json_string(s->arena, value));
    return 0;
}

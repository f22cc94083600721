/* SPDX-License-Identifier: MIT
 *
 * The line that invokes a skill, and the uv command line; see skill_engine.h.
 */
#include "skill/skill_engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sha256.h"
#include "skill/skill.h"

#define SKILL_NAME "{skill}"

int skill_engine_invoke(const struct skill_engine *engine, const char *skill, const char *skill_dir,
                        struct buf *out, struct err *e)
{
    struct str line = engine->invoke == NULL ? STR_EMPTY : str_of(engine->invoke);
    size_t at = str_find(line, STR(SKILL_NAME));
    if (line.len > 0) {
        struct str after = str_slice(line, at + strlen(SKILL_NAME), line.len);
        return buf_printf(out, e, "%.*s%s%.*s", STR_ARG(str_slice(line, 0, at)),
                          at < line.len ? skill : "", STR_ARG(after));
    }
    return skill_dir == NULL
               ? buf_printf(out, e, "Use the skill named %s.", skill)
               : buf_printf(out, e,
                            "Use the skill named %s: read %s/SKILL.md first and do what it says.",
                            skill, skill_dir);
}

/* --- dependencies --- */

struct argv {
    const char **items;
    size_t len;
};

static void push(struct argv *v, const char *s)
{
    v->items[v->len++] = s;
}

static struct argv uv_run(struct arena *a, const struct json *dependencies, size_t more)
{
    size_t count = json_len(dependencies);
    struct argv v = { .items = arena_array(a, 2 * count + 4 + more, sizeof *v.items) };
    if (count == 0) {
        return v;
    }
    push(&v, "uv");
    push(&v, "run");
    for (size_t i = 0; i < count; i++) {
        push(&v, "--with");
        push(&v, arena_dup(a, dependencies->array.items[i]->string));
    }
    push(&v, "--");
    return v;
}

static const struct json *dependencies_of(const struct skill *s)
{
    return s->manifest == NULL ? NULL : s->manifest->dependencies;
}

const char *const *skill_runtime_prefix(struct arena *a, const struct skill *s)
{
    return uv_run(a, dependencies_of(s), 0).items;
}

const char *const *skill_runtime_probe(struct arena *a, const struct skill *s)
{
    struct argv v = uv_run(a, dependencies_of(s), 3);
    if (v.len == 0) {
        return NULL;
    }
    push(&v, "python");
    push(&v, "-c");
    push(&v, "print('ok')");
    return v.items;
}

static int by_text(const void *a, const void *b)
{
    return str_cmp((*(const struct json *const *)a)->string,
                   (*(const struct json *const *)b)->string);
}

const char *skill_probe_key(struct arena *a, const struct skill *s, const char *uv_version)
{
    const struct json *list = dependencies_of(s);
    size_t count = json_len(list);
    const struct json **sorted = arena_array(a, count, sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = list->array.items[i];
    }
    qsort(sorted, count, sizeof *sorted, by_text);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_addf(&text, "%.*s\n", STR_ARG(str_trim(str_of(uv_version))));
    for (size_t i = 0; i < count; i++) {
        buf_addf(&text, "%.*s\n", STR_ARG(sorted[i]->string));
    }
    char hash[SHA256_HEX];
    sha256_hex(buf_str(&text), hash);
    return arena_dup(a, str_of(hash));
}

/* SPDX-License-Identifier: MIT
 *
 * The table of engines, and the uv command line; see skill_engine.h.
 */
#include "skill/skill_engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sha256.h"
#include "skill/skill.h"

struct engine {
    const char *name;
    const char *before, *after; /* of the skill's name in the invoke line */
    const char *config;
};

#define SENTENCE "Use the skill named ", "."

static const struct engine engines[] = {
    { "claude", "/", "", "assets/claude_settings.json" },
    { "codebuddy", "$", "", NULL },
    { "codex", "$", "", "assets/codex_config.toml" },
    { "gemini", "/", " invoke", "assets/gemini_settings.json" },
    { "iflow", SENTENCE, "assets/iflow_settings.json" },
    { "kilo", SENTENCE, "assets/kilo_config.json" },
    { "opencode", "/skills ", "", "assets/opencode_config.json" },
    { "qwen", SENTENCE, "assets/qwen_config.json" },
};

static const struct engine *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        if (strcmp(engines[i].name, name) == 0) {
            return &engines[i];
        }
    }
    return NULL;
}

const char *skill_engine_name(const char *adapter)
{
    return strcmp(adapter, "claude-code") == 0 ? "claude" : adapter;
}

const char *skill_engine_config_path(const char *engine)
{
    const struct engine *found = find(engine);
    return found == NULL ? NULL : found->config;
}

int skill_engine_invoke(const char *engine, const char *skill, const char *skill_dir,
                        struct buf *out, struct err *e)
{
    const struct engine *found = find(engine);
    if (found != NULL) {
        return buf_printf(out, e, "%s%s%s", found->before, skill, found->after);
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

/* SPDX-License-Identifier: MIT
 *
 * Command lines of uv, and what its output means; see skill_dependencies.h.
 */
#include "skill/skill_dependencies.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/macro.h"
#include "base/sha256.h"
#include "data/toml.h"
#include "skill/skill.h"

/* What is kept of uv's explanation. */
enum { FAILURE_MAX = 600 };
/* Indexes and directories that are looked at; more are left out. */
enum { SOURCES_MAX = 64 };

const struct json *skill_dependencies(const struct skill *s)
{
    const struct json *list = s->manifest == NULL ? NULL : s->manifest->dependencies;
    return json_len(list) == 0 ? NULL : list;
}

/* --- key --- */

static int by_text(const void *a, const void *b)
{
    return str_cmp((*(const struct json *const *)a)->string,
                   (*(const struct json *const *)b)->string);
}

const char *skill_dependencies_key(struct arena *a, const struct skill *s,
                                   const struct skill_dependencies_key *of)
{
    const struct json *list = skill_dependencies(s);
    size_t count = json_len(list);
    const struct json **sorted = arena_array(a, count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = list->array.items[i];
    }
    qsort(sorted, count, sizeof *sorted, by_text);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_addf(&text, "%.*s\n%s\n", STR_ARG(str_trim(str_of(of->uv_version))),
             of->python == NULL ? "" : of->python);
    for (const char *const *v = of->variables; v != NULL && *v != NULL; v++) {
        if (strncmp(*v, "UV_", 3) == 0 && strncmp(*v, "UV_CACHE_DIR=", 13) != 0) {
            buf_addf(&text, "%s\n", *v);
        }
    }
    for (size_t i = 0; i < count; i++) {
        buf_addf(&text, "%.*s\n", STR_ARG(sorted[i]->string));
    }
    char hash[SHA256_HEX];
    sha256_hex(buf_str(&text), hash);
    return arena_dup(a, str_of(hash));
}

/* --- commands --- */

const char *const *skill_uv_venv(struct arena *a, const char *python, const char *dir)
{
    const char *all[] = { "uv",
                          "venv",
                          "--quiet",
                          "--color",
                          "never",
                          "--no-project",
                          "--relocatable",
                          dir,
                          python == NULL ? NULL : "--python",
                          python };
    const char **argv = arena_array(a, ARRAY_LEN(all) + 1, sizeof *argv);
    memcpy(argv, all, sizeof all);
    return argv;
}

const char *const *skill_uv_install(struct arena *a, const struct skill *s, const char *dir,
                                    bool wheels_only)
{
    const struct json *list = skill_dependencies(s);
    const char *const words[] = { "uv",       "pip",
                                  "install",  "--quiet",
                                  "--color",  "never",
                                  "--python", arena_printf(a, "%s/bin/python", dir) };
    const char **argv = arena_array(a, ARRAY_LEN(words) + json_len(list) + 4, sizeof *argv);
    size_t n = ARRAY_LEN(words);
    memcpy(argv, words, sizeof words);
    if (wheels_only) {
        argv[n++] = "--only-binary";
        argv[n++] = ":all:";
    }
    argv[n++] = "--"; /* a requirement is never an option */
    for (size_t i = 0; i < json_len(list); i++) {
        argv[n++] = json_cstring(json_item(list, i), "");
    }
    return argv;
}

/* --- failures --- */

bool skill_uv_lacks_wheel(struct str output)
{
    return str_find(output, STR("wheel")) < output.len ||
           str_find(output, STR("build")) < output.len;
}

/* "pandas[x]>=2 ; …" → "pandas" */
static struct str name_of(struct str requirement)
{
    size_t n = 0;
    while (n < requirement.len && requirement.ptr[n] != '\0' &&
           strchr(" [<>=!~;@(,", requirement.ptr[n]) == NULL) {
        n++;
    }
    return str_slice(requirement, 0, n);
}

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* As a word of its own; '-', '_' and case are not distinguished, as in names of packages. */
static bool names(struct str output, struct str name)
{
    for (size_t i = 0; name.len > 0 && i + name.len <= output.len; i++) {
        size_t n = 0;
        while (n < name.len) {
            char x = output.ptr[i + n];
            char y = name.ptr[n];
            x = (char)(x == '_' || x == '.' ? '-' : x >= 'A' && x <= 'Z' ? x + 32 : x);
            y = (char)(y == '_' || y == '.' ? '-' : y >= 'A' && y <= 'Z' ? y + 32 : y);
            if (x != y) {
                break;
            }
            n++;
        }
        bool before = i > 0 && is_word_byte(output.ptr[i - 1]);
        bool after = i + name.len < output.len && is_word_byte(output.ptr[i + name.len]);
        if (n == name.len && !before && !after) {
            return true;
        }
    }
    return false;
}

static void add_requirements(struct buf *text, const struct json *list, struct str output)
{
    bool any = false;
    for (size_t i = 0; i < json_len(list); i++) {
        any = any || names(output, name_of(json_str(json_item(list, i), STR_EMPTY)));
    }
    const char *comma = "";
    for (size_t i = 0; i < json_len(list); i++) {
        struct str one = json_str(json_item(list, i), STR_EMPTY);
        if (!any || names(output, name_of(one))) {
            buf_addf(text, "%s%.*s", comma, STR_ARG(one));
            comma = ", ";
        }
    }
}

/* Without the marks that uv draws before a line. */
static struct str strip_marks(struct str line)
{
    static const char *const marks[] = { "error:", "cause:", "Caused by:", "\xc3\x97" };
    line = str_trim(line);
    while (line.len > 2 && (unsigned char)line.ptr[0] == 0xe2) {
        line = str_trim(str_slice(line, 3, line.len)); /* box drawing, arrows: three bytes each */
    }
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (str_starts(line, str_of(marks[i]))) {
            line = str_trim(str_slice(line, strlen(marks[i]), line.len));
        }
    }
    return line;
}

const char *skill_uv_failure(struct arena *a, const struct skill *s, struct str output)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "uv could not install ");
    add_requirements(&text, skill_dependencies(s), output);
    const char *between = ": ";
    struct str rest = str_slice(output, 0, str_utf8_prefix(output));
    while (rest.ptr != NULL) {
        struct str line = strip_marks(str_split(&rest, '\n'));
        if (line.len > 0 && !str_starts(line, STR("hint:"))) {
            buf_addf(&text, "%s%.*s", between, STR_ARG(line));
            between = "; ";
        }
    }
    struct str all = buf_str(&text);
    if (all.len > FAILURE_MAX) {
        all = str_slice(all, 0, FAILURE_MAX);
        all.len = str_utf8_prefix(all);
        return arena_printf(a, "%.*s…", STR_ARG(all));
    }
    return arena_dup(a, all);
}

/* --- indexes --- */

struct sources {
    struct arena *a;
    const char **hosts;
    size_t n_hosts;
    const char **paths;
    size_t n_paths;
};

static void add_source(const char **list, size_t *n, const char *text)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(list[i], text) == 0) {
            return;
        }
    }
    if (*n < SOURCES_MAX) {
        list[(*n)++] = text;
    }
}

static void add_host(struct sources *o, const char *host)
{
    add_source(o->hosts, &o->n_hosts, host);
    if (strcmp(host, "pypi.org") == 0) {
        add_source(o->hosts, &o->n_hosts, "files.pythonhosted.org");
    }
}

/* "https://user:pass@host:8080/simple" → "host:8080"; "NAME=URL" has a name before. */
static void add_url(struct sources *o, struct str text)
{
    size_t scheme = str_find(text, STR("://"));
    if (scheme == text.len) {
        if (text.len > 0 && text.ptr[0] == '/') {
            add_source(o->paths, &o->n_paths, arena_dup(o->a, text));
        }
        return;
    }
    struct str rest = str_slice(text, scheme + 3, text.len);
    if (str_ends(str_slice(text, 0, scheme), STR("file"))) {
        add_source(o->paths, &o->n_paths, arena_dup(o->a, rest));
        return;
    }
    size_t end = 0;
    size_t from = 0;
    while (end < rest.len && strchr("/?#", rest.ptr[end]) == NULL) {
        from = rest.ptr[end] == '@' ? end + 1 : from;
        end++;
    }
    if (end > from) {
        add_host(o, arena_dup(o->a, str_slice(rest, from, end)));
    }
}

static void add_list(struct sources *o, struct str text, bool commas)
{
    while (text.ptr != NULL) {
        struct str word = str_split(&text, ' ');
        while (word.ptr != NULL) {
            add_url(o, str_trim(str_split(&word, commas ? ',' : ' ')));
        }
    }
}

static void add_value(struct sources *o, const struct json *v)
{
    if (json_is(v, JSON_STRING)) {
        add_url(o, v->string);
    }
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < json_len(v); i++) {
        add_value(o, json_item(v, i));
    }
    if (json_is(v, JSON_OBJECT)) {
        add_value(o, json_get(v, "url"));
    }
}

/* True: it names an index that takes the place of PyPI. */
static bool add_table(struct sources *o, const struct json *table)
{
    static const char *const keys[] = { "index-url", "extra-index-url", "index", "find-links" };
    bool other = json_get(table, "index-url") != NULL;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        add_value(o, json_get(table, keys[i]));
    }
    const struct json *list = json_get(table, "index");
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        const struct json *is_default = json_get(json_item(list, i), "default");
        other = other || (json_is(is_default, JSON_BOOL) && is_default->boolean);
    }
    return other;
}

static bool add_config(struct sources *o, struct str config)
{
    struct json *tree = NULL;
    if (config.len == 0 || toml_parse(o->a, config, NULL, &tree, NULL) < 0) {
        return false;
    }
    bool other = add_table(o, tree);
    return add_table(o, json_get(tree, "pip")) || other;
}

void skill_uv_sources(struct arena *a, const char *const *variables, struct str config,
                      struct skill_uv_sources *ret)
{
    static const struct {
        const char *name;
        bool instead; /* of PyPI */
        bool commas;
    } known[] = {
        { "UV_DEFAULT_INDEX", true, false }, { "UV_INDEX_URL", true, false },
        { "UV_INDEX", false, false },        { "UV_EXTRA_INDEX_URL", false, false },
        { "UV_FIND_LINKS", false, true },
    };
    struct sources o = { .a = a,
                         .hosts = arena_array(a, SOURCES_MAX + 1, sizeof *o.hosts),
                         .paths = arena_array(a, SOURCES_MAX + 1, sizeof *o.paths) };
    bool other = add_config(&o, config);
    for (const char *const *v = variables; v != NULL && *v != NULL; v++) {
        struct str value = str_of(*v);
        struct str name = str_split(&value, '=');
        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
            if (value.len > 0 && str_eqc(name, known[i].name)) {
                add_list(&o, value, known[i].commas);
                other = other || known[i].instead;
            }
        }
    }
    if (!other) {
        add_host(&o, "pypi.org");
    }
    *ret = (struct skill_uv_sources) { .hosts = o.hosts, .paths = o.paths };
}

/* SPDX-License-Identifier: MIT
 *
 * Applying an override file: its header must fit, then each entry either matches the hash of what
 * it was written for and replaces it, or is dropped and listed. Tools and examples are in
 * section_override_example.c.
 */
#include "prompt/section_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/yaml.h"
#include "prompt/section_override_priv.h"

int section_override_fail(const struct section_override *o, const struct json *at, const char *fmt,
                          ...)
{
    char text[300];
    char where[JSON_AT_LEN];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ERR(o->e, ERR_CONFIG, "%s: %s", json_at(o->file, at, where), text);
}

void section_override_drop(struct section_override *o, const char *kind, struct str name,
                           const char *reason)
{
    struct section_tree *tree = o->tree;
    if (tree->dropped_len == tree->dropped_cap) {
        tree->dropped_cap = tree->dropped_cap == 0 ? 8 : tree->dropped_cap * 2;
        struct section_dropped *more = arena_array(tree->arena, tree->dropped_cap, sizeof *more);
        if (tree->dropped_len > 0) {
            memcpy(more, tree->dropped, tree->dropped_len * sizeof *more);
        }
        tree->dropped = more;
    }
    tree->dropped[tree->dropped_len++] = (struct section_dropped) {
        .what = str_of(arena_printf(tree->arena, "%s %.*s", kind, STR_ARG(name))), .reason = reason
    };
}

int section_override_match(struct section_override *o, const struct json *entry, const char *member,
                           const char *hash)
{
    const struct json *given = json_get(entry, member);
    struct str text = json_str(given, STR_EMPTY);
    if (!sha256_is_hex(text)) {
        return section_override_fail(o, given == NULL ? entry : given,
                                     "'%s' must be a hash of 64 lower-case hexadecimal digits",
                                     member);
    }
    return str_eqc(text, hash);
}

int section_override_text(struct section_override *o, const struct json *entry, const char *member,
                          const struct json **ret)
{
    const struct json *v = json_get(entry, member);
    *ret = v == NULL || json_is(v, JSON_NULL) ? NULL : v;
    if (*ret != NULL && !json_is(v, JSON_STRING)) {
        return section_override_fail(o, v, "'%s' must be a string", member);
    }
    return 0;
}

static int check_header(struct section_override *o, const struct json *file, const char *tag)
{
    const struct {
        const char *member;
        struct str expected;
    } words[] = { { "ns", o->tree->ns }, { "prompt_key", o->tree->key }, { "tag", str_of(tag) } };
    if (!json_is(file, JSON_OBJECT)) {
        return section_override_fail(o, file, "an override file is an object");
    }
    const struct json *version = json_get(file, "version");
    if (!json_is(version, JSON_INT) || version->integer != OVERRIDE_VERSION) {
        return section_override_fail(o, version == NULL ? file : version,
                                     "an override file has version %d", OVERRIDE_VERSION);
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const struct json *v = json_get(file, words[i].member);
        if (!json_is(v, JSON_STRING) || !str_eq(v->string, words[i].expected)) {
            return section_override_fail(o, v == NULL ? file : v,
                                         "'%s' must be '%.*s', as in the prompt it is for",
                                         words[i].member, STR_ARG(words[i].expected));
        }
    }
    return 0;
}

/* "a/b" to the section, slashes between keys. */
static struct section *find_slashed(const struct section_tree *tree, struct str path)
{
    CLEANUP(buf) struct buf dotted = BUF_INIT(BUF_TEXT);
    struct str rest = path;
    while (rest.ptr != NULL && rest.len > 0) {
        struct str part = str_split(&rest, '/');
        if (part.len > 0) {
            buf_adds(&dotted, dotted.len > 0 ? "." : "");
            buf_add(&dotted, part);
        }
    }
    return section_find(tree, buf_str(&dotted));
}

static int replace_texts(struct section_override *o, struct section *s, const struct json *body,
                         const struct json *summary, const struct json *visibility)
{
    s->body = (struct section_text) { .source = body, .file = o->file };
    int r = section_compile(o->tree, s, "body", &s->body, o->e);
    if (r == 0 && summary != NULL) {
        s->summary = (struct section_text) { .source = summary, .file = o->file };
        r = section_compile(o->tree, s, "summary", &s->summary, o->e);
    }
    if (r == 0 && visibility != NULL) {
        bool is_summary = str_eqc(visibility->string, "summary");
        s->override_visibility = is_summary ? SECTION_SUMMARY : SECTION_FULL;
        if (is_summary && s->summary.template == NULL) {
            return section_override_fail(o, visibility, "section '%.*s' has no summary to show",
                                         STR_ARG(s->path));
        }
    }
    s->overridden = true;
    return r;
}

static int apply_section(struct section_override *o, struct str path, const struct json *entry)
{
    const struct json *summary;
    const struct json *visibility;
    if (!json_is(entry, JSON_OBJECT)) {
        return section_override_fail(o, entry, "the override of a section is an object");
    }
    int r = section_override_text(o, entry, "summary", &summary);
    r = r < 0 ? r : section_override_text(o, entry, "visibility", &visibility);
    if (r < 0) {
        return r;
    }
    if (visibility != NULL && !str_eqc(visibility->string, "full") &&
        !str_eqc(visibility->string, "summary")) {
        return section_override_fail(o, visibility, "visibility must be 'full' or 'summary'");
    }
    struct section *s = find_slashed(o->tree, path);
    if (s == NULL || s->hash[0] == '\0' || !s->accepts_overrides) {
        section_override_drop(o, "section", path, s == NULL ? "unknown" : "not accepted");
        return 0;
    }
    r = section_override_match(o, entry, "expected_hash", s->hash);
    if (r <= 0) {
        if (r == 0) {
            section_override_drop(o, "section", path, "stale");
        }
        return r;
    }
    const struct json *body = json_get(entry, "body");
    if (!json_is(body, JSON_STRING)) {
        return section_override_fail(o, body == NULL ? entry : body, "'body' must be a string");
    }
    return replace_texts(o, s, body, summary, visibility);
}

static int apply_sections(struct section_override *o, const struct json *sections)
{
    int r = 0;
    if (sections == NULL || json_is(sections, JSON_NULL)) {
        return 0;
    }
    if (!json_is(sections, JSON_OBJECT)) {
        return section_override_fail(o, sections, "'sections' must be an object");
    }
    for (size_t i = 0; i < sections->object.len && r >= 0; i++) {
        r = apply_section(o, sections->object.members[i].key, sections->object.members[i].value);
    }
    return r < 0 ? r : 0;
}

int section_tree_override(struct section_tree *tree, const struct json *overrides, const char *file,
                          const char *tag, struct err *e)
{
    struct err local;
    struct section_override o = { .tree = tree, .e = e == NULL ? &local : e };
    o.file = arena_dup(tree->arena, str_of(file));
    int r = check_header(&o, overrides, tag);
    r = r < 0 ? r : apply_sections(&o, json_get(overrides, "sections"));
    r = r < 0 ? r : section_override_tools(&o, json_get(overrides, "tools"));
    return r < 0
               ? r
               : section_override_task_examples(&o, json_get(overrides, "task_example_overrides"));
}

const struct section_dropped *section_tree_dropped(const struct section_tree *tree, size_t *ret_len)
{
    *ret_len = tree->dropped_len;
    return tree->dropped;
}

/* --- finding the file --- */

#define DEFAULT_ROOT ".weakincentives/prompts/overrides"

/* The nearest directory from here upwards that has a .git. */
static bool find_repository(char out[PATH_MAX])
{
    char probe[PATH_MAX + 8];
    if (path_absolute(".", out, PATH_MAX, NULL) < 0) {
        return false;
    }
    for (;;) {
        struct stat st;
        (void)snprintf(probe, sizeof probe, "%s/.git", out);
        if (stat(probe, &st) == 0) {
            return true;
        }
        char *slash = strrchr(out, '/');
        if (slash == NULL || slash == out) {
            return false;
        }
        *slash = '\0';
    }
}

static bool is_tag(struct str tag)
{
    bool ok =
        tag.len > 0 && tag.len <= 64 && tag.ptr[0] != '.' && tag.ptr[0] != '_' && tag.ptr[0] != '-';
    for (size_t i = 0; i < tag.len && ok; i++) {
        char c = tag.ptr[i];
        ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    }
    return ok;
}

int section_overrides_load(const struct section_tree *tree, const char *root, const char *tag,
                           struct arena *a, struct section_overrides *ret, struct err *e)
{
    char repository[PATH_MAX];
    *ret = (struct section_overrides) { 0 };
    if (!is_tag(str_of(tag))) {
        return ERR(
            e, ERR_CONFIG,
            "the tag of an override '%s' must be made of lower-case letters, digits, '.', '_' "
            "and '-'",
            tag);
    }
    if (root == NULL && !find_repository(repository)) {
        return 0; /* no repository, no overrides */
    }
    const char *path = arena_printf(a, "%s%s/%.*s/%.*s/%s.json", root != NULL ? root : repository,
                                    root != NULL ? "" : "/" DEFAULT_ROOT, STR_ARG(tree->ns),
                                    STR_ARG(tree->key), tag);
    if (!file_exists(AT_FDCWD, path)) {
        return 0;
    }
    struct json *v = NULL;
    int r = yaml_load(a, path, NULL, &v, e);
    if (r == 0) {
        *ret = (struct section_overrides) { v, path };
    }
    return r;
}

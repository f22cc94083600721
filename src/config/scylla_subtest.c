/* SPDX-License-Identifier: MIT
 *
 * Reading sub-tests of ProjectScylla; see scylla_subtest.h.
 */
#include "config/scylla_subtest.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/scylla_test.h"
#include "data/yaml.h"
#include "data/zip.h"

enum { NAMES_MAX = 1024 /* entries of a directory that are looked at, and resources of a kind */ };

static const struct json_limits limits = { .max_bytes = 1 << 20,
                                           .max_depth = 32,
                                           .max_values = 20000 };

struct subtest {
    struct arena *a;
    const char *file, *root;
    struct json *layer;
    struct err *e;
};

static int wrong(const struct subtest *s, const struct json *v, const char *key, const char *rule)
{
    char at[JSON_AT_LEN];
    return ERR(s->e, ERR_CONFIG, "%s: '%s' %s", json_at(s->file, v, at), key, rule);
}

/* --- directories --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in a directory, sorted, without those that begin with a dot; empty when there is none. */
static size_t list_dir(struct arena *a, const char *dir, const char ***ret)
{
    size_t n = 0;
    const char **names = arena_array(a, NAMES_MAX, sizeof *names);
    DIR *d = opendir(dir);
    for (struct dirent *entry; d != NULL && n < NAMES_MAX && (entry = readdir(d)) != NULL;) {
        if (entry->d_name[0] != '.') {
            names[n++] = arena_dup(a, str_of(entry->d_name));
        }
    }
    if (d != NULL) {
        closedir(d);
        qsort(names, n, sizeof *names, by_name);
    }
    *ret = names;
    return n;
}

/* "05-mojo.yaml" is 05, 05-mojo and mojo. */
static bool is_called(struct str name, struct str ending, struct str id)
{
    if (!str_ends(name, ending)) {
        return false;
    }
    struct str stem = str_slice(name, 0, name.len - ending.len);
    struct str rest = stem;
    struct str number = str_split(&rest, '-');
    return str_eq(stem, id) || str_eq(number, id) || (rest.ptr != NULL && str_eq(rest, id));
}

static const char *find_called(struct arena *a, const char *dir, const char *ending, struct str id)
{
    const char **names;
    size_t n = list_dir(a, dir, &names);
    for (size_t i = 0; i < n; i++) {
        if (is_called(str_of(names[i]), str_of(ending), id)) {
            return arena_printf(a, "%s/%s", dir, names[i]);
        }
    }
    return NULL;
}

/* --- resources --- */

static struct json *list_at(struct subtest *s, const char *key)
{
    struct json *list = json_get(s->layer, key);
    if (list == NULL) {
        list = json_array(s->a);
        json_setc(s->a, s->layer, key, list);
    }
    return list;
}

static struct json *section_at(struct subtest *s, const char *key)
{
    struct json *section = json_get(s->layer, key);
    if (section == NULL) {
        section = json_object(s->a);
        json_setc(s->a, s->layer, key, section);
    }
    return section;
}

/* A name that is one part of a path: a number is taken as it is written. */
static int name_of(struct subtest *s, const struct json *v, const char *key, struct str *ret)
{
    *ret = json_is(v, JSON_INT) ? str_of(arena_printf(s->a, "%lld", (long long)v->integer))
                                : json_str(v, STR_EMPTY);
    bool inner = ret->len > 0 && zip_name_fault(*ret) == NULL && ret->ptr[0] != '.' &&
                 memchr(ret->ptr, '/', ret->len) == NULL;
    return inner ? 0 : wrong(s, v, key, "must be a list of names");
}

static int missing(struct subtest *s, const struct json *v, struct str name, const char *folder)
{
    char at[JSON_AT_LEN];
    return ERR(s->e, ERR_INPUT, "%s: there is no '%.*s' in '%s/%s'", json_at(s->file, v, at),
               STR_ARG(str_slice(name, 0, 80)), s->root, folder);
}

/* Calls `take` for each name of a list. */
static int each_name(struct subtest *s, const struct json *list, const char *key,
                     int (*take)(struct subtest *s, const struct json *v, struct str name))
{
    int r = list == NULL || json_is(list, JSON_NULL) || json_is(list, JSON_ARRAY)
                ? 0
                : wrong(s, list, key, "must be a list of names");
    if (r == 0 && json_len(list) > NAMES_MAX) {
        return wrong(s, list, key, "has too many members");
    }
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        struct str name;
        r = name_of(s, json_item(list, i), key, &name);
        r = r < 0 ? r : take(s, json_item(list, i), name);
    }
    return r;
}

static int take_block(struct subtest *s, const struct json *v, struct str name)
{
    const char *dir = arena_printf(s->a, "%s/blocks", s->root);
    const char *file = find_called(s->a, dir, ".md", name);
    if (file == NULL) {
        return missing(s, v, name, "blocks");
    }
    json_push(s->a, list_at(s, "instructions"), json_cstr(s->a, file));
    return 0;
}

static bool add_skill(struct subtest *s, const char *dir)
{
    if (!file_exists(AT_FDCWD, arena_printf(s->a, "%s/SKILL.md", dir))) {
        return false;
    }
    struct json *skill = json_object(s->a);
    json_setc(s->a, skill, "path", json_cstr(s->a, dir));
    json_push(s->a, list_at(s, "skills"), skill);
    return true;
}

static int take_category(struct subtest *s, const struct json *v, struct str name)
{
    const char **names;
    const char *dir = arena_printf(s->a, "%s/skills/%.*s", s->root, STR_ARG(name));
    size_t n = list_dir(s->a, dir, &names), found = 0;
    for (size_t i = 0; i < n; i++) {
        found += add_skill(s, arena_printf(s->a, "%s/%s", dir, names[i]));
    }
    return found > 0 ? 0 : missing(s, v, name, "skills");
}

/* skills/NAME or skills/CATEGORY/NAME. */
static int take_skill(struct subtest *s, const struct json *v, struct str name)
{
    const char **names;
    const char *top = arena_printf(s->a, "%s/skills", s->root);
    if (add_skill(s, arena_printf(s->a, "%s/%.*s", top, STR_ARG(name)))) {
        return 0;
    }
    size_t n = list_dir(s->a, top, &names);
    for (size_t i = 0; i < n; i++) {
        if (add_skill(s, arena_printf(s->a, "%s/%s/%.*s", top, names[i], STR_ARG(name)))) {
            return 0;
        }
    }
    return missing(s, v, name, "skills");
}

/* agents/L2/ has the agents of level 2. */
static int take_level(struct subtest *s, const struct json *v, struct str name)
{
    const char **names;
    const char *dir = arena_printf(s->a, "%s/agents/L%.*s", s->root, STR_ARG(name));
    size_t n = list_dir(s->a, dir, &names), found = 0;
    for (size_t i = 0; i < n; i++) {
        if (str_ends(str_of(names[i]), STR(".md"))) {
            json_push(s->a, list_at(s, "agents"),
                      json_cstr(s->a, arena_printf(s->a, "%s/%s", dir, names[i])));
            found++;
        }
    }
    return found > 0 ? 0 : missing(s, v, name, "agents");
}

static int take_agent(struct subtest *s, const struct json *v, struct str name)
{
    const char **names;
    const char *top = arena_printf(s->a, "%s/agents", s->root);
    struct str stem = str_ends(name, STR(".md")) ? str_slice(name, 0, name.len - 3) : name;
    const char *file = find_called(s->a, top, ".md", stem);
    size_t n = list_dir(s->a, top, &names);
    for (size_t i = 0; file == NULL && i < n; i++) {
        file = find_called(s->a, arena_printf(s->a, "%s/%s", top, names[i]), ".md", stem);
    }
    if (file == NULL) {
        return missing(s, v, name, "agents");
    }
    json_push(s->a, list_at(s, "agents"), json_cstr(s->a, file));
    return 0;
}

/* --- servers and tools --- */

/* The name of a tool here: a-z, 0-9, _ and -. */
static const char *tool_name(struct arena *a, struct str name)
{
    char *ours = arena_dup(a, str_slice(name, 0, 60));
    for (char *p = ours; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
        *p = strchr("abcdefghijklmnopqrstuvwxyz0123456789_-", *p) == NULL ? '_' : *p;
    }
    return ours;
}

static int take_server(struct subtest *s, const struct json *server)
{
    struct arena *a = s->a;
    struct str name, source = json_str(json_get(server, "source"), STR_EMPTY);
    const struct json *given = json_is(server, JSON_OBJECT) ? json_get(server, "name") : server;
    int r = name_of(s, given == NULL ? server : given, "resources.mcp_servers", &name);
    if (r < 0) {
        return r;
    }
    struct json *tool = json_object(a), *mcp = json_object(a);
    struct json *command = json_get(server, "command");
    if (command == NULL) {
        command = json_array(a);
        json_push(a, command, json_cstr(a, "npx"));
        json_push(a, command, json_cstr(a, "-y"));
        json_push(a, command,
                  json_cstr(a, source.len == 0 ? arena_dup(a, name)
                                               : arena_printf(a, "@%.*s/%.*s", STR_ARG(source),
                                                              STR_ARG(name))));
    }
    const char *ours = tool_name(a, name);
    json_setc(a, mcp, "command", command);
    json_setc(a, mcp, "prefix", json_cstr(a, arena_printf(a, "%s_", ours)));
    json_setc(a, tool, "name", json_cstr(a, ours));
    json_setc(a, tool, "mcp", mcp);
    json_push(a, list_at(s, "tools"), tool);
    return 0;
}

static int take_servers(struct subtest *s, const struct json *list)
{
    int r = list == NULL || json_is(list, JSON_NULL) || json_is(list, JSON_ARRAY)
                ? 0
                : wrong(s, list, "resources.mcp_servers", "must be a list");
    for (size_t i = 0; r == 0 && i < json_len(list) && i < NAMES_MAX; i++) {
        r = take_server(s, json_item(list, i));
    }
    return r;
}

/* Only these tools of the harness, and those of the servers. */
static void restrict_tools(struct subtest *s, const struct json *names)
{
    struct arena *a = s->a;
    struct json *policy = json_object(a);
    struct json *allowed = json_copy(a, names);
    const struct json *servers = json_get(s->layer, "tools");
    for (size_t i = 0; i < json_len(servers); i++) {
        const char *name = json_cstring(json_get(json_item(servers, i), "name"), "");
        json_push(a, allowed, json_cstr(a, arena_printf(a, "%s_*", name)));
    }
    json_setc(a, policy, "type", json_cstr(a, "allow"));
    json_setc(a, policy, "tools", allowed);
    json_push(a, list_at(s, "policies"), policy);
}

static int nothing(struct subtest *s, const struct json *v, struct str name)
{
    return 0;
}

static int take_tools(struct subtest *s, const struct json *tools)
{
    const struct json *names = json_is(tools, JSON_OBJECT) ? json_get(tools, "enabled") : tools;
    names = names == NULL ? json_get(tools, "names") : names;
    if (names == NULL || json_is(names, JSON_NULL)) {
        return 0;
    }
    bool all = str_eqc(json_str(names, STR_EMPTY), "all") || json_bool(names, false);
    bool none = json_is(names, JSON_BOOL) && !names->boolean;
    int r = all || none ? 0 : each_name(s, names, "resources.tools", nothing);
    if (r == 0) {
        json_setc(s->a, section_at(s, "eval"), "tools_enabled", json_boolean(s->a, !none));
    }
    if (r == 0 && json_len(names) > 0 && json_is(names, JSON_ARRAY)) {
        restrict_tools(s, names);
    }
    return r;
}

/* --- the whole --- */

static int take_resources(struct subtest *s, const struct json *all)
{
    const struct json *skills = json_get(all, "skills");
    const struct json *agents = json_get(all, "agents");
    if (all != NULL && !json_is(all, JSON_NULL) && !json_is(all, JSON_OBJECT)) {
        return wrong(s, all, "resources", "must be a map");
    }
    int r = each_name(s, json_get(json_get(all, "claude_md"), "blocks"),
                      "resources.claude_md.blocks", take_block);
    r = r < 0 ? r
              : each_name(s, json_get(skills, "categories"), "resources.skills.categories",
                          take_category);
    r = r < 0 ? r : each_name(s, json_get(skills, "names"), "resources.skills.names", take_skill);
    r = r < 0 ? r : each_name(s, json_get(agents, "levels"), "resources.agents.levels", take_level);
    r = r < 0 ? r : each_name(s, json_get(agents, "names"), "resources.agents.names", take_agent);
    r = r < 0 ? r : take_servers(s, json_get(all, "mcp_servers"));
    return r < 0 ? r : take_tools(s, json_get(all, "tools"));
}

static int take_mode(struct subtest *s, const struct json *mode)
{
    struct str word = json_str(mode, STR("custom"));
    bool none = str_eqc(word, "none");
    if (!none && !str_eqc(word, "default") && !str_eqc(word, "custom")) {
        return wrong(s, mode, "system_prompt_mode", "must be 'none', 'default' or 'custom'");
    }
    if (none) {
        json_setc(s->a, section_at(s, "agent"), "system_prompt", json_cstr(s->a, "none"));
    }
    return 0;
}

int scylla_subtest_layer(struct arena *a, const struct json *tree, const char *file,
                         const char *root, struct json **ret, struct err *e)
{
    struct err local;
    struct subtest s = { a, file, root, json_object(a), e == NULL ? &local : e };
    *ret = s.layer;
    if (!json_is(tree, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "%s: expected a map", file);
    }
    const struct json *heirs = json_get(tree, "inherit_best_from");
    if (json_len(heirs) > 0) {
        char at[JSON_AT_LEN];
        return ERR(e, ERR_UNSUPPORTED,
                   "%s: 'inherit_best_from' needs the results of other tiers: name the resources "
                   "of their best sub-tests here",
                   json_at(file, heirs, at));
    }
    if (json_bool(json_get(tree, "agent_teams"), false)) {
        struct json *set = json_object(a);
        json_setc(a, set, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", json_cstr(a, "1"));
        json_setc(a, section_at(&s, "env"), "set", set);
    }
    int r = take_mode(&s, json_get(tree, "system_prompt_mode"));
    return r < 0 ? r : take_resources(&s, json_get(tree, "resources"));
}

int scylla_subtest_load(struct arena *a, const struct scylla_subtest_name *name, struct json **ret,
                        const char **ret_file, struct err *e)
{
    const char *tier = name->tier, *id = name->id;
    struct json *tree = NULL;
    char *lower = arena_dup(a, str_of(tier));
    for (char *p = lower; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
    }
    if (zip_name_fault(str_of(lower)) != NULL || zip_name_fault(str_of(id)) != NULL) {
        return ERR(e, ERR_USAGE, "'%.80s' of tier '%.80s' is not the name of a sub-test", id, tier);
    }
    const char *subtests = scylla_test_subtests(a, name->dir);
    const char *folder = arena_printf(a, "%s/%s", subtests == NULL ? "subtests" : subtests, lower);
    const char *file = subtests == NULL ? NULL : find_called(a, folder, ".yaml", str_of(id));
    *ret_file = file;
    if (file == NULL) {
        return ERR(e, ERR_INPUT, "there is no sub-test '%.80s' of tier '%.80s' in '%s'", id, tier,
                   folder);
    }
    int r = yaml_load(a, file, &limits, &tree, e);
    if (r == -ERR_LIMIT) {
        e->code = ERR_CONFIG;
        r = -ERR_CONFIG;
    }
    const char *root = arena_dup(a, str_n(subtests, strlen(subtests) - strlen("/subtests")));
    return r < 0 ? r : scylla_subtest_layer(a, tree, file, root, ret, e);
}

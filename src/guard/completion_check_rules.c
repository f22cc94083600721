/* SPDX-License-Identifier: MIT
 *
 * Rules of completion as tasks write them, into a tree.
 */
#include "data/schema.h"
#include "data/yaml.h"
#include "guard/completion_check_priv.h"
#include "proc/helper_program.h"
#include "workspace/wspath.h"

#define DEPTH_MAX  8
#define FILES_MAX  1000
#define ROUNDS_MAX 1000
/* Test suites talk; what is beyond is no check any more. */
#define COMMAND_OUTPUT ((size_t)16 << 20)

struct reading {
    struct completion *c;
    size_t depth;
    struct err *e;
};

static struct completion_node *node_add(struct completion *c, struct completion_node *parent,
                                        enum completion_kind kind)
{
    if (c->n == COMPLETION_NODES_MAX) {
        return NULL;
    }
    struct completion_node *node = ARENA_NEW(c->arena, struct completion_node);
    node->kind = kind;
    node->index = c->n;
    node->parent = parent;
    c->nodes[c->n++] = node;
    if (parent != NULL) {
        *(parent->last == NULL ? &parent->child : &parent->last->next) = node;
        parent->last = node;
    }
    return node;
}

/* --- one check each --- */

static int read_files(struct reading *r, struct completion_node *node, const struct json *list)
{
    struct completion *c = r->c;
    size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : 0;
    if (!json_is(list, JSON_ARRAY) || n > FILES_MAX) {
        return ERR(r->e, ERR_CONFIG, "'files' must be a list of at most %d paths", FILES_MAX);
    }
    node->files = arena_array(c->arena, n + 1, sizeof *node->files);
    for (size_t i = 0; i < n; i++) {
        struct str path = json_str(json_item(list, i), STR_EMPTY);
        bool later = path.len > 0 && path.ptr[0] == '/' && c->root.len == 0;
        if (later) {
            node->files[i] = arena_dup(c->arena, path); /* nobody knows yet where it will be */
        } else if (!wspath_fold(c->arena, c->root, path, &node->files[i])) {
            return ERR(r->e, ERR_CONFIG, "files: '%.*s' is not in the workspace",
                       STR_ARG(str_slice(path, 0, 80)));
        }
    }
    return 0;
}

static int read_where(struct reading *r, struct completion_predicate *p, const struct json *where)
{
    if (!json_is(where, JSON_OBJECT) || json_len(where) == 0) {
        return ERR(r->e, ERR_CONFIG, "session: 'where' must be a map of JSON Pointers to values");
    }
    for (size_t i = 0; i < json_len(where); i++) {
        struct str key = where->object.members[i].key;
        if (key.len > 0 && key.ptr[0] != '/') {
            return ERR(r->e, ERR_CONFIG, "session: 'where': the pointer '%.*s' must begin with '/'",
                       STR_ARG(str_slice(key, 0, 80)));
        }
    }
    p->where = json_copy(r->c->arena, where);
    return 0;
}

static int read_session(struct reading *r, struct completion_node *node, const struct json *v)
{
    struct completion_predicate *p = &node->predicate;
    const struct json *max = json_get(v, "max");
    const struct json *where = json_get(v, "where");
    p->slice = arena_str(r->c->arena, json_str(json_get(v, "slice"), STR_EMPTY));
    p->max = json_int(max, -1);
    p->min = json_int(json_get(v, "min"), p->max >= 0 ? 0 : 1);
    p->every = json_bool(json_get(v, "every"), false);
    if (p->slice.len == 0) {
        return ERR(r->e, ERR_CONFIG, "session: needs a 'slice'");
    }
    if (p->min < 0 || (p->max >= 0 && p->max < p->min)) {
        return ERR(r->e, ERR_CONFIG, "session: no number is at least 'min' and at most 'max'");
    }
    if (p->every && where == NULL) {
        return ERR(r->e, ERR_CONFIG, "session: 'every' needs a 'where'");
    }
    if (where == NULL && p->min == 0 && p->max < 0) {
        return ERR(r->e, ERR_CONFIG, "session: this holds always");
    }
    return where == NULL ? 0 : read_where(r, p, where);
}

static int read_schema(struct reading *r, struct completion_node *node, const struct json *v)
{
    static const struct json_limits limits = { .max_bytes = 4 << 20, .max_depth = 128 };
    struct json *tree;
    if (json_is(v, JSON_STRING)) {
        int rc = yaml_load(r->c->arena, json_cstring(v, ""), &limits, &tree, r->e);
        if (rc < 0) {
            return err_wrap(r->e, "schema");
        }
        v = tree;
    }
    node->wanted = json_copy(r->c->arena, v);
    int rc = schema_compile(node->wanted, NULL, &node->schema, r->e);
    return rc < 0 ? err_wrap(r->e, "schema") : 0;
}

static int read_command(struct reading *r, struct completion_node *node, const struct json *rules)
{
    int rc = helper_spec_read(r->c->arena, rules, HELPER_TIME, &node->command, r->e);
    node->command.max_output = COMMAND_OUTPUT;
    return rc;
}

/* --- trees --- */

static int read_map(struct reading *r, struct completion_node *parent, const struct json *rules);

static int read_list(struct reading *r, struct completion_node *node, const struct json *list)
{
    if (!json_is(list, JSON_ARRAY)) {
        return ERR(r->e, ERR_CONFIG, "'all' and 'any' must be lists of checks");
    }
    if (++r->depth > DEPTH_MAX) {
        return ERR(r->e, ERR_CONFIG, "'all' and 'any' are nested too deeply");
    }
    for (size_t i = 0; i < json_len(list); i++) {
        struct completion_node *group = node_add(r->c, node, COMPLETION_ALL);
        if (group == NULL) {
            return ERR(r->e, ERR_CONFIG, "more than %d checks", COMPLETION_NODES_MAX);
        }
        int rc = read_map(r, group, json_item(list, i));
        if (rc == 0 && group->child == NULL) {
            rc = ERR(r->e, ERR_CONFIG, "checks nothing");
        }
        if (rc < 0) {
            return err_wrap(r->e, "%s[%zu]", node->kind == COMPLETION_ANY ? "any" : "all", i);
        }
    }
    r->depth--;
    return 0;
}

static int read_member(struct reading *r, struct completion_node *node, const struct json *rules,
                       const struct json *v)
{
    switch (node->kind) {
    case COMPLETION_FILES:
        return read_files(r, node, v);
    case COMPLETION_SESSION:
        return read_session(r, node, v);
    case COMPLETION_SCHEMA:
        return read_schema(r, node, v);
    case COMPLETION_COMMAND:
        return read_command(r, node, rules);
    case COMPLETION_ALL:
    case COMPLETION_ANY:
        return read_list(r, node, v);
    case COMPLETION_CALLBACK:
        break;
    }
    return 0;
}

/* In the order in which they are checked: what costs nothing comes first. */
static int read_map(struct reading *r, struct completion_node *parent, const struct json *rules)
{
    static const struct {
        const char *key;
        enum completion_kind kind;
    } members[] = {
        { "files", COMPLETION_FILES },   { "session", COMPLETION_SESSION },
        { "schema", COMPLETION_SCHEMA }, { "command", COMPLETION_COMMAND },
        { "all", COMPLETION_ALL },       { "any", COMPLETION_ANY },
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct json *v = json_get(rules, members[i].key);
        if (v == NULL || json_is(v, JSON_NULL)) {
            continue;
        }
        struct completion_node *node = node_add(r->c, parent, members[i].kind);
        int rc = node == NULL ? ERR(r->e, ERR_CONFIG, "more than %d checks", COMPLETION_NODES_MAX)
                              : read_member(r, node, rules, v);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int add_callbacks(struct completion *c, struct completion_node *root, struct err *e)
{
    for (size_t i = 0; i < c->opts.n_callbacks; i++) {
        struct completion_node *node = node_add(c, root, COMPLETION_CALLBACK);
        if (node == NULL) {
            return ERR(e, ERR_CONFIG, "more than %d checks", COMPLETION_NODES_MAX);
        }
        node->callback = &c->opts.callbacks[i];
    }
    return 0;
}

int completion_read(struct completion *c, struct err *e)
{
    struct err local;
    const struct json *rules = c->opts.rules;
    struct reading r = { .c = c, .e = e == NULL ? &local : e };
    struct completion_node *root = node_add(c, NULL, COMPLETION_ALL);
    c->rounds = json_int(json_get(rules, "max_rounds"), COMPLETION_ROUNDS);
    int rc = c->rounds < 0 || c->rounds > ROUNDS_MAX
                 ? ERR(r.e, ERR_CONFIG, "'max_rounds' must be between 0 and %d", ROUNDS_MAX)
                 : read_map(&r, root, rules);
    if (rc < 0) {
        char place[JSON_AT_LEN];
        if (r.e->code != ERR_INPUT) {
            r.e->code = ERR_CONFIG; /* a schema that does not parse, or is too large */
        }
        return c->opts.file == NULL
                   ? err_wrap(r.e, "completion")
                   : err_wrap(r.e, "%s: completion", json_at(c->opts.file, rules, place));
    }
    return add_callbacks(c, root, r.e);
}

/* SPDX-License-Identifier: MIT
 *
 * Documents, resources, subschemas, references. A document is walked once along the keywords that
 * hold subschemas; each gets a node, and $id and anchors are noted on the way. What stands under
 * unknown keywords, in enum or const is no schema, whatever it looks like, until a reference points
 * right there.
 */
#include "data/schema_priv.h"

/* Nesting of subschemas: parsed documents are less deep (json_limits). */
enum { WALK_DEPTH = 400 };
enum { SCHEMAS_MAX = 50000 };

static int walk(struct schema_loader *l, struct schema_node *n, unsigned depth);

static struct str key_of(const struct json *const *tree)
{
    return str_n(tree, sizeof *tree);
}

struct schema_node *schema_node_of(const struct schema_loader *l, const struct json *tree)
{
    return schema_map_find(&l->nodes, key_of(&tree));
}

static struct schema_node *node_new(struct schema_loader *l, const struct json *tree,
                                    const struct schema_node *parent, struct str path)
{
    struct schema_node *n = ARENA_NEW(l->arena, struct schema_node);
    n->json = tree;
    n->parent = parent;
    n->path = path;
    n->resource = parent != NULL ? parent->resource : NULL;
    return n;
}

static int node_add(struct schema_loader *l, struct schema_node *n)
{
    size_t most = l->options->max_schemas != 0 ? l->options->max_schemas : SCHEMAS_MAX;
    if (l->len == most) {
        return ERR(l->e, ERR_CONFIG, "schema: more than %zu subschemas", most);
    }
    if (l->len == l->cap) {
        l->cap = l->cap == 0 ? 64 : l->cap * 2;
        struct schema_node **bigger = arena_array(l->scratch, l->cap, sizeof(struct schema_node *));
        if (l->len > 0) {
            memcpy(bigger, l->all, l->len * sizeof *bigger);
        }
        l->all = bigger;
    }
    l->all[l->len++] = n;
    schema_map_set(l->scratch, &l->nodes, key_of(&n->json), n);
    return 0;
}

/* --- resources and anchors --- */

/* The string of an identifying keyword; NULL when the dialect does not have it or it is overruled:
 * in draft 07 nothing beside $ref counts. */
static const struct json *identifier(const struct schema_node *n, enum schema_keyword keyword)
{
    const struct schema_keyword_row *row = &schema_keywords[keyword];
    const struct schema_dialect *d = &n->resource->dialect;
    if (d->draft < row->first) {
        return NULL;
    }
    if (d->draft == SCHEMA_DRAFT_07 && json_is(json_get(n->json, "$ref"), JSON_STRING)) {
        return NULL;
    }
    return json_get(n->json, row->name);
}

static int add_anchor(struct schema_loader *l, struct schema_node *n, const char *keyword,
                      struct str name, bool dynamic)
{
    struct schema_resource *r = n->resource;
    const struct schema_node *other = schema_map_find(&r->anchors, name);
    if (other != NULL && other != n) {
        return schema_bad(l->e, n, keyword, "the anchor '%.*s' is there twice", STR_ARG(name));
    }
    schema_map_set(l->arena, &r->anchors, name, n);
    if (dynamic) {
        schema_map_set(l->arena, &r->dynamic_anchors, name, n);
    }
    return 0;
}

static int note_anchors(struct schema_loader *l, struct schema_node *n)
{
    static const enum schema_keyword keywords[] = { KW_ANCHOR, KW_DYNAMIC_ANCHOR };
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        const char *name = schema_keywords[keywords[i]].name;
        const struct json *v = identifier(n, keywords[i]);
        if (v == NULL) {
            continue;
        }
        if (v->type != JSON_STRING || v->string.len == 0) {
            return schema_bad(l->e, n, name, "must be a name");
        }
        int rc = add_anchor(l, n, name, v->string, keywords[i] == KW_DYNAMIC_ANCHOR);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int add_resource(struct schema_loader *l, struct schema_resource *r)
{
    const struct schema_resource *other = schema_map_find(&l->resources, r->uri);
    if (other != NULL && other->root != r->root) {
        return schema_bad(l->e, r->node, "$id", "'%.*s' is the $id of another schema too",
                          STR_ARG(r->uri));
    }
    schema_map_set(l->scratch, &l->resources, r->uri, r);
    return 0;
}

/* The dialect of a resource: by its own $schema, else that of what surrounds it. */
static int choose_dialect(struct schema_loader *l, const struct schema_node *n,
                          struct schema_dialect *ret)
{
    const struct json *meta = json_get(n->json, "$schema");
    if (meta == NULL) {
        return 0;
    }
    if (meta->type != JSON_STRING) {
        return schema_bad(l->e, n, "$schema", "must be a string");
    }
    return schema_dialect_find(l, meta->string, ret);
}

/* An $id makes a resource, or, when it is just a fragment in draft 07, an anchor. */
static int note_id(struct schema_loader *l, struct schema_node *n)
{
    const struct json *id = identifier(n, KW_ID);
    if (id == NULL) {
        return 0;
    }
    if (id->type != JSON_STRING) {
        return schema_bad(l->e, n, "$id", "must be a string");
    }
    struct schema_uri parts = schema_uri_split(id->string);
    bool old = n->resource->dialect.draft == SCHEMA_DRAFT_07;
    if (parts.fragment.len > 0 && !old) {
        return schema_bad(l->e, n, "$id", "must not have a fragment; use $anchor");
    }
    if (old && id->string.len > 0 && id->string.ptr[0] == '#') {
        return parts.fragment.len > 0 ? add_anchor(l, n, "$id", parts.fragment, false) : 0;
    }
    struct schema_resource *r = ARENA_NEW(l->arena, struct schema_resource);
    *r = (struct schema_resource) {
        .uri = schema_uri_resolve(l->arena, n->resource->uri, id->string),
        .root = n->json,
        .node = n,
        .dialect = n->resource->dialect,
        .document = n->resource->document,
    };
    n->resource = r;
    int rc = choose_dialect(l, n, &r->dialect);
    if (rc == 0) {
        rc = add_resource(l, r);
    }
    if (rc == 0 && parts.fragment.len > 0) {
        rc = add_anchor(l, n, "$id", parts.fragment, false);
    }
    return rc;
}

/* --- walking --- */

static int walk_into(struct schema_loader *l, const struct schema_node *parent, struct json *tree,
                     struct str path, unsigned depth)
{
    struct schema_node *n = node_new(l, tree, parent, path);
    if (tree->type != JSON_OBJECT && tree->type != JSON_BOOL) {
        return schema_bad(l->e, n, NULL, "a schema must be an object, true or false, not %s",
                          json_type_name(tree->type));
    }
    return depth == 0 ? schema_bad(l->e, n, NULL, "nested too deeply") : walk(l, n, depth - 1);
}

/* "/properties/a~1b" */
static struct str member_path(struct schema_loader *l, const char *keyword, struct str key)
{
    size_t extra = 0;
    for (size_t i = 0; i < key.len; i++) {
        extra += key.ptr[i] == '~' || key.ptr[i] == '/' ? 1 : 0;
    }
    size_t head = strlen(keyword);
    char *path = arena_alloc(l->arena, head + key.len + extra + 3);
    size_t n = 0;
    path[n++] = '/';
    memcpy(path + n, keyword, head);
    n += head;
    path[n++] = '/';
    for (size_t i = 0; i < key.len; i++) {
        bool escape = key.ptr[i] == '~' || key.ptr[i] == '/';
        path[n++] = escape ? '~' : key.ptr[i];
        if (escape) {
            path[n++] = key.ptr[i] == '~' ? '0' : '1';
        }
    }
    return str_n(path, n);
}

static int walk_list(struct schema_loader *l, const struct schema_node *n, const char *keyword,
                     const struct json *list, unsigned depth)
{
    int rc = 0;
    for (size_t i = 0; i < list->array.len && rc == 0; i++) {
        struct str path = str_of(arena_printf(l->arena, "/%s/%zu", keyword, i));
        rc = walk_into(l, n, list->array.items[i], path, depth);
    }
    return rc;
}

/* `strings`: lists among the members are not schemas (dependencies of draft 07). */
static int walk_map(struct schema_loader *l, const struct schema_node *n, const char *keyword,
                    const struct json *map, unsigned depth, bool strings)
{
    int rc = 0;
    for (size_t i = 0; i < map->object.len && rc == 0; i++) {
        const struct json_member *m = &map->object.members[i];
        if (!strings || m->value->type != JSON_ARRAY) {
            rc = walk_into(l, n, m->value, member_path(l, keyword, m->key), depth);
        }
    }
    return rc;
}

/* The subschemas under one keyword. A value of the wrong shape is left to schema_compile_node(). */
static int walk_keyword(struct schema_loader *l, const struct schema_node *n,
                        enum schema_keyword keyword, struct json *value, unsigned depth)
{
    const char *name = schema_keywords[keyword].name;
    enum schema_want want = schema_keywords[keyword].want;
    if (want == WANT_SCHEMA || (want == WANT_SCHEMA_OR_LIST && value->type != JSON_ARRAY)) {
        return walk_into(l, n, value, str_of(arena_printf(l->arena, "/%s", name)), depth);
    }
    if (value->type == JSON_ARRAY && (want == WANT_SCHEMA_LIST || want == WANT_SCHEMA_OR_LIST)) {
        return walk_list(l, n, name, value, depth);
    }
    if (value->type == JSON_OBJECT &&
        (want == WANT_SCHEMA_MAP || want == WANT_SCHEMA_OR_STRINGS_MAP)) {
        return walk_map(l, n, name, value, depth, want == WANT_SCHEMA_OR_STRINGS_MAP);
    }
    return 0;
}

static int walk(struct schema_loader *l, struct schema_node *n, unsigned depth)
{
    int rc = node_add(l, n);
    if (rc != 0 || n->json->type != JSON_OBJECT) {
        return rc;
    }
    rc = note_id(l, n);
    if (rc == 0) {
        rc = note_anchors(l, n);
    }
    for (size_t i = 0; i < n->json->object.len && rc == 0; i++) {
        const struct json_member *m = &n->json->object.members[i];
        enum schema_keyword keyword = schema_keyword_find(&n->resource->dialect, m->key);
        if (keyword != KW_NONE) {
            rc = walk_keyword(l, n, keyword, m->value, depth);
        }
    }
    return rc;
}

int schema_load(struct schema_loader *l, struct str uri, const struct json *root,
                struct schema_node **ret)
{
    enum schema_draft draft = l->options->draft;
    struct schema_resource *r = ARENA_NEW(l->arena, struct schema_resource);
    struct schema_node *n = node_new(l, json_copy(l->arena, root), NULL, STR_EMPTY);
    *r = (struct schema_resource) {
        .uri = arena_str(l->arena, uri),
        .root = n->json,
        .node = n,
        .dialect = { draft != SCHEMA_DRAFT_UNSET ? draft : SCHEMA_DRAFT_2020_12, VOCAB_ALL },
        .document = l->len == 0 ? STR_EMPTY : arena_str(l->arena, uri),
    };
    n->resource = r;
    if (root->type != JSON_OBJECT && root->type != JSON_BOOL) {
        return schema_bad(l->e, n, NULL, "a schema must be an object, true or false, not %s",
                          json_type_name(root->type));
    }
    int rc = choose_dialect(l, n, &r->dialect);
    if (rc == 0) {
        rc = add_resource(l, r);
    }
    if (rc == 0) {
        rc = walk(l, n, WALK_DEPTH);
    }
    /* The root may have an $id and so be another resource: its first URI means that one too. */
    schema_map_set(l->scratch, &l->resources, r->uri, n->resource);
    *ret = n;
    return rc;
}

/* --- references --- */

int schema_document_find(struct schema_loader *l, struct str uri, const struct json **ret)
{
    const struct schema_options *o = l->options;
    for (size_t i = 0; i < o->document_count; i++) {
        struct str known = o->documents[i].uri;
        if (str_eq(known, uri) ||
            (str_ends(known, STR("#")) && str_eq(str_slice(known, 0, known.len - 1), uri))) {
            *ret = o->documents[i].root;
            return 0;
        }
    }
    *ret = schema_meta_find(l->scratch, uri);
    if (*ret != NULL) {
        return 0;
    }
    if (o->resolver.load == NULL) {
        return ERR(l->e, ERR_CONFIG, "no document '%.*s' was supplied, and none is fetched",
                   STR_ARG(uri));
    }
    int rc = o->resolver.load(o->resolver.context, l->scratch, uri, ret, l->e);
    return rc != 0 ? err_wrap(l->e, "document '%.*s'", STR_ARG(uri)) : 0;
}

static int find_resource(struct schema_loader *l, struct str uri, struct schema_resource **ret)
{
    *ret = schema_map_find(&l->resources, uri);
    if (*ret != NULL) {
        return 0;
    }
    const struct json *root = NULL;
    struct schema_node *n = NULL;
    int rc = schema_document_find(l, uri, &root);
    if (rc == 0) {
        rc = schema_load(l, uri, root, &n);
    }
    *ret = n != NULL ? schema_map_find(&l->resources, uri) : NULL;
    return rc;
}

/* One step of a JSON Pointer; `token` still has its ~ escapes. */
static struct json *pointer_step(const struct json *v, struct str token)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "/");
    buf_add(&text, token);
    return json_pointer(v, buf_str(&text));
}

/* Walks a JSON Pointer and ends at a node: a known one, or a new one below the last known. */
static int follow_pointer(struct schema_loader *l, const struct schema_resource *r,
                          struct str pointer, struct schema_node **ret)
{
    struct json *at = (struct json *)r->root;
    struct schema_node *last = schema_node_of(l, at);
    struct str rest = str_slice(pointer, 1, pointer.len);
    struct str since = pointer; /* what is left behind the last known node */
    while (rest.ptr != NULL && at != NULL) {
        at = pointer_step(at, str_split(&rest, '/'));
        struct schema_node *here = at != NULL ? schema_node_of(l, at) : NULL;
        if (here != NULL) {
            last = here;
            since = rest.ptr != NULL ? str_slice(pointer, pointer.len - rest.len - 1, pointer.len)
                                     : STR_EMPTY;
        }
    }
    *ret = last;
    if (at == NULL) {
        return ERR(l->e, ERR_CONFIG, "there is nothing at '%.*s'", STR_ARG(pointer));
    }
    if (last->json == at) {
        return 0;
    }
    int rc = walk_into(l, last, at, arena_str(l->arena, since), WALK_DEPTH);
    *ret = schema_node_of(l, at);
    return rc;
}

static int follow(struct schema_loader *l, const struct schema_node *from, struct str reference,
                  struct schema_node **ret, struct str *ret_anchor)
{
    struct schema_resource *r = NULL;
    struct str fragment = STR_EMPTY;
    struct schema_uri parts = schema_uri_split(reference);
    int rc = find_resource(l, schema_uri_resolve(l->scratch, from->resource->uri, reference), &r);
    if (rc != 0) {
        return rc;
    }
    if (parts.fragment.ptr != NULL && !schema_uri_unescape(l->scratch, parts.fragment, &fragment)) {
        return ERR(l->e, ERR_CONFIG, "its fragment has a bad %% escape");
    }
    *ret_anchor = STR_EMPTY;
    if (fragment.len == 0) {
        *ret = r->node;
        return 0;
    }
    if (fragment.ptr[0] == '/') {
        return follow_pointer(l, r, fragment, ret);
    }
    *ret = schema_map_find(&r->anchors, fragment);
    *ret_anchor = arena_str(l->arena, fragment);
    return *ret != NULL ? 0 : ERR(l->e, ERR_CONFIG, "there is no anchor '%.*s'", STR_ARG(fragment));
}

int schema_resolve(struct schema_loader *l, const struct schema_node *from, const char *keyword,
                   struct str reference, struct schema_node **ret, struct str *ret_anchor)
{
    struct err why = { 0 };
    struct err *outer = l->e;
    l->e = &why;
    int rc = follow(l, from, reference, ret, ret_anchor);
    l->e = outer;
    if (rc == 0) {
        return 0;
    }
    return schema_bad(outer, from, keyword, "cannot resolve '%.*s': %s", STR_ARG(reference),
                      why.msg);
}

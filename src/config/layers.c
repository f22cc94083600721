/* SPDX-License-Identifier: MIT
 *
 * Merging is json_merge() in order; provenance is found afterwards by looking, for each leaf, for
 * the highest layer that has it. That is right because whatever a higher layer says about a leaf
 * replaces what lower ones say.
 */
#include "config/layers.h"

#include <assert.h>
#include <stdio.h>

void layers_add(struct layers *l, const char *name, const char *source, const struct json *tree)
{
    if (tree != NULL) {
        assert(l->len < LAYERS_MAX);
        l->items[l->len++] = (struct layer) { name, source, tree };
    }
}

struct json *layers_merge(struct arena *a, const struct layers *l)
{
    struct json *merged = json_object(a);
    for (size_t i = 0; i < l->len; i++) {
        merged = json_merge(a, merged, l->items[i].tree);
    }
    return merged;
}

/* Settings are at most this deep before a harness' own configuration begins, whose depth is bounded
 * by the readers; beyond it a whole sub-tree is shown as one leaf. */
enum { PATH_DEPTH = 24 };

struct path {
    struct str keys[PATH_DEPTH];
    size_t len;
};

static const struct json *at_path(const struct json *tree, const struct path *p)
{
    for (size_t i = 0; i < p->len && tree != NULL; i++) {
        tree = json_find(tree, p->keys[i]);
    }
    return tree;
}

static const char *dotted(struct arena *a, const struct path *p)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < p->len; i++) {
        bool plain = p->keys[i].len > 0;
        for (size_t j = 0; j < p->keys[i].len; j++) {
            char c = p->keys[i].ptr[j];
            plain = plain && (c == '_' || c == '-' || (c >= '0' && c <= '9') ||
                              (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
        }
        buf_adds(&out, i > 0 ? "." : "");
        if (plain) {
            buf_add(&out, p->keys[i]);
        } else {
            (void)!json_write_string(p->keys[i], &out, NULL);
        }
    }
    return arena_dup(a, buf_str(&out));
}

static void add_leaf(struct arena *a, struct json *list, const struct layers *l,
                     const struct path *p, const struct json *value)
{
    char at[JSON_AT_LEN];
    struct json *leaf = json_object(a);
    json_setc(a, leaf, "path", json_cstr(a, dotted(a, p)));
    json_setc(a, leaf, "value", json_copy(a, value));
    for (size_t i = l->len; i-- > 0;) {
        const struct json *found = at_path(l->items[i].tree, p);
        if (found != NULL) {
            json_setc(a, leaf, "layer", json_cstr(a, l->items[i].name));
            json_setc(a, leaf, "source", json_cstr(a, json_at(l->items[i].source, found, at)));
            break;
        }
    }
    json_push(a, list, leaf);
}

static void walk(struct arena *a, struct json *list, const struct layers *l, struct path *p,
                 const struct json *value)
{
    if (!json_is(value, JSON_OBJECT) || value->object.len == 0 || p->len == PATH_DEPTH) {
        add_leaf(a, list, l, p, value);
        return;
    }
    for (size_t i = 0; i < value->object.len; i++) {
        p->keys[p->len++] = value->object.members[i].key;
        walk(a, list, l, p, value->object.members[i].value);
        p->len--;
    }
}

struct json *layers_explain(struct arena *a, const struct layers *l, const struct json *merged)
{
    struct json *list = json_array(a);
    struct path p = { .len = 0 };
    for (size_t i = 0; i < json_len(merged); i++) {
        p.keys[0] = merged->object.members[i].key;
        p.len = 1;
        walk(a, list, l, &p, merged->object.members[i].value);
    }
    return list;
}

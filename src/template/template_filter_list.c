/* SPDX-License-Identifier: MIT
 *
 * Filters on lists and other things that can be walked over. Those that Jinja2 writes as generators
 * are generators here too: nothing is computed, and nothing fails, until somebody walks them.
 */
#include "template/template_render_priv.h"

static const struct value none = { .kind = VALUE_NONE };

static const struct value *or_none(const struct value *v)
{
    return v->kind == VALUE_MISSING ? &none : v;
}

static int filter_length(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    size_t n;
    int rc = tpl_value_len(r, in, &n);
    *out = value_int((int64_t)n);
    return rc;
}

static int filter_list(struct render *r, const struct value *in, const struct value *args,
                       struct value *out)
{
    struct list *l;
    int rc = tpl_value_to_list(r, in, &l);
    *out = value_list(l);
    return rc;
}

static int filter_first(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    struct iter it;
    int rc = tpl_iter_start(r, in, &it);
    rc = rc < 0 ? rc : iter_next(r, &it, out);
    if (rc == 0) {
        *out = tpl_undefined_hint(r, "there is no first item, the sequence was empty");
    }
    return rc < 0 ? rc : 0;
}

static int filter_last(struct render *r, const struct value *in, const struct value *args,
                       struct value *out)
{
    struct value reversed;
    int rc = tpl_iter_reverse(r, in, &reversed);
    rc = rc < 0 ? rc : iter_next(r, reversed.iter, out);
    if (rc == 0) {
        *out = tpl_undefined_hint(r, "there is no last item, the sequence was empty");
    }
    return rc < 0 ? rc : 0;
}

static int filter_reverse(struct render *r, const struct value *in, const struct value *args,
                          struct value *out)
{
    if (in->kind == VALUE_STRING) {
        struct value back = value_int(-1);
        return tpl_value_slice(r, in, &(struct slice_bounds) { .step = &back }, out);
    }
    if (in->kind != VALUE_ITER) {
        return tpl_iter_reverse(r, in, out);
    }
    struct list *l;
    int rc = tpl_value_to_list(r, in, &l);
    for (size_t i = 0; rc == 0 && i < l->len / 2; i++) {
        struct value swap = l->items[i];
        l->items[i] = l->items[l->len - 1 - i];
        l->items[l->len - 1 - i] = swap;
    }
    *out = value_list(l);
    return rc;
}

/* --- sorting and grouping --- */

/* The key of `sort`: a list, one entry for each attribute of "a,b.c". */
static int sort_key(struct render *r, const struct value *attribute, bool ignore_case,
                    const struct value *item, struct value *out)
{
    struct list *l = tpl_list_new(r->arena, 1);
    struct str left = attribute->kind == VALUE_STRING ? attribute->string : STR("");
    int rc = 0;
    do {
        struct value part = *attribute;
        struct value key;
        if (attribute->kind == VALUE_STRING) {
            part.string = str_split(&left, ',');
        } else {
            left.ptr = NULL;
        }
        rc = tpl_key_get(r, &(struct key_of) { &part, &none, ignore_case }, item, &key);
        tpl_list_add(r->arena, l, &key);
    } while (rc == 0 && left.ptr != NULL);
    *out = value_list(l);
    return rc;
}

static int filter_sort(struct render *r, const struct value *in, const struct value *args,
                       struct value *out)
{
    bool reverse;
    bool case_sensitive;
    struct list *l = NULL;
    int rc = tpl_arg_bool(r, &args[1], false, &case_sensitive);
    rc = rc < 0 ? rc : tpl_value_to_list(r, in, &l);
    rc = rc < 0 ? rc : tpl_arg_bool(r, &args[0], false, &reverse);
    if (rc < 0) {
        return rc;
    }
    struct value *keys = arena_array(r->arena, l->len, sizeof *keys);
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = sort_key(r, or_none(&args[2]), !case_sensitive, &l->items[i], &keys[i]);
    }
    rc = rc < 0 ? rc : tpl_value_sort(r, l->items, keys, l->len, reverse);
    *out = value_list(l);
    return rc;
}

static int filter_dictsort(struct render *r, const struct value *in, const struct value *args,
                           struct value *out)
{
    bool case_sensitive;
    bool reverse;
    struct str by = STR("key");
    int rc = tpl_arg_bool(r, &args[0], false, &case_sensitive);
    rc = rc < 0 || args[1].kind == VALUE_MISSING ? rc : tpl_arg_text(r, &args[1], "'by'", &by);
    rc = rc < 0 ? rc : tpl_arg_bool(r, &args[2], false, &reverse);
    if (rc == 0 && !str_eqc(by, "key") && !str_eqc(by, "value")) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "filter 'dictsort' sorts by 'key' or 'value'");
    }
    if (rc == 0 && in->kind != VALUE_DICT) {
        return tpl_render_fail_type(r, in, "filter 'dictsort' needs a dict, not a %s",
                                    tpl_value_type(in));
    }
    struct value position = value_int(str_eqc(by, "value"));
    rc = rc < 0 ? rc : tpl_dict_list(r, in->dict, DICT_ITEMS, out);
    if (rc < 0) {
        return rc;
    }
    struct list *l = out->list;
    struct value *keys = arena_array(r->arena, l->len, sizeof *keys);
    struct key_of k = { &position, &none, !case_sensitive };
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = tpl_key_get(r, &k, &l->items[i], &keys[i]);
    }
    return rc < 0 ? rc : tpl_value_sort(r, l->items, keys, l->len, reverse);
}

static int group_from(struct render *r, const struct key_of *k, const struct list *l,
                      const struct value *keys, size_t *at, struct value *out)
{
    struct list *members = tpl_list_new(r->arena, 0);
    size_t first = *at;
    bool same = true;
    int rc = 0;
    while (*at < l->len && same && rc == 0) {
        tpl_list_add(r->arena, members, &l->items[*at]);
        ++*at;
        if (*at < l->len) {
            rc = tpl_value_equal(r, &keys[first], &keys[*at], &same);
        }
    }
    /* The key as it is written in the first member, not in lower case. */
    struct key_of plain = { k->attribute, k->otherwise, false };
    struct value grouper;
    rc = rc < 0 ? rc : tpl_key_get(r, &plain, &members->items[0], &grouper);
    struct value list = value_list(members);
    struct list *pair = tpl_list_new(r->arena, 2);
    tpl_list_add(r->arena, pair, &grouper);
    tpl_list_add(r->arena, pair, &list);
    pair->group = true;
    *out = value_tuple(pair);
    return rc;
}

static int filter_groupby(struct render *r, const struct value *in, const struct value *args,
                          struct value *out)
{
    bool case_sensitive;
    struct list *l = NULL;
    int rc = tpl_arg_bool(r, &args[2], false, &case_sensitive);
    rc = rc < 0 ? rc : tpl_value_to_list(r, in, &l);
    if (rc < 0) {
        return rc;
    }
    struct key_of k = { &args[0], or_none(&args[1]), !case_sensitive };
    struct value *keys = arena_array(r->arena, l->len, sizeof *keys);
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = tpl_key_get(r, &k, &l->items[i], &keys[i]);
    }
    rc = rc < 0 ? rc : tpl_value_sort(r, l->items, keys, l->len, false);
    struct list *groups = tpl_list_new(r->arena, 0);
    for (size_t at = 0; rc == 0 && at < l->len;) {
        struct value group;
        rc = group_from(r, &k, l, keys, &at, &group);
        tpl_list_add(r->arena, groups, &group);
    }
    *out = value_list(groups);
    return rc;
}

static int extreme(struct render *r, const struct value *in, const struct value *args, int op,
                   struct value *out)
{
    bool case_sensitive;
    struct iter it;
    struct value best_key;
    struct value item;
    int rc = tpl_iter_start(r, in, &it);
    rc = rc < 0 ? rc : tpl_arg_bool(r, &args[0], false, &case_sensitive);
    rc = rc < 0 ? rc : iter_next(r, &it, out);
    if (rc <= 0) {
        *out =
            tpl_undefined_hint(r, "there is no smallest or largest item, the sequence was empty");
        return rc;
    }
    struct key_of k = { or_none(&args[1]), &none, !case_sensitive };
    rc = tpl_key_get(r, &k, out, &best_key);
    while (rc == 0 && (rc = iter_next(r, &it, &item)) > 0) {
        struct value key;
        bool better = false;
        rc = tpl_key_get(r, &k, &item, &key);
        rc = rc < 0 ? rc : tpl_value_compare_op(r, &key, &best_key, op, &better);
        if (better) {
            *out = item;
            best_key = key;
        }
    }
    return rc;
}

static int filter_min(struct render *r, const struct value *in, const struct value *args,
                      struct value *out)
{
    return extreme(r, in, args, CMP_LT, out);
}

static int filter_max(struct render *r, const struct value *in, const struct value *args,
                      struct value *out)
{
    return extreme(r, in, args, CMP_GT, out);
}

static int filter_sum(struct render *r, const struct value *in, const struct value *args,
                      struct value *out)
{
    struct iter it;
    struct value item;
    *out = args[1].kind == VALUE_MISSING ? value_int(0) : args[1];
    int rc = tpl_iter_start(r, in, &it);
    if (rc == 0 && out->kind == VALUE_STRING) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "filter 'sum' cannot add strings, use 'join'");
    }
    while (rc == 0 && (rc = iter_next(r, &it, &item)) > 0) {
        struct value term;
        struct value total = *out;
        rc = tpl_value_path(r, &item, or_none(&args[0]), &none, &term);
        rc = rc < 0 ? rc : tpl_value_binary(r, OP_ADD, &total, &term, out);
    }
    return rc;
}

/* --- generators --- */

struct uniqueness {
    struct iter inner;
    struct dict *seen;
    struct value attribute;
    struct key_of key;
    bool started;
};

static int next_unique(struct render *r, struct iter *it, struct value *out)
{
    struct uniqueness *u = it->state;
    int rc = u->started ? 0 : tpl_iter_start(r, &it->source, &u->inner);
    u->started = true;
    while (rc == 0 && (rc = iter_next(r, &u->inner, out)) > 0) {
        struct value key;
        struct value *found = NULL;
        rc = tpl_key_get(r, &u->key, out, &key);
        rc = rc < 0 ? rc : tpl_dict_find(r, u->seen, &key, &found);
        if (rc == 0 && found == NULL) {
            rc = tpl_dict_set(r, u->seen, &key, &none);
            return rc < 0 ? rc : 1;
        }
    }
    return rc;
}

static int filter_unique(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    struct uniqueness *u = ARENA_NEW(r->arena, struct uniqueness);
    bool case_sensitive;
    int rc = tpl_arg_bool(r, &args[0], false, &case_sensitive);
    u->seen = tpl_dict_new(r->arena);
    u->attribute = *or_none(&args[1]);
    u->key = (struct key_of) { &u->attribute, &none, !case_sensitive };
    *out = value_iter(tpl_iter_new(r, next_unique, in, u));
    return rc;
}

struct batching {
    struct iter inner;
    struct value count, fill;
    struct list *pending;
    bool started, done;
};

static int last_batch(struct render *r, struct batching *b, struct value *out)
{
    b->done = true;
    struct value len = value_int((int64_t)b->pending->len);
    bool short_of = false;
    int rc = 0;
    if (b->fill.kind != VALUE_NONE && b->pending->len > 0) {
        rc = tpl_value_compare_op(r, &len, &b->count, CMP_LT, &short_of);
    }
    if (rc == 0 && short_of) {
        int64_t n;
        rc = tpl_arg_int(r, &b->count, 0, &n);
        rc = rc < 0 ? rc : tpl_render_check_size(r, (uint64_t)n, sizeof(struct value));
        while (rc == 0 && (int64_t)b->pending->len < n) {
            tpl_list_add(r->arena, b->pending, &b->fill);
        }
    }
    *out = value_list(b->pending);
    return rc < 0 ? rc : b->pending->len > 0;
}

static int next_batch(struct render *r, struct iter *it, struct value *out)
{
    struct batching *b = it->state;
    int rc = b->started ? 0 : tpl_iter_start(r, &it->source, &b->inner);
    struct value item;
    b->started = true;
    if (rc < 0 || b->done) {
        return rc;
    }
    while ((rc = iter_next(r, &b->inner, &item)) > 0) {
        struct value len = value_int((int64_t)b->pending->len);
        struct list *full = b->pending;
        bool is_full;
        rc = tpl_value_equal(r, &len, &b->count, &is_full);
        if (rc < 0) {
            return rc;
        }
        if (is_full) {
            b->pending = tpl_list_new(r->arena, 4);
        }
        tpl_list_add(r->arena, b->pending, &item);
        if (is_full) {
            *out = value_list(full);
            return 1;
        }
    }
    return rc < 0 ? rc : last_batch(r, b, out);
}

static int filter_batch(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    struct batching *b = ARENA_NEW(r->arena, struct batching);
    b->count = args[0];
    b->fill = *or_none(&args[1]);
    b->pending = tpl_list_new(r->arena, 4);
    *out = value_iter(tpl_iter_new(r, next_batch, in, b));
    return 0;
}

struct slicing {
    struct list *all;
    struct value count, fill;
    int64_t slices, number, offset;
};

static int start_slices(struct render *r, struct iter *it, struct slicing *s)
{
    struct value zero = value_int(0);
    struct value unused;
    int rc = tpl_value_to_list(r, &it->source, &s->all);
    rc = rc < 0 ? rc : tpl_arg_int(r, &s->count, 0, &s->slices);
    if (rc == 0 && s->slices == 0) {
        rc = tpl_value_binary(r, OP_FLOORDIV, &zero, &zero, &unused); /* fails: division by zero */
    }
    return rc;
}

static int next_slice(struct render *r, struct iter *it, struct value *out)
{
    struct slicing *s = it->state;
    int rc = s->all == NULL ? start_slices(r, it, s) : 0;
    if (rc < 0 || s->number >= s->slices) {
        return rc;
    }
    int64_t len = (int64_t)s->all->len;
    int64_t each = len / s->slices;
    int64_t extra = len % s->slices;
    int64_t start = s->offset + s->number * each;
    s->offset += s->number < extra;
    int64_t end = s->offset + (s->number + 1) * each;
    struct list *part = tpl_list_new(r->arena, (size_t)(end - start) + 1);
    for (int64_t i = start; i < end; i++) {
        tpl_list_add(r->arena, part, &s->all->items[i]);
    }
    if (s->fill.kind != VALUE_NONE && s->number >= extra) {
        tpl_list_add(r->arena, part, &s->fill);
    }
    s->number++;
    *out = value_list(part);
    rc = render_step(r);
    return rc < 0 ? rc : 1;
}

static int filter_slice(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    struct slicing *s = ARENA_NEW(r->arena, struct slicing);
    s->count = args[0];
    s->fill = *or_none(&args[1]);
    *out = value_iter(tpl_iter_new(r, next_slice, in, s));
    return 0;
}

static int next_pair(struct render *r, struct iter *it, struct value *out)
{
    if (it->state == NULL) {
        static const struct dict empty;
        bool missing = it->source.kind == VALUE_UNDEFINED;
        struct value items;
        if (!missing && it->source.kind != VALUE_DICT) {
            return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "filter 'items' needs a dict, not a %s",
                                   tpl_value_type(&it->source));
        }
        it->state = ARENA_NEW(r->arena, struct iter);
        int rc = tpl_dict_list(r, missing ? &empty : it->source.dict, DICT_ITEMS, &items);
        rc = rc < 0 ? rc : tpl_iter_start(r, &items, it->state);
        if (rc < 0) {
            return rc;
        }
    }
    return iter_next(r, it->state, out);
}

static int filter_items(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    *out = value_iter(tpl_iter_new(r, next_pair, in, NULL));
    return 0;
}

const struct filter tpl_filters_list[] = {
    { .name = "length", .run = filter_length },
    { .name = "count", .run = filter_length },
    { .name = "list", .run = filter_list },
    { .name = "first", .run = filter_first },
    { .name = "last", .run = filter_last },
    { .name = "reverse", .run = filter_reverse },
    { .name = "sort",
      .run = filter_sort,
      .params = { { "reverse", "case_sensitive", "attribute" }, 3, 0 } },
    { .name = "dictsort",
      .run = filter_dictsort,
      .params = { { "case_sensitive", "by", "reverse" }, 3, 0 } },
    { .name = "groupby",
      .run = filter_groupby,
      .params = { { "attribute", "default", "case_sensitive" }, 3, 1 } },
    { .name = "min", .run = filter_min, .params = { { "case_sensitive", "attribute" }, 2, 0 } },
    { .name = "max", .run = filter_max, .params = { { "case_sensitive", "attribute" }, 2, 0 } },
    { .name = "sum", .run = filter_sum, .params = { { "attribute", "start" }, 2, 0 } },
    { .name = "unique",
      .run = filter_unique,
      .params = { { "case_sensitive", "attribute" }, 2, 0 } },
    { .name = "batch", .run = filter_batch, .params = { { "linecount", "fill_with" }, 2, 1 } },
    { .name = "slice", .run = filter_slice, .params = { { "slices", "fill_with" }, 2, 1 } },
    { .name = "items", .run = filter_items },
};
const size_t tpl_filters_list_len = ARRAY_LEN(tpl_filters_list);

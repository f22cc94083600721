/* SPDX-License-Identifier: MIT
 *
 * Filters that take the name of another filter or test, or of an attribute: map, select, reject and
 * their kin, attr; and default. All but the last two are generators.
 */
#include "template/template_render_priv.h"

static const struct value none = { .kind = VALUE_NONE };

struct selecting {
    struct iter inner;
    struct call_args args;       /* what the inner filter or test gets */
    const struct filter *filter; /* map with a filter, or */
    struct value attribute, otherwise;
    const struct predicate *test; /* NULL: the truth of the value */
    bool by_attribute, negate;
    bool started, empty;
    const char *complaint; /* wrong arguments, which shows when somebody walks */
    struct value name;
};

/* The arguments from number `from` on, in the arena: they outlive the call. */
static void keep_args(struct render *r, const struct call_args *args, size_t from,
                      struct call_args *ret)
{
    from = from < args->plain_len ? from : args->plain_len;
    size_t plain = args->plain_len - from;
    ret->plain = arena_array(r->arena, plain, sizeof *ret->plain);
    ret->plain_len = plain;
    ret->named = arena_array(r->arena, args->named_len, sizeof *ret->named);
    ret->named_len = args->named_len;
    if (plain > 0) {
        memcpy(ret->plain, args->plain + from, plain * sizeof *ret->plain);
    }
    if (args->named_len > 0) {
        memcpy(ret->named, args->named, args->named_len * sizeof *ret->named);
    }
}

/* As Python's "if value: for item in value". */
static int start(struct render *r, struct iter *it, struct selecting *s)
{
    bool truth;
    s->started = true;
    int rc = tpl_value_truth(r, &it->source, &truth);
    if (rc < 0 || !truth) {
        s->empty = true;
        return rc;
    }
    if (s->complaint != NULL) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "%s", s->complaint);
    }
    return tpl_iter_start(r, &it->source, &s->inner);
}

static int fail_name(struct render *r, const char *what, const struct value *name)
{
    if (name->kind != VALUE_STRING) {
        return tpl_render_fail_type(r, name, "the name of a %s must be a string, not a %s", what,
                                    tpl_value_type(name));
    }
    return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "there is no %s named '%.*s'", what,
                           STR_ARG(name->string));
}

/* --- map --- */

static int next_mapped(struct render *r, struct iter *it, struct value *out)
{
    struct selecting *s = it->state;
    struct value item;
    int rc = s->started ? 0 : start(r, it, s);
    if (rc < 0 || s->empty) {
        return rc;
    }
    rc = iter_next(r, &s->inner, &item);
    if (rc <= 0) {
        return rc;
    }
    if (s->by_attribute) {
        rc = tpl_value_path(r, &item, &s->attribute, &s->otherwise, out);
    } else if (s->filter == NULL) {
        return fail_name(r, "filter", &s->name);
    } else {
        rc = tpl_filter_apply(r, s->filter, &item, &s->args, out);
    }
    return rc < 0 ? rc : 1;
}

static int filter_map(struct render *r, const struct value *in, const struct call_args *args,
                      struct value *out)
{
    struct selecting *s = ARENA_NEW(r->arena, struct selecting);
    const struct value *attribute = tpl_call_named(args, "attribute");
    const struct value *otherwise = tpl_call_named(args, "default");
    if (args->plain_len == 0 && attribute != NULL) {
        s->by_attribute = true;
        s->attribute = *attribute;
        s->otherwise = otherwise == NULL ? none : *otherwise;
        if (args->named_len > 1u + (otherwise != NULL)) {
            s->complaint = "filter 'map' has only the arguments 'attribute' and 'default'";
        }
    } else if (args->plain_len == 0) {
        s->complaint = "filter 'map' needs the name of a filter, or attribute=";
    } else {
        s->name = args->plain[0];
        s->filter = s->name.kind == VALUE_STRING ? tpl_filter_find(s->name.string) : NULL;
        keep_args(r, args, 1, &s->args);
    }
    *out = value_iter(tpl_iter_new(r, next_mapped, in, s));
    return 0;
}

/* --- select and reject --- */

static int wanted(struct render *r, struct selecting *s, const struct value *item, bool *ret)
{
    struct value subject = *item;
    int rc = s->by_attribute ? tpl_value_path(r, item, &s->attribute, &none, &subject) : 0;
    if (rc < 0) {
        return rc;
    }
    if (s->name.kind == VALUE_MISSING) {
        rc = tpl_value_truth(r, &subject, ret);
    } else if (s->test == NULL) {
        return fail_name(r, "test", &s->name);
    } else {
        rc = tpl_predicate_apply(r, s->test, &subject, &s->args, ret);
    }
    *ret = *ret != s->negate;
    return rc;
}

static int next_selected(struct render *r, struct iter *it, struct value *out)
{
    struct selecting *s = it->state;
    int rc = s->started ? 0 : start(r, it, s);
    if (rc < 0 || s->empty) {
        return rc;
    }
    while ((rc = iter_next(r, &s->inner, out)) > 0) {
        bool take = false;
        rc = wanted(r, s, out, &take);
        if (rc < 0 || take) {
            return rc < 0 ? rc : 1;
        }
    }
    return rc;
}

static struct value selection(struct render *r, const struct value *in,
                              const struct call_args *args, bool by_attribute, bool negate)
{
    struct selecting *s = ARENA_NEW(r->arena, struct selecting);
    size_t at = by_attribute;
    s->by_attribute = by_attribute;
    s->negate = negate;
    if (by_attribute && args->plain_len == 0) {
        s->complaint = "the name of an attribute is missing";
    } else if (by_attribute) {
        s->attribute = args->plain[0];
    }
    if (args->plain_len > at) {
        s->name = args->plain[at];
        s->test = s->name.kind == VALUE_STRING ? tpl_predicate_find(s->name.string) : NULL;
        keep_args(r, args, at + 1, &s->args);
    }
    return value_iter(tpl_iter_new(r, next_selected, in, s));
}

static int filter_select(struct render *r, const struct value *in, const struct call_args *args,
                         struct value *out)
{
    *out = selection(r, in, args, false, false);
    return 0;
}

static int filter_reject(struct render *r, const struct value *in, const struct call_args *args,
                         struct value *out)
{
    *out = selection(r, in, args, false, true);
    return 0;
}

static int filter_selectattr(struct render *r, const struct value *in, const struct call_args *args,
                             struct value *out)
{
    *out = selection(r, in, args, true, false);
    return 0;
}

static int filter_rejectattr(struct render *r, const struct value *in, const struct call_args *args,
                             struct value *out)
{
    *out = selection(r, in, args, true, true);
    return 0;
}

/* --- attr and default --- */

static int filter_attr(struct render *r, const struct value *in, const struct value *args,
                       struct value *out)
{
    struct str name;
    int rc = tpl_arg_text(r, &args[0], "the name of an attribute", &name);
    return rc < 0 ? rc : tpl_value_attribute_only(r, in, name, out);
}

static int filter_default(struct render *r, const struct value *in, const struct value *args,
                          struct value *out)
{
    bool also_false;
    bool truth = true;
    int rc = 0;
    bool missing = in->kind == VALUE_UNDEFINED;
    if (!missing) {
        rc = tpl_arg_bool(r, &args[1], false, &also_false);
        rc = rc < 0 || !also_false ? rc : tpl_value_truth(r, in, &truth);
    }
    if (missing || !truth) {
        *out = args[0].kind == VALUE_MISSING ? value_text(STR_EMPTY) : args[0];
    } else {
        *out = *in;
    }
    return rc;
}

const struct filter tpl_filters_select[] = {
    { .name = "default",
      .run = filter_default,
      .params = { { "default_value", "boolean" }, 2, 0 } },
    { .name = "d", .run = filter_default, .params = { { "default_value", "boolean" }, 2, 0 } },
    { .name = "map", .raw = filter_map },
    { .name = "select", .raw = filter_select },
    { .name = "reject", .raw = filter_reject },
    { .name = "selectattr", .raw = filter_selectattr },
    { .name = "rejectattr", .raw = filter_rejectattr },
    { .name = "attr", .run = filter_attr, .params = { { "name" }, 1, 1 } },
};
const size_t tpl_filters_select_len = ARRAY_LEN(tpl_filters_select);

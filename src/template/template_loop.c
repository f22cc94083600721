/* SPDX-License-Identifier: MIT
 *
 * for loops and the object `loop`. A loop over a generator stays lazy: looking ahead for loop.last
 * or loop.nextitem draws one item early, loop.length draws all, as in Jinja2.
 */
#include "template/template_render_priv.h"

/* --- the filter of "for x in y if test": a generator with an activation of its own --- */

struct filtering {
    const struct for_node *loop;
    struct activation *act;
    struct iter inner;
    bool started;
};

/* What the target holds now, as one value. */
static struct value pack_target(struct render *r, struct activation *act, const struct node *target)
{
    if (target->kind == NODE_NAME) {
        return *slot_at(act, target->name.ref);
    }
    struct list *l = tpl_list_new(r->arena, target->items.len);
    for (size_t i = 0; i < target->items.len; i++) {
        struct value v = pack_target(r, act, target->items.items[i]);
        tpl_list_add(r->arena, l, &v);
    }
    return value_tuple(l);
}

static int next_filtered(struct render *r, struct iter *it, struct value *out)
{
    struct filtering *f = it->state;
    if (!f->started) {
        f->started = true;
        tpl_scope_enter(r, f->act, &f->loop->test_scope);
        int rc = tpl_iter_start(r, &it->source, &f->inner);
        if (rc < 0) {
            return rc;
        }
    }
    for (;;) {
        struct value item;
        struct value test;
        bool truth;
        int rc = iter_next(r, &f->inner, &item);
        if (rc <= 0) {
            return rc;
        }
        rc = tpl_exec_assign(r, f->act, f->loop->test_target, &item);
        rc = rc < 0 ? rc : tpl_eval(r, f->act, f->loop->test, &test);
        rc = rc < 0 ? rc : tpl_value_truth(r, &test, &truth);
        if (rc < 0) {
            return rc;
        }
        if (truth) {
            *out = pack_target(r, f->act, f->loop->test_target);
            return 1;
        }
    }
}

static struct value filtered(struct render *r, struct activation *up, const struct for_node *loop,
                             const struct value *iterable)
{
    struct filtering *f = ARENA_NEW(r->arena, struct filtering);
    f->loop = loop;
    f->act = tpl_activation_new(r, r->template, loop->test_func, up);
    return value_iter(tpl_iter_new(r, next_filtered, iterable, f));
}

/* --- the object --- */

/* 1 and the item, 0 at the end. */
static int next_of_loop(struct render *r, struct loop *loop, struct value *out)
{
    int rc = 1;
    if (loop->peeked) {
        *out = loop->after;
        loop->peeked = false;
    } else {
        rc = loop->at_end ? 0 : iter_next(r, &loop->iter, out);
    }
    if (rc > 0) {
        loop->index0++;
        loop->before = loop->current;
        loop->current = *out;
    }
    return rc;
}

static int peek(struct render *r, struct loop *loop)
{
    if (loop->peeked || loop->at_end) {
        return 0;
    }
    int rc = iter_next(r, &loop->iter, &loop->after);
    loop->peeked = rc > 0;
    loop->at_end = rc == 0;
    return rc < 0 ? rc : 0;
}

static int loop_length(struct render *r, struct loop *loop, size_t *ret)
{
    int rc = 0;
    if (!loop->have_length && loop->iterable.kind != VALUE_ITER) {
        rc = tpl_value_len(r, &loop->iterable, &loop->length);
    } else if (!loop->have_length) {
        struct list *left = tpl_list_new(r->arena, 0);
        struct value item;
        while ((rc = loop->at_end ? 0 : iter_next(r, &loop->iter, &item)) > 0) {
            tpl_list_add(r->arena, left, &item);
        }
        struct value list = value_list(left);
        rc = rc < 0 ? rc : tpl_iter_start(r, &list, &loop->iter);
        loop->length = left->len + (size_t)(loop->index0 + 1) + loop->peeked;
        loop->at_end = left->len == 0;
    }
    loop->have_length = rc == 0;
    *ret = loop->length;
    return rc;
}

static int loop_previous(struct render *r, struct loop *loop, struct value *out)
{
    *out = loop->index0 == 0 ? tpl_undefined_hint(r, "there is no previous item") : loop->before;
    return 0;
}

static int loop_following(struct render *r, struct loop *loop, struct value *out)
{
    int rc = peek(r, loop);
    *out = loop->peeked ? loop->after : tpl_undefined_hint(r, "there is no next item");
    return rc;
}

static int loop_last(struct render *r, struct loop *loop, struct value *out)
{
    int rc = peek(r, loop);
    *out = value_bool(!loop->peeked);
    return rc;
}

static int loop_remaining(struct render *r, struct loop *loop, int64_t used, struct value *out)
{
    size_t len;
    int rc = loop_length(r, loop, &len);
    *out = value_int((int64_t)len - used);
    return rc;
}

enum loop_part {
    LOOP_INDEX,
    LOOP_INDEX0,
    LOOP_FIRST,
    LOOP_LAST,
    LOOP_LENGTH,
    LOOP_REVINDEX,
    LOOP_REVINDEX0,
    LOOP_PREVITEM,
    LOOP_NEXTITEM,
    LOOP_DEPTH,
    LOOP_DEPTH0,
    LOOP_PART_MAX
};

static enum loop_part loop_part(struct str name)
{
    static const struct str names[LOOP_PART_MAX] = {
        [LOOP_INDEX] = { "index", 5 },         [LOOP_INDEX0] = { "index0", 6 },
        [LOOP_FIRST] = { "first", 5 },         [LOOP_LAST] = { "last", 4 },
        [LOOP_LENGTH] = { "length", 6 },       [LOOP_REVINDEX] = { "revindex", 8 },
        [LOOP_REVINDEX0] = { "revindex0", 9 }, [LOOP_PREVITEM] = { "previtem", 8 },
        [LOOP_NEXTITEM] = { "nextitem", 8 },   [LOOP_DEPTH] = { "depth", 5 },
        [LOOP_DEPTH0] = { "depth0", 6 },
    };
    unsigned i = 0;
    while (i < LOOP_PART_MAX && !str_eq(name, names[i])) {
        i++;
    }
    return (enum loop_part)i;
}

int tpl_loop_attribute(struct render *r, struct loop *loop, struct str name, struct value *out)
{
    switch (loop_part(name)) {
    case LOOP_INDEX:
        *out = value_int(loop->index0 + 1);
        return 0;
    case LOOP_INDEX0:
        *out = value_int(loop->index0);
        return 0;
    case LOOP_FIRST:
        *out = value_bool(loop->index0 == 0);
        return 0;
    case LOOP_LAST:
        return loop_last(r, loop, out);
    case LOOP_LENGTH:
        return loop_remaining(r, loop, 0, out);
    case LOOP_REVINDEX:
        return loop_remaining(r, loop, loop->index0, out);
    case LOOP_REVINDEX0:
        return loop_remaining(r, loop, loop->index0 + 1, out);
    case LOOP_PREVITEM:
        return loop_previous(r, loop, out);
    case LOOP_NEXTITEM:
        return loop_following(r, loop, out);
    case LOOP_DEPTH:
        *out = value_int((int64_t)loop->depth0 + 1);
        return 0;
    case LOOP_DEPTH0:
        *out = value_int((int64_t)loop->depth0);
        return 0;
    case LOOP_PART_MAX:
        break;
    }
    return 0;
}

static int loop_cycle(struct render *r, const struct value *self, const struct call_args *args,
                      struct value *out)
{
    if (args->plain_len == 0 || args->named_len > 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "loop.cycle() needs items to cycle through");
    }
    *out = args->plain[(size_t)self->loop->index0 % args->plain_len];
    return 0;
}

static int loop_changed(struct render *r, const struct value *self, const struct call_args *args,
                        struct value *out)
{
    struct loop *loop = self->loop;
    struct list *now = tpl_list_new(r->arena, args->plain_len);
    for (size_t i = 0; i < args->plain_len; i++) {
        tpl_list_add(r->arena, now, &args->plain[i]);
    }
    struct value tuple = value_tuple(now);
    bool same = false;
    int rc =
        loop->changed.kind == VALUE_MISSING ? 0 : tpl_value_equal(r, &loop->changed, &tuple, &same);
    if (rc == 0 && !same) {
        loop->changed = tuple;
    }
    *out = value_bool(!same);
    return rc;
}

const struct method tpl_methods_loop[TPL_METHODS_LOOP] = {
    { .name = "cycle", .raw = loop_cycle },
    { .name = "changed", .raw = loop_changed },
};

int tpl_loop_call(struct render *r, struct loop *loop, const struct call_args *args,
                  struct value *out)
{
    static const struct params params = { { "iterable" }, 1, 1 };
    struct value iterable;
    int rc = tpl_call_bind(r, args, &params, "loop", &iterable);
    if (rc < 0) {
        return rc;
    }
    if (loop->node == NULL) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "loop() works only in a loop marked 'recursive'");
    }
    struct buf *saved = r->out;
    r->out = tpl_render_capture(r);
    rc = tpl_exec_recursion(r, loop->node, loop->up, &iterable, loop->depth0 + 1);
    r->out = saved;
    *out = tpl_render_captured(r);
    return rc;
}

/* --- the statement --- */

static int count_round(struct render *r)
{
    if (++r->rounds > r->set->limits.max_rounds) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "loops run for more than %llu rounds",
                               (unsigned long long)r->set->limits.max_rounds);
    }
    return 0;
}

struct walk {
    struct iter plain;
    struct loop *loop; /* when the body uses it */
};

static int walk_start(struct render *r, const struct node *n, const struct value *iterable,
                      struct walk *w)
{
    w->loop = NULL;
    if (!n->loop->uses_loop) {
        return tpl_iter_start(r, iterable, &w->plain);
    }
    w->loop = ARENA_NEW(r->arena, struct loop);
    w->loop->iterable = *iterable;
    w->loop->index0 = -1;
    return tpl_iter_start(r, iterable, &w->loop->iter);
}

static int walk_next(struct render *r, struct walk *w, struct value *out)
{
    return w->loop == NULL ? iter_next(r, &w->plain, out) : next_of_loop(r, w->loop, out);
}

static int run_rounds(struct render *r, struct activation *act, const struct node *n,
                      struct walk *w)
{
    const struct for_node *loop = n->loop;
    struct value item;
    int rc;
    bool any = false;
    while ((rc = walk_next(r, w, &item)) > 0) {
        any = true;
        rc = count_round(r);
        r->line = n->line;
        rc = rc < 0 ? rc : tpl_exec_assign(r, act, loop->target, &item);
        if (rc < 0) {
            return rc;
        }
        if (w->loop != NULL) {
            act->slots[loop->loop_slot] = (struct value) { .kind = VALUE_LOOP, .loop = w->loop };
        }
        tpl_scope_enter(r, act, &loop->scope);
        rc = tpl_exec_body(r, act, &loop->body);
        if (rc < 0) {
            return rc;
        }
        r->line = n->line;
    }
    if (rc == 0 && !any && loop->otherwise.len > 0) {
        tpl_scope_enter(r, act, &loop->else_scope);
        rc = tpl_exec_body(r, act, &loop->otherwise);
    }
    return rc;
}

int tpl_exec_recursion(struct render *r, const struct node *n, struct activation *up,
                       const struct value *iterable, unsigned depth0)
{
    if (r->calls >= r->set->limits.max_calls) {
        return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "a recursive loop nests deeper than %u",
                               r->set->limits.max_calls);
    }
    struct activation *act = tpl_activation_new(r, r->template, n->loop->func, up);
    struct value source = n->loop->test == NULL ? *iterable : filtered(r, up, n->loop, iterable);
    struct walk w;
    int rc = walk_start(r, n, &source, &w);
    if (rc < 0) {
        return rc;
    }
    w.loop->node = n;
    w.loop->up = up;
    w.loop->depth0 = depth0;
    r->calls++;
    rc = run_rounds(r, act, n, &w);
    r->calls--;
    tpl_activation_release(r, r->template, n->loop->func, act);
    return rc;
}

int tpl_exec_for(struct render *r, struct activation *act, const struct node *n)
{
    struct value iterable;
    int rc = tpl_eval(r, act, n->loop->iter, &iterable);
    r->line = n->line;
    if (rc < 0) {
        return rc;
    }
    if (n->loop->recursive) {
        return tpl_exec_recursion(r, n, act, &iterable, 0);
    }
    struct value source = n->loop->test == NULL ? iterable : filtered(r, act, n->loop, &iterable);
    struct walk w;
    rc = walk_start(r, n, &source, &w);
    return rc < 0 ? rc : run_rounds(r, act, n, &w);
}

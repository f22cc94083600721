/* SPDX-License-Identifier: MIT
 *
 * A schema that applies itself to the very same value, directly or through others, never comes to
 * an end. Such circles are searched here along the keywords that stay at the value; a circle
 * through properties or items is fine, since values are finite. $dynamicRef can only be followed
 * when validating: there the depth limit holds.
 */
#include "data/schema_priv.h"

enum { UNSEEN, OPEN, DONE };

/* A node whose neighbours are being looked at; ops and, within one, its targets. */
struct visit {
    struct schema_node *node;
    size_t op, target;
};

struct search {
    struct visit *stack;
    size_t len, cap;
    struct arena *arena;
};

static void push(struct search *s, struct schema_node *n)
{
    if (s->len == s->cap) {
        struct visit *old = s->stack;
        s->cap = s->cap == 0 ? 64 : s->cap * 2;
        s->stack = arena_array(s->arena, s->cap, sizeof *s->stack);
        if (s->len > 0) {
            memcpy(s->stack, old, s->len * sizeof *old);
        }
    }
    n->mark = OPEN;
    s->stack[s->len++] = (struct visit) { .node = n };
}

/* The i-th schema that an operation applies to the same value; NULL when there are no more. */
static struct schema_node *target(const struct schema_op *op, size_t i)
{
    if (op->kind == OP_REF || op->kind == OP_NOT) {
        return i == 0 ? op->node : NULL;
    }
    if (op->kind == OP_ALL_OF || op->kind == OP_ANY_OF || op->kind == OP_ONE_OF) {
        return i < op->nodes.len ? op->nodes.items[i] : NULL;
    }
    if (op->kind == OP_DEPENDENT_SCHEMAS) {
        return i < op->dependencies->len ? op->dependencies->items[i].node : NULL;
    }
    if (op->kind == OP_IF) {
        struct schema_node *parts[] = { op->branch->condition, op->branch->yes, op->branch->no };
        size_t seen = 0;
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            if (parts[k] != NULL && seen++ == i) {
                return parts[k];
            }
        }
    }
    return NULL;
}

/* The next neighbour of the node on top, or NULL when all were given. */
static struct schema_node *next_target(struct visit *v)
{
    for (; v->op < v->node->op_count; v->op++, v->target = 0) {
        struct schema_node *n = target(&v->node->ops[v->op], v->target);
        if (n != NULL) {
            v->target++;
            return n;
        }
    }
    return NULL;
}

int schema_refuse_cycles(struct schema_loader *l)
{
    struct search s = { .arena = l->scratch };
    for (size_t i = 0; i < l->len; i++) {
        if (l->all[i]->mark == UNSEEN) {
            push(&s, l->all[i]);
        }
        while (s.len > 0) {
            struct visit *top = &s.stack[s.len - 1];
            struct schema_node *n = next_target(top);
            if (n == NULL) {
                top->node->mark = DONE;
                s.len--;
            } else if (n->mark == OPEN) {
                return schema_bad(l->e, top->node, NULL,
                                  "leads back to itself without descending into the value");
            } else if (n->mark == UNSEEN) {
                push(&s, n);
            }
        }
    }
    return 0;
}

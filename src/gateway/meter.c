/* SPDX-License-Identifier: MIT
 *
 * Adding up calls; see meter.h.
 */
#include "gateway/meter.h"

#include <stdlib.h>

#include "base/arena.h"

struct meter {
    struct arena *arena;
    const struct price_table *prices;
    const struct price_table *used; /* that priced the first call */
    struct price_memo memo;
    struct meter_sum sum;
    struct meter_row rows[METER_ROWS_MAX];
    size_t len;
    nsec first_byte;
};

struct meter *meter_new(const struct price_table *prices)
{
    struct meter *m = xcalloc(1, sizeof *m);
    m->arena = arena_new();
    m->prices = prices;
    return m;
}

struct meter *meter_free(struct meter *m)
{
    if (m != NULL) {
        m->arena = arena_free(m->arena);
        free(m);
    }
    return NULL;
}

/* Names come from outside, and a record is read by people. */
static struct str sane(struct str name)
{
    return name.len == 0 ? STR("unknown") : str_slice(name, 0, 200);
}

static struct meter_row *row_of(struct meter *m, struct str model, struct str upstream)
{
    model = sane(model);
    upstream = sane(upstream);
    for (size_t i = 0; i < m->len; i++) {
        if (str_eqc(model, m->rows[i].model) && str_eqc(upstream, m->rows[i].upstream)) {
            return &m->rows[i];
        }
    }
    if (m->len == METER_ROWS_MAX) {
        struct meter_row *last = &m->rows[METER_ROWS_MAX - 1];
        last->model = "other";
        last->upstream = "other";
        return last;
    }
    struct meter_row *r = &m->rows[m->len++];
    r->model = arena_dup(m->arena, model);
    r->upstream = arena_dup(m->arena, upstream);
    return r;
}

static void add(int64_t *to, int64_t n)
{
    if (n > 0 && __builtin_add_overflow(*to, n, to)) {
        *to = INT64_MAX;
    }
}

static int64_t with_reserved(int64_t reported, int64_t reserved)
{
    if (reserved > 0) {
        reported = reported < 0 ? 0 : reported;
        add(&reported, reserved);
    }
    return reported;
}

struct llm_usage meter_usage(const struct meter_call *c)
{
    struct llm_usage u = c->usage;
    u.input = with_reserved(u.input, c->reserved.input);
    u.output = with_reserved(u.output, c->reserved.output);
    return u;
}

static void add_call(struct meter_sum *s, const struct meter_call *c, int64_t cost)
{
    struct llm_usage u = meter_usage(c);
    bool used = u.input > 0 || u.output > 0 || u.cache_read > 0 || u.cache_write > 0;
    if (!c->moved) {
        s->calls++;
        s->failed += c->failed;
        s->side += c->side;
        s->local += c->local;
        s->estimated += c->estimated;
    }
    add(&s->attempts, c->attempts);
    add(&s->usage.input, u.input);
    add(&s->usage.output, u.output);
    add(&s->usage.cache_read, u.cache_read);
    add(&s->usage.cache_write, u.cache_write);
    add(&s->usage.reasoning, u.reasoning);
    add(&s->usage.cache_write_long, u.cache_write_long);
    add(&s->usage.searches, u.searches);
    add(&s->cost, cost);
    add(&s->local_cost, c->local ? cost : 0);
    s->unpriced += used && cost < 0;
}

static void add_to(struct meter *m, struct meter_row *row, const struct meter_call *call,
                   int64_t cost)
{
    add_call(&row->sum, call, cost);
    add_call(&m->sum, call, cost);
    if (m->first_byte == 0 && !call->side && !call->failed) {
        m->first_byte = call->first_byte;
    }
}

void meter_add_priced(struct meter *m, const struct meter_call *call, int64_t cost)
{
    add_to(m, row_of(m, call->model, call->upstream), call, cost);
}

int64_t meter_add(struct meter *m, const struct meter_call *call)
{
    struct meter_row *row = row_of(m, call->model, call->upstream);
    struct price_match match;
    int64_t cost = -1;
    if (price_recall(&m->memo, m->prices, call->model, &match)) {
        struct price_entry on = price_on(match.entry, &call->terms);
        cost = price_cost(&on, &call->usage);
        add(&cost, call->reserved.cost);
        row->prices = match.table;
        m->used = m->used == NULL ? match.table : m->used;
    }
    add_to(m, row, call, cost);
    return cost;
}

const struct meter_sum *meter_sum(const struct meter *m)
{
    return &m->sum;
}

size_t meter_rows(const struct meter *m)
{
    return m->len;
}

const struct meter_row *meter_row(const struct meter *m, size_t i)
{
    return &m->rows[i];
}

nsec meter_first_byte(const struct meter *m)
{
    return m->first_byte;
}

const struct price_table *meter_prices(const struct meter *m)
{
    return m->used;
}

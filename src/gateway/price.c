/* SPDX-License-Identifier: MIT
 *
 * Looking up and multiplying prices; see price.h. Reading tables is in price_table.c.
 */
#include "gateway/price.h"

#include <fnmatch.h>
#include <math.h>

#include "gateway/price_builtin.h"
#include "llm/event.h"

/* A model name longer than this is none. */
enum { MODEL_MAX = 256 };

/* "models/gemini-2.5-pro", "Anthropic/Claude-…": the last part, in lower case. */
static bool plain_name(struct str model, char out[MODEL_MAX])
{
    for (size_t i = model.len; i-- > 0;) {
        if (model.ptr[i] == '/') {
            model = str_slice(model, i + 1, model.len);
            break;
        }
    }
    if (model.len == 0 || model.len >= MODEL_MAX || str_has_nul(model)) {
        return false;
    }
    for (size_t i = 0; i < model.len; i++) {
        char c = model.ptr[i];
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    out[model.len] = '\0';
    return true;
}

static bool fits(const struct price_entry *p, const char *name)
{
    for (const char *const *m = p->match; *m != NULL; m++) {
        if (fnmatch(*m, name, FNM_NOESCAPE) == 0) {
            return true;
        }
    }
    return false;
}

static const struct price_table *opened(const struct price_table *t)
{
    return t != NULL && t->later != NULL ? price_later_table(t->later) : t;
}

bool price_find(const struct price_table *t, struct str model, struct price_match *ret)
{
    char name[MODEL_MAX];
    if (!plain_name(model, name)) {
        return false;
    }
    for (t = opened(t); t != NULL; t = opened(t->next)) {
        for (size_t i = 0; i < t->len; i++) {
            if (fits(&t->entries[i], name)) {
                *ret = (struct price_match) { &t->entries[i], t };
                return true;
            }
        }
    }
    return false;
}

bool price_recall(struct price_memo *m, const struct price_table *t, struct str model,
                  struct price_match *ret)
{
    if (m->model[0] == '\0' || !str_eqc(model, m->model)) {
        bool fits_in = model.len < sizeof m->model && !str_has_nul(model);
        m->found = price_find(t, model, &m->match);
        memcpy(m->model, model.ptr, fits_in ? model.len : 0);
        m->model[fits_in ? model.len : 0] = '\0';
    }
    *ret = m->match;
    return m->found;
}

static int64_t said(int64_t n)
{
    return n < 0 ? 0 : n;
}

/* Counts come from outside: what overflows is more than anybody has. */
static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t times(int64_t tokens, int64_t price)
{
    int64_t product;
    return __builtin_mul_overflow(said(tokens), price, &product) ? INT64_MAX : product;
}

static const struct price *tier(const struct price_entry *p, int64_t prompt)
{
    return p->above > 0 && prompt > p->above ? &p->high : &p->base;
}

int64_t price_cost(const struct price_entry *p, const struct llm_usage *usage)
{
    int64_t prompt =
        plus(plus(said(usage->input), said(usage->cache_read)), said(usage->cache_write));
    const struct price *at = tier(p, prompt);
    int64_t cost = times(usage->input, at->input);
    cost = plus(cost, times(usage->output, at->output));
    cost = plus(cost, times(usage->cache_read, at->cache_read));
    int64_t written = said(usage->cache_write);
    int64_t longer =
        said(usage->cache_write_long) < written ? said(usage->cache_write_long) : written;
    cost = plus(cost, times(longer, at->cache_write_long));
    return plus(cost, times(written - longer, at->cache_write));
}

static int64_t dearest_input(const struct price *p)
{
    int64_t most = p->input > p->cache_write ? p->input : p->cache_write;
    return most > p->cache_read ? most : p->cache_read;
}

int64_t price_ceiling(const struct price_entry *p, int64_t input, int64_t output)
{
    const struct price *at = tier(p, said(input));
    return plus(times(input, dearest_input(at)), times(output, at->output));
}

int64_t price_affordable(const struct price_entry *p, int64_t input, int64_t pico)
{
    const struct price *at = tier(p, said(input));
    int64_t left = pico - times(input, dearest_input(at));
    if (left < 0) {
        return 0;
    }
    return at->output == 0 ? INT64_MAX : left / at->output;
}

double price_usd(int64_t pico)
{
    return (double)pico / (double)PICO_PER_USD;
}

int64_t price_pico(double usd)
{
    double pico = round(usd * (double)PICO_PER_USD);
    if (!(pico > 0)) {
        return 0;
    }
    return pico >= 9.2e18 ? INT64_MAX : (int64_t)pico;
}

/* SPDX-License-Identifier: MIT
 *
 * Looking up and multiplying prices; see price.h. Reading tables is in price_table.c.
 */
#include "gateway/price.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "gateway/price_builtin.h"
#include "llm/event.h"

/* No model has a longer name. */
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

static bool fits(const struct price_entry *p, const char *name, bool exactly)
{
    for (const char *const *m = p->match; *m != NULL; m++) {
        bool pattern = (*m)[strcspn(*m, "*?[")] != '\0';
        if (exactly ? strcmp(*m, name) == 0 : pattern && fnmatch(*m, name, FNM_NOESCAPE) == 0) {
            return true;
        }
    }
    return false;
}

static const struct price_entry *find_listed(const struct price_table *t, const char *name)
{
    for (int exactly = 1; exactly >= 0; exactly--) {
        for (size_t i = 0; i < t->len; i++) {
            if (fits(&t->entries[i], name, exactly != 0)) {
                return &t->entries[i];
            }
        }
    }
    return NULL;
}

static size_t digits_before(struct str s, size_t at)
{
    size_t n = 0;
    while (n < at && s.ptr[at - n - 1] >= '0' && s.ptr[at - n - 1] <= '9') {
        n++;
    }
    return n;
}

static bool ends_with_at(struct str s, size_t at, char c)
{
    return at > 0 && s.ptr[at - 1] == c;
}

/* "…-v1:0", "…:0", "…-v1": of Bedrock. */
static struct str without_version(struct str s)
{
    size_t n = digits_before(s, s.len);
    if (n > 0 && ends_with_at(s, s.len - n, ':')) {
        s.len -= n + 1;
        n = digits_before(s, s.len);
    }
    if (n > 0 && ends_with_at(s, s.len - n, 'v') && ends_with_at(s, s.len - n - 1, '-')) {
        s.len -= n + 2;
    }
    return s;
}

/* "…-20251101", "…@20251101", "…-2025-11-01", "…@default". */
static struct str without_date(struct str s)
{
    enum { DAY = 8 };
    size_t n = digits_before(s, s.len);
    if (str_ends(s, STR("@default"))) {
        s.len -= strlen("@default");
    } else if (n == DAY && (ends_with_at(s, s.len - n, '-') || ends_with_at(s, s.len - n, '@'))) {
        s.len -= n + 1;
    } else if (n == 2 && ends_with_at(s, s.len - 2, '-') && digits_before(s, s.len - 3) == 2 &&
               ends_with_at(s, s.len - 5, '-') && digits_before(s, s.len - 6) == 4 &&
               ends_with_at(s, s.len - 10, '-')) {
        s.len -= strlen("-2025-11-01");
    }
    return s;
}

/* "us.anthropic.…", "global.anthropic.…" */
static struct str without_region(struct str s)
{
    static const char *const regions[] = {
        "us.", "eu.", "apac.", "global.", "jp.", "au.", "us-gov."
    };
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        if (str_starts(s, str_of(regions[i]))) {
            return str_slice(s, strlen(regions[i]), s.len);
        }
    }
    return s;
}

static struct str without_maker(struct str s)
{
    return str_starts(s, STR("anthropic.")) ? str_slice(s, strlen("anthropic."), s.len) : s;
}

/* One after the other, until a name is listed. */
static const struct price_entry *find_builtin(struct price_builtin *b, char *name)
{
    static struct str (*const shorter[])(struct str) = { without_version, without_date,
                                                         without_region, without_maker };
    struct str s = str_of(name);
    const struct price_entry *found = price_builtin_find(b, s);
    for (size_t i = 0; found == NULL && i < sizeof shorter / sizeof *shorter; i++) {
        struct str cut = shorter[i](s);
        found = cut.len == s.len || cut.len == 0 ? NULL : price_builtin_find(b, cut);
        s = cut.len == 0 ? s : cut;
    }
    if (found == NULL && str_starts(s, STR("claude"))) { /* "claude-sonnet-4.5" */
        for (size_t i = (size_t)(s.ptr - name); i < (size_t)(s.ptr - name) + s.len; i++) {
            name[i] = name[i] == '.' ? '-' : name[i];
        }
        found = price_builtin_find(b, s);
    }
    return found;
}

bool price_find(const struct price_table *t, struct str model, struct price_match *ret)
{
    char name[MODEL_MAX];
    if (!plain_name(model, name)) {
        return false;
    }
    for (; t != NULL; t = t->next) {
        const struct price_entry *found =
            t->builtin != NULL ? find_builtin(t->builtin, name) : find_listed(t, name);
        if (found != NULL) {
            *ret = (struct price_match) { found, t };
            return true;
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

static const struct price *price_at(const struct price_entry *p, int64_t prompt)
{
    const struct price *at = &p->base;
    for (size_t i = 0; i < PRICE_STEPS && p->steps[i].above > 0 && prompt > p->steps[i].above;
         i++) {
        at = &p->steps[i].price;
    }
    return at;
}

enum price_tier price_tier_of(struct str word)
{
    static const char *const words[PRICE_TIERS] = { "", "flex", "priority", "ultrafast" };
    for (int tier = PRICE_FLEX; tier < PRICE_TIERS; tier++) {
        if (str_eqc(word, words[tier])) {
            return (enum price_tier)tier;
        }
    }
    return PRICE_STANDARD;
}

static void raise_price(struct price *p, int64_t thousandths)
{
    int64_t *const all[] = { &p->input, &p->output, &p->cache_read, &p->cache_write,
                             &p->cache_write_long };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t raised = times(*all[i], thousandths);
        *all[i] = raised == INT64_MAX ? raised : raised / 1000;
    }
}

struct price_entry price_on(const struct price_entry *p, const struct price_terms *terms)
{
    const struct price_entry *listed = p->tiers[terms->tier];
    struct price_entry on = listed != NULL ? *listed : *p;
    int64_t factors[] = { terms->fast ? on.fast : 0, terms->us ? on.us : 0 };
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        if (factors[i] > 0) {
            raise_price(&on.base, factors[i]);
            for (size_t k = 0; k < PRICE_STEPS; k++) {
                raise_price(&on.steps[k].price, factors[i]);
            }
        }
    }
    return on;
}

int64_t price_cost(const struct price_entry *p, const struct llm_usage *usage)
{
    int64_t prompt =
        plus(plus(said(usage->input), said(usage->cache_read)), said(usage->cache_write));
    const struct price *at = price_at(p, prompt);
    int64_t cost = times(usage->input, at->input);
    cost = plus(cost, times(usage->output, at->output));
    cost = plus(cost, times(usage->cache_read, at->cache_read));
    int64_t written = said(usage->cache_write);
    int64_t longer =
        said(usage->cache_write_long) < written ? said(usage->cache_write_long) : written;
    cost = plus(cost, times(longer, at->cache_write_long));
    cost = plus(cost, times(usage->searches, p->search));
    return plus(cost, times(written - longer, at->cache_write));
}

static int64_t dearest_input(const struct price *p)
{
    int64_t most = p->input > p->cache_write ? p->input : p->cache_write;
    return most > p->cache_read ? most : p->cache_read;
}

int64_t price_ceiling(const struct price_entry *p, int64_t input, int64_t output)
{
    const struct price *at = price_at(p, said(input));
    return plus(times(input, dearest_input(at)), times(output, at->output));
}

int64_t price_affordable(const struct price_entry *p, int64_t input, int64_t pico)
{
    const struct price *at = price_at(p, said(input));
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

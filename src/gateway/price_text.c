/* SPDX-License-Identifier: MIT
 *
 * Searching and reading the built-in price table; see price_builtin.h.
 */
#include <string.h>

#include "base/arena.h"
#include "gateway/price_builtin.h"

/* Dollars per million tokens; beyond that it is a slip of the pen. */
#define PRICE_MAX 1000000.0

struct price_known {
    struct str name;
    struct price_entry entry;
    struct price_known *next;
};

struct str price_text_header(struct str text, const char *key)
{
    while (str_starts(text, STR("# "))) {
        struct str value = str_split(&text, '\n');
        value = str_slice(value, 2, value.len);
        struct str name = str_split(&value, ':');
        if (str_eqc(name, key) && value.ptr != NULL) {
            return str_trim(value);
        }
    }
    return STR_EMPTY;
}

static int compare(struct str a, struct str b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : a.len < b.len ? -1 : a.len > b.len;
}

/* The line around `at`, without its end. */
static struct str line_at(struct str text, size_t at, size_t *ret_from)
{
    size_t from = at, to = at;
    while (from > 0 && text.ptr[from - 1] != '\n') {
        from--;
    }
    while (to < text.len && text.ptr[to] != '\n') {
        to++;
    }
    *ret_from = from;
    return str_slice(text, from, to);
}

bool price_text_find(struct str text, struct str name, struct str *ret)
{
    size_t low = 0, high = text.len; /* of the lines that may be it */
    while (low < high) {
        size_t from;
        struct str rest = line_at(text, low + (high - low) / 2, &from);
        size_t to = from + rest.len;
        struct str found = str_split(&rest, ' ');
        int order = compare(name, found); /* comments sort before all names */
        if (order == 0 && rest.ptr != NULL) {
            *ret = rest;
            return true;
        }
        if (order < 0) {
            high = from;
        } else {
            low = to + 1;
        }
    }
    return false;
}

static bool read_dollars(struct str text, double scale, int64_t *ret)
{
    double usd;
    if (!str_to_double(text, &usd) || !(usd >= 0) || usd > PRICE_MAX) {
        return false;
    }
    *ret = price_pico(usd / scale);
    return true;
}

/* "5,30,0.5": input and output, then what caches cost. */
static bool read_prices(struct str list, struct price *ret)
{
    int64_t *const at[] = { &ret->input, &ret->output, &ret->cache_read, &ret->cache_write,
                            &ret->cache_write_long };
    bool known[sizeof at / sizeof *at] = { false };
    for (size_t i = 0; list.ptr != NULL; i++) {
        struct str word = str_split(&list, ',');
        if (i == sizeof at / sizeof *at) {
            return false;
        }
        known[i] = word.len > 0;
        if (known[i] && !read_dollars(word, 1e6, at[i])) {
            return false;
        }
    }
    ret->cache_read = known[2] ? ret->cache_read : ret->input;
    ret->cache_write = known[3] ? ret->cache_write : ret->input;
    ret->cache_write_long = known[4] ? ret->cache_write_long : 2 * ret->input;
    return known[0] && known[1];
}

static bool add_step(struct price_entry *p, int64_t above, const struct price *price)
{
    size_t n = 0;
    while (n < PRICE_STEPS && p->steps[n].above > 0) {
        n++;
    }
    if (n == PRICE_STEPS || (n > 0 && p->steps[n - 1].above >= above)) {
        return false;
    }
    p->steps[n] = (struct price_step) { above, *price };
    return true;
}

/* The entry that "flex" stands for; NULL: there is no such tier. */
static struct price_entry *tier_of(struct arena *a, struct price_entry *p, struct str word)
{
    enum price_tier tier = price_tier_of(word);
    if (word.len == 0) {
        return p;
    }
    if (tier == PRICE_STANDARD) {
        return NULL;
    }
    if (p->tiers[tier] == NULL) {
        p->tiers[tier] = ARENA_NEW(a, struct price_entry);
    }
    return p->tiers[tier];
}

static bool read_word(struct arena *a, struct str word, struct price_entry *p)
{
    struct str value = word;
    struct str key = str_split(&value, '=');
    struct price price = { 0 };
    int64_t above = 0;
    double factor;
    if (value.ptr == NULL) {
        return false;
    }
    if (str_eqc(key, "search")) {
        return read_dollars(value, 1, &p->search);
    }
    if (str_eqc(key, "fast") || str_eqc(key, "us")) {
        bool good = str_starts(value, STR("x")) &&
                    str_to_double(str_slice(value, 1, value.len), &factor) && factor >= 1 &&
                    factor <= 1000;
        *(str_eqc(key, "us") ? &p->us : &p->fast) = good ? (int64_t)(factor * 1000 + 0.5) : 0;
        return good;
    }
    struct str tokens = key;
    struct price_entry *to = tier_of(a, p, str_split(&tokens, '>'));
    bool stepped = tokens.ptr != NULL;
    if (to == NULL || !read_prices(value, &price) ||
        (stepped && (!str_to_i64(tokens, &above) || above <= 0))) {
        return false;
    }
    if (stepped) {
        return add_step(to, above, &price);
    }
    to->base = price;
    return true;
}

bool price_text_read(struct arena *a, struct str words, struct price_entry *ret)
{
    *ret = (struct price_entry) { 0 };
    if (!str_starts(words, STR("="))) {
        return false; /* the standard prices come first */
    }
    while (words.ptr != NULL) {
        if (!read_word(a, str_split(&words, ' '), ret)) {
            return false;
        }
    }
    for (int tier = 0; tier < PRICE_TIERS; tier++) { /* what all tiers share */
        if (ret->tiers[tier] != NULL) {
            ret->tiers[tier]->search = ret->search;
            ret->tiers[tier]->fast = ret->fast;
            ret->tiers[tier]->us = ret->us;
        }
    }
    return true;
}

const struct price_entry *price_builtin_find(struct price_builtin *b, struct str name)
{
    struct price_entry entry;
    struct str words;
    for (const struct price_known *k = b->known; k != NULL; k = k->next) {
        if (compare(k->name, name) == 0) {
            return &k->entry;
        }
    }
    if (!price_text_find(b->text, name, &words) || !price_text_read(b->arena, words, &entry)) {
        return NULL;
    }
    struct price_known *k = ARENA_NEW(b->arena, struct price_known);
    *k = (struct price_known) { arena_str(b->arena, name), entry, b->known };
    b->known = k;
    return &k->entry;
}

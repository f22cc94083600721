/* SPDX-License-Identifier: MIT
 *
 * Reading price tables: the shape of the file, numbers with a meaning, the built-in one.
 */
#include <fcntl.h>

#include "base/file.h"
#include "base/json.h"
#include "data/shape.h"
#include "data/yaml.h"
#include "gateway/price.h"
#include "gateway/price_builtin.h"

static const struct json_limits limits = { .max_bytes = 4 << 20,
                                           .max_depth = 16,
                                           .max_values = 200000 };

/* A million dollars for a million tokens: beyond that it is a slip of the pen. */
#define PRICE_MAX 1000000.0

static const struct shape above_shape[] = {
    { "tokens", SHAPE_INT },
    { "input", SHAPE_ANY },
    { "output", SHAPE_ANY },
    { "cache_read", SHAPE_ANY },
    { "cache_write", SHAPE_ANY },
    { "cache_write_long", SHAPE_ANY },
    { 0 },
};

static const struct shape model_shape[] = {
    { "match", SHAPE_STRINGS },
    { "input", SHAPE_ANY },
    { "output", SHAPE_ANY },
    { "cache_read", SHAPE_ANY },
    { "cache_write", SHAPE_ANY },
    { "cache_write_long", SHAPE_ANY },
    { "above", SHAPE_OBJECT, .inner = above_shape },
    { 0 },
};

static const struct shape table_shape[] = {
    { "version", SHAPE_STRING },
    { "source", SHAPE_STRING },
    { "models", SHAPE_LIST, .inner = model_shape },
    { 0 },
};

/* USD per million tokens into pico-dollars a token; `otherwise` where the key is absent, an error
 * when that is negative. */
static int read_number(const struct json *o, const char *key, const char *file, int64_t otherwise,
                       int64_t *ret, struct err *e)
{
    const struct json *v = json_get(o, key);
    char at[JSON_AT_LEN];
    if (v == NULL || json_is(v, JSON_NULL)) {
        *ret = otherwise;
        return otherwise >= 0
                   ? 0
                   : ERR(e, ERR_CONFIG, "%s: a price needs '%s'", json_at(file, o, at), key);
    }
    double usd = json_real(v, -1);
    if (usd < 0 || usd > PRICE_MAX) {
        return ERR(e, ERR_CONFIG, "%s: '%s' must be US dollars per million tokens, 0 … 1000000",
                   json_at(file, v, at), key);
    }
    *ret = price_pico(usd / 1e6);
    return 0;
}

static int64_t twice(int64_t price)
{
    return price > INT64_MAX / 2 ? INT64_MAX : price * 2;
}

/* Who does not say what the cache costs pays the full price: never too little. */
static int read_price(const struct json *o, const char *file, struct price *ret, struct err *e)
{
    int r = read_number(o, "input", file, -1, &ret->input, e);
    if (r == 0) {
        r = read_number(o, "output", file, -1, &ret->output, e);
    }
    if (r == 0) {
        r = read_number(o, "cache_read", file, ret->input, &ret->cache_read, e);
    }
    if (r == 0) {
        r = read_number(o, "cache_write", file, ret->input, &ret->cache_write, e);
    }
    if (r == 0) { /* no provider but Anthropic tells of them */
        r = read_number(o, "cache_write_long", file, twice(ret->input), &ret->cache_write_long, e);
    }
    return r;
}

static int read_entry(struct arena *a, const struct json *o, const char *file,
                      struct price_entry *ret, struct err *e)
{
    const struct json *match = json_get(o, "match");
    const struct json *above = json_get(o, "above");
    char at[JSON_AT_LEN];
    size_t len = json_len(match);
    if (len == 0) {
        return ERR(e, ERR_CONFIG, "%s: an entry needs 'match', a list of model names",
                   json_at(file, o, at));
    }
    const char **names = arena_array(a, len + 1, sizeof *names);
    for (size_t i = 0; i < len; i++) {
        names[i] = json_cstring(json_item(match, i), "");
    }
    ret->match = names;
    int r = read_price(o, file, &ret->base, e);
    if (r == 0 && json_is(above, JSON_OBJECT)) {
        ret->above = json_int(json_get(above, "tokens"), 0);
        if (ret->above == 0) {
            return ERR(e, ERR_CONFIG, "%s: 'above' needs 'tokens'", json_at(file, above, at));
        }
        r = read_price(above, file, &ret->high, e);
    }
    return r;
}

int price_parse(struct arena *a, struct str text, const char *file, struct price_table **ret,
                struct err *e)
{
    struct json *doc;
    int r = yaml_parse(a, text, file, &limits, &doc, e);
    if (r == 0) {
        r = shape_check(doc, table_shape, file, e);
    }
    if (r < 0) {
        return r;
    }
    struct price_table *t = ARENA_NEW(a, struct price_table);
    t->version = json_cstring(json_get(doc, "version"), NULL);
    t->source = json_cstring(json_get(doc, "source"), "");
    t->file = arena_dup(a, str_of(file));
    if (t->version == NULL) {
        return ERR(e, ERR_CONFIG,
                   "%s: a price table needs 'version', a text such as \"2026-11-15\"", file);
    }
    const struct json *models = json_get(doc, "models");
    size_t len = json_len(models);
    struct price_entry *entries = arena_array(a, len, sizeof *entries);
    for (size_t i = 0; i < len && r == 0; i++) {
        r = read_entry(a, json_item(models, i), file, &entries[i], e);
    }
    t->entries = entries;
    t->len = len;
    if (r == 0) {
        *ret = t;
    }
    return r;
}

static int load_builtin(struct arena *a, struct price_table **ret, struct err *e)
{
    struct price_table *last = NULL;
    for (size_t i = 0; i < builtin_prices_len; i++) { /* by date: each goes before older ones */
        const struct builtin_price *b = &builtin_prices[i];
        struct price_table *t;
        int r = price_parse(a, str_n(b->text, b->len), b->file, &t, e);
        if (r < 0) {
            return err_wrap(e, "built-in price table");
        }
        t->file = "built in";
        t->next = last;
        last = t;
    }
    *ret = last;
    return 0;
}

/* Tables that no build with a passing test suite holds broken; if so, no model has a price, which
 * a limit in dollars refuses. */
const struct price_table *price_later_table(struct price_later *l)
{
    struct err e;
    if (!l->read) {
        l->read = true;
        if (load_builtin(l->arena, &l->table, &e) < 0) {
            l->table = NULL;
        }
    }
    return l->table;
}

int price_load(struct arena *a, const char *file, struct price_table **ret, struct err *e)
{
    struct price_table *builtin = ARENA_NEW(a, struct price_table);
    struct price_table *own;
    builtin->file = "built in";
    builtin->later = ARENA_NEW(a, struct price_later);
    builtin->later->arena = a;
    if (file == NULL) {
        *ret = builtin;
        return 0;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(limits.max_bytes);
    int r = file_read(AT_FDCWD, file, text.max, &text, e);
    if (r == 0) {
        r = price_parse(a, arena_str(a, buf_str(&text)), file, &own, e);
    }
    if (r < 0) {
        return err_wrap(e, "price table");
    }
    own->next = builtin;
    *ret = own;
    return 0;
}

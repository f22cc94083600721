/* SPDX-License-Identifier: MIT
 *
 * Reading a price table of the user's: the shape of the file, numbers with a meaning.
 */
#include <fcntl.h>
#include <time.h>

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

static const struct shape tier_shape[] = {
    { "input", SHAPE_ANY },       { "output", SHAPE_ANY },           { "cache_read", SHAPE_ANY },
    { "cache_write", SHAPE_ANY }, { "cache_write_long", SHAPE_ANY }, { 0 },
};

static const struct shape tiers_shape[] = {
    { "flex", SHAPE_OBJECT, .inner = tier_shape },
    { "priority", SHAPE_OBJECT, .inner = tier_shape },
    { "ultrafast", SHAPE_OBJECT, .inner = tier_shape },
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
    { "tiers", SHAPE_OBJECT, .inner = tiers_shape },
    { "search", SHAPE_ANY },
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

/* USD for one web search. */
static int read_search(const struct json *o, const char *file, int64_t *ret, struct err *e)
{
    int64_t each_token;
    int r = read_number(o, "search", file, 0, &each_token, e);
    *ret = r < 0 || each_token > INT64_MAX / 1000000 ? 0 : each_token * 1000000;
    return r;
}

static int read_tiers(struct arena *a, const struct json *tiers, const char *file,
                      struct price_entry *ret, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(tiers); i++) {
        const struct json_member *m = &tiers->object.members[i];
        struct price_entry *tier = ARENA_NEW(a, struct price_entry);
        *tier = (struct price_entry) { .search = ret->search };
        r = read_price(m->value, file, &tier->base, e);
        ret->tiers[price_tier_of(m->key)] = tier;
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
        ret->steps[0].above = json_int(json_get(above, "tokens"), 0);
        if (ret->steps[0].above == 0) {
            return ERR(e, ERR_CONFIG, "%s: 'above' needs 'tokens'", json_at(file, above, at));
        }
        r = read_price(above, file, &ret->steps[0].price, e);
    }
    r = r < 0 ? r : read_search(o, file, &ret->search, e);
    return r < 0 ? r : read_tiers(a, json_get(o, "tiers"), file, ret, e);
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
                   "%s: a price table needs 'version', a text such as \"2026-11-18\"", file);
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

static struct str builtin_text(void)
{
    return str_n(builtin_prices[0].text, builtin_prices[0].len);
}

int64_t price_builtin_date(void)
{
    struct str date = price_text_header(builtin_text(), "version");
    int64_t part[3] = { 0 };
    for (size_t i = 0; i < 3; i++) {
        if (!str_to_i64(str_split(&date, '-'), &part[i])) {
            return 0;
        }
    }
    struct tm day = { .tm_year = (int)part[0] - 1900,
                      .tm_mon = (int)part[1] - 1,
                      .tm_mday = (int)part[2] };
    return (int64_t)timegm(&day);
}

static struct price_table *open_builtin(struct arena *a)
{
    struct str text = builtin_text();
    struct price_table *t = ARENA_NEW(a, struct price_table);
    struct price_builtin *b = ARENA_NEW(a, struct price_builtin);
    *b = (struct price_builtin) { .arena = a, .text = text };
    *t = (struct price_table) { .version = arena_dup(a, price_text_header(text, "version")),
                                .source = arena_dup(a, price_text_header(text, "source")),
                                .file = "built in",
                                .builtin = b };
    return t;
}

int price_load(struct arena *a, const char *file, struct price_table **ret, struct err *e)
{
    struct price_table *builtin = open_builtin(a);
    struct price_table *own;
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

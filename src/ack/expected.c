/* SPDX-License-Identifier: MIT
 *
 * Reads the file of expected failures; see expected.h.
 */
#include "ack/expected.h"

#include <fcntl.h>

#include "base/file.h"
#include "base/json.h"
#include "data/shape.h"
#include "data/yaml.h"

enum { ENTRIES_MAX = 4096 };

#define FILE_MAX ((size_t)1 << 20)

static const struct shape entry_shape[] = {
    { "adapter", SHAPE_STRING },
    { "scenario", SHAPE_STRING },
    { "reason", SHAPE_STRING },
    { 0 },
};

static const struct shape file_shape[] = {
    { "expected", SHAPE_LIST, .inner = entry_shape },
    { "flaky", SHAPE_LIST, .inner = entry_shape },
    { 0 },
};

static int read_text(const struct json *entry, const char *key, const char *at, const char **ret,
                     struct err *e)
{
    *ret = json_cstring(json_get(entry, key), "");
    if (str_trim(str_of(*ret)).len == 0) {
        return ERR(e, ERR_CONFIG, "%s: '%s' is missing: an entry has adapter, scenario and reason",
                   at, key);
    }
    return 0;
}

static int read_entry(struct arena *a, const struct json *v, const char *file,
                      struct expected_entry *ret, struct err *e)
{
    char at[JSON_AT_LEN];
    ret->at = arena_dup(a, str_of(json_at(file, v, at)));
    int r = read_text(v, "adapter", ret->at, &ret->adapter, e);
    if (r == 0) {
        r = read_text(v, "scenario", ret->at, &ret->scenario, e);
    }
    return r < 0 ? r : read_text(v, "reason", ret->at, &ret->reason, e);
}

int expected_parse(struct arena *a, struct str text, const char *file, struct expected *ret,
                   struct err *e)
{
    struct json *doc;
    int r = yaml_parse(a, text, file, NULL, &doc, e);
    if (r < 0) {
        return r;
    }
    *ret = (struct expected) { 0 };
    if (json_is(doc, JSON_NULL)) {
        return 0; /* an empty file: all is well */
    }
    r = shape_check(doc, file_shape, file, e);
    if (r < 0) {
        return r;
    }
    const struct json *lists[] = { json_get(doc, "flaky"), json_get(doc, "expected") };
    size_t len = json_len(lists[0]) + json_len(lists[1]);
    if (len > ENTRIES_MAX) {
        return ERR(e, ERR_LIMIT, "%s: more than %d entries", file, ENTRIES_MAX);
    }
    struct expected_entry *items = arena_array(a, len, sizeof *items);
    for (size_t list = 0, n = 0; r == 0 && list < ARRAY_LEN(lists); list++) {
        for (size_t i = 0; r == 0 && i < json_len(lists[list]); i++, n++) {
            items[n].flaky = list == 0;
            r = read_entry(a, json_item(lists[list], i), file, &items[n], e);
        }
    }
    if (r == 0) {
        *ret = (struct expected) { .items = items, .len = len };
    }
    return r;
}

int expected_load(struct arena *a, const char *path, struct expected *ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    struct err why = { 0 };
    int r = file_read(AT_FDCWD, path, FILE_MAX, &text, &why);
    r = r < 0 ? r : expected_parse(a, buf_str(&text), path, ret, &why);
    return r < 0 ? ERR(e, file_fault(why.code), "%s", why.msg) : 0;
}

bool expected_names(const struct expected_entry *x, const char *scenario)
{
    return str_glob(str_of(x->scenario), str_of(scenario), false);
}

bool expected_matches(const struct expected_entry *x, const char *adapter, const char *scenario)
{
    return expected_names(x, scenario) && str_glob(str_of(x->adapter), str_of(adapter), false);
}

const struct expected_entry *expected_find(const struct expected *x, const char *adapter,
                                           const char *scenario)
{
    for (size_t i = 0; i < x->len; i++) {
        if (expected_matches(&x->items[i], adapter, scenario)) {
            return &x->items[i];
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * A profile for several versions of a harness: parts that apply to some of them only are merged
 * over the rest.
 */
#include "adapters/profile_priv.h"
#include "adapters/version.h"
#include "data/yaml.h"

/* A profile is written by hand; a larger one is an accident. */
static const struct json_limits limits = { .max_bytes = 1 << 20,
                                           .max_depth = 32,
                                           .max_values = 20000 };

/* Members of objects one by one; null removes; anything else replaces. */
static struct json *merge(struct arena *a, const struct json *base, const struct json *over)
{
    if (!json_is(over, JSON_OBJECT)) {
        return json_copy(a, over);
    }
    struct json *result = json_is(base, JSON_OBJECT) ? json_copy(a, base) : json_object(a);
    for (size_t i = 0; i < json_len(over); i++) {
        const struct json_member *m = &over->object.members[i];
        if (json_is(m->value, JSON_NULL)) {
            (void)json_remove(result, m->key);
        } else {
            json_set(a, result, m->key, merge(a, json_find(result, m->key), m->value));
        }
    }
    return result;
}

/* What a part says is lacking is not declared any more. */
static void drop_capabilities(struct arena *a, struct json *doc, const struct json *lacks)
{
    struct json *kept = json_array(a);
    const struct json *declared = json_get(doc, "capabilities");
    for (size_t i = 0; i < json_len(declared); i++) {
        struct json *name = json_item(declared, i);
        if (json_find(lacks, json_str(name, STR_EMPTY)) == NULL) {
            json_push(a, kept, name);
        }
    }
    if (json_len(lacks) > 0 && declared != NULL) {
        json_setc(a, doc, "capabilities", kept);
    }
}

static struct json *add_part(struct arena *a, struct json *doc, const struct json *part)
{
    struct json *over = json_copy(a, part);
    (void)json_remove(over, STR("since"));
    (void)json_remove(over, STR("until"));
    struct json *result = merge(a, doc, over);
    drop_capabilities(a, result, json_get(part, "lacks"));
    return result;
}

/* Each part must make a good profile. */
static int check_parts(struct arena *a, const struct profile *p, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (p->versions != NULL && !json_is(p->versions, JSON_ARRAY)) {
        return ERR(e, ERR_CONFIG, "%s: 'versions' must be a list of {since, until, …}",
                   json_at(file, p->versions, at));
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(p->versions); i++) {
        const struct json *part = json_item(p->versions, i);
        struct profile *ignored;
        const struct json *since = json_get(part, "since");
        const struct json *until = json_get(part, "until");
        bool bounded = json_is(since, JSON_STRING) || json_is(until, JSON_STRING);
        if (!bounded || json_get(part, "name") != NULL || json_get(part, "versions") != NULL) {
            return ERR(e, ERR_CONFIG,
                       "%s: a part of 'versions' needs 'since' or 'until' (versions as strings) "
                       "and can have neither 'name' nor 'versions'",
                       json_at(file, part, at));
        }
        r = profile_read(a, add_part(a, p->doc, part), file, &ignored, e);
    }
    return r;
}

int profile_parse(struct arena *a, struct str text, const char *file, struct profile **ret,
                  struct err *e)
{
    struct json *doc;
    int r = yaml_parse(a, text, file, &limits, &doc, e);
    r = r < 0 ? r : profile_read(a, doc, file, ret, e);
    return r < 0 ? r : check_parts(a, *ret, file, e);
}

const struct profile *profile_variant(struct arena *a, const struct profile *p, const char *version)
{
    struct json *doc = p->doc;
    bool changed = false;
    for (size_t i = 0; version != NULL && i < json_len(p->versions); i++) {
        const struct json *part = json_item(p->versions, i);
        if (version_within(str_of(version), json_cstring(json_get(part, "since"), NULL),
                           json_cstring(json_get(part, "until"), NULL))) {
            doc = add_part(a, doc, part);
            changed = true;
        }
    }
    struct profile *variant;
    if (!changed || profile_read(a, doc, p->source, &variant, NULL) < 0) {
        return p; /* parts were checked when the profile was read */
    }
    variant->source = p->source;
    return variant;
}

int profile_override(struct arena *a, const struct profile *p, const char *key,
                     const struct json *over, const struct profile **ret, struct err *e)
{
    struct json *part = json_object(a);
    struct profile *changed;
    json_setc(a, part, key, json_copy(a, over));
    int r = profile_read(a, merge(a, p->doc, part), p->name, &changed, e);
    if (r < 0) {
        return r;
    }
    changed->source = p->source;
    *ret = changed;
    return 0;
}

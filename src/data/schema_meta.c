/* SPDX-License-Identifier: MIT
 *
 * Which rules a schema is read by: its "$schema" names a draft, or a meta-schema of someone's own,
 * whose "$vocabulary" is then read.
 */
#include "data/schema_meta.h"

#include "data/schema_priv.h"

#define META_HOST "json-schema.org/"

/* Own meta-schemas may be described by others in turn; real ones are one or two steps away. */
enum { META_CHAIN = 8 };

static const struct {
    const char *path; /* behind scheme and host */
    enum schema_draft draft;
} drafts[] = {
    { "draft/2020-12/schema", SCHEMA_DRAFT_2020_12 },
    { "draft-07/schema", SCHEMA_DRAFT_07 },
    /* read by the rules of the nearest draft that is supported */
    { "draft/2019-09/schema", SCHEMA_DRAFT_2020_12 },
    { "draft-06/schema", SCHEMA_DRAFT_07 },
    { "draft-04/schema", SCHEMA_DRAFT_07 },
};

static const struct {
    const char *path; /* behind ".../vocab/" */
    unsigned bits;
} vocabularies[] = {
    { "core", VOCAB_CORE },
    { "applicator", VOCAB_APPLICATOR },
    { "unevaluated", VOCAB_UNEVALUATED },
    { "validation", VOCAB_VALIDATION },
    { "format-annotation", VOCAB_FORMAT },
    { "content", VOCAB_CONTENT },
    { "meta-data", 0 },
};

/* What follows "http://json-schema.org/" or the same with https; both are in use. */
static bool strip_host(struct str uri, struct str *ret)
{
    static const char *const hosts[] = { "http://" META_HOST, "https://" META_HOST };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        if (str_starts(uri, str_of(hosts[i]))) {
            *ret = str_slice(uri, strlen(hosts[i]), uri.len);
            return true;
        }
    }
    return false;
}

static struct str strip_hash(struct str uri)
{
    return str_ends(uri, STR("#")) ? str_slice(uri, 0, uri.len - 1) : uri;
}

static enum schema_draft known_draft(struct str uri)
{
    struct str path;
    if (strip_host(uri, &path)) {
        for (size_t i = 0; i < ARRAY_LEN(drafts); i++) {
            if (str_eqc(path, drafts[i].path)) {
                return drafts[i].draft;
            }
        }
    }
    return SCHEMA_DRAFT_UNSET;
}

const struct json *schema_meta_find(struct arena *a, struct str uri)
{
    struct str wanted;
    if (!strip_host(uri, &wanted)) {
        return NULL;
    }
    for (size_t i = 0; i < schema_metas_len; i++) {
        struct json *root = NULL;
        struct str path;
        if (json_parse(a, str_n(schema_metas[i].text, schema_metas[i].len), NULL, &root, NULL) !=
            0) {
            continue;
        }
        struct str own = json_str(json_get(root, "$id"), STR_EMPTY);
        if (strip_host(strip_hash(own), &path) && str_eq(path, wanted)) {
            return root;
        }
    }
    return NULL;
}

static bool vocabulary_bits(struct str uri, unsigned *ret)
{
    static const struct str vocabulary = { "draft/2020-12/vocab/", 20 };
    struct str path;
    if (!strip_host(uri, &path) || !str_starts(path, vocabulary)) {
        return false;
    }
    path = str_slice(path, vocabulary.len, path.len);
    for (size_t i = 0; i < ARRAY_LEN(vocabularies); i++) {
        if (str_eqc(path, vocabularies[i].path)) {
            *ret = vocabularies[i].bits;
            return true;
        }
    }
    return false;
}

static int read_vocabulary(const struct json *listed, struct str meta, unsigned *ret, struct err *e)
{
    *ret = VOCAB_CORE;
    for (size_t i = 0; i < listed->object.len; i++) {
        const struct json_member *m = &listed->object.members[i];
        unsigned bits = 0;
        if (vocabulary_bits(m->key, &bits)) {
            *ret |= bits;
        } else if (json_bool(m->value, false)) {
            return ERR(e, ERR_CONFIG, "schema: '%.*s' requires the unknown vocabulary '%.*s'",
                       STR_ARG(meta), STR_ARG(m->key));
        }
    }
    return 0;
}

int schema_dialect_find(struct schema_loader *l, struct str meta, struct schema_dialect *ret)
{
    unsigned bits = 0;
    struct str uri = strip_hash(meta);
    for (int i = 0; i < META_CHAIN; i++) {
        ret->draft = known_draft(uri);
        if (ret->draft != SCHEMA_DRAFT_UNSET) {
            ret->vocabularies = bits != 0 ? bits : VOCAB_ALL;
            return 0;
        }
        const struct json *root;
        int rc = schema_document_find(l, uri, &root);
        if (rc != 0) {
            return err_wrap(l->e, "schema: \"$schema\" is neither 2020-12 nor draft-07");
        }
        const struct json *listed = json_get(root, "$vocabulary");
        if (bits == 0 && json_is(listed, JSON_OBJECT)) {
            rc = read_vocabulary(listed, uri, &bits, l->e);
        }
        if (rc != 0) {
            return rc;
        }
        struct str next = strip_hash(json_str(json_get(root, "$schema"), STR_EMPTY));
        if (next.len == 0 || str_eq(next, uri)) {
            break;
        }
        uri = next;
    }
    ret->draft = SCHEMA_DRAFT_2020_12;
    ret->vocabularies = bits != 0 ? bits : VOCAB_ALL;
    return 0;
}

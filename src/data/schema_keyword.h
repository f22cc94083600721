/* SPDX-License-Identifier: MIT
 *
 * The keywords of JSON Schema as a table: since which draft, in which vocabulary, and what
 * their values must be. Also for code that walks through schemas without compiling them.
 */
#pragma once

#include "data/schema.h"

enum schema_vocabulary {
    VOCAB_CORE = 1u << 0,
    VOCAB_APPLICATOR = 1u << 1,
    VOCAB_UNEVALUATED = 1u << 2,
    VOCAB_VALIDATION = 1u << 3,
    VOCAB_FORMAT = 1u << 4,
    VOCAB_CONTENT = 1u << 5,
    VOCAB_ALL = VOCAB_CORE | VOCAB_APPLICATOR | VOCAB_UNEVALUATED | VOCAB_VALIDATION |
                VOCAB_FORMAT | VOCAB_CONTENT,
};

struct schema_dialect {
    enum schema_draft draft;
    unsigned vocabularies;
};

/* What the value of a keyword must be. The WANT_SCHEMA… ones hold subschemas. */
enum schema_want {
    WANT_ANY,
    WANT_STRING,
    WANT_BOOL,
    WANT_NUMBER,
    WANT_POSITIVE,
    WANT_LIMIT, /* a number, or the boolean of older drafts */
    WANT_COUNT, /* an integer, not negative */
    WANT_TYPE,
    WANT_LIST,
    WANT_STRINGS,
    WANT_STRINGS_MAP, /* object of lists of strings */
    WANT_OBJECT,
    WANT_SCHEMA,
    WANT_SCHEMA_LIST,
    WANT_SCHEMA_MAP,
    WANT_SCHEMA_OR_LIST,
    WANT_SCHEMA_OR_STRINGS_MAP,
};

/* X(id, name, first draft, vocabulary, shape) */
#define SCHEMA_KEYWORDS(X)                                                              \
    X(KW_SCHEMA, "$schema", 07, CORE, STRING)                                           \
    X(KW_ID, "$id", 07, CORE, STRING)                                                   \
    X(KW_ANCHOR, "$anchor", 2020_12, CORE, STRING)                                      \
    X(KW_DYNAMIC_ANCHOR, "$dynamicAnchor", 2020_12, CORE, STRING)                       \
    X(KW_REF, "$ref", 07, CORE, STRING)                                                 \
    X(KW_DYNAMIC_REF, "$dynamicRef", 2020_12, CORE, STRING)                             \
    X(KW_VOCABULARY, "$vocabulary", 2020_12, CORE, OBJECT)                              \
    X(KW_DEFS, "$defs", 07, CORE, SCHEMA_MAP)                                           \
    X(KW_DEFINITIONS, "definitions", 07, CORE, SCHEMA_MAP)                              \
    X(KW_TYPE, "type", 07, VALIDATION, TYPE)                                            \
    X(KW_ENUM, "enum", 07, VALIDATION, LIST)                                            \
    X(KW_CONST, "const", 07, VALIDATION, ANY)                                           \
    X(KW_MULTIPLE_OF, "multipleOf", 07, VALIDATION, POSITIVE)                           \
    X(KW_MINIMUM, "minimum", 07, VALIDATION, NUMBER)                                    \
    X(KW_MAXIMUM, "maximum", 07, VALIDATION, NUMBER)                                    \
    X(KW_EXCLUSIVE_MINIMUM, "exclusiveMinimum", 07, VALIDATION, LIMIT)                  \
    X(KW_EXCLUSIVE_MAXIMUM, "exclusiveMaximum", 07, VALIDATION, LIMIT)                  \
    X(KW_MIN_LENGTH, "minLength", 07, VALIDATION, COUNT)                                \
    X(KW_MAX_LENGTH, "maxLength", 07, VALIDATION, COUNT)                                \
    X(KW_PATTERN, "pattern", 07, VALIDATION, STRING)                                    \
    X(KW_FORMAT, "format", 07, CORE, STRING)                                            \
    X(KW_MIN_ITEMS, "minItems", 07, VALIDATION, COUNT)                                  \
    X(KW_MAX_ITEMS, "maxItems", 07, VALIDATION, COUNT)                                  \
    X(KW_UNIQUE_ITEMS, "uniqueItems", 07, VALIDATION, BOOL)                             \
    X(KW_MIN_CONTAINS, "minContains", 2020_12, VALIDATION, COUNT)                       \
    X(KW_MAX_CONTAINS, "maxContains", 2020_12, VALIDATION, COUNT)                       \
    X(KW_MIN_PROPERTIES, "minProperties", 07, VALIDATION, COUNT)                        \
    X(KW_MAX_PROPERTIES, "maxProperties", 07, VALIDATION, COUNT)                        \
    X(KW_REQUIRED, "required", 07, VALIDATION, STRINGS)                                 \
    X(KW_DEPENDENT_REQUIRED, "dependentRequired", 2020_12, VALIDATION, STRINGS_MAP)     \
    X(KW_PREFIX_ITEMS, "prefixItems", 2020_12, APPLICATOR, SCHEMA_LIST)                 \
    X(KW_ITEMS, "items", 07, APPLICATOR, SCHEMA_OR_LIST)                                \
    X(KW_ADDITIONAL_ITEMS, "additionalItems", 07, APPLICATOR, SCHEMA)                   \
    X(KW_CONTAINS, "contains", 07, APPLICATOR, SCHEMA)                                  \
    X(KW_PROPERTIES, "properties", 07, APPLICATOR, SCHEMA_MAP)                          \
    X(KW_PATTERN_PROPERTIES, "patternProperties", 07, APPLICATOR, SCHEMA_MAP)           \
    X(KW_ADDITIONAL_PROPERTIES, "additionalProperties", 07, APPLICATOR, SCHEMA)         \
    X(KW_PROPERTY_NAMES, "propertyNames", 07, APPLICATOR, SCHEMA)                       \
    X(KW_DEPENDENCIES, "dependencies", 07, APPLICATOR, SCHEMA_OR_STRINGS_MAP)           \
    X(KW_DEPENDENT_SCHEMAS, "dependentSchemas", 2020_12, APPLICATOR, SCHEMA_MAP)        \
    X(KW_ALL_OF, "allOf", 07, APPLICATOR, SCHEMA_LIST)                                  \
    X(KW_ANY_OF, "anyOf", 07, APPLICATOR, SCHEMA_LIST)                                  \
    X(KW_ONE_OF, "oneOf", 07, APPLICATOR, SCHEMA_LIST)                                  \
    X(KW_NOT, "not", 07, APPLICATOR, SCHEMA)                                            \
    X(KW_IF, "if", 07, APPLICATOR, SCHEMA)                                              \
    X(KW_THEN, "then", 07, APPLICATOR, SCHEMA)                                          \
    X(KW_ELSE, "else", 07, APPLICATOR, SCHEMA)                                          \
    X(KW_UNEVALUATED_ITEMS, "unevaluatedItems", 2020_12, UNEVALUATED, SCHEMA)           \
    X(KW_UNEVALUATED_PROPERTIES, "unevaluatedProperties", 2020_12, UNEVALUATED, SCHEMA) \
    X(KW_CONTENT_SCHEMA, "contentSchema", 2020_12, CONTENT, SCHEMA)

enum schema_keyword {
#define X(id, name, first, vocabulary, want) id,
    SCHEMA_KEYWORDS(X)
#undef X
        KW_COUNT,
    KW_NONE = KW_COUNT
};

struct schema_keyword_row {
    const char *name;
    size_t len; /* of the name */
    enum schema_draft first;
    unsigned vocabulary;
    enum schema_want want;
};
extern const struct schema_keyword_row schema_keywords[KW_COUNT];

/* KW_NONE when the dialect does not know the name. */
enum schema_keyword schema_keyword_find(const struct schema_dialect *d, struct str name);

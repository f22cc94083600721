/* SPDX-License-Identifier: MIT
 *
 * Holds the validator against the official JSON Schema Test Suite, wherever one is installed:
 *
 *   schema_suite [SUITE…]      directories that hold tests/ and remotes/
 *
 * Without arguments: $CINCH_SCHEMA_SUITE, and where Debian's packages put theirs
 * (libtest-json-schema-acceptance-perl has all drafts, json-schema-test-suite up to draft 07).
 * Skips (exit 77) when there is none. All required tests of both drafts must pass, and the optional
 * ones named below; the other optional ones are counted only. Tests of "format" are left out: it is
 * an annotation here.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/schema.h"

enum { FILE_MAX = 16 << 20 };
#define REMOTE_URI "http://localhost:1234/"

static const char *const known_suites[] = {
    "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance",
    "/usr/share/json-schema-test-suite",
};

static const struct {
    const char *name;
    enum schema_draft draft;
} drafts[] = {
    { "draft2020-12", SCHEMA_DRAFT_2020_12 },
    { "draft7", SCHEMA_DRAFT_07 },
};

/* Optional files that must pass as well. */
static const char *const must_pass[] = { "ecmascript-regex.json",
                                         "non-bmp-regex.json",
                                         "no-schema.json",
                                         "dynamicRef.json",
                                         "id.json",
                                         "anchor.json",
                                         "refOfUnknownKeyword.json",
                                         "unknownKeyword.json",
                                         "dependencies-compatibility.json" };

struct tally {
    size_t passed, failed;
};

struct suite {
    const char *root;
    const char *draft_name;
    enum schema_draft draft;
    bool required; /* failures count */
    struct tally tally;
};

static bool is_named(const char *name, const char *const *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strcmp(name, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int load(struct arena *a, const char *path, struct json **ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    int rc = file_read(AT_FDCWD, path, FILE_MAX, &text, e);
    return rc != 0 ? rc : json_parse(a, buf_str(&text), NULL, ret, e);
}

/* The resolver port: http://localhost:1234/x is remotes/x of the suite. */
static int load_remote(void *context, struct arena *a, struct str uri, const struct json **ret,
                       struct err *e)
{
    const struct suite *s = context;
    struct json *root = NULL;
    if (!str_starts(uri, STR(REMOTE_URI))) {
        return ERR(e, ERR_CONFIG, "not a remote of the suite");
    }
    struct str rest = str_slice(uri, sizeof REMOTE_URI - 1, uri.len);
    int rc = load(a, arena_printf(a, "%s/remotes/%.*s", s->root, STR_ARG(rest)), &root, e);
    *ret = root;
    return rc;
}

static void report(struct suite *s, const char *file, const struct json *group,
                   const struct json *test, const char *why)
{
    s->tally.failed++;
    printf("%s %s/%s: %s: %s: %s\n", s->required ? "FAIL" : "note", s->draft_name, file,
           json_cstring(json_get(group, "description"), "?"),
           json_cstring(json_get(test, "description"), "-"), why);
}

/* Both ways of asking must agree, and an invalid value must come with a reason. */
static const char *judge(struct schema *schema, const struct json *test, struct arena *a)
{
    struct err e = { 0 };
    struct schema_result result;
    const struct json *data = json_get(test, "data");
    bool expected = json_bool(json_get(test, "valid"), false);
    if (schema_validate(schema, data, NULL, a, &result, &e) != 0) {
        return arena_printf(a, "%s", e.msg);
    }
    if (result.valid != (schema_check(schema, data, NULL, NULL) == 1)) {
        return "schema_check() and schema_validate() disagree";
    }
    if (!result.valid && (result.len == 0 || result.errors[0].message.len == 0)) {
        return "invalid without a reason";
    }
    for (size_t i = 0; i < result.len; i++) {
        if (json_pointer(data, result.errors[i].instance_path) != result.errors[i].value) {
            return "the path of an error leads elsewhere";
        }
    }
    if (result.valid != expected) {
        return expected
                   ? arena_printf(a, "is valid, but got: %.*s", STR_ARG(result.errors[0].message))
                   : "is invalid, but was accepted";
    }
    return NULL;
}

/* By "format" in the schema, or by that of "pattern" in the meta-schema. */
static bool tests_format(const char *file, const struct json *schema)
{
    bool meta = strcmp(file, "ecmascript-regex.json") == 0 && json_get(schema, "$ref") != NULL;
    return meta || json_get(schema, "format") != NULL;
}

static void run_group(struct suite *s, const char *file, const struct json *group)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(schema) struct schema *schema = NULL;
    struct err e = { 0 };
    struct schema_options options = {
        .draft = s->draft,
        .resolver = { load_remote, s },
    };
    const struct json *tests = json_get(group, "tests");
    if (tests_format(file, json_get(group, "schema"))) {
        return;
    }
    int rc = schema_compile(json_get(group, "schema"), &options, &schema, &e);
    for (size_t i = 0; i < json_len(tests); i++) {
        const struct json *test = json_item(tests, i);
        const char *why = rc != 0 ? e.msg : judge(schema, test, a);
        if (why != NULL) {
            report(s, file, group, test, why);
        } else {
            s->tally.passed++;
        }
    }
}

static void run_file(struct suite *s, const char *directory, const char *name)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct err e = { 0 };
    struct json *groups = NULL;
    if (load(a, arena_printf(a, "%s/%s", directory, name), &groups, &e) != 0) {
        /* bignum.json and float-overflow.json hold numbers beyond a double: no JSON to us */
        printf("note %s/%s: %s\n", s->draft_name, name, e.msg);
        s->tally.failed += s->required ? 1 : 0;
        return;
    }
    for (size_t i = 0; i < json_len(groups); i++) {
        run_group(s, name, json_item(groups, i));
    }
}

/* Runs the *.json files of a directory; `required` decides by name. */
static struct tally run_directory(struct suite s, const char *part, bool (*required)(const char *))
{
    struct tally needed = { 0 };
    CLEANUP(arena) struct arena *a = arena_new();
    const char *path = arena_printf(a, "%s/tests/%s%s", s.root, s.draft_name, part);
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    struct tally optional = { 0 };
    for (int i = 0; i < count; i++) {
        if (str_ends(str_of(entries[i]->d_name), STR(".json"))) {
            s.required = required(entries[i]->d_name);
            s.tally = (struct tally) { 0 };
            run_file(&s, path, entries[i]->d_name);
            struct tally *sum = s.required ? &needed : &optional;
            sum->passed += s.tally.passed;
            sum->failed += s.tally.failed;
        }
        free(entries[i]);
    }
    free(entries);
    if (count >= 0) {
        printf("%s%s: required %zu of %zu, others %zu of %zu\n", s.draft_name, part, needed.passed,
               needed.passed + needed.failed, optional.passed, optional.passed + optional.failed);
    }
    return needed;
}

static bool all_required(const char *name)
{
    (void)name;
    return true;
}

static bool optional_required(const char *name)
{
    return is_named(name, must_pass, ARRAY_LEN(must_pass));
}

static struct tally run_suite(const char *root)
{
    struct tally sum = { 0 };
    printf("suite %s\n", root);
    for (size_t i = 0; i < ARRAY_LEN(drafts); i++) {
        struct suite s = { .root = root, .draft_name = drafts[i].name, .draft = drafts[i].draft };
        struct tally parts[2];
        parts[0] = run_directory(s, "", all_required);
        parts[1] = run_directory(s, "/optional", optional_required);
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            sum.passed += parts[k].passed;
            sum.failed += parts[k].failed;
        }
    }
    return sum;
}

int main(int argc, char **argv)
{
    const char *roots[8] = { getenv("CINCH_SCHEMA_SUITE") };
    size_t count = roots[0] != NULL ? 1 : 0;
    for (size_t i = 0; i < ARRAY_LEN(known_suites); i++) {
        roots[count++] = known_suites[i];
    }
    for (int i = 1; i < argc && count < ARRAY_LEN(roots); i++) {
        roots[count++] = argv[i];
    }
    struct tally sum = { 0 };
    for (size_t i = 0; i < count; i++) {
        if (file_is_dir(AT_FDCWD, roots[i])) {
            struct tally t = run_suite(roots[i]);
            sum.passed += t.passed;
            sum.failed += t.failed;
        }
    }
    if (sum.passed + sum.failed == 0) {
        printf("skipped: no JSON Schema test suite is installed "
               "(Debian: libtest-json-schema-acceptance-perl)\n");
        return 77;
    }
    printf("required in all: %zu of %zu\n", sum.passed, sum.passed + sum.failed);
    return sum.failed == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: MIT
 *
 * The toml-test corpus: every document that its list for TOML 1.0.0 calls valid must give the
 * values of the .json file beside it, also after being written and read again; every invalid one
 * must be refused with its position. The corpus is not part of this repository: its directory (with
 * tests/files-toml-1.0.0) comes from $TOML_TEST, or is looked for where the build says. Without it
 * the test is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "data/toml.h"

enum { EXIT_SKIPPED = 77, FILE_MAX = 4 << 20 };

/* A list cut short must not look like success; the 1.0.0 list had 210 and 499 when it was taken in.
 */
enum { VALID_MIN = 200, INVALID_MIN = 450 };

static const char list_name[] = "tests/files-toml-1.0.0";

struct suite {
    int dir; /* the corpus */
    size_t valid, invalid, failed;
};

/* --- comparing tagged values --- */

static bool same_float(struct str a, struct str b)
{
    double x = strtod(a.ptr, NULL);
    double y = strtod(b.ptr, NULL);
    return x == y || (isnan(x) && isnan(y));
}

/* Fractions may carry trailing zeros; everything else is normalised by both sides. */
static bool same_time(struct str a, struct str b)
{
    size_t i = 0;
    size_t k = 0;
    while (i < a.len && k < b.len && a.ptr[i] == b.ptr[k]) {
        i++;
        k++;
    }
    if (memchr(a.ptr, '.', a.len) == NULL) {
        return i == a.len && k == b.len;
    }
    while (i < a.len && a.ptr[i] == '0') {
        i++;
    }
    while (k < b.len && b.ptr[k] == '0') {
        k++;
    }
    return str_eq(str_slice(a, i, a.len), str_slice(b, k, b.len));
}

static bool is_leaf(const struct json *v)
{
    return json_is(v, JSON_OBJECT) && json_is(json_get(v, "type"), JSON_STRING);
}

static bool same_leaf(const struct json *a, const struct json *b)
{
    struct str type = json_str(json_get(a, "type"), STR_EMPTY);
    struct str x = json_str(json_get(a, "value"), STR_EMPTY);
    struct str y = json_str(json_get(b, "value"), STR_EMPTY);
    if (!str_eq(type, json_str(json_get(b, "type"), STR_EMPTY))) {
        return false;
    }
    if (str_eqc(type, "float")) {
        return same_float(x, y);
    }
    return str_starts(type, STR("datetime")) || str_eqc(type, "time-local") ? same_time(x, y)
                                                                            : str_eq(x, y);
}

static bool same(const struct json *a, const struct json *b)
{
    if (is_leaf(a) || is_leaf(b)) {
        return is_leaf(a) && is_leaf(b) && same_leaf(a, b);
    }
    if (a->type != b->type || json_len(a) != json_len(b)) {
        return false;
    }
    if (a->type == JSON_ARRAY) {
        for (size_t i = 0; i < a->array.len; i++) {
            if (!same(a->array.items[i], b->array.items[i])) {
                return false;
            }
        }
        return true;
    }
    for (size_t i = 0; i < a->object.len; i++) {
        const struct json *other = json_find(b, a->object.members[i].key);
        if (other == NULL || !same(a->object.members[i].value, other)) {
            return false;
        }
    }
    return true;
}

/* --- the cases --- */

static void failed(struct suite *s, const char *file, const char *why)
{
    s->failed++;
    printf("FAILED %s: %s\n", file, why);
}

static int load(const struct suite *s, struct arena *a, const char *file, struct buf *ret,
                struct err *e)
{
    return file_read(s->dir, arena_printf(a, "tests/%s", file), FILE_MAX, ret, e);
}

/* The .json beside the .toml. */
static int load_expected(const struct suite *s, struct arena *a, const char *file,
                         struct json **ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    int stem = (int)(strlen(file) - strlen(".toml"));
    int r = load(s, a, arena_printf(a, "%.*s.json", stem, file), &text, e);
    return r < 0 ? r : json_parse(a, buf_str(&text), NULL, ret, e);
}

static void check_valid(struct suite *s, struct arena *a, const char *file, struct str text)
{
    struct err e = { 0 };
    struct json *want = NULL;
    struct json *got = NULL;
    struct json *again = NULL;
    struct toml_opts opts = { .name = file, .tagged = true };
    CLEANUP(buf) struct buf written = BUF_INIT(BUF_TEXT);
    s->valid++;
    if (load_expected(s, a, file, &want, &e) < 0 || toml_parse(a, text, &opts, &got, &e) < 0) {
        failed(s, file, e.msg);
        return;
    }
    if (!same(want, got)) {
        failed(s, file, "read as something else");
        return;
    }
    if (toml_write(got, &opts, &written, &e) < 0 ||
        toml_parse(a, buf_str(&written), &opts, &again, &e) < 0) {
        failed(s, file, e.msg);
        return;
    }
    if (!same(want, again)) {
        failed(s, file, "written as something else");
    }
}

static void check_invalid(struct suite *s, struct arena *a, const char *file, struct str text)
{
    struct err e = { 0 };
    struct json *got = NULL;
    struct toml_opts opts = { .name = "x", .tagged = true };
    unsigned line = 0;
    unsigned column = 0;
    s->invalid++;
    if (toml_parse(a, text, &opts, &got, &e) == 0) {
        failed(s, file, "accepted");
    } else if (e.code != ERR_PARSE || sscanf(e.msg, "x:%u:%u: ", &line, &column) != 2 ||
               line == 0 || column == 0) {
        failed(s, file, "refused without a position");
    }
}

static void check_file(struct suite *s, const char *file)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
    struct err e = { 0 };
    size_t len = strlen(file);
    if (len < 5 || strcmp(file + len - 5, ".toml") != 0) {
        return;
    }
    if (load(s, a, file, &text, &e) < 0) {
        failed(s, file, e.msg);
    } else if (strncmp(file, "valid/", 6) == 0) {
        check_valid(s, a, file, buf_str(&text));
    } else {
        check_invalid(s, a, file, buf_str(&text));
    }
}

int main(int argc, char **argv)
{
    const char *where = getenv("TOML_TEST");
    if (where == NULL && argc > 1) {
        where = argv[1];
    }
    if (where == NULL) {
        where = "../shared/data/toml-test";
    }
    CLEANUP(fd) int dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        printf("skipped: no toml-test corpus at '%s' (set TOML_TEST to its directory)\n", where);
        return EXIT_SKIPPED;
    }
    CLEANUP(buf) struct buf list = BUF_INIT(FILE_MAX);
    struct err e = { 0 };
    if (file_read(dir, list_name, FILE_MAX, &list, &e) < 0) {
        printf("%s\n", e.msg);
        return EXIT_FAILURE;
    }
    struct suite s = { .dir = dir };
    for (struct str rest = buf_str(&list); rest.len > 0;) {
        char file[512];
        struct str line = str_split(&rest, '\n');
        (void)snprintf(file, sizeof file, "%.*s", STR_ARG(line));
        check_file(&s, file);
    }
    printf("toml-test 1.0.0: %zu valid, %zu invalid, %zu failed\n", s.valid, s.invalid, s.failed);
    bool complete = s.valid >= VALID_MIN && s.invalid >= INVALID_MIN;
    return s.failed == 0 && complete ? EXIT_SUCCESS : EXIT_FAILURE;
}

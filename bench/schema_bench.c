/* SPDX-License-Identifier: MIT
 *
 * Our side of bench/schema: schema_bench SCHEMA DOCUMENT [ROUNDS]. Prints JSON: the seconds of each
 * round for compiling the schema, parsing the document, and validating it; and whether it is valid.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "data/schema.h"

enum { FILE_MAX = 256 << 20, ROUNDS = 20 };

static int load(const char *path, struct buf *ret, struct err *e)
{
    buf_init(ret, FILE_MAX);
    return file_read(AT_FDCWD, path, FILE_MAX, ret, e);
}

struct round {
    nsec compile, parse, check;
    int valid;
};

static int run(struct str schema_text, struct str text, struct round *ret, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(schema) struct schema *s = NULL;
    struct json_limits limits = { .max_bytes = FILE_MAX };
    struct json *root = NULL;
    struct json *value = NULL;
    nsec t0 = clock_now();
    int rc = json_parse(a, schema_text, NULL, &root, e);
    if (rc == 0) {
        rc = schema_compile(root, NULL, &s, e);
    }
    nsec t1 = clock_now();
    if (rc == 0) {
        rc = json_parse(a, text, &limits, &value, e);
    }
    nsec t2 = clock_now();
    if (rc == 0) {
        ret->valid = schema_check(s, value, NULL, e);
        rc = ret->valid < 0 ? ret->valid : 0;
    }
    nsec t3 = clock_now();
    ret->compile = t1 - t0;
    ret->parse = t2 - t1;
    ret->check = t3 - t2;
    return rc;
}

static void print_list(const char *name, const struct round *rounds, int count, size_t offset)
{
    printf("\"%s\":[", name);
    for (int i = 0; i < count; i++) {
        nsec t = *(const nsec *)(const void *)((const char *)&rounds[i] + offset);
        printf("%s%.9f", i > 0 ? "," : "", (double)t / (double)NSEC_PER_SEC);
    }
    printf("],");
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    CLEANUP(buf) struct buf schema_text = { 0 };
    CLEANUP(buf) struct buf text = { 0 };
    int count = argc > 3 ? (int)strtol(argv[3], NULL, 10) : ROUNDS;
    if (argc < 3 || count < 1 || count > 10000) {
        fprintf(stderr, "usage: %s SCHEMA DOCUMENT [ROUNDS]\n", argv[0]);
        return 64;
    }
    if (load(argv[1], &schema_text, &e) != 0 || load(argv[2], &text, &e) != 0) {
        fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    CLEANUP(free) struct round *rounds = xcalloc((size_t)count, sizeof *rounds);
    for (int i = 0; i < count; i++) {
        if (run(buf_str(&schema_text), buf_str(&text), &rounds[i], &e) != 0) {
            fprintf(stderr, "%s\n", e.msg);
            return 1;
        }
    }
    printf("{");
    print_list("compile", rounds, count, offsetof(struct round, compile));
    print_list("parse", rounds, count, offsetof(struct round, parse));
    print_list("validate", rounds, count, offsetof(struct round, check));
    printf("\"valid\":%s}\n", rounds[0].valid == 1 ? "true" : "false");
    return 0;
}

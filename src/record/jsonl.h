/* SPDX-License-Identifier: MIT
 *
 * struct jsonl: a file of one JSON object per line, as events.jsonl and transcript.jsonl are.
 *
 * Each line is one write(2) to a descriptor in append mode, so that a crash leaves at most one torn
 * line, at the very end. A line that the disk takes only in part is taken back (ftruncate): the
 * next one starts on a line of its own. Lost lines are noted in `loss`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

struct arena;
struct json;
struct loss;
struct rundir;

/* A line beyond this is not written (jsonl_append says so): the writer must shorten it. Reached
 * only by harnesses that put whole files into one message. */
#define JSONL_LINE_MAX ((size_t)16 << 20)

struct jsonl {
    int fd;
    off_t size;
    const char *name; /* static string */
    struct loss *loss;
    struct buf line;
    struct clock_line clock; /* times of lines: jsonl_now() */
};

enum jsonl_result {
    JSONL_WRITTEN,
    JSONL_LOST,     /* noted in loss */
    JSONL_TOO_LONG, /* nothing written, nothing noted */
};

/* Without a directory there is no file: lines are only formatted. */
int jsonl_init(struct jsonl *j, const struct rundir *d, const char *name, struct loss *loss,
               struct err *e) MUST_USE;
/* The time of a line, in the form of clock_iso(): never before that of the one before. */
char *jsonl_now(const struct jsonl *j, char out[CLOCK_ISO_LEN]);
/* For a file that has lines already: the time of the last one. */
void jsonl_not_before(struct jsonl *j, int64_t wall);
enum jsonl_result jsonl_append(struct jsonl *j, const struct json *object) MUST_USE;
void jsonl_done(struct jsonl *j);

/* --- after a crash (jsonl_repair.c) --- */

struct jsonl_damage {
    int64_t torn_bytes;    /* of the last line, cut off */
    int64_t dropped_lines; /* not valid, taken out */
};

/* Sees every line that parses as an object, in order; false drops it. `a` is emptied after each. */
typedef bool jsonl_keep(void *ctx, const struct json *line, struct arena *a);

/* Makes the file consist of whole, kept lines. A good file is not touched; a torn end is cut off in
 * place; bad lines amid good ones are taken out by writing the file anew and renaming it. Each of
 * these steps is atomic: interrupted, it can be done again. `ret` is added to. */
int jsonl_repair(const struct rundir *d, const char *name, jsonl_keep *keep, void *ctx,
                 struct jsonl_damage *ret, struct err *e) MUST_USE;

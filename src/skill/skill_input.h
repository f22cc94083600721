/* SPDX-License-Identifier: MIT
 *
 * Inputs and parameters of a skill package: what the user gives, checked against the package's
 * schemas before anything is started, then carried to where the harness finds it.
 *
 *   struct skill_request q = { .input = given, .parameter = given_too };
 *   skill_bind(a, s, &q, &values, e);               admit: ERR_INPUT when a file is missing
 *   skill_stage(a, &values, run_fd, "/run", e);     prepare: copies files to /run/uploads
 *   skill_resolve(a, s, run_fd, "/run", &values, e);    context: strict look at uploads
 *   values.input, values.parameter                  what the prompt is rendered with
 *
 * An input whose schema says "x-input-source": "file" (or nothing) is a file, one that says
 * "inline" is a value. There is no guessing: a path that names no file is MissingInputError, never
 * taken for a text. Text that the command line gave for something that is no string is read as JSON
 * ("--param n=5" is a number where the schema wants one). Values that are not given take the
 * "default" of their schema. A package that declares no parameters takes any.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct json;
struct skill;

struct skill_request {
    const struct json *input;     /* names to values; a file is its path. NULL: none */
    const struct json *parameter; /* names to values. NULL: none */
    const char *base;             /* where relative paths start; NULL: the current directory */
};

struct skill_file {
    const char *key;
    const char *from; /* absolute, on this machine */
    const char *to;   /* below uploads/ */
};

struct skill_values {
    struct json *input; /* files as absolute paths: the user's, then the staged ones */
    struct json *parameter;
    struct skill_file *files;
    size_t files_len;
};

/* ERR_INPUT for a file that is missing or not given, ERR_CONFIG for names that the package does not
 * know and values that do not fit its schemas. */
int skill_bind(struct arena *a, const struct skill *s, const struct skill_request *q,
               struct skill_values *ret, struct err *e) MUST_USE;

/* Says where the files will be, without copying them. */
void skill_stage_names(struct arena *a, struct skill_values *v, const char *dir);

/* Copies the files to uploads/<key>/<name> below the directory and writes input.json with all
 * values there. `dir` is what the harness calls the directory. Doing it again replaces them. */
int skill_stage(struct arena *a, struct skill_values *v, int dir_fd, const char *dir,
                struct err *e) MUST_USE;

/* Each file input must be a regular file below uploads/: at the place where it was staged, else at
 * exactly uploads/<key>. ERR_INPUT when a staged or required one is not. Sets values.input. */
int skill_resolve(struct arena *a, const struct skill *s, int dir_fd, const char *dir,
                  struct skill_values *v, struct err *e) MUST_USE;

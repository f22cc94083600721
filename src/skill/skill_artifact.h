/* SPDX-License-Identifier: MIT
 *
 * Files that a skill gives out: output fields whose schema says "x-type", and the older "artifacts"
 * list of the manifest.
 *
 *   "report": {"type": "string", "x-type": "artifact", "x-role": "report"}       a path
 *   "files": {"type": "string", "x-type": "artifact-manifest", "x-role": "all"}  path of a JSON
 *                              file {"role": "path", …}, each of which is one too
 *
 *   struct skill_root root = { .fd = dir_fd, .path = "/run", .work = &work };
 *   skill_artifacts(a, s, output, &root, &list, e);
 *   if (list.missing > 0)  …  list.items[i].fault
 *
 * A path is relative to the run directory or to the directory that the harness works in, or
 * absolute below one of them, and must lead to a regular file without any symbolic link on the
 * way: the harness owns these directories and must not make us read others. A file that is not
 * below artifacts/ of the run directory is copied there, and the output names the copy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct json;
struct skill;

/* What SKILL.md is told about: declared in the manifest, else inferred from the output schema. */
struct skill_artifact_field {
    struct str role;
    struct str pattern; /* the manifest's, or the name of the output field */
    bool required;
};
struct skill_artifact_fields {
    struct skill_artifact_field *items;
    size_t len;
};
struct skill_artifact_fields skill_artifact_fields(struct arena *a, const struct skill *s);

/* The directory that the harness worked in. */
struct skill_work {
    const char *const *paths; /* what the harness calls it, absolute; NULL-terminated */
    int (*open)(void *self, struct str path);     /* a file below it; -1 and errno */
    int (*open_dir)(void *self, struct str path); /* a directory below it; -1 and errno */
    /* Copies a file to artifacts/ under that name or a similar one; *ret is its path below the run
     * directory. */
    int (*keep)(void *self, int fd, struct str name, const char **ret, struct err *e);
    /* Replaces a copy. */
    int (*rewrite)(void *self, const char *path, struct str text, struct err *e);
    void *self;
};

/* The directory of the run: here, and as the harness calls it. */
struct skill_root {
    int fd;
    const char *path;
    const struct skill_work *work; /* NULL: files are in the directory of the run, and stay */
};

struct skill_artifact {
    const char *field; /* JSON Pointer into the output; "artifacts" for one of the manifest */
    const char *role;
    const char *path; /* below the root; as it was given when it is faulty */
    bool required;    /* by its schema or the manifest */
    uint64_t size;
    const char *fault; /* why it is no artifact; NULL: it is there */
};

struct skill_artifact_list {
    struct skill_artifact *items;
    size_t len, cap;
    size_t missing;      /* required ones with a fault */
    struct json *output; /* the output with paths relative to the root */
};

/* Looks at each of them. Faults are results, not errors: see `missing`. ERR_CONFIG when there are
 * more than 1000. */
int skill_artifacts(struct arena *a, const struct skill *s, const struct json *output,
                    const struct skill_root *root, struct skill_artifact_list *ret,
                    struct err *e) MUST_USE;

/* SPDX-License-Identifier: MIT
 *
 * struct package: the files of a skill, in memory. Read once from a directory or a zip archive;
 * what was checked is then what is installed, whatever happens to the source, and a package that is
 * refused has touched no disk.
 *
 *   struct package *p;
 *   package_read_dir(arena, dir_fd, "skills/pdf", NULL, &p, e);
 *   const struct package_file *f = package_find(p, STR("SKILL.md"));      NULL when absent
 *   package_write(p, target_fd, e);                                       into an empty directory
 *
 * Symbolic links, devices and everything named ".git" are left out; links are counted. Names follow
 * zip_name_fault() of data/zip.h. Bad packages are ERR_CONFIG, also past a limit.
 *
 * Ownership: all in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct package_file {
    struct str name; /* relative, NUL-terminated */
    struct str content;
    bool dir;
    bool executable;
};

struct package {
    struct package_file *files; /* sorted by name */
    size_t len, cap;
    uint64_t total;  /* bytes of content */
    size_t skipped;  /* links and devices that were left out */
    const char *top; /* of a zip archive: its one directory, which the names are below */
};

/* Whoever made the package can reach these. */
struct package_limits {
    uint64_t max_total; /* 0: 64 MiB */
    size_t max_files;   /* 0: 4096 files and directories */
};

/* `label` names the source in messages. `limits` may be NULL. ERR_SYS for what cannot be read. */
int package_read_dir(struct arena *a, int dir_fd, const char *label,
                     const struct package_limits *limits, struct package **ret,
                     struct err *e) MUST_USE;
/* The archive must hold exactly one directory; "__MACOSX" beside it is left out. */
int package_read_zip(struct arena *a, struct str bytes, const char *label,
                     const struct package_limits *limits, struct package **ret,
                     struct err *e) MUST_USE;
/* One file as a package of its own. */
struct package *package_of_file(struct arena *a, struct str name, struct str content);

const struct package_file *package_find(const struct package *p, struct str name);

/* The same files with another content for one of them, which is added when it is not there. Shares
 * all else. */
struct package *package_with(struct arena *a, const struct package *p, struct str name,
                             struct str content);

/* Same names, contents and executable bits. */
bool package_equal(const struct package *a, const struct package *b);

/* Writes all files below the directory. ERR_EXISTS when one is there already, ERR_OUTPUT when it
 * cannot be written. */
int package_write(const struct package *p, int dir_fd, struct err *e) MUST_USE;

/* SPDX-License-Identifier: MIT
 *
 * The loader of this machine, made to work inside another root: a copy that looks for libraries in
 * a table of its own (SANDBOX_RUNTIME "/cache") instead of /etc/ld.so.cache, which is the image's.
 * That table is the host's, with SANDBOX_RUNTIME in front of each path. Only glibc's loader is
 * known; it has the name of its table in its data, where one of the same length takes its place.
 *
 * Programs then get this loader by name: a copy of the program with another PT_INTERP. So they are
 * what /proc/self/exe says, which a call of the loader by hand would not give.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct arena;
struct buf;

#define LOADER_PATH  "/.runtime/ld.so"
#define LOADER_TABLE "/.runtime/cache"

/* Pure parts, which tests and fuzzers call. The table: ERR_PARSE when it is not glibc's. */
int loader_move_table(struct str table, const char *prefix, struct buf *out,
                      struct err *e) MUST_USE;
/* In place; ERR_UNSUPPORTED: it is not glibc's loader. */
int loader_patch(char *bytes, size_t len, struct err *e) MUST_USE;

/* Files of the cache directory `dir`, made if they are missing: the loader and its table, … */
int loader_make(struct arena *a, const char *dir, const char *loader, const char **ret_loader,
                const char **ret_table, struct err *e) MUST_USE;
/* … and a copy of a program that names it. NULL: it is static and needs none. */
int loader_make_program(struct arena *a, const char *dir, const char *program, const char **ret,
                        struct err *e) MUST_USE;
/* The loader that a program names; NULL: none. *ret_elf: it is a program of this machine at all. */
int loader_of(struct arena *a, const char *program, const char **ret, bool *ret_elf,
              struct err *e) MUST_USE;

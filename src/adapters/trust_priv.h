/* SPDX-License-Identifier: MIT
 *
 * What the files of trust share. trust.c is the life cycle; trust_text.c (with a header of its
 * own) knows the three formats as text; trust_ledger.c is <file>.cinch.json;
 * trust_file.c does locking and replacing; trust_process.c tells whether a process is still the
 * same.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "adapters/trust.h"
#include "adapters/trust_text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

/* --- trust_process.c --- */

struct trust_process {
    pid_t pid;
    int64_t start;  /* clock ticks since boot; 0: unknown */
    char boot[64];  /* id of the boot */
    char space[64]; /* the pid namespace */
};

void trust_process_self(struct trust_process *ret);
bool trust_process_alive(const struct trust_process *p);

/* --- trust_file.c --- */

struct trust_file {
    char path[PATH_MAX]; /* links resolved */
    char ledger[PATH_MAX];
    char temp[PATH_MAX];
    int lock_fd;
};

#define TRUST_FILE_INIT \
    {                   \
        .lock_fd = -1   \
    }

/* Finds and locks. With `make`, missing directories are made; without it, *ret_absent says that
 * there is no ledger, hence nothing to do, and nothing is locked. */
int trust_file_open(struct trust_file *f, const char *file, bool make, bool *ret_absent,
                    struct err *e) MUST_USE;
void trust_file_close(struct trust_file *f);
/* `ret_st->st_nlink` is 0 when there is no file. */
int trust_file_load(const struct trust_file *f, struct buf *ret, struct stat *ret_st,
                    struct err *e) MUST_USE;
/* Replaces the file if it is still the one of `st` (or still missing); 1 when it was replaced, 0
 * when somebody else has changed it meanwhile. */
int trust_file_replace(const struct trust_file *f, struct str text, const struct stat *st,
                       struct err *e) MUST_USE;
int trust_file_unlink(const struct trust_file *f, const struct stat *st, struct err *e) MUST_USE;

static inline void cleanup_trust_file(struct trust_file *f)
{
    trust_file_close(f);
}

/* --- trust_ledger.c --- */

/* The document is kept as a tree: { version, created, entries: { dir: { made, was_false, runs: [
 * { run, pid, start, boot, space } ] } } }. The shape is checked at loading. */
struct trust_ledger {
    struct arena *arena;
    const char *path;
    struct json *doc;
    struct json *entries;
};

int trust_ledger_load(struct trust_ledger *l, struct arena *a, const char *path,
                      struct err *e) MUST_USE;
int trust_ledger_save(const struct trust_ledger *l, struct err *e) MUST_USE; /* empty: no file */
struct json *trust_ledger_find(const struct trust_ledger *l, const char *dir);
struct json *trust_ledger_add(struct trust_ledger *l, const char *dir); /* found or made */
void trust_ledger_drop(struct trust_ledger *l, const char *dir);
bool trust_ledger_created(const struct trust_ledger *l);
void trust_ledger_set_created(struct trust_ledger *l, bool created);

struct trust_mark trust_entry_mark(const struct json *entry);
void trust_entry_set_mark(struct trust_ledger *l, struct json *entry, struct trust_mark mark);
void trust_entry_add_run(struct trust_ledger *l, struct json *entry, const char *run_id);
/* Drops the run of that id (may be NULL) and the dead ones; returns how many were dropped. */
size_t trust_entry_prune(struct trust_ledger *l, struct json *entry, const char *run_id,
                         const struct trust_port *port);
size_t trust_entry_runs(const struct json *entry);

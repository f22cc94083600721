/* SPDX-License-Identifier: MIT
 *
 * Files as the record needs them: whole reads with a bound, atomic writes, line appends,
 * directories. All descriptors are CLOEXEC. Paths are relative to `dirfd` (AT_FDCWD allowed).
 *
 *   file_read(AT_FDCWD, "task.md", 8 << 20, &b, e)
 *           ERR_INPUT when absent, ERR_LIMIT when larger
 *   file_write_atomic(dir, "state.json", text, 0644, e)
 *           temp name + rename: readers see old or new
 *
 * No fsync: a record must survive the death of cinch, which the page cache does; it is not a
 * database (docs/adr/0003).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct open_how;

int file_read(int dirfd, const char *path, size_t max, struct buf *ret, struct err *e) MUST_USE;
/* What a failure to read or parse is of a file that the user named: too much of something, or no
 * right to read it, is a fault of the file and not ours. */
enum err_code file_fault(enum err_code code);
/* The rest of an open file, which messages call `name`. */
int file_read_fd(int fd, const char *name, size_t max, struct buf *ret, struct err *e) MUST_USE;
int file_write_atomic(int dirfd, const char *path, struct str content, mode_t mode,
                      struct err *e) MUST_USE;
/* For a file that the user named. What is there and is no regular file (a device, a pipe) is
 * written to; a symbolic link is followed; all else is replaced as above. */
int file_write_output(const char *path, struct str content, mode_t mode, struct err *e) MUST_USE;
/* Could that be done? To be asked before the work whose result is to be written. Leaves no trace.
 * ERR_OUTPUT when not. */
int file_check_output(const char *path, struct err *e) MUST_USE;
/* Would both be written to the same place, by whatever links and names? */
bool file_same_output(const char *one, const char *other);
/* Handles short writes, EINTR. */
int file_write_all(int fd, struct str content, struct err *e) MUST_USE;
int file_mkdirs(int dirfd, const char *path, mode_t mode, struct err *e) MUST_USE;
bool file_exists(int dirfd, const char *path);
bool file_is_dir(int dirfd, const char *path);
int file_dir_is_empty(int dirfd, const char *path, bool *ret, struct err *e) MUST_USE;
/* Removes a tree below dirfd without following symbolic links; a missing path is fine. */
int file_remove_tree(int dirfd, const char *path, struct err *e) MUST_USE;
/* Takes setuid and setgid bits and file capabilities from everything in a tree below dirfd, without
 * following symbolic links; a missing path is fine. Nobody else may work in the tree. What cannot
 * be changed is left, and the first such failure is returned in the end. */
int file_drop_setid(int dirfd, const char *path, struct err *e) MUST_USE;

/* Whether files of `uid` may decide what this process does: those of its own user, and for root
 * also those of the user that called sudo (SUDO_UID). The same rule as git's. */
bool file_owner_is_trusted(uid_t uid);

/* openat2(), tried again while the kernel cannot tell whether a ".." stayed below `dir` because
 * something is renamed or mounted meanwhile (EAGAIN). */
int file_open_how(int dir, const char *path, const struct open_how *how);

/* A regular file below the directory, reached without any symbolic link: for directories that
 * somebody else may have written to. ".." is refused, too. The descriptor, or -1 with errno: EISDIR
 * for anything that is no file. */
int file_open_below(int dirfd, struct str path);
/* The directory that "a/b/c" is in, below dirfd: a descriptor, or a negative code. Directories on
 * the way are made with `mode`; no link is followed, ".." is refused. *ret_base is the last part
 * and ends where the path does. */
int file_open_parent(int dirfd, struct str path, mode_t mode, struct str *ret_base,
                     struct err *e) MUST_USE;
/* The rest of one file into another; ERR_LIMIT beyond `max` bytes (0: no limit). */
int file_copy(int from, int to, uint64_t max, struct err *e) MUST_USE;

/* "a/b" joined into out (PATH_MAX); absolute b wins. ERR_LIMIT when too long. */
int path_join(const char *a, const char *b, char *out, size_t size, struct err *e) MUST_USE;
/* Absolute form without resolving links, "." and ".." folded; the path need not exist. */
int path_absolute(const char *path, char *out, size_t size, struct err *e) MUST_USE;
struct str path_base(struct str path); /* last component */

/* SPDX-License-Identifier: MIT
 *
 * One entry of a file tree, named by (directory descriptor, name), never followed if it is a
 * symbolic link: copying it with everything that belongs to it, and its extended attributes.
 *
 *   struct stat st;
 *   fstatat(from, "a", &st, AT_SYMLINK_NOFOLLOW);
 *   node_copy(NODE_AT(from, "a"), &st, NODE_AT(to, "b"), NULL, e);
 *                                                content, owner, mode, xattrs, times
 *
 * The data of a regular file is cloned where the file system can do that, else copied with its
 * holes. Of the extended attributes, user.* and access lists are kept; what overlayfs keeps for
 * itself (trusted.overlay.*, user.overlay.*) and security labels are not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct node_at {
    int fd;
    const char *name;
};
#define NODE_AT(fd, name) ((struct node_at) { (fd), (name) })

/* Files of one owner become files of another: the agent of a run that root started works under an
 * identity of its own, and what it made must not stay behind with that owner. */
struct node_owner {
    bool active;
    uid_t from_uid, to_uid;
    gid_t from_gid, to_gid;
};

/* Which namespace an overlay keeps its marks in: user.overlay.* when it was mounted with userxattr,
 * else trusted.overlay.*. A program inside can write the other one, so it means nothing. */
enum node_marks { NODE_MARKS_NONE, NODE_MARKS_TRUSTED, NODE_MARKS_USER };

/* Everything but directories. The target must not exist; on failure it is removed. ERR_UNSUPPORTED
 * for a device. `owner` may be NULL. */
int node_copy(struct node_at from, const struct stat *st, struct node_at to,
              const struct node_owner *owner, struct err *e) MUST_USE;
/* Owner, xattrs, mode and times of `from` onto `to`, which is of the same type; "." is the
 * directory itself. An owner that we may not give away is left as it is. */
int node_copy_attributes(struct node_at from, const struct stat *st, struct node_at to,
                         const struct node_owner *owner, struct err *e) MUST_USE;

/* The value of an overlay mark ("opaque", "redirect" …) in `value`, NUL-terminated; its length, or
 * -1 when there is none. */
ssize_t node_mark(int fd, const char *name, enum node_marks marks, const char *mark, char *value,
                  size_t size);
int node_set_mark(struct node_at at, enum node_marks marks, const char *mark, struct str value,
                  struct err *e) MUST_USE;
/* Takes the marks off; a read-only file is made writable for a moment, as user.* demands. */
int node_strip_marks(int fd, const char *name, const struct stat *st, enum node_marks marks,
                     struct err *e) MUST_USE;

/* Opens the directory `path` below fd ("" is fd itself) without any symbolic link on the way;
 * returns the descriptor (O_PATH when it may not be read) or a negative code. */
int node_open_dir(int fd, const char *path, struct err *e) MUST_USE;

/* Whether a and b lie on one mount, so that rename() can move between them. */
bool node_same_mount(int a_fd, int b_fd);

/* Relative, without empty parts, "." and ".."; "" is the root. For paths that lay on a disk. */
bool node_is_inner_path(const char *path);
/* Whether it is in a git directory, or is one. */
bool node_has_git_part(const char *path);

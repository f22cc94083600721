/* SPDX-License-Identifier: MIT
 *
 * Paths that git refuses to put into a tree, because another file system could take a part of them
 * for ".git": other letter case, short names ("git~1") and trailing dots of NTFS, characters that
 * HFS+ ignores. One of them in a patch makes `git apply` refuse all of it.
 *
 * The same rules as git's verify_path() with core.protectNTFS and core.protectHFS, but for the
 * parts "", "." and "..", which no directory lists.
 */
#pragma once

#include <stdbool.h>

/* `link`: it is a symbolic link, which may not be called .gitmodules either. */
bool gitname_is_refused(const char *path, bool link);

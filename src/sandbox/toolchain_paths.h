/* SPDX-License-Identifier: MIT
 *
 * What must be readable so that programs outside the system's own directories work: those that PATH
 * names, and the installation that a given program belongs to. A tool that lives in somebody's home
 * (~/.nvm, ~/.pyenv, ~/.cargo …) is made readable as a whole, the home is not.
 *
 *   /usr/bin                                      nothing: the system is readable anyway
 *   /home/me/.nvm/versions/node/v22/bin           /home/me/.nvm
 *   /home/me/.local/bin                           that, and ~/.local/lib
 *   /home/me/go/bin                               /home/me/go/bin
 *   /srv/tools/bin                                /srv/tools/bin and /srv/tools/lib
 *   /srv/venv/bin, of a Python environment        /srv/venv, and the Python that it is made of
 *
 * A program that is a symbolic link stays one: what it points to is made readable where it is, and
 * the link is listed apart.
 */
#pragma once

#include "base/err.h"

struct arena;

#define REACH_MAX 64

struct toolchain_paths {
    const char *paths[REACH_MAX];
    size_t n;
    const char *links[REACH_MAX]; /* to be made as they are, unless a path shows them anyway */
    size_t n_links;
};

/* Adds what the directories of `path` need. Relative ones, missing ones and those of the system are
 * passed over. `home` is the caller's. */
void toolchain_path(struct toolchain_paths *r, struct arena *a, const char *path, const char *home);
/* Adds what one program needs: where it is, and where it really is. */
void toolchain_program(struct toolchain_paths *r, struct arena *a, const char *program,
                       const char *home);
/* Is it below a directory that every sandbox shows? */
int toolchain_is_system(const char *path);

/* SPDX-License-Identifier: MIT
 *
 * Paths compared as text; see path.h.
 */
#include "base/path.h"

bool path_is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    len -= len > 0 && dir[len - 1] == '/';
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

bool path_is_inner(struct str path)
{
    if (path.len == 0 || path.ptr[0] == '/') {
        return false;
    }
    while (path.ptr != NULL) {
        if (str_eqc(str_split(&path, '/'), "..")) {
            return false;
        }
    }
    return true;
}

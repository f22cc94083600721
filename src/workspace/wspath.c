/* SPDX-License-Identifier: MIT
 *
 * Folding of paths, by their text alone.
 */
#include "workspace/wspath.h"

#include <limits.h>
#include <stdio.h>

/* Appends the components of `path` to the absolute path in `out`; ".." of the root is the root, as
 * the kernel has it. */
static bool walk(char out[PATH_MAX], size_t *len, struct str path)
{
    while (path.ptr != NULL) {
        struct str part = str_split(&path, '/');
        if (part.len == 0 || str_eqc(part, ".")) {
            continue;
        }
        if (str_eqc(part, "..")) {
            while (*len > 0 && out[--*len] != '/') {
            }
            continue;
        }
        if (*len + 1 + part.len >= PATH_MAX) {
            return false;
        }
        out[(*len)++] = '/';
        memcpy(out + *len, part.ptr, part.len);
        *len += part.len;
    }
    return true;
}

bool wspath_fold(struct arena *a, struct str root, struct str path, const char **ret)
{
    char base[PATH_MAX];
    char full[PATH_MAX];
    size_t base_len = 0;
    size_t len = 0;
    if (root.len == 0) {
        root = STR(WSPATH_ROOT);
    }
    if (path.len == 0 || str_has_nul(path) || !walk(base, &base_len, root)) {
        return false;
    }
    bool absolute = path.ptr[0] == '/';
    if ((!absolute && !walk(full, &len, root)) || !walk(full, &len, path)) {
        return false;
    }
    struct str below = str_n(full, len);
    struct str where = str_n(base, base_len);
    if (!str_starts(below, where) || (len > base_len && full[base_len] != '/')) {
        return false;
    }
    *ret = len == base_len ? "." : arena_dup(a, str_slice(below, base_len + 1, len));
    return true;
}

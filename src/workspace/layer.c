/* SPDX-License-Identifier: MIT
 *
 * Reading and writing the marks of an overlay's layer.
 */
#include "workspace/layer.h"

#include <errno.h>
#include <limits.h>
#include <sys/sysmacros.h>

#include "base/arena.h"

bool layer_is_whiteout(struct node_at at, const struct stat *st, enum node_marks marks)
{
    char value[8];
    if (S_ISCHR(st->st_mode)) {
        return st->st_rdev == makedev(0, 0);
    }
    return S_ISREG(st->st_mode) && st->st_size == 0 &&
           node_mark(at.fd, at.name, marks, "whiteout", value, sizeof value) >= 0;
}

bool layer_is_opaque(struct node_at at, enum node_marks marks)
{
    char value[8];
    return node_mark(at.fd, at.name, marks, "opaque", value, sizeof value) > 0 &&
           (value[0] == 'y' || value[0] == 'Y');
}

/* A name beside the original place of its parent, or a path from the root. */
const char *layer_redirect(struct arena *a, struct node_at at, enum node_marks marks,
                           const char *base)
{
    char value[PATH_MAX];
    if (node_mark(at.fd, at.name, marks, "redirect", value, sizeof value) <= 0) {
        return NULL;
    }
    if (value[0] == '/') {
        return arena_dup(a, str_of(value + 1));
    }
    if (base == NULL) {
        return NULL;
    }
    return base[0] == '\0' ? arena_dup(a, str_of(value)) : arena_printf(a, "%s/%s", base, value);
}

int layer_put_whiteout(struct node_at at, struct err *e)
{
    /* Of all devices the one that anybody may make. */
    if (mknodat(at.fd, at.name, S_IFCHR | 0600, makedev(0, 0)) < 0 && errno != EEXIST) {
        return ERR_SYS(e, "create whiteout '%s'", at.name);
    }
    return 0;
}

int layer_copy_marks(struct node_at from, struct node_at to, enum node_marks marks, struct err *e)
{
    static const char *const names[] = { "opaque", "redirect" };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
        char value[PATH_MAX];
        ssize_t n = node_mark(from.fd, from.name, marks, names[i], value, sizeof value);
        r = n < 0 ? 0 : node_set_mark(to, marks, names[i], str_n(value, (size_t)n), e);
    }
    return r;
}

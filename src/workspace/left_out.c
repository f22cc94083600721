/* SPDX-License-Identifier: MIT
 *
 * The list of files that are not in a patch, and moving them out of a tree that is removed.
 */
#include "workspace/left_out.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/node.h"

#define MAGIC     "cinch left-out 1"
#define LIST_NAME "left-out.list"
#define DIR_NAME  "left-out"
#define LIST_MAX  ((size_t)512 << 20)

int left_out_parse(struct arena *a, struct str text, struct left_out *ret, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        n += text.ptr[i] == '\0';
    }
    if (n < 2 || n % 2 != 0 || text.ptr[text.len - 1] != '\0' || strcmp(text.ptr, MAGIC) != 0) {
        return ERR(e, ERR_PARSE, "'%s' is damaged", LIST_NAME);
    }
    const char **paths = arena_array(a, n / 2, sizeof *paths);
    const char **places = arena_array(a, n / 2, sizeof *places);
    size_t len = 0;
    (void)str_split(&text, '\0');
    if (!str_to_i64(str_split(&text, '\0'), &ret->since)) {
        return ERR(e, ERR_PARSE, "'%s' is damaged", LIST_NAME);
    }
    while (text.len > 0) {
        paths[len] = arena_dup(a, str_split(&text, '\0'));
        places[len] = arena_dup(a, str_split(&text, '\0'));
        if (paths[len][0] == '\0' || places[len][0] == '\0' || !node_is_inner_path(paths[len]) ||
            !node_is_inner_path(places[len])) {
            return ERR(e, ERR_PARSE, "'%s' has an invalid path", LIST_NAME);
        }
        len++;
    }
    paths[len] = places[len] = NULL;
    ret->paths = paths;
    ret->places = places;
    return 0;
}

int left_out_open(struct arena *a, const char *dir, struct left_out *ret, struct err *e)
{
    static const char *const dirs[] = { DIR_NAME, "layer/upper", "tree" };
    CLEANUP(buf) struct buf text = BUF_INIT(LIST_MAX);
    *ret = (struct left_out) { 0 };
    int r = file_read(AT_FDCWD, arena_printf(a, "%s/" LIST_NAME, dir), LIST_MAX, &text, e);
    if (r < 0) {
        return r == -(int)ERR_INPUT ? 0 : r;
    }
    for (size_t i = 0; ret->dir == NULL && i < ARRAY_LEN(dirs); i++) {
        const char *path = arena_printf(a, "%s/%s", dir, dirs[i]);
        ret->dir = file_is_dir(AT_FDCWD, path) ? path : NULL;
    }
    r = ret->dir == NULL ? 0 : left_out_parse(a, buf_str(&text), ret, e);
    return r < 0 ? r : ret->dir != NULL;
}

static int write_list(int dir_fd, const struct left_out *list, bool moved, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(LIST_MAX);
    int r = buf_append(&out, str_n(MAGIC, sizeof MAGIC), e);
    r = r < 0 ? r : buf_printf(&out, e, "%lld", (long long)list->since);
    r = r < 0 ? r : buf_append_c(&out, '\0', e);
    for (size_t i = 0; r == 0 && list->paths[i] != NULL; i++) {
        const char *place = moved ? list->paths[i] : list->places[i];
        r = buf_append(&out, str_n(list->paths[i], strlen(list->paths[i]) + 1), e);
        r = r < 0 ? r : buf_append(&out, str_n(place, strlen(place) + 1), e);
    }
    return r < 0 ? r : file_write_atomic(dir_fd, LIST_NAME, buf_str(&out), 0600, e);
}

int left_out_write(int dir_fd, const struct left_out *list, struct err *e)
{
    return write_list(dir_fd, list, false, e);
}

int left_out_move(int dir_fd, int tree_fd, const struct left_out *list, struct err *e)
{
    int r = file_mkdirs(dir_fd, DIR_NAME, 0700, e);
    CLEANUP(fd) int to = r < 0 ? -1 : openat(dir_fd, DIR_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0) {
        return r < 0 ? r : ERR_SYS(e, "open '%s'", DIR_NAME);
    }
    for (size_t i = 0; r == 0 && list->paths[i] != NULL; i++) {
        struct str base;
        struct str old;
        CLEANUP(fd) int at = file_open_parent(to, str_of(list->paths[i]), 0700, &base, e);
        CLEANUP(fd)
        int from = at < 0 ? at : file_open_parent(tree_fd, str_of(list->places[i]), 0700, &old, e);
        if (from < 0) {
            return from;
        }
        if (renameat(from, old.ptr, at, base.ptr) < 0) {
            r = ERR_SYS(e, "keep '%s'", list->paths[i]);
        }
    }
    return r < 0 ? r : write_list(dir_fd, list, true, e);
}

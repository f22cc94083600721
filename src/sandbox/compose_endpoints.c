/* SPDX-License-Identifier: MIT
 *
 * Sockets and FIFOs of the host, in trees that are shown as they are (`sandbox.read`, a workspace
 * that is no overlay): a read-only mount does not keep a program from connecting or writing to
 * them. What is there when the sandbox opens is masked: what a bounded look at the trees finds, and
 * the sockets that the kernel lists.
 *
 * What appears later is refused by other means where there are any: Landlock (version 9), and for
 * root the mounts of read-only trees (draft_bind_read()). SECURITY.md says what holds where.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "sandbox/compose_priv.h"

/* A look at this many names takes a few milliseconds. */
#define NAMES_MAX 4096
#define DIRS_MAX  1024
/* One line of /proc/net/unix per socket of the machine. */
#define TABLE_MAX ((size_t)4 << 20)

struct look {
    struct draft *d;
    const char *outside;        /* the tree … */
    const char *inside;         /* … and where it is shown */
    const char *dirs[DIRS_MAX]; /* below it, still to be looked at; "" is its top */
    size_t n_dirs;
    size_t names;
};

/* Their number has no limit of its own: one that is left out could be used. The plan as a whole has
 * one (PLAN_MAX), and a run beyond it is refused. */
static void mask(struct look *l, const char *name)
{
    const struct compose *c = l->d->c;
    struct plan_paths p = { .flags = PLAN_OPTIONAL,
                            .host_uid = c->who.root ? c->who.uid : 0,
                            .host_gid = c->who.root ? c->who.gid : 0 };
    const char *to = arena_printf(c->arena, "%s%s", l->inside, name);
    l->d->rc =
        l->d->rc < 0 ? l->d->rc : plan_add_paths(l->d->b, PLAN_OP_MASK, &p, NULL, to, l->d->e);
}

static unsigned char kind_of(int dir_fd, const struct dirent *i)
{
    struct stat st;
    if (i->d_type != DT_UNKNOWN || fstatat(dir_fd, i->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return i->d_type;
    }
    return (unsigned char)IFTODT(st.st_mode);
}

static void look_into(struct look *l, const char *dir)
{
    struct arena *a = l->d->c->arena;
    const char *path = arena_printf(a, "%s%s", l->outside, dir);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL) {
        cleanup_fd(&fd); /* not ours to read: then the program cannot reach what is in it either */
        return;
    }
    const struct dirent *i;
    while (l->names < NAMES_MAX && (i = readdir(stream)) != NULL) {
        unsigned char kind = kind_of(fd, i);
        bool dots = strcmp(i->d_name, ".") == 0 || strcmp(i->d_name, "..") == 0;
        l->names++;
        if (kind == DT_SOCK || kind == DT_FIFO) {
            mask(l, arena_printf(a, "%s/%s", dir, i->d_name));
        } else if (kind == DT_DIR && !dots && l->n_dirs < DIRS_MAX) {
            l->dirs[l->n_dirs++] = arena_printf(a, "%s/%s", dir, i->d_name);
        }
    }
    (void)closedir(stream);
}

/* Level by level: what is meant to be found lies near the top. */
static void look_at_tree(struct look *l)
{
    l->dirs[l->n_dirs++] = "";
    for (size_t at = 0; at < l->n_dirs && l->names < NAMES_MAX; at++) {
        look_into(l, l->dirs[at]);
    }
}

/* "…: RefCount Protocol Flags Type St Inode Path": the sockets of our network namespace by the name
 * that they were bound to. */
static void look_at_table(struct look *l)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TABLE_MAX);
    if (file_read(AT_FDCWD, "/proc/net/unix", TABLE_MAX, &text, NULL) < 0) {
        return;
    }
    struct str rest = buf_str(&text);
    while (rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        size_t at = str_find(line, STR(" /"));
        const char *path =
            at >= line.len ? "" : arena_dup(l->d->c->arena, str_slice(line, at + 1, line.len));
        struct stat st;
        if (compose_below(path, l->outside) && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
            mask(l, path + strlen(l->outside));
        }
    }
}

static void look_for(struct draft *d, const char *outside, const char *inside)
{
    struct stat st;
    struct look *l = ARENA_NEW(d->c->arena, struct look);
    *l = (struct look) { .d = d, .outside = outside, .inside = inside };
    if (lstat(outside, &st) == 0 && (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode))) {
        mask(l, "");
        return;
    }
    look_at_tree(l);
    if (l->names >= NAMES_MAX || l->n_dirs == DIRS_MAX) {
        look_at_table(l);
    }
}

void draft_endpoints(struct draft *d)
{
    const struct compose *c = d->c;
    const char *const *list = c->policy->read;
    for (; list != NULL && *list != NULL; list++) {
        const char *path = compose_seen(c, *list);
        look_for(d, path, path);
    }
    if (c->view != NULL && c->view->bind != NULL) {
        look_for(d, c->view->bind, c->view->path);
    }
}

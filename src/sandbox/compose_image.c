/* SPDX-License-Identifier: MIT
 *
 * The root of an image: an overlay with the image as its lower directory, of which each name at the
 * top is bound to its place. The top itself stays the sandbox's own tmpfs. An image is not trusted:
 * its links are never followed on the way to a mount, see refuse_links() in init/mounts.c, so what
 * stands in the way of a granted path is covered by a directory of the private layer first.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "sandbox/compose_priv.h"

enum { TABLE_MAX = 1 << 20 /* of /etc/passwd */ };

/* Directories of programs and libraries. /etc cannot be changed at all: it names libraries and
 * start-up files of every program. */
static const char *const fixed_dirs[] = { "bin",    "lib", "lib32", "lib64",
                                          "libx32", "opt", "sbin",  "usr" };

static bool is_ours(const char *name)
{
    static const char *const ours[] = { "proc", "sys", "dev", "run", "tmp" };
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (strcmp(name, ours[i]) == 0) {
            return true;
        }
    }
    return strcmp(name, &MOUNTS_OWN[1]) == 0 || strcmp(name, &MOUNTS_HOST[1]) == 0 ||
           strcmp(name, &SANDBOX_HELPER_HOME[1]) == 0 || strcmp(name, &SANDBOX_RUNTIME[1]) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct compose_name *)a)->name, ((const struct compose_name *)b)->name);
}

/* Devices, sockets and the like at the top are left out. */
static void add_name(struct compose *c, int root, const char *name)
{
    struct stat st;
    char target[PATH_MAX];
    struct compose_name *n = &c->names[c->n_names];
    if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
    }
    ssize_t len = S_ISLNK(st.st_mode) ? readlinkat(root, name, target, sizeof target - 1) : 0;
    if (len <= 0 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
        return;
    }
    *n = (struct compose_name) {
        .name = arena_dup(c->arena, str_of(name)),
        .link = len <= 0 ? NULL : arena_dup(c->arena, str_n(target, (size_t)len)),
        .dir = S_ISDIR(st.st_mode),
    };
    c->n_names++;
}

int compose_read_image(struct compose *c, struct err *e)
{
    const char *root = c->policy->image->root;
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int rc = 0;
    if (dir == NULL) {
        rc = ERR_SYS_AS(e, ERR_INPUT, "open the root of the image '%s'", root);
        cleanup_fd(&fd);
        return rc;
    }
    c->names = arena_array(c->arena, COMPOSE_NAMES_MAX, sizeof *c->names);
    c->n_names = 0;
    for (const struct dirent *i = readdir(dir); rc == 0 && i != NULL; i = readdir(dir)) {
        if (strcmp(i->d_name, ".") == 0 || strcmp(i->d_name, "..") == 0 || is_ours(i->d_name)) {
            continue;
        }
        if (c->n_names == COMPOSE_NAMES_MAX) {
            rc = ERR(e, ERR_LIMIT, "the image '%s' has more than %d names at its top", root,
                     COMPOSE_NAMES_MAX);
        } else {
            add_name(c, fd, i->d_name);
        }
    }
    (void)closedir(dir);
    qsort(c->names, c->n_names, sizeof *c->names, by_name);
    return rc;
}

static const char *upper(const struct draft *d, const char *path)
{
    return arena_printf(d->c->arena, OWN_IMAGE_UP "/upper%s", path);
}

/* A file of the image as its own programs would find it; links stay inside. */
static bool read_table(const struct compose *c, const char *path, struct buf *out)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    struct stat st;
    CLEANUP(fd) int root = open(c->policy->image->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd) int fd = root < 0 ? -1 : file_open_how(root, path, &how);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           file_read_fd(fd, path, TABLE_MAX, out, NULL) == 0;
}

static bool is_there(const struct compose *c, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    CLEANUP(fd) int root = open(c->policy->image->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd) int fd = root < 0 ? -1 : file_open_how(root, path, &how);
    return fd >= 0;
}

/* --- accounts --- */

/* Lines of the image's table, but for those that have our name. */
static void add_lines(struct buf *out, struct str table, const char *name)
{
    while (table.ptr != NULL) {
        struct str line = str_split(&table, '\n');
        struct str rest = line;
        struct str first = str_split(&rest, ':');
        if (line.len > 0 && !str_eqc(first, name)) {
            buf_addf(out, "%.*s\n", STR_ARG(line));
        }
    }
}

/* The user of the run comes first: it may have the number of one that the image knows. */
const char *compose_passwd(const struct compose *c, const char *home)
{
    const struct compose_who *w = &c->who;
    CLEANUP(buf) struct buf of_image = BUF_INIT(TABLE_MAX);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    bool image = c->policy->image != NULL;
    const char *shell = image && is_there(c, "/bin/bash") ? "/bin/bash" : "/bin/sh";
    const char *root = "root:x:0:0:root:/root:/usr/sbin/nologin\n";
    const char *others = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
    bool has = image && read_table(c, "/etc/passwd", &of_image);
    buf_addf(&out, "%s%s:x:%u:%u:%s:%s:%s\n", has ? "" : root, w->name, w->inside_uid,
             w->inside_gid, w->name, home, shell);
    if (has) {
        add_lines(&out, buf_str(&of_image), w->name);
    } else {
        buf_add(&out, str_of(others));
    }
    return arena_dup(c->arena, buf_str(&out));
}

const char *compose_group(const struct compose *c)
{
    const struct compose_who *w = &c->who;
    CLEANUP(buf) struct buf of_image = BUF_INIT(TABLE_MAX);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    bool has = c->policy->image != NULL && read_table(c, "/etc/group", &of_image);
    buf_addf(&out, "%s%s:x:%u:\n", has ? "" : "root:x:0:\n", w->name, w->inside_gid);
    if (has) {
        add_lines(&out, buf_str(&of_image), w->name);
    } else {
        buf_add(&out, STR("nogroup:x:65534:\n"));
    }
    return arena_dup(c->arena, buf_str(&out));
}

static void draft_etc(struct draft *d)
{
    const struct compose *c = d->c;
    bool open_net = c->policy->net == SANDBOX_NET_OPEN;
    draft_dir(d, upper(d, "/etc"), 0755, true);
    draft_file(d, upper(d, "/etc/passwd"), compose_passwd(c, c->who.home));
    draft_file(d, upper(d, "/etc/group"), compose_group(c));
    draft_file(d, upper(d, "/etc/hostname"), "cinch\n");
    draft_file(d, upper(d, "/etc/hosts"), open_net ? "" : COMPOSE_HOSTS);
    draft_file(d, upper(d, "/etc/resolv.conf"), open_net ? "" : COMPOSE_RESOLVER);
    if (!is_there(c, "/etc/nsswitch.conf")) {
        draft_file(d, upper(d, "/etc/nsswitch.conf"),
                   "passwd: files\ngroup: files\nhosts: files dns\n");
    }
}

static void draft_etc_of_host(struct draft *d)
{
    if (d->c->policy->net == SANDBOX_NET_OPEN) {
        draft_bind(d, "/etc/hosts", "/etc/hosts", PLAN_OPTIONAL);
        draft_bind(d, "/etc/resolv.conf", "/etc/resolv.conf", PLAN_OPTIONAL);
    }
}

/* --- room for what is mounted --- */

#define CERTIFICATES "/etc/ssl/certs"

/* Certificates are those of the image, if it has any. */
static bool has_certificates(const struct compose *c)
{
    static const char *const known[] = { "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem",
                                         "/etc/pki/tls/certs/ca-bundle.crt" };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (is_there(c, known[i])) {
            return true;
        }
    }
    return false;
}

struct covering {
    struct draft *d;
    const char *done[COMPOSE_GRANTS_MAX]; /* directories of the layer that were made */
    size_t n;
};

static bool is_done(const struct covering *w, const char *path)
{
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(w->done[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* A link, or a file where a directory has to be, somewhere on the way to `path`, the last part
 * included. What lies behind it stays reachable by its own name. */
static void make_room(struct covering *w, const char *path, bool dir)
{
    const struct compose *c = w->d->c;
    struct stat st;
    size_t len = strlen(path);
    for (size_t i = 1; i <= len; i++) {
        if (i < len && path[i] != '/') {
            continue;
        }
        const char *part = arena_dup(c->arena, str_n(path, i));
        const char *in_image = arena_printf(c->arena, "%s%s", c->policy->image->root, part);
        bool want_dir = i < len || dir;
        if (lstat(in_image, &st) != 0) {
            return;
        }
        if ((want_dir && S_ISDIR(st.st_mode)) || (!want_dir && S_ISREG(st.st_mode))) {
            continue;
        }
        if (!is_done(w, part) && w->n < COMPOSE_GRANTS_MAX) {
            w->done[w->n++] = part;
            if (want_dir) {
                draft_dir(w->d, upper(w->d, part), 0755, true);
            } else {
                draft_file(w->d, upper(w->d, part), "");
            }
        }
        return; /* nothing of the image is below it any more */
    }
}

static void make_all_room(struct covering *w)
{
    const struct compose *c = w->d->c;
    struct stat st;
    for (size_t i = 0; i < c->n_grants; i++) {
        const struct compose_grant *g = &c->grants[i];
        const char *last = strrchr(g->path, '/');
        if (g->kind != GRANT_LINK) {
            make_room(w, g->path, stat(g->path, &st) != 0 || S_ISDIR(st.st_mode));
        } else if (last != g->path) { /* the link itself is made anew */
            make_room(w, arena_dup(c->arena, str_n(g->path, (size_t)(last - g->path))), true);
        }
    }
    for (size_t i = 0; i < c->policy->image->n_mounts; i++) {
        const struct sandbox_mount *m = &c->policy->image->mounts[i];
        make_room(w, m->to, !m->link && stat(m->from, &st) == 0 && S_ISDIR(st.st_mode));
    }
    make_room(w, "/var/tmp", true);
    if (!has_certificates(c)) { /* into the layer: /etc is read-only when the mount is made */
        draft_dir(w->d, upper(w->d, CERTIFICATES), 0755, true);
    }
}

static bool is_covered(const struct covering *w, const char *name)
{
    return is_done(w, arena_printf(w->d->c->arena, "/%s", name));
}

static bool is_of_image(const struct compose *c, const char *path)
{
    for (size_t i = 0; i < c->n_names; i++) {
        if (compose_below(path, arena_printf(c->arena, "/%s", c->names[i].name))) {
            return true;
        }
    }
    return false;
}

static bool is_granted(const struct compose *c, const char *path)
{
    for (size_t i = 0; i < c->n_grants; i++) {
        if (c->grants[i].kind != GRANT_LINK && compose_below(path, c->grants[i].path)) {
            return true;
        }
    }
    return false;
}

/* A program may own the directories above a grant: as mounts they cannot be moved away. Outer ones
 * first. */
static void hold_above(struct draft *d, const char *path, struct covering *held)
{
    const struct compose *c = d->c;
    struct plan_paths p = { .flags = PLAN_INSIDE | PLAN_WRITABLE | PLAN_SHALLOW | PLAN_MAKE_DIR,
                            .host_uid = c->who.root ? c->who.uid : 0,
                            .host_gid = c->who.root ? c->who.gid : 0 };
    const char *slash = is_of_image(c, path) ? strchr(path + 1, '/') : NULL;
    while (slash != NULL && (slash = strchr(slash + 1, '/')) != NULL) {
        const char *dir = arena_dup(c->arena, str_n(path, (size_t)(slash - path)));
        if (!is_granted(c, dir) && !is_done(held, dir) && held->n < COMPOSE_GRANTS_MAX) {
            held->done[held->n++] = dir;
            d->rc = d->rc < 0 ? d->rc : plan_add_paths(d->b, PLAN_OP_BIND, &p, dir, dir, d->e);
        }
    }
}

/* --- the plan --- */

static void draft_overlay(struct draft *d)
{
    struct plan_paths p = { .flags = PLAN_WRITABLE, .mode = COMPOSE_OVERLAY_IMAGE };
    const char *options = compose_overlay_options(d->c, OWN_IMAGE_LOW, OWN_IMAGE_UP, true);
    d->rc = d->rc < 0 ? d->rc : plan_add_paths(d->b, PLAN_OP_OVERLAY, &p, options, OWN_IMAGE, d->e);
}

static void draft_names(struct draft *d, const struct covering *w)
{
    const struct compose *c = d->c;
    uint32_t writable = c->policy->mode == SANDBOX_READ_ONLY ? 0 : PLAN_WRITABLE;
    bool has_etc = false;
    for (size_t i = 0; i < c->n_names; i++) {
        const struct compose_name *n = &c->names[i];
        const char *to = arena_printf(c->arena, "/%s", n->name);
        bool etc = strcmp(n->name, "etc") == 0;
        has_etc = has_etc || etc;
        if (n->link != NULL && !etc && !is_covered(w, n->name)) {
            draft_symlink(d, n->link, to);
        } else {
            draft_bind(d, arena_printf(c->arena, OWN_IMAGE "%s", to), to,
                       PLAN_INSIDE | (etc ? 0 : writable));
        }
    }
    if (!has_etc) {
        draft_bind(d, OWN_IMAGE "/etc", "/etc", PLAN_INSIDE);
    }
}

void draft_image(struct draft *d)
{
    const struct compose *c = d->c;
    struct covering *room = ARENA_NEW(c->arena, struct covering);
    struct covering *held = ARENA_NEW(c->arena, struct covering);
    *room = (struct covering) { .d = d };
    *held = (struct covering) { .d = d };
    draft_number(d, PLAN_OP_NO_LINKS, 1);
    draft_bind_shown(d, c->policy->image->root, OWN_IMAGE_LOW, PLAN_SHALLOW);
    draft_dir(d, OWN_IMAGE_UP "/upper", 0755, true);
    draft_dir(d, OWN_IMAGE_UP "/work", 0755, true);
    draft_etc(d);
    make_all_room(room);
    draft_overlay(d);
    draft_names(d, room);
    draft_etc_of_host(d);
    draft_bind(d, OWN_VAR_TMP, "/var/tmp", PLAN_INSIDE | PLAN_WRITABLE);
    for (size_t i = 0; i < c->n_grants; i++) {
        hold_above(d, c->grants[i].path, held);
    }
}

void draft_image_mounts(struct draft *d)
{
    const struct sandbox_image *image = d->c->policy->image;
    if (!has_certificates(d->c)) {
        draft_bind(d, CERTIFICATES, CERTIFICATES, PLAN_OPTIONAL);
    }
    for (size_t i = 0; i < image->n_mounts; i++) {
        const struct sandbox_mount *m = &image->mounts[i];
        if (m->link) {
            draft_symlink(d, m->from, m->to);
        } else {
            draft_bind_shown(d, m->from, m->to, 0);
        }
    }
}

/* Does anything have to be seen below it that is mounted there? */
static bool is_mounted_below(const struct compose *c, const char *dir)
{
    const struct sandbox_image *image = c->policy->image;
    for (size_t i = 0; i < c->n_grants; i++) {
        if (compose_below(c->grants[i].path, dir)) {
            return true;
        }
    }
    for (size_t i = 0; i < image->n_mounts; i++) {
        if (compose_below(image->mounts[i].to, dir)) {
            return true;
        }
    }
    return false;
}

static bool is_fixed_name(const struct compose *c, const struct compose_name *n)
{
    for (size_t i = 0; n->dir && i < ARRAY_LEN(fixed_dirs); i++) {
        if (strcmp(n->name, fixed_dirs[i]) == 0) {
            return !is_mounted_below(c, arena_printf(c->arena, "/%s", n->name));
        }
    }
    return false;
}

void draft_image_fixed(struct draft *d)
{
    const struct compose *c = d->c;
    for (size_t i = 0; i < c->n_names; i++) {
        const struct compose_name *n = &c->names[i];
        if (is_fixed_name(c, n)) {
            const char *to = arena_printf(c->arena, "/%s", n->name);
            draft_bind(d, arena_printf(c->arena, OWN_IMAGE_LOW "%s", to), to, PLAN_INSIDE);
        }
    }
}

bool sandbox_image_is_fixed(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(fixed_dirs); i++) {
        size_t len = strlen(fixed_dirs[i]);
        if (path[0] == '/' && strncmp(path + 1, fixed_dirs[i], len) == 0 &&
            (path[1 + len] == '/' || path[1 + len] == '\0')) {
            return true;
        }
    }
    return false;
}

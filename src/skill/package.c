/* SPDX-License-Identifier: MIT
 *
 * Packages from directories and archives into memory, and from memory to disk; see package.h.
 */
#include "skill/package.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/zip.h"

enum { DEFAULT_TOTAL = 64 << 20, DEFAULT_FILES = 4096 };

struct reader {
    struct arena *arena;
    struct package *package;
    const char *label;
    struct package_limits limits;
};

static struct package_limits limits_of(const struct package_limits *limits)
{
    struct package_limits l = { 0 };
    if (limits != NULL) {
        l = *limits;
    }
    l.max_total = l.max_total > 0 ? l.max_total : DEFAULT_TOTAL;
    l.max_files = l.max_files > 0 ? l.max_files : DEFAULT_FILES;
    return l;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct package_file *)a)->name, ((const struct package_file *)b)->name);
}

static void sort(struct package *p)
{
    if (p->len > 1) {
        qsort(p->files, p->len, sizeof *p->files, by_name);
    }
}

static struct package_file *append(struct arena *a, struct package *p, struct str name)
{
    if (p->len == p->cap) {
        size_t cap = p->cap == 0 ? 16 : p->cap * 2;
        struct package_file *files = arena_array(a, cap, sizeof *files);
        if (p->len > 0) {
            memcpy(files, p->files, p->len * sizeof *files);
        }
        p->files = files;
        p->cap = cap;
    }
    struct package_file *f = &p->files[p->len++];
    *f = (struct package_file) { .name = arena_str(a, name), .content = STR_EMPTY };
    return f;
}

static bool is_git(struct str part)
{
    return str_eqc(part, ".git");
}

/* --- from a directory --- */

static int read_dir_at(struct reader *r, int fd, const char *prefix, struct err *e);

/* The file must not have become a link or a pipe since it was looked at. */
static int read_file(struct reader *r, int dir_fd, const char *base, struct str name, struct err *e)
{
    CLEANUP(fd)
    int fd = openat(dir_fd, base, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return ERR_SYS(e, "%s: read '%s'", r->label, name.ptr);
    }
    if (!S_ISREG(st.st_mode)) {
        return ERR(e, ERR_CONFIG, "%s: '%s' changed while it was read", r->label, name.ptr);
    }
    if ((uint64_t)st.st_size > r->limits.max_total - r->package->total) {
        return ERR(e, ERR_CONFIG, "%s: holds more than %llu bytes", r->label,
                   (unsigned long long)r->limits.max_total);
    }
    size_t size = (size_t)st.st_size;
    char *content = arena_alloc(r->arena, size + 1);
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, content + len, size - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return ERR_SYS(e, "%s: read '%s'", r->label, name.ptr);
        }
        if (n == 0) {
            break;
        }
        len += (size_t)n;
    }
    r->package->total += len;
    struct package_file *f = append(r->arena, r->package, name);
    f->content = str_n(content, len);
    f->executable = (st.st_mode & S_IXUSR) != 0;
    return 0;
}

static int read_subdir(struct reader *r, int dir_fd, const char *base, struct str name,
                       struct err *e)
{
    CLEANUP(fd)
    int fd = openat(dir_fd, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return ERR_SYS(e, "%s: open '%s'", r->label, name.ptr);
    }
    append(r->arena, r->package, name)->dir = true;
    return read_dir_at(r, fd, arena_printf(r->arena, "%s/", name.ptr), e);
}

static int read_one(struct reader *r, int dir_fd, const char *prefix, const char *base,
                    struct err *e)
{
    struct stat st;
    if (is_git(str_of(base)) || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
        return 0;
    }
    if (fstatat(dir_fd, base, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return ERR_SYS(e, "%s: look at '%s%s'", r->label, prefix, base);
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        r->package->skipped++;
        return 0;
    }
    struct str name = str_of(arena_printf(r->arena, "%s%s", prefix, base));
    const char *fault = zip_name_fault(name);
    if (fault != NULL) {
        return ERR(e, ERR_CONFIG, "%s: a name in '%s' %s", r->label,
                   prefix[0] == '\0' ? "." : prefix, fault);
    }
    if (r->package->len == r->limits.max_files) {
        return ERR(e, ERR_CONFIG, "%s: holds more than %zu files", r->label, r->limits.max_files);
    }
    return S_ISDIR(st.st_mode) ? read_subdir(r, dir_fd, base, name, e)
                               : read_file(r, dir_fd, base, name, e);
}

/* Recursion ends by the depth that zip_name_fault() allows. */
static int read_dir_at(struct reader *r, int fd, const char *prefix, struct err *e)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (d == NULL) {
        int rc = ERR_SYS(e, "%s: list '%s'", r->label, prefix);
        if (copy >= 0) {
            (void)close(copy);
        }
        return rc;
    }
    int rc = 0;
    for (struct dirent *entry = readdir(d); rc == 0 && entry != NULL; entry = readdir(d)) {
        rc = read_one(r, fd, prefix, entry->d_name, e);
    }
    (void)closedir(d);
    return rc;
}

int package_read_dir(struct arena *a, int dir_fd, const char *label,
                     const struct package_limits *limits, struct package **ret, struct err *e)
{
    struct reader r = { .arena = a, .label = label, .limits = limits_of(limits) };
    r.package = ARENA_NEW(a, struct package);
    int rc = read_dir_at(&r, dir_fd, "", e);
    if (rc < 0) {
        return rc;
    }
    sort(r.package);
    *ret = r.package;
    return 0;
}

/* --- from an archive --- */

static struct str top_of(struct str name)
{
    return str_split(&name, '/');
}

static bool is_skipped(struct str name)
{
    if (str_eqc(top_of(name), "__MACOSX")) {
        return true;
    }
    while (name.ptr != NULL) {
        if (is_git(str_split(&name, '/'))) {
            return true;
        }
    }
    return false;
}

/* The one directory that holds all else. */
static int find_top(const struct reader *r, const struct zip_archive *z, struct str *ret,
                    struct err *e)
{
    struct str top = STR_EMPTY;
    for (size_t i = 0; i < zip_archive_len(z); i++) {
        const struct zip_entry *entry = zip_archive_get(z, i);
        if (is_skipped(entry->name)) {
            continue;
        }
        struct str part = top_of(entry->name);
        if (part.len == entry->name.len && !entry->dir) {
            return str_ends(part, STR(".zip"))
                       ? ERR(e, ERR_CONFIG,
                             "%s: holds the archive '%.*s' where the package's directory should "
                             "be; unpack the outer one",
                             r->label, STR_ARG(part))
                       : ERR(e, ERR_CONFIG,
                             "%s: '%.*s' is not inside a directory; a package is one directory",
                             r->label, STR_ARG(part));
        }
        if (top.len > 0 && !str_eq(top, part)) {
            return ERR(e, ERR_CONFIG,
                       "%s: holds both '%.*s' and '%.*s'; a package is one directory", r->label,
                       STR_ARG(top), STR_ARG(part));
        }
        top = part;
    }
    if (top.len == 0) {
        return ERR(e, ERR_CONFIG, "%s: the archive is empty", r->label);
    }
    *ret = top;
    return 0;
}

static int read_entry(struct reader *r, struct zip_archive *z, size_t i, struct str top,
                      struct err *e)
{
    const struct zip_entry *entry = zip_archive_get(z, i);
    if (is_skipped(entry->name) || entry->name.len == top.len) {
        return 0;
    }
    struct package_file *f =
        append(r->arena, r->package, str_slice(entry->name, top.len + 1, entry->name.len));
    f->dir = entry->dir;
    f->executable = entry->executable;
    if (entry->dir) {
        return 0;
    }
    CLEANUP(buf) struct buf content = BUF_INIT((size_t)entry->size + 1);
    int rc = zip_archive_read(z, i, &content, e);
    f->content = arena_str(r->arena, buf_str(&content));
    r->package->total += content.len;
    return rc;
}

static int read_archive(struct reader *r, struct zip_archive *z, struct err *e)
{
    struct str top = STR_EMPTY;
    int rc = find_top(r, z, &top, e);
    for (size_t i = 0; rc == 0 && i < zip_archive_len(z); i++) {
        rc = read_entry(r, z, i, top, e);
    }
    if (rc == 0) {
        r->package->top = arena_dup(r->arena, top);
        sort(r->package);
    }
    return rc;
}

int package_read_zip(struct arena *a, struct str bytes, const char *label,
                     const struct package_limits *limits, struct package **ret, struct err *e)
{
    struct reader r = { .arena = a, .label = label, .limits = limits_of(limits) };
    r.package = ARENA_NEW(a, struct package);
    struct zip_limits l = { .max_total = r.limits.max_total, .max_entries = r.limits.max_files };
    CLEANUP(zip_archive) struct zip_archive *z = NULL;
    int rc = zip_archive_open(bytes, label, &l, &z, e);
    if (rc == 0) {
        rc = read_archive(&r, z, e);
    }
    if (rc < 0) {
        /* Whatever is wrong with it, it is a wrong package. */
        if (e != NULL) {
            e->code = ERR_CONFIG;
        }
        return -ERR_CONFIG;
    }
    *ret = r.package;
    return 0;
}

/* --- in memory --- */

struct package *package_of_file(struct arena *a, struct str name, struct str content)
{
    struct package *p = ARENA_NEW(a, struct package);
    append(a, p, name)->content = arena_str(a, content);
    p->total = content.len;
    return p;
}

const struct package_file *package_find(const struct package *p, struct str name)
{
    struct package_file key = { .name = name };
    return p->len == 0 ? NULL : bsearch(&key, p->files, p->len, sizeof *p->files, by_name);
}

struct package *package_with(struct arena *a, const struct package *p, struct str name,
                             struct str content)
{
    struct package *copy = ARENA_NEW(a, struct package);
    *copy = *p;
    copy->cap = p->len + 1;
    copy->files = arena_array(a, copy->cap, sizeof *copy->files);
    if (p->len > 0) {
        memcpy(copy->files, p->files, p->len * sizeof *p->files);
    }
    for (size_t i = 0; i < copy->len; i++) {
        struct package_file *f = &copy->files[i];
        if (str_eq(f->name, name)) {
            copy->total = copy->total - f->content.len + content.len;
            f->content = content;
            return copy;
        }
    }
    append(a, copy, name)->content = content;
    copy->total += content.len;
    sort(copy);
    return copy;
}

/* Directories are not compared: one that holds files is implied by them, and an archive need not
 * list it. */
static const struct package_file *next_file(const struct package *p, size_t *i)
{
    while (*i < p->len && p->files[*i].dir) {
        (*i)++;
    }
    return *i < p->len ? &p->files[(*i)++] : NULL;
}

bool package_equal(const struct package *a, const struct package *b)
{
    size_t i = 0;
    size_t j = 0;
    for (;;) {
        const struct package_file *x = next_file(a, &i);
        const struct package_file *y = next_file(b, &j);
        if (x == NULL || y == NULL) {
            return x == y;
        }
        if (!str_eq(x->name, y->name) || !str_eq(x->content, y->content) ||
            x->executable != y->executable) {
            return false;
        }
    }
}

/* --- to disk --- */

static int write_parent(struct str name, int dir_fd, struct err *e)
{
    char parent[PATH_MAX];
    size_t len = name.len - path_base(name).len;
    if (len == 0) {
        return 0;
    }
    memcpy(parent, name.ptr, len - 1);
    parent[len - 1] = '\0';
    return file_mkdirs(dir_fd, parent, 0755, e);
}

static int write_file(const struct package_file *f, int dir_fd, struct err *e)
{
    CLEANUP(fd)
    int fd = openat(dir_fd, f->name.ptr, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    f->executable ? 0755 : 0644);
    if (fd < 0) {
        return ERR_SYS_AS(e, errno == EEXIST ? ERR_EXISTS : ERR_OUTPUT, "create '%s'", f->name.ptr);
    }
    int r = file_write_all(fd, f->content, e);
    return r < 0 ? err_wrap(e, "'%s'", f->name.ptr) : 0;
}

int package_write(const struct package *p, int dir_fd, struct err *e)
{
    for (size_t i = 0; i < p->len; i++) {
        const struct package_file *f = &p->files[i];
        int r =
            f->dir ? file_mkdirs(dir_fd, f->name.ptr, 0755, e) : write_parent(f->name, dir_fd, e);
        if (r == 0 && !f->dir) {
            r = write_file(f, dir_fd, e);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

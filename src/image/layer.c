/* SPDX-License-Identifier: MIT
 *
 * The one file that knows libarchive. A layer passes through two readers: the first takes the
 * compression away, the second knows only tar, so that both the file and the tar file in it are
 * hashed on the way.
 */
#include "image/layer.h"

#include <archive.h>
#include <archive_entry.h>
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
#include "base/sha256.h"
#include "base/str.h"

#define WHITEOUT        ".wh."
#define WHITEOUT_OWN    ".wh..wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"

enum { CHUNK = 1 << 16, DEPTH_MAX = 256 };

/* --- which files the current layer has written --- */

struct ino_set {
    ino_t *slots; /* open addressing; 0: free */
    size_t size, used;
};

static bool set_find(const struct ino_set *s, ino_t ino, size_t *ret_at)
{
    size_t at = (size_t)(ino * UINT64_C(0x9e3779b97f4a7c15)) & (s->size - 1);
    while (s->slots[at] != 0 && s->slots[at] != ino) {
        at = (at + 1) & (s->size - 1);
    }
    *ret_at = at;
    return s->slots[at] == ino;
}

static void set_grow(struct ino_set *s)
{
    struct ino_set old = *s;
    size_t at;
    s->size = old.size == 0 ? 1024 : old.size * 2;
    s->slots = xcalloc(s->size, sizeof *s->slots);
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i] != 0 && !set_find(s, old.slots[i], &at)) {
            s->slots[at] = old.slots[i];
        }
    }
    free(old.slots);
}

static void set_add(struct ino_set *s, ino_t ino)
{
    size_t at;
    if (s->used * 2 >= s->size) {
        set_grow(s);
    }
    if (!set_find(s, ino, &at)) {
        s->slots[at] = ino;
        s->used++;
    }
}

static bool set_has(const struct ino_set *s, ino_t ino)
{
    size_t at;
    return s->size > 0 && set_find(s, ino, &at);
}

static void set_empty(struct ino_set *s)
{
    free(s->slots);
    *s = (struct ino_set) { 0 };
}

void layer_begin(struct layers *l, int root, const struct layer_limits *limits)
{
    *l = (struct layers) { .root = root };
    l->limits = limits == NULL ? (struct layer_limits) { 0 } : *limits;
    l->limits.bytes = l->limits.bytes == 0 ? (uint64_t)64 << 30 : l->limits.bytes;
    l->limits.entries = l->limits.entries == 0 ? 4000000 : l->limits.entries;
    l->now = xcalloc(1, sizeof *l->now);
}

void layer_end(struct layers *l)
{
    if (l->now != NULL) {
        set_empty(l->now);
    }
    free(l->now);
    l->now = NULL;
}

/* --- names --- */

/* Without "/" and "." at the front, "//" and "/" at the end; an empty name is the root. */
static int clean_name(const char *name, char out[PATH_MAX], struct err *e)
{
    struct str rest = str_of(name == NULL ? "" : name);
    size_t len = 0;
    size_t depth = 0;
    if (name == NULL) {
        return ERR(e, ERR_PARSE, "an entry has a name that cannot be read");
    }
    out[0] = '\0';
    while (rest.ptr != NULL) {
        struct str part = str_split(&rest, '/');
        if (part.len == 0 || str_eqc(part, ".")) {
            continue;
        }
        if (str_eqc(part, "..")) {
            return ERR(e, ERR_PARSE, "the name '%.200s' leads out of the image", name);
        }
        if (part.len > NAME_MAX || len + part.len + 2 > PATH_MAX || ++depth > DEPTH_MAX) {
            return ERR(e, ERR_PARSE, "the name '%.100s…' is too long", name);
        }
        if (len > 0) {
            out[len++] = '/';
        }
        memcpy(out + len, part.ptr, part.len);
        len += part.len;
        out[len] = '\0';
    }
    return 0;
}

/* A directory of the image by its name: links are followed as they would be inside. */
static int open_inside(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    return file_open_how(root, path[0] == '\0' ? "." : path, &how);
}

/* Makes the directories of `path` that are missing. */
static int make_inside(int root, char *path, int *ret, struct err *e)
{
    CLEANUP(fd) int at = open_inside(root, "");
    for (char *slash = path; at >= 0 && slash != NULL;) {
        char *part = slash;
        slash = strchr(part, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
        int next = open_inside(root, path);
        if (next < 0 && errno == ENOENT) {
            next = mkdirat(at, part, 0755) == 0 ? open_inside(root, path) : -1;
        }
        (void)close(at);
        at = next;
        if (slash != NULL) {
            *slash++ = '/';
        }
    }
    if (at < 0) {
        return ERR_SYS_AS(e, errno == ENOSPC ? ERR_SYS : ERR_PARSE, "directory '%s'", path);
    }
    *ret = TAKE_FD(at);
    return 0;
}

/* The directory that `path` is in, and the last part of it. */
static int open_above(int root, char *path, int *ret_dir, const char **ret_name, struct err *e)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        *ret_name = path;
        *ret_dir = open_inside(root, "");
        return *ret_dir < 0 ? ERR_SYS(e, "open the root") : 0;
    }
    *slash = '\0';
    *ret_name = slash + 1;
    *ret_dir = open_inside(root, path);
    int r = *ret_dir >= 0     ? 0
            : errno == ENOENT ? make_inside(root, path, ret_dir, e)
                              : ERR_SYS_AS(e, ERR_PARSE, "directory '%s'", path);
    *slash = '/';
    return r;
}

/* --- whiteouts --- */

static int remove_lower(struct layers *l, int dir, int depth, struct err *e);

static int remove_lower_name(struct layers *l, int dir, const char *name, int depth, struct err *e)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : ERR_SYS(e, "look at '%s'", name);
    }
    if (!set_has(l->now, st.st_ino)) {
        return file_remove_tree(dir, name, e);
    }
    if (!S_ISDIR(st.st_mode)) {
        return 0;
    }
    CLEANUP(fd) int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return below < 0 ? ERR_SYS(e, "open '%s'", name) : remove_lower(l, below, depth + 1, e);
}

/* What this layer did not write, in a directory that it declares to be all its own. */
static int remove_lower(struct layers *l, int dir, int depth, struct err *e)
{
    CLEANUP(fd) int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (d == NULL || depth > DEPTH_MAX) {
        return ERR(e, ERR_PARSE, "a whiteout of a directory that cannot be read");
    }
    fd = -1;
    for (const struct dirent *i = readdir(d); r == 0 && i != NULL; i = readdir(d)) {
        if (strcmp(i->d_name, ".") != 0 && strcmp(i->d_name, "..") != 0) {
            r = remove_lower_name(l, dirfd(d), i->d_name, depth, e);
        }
    }
    (void)closedir(d);
    return r;
}

static int take_whiteout(struct layers *l, int dir, const char *name, struct err *e)
{
    if (strcmp(name, WHITEOUT_OPAQUE) == 0) {
        return remove_lower(l, dir, 0, e);
    }
    const char *what = name + strlen(WHITEOUT);
    if (what[0] == '\0' || strcmp(what, ".") == 0 || strcmp(what, "..") == 0) {
        return ERR(e, ERR_PARSE, "the whiteout '%s' names nothing", name);
    }
    return remove_lower_name(l, dir, what, 0, e);
}

/* --- entries --- */

static int damaged(struct archive *in, const char *what, struct err *e)
{
    const char *why = archive_error_string(in);
    return ERR(e, archive_errno(in) == ENOSPC ? ERR_SYS : ERR_PARSE, "%s: %s", what,
               why == NULL ? "it is damaged" : why);
}

/* Blocks may leave holes, which count as much as bytes. */
static int write_block(struct layers *l, int out, const void *data, size_t len, la_int64_t at,
                       struct err *e)
{
    const char *from = data;
    uint64_t end = (uint64_t)at + len;
    if (at < 0 || end > l->limits.bytes || l->bytes + end > l->limits.bytes) {
        return ERR(e, ERR_LIMIT, "the image unpacks to more than %llu bytes",
                   (unsigned long long)l->limits.bytes);
    }
    while (len > 0) {
        ssize_t n = pwrite(out, from, len, at);
        if (n < 0 && errno != EINTR) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "write a file of the image");
        }
        from += n < 0 ? 0 : n;
        at += n < 0 ? 0 : n;
        len -= n < 0 ? 0 : (size_t)n;
    }
    return 0;
}

static int write_content(struct layers *l, struct archive *in, int out, struct err *e)
{
    const void *data = NULL;
    size_t len = 0;
    la_int64_t at = 0;
    la_int64_t end = 0;
    int got = ARCHIVE_OK;
    int r = 0;
    while (r == 0 && (got = archive_read_data_block(in, &data, &len, &at)) == ARCHIVE_OK) {
        r = write_block(l, out, data, len, at, e);
        end = at + (la_int64_t)len;
    }
    if (r < 0 || got != ARCHIVE_EOF) {
        return r < 0 ? r : damaged(in, "a file of the layer", e);
    }
    struct stat st;
    if (fstat(out, &st) == 0 && st.st_size < end && ftruncate(out, end) != 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "write a file of the image");
    }
    l->bytes += (uint64_t)end;
    return 0;
}

/* Makes room for something that is not a directory, or for a directory. */
static int clear_place(int dir, const char *name, bool is_dir, bool *ret_there, struct err *e)
{
    struct stat st;
    *ret_there = false;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : ERR_SYS(e, "look at '%s'", name);
    }
    *ret_there = is_dir && S_ISDIR(st.st_mode);
    return *ret_there ? 0 : file_remove_tree(dir, name, e);
}

static int make_dir(int dir, const char *name, mode_t mode, struct err *e)
{
    bool there = false;
    int r = clear_place(dir, name, true, &there, e);
    if (r == 0 && !there && mkdirat(dir, name, 0755) != 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "make directory '%s'", name);
    }
    if (r == 0 && fchmodat(dir, name, (mode & 01777) | S_IRWXU, 0) != 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "set the mode of '%s'", name);
    }
    return r;
}

static int make_file(struct layers *l, struct archive *in, struct archive_entry *entry, int dir,
                     const char *name, struct err *e)
{
    bool there = false;
    int r = clear_place(dir, name, false, &there, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd)
    int out = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "make file '%s'", name);
    }
    r = write_content(l, in, out, e);
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                 { .tv_sec = archive_entry_mtime(entry) } };
    if (r == 0 && (fchmod(out, (archive_entry_perm(entry) & 0777) | S_IRUSR) != 0 ||
                   futimens(out, times) != 0)) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "set the mode of '%s'", name);
    }
    return r;
}

static int make_symlink(struct archive_entry *entry, int dir, const char *name, struct err *e)
{
    const char *target = archive_entry_symlink(entry);
    bool there = false;
    int r = clear_place(dir, name, false, &there, e);
    if (r < 0) {
        return r;
    }
    if (target == NULL || target[0] == '\0' || symlinkat(target, dir, name) != 0) {
        return ERR(e, ERR_PARSE, "the link '%s' cannot be made", name);
    }
    return 0;
}

/* Another name of a file of the image; never one outside, and never what a link points to. */
static int make_hardlink(struct layers *l, const char *target, int dir, const char *name,
                         struct err *e)
{
    char path[PATH_MAX];
    const char *last = NULL;
    struct stat st;
    struct stat old;
    CLEANUP(fd) int above = -1;
    int r = clean_name(target, path, e);
    r = r < 0 ? r : open_above(l->root, path, &above, &last, e);
    if (r < 0) {
        return r;
    }
    if (fstatat(above, last, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(st.st_mode)) {
        return ERR(e, ERR_PARSE, "the link '%s' is to '%s', which is not in the image", name, path);
    }
    if (fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_ino == st.st_ino) {
        return 0;
    }
    bool there = false;
    r = clear_place(dir, name, false, &there, e);
    if (r == 0 && linkat(above, last, dir, name, 0) != 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "make link '%s'", name);
    }
    return r;
}

static int make_entry(struct layers *l, struct archive *in, struct archive_entry *entry, int dir,
                      const char *name, struct err *e)
{
    struct stat st;
    int r = 0;
    if (archive_entry_hardlink(entry) != NULL) {
        r = make_hardlink(l, archive_entry_hardlink(entry), dir, name, e);
    } else if (archive_entry_filetype(entry) == AE_IFDIR) {
        r = make_dir(dir, name, archive_entry_perm(entry), e);
    } else if (archive_entry_filetype(entry) == AE_IFREG) {
        r = make_file(l, in, entry, dir, name, e);
    } else if (archive_entry_filetype(entry) == AE_IFLNK) {
        r = make_symlink(entry, dir, name, e);
    } else {
        l->skipped++;
        return 0;
    }
    if (r == 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        set_add(l->now, st.st_ino);
    }
    return r;
}

/* Files that aufs kept for itself mean nothing to others. */
static bool is_of_aufs(const char *path)
{
    const char *at = strstr(path, WHITEOUT_OWN);
    bool starts = at != NULL && (at == path || at[-1] == '/');
    return starts && strcmp(at, WHITEOUT_OPAQUE) != 0;
}

static int take_entry(struct layers *l, struct archive *in, struct archive_entry *entry,
                      struct err *e)
{
    char path[PATH_MAX];
    const char *name = NULL;
    CLEANUP(fd) int dir = -1;
    if (++l->entries > l->limits.entries) {
        return ERR(e, ERR_LIMIT, "the image has more than %llu files",
                   (unsigned long long)l->limits.entries);
    }
    int r = clean_name(archive_entry_pathname(entry), path, e);
    if (r < 0 || path[0] == '\0') {
        return r;
    }
    if (is_of_aufs(path)) {
        return 0;
    }
    r = open_above(l->root, path, &dir, &name, e);
    if (r < 0) {
        return r;
    }
    return strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0 ? take_whiteout(l, dir, name, e)
                                                          : make_entry(l, in, entry, dir, name, e);
}

/* --- reading --- */

struct source {
    int fd;
    struct sha256 *file; /* as it is; NULL: not wanted */
    struct sha256 *tar;
    struct archive *plain; /* without compression */
    char bytes[CHUNK];
};

static la_ssize_t read_fd(struct archive *in, void *arg, const void **ret)
{
    struct source *s = arg;
    ssize_t n = 0;
    do {
        n = read(s->fd, s->bytes, sizeof s->bytes);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        archive_set_error(in, errno, "%s", "it cannot be read");
        return ARCHIVE_FATAL;
    }
    if (s->file != NULL) {
        sha256_add(s->file, str_n(s->bytes, (size_t)n));
    }
    *ret = s->bytes;
    return n;
}

static la_ssize_t read_plain(struct archive *in, void *arg, const void **ret)
{
    struct source *s = arg;
    size_t len = 0;
    la_int64_t at = 0;
    *ret = NULL;
    int got = archive_read_data_block(s->plain, ret, &len, &at);
    if (got == ARCHIVE_EOF) {
        return 0;
    }
    if (got != ARCHIVE_OK) {
        const char *why = archive_error_string(s->plain);
        archive_set_error(in, EIO, "%s", why == NULL ? "it is damaged" : why);
        return ARCHIVE_FATAL;
    }
    if (s->tar != NULL) {
        sha256_add(s->tar, str_n(*ret, len));
    }
    return (la_ssize_t)len;
}

static int open_plain(struct source *s, const char *what, struct err *e)
{
    struct archive_entry *entry = NULL;
    s->plain = archive_read_new();
    if (archive_read_support_filter_gzip(s->plain) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(s->plain) != ARCHIVE_OK ||
        archive_read_support_filter_xz(s->plain) != ARCHIVE_OK ||
        archive_read_support_filter_bzip2(s->plain) != ARCHIVE_OK) {
        return ERR(e, ERR_UNSUPPORTED, "libarchive lacks gzip, zstd, xz or bzip2");
    }
    (void)archive_read_support_format_raw(s->plain);
    (void)archive_read_support_format_empty(s->plain);
    if (archive_read_open(s->plain, s, NULL, read_fd, NULL) != ARCHIVE_OK) {
        return damaged(s->plain, what, e);
    }
    int got = archive_read_next_header(s->plain, &entry);
    return got == ARCHIVE_OK || got == ARCHIVE_EOF ? 0 : damaged(s->plain, what, e);
}

/* Padding behind the last entry belongs to the digests. */
static int drain(struct source *s, const char *what, struct err *e)
{
    const void *data = NULL;
    la_ssize_t n = 1;
    while (n > 0) {
        n = read_plain(s->plain, s, &data);
    }
    int r = n < 0 ? damaged(s->plain, what, e) : 0;
    while (r == 0 && (n = read_fd(s->plain, s, &data)) != 0) {
        r = n < 0 ? damaged(s->plain, what, e) : 0;
    }
    return r;
}

static int check_digest(struct sha256 **hash, const char *want, const char *what, struct err *e)
{
    char real[SHA256_HEX] = "";
    *hash = sha256_end(*hash, real);
    return want == NULL || strcmp(want, real) == 0
               ? 0
               : ERR(e, ERR_PARSE, "%s is damaged: it has digest sha256:%s, not sha256:%s", what,
                     real, want);
}

typedef int take_fn(void *arg, struct archive *in, struct archive_entry *entry, struct err *e);

static int read_entries(struct source *s, const char *what, take_fn *take, void *arg, struct err *e)
{
    struct archive *in = archive_read_new();
    struct archive_entry *entry = NULL;
    int got = ARCHIVE_OK;
    (void)archive_read_support_format_tar(in);
    (void)archive_read_support_format_empty(in);
    int r =
        archive_read_open(in, s, NULL, read_plain, NULL) == ARCHIVE_OK ? 0 : damaged(in, what, e);
    while (r == 0 && (got = archive_read_next_header(in, &entry)) != ARCHIVE_EOF) {
        /* ARCHIVE_WARN: a name in another character set, an odd attribute. */
        r = got == ARCHIVE_OK || got == ARCHIVE_WARN ? take(arg, in, entry, e)
                                                     : damaged(in, what, e);
    }
    (void)archive_read_free(in);
    return r;
}

struct wanted {
    const char *what;    /* for messages */
    const char *digest;  /* NULL: any */
    const char *diff_id; /* NULL: any */
};

static int read_all(int fd, const struct wanted *want, take_fn *take, void *arg, struct err *e)
{
    const char *what = want->what;
    const char *digest = want->digest;
    const char *diff_id = want->diff_id;
    struct source *s = xcalloc(1, sizeof *s);
    s->fd = fd;
    s->file = digest == NULL ? NULL : sha256_new();
    s->tar = diff_id == NULL ? NULL : sha256_new();
    int r = open_plain(s, what, e);
    r = r < 0 ? r : read_entries(s, what, take, arg, e);
    r = r < 0 ? r : drain(s, what, e);
    r = r < 0 || digest == NULL ? r : check_digest(&s->file, digest, what, e);
    r = r < 0 || diff_id == NULL ? r : check_digest(&s->tar, diff_id, what, e);
    s->file = sha256_end(s->file, NULL);
    s->tar = sha256_end(s->tar, NULL);
    (void)archive_read_free(s->plain);
    free(s);
    return r;
}

static int take_layer_entry(void *arg, struct archive *in, struct archive_entry *entry,
                            struct err *e)
{
    return take_entry(arg, in, entry, e);
}

int layer_apply(struct layers *l, int fd, const char *what, const char *digest, const char *diff_id,
                struct err *e)
{
    set_empty(l->now);
    int r = read_all(fd, &(struct wanted) { what, digest, diff_id }, take_layer_entry, l, e);
    return r < 0 ? err_wrap(e, "%s", what) : 0;
}

static int take_member(void *arg, struct archive *in, struct archive_entry *entry, struct err *e)
{
    struct layers *l = arg;
    unsigned kind = archive_entry_filetype(entry);
    bool link = archive_entry_hardlink(entry) != NULL;
    return link || kind == AE_IFREG || kind == AE_IFDIR || kind == AE_IFLNK
               ? take_entry(l, in, entry, e)
               : ERR(e, ERR_PARSE, "'%.200s' is not a file", archive_entry_pathname(entry));
}

int layer_extract(int dir, int fd, uint64_t max, struct err *e)
{
    struct layers l;
    layer_begin(&l, dir, &(struct layer_limits) { .bytes = max, .entries = 100000 });
    int r = read_all(fd, &(struct wanted) { .what = "archive" }, take_member, &l, e);
    if (r == 0 && l.entries == 0) {
        r = ERR(e, ERR_PARSE, "it is not a tar archive, or it is empty");
    }
    layer_end(&l);
    return r;
}

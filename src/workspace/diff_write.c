/* SPDX-License-Identifier: MIT
 *
 * Both sides as commits of a repository of our own, through git fast-import, and the patch between
 * them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/diff_priv.h"
#include "workspace/git.h"

enum { FLUSH_BYTES = 1 << 20 };
#define STATUS_MAX ((size_t)512 << 20)
#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct stream {
    struct buf text;
    int fd;
    struct err *e;
};

static int flush(struct stream *s, size_t keep)
{
    if (s->text.len <= keep) {
        return 0;
    }
    int r = file_write_all(s->fd, buf_str(&s->text), s->e);
    buf_reset(&s->text);
    return r;
}

/* As fast-import wants a path that may hold anything: quoted, with octal escapes. */
static void quote(struct buf *out, const char *path)
{
    buf_adds(out, "\"");
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\' || *p < 0x20 || *p == 0x7f) {
            buf_addf(out, "\\%03o", *p);
        } else {
            buf_add(out, str_n(p, 1));
        }
    }
    buf_adds(out, "\"");
}

static int add_link(struct stream *s, int fd, const char *where)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(fd, where, target, sizeof target);
    if (n < 0) {
        return ERR_SYS(s->e, "read link '%s'", where);
    }
    buf_addf(&s->text, "data %zd\n", n);
    buf_add(&s->text, str_n(target, (size_t)n));
    buf_adds(&s->text, "\n");
    return 0;
}

/* The length comes first; what a file lacks then (nobody should write any more) is an error. */
static int add_bytes(struct stream *s, int fd, off_t at, off_t size, const char *name)
{
    buf_addf(&s->text, "data %lld\n", (long long)size);
    for (off_t end = at + size; at < end;) {
        char *room;
        size_t want = end - at > FLUSH_BYTES ? FLUSH_BYTES : (size_t)(end - at);
        int r = flush(s, FLUSH_BYTES);
        r = r < 0 ? r : buf_reserve(&s->text, want, &room, s->e);
        if (r < 0) {
            return r;
        }
        ssize_t n = pread(fd, room, want, at);
        if (n <= 0) {
            return ERR(s->e, ERR_SYS, "read '%s': it is shorter than it was", name);
        }
        buf_commit(&s->text, (size_t)n);
        at += n;
    }
    buf_adds(&s->text, "\n");
    return flush(s, FLUSH_BYTES);
}

/* Without permission for its owner: made readable for the moment that it takes to open it. */
static int open_unreadable(int at, const char *name)
{
    struct stat st;
    int fd = -1;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
        fchmodat(at, name, S_IRUSR | (st.st_mode & 07777), 0) == 0) {
        fd = openat(at, name, OPEN_FLAGS);
        (void)!fchmodat(at, name, st.st_mode & 07777, 0);
    }
    errno = fd < 0 ? EACCES : 0;
    return fd;
}

int diff_open(struct diff *d, const struct diff_entry *x, struct err *e)
{
    const char *slash = strrchr(x->where, '/');
    const char *name = slash == NULL ? x->where : slash + 1;
    char dir[PATH_MAX] = "";
    if (slash != NULL) {
        (void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - x->where), x->where);
    }
    CLEANUP(fd) int at = node_open_dir(x->in_base ? d->o->base_fd : d->o->new_fd, dir, e);
    if (at < 0) {
        return at;
    }
    int fd = openat(at, name, OPEN_FLAGS);
    if (fd < 0 && errno == EACCES && !x->in_base && d->o->is_private) {
        fd = open_unreadable(at, name);
    }
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        cleanup_fd(&fd);
        errno = EINVAL;
    }
    int saved = errno;
    int r = fd < 0 ? ERR_SYS(e, "read '%s'", x->where) : fd;
    errno = saved;
    return r;
}

static int add_content(struct diff *d, struct stream *s, const struct diff_entry *x)
{
    struct stat st;
    CLEANUP(fd) int fd = diff_open(d, x, s->e);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return fd < 0 ? fd : ERR_SYS(s->e, "read '%s'", x->where);
    }
    return add_bytes(s, fd, 0, st.st_size, x->where);
}

static int add_file(struct diff *d, struct stream *s, const struct diff_entry *x, const char *shown)
{
    bool link = S_ISLNK(x->st.st_mode);
    int root = x->in_base ? d->o->base_fd : d->o->new_fd;
    const char *mode = link ? "120000" : x->st.st_mode & 0100 ? "100755" : "100644";
    buf_addf(&s->text, "M %s inline ", mode);
    quote(&s->text, shown);
    buf_adds(&s->text, "\n");
    if (x->id != NULL) {
        return add_bytes(s, d->blobs_fd, x->offset, x->st.st_size, x->path);
    }
    return link ? add_link(s, root, x->where) : add_content(d, s, x);
}

static int add_side(struct diff *d, struct stream *s, const struct diff_side *side,
                    const char *name, const char *prefix)
{
    size_t skip = strlen(prefix) + (prefix[0] != '\0');
    buf_addf(&s->text,
             "commit refs/heads/%s\ncommitter cinch <cinch@localhost> 0 +0000\ndata 0\n\n", name);
    int r = 0;
    for (size_t i = 0; r == 0 && i < side->len; i++) {
        const struct diff_entry *x = &side->items[i];
        if (!x->dropped && strcmp(diff_home_of(d, x->path), prefix) == 0) {
            r = add_file(d, s, x, x->path + skip);
        }
    }
    buf_adds(&s->text, "\n");
    return r < 0 ? r : flush(s, FLUSH_BYTES);
}

static int import(struct diff *d, const char *prefix)
{
    struct stream s = { .text = BUF_INIT(BUF_TEXT), .e = d->e };
    s.fd = open(d->o->scratch, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (s.fd < 0) {
        return ERR_SYS(d->e, "create a temporary file in '%s'", d->o->scratch);
    }
    int r = add_side(d, &s, &d->before, "before", prefix);
    r = r < 0 ? r : add_side(d, &s, &d->after, "after", prefix);
    buf_adds(&s.text, "done\n");
    r = r < 0 ? r : flush(&s, 0);
    if (r == 0) {
        const char *const args[] = { "fast-import", "--quiet", "--done", "--force", NULL };
        struct git_call c = { .args = args, .git_dir = d->git_dir, .input_fd = &s.fd };
        (void)lseek(s.fd, 0, SEEK_SET);
        r = git_run(&c, d->e);
    }
    buf_done(&s.text);
    (void)close(s.fd);
    return r;
}

int diff_write(struct diff *d, const char *prefix, int fd)
{
    /* Every option that a configuration could set is said. */
    static const char *const args[] = {
        "diff-tree",
        "-r",
        "-p",
        "--binary",
        "--full-index",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--no-relative",
        "--find-renames=50%",
        "-l1000",
        "--unified=3",
        "--diff-algorithm=myers",
        "--no-indent-heuristic",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--submodule=short",
        "refs/heads/before",
        "refs/heads/after",
        NULL,
    };
    int r = import(d, prefix);
    struct git_call c = { .args = args, .git_dir = d->git_dir, .out_fd = &fd };
    return r < 0 ? r : git_run(&c, d->e);
}

/* ":100644 100644 ID ID M\0path\0" or "R100\0old\0new\0". */
int diff_read_status(struct diff *d)
{
    static const char *const args[] = {
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--find-renames=50%",
        "-l1000",
        "refs/heads/before",
        "refs/heads/after",
        NULL,
    };
    CLEANUP(buf) struct buf out = BUF_INIT(STATUS_MAX);
    struct git_call c = { .args = args, .git_dir = d->git_dir, .out = &out };
    int r = git_run(&c, d->e);
    struct arena *a = d->arena;
    struct str rest = buf_str(&out);
    while (r == 0 && rest.len > 0 && rest.ptr[0] == ':') {
        struct str head = str_split(&rest, '\0');
        struct str letter = head.len < 2 ? STR_EMPTY : head;
        while (memchr(letter.ptr, ' ', letter.len) != NULL) {
            (void)str_split(&letter, ' ');
        }
        bool renamed = letter.len > 0 && letter.ptr[0] == 'R';
        struct str path = str_split(&rest, '\0');
        struct json *o = json_object(a);
        json_setc(a, o, "status", json_string(a, str_slice(letter, 0, 1)));
        if (renamed) {
            json_setc(a, o, "from", json_string(a, path));
            path = str_split(&rest, '\0');
        }
        json_setc(a, o, "path", json_string(a, path));
        json_push(a, d->result->files, o);
    }
    return r;
}

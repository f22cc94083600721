/* SPDX-License-Identifier: MIT
 *
 * Secrets in artifacts/, whether the agent wrote the files there or they were copied from the
 * workspace. Text is redacted. What cannot be redacted without breaking it (binary and compressed
 * files, links) is withheld: removed, and named in a warning. Names are redacted, too.
 *
 * The agent is dead by now, but what it left may be anything: nothing is followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/redact_patch.h"
#include "run/run_priv.h"

enum {
    DEPTH_MAX = 128,
    NAMED_MAX = 32, /* warnings of one kind; more are counted */
};

struct cleaning {
    struct run *run;
    struct arena *arena;
    size_t redacted, withheld;
};

static void warn_redacted(struct cleaning *c, const char *path)
{
    if (++c->redacted <= NAMED_MAX) {
        run_warn(c->run, "secrets were removed from artifact '%s'", path);
    }
}

static void withhold(struct cleaning *c, int dir, const char *name, const char *path,
                     const char *why)
{
    struct err e = { 0 };
    if (++c->withheld <= NAMED_MAX) {
        run_warn(c->run, "artifact '%s' is withheld: %s", path, why);
    }
    if (file_remove_tree(dir, name, &e) < 0) {
        run_warn(c->run, "artifact '%s' could not be removed: %s", path, e.msg);
    }
}

/* --- contents --- */

static enum redact_probe_result probe_file(const struct run *run, int fd, bool *ret_text)
{
    char chunk[65536];
    struct redact_probe p;
    ssize_t n;
    redact_probe_init(&p, run->redactor);
    do {
        n = read(fd, chunk, sizeof chunk);
        if (n > 0) {
            redact_probe_feed(&p, str_n(chunk, (size_t)n));
        }
    } while (n > 0 || (n < 0 && errno == EINTR));
    *ret_text = !p.binary && p.inflate == NULL;
    enum redact_probe_result found = redact_probe_done(&p);
    return n < 0 ? REDACT_PROBE_UNKNOWN : found;
}

struct rewriting {
    int fd;
    int result;
};

static void write_piece(void *ctx, struct str piece)
{
    struct rewriting *w = ctx;
    w->result = w->result < 0 ? w->result : file_write_all(w->fd, piece, NULL);
}

static int copy_redacted(const struct run *run, int from, int to)
{
    char chunk[65536];
    struct rewriting w = { .fd = to };
    struct redact_stream s;
    ssize_t n;
    redact_stream_init(&s, run->redactor, write_piece, &w);
    (void)lseek(from, 0, SEEK_SET);
    do {
        n = read(from, chunk, sizeof chunk);
        if (n > 0) {
            redact_stream_feed(&s, str_n(chunk, (size_t)n));
        }
    } while ((n > 0 || (n < 0 && errno == EINTR)) && w.result == 0);
    redact_stream_flush(&s);
    redact_stream_done(&s);
    return n < 0 ? -ERR_SYS : w.result;
}

/* The file with its secrets taken out in place of the file. */
static bool rewrite(const struct cleaning *c, int dir, const char *name, int fd, mode_t mode)
{
    char other[64];
    (void)snprintf(other, sizeof other, ".cinch-redacted-%d", (int)getpid());
    CLEANUP(fd)
    int to = openat(dir, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool done = to >= 0 && copy_redacted(c->run, fd, to) == 0 && fchmod(to, mode & 0777) == 0 &&
                renameat(dir, other, dir, name) == 0;
    if (to >= 0 && !done) {
        (void)unlinkat(dir, other, 0);
    }
    return done;
}

static int open_file(int dir, const char *name, const struct stat *st)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = openat(dir, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(dir, name, (st->st_mode & 0777) | S_IRUSR, 0) == 0) {
        fd = openat(dir, name, flags);
        (void)!fchmodat(dir, name, st->st_mode & 0777, 0);
    }
    return fd;
}

static void clean_file(struct cleaning *c, int dir, const char *name, const char *path,
                       const struct stat *st)
{
    bool text = false;
    CLEANUP(fd) int fd = open_file(dir, name, st);
    enum redact_probe_result found = fd < 0 ? REDACT_PROBE_UNKNOWN : probe_file(c->run, fd, &text);
    if (found == REDACT_PROBE_CLEAN) {
        return;
    }
    if (found == REDACT_PROBE_UNKNOWN) {
        withhold(c, dir, name, path, "it cannot be searched for secrets");
    } else if (text && rewrite(c, dir, name, fd, st->st_mode)) {
        warn_redacted(c, path);
    } else {
        withhold(c, dir, name, path, "it holds a secret");
    }
}

static void clean_link(struct cleaning *c, int dir, const char *name, const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target);
    if (n < 0 || !redact_is_clean(c->run->redactor, str_n(target, (size_t)n))) {
        withhold(c, dir, name, path, "its target holds a secret");
    }
}

/* --- names --- */

/* The name that is there afterwards; NULL: it is withheld. */
static const char *clean_name(struct cleaning *c, int dir, const char *name, const char *path)
{
    const struct redactor *r = c->run->redactor;
    struct str clean = redact_str(r, c->arena, str_of(name));
    if (clean.ptr == name) {
        return name;
    }
    for (int i = 1; i < 100; i++) {
        const char *other = i == 1 ? arena_dup(c->arena, clean)
                                   : arena_printf(c->arena, "%.*s.%d", STR_ARG(clean), i);
        if (renameat2(dir, name, dir, other, RENAME_NOREPLACE) == 0) {
            warn_redacted(c, path);
            return other;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    withhold(c, dir, name, path, "its name holds a secret");
    return NULL;
}

static void clean_dir(struct cleaning *c, int dir, const char *path, int depth);

/* A directory, whatever the agent did to its mode; it gets that back from the caller. */
static int open_dir(int at, const char *name, struct stat *ret)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (fstatat(at, name, ret, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(ret->st_mode)) {
        return -1;
    }
    if ((ret->st_mode & S_IRWXU) != S_IRWXU) {
        (void)!fchmodat(at, name, (ret->st_mode & 0777) | S_IRWXU, 0);
    }
    return openat(at, name, flags);
}

static void clean_subdir(struct cleaning *c, int at, const char *name, const char *path, int depth)
{
    struct stat st;
    CLEANUP(fd) int dir = open_dir(at, name, &st);
    if (dir < 0 || depth == DEPTH_MAX) {
        withhold(c, at, name, path, "it cannot be searched for secrets");
        return;
    }
    clean_dir(c, dir, arena_printf(c->arena, "%s/", path), depth + 1);
    (void)fchmod(dir, st.st_mode & 0777);
}

static void clean_entry(struct cleaning *c, int dir, const char *name, const char *parent,
                        int depth)
{
    struct stat st;
    const char *path = arena_printf(c->arena, "%s%s", parent, name);
    name = clean_name(c, dir, name, path);
    if (name == NULL || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return;
    }
    path = arena_printf(c->arena, "%s%s", parent, name);
    if (S_ISREG(st.st_mode)) {
        clean_file(c, dir, name, path, &st);
    } else if (S_ISLNK(st.st_mode)) {
        clean_link(c, dir, name, path);
    } else if (S_ISDIR(st.st_mode)) {
        clean_subdir(c, dir, name, path, depth);
    }
}

/* The names are read first: renaming while reading could show an entry twice. */
static void clean_dir(struct cleaning *c, int dir, const char *path, int depth)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct json *names = json_array(c->arena);
    if (d == NULL) {
        cleanup_fd(&fd);
        return;
    }
    for (const struct dirent *x = readdir(d); x != NULL; x = readdir(d)) {
        if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0) {
            json_push(c->arena, names, json_cstr(c->arena, x->d_name));
        }
    }
    (void)closedir(d);
    for (size_t i = 0; i < json_len(names); i++) {
        clean_entry(c, dir, json_cstring(json_item(names, i), ""), path, depth);
    }
}

void output_clean_artifacts(struct run *run)
{
    if (redactor_longest(run->redactor) == 0) {
        return;
    }
    struct stat st;
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(fd) int artifacts = open_dir(run->record.dir.dir_fd, "artifacts", &st);
    struct cleaning c = { .run = run, .arena = a };
    if (artifacts >= 0) {
        clean_dir(&c, artifacts, "", 0);
    } else if (file_exists(run->record.dir.dir_fd, "artifacts")) {
        withhold(&c, run->record.dir.dir_fd, "artifacts", "artifacts",
                 "it cannot be searched for secrets");
    }
    if (c.redacted > NAMED_MAX || c.withheld > NAMED_MAX) {
        run_warn(run, "secrets were found in more artifacts: %zu redacted, %zu withheld in total",
                 c.redacted, c.withheld);
    }
}

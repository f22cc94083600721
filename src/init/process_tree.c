/* SPDX-License-Identifier: MIT
 *
 * Finding the processes of a tree. Breadth first from the caller: the list of processes is at the
 * same time the queue of those whose children are still to be read.
 */
#include "init/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "init/process_tree_priv.h"

void tree_done(struct tree *t)
{
    free(t->procs);
    *t = (struct tree) { 0 };
}

static int add(struct tree *t, const struct tree_proc *p, struct err *e)
{
    if (t->n == t->cap) {
        size_t cap = t->cap == 0 ? 64 : t->cap * 2;
        struct tree_proc *procs = realloc(t->procs, cap * sizeof *procs);
        if (procs == NULL) {
            return ERR_SYS(e, "memory for a list of %zu processes", cap);
        }
        t->procs = procs;
        t->cap = cap;
    }
    t->procs[t->n++] = *p;
    return 0;
}

/* A file of /proc in one read, NUL-terminated. */
static bool read_small(const char *path, char *out, size_t size, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, out, size - 1);
    (void)close(fd);
    if (n < 0) {
        return false;
    }
    out[n] = '\0';
    *ret_len = (size_t)n;
    return true;
}

/* The fields behind the name that are of interest, by their numbers in proc(5). */
enum {
    STAT_PPID = 4,
    STAT_PGRP,
    STAT_SID,
    STAT_UTIME = 14,
    STAT_CSTIME = 17,
    STAT_THREADS = 20,
    STAT_START = 22
};

static bool next_number(const char **at, const char *end, uint64_t *ret)
{
    while (*at < end && (**at == ' ' || **at == '-')) {
        (*at)++;
    }
    if (*at == end || !isdigit((unsigned char)**at)) {
        return false;
    }
    uint64_t v = 0;
    while (*at < end && isdigit((unsigned char)**at)) {
        v = v * 10 + (uint64_t)(**at - '0');
        (*at)++;
    }
    *ret = v;
    return true;
}

bool tree_parse_stat(struct str text, struct tree_proc *ret)
{
    /* "42 (name) S 1 …": the name may itself hold blanks and parentheses, so its end is the last
     * ')'. */
    const char *open = memchr(text.ptr, '(', text.len);
    const char *close = memrchr(text.ptr, ')', text.len);
    const char *end = text.ptr + text.len;
    if (open == NULL || close == NULL || close < open || end - close < 4) {
        return false;
    }
    struct tree_proc p = { .state = close[2] };
    size_t len = (size_t)(close - open - 1);
    memcpy(p.comm, open + 1, len < sizeof p.comm ? len : sizeof p.comm - 1);
    const char *at = text.ptr;
    uint64_t v;
    if (!next_number(&at, open, &v)) {
        return false;
    }
    p.pid = (pid_t)v;
    at = close + 3;
    uint64_t threads = 0;
    for (int field = STAT_PPID; field <= STAT_START; field++) {
        if (!next_number(&at, end, &v)) {
            return false;
        }
        if (field == STAT_PPID) {
            p.ppid = (pid_t)v;
        } else if (field == STAT_PGRP) {
            p.pgid = (pid_t)v;
        } else if (field == STAT_SID) {
            p.sid = (pid_t)v;
        } else if (field >= STAT_UTIME && field <= STAT_CSTIME) {
            p.cpu_ticks += v;
        } else if (field == STAT_THREADS) {
            threads = v;
        } else if (field == STAT_START) {
            p.start = v;
        }
    }
    /* The first thread may have ended while others go on: that is no zombie. */
    p.living = (p.state != 'Z' && p.state != 'X') || threads > 1;
    *ret = p;
    return true;
}

bool tree_read(pid_t pid, struct tree_proc *ret)
{
    char path[48];
    char text[1024];
    size_t len;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_small(path, text, sizeof text, &len) && tree_parse_stat(str_n(text, len), ret);
}

static bool skipped(const struct tree_filter *f, pid_t child)
{
    return f != NULL && f->skip != NULL && f->skip(f->arg, child);
}

static int add_pid(struct tree_pids *l, pid_t pid, struct err *e)
{
    if (l->n == l->cap) {
        size_t cap = l->cap == 0 ? 64 : l->cap * 2;
        pid_t *pids = realloc(l->pids, cap * sizeof *pids);
        if (pids == NULL) {
            return ERR_SYS(e, "memory for a list of %zu process ids", cap);
        }
        l->pids = pids;
        l->cap = cap;
    }
    l->pids[l->n++] = pid;
    return 0;
}

/* Reads one children file, "12 13 14 ", piece by piece: it may be longer than any buffer. */
static int add_children_of_thread(struct tree_pids *l, const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0; /* gone meanwhile */
    }
    char text[4096];
    ssize_t n;
    pid_t pid = 0;
    int rc = 0;
    while (rc == 0 && (n = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; rc == 0 && i < n && l->n < TREE_MAX; i++) {
            if (isdigit((unsigned char)text[i])) {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            rc = pid > 0 ? add_pid(l, pid, e) : 0;
            pid = 0;
        }
    }
    (void)close(fd);
    return rc;
}

int tree_children(struct tree_pids *l, pid_t pid, struct err *e)
{
    char path[64];
    l->n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (d == NULL) {
        return 0; /* gone meanwhile */
    }
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(d)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            (void)snprintf(path, sizeof path, "/proc/%d/task/%.12s/children", (int)pid,
                           entry->d_name);
            rc = add_children_of_thread(l, path, e);
        }
    }
    (void)closedir(d);
    return rc;
}

static int add_children(struct tree *t, struct tree_pids *scratch, pid_t pid,
                        const struct tree_filter *f, struct err *e)
{
    int rc = tree_children(scratch, pid, e);
    for (size_t i = 0; rc == 0 && i < scratch->n && t->n < TREE_MAX; i++) {
        struct tree_proc p;
        if (!skipped(f, scratch->pids[i]) && tree_read(scratch->pids[i], &p)) {
            rc = add(t, &p, e);
        }
    }
    return rc;
}

bool tree_has_children_files(void)
{
    return access("/proc/thread-self/children", R_OK) == 0;
}

int tree_walk(struct tree *t, const struct tree_filter *f, struct err *e)
{
    if (!tree_has_children_files()) {
        return tree_walk_stat(t, f, e);
    }
    struct tree_pids scratch = { 0 };
    t->n = 0;
    int rc = add_children(t, &scratch, getpid(), f, e);
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        rc = add_children(t, &scratch, t->procs[i].pid, NULL, e);
    }
    free(scratch.pids);
    return rc;
}

static int read_all(struct tree *all, struct err *e)
{
    DIR *d = opendir("/proc");
    if (d == NULL) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "processes cannot be listed: open '/proc'");
    }
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(d)) != NULL) {
        struct tree_proc p;
        if (isdigit((unsigned char)entry->d_name[0]) &&
            tree_read((pid_t)strtol(entry->d_name, NULL, 10), &p)) {
            rc = add(all, &p, e);
        }
    }
    (void)closedir(d);
    if (rc == 0 && all->n == 0) {
        rc = ERR(e, ERR_UNSUPPORTED, "processes cannot be listed: '/proc' is not mounted");
    }
    return rc;
}

static int add_children_from(struct tree *t, const struct tree *all, pid_t pid,
                             const struct tree_filter *f, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < all->n && t->n < TREE_MAX; i++) {
        if (all->procs[i].ppid == pid && !skipped(f, all->procs[i].pid)) {
            rc = add(t, &all->procs[i], e);
        }
    }
    return rc;
}

int tree_walk_stat(struct tree *t, const struct tree_filter *f, struct err *e)
{
    struct tree all = TREE_INIT;
    t->n = 0;
    int rc = read_all(&all, e);
    if (rc == 0) {
        rc = add_children_from(t, &all, getpid(), f, e);
    }
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        rc = add_children_from(t, &all, t->procs[i].pid, NULL, e);
    }
    tree_done(&all);
    return rc;
}

int tree_children_slowly(struct tree_pids *l, const struct tree_filter *f, struct err *e)
{
    struct tree t = TREE_INIT;
    int rc = tree_walk_stat(&t, f, e);
    l->n = 0;
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        if (t.procs[i].ppid == getpid()) {
            rc = add_pid(l, t.procs[i].pid, e);
        }
    }
    tree_done(&t);
    return rc;
}

/* "size resident shared …", in pages. */
static int64_t memory_of(pid_t pid)
{
    char path[64];
    char text[256];
    size_t len;
    uint64_t pages[3];
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if (!read_small(path, text, sizeof text, &len)) {
        return 0; /* gone meanwhile */
    }
    const char *at = text;
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        if (!next_number(&at, text + len, &pages[i])) {
            return 0;
        }
    }
    return pages[1] > pages[2] ? (int64_t)(pages[1] - pages[2]) * sysconf(_SC_PAGESIZE) : 0;
}

int tree_cpu(struct tree_use *ret, struct err *e)
{
    struct tree t = TREE_INIT;
    int rc = tree_walk(&t, NULL, e);
    uint64_t ticks = 0;
    *ret = (struct tree_use) { 0 };
    for (size_t i = 0; i < t.n; i++) {
        ticks += t.procs[i].cpu_ticks;
        ret->living += t.procs[i].living;
        ret->memory += t.procs[i].living ? memory_of(t.procs[i].pid) : 0;
    }
    tree_done(&t);
    if (rc < 0) {
        return rc;
    }
    struct rusage gone = { 0 };
    (void)getrusage(RUSAGE_CHILDREN, &gone);
    int64_t reaped = ((int64_t)gone.ru_utime.tv_sec + gone.ru_stime.tv_sec) * 1000000000 +
                     ((int64_t)gone.ru_utime.tv_usec + gone.ru_stime.tv_usec) * 1000;
    ret->cpu_ns = reaped + (int64_t)ticks * (1000000000 / sysconf(_SC_CLK_TCK));
    return 0;
}

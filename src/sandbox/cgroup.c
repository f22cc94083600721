/* SPDX-License-Identifier: MIT
 *
 * Finding a place where groups may be made, making them, and leaving nothing behind.
 *
 * Version 2 does not let a group have processes and children with controllers at once, so our own
 * group is rarely the place; whoever is above it and lets us make one is asked in turn. In a hybrid
 * layout the controllers are version 1's, one tree each.
 */
#include "sandbox/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "sandbox/degraded.h"

#define V2_ROOT     "/sys/fs/cgroup"
#define HYBRID_ROOT "/sys/fs/cgroup/unified"

enum { GROUPS_MAX = 4 };

struct group {
    char path[PATH_MAX];
    int procs; /* cgroup.procs, for writing */
};

struct cgroup {
    struct group groups[GROUPS_MAX];
    size_t n;
    int v2;     /* index of the group that can kill; -1: none */
    int memory; /* of the group that bounds memory; -1: none */
};

static int write_in(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

/* Our group in the tree of a controller ("" is version 2), from /proc/self/cgroup. */
static bool own_group(struct str table, const char *controller, char out[PATH_MAX])
{
    while (table.len > 0) {
        struct str line = str_split(&table, '\n');
        struct str path = line;
        (void)str_split(&path, ':');
        struct str names = str_split(&path, ':');
        bool found = names.len == 0 && controller[0] == '\0';
        while (!found && names.len > 0) {
            found = str_eqc(str_split(&names, ','), controller) && controller[0] != '\0';
        }
        if (found && path.ptr != NULL && path.len < PATH_MAX - 64) {
            memcpy(out, path.ptr, path.len);
            out[path.len] = '\0';
            return true;
        }
    }
    return false;
}

/* Groups of a cinch that was killed before it could remove them. Only empty ones can be removed, so
 * nothing that lives is in danger. */
static void sweep(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        long pid =
            strncmp(entry->d_name, "cinch-", 6) == 0 ? strtol(entry->d_name + 6, NULL, 10) : 0;
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
            (void)unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

/* Makes a group in `dir` and takes it on. */
static int make(struct cgroup *g, const char *dir, struct err *e)
{
    if (g->n == GROUPS_MAX) {
        return ERR(e, ERR_BUG, "more than %d control groups", GROUPS_MAX);
    }
    struct group *x = &g->groups[g->n];
    struct timespec now;
    sweep(dir);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int n = snprintf(x->path, sizeof x->path, "%s/cinch-%d-%lx", dir, (int)getpid(),
                     (unsigned long)(now.tv_nsec ^ now.tv_sec));
    if (n < 0 || n >= (int)sizeof x->path || mkdir(x->path, 0755) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "make a control group in '%s'", dir);
    }
    char procs[PATH_MAX + 32];
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", x->path);
    x->procs = open(procs, O_WRONLY | O_CLOEXEC);
    g->n++;
    return x->procs < 0 ? ERR_SYS_AS(e, ERR_UNSUPPORTED, "open '%s'", procs) : 0;
}

static bool has_file(const struct group *x, const char *name)
{
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", x->path, name);
    return access(path, W_OK) == 0;
}

static void undo(struct cgroup *g, size_t from)
{
    while (g->n > from) {
        struct group *x = &g->groups[--g->n];
        cleanup_fd(&x->procs);
        (void)rmdir(x->path);
    }
}

/* --- version 2 --- */

/* Was nothing asked for? Then only what costs next to nothing is done. */
static bool is_default(const struct sandbox_policy *p)
{
    return p->memory == 0 && p->cpus <= 0 && p->pids == 0;
}

static uint64_t memory_of(const struct sandbox_policy *p)
{
    return p->memory > 0 ? p->memory : p->memory_default;
}

/* Root may write everywhere; what is delegated bears a mark of systemd's. */
static bool is_delegated(const char *dir)
{
    char mark[2] = "";
    return geteuid() != 0 ||
           (getxattr(dir, "user.delegate", mark, sizeof mark) == 1 && mark[0] == '1') ||
           (getxattr(dir, "trusted.delegate", mark, sizeof mark) == 1 && mark[0] == '1');
}

static bool has_memory(const char *dir)
{
    CLEANUP(buf) struct buf text = BUF_INIT(4096);
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
    return file_read(AT_FDCWD, path, 4096, &text, NULL) == 0 &&
           str_find(buf_str(&text), STR("memory")) < text.len;
}

/* One directory that may be the parent: is what the policy needs there? */
static bool try_v2(struct cgroup *g, const char *dir, const struct sandbox_policy *p)
{
    if (access(dir, W_OK) != 0) {
        return false;
    }
    /* Nobody asked for a default, so it changes no group that is not ours. */
    if (is_default(p)) {
        if (!is_delegated(dir) || !has_memory(dir)) {
            return false;
        }
    } else { /* refused where processes are in it; then it has to be on already */
        (void)write_in(dir, "cgroup.subtree_control", "+memory +pids +cpu");
    }
    size_t before = g->n;
    if (make(g, dir, NULL) < 0) {
        undo(g, before);
        return false;
    }
    const struct group *x = &g->groups[before];
    if (((p->memory > 0 || is_default(p)) && !has_file(x, "memory.max")) ||
        (p->cpus > 0 && !has_file(x, "cpu.max"))) {
        undo(g, before);
        return false;
    }
    g->v2 = (int)before;
    return true;
}

static void limit_v2(struct cgroup *g, const struct sandbox_policy *p, uint32_t *done)
{
    char text[64];
    const char *dir = g->groups[g->v2].path;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)memory_of(p));
    if (memory_of(p) > 0 && write_in(dir, "memory.max", text) == 0) {
        (void)write_in(dir, "memory.swap.max", "0");
        g->memory = g->v2;
        *done |= 1u << SANDBOX_MEMORY;
    }
    (void)snprintf(text, sizeof text, "%lld 100000", (long long)(p->cpus * 100000));
    if (p->cpus > 0 && write_in(dir, "cpu.max", text) == 0) {
        *done |= 1u << SANDBOX_CPUS;
    }
    /* The keeper counts, too. */
    (void)snprintf(text, sizeof text, "%llu",
                   (unsigned long long)(p->pids == 0 ? SANDBOX_PIDS_DEFAULT : p->pids) + 1);
    if (write_in(dir, "pids.max", text) == 0) {
        *done |= 1u << SANDBOX_PIDS;
    }
}

/* From our own group upwards. */
static void open_v2(struct cgroup *g, const struct sandbox_policy *p, struct str table,
                    uint32_t *done)
{
    char own[PATH_MAX];
    char dir[PATH_MAX + 32];
    if (!own_group(table, "", own)) {
        return;
    }
    for (;;) {
        (void)snprintf(dir, sizeof dir, "%s%s", V2_ROOT, strcmp(own, "/") == 0 ? "" : own);
        if (try_v2(g, dir, p)) {
            limit_v2(g, p, done);
            return;
        }
        char *slash = strrchr(own, '/');
        if (slash == NULL || own[1] == '\0') {
            return;
        }
        slash[slash == own ? 1 : 0] = '\0';
    }
}

/* --- hybrid --- */

static bool limit_v1(struct cgroup *g, struct str table, const char *controller, const char *file,
                     const char *text)
{
    char own[PATH_MAX];
    char dir[PATH_MAX + 64];
    if (!own_group(table, controller, own)) {
        return false;
    }
    (void)snprintf(dir, sizeof dir, "%s/%s%s", V2_ROOT, controller,
                   strcmp(own, "/") == 0 ? "" : own);
    size_t before = g->n;
    if (make(g, dir, NULL) == 0 && write_in(g->groups[before].path, file, text) == 0) {
        return true;
    }
    undo(g, before);
    return false;
}

static void open_hybrid(struct cgroup *g, const struct sandbox_policy *p, struct str table,
                        uint32_t *done)
{
    char own[PATH_MAX];
    char dir[PATH_MAX + 64];
    char text[64];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)p->memory);
    if (p->memory > 0 && limit_v1(g, table, "memory", "memory.limit_in_bytes", text)) {
        (void)write_in(g->groups[g->n - 1].path, "memory.memsw.limit_in_bytes", text);
        g->memory = (int)g->n - 1;
        *done |= 1u << SANDBOX_MEMORY;
    }
    (void)snprintf(text, sizeof text, "%lld", (long long)(p->cpus * 100000));
    if (p->cpus > 0 && limit_v1(g, table, "cpu", "cpu.cfs_quota_us", text)) {
        *done |= 1u << SANDBOX_CPUS;
    }
    (void)snprintf(text, sizeof text, "%llu",
                   (unsigned long long)(p->pids == 0 ? SANDBOX_PIDS_DEFAULT : p->pids) + 1);
    if (limit_v1(g, table, "pids", "pids.max", text)) {
        *done |= 1u << SANDBOX_PIDS;
    }
    if (g->n > 0 && own_group(table, "", own)) {
        (void)snprintf(dir, sizeof dir, "%s%s", HYBRID_ROOT, strcmp(own, "/") == 0 ? "" : own);
        size_t before = g->n;
        if (make(g, dir, NULL) == 0) {
            g->v2 = (int)before;
        } else {
            undo(g, before);
        }
    }
}

int cgroup_open(const struct sandbox_policy *p, struct cgroup **ret, struct sandbox_report *report,
                struct err *e)
{
    *ret = NULL;
    report->memory = 0;
    bool wanted = !is_default(p) || p->memory_default > 0;
    bool v2 = wanted && file_exists(AT_FDCWD, V2_ROOT "/cgroup.controllers");
    if (is_default(p) && !v2) {
        return 0;
    }
    CLEANUP(buf) struct buf table = BUF_INIT(65536);
    uint32_t done = 0;
    struct cgroup *g = xcalloc(1, sizeof *g);
    g->v2 = g->memory = -1;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", 65536, &table, e) == 0) {
        if (v2) {
            open_v2(g, p, buf_str(&table), &done);
        } else {
            open_hybrid(g, p, buf_str(&table), &done);
        }
    }
    if ((done & (1u << SANDBOX_MEMORY)) != 0) {
        report->memory = memory_of(p);
        report->requested |= 1u << SANDBOX_MEMORY;
    } else if (p->memory > 0) {
        loss_note(report, SANDBOX_MEMORY,
                  "no writable control group with the memory controller; the memory in use is only "
                  "checked ten times a second");
    }
    if (p->cpus > 0 && (done & (1u << SANDBOX_CPUS)) == 0) {
        loss_note(report, SANDBOX_CPUS, "no writable control group with the cpu controller");
    }
    *ret = g->n == 0 ? cgroup_free(g) : g;
    return 0;
}

size_t cgroup_fds(const struct cgroup *g, int *fds, size_t max)
{
    size_t n = g == NULL ? 0 : g->n;
    for (size_t i = 0; fds != NULL && i < n && i < max; i++) {
        fds[i] = g->groups[i].procs;
    }
    return n;
}

int64_t cgroup_parse_oom(struct str text)
{
    while (text.len > 0) {
        struct str line = str_split(&text, '\n');
        struct str name = str_split(&line, ' ');
        int64_t n;
        if (str_eqc(name, "oom_kill") && str_to_i64(line, &n)) {
            return n;
        }
    }
    return -1;
}

int64_t cgroup_oom_kills(const struct cgroup *g)
{
    if (g == NULL || g->memory < 0 || (size_t)g->memory >= g->n) {
        return -1;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(4096);
    char path[PATH_MAX + 64];
    const char *file = g->memory == g->v2 ? "memory.events" : "memory.oom_control";
    (void)snprintf(path, sizeof path, "%s/%s", g->groups[g->memory].path, file);
    return file_read(AT_FDCWD, path, 4096, &text, NULL) < 0 ? -1 : cgroup_parse_oom(buf_str(&text));
}

void cgroup_remove(struct cgroup *g)
{
    if (g == NULL) {
        return;
    }
    if (g->v2 >= 0) {
        (void)write_in(g->groups[g->v2].path, "cgroup.kill", "1");
    }
    while (g->n > 0) {
        struct group *x = &g->groups[--g->n];
        cleanup_fd(&x->procs);
        for (int i = 0; i < 1000 && rmdir(x->path) != 0 && errno == EBUSY; i++) {
            (void)nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
        }
    }
    g->v2 = -1;
}

struct cgroup *cgroup_free(struct cgroup *g)
{
    cgroup_remove(g);
    free(g);
    return NULL;
}

static void sweep_upwards(const char *root, char own[PATH_MAX])
{
    for (;;) {
        char dir[PATH_MAX + 64];
        (void)snprintf(dir, sizeof dir, "%s%s", root, strcmp(own, "/") == 0 ? "" : own);
        sweep(dir);
        char *slash = strrchr(own, '/');
        if (slash == NULL || own[1] == '\0') {
            return;
        }
        slash[slash == own ? 1 : 0] = '\0';
    }
}

void cgroup_sweep(void)
{
    static const char *const trees[][2] = {
        { "", V2_ROOT },           { "", HYBRID_ROOT },         { "memory", V2_ROOT "/memory" },
        { "cpu", V2_ROOT "/cpu" }, { "pids", V2_ROOT "/pids" },
    };
    CLEANUP(buf) struct buf table = BUF_INIT(65536);
    if (file_read(AT_FDCWD, "/proc/self/cgroup", 65536, &table, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        char own[PATH_MAX];
        if (own_group(buf_str(&table), trees[i][0], own)) {
            sweep_upwards(trees[i][1], own);
        }
    }
}

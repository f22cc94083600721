/* SPDX-License-Identifier: MIT
 *
 * The parts of the view that every sandbox has: programs and libraries of the host, an /etc with
 * nothing private in it, a /dev with nothing dangerous in it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "sandbox/compose_priv.h"

/* As on the host: a directory, or the link that newer systems have in its place. */
static void draft_like_host(struct draft *d, const char *path)
{
    struct stat st;
    char target[PATH_MAX];
    if (lstat(path, &st) != 0) {
        return;
    }
    ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof target - 1) : 0;
    if (n > 0) {
        target[n] = '\0';
        draft_symlink(d, target, path);
    } else {
        draft_bind(d, path, path, 0);
    }
}

static void draft_programs(struct draft *d)
{
    static const char *const dirs[] = { "/usr",   "/bin",    "/sbin", "/lib",      "/lib32",
                                        "/lib64", "/libx32", "/opt",  "/nix/store" };
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        draft_like_host(d, dirs[i]);
    }
}

static void draft_accounts(struct draft *d)
{
    const struct compose *c = d->c;
    if (c->policy->image == NULL) {
        draft_file(d, "/etc/passwd", compose_passwd(c, c->who.home));
        draft_file(d, "/etc/group", compose_group(c));
    }
    draft_file(d, OWN_HELPER_PASSWD, compose_passwd(c, SANDBOX_HELPER_HOME));
}

/* What the host has of these is public: tables, certificates, the loader's cache. A list of what to
 * show, because what must not be shown has no list. */
static void draft_tables(struct draft *d)
{
    static const char *const tables[] = {
        "/etc/alternatives", "/etc/ssl/certs",   "/etc/ssl/openssl.cnf", "/etc/pki/tls",
        "/etc/pki/ca-trust", "/etc/ld.so.cache", "/etc/ld.so.conf",      "/etc/ld.so.conf.d",
        "/etc/services",     "/etc/protocols",   "/etc/mime.types",      "/etc/gitconfig",
    };
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct stat st;
        if (stat(tables[i], &st) == 0) {
            draft_bind(d, tables[i], tables[i], PLAN_OPTIONAL);
        }
    }
    draft_like_host(d, "/etc/localtime");
    draft_like_host(d, "/etc/os-release");
}

static void draft_names(struct draft *d)
{
    if (d->c->policy->net == SANDBOX_NET_OPEN) {
        draft_bind(d, "/etc/hosts", "/etc/hosts", PLAN_OPTIONAL);
        draft_bind(d, "/etc/resolv.conf", "/etc/resolv.conf", PLAN_OPTIONAL);
    } else {
        draft_file(d, "/etc/hosts", COMPOSE_HOSTS);
        draft_file(d, "/etc/resolv.conf", COMPOSE_RESOLVER);
    }
    draft_file(d, "/etc/hostname", "cinch\n");
    draft_file(d, "/etc/nsswitch.conf",
               "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n"
               "protocols: files\n");
}

static void draft_dev(struct draft *d)
{
    static const char *const nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",
                                         "/dev/random", "/dev/urandom", "/dev/tty" };
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        draft_bind(d, nodes[i], nodes[i], PLAN_WRITABLE | PLAN_DEVICE);
    }
    draft_symlink(d, "/proc/self/fd", "/dev/fd");
    draft_symlink(d, "/proc/self/fd/0", "/dev/stdin");
    draft_symlink(d, "/proc/self/fd/1", "/dev/stdout");
    draft_symlink(d, "/proc/self/fd/2", "/dev/stderr");
    draft_paths(d, PLAN_OP_DEVPTS, NULL, "/dev/pts", 0);
    draft_symlink(d, "pts/ptmx", "/dev/ptmx");
}

/* All that a program may write and that is nobody's: one tmpfs, so that one bound holds for it. */
static void draft_private(struct draft *d)
{
    static const struct {
        const char *from, *to;
        uint32_t mode;
    } dirs[] = {
        { OWN_PRIVATE "/tmp", "/tmp", 01777 },
        { OWN_PRIVATE "/shm", "/dev/shm", 01777 },
        { OWN_PRIVATE "/run", "/run", 01777 },
        { OWN_VAR_TMP, "/var/tmp", 01777 }, /* no link: workspaces may be below it */
    };
    bool image = d->c->policy->image != NULL; /* has a /var of its own, which is not there yet */
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        draft_dir(d, dirs[i].from, dirs[i].mode, false);
        if (!image || strcmp(dirs[i].from, OWN_VAR_TMP) != 0) {
            draft_bind(d, dirs[i].from, dirs[i].to, PLAN_INSIDE | PLAN_WRITABLE);
        }
    }
    if (!image) {
        draft_symlink(d, "/run", "/var/run");
    }
}

void draft_person(struct draft *d)
{
    draft_accounts(d);
    if (d->c->policy->home == NULL) {
        draft_dir(d, OWN_PRIVATE "/home", 0700, true);
        draft_bind(d, OWN_PRIVATE "/home", d->c->who.home, PLAN_INSIDE | PLAN_WRITABLE);
    }
    draft_dir(d, SANDBOX_HELPER_HOME, 0555, false);
}

void draft_system(struct draft *d)
{
    bool image = d->c->policy->image != NULL;
    if (!image) {
        draft_programs(d);
        draft_names(d);
        draft_tables(d);
    }
    draft_dev(d);
    draft_private(d);
    draft_dir(d, "/sys", 0555, false);
    if (!image) {
        draft_dir(d, "/root", 0555, false);
    }
    draft_dir(d, "/proc", 0555, false);
}

/* SPDX-License-Identifier: MIT
 *
 * What the sandbox can promise on this machine, found out by using it: a sandbox with everything
 * asked for, an overlay as its workspace and a program inside. Nothing is inferred from versions.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "cli/doctor_check.h"
#include "io/loop.h"
#include "proc/probe.h"
#include "proc/which.h"
#include "sandbox/sandbox.h"

#define TRIAL_MEMORY ((uint64_t)256 << 20)
#define TRIAL_PIDS   64
#define PODMAN_TIME  (5 * NSEC_PER_SEC)

/* One sandbox, one program, and what came of it. */
struct trial {
    struct loop *loop;
    struct sandbox *box;
    struct proc *proc;
    struct sandbox_report report;
    bool worked;
    struct err why;
};

static void on_closed(void *arg)
{
    struct trial *t = arg;
    loop_stop(t->loop);
}

static void on_ready(void *arg, const struct sandbox_report *r, int listener)
{
    struct trial *t = arg;
    t->report = *r;
    cleanup_fd(&listener);
}

static void on_failed(void *arg, const struct sandbox_report *r, const struct err *why)
{
    struct trial *t = arg;
    t->report = *r;
    t->why = *why;
    if (t->proc == NULL) {
        loop_stop(t->loop);
    }
}

static void on_spawn_failed(void *arg, const struct err *why)
{
    struct trial *t = arg;
    t->why = t->why.code == ERR_OK ? *why : t->why;
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct trial *t = arg;
    t->worked = r->started && r->exit_known && !r->signaled && r->value == 0;
    t->proc = proc_free(t->proc);
    sandbox_close(t->box);
}

static int trial_start(struct trial *t, const struct sandbox_policy *p,
                       const struct sandbox_view *view, struct err *e)
{
    static const char *const argv[] = { "/bin/true", NULL };
    struct sandbox_opts o = {
        .policy = p,
        .view = view,
        .program = argv[0],
        .listen = true,
        .port = { .on_ready = on_ready, .on_failed = on_failed, .on_closed = on_closed, .arg = t },
    };
    int r = sandbox_open(t->loop, &o, &t->box, e);
    if (r < 0) {
        return r;
    }
    struct proc_place in = sandbox_place(t->box, NULL);
    struct proc_opts po = {
        .path = argv[0],
        .argv = argv,
        .place = &in,
        .port = { .on_spawn_failed = on_spawn_failed, .on_done = on_done, .arg = t },
    };
    return proc_start(t->loop, &po, &t->proc, e);
}

/* Fills in report, worked and why. */
static void trial_run(struct trial *t, const struct sandbox_policy *p,
                      const struct sandbox_view *view)
{
    struct err e = { 0 };
    *t = (struct trial) { 0 };
    int r = loop_new(&t->loop, &e);
    r = r < 0 ? r : trial_start(t, p, view, &e);
    if (r == 0) {
        loop_run(t->loop);
    } else {
        t->why = e;
    }
    t->proc = proc_free(t->proc);
    t->box = sandbox_free(t->box);
    t->loop = loop_free(t->loop);
}

/* --- guarantees --- */

static const struct sandbox_loss *loss_in(const struct sandbox_report *r, enum sandbox_guarantee g)
{
    for (size_t i = 0; i < r->n_lost; i++) {
        if (r->lost[i].what == g) {
            return &r->lost[i];
        }
    }
    return NULL;
}

static void tell(const struct trial *t, uint32_t usual, enum sandbox_guarantee g,
                 struct check_result *ret)
{
    const struct sandbox_loss *lost = loss_in(&t->report, g);
    if (lost == NULL && t->worked) {
        check_found(ret, CHECK_OK, "enforced: %s", sandbox_guarantee_meaning(g));
        return;
    }
    /* What no run asks for by itself is missed only by those who ask for it. */
    enum check_state s = (usual & (1u << g)) != 0 ? CHECK_FAIL : CHECK_WARN;
    if (lost != NULL) {
        check_found(ret, s, "not enforced: %s", lost->why);
        check_advise(ret, "%s", lost->remedy);
    } else if (g == 0) {
        check_found(ret, CHECK_FAIL, "not enforced: %s", t->why.msg);
        check_advise(ret, "use 'cinch run --allow-degraded', or --sandbox off");
    } else {
        check_found(ret, s, "not enforced: the sandbox cannot be created");
        check_advise(ret, "see '%s'", sandbox_guarantee_word(0));
    }
}

void check_guarantees(void (*found)(void *arg, const char *name, const struct check_result *r),
                      void *arg)
{
    struct sandbox_policy p;
    struct sandbox_view none = { 0 };
    struct trial usual, all;
    sandbox_policy_init(&p);
    p.may_lose = SANDBOX_LOSE_ALL;
    trial_run(&usual, &p, &none);
    p.memory = TRIAL_MEMORY;
    p.pids = TRIAL_PIDS;
    p.cpus = 1;
    trial_run(&all, &p, &none);
    for (enum sandbox_guarantee g = 0; g < SANDBOX_GUARANTEE_MAX; g++) {
        char name[64];
        struct check_result r = { 0 };
        tell(&all, usual.report.requested, g, &r);
        (void)snprintf(name, sizeof name, "sandbox: %s", sandbox_guarantee_word(g));
        found(arg, name, &r);
    }
}

/* --- mechanisms --- */

/* The number in a file of /proc/sys, -1 when there is none. */
static long setting(const char *path)
{
    CLEANUP(buf) struct buf text = BUF_INIT(64);
    if (file_read(AT_FDCWD, path, text.max, &text, NULL) < 0) {
        return -1;
    }
    int64_t value = -1;
    return str_to_i64(str_trim(buf_str(&text)), &value) ? (long)value : -1;
}

void check_user_namespaces(struct check_result *r)
{
    if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1 && geteuid() != 0) {
        check_found(r, CHECK_FAIL, "AppArmor does not let ordinary users create them");
        check_advise(r, "run 'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0', or load a "
                        "profile for cinch-init with `userns,`");
    } else if (setting("/proc/sys/kernel/unprivileged_userns_clone") == 0 && geteuid() != 0) {
        check_found(r, CHECK_FAIL, "disabled for ordinary users");
        check_advise(r, "run 'sysctl -w kernel.unprivileged_userns_clone=1'");
    } else if (setting("/proc/sys/user/max_user_namespaces") == 0) {
        check_found(r, CHECK_FAIL, "disabled: the limit is 0");
        check_advise(r, "run 'sysctl -w user.max_user_namespaces=10000'");
    } else {
        check_found(r, CHECK_OK, "enabled, limit %ld",
                    setting("/proc/sys/user/max_user_namespaces"));
    }
}

void check_landlock(struct check_result *r)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi > 0) {
        check_found(r, CHECK_OK, "ABI version %ld", abi);
        return;
    }
    check_found(r, CHECK_WARN, "landlock_create_ruleset: %s", strerrordesc_np(errno));
    check_advise(r, "use a kernel with CONFIG_SECURITY_LANDLOCK, and add landlock to `lsm=`");
}

void check_seccomp(struct check_result *r)
{
    unsigned action = SECCOMP_RET_ERRNO;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0) {
        check_found(r, CHECK_OK, "system calls can be filtered");
        return;
    }
    check_found(r, CHECK_FAIL, "seccomp: %s", strerrordesc_np(errno));
    check_advise(r, "use a kernel with CONFIG_SECCOMP_FILTER");
}

static int make_layer(char dir[PATH_MAX], struct err *e)
{
    static const char *const parts[] = { "lower", "layer", "layer/upper", "layer/work" };
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(dir, PATH_MAX, "%s/cinch-doctor-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "cannot create a directory in '%s'",
                          tmp != NULL ? tmp : "/tmp");
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char path[PATH_MAX];
        int r = path_join(dir, parts[i], path, sizeof path, e);
        if (r < 0) {
            return r;
        }
        if (mkdir(path, 0755) != 0) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "cannot create '%s'", path);
        }
    }
    return 0;
}

/* An overlay as the workspace of a sandbox, on the disk where temporary files are. */
void check_overlay(struct check_result *r)
{
    char dir[PATH_MAX], lower[PATH_MAX], layer[PATH_MAX];
    struct err e = { 0 };
    struct trial t = { 0 };
    if (make_layer(dir, &e) < 0 || path_join(dir, "lower", lower, sizeof lower, &e) < 0 ||
        path_join(dir, "layer", layer, sizeof layer, &e) < 0) {
        check_found(r, CHECK_WARN, "%s", e.msg);
    } else {
        struct sandbox_policy p;
        sandbox_policy_init(&p);
        p.may_lose = SANDBOX_LOSE_ALL;
        const char *lowers[] = { lower, NULL };
        struct sandbox_view view = { .path = lower, .lower = lowers, .layer = layer };
        trial_run(&t, &p, &view);
        check_found(r, t.worked ? CHECK_OK : CHECK_WARN, "%s",
                    t.worked ? "workspaces need not be copied" : t.why.msg);
    }
    if (!t.worked) {
        check_advise(r, "workspaces are copied instead, which takes time and disk space");
    }
    if (file_remove_tree(AT_FDCWD, dir, &e) < 0) {
        check_found(r, CHECK_WARN, "%s", e.msg);
    }
}

void check_podman(struct check_result *r)
{
    char path[PATH_MAX];
    struct err e;
    CLEANUP(buf) struct buf output = BUF_INIT(4096);
    if (which_find("podman", getenv("PATH"), NULL, path, &e) < 0) {
        check_found(r, CHECK_OK, "not in PATH; only adapter images need it");
        return;
    }
    const char *const argv[] = { path, "--version", NULL };
    int status = probe_program(argv, PODMAN_TIME, &output, NULL, &e);
    struct str text = buf_str(&output);
    struct str line = str_trim(str_split(&text, '\n'));
    if (status == 0) {
        check_found(r, CHECK_OK, "%.*s", STR_ARG(line));
        return;
    }
    check_found(r, CHECK_WARN, "'%s --version' failed", path);
    check_advise(r, "reinstall podman if you use adapter images");
}

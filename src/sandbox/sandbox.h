/* SPDX-License-Identifier: MIT
 *
 * struct sandbox: the namespaces of a run, and the programs inside them.
 *
 *  1. sandbox_open(loop, &(struct sandbox_opts){ .policy = &p, .view = &v, .port = { … } }, &s, e)
 *     composes the plan and starts the holder (cinch-init in its other role). In two steps, where
 *     the view is not known yet: sandbox_start() of policy and port, whose namespaces come up
 *     meanwhile; sandbox_show() of the rest.
 *  2. struct proc_place in = sandbox_place(s, NULL);  proc_start() with .place = &in: the program
 *     runs inside. It may be called at once, before on_ready: what is asked for is done in order.
 *     As often as wanted, also several at a time.
 *  3. on_ready(report, listener): the view stands; `listener` (if a port was asked for) is a
 *     socket listening on 127.0.0.1 inside. on_failed(why, report): it could not be built, and
 *     every program asked for fails with the same reason.
 *  4. sandbox_close(s), on_closed, sandbox_free(s): all that is inside dies; nothing is left of
 *     mounts, namespaces, groups. sandbox_free() alone does it, too.
 *
 * Each program has process ids of its own (a pid namespace whose first process is the keeper that
 * proc talks to), a mount namespace of its own that begins as a copy of the held one, and shares
 * network, IPC and host name with the others. All die when its keeper, the holder or this process
 * dies, however that happens.
 *
 * A transaction: a place with a layer. The program then sees a private overlay on top of the
 * workspace, whose upper directory is left behind for the caller:
 *
 *     int dir = sandbox_scratch(s);               tmpfs that no program can see
 *     … mkdirat(dir, "7"), "7/upper", "7/work", owner and mode of the workspace …
 *     struct proc_place in = sandbox_place(s, "7");
 *     … proc_start(), on_done: the overlay is gone; read dir "7/upper" …
 *     int ws = sandbox_workspace(s);              the view, for merging: use it with openat()
 *
 * Names in `layer` are relative to the scratch directory; "disk/…" is below view.scratch outside.
 * Where no overlay can be mounted the caller makes a whole copy of the workspace there, and the
 * layer is SANDBOX_LAYER_BIND "disk/…": that directory is put in the workspace's place.
 *
 * --- Whose files are they? ---
 * Started by an ordinary user: inside everything runs as that user (same number inside and
 * outside), and files that it makes are the user's. Overlays are mounted with `userxattr`
 * (user.overlay.*, directory renames give EXDEV).
 * Started by root: programs run as SANDBOX_HOST_UID, which owns nothing outside and is shown as
 * 1000 inside. Mounts of the workspace, its layers, home and granted paths are idmapped: what the
 * owner of the workspace's top directory (of the granted path) owns appears as owned by the
 * program, and what the program makes is owned on disk by that owner. So a file in the upper
 * directory of root's workspace belongs to root, a 0600 file of root's is readable inside, and
 * nothing needs a chown when it comes out. Files of third owners keep them, and their modes count.
 * The caller makes `upper` and `work` with that owner, and upper with the mode of the workspace.
 * Overlays are mounted by real root: trusted.overlay.*, redirect_dir=on (directory renames work,
 * the merge has to honour trusted.overlay.redirect). The scratch tmpfs is not idmapped: what a
 * program makes there belongs to SANDBOX_HOST_UID; sandbox_owner() says whom to give it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/proc.h"
#include "sandbox/policy.h"

struct arena;
struct json;
struct loop;
struct sandbox;

/* Far from every range that distributions, systemd or container engines hand out. */
#define SANDBOX_HOST_UID 1892745217u
#define SANDBOX_HOST_GID 1892745217u

/* In front of a layer: a directory that stands for the workspace, no overlay. */
#define SANDBOX_LAYER_BIND "="

/* HOME of programs that work beside the agent; an empty read-only directory for the agent. */
#define SANDBOX_HELPER_HOME "/.helper"

/* Lower directories of one view; far below what the kernel takes. */
#define SANDBOX_LOWER_MAX 8

/* How the workspace gets into the sandbox. All paths are outside, absolute and exist. */
struct sandbox_view {
    const char *path;         /* where it is inside; NULL: there is no workspace */
    const char *bind;         /* this directory itself, … */
    const char *const *lower; /* … or an overlay over these (topmost first, NULL-terminated) … */
    const char *layer; /* … that writes to upper/ (with work/ beside it) in this directory */
    /* Git directories, or .git files, below it, outer ones first: what decides in them which
     * programs git runs cannot be changed. NULL: ".git". */
    const char *const *git_dirs;
    const char *const *read_only; /* paths below it that cannot be changed at all; or NULL */
    bool is_volatile;             /* of the overlay: never sync */
    const char *scratch;          /* layers of transactions that shall be on disk; NULL: none */
};

/* Files and directories of a git directory that decide what git executes, or where it looks for
 * that; NULL-terminated. An agent may not change them, in a sandbox or in a container. */
extern const char *const sandbox_git_parts[];

/* What was asked for, and what came of it. */
struct sandbox_loss {
    enum sandbox_guarantee what;
    char why[256];    /* "user namespaces are switched off" */
    char remedy[256]; /* "sysctl -w kernel.unprivileged_userns_clone=1" */
};

struct sandbox_report {
    enum sandbox_mode mode;
    uint32_t requested; /* bits of enum sandbox_guarantee */
    uint32_t enforced;
    struct sandbox_loss lost[SANDBOX_GUARANTEE_MAX];
    size_t n_lost;
    uint64_t memory;      /* bytes: the bound that a control group keeps; 0: none */
    char plan_sha256[65]; /* of what cinch-init was told, view and entry */
};

struct sandbox_port {
    /* The listener is the callee's, -1 if none was asked for, or there is no network inside. */
    void (*on_ready)(void *arg, const struct sandbox_report *r, int listener);
    /* ERR_UNSUPPORTED (69) for a guarantee that this machine cannot give, with what to do. */
    void (*on_failed)(void *arg, const struct sandbox_report *r, const struct err *why);
    /* The kernel takes no overlay of this view. True: here is another view, of the same path and
     * without one; it is tried instead. NULL, or false: on_failed follows. */
    bool (*on_no_overlay)(void *arg, const struct err *why, const struct sandbox_view **ret);
    /* The holder is gone and everything with it, without having been told. */
    void (*on_lost)(void *arg, const struct err *why);
    /* After sandbox_close(): nothing is left. */
    void (*on_closed)(void *arg);
    void *arg;
};

/* Policy, view and lists must live as long as the sandbox. */
struct sandbox_opts {
    const struct sandbox_policy *policy;
    const struct sandbox_view *view;
    /* Single files and directories of the run, made visible at the path that they have outside. */
    const char *const *own_read;
    const char *const *own_write;
    const char *program; /* what will be started: its installation is made readable */
    bool layers;         /* find out whether programs can have layers: sandbox_layers() */
    bool listen;
    uint16_t listen_port; /* inside; 0: the kernel chooses */
    const char *init;     /* path of cinch-init; NULL: proc/locate.h */
    struct sandbox_port port;
};

/* ERR_CONFIG for a policy that contradicts itself, ERR_INPUT for a path that does not exist,
 * ERR_UNSUPPORTED where a guarantee is known to be lost and may not be. */
int sandbox_open(struct loop *l, const struct sandbox_opts *o, struct sandbox **ret,
                 struct err *e) MUST_USE;
/* The two steps of it. Who starts and shows nothing closes and frees all the same. */
int sandbox_start(struct loop *l, const struct sandbox_opts *o, struct sandbox **ret,
                  struct err *e) MUST_USE;
int sandbox_show(struct sandbox *s, const struct sandbox_opts *o, struct err *e) MUST_USE;
/* Ends everything inside and removes all traces, then on_closed. */
void sandbox_close(struct sandbox *s);
/* At once; what takes time (control groups) is waited for. Accepts NULL, returns NULL. */
struct sandbox *sandbox_free(struct sandbox *s);

/* For proc_opts.place; valid until sandbox_free(). layer NULL: the view as it is. */
struct proc_place sandbox_place(struct sandbox *s, const char *layer);
/* The same for programs that work beside the agent: SANDBOX_HELPER_HOME is writable and empty when
 * the program starts, no other program sees it, and it is gone when the program has ended. */
struct proc_place sandbox_helper_place(struct sandbox *s, const char *layer);

/* How often programs inside tried to reach what has no way there, while the network is none or
 * goes through the proxy; 0 where it is open, -1 when it is not known. */
int64_t sandbox_strays(const struct sandbox *s);

/* Processes inside that were killed because the bound of memory was reached; -1: not known. */
int64_t sandbox_oom_kills(const struct sandbox *s);

bool sandbox_ready(const struct sandbox *s);
/* Is any program inside, or on its way? */
bool sandbox_busy(const struct sandbox *s);
/* May a place have a layer, as far as is known? Else only a whole copy. Known when it is ready, and
 * if it was asked for. */
bool sandbox_layers(const struct sandbox *s);
const struct sandbox_report *sandbox_report(const struct sandbox *s);
/* Directories inside, to be used from outside with openat() and the like; -1 before on_ready, or
 * when there is none. They stay the sandbox's. */
int sandbox_workspace(const struct sandbox *s);
int sandbox_scratch(const struct sandbox *s);
/* Who owns what programs make on a file system that is not idmapped. */
void sandbox_owner(const struct sandbox *s, uid_t *ret_uid, gid_t *ret_gid);
/* Are overlays mounted with userxattr (user.overlay.*)? */
bool sandbox_userxattr(void);
/* What programs are called inside: USER. */
const char *sandbox_user_name(struct arena *a);

/* {requested, enforced[], lost[{guarantee, why, remedy}], plan_sha256} for the record. */
struct json *sandbox_report_json(struct arena *a, const struct sandbox_report *r);

/* SPDX-License-Identifier: MIT
 *
 * struct sandbox_policy: what a run may see, write, reach and use, as data. Whoever makes one
 * (settings, profile, flags, a test) fills in plain values; sandbox/compose.h turns it into a plan.
 *
 *   struct sandbox_policy p;
 *   sandbox_policy_init(&p);                       the default: workspace-write, gateway only
 *   p.read = (const char *const[]){ "/srv/data", NULL };
 *
 * The default view: the system (/usr, /bin, /lib…, /opt) read-only; an /etc of its own with names,
 * certificates and the loader's files and nothing else; private /tmp, /run, /dev, /proc and home;
 * the workspace at the path that it has outside. Of the host's homes, sockets and other runs
 * nothing exists inside; where a home is shown on demand, keys and credentials in it are hidden
 * unless they are named, too. `.git/hooks` and `.git/config` of the workspace cannot be written, so
 * that git outside never runs what was planted inside.
 *
 * Lists are NULL-terminated, or NULL; nothing is copied: all must live as long as the sandbox.
 * Paths are absolute.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum sandbox_mode {
    SANDBOX_WORKSPACE_WRITE,
    SANDBOX_READ_ONLY, /* the workspace cannot be written either; home and /tmp can */
    SANDBOX_OFF,
};

enum sandbox_net {
    SANDBOX_NET_NONE,  /* loopback of its own, with the gateway on it */
    SANDBOX_NET_HOSTS, /* the same: the gateway's proxy lets some hosts through */
    SANDBOX_NET_OPEN,  /* the host's network */
};

/* What is promised. X(id, word, what it means).
 * The words stand in the manifest (sandbox.enforced, sandbox.lost) and in `cinch doctor`. */
#define SANDBOX_GUARANTEES(X)                                                                  \
    X(SANDBOX_FILES, "files", "sees and writes only what the policy names")                    \
    X(SANDBOX_IDENTITY, "identity", "no host uid 0, no capabilities, no new privileges")       \
    X(SANDBOX_PROCESSES, "processes", "sees, signals and outlives no process of the host")     \
    X(SANDBOX_NETWORK, "network", "reaches nothing but the gateway")                           \
    X(SANDBOX_IPC, "ipc", "shares no message queue, memory segment or abstract socket")        \
    X(SANDBOX_SYSCALLS, "system_calls", "dangerous system calls and foreign ABIs are refused") \
    X(SANDBOX_LANDLOCK, "landlock", "a second, independent check of every file access")        \
    X(SANDBOX_MEMORY, "memory", "the memory of the whole run is bounded")                      \
    X(SANDBOX_PIDS, "pids", "the number of processes and threads is bounded")                  \
    X(SANDBOX_CPUS, "cpus", "processor time per second is bounded")

enum sandbox_guarantee {
#define X(id, word, text) id,
    SANDBOX_GUARANTEES(X)
#undef X
        SANDBOX_GUARANTEE_MAX
};

/* Where programs of the host are seen beside an image: /usr at SANDBOX_RUNTIME "/usr" and so on. */
#define SANDBOX_RUNTIME "/.runtime"

/* Something outside that is shown read-only at another path; or a symbolic link. */
struct sandbox_mount {
    const char *from; /* absolute; of a link: its target */
    const char *to;
    bool link;
};

/* The root file system of a container image in the place of the host's /usr, /etc and so on. It is
 * never changed: what programs write goes to a private layer that ends with the sandbox, and
 * programs beside the agent see the directories of programs and libraries without that layer
 * (sandbox_image_is_fixed()). */
struct sandbox_image {
    const char *root; /* directory outside */
    const struct sandbox_mount *mounts;
    size_t n_mounts;
    const char *const *programs; /* of the host: their installations are made readable; or NULL */
};

struct sandbox_policy {
    enum sandbox_mode mode;
    const char *const *read;  /* also readable, where they are outside */
    const char *const *write; /* also writable; changes are real and at once */
    const char *const *deny;  /* below something readable, and yet not there */

    enum sandbox_net net;
    uint64_t memory; /* bytes; 0: no bound */
    /* The bound where `memory` is 0: in place only where a delegated control group of version 2 is
     * at hand, and no guarantee otherwise. 0: none. */
    uint64_t memory_default;
    uint64_t pids; /* 0: SANDBOX_PIDS_DEFAULT */
    double cpus;   /* processors, 1.5 is one and a half; 0: no bound */
    uint64_t tmp;  /* bytes of /tmp and the like together; 0: SANDBOX_TMP_DEFAULT */

    /* For a harness that brings a sandbox of its own: user namespaces, mounts and ptrace of its own
     * children are allowed inside, and Landlock is left to it. */
    bool allow_nested;
    /* chmod() may set S_ISGID: programs that preserve modes need it in trees whose directories have
     * it. For ordinary users only, and only where no other user reaches what programs write until
     * the caller has called file_drop_setid() on it. */
    bool allow_setgid;
    /* Bit n: go on without guarantee n where the machine cannot give it. All bits:
     * --allow-degraded. */
    uint32_t may_lose;

    const char *home; /* directory outside that is home, at the same path; NULL: a private one */
    /* Directory outside with upper/ and work/, where changes to `home` go: it is left as it is.
     * NULL: they are real and at once. */
    const char *home_layer;
    const char *path; /* PATH of the programs; what it names below homes is made readable */
    const struct sandbox_image *image; /* NULL: the host's programs and libraries */
};

#define SANDBOX_PIDS_DEFAULT 4096u
#define SANDBOX_TMP_DEFAULT  ((uint64_t)2 << 30)
#define SANDBOX_LOSE_ALL     ((1u << SANDBOX_GUARANTEE_MAX) - 1u)

void sandbox_policy_init(struct sandbox_policy *p);

/* Is a path of an image in a directory of programs and libraries? There programs beside the agent
 * find the image as it was, unless something that was granted is below the same directory. */
bool sandbox_image_is_fixed(const char *path);

const char *sandbox_mode_word(enum sandbox_mode m); /* "workspace-write" … */
const char *sandbox_guarantee_word(enum sandbox_guarantee g);
const char *sandbox_guarantee_meaning(enum sandbox_guarantee g);

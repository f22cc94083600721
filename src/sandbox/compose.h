/* SPDX-License-Identifier: MIT
 *
 * From policy to plan: pure data in, bytes for cinch-init out (init/plan.h). Looks at the host's
 * files only to see what is there and whose it is; starts and mounts nothing.
 *
 *   struct compose c;
 *   compose_start(&c, arena, options);             decides who the program is; of the options only
 *                                                  the policy is looked at
 *   compose_leave(&c, &buf, e);                    for the holder: which namespaces it leaves, and
 *                                                  what every view has
 *   compose_init(&c, arena, options, e);           checks policy and view, gathers what is shown
 *   compose_view(&c, &buf, e);                     for the holder: the rest
 *   compose_entry(&c, layer, helper, &buf, e);     for each keeper
 *
 * `without` are guarantees to leave out because this machine cannot give them; it may be changed
 * between calls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/sandbox.h"

struct arena;

/* Who runs the programs: outside, and as they see themselves. */
struct compose_who {
    bool root; /* started by root: mounts are made by real root */
    uid_t uid;
    gid_t gid;
    uid_t inside_uid;
    gid_t inside_gid;
    const char *name;
    const char *home;
};

/* What is made visible at the path that it has outside. */
struct compose_grant {
    const char *path;
    enum { GRANT_LINK, GRANT_READ, GRANT_HOME, GRANT_WRITE, GRANT_WORKSPACE } kind;
    bool optional;
};

#define COMPOSE_GRANTS_MAX 256

/* A name at the top of an image. */
struct compose_name {
    const char *name;
    const char *link; /* what it points to; NULL: it is a file or a directory */
    bool dir;
};

#define COMPOSE_NAMES_MAX 256

struct compose {
    struct arena *arena;
    const struct sandbox_opts *opts;
    const struct sandbox_policy *policy;
    const struct sandbox_view *view; /* NULL: no workspace */
    struct compose_who who;
    struct compose_grant grants[COMPOSE_GRANTS_MAX];
    size_t n_grants;
    struct compose_name *names; /* of the image, in order; NULL: there is none */
    size_t n_names;
    uint32_t requested; /* guarantees */
    uint32_t without;
    bool layers;      /* it has to be tried whether programs can have layers */
    int landlock;     /* version that the kernel has; 0: none */
    uint32_t n_joins; /* descriptors of cgroups that come with each entry */
};

void compose_start(struct compose *c, struct arena *a, const struct sandbox_opts *o);
int compose_leave(const struct compose *c, struct buf *out, struct err *e) MUST_USE;
/* May be called again, with another view; without compose_start() it does that, too. */
int compose_init(struct compose *c, struct arena *a, const struct sandbox_opts *o,
                 struct err *e) MUST_USE;
int compose_view(const struct compose *c, struct buf *out, struct err *e) MUST_USE;
int compose_entry(const struct compose *c, const char *layer, bool helper, struct buf *out,
                  struct err *e) MUST_USE;
bool compose_without(const struct compose *c, enum sandbox_guarantee g);

/* The mode of an overlay in a plan: which one a machine refused. */
enum compose_overlay {
    COMPOSE_OVERLAY_VIEW,
    COMPOSE_OVERLAY_TRIAL,
    COMPOSE_OVERLAY_HOME,
    COMPOSE_OVERLAY_IMAGE,
};

/* The version of Landlock that is switched on; 0: none. */
int compose_landlock_version(void);
/* Can this process mount and become anybody on this machine? Root of a container often cannot, and
 * is then treated as an ordinary user. */
bool compose_is_root(void);

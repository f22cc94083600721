/* SPDX-License-Identifier: MIT
 *
 * Writing a plan without a check after each line: the first failure sticks, the rest is skipped.
 */
#pragma once

#include "init/mounts.h"
#include "init/plan.h"
#include "sandbox/compose.h"

struct draft {
    const struct compose *c;
    struct buf *b;
    struct err *e;
    int rc;
};

/* Directories of the view that only the holder sees. */
#define OWN_PRIVATE   MOUNTS_OWN "/private"
#define OWN_SCRATCH   MOUNTS_OWN "/scratch"
#define OWN_DISK      MOUNTS_OWN "/scratch/disk"
#define OWN_LAYER     MOUNTS_OWN "/layer"
#define OWN_WORKSPACE MOUNTS_OWN "/workspace"
#define OWN_TRIAL     MOUNTS_OWN "/trial"
#define OWN_HOME      MOUNTS_OWN "/home.lower"
#define OWN_HOME_UP   MOUNTS_OWN "/home.layer"
#define OWN_IMAGE     MOUNTS_OWN "/image"
#define OWN_IMAGE_LOW MOUNTS_OWN "/image.lower"
#define OWN_IMAGE_UP  OWN_PRIVATE "/image" /* with upper and work */
#define OWN_VAR_TMP   OWN_PRIVATE "/vartmp"
/* /etc/passwd of programs beside the agent */
#define OWN_HELPER_PASSWD MOUNTS_OWN "/passwd.helper"

void draft_number(struct draft *d, enum plan_op op, uint32_t number);
void draft_text(struct draft *d, enum plan_op op, const char *text);
void draft_dir(struct draft *d, const char *to, uint32_t mode, bool give);
void draft_symlink(struct draft *d, const char *from, const char *to);
void draft_file(struct draft *d, const char *to, const char *text);
void draft_bind(struct draft *d, const char *from, const char *to, uint32_t flags);
/* One that belongs to somebody outside: shown as the program's where root starts us. */
void draft_bind_shown(struct draft *d, const char *from, const char *to, uint32_t flags);
/* The same for what is only read; nothing can be written to through it, not even a socket. */
void draft_bind_read(struct draft *d, const char *from, const char *to, uint32_t flags);
void draft_paths(struct draft *d, enum plan_op op, const char *from, const char *to,
                 uint32_t flags);

/* compose_system.c: /usr and the like, /etc, /dev; needs the policy's network only. */
void draft_system(struct draft *d);
/* Who is who, and the home, if it is a private one. */
void draft_person(struct draft *d);

/* compose_image.c: the root of an image, with an /etc that fits; what is mounted beside it, after
 * the grants; and the parts of it that programs beside the agent shall find unchanged. */
int compose_read_image(struct compose *c, struct err *e) MUST_USE;
void draft_image(struct draft *d);
void draft_image_mounts(struct draft *d);
void draft_image_fixed(struct draft *d);
/* /etc/passwd and /etc/group, with the accounts of the image if there is one. */
const char *compose_passwd(const struct compose *c, const char *home);
const char *compose_group(const struct compose *c);
/* /etc/hosts and /etc/resolv.conf where the network is not the host's. */
#define COMPOSE_HOSTS    "127.0.0.1 localhost cinch\n"
#define COMPOSE_RESOLVER "# There is no network here.\n"

/* The protected parts of the workspace; again over a layer that has covered them. */
void draft_protect(struct draft *d);

/* compose_endpoints.c: hides sockets and FIFOs of the host. */
void draft_endpoints(struct draft *d);

/* compose.c */
bool compose_below(const char *path, const char *dir); /* or the same */
/* Where a path outside is in the view. */
const char *compose_seen(const struct compose *c, const char *path);
/* Of /tmp and the like. */
uint64_t compose_tmp_bytes(const struct compose *c);
int compose_check_path(const char *path, struct err *e) MUST_USE;
/* With upper and work in the directory `layer`. */
const char *compose_overlay_options(const struct compose *c, const char *lower, const char *layer,
                                    bool is_volatile);

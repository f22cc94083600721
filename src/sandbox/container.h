/* SPDX-License-Identifier: MIT
 *
 * struct container: an image of somebody else's, run by a container engine, as a place for a
 * program.
 *
 *  1. container_open(loop, &(struct container_opts){ .engine = "/usr/bin/podman", .image = "…" },
 *     &c, e): looks at the image, starts the container. Its first process is cinch-init
 *     (init/inner_listener.h), mounted into it.
 *  2. on_ready(listener): the container stands. `listener` (if a port was asked for) is a socket
 *     listening on 127.0.0.1 inside. on_failed(why): there is no such image, or the engine refuses.
 *  3. struct proc_place in = container_place(c); proc_start() with .place = &in, the path of
 *     container_program() and the arguments of container_entry(): the program of the image runs
 *     inside, one at a time. Its output, exit code, processor time and death are told as those of
 *     any program; nothing of it goes through the engine, neither output nor variables, which the
 *     engine would write to its files.
 *  4. container_close(c), on_closed, container_free(c): all that is inside dies, and the engine
 *     has removed the container. Free alone does it, too, without waiting for the engine.
 *
 * The engine is started with --network none; without privileges; with the mounts of the options and
 * nothing else of the host. Images are never fetched: what is not here is an error that says so.
 *
 * Inside, programs are root without capabilities where the engine runs for an ordinary user, which
 * is that user outside; a docker daemon is asked for the caller's own number. So files that come
 * out belong to the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proc/proc.h"
#include "sandbox/policy.h"

struct arena;
struct container;
struct json;
struct loop;

/* Of one container. */
enum { CONTAINER_MOUNTS_MAX = 1500 };

struct container_mount {
    const char *from; /* outside, absolute */
    const char *to;   /* inside */
    bool write;
};

struct container_port {
    /* The listener is the callee's, -1 if none was asked for. */
    void (*on_ready)(void *arg, int listener);
    void (*on_failed)(void *arg, const struct err *why);
    /* The container is gone, without having been told. */
    void (*on_lost)(void *arg, const struct err *why);
    void (*on_closed)(void *arg);
    void *arg;
};

/* All of it must live as long as the container. */
struct container_opts {
    const char *engine; /* program; one called docker is driven as docker, all others as podman */
    const char *const *envp; /* of the engine */
    const char *image;       /* "name:tag", an id, or "oci-archive:PATH", "oci:PATH" … */
    const char *name;        /* of the container */
    const char *dir;         /* outside, of our own; made, and removed with what is in it */
    const struct container_mount *mounts;
    size_t n_mounts;
    enum sandbox_net net;
    uint64_t memory, pids; /* as in struct sandbox_policy */
    double cpus;
    bool listen;
    uint16_t listen_port; /* inside */
    const char *init;     /* path of cinch-init; NULL: proc/locate.h */
    struct container_port port;
};

/* ERR_UNAVAILABLE, ERR_CONFIG for a mount that cannot be named to the engine. */
int container_open(struct loop *l, const struct container_opts *o, struct container **ret,
                   struct err *e) MUST_USE;
void container_close(struct container *c);
struct container *container_free(struct container *c); /* accepts NULL, returns NULL */

/* For proc_opts.place. */
struct proc_place container_place(struct container *c);
/* Is a program inside? */
bool container_busy(const struct container *c);

/* What the engine says of the image, once it is known: {id, digest, entrypoint [], command [],
 * labels {}, user}; else NULL. */
const struct json *container_image(const struct container *c);
/* What is to be started in it: the path, and the arguments of image `info` with `args` (a list of
 * strings) in place of its command, if there are any. */
const char *container_program(void);
struct json *container_entry(struct arena *a, const struct json *info, const struct json *args);
/* Is the image named by where its file is, not by its name in the engine's store? */
bool container_image_is_file(const char *image);

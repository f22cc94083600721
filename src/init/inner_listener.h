/* SPDX-License-Identifier: MIT
 *
 * cinch-init in a container: an engine (podman, docker) has made the namespaces, and started it as
 * their first process, from a file that it mounted. What the image itself brings is started later,
 * by a keeper, as in every sandbox.
 *
 *   cinch-init door            finds cinch by the socket DOOR_SOCKET, then is a holder
 *   cinch-init exec PROGRAM …  becomes the image's program: with the variables that the engine gave
 *                              (PATH, HOME, those of the image) under those that it has, and looked
 *                              up along the PATH of the container
 *
 * The socket is all that ties the container to cinch. When it ends, the first process leaves, and
 * the kernel kills the rest: a container does not outlive the cinch that started it, however that
 * came to its end.
 */
#pragma once

#include "base/macro.h"

#define DOOR_INIT   "/.cinch-init"
#define DOOR_DIR    "/.cinch"
#define DOOR_NAME   "door"
#define DOOR_SOCKET DOOR_DIR "/" DOOR_NAME

/* The connection becomes descriptor CONTROL_FD. */
int inner_listener_connect(void) MUST_USE;
/* Returns only if it fails: the exit code, and why is on standard error. */
int inner_listener_exec(char **argv);

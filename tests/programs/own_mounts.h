/* SPDX-License-Identifier: MIT
 *
 * A mount namespace of one's own, with a user namespace around it where that is needed.
 */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/file.h"

static int put(const char *path, const char *text)
{
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static int enter_namespaces(void)
{
    char text[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) < 0) {
        return -1;
    }
    if (uid != 0) {
        (void)put("/proc/self/setgroups", "deny");
        (void)snprintf(text, sizeof text, "%u %u 1", uid, uid);
        if (put("/proc/self/uid_map", text) < 0) {
            return -1;
        }
        (void)snprintf(text, sizeof text, "%u %u 1", gid, gid);
        (void)put("/proc/self/gid_map", text);
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

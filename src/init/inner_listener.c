/* SPDX-License-Identifier: MIT
 *
 * From an engine's container to cinch, and to the program of the image.
 */
#include "init/inner_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "init/control.h"

/* Of all variables that the engine gave; the kernel takes no more than 6 MiB with the arguments. */
enum { ENVIRON_MAX = 1 << 20 };

int inner_listener_connect(void)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = DOOR_SOCKET };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        return -1;
    }
    return fd == CONTROL_FD || dup3(fd, CONTROL_FD, O_CLOEXEC) >= 0 ? 0 : -1;
}

/* Of process 1, which has exactly what the engine gave it. */
static void take_environment(void)
{
    static char text[ENVIRON_MAX + 1]; /* setenv() copies */
    int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = 0;
    do {
        n = fd < 0 ? 0 : read(fd, text + len, ENVIRON_MAX - len);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    for (char *at = text; at < text + len;) {
        char *next = at + strlen(at) + 1;
        char *value = strchr(at, '=');
        if (value != NULL) {
            *value = '\0';
            (void)setenv(at, value + 1, 0);
        }
        at = next;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

int inner_listener_exec(char **argv)
{
    take_environment();
    (void)execvp(argv[0], argv);
    int why = errno;
    (void)dprintf(STDERR_FILENO, "cinch: cannot start '%s' of the image: %s\n", argv[0],
                  strerror(why));
    return why == ENOENT || why == ENOTDIR ? 127 : 126;
}

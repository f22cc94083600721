/* SPDX-License-Identifier: MIT
 *
 * Telling one process from another that got its id later: by the start time that the kernel notes,
 * the boot it belongs to, and the pid namespace in which the id means something.
 */
#include "adapters/trust_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"

/* State letter and start time: fields 3 and 22 of /proc/<pid>/stat. The second field, the name, may
 * hold anything, so counting begins behind the last ')'. */
static bool read_stat(pid_t pid, char *ret_state, int64_t *ret_start)
{
    char path[64];
    CLEANUP(buf) struct buf text = BUF_INIT(4096);
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || text.len == 0) {
        return false;
    }
    const char *name_end = strrchr(text.ptr, ')');
    if (name_end == NULL || name_end[1] != ' ' || name_end[2] == '\0') {
        return false;
    }
    struct str rest = str_of(name_end + 2);
    struct str field = STR_EMPTY;
    *ret_state = rest.ptr[0];
    for (int i = 3; i <= 22; i++) {
        field = str_split(&rest, ' ');
    }
    return str_to_i64(field, ret_start);
}

static void read_boot(char *out, size_t size)
{
    CLEANUP(buf) struct buf text = BUF_INIT(256);
    out[0] = '\0';
    if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 128, &text, NULL) == 0) {
        (void)snprintf(out, size, "%.*s", STR_ARG(str_trim(buf_str(&text))));
    }
}

static void read_space(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/ns/pid", out, size - 1);
    out[n < 0 ? 0 : n] = '\0';
}

void trust_process_self(struct trust_process *ret)
{
    char state = 0;
    *ret = (struct trust_process) { .pid = getpid() };
    if (!read_stat(ret->pid, &state, &ret->start)) {
        ret->start = 0;
    }
    read_boot(ret->boot, sizeof ret->boot);
    read_space(ret->space, sizeof ret->space);
}

bool trust_process_alive(const struct trust_process *p)
{
    char boot[sizeof p->boot];
    char space[sizeof p->space];
    read_boot(boot, sizeof boot);
    read_space(space, sizeof space);
    if (strcmp(boot, p->boot) != 0) {
        return false;
    }
    if (strcmp(space, p->space) != 0) {
        return true; /* its id means nothing here: not ours to judge */
    }
    if (kill(p->pid, 0) < 0 && errno == ESRCH) {
        return false;
    }
    char state = 0;
    int64_t start = 0;
    if (p->start == 0 || !read_stat(p->pid, &state, &start)) {
        return true; /* no /proc to ask: rather keep an entry than break a run */
    }
    return start == p->start && state != 'Z' && state != 'X';
}

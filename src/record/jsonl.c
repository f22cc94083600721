/* SPDX-License-Identifier: MIT
 *
 * Appending lines whole or not at all; see jsonl.h.
 */
#include "record/jsonl.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "record/rundir.h"
#include "record/write_errors.h"

int jsonl_init(struct jsonl *j, const struct rundir *d, const char *name, struct loss *loss,
               struct err *e)
{
    *j = (struct jsonl) { .fd = -1, .name = name, .loss = loss, .line = BUF_INIT(JSONL_LINE_MAX) };
    if (d == NULL) {
        clock_line_start(&j->clock, 0);
        return 0;
    }
    j->fd = rundir_open_append(d, name, e);
    if (j->fd < 0) {
        return j->fd;
    }
    struct stat st;
    if (fstat(j->fd, &st) < 0) {
        int r = ERR_SYS(e, "stat '%s'", name);
        jsonl_done(j);
        return r;
    }
    j->size = st.st_size;
    clock_line_start(&j->clock, 0);
    return 0;
}

char *jsonl_now(const struct jsonl *j, char out[CLOCK_ISO_LEN])
{
    return clock_iso(clock_line_wall(&j->clock), out);
}

void jsonl_not_before(struct jsonl *j, int64_t wall)
{
    clock_line_start(&j->clock, wall);
}

static void take_back(struct jsonl *j, ssize_t n)
{
    struct err e;
    if (n < 0) {
        (void)ERR_SYS_AS(&e, ERR_OUTPUT, "write '%s'", j->name);
    } else {
        (void)ERR(&e, ERR_OUTPUT, "write '%s': only %zd of %zu bytes were taken", j->name, n,
                  j->line.len);
        if (ftruncate(j->fd, j->size) < 0) {
            /* The torn line stays; the next one must not become a part of it. */
            j->size += write(j->fd, "\n", 1) == 1 ? n + 1 : n;
        }
    }
    loss_note(j->loss, j->name, &e, 0, 1);
}

enum jsonl_result jsonl_append(struct jsonl *j, const struct json *object)
{
    enum { KEEP_MAX = 1 << 20 /* one huge line must not stay in memory for the rest of the run */ };
    if (j->line.cap > KEEP_MAX) {
        buf_done(&j->line);
    }
    buf_reset(&j->line);
    if (json_write(object, JSON_COMPACT, &j->line, NULL) < 0 ||
        buf_append_c(&j->line, '\n', NULL) < 0) {
        return JSONL_TOO_LONG;
    }
    if (j->fd < 0) {
        return JSONL_WRITTEN;
    }
    ssize_t n;
    do {
        n = write(j->fd, j->line.ptr, j->line.len);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)j->line.len) {
        take_back(j, n);
        return JSONL_LOST;
    }
    j->size += n;
    return JSONL_WRITTEN;
}

void jsonl_done(struct jsonl *j)
{
    cleanup_fd(&j->fd);
    buf_done(&j->line);
}

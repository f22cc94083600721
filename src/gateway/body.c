/* SPDX-License-Identifier: MIT
 *
 * Bodies of requests in memory or in a file. A file has no name, so that nothing is left behind,
 * whatever becomes of us.
 */
#include "gateway/body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"

/* A file for less than this is not worth its cost. */
#define SPILL_MIN ((size_t)16 << 10)
/* A length that is only claimed costs nothing: beyond this, room grows as bytes really come. */
#define EXPECT_MAX ((size_t)1 << 20)

void body_init(struct body *b, struct body_room *room, size_t max)
{
    *b = (struct body) { .room = room, .max = max, .fd = -1 };
    buf_init(&b->mem, max);
}

void body_done(struct body *b)
{
    b->room->held -= b->mem.len;
    buf_done(&b->mem);
    if (b->map != NULL) {
        (void)munmap(b->map, b->len);
    }
    cleanup_fd(&b->fd);
    body_init(b, b->room, b->max);
}

static bool is_full(const struct body *b, size_t more)
{
    const struct body_room *r = b->room;
    return r->dir != NULL && b->len + more >= SPILL_MIN &&
           (r->held >= r->bound || more > r->bound - r->held);
}

void body_expect(struct body *b, size_t len)
{
    char *room;
    if (!is_full(b, len)) {
        (void)!buf_reserve(&b->mem, len < EXPECT_MAX ? len : EXPECT_MAX, &room, NULL);
    }
}

static int open_unnamed(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) { /* not every file system can */
        CLEANUP(buf) struct buf name = BUF_INIT(BUF_TEXT);
        buf_addf(&name, "%s/cinch-body-XXXXXX", dir);
        fd = mkostemp(name.ptr, O_CLOEXEC);
        (void)(fd >= 0 && unlink(name.ptr));
    }
    return fd;
}

/* False: it stays in memory. */
static bool spill(struct body *b)
{
    struct err e;
    int fd = open_unnamed(b->room->dir);
    int rc = fd < 0 ? ERR_SYS(&e, "create a file in '%s'", b->room->dir)
                    : file_write_all(fd, buf_str(&b->mem), &e);
    if (rc < 0) {
        LOG_DEBUG("gateway", "no_spill", LOG_STR("why", e.msg));
        cleanup_fd(&fd);
        b->room->dir = NULL; /* the next would fare no better */
        return false;
    }
    b->fd = fd;
    b->room->spilled++;
    b->room->held -= b->mem.len;
    buf_done(&b->mem);
    return true;
}

int body_add(struct body *b, struct str bytes, struct err *e)
{
    if (bytes.len > b->max || b->len > b->max - bytes.len) {
        return ERR(e, ERR_LIMIT, "more than %zu bytes", b->max);
    }
    if (b->fd >= 0 || (is_full(b, bytes.len) && spill(b))) {
        int rc = file_write_all(b->fd, bytes, e);
        b->len += rc < 0 ? 0 : bytes.len;
        return rc;
    }
    int rc = buf_append(&b->mem, bytes, e);
    b->room->held += rc < 0 ? 0 : bytes.len;
    b->len += rc < 0 ? 0 : bytes.len;
    return rc;
}

int body_close(struct body *b, struct err *e)
{
    if (b->fd < 0) {
        return 0;
    }
    void *map = mmap(NULL, b->len, PROT_READ, MAP_PRIVATE, b->fd, 0);
    if (map == MAP_FAILED) {
        return ERR_SYS(e, "map a request");
    }
    b->map = map;
    return 0;
}

int body_adopt(struct body *b, struct buf *from, struct err *e)
{
    body_done(b);
    if (is_full(b, from->len)) {
        int rc = body_add(b, buf_str(from), e);
        buf_done(from);
        return rc < 0 ? rc : body_close(b, e);
    }
    b->mem = *from;
    buf_init(from, from->max);
    b->len = b->mem.len;
    b->room->held += b->len;
    return 0;
}

struct str body_str(const struct body *b)
{
    return b->map != NULL ? str_n(b->map, b->len) : buf_str(&b->mem);
}

void body_rest(struct body *b)
{
    if (b->map != NULL) {
        (void)madvise(b->map, b->len, MADV_DONTNEED);
    }
}

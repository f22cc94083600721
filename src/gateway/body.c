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

/* A length that is only claimed costs nothing: beyond this, room grows as bytes really come. */
#define EXPECT_MAX ((size_t)1 << 20)

void body_init(struct body *b, struct body_room *room, size_t max)
{
    *b = (struct body) { .room = room, .max = max, .fd = -1 };
    buf_init(&b->mem, max);
}

/* What it counts for among all of them. */
static void count(struct body *b, size_t n)
{
    b->since = b->counted == 0 ? clock_now() : b->since;
    b->room->held += n;
    b->room->held -= b->counted;
    b->counted = n;
}

void body_done(struct body *b)
{
    struct body_room *room = b->room;
    bool gives_back = b->counted > 0;
    nsec since = b->since;
    count(b, 0);
    buf_done(&b->mem);
    if (b->map != NULL) {
        (void)munmap(b->map, b->len);
    }
    cleanup_fd(&b->fd);
    body_init(b, room, b->max);
    if (gives_back && room->freed != NULL) {
        room->freed(room->arg, clock_now() - since);
    }
}

static size_t expected(size_t len)
{
    return len < EXPECT_MAX ? len : EXPECT_MAX;
}

static bool is_full(const struct body_room *r, size_t more)
{
    return r->held >= r->bound || more > r->bound - r->held;
}

bool body_fits(const struct body_room *r, size_t len)
{
    return r->dir == NULL || len < BODY_SPILL_MIN || !is_full(r, expected(len));
}

void body_expect(struct body *b, size_t len)
{
    char *room;
    if (!body_fits(b->room, len)) {
        b->aside = true;
        return;
    }
    b->mem.max = expected(len); /* exactly so much: what is doubled here is missed by others */
    (void)!buf_reserve(&b->mem, b->mem.max, &room, NULL);
    b->mem.max = b->max;
    count(b, expected(len));
}

char *body_space(struct body *b, size_t *ret_len)
{
    if (b->fd >= 0 || b->counted <= b->mem.len) {
        return NULL;
    }
    *ret_len = b->counted - b->mem.len;
    return b->mem.ptr + b->mem.len;
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
    count(b, 0);
    buf_done(&b->mem);
    return true;
}

/* Has it grown beyond what memory has room for? */
static bool must_spill(const struct body *b, size_t more)
{
    size_t len = b->len + more;
    return b->room->dir != NULL && len >= BODY_SPILL_MIN &&
           (b->aside || (len > b->counted && is_full(b->room, len - b->counted)));
}

static int add_to_memory(struct body *b, struct str bytes, struct err *e)
{
    size_t n = 0;
    if (bytes.len > 0 && bytes.ptr == body_space(b, &n) && bytes.len <= n) {
        buf_commit(&b->mem, bytes.len);
        return 0;
    }
    int rc = buf_append(&b->mem, bytes, e);
    if (rc == 0 && b->mem.len > b->counted) {
        count(b, b->mem.len);
    }
    return rc;
}

int body_add(struct body *b, struct str bytes, struct err *e)
{
    if (bytes.len > b->max || b->len > b->max - bytes.len) {
        return ERR(e, ERR_LIMIT, "more than %zu bytes", b->max);
    }
    bool to_file = b->fd >= 0 || (must_spill(b, bytes.len) && spill(b));
    int rc = to_file ? file_write_all(b->fd, bytes, e) : add_to_memory(b, bytes, e);
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
    if (must_spill(b, from->len)) {
        int rc = body_add(b, buf_str(from), e);
        buf_done(from);
        return rc < 0 ? rc : body_close(b, e);
    }
    b->mem = *from;
    buf_init(from, from->max);
    b->len = b->mem.len;
    count(b, b->len);
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

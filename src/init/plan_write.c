/* SPDX-License-Identifier: MIT
 *
 * Writing a plan; the supervisor's side. Kept apart from the reader because it needs base/buf,
 * which the helper does not link.
 */
#include "init/plan.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/file.h"
#include "init/plan_priv.h"

/* A payload in up to PARTS_MAX pieces. */
enum { PARTS_MAX = 3 };

static int add_parts(struct buf *b, enum plan_op op, const struct str *parts, size_t n,
                     struct err *e)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        len += parts[i].len > PLAN_MAX ? PLAN_MAX + 1 : parts[i].len;
    }
    struct plan_head head = { .op = (uint16_t)op, .length = (uint32_t)len };
    size_t padded = plan_padded(len);
    if (len > PLAN_MAX || b->len + sizeof head + padded > PLAN_MAX) {
        return ERR(e, ERR_LIMIT,
                   "arguments and environment are longer than %zu bytes; pass the text as a file",
                   PLAN_MAX);
    }
    char *to;
    int rc = buf_reserve(b, sizeof head + padded, &to, e);
    if (rc < 0) {
        return rc;
    }
    memcpy(to, &head, sizeof head);
    char *at = to + sizeof head;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].len > 0) {
            memcpy(at, parts[i].ptr, parts[i].len);
            at += parts[i].len;
        }
    }
    memset(at, 0, padded - len);
    buf_commit(b, sizeof head + padded);

    struct plan_header h;
    memcpy(&h, b->ptr, sizeof h);
    h.count++;
    memcpy(b->ptr, &h, sizeof h);
    return 0;
}

static int add(struct buf *b, enum plan_op op, const void *payload, size_t len, struct err *e)
{
    struct str part = str_n(payload, len);
    return add_parts(b, op, &part, 1, e);
}

/* With its NUL. */
static struct str whole(const char *text)
{
    return str_n(text, strlen(text) + 1);
}

int plan_begin(struct buf *b, enum plan_kind kind, struct err *e)
{
    struct plan_header h = { .magic = PLAN_MAGIC, .version = PLAN_VERSION, .kind = kind };
    return buf_append(b, str_n(&h, sizeof h), e);
}

int plan_add_text(struct buf *b, enum plan_op op, const char *text, struct err *e)
{
    size_t len = strlen(text);
    if (len == 0 && op != PLAN_OP_ARG) {
        return ERR(e, ERR_USAGE, "the name of a program, a directory or a variable is empty");
    }
    return add(b, op, text, len + 1, e);
}

int plan_add_fd(struct buf *b, uint32_t slot, uint32_t target, struct err *e)
{
    struct plan_fd fd = { slot, target };
    return add(b, PLAN_OP_FD, &fd, sizeof fd, e);
}

int plan_add_umask(struct buf *b, uint32_t mask, struct err *e)
{
    return add(b, PLAN_OP_UMASK, &mask, sizeof mask, e);
}

int plan_add_limit(struct buf *b, uint32_t resource, uint64_t soft, uint64_t hard, struct err *e)
{
    struct plan_limit limit = { .resource = resource, .soft = soft, .hard = hard };
    return add(b, PLAN_OP_RLIMIT, &limit, sizeof limit, e);
}

int plan_add_number(struct buf *b, enum plan_op op, uint32_t number, struct err *e)
{
    return add(b, op, &number, sizeof number, e);
}

int plan_add_ids(struct buf *b, enum plan_op op, const struct plan_ids *ids, struct err *e)
{
    return add(b, op, ids, sizeof *ids, e);
}

int plan_add_size(struct buf *b, enum plan_op op, const struct plan_size *size, const char *to,
                  struct err *e)
{
    const struct str parts[PARTS_MAX] = { str_n(size, sizeof *size), whole(to) };
    return add_parts(b, op, parts, 2, e);
}

int plan_add_paths(struct buf *b, enum plan_op op, const struct plan_paths *p, const char *from,
                   const char *to, struct err *e)
{
    const struct str parts[PARTS_MAX] = { str_n(p, sizeof *p), whole(from == NULL ? "" : from),
                                          whole(to) };
    return add_parts(b, op, parts, PARTS_MAX, e);
}

int plan_add_file(struct buf *b, const char *to, uint32_t mode, struct str content, struct err *e)
{
    struct plan_paths p = { .mode = mode };
    const struct str parts[PARTS_MAX] = { str_n(&p, sizeof p), whole(to), content };
    return add_parts(b, PLAN_OP_FILE, parts, PARTS_MAX, e);
}

int plan_add_ruleset(struct buf *b, const struct plan_ruleset *r, struct err *e)
{
    return add(b, PLAN_OP_LANDLOCK, r, sizeof *r, e);
}

int plan_add_rule(struct buf *b, uint64_t access, const char *to, struct err *e)
{
    const struct str parts[PARTS_MAX] = { str_n(&access, sizeof access), whole(to) };
    return add_parts(b, PLAN_OP_LANDLOCK_RULE, parts, 2, e);
}

int plan_add_seccomp(struct buf *b, struct str program, struct err *e)
{
    return add(b, PLAN_OP_SECCOMP, program.ptr, program.len, e);
}

int plan_end(struct buf *b, struct err *e)
{
    struct plan_header h;
    if (b->len < sizeof h) {
        return ERR(e, ERR_BUG, "plan_end() without plan_begin()");
    }
    memcpy(&h, b->ptr, sizeof h);
    h.length = (uint32_t)b->len;
    memcpy(b->ptr, &h, sizeof h);
    return 0;
}

int plan_seal(struct str plan, int *ret_fd, struct err *e)
{
    CLEANUP(fd) int fd = memfd_create("cinch-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return ERR_SYS(e, "memfd_create");
    }
    int rc = file_write_all(fd, plan, e);
    if (rc < 0) {
        return rc;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        return ERR_SYS(e, "seal the plan");
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

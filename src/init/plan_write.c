/* SPDX-License-Identifier: MIT
 *
 * Writing a plan; the supervisor's side. Kept apart from the reader because it needs base/buf,
 * which the helper does not link.
 */
#include "init/plan.h"

#include <string.h>

#include "base/buf.h"
#include "init/plan_priv.h"

static int add(struct buf *b, enum plan_op op, const void *payload, size_t len, struct err *e)
{
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
    memcpy(to + sizeof head, payload, len);
    memset(to + sizeof head + len, 0, padded - len);
    buf_commit(b, sizeof head + padded);

    struct plan_header h;
    memcpy(&h, b->ptr, sizeof h);
    h.count++;
    memcpy(b->ptr, &h, sizeof h);
    return 0;
}

int plan_begin(struct buf *b, struct err *e)
{
    struct plan_header h = { .magic = PLAN_MAGIC, .version = PLAN_VERSION };
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

/* SPDX-License-Identifier: MIT
 *
 * Reading a plan. All checks are in plan_open(): lengths, counts, known operations, text without
 * inner NULs. It is linked into the static helper, so it knows nothing but base/err.
 */
#include "init/plan.h"

#include <string.h>

#include "init/plan_priv.h"

enum payload { PAYLOAD_NONE, PAYLOAD_TEXT, PAYLOAD_FD, PAYLOAD_MASK, PAYLOAD_LIMIT };

static const struct {
    const char *name;
    enum payload payload;
    bool empty_ok; /* an empty argument is one, an empty path is none */
} ops[PLAN_OP_MAX] = {
    [PLAN_OP_EXE] = { "exe", PAYLOAD_TEXT, false },
    [PLAN_OP_ARG] = { "arg", PAYLOAD_TEXT, true },
    [PLAN_OP_ENV] = { "env", PAYLOAD_TEXT, false },
    [PLAN_OP_CWD] = { "cwd", PAYLOAD_TEXT, false },
    [PLAN_OP_FD] = { "fd", PAYLOAD_FD, false },
    [PLAN_OP_UMASK] = { "umask", PAYLOAD_MASK, false },
    [PLAN_OP_RLIMIT] = { "rlimit", PAYLOAD_LIMIT, false },
};

static bool text_ok(struct str payload, bool empty_ok)
{
    if (payload.len == 0 || (payload.len == 1 && !empty_ok)) {
        return false;
    }
    const char *end = memchr(payload.ptr, '\0', payload.len);
    return end == payload.ptr + payload.len - 1;
}

static bool fixed(struct str payload, void *ret, size_t size)
{
    if (payload.len != size) {
        return false;
    }
    memcpy(ret, payload.ptr, size);
    return true;
}

/* Fills *ret from a payload; false when it does not fit the operation. */
static bool decode(enum plan_op op, struct str payload, struct plan_record *ret)
{
    *ret = (struct plan_record) { .op = op };
    switch (ops[op].payload) {
    case PAYLOAD_TEXT:
        ret->text = payload.ptr;
        return text_ok(payload, ops[op].empty_ok);
    case PAYLOAD_FD:
        return fixed(payload, &ret->fd, sizeof ret->fd) && ret->fd.slot < PLAN_FDS_MAX &&
               ret->fd.target <= 2;
    case PAYLOAD_MASK:
        return fixed(payload, &ret->mask, sizeof ret->mask) && ret->mask <= 0777;
    case PAYLOAD_LIMIT:
        return fixed(payload, &ret->limit, sizeof ret->limit) && ret->limit.soft <= ret->limit.hard;
    case PAYLOAD_NONE:
        break;
    }
    return false;
}

/* Reads the record at *at and moves on; the one place that walks bytes. */
static int take(struct str bytes, size_t *at, struct plan_record *ret, struct err *e)
{
    struct plan_head head;
    if (bytes.len - *at < sizeof head) {
        return ERR(e, ERR_PROTO, "plan: cut off at byte %zu", *at);
    }
    memcpy(&head, bytes.ptr + *at, sizeof head);
    size_t left = bytes.len - *at - sizeof head;
    if (head.length > left || plan_padded(head.length) > left) {
        return ERR(e, ERR_PROTO, "plan: record at byte %zu reaches beyond the end", *at);
    }
    if (head.op == 0 || head.op >= PLAN_OP_MAX || head.reserved != 0) {
        return ERR(e, ERR_PROTO, "plan: unknown operation %u at byte %zu", head.op, *at);
    }
    struct str payload = { bytes.ptr + *at + sizeof head, head.length };
    if (!decode((enum plan_op)head.op, payload, ret)) {
        return ERR(e, ERR_PROTO, "plan: malformed '%s' at byte %zu", ops[head.op].name, *at);
    }
    *at += sizeof head + plan_padded(head.length);
    return 0;
}

static int count(struct plan *p, const struct plan_record *r, unsigned *cwds, struct err *e)
{
    if (r->op == PLAN_OP_EXE) {
        if (p->exe != NULL) {
            return ERR(e, ERR_PROTO, "plan: two programs in one plan");
        }
        p->exe = r->text;
    } else if (r->op == PLAN_OP_CWD && ++*cwds > 1) {
        return ERR(e, ERR_PROTO, "plan: two working directories in one plan");
    } else if (r->op == PLAN_OP_FD && r->fd.slot >= p->n_fds) {
        p->n_fds = r->fd.slot + 1;
    }
    p->n_args += r->op == PLAN_OP_ARG;
    p->n_envs += r->op == PLAN_OP_ENV;
    return 0;
}

static int check_header(struct str bytes, struct plan_header *h, struct err *e)
{
    if (bytes.len < sizeof *h) {
        return ERR(e, ERR_PROTO, "plan: %zu bytes are too few", bytes.len);
    }
    memcpy(h, bytes.ptr, sizeof *h);
    if (h->magic != PLAN_MAGIC) {
        return ERR(e, ERR_PROTO, "plan: wrong magic number");
    }
    if (h->version != PLAN_VERSION) {
        return ERR(
            e, ERR_PROTO,
            "plan: version %u, this cinch-init knows version %u; install both from one build",
            h->version, PLAN_VERSION);
    }
    if (h->length != bytes.len || bytes.len > PLAN_MAX) {
        return ERR(e, ERR_PROTO, "plan: says %u bytes, has %zu", h->length, bytes.len);
    }
    return 0;
}

int plan_open(struct str bytes, struct plan *ret, struct err *e)
{
    struct plan_header h;
    int rc = check_header(bytes, &h, e);
    if (rc < 0) {
        return rc;
    }
    struct plan p = { .bytes = bytes, .at = sizeof h };
    unsigned cwds = 0;
    uint32_t records = 0;
    while (p.at < bytes.len) {
        struct plan_record r;
        rc = take(bytes, &p.at, &r, e);
        if (rc == 0) {
            rc = count(&p, &r, &cwds, e);
        }
        if (rc < 0) {
            return rc;
        }
        records++;
    }
    if (records != h.count) {
        return ERR(e, ERR_PROTO, "plan: says %u records, has %u", h.count, records);
    }
    if (p.exe == NULL || p.n_args == 0) {
        return ERR(e, ERR_PROTO, "plan: names no program");
    }
    plan_rewind(&p);
    *ret = p;
    return 0;
}

bool plan_next(struct plan *p, struct plan_record *ret)
{
    return p->at < p->bytes.len && take(p->bytes, &p->at, ret, NULL) == 0;
}

void plan_rewind(struct plan *p)
{
    p->at = sizeof(struct plan_header);
}

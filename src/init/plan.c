/* SPDX-License-Identifier: MIT
 *
 * Reading a plan. All checks are in plan_open(): lengths, counts, known operations, text without
 * inner NULs. It is linked into the static helper, so it knows nothing but base/err.
 */
#include "init/plan.h"

#include <string.h>

#include "init/plan_priv.h"

enum payload {
    PAYLOAD_NONE,
    PAYLOAD_TEXT,          /* a text that is not empty */
    PAYLOAD_TEXT_OR_EMPTY, /* an empty argument is one, an empty path is none */
    PAYLOAD_FD,
    PAYLOAD_MASK,
    PAYLOAD_LIMIT,
    PAYLOAD_NUMBER,
    PAYLOAD_IDS,
    PAYLOAD_SIZE,    /* struct plan_size, then `to` */
    PAYLOAD_PATHS,   /* struct plan_paths, then `from` (may be empty), then `to` */
    PAYLOAD_FILE,    /* struct plan_paths, then `to`, then the content */
    PAYLOAD_RULESET, /* struct plan_ruleset */
    PAYLOAD_RULE,    /* uint64_t access, then `to` */
    PAYLOAD_PROGRAM, /* whole instructions */
};

/* The kernel takes no longer ones. */
#define BPF_INSTRUCTIONS_MAX 4096
#define BPF_INSTRUCTION      8

static const struct {
    const char *name;
    enum payload payload;
    unsigned kinds;
} ops[PLAN_OP_MAX] = {
#define X(op, name, payload, kinds) [op] = { name, PAYLOAD_##payload, kinds },
    PLAN_OPS(X)
#undef X
};

static bool fixed(struct str payload, void *ret, size_t size)
{
    if (payload.len != size) {
        return false;
    }
    memcpy(ret, payload.ptr, size);
    return true;
}

/* Cuts a struct off the front. */
static bool front(struct str *payload, void *ret, size_t size)
{
    if (payload->len < size) {
        return false;
    }
    memcpy(ret, payload->ptr, size);
    *payload = (struct str) { payload->ptr + size, payload->len - size };
    return true;
}

/* Cuts a text with its NUL off the front. */
static bool text(struct str *payload, bool empty_ok, const char **ret)
{
    const char *end = payload->len == 0 ? NULL : memchr(payload->ptr, '\0', payload->len);
    if (end == NULL || (end == payload->ptr && !empty_ok)) {
        return false;
    }
    *ret = payload->ptr;
    size_t used = (size_t)(end - payload->ptr) + 1;
    *payload = (struct str) { payload->ptr + used, payload->len - used };
    return true;
}

/* Paths of the view are absolute, so that they cannot depend on where we stand. */
static bool path(struct str *payload, const char **ret)
{
    return text(payload, false, ret) && (*ret)[0] == '/';
}

static bool decode_paths(enum plan_op op, struct str payload, struct plan_record *ret)
{
    if (!front(&payload, &ret->paths, sizeof ret->paths) ||
        (ret->paths.flags & ~(uint32_t)PLAN_PATH_ALL) != 0 || ret->paths.mode > 07777) {
        return false;
    }
    if (ops[op].payload == PAYLOAD_FILE) {
        bool ok = path(&payload, &ret->to);
        ret->bytes = payload;
        return ok;
    }
    return text(&payload, true, &ret->from) && path(&payload, &ret->to) && payload.len == 0;
}

static bool decode_number(enum plan_op op, struct str payload, struct plan_record *ret)
{
    static const uint32_t most[PLAN_OP_MAX] = {
        [PLAN_OP_NAMESPACES] = UINT32_MAX,
        [PLAN_OP_LISTEN] = 65535,
        [PLAN_OP_JOIN] = PLAN_FDS_MAX - 1,
        [PLAN_OP_PROC] = 1,
        [PLAN_OP_LOOPBACK] = 1,
        [PLAN_OP_CLOSE_ROOT] = 1,
        [PLAN_OP_NO_LINKS] = 1,
    };
    return fixed(payload, &ret->number, sizeof ret->number) && ret->number <= most[op];
}

static bool decode_program(struct str payload, struct plan_record *ret)
{
    ret->bytes = payload;
    return payload.len > 0 && payload.len % BPF_INSTRUCTION == 0 &&
           payload.len / BPF_INSTRUCTION <= BPF_INSTRUCTIONS_MAX;
}

/* Fills *ret from a payload; false when it does not fit the operation. */
static bool decode(enum plan_op op, struct str payload, struct plan_record *ret)
{
    *ret = (struct plan_record) { .op = op };
    switch (ops[op].payload) {
    case PAYLOAD_TEXT:
        return text(&payload, false, &ret->text) && payload.len == 0;
    case PAYLOAD_TEXT_OR_EMPTY:
        return text(&payload, true, &ret->text) && payload.len == 0;
    case PAYLOAD_FD:
        return fixed(payload, &ret->fd, sizeof ret->fd) && ret->fd.slot < PLAN_FDS_MAX &&
               ret->fd.target <= 2;
    case PAYLOAD_MASK:
        return fixed(payload, &ret->mask, sizeof ret->mask) && ret->mask <= 0777;
    case PAYLOAD_LIMIT:
        return fixed(payload, &ret->limit, sizeof ret->limit) && ret->limit.soft <= ret->limit.hard;
    case PAYLOAD_NUMBER:
        return decode_number(op, payload, ret);
    case PAYLOAD_IDS:
        return fixed(payload, &ret->ids, sizeof ret->ids) &&
               (ret->ids.flags & ~(uint32_t)PLAN_IDS_ALL) == 0;
    case PAYLOAD_SIZE:
        return front(&payload, &ret->size, sizeof ret->size) && path(&payload, &ret->to) &&
               payload.len == 0;
    case PAYLOAD_PATHS:
    case PAYLOAD_FILE:
        return decode_paths(op, payload, ret);
    case PAYLOAD_RULESET:
        return fixed(payload, &ret->ruleset, sizeof ret->ruleset);
    case PAYLOAD_RULE:
        return front(&payload, &ret->access, sizeof ret->access) && path(&payload, &ret->to) &&
               payload.len == 0;
    case PAYLOAD_PROGRAM:
        return decode_program(payload, ret);
    case PAYLOAD_NONE:
        break;
    }
    return false;
}

/* Reads the record at *at and moves on; the one place that walks bytes. */
static int take(struct str bytes, unsigned kind, size_t *at, struct plan_record *ret, struct err *e)
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
    if ((ops[head.op].kinds & (1u << kind)) == 0) {
        return ERR(e, ERR_PROTO, "plan: '%s' at byte %zu does not belong here", ops[head.op].name,
                   *at);
    }
    struct str payload = { bytes.ptr + *at + sizeof head, head.length };
    if (!decode((enum plan_op)head.op, payload, ret)) {
        return ERR(e, ERR_PROTO, "plan: malformed '%s' at byte %zu", ops[head.op].name, *at);
    }
    *at += sizeof head + plan_padded(head.length);
    return 0;
}

struct counts {
    unsigned cwds;
    unsigned passes;
};

static int count(struct plan *p, const struct plan_record *r, struct counts *c, struct err *e)
{
    if (r->op == PLAN_OP_EXE) {
        if (p->exe != NULL) {
            return ERR(e, ERR_PROTO, "plan: two programs in one plan");
        }
        p->exe = r->text;
    } else if (r->op == PLAN_OP_CWD && ++c->cwds > 1) {
        return ERR(e, ERR_PROTO, "plan: two working directories in one plan");
    } else if ((r->op == PLAN_OP_PASS || r->op == PLAN_OP_LISTEN) && ++c->passes > PLAN_PASS_MAX) {
        return ERR(e, ERR_PROTO, "plan: more than %d descriptors to pass out", PLAN_PASS_MAX);
    } else if (r->op == PLAN_OP_FD && r->fd.slot >= p->n_fds) {
        p->n_fds = r->fd.slot + 1;
    } else if (r->op == PLAN_OP_JOIN && r->number >= p->n_fds) {
        p->n_fds = r->number + 1;
    }
    p->n_args += r->op == PLAN_OP_ARG;
    p->n_envs += r->op == PLAN_OP_ENV;
    return 0;
}

static int check_header(struct str bytes, enum plan_kind kind, struct plan_header *h, struct err *e)
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
    if (h->kind != (uint32_t)kind || h->reserved != 0) {
        return ERR(e, ERR_PROTO, "plan: of kind %u instead of %u", h->kind, (unsigned)kind);
    }
    if (h->length != bytes.len || bytes.len > PLAN_MAX) {
        return ERR(e, ERR_PROTO, "plan: says %u bytes, has %zu", h->length, bytes.len);
    }
    return 0;
}

int plan_open(struct str bytes, enum plan_kind kind, struct plan *ret, struct err *e)
{
    struct plan_header h;
    int rc = check_header(bytes, kind, &h, e);
    if (rc < 0) {
        return rc;
    }
    struct plan p = { .bytes = bytes, .kind = kind, .at = sizeof h };
    struct counts c = { 0 };
    uint32_t records = 0;
    while (p.at < bytes.len) {
        struct plan_record r;
        rc = take(bytes, kind, &p.at, &r, e);
        if (rc == 0) {
            rc = count(&p, &r, &c, e);
        }
        if (rc < 0) {
            return rc;
        }
        records++;
    }
    if (records != h.count) {
        return ERR(e, ERR_PROTO, "plan: says %u records, has %u", h.count, records);
    }
    if (kind == PLAN_PROGRAM && (p.exe == NULL || p.n_args == 0)) {
        return ERR(e, ERR_PROTO, "plan: names no program");
    }
    plan_rewind(&p);
    *ret = p;
    return 0;
}

bool plan_next(struct plan *p, struct plan_record *ret)
{
    return p->at < p->bytes.len && take(p->bytes, p->kind, &p->at, ret, NULL) == 0;
}

void plan_rewind(struct plan *p)
{
    p->at = sizeof(struct plan_header);
}

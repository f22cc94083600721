/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a plan: either refused, or every record can be walked and used.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "init/plan.h"

/* Touches everything that a record points to. */
static size_t use(const struct plan_record *r)
{
    size_t n = r->text == NULL ? 0 : strlen(r->text);
    n += r->from == NULL ? 0 : strlen(r->from);
    n += r->to == NULL ? 0 : strlen(r->to);
    for (size_t i = 0; i < r->bytes.len; i++) {
        n += r->bytes.ptr[i] != 0;
    }
    return n;
}

static bool legal(const struct plan *p, const struct plan_record *r)
{
    bool absolute = (r->to == NULL || r->to[0] == '/');
    bool fd = r->op != PLAN_OP_FD || (r->fd.slot < p->n_fds && r->fd.target <= 2);
    bool join = r->op != PLAN_OP_JOIN || r->number < p->n_fds;
    bool filter = r->op != PLAN_OP_SECCOMP || (r->bytes.len > 0 && r->bytes.len % 8 == 0);
    return absolute && fd && join && filter && r->op > PLAN_OP_NONE && r->op < PLAN_OP_MAX;
}

static void walk(const uint8_t *data, size_t size, enum plan_kind kind)
{
    struct plan p;
    if (plan_open(str_n(data, size), kind, &p, NULL) < 0) {
        return;
    }
    struct plan_record r;
    uint32_t args = 0;
    uint32_t envs = 0;
    size_t text = 0;
    while (plan_next(&p, &r)) {
        args += r.op == PLAN_OP_ARG;
        envs += r.op == PLAN_OP_ENV;
        text += use(&r);
        if (!legal(&p, &r)) {
            abort();
        }
    }
    bool program = kind == PLAN_PROGRAM;
    if (args != p.n_args || envs != p.n_envs || text > size ||
        (program && (args == 0 || p.exe == NULL)) || (!program && args + envs > 0)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = PLAN_PROGRAM; kind < PLAN_KIND_MAX; kind++) {
        walk(data, size, (enum plan_kind)kind);
    }
    return 0;
}

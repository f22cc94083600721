/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a plan: either refused, or every record can be walked and used.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "init/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan p;
    if (plan_open(str_n(data, size), &p, NULL) < 0) {
        return 0;
    }
    struct plan_record r;
    uint32_t args = 0;
    uint32_t envs = 0;
    size_t text = 0;
    while (plan_next(&p, &r)) {
        args += r.op == PLAN_OP_ARG;
        envs += r.op == PLAN_OP_ENV;
        text += r.text == NULL ? 0 : strlen(r.text);
        if (r.op == PLAN_OP_FD && (r.fd.slot >= p.n_fds || r.fd.target > 2)) {
            abort();
        }
    }
    if (args != p.n_args || envs != p.n_envs || args == 0 || p.exe == NULL || text > size) {
        abort();
    }
    return 0;
}

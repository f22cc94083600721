/* SPDX-License-Identifier: MIT
 *
 * Any text as a profile: refused with a message, or a profile whose arguments can be expanded.
 */
#include <stdint.h>
#include <stdlib.h>

#include "adapters/driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct profile *p;
    struct err e = { 0 };
    if (profile_parse(a, str_n(data, size), "profile.yaml", &p, &e) < 0) {
        if (e.code == ERR_OK || e.msg[0] == '\0') {
            abort();
        }
    } else {
        const struct placeholder vars[] = {
            { .name = "prompt", .value = STR("do it") },
            { .name = "model", .value = { NULL, 0 } },
            { .name = "args", .list = p->binary },
        };
        struct launch launch;
        struct launch_spec spec = { .profile = p, .vars = { vars, ARRAY_LEN(vars) } };
        (void)driver_oneshot.program->plan(a, &spec, &launch, &e);
    }
    arena_free(a);
    return 0;
}

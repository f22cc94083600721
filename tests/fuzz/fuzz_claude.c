/* SPDX-License-Identifier: MIT
 *
 * What Claude Code prints, fed to its driver (dialogue_host.h): what is told about a tool of its
 * own names the tool and the call.
 */
#include "dialogue_host.h"

static void observed(const struct native_call *call)
{
    check(call->name.len > 0 && call->call_id.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct host h = { .driver = &driver_claude, .observed = observed };
    if (size > 0) {
        host_play(&h, "mcp__cinch__", data, size);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * What Codex prints, fed to its driver (dialogue_host.h): what is told about a tool of its own
 * names the tool and has arguments.
 */
#include "dialogue_host.h"

static void observed(const struct native_call *call)
{
    check(call->name.len > 0 && json_is(call->arguments, JSON_OBJECT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct host h = { .driver = &driver_codex, .observed = observed };
    if (size > 0) {
        host_play(&h, "", data, size);
    }
    return 0;
}

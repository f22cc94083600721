/* SPDX-License-Identifier: MIT
 *
 * What a tool program prints. The first byte chooses how it ended and whether the tool has an
 * output schema; a failure always has words for the model, and only an answer carries state.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "proc/helper_program.h"
#include "tools/tool_program.h"

/* The bridge is not part of this. */
void tool_run_done(struct tool_run *run, const struct tool_result *result)
{
    (void)run;
    (void)result;
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    int dummy = 0;
    struct arena *a = arena_new();
    struct tool tool = { .name = STR("probe"),
                         .output = (data[0] & 1) != 0 ? (void *)&dummy : NULL };
    struct helper_result r = {
        .end = (data[0] & 2) != 0 ? HELPER_SIGNALLED : HELPER_EXITED,
        .value = (data[0] & 4) != 0,
        .out = str_n(data + 1, size - 1),
        .why = "it ended",
    };
    struct tool_result ret;
    tool_program_read(&tool, a, &r, &ret);
    bool bad = r.end != HELPER_EXITED || r.value != 0;
    if ((bad && ret.failure == TOOL_OK) ||
        (ret.failure != TOOL_OK && ret.failure != TOOL_FAILED && ret.message.len == 0) ||
        (ret.failure == TOOL_BAD_OUTPUT && (ret.value != NULL || ret.state != NULL))) {
        abort();
    }
    (void)arena_free(a);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Driver `oneshot`: one prompt in, one process, its output mapped by the profile's rules. The
 * prompt goes in by file, argument or standard input; standard input is empty otherwise, because
 * some harnesses wait for its end before they start.
 */
#include "adapters/driver.h"
#include "adapters/mapping.h"

static void *oneshot_open(const struct launch_spec *spec, struct entry_sink sink)
{
    return mapping_new(spec->profile->output, sink);
}

static void oneshot_feed(void *self, enum agent_stream stream, struct str bytes)
{
    if (stream == AGENT_STDOUT) {
        mapping_feed(self, bytes);
    }
}

static void oneshot_end(void *self, struct agent_report *ret)
{
    mapping_end(self, ret);
}

static void oneshot_close(void *self)
{
    mapping_free(self);
}

static const struct driver_program_ops program_ops = {
    .plan = driver_plan,
    .feed = oneshot_feed,
};

const struct driver driver_oneshot = {
    .name = "oneshot",
    .kind = DRIVER_PIPE,
    .open = oneshot_open,
    .end = oneshot_end,
    .close = oneshot_close,
    .program = &program_ops,
};

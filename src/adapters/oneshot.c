/* SPDX-License-Identifier: MIT
 *
 * Driver `oneshot`: one prompt in, one process, its output mapped by the profile's rules. The
 * prompt goes in by file, argument or standard input; standard input is empty otherwise, because
 * some harnesses wait for its end before they start.
 */
#include "adapters/driver.h"
#include "adapters/mapping.h"

int oneshot_plan(struct arena *a, const struct launch_spec *spec, struct launch *ret, struct err *e)
{
    int r = expand_argv(a, spec->profile, &spec->vars, &ret->argv, e);
    if (r < 0) {
        return r;
    }
    ret->stdin_text = spec->delivery == PROMPT_STDIN ? spec->prompt : (struct str) { NULL, 0 };
    ret->env = json_object(a);
    r = expand_env(a, spec->profile->env, &spec->vars, ret->env, e);
    return r < 0 ? err_wrap(e, "adapter '%s'", spec->profile->name) : 0;
}

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

const struct driver driver_oneshot = {
    .name = "oneshot",
    .plan = oneshot_plan,
    .open = oneshot_open,
    .feed = oneshot_feed,
    .end = oneshot_end,
    .close = oneshot_close,
};

/* SPDX-License-Identifier: MIT
 *
 * From the handler's protocol to a plain function call.
 */
#include "tools/tool_callback.h"

#include <stdlib.h>

static void start(void *self, struct tool_run *run)
{
    const struct tool_callback *c = self;
    struct tool_result result = { 0 };
    if (c->call(c->arg, run, &result)) {
        tool_run_done(run, &result);
    }
}

static void cancel(void *self, struct tool_run *run)
{
    const struct tool_callback *c = self;
    c->cancel(c->arg, run);
}

static void destroy(void *self)
{
    const struct tool_callback *c = self;
    if (c->free != NULL) {
        c->free(c->arg);
    }
    free(self);
}

/* Two, because the bridge does not wait for one that cannot be cancelled. */
static const struct tool_handler patient = { "callback", start, cancel, destroy };
static const struct tool_handler stubborn = { "callback", start, NULL, destroy };

void tool_callback_bind(struct tool *t, const struct tool_callback *c)
{
    struct tool_callback *own = xmalloc(sizeof *own);
    *own = *c;
    t->handler = c->cancel == NULL ? &stubborn : &patient;
    t->self = own;
}

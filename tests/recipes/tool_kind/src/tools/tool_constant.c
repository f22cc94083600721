/* SPDX-License-Identifier: MIT
 *
 * Worked example of a tool kind: a tool that returns the same text for every call.
 */
#include "tools/tool_kind.h"

static void start_constant(void *self, struct tool_run *run)
{
    const char *text = self;
    tool_run_done(run, &(struct tool_result) { .message = str_of(text) });
}

static const struct tool_handler handler = {
    .kind = "constant",
    .start = start_constant,
};

static int bind_constant(struct arena *a, const struct json *definition, struct tool *t,
                         struct err *e)
{
    struct str text = json_str(json_get(definition, "constant"), STR_EMPTY);
    if (text.len == 0) {
        return ERR(e, ERR_CONFIG, "tool '%.*s': 'constant' is empty", STR_ARG(t->name));
    }
    t->handler = &handler;
    t->self = arena_dup(a, text);
    t->reads_only = true;
    return 0;
}

static int check_constant(const struct json *definition, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct tool t = { .name = json_str(json_get(definition, "name"), STR("?")) };
    return bind_constant(a, definition, &t, e);
}

const struct tool_kind tool_kind_constant = {
    .name = "constant",
    .key = "constant",
    .source = TOOL_SINGLE,
    .command = "",
    .check = check_constant,
    .bind = bind_constant,
};

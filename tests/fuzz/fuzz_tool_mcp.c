/* SPDX-License-Identifier: MIT
 *
 * The list and the answer of an upstream MCP server, whatever they are: what is offered has a name
 * of ours that no other has, a clean description and a schema; an answer means something.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/macro.h"
#include "tools/tool_mcp_priv.h"

static void on_report(void *arg, enum toolserver_event ev, struct str tool, const char *text)
{
    (void)arg;
    (void)ev;
    if (text == NULL || !str_is_utf8(tool)) {
        abort();
    }
}

static void check(const struct served_list *l)
{
    for (size_t i = 0; i < l->len; i++) {
        const struct tool *t = &l->tools[i];
        if (!tool_name_ok(t->name) || t->input == NULL || !str_is_utf8(t->description) ||
            t->description.len > 4 * (size_t)TOOLSERVER_DESCRIPTION_MAX) {
            abort();
        }
        for (size_t k = 0; k < i; k++) {
            if (str_eq(t->name, l->tools[k].name)) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_limits limits = { .max_bytes = 1 << 20, .max_depth = 128 };
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v;
    struct tool_result r;
    struct served_list l;
    if (json_parse(a, str_n(data, size), &limits, &v, NULL) < 0) {
        return 0;
    }
    const struct toolserver_plan plan = { .name = STR("s"), .url = "http://x", .prefix = STR("p") };
    served_choose(a, &plan, v, &l, on_report, NULL);
    check(&l);
    served_compare(a, &l, v, on_report, NULL);
    for (size_t i = 0; i < l.len; i++) {
        tool_free(&l.tools[i]);
    }
    toolserver_read(a, &(struct mcp_client_answer) { .result = v, .bytes = size }, 1 << 20, &r);
    if (r.failure == TOOL_BAD_OUTPUT && r.message.len == 0) {
        abort();
    }
    return 0;
}

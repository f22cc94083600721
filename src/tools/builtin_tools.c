/* SPDX-License-Identifier: MIT
 *
 * The definitions in builtin_tools.yaml, bound to cinch-tools.
 */
#include "tools/builtin_tools.h"

#include "base/json.h"
#include "data/yaml.h"
#include "tools/tool_program.h"

int builtin_tools_load(struct arena *a, const struct json **ret, struct err *e)
{
    const struct builtin_table *t = &builtin_tables[0];
    struct json *tree = NULL;
    int r = yaml_parse(a, str_n(t->text, t->len), t->file, NULL, &tree, e);
    *ret = tree;
    return r;
}

int builtin_tool(struct arena *a, const struct json *entry, const char *program,
                 const struct helper_host *host, struct tool *ret, struct err *e)
{
    struct json *definition = json_copy(a, entry);
    struct json *command = json_array(a);
    int r = tool_define(a, definition, ret, e);
    if (r < 0) {
        return r;
    }
    json_push(a, command, json_cstr(a, program));
    json_push(a, command, json_string(a, ret->name));
    json_setc(a, definition, "command", command);
    r = tool_program_bind_host(a, definition, host, ret, e);
    if (r < 0) {
        tool_free(ret);
        return r;
    }
    ret->reads_only = json_bool(json_get(entry, "reads_only"), false);
    ret->timeout = json_int(json_get(entry, "seconds"), 60) * NSEC_PER_SEC;
    return 0;
}

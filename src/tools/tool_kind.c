/* SPDX-License-Identifier: MIT
 *
 * The table of tool kinds; see tool_kind.h.
 */
#include "tools/tool_kind.h"

#include <stdio.h>

#include "base/macro.h"

#define X(name) &tool_kind_##name,
static const struct tool_kind *const kinds[] = { TOOL_KIND_LIST(X) };
#undef X

const struct tool_kind *tool_kind_at(size_t i)
{
    return i < ARRAY_LEN(kinds) ? kinds[i] : NULL;
}

/* An empty list says as little as no list. */
static bool has_key(const struct json *definition, const struct tool_kind *k)
{
    const struct json *v = json_get(definition, k->key);
    return v != NULL && !(json_is(v, JSON_ARRAY) && json_len(v) == 0);
}

int tool_kind_of(const struct json *definition, const struct tool_kind **ret, struct err *e)
{
    char keys[128] = "";
    size_t len = 0, found = 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (has_key(definition, kinds[i])) {
            *ret = kinds[i];
            found++;
        }
        if (len < sizeof keys) {
            len += (size_t)snprintf(keys + len, sizeof keys - len, "%s'%s'", i == 0 ? "" : " or ",
                                    kinds[i]->key);
        }
    }
    return found == 1 ? 0 : ERR(e, ERR_CONFIG, "a tool needs either %s", keys);
}

const struct json *tool_kind_command(const struct json *definition)
{
    const struct tool_kind *k;
    if (tool_kind_of(definition, &k, NULL) < 0 || k->command[0] == '\0') {
        return NULL;
    }
    return json_pointer(definition, str_of(k->command));
}

/* SPDX-License-Identifier: MIT
 *
 * The table of settings that are read, checked and recorded, but that nothing acts on so far.
 */
#include "run/support.h"

#include <stdio.h>

/* Without a key the whole section counts. `harmless` is the value that asks for nothing. */
static const struct row {
    const char *section, *key;
    const char *harmless;
} refused[] = {
    { "policies", NULL, NULL },
};
static const struct row offers[] = {
    { "tools", NULL, NULL },
    { "feedback", NULL, NULL },
    { "completion", NULL, NULL },
};

/* Whether the task asks for it: there, not empty, not zero and not the harmless word. */
static bool asks(const struct settings *s, const struct row *row)
{
    const struct json *v = json_get(s->tree, row->section);
    v = row->key == NULL ? v : json_get(v, row->key);
    switch (v == NULL ? JSON_NULL : v->type) {
    case JSON_STRING:
        return row->harmless == NULL || !str_eqc(v->string, row->harmless);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_len(v) > 0;
    case JSON_INT:
    case JSON_REAL:
        return json_real(v, 0) > 0;
    case JSON_BOOL:
        return v->boolean;
    case JSON_NULL:
        break;
    }
    return false;
}

/* Model calls are counted at the gateway and nowhere else. */
static int check_budget(struct arena *a, const struct settings *s, struct err *e)
{
    static const char *const limits[] = { "tokens_input", "tokens_output", "tokens_total", "usd",
                                          "calls" };
    for (size_t i = 0; i < ARRAY_LEN(limits) && !settings_gateway(s); i++) {
        if (asks(s, &(struct row) { "limits", limits[i], NULL })) {
            return ERR(e, ERR_UNSUPPORTED,
                       "%s: 'limits.%s' needs a gateway that counts: name gateway.upstream, or use "
                       "an adapter that has one",
                       settings_origin(s, a, "limits", limits[i]).file, limits[i]);
        }
    }
    return 0;
}

int support_check(struct arena *a, const struct settings *s, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const struct row *row = &refused[i];
        if (asks(s, row)) {
            const char *dot = row->key == NULL ? "" : ".";
            return ERR(e, ERR_UNSUPPORTED, "%s: this cinch cannot keep '%s%s%s': leave it out%s%s",
                       settings_origin(s, a, row->section, row->key).file, row->section, dot,
                       row->key == NULL ? "" : row->key,
                       row->harmless == NULL ? "" : ", or set it to ",
                       row->harmless == NULL ? "" : row->harmless);
        }
    }
    return check_budget(a, s, e);
}

const char *support_warning(struct arena *a, const struct settings *s, size_t i)
{
    for (size_t k = 0; k < ARRAY_LEN(offers); k++) {
        if (asks(s, &offers[k]) && i-- == 0) {
            return arena_printf(a, "'%s' is checked and recorded, but not given to the agent",
                                offers[k].section);
        }
    }
    return NULL;
}

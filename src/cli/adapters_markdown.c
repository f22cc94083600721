/* SPDX-License-Identifier: MIT
 *
 * Profiles as Markdown. What they lack is told in one row per reason, because one reason often
 * stands behind several capabilities.
 */
#include "cli/adapters_markdown.h"

#include <string.h>

#include "adapters/capability.h"
#include "adapters/driver.h"
#include "adapters/version.h"

/* Those of the user, and programs in PATH, are no part of the manual. */
static bool is_built_in(const struct profile *p)
{
    const char *name = json_cstring(json_get(p->doc, "name"), "");
    return strcmp(p->source, "built in") == 0 && strcmp(name, p->name) == 0;
}

static void add_programs(const struct profile *p, struct buf *out)
{
    if (driver_is_kind(p, DRIVER_MODEL_LOOP)) {
        buf_addf(out, "nothing: cinch sends the model requests itself");
    } else if (json_len(p->binary) == 0) {
        buf_addf(out, "the command after `--`");
    }
    for (size_t i = 0; i < json_len(p->binary); i++) {
        buf_addf(out, "%s`%s`", i == 0 ? "" : ", ", json_cstring(json_item(p->binary, i), ""));
    }
}

static void add_list(const struct profile_list *list, struct buf *out)
{
    buf_addf(out, "| adapter | harness | runs | driver | tested with |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < list->len; i++) {
        const struct profile *p = list->items[i];
        if (!is_built_in(p)) {
            continue;
        }
        buf_addf(out, "| `%s` | %s | ", p->name, p->title);
        add_programs(p, out);
        buf_addf(out, " | `%s` | ", p->driver);
        if (p->unverified != NULL) {
            buf_addf(out, "**unverified**: %s |\n", p->unverified);
        } else {
            const char *tested = version_tested(list->arena, p);
            buf_addf(out, "%s |\n", tested == NULL ? "" : tested);
        }
    }
}

static void add_capabilities(struct buf *out)
{
    buf_addf(out, "\n### Capabilities\n\n| capability | tier | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        const struct capability_info *c = capability_info((enum capability)i);
        buf_addf(out, "| `%s` | %s | %s |\n", c->name, capability_tier_word(c->tier), c->meaning);
    }
}

/* All that are lacking for the reason of the first. */
static void add_reason(const struct profile *p, enum capability first, struct buf *out)
{
    const char *why = capability_lack(&p->capabilities, first);
    const char *comma = "";
    buf_addf(out, "| `%s` | ", p->name);
    for (size_t i = first; i < CAPABILITY_COUNT; i++) {
        const char *other = capability_lack(&p->capabilities, (enum capability)i);
        if (other != NULL && strcmp(why, other) == 0) {
            buf_addf(out, "%s`%s`", comma, capability_info((enum capability)i)->name);
            comma = ", ";
        }
    }
    buf_addf(out, " | %s |\n", why);
}

static bool is_told(const struct profile *p, enum capability c)
{
    const char *why = capability_lack(&p->capabilities, c);
    for (size_t i = 0; i < (size_t)c; i++) {
        const char *other = capability_lack(&p->capabilities, (enum capability)i);
        if (other != NULL && strcmp(why, other) == 0) {
            return true;
        }
    }
    return false;
}

static void add_lacks(const struct profile_list *list, struct buf *out)
{
    buf_addf(out, "\nEvery adapter has all capabilities except these:\n\n| adapter | missing | "
                  "reason |\n|---|---|---|\n");
    for (size_t i = 0; i < list->len; i++) {
        const struct profile *p = list->items[i];
        if (!is_built_in(p) || p->unverified != NULL) {
            continue;
        }
        for (size_t c = 0; c < CAPABILITY_COUNT; c++) {
            if (!p->capabilities.has[c] && !is_told(p, (enum capability)c)) {
                add_reason(p, (enum capability)c, out);
            }
        }
    }
    buf_addf(out, "\nThe capabilities of unverified adapters are not known.\n");
}

static void add_quirks(const struct profile_list *list, struct buf *out)
{
    buf_addf(out, "\n### Quirks\n\n| adapter | |\n|---|---|\n");
    for (size_t i = 0; i < list->len; i++) {
        const struct profile *p = list->items[i];
        for (size_t k = 0; is_built_in(p) && k < json_len(p->quirks); k++) {
            buf_addf(out, "| `%s` | %s |\n", p->name, json_cstring(json_item(p->quirks, k), ""));
        }
    }
}

void adapters_markdown(const struct profile_list *list, struct buf *out)
{
    add_list(list, out);
    add_capabilities(out);
    add_lacks(list, out);
    add_quirks(list, out);
}

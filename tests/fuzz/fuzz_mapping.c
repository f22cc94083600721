/* SPDX-License-Identifier: MIT
 *
 * Output of a harness, mapped by rules that use every feature. The first byte chooses the format
 * and the size of the chunks; the report must be the same as for the whole text at once.
 */
#include <stdint.h>
#include <stdlib.h>

#include "adapters/mapping.h"
#include "base/arena.h"
#include "data/yaml.h"

static const char *const specs[] = {
    "format: text\n",
    "format: json\nrules: [{text: /t, structured: /s, failed: /f, usage: {input: /u/i}}]\n",
    "format: ndjson\n"
    "rules:\n"
    "  - {when: {/k: 1}, text: /t, append_text: true, session_id: /id, entry: tool_use}\n"
    "  - {when: {/k: x, /l: true}, error: /e, failed: /f, model: /m}\n"
    "  - {add_usage: true, usage: {input: /u/i, output: /u/o, cost_usd: /c, turns: /n}}\n",
    "format: text\nmarks: {begin: '> ', end: '= ', error: ['! ', '? ']}\n",
};

static void count_entry(void *owner, const char *type, const struct json *detail, struct str raw)
{
    ++*(int *)owner;
}

static struct mapping *map(const char *spec, struct str text, size_t step, int *entries,
                           struct agent_report *ret)
{
    struct arena *a = arena_new();
    struct json *tree;
    if (yaml_parse(a, str_of(spec), "spec", NULL, &tree, NULL) < 0) {
        abort();
    }
    struct mapping *m = mapping_new(tree, (struct entry_sink) { count_entry, entries });
    for (size_t i = 0; i < text.len; i += step) {
        mapping_feed(m, str_slice(text, i, i + step));
    }
    mapping_end(m, ret);
    /* The rules are looked at while feeding only. */
    arena_free(a);
    return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    const char *spec = specs[data[0] % 4];
    struct str text = str_n(data + 1, size - 1);
    struct agent_report whole;
    struct agent_report pieces;
    int entries[2] = { 0, 0 };
    struct mapping *m = map(spec, text, text.len + 1, &entries[0], &whole);
    struct mapping *n = map(spec, text, (size_t)data[0] / 4 + 1, &entries[1], &pieces);
    if (!str_eq(whole.text, pieces.text) || whole.failed != pieces.failed ||
        whole.usage.input != pieces.usage.input || entries[0] != entries[1] ||
        whole.unparsable_lines != pieces.unparsable_lines) {
        abort();
    }
    mapping_free(m);
    mapping_free(n);
    return 0;
}

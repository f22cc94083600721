/* SPDX-License-Identifier: MIT
 *
 * Any prompt of sections with any override file: it is refused with a message, or it renders, and
 * what its summaries offer to open can be opened and read. The input is {prompt, tools, params,
 * visibility, overrides} as JSON.
 */
#include "prompt/section.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Opening every summarised section ends with none, in as many rounds as the tree is deep. */
static void open_all(struct section_tree *tree, struct section_request *request, struct arena *a)
{
    struct section_rendering out;
    struct err e = { 0 };
    for (int round = 0; round < 30; round++) {
        if (section_tree_render(tree, request, a, &out, &e) < 0) {
            must(e.msg[0] != '\0');
            return;
        }
        must(str_is_utf8(out.text));
        struct json *keys = json_array(a);
        for (size_t i = 0; i < out.sections_len; i++) {
            struct str text;
            if (out.sections[i].visibility == SECTION_SUMMARY) {
                json_push(a, keys, json_string(a, out.sections[i].path));
                int r = section_tree_read(tree, request, out.sections[i].path, a, &text, &e);
                must(r < 0 || str_starts(text, STR("##")));
            }
        }
        struct json *opened = NULL;
        int r = section_tree_open(tree, request, keys, a, &opened, &e);
        must((json_len(keys) == 0) == (r < 0));
        if (r < 0) {
            return;
        }
        request->visibility = opened;
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *in = NULL;
    struct err e = { 0 };
    if (json_parse(a, str_n(data, size), &(struct json_limits) { .max_values = 20000 }, &in, NULL) <
        0) {
        return 0;
    }
    const struct section_opts opts = {
        .tools = json_get(in, "tools"),
        .limits = { .max_steps = 10000,
                    .max_rounds = 1000,
                    .max_output = 1 << 14,
                    .max_memory = 4 << 20,
                    .max_calls = 8 },
    };
    struct section_tree *tree = NULL;
    if (section_tree_new(json_get(in, "prompt"), &opts, &tree, &e) < 0) {
        must(e.msg[0] != '\0');
        return 0;
    }
    const struct json *overrides = json_get(in, "overrides");
    if (overrides != NULL && section_tree_override(tree, overrides, "o.json", "latest", &e) < 0) {
        must(e.msg[0] != '\0');
    } else {
        struct section_request request = { json_get(in, "params"), json_get(in, "visibility") };
        (void)section_tree_describe(tree, a);
        open_all(tree, &request, a);
    }
    (void)section_tree_free(tree);
    return 0;
}

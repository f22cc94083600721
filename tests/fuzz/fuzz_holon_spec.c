/* SPDX-License-Identifier: MIT
 *
 * Any YAML as a Holon spec: it is refused with a place, or becomes a tree that a task file could
 * be, with a prompt.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/holon_spec.h"
#include "config/settings.h"
#include "data/yaml.h"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_limits limits = { .max_bytes = 1 << 16,
                                               .max_depth = 32,
                                               .max_values = 5000 };
    CLEANUP(arena) struct arena *a = arena_new();
    struct task_source src = { .path = "spec.yaml" };
    struct json *notes = json_array(a);
    struct json *task = NULL;
    struct err e = { 0 };
    if (yaml_parse(a, str_n(data, size), "spec.yaml", &limits, &src.tree, &e) < 0 ||
        !holon_spec_recognise(&src)) {
        return 0;
    }
    if (holon_spec_load(a, &src, notes, &task, &e) < 0) {
        must(e.code == ERR_CONFIG && strncmp(e.msg, "spec.yaml", 9) == 0);
        return 0;
    }
    must(json_len(json_get(json_get(task, "prompt"), "text")) > 0);
    if (settings_check_task(a, task, "spec.yaml", &e) < 0) {
        must(e.code == ERR_CONFIG);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Any tree as a request: refused with a message, or settings that can be explained and written
 * down.
 */
#include <stdint.h>
#include <stdlib.h>

#include "config/settings.h"
#include "config/settings_table.h"
#include "data/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct json_limits limits = { .max_bytes = 1 << 16, .max_depth = 40, .max_values = 2000 };
    struct settings_input in = { .request = NULL };
    struct err e = { 0 };
    if (yaml_parse(a, str_n(data, size), "request", &limits, &in.request, &e) == 0) {
        struct settings s;
        in.site_dir = in.user_dir = "/nonexistent";
        if (settings_load(a, &in, &s, &e) == 0) {
            CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
            struct json *leaves = layers_explain(a, &s.layers, s.tree);
            settings_explain_defaults(a, settings_table, &s.layers, leaves);
            if (json_write(leaves, JSON_COMPACT, &out, &e) < 0 ||
                json_write(settings_task(a, &s), JSON_COMPACT, &out, &e) < 0) {
                abort();
            }
        } else if (e.msg[0] == '\0') {
            abort();
        }
    }
    arena_free(a);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Any YAML as each of Scylla's files: test.yaml, config.yaml, a model, a tier, a sub-test. It is
 * refused with a place, or becomes a tree that the check of tasks accepts or refuses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/scylla_config.h"
#include "config/scylla_subtest.h"
#include "config/scylla_test.h"
#include "config/settings.h"
#include "data/yaml.h"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* A result is a map; whether it is a task is decided elsewhere, and must be decided. */
static void check_layer(struct arena *a, int r, const struct json *layer, const struct err *why)
{
    struct err e = { 0 };
    if (r < 0) {
        must(why->msg[0] != '\0' &&
             (why->code == ERR_CONFIG || why->code == ERR_INPUT || why->code == ERR_UNSUPPORTED));
        return;
    }
    must(json_is(layer, JSON_OBJECT));
    if (settings_check_task(a, layer, "layer", &e) < 0) {
        must(e.code == ERR_CONFIG);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_limits limits = { .max_bytes = 1 << 16,
                                               .max_depth = 32,
                                               .max_values = 5000 };
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *tree, *layer = NULL;
    struct err e = { 0 };
    if (yaml_parse(a, str_n(data, size), "x.yaml", &limits, &tree, &e) < 0) {
        return 0;
    }
    int r = scylla_test_layer(a, tree, "x.yaml", &layer, &e);
    check_layer(a, r, layer, &e);
    r = scylla_subtest_layer(a, tree, "x.yaml", "/nonexistent", &layer, &e);
    check_layer(a, r, layer, &e);
    struct scylla_config config = { 0 };
    r = scylla_config_read(a, tree, "x.yaml", &config, &e);
    check_layer(a, r, config.tree, &e);
    if (scylla_is_model(tree)) {
        check_layer(a, 0, scylla_model_layer(a, tree), &e);
    }
    if (scylla_is_tier(tree)) {
        check_layer(a, 0, scylla_tier_layer(a, tree), &e);
    }
    (void)scylla_test_tier_model(json_get(tree, "models"), "T1");
    return 0;
}

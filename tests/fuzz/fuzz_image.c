/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a manifest, a configuration, the table of a store, a table of libraries, and the
 * first line of a script: each is refused, or gives what can be used.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/sha256.h"
#include "image/layout.h"
#include "image/loader.h"
#include "image/runtime.h"
#include "image/store.h"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_layout(struct arena *a, struct str text)
{
    struct layout_want want = { .architecture = "amd64" };
    struct layout_image image = { 0 };
    const char *config = NULL;
    if (layout_take_manifest(a, text, &image, &config, NULL) < 0) {
        return;
    }
    must(sha256_is_hex(str_of(config)) && image.n_layers <= LAYOUT_LAYERS_MAX);
    for (size_t i = 0; i < image.n_layers; i++) {
        must(strncmp(image.layers[i].path, "blobs/sha256/", 13) == 0);
        must(sha256_is_hex(str_of(image.layers[i].path + 13)));
    }
    if (layout_take_config(a, text, &want, &image, NULL) == 0) {
        must(sha256_is_hex(str_of(image.id)));
    }
}

static void try_store(struct arena *a, struct str text)
{
    struct image_ref ref = { .text = "x", .name = "x:1" };
    struct json *table = NULL;
    const char *id = NULL;
    if (json_parse(a, text, NULL, &table, NULL) == 0 &&
        store_choose(a, table, &ref, &id, NULL) == 0 && id != NULL) {
        must(sha256_is_hex(str_of(id)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf moved = BUF_INIT(64 << 20);
    struct str text = str_n((const char *)data, size);
    try_layout(a, text);
    try_store(a, text);
    if (loader_move_table(text, "/.runtime", &moved, NULL) == 0) {
        must(moved.len >= 48);
    }
    const char *const *words = runtime_shebang(a, text);
    must(words == NULL || words[0] != NULL);
    return 0;
}

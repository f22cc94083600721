/* SPDX-License-Identifier: MIT
 *
 * Any text as assets/runner.json. What is accepted keeps the promises of skill_manifest.h.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/zip.h"
#include "skill/skill_card.h"
#include "skill/skill_manifest.h"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct skill_manifest m;
    struct err e = { 0 };
    if (skill_manifest_parse(a, str_n(data, size), "x", &m, &e) < 0) {
        must(e.code == ERR_CONFIG && strncmp(e.msg, "x:", 2) == 0);
        return 0;
    }
    must(skill_name_ok(str_of(m.id)) && m.modes != 0);
    for (int i = 0; i < SKILL_SCHEMA_MAX; i++) {
        must(m.schemas[i] == NULL || zip_name_fault(str_of(m.schemas[i])) == NULL);
    }
    for (size_t i = 0; i < json_len(m.engines); i++) {
        must(skill_manifest_allows(&m, m.engines->array.items[i]->string));
    }
    for (size_t i = 0; i < json_len(m.unsupported_engines); i++) {
        must(!skill_manifest_allows(&m, m.unsupported_engines->array.items[i]->string));
    }
    for (size_t i = 0; i < json_len(m.dependencies); i++) {
        must(m.dependencies->array.items[i]->string.ptr[0] != '-');
    }
    return 0;
}

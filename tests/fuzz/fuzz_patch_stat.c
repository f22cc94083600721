/* SPDX-License-Identifier: MIT
 *
 * A patch of any bytes is read without harm: what it says lies within the text, and sums agree.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "record/patch_stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct patch_stat s;
    int64_t added = 0;
    int64_t removed = 0;
    patch_stat(a, str_n(data, size), &s);
    for (size_t i = 0; i < s.count; i++) {
        const struct patch_file *f = &s.files[i];
        const char *end = (const char *)data + size;
        if (f->added < 0 || f->removed < 0 || f->patch.ptr < (const char *)data ||
            f->patch.ptr + f->patch.len > end) {
            abort();
        }
        added += f->added;
        removed += f->removed;
    }
    if (added != s.added || removed != s.removed) {
        abort();
    }
    return 0;
}

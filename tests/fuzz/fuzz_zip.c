/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a zip archive. What is accepted keeps the promises of zip.h: names that cannot lead
 * anywhere, no name twice, no more content than allowed, whatever the headers say.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/zip.h"
#include "skill/package.h"

enum { TOTAL = 1 << 20, ENTRIES = 64 };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_entries(struct zip_archive *z)
{
    CLEANUP(buf) struct buf content = BUF_INIT(TOTAL);
    uint64_t claimed = 0;
    must(zip_archive_len(z) <= ENTRIES);
    for (size_t i = 0; i < zip_archive_len(z); i++) {
        const struct zip_entry *entry = zip_archive_get(z, i);
        must(zip_name_fault(entry->name) == NULL);
        must(strlen(entry->name.ptr) == entry->name.len);
        for (size_t j = 0; j < i; j++) {
            must(!str_eq(zip_archive_get(z, j)->name, entry->name));
        }
        claimed += entry->dir ? 0 : entry->size;
        size_t before = content.len;
        if (!entry->dir) {
            int r = zip_archive_read(z, i, &content, NULL);
            must(content.len == (r == 0 ? before + entry->size : before));
        }
    }
    must(claimed <= TOTAL && content.len <= TOTAL);
}

static void check_package(struct str bytes)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct package_limits limits = { .max_total = TOTAL, .max_files = ENTRIES };
    struct package *p = NULL;
    struct err e = { 0 };
    if (package_read_zip(a, bytes, "x", &limits, &p, &e) < 0) {
        must(e.code == ERR_CONFIG && strncmp(e.msg, "x: ", 3) == 0);
        return;
    }
    must(p->total <= TOTAL && p->top[0] != '\0');
    for (size_t i = 0; i < p->len; i++) {
        must(package_find(p, p->files[i].name) == &p->files[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zip_limits limits = { .max_total = TOTAL, .max_entries = ENTRIES };
    CLEANUP(zip_archive) struct zip_archive *z = NULL;
    struct err e = { 0 };
    if (zip_archive_open(str_n(data, size), "x", &limits, &z, &e) == 0) {
        check_entries(z);
    } else {
        must(e.code == ERR_PARSE || e.code == ERR_LIMIT);
        must(strncmp(e.msg, "x: ", 3) == 0);
    }
    check_package(str_n(data, size));
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * struct zip_archive: a zip file in memory, read with distrust. libzip is included by zip.c only.
 *
 *   CLEANUP(zip_archive) struct zip_archive *z = NULL;
 *   zip_archive_open(bytes, "skill.zip", NULL, &z, e);      every entry is checked here
 *   for (size_t i = 0; i < zip_archive_len(z); i++)
 *       zip_archive_read(z, i, &buf, e);                    content, checked against its CRC
 *
 * What may be in the archive: regular files and directories, stored or deflated, under names that
 * are relative, UTF-8, and cannot lead out of where they are unpacked. Refused as ERR_PARSE: an
 * absolute name, "..", a backslash or drive letter, control characters, a symbolic link or device,
 * the same name twice, a file that is also a directory, encryption, other compression methods, more
 * than one disk, Zip64 (nothing within the limits needs it), damage of any kind. Refused as
 * ERR_LIMIT: too many entries, too much content, an entry that unpacks to far more than any real
 * file does. Content is counted while it is unpacked, so a wrong size in a header helps nobody. An
 * archive inside is a file like others and stays packed.
 *
 * Ownership: the bytes must outlive the archive; entries and their names live in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct zip_archive;

/* Whoever made the archive can reach these. */
struct zip_limits {
    size_t max_entries; /* 0: 4096 */
    uint64_t max_total; /* 0: 64 MiB of content in all */
    unsigned max_ratio; /* 0: 200 times its packed size, for an entry above 64 KiB. Deflate reaches
                           1032 with nothing but zeros; text stays below 50 */
};

struct zip_entry {
    struct str name; /* relative, without a slash at the end, NUL-terminated */
    bool dir;
    bool executable; /* by its owner, where the maker was a Unix */
    uint64_t size;   /* as the archive says */
};

/* `name` is what messages call the archive; it must outlive it. `limits` may be NULL. */
int zip_archive_open(struct str bytes, const char *name, const struct zip_limits *limits,
                     struct zip_archive **ret, struct err *e) MUST_USE;
struct zip_archive *zip_archive_free(struct zip_archive *z); /* accepts NULL, returns NULL */

size_t zip_archive_len(const struct zip_archive *z);
const struct zip_entry *zip_archive_get(const struct zip_archive *z, size_t i);

/* Appends the content of entry i, which is no directory. `out` is as before on failure. */
int zip_archive_read(struct zip_archive *z, size_t i, struct buf *out, struct err *e) MUST_USE;

/* Whether the bytes begin as a zip file does. */
bool zip_archive_is(struct str bytes);

/* Why a relative name cannot be trusted ("has '..' in it"), or NULL when it can: the rules above,
 * at most 1024 bytes, 255 in a part and 32 parts. */
const char *zip_name_fault(struct str name);

static inline void cleanup_zip_archive(struct zip_archive **z)
{
    *z = zip_archive_free(*z);
}

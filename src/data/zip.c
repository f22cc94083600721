/* SPDX-License-Identifier: MIT
 *
 * Zip archives through libzip. libzip finds and unpacks entries; what may be in an archive is
 * decided here, for all entries before the first is unpacked.
 *
 * The library is loaded with the first archive: it brings a TLS library along, which would take
 * more than a millisecond of every start of cinch, and hardly any of them sees an archive.
 */
#include "data/zip.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zip.h>

#include "base/arena.h"

enum {
    DEFAULT_ENTRIES = 4096,
    DEFAULT_TOTAL = 64 << 20,
    DEFAULT_RATIO = 200,
    SMALL = 64 << 10, /* below this a ratio says nothing and a bomb does no harm */
    NAME_MAX_BYTES = 1024,
    PART_MAX_BYTES = 255,
    PARTS_MAX = 32,
    CHUNK = 16384,
    SHOWN = 72,
};

#define ZIP_CALLS(X)                \
    X(discard)                      \
    X(error_fini)                   \
    X(error_init)                   \
    X(error_strerror)               \
    X(fclose)                       \
    X(file_get_external_attributes) \
    X(file_strerror)                \
    X(fopen_index)                  \
    X(fread)                        \
    X(get_name)                     \
    X(get_num_entries)              \
    X(open_from_source)             \
    X(source_buffer_create)         \
    X(source_free)                  \
    X(stat_index)                   \
    X(stat_init)                    \
    X(strerror)

struct zip_calls {
#define X(call) __typeof__(&zip_##call) call;
    ZIP_CALLS(X)
#undef X
};

struct zip_archive {
    struct zip_calls lib;
    const char *name;
    struct arena *arena;
    struct zip *zip;
    struct zip_limits limits;
    struct zip_entry *entries;
    size_t len;
    const struct zip_entry **sorted; /* by name */
    uint64_t total;
};

/* A name as a message can show it: cut, and without what a terminal would obey. */
static const char *show(struct str name, char out[SHOWN])
{
    bool text = str_is_utf8(name);
    name = str_slice(name, 0, SHOWN - 1);
    size_t len = text ? str_utf8_prefix(name) : name.len;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        out[i] = c < ' ' || c == 0x7f || (c >= 0x80 && !text) ? '?' : name.ptr[i];
    }
    out[len] = '\0';
    return out;
}

/* --- names --- */

const char *zip_name_fault(struct str name)
{
    if (name.len == 0) {
        return "is empty";
    }
    if (name.len > NAME_MAX_BYTES) {
        return "is longer than 1024 bytes";
    }
    if (!str_is_utf8(name)) {
        return "is not UTF-8";
    }
    if (name.ptr[0] == '/') {
        return "is absolute";
    }
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c < ' ' || c == 0x7f) {
            return "has a control character in it";
        }
        if (c == '\\') {
            return "has a backslash in it";
        }
    }
    size_t parts = 0;
    while (name.ptr != NULL) {
        struct str part = str_split(&name, '/');
        if (part.len == 0) {
            return "has an empty part";
        }
        if (str_eqc(part, ".") || str_eqc(part, "..")) {
            return part.len == 1 ? "has '.' as a part" : "has '..' in it";
        }
        if (part.len > PART_MAX_BYTES) {
            return "has a part longer than 255 bytes";
        }
        if (parts == 0 && part.ptr[part.len - 1] == ':') {
            return "begins with a drive";
        }
        if (++parts > PARTS_MAX) {
            return "is nested more than 32 deep";
        }
    }
    return NULL;
}

/* --- one entry --- */

static int fail(const struct zip_archive *z, struct str entry, enum err_code code, const char *why,
                struct err *e)
{
    char shown[SHOWN];
    return ERR(e, code, "%s: entry '%s' %s", z->name, show(entry, shown), why);
}

/* The mode is looked at whatever system the archive claims to come from: a link that says it was
 * made under DOS is a link to other unpackers. */
static int check_mode(const struct zip_archive *z, zip_uint64_t index, struct zip_entry *entry,
                      struct err *e)
{
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    if (z->lib.file_get_external_attributes(z->zip, index, 0, &system, &attributes) < 0) {
        return fail(z, entry->name, ERR_PARSE, "has no attributes", e);
    }
    mode_t mode = (mode_t)(attributes >> 16);
    switch (mode & S_IFMT) {
    case 0:
    case S_IFREG:
        break;
    case S_IFDIR:
        entry->dir = true;
        break;
    case S_IFLNK:
        return fail(z, entry->name, ERR_PARSE, "is a symbolic link", e);
    default:
        return fail(z, entry->name, ERR_PARSE, "is neither a file nor a directory", e);
    }
    entry->executable = !entry->dir && (mode & S_IXUSR) != 0;
    return 0;
}

static int check_content(struct zip_archive *z, const struct zip_stat *st,
                         const struct zip_entry *entry, struct err *e)
{
    if (entry->dir) {
        return st->size == 0 ? 0
                             : fail(z, entry->name, ERR_PARSE, "is a directory with content", e);
    }
    if (st->encryption_method != ZIP_EM_NONE) {
        return fail(z, entry->name, ERR_PARSE, "is encrypted", e);
    }
    if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE) {
        return fail(z, entry->name, ERR_PARSE, "is packed by a method other than deflate", e);
    }
    if (st->size > z->limits.max_total - z->total) {
        return ERR(e, ERR_LIMIT, "%s: unpacks to more than %llu bytes", z->name,
                   (unsigned long long)z->limits.max_total);
    }
    if (st->size > SMALL && st->size / z->limits.max_ratio > st->comp_size) {
        return fail(z, entry->name, ERR_LIMIT, "unpacks to far more than any real file does", e);
    }
    z->total += st->size;
    return 0;
}

static int read_entry(struct zip_archive *z, zip_uint64_t index, struct zip_entry *entry,
                      struct err *e)
{
    const zip_uint64_t wanted =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    struct zip_stat st;
    z->lib.stat_init(&st);
    const char *raw = z->lib.get_name(z->zip, index, ZIP_FL_ENC_RAW);
    if (raw == NULL || z->lib.stat_index(z->zip, index, 0, &st) < 0 ||
        (st.valid & wanted) != wanted) {
        return ERR(e, ERR_PARSE, "%s: entry %llu cannot be read: %s", z->name,
                   (unsigned long long)index, z->lib.strerror(z->zip));
    }
    struct str name = str_of(raw);
    entry->dir = str_ends(name, STR("/"));
    entry->name = arena_str(z->arena, str_n(name.ptr, name.len - (entry->dir ? 1 : 0)));
    entry->size = st.size;
    const char *fault = zip_name_fault(entry->name);
    if (fault != NULL) {
        char shown[SHOWN];
        return ERR(e, ERR_PARSE, "%s: the name '%s' %s", z->name, show(name, shown), fault);
    }
    int r = check_mode(z, index, entry, e);
    return r < 0 ? r : check_content(z, &st, entry, e);
}

/* --- all entries --- */

static int by_name(const void *a, const void *b)
{
    return str_cmp((*(const struct zip_entry *const *)a)->name,
                   (*(const struct zip_entry *const *)b)->name);
}

static const struct zip_entry *find(const struct zip_archive *z, struct str name)
{
    const struct zip_entry wanted = { .name = name };
    const struct zip_entry *key = &wanted;
    const struct zip_entry **found = bsearch(&key, z->sorted, z->len, sizeof *z->sorted, by_name);
    return found == NULL ? NULL : *found;
}

/* A name that is there twice, or is both a file and a directory of other entries, would give
 * different content to different readers. */
static int check_names(struct zip_archive *z, struct err *e)
{
    z->sorted = arena_array(z->arena, z->len, sizeof *z->sorted);
    for (size_t i = 0; i < z->len; i++) {
        z->sorted[i] = &z->entries[i];
    }
    qsort(z->sorted, z->len, sizeof *z->sorted, by_name);
    for (size_t i = 0; i < z->len; i++) {
        struct str name = z->sorted[i]->name;
        if (i > 0 && str_eq(z->sorted[i - 1]->name, name)) {
            return fail(z, name, ERR_PARSE, "is there twice", e);
        }
        for (size_t end = 0; end < name.len; end++) {
            const struct zip_entry *parent =
                name.ptr[end] == '/' ? find(z, str_n(name.ptr, end)) : NULL;
            if (parent != NULL && !parent->dir) {
                return fail(z, parent->name, ERR_PARSE, "is a file and a directory", e);
            }
        }
    }
    return 0;
}

/* --- opening --- */

/* It stays loaded for good: a TLS library does not take well to being unloaded. */
static int load_library(struct zip_calls *ret, struct err *e)
{
    void *library = dlopen(ZIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return ERR(e, ERR_UNAVAILABLE, "zip archives need libzip: %s; install it", dlerror());
    }
#define X(call)                                                                         \
    *(void **)&ret->call = dlsym(library, "zip_" #call);                                \
    if (ret->call == NULL) {                                                            \
        return ERR(e, ERR_UNAVAILABLE, ZIP_LIBRARY " has no zip_" #call "; update it"); \
    }
    ZIP_CALLS(X)
#undef X
    return 0;
}

bool zip_archive_is(struct str bytes)
{
    return str_starts(bytes, STR("PK\3\4")) || str_starts(bytes, STR("PK\5\6"));
}

/* libzip 1.7 allocates by the number of entries that a Zip64 end record claims, up to what 64 bits
 * hold. So Zip64 is looked for as libzip does: a locator of 20 bytes before an end record, which is
 * in the last 64 KiB. */
static bool is_zip64(struct str bytes)
{
    enum { LOCATOR = 20, END = 22, COMMENT = 0xffff };
    const struct str locator = STR("PK\6\7");
    size_t window = LOCATOR + END + COMMENT;
    struct str tail = str_slice(bytes, bytes.len > window ? bytes.len - window : 0, bytes.len);
    for (;;) {
        size_t at = str_find(tail, locator);
        if (at == tail.len) {
            return false;
        }
        tail = str_slice(tail, at, tail.len);
        if (str_starts(str_slice(tail, LOCATOR, tail.len), STR("PK\5\6"))) {
            return true;
        }
        tail = str_slice(tail, 1, tail.len);
    }
}

static int open_zip(struct zip_archive *z, struct str bytes, struct err *e)
{
    if (!zip_archive_is(bytes)) {
        return ERR(e, ERR_PARSE, "%s: not a usable zip archive: it does not begin as one", z->name);
    }
    if (is_zip64(bytes)) {
        return ERR(e, ERR_PARSE, "%s: Zip64 archives are not read; pack it without", z->name);
    }
    int r = load_library(&z->lib, e);
    if (r < 0) {
        return r;
    }
    struct zip_error error;
    z->lib.error_init(&error);
    zip_source_t *source = z->lib.source_buffer_create(bytes.ptr, bytes.len, 0, &error);
    z->zip = source == NULL ? NULL : z->lib.open_from_source(source, ZIP_RDONLY, &error);
    if (z->zip == NULL) {
        (void)ERR(e, ERR_PARSE, "%s: not a usable zip archive: %s", z->name,
                  z->lib.error_strerror(&error));
        z->lib.source_free(source);
    }
    z->lib.error_fini(&error);
    return z->zip == NULL ? -ERR_PARSE : 0;
}

static int read_entries(struct zip_archive *z, struct err *e)
{
    zip_int64_t count = z->lib.get_num_entries(z->zip, 0);
    if (count < 0 || (zip_uint64_t)count > z->limits.max_entries) {
        return ERR(e, ERR_LIMIT, "%s: more than %zu entries", z->name, z->limits.max_entries);
    }
    z->entries = arena_array(z->arena, (size_t)count, sizeof *z->entries);
    for (; z->len < (size_t)count; z->len++) {
        int r = read_entry(z, z->len, &z->entries[z->len], e);
        if (r < 0) {
            return r;
        }
    }
    return check_names(z, e);
}

int zip_archive_open(struct str bytes, const char *name, const struct zip_limits *limits,
                     struct zip_archive **ret, struct err *e)
{
    CLEANUP(zip_archive) struct zip_archive *z = xcalloc(1, sizeof *z);
    z->name = name;
    z->arena = arena_new();
    if (limits != NULL) {
        z->limits = *limits;
    }
    z->limits.max_entries = z->limits.max_entries > 0 ? z->limits.max_entries : DEFAULT_ENTRIES;
    z->limits.max_total = z->limits.max_total > 0 ? z->limits.max_total : DEFAULT_TOTAL;
    z->limits.max_ratio = z->limits.max_ratio > 0 ? z->limits.max_ratio : DEFAULT_RATIO;
    int r = open_zip(z, bytes, e);
    if (r == 0) {
        r = read_entries(z, e);
    }
    if (r == 0) {
        *ret = TAKE_PTR(z);
    }
    return r;
}

struct zip_archive *zip_archive_free(struct zip_archive *z)
{
    if (z != NULL) {
        if (z->zip != NULL) {
            z->lib.discard(z->zip);
        }
        arena_free(z->arena);
        free(z);
    }
    return NULL;
}

size_t zip_archive_len(const struct zip_archive *z)
{
    return z->len;
}

const struct zip_entry *zip_archive_get(const struct zip_archive *z, size_t i)
{
    return &z->entries[i];
}

/* --- content --- */

static int unpack(struct zip_archive *z, zip_file_t *file, const struct zip_entry *entry,
                  struct buf *out, struct err *e)
{
    char chunk[CHUNK];
    uint64_t done = 0;
    for (;;) {
        zip_int64_t n = z->lib.fread(file, chunk, sizeof chunk);
        if (n < 0) {
            char shown[SHOWN];
            return ERR(e, ERR_PARSE, "%s: entry '%s' is damaged: %s", z->name,
                       show(entry->name, shown), z->lib.file_strerror(file));
        }
        done += (uint64_t)n;
        if (done > entry->size || (n == 0 && done < entry->size)) {
            return fail(z, entry->name, ERR_PARSE, "does not have the size that it says", e);
        }
        if (n == 0) {
            return 0;
        }
        int r = buf_append(out, str_n(chunk, (size_t)n), e);
        if (r < 0) {
            return r;
        }
    }
}

int zip_archive_read(struct zip_archive *z, size_t i, struct buf *out, struct err *e)
{
    const struct zip_entry *entry = &z->entries[i];
    size_t before = out->len;
    zip_file_t *file = z->lib.fopen_index(z->zip, i, 0);
    if (file == NULL) {
        char shown[SHOWN];
        return ERR(e, ERR_PARSE, "%s: entry '%s' cannot be unpacked: %s", z->name,
                   show(entry->name, shown), z->lib.strerror(z->zip));
    }
    int r = unpack(z, file, entry, out, e);
    (void)z->lib.fclose(file);
    if (r < 0 && out->ptr != NULL) {
        out->len = before;
        out->ptr[before] = '\0';
    }
    return r;
}

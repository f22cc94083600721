/* SPDX-License-Identifier: MIT
 *
 * The format of the table is that of glibc 2.2 and later ("glibc-ld.so.cache1.1").
 */
#include "image/loader.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/sha256.h"
#include "image/elf.h"

#define TABLE_MAGIC "glibc-ld.so.cache1.1"
#define HOST_TABLE  "/etc/ld.so.cache"
#define HOST_FORCED "/etc/ld.so.preload"

enum { TABLE_MAX = 64 << 20, LOADER_MAX = 16 << 20, ENTRIES_MAX = 1 << 20 };

struct table_head {
    char magic[20];
    uint32_t n;
    uint32_t strings; /* bytes */
    uint8_t flags;
    uint8_t padding[3];
    uint32_t extension;
    uint32_t unused[3];
};

struct table_entry {
    int32_t flags;
    uint32_t key, value; /* offsets from the start of the file */
    uint32_t os_version;
    uint64_t hwcap;
};

/* --- the table --- */

static bool text_at(struct str table, uint32_t at, struct str *ret)
{
    const char *end = at < table.len ? memchr(table.ptr + at, '\0', table.len - at) : NULL;
    *ret = end == NULL ? STR_EMPTY : str_n(table.ptr + at, (size_t)(end - table.ptr) - at);
    return end != NULL && ret->len > 0;
}

/* Hardware capabilities by number are of an extension that is not copied: what needs one is left
 * out, and the plain library is found instead. */
static bool is_plain(const struct table_entry *entry)
{
    return entry->hwcap == 0;
}

int loader_move_table(struct str table, const char *prefix, struct buf *out, struct err *e)
{
    struct table_head head;
    CLEANUP(buf) struct buf strings = BUF_INIT(TABLE_MAX);
    CLEANUP(buf) struct buf entries = BUF_INIT(TABLE_MAX);
    if (table.len < sizeof head || memcmp(table.ptr, TABLE_MAGIC, sizeof head.magic) != 0) {
        return ERR(e, ERR_PARSE, "the table of libraries is not that of glibc");
    }
    memcpy(&head, table.ptr, sizeof head);
    if (head.n > ENTRIES_MAX || (table.len - sizeof head) / sizeof(struct table_entry) < head.n) {
        return ERR(e, ERR_PARSE, "the table of libraries is cut off");
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < head.n; i++) {
        struct table_entry entry;
        struct str key;
        struct str value;
        memcpy(&entry, table.ptr + sizeof head + i * sizeof entry, sizeof entry);
        if (!text_at(table, entry.key, &key) || !text_at(table, entry.value, &value)) {
            return ERR(e, ERR_PARSE, "the table of libraries is damaged");
        }
        kept += is_plain(&entry) ? 1 : 0;
    }
    uint32_t base = (uint32_t)(sizeof head + kept * sizeof(struct table_entry));
    for (uint32_t i = 0; i < head.n; i++) {
        struct table_entry entry;
        struct str key;
        struct str value;
        memcpy(&entry, table.ptr + sizeof head + i * sizeof entry, sizeof entry);
        if (!is_plain(&entry) || !text_at(table, entry.key, &key) ||
            !text_at(table, entry.value, &value)) {
            continue;
        }
        entry.value = base + (uint32_t)strings.len;
        buf_addf(&strings, "%s%.*s", prefix, STR_ARG(value));
        buf_add(&strings, str_n("", 1));
        entry.key = base + (uint32_t)strings.len;
        buf_add(&strings, key);
        buf_add(&strings, str_n("", 1));
        buf_add(&entries, str_n((const char *)&entry, sizeof entry));
    }
    head.n = kept;
    head.strings = (uint32_t)strings.len;
    head.extension = 0;
    int r = buf_append(out, str_n((const char *)&head, sizeof head), e);
    r = r < 0 ? r : buf_append(out, buf_str(&entries), e);
    return r < 0 ? r : buf_append(out, buf_str(&strings), e);
}

/* --- the loader --- */

static size_t replace(char *bytes, size_t len, const char *old, const char *new)
{
    size_t n = 0;
    size_t size = strlen(old) + 1; /* with the NUL: not the beginning of a longer text */
    for (char *at = bytes; (at = memmem(at, len - (size_t)(at - bytes), old, size)) != NULL;) {
        memset(at, 0, size);
        memcpy(at, new, strlen(new));
        at += size;
        n++;
    }
    return n;
}

int loader_patch(char *bytes, size_t len, struct err *e)
{
    _Static_assert(sizeof LOADER_TABLE <= sizeof HOST_TABLE, "it has to fit in the old place");
    if (replace(bytes, len, HOST_TABLE, LOADER_TABLE) == 0) {
        return ERR(e, ERR_UNSUPPORTED, "the loader of this machine is not that of glibc");
    }
    /* Libraries that the image forces on its programs are not for ours. */
    (void)replace(bytes, len, HOST_FORCED, "/.runtime/none");
    return 0;
}

/* --- files --- */

/* A name for what was made of a file as it is now. */
static const char *name_for(struct arena *a, const char *dir, const char *kind, const char *file)
{
    struct stat st;
    char hash[SHA256_HEX];
    if (stat(file, &st) != 0) {
        st = (struct stat) { 0 };
    }
    sha256_hex(str_of(arena_printf(a, "3 %s %s %llu %llu %lld %lld.%09ld", kind, file,
                                   (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                                   (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                                   st.st_mtim.tv_nsec)),
               hash);
    const char *path = arena_printf(a, "%s/%s-%.32s", dir, kind, hash);
    /* When it was used last; `cinch images prune` looks at it. */
    (void)utimensat(AT_FDCWD, path, NULL, 0);
    return path;
}

static int open_new(struct arena *a, const char *path, const char **ret_tmp, int *ret_fd,
                    struct err *e)
{
    char *tmp = arena_printf(a, "%s.XXXXXX", path);
    const char *slash = strrchr(path, '/');
    int r = file_mkdirs(AT_FDCWD, arena_dup(a, str_n(path, (size_t)(slash - path))), 0700, e);
    if (r < 0) {
        return r;
    }
    *ret_fd = mkostemp(tmp, O_CLOEXEC);
    *ret_tmp = tmp;
    return *ret_fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "make '%s'", tmp) : 0;
}

static int put_new(const char *tmp, const char *path, int fd, int r, struct err *e)
{
    if (r == 0 && (fchmod(fd, 0755) != 0 || rename(tmp, path) != 0)) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "make '%s'", path);
    }
    if (r < 0) {
        (void)unlink(tmp);
    }
    return r;
}

static int write_new(struct arena *a, const char *path, struct str content, struct err *e)
{
    CLEANUP(fd) int fd = -1;
    const char *tmp = NULL;
    int r = open_new(a, path, &tmp, &fd, e);
    if (r < 0) {
        return r;
    }
    r = file_write_all(fd, content, e);
    return put_new(tmp, path, fd, r, e);
}

int loader_make(struct arena *a, const char *dir, const char *loader, const char **ret_loader,
                const char **ret_table, struct err *e)
{
    CLEANUP(buf) struct buf bytes = BUF_INIT(LOADER_MAX);
    CLEANUP(buf) struct buf table = BUF_INIT(TABLE_MAX);
    CLEANUP(buf) struct buf moved = BUF_INIT(TABLE_MAX);
    *ret_loader = name_for(a, dir, "loader", loader);
    *ret_table = name_for(a, dir, "table", HOST_TABLE);
    int r = 0;
    if (!file_exists(AT_FDCWD, *ret_loader)) {
        r = file_read(AT_FDCWD, loader, LOADER_MAX, &bytes, e);
        r = r < 0 ? r : loader_patch(bytes.ptr, bytes.len, e);
        r = r < 0 ? r : write_new(a, *ret_loader, buf_str(&bytes), e);
    }
    if (r == 0 && !file_exists(AT_FDCWD, *ret_table)) {
        r = file_read(AT_FDCWD, HOST_TABLE, TABLE_MAX, &table, e);
        r = r < 0 ? r : loader_move_table(buf_str(&table), "/.runtime", &moved, e);
        r = r < 0 ? r : write_new(a, *ret_table, buf_str(&moved), e);
    }
    return r < 0 ? err_wrap(e, "bring the loader '%s' along", loader) : 0;
}

int loader_of(struct arena *a, const char *program, const char **ret, bool *ret_elf, struct err *e)
{
    struct elf_info info;
    CLEANUP(fd) int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_NOEXEC, "read program '%s'", program);
    }
    int r = elf_look(fd, &info, e);
    *ret_elf = info.is_elf;
    *ret = r == 0 && info.dynamic ? arena_dup(a, str_of(info.loader)) : NULL;
    return r < 0 ? err_wrap(e, "program '%s'", program) : 0;
}

int loader_make_program(struct arena *a, const char *dir, const char *program, const char **ret,
                        struct err *e)
{
    struct elf_info info;
    char text[ELF_LOADER_MAX] = LOADER_PATH;
    const char *tmp = NULL;
    CLEANUP(fd) int out = -1;
    CLEANUP(fd) int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_NOEXEC, "read program '%s'", program);
    }
    *ret = NULL;
    int r = elf_look(fd, &info, e);
    if (r < 0 || !info.dynamic) {
        return r;
    }
    if (info.loader_len < sizeof LOADER_PATH) {
        return ERR(e, ERR_UNSUPPORTED, "program '%s' names a loader with too short a path",
                   program);
    }
    *ret = name_for(a, dir, "program", program);
    if (file_exists(AT_FDCWD, *ret)) {
        return 0;
    }
    r = open_new(a, *ret, &tmp, &out, e);
    if (r < 0) {
        return r;
    }
    r = file_copy(fd, out, 0, e);
    if (r == 0 &&
        pwrite(out, text, info.loader_len, (off_t)info.loader_at) != (ssize_t)info.loader_len) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "write '%s'", tmp);
    }
    return put_new(tmp, *ret, out, r, e);
}

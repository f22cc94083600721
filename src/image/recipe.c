/* SPDX-License-Identifier: MIT
 *
 * Which layer an adapter has, and what is in it.
 */
#include "image/recipe.h"

#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "image/recipe_files.h"

enum { ROW_MAX = 4096, FILES_MAX = 500000, READ_BYTES = 1 << 16 };

static struct str built_in(const char *name)
{
    for (size_t i = 0; i < recipe_files_len; i++) {
        if (strcmp(recipe_files[i].file, name) == 0) {
            return str_n(recipe_files[i].text, recipe_files[i].len);
        }
    }
    return STR_EMPTY;
}

struct str recipe_script(void)
{
    return built_in("install.sh");
}

const char *recipe_dir(struct arena *a, const char *adapter)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        return arena_printf(a, "%s/cinch/layers/%s", base, adapter);
    }
    return home == NULL || home[0] != '/'
               ? NULL
               : arena_printf(a, "%s/.config/cinch/layers/%s", home, adapter);
}

/* --- rows --- */

bool recipe_word_is_plain(const char *word)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789@/._+-";
    return word[strspn(word, allowed)] == '\0' && word[0] != '-' && strlen(word) <= 200;
}

static struct str next_word(struct str *line)
{
    *line = str_trim(*line);
    struct str word = str_split(line, ' ');
    *line = line->ptr == NULL ? STR_EMPTY : *line;
    return word;
}

bool recipe_row(struct arena *a, struct str table, const char *adapter, struct recipe *ret)
{
    while (table.len > 0) {
        struct str line = str_split(&table, '\n');
        if (str_eqc(next_word(&line), adapter)) {
            ret->package = arena_dup(a, next_word(&line));
            ret->version = arena_dup(a, next_word(&line));
            return true;
        }
        table = table.ptr == NULL ? STR_EMPTY : table;
    }
    return false;
}

static int read_own_row(struct arena *a, struct recipe *r, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(ROW_MAX);
    const char *path = arena_printf(a, "%s/layer.txt", r->dir);
    if (!file_exists(AT_FDCWD, path)) {
        return 0;
    }
    int rc = file_read(AT_FDCWD, path, ROW_MAX, &text, e);
    struct str line = buf_str(&text);
    line = str_trim(str_split(&line, '\n'));
    r->package = arena_dup(a, next_word(&line));
    r->version = arena_dup(a, next_word(&line));
    if (rc == 0 && (r->version[0] == '\0' || str_trim(line).len > 0 ||
                    !recipe_word_is_plain(r->package) || !recipe_word_is_plain(r->version))) {
        rc = ERR(e, ERR_CONFIG, "'%s': expected one line: PACKAGE VERSION", path);
    }
    return rc;
}

/* --- content --- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int hash_file(struct sha256 *hash, const char *path, struct err *e)
{
    char bytes[READ_BYTES];
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    for (; n > 0; n = read(fd, bytes, sizeof bytes)) {
        sha256_add(hash, str_n(bytes, (size_t)n));
    }
    return n < 0 ? ERR_SYS_AS(e, ERR_INPUT, "read '%s'", path) : 0;
}

static void add_line(struct sha256 *hash, const char *line)
{
    sha256_add(hash, str_n(line, strlen(line) + 1));
}

/* One entry: by its content, or, which is much quicker, by what the file system says of it. */
static int hash_entry(struct arena *a, struct sha256 *hash, const FTSENT *at, size_t top,
                      bool content, struct err *e)
{
    char target[PATH_MAX] = "";
    const struct stat *st = at->fts_statp;
    const char *name = at->fts_path + top;
    if (S_ISLNK(st->st_mode) && readlink(at->fts_accpath, target, sizeof target - 1) < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "read '%s'", at->fts_path);
    }
    add_line(hash, arena_printf(a, "%s %o %s", name, (unsigned)st->st_mode, target));
    if (!content) {
        add_line(hash, arena_printf(a, "%llu %lld %lld.%09ld %lld.%09ld",
                                    (unsigned long long)st->st_ino, (long long)st->st_size,
                                    (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                                    (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec));
    } else if (S_ISREG(st->st_mode)) {
        add_line(hash, arena_printf(a, "%lld", (long long)st->st_size));
        return hash_file(hash, at->fts_accpath, e);
    }
    return 0;
}

static int hash_tree(struct arena *a, const char *dir, bool content, char out[SHA256_HEX],
                     struct err *e)
{
    char *roots[] = { arena_dup(a, str_of(dir)), NULL };
    struct sha256 *hash = sha256_new();
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    size_t n = 0;
    int r = walk == NULL ? ERR_SYS_AS(e, ERR_INPUT, "read '%s'", dir) : 0;
    for (const FTSENT *at = r < 0 ? NULL : fts_read(walk); r == 0 && at != NULL;
         at = fts_read(walk)) {
        if (at->fts_info == FTS_DP) {
            continue;
        }
        if (at->fts_info == FTS_DNR || at->fts_info == FTS_ERR || at->fts_info == FTS_NS) {
            r = ERR(e, ERR_INPUT, "read '%s': %s", at->fts_path, strerror(at->fts_errno));
        } else if (++n > FILES_MAX) {
            r = ERR(e, ERR_LIMIT, "layer '%s' has more than %d files", dir, FILES_MAX);
        } else {
            r = hash_entry(a, hash, at, strlen(dir), content, e);
        }
    }
    if (walk != NULL) {
        (void)fts_close(walk);
    }
    (void)sha256_end(hash, out);
    return r;
}

/* An agent has hundreds of megabytes: they are read again when a file has changed. */
static int hash_dir(struct arena *a, const char *cache, const char *dir, char out[SHA256_HEX],
                    struct err *e)
{
    CLEANUP(buf) struct buf known = BUF_INIT(SHA256_HEX);
    char state[SHA256_HEX];
    int r = hash_tree(a, dir, false, state, e);
    const char *folder = arena_printf(a, "%s/layers", cache);
    const char *note = arena_printf(a, "%s/%s", folder, state);
    if (r < 0) {
        return r;
    }
    if (file_read(AT_FDCWD, note, SHA256_HEX - 1, &known, NULL) == 0 &&
        sha256_is_hex(buf_str(&known))) {
        memcpy(out, known.ptr, SHA256_HEX - 1);
        out[SHA256_HEX - 1] = '\0';
        return 0;
    }
    r = hash_tree(a, dir, true, out, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, folder, 0700, e);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, note, str_of(out), 0600, e);
}

/* --- recipes --- */

int recipe_find(struct arena *a, const char *cache, const char *adapter, struct recipe *ret,
                struct err *e)
{
    *ret = (struct recipe) { .adapter = adapter, .package = "", .version = "" };
    bool known = recipe_row(a, built_in("layers.txt"), adapter, ret);
    const char *dir = recipe_dir(a, adapter);
    int r = 0;
    if (dir != NULL && file_is_dir(AT_FDCWD, dir)) {
        ret->dir = dir;
        ret->own_script = file_exists(AT_FDCWD, arena_printf(a, "%s/install.sh", dir));
        ret->vendored = file_is_dir(AT_FDCWD, arena_printf(a, "%s/vendor", dir));
        r = read_own_row(a, ret, e);
        r = r < 0 ? r : hash_dir(a, cache, dir, ret->content, e);
    }
    if (r < 0) {
        return err_wrap(e, "layer of adapter '%s'", adapter);
    }
    return ret->own_script || known || ret->package[0] != '\0' ? 0 : 1;
}

const char *recipe_key(struct arena *a, const char *base, const struct recipe *r)
{
    char script[SHA256_HEX] = "";
    char *key = arena_array(a, SHA256_HEX, 1);
    if (!r->own_script) {
        sha256_hex(recipe_script(), script);
    }
    sha256_hex(str_of(arena_printf(a, "1 %s %s %s %s %s %s", base, r->adapter, r->package,
                                   r->version, r->content, script)),
               key);
    return key;
}

struct json *recipe_describe(struct arena *a, const struct recipe *r, const char *base,
                             const char *key)
{
    struct json *o = json_object(a);
    json_setc(a, o, "adapter", json_cstr(a, r->adapter));
    json_setc(a, o, "package", json_cstr(a, r->package));
    json_setc(a, o, "version", json_cstr(a, r->version));
    json_setc(a, o, "base", json_cstr(a, base));
    json_setc(a, o, "key", json_cstr(a, key));
    return o;
}

void recipe_containerfile(const char *base, const struct recipe *r, struct buf *out)
{
    buf_addf(out, "# Made by cinch: %s for adapter %s.\nFROM %s\nUSER 0\n",
             r->package[0] == '\0' ? "a layer" : r->package, r->adapter, base);
    buf_addf(out,
             "RUN --mount=type=bind,target=" RECIPE_BUILD ",ro VENDOR=" RECIPE_LAYER "/vendor "
             "sh %s/install.sh \"%s\" \"%s\"\n",
             r->own_script ? RECIPE_LAYER : RECIPE_BUILD, r->package, r->version);
}

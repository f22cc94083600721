/* SPDX-License-Identifier: MIT
 *
 * Taking a reference apart, and a look at what is there.
 */
#include "image/reference.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/str.h"

#define DIGEST "@sha256:"

static const struct {
    const char *prefix;
    enum image_kind kind;
} transports[] = {
    { "docker-archive:", IMAGE_ARCHIVE },
    { "oci-archive:", IMAGE_ARCHIVE },
    { "oci:", IMAGE_LAYOUT },
    { "dir:", IMAGE_ROOT },
};

/* FILE:NAME, where both may have colons: the longest beginning that exists is the file. */
static void split_name(struct arena *a, const char *text, const char *dir, struct image_ref *ret)
{
    char joined[PATH_MAX];
    struct stat st;
    size_t len = strlen(text);
    for (size_t i = len; i > 0; i--) {
        if (i < len && text[i] != ':') {
            continue;
        }
        const char *part = arena_dup(a, str_n(text, i));
        if (path_join(dir, part, joined, sizeof joined, NULL) == 0 && stat(joined, &st) == 0) {
            ret->path = arena_dup(a, str_of(joined));
            ret->name = i < len && text[i + 1] != '\0' ? arena_dup(a, str_of(text + i + 1)) : NULL;
            return;
        }
    }
    ret->path = path_join(dir, text, joined, sizeof joined, NULL) == 0
                    ? arena_dup(a, str_of(joined))
                    : text;
}

static int check_path(struct arena *a, struct image_ref *ret, bool guess, struct err *e)
{
    struct stat st;
    if (stat(ret->path, &st) != 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "image '%s'", ret->path);
    }
    if (guess && S_ISDIR(st.st_mode)) {
        const char *mark = arena_printf(a, "%s/oci-layout", ret->path);
        ret->kind = stat(mark, &st) == 0 && S_ISREG(st.st_mode) ? IMAGE_LAYOUT : IMAGE_ROOT;
        return 0;
    }
    bool dir = ret->kind == IMAGE_LAYOUT || ret->kind == IMAGE_ROOT;
    if (dir != S_ISDIR(st.st_mode) || (!dir && !S_ISREG(st.st_mode))) {
        return ERR(e, ERR_INPUT, "image '%s' is not a %s", ret->path, dir ? "directory" : "file");
    }
    return 0;
}

/* What registries and engines allow, without what would be an option of a program. */
static bool is_name(struct str s)
{
    bool good = s.len > 0 && s.len < 512 && s.ptr[0] != '-';
    for (size_t i = 0; good && i < s.len; i++) {
        char c = s.ptr[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               strchr("._-/:", c) != NULL;
    }
    return good;
}

int image_ref_parse(struct arena *a, const char *text, const char *dir, struct image_ref *ret,
                    struct err *e)
{
    struct str s = str_of(text);
    *ret = (struct image_ref) { .text = arena_dup(a, s) };
    size_t at = str_find(s, STR(DIGEST));
    if (at < s.len) {
        ret->digest = arena_dup(a, str_slice(s, at + strlen(DIGEST), s.len));
        if (!sha256_is_hex(str_of(ret->digest))) {
            return ERR(e, ERR_USAGE, "image '%s': '%s' is not a SHA-256 digest", text, ret->digest);
        }
        s = str_slice(s, 0, at);
    }
    const char *rest = arena_dup(a, s);
    for (size_t i = 0; i < ARRAY_LEN(transports); i++) {
        if (str_starts(s, str_of(transports[i].prefix))) {
            ret->kind = transports[i].kind;
            split_name(a, rest + strlen(transports[i].prefix), dir, ret);
            return check_path(a, ret, false, e);
        }
    }
    if (rest[0] == '/' || str_starts(s, STR("./")) || str_starts(s, STR("../")) ||
        str_eqc(s, ".") || str_eqc(s, "..")) {
        ret->kind = IMAGE_ARCHIVE;
        split_name(a, rest, dir, ret);
        return check_path(a, ret, true, e);
    }
    ret->kind = IMAGE_STORE;
    ret->name = rest;
    return is_name(s) ? 0 : ERR(e, ERR_USAGE, "'%s' does not name an image", text);
}

/* SPDX-License-Identifier: MIT
 *
 * cinch-unpack; see image/unpack.h.
 */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "image/build.h"
#include "image/unpack.h"

static int start_unpack(struct arena *a, int argc, char **argv, const char **ret_id, bool *ret_new,
                        struct err *e)
{
    struct unpack_opts opts = { .cache = argv[1],
                                .engine = argv[2],
                                .reference = argv[3],
                                .max_bytes = argc > 4 ? strtoull(argv[4], NULL, 10) : 0 };
    return unpack_image(a, &opts, ret_id, ret_new, e);
}

static int start_build(struct arena *a, char **words, const char **ret_id, bool *ret_new,
                       struct err *e)
{
    struct build_opts opts = { .cache = words[0],
                               .engine = words[1],
                               .reference = words[2],
                               .base = words[3],
                               .adapter = words[4] };
    return build_image(a, &opts, ret_id, ret_new, e);
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct err e;
    const char *id = NULL;
    bool is_new = false;
    struct json *o = json_object(a);
    bool build = argc > 1 && strcmp(argv[1], "--build") == 0;
    if (build ? argc != 7 : argc < 4 || argc > 5) {
        return 64; /* started by cinch only; see image/unpack.h and image/build.h */
    }
    /* libarchive gives names in the character set of the locale, and loses what does not fit. */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    (void)umask(022);
    int r = build ? start_build(a, argv + 2, &id, &is_new, &e)
                  : start_unpack(a, argc, argv, &id, &is_new, &e);
    if (r < 0) {
        json_setc(a, o, "code", json_integer(a, (int64_t)e.code));
        json_setc(a, o, "error", json_cstr(a, e.msg));
    } else {
        json_setc(a, o, "id", json_cstr(a, id));
        json_setc(a, o, "unpacked", json_boolean(a, is_new));
    }
    if (json_write(o, JSON_COMPACT, &out, NULL) < 0 || buf_append_c(&out, '\n', NULL) < 0 ||
        file_write_all(STDOUT_FILENO, buf_str(&out), NULL) < 0) {
        return 1;
    }
    return r < 0 ? 1 : 0;
}

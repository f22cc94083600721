/* SPDX-License-Identifier: MIT
 *
 * cinch-unpack; see image/unpack.h.
 */
#include <locale.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "image/unpack.h"

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct err e;
    const char *id = NULL;
    bool is_new = false;
    struct json *o = json_object(a);
    if (argc < 4 || argc > 5) {
        return 64; /* started by cinch only; see image/unpack.h */
    }
    /* libarchive gives names in the character set of the locale, and loses what does not fit. */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    (void)umask(022);
    struct unpack_opts opts = { .cache = argv[1],
                                .engine = argv[2],
                                .reference = argv[3],
                                .max_bytes = argc > 4 ? strtoull(argv[4], NULL, 10) : 0 };
    int r = unpack_image(a, &opts, &id, &is_new, &e);
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

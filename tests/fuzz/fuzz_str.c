/* SPDX-License-Identifier: MIT
 *
 * The conversions and cuts of str.h, and path folding, on any bytes.
 */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void check_numbers(struct str s)
{
    int64_t i;
    double d;
    int64_t ns;
    if (str_to_i64(s, &i)) {
        must(s.len > 0);
    }
    if (str_to_double(s, &d)) {
        must(isfinite(d));
    }
    if (str_to_duration(s, &ns)) {
        must(ns >= 0 && ns <= (int64_t)3650 * 86400 * 1000000000);
    }
}

static void check_cuts(struct str s)
{
    struct str rest = s;
    size_t total = 0;
    size_t parts = 0;
    while (rest.ptr != NULL) {
        total += str_split(&rest, ',').len;
        parts++;
    }
    must(parts == 0 || total + parts - 1 == s.len);
    must(str_find(s, str_trim(s)) <= s.len);
    size_t good = str_utf8_prefix(s);
    must(good <= s.len && str_is_utf8(str_slice(s, 0, good)));
    must(str_is_utf8(s) == (good == s.len));
    struct str half = str_slice(s, 0, s.len / 2);
    must(str_starts(s, half));
    must(str_ends(s, str_slice(s, s.len / 2, s.len)));
    must(str_distance(half, half, 3) == 0 || half.len > 64);
}

static void check_path(struct str s)
{
    CLEANUP(free) char *path = xcalloc(s.len + 1, 1);
    if (s.len > 0) {
        memcpy(path, s.ptr, s.len);
    }
    char out[PATH_MAX];
    if (path_absolute(path, out, sizeof out, NULL) == 0) {
        must(out[0] == '/');
        must(strstr(out, "/./") == NULL && strstr(out, "/../") == NULL &&
             strstr(out, "//") == NULL);
    }
    must(path_base(str_of(path)).len <= s.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = str_n(data, size);
    check_numbers(s);
    check_cuts(s);
    check_path(s);
    return 0;
}

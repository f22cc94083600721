/* SPDX-License-Identifier: MIT
 *
 * The headers of git's patch format are only headers outside of a hunk: the counts in "@@ -1,2 +3,4
 * @@" say how many lines belong to it, whatever these lines look like.
 */
#include "record/patch_stat.h"

#include "base/buf.h"

struct reader {
    struct arena *arena;
    struct str text; /* what is left */
    struct patch_stat *stat;
    size_t room;
    struct patch_file *file;      /* NULL before the first */
    int64_t old_lines, new_lines; /* of the hunk, still to come */
};

/* --- paths --- */

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

static char unescape_letter(char c)
{
    static const char from[] = "abfnrtv";
    static const char to[] = "\a\b\f\n\r\t\v";
    for (size_t i = 0; from[i] != '\0'; i++) {
        if (from[i] == c) {
            return to[i];
        }
    }
    return c; /* \\ and \" */
}

/* The text between the quotes; `*ret_len` is the length with both quotes. */
static struct str unquote(struct arena *a, struct str s, size_t *ret_len)
{
    char *out = arena_alloc(a, s.len + 1);
    size_t n = 0;
    size_t i = 1;
    while (i < s.len && s.ptr[i] != '"') {
        char c = s.ptr[i++];
        if (c != '\\' || i >= s.len) {
            out[n++] = c;
        } else if (i + 2 < s.len && s.ptr[i] <= '3' && is_octal(s.ptr[i]) &&
                   is_octal(s.ptr[i + 1]) && is_octal(s.ptr[i + 2])) {
            out[n++] = (char)(((s.ptr[i] - '0') << 6) | ((s.ptr[i + 1] - '0') << 3) |
                              (s.ptr[i + 2] - '0'));
            i += 3;
        } else {
            out[n++] = unescape_letter(s.ptr[i++]);
        }
    }
    *ret_len = i < s.len ? i + 1 : i;
    return str_n(out, n);
}

static struct str read_path(struct arena *a, struct str s)
{
    size_t len;
    if (s.len > 0 && s.ptr[0] == '"') {
        return unquote(a, s, &len);
    }
    return str_slice(s, 0, str_find(s, STR("\t"))); /* git ends a name with spaces by a tab */
}

/* "a/x" and "b/x" to "x". */
static struct str strip_side(struct str path)
{
    bool has_side =
        path.len > 2 && path.ptr[1] == '/' && (path.ptr[0] == 'a' || path.ptr[0] == 'b');
    return has_side ? str_slice(path, 2, path.len) : path;
}

/* "a/x b/x": a name may contain spaces, but both names are the same here. */
static struct str read_both_sides(struct arena *a, struct str s)
{
    size_t len;
    if (s.len > 0 && s.ptr[0] == '"') {
        return strip_side(unquote(a, s, &len));
    }
    return strip_side(str_slice(s, 0, s.len / 2));
}

/* --- lines --- */

static bool take_prefix(struct str *line, struct str prefix)
{
    if (!str_starts(*line, prefix)) {
        return false;
    }
    *line = str_slice(*line, prefix.len, line->len);
    return true;
}

static void add_file(struct reader *r, struct str names)
{
    struct patch_stat *s = r->stat;
    if (s->count == r->room) {
        r->room = r->room == 0 ? 16 : r->room * 2;
        struct patch_file *more = arena_array(r->arena, r->room, sizeof *more);
        for (size_t i = 0; i < s->count; i++) {
            more[i] = s->files[i];
        }
        s->files = more;
    }
    r->file = &s->files[s->count++];
    *r->file = (struct patch_file) { .path = read_both_sides(r->arena, names), .status = 'M' };
}

static int64_t read_number(struct str *s, int64_t otherwise)
{
    int64_t n = 0;
    size_t i = 0;
    while (i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9' && n < INT32_MAX) {
        n = n * 10 + (s->ptr[i++] - '0');
    }
    *s = str_slice(*s, i, s->len);
    return i == 0 ? otherwise : n;
}

/* "1,2 +3,4 @@": a count that is missing is 1. */
static void begin_hunk(struct reader *r, struct str s)
{
    int64_t counts[2] = { 0, 0 };
    for (size_t i = 0; i < 2; i++) {
        (void)read_number(&s, 0);
        counts[i] = take_prefix(&s, STR(",")) ? read_number(&s, 0) : 1;
        (void)take_prefix(&s, STR(" +"));
    }
    r->old_lines = counts[0];
    r->new_lines = counts[1];
}

/* True if the line belongs to the hunk. */
static bool take_hunk_line(struct reader *r, struct str line)
{
    if (r->old_lines <= 0 && r->new_lines <= 0) {
        return false;
    }
    char c = line.len == 0 ? ' ' : line.ptr[0];
    if (c == '+') {
        r->file->added++;
        r->stat->added++;
        r->new_lines--;
    } else if (c == '-') {
        r->file->removed++;
        r->stat->removed++;
        r->old_lines--;
    } else if (c == ' ') {
        r->old_lines--;
        r->new_lines--;
    } else if (c != '\\') { /* "\ No newline at end of file" */
        r->old_lines = r->new_lines = 0;
        return false;
    }
    return true;
}

static void take_header(struct reader *r, struct str line)
{
    struct patch_file *f = r->file;
    if (take_prefix(&line, STR("@@ -"))) {
        begin_hunk(r, line);
    } else if (take_prefix(&line, STR("new file mode "))) {
        f->status = 'A';
    } else if (take_prefix(&line, STR("deleted file mode "))) {
        f->status = 'D';
    } else if (take_prefix(&line, STR("rename from ")) || take_prefix(&line, STR("copy from "))) {
        f->from = read_path(r->arena, line);
    } else if (take_prefix(&line, STR("rename to "))) {
        f->status = 'R';
        f->path = read_path(r->arena, line);
    } else if (take_prefix(&line, STR("copy to "))) {
        f->status = 'C';
        f->path = read_path(r->arena, line);
    } else if (str_starts(line, STR("GIT binary patch")) ||
               str_starts(line, STR("Binary files "))) {
        f->binary = true;
    } else if (take_prefix(&line, STR("+++ ")) && !str_eqc(line, "/dev/null")) {
        f->path = strip_side(read_path(r->arena, line));
    }
}

void patch_stat(struct arena *a, struct str text, struct patch_stat *ret)
{
    struct reader r = { .arena = a, .text = text, .stat = ret };
    *ret = (struct patch_stat) { 0 };
    while (r.text.len > 0) {
        const char *begin = r.text.ptr;
        struct str line = str_split(&r.text, '\n');
        if (r.file != NULL && take_hunk_line(&r, line)) {
            r.file->patch.len = (size_t)(line.ptr + line.len - r.file->patch.ptr);
            continue;
        }
        if (take_prefix(&line, STR("diff --git "))) {
            add_file(&r, line);
            r.file->patch.ptr = begin;
        } else if (r.file != NULL) {
            take_header(&r, line);
        }
        if (r.file != NULL) {
            r.file->patch.len = (size_t)(line.ptr + line.len - r.file->patch.ptr);
        }
    }
}

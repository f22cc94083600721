/* SPDX-License-Identifier: MIT
 *
 * The last lines that the harness printed, for messages about its failure.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/redact.h"
#include "run/run_priv.h"

/* Of a message, which must have room for the rest. */
enum { LINES_MAX = 3, TEXT_MAX = 240, TAIL_MAX = 16 << 10 };

void last_output_read(struct run *run, const char *log, struct buf *ret)
{
    struct stat st;
    CLEANUP(fd)
    int fd = openat(run->record.dir.dir_fd, log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return;
    }
    off_t from = st.st_size > (off_t)ret->max ? st.st_size - (off_t)ret->max : 0;
    if (lseek(fd, from, SEEK_SET) >= 0) {
        (void)!file_read_fd(fd, log, ret->max, ret, NULL);
    }
}

static bool is_shown(char c)
{
    return (unsigned char)c >= 0x20 && c != 0x7f;
}

/* One line of printable characters; sequences that move the cursor or set colours are left out. */
static void add_line(struct buf *out, struct str line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\033' && i + 1 < line.len && line.ptr[i + 1] == '[') {
            for (i += 2; i < line.len && (line.ptr[i] < '@' || line.ptr[i] > '~'); i++) {
            }
        } else if (is_shown(line.ptr[i])) {
            buf_add(out, str_slice(line, i, i + 1));
        }
    }
}

static const char *last_lines(struct run *run, struct str text)
{
    struct str lines[LINES_MAX] = { { 0 } };
    size_t n = 0;
    while (text.len > 0) {
        struct str line = str_trim(str_split(&text, '\n'));
        if (line.len > 0) {
            lines[n++ % LINES_MAX] = line;
        }
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = n > LINES_MAX ? n - LINES_MAX : 0; i < n; i++) {
        buf_adds(&out, out.len == 0 ? "" : " | ");
        add_line(&out, lines[i % LINES_MAX]);
    }
    struct str all = str_trim(buf_str(&out));
    struct str end = str_slice(all, all.len > TEXT_MAX ? all.len - TEXT_MAX : 0, all.len);
    while (end.len > 0 && ((unsigned char)end.ptr[0] & 0xc0) == 0x80) {
        end = str_slice(end, 1, end.len); /* the rest of a character */
    }
    end = str_slice(end, 0, str_utf8_prefix(end));
    return end.len == 0
               ? NULL
               : arena_printf(run->arena, "%s%.*s", end.len < all.len ? "…" : "", STR_ARG(end));
}

const char *last_output(struct run *run)
{
    static const char *const logs[] = { "stderr.log", "stdout.log" };
    /* What a harness with a protocol prints to standard output is no message to people. */
    size_t n = run->plan->driver->kind == DRIVER_DIALOGUE ? 1 : ARRAY_LEN(logs);
    logfile_flush(&run->record.out);
    logfile_flush(&run->record.err);
    for (size_t i = 0; i < n; i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(TAIL_MAX);
        last_output_read(run, logs[i], &text);
        const char *lines = last_lines(run, buf_str(&text));
        if (lines != NULL) {
            return arena_printf(run->arena, "; its last output: %s", lines);
        }
    }
    return "";
}

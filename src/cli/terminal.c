/* SPDX-License-Identifier: MIT
 *
 * What the stream is, how wide, and whether it likes colour.
 */
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WIDTH_DEFAULT = 80,
    WIDTH_TEXT_MAX = 100,
    WIDTH_MIN = 20, /* below that nothing can be laid out; the terminal wraps then */
    WIDTH_MAX = 1000,
};

static bool is_dumb(void)
{
    const char *term = getenv("TERM");
    return term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0;
}

static bool wants_color(enum terminal_color choice, bool tty)
{
    if (choice != TERMINAL_COLOR_AUTO) {
        return choice == TERMINAL_COLOR_ON;
    }
    const char *no_color = getenv("NO_COLOR");
    return tty && !is_dumb() && (no_color == NULL || no_color[0] == '\0');
}

void terminal_init(struct terminal *t, FILE *stream, enum terminal_color color)
{
    int fd = fileno(stream); /* -1 for a memory stream */
    *t = (struct terminal) { .stream = stream };
    t->tty = fd >= 0 && isatty(fd) != 0;
    t->color = wants_color(color, t->tty);
    t->live = t->tty && !is_dumb();
}

static size_t width_of_environment(void)
{
    int64_t n;
    const char *columns = getenv("COLUMNS");
    if (columns == NULL || !str_to_i64(str_of(columns), &n) || n < WIDTH_MIN || n > WIDTH_MAX) {
        return 0;
    }
    return (size_t)n;
}

size_t terminal_width(const struct terminal *t)
{
    size_t width = width_of_environment();
    struct winsize size;
    if (width == 0 && t->tty && ioctl(fileno(t->stream), TIOCGWINSZ, &size) == 0) {
        width = size.ws_col;
    }
    if (width == 0) { /* whoever reads it by lines wants a row in one */
        return t->tty ? WIDTH_DEFAULT : WIDTH_MAX;
    }
    return width < WIDTH_MIN ? WIDTH_MIN : width;
}

size_t terminal_text_width(const struct terminal *t)
{
    if (!t->tty) {
        return WIDTH_DEFAULT;
    }
    size_t width = terminal_width(t);
    return width > WIDTH_TEXT_MAX ? WIDTH_TEXT_MAX : width;
}

void terminal_write(struct terminal *t, struct str text)
{
    if (text.len > 0) {
        (void)!fwrite(text.ptr, 1, text.len, t->stream); /* ferror() remembers a failure */
    }
}

bool terminal_ready(const struct terminal *t)
{
    struct pollfd p = { .fd = fileno(t->stream), .events = POLLOUT };
    return p.fd < 0 || poll(&p, 1, 0) != 0; /* an error is better met by the write */
}

int terminal_flush(struct terminal *t, struct err *e)
{
    errno = 0;
    bool failed = fflush(t->stream) != 0;
    if (failed || ferror(t->stream) != 0) {
        const char *name = t->stream == stderr ? "standard error" : "standard output";
        return errno != 0 ? ERR_SYS(e, "cannot write to %s", name)
                          : ERR(e, ERR_SYS, "cannot write to %s", name);
    }
    return 0;
}

static const char *const codes[] = {
    [STYLE_PLAIN] = "",  [STYLE_BOLD] = "1", [STYLE_DIM] = "2",   [STYLE_GOOD] = "32",
    [STYLE_WARN] = "33", [STYLE_BAD] = "31", [STYLE_NAME] = "36",
};

void style_begin(struct buf *out, bool color, enum style style)
{
    if (color && style != STYLE_PLAIN) {
        buf_addf(out, "\033[%sm", codes[style]);
    }
}

void style_end(struct buf *out, bool color, enum style style)
{
    if (color && style != STYLE_PLAIN) {
        buf_adds(out, "\033[0m");
    }
}

void style_add(struct buf *out, bool color, enum style style, const char *text)
{
    style_begin(out, color, style);
    buf_adds(out, text);
    style_end(out, color, style);
}

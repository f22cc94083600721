/* SPDX-License-Identifier: MIT
 *
 * struct terminal: one output stream and what it can do. main() makes one for stdout and one for
 * stderr; commands compose their output in a buf and write it here. Write errors are not reported
 * by each call: terminal_flush() says once, at the end, whether everything got out.
 *
 *   style_add(&b, cli->out.color, STYLE_BOLD, "Options:");
 *   terminal_write(&cli->out, buf_str(&b));
 *
 * Colour: --color and --no-color decide; else off when NO_COLOR is set and not empty, when TERM is
 * unset or "dumb", or when the stream is no terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum terminal_color { TERMINAL_COLOR_AUTO, TERMINAL_COLOR_ON, TERMINAL_COLOR_OFF };

struct terminal {
    FILE *stream;
    bool tty;
    bool color;
    bool live; /* a line can be redrawn in place: a terminal that is not dumb */
};

void terminal_init(struct terminal *t, FILE *stream, enum terminal_color color);

/* Asked anew each time, so a resized window needs no signal handler. COLUMNS wins if it is set to
 * a sensible number; 80 on a terminal that does not say, no limit worth mentioning elsewhere. */
size_t terminal_width(const struct terminal *t);
/* The width for running text: that of the terminal, but lines of more than 100 columns are hard
 * to read; always 80 when the stream is no terminal, so that piped output does not change. */
size_t terminal_text_width(const struct terminal *t);

void terminal_write(struct terminal *t, struct str text);
/* True when a write would not block: someone may have typed Ctrl-S, and a run must go on. */
bool terminal_ready(const struct terminal *t);
/* ERR_SYS when something written before, or now, did not get out. */
int terminal_flush(struct terminal *t, struct err *e) MUST_USE;

enum style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_GOOD, /* green */
    STYLE_WARN, /* yellow */
    STYLE_BAD,  /* red */
    STYLE_NAME, /* cyan */
};

/* `text` in a style, or plain when color is false. The text must be clean (cli/text.h). */
void style_add(struct buf *out, bool color, enum style style, const char *text);
void style_begin(struct buf *out, bool color, enum style style);
void style_end(struct buf *out, bool color, enum style style);

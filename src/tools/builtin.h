/* SPDX-License-Identifier: MIT
 *
 * The tools of the built-in agent (adapter `basic`), as the program cinch-tools carries them out:
 * shell, read, write, edit, list, search. One call is one process in the agent's sandbox:
 *
 *   cinch-tools NAME
 *   standard input   the arguments, one JSON object that fits the schema in builtin_tools.c
 *   standard output  {"message": text for the model, "success": true or false}
 *
 * The program runs where any other program of the agent would run, so the kernel decides what it
 * may read and write. What it prints is bounded, whatever is in the files: a model pays for every
 * byte. A mistake of the model (no such file, text that is not there) is an answer that says what
 * to do instead; the bridge then rolls back what the call has written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/macro.h"
#include "base/str.h"

struct json;

#define BUILTIN_TEXT_MAX  ((size_t)48 << 10) /* of one answer, without notes about what was cut */
#define BUILTIN_LINES_MAX 2000
#define BUILTIN_LINE_MAX  ((size_t)2000)      /* bytes of one line that are shown */
#define BUILTIN_FILE_MAX  ((size_t)16 << 20)  /* of a file that is edited or searched */
#define BUILTIN_WRITE_MAX ((size_t)64 << 20)  /* of a file after an edit */
#define BUILTIN_SCAN_MAX  ((size_t)256 << 20) /* of a file that is read in parts */

struct builtin_answer {
    bool failed;
    struct buf text;
};

/* A failure with its reason; replaces what was there. */
void builtin_fail(struct builtin_answer *ret, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* NULL: there is no tool of that name. */
typedef void builtin_function(const struct json *arguments, struct builtin_answer *ret);
builtin_function *builtin_find(const char *name);

/* The file at `path`, opened for reading; a failed answer and -1 for what is no regular file. */
int builtin_open(const struct json *arguments, struct builtin_answer *ret);
/* The argument `path`; NULL and a failed answer when it cannot be a path. */
const char *builtin_path(const struct json *arguments, const char *otherwise,
                         struct builtin_answer *ret);

/* builtin_file.c, builtin_find.c, builtin_shell.c */
builtin_function builtin_read, builtin_write, builtin_edit, builtin_list, builtin_search,
    builtin_shell;

/* --- text (builtin_text.c): no files, no processes --- */

bool builtin_is_binary(struct str head); /* a NUL byte among the first bytes */
/* Appends at most `max` bytes of a line, as valid UTF-8; returns the number of bytes that are shown
 * as U+FFFD because they are none. */
size_t builtin_add_line(struct buf *out, struct str line, size_t max);

/* Beginning and end of a stream of any length. */
struct builtin_excerpt {
    char head[24 << 10], tail[24 << 10];
    size_t head_len, tail_at; /* tail is a ring; tail_at is where the next byte goes */
    unsigned long long total;
};
void builtin_excerpt_add(struct builtin_excerpt *x, struct str bytes);
void builtin_excerpt_write(const struct builtin_excerpt *x, struct buf *out);

struct builtin_replace {
    struct str text, from, to;
    bool all;
};
/* The number of places where `from` occurs, without overlaps; the new text in `out` if it is one
 * place, or any number with `all`. SIZE_MAX: the result would be too large. Files with CRLF may be
 * edited by text with plain line ends. */
size_t builtin_replace_text(const struct builtin_replace *r, struct buf *out);
size_t builtin_line_of(struct str text, size_t offset); /* counted from 1 */
/* The line where `from` would stand if white space at both ends of lines did not count; 0: none. */
size_t builtin_near_match(struct str text, struct str from);

/* A pattern of the kind that models write, for regcomp(REG_EXTENDED): \d and \D become classes. */
void builtin_pattern(struct str pattern, bool literal, struct buf *out);

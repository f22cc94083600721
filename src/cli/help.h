/* SPDX-License-Identifier: MIT
 *
 * Help in four shapes, all made from the table of commands: the overview, the page of one command,
 * the man page, and docs/cli.md. Pure: table in, text out.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

struct command;
struct option;

struct help_style {
    size_t width;
    bool color;
};

void help_overview(struct help_style style, struct buf *out); /* at most 23 lines of 80 columns */
void help_command(const struct command *c, struct help_style style, struct buf *out);
void help_man(struct buf *out);      /* cinch.1 in mdoc(7) */
void help_markdown(struct buf *out); /* docs/cli.md */

/* --- pieces that the shapes share --- */

/* "[OPTIONS] DIR", one per call from i = 0 on; false when there are no more. Made from the
 * positionals when the command gives no usage of its own. */
bool help_usage(const struct command *c, size_t i, struct buf *out);
/* The help of an option with what follows from its entry: "… (default: 10m; repeatable)". */
void help_option(const struct option *o, struct buf *out);

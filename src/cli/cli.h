/* SPDX-License-Identifier: MIT
 *
 * struct cli: what every command is given: the two streams, the format that was asked for, memory.
 * Made by main, lives as long as the process.
 *
 * Results go to stdout with cli_print(); progress and messages to stderr. A command never prints an
 * error: it returns it, and cli_main() prints it once, as "cinch: message" and an optional hint, or
 * with --format json as {"error":{"code","message","exit","hint"}}.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/terminal.h"

enum cli_format {
    CLI_TEXT,
    CLI_JSON,  /* one JSON object on stdout, no progress */
    CLI_QUIET, /* only what a script needs (a path, names), or nothing; no progress */
};

struct json;

struct cli {
    enum cli_format format;
    struct terminal out, err;
    struct arena *arena; /* for whatever the command needs until the end */
    char hint[160];      /* see cli_hint() */
    int refused_status;  /* of a run that was refused and has a record; 0: that of the error */
    bool has_verdict;    /* the exit status reports a run: a failed write to stdout keeps it */
};

void cli_print(struct cli *cli, const struct buf *text);        /* to stdout */
void cli_print_json(struct cli *cli, const struct json *value); /* indented, to stdout */
/* A line under an error that says what to do: cli_hint(cli, "see 'cinch adapters'"). */
void cli_hint(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The whole program but for process set-up; returns the exit status. argv[0] is the program. */
int cli_main(struct cli *cli, int argc, const char *const *argv);

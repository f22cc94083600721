/* SPDX-License-Identifier: MIT
 *
 * struct command: one entry of the table that everything about the command line is made from:
 * parsing, `cinch --help`, `cinch help NAME`, the man page, docs/cli.md, and three completions.
 *
 * To add a command:
 *  1. write src/cli/cmd_NAME.c: its option table, its function, and at the end
 *         const struct command cmd_NAME = { .name = "NAME", .summary = "…", .run = run_NAME, … };
 *  2. add the name to COMMAND_LIST below and the file to src/cli/meson.build;
 *  3. `ninja -C build docs-update` rewrites docs/cli.md (a test fails while it is stale).
 *
 * The test `commands` checks the entry: names, wording, widths, duplicates.
 *
 * This header is all that a command needs to include of cli. The function gets parsed options and
 * returns an exit status (0-255), or -code with *e filled. It writes its result with cli_print()
 * and never prints errors: main does, once, for everybody. A hint for the user ("see 'cinch
 * adapters'") is left with cli_hint().
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/option.h"

/* Order of the help. Each NAME is a `const struct command cmd_NAME`. */
#define COMMAND_LIST(X) \
    X(run)              \
    X(demo)             \
    X(init)             \
    X(runs)             \
    X(tail)             \
    X(cancel)           \
    X(show)             \
    X(transcript)       \
    X(diff)             \
    X(apply)            \
    X(query)            \
    X(task)             \
    X(config)           \
    X(schema)           \
    X(recover)          \
    X(clean)            \
    X(rm)               \
    X(images)           \
    X(cassette)         \
    X(gateway)          \
    X(mcp)              \
    X(adapters)         \
    X(ack)              \
    X(doctor)           \
    X(completion)       \
    X(help)             \
    X(version)

struct command_example {
    const char *line; /* what to type */
    const char *why;  /* lower case, no full stop */
};

struct command {
    const char *name;
    const char *summary;                    /* at most 48 columns: `cinch --help` is one screen */
    bool minor;                             /* the overview has its name only */
    const char *const *usage;               /* without "cinch NAME"; NULL-terminated; NULL: none */
    const char *const *description;         /* paragraphs; NULL-terminated */
    const struct command_example *examples; /* ends with line NULL; may be NULL */
    const struct option *options;           /* may be NULL; see command_options() */
    /* Options that are made when they are needed, instead of `options`; NULL: none. */
    const struct option *(*make_options)(struct arena *a);
    const struct positional *positionals; /* may be NULL */
    const char *rest;                     /* see struct option_spec */
    int (*run)(struct cli *cli, const struct options *opt, struct err *e);
};

#define X(name) extern const struct command cmd_##name;
COMMAND_LIST(X)
#undef X

/* NULL-terminated, in the order of the help. */
const struct command *const *command_all(void);
const struct command *command_find(const char *name);
/* Options of a command, in the arena where they have to be made; may be NULL. */
const struct option *command_options(const struct command *c, struct arena *a);
/* Options that every command accepts, and that may stand before the command. A command may have one
 * of them in its own table, with more words. */
const struct option *command_globals(void);
/* "unknown command 'shwo'; did you mean show?"; returns -ERR_USAGE. */
int command_unknown(const char *name, struct err *e);

/* SPDX-License-Identifier: MIT
 *
 * Options as data: a command states what it accepts in const tables, and from those tables come the
 * parser, the help text, the man page, docs/cli.md and the shell completions. Nothing about an
 * option is written down twice.
 *
 *   static const struct option options[] = {
 *       { "timeout", 't', OPTION_DURATION, .value = "TIME", .help = "stop the run after TIME",
 *         .shown = "10m", .flags = OPTION_POSITIVE },
 *       { "env", 'e', OPTION_PAIR, .value = "NAME[=VALUE]", .help = "pass a variable",
 *         .flags = OPTION_REPEAT | OPTION_BARE },
 *       { "force", 'f', OPTION_FLAG, .help = "archive an old output directory" },
 *       { 0 },
 *   };
 *   struct options *opt;
 *   option_parse(&(struct option_spec){ .options = options }, arena, argc, argv, &opt, e);
 *   nsec t = options_duration(opt, "timeout", 600 * NSEC_PER_SEC);
 *
 * Accepted forms: --name=value, --name value, -n value, -nvalue, grouped flags -qv, --no-name for
 * OPTION_NEGATABLE, options after positionals. "-" alone and anything that begins with "- " is a
 * positional; "--" ends the options. A value that begins with '-' (and is no negative number) must
 * be written --name=-value, so that a forgotten value never swallows the next option.
 *
 * Every failure is ERR_USAGE with one line that names the option and says what would be right.
 *
 * Getters take the long name; a name that is not in the tables, or of another kind, is a bug and
 * aborts. All strings are borrowed from argv; the rest lives in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct buf;

enum option_kind {
    OPTION_FLAG,
    OPTION_STRING,
    OPTION_INT,
    OPTION_DURATION, /* str_to_duration(): 600, 90s, 10m, 1h30m, 250ms */
    OPTION_PATH,     /* a file or directory name; not empty */
    OPTION_ENUM,     /* one of .words */
    OPTION_PAIR,     /* NAME=VALUE; with OPTION_BARE also NAME alone */
};

enum option_flag {
    OPTION_REPEAT = 1u << 0,     /* may be given several times: a list; for a flag, a count */
    OPTION_NEGATABLE = 1u << 1,  /* --no-name exists; OPTION_FLAG only */
    OPTION_HIDDEN = 1u << 2,     /* works, but is in no help, completion or page */
    OPTION_BARE = 1u << 3,       /* OPTION_PAIR: the value may be missing */
    OPTION_POSITIVE = 1u << 4,   /* OPTION_DURATION: zero is refused */
    OPTION_LAST = 1u << 5,       /* --help: parsing ends here, what follows is not looked at */
    OPTION_DEPRECATED = 1u << 6, /* each use is a warning; help: "use --other"; also hide it */
};

/* What a shell offers as value. FROM_KIND: files for OPTION_PATH, the words for OPTION_ENUM. */
enum option_complete {
    COMPLETE_FROM_KIND,
    COMPLETE_NOTHING,
    COMPLETE_FILE,
    COMPLETE_DIRECTORY,
    COMPLETE_ADAPTER, /* the names that `cinch adapters --format quiet` prints */
    COMPLETE_COMMAND, /* our own commands */
    COMPLETE_WORDS,   /* positionals: one of .words */
};

struct option {
    const char *name; /* long name without dashes; NULL ends a table */
    char letter;      /* short form, 0: none */
    enum option_kind kind;
    const char *value;             /* placeholder: "FILE"; NULL: a flag, or the words */
    const char *help;              /* lower case, no full stop */
    const char *shown;             /* default as the help shows it, or NULL */
    const char *section;           /* heading; NULL: the heading of the option before */
    const char *const *words;      /* OPTION_ENUM: NULL-terminated */
    int64_t min, max;              /* OPTION_INT: range, unless both are 0 */
    unsigned flags;                /* enum option_flag */
    enum option_complete complete; /* what a shell offers */
    /* Earlier forms: still accepted for one release, with a warning; in no help or completion. */
    const char *old_name; /* NULL: none */
    char old_letter;      /* 0: none */
};

struct positional {
    const char *name; /* "DIR"; NULL ends a table */
    const char *help;
    bool optional;
    bool repeat; /* the last one may take all that follow */
    enum option_complete complete;
    const char *const *words; /* checked by the command, offered by the shell; may be NULL */
};

struct option_spec {
    const struct option *options;         /* of the command; may be NULL */
    const struct option *globals;         /* accepted as well; may be NULL */
    const struct positional *positionals; /* NULL: none */
    /* placeholder of what may follow "--" ("COMMAND..."), kept apart for options_rest(); NULL: what
     * follows "--" are positionals */
    const char *rest;
    bool stop_early; /* stop at the first positional; options_used() says where */
};

struct options;

/* argv[0] is the first argument, not the program. On success *ret lives in `a`. */
int option_parse(const struct option_spec *spec, struct arena *a, int argc, const char *const *argv,
                 struct options **ret, struct err *e) MUST_USE;

bool options_given(const struct options *o, const char *name);
bool options_flag(const struct options *o, const char *name, bool otherwise);
int options_count(const struct options *o, const char *name); /* of a repeatable flag */
/* Also for OPTION_PATH, OPTION_ENUM and OPTION_PAIR. */
const char *options_string(const struct options *o, const char *name, const char *otherwise);
int64_t options_int(const struct options *o, const char *name, int64_t otherwise);
nsec options_duration(const struct options *o, const char *name, nsec otherwise);
/* All values in the order given, NULL-terminated; empty, not NULL, when there are none. */
const char *const *options_list(const struct options *o, const char *name);

size_t options_arg_count(const struct options *o);
const char *options_arg(const struct options *o, size_t i); /* NULL when there are fewer */
const char *const *options_args(const struct options *o);   /* NULL-terminated */
const char *const *options_rest(const struct options *o);   /* after "--"; NULL if there was none */
size_t options_used(const struct options *o);               /* arguments looked at */

/* Warnings about earlier forms that were given: "-f is deprecated: use --force". The list ends with
 * NULL. */
const char *const *options_warnings(const struct options *o);

/* "NAME=VALUE" taken apart; false when there is no '=': *ret_value is then empty. */
bool option_pair(const char *text, struct str *ret_name, struct str *ret_value);

/* The nearest of `words` (NULL-terminated) for "did you mean", or NULL when none is near. */
const char *option_suggest(const char *given, const char *const *words);

/* " FILE", " text|json", or nothing for a flag. */
void option_placeholder(const struct option *o, struct buf *out);
/* The option as text: "-t, --timeout TIME", "--[no-]color"; into `out`, which is returned. */
#define OPTION_TEXT_LEN 96
const char *option_text(const struct option *o, char out[OPTION_TEXT_LEN]);

/* SPDX-License-Identifier: MIT
 *
 * Shell completion scripts, made from the table of commands. Each script stands alone: it needs no
 * helper library, and asks cinch itself only for names that are not known in advance (adapters).
 * Names and words in the tables are plain (letters, digits, '-'), which the test `command` checks,
 * so only help texts need quoting.
 */
#pragma once

#include "base/buf.h"
#include "cli/option.h"

struct completion_shell {
    const char *name; /* NULL ends the table */
    void (*write)(struct buf *out);
};

extern const struct completion_shell completion_shells[];
extern const char *const completion_shell_names[]; /* the same, NULL-terminated */

void completion_bash(struct buf *out);
void completion_zsh(struct buf *out);
void completion_fish(struct buf *out);

/* What to offer for the value of an option, COMPLETE_FROM_KIND resolved. */
enum option_complete completion_of(const struct option *o);
/* The words joined by spaces. */
void completion_words(const char *const *words, struct buf *out);
/* s in single quotes for the shell: sh ends, escapes and begins anew; fish takes a backslash. */
void completion_quote_sh(const char *s, struct buf *out);

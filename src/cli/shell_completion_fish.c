/* SPDX-License-Identifier: MIT
 *
 * Completion for fish: one `complete` line per option, argument and command.
 */
#include "cli/shell_completion.h"

#include "cli/command.h"

static void quote(const char *s, struct buf *out)
{
    buf_adds(out, "'");
    for (; *s != '\0'; s++) {
        buf_adds(out, *s == '\'' || *s == '\\' ? "\\" : "");
        buf_add(out, str_n(s, 1));
    }
    buf_adds(out, "'");
}

/* -x: a value is needed and is no file; -r -F: a value is needed and is a file. */
static void add_offer(struct buf *out, enum option_complete complete, const char *const *words)
{
    switch (complete) {
    case COMPLETE_FILE:
        buf_adds(out, " -r -F");
        break;
    case COMPLETE_DIRECTORY:
        buf_adds(out, " -x -a '(__fish_complete_directories)'");
        break;
    case COMPLETE_ADAPTER:
        buf_adds(out, " -x -a '(cinch adapters --format quiet 2>/dev/null)'");
        break;
    case COMPLETE_COMMAND:
        buf_adds(out, " -x -a '");
        for (const struct command *const *c = command_all(); *c != NULL; c++) {
            buf_addf(out, "%s%s", c == command_all() ? "" : " ", (*c)->name);
        }
        buf_adds(out, "'");
        break;
    case COMPLETE_WORDS:
        buf_adds(out, " -x -a '");
        completion_words(words, out);
        buf_adds(out, "'");
        break;
    case COMPLETE_NOTHING:
    case COMPLETE_FROM_KIND:
        buf_adds(out, " -x");
        break;
    }
}

static void add_begin(struct buf *out, const char *command)
{
    buf_adds(out, "complete -c cinch");
    if (command != NULL) {
        buf_addf(out, " -n '__fish_seen_subcommand_from %s'", command);
    }
}

static void add_options(struct buf *out, const char *command, const struct option *o)
{
    for (; o != NULL && o->name != NULL; o++) {
        if ((o->flags & OPTION_HIDDEN) != 0) {
            continue;
        }
        add_begin(out, command);
        buf_addf(out, " -l %s", o->name);
        if (o->letter != 0) {
            buf_addf(out, " -s %c", o->letter);
        }
        if (o->kind != OPTION_FLAG) {
            add_offer(out, completion_of(o), o->words);
        }
        buf_adds(out, " -d ");
        quote(o->help, out);
        buf_adds(out, "\n");
        if ((o->flags & OPTION_NEGATABLE) != 0) {
            add_begin(out, command);
            buf_addf(out, " -l no-%s\n", o->name);
        }
    }
}

void completion_fish(struct buf *out)
{
    CLEANUP(arena) struct arena *a = arena_new();
    buf_adds(out, "# fish completion for cinch; made by 'cinch completion fish'\n\n"
                  "complete -c cinch -f\n");
    add_options(out, NULL, command_globals());
    for (const struct command *const *c = command_all(); *c != NULL; c++) {
        buf_addf(out, "\ncomplete -c cinch -n __fish_use_subcommand -a %s -d ", (*c)->name);
        quote((*c)->summary, out);
        buf_adds(out, "\n");
        add_options(out, (*c)->name, command_options(*c, a));
        for (const struct positional *p = (*c)->positionals; p != NULL && p->name != NULL; p++) {
            add_begin(out, (*c)->name);
            add_offer(out, p->complete, p->words);
            buf_adds(out, "\n");
        }
        if ((*c)->rest != NULL) {
            buf_addf(out,
                     "complete -c cinch -n '__fish_seen_subcommand_from %s; and contains -- "
                     "-- (commandline -opc)' -F\n",
                     (*c)->name);
        }
    }
}

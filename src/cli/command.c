/* SPDX-License-Identifier: MIT
 *
 * The table of commands and the options that all of them share.
 */
#include "cli/command.h"

#include <stddef.h>
#include <string.h>

#include "base/macro.h"

static const struct command *const commands[] = {
#define X(name) &cmd_##name,
    COMMAND_LIST(X)
#undef X
        NULL,
};

static const char *const formats[] = { "text", "json", "quiet", NULL };

static const struct option globals[] = {
    { "format", 0, OPTION_ENUM, .words = formats, .shown = "text", .section = "Global options",
      .help = "set the output format; quiet prints only what a script needs" },
    { "quiet", 'q', OPTION_FLAG, .help = "same as --format quiet" },
    { "verbose", 'v', OPTION_FLAG,
      .help = "log to standard error; repeat to include debug messages", .flags = OPTION_REPEAT },
    { "color", 0, OPTION_FLAG, .help = "force or disable colour", .shown = "colour on a terminal",
      .flags = OPTION_NEGATABLE },
    { "help", 'h', OPTION_FLAG, .help = "print this help", .flags = OPTION_LAST },
    { "version", 'V', OPTION_FLAG, .help = "print the version", .flags = OPTION_LAST },
    { 0 },
};

const struct command *const *command_all(void)
{
    return commands;
}

const struct option *command_options(const struct command *c, struct arena *a)
{
    return c->make_options != NULL ? c->make_options(a) : c->options;
}

const struct option *command_globals(void)
{
    return globals;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

int command_unknown(const char *name, struct err *e)
{
    const char *names[ARRAY_LEN(commands)];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        names[i] = commands[i] == NULL ? NULL : commands[i]->name;
    }
    const char *near = option_suggest(name, names);
    if (near != NULL) {
        return ERR(e, ERR_USAGE, "unknown command '%.80s'; did you mean %s?", name, near);
    }
    return ERR(e, ERR_USAGE, "unknown command '%.80s'", name);
}

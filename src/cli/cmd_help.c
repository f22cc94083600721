/* SPDX-License-Identifier: MIT
 *
 * cinch help: the same pages as --help, and the generated documents.
 */
#include "cli/command.h"
#include "cli/help.h"

static const struct option options[] = {
    { "man", 0, OPTION_FLAG, .help = "print the man page" },
    { "markdown", 0, OPTION_FLAG, .help = "print the manual as Markdown" },
    { 0 },
};

static const struct positional positionals[] = {
    { "COMMAND", "the command to explain (default: an overview)", .optional = true,
      .complete = COMPLETE_COMMAND },
    { 0 },
};

static int run_help(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct help_style style = { terminal_text_width(&cli->out), cli->out.color };
    const char *name = options_arg(opt, 0);
    const struct command *c = name == NULL ? NULL : command_find(name);
    bool man = options_flag(opt, "man", false);
    bool markdown = options_flag(opt, "markdown", false);
    if (man + markdown + (name != NULL) > 1) {
        return ERR(e, ERR_USAGE, "use only one of COMMAND, --man and --markdown");
    }
    if (name != NULL && c == NULL) {
        cli_hint(cli, "see 'cinch --help'");
        return command_unknown(name, e);
    }
    if (man) {
        help_man(&out);
    } else if (markdown) {
        help_markdown(&out);
    } else if (c != NULL) {
        help_command(c, style, &out);
    } else {
        help_overview(style, &out);
    }
    cli_print(cli, &out);
    return 0;
}

static const char *const description[] = {
    "Prints the same pages as 'cinch COMMAND --help' and 'cinch --help'. These pages, the man page "
    "and the shell completions are generated from one table, so they always agree.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch help show", "explain one command" },
    { "cinch help --man | man -l -", "read the whole manual without installing it" },
    { 0 },
};

const struct command cmd_help = {
    .name = "help",
    .summary = "explain a command",
    .minor = true,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_help,
};

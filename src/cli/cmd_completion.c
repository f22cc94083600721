/* SPDX-License-Identifier: MIT
 *
 * cinch completion: a completion script for a shell.
 */
#include "cli/command.h"
#include "cli/shell_completion.h"

#include <string.h>

static const struct positional positionals[] = {
    { "SHELL", "bash, zsh or fish", .complete = COMPLETE_WORDS, .words = completion_shell_names },
    { 0 },
};

static int run_completion(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const char *name = options_arg(opt, 0);
    for (const struct completion_shell *s = completion_shells; s->name != NULL; s++) {
        if (strcmp(s->name, name) == 0) {
            s->write(&out);
            cli_print(cli, &out);
            return 0;
        }
    }
    return ERR(e, ERR_USAGE, "no completion for shell '%.80s'; use bash, zsh or fish", name);
}

static const char *const description[] = {
    "Prints a script that completes commands, options and their values in the shell. An installed "
    "cinch includes these scripts; use this command if cinch is not installed, or to store a "
    "script in another location.",
    NULL,
};

static const struct command_example examples[] = {
    { "source <(cinch completion bash)", "enable completion in this bash" },
    { "cinch completion zsh > ~/.zfunc/_cinch", "store it in a directory of zsh's fpath" },
    { "cinch completion fish | source", "enable completion in this fish" },
    { 0 },
};

const struct command cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .minor = true,
    .description = description,
    .examples = examples,
    .positionals = positionals,
    .run = run_completion,
};

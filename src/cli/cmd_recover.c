/* SPDX-License-Identifier: MIT
 *
 * cinch recover: closes the records of runs whose cinch died.
 */
#include "cli/command.h"
#include "cli/text.h"
#include "run/recover.h"

static int run_recover_command(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < options_arg_count(opt); i++) {
        bool closed;
        int r = run_recover(options_arg(opt, i), &closed, e);
        if (r < 0) {
            cli_print(cli, &out);
            return r;
        }
        text_clean(&out, str_of(options_arg(opt, i)), TEXT_LINE);
        buf_adds(&out, closed ? ": closed, reason interrupted\n" : ": complete, nothing to do\n");
    }
    if (cli->format == CLI_TEXT) {
        cli_print(cli, &out);
    }
    return 0;
}

static const char *const usage[] = { "DIR...", NULL };

static const char *const description[] = {
    "A run whose cinch was killed leaves a record without an end. This closes it: the reason is "
    "`interrupted`, everything that was written is kept, and manifest, metrics and result are "
    "there. The "
    "next `cinch run` with the same output directory does it too. A finished record is not "
    "touched, a "
    "run that is still alive is refused.",
    NULL,
};

static const struct positional positionals[] = {
    { "DIR", "a run directory", .repeat = true, .complete = COMPLETE_DIRECTORY },
    { 0 },
};

const struct command cmd_recover = {
    .name = "recover",
    .summary = "close the record of a run that died",
    .usage = usage,
    .description = description,
    .positionals = positionals,
    .run = run_recover_command,
};

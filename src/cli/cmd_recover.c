/* SPDX-License-Identifier: MIT
 *
 * cinch recover: closes the records of runs whose cinch died.
 */
#include "cli/command.h"
#include "cli/run_name.h"
#include "cli/text.h"
#include "run/recover_run.h"

static int run_recover_command(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < options_arg_count(opt); i++) {
        enum reason reason;
        const char *path;
        int r = run_name_find(cli, options_arg(opt, i), &path, e);
        r = r < 0 ? r : run_recover(path, &reason, e);
        if (r < 0) {
            cli_print(cli, &out);
            return r;
        }
        text_clean(&out, str_of(path), TEXT_LINE);
        if (reason == REASON_NONE) {
            buf_adds(&out, ": complete, nothing to do\n");
        } else {
            buf_addf(&out, ": closed, reason %s\n", reason_word(reason));
        }
    }
    if (cli->format == CLI_TEXT) {
        cli_print(cli, &out);
    }
    return 0;
}

static const char *const usage[] = { "RUN...", NULL };

static const char *const description[] = {
    "If cinch is killed during a run, the record stays open. This command closes it: it keeps "
    "everything that was written and adds the manifest, metrics and result. The reason is "
    "`interrupted`, unless the run had already recorded another one. The next `cinch run` with the "
    "same output directory also does this. A finished record is not changed, and a run that is "
    "still in progress is refused.",
    NULL,
};

static const struct positional positionals[] = {
    { "RUN", "a run: path, last, or part of an id", .repeat = true,
      .complete = COMPLETE_DIRECTORY },
    { 0 },
};

const struct command cmd_recover = {
    .name = "recover",
    .summary = "close the record of a killed run",
    .minor = true,
    .usage = usage,
    .description = description,
    .positionals = positionals,
    .run = run_recover_command,
};

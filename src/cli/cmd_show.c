/* SPDX-License-Identifier: MIT
 *
 * cinch show: a run directory on one screen.
 */
#include "cli/command.h"
#include "cli/digest.h"
#include "cli/run_name.h"

enum { LINES_DEFAULT = 10 };

static const struct option options[] = {
    { "lines", 'n', OPTION_INT, .value = "N", .min = 0, .max = 10000, .shown = "10",
      .help = "show the last N lines of the final answer" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN", "a run: path, last (default), or part of an id", .optional = true,
      .complete = COMPLETE_DIRECTORY },
    { 0 },
};

static int run_show(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(digest) struct digest d = { .dir_fd = -1 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const char *path;
    int r = run_name_find(cli, options_arg(opt, 0), &path, e);
    r = r < 0 ? r : digest_read(&d, path, cli->arena, e);
    if (r < 0) {
        return r;
    }
    if (cli->format == CLI_JSON) {
        cli_print_json(cli, digest_json(&d, cli->arena));
        return 0;
    }
    if (cli->format == CLI_QUIET) {
        buf_addf(&out, "%s\n", run_status_word(d.status));
    } else {
        struct digest_style style = {
            .width = terminal_text_width(&cli->out),
            .color = cli->out.color,
            .lines = (size_t)options_int(opt, "lines", LINES_DEFAULT),
            .verbose = options_count(opt, "verbose") > 0,
        };
        digest_text(&d, style, cli->arena, &out);
    }
    cli_print(cli, &out);
    return 0;
}

static const char *const description[] = {
    "Summarises the record of a run: how and why it ended, which agent ran, how long each phase "
    "took, its output, usage and artifacts, and the end of the final answer.",
    "A run that is still running, was killed, or has a damaged record is shown as far as it can be "
    "read, with a list of problems. Nothing is changed. --format json prints everything as one "
    "object; --quiet prints only the status: running, succeeded, failed, canceled, abandoned (the "
    "process is gone but the record is open) or unknown.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch show out", "summarise a run" },
    { "cinch show --format json out | jq .metrics.cost_usd", "extract one number" },
    { 0 },
};

const struct command cmd_show = {
    .name = "show",
    .summary = "summarise a run",
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_show,
};

/* SPDX-License-Identifier: MIT
 *
 * Worked example of a command: cinch hello.
 */
#include "cli/command.h"

static int run_hello(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, options_given(opt, "loud") ? "HELLO\n" : "hello\n");
    cli_print(cli, &out);
    return 0;
}

static const struct option hello_options[] = {
    { "loud", 0, OPTION_FLAG, .help = "in capitals" },
    { 0 },
};

const struct command cmd_hello = {
    .name = "hello",
    .summary = "print a greeting",
    .minor = true,
    .options = hello_options,
    .run = run_hello,
};

/* SPDX-License-Identifier: MIT
 *
 * cinch version, and cinch --version.
 */
#include "base/json.h"
#include "cli/command.h"

static int run_version(struct cli *cli, const struct options *opt, struct err *e)
{
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "name", json_cstr(cli->arena, "cinch"));
        json_setc(cli->arena, o, "version", json_cstr(cli->arena, CINCH_VERSION));
        cli_print_json(cli, o);
        return 0;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, cli->format == CLI_QUIET ? "" : "cinch ");
    buf_adds(&out, CINCH_VERSION "\n");
    cli_print(cli, &out);
    return 0;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .minor = true,
    .run = run_version,
};

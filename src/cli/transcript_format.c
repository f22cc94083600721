/* SPDX-License-Identifier: MIT
 *
 * Where the record keeps its turns.
 */
#include "cli/transcript_format.h"

#include "base/arena.h"
#include "cli/cli.h"

const char *turn_file(struct arena *a, int64_t turn, const char *suffix)
{
    return arena_printf(a, "savepoints/turn-%lld%s", (long long)turn, suffix);
}

int turn_missing(struct cli *cli, const char *dir, int64_t turn, struct err *e)
{
    cli_hint(cli, "turns are recorded only with --savepoint turn, each when it ends");
    return ERR(e, ERR_INPUT, "'%s' has no turn %lld", dir, (long long)turn);
}

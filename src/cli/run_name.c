/* SPDX-License-Identifier: MIT
 */
#include "cli/run_name.h"

#include <string.h>

#include "cli/run_request.h"
#include "record/run_store.h"

int run_name_find(struct cli *cli, const char *name, const char **ret_path, struct err *e)
{
    int r = run_store_find(cli->arena, request_runs_dir(cli->arena), name == NULL ? "last" : name,
                           ret_path, e);
    if (r < 0) {
        cli_hint(cli, "'cinch runs' lists the runs in the store");
    }
    return r;
}

const char *run_name_for(struct cli *cli, const char *path)
{
    struct run_list all;
    if (run_store_list(cli->arena, request_runs_dir(cli->arena), &all, NULL) < 0) {
        return path;
    }
    for (size_t i = 0; i < all.count; i++) {
        if (strcmp(all.runs[i].path, path) == 0) {
            return i == 0 ? "last" : run_short_id(all.runs[i].run_id);
        }
    }
    return path;
}

/* SPDX-License-Identifier: MIT
 *
 * cinch schema: the JSON Schemas of a task, made from the table of settings.
 */
#include "base/json.h"
#include "cli/command.h"
#include "config/settings_table.h"

static const struct positional positionals[] = {
    { "NAME", "task-file: what you write; task: what task.json contains",
      .complete = COMPLETE_WORDS, .words = settings_schema_names },
    { 0 },
};

static int run_schema(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *name = options_arg(opt, 0);
    struct json *schema = settings_schema(cli->arena, settings_table, name);
    if (schema == NULL) {
        return ERR(e, ERR_USAGE, "there is no schema '%.80s'; use task-file or task", name);
    }
    cli_print_json(cli, schema);
    return 0;
}

static const char *const description[] = {
    "Prints a JSON Schema (draft 2020-12). With task-file, an editor that supports JSON Schema "
    "suggests and checks the keys of task files and config.yaml.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch schema task-file > task-file.schema.json", "get the schema for an editor" },
    { 0 },
};

const struct command cmd_schema = {
    .name = "schema",
    .summary = "print the JSON Schema of a task",
    .minor = true,
    .description = description,
    .examples = examples,
    .positionals = positionals,
    .run = run_schema,
};

/* SPDX-License-Identifier: MIT
 *
 * cinch config: the settings that a run would have, and where each of them comes from.
 */
#include "base/json.h"
#include "cli/command.h"
#include "cli/run_request.h"
#include "cli/settings_markdown.h"
#include "cli/table.h"
#include "config/secrets.h"

static void print_tree(struct cli *cli, const struct json *tree)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    (void)!json_write(tree, JSON_PRETTY, &out, NULL);
    cli_print(cli, &out);
}

/* Values of variables named like keys are not for the eyes of who looks over the shoulder. The
 * layers are changed, because both the merged tree and the explanation are made from them. */
static void hide_secrets(struct arena *a, const struct layers *l)
{
    for (size_t i = 0; i < l->len; i++) {
        struct json *set = json_get(json_get(l->items[i].tree, "env"), "set");
        for (size_t j = 0; j < json_len(set); j++) {
            if (secret_like_name(set->object.members[j].key)) {
                set->object.members[j].value = json_cstr(a, "[hidden]");
            }
        }
    }
}

/* "--idle-timeout" for limits.idle; "" for a key without an option. */
static const char *option_of(struct arena *a, const struct json *path)
{
    const struct setting *s = setting_find(settings_table, json_str(path, STR_EMPTY));
    return s == NULL || s->option.name == NULL ? "" : arena_printf(a, "--%s", s->option.name);
}

static void print_explained(struct cli *cli, const struct json *leaves)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct table t = {
        .arena = cli->arena,
        .head = true,
        .columns = { { "setting" }, { "value", .max = 48 }, { "layer" }, { "from" }, { "option" } }
    };
    for (size_t i = 0; i < json_len(leaves); i++) {
        const struct json *leaf = json_item(leaves, i);
        CLEANUP(buf) struct buf value = BUF_INIT(BUF_TEXT);
        const struct json *v = json_get(leaf, "value");
        if (!json_is(v, JSON_NULL)) { /* null: only known during the run */
            (void)!json_write(v, JSON_COMPACT, &value, NULL);
        }
        table_cell(&t, STYLE_NAME, json_cstring(json_get(leaf, "path"), ""));
        table_cell(&t, STYLE_PLAIN, value.len == 0 ? "" : value.ptr);
        table_cell(&t, STYLE_PLAIN, json_cstring(json_get(leaf, "layer"), ""));
        table_cell(&t, STYLE_DIM, json_cstring(json_get(leaf, "source"), ""));
        table_cell(&t, STYLE_DIM, option_of(cli->arena, json_get(leaf, "path")));
    }
    table_write(&t, terminal_width(&cli->out), cli->out.color, &out);
    cli_print(cli, &out);
}

static void print_reference(struct cli *cli)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    settings_markdown(settings_table, &out);
    cli_print(cli, &out);
}

static int run_config(struct cli *cli, const struct options *opt, struct err *e)
{
    struct settings_input in;
    struct settings s;
    if (options_flag(opt, "markdown", false)) {
        print_reference(cli);
        return 0;
    }
    int r = request_read(cli->arena, opt, options_arg(opt, 0), &in, e);
    if (r == 0) {
        r = settings_load(cli->arena, &in, &s, e);
    }
    if (r < 0) {
        return r;
    }
    hide_secrets(cli->arena, &s.layers);
    struct json *merged = layers_merge(cli->arena, &s.layers);
    struct json *leaves = layers_explain(cli->arena, &s.layers, merged);
    settings_explain_defaults(cli->arena, settings_table, &s.layers, leaves);
    if (!options_flag(opt, "explain", false)) {
        print_tree(cli, merged);
    } else if (cli->format == CLI_JSON) {
        print_tree(cli, leaves);
    } else {
        print_explained(cli, leaves);
    }
    return 0;
}

static const char *const usage[] = { "[--explain] [OPTIONS of cinch run]", NULL };

static const char *const description[] = {
    "Prints the settings that `cinch run` with the same options would use, merged from all layers: "
    "default, adapter, site, user, project, model, tier, task, request, enforced. Nothing is "
    "started.",
    "With --explain each setting is shown with its layer, its source and the option that sets it. "
    "Settings that no layer sets are shown with their default, as layer default; a default that is "
    "only known during the run has no value but a description.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch config --explain task.yaml --timeout 10m", "show where each setting comes from" },
    { 0 },
};

const struct command cmd_config = {
    .name = "config",
    .summary = "show the settings of a run and their sources",
    .minor = true,
    .usage = usage,
    .description = description,
    .examples = examples,
    .make_options = request_config_options,
    .positionals = request_positionals,
    .rest = "COMMAND...",
    .run = run_config,
};

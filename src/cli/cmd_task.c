/* SPDX-License-Identifier: MIT
 *
 * cinch task: a task looked at before it is run: is it right, and what would be sent?
 */
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/run_request.h"
#include "cli/table.h"
#include "cli/text.h"
#include "config/definition.h"
#include "run/task_preview.h"

static const char *const actions[] = { "check", "render", "seed", NULL };

static const struct positional positionals[] = {
    { "ACTION",
      "check: validate the task; render: print what a run would send; seed: print a file of "
      "overrides",
      .complete = COMPLETE_WORDS, .words = actions },
    { "TASK", "a task file (*.yaml, *.yml, *.json), or the goal as text", .optional = true,
      .complete = COMPLETE_FILE },
    { 0 },
};

static const char *text_of(const struct json *o, const char *key)
{
    return json_cstring(json_get(o, key), "");
}

static void write_table(struct cli *cli, const struct table *t, struct buf *out)
{
    table_write(t, terminal_width(&cli->out), cli->out.color, out);
}

static void heading(struct cli *cli, struct buf *out, const char *text)
{
    buf_adds(out, "\n");
    style_add(out, cli->out.color, STYLE_BOLD, text);
    buf_adds(out, "\n");
}

/* --- check --- */

static void write_overview(struct cli *cli, const struct json *d, struct buf *out)
{
    struct table t = { .arena = cli->arena, .indent = 2, .columns = { { "what" }, { "value" } } };
    const struct json *prompt = json_get(d, "prompt");
    const struct json *output = json_get(d, "output");
    const char *adapter = json_cstring(json_get(d, "adapter"), NULL);
    const char *model = json_cstring(json_get(d, "model"), NULL);
    table_cell(&t, STYLE_NAME, "adapter");
    table_cell(&t, STYLE_PLAIN, adapter == NULL ? "not set: use --adapter" : adapter);
    table_cell(&t, STYLE_NAME, "model");
    table_cell(&t, STYLE_PLAIN, model == NULL ? "the agent's default" : model);
    table_cell(&t, STYLE_NAME, "prompt");
    table_cellf(&t, STYLE_PLAIN, "%s, %lld bytes", text_of(prompt, "kind"),
                (long long)json_int(json_get(prompt, "bytes"), 0));
    table_cell(&t, STYLE_NAME, "answer");
    table_cell(&t, STYLE_PLAIN,
               json_is(json_get(output, "schema"), JSON_NULL) ? "any" : "must match a JSON Schema");
    table_cell(&t, STYLE_NAME, "artifacts");
    table_cellf(&t, STYLE_PLAIN, "%zu", json_len(json_get(output, "artifacts")));
    write_table(cli, &t, out);
}

static void write_sections(struct cli *cli, const struct json *list, struct buf *out)
{
    struct table t = { .arena = cli->arena,
                       .indent = 2,
                       .columns = { { "number" }, { "path" }, { "visibility" }, { "title" } } };
    if (json_len(list) == 0) {
        return;
    }
    heading(cli, out, "Sections");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *s = json_item(list, i);
        table_cell(&t, STYLE_PLAIN, text_of(s, "number"));
        table_cell(&t, STYLE_NAME, text_of(s, "path"));
        table_cellf(&t, STYLE_DIM, "%s%s", text_of(s, "visibility"),
                    json_bool(json_get(s, "overridden"), false) ? ", overridden" : "");
        table_cell(&t, STYLE_PLAIN, text_of(s, "title"));
    }
    write_table(cli, &t, out);
}

static void write_tools(struct cli *cli, const struct json *list, struct buf *out)
{
    struct table t = { .arena = cli->arena,
                       .indent = 2,
                       .columns = { { "tool" }, { "description" } } };
    if (json_len(list) == 0) {
        return;
    }
    heading(cli, out, "Tools");
    for (size_t i = 0; i < json_len(list); i++) {
        table_cell(&t, STYLE_NAME, text_of(json_item(list, i), "name"));
        table_cell(&t, STYLE_PLAIN, text_of(json_item(list, i), "description"));
    }
    write_table(cli, &t, out);
}

static void write_skills(struct cli *cli, const struct json *list, struct buf *out)
{
    struct table t = { .arena = cli->arena,
                       .indent = 2,
                       .columns = { { "skill" }, { "kind" }, { "use" }, { "path" } } };
    if (json_len(list) == 0) {
        return;
    }
    heading(cli, out, "Skills");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *s = json_item(list, i);
        table_cell(&t, STYLE_NAME, text_of(s, "name"));
        table_cell(&t, STYLE_PLAIN, json_bool(json_get(s, "package"), false) ? "package" : "skill");
        table_cell(&t, STYLE_PLAIN,
                   json_bool(json_get(s, "installed"), false) ? "installed" : "not installed");
        table_cell(&t, STYLE_DIM, text_of(s, "path"));
    }
    write_table(cli, &t, out);
}

static void write_warnings(struct cli *cli, const struct json *list, struct buf *out)
{
    if (json_len(list) > 0) {
        heading(cli, out, "Warnings");
    }
    for (size_t i = 0; i < json_len(list); i++) {
        buf_adds(out, "  ");
        text_clean(out, json_str(json_item(list, i), STR_EMPTY), TEXT_LINE);
        buf_adds(out, "\n");
    }
}

static void print_check(struct cli *cli, const struct json *d)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    style_add(&out, cli->out.color, STYLE_GOOD, "ok");
    buf_adds(&out, "  ");
    text_clean(&out, json_str(json_get(d, "name"), STR_EMPTY), TEXT_LINE);
    buf_adds(&out, "\n");
    write_overview(cli, d, &out);
    write_sections(cli, json_get(json_get(d, "prompt"), "sections"), &out);
    write_tools(cli, json_get(d, "tools"), &out);
    write_skills(cli, json_get(d, "skills"), &out);
    write_warnings(cli, json_get(d, "warnings"), &out);
    cli_print(cli, &out);
}

/* --- render --- */

static void write_sent(struct cli *cli, const struct json *sent, struct buf *out)
{
    const struct json *argv = json_get(sent, "arguments");
    const struct json *sampling = json_get(sent, "sampling");
    heading(cli, out, "Command");
    for (size_t i = 0; i < json_len(argv); i++) {
        buf_adds(out, "  ");
        text_clean(out, json_str(json_item(argv, i), STR_EMPTY), TEXT_LINE);
        buf_adds(out, "\n");
    }
    if (json_len(argv) == 0) {
        buf_adds(out, "  unknown: no adapter is set\n");
    }
    if (json_len(sampling) > 0) {
        heading(cli, out, "Sampling");
        buf_adds(out, "  ");
        (void)!json_write(sampling, JSON_COMPACT, out, NULL);
        buf_adds(out, "\n");
    }
}

static void print_render(struct cli *cli, const struct json *d)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const struct json *sent = json_get(d, "sent");
    struct str prompt = json_str(json_get(sent, "prompt"), STR_EMPTY);
    if (cli->format == CLI_QUIET) {
        buf_add(&out, prompt); /* as it is, byte by byte */
        cli_print(cli, &out);
        return;
    }
    style_add(&out, cli->out.color, STYLE_BOLD, "Prompt");
    buf_adds(&out, "\n");
    text_clean(&out, prompt, TEXT_BLOCK);
    buf_adds(&out, prompt.len > 0 && prompt.ptr[prompt.len - 1] == '\n' ? "" : "\n");
    write_tools(cli, json_get(d, "tools"), &out);
    write_sent(cli, sent, &out);
    write_warnings(cli, json_get(d, "warnings"), &out);
    cli_print(cli, &out);
}

/* --- seed --- */

static int print_seed(struct cli *cli, const struct definition *d, struct err *e)
{
    const struct json *overrides = json_get(d->settings->prompt, "overrides");
    const char *tag = json_cstring(json_get(overrides, "tag"), "latest");
    if (d->sections == NULL) {
        return ERR(e, ERR_CONFIG, "only sections can be overridden, and the task has none");
    }
    cli_print_json(cli, section_tree_seed(d->sections, tag, cli->arena));
    return 0;
}

static int look(struct cli *cli, struct definition *d, bool render, struct err *e)
{
    struct json *shown = NULL;
    int r = definition_bind(d, e);
    /* Both render: what cannot be rendered is not right. */
    r = r < 0 ? r : task_preview(d, &shown, e);
    if (r < 0) {
        return r;
    }
    if (cli->format == CLI_JSON) {
        json_setc(cli->arena, shown, "ok", json_boolean(cli->arena, true));
        if (!render) {
            (void)json_remove(shown, STR("sent"));
        }
        cli_print_json(cli, shown);
    } else if (render) {
        print_render(cli, shown);
    } else if (cli->format == CLI_TEXT) {
        print_check(cli, shown);
    }
    return 0;
}

static int run_task(struct cli *cli, const struct options *opt, struct err *e)
{
    struct settings_input in;
    struct settings s;
    struct definition d = { 0 };
    const char *action = options_arg(opt, 0);
    bool render = strcmp(action, "render") == 0;
    bool seed = strcmp(action, "seed") == 0;
    if (!render && !seed && strcmp(action, "check") != 0) {
        return ERR(e, ERR_USAGE, "unknown action '%.80s'; use check, render or seed", action);
    }
    int r = request_read(cli->arena, opt, options_arg(opt, 1), &in, e);
    if (r == 0) {
        r = settings_load(cli->arena, &in, &s, e);
    }
    if (r == 0) {
        r = definition_open(&d, cli->arena, &s, e);
    }
    if (r == 0) {
        r = seed ? print_seed(cli, &d, e) : look(cli, &d, render, e);
    }
    definition_done(&d);
    return r;
}

static const char *const usage[] = { "check [OPTIONS of cinch run] TASK",
                                     "render [OPTIONS of cinch run] TASK",
                                     "seed [OPTIONS of cinch run] TASK", NULL };

static const char *const description[] = {
    "Examines a task without running it. Nothing is started or written.",
    "'check' reads everything that the task refers to (sections, templates, schemas, skills, "
    "inputs) and prints a summary, or what is wrong and where. 'render' prints the prompt, the "
    "tools and the command line that a run would use, with RUN in place of values that are known "
    "only during a run. With --quiet, 'render' prints only the prompt, and 'check' only sets the "
    "exit status.",
    "'seed' prints the texts of the sections and tools as a file of overrides, with the hashes "
    "that tie them to the task. Edit the file, remove the texts that you do not change, and store "
    "it as described in docs/prompt.md.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch task check task.yaml", "validate a task" },
    { "cinch task render task.yaml --param repo=cinch", "show what a run would send" },
    { "cinch task render --quiet task.yaml > prompt.md", "save the exact prompt" },
    { "cinch task seed task.yaml > overrides/demo/review/latest.json",
      "start a file of overrides" },
    { 0 },
};

const struct command cmd_task = {
    .name = "task",
    .summary = "validate a task, or show what it would send",
    .usage = usage,
    .description = description,
    .examples = examples,
    .make_options = request_task_options,
    .positionals = positionals,
    .rest = "COMMAND...",
    .run = run_task,
};

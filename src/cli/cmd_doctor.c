/* SPDX-License-Identifier: MIT
 *
 * cinch doctor: what this machine offers to a run, and what to do where something is missing.
 */
#include "base/json.h"
#include "cli/check.h"
#include "cli/command.h"
#include "cli/table.h"

static const struct option options[] = {
    { "sweep", 0, OPTION_FLAG, .help = "remove trust entries that killed runs left behind" },
    { 0 },
};

static const enum style styles[] = {
    [CHECK_OK] = STYLE_GOOD, [CHECK_WARN] = STYLE_WARN, [CHECK_FAIL] = STYLE_BAD
};

struct findings {
    struct table table;
    struct json *list;
    enum check_state worst;
};

static void add_finding(struct cli *cli, struct findings *f, const char *name,
                        const struct check_result *r)
{
    struct arena *a = cli->arena;
    struct json *o = json_object(a);
    bool advice = r->advice[0] != '\0';
    json_setc(a, o, "check", json_cstr(a, name));
    json_setc(a, o, "state", json_cstr(a, check_state_word(r->state)));
    json_setc(a, o, "detail", json_cstr(a, r->detail));
    json_setc(a, o, "advice", json_cstr(a, advice ? r->advice : NULL));
    json_push(a, f->list, o);
    f->worst = r->state > f->worst ? r->state : f->worst;

    table_cell(&f->table, STYLE_NAME, name);
    table_cell(&f->table, styles[r->state], check_state_word(r->state));
    table_cell(&f->table, STYLE_PLAIN, r->detail);
    if (advice) {
        table_cell(&f->table, STYLE_PLAIN, "");
        table_cell(&f->table, STYLE_PLAIN, "");
        table_cellf(&f->table, styles[r->state], "-> %s", r->advice);
    }
}

static void print(struct cli *cli, const struct findings *f)
{
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "state", json_cstr(cli->arena, check_state_word(f->worst)));
        json_setc(cli->arena, o, "checks", f->list);
        cli_print_json(cli, o);
    } else if (cli->format == CLI_TEXT) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        table_write(&f->table, terminal_text_width(&cli->out), cli->out.color, &out);
        cli_print(cli, &out);
    }
}

static int run_doctor(struct cli *cli, const struct options *opt, struct err *e)
{
    struct findings f = {
        .table = { .arena = cli->arena,
                   .head = true,
                   .columns = { { "check" }, { "state" }, { "detail" } } },
        .list = json_array(cli->arena),
    };
    for (const struct check *c = checks; c->name != NULL; c++) {
        struct check_result r = { 0 };
        c->look(&r);
        add_finding(cli, &f, c->name, &r);
    }
    print(cli, &f);
    return f.worst == CHECK_FAIL ? err_exit_status(ERR_UNAVAILABLE) : 0;
}

static const char *const description[] = {
    "Looks at what a run needs: the kernel, the helper program, limits, room on disk, git. Each "
    "line says ok, warn (works, but something will be missing) or fail (runs will not work), and "
    "what to do about it. The exit status is 69 when something fails.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch doctor", "check this machine" },
    { "cinch doctor --sweep", "and clean up after runs that were killed" },
    { 0 },
};

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "check this machine",
    .description = description,
    .examples = examples,
    .options = options,
    .run = run_doctor,
};

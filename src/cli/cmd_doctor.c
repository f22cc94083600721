/* SPDX-License-Identifier: MIT
 *
 * cinch doctor: what this machine offers to a run, and what to do where something is missing.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/profile.h"
#include "adapters/trust.h"
#include "adapters/version.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/doctor_check.h"
#include "cli/run_request.h"
#include "cli/table.h"

static const struct option options[] = {
    { "sweep", 0, OPTION_FLAG,
      .help = "remove trust entries that killed runs left in agents' configuration files" },
    { "adapter-dir", 0, OPTION_PATH, .value = "DIR", .flags = OPTION_REPEAT,
      .complete = COMPLETE_DIRECTORY, .help = "load more adapter profiles from DIR" },
    { 0 },
};

static const enum style styles[] = {
    [CHECK_OK] = STYLE_GOOD, [CHECK_WARN] = STYLE_WARN, [CHECK_FAIL] = STYLE_BAD
};

struct findings {
    struct cli *cli;
    struct table table;
    struct json *list;
    enum check_state worst;
};

static void add_finding(void *arg, const char *name, const struct check_result *r)
{
    struct findings *f = arg;
    struct arena *a = f->cli->arena;
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

/* --- sweeping --- */

static void sweep_file(const struct profile_trust *t, struct check_result *r)
{
    char path[PATH_MAX];
    struct err e = { 0 };
    struct trust_swept swept = { 0 };
    enum trust_style style;
    const char *home = getenv("HOME");
    int failed = 0;
    if (!trust_style_of(t->style, &style)) {
        failed = ERR(&e, ERR_CONFIG, "unknown trust style '%s'", t->style);
    } else if (home == NULL || home[0] != '/') {
        failed = ERR(&e, ERR_INPUT, "HOME is not set");
    } else {
        failed = path_join(home, t->file, path, sizeof path, &e);
    }
    if (failed < 0 || trust_sweep(style, path, NULL, &swept, &e) < 0) {
        check_found(r, CHECK_WARN, "%s", e.msg);
        check_advise(r, "repair %s by hand, then run 'cinch doctor --sweep' again", t->file);
        return;
    }
    check_found(r, CHECK_OK, "%s: %zu removed, %zu still in use", t->file, swept.entries,
                swept.kept);
}

/* Several profiles may share a file. */
static bool seen_before(const struct profile_list *list, size_t i)
{
    const struct profile_trust *t = &list->items[i]->trust;
    for (size_t j = 0; j < i; j++) {
        const struct profile_trust *u = &list->items[j]->trust;
        if (u->style != NULL && strcmp(u->style, t->style) == 0 && strcmp(u->file, t->file) == 0) {
            return true;
        }
    }
    return false;
}

static int sweep(struct cli *cli, const struct options *opt, struct findings *f, struct err *e)
{
    struct profile_list list;
    const char *const *dirs;
    size_t files = 0;
    int r = request_adapter_dirs(cli->arena, opt, &dirs, e);
    r = r < 0 ? r : profile_load_all(cli->arena, dirs, &list, e);
    for (size_t i = 0; r == 0 && i < list.len; i++) {
        if (list.items[i]->trust.style != NULL && !seen_before(&list, i)) {
            struct check_result result = { 0 };
            sweep_file(&list.items[i]->trust, &result);
            add_finding(f, "sweep", &result);
            files++;
        }
    }
    if (r == 0 && files == 0) {
        struct check_result result = { .detail = "no adapter uses trust entries" };
        add_finding(f, "sweep", &result);
    }
    return r;
}

/* --- adapters --- */

/* Programs that no test of their adapter covers. */
static int check_adapters(struct cli *cli, const struct options *opt, struct findings *f,
                          struct err *e)
{
    struct profile_list list;
    struct arena *a = cli->arena;
    const char *const *dirs;
    size_t installed = 0;
    size_t untested = 0;
    int r = request_adapter_dirs(a, opt, &dirs, e);
    r = r < 0 ? r : profile_load_all(a, dirs, &list, e);
    for (size_t i = 0; r == 0 && i < list.len; i++) {
        const struct profile *p = list.items[i];
        const char *program = profile_program(a, p, getenv("PATH"));
        const char *version = program == NULL ? NULL : version_of_program(a, p, program);
        installed += program != NULL;
        if (version_warning(a, p, version) != NULL) {
            struct check_result result = { 0 };
            untested++;
            check_found(&result, CHECK_WARN, "%s %s was not tested (tested: %s)", p->name, version,
                        version_tested(a, p));
            check_advise(&result, "run 'cinch ack -a %s --tier 1 --tier 2'", p->name);
            add_finding(f, "adapter", &result);
        }
    }
    if (r == 0 && untested == 0) {
        struct check_result result = { 0 };
        check_found(&result, CHECK_OK, "%zu installed, none in a version that was not tested",
                    installed);
        add_finding(f, "adapters", &result);
    }
    return r;
}

/* --- --- */

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
        .cli = cli,
        .table = { .arena = cli->arena,
                   .head = true,
                   .columns = { { "check" }, { "state" }, { "detail" } } },
        .list = json_array(cli->arena),
    };
    for (const struct check *c = checks; c->name != NULL; c++) {
        struct check_result r = { 0 };
        c->look(&r);
        add_finding(&f, c->name, &r);
    }
    check_guarantees(add_finding, &f);
    int r = check_adapters(cli, opt, &f, e);
    r = r == 0 && options_flag(opt, "sweep", false) ? sweep(cli, opt, &f, e) : r;
    if (r < 0) {
        return r;
    }
    print(cli, &f);
    return f.worst == CHECK_FAIL ? err_exit_status(ERR_UNAVAILABLE) : 0;
}

static const char *const description[] = {
    "Checks what a run needs: the kernel, the helper program, limits, disk space, git, and the "
    "guarantees of the sandbox, which are tested by starting one; and whether the installed agents "
    "have versions that their adapters were tested with. Each check results in ok, warn "
    "(runs work, with something missing) or fail (runs will not work), with advice on how to fix "
    "it. The exit status is 69 if a check fails.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch doctor", "check this machine" },
    { "cinch doctor --sweep", "also clean up after killed runs" },
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

/* SPDX-License-Identifier: MIT
 *
 * cinch adapters: which agents can be run here, and what their profiles say.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/driver.h"
#include "adapters/profile.h"
#include "adapters/profile_builtin.h"
#include "adapters/version.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/ack_try.h"
#include "cli/adapters_markdown.h"
#include "cli/command.h"
#include "cli/run_request.h"
#include "cli/table.h"
#include "cli/text.h"
#include "proc/which.h"

#define PROFILE_MAX ((size_t)1 << 20) /* as when profiles are loaded */

static const char *const actions[] = { "show", NULL };

static const struct option options[] = {
    { "adapter-dir", 0, OPTION_PATH, .value = "DIR", .help = "load more adapter profiles from DIR",
      .flags = OPTION_REPEAT, .complete = COMPLETE_DIRECTORY },
    { "probe", 0, OPTION_FLAG,
      .help = "test the named adapters, or all installed ones, with a scripted model" },
    { "markdown", 0, OPTION_FLAG, .help = "print the tables of docs/adapters.md" },
    { 0 },
};

static const struct positional positionals[] = {
    { "ACTION", "show: print one profile (default: list all)", .optional = true,
      .complete = COMPLETE_WORDS, .words = actions },
    { "NAME", "the adapter to show, or the adapters to probe", .optional = true, .repeat = true,
      .complete = COMPLETE_ADAPTER },
    { 0 },
};

struct availability {
    bool available;
    char program[PATH_MAX]; /* "" when it has none of its own */
    const char *why;        /* for people, in both cases */
    const char *version;    /* that is installed; NULL: not known */
    const char *warning;    /* it was not tested; NULL: it was, or nothing is known */
};

static void find_program(const struct profile *p, struct arena *a, struct availability *ret)
{
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < json_len(p->binary); i++) {
        const char *name = json_cstring(json_item(p->binary, i), "");
        if (which_find(name, getenv("PATH"), NULL, ret->program, NULL) == 0) {
            ret->available = true;
            ret->version = version_of_program(a, p, ret->program);
            ret->warning = version_warning(a, p, ret->version);
            ret->why = ret->version == NULL
                           ? ret->program
                           : arena_printf(a, "%s, %s%s", ret->version, ret->program,
                                          ret->warning == NULL ? "" : " (version not tested)");
            return;
        }
        buf_addf(&names, "%s%s", i == 0 ? "" : ", ", name);
    }
    ret->program[0] = '\0';
    ret->why = p->install != NULL ? arena_printf(a, "install it: %s", p->install)
                                  : arena_printf(a, "not in PATH: %.*s", STR_ARG(buf_str(&names)));
}

static void find_availability(const struct profile *p, struct arena *a, struct availability *ret)
{
    *ret = (struct availability) { 0 };
    if (driver_find(p->driver) == NULL) {
        ret->why = arena_printf(a, "driver '%s' is not supported by this version", p->driver);
    } else if (driver_is_kind(p, DRIVER_MODEL_LOOP)) {
        ret->available = true;
        ret->why = "built in";
    } else if (json_len(p->binary) == 0) {
        ret->available = true;
        ret->why = "runs the command after --";
    } else {
        find_program(p, a, ret);
    }
}

/* --- the list --- */

static struct json *as_json(struct arena *a, const struct profile *p, const struct availability *v)
{
    struct json *o = json_object(a);
    json_setc(a, o, "name", json_cstr(a, p->name));
    json_setc(a, o, "title", json_cstr(a, p->title));
    json_setc(a, o, "driver", json_cstr(a, p->driver));
    json_setc(a, o, "available", json_boolean(a, v->available));
    json_setc(a, o, "program", json_cstr(a, v->program[0] == '\0' ? NULL : v->program));
    json_setc(a, o, "why_not", json_cstr(a, v->available ? NULL : v->why));
    json_setc(a, o, "install", json_cstr(a, p->install));
    json_setc(a, o, "source", json_cstr(a, p->source));
    json_setc(a, o, "tried", json_cstr(a, p->tried));
    json_setc(a, o, "tested", json_cstr(a, version_tested(a, p)));
    json_setc(a, o, "version", json_cstr(a, v->version));
    json_setc(a, o, "version_tested",
              v->version == NULL || p->tested_until == NULL
                  ? json_null(a)
                  : json_boolean(a, version_is_tested(p, v->version)));
    json_setc(a, o, "unverified", json_cstr(a, p->unverified));
    return o;
}

static void list_json(struct cli *cli, const struct profile_list *list)
{
    struct json *items = json_array(cli->arena);
    struct json *o = json_object(cli->arena);
    for (size_t i = 0; i < list->len; i++) {
        struct availability v;
        find_availability(list->items[i], cli->arena, &v);
        json_push(cli->arena, items, as_json(cli->arena, list->items[i], &v));
    }
    json_setc(cli->arena, o, "adapters", items);
    cli_print_json(cli, o);
}

/* The versions that the profile was tested with, or that it was not. */
static const char *how_tried(struct arena *a, const struct profile *p)
{
    const char *tested = version_tested(a, p);
    return p->unverified != NULL ? "unverified" : tested != NULL ? tested : "-";
}

static void list_text(struct cli *cli, const struct profile_list *list)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct table t = { .arena = cli->arena,
                       .head = true,
                       .columns = { { "adapter", .max = 24 },
                                    { "title", .max = 28 },
                                    { "driver" },
                                    { "tested" },
                                    { "installed" },
                                    { "detail" } } };
    for (size_t i = 0; i < list->len; i++) {
        const struct profile *p = list->items[i];
        struct availability v;
        find_availability(p, cli->arena, &v);
        table_cell(&t, STYLE_NAME, p->name);
        table_cell(&t, STYLE_PLAIN, p->title);
        table_cell(&t, STYLE_PLAIN, p->driver);
        table_cell(&t, p->unverified != NULL ? STYLE_WARN : STYLE_PLAIN, how_tried(cli->arena, p));
        table_cell(&t,
                   v.warning != NULL ? STYLE_WARN
                   : v.available     ? STYLE_GOOD
                                     : STYLE_DIM,
                   v.available ? "yes" : "no");
        table_cell(&t, STYLE_PLAIN, v.why);
    }
    table_write(&t, terminal_width(&cli->out), cli->out.color, &out);
    for (size_t i = 0; i < list->len; i++) {
        struct availability v;
        find_availability(list->items[i], cli->arena, &v);
        if (v.warning != NULL) {
            buf_adds(&out, "warning: ");
            text_clean(&out, str_of(v.warning), TEXT_LINE);
            buf_adds(&out, "\n");
        }
    }
    cli_print(cli, &out);
}

static void list_names(struct cli *cli, const struct profile_list *list)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < list->len; i++) {
        buf_addf(&out, "%s\n", list->items[i]->name);
    }
    cli_print(cli, &out);
}

static void list_markdown(struct cli *cli, const struct profile_list *list)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    adapters_markdown(list, &out);
    cli_print(cli, &out);
}

/* --- one of them --- */

/* The file as it was written, comments and all: it is the best start for a profile of one's own. */
static int read_source(const struct profile *p, struct arena *a, struct buf *out, struct err *e)
{
    if (strcmp(p->source, "built in") != 0) {
        return file_read(AT_FDCWD, p->source, PROFILE_MAX, out, e);
    }
    for (size_t i = 0; i < builtin_profiles_len; i++) {
        const struct builtin_profile *b = &builtin_profiles[i];
        struct profile *parsed;
        int r = profile_parse(a, str_n(b->text, b->len), b->file, &parsed, e);
        if (r < 0) {
            return r;
        }
        /* That of a program in PATH is the profile for all of them. */
        if (strcmp(parsed->name, json_cstring(json_get(p->doc, "name"), p->name)) == 0) {
            return buf_append(out, str_n(b->text, b->len), e);
        }
    }
    return ERR(e, ERR_BUG, "the text of the built-in adapter '%s' is missing", p->name);
}

static int show(struct cli *cli, const struct profile *p, struct err *e)
{
    CLEANUP(buf) struct buf source = BUF_INIT(PROFILE_MAX);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (cli->format == CLI_JSON) {
        struct availability v;
        find_availability(p, cli->arena, &v);
        struct json *o = as_json(cli->arena, p, &v);
        json_setc(cli->arena, o, "profile", p->doc);
        cli_print_json(cli, o);
        return 0;
    }
    int r = read_source(p, cli->arena, &source, e);
    if (r < 0) {
        return r;
    }
    if (!cli->out.tty) { /* into a file: byte for byte */
        cli_print(cli, &source);
        return 0;
    }
    text_clean(&out, buf_str(&source), TEXT_BLOCK);
    cli_print(cli, &out);
    return 0;
}

static int run_adapters(struct cli *cli, const struct options *opt, struct err *e)
{
    struct profile_list list;
    const char *const *dirs;
    const char *action = options_arg(opt, 0);
    const char *name = options_arg(opt, 1);
    if (options_flag(opt, "probe", false)) {
        return ack_prove(cli, opt, options_args(opt), e);
    }
    if (options_arg_count(opt) > 2) {
        return ERR(e, ERR_USAGE, "'show' takes only one adapter");
    }
    if (action != NULL && strcmp(action, "show") != 0) {
        return ERR(e, ERR_USAGE, "unknown action '%.80s'; did you mean show?", action);
    }
    if (action != NULL && name == NULL) {
        return ERR(e, ERR_USAGE, "'show' needs the NAME of an adapter");
    }
    int r = request_adapter_dirs(cli->arena, opt, &dirs, e);
    r = r < 0 ? r : profile_load_all(cli->arena, dirs, &list, e);
    if (r < 0) {
        return r;
    }
    if (name != NULL) {
        const struct profile *p;
        r = profile_require(&list, str_of(name), &p, e);
        if (r < 0) {
            cli_hint(cli, "'cinch adapters' lists them");
            return r;
        }
        return show(cli, p, e);
    }
    if (options_flag(opt, "markdown", false)) {
        list_markdown(cli, &list);
        return 0;
    }
    switch (cli->format) {
    case CLI_JSON:
        list_json(cli, &list);
        break;
    case CLI_QUIET:
        list_names(cli, &list);
        break;
    case CLI_TEXT:
        list_text(cli, &list);
        break;
    }
    return 0;
}

static const char *const usage[] = { "[OPTIONS]", "[OPTIONS] show NAME",
                                     "--probe [OPTIONS] [NAME...]", NULL };

static const char *const description[] = {
    "Lists the built-in adapters and those in ~/.config/cinch/adapters and --adapter-dir, with the "
    "agent version that each was tested with and whether the agent's program is installed. The "
    "profile of an unverified adapter could not be tested and states why. With --quiet only the "
    "names are printed.",
    "An adapter is a YAML file. 'show' prints it unchanged, as a starting point for your own "
    "adapter.",
    "--probe tests the installed agents without a key. It runs the scenarios of levels 1 and 2 of "
    "'cinch ack' (responses, tools, structured output, events, transcript) and prints a line for "
    "each adapter. The exit status is 1 if an adapter failed, or if a named adapter is not "
    "installed.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch adapters", "list the adapters and whether their agents are installed" },
    { "cinch adapters --probe codex", "test the installed codex" },
    { "cinch adapters show command > ~/.config/cinch/adapters/mine.yaml",
      "start a new adapter from a profile" },
    { 0 },
};

const struct command cmd_adapters = {
    .name = "adapters",
    .summary = "list adapters, or show one",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_adapters,
};

/* SPDX-License-Identifier: MIT
 *
 * From argv to an exit status: find the command, parse its options together with the global ones,
 * run it, print what went wrong. This is the only place that prints errors.
 */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/apply_record.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/text.h"

void cli_print(struct cli *cli, const struct buf *text)
{
    terminal_write(&cli->out, buf_str(text));
}

void cli_print_json(struct cli *cli, const struct json *value)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    (void)!json_write(value, JSON_PRETTY, &text, NULL);
    if (text.len > 0 && text.ptr[text.len - 1] != '\n') {
        buf_adds(&text, "\n");
    }
    cli_print(cli, &text);
}

void cli_hint(struct cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(cli->hint, sizeof cli->hint, fmt, ap);
    va_end(ap);
}

/* --- errors --- */

static void format_error_json(const struct cli *cli, const struct err *problem, struct buf *out)
{
    struct arena *a = cli->arena;
    struct json *inner = json_object(a);
    json_setc(a, inner, "code", json_cstr(a, err_word(problem->code)));
    json_setc(a, inner, "message", json_cstr(a, problem->msg));
    json_setc(a, inner, "exit", json_integer(a, err_exit_status(problem->code)));
    if (cli->hint[0] != '\0') {
        json_setc(a, inner, "hint", json_cstr(a, cli->hint));
    }
    struct json *outer = json_object(a);
    json_setc(a, outer, "error", inner);
    (void)!json_write(outer, JSON_COMPACT, out, NULL);
    buf_adds(out, "\n");
}

static void format_error_text(const struct cli *cli, const struct err *problem, struct buf *out)
{
    style_add(out, cli->err.color, STYLE_BAD, "cinch:");
    buf_adds(out, " ");
    text_clean(out, str_of(problem->msg), TEXT_LINE);
    buf_adds(out, "\n");
    if (cli->hint[0] != '\0') {
        style_add(out, cli->err.color, STYLE_DIM, "hint:");
        buf_adds(out, " ");
        text_clean(out, str_of(cli->hint), TEXT_LINE);
        buf_adds(out, "\n");
    }
}

static int fail(struct cli *cli, const struct err *problem)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (cli->format == CLI_JSON) {
        format_error_json(cli, problem, &out);
    } else {
        format_error_text(cli, problem, &out);
    }
    (void)fflush(cli->out.stream); /* what came before the error stays before it */
    terminal_write(&cli->err, buf_str(&out));
    return cli->refused_status != 0 ? cli->refused_status : err_exit_status(problem->code);
}

static void warn(struct cli *cli, const struct err *problem)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    format_error_text(cli, problem, &out);
    terminal_write(&cli->err, buf_str(&out));
}

/* A command line that does not parse has no format yet; a program that asked for JSON gets it. */
static bool asks_for_json(int argc, const char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool apart =
            strcmp(argv[i], "--format") == 0 && i + 1 < argc && strcmp(argv[i + 1], "json") == 0;
        if (apart || strcmp(argv[i], "--format=json") == 0) {
            return true;
        }
    }
    return false;
}

/* --- one command --- */

static int apply_globals(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *format = options_string(opt, "format", "text");
    bool quiet = options_flag(opt, "quiet", false);
    if (quiet && options_given(opt, "format") && strcmp(format, "quiet") != 0) {
        return ERR(e, ERR_USAGE, "--quiet and --format %s cannot be used together", format);
    }
    cli->format = quiet || strcmp(format, "quiet") == 0 ? CLI_QUIET
                  : strcmp(format, "json") == 0         ? CLI_JSON
                                                        : CLI_TEXT;
    if (options_given(opt, "color")) {
        enum terminal_color color =
            options_flag(opt, "color", true) ? TERMINAL_COLOR_ON : TERMINAL_COLOR_OFF;
        terminal_init(&cli->out, cli->out.stream, color);
        terminal_init(&cli->err, cli->err.stream, color);
    }
    int verbose = options_count(opt, "verbose");
    if (verbose > 0) {
        log_init(verbose > 1 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, cli->format == CLI_JSON);
    }
    return 0;
}

/* Also with --format quiet: the command line will stop working. */
static void print_warnings(struct cli *cli, const struct options *opt)
{
    for (const char *const *text = options_warnings(opt); *text != NULL; text++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        style_add(&out, cli->err.color, STYLE_WARN, "warning:");
        buf_addf(&out, " %s\n", *text);
        terminal_write(&cli->err, buf_str(&out));
    }
}

static int print_help(struct cli *cli, const struct command *c)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct help_style style = { terminal_text_width(&cli->out), cli->out.color };
    if (c == NULL) {
        help_overview(style, &out);
    } else {
        help_command(c, style, &out);
    }
    cli_print(cli, &out);
    return 0;
}

static int run_command(struct cli *cli, const struct command *c, int argc, const char *const *argv,
                       struct err *e)
{
    struct options *opt;
    struct option_spec spec = {
        .options = command_options(c, cli->arena),
        .globals = command_globals(),
        .positionals = c->positionals,
        .rest = c->rest,
    };
    int r = option_parse(&spec, cli->arena, argc, argv, &opt, e);
    if (r == 0) {
        r = apply_globals(cli, opt, e);
    }
    if (r < 0) {
        cli_hint(cli, "see 'cinch %s --help'", c->name);
        return r;
    }
    if (options_flag(opt, "help", false)) {
        return print_help(cli, c);
    }
    if (options_flag(opt, "version", false)) {
        return cmd_version.run(cli, opt, e);
    }
    print_warnings(cli, opt);
    apply_recover(cli);
    r = c->run(cli, opt, e);
    if (r == -(int)ERR_USAGE && cli->hint[0] == '\0') {
        cli_hint(cli, "see 'cinch %s --help'", c->name);
    }
    return r;
}

static int no_command(struct cli *cli, const struct options *opt, struct err *e)
{
    if (options_flag(opt, "help", false)) {
        return print_help(cli, NULL);
    }
    if (options_flag(opt, "version", false)) {
        return cmd_version.run(cli, opt, e);
    }
    if (cli->format == CLI_JSON) {
        return ERR(e, ERR_USAGE, "no command is given");
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    help_overview((struct help_style) { terminal_text_width(&cli->err), cli->err.color }, &out);
    terminal_write(&cli->err, buf_str(&out));
    return err_exit_status(ERR_USAGE);
}

static int dispatch(struct cli *cli, int argc, const char *const *argv, struct err *e)
{
    struct options *before;
    struct option_spec spec = { .globals = command_globals(), .stop_early = true };
    int r = option_parse(&spec, cli->arena, argc > 0 ? argc - 1 : 0, argv + 1, &before, e);
    size_t at = r < 0 ? 0 : options_used(before) + 1;
    if (r == 0 && (at >= (size_t)argc || options_flag(before, "help", false) ||
                   options_flag(before, "version", false))) {
        r = apply_globals(cli, before, e);
        return r < 0 ? r : no_command(cli, before, e);
    }
    const struct command *c = r < 0 ? NULL : command_find(argv[at]);
    if (c == NULL) {
        bool text = r == 0 && strchr(argv[at], ' ') != NULL;
        cli_hint(cli, text ? "to run a goal: cinch run \"GOAL\"" : "see 'cinch --help'");
        return r < 0 ? r : command_unknown(argv[at], e);
    }
    /* The command's own parse sees the whole line but for the command word, so that a global option
     * means the same on both sides of it. */
    const char **rest = arena_array(cli->arena, (size_t)argc + 1, sizeof *rest);
    int n = 0;
    for (int i = 1; i < argc; i++) {
        if (i != (int)at) {
            rest[n++] = argv[i];
        }
    }
    return run_command(cli, c, n, rest, e);
}

int cli_main(struct cli *cli, int argc, const char *const *argv)
{
    struct err e = { 0 };
    int status = dispatch(cli, argc, argv, &e);
    if (status < 0) {
        cli->format = cli->format == CLI_TEXT && asks_for_json(argc, argv) ? CLI_JSON : cli->format;
        status = fail(cli, &e);
    }
    if (terminal_flush(&cli->out, &e) < 0) {
        cli->hint[0] = '\0';
        if (cli->has_verdict) { /* the exit status is that of the run, which the record holds */
            warn(cli, &e);
        } else {
            int r = fail(cli, &e);
            status = status == 0 ? r : status;
        }
    }
    (void)fflush(cli->err.stream);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * cinch cassette: looking at recorded model traffic.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/run_name.h"
#include "cli/table.h"
#include "cli/text.h"
#include "record/redact.h"
#include "replay/cassette.h"

static const char *const actions[] = { "show", "diff", "redact", NULL };

static const struct option options[] = {
    { "exchange", 'x', OPTION_INT, .value = "N", .min = 1, .max = INT32_MAX,
      .help = "show: print the request and response of exchange N" },
    { "all", 0, OPTION_FLAG, .old_letter = 'a',
      .help = "diff: list all exchanges that differ, not only the first" },
    { "secret", 's', OPTION_STRING, .value = "NAME", .flags = OPTION_REPEAT,
      .help = "redact: remove the value of the environment variable NAME" },
    { 0 },
};

static const struct positional positionals[] = {
    { "ACTION", "show, diff or redact", .complete = COMPLETE_WORDS, .words = actions },
    { "FILE", "a cassette, or for show and diff a run that recorded one",
      .complete = COMPLETE_FILE },
    { "OTHER", "diff: the cassette or run to compare with; redact: the file to write",
      .optional = true, .complete = COMPLETE_FILE },
    { 0 },
};

/* Foreign text, made safe for a terminal. */
static void print_clean(struct cli *cli, const struct buf *text)
{
    CLEANUP(buf) struct buf clean = BUF_INIT(SIZE_MAX);
    text_clean(&clean, buf_str(text), TEXT_BLOCK);
    cli_print(cli, &clean);
}

static const char *end_word(enum cassette_end end)
{
    return end == CASSETTE_COMPLETE ? "complete" : end == CASSETTE_CUT ? "cut" : "cancelled";
}

static size_t answer_bytes(const struct cassette_exchange *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_frames; i++) {
        n += x->frames[i].bytes.len;
    }
    return n;
}

/* --- show --- */

static struct json *exchange_json(struct arena *a, const struct cassette_exchange *x)
{
    struct json *o = json_object(a);
    json_setc(a, o, "number", json_integer(a, (int64_t)x->number));
    json_setc(a, o, "method", json_string(a, x->method));
    json_setc(a, o, "target", json_string(a, x->target));
    json_setc(a, o, "model", json_copy(a, json_get(x->about, "model")));
    json_setc(a, o, "began", json_copy(a, json_get(x->about, "began")));
    json_setc(a, o, "status", json_integer(a, x->status));
    json_setc(a, o, "end", json_cstr(a, end_word(x->end)));
    json_setc(a, o, "took_ms", json_number(a, (double)x->took / 1e6));
    json_setc(a, o, "request_bytes", json_integer(a, (int64_t)x->body.len));
    json_setc(a, o, "answer_bytes", json_integer(a, (int64_t)answer_bytes(x)));
    json_setc(a, o, "pieces", json_integer(a, (int64_t)x->n_frames));
    json_setc(a, o, "usage", json_copy(a, json_get(x->closing, "usage")));
    return o;
}

static void add_row(struct table *t, const struct cassette_exchange *x)
{
    table_cellf(t, STYLE_PLAIN, "%" PRIu64, x->number);
    table_cellf(t, x->status >= 400 || x->status == 0 ? STYLE_BAD : STYLE_GOOD, "%d", x->status);
    table_cellf(t, STYLE_PLAIN, "%.1f ms", (double)x->took / 1e6);
    table_cellf(t, STYLE_PLAIN, "%zu", x->body.len);
    table_cellf(t, STYLE_PLAIN, "%zu", answer_bytes(x));
    CLEANUP(buf) struct buf what = BUF_INIT(BUF_TEXT);
    buf_addf(&what, "%.*s %.*s", STR_ARG(x->method), STR_ARG(x->target));
    struct str model = json_str(json_get(x->about, "model"), STR_EMPTY);
    if (model.len > 0) {
        buf_addf(&what, ", %.*s", STR_ARG(model));
    }
    if (x->end != CASSETTE_COMPLETE) {
        buf_addf(&what, ", %s", end_word(x->end));
    }
    table_cell_str(t, STYLE_NAME, buf_str(&what));
}

static int show_list(struct cli *cli, const struct cassette *c, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *list = json_array(cli->arena);
    struct table t = { .arena = cli->arena,
                       .head = true,
                       .columns = { { "exchange", .right = true },
                                    { "status", .right = true },
                                    { "took", .right = true },
                                    { "bytes in", .right = true },
                                    { "bytes out", .right = true },
                                    { "request" } } };
    for (size_t i = 0; i < cassette_len(c); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct cassette_exchange x;
        int r = cassette_exchange(c, i, a, &x, e);
        if (r < 0) {
            return r;
        }
        add_row(&t, &x);
        if (cli->format == CLI_JSON) {
            json_push(cli->arena, list, exchange_json(cli->arena, &x));
        }
    }
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "about", json_copy(cli->arena, cassette_about(c)));
        json_setc(cli->arena, o, "torn", json_boolean(cli->arena, cassette_torn(c)));
        json_setc(cli->arena, o, "exchanges", list);
        cli_print_json(cli, o);
        return 0;
    }
    table_write(&t, terminal_width(&cli->out), cli->out.color, &out);
    if (cassette_torn(c)) {
        buf_adds(&out, "The file ends in the middle of an exchange; that exchange is lost.\n");
    }
    cli_print(cli, &out);
    return 0;
}

/* JSON for people, anything else as it is. */
static void add_body(struct cli *cli, struct str body, struct buf *out)
{
    struct json *v = NULL;
    if (json_parse(cli->arena, body, NULL, &v, NULL) < 0 ||
        json_write(v, JSON_PRETTY, out, NULL) < 0) {
        buf_add(out, body);
        buf_adds(out, "\n");
    }
}

static int show_one(struct cli *cli, const struct cassette *c, uint64_t number, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    size_t i = 0;
    while (i < cassette_len(c) && cassette_number(c, i) != number) {
        i++;
    }
    if (i == cassette_len(c)) {
        return ERR(e, ERR_INPUT, "the cassette has no exchange %" PRIu64, number);
    }
    struct cassette_exchange x;
    int r = cassette_exchange(c, i, cli->arena, &x, e);
    for (size_t k = 0; r == 0 && k < x.n_frames; k++) {
        r = buf_append(&body, x.frames[k].bytes, e);
    }
    if (r < 0) {
        return r;
    }
    if (cli->format == CLI_JSON) {
        struct json *o = exchange_json(cli->arena, &x);
        json_setc(cli->arena, o, "request", json_string(cli->arena, x.body));
        json_setc(cli->arena, o, "answer", json_string(cli->arena, buf_str(&body)));
        cli_print_json(cli, o);
        return 0;
    }
    buf_addf(&out, "%.*s %.*s\n\n", STR_ARG(x.method), STR_ARG(x.target));
    add_body(cli, x.body, &out);
    buf_addf(&out, "\n%d, %s, %.1f ms\n\n", x.status, end_word(x.end), (double)x.took / 1e6);
    add_body(cli, buf_str(&body), &out);
    print_clean(cli, &out);
    return 0;
}

/* A cassette, or the one in the record of a run. */
static int find_cassette(struct cli *cli, const char *name, const char **ret_path, struct err *e)
{
    *ret_path = name;
    if (file_exists(AT_FDCWD, name) && !file_is_dir(AT_FDCWD, name)) {
        return 0;
    }
    int r = run_name_find(cli, name, ret_path, e);
    if (r == 0) {
        *ret_path = arena_printf(cli->arena, "%s/evidence/traffic.cassette", *ret_path);
    }
    return r;
}

static int show(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(cassette) struct cassette *c = NULL;
    const char *path;
    int r = find_cassette(cli, options_arg(opt, 1), &path, e);
    r = r < 0 ? r : cassette_open(path, &c, e);
    if (r < 0) {
        return r;
    }
    int64_t number = options_int(opt, "exchange", 0);
    return number > 0 ? show_one(cli, c, (uint64_t)number, e) : show_list(cli, c, e);
}

/* --- diff, redact --- */

static int diff(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(cassette) struct cassette *left = NULL;
    CLEANUP(cassette) struct cassette *right = NULL;
    CLEANUP(cassette_rules) struct cassette_rules *rules = NULL;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const char *paths[2];
    int r = find_cassette(cli, options_arg(opt, 1), &paths[0], e);
    r = r < 0 ? r : find_cassette(cli, options_arg(opt, 2), &paths[1], e);
    r = r < 0 ? r : cassette_open(paths[0], &left, e);
    r = r < 0 ? r : cassette_open(paths[1], &right, e);
    r = r < 0 ? r : cassette_rules_new(json_get(cassette_about(left), "volatile"), &rules, e);
    r = r < 0 ? r
              : cassette_diff(left, right, rules, options_flag(opt, "all", false) ? SIZE_MAX : 1,
                              &out, e);
    if (r < 0) {
        return r;
    }
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(cli->arena);
        json_setc(cli->arena, o, "differ", json_integer(cli->arena, r));
        json_setc(cli->arena, o, "report", json_string(cli->arena, buf_str(&out)));
        cli_print_json(cli, o);
    } else if (cli->format == CLI_TEXT) {
        print_clean(cli, &out);
    }
    return r > 0 ? err_exit_status(ERR_CONFIG) : 0;
}

static int redact(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(cassette) struct cassette *c = NULL;
    CLEANUP(redactor) struct redactor *red = redactor_new();
    for (const char *const *name = options_list(opt, "secret"); *name != NULL; name++) {
        const char *value = getenv(*name);
        if (value == NULL) {
            return ERR(e, ERR_SECRET, "environment variable '%.80s' is not set", *name);
        }
        int r = redactor_add(red, str_of(*name), str_of(value), e);
        if (r < 0) {
            return r;
        }
    }
    redactor_compile(red);
    int r = cassette_open(options_arg(opt, 1), &c, e);
    return r < 0 ? r : cassette_copy(c, options_arg(opt, 2), red, e);
}

static int run_cassette(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *action = options_arg(opt, 0);
    if (strcmp(action, "show") == 0) {
        return show(cli, opt, e);
    }
    if (strcmp(action, "diff") != 0 && strcmp(action, "redact") != 0) {
        return ERR(e, ERR_USAGE, "unknown action '%.80s'; use show, diff or redact", action);
    }
    if (options_arg_count(opt) < 3) {
        return ERR(e, ERR_USAGE, "'cassette %s' needs two files", action);
    }
    return strcmp(action, "diff") == 0 ? diff(cli, opt, e) : redact(cli, opt, e);
}

static const char *const description[] = {
    "A cassette contains model traffic recorded by the gateway. 'show' lists its exchanges, or "
    "prints one of them in full. 'diff' compares two recordings exchange by exchange, ignores "
    "fields that differ from run to run, and exits with 65 if the recordings differ. 'redact' "
    "writes a copy without the named secrets and without anything that looks like a provider's "
    "key.",
    "The file is compressed with zstd: 'zstd -dc FILE' prints JSON lines.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch cassette show run.cassette", "list the exchanges" },
    { "cinch cassette show -x 3 run.cassette", "print the third exchange" },
    { "cinch cassette diff old.cassette new.cassette",
      "find the first difference between two runs" },
    { "cinch cassette redact -s TOKEN run.cassette clean.cassette", "remove a secret" },
    { 0 },
};

const struct command cmd_cassette = {
    .name = "cassette",
    .summary = "inspect recorded model traffic",
    .minor = true,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_cassette,
};

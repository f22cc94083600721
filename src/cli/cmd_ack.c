/* SPDX-License-Identifier: MIT
 *
 * cinch ack: the adapter compatibility kit. Tries every scenario on every adapter that is here, and
 * says what each keeps of its word.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "ack/report.h"
#include "base/file.h"
#include "cli/ack_choice.h"
#include "cli/ack_screen.h"
#include "cli/ack_try.h"
#include "cli/command.h"
#include "cli/table.h"
#include "cli/text.h"

#define TABLE_MAX ((size_t)16 << 20)

static const char *const modes[] = { "script", "live", NULL };
static const char *const tiers[] = { "1", "2", "3", "4", "specific", NULL };

static const struct option options[] = {
    { "adapter", 'a', OPTION_STRING, .value = "NAME", .section = "Selection",
      .help = "test this adapter", .shown = "$ACK_ADAPTERS, or all", .flags = OPTION_REPEAT,
      .complete = COMPLETE_ADAPTER },
    { "adapter-exec", 0, OPTION_PATH, .value = "PATH", .flags = OPTION_REPEAT,
      .help = "test a program that is an adapter itself; same as --adapter exec:PATH" },
    { "adapter-image", 0, OPTION_STRING, .value = "IMAGE", .flags = OPTION_REPEAT,
      .help = "test an image that is an adapter; same as --adapter image:IMAGE" },
    { "command", 0, OPTION_STRING, .value = "LINE",
      .help = "set the command of an adapter without a program of its own, such as acp" },
    { "read", 0, OPTION_PATH, .value = "PATH", .flags = OPTION_REPEAT, .complete = COMPLETE_FILE,
      .help = "let adapters read PATH, which the sandbox does not show by default" },
    { "secret", 0, OPTION_STRING, .value = "NAME", .flags = OPTION_REPEAT,
      .help = "pass a variable that adapters need; without --live its value is made up" },
    { "adapter-dir", 0, OPTION_PATH, .value = "DIR", .help = "load more adapter profiles from DIR",
      .flags = OPTION_REPEAT, .complete = COMPLETE_DIRECTORY },
    { "scenario", 0, OPTION_STRING, .old_letter = 's', .value = "GLOB",
      .help = "run only scenarios whose names match GLOB", .flags = OPTION_REPEAT },
    { "scenario-file", 0, OPTION_PATH, .value = "FILE", .flags = OPTION_REPEAT,
      .help = "load more scenarios from FILE", .complete = COMPLETE_FILE },
    { "tier", 0, OPTION_ENUM, .words = tiers, .help = "run only scenarios of this level",
      .flags = OPTION_REPEAT },
    { "capability", 0, OPTION_STRING, .value = "NAME",
      .help = "run only scenarios for this capability", .flags = OPTION_REPEAT },
    { "matrix", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "test the adapters and program versions that FILE lists (scripts/harness --matrix)" },
    { "require", 0, OPTION_FLAG, .help = "fail if nothing could be tested on one of the adapters" },
    { "list", 0, OPTION_FLAG, .old_letter = 'l',
      .help = "list the scenarios without running them" },
    { "live", 0, OPTION_FLAG, .section = "Execution",
      .help = "run the agents with their real models instead of a script" },
    { "max-usd", 0, OPTION_STRING, .value = "AMOUNT",
      .help = "with --live: stop before the cost of all runs can exceed AMOUNT (US dollars, by the "
              "price table)" },
    { "mode", 0, OPTION_ENUM, .words = modes,
      .help = "use --live for real models; a script is the default",
      .flags = OPTION_HIDDEN | OPTION_DEPRECATED },
    { "jobs", 'j', OPTION_INT, .value = "N", .help = "run N scenarios in parallel",
      .shown = "number of CPUs", .min = 1, .max = 64 },
    { "shuffle", 0, OPTION_INT, .value = "SEED", .max = INT32_MAX,
      .help = "run in random order; the same SEED gives the same order",
      .shown = "adapter by adapter" },
    { "timeout", 't', OPTION_DURATION, .value = "TIME", .shown = "$ACK_TIMEOUT, or 120",
      .help = "set the timeout of scenarios that do not have one", .flags = OPTION_POSITIVE },
    { "expected-failures", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "read the lists of expected failures and flaky scenarios from FILE" },
    { "output", 'o', OPTION_PATH, .value = "DIR", .old_name = "dir", .complete = COMPLETE_DIRECTORY,
      .help = "run the scenarios in DIR, which must be new or empty",
      .shown = "a temporary directory" },
    { "keep", 0, OPTION_FLAG,
      .help = "keep the files of all scenario runs, not only of failed ones" },
    { "json", 0, OPTION_PATH, .value = "FILE", .section = "Reports",
      .help = "write a JSON report; - is standard output" },
    { "junit", 0, OPTION_PATH, .value = "FILE",
      .help = "write a JUnit XML report for CI; - is standard output" },
    { "html", 0, OPTION_PATH, .value = "FILE",
      .help = "write a one-page HTML report; - is standard output" },
    { "publish", 0, OPTION_FLAG,
      .help = "update compatibility.md and compatibility.json, the tables of what each adapter "
              "supports; with --live, compatibility-live.md and compatibility-live.json" },
    { "publish-dir", 0, OPTION_PATH, .value = "DIR", .shown = "docs",
      .help = "write the files of --publish to DIR", .complete = COMPLETE_DIRECTORY },
    { 0 },
};

/* --- list --- */

/* Columns of the list: BESIDE are those of the tier, of gaps, and the fewest for a summary. */
enum { CAPABILITY_MAX = 44, BESIDE = 44 };

static void list_json(struct cli *cli, const struct scenario_list *list)
{
    struct arena *a = cli->arena;
    struct json *items = json_array(a);
    struct json *root = json_object(a);
    for (size_t i = 0; i < list->len; i++) {
        const struct scenario *s = list->items[i];
        struct json *o = json_object(a);
        struct json *capabilities = json_array(a);
        for (const char **c = s->capabilities; c != NULL && *c != NULL; c++) {
            json_push(a, capabilities, json_cstr(a, *c));
        }
        json_setc(a, o, "name", json_cstr(a, s->name));
        json_setc(a, o, "tier", json_cstr(a, capability_tier_word(s->tier)));
        json_setc(a, o, "capabilities", capabilities);
        json_setc(a, o, "summary", json_cstr(a, s->summary));
        json_setc(a, o, "live", json_boolean(a, !s->hermetic));
        json_push(a, items, o);
    }
    json_setc(a, root, "scenarios", items);
    cli_print_json(cli, root);
}

static void add_capabilities(const struct scenario *s, struct buf *out)
{
    for (const char **c = s->capabilities; c != NULL && *c != NULL; c++) {
        buf_addf(out, "%s%s", c == s->capabilities ? "" : ", ", *c);
    }
}

static bool fits_table(const struct scenario_list *list, size_t width)
{
    size_t widest = 0;
    for (size_t i = 0; i < list->len; i++) {
        size_t len = strlen(list->items[i]->name);
        widest = len > widest ? len : widest;
    }
    return widest + CAPABILITY_MAX + BESIDE <= width;
}

static void list_table(struct cli *cli, const struct scenario_list *list, struct buf *out)
{
    struct table t = {
        .arena = cli->arena,
        .head = true,
        .columns = { { "scenario" },
                     { "tier" },
                     { "capability", .max = CAPABILITY_MAX },
                     { "summary" } },
    };
    for (size_t i = 0; i < list->len; i++) {
        const struct scenario *s = list->items[i];
        CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
        add_capabilities(s, &names);
        table_cell(&t, STYLE_NAME, s->name);
        table_cell(&t, STYLE_PLAIN, capability_tier_word(s->tier));
        table_cell_str(&t, STYLE_DIM, buf_str(&names));
        table_cell(&t, STYLE_PLAIN, s->summary);
    }
    table_write(&t, terminal_width(&cli->out), cli->out.color, out);
}

/* Where the columns have no room beside each other, what belongs to a name stands under it. */
static void list_narrow(struct cli *cli, const struct scenario_list *list, struct buf *out)
{
    const struct text_shape under = { 4, 4, terminal_width(&cli->out) };
    for (size_t i = 0; i < list->len; i++) {
        const struct scenario *s = list->items[i];
        CLEANUP(buf) struct buf about = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf summary = BUF_INIT(BUF_TEXT);
        buf_addf(&about, "tier %s%s", capability_tier_word(s->tier),
                 s->capabilities == NULL ? "" : ": ");
        add_capabilities(s, &about);
        text_clean(&summary, str_of(s->summary), TEXT_LINE);
        style_add(out, cli->out.color, STYLE_NAME, s->name);
        buf_adds(out, "\n    ");
        style_begin(out, cli->out.color, STYLE_DIM);
        text_wrap(out, buf_str(&about), under);
        style_end(out, cli->out.color, STYLE_DIM);
        buf_adds(out, "\n    ");
        text_wrap(out, buf_str(&summary), under);
        buf_adds(out, "\n");
    }
}

static void list_text(struct cli *cli, const struct scenario_list *list)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    bool wide = fits_table(list, terminal_width(&cli->out));
    (wide ? list_table : list_narrow)(cli, list, &out);
    cli_print(cli, &out);
}

static void list_names(struct cli *cli, const struct scenario_list *list)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < list->len; i++) {
        buf_addf(&out, "%s\n", list->items[i]->name);
    }
    cli_print(cli, &out);
}

static int list(struct cli *cli, const struct scenario_list *scenarios)
{
    switch (cli->format) {
    case CLI_JSON:
        list_json(cli, scenarios);
        break;
    case CLI_QUIET:
        list_names(cli, scenarios);
        break;
    case CLI_TEXT:
        list_text(cli, scenarios);
        break;
    }
    return 0;
}

/* --- reports --- */

typedef int report_fn(const struct kit_report *r, struct buf *out, struct err *e);

static const struct form {
    const char *option;
    report_fn *make;
} forms[] = { { "json", report_json }, { "junit", report_junit }, { "html", report_html } };

/* Where this report goes; NULL: it is not wanted. */
static const char *path_of(const struct options *opt, const struct form *f)
{
    return options_string(opt, f->option, NULL);
}

static bool is_stdout(const char *path)
{
    return path != NULL && (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0);
}

/* A report there wants it for itself. */
static const struct form *form_on_stdout(const struct options *opt)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (is_stdout(path_of(opt, &forms[i]))) {
            return &forms[i];
        }
    }
    return NULL;
}

static bool same_file(const char *one, const char *other)
{
    if (is_stdout(one) || is_stdout(other)) {
        return is_stdout(one) && is_stdout(other);
    }
    return file_same_output(one, other);
}

static bool is_live(const struct options *opt)
{
    return options_flag(opt, "live", false) ||
           strcmp(options_string(opt, "mode", "script"), "live") == 0;
}

/* Real models follow instructions or not, so their results have a table of their own. */
static const char *table_path(struct arena *a, const char *dir, bool live, const char *kind)
{
    return arena_printf(a, "%s/compatibility%s.%s", dir, live ? "-live" : "", kind);
}

static bool wants_table(const struct options *opt)
{
    return options_given(opt, "publish") || options_given(opt, "publish-dir");
}

static const char *table_dir(const struct options *opt)
{
    return options_string(opt, "publish-dir", "docs");
}

static bool is_table(struct arena *a, const struct options *opt, const char *path)
{
    return wants_table(opt) &&
           (same_file(table_path(a, table_dir(opt), is_live(opt), "json"), path) ||
            same_file(table_path(a, table_dir(opt), is_live(opt), "md"), path));
}

/* Two reports in one file would be none. */
static int check_same(struct arena *a, const struct options *opt, const struct form *f,
                      struct err *e)
{
    const char *path = path_of(opt, f);
    for (const struct form *other = forms; other < f; other++) {
        const char *earlier = path_of(opt, other);
        if (earlier != NULL && same_file(earlier, path)) {
            return ERR(e, ERR_USAGE, "--%s and --%s name the same file: '%s'", other->option,
                       f->option, path);
        }
    }
    return is_table(a, opt, path)
               ? ERR(e, ERR_USAGE, "--%s names a file that --publish writes: '%s'", f->option, path)
               : 0;
}

/* Before the first trial: who has waited for an hour wants to read something. */
static int check_reports(const struct cli *cli, const struct options *opt, struct err *e)
{
    const struct form *out = form_on_stdout(opt);
    int r = 0;
    if (out != NULL && cli->format == CLI_JSON) {
        return ERR(e, ERR_USAGE, "--%s: standard output is already used by --format json",
                   out->option);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(forms); i++) {
        const char *path = path_of(opt, &forms[i]);
        if (path == NULL) {
            continue;
        }
        r = check_same(cli->arena, opt, &forms[i], e);
        if (r == 0 && !is_stdout(path) && file_check_output(path, e) < 0) {
            r = err_wrap(e, "--%s", forms[i].option);
        }
    }
    return r;
}

static int write_report(struct cli *cli, const struct form *f, const char *path,
                        const struct kit_report *r, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int result = f->make(r, &text, e);
    if (result == 0 && is_stdout(path)) {
        cli_print(cli, &text);
        return 0;
    }
    return result < 0 ? result : file_write_output(path, buf_str(&text), 0644, e);
}

/* All that can be written is; the first that cannot is the error. */
static int write_reports(struct cli *cli, const struct options *opt, const struct kit_report *r,
                         struct err *e)
{
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const char *path = path_of(opt, &forms[i]);
        int one = path == NULL ? 0 : write_report(cli, &forms[i], path, r, result < 0 ? NULL : e);
        result = result < 0 ? result : one;
    }
    return result;
}

/* The table that is there; NULL: none is. */
static int read_table(struct arena *a, const char *path, struct json **ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TABLE_MAX);
    *ret = NULL;
    if (!file_exists(AT_FDCWD, path)) {
        return 0;
    }
    int r = file_read(AT_FDCWD, path, TABLE_MAX, &text, e);
    r = r < 0 ? r : json_parse(a, buf_str(&text), NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", path) : 0;
}

static int publish(struct arena *a, const char *dir, const struct kit_report *r, struct err *e)
{
    CLEANUP(buf) struct buf markdown = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const char *path = table_path(a, dir, r->live, "json");
    struct json *before;
    int result = file_mkdirs(AT_FDCWD, dir, 0755, e);
    result = result < 0 ? result : read_table(a, path, &before, e);
    if (result < 0) {
        return result;
    }
    if (report_compatibility(r, before, &markdown, &text, e) < 0) {
        return err_wrap(e, "%s", path);
    }
    result = file_write_output(path, buf_str(&text), 0644, e);
    path = table_path(a, dir, r->live, "md");
    return result < 0 ? result : file_write_output(path, buf_str(&markdown), 0644, e);
}

/* Rows will be added to the one that is there: it must be one. */
static int check_table(struct arena *a, const char *dir, bool live, struct err *e)
{
    struct json *before;
    int r = file_mkdirs(AT_FDCWD, dir, 0755, e);
    r = r < 0 ? r : file_check_output(table_path(a, dir, live, "json"), e);
    r = r < 0 ? r : file_check_output(table_path(a, dir, live, "md"), e);
    r = r < 0 ? r : read_table(a, table_path(a, dir, live, "json"), &before, e);
    if (r == 0 && before != NULL) {
        CLEANUP(buf) struct buf markdown = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        const struct kit_report none = { .live = live };
        r = report_compatibility(&none, before, &markdown, &text, e);
        r = r < 0 ? err_wrap(e, "%s", table_path(a, dir, live, "json")) : 0;
    }
    return r < 0 ? err_wrap(e, "--publish-dir") : 0;
}

/* What only some scenarios say is not proven. */
static int check_publish(const struct options *opt, struct err *e)
{
    static const char *const filters[] = { "scenario", "tier", "capability" };
    for (size_t i = 0; wants_table(opt) && i < ARRAY_LEN(filters); i++) {
        if (options_given(opt, filters[i])) {
            return ERR(e, ERR_USAGE, "--publish needs all scenarios: remove --%s", filters[i]);
        }
    }
    return 0;
}

/* All that will be written. */
static int check_outputs(const struct cli *cli, const struct options *opt, struct err *e)
{
    int r = check_reports(cli, opt, e);
    return r < 0 || !wants_table(opt) ? r
                                      : check_table(cli->arena, table_dir(opt), is_live(opt), e);
}

/* Where all of it is, in one line; that of failures is named with each. */
static void add_kept(const struct kit_opts *o, const struct kit_report *r, struct buf *out)
{
    bool kept = false;
    for (size_t i = 0; o->keep && i < r->len; i++) {
        kept = kept || r->verdicts[i].dir != NULL;
    }
    if (kept) {
        buf_adds(out, "kept in ");
        text_clean(out, str_of(o->dir), TEXT_LINE);
        buf_adds(out, "\n");
    }
}

/* --require: CI that tests nothing must not be green. */
static int check_tested(struct arena *a, const struct kit_report *r, struct err *e)
{
    for (size_t i = 0; i < r->adapters_len; i++) {
        const struct kit_adapter *x = &r->adapters[i];
        const char *why = x->available ? "no scenario applies" : x->why_not;
        bool tested = false;
        for (size_t k = 0; k < r->len && !tested; k++) {
            tested = r->verdicts[k].adapter == x->name && r->verdicts[k].status != VERDICT_SKIPPED;
        }
        if (!tested) {
            return ERR(e, ERR_UNAVAILABLE, "--require: nothing was tested on adapter '%s': %s",
                       x->name, why);
        }
    }
    return 0;
}

static int report(struct cli *cli, const struct options *opt, const struct kit_opts *o,
                  const struct kit_report *r, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct terminal *screen = form_on_stdout(opt) == NULL ? &cli->out : &cli->err;
    int result = write_reports(cli, opt, r, e);
    if (result == 0 && wants_table(opt) && !r->interrupted) {
        result = publish(cli->arena, table_dir(opt), r, e);
    }
    if (result == 0 && cli->format == CLI_JSON) {
        result = report_json(r, &out, e);
    } else if (cli->format == CLI_TEXT) {
        ack_screen_report(cli->arena, r, screen, &out);
        add_kept(o, r, &out);
    }
    terminal_write(screen, buf_str(&out));
    if (result == 0 && options_flag(opt, "require", false) && !r->interrupted) {
        result = check_tested(cli->arena, r, e);
    }
    return result < 0 ? result : ack_try_status(r);
}

/* --- the command --- */

static int check_secrets(const char *const *names, struct err *e)
{
    for (; *names != NULL; names++) {
        if ((*names)[0] == '\0' || strchr(*names, '=') != NULL) {
            return ERR(e, ERR_USAGE, "--secret takes the name of a variable, not '%.80s'", *names);
        }
    }
    return 0;
}

static int choose_limit(const struct options *opt, double *ret, struct err *e)
{
    const char *usd = options_string(opt, "max-usd", NULL);
    if (usd == NULL) {
        return 0;
    }
    if (!is_live(opt)) {
        return ERR(e, ERR_USAGE, "--max-usd needs --live: a scripted model costs nothing");
    }
    if (!str_to_double(str_of(usd), ret) || *ret <= 0) {
        return ERR(e, ERR_USAGE, "--max-usd: '%.40s' is not an amount above 0; example: 2.50", usd);
    }
    return 0;
}

static int run_ack(struct cli *cli, const struct options *opt, struct err *e)
{
    struct kit_report found;
    struct kit_opts o = ack_try_defaults();
    o.live = is_live(opt);
    o.jobs = (unsigned)options_int(opt, "jobs", o.jobs);
    o.shuffle = options_given(opt, "shuffle");
    o.seed = (uint64_t)options_int(opt, "shuffle", 0);
    o.keep = options_flag(opt, "keep", false);
    o.expected = options_string(opt, "expected-failures", NULL);
    o.secrets = options_list(opt, "secret");
    int r = ack_choose_scenarios(cli, opt, &o, e);
    if (r == 0 && options_given(opt, "list")) {
        return list(cli, &o.scenarios);
    }
    r = r < 0 ? r : check_publish(opt, e);
    r = r < 0 ? r : choose_limit(opt, &o.max_usd, e);
    r = r < 0 ? r : check_secrets(o.secrets, e);
    r = r < 0 ? r : ack_choose_timeout(opt, &o.timeout, e);
    r = r < 0 ? r : ack_choose_adapters(cli, opt, &o, e);
    r = r < 0 ? r : ack_choose_contract(&o, e);
    r = r < 0 ? r : check_outputs(cli, opt, e);
    r = r < 0 ? r : ack_try(cli, options_string(opt, "output", NULL), &o, &found, e);
    return r < 0 ? r : report(cli, opt, &o, &found, e);
}

static const char *const usage[] = { "[OPTIONS]", NULL };

static const char *const description[] = {
    "Runs the adapter compatibility kit: a set of scenarios that test adapters. Agents are the "
    "real programs and their model is a script, so neither a key nor a network is needed. With "
    "`--live` they use their real models.",
    "Adapters whose program is not installed and scenarios for capabilities that a profile does "
    "not declare are skipped, and the reason is reported. Each scenario runs separately, in a "
    "directory of its own; the directory of a failed scenario is kept and its path is printed. The "
    "exit status is 1 if a scenario failed, and 130 or 143 if the kit was interrupted.",
    "Your own adapter can be a profile (--adapter-dir and --adapter), a program (--adapter-exec) "
    "or an image (--adapter-image). For programs and images the kit also runs the checks of the "
    "file contract described in docs/images.md (contract_manifest and so on); these take four "
    "runs. Programs and images declare their other capabilities in the manifest that they write "
    "when started with --probe: {…, \"metadata\": {\"version\": \"1.2\", \"capabilities\": "
    "[\"text_response\", \"transcript\"]}}. A program or image that is missing or cannot be "
    "started is an error (exit status 69).",
    "--expected-failures names a YAML file with two lists, `expected` and `flaky`, of entries "
    "{adapter, scenario, reason}; adapter and scenario are patterns. A scenario that is expected "
    "to fail but passes is stale and counts as a failure, and so does an entry for scenarios that "
    "do not exist. A flaky scenario is run twice (a check of the file contract once) and never "
    "counts as a failure.",
    "--publish adds to the existing tables: rows of other adapters and versions are kept.",
    "--matrix tests several versions of the agents' programs. Each line of FILE has an adapter, "
    "the "
    "version, and the directories that are searched before PATH, separated by colons; then, for an "
    "adapter such as acp, its command. Fields are separated by tabs. `scripts/harness --matrix` "
    "installs the programs and prints such a file.",
    "An adapter whose program is not installed is skipped, and the exit status is 0. With "
    "--require "
    "it is an error (exit status 69).",
    "Variables: ACK_ADAPTERS (comma-separated names), ACK_TIMEOUT (seconds), and for the model of "
    "an adapter CLAUDE_AGENT_SDK_TEST_MODEL, CODEX_APP_SERVER_TEST_MODEL, GEMINI_ACP_TEST_MODEL "
    "and OPENCODE_ACP_TEST_MODEL, or ACK_MODEL_QWEN and so on for all others.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch ack", "run all scenarios on all installed adapters" },
    { "cinch ack --list", "list the scenarios" },
    { "cinch ack -a codex --tier 1 --tier 2 --junit ack.xml", "run some of them in CI" },
    { "cinch ack --adapter-dir profiles -a mine --keep", "test your own profile" },
    { "cinch ack --adapter-exec ./my-adapter --secret MY_KEY", "test your own program" },
    { "cinch ack -a acp --command 'my-agent --acp'",
      "test an agent that speaks the Agent Client Protocol" },
    { 0 },
};

const struct command cmd_ack = {
    .name = "ack",
    .minor = true,
    .summary = "test adapters against what they declare",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .run = run_ack,
};

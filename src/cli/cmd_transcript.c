/* SPDX-License-Identifier: MIT
 *
 * cinch transcript: reading what was said and done in a run, and whether that can be relied on.
 */
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/run_name.h"
#include "cli/text.h"
#include "validate/validator.h"

enum { FINDINGS = 1 }; /* exit status */

static const char *const actions[] = { "check", "show", NULL };

static const char *const check_words[] = {
#define X(check, word, holds) word,
    VALIDATOR_LIST(X)
#undef X
        NULL,
};

static const struct option options[] = {
    { "only", 0, OPTION_ENUM, .old_name = "check", .old_letter = 'c', .words = check_words,
      .flags = OPTION_REPEAT, .value = "NAME", .shown = "all",
      .help = "check: run only this check" },
    { "adapter", 'a', OPTION_STRING, .value = "NAME", .complete = COMPLETE_ADAPTER,
      .help = "check: require this adapter on all lines" },
    { "tool", 0, OPTION_STRING, .old_letter = 't', .value = "NAME",
      .help = "check: require a call of this tool with a result" },
    { 0 },
};

static const struct positional positionals[] = {
    { "ACTION", "check or show (default)", .optional = true, .complete = COMPLETE_WORDS,
      .words = actions },
    { "RUN", "a run (path, last, or part of an id), or a transcript.jsonl", .optional = true,
      .complete = COMPLETE_FILE },
    { 0 },
};

/* --- check --- */

static struct json *finding_json(struct arena *a, const struct validator_finding *f)
{
    struct json *o = json_object(a);
    json_setc(a, o, "check", json_cstr(a, validator_check_word(f->check)));
    json_setc(a, o, "file", json_cstr(a, f->file));
    json_setc(a, o, "line", f->line == 0 ? json_null(a) : json_integer(a, (int64_t)f->line));
    json_setc(a, o, "sentence", json_cstr(a, f->sentence));
    return o;
}

static struct json *summary_json(struct arena *a, const struct validator_summary *s)
{
    struct json *o = json_object(a);
    struct json *types = json_object(a);
    for (size_t i = 0; i < ENTRY_TYPE_MAX; i++) {
        if (s->by_type[i] > 0) {
            json_setc(a, types, entry_type_word((enum entry_type)i),
                      json_integer(a, s->by_type[i]));
        }
    }
    json_setc(a, o, "adapter", json_cstr(a, s->adapter));
    json_setc(a, o, "prompt_name", json_cstr(a, s->prompt_name));
    json_setc(a, o, "conversations", json_integer(a, s->conversations));
    json_setc(a, o, "total_entries", json_integer(a, s->entries));
    json_setc(a, o, "entries_by_source", json_copy(a, s->by_source));
    json_setc(a, o, "entries_by_type", types);
    json_setc(a, o, "first_timestamp", json_cstr(a, s->first));
    json_setc(a, o, "last_timestamp", json_cstr(a, s->last));
    return o;
}

static void print_json(struct cli *cli, const struct validator_report *r)
{
    struct arena *a = cli->arena;
    struct json *o = json_object(a);
    struct json *list = json_array(a);
    for (size_t i = 0; i < r->n_findings; i++) {
        json_push(a, list, finding_json(a, &r->findings[i]));
    }
    json_setc(a, o, "clean", json_boolean(a, r->n_findings == 0));
    json_setc(a, o, "findings", list);
    json_setc(a, o, "left_out", json_integer(a, (int64_t)r->left_out));
    json_setc(a, o, "summary", summary_json(a, &r->summary));
    cli_print_json(cli, o);
}

/* "out/transcript.jsonl:4: sequence: …", as compilers do: editors jump there. */
static void add_finding(struct buf *out, const char *path, bool is_dir,
                        const struct validator_finding *f)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    size_t len = strlen(path);
    buf_adds(&text, path);
    if (is_dir) {
        buf_addf(&text, "%s%s", len > 0 && path[len - 1] == '/' ? "" : "/",
                 f->file != NULL ? f->file : "transcript.jsonl");
    }
    if (f->line > 0) {
        buf_addf(&text, ":%zu", f->line);
    }
    buf_addf(&text, ": %s: %s", validator_check_word(f->check), f->sentence);
    text_clean(out, buf_str(&text), TEXT_LINE);
    buf_adds(out, "\n");
}

static void print_text(struct cli *cli, const char *path, const struct validator_report *r)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    bool is_dir = file_is_dir(AT_FDCWD, path);
    for (size_t i = 0; i < r->n_findings; i++) {
        add_finding(&out, path, is_dir, &r->findings[i]);
    }
    if (r->left_out > 0) {
        buf_addf(&out, "and %zu more\n", r->left_out);
    }
    if (r->n_findings == 0) {
        buf_addf(&out, "clean: %lld entr%s in %lld conversation%s\n", (long long)r->summary.entries,
                 r->summary.entries == 1 ? "y" : "ies", (long long)r->summary.conversations,
                 r->summary.conversations == 1 ? "" : "s");
    }
    cli_print(cli, &out);
}

/* What is expected is looked at by one check; if that is not asked for, nobody would. */
static int check_expectations(const struct validator_opts *what, struct err *e)
{
    const struct {
        const char *option;
        const char *given;
        enum validator_check check;
    } all[] = {
        { "adapter", what->adapter, VALIDATOR_ADAPTER_LABEL },
        { "tool", what->tool, VALIDATOR_CAUSAL_ORDER },
    };
    for (size_t i = 0; what->checks != 0 && i < ARRAY_LEN(all); i++) {
        const char *word = validator_check_word(all[i].check);
        if (all[i].given != NULL && (what->checks & 1u << all[i].check) == 0) {
            return ERR(e, ERR_USAGE, "--%s needs the check %s: add --only %s, or remove --only",
                       all[i].option, word, word);
        }
    }
    return 0;
}

static int check(struct cli *cli, const struct options *opt, const char *path, struct err *e)
{
    CLEANUP(validator) struct validator *o = NULL;
    struct validator_opts what = {
        .adapter = options_string(opt, "adapter", NULL),
        .tool = options_string(opt, "tool", NULL),
    };
    for (const char *const *word = options_list(opt, "only"); *word != NULL; word++) {
        enum validator_check c;
        if (validator_check_find(str_of(*word), &c)) {
            what.checks |= 1u << c;
        }
    }
    int r = check_expectations(&what, e);
    r = r < 0 ? r : validator_look(path, &what, &o, e);
    if (r < 0) {
        return r;
    }
    const struct validator_report *report = validator_report(o);
    if (cli->format == CLI_JSON) {
        print_json(cli, report);
    } else if (cli->format == CLI_TEXT) {
        print_text(cli, path, report);
    }
    return report->n_findings == 0 ? 0 : FINDINGS;
}

/* --- show --- */

struct showing {
    struct cli *cli;
    struct conversation_style style;
    bool began; /* something is printed */
    struct json *list;
};

static void show_entry(void *arg, size_t line, const struct json *fields)
{
    struct showing *s = arg;
    if (s->cli->format == CLI_JSON) {
        json_push(s->cli->arena, s->list, json_copy(s->cli->arena, fields));
        return;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    conversation_add(fields, s->style, &text);
    if (!s->began && text.len > 0 && text.ptr[0] == '\n') { /* no empty line before the first */
        terminal_write(&s->cli->out, str_slice(buf_str(&text), 1, text.len));
    } else {
        cli_print(s->cli, &text);
    }
    s->began = s->began || text.len > 0;
}

static int show(struct cli *cli, const struct options *opt, const char *path, struct err *e)
{
    CLEANUP(validator) struct validator *o = NULL;
    struct showing s = {
        .cli = cli,
        .style = { .width = terminal_text_width(&cli->out),
                   .color = cli->out.color,
                   .verbose = options_count(opt, "verbose") > 0 },
        .list = json_array(cli->arena),
    };
    struct validator_opts what = { .checks = 1u << VALIDATOR_ENVELOPE,
                                   .entry = show_entry,
                                   .arg = &s };
    int r = validator_look(path, &what, &o, e);
    if (r == 0 && cli->format == CLI_JSON) {
        struct json *out = summary_json(cli->arena, &validator_report(o)->summary);
        json_setc(cli->arena, out, "entries", s.list);
        cli_print_json(cli, out);
    }
    return r;
}

/* A transcript may also be a file of its own, with any name. */
static int find_transcript(struct cli *cli, const char *name, const char **ret_path, struct err *e)
{
    if (name != NULL && file_exists(AT_FDCWD, name) && !file_is_dir(AT_FDCWD, name)) {
        *ret_path = name;
        return 0;
    }
    return run_name_find(cli, name, ret_path, e);
}

static int run_transcript(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *action = options_arg(opt, 0);
    const char *name = options_arg(opt, 1);
    const char *path;
    bool checks = action != NULL && strcmp(action, "check") == 0;
    if (action != NULL && !checks && strcmp(action, "show") != 0) {
        if (name != NULL) {
            return ERR(e, ERR_USAGE, "unknown action '%.80s'; use check or show", action);
        }
        name = action;
    }
    int r = find_transcript(cli, name, &path, e);
    if (r < 0) {
        return r;
    }
    return checks ? check(cli, opt, path, e) : show(cli, opt, path, e);
}

static const char *const usage[] = { "[show] [RUN]", "check [--only NAME] [RUN]", NULL };

static const char *const description[] = {
    "The transcript of a run contains messages, tool calls and results, in one format for all "
    "agents. 'check' validates it and prints each error as 'file:line: check: sentence'. It exits "
    "with 0 if there are no errors, with 1 if there are errors, and with 65 if the file is not a "
    "transcript. 'show' prints the entries in readable form.",
    "Checks: envelope (each line is complete and has its fields), canonical_types (nine types of "
    "entries), sequence (numbered from 1 without gaps, per source), adapter_label (the same "
    "adapter everywhere), causal_order (calls before their results, each once), bracketing (all "
    "entries are between a start and a stop that counts them), and, for run directories only, "
    "bundle (manifest, events and agent.log agree with the transcript).",
    "Log records that carry transcript entries in their context, as WINK writes them, are also "
    "accepted.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch transcript check out", "run all checks on the transcript of a run" },
    { "cinch transcript check --only sequence --only bracketing transcript.jsonl",
      "run only some checks" },
    { "cinch transcript last | less", "read the transcript of the newest run" },
    { 0 },
};

const struct command cmd_transcript = {
    .name = "transcript",
    .summary = "validate or read the transcript of a run",
    .minor = true,
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_transcript,
};

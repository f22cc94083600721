/* SPDX-License-Identifier: MIT
 *
 * cinch demo: a real run, start to end, that needs no key, no network and no harness. A small
 * repository has a test that fails; the built-in agent fixes it in the sandbox, the patch is shown
 * and applied, the test is run again. Only the model is not real: it is a script.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/demo_files.h"
#include "cli/run_request.h"
#include "cli/text.h"
#include "io/loop.h"
#include "proc/locate.h"
#include "proc/proc.h"
#include "run/run.h"

struct demo {
    struct cli *cli;
    const char *dir; /* of everything */
    const char *repository, *record;
};

/* --- programs --- */

struct program {
    struct buf output;
    int status; /* -1: no exit status */
};

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct program *p = arg;
    (void)!buf_append(&p->output, bytes, NULL); /* what a test prints beyond a MiB nobody reads */
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct program *p = arg;
    p->status = r->exit_known && !r->signaled ? r->value : -1;
}

static int run_program(struct demo *d, const char *const *argv, struct str input,
                       struct program *ret, struct err *e)
{
    CLEANUP(loop) struct loop *loop = NULL;
    struct proc *proc = NULL;
    ret->status = -1;
    int r = loop_new(&loop, e);
    if (r < 0) {
        return r;
    }
    struct proc_opts opts = {
        .argv = argv,
        .envp = (const char *const *)environ,
        .cwd = d->repository,
        .stdin_mode = PROC_STDIN_BYTES,
        .stdin_bytes = input,
        .port = { .on_output = on_output, .on_done = on_done, .arg = ret },
    };
    r = proc_start(loop, &opts, &proc, e);
    if (r < 0) {
        return r;
    }
    loop_run(loop);
    proc_free(proc);
    return 0;
}

/* --- what is shown --- */

static void show(struct demo *d, const struct buf *text)
{
    if (d->cli->format == CLI_TEXT) {
        cli_print(d->cli, text);
    }
}

static void say_step(struct demo *d, const char *title)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "\n");
    style_add(&out, d->cli->out.color, STYLE_BOLD, title);
    buf_adds(&out, "\n");
    show(d, &out);
}

static void say_text(struct demo *d, enum style style, struct str text)
{
    CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    text_clean(&clean, str_trim(text), TEXT_BLOCK);
    struct str rest = buf_str(&clean);
    while (rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        const char *copy = arena_dup(d->cli->arena, line);
        enum style of_line = style;
        if (style == STYLE_NAME) { /* a patch */
            of_line = line.len > 0 && line.ptr[0] == '+'   ? STYLE_GOOD
                      : line.len > 0 && line.ptr[0] == '-' ? STYLE_BAD
                                                           : STYLE_PLAIN;
        }
        buf_adds(&out, "   ");
        style_add(&out, d->cli->out.color, of_line, copy);
        buf_adds(&out, "\n");
    }
    show(d, &out);
}

/* --- the story --- */

static int write_files(struct demo *d, struct err *e)
{
    int r = file_mkdirs(AT_FDCWD, d->repository, 0755, e);
    for (size_t i = 0; r == 0 && i < demo_files_len; i++) {
        const struct demo_file *f = &demo_files[i];
        const char *path = arena_printf(d->cli->arena, "%s/%s", d->repository, f->file);
        mode_t mode = str_ends(str_of(f->file), STR(".sh")) ? 0755 : 0644;
        r = file_write_atomic(AT_FDCWD, path, str_n(f->text, f->len), mode, e);
    }
    return r;
}

/* 1 when the test passes. */
static int run_test(struct demo *d, struct err *e)
{
    static const char *const argv[] = { "sh", "./test.sh", NULL };
    struct program p = { .output = BUF_INIT(1 << 20) };
    int r = run_program(d, argv, STR_EMPTY, &p, e);
    if (r == 0) {
        say_text(d, p.status == 0 ? STYLE_GOOD : STYLE_BAD, buf_str(&p.output));
        r = p.status == 0;
    }
    buf_done(&p.output);
    return r;
}

static int read_record(struct demo *d, const char *name, struct json **ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const char *path = arena_printf(d->cli->arena, "%s/%s", d->record, name);
    int r = file_read(AT_FDCWD, path, BUF_TEXT, &text, e);
    return r < 0 ? r : json_parse(d->cli->arena, buf_str(&text), NULL, ret, e);
}

static int say_metrics(struct demo *d, const struct run_summary *sum, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    char took[TEXT_SHORT], in[TEXT_SHORT], back[TEXT_SHORT];
    struct json *m = NULL;
    int r = read_record(d, "metrics.json", &m, e);
    if (r < 0) {
        return r;
    }
    buf_adds(&out, "   ");
    style_add(&out, d->cli->out.color, STYLE_GOOD, reason_word(sum->reason));
    buf_addf(&out, " in %s: %lld model calls, %s tokens in, %s out, counted by the gateway\n",
             text_duration(sum->took, took), (long long)json_int(json_get(m, "api_calls"), 0),
             text_count(json_int(json_get(m, "tokens_input"), 0), in),
             text_count(json_int(json_get(m, "tokens_output"), 0), back));
    show(d, &out);
    return 0;
}

static int run_agent(struct demo *d, struct err *e)
{
    struct arena *a = d->cli->arena;
    struct json *request = json_object(a);
    struct run_summary sum;
    json_setc(a, request, "output", json_cstr(a, d->record));
    json_setc(a, request, "workspace", json_cstr(a, d->repository));
    struct run_opts opts = {
        .settings = { .task_file = arena_printf(a, "%s/task.yaml", d->repository),
                      .request = request },
        .runs_dir = d->dir,
        .environ = (const char *const *)environ,
    };
    int r = run_execute(&opts, &sum, e);
    if (r == 0 && sum.reason != REASON_SUCCESS) {
        return ERR(e, ERR_BUG, "the run failed (%s): %s", reason_word(sum.reason), sum.message);
    }
    return r < 0 ? r : say_metrics(d, &sum, e);
}

/* `cinch NAME RUN`, as the user would type it. */
static int run_command(struct demo *d, const char *name, enum style style, struct err *e)
{
    char cinch[PATH_MAX];
    struct program p = { .output = BUF_INIT(1 << 20) };
    int r = locate_cinch(cinch, e);
    const char *const argv[] = { cinch, name, d->record, NULL };
    r = r < 0 ? r : run_program(d, argv, STR_EMPTY, &p, e);
    if (r == 0 && p.status != 0) {
        r = ERR(e, ERR_BUG, "cinch %s: %.*s", name, STR_ARG(str_trim(buf_str(&p.output))));
    } else if (r == 0) {
        say_text(d, style, buf_str(&p.output));
    }
    buf_done(&p.output);
    return r;
}

static int play(struct demo *d, struct err *e)
{
    int r = write_files(d, e);
    if (r < 0) {
        return r;
    }
    say_step(d, "1. A small repository has a failing test: sh test.sh");
    r = run_test(d, e);
    if (r < 0) {
        return r;
    }
    say_step(d, "2. The built-in agent fixes it, in a sandbox: cinch run task.yaml");
    say_text(d, STYLE_DIM,
             STR("The model is a script (model.yaml), so no key and no network are needed."));
    r = run_agent(d, e);
    r = r < 0 ? r : run_command(d, "transcript", STYLE_DIM, e);
    if (r == 0) {
        say_step(d, "3. What it changed, in its own view of the repository: cinch diff RUN");
        r = run_command(d, "diff", STYLE_NAME, e);
    }
    if (r == 0) {
        say_step(d, "4. The patch is applied and the test runs again: cinch apply RUN; sh test.sh");
        r = run_command(d, "apply", STYLE_PLAIN, e);
    }
    return r < 0 ? r : run_test(d, e);
}

/* --- the command --- */

static int make_place(struct demo *d, const char *given, struct err *e)
{
    struct arena *a = d->cli->arena;
    char path[PATH_MAX];
    bool empty = true;
    if (given != NULL) {
        int r = path_absolute(given, path, sizeof path, e);
        if (r == 0 && file_exists(AT_FDCWD, path)) {
            r = file_dir_is_empty(AT_FDCWD, path, &empty, e);
        }
        if (r < 0 || !empty) {
            return r < 0 ? r : ERR(e, ERR_EXISTS, "'%s' is not empty", path);
        }
    } else {
        const char *tmp = getenv("TMPDIR");
        (void)snprintf(path, sizeof path, "%s/cinch-demo.XXXXXX",
                       tmp == NULL || tmp[0] == '\0' ? "/tmp" : tmp);
        if (mkdtemp(path) == NULL) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "cannot create '%s'", path);
        }
    }
    d->dir = arena_dup(a, str_of(path));
    d->repository = arena_printf(a, "%s/repository", path);
    d->record = arena_printf(a, "%s/run", path);
    return 0;
}

static void say_goodbye(struct demo *d, bool kept)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "\n");
    if (kept) {
        buf_addf(&out, "The repository and the record are in %s. For details: cinch show %s/run\n",
                 d->dir, d->dir);
    } else {
        buf_adds(&out, "To keep the repository and the record of the run: cinch demo DIRECTORY\n");
    }
    show(d, &out);
}

static void print_json(struct demo *d, bool kept, bool passed)
{
    struct arena *a = d->cli->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "passed", json_boolean(a, passed));
    json_setc(a, o, "repository", json_cstr(a, kept ? d->repository : NULL));
    json_setc(a, o, "record", json_cstr(a, kept ? d->record : NULL));
    cli_print_json(d->cli, o);
}

static int run_demo(struct cli *cli, const struct options *opt, struct err *e)
{
    struct demo d = { .cli = cli };
    const char *given = options_arg(opt, 0);
    int r = make_place(&d, given, e);
    if (r < 0) {
        return r;
    }
    r = play(&d, e);
    if (r >= 0) {
        say_goodbye(&d, given != NULL);
    }
    if (r >= 0 && cli->format == CLI_JSON) {
        print_json(&d, given != NULL, r == 1);
    }
    if (given == NULL) {
        struct err ignored;
        (void)!file_remove_tree(AT_FDCWD, d.dir, &ignored);
    }
    return r < 0 ? r : r == 1 ? 0 : 1;
}

static const char *const usage[] = { "[DIRECTORY]", NULL };

static const char *const description[] = {
    "Shows a complete run: a small repository has a failing test, the built-in agent fixes it in a "
    "sandbox, and its patch is shown, applied and tested. The model is a script, so neither a key, "
    "a network nor a harness is needed.",
    "Without DIRECTORY, everything is created in a temporary directory and removed afterwards.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch demo", "watch a run" },
    { "cinch demo /tmp/demo", "keep its files" },
    { 0 },
};

static const struct positional positionals[] = {
    { .name = "DIRECTORY", .help = "where to put the repository and the record", .optional = true },
    { 0 },
};

const struct command cmd_demo = {
    .name = "demo",
    .summary = "show a complete run, without a key or a network",
    .usage = usage,
    .description = description,
    .examples = examples,
    .positionals = positionals,
    .run = run_demo,
};

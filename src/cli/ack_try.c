/* SPDX-License-Identifier: MIT
 *
 * Probing and trying adapters; see ack_try.h.
 */
#include "cli/ack_try.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "ack/contract_scenarios.h"
#include "ack/scenario_run.h"
#include "base/file.h"
#include "cli/ack_choice.h"
#include "cli/ack_screen.h"
#include "cli/table.h"
#include "io/loop.h"
#include "io/sigwatch.h"

#define PROOF_TIME (120 * NSEC_PER_SEC)

static unsigned cpu_count(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (unsigned)n;
}

struct kit_opts ack_try_defaults(void)
{
    return (struct kit_opts) {
        .engine = { scenario_run_start, scenario_run_free, contract_check },
        .jobs = cpu_count(),
        .timeout = PROOF_TIME,
        .environ = (const char *const *)environ,
    };
}

static int make_dir(struct cli *cli, const char *given, struct kit_opts *o, struct err *e)
{
    const char *base = getenv("TMPDIR");
    char path[PATH_MAX];
    int r = path_absolute(given != NULL                    ? given
                          : base != NULL && base[0] == '/' ? base
                                                           : "/tmp",
                          path, sizeof path, e);
    if (r < 0 || given != NULL) {
        o->dir = r < 0 ? NULL : arena_dup(cli->arena, str_of(path));
        return r;
    }
    char *template = arena_printf(cli->arena, "%s/cinch-ack-XXXXXX", path);
    o->dir = mkdtemp(template);
    return o->dir == NULL ? ERR_SYS_AS(e, ERR_OUTPUT, "cannot create '%s'", template) : 0;
}

/* --- signals while adapters are asked --- */

static const int signals[] = { SIGINT, SIGTERM };

struct ears {
    struct loop *loop;
    struct sigwatch *watches[ARRAY_LEN(signals)];
    int signo; /* the first that came */
    bool interrupted;
};

static void on_signal(void *arg, int signo)
{
    struct ears *ears = arg;
    ears->signo = ears->signo == 0 ? signo : ears->signo;
    ears->interrupted = true;
    loop_stop(ears->loop);
}

static int ears_open(struct ears *ears, struct err *e)
{
    *ears = (struct ears) { 0 };
    int r = loop_new(&ears->loop, e);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(signals); i++) {
        r = sigwatch_new(ears->loop, signals[i], on_signal, ears, &ears->watches[i], e);
    }
    return r;
}

static void ears_close(struct ears *ears)
{
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        ears->watches[i] = sigwatch_free(ears->watches[i]);
    }
    ears->loop = loop_free(ears->loop);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* The signal that came; 0: none, until now. */
static int ears_heard(void *arg)
{
    struct ears *ears = arg;
    if (!ears->interrupted) {
        loop_post(ears->loop, nothing, NULL); /* so that the loop looks once */
        loop_run(ears->loop);
    }
    return ears->signo;
}

/* --- trying --- */

static int probe_one(struct cli *cli, struct kit_adapter *adapter, const struct kit_opts *o,
                     struct ears *ears, struct err *e)
{
    const struct contract_watch watch = { ears->loop, &ears->interrupted };
    int r = kit_probe(cli->arena, adapter, o->environ, e);
    if (r == 0 && ears_heard(ears) == 0) {
        r = contract_declare(cli->arena, adapter, o, watch, e);
    }
    /* A signal also reaches who is asked, if it came from a terminal: what he says then is moot. */
    return ears_heard(ears) != 0 ? 0 : r;
}

/* Those that are not asked any more are not here, as far as anybody knows. */
static int probe_all(struct cli *cli, struct ack_screen *screen, struct kit_opts *o,
                     struct ears *ears, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < o->adapters_len; i++) {
        struct kit_adapter *adapter = &o->adapters[i];
        if (ears_heard(ears) == 0) {
            ack_screen_note(screen,
                            arena_printf(cli->arena, "checking versions: %s", adapter->name));
            r = probe_one(cli, adapter, o, ears, e);
        }
        if (ears_heard(ears) != 0) {
            adapter->available = false;
            adapter->version = "";
            adapter->why_not = "interrupted";
        }
    }
    return r;
}

int ack_try(struct cli *cli, const char *dir, struct kit_opts *o, struct kit_report *ret,
            struct err *e)
{
    struct ack_screen screen;
    struct ears ears;
    ack_screen_init(&screen, cli);
    o->watcher = ack_screen_watcher(&screen);
    int r = ears_open(&ears, e);
    r = r < 0 ? r : probe_all(cli, &screen, o, &ears, e);
    r = r < 0 ? r : make_dir(cli, dir, o, e);
    o->ears = (struct kit_ears) { ears_heard, &ears };
    r = r < 0 ? r : kit_run(cli->arena, o, ret, e);
    o->ears = (struct kit_ears) { 0 };
    ears_close(&ears);
    if (dir == NULL && o->dir != NULL) {
        (void)rmdir(o->dir); /* unless something was kept */
    }
    ack_screen_done(&screen);
    return r;
}

int ack_try_status(const struct kit_report *r)
{
    return r->interrupted ? 128 + r->signo : kit_failed(r);
}

/* --- the proof --- */

struct proof {
    const struct kit_adapter *adapter;
    size_t passed, failed, skipped;
    const char *why; /* the first finding; "": there is none */
};

static struct proof prove_one(const struct kit_report *r, const struct kit_adapter *adapter)
{
    struct proof p = { .adapter = adapter, .why = adapter->available ? "" : adapter->why_not };
    for (size_t i = 0; i < r->len; i++) {
        const struct verdict *v = &r->verdicts[i];
        if (!str_eqc(str_of(v->adapter), adapter->name)) {
            continue;
        }
        if (verdict_is_failure(v->status) && p.failed++ == 0) {
            p.why = v->why;
        }
        p.passed += v->status == VERDICT_PASSED;
        p.skipped += v->status == VERDICT_SKIPPED;
    }
    return p;
}

static const char *proof_word(const struct proof *p)
{
    return !p->adapter->available ? "not here"
           : p->failed > 0        ? "failed"
           : p->passed > 0        ? "proven"
                                  : "not tried";
}

/* The same for people; proof_word() is part of the JSON format. */
static const char *proof_label(const struct proof *p)
{
    return !p->adapter->available ? "not installed"
           : p->failed > 0        ? "failed"
           : p->passed > 0        ? "passed"
                                  : "not run";
}

static struct json *proof_json(struct arena *a, const struct proof *p)
{
    struct json *o = json_object(a);
    const char *version = p->adapter->version;
    json_setc(a, o, "name", json_cstr(a, p->adapter->name));
    json_setc(a, o, "version", json_cstr(a, version[0] == '\0' ? NULL : version));
    json_setc(a, o, "verdict", json_cstr(a, proof_word(p)));
    json_setc(a, o, "passed", json_integer(a, (int64_t)p->passed));
    json_setc(a, o, "failed", json_integer(a, (int64_t)p->failed));
    json_setc(a, o, "skipped", json_integer(a, (int64_t)p->skipped));
    json_setc(a, o, "why", json_cstr(a, p->why[0] == '\0' ? NULL : p->why));
    return o;
}

static void proof_row(struct table *t, const struct proof *p)
{
    bool bad = p->failed > 0;
    struct str rest = str_of(p->why);
    table_cell(t, STYLE_NAME, p->adapter->name);
    table_cell(t, STYLE_PLAIN, p->adapter->version);
    table_cell(t, bad ? STYLE_BAD : p->passed > 0 ? STYLE_GOOD : STYLE_DIM, proof_label(p));
    if (p->adapter->available) {
        table_cellf(t, STYLE_PLAIN, "%zu/%zu", p->passed, p->passed + p->failed);
    } else {
        table_cell(t, STYLE_PLAIN, "");
    }
    table_cell_str(t, STYLE_PLAIN, str_split(&rest, '\n'));
}

static void show_proof(struct cli *cli, const struct kit_report *r, bool bad)
{
    struct arena *a = cli->arena;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *items = json_array(a);
    struct json *root = json_object(a);
    struct table t = { .arena = a,
                       .head = true,
                       .columns = { { "adapter", .max = 24 },
                                    { "version", .max = 24 },
                                    { "verdict" },
                                    { "passed" },
                                    { "detail" } } };
    for (size_t i = 0; i < r->adapters_len; i++) {
        struct proof p = prove_one(r, &r->adapters[i]);
        json_push(a, items, proof_json(a, &p));
        proof_row(&t, &p);
    }
    json_setc(a, root, "adapters", items);
    json_setc(a, root, "failed", json_boolean(a, bad));
    if (cli->format == CLI_JSON) {
        cli_print_json(cli, root);
    } else if (cli->format == CLI_TEXT) {
        table_write(&t, terminal_width(&cli->out), cli->out.color, &out);
        cli_print(cli, &out);
    }
}

int ack_prove(struct cli *cli, const struct options *opt, const char *const *names, struct err *e)
{
    struct kit_opts o = ack_try_defaults();
    struct kit_report report;
    int r = ack_scenarios_up_to(cli->arena, TIER_OBSERVED, &o.scenarios, e);
    r = r < 0 ? r : ack_choose_named(cli, opt, names, &o, e);
    r = r < 0 ? r : ack_try(cli, NULL, &o, &report, e);
    if (r < 0) {
        return r;
    }
    bool bad = kit_failed(&report);
    for (size_t i = 0; names[0] != NULL && i < report.adapters_len; i++) {
        bad = bad || !report.adapters[i].available; /* somebody counts on it */
    }
    show_proof(cli, &report, bad);
    return report.interrupted ? ack_try_status(&report) : bad;
}

/* SPDX-License-Identifier: MIT
 *
 * struct run: the state of one run, split by lifetime: the plan (const after admission), what phase
 * execute keeps to itself, and the outcome. Shared by phases.c and the phase files only.
 */
#pragma once

#include "adapters/driver.h"
#include "config/definition.h"
#include "config/secrets.h"
#include "gateway/budget.h"
#include "prompt/structured.h"
#include "record/record.h"
#include "run/disk.h"
#include "run/environment.h"
#include "run/memory.h"
#include "run/run.h"
#include "run/run_tools.h"
#include "run/sandbox_session.h"
#include "skill/skill_artifact.h"

struct diff_result;
struct execute;
struct proc;
struct run_tools;
struct state_store;
struct loop;
struct redactor;
struct run_dependencies;
struct run_gateway;
struct run_resources;
struct run_session;
struct run_turns;
struct image_root;
struct state_store;
struct sigwatch;
struct trust_entry;
struct txn;
struct txns;
struct workspace;

/* X(phase, word). The order is the order of a run. */
#define PHASE_LIST(X)               \
    X(PHASE_ADMIT, "admit")         \
    X(PHASE_CONFIGURE, "configure") \
    X(PHASE_PREPARE, "prepare")     \
    X(PHASE_CONTEXT, "context")     \
    X(PHASE_TRUST_ON, "trust_on")   \
    X(PHASE_EXECUTE, "execute")     \
    X(PHASE_TRUST_OFF, "trust_off") \
    X(PHASE_PARSE, "parse")         \
    X(PHASE_COLLECT, "collect")     \
    X(PHASE_GATE, "gate")           \
    X(PHASE_FINISH, "finish")

enum phase {
#define X(phase, word) phase,
    PHASE_LIST(X)
#undef X
        PHASE_MAX
};

/* Why the run ends as it does. */
struct cause {
    enum reason reason;            /* REASON_NONE: nothing went wrong so far */
    char message[RUN_MESSAGE_MAX]; /* redacted */
    enum timeout_kind timeout;
    nsec limit;    /* that passed, of a timeout */
    enum phase at; /* of the run */
    /* of the evaluation, where it does not follow from the reason ("tool"); else NULL */
    const char *phase;
};

/* Names of files below the run's directory, absolute. */
struct run_paths {
    const char *dir;         /* that directory, as the agent is told: see short_path.h */
    const char *short_dir;   /* made for that name; NULL: none */
    const char *home;        /* private place of the run; HOME of the child unless that is shared */
    const char *prompt_file; /* exact bytes of the prompt, for the child */
    const char *config_file; /* the settings without secrets, for the child */
    const char *program;     /* the agent's */
    const char *executable;  /* what is started: that, or what starts it in an image */
    const char *view;        /* where the agent works: the workspace, or the view of it */
    const char *workspace;   /* the tree that the agent worked in, as we see it */
    const char *artifacts;   /* where the agent leaves files */
    const char *skills;      /* the skills folder, as the agent sees it; NULL: there is none */
    const char *schema_file; /* the output contract, for the child; NULL: there is none */
};

/* What the agent answered, held against the contract; written by phase_output.c. */
struct answer {
    struct json *value; /* fits the contract; NULL: none was asked for, or none was found */
    enum structured_source source;
    enum structured_repair repair;
    struct json *error;               /* OutputParseError, for result.json; NULL: none */
    struct str why;                   /* its message */
    const char *question;             /* of a skill that cannot go on by itself; else NULL */
    struct skill_artifact_list files; /* of a skill package, once they are collected */
    struct err files_error;           /* why they are not */
};

/* Whose credential it is, when it is not the gateway's; written by auth.c. */
struct run_auth {
    struct err error;                  /* reported in admit */
    const struct profile_login *login; /* of the user's; NULL: none is used */
    const char *path;                  /* of its file … */
    struct str content;                /* … and what is in it */
};

/* What the run is to do. Made before admission and by it; const from then on. */
struct run_plan {
    struct settings settings;
    struct secrets secrets;
    struct err secrets_error; /* a secret is missing; reported in admit, when there is a record */
    struct run_auth auth;
    const struct driver *driver;
    const char *program_version; /* as installed; NULL: not known */
    bool unrendered;             /* the prompt could not be rendered */
    bool default_output;         /* nobody chose the directory of the record */
};

/* What phase execute has come to, for the phases after it and for those that watch. Written by the
 * files of the phase alone; what they need for themselves is in execute_priv.h. */
struct execution {
    bool launched; /* the program was really started */
    pid_t pid;
    nsec started, ended;
    nsec first_output_at; /* 0: none yet */
    bool let_go;          /* it had said all and did not go: we ended it */
    struct engine_exit exit;
    int64_t round;           /* further turns that there were */
    int64_t repairs;         /* … and further turns for an answer that does not fit */
    struct str resume;       /* handle of the conversation; empty: none that could go on */
    struct agent_usage past; /* of sessions that are over */
    int64_t tool_calls, tool_failures; /* of ours and, where they are seen, of the harness */
    struct {
        nsec utime, stime;
        int64_t maxrss_kb;
        int64_t leaked;
    } usage; /* of the whole tree */
};

/* What came out. Written by parse, collect, gate and finish. */
struct run_outcome {
    struct agent_report report;
    struct answer answer;
    enum answer_flag no_changes;
    const struct json *changes; /* [{path, status}] of the patch; NULL: not known */
    int exit_status;
};

struct run {
    const struct run_opts *opts;
    struct arena *arena;
    struct loop *loop;
    struct redactor *redactor;
    struct record record;
    struct sigwatch *signals[3];
    int signal_count;

    /* by lifetime: what is to be done, what is going on in phase execute, what came of it */
    const struct run_plan *plan;
    struct run_plan *draft;  /* the plan, to be written; NULL once the run is admitted */
    struct execute *execute; /* private to phase execute */
    struct execution exec;
    struct run_outcome outcome;

    enum phase phase;
    nsec started;
    nsec timeout;        /* total time of execute: the setting, or until limits.deadline */
    bool until_deadline; /* it is the latter */
    struct cause cause;
    bool opening;          /* the settings are good, and the record is opened */
    const char **warnings; /* NULL-terminated, in the arena */
    size_t warning_count;

    /* made by configure, prepare and context; released by end() */
    struct run_paths paths;
    struct definition definition; /* changes when sections are opened */
    struct str prompt;
    struct str instructions;   /* that go in front of it; empty: none, or they are in a file */
    struct str spec_text;      /* that the adapter was given, run/holon.h; ptr NULL: none */
    void *session;             /* of the driver */
    struct state_store *state; /* what tools remember; run_session.h */
    struct run_session *kept;  /* its files */
    struct run_tools *tools;   /* NULL: none, and no guards either */
    struct run_resources *resources; /* NULL: none, or not opened yet */
    struct run_turns *turns;         /* NULL: no savepoints (yet) */
    int files_fd;                    /* of agent_files.c; -1: not open */
    struct json *hidden;    /* paths in the view: whether for the whole run; project_hide() */
    char render_id[ID_LEN]; /* of the event that told the prompt */
    struct launch launch;
    struct environment environment;
    struct trust_entry *trust;   /* registered; NULL: nothing to remove */
    struct run_gateway *gateway; /* never NULL once there is a record */
    struct sandbox_session confine;
    struct workspace *workspace; /* NULL: none yet, or over */
    struct run_disk disk;
    struct run_memory memory;
    struct image_root *image_root;         /* --image; NULL: the host's programs */
    struct run_dependencies *dependencies; /* of a skill; NULL: none */
};

/* A run that produces more warnings than this has one problem, not a thousand. */
enum { WARNINGS_MAX = 100 };

/* --- phases.c --- */

const char *phase_word(enum phase p);

/* Notes why the run will fail. When several causes apply the one that stands first in the order of
 * docs/run-record.md is kept; true: it is this one. */
bool run_fail(struct run *run, enum reason reason, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool run_fail_err(struct run *run, const struct err *e);
/* Names what is behind a failure of the agent or of cinch: the reason changes, and the text comes
 * before what was known. Other reasons stay; true: it is this one. */
bool run_blame(struct run *run, enum reason reason, const char *fmt, ...) PRINTF_LIKE(3, 4);
void run_warn(struct run *run, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* An asynchronous phase has come to its end. */
void run_phase_done(struct run *run);
void run_show(struct run *run); /* tells the watcher about progress */
/* A sign of life: output, an event of the protocol, a call of a model or a tool. Idle time counts
 * from here. */
void run_alive(struct run *run);
void run_beat(struct run *run); /* only told: the record's heartbeat, the watcher */
void run_cancel(struct run *run);
/* CINCH_STOP_AT=where: tests then interrupt or kill the process there. */
void run_stop_for_test(const char *where);

/* --- phases: 0 done, 1 goes on by itself until run_phase_done(), negative failed --- */

/* What can be said of the settings before there is a run; the rest of admission needs one. */
int admit_look(struct arena *a, const struct settings *s, struct err *e) MUST_USE;
int phase_admit(struct run *run, struct err *e);
int phase_configure(struct run *run, struct err *e);
int phase_prepare(struct run *run, struct err *e);
int phase_context(struct run *run, struct err *e);
int phase_trust_on(struct run *run, struct err *e);
int phase_execute(struct run *run, struct err *e);
int phase_trust_off(struct run *run, struct err *e);
int phase_parse(struct run *run, struct err *e);
int phase_collect(struct run *run, struct err *e);
int phase_gate(struct run *run, struct err *e);
int phase_finish(struct run *run, struct err *e);

/* --- launch.c --- */

/* The environment of a program inside, with the variables of the adapter if there are any. */
int launch_environment(struct run *run, const struct json *adapter_env, struct environment *ret,
                       struct err *e);
/* The agent's environment as it is now, into run->environment and the record. */
int launch_set_environment(struct run *run, struct err *e) MUST_USE;
/* What stands for {model}, {prompt_file} and the like; before phase context without the prompt. */
struct placeholders execute_vars(struct run *run);
/* The program is gone: the files that its driver wants to see go to the driver, once. */
void launch_take_files(struct run *run);

/* --- phase_output.c: the answer and what must come out --- */

/* Parse: looks for an answer that fits the contract. */
void output_parse(struct run *run);
/* Parse: there must be one, unless the run has failed already. */
void output_judge(struct run *run);
/* The next turn for an agent whose answer does not fit, with the reason in `ret_why`; empty if the
 * answer fits, or if no turn is left for it (output.repairs). */
struct str output_repair(struct run *run, const struct agent_report *report, struct str *ret_why);
/* artifacts.c: takes secrets out of artifacts/. */
void output_clean_artifacts(struct run *run);
/* Gate: questions, and files that must be there. */
void output_gate(struct run *run);

/* --- plausibility.c: success without a sign of work --- */

/* A warning; a failure if the task relies on it (tools, policies, completion, an output schema, a
 * budget) or if the setting `strict` is on. */
void run_doubt(struct run *run, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool plausibility_is_agent(const struct run *run);
void plausibility_judge(struct run *run); /* parse */
void plausibility_gate(struct run *run);  /* gate: changes and artifacts are known */

/* --- last_output.c --- */

/* The end of a log of the harness (as much as the buffer takes), without secrets. */
void last_output_read(struct run *run, const char *log, struct buf *ret);
/* "; its last output: …", its last lines on standard error, else (without a protocol) on standard
 * output; "": it printed nothing. */
const char *last_output(struct run *run);

/* phase_prepare.c: what is left of phase prepare once the root of the sandbox is known. As a
 * phase: 1 when it is not over yet. */
int prepare_sandbox(struct run *run, struct err *e) MUST_USE;

/* --- auth.c: logins and credentials of the caller's --- */

/* The caller's variable of that name that is not empty, else the key of that name in the settings;
 * NULL: neither. */
const char *auth_variable(const struct run *run, const char *name);
/* Before there is a record: what is used becomes a secret. */
void auth_plan(struct run *run);
/* ERR_SECRET when it is missing or has expired. */
int auth_admit(const struct run *run, struct err *e) MUST_USE;
/* Configure: the copy of a login, in the run's home. */
int auth_install(struct run *run, struct err *e) MUST_USE;
/* Parse: a harness that failed may have said that it is not logged in. */
void auth_judge(struct run *run);
/* Collect, while there is a home: was the login renewed? */
void auth_inspect(struct run *run);
/* What to do about a credential that is not accepted: "run `codex login`". */
const char *auth_advice(const struct run *run);

/* --- tier.c: what a tier says, for the harness --- */

/* A configuration file with the profile's values for the tier over it. */
int tier_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
              struct err *e) MUST_USE;
/* The tier's prompt as a file, where the profile wants it so. */
int tier_install(struct run *run, struct err *e) MUST_USE;
/* The prompt with the tier's before it, where there is no other way. */
struct str tier_prompt(struct run *run, struct str prompt);

/* --- phase_gateway.c and gateway_*.c: the run's door to models --- */

/* Whether what the settings put behind the gateway can be read: addresses, script, cassette,
 * prices. Nothing is connected to, and no credential is needed. */
int gateway_look(struct arena *a, const struct settings *s, struct err *e) MUST_USE;
/* Before there is a record: routes, credentials, the token, which become secrets. */
void gateway_plan(struct run *run);
/* Model calls so far, for watchers. */
void gateway_view(const struct run *run, struct run_view *ret);
int gateway_admit(const struct run *run, struct err *e);
/* Configure: from here on it listens, if the run has one. */
int gateway_start(struct run *run, struct err *e);
/* Execute: the total deadline counts from now. */
void gateway_clock(struct run *run);
/* What the child gets: NULL without a gateway. The address shows the token by itself where the
 * harness shows a credential of its own. */
const char *gateway_url(const struct run *run);
const char *gateway_address(const struct run *run); /* without it, in any case */
const char *gateway_token(const struct run *run);
/* The variable with the credential of the first route; NULL: it needs none. */
const char *gateway_key(const struct run *run);
/* Names of variables that hold credentials and never reach the child; NULL-terminated. */
const char *const *gateway_withheld(const struct run *run);
/* The proxy's variables, with a token that is good for nothing else; empty: there is no proxy. */
struct json *gateway_proxy_environment(struct run *run);
/* Adds the profile's variables to `env`. */
int gateway_environment(struct run *run, const struct placeholders *vars, struct json *env,
                        struct err *e);
/* A configuration file of the harness with the profile's values for the gateway over it. */
int gateway_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
                 struct err *e);
/* The agent is gone: waits until model calls that it left under way have been read to their end,
 * for what they cost. True: run_phase_done() follows. */
bool gateway_wait(struct run *run);
void gateway_hurry(struct run *run); /* ends that wait */
/* Parse: the traffic is over; why the agent failed is known better at the door. */
void gateway_judge(struct run *run);
void gateway_fill(const struct run *run, struct summary *s);
/* The last time that a provider held us up; NULL: never. */
const struct event_throttle *gateway_throttled(const struct run *run);
/* Which limit of the budget refused a call ("total_tokens" …); NULL: none. */
const char *gateway_exceeded(const struct run *run);
/* What the evaluation has used: as the wire counted it, else as the harness told. */
struct agent_usage run_usage(const struct run *run);
/* Shares of budget and time that are left, for notices to the agent. */
struct budget_left gateway_left(const struct run *run);
void gateway_done(struct run *run); /* idempotent, accepts a run that never planned one */

/* --- phase_prepare.c --- */

/* The harness' configuration files; again, when the place where it works has changed. */
int config_write_files(struct run *run, struct err *e) MUST_USE;
/* A file below the run's home, whole, readable by nobody else. */
int home_write(struct run *run, const char *path, struct str text, struct err *e) MUST_USE;
/* As that, after what is in the file already: prompt of the tier, instructions of the task, prose
 * of the workspace may share a file. */
int home_append(struct run *run, const char *path, struct str text, struct err *e) MUST_USE;
/* The prompt with the sections that are open now. */
int context_render(struct run *run, struct str *ret, struct err *e);
/* The prompt as a file, for the agent. */
int context_write_prompt(struct run *run, struct err *e);

/* --- phase_execute.c; the rest is in execute_priv.h --- */

struct execute *execute_new(struct arena *a);
/* A line of the transcript; source NULL: the main agent. */
void execute_entry(void *run, const char *source, const char *type, const struct json *detail,
                   struct str raw);
/* Shortens the total time to what is left until limits.deadline. False: it has passed, and the run
 * has failed. */
bool execute_meet_deadline(struct run *run);
/* A restart is wanted: the agent must begin again to see what it opened. */
bool execute_wants_restart(const struct run *run);
void execute_want_restart(struct run *run, bool wanted);
/* The agent's process, to look at; NULL: there is none. */
struct proc *execute_proc(const struct run *run);
/* Idle time counts from now. */
void execute_alive(struct run *run);

/* --- phase_dialogue.c, continuations.c --- */

struct driver_port dialogue_port(struct run *run);
/* What is being checked does not matter any more: the verdict comes now. */
void continuation_stop(struct run *run);
void continuation_add_usage(struct agent_usage *sum, const struct agent_usage *u);

/* --- savepoints.c --- */

bool run_savepoints_wanted(const struct run *run);
/* Before the agent is told what to do next; the turn before is over. */
int turn_begin(struct run *run, struct err *e) MUST_USE;
void turn_well(struct run *run); /* it came to its end by itself */
/* No program of the run works in the view any more. Idempotent. */
void run_savepoints_close(struct run *run);

/* --- phase_workspace.c --- */

/* The view of the workspace; from here on settings.workspace is where the agent works. */
int run_open_workspace(struct run *run, struct err *e) MUST_USE;
/* The kernel takes no overlay: the view becomes a copy, and run->confine.view that of it. 0: an
 * overlay was asked for by name, so there is nothing to be had. */
int run_workspace_copy(struct run *run, const struct err *why, struct err *e) MUST_USE;
/* There is no sandbox after all: the workspace must be a directory that is there without one. */
int run_workspace_outside(struct run *run, struct err *e) MUST_USE;
/* The patch, what is known about it, and the end of the view. */
void run_collect_workspace(struct run *run);
/* The changes so far, as a patch in the record, without secrets; those of repositories within in
 * `nested_dir` of the record. */
int run_make_patch(struct run *run, const char *name, const char *nested_dir,
                   struct diff_result *ret, struct err *e) MUST_USE;

/* Transactions on the workspace, for programs that we start for the agent. Not before the sandbox
 * stands (SANDBOX_SESSION_MOUNTED), if there is one; to be closed before phase execute ends. */
int run_txns_open(struct run *run, struct txns **ret, struct err *e) MUST_USE;
/* The layer of a transaction, for sandbox_place(); its program works in settings.workspace then, as
 * the agent does. NULL: there is no sandbox, and it works in txn_copy(). */
const char *run_txn_layer(struct run *run, struct arena *a, const struct txn *x);

/* Who speaks in events about the prompt. */
struct event_prompt run_event_prompt(const struct run *run);

/* The user, or a signal, wants the run to end: gently first, then at once. */
void execute_interrupt(struct run *run, bool at_once);

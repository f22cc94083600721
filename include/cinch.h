/* SPDX-License-Identifier: MIT
 *
 * cinch.h: run coding agents from C.
 *
 *   struct cinch_task *t = cinch_task_new();
 *   cinch_task_merge(t, "{\"agent\": {\"adapter\": \"claude-code\"}, \"prompt\": \"Fix the test.\"}");
 *   cinch_task_add_tool(t, &(struct cinch_tool){ .size = sizeof(struct cinch_tool),
 *                                                .definition = "{\"name\": …}", .call = look_up });
 *   struct cinch_result *r;
 *   if (cinch_run(t, NULL, &r) < 0)
 *       … cinch_task_error(t) …
 *   printf("%s\n", cinch_result_json(r));
 *   cinch_result_free(r);
 *   cinch_task_free(t);
 *
 * What goes in and out is JSON in UTF-8, so that a binding in any language is thin: a task is what
 * docs/task.md describes, a tool's definition is an entry of its `tools` (without `command`), a
 * result is result.json of docs/run-record.md, an event is a line of events.jsonl.
 *
 * cinch_run() blocks until the run is over and its processes are gone (see below). All callbacks come from
 * inside of it, on the same thread, one at a time; while one is at work nothing else of the run
 * happens, so they should be quick. Two runs may go on in two threads, each with a task of its own,
 * if cinch_options.signals is off in all of them. A task that is running cannot be run again; one
 * that is freed by a callback goes when its run is over.
 *
 * Effects on the whole process. This list is complete; the working directory, umask, locale,
 * resource limits, environment and credentials of the process are never changed.
 *  - Signals: SIGPIPE and SIGXFSZ are ignored from the first run on if they have their default
 *    action; a handler of yours stays. If SIGCHLD is ignored, it gets its default action back,
 *    since the kernel would otherwise reap the library's children. With cinch_options.signals,
 *    SIGINT, SIGTERM and SIGHUP are handled while the run lasts, stay unblocked in the calling
 *    thread, and have their default action afterwards.
 *  - Descriptors: a closed 0, 1 or 2 is opened on /dev/null and stays open. All others are
 *    close-on-exec and closed when cinch_run() returns, except for a pipe that libuv opens once and
 *    the program cinch-init, which stays the same when its file is replaced.
 *  - Children: the programs of a run are supervised by helper processes (cinch-init), which are
 *    children of your process, each in a session of its own. The library waits for them by pid and
 *    never waits for, signals or adopts another child of yours: it does not make the process a
 *    child subreaper and does not search it for left-over processes. If you call wait() or
 *    waitpid(-1), you may reap a helper; the run then does not know how it ended.
 *    Without a sandbox (`sandbox: off`) an agent can kill its cinch-init. The program `cinch` finds
 *    and kills what such an agent leaves; the library cannot tell it from children of yours, so
 *    that cinch_run() may return while such processes still run. The run then fails with reason
 *    `internal` and has a warning.
 *  - Threads and libraries: libcurl and libzip are loaded when they are needed and stay loaded;
 *    libcurl may start threads that resolve names.
 *  - Reads: PATH is taken from cinch_options.environment. HOME, USER, TMPDIR, XDG_*, UV_CACHE_DIR,
 *    SSL_CERT_FILE, the proxy variables and CINCH_* are read with getenv() from the process: do not
 *    change them in another thread during a run. git, which cinch uses itself, is found by PATH of
 *    the process.
 *  - Writes: nothing to stdout; diagnostics to stderr only if CINCH_LOG is set.
 *
 * Structs that are handed in begin with their size: sizeof as the caller knows it. Members are only
 * ever added at the end, and 0 is always their default, so that a program that was built with an
 * older header goes on working. Unknown larger sizes are accepted if what is beyond is 0.
 *
 * Functions that can fail return 0 or a negative enum cinch_error; cinch_task_error() has the
 * sentence. Strings that are returned belong to the object they were asked from.
 */
#ifndef CINCH_H
#define CINCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CINCH_API 1
#if defined(__GNUC__)
#define CINCH_PUBLIC __attribute__((visibility("default")))
#else
#define CINCH_PUBLIC
#endif

struct cinch_task;
struct cinch_result;
struct cinch_call;

enum cinch_error {
    CINCH_OK,
    CINCH_EUSAGE,  /* a call that makes no sense: a size, a missing member, no JSON */
    CINCH_ETASK,   /* the task is wrong, or names what is not there */
    CINCH_EOUTPUT, /* the place for the record cannot be used */
    CINCH_EFAILED, /* anything else: see the sentence */
};

/* "0.1.0", of the library that is running. */
CINCH_PUBLIC const char *cinch_version(void);

/* --- the task --- */

CINCH_PUBLIC struct cinch_task *cinch_task_new(void);
CINCH_PUBLIC void cinch_task_free(struct cinch_task *task); /* accepts NULL */
/* Why the last call on it failed; "" if none did. */
CINCH_PUBLIC const char *cinch_task_error(const struct cinch_task *task);

/* A task file; what is merged stands above it, as a command line does. */
CINCH_PUBLIC int cinch_task_load(struct cinch_task *task, const char *file);
/* Keys of a task as JSON: maps merge, all else replaces, null removes. Any number of times. */
CINCH_PUBLIC int cinch_task_merge(struct cinch_task *task, const char *json);

/* --- tools --- */

struct cinch_tool {
    size_t size;
    const char *definition; /* {"name", "description", "input_schema", "output_schema", …} */
    /* Must lead to one cinch_call_answer(), before it returns; else the call has failed. The
     * arguments fit the schema. */
    void (*call)(void *arg, struct cinch_call *call);
    void *arg;
};
CINCH_PUBLIC int cinch_task_add_tool(struct cinch_task *task, const struct cinch_tool *tool);

CINCH_PUBLIC const char *cinch_call_name(const struct cinch_call *call);
CINCH_PUBLIC const char *cinch_call_id(const struct cinch_call *call);
CINCH_PUBLIC const char *cinch_call_arguments(struct cinch_call *call); /* JSON */
/* What a tool program would print: {"message", "value", "success", "state",
 * "exclude_value_from_context"}. Changes to the session happen if `success` is not false, together
 * with the files of the call or not at all. Copied. */
CINCH_PUBLIC int cinch_call_answer(struct cinch_call *call, const char *json);

/* --- guards --- */

/* JSON in: {"tool", "arguments", "call_id", "native", "section"}. Returns 1 to allow, 0 to deny. A
 * text at *reason (static, or the caller's until the next call) is told to the model. */
struct cinch_policy {
    size_t size;
    const char *name;
    int (*check)(void *arg, const char *json, const char **reason);
    void *arg;
};
CINCH_PUBLIC int cinch_task_add_policy(struct cinch_task *task, const struct cinch_policy *policy);

/* JSON in: {"tool", "arguments", "success", "native"}. Returns what the agent is to be told, or
 * NULL. */
struct cinch_feedback {
    size_t size;
    const char *name;
    int every_n_calls;      /* 0: not by count */
    double every_n_seconds; /* 0: not by time */
    const char *(*say)(void *arg, const char *json);
    void *arg;
};
CINCH_PUBLIC int cinch_task_add_feedback(struct cinch_task *task,
                                         const struct cinch_feedback *feedback);

/* JSON in: {"text", "output", "stop_reason"}. Returns 1 when the task is complete. Else a text at
 * *feedback is the agent's next turn; without one the run ends as it is, which is a failure. */
struct cinch_completion {
    size_t size;
    const char *name;
    int (*check)(void *arg, const char *json, const char **feedback);
    void *arg;
};
CINCH_PUBLIC int cinch_task_add_completion(struct cinch_task *task,
                                           const struct cinch_completion *completion);

/* --- the run --- */

struct cinch_options {
    size_t size;
    const char *runs_dir;            /* where a task without an output directory makes one; NULL: as
                                       `cinch run` does */
    /* NULL-terminated "NAME=value"; NULL: that of the process. What the agent may inherit is taken
     * from it, and programs (the agent, adapters, container engines) are searched in its PATH; without
     * one in /usr/local/bin:/usr/bin:/bin. */
    const char *const *environment;
    const char *const *adapter_dirs; /* NULL-terminated: more places for profiles; NULL: none */
    int signals; /* 1: SIGINT, SIGTERM and SIGHUP end the run while it goes on, as in `cinch run` */
    int force;   /* 1: an output directory that is not empty is archived */
    /* Each line of events.jsonl, as it is written, without its end. NULL: nobody listens. */
    void (*event)(void *arg, const char *json);
    /* About ten times a second and at every event: a sign of life. Returns 0 to go on, anything
     * else to have the run cancelled. NULL: nobody asks. */
    int (*beat)(void *arg);
    void *arg;
};

/* 0: there is a record, whatever came of the task; the result says it. Else there is none. */
CINCH_PUBLIC int cinch_run(struct cinch_task *task, const struct cinch_options *options,
                           struct cinch_result **result);

/* All accept NULL: there is no result then, the strings are NULL and the exit status is -1. */
CINCH_PUBLIC void cinch_result_free(struct cinch_result *result);
CINCH_PUBLIC const char *cinch_result_json(const struct cinch_result *result);   /* result.json */
CINCH_PUBLIC const char *cinch_result_dir(const struct cinch_result *result);    /* the record */
CINCH_PUBLIC const char *cinch_result_reason(const struct cinch_result *result); /* "success" … */
CINCH_PUBLIC int cinch_result_exit_status(const struct cinch_result *result);

#ifdef __cplusplus
}
#endif
#endif

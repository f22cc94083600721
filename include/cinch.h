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
 * Input and output are JSON in UTF-8, so that a binding in any language is thin: docs/task.md
 * describes a task, a tool's definition is an entry of its `tools` (without `command`), a result is
 * result.json of docs/run-record.md, and an event is a line of events.jsonl.
 *
 * cinch_run() blocks until the run has ended and its processes have exited (see below). It makes all
 * callbacks itself, on the calling thread, one at a time. The run makes no progress during a
 * callback, so callbacks should be quick. Several threads may each run a task of their own at the
 * same time if cinch_options.signals is off in all of them. A task cannot be run again while it is
 * running; a task that is freed by a callback is released when its run has ended.
 *
 * Effects on the whole process. This list is complete; the working directory, umask, locale,
 * resource limits, environment and credentials of the process are never changed.
 *  - Signals: SIGPIPE and SIGXFSZ are ignored from the first run on if they have their default
 *    action; your own handlers are kept. If SIGCHLD is ignored, its default action is restored,
 *    since the kernel would otherwise reap the library's children. With cinch_options.signals,
 *    SIGINT, SIGTERM and SIGHUP are handled during the run, are unblocked in the calling thread,
 *    and have their default action afterwards.
 *  - Descriptors: if 0, 1 or 2 is closed, it is opened on /dev/null and left open. All others are
 *    close-on-exec and closed when cinch_run() returns, except for a pipe that libuv opens once and
 *    the program cinch-init, which stays in use even if its file is replaced.
 *  - Children: the programs of a run are supervised by helper processes (cinch-init), which are
 *    children of your process, each in a process session of its own. The library waits for them by
 *    pid and never waits for, signals or adopts your other children: it does not make the process a
 *    child subreaper and does not search for leftover processes. If you call wait() or
 *    waitpid(-1), you may reap a helper; the library then cannot determine how it ended.
 *    Without a sandbox (`sandbox: off`) an agent can kill its cinch-init. The program `cinch` finds
 *    and kills the processes that such an agent leaves behind. The library cannot distinguish them
 *    from your own children, so cinch_run() may return while they are still running. The run then
 *    fails with reason `internal` and has a warning.
 *  - Threads and libraries: libcurl and libzip are loaded when they are needed and not unloaded;
 *    libcurl may start threads that resolve names.
 *  - Reads: PATH is taken from cinch_options.environment. HOME, USER, TMPDIR, XDG_*, UV_CACHE_DIR,
 *    SSL_CERT_FILE, the proxy variables and CINCH_* are read with getenv() from the process: do not
 *    change them in another thread during a run. The git program that cinch itself uses is searched
 *    in PATH of the process.
 *  - Writes: nothing to stdout; diagnostics to stderr only if CINCH_LOG is set.
 *
 * Structs that you pass in begin with their size: sizeof at the time your program was compiled.
 * Members are only added at the end, and their default is always 0, so that programs built with an
 * older header keep working. A larger, unknown size is accepted if the additional bytes are 0.
 *
 * Functions that can fail return 0 or a negative enum cinch_error; cinch_task_error() returns the
 * message. Returned strings belong to the object that they were requested from.
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
    CINCH_EUSAGE,  /* invalid call: wrong size, missing member, invalid JSON */
    CINCH_ETASK,   /* the task is invalid, or refers to something that does not exist */
    CINCH_EOUTPUT, /* the output directory cannot be used */
    CINCH_EFAILED, /* anything else: see cinch_task_error() */
};

/* The version of the loaded library, such as "0.1.0". */
CINCH_PUBLIC const char *cinch_version(void);

/* --- the task --- */

CINCH_PUBLIC struct cinch_task *cinch_task_new(void);
CINCH_PUBLIC void cinch_task_free(struct cinch_task *task); /* accepts NULL */
/* Why the last failed call on this task failed; "" if no call has failed. */
CINCH_PUBLIC const char *cinch_task_error(const struct cinch_task *task);

/* Loads a task file. Merged keys take precedence over it, as options of the command line do. */
CINCH_PUBLIC int cinch_task_load(struct cinch_task *task, const char *file);
/* Merges keys of a task, given as JSON: maps are merged, other values replaced, null removes a key.
 * May be called any number of times. */
CINCH_PUBLIC int cinch_task_merge(struct cinch_task *task, const char *json);

/* --- tools --- */

struct cinch_tool {
    size_t size;
    const char *definition; /* {"name", "description", "input_schema", "output_schema", …} */
    /* Must call cinch_call_answer() once before it returns; otherwise the tool call fails. The
     * arguments are already validated against the schema. */
    void (*call)(void *arg, struct cinch_call *call);
    void *arg;
};
CINCH_PUBLIC int cinch_task_add_tool(struct cinch_task *task, const struct cinch_tool *tool);

CINCH_PUBLIC const char *cinch_call_name(const struct cinch_call *call);
CINCH_PUBLIC const char *cinch_call_id(const struct cinch_call *call);
CINCH_PUBLIC const char *cinch_call_arguments(struct cinch_call *call); /* JSON */
/* Sets the result, in the format of a tool program's output: {"message", "value", "success",
 * "state", "exclude_value_from_context"}. Unless `success` is false, changes to slices are committed
 * together with the files of the call, or not at all. The string is copied. */
CINCH_PUBLIC int cinch_call_answer(struct cinch_call *call, const char *json);

/* --- policies, feedback, completion checks --- */

/* Input: {"tool", "arguments", "call_id", "native", "section"} as JSON. Returns 1 to allow, 0 to
 * deny. The text at *reason is sent to the model; it must stay valid until check() is called again. */
struct cinch_policy {
    size_t size;
    const char *name;
    int (*check)(void *arg, const char *json, const char **reason);
    void *arg;
};
CINCH_PUBLIC int cinch_task_add_policy(struct cinch_task *task, const struct cinch_policy *policy);

/* Input: {"tool", "arguments", "success", "native"} as JSON. Returns the text to send to the agent,
 * or NULL. */
struct cinch_feedback {
    size_t size;
    const char *name;
    int every_n_calls;      /* 0: do not count calls */
    double every_n_seconds; /* 0: no interval */
    const char *(*say)(void *arg, const char *json);
    void *arg;
};
CINCH_PUBLIC int cinch_task_add_feedback(struct cinch_task *task,
                                         const struct cinch_feedback *feedback);

/* Input: {"text", "output", "stop_reason"} as JSON. Returns 1 if the task is complete. Otherwise the
 * text at *feedback starts the agent's next turn; without a text the run ends and fails. */
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
    const char *runs_dir;            /* where tasks without an output directory create one; NULL: as
                                       `cinch run` does */
    /* NULL-terminated "NAME=value"; NULL: the environment of the process. Variables that the agent may
     * inherit are taken from it, and programs (the agent, adapters, container engines) are searched in
     * its PATH, or in /usr/local/bin:/usr/bin:/bin if it has none. */
    const char *const *environment;
    const char *const *adapter_dirs; /* NULL-terminated: more directories with profiles; NULL: none */
    int signals; /* 1: SIGINT, SIGTERM and SIGHUP stop the run, as in `cinch run` */
    int force;   /* 1: archive the content of an output directory that is not empty */
    /* Called with each line of events.jsonl as it is written, without the newline. May be NULL. */
    void (*event)(void *arg, const char *json);
    /* Called about ten times a second and at every event. Returns 0 to continue, any other value to
     * cancel the run. May be NULL. */
    int (*beat)(void *arg);
    void *arg;
};

/* Returns 0 if the run has a record, even if the task failed: the result reports the outcome. On
 * an error there is no record. */
CINCH_PUBLIC int cinch_run(struct cinch_task *task, const struct cinch_options *options,
                           struct cinch_result **result);

/* All accept NULL; the strings are then NULL and the exit status is -1. */
CINCH_PUBLIC void cinch_result_free(struct cinch_result *result);
CINCH_PUBLIC const char *cinch_result_json(const struct cinch_result *result);   /* result.json */
CINCH_PUBLIC const char *cinch_result_dir(const struct cinch_result *result);    /* the record */
CINCH_PUBLIC const char *cinch_result_reason(const struct cinch_result *result); /* "success" … */
CINCH_PUBLIC int cinch_result_exit_status(const struct cinch_result *result);

#ifdef __cplusplus
}
#endif
#endif

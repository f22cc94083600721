/* SPDX-License-Identifier: MIT
 *
 * Options to settings keys. The table says for each option where its value goes; only what is not a
 * plain value has code.
 */
#include "cli/run_request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "data/yaml.h"

/* A prompt typed into a pipe; a larger one belongs into a file. */
enum { STDIN_MAX = 16 << 20 };
/* As deep as a task file may be; what is deeper, no reader of task.json would take. */
enum { KEY_DEPTH_MAX = 32 };

static const char *const delivery_words[] = { "file", "argument", "stdin", NULL };
static const char *const view_words[] = {
    "snapshot", "overlay", "copy", "clone", "in-place", NULL
};
static const char *const keep_words[] = { "keep", "keep-on-failure", "remove", NULL };
static const char *const savepoint_words[] = { "turn", "none", NULL };
static const char *const auth_words[] = { "gateway", "host", "env", NULL };
static const char *const home_words[] = { "private", "shared", NULL };
static const char *const sandbox_words[] = { "read-only", "workspace-write", "off", NULL };
static const char *const exit_words[] = { "native", "holon", "scylla", NULL };

/* One list for `run`, `config` and `task`, which differ only in what they do with it. */
/* clang-format off */
#define REQUEST_OPTIONS \
    { "adapter", 'a', OPTION_STRING, .value = "NAME", .help = "run this agent ('cinch adapters' lists the names)", \
      .section = "Task", .complete = COMPLETE_ADAPTER }, \
    { "model", 'm', OPTION_STRING, .value = "MODEL", .help = "use this model" }, \
    { "prompt", 'p', OPTION_PATH, .value = "FILE", .help = "read the prompt from FILE; - reads standard input" }, \
    { "prompt-via", 0, OPTION_ENUM, .value = "WAY", .words = delivery_words, \
      .help = "choose how the prompt is passed to the agent", .shown = "the adapter's choice" }, \
    { "param", 0, OPTION_PAIR, .value = "NAME=VALUE", .help = "set a variable of the prompt or a parameter of the skill", \
      .flags = OPTION_REPEAT }, \
    { "skill", 0, OPTION_PATH, .value = "PATH", .help = "install a skill (directory, SKILL.md or zip); a skill package becomes the task", \
      .flags = OPTION_REPEAT }, \
    { "input", 'i', OPTION_PAIR, .value = "NAME=FILE", .help = "set an input of the skill package", .flags = OPTION_REPEAT }, \
    { "output-schema", 0, OPTION_PATH, .value = "FILE", .help = "require the final answer to match this JSON Schema" }, \
    { "workspace", 'w', OPTION_PATH, .value = "DIR", .help = "run the agent in DIR", .shown = ".", \
      .complete = COMPLETE_DIRECTORY }, \
    { "workspace-mode", 0, OPTION_ENUM, .value = "MODE", .words = view_words, \
      .help = "choose how the agent sees the workspace; only in-place changes the original", .shown = "snapshot" }, \
    { "ref", 0, OPTION_STRING, .value = "REF", .help = "check out this commit, branch or tag for the agent" }, \
    { "keep-workspace", 0, OPTION_ENUM, .value = "WHEN", .words = keep_words, \
      .help = "choose when to keep the workspace after the run", .shown = "keep-on-failure" }, \
    { "savepoint", 0, OPTION_ENUM, .value = "WHEN", .words = savepoint_words, \
      .help = "roll back the changes of a failed turn, including those of native tools", .shown = "none" }, \
    { "output", 'o', OPTION_PATH, .value = "DIR", .help = "write the record to DIR, which must be new or empty", \
      .shown = "a new directory below ~/.local/state/cinch/runs", .complete = COMPLETE_DIRECTORY }, \
    { "resume", 0, OPTION_PATH, .value = "DIR", .help = "continue the conversation of the run recorded in DIR", \
      .complete = COMPLETE_DIRECTORY }, \
    { "config", 'c', OPTION_PATH, .value = "FILE", .help = "read evaluation settings from FILE (tier_id, test_id, api_keys, ...)" }, \
    { "set", 0, OPTION_PAIR, .value = "KEY=VALUE", .help = "set any setting by its dotted key; VALUE is YAML", \
      .flags = OPTION_REPEAT }, \
    { "name", 0, OPTION_STRING, .value = "NAME", .help = "set the name of the task in the record" }, \
    { "adapter-dir", 0, OPTION_PATH, .value = "DIR", .help = "load more adapter profiles from DIR", .flags = OPTION_REPEAT, \
      .complete = COMPLETE_DIRECTORY }, \
    { "timeout", 't', OPTION_DURATION, .value = "TIME", .help = "stop the run after TIME (600, 90s, 10m, 2h)", \
      .shown = "1h", .flags = OPTION_POSITIVE, .section = "Limits" }, \
    { "first-output-timeout", 0, OPTION_DURATION, .value = "TIME", .help = "stop the run if the agent prints nothing within TIME; 0 disables this", \
      .shown = "0" }, \
    { "idle-timeout", 0, OPTION_DURATION, .value = "TIME", \
      .help = "stop the run if the agent neither prints nor uses the CPU for TIME; 0 disables this", .shown = "0" }, \
    { "grace", 0, OPTION_DURATION, .value = "TIME", .help = "wait TIME between SIGTERM and SIGKILL", .shown = "5s" }, \
    { "drain", 0, OPTION_DURATION, .value = "TIME", .help = "wait TIME after the agent exits for processes that hold its output open", .shown = "5s" }, \
    { "max-calls", 0, OPTION_INT, .value = "N", .help = "stop before the run exceeds N model calls", .min = 1, .max = INT64_MAX }, \
    { "max-tokens", 0, OPTION_INT, .value = "N", .help = "stop before the run exceeds N tokens, input and output together", .min = 1, .max = INT64_MAX }, \
    { "max-input-tokens", 0, OPTION_INT, .value = "N", .help = "stop before the run exceeds N input tokens", .min = 1, .max = INT64_MAX }, \
    { "max-output-tokens", 0, OPTION_INT, .value = "N", .help = "stop before the run exceeds N output tokens", .min = 1, .max = INT64_MAX }, \
    { "max-usd", 0, OPTION_STRING, .value = "AMOUNT", .help = "stop before the run's cost can exceed AMOUNT (US dollars, built-in price table)" }, \
    { "upstream", 'u', OPTION_STRING, .value = "URL", .help = "send model requests to URL", \
      .section = "Gateway" }, \
    { "script", 0, OPTION_PATH, .value = "FILE", .help = "use a scripted model instead of an upstream" }, \
    { "cassette", 0, OPTION_PATH, .value = "FILE", .help = "replay a recording instead of using an upstream" }, \
    { "replay-speed", 0, OPTION_STRING, .value = "FACTOR", .help = "set the speed of the replay: 1 is as recorded, 0 is without delays", \
      .shown = "0" }, \
    { "record", 0, OPTION_FLAG, .help = "record model traffic in evidence/traffic.cassette", .flags = OPTION_NEGATABLE, \
      .shown = "yes" }, \
    { "env", 'e', OPTION_PAIR, .value = "NAME[=VALUE]", .help = "pass a variable to the agent, or set one", \
      .flags = OPTION_REPEAT | OPTION_BARE, .section = "Environment" }, \
    { "inherit-env", 0, OPTION_FLAG, .help = "pass the whole environment to the agent" }, \
    { "secret", 's', OPTION_STRING, .value = "NAME", .help = "pass a variable to the agent and keep its value out of every file", \
      .flags = OPTION_REPEAT }, \
    { "secret-file", 0, OPTION_PATH, .value = "FILE", .help = "keep the content of FILE out of every recorded file", \
      .flags = OPTION_REPEAT }, \
    { "auth", 0, OPTION_ENUM, .value = "MODE", .words = auth_words, \
      .help = "use the gateway's credential, your own login (host) or variables (env)", .shown = "gateway" }, \
    { "home", 0, OPTION_ENUM, .value = "KIND", .words = home_words, .help = "give the agent a HOME of its own, or share yours", \
      .shown = "the adapter's choice" }, \
    { "trust-project", 0, OPTION_FLAG, .flags = OPTION_NEGATABLE, \
      .help = "let the agent load settings, hooks, plugins and servers from the workspace", \
      .shown = "instructions only" }, \
    { "sandbox", 0, OPTION_ENUM, .value = "MODE", .words = sandbox_words, .help = "choose what the agent may write; off disables the sandbox", \
      .shown = "workspace-write", .section = "Sandbox" }, \
    { "read", 0, OPTION_PATH, .value = "PATH", .help = "also let the agent read PATH", .flags = OPTION_REPEAT }, \
    { "write", 0, OPTION_PATH, .value = "PATH", .help = "also let the agent write to PATH", .flags = OPTION_REPEAT }, \
    { "deny", 0, OPTION_PATH, .value = "PATH", .help = "hide PATH from the agent", \
      .flags = OPTION_REPEAT }, \
    { "net", 0, OPTION_STRING, .value = "none|open|HOST", .help = "allow network access besides the gateway", \
      .shown = "none", .flags = OPTION_REPEAT }, \
    { "memory", 0, OPTION_STRING, .value = "SIZE", .help = "limit the memory of the whole run (512M, 2G)" }, \
    { "disk", 0, OPTION_STRING, .value = "SIZE", .help = "limit the disk space of the whole run (5G)", \
      .shown = "20G, or half of the free space if that is less" }, \
    { "pids", 0, OPTION_INT, .value = "N", .help = "limit the number of processes and threads", .shown = "4096", .min = 1, \
      .max = 4194304 }, \
    { "cpus", 0, OPTION_STRING, .value = "N", .help = "limit the run to N CPUs (0.5, 2)" }, \
    { "allow-degraded", 0, OPTION_FLAG, .help = "run even if this machine cannot enforce every sandbox guarantee" }, \
    { "tier", 0, OPTION_STRING, .value = "TIER", .help = "set the tier of the evaluation ($TIER)", .section = "Evaluation" }, \
    { "test-id", 0, OPTION_STRING, .value = "ID", .help = "set the test of the evaluation ($TEST_ID)" }, \
    { "run-number", 0, OPTION_INT, .value = "N", .help = "set the number of the run ($RUN_NUMBER)", .min = 1, .max = 99 }, \
    { "tools", 0, OPTION_FLAG, .help = "set $TOOLS_ENABLED; by default the agent decides", .flags = OPTION_NEGATABLE }, \
    { "delegation", 0, OPTION_FLAG, .help = "set $DELEGATION_ENABLED; by default the agent decides", .flags = OPTION_NEGATABLE }, \
    { "exit-profile", 0, OPTION_ENUM, .value = "NAME", .words = exit_words, .help = "use the exit codes of this contract", \
      .shown = "native" },

const struct option request_options[] = {
    REQUEST_OPTIONS
    { "force", 0, OPTION_FLAG, .old_letter = 'f', .help = "archive the existing content of the output directory first", .section = "Record" },
    { "keep-home", 0, OPTION_FLAG, .help = "keep the agent's private HOME after the run" },
    { 0 },
};

const struct option request_config_options[] = {
    { "explain", 0, OPTION_FLAG, .help = "show the layer and source of each setting", .section = "Output" },
    REQUEST_OPTIONS
    { 0 },
};

const struct option request_task_options[] = {
    REQUEST_OPTIONS
    { 0 },
};

const struct positional request_positionals[] = {
    { "TASK", "a task file (*.yaml, *.yml, *.json), or the goal as text", .optional = true,
      .complete = COMPLETE_FILE },
    { 0 },
};

/* Options whose value goes to one key as it is. */
static const struct {
    const char *option, *section, *key;
    enum option_kind kind;
} plain[] = {
    { "adapter", "agent", "adapter", OPTION_STRING },
    { "model", "agent", "model", OPTION_STRING },
    { "auth", "agent", "auth", OPTION_STRING },
    { "prompt-via", "prompt", "delivery", OPTION_STRING },
    { "workspace", "workspace", "path", OPTION_STRING },
    { "workspace-mode", "workspace", "mode", OPTION_STRING },
    { "ref", "workspace", "ref", OPTION_STRING },
    { "keep-workspace", "workspace", "keep", OPTION_STRING },
    { "savepoint", "workspace", "savepoint", OPTION_STRING },
    { "output", "output", "dir", OPTION_STRING },
    { "resume", "session", "resume", OPTION_STRING },
    { "output-schema", "output", "schema", OPTION_STRING },
    { "timeout", "limits", "timeout", OPTION_DURATION },
    { "first-output-timeout", "limits", "first_output", OPTION_DURATION },
    { "idle-timeout", "limits", "idle", OPTION_DURATION },
    { "grace", "limits", "grace", OPTION_DURATION },
    { "drain", "limits", "drain", OPTION_DURATION },
    { "max-calls", "limits", "calls", OPTION_INT },
    { "max-tokens", "limits", "tokens_total", OPTION_INT },
    { "max-input-tokens", "limits", "tokens_input", OPTION_INT },
    { "max-output-tokens", "limits", "tokens_output", OPTION_INT },
    { "upstream", "gateway", "upstream", OPTION_STRING },
    { "script", "gateway", "script", OPTION_STRING },
    { "cassette", "gateway", "cassette", OPTION_STRING },
    { "record", "gateway", "record", OPTION_FLAG },
    { "inherit-env", "env", "inherit", OPTION_FLAG },
    { "sandbox", "sandbox", "mode", OPTION_STRING },
    { "memory", "sandbox", "memory", OPTION_STRING },
    { "disk", "sandbox", "disk", OPTION_STRING },
    { "pids", "sandbox", "pids", OPTION_INT },
    { "allow-degraded", "sandbox", "allow_degraded", OPTION_FLAG },
    { "tier", "eval", "tier", OPTION_STRING },
    { "test-id", "eval", "test_id", OPTION_STRING },
    { "run-number", "eval", "run_number", OPTION_INT },
    { "tools", "eval", "tools_enabled", OPTION_FLAG },
    { "delegation", "eval", "delegation_enabled", OPTION_FLAG },
    { "name", NULL, "name", OPTION_STRING },
    { "home", NULL, "home", OPTION_STRING },
    { "exit-profile", NULL, "exit_profile", OPTION_STRING },
};
/* clang-format on */

static struct json *section(struct arena *a, struct json *tree, const char *name)
{
    struct json *s = name == NULL ? tree : json_get(tree, name);
    if (s == NULL) {
        s = json_object(a);
        json_setc(a, tree, name, s);
    }
    return s;
}

static struct json *plain_value(struct arena *a, const struct options *opt, size_t i)
{
    const char *name = plain[i].option;
    switch (plain[i].kind) {
    case OPTION_FLAG:
        return json_boolean(a, options_flag(opt, name, false));
    case OPTION_INT:
        return json_integer(a, options_int(opt, name, 0));
    case OPTION_DURATION:
        return json_number(a, (double)options_duration(opt, name, 0) / 1e9);
    case OPTION_STRING:
    case OPTION_PATH:
    case OPTION_ENUM:
    case OPTION_PAIR:
        break;
    }
    return json_cstr(a, options_string(opt, name, ""));
}

static void put_list(struct arena *a, struct json *tree, const char *where, const char *key,
                     const char *const *values)
{
    struct json *list = json_array(a);
    for (; *values != NULL; values++) {
        json_push(a, list, json_cstr(a, *values));
    }
    if (list->array.len > 0) {
        json_setc(a, section(a, tree, where), key, list);
    }
}

/* --param a=1 --param b=2 into a map. */
static void put_map(struct arena *a, struct json *tree, const char *key, const char *const *pairs)
{
    for (; *pairs != NULL; pairs++) {
        struct str name;
        struct str value;
        (void)option_pair(*pairs, &name, &value);
        json_set(a, section(a, tree, key), name, json_string(a, value));
    }
}

static void put_env(struct arena *a, struct json *tree, const struct options *opt)
{
    struct json *set = json_object(a);
    struct json *pass = json_array(a);
    for (const char *const *p = options_list(opt, "env"); *p != NULL; p++) {
        struct str name;
        struct str value;
        if (option_pair(*p, &name, &value)) {
            json_set(a, set, name, json_string(a, value));
        } else {
            json_push(a, pass, json_string(a, name));
        }
    }
    if (json_len(set) > 0) {
        json_setc(a, section(a, tree, "env"), "set", set);
    }
    if (json_len(pass) > 0) {
        json_setc(a, section(a, tree, "env"), "pass", pass);
    }
}

/* --max-usd 0.5: a number with a fraction, which no kind of option is. */
static int put_numbers(struct arena *a, struct json *tree, const struct options *opt, struct err *e)
{
    static const char *const table[][3] = {
        { "max-usd", "limits", "usd" },
        { "replay-speed", "gateway", "replay_speed" },
        { "cpus", "sandbox", "cpus" },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *text = options_string(opt, table[i][0], NULL);
        double value;
        if (text == NULL) {
            continue;
        }
        if (!str_to_double(str_of(text), &value) || value < 0) {
            return ERR(e, ERR_USAGE, "--%s: '%s' is not a number; examples: 0.5, 2", table[i][0],
                       text);
        }
        json_setc(a, section(a, tree, table[i][1]), table[i][2], json_number(a, value));
    }
    return 0;
}

/* --net none, --net open, or the hosts. */
static void put_net(struct arena *a, struct json *tree, const char *const *given)
{
    bool word = given[0] != NULL && given[1] == NULL &&
                (strcmp(given[0], "none") == 0 || strcmp(given[0], "open") == 0);
    if (word) {
        json_setc(a, section(a, tree, "sandbox"), "net", json_cstr(a, given[0]));
    } else {
        put_list(a, tree, "sandbox", "net", given);
    }
}

/* --trust-project, --no-trust-project */
static void put_trust(struct arena *a, struct json *tree, const struct options *opt)
{
    if (options_given(opt, "trust-project")) {
        bool trusted = options_flag(opt, "trust-project", false);
        json_setc(a, section(a, tree, "agent"), "project_config",
                  json_cstr(a, trusted ? "trusted" : "instructions"));
    }
}

static void put_sandbox(struct arena *a, struct json *tree, const struct options *opt)
{
    put_list(a, tree, "sandbox", "read", options_list(opt, "read"));
    put_list(a, tree, "sandbox", "write", options_list(opt, "write"));
    put_list(a, tree, "sandbox", "deny", options_list(opt, "deny"));
    put_net(a, tree, options_list(opt, "net"));
}

/* --set limits.timeout=90s */
static int put_setting(struct arena *a, struct json *tree, const char *pair, struct err *e)
{
    struct str path;
    struct str text;
    struct json *value;
    (void)option_pair(pair, &path, &text);
    int r = yaml_parse(a, text, "--set", NULL, &value, e);
    if (r < 0) {
        e->code = ERR_USAGE;
        return err_wrap(e, "'%s'", pair);
    }
    value->line = value->column = 0;
    struct json *at = tree;
    for (int depth = 1;; depth++) {
        struct str key = str_split(&path, '.');
        if (depth > KEY_DEPTH_MAX) {
            return ERR(e, ERR_USAGE, "--set: the key has more than %d parts", KEY_DEPTH_MAX);
        }
        if (key.len == 0) {
            return ERR(e, ERR_USAGE, "--set: the key of '%s' has an empty part", pair);
        }
        if (path.ptr == NULL) {
            json_set(a, at, key, value);
            return 0;
        }
        struct json *inner = json_find(at, key);
        if (!json_is(inner, JSON_OBJECT)) {
            inner = json_object(a);
            json_set(a, at, key, inner);
        }
        at = inner;
    }
}

/* From the descriptor, not by the name /dev/stdin: that cannot be opened when it is a socket, and
 * whoever pipes a prompt in may take its time to write it. */
static int read_stdin(struct buf *text, struct err *e)
{
    for (;;) {
        char chunk[16384];
        ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
            (void)poll(&p, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return ERR_SYS_AS(e, ERR_INPUT, "cannot read the prompt from standard input");
        } else if (n > 0 && buf_append(text, str_n(chunk, (size_t)n), NULL) < 0) {
            return ERR(e, ERR_INPUT, "the prompt on standard input is larger than %d bytes",
                       STDIN_MAX);
        }
    }
}

static int read_stdin_prompt(struct arena *a, struct json *tree, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(STDIN_MAX);
    if (isatty(STDIN_FILENO)) {
        return ERR(e, ERR_USAGE, "--prompt -: standard input is a terminal; pipe the prompt in");
    }
    int r = read_stdin(&text, e);
    if (r == 0) {
        json_setc(a, section(a, tree, "prompt"), "text", json_string(a, buf_str(&text)));
    }
    return r;
}

static bool is_task_name(struct str s)
{
    return memchr(s.ptr, '\n', s.len) == NULL &&
           (str_ends(s, STR(".yaml")) || str_ends(s, STR(".yml")) || str_ends(s, STR(".json")));
}

static int put_prompt(struct arena *a, struct json *tree, const struct options *opt,
                      const char *task, struct settings_input *in, struct err *e)
{
    const char *file = options_string(opt, "prompt", NULL);
    if (task != NULL && is_task_name(str_of(task))) {
        in->task_file = task;
    } else if (task != NULL && task[0] == '\0') {
        return ERR(e, ERR_USAGE, "the goal is empty");
    } else if (task != NULL && file != NULL) {
        return ERR(e, ERR_USAGE, "a goal and --prompt cannot be used together");
    } else if (task != NULL) {
        json_setc(a, section(a, tree, "prompt"), "text", json_cstr(a, task));
    }
    if (file != NULL && strcmp(file, "-") == 0) {
        return read_stdin_prompt(a, tree, e);
    }
    if (file != NULL) {
        json_setc(a, section(a, tree, "prompt"), "file", json_cstr(a, file));
    }
    return 0;
}

static const char *home_path(struct arena *a, const char *variable, const char *below_home,
                             const char *rest)
{
    const char *base = getenv(variable);
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        return arena_printf(a, "%s/%s", base, rest);
    }
    return home == NULL || home[0] != '/' ? NULL
                                          : arena_printf(a, "%s/%s/%s", home, below_home, rest);
}

const char *request_user_dir(struct arena *a)
{
    return home_path(a, "XDG_CONFIG_HOME", ".config", "cinch");
}

const char *request_runs_dir(struct arena *a)
{
    const char *dir = home_path(a, "XDG_STATE_HOME", ".local/state", "cinch/runs");
    const char *temporary = getenv("TMPDIR");
    return dir != NULL ? dir
                       : arena_printf(a, "%s/cinch-runs", temporary == NULL ? "/tmp" : temporary);
}

int request_adapter_dirs(struct arena *a, const struct options *opt, const char *const **ret,
                         struct err *e)
{
    const char *const *given = opt == NULL ? NULL : options_list(opt, "adapter-dir");
    size_t n = 0;
    while (given != NULL && given[n] != NULL) {
        n++;
    }
    const char **dirs = arena_array(a, n + 2, sizeof *dirs);
    const char *user = request_user_dir(a);
    size_t len = 0;
    if (user != NULL) {
        dirs[len++] = arena_printf(a, "%s/adapters", user);
    }
    for (size_t i = 0; i < n; i++) {
        if (!file_is_dir(AT_FDCWD, given[i])) {
            return ERR(e, ERR_INPUT, "--adapter-dir: '%s' is not a directory", given[i]);
        }
        dirs[len++] = given[i];
    }
    *ret = dirs;
    return 0;
}

int request_read(struct arena *a, const struct options *opt, const char *task,
                 struct settings_input *ret, struct err *e)
{
    struct json *tree = json_object(a);
    const char *site = getenv("CINCH_SITE_DIR");
    *ret = (struct settings_input) {
        .request = tree,
        .config_file = options_string(opt, "config", NULL),
        .site_dir = site == NULL ? "/etc/cinch" : site,
        .user_dir = request_user_dir(a),
    };
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (options_given(opt, plain[i].option)) {
            json_setc(a, section(a, tree, plain[i].section), plain[i].key, plain_value(a, opt, i));
        }
    }
    put_list(a, tree, "secrets", "names", options_list(opt, "secret"));
    put_list(a, tree, "secrets", "files", options_list(opt, "secret-file"));
    put_env(a, tree, opt);
    put_list(a, tree, NULL, "skills", options_list(opt, "skill"));
    put_map(a, tree, "params", options_list(opt, "param"));
    put_map(a, tree, "inputs", options_list(opt, "input"));
    const char *const *rest = options_rest(opt);
    if (rest != NULL && rest[0] != NULL) {
        struct json *list = json_array(a);
        for (; *rest != NULL; rest++) {
            json_push(a, list, json_cstr(a, *rest));
        }
        ret->rest = list;
    }
    int r = request_adapter_dirs(a, opt, &ret->adapter_dirs, e);
    r = r < 0 ? r : put_prompt(a, tree, opt, task, ret, e);
    if (r == 0) {
        r = put_numbers(a, tree, opt, e);
    }
    put_trust(a, tree, opt);
    put_sandbox(a, tree, opt);
    for (const char *const *p = options_list(opt, "set"); r == 0 && *p != NULL; p++) {
        r = put_setting(a, tree, *p, e);
    }
    return r;
}

/* SPDX-License-Identifier: MIT
 *
 * Options to settings keys and back: the rows of the table of settings that have an option, and the
 * few options that are not a setting.
 */
#include "cli/run_request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "config/task_format.h"
#include "data/yaml.h"
#include "record/run_store.h"

/* A prompt typed into a pipe; a larger one belongs into a file. */
enum { STDIN_MAX = 16 << 20 };
/* As deep as a task file may be; what is deeper, no reader of task.json would take. */
enum { KEY_DEPTH_MAX = 32 };
/* Files of --context; each is a mount of its own. */
enum { CONTEXT_MAX = 65 };

/* --- options --- */

/* Options that set no key, or a key in a way of their own. Each follows the option `after`, or is
 * the last of its section. */
static const struct {
    const char *after;
    enum setting_heading heading;
    struct option option;
} own_options[] = {
    { "model",
      HEADING_TASK,
      { "prompt", 'p', OPTION_PATH, .value = "FILE",
        .help = "read the prompt from FILE; - reads standard input" } },
    { "adapter",
      HEADING_TASK,
      { "agent", 0, OPTION_PATH, .value = "FILE",
        .help = "run this agent bundle of Holon (.tar.gz)" } },
    { "model",
      HEADING_TASK,
      { "goal", 0, OPTION_STRING, .value = "TEXT",
        .help = "use TEXT as the prompt; the same as a goal without an option" } },
    { "model",
      HEADING_TASK,
      { "spec", 0, OPTION_PATH, .value = "FILE",
        .help = "run this task file or Holon spec; the same as a file without an option" } },
    { "workspace-mode",
      HEADING_TASK,
      { "context", 0, OPTION_PATH, .value = "DIR", .flags = OPTION_REPEAT,
        .complete = COMPLETE_DIRECTORY,
        .help = "let the agent read the files in DIR; adapter programs find them among their "
                "inputs" } },
    { NULL,
      HEADING_TASK,
      { "config", 'c', OPTION_PATH, .value = "FILE",
        .help = "read evaluation settings from FILE (tier_id, test_id, api_keys, ...)" } },
    { NULL,
      HEADING_TASK,
      { "set", 0, OPTION_PAIR, .value = "KEY=VALUE", .flags = OPTION_REPEAT,
        .help = "set any setting by its dotted key; VALUE is YAML" } },
    { NULL,
      HEADING_TASK,
      { "adapter-dir", 0, OPTION_PATH, .value = "DIR", .flags = OPTION_REPEAT,
        .complete = COMPLETE_DIRECTORY, .help = "load more adapter profiles from DIR" } },
    { "trust-project",
      HEADING_ENVIRONMENT,
      { "env", 'e', OPTION_PAIR, .value = "NAME[=VALUE]", .flags = OPTION_REPEAT | OPTION_BARE,
        .help = "pass a variable to the agent, or set one" } },
};

static const char *const progress_words[] = { "lines", "plain", "none", NULL };
static const char *const answer_words[] = { "short", "full", NULL };

static const struct option run_options[] = {
    { "force", 0, OPTION_FLAG, .old_letter = 'f', .section = "Record",
      .help = "archive the existing content of the output directory first" },
    { "keep-home", 0, OPTION_FLAG, .help = "keep the agent's private HOME after the run" },
    { "apply", 0, OPTION_FLAG, .help = "apply the changes to the workspace if the run succeeds" },
    { "answer", 0, OPTION_ENUM, .section = "Terminal", .words = answer_words,
      .help = "print the end of the final answer, or all of it" },
    { "progress", 0, OPTION_ENUM, .words = progress_words, .shown = "lines on a terminal",
      .help = "while it runs, print a line for each message and tool call, plain lines for the "
              "phases, or only warnings" },
    { 0 },
};

static const struct option config_options[] = {
    { "explain", 0, OPTION_FLAG, .section = "Output",
      .help = "show the layer and source of each setting" },
    { "markdown", 0, OPTION_FLAG, .help = "print the table of settings of docs/task.md" },
    { 0 },
};

struct list {
    struct option *items;
    size_t len;
    const char *section; /* heading of the next option; NULL: the same as before */
};

static void add_option(struct list *l, const struct option *o)
{
    l->items[l->len] = *o;
    if (l->section != NULL) {
        l->items[l->len].section = l->section;
        l->section = NULL;
    }
    l->len++;
}

static void add_options(struct list *l, const struct option *table)
{
    for (const struct option *o = table; o->name != NULL; o++) {
        add_option(l, o);
    }
}

/* "a|b" as a NULL-terminated list. */
static const char *const *split_words(struct arena *a, const char *text)
{
    size_t n = 2;
    for (const char *p = text; *p != '\0'; p++) {
        n += *p == '|';
    }
    const char **words = arena_array(a, n, sizeof *words);
    struct str rest = str_of(text);
    for (n = 0; rest.ptr != NULL; n++) {
        words[n] = arena_dup(a, str_split(&rest, '|'));
    }
    words[n] = NULL;
    return words;
}

/* Which kind of option sets a kind of key. A number that may have a fraction, and a size, are
 * strings here. */
static const struct {
    enum option_kind kind;
    unsigned flags;
} option_kinds[SHAPE_KIND_MAX] = {
    [SHAPE_STRING] = { OPTION_STRING, 0 },
    [SHAPE_PATH] = { OPTION_PATH, 0 },
    [SHAPE_SOURCE] = { OPTION_PATH, 0 },
    [SHAPE_WORD] = { OPTION_ENUM, 0 },
    [SHAPE_BOOL] = { OPTION_FLAG, 0 },
    [SHAPE_INT] = { OPTION_INT, 0 },
    [SHAPE_DURATION] = { OPTION_DURATION, 0 },
    [SHAPE_NUMBER] = { OPTION_STRING, 0 },
    [SHAPE_SIZE] = { OPTION_STRING, 0 },
    [SHAPE_STRINGS] = { OPTION_STRING, OPTION_REPEAT },
    [SHAPE_CHOICE] = { OPTION_STRING, OPTION_REPEAT },
    [SHAPE_PATHS] = { OPTION_PATH, OPTION_REPEAT },
    [SHAPE_LIST] = { OPTION_PATH, OPTION_REPEAT },
    [SHAPE_ANY_OBJECT] = { OPTION_PAIR, OPTION_REPEAT },
    [SHAPE_MAP] = { OPTION_PAIR, OPTION_REPEAT },
};

static const char *shown_default(const struct setting *s)
{
    const char *shown = setting_shown(s);
    if (s->kind != SHAPE_BOOL || shown == NULL) {
        return shown;
    }
    return strcmp(shown, "true") == 0 ? "yes" : NULL;
}

struct option request_option(struct arena *a, const struct setting *s)
{
    const struct setting_option *from = &s->option;
    struct option o = {
        .name = from->name,
        .letter = from->letter,
        .kind = from->on != NULL ? OPTION_FLAG : option_kinds[s->kind].kind,
        .value = from->value,
        .help = s->help,
        .shown = shown_default(s),
        .flags = (from->negatable ? OPTION_NEGATABLE : 0) | option_kinds[s->kind].flags,
        .complete = from->complete == COMPLETE_DIRECTORIES ? COMPLETE_DIRECTORY
                    : from->complete == COMPLETE_ADAPTERS  ? COMPLETE_ADAPTER
                                                           : COMPLETE_FROM_KIND,
    };
    if (o.kind == OPTION_ENUM) {
        o.words = split_words(a, s->words);
    }
    if (o.kind == OPTION_INT) {
        o.min = from->positive ? 1 : (int64_t)s->min;
        o.max = s->max == 0 ? INT64_MAX : (int64_t)s->max;
    }
    if (o.kind == OPTION_DURATION && from->positive) {
        o.flags |= OPTION_POSITIVE;
    }
    return o;
}

static void add_own(struct list *l, enum setting_heading heading, const char *after)
{
    for (size_t i = 0; i < ARRAY_LEN(own_options); i++) {
        bool here = after == NULL
                        ? own_options[i].after == NULL
                        : own_options[i].after != NULL && strcmp(own_options[i].after, after) == 0;
        if (own_options[i].heading == heading && here) {
            add_option(l, &own_options[i].option);
        }
    }
}

static void add_heading(struct arena *a, struct list *l, enum setting_heading heading)
{
    l->section = setting_headings[heading];
    for (const struct setting *s = settings_table; s->key != NULL; s++) {
        if (s->option.name != NULL && s->option.heading == heading) {
            struct option o = request_option(a, s);
            add_option(l, &o);
            add_own(l, heading, o.name);
        }
    }
    add_own(l, heading, NULL);
}

static const struct option *make_options(struct arena *a, const struct option *before,
                                         const struct option *after)
{
    size_t n = ARRAY_LEN(own_options) + ARRAY_LEN(run_options) + ARRAY_LEN(config_options) + 1;
    for (const struct setting *s = settings_table; s->key != NULL; s++) {
        n += s->option.name != NULL;
    }
    struct list l = { .items = arena_array(a, n, sizeof *l.items) };
    add_options(&l, before);
    for (int heading = 0; heading < HEADING_MAX; heading++) {
        add_heading(a, &l, (enum setting_heading)heading);
    }
    add_options(&l, after);
    l.items[l.len] = (struct option) { .name = NULL };
    return l.items;
}

static const struct option no_options[] = { { 0 } };

const struct option *request_run_options(struct arena *a)
{
    return make_options(a, no_options, run_options);
}

const struct option *request_config_options(struct arena *a)
{
    return make_options(a, config_options, no_options);
}

const struct option *request_task_options(struct arena *a)
{
    return make_options(a, no_options, no_options);
}

const struct positional request_positionals[] = {
    { "TASK", "a task file or Holon spec (*.yaml, *.yml, *.json), or the goal as text",
      .optional = true, .complete = COMPLETE_FILE },
    { 0 },
};

/* --- values --- */

static struct json *list_of(struct arena *a, const char *const *values)
{
    struct json *list = json_array(a);
    for (; *values != NULL; values++) {
        json_push(a, list, json_cstr(a, *values));
    }
    return list;
}

/* --param a=1 --param b=2 */
static struct json *map_of(struct arena *a, const char *const *pairs)
{
    struct json *map = json_object(a);
    for (; *pairs != NULL; pairs++) {
        struct str name;
        struct str value;
        (void)option_pair(*pairs, &name, &value);
        json_set(a, map, name, json_string(a, value));
    }
    return map;
}

/* --net none, --net open, or the hosts. */
static struct json *choice_of(struct arena *a, const char *words, const char *const *given)
{
    for (const char *const *word = split_words(a, words); *word != NULL; word++) {
        if (given[0] != NULL && given[1] == NULL && strcmp(given[0], *word) == 0) {
            return json_cstr(a, given[0]);
        }
    }
    return list_of(a, given);
}

/* --max-usd 0.5 */
static int read_number(struct arena *a, const char *name, const char *text, struct json **ret,
                       struct err *e)
{
    double value;
    if (!str_to_double(str_of(text), &value) || value < 0) {
        return ERR(e, ERR_USAGE, "--%s: '%s' is not a number; examples: 0.5, 2", name, text);
    }
    *ret = json_number(a, value);
    return 0;
}

/* The value of the option that sets `s`, as a task file would have it. */
static int read_value(struct arena *a, const struct setting *s, const struct options *opt,
                      struct json **ret, struct err *e)
{
    const char *name = s->option.name;
    if (s->option.on != NULL) {
        *ret = json_cstr(a, options_flag(opt, name, false) ? s->option.on : s->option.off);
    } else if (s->kind == SHAPE_BOOL) {
        *ret = json_boolean(a, options_flag(opt, name, false));
    } else if (s->kind == SHAPE_INT) {
        *ret = json_integer(a, options_int(opt, name, 0));
    } else if (s->kind == SHAPE_DURATION) {
        *ret = json_number(a, (double)options_duration(opt, name, 0) / (double)NSEC_PER_SEC);
    } else if (s->kind == SHAPE_NUMBER) {
        return read_number(a, name, options_string(opt, name, ""), ret, e);
    } else if (s->kind == SHAPE_CHOICE) {
        *ret = choice_of(a, s->words, options_list(opt, name));
    } else if (s->kind == SHAPE_ANY_OBJECT || s->kind == SHAPE_MAP) {
        *ret = map_of(a, options_list(opt, name));
    } else if ((option_kinds[s->kind].flags & OPTION_REPEAT) != 0) {
        *ret = list_of(a, options_list(opt, name));
    } else {
        *ret = json_cstr(a, options_string(opt, name, ""));
    }
    return 0;
}

static int put_values(struct arena *a, struct json *tree, const struct options *opt, struct err *e)
{
    for (const struct setting *s = settings_table; s->key != NULL; s++) {
        struct json *value = NULL;
        if (s->option.name != NULL && options_given(opt, s->option.name)) {
            int r = read_value(a, s, opt, &value, e);
            if (r < 0) {
                return r;
            }
            setting_put(a, tree, s->key, value);
        }
    }
    return 0;
}

/* A run is named on the command line as in every other command. */
static int put_resume(struct arena *a, struct json *tree, const struct options *opt, struct err *e)
{
    const char *name = options_string(opt, "resume", NULL);
    const char *path = NULL;
    int r = name == NULL ? 0 : run_store_find(a, request_runs_dir(a), name, &path, e);
    if (r == 0 && path != NULL) {
        setting_put(a, tree, "session.resume", json_cstr(a, path));
    }
    return r;
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
        setting_put(a, tree, "env.set", set);
    }
    if (json_len(pass) > 0) {
        setting_put(a, tree, "env.pass", pass);
    }
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
        setting_put(a, tree, "prompt.text", json_string(a, buf_str(&text)));
    }
    return r;
}

static bool is_task_name(struct str s)
{
    return memchr(s.ptr, '\n', s.len) == NULL &&
           (str_ends(s, STR(".yaml")) || str_ends(s, STR(".yml")) || str_ends(s, STR(".json")));
}

/* --spec FILE and --goal TEXT say what the positional argument says by its look. */
static int put_task(struct arena *a, struct json *tree, const struct options *opt, const char *task,
                    struct settings_input *in, struct err *e)
{
    const char *goal = options_string(opt, "goal", NULL);
    const char *spec = options_string(opt, "spec", NULL);
    if ((task != NULL) + (goal != NULL) + (spec != NULL) > 1) {
        return ERR(e, ERR_USAGE, "the task is given twice: use a task, --spec or --goal");
    }
    bool file = task != NULL && (is_task_name(str_of(task)) || task_is_directory(task));
    if (file || spec != NULL) {
        in->task_file = spec != NULL ? spec : task;
        return 0;
    }
    goal = goal != NULL ? goal : task;
    if (goal == NULL) {
        return 0;
    }
    if (goal[0] == '\0') {
        return ERR(e, ERR_USAGE, "the goal is empty");
    }
    if (options_string(opt, "prompt", NULL) != NULL) {
        return ERR(e, ERR_USAGE, "a goal and --prompt cannot be used together");
    }
    setting_put(a, tree, "prompt.text", json_cstr(a, goal));
    return 0;
}

static int put_prompt(struct arena *a, struct json *tree, const struct options *opt,
                      const char *task, struct settings_input *in, struct err *e)
{
    const char *file = options_string(opt, "prompt", NULL);
    int r = put_task(a, tree, opt, task, in, e);
    if (r < 0) {
        return r;
    }
    if (file != NULL && strcmp(file, "-") == 0) {
        return read_stdin_prompt(a, tree, e);
    }
    if (file != NULL) {
        setting_put(a, tree, "prompt.file", json_cstr(a, file));
    }
    return 0;
}

/* --agent FILE is short for --adapter bundle:FILE. */
static int put_agent(struct arena *a, struct json *tree, const struct options *opt, struct err *e)
{
    const char *file = options_string(opt, "agent", NULL);
    if (file == NULL) {
        return 0;
    }
    if (options_given(opt, "adapter")) {
        return ERR(e, ERR_USAGE, "--agent and --adapter cannot be used together");
    }
    setting_put(a, tree, "agent.adapter", json_cstr(a, arena_printf(a, "bundle:%s", file)));
    return 0;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* --context DIR: every entry of the directory by itself, so that adapters find them side by side.
 * */
static int add_context(struct arena *a, struct json *list, const char *path, struct err *e)
{
    DIR *d = opendir(path);
    const char **names = arena_array(a, CONTEXT_MAX, sizeof *names);
    size_t len = 0;
    if (d == NULL) {
        return ERR_SYS_AS(e, ERR_INPUT, "--context: '%s'", path);
    }
    for (struct dirent *i = readdir(d); i != NULL && len < CONTEXT_MAX; i = readdir(d)) {
        if (strcmp(i->d_name, ".") != 0 && strcmp(i->d_name, "..") != 0) {
            names[len++] = arena_printf(a, "%s/%s", path, i->d_name);
        }
    }
    (void)closedir(d);
    qsort(names, len, sizeof *names, by_name);
    for (size_t i = 0; i < len; i++) {
        json_push(a, list, json_cstr(a, names[i]));
    }
    return len < CONTEXT_MAX ? 0
                             : ERR(e, ERR_USAGE, "--context: '%s' has more than %d entries", path,
                                   CONTEXT_MAX - 1);
}

static int put_context(struct arena *a, struct json *tree, const struct options *opt, struct err *e)
{
    struct json *list = json_array(a);
    int r = 0;
    for (const char *const *p = options_list(opt, "context"); r == 0 && *p != NULL; p++) {
        r = add_context(a, list, *p, e);
    }
    if (r == 0 && json_len(list) > 0) {
        setting_put(a, tree, "workspace.context", list);
    }
    return r;
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
    put_env(a, tree, opt);
    const char *const *rest = options_rest(opt);
    if (rest != NULL && rest[0] != NULL) {
        ret->rest = list_of(a, rest);
    }
    int r = request_adapter_dirs(a, opt, &ret->adapter_dirs, e);
    r = r < 0 ? r : put_prompt(a, tree, opt, task, ret, e);
    r = r < 0 ? r : put_context(a, tree, opt, e);
    r = r < 0 ? r : put_agent(a, tree, opt, e);
    r = r < 0 ? r : put_values(a, tree, opt, e);
    r = r < 0 ? r : put_resume(a, tree, opt, e);
    for (const char *const *p = options_list(opt, "set"); r == 0 && *p != NULL; p++) {
        r = put_setting(a, tree, *p, e);
    }
    return r;
}

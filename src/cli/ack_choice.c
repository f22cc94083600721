/* SPDX-License-Identifier: MIT
 *
 * Choosing adapters and scenarios; see ack_choice.h.
 */
#include "cli/ack_choice.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ack/contract_scenarios.h"
#include "adapters/driver.h"
#include "adapters/external.h"
#include "base/file.h"
#include "cli/run_request.h"

#define EXEC_PREFIX  "exec:"
#define IMAGE_PREFIX "image:"

#define MATRIX_MAX ((size_t)1 << 20)

/* Of the seed that the scenarios come from; an adapter without one has ACK_MODEL_<NAME>. */
static const struct {
    const char *adapter, *variable;
} model_variables[] = {
    { "claude-code", "CLAUDE_AGENT_SDK_TEST_MODEL" },
    { "codex", "CODEX_APP_SERVER_TEST_MODEL" },
    { "gemini", "GEMINI_ACP_TEST_MODEL" },
    { "opencode", "OPENCODE_ACP_TEST_MODEL" },
};

static const char *model_of(struct arena *a, const char *adapter)
{
    for (size_t i = 0; i < ARRAY_LEN(model_variables); i++) {
        if (strcmp(model_variables[i].adapter, adapter) == 0) {
            const char *model = getenv(model_variables[i].variable);
            return model == NULL || model[0] == '\0' ? NULL : model;
        }
    }
    char *variable = arena_printf(a, "ACK_MODEL_%s", adapter);
    for (char *p = variable; *p != '\0'; p++) {
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
    }
    const char *model = getenv(variable);
    return model == NULL || model[0] == '\0' ? NULL : model;
}

/* --- adapters --- */

struct choice {
    struct cli *cli;
    const struct profile_list *list;
    struct kit_opts *opts;
    const struct json *command; /* for who takes one; NULL: none was given */
    size_t cap;
};

static bool is_chosen(const struct kit_opts *o, const char *name)
{
    for (size_t i = 0; i < o->adapters_len; i++) {
        if (strcmp(o->adapters[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Trials have a working directory of their own: what is said relative to ours is made absolute. */
static const char *absolute(struct arena *a, const char *path)
{
    char out[PATH_MAX];
    return path_absolute(path, out, sizeof out, NULL) < 0 ? path : arena_dup(a, str_of(out));
}

static const char *full_name(struct arena *a, const char *name)
{
    if (str_starts(str_of(name), STR(EXEC_PREFIX))) {
        return arena_printf(a, EXEC_PREFIX "%s", absolute(a, name + strlen(EXEC_PREFIX)));
    }
    const char *image = external_image(a, str_of(name));
    return image == NULL ? name : arena_printf(a, IMAGE_PREFIX "%s", image);
}

/* `path`: directories to search for its program first; NULL: only those of PATH. */
static int add_adapter(struct choice *c, const char *name, const char *path,
                       const struct json *command, struct err *e)
{
    struct arena *a = c->cli->arena;
    struct kit_opts *o = c->opts;
    struct profile_list list = *c->list;
    const struct profile *p;
    if (path != NULL) { /* the parts of the profile are those for the version that is found there */
        list.path = arena_printf(a, "%s:%s", path, c->list->path == NULL ? "" : c->list->path);
    }
    int r = profile_require(&list, str_of(name), &p, e);
    if (r < 0) {
        cli_hint(c->cli, "'cinch adapters' lists them");
        return r;
    }
    if (o->adapters_len == c->cap) {
        c->cap = c->cap == 0 ? 16 : c->cap * 2;
        struct kit_adapter *more = arena_array(a, c->cap, sizeof *more);
        if (o->adapters_len > 0) {
            memcpy(more, o->adapters, o->adapters_len * sizeof *more);
        }
        o->adapters = more;
    }
    bool takes = json_len(p->binary) == 0 && !driver_is_kind(p, DRIVER_MODEL_LOOP);
    o->adapters[o->adapters_len++] = (struct kit_adapter) {
        .name = name,
        .profile = p,
        .model = model_of(a, name),
        .command = takes ? command : NULL,
        .path = path,
    };
    return 0;
}

static int choose(struct choice *c, const char *name, struct err *e)
{
    name = full_name(c->cli->arena, name);
    return is_chosen(c->opts, name) ? 0 : add_adapter(c, name, NULL, c->command, e);
}

static int choose_by_environment(struct choice *c, const char *names, struct err *e)
{
    int r = 0;
    for (struct str rest = str_of(names); r == 0 && rest.len > 0;) {
        struct str name = str_trim(str_split(&rest, ','));
        r = name.len == 0 ? 0 : choose(c, arena_dup(c->cli->arena, name), e);
    }
    if (r == 0 && c->opts->adapters_len == 0) {
        r = ERR(e, ERR_USAGE, "no adapter name in '%.80s'", names);
    }
    return r < 0 ? err_wrap(e, "ACK_ADAPTERS") : 0;
}

/* Those that say themselves what is to be started. */
static int choose_all(struct choice *c, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->list->len; i++) {
        const struct profile *p = c->list->items[i];
        if (json_len(p->binary) > 0 || driver_is_kind(p, DRIVER_MODEL_LOOP)) {
            r = choose(c, p->name, e);
        }
    }
    return r;
}

static int choose_list(struct choice *c, const char *prefix, const char *const *names,
                       struct err *e)
{
    int r = 0;
    for (; r == 0 && *names != NULL; names++) {
        r = choose(c, arena_printf(c->cli->arena, "%s%s", prefix, *names), e);
    }
    return r;
}

/* Words, with spaces between. A program by a relative path is one of ours. */
static struct json *split_command(struct arena *a, struct str line)
{
    struct json *words = json_array(a);
    while (line.len > 0) {
        struct str word = str_trim(str_split(&line, ' '));
        if (word.len > 0) {
            const char *text = arena_dup(a, word);
            bool path = json_len(words) == 0 && strchr(text, '/') != NULL;
            json_push(a, words, json_cstr(a, path ? absolute(a, text) : text));
        }
    }
    return words;
}

/* One line of --matrix: ADAPTER<TAB>VERSION<TAB>DIRECTORIES[<TAB>COMMAND]. */
static int choose_row(struct choice *c, struct str line, struct err *e)
{
    struct arena *a = c->cli->arena;
    struct str adapter = str_trim(str_split(&line, '\t'));
    struct str version = line.ptr == NULL ? STR_EMPTY : str_trim(str_split(&line, '\t'));
    struct str path = line.ptr == NULL ? STR_EMPTY : str_trim(str_split(&line, '\t'));
    struct str command = line.ptr == NULL ? STR_EMPTY : str_trim(line);
    if (adapter.len == 0 || version.len == 0 || path.len == 0 || path.ptr[0] != '/') {
        return ERR(e, ERR_CONFIG,
                   "a line needs ADAPTER, VERSION and DIRECTORIES (absolute), with tabs between");
    }
    return add_adapter(c, arena_dup(a, adapter), arena_dup(a, path),
                       command.len == 0 ? c->command : split_command(a, command), e);
}

static int choose_matrix(struct choice *c, const char *file, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(MATRIX_MAX);
    int r = file_read(AT_FDCWD, file, MATRIX_MAX, &text, e);
    struct str rest = buf_str(&text);
    for (size_t n = 1; r == 0 && rest.len > 0; n++) {
        struct str line = str_trim(str_split(&rest, '\n'));
        r = line.len == 0 || line.ptr[0] == '#' ? 0 : choose_row(c, line, e);
        r = r < 0 ? err_wrap(e, "%s:%zu", file, n) : 0;
    }
    if (r == 0 && c->opts->adapters_len == 0) {
        r = ERR(e, ERR_CONFIG, "%s: no line names an adapter", file);
    }
    return r < 0 ? err_wrap(e, "--matrix") : 0;
}

static int read_command(struct arena *a, const struct options *opt, const struct json **ret,
                        struct err *e)
{
    struct json *words = split_command(a, str_of(options_string(opt, "command", "")));
    bool given = options_given(opt, "command");
    *ret = given ? words : NULL;
    return given && json_len(words) == 0 ? ERR(e, ERR_USAGE, "--command: the command is empty") : 0;
}

static int check_command(const struct kit_opts *o, const struct json *command, struct err *e)
{
    bool taken = command == NULL;
    for (size_t i = 0; i < o->adapters_len; i++) {
        taken = taken || o->adapters[i].command != NULL;
    }
    return taken ? 0
                 : ERR(e, ERR_USAGE,
                       "--command needs an adapter without a program of its own, such as --adapter "
                       "acp");
}

static const char *const *absolute_paths(struct arena *a, const char *const *dirs)
{
    size_t n = 0;
    while (dirs[n] != NULL) {
        n++;
    }
    const char **ret = arena_array(a, n + 1, sizeof *ret);
    for (size_t i = 0; i < n; i++) {
        ret[i] = absolute(a, dirs[i]);
    }
    return ret;
}

static int open_choice(struct choice *c, const struct options *opt, struct err *e)
{
    struct arena *a = c->cli->arena;
    struct profile_list *list = ARENA_NEW(a, struct profile_list);
    const char *const *dirs;
    c->list = list;
    int r = request_adapter_dirs(a, opt, &dirs, e);
    if (r < 0) {
        return r;
    }
    /* Trials have another home, so they are given the user's by --adapter-dir: it must be there. */
    if (dirs[0] != NULL && !file_is_dir(AT_FDCWD, dirs[0])) {
        dirs++;
    }
    c->opts->adapter_dirs = absolute_paths(a, dirs);
    return profile_load_all(a, c->opts->adapter_dirs, list, e);
}

int ack_choose_named(struct cli *cli, const struct options *opt, const char *const *names,
                     struct kit_opts *ret, struct err *e)
{
    struct choice c = { .cli = cli, .opts = ret };
    int r = open_choice(&c, opt, e);
    if (r == 0 && *names == NULL) {
        return choose_all(&c, e);
    }
    for (; r == 0 && *names != NULL; names++) {
        r = choose(&c, *names, e);
    }
    return r;
}

static int check_reads(const char *const *paths, struct err *e)
{
    size_t n = 0;
    while (paths[n] != NULL) {
        n++;
    }
    return n <= SCENARIO_RUN_READS_MAX
               ? 0
               : ERR(e, ERR_USAGE, "--read: at most %d paths are allowed", SCENARIO_RUN_READS_MAX);
}

int ack_choose_adapters(struct cli *cli, const struct options *opt, struct kit_opts *ret,
                        struct err *e)
{
    struct choice c = { .cli = cli, .opts = ret };
    const char *variable = getenv("ACK_ADAPTERS");
    bool said = variable != NULL && str_trim(str_of(variable)).len > 0;
    ret->reads = absolute_paths(cli->arena, options_list(opt, "read"));
    int r = open_choice(&c, opt, e);
    r = r < 0 ? r : check_reads(ret->reads, e);
    r = r < 0 ? r : read_command(cli->arena, opt, &c.command, e);
    r = r < 0 ? r : choose_list(&c, "", options_list(opt, "adapter"), e);
    r = r < 0 ? r : choose_list(&c, EXEC_PREFIX, options_list(opt, "adapter-exec"), e);
    r = r < 0 ? r : choose_list(&c, IMAGE_PREFIX, options_list(opt, "adapter-image"), e);
    if (r == 0 && options_given(opt, "matrix")) {
        r = choose_matrix(&c, options_string(opt, "matrix", ""), e);
    }
    if (r == 0 && ret->adapters_len == 0) {
        r = said ? choose_by_environment(&c, variable, e) : choose_all(&c, e);
    }
    return r < 0 ? r : check_command(ret, c.command, e);
}

/* --- scenarios --- */

static bool has_capability(const struct scenario *s, const char *name)
{
    for (const char **c = s->capabilities; c != NULL && *c != NULL; c++) {
        if (strcmp(*c, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool fits_name(const struct scenario *s, const char *glob)
{
    return str_glob(str_of(glob), str_of(s->name), false);
}

static bool fits_tier(const struct scenario *s, const char *word)
{
    return strcmp(capability_tier_word(s->tier), word) == 0;
}

static const struct filter {
    const char *option;
    bool (*fits)(const struct scenario *s, const char *value);
} filters[] = {
    { "scenario", fits_name },
    { "tier", fits_tier },
    { "capability", has_capability },
};

/* One of the values is enough; without any, all fit. */
static bool fits(const struct filter *f, const struct options *opt, const struct scenario *s)
{
    const char *const *values = options_list(opt, f->option);
    bool any = *values == NULL;
    for (; !any && *values != NULL; values++) {
        any = f->fits(s, *values);
    }
    return any;
}

/* A value that fits no scenario at all is a mistake. */
static int check_filter(const struct filter *f, const struct options *opt,
                        const struct scenario_list *all, struct err *e)
{
    for (const char *const *v = options_list(opt, f->option); *v != NULL; v++) {
        bool any = false;
        for (size_t i = 0; i < all->len && !any; i++) {
            any = f->fits(all->items[i], *v);
        }
        if (!any) {
            return ERR(e, ERR_USAGE, "--%s: no scenario matches '%.80s'", f->option, *v);
        }
    }
    return 0;
}

static bool fits_all(const struct options *opt, const struct scenario *s)
{
    bool fit = true;
    for (size_t f = 0; f < ARRAY_LEN(filters); f++) {
        fit = fit && fits(&filters[f], opt, s);
    }
    return fit;
}

int ack_choose_scenarios(struct cli *cli, const struct options *opt, struct kit_opts *ret,
                         struct err *e)
{
    struct scenario_list *all = &ret->known;
    int r = scenario_load_all(cli->arena, options_list(opt, "scenario-file"), all, e);
    if (r < 0) {
        return r;
    }
    contract_scenarios(cli->arena, all);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(filters); i++) {
        r = check_filter(&filters[i], opt, all, e);
    }
    if (r < 0) {
        cli_hint(cli, "'cinch ack --list' lists all scenarios");
        return r;
    }
    const struct scenario **items = arena_array(cli->arena, all->len + 1, sizeof *items);
    ret->scenarios = (struct scenario_list) { .items = items };
    for (size_t i = 0; i < all->len; i++) {
        if (fits_all(opt, all->items[i])) {
            items[ret->scenarios.len++] = all->items[i];
        }
    }
    return ret->scenarios.len > 0 ? 0
                                  : ERR(e, ERR_USAGE, "no scenario matches all the given options");
}

int ack_scenarios_up_to(struct arena *a, enum capability_tier tier, struct scenario_list *ret,
                        struct err *e)
{
    int r = scenario_load_all(a, NULL, ret, e);
    while (r == 0 && ret->len > 0 && ret->items[ret->len - 1]->tier > tier) {
        ret->len--; /* the table goes tier by tier */
    }
    return r;
}

int ack_choose_contract(struct kit_opts *o, struct err *e)
{
    struct scenario_list *list = &o->scenarios;
    size_t n = 0;
    for (size_t i = 0; i < o->adapters_len; i++) {
        if (contract_applies(o->adapters[i].profile)) {
            return 0;
        }
    }
    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i]->contract == NULL) {
            list->items[n++] = list->items[i];
        }
    }
    list->len = n;
    return n > 0 ? 0
                 : ERR(e, ERR_USAGE,
                       "the selected scenarios need an adapter of the file contract: use "
                       "--adapter-exec or --adapter-image");
}

int ack_choose_timeout(const struct options *opt, nsec *ret, struct err *e)
{
    const char *variable = getenv("ACK_TIMEOUT");
    *ret = options_duration(opt, "timeout", 120 * NSEC_PER_SEC);
    bool given = options_given(opt, "timeout");
    bool said = !given && variable != NULL && variable[0] != '\0';
    if (said && !str_to_duration(str_of(variable), ret)) {
        return ERR(e, ERR_USAGE, "ACK_TIMEOUT: '%.80s' is not a duration; examples: 120, 2m",
                   variable);
    }
    return *ret >= SCENARIO_TIME_MIN
               ? 0
               : ERR(e, ERR_USAGE, "%s must be at least %lld s", said ? "ACK_TIMEOUT" : "--timeout",
                     (long long)(SCENARIO_TIME_MIN / NSEC_PER_SEC));
}

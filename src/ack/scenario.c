/* SPDX-License-Identifier: MIT
 *
 * Reading the table of scenarios.
 */
#include "ack/scenario.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "ack/check.h"
#include "ack/fixture.h"
#include "ack/scenario_builtin.h"
#include "base/file.h"
#include "config/settings.h"
#include "data/shape.h"
#include "data/yaml.h"
#include "replay/script.h"

enum {
    SCENARIOS_MAX = 1024,
    CAPABILITIES_MAX = 8,
    RUNS_MAX = 16,
    COPIES_MAX = 16,
    NAME_MAX_LEN = 80
};

#define SCENARIO_FILE_MAX (4u << 20)

static const struct shape signal_shape[] = {
    { "to", SHAPE_WORD, .words = "cinch|harness" },
    { "name", SHAPE_WORD, .words = "INT|TERM|KILL|STOP" },
    { "event", SHAPE_STRING },
    { "count", SHAPE_INT },
    { 0 },
};

static const struct shape run_shape[] = {
    { "name", SHAPE_STRING },
    { "task", SHAPE_ANY_OBJECT },
    { "script", SHAPE_ANY_OBJECT },
    { "options", SHAPE_STRINGS },
    { "resume", SHAPE_STRING },
    { "replay", SHAPE_STRING },
    { "signal", SHAPE_OBJECT, .inner = signal_shape },
    { "copies", SHAPE_INT },
    { "lingers", SHAPE_BOOL },
    { "expect", SHAPE_ANY },
    { "expect_script", SHAPE_ANY },
    { 0 },
};

/* What scenarios can have in common. */
static const struct shape base_shape[] = {
    { "git", SHAPE_BOOL },
    { "hermetic", SHAPE_BOOL },
    { "workspace", SHAPE_ANY_OBJECT },
    { "outside", SHAPE_ANY_OBJECT },
    { "task", SHAPE_ANY_OBJECT },
    { "script", SHAPE_ANY_OBJECT },
    { "live", SHAPE_ANY_OBJECT },
    { "timeout", SHAPE_DURATION },
    { 0 },
};

static const struct shape scenario_shape[] = {
    { "name", SHAPE_STRING },
    { "summary", SHAPE_STRING },
    { "capability", SHAPE_TEXTS },
    { "base", SHAPE_STRING },
    { "git", SHAPE_BOOL },
    { "hermetic", SHAPE_BOOL },
    { "workspace", SHAPE_ANY_OBJECT },
    { "outside", SHAPE_ANY_OBJECT },
    { "task", SHAPE_ANY_OBJECT },
    { "script", SHAPE_ANY_OBJECT },
    { "live", SHAPE_ANY_OBJECT },
    { "timeout", SHAPE_DURATION },
    { "options", SHAPE_STRINGS },
    { "signal", SHAPE_OBJECT, .inner = signal_shape },
    { "copies", SHAPE_INT },
    { "lingers", SHAPE_BOOL },
    { "runs", SHAPE_LIST, .inner = run_shape },
    { "expect", SHAPE_ANY },
    { "expect_script", SHAPE_ANY },
    { 0 },
};

static const struct shape file_shape[] = {
    { "bases", SHAPE_ANY_OBJECT },
    { "scenarios", SHAPE_LIST, .inner = scenario_shape },
    { 0 },
};

/* --- one scenario --- */

struct reading {
    struct arena *arena;
    const char *file;
    const struct json *bases;
};

static int complain(const struct reading *rd, const struct json *v, const char *why, struct err *e)
{
    char at[JSON_AT_LEN];
    return ERR(e, ERR_CONFIG, "%s: %s", json_at(rd->file, v, at), why);
}

/* The same, of something that has a name. */
static int complain_of(const struct reading *rd, const struct json *v, const char *why,
                       struct str name, struct err *e)
{
    char at[JSON_AT_LEN];
    return ERR(e, ERR_CONFIG, "%s: %s: '%.*s'", json_at(rd->file, v, at), why,
               STR_ARG(str_slice(name, 0, NAME_MAX_LEN)));
}

static struct scenario_signal read_signal(const struct json *v)
{
    static const struct {
        const char *name;
        int signo;
    } names[] = {
        { "INT", SIGINT }, { "TERM", SIGTERM }, { "KILL", SIGKILL }, { "STOP", SIGSTOP }
    };
    struct scenario_signal s = { .count = json_int(json_get(v, "count"), 1) };
    if (v == NULL) {
        return s;
    }
    bool harness = str_eqc(json_str(json_get(v, "to"), STR_EMPTY), "harness");
    s.to = harness ? SIGNAL_HARNESS : SIGNAL_CINCH;
    s.event = json_cstring(json_get(v, "event"), "model.call");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eqc(json_str(json_get(v, "name"), STR("INT")), names[i].name)) {
            s.signo = names[i].signo;
        }
    }
    return s;
}

static int read_run(const struct reading *rd, const struct json *v, struct scenario_run_spec *ret,
                    struct err *e)
{
    *ret = (struct scenario_run_spec) {
        .name = json_cstring(json_get(v, "name"), NULL),
        .task = json_get(v, "task"),
        .script = json_get(v, "script"),
        .options = json_get(v, "options"),
        .resume = json_cstring(json_get(v, "resume"), NULL),
        .replay = json_cstring(json_get(v, "replay"), NULL),
        .signal = read_signal(json_get(v, "signal")),
        .copies = json_int(json_get(v, "copies"), 1),
        .lingers = json_bool(json_get(v, "lingers"), false),
        .expect = json_get(v, "expect"),
        .expect_script = json_get(v, "expect_script"),
    };
    if (ret->copies < 1 || ret->copies > COPIES_MAX) {
        return complain(rd, v, "'copies' is a number from 1 to 16", e);
    }
    if (ret->signal.count < 1) {
        return complain(rd, json_get(v, "signal"), "'count' is a number from 1 on", e);
    }
    int r = checks_read(ret->expect, rd->file, e);
    return r < 0 ? r : checks_read(ret->expect_script, rd->file, e);
}

/* A run can only go on with one that was before it. */
static bool is_earlier(const struct scenario *s, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++) {
        if (s->runs[i].name != NULL && strcmp(s->runs[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static int check_names(const struct reading *rd, const struct json *v, const struct scenario *s,
                       size_t at, struct err *e)
{
    const struct scenario_run_spec *run = &s->runs[at];
    if ((run->resume != NULL && !is_earlier(s, at, run->resume)) ||
        (run->replay != NULL && !is_earlier(s, at, run->replay))) {
        return complain(rd, v, "'resume' and 'replay' name an earlier run", e);
    }
    if (run->name != NULL && is_earlier(s, at, run->name)) {
        return complain(rd, v, "there is another run of this name", e);
    }
    return 0;
}

static int read_runs(const struct reading *rd, const struct json *v, struct scenario *s,
                     struct err *e)
{
    const struct json *list = json_get(v, "runs");
    if (json_len(list) > RUNS_MAX) {
        return complain(rd, list, "these are too many runs", e);
    }
    s->runs_len = list == NULL ? 1 : json_len(list);
    s->runs = arena_array(rd->arena, s->runs_len, sizeof *s->runs);
    if (list == NULL) { /* the scenario is its only run; what is expected is looked at in the end */
        struct json *only = json_copy(rd->arena, v);
        json_remove(only, STR("name"));
        json_remove(only, STR("task"));
        json_remove(only, STR("script"));
        json_remove(only, STR("expect"));
        json_remove(only, STR("expect_script"));
        return read_run(rd, only, &s->runs[0], e);
    }
    if (s->runs_len == 0) {
        return complain(rd, list, "without runs nothing is tried", e);
    }
    static const char *const of_one[] = { "options", "signal", "copies", "lingers" };
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        if (json_get(v, of_one[i]) != NULL) {
            return complain(rd, json_get(v, of_one[i]),
                            "a scenario with 'runs' must set it in one of them", e);
        }
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->runs_len; i++) {
        r = read_run(rd, json_item(list, i), &s->runs[i], e);
        r = r < 0 ? r : check_names(rd, json_item(list, i), s, i, e);
    }
    return r;
}

/* A scenario that checks nothing would pass whatever happens, in a mode or in all. */
static bool is_checked(const struct scenario *s, bool script)
{
    size_t n = json_len(s->expect) + (script ? json_len(s->expect_script) : 0);
    for (size_t i = 0; i < s->runs_len; i++) {
        n += json_len(s->runs[i].expect) + (script ? json_len(s->runs[i].expect_script) : 0);
    }
    return n > 0;
}

static int read_capabilities(const struct reading *rd, const struct json *v, struct scenario *s,
                             struct err *e)
{
    const struct json *given = json_get(v, "capability");
    size_t len = json_is(given, JSON_ARRAY) ? given->array.len : given != NULL;
    if (len == 0 || len > CAPABILITIES_MAX) {
        return complain(rd, v, "a scenario has one capability, or a few", e);
    }
    s->capabilities = arena_array(rd->arena, len + 1, sizeof *s->capabilities);
    for (size_t i = 0; i < len; i++) {
        const struct json *one = json_is(given, JSON_ARRAY) ? given->array.items[i] : given;
        enum capability c;
        struct str name = json_str(one, STR_EMPTY);
        if (!capability_of(name, &c)) {
            return complain_of(rd, one, "there is no such capability", name, e);
        }
        s->capabilities[i] = capability_info(c)->name;
        s->tier = i == 0 ? capability_info(c)->tier : s->tier;
    }
    return 0;
}

/* It is the name of a directory, and stands in tables and reports. */
static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return s.len > 0 && s.len <= NAME_MAX_LEN;
}

/* The checks of the file contract are called so, and have the directory of that name
 * (ack/contract_scenarios.h). */
static bool is_reserved(struct str name)
{
    return str_eqc(name, "contract") || str_starts(name, STR("contract_"));
}

static int check_name(const struct reading *rd, const struct json *own, const char *name,
                      struct err *e)
{
    if (!is_name(str_of(name))) {
        return complain(rd, own, "a name is made of a-z, 0-9 and _, at most 80 of them", e);
    }
    return !is_reserved(str_of(name))
               ? 0
               : complain_of(rd, own, "the checks of the file contract have such names",
                             str_of(name), e);
}

static int check_timeout(const struct reading *rd, const struct json *v, struct err *e)
{
    bool enough = shape_duration(v, SCENARIO_TIME_MIN) >= SCENARIO_TIME_MIN;
    return enough ? 0 : complain(rd, v, "'timeout' is at least 2 s", e);
}

/* Adds what the placeholders of a text come to; `at` is where it stands. */
static int add_room(const struct reading *rd, struct str text, const struct json *at, int64_t *room,
                    struct err *e)
{
    int64_t n = fixture_fill_cost(text);
    *room += n;
    if (n < 0) {
        return complain(rd, at, "'%{fill:N}' has a number from 1 to 16777216", e);
    }
    return *room <= STAGE_FILL_MAX
               ? 0
               : complain(rd, at, "the placeholders of a scenario may expand to at most 16 MiB", e);
}

/* Recursion is bounded by the depth limit of the parser. */
static int check_room(const struct reading *rd, const struct json *v, int64_t *room, struct err *e)
{
    int r = json_is(v, JSON_STRING) ? add_room(rd, v->string, v, room, e) : 0;
    for (size_t i = 0; r == 0 && json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        r = check_room(rd, v->array.items[i], room, e);
    }
    for (size_t i = 0; r == 0 && json_is(v, JSON_OBJECT) && i < v->object.len; i++) {
        const struct json_member *m = &v->object.members[i];
        r = add_room(rd, m->key, m->value, room, e);
        r = r < 0 ? r : check_room(rd, m->value, room, e);
    }
    return r;
}

static int check_files(const struct reading *rd, const struct json *files, struct err *e)
{
    for (size_t i = 0; json_is(files, JSON_OBJECT) && i < files->object.len; i++) {
        const struct json_member *m = &files->object.members[i];
        if (!check_leads_down(m->key)) {
            return complain(rd, m->value, CHECK_LEADS_DOWN, e);
        }
        if (!json_is(m->value, JSON_STRING)) {
            return complain(rd, m->value, "the content of a file is a text", e);
        }
    }
    return 0;
}

/* What each run is asked, and by whom it is answered, must be good but for the placeholders. */
static int check_work(const struct reading *rd, const struct scenario *s, struct err *e)
{
    struct arena *a = rd->arena;
    struct json *live = json_merge(a, s->task, s->live);
    int r = s->script == NULL ? 0 : script_check(s->script, rd->file, e);
    for (size_t i = 0; r == 0 && i < s->runs_len; i++) {
        const struct scenario_run_spec *run = &s->runs[i];
        r = settings_check_task(a, json_merge(a, s->task, run->task), rd->file, e);
        r = r < 0 ? r : settings_check_task(a, json_merge(a, live, run->task), rd->file, e);
        r = r < 0 || run->script == NULL ? r : script_check(run->script, rd->file, e);
    }
    return r;
}

static int read_scenario(const struct reading *rd, const struct json *own, struct scenario **ret,
                         struct err *e)
{
    struct arena *a = rd->arena;
    const char *base = json_cstring(json_get(own, "base"), NULL);
    const struct json *under = base != NULL ? json_get(rd->bases, base) : NULL;
    if (base != NULL && under == NULL) {
        return complain_of(rd, own, "its base is not defined", str_of(base), e);
    }
    struct json *v = json_merge(a, under, own);
    if (json_get(own, "script") != NULL) { /* a conversation is told as a whole */
        json_setc(a, v, "script", json_get(own, "script"));
    }
    struct scenario *s = *ret = ARENA_NEW(a, struct scenario);
    *s = (struct scenario) {
        .name = json_cstring(json_get(v, "name"), NULL),
        .summary = json_cstring(json_get(v, "summary"), ""),
        .git = json_bool(json_get(v, "git"), true),
        .hermetic = json_bool(json_get(v, "hermetic"), false),
        .workspace = json_get(v, "workspace"),
        .outside = json_get(v, "outside"),
        .task = json_get(v, "task"),
        .script = json_get(v, "script"),
        .live = json_get(v, "live"),
        .timeout = shape_duration(json_get(v, "timeout"), 0),
        .expect = json_get(own, "expect"),
        .expect_script = json_get(own, "expect_script"),
        .file = rd->file,
    };
    if (s->name == NULL || s->task == NULL || s->summary[0] == '\0') {
        return complain(rd, own, "a scenario has a name, a summary and a task", e);
    }
    int r = check_name(rd, own, s->name, e);
    if (r < 0) {
        return r;
    }
    int64_t room = 0;
    r = read_capabilities(rd, v, s, e);
    r = r < 0 ? r : check_timeout(rd, json_get(v, "timeout"), e);
    r = r < 0 ? r : check_room(rd, v, &room, e);
    r = r < 0 ? r : check_files(rd, s->workspace, e);
    r = r < 0 ? r : check_files(rd, s->outside, e);
    r = r < 0 ? r : read_runs(rd, v, s, e);
    r = r < 0 ? r : check_work(rd, s, e);
    r = r < 0 ? r : checks_read(s->expect, rd->file, e);
    r = r < 0 ? r : checks_read(s->expect_script, rd->file, e);
    if (r == 0 && !is_checked(s, s->hermetic)) {
        r = complain(rd, own, "it expects nothing", e);
    }
    return r < 0 ? err_wrap(e, "scenario '%s'", s->name) : 0;
}

/* --- the table --- */

static int check_bases(const struct json *bases, const char *file, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && json_is(bases, JSON_OBJECT) && i < bases->object.len; i++) {
        const struct json_member *m = &bases->object.members[i];
        r = shape_check(m->value, base_shape, file, e);
        r = r < 0 ? err_wrap(e, "base '%.*s'", STR_ARG(m->key)) : 0;
    }
    return r;
}

int scenario_parse(struct arena *a, struct str text, const char *file, struct scenario_list *list,
                   struct err *e)
{
    struct json *root;
    int r = yaml_parse(a, text, file, NULL, &root, e);
    r = r < 0 ? r : shape_check(root, file_shape, file, e);
    r = r < 0 ? r : check_bases(json_get(root, "bases"), file, e);
    if (r < 0) {
        return r;
    }
    const struct json *items = json_get(root, "scenarios");
    struct reading rd = { .arena = a, .file = file, .bases = json_get(root, "bases") };
    if (list->len + json_len(items) > SCENARIOS_MAX) {
        return ERR(e, ERR_LIMIT, "%s: more than %d scenarios", file, SCENARIOS_MAX);
    }
    const struct scenario **all =
        arena_array(a, list->len + json_len(items) + 1, sizeof(struct scenario *));
    if (list->len > 0) {
        memcpy(all, list->items, list->len * sizeof *all);
    }
    list->items = all;
    for (size_t i = 0; i < json_len(items); i++) {
        struct scenario *s = NULL;
        r = read_scenario(&rd, json_item(items, i), &s, e);
        if (r < 0) {
            return r;
        }
        if (scenario_find(list, s->name) != NULL) {
            return complain_of(&rd, json_item(items, i), "there is another scenario of this name",
                               str_of(s->name), e);
        }
        all[list->len++] = s;
    }
    return 0;
}

/* Files say what belongs together, the list goes tier by tier. */
static void order_by_tier(struct arena *a, struct scenario_list *list)
{
    const struct scenario **sorted = arena_array(a, list->len + 1, sizeof(struct scenario *));
    size_t n = 0;
    for (int tier = TIER_BASIC; tier <= TIER_SPECIFIC; tier++) {
        for (size_t i = 0; i < list->len; i++) {
            if ((int)list->items[i]->tier == tier) {
                sorted[n++] = list->items[i];
            }
        }
    }
    list->items = sorted;
}

static int load_file(struct arena *a, const char *path, struct scenario_list *list, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SCENARIO_FILE_MAX);
    const char *name = arena_dup(a, str_of(path));
    struct err why = { 0 };
    int r = file_read(AT_FDCWD, path, SCENARIO_FILE_MAX, &text, &why);
    r = r < 0 ? r : scenario_parse(a, arena_str(a, buf_str(&text)), name, list, &why);
    return r < 0 ? ERR(e, file_fault(why.code), "%s", why.msg) : 0;
}

int scenario_load_all(struct arena *a, const char *const *files, struct scenario_list *ret,
                      struct err *e)
{
    *ret = (struct scenario_list) { 0 };
    int r = 0;
    for (size_t i = 0; r == 0 && i < builtin_scenarios_len; i++) {
        const struct builtin_scenarios *b = &builtin_scenarios[i];
        r = scenario_parse(a, str_n(b->text, b->len), b->file, ret, e);
    }
    for (; r == 0 && files != NULL && *files != NULL; files++) {
        r = load_file(a, *files, ret, e);
    }
    order_by_tier(a, ret);
    return r;
}

const struct scenario *scenario_find(const struct scenario_list *list, const char *name)
{
    for (size_t i = 0; i < list->len; i++) {
        if (strcmp(list->items[i]->name, name) == 0) {
            return list->items[i];
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * The parser of command lines. It walks argv once; each option of the tables has a slot that
 * collects what was given, checked when it is met, so that the first error names the first culprit.
 */
#include "cli/option.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"

/* What was typed is quoted in messages up to this length; the message must keep room for advice. */
#define QUOTED "%.80s"

struct slot {
    const struct option *option;
    int count;
    bool negated;
    const char **values; /* NULL-terminated */
    size_t cap;
    int64_t number; /* of the last value, for OPTION_INT and OPTION_DURATION */
};

struct options {
    struct slot *slots;
    size_t slot_count;
    const char **args;
    size_t arg_count;
    const char **rest;
    size_t used;
    const char **warnings; /* NULL-terminated */
    size_t warning_count;
};

struct parser {
    const struct option_spec *spec;
    struct arena *arena;
    int argc;
    const char *const *argv;
    int at;
    bool stopped; /* by OPTION_LAST: nothing more is checked */
    struct options *o;
};

static size_t table_len(const struct option *table)
{
    size_t n = 0;
    while (table != NULL && table[n].name != NULL) {
        n++;
    }
    return n;
}

static void add_slots(struct options *o, const struct option *table)
{
    for (; table != NULL && table->name != NULL; table++) {
        o->slots[o->slot_count++].option = table;
    }
}

static struct slot *find_long(const struct options *o, struct str name)
{
    for (size_t i = 0; i < o->slot_count; i++) {
        if (str_eqc(name, o->slots[i].option->name)) {
            return &o->slots[i];
        }
    }
    return NULL;
}

static struct slot *find_letter(const struct options *o, char letter)
{
    for (size_t i = 0; i < o->slot_count; i++) {
        if (o->slots[i].option->letter == letter) {
            return &o->slots[i];
        }
    }
    return NULL;
}

/* --- earlier forms --- */

/* `given` has its dashes. An option is warned about once. */
static void warn_deprecated(struct parser *p, const struct slot *s, const char *given)
{
    if (s->count == 0) {
        p->o->warnings[p->o->warning_count++] =
            arena_printf(p->arena, "%s is deprecated: use --%s", given, s->option->name);
    }
}

static struct slot *find_old_long(struct parser *p, struct str name)
{
    for (size_t i = 0; i < p->o->slot_count; i++) {
        struct slot *s = &p->o->slots[i];
        if (s->option->old_name != NULL && str_eqc(name, s->option->old_name)) {
            warn_deprecated(p, s, arena_printf(p->arena, "--%s", s->option->old_name));
            return s;
        }
    }
    return NULL;
}

static struct slot *find_old_letter(struct parser *p, char letter)
{
    for (size_t i = 0; i < p->o->slot_count; i++) {
        struct slot *s = &p->o->slots[i];
        if (s->option->old_letter == letter) {
            warn_deprecated(p, s, arena_printf(p->arena, "-%c", letter));
            return s;
        }
    }
    return NULL;
}

/* --- values --- */

static int check_enum(const struct option *o, const char *value, struct err *e)
{
    CLEANUP(buf) struct buf list = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; o->words[i] != NULL; i++) {
        if (strcmp(o->words[i], value) == 0) {
            return 0;
        }
        buf_addf(&list, "%s%s", i == 0 ? "" : ", ", o->words[i]);
    }
    return ERR(e, ERR_USAGE, "--%s: '" QUOTED "' is not one of %s", o->name, value, list.ptr);
}

static int check_int(const struct option *o, const char *value, int64_t *ret, struct err *e)
{
    if (!str_to_i64(str_of(value), ret)) {
        return ERR(e, ERR_USAGE, "--%s: '" QUOTED "' is not a whole number", o->name, value);
    }
    if ((o->min != 0 || o->max != 0) && (*ret < o->min || *ret > o->max)) {
        return ERR(e, ERR_USAGE,
                   "--%s: '" QUOTED "' is out of range; allowed: %" PRId64 " to %" PRId64, o->name,
                   value, o->min, o->max);
    }
    return 0;
}

static int check_duration(const struct option *o, const char *value, int64_t *ret, struct err *e)
{
    if (!str_to_duration(str_of(value), ret)) {
        return ERR(e, ERR_USAGE, "--%s: '" QUOTED "' is not a duration; examples: 600, 90s, 10m",
                   o->name, value);
    }
    if ((o->flags & OPTION_POSITIVE) != 0 && *ret == 0) {
        return ERR(e, ERR_USAGE, "--%s: must be more than zero; examples: 600, 90s, 10m", o->name);
    }
    return 0;
}

static int check_pair(const struct option *o, const char *value, struct err *e)
{
    struct str name;
    struct str content;
    bool has_value = option_pair(value, &name, &content);
    if (name.len == 0) {
        return ERR(e, ERR_USAGE, "--%s: '" QUOTED "' has no name; expected %s", o->name, value,
                   o->value);
    }
    if (!has_value && (o->flags & OPTION_BARE) == 0) {
        return ERR(e, ERR_USAGE, "--%s: '" QUOTED "' has no '='; expected %s", o->name, value,
                   o->value);
    }
    return 0;
}

static int check_value(struct slot *s, const char *value, struct err *e)
{
    const struct option *o = s->option;
    switch (o->kind) {
    case OPTION_INT:
        return check_int(o, value, &s->number, e);
    case OPTION_DURATION:
        return check_duration(o, value, &s->number, e);
    case OPTION_ENUM:
        return check_enum(o, value, e);
    case OPTION_PAIR:
        return check_pair(o, value, e);
    case OPTION_PATH:
        return value[0] != '\0' ? 0 : ERR(e, ERR_USAGE, "--%s: the path is empty", o->name);
    case OPTION_FLAG:
    case OPTION_STRING:
        return 0;
    }
    return ERR(e, ERR_BUG, "--%s: unknown kind of option", o->name);
}

static void keep_value(struct parser *p, struct slot *s, const char *value)
{
    size_t n = (size_t)s->count;
    if (n + 1 >= s->cap) {
        size_t cap = s->cap == 0 ? 4 : s->cap * 2;
        const char **grown = arena_array(p->arena, cap, sizeof *grown);
        if (n > 0) {
            memcpy(grown, s->values, n * sizeof *grown);
        }
        s->values = grown;
        s->cap = cap;
    }
    s->values[n] = value;
    s->values[n + 1] = NULL;
}

/* Records one use of an option; value is NULL for a flag. */
static int take(struct parser *p, struct slot *s, const char *value, bool negated, struct err *e)
{
    const struct option *o = s->option;
    if (s->count > 0 && (o->flags & OPTION_REPEAT) == 0) {
        return ERR(e, ERR_USAGE, "--%s is given twice", o->name);
    }
    if (value != NULL) {
        int r = check_value(s, value, e);
        if (r < 0) {
            return r;
        }
        keep_value(p, s, value);
    }
    if ((o->flags & OPTION_DEPRECATED) != 0 && s->count == 0) {
        p->o->warnings[p->o->warning_count++] =
            arena_printf(p->arena, "--%s is deprecated: %s", o->name, o->help);
    }
    s->negated = negated;
    s->count++;
    p->stopped = (o->flags & OPTION_LAST) != 0;
    return 0;
}

/* The argument after an option, if it can be its value. "-5" can: the message about a negative
 * number is then about the number. */
static const char *next_value(struct parser *p)
{
    if (p->at >= p->argc) {
        return NULL;
    }
    const char *s = p->argv[p->at];
    bool dash_word = s[0] == '-' && s[1] != '\0' && s[1] != ' ' && !(s[1] >= '0' && s[1] <= '9');
    if (dash_word) {
        return NULL;
    }
    p->at++;
    return s;
}

static int missing_value(const struct parser *p, const struct option *o, struct err *e)
{
    CLEANUP(buf) struct buf what = BUF_INIT(BUF_TEXT);
    option_placeholder(o, &what);
    if (p->at < p->argc && strcmp(p->argv[p->at], "--") != 0) {
        return ERR(e, ERR_USAGE,
                   "--%s needs a value:%s; to use '%.40s' as the value, write --%s=%.40s", o->name,
                   what.ptr, p->argv[p->at], o->name, p->argv[p->at]);
    }
    return ERR(e, ERR_USAGE, "--%s needs a value:%s", o->name, what.ptr);
}

/* --- did you mean --- */

const char *option_suggest(const char *given, const char *const *words)
{
    size_t len = strlen(given);
    size_t best = len < 3 ? 1 : len < 6 ? 2 : 3;
    const char *found = NULL;
    for (; *words != NULL; words++) {
        size_t d = str_distance(str_of(given), str_of(*words), best);
        if (len >= 3 && strncmp(*words, given, len) == 0) {
            d = d < 1 ? d : 1; /* the beginning of a word is as near as one slip */
        }
        /* A word must not be reached by replacing all of it ("-x" is not "-q"). */
        if (d < strlen(*words) && d <= best && (found == NULL || d < best)) {
            best = d;
            found = *words;
        }
    }
    return found;
}

static int unknown_long(struct parser *p, struct str name, struct err *e)
{
    const char **words = arena_array(p->arena, p->o->slot_count * 2 + 1, sizeof *words);
    size_t n = 0;
    for (size_t i = 0; i < p->o->slot_count; i++) {
        const struct option *o = p->o->slots[i].option;
        if ((o->flags & OPTION_HIDDEN) == 0) {
            words[n++] = o->name;
        }
        if ((o->flags & OPTION_NEGATABLE) != 0) {
            words[n++] = arena_printf(p->arena, "no-%s", o->name);
        }
    }
    const char *near = option_suggest(arena_dup(p->arena, name), words);
    if (near != NULL) {
        return ERR(e, ERR_USAGE, "unknown option '--%.*s'; did you mean --%s?",
                   (int)(name.len < 80 ? name.len : 80), name.ptr, near);
    }
    return ERR(e, ERR_USAGE, "unknown option '--%.*s'", (int)(name.len < 80 ? name.len : 80),
               name.ptr);
}

/* --- the walk --- */

static int take_long_value(struct parser *p, struct slot *s, const char *equals, struct err *e)
{
    if (s->option->kind == OPTION_FLAG) {
        return equals == NULL ? take(p, s, NULL, false, e)
                              : ERR(e, ERR_USAGE, "--%s takes no value", s->option->name);
    }
    const char *value = equals != NULL ? equals + 1 : next_value(p);
    return value != NULL ? take(p, s, value, false, e) : missing_value(p, s->option, e);
}

static int parse_long(struct parser *p, const char *arg, struct err *e)
{
    const char *equals = strchr(arg, '=');
    struct str name = equals != NULL ? str_n(arg, (size_t)(equals - arg)) : str_of(arg);
    struct slot *s = find_long(p->o, name);
    s = s != NULL ? s : find_old_long(p, name);
    if (s != NULL) {
        return take_long_value(p, s, equals, e);
    }
    if (str_starts(name, STR("no-"))) {
        s = find_long(p->o, str_slice(name, 3, name.len));
    }
    if (s == NULL || s->option->kind != OPTION_FLAG) {
        return unknown_long(p, name, e);
    }
    if ((s->option->flags & OPTION_NEGATABLE) == 0) {
        return ERR(e, ERR_USAGE, "unknown option '--no-%s'; omit --%s instead", s->option->name,
                   s->option->name);
    }
    if (equals != NULL) {
        return ERR(e, ERR_USAGE, "--no-%s takes no value", s->option->name);
    }
    return take(p, s, NULL, true, e);
}

/* -q, -qv, -t 5, -t5: all letters but the last must be flags. */
static int parse_short(struct parser *p, const char *arg, struct err *e)
{
    for (const char *c = arg + 1; *c != '\0' && !p->stopped; c++) {
        struct slot *s = find_letter(p->o, *c);
        s = s != NULL ? s : find_old_letter(p, *c);
        if (s == NULL) {
            return arg[2] == '\0'
                       ? ERR(e, ERR_USAGE, "unknown option '" QUOTED "'", arg)
                       : ERR(e, ERR_USAGE, "unknown option '-%c' in '" QUOTED "'", *c, arg);
        }
        if (s->option->kind != OPTION_FLAG) {
            const char *value = c[1] != '\0' ? c + 1 : next_value(p);
            return value != NULL ? take(p, s, value, false, e) : missing_value(p, s->option, e);
        }
        int r = take(p, s, NULL, false, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1] != '\0' && arg[1] != ' ' && arg[1] != '\t' && arg[1] != '\n';
}

static void add_args(struct parser *p, const char ***list, size_t *count, int n)
{
    if (*list == NULL) {
        *list = arena_array(p->arena, (size_t)p->argc + 1, sizeof **list);
    }
    for (; n > 0; n--) {
        (*list)[(*count)++] = p->argv[p->at++];
    }
}

static void take_rest(struct parser *p)
{
    struct options *o = p->o;
    size_t count = 0;
    if (p->spec->rest != NULL) {
        add_args(p, &o->rest, &count, p->argc - p->at);
    } else {
        add_args(p, &o->args, &o->arg_count, p->argc - p->at);
    }
}

static int walk(struct parser *p, struct err *e)
{
    while (p->at < p->argc && !p->stopped) {
        const char *arg = p->argv[p->at];
        if (!is_option(arg)) {
            if (p->spec->stop_early) {
                return 0;
            }
            add_args(p, &p->o->args, &p->o->arg_count, 1);
            continue;
        }
        p->at++;
        if (strcmp(arg, "--") == 0) {
            take_rest(p);
            return 0;
        }
        int r = arg[1] == '-' ? parse_long(p, arg + 2, e) : parse_short(p, arg, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int check_positionals(const struct parser *p, struct err *e)
{
    size_t given = p->o->arg_count;
    size_t taken = 0;
    const struct positional *pos = p->spec->positionals;
    for (; pos != NULL && pos->name != NULL; pos++) {
        if (taken >= given && !pos->optional) {
            return ERR(e, ERR_USAGE, "%s is missing", pos->name);
        }
        taken = pos->repeat ? given : taken + (taken < given);
    }
    if (taken < given) {
        return ERR(e, ERR_USAGE, "unexpected argument '" QUOTED "'%s", p->o->args[taken],
                   p->spec->rest != NULL
                       ? "; quote text that contains spaces, or put a command after --"
                       : "");
    }
    return 0;
}

int option_parse(const struct option_spec *spec, struct arena *a, int argc, const char *const *argv,
                 struct options **ret, struct err *e)
{
    struct options *o = ARENA_NEW(a, struct options);
    size_t n = table_len(spec->options) + table_len(spec->globals);
    o->slots = arena_array(a, n + 1, sizeof *o->slots);
    o->warnings = arena_array(a, n + 1, sizeof *o->warnings);
    o->args = arena_array(a, (size_t)argc + 1, sizeof *o->args);
    add_slots(o, spec->options);
    add_slots(o, spec->globals);

    struct parser p = { .spec = spec, .arena = a, .argc = argc, .argv = argv, .o = o };
    int r = walk(&p, e);
    if (r == 0 && !p.stopped && !spec->stop_early) {
        r = check_positionals(&p, e);
    }
    if (r < 0) {
        return r;
    }
    o->used = (size_t)p.at;
    *ret = o;
    return 0;
}

const char *const *options_warnings(const struct options *o)
{
    return o->warnings;
}

/* --- getters --- */

static const struct slot *get(const struct options *o, const char *name)
{
    const struct slot *s = find_long(o, str_of(name));
    if (s == NULL) {
        (void)fprintf(stderr, "cinch: bug: option '%s' is in no table\n", name);
        abort();
    }
    return s;
}

bool options_given(const struct options *o, const char *name)
{
    return get(o, name)->count > 0;
}

bool options_flag(const struct options *o, const char *name, bool otherwise)
{
    const struct slot *s = get(o, name);
    assert(s->option->kind == OPTION_FLAG);
    return s->count == 0 ? otherwise : !s->negated;
}

int options_count(const struct options *o, const char *name)
{
    const struct slot *s = get(o, name);
    assert(s->option->kind == OPTION_FLAG);
    return s->count;
}

const char *options_string(const struct options *o, const char *name, const char *otherwise)
{
    const struct slot *s = get(o, name);
    assert(s->option->kind != OPTION_FLAG);
    return s->count == 0 ? otherwise : s->values[s->count - 1];
}

int64_t options_int(const struct options *o, const char *name, int64_t otherwise)
{
    const struct slot *s = get(o, name);
    assert(s->option->kind == OPTION_INT);
    return s->count == 0 ? otherwise : s->number;
}

nsec options_duration(const struct options *o, const char *name, nsec otherwise)
{
    const struct slot *s = get(o, name);
    assert(s->option->kind == OPTION_DURATION);
    return s->count == 0 ? otherwise : s->number;
}

const char *const *options_list(const struct options *o, const char *name)
{
    static const char *const none[] = { NULL };
    const struct slot *s = get(o, name);
    assert(s->option->kind != OPTION_FLAG);
    return s->count == 0 ? none : s->values;
}

size_t options_arg_count(const struct options *o)
{
    return o->arg_count;
}

const char *options_arg(const struct options *o, size_t i)
{
    return i < o->arg_count ? o->args[i] : NULL;
}

const char *const *options_args(const struct options *o)
{
    return o->args;
}

const char *const *options_rest(const struct options *o)
{
    return o->rest;
}

size_t options_used(const struct options *o)
{
    return o->used;
}

/* --- small pieces --- */

bool option_pair(const char *text, struct str *ret_name, struct str *ret_value)
{
    const char *equals = strchr(text, '=');
    *ret_name = equals != NULL ? str_n(text, (size_t)(equals - text)) : str_of(text);
    *ret_value = equals != NULL ? str_of(equals + 1) : STR_EMPTY;
    return equals != NULL;
}

const char *option_text(const struct option *o, char out[OPTION_TEXT_LEN])
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (o->letter != 0) {
        buf_addf(&text, "-%c, ", o->letter);
    }
    buf_addf(&text, "--%s%s", (o->flags & OPTION_NEGATABLE) != 0 ? "[no-]" : "", o->name);
    option_placeholder(o, &text);
    (void)snprintf(out, OPTION_TEXT_LEN, "%s", text.ptr);
    return out;
}

void option_placeholder(const struct option *o, struct buf *out)
{
    if (o->value != NULL) {
        buf_addf(out, " %s", o->value);
        return;
    }
    for (size_t i = 0; o->kind == OPTION_ENUM && o->words[i] != NULL; i++) {
        buf_addf(out, "%c%s", i == 0 ? ' ' : '|', o->words[i]);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Checks of what the record tells: events, the transcript, the session, and whether two runs are
 * alike.
 */
#include <string.h>

#include "ack/check_priv.h"
#include "validate/validator.h"

static bool is_text(const struct json *v, const char *key, const struct json *want)
{
    return want == NULL || json_equal(want, json_get(v, key));
}

/* The items of a list that fit name and `where`; each must fit `each`. */
static void check_items(const struct check_scene *s, const struct json *want,
                        const struct json *list, const char *of,
                        bool (*fits)(const struct json *want, const struct json *v))
{
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *v = json_item(list, i);
        if (!fits(want, v) || !where_holds(s->arena, json_get(want, "where"), v, NULL)) {
            continue;
        }
        n++;
        const char *why;
        if (!where_holds(s->arena, json_get(want, "each"), v, &why)) {
            finding(s->findings, "%s, the %zu.: %s", of, n, why);
        }
    }
    check_count(s, want, of, n);
}

static bool event_fits(const struct json *want, const struct json *v)
{
    return is_text(v, "event", json_get(want, "name"));
}

void check_event(const struct check_scene *s, const struct json *want)
{
    struct str name = json_str(json_get(want, "name"), STR("of any name"));
    check_items(s, want, s->run->events, arena_printf(s->arena, "event %.*s", STR_ARG(name)),
                event_fits);
}

static bool entry_fits(const struct json *want, const struct json *v)
{
    return is_text(v, "entry_type", json_get(want, "type")) &&
           is_text(v, "source", json_get(want, "source"));
}

void check_entry(const struct check_scene *s, const struct json *want)
{
    struct str type = json_str(json_get(want, "type"), STR("of any type"));
    check_items(s, want, s->run->transcript,
                arena_printf(s->arena, "transcript entry %.*s", STR_ARG(type)), entry_fits);
}

static size_t first_entry(const struct check_scene *s, const struct json *want)
{
    size_t i = 0;
    while (i < json_len(s->run->transcript)) {
        const struct json *v = json_item(s->run->transcript, i);
        if (entry_fits(want, v) && where_holds(s->arena, json_get(want, "where"), v, NULL)) {
            break;
        }
        i++;
    }
    return i;
}

void check_order(const struct check_scene *s, const struct json *want)
{
    size_t before = 0;
    for (size_t i = 0; i < json_len(want); i++) {
        size_t at = first_entry(s, json_item(want, i));
        if (at == json_len(s->run->transcript)) {
            finding(s->findings, "order: the transcript has no entry like the %zu. of the list",
                    i + 1);
        } else if (i > 0 && at <= before) {
            finding(s->findings, "order: entry %zu of the transcript should come after entry %zu",
                    at + 1, before + 1);
        }
        before = at;
    }
}

void check_session(const struct check_scene *s, const struct json *want)
{
    struct str slice = json_str(json_get(want, "slice"), STR_EMPTY);
    const struct json *items = json_find(s->run->session, slice);
    const char *of = arena_printf(s->arena, "session, slice %.*s", STR_ARG(slice));
    const char *why;
    const struct json *any = json_get(want, "any");
    const struct json *each = json_get(want, "each");
    check_count(s, want, of, json_len(items));
    for (size_t i = 0; each != NULL && i < json_len(items); i++) {
        if (!matcher_holds(s->arena, each, json_item(items, i), &why)) {
            finding(s->findings, "%s, item %zu: %s", of, i, why);
        }
    }
    size_t at = 0;
    while (any != NULL && at < json_len(items) &&
           !matcher_holds(s->arena, any, json_item(items, at), &why)) {
        at++;
    }
    if (any != NULL && at == json_len(items)) {
        finding(s->findings, "%s: no item fits", of);
    }
}

static const struct json *place_in_event(const struct check_scene *s, const struct json *want)
{
    for (size_t i = 0; i < json_len(s->run->events); i++) {
        const struct json *v = json_item(s->run->events, i);
        if (event_fits(want, v)) {
            return json_pointer(v, json_str(json_get(want, "at"), STR_EMPTY));
        }
    }
    return NULL;
}

void check_link(const struct check_scene *s, const struct json *want)
{
    const struct json *from = place_in_event(s, json_get(want, "from"));
    const struct json *to = place_in_event(s, json_get(want, "to"));
    if (from == NULL || to == NULL || !json_equal(from, to)) {
        finding(s->findings, "link: '%s' and '%s' are not the same", json_cstring(from, "nothing"),
                json_cstring(to, "nothing"));
    }
}

/* --- two runs --- */

static const struct evidence *run_named(const struct check_scene *s, const struct json *name)
{
    for (size_t i = 0; i < s->runs_len; i++) {
        if (s->names[i] != NULL && str_eqc(json_str(name, STR_EMPTY), s->names[i])) {
            return &s->runs[i];
        }
    }
    return NULL;
}

/* What two runs of the same traffic have in common: no times, no ids, no signs of how quick the
 * machine was. An outline is a list; members are those of the record. */
static struct json *pick(struct arena *a, const struct json *v, const char *const *keys)
{
    struct json *some = json_object(a);
    for (; *keys != NULL; keys++) {
        struct json *m = json_get(v, *keys);
        if (m != NULL && !json_is(m, JSON_NULL)) {
            json_setc(a, some, *keys, m);
        }
    }
    return some;
}

static struct json *outline_events(struct arena *a, const struct evidence *ev)
{
    static const char *const keys[] = { "name",   "params", "result", "success", "failure",
                                        "policy", "tools",  "status", "reason",  NULL };
    static const char *const compared[] = { "PromptRendered", "RenderedTools", "ToolInvoked",
                                            "PromptExecuted", "model.call",    "run.finished" };
    struct json *list = json_array(a);
    for (size_t i = 0; i < json_len(ev->events); i++) {
        const struct json *v = json_item(ev->events, i);
        const char *name = json_cstring(json_get(v, "event"), "");
        /* Auxiliary requests are sent beside the conversation, so their order differs. */
        bool side = json_str(json_pointer(v, STR("/context/side")), STR_EMPTY).len > 0;
        for (size_t k = 0; !side && k < ARRAY_LEN(compared); k++) {
            if (strcmp(compared[k], name) == 0) {
                struct json *item = pick(a, json_get(v, "context"), keys);
                json_setc(a, item, "event", json_get(v, "event"));
                json_push(a, list, item);
            }
        }
    }
    return list;
}

static struct json *outline_transcript(struct arena *a, const struct evidence *ev)
{
    static const char *const keys[] = { "tool_name", "text", "input", "output", NULL };
    struct json *list = json_array(a);
    for (size_t i = 0; i < json_len(ev->transcript); i++) {
        const struct json *v = json_item(ev->transcript, i);
        struct str type = json_str(json_get(v, "entry_type"), STR_EMPTY);
        if (!str_eqc(type, "system_event") && !str_eqc(type, "token_usage")) {
            struct json *item = pick(a, json_get(v, "detail"), keys);
            json_setc(a, item, "entry_type", json_string(a, type));
            json_push(a, list, item);
        }
    }
    return list;
}

static struct json *outline_patch(struct arena *a, const struct evidence *ev)
{
    struct json *list = json_array(a);
    for (struct str rest = ev->patch; rest.len > 0;) {
        json_push(a, list, json_string(a, str_split(&rest, '\n')));
    }
    return list;
}

static struct json *outline_text(struct arena *a, const struct evidence *ev)
{
    struct json *list = json_array(a);
    json_push(a, list, json_string(a, json_str(json_get(ev->result, "text"), STR_EMPTY)));
    return list;
}

static const struct outline {
    const char *what;
    struct json *(*draw)(struct arena *a, const struct evidence *ev);
} outlines[] = {
    { "events", outline_events },
    { "transcript", outline_transcript },
    { "patch", outline_patch },
    { "text", outline_text },
};

static const struct outline *outline_find(struct str what)
{
    for (size_t i = 0; i < sizeof outlines / sizeof *outlines; i++) {
        if (str_eqc(what, outlines[i].what)) {
            return &outlines[i];
        }
    }
    return NULL;
}

bool check_same_knows(struct str what)
{
    return outline_find(what) != NULL;
}

/* The first item that is not the same. */
static void compare(const struct check_scene *s, const struct outline *o,
                    const struct evidence *first, const struct evidence *other)
{
    const struct json *one = o->draw(s->arena, first);
    const struct json *two = o->draw(s->arena, other);
    for (size_t i = 0; i < json_len(one) || i < json_len(two); i++) {
        const struct json *a = json_item(one, i);
        const struct json *b = json_item(two, i);
        if (a == NULL || b == NULL || !json_equal(a, b)) {
            finding(s->findings, "same: the %s of two runs differ: %s and %s", o->what,
                    matcher_shown(s->arena, a), matcher_shown(s->arena, b));
            return;
        }
    }
}

void check_same(const struct check_scene *s, const struct json *want)
{
    const struct json *runs = json_get(want, "runs");
    const struct json *what = json_get(want, "what");
    const struct evidence *first = run_named(s, json_item(runs, 0));
    for (size_t i = 1; i < json_len(runs); i++) {
        const struct evidence *other = run_named(s, json_item(runs, i));
        if (first == NULL || other == NULL) {
            finding(s->findings, "same: a run that it names was not made");
            return;
        }
        for (size_t k = 0; k < json_len(what); k++) {
            compare(s, outline_find(json_str(json_item(what, k), STR_EMPTY)), first, other);
        }
    }
}

/* --- the validator --- */

void check_transcript(const struct check_scene *s, const struct json *want)
{
    struct validator_opts opts = { .adapter = s->adapter };
    for (size_t i = 0; i < json_len(want); i++) {
        enum validator_check check;
        if (validator_check_find(json_str(json_item(want, i), STR_EMPTY), &check)) {
            opts.checks |= 1u << check;
        }
    }
    struct validator *o;
    struct err e = { 0 };
    if (validator_look(s->run->dir, &opts, &o, &e) < 0) {
        finding(s->findings, "transcript: %s", e.msg);
        return;
    }
    const struct validator_report *r = validator_report(o);
    for (size_t i = 0; i < r->n_findings; i++) {
        const struct validator_finding *f = &r->findings[i];
        finding(s->findings, "transcript, %s, line %zu: %s", validator_check_word(f->check),
                f->line, f->sentence);
    }
    if (r->summary.entries == 0) {
        finding(s->findings, "transcript: it has no entry");
    }
    validator_free(o);
}

/* SPDX-License-Identifier: MIT
 *
 * Rules of checks: what their keys may say together. A check of which a half is ignored, or that
 * could not fail, looks like a proof and is none.
 */
#include "ack/check_priv.h"

int check_refuse(const struct json *v, const char *file, const char *why, struct err *e)
{
    char at[JSON_AT_LEN];
    return ERR(e, ERR_CONFIG, "%s: %s", json_at(file, v, at), why);
}

int check_refuse_idle(const struct json *m, const char *file, struct err *e)
{
    return matcher_holds_for_counts(m)
               ? check_refuse(m, file, "this holds for every number from 0 on", e)
               : 0;
}

/* "As many as there are" is a word where something is said of each of them. */
int rule_counted(const struct json *want, const char *file, struct err *e)
{
    const struct json *count = json_get(want, "count");
    bool more = json_get(want, "each") != NULL || json_get(want, "any") != NULL;
    return count == NULL || more ? 0 : check_refuse_idle(count, file, e);
}

/* Which requests are meant is said in one way; without a word, some request must fit. */
int rule_request(const struct json *want, const char *file, struct err *e)
{
    static const char *const ways[] = { "number", "last", "any", "none", "count" };
    const struct json *said = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct json *v = json_get(want, ways[i]);
        if (v != NULL && said != NULL) {
            return check_refuse(v, file,
                                "one of 'number', 'last', 'any', 'none' and 'count' is enough: "
                                "another would be ignored",
                                e);
        }
        if (json_is(v, JSON_BOOL) && !json_bool(v, true)) {
            return check_refuse(v, file, "'last', 'any' and 'none' are true, or are left out", e);
        }
        said = v != NULL ? v : said;
    }
    const struct json *number = json_get(want, "number");
    if (number != NULL && json_int(number, 0) < 1) {
        return check_refuse(number, file, "requests are counted from 1", e);
    }
    const struct json *count = json_get(want, "count");
    return count == NULL ? 0 : check_refuse_idle(count, file, e);
}

/* No patch has a path that leads out of the workspace: to lack it is no achievement. */
static int rule_paths(const struct json *list, const char *file, struct err *e)
{
    if (list != NULL && json_len(list) == 0) {
        return check_refuse(list, file, "an empty list of paths holds always", e);
    }
    for (size_t i = 0; i < json_len(list); i++) {
        if (!check_leads_down(json_str(json_item(list, i), STR_EMPTY))) {
            return check_refuse(json_item(list, i), file, CHECK_LEADS_DOWN, e);
        }
    }
    return 0;
}

int rule_patch(const struct json *want, const char *file, struct err *e)
{
    const struct json *contains = json_get(want, "contains");
    if (contains != NULL && json_len(contains) == 0) {
        return check_refuse(contains, file, "every patch contains an empty text", e);
    }
    int r = rule_paths(json_get(want, "has"), file, e);
    return r < 0 ? r : rule_paths(json_get(want, "lacks"), file, e);
}

static int rule_place(const struct json *place, const char *file, struct err *e)
{
    bool named = json_len(json_get(place, "name")) > 0;
    bool pointed = str_starts(json_str(json_get(place, "at"), STR_EMPTY), STR("/"));
    return named && pointed ? 0
                            : check_refuse(place, file,
                                           "a place is the 'name' of an event, and a JSON pointer "
                                           "'at' which it is",
                                           e);
}

int rule_link(const struct json *want, const char *file, struct err *e)
{
    const struct json *from = json_get(want, "from");
    const struct json *to = json_get(want, "to");
    int r = rule_place(from, file, e);
    r = r < 0 ? r : rule_place(to, file, e);
    return r < 0 || !json_equal(from, to)
               ? r
               : check_refuse(to, file, "what is linked are two places: these are one", e);
}

static bool stands_before(const struct json *list, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (json_equal(json_item(list, i), json_item(list, at))) {
            return true;
        }
    }
    return false;
}

int rule_same(const struct json *want, const char *file, struct err *e)
{
    const struct json *runs = json_get(want, "runs");
    const struct json *what = json_get(want, "what");
    if (json_len(runs) < 2) {
        return check_refuse(runs, file, "it takes two runs to be the same", e);
    }
    for (size_t i = 1; i < json_len(runs); i++) {
        if (stands_before(runs, i)) {
            return check_refuse(json_item(runs, i), file, "a run is always the same as itself", e);
        }
    }
    static const char known[] = "what can be the same: events, transcript, patch, text";
    for (size_t i = 0; i < json_len(what); i++) {
        if (!check_same_knows(json_str(json_item(what, i), STR_EMPTY))) {
            return check_refuse(json_item(what, i), file, known, e);
        }
    }
    return json_len(what) > 0 ? 0 : check_refuse(what, file, known, e);
}

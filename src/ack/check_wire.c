/* SPDX-License-Identifier: MIT
 *
 * Checks of what went over the wire, and of what the agent changed.
 */
#include <string.h>

#include "ack/check_priv.h"

static bool is_talk(const struct evidence_request *q)
{
    return q->side.len == 0;
}

static bool request_fits(const struct check_scene *s, const struct json *want,
                         const struct evidence_request *q, const char **why)
{
    const struct json *text = json_get(want, "text");
    return (text == NULL || matcher_holds(s->arena, text, json_string(s->arena, q->text), why)) &&
           where_holds(s->arena, json_get(want, "where"), q->body, why);
}

/* One request of the conversation, by its place: from 1, or the last. */
static void check_one_request(const struct check_scene *s, const struct json *want)
{
    int64_t number = json_int(json_get(want, "number"), 0);
    const struct evidence_request *found = NULL;
    int64_t n = 0;
    for (size_t i = 0; i < s->run->requests_len; i++) {
        const struct evidence_request *q = &s->run->requests[i];
        if (is_talk(q) && (++n == number || number == 0)) {
            found = q;
        }
    }
    const char *why;
    if (n == 0) {
        finding(s->findings, "request: there was none");
    } else if (found == NULL || n < number) {
        finding(s->findings, "request %lld: there were only %lld", (long long)number, (long long)n);
    } else if (!request_fits(s, want, found, &why)) {
        finding(s->findings, "request %lld: %s", (long long)(number == 0 ? n : number), why);
    }
}

void check_request(const struct check_scene *s, const struct json *want)
{
    bool none = json_bool(json_get(want, "none"), false);
    if (json_get(want, "number") != NULL || json_bool(json_get(want, "last"), false)) {
        check_one_request(s, want);
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < s->run->requests_len; i++) {
        const char *why;
        n += is_talk(&s->run->requests[i]) && request_fits(s, want, &s->run->requests[i], &why);
    }
    if (none && n > 0) {
        finding(s->findings, "request: %zu fit, and none should", n);
    } else if (!none) {
        check_count(s, want, "requests that fit", n);
    }
}

static size_t answers(const struct evidence *ev)
{
    size_t n = 0;
    for (size_t i = 0; i < json_len(ev->events); i++) {
        const struct json *c = json_get(json_item(ev->events, i), "context");
        bool call =
            str_eqc(json_str(json_get(json_item(ev->events, i), "event"), STR_EMPTY), "model.call");
        n += call && json_int(json_get(c, "status"), 0) == 200 &&
             json_is(json_get(c, "side"), JSON_NULL);
    }
    return n;
}

/* Every answer used so much; the sums of wire and harness are that, times the answers. */
void check_usage(const struct check_scene *s, const struct json *want)
{
    const struct json *usage = json_pointer(s->run->metrics, STR("/ext/usage"));
    size_t n = answers(s->run);
    if (n == 0) {
        finding(s->findings, "usage: the model never answered");
    }
    for (size_t i = 0; i < want->object.len; i++) {
        const struct json_member *m = &want->object.members[i];
        int64_t sum = json_int(m->value, 0) * (int64_t)n;
        int64_t wire = json_int(json_find(json_get(usage, "wire"), m->key), -1);
        const struct json *told = json_find(json_get(usage, "reported"), m->key);
        if (wire != sum) {
            finding(s->findings, "usage, %.*s: %zu answers used %lld, counted were %lld",
                    STR_ARG(m->key), n, (long long)sum, (long long)wire);
        }
        if (!json_is(told, JSON_INT)) {
            finding(s->findings, "usage, %.*s: the harness does not tell", STR_ARG(m->key));
        } else if (json_int(told, 0) != wire) {
            finding(s->findings, "usage, %.*s: the wire had %lld, the harness says %lld",
                    STR_ARG(m->key), (long long)wire, (long long)json_int(told, 0));
        }
    }
}

/* --- the patch --- */

static bool patch_has(const struct check_scene *s, const struct json *path)
{
    struct str p = json_str(path, STR_EMPTY);
    struct str patch = s->run->patch;
    const char *added = arena_printf(s->arena, "\n+++ b/%.*s\n", STR_ARG(p));
    const char *head = arena_printf(s->arena, " b/%.*s\n", STR_ARG(p));
    return str_find(patch, str_of(added)) < patch.len || str_find(patch, str_of(head)) < patch.len;
}

void check_patch(const struct check_scene *s, const struct json *want)
{
    const struct json *has = json_get(want, "has");
    const struct json *lacks = json_get(want, "lacks");
    const struct json *contains = json_get(want, "contains");
    for (size_t i = 0; i < json_len(has); i++) {
        if (!patch_has(s, json_item(has, i))) {
            finding(s->findings, "patch: %s was not changed",
                    json_cstring(json_item(has, i), "(no name)"));
        }
    }
    for (size_t i = 0; i < json_len(lacks); i++) {
        if (patch_has(s, json_item(lacks, i))) {
            finding(s->findings, "patch: %s was changed",
                    json_cstring(json_item(lacks, i), "(no name)"));
        }
    }
    struct str part = json_str(contains, STR_EMPTY);
    if (part.len > 0 && str_find(s->run->patch, part) == s->run->patch.len) {
        finding(s->findings, "patch: it does not contain '%.*s'", STR_ARG(part));
    }
    const struct json *empty = json_get(want, "empty");
    if (empty != NULL && json_bool(empty, true) != (s->run->patch.len == 0)) {
        finding(s->findings, "patch: it is %sempty", s->run->patch.len == 0 ? "" : "not ");
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Looking into request bodies.
 */
#include "gateway/scan.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/cursor.h"

static bool note(struct cursor *c, struct scan_place *place)
{
    if (place->to != 0) {
        return false; /* twice: whoever reads it next may take the other one */
    }
    place->from = c->at;
    if (!cursor_skip_value(c)) {
        return false;
    }
    place->to = c->at;
    return true;
}

static struct str text_at(const struct cursor *c, const struct scan_place *p)
{
    return str_slice(c->text, p->from, p->to);
}

static bool note_max(struct cursor *c, struct scan *s)
{
    int64_t n;
    if (!note(c, &s->max_at)) {
        return false;
    }
    s->max_output = str_to_i64(text_at(c, &s->max_at), &n) && n > 0 ? n : 0;
    return true;
}

static bool note_choices(struct cursor *c, struct scan *s)
{
    size_t from = c->at;
    int64_t n;
    if (!cursor_skip_value(c)) {
        return false;
    }
    struct str value = str_slice(c->text, from, c->at);
    if (str_eqc(value, "null")) {
        return true;
    }
    if (!str_to_i64(value, &n) || n <= 0) {
        s->choices = -1;
    } else if (s->choices >= 0 && n > s->choices) {
        s->choices = n;
    }
    return true;
}

/* Another spelling of a name that matters. */
static bool is_lookalike(struct str key, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strlen(*names) == key.len && strncasecmp(key.ptr, *names, key.len) == 0) {
            return memcmp(key.ptr, *names, key.len) != 0;
        }
    }
    return false;
}

static bool on_config(struct cursor *c, struct str key, void *arg)
{
    static const char *const names[] = { "maxOutputTokens", "max_output_tokens", "candidateCount",
                                         "candidate_count", NULL };
    struct scan *s = arg;
    if (is_lookalike(key, names)) {
        return false;
    }
    if (str_eqc(key, "maxOutputTokens") || str_eqc(key, "max_output_tokens")) {
        return note_max(c, s);
    }
    bool choices = str_eqc(key, "candidateCount") || str_eqc(key, "candidate_count");
    return choices ? note_choices(c, s) : cursor_skip_value(c);
}

static bool on_stream_option(struct cursor *c, struct str key, void *arg)
{
    struct scan *s = arg;
    if (!str_eqc(key, "include_usage")) {
        return cursor_skip_value(c);
    }
    bool good = note(c, &s->include_usage_at);
    s->include_usage = good && str_eqc(text_at(c, &s->include_usage_at), "true");
    return good;
}

/* Anything but an explicit no may be taken for a yes. */
static bool note_wish(struct cursor *c, bool *ret)
{
    size_t from = c->at;
    bool good = cursor_skip_value(c);
    struct str value = str_slice(c->text, from, c->at);
    *ret = *ret || (!str_eqc(value, "false") && !str_eqc(value, "null"));
    return good;
}

static bool is_term(struct str key)
{
    return str_eqc(key, "service_tier") || str_eqc(key, "speed") || str_eqc(key, "inference_geo");
}

/* Words that change the price. They are short; what is written with escapes is no such word. */
static bool note_terms(struct cursor *c, struct str key, struct price_terms *t)
{
    struct cursor value = *c;
    struct str word;
    bool plain = c->text.ptr[c->at] == '"' && cursor_plain_string(&value, &word);
    if (plain && str_eqc(key, "service_tier")) {
        t->tier = price_tier_of(word);
    } else if (plain && str_eqc(key, "speed")) {
        t->fast = str_eqc(word, "fast");
    } else if (plain) {
        t->us = str_eqc(word, "us");
    }
    return cursor_skip_value(c);
}

/* At '[': moves behind the list, and finds its ends on the way, which costs nothing. */
static bool note_items(struct cursor *c, struct scan *s)
{
    c->at++;
    if (cursor_peek(c) == ']') {
        c->at++;
        return true;
    }
    for (size_t n = 0;; n++) {
        s->before_from = s->last_from;
        if (cursor_peek(c) < 0) {
            return false;
        }
        s->last_from = c->at;
        if (!cursor_skip_value(c)) {
            return false;
        }
        s->first_to = n < 2 ? c->at : s->first_to;
        int next = cursor_peek(c);
        c->at++;
        if (next != ',') {
            return next == ']';
        }
    }
}

static bool note_talk(struct cursor *c, struct scan *s)
{
    size_t from = c->at;
    s->first_to = s->before_from = s->last_from = from;
    bool good = c->text.ptr[from] == '[' ? note_items(c, s) : cursor_skip_value(c);
    s->talk_at = (struct scan_place) { from, c->at };
    return good;
}

static bool note_tools(struct cursor *c, struct scan *s)
{
    struct cursor inside = { c->text, c->at + 1 };
    s->tools = c->text.ptr[c->at] == '[' && cursor_peek(&inside) != ']';
    return cursor_skip_value(c);
}

/* Its members, too; null and other values have none. */
static bool note_object(struct cursor *c, struct scan_place *place, cursor_member_fn *fn,
                        struct scan *s)
{
    struct cursor inside = *c;
    return note(c, place) &&
           (inside.text.ptr[inside.at] != '{' || cursor_each_member(&inside, fn, s));
}

static bool note_flag(struct cursor *c, bool *ret)
{
    size_t from = c->at;
    bool good = cursor_skip_value(c);
    *ret = good && str_eqc(str_slice(c->text, from, c->at), "true");
    return good;
}

static bool on_member(struct cursor *c, struct str key, void *arg)
{
    struct scan *s = arg;
    static const char *const limits[] = { "max_tokens", "max_completion_tokens",
                                          "max_output_tokens" };
    if (str_eqc(key, "model")) {
        struct cursor value = *c;
        bool is_text = cursor_plain_string(&value, &s->model);
        return note(c, &s->model_at) && is_text;
    }
    if (str_eqc(key, "stream")) {
        return note_flag(c, &s->stream);
    }
    if (str_eqc(key, "n") || str_eqc(key, "best_of")) {
        return note_choices(c, s);
    }
    if (str_eqc(key, "background")) {
        return note_wish(c, &s->background);
    }
    if (is_term(key)) {
        return note_terms(c, key, &s->terms);
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (str_eqc(key, limits[i])) {
            return note_max(c, s);
        }
    }
    if (str_eqc(key, "messages") || str_eqc(key, "input") || str_eqc(key, "contents")) {
        return note_talk(c, s);
    }
    if (str_eqc(key, "tools")) {
        return note_tools(c, s);
    }
    if (str_eqc(key, "generationConfig") || str_eqc(key, "generation_config")) {
        return note_object(c, &s->config_at, on_config, s);
    }
    if (str_eqc(key, "stream_options")) {
        return note_object(c, &s->options_at, on_stream_option, s);
    }
    return cursor_skip_value(c);
}

static bool has_capital(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] >= 'A' && key.ptr[i] <= 'Z') {
            return true;
        }
    }
    return false;
}

static bool on_any_member(struct cursor *c, struct str key, void *arg)
{
    static const char *const names[] = {
        "model",
        "stream",
        "n",
        "best_of",
        "background",
        "prediction",
        "service_tier",
        "speed",
        "inference_geo",
        "max_tokens",
        "messages",
        "max_completion_tokens",
        "input",
        "contents",
        "max_output_tokens",
        "tools",
        "stream_options",
        "generationConfig",
        "generation_config",
        "plugins",
        "web_search_options",
        NULL,
    };
    struct scan *s = arg;
    bool odd = has_capital(key) ? is_lookalike(key, names) : str_eqc(key, "generationconfig");
    if (odd) {
        return false;
    }
    return str_eqc(key, "prediction") ? note_wish(c, &s->prediction) : on_member(c, key, arg);
}

bool scan_request(struct str body, struct scan *ret)
{
    struct cursor c = { .text = body };
    *ret = (struct scan) { 0 };
    return cursor_each_member(&c, on_any_member, ret) && cursor_peek(&c) < 0;
}

/* --- replacing --- */

static int splice(struct str body, const struct scan_place *at, struct str with, struct buf *out,
                  struct err *e)
{
    int rc = buf_append(out, str_slice(body, 0, at->from), e);
    rc = rc < 0 ? rc : buf_append(out, with, e);
    return rc < 0 ? rc : buf_append(out, str_slice(body, at->to, body.len), e);
}

/* Right behind the '{' that stands at or after `from`. */
static int insert(struct str body, size_t from, struct str member, struct buf *out, struct err *e)
{
    struct cursor c = { body, from };
    (void)cursor_peek(&c);
    c.at++;
    struct scan_place here = { c.at, c.at };
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_add(&text, member);
    buf_adds(&text, cursor_peek(&c) == '}' ? "" : ",");
    return splice(body, &here, buf_str(&text), out, e);
}

int scan_set_model(struct str body, const struct scan *s, struct str model, struct buf *out,
                   struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_addf(&text, s->model_at.to == 0 ? "\"model\":\"%.*s\"" : "\"%.*s\"", STR_ARG(model));
    return s->model_at.to == 0 ? insert(body, 0, buf_str(&text), out, e)
                               : splice(body, &s->model_at, buf_str(&text), out, e);
}

int scan_set_max(struct str body, const struct scan *s, const char *name, int64_t max,
                 struct buf *out, struct err *e)
{
    char text[96];
    if (s->max_at.to != 0) {
        (void)snprintf(text, sizeof text, "%lld", (long long)max);
        return splice(body, &s->max_at, str_of(text), out, e);
    }
    bool nested = str_eqc(str_of(name), "maxOutputTokens");
    bool has_config = s->config_at.to != 0 && body.ptr[s->config_at.from] == '{';
    (void)snprintf(text, sizeof text, "\"%s\":%lld", name, (long long)max);
    if (nested && has_config) {
        return insert(body, s->config_at.from, str_of(text), out, e);
    }
    if (nested) {
        (void)snprintf(text, sizeof text, "%s{\"maxOutputTokens\":%lld}",
                       s->config_at.to == 0 ? "\"generationConfig\":" : "", (long long)max);
    }
    return nested && s->config_at.to != 0 ? splice(body, &s->config_at, str_of(text), out, e)
                                          : insert(body, 0, str_of(text), out, e);
}

int scan_set_include_usage(struct str body, const struct scan *s, struct buf *out, struct err *e)
{
    struct str options = str_slice(body, s->options_at.from, s->options_at.to);
    if (s->include_usage_at.to != 0) {
        return splice(body, &s->include_usage_at, STR("true"), out, e);
    }
    if (s->options_at.to == 0) {
        return insert(body, 0, STR("\"stream_options\":{\"include_usage\":true}"), out, e);
    }
    if (options.ptr[0] == '{') {
        return insert(body, s->options_at.from, STR("\"include_usage\":true"), out, e);
    }
    return str_eqc(options, "null")
               ? splice(body, &s->options_at, STR("{\"include_usage\":true}"), out, e)
               : ERR(e, ERR_PARSE, "'stream_options' is not an object");
}

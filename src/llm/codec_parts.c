/* SPDX-License-Identifier: MIT
 *
 * What several formats do alike with the parts of a message: texts joined, inputs of calls as text
 * and as object, media as data URLs.
 */
#include "llm/codec_priv.h"

struct str llm_join_text(struct arena *a, const struct llm_part *parts, size_t n, const char *glue)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const struct llm_part *only = NULL;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].kind != LLM_PART_TEXT) {
            continue;
        }
        found++;
        if (found == 1) {
            only = &parts[i];
            continue;
        }
        if (found == 2) {
            buf_add(&out, only->text);
        }
        buf_adds(&out, glue);
        buf_add(&out, parts[i].text);
    }
    return found == 0 ? STR_EMPTY : found == 1 ? only->text : arena_str(a, buf_str(&out));
}

size_t llm_leading_system(const struct llm_request *r)
{
    size_t n = 0;
    while (n < r->n_messages && r->messages[n].role == LLM_SYSTEM) {
        n++;
    }
    return n;
}

void llm_call_set_text(struct arena *a, struct llm_call *c, struct str text)
{
    struct json *v = NULL;
    c->text = text;
    c->input = NULL;
    if (!c->custom && json_parse(a, text, &llm_json_limits, &v, NULL) == 0 &&
        json_is(v, JSON_OBJECT)) {
        c->input = v;
    }
}

void llm_call_set_input(struct arena *a, struct llm_call *c, struct json *input)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 2);
    c->input = json_is(input, JSON_OBJECT) ? input : NULL;
    c->text = STR("{}");
    if (input != NULL && json_write(input, JSON_COMPACT, &text, NULL) == 0) {
        c->text = arena_str(a, buf_str(&text));
    }
}

struct json *llm_call_input(struct arena *a, const struct llm_call *c)
{
    if (c->input != NULL) {
        return c->input;
    }
    struct json *v = json_object(a);
    if (str_trim(c->text).len > 0) {
        llm_set_str(a, v, "input", c->text);
    }
    return v;
}

bool llm_value_is_error(const struct json *value)
{
    return json_len(value) == 1 && json_is(json_get(value, "error"), JSON_STRING);
}

struct str llm_value_text(struct arena *a, const struct json *value)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 2);
    const struct json *only = json_get(value, llm_value_is_error(value) ? "error" : "output");
    if (json_len(value) == 1 && json_is(only, JSON_STRING)) {
        return only->string;
    }
    return json_write(value, JSON_COMPACT, &text, NULL) < 0 ? STR_EMPTY
                                                            : arena_str(a, buf_str(&text));
}

bool llm_media_from_data_url(struct str url, struct llm_media *ret)
{
    if (!str_starts(url, STR("data:"))) {
        return false;
    }
    struct str rest = str_slice(url, 5, url.len);
    size_t comma = str_find(rest, STR(","));
    struct str head = str_slice(rest, 0, comma);
    if (comma + 1 >= rest.len || !str_ends(head, STR(";base64"))) {
        return false;
    }
    head = str_slice(head, 0, head.len - strlen(";base64"));
    if (head.len == 0 || str_find(head, STR(";")) != head.len) { /* no place for parameters */
        return false;
    }
    ret->mime = head;
    ret->data = str_slice(rest, comma + 1, rest.len);
    return true;
}

struct str llm_media_data_url(struct arena *a, const struct llm_media *m)
{
    if (m->data.len == 0) {
        return m->url;
    }
    size_t max = m->mime.len + m->data.len + 64;
    CLEANUP(buf) struct buf out = BUF_INIT(max > BUF_TEXT ? max : BUF_TEXT);
    buf_adds(&out, "data:");
    buf_add(&out, m->mime.len > 0 ? m->mime : STR("application/octet-stream"));
    buf_adds(&out, ";base64,");
    buf_add(&out, m->data);
    return arena_str(a, buf_str(&out));
}

enum llm_media_kind llm_media_kind_of(struct str mime)
{
    if (str_starts(mime, STR("image/"))) {
        return LLM_MEDIA_IMAGE;
    }
    if (str_starts(mime, STR("audio/"))) {
        return LLM_MEDIA_AUDIO;
    }
    return str_starts(mime, STR("video/")) ? LLM_MEDIA_VIDEO : LLM_MEDIA_DOCUMENT;
}

/* SPDX-License-Identifier: MIT
 *
 * A transcript entry as text, for agent.log:
 *
 *   20:29:35.123 main #4 tool_use Bash
 *       {"command":"ls"}
 */
#include "base/json.h"
#include "record/transcript.h"

/* Where harnesses and drivers put what is worth reading, best first. */
static const char *const body_keys[] = { "text", "error", "output", "result", "input", "message" };

static void add_indented(struct buf *out, struct str text)
{
    bool cut = text.len > TRANSCRIPT_TEXT_MAX;
    size_t left_out = cut ? text.len - TRANSCRIPT_TEXT_MAX : 0;
    struct str rest = str_slice(text, 0, TRANSCRIPT_TEXT_MAX);
    while (rest.ptr != NULL && rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        buf_adds(out, "    ");
        buf_add(out, line);
        buf_adds(out, "\n");
    }
    if (cut) {
        buf_addf(out, "    [%zu more bytes]\n", left_out);
    }
}

static void add_value(struct buf *out, const struct json *v)
{
    if (json_is(v, JSON_STRING)) {
        add_indented(out, v->string);
        return;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (json_write(v, JSON_COMPACT, &text, NULL) == 0) {
        add_indented(out, buf_str(&text));
    }
}

static void add_body(struct buf *out, const struct json *detail)
{
    for (size_t i = 0; i < ARRAY_LEN(body_keys); i++) {
        const struct json *v = json_get(detail, body_keys[i]);
        if (v != NULL && !json_is(v, JSON_NULL)) {
            add_value(out, v);
            return;
        }
    }
    if (json_len(detail) > 0) {
        add_value(out, detail);
    }
}

void transcript_render(const struct json *line, struct buf *out)
{
    struct str time = json_str(json_get(line, "timestamp"), STR_EMPTY);
    const struct json *detail = json_get(line, "detail");
    struct str tool = json_str(json_get(detail, "tool_name"), STR_EMPTY);
    struct str source = json_str(json_get(line, "source"), STR_EMPTY);
    struct str type = json_str(json_get(line, "entry_type"), STR_EMPTY);
    buf_add(out, str_slice(time, 11, 23));
    buf_addf(out, " %.*s #%lld %.*s", STR_ARG(source),
             (long long)json_int(json_get(line, "sequence_number"), 0), STR_ARG(type));
    if (tool.len > 0) {
        buf_addf(out, " %.*s", STR_ARG(tool));
    }
    buf_adds(out, "\n");
    if (detail != NULL) {
        add_body(out, detail);
    } else {
        add_indented(out, json_str(json_get(line, "raw"), STR_EMPTY));
    }
}

/* SPDX-License-Identifier: MIT
 *
 * What is worth showing of a call is found by the names that harnesses give to the arguments of
 * their tools; a tool that has none of them shows its arguments as JSON, cut to one line.
 */
#include "cli/conversation.h"

#include <string.h>

#include "base/json.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "record/transcript.h"

enum { INDENT = 2, RESULT_LINES = 8, CALL_MAX = 4096 };

static const char *const command_keys[] = { "command", "cmd", "script" };
static const char *const subject_keys[] = { "file_path", "path",  "absolute_path", "notebook_path",
                                            "pattern",   "query", "url",           "description" };

static struct str first_of(const struct json *o, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct str s = json_str(json_get(o, keys[i]), STR_EMPTY);
        if (s.len > 0) {
            return s;
        }
    }
    return STR_EMPTY;
}

/* Codex gives its commands as arguments of a shell: "/bin/sh -lc 'npm test'". */
static struct str strip_shell(struct str command)
{
    static const char *const shells[] = { "/bin/bash -lc '", "/bin/sh -lc '", "bash -lc '" };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (str_starts(command, str_of(shells[i])) && str_ends(command, STR("'"))) {
            return str_slice(command, strlen(shells[i]), command.len - 1);
        }
    }
    return command;
}

/* A list of words, as some harnesses give a command. */
static bool add_words(struct buf *out, const struct json *list)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        buf_adds(out, i == 0 ? "" : " ");
        buf_add(out, json_str(json_item(list, i), STR_EMPTY));
    }
    return out->len > 0;
}

/* "$ npm test", "Read src/a.c", "lookup {"id":3}" */
static void describe_call(const struct json *detail, struct buf *out)
{
    const struct json *input = json_get(detail, "input");
    struct str tool = json_str(json_get(detail, "tool_name"), STR("tool"));
    struct str command = first_of(input, command_keys, ARRAY_LEN(command_keys));
    struct str subject = first_of(input, subject_keys, ARRAY_LEN(subject_keys));
    CLEANUP(buf) struct buf words = BUF_INIT(BUF_TEXT);
    if (command.len > 0 || add_words(&words, json_get(input, "command"))) {
        buf_adds(out, "$ ");
        buf_add(out, command.len > 0 ? strip_shell(command) : buf_str(&words));
        return;
    }
    buf_add(out, tool);
    buf_adds(out, " ");
    if (subject.len > 0) {
        buf_add(out, subject);
    } else if (json_is(input, JSON_STRING)) {
        buf_add(out, input->string);
    } else if (json_len(input) > 0) {
        (void)!json_write(input, JSON_COMPACT, out, NULL);
    }
}

/* The text of a result, however the harness wrapped it. */
static void collect_text(const struct json *v, struct buf *out)
{
    if (json_is(v, JSON_STRING)) {
        buf_add(out, v->string);
    } else if (json_is(v, JSON_ARRAY)) {
        for (size_t i = 0; i < json_len(v); i++) {
            collect_text(json_item(v, i), out);
            buf_adds(out, i + 1 < json_len(v) ? "\n" : "");
        }
    } else if (json_get(v, "text") != NULL) {
        collect_text(json_get(v, "text"), out);
    } else if (v != NULL && !json_is(v, JSON_NULL)) {
        (void)!json_write(v, JSON_COMPACT, out, NULL);
    }
}

static void result_text(const struct json *detail, struct buf *out)
{
    static const char *const keys[] = { "output", "result", "error", "content", "text" };
    for (size_t i = 0; i < ARRAY_LEN(keys) && out->len == 0; i++) {
        collect_text(json_get(detail, keys[i]), out);
    }
}

static bool has_failed(const struct json *detail)
{
    return json_int(json_get(detail, "exit_code"), 0) != 0 ||
           json_bool(json_get(detail, "is_error"), false) ||
           json_bool(json_get(json_get(detail, "sdk_entry"), "is_error"), false);
}

/* A line that fits keeps its spaces, so that code keeps its shape; a longer one is wrapped under
 * its own indentation. */
static void add_line(struct str line, size_t indent, const struct conversation_style *style,
                     struct buf *out)
{
    CLEANUP(buf) struct buf clean = BUF_INIT(SIZE_MAX);
    text_clean(&clean, line, TEXT_BLOCK);
    if (clean.len > 0 && indent + text_width(buf_str(&clean)) <= style->width) {
        text_repeat(out, " ", indent);
        buf_add(out, buf_str(&clean));
    } else if (clean.len > 0) {
        size_t own = indent + strspn(clean.ptr, " ");
        indent = own > style->width / 2 ? indent : own;
        text_repeat(out, " ", indent);
        text_wrap(out, buf_str(&clean), (struct text_shape) { indent, indent, style->width });
    }
    buf_adds(out, "\n");
}

/* At most `max` lines; 0: all. */
static void add_lines(struct str text, size_t indent, size_t max,
                      const struct conversation_style *style, struct buf *out)
{
    struct str rest = str_trim(text);
    size_t shown = 0;
    while (rest.ptr != NULL && rest.len > 0 && (max == 0 || shown < max)) {
        add_line(str_split(&rest, '\n'), indent, style, out);
        shown++;
    }
    size_t left = 0;
    while (rest.ptr != NULL && rest.len > 0) {
        (void)str_split(&rest, '\n');
        left++;
    }
    if (left > 0) {
        text_repeat(out, " ", indent);
        buf_addf(out, "... %zu more line%s\n", left, left == 1 ? "" : "s");
    }
}

static void add_call(const struct json *detail, const struct conversation_style *style,
                     struct buf *out)
{
    CLEANUP(buf) struct buf call = BUF_INIT(BUF_TEXT);
    describe_call(detail, &call);
    buf_adds(out, "\n");
    style_begin(out, style->color, STYLE_NAME);
    add_lines(str_slice(buf_str(&call), 0, CALL_MAX), 0, style->verbose ? 0 : RESULT_LINES, style,
              out);
    style_end(out, style->color, STYLE_NAME);
}

static void add_result(const struct json *detail, const struct conversation_style *style,
                       struct buf *out)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    bool failed = has_failed(detail);
    result_text(detail, &text);
    style_begin(out, style->color, failed ? STYLE_BAD : STYLE_DIM);
    if (failed && json_int(json_get(detail, "exit_code"), 0) != 0) {
        buf_addf(out, "  exit %lld\n", (long long)json_int(json_get(detail, "exit_code"), 0));
    }
    add_lines(buf_str(&text), INDENT, style->verbose ? 0 : RESULT_LINES, style, out);
    style_end(out, style->color, failed ? STYLE_BAD : STYLE_DIM);
}

static void add_message(struct str text, enum style how, const char *mark,
                        const struct conversation_style *style, struct buf *out)
{
    if (str_trim(text).len == 0) {
        return;
    }
    buf_adds(out, "\n");
    style_begin(out, style->color, how);
    buf_adds(out, mark);
    add_lines(text, 0, 0, style, out);
    style_end(out, style->color, how);
}

static void add_source(const struct json *entry, const struct conversation_style *style,
                       struct buf *out)
{
    struct str source = json_str(json_get(entry, "source"), STR_EMPTY);
    if (source.len > 0 && !str_eqc(source, "main")) {
        CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
        text_clean(&clean, source, TEXT_LINE);
        buf_adds(out, "\n");
        style_add(out, style->color, STYLE_DIM, clean.ptr);
        buf_adds(out, ":");
    }
}

static void add_other(const struct json *entry, const struct conversation_style *style,
                      struct buf *out)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    transcript_render(entry, &text);
    buf_adds(out, "\n");
    style_begin(out, style->color, STYLE_DIM);
    add_lines(buf_str(&text), 0, 0, style, out);
    style_end(out, style->color, STYLE_DIM);
}

static enum entry_type type_of(const struct json *entry)
{
    enum entry_type type = ENTRY_UNKNOWN;
    (void)entry_type_find(json_str(json_get(entry, "entry_type"), STR_EMPTY), &type);
    return type;
}

static bool is_protocol(enum entry_type type)
{
    return type == ENTRY_SYSTEM_EVENT || type == ENTRY_TOKEN_USAGE || type == ENTRY_UNKNOWN;
}

void conversation_add(const struct json *entry, struct conversation_style style, struct buf *out)
{
    const struct json *detail = json_get(entry, "detail");
    struct str text = json_str(json_get(detail, "text"), STR_EMPTY);
    enum entry_type type = type_of(entry);
    if (is_protocol(type) && !style.verbose) {
        return;
    }
    add_source(entry, &style, out);
    switch (type) {
    case ENTRY_USER_MESSAGE:
        add_message(text, STYLE_BOLD, "> ", &style, out);
        break;
    case ENTRY_ASSISTANT_MESSAGE:
        add_message(text, STYLE_PLAIN, "", &style, out);
        break;
    case ENTRY_THINKING:
        add_message(text, STYLE_DIM, "(thinking) ", &style, out);
        break;
    case ENTRY_TOOL_USE:
        add_call(detail, &style, out);
        break;
    case ENTRY_TOOL_RESULT:
        add_result(detail, &style, out);
        break;
    case ENTRY_ERROR:
        if (text.len == 0) {
            text = json_str(json_get(detail, "error"),
                            json_str(json_get(detail, "message"), STR("?")));
        }
        add_message(text, STYLE_BAD, "error: ", &style, out);
        break;
    case ENTRY_SYSTEM_EVENT:
    case ENTRY_TOKEN_USAGE:
    case ENTRY_UNKNOWN:
    case ENTRY_TYPE_MAX:
        add_other(entry, &style, out);
        break;
    }
}

static struct str first_line(struct str text)
{
    struct str rest = str_trim(text);
    return str_split(&rest, '\n');
}

void conversation_line(const struct json *entry, size_t width, struct buf *out)
{
    const struct json *detail = json_get(entry, "detail");
    enum entry_type type = type_of(entry);
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
    if (is_protocol(type)) {
        return;
    }
    if (type == ENTRY_TOOL_USE) {
        describe_call(detail, &text);
    } else {
        buf_adds(&clean, type == ENTRY_TOOL_RESULT ? (has_failed(detail) ? "failed: " : "result: ")
                         : type == ENTRY_USER_MESSAGE ? "> "
                         : type == ENTRY_ERROR        ? "error: "
                                                      : "");
        result_text(detail, &text);
    }
    text_clean(&clean, str_slice(first_line(buf_str(&text)), 0, CALL_MAX), TEXT_LINE);
    text_cut(out, buf_str(&clean), width);
}

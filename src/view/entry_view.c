/* SPDX-License-Identifier: MIT
 *
 * What is worth showing of a call is found by the names that harnesses give to the arguments of
 * their tools; a tool that has none of them shows its arguments as JSON.
 */
#include "view/entry_view.h"

#include <string.h>

#include "base/json.h"
#include "record/entry_call.h"

static const char *const command_keys[] = { "command", "cmd", "script" };
static const char *const subject_keys[] = { "file_path", "path",  "absolute_path", "notebook_path",
                                            "pattern",   "query", "url",           "description" };

/* --- reading --- */

bool entry_view_read(const struct json *line, struct entry_view *ret)
{
    const struct json *type = json_get(line, "entry_type");
    if (type == NULL) {
        line = json_get(line, "context");
        type = json_get(line, "entry_type");
    }
    if (!json_is(type, JSON_STRING)) {
        return false;
    }
    const struct json *detail = json_get(line, "detail");
    *ret = (struct entry_view) {
        .type = ENTRY_UNKNOWN,
        .source = json_str(json_get(line, "source"), STR("main")),
        .sequence = json_int(json_get(line, "sequence_number"), 0),
        .timestamp = json_str(json_get(line, "timestamp"), STR_EMPTY),
        .detail = detail,
    };
    (void)entry_type_find(type->string, &ret->type);
    if (ret->type == ENTRY_TOOL_USE) {
        ret->tool = entry_tool_name(detail);
        ret->call_id = entry_call_of_use(detail);
    } else if (ret->type == ENTRY_TOOL_RESULT) {
        ret->tool = entry_tool_name(detail);
        ret->call_id = entry_call_of_result(detail);
        ret->exit_code = json_int(json_get(detail, "exit_code"), 0);
        ret->failed = ret->exit_code != 0 || json_bool(json_get(detail, "is_error"), false) ||
                      json_bool(json_get(json_get(detail, "sdk_entry"), "is_error"), false);
    }
    return true;
}

const char *entry_view_role(const struct entry_view *v)
{
    static const char *const roles[ENTRY_TYPE_MAX] = {
        [ENTRY_USER_MESSAGE] = "user",  [ENTRY_ASSISTANT_MESSAGE] = "assistant",
        [ENTRY_THINKING] = "assistant", [ENTRY_TOOL_USE] = "assistant",
        [ENTRY_TOOL_RESULT] = "tool",
    };
    return roles[v->type];
}

bool entry_view_is_protocol(const struct entry_view *v)
{
    return v->type == ENTRY_SYSTEM_EVENT || v->type == ENTRY_TOKEN_USAGE ||
           v->type == ENTRY_UNKNOWN;
}

/* --- texts --- */

static void add_json(const struct json *v, struct buf *out)
{
    (void)!json_write(v, JSON_COMPACT, out, NULL);
}

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
        add_json(v, out);
    }
}

void entry_view_text(const struct entry_view *v, struct buf *out)
{
    static const char *const keys[] = { "output", "result",   "error",  "content",
                                        "text",   "thinking", "message" };
    if (v->type == ENTRY_TOOL_USE) {
        add_json(json_get(v->detail, "input"), out);
        return;
    }
    if (v->type != ENTRY_TOOL_RESULT) {
        collect_text(json_get(v->detail, "text"), out);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys) && out->len == 0; i++) {
        collect_text(json_get(v->detail, keys[i]), out);
    }
}

/* --- calls --- */

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
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
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

void entry_view_call(const struct entry_view *v, struct buf *out)
{
    const struct json *input = json_get(v->detail, "input");
    struct str command = first_of(input, command_keys, ARRAY_LEN(command_keys));
    struct str subject = first_of(input, subject_keys, ARRAY_LEN(subject_keys));
    CLEANUP(buf) struct buf words = BUF_INIT(BUF_TEXT);
    if (command.len > 0 || add_words(&words, json_get(input, "command"))) {
        buf_adds(out, "$ ");
        buf_add(out, command.len > 0 ? strip_shell(command) : buf_str(&words));
        return;
    }
    buf_add(out, v->tool.len > 0 ? v->tool : STR("tool"));
    buf_adds(out, " ");
    if (subject.len > 0) {
        buf_add(out, subject);
    } else if (json_is(input, JSON_STRING)) {
        buf_add(out, input->string);
    } else if (json_len(input) > 0) {
        add_json(input, out);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * What the answer of an upstream MCP server to tools/call means to the bridge.
 */
#include "base/buf.h"
#include "base/macro.h"
#include "tools/tool_mcp_priv.h"

#define BLOCKS_MAX 1000
#define TEXT_MAX   ((size_t)1 << 20) /* of a message; the blocks have it all */

/* What a block of this type must have, so that who gets it can rely on it. */
static const struct {
    const char *type;
    const char *key;
    enum json_type kind;
    const char *second;
} blocks[] = {
    { "text", "text", JSON_STRING, NULL },         { "image", "data", JSON_STRING, "mimeType" },
    { "audio", "data", JSON_STRING, "mimeType" },  { "resource", "resource", JSON_OBJECT, NULL },
    { "resource_link", "uri", JSON_STRING, NULL },
};

static bool block_ok(const struct json *block)
{
    struct str type = json_str(json_get(block, "type"), STR_EMPTY);
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        if (str_eqc(type, blocks[i].type)) {
            return json_is(json_get(block, blocks[i].key), blocks[i].kind) &&
                   (blocks[i].second == NULL ||
                    json_is(json_get(block, blocks[i].second), JSON_STRING));
        }
    }
    return false;
}

static struct str text_of(struct arena *a, const struct json *content)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TEXT_MAX);
    for (size_t i = 0; i < json_len(content); i++) {
        const struct json *block = json_item(content, i);
        struct str piece = json_str(json_get(block, "text"), STR_EMPTY);
        if (piece.len > 0 && text.len + 1 + piece.len < TEXT_MAX) {
            buf_adds(&text, text.len > 0 ? "\n" : "");
            buf_add(&text, piece);
        }
    }
    return arena_str(a, buf_str(&text));
}

static void bad(struct tool_result *ret, enum tool_failure f, struct str message)
{
    *ret = (struct tool_result) { .failure = f, .message = message };
}

static void read_result(struct arena *a, const struct json *result, struct tool_result *ret)
{
    const struct json *content = json_get(result, "content");
    const struct json *value = json_get(result, "structuredContent");
    if (!str_eqc(json_str(json_get(result, "resultType"), STR("complete")), "complete")) {
        bad(ret, TOOL_FAILED, STR("the tool asks for user input, which is not available in a run"));
        return;
    }
    if (content == NULL && value == NULL) {
        bad(ret, TOOL_BAD_OUTPUT, STR("the server's response is not a tool result"));
        return;
    }
    bool good =
        content == NULL || (json_is(content, JSON_ARRAY) && json_len(content) <= BLOCKS_MAX);
    for (size_t i = 0; good && i < json_len(content); i++) {
        good = block_ok(json_item(content, i));
    }
    if (!good) {
        bad(ret, TOOL_BAD_OUTPUT, STR("the server's answer has content of an unknown kind"));
        return;
    }
    bool failed = json_bool(json_get(result, "isError"), false);
    *ret = (struct tool_result) {
        .failure = failed ? TOOL_FAILED : TOOL_OK,
        .message = text_of(a, content),
        .value = value,
        .content = json_len(content) > 0 ? content : NULL,
    };
    if (failed && ret->message.len == 0) {
        ret->message = STR("the tool failed and does not say why");
    }
}

void toolserver_read(struct arena *a, const struct mcp_client_answer *answer, size_t max_output,
                     struct tool_result *ret)
{
    if (answer->lost != NULL) {
        enum tool_failure f = answer->lost->code == ERR_LIMIT     ? TOOL_FLOOD
                              : answer->lost->code == ERR_TIMEOUT ? TOOL_TIMEOUT
                                                                  : TOOL_CRASHED;
        bad(ret, f, arena_str(a, str_of(answer->lost->msg)));
    } else if (answer->bytes > max_output) {
        const char *why = arena_printf(a, "the answer is larger than %zu bytes", max_output);
        bad(ret, TOOL_FLOOD, str_of(why));
    } else if (answer->is_error) {
        const char *why =
            arena_printf(a, "the server says: %.*s (%lld)",
                         STR_ARG(str_slice(answer->text, 0, 4096)), (long long)answer->code);
        bad(ret, TOOL_FAILED, str_of(why));
    } else {
        read_result(a, answer->result, ret);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Entries laid out for a terminal; what they say is found by view/entry_view.h.
 */
#include "cli/conversation.h"

#include <string.h>

#include "base/json.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "record/transcript.h"
#include "view/entry_view.h"

enum { INDENT = 2, RESULT_LINES = 8, CALL_MAX = 4096 };

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

static void add_call(const struct entry_view *v, const struct conversation_style *style,
                     struct buf *out)
{
    CLEANUP(buf) struct buf call = BUF_INIT(BUF_TEXT);
    entry_view_call(v, &call);
    buf_adds(out, "\n");
    style_begin(out, style->color, STYLE_NAME);
    add_lines(str_slice(buf_str(&call), 0, CALL_MAX), 0, style->verbose ? 0 : RESULT_LINES, style,
              out);
    style_end(out, style->color, STYLE_NAME);
}

static void add_result(const struct entry_view *v, const struct conversation_style *style,
                       struct buf *out)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    entry_view_text(v, &text);
    style_begin(out, style->color, v->failed ? STYLE_BAD : STYLE_DIM);
    if (v->exit_code != 0) {
        buf_addf(out, "  exit %lld\n", (long long)v->exit_code);
    }
    add_lines(buf_str(&text), INDENT, style->verbose ? 0 : RESULT_LINES, style, out);
    style_end(out, style->color, v->failed ? STYLE_BAD : STYLE_DIM);
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

static void add_source(struct str source, const struct conversation_style *style, struct buf *out)
{
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

void conversation_add(const struct json *entry, struct conversation_style style, struct buf *out)
{
    struct entry_view v;
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    if (!entry_view_read(entry, &v) || (entry_view_is_protocol(&v) && !style.verbose)) {
        return;
    }
    add_source(v.source, &style, out);
    if (v.type == ENTRY_TOOL_USE) {
        add_call(&v, &style, out);
        return;
    }
    if (v.type == ENTRY_TOOL_RESULT) {
        add_result(&v, &style, out);
        return;
    }
    if (entry_view_is_protocol(&v)) {
        add_other(entry, &style, out);
        return;
    }
    entry_view_text(&v, &text);
    static const struct {
        const char *mark;
        enum style style;
    } looks[ENTRY_TYPE_MAX] = {
        [ENTRY_USER_MESSAGE] = { "> ", STYLE_BOLD },
        [ENTRY_ASSISTANT_MESSAGE] = { "", STYLE_PLAIN },
        [ENTRY_THINKING] = { "(thinking) ", STYLE_DIM },
        [ENTRY_ERROR] = { "error: ", STYLE_BAD },
    };
    add_message(buf_str(&text), looks[v.type].style, looks[v.type].mark, &style, out);
}

static struct str first_line(struct str text)
{
    struct str rest = str_trim(text);
    return str_split(&rest, '\n');
}

void conversation_line(const struct json *entry, size_t width, struct buf *out)
{
    struct entry_view v;
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
    if (!entry_view_read(entry, &v) || entry_view_is_protocol(&v)) {
        return;
    }
    if (v.type == ENTRY_TOOL_USE) {
        entry_view_call(&v, &text);
    } else {
        buf_adds(&clean, v.type == ENTRY_TOOL_RESULT    ? (v.failed ? "failed: " : "result: ")
                         : v.type == ENTRY_USER_MESSAGE ? "> "
                         : v.type == ENTRY_ERROR        ? "error: "
                                                        : "");
        entry_view_text(&v, &text);
    }
    text_clean(&clean, str_slice(first_line(buf_str(&text)), 0, CALL_MAX), TEXT_LINE);
    text_cut(out, buf_str(&clean), width);
}

/* SPDX-License-Identifier: MIT
 *
 * Drawing of the progress line. Each drawing is one write of "return, text, erase to the end", so a
 * half-drawn line is never seen and no cursor has to be hidden or put back: a killed cinch leaves a
 * terminal that works.
 */
#include "cli/progress.h"

#include <stdio.h>

#include "base/log.h"
#include "cli/text.h"

#define REDRAW_EVERY (NSEC_PER_SEC / 10)
#define ERASE_REST   "\033[K"

void progress_init(struct progress *p, struct terminal *t, enum progress_mode mode)
{
    *p = (struct progress) { .terminal = t, .mode = mode };
    /* Lines of the log (-v) and a line that is redrawn would overwrite each other. */
    if (mode == PROGRESS_AUTO && (!t->live || log_enabled(LOG_LEVEL_ERROR))) {
        p->mode = PROGRESS_PLAIN;
    }
}

static void add_field(struct buf *out, const char *label, const char *value)
{
    buf_addf(out, "  %s%s%s", label, label[0] == '\0' ? "" : " ", value);
}

void progress_format(const struct progress_view *v, size_t width, struct buf *out)
{
    char text[TEXT_SHORT];
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf phase = BUF_INIT(BUF_TEXT);
    text_clean(&phase, str_of(v->phase), TEXT_LINE);
    text_pad(&line, buf_str(&phase), 9); /* "configure", so that the fields do not jump */
    buf_addf(&line, "  %6s", text_duration(v->elapsed, text));
    add_field(&line, "out", text_bytes(v->bytes_out, text));
    if (v->bytes_err > 0) {
        add_field(&line, "err", text_bytes(v->bytes_err, text));
    }
    if (v->calls > 0) {
        add_field(&line, v->calls == 1 ? "call" : "calls", text_count(v->calls, text));
    }
    if (v->tokens > 0) {
        add_field(&line, "tokens", text_count(v->tokens, text));
    }
    if (v->cost_usd > 0) {
        add_field(&line, "", text_cost(v->cost_usd, text));
    }
    if (v->cost_usd > 0 && v->budget_usd > 0) {
        buf_addf(&line, " of %s", text_cost(v->budget_usd, text));
    }
    if (v->time_left > 0) {
        add_field(&line, "left", text_duration(v->time_left, text));
    }
    if (v->note != NULL && v->note[0] != '\0') {
        buf_adds(&line, "  ");
        text_clean(&line, str_of(v->note), TEXT_LINE);
    }
    text_cut(out, buf_str(&line), width);
}

static bool phase_changed(struct progress *p, const struct progress_view *v)
{
    char now[sizeof p->phase];
    (void)snprintf(now, sizeof now, "%s", v->phase == NULL ? "" : v->phase);
    bool changed = strcmp(now, p->phase) != 0;
    memcpy(p->phase, now, sizeof now);
    return changed;
}

static void write_out(struct progress *p, const struct buf *b)
{
    terminal_write(p->terminal, buf_str(b));
    (void)fflush(p->terminal->stream);
}

/* One column less: in the last one many terminals wrap, and a wrapped line cannot be redrawn. */
static size_t line_width(const struct progress *p)
{
    return terminal_width(p->terminal) - 1;
}

static bool is_due(const struct progress *p, nsec now)
{
    return !p->on_screen || now - p->drawn_at >= REDRAW_EVERY;
}

static void draw(struct progress *p, const struct buf *line, nsec now)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "\r");
    buf_add(&out, buf_str(line));
    buf_adds(&out, ERASE_REST);
    write_out(p, &out);
    p->on_screen = true;
    p->drawn_at = now;
}

static void write_plain(struct progress *p, const struct progress_view *v)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    int64_t tenths = v->elapsed / (NSEC_PER_SEC / 10);
    buf_addf(&out, "[%3lld.%llds] ", (long long)(tenths / 10), (long long)(tenths % 10));
    text_clean(&out, str_of(v->phase), TEXT_LINE);
    if (v->note != NULL && v->note[0] != '\0') {
        buf_adds(&out, "  ");
        text_clean(&out, str_of(v->note), TEXT_LINE);
    }
    buf_adds(&out, "\n");
    write_out(p, &out);
}

void progress_update(struct progress *p, const struct progress_view *v, nsec now)
{
    if (p->mode == PROGRESS_QUIET || p->mode == PROGRESS_MESSAGES) {
        return;
    }
    bool changed = phase_changed(p, v);
    if (p->mode == PROGRESS_PLAIN) {
        if (changed) {
            write_plain(p, v);
        }
    } else if (is_due(p, now) && terminal_ready(p->terminal)) {
        CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
        progress_format(v, line_width(p), &line);
        draw(p, &line, now);
    }
}

void progress_line(struct progress *p, struct str text, nsec now)
{
    if (p->mode == PROGRESS_AUTO && is_due(p, now) && terminal_ready(p->terminal)) {
        CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
        text_clean(&clean, text, TEXT_LINE);
        text_cut(&line, buf_str(&clean), line_width(p));
        draw(p, &line, now);
    }
}

static void clear(struct progress *p, struct buf *out)
{
    if (p->on_screen) {
        buf_adds(out, "\r" ERASE_REST);
        p->on_screen = false; /* the next update draws at once, below */
    }
}

void progress_message(struct progress *p, const char *text)
{
    if (p->mode == PROGRESS_QUIET) {
        return;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    clear(p, &out);
    text_clean(&out, str_of(text), TEXT_LINE);
    buf_adds(&out, "\n");
    write_out(p, &out);
}

void progress_done(struct progress *p)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    clear(p, &out);
    write_out(p, &out);
}

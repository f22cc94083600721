/* SPDX-License-Identifier: MIT
 *
 * summary.md: what a run did, for people and for tools that publish it. An agent that writes its
 * own report replaces it. The first line after the title is the agent's answer, since publishers
 * take it as the title of a change.
 */
#include <inttypes.h>

#include "base/buf.h"
#include "record/summary_priv.h"

enum {
    ANSWER_MAX = 64 << 10,
    GOAL_MAX = 8 << 10,
    CHANGES_MAX = 200,
};

struct page {
    const struct redactor *redactor;
    struct arena *arena;
    struct buf *out;
};

/* The beginning of a long text. Redacted before it is cut, since half a secret is not found. */
static void add_text(const struct page *p, struct str text, unsigned cut, size_t max,
                     const char *whole)
{
    text = str_trim(redact_cut(p->redactor, p->arena, text, cut));
    struct str shown = str_slice(text, 0, max);
    shown = str_slice(shown, 0, shown.len < text.len ? str_utf8_prefix(shown) : shown.len);
    buf_add(p->out, shown);
    buf_adds(p->out, shown.len < text.len ? whole : "\n");
}

/* One line, so that a name cannot become a heading or a list of its own. */
static void add_name(const struct page *p, struct str name)
{
    name = redact_cut(p->redactor, p->arena, name, REDACT_CUT_END);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool plain = (unsigned char)c >= ' ' && c != '`' && c != 127;
        buf_add(p->out, plain ? str_n(&c, 1) : STR("?"));
    }
}

static void add_answer(const struct page *p, const struct summary *s)
{
    bool answered = str_trim(s->text).len > 0;
    if (answered) {
        add_text(p, s->text, s->text_cut ? REDACT_CUT_FRONT : 0, ANSWER_MAX,
                 "\n\n(cut: result.json has more of it)\n");
    } else if (s->error == NULL) {
        buf_adds(p->out, "The agent gave no final answer.\n");
    }
    if (s->error != NULL) {
        buf_addf(p->out, "%s**%s:** ", answered ? "\n" : "",
                 s->reason == REASON_NEEDS_HUMAN ? "Needs a human" : "Error");
        add_name(p, str_of(s->error));
        buf_adds(p->out, "\n");
    }
}

static void add_changes(const struct page *p, const struct summary *s)
{
    struct buf *out = p->out;
    size_t len = json_len(s->changes);
    buf_adds(out, "\n## Changes\n\n");
    if (s->no_changes == FLAG_UNKNOWN || len == 0) {
        buf_adds(out, s->no_changes == FLAG_YES ? "None.\n" : "Not known.\n");
        return;
    }
    for (size_t i = 0; i < len && i < CHANGES_MAX; i++) {
        const struct json *file = json_item(s->changes, i);
        buf_addf(out, "- %s `", json_cstring(json_get(file, "status"), "M"));
        add_name(p, json_str(json_get(file, "path"), STR_EMPTY));
        buf_adds(out, "`\n");
    }
    if (len > CHANGES_MAX) {
        buf_addf(out, "- and %zu more: see diff.patch\n", len - CHANGES_MAX);
    }
}

static void add_checks(const struct page *p, const struct summary *s)
{
    if (s->checks == NULL || s->checks[0] == NULL) {
        return;
    }
    buf_adds(p->out, "\n## Checks\n\n");
    for (const char *const *check = s->checks; *check != NULL; check++) {
        buf_adds(p->out, "- ");
        add_name(p, str_of(*check));
        buf_adds(p->out, "\n");
    }
}

static void add_figures(const struct page *p, const struct summary *s)
{
    struct buf *out = p->out;
    buf_addf(out, "\n## Run\n\n- outcome: %s (%s) after %.1f s\n", reason_outcome(s->reason),
             reason_word(s->reason), view_seconds(s->duration));
    buf_adds(out, "- agent: ");
    add_name(p, str_of(s->adapter == NULL ? "none" : s->adapter));
    buf_adds(out, s->engine.model == NULL ? "" : ", model ");
    add_name(p, str_of(s->engine.model == NULL ? "" : s->engine.model));
    buf_adds(out, "\n");
    if (s->tokens.source != TOKENS_NONE) {
        buf_addf(out, "- tokens: %" PRId64 " input, %" PRId64 " output, %" PRId64 " model calls\n",
                 s->tokens.input + s->tokens.cache_read, s->tokens.output, s->api_calls);
    }
    if (s->cost_source != COST_NONE) {
        buf_addf(out, "- cost: $%.4f\n", s->cost_usd);
    }
}

void summary_markdown(const struct summary *s, const struct redactor *r, struct arena *a,
                      struct buf *out)
{
    const struct page p = { r, a, out };
    buf_adds(out, "# ");
    add_name(&p, str_of(s->task == NULL ? "Run" : s->task));
    buf_adds(out, "\n\n");
    add_answer(&p, s);
    if (str_trim(s->goal).len > 0) {
        buf_adds(out, "\n## Task\n\n");
        add_text(&p, s->goal, 0, GOAL_MAX, "\n\n(cut: logs/prompt.txt has the whole prompt)\n");
    }
    add_changes(&p, s);
    add_checks(&p, s);
    add_figures(&p, s);
}

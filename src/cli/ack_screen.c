/* SPDX-License-Identifier: MIT
 *
 * What `cinch ack` shows; see ack_screen.h.
 */
#include "cli/ack_screen.h"

#include <stdint.h>
#include <string.h>

#include "cli/table.h"
#include "cli/text.h"

/* --- while it works --- */

static enum style style_of(enum verdict_status s)
{
    static const enum style styles[VERDICT_COUNT] = {
        [VERDICT_PASSED] = STYLE_GOOD, [VERDICT_FAILED] = STYLE_BAD,
        [VERDICT_SKIPPED] = STYLE_DIM, [VERDICT_EXPECTED] = STYLE_WARN,
        [VERDICT_STALE] = STYLE_BAD,   [VERDICT_FLAKY] = STYLE_WARN,
    };
    return styles[s];
}

void ack_screen_init(struct ack_screen *s, struct cli *cli)
{
    *s = (struct ack_screen) { .began = clock_now() };
    progress_init(&s->progress, &cli->err,
                  cli->format == CLI_TEXT ? PROGRESS_AUTO : PROGRESS_QUIET);
}

void ack_screen_note(struct ack_screen *s, const char *text)
{
    s->progress.drawn_at = 0; /* what follows takes its time, so this must be seen */
    progress_line(&s->progress, str_of(text), clock_now());
}

static void add_counts(struct buf *out, const size_t *count)
{
    bool first = true;
    for (enum verdict_status v = 0; v < VERDICT_COUNT; v++) {
        if (count[v] > 0) {
            buf_addf(out, "%s%zu %s", first ? "" : ", ", count[v], verdict_word(v));
            first = false;
        }
    }
}

static void draw(struct ack_screen *s)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    char took[TEXT_SHORT];
    buf_addf(&line, "%zu/%zu  %s  ", s->done, s->total,
             text_duration(clock_now() - s->began, took));
    add_counts(&line, s->count);
    for (size_t i = 0; i < s->running_len; i++) {
        buf_addf(&line, "%s%s %s", i == 0 ? "  |  " : ", ", s->running[i].adapter,
                 s->running[i].scenario->name);
    }
    progress_line(&s->progress, buf_str(&line), clock_now());
}

static void on_begin(void *owner, size_t trials)
{
    struct ack_screen *s = owner;
    s->total = trials;
}

static void on_start(void *owner, const char *adapter, const struct scenario *scenario)
{
    struct ack_screen *s = owner;
    if (s->running_len < ACK_SCREEN_RUNNING) {
        s->running[s->running_len].adapter = adapter;
        s->running[s->running_len].scenario = scenario;
        s->running_len++;
    }
    draw(s);
}

static void forget(struct ack_screen *s, const struct verdict *v)
{
    for (size_t i = 0; i < s->running_len; i++) {
        if (s->running[i].scenario == v->scenario &&
            strcmp(s->running[i].adapter, v->adapter) == 0) {
            s->running_len--;
            memmove(&s->running[i], &s->running[i + 1],
                    (s->running_len - i) * sizeof s->running[0]);
            return;
        }
    }
}

static void say(struct ack_screen *s, const struct verdict *v)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf shown = BUF_INIT(BUF_TEXT);
    bool live = s->progress.mode == PROGRESS_AUTO; /* the whole of it comes at the end */
    char took[TEXT_SHORT];
    struct str rest = str_of(v->why);
    struct str first = str_split(&rest, '\n');
    text_pad(&line, str_of(verdict_word(v->status)), 8);
    buf_addf(&line, "  %s  %s", v->adapter, v->scenario->name);
    if (v->took > 0) {
        buf_addf(&line, "  %s", text_duration(v->took, took));
    }
    if (first.len > 0) {
        buf_addf(&line, "  %.*s", STR_ARG(first));
    }
    text_clean(&shown, buf_str(&line), TEXT_LINE);
    buf_reset(&line);
    text_cut(&line, buf_str(&shown), live ? terminal_width(s->progress.terminal) - 1 : SIZE_MAX);
    progress_message(&s->progress, line.ptr);
}

static void on_done(void *owner, const struct verdict *v)
{
    struct ack_screen *s = owner;
    s->done++;
    s->count[v->status]++;
    forget(s, v);
    /* A person at a terminal is told at once of what went wrong; a log gets everything. */
    if (s->progress.mode == PROGRESS_PLAIN || verdict_is_failure(v->status)) {
        say(s, v);
    }
    draw(s);
}

static void on_tick(void *owner)
{
    draw(owner);
}

struct kit_watcher ack_screen_watcher(struct ack_screen *s)
{
    return (struct kit_watcher) {
        .begin = on_begin, .start = on_start, .done = on_done, .tick = on_tick, .owner = s
    };
}

void ack_screen_done(struct ack_screen *s)
{
    progress_done(&s->progress);
}

/* --- what came of it --- */

struct tally {
    size_t passed, ran, failed, skipped;
    nsec took;
};

/* Of one adapter, in one tier or in all (NULL). */
static struct tally count(const struct kit_report *r, const char *adapter, const char *tier)
{
    struct tally t = { 0 };
    for (size_t i = 0; i < r->len; i++) {
        const struct verdict *v = &r->verdicts[i];
        bool counts = strcmp(v->adapter, adapter) == 0 &&
                      (tier == NULL || strcmp(capability_tier_word(v->scenario->tier), tier) == 0);
        if (counts) {
            t.passed += v->status == VERDICT_PASSED;
            t.ran += v->status != VERDICT_SKIPPED;
            t.failed += verdict_is_failure(v->status);
            t.skipped += v->status == VERDICT_SKIPPED;
            t.took += v->took;
        }
    }
    return t;
}

static void add_cell(struct table *t, struct tally c)
{
    if (c.ran == 0) {
        table_cell(t, STYLE_DIM, c.skipped > 0 ? "-" : "");
    } else {
        enum style style = c.failed > 0 ? STYLE_BAD : c.passed == c.ran ? STYLE_GOOD : STYLE_WARN;
        table_cellf(t, style, "%zu/%zu", c.passed, c.ran);
    }
}

static void add_matrix(struct arena *a, const struct kit_report *r, const struct terminal *term,
                       struct buf *out)
{
    static const char *const tiers[] = { "1", "2", "3", "4", "specific" };
    struct table t = { .arena = a,
                       .head = true,
                       .columns = { { "adapter", .max = 32 },
                                    { "version", .max = 28 },
                                    { "tier 1" },
                                    { "tier 2" },
                                    { "tier 3" },
                                    { "tier 4" },
                                    { "specific" },
                                    { "skipped" } } };
    for (size_t i = 0; i < r->adapters_len; i++) {
        const struct kit_adapter *x = &r->adapters[i];
        struct tally all = count(r, x->name, NULL);
        table_cell(&t, x->available ? STYLE_NAME : STYLE_DIM, x->name);
        table_cell(&t, STYLE_DIM, x->version);
        for (size_t k = 0; k < ARRAY_LEN(tiers); k++) {
            add_cell(&t, count(r, x->name, tiers[k]));
        }
        if (!x->available) {
            table_cell(&t, STYLE_DIM, x->why_not);
        } else if (all.skipped > 0) {
            table_cellf(&t, STYLE_DIM, "%zu", all.skipped);
        } else {
            table_cell(&t, STYLE_PLAIN, "");
        }
    }
    table_write(&t, terminal_width(term), term->color, out);
}

static void add_verdict(const struct verdict *v, const struct terminal *term, struct buf *out)
{
    CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
    char took[TEXT_SHORT];
    buf_adds(out, "\n");
    style_add(out, term->color, style_of(v->status), verdict_word(v->status));
    buf_adds(out, "  ");
    text_clean(out, str_of(v->adapter), TEXT_LINE);
    buf_addf(out, "  %s  %s\n", v->scenario->name, text_duration(v->took, took));
    text_clean(&clean, str_of(v->why), TEXT_BLOCK);
    for (struct str rest = buf_str(&clean); rest.len > 0;) {
        struct str line = str_split(&rest, '\n');
        buf_adds(out, "    ");
        text_wrap(out, line, (struct text_shape) { 4, 6, terminal_text_width(term) });
        buf_adds(out, "\n");
    }
    if (v->dir != NULL) {
        buf_adds(out, "    kept: ");
        text_clean(out, str_of(v->dir), TEXT_LINE);
        buf_adds(out, "\n");
    }
}

static void add_sum(const struct kit_report *r, const struct terminal *term, struct buf *out)
{
    char took[TEXT_SHORT];
    CLEANUP(buf) struct buf counts = BUF_INIT(BUF_TEXT);
    add_counts(&counts, r->count);
    buf_adds(out, "\n");
    style_add(out, term->color, kit_failed(r) ? STYLE_BAD : STYLE_GOOD,
              counts.ptr == NULL ? "nothing to run" : counts.ptr);
    buf_addf(out, " in %s%s", text_duration(r->took, took), r->interrupted ? ", interrupted" : "");
    if (r->live) {
        buf_addf(out, ", cost $%.4f", r->cost_usd);
    }
    if (r->max_usd > 0) {
        buf_addf(out, " of $%.2f", r->max_usd);
    }
    buf_adds(out, "\n");
}

void ack_screen_report(struct arena *a, const struct kit_report *r, const struct terminal *t,
                       struct buf *out)
{
    add_matrix(a, r, t, out);
    /* What counts comes last: nearest to the eye. */
    static const enum verdict_status told[] = { VERDICT_FLAKY, VERDICT_EXPECTED, VERDICT_STALE,
                                                VERDICT_FAILED };
    for (size_t s = 0; s < ARRAY_LEN(told); s++) {
        for (size_t i = 0; i < r->len; i++) {
            if (r->verdicts[i].status == told[s]) {
                add_verdict(&r->verdicts[i], t, out);
            }
        }
    }
    for (size_t i = 0; i < r->stale_len; i++) {
        buf_adds(out, i == 0 ? "\n" : "");
        bool gone = i < r->gone_len;
        style_add(out, t->color, gone ? STYLE_BAD : STYLE_WARN, gone ? "stale" : "not run");
        buf_adds(out, "  ");
        text_clean(out, str_of(r->stale[i]), TEXT_LINE);
        buf_adds(out, "\n");
    }
    for (size_t i = 0; i < r->adapters_len; i++) {
        if (r->adapters[i].untested != NULL) {
            style_add(out, t->color, STYLE_WARN, "warning");
            buf_adds(out, ": ");
            text_clean(out, str_of(r->adapters[i].untested), TEXT_LINE);
            buf_adds(out, "\n");
        }
    }
    add_sum(r, t, out);
}

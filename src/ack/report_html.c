/* SPDX-License-Identifier: MIT
 *
 * The report as one page that needs nothing else: a row for each scenario, a column for each
 * adapter; a click on a cell shows what was found. No script: a cell is a link, and what it leads
 * to is shown by the style sheet (:target), so the page works wherever a CI server shows it.
 */
#include "ack/report.h"
#include "ack/report_priv.h"

static const char style[] =
    ":root{color-scheme:light dark;--ground:#fff;--ink:#1c2128;--soft:#656d76;--line:#d8dee4;"
    "--head:#f6f8fa;--good:#1a7f37;--good-bg:#dafbe1;--bad:#cf222e;--bad-bg:#ffebe9;--warn:#9a6700;"
    "--warn-bg:#fff8c5}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--ink:#e6edf3;--soft:#8d96a0;"
    "--line:#30363d;--head:#161b22;--good:#3fb950;--good-bg:#12261e;--bad:#f85149;"
    "--bad-bg:#2d1417;--warn:#d29922;--warn-bg:#272115}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;padding:24px 24px 45vh;background:var(--ground);color:var(--ink);"
    "font:14px/1.45 system-ui,sans-serif}\n"
    "h1{font-size:22px;margin:0 0 4px}p{margin:4px 0 16px;color:var(--soft)}\n"
    ".sum b{display:inline-block;margin-right:14px}\n"
    "table{border-collapse:separate;border-spacing:0}\n"
    "th,td{border-bottom:1px solid var(--line);padding:4px 8px;text-align:left;"
    "white-space:nowrap}\n"
    "thead th{position:sticky;top:0;background:var(--head);vertical-align:bottom;z-index:1;"
    "text-align:center}thead th:first-child{text-align:left}\n"
    "thead small,th small{color:var(--soft);font-weight:400;display:block}\n"
    "tbody th{font:13px ui-monospace,monospace;font-weight:400}\n"
    "tbody th small{font:12px/1.35 system-ui,sans-serif;white-space:normal;max-width:30em}\n"
    "tr.tier th{background:var(--head);font:600 13px system-ui,sans-serif}\n"
    "td{text-align:center;padding:0}td a{display:block;padding:8px;text-decoration:none}\n"
    "td a:hover{outline:2px solid var(--ink);outline-offset:-2px}\n"
    ".passed,.passed a{color:var(--good)}.failed,.failed a,.stale,.stale a{color:var(--bad)}\n"
    "td.passed{background:var(--good-bg)}td.failed,td.stale{background:var(--bad-bg);"
    "font-weight:700}\n"
    ".expected,.expected a,.flaky,.flaky a{color:var(--warn)}"
    "td.expected,td.flaky{background:var(--warn-bg)}\n"
    ".skipped,.skipped a{color:var(--soft)}\n"
    "article{display:none;position:fixed;left:0;right:0;bottom:0;max-height:42vh;overflow:auto;"
    "background:var(--head);border-top:2px solid var(--line);padding:12px 24px;"
    "box-shadow:0 -6px 24px #0004}\n"
    "article:target{display:block}article h2{font-size:15px;margin:0 0 6px}\n"
    "article.open{display:block;position:static;max-height:none;margin:8px 0;box-shadow:none;"
    "border:1px solid var(--line);border-left:4px solid var(--bad)}\n"
    "article.open .close{display:none}\n"
    "body>h2{font-size:17px;margin:24px 0 8px}\n"
    "@media(max-width:700px){tbody th{white-space:normal;overflow-wrap:anywhere;max-width:45vw}"
    "tbody th small{display:none}}\n"
    "article .close{float:right;color:inherit;text-decoration:none;padding:0 6px;font-size:18px}\n"
    "pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;"
    "font:13px/1.5 ui-monospace,monospace}\n";

static const char *mark(enum verdict_status s)
{
    static const char *const marks[VERDICT_COUNT] = {
        [VERDICT_PASSED] = "✓",     [VERDICT_FAILED] = "✗", [VERDICT_SKIPPED] = "–",
        [VERDICT_EXPECTED] = "(✗)", [VERDICT_STALE] = "✓!", [VERDICT_FLAKY] = "~",
    };
    return marks[s];
}

static void add(struct buf *b, const char *text)
{
    report_text(b, str_of(text), REPORT_XML);
}

static void add_seconds(struct buf *b, nsec t)
{
    buf_addf(b, "%lld.%llds", (long long)(t / NSEC_PER_SEC),
             (long long)(t / (NSEC_PER_SEC / 10) % 10));
}

static void add_head(struct buf *b, const struct kit_report *r)
{
    buf_adds(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width\">\n"
                "<title>cinch ack</title>\n<style>\n");
    buf_adds(b, style);
    buf_adds(b, "</style>\n</head>\n<body>\n<h1>Adapter compatibility</h1>\n<p>cinch " CINCH_VERSION
                ", ");
    add(b, r->started_at);
    buf_addf(b, ", %s, took ", r->live ? "real models" : "scripted model");
    add_seconds(b, r->took);
    buf_addf(b, "%s</p>\n<p class=\"sum\">", r->interrupted ? ", <b>interrupted</b>" : "");
    for (enum verdict_status s = 0; s < VERDICT_COUNT; s++) {
        if (r->count[s] > 0) {
            buf_addf(b, "<b class=\"%s\">%s %zu %s</b>", verdict_word(s), mark(s), r->count[s],
                     verdict_word(s));
        }
    }
    if (r->gone_len > 0) {
        buf_addf(b, "<b class=\"stale\">%s %zu expected, and not there</b>", mark(VERDICT_STALE),
                 r->gone_len);
    }
    buf_adds(b, "</p>\n<table>\n<thead><tr><th>scenario</th>");
    for (size_t i = 0; i < r->adapters_len; i++) {
        const struct kit_adapter *x = &r->adapters[i];
        buf_adds(b, "<th>");
        add(b, x->name);
        buf_adds(b, "<small>");
        add(b, x->available ? x->version : "not here");
        buf_adds(b, "</small></th>");
    }
    buf_adds(b, "</tr></thead>\n<tbody>\n");
}

static void add_row(struct buf *b, const struct kit_report *r, size_t row, size_t rows)
{
    const struct scenario *s = r->verdicts[row].scenario;
    if (row == 0 || r->verdicts[row - 1].scenario->tier != s->tier) {
        buf_addf(b, "<tr class=\"tier\"><th colspan=\"%zu\">tier %s</th></tr>\n",
                 r->adapters_len + 1, capability_tier_word(s->tier));
    }
    buf_adds(b, "<tr><th>");
    add(b, s->name);
    buf_adds(b, "<small>");
    add(b, s->summary == NULL ? "" : s->summary);
    buf_adds(b, "</small></th>");
    for (size_t i = row; i < r->len; i += rows) {
        const struct verdict *v = &r->verdicts[i];
        struct str rest = str_of(v->why);
        buf_addf(b, "<td class=\"%s\"><a href=\"#v%zu\" title=\"", verdict_word(v->status), i);
        report_text(b, str_of(verdict_word(v->status)), REPORT_ATTRIBUTE);
        buf_adds(b, rest.len > 0 ? ": " : "");
        report_text(b, str_split(&rest, '\n'), REPORT_ATTRIBUTE);
        buf_addf(b, "\">%s</a></td>", mark(v->status));
    }
    buf_adds(b, "</tr>\n");
}

static void add_finding(struct buf *b, const struct kit_report *r, size_t i)
{
    const struct verdict *v = &r->verdicts[i];
    buf_addf(b,
             "<article id=\"v%zu\"%s><a class=\"close\" href=\"#_\" title=\"close\">×</a>"
             "<h2>",
             i, verdict_is_failure(v->status) ? " class=\"open\"" : "");
    add(b, v->adapter);
    buf_adds(b, " · ");
    add(b, v->scenario->name);
    buf_addf(b, " · <span class=\"%s\">%s</span></h2>\n<pre>", verdict_word(v->status),
             verdict_word(v->status));
    add(b, v->why);
    if (v->took > 0) {
        buf_adds(b, v->why[0] == '\0' ? "took " : "\ntook ");
        add_seconds(b, v->took);
    }
    if (v->dir != NULL) {
        buf_adds(b, "\nkept: ");
        add(b, v->dir);
    }
    buf_adds(b, "</pre></article>\n");
}

/* Entries of the expected failures that name nothing: they fail the run as well. */
static void add_gone(struct buf *b, const struct kit_report *r)
{
    if (r->gone_len == 0) {
        return;
    }
    buf_adds(b, "<h2>What is expected, and not there</h2>\n<article class=\"open\"><pre>");
    for (size_t i = 0; i < r->gone_len; i++) {
        add(b, r->stale[i]);
        buf_adds(b, "\n");
    }
    buf_adds(b, "</pre></article>\n");
}

/* Those that failed stand below the table, to be read and printed; others are shown on request. */
static void add_findings(struct buf *b, const struct kit_report *r, bool failed)
{
    bool first = true;
    for (size_t i = 0; i < r->len; i++) {
        if (verdict_is_failure(r->verdicts[i].status) == failed) {
            buf_adds(b, first && failed ? "<h2>What failed</h2>\n" : "");
            add_finding(b, r, i);
            first = false;
        }
    }
}

int report_html(const struct kit_report *r, struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    size_t rows = r->adapters_len == 0 ? 0 : r->len / r->adapters_len;
    add_head(&b, r);
    for (size_t i = 0; i < rows; i++) {
        add_row(&b, r, i, rows);
    }
    buf_adds(&b, "</tbody>\n</table>\n");
    add_gone(&b, r);
    add_findings(&b, r, true);
    add_findings(&b, r, false);
    buf_adds(&b, "</body>\n</html>\n");
    return buf_append(out, buf_str(&b), e);
}

/* SPDX-License-Identifier: MIT
 *
 * The report for CI: one suite for each adapter, one case for each scenario. What a file of
 * expected failures excuses is a skipped case, since JUnit has no word for it.
 */
#include "ack/report.h"
#include "ack/report_priv.h"

static void add_attribute(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, " %s=\"", name);
    report_text(out, str_of(value), REPORT_ATTRIBUTE);
    buf_adds(out, "\"");
}

static void add_time(struct buf *out, nsec t)
{
    buf_addf(out, " time=\"%lld.%03lld\"", (long long)(t / NSEC_PER_SEC),
             (long long)(t / NSEC_PER_MS % 1000));
}

static void add_case(struct buf *out, const struct verdict *v)
{
    struct str rest = str_of(v->why);
    struct str line = str_split(&rest, '\n');
    CLEANUP(buf) struct buf first = BUF_INIT(BUF_TEXT);
    buf_addf(&first, "%s%s%.*s", verdict_word(v->status), line.len == 0 ? "" : ": ", STR_ARG(line));
    buf_adds(out, "    <testcase");
    add_attribute(out, "name", v->scenario->name);
    buf_adds(out, " classname=\"ack.");
    report_text(out, str_of(v->adapter), REPORT_ATTRIBUTE);
    buf_adds(out, "\"");
    add_time(out, v->took);
    if (v->status == VERDICT_PASSED) {
        buf_adds(out, "/>\n");
        return;
    }
    const char *tag = verdict_is_failure(v->status) ? "failure" : "skipped";
    buf_addf(out, ">\n      <%s", tag);
    add_attribute(out, "message", first.ptr);
    buf_adds(out, ">");
    report_text(out, str_of(v->why), REPORT_XML);
    if (v->dir != NULL) {
        buf_adds(out, "\nkept: ");
        report_text(out, str_of(v->dir), REPORT_XML);
    }
    buf_addf(out, "</%s>\n    </testcase>\n", tag);
}

struct tally {
    size_t tests, failures, skipped;
    nsec took;
};

/* Of one adapter, or of all (NULL). */
static struct tally count(const struct kit_report *r, const char *adapter)
{
    struct tally t = { 0 };
    for (size_t i = 0; i < r->len; i++) {
        const struct verdict *v = &r->verdicts[i];
        if (adapter == NULL || v->adapter == adapter) {
            bool failed = verdict_is_failure(v->status);
            t.tests++;
            t.failures += failed;
            t.skipped += !failed && v->status != VERDICT_PASSED;
            t.took += v->took;
        }
    }
    return t;
}

static void add_tally(struct buf *out, struct tally t)
{
    buf_addf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"", t.tests,
             t.failures, t.skipped);
    add_time(out, t.took);
}

/* Entries for scenarios that do not exist fail the whole, and so must be seen. */
static void add_gone(struct buf *out, const struct kit_report *r)
{
    if (r->gone_len == 0) {
        return;
    }
    buf_adds(out, "  <testsuite name=\"expected failures\"");
    add_tally(out, (struct tally) { .tests = r->gone_len, .failures = r->gone_len });
    buf_adds(out, ">\n");
    for (size_t i = 0; i < r->gone_len; i++) {
        buf_adds(out, "    <testcase classname=\"ack.expected\"");
        add_attribute(out, "name", r->stale[i]);
        buf_adds(out, " time=\"0.000\">\n      <failure message=\"stale\">");
        report_text(out, str_of(r->stale[i]), REPORT_XML);
        buf_adds(out, "</failure>\n    </testcase>\n");
    }
    buf_adds(out, "  </testsuite>\n");
}

int report_junit(const struct kit_report *r, struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct tally all = count(r, NULL);
    all.tests += r->gone_len;
    all.failures += r->gone_len;
    buf_adds(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"cinch ack\"");
    add_tally(&b, all);
    buf_adds(&b, ">\n");
    for (size_t i = 0; i < r->adapters_len; i++) {
        const struct kit_adapter *x = &r->adapters[i];
        buf_adds(&b, "  <testsuite");
        add_attribute(&b, "name", x->name);
        add_tally(&b, count(r, x->name));
        add_attribute(&b, "timestamp", r->started_at);
        buf_adds(&b, ">\n    <properties><property name=\"version\"");
        add_attribute(&b, "value", x->version == NULL ? "" : x->version);
        buf_adds(&b, "/></properties>\n");
        for (size_t j = 0; j < r->len; j++) {
            if (r->verdicts[j].adapter == x->name) {
                add_case(&b, &r->verdicts[j]);
            }
        }
        buf_adds(&b, "  </testsuite>\n");
    }
    add_gone(&b, r);
    buf_adds(&b, "</testsuites>\n");
    return buf_append(out, buf_str(&b), e);
}

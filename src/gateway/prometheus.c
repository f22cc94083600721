/* SPDX-License-Identifier: MIT
 *
 * Counters for Prometheus.
 */
#include "gateway/prometheus.h"

#include "base/macro.h"

void metrics_call(struct metrics *m, enum llm_format f, int status, nsec took)
{
    size_t class = status < 0 || status > 599 ? 0 : (size_t)status / 100;
    if ((size_t)f < LLM_FORMAT_MAX) {
        m->requests[f][class]++;
    }
    m->duration_sum += took;
}

static uint64_t said(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

void metrics_usage(struct metrics *m, const struct llm_usage *u, bool estimated)
{
    m->estimated_input += estimated ? said(u->input) : 0;
    m->estimated_output += estimated ? said(u->output) : 0;
    m->tokens_input += said(u->input);
    m->tokens_output += said(u->output);
    m->tokens_cache_read += said(u->cache_read);
    m->tokens_cache_write += said(u->cache_write);
}

struct row {
    const char *name;
    const char *type;
    const char *help;
    uint64_t value;
};

static int write_row(const struct row *r, struct buf *out, struct err *e)
{
    return buf_printf(out, e, "# HELP cinch_%s %s\n# TYPE cinch_%s %s\ncinch_%s %llu\n", r->name,
                      r->help, r->name, r->type, r->name, (unsigned long long)r->value);
}

static int write_requests(const struct metrics *m, struct buf *out, struct err *e)
{
    int rc = buf_printf(out, e,
                        "# HELP cinch_requests_total Model calls that are over.\n"
                        "# TYPE cinch_requests_total counter\n");
    for (int f = 0; f < LLM_FORMAT_MAX && rc == 0; f++) {
        for (int class = 0; class < METRICS_CLASSES && rc == 0; class ++) {
            if (m->requests[f][class] > 0) {
                rc = buf_printf(out, e, "cinch_requests_total{format=\"%s\",status=\"%s\"} %llu\n",
                                llm_format_name((enum llm_format)f),
                                class == 0 ? "gone"
                                           : (const char *const[]) { "", "1xx", "2xx", "3xx", "4xx",
                                                                     "5xx" }[class],
                                (unsigned long long)m->requests[f][class]);
            }
        }
    }
    return rc;
}

static int write_tokens(const struct metrics *m, struct buf *out, struct err *e)
{
    return buf_printf(
        out, e,
        "# HELP cinch_tokens_total Tokens that calls were charged.\n"
        "# TYPE cinch_tokens_total counter\n"
        "cinch_tokens_total{kind=\"input\"} %llu\n"
        "cinch_tokens_total{kind=\"output\"} %llu\n"
        "cinch_tokens_total{kind=\"cache_read\"} %llu\n"
        "cinch_tokens_total{kind=\"cache_write\"} %llu\n"
        "# HELP cinch_tokens_estimated_total Those of calls whose usage is an "
        "estimate.\n"
        "# TYPE cinch_tokens_estimated_total counter\n"
        "cinch_tokens_estimated_total{kind=\"input\"} %llu\n"
        "cinch_tokens_estimated_total{kind=\"output\"} %llu\n"
        "# HELP cinch_call_seconds_total Time spent in model calls.\n"
        "# TYPE cinch_call_seconds_total counter\n"
        "cinch_call_seconds_total %.6f\n",
        (unsigned long long)m->tokens_input, (unsigned long long)m->tokens_output,
        (unsigned long long)m->tokens_cache_read, (unsigned long long)m->tokens_cache_write,
        (unsigned long long)m->estimated_input, (unsigned long long)m->estimated_output,
        (double)m->duration_sum / (double)NSEC_PER_SEC);
}

int metrics_write(const struct metrics *m, size_t connections, struct buf *out, struct err *e)
{
    const struct row rows[] = {
        { "refused_total", "counter", "Requests refused by the door or a filter.", m->refused },
        { "retries_total", "counter", "Attempts that were repeated.", m->retries },
        { "fallbacks_total", "counter", "Calls that went on at another upstream.", m->fallbacks },
        { "bodies_spilled_total", "counter", "Bodies of requests that memory had no room for.",
          m->spilled },
        { "upstream_errors_total", "counter", "Attempts without an answer.", m->upstream_errors },
        { "translated_total", "counter", "Calls between two formats.", m->translated },
        { "request_bytes_total", "counter", "Bytes of request bodies.", m->bytes_in },
        { "answer_bytes_total", "counter", "Bytes of answers.", m->bytes_out },
        { "egress_total", "counter", "Proxied connections.", m->egress },
        { "egress_denied_total", "counter", "Proxied connections that were refused.",
          m->egress_denied },
        { "connections_total", "counter", "Connections accepted.", m->connections_total },
        { "connections", "gauge", "Connections open.", connections },
        { "calls_in_flight", "gauge", "Model calls under way.", m->in_flight },
        { "calls_draining", "gauge", "Model calls whose client left, read for their usage.",
          m->draining },
    };
    int rc = write_requests(m, out, e);
    rc = rc < 0 ? rc : write_tokens(m, out, e);
    for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++) {
        rc = write_row(&rows[i], out, e);
    }
    return rc;
}

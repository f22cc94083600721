/* SPDX-License-Identifier: MIT
 *
 * Answers that the gateway gives by itself. Errors have the shape of the client's format, so that
 * a harness shows the message and knows whether to try again.
 */
#include <stdio.h>

#include "base/macro.h"
#include "gateway/gateway_priv.h"

enum llm_format respond_format(const struct http_head *head)
{
    struct llm_endpoint ep = llm_endpoint_of(head->method, head->target);
    if (ep.call == LLM_CALL_GENERATE || ep.call == LLM_CALL_COUNT) {
        return ep.format;
    }
    if (http_find(&head->fields, "anthropic-version") != NULL ||
        http_find(&head->fields, "x-api-key") != NULL) {
        return LLM_ANTHROPIC;
    }
    if (http_find(&head->fields, "x-goog-api-key") != NULL) {
        return LLM_GEMINI;
    }
    return ep.call == LLM_CALL_NONE ? LLM_CHAT : ep.format;
}

static void send_whole(struct connection *c, int status, const struct http_fields *fields,
                       struct str body)
{
    connection_head(c, status, fields, (int64_t)body.len);
    connection_data(c, body);
    connection_end(c);
}

void respond_text(struct connection *c, int status, const char *type, struct str body)
{
    const struct http_field field = { STR("Content-Type"), str_of(type) };
    send_whole(c, status, &(struct http_fields) { &field, 1 }, body);
}

static struct str seconds_text(nsec t, char out[24])
{
    int64_t s = (t + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
    (void)snprintf(out, 24, "%lld", (long long)s);
    return str_of(out);
}

void respond_error(struct connection *c, enum llm_format f, const struct refusal *r)
{
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    const struct llm_error error = { .kind = r->kind, .status = r->status, .message = r->message };
    struct http_field fields[5] = { { STR("Content-Type"), STR("application/json") } };
    size_t n = 1;
    char after[24];
    if (r->retry_after > 0) {
        fields[n++] =
            (struct http_field) { STR("Retry-After"), seconds_text(r->retry_after, after) };
    }
    if (r->reason != NULL) {
        fields[n++] = (struct http_field) { STR("X-Cinch-Reason"), str_of(r->reason) };
    }
    if (r->limit != NULL) {
        fields[n++] = (struct http_field) { STR("X-Cinch-Limit"), str_of(r->limit) };
    }
    if (r->reason != NULL || r->kind == LLM_ERR_QUOTA) {
        /* Clients of OpenAI and Anthropic obey this before they look at the body. */
        fields[n++] = (struct http_field) { STR("x-should-retry"), STR("false") };
    }
    if (llm_error_write(f, &error, &body, NULL) < 0) {
        buf_reset(&body);
    }
    send_whole(c, r->status, &(struct http_fields) { fields, n }, buf_str(&body));
}

void respond_challenge(struct connection *c, const struct refusal *r)
{
    const struct http_field fields[] = {
        { STR("Content-Type"), STR("text/plain") },
        { STR("Proxy-Authenticate"), STR("Basic realm=\"cinch\"") },
    };
    send_whole(c, 407, &(struct http_fields) { fields, ARRAY_LEN(fields) }, r->message);
}

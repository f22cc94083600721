/* SPDX-License-Identifier: MIT
 *
 * The proxy: CONNECT and absolute-form requests to hosts that the rules allow. The name is looked
 * up here, the address is checked, and that very address is connected to: what the name points at a
 * moment later does not matter.
 *
 * An absolute-form request is sent on with "Connection: close" and its answer passed back unread,
 * so the client's connection ends with it.
 *
 * Some clients ask the proxy for everything, the gateway itself included: a CONNECT to it is
 * answered, and the same connection goes on as if it had just begun. (Of the absolute form only the
 * path is left, see exchange.c.)
 */
#include "gateway/proxy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/macro.h"
#include "gateway/admit.h"
#include "gateway/gateway_priv.h"
#include "io/dial.h"
#include "io/stream.h"

#define CONNECT_TIME (15 * NSEC_PER_SEC)
#define EARLY_MAX    ((size_t)1 << 20) /* what a client may send before the far side answers */
#define QUEUE_MAX    ((size_t)1 << 20)
#define QUEUE_MARK   ((size_t)256 << 10)

struct tunnel {
    struct gateway *g;
    struct connection *c;
    char *host;
    int port;
    bool plain; /* absolute form, not CONNECT */
    struct resolve *resolve;
    struct dial *dial;
    struct stream *far;
    struct buf early; /* for the far side, until it is connected */
    size_t counted;   /* of the gateway's body_bytes */
    uint64_t from_client, to_client;
    bool client_ended, far_ended, moved, over;
};

/* --- ends --- */

static void destroy(void *arg)
{
    struct tunnel *t = arg;
    buf_done(&t->early);
    free(t->host);
    free(t);
}

void tunnel_free(struct tunnel *t)
{
    t->over = true;
    t->g->body_bytes -= t->counted;
    t->resolve = resolve_free(t->resolve);
    t->dial = dial_free(t->dial);
    if (t->far != NULL) {
        gateway_tell(t->g, &(struct gateway_event) { .kind = GATEWAY_EGRESS,
                                                     .host = str_of(t->host),
                                                     .port = t->port,
                                                     .bytes_in = t->from_client,
                                                     .bytes_out = t->to_client });
    }
    t->far = stream_free(t->far);
    loop_retire(t->g->loop, destroy, t);
}

bool tunnel_moved(struct tunnel *t)
{
    bool moved = t->moved;
    t->moved = false;
    return moved;
}

static void close_if_over(struct tunnel *t)
{
    if (t->client_ended && t->far_ended) {
        connection_raw_end(t->c, true);
    }
}

static void tell_denied(struct gateway *g, struct str host, int port, const char *why)
{
    g->metrics.egress_denied++;
    gateway_tell(
        g,
        &(struct gateway_event) {
            .kind = GATEWAY_EGRESS_DENIED, .status = 403, .host = host, .port = port, .why = why });
}

/* The client has no answer yet: a whole one, then the end. */
static void give_up(struct tunnel *t, int status, const char *why)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_addf(&text,
             "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n%s\n",
             status, http_reason(status), strlen(why) + 1, why);
    LOG_DEBUG("gateway", "egress_failed", LOG_STR("host", t->host), LOG_STR("why", why));
    (void)!connection_raw(t->c, buf_str(&text));
    t->far_ended = true;
    connection_raw_end(t->c, false);
    close_if_over(t);
}

/* --- bytes --- */

static void far_bytes(void *arg, struct str chunk)
{
    struct tunnel *t = arg;
    t->to_client += chunk.len;
    t->moved = true;
    if (connection_raw(t->c, chunk) < 0) {
        connection_raw_end(t->c, true);
    } else if (connection_congested(t->c)) {
        stream_pause(t->far);
    }
}

static void far_end(void *arg, const struct err *why)
{
    struct tunnel *t = arg;
    if (why != NULL) {
        connection_raw_end(t->c, true);
        return;
    }
    t->far_ended = true;
    connection_raw_end(t->c, false);
    close_if_over(t);
}

static void far_drained(void *arg)
{
    struct tunnel *t = arg;
    connection_hold(t->c, false);
}

void tunnel_from_client(struct tunnel *t, struct str bytes)
{
    t->moved = true;
    if (t->far_ended) {
        return;
    }
    t->from_client += bytes.len;
    if (t->far == NULL) {
        connection_hold(t->c, true); /* goes on when the far side is there */
        if (t->plain || buf_append(&t->early, bytes, NULL) < 0) {
            connection_raw_end(t->c, true); /* a second request behind the one that closes */
        }
        return;
    }
    if (t->plain) {
        return;
    }
    if (stream_write(t->far, &bytes, 1, NULL) < 0) {
        connection_raw_end(t->c, true);
    } else if (stream_queued(t->far) > QUEUE_MARK) {
        connection_hold(t->c, true);
    }
}

void tunnel_client_ended(struct tunnel *t)
{
    t->client_ended = true;
    if (t->far == NULL) {
        connection_raw_end(t->c, true);
        return;
    }
    if (t->plain) {
        connection_raw_end(t->c, true); /* nobody is left to read the answer */
        return;
    }
    stream_finish(t->far);
    close_if_over(t);
}

void tunnel_client_drained(struct tunnel *t)
{
    if (t->far != NULL) {
        stream_resume(t->far);
    }
}

/* --- connecting --- */

static void on_dialled(void *arg, int fd, const struct err *why)
{
    struct tunnel *t = arg;
    struct err e;
    const struct stream_opts o = { .max = QUEUE_MAX,
                                   .port = { far_bytes, far_end, far_drained, t } };
    if (why != NULL) {
        give_up(t, why->code == ERR_TIMEOUT ? 504 : 502, why->msg);
        return;
    }
    if (stream_new(t->g->loop, fd, &o, &t->far, &e) < 0) {
        cleanup_fd(&fd);
        give_up(t, 502, e.msg);
        return;
    }
    t->g->metrics.egress++;
    if (!t->plain) {
        (void)!connection_raw(t->c, CONNECTED);
    }
    struct str early = buf_str(&t->early);
    if (early.len > 0) {
        (void)!stream_write(t->far, &early, 1, NULL);
    }
    buf_done(&t->early);
    connection_hold(t->c, stream_queued(t->far) > QUEUE_MARK);
}

static void on_resolved(void *arg, const struct address *found, size_t n, const struct err *why)
{
    struct tunnel *t = arg;
    struct err e;
    if (why != NULL) {
        give_up(t, 502, why->msg);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (proxy_rules_allow_address(t->g->opts.egress, &found[i], t->port)) {
            const struct dial_opts o = {
                .to = found[i], .deadline = clock_now() + CONNECT_TIME, .fn = on_dialled, .arg = t
            };
            if (dial_start(t->g->loop, &o, &t->dial, &e) < 0) {
                give_up(t, 502, e.msg);
            }
            return;
        }
    }
    tell_denied(t->g, str_of(t->host), t->port, "the name points at an address that is not public");
    give_up(t, 403, "this host is at an address that the gateway does not connect to");
}

/* --- the start --- */

static int write_plain(struct tunnel *t, const struct exchange *x, struct str authority,
                       struct str path, struct err *e)
{
    const struct http_fields *f = &x->head->fields;
    struct buf *out = &t->early;
    CLEANUP(buf) struct buf target = BUF_INIT(HTTP_HEAD_MAX + 1);
    int rc = path.len > 0 && path.ptr[0] == '/' ? 0 : buf_append(&target, STR("/"), e);
    rc = rc < 0 ? rc : buf_append(&target, path, e);
    rc = rc < 0 ? rc : http_write_request(x->head->method, buf_str(&target), out, e);
    rc = rc < 0 ? rc : http_write_field(STR("Host"), authority, out, e);
    for (size_t i = 0; rc == 0 && i < f->len; i++) {
        struct str name = f->items[i].name;
        bool ours = http_is_hop_by_hop(f, name) || http_name_is(name, "host") ||
                    http_name_is(name, "content-length") || http_name_is(name, "expect");
        rc = ours ? 0 : http_write_field(name, f->items[i].value, out, e);
    }
    if (rc == 0 && (x->body.len > 0 || x->head->length == 0 || x->head->chunked)) {
        rc = http_write_length(x->body.len, out, e);
    }
    rc = rc < 0 ? rc : buf_append(out, STR("Connection: close\r\n\r\n"), e);
    return rc < 0 ? rc : buf_append(out, body_str(&x->body), e);
}

static void refuse(struct exchange *x, int status, const char *why)
{
    exchange_refuse(
        x, NULL,
        &(struct refusal) { .status = status,
                            .kind = status == 403 ? LLM_ERR_PERMISSION : LLM_ERR_INVALID,
                            .message = str_of(why) });
}

static struct tunnel *new_tunnel(struct exchange *x, struct str host, int port)
{
    struct tunnel *t = xcalloc(1, sizeof *t);
    t->g = x->g;
    t->c = x->c;
    t->plain = x->kind == EXCHANGE_PROXY;
    t->host = xmalloc(host.len + 1);
    memcpy(t->host, host.ptr, host.len);
    t->host[host.len] = '\0';
    t->port = port;
    t->from_client = x->body.len;
    buf_init(&t->early, EARLY_MAX + x->body.len + HTTP_HEAD_MAX);
    return t;
}

void tunnel_start(struct exchange *x)
{
    struct gateway *g = x->g;
    struct connection *c = x->c;
    struct str authority = x->head->target, path = STR_EMPTY, host;
    bool plain = x->kind == EXCHANGE_PROXY;
    int port;
    struct err e;
    if ((plain && !proxy_split_url(x->head->target, &authority, &path)) ||
        !proxy_split_authority(authority, plain ? 80 : 0, &host, &port)) {
        refuse(x, 400, "the target of the proxy request is malformed");
        return;
    }
    if (!plain && gateway_is_at(g, host, port)) {
        exchange_release(x);
        connection_start_over(c);
        return;
    }
    if (!proxy_rules_allow_host(g->opts.egress, host, port)) {
        tell_denied(g, host, port, "not on the list of allowed hosts");
        refuse(x, 403, "this host is not on the gateway's list");
        return;
    }
    struct tunnel *t = new_tunnel(x, host, port);
    int rc = plain ? write_plain(t, x, authority, path, &e) : 0;
    rc = rc < 0 ? rc : resolve_start(g->loop, t->host, port, on_resolved, t, &t->resolve);
    if (rc < 0) {
        destroy(t);
        refuse(x, 502, "the proxy request cannot be sent on");
        return;
    }
    t->counted = t->early.len;
    g->body_bytes += t->counted;
    exchange_release(x);
    connection_become_tunnel(c, t);
}

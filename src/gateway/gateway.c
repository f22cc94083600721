/* SPDX-License-Identifier: MIT
 *
 * The gateway as a whole: listeners, the list of connections, starting and stopping.
 */
#include "gateway/gateway.h"

#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/macro.h"
#include "gateway/admit.h"
#include "gateway/gateway_priv.h"
#include "io/listener.h"

static void fill_limits(struct gateway_limits *l)
{
    l->body = l->body != 0 ? l->body : (size_t)64 << 20;
    l->bodies = l->bodies != 0 ? l->bodies : (size_t)256 << 20;
    l->memory = l->memory != 0 ? l->memory : (size_t)6 << 20;
    l->connections = l->connections != 0 ? l->connections : 512;
    l->head = l->head != 0 ? l->head : 10 * NSEC_PER_SEC;
    l->stall = l->stall != 0 ? l->stall : 60 * NSEC_PER_SEC;
    l->idle = l->idle != 0 ? l->idle : 120 * NSEC_PER_SEC;
}

/* --- memory --- */

/* Bodies come and go. Memory that goes back to the system with each of them must be had again page
 * by page: measured, 30 % of the CPU time of calls with 200 KB from 32 clients. So malloc() keeps
 * what it has, within the bound for bodies, … */
static void keep_memory(const struct gateway_limits *l)
{
    (void)mallopt(M_MMAP_THRESHOLD, 2 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, l->memory < INT_MAX ? (int)l->memory : INT_MAX);
}

/* … until none has come for a while. */
#define REST_TIME    NSEC_PER_SEC
#define RELEASED_MIN ((size_t)1 << 20)

static void free_spare(struct gateway *g)
{
    while (g->n_spare > 0) {
        (void)arena_free(g->spare[--g->n_spare]);
    }
}

static void on_rest(void *arg)
{
    struct gateway *g = arg;
    if (g->body_bytes == 0) {
        g->released = 0;
        free_spare(g);
        (void)malloc_trim(0);
    }
}

void gateway_rest(struct gateway *g)
{
    if (g->body_bytes == 0 && g->released >= RELEASED_MIN) {
        timer_arm(g->rest, clock_now() + REST_TIME);
    }
}

/* --- connections --- */

static void on_connection(void *arg, int fd)
{
    struct gateway *g = arg;
    if (g->n_connections >= g->opts.limits.connections && !connection_make_room(g)) {
        static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                                   "Retry-After: 1\r\nConnection: close\r\n\r\n";
        (void)send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        cleanup_fd(&fd);
        g->metrics.refused++;
        return;
    }
    g->metrics.connections_total++;
    connection_start(g, fd);
}

/* 0: it is no TCP socket. */
static int port_of(int fd)
{
    struct sockaddr_storage a = { 0 };
    socklen_t len = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0) {
        return 0;
    }
    if (a.ss_family == AF_INET6) {
        return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
    }
    return a.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&a)->sin_port) : 0;
}

bool gateway_is_at(const struct gateway *g, struct str host, int port)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++) {
        if (port != 0 && g->ports[i] == port && admit_is_here(host)) {
            return true;
        }
    }
    return false;
}

/* Does it matter what stands in a body? Without filters and with one route it is not looked at. */
static bool needs_scan(const struct gateway_opts *o)
{
    const struct gateway_route *first = o->n_routes > 0 ? &o->routes[0] : NULL;
    bool one_for_all =
        first != NULL && str_eqc(str_of(first->pattern), "*") && first->model == NULL;
    return o->n_filters > 0 || !one_for_all;
}

int gateway_open(struct loop *l, const struct gateway_opts *opts, struct gateway **ret,
                 struct err *e)
{
    struct gateway *g = xcalloc(1, sizeof *g);
    size_t taken = 0;
    g->loop = l;
    g->opts = *opts;
    g->metrics.started = clock_now();
    g->need_scan = needs_scan(opts);
    auxiliary_init(&g->side);
    for (size_t i = 0; i < opts->n_routes; i++) {
        g->n_models += opts->routes[i].pattern != NULL ? 1 : 0;
    }
    g->own_store = opts->store == NULL ? llm_store_new(0) : NULL;
    g->store = opts->store == NULL ? g->own_store : opts->store;
    fill_limits(&g->opts.limits);
    g->room = (struct body_room) { .bound = g->opts.limits.memory, .dir = opts->spill_dir };
    queue_init(&g->turns, l, &g->room);
    keep_memory(&g->opts.limits);
    int rc = opts->n_listeners > LISTENERS_MAX || opts->n_filters > FILTERS_MAX
                 ? ERR(e, ERR_LIMIT, "too many listeners or filters")
                 : timer_new(l, on_rest, g, &g->rest, e);
    while (rc == 0 && taken < opts->n_listeners) {
        g->ports[taken] = port_of(opts->listeners[taken]);
        rc = listener_new(l, opts->listeners[taken], on_connection, g, &g->listeners[taken], e);
        taken += rc == 0 ? 1 : 0;
    }
    for (; rc < 0 && taken < opts->n_listeners; taken++) {
        int fd = opts->listeners[taken];
        cleanup_fd(&fd);
    }
    if (rc < 0) {
        (void)gateway_free(g);
        return rc;
    }
    *ret = g;
    return 0;
}

static void stop_listening(struct gateway *g)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++) {
        g->listeners[i] = listener_free(g->listeners[i]);
    }
}

static bool is_quiet(const struct gateway *g)
{
    return g->n_draining == 0 && (g->only_drains || g->n_connections == 0);
}

static void tell_stopped(void *arg)
{
    struct gateway *g = arg;
    void (*fn)(void *) = g->on_stopped;
    if (fn != NULL && is_quiet(g)) {
        g->on_stopped = NULL;
        fn(g->stopped_arg);
    }
}

static void check_stopped(struct gateway *g)
{
    if (g->stopping && is_quiet(g)) {
        loop_post(g->loop, tell_stopped, g);
    }
}

void gateway_connection_over(struct gateway *g)
{
    g->n_connections--;
    check_stopped(g);
}

/* --- responses without a client --- */

void gateway_join_draining(struct gateway *g, struct exchange *x)
{
    struct exchange **at = &g->draining;
    while (*at != NULL) {
        at = &(*at)->next_draining;
    }
    *at = x;
    g->n_draining++;
    if (g->n_draining > g->opts.limits.connections) {
        exchange_finish(g->draining, false);
    }
}

void gateway_leave_draining(struct gateway *g, struct exchange *x)
{
    struct exchange **at = &g->draining;
    while (*at != NULL && *at != x) {
        at = &(*at)->next_draining;
    }
    if (*at == x) {
        *at = TAKE_PTR(x->next_draining);
        g->n_draining--;
        check_stopped(g);
    }
}

static void close_all(struct gateway *g)
{
    g->closing = true;
    connection_free_all(g);
    while (g->draining != NULL) {
        exchange_finish(g->draining, false);
    }
}

static void on_grace_over(void *arg)
{
    close_all(arg);
}

static void wait_until_quiet(struct gateway *g, nsec limit, void (*fn)(void *arg), void *arg)
{
    struct err e;
    g->on_stopped = fn;
    g->stopped_arg = arg;
    g->grace = timer_free(g->grace);
    if (is_quiet(g)) {
        loop_post(g->loop, tell_stopped, g);
    } else if (timer_new(g->loop, on_grace_over, g, &g->grace, &e) == 0) {
        timer_arm(g->grace, clock_now() + limit);
    } else {
        close_all(g);
    }
}

void gateway_stop(struct gateway *g, nsec grace, void (*fn)(void *arg), void *arg)
{
    g->stopping = true;
    stop_listening(g);
    connection_close_idle(g);
    wait_until_quiet(g, grace, fn, arg);
}

bool gateway_drain(struct gateway *g, nsec limit, void (*fn)(void *arg), void *arg)
{
    stop_listening(g);
    connection_close_models(g);
    g->stopping = true;
    g->only_drains = true;
    if (is_quiet(g)) {
        return false;
    }
    wait_until_quiet(g, limit, fn, arg);
    return true;
}

void gateway_give_up(struct gateway *g)
{
    if (g->on_stopped != NULL) {
        close_all(g);
    }
}

/* Retired after its exchanges, which gave their arenas back. */
static void destroy(void *arg)
{
    struct gateway *g = arg;
    free_spare(g);
    g->own_store = llm_store_free(g->own_store);
    free(g);
}

struct gateway *gateway_free(struct gateway *g)
{
    if (g != NULL) {
        g->on_stopped = NULL;
        stop_listening(g);
        close_all(g);
        queue_done(&g->turns);
        g->rest = timer_free(g->rest);
        g->grace = timer_free(g->grace);
        loop_retire(g->loop, destroy, g);
    }
    return NULL;
}

size_t gateway_calls(const struct gateway *g)
{
    return g->metrics.in_flight;
}

size_t gateway_connections(const struct gateway *g)
{
    return g->n_connections;
}

void gateway_tell(struct gateway *g, const struct gateway_event *ev)
{
    if (g->opts.port.on_event != NULL) {
        g->opts.port.on_event(g->opts.port.arg, ev);
    }
}

static void wake_one(struct gateway *g)
{
    struct exchange *x = g->waiting;
    g->waiting = x->next_waiting;
    x->next_waiting = NULL;
    x->is_waiting = false;
    attempt_wake(x);
}

static void wake_waiting(void *arg)
{
    struct gateway *g = arg;
    size_t n = 0;
    for (struct exchange *x = g->waiting; x != NULL; x = x->next_waiting) {
        n++;
    }
    /* Who must go on waiting stands at the end of the list again. */
    for (; n > 0 && g->waiting != NULL; n--) {
        wake_one(g);
    }
}

void gateway_wake(struct gateway *g)
{
    if (g->waiting != NULL) {
        loop_post(g->loop, wake_waiting, g);
    }
}

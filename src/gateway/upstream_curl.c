/* SPDX-License-Identifier: MIT
 *
 * libcurl's multi interface on our loop: curl says which sockets and which moment it waits for, we
 * tell it when. Its callbacks run inside curl, where a transfer must not be removed: whatever ends
 * one is posted to the loop.
 *
 * The library is loaded when the first upstream needs it: with everything that it brings along
 * (TLS, LDAP, Kerberos …) it would take several milliseconds of every start of cinch, most of which
 * have no use for it.
 */
#include "gateway/upstream_curl.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/macro.h"
#include "gateway/provider.h"
#include "gateway/upstream_http.h"
#include "io/loop.h"
#include "io/timer.h"
#include "io/watch.h"

#define FIELDS_MAX     HTTP_FIELDS_MAX
#define SPARE_MAX      32 /* easy handles kept for the next calls */
#define RECEIVE_BUFFER 65536L

#define CURL_LIBRARY "libcurl.so.4"

#define CURL_CALLS(X)      \
    X(easy_cleanup)        \
    X(easy_getinfo)        \
    X(easy_init)           \
    X(easy_pause)          \
    X(easy_reset)          \
    X(easy_setopt)         \
    X(easy_strerror)       \
    X(global_init)         \
    X(multi_add_handle)    \
    X(multi_assign)        \
    X(multi_cleanup)       \
    X(multi_info_read)     \
    X(multi_init)          \
    X(multi_remove_handle) \
    X(multi_setopt)        \
    X(multi_socket_action) \
    X(slist_append)        \
    X(slist_free_all)

/* The functions of the library, under their names without "curl_". */
struct curl_calls {
#define X(name) __typeof__(&curl_##name) name;
    CURL_CALLS(X)
#undef X
};

struct curl_upstream {
    struct upstream base;
    struct curl_calls curl;
    struct loop *loop;
    CURLM *multi;
    struct timer *timer;
    bool kick_posted;
    bool send_once;
    char *name, *unix_socket, *ca_file;
    struct provider provider;
    nsec connect, first_byte, idle;
    CURL *spare[SPARE_MAX];
    size_t n_spare;
    struct socket_watch *watches; /* a list */
    struct upstream_call *calls;  /* a list */
    bool freed;
};

struct socket_watch {
    struct curl_upstream *up;
    struct watch *watch;
    curl_socket_t fd;
    struct socket_watch *prev, *next;
};

struct upstream_call {
    struct curl_upstream *up;
    struct upstream_port port;
    CURL *easy;
    struct curl_slist *fields;
    struct timer *deadline;
    struct upstream_call *prev, *next;
    struct buf head; /* lines of the answer's head, without their ends, each with a NUL */
    size_t n_lines;
    size_t body_len;
    int status;
    bool head_told, paused, held, over, timed_out;
    char error[CURL_ERROR_SIZE];
};

static void kick(struct curl_upstream *up, curl_socket_t fd, int what);

/* It stays loaded for good: a TLS library does not take well to being unloaded. */
static int load_curl(struct curl_calls *ret, struct err *e)
{
    void *library = dlopen(CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return ERR(e, ERR_UNAVAILABLE, "https needs libcurl: %s; install it (libcurl4)", dlerror());
    }
#define X(name)                                                                           \
    *(void **)&ret->name = dlsym(library, "curl_" #name);                                 \
    if (ret->name == NULL) {                                                              \
        return ERR(e, ERR_UNAVAILABLE, CURL_LIBRARY " has no curl_" #name "; update it"); \
    }
    CURL_CALLS(X)
#undef X
    return 0;
}

/* --- the end of a call --- */

static void release(struct upstream_call *c)
{
    struct curl_upstream *up = c->up;
    (void)up->curl.multi_remove_handle(up->multi, c->easy);
    up->curl.slist_free_all(c->fields);
    c->fields = NULL;
    if (up->n_spare < SPARE_MAX) {
        up->curl.easy_reset(c->easy); /* keeps nothing of the call; connections live in the multi */
        up->spare[up->n_spare++] = c->easy;
    } else {
        up->curl.easy_cleanup(c->easy);
    }
    c->easy = NULL;
    buf_done(&c->head);
    free(c);
}

static void release_posted(void *arg)
{
    release(arg);
}

/* No callback from here on; the memory goes once curl is not on the stack. */
static void end_call(struct upstream_call *c)
{
    c->over = true;
    c->deadline = timer_free(c->deadline);
    *(c->prev != NULL ? &c->prev->next : &c->up->calls) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    loop_retire(c->up->loop, release_posted, c);
}

static enum upstream_error_kind kind_of(CURLcode code)
{
    static const struct {
        CURLcode code;
        enum upstream_error_kind kind;
    } known[] = {
        { CURLE_COULDNT_RESOLVE_HOST, UPSTREAM_CONNECT },
        { CURLE_COULDNT_RESOLVE_PROXY, UPSTREAM_CONNECT },
        { CURLE_COULDNT_CONNECT, UPSTREAM_CONNECT },
        { CURLE_OPERATION_TIMEDOUT, UPSTREAM_TIMEOUT },
        { CURLE_SSL_CONNECT_ERROR, UPSTREAM_TLS },
        { CURLE_PEER_FAILED_VERIFICATION, UPSTREAM_TLS },
        { CURLE_SSL_CACERT_BADFILE, UPSTREAM_TLS },
        { CURLE_SSL_CERTPROBLEM, UPSTREAM_TLS },
        { CURLE_SSL_CIPHER, UPSTREAM_TLS },
        { CURLE_PARTIAL_FILE, UPSTREAM_CUT },
        { CURLE_GOT_NOTHING, UPSTREAM_CUT },
        { CURLE_RECV_ERROR, UPSTREAM_CUT },
        { CURLE_SEND_ERROR, UPSTREAM_CUT },
        { CURLE_HTTP2, UPSTREAM_CUT },
        { CURLE_HTTP2_STREAM, UPSTREAM_CUT },
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].code == code) {
            return known[i].kind;
        }
    }
    return UPSTREAM_BROKEN;
}

/* An answer that came before the request was read does not end the reading of it. */
static bool sent_all(const struct upstream_call *c)
{
    curl_off_t n = 0;
    return c->up->curl.easy_getinfo(c->easy, CURLINFO_SIZE_UPLOAD_T, &n) == CURLE_OK &&
           (size_t)n >= c->body_len && c->body_len > 0;
}

static void tell_error(struct upstream_call *c, enum upstream_error_kind kind, const char *message)
{
    const struct upstream_port port = c->port;
    const struct upstream_error error = { .kind = kind, .retry_after = -1, .message = message };
    if (!c->head_told && port.on_sent != NULL && sent_all(c)) {
        port.on_sent(port.arg);
    }
    end_call(c);
    port.on_error(port.arg, &error);
}

static void on_result(struct upstream_call *c, CURLcode code)
{
    const struct upstream_port port = c->port;
    if (c->over) {
        return;
    }
    if (code == CURLE_OK && c->head_told) {
        end_call(c);
        port.on_end(port.arg);
        return;
    }
    if (code == CURLE_OK) {
        tell_error(c, UPSTREAM_BROKEN, "an answer without a head");
        return;
    }
    tell_error(c, c->timed_out ? UPSTREAM_TIMEOUT : kind_of(code),
               c->error[0] != '\0' ? c->error : c->up->curl.easy_strerror(code));
}

static void on_deadline(void *arg)
{
    struct upstream_call *c = arg;
    tell_error(c, UPSTREAM_TIMEOUT,
               c->head_told ? "nothing has come for too long" : "no answer in time");
}

/* --- curl's view of the loop --- */

static void collect(struct curl_upstream *up)
{
    CURLMsg *m;
    int left;
    while ((m = up->curl.multi_info_read(up->multi, &left)) != NULL) {
        struct upstream_call *c = NULL;
        if (m->msg == CURLMSG_DONE &&
            up->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c) == CURLE_OK && c != NULL) {
            on_result(c, m->data.result);
        }
    }
}

static void kick(struct curl_upstream *up, curl_socket_t fd, int what)
{
    int running;
    if (!up->freed) {
        (void)up->curl.multi_socket_action(up->multi, fd, what, &running);
        collect(up);
    }
}

static void on_socket_ready(void *arg, unsigned events)
{
    struct socket_watch *w = arg;
    kick(w->up, w->fd,
         ((events & WATCH_READ) != 0 ? CURL_CSELECT_IN : 0) |
             ((events & WATCH_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
}

static void drop_watch(struct socket_watch *w)
{
    *(w->prev != NULL ? &w->prev->next : &w->up->watches) = w->next;
    if (w->next != NULL) {
        w->next->prev = w->prev;
    }
    w->watch = watch_free(w->watch);
    loop_retire(w->up->loop, free, w);
}

static struct socket_watch *new_watch(struct curl_upstream *up, curl_socket_t fd)
{
    struct socket_watch *w = xcalloc(1, sizeof *w);
    struct err e;
    w->up = up;
    w->fd = fd;
    if (watch_new(up->loop, fd, on_socket_ready, w, &w->watch, &e) < 0) {
        LOG_DEBUG("gateway", "watch_failed", LOG_STR("why", e.msg));
        free(w);
        return NULL;
    }
    w->next = up->watches;
    if (w->next != NULL) {
        w->next->prev = w;
    }
    up->watches = w;
    (void)up->curl.multi_assign(up->multi, fd, w);
    return w;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
    (void)easy;
    struct curl_upstream *up = arg;
    struct socket_watch *w = assigned;
    if (what == CURL_POLL_REMOVE) {
        if (w != NULL) {
            (void)up->curl.multi_assign(up->multi, fd, NULL);
            drop_watch(w);
        }
        return 0;
    }
    w = w != NULL ? w : new_watch(up, fd);
    if (w == NULL) {
        return -1;
    }
    watch_set(w->watch, ((what & CURL_POLL_IN) != 0 ? (unsigned)WATCH_READ : 0u) |
                            ((what & CURL_POLL_OUT) != 0 ? (unsigned)WATCH_WRITE : 0u));
    return 0;
}

static void on_timer(void *arg)
{
    kick(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void on_kick_posted(void *arg)
{
    struct curl_upstream *up = arg;
    up->kick_posted = false;
    kick(up, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
    (void)multi;
    struct curl_upstream *up = arg;
    timer_cancel(up->timer);
    if (ms > 0) {
        timer_arm(up->timer, clock_now() + ms * NSEC_PER_MS);
    } else if (ms == 0 && !up->kick_posted) {
        up->kick_posted = true; /* at once, but not from inside of curl */
        loop_post(up->loop, on_kick_posted, up);
    }
    return 0;
}

/* --- the answer --- */

static void tell_head(struct upstream_call *c)
{
    struct http_field fields[FIELDS_MAX];
    size_t n = 0;
    const char *line = c->head.ptr;
    for (size_t i = 0; i < c->n_lines && n < FIELDS_MAX; i++) {
        struct str rest = str_of(line);
        line += rest.len + 1;
        struct str name = str_split(&rest, ':');
        if (rest.ptr != NULL && name.len > 0) {
            fields[n++] = (struct http_field) { name, str_trim(rest) };
        }
    }
    c->head_told = true;
    if (c->port.on_sent != NULL && sent_all(c)) {
        c->port.on_sent(c->port.arg);
    }
    c->port.on_head(c->port.arg, c->status, &(struct http_fields) { fields, n });
}

static void reset_head(struct upstream_call *c)
{
    buf_reset(&c->head);
    c->n_lines = 0;
    c->status = 0;
}

static size_t on_curl_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct upstream_call *c = arg;
    size_t len = size * count;
    struct str line = str_trim(str_n(bytes, len));
    if (c->over || c->head_told) {
        return c->over ? 0 : len; /* trailers are dropped */
    }
    if (str_starts(line, STR("HTTP/"))) {
        long status = 0;
        reset_head(c);
        struct str rest = line;
        (void)str_split(&rest, ' ');
        int64_t n;
        status = str_to_i64(str_slice(rest, 0, 3), &n) ? (long)n : 0;
        c->status = (int)status;
        return len;
    }
    if (line.len == 0) {
        if (c->status >= 200) {
            tell_head(c);
        }
        return c->over ? 0 : len;
    }
    c->n_lines++;
    bool good = !str_has_nul(line) && buf_append(&c->head, line, NULL) == 0 &&
                buf_append_c(&c->head, '\0', NULL) == 0;
    return good ? len : 0;
}

static size_t on_curl_data(char *bytes, size_t size, size_t count, void *arg)
{
    struct upstream_call *c = arg;
    size_t len = size * count;
    if (c->over) {
        return 0;
    }
    if (c->paused) {
        c->held = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    timer_arm(c->deadline, clock_now() + c->up->idle);
    c->port.on_data(c->port.arg, str_n(bytes, len));
    return c->over ? 0 : len;
}

/* --- the request --- */

static void add_field(struct upstream_call *c, struct str name, struct str value)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    buf_add(&line, name);
    /* curl takes "Name;" for a field without a value, and "Name:" for one to be left out. */
    buf_adds(&line, value.len == 0 ? ";" : ": ");
    buf_add(&line, value);
    struct curl_slist *list = c->up->curl.slist_append(c->fields, line.ptr);
    explicit_bzero(line.ptr, line.len);
    c->fields = list != NULL ? list : c->fields;
}

static void add_key(struct upstream_call *c, enum llm_format format)
{
    CLEANUP(buf) struct buf value = BUF_INIT(BUF_TEXT);
    struct str name;
    if (provider_key_field(&c->up->provider, format, &name, &value)) {
        add_field(c, name, buf_str(&value));
        explicit_bzero(value.ptr, value.len);
    }
}

static void set_fields(struct upstream_call *c, const struct upstream_request *r)
{
    for (size_t i = 0; i < r->fields.len; i++) {
        add_field(c, r->fields.items[i].name, r->fields.items[i].value);
    }
    add_key(c, r->endpoint.call == LLM_CALL_NONE ? c->up->base.format : r->endpoint.format);
    add_field(c, STR("Accept-Encoding"), STR("identity"));
    struct curl_slist *list = c->up->curl.slist_append(c->fields, "Expect:");
    c->fields = list != NULL ? list : c->fields;
    static const char *const defaults[] = { "User-Agent", "Accept", "Content-Type" };
    for (size_t i = 0; i < ARRAY_LEN(defaults);
         i++) { /* of curl's own, only what the client sent */
        char line[32];
        if (http_find(&r->fields, defaults[i]) == NULL) {
            (void)snprintf(line, sizeof line, "%s:", defaults[i]);
            list = c->up->curl.slist_append(c->fields, line);
            c->fields = list != NULL ? list : c->fields;
        }
    }
}

static void set_method(struct upstream_call *c, const struct upstream_request *r)
{
    struct curl_upstream *up = c->up;
    CURL *h = c->easy;
    if (str_eqc(r->method, "HEAD")) {
        (void)up->curl.easy_setopt(h, CURLOPT_NOBODY, 1L);
    } else if (r->body.len > 0 || str_eqc(r->method, "POST")) {
        c->body_len = r->body.len;
        (void)up->curl.easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        (void)up->curl.easy_setopt(h, CURLOPT_POSTFIELDS, r->body.len > 0 ? r->body.ptr : "");
    }
    if (!str_eqc(r->method, "POST") && !str_eqc(r->method, "GET") && !str_eqc(r->method, "HEAD")) {
        CLEANUP(buf) struct buf method = BUF_INIT(64);
        if (buf_append(&method, r->method, NULL) == 0) {
            (void)up->curl.easy_setopt(h, CURLOPT_CUSTOMREQUEST, method.ptr);
        }
    }
}

static void set_options(struct upstream_call *c, const struct upstream_request *r)
{
    struct curl_upstream *up = c->up;
    CURL *h = c->easy;
    CLEANUP(buf) struct buf url = BUF_INIT(BUF_TEXT);
    buf_adds(&url, up->provider.origin);
    provider_target(&up->provider, r->target, &url);
    (void)up->curl.easy_setopt(h, CURLOPT_URL, url.ptr);
    (void)up->curl.easy_setopt(h, CURLOPT_PRIVATE, c);
    (void)up->curl.easy_setopt(h, CURLOPT_ERRORBUFFER, c->error);
    (void)up->curl.easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    (void)up->curl.easy_setopt(h, CURLOPT_TCP_NODELAY, 1L);
    (void)up->curl.easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)up->curl.easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    (void)up->curl.easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    (void)up->curl.easy_setopt(h, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    (void)up->curl.easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)(up->connect / NSEC_PER_MS));
    (void)up->curl.easy_setopt(h, CURLOPT_HTTPHEADER, c->fields);
    (void)up->curl.easy_setopt(h, CURLOPT_HEADERFUNCTION, on_curl_header);
    (void)up->curl.easy_setopt(h, CURLOPT_HEADERDATA, c);
    (void)up->curl.easy_setopt(h, CURLOPT_WRITEFUNCTION, on_curl_data);
    (void)up->curl.easy_setopt(h, CURLOPT_WRITEDATA, c);
    if (up->send_once) { /* curl sends again on its own, but only after it reused a connection */
        (void)up->curl.easy_setopt(h, CURLOPT_FRESH_CONNECT, 1L);
        (void)up->curl.easy_setopt(h, CURLOPT_FORBID_REUSE, 1L);
    }
    if (up->unix_socket != NULL) {
        (void)up->curl.easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, up->unix_socket);
    }
    if (up->ca_file != NULL) {
        (void)up->curl.easy_setopt(h, CURLOPT_CAINFO, up->ca_file);
    }
    if (up->provider.loopback) {
        (void)up->curl.easy_setopt(h, CURLOPT_PROXY, "");
    }
    set_method(c, r);
}

static int start(struct upstream *base, const struct upstream_request *r,
                 const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct curl_upstream *up = CONTAINER_OF(base, struct curl_upstream, base);
    struct upstream_call *c = xcalloc(1, sizeof *c);
    int rc = timer_new(up->loop, on_deadline, c, &c->deadline, e);
    if (rc < 0) {
        free(c);
        return rc;
    }
    c->up = up;
    c->port = *port;
    buf_init(&c->head, HTTP_HEAD_MAX);
    c->easy = up->n_spare > 0 ? up->spare[--up->n_spare] : up->curl.easy_init();
    if (c->easy == NULL) {
        c->deadline = timer_free(c->deadline);
        free(c);
        return ERR(e, ERR_SYS, "no memory for a transfer");
    }
    set_fields(c, r);
    set_options(c, r);
    timer_arm(c->deadline, clock_now() + up->first_byte);
    c->next = up->calls;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    up->calls = c;
    (void)up->curl.multi_add_handle(up->multi, c->easy);
    *ret = c;
    return 0;
}

static void cancel(struct upstream_call *c)
{
    if (!c->over) {
        end_call(c);
    }
}

static void unpause(void *arg)
{
    struct upstream_call *c = arg;
    if (!c->over && !c->paused && c->held) {
        c->held = false;
        (void)c->up->curl.easy_pause(c->easy, CURLPAUSE_CONT);
        kick(c->up, CURL_SOCKET_TIMEOUT, 0);
    }
}

static void pause_call(struct upstream_call *c, bool paused)
{
    c->paused = paused;
    if (!paused && c->held && !c->over) {
        loop_post(c->up->loop, unpause, c);
    }
}

/* --- life --- */

static void destroy(void *arg)
{
    struct curl_upstream *up = arg;
    for (size_t i = 0; i < up->n_spare; i++) {
        up->curl.easy_cleanup(up->spare[i]);
    }
    if (up->multi != NULL) {
        (void)up->curl.multi_cleanup(up->multi);
    }
    while (up->watches != NULL) {
        drop_watch(up->watches);
    }
    up->timer = timer_free(up->timer);
    provider_done(&up->provider);
    free(up->name);
    free(up->unix_socket);
    free(up->ca_file);
    free(up);
}

static void free_upstream(struct upstream *base)
{
    struct curl_upstream *up = CONTAINER_OF(base, struct curl_upstream, base);
    while (up->calls != NULL) {
        cancel(up->calls);
    }
    up->freed = true;
    loop_retire(up->loop, destroy, up);
}

static const struct upstream_ops curl_ops = {
    .start = start,
    .cancel = cancel,
    .pause = pause_call,
    .free = free_upstream,
};

static char *copy(const char *s)
{
    return s == NULL ? NULL : xstrdup(s);
}

/* Nothing needs libcurl there: no TLS, and no proxy stands between. */
static bool is_plain(const struct upstream_curl_opts *o)
{
    struct provider p;
    bool plain = provider_init(&p, o->url, NULL, NULL) == 0 && !p.tls &&
                 (p.loopback || o->unix_socket != NULL ||
                  (getenv("http_proxy") == NULL && getenv("all_proxy") == NULL));
    provider_done(&p);
    return plain;
}

int upstream_curl_new(struct loop *l, const struct upstream_curl_opts *o, struct upstream **ret,
                      struct err *e)
{
    if (is_plain(o)) {
        return upstream_http_new(l, o, ret, e);
    }
    struct curl_upstream *up = xcalloc(1, sizeof *up);
    up->loop = l;
    up->send_once = o->send_once;
    up->name = xstrdup(o->name);
    up->unix_socket = copy(o->unix_socket);
    up->ca_file = copy(o->ca_file != NULL ? o->ca_file : getenv("SSL_CERT_FILE"));
    up->connect = o->connect != 0 ? o->connect : 15 * NSEC_PER_SEC;
    up->first_byte = o->first_byte != 0 ? o->first_byte : 600 * NSEC_PER_SEC;
    up->idle = o->idle != 0 ? o->idle : 300 * NSEC_PER_SEC;
    up->base = (struct upstream) { .ops = &curl_ops,
                                   .name = up->name,
                                   .format = o->format,
                                   .formats = o->formats,
                                   .any_format = o->any_format };
    int rc = load_curl(&up->curl, e);
    if (rc == 0 && up->curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        rc = ERR(e, ERR_SYS, "set up libcurl");
    }
    rc = rc < 0 ? rc : provider_init(&up->provider, o->url, o->key, e);
    up->base.secret = str_of(up->provider.key);
    rc = rc < 0 ? rc : timer_new(l, on_timer, up, &up->timer, e);
    up->multi = rc < 0 ? NULL : up->curl.multi_init();
    if (rc == 0 && up->multi == NULL) {
        rc = ERR(e, ERR_SYS, "set up libcurl");
    }
    if (rc < 0) {
        destroy(up);
        return rc;
    }
    (void)up->curl.multi_setopt(up->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    (void)up->curl.multi_setopt(up->multi, CURLMOPT_SOCKETDATA, up);
    (void)up->curl.multi_setopt(up->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    (void)up->curl.multi_setopt(up->multi, CURLMOPT_TIMERDATA, up);
    *ret = &up->base;
    return 0;
}

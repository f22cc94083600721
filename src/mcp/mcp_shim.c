/* SPDX-License-Identifier: MIT
 *
 * Lines to requests and back; see mcp_shim.h.
 */
#include "mcp/mcp_shim.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "io/loop.h"
#include "io/reader.h"
#include "io/timer.h"
#include "io/writer.h"
#include "mcp/mcp.h"
#include "mcp/mcp_link.h"
#include "wire/jsonrpc.h"
#include "wire/lines.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define FILE_PIECE   65536
#define SCHEMAS_MAX  ((size_t)16 << 20)

/* A request that waits for its answer. */
struct asked {
    struct asked *next;
    struct arena *arena;
    const struct json *id;
    uint64_t key;
    bool initialize, forever, stateless;
};

struct mcp_shim {
    struct mcp_shim_opts opts;
    struct mcp_transport *link;
    struct reader *reader; /* NULL: it is a file, read piece by piece */
    struct writer *writer; /* NULL: a file */
    int in, out;
    struct lines lines;
    struct timer *timer;
    struct asked *asked;
    size_t n_asked;
    uint64_t last_key;
    char version[16];
    struct arena *arena; /* of schemas */
    struct json *schemas;
    size_t schemas_size;
    bool eof, closing, ended, freed;
};

/* --- ends --- */

static void finish(struct mcp_shim *s, const struct err *why)
{
    if (!s->ended) {
        s->ended = true;
        s->opts.ended(s->opts.arg, why);
    }
}

static void close_link(struct mcp_shim *s)
{
    if (!s->closing && !s->ended) {
        s->closing = true;
        s->link->ops->close(s->link);
    }
}

static bool waits(const struct mcp_shim *s)
{
    for (const struct asked *q = s->asked; q != NULL; q = q->next) {
        if (!q->forever) {
            return true;
        }
    }
    return false;
}

static void leave_if_done(struct mcp_shim *s)
{
    if (s->eof && !waits(s)) {
        close_link(s);
    }
}

static void on_linger_over(void *arg)
{
    close_link(arg);
}

/* --- out --- */

/* Files take everything; only then is a blocking write one. */
static bool write_file(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        bytes = str_slice(bytes, n < 0 ? 0 : (size_t)n, bytes.len);
    }
    return true;
}

static void say(struct mcp_shim *s, struct str text)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT + 2);
    struct err e = { 0 };
    if (s->ended || buf_append(&line, text, NULL) < 0 || buf_append_c(&line, '\n', NULL) < 0) {
        return;
    }
    if (s->writer == NULL) {
        if (!write_file(s->out, buf_str(&line))) {
            close_link(s);
        }
    } else if (writer_write(s->writer, buf_str(&line), &e) < 0) {
        (void)err_wrap(&e, "the client does not read");
        finish(s, &e);
    }
}

static void say_error(struct mcp_shim *s, const struct json *id, int code, const char *why)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (jsonrpc_write_error(id, code, str_of(why), NULL, &out, NULL) == 0) {
        say(s, buf_str(&out));
    }
}

/* --- requests under way --- */

static void forget(struct mcp_shim *s, struct asked *q)
{
    for (struct asked **at = &s->asked; *at != NULL; at = &(*at)->next) {
        if (*at == q) {
            *at = q->next;
            s->n_asked--;
            arena_free(q->arena);
            return;
        }
    }
}

static struct asked *find_id(struct mcp_shim *s, const struct json *id)
{
    for (struct asked *q = s->asked; q != NULL; q = q->next) {
        if (id != NULL && json_equal(q->id, id)) {
            return q;
        }
    }
    return NULL;
}

static struct asked *find_key(struct mcp_shim *s, uint64_t key)
{
    for (struct asked *q = s->asked; q != NULL; q = q->next) {
        if (q->key == key) {
            return q;
        }
    }
    return NULL;
}

static struct asked *remember(struct mcp_shim *s, const struct jsonrpc_message *m, bool stateless)
{
    struct arena *a = arena_new();
    struct asked *q = ARENA_NEW(a, struct asked);
    q->arena = a;
    q->id = json_copy(a, m->id);
    q->key = ++s->last_key;
    q->initialize = str_eqc(m->method, "initialize");
    q->forever = str_eqc(m->method, "subscriptions/listen");
    q->stateless = stateless;
    q->next = s->asked;
    s->asked = q;
    s->n_asked++;
    return q;
}

/* --- what the client says --- */

/* The answer to a cancelled request is not waited for; true: that is all there is to do. */
static bool cancel(struct mcp_shim *s, const struct jsonrpc_message *m)
{
    struct asked *q = str_eqc(m->method, "notifications/cancelled")
                          ? find_id(s, json_get(m->params, "requestId"))
                          : NULL;
    if (q == NULL) {
        return false;
    }
    bool stateless = q->stateless;
    if (stateless) { /* to close the request is to cancel it */
        s->link->ops->drop(s->link, q->key);
    }
    forget(s, q);
    return stateless;
}

static void post(struct mcp_shim *s, const struct jsonrpc_message *m, struct str text)
{
    struct err e = { 0 };
    const struct json *meta = json_get(m->params, "_meta");
    const struct json *version = json_get(meta, META_VERSION);
    bool request = m->kind == JSONRPC_REQUEST;
    bool stateless = json_is(version, JSON_STRING);
    if (m->kind == JSONRPC_NOTIFICATION && cancel(s, m)) {
        return;
    }
    if (request && (s->n_asked >= MCP_SHIM_ASKED || find_id(s, m->id) != NULL)) {
        say_error(s, m->id, JSONRPC_INVALID_REQUEST,
                  "too many requests are under way, or one with this id is");
        return;
    }
    struct asked *q = request ? remember(s, m, stateless) : NULL;
    const struct json *name = json_get(m->params, "name");
    name = name != NULL ? name : json_get(m->params, "uri");
    const struct mcp_outgoing out = {
        .text = text,
        .key = q == NULL ? 0 : q->key,
        .method = m->method,
        .name = json_str(name, STR_EMPTY),
        .version = stateless ? version->string : str_of(s->version),
        .stateless = stateless,
        .schema = json_find(s->schemas, json_str(name, STR_EMPTY)),
        .arguments = json_get(m->params, "arguments"),
    };
    if (s->link->ops->send(s->link, &out, &e) < 0 && q != NULL) {
        say_error(s, q->id, JSONRPC_INTERNAL_ERROR, e.msg);
        forget(s, q);
    }
}

/* `text` is the message as it came; empty: one of a batch. */
static void on_value(struct mcp_shim *s, const struct json *v, struct str text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct jsonrpc_message m;
    struct err e = { 0 };
    if (jsonrpc_read_value(v, &m, &e) < 0) {
        say_error(s, m.id, jsonrpc_code_of(&e), e.msg);
    } else if (text.len > 0) {
        post(s, &m, text);
    } else if (json_write(v, JSON_COMPACT, &out, NULL) == 0) {
        post(s, &m, buf_str(&out));
    }
}

static void on_line(struct mcp_shim *s, struct str line)
{
    static const struct json_limits limits = { .max_bytes = JSONRPC_BYTES_MAX,
                                               .max_depth = JSONRPC_DEPTH_MAX,
                                               .no_positions = true };
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v;
    struct err e = { 0 };
    if (s->closing || s->ended || str_trim(line).len == 0) {
        return;
    }
    if (json_parse(a, line, &limits, &v, &e) < 0) {
        say_error(s, NULL, JSONRPC_PARSE_ERROR, e.msg);
        return;
    }
    bool batch = json_is(v, JSON_ARRAY) && json_len(v) > 0;
    for (size_t i = 0; batch && i < json_len(v); i++) {
        on_value(s, json_item(v, i), STR_EMPTY);
    }
    if (!batch) {
        on_value(s, v, str_trim(line));
    }
}

static void on_bytes(void *arg, struct str chunk)
{
    struct mcp_shim *s = arg;
    struct str line;
    lines_feed(&s->lines, chunk);
    while (!s->freed && lines_next(&s->lines, &line)) {
        on_line(s, line);
    }
}

static void on_eof(void *arg, const struct err *why)
{
    struct mcp_shim *s = arg;
    struct str line;
    (void)why; /* whatever it is, nothing comes any more */
    if (lines_end(&s->lines, &line)) {
        on_line(s, line);
    }
    s->eof = true;
    timer_arm(s->timer, clock_now() + MCP_SHIM_LINGER);
    leave_if_done(s);
}

/* Files and devices cannot be waited for; they need not be. */
static void read_file(void *arg)
{
    struct mcp_shim *s = arg;
    char piece[FILE_PIECE];
    if (s->freed || s->in < 0) {
        return;
    }
    ssize_t n = read(s->in, piece, sizeof piece);
    if (n > 0) {
        on_bytes(s, str_n(piece, (size_t)n));
        loop_post(s->opts.loop, read_file, s);
    } else {
        on_eof(s, NULL);
    }
}

/* --- what the server says --- */

/* The first answer of a session says which revision it is of. */
static void keep_version(struct mcp_shim *s, const struct json *result)
{
    struct str v = json_str(json_get(result, "protocolVersion"), STR_EMPTY);
    enum mcp_revision r;
    if (mcp_revision_parse(v, &r)) {
        memcpy(s->version, v.ptr, v.len);
        s->version[v.len] = '\0';
    }
}

/* Tools that want some of their arguments repeated as fields. */
static void keep_schemas(struct mcp_shim *s, const struct json *tools, struct str text)
{
    if (!json_is(tools, JSON_ARRAY) || str_find(text, STR("x-mcp-header")) == text.len ||
        s->schemas_size + text.len > SCHEMAS_MAX) {
        return;
    }
    s->schemas_size += text.len;
    for (size_t i = 0; i < json_len(tools); i++) {
        const struct json *t = json_item(tools, i);
        json_set(s->arena, s->schemas, json_str(json_get(t, "name"), STR_EMPTY),
                 json_copy(s->arena, json_get(t, "inputSchema")));
    }
}

static void on_message(void *arg, struct str text)
{
    struct mcp_shim *s = arg;
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    struct jsonrpc_message m;
    struct json *v;
    if (json_parse(a, text, NULL, &v, NULL) < 0 || jsonrpc_read_value(v, &m, NULL) < 0) {
        return; /* what it was meant for is told when the answer ends */
    }
    bool lines = str_find(text, STR("\n")) < text.len || str_find(text, STR("\r")) < text.len;
    if (lines && json_write(v, JSON_COMPACT, &line, NULL) < 0) {
        return;
    }
    if (m.kind == JSONRPC_RESULT || m.kind == JSONRPC_ERROR) {
        struct asked *q = find_id(s, m.id);
        if (q == NULL) {
            return; /* cancelled, or nobody's */
        }
        if (q->initialize) {
            keep_version(s, m.result);
        }
        keep_schemas(s, json_get(m.result, "tools"), text);
        forget(s, q);
    }
    say(s, lines ? buf_str(&line) : text);
    leave_if_done(s);
}

static void on_lost(void *arg, uint64_t key, const struct err *why)
{
    struct mcp_shim *s = arg;
    struct asked *q = find_key(s, key);
    if (q != NULL) {
        say_error(s, q->id, JSONRPC_INTERNAL_ERROR, why->msg);
        forget(s, q);
        leave_if_done(s);
    }
}

static void on_link_end(void *arg, const struct err *why)
{
    struct mcp_shim *s = arg;
    const struct err reason = why == NULL ? (struct err) { 0 } : *why;
    while (why != NULL && s->asked != NULL) {
        say_error(s, s->asked->id, JSONRPC_INTERNAL_ERROR, reason.msg);
        forget(s, s->asked);
    }
    s->closing = true;
    if (why == NULL && s->writer != NULL) {
        writer_close(s->writer); /* what was said goes out first */
    } else {
        finish(s, why == NULL ? NULL : &reason);
    }
}

static void on_written(void *arg, const struct err *why)
{
    struct mcp_shim *s = arg;
    (void)why;
    if (s->closing) {
        finish(s, NULL);
    } else {
        close_link(s); /* nobody reads any more */
        finish(s, NULL);
    }
}

/* --- life --- */

static bool can_wait(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd));
}

static void destroy(void *arg)
{
    struct mcp_shim *s = arg;
    while (s->asked != NULL) {
        forget(s, s->asked);
    }
    lines_done(&s->lines);
    arena_free(s->arena);
    free(s);
}

/* The reader and the writer close what they have taken over. */
struct mcp_shim *mcp_shim_free(struct mcp_shim *s)
{
    if (s == NULL) {
        return NULL;
    }
    s->freed = s->ended = true;
    if (s->reader == NULL) {
        cleanup_fd(&s->in);
    }
    if (s->writer == NULL) {
        cleanup_fd(&s->out);
    }
    s->reader = reader_free(s->reader);
    s->writer = writer_free(s->writer);
    s->timer = timer_free(s->timer);
    if (s->link != NULL) {
        s->link->ops->free(TAKE_PTR(s->link));
    }
    loop_retire(s->opts.loop, destroy, s);
    return NULL;
}

static int open_ends(struct mcp_shim *s, struct err *e)
{
    const struct reader_port rp = { on_bytes, on_eof, s };
    const struct writer_opts wo = { .max = MCP_SHIM_QUEUE,
                                    .port = { .on_end = on_written, .arg = s } };
    int rc = 0;
    if (can_wait(s->in)) {
        rc = reader_new(s->opts.loop, s->in, &rp, &s->reader, e);
    } else {
        loop_post(s->opts.loop, read_file, s);
    }
    if (rc == 0 && can_wait(s->out)) {
        rc = writer_new(s->opts.loop, s->out, &wo, &s->writer, e);
    }
    return rc;
}

static int open_link(struct mcp_shim *s, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *headers = json_object(a);
    if (s->opts.token != NULL) {
        const char *value = arena_printf(a, "Bearer %s", s->opts.token);
        json_setc(a, headers, "Authorization", json_cstr(a, value));
    }
    const struct mcp_http_opts o = {
        .loop = s->opts.loop,
        .url = s->opts.url,
        .headers = headers,
        .port = { .on_message = on_message, .on_lost = on_lost, .on_end = on_link_end, .arg = s },
    };
    return mcp_link_new(&o, &s->link, e);
}

int mcp_shim_new(const struct mcp_shim_opts *o, struct mcp_shim **ret, struct err *e)
{
    struct mcp_shim *s = xcalloc(1, sizeof *s);
    s->opts = *o;
    s->in = o->in;
    s->out = o->out;
    s->arena = arena_new();
    s->schemas = json_object(s->arena);
    lines_init(&s->lines, JSONRPC_BYTES_MAX);
    int rc = timer_new(o->loop, on_linger_over, s, &s->timer, e);
    rc = rc < 0 ? rc : open_link(s, e);
    rc = rc < 0 ? rc : open_ends(s, e);
    if (rc < 0) {
        (void)mcp_shim_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

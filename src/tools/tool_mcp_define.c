/* SPDX-License-Identifier: MIT
 *
 * What a task says of an upstream MCP server, checked, and with the values of secrets in place.
 */
#include <ctype.h>

#include "base/buf.h"
#include "base/macro.h"
#include "data/shape.h"
#include "tools/tool_kind.h"
#include "tools/tool_mcp_priv.h"

#define HEADERS_MAX 64
#define SECRET_MAX  128 /* bytes of a name */

static const struct shape server_shape[] = {
    { "command", SHAPE_STRINGS },
    { "url", SHAPE_STRING },
    { "env", SHAPE_MAP },
    { "headers", SHAPE_MAP },
    { "sandbox", SHAPE_BOOL },
    { "tools", SHAPE_STRINGS },
    { "rename", SHAPE_MAP },
    { "prefix", SHAPE_STRING },
    { "pin", SHAPE_MAP },
    { "start_timeout", SHAPE_DURATION },
    { 0 },
};

static const struct shape call_shape[] = {
    { "timeout", SHAPE_DURATION },
    { "max_output", SHAPE_SIZE },
    { 0 },
};

/* --- secrets --- */

static bool is_name_char(char c, bool first)
{
    return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

/* Length of the name at the start of s; 0: none. */
static size_t name_len(struct str s)
{
    size_t n = 0;
    while (n < s.len && n < SECRET_MAX && is_name_char(s.ptr[n], n == 0)) {
        n++;
    }
    return n;
}

/* $NAME and ${NAME} are secrets, $$ is a dollar; any other dollar stands for itself. */
static int expand(struct str text, toolserver_secret *secret, void *arg, struct buf *out,
                  struct err *e)
{
    for (size_t i = 0; i < text.len; i++) {
        struct str rest = str_slice(text, i + 1, text.len);
        bool braces = rest.len > 0 && rest.ptr[0] == '{';
        struct str inner = braces ? str_slice(rest, 1, rest.len) : rest;
        size_t n = text.ptr[i] == '$' ? name_len(inner) : 0;
        if (text.ptr[i] == '$' && rest.len > 0 && rest.ptr[0] == '$') {
            i++;
        }
        if (n == 0 || (braces && (n >= inner.len || inner.ptr[n] != '}'))) {
            buf_add(out, str_slice(text, i, i + 1));
            continue;
        }
        char name[SECRET_MAX + 1] = { 0 };
        memcpy(name, inner.ptr, n);
        const char *value = secret(arg, name);
        if (value == NULL) {
            return ERR(e, ERR_SECRET, "there is no secret '%s': name it with --secret %s", name,
                       name);
        }
        buf_adds(out, value);
        i += n + (braces ? 2 : 0);
    }
    return 0;
}

/* Strings of a map, with secrets in place; other values as they are. */
static int fill_in(struct arena *a, const struct json *map, toolserver_secret *secret, void *arg,
                   const struct json **ret, struct err *e)
{
    if (!json_is(map, JSON_OBJECT)) {
        return 0;
    }
    struct json *copy = json_object(a);
    for (size_t i = 0; i < map->object.len; i++) {
        const struct json_member *m = &map->object.members[i];
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        int rc = json_is(m->value, JSON_STRING) && secret != NULL
                     ? expand(m->value->string, secret, arg, &text, e)
                     : 0;
        if (rc < 0) {
            return err_wrap(e, "'%.*s'", STR_ARG(m->key));
        }
        bool filled = json_is(m->value, JSON_STRING) && secret != NULL;
        json_set(a, copy, m->key, filled ? json_string(a, buf_str(&text)) : json_copy(a, m->value));
        if (text.ptr != NULL) {
            explicit_bzero(text.ptr, text.len);
        }
    }
    *ret = copy;
    return 0;
}

/* --- parts --- */

static int read_command(struct arena *a, const struct json *command, struct toolserver_plan *p,
                        struct err *e)
{
    size_t n = json_len(command);
    const char **argv = arena_array(a, n + 1, sizeof *argv);
    for (size_t i = 0; i < n; i++) {
        const char *word = json_cstring(json_item(command, i), NULL);
        if (word == NULL || (i == 0 && word[0] == '\0')) {
            return ERR(e, ERR_CONFIG, "command[%zu] is not a string without NUL bytes", i);
        }
        argv[i] = arena_dup(a, str_of(word));
    }
    p->argv = argv;
    return 0;
}

static bool is_header_char(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Those of the protocol are ours to set. */
static int check_headers(const struct json *headers, struct err *e)
{
    static const char *const ours[] = { "host",          "content-length", "transfer-encoding",
                                        "connection",    "accept",         "content-type",
                                        "mcp-session-id" };
    if (json_len(headers) > HEADERS_MAX) {
        return ERR(e, ERR_CONFIG, "more than %d headers", HEADERS_MAX);
    }
    for (size_t i = 0; headers != NULL && i < headers->object.len; i++) {
        const struct json_member *m = &headers->object.members[i];
        bool good = m->key.len > 0 && json_is(m->value, JSON_STRING) &&
                    str_find(m->value->string, STR("\n")) == m->value->string.len &&
                    str_find(m->value->string, STR("\r")) == m->value->string.len &&
                    !str_has_nul(m->value->string);
        for (size_t k = 0; k < m->key.len; k++) {
            good = good && is_header_char(m->key.ptr[k]);
        }
        for (size_t k = 0; k < ARRAY_LEN(ours); k++) {
            good = good && !http_name_is(m->key, ours[k]);
        }
        if (!good) {
            return ERR(e, ERR_CONFIG, "headers: '%.*s' cannot be set", STR_ARG(m->key));
        }
    }
    return 0;
}

static bool url_ok(const char *url)
{
    struct str s = str_of(url);
    bool scheme = str_starts(s, STR("http://")) || str_starts(s, STR("https://"));
    for (size_t i = 0; i < s.len; i++) {
        scheme = scheme && (unsigned char)s.ptr[i] > ' ' && (unsigned char)s.ptr[i] < 0x7f;
    }
    return scheme && str_find(s, STR("#")) == s.len;
}

static int check_pins(const struct json *pin, struct err *e)
{
    for (size_t i = 0; pin != NULL && i < pin->object.len; i++) {
        const struct json_member *m = &pin->object.members[i];
        if (!sha256_is_hex(json_str(m->value, STR_EMPTY))) {
            return ERR(e, ERR_CONFIG,
                       "pin.%.*s must be 64 hexadecimal digits, as 'cinch mcp tools' prints them",
                       STR_ARG(m->key));
        }
    }
    return 0;
}

static int check_names(const struct toolserver_plan *p, struct err *e)
{
    char out[TOOL_NAME_MAX + 1];
    for (size_t i = 0; p->rename != NULL && i < p->rename->object.len; i++) {
        struct str name = json_str(p->rename->object.members[i].value, STR_EMPTY);
        if (!mcp_tool_name(name, STR_EMPTY, out) || !str_eqc(name, out)) {
            return ERR(e, ERR_CONFIG,
                       "rename: '%.*s' is not a valid name: use 1 to %d of a-z, 0-9, _ and -",
                       STR_ARG(str_slice(name, 0, 80)), TOOL_NAME_MAX);
        }
    }
    if (p->prefix.len > 0 && (!mcp_tool_name(p->prefix, STR_EMPTY, out) ||
                              !str_eqc(p->prefix, out) || p->prefix.len > TOOL_NAME_MAX / 2)) {
        return ERR(e, ERR_CONFIG, "prefix: at most %d of a-z, 0-9, _ and -", TOOL_NAME_MAX / 2);
    }
    return 0;
}

static const struct json *object_of(struct arena *a, const struct json *v)
{
    return json_is(v, JSON_OBJECT) ? json_copy(a, v) : NULL;
}

static int read_limits(const struct json *definition, struct toolserver_plan *p, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *some = json_object(a);
    for (size_t i = 0; call_shape[i].key != NULL; i++) {
        const struct json *v = json_get(definition, call_shape[i].key);
        if (v != NULL) {
            json_setc(a, some, call_shape[i].key, json_copy(a, v));
        }
    }
    int rc = shape_check(some, call_shape, "tool", e);
    if (rc < 0) {
        return rc;
    }
    int64_t time = shape_duration(json_get(some, "timeout"), 0);
    int64_t bytes = shape_size(json_get(some, "max_output"), 0);
    p->timeout = time <= 0 ? TOOL_TIME : time;
    p->max_output = bytes <= 0 ? TOOLSERVER_OUTPUT : (size_t)bytes;
    return 0;
}

static int read_server(struct arena *a, const struct json *mcp, struct toolserver_plan *p,
                       struct err *e)
{
    const struct json *command = json_get(mcp, "command");
    const char *url = json_cstring(json_get(mcp, "url"), NULL);
    bool program = json_len(command) > 0;
    if (program == (url != NULL)) {
        return ERR(e, ERR_CONFIG, "one of 'command' (a list of words) and 'url' is needed");
    }
    if (url != NULL && !url_ok(url)) {
        return ERR(e, ERR_CONFIG, "url: '%.100s' is not an http:// or https:// address", url);
    }
    int rc = program ? read_command(a, command, p, e) : 0;
    p->url = url == NULL ? NULL : arena_dup(a, str_of(url));
    p->outside = !json_bool(json_get(mcp, "sandbox"), true);
    p->tools =
        json_is(json_get(mcp, "tools"), JSON_ARRAY) ? json_copy(a, json_get(mcp, "tools")) : NULL;
    p->rename = object_of(a, json_get(mcp, "rename"));
    p->pin = object_of(a, json_get(mcp, "pin"));
    p->prefix = arena_str(a, json_str(json_get(mcp, "prefix"), STR_EMPTY));
    p->start_timeout = shape_duration(json_get(mcp, "start_timeout"), TOOLSERVER_START_TIME);
    rc = rc < 0 ? rc : check_pins(p->pin, e);
    return rc < 0 ? rc : check_names(p, e);
}

static int read_definition(struct arena *a, const struct json *definition,
                           toolserver_secret *secret, void *arg, struct toolserver_plan *p,
                           struct err *e)
{
    const struct json *mcp = json_get(definition, "mcp");
    if (!json_is(mcp, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "'mcp' must be an object");
    }
    int rc = shape_check(mcp, server_shape, "mcp", e);
    rc = rc < 0 ? rc : read_server(a, mcp, p, e);
    rc = rc < 0 ? rc : read_limits(definition, p, e);
    rc = rc < 0 ? rc : fill_in(a, json_get(mcp, "env"), secret, arg, &p->env, e);
    rc = rc < 0 ? rc : fill_in(a, json_get(mcp, "headers"), secret, arg, &p->headers, e);
    return rc < 0 ? rc : check_headers(p->headers, e);
}

int toolserver_plan(struct arena *a, const struct json *definition, toolserver_secret *secret,
                    void *arg, struct toolserver_plan *ret, struct err *e)
{
    *ret = (struct toolserver_plan) { 0 };
    struct str name = json_str(json_get(definition, "name"), STR_EMPTY);
    char out[TOOL_NAME_MAX + 1];
    if (!mcp_tool_name(name, STR_EMPTY, out) || !str_eqc(name, out)) {
        return ERR(e, ERR_CONFIG, "tool '%.*s': a name is 1 to %d of a-z, 0-9, _ and -",
                   STR_ARG(str_slice(name, 0, 80)), TOOL_NAME_MAX);
    }
    ret->name = arena_str(a, name);
    int rc = read_definition(a, definition, secret, arg, ret, e);
    return rc < 0 ? err_wrap(e, "tool '%.*s'", STR_ARG(name)) : 0;
}

int toolserver_check(const struct json *definition, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct toolserver_plan plan;
    return toolserver_plan(a, definition, NULL, NULL, &plan, e);
}

/* --- the kind --- */

static int bind_server(struct arena *a, const struct json *definition, struct tool *t,
                       struct err *e)
{
    (void)a;
    (void)definition;
    return ERR(e, ERR_BUG, "tool '%.*s' is a server", STR_ARG(t->name));
}

const struct tool_kind tool_kind_mcp = {
    .name = "mcp",
    .key = "mcp",
    .source = TOOL_SERVER,
    .command = "/mcp/command",
    .check = toolserver_check,
    .bind = bind_server,
};

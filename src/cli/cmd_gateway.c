/* SPDX-License-Identifier: MIT
 *
 * cinch gateway: the gateway alone, for any client.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "adapters/expand.h"
#include "adapters/profile.h"
#include "base/json.h"
#include "base/log.h"
#include "base/macro.h"
#include "cli/command.h"
#include "cli/gateway_watch.h"
#include "cli/run_request.h"
#include "cli/text.h"
#include "config/gateway_file.h"
#include "data/toml.h"
#include "data/yaml.h"
#include "gateway/account.h"
#include "gateway/gateway.h"
#include "gateway/price.h"
#include "gateway/proxy.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/sigwatch.h"
#include "record/redact.h"
#include "replay/assembly.h"
#include "replay/route.h"

static const struct option options[] = {
    { "listen", 'l', OPTION_STRING, .value = "ADDRESS:PORT", .shown = "127.0.0.1:0",
      .section = "Listener",
      .help = "listen on this loopback address and port; port 0 selects a free one" },
    { "socket", 0, OPTION_PATH, .value = "PATH",
      .help = "listen on a Unix socket instead, which only you can open" },
    { "token", 0, OPTION_STRING, .value = "TOKEN", .shown = "$CINCH_GATEWAY_TOKEN, or a random one",
      .help = "set the token that clients send as their key" },
    { "print-env", 0, OPTION_STRING, .old_name = "env", .old_letter = 'e', .value = "ADAPTER",
      .complete = COMPLETE_ADAPTER,
      .help = "print the shell variables that make this agent use the gateway" },
    { "adapter-dir", 0, OPTION_PATH, .value = "DIR", .flags = OPTION_REPEAT,
      .complete = COMPLETE_DIRECTORY,
      .help = "load more adapter profiles from DIR, for --print-env" },

    { "config", 'c', OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .section = "Upstreams",
      .help = "read upstream, routes, endpoints, script, cassette and prices from the `gateway` "
              "key of FILE, "
              "as in a task" },
    { "upstream", 'u', OPTION_STRING, .value = "[NAME=]URL", .flags = OPTION_REPEAT,
      .help = "add a provider, a compatible server or another gateway; ',format=F' and "
              "',key=VARIABLE' may follow the URL" },
    { "route", 'r', OPTION_STRING, .value = "PATTERN=NAME[:MODEL][,…]", .flags = OPTION_REPEAT,
      .help =
          "send models that match PATTERN to upstream NAME, as MODEL; the others are fallbacks" },
    { "endpoint", 0, OPTION_STRING, .value = "GROUP", .flags = OPTION_REPEAT,
      .help = "also forward files, batches or responses (stored ones) to the provider's account" },
    { "script", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "take responses from a script" },
    { "cassette", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "take responses from a recording" },
    { "replay-speed", 0, OPTION_STRING, .value = "FACTOR", .shown = "0",
      .help = "set the speed of the replay: 1 is as recorded, 0 is without delays" },
    { "record-to", 0, OPTION_PATH, .old_name = "record", .value = "FILE", .complete = COMPLETE_FILE,
      .help = "record all model traffic in a new cassette" },
    { "volatile-field", 0, OPTION_STRING, .value = "POINTER", .flags = OPTION_REPEAT,
      .help =
          "ignore this field of requests when a recording is replayed: a JSON pointer, in which "
          "'*' stands for any key or index" },
    { "volatile-pattern", 0, OPTION_STRING, .value = "REGEX", .flags = OPTION_REPEAT,
      .help = "ignore texts that match REGEX when a recording is replayed" },
    { "allow", 0, OPTION_STRING, .old_letter = 'a', .value = "HOST[:PORT]", .flags = OPTION_REPEAT,
      .help = "also act as a proxy for this host; '*.name', addresses and networks are allowed" },

    { "max-calls", 0, OPTION_INT, .value = "N", .min = 1, .max = INT64_MAX, .section = "Limits",
      .help = "refuse model calls after the first N" },
    { "max-tokens", 0, OPTION_INT, .value = "N", .min = 1, .max = INT64_MAX,
      .help = "refuse model calls that could exceed N tokens, input and output together" },
    { "max-input-tokens", 0, OPTION_INT, .value = "N", .min = 1, .max = INT64_MAX,
      .help = "refuse model calls that could exceed N input tokens" },
    { "max-output-tokens", 0, OPTION_INT, .value = "N", .min = 1, .max = INT64_MAX,
      .help = "refuse model calls that could exceed N output tokens" },
    { "max-usd", 0, OPTION_STRING, .value = "AMOUNT",
      .help = "refuse model calls that could make the cost exceed AMOUNT (US dollars, by the price "
              "table)" },
    { "prices", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "use this price table before the built-in one" },
    { "ledger", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "write usage and cost by model to FILE, while the gateway runs and at its end" },
    { "max-body", 0, OPTION_INT, .value = "BYTES", .min = 1, .max = (int64_t)1 << 30,
      .shown = "67108864", .help = "refuse requests larger than this" },
    { "grace", 0, OPTION_DURATION, .value = "TIME", .shown = "10s",
      .help = "wait TIME for responses to finish after SIGTERM" },
    { "head-timeout", 0, OPTION_DURATION, .value = "TIME", .flags = OPTION_HIDDEN | OPTION_POSITIVE,
      .help = "limit the time to receive the head of a request" },
    { "stall-timeout", 0, OPTION_DURATION, .value = "TIME",
      .flags = OPTION_HIDDEN | OPTION_POSITIVE,
      .help = "disconnect clients that make no progress for TIME" },
    { "retries", 0, OPTION_FLAG, .flags = OPTION_NEGATABLE,
      .help = "retry requests that fail temporarily", .shown = "yes" },
    { 0 },
};

struct server {
    struct cli *cli;
    const struct options *opt;
    struct loop *loop;
    const struct profile *profile; /* of --env; NULL: none */
    struct json *files;            /* that its agent needs, by the names of the profile, or NULL */
    struct json *config;           /* `gateway` of the file; NULL: none */
    struct routes *routes;
    struct proxy_rules *rules;
    struct assembly assembly;
    struct gateway_watch *watch;
    struct redactor *redactor; /* of the token and the keys of providers, for what is written */
    struct sigwatch *watches[2];
    const char *token;
    const char *url;
    const char *socket;
    int fd;
    nsec grace;
    int signals;
};

/* --- upstreams and routes --- */

/* A key that is too short to be recognised is none that a provider gave. */
static void keep_secret(struct server *s, const char *name, const char *value)
{
    if (redactor_add(s->redactor, str_of(name), str_of(value), NULL) < 0) {
        LOG_DEBUG("gateway", "secret_not_recognisable", LOG_STR("name", name));
    }
}

static const char *variable(void *arg, const char *name)
{
    const char *value = getenv(name);
    if (value != NULL) {
        keep_secret(arg, name, value);
    }
    return value;
}

/* "NAME=URL,format=F,key=V"; what stands before a '=' and has a colon is no name but a URL. */
static int add_upstream(struct server *s, const char *text, struct err *e)
{
    struct arena *a = s->cli->arena;
    struct routing_words w = { 0 };
    struct str rest = str_of(text);
    struct str first = str_split(&rest, ',');
    struct str url = first;
    struct str name = str_split(&url, '=');
    bool named = url.ptr != NULL && memchr(name.ptr, ':', name.len) == NULL && name.len > 0;
    w.upstream = arena_dup(a, named ? url : first);
    while (rest.ptr != NULL) {
        struct str value = str_split(&rest, ',');
        struct str key = str_split(&value, '=');
        if (str_eqc(key, "format") && value.ptr != NULL) {
            w.format = arena_dup(a, value);
        } else if (str_eqc(key, "key") && value.ptr != NULL) {
            w.key = arena_dup(a, value);
        } else {
            return ERR(e, ERR_USAGE, "--upstream %.80s: only format= and key= may follow the URL",
                       text);
        }
    }
    return routes_upstream(s->routes, named ? arena_dup(a, name) : NULL, &w, e);
}

static int add_route(struct server *s, const char *text, struct err *e)
{
    struct arena *a = s->cli->arena;
    struct str model = str_of(text);
    struct str pattern = str_split(&model, '=');
    if (model.ptr == NULL || pattern.len == 0 || model.len == 0) {
        return ERR(e, ERR_USAGE, "--route %.80s: expected PATTERN=NAME or PATTERN=NAME:MODEL",
                   text);
    }
    int rc = 0;
    struct str rest = model;
    for (size_t i = 0; rc == 0 && rest.ptr != NULL; i++) {
        model = str_split(&rest, ',');
        struct str name = str_split(&model, ':');
        if (i > EXCHANGE_FALLBACKS_MAX) {
            return ERR(e, ERR_USAGE, "--route %.80s: more than %d fallbacks", text,
                       EXCHANGE_FALLBACKS_MAX);
        }
        rc = routes_add(s->routes, i == 0 ? arena_dup(a, pattern) : NULL, arena_dup(a, name),
                        model.ptr == NULL ? NULL : arena_dup(a, model), e);
    }
    return rc;
}

static int add_file(struct server *s, const char *kind, struct err *e)
{
    const char *path = options_string(s->opt, kind, NULL);
    if (path == NULL) {
        return 0;
    }
    const struct routing_words w = { .upstream = arena_printf(s->cli->arena, "%s:%s", kind, path) };
    return routes_upstream(s->routes, NULL, &w, e);
}

/* The routes of the file, as a run would take them. */
static int add_config(struct server *s, struct err *e)
{
    const struct route_settings settings = {
        json_cstring(json_get(s->config, "script"), NULL),
        json_cstring(json_get(s->config, "cassette"), NULL),
        json_cstring(json_get(s->config, "upstream"), NULL),
        json_get(s->config, "routes"),
    };
    struct route_entry *entries;
    size_t n = 0;
    int rc = route_entries(s->cli->arena, &settings, &entries, &n, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = routes_direct(s->routes, entries[i].pattern, &entries[i].words, entries[i].model, e);
    }
    return rc;
}

static int read_endpoints(const struct server *s, unsigned *ret, struct err *e)
{
    int rc = route_endpoints(json_get(s->config, "endpoints"), ret, e);
    for (const char *const *w = options_list(s->opt, "endpoint"); rc == 0 && *w != NULL; w++) {
        rc = gateway_endpoint_add(*w, ret, e);
        rc = rc < 0 ? err_wrap(e, "--endpoint") : 0;
    }
    return rc;
}

static int check_routes(struct server *s, struct err *e)
{
    size_t n = routes_upstreams(s->routes);
    if (n == 0 && options_list(s->opt, "allow")[0] == NULL) {
        cli_hint(s->cli, "use --upstream https://api.anthropic.com, for example, or --script FILE");
        return ERR(e, ERR_USAGE, "no upstream is given");
    }
    if (n > 1 && !routes_given(s->routes)) {
        cli_hint(s->cli, "--route '*=NAME' sends all models to one of them");
        return ERR(e, ERR_USAGE, "%zu upstreams are given, but no --route selects one", n);
    }
    return 0;
}

static int load_config(struct server *s, struct err *e)
{
    const char *path = options_string(s->opt, "config", NULL);
    return path == NULL ? 0 : gateway_file_load(s->cli->arena, path, &s->config, e);
}

static struct json *strings_of(struct arena *a, const char *const *list)
{
    struct json *array = json_array(a);
    for (; *list != NULL; list++) {
        json_push(a, array, json_cstr(a, *list));
    }
    return array;
}

/* What a replay does not compare; in the form that profiles have. */
static struct json *volatile_rules(const struct server *s)
{
    struct arena *a = s->cli->arena;
    struct json *rules = json_object(a);
    json_setc(a, rules, "paths", strings_of(a, options_list(s->opt, "volatile-field")));
    json_setc(a, rules, "patterns", strings_of(a, options_list(s->opt, "volatile-pattern")));
    return rules;
}

static int open_routes(struct server *s, struct err *e)
{
    struct routes_opts o = { .variable = variable, .arg = s };
    o.upstreams.volatile_rules = volatile_rules(s);
    const char *speed = options_string(s->opt, "replay-speed", NULL);
    o.upstreams.replay_speed = json_real(json_get(s->config, "replay_speed"), 0);
    if (speed != NULL && (!str_to_double(str_of(speed), &o.upstreams.replay_speed) ||
                          o.upstreams.replay_speed < 0)) {
        return ERR(e, ERR_USAGE, "--replay-speed: '%.40s' is not a number; examples: 0, 1, 2.5",
                   speed);
    }
    o.upstreams.send_once = !options_flag(s->opt, "retries", true);
    s->routes = routes_new(s->loop, &o);
    int rc = add_file(s, "script", e);
    rc = rc < 0 ? rc : add_file(s, "cassette", e);
    for (const char *const *u = options_list(s->opt, "upstream"); rc == 0 && *u != NULL; u++) {
        rc = add_upstream(s, *u, e);
    }
    for (const char *const *r = options_list(s->opt, "route"); rc == 0 && *r != NULL; r++) {
        rc = add_route(s, *r, e);
    }
    rc = rc < 0 ? rc : add_config(s, e);
    s->rules = proxy_rules_new();
    for (const char *const *h = options_list(s->opt, "allow"); rc == 0 && *h != NULL; h++) {
        rc = proxy_rules_add(s->rules, *h, e);
    }
    return rc < 0 ? rc : check_routes(s, e);
}

/* --- budget, recorder --- */

static int read_limits(const struct server *s, struct budget_limits *ret, struct err *e)
{
    const char *usd = options_string(s->opt, "max-usd", NULL);
    double amount = 0;
    if (usd != NULL && (!str_to_double(str_of(usd), &amount) || price_pico(amount) <= 0)) {
        return ERR(e, ERR_USAGE, "--max-usd: '%.40s' is not an amount above 0; example: 2.50", usd);
    }
    *ret = (struct budget_limits) { .calls = options_int(s->opt, "max-calls", 0),
                                    .total = options_int(s->opt, "max-tokens", 0),
                                    .input = options_int(s->opt, "max-input-tokens", 0),
                                    .output = options_int(s->opt, "max-output-tokens", 0),
                                    .cost = price_pico(amount) };
    return 0;
}

static int open_account(struct server *s, struct err *e)
{
    const char *own = json_cstring(json_get(s->config, "prices"), NULL);
    struct account_opts o = { .throttle = THROTTLE_DEFAULT, .port = gateway_watch_port(s->watch) };
    int rc = read_limits(s, &o.limits, e);
    if (rc < 0) {
        return rc;
    }
    if (!options_flag(s->opt, "retries", true)) {
        o.throttle.max_attempts = 1;
    }
    (void)!getrandom(&o.seed, sizeof o.seed, 0);
    return assembly_account(s->cli->arena, options_string(s->opt, "prices", own), &o, &s->assembly,
                            e);
}

static int open_assembly(struct server *s, struct err *e)
{
    const struct gateway_watch_opts watch = { .cli = s->cli,
                                              .loop = s->loop,
                                              .ledger = options_string(s->opt, "ledger", NULL),
                                              .redactor = s->redactor };
    const struct cassette_writer_opts writer = { .redactor = s->redactor };
    const char *record = options_string(s->opt, "record-to", NULL);
    keep_secret(s, "CINCH_GATEWAY_TOKEN", s->token);
    redactor_compile(s->redactor);
    int rc = gateway_watch_new(&watch, &s->watch, e);
    rc = rc < 0 ? rc : open_account(s, e);
    return rc < 0 || record == NULL ? rc : assembly_record(record, &writer, &s->assembly, e);
}

/* --- the listener --- */

static int bind_tcp(struct server *s, struct err *e)
{
    struct str host, whole = str_of(options_string(s->opt, "listen", "127.0.0.1:0"));
    const char *colon = strrchr(whole.ptr, ':');
    int64_t port = 0;
    if (colon == NULL || !str_to_i64(str_of(colon + 1), &port) || port < 0 || port > 65535) {
        return ERR(e, ERR_USAGE, "--listen %.80s: expected ADDRESS:PORT", whole.ptr);
    }
    host = str_n(whole.ptr, (size_t)(colon - whole.ptr));
    bool v6 = str_starts(host, STR("["));
    host = v6 ? str_slice(host, 1, host.len - 1) : host;
    const char *address = arena_dup(s->cli->arena, host);
    if (!str_starts(host, STR("127.")) && !str_eqc(host, "::1")) {
        /* The token would cross the network in the clear. */
        return ERR(e, ERR_USAGE, "--listen %.80s: not a loopback address; use 127.0.0.1 or [::1]",
                   whole.ptr);
    }
    int bound;
    int rc = listener_bind_tcp(address, (int)port, &s->fd, &bound, e);
    s->url = arena_printf(s->cli->arena, v6 ? "http://[%s]:%d" : "http://%s:%d", address, bound);
    return rc;
}

static int open_listener(struct server *s, struct err *e)
{
    s->socket = options_string(s->opt, "socket", NULL);
    if (s->socket == NULL) {
        return bind_tcp(s, e);
    }
    if (options_given(s->opt, "listen")) {
        return ERR(e, ERR_USAGE, "--socket and --listen cannot be used together");
    }
    s->url = "http://localhost";
    return listener_bind_unix(s->socket, &s->fd, e);
}

static int choose_token(struct server *s, struct err *e)
{
    unsigned char random[24];
    char text[2 * sizeof random + 1];
    static const char digits[] = "0123456789abcdef";
    s->token = options_string(s->opt, "token", getenv("CINCH_GATEWAY_TOKEN"));
    if (s->token != NULL) {
        return strlen(s->token) >= 8 ? 0
                                     : ERR(e, ERR_USAGE, "the token is shorter than 8 characters");
    }
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return ERR_SYS(e, "cannot get random bytes");
    }
    for (size_t i = 0; i < sizeof random; i++) {
        text[2 * i] = digits[random[i] >> 4];
        text[2 * i + 1] = digits[random[i] & 15];
    }
    s->token = arena_dup(s->cli->arena, str_n(text, sizeof text - 1));
    return 0;
}

/* --- what the user is told --- */

static int variables_of(struct server *s, struct json **ret, struct err *e)
{
    struct arena *a = s->cli->arena;
    const char *adapter = options_string(s->opt, "print-env", NULL);
    struct profile_list list;
    const struct profile *p;
    /* There is no task, so no model of one: what the profile says for that case. */
    const struct placeholder items[] = { { "gateway_url", str_of(s->url), NULL },
                                         { "gateway_token", str_of(s->token), NULL },
                                         { "model", STR_EMPTY, NULL } };
    const struct placeholders vars = { items, ARRAY_LEN(items) };
    *ret = json_object(a);
    if (adapter != NULL) {
        const char *const *dirs;
        int rc = request_adapter_dirs(a, s->opt, &dirs, e);
        rc = rc < 0 ? rc : profile_load_all(a, dirs, &list, e);
        rc = rc < 0 ? rc : profile_require(&list, str_of(adapter), &p, e);
        if (rc < 0) {
            return rc;
        }
        if (p->gateway.env == NULL && p->gateway.files == NULL) {
            return ERR(e, ERR_CONFIG,
                       "adapter '%s' does not define how its agent connects to a gateway", adapter);
        }
        rc = p->gateway.env == NULL ? 0 : expand_tree(a, p->gateway.env, &vars, ret, e);
        rc = rc < 0 || p->gateway.files == NULL
                 ? rc
                 : expand_tree(a, p->gateway.files, &vars, &s->files, e);
        if (rc < 0) {
            return rc;
        }
        s->profile = p;
    }
    json_setc(a, *ret, "CINCH_GATEWAY_URL", json_cstr(a, s->url));
    json_setc(a, *ret, "CINCH_GATEWAY_TOKEN", json_cstr(a, s->token));
    return 0;
}

static void add_quoted(struct buf *out, const char *text)
{
    buf_adds(out, "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            buf_adds(out, "'\\''");
        } else {
            buf_add(out, str_n(text, 1));
        }
    }
    buf_adds(out, "'");
}

static const struct profile_file *file_of(const struct profile *p, struct str name)
{
    for (size_t i = 0; i < p->files_len; i++) {
        if (str_eqc(name, p->files[i].name)) {
            return &p->files[i];
        }
    }
    return NULL;
}

static int write_as(const struct json *v, enum config_format f, struct buf *out, struct err *e)
{
    switch (f) {
    case CONFIG_YAML:
        return yaml_write(v, out, e);
    case CONFIG_TOML:
        return toml_write(v, NULL, out, e);
    case CONFIG_JSON:
        break;
    }
    return json_write(v, JSON_PRETTY, out, e);
}

/* Some agents are led by a file: what it must have, as a comment, since a shell cannot take it. */
static int tell_files(struct server *s, struct buf *out, struct err *e)
{
    for (size_t i = 0; i < json_len(s->files); i++) {
        const struct json_member *m = &s->files->object.members[i];
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        const struct profile_file *f = file_of(s->profile, m->key);
        int rc = f == NULL ? 0 : write_as(m->value, f->format, &text, e);
        if (rc < 0) {
            return rc;
        }
        buf_addf(out, "# %s needs this in its configuration, %s:\n", s->profile->title,
                 f == NULL ? m->key.ptr : f->path);
        for (struct str rest = str_trim(buf_str(&text)); rest.ptr != NULL;) {
            struct str line = str_split(&rest, '\n');
            buf_addf(out, line.len == 0 ? "#\n" : "#   %.*s\n", STR_ARG(line));
        }
    }
    return 0;
}

static int tell(struct server *s, const struct json *variables, struct err *e)
{
    struct arena *a = s->cli->arena;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (s->cli->format == CLI_JSON) {
        struct json *o = json_object(a);
        json_setc(a, o, "url", json_cstr(a, s->url));
        json_setc(a, o, "socket", json_cstr(a, s->socket));
        json_setc(a, o, "token", json_cstr(a, s->token));
        json_setc(a, o, "env", (struct json *)variables);
        if (s->files != NULL) {
            json_setc(a, o, "files", s->files);
        }
        (void)!json_write(o, JSON_COMPACT, &out, NULL); /* one line: a program waits for it */
        buf_adds(&out, "\n");
    } else {
        for (size_t i = 0; i < json_len(variables); i++) {
            const struct json_member *m = &variables->object.members[i];
            buf_addf(&out, "export %s=", m->key.ptr);
            add_quoted(&out, json_cstring(m->value, ""));
            buf_adds(&out, "\n");
        }
        int rc = tell_files(s, &out, e);
        if (rc < 0) {
            return rc;
        }
        if (s->socket != NULL) {
            buf_adds(&out, "# on the socket ");
            add_quoted(&out, s->socket);
            buf_adds(&out, "\n");
        }
    }
    cli_print(s->cli, &out);
    return terminal_flush(&s->cli->out, e); /* who started us waits for it */
}

/* --- running --- */

static void on_stopped(void *arg)
{
    struct server *s = arg;
    loop_stop(s->loop);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    struct server *s = arg;
    if (s->signals++ > 0) {
        loop_stop(s->loop); /* somebody is in a hurry */
        return;
    }
    gateway_stop(s->assembly.gateway, s->grace, on_stopped, s);
}

/* What went wrong meanwhile without stopping anything. */
static int outcome(struct server *s, struct err *e)
{
    struct err first = { 0 };
    struct str missed = routes_missed(s->routes);
    struct str line = str_slice(missed, 0, str_find(missed, STR("\n")));
    if (missed.len > line.len + 1 && s->cli->format == CLI_TEXT) {
        CLEANUP(buf) struct buf report = BUF_INIT(BUF_TEXT);
        text_clean(&report, missed, TEXT_BLOCK); /* too long for a message */
        terminal_write(&s->cli->err, buf_str(&report));
    }
    if (missed.len > 0) {
        struct str told = s->cli->format == CLI_TEXT ? line : missed;
        return ERR(e, ERR_CONFIG, "%.*s", STR_ARG(told));
    }
    uint64_t lost = assembly_close(&s->assembly, &first);
    return lost == 0 ? 0
                     : ERR(e, ERR_OUTPUT, "%llu exchanges were not recorded: %s",
                           (unsigned long long)lost, first.msg);
}

static int serve(struct server *s, struct err *e)
{
    struct json *variables;
    struct gateway_opts o = {
        .listeners = &s->fd,
        .n_listeners = 1,
        .token = s->token,
        .egress = options_list(s->opt, "allow")[0] == NULL ? NULL : s->rules,
        .spill_dir = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/var/tmp",
        .limits = { .body = (size_t)options_int(s->opt, "max-body", 0),
                    .head = options_duration(s->opt, "head-timeout", 0),
                    .stall = options_duration(s->opt, "stall-timeout", 0) },
        .port = gateway_watch_events(s->watch),
    };
    o.routes = routes_list(s->routes, &o.n_routes);
    int rc = variables_of(s, &variables, e);
    rc = rc < 0 ? rc : read_endpoints(s, &o.endpoints, e);
    rc = rc < 0 ? rc : sigwatch_new(s->loop, SIGTERM, on_signal, s, &s->watches[0], e);
    rc = rc < 0 ? rc : sigwatch_new(s->loop, SIGINT, on_signal, s, &s->watches[1], e);
    if (rc < 0) {
        return rc;
    }
    rc = assembly_listen(s->loop, &o, &s->assembly, e);
    s->fd = -1;
    if (rc < 0) {
        return rc;
    }
    s->grace = options_duration(s->opt, "grace", 10 * NSEC_PER_SEC);
    gateway_watch_start(s->watch, s->assembly.account, s->assembly.gateway);
    rc = tell(s, variables, e);
    if (rc < 0) {
        return rc;
    }
    loop_run(s->loop);
    rc = gateway_watch_end(s->watch, e);
    return rc < 0 ? rc : outcome(s, e);
}

static void close_server(struct server *s)
{
    (void)assembly_close(&s->assembly, NULL);
    s->watch = gateway_watch_free(s->watch);
    s->watches[0] = sigwatch_free(s->watches[0]);
    s->watches[1] = sigwatch_free(s->watches[1]);
    s->routes = routes_free(s->routes);
    s->loop = loop_free(s->loop);
    assembly_done(&s->assembly);
    s->redactor = redactor_free(s->redactor);
    s->rules = proxy_rules_free(s->rules);
    if (s->fd >= 0 || s->socket != NULL) {
        cleanup_fd(&s->fd);
        (void)(s->socket != NULL && unlink(s->socket));
    }
}

static int run_gateway(struct cli *cli, const struct options *opt, struct err *e)
{
    struct server s = { .cli = cli, .opt = opt, .fd = -1, .redactor = redactor_new() };
    int rc = loop_new(&s.loop, e);
    rc = rc < 0 ? rc : choose_token(&s, e);
    rc = rc < 0 ? rc : load_config(&s, e);
    rc = rc < 0 ? rc : open_routes(&s, e);
    rc = rc < 0 ? rc : open_assembly(&s, e);
    rc = rc < 0 ? rc : open_listener(&s, e);
    if (rc < 0) {
        s.socket = NULL; /* not ours */
    }
    rc = rc < 0 ? rc : serve(&s, e);
    close_server(&s);
    return rc;
}

static const char *const usage[] = { "--upstream URL [OPTIONS]", "--script FILE [OPTIONS]",
                                     "--config FILE [OPTIONS]", NULL };

static const char *const description[] = {
    "Runs the gateway on its own until SIGTERM or SIGINT: one local address for every model. "
    "Clients use it like their usual provider (Anthropic Messages, OpenAI Responses and Chat "
    "Completions, Gemini), with the token as their key; real keys are not given to clients. The "
    "routes select an upstream by model. Requests are forwarded unchanged if the upstream uses the "
    "same format, and translated otherwise.",
    "It first prints the variables that clients need, as shell commands or, with --format json, as "
    "one line of JSON. With --format json a line for each call, refusal and failed attempt "
    "follows, "
    "in the form of events.jsonl. On a terminal a status line shows calls, tokens and cost.",
    "A gateway can be the shared budget of many runs: name its address as their upstream. A run "
    "whose call it refuses fails with the reason `budget` and names the limit.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch gateway --upstream https://api.anthropic.com --listen 127.0.0.1:8787",
      "use the key in ANTHROPIC_API_KEY" },
    { "cinch gateway --script hello.yaml --print-env command",
      "serve a scripted model to any program" },
    { "cinch gateway -u local=http://127.0.0.1:8000/v1,format=chat -r '*=local:qwen3'",
      "use a local model with any client" },
    { "cinch gateway -u https://api.anthropic.com --max-usd 20 --ledger spent.json",
      "share a budget of 20 dollars" },
    { "cinch gateway -u https://api.openai.com --allow '*.example.org'", "also act as a proxy" },
    { 0 },
};

const struct command cmd_gateway = {
    .name = "gateway",
    .summary = "serve every model at one local address",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .run = run_gateway,
};

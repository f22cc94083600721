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
#include "cli/request.h"
#include "cli/text.h"
#include "gateway/account.h"
#include "gateway/cassette_upstream.h"
#include "gateway/gateway.h"
#include "gateway/price.h"
#include "gateway/proxy.h"
#include "gateway/route.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/sigwatch.h"
#include "record/redact.h"

static const struct option options[] = {
    { "listen", 'l', OPTION_STRING, .value = "ADDRESS:PORT", .shown = "127.0.0.1:0",
      .section = "Where clients come in",
      .help = "loopback address and port; port 0 takes a free one" },
    { "socket", 0, OPTION_PATH, .value = "PATH",
      .help = "a unix socket instead, which only you can open" },
    { "token", 0, OPTION_STRING, .value = "TOKEN",
      .help = "what clients show as their key; else $CINCH_GATEWAY_TOKEN, else a random one" },
    { "env", 'e', OPTION_STRING, .value = "ADAPTER", .complete = COMPLETE_ADAPTER,
      .help = "print the variables that lead this agent here, for the shell" },
    { "adapter-dir", 0, OPTION_PATH, .value = "DIR", .flags = OPTION_REPEAT,
      .complete = COMPLETE_DIRECTORY, .help = "more adapter profiles, for --env" },

    { "upstream", 'u', OPTION_STRING, .value = "[NAME=]URL", .flags = OPTION_REPEAT,
      .section = "What stands behind it",
      .help = "a provider, a compatible server or another gateway; may end with ',format=F' and "
              "',key=VARIABLE'" },
    { "route", 'r', OPTION_STRING, .value = "PATTERN=NAME[:MODEL]", .flags = OPTION_REPEAT,
      .help = "models that fit PATTERN go to upstream NAME, as MODEL" },
    { "script", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "answers come from a script" },
    { "cassette", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "answers come from a recording" },
    { "replay-speed", 0, OPTION_STRING, .value = "FACTOR", .shown = "0",
      .help = "of the recording: 1 is as recorded, 0 at once" },
    { "record", 0, OPTION_PATH, .value = "FILE", .complete = COMPLETE_FILE,
      .help = "record all model traffic into a new cassette" },
    { "allow", 'a', OPTION_STRING, .value = "HOST[:PORT]", .flags = OPTION_REPEAT,
      .help = "be a proxy for this host; '*.name', addresses and networks work too" },

    { "max-calls", 0, OPTION_INT, .value = "N", .min = 1, .max = INT64_MAX, .section = "Limits",
      .help = "refuse model calls beyond this number" },
    { "max-tokens", 0, OPTION_INT, .value = "N", .min = 1, .max = INT64_MAX,
      .help = "refuse calls once this many tokens are used" },
    { "max-body", 0, OPTION_INT, .value = "BYTES", .min = 1, .max = (int64_t)1 << 30,
      .shown = "67108864", .help = "largest request" },
    { "grace", 0, OPTION_DURATION, .value = "TIME", .shown = "10s",
      .help = "how long answers may take to finish after SIGTERM" },
    { "head-timeout", 0, OPTION_DURATION, .value = "TIME", .flags = OPTION_HIDDEN | OPTION_POSITIVE,
      .help = "how long the head of a request may take" },
    { "stall-timeout", 0, OPTION_DURATION, .value = "TIME",
      .flags = OPTION_HIDDEN | OPTION_POSITIVE, .help = "how long a client may not move" },
    { "retries", 0, OPTION_FLAG, .flags = OPTION_NEGATABLE,
      .help = "try again where a provider is busy", .shown = "yes" },
    { 0 },
};

#define FILTERS 4

struct server {
    struct cli *cli;
    const struct options *opt;
    struct loop *loop;
    struct routes *routes;
    struct proxy_rules *rules;
    struct account *account;
    struct cassette_writer *writer;
    struct redactor *redactor; /* of the token and the keys of providers, for what is recorded */
    struct gateway *gateway;
    struct sigwatch *watches[2];
    struct filter filters[FILTERS];
    size_t n_filters;
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
            return ERR(e, ERR_USAGE,
                       "--upstream %.80s: after the address come only format= and key=", text);
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
        return ERR(e, ERR_USAGE, "--route %.80s: write PATTERN=NAME or PATTERN=NAME:MODEL", text);
    }
    struct str name = str_split(&model, ':');
    return routes_add(s->routes, arena_dup(a, pattern), arena_dup(a, name),
                      model.ptr == NULL ? NULL : arena_dup(a, model), e);
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

static int open_routes(struct server *s, struct err *e)
{
    struct routes_opts o = { .variable = variable, .arg = s };
    const char *speed = options_string(s->opt, "replay-speed", "0");
    if (!str_to_double(str_of(speed), &o.replay_speed) || o.replay_speed < 0) {
        return ERR(e, ERR_USAGE, "--replay-speed %.40s: give a number such as 0, 1 or 2.5", speed);
    }
    s->routes = routes_new(s->loop, &o);
    int rc = add_file(s, "script", e);
    rc = rc < 0 ? rc : add_file(s, "cassette", e);
    for (const char *const *u = options_list(s->opt, "upstream"); rc == 0 && *u != NULL; u++) {
        rc = add_upstream(s, *u, e);
    }
    for (const char *const *r = options_list(s->opt, "route"); rc == 0 && *r != NULL; r++) {
        rc = add_route(s, *r, e);
    }
    s->rules = proxy_rules_new();
    const char *const *hosts = options_list(s->opt, "allow");
    for (const char *const *h = hosts; rc == 0 && *h != NULL; h++) {
        rc = proxy_rules_add(s->rules, *h, e);
    }
    size_t n = 0;
    (void)routes_list(s->routes, &n);
    if (rc == 0 && n == 0 && hosts[0] == NULL) {
        cli_hint(s->cli, "for example --upstream https://api.anthropic.com, or --script FILE");
        return ERR(e, ERR_USAGE, "nothing stands behind the gateway: no upstream is given");
    }
    return rc;
}

/* --- filters --- */

static int open_filters(struct server *s, struct err *e)
{
    struct price_table *prices;
    int rc = price_load(s->cli->arena, NULL, &prices, e);
    if (rc < 0) {
        return rc;
    }
    struct account_opts o = {
        .limits = { .calls = options_int(s->opt, "max-calls", 0),
                    .total = options_int(s->opt, "max-tokens", 0) },
        .throttle = THROTTLE_DEFAULT,
        .prices = prices,
    };
    if (!options_flag(s->opt, "retries", true)) {
        o.throttle.max_attempts = 1;
    }
    (void)!getrandom(&o.seed, sizeof o.seed, 0);
    s->account = account_new(&o);
    s->filters[s->n_filters++] = account_budget_filter(s->account);
    s->filters[s->n_filters++] = account_throttle_filter(s->account);
    const char *record = options_string(s->opt, "record", NULL);
    if (record != NULL) {
        const struct cassette_writer_opts w = { .redactor = s->redactor };
        keep_secret(s, "CINCH_GATEWAY_TOKEN", s->token);
        redactor_compile(s->redactor);
        rc = cassette_writer_new(record, &w, &s->writer, e);
        if (rc < 0) {
            return rc;
        }
        cassette_filter(s->writer, &s->filters[s->n_filters++]);
    }
    s->filters[s->n_filters++] = account_meter_filter(s->account);
    return 0;
}

/* --- the listener --- */

static int bind_tcp(struct server *s, struct err *e)
{
    struct str host, whole = str_of(options_string(s->opt, "listen", "127.0.0.1:0"));
    const char *colon = strrchr(whole.ptr, ':');
    int64_t port = 0;
    if (colon == NULL || !str_to_i64(str_of(colon + 1), &port) || port < 0 || port > 65535) {
        return ERR(e, ERR_USAGE, "--listen %.80s: write ADDRESS:PORT", whole.ptr);
    }
    host = str_n(whole.ptr, (size_t)(colon - whole.ptr));
    bool v6 = str_starts(host, STR("["));
    host = v6 ? str_slice(host, 1, host.len - 1) : host;
    const char *address = arena_dup(s->cli->arena, host);
    if (!str_starts(host, STR("127.")) && !str_eqc(host, "::1")) {
        /* The token would cross the network in the clear. */
        return ERR(e, ERR_USAGE, "--listen %.80s: only loopback addresses, 127.0.0.1 or [::1]",
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
        return ERR(e, ERR_USAGE, "--socket and --listen exclude each other");
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
                                     : ERR(e, ERR_USAGE, "the token has less than 8 characters");
    }
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return ERR_SYS(e, "get random bytes");
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
    const char *adapter = options_string(s->opt, "env", NULL);
    struct profile_list list;
    const struct profile *p;
    const struct placeholder items[] = { { "gateway_url", str_of(s->url), NULL },
                                         { "gateway_token", str_of(s->token), NULL } };
    const struct placeholders vars = { items, ARRAY_LEN(items) };
    *ret = json_object(a);
    if (adapter != NULL) {
        int rc = profile_load_all(a, request_adapter_dirs(a, s->opt), &list, e);
        rc = rc < 0 ? rc : profile_require(&list, str_of(adapter), &p, e);
        if (rc < 0) {
            return rc;
        }
        if (p->gateway.env == NULL) {
            return ERR(e, ERR_CONFIG, "adapter '%s' does not say how its agent finds a gateway",
                       adapter);
        }
        rc = expand_tree(a, p->gateway.env, &vars, ret, e);
        if (rc < 0) {
            return rc;
        }
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
        (void)!json_write(o, JSON_COMPACT, &out, NULL); /* one line: a program waits for it */
        buf_adds(&out, "\n");
    } else {
        for (size_t i = 0; i < json_len(variables); i++) {
            const struct json_member *m = &variables->object.members[i];
            buf_addf(&out, "export %s=", m->key.ptr);
            add_quoted(&out, json_cstring(m->value, ""));
            buf_adds(&out, "\n");
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
    gateway_stop(s->gateway, s->grace, on_stopped, s);
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
    uint64_t lost = s->writer == NULL ? 0 : cassette_writer_lost(s->writer, &first);
    return lost == 0 ? 0
                     : ERR(e, ERR_OUTPUT, "%llu exchanges are not in the recording: %s",
                           (unsigned long long)lost, first.msg);
}

static int serve(struct server *s, struct err *e)
{
    struct json *variables;
    struct gateway_opts o = {
        .listeners = &s->fd,
        .n_listeners = 1,
        .token = s->token,
        .filters = s->filters,
        .n_filters = s->n_filters,
        .egress = options_list(s->opt, "allow")[0] == NULL ? NULL : s->rules,
        .spill_dir = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/var/tmp",
        .limits = { .body = (size_t)options_int(s->opt, "max-body", 0),
                    .head = options_duration(s->opt, "head-timeout", 0),
                    .stall = options_duration(s->opt, "stall-timeout", 0) },
    };
    o.routes = routes_list(s->routes, &o.n_routes);
    int rc = variables_of(s, &variables, e);
    rc = rc < 0 ? rc : sigwatch_new(s->loop, SIGTERM, on_signal, s, &s->watches[0], e);
    rc = rc < 0 ? rc : sigwatch_new(s->loop, SIGINT, on_signal, s, &s->watches[1], e);
    if (rc < 0) {
        return rc;
    }
    rc = gateway_open(s->loop, &o, &s->gateway, e);
    s->fd = -1;
    if (rc < 0) {
        return rc;
    }
    s->grace = options_duration(s->opt, "grace", 10 * NSEC_PER_SEC);
    rc = tell(s, variables, e);
    if (rc < 0) {
        return rc;
    }
    loop_run(s->loop);
    return outcome(s, e);
}

static void close_server(struct server *s)
{
    s->gateway = gateway_free(s->gateway);
    s->watches[0] = sigwatch_free(s->watches[0]);
    s->watches[1] = sigwatch_free(s->watches[1]);
    s->routes = routes_free(s->routes);
    s->loop = loop_free(s->loop);
    s->account = account_free(s->account);
    s->writer = cassette_writer_free(s->writer);
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
    rc = rc < 0 ? rc : open_routes(&s, e);
    rc = rc < 0 ? rc : open_filters(&s, e);
    rc = rc < 0 ? rc : open_listener(&s, e);
    if (rc < 0) {
        s.socket = NULL; /* not ours */
    }
    rc = rc < 0 ? rc : serve(&s, e);
    close_server(&s);
    return rc;
}

static const char *const usage[] = { "--upstream URL [OPTIONS]", "--script FILE [OPTIONS]", NULL };

static const char *const description[] = {
    "Runs the gateway alone, until SIGTERM or SIGINT: one local address for every model. Clients "
    "use it like the provider they know (Anthropic Messages, OpenAI Responses and Chat "
    "Completions, Gemini), with the token as their key; real keys stay here. Requests go to the "
    "upstream that the routes choose by model, byte for byte if it speaks the same format, and "
    "translated if not.",
    "Prints the variables that clients need, as lines for a shell, or with --format json as one "
    "line of JSON, and then serves.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch gateway --upstream https://api.anthropic.com --listen 127.0.0.1:8787",
      "with the key in ANTHROPIC_API_KEY" },
    { "cinch gateway --script hello.yaml --env command", "a scripted model for any program" },
    { "cinch gateway -u local=http://127.0.0.1:8000/v1,format=chat -r '*=local:qwen3'",
      "any client on a local model" },
    { "cinch gateway -u https://api.openai.com --allow '*.example.org'", "and a proxy" },
    { 0 },
};

const struct command cmd_gateway = {
    .name = "gateway",
    .summary = "one local address for every model",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .run = run_gateway,
};

/* SPDX-License-Identifier: MIT
 *
 * cinch mcp: an MCP server over HTTP as a program, and the tools of a server with their pins.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/macro.h"
#include "cli/command.h"
#include "cli/text.h"
#include "data/yaml.h"
#include "io/loop.h"
#include "mcp/mcp_link.h"
#include "mcp/mcp_shim.h"
#include "proc/helper_program.h"
#include "proc/orphans.h"
#include "tools/tool_mcp.h"

#define TOOLS_NAME "server" /* of a definition that nobody named */

extern char **environ;

static const char *const actions[] = { "serve", "tools", NULL };

static const struct positional positionals[] = {
    { "ACTION", "serve (default): forward a client's requests; tools: list the tools of a server",
      .optional = true, .complete = COMPLETE_WORDS, .words = actions },
    { 0 },
};

static const struct option options[] = {
    { "url", 0, OPTION_STRING, .old_letter = 'u', .value = "URL", .section = "Server",
      .shown = "$CINCH_MCP_URL", .help = "connect to the server at URL" },
    { "token-env", 0, OPTION_STRING, .value = "NAME", .shown = "CINCH_MCP_TOKEN",
      .help = "read the bearer token from this variable" },
    { "header", 'H', OPTION_PAIR, .value = "NAME=VALUE", .flags = OPTION_REPEAT, .section = "Tools",
      .help = "add a header to each request; $NAME in VALUE is replaced by the variable" },
    { "name", 0, OPTION_STRING, .old_letter = 'n', .value = "NAME", .shown = TOOLS_NAME,
      .help = "set the name in the definition" },
    { 0 },
};

/* --- serve --- */

struct state_store {
    struct loop *loop;
    int rc;
    struct err why;
};

static void on_shim_ended(void *arg, const struct err *why)
{
    struct state_store *s = arg;
    if (why != NULL) {
        s->why = *why;
        s->rc = -(int)why->code;
    }
    loop_stop(s->loop);
}

static const char *token_of(const struct options *opt)
{
    return getenv(options_string(opt, "token-env", "CINCH_MCP_TOKEN"));
}

static int serve(struct cli *cli, const struct options *opt, const char *url, struct err *e)
{
    struct state_store s = { 0 };
    struct mcp_shim *shim = NULL;
    if (options_rest(opt) != NULL) {
        return ERR(
            e, ERR_USAGE,
            "'cinch mcp serve' takes no command: use --url, or 'cinch mcp tools -- COMMAND'");
    }
    if (url == NULL) {
        cli_hint(cli, "use --url http://127.0.0.1:8787/mcp, for example, or set CINCH_MCP_URL");
        return ERR(e, ERR_USAGE, "no server is given");
    }
    int flags[2] = { fcntl(STDIN_FILENO, F_GETFL), fcntl(STDOUT_FILENO, F_GETFL) };
    int rc = loop_new(&s.loop, e);
    if (rc < 0) {
        return rc;
    }
    const struct mcp_shim_opts o = { .loop = s.loop,
                                     .url = url,
                                     .token = token_of(opt),
                                     .in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
                                     .out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
                                     .ended = on_shim_ended,
                                     .arg = &s };
    rc = mcp_shim_new(&o, &shim, e);
    if (rc == 0) {
        loop_run(s.loop);
        shim = mcp_shim_free(shim);
        rc = s.rc;
        if (rc < 0) {
            *e = s.why;
        }
    }
    s.loop = loop_free(s.loop);
    /* They may be a terminal's, which the shell goes on to use. */
    (void)fcntl(STDIN_FILENO, F_SETFL, flags[0]);
    (void)fcntl(STDOUT_FILENO, F_SETFL, flags[1]);
    return rc;
}

/* --- tools --- */

struct look {
    struct cli *cli;
    struct loop *loop;
    struct toolserver *server;
    struct json *list; /* NULL: it failed */
    int rc;
    struct err why;
};

static const char *variable(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

static void on_ready(void *arg, struct toolserver *s, const struct tool *tools, size_t n)
{
    struct look *l = arg;
    for (size_t i = 0; i < n; i++) {
        struct tool t = tools[i];
        tool_free(&t);
    }
    l->list = toolserver_list(s, l->cli->arena);
    toolserver_stop(s);
}

static void on_failed(void *arg, struct toolserver *s, const struct err *why)
{
    struct look *l = arg;
    l->why = *why;
    l->rc = -(int)why->code;
    toolserver_stop(s);
}

static void on_event(void *arg, struct toolserver *s, enum toolserver_event ev, struct str tool,
                     const char *text)
{
    struct look *l = arg;
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    (void)s;
    if (l->cli->format == CLI_TEXT) {
        buf_addf(&line, "cinch: %s", toolserver_event_word(ev));
        buf_addf(&line, tool.len > 0 ? " '%.*s': " : "%.*s: ", STR_ARG(tool));
        text_clean(&line, str_of(text), TEXT_LINE);
        buf_adds(&line, "\n");
        terminal_write(&l->cli->err, buf_str(&line));
    }
}

static void on_stopped(void *arg, struct toolserver *s)
{
    struct look *l = arg;
    (void)s;
    loop_stop(l->loop);
}

/* {name, mcp: {command|url, headers?}} as a task would have it. */
static int define(struct cli *cli, const struct options *opt, const char *url, struct json **ret,
                  struct err *e)
{
    struct arena *a = cli->arena;
    struct json *d = json_object(a);
    struct json *mcp = json_object(a);
    struct json *headers = json_object(a);
    const char *const *command = options_rest(opt);
    if ((command != NULL) == (url != NULL)) {
        return ERR(e, ERR_USAGE, "give either a command after '--', or --url");
    }
    json_setc(a, d, "name", json_cstr(a, options_string(opt, "name", TOOLS_NAME)));
    json_setc(a, d, "mcp", mcp);
    if (command != NULL) {
        struct json *words = json_array(a);
        for (const char *const *w = command; *w != NULL; w++) {
            json_push(a, words, json_cstr(a, *w));
        }
        json_setc(a, mcp, "command", words);
        *ret = d;
        return 0;
    }
    json_setc(a, mcp, "url", json_cstr(a, url));
    if (token_of(opt) != NULL) {
        const char *name = options_string(opt, "token-env", "CINCH_MCP_TOKEN");
        json_setc(a, headers, "Authorization", json_cstr(a, arena_printf(a, "Bearer $%s", name)));
    }
    for (const char *const *h = options_list(opt, "header"); *h != NULL; h++) {
        struct str name, value;
        (void)option_pair(*h, &name, &value);
        json_set(a, headers, name, json_string(a, value));
    }
    if (json_len(headers) > 0) {
        json_setc(a, mcp, "headers", headers);
    }
    *ret = d;
    return 0;
}

static void print_tools(struct cli *cli, struct json *definition, const struct json *list)
{
    struct arena *a = cli->arena;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *pins = json_object(a);
    struct json *all = json_array(a);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *t = json_item(list, i);
        const struct json *name = json_get(t, "name");
        if (!json_is(json_get(t, "offered"), JSON_STRING)) {
            continue;
        }
        json_set(a, pins, name->string, json_copy(a, json_get(t, "pin")));
        if (cli->format == CLI_QUIET) {
            text_clean(&out, name->string, TEXT_LINE);
            buf_adds(&out, "\n");
        }
    }
    json_setc(a, json_get(definition, "mcp"), "pin", pins);
    if (cli->format == CLI_JSON) {
        struct json *o = json_object(a);
        json_setc(a, o, "definition", definition);
        json_setc(a, o, "tools", json_copy(a, list));
        cli_print_json(cli, o);
        return;
    }
    json_push(a, all, definition);
    if (cli->format == CLI_TEXT && yaml_write(all, &out, NULL) < 0) {
        buf_reset(&out);
    }
    cli_print(cli, &out);
}

static int show_tools(struct cli *cli, const struct options *opt, const char *url, struct err *e)
{
    struct look l = { .cli = cli };
    struct json *definition = NULL;
    int rc = define(cli, opt, url, &definition, e);
    rc = rc < 0 ? rc : loop_new(&l.loop, e);
    if (rc < 0) {
        return rc;
    }
    CLEANUP(orphans) struct orphans *orphans = NULL;
    (void)!orphans_new(&orphans, NULL); /* fails without /proc, where none could be found either */
    const struct helper_host host = { .loop = l.loop,
                                      .orphans = orphans,
                                      .envp = (const char *const *)environ };
    const struct toolserver_opts o = { .host = &host,
                                       .definition = definition,
                                       .http = mcp_link_new,
                                       .secret = variable,
                                       .ready = on_ready,
                                       .failed = on_failed,
                                       .event = on_event,
                                       .stopped = on_stopped,
                                       .arg = &l };
    rc = toolserver_open(&o, &l.server, e);
    if (rc == 0) {
        loop_run(l.loop);
        l.server = toolserver_free(l.server);
        rc = l.rc;
        if (rc < 0) {
            *e = l.why;
        }
    }
    l.loop = loop_free(l.loop);
    if (rc == 0 && l.list != NULL) {
        print_tools(cli, definition, l.list);
    }
    return rc;
}

static int run_mcp(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *action = options_arg(opt, 0);
    const char *url = options_string(opt, "url", NULL);
    const char *usual = getenv("CINCH_MCP_URL");
    if (url == NULL && options_rest(opt) == NULL && usual != NULL && usual[0] != '\0') {
        url = usual;
    }
    if (action != NULL && strcmp(action, "tools") == 0) {
        return show_tools(cli, opt, url, e);
    }
    if (action != NULL && strcmp(action, "serve") != 0) {
        const char *near = option_suggest(action, actions);
        return ERR(e, ERR_USAGE, "unknown action '%.40s'%s%s%s", action,
                   near == NULL ? "" : "; did you mean ", near == NULL ? "" : near,
                   near == NULL ? "" : "?");
    }
    return serve(cli, opt, url, e);
}

static const char *const usage[] = { "[serve] --url URL [--token-env NAME]",
                                     "tools [OPTIONS] -- COMMAND...", "tools --url URL [OPTIONS]",
                                     NULL };

static const char *const description[] = {
    "'serve' is an MCP server for clients that can only start programs. It posts lines of JSON-RPC "
    "from stdin to the server at URL, and prints the responses and notifications as lines. It "
    "exits at the end of its input. A message that cannot be posted gets an error response. "
    "'serve' needs no configuration and works inside a sandbox.",
    "'tools' starts a server (or connects to the one at URL) and prints its definition for the "
    "`tools` of a task, with a pin for each tool: the hash of its current name, description and "
    "schemas. A run refuses a tool whose hash differs. Tools that a run would always refuse are "
    "reported on stderr. COMMAND runs without a sandbox.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch mcp --url http://127.0.0.1:8787/mcp",
      "forward stdin to a server, with the token in CINCH_MCP_TOKEN" },
    { "cinch mcp tools -- npx -y @modelcontextprotocol/server-everything",
      "print the definition of a server for a task" },
    { "cinch mcp tools --url https://mcp.example.org/ -H 'X-Key=$EXAMPLE_KEY'",
      "print the definition of an HTTP server" },
    { 0 },
};

const struct command cmd_mcp = {
    .name = "mcp",
    .minor = true,
    .summary = "connect to MCP servers, pin their tools",
    .usage = usage,
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .rest = "COMMAND...",
    .run = run_mcp,
};

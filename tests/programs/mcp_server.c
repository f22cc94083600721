/* SPDX-License-Identifier: MIT
 *
 * An MCP server for tests: the tools that the official conformance suite asks for, and some that
 * are slow, never end, lie about their schema or change the list. Says {"url":…} on stdout and
 * serves until SIGTERM.
 *
 *   mcp_server [TOKEN [PAGE]]      without a token everybody is served; PAGE: tools in a page
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "gateway/gateway.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/sigwatch.h"
#include "io/timer.h"
#include "mcp/mcp_mount.h"

static const char tools_json[] =
    "["
    "{\"name\":\"test_simple_text\",\"description\":\"Says a sentence\",\"inputSchema"
    "\":{\"type\":\"object\"}},"
    "{\"name\":\"test_image_content\",\"description\":\"Gives an image\",\"inputSchem"
    "a\":{\"type\":\"object\"}},"
    "{\"name\":\"test_audio_content\",\"description\":\"Gives a sound\",\"inputSchema"
    "\":{\"type\":\"object\"}},"
    "{\"name\":\"test_embedded_resource\",\"description\":\"Gives a resource\",\"inpu"
    "tSchema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_multiple_content_types\",\"description\":\"Gives all\",\"inputS"
    "chema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_error_handling\",\"description\":\"Fails\",\"inputSchema\":{\"t"
    "ype\":\"object\"}},"
    "{\"name\":\"test_tool_with_progress\",\"description\":\"Takes its time\",\"input"
    "Schema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_structured\",\"description\":\"Gives values\",\"inputSchema\":{"
    "\"type\":\"object\"},\"outputSchema\":{\"type\":\"object\",\"properties\":{\"sum"
    "\":{\"type\":\"integer\"}},\"required\":[\"sum\"]}},"
    "{\"name\":\"test_lying\",\"description\":\"Breaks its schema\",\"inputSchema\":{"
    "\"type\":\"object\"},\"outputSchema\":{\"type\":\"object\",\"properties\":{\"sum"
    "\":{\"type\":\"integer\"}},\"required\":[\"sum\"]}},"
    "{\"name\":\"test_streaming_elicitation\",\"description\":\"Asks the client for nothing"
    "\",\"inputSchema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_logging_tool\",\"description\":\"Logs nothing\",\"inputSchema\":{\"t"
    "ype\":\"object\"}},"
    "{\"name\":\"test_meta\",\"description\":\"Says what _meta was\",\"inputSchema\":"
    "{\"type\":\"object\"}},"
    "{\"name\":\"test_never\",\"description\":\"Never ends\",\"inputSchema\":{\"type"
    "\":\"object\"}},"
    "{\"name\":\"test_cancelled\",\"description\":\"Counts calls that were cancelled"
    "\",\"inputSchema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_waiting\",\"description\":\"Counts calls of test_never that be"
    "gan\",\"inputSchema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_large\",\"description\":\"Gives ten million characters\",\"inpu"
    "tSchema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_trigger_tool_change\",\"description\":\"Changes the list\",\"in"
    "putSchema\":{\"type\":\"object\"}},"
    "{\"name\":\"test_header\",\"description\":\"Has a mirrored parameter\",\"inputSc"
    "hema\":{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\",\"x-"
    "mcp-header\":\"Region\"},\"query\":{\"type\":\"string\"}}}},"
    "{\"name\":\"json_schema_2020_12_tool\",\"description\":\"Has a schema of many ke"
    "ywords\",\"inputSchema\":{\"$schema\":\"https://json-schema.org/draft/2020-12/sc"
    "hema\",\"type\":\"object\",\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\""
    "type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"t"
    "ype\":\"string\"}}}},\"properties\":{\"name\":{\"type\":\"string\"},\"address\":"
    "{\"$ref\":\"#/$defs/address\"},\"contactMethod\":{\"type\":\"string\",\"enum\":["
    "\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"stri"
    "ng\"}},\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email"
    "\"]}]}],\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"requi"
    "red\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},\"else\":{\"requi"
    "red\":[\"email\"]},\"additionalProperties\":false}}"
    "]";

static const struct {
    const char *tool, *result;
} answers[] = {
    { "test_simple_text",
      "{\"content\":[{\"type\":\"text\",\"text\":\"This is a simple text response for t"
      "esting.\"}]}" },
    { "test_image_content",
      "{\"content\":[{\"type\":\"image\",\"data\":\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAY"
      "AAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==\",\"mimeType\":\"i"
      "mage/png\"}]}" },
    { "test_audio_content",
      "{\"content\":[{\"type\":\"audio\",\"data\":\"UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8"
      "AAIA+AAACABAAZGF0YQAAAAA=\",\"mimeType\":\"audio/wav\"}]}" },
    { "test_embedded_resource",
      "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-res"
      "ource\",\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource cont"
      "ent.\"}}]}" },
    { "test_multiple_content_types",
      "{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"},{\"t"
      "ype\":\"image\",\"data\":\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQ"
      "VR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==\",\"mimeType\":\"image/png\"},{\"typ"
      "e\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\",\"mimeT"
      "ype\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":1"
      "23}\"}}]}" },
    { "test_error_handling",
      "{\"content\":[{\"type\":\"text\",\"text\":\"This tool intentionally returns an e"
      "rror for testing\"}],\"isError\":true}" },
    { "test_structured", "{\"structuredContent\":{\"sum\":3}}" },
    { "test_lying", "{\"structuredContent\":{\"sum\":\"three\"}}" },
    /* What a server must not do without being asked to, ours never does. */
    { "test_streaming_elicitation", "{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}" },
    { "test_logging_tool", "{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}" },
    { "test_header", "{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}" },
    { "json_schema_2020_12_tool", "{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}" },
};

#define STEP       (20 * NSEC_PER_MS)
#define LARGE_SIZE 10000000

struct server {
    struct loop *loop;
    struct gateway *gateway;
    struct upstream *mount;
    uint64_t version;
    int waiting; /* for an end that never comes */
    int cancelled;
};

struct slow {
    struct mcp_call *call;
    struct timer *timer;
    int step;
};

static int list(void *arg, struct arena *a, struct json **ret, struct err *e)
{
    struct server *s = arg;
    int rc = json_parse(a, str_of(tools_json), NULL, ret, e);
    if (rc == 0 && s->version % 2 == 1) {
        struct json *extra = json_copy(a, json_item(*ret, 0));
        json_setc(a, extra, "name", json_cstr(a, "test_dynamic"));
        json_push(a, *ret, extra);
    }
    return rc;
}

static uint64_t version(void *arg)
{
    return ((struct server *)arg)->version;
}

static void say(struct mcp_call *call, struct str text)
{
    struct arena *a = call->arena;
    struct json *result = json_object(a);
    struct json *content = json_array(a);
    struct json *block = json_object(a);
    json_setc(a, block, "type", json_cstr(a, "text"));
    json_setc(a, block, "text", json_string(a, text));
    json_push(a, content, block);
    json_setc(a, result, "content", content);
    mcp_call_done(call, result);
}

static void on_step(void *arg)
{
    struct slow *w = arg;
    mcp_call_progress(w->call, w->step * 50, 100, STR("working"));
    if (w->step++ < 2) {
        timer_arm(w->timer, clock_now() + STEP);
        return;
    }
    timer_free(w->timer);
    say(w->call, STR("slow but done"));
    free(w);
}

static void be_slow(struct server *s, struct mcp_call *call)
{
    struct slow *w = xcalloc(1, sizeof *w);
    struct err e;
    w->call = call;
    call->user = w;
    if (timer_new(s->loop, on_step, w, &w->timer, &e) < 0) {
        abort();
    }
    timer_arm(w->timer, clock_now());
}

static void say_meta(struct mcp_call *call)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (json_write(call->meta, JSON_COMPACT, &text, NULL) == 0) {
        say(call, buf_str(&text));
    }
}

static void say_much(struct mcp_call *call)
{
    CLEANUP(free) char *text = xmalloc(LARGE_SIZE);
    memset(text, 'x', LARGE_SIZE);
    say(call, str_n(text, LARGE_SIZE));
}

static void special(struct server *s, struct mcp_call *c)
{
    if (str_eqc(c->name, "test_tool_with_progress")) {
        be_slow(s, c);
    } else if (str_eqc(c->name, "test_meta")) {
        say_meta(c);
    } else if (str_eqc(c->name, "test_large")) {
        say_much(c);
    } else if (str_eqc(c->name, "test_cancelled")) {
        say(c, str_of(arena_printf(c->arena, "%d", s->cancelled)));
    } else if (str_eqc(c->name, "test_trigger_tool_change")) {
        s->version++;
        mcp_mount_changed(s->mount);
        say(c, STR("changed"));
    } else if (str_eqc(c->name, "test_waiting")) {
        say(c, str_of(arena_printf(c->arena, "%d", s->waiting)));
    } else if (str_eqc(c->name, "test_never")) {
        s->waiting++;
    } else {
        say(c, STR("I was not there before"));
    }
}

static void call(void *arg, struct mcp_call *c)
{
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct json *result;
        if (str_eqc(c->name, answers[i].tool)) {
            if (json_parse(c->arena, str_of(answers[i].result), NULL, &result, NULL) < 0) {
                abort();
            }
            mcp_call_done(c, result);
            return;
        }
    }
    special(arg, c);
}

static void cancel(void *arg, struct mcp_call *c)
{
    struct server *s = arg;
    struct slow *w = c->user;
    s->cancelled++;
    if (w != NULL) {
        timer_free(w->timer);
        free(w);
    } else {
        s->waiting--; /* only test_never and the slow one are there to be cancelled */
    }
}

static void on_stopped(void *arg)
{
    loop_stop(((struct server *)arg)->loop);
}

static void on_signal(void *arg, int signo)
{
    struct server *s = arg;
    (void)signo;
    mcp_mount_stop(s->mount);
    gateway_stop(s->gateway, NSEC_PER_SEC, on_stopped, s);
}

static int serve(struct server *s, const char *token, size_t page, struct err *e)
{
    int fd, port;
    struct sigwatch *watch;
    struct mcp_opts opts = { .tools = { list, version, call, cancel, s },
                             .name = "cinch-test",
                             .version = "1.0.0",
                             .instructions = "Tools for tests.",
                             .page = page };
    int rc = loop_new(&s->loop, e);
    rc = rc < 0 ? rc : mcp_mount_new(s->loop, &opts, &s->mount, e);
    rc = rc < 0 ? rc : listener_bind_tcp("127.0.0.1", 0, &fd, &port, e);
    if (rc < 0) {
        return rc;
    }
    struct gateway_mount mount = { .path = "/mcp", .upstream = s->mount };
    struct gateway_opts door = {
        .listeners = &fd, .n_listeners = 1, .token = token, .mounts = &mount, .n_mounts = 1
    };
    rc = gateway_open(s->loop, &door, &s->gateway, e);
    rc = rc < 0 ? rc : sigwatch_new(s->loop, SIGTERM, on_signal, s, &watch, e);
    if (rc < 0) {
        return rc;
    }
    printf("{\"url\":\"http://127.0.0.1:%d/mcp\"}\n", port);
    (void)fflush(stdout);
    loop_run(s->loop);
    sigwatch_free(watch);
    gateway_free(s->gateway);
    s->mount->ops->free(s->mount);
    loop_free(s->loop);
    return 0;
}

int main(int argc, char **argv)
{
    struct server s = { 0 };
    struct err e;
    const char *token = argc > 1 ? argv[1] : NULL;
    size_t page = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (serve(&s, token, page, &e) < 0) {
        fprintf(stderr, "mcp_server: %s\n", e.msg);
        return 1;
    }
    return 0;
}

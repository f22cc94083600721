/* SPDX-License-Identifier: MIT
 *
 * What Claude Code prints, fed to its driver in pieces. The first byte chooses what the run wants
 * to be asked, whether it answers at once, and the size of the pieces. Whatever comes: each
 * control request gets at most one response, each response is a line of JSON, and nothing is sent
 * after the end.
 */
#include <stdint.h>
#include <stdlib.h>

#include "adapters/driver.h"

struct host {
    void *session;
    bool later, over;
    uint64_t asked[64];
    size_t n_asked, n_turns;
};

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void on_send(void *owner, struct str bytes)
{
    struct host *h = owner;
    struct arena *a = arena_new();
    struct json *v;
    check(!h->over && bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\n');
    check(memchr(bytes.ptr, '\n', bytes.len) == bytes.ptr + bytes.len - 1);
    check(json_parse(a, bytes, NULL, &v, NULL) == 0);
    arena_free(a);
}

static void on_close(void *owner)
{
    struct host *h = owner;
    check(!h->over);
    h->over = true;
}

static void reply(struct host *h, uint64_t id)
{
    driver_claude.reply(h->session,
                        &(struct driver_reply) { .id = id, .ok = id % 2 == 0, .text = STR("no") });
}

static void on_ask(void *owner, const struct driver_ask *ask)
{
    struct host *h = owner;
    if (!h->later || h->n_asked == ARRAY_LEN(h->asked)) {
        reply(h, ask->id);
    } else {
        h->asked[h->n_asked++] = ask->id;
    }
}

static void on_observed(void *owner, const struct native_call *call)
{
    check(call->name.len > 0 && call->call_id.len > 0);
}

static void on_turn(void *owner, const struct driver_turn *turn)
{
    struct host *h = owner;
    check(!h->over);
    if (++h->n_turns % 2 == 1) {
        driver_claude.say(h->session, STR("more"));
    } else {
        driver_claude.interrupt(h->session);
    }
}

static void on_entry(void *owner, const char *type, const struct json *detail, struct str raw)
{
    check(json_is(detail, JSON_OBJECT));
}

static void on_entry_of(void *owner, const char *source, const char *type,
                        const struct json *detail, struct str raw)
{
    check(str_starts(str_of(source), STR("subagent:")) && json_is(detail, JSON_OBJECT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct arena *a = arena_new();
    struct profile profile = { .mcp = { .prefix = "mcp__cinch__" } };
    struct host h = { .later = (data[0] & 4) != 0 };
    struct launch_spec spec = {
        .profile = &profile,
        .prompt = STR("go"),
        .governs = (data[0] & 1) != 0,
        .feeds_back = (data[0] & 2) != 0,
        .output_schema = (data[0] & 8) != 0 ? json_object(a) : NULL,
        .port = { on_send, on_close, on_ask, on_observed, on_turn, on_entry_of, NULL, &h },
    };
    struct str text = str_n(data + 1, size - 1);
    size_t step = (size_t)(data[0] >> 4) * 16 + 1;
    struct agent_report report;
    h.session = driver_claude.open(&spec, (struct entry_sink) { on_entry, &h });
    driver_claude.begin(h.session);
    for (size_t i = 0; i < text.len; i += step) {
        driver_claude.feed(h.session, AGENT_STDOUT, str_slice(text, i, i + step));
    }
    for (size_t i = 0; i < h.n_asked; i++) {
        reply(&h, h.asked[i]);
    }
    driver_claude.finish(h.session);
    driver_claude.end(h.session, &report);
    driver_claude.close(h.session);
    arena_free(a);
    return 0;
}

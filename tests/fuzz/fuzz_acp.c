/* SPDX-License-Identifier: MIT
 *
 * An agent that says anything: the same is sent and told by the line and by the byte, what is sent
 * are whole lines, and nothing is left. The first byte chooses what the run does.
 */
#include <stdint.h>
#include <stdlib.h>

#include "adapters/driver.h"
#include "base/arena.h"
#include "base/buf.h"

static const char profile_text[] =
    "name: t\ndriver: acp\nargv: [a]\nmcp: {prefix: cinch_}\n"
    "acp: {mode: m, governed_mode: g, terminal: true, noise: ['[']}\n";

struct world {
    void *session;
    struct buf log;
    uint8_t choice;
    int turns;
};

static void on_entry(void *owner, const char *type, const struct json *detail, struct str raw)
{
    struct world *w = owner;
    buf_addf(&w->log, "%s ", type);
    if (json_write(detail, JSON_COMPACT, &w->log, NULL) < 0) {
        abort();
    }
}

static void on_send(void *owner, struct str bytes)
{
    struct world *w = owner;
    if (bytes.len == 0 || bytes.ptr[bytes.len - 1] != '\n') {
        abort();
    }
    buf_add(&w->log, bytes);
}

static void on_close(void *owner)
{
    buf_adds(&((struct world *)owner)->log, "close\n");
}

static void on_ask(void *owner, const struct driver_ask *ask)
{
    struct world *w = owner;
    buf_addf(&w->log, "ask %d %.*s\n", (int)ask->kind, STR_ARG(ask->path));
    if ((w->choice & 0x10) == 0) {
        driver_acp.dialogue->reply(
            w->session, &(struct driver_reply) {
                            .id = ask->id, .ok = (w->choice & 0x20) != 0, .text = STR("t") });
    }
}

static void on_observed(void *owner, const struct native_call *call)
{
    struct world *w = owner;
    buf_addf(&w->log, "observed %.*s\n", STR_ARG(call->name));
    if (call->arguments == NULL || !json_is(call->arguments, JSON_OBJECT)) {
        abort();
    }
}

static void on_turn(void *owner, const struct driver_turn *turn)
{
    struct world *w = owner;
    buf_addf(&w->log, "turn %s\n", turn->stop_reason);
    if (++w->turns <= 3) {
        driver_acp.dialogue->prompt(w->session, STR("more"));
    } else {
        driver_acp.dialogue->finish(w->session);
    }
}

/* step 0: by the line */
static void play(struct world *w, const struct profile *p, struct str text, size_t step)
{
    struct agent_report r;
    struct launch_spec spec = {
        .profile = p,
        .prompt = STR("p"),
        .workspace = "/w",
        .has_policies = (w->choice & 0x40) != 0,
        .has_feedback = (w->choice & 0x80) != 0,
        .port = { .send = on_send,
                  .close_input = on_close,
                  .ask = on_ask,
                  .observed = on_observed,
                  .turn = on_turn,
                  .owner = w },
    };
    buf_init(&w->log, 4 * BUF_TEXT);
    w->session = driver_acp.open(&spec, (struct entry_sink) { on_entry, w });
    driver_acp.dialogue->begin(w->session);
    while (text.len > 0) {
        size_t n = step > 0 ? step : str_find(text, STR("\n")) + 1;
        driver_acp.program->feed(w->session, AGENT_STDOUT, str_slice(text, 0, n));
        text = str_slice(text, n, text.len);
    }
    driver_acp.dialogue->interrupt(w->session);
    driver_acp.end(w->session, &r);
    driver_acp.close(w->session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct profile *p;
    struct world lines = { .choice = data[0] };
    struct world bytes = { .choice = data[0] };
    struct world whole = { .choice = data[0] };
    struct str text = str_n(data + 1, size - 1);
    if (profile_parse(a, STR(profile_text), "t", &p, NULL) < 0) {
        abort();
    }
    play(&lines, p, text, 0);
    play(&bytes, p, text, 1);
    play(&whole, p, text, text.len + 1); /* here a turn is told after all that came with it */
    if (!str_eq(buf_str(&lines.log), buf_str(&bytes.log))) {
        abort();
    }
    buf_done(&lines.log);
    buf_done(&bytes.log);
    buf_done(&whole.log);
    return 0;
}

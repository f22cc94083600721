/* SPDX-License-Identifier: MIT
 *
 * The other side of a driver that converses, for fuzz targets: what a program prints is fed in
 * pieces, questions are answered at once or at the end. The first byte chooses what the run wants
 * to be asked, whether it answers at once, and the size of the pieces. Whatever comes: what is sent
 * is a line of JSON, and nothing is sent after the end.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "adapters/driver.h"

struct host {
    const struct driver *driver;
    void (*observed)(const struct native_call *call); /* what must hold for one */
    void *session;
    bool later, over;
    uint64_t asked[64];
    size_t n_asked, n_turns;
};

static inline void check(bool good)
{
    if (!good) {
        abort();
    }
}

static inline void on_send(void *owner, struct str bytes)
{
    struct host *h = owner;
    struct arena *a = arena_new();
    struct json *v;
    check(!h->over && bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\n');
    check(memchr(bytes.ptr, '\n', bytes.len) == bytes.ptr + bytes.len - 1);
    check(json_parse(a, bytes, NULL, &v, NULL) == 0);
    arena_free(a);
}

static inline void on_close(void *owner)
{
    struct host *h = owner;
    check(!h->over);
    h->over = true;
}

static inline void reply(struct host *h, uint64_t id)
{
    h->driver->dialogue->reply(
        h->session, &(struct driver_reply) { .id = id, .ok = id % 2 == 0, .text = STR("no") });
}

static inline void on_ask(void *owner, const struct driver_ask *ask)
{
    struct host *h = owner;
    if (!h->later || h->n_asked == ARRAY_LEN(h->asked)) {
        reply(h, ask->id);
    } else {
        h->asked[h->n_asked++] = ask->id;
    }
}

static inline void on_observed(void *owner, const struct native_call *call)
{
    struct host *h = owner;
    h->observed(call);
}

static inline void on_turn(void *owner, const struct driver_turn *turn)
{
    struct host *h = owner;
    (void)turn;
    check(!h->over);
    if (++h->n_turns % 2 == 1) {
        (void)h->driver->dialogue->set_option(h->session, DRIVER_OPTION_MODEL, STR("m"));
        h->driver->dialogue->prompt(h->session, STR("more"));
    } else {
        h->driver->dialogue->interrupt(h->session);
    }
}

static inline void on_entry(void *owner, const char *type, const struct json *detail,
                            struct str raw)
{
    check(json_is(detail, JSON_OBJECT));
}

static inline void on_entry_of(void *owner, const char *source, const char *type,
                               const struct json *detail, struct str raw)
{
    check(str_starts(str_of(source), STR("subagent:")) && json_is(detail, JSON_OBJECT));
}

/* `h` has driver and observed; `prefix` is what the harness puts before names of our tools. */
static inline void host_play(struct host *h, const char *prefix, const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct profile profile = { .mcp = { .prefix = prefix } };
    struct launch_spec spec = {
        .profile = &profile,
        .prompt = STR("go"),
        .has_policies = (data[0] & 1) != 0,
        .has_feedback = (data[0] & 2) != 0,
        .output_schema = (data[0] & 8) != 0 ? json_object(a) : NULL,
        .port = { .send = on_send,
                  .close_input = on_close,
                  .ask = on_ask,
                  .observed = on_observed,
                  .turn = on_turn,
                  .entry = on_entry_of,
                  .owner = h },
    };
    struct str text = str_n(data + 1, size - 1);
    size_t step = (size_t)(data[0] >> 4) * 16 + 1;
    struct agent_report report;
    h->later = (data[0] & 4) != 0;
    h->session = h->driver->open(&spec, (struct entry_sink) { on_entry, h });
    h->driver->dialogue->begin(h->session);
    for (size_t i = 0; i < text.len; i += step) {
        h->driver->program->feed(h->session, AGENT_STDOUT, str_slice(text, i, i + step));
    }
    for (size_t i = 0; i < h->n_asked; i++) {
        reply(h, h->asked[i]);
    }
    h->driver->dialogue->finish(h->session);
    h->driver->end(h->session, &report);
    h->driver->close(h->session);
    arena_free(a);
}

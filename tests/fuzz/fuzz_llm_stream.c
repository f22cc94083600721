/* SPDX-License-Identifier: MIT
 *
 * The first byte chooses the format of an answer, whether it is a stream and how it is cut. Its
 * events keep the order that llm/event.h promises, whole and in pieces alike; every writer takes
 * them and what it wrote is read again; the tap sees no more than the reader.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "llm/codec.h"
#include "llm/dropped.h"
#include "llm/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* What responses sign that are translated, as those of every other format are. */
static struct llm_store *store;

struct order {
    bool started, stopped, failed, ended;
    struct llm_usage usage;
    size_t events;
    struct llm_writer *writers[LLM_FORMAT_MAX * 2];
    struct buf out[LLM_FORMAT_MAX * 2];
    int results[LLM_FORMAT_MAX * 2];
};

static void on_event(void *arg, const struct llm_event *ev)
{
    struct order *o = arg;
    must(!o->ended);
    must(!o->failed || ev->kind == LLM_EV_END);
    must(!o->stopped || ev->kind == LLM_EV_END);
    must(o->started || ev->kind == LLM_EV_START || ev->kind == LLM_EV_PING ||
         ev->kind == LLM_EV_ERROR || o->failed);
    must(!(o->started && ev->kind == LLM_EV_START));
    must(ev->text.len == 0 || ev->text.ptr != NULL);
    o->started = o->started || ev->kind == LLM_EV_START;
    o->stopped = o->stopped || ev->kind == LLM_EV_STOP;
    o->failed = o->failed || ev->kind == LLM_EV_ERROR;
    o->ended = o->ended || ev->kind == LLM_EV_END;
    o->events++;
    if (ev->kind == LLM_EV_USAGE) {
        llm_usage_update(&o->usage, &ev->usage);
        must(llm_usage_total(&o->usage) >= 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(o->writers) && o->writers[0] != NULL; i++) {
        if (o->results[i] == 0) {
            o->results[i] = llm_writer_event(o->writers[i], ev, &o->out[i], NULL);
        }
    }
}

static int read_all(struct llm_reader_opts opts, struct order *o, struct str bytes, size_t step)
{
    struct err e = { 0 };
    int r = 0;
    o->usage = LLM_USAGE_NONE;
    opts.sink = (struct llm_sink) { on_event, o };
    struct llm_reader *reader = llm_reader_new(&opts);
    for (size_t i = 0; i < bytes.len && r == 0; i += step) {
        r = llm_reader_feed(reader, str_slice(bytes, i, i + step), &e);
    }
    r = r < 0 ? r : llm_reader_end(reader, &e);
    llm_reader_free(reader);
    must(r == 0 ? o->ended : e.msg[0] != '\0');
    return r;
}

static void on_tap(void *arg, const struct llm_event *ev)
{
    struct order *o = arg;
    must(!o->ended);
    must(ev->kind == LLM_EV_START || ev->kind == LLM_EV_USAGE || ev->kind == LLM_EV_STOP ||
         ev->kind == LLM_EV_ERROR || ev->kind == LLM_EV_END || ev->kind == LLM_EV_CALL_BEGIN);
    o->ended = ev->kind == LLM_EV_END;
    if (ev->kind == LLM_EV_USAGE) {
        llm_usage_update(&o->usage, &ev->usage);
    }
}

static void tap(struct llm_reader_opts opts, struct order *o, struct str bytes, size_t step)
{
    o->usage = LLM_USAGE_NONE;
    opts.sink = (struct llm_sink) { on_tap, o };
    struct llm_tap *t = llm_tap_new(&opts);
    for (size_t i = 0; i < bytes.len; i += step) {
        llm_tap_feed(t, str_slice(bytes, i, i + step));
    }
    llm_tap_end(t);
    llm_tap_free(t);
}

static void start_writers(struct order *o, enum llm_format from)
{
    for (size_t i = 0; i < ARRAY_LEN(o->writers); i++) {
        struct llm_writer_opts w = { .format = (enum llm_format)(i / 2), .stream = i % 2 == 0 };
        w.include_usage = true;
        w.translated = w.format != from;
        w.from = from;
        w.store = store;
        o->writers[i] = llm_writer_new(&w);
        buf_init(&o->out[i], BUF_TEXT);
    }
}

static void check_written(struct order *o, bool whole)
{
    for (size_t i = 0; i < ARRAY_LEN(o->writers); i++) {
        struct llm_reader_opts opts = { .format = (enum llm_format)(i / 2), .stream = i % 2 == 0 };
        struct order again = { 0 };
        llm_writer_free(o->writers[i]);
        if (whole && o->results[i] == 0) {
            must(read_all(opts, &again, buf_str(&o->out[i]), SIZE_MAX / 2) == 0);
            must(again.failed == o->failed);
        }
        buf_done(&o->out[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct llm_reader_opts opts = {
        .format = (enum llm_format)(data[0] % LLM_FORMAT_MAX),
        .stream = (data[0] & 0x10) == 0,
    };
    struct str bytes = str_n(data + 1, size - 1);
    struct order whole = { 0 }, cut = { 0 }, tapped = { 0 };
    size_t step = 1 + (data[0] >> 5);
    store = llm_store_new(0);
    start_writers(&whole, opts.format);
    int r = read_all(opts, &whole, bytes, SIZE_MAX / 2);
    must(read_all(opts, &cut, bytes, step) == r);
    must(whole.events == cut.events);
    check_written(&whole, r == 0);
    store = llm_store_free(store);
    tap(opts, &tapped, bytes, step);
    if (r == 0 && !whole.failed) {
        must(tapped.usage.output == whole.usage.output);
    }
    return 0;
}

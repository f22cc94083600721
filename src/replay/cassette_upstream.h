/* SPDX-License-Identifier: MIT
 *
 * `cassette:FILE` as an upstream, and the filter that records one.
 *
 *   struct cassette_upstream_opts opts = { .speed = 1 };
 *   cassette_upstream_new(loop, "run.cassette", &opts, &up, e);
 *   … up->ops->free(up);
 *
 * A request that is not in the cassette is refused (UPSTREAM_REFUSED) with the first difference;
 * cassette_upstream_report() tells the first such miss in full, for the end of the run (exit 65).
 *
 *   cassette_filter(writer, &filter);        the filter records into the writer, which outlives it
 */
#pragma once

#include "gateway/filter.h"
#include "gateway/upstream.h"
#include "replay/cassette.h"

struct loop;

struct cassette_upstream_opts {
    double speed;                      /* 0: at once, 1: as recorded, 2: twice as fast */
    const struct json *volatile_rules; /* NULL: those that the file has */
    const struct redactor *redactor;   /* borrowed for life; may be NULL */
    const struct json *places;         /* of this run, see cassette_writer_opts; may be NULL */
};

int cassette_upstream_new(struct loop *l, const char *path, const struct cassette_upstream_opts *o,
                          struct upstream **ret, struct err *e) MUST_USE;
struct str cassette_upstream_report(const struct upstream *up); /* empty: no miss */
size_t cassette_upstream_left(const struct upstream *up);       /* exchanges not yet played */

/* A recorded exchange as an answer to be given; the strings stay in the exchange's arena, which
 * must be that of the playback. */
void cassette_playback(const struct cassette_exchange *x, double speed, struct playback *ret);

void cassette_filter(struct cassette_writer *w, struct filter *ret);

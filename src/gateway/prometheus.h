/* SPDX-License-Identifier: MIT
 *
 * struct metrics: what the gateway counts, and how Prometheus reads it (text format 0.0.4).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "llm/codec.h"

enum { METRICS_CLASSES = 6 }; /* status / 100, 0 for "the client left" */

struct metrics {
    uint64_t requests[LLM_FORMAT_MAX][METRICS_CLASSES]; /* model calls that are over */
    uint64_t refused;                                   /* by the door or a filter */
    uint64_t retries;
    uint64_t fallbacks;
    uint64_t upstream_errors;
    uint64_t translated;
    uint64_t spilled; /* bodies that went to a file */
    uint64_t tokens_input, tokens_output, tokens_cache_read, tokens_cache_write;
    uint64_t estimated_input, estimated_output; /* of calls whose usage is estimated */
    uint64_t bytes_in, bytes_out;
    uint64_t egress, egress_denied;
    uint64_t connections_total;
    uint64_t in_flight;
    uint64_t draining; /* of them, without a client */
    nsec duration_sum; /* of model calls */
    nsec started;
};

void metrics_call(struct metrics *m, enum llm_format f, int status, nsec took);
/* Estimated: not, or not all of it, reported by the provider. */
void metrics_usage(struct metrics *m, const struct llm_usage *u, bool estimated);
int metrics_write(const struct metrics *m, size_t connections, struct buf *out,
                  struct err *e) MUST_USE;

/* SPDX-License-Identifier: MIT
 *
 * Which tools of the run the model was really offered. cinch serves them, but the harness decides
 * what it puts into a request: it may connect to the server too late, hide tools behind a search of
 * its own, or drop them. The gateway sees every request, so the record can state the truth, and a
 * run whose tools never reached the model is no silent success.
 *
 *   offered_begin(run)        the tools that the bridge offers now; RenderedTools follows
 *   offered_filter(run, &f)   looks at requests on their way to the model
 *   offered_called(run, name) a call arrived, so the model can reach the tool
 *   offered_report(run)       RenderedTools, unless it was emitted already
 *   offered_judge(run)        phase parse
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct filter;
struct run;

void offered_begin(struct run *run);
/* False: the run has no tools, or no gateway that could see requests. */
bool offered_filter(struct run *run, struct filter *ret);
void offered_called(struct run *run, struct str name);
void offered_report(struct run *run);
void offered_judge(struct run *run);
/* A script called a tool of the task that the request did not offer: the name of the tool. NULL:
 * `miss` is about something else. */
const char *offered_missed(struct run *run, struct str miss);

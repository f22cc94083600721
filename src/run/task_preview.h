/* SPDX-License-Identifier: MIT
 *
 * What `cinch task` shows of a task: its parts, and what a run would send and start. Nothing is
 * written and nothing is started.
 */
#pragma once

#include "config/definition.h"

/* After definition_bind(): {name, adapter, model, prompt: {kind, name, bytes, sections}, tools,
 * skills, output: {schema, artifacts}, warnings, sent: {prompt, delivery, arguments, sampling,
 * effort}}. Paths that only a run knows begin with RUN. */
int task_preview(struct definition *d, struct json **ret, struct err *e) MUST_USE;

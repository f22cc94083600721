/* SPDX-License-Identifier: MIT
 *
 * struct expected: the file of expected failures. Makes a kit usable while something is known to be
 * broken: what is listed may fail, and is told when it no longer does.
 *
 *   expected:                      fails, and that is known; passes: the entry is stale
 *     - {adapter: codex, scenario: test_skill_knowledge_available, reason: "issue 12"}
 *   flaky:                         may fail or pass; tried twice before it counts as flaky
 *     - {adapter: "gemini*", scenario: test_network_denied_by_default, reason: "slow to start"}
 *
 * `adapter` and `scenario` are globs ('*', '?'); all three keys must be there: an entry without a
 * reason is never removed again. The first entry that matches counts, flaky ones before expected.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct expected_entry {
    const char *adapter;
    const char *scenario;
    const char *reason;
    const char *at; /* "failures.yaml:3:5" */
    bool flaky;
};

struct expected {
    const struct expected_entry *items; /* flaky ones first */
    size_t len;
};

/* At most 4096 entries. ERR_CONFIG or ERR_PARSE with file:line:column. */
int expected_parse(struct arena *a, struct str text, const char *file, struct expected *ret,
                   struct err *e) MUST_USE;
int expected_load(struct arena *a, const char *path, struct expected *ret, struct err *e) MUST_USE;

bool expected_names(const struct expected_entry *x, const char *scenario); /* on some adapter */
bool expected_matches(const struct expected_entry *x, const char *adapter, const char *scenario);
/* NULL: it must pass. */
const struct expected_entry *expected_find(const struct expected *x, const char *adapter,
                                           const char *scenario);

/* SPDX-License-Identifier: MIT
 *
 * struct fixture: the place of one trial: a workspace and what lies beside it, laid out as the
 * scenario says, and a look at the end whether anything there was touched.
 *
 *   dir/workspace   what the agent works on, a repository with one commit unless `git: false`
 *   dir/outside     what it must not change
 *   dir/home        the home of who calls cinch: stays empty
 *   dir/runs/NAME   one record per run
 *
 * In all texts of a scenario %{workspace}, %{outside}, %{dir}, %{adapter}, %{site}
 * (ack/test_server.h), %{key} (the adapter, in letters and digits) and %{fill:N} (N bytes of words)
 * are replaced, also in the paths of its files, which must still point below the directory.
 */
#pragma once

#include "ack/check.h"
#include "ack/scenario.h"

/* What the placeholders of one scenario may come to, in bytes; and the value of one of them. */
#define STAGE_FILL_MAX  (16 << 20)
#define STAGE_VALUE_MAX 4096

struct fixture {
    struct arena *arena;
    const char *dir, *workspace, *outside, *home, *runs;
    const char *adapter;
    const char *site;
    struct str before; /* what workspace and outside hold */
};

/* Lays out what is given; arena, dir, adapter and site are set by the caller. */
int fixture_set(struct fixture *st, const struct scenario *s, struct err *e) MUST_USE;
/* Bytes that the placeholders of a text come to, at most; -1: a %{fill:N} without a number from 1
 * to STAGE_FILL_MAX. The reader of scenarios adds them up. */
int64_t fixture_fill_cost(struct str text);
/* A copy of the tree with the placeholders filled in. A text for which there is no room (none that
 * the reader of scenarios lets pass) stays as it is. */
struct json *fixture_fill(const struct fixture *st, const struct json *v);
/* Names, modes, times and bytes must be as they were; the first that is not becomes a finding. */
void fixture_inspect(const struct fixture *st, struct findings *f);

/* SPDX-License-Identifier: MIT
 *
 * struct digest: what a run directory says about its run, however complete it is. Reads
 * manifest.json, metrics.json, result.json and state.json; a file that is missing or damaged
 * becomes a problem in a list, never a failure, because the directories that people look at are the
 * ones where something went wrong.
 *
 *   digest_read(&d, "out", arena, e);           ERR_INPUT only when this is no run directory
 *   digest_text(&d, (struct digest_style){ .width = 80, .lines = 10 }, arena, &buf);
 *   cli_print_json(cli, digest_json(&d, arena));
 *
 * Reading takes no lock and writes nothing: a run that goes on is not disturbed. Everything lives
 * in the arena. Text in the files comes from agents and is cleaned when it is printed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/terminal.h"
#include "record/patch_stat.h"
#include "record/reason.h"
#include "view/run_files.h"

struct digest_problem {
    const char *file;
    const char *text;
};

enum { DIGEST_PROBLEMS_MAX = 8, DIGEST_ENTRIES_MAX = 6 };

struct digest {
    const char *path; /* absolute */
    enum run_status status;
    enum reason reason;                               /* REASON_NONE: none, or not known to us */
    struct json *state, *manifest, *metrics, *result; /* NULL: missing or damaged */
    struct digest_problem problems[DIGEST_PROBLEMS_MAX];
    size_t problem_count;
    int64_t pid;                  /* of cinch while it runs, else 0 */
    int64_t out_bytes, err_bytes; /* sizes of stdout.log and stderr.log; -1: no such file */
    struct str tail;              /* end of the final text, or of stdout.log */
    bool tail_is_answer;
    struct str err_tail;                            /* end of stderr.log */
    const struct json *entries[DIGEST_ENTRIES_MAX]; /* the last of the transcript, oldest first */
    size_t entry_count;
    const struct json *task;      /* task.json; NULL: missing or damaged */
    const struct json *workspace; /* evidence/workspace.json; likewise */
    struct patch_stat changes;    /* of diff.patch */
    bool has_changes;             /* diff.patch was read */
    int64_t now;                  /* wall clock when it was read */
    int dir_fd;                   /* -1 after digest_done() */
};

int digest_read(struct digest *d, const char *path, struct arena *a, struct err *e) MUST_USE;
void digest_done(struct digest *d);

enum style digest_status_style(enum run_status s);
/* How long it took, or has been running; -1: not known. */
nsec digest_duration(const struct digest *d);
/* The name of the task, or the first line of its prompt; empty when neither is known. */
struct str digest_task(const struct digest *d);
/* "3 files, +24 -3"; empty when nothing changed or it is not known. */
const char *digest_changes(const struct digest *d, struct arena *a);
/* "12 calls, 51,204 tokens in, 1,204 out, $0.26 (simulated)"; empty without model calls. */
const char *digest_usage(const struct digest *d, struct arena *a);

struct digest_style {
    size_t width;
    bool color;
    size_t lines; /* of the answer at most */
    bool verbose; /* also ids, all phases and all files */
};

void digest_text(const struct digest *d, struct digest_style style, struct arena *a,
                 struct buf *out);
/* What `cinch run` prints under its verdict: answer, changes, usage, and for a run that failed the
 * end of its output. */
void digest_closing(const struct digest *d, struct digest_style style, struct arena *a,
                    struct buf *out);
struct json *digest_json(const struct digest *d, struct arena *a);

static inline void cleanup_digest(struct digest *d)
{
    digest_done(d);
}

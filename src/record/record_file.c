/* SPDX-License-Identifier: MIT
 *
 * The table of files in a run directory; see record_file.h. tests/schema/validate.py reads the rows
 * below, so each begins with path, schema, form and recovery.
 */
#include "record/record_file.h"

#include <stddef.h>
#include <string.h>

#include "record/summary.h"

static struct json *view_result(const struct summary *s, const struct rundir *d,
                                const struct redactor *r, struct arena *a)
{
    (void)d;
    return result_json(s, r, a);
}

static struct json *view_metrics(const struct summary *s, const struct rundir *d,
                                 const struct redactor *r, struct arena *a)
{
    (void)d;
    return metrics_json(s, r, a);
}

const struct record_file record_files[] = {
    /* First: recovery recognises by it a run that died before it wrote anything. */
    { "events.jsonl", "event", RECORD_LINES, RECORD_REPAIR, RECORD_AT_START },
    { "stdout.log", NULL, RECORD_TEXT, RECORD_KEEP, RECORD_AT_START },
    { "stderr.log", NULL, RECORD_TEXT, RECORD_KEEP, RECORD_AT_START },
    { "agent.log", NULL, RECORD_TEXT, RECORD_KEEP, RECORD_AT_START },
    { "transcript.jsonl", "transcript", RECORD_LINES, RECORD_REPAIR, RECORD_AT_START },

    { "result.json", "result", RECORD_JSON, RECORD_REWRITE, RECORD_SHORTENS, view_result },
    { "metrics.json", "metrics", RECORD_JSON, RECORD_REWRITE, 0, view_metrics },
    { "manifest.json", "manifest", RECORD_JSON, RECORD_REWRITE, RECORD_UNLISTED, manifest_json },
    { "state.json", "state", RECORD_JSON, RECORD_WRITE_END, RECORD_UNLISTED },

    { "heartbeat", NULL, RECORD_TEXT, RECORD_KEEP, RECORD_UNLISTED },
    { "task.json", "task", RECORD_JSON, RECORD_SET_ASIDE },
    { "summary.md", NULL, RECORD_TEXT, RECORD_KEEP },
    { "diff.patch", NULL, RECORD_TEXT, RECORD_KEEP },
    { "logs/prompt.txt", NULL, RECORD_TEXT, RECORD_KEEP },
    { "evidence/config.json", "config", RECORD_JSON, RECORD_SET_ASIDE },
    { "evidence/environment.json", "environment", RECORD_JSON, RECORD_SET_ASIDE },
    { "evidence/workspace.json", "workspace", RECORD_JSON, RECORD_KEEP },
    { "evidence/sandbox.json", NULL, RECORD_JSON, RECORD_KEEP },
    { "evidence/image.json", NULL, RECORD_JSON, RECORD_KEEP },
    { "evidence/ledger.json", "ledger", RECORD_JSON, RECORD_COMPLETE },
    { "evidence/signatures.json", NULL, RECORD_JSON, RECORD_KEEP },
    { "evidence/traffic.cassette", NULL, RECORD_TEXT, RECORD_KEEP },
    { "evidence/divergence.txt", NULL, RECORD_TEXT, RECORD_KEEP },
    /* State files of tools: one JSON value each, whatever their names say. */
    { "session/before.jsonl", "session", RECORD_JSON, RECORD_KEEP },
    { "session/after.jsonl", "session", RECORD_JSON, RECORD_COMPLETE },
    { "session/journal.jsonl", "journal", RECORD_LINES, RECORD_COMPLETE },
    { "session/harness.json", NULL, RECORD_JSON, RECORD_KEEP },
    { "savepoints/turn-*.json", "savepoint", RECORD_JSON, RECORD_KEEP },
    { "savepoints/turn-*.patch", NULL, RECORD_TEXT, RECORD_KEEP },
    { 0 },
};

const struct record_file *record_file_find(const char *path)
{
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        if (strcmp(f->path, path) == 0) {
            return f;
        }
    }
    return NULL;
}

bool record_file_is_core(const struct record_file *f)
{
    return (f->flags & RECORD_AT_START) != 0 || f->recovery == RECORD_REWRITE ||
           f->recovery == RECORD_WRITE_END;
}

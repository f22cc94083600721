/* SPDX-License-Identifier: MIT
 *
 * What can be asked for; see query_schema.h. Values are as in the record: NULL where it has null,
 * times as text that sorts.
 */
#include "view/query_schema.h"

#include <string.h>

static const struct query_column runs[] = {
    { "run", "INTEGER PRIMARY KEY", "key of the run in the other tables" },
    { "id", "TEXT", "id of the run" },
    { "path", "TEXT", "run directory" },
    { "task", "TEXT", "name of the task, or the first line of its prompt" },
    { "adapter", "TEXT", "adapter" },
    { "model", "TEXT", "model" },
    { "status", "TEXT", "running, succeeded, failed, canceled, abandoned, unknown" },
    { "reason", "TEXT", "why it ended (docs/run-record.md)" },
    { "outcome", "TEXT", "success, failure, needs_human" },
    { "passed", "INTEGER", "1: the result was judged good; 0: not good" },
    { "exit_code", "INTEGER", "of cinch run" },
    { "error", "TEXT", "the error in words" },
    { "started_at", "TEXT", "UTC, 2026-11-15T20:29:35.123Z" },
    { "ended_at", "TEXT", "UTC" },
    { "duration_s", "REAL", "seconds" },
    { "cost_usd", "REAL", "cost; NULL if it is not known" },
    { "cost_source", "TEXT", "cli, table, simulated, none" },
    { "input_tokens", "INTEGER", "including what was read from a cache" },
    { "output_tokens", "INTEGER", "" },
    { "cache_read_tokens", "INTEGER", "" },
    { "cache_write_tokens", "INTEGER", "" },
    { "reasoning_tokens", "INTEGER", "" },
    { "model_calls", "INTEGER", "calls of a model" },
    { "turns", "INTEGER", "" },
    { "tool_calls", "INTEGER", "" },
    { "tool_failures", "INTEGER", "calls of tools that failed" },
    { "files_changed", "INTEGER", "in diff.patch" },
    { "lines_added", "INTEGER", "" },
    { "lines_removed", "INTEGER", "" },
    { "cinch_version", "TEXT", "version of cinch that wrote the record" },
    { 0 },
};
static const struct query_column events[] = {
    { "run", "INTEGER", "" },
    { "seq", "INTEGER", "number of the event in its run" },
    { "timestamp", "TEXT", "UTC" },
    { "level", "TEXT", "DEBUG, INFO, WARNING, ERROR" },
    { "logger", "TEXT", "part of cinch" },
    { "event", "TEXT", "name: run.phase, model.call, ToolInvoked …" },
    { "message", "TEXT", "for people" },
    { "context", "TEXT", "JSON; NULL beyond 64 KiB" },
    { 0 },
};
static const struct query_column transcript[] = {
    { "run", "INTEGER", "" },
    { "source", "TEXT", "main or subagent:ID" },
    { "sequence", "INTEGER", "number of the entry in its source" },
    { "timestamp", "TEXT", "UTC" },
    { "entry_type", "TEXT", "user_message, assistant_message, tool_use, tool_result …" },
    { "role", "TEXT", "user, assistant, tool" },
    { "tool_name", "TEXT", "of tool_use and tool_result" },
    { "call_id", "TEXT", "connects a tool_use and its tool_result" },
    { "failed", "INTEGER", "1: a tool_result that reports a failure" },
    { "content", "TEXT", "text of the entry; arguments of a call; cut at 64 KiB" },
    { "content_bytes", "INTEGER", "length before the cut" },
    { "detail", "TEXT", "all of the entry as JSON; NULL beyond 64 KiB" },
    { 0 },
};
static const struct query_column tool_calls[] = {
    { "run", "INTEGER", "" },
    { "seq", "INTEGER", "number of its event" },
    { "timestamp", "TEXT", "UTC, when it was over" },
    { "tool_name", "TEXT", "" },
    { "call_id", "TEXT", "as in transcript" },
    { "params", "TEXT", "JSON; NULL beyond 64 KiB" },
    { "result", "TEXT", "what the model got, cut as in the record" },
    { "success", "INTEGER", "1 or 0" },
    { "failure", "TEXT", "denied, failed, timeout …" },
    { "policy", "TEXT", "which policy denied it" },
    { "duration_ms", "INTEGER", "" },
    { 0 },
};
static const struct query_column model_calls[] = {
    { "run", "INTEGER", "" },
    { "call", "INTEGER", "number of the call in its run" },
    { "timestamp", "TEXT", "UTC, when it was over" },
    { "model", "TEXT", "" },
    { "format", "TEXT", "anthropic, responses, chat, gemini" },
    { "upstream", "TEXT", "what responded" },
    { "status", "INTEGER", "HTTP status" },
    { "attempts", "INTEGER", "" },
    { "complete", "INTEGER", "1: the harness got the whole response" },
    { "side", "TEXT", "kind of an auxiliary request (title, topic …)" },
    { "input_tokens", "INTEGER", "" },
    { "output_tokens", "INTEGER", "" },
    { "cache_read_tokens", "INTEGER", "" },
    { "cache_write_tokens", "INTEGER", "" },
    { "reasoning_tokens", "INTEGER", "" },
    { "estimated", "INTEGER", "1: usage is an estimate" },
    { "cost_usd", "REAL", "" },
    { "first_byte_ms", "INTEGER", "" },
    { "duration_ms", "INTEGER", "" },
    { 0 },
};
static const struct query_column changes[] = {
    { "run", "INTEGER", "" },
    { "path", "TEXT", "file in the workspace" },
    { "status", "TEXT", "A, M, D, R, C as in git diff --name-status" },
    { "from_path", "TEXT", "old path of a renamed or copied file" },
    { "added", "INTEGER", "lines" },
    { "removed", "INTEGER", "lines" },
    { "binary", "INTEGER", "1: lines are not counted" },
    { 0 },
};
static const struct query_column files[] = {
    { "run", "INTEGER", "" },
    { "path", "TEXT", "file of the record, as manifest.json lists it" },
    { "size_bytes", "INTEGER", "NULL: it is gone" },
    { 0 },
};
static const struct query_column metrics[] = {
    { "run", "INTEGER", "" },
    { "key", "TEXT", "path in metrics.json: ext.phase_ms.execute" },
    { "value", "", "number, text or NULL" },
    { 0 },
};
static const struct query_column warnings[] = {
    { "run", "INTEGER", "" },
    { "text", "TEXT", "warning in manifest.json" },
    { 0 },
};
static const struct query_column problems[] = {
    { "run", "INTEGER", "" },
    { "file", "TEXT", "file of the record" },
    { "line", "INTEGER", "NULL: the whole file" },
    { "problem", "TEXT", "why it could not be read" },
    { 0 },
};

const struct query_table query_tables[QUERY_TABLES_MAX] = {
    [QUERY_RUNS] = { "runs", "one row per run", runs },
    [QUERY_EVENTS] = { "events", "lines of events.jsonl", events },
    [QUERY_TRANSCRIPT] = { "transcript", "entries of transcript.jsonl", transcript },
    [QUERY_TOOL_CALLS] = { "tool_calls", "calls of tools, of the task and of the harness",
                           tool_calls },
    [QUERY_MODEL_CALLS] = { "model_calls", "calls of models at the gateway", model_calls },
    [QUERY_CHANGES] = { "changes", "files that the agent changed", changes },
    [QUERY_FILES] = { "files", "files of the record", files },
    [QUERY_METRICS] = { "metrics", "numbers of metrics.json", metrics },
    [QUERY_WARNINGS] = { "warnings", "warnings of the run", warnings },
    [QUERY_PROBLEMS] = { "problems", "what could not be read", problems },
};

const struct query_view query_views[] = {
    { "tool_timeline", "calls of tools in the order of time",
      "SELECT run, timestamp, tool_name, coalesce(json_extract(params, '$.command'),"
      " json_extract(params, '$.cmd')) AS command, success, duration_ms, failure AS error"
      " FROM tool_calls ORDER BY timestamp" },
    { "native_tool_calls", "calls in the transcript",
      "SELECT run, sequence, timestamp, source, tool_name, call_id, content, detail"
      " FROM transcript WHERE entry_type = 'tool_use'" },
    { "transcript_flow", "the conversation, shortened",
      "SELECT run, sequence, source, entry_type, role, CASE entry_type"
      " WHEN 'tool_use' THEN '[' || coalesce(tool_name, 'tool') || '] ' ELSE '' END ||"
      " substr(replace(coalesce(content, ''), char(10), ' '), 1, 100) AS preview, timestamp"
      " FROM transcript WHERE role IS NOT NULL OR entry_type = 'error'" },
    { "transcript_tools", "calls with their results",
      "SELECT u.run, u.sequence AS call_sequence, r.sequence AS result_sequence, u.source,"
      " u.tool_name, u.call_id, u.content AS params, r.content AS result, r.failed,"
      " u.timestamp AS call_time, r.timestamp AS result_time FROM transcript u LEFT JOIN"
      " transcript r ON r.run = u.run AND r.source = u.source AND r.call_id = u.call_id AND"
      " r.entry_type = 'tool_result' WHERE u.entry_type = 'tool_use'" },
    { "transcript_thinking", "thoughts",
      "SELECT run, sequence, source, substr(content, 1, 200) AS preview,"
      " content_bytes AS bytes, timestamp FROM transcript WHERE entry_type = 'thinking'" },
    { "transcript_agents", "the agent and its sub-agents",
      "SELECT run, source, min(timestamp) AS first_entry, max(timestamp) AS last_entry,"
      " count(*) AS entries, sum(entry_type = 'user_message') AS user_messages,"
      " sum(entry_type = 'assistant_message') AS assistant_messages,"
      " sum(entry_type = 'thinking') AS thoughts, count(DISTINCT tool_name) AS tools,"
      " sum(entry_type = 'tool_use') AS tool_calls FROM transcript GROUP BY run, source" },
    { "error_summary", "errors of runs, tools, model calls and logs",
      "SELECT run, 'run' AS source, reason AS kind, error AS message FROM runs"
      " WHERE error IS NOT NULL"
      " UNION ALL SELECT run, 'tool', tool_name || ': ' || coalesce(failure, 'failed'),"
      " substr(result, 1, 200) FROM tool_calls WHERE success = 0"
      " UNION ALL SELECT run, 'model', 'status ' || status, model FROM model_calls"
      " WHERE status >= 400"
      " UNION ALL SELECT run, 'log', event, message FROM events WHERE level = 'ERROR'" },
    { 0 },
};

const struct query_named query_named_list[] = {
    { "runs", "newest runs",
      "SELECT substr(id, -8) AS run, started_at, adapter, model, coalesce(reason, status) AS"
      " outcome, round(duration_s, 1) AS seconds, cost_usd, files_changed AS files, task"
      " FROM runs ORDER BY started_at DESC" },
    { "cost-by-model", "cost and tokens of each model",
      "SELECT model, count(*) AS calls, count(DISTINCT run) AS runs, sum(input_tokens) AS"
      " input_tokens, sum(cache_read_tokens) AS cache_read, sum(output_tokens) AS output_tokens,"
      " round(sum(cost_usd), 4) AS cost_usd FROM model_calls GROUP BY model"
      " ORDER BY sum(cost_usd) DESC, calls DESC" },
    { "cost-by-run", "the most expensive runs",
      "SELECT substr(id, -8) AS run, adapter, model, model_calls, input_tokens, output_tokens,"
      " cost_usd, cost_source, task FROM runs ORDER BY cost_usd DESC LIMIT 50" },
    { "success", "how often each adapter and model succeeded",
      "SELECT adapter, model, count(*) AS runs, sum(outcome = 'success') AS succeeded,"
      " round(100.0 * sum(outcome = 'success') / count(*), 1) AS percent, round(avg(duration_s),"
      " 1) AS avg_seconds, round(avg(cost_usd), 4) AS avg_usd FROM runs WHERE status NOT IN"
      " ('running') GROUP BY adapter, model ORDER BY runs DESC" },
    { "failures", "runs that failed, and why",
      "SELECT substr(id, -8) AS run, started_at, adapter, reason, error FROM runs"
      " WHERE status IN ('failed', 'canceled', 'abandoned') ORDER BY started_at DESC" },
    { "slowest-tools", "time spent in each tool",
      "SELECT tool_name, count(*) AS calls, sum(success = 0) AS failed, sum(duration_ms) AS"
      " total_ms, CAST(round(avg(duration_ms)) AS INTEGER) AS avg_ms, max(duration_ms) AS max_ms "
      "FROM tool_calls"
      " GROUP BY tool_name ORDER BY total_ms DESC" },
    { "tool-failures", "calls of tools that failed",
      "SELECT substr(r.id, -8) AS run, t.timestamp, t.tool_name, t.failure, t.policy,"
      " substr(t.result, 1, 200) AS result FROM tool_calls t JOIN runs r USING (run)"
      " WHERE t.success = 0 ORDER BY t.timestamp DESC" },
    { "slowest-model-calls", "model calls that took longest",
      "SELECT substr(r.id, -8) AS run, m.call, m.model, m.status, m.attempts, m.first_byte_ms,"
      " m.duration_ms, m.input_tokens, m.output_tokens FROM model_calls m JOIN runs r USING (run)"
      " ORDER BY m.duration_ms DESC LIMIT 50" },
    { "cache", "how much of the input came from a cache",
      "SELECT model, sum(input_tokens) AS input_tokens, sum(cache_read_tokens) AS cache_read,"
      " round(100.0 * sum(cache_read_tokens) / sum(input_tokens), 1) AS percent FROM model_calls"
      " GROUP BY model ORDER BY input_tokens DESC" },
    { "phases", "where the time of runs goes",
      "SELECT substr(key, 14) AS phase, count(*) AS runs, sum(value) AS total_ms,"
      " CAST(round(avg(value)) AS INTEGER) AS avg_ms, max(value) AS max_ms FROM metrics WHERE key "
      "LIKE"
      " 'ext.phase_ms.%' GROUP BY key ORDER BY total_ms DESC" },
    { "files", "files that were changed most often",
      "SELECT path, count(*) AS runs, sum(added) AS added, sum(removed) AS removed FROM changes"
      " GROUP BY path ORDER BY runs DESC, path LIMIT 100" },
    { "warnings", "warnings, most frequent first",
      "SELECT count(*) AS runs, text FROM warnings GROUP BY text ORDER BY runs DESC" },
    { "denied", "model calls and tools that were refused",
      "SELECT substr(r.id, -8) AS run, e.timestamp, e.event, e.message FROM events e"
      " JOIN runs r USING (run) WHERE e.event = 'gateway.refused'"
      " UNION ALL SELECT substr(r.id, -8), t.timestamp, t.tool_name, t.policy FROM tool_calls t"
      " JOIN runs r USING (run) WHERE t.failure = 'denied' ORDER BY 2" },
    { 0 },
};

size_t query_table_width(const struct query_table *t)
{
    size_t n = 0;
    while (t->columns[n].name != NULL) {
        n++;
    }
    return n;
}

static void add_table(const struct query_table *t, struct buf *out)
{
    bool has_key = t == &query_tables[QUERY_RUNS];
    buf_addf(out, "CREATE TABLE %s (%s", t->name, has_key ? "" : "rowid INTEGER PRIMARY KEY, ");
    for (const struct query_column *c = t->columns; c->name != NULL; c++) {
        buf_addf(out, "%s%s %s", c == t->columns ? "" : ", ", c->name, c->type);
    }
    buf_adds(out, ");\n");
    if (!has_key) {
        buf_addf(out, "CREATE INDEX %s_run ON %s (run);\n", t->name, t->name);
    }
}

void query_schema_create(struct buf *out)
{
    for (size_t i = 0; i < QUERY_TABLES_MAX; i++) {
        add_table(&query_tables[i], out);
    }
    buf_adds(out, "CREATE INDEX transcript_call ON transcript (call_id)"
                  " WHERE call_id IS NOT NULL;\n");
    for (const struct query_view *v = query_views; v->name != NULL; v++) {
        buf_addf(out, "CREATE VIEW %s AS %s;\n", v->name, v->sql);
    }
}

void query_schema_insert(const struct query_table *t, struct buf *out)
{
    buf_addf(out, "INSERT INTO %s (", t->name);
    for (const struct query_column *c = t->columns; c->name != NULL; c++) {
        buf_addf(out, "%s%s", c == t->columns ? "" : ", ", c->name);
    }
    buf_adds(out, ") VALUES (");
    for (size_t n = query_table_width(t); n > 0; n--) {
        buf_adds(out, n > 1 ? "?, " : "?)");
    }
}

const struct query_named *query_named_find(const char *name)
{
    for (const struct query_named *q = query_named_list; q->name != NULL; q++) {
        if (strcmp(q->name, name) == 0) {
            return q;
        }
    }
    return NULL;
}

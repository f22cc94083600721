/* SPDX-License-Identifier: MIT
 *
 * Driver `contract`: a program that is an adapter itself. It gets its settings by environment, and
 * leaves files in a directory of its own: metrics.json tells what was used and how it ended,
 * manifest.json how it ended in the words of adapter images, agent.log what the agent did. Events
 * may come on standard output meanwhile, or in transcript.jsonl afterwards, as JSON lines mapped by
 * the profile; without a result among them the text is summary.md, or what was printed.
 */
#include <stdlib.h>

#include "adapters/driver.h"
#include "adapters/mapping.h"

/* Of agent.log, in the transcript. */
enum { LOG_MAX = 64 << 10 };

static const char *const contract_files[] = { "metrics.json",     "manifest.json", "agent.log",
                                              "transcript.jsonl", "summary.md",    NULL };

/* Of manifest.json: what its outcome may be, and the exit code that asks for a person. */
#define OUTCOME_HUMAN "needs_human"
enum { REVIEW_EXIT = 2 };

struct contract {
    struct mapping *events;
    struct mapping *text;
    struct entry_sink sink;
    struct arena *arena; /* what the files said */
    const struct json *metrics;
    const struct json *manifest;
    struct str summary;
    bool bad_metrics, bad_manifest;
    bool left_files;         /* any of those that it may leave */
    bool must_have_manifest; /* the contract of images: without one it has not been kept */
};

static void *contract_open(const struct launch_spec *spec, struct entry_sink sink)
{
    struct contract *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    c->sink = sink;
    c->must_have_manifest = spec->profile->image != NULL;
    c->events = mapping_new(spec->profile->output, sink);
    c->text = mapping_new(NULL, (struct entry_sink) { 0 });
    return c;
}

static void contract_close(void *self)
{
    struct contract *c = self;
    if (c != NULL) {
        mapping_free(c->events);
        mapping_free(c->text);
        arena_free(c->arena);
        free(c);
    }
}

static void contract_feed(void *self, enum agent_stream stream, struct str bytes)
{
    struct contract *c = self;
    if (stream == AGENT_STDOUT) {
        mapping_feed(c->events, bytes);
        mapping_feed(c->text, bytes);
    }
}

static void tell_log(const struct contract *c, struct str log)
{
    struct str end = log;
    if (log.len > LOG_MAX) { /* whole lines: half a secret would not be known as one */
        size_t from = log.len - LOG_MAX;
        while (from < log.len && log.ptr[from - 1] != '\n') {
            from++;
        }
        end = str_slice(log, from, log.len);
    }
    struct json *detail = json_object(c->arena);
    json_setc(c->arena, detail, "text", json_string(c->arena, end));
    json_setc(c->arena, detail, "truncated", json_boolean(c->arena, end.len < log.len));
    if (c->sink.entry != NULL) {
        c->sink.entry(c->sink.owner, "system_event", detail, (struct str) { 0 });
    }
}

static const struct json *object_of(const struct contract *c, struct str bytes)
{
    struct json *v;
    bool good = json_parse(c->arena, bytes, NULL, &v, NULL) == 0 && json_is(v, JSON_OBJECT);
    return good ? v : NULL;
}

static bool outcome_is(const struct json *manifest, const char *word)
{
    return str_eqc(json_str(json_get(manifest, "outcome"), STR_EMPTY), word);
}

static bool is_manifest(const struct json *m)
{
    struct str status = json_str(json_get(m, "status"), STR_EMPTY);
    return (str_eqc(status, "completed") || str_eqc(status, "failed")) &&
           (outcome_is(m, "success") || outcome_is(m, "failure") || outcome_is(m, OUTCOME_HUMAN));
}

static void contract_file(void *self, const char *name, struct str bytes)
{
    struct contract *c = self;
    c->left_files = c->left_files || bytes.len > 0;
    if (strcmp(name, "agent.log") == 0) {
        tell_log(c, bytes);
    } else if (strcmp(name, "summary.md") == 0) {
        c->summary = arena_str(c->arena, bytes);
    } else if (strcmp(name, "transcript.jsonl") == 0) {
        mapping_feed(c->events, STR("\n")); /* the output may have ended within a line */
        mapping_feed(c->events, bytes);
    } else if (strcmp(name, "manifest.json") == 0) {
        c->manifest = object_of(c, bytes);
        c->bad_manifest = !is_manifest(c->manifest);
    } else {
        c->metrics = object_of(c, bytes);
        c->bad_metrics = c->metrics == NULL;
    }
}

static int64_t count(const struct json *v)
{
    int64_t n = json_int(v, 0);
    return n > 0 ? n : 0;
}

/* What the program says at its end is over what it said on the way. */
static void take_metrics(const struct json *m, struct agent_report *r)
{
    struct agent_usage *u = &r->usage;
    const struct json *cost = json_get(m, "cost_usd");
    if (json_is(json_get(m, "tokens_input"), JSON_INT) ||
        json_is(json_get(m, "tokens_output"), JSON_INT)) {
        *u = (struct agent_usage) { .known = true,
                                    .input = count(json_get(m, "tokens_input")),
                                    .output = count(json_get(m, "tokens_output")),
                                    .turns = u->turns };
    }
    u->api_calls = count(json_get(m, "api_calls"));
    if (json_real(cost, -1) >= 0) {
        u->cost_known = true;
        u->cost_usd = json_real(cost, 0);
    }
    struct str error = json_str(json_get(m, "error"), (struct str) { 0 });
    if (error.len > 0) {
        r->error = error;
        r->failed = true;
    }
    r->failed = r->failed || json_int(json_get(m, "exit_code"), 0) != 0;
}

static void take_manifest(const struct contract *c, struct agent_report *r)
{
    const struct json *m = c->manifest;
    struct str error = json_str(json_get(m, "error"), STR_EMPTY);
    bool failed =
        outcome_is(m, "failure") || str_eqc(json_str(json_get(m, "status"), STR_EMPTY), "failed");
    if (error.len > 0) {
        r->error = error;
    }
    r->failed = r->failed || failed;
    r->needs_human = !r->failed && outcome_is(m, OUTCOME_HUMAN);
    r->review_exit = r->failed ? 0 : REVIEW_EXIT;
}

/* Exit code 2 asks for a human, unless a file says that the program failed. */
static void take_review(const struct contract *c, struct agent_report *r)
{
    r->review_exit = c->metrics == NULL && !r->failed ? REVIEW_EXIT : r->review_exit;
}

static void complain(struct agent_report *r, const char *what)
{
    r->failed = true;
    r->needs_human = false;
    r->review_exit = 0;
    r->error = str_of(what);
}

static void contract_end(void *self, struct agent_report *ret)
{
    struct contract *c = self;
    struct agent_report text;
    mapping_end(c->events, ret);
    mapping_end(c->text, &text);
    ret->left_files = c->left_files;
    ret->unparsable_lines = 0; /* other words may stand between events */
    if (!ret->result_seen && str_trim(c->summary).len > 0) {
        ret->text = c->summary;
    } else if (!ret->result_seen) {
        ret->text = text.text;
        ret->text_truncated = text.text_truncated;
    }
    if (c->metrics != NULL) {
        take_metrics(c->metrics, ret);
    }
    if (c->manifest != NULL && !c->bad_manifest) {
        take_manifest(c, ret);
    } else if (c->manifest == NULL) {
        take_review(c, ret);
    }
    if (c->bad_metrics) {
        complain(ret, "metrics.json of the adapter program is not a JSON object");
    } else if (c->bad_manifest) {
        complain(ret, "manifest.json of the adapter has no status or no outcome");
    } else if (c->must_have_manifest && c->manifest == NULL) {
        complain(ret, "the adapter left no manifest.json");
    }
}

static const struct driver_program_ops program_ops = {
    .plan = driver_plan,
    .feed = contract_feed,
};

static const struct driver_contract_ops contract_ops = {
    .files = contract_files,
    .take_file = contract_file,
};

const struct driver driver_contract = {
    .name = "contract",
    .kind = DRIVER_CONTRACT,
    .tier_prompt = "told",
    .open = contract_open,
    .end = contract_end,
    .close = contract_close,
    .program = &program_ops,
    .contract = &contract_ops,
};

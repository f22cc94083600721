/* SPDX-License-Identifier: MIT
 *
 * The table of settings; settings_table.h explains the columns. The order is the order of the
 * reference in docs/task.md, and within a heading the order of the options in the help.
 */
#include "config/settings_table.h"

#include <math.h>

#include "config/settings.h"

const char *const setting_headings[HEADING_MAX] = {
    [HEADING_TASK] = "Task",       [HEADING_LIMITS] = "Limits",
    [HEADING_GATEWAY] = "Gateway", [HEADING_ENVIRONMENT] = "Environment",
    [HEADING_SANDBOX] = "Sandbox", [HEADING_EVALUATION] = "Evaluation",
};

/* clang-format off */
/* --- items of lists, and members that only the definition of a task reads --- */

static const struct shape skill_shape[] = {
    { "path", SHAPE_PATH, .required = true, .help = "directory, SKILL.md or zip archive" },
    { "name", SHAPE_STRING, .help = "install the skill under this name" },
    { 0 },
};
static const struct shape example_shape[] = {
    { "description", SHAPE_STRING, .required = true, .help = "what the example shows" },
    { "input", SHAPE_ANY, .help = "input of the call" },
    { "output", SHAPE_ANY, .help = "output of the call" },
    { 0 },
};
static const struct shape mcp_shape[] = {
    { "command", SHAPE_COMMAND, .help = "program and arguments of a server on stdio" },
    { "url", SHAPE_STRING, .help = "address of a server on HTTP" },
    { "env", SHAPE_MAP, .help = "variables of the server" },
    { "headers", SHAPE_MAP, .help = "HTTP headers; a value may name a secret" },
    { "tools", SHAPE_STRINGS, .help = "tools of the server to offer; absent: all" },
    { "rename", SHAPE_MAP, .help = "names of the server to names for the agent" },
    { "prefix", SHAPE_STRING, .help = "prefix of each name that is not renamed" },
    { "pin", SHAPE_MAP, .help = "names to hashes of the approved definitions" },
    { "sandbox", SHAPE_BOOL, .help = "true: run the server where the agent runs; false: beside cinch" },
    { "start_timeout", SHAPE_DURATION, .help = "time to list its tools" },
    { 0 },
};
static const struct shape tool_shape[] = {
    { "name", SHAPE_STRING, .required = true, .pattern = "^[a-z0-9_-]{1,64}$",
      .help = "unique name: 1 to 64 of a-z, 0-9, _ and -" },
    { "description", SHAPE_STRING, .max_len = 200, .help = "description for the model: 1 to 200 ASCII characters" },
    { "input_schema", SHAPE_ANY, .help = "JSON Schema of the input" },
    { "output_schema", SHAPE_ANY, .help = "JSON Schema of the output" },
    { "examples", SHAPE_LIST, .inner = example_shape, .help = "examples for the model" },
    { "accepts_overrides", SHAPE_BOOL, .help = "let an override file replace the description" },
    { "command", SHAPE_COMMAND, .help = "program: JSON on stdin, JSON or text on stdout" },
    { "mcp", SHAPE_OBJECT, .inner = mcp_shape, .help = "upstream MCP server" },
    { "timeout", SHAPE_DURATION, .help = "limit of one call" },
    { "max_output", SHAPE_SIZE, .help = "limit of the output" },
    { "env", SHAPE_MAP, .help = "variables of the program" },
    { "sandbox", SHAPE_BOOL, .help = "true: run the program where the agent runs; false: beside cinch" },
    { 0 },
};
static const struct shape rule_shape[] = {
    { "pointer", SHAPE_STRING, .help = "JSON Pointer to an argument" },
    { "pattern", SHAPE_STRING, .help = "regular expression that the argument must match" },
    { "schema", SHAPE_ANY, .help = "JSON Schema that the argument must match" },
    { 0 },
};
static const struct shape policy_shape[] = {
    { "name", SHAPE_STRING, .help = "unique name" },
    { "type", SHAPE_WORD, .required = true, .help = "kind of policy",
      .words = "sequential_dependency|read_before_write|allow|deny|arguments|rate|program" },
    { "tools", SHAPE_STRINGS, .help = "patterns of tools to which it applies; native:* are those of the harness" },
    { "section", SHAPE_STRING, .help = "path of the prompt section to whose tools it applies" },
    { "depends", SHAPE_ANY_OBJECT, .help = "tool to the tools that must be called before it" },
    { "read_tools", SHAPE_STRINGS, .help = "tools that read files" },
    { "write_tools", SHAPE_STRINGS, .help = "tools that write files" },
    { "rules", SHAPE_LIST, .inner = rule_shape, .help = "rules for arguments" },
    { "calls", SHAPE_INT, .help = "maximum number of calls" },
    { "per", SHAPE_DURATION, .help = "period of `calls`; absent: the whole run" },
    { "command", SHAPE_COMMAND, .help = "program that decides" },
    { "timeout", SHAPE_DURATION, .help = "limit of the program" },
    { "sandbox", SHAPE_BOOL, .help = "true: run the program where the agent runs; false: beside cinch" },
    { "reason", SHAPE_STRING, .help = "text for the model when a call is refused" },
    { 0 },
};
static const struct shape feedback_shape[] = {
    { "name", SHAPE_STRING, .help = "unique name" },
    { "type", SHAPE_WORD, .required = true, .words = "deadline|budget|static|program", .help = "kind of feedback" },
    { "every_n_calls", SHAPE_INT, .help = "trigger: number of tool calls" },
    { "every_n_seconds", SHAPE_NUMBER, .max = 1e9, .help = "trigger: time in seconds" },
    { "on_file_created", SHAPE_STRING, .help = "trigger: this file appears" },
    { "text", SHAPE_STRING, .help = "text of static feedback" },
    { "threshold", SHAPE_DURATION, .help = "remaining time (deadline), or remaining share of 1 (budget), from which it is given" },
    { "command", SHAPE_COMMAND, .help = "program that prints the feedback" },
    { "timeout", SHAPE_DURATION, .help = "limit of the program" },
    { "sandbox", SHAPE_BOOL, .help = "true: run the program where the agent runs; false: beside cinch" },
    { 0 },
};
static const struct shape predicate_shape[] = {
    { "slice", SHAPE_STRING, .required = true, .help = "slice of the session" },
    { "min", SHAPE_INT, .help = "minimum number of items; default: 1, or 0 if there is a max" },
    { "max", SHAPE_INT, .help = "maximum number of items" },
    { "where", SHAPE_ANY_OBJECT, .help = "JSON Pointers to the values that an item must have to count" },
    { "every", SHAPE_BOOL, .help = "every item must match `where`" },
    { 0 },
};
#define CHECKER \
    { "files", SHAPE_STRINGS, .help = "files that must exist" }, \
    { "command", SHAPE_COMMAND, .help = "program that must exit with 0" }, \
    { "timeout", SHAPE_DURATION, .help = "limit of the program" }, \
    { "sandbox", SHAPE_BOOL, .help = "true: run the program where the agent runs; false: beside cinch" }, \
    { "schema", SHAPE_SOURCE, .help = "JSON Schema that the output must match, or its file" }, \
    { "session", SHAPE_OBJECT, .inner = predicate_shape, .help = "condition on a slice of the session" }
#define GROUPS(table) \
    { "all", SHAPE_LIST, .inner = table, .help = "checks that must all pass" }, \
    { "any", SHAPE_LIST, .inner = table, .help = "checks of which one must pass" }
static const struct shape checker_shape[] = { CHECKER, { 0 } };
static const struct shape group_shape[] = { CHECKER, GROUPS(checker_shape), { 0 } };
static const struct shape completion_shape[] = {
    CHECKER, GROUPS(group_shape),
    { "max_rounds", SHAPE_INT, .max = 1000, .help = "maximum number of continuations" },
    { "model", SHAPE_STRING, .help = "model of the continuations, if the adapter can change it" },
    { 0 },
};
static const struct shape slice_shape[] = {
    { "name", SHAPE_STRING, .required = true, .help = "unique name" },
    { "policy", SHAPE_WORD, .words = "state|log", .help = "state (default): rolled back with a failed call; log: kept" },
    { 0 },
};
static const struct shape reducer_shape[] = {
    { "event", SHAPE_STRING, .required = true, .help = "entry of a log slice, name of a tool, or event that a tool dispatches" },
    { "slice", SHAPE_STRING, .required = true, .help = "slice that changes" },
    { "reducer", SHAPE_WORD, .required = true, .words = "append_all|replace_latest|upsert_by|replace_latest_by",
      .help = "how the slice changes" },
    { "key", SHAPE_STRING, .help = "JSON Pointer into events and items, for the reducers *_by" },
    { 0 },
};
static const struct shape artifact_shape[] = {
    { "path", SHAPE_STRING, .required = true, .help = "relative path" },
    { "required", SHAPE_BOOL, .help = "fail the run if the file is missing; default: true" },
    { 0 },
};
static const struct shape mount_shape[] = {
    { "source", SHAPE_PATH, .required = true, .help = "file or directory of the host" },
    { "target", SHAPE_STRING, .required = true, .help = "path in the workspace" },
    { "write", SHAPE_BOOL, .help = "let the agent write to it" },
    { "include", SHAPE_STRINGS, .help = "patterns of files to copy; absent: all" },
    { "exclude", SHAPE_STRINGS, .help = "patterns of files not to copy; they win over `include`" },
    { "max_bytes", SHAPE_SIZE, .help = "limit of what is copied" },
    { "follow_symlinks", SHAPE_BOOL, .help = "also copy links to files within the source" },
    { 0 },
};
static const struct shape route_shape[] = {
    { "model", SHAPE_STRING, .required = true, .help = "name or pattern" },
    { "upstream", SHAPE_STRING, .required = true, .help = "base URL" },
    { "format", SHAPE_WORD, .words = "anthropic|responses|chat|gemini", .help = "wire format" },
    { "name", SHAPE_STRING, .help = "name of the model at the upstream" },
    { "key", SHAPE_STRING, .help = "variable that holds the key" },
    { 0 },
};

/* --- settings --- */

#define FIELD(member) SETTING_FIELD(struct settings, member)
#define WORDS SETTING_WORDS
#define PROJECT .writers = SETTING_BY_PROJECT
#define FROM_START .flags = SETTING_RECORDED

const struct setting settings_table[] = {
    { "agent", SHAPE_OBJECT, .help = "the agent and its model" },
    { "agent.adapter", SHAPE_STRING, .field = FIELD(adapter), PROJECT,
      .help = "run this agent ('cinch adapters' lists the names)",
      .option = { "adapter", 'a', .value = "NAME", .complete = COMPLETE_ADAPTERS } },
    { "agent.model", SHAPE_STRING, .field = FIELD(model), PROJECT, .help = "use this model",
      .option = { "model", 'm', .value = "MODEL" } },
    { "agent.command", SHAPE_COMMAND, .field = FIELD(command), .help = "program and arguments, for the adapter `command`" },
    { "agent.args", SHAPE_STRINGS, .field = FIELD(args), .help = "additional arguments, for the other adapters" },
    { "agent.sampling", SHAPE_OBJECT, .help = "parameters of the model; absent: the harness decides" },
    { "agent.sampling.temperature", SHAPE_NUMBER, .field = FIELD(sampling.temperature), .unset = NAN, .max = 2,
      .help = "randomness" },
    { "agent.sampling.max_tokens", SHAPE_INT, .field = FIELD(sampling.max_tokens), .min = 1, .max = 1e9,
      .help = "maximum number of tokens of one response" },
    { "agent.sampling.top_p", SHAPE_NUMBER, .field = FIELD(sampling.top_p), .unset = NAN, .max = 1,
      .help = "nucleus sampling" },
    { "agent.sampling.presence_penalty", SHAPE_NUMBER, .field = FIELD(sampling.presence_penalty), .unset = NAN,
      .min = -2, .max = 2, .help = "penalty for repeated subjects" },
    { "agent.sampling.frequency_penalty", SHAPE_NUMBER, .field = FIELD(sampling.frequency_penalty), .unset = NAN,
      .min = -2, .max = 2, .help = "penalty for repeated words" },
    { "agent.sampling.stop", SHAPE_TEXTS, .field = FIELD(sampling.stop), .help = "texts that end a response" },
    { "agent.sampling.seed", SHAPE_INT, .field = FIELD(sampling.seed), .unset = -1, .help = "seed for repeatable responses" },
    { "agent.effort", SHAPE_WORD, .field = FIELD(sampling.effort), .words = "none|minimal|low|medium|high|xhigh|max",
      .help = "reasoning effort" },
    { "agent.auth", SHAPE_WORD, .field = FIELD(auth), WORDS("gateway|host|env", AUTH_GATEWAY, AUTH_HOST, AUTH_ENV),
      .fallback = "gateway", .help = "use the gateway's credential, your own login (host) or variables (env)",
      .option = { "auth", .value = "MODE", .heading = HEADING_ENVIRONMENT } },
    { "agent.project_config", SHAPE_WORD, .field = FIELD(trust_project), WORDS("instructions|trusted", false, true),
      .fallback = "instructions", .shown = "instructions only",
      .help = "let the agent load settings, hooks, plugins and servers from the workspace",
      .option = { "trust-project", .heading = HEADING_ENVIRONMENT, .negatable = true, .on = "trusted", .off = "instructions" } },

    { "prompt", SHAPE_OBJECT, .field = FIELD(prompt), .shorthand = "text|sections", .help = "the prompt: text, file or sections" },
    { "prompt.text", SHAPE_STRING, .field = FIELD(prompt_text), .help = "the prompt itself" },
    { "prompt.file", SHAPE_PATH, .field = FIELD(prompt_file), .help = "file that contains the prompt" },
    { "prompt.name", SHAPE_STRING, .field = FIELD(prompt_name), .shown = "the name of the task",
      .help = "name of the prompt in events and transcript" },
    { "prompt.ns", SHAPE_STRING, .help = "namespace of the prompt" },
    { "prompt.key", SHAPE_STRING, .help = "key of the prompt" },
    { "prompt.sections", SHAPE_LIST, .help = "sections with titles and numbers; see prompt.md" },
    { "prompt.template", SHAPE_BOOL, .shown = "true if there are params", .help = "treat text and file as templates" },
    { "prompt.overrides", SHAPE_OBJECT, .help = "files that replace texts of sections" },
    { "prompt.overrides.dir", SHAPE_PATH, .help = "directory of the override files" },
    { "prompt.overrides.tag", SHAPE_STRING, .help = "tag of the override files to use" },
    { "prompt.delivery", SHAPE_WORD, .field = FIELD(delivery),
      WORDS("file|argument|stdin", PROMPT_FILE, PROMPT_ARGUMENT, PROMPT_STDIN), .shown = "the adapter's choice",
      .help = "choose how the prompt is passed to the agent", .option = { "prompt-via", .value = "WAY" } },
    { "params", SHAPE_ANY_OBJECT, .field = FIELD(params), .help = "set a variable of the prompt or a parameter of the skill",
      .option = { "param", .value = "NAME=VALUE" } },
    { "skills", SHAPE_LIST, .inner = skill_shape, .shorthand = "path", .field = FIELD(skills),
      .help = "install a skill (directory, SKILL.md or zip); a skill package becomes the task",
      .option = { "skill", .value = "PATH" } },
    { "inputs", SHAPE_ANY_OBJECT, .field = FIELD(inputs), .help = "set an input of the skill package",
      .option = { "input", 'i', .value = "NAME=FILE" } },

    { "tools", SHAPE_LIST, .inner = tool_shape, .field = FIELD(tools), .help = "tools for the agent; see tools.md" },
    { "policies", SHAPE_LIST, .inner = policy_shape, .field = FIELD(policies), .help = "which tools may be called, and when" },
    { "feedback", SHAPE_LIST, .inner = feedback_shape, .field = FIELD(feedback), .help = "text for the agent while it works" },
    { "completion", SHAPE_OBJECT, .inner = completion_shape, .field = FIELD(completion),
      .help = "completion checks: when the task is done" },

    { "workspace", SHAPE_OBJECT, .shorthand = "path", .help = "the directory that the agent works in" },
    { "workspace.path", SHAPE_PATH, .field = FIELD(workspace), .fallback = ".", .flags = SETTING_RECORDED | SETTING_REMOVABLE,
      .help = "run the agent in DIR", .option = { "workspace", 'w', .value = "DIR", .complete = COMPLETE_DIRECTORIES } },
    { "workspace.mode", SHAPE_WORD, .field = FIELD(view.mode), .fallback = "snapshot",
      WORDS("snapshot|overlay|copy|clone|in-place", WORKSPACE_SNAPSHOT, WORKSPACE_OVERLAY, WORKSPACE_COPY, WORKSPACE_CLONE,
            WORKSPACE_IN_PLACE),
      .help = "choose how the agent sees the workspace; only in-place changes the original",
      .option = { "workspace-mode", .value = "MODE" } },
    { "workspace.ref", SHAPE_STRING, .field = FIELD(view.ref), .help = "check out this commit, branch or tag for the agent",
      .option = { "ref", .value = "REF" } },
    { "workspace.context", SHAPE_PATHS, .field = FIELD(view.context), .help = "files and directories for the agent to read" },
    { "workspace.mounts", SHAPE_LIST, .inner = mount_shape, .field = FIELD(view.mounts), .help = "additional directories" },
    { "workspace.roots", SHAPE_STRINGS, .field = FIELD(view.roots),
      .help = "directories that the sources of mounts must be below" },
    { "workspace.keep", SHAPE_WORD, .field = FIELD(view.keep), .words = "keep|keep-on-failure|remove",
      .fallback = "keep-on-failure", .help = "choose when to keep the workspace after the run",
      .option = { "keep-workspace", .value = "WHEN" } },
    { "workspace.max_file", SHAPE_SIZE, .field = FIELD(view.max_file), .shown = "10M",
      .help = "leave larger files out of diff.patch" },
    { "workspace.savepoint", SHAPE_WORD, .field = FIELD(view.savepoints), WORDS("turn|none", true, false), .fallback = "none",
      .help = "roll back the changes of a failed turn, including those of native tools",
      .option = { "savepoint", .value = "WHEN" } },

    { "output", SHAPE_OBJECT, .shorthand = "dir", .help = "the record and the required results" },
    { "output.dir", SHAPE_PATH, .field = FIELD(output_dir), .shown = "a new directory below ~/.local/state/cinch/runs",
      .help = "write the record to DIR, which must be new or empty",
      .option = { "output", 'o', .value = "DIR", .complete = COMPLETE_DIRECTORIES } },
    { "output.schema", SHAPE_SOURCE, .field = FIELD(output_schema), .help = "require the final answer to match this JSON Schema",
      .option = { "output-schema", .value = "FILE" } },
    { "output.artifacts", SHAPE_LIST, .inner = artifact_shape, .shorthand = "path", .field = FIELD(artifacts),
      .help = "files that must exist at the end" },

    { "session", SHAPE_OBJECT, .field = FIELD(session), .help = "values that tools share during the run" },
    { "session.slices", SHAPE_LIST, .inner = slice_shape, .help = "named lists that tools change" },
    { "session.reducers", SHAPE_LIST, .inner = reducer_shape, .help = "how events change slices" },
    { "session.restore", SHAPE_PATH, .help = "snapshot to load first: session/after.jsonl of another run" },
    { "session.resume", SHAPE_PATH, .help = "continue the conversation of the run recorded in DIR",
      .option = { "resume", .value = "DIR", .complete = COMPLETE_DIRECTORIES } },

    { "version", SHAPE_INT, PROJECT, .help = "version of the task format: 1" },
    { "name", SHAPE_STRING, .field = FIELD(name), .fallback = "task", PROJECT, .help = "set the name of the task in the record",
      .option = { "name", .value = "NAME" } },
    { "description", SHAPE_STRING, PROJECT, .help = "description of the task" },
    { "metadata", SHAPE_ANY_OBJECT, .field = FIELD(metadata), .help = "anything; copied to task.json, never interpreted" },

    { "run_context", SHAPE_MAP, .field = FIELD(run_context),
      .help = "set an id of the caller (request_id, attempt, worker_id, session_id, trace_id, span_id or any other), copied to every event",
      .option = { "run-context", .value = "NAME=VALUE" }, .since = "0.2.0" },

    { "limits", SHAPE_OBJECT, .help = "times and budget of the run" },
    { "limits.timeout", SHAPE_DURATION, .field = FIELD(timeout), .fallback = "1h", FROM_START,
      .writers = SETTING_BY_PROJECT | SETTING_BY_SKILL,
      .help = "stop the run after TIME (600, 90s, 10m, 2h)",
      .option = { "timeout", 't', .value = "TIME", .heading = HEADING_LIMITS, .positive = true } },
    { "limits.deadline", SHAPE_STRING, .field = FIELD(deadline),
      .help = "stop the run at this time (RFC 3339: 2026-11-18T20:30:00Z); a time in the past fails the run before anything starts",
      .option = { "deadline", .value = "TIME", .heading = HEADING_LIMITS }, .since = "0.2.0" },
    { "limits.first_output", SHAPE_DURATION, .field = FIELD(first_output), .fallback = "0", FROM_START, PROJECT,
      .help = "stop the run if the agent prints nothing within TIME; 0 disables this",
      .option = { "first-output-timeout", .value = "TIME", .heading = HEADING_LIMITS } },
    { "limits.idle", SHAPE_DURATION, .field = FIELD(idle), .fallback = "0", FROM_START, PROJECT,
      .help = "stop the run if the agent neither prints nor uses the CPU for TIME; 0 disables this",
      .option = { "idle-timeout", .value = "TIME", .heading = HEADING_LIMITS } },
    { "limits.grace", SHAPE_DURATION, .field = FIELD(grace), .fallback = "5s", .flags = SETTING_RECORDED | SETTING_REMOVABLE,
      PROJECT, .help = "wait TIME between SIGTERM and SIGKILL",
      .option = { "grace", .value = "TIME", .heading = HEADING_LIMITS } },
    { "limits.drain", SHAPE_DURATION, .field = FIELD(drain), .fallback = "5s", .flags = SETTING_RECORDED | SETTING_REMOVABLE,
      PROJECT, .help = "wait TIME after the agent exits for processes that hold its output open",
      .option = { "drain", .value = "TIME", .heading = HEADING_LIMITS } },
    { "limits.calls", SHAPE_INT, .field = FIELD(budget.calls), .help = "stop before the run exceeds N model calls",
      .option = { "max-calls", .value = "N", .heading = HEADING_LIMITS, .positive = true } },
    { "limits.tokens_total", SHAPE_INT, .field = FIELD(budget.tokens_total),
      .help = "stop before the run exceeds N tokens, input and output together",
      .option = { "max-tokens", .value = "N", .heading = HEADING_LIMITS, .positive = true } },
    { "limits.tokens_input", SHAPE_INT, .field = FIELD(budget.tokens_input), .help = "stop before the run exceeds N input tokens",
      .option = { "max-input-tokens", .value = "N", .heading = HEADING_LIMITS, .positive = true } },
    { "limits.tokens_output", SHAPE_INT, .field = FIELD(budget.tokens_output),
      .help = "stop before the run exceeds N output tokens",
      .option = { "max-output-tokens", .value = "N", .heading = HEADING_LIMITS, .positive = true } },
    { "limits.usd", SHAPE_NUMBER, .field = FIELD(budget.usd), .max = 1e9,
      .help = "stop before the run's cost can exceed AMOUNT (US dollars, built-in price table)",
      .option = { "max-usd", .value = "AMOUNT", .heading = HEADING_LIMITS } },
    { "limits.prompt_estimate", SHAPE_WORD, .field = FIELD(budget.prompt_bytes), WORDS("text|bytes", false, true),
      .fallback = "text", .help = "how a prompt's reservation is estimated; see gateway.md" },

    { "throttle", SHAPE_OBJECT, .help = "how failed model calls are retried" },
    { "throttle.max_attempts", SHAPE_INT, .field = FIELD(throttle.max_attempts), .min = 1, .max = 100, .fallback = "5", FROM_START,
      .help = "maximum number of attempts, the first one included" },
    { "throttle.base_ms", SHAPE_INT, .field = FIELD(throttle.base), .unit = NSEC_PER_MS, .fallback = "500", FROM_START,
      .help = "first delay" },
    { "throttle.cap_ms", SHAPE_INT, .field = FIELD(throttle.cap), .unit = NSEC_PER_MS, .fallback = "8000", FROM_START,
      .help = "longest delay" },
    { "throttle.total_ms", SHAPE_INT, .field = FIELD(throttle.total), .unit = NSEC_PER_MS, .fallback = "30000", FROM_START,
      .help = "sum of all delays of one call" },
    { "throttle.concurrency", SHAPE_INT, .field = FIELD(throttle.concurrency),
      .help = "calls at a time, for each upstream; 0: no limit" },
    { "throttle.per_minute", SHAPE_INT, .field = FIELD(throttle.per_minute),
      .help = "calls per minute, for each upstream; 0: no limit" },

    { "gateway", SHAPE_OBJECT, .shorthand = "upstream", .help = "the gateway and its upstreams" },
    { "gateway.upstream", SHAPE_STRING, .field = FIELD(gateway.upstream), .help = "send model requests to URL",
      .option = { "upstream", 'u', .value = "URL", .heading = HEADING_GATEWAY } },
    { "gateway.routes", SHAPE_LIST, .inner = route_shape, .field = FIELD(gateway.routes), .help = "upstreams of some models" },
    { "gateway.script", SHAPE_PATH, .field = FIELD(gateway.script), .help = "use a scripted model instead of an upstream",
      .option = { "script", .value = "FILE", .heading = HEADING_GATEWAY } },
    { "gateway.cassette", SHAPE_PATH, .field = FIELD(gateway.cassette), .help = "replay a recording instead of using an upstream",
      .option = { "cassette", .value = "FILE", .heading = HEADING_GATEWAY } },
    { "gateway.replay_speed", SHAPE_NUMBER, .field = FIELD(gateway.replay_speed), .max = 1e6, .fallback = "0",
      .help = "set the speed of the replay: 1 is as recorded, 0 is without delays",
      .option = { "replay-speed", .value = "FACTOR", .heading = HEADING_GATEWAY } },
    { "gateway.record", SHAPE_BOOL, .field = FIELD(gateway.record), .fallback = "true",
      .help = "record model traffic in evidence/traffic.cassette",
      .option = { "record", .heading = HEADING_GATEWAY, .negatable = true } },
    { "gateway.prices", SHAPE_PATH, .field = FIELD(gateway.prices), .shown = "the built-in table", .help = "price table" },

    { "env", SHAPE_OBJECT, .help = "environment of the agent" },
    { "env.set", SHAPE_MAP, .field = FIELD(env_set), .help = "variables to set" },
    { "env.pass", SHAPE_STRINGS, .field = FIELD(env_pass), .help = "variables to pass from the environment of cinch" },
    { "env.inherit", SHAPE_BOOL, .field = FIELD(env_inherit), .fallback = "false",
      .help = "pass the whole environment to the agent", .option = { "inherit-env", .heading = HEADING_ENVIRONMENT } },
    { "secrets", SHAPE_OBJECT, .shorthand = "names", .help = "secrets, by name" },
    { "secrets.names", SHAPE_STRINGS, .field = FIELD(secret_names),
      .help = "pass a variable to the agent and keep its value out of every file",
      .option = { "secret", 's', .value = "NAME", .heading = HEADING_ENVIRONMENT } },
    { "secrets.files", SHAPE_PATHS, .field = FIELD(secret_files), .help = "keep the content of FILE out of every recorded file",
      .option = { "secret-file", .value = "FILE", .heading = HEADING_ENVIRONMENT } },
    { "home", SHAPE_WORD, .field = FIELD(home), WORDS("private|shared", HOME_PRIVATE, HOME_SHARED), .shown = "the adapter's choice",
      .help = "give the agent a HOME of its own, or share yours",
      .option = { "home", .value = "KIND", .heading = HEADING_ENVIRONMENT } },

    { "sandbox", SHAPE_OBJECT, .shorthand = "mode", .help = "what the agent can see, change and use" },
    { "sandbox.mode", SHAPE_WORD, .field = FIELD(sandbox.mode), .fallback = "workspace-write",
      WORDS("read-only|workspace-write|off", SANDBOX_READ_ONLY, SANDBOX_WORKSPACE_WRITE, SANDBOX_OFF),
      .help = "choose what the agent may write; off disables the sandbox",
      .option = { "sandbox", .value = "MODE", .heading = HEADING_SANDBOX } },
    { "sandbox.read", SHAPE_PATHS, .field = FIELD(sandbox.read), .help = "also let the agent read PATH",
      .option = { "read", .value = "PATH", .heading = HEADING_SANDBOX } },
    { "sandbox.write", SHAPE_PATHS, .field = FIELD(sandbox.write), .help = "also let the agent write to PATH",
      .option = { "write", .value = "PATH", .heading = HEADING_SANDBOX } },
    { "sandbox.deny", SHAPE_PATHS, .field = FIELD(sandbox.deny), .help = "hide PATH from the agent",
      .option = { "deny", .value = "PATH", .heading = HEADING_SANDBOX } },
    { "sandbox.net", SHAPE_CHOICE, .field = FIELD(sandbox.net), WORDS("none|open", SANDBOX_NET_NONE, SANDBOX_NET_OPEN),
      .fallback = "none", .help = "allow network access besides the gateway",
      .option = { "net", .value = "none|open|HOST", .heading = HEADING_SANDBOX } },
    { "sandbox.memory", SHAPE_SIZE, .field = FIELD(sandbox.memory), .help = "limit the memory of the whole run (512M, 2G)",
      .option = { "memory", .value = "SIZE", .heading = HEADING_SANDBOX } },
    { "sandbox.disk", SHAPE_SIZE, .field = FIELD(sandbox.disk), .shown = "20G, or half of the free space if that is less",
      .help = "limit the disk space of the whole run (5G)", .option = { "disk", .value = "SIZE", .heading = HEADING_SANDBOX } },
    { "sandbox.pids", SHAPE_INT, .field = FIELD(sandbox.pids), .min = 1, .max = 4194304, .shown = "4096",
      .help = "limit the number of processes and threads", .option = { "pids", .value = "N", .heading = HEADING_SANDBOX } },
    { "sandbox.cpus", SHAPE_NUMBER, .field = FIELD(sandbox.cpus), .min = 0.01, .max = 4096,
      .help = "limit the run to N CPUs (0.5, 2)", .option = { "cpus", .value = "N", .heading = HEADING_SANDBOX } },
    { "sandbox.allow_degraded", SHAPE_BOOL, .field = FIELD(sandbox.allow_degraded), .fallback = "false",
      .help = "run even if this machine cannot enforce every sandbox guarantee",
      .option = { "allow-degraded", .heading = HEADING_SANDBOX } },
    { "sandbox.engine", SHAPE_STRING, .field = FIELD(sandbox.engine), .shown = "podman, else docker",
      .help = "program that runs adapter images: name or path" },

    { "eval", SHAPE_OBJECT, .help = "variables of the evaluation contract" },
    { "eval.tier", SHAPE_STRING, .field = FIELD(tier), PROJECT, .help = "set the tier of the evaluation ($TIER)",
      .option = { "tier", .value = "TIER", .heading = HEADING_EVALUATION } },
    { "eval.tier_name", SHAPE_STRING, .field = FIELD(tier_name), PROJECT, .help = "name of the tier ($TIER_NAME)" },
    { "eval.tier_prompt", SHAPE_STRING, .field = FIELD(tier_prompt), PROJECT, .help = "system prompt of the tier" },
    { "eval.test_id", SHAPE_STRING, .field = FIELD(test_id), PROJECT, .help = "set the test of the evaluation ($TEST_ID)",
      .option = { "test-id", .value = "ID", .heading = HEADING_EVALUATION } },
    { "eval.task_description", SHAPE_STRING, PROJECT, .help = "description of the test" },
    { "eval.run_number", SHAPE_INT, .field = FIELD(run_number), .min = 1, .max = 99, PROJECT,
      .help = "set the number of the run ($RUN_NUMBER)",
      .option = { "run-number", .value = "N", .heading = HEADING_EVALUATION } },
    { "eval.tools_enabled", SHAPE_BOOL, .field = FIELD(tools_enabled), .help = "set $TOOLS_ENABLED; by default the agent decides",
      .option = { "tools", .heading = HEADING_EVALUATION, .negatable = true } },
    { "eval.delegation_enabled", SHAPE_BOOL, .field = FIELD(delegation_enabled), PROJECT,
      .help = "set $DELEGATION_ENABLED; by default the agent decides",
      .option = { "delegation", .heading = HEADING_EVALUATION, .negatable = true } },
    { "eval.strict", SHAPE_BOOL, .field = FIELD(tier_strict), .fallback = "false", .help = "alias of strict" },
    { "strict", SHAPE_BOOL, .field = FIELD(strict), .fallback = "false",
      .help = "fail instead of warn: if the adapter cannot apply a setting of the tier, if the agent made no model call, if tools "
              "were not offered to the model, or if its output has no final answer",
      .option = { "strict", .heading = HEADING_EVALUATION } },
    { "exit_profile", SHAPE_WORD, .field = FIELD(exit_profile), .words = "native|holon|scylla", .fallback = "native", FROM_START,
      .help = "use the exit codes of this contract",
      .option = { "exit-profile", .value = "NAME", .heading = HEADING_EVALUATION } },

    { "files", SHAPE_ANY_OBJECT, .writers = SETTING_BY_SKILL,
      .help = "configuration files of the harness, by the names in its profile" },
    { "config", SHAPE_ANY_OBJECT, .help = "anything else the program needs; in the file that CINCH_CONFIG_FILE names" },
    { 0 },
};
/* clang-format on */

/* SPDX-License-Identifier: MIT
 *
 * The keys of a task file and of every other layer, as tables: what may be said and of which kind
 * it is. schema/task.schema.json says the same for editors (tests/integration/test_task.py holds
 * one against the other), docs/task.md for people.
 */
#include "config/settings_priv.h"
#include "data/shape.h"

/* clang-format off */
static const struct shape sampling_shape[] = {
    { "temperature", SHAPE_NUMBER }, { "max_tokens", SHAPE_INT }, { "top_p", SHAPE_NUMBER },
    { "presence_penalty", SHAPE_NUMBER }, { "frequency_penalty", SHAPE_NUMBER },
    { "stop", SHAPE_TEXTS }, { "seed", SHAPE_INT }, { 0 },
};
static const struct shape agent_shape[] = {
    { "adapter", SHAPE_STRING }, { "model", SHAPE_STRING }, { "command", SHAPE_STRINGS },
    { "args", SHAPE_STRINGS }, { "sampling", SHAPE_OBJECT, .inner = sampling_shape },
    { "effort", SHAPE_WORD, .words = "none|minimal|low|medium|high|xhigh|max" },
    { "auth", SHAPE_WORD, .words = "gateway|host|env" },
    { "project_config", SHAPE_WORD, .words = "instructions|trusted" }, { 0 },
};
static const struct shape overrides_shape[] = {
    { "dir", SHAPE_STRING }, { "tag", SHAPE_STRING }, { 0 },
};
/* The members of a section are checked where it is read: prompt/section.h. */
static const struct shape prompt_shape[] = {
    { "text", SHAPE_STRING }, { "file", SHAPE_STRING }, { "name", SHAPE_STRING },
    { "ns", SHAPE_STRING }, { "key", SHAPE_STRING }, { "sections", SHAPE_ANY },
    { "template", SHAPE_BOOL }, { "overrides", SHAPE_OBJECT, .inner = overrides_shape },
    { "delivery", SHAPE_WORD, .words = "file|argument|stdin" }, { 0 },
};
static const struct shape example_shape[] = {
    { "description", SHAPE_STRING }, { "input", SHAPE_ANY }, { "output", SHAPE_ANY }, { 0 },
};
static const struct shape mcp_shape[] = {
    { "command", SHAPE_STRINGS }, { "url", SHAPE_STRING }, { "env", SHAPE_MAP },
    { "headers", SHAPE_MAP }, { "tools", SHAPE_STRINGS }, { "rename", SHAPE_MAP },
    { "prefix", SHAPE_STRING }, { "pin", SHAPE_MAP }, { "sandbox", SHAPE_BOOL },
    { "start_timeout", SHAPE_DURATION }, { 0 },
};
static const struct shape tool_shape[] = {
    { "name", SHAPE_STRING }, { "description", SHAPE_STRING }, { "input_schema", SHAPE_ANY },
    { "output_schema", SHAPE_ANY }, { "examples", SHAPE_LIST, .inner = example_shape },
    { "accepts_overrides", SHAPE_BOOL }, { "command", SHAPE_STRINGS },
    { "mcp", SHAPE_OBJECT, .inner = mcp_shape }, { "timeout", SHAPE_DURATION },
    { "max_output", SHAPE_SIZE }, { "env", SHAPE_MAP }, { "sandbox", SHAPE_BOOL }, { 0 },
};
static const struct shape rule_shape[] = {
    { "pointer", SHAPE_STRING }, { "pattern", SHAPE_STRING }, { "schema", SHAPE_ANY }, { 0 },
};
static const struct shape policy_shape[] = {
    { "name", SHAPE_STRING },
    { "type", SHAPE_WORD,
      .words = "sequential_dependency|read_before_write|allow|deny|arguments|rate|program" },
    { "tools", SHAPE_STRINGS }, { "section", SHAPE_STRING }, { "depends", SHAPE_ANY_OBJECT },
    { "read_tools", SHAPE_STRINGS }, { "write_tools", SHAPE_STRINGS },
    { "rules", SHAPE_LIST, .inner = rule_shape }, { "calls", SHAPE_INT },
    { "per", SHAPE_DURATION }, { "command", SHAPE_STRINGS }, { "timeout", SHAPE_DURATION },
    { "sandbox", SHAPE_BOOL }, { "reason", SHAPE_STRING }, { 0 },
};
static const struct shape feedback_shape[] = {
    { "name", SHAPE_STRING }, { "type", SHAPE_WORD, .words = "deadline|budget|static|program" },
    { "every_n_calls", SHAPE_INT }, { "every_n_seconds", SHAPE_NUMBER },
    { "on_file_created", SHAPE_STRING }, { "text", SHAPE_STRING },
    { "threshold", SHAPE_DURATION }, { "command", SHAPE_STRINGS },
    { "timeout", SHAPE_DURATION }, { "sandbox", SHAPE_BOOL }, { 0 },
};
static const struct shape predicate_shape[] = {
    { "slice", SHAPE_STRING }, { "min", SHAPE_INT }, { "max", SHAPE_INT },
    { "where", SHAPE_ANY_OBJECT }, { "every", SHAPE_BOOL }, { 0 },
};
#define CHECKER \
    { "files", SHAPE_STRINGS }, { "command", SHAPE_STRINGS }, { "timeout", SHAPE_DURATION }, \
    { "sandbox", SHAPE_BOOL }, { "schema", SHAPE_SOURCE }, \
    { "session", SHAPE_OBJECT, .inner = predicate_shape }
static const struct shape checker_shape[] = { CHECKER, { 0 } };
static const struct shape group_shape[] = {
    CHECKER, { "all", SHAPE_LIST, .inner = checker_shape },
    { "any", SHAPE_LIST, .inner = checker_shape }, { 0 },
};
static const struct shape completion_shape[] = {
    CHECKER, { "all", SHAPE_LIST, .inner = group_shape },
    { "any", SHAPE_LIST, .inner = group_shape }, { "max_rounds", SHAPE_INT },
    { "model", SHAPE_STRING }, { 0 },
};
static const struct shape slice_shape[] = {
    { "name", SHAPE_STRING }, { "policy", SHAPE_WORD, .words = "state|log" }, { 0 },
};
static const struct shape reducer_shape[] = {
    { "event", SHAPE_STRING }, { "slice", SHAPE_STRING },
    { "reducer", SHAPE_WORD, .words = "append_all|replace_latest|upsert_by|replace_latest_by" },
    { "key", SHAPE_STRING }, { 0 },
};
static const struct shape session_shape[] = {
    { "slices", SHAPE_LIST, .inner = slice_shape },
    { "reducers", SHAPE_LIST, .inner = reducer_shape }, { "restore", SHAPE_STRING },
    { "resume", SHAPE_STRING }, { 0 },
};
static const struct shape artifact_shape[] = {
    { "path", SHAPE_STRING }, { "required", SHAPE_BOOL }, { 0 },
};
static const struct shape output_shape[] = {
    { "dir", SHAPE_STRING }, { "schema", SHAPE_SOURCE },
    { "artifacts", SHAPE_LIST, .inner = artifact_shape }, { 0 },
};
static const struct shape mount_shape[] = {
    { "source", SHAPE_STRING }, { "target", SHAPE_STRING }, { "write", SHAPE_BOOL },
    { "include", SHAPE_STRINGS }, { "exclude", SHAPE_STRINGS }, { "max_bytes", SHAPE_SIZE },
    { "follow_symlinks", SHAPE_BOOL }, { 0 },
};
static const struct shape workspace_shape[] = {
    { "path", SHAPE_STRING },
    { "mode", SHAPE_WORD, .words = "overlay|copy|clone|in-place|snapshot" },
    { "ref", SHAPE_STRING }, { "context", SHAPE_STRINGS },
    { "mounts", SHAPE_LIST, .inner = mount_shape }, { "roots", SHAPE_STRINGS },
    { "keep", SHAPE_WORD, .words = "keep|keep-on-failure|remove" },
    { "max_file", SHAPE_SIZE }, { "savepoint", SHAPE_WORD, .words = "turn|none" }, { 0 },
};
static const struct shape sandbox_shape[] = {
    { "mode", SHAPE_WORD, .words = "read-only|workspace-write|off" },
    { "read", SHAPE_STRINGS }, { "write", SHAPE_STRINGS }, { "deny", SHAPE_STRINGS },
    { "net", SHAPE_CHOICE, .words = "none|open" }, { "memory", SHAPE_SIZE },
    { "disk", SHAPE_SIZE }, { "pids", SHAPE_INT }, { "cpus", SHAPE_NUMBER }, { "allow_degraded", SHAPE_BOOL },
    { "engine", SHAPE_STRING }, { 0 },
};
#define TIMES \
    { "timeout", SHAPE_DURATION }, { "first_output", SHAPE_DURATION }, \
    { "idle", SHAPE_DURATION }, { "grace", SHAPE_DURATION }, { "drain", SHAPE_DURATION }
static const struct shape limits_shape[] = {
    TIMES, { "tokens_input", SHAPE_INT }, { "tokens_output", SHAPE_INT },
    { "tokens_total", SHAPE_INT }, { "usd", SHAPE_NUMBER }, { "calls", SHAPE_INT },
    { "prompt_estimate", SHAPE_WORD, .words = "text|bytes" }, { 0 },
};
static const struct shape throttle_shape[] = {
    { "max_attempts", SHAPE_INT }, { "base_ms", SHAPE_INT }, { "cap_ms", SHAPE_INT },
    { "total_ms", SHAPE_INT }, { "concurrency", SHAPE_INT }, { "per_minute", SHAPE_INT }, { 0 },
};
static const struct shape route_shape[] = {
    { "model", SHAPE_STRING }, { "upstream", SHAPE_STRING },
    { "format", SHAPE_WORD, .words = "anthropic|responses|chat|gemini" },
    { "name", SHAPE_STRING }, { "key", SHAPE_STRING }, { 0 },
};
static const struct shape gateway_shape[] = {
    { "upstream", SHAPE_STRING }, { "routes", SHAPE_LIST, .inner = route_shape },
    { "script", SHAPE_STRING }, { "cassette", SHAPE_STRING }, { "record", SHAPE_BOOL },
    { "replay_speed", SHAPE_NUMBER }, { "prices", SHAPE_STRING }, { 0 },
};
static const struct shape env_shape[] = {
    { "set", SHAPE_MAP }, { "pass", SHAPE_STRINGS }, { "inherit", SHAPE_BOOL }, { 0 },
};
static const struct shape secrets_shape[] = {
    { "names", SHAPE_STRINGS }, { "files", SHAPE_STRINGS }, { 0 },
};
static const struct shape skill_shape[] = {
    { "path", SHAPE_STRING }, { "name", SHAPE_STRING }, { 0 },
};
#define EVAL \
    { "test_id", SHAPE_STRING }, { "tier", SHAPE_STRING }, { "tier_name", SHAPE_STRING }, \
    { "tier_prompt", SHAPE_STRING }, { "task_description", SHAPE_STRING }, \
    { "run_number", SHAPE_INT }, { "delegation_enabled", SHAPE_BOOL }
static const struct shape eval_shape[] = {
    EVAL, { "tools_enabled", SHAPE_BOOL }, { "strict", SHAPE_BOOL }, { 0 },
};
const struct shape settings_task_shape[] = {
    { "version", SHAPE_INT }, { "name", SHAPE_STRING }, { "description", SHAPE_STRING },
    { "metadata", SHAPE_ANY_OBJECT },
    { "agent", SHAPE_OBJECT, .inner = agent_shape },
    { "prompt", SHAPE_OBJECT, .inner = prompt_shape },
    { "params", SHAPE_ANY_OBJECT },
    { "skills", SHAPE_LIST, .inner = skill_shape },
    { "inputs", SHAPE_ANY_OBJECT },
    { "tools", SHAPE_LIST, .inner = tool_shape },
    { "policies", SHAPE_LIST, .inner = policy_shape },
    { "feedback", SHAPE_LIST, .inner = feedback_shape },
    { "completion", SHAPE_OBJECT, .inner = completion_shape },
    { "session", SHAPE_OBJECT, .inner = session_shape },
    { "output", SHAPE_OBJECT, .inner = output_shape },
    { "workspace", SHAPE_OBJECT, .inner = workspace_shape },
    { "sandbox", SHAPE_OBJECT, .inner = sandbox_shape },
    { "limits", SHAPE_OBJECT, .inner = limits_shape },
    { "throttle", SHAPE_OBJECT, .inner = throttle_shape },
    { "gateway", SHAPE_OBJECT, .inner = gateway_shape },
    { "env", SHAPE_OBJECT, .inner = env_shape },
    { "secrets", SHAPE_OBJECT, .inner = secrets_shape },
    { "home", SHAPE_WORD, .words = "private|shared" },
    { "exit_profile", SHAPE_WORD, .words = "native|holon|scylla" },
    { "eval", SHAPE_OBJECT, .inner = eval_shape },
    { "files", SHAPE_ANY_OBJECT },
    { "config", SHAPE_ANY_OBJECT },
    { 0 },
};

/* A project file belongs to a repository whose author the user may not know. It may adjust a run, but
 * not choose which program runs, which data reaches it, or what it may spend. It may not make an
 * evaluation strict or switch tools off either: settings_project.c explains refusals. */
static const struct shape project_agent_shape[] = {
    { "adapter", SHAPE_STRING }, { "model", SHAPE_STRING }, { 0 },
};
static const struct shape project_limits_shape[] = { TIMES, { 0 } };
static const struct shape project_eval_shape[] = {
    EVAL, { 0 },
};
const struct shape settings_project_shape[] = {
    { "version", SHAPE_INT }, { "name", SHAPE_STRING }, { "description", SHAPE_STRING },
    { "agent", SHAPE_OBJECT, .inner = project_agent_shape },
    { "limits", SHAPE_OBJECT, .inner = project_limits_shape },
    { "eval", SHAPE_OBJECT, .inner = project_eval_shape },
    { 0 },
};
/* clang-format on */

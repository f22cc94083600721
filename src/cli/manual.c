/* SPDX-License-Identifier: MIT
 *
 * The tables of the manual. Exit statuses of errors come from base/err.h as well; the test `manual`
 * fails when one of those is not explained here.
 */
#include "cli/manual.h"

#include <stddef.h>

const char *const manual_about[] = {
    "cinch runs any coding agent under one contract: every agent takes the same task and leaves "
    "the same record.",
    "Each run has one directory. It contains the task, the raw output of the agent, the cost, and "
    "how and why the run ended; nothing about a run is stored anywhere else.",
    NULL,
};

const struct manual_status manual_statuses[] = {
    { 0, "success" },
    { 1, "the agent failed, or was denied by a policy" },
    { 2, "the agent needs a human" },
    { 64, "wrong command line" },
    { 65, "invalid task, profile, configuration or schema" },
    { 66, "an input file or directory is missing" },
    { 69, "adapter or engine not available, or not supported on this machine" },
    { 70, "internal error, or a system call failed" },
    { 73, "the output directory cannot be used" },
    { 75, "rate limited, or the provider failed temporarily" },
    { 77, "a secret or credential is missing or refused" },
    { 78, "the budget is exhausted" },
    { 124, "a deadline passed" },
    { 126, "the agent's program cannot be executed" },
    { 127, "the agent's program was not found" },
    { 130, "interrupted (SIGINT)" },
    { 143, "terminated (SIGTERM)" },
    { -1, NULL },
};

const struct manual_entry manual_environment[] = {
    { "NO_COLOR", "disables colour if set and not empty; --color takes precedence" },
    { "TERM", "disables colour and the live progress line if unset or dumb" },
    { "COLUMNS", "width of the terminal, instead of the detected one" },
    { "CINCH_LOG", "enables logging to standard error at this level: debug, info, warn or error" },
    { "CINCH_LOG_FORMAT", "json: log one JSON object per line instead of text" },
    { "CINCH_SITE_DIR", "directory of the site's configuration, instead of /etc/cinch" },
    { "CINCH_INIT", "path of the helper program cinch-init, instead of the installed one" },
    { "XDG_CONFIG_HOME", "base directory of your configuration, instead of ~/.config" },
    { "XDG_STATE_HOME", "base directory for runs without --output, instead of ~/.local/state" },
    { NULL, NULL },
};

const struct manual_entry manual_settings[] = {
    { "/etc/cinch/config.yaml", "site settings" },
    { "/etc/cinch/enforced.yaml", "site settings that cannot be overridden" },
    { "~/.config/cinch/config.yaml", "your settings" },
    { "~/.config/cinch/adapters/*.yaml", "your adapters" },
    { ".cinch/config.yaml", "project settings, in the workspace and the directories above it" },
    { "~/.local/state/cinch/runs/", "records of runs without --output" },
    { NULL, NULL },
};

const struct manual_entry manual_files[] = {
    { "manifest.json", "status, outcome, reason, duration, artifacts, error" },
    { "metrics.json", "tokens, cost, times, resource use" },
    { "result.json", "final text, structured output, reason, session id" },
    { "stdout.log, stderr.log", "raw output of the agent, unchanged" },
    { "agent.log", "the conversation in readable form" },
    { "transcript.jsonl", "messages, tool calls and results in one format, one entry per line" },
    { "events.jsonl", "phase changes, prompts, tool calls, denials" },
    { "task.json", "the task with all settings merged, without secrets" },
    { "state.json", "phase and process during the run, final state afterwards" },
    { "diff.patch, summary.md, artifacts/", "what the agent produced" },
    { "logs/prompt.txt", "the prompt as it was sent" },
    { "evidence/", "effective configuration, environment, reports" },
    { NULL, NULL },
};

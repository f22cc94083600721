/* SPDX-License-Identifier: MIT
 *
 * The tables of the manual. Exit statuses of errors come from base/err.h as well; the test `manual`
 * fails when one of those is not explained here.
 */
#include "cli/manual.h"

#include <stddef.h>

const char *const manual_about[] = {
    "cinch runs any coding agent under one contract: the same task goes in, whatever the agent, "
    "and "
    "the same record comes out.",
    "One run is one directory. It holds the raw output of the agent, what was asked of it, what it "
    "cost, how it ended and why; nothing about a run is kept anywhere else.",
    NULL,
};

const struct manual_status manual_statuses[] = {
    { 0, "success" },
    { 1, "the agent failed, or was denied by a policy" },
    { 2, "the agent needs a human" },
    { 64, "wrong command line" },
    { 65, "invalid task, profile, configuration or schema" },
    { 66, "an input file or directory is missing" },
    { 69, "adapter or engine unavailable, or not supported here" },
    { 70, "internal error, or a system call failed" },
    { 73, "the output directory cannot be used" },
    { 75, "rate limited, or the provider failed for the moment" },
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
    { "NO_COLOR", "no colour when set and not empty; --color wins" },
    { "TERM", "no colour and no live progress line when unset or dumb" },
    { "COLUMNS", "width of the terminal, if it cannot be asked or should differ" },
    { "CINCH_LOG", "log to standard error from this level on: debug, info, warn or error" },
    { "CINCH_LOG_FORMAT", "json: one object per line instead of text" },
    { "CINCH_SITE_DIR", "where the site's configuration is, instead of /etc/cinch" },
    { "CINCH_INIT", "the helper program, if it is not where it was installed" },
    { "XDG_CONFIG_HOME", "where your configuration is, instead of ~/.config" },
    { "XDG_STATE_HOME", "where runs without --output go, instead of ~/.local/state" },
    { NULL, NULL },
};

const struct manual_entry manual_settings[] = {
    { "/etc/cinch/config.yaml", "settings of the site" },
    { "/etc/cinch/enforced.yaml", "settings of the site that nobody can change" },
    { "~/.config/cinch/config.yaml", "your settings" },
    { "~/.config/cinch/adapters/*.yaml", "your adapters" },
    { ".cinch/config.yaml", "settings of a project, from the workspace upwards" },
    { "~/.local/state/cinch/runs/", "records of runs without --output" },
    { NULL, NULL },
};

const struct manual_entry manual_files[] = {
    { "manifest.json", "status, outcome, reason, duration, artifacts, error" },
    { "metrics.json", "tokens, cost, times, resource use" },
    { "result.json", "final text, structured output, reason, session id" },
    { "stdout.log, stderr.log", "raw bytes of the agent, as they came" },
    { "agent.log", "the interaction, readable" },
    { "transcript.jsonl", "canonical entries, one per line" },
    { "events.jsonl", "phase changes, prompts, tool calls, denials" },
    { "task.json", "the task as it was understood, without secrets" },
    { "state.json", "phase and process while running, the terminal state after" },
    { "diff.patch, summary.md, artifacts/", "what the agent produced" },
    { "logs/prompt.txt", "the prompt as it was sent" },
    { "evidence/", "effective configuration, environment, reports" },
    { NULL, NULL },
};

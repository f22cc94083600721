/* SPDX-License-Identifier: MIT
 *
 * The kinds of events that have a fixed context. One list gives the enum, the names, the loggers,
 * the levels and the fields; schema/event.schema.json says the same for others (a test compares the
 * two), and recovery uses it to tell a whole line from a damaged one.
 *
 * Fields are written as "key:types": s string, i integer, n number (integer or real), b boolean,
 * o object, a array, z null, * anything; ? at the end: absent in records of older versions. Every
 * field of a kind is always written.
 */
#pragma once

#include <stdbool.h>

enum event_level {
    EVENT_DEBUG,   /* diagnostics */
    EVENT_INFO,    /* life cycle */
    EVENT_WARNING, /* recoverable */
    EVENT_ERROR,   /* the run fails because of it */
};

/* clang-format off */
/* X(kind, name, level, logger, fields) */
#define EVENT_LIST(X)                                                                                  \
    X(EVENT_RUN_STARTED, "run.started", EVENT_INFO, "cinch.run",                                       \
      "adapter:s cinch_version:s pid:i output_dir:s")                                                  \
    X(EVENT_RUN_PHASE, "run.phase", EVENT_INFO, "cinch.run", "from:sz to:s duration_ms:iz")            \
    X(EVENT_RUN_WARNING, "run.warning", EVENT_WARNING, "cinch.run", "text:s")                          \
    X(EVENT_RUN_SIGNAL, "run.signal", EVENT_WARNING, "cinch.run", "signal:s count:i")                  \
    X(EVENT_RUN_FINISHED, "run.finished", EVENT_INFO, "cinch.run",                                     \
      "reason:s outcome:s exit_code:i duration_ms:i error:sz")                                         \
    X(EVENT_RUN_RECOVERED, "run.recovered", EVENT_WARNING, "cinch.record",                             \
      "reason:s phase:sz pid:iz torn_bytes:i dropped_lines:i")                                         \
    X(EVENT_PROCESS_SPAWNED, "process.spawned", EVENT_INFO, "cinch.proc",                              \
      "pid:i program:s argv:a cwd:s")                                                                  \
    X(EVENT_PROCESS_EXITED, "process.exited", EVENT_INFO, "cinch.proc",                                \
      "pid:i code:iz signal:iz duration_ms:i")                                                         \
    X(EVENT_PROCESS_DEADLINE, "process.deadline", EVENT_WARNING, "cinch.proc", "kind:s limit_ms:i")    \
    X(EVENT_PROCESS_SIGNAL, "process.signal", EVENT_INFO, "cinch.proc", "signal:s target:s why:s")     \
    X(EVENT_PROCESS_LEAKED, "process.leaked", EVENT_WARNING, "cinch.proc", "count:i")                  \
    X(EVENT_PROCESS_OOM, "process.oom", EVENT_WARNING, "cinch.proc", "count:i limit_bytes:i")          \
    X(EVENT_RECORD_LOSS, "record.loss", EVENT_ERROR, "cinch.record", "file:s error:s")                 \
    X(EVENT_RECORD_TOO_LONG, "record.too_long", EVENT_WARNING, "cinch.record", "event:s")              \
    X(EVENT_PROMPT_RENDER_START, "prompt.render.start", EVENT_DEBUG, "cinch.prompt",                   \
      "prompt_name:s adapter:s")                                                                       \
    X(EVENT_PROMPT_RENDER_COMPLETE, "prompt.render.complete", EVENT_DEBUG, "cinch.prompt",             \
      "prompt_name:s adapter:s section_count:i tool_count:i text_length:i")                            \
    X(EVENT_PROMPT_CALL_START, "prompt.call.start", EVENT_INFO, "cinch.prompt",                        \
      "prompt_name:s adapter:s model:sz timeout_ms:iz")                                                \
    X(EVENT_PROMPT_CALL_COMPLETE, "prompt.call.complete", EVENT_INFO, "cinch.prompt",                  \
      "prompt_name:s adapter:s duration_ms:i input_tokens:iz output_tokens:iz stop_reason:sz")         \
    X(EVENT_PROMPT_ERROR, "prompt.error", EVENT_ERROR, "cinch.prompt",                                 \
      "prompt_name:s adapter:s phase:s reason:s error:s")                                              \
    X(EVENT_PROMPT_THROTTLED, "prompt.throttled", EVENT_WARNING, "cinch.prompt",                       \
      "prompt_name:s adapter:s kind:s attempt:i delay_ms:iz retry_after_ms:iz retry_safe:b")           \
    X(EVENT_GATEWAY_OPENED, "gateway.opened", EVENT_INFO, "cinch.gateway", "address:s upstreams:a")    \
    X(EVENT_GATEWAY_REFUSED, "gateway.refused", EVENT_WARNING, "cinch.gateway",                        \
      "exchange:iz kind:s why:s")                                                                      \
    X(EVENT_MODEL_CALL, "model.call", EVENT_INFO, "cinch.gateway",                                     \
      "exchange:i format:s model:sz upstream:s status:iz attempts:i complete:b translated:b side:sz "  \
      "input_tokens:iz output_tokens:iz cache_read_tokens:iz cache_write_tokens:iz "                   \
      "reasoning_tokens:iz estimated:b cost_usd:nz first_byte_ms:iz duration_ms:i dropped:a? "         \
      "edits:a? unsent:a? fallback_from:a?")                                                           \
    X(EVENT_SAVEPOINT_TAKEN, "SavepointTaken", EVENT_INFO, "cinch.run",                                \
      "turn:i entries:i bytes:i duration_ms:n")                                                        \
    X(EVENT_SAVEPOINT_RESTORED, "SavepointRestored", EVENT_WARNING, "cinch.run",                       \
      "turn:i why:s patch:s entries:i removed:i duration_ms:n")                                        \
    X(EVENT_PROMPT_RENDERED, "PromptRendered", EVENT_INFO, "cinch.prompt",                             \
      "prompt_ns:s prompt_key:s prompt_name:sz adapter:s session_id:sz render_inputs:a "               \
      "rendered_prompt:s created_at:s descriptor:z run_context:o event_id:s")                          \
    X(EVENT_RENDERED_TOOLS, "RenderedTools", EVENT_INFO, "cinch.prompt",                               \
      "prompt_ns:s prompt_key:s tools:a render_event_id:s session_id:sz created_at:s event_id:s")      \
    X(EVENT_TOOL_INVOKED, "ToolInvoked", EVENT_INFO, "cinch.tools",                                    \
      "prompt_name:s adapter:s name:s params:* result:* success:b failure:sz policy:sz "               \
      "duration_ms:iz leaked:i session_id:sz created_at:s usage:z rendered_output:s call_id:sz "       \
      "run_context:o event_id:s")                                                                      \
    X(EVENT_PROMPT_EXECUTED, "PromptExecuted", EVENT_INFO, "cinch.prompt",                             \
      "prompt_name:s adapter:s result:o session_id:sz created_at:s usage:oz run_context:o event_id:s")
/* clang-format on */

enum event_kind {
#define X(kind, name, level, logger, fields) kind,
    EVENT_LIST(X)
#undef X
        EVENT_KIND_MAX
};

struct event_kind_info {
    const char *name;
    enum event_level level;
    const char *logger;
    const char *fields;
};

struct json;

const struct event_kind_info *event_kind_info(enum event_kind kind);
const char *event_level_word(enum event_level level); /* "DEBUG", "INFO", "WARNING", "ERROR" */

/* Is it a whole and well-formed line of events.jsonl? An unknown name may have any context object.
 */
bool event_is_valid(const struct json *line);

/* SPDX-License-Identifier: MIT
 *
 * From the cause of a run to an error of WINK's taxonomy, with its rules for payloads.
 */
#include "run/run_error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/redact.h"
#include "run/run_priv.h"

enum {
    STDERR_KEPT = 8192,    /* bytes, from the end */
    RAW_CHARACTERS = 2000, /* from the beginning */
};

/* The agent did its part, but what it said does not fit the contract. */
static bool is_bad_output(const struct run *run)
{
    const struct engine_exit *x = &run->exec.exit;
    bool clean = x->end != ENGINE_SIGNALLED && (x->end != ENGINE_EXITED || x->value == 0);
    return run->cause.reason == REASON_FAILURE && run->outcome.answer.error != NULL &&
           run->outcome.answer.value == NULL && clean && !run->outcome.report.failed;
}

static const char *type_of(const struct run *run)
{
    if (is_bad_output(run)) {
        return "OutputParseError";
    }
    if (run->cause.reason == REASON_BAD_TASK && run->plan->unrendered) {
        return "PromptRenderError";
    }
    static const struct {
        enum reason reason;
        const char *type;
    } types[] = {
        { REASON_TIMEOUT, "DeadlineExceededError" },
        { REASON_BUDGET, "BudgetExceededError" },
        { REASON_RATE_LIMITED, "ThrottleError" },
        { REASON_PROVIDER_UNAVAILABLE, "ThrottleError" },
        { REASON_BAD_TASK, "PromptValidationError" },
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].reason == run->cause.reason) {
            return types[i].type;
        }
    }
    return "PromptEvaluationError";
}

const char *run_error_phase(const struct run *run)
{
    if (run->cause.phase != NULL) {
        return run->cause.phase;
    }
    enum reason r = run->cause.reason;
    bool answered =
        r == REASON_FAILURE || r == REASON_NEEDS_HUMAN || r == REASON_INTERNAL || r == REASON_DISK;
    return r == REASON_BUDGET ? "budget" : answered && run->exec.launched ? "response" : "request";
}

/* --- what the provider said --- */

static struct str first_characters(struct str s, size_t count)
{
    for (size_t i = 0; i < s.len; i++) {
        bool starts = ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
        if (starts && count-- == 0) {
            return str_slice(s, 0, i);
        }
    }
    return s;
}

/* The log is clean of secrets, but where it is cut half of one may stand. */
static struct str stderr_end(const struct run *run)
{
    CLEANUP(fd)
    int fd = openat(run->record.dir.dir_fd, "stderr.log",
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return STR_EMPTY;
    }
    bool cut = st.st_size > STDERR_KEPT;
    char *text = arena_alloc(run->arena, STDERR_KEPT);
    ssize_t n = pread(fd, text, STDERR_KEPT, cut ? st.st_size - STDERR_KEPT : 0);
    struct str s = n <= 0 ? STR_EMPTY : str_n(text, (size_t)n);
    while (cut && s.len > 0 && ((unsigned char)s.ptr[0] & 0xC0) == 0x80) {
        s = str_slice(s, 1, s.len);
    }
    return cut ? redact_cut(run->redactor, run->arena, s, REDACT_CUT_FRONT) : s;
}

static struct json *number_or_null(struct arena *a, bool known, int value)
{
    return known ? json_integer(a, value) : json_null(a);
}

static struct json *payload_of(struct run *run)
{
    struct arena *a = run->arena;
    const struct engine_exit *x = &run->exec.exit;
    struct json *o = json_object(a);
    if (is_bad_output(run)) {
        struct str clean = redact_str(run->redactor, a, run->outcome.report.text);
        json_setc(a, o, "raw_text", json_string(a, first_characters(clean, RAW_CHARACTERS)));
        return o;
    }
    if (!run->exec.launched || run->plan->driver == NULL ||
        run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        return json_null(a); /* there was no program that could have said anything */
    }
    struct str said = stderr_end(run);
    json_setc(a, o, "exit_code", number_or_null(a, x->end == ENGINE_EXITED, x->value));
    json_setc(a, o, "signal", number_or_null(a, x->end == ENGINE_SIGNALLED, x->value));
    json_setc(a, o, "stderr", json_string(a, said));
    json_setc(a, o, "stderr_captured", json_boolean(a, said.len > 0));
    return o;
}

/* --- what the kind of error adds --- */

static struct json *milliseconds(struct arena *a, nsec t)
{
    return t < 0 ? json_null(a) : json_integer(a, t / NSEC_PER_MS);
}

/* WINK has no word for a failing server; events and the gateway keep `server_error`. */
static const char *wink_throttle_kind(const char *kind)
{
    static const char *const known[] = { "rate_limit", "quota_exhausted", "timeout" };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(kind, known[i]) == 0) {
            return kind;
        }
    }
    return "unknown";
}

static struct json *throttle_details(struct run *run)
{
    struct arena *a = run->arena;
    const struct event_throttle *t = gateway_throttled(run);
    if (t == NULL) {
        return json_null(a);
    }
    struct json *o = json_object(a);
    json_setc(a, o, "kind", json_cstr(a, wink_throttle_kind(t->kind)));
    json_setc(a, o, "retry_after_ms", milliseconds(a, t->retry_after));
    json_setc(a, o, "attempts", json_integer(a, t->attempt));
    json_setc(a, o, "retry_safe", json_boolean(a, t->retry_safe));
    return o;
}

static struct json *budget_details(struct run *run)
{
    struct arena *a = run->arena;
    struct agent_usage used = run_usage(run);
    struct json *o = json_object(a);
    struct json *consumed = json_object(a);
    json_setc(a, consumed, "input_tokens", json_integer(a, used.input));
    json_setc(a, consumed, "output_tokens", json_integer(a, used.output));
    json_setc(a, consumed, "cached_tokens", json_integer(a, used.cache_read));
    json_setc(a, o, "exceeded_dimension", json_cstr(a, gateway_exceeded(run)));
    json_setc(a, o, "consumed", used.known ? consumed : json_null(a));
    return o;
}

static struct json *details_of(struct run *run)
{
    struct arena *a = run->arena;
    if (run->cause.reason == REASON_RATE_LIMITED ||
        run->cause.reason == REASON_PROVIDER_UNAVAILABLE) {
        return throttle_details(run);
    }
    if (run->cause.reason == REASON_BUDGET) {
        return budget_details(run);
    }
    if (run->cause.reason != REASON_TIMEOUT) {
        return json_null(a);
    }
    struct json *o = json_object(a);
    json_setc(a, o, "kind", json_cstr(a, timeout_kind_word(run->cause.timeout)));
    return o;
}

struct json *run_error_json(struct run *run)
{
    struct arena *a = run->arena;
    if (run->cause.reason == REASON_NONE) {
        return NULL;
    }
    struct event_prompt p = run_event_prompt(run);
    const char *name = p.name != NULL ? p.name : arena_printf(a, "%s:%s", p.ns, p.key);
    struct json *o = json_object(a);
    json_setc(a, o, "type", json_cstr(a, type_of(run)));
    json_setc(a, o, "message", json_cstr(a, run->cause.message));
    json_setc(a, o, "prompt_name", json_cstr(a, name));
    json_setc(a, o, "phase", json_cstr(a, run_error_phase(run)));
    json_setc(a, o, "provider_payload", payload_of(run));
    json_setc(a, o, "details", details_of(run));
    return o;
}

/* SPDX-License-Identifier: MIT
 *
 * A tool call as a helper, and what its output means.
 */
#include "tools/tool_program.h"

#include <string.h>

#include "base/buf.h"
#include "proc/helper_program.h"
#include "proc/helper_spec.h"
#include "tools/tool_kind.h"

struct program {
    const char *const *argv;
    const struct json *env; /* or NULL */
    bool outside;
    const struct helper_host *host; /* NULL: that of the call */
};

/* One call, in its arena. */
struct call {
    struct tool_run *run;
    struct helper *helper;
};

/* --- what it said --- */

static const struct {
    const char *name;
    enum json_type type; /* JSON_NULL: any */
    bool telling;        /* makes an object an answer */
} members[] = {
    { "message", JSON_STRING, true },
    { "value", JSON_NULL, true },
    { "success", JSON_BOOL, true },
    { "state", JSON_ARRAY, false },
    { "exclude_value_from_context", JSON_BOOL, false },
};

static int member_of(struct str key)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (str_eqc(key, members[i].name)) {
            return (int)i;
        }
    }
    return -1;
}

static bool is_answer(const struct json *v)
{
    bool telling = false;
    for (size_t i = 0; i < v->object.len; i++) {
        int k = member_of(v->object.members[i].key);
        if (k < 0) {
            return false;
        }
        telling = telling || members[k].telling;
    }
    return telling;
}

static void bad_output(struct arena *a, const char *why, struct tool_result *ret)
{
    *ret = (struct tool_result) {
        .failure = TOOL_BAD_OUTPUT,
        .message = str_of(arena_printf(a, "The tool gave no usable answer: %s.", why)),
        .leaked = ret->leaked,
    };
}

static void take_answer(struct arena *a, const struct json *v, struct tool_result *ret)
{
    for (size_t i = 0; i < v->object.len; i++) {
        const struct json_member *m = &v->object.members[i];
        enum json_type type = members[member_of(m->key)].type;
        if (type != JSON_NULL && !json_is(m->value, type) && !json_is(m->value, JSON_NULL)) {
            bad_output(a,
                       arena_printf(a, "'%s' must be of type %s, not %s", m->key.ptr,
                                    json_type_name(type), json_type_name(m->value->type)),
                       ret);
            return;
        }
    }
    const struct json *value = json_get(v, "value");
    const struct json *state = json_get(v, "state");
    ret->failure = json_bool(json_get(v, "success"), true) ? TOOL_OK : TOOL_FAILED;
    ret->message = json_str(json_get(v, "message"), STR_EMPTY);
    ret->value = value == NULL || value->type == JSON_NULL ? NULL : value;
    ret->state = json_is(state, JSON_ARRAY) ? state : NULL;
    ret->exclude_value = json_bool(json_get(v, "exclude_value_from_context"), false);
}

bool tool_program_answer(const struct json *v, struct arena *a, struct tool_result *ret)
{
    *ret = (struct tool_result) { .failure = TOOL_OK };
    if (!is_answer(v)) {
        return false;
    }
    take_answer(a, v, ret);
    return true;
}

static struct str without_newlines(struct str s)
{
    while (s.len > 0 && (s.ptr[s.len - 1] == '\n' || s.ptr[s.len - 1] == '\r')) {
        s.len--;
    }
    return s;
}

/* Exit code 0 so far. */
static void read_output(const struct tool *t, struct arena *a, struct str out,
                        struct tool_result *ret)
{
    struct str text = str_trim(out);
    struct json_limits limits = { .max_bytes = text.len + 1,
                                  .max_depth = TOOL_VALUE_DEPTH,
                                  .no_positions = true };
    bool object = text.len > 0 && text.ptr[0] == '{';
    struct json *v = NULL;
    struct err why;
    if ((object || t->output != NULL) && json_parse(a, text, &limits, &v, &why) < 0) {
        if (object) {
            bad_output(a, why.msg, ret);
            return;
        }
        v = NULL;
    }
    if (object && is_answer(v)) {
        take_answer(a, v, ret);
    } else if (t->output != NULL && v != NULL) {
        ret->value = v;
    } else {
        ret->message = without_newlines(out);
    }
}

/* Why a program gave up stands in its output, or at the end of its standard error. */
static void read_failure(const struct tool *t, struct arena *a, const struct helper_result *r,
                         struct tool_result *ret)
{
    read_output(t, a, r->out, ret);
    bool told =
        ret->failure != TOOL_BAD_OUTPUT && (str_trim(ret->message).len > 0 || ret->value != NULL);
    ret->failure = TOOL_FAILED;
    if (told) {
        return;
    }
    ret->message = without_newlines(r->out);
    if (str_trim(ret->message).len == 0) {
        ret->message = without_newlines(r->err);
    }
    if (str_trim(ret->message).len == 0) {
        ret->message = str_of(arena_printf(a, "The tool failed: %s.", r->why));
    }
}

static void read_end(struct arena *a, const struct helper_result *r, enum tool_failure failure,
                     struct tool_result *ret)
{
    struct str err = without_newlines(r->err);
    ret->failure = failure;
    ret->message =
        str_of(err.len == 0 ? arena_printf(a, "The tool failed: %s.", r->why)
                            : arena_printf(a, "The tool failed: %s.\n%.*s", r->why, STR_ARG(err)));
}

void tool_program_read(const struct tool *t, struct arena *a, const struct helper_result *r,
                       struct tool_result *ret)
{
    static const enum tool_failure failures[] = {
        [HELPER_SIGNALLED] = TOOL_CRASHED,    [HELPER_TIMEOUT] = TOOL_TIMEOUT,
        [HELPER_FLOOD] = TOOL_FLOOD,          [HELPER_CANCELLED] = TOOL_CANCELLED,
        [HELPER_NOT_STARTED] = TOOL_INTERNAL,
    };
    *ret = (struct tool_result) { .failure = TOOL_OK, .leaked = r->leaked };
    if (r->end != HELPER_EXITED) {
        read_end(a, r, failures[r->end], ret);
    } else if (r->value != 0) {
        read_failure(t, a, r, ret);
    } else {
        read_output(t, a, r->out, ret);
    }
}

/* --- a call --- */

/* version-traceid-parentid-flags in lower-case hex, as the trace context standard has it. */
static bool is_traceparent(struct str s)
{
    static const char shape[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    if (s.len != sizeof shape - 1) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (shape[i] == '-' ? c != '-' : !hex) {
            return false;
        }
    }
    return true;
}

/* What the caller sent may be anything; what cannot be a variable is left out. null takes away a
 * variable that we have ourselves. */
static struct json *environment(const struct program *p, const struct tool_run *run)
{
    struct arena *a = run->arena;
    struct json *env = p->env == NULL ? json_object(a) : json_copy(a, p->env);
    struct str trace = json_str(json_get(run->meta, "traceparent"), STR_EMPTY);
    json_setc(a, env, "CINCH_TOOL_NAME", json_string(a, run->tool->name));
    json_setc(a, env, "CINCH_CALL_ID",
              str_has_nul(run->call_id) ? json_null(a) : json_string(a, run->call_id));
    json_setc(a, env, "CINCH_TRACEPARENT",
              is_traceparent(trace) ? json_string(a, trace) : json_null(a));
    json_setc(a, env, "CINCH_TOOL_TIMEOUT_MS", json_integer(a, run->timeout / NSEC_PER_MS));
    return env;
}

static void on_done(void *arg, const struct helper_result *r)
{
    struct call *c = arg;
    struct tool_result result;
    tool_program_read(c->run->tool, c->run->arena, r, &result);
    tool_run_done(c->run, &result);
}

static void not_started(struct tool_run *run, const struct err *why)
{
    struct tool_result result = {
        .failure = TOOL_INTERNAL,
        .message = str_of(arena_printf(run->arena, "The tool could not be started: %s.", why->msg)),
    };
    tool_run_done(run, &result);
}

static void program_start(void *self, struct tool_run *run)
{
    const struct program *p = self;
    struct call *c = ARENA_NEW(run->arena, struct call);
    CLEANUP(buf) struct buf input = BUF_INIT(BUF_TEXT);
    struct err why;
    c->run = run;
    run->user = c;
    struct helper_opts o = {
        .host = p->host != NULL ? p->host : run->host,
        .argv = p->argv,
        .env = environment(p, run),
        .layer = run->layer,
        .cwd = run->cwd,
        .outside = p->outside,
        .max_output = run->tool->max_output,
        .timeout = run->timeout,
        .done = on_done,
        .arg = c,
    };
    int rc = json_write(run->arguments, JSON_COMPACT, &input, &why);
    rc = rc < 0 ? rc : buf_append_c(&input, '\n', &why);
    o.input = buf_str(&input);
    rc = rc < 0 ? rc : helper_start(&o, &c->helper, &why);
    if (rc < 0) {
        not_started(run, &why);
    }
}

static void program_cancel(void *self, struct tool_run *run)
{
    struct call *c = run->user;
    (void)self;
    helper_cancel(c->helper);
}

static const struct tool_handler handler = {
    .kind = "program",
    .start = program_start,
    .cancel = program_cancel,
};

int tool_program_bind(struct arena *a, const struct json *definition, struct tool *t, struct err *e)
{
    return tool_program_bind_host(a, definition, NULL, t, e);
}

int tool_program_bind_host(struct arena *a, const struct json *definition,
                           const struct helper_host *host, struct tool *t, struct err *e)
{
    const struct json *command = json_get(definition, "command");
    size_t n = json_is(command, JSON_ARRAY) ? json_len(command) : 0;
    if (n == 0) {
        return ERR(e, ERR_CONFIG, "tool '%.*s' has no command", STR_ARG(t->name));
    }
    const char **argv = arena_array(a, n + 1, sizeof *argv);
    for (size_t i = 0; i < n; i++) {
        struct str arg = json_str(json_item(command, i), STR_EMPTY);
        if (!json_is(json_item(command, i), JSON_STRING) || str_has_nul(arg) ||
            (i == 0 && arg.len == 0)) {
            return ERR(e, ERR_CONFIG, "tool '%.*s': command[%zu] is not a string without NUL bytes",
                       STR_ARG(t->name), i);
        }
        argv[i] = arena_dup(a, arg);
    }
    argv[n] = NULL;
    if (helper_spec_check(argv[0], e) < 0) {
        return err_wrap(e, "tool '%.*s'", STR_ARG(t->name));
    }
    const struct json *env = json_get(definition, "env");
    struct program *p = ARENA_NEW(a, struct program);
    p->argv = argv;
    p->env = json_is(env, JSON_OBJECT) ? json_copy(a, env) : NULL;
    p->outside = !json_bool(json_get(definition, "sandbox"), true);
    p->host = host;
    t->handler = &handler;
    t->self = p;
    return 0;
}

/* --- the kind --- */

static int check_program(const struct json *definition, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct tool t = { .name = json_str(json_get(definition, "name"), STR("?")) };
    return tool_program_bind(a, definition, &t, e);
}

const struct tool_kind tool_kind_program = {
    .name = "program",
    .key = "command",
    .source = TOOL_SINGLE,
    .command = "/command",
    .check = check_program,
    .bind = tool_program_bind,
};

/* SPDX-License-Identifier: MIT
 *
 * Terminals: programs that the agent has us run (terminal/create, output, wait_for_exit, kill,
 * release). Only numbers are kept here; the run starts the programs, in its sandbox, and ends them
 * with the session. Policies are asked about each, as about a tool `acp:terminal`.
 */
#include "adapters/acp_priv.h"

/* More words are no command. */
#define WORDS_MAX 4096

static const struct {
    const char *method;
    enum terminal_action action;
} methods[] = {
    { "terminal/create", TERMINAL_CREATE },      { "terminal/output", TERMINAL_OUTPUT },
    { "terminal/wait_for_exit", TERMINAL_WAIT }, { "terminal/kill", TERMINAL_KILL },
    { "terminal/release", TERMINAL_RELEASE },
};

/* --- numbers --- */

static uint64_t *slot_of(struct acp *p, uint64_t number)
{
    for (size_t i = 0; i < ACP_TERMINALS_MAX; i++) {
        if (p->terminals[i] == number) {
            return &p->terminals[i];
        }
    }
    return NULL;
}

/* 0: there is no such terminal. */
static uint64_t number_of(struct acp *p, struct str id)
{
    for (size_t i = 0; i < ACP_TERMINALS_MAX; i++) {
        if (p->terminals[i] != 0 &&
            str_eqc(id, arena_printf(p->scratch, "terminal-%llu",
                                     (unsigned long long)p->terminals[i]))) {
            return p->terminals[i];
        }
    }
    return 0;
}

/* --- what shall run --- */

/* A command of several words without a list of arguments is one for a shell: some agents send
 * what the model wrote. */
static bool needs_shell(struct str command, const struct json *args)
{
    static const char marks[] = " \t\n\"'`$&|;<>()*?~";
    return json_len(args) == 0 && strcspn(command.ptr, marks) < command.len;
}

static bool are_texts(const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *v = json_item(list, i);
        if (!json_is(v, JSON_STRING) || str_has_nul(v->string)) {
            return false;
        }
    }
    return list == NULL || json_is(list, JSON_NULL) || json_is(list, JSON_ARRAY);
}

static struct json *argv_of(struct acp *p, const struct json *params)
{
    struct arena *a = p->scratch;
    const struct json *command = json_get(params, "command");
    const struct json *args = json_get(params, "args");
    struct json *argv = json_array(a);
    if (needs_shell(command->string, args)) {
        json_push(a, argv, json_cstr(a, "/bin/sh"));
        json_push(a, argv, json_cstr(a, "-c"));
    }
    json_push(a, argv, json_copy(a, command));
    for (size_t i = 0; i < json_len(args); i++) {
        json_push(a, argv, json_copy(a, json_item(args, i)));
    }
    return argv;
}

/* [{name, value}] as an object; NULL: it is none. */
static struct json *env_of(struct acp *p, const struct json *list)
{
    struct json *env = json_object(p->scratch);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *name = json_get(json_item(list, i), "name");
        const struct json *value = json_get(json_item(list, i), "value");
        if (!json_is(name, JSON_STRING) || !json_is(value, JSON_STRING)) {
            return NULL;
        }
        json_set(p->scratch, env, name->string, json_copy(p->scratch, value));
    }
    return env;
}

static size_t limit_of(const struct json *params)
{
    int64_t asked = json_int(json_get(params, "outputByteLimit"), ACP_TERMINAL_OUTPUT);
    int64_t most = ACP_TERMINAL_OUTPUT_MAX;
    return asked < 0 ? 0 : (size_t)(asked < most ? asked : most);
}

static bool is_sound(struct acp *p, const struct json *params)
{
    const struct json *command = json_get(params, "command");
    const struct json *args = json_get(params, "args");
    const struct json *cwd = json_get(params, "cwd");
    struct str where = json_str(cwd, STR_EMPTY);
    return json_is(command, JSON_STRING) && command->string.len > 0 &&
           !str_has_nul(command->string) && are_texts(args) && json_len(args) <= WORDS_MAX &&
           env_of(p, json_get(params, "env")) != NULL && !str_has_nul(where);
}

/* --- create --- */

/* `rpc_id` and `params` are not in the memory of `scratch` only because of a policy that took its
 * time; both are copied by whoever keeps them. */
static void create(struct acp *p, const struct json *rpc_id, const struct json *params)
{
    uint64_t *slot = slot_of(p, 0);
    struct acp_ask *q = slot == NULL ? NULL : acp_ask_new(p, ASK_TERMINAL, rpc_id);
    if (q == NULL) {
        acp_send_error(p, rpc_id, JSONRPC_INTERNAL_ERROR,
                       STR("too many terminals: release those that are over"));
        return;
    }
    *slot = q->number = ++p->terminal_numbers;
    q->terminal = TERMINAL_CREATE;
    struct driver_terminal_ask terminal = {
        .action = TERMINAL_CREATE,
        .number = q->number,
        .argv = argv_of(p, params),
        .env = env_of(p, json_get(params, "env")),
        .limit = limit_of(params),
    };
    struct driver_ask ask = {
        .kind = ASK_TERMINAL,
        .id = q->id,
        .path = json_str(json_get(params, "cwd"), STR_EMPTY),
        .terminal = &terminal,
    };
    acp_event(p, "terminal", "argv", json_copy(p->scratch, terminal.argv));
    p->port.ask(p->port.owner, &ask);
}

static void ask_create(struct acp *p, const struct jsonrpc_message *m)
{
    if (!is_sound(p, m->params)) {
        acp_send_error(p, m->id, JSONRPC_INVALID_PARAMS,
                       STR("'command' must be text, 'args' a list of texts, 'env' one of names and "
                           "values"));
        return;
    }
    if (p->interrupted || p->stage != ACP_PROMPT) {
        acp_send_error(p, m->id, JSONRPC_INTERNAL_ERROR, STR("the turn is over"));
        return;
    }
    if (!p->has_policies) {
        create(p, m->id, m->params);
        return;
    }
    struct acp_ask *q = acp_ask_new(p, ASK_PERMISSION, m->id);
    if (q == NULL) {
        acp_send_error(p, m->id, JSONRPC_INTERNAL_ERROR, STR("too many requests at once"));
        return;
    }
    q->create = json_copy(q->arena, m->params);
    struct json *arguments = json_copy(p->scratch, m->params);
    (void)json_remove(arguments, STR("sessionId"));
    struct driver_ask ask = {
        .kind = ASK_PERMISSION,
        .id = q->id,
        .tool = STR("acp:terminal"),
        .arguments = arguments,
    };
    p->port.ask(p->port.owner, &ask);
}

void acp_terminal_decided(struct acp *p, const struct acp_ask *q, const struct driver_reply *reply)
{
    if (!reply->ok) {
        acp_send_error(p, q->rpc_id, JSONRPC_INTERNAL_ERROR,
                       reply->text.len > 0 ? reply->text : STR("denied"));
    } else {
        create(p, q->rpc_id, q->create);
    }
}

/* --- all others --- */

static void ask_about(struct acp *p, const struct jsonrpc_message *m, enum terminal_action action)
{
    struct str id = json_str(json_get(m->params, "terminalId"), STR_EMPTY);
    uint64_t number = number_of(p, id);
    if (number == 0) {
        acp_send_error(p, m->id, ACP_NOT_FOUND, STR("there is no such terminal"));
        return;
    }
    struct acp_ask *q = acp_ask_new(p, ASK_TERMINAL, m->id);
    if (q == NULL) {
        acp_send_error(p, m->id, JSONRPC_INTERNAL_ERROR, STR("too many requests at once"));
        return;
    }
    q->terminal = action;
    q->number = number;
    if (action == TERMINAL_RELEASE) {
        *slot_of(p, number) = 0; /* the name means nothing from now on */
    }
    struct driver_terminal_ask terminal = { .action = action, .number = number };
    struct driver_ask ask = { .kind = ASK_TERMINAL, .id = q->id, .terminal = &terminal };
    p->port.ask(p->port.owner, &ask);
}

bool acp_terminal_request(struct acp *p, const struct jsonrpc_message *m)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (!str_eqc(m->method, methods[i].method)) {
            continue;
        }
        if (methods[i].action == TERMINAL_CREATE) {
            ask_create(p, m);
        } else {
            ask_about(p, m, methods[i].action);
        }
        return true;
    }
    return false;
}

/* --- answers --- */

static void set_status(struct acp *p, struct json *object, const struct driver_terminal *t)
{
    struct arena *a = p->scratch;
    bool exited = t->exit_code >= 0;
    json_setc(a, object, "exitCode", exited ? json_integer(a, t->exit_code) : json_null(a));
    json_setc(a, object, "signal", json_cstr(a, t->signal));
}

void acp_terminal_reply(struct acp *p, const struct acp_ask *q, const struct driver_reply *reply)
{
    struct arena *a = p->scratch;
    struct json *result = json_object(a);
    const struct driver_terminal *t = reply->terminal;
    if (!reply->ok) {
        uint64_t *slot = slot_of(p, q->number);
        if (q->terminal == TERMINAL_CREATE && slot != NULL) {
            *slot = 0;
        }
        acp_send_error(p, q->rpc_id, JSONRPC_INTERNAL_ERROR, reply->text);
        return;
    }
    if (q->terminal == TERMINAL_CREATE) {
        const char *id = arena_printf(a, "terminal-%llu", (unsigned long long)q->number);
        json_setc(a, result, "terminalId", json_cstr(a, id));
    } else if (q->terminal == TERMINAL_WAIT && t != NULL) {
        set_status(p, result, t);
    } else if (q->terminal == TERMINAL_OUTPUT && t != NULL) {
        json_setc(a, result, "output", json_string(a, reply->text));
        json_setc(a, result, "truncated", json_boolean(a, t->truncated));
        if (t->ended) {
            struct json *status = json_object(a);
            set_status(p, status, t);
            json_setc(a, result, "exitStatus", status);
        }
    }
    acp_send_result(p, q->rpc_id, result);
}

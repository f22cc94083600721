/* SPDX-License-Identifier: MIT
 *
 * What we ask of Codex: one request after the other until the thread stands, then turns. Its own
 * sandbox is off, because ours confines it. Policies are asked by its approvals, for which it must
 * be brought to ask about everything.
 */
#include "adapters/codex_priv.h"
#include "base/base64.h"

/* With approvals "untrusted" it asks before every patch and command, but for commands that it takes
 * for harmless. A rule for their names makes it ask about those, too. */
static const char rules[] =
    "prefix_rule(pattern=[["
    "\"awk\", \"base64\", \"cat\", \"cd\", \"cut\", \"date\", \"df\", \"diff\", \"du\", \"echo\", "
    "\"env\", \"expr\", \"false\", \"file\", \"find\", \"git\", \"grep\", \"head\", \"hostname\", "
    "\"id\", \"jq\", \"ls\", \"nl\", \"numfmt\", \"paste\", \"printenv\", \"printf\", \"ps\", "
    "\"pwd\", \"rev\", \"rg\", \"sed\", \"seq\", \"sleep\", \"sort\", \"stat\", \"tac\", "
    "\"tail\", \"test\", \"tr\", \"true\", \"uname\", \"uniq\", \"wc\", \"which\", \"whoami\""
    "]], decision=\"prompt\")\n";

/* Seen by nobody here, and the diff grows with every patch. */
static const char *const unwanted[] = { "account/rateLimits/updated", "thread/status/changed",
                                        "turn/diff/updated", "thread/readState/changed" };

const char *codex_stage_name(enum codex_stage stage)
{
    switch (stage) {
    case CODEX_NEW:
    case CODEX_INITIALIZE:
        return "initialize";
    case CODEX_FOLDER:
        return "fs/createDirectory";
    case CODEX_RULES:
        return "fs/writeFile";
    case CODEX_THREAD:
        return "thread/start";
    case CODEX_TURN:
    case CODEX_WAITING:
    case CODEX_OVER:
        break;
    }
    return "turn/start";
}

/* --- questions --- */

static void ask(struct codex *c, enum codex_stage stage, const char *method, struct json *params)
{
    c->stage = stage;
    int64_t id = codex_send_request(c, method, params);
    if (c->stage == stage) {
        c->request = id;
    }
}

void codex_start(struct codex *c)
{
    struct arena *a = c->scratch;
    struct json *params = json_object(a);
    struct json *client = json_object(a);
    struct json *capabilities = json_object(a);
    struct json *silent = json_array(a);
    for (size_t i = 0; i < ARRAY_LEN(unwanted); i++) {
        json_push(a, silent, json_cstr(a, unwanted[i]));
    }
    codex_set(c, client, "name", STR("cinch"));
    codex_set(c, client, "title", STR("cinch"));
    codex_set(c, client, "version", STR("1"));
    json_setc(a, capabilities, "experimentalApi", json_boolean(a, true)); /* dynamic tools */
    json_setc(a, capabilities, "optOutNotificationMethods", silent);
    json_setc(a, params, "clientInfo", client);
    json_setc(a, params, "capabilities", capabilities);
    ask(c, CODEX_INITIALIZE, "initialize", params);
}

static void make_folder(struct codex *c)
{
    struct json *params = json_object(c->scratch);
    struct str path = str_of(arena_printf(c->scratch, "%.*s/rules", STR_ARG(c->codex_home)));
    codex_set(c, params, "path", path);
    json_setc(c->scratch, params, "recursive", json_boolean(c->scratch, true));
    ask(c, CODEX_FOLDER, "fs/createDirectory", params);
}

static void write_rules(struct codex *c)
{
    struct json *params = json_object(c->scratch);
    CLEANUP(buf) struct buf data = BUF_INIT(BUF_TEXT);
    struct str path =
        str_of(arena_printf(c->scratch, "%.*s/rules/cinch.rules", STR_ARG(c->codex_home)));
    if (base64_write(str_of(rules), &data, NULL) < 0) {
        buf_reset(&data); /* the text is short */
    }
    codex_set(c, params, "path", path);
    codex_set(c, params, "dataBase64", buf_str(&data));
    ask(c, CODEX_RULES, "fs/writeFile", params);
}

/* What Codex does not ask about is switched off: the search, which the provider hosts, and commands
 * with a terminal, to which the model could type further commands (write_stdin). Before 0.166,
 * `unified_exec` is the switch; newer ones keep it for models that know nothing else. */
static struct json *governed_config(struct arena *a)
{
    struct json *config = json_object(a);
    json_setc(a, config, "web_search", json_cstr(a, "disabled"));
    json_setc(a, config, "features.unified_exec", json_boolean(a, false));
    json_setc(a, config, "features.unified_exec_tty", json_boolean(a, false));
    return config;
}

static void start_thread(struct codex *c)
{
    struct arena *a = c->scratch;
    struct json *params = json_object(a);
    bool resumed = c->resume.len > 0;
    codex_set(c, params, "cwd", c->workspace);
    codex_set(c, params, "approvalPolicy", c->has_policies ? STR("untrusted") : STR("never"));
    codex_set(c, params, "sandbox", STR("danger-full-access"));
    if (c->model.len > 0) {
        codex_set(c, params, "model", c->model);
    }
    if (c->has_policies) {
        json_setc(a, params, "config", governed_config(a));
    }
    if (c->system_prompt.len > 0 && c->system_style != SYSTEM_PROMPT_NONE) {
        bool replace = c->system_style == SYSTEM_PROMPT_REPLACE;
        codex_set(c, params, replace ? "baseInstructions" : "developerInstructions",
                  c->system_prompt);
    }
    if (resumed) {
        codex_set(c, params, "threadId", c->resume);
        json_setc(a, params, "excludeTurns", json_boolean(a, true));
    } else if (c->tools != NULL) {
        json_setc(a, params, "dynamicTools", json_copy(a, c->tools));
    }
    ask(c, CODEX_THREAD, resumed ? "thread/resume" : "thread/start", params);
}

static struct json *text_input(struct codex *c, struct str first, struct str second)
{
    struct arena *a = c->scratch;
    struct json *input = json_array(a);
    const struct str texts[] = { first, second };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].len > 0) {
            struct json *block = json_object(a);
            codex_set(c, block, "type", STR("text"));
            codex_set(c, block, "text", texts[i]);
            json_push(a, input, block);
        }
    }
    return input;
}

void codex_turn(struct codex *c, struct str text)
{
    struct arena *a = c->scratch;
    struct json *params = json_object(a);
    codex_set(c, params, "threadId", c->report.session_id);
    json_setc(a, params, "input", text_input(c, buf_str(&c->feedback), text));
    if (c->schema != NULL) {
        json_setc(a, params, "outputSchema", json_copy(a, c->schema));
    }
    if (c->effort.len > 0) {
        codex_set(c, params, "effort", c->effort);
    }
    if (c->turn_model.len > 0) {
        codex_set(c, params, "model", c->turn_model);
    }
    buf_reset(&c->feedback);
    buf_reset(&c->turn_id);
    buf_reset(&c->said);
    buf_reset(&c->partial);
    c->report.failed = false;
    c->report.error = STR_EMPTY;
    c->report.structured = NULL;
    c->interrupted = false;
    ask(c, CODEX_TURN, "turn/start", params);
}

int64_t codex_steer(struct codex *c, struct str text)
{
    if (c->stage != CODEX_TURN || c->turn_id.len == 0 || c->interrupted) {
        return 0;
    }
    struct json *params = json_object(c->scratch);
    codex_set(c, params, "threadId", c->report.session_id);
    codex_set(c, params, "expectedTurnId", buf_str(&c->turn_id));
    json_setc(c->scratch, params, "input", text_input(c, text, STR_EMPTY));
    return codex_send_request(c, "turn/steer", params);
}

static void send_interrupt(struct codex *c)
{
    struct json *params = json_object(c->scratch);
    codex_set(c, params, "threadId", c->report.session_id);
    codex_set(c, params, "turnId", buf_str(&c->turn_id));
    (void)codex_send_request(c, "turn/interrupt", params);
}

void codex_interrupt(struct codex *c)
{
    if (c->interrupted || c->stage == CODEX_WAITING || c->stage == CODEX_OVER) {
        return;
    }
    c->interrupted = true;
    if (c->stage != CODEX_TURN) {
        c->stage = CODEX_OVER; /* there is nothing yet that could be stopped */
        codex_end_turn(c, "interrupted");
        return;
    }
    codex_cancel_asks(c, true);
    if (c->turn_id.len > 0) {
        send_interrupt(c);
    }
}

/* --- answers --- */

static void initialized(struct codex *c, const struct json *result)
{
    struct str agent = json_str(json_get(result, "userAgent"), STR_EMPTY);
    struct str home = json_str(json_get(result, "codexHome"), STR_EMPTY);
    if (agent.len == 0) {
        codex_give_up(c, "the program answers 'initialize' as no version of Codex does that cinch "
                         "knows (0.166 is tried): it has no 'userAgent'");
        return;
    }
    c->port.send(c->port.owner, STR("{\"method\":\"initialized\"}\n"));
    c->codex_home = arena_str(c->keep, str_slice(home, 0, 4096));
    if (!c->has_policies) {
        start_thread(c);
    } else if (home.len > 0 && home.ptr[0] == '/') {
        make_folder(c);
    } else {
        codex_give_up(c, "policies cannot be kept: Codex does not say where its rules are");
    }
}

static void thread_stands(struct codex *c, const struct json *result)
{
    struct str id = json_str(json_pointer(result, STR("/thread/id")), STR_EMPTY);
    struct str model = json_str(json_get(result, "model"), STR_EMPTY);
    struct str version = json_str(json_pointer(result, STR("/thread/cliVersion")), STR_EMPTY);
    if (id.len == 0 || id.len > CODEX_ID_MAX) {
        codex_give_up(c, "the answer to 'thread/start' names no thread");
        return;
    }
    c->report.session_id = arena_str(c->keep, id);
    c->report.model = arena_str(c->keep, str_slice(model, 0, CODEX_ID_MAX));
    c->report.version = arena_str(c->keep, str_slice(version, 0, 64));
    codex_turn(c, c->prompt);
}

void codex_turn_began(struct codex *c, const struct json *turn)
{
    if (c->stage == CODEX_TURN && c->turn_id.len == 0) {
        codex_keep(&c->turn_id, json_str(json_get(turn, "id"), STR_EMPTY));
        if (c->interrupted && c->turn_id.len > 0) {
            send_interrupt(c);
        }
    }
}

void codex_answer(struct codex *c, const struct jsonrpc_message *m)
{
    if (m->kind == JSONRPC_ERROR) {
        codex_give_up(c, "Codex refuses '%s': %.*s", codex_stage_name(c->stage),
                      STR_ARG(str_slice(m->text, 0, 1000)));
        return;
    }
    switch (c->stage) {
    case CODEX_INITIALIZE:
        initialized(c, m->result);
        break;
    case CODEX_FOLDER:
        write_rules(c);
        break;
    case CODEX_RULES:
        start_thread(c);
        break;
    case CODEX_THREAD:
        thread_stands(c, m->result);
        break;
    case CODEX_TURN:
        codex_turn_began(c, json_get(m->result, "turn"));
        break;
    case CODEX_NEW:
    case CODEX_WAITING:
    case CODEX_OVER:
        break;
    }
}

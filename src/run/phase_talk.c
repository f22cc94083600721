/* SPDX-License-Identifier: MIT
 *
 * Phase execute for drivers that talk to a model themselves: their questions go to the run's own
 * gateway, over its listener like those of any harness, so that budget, record and meter see them.
 * Nothing is started; turns and deadlines are those of the machine (execute_machine.h).
 */
#include "gateway/upstream.h"
#include "gateway/upstream_curl.h"
#include "io/loop.h"
#include "run/execute_priv.h"
#include "run/run_tools.h"
#include "tools/bridge.h"

struct talk {
    struct run *run;
    struct upstream *door;
    struct upstream_call *call; /* NULL: none is under way */
    struct upstream_request request;
    struct http_field fields[2];
    int status;
    bool over;
};

/* --- the end --- */

static void finish(void *arg)
{
    struct talk *x = arg;
    struct run *run = x->run;
    struct agent_report report;
    x->door->ops->free(x->door);
    x->door = NULL;
    run->execute->talk = NULL;
    run->exec.ended = clock_now();
    if (run->cause.reason == REASON_NONE) { /* else it was stopped, as a program would be */
        run->plan->driver->end(run->session, &report);
        run->exec.exit = (struct engine_exit) { ENGINE_EXITED, report.failed ? 1 : 0 };
    }
    execute_send(&run->execute->machine, EXECUTE_GONE);
}

static void end(struct talk *x)
{
    if (!x->over) {
        x->over = true;
        loop_post(x->run->loop, finish, x);
    }
}

void talk_stop(struct run *run)
{
    struct talk *x = run->execute->talk;
    if (x->call != NULL) {
        x->door->ops->cancel(x->call);
        x->call = NULL;
    }
    end(x);
}

/* --- one question after the other --- */

static void step(void *arg);

static void answered(struct talk *x, const char *error)
{
    struct run *run = x->run;
    x->call = NULL;
    run->plan->driver->model->response_end(run->session, x->status, error);
    loop_post(run->loop, step, x); /* not from inside of the callback */
}

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    struct talk *x = arg;
    x->status = status;
    run_alive(x->run);
}

static void on_data(void *arg, struct str bytes)
{
    struct talk *x = arg;
    struct run *run = x->run;
    run_alive(run); /* a model that thinks is not idle */
    run->plan->driver->model->response(run->session, x->status, bytes);
}

static void on_end(void *arg)
{
    answered(arg, NULL);
}

static void on_error(void *arg, const struct upstream_error *error)
{
    answered(arg, error->message);
}

static int send_question(struct talk *x, const struct driver_request *q, struct err *e)
{
    struct upstream_port port = { on_head, on_data, on_end, on_error, x };
    x->fields[0] = (struct http_field) { STR("Content-Type"), STR("application/json") };
    x->fields[1] = (struct http_field) { STR("Anthropic-Version"), STR("2023-06-01") };
    x->status = 0;
    x->request = (struct upstream_request) {
        .method = STR("POST"),
        .target = q->target,
        .endpoint = llm_endpoint_of(STR("POST"), q->target),
        .fields = { x->fields, q->format == LLM_ANTHROPIC ? 2 : 1 },
        .body = q->body,
        .exchange = x->request.exchange + 1,
        .attempt = 1,
    };
    return x->door->ops->start(x->door, &x->request, &port, &x->call, e);
}

/* --- calls --- */

static void on_answer(void *arg, const struct bridge_answer *a)
{
    struct talk *x = arg;
    struct run *run = x->run;
    if (x->over) {
        return;
    }
    struct str text = a->text;
    if (a->feedback.len > 0) {
        text =
            str_of(arena_printf(run->arena, "%.*s\n\n%.*s", STR_ARG(text), STR_ARG(a->feedback)));
    }
    run->plan->driver->model->tool_result(run->session, text, a->is_error);
    loop_post(run->loop, step, x);
}

/* Arguments that are no object are the bridge's to refuse: the model gets a result to learn from.
 */
static void start_call(struct talk *x, const struct llm_call *c)
{
    struct run *run = x->run;
    struct bridge *bridge = tools_bridge(run);
    struct bridge_call *call;
    if (bridge == NULL) { /* nothing was offered, so that this is a call that nobody may make */
        run->plan->driver->model->tool_result(run->session, STR("there are no tools"), true);
        loop_post(run->loop, step, x);
        return;
    }
    struct json *text = c->input != NULL ? NULL : json_string(run->arena, c->text);
    bridge_call(bridge,
                &(struct bridge_request) { .name = c->name,
                                           .arguments = c->input != NULL ? c->input : text,
                                           .call_id = c->id,
                                           .done = on_answer,
                                           .arg = x },
                &call);
}

/* --- turns --- */

void talk_begin(struct run *run)
{
    loop_post(run->loop, step, run->execute->talk);
}

void talk_say(struct run *run, struct str text)
{
    run->plan->driver->model->prompt(run->session, text);
    loop_post(run->loop, step, run->execute->talk);
}

static void step(void *arg)
{
    struct talk *x = arg;
    struct run *run = x->run;
    struct driver_request q;
    struct err e = { 0 };
    if (x->over) {
        return;
    }
    int r = run->plan->driver->model->next(run->session, &q, &e);
    if (r == DRIVER_TOOL_CALL) {
        start_call(x, q.call);
        return;
    }
    if (r == DRIVER_REQUEST) {
        r = send_question(x, &q, &e);
        if (r == 0) {
            return;
        }
    }
    if (r < 0) {
        run_fail_err(run, &e);
        end(x);
        return;
    }
    execute_turn_ended(&run->execute->machine, 0);
}

int talk_start(struct run *run, struct err *e)
{
    struct talk *x = ARENA_NEW(run->arena, struct talk);
    x->run = run;
    if (gateway_address(run) == NULL) {
        return ERR(e, ERR_CONFIG,
                   "adapter '%s' needs a model: name gateway.upstream, or gateway.script",
                   run->plan->settings.profile->name);
    }
    int r = upstream_curl_new(run->loop,
                              &(struct upstream_curl_opts) { .name = "gateway",
                                                             .url = gateway_address(run),
                                                             .key = gateway_token(run),
                                                             .format = LLM_ANTHROPIC },
                              &x->door, e);
    if (r < 0) {
        return r;
    }
    run->execute->talk = x;
    run->exec.launched = true;
    return 0;
}

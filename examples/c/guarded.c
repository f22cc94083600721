/* SPDX-License-Identifier: MIT
 *
 * Guards in C: a policy that denies, feedback on the way, and a check at the end that sends the
 * agent back once. All of the task is made here; only the model is a file.
 *
 *   cc guarded.c $(pkg-config --cflags --libs cinch) -o guarded && ./guarded guarded-model.yaml
 */
#include <cinch.h>
#include <stdio.h>
#include <string.h>

struct counts {
    int noted, denied, checked;
};

static void note(void *arg, struct cinch_call *call)
{
    struct counts *n = arg;
    n->noted++;
    /* A change to the session: it is there if the call succeeds. */
    cinch_call_answer(call,
                      "{\"message\": \"noted\","
                      " \"state\": [{\"op\": \"append\", \"slice\": \"notes\", \"value\": 1}]}");
}

static int allow(void *arg, const char *json, const char **reason)
{
    struct counts *n = arg;
    if (strstr(json, "secret") == NULL) {
        return 1;
    }
    n->denied++;
    *reason = "secrets are not noted";
    return 0;
}

static const char *encourage(void *arg, const char *json)
{
    return "go on like this";
}

static int is_complete(void *arg, const char *json, const char **feedback)
{
    struct counts *n = arg;
    *feedback = "one more note, please";
    return n->checked++ > 0;
}

static int build(struct cinch_task *t, struct counts *n, const char *model)
{
    char task[1024];
    struct cinch_tool tool = {
        .size = sizeof tool,
        .definition = "{\"name\": \"note\", \"description\": \"Keeps a note.\","
                      " \"input_schema\": {\"type\": \"object\","
                      " \"properties\": {\"text\": {\"type\": \"string\"}}}}",
        .call = note,
        .arg = n,
    };
    struct cinch_policy policy = { sizeof policy, "no-secrets", allow, n };
    struct cinch_feedback feedback = { sizeof feedback, "coach", 1, 0, encourage, NULL };
    struct cinch_completion completion = { sizeof completion, "enough", is_complete, n };
    snprintf(task, sizeof task,
             "{\"name\": \"guarded\", \"agent\": {\"adapter\": \"api-direct\", \"model\": \"m\"},"
             " \"prompt\": \"Take notes.\", \"gateway\": {\"script\": \"%s\"},"
             " \"limits\": {\"timeout\": 30}}",
             model);
    int r = cinch_task_merge(t, task);
    r = r < 0 ? r : cinch_task_add_tool(t, &tool);
    r = r < 0 ? r : cinch_task_add_policy(t, &policy);
    r = r < 0 ? r : cinch_task_add_feedback(t, &feedback);
    return r < 0 ? r : cinch_task_add_completion(t, &completion);
}

int main(int argc, char **argv)
{
    struct counts n = { 0 };
    struct cinch_result *result = NULL;
    struct cinch_task *task = cinch_task_new();
    struct cinch_options options = { .size = sizeof options, .signals = 1 };
    int r = build(task, &n, argc > 1 ? argv[1] : "guarded-model.yaml");
    r = r < 0 ? r : cinch_run(task, &options, &result);
    if (r < 0) {
        fprintf(stderr, "guarded: %s\n", cinch_task_error(task));
        cinch_task_free(task);
        return 1;
    }
    printf("%s: %d noted, %d denied, %d checks\n%s", cinch_result_reason(result), n.noted, n.denied,
           n.checked, cinch_result_json(result));
    int status = cinch_result_exit_status(result);
    cinch_result_free(result);
    cinch_task_free(task);
    return status;
}

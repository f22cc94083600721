/* SPDX-License-Identifier: MIT
 *
 * A tool in C: a model without a harness asks for the price of something and gets it from this
 * program. The model is a script, so that no key is needed:
 *
 *   cc lookup.c $(pkg-config --cflags --libs cinch) -o lookup && ./lookup lookup.yaml
 *
 * docs/api.md explains the calls.
 */
#include <cinch.h>
#include <stdio.h>
#include <string.h>

static const char definition[] =
    "{\"name\": \"price\", \"description\": \"Says what something costs.\","
    " \"input_schema\": {\"type\": \"object\", \"properties\": {\"item\": {\"type\": \"string\"}},"
    "                    \"required\": [\"item\"]},"
    " \"output_schema\": {\"type\": \"object\", \"properties\": {\"cents\": {\"type\": "
    "\"integer\"}},"
    "                     \"required\": [\"cents\"]}}";

/* The arguments fit the schema; what it answers is checked, too. */
static void price(void *arg, struct cinch_call *call)
{
    int *calls = arg;
    (*calls)++;
    if (strstr(cinch_call_arguments(call), "\"tea\"") != NULL) {
        cinch_call_answer(call, "{\"value\": {\"cents\": 250}}");
    } else {
        cinch_call_answer(call, "{\"success\": false, \"message\": \"nobody sells that\"}");
    }
}

static void on_event(void *arg, const char *json)
{
    if (strstr(json, "\"event\":\"ToolInvoked\"") != NULL) {
        puts("a tool was called");
    }
}

int main(int argc, char **argv)
{
    int calls = 0;
    struct cinch_result *result = NULL;
    struct cinch_task *task = cinch_task_new();
    struct cinch_tool tool = { sizeof tool, definition, price, &calls };
    struct cinch_options options = { .size = sizeof options, .event = on_event };
    int r = cinch_task_load(task, argc > 1 ? argv[1] : "lookup.yaml");
    if (r == 0) {
        r = cinch_task_add_tool(task, &tool);
    }
    if (r == 0) {
        r = cinch_run(task, &options, &result);
    }
    if (r < 0) {
        fprintf(stderr, "lookup: %s\n", cinch_task_error(task));
        cinch_task_free(task);
        return 1;
    }
    printf("%s after %d calls\nrecord: %s\n", cinch_result_reason(result), calls,
           cinch_result_dir(result));
    int status = cinch_result_exit_status(result);
    cinch_result_free(result);
    cinch_task_free(task);
    return status;
}

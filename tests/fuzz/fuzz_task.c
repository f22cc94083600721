/* SPDX-License-Identifier: MIT
 *
 * Any text as a task: refused with a message whose code is one of a task's faults, or a definition
 * that can be rendered and described as JSON. Files that a task may name are taken out, so that
 * what happens depends on the input alone.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/definition.h"
#include "data/yaml.h"
#include "run/task_preview.h"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void strip(struct json *tree)
{
    struct json *prompt = json_get(tree, "prompt");
    struct json *output = json_get(tree, "output");
    (void)(json_is(tree, JSON_OBJECT) && json_remove(tree, STR("skills")));
    if (json_is(prompt, JSON_OBJECT)) {
        (void)json_remove(prompt, STR("file"));
        (void)json_remove(prompt, STR("overrides"));
    }
    if (json_is(json_get(output, "schema"), JSON_STRING)) {
        (void)json_remove(output, STR("schema"));
    }
}

static void check_message(int r, const struct err *e)
{
    must(-r == (int)e->code && e->msg[0] != '\0');
    must(e->code == ERR_CONFIG || e->code == ERR_PARSE || e->code == ERR_USAGE ||
         e->code == ERR_INPUT);
}

static void look(struct arena *a, struct settings *s)
{
    static const struct template_limits limits = {
        .max_rounds = 1000, .max_steps = 20000, .max_output = 1 << 16, .max_memory = 8 << 20
    };
    struct definition d;
    struct json *shown;
    struct err e = { 0 };
    int r = definition_open_limited(&d, a, s, &limits, &e);
    r = r < 0 ? r : definition_bind(&d, &e);
    r = r < 0 ? r : task_preview(&d, &shown, &e);
    if (r < 0) {
        check_message(r, &e);
    } else {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct json *again;
        must(json_write(shown, JSON_COMPACT, &out, &e) == 0);
        must(json_parse(a, buf_str(&out), NULL, &again, &e) == 0);
    }
    definition_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct json_limits limits = { .max_bytes = 1 << 16, .max_depth = 40, .max_values = 2000 };
    struct settings_input in = { .site_dir = "/nonexistent", .user_dir = "/nonexistent" };
    struct settings s;
    struct err e = { 0 };
    int r = yaml_parse(a, str_n(data, size), "task.yaml", &limits, &in.request, &e);
    if (r == 0) {
        strip(in.request);
        r = settings_load(a, &in, &s, &e);
        if (r == 0) {
            look(a, &s);
        } else {
            check_message(r, &e);
        }
    }
    arena_free(a);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Any template over any variables: it ends, within its limits, and renders the same twice. The
 * input is a template, a NUL, variables as JSON, a NUL, and a text that `include` finds.
 */
#include "template/template.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_part(void *self, const char *name, struct buf *ret, struct err *e)
{
    const struct str *part = self;
    if (part->ptr == NULL || name[0] == 'x') {
        return ERR(e, ERR_INPUT, "no '%s'", name);
    }
    return buf_append(ret, *part, e);
}

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void render_twice(const struct template *t, const struct json *json)
{
    struct err e;
    CLEANUP(buf) struct buf first = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf second = BUF_INIT(BUF_TEXT);
    struct template_vars *vars = template_vars_new(json);
    int r = template_render(t, vars, &first, &e);
    must(r <= 0 && (r == 0 || e.msg[0] != '\0'));
    must(r == 0 || first.len == 0);
    must(template_render(t, vars, &second, NULL) == r);
    must(str_eq(buf_str(&first), buf_str(&second)));
    must(r < 0 || str_is_utf8(buf_str(&first)));
    (void)template_vars_free(vars);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = str_n(data, size);
    struct str text = str_split(&rest, '\0');
    struct str variables = rest.ptr == NULL ? STR("{}") : str_split(&rest, '\0');
    const struct template_opts opts = {
        .loader = { read_part, &rest },
        .limits = { .max_steps = 30000,
                    .max_rounds = 3000,
                    .max_output = 1 << 16,
                    .max_memory = 8 << 20,
                    .max_calls = 12 },
        .trim_blocks = size % 2,
        .lstrip_blocks = size % 3 == 0,
        .keep_trailing_newline = size % 5 == 0,
    };
    CLEANUP(arena) struct arena *a = arena_new();
    struct template_set *set = template_set_new(&opts);
    struct json *json = NULL;
    const struct template *t = NULL;
    struct err e;
    if (json_parse(a, variables, NULL, &json, NULL) < 0 || !json_is(json, JSON_OBJECT)) {
        json = NULL;
    }
    if (template_parse(set, "main", text, &t, &e) == 0) {
        render_twice(t, json);
    } else {
        must(e.msg[0] != '\0' && template_set_fault(set) != TEMPLATE_FAULT_NONE);
    }
    (void)template_set_free(set);
    return 0;
}

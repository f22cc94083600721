/* SPDX-License-Identifier: MIT
 *
 * Examples that a model learns from: of a tool, shown below the section that offers it, and of a
 * whole task, each a child section of its own.
 */
#include "prompt/section_priv.h"

#include "template/template_unicode.h"

/* Lines of a fenced block, each behind the indent. */
static void write_fenced(struct buf *out, struct str text, const char *language, const char *indent)
{
    buf_addf(out, "%s```%s\n", indent, language);
    struct str rest = text;
    do {
        struct str line = str_split(&rest, '\n');
        buf_adds(out, line.len > 0 ? indent : "");
        buf_add(out, line);
        buf_adds(out, "\n");
    } while (rest.ptr != NULL && rest.len > 0);
    buf_addf(out, "%s```", indent);
}

/* As a tool's result is shown: text as it is, nothing for null, everything else as JSON. A list of
 * values that are no JSON by themselves becomes paragraphs. */
static void write_payload(struct buf *out, const struct json *v)
{
    if (v == NULL || json_is(v, JSON_NULL)) {
        return;
    }
    if (json_is(v, JSON_STRING)) {
        buf_add(out, v->string);
        return;
    }
    if (json_is(v, JSON_BOOL)) {
        buf_adds(out, v->boolean ? "True" : "False");
        return;
    }
    bool texts = json_is(v, JSON_ARRAY) && v->array.len > 0;
    for (size_t i = 0; texts && i < v->array.len; i++) {
        texts = json_is(v->array.items[i], JSON_STRING);
    }
    if (!texts) {
        section_json_write(out, v, SECTION_JSON_PLAIN);
        return;
    }
    for (size_t i = 0; i < v->array.len; i++) {
        buf_adds(out, i == 0 ? "" : "\n\n");
        buf_add(out, v->array.items[i]->string);
    }
}

/* --- of tools --- */

static void write_tool_example(struct buf *out, const struct json *example)
{
    struct str description = json_str(json_get(example, "description"), STR_EMPTY);
    CLEANUP(buf) struct buf text = BUF_INIT((size_t)1 << 30);
    buf_addf(out, "\n    - description: %.*s\n      input:\n", STR_ARG(description));
    section_json_write(&text, json_get(example, "input"), SECTION_JSON_PLAIN);
    write_fenced(out, buf_str(&text), "json", "        ");
    buf_adds(out, "\n      output:\n");
    buf_reset(&text);
    write_payload(&text, json_get(example, "output"));
    write_fenced(out, buf_str(&text), "", "        ");
}

void section_tools_write(struct buf *out, const struct section_tree *tree, const struct section *s)
{
    bool head = false;
    for (size_t i = 0; i < s->tools_len; i++) {
        const struct section_definition *d = section_definition_find(tree, s->tools[i]);
        const struct json *examples = d == NULL ? NULL : json_get(d->effective, "examples");
        if (json_len(examples) == 0) {
            continue;
        }
        struct str description = json_str(json_get(d->effective, "description"), STR_EMPTY);
        buf_adds(out, head ? "\n" : "Tools:\n");
        head = true;
        buf_addf(out, "- %.*s: %.*s\n  - %.*s examples:", STR_ARG(d->name), STR_ARG(description),
                 STR_ARG(d->name));
        for (size_t k = 0; k < json_len(examples); k++) {
            write_tool_example(out, json_item(examples, k));
        }
    }
}

void section_tool_example_hash(const struct json *example, char out[SHA256_HEX])
{
    static const char *const members[] = { "description", "input", "output" };
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *o = json_object(a);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        struct json *v = json_get(example, members[i]);
        json_setc(a, o, members[i], v == NULL ? json_null(a) : v);
    }
    section_hash_json(o, out);
}

/* --- of tasks --- */

struct str section_example_title(struct arena *a, struct str objective)
{
    enum { LONGEST = 60 };
    if (unicode_len(objective) <= LONGEST) {
        return objective;
    }
    size_t cut = unicode_offset(objective, LONGEST - 3);
    return str_of(arena_printf(a, "%.*s...", STR_ARG(str_slice(objective, 0, cut))));
}

static int parse_steps(struct section_tree *tree, const struct section *s, const struct json *steps,
                       struct section_example *ret, struct err *e)
{
    ret->steps = arena_array(tree->arena, json_len(steps), sizeof *ret->steps);
    for (size_t i = 0; i < json_len(steps); i++) {
        const struct json *step = json_item(steps, i);
        struct str tool = str_trim(json_str(json_get(step, "tool"), STR_EMPTY));
        if (tool.len == 0) {
            return section_fail(tree, s, step, e, "a step needs a 'tool'");
        }
        ret->steps[ret->steps_len++] = (struct section_step) {
            .tool = tool,
            .description = json_str(json_get(step, "description"), STR_EMPTY),
            .input = json_get(step, "input"),
            .output = json_get(step, "output"),
        };
    }
    return 0;
}

int section_example_parse(struct section_tree *tree, const struct section *s,
                          const struct json *source, struct section_example *ret, struct err *e)
{
    enum { LONGEST = 500 };
    ret->objective = str_trim(json_str(json_get(source, "objective"), STR_EMPTY));
    ret->outcome = json_get(source, "outcome");
    if (ret->objective.len == 0 || unicode_len(ret->objective) > LONGEST) {
        return section_fail(tree, s, source, e,
                            "an example needs an 'objective' of at most %d "
                            "characters",
                            LONGEST);
    }
    if (ret->outcome == NULL) {
        return section_fail(tree, s, source, e, "an example needs an 'outcome'");
    }
    if (json_len(json_get(source, "steps")) == 0) {
        return section_fail(tree, s, source, e, "an example needs 'steps'");
    }
    int r = parse_steps(tree, s, json_get(source, "steps"), ret, e);
    section_example_hash(ret);
    return r;
}

void section_example_hash(struct section_example *example)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *o = json_object(a);
    struct json *steps = json_array(a);
    for (size_t i = 0; i < example->steps_len; i++) {
        struct json *step = json_object(a);
        json_setc(a, step, "tool", json_string(a, example->steps[i].tool));
        json_setc(a, step, "description", json_string(a, example->steps[i].description));
        json_push(a, steps, step);
    }
    json_setc(a, o, "objective", json_string(a, example->objective));
    json_setc(a, o, "steps", steps);
    json_setc(a, o, "outcome", json_copy(a, example->outcome));
    section_hash_json(o, example->hash);
}

int section_examples_new(struct section_tree *tree, struct section *owner,
                         const struct json *examples, struct err *e)
{
    for (size_t i = 0; i < json_len(examples); i++) {
        const struct json *source = json_item(examples, i);
        struct section *s = section_add(tree, owner, source);
        s->example = ARENA_NEW(tree->arena, struct section_example);
        s->example->index = i;
        int r = section_set_key(tree, s, json_get(source, "key"), e);
        r = r < 0 ? r : section_example_parse(tree, s, source, s->example, e);
        if (r < 0) {
            return r;
        }
        struct str title = str_trim(json_str(json_get(source, "title"), STR_EMPTY));
        s->title =
            title.len > 0 ? title : section_example_title(tree->arena, s->example->objective);
    }
    return 0;
}

static void write_value(struct buf *out, const struct json *v, const char *language)
{
    CLEANUP(buf) struct buf text = BUF_INIT((size_t)1 << 30);
    section_json_write(&text, v, SECTION_JSON_PLAIN);
    write_fenced(out, buf_str(&text), language, "     ");
    buf_adds(out, "\n");
}

void section_example_write(struct buf *out, const struct section_example *example)
{
    buf_addf(out, "**Objective:** %.*s\n\n**Steps:**\n\n", STR_ARG(example->objective));
    for (size_t i = 0; i < example->steps_len; i++) {
        const struct section_step *step = &example->steps[i];
        buf_addf(out, "%zu. **%.*s** - %.*s\n   - input:\n", i + 1, STR_ARG(step->tool),
                 STR_ARG(step->description));
        write_value(out, step->input, "json");
        buf_adds(out, "   - output:\n");
        write_value(out, step->output, "");
        buf_adds(out, "\n");
    }
    buf_adds(out, "**Outcome:** ");
    if (json_is(example->outcome, JSON_STRING)) {
        buf_add(out, example->outcome->string);
    } else {
        section_json_write(out, example->outcome, SECTION_JSON_PLAIN);
    }
}

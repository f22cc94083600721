/* SPDX-License-Identifier: MIT
 *
 * Overrides of task examples: another objective or outcome, steps changed, removed or added, whole
 * examples removed or added.
 */
#include "prompt/section_priv.h"

#include "prompt/section_override_priv.h"

/* --- steps --- */

static int edit_step(struct section_override *o, const struct json *entry,
                     struct section_step *step)
{
    const struct json *tool;
    const struct json *description;
    int r = section_override_text(o, entry, "tool_name", &tool);
    r = r < 0 ? r : section_override_text(o, entry, "description", &description);
    r = r < 0 ? r : section_override_value(o, entry, "input", &step->input);
    r = r < 0 ? r : section_override_value(o, entry, "output", &step->output);
    if (r < 0) {
        return r;
    }
    step->tool = json_str(tool, step->tool);
    step->description = json_str(description, step->description);
    return 0;
}

static int step_list(struct section_override *o, const struct json *entry, const char *member,
                     const struct json **ret)
{
    const struct json *list = json_get(entry, member);
    *ret = json_is(list, JSON_NULL) ? NULL : list;
    if (*ret != NULL && !json_is(list, JSON_ARRAY)) {
        return section_override_fail(o, list, "'%s' must be a list", member);
    }
    return 0;
}

static int change_steps(struct section_override *o, const struct json *list,
                        struct section_example *x)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *entry = json_item(list, i);
        const struct json *index = json_get(entry, "index");
        if (!json_is(index, JSON_INT)) {
            return section_override_fail(o, entry, "'index' of a step must be an integer");
        }
        if (index->integer < 0 || (uint64_t)index->integer >= x->steps_len) {
            section_override_drop(o, "step of task example", x->objective, "unknown");
            continue;
        }
        int r = edit_step(o, entry, &x->steps[index->integer]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static bool is_removed(const struct json *list, size_t step)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (json_int(json_item(list, i), -1) == (int64_t)step) {
            return true;
        }
    }
    return false;
}

/* Steps keep their original indices until all changes are made; then some go and some come. */
static int edit_steps(struct section_override *o, const struct json *entry,
                      struct section_example *x)
{
    const struct json *changed;
    const struct json *removed;
    const struct json *added;
    int r = step_list(o, entry, "step_overrides", &changed);
    r = r < 0 ? r : step_list(o, entry, "steps_to_remove", &removed);
    r = r < 0 ? r : step_list(o, entry, "steps_to_append", &added);
    r = r < 0 ? r : change_steps(o, changed, x);
    if (r < 0) {
        return r;
    }
    struct section_step *steps =
        arena_array(o->tree->arena, x->steps_len + json_len(added), sizeof *steps);
    size_t len = 0;
    for (size_t i = 0; i < x->steps_len; i++) {
        if (!is_removed(removed, i)) {
            steps[len++] = x->steps[i];
        }
    }
    for (size_t i = 0; i < json_len(added) && r == 0; i++) {
        r = edit_step(o, json_item(added, i), &steps[len]);
        if (r == 0 && steps[len].tool.len == 0) {
            return section_override_fail(o, json_item(added, i), "a new step needs a 'tool_name'");
        }
        len++;
    }
    x->steps = steps;
    x->steps_len = len;
    return r;
}

/* --- examples --- */

static int edit(struct section_override *o, const struct json *entry, struct section *s)
{
    struct section_example *x = s->example;
    const struct json *objective;
    const struct json *outcome;
    int r = section_override_text(o, entry, "objective", &objective);
    r = r < 0 ? r : section_override_text(o, entry, "outcome", &outcome);
    r = r < 0 ? r : edit_steps(o, entry, x);
    if (r < 0) {
        return r;
    }
    if (objective != NULL) {
        x->objective = str_trim(objective->string);
        bool titled = json_is(json_get(s->source, "title"), JSON_STRING);
        s->title = titled ? s->title : section_example_title(o->tree->arena, x->objective);
    }
    x->outcome = outcome != NULL ? outcome : x->outcome;
    s->overridden = true;
    if (x->objective.len == 0 || x->outcome == NULL || x->steps_len == 0) {
        return section_override_fail(o, entry,
                                     "a task example needs an objective, an outcome and steps");
    }
    return 0;
}

static int append(struct section_override *o, const struct json *entry, struct section *owner)
{
    size_t count = 0;
    for (size_t i = owner->at + 1; i < owner->end; i = o->tree->nodes[i]->end) {
        count += o->tree->nodes[i]->example != NULL;
    }
    struct arena *a = o->tree->arena;
    struct section *s = section_insert(o->tree, owner, entry);
    s->example = ARENA_NEW(a, struct section_example);
    s->example->index = count;
    struct json *key = json_cstr(a, arena_printf(a, "example-%zu", count + 1));
    int r = section_set_key(o->tree, s, key, o->e);
    r = r < 0 ? r : edit(o, entry, s);
    section_tree_number(o->tree);
    return r;
}

static struct section *example_at(const struct section_tree *tree, struct section *s, size_t index)
{
    if (s->example != NULL) {
        return s;
    }
    for (size_t i = s->at + 1; i < s->end; i = tree->nodes[i]->end) {
        struct section *child = tree->nodes[i];
        if (child->example != NULL && child->example->index == index) {
            return child;
        }
    }
    return NULL;
}

static int read_path(struct section_override *o, const struct json *entry, struct str *ret)
{
    const struct json *path = json_get(entry, "path");
    if (!json_is(path, JSON_ARRAY)) {
        return section_override_fail(o, path == NULL ? entry : path,
                                     "'path' must be a list of keys");
    }
    const char *dotted = "";
    for (size_t i = 0; i < path->array.len; i++) {
        struct str key = json_str(path->array.items[i], STR_EMPTY);
        dotted = arena_printf(o->tree->arena, "%s%s%.*s", dotted, i == 0 ? "" : ".", STR_ARG(key));
    }
    *ret = str_of(dotted);
    return 0;
}

static int apply(struct section_override *o, const struct json *entry)
{
    struct section_override_request q;
    struct str path = STR_EMPTY;
    int r = section_override_request(o, entry, &q);
    r = r < 0 ? r : read_path(o, entry, &path);
    if (r < 0) {
        return r;
    }
    struct section *s = section_find(o->tree, path);
    if (s != NULL && q.action == OVERRIDE_APPEND) {
        return append(o, entry, s->example != NULL && s->parent != NULL ? s->parent : s);
    }
    s = s == NULL || q.negative ? NULL : example_at(o->tree, s, q.index);
    if (s == NULL) {
        section_override_drop(o, "task example", path, "unknown");
        return 0;
    }
    r = section_override_match(o, entry, "expected_hash", s->example->hash);
    if (r <= 0) {
        if (r == 0) {
            section_override_drop(o, "task example", path, "stale");
        }
        return r;
    }
    s->example->removed = q.action == OVERRIDE_REMOVE;
    return s->example->removed ? 0 : edit(o, entry, s);
}

int section_override_task_examples(struct section_override *o, const struct json *examples)
{
    int r = 0;
    if (examples == NULL || json_is(examples, JSON_NULL)) {
        return 0;
    }
    if (!json_is(examples, JSON_ARRAY)) {
        return section_override_fail(o, examples, "'task_example_overrides' must be a list");
    }
    for (size_t i = 0; i < examples->array.len && r >= 0; i++) {
        r = apply(o, examples->array.items[i]);
    }
    return r < 0 ? r : 0;
}

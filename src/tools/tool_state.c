/* SPDX-License-Identifier: MIT
 *
 * One table of operations says what each needs; the rest follows from it.
 */
#include "tools/tool_state.h"

#include "base/macro.h"
#include "record/state_store.h"

enum need { NEVER, MAYBE, ALWAYS, LIST };

static const struct op {
    const char *name;
    const char *target; /* the member that names the slice or the event */
    enum need value, key;
    enum store_change_kind kind; /* unless it is a dispatch */
    bool dispatch;
} ops[] = {
    { "append", "slice", ALWAYS, NEVER, CHANGE_APPEND, false },
    { "extend", "slice", LIST, NEVER, CHANGE_EXTEND, false },
    { "replace", "slice", LIST, NEVER, CHANGE_REPLACE, false },
    { "clear", "slice", MAYBE, MAYBE, CHANGE_CLEAR, false },
    { "dispatch", "event", ALWAYS, NEVER, CHANGE_APPEND, true },
};

bool tool_state_reserved(struct str slice)
{
    static const char *const names[] = { "PromptRendered", "RenderedTools",       "ToolInvoked",
                                         "PromptExecuted", "VisibilityOverrides", "Feedback" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqc(slice, names[i])) {
            return true;
        }
    }
    return str_starts(slice, STR("policy:"));
}

static const struct op *find_op(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (str_eqc(name, ops[i].name)) {
            return &ops[i];
        }
    }
    return NULL;
}

static int check_members(const struct op *op, const struct json *change, struct err *e)
{
    for (size_t i = 0; i < change->object.len; i++) {
        struct str key = change->object.members[i].key;
        bool known = str_eqc(key, "op") || str_eqc(key, op->target) ||
                     (str_eqc(key, "value") && op->value != NEVER) ||
                     (str_eqc(key, "key") && op->key != NEVER);
        if (!known) {
            return ERR(e, ERR_CONFIG, "%s has no member '%.*s'", op->name,
                       STR_ARG(str_slice(key, 0, TOOL_STATE_NAME_MAX)));
        }
    }
    return 0;
}

static int check_target(const struct op *op, const struct json *change, struct err *e)
{
    struct str name = json_str(json_get(change, op->target), STR_EMPTY);
    if (name.len == 0 || name.len > TOOL_STATE_NAME_MAX || str_has_nul(name)) {
        return ERR(e, ERR_CONFIG, "%s needs '%s', a name of 1 to %d bytes", op->name, op->target,
                   TOOL_STATE_NAME_MAX);
    }
    if (tool_state_reserved(name)) {
        return ERR(e, ERR_CONFIG, "'%.*s' is not a tool's to change", STR_ARG(name));
    }
    return 0;
}

static int check_value(const struct op *op, const struct json *change, size_t *items, struct err *e)
{
    const struct json *value = json_get(change, "value");
    const struct json *key = json_get(change, "key");
    if (op->value == ALWAYS && value == NULL) {
        return ERR(e, ERR_CONFIG, "%s needs a 'value'", op->name);
    }
    if (op->value == LIST && !json_is(value, JSON_ARRAY)) {
        return ERR(e, ERR_CONFIG, "%s needs a 'value' that is a list", op->name);
    }
    *items += op->value == LIST ? json_len(value) : 1;
    if (*items > TOOL_STATE_ITEMS_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d items", TOOL_STATE_ITEMS_MAX);
    }
    if ((key == NULL) != (value == NULL) && op->key == MAYBE) {
        return ERR(e, ERR_CONFIG, "%s needs both 'key' and 'value', or neither", op->name);
    }
    struct str pointer = json_str(key, STR_EMPTY);
    if (key != NULL && (pointer.len < 2 || pointer.ptr[0] != '/' ||
                        pointer.len > TOOL_STATE_KEY_MAX || str_has_nul(pointer))) {
        return ERR(e, ERR_CONFIG, "'key' must be a JSON Pointer such as /id");
    }
    return 0;
}

static int check_change(const struct json *change, size_t *items, struct err *e)
{
    if (!json_is(change, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "must be an object");
    }
    const struct op *op = find_op(json_str(json_get(change, "op"), STR_EMPTY));
    if (op == NULL) {
        return ERR(e, ERR_CONFIG, "'op' must be append, extend, replace, clear or dispatch");
    }
    int r = check_members(op, change, e);
    r = r < 0 ? r : check_target(op, change, e);
    return r < 0 ? r : check_value(op, change, items, e);
}

int tool_state_check(const struct json *state, struct err *e)
{
    size_t items = 0;
    if (state == NULL || json_is(state, JSON_NULL)) {
        return 0;
    }
    if (!json_is(state, JSON_ARRAY)) {
        return ERR(e, ERR_CONFIG, "state: must be a list of changes");
    }
    if (json_len(state) > TOOL_STATE_OPS_MAX) {
        return ERR(e, ERR_LIMIT, "state: more than %d changes", TOOL_STATE_OPS_MAX);
    }
    for (size_t i = 0; i < json_len(state); i++) {
        int r = check_change(json_item(state, i), &items, e);
        if (r < 0) {
            return err_wrap(e, "state: change %zu", i + 1);
        }
    }
    return 0;
}

static int apply(struct store_txn *t, const struct json *change, struct err *e)
{
    const struct op *op = find_op(json_str(json_get(change, "op"), STR_EMPTY));
    struct str target = json_str(json_get(change, op->target), STR_EMPTY);
    const struct json *value = json_get(change, "value");
    if (op->dispatch) {
        return store_txn_dispatch(t, target, value, e);
    }
    struct store_change c = {
        .kind = op->kind,
        .slice = target,
        .value = value,
        .key = json_str(json_get(change, "key"), STR_EMPTY),
    };
    return store_txn_apply(t, &c, e);
}

int tool_state_apply(struct store_txn *t, const struct json *state, struct err *e)
{
    int r = tool_state_check(state, e);
    for (size_t i = 0; r == 0 && i < json_len(state); i++) {
        r = apply(t, json_item(state, i), e);
        if (r < 0) {
            return err_wrap(e, "state: change %zu", i + 1);
        }
    }
    return r;
}

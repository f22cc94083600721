/* SPDX-License-Identifier: MIT
 *
 * What a session looks like outside: the journal that survives a kill, and snapshots as documents.
 *
 * A journal line is one commit: a change {"slice","policy","op","value"?,"key"?}, op one of append,
 * extend, replace, clear, or a list of changes. A kill leaves whole commits, or a last line without
 * its end, which does not count.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "record/redact.h"
#include "record/state_store_priv.h"

static const char *const change_names[] = {
    [CHANGE_APPEND] = "append",
    [CHANGE_EXTEND] = "extend",
    [CHANGE_REPLACE] = "replace",
    [CHANGE_CLEAR] = "clear",
};
static const char *const policy_names[] = { [SLICE_STATE] = "state", [SLICE_LOG] = "log" };

#define JOURNAL_COMMIT_MAX ((size_t)64 << 20)

static int word(struct str s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eqc(s, words[i])) {
            return (int)i;
        }
    }
    return -1;
}

/* --- journal --- */

static int change_add(const struct state_store *s, const struct store_change *c, struct buf *out,
                      struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    size_t index = store_index(s, c->slice);
    struct json *line = json_object(a);
    json_setc(a, line, "slice", json_string(a, c->slice));
    json_setc(a, line, "policy", json_cstr(a, policy_names[s->slices[index].policy]));
    json_setc(a, line, "op", json_cstr(a, change_names[c->kind]));
    if (c->value != NULL) {
        json_setc(a, line, "value", redact_json(s->redactor, a, (struct json *)c->value));
    }
    if (c->key.len > 0) {
        json_setc(a, line, "key", json_string(a, c->key));
    }
    return json_write(line, JSON_COMPACT, out, e);
}

/* The n-th change of a commit, counted from 0: the line is opened with the first. */
static int commit_add(const struct state_store *s, const struct store_change *c, size_t n,
                      struct buf *out, struct err *e)
{
    int r = buf_append_c(out, n == 0 ? '[' : ',', e);
    return r < 0 ? r : change_add(s, c, out, e);
}

/* All or nothing: half a line would spoil the one that comes after it. */
static int append_all(int fd, struct str bytes, struct err *e)
{
    off_t before = lseek(fd, 0, SEEK_END);
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            int r = ERR_SYS_AS(e, ERR_OUTPUT, "write the session's journal");
            int cut = before < 0 ? 0 : ftruncate(fd, before);
            (void)cut; /* a device has no end to cut */
            return r;
        }
        bytes = str_slice(bytes, (size_t)n, bytes.len);
    }
    return 0;
}

/* One change needs no list around it. */
static int commit_write(struct state_store *s, struct buf *line, size_t n, struct err *e)
{
    if (n == 0) {
        return 0;
    }
    int r = n == 1 ? 0 : buf_append_c(line, ']', e);
    r = r < 0 ? r : buf_append_c(line, '\n', e);
    return r < 0 ? r : append_all(s->journal_fd, str_slice(buf_str(line), n == 1, line->len), e);
}

int store_journal(struct state_store *s, const struct store_pending *first, bool logs_only,
                  struct err *e)
{
    if (s->journal_fd < 0) {
        return 0;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(JOURNAL_COMMIT_MAX);
    size_t n = 0;
    for (const struct store_pending *p = first; p != NULL; p = p->next) {
        size_t i = store_index(s, p->change.slice);
        if (logs_only && s->slices[i].policy != SLICE_LOG) {
            continue;
        }
        int r = commit_add(s, &p->change, n++, &out, e);
        if (r < 0) {
            return r;
        }
    }
    return commit_write(s, &out, n, e);
}

static struct json *items_of(const struct state_store *s, struct arena *a, struct str slice)
{
    struct json *items = json_array(a);
    for (size_t i = 0; i < store_len(s, NULL, slice); i++) {
        json_push(a, items, (struct json *)store_item(s, NULL, slice, i));
    }
    return items;
}

int store_journal_all(struct state_store *s, struct err *e)
{
    if (s->journal_fd < 0) {
        return 0;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(JOURNAL_COMMIT_MAX);
    for (size_t i = 0; i < s->n_slices; i++) {
        struct store_change c = { .kind = CHANGE_REPLACE, .slice = s->slices[i].name };
        c.value = items_of(s, a, c.slice);
        int r = commit_add(s, &c, i, &out, e);
        if (r < 0) {
            return r;
        }
    }
    return commit_write(s, &out, s->n_slices, e);
}

static int replay_change(struct store_txn *t, const struct json *line, struct err *e)
{
    struct store_change c = {
        .slice = json_str(json_get(line, "slice"), STR_EMPTY),
        .key = json_str(json_get(line, "key"), STR_EMPTY),
        .value = json_get(line, "value"),
    };
    int kind = word(json_str(json_get(line, "op"), STR_EMPTY), change_names, 4);
    int policy = word(json_str(json_get(line, "policy"), STR_EMPTY), policy_names, 2);
    if (kind < 0 || policy < 0) {
        return ERR(e, ERR_PARSE, "unknown operation or policy");
    }
    c.kind = (enum store_change_kind)kind;
    int r = store_declare(t->session, c.slice, (enum slice_policy)policy, e);
    return r < 0 ? r : store_txn_apply(t, &c, e);
}

static int replay_line(struct state_store *s, struct str text, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *line;
    int r = json_parse(a, text, NULL, &line, e);
    if (r < 0) {
        return r;
    }
    bool list = json_is(line, JSON_ARRAY);
    if (list && json_len(line) == 0) {
        return ERR(e, ERR_PARSE, "a commit without changes");
    }
    struct store_txn *t = store_begin(s);
    for (size_t i = 0; r == 0 && i < (list ? json_len(line) : 1); i++) {
        r = replay_change(t, list ? json_item(line, i) : line, e);
    }
    if (r < 0) {
        (void)!store_abort(t, NULL);
        return r;
    }
    return store_commit(t, e);
}

int store_replay(struct state_store *s, struct str journal, struct err *e)
{
    int fd = s->journal_fd;
    s->journal_fd = -1;
    int r = 0;
    for (size_t number = 1; r == 0; number++) {
        const char *end = memchr(journal.ptr, '\n', journal.len);
        if (journal.len == 0 || end == NULL) {
            break;
        }
        size_t len = (size_t)(end - journal.ptr);
        r = replay_line(s, str_slice(journal, 0, len), e);
        if (r < 0) {
            (void)err_wrap(e, "session journal, line %zu", number);
        }
        journal = str_slice(journal, len + 1, journal.len);
    }
    s->journal_fd = fd;
    return r;
}

/* --- snapshots as documents --- */

static int by_name(const void *x, const void *y)
{
    const struct store_slice *a = *(const struct store_slice *const *)x;
    const struct store_slice *b = *(const struct store_slice *const *)y;
    return str_cmp(a->name, b->name);
}

static struct json *tags_of(const struct state_store *s, struct arena *a)
{
    struct json *tags = json_object(a);
    json_setc(a, tags, "session_id", json_string(a, s->id));
    if (s->parent_id.len > 0) {
        json_setc(a, tags, "parent_session_id", json_string(a, s->parent_id));
    }
    return tags;
}

struct json *store_save(const struct state_store *s, struct arena *a, struct str now, bool all)
{
    const struct store_slice *sorted[SESSION_SLICES_MAX];
    for (size_t i = 0; i < s->n_slices; i++) {
        sorted[i] = &s->slices[i];
    }
    qsort(sorted, s->n_slices, sizeof(sorted[0]), by_name);
    struct json *slices = json_array(a);
    struct json *policies = json_object(a);
    for (size_t i = 0; i < s->n_slices; i++) {
        struct str name = sorted[i]->name;
        json_set(a, policies, name, json_cstr(a, policy_names[sorted[i]->policy]));
        if (store_len(s, NULL, name) == 0 || (sorted[i]->policy == SLICE_LOG && !all)) {
            continue;
        }
        struct json *slice = json_object(a);
        json_setc(a, slice, "slice_type", json_string(a, name));
        json_setc(a, slice, "item_type", json_string(a, name));
        json_setc(a, slice, "items", items_of(s, a, name));
        json_push(a, slices, slice);
    }
    struct json *v = json_object(a);
    json_setc(a, v, "version", json_cstr(a, "1"));
    json_setc(a, v, "created_at", json_string(a, now));
    json_setc(a, v, "parent_id",
              s->parent_id.len == 0 ? json_null(a) : json_string(a, s->parent_id));
    json_setc(a, v, "children_ids", json_array(a));
    json_setc(a, v, "slices", slices);
    json_setc(a, v, "tags", tags_of(s, a));
    json_setc(a, v, "policies", policies);
    return v;
}

/* Every slice of the document is declared here and is a list. */
static int load_check(const struct state_store *s, const struct json *slices, struct err *e)
{
    CLEANUP(buf) struct buf missing = BUF_INIT(4096);
    for (size_t i = 0; i < json_len(slices); i++) {
        const struct json *slice = json_item(slices, i);
        struct str name = json_str(json_get(slice, "slice_type"), STR_EMPTY);
        if (!json_is(json_get(slice, "items"), JSON_ARRAY)) {
            return ERR(e, ERR_PARSE, "slices[%zu]: no list of items", i);
        }
        if (store_index(s, name) == SIZE_MAX && missing.len < 300) {
            buf_addf(&missing, "%s%.*s", missing.len > 0 ? ", " : "", (int)(name.len % 256),
                     name.ptr);
        }
    }
    return missing.len == 0
               ? 0
               : ERR(e, ERR_CONFIG, "slice types not registered: %.*s", STR_ARG(buf_str(&missing)));
}

int store_load(struct state_store *s, const struct json *saved, struct err *e)
{
    if (!str_eqc(json_str(json_get(saved, "version"), STR_EMPTY), "1")) {
        return ERR(e, ERR_PARSE, "no session snapshot of version \"1\"");
    }
    const struct json *slices = json_get(saved, "slices");
    int r = json_is(slices, JSON_ARRAY) ? load_check(s, slices, e)
                                        : ERR(e, ERR_PARSE, "slices: no list");
    if (r < 0) {
        return r;
    }
    struct store_txn *t = store_begin(s);
    for (size_t i = 0; r == 0 && i < s->n_slices; i++) {
        struct store_change c = { .kind = CHANGE_CLEAR, .slice = s->slices[i].name };
        r = s->slices[i].policy == SLICE_STATE ? store_txn_apply(t, &c, e) : 0;
    }
    for (size_t i = 0; r == 0 && i < json_len(slices); i++) {
        const struct json *slice = json_item(slices, i);
        struct store_change c = { .kind = CHANGE_REPLACE, .value = json_get(slice, "items") };
        c.slice = json_str(json_get(slice, "slice_type"), STR_EMPTY);
        r = store_txn_apply(t, &c, e);
    }
    return r < 0 ? r : store_commit(t, e);
}

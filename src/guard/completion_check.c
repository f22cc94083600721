/* SPDX-License-Identifier: MIT
 *
 * Whether a task is done: a walk over the tree of checks that waits where one is a program.
 */
#include "guard/completion_check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "data/schema.h"
#include "guard/completion_check_priv.h"
#include "proc/helper_program.h"
#include "prompt/structured.h"
#include "prompt/tagged.h"
#include "record/state_store.h"
#include "workspace/wspath.h"

#define TAG       "blocker"
#define NAMES_MAX 3    /* of missing files that are told */
#define TAIL_MAX  1500 /* bytes of a command's output, and of its errors */

enum outcome { HOLDS, FAILS, LATER };

/* Where the texts of a node begin. */
struct mark {
    size_t feedback, why;
};

struct completion_check {
    struct completion *completion; /* NULL: nobody waits for it any more */
    struct completion_check *prev, *next;
    bool linked;
    struct arena *arena;
    struct completion_claim claim;
    const struct completion_node *at; /* the one whose program runs */
    struct mark *marks;               /* by node */
    struct buf feedback, why;
    struct helper *helper;
    void (*judged)(void *arg, const struct completion_verdict *v);
    void *arg;
};

int completion_new(const struct completion_opts *o, struct completion **ret, struct err *e)
{
    struct completion *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    c->opts = *o;
    c->root = str_of(o->root != NULL || o->host == NULL ? o->root : o->host->cwd);
    int r = completion_read(c, e);
    if (r < 0) {
        (void)completion_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

struct completion *completion_free(struct completion *c)
{
    if (c == NULL) {
        return NULL;
    }
    while (c->checks != NULL) {
        completion_cancel(c->checks);
    }
    for (size_t i = 0; i < c->n; i++) {
        c->nodes[i]->schema = schema_free(c->nodes[i]->schema);
    }
    c->arena = arena_free(c->arena);
    free(c);
    return NULL;
}

bool completion_wanted(const struct completion *c)
{
    return c->nodes[0]->child != NULL;
}

int64_t completion_rounds(const struct completion *c)
{
    return c->rounds;
}

/* --- what is told --- */

static void sentence_begins(struct completion_check *x, const char *what)
{
    buf_adds(&x->feedback, x->feedback.len > 0 ? " " : "");
    buf_addf(&x->why, "%s%s", x->why.len > 0 ? ", " : "", what);
}

static void add_tail(struct buf *out, const char *title, struct str text)
{
    text = tagged_tail(text, TAIL_MAX);
    if (text.len > 0) {
        buf_addf(out, "\n%s\n%.*s", title, STR_ARG(text));
    }
}

/* --- checks --- */

static bool there(const struct completion_check *x, const char *path)
{
    const struct completion_opts *o = &x->completion->opts;
    const char *folded;
    return o->exists != NULL && wspath_fold(x->arena, x->completion->root, str_of(path), &folded) &&
           o->exists(o->arg, str_of(folded));
}

static enum outcome look_files(struct completion_check *x, const struct completion_node *node)
{
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    size_t missing = 0;
    for (const char **file = node->files; *file != NULL; file++) {
        if (!there(x, *file)) {
            missing++;
            if (missing <= NAMES_MAX) {
                buf_addf(&names, "%s%s", missing > 1 ? ", " : "", *file);
            }
        }
    }
    if (missing == 0) {
        return HOLDS;
    }
    sentence_begins(x, "files");
    buf_addf(&x->feedback, "%zu required file%s missing: %.*s%s", missing,
             missing == 1 ? " is" : "s are", STR_ARG(buf_str(&names)),
             missing > NAMES_MAX ? ", ..." : ".");
    return FAILS;
}

static bool fits(const struct json *item, const struct json *where)
{
    for (size_t i = 0; i < json_len(where); i++) {
        const struct json_member *m = &where->object.members[i];
        const struct json *v = json_pointer(item, m->key);
        if (v == NULL || !json_equal(v, m->value)) {
            return false;
        }
    }
    return true;
}

static void tell_session(struct completion_check *x, const struct completion_predicate *p,
                         size_t fitting, size_t len)
{
    struct buf *out = &x->feedback;
    sentence_begins(x, "session");
    buf_addf(out, "Of the %zu item%s in '%.*s', %zu", len, len == 1 ? "" : "s", STR_ARG(p->slice),
             fitting);
    if (p->where != NULL) {
        buf_adds(out, " fit ");
        if (json_write(p->where, JSON_COMPACT, out, NULL) < 0) {
            buf_adds(out, "the condition");
        }
    } else {
        buf_adds(out, " count");
    }
    if (p->every) {
        buf_adds(out, "; every item must");
    }
    buf_addf(out, "; wanted: at least %" PRId64, p->min);
    if (p->max >= 0) {
        buf_addf(out, ", at most %" PRId64, p->max);
    }
    buf_adds(out, ".");
}

static enum outcome look_session(struct completion_check *x, const struct completion_node *node)
{
    const struct completion_predicate *p = &node->predicate;
    const struct state_store *s = x->completion->opts.session;
    size_t len = s == NULL ? 0 : store_len(s, NULL, p->slice);
    size_t fitting = 0;
    for (size_t i = 0; i < len; i++) {
        fitting += fits(store_item(s, NULL, p->slice, i), p->where);
    }
    bool enough = fitting >= (size_t)p->min && (p->max < 0 || fitting <= (size_t)p->max);
    if (enough && (!p->every || fitting == len)) {
        return HOLDS;
    }
    tell_session(x, p, fitting, len);
    return FAILS;
}

static enum outcome look_schema(struct completion_check *x, const struct completion_node *node)
{
    struct structured_options o = { .schema = node->schema, .wanted = node->wanted };
    struct structured_result result = { 0 };
    struct err e;
    int r = x->claim.output != NULL
                ? structured_accept(x->claim.output, STRUCTURED_NATIVE, &o, x->arena, &result, &e)
                : structured_parse(x->claim.text, &o, x->arena, &result, &e);
    if (r == 0) {
        return HOLDS;
    }
    struct str why = result.failure.message.len > 0 ? result.failure.message : str_of(e.msg);
    sentence_begins(x, "schema");
    buf_addf(&x->feedback, "The result does not fit its schema: %.*s", STR_ARG(why));
    return FAILS;
}

static enum outcome look_callback(struct completion_check *x, const struct completion_node *node)
{
    const struct completion_callback *c = node->callback;
    struct str text = STR_EMPTY;
    if (c->check(c->arg, &x->claim, &text)) {
        return HOLDS;
    }
    sentence_begins(x, c->name == NULL ? "callback" : c->name);
    buf_add(&x->feedback, text);
    return FAILS;
}

static void walk_on(struct completion_check *x, enum outcome o);

static void check_free(struct completion_check *x)
{
    buf_done(&x->feedback);
    buf_done(&x->why);
    x->arena = arena_free(x->arena);
    free(x);
}

static void tell_command(struct completion_check *x, const struct helper_spec *command,
                         const struct helper_result *r)
{
    sentence_begins(x, "command");
    buf_addf(&x->feedback, "The check '%s", command->argv[0]);
    for (const char *const *arg = command->argv + 1; *arg != NULL; arg++) {
        buf_addf(&x->feedback, " %s", *arg);
    }
    buf_addf(&x->feedback, "' does not pass: %s.", r->why == NULL ? "it failed" : r->why);
    add_tail(&x->feedback, "The end of its output:", r->out);
    add_tail(&x->feedback, "The end of its errors:", r->err);
}

static void answered(void *arg, const struct helper_result *r)
{
    struct completion_check *x = arg;
    x->helper = NULL;
    if (x->completion == NULL) {
        check_free(x);
        return;
    }
    bool passed = r->end == HELPER_EXITED && r->value == 0;
    if (!passed) {
        tell_command(x, &x->at->command, r);
    }
    walk_on(x, passed ? HOLDS : FAILS);
}

static enum outcome look_command(struct completion_check *x, const struct completion_node *node)
{
    struct err e;
    const struct helper_host *host = x->completion->opts.host;
    x->helper = helper_spec_start(&node->command, host, STR_EMPTY, answered, x, &e);
    if (x->helper != NULL) {
        return LATER;
    }
    if (host == NULL) {
        buf_addf(&x->why, "%scommand: %s", x->why.len > 0 ? ", " : "", e.msg);
        return FAILS; /* no further round would help */
    }
    tell_command(x, &node->command, &(struct helper_result) { .why = e.msg });
    return FAILS;
}

static enum outcome look(struct completion_check *x, const struct completion_node *node)
{
    switch (node->kind) {
    case COMPLETION_FILES:
        return look_files(x, node);
    case COMPLETION_SESSION:
        return look_session(x, node);
    case COMPLETION_SCHEMA:
        return look_schema(x, node);
    case COMPLETION_COMMAND:
        return look_command(x, node);
    case COMPLETION_CALLBACK:
        return look_callback(x, node);
    case COMPLETION_ALL:
    case COMPLETION_ANY:
        break;
    }
    return HOLDS; /* an empty list */
}

/* --- the walk --- */

static void check_unlink(struct completion_check *x)
{
    if (x->linked) {
        *(x->prev == NULL ? &x->completion->checks : &x->prev->next) = x->next;
        if (x->next != NULL) {
            x->next->prev = x->prev;
        }
    }
    x->linked = false;
    x->completion = NULL;
}

static void judge(struct completion_check *x, enum outcome o)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (o != HOLDS && str_trim(buf_str(&x->feedback)).len > 0) {
        buf_adds(&text, "<" TAG ">\n");
        tagged_add(&text, TAG, buf_str(&x->feedback), COMPLETION_TEXT_MAX);
        buf_adds(&text, "\n</" TAG ">");
    }
    struct completion_verdict v = {
        .complete = o == HOLDS,
        .feedback = buf_str(&text),
        .why = o == HOLDS ? STR_EMPTY : buf_str(&x->why),
    };
    check_unlink(x);
    x->judged(x->arg, &v);
    check_free(x);
}

/* `node` is settled: the one to look at next, or NULL when that settles everything. */
static const struct completion_node *settle(struct completion_check *x,
                                            const struct completion_node *node, enum outcome o)
{
    for (const struct completion_node *p = node->parent; p != NULL; node = p, p = p->parent) {
        bool decided = p->kind == COMPLETION_ANY ? o == HOLDS : o == FAILS;
        if (!decided && node->next != NULL) {
            return node->next;
        }
        if (o == HOLDS) { /* what did not hold below does not matter */
            x->feedback.len = x->marks[p->index].feedback;
            x->why.len = x->marks[p->index].why;
        }
    }
    return NULL;
}

static void enter(struct completion_check *x, const struct completion_node *node)
{
    x->marks[node->index] = (struct mark) { x->feedback.len, x->why.len };
}

/* true: it is judged, and the check is gone. */
static bool walk(struct completion_check *x, const struct completion_node *node)
{
    enum outcome o = HOLDS;
    while (node != NULL) {
        enter(x, node);
        while (node->child != NULL) {
            node = node->child;
            enter(x, node);
        }
        o = look(x, node);
        if (o == LATER) {
            x->at = node;
            return false;
        }
        node = settle(x, node, o);
    }
    judge(x, o);
    return true;
}

static void walk_on(struct completion_check *x, enum outcome o)
{
    const struct completion_node *next = settle(x, x->at, o);
    if (next == NULL) {
        judge(x, o);
    } else {
        (void)walk(x, next);
    }
}

/* The caller's values end with his call of ours. */
static void keep(struct completion_check *x)
{
    struct completion_claim *claim = &x->claim;
    struct completion *c = x->completion;
    claim->text = arena_str(x->arena, claim->text);
    claim->output = claim->output == NULL ? NULL : json_copy(x->arena, claim->output);
    claim->stop_reason =
        claim->stop_reason == NULL ? NULL : arena_dup(x->arena, str_of(claim->stop_reason));
    x->linked = true;
    x->next = c->checks;
    if (x->next != NULL) {
        x->next->prev = x;
    }
    c->checks = x;
}

void completion_check(struct completion *c, const struct completion_claim *claim,
                      void (*judged)(void *arg, const struct completion_verdict *v), void *arg,
                      struct completion_check **ret)
{
    struct completion_check *x = xcalloc(1, sizeof *x);
    x->completion = c;
    x->arena = arena_new();
    x->claim = *claim;
    x->marks = arena_array(x->arena, c->n, sizeof *x->marks);
    buf_init(&x->feedback, BUF_TEXT);
    buf_init(&x->why, BUF_TEXT);
    x->judged = judged;
    x->arg = arg;
    *ret = NULL;
    if (!walk(x, c->nodes[0])) {
        keep(x);
        *ret = x;
    }
}

void completion_cancel(struct completion_check *x)
{
    check_unlink(x);
    helper_cancel(x->helper); /* it is freed when the program is gone */
}

/* SPDX-License-Identifier: MIT
 *
 * When feedback is given. Each provider knows the call and the moment at which it spoke last, so
 * that a call costs the same however many there were. A round is one call's worth: programs of all
 * providers run side by side, and the texts stand in the order of the task.
 */
#include "guard/feedback.h"

#include <math.h>
#include <stdlib.h>

#include "guard/feedback_priv.h"
#include "proc/helper_program.h"
#include "record/state_store.h"
#include "workspace/wspath.h"

#define PROVIDERS_MAX 64
#define NAME_LEN      64
#define SLICE         "Feedback"

struct feedback {
    struct arena *arena;
    struct feedback_opts opts;
    struct str root;
    struct feedback_provider *providers;
    size_t n;
    int64_t calls;
    struct feedback_round *rounds;
};

struct slot {
    struct feedback_round *round;
    struct str name;
    const char *file; /* that made it speak; NULL: another trigger */
    struct json *record;
    struct helper *helper;
};

struct feedback_round {
    struct feedback *feedback; /* NULL: nobody waits for it any more */
    struct feedback_round *prev, *next;
    struct arena *arena;
    int64_t call_index;
    struct slot *slots;
    size_t n, pending;
    bool begun; /* all that will run is running */
    bool linked;
    void (*say)(void *arg, struct str text);
    void *arg;
};

/* --- reading the task --- */

static bool name_taken(const struct feedback *f, struct str name)
{
    for (size_t i = 0; i < f->n; i++) {
        if (str_eq(f->providers[i].name, name)) {
            return true;
        }
    }
    return false;
}

static struct str name_make(struct feedback *f, const char *kind)
{
    const char *name = kind;
    for (size_t i = 2; name_taken(f, str_of(name)); i++) {
        name = arena_printf(f->arena, "%s-%zu", kind, i);
    }
    return str_of(name);
}

/* It stands in an attribute, between single quotes. */
static bool name_ok(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c == 0x7f || c == '\'' || c == '"' || c == '<' || c == '>' || c == '&') {
            return false;
        }
    }
    return s.len <= NAME_LEN && str_is_utf8(s);
}

static int read_name(struct feedback *f, struct feedback_provider *p, struct str name,
                     struct err *e)
{
    if (!name_ok(name)) {
        return ERR(e, ERR_CONFIG,
                   "the name of a provider has at most %d bytes and no quotes or brackets",
                   NAME_LEN);
    }
    if (name.len > 0 && name_taken(f, name)) {
        return ERR(e, ERR_CONFIG, "feedback '%.*s' is there twice", STR_ARG(name));
    }
    p->name = arena_str(f->arena, name);
    return 0;
}

static int read_file(struct feedback *f, struct feedback_provider *p, const struct json *v,
                     struct err *e)
{
    struct str path = json_str(v, STR_EMPTY);
    if (path.len > 0 && path.ptr[0] == '/' && f->root.len == 0) {
        p->file = "."; /* nobody knows yet where the workspace will be */
        return 0;
    }
    return wspath_fold(f->arena, f->root, path, &p->file)
               ? 0
               : ERR(e, ERR_CONFIG, "on_file_created: '%.*s' is not in the workspace",
                     STR_ARG(str_slice(path, 0, 80)));
}

static bool given(const struct json *v)
{
    return v != NULL && !json_is(v, JSON_NULL);
}

static int read_triggers(struct feedback *f, struct feedback_provider *p,
                         const struct json *definition, struct err *e)
{
    const struct json *calls = json_get(definition, "every_n_calls");
    const struct json *seconds = json_get(definition, "every_n_seconds");
    const struct json *file = json_get(definition, "on_file_created");
    if (!given(calls) && !given(seconds) && !given(file)) {
        return ERR(e, ERR_CONFIG,
                   "needs a trigger: every_n_calls, every_n_seconds or on_file_created");
    }
    p->every_calls = json_int(calls, 0);
    if (given(calls) && p->every_calls < 1) {
        return ERR(e, ERR_CONFIG, "'every_n_calls' must be at least 1");
    }
    double n = json_real(seconds, 0);
    if (given(seconds) && !(n > 0 && n < 1e9)) {
        return ERR(e, ERR_CONFIG, "'every_n_seconds' must be greater than 0");
    }
    p->every_time = (nsec)llround(n * (double)NSEC_PER_SEC);
    return given(file) ? read_file(f, p, file, e) : 0;
}

static int read_provider(struct feedback *f, struct feedback_provider *p,
                         const struct json *definition, struct err *e)
{
    struct str type = json_str(json_get(definition, "type"), STR_EMPTY);
    p->kind = feedback_kind_find(type);
    if (p->kind == NULL) {
        return ERR(e, ERR_CONFIG, "unknown type of feedback '%.*s'",
                   STR_ARG(str_slice(type, 0, 80)));
    }
    int r = read_name(f, p, json_str(json_get(definition, "name"), STR_EMPTY), e);
    r = r < 0 ? r : read_triggers(f, p, definition, e);
    return r < 0 ? r : p->kind->make(p, f->arena, definition, e);
}

static int read_providers(struct feedback *f, struct err *e)
{
    const struct json *list = f->opts.providers;
    for (size_t i = 0; i < json_len(list); i++) {
        int r = read_provider(f, &f->providers[f->n++], json_item(list, i), e);
        if (r < 0 && f->opts.file == NULL) {
            return err_wrap(e, "feedback[%zu]", i);
        }
        if (r < 0) {
            char place[JSON_AT_LEN];
            return err_wrap(e, "%s: feedback[%zu]",
                            json_at(f->opts.file, json_item(list, i), place), i);
        }
    }
    return 0;
}

static int add_callbacks(struct feedback *f, struct err *e)
{
    for (size_t i = 0; i < f->opts.n_callbacks; i++) {
        const struct feedback_callback *c = &f->opts.callbacks[i];
        struct feedback_provider *p = &f->providers[f->n++];
        bool timed = c->every_n_seconds > 0 && c->every_n_seconds < 1e9;
        p->kind = &feedback_kind_callback;
        p->callback = c;
        p->every_calls = c->every_n_calls > 0 ? c->every_n_calls : 0;
        p->every_time = timed ? (nsec)llround(c->every_n_seconds * (double)NSEC_PER_SEC) : 0;
        int r = read_name(f, p, str_of(c->name), e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* A session that was taken up: calls go on, and what was told of a file is not told again. */
static void remember(struct feedback *f)
{
    const struct state_store *s = f->opts.session;
    size_t n = store_len(s, NULL, STR(SLICE));
    for (size_t i = 0; i < n; i++) {
        const struct json *item = store_item(s, NULL, STR(SLICE), i);
        struct str name = json_str(json_get(item, "provider_name"), STR_EMPTY);
        int64_t index = json_int(json_get(item, "call_index"), 0);
        index = index < 0 || index > INT64_MAX / 2 ? 0 : index;
        f->calls = index > f->calls ? index : f->calls;
        for (size_t k = 0; k < f->n; k++) {
            struct feedback_provider *p = &f->providers[k];
            if (str_eq(p->name, name)) {
                p->last_call = index > p->last_call ? index : p->last_call;
                const char *file = json_cstring(json_get(item, "file"), NULL);
                p->file_told |= p->file != NULL && file != NULL && strcmp(file, p->file) == 0;
            }
        }
    }
}

static int prepare(struct feedback *f, struct err *e)
{
    for (size_t i = 0; i < f->n; i++) {
        struct feedback_provider *p = &f->providers[i];
        if (p->name.len == 0) {
            p->name = name_make(f, p->kind->name);
        }
    }
    if (f->opts.session == NULL) {
        return 0;
    }
    int r = store_declare(f->opts.session, STR(SLICE), SLICE_LOG, e);
    if (r == 0) {
        remember(f);
    }
    return r;
}

int feedback_new(const struct feedback_opts *o, struct feedback **ret, struct err *e)
{
    size_t n = json_len(o->providers) + o->n_callbacks;
    if (n > PROVIDERS_MAX) {
        return ERR(e, ERR_CONFIG, "feedback: more than %d providers", PROVIDERS_MAX);
    }
    struct feedback *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    f->opts = *o;
    f->root = str_of(o->root != NULL || o->host == NULL ? o->root : o->host->cwd);
    f->providers = arena_array(f->arena, n + 1, sizeof *f->providers);
    int r = read_providers(f, e);
    r = r < 0 ? r : add_callbacks(f, e);
    r = r < 0 ? r : prepare(f, e);
    if (r < 0) {
        (void)feedback_free(f);
        return r;
    }
    *ret = f;
    return 0;
}

void feedback_stop(struct feedback *f)
{
    while (f->rounds != NULL) {
        feedback_cancel(f->rounds);
    }
}

struct feedback *feedback_free(struct feedback *f)
{
    if (f != NULL) {
        feedback_stop(f);
        f->arena = arena_free(f->arena);
        free(f);
    }
    return NULL;
}

size_t feedback_len(const struct feedback *f)
{
    return f->n;
}

/* --- triggers --- */

static struct feedback_left left_of(const struct feedback *f)
{
    return f->opts.left != NULL ? f->opts.left(f->opts.arg)
                                : (struct feedback_left) { .time = INT64_MAX, .budget = -1 };
}

static bool is_due(const struct feedback *f, const struct feedback_provider *p, nsec now)
{
    if (p->every_calls > 0 && f->calls - p->last_call >= p->every_calls) {
        return true;
    }
    return p->every_time > 0 && (!p->spoke || now - p->last_time >= p->every_time);
}

static bool file_appeared(const struct feedback *f, const struct feedback_provider *p)
{
    return p->file != NULL && !p->file_told && f->opts.exists != NULL &&
           f->opts.exists(f->opts.arg, str_of(p->file));
}

/* Counted from the moment it is asked, whatever it will say: a program that fails is not asked
 * again with every call. */
static bool fires(const struct feedback *f, struct feedback_provider *p,
                  const struct feedback_left *left, nsec now, const char **ret_file)
{
    bool created = file_appeared(f, p);
    if ((!created && !is_due(f, p, now)) || (p->kind->ready != NULL && !p->kind->ready(left))) {
        return false;
    }
    p->spoke = true;
    p->last_call = f->calls;
    p->last_time = now;
    p->file_told |= created;
    *ret_file = created ? p->file : NULL;
    return true;
}

/* --- rounds --- */

static void problem(const struct feedback *f, struct str name, const char *why)
{
    if (f->opts.problem != NULL) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        buf_addf(&text, "feedback '%.*s': %s", STR_ARG(name), why);
        f->opts.problem(f->opts.arg, buf_str(&text));
    }
}

/* For the record of the session; failing that, the agent is told all the same. */
static void keep(const struct feedback_round *x, const struct slot *slot)
{
    const struct feedback *f = x->feedback;
    struct arena *a = x->arena;
    char stamp[CLOCK_ISO_LEN];
    struct err e;
    struct json *item = json_object(a);
    json_setc(a, item, "provider_name", json_string(a, slot->name));
    for (size_t i = 0; i < json_len(slot->record); i++) {
        const struct json_member *m = &slot->record->object.members[i];
        json_set(a, item, m->key, m->value);
    }
    json_setc(a, item, "timestamp", json_cstr(a, clock_iso(clock_wall(), stamp)));
    json_setc(a, item, "call_index", json_integer(a, x->call_index));
    json_setc(a, item, "prompt_name", json_cstr(a, f->opts.prompt_name));
    if (slot->file != NULL) {
        json_setc(a, item, "file", json_cstr(a, slot->file));
    }
    struct store_change c = { .kind = CHANGE_APPEND, .slice = STR(SLICE), .value = item };
    if (f->opts.session != NULL && store_apply(f->opts.session, &c, &e) < 0) {
        problem(f, slot->name, e.msg);
    }
}

static void round_free(struct feedback_round *x)
{
    x->arena = arena_free(x->arena);
    free(x);
}

static void unlink_round(struct feedback_round *x)
{
    if (x->linked) {
        *(x->prev == NULL ? &x->feedback->rounds : &x->prev->next) = x->next;
        if (x->next != NULL) {
            x->next->prev = x->prev;
        }
    }
    x->linked = false;
    x->feedback = NULL;
}

static void finish(struct feedback_round *x)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < x->n; i++) {
        const struct slot *slot = &x->slots[i];
        if (slot->record != NULL) {
            buf_adds(&text, text.len > 0 ? "\n\n" : "");
            feedback_render(&text, slot->name, slot->record);
            keep(x, slot);
        }
    }
    unlink_round(x);
    x->say(x->arg, buf_str(&text));
    round_free(x);
}

static void answered(void *arg, const struct helper_result *r)
{
    struct slot *slot = arg;
    struct feedback_round *x = slot->round;
    slot->helper = NULL;
    if (x->feedback != NULL) {
        const char *why = r->why;
        if (r->end == HELPER_EXITED && r->value == 0) {
            slot->record = feedback_reply_read(x->arena, r->out, &why);
        }
        if (why != NULL) {
            problem(x->feedback, slot->name, why);
        }
    }
    if (--x->pending > 0 || !x->begun) {
        return;
    }
    if (x->feedback == NULL) {
        round_free(x);
    } else {
        finish(x);
    }
}

static struct json *question(const struct feedback_round *x, const struct feedback_call *call,
                             const struct feedback_left *left)
{
    struct arena *a = x->arena;
    struct json *q = json_object(a);
    bool timed = left->time != INT64_MAX;
    json_setc(a, q, "tool", json_string(a, call->tool));
    json_setc(a, q, "native", json_boolean(a, call->native));
    json_setc(a, q, "success", json_boolean(a, call->success));
    json_setc(a, q, "call_index", json_integer(a, x->call_index));
    json_setc(a, q, "elapsed_s", json_number(a, (double)left->elapsed / (double)NSEC_PER_SEC));
    json_setc(a, q, "time_left_s",
              timed ? json_number(a, (double)left->time / (double)NSEC_PER_SEC) : json_null(a));
    json_setc(a, q, "budget_left", left->budget >= 0 ? json_number(a, left->budget) : json_null(a));
    return q;
}

static void start_program(struct feedback_round *x, struct slot *slot,
                          const struct feedback_provider *p, const struct json *q)
{
    CLEANUP(buf) struct buf input = BUF_INIT(BUF_TEXT);
    struct err e;
    if (json_write(q, JSON_COMPACT, &input, &e) == 0) {
        slot->helper = helper_spec_start(&p->program, x->feedback->opts.host, buf_str(&input),
                                         answered, slot, &e);
    }
    if (slot->helper == NULL) {
        problem(x->feedback, slot->name, e.msg);
        return;
    }
    x->pending++;
}

static void speak(struct feedback_round *x, struct slot *slot, struct feedback_provider *p,
                  const struct feedback_call *call, const struct feedback_left *left)
{
    if (p->kind->say != NULL) {
        slot->record = p->kind->say(p, x->arena, left);
    } else if (p->callback != NULL) {
        struct str text = STR_EMPTY;
        p->callback->say(p->callback->arg, call, &text);
        slot->record = text.len == 0
                           ? NULL
                           : feedback_record(x->arena, arena_str(x->arena, text), "info", NULL);
    } else {
        start_program(x, slot, p, question(x, call, left));
    }
}

static struct feedback_round *round_new(struct feedback *f, void (*say)(void *, struct str),
                                        void *arg)
{
    struct feedback_round *x = xcalloc(1, sizeof *x);
    x->feedback = f;
    x->arena = arena_new();
    x->call_index = f->calls;
    x->slots = arena_array(x->arena, f->n, sizeof *x->slots);
    x->say = say;
    x->arg = arg;
    return x;
}

void feedback_after(struct feedback *f, const struct feedback_call *call,
                    void (*say)(void *arg, struct str text), void *arg, struct feedback_round **ret)
{
    nsec now = f->opts.now == NULL ? clock_now() : f->opts.now(f->opts.arg);
    struct feedback_round *x = NULL;
    *ret = NULL;
    if (!call->native && str_eqc(call->tool, "structured_output")) {
        say(arg, STR_EMPTY); /* the answer is given: nobody is on the way any more */
        return;
    }
    f->calls++;
    struct feedback_left left = left_of(f);
    for (size_t i = 0; i < f->n; i++) {
        struct feedback_provider *p = &f->providers[i];
        const char *file;
        if (fires(f, p, &left, now, &file)) {
            x = x == NULL ? round_new(f, say, arg) : x;
            struct slot *slot = &x->slots[x->n++];
            *slot = (struct slot) { .round = x, .name = arena_str(x->arena, p->name) };
            slot->file = file == NULL ? NULL : arena_dup(x->arena, str_of(file));
            speak(x, slot, p, call, &left);
        }
    }
    if (x == NULL) {
        say(arg, STR_EMPTY);
        return;
    }
    x->begun = true;
    if (x->pending == 0) {
        finish(x);
        return;
    }
    x->linked = true;
    x->next = f->rounds;
    if (x->next != NULL) {
        x->next->prev = x;
    }
    f->rounds = x;
    *ret = x;
}

void feedback_cancel(struct feedback_round *x)
{
    unlink_round(x);
    for (size_t i = 0; i < x->n; i++) {
        if (x->slots[i].helper != NULL) {
            helper_cancel(x->slots[i].helper); /* the round is freed with the last of them */
        }
    }
}

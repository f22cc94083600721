/* SPDX-License-Identifier: MIT
 *
 * The life cycle of a trust entry. Order is what makes it safe against kill -9: the ledger is
 * written before an entry is added and after it is removed, so whatever is in the table by our hand
 * is also in the ledger, and a sweep finds it.
 */
#include "adapters/trust.h"

#include <stdio.h>

#include "adapters/trust_priv.h"
#include "base/json.h"

/* Each round means that the harness rewrote its file within the few milliseconds of an edit. */
enum { ROUNDS = 8 };

bool trust_style_of(const char *word, enum trust_style *ret)
{
    static const char *const words[] = {
        [TRUST_CODEX] = "codex",
        [TRUST_GEMINI] = "gemini",
        [TRUST_CLAUDE] = "claude",
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i], word) == 0) {
            *ret = (enum trust_style)i;
            return true;
        }
    }
    return false;
}

static int check_entry(const struct trust_entry *t, const char *run_id, struct err *e)
{
    if (t->dir == NULL || t->dir[0] != '/') {
        return ERR(e, ERR_USAGE, "trust: '%s' is not an absolute directory",
                   t->dir == NULL ? "" : t->dir);
    }
    if (!str_is_utf8(str_of(t->dir)) || !str_is_utf8(str_of(run_id))) {
        return ERR(e, ERR_UNSUPPORTED,
                   "trust: the name '%s' is not UTF-8, so no trust table can "
                   "hold it",
                   t->dir);
    }
    if (run_id == NULL || run_id[0] == '\0') {
        return ERR(e, ERR_USAGE, "trust: a run needs an id");
    }
    return 0;
}

static int changed_too_often(const struct trust_file *f, struct err *e)
{
    return ERR(e, ERR_TIMEOUT, "trust file '%s' is rewritten by another program again and again",
               f->path);
}

/* --- registering --- */

struct registration {
    const struct trust_entry *t;
    const char *run_id;
    const struct trust_file *f;
    struct trust_ledger *ledger;
    struct err *e;
};

static int note_run(const struct registration *g, const struct trust_mark *mark)
{
    struct json *entry = trust_ledger_add(g->ledger, g->t->dir);
    (void)trust_entry_prune(g->ledger, entry, g->run_id, NULL);
    trust_entry_add_run(g->ledger, entry, g->run_id);
    if (mark != NULL) {
        trust_entry_set_mark(g->ledger, entry, *mark);
    }
    return trust_ledger_save(g->ledger, g->e);
}

/* The entry could not be written: nobody may believe that it is there. */
static void forget_run(const struct registration *g)
{
    struct json *entry = trust_ledger_find(g->ledger, g->t->dir);
    (void)trust_entry_prune(g->ledger, entry, g->run_id, NULL);
    if (trust_entry_runs(entry) == 0) {
        trust_ledger_drop(g->ledger, g->t->dir);
    }
    if (trust_ledger_save(g->ledger, NULL) < 0) {
        return; /* then a sweep will find the run dead and the entry absent */
    }
}

/* 1 when the entry is in the file, 0 when the file changed meanwhile. */
static int add_entry(const struct registration *g, struct str text, const struct stat *st)
{
    CLEANUP(buf) struct buf out = BUF_INIT(TRUST_TEXT_MAX);
    struct trust_mark mark;
    int r = trust_text_add(g->t, text, &mark, &out, g->e);
    if (r < 0) {
        return r;
    }
    if (st->st_nlink == 0 || json_len(g->ledger->entries) == 0) {
        trust_ledger_set_created(g->ledger, st->st_nlink == 0);
    }
    r = note_run(g, &mark);
    if (r == 0) {
        r = trust_file_replace(g->f, buf_str(&out), st, g->e);
    }
    if (r <= 0) {
        forget_run(g);
    }
    return r;
}

/* One attempt: 1 when the run is registered, 0 when the file changed meanwhile. */
static int try_register(const struct registration *g, enum trust_outcome *ret)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TRUST_TEXT_MAX);
    struct stat st;
    enum trust_state state = TRUST_STATE_ABSENT;
    int r = trust_file_load(g->f, &text, &st, g->e);
    if (r == 0 && st.st_nlink == 0) {
        r = buf_append(&text, trust_text_new(g->t->style), g->e);
    }
    if (r == 0) {
        r = trust_text_state(g->t, buf_str(&text), &state, g->e);
    }
    if (r < 0) {
        return r;
    }
    if (state == TRUST_STATE_REFUSED) {
        return ERR(g->e, ERR_DENIED,
                   "'%s' marks '%s' as not trusted: change that entry or use another directory",
                   g->t->file, g->t->dir);
    }
    bool ours = trust_ledger_find(g->ledger, g->t->dir) != NULL;
    if (state == TRUST_STATE_GRANTED) {
        *ret = ours ? TRUST_JOINED : TRUST_OWN;
        r = ours ? note_run(g, NULL) : 0;
        return r < 0 ? r : 1;
    }
    *ret = TRUST_ADDED;
    return add_entry(g, buf_str(&text), &st);
}

int trust_register(const struct trust_entry *t, const char *run_id, enum trust_outcome *ret,
                   struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(trust_file) struct trust_file f = TRUST_FILE_INIT;
    struct trust_ledger ledger;
    struct err unread = { 0 };
    bool absent = false;
    e = e == NULL ? &unread : e; /* wrapping keeps the code only where there is one */
    int r = check_entry(t, run_id, e);
    if (r == 0) {
        r = trust_file_open(&f, t->file, true, &absent, e);
    }
    if (r == 0) {
        r = trust_ledger_load(&ledger, a, f.ledger, e);
    }
    struct registration g = { t, run_id, &f, &ledger, e };
    enum trust_outcome outcome = TRUST_ADDED;
    for (int round = 0; r == 0 && round < ROUNDS; round++) {
        r = try_register(&g, &outcome);
    }
    if (r == 0) {
        r = changed_too_often(&f, e);
    }
    if (r < 0) {
        return err_wrap(e, "trust for '%s'", t->dir);
    }
    if (ret != NULL) {
        *ret = outcome;
    }
    return 0;
}

/* --- removing --- */

/* Nothing but white space, and in JSON the braces: the harness may have rewritten the layout. */
static bool is_bare(struct str text)
{
    char seen[3] = "";
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (str_trim(str_slice(text, i, i + 1)).len == 0) {
            continue;
        }
        if (n == 2) {
            return false;
        }
        seen[n++] = text.ptr[i];
    }
    return n == 0 || strcmp(seen, "{}") == 0;
}

/* One attempt to take the entry out of the file: 1 when it is out, 0 when the file changed. */
static int try_undo(const struct trust_entry *t, const struct trust_file *f,
                    const struct trust_ledger *l, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(TRUST_TEXT_MAX);
    CLEANUP(buf) struct buf out = BUF_INIT(TRUST_TEXT_MAX);
    struct stat st;
    enum trust_state state = TRUST_STATE_ABSENT;
    int r = trust_file_load(f, &text, &st, e);
    if (r == 0 && st.st_nlink > 0) {
        r = trust_text_state(t, buf_str(&text), &state, e);
    }
    if (r < 0) {
        return r;
    }
    /* Not there any more, or the user has decided otherwise since: then it is not ours. */
    struct trust_mark mark = trust_entry_mark(trust_ledger_find(l, t->dir));
    if (state == TRUST_STATE_GRANTED) {
        r = trust_text_remove(t, buf_str(&text), &mark, &out, e);
    } else if (st.st_nlink > 0) {
        r = buf_append(&out, buf_str(&text), e);
    }
    if (r < 0 || st.st_nlink == 0) {
        return r < 0 ? r : 1;
    }
    bool last = json_len(l->entries) == 1;
    if (last && trust_ledger_created(l) && is_bare(buf_str(&out))) {
        return trust_file_unlink(f, &st, e);
    }
    return state == TRUST_STATE_GRANTED ? trust_file_replace(f, buf_str(&out), &st, e) : 1;
}

/* An object around several entries (the "projects" of Claude Code) that came with this one goes
 * with the last one. */
static void hand_over(struct trust_ledger *l, const char *dir)
{
    struct trust_mark mark = trust_entry_mark(trust_ledger_find(l, dir));
    trust_ledger_drop(l, dir);
    for (size_t i = 0; mark.made > 1 && i < l->entries->object.len; i++) {
        struct json *other = l->entries->object.members[i].value;
        if (!trust_entry_mark(other).was_false) {
            trust_entry_set_mark(l, other, (struct trust_mark) { .made = mark.made });
            return;
        }
    }
}

/* Takes the entry out of the file and of the ledger. On failure it stays noted, without runs. */
static int undo(const struct trust_entry *t, const struct trust_file *f, struct trust_ledger *l,
                struct err *e)
{
    int r = 0;
    for (int round = 0; r == 0 && round < ROUNDS; round++) {
        r = try_undo(t, f, l, e);
    }
    if (r == 0) {
        r = changed_too_often(f, e);
    }
    if (r > 0) {
        hand_over(l, t->dir);
    }
    return r < 0 ? err_wrap(e, "trust for '%s'", t->dir) : 0;
}

int trust_remove(const struct trust_entry *t, const char *run_id, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(trust_file) struct trust_file f = TRUST_FILE_INIT;
    struct trust_ledger ledger;
    struct err unread = { 0 };
    bool absent = false;
    e = e == NULL ? &unread : e; /* wrapping keeps the code only where there is one */
    int r = check_entry(t, run_id, e);
    if (r == 0) {
        r = trust_file_open(&f, t->file, false, &absent, e);
    }
    if (r < 0 || absent) {
        return r;
    }
    r = trust_ledger_load(&ledger, a, f.ledger, e);
    if (r < 0) {
        return r;
    }
    struct json *entry = trust_ledger_find(&ledger, t->dir);
    if (entry == NULL) {
        return 0;
    }
    (void)trust_entry_prune(&ledger, entry, run_id, NULL);
    r = trust_entry_runs(entry) == 0 ? undo(t, &f, &ledger, e) : 0;
    int saved = trust_ledger_save(&ledger, r < 0 ? NULL : e);
    return r < 0 ? r : saved;
}

/* --- sweeping --- */

static int sweep_entry(const struct trust_entry *t, const struct trust_file *f,
                       struct trust_ledger *l, const struct trust_port *port,
                       struct trust_swept *swept, struct err *e)
{
    struct json *entry = trust_ledger_find(l, t->dir);
    swept->runs += trust_entry_prune(l, entry, NULL, port);
    if (trust_entry_runs(entry) > 0) {
        swept->kept++;
        return 0;
    }
    int r = undo(t, f, l, e);
    swept->entries += r < 0 ? 0 : 1;
    return r;
}

int trust_sweep(enum trust_style style, const char *file, const struct trust_port *port,
                struct trust_swept *ret, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(trust_file) struct trust_file f = TRUST_FILE_INIT;
    struct trust_ledger ledger;
    struct trust_swept swept = { 0 };
    struct err first = { 0 };
    struct err later = { 0 };
    bool absent = false;
    e = e == NULL ? &first : e;
    if (ret != NULL) {
        *ret = swept;
    }
    int r = trust_file_open(&f, file, false, &absent, e);
    if (r == 0 && !absent) {
        r = trust_ledger_load(&ledger, a, f.ledger, e);
    }
    if (r < 0 || absent) {
        return r;
    }
    const struct json *before = json_copy(a, ledger.entries);
    for (size_t i = 0; i < before->object.len; i++) {
        struct trust_entry t = { style, file, before->object.members[i].key.ptr };
        int now = sweep_entry(&t, &f, &ledger, port, &swept, r < 0 ? &later : e);
        r = r < 0 ? r : now;
    }
    int saved = trust_ledger_save(&ledger, r < 0 ? NULL : e);
    if (ret != NULL) {
        *ret = swept;
    }
    return r < 0 ? r : saved;
}

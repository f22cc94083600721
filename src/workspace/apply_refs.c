/* SPDX-License-Identifier: MIT
 *
 * Refs are moved by git itself, one at a time. Each move can be repeated.
 */
#include "workspace/apply_refs.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/git.h"

enum { VALUE_MAX = 4096 };

static int run_git(const struct apply_txn *t, const char *const *args, struct buf *out,
                   int ok_status, struct err *e)
{
    struct git_call c = {
        .args = args,
        .git_dir = t->git_dir,
        .user_config = true,
        .out = out,
        .ok_status = ok_status,
    };
    return git_run(&c, e);
}

static bool is_symbolic(const struct apply_ref *ref)
{
    return strcmp(ref->name, "HEAD") == 0 &&
           (strncmp(ref->to, "refs/", 5) == 0 || strncmp(ref->from, "refs/", 5) == 0);
}

static struct str read_value(const struct apply_txn *t, const struct apply_ref *ref,
                             struct buf *out)
{
    static const char *const symbolic[] = { "symbolic-ref", "-q", "HEAD", NULL };
    const char *const commit[] = { "rev-parse", "-q", "--verify", ref->name, NULL };
    if (is_symbolic(ref) && run_git(t, symbolic, out, 1, NULL) == 0) {
        return str_trim(buf_str(out));
    }
    buf_reset(out); /* a HEAD that is detached */
    return run_git(t, commit, out, 1, NULL) != 0 ? STR_EMPTY : str_trim(buf_str(out));
}

bool apply_ref_is(const struct apply_txn *t, const struct apply_ref *ref, const char *value)
{
    CLEANUP(buf) struct buf out = BUF_INIT(VALUE_MAX);
    return str_eqc(read_value(t, ref, &out), value);
}

/* What git writes to a lock file before it takes the place of the ref. */
static void remove_stale_lock(const struct apply_txn *t, const struct apply_ref *ref,
                              const char *value)
{
    CLEANUP(buf) struct buf text = BUF_INIT(VALUE_MAX);
    const char *path = arena_printf(t->arena, "%s/%s.lock", t->git_dir, ref->name);
    if (file_read(AT_FDCWD, path, VALUE_MAX, &text, NULL) < 0) {
        return;
    }
    struct str held = str_trim(buf_str(&text));
    if (str_starts(held, STR("ref: "))) {
        held = str_slice(held, 5, held.len);
    }
    if (held.len == 0 || str_eqc(held, value)) {
        (void)unlinkat(AT_FDCWD, path, 0);
    }
}

int apply_ref_move(struct apply_txn *t, const struct apply_ref *ref, bool forward, struct err *e)
{
    CLEANUP(buf) struct buf value = BUF_INIT(VALUE_MAX);
    const char *from = forward ? ref->from : ref->to;
    const char *to = forward ? ref->to : ref->from;
    struct str now = read_value(t, ref, &value);
    if (str_eqc(now, to)) {
        return 0;
    }
    if (!str_eqc(now, from)) {
        return forward ? ERR(e, ERR_EXISTS, "'%s' was changed at the same time", ref->name)
                       : 0; /* not ours any more */
    }
    const char *const point[] = { "symbolic-ref", "-m", ref->message, "HEAD", to, NULL };
    const char *const detach[] = {
        "update-ref", "--no-deref", "-m", ref->message, "HEAD", to, NULL
    };
    const char *const set[] = { "update-ref", "-m", ref->message,
                                ref->name,    to,   from /* "": it must not exist */,
                                NULL };
    const char *const drop[] = { "update-ref", "-d", ref->name, from, NULL };
    const char *const *args = !is_symbolic(ref)              ? to[0] == '\0' ? drop : set
                              : strncmp(to, "refs/", 5) == 0 ? point
                                                             : detach;
    remove_stale_lock(t, ref, to);
    return run_git(t, args, NULL, 0, e);
}

void apply_refresh_index(const struct apply_txn *t, const struct apply_index *x)
{
    static const char *const args[] = { "update-index", "-q", "--refresh", NULL };
    const char *index = apply_index_name(t->arena, x->git_dir);
    if (!x->staged || !file_exists(AT_FDCWD, index)) {
        return;
    }
    struct git_call c = {
        .args = args,
        .cwd = x->root,
        .git_dir = x->git_dir,
        .work_tree = x->root,
        .index = index,
        .user_config = true,
        .ok_status = 1,
    };
    (void)!git_run(&c, NULL);
}

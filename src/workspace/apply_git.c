/* SPDX-License-Identifier: MIT
 *
 * What git does for an apply: all of it in a directory with copies of the files, on a copy of the
 * index. Objects of a check go to a directory that is removed.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/apply_priv.h"
#include "workspace/git.h"
#include "workspace/listing.h"
#include "workspace/node.h"

enum { TEXT_MAX = 1 << 20, LIST_MAX = 256 << 20, CONFLICTS_NAMED = 5 };

/* --- words --- */

static bool is_noise(struct str line)
{
    static const char *const noise[] = { "Falling back to", "Performing three-way", "Applied patch",
                                         "warning:",        "Checking patch",       "U " };
    bool found = line.len == 0;
    for (size_t i = 0; !found && i < ARRAY_LEN(noise); i++) {
        found = str_starts(line, str_of(noise[i]));
    }
    return found;
}

const char *apply_git_words(struct arena *a, const char *message)
{
    enum { SHOWN = 3 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const char *start = strstr(message, "exited with ");
    start = start == NULL ? NULL : strstr(start, ": ");
    struct str rest = start == NULL ? str_of(message) : str_of(start + 2);
    size_t n = 0;
    while (rest.len > 0) {
        struct str line = str_trim(str_split(&rest, '\n'));
        if (is_noise(line)) {
            continue;
        }
        line = str_starts(line, STR("error: "))   ? str_slice(line, 7, line.len)
               : str_starts(line, STR("fatal: ")) ? str_slice(line, 7, line.len)
                                                  : line;
        if (n < SHOWN) {
            buf_addf(&out, "%s%.*s", n == 0 ? "" : "; ", STR_ARG(line));
        }
        n++;
    }
    buf_adds(&out, n > SHOWN ? "; and more" : n == 0 ? "git gives no reason" : "");
    return arena_dup(a, buf_str(&out));
}

int apply_reject(struct applying *x, const char *fmt, ...)
{
    char text[sizeof x->e->msg];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (x->ret->fits) {
        x->ret->fits = false;
        x->ret->why = arena_dup(x->a, str_of(text));
    }
    return 0;
}

/* --- calls --- */

struct call {
    const char *const *args;
    struct str input;
    struct buf *out;
    int ok_status;
};

static int run_git(struct applying *x, struct apply_part *p, const struct call *call)
{
    struct git_call c = {
        .args = call->args,
        .cwd = p->work,
        .git_dir = p->has_repo ? p->repo.git_dir : "/dev/null", /* nor one that is found there */
        .work_tree = p->has_repo ? p->work : NULL,
        .index = p->index,
        .objects = p->has_repo ? arena_printf(x->a, "%s/objects", p->repo.common_dir) : NULL,
        .new_objects = p->objects,
        .config = p->config,
        .user_config = true,
        .input = call->input,
        .out = call->out,
        .ok_status = call->ok_status,
    };
    int r = git_run(&c, x->e);
    if (r == -(int)ERR_SYS && strstr(x->e->msg, "No space left on device") != NULL) {
        return ERR(x->e, ERR_OUTPUT, "the disk is full: %s", apply_git_words(x->a, x->e->msg));
    }
    return r;
}

/* In the user's repository as it is, read only. */
static int ask_repo(struct applying *x, struct apply_part *p, const char *const *args,
                    struct buf *out, int ok_status)
{
    struct git_call c = {
        .args = args,
        .cwd = p->root,
        .work_tree = p->root,
        .safe = p->repo.listed ? p->root : NULL,
        .config = p->config,
        .user_config = true,
        .out = out,
        .ok_status = ok_status,
    };
    return git_run(&c, x->e);
}

/* --- programs that the repository configures --- */

static void add_override(struct applying *x, struct apply_part *p, const char *setting)
{
    if (p->config_len + 1 >= p->config_cap) {
        size_t cap = p->config_cap == 0 ? 16 : p->config_cap * 2;
        const char **more = arena_array(x->a, cap, sizeof *more);
        if (p->config_len > 0) {
            memcpy(more, p->config, p->config_len * sizeof *more);
        }
        p->config = more;
        p->config_cap = cap;
    }
    p->config[p->config_len++] = setting;
    p->config[p->config_len] = NULL;
}

/* filter.NAME.clean and the like; NAME may hold anything. */
static int override_driver(struct applying *x, struct apply_part *p, struct str key)
{
    static const struct {
        const char *section, *variable, *value;
        bool filter;
    } programs[] = {
        { "filter.", ".clean", "", true },       { "filter.", ".smudge", "", true },
        { "filter.", ".process", "", true },     { "filter.", ".required", "false", true },
        { "merge.", ".driver", "false", false }, /* a conflict, not the merge of a stranger */
        { "diff.", ".command", "", false },      { "diff.", ".textconv", "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        if (!str_starts(key, str_of(programs[i].section)) ||
            !str_ends(key, str_of(programs[i].variable))) {
            continue;
        }
        if (memchr(key.ptr, '=', key.len) != NULL) { /* `git -c` ends the key there */
            return ERR(x->e, ERR_CONFIG,
                       "the configuration of '%s' names a program as '%.*s': a '=' there cannot be "
                       "handled safely",
                       p->root, STR_ARG(key));
        }
        p->filtered = p->filtered || programs[i].filter;
        add_override(x, p, arena_printf(x->a, "%.*s=%s", STR_ARG(key), programs[i].value));
    }
    return 0;
}

/* The .gitattributes of a tree decide which files such a program gets, and the configuration of a
 * repository may come from the same source: only what the user configured for all repositories is
 * run. */
int apply_override_drivers(struct applying *x, struct apply_part *p)
{
    static const char *const args[] = { "config", "-z",          "--includes", "--show-scope",
                                        "--list", "--name-only", NULL };
    CLEANUP(buf) struct buf out = BUF_INIT(LIST_MAX);
    int r = ask_repo(x, p, args, &out, 0);
    struct str rest = buf_str(&out);
    while (r == 0 && rest.ptr != NULL && rest.len > 0) {
        struct str scope = str_split(&rest, '\0');
        struct str key = str_split(&rest, '\0');
        if (str_eqc(scope, "local") || str_eqc(scope, "worktree")) {
            r = override_driver(x, p, key);
        }
    }
    return r;
}

/* --- the patch --- */

/* `how` is "--check", "--index" …; two of them, or NULL. */
static int call_apply(struct applying *x, struct apply_part *p, const char *how, const char *more,
                      struct buf *out)
{
    const char *args[8];
    size_t n = 0;
    args[n++] = "apply";
    args[n++] = "--whitespace=nowarn";
    if (how != NULL) {
        args[n++] = how;
    }
    if (more != NULL) {
        args[n++] = more;
    }
    if (p->directory != NULL) {
        args[n++] = p->directory;
    }
    args[n++] = p->patch;
    args[n] = NULL;
    return run_git(x, p, &(struct call) { .args = args, .out = out });
}

static int add_path(struct applying *x, struct apply_part *p, struct str path)
{
    const char *name = arena_dup(x->a, path);
    if (name[0] == '\0' || !node_is_inner_path(name) || node_has_git_part(name)) {
        return apply_reject(x, "the patch has an invalid path: '%.200s'", name);
    }
    if (p->path_count == p->path_cap) {
        size_t cap = p->path_cap == 0 ? 64 : p->path_cap * 2;
        const char **more = arena_array(x->a, cap, sizeof *more);
        if (p->path_count > 0) {
            memcpy(more, p->paths, p->path_count * sizeof *more);
        }
        p->paths = more;
        p->path_cap = cap;
    }
    p->paths[p->path_count++] = name;
    return 0;
}

/* git prints new names only; those of the reversed patch are the old ones. */
int apply_list_paths(struct applying *x, struct apply_part *p)
{
    static const char *const ways[] = { NULL, "--reverse" };
    int r = 0;
    for (size_t i = 0; r == 0 && x->ret->fits && i < ARRAY_LEN(ways); i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(LIST_MAX);
        const char *args[8] = { "apply", "--numstat", "-z" };
        size_t n = 3;
        if (ways[i] != NULL) {
            args[n++] = ways[i];
        }
        if (p->directory != NULL) {
            args[n++] = p->directory;
        }
        args[n++] = p->patch;
        r = run_git(x, p, &(struct call) { .args = args, .out = &out });
        if (r == -(int)ERR_SYS) {
            return apply_reject(x, "the patch is damaged: %s", apply_git_words(x->a, x->e->msg));
        }
        struct str rest = buf_str(&out);
        while (r == 0 && x->ret->fits && rest.len > 0) {
            struct str line = str_split(&rest, '\0');
            (void)str_split(&line, '\t');
            (void)str_split(&line, '\t');
            r = add_path(x, p, line);
            x->ret->files += i == 0;
        }
    }
    return r;
}

static int find_conflicts(struct applying *x, struct apply_part *p)
{
    static const char *const args[] = { "ls-files", "-u", "-z", NULL };
    CLEANUP(buf) struct buf out = BUF_INIT(LIST_MAX);
    int r = run_git(x, p, &(struct call) { .args = args, .out = &out });
    struct str rest = buf_str(&out);
    struct str last = STR_EMPTY;
    int n = 0;
    while (r == 0 && rest.len > 0) {
        struct str line = str_split(&rest, '\0');
        (void)str_split(&line, '\t');
        if (line.len > 0 && !str_eq(line, last)) {
            const char *path = p->below[0] == '\0'
                                   ? arena_dup(x->a, line)
                                   : arena_printf(x->a, "%s/%.*s", p->below, STR_ARG(line));
            json_push(x->a, x->ret->conflicts, json_cstr(x->a, path));
            n++;
        }
        last = line;
    }
    return r < 0 ? r : n;
}

/* Gives the copy of the index the files as they are, so that a merge with them is possible. */
static int add_dirty_files(struct applying *x, struct apply_part *p)
{
    static const char *const args[] = {
        "update-index", "--add", "--remove", "-z", "--stdin", NULL
    };
    CLEANUP(buf) struct buf in = BUF_INIT(LIST_MAX);
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->path_count; i++) {
        if (!file_is_dir(AT_FDCWD, arena_printf(x->a, "%s/%s", p->work, p->paths[i]))) {
            r = buf_append(&in, str_n(p->paths[i], strlen(p->paths[i]) + 1), x->e);
        }
    }
    return r < 0 ? r : run_git(x, p, &(struct call) { .args = args, .input = buf_str(&in) });
}

static int reject_conflicts(struct applying *x)
{
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    size_t n = json_len(x->ret->conflicts);
    for (size_t i = 0; i < n && i < CONFLICTS_NAMED; i++) {
        buf_addf(&names, "%s%s", i == 0 ? "" : ", ",
                 json_cstring(json_item(x->ret->conflicts, i), "?"));
    }
    if (n > CONFLICTS_NAMED) {
        buf_addf(&names, " and %zu more", n - CONFLICTS_NAMED);
    }
    return apply_reject(x, "it conflicts with changes in %.*s (--3way leaves the conflicts there)",
                        STR_ARG(buf_str(&names)));
}

static int try_merge(struct applying *x, struct apply_part *p)
{
    bool clean = true;
    int n = 0;
    int r = call_apply(x, p, "--3way", NULL, NULL);
    if (r == -(int)ERR_SYS) {
        n = find_conflicts(x, p);
        if (n == 0) { /* it could not begin, e.g. because files have other changes */
            clean = false;
            r = add_dirty_files(x, p);
            r = r < 0 ? r : call_apply(x, p, "--3way", NULL, NULL);
            n = r == -(int)ERR_SYS ? find_conflicts(x, p) : 0;
        }
    }
    if (n < 0 || (r < 0 && n == 0)) {
        return n < 0 ? n : r;
    }
    if (n > 0 && !x->o->three_way) {
        return reject_conflicts(x);
    }
    p->three_way = x->ret->three_way = true;
    p->staged = clean;
    return 0;
}

static bool is_applied(struct applying *x, struct apply_part *p)
{
    return call_apply(x, p, "--reverse", "--check", NULL) == 0;
}

int apply_try(struct applying *x, struct apply_part *p)
{
    static const char *const refresh[] = { "update-index", "-q", "--ignore-missing", "--refresh",
                                           NULL };
    if (x->o->applied_before && is_applied(x, p)) {
        x->ret->already = true;
        return 0;
    }
    /* Without its filter a file would be stored in a form that it must not have in the index. */
    bool indexed = p->index != NULL && !p->filtered;
    if (indexed) {
        (void)!run_git(x, p, &(struct call) { .args = refresh, .ok_status = 1 });
        p->staged = call_apply(x, p, "--index", NULL, NULL) == 0;
    }
    if (p->staged) {
        return 0;
    }
    int r = call_apply(x, p, NULL, NULL, NULL);
    if (r == 0 || r != -(int)ERR_SYS) {
        return r;
    }
    const char *why = apply_git_words(x->a, x->e->msg);
    if (is_applied(x, p)) {
        x->ret->already = true;
        return 0;
    }
    r = indexed ? try_merge(x, p) : r;
    return r == -(int)ERR_SYS ? apply_reject(x, "%s", why) : r;
}

int apply_read_entries(struct applying *x, struct apply_part *p, struct buf *out)
{
    static const char *const args[] = { "ls-files", "-s", "-z", NULL };
    CLEANUP(buf) struct buf all = BUF_INIT(LIST_MAX);
    CLEANUP(pathmap) struct pathmap wanted = { 0 };
    for (size_t i = 0; i < p->path_count; i++) {
        pathmap_put(&wanted, p->paths[i], 0);
    }
    int r = run_git(x, p, &(struct call) { .args = args, .out = &all });
    struct str rest = buf_str(&all);
    while (r == 0 && rest.len > 0) {
        struct str line = str_split(&rest, '\0');
        struct str path = line;
        (void)str_split(&path, '\t');
        if (pathmap_has(&wanted, arena_dup(x->a, path))) {
            r = buf_append(out, line, x->e);
            r = r < 0 ? r : buf_append_c(out, '\0', x->e);
        }
    }
    return r;
}

/* --- objects --- */

static int move_dir(struct applying *x, const char *from, const char *to)
{
    CLEANUP(listing) struct listing names = { 0 };
    CLEANUP(fd) int from_fd = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = from_fd < 0 ? ERR_SYS(x->e, "open '%s'", from) : listing_read(&names, from_fd, x->e);
    r = r < 0 || names.len == 0 ? r : file_mkdirs(AT_FDCWD, to, 0777, x->e);
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        const char *old = arena_printf(x->a, "%s/%s", from, names.items[i]);
        const char *new = arena_printf(x->a, "%s/%s", to, names.items[i]);
        if (file_exists(AT_FDCWD, new) || rename(old, new) == 0) {
            continue;
        }
        CLEANUP(buf) struct buf text = BUF_INIT(LIST_MAX); /* another file system */
        r = file_read(AT_FDCWD, old, LIST_MAX, &text, x->e);
        r = r < 0 ? r : file_write_atomic(AT_FDCWD, new, buf_str(&text), 0444, x->e);
    }
    return r;
}

/* They are named by their content: nothing notices that they are there until something refers to
 * them. */
int apply_move_objects(struct applying *x, struct apply_part *p)
{
    CLEANUP(listing) struct listing names = { 0 };
    CLEANUP(fd) int fd = p->objects == NULL ? -1 : open(p->objects, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? 0 : listing_read(&names, fd, x->e);
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        if (strlen(names.items[i]) == 2 || strcmp(names.items[i], "pack") == 0) {
            r = move_dir(x, arena_printf(x->a, "%s/%s", p->objects, names.items[i]),
                         arena_printf(x->a, "%s/objects/%s", p->repo.common_dir, names.items[i]));
        }
    }
    return r;
}

/* --- branch and commit --- */

int apply_has_staged(struct applying *x, struct apply_part *p)
{
    static const char *const args[] = { "diff", "--cached", "--quiet", "--no-ext-diff", NULL };
    return run_git(x, p, &(struct call) { .args = args, .ok_status = 1 });
}

static int check_branch(struct applying *x, struct apply_part *p)
{
    const char *branch = x->o->branch;
    const char *const format[] = { "check-ref-format", "--branch", branch, NULL };
    static const char *const list[] = { "for-each-ref", "--format=%(refname)", "refs/heads", NULL };
    CLEANUP(buf) struct buf out = BUF_INIT(LIST_MAX);
    CLEANUP(buf) struct buf name = BUF_INIT(TEXT_MAX);
    if (ask_repo(x, p, format, &name, 0) < 0 || !str_eqc(str_trim(buf_str(&name)), branch)) {
        return ERR(x->e, ERR_USAGE, "'%s' is not a valid name for a branch", branch);
    }
    int r = ask_repo(x, p, list, &out, 0);
    struct str rest = buf_str(&out);
    struct str wanted = str_of(branch);
    while (r == 0 && rest.len > 0) {
        struct str ref = str_split(&rest, '\n');
        struct str other = str_slice(ref, strlen("refs/heads/"), ref.len);
        if (str_eq(other, wanted)) {
            return apply_reject(x, "a branch named '%s' exists already", branch);
        }
        bool within = str_starts(wanted, other) && wanted.ptr[other.len] == '/';
        bool around = str_starts(other, wanted) && other.ptr[wanted.len] == '/';
        if (other.len > 0 && (within || around)) {
            return apply_reject(x, "the branch '%.*s' does not permit one named '%s'",
                                STR_ARG(other), branch);
        }
    }
    return r;
}

/* NULL if it cannot be made. */
static const char *make_commit(struct applying *x, struct apply_part *p, const char *head)
{
    static const char *const write_tree[] = { "write-tree", NULL };
    CLEANUP(buf) struct buf tree = BUF_INIT(TEXT_MAX);
    CLEANUP(buf) struct buf id = BUF_INIT(TEXT_MAX);
    if (run_git(x, p, &(struct call) { .args = write_tree, .out = &tree }) < 0) {
        return NULL;
    }
    const char *object = arena_dup(x->a, str_trim(buf_str(&tree)));
    const char *const args[] = { "commit-tree",         object, "-m", x->o->commit,
                                 head[0] ? "-p" : NULL, head,   NULL };
    return run_git(x, p, &(struct call) { .args = args, .out = &id }) < 0
               ? NULL
               : arena_dup(x->a, str_trim(buf_str(&id)));
}

static int plan_commit(struct applying *x, const char *head, const char **ret)
{
    struct apply_part *p = &x->parts[0];
    const char *merging = arena_printf(x->a, "%s/MERGE_HEAD", p->repo.git_dir);
    *ret = head;
    if (x->o->commit == NULL || x->ret->already) {
        return 0;
    }
    if (p->filtered) {
        return ERR(x->e, ERR_USAGE,
                   "the configuration of '%s' has a filter, which cinch does not run: apply "
                   "without --commit, then use git",
                   p->root);
    }
    if (json_len(x->ret->conflicts) > 0) {
        return apply_reject(x, "there are conflicts, which cannot be committed: apply without "
                               "--commit");
    }
    if (file_exists(AT_FDCWD, merging)) {
        return apply_reject(x, "a merge is in progress in '%s': finish it first", p->root);
    }
    if (x->had_staged) {
        return apply_reject(x,
                            "'%s' has staged changes, which a commit would take along: commit or "
                            "unstage them first",
                            p->root);
    }
    if (!p->staged) {
        return apply_reject(x, "files of the patch have other changes, which a commit would take "
                               "along: apply without --commit");
    }
    *ret = make_commit(x, p, head);
    return *ret == NULL
               ? apply_reject(x, "no commit can be made: %s", apply_git_words(x->a, x->e->msg))
               : 0;
}

static void add_ref(struct applying *x, const struct apply_ref *ref)
{
    x->txn->refs.items[x->txn->refs.len++] = *ref;
}

int apply_plan_refs(struct applying *x)
{
    struct apply_part *p = &x->parts[0];
    const char *head = p->repo.head;
    const char *to = head;
    const char *branch = x->o->branch;
    int r = branch == NULL ? 0 : check_branch(x, p);
    r = r < 0 || !x->ret->fits ? r : plan_commit(x, head, &to);
    if (r < 0 || !x->ret->fits) {
        return r;
    }
    if (branch != NULL) {
        const char *name = arena_printf(x->a, "refs/heads/%s", branch);
        const char *from = p->repo.branch == NULL ? head : p->repo.branch;
        if (to[0] != '\0') {
            add_ref(x, &(struct apply_ref) { name, "", to, "cinch apply: new branch" });
        }
        add_ref(x, &(struct apply_ref) {
                       "HEAD", from, name,
                       arena_printf(x->a, "checkout: moving from %s to %s",
                                    strncmp(from, "refs/heads/", 11) == 0 ? from + 11 : from,
                                    branch) });
    } else if (strcmp(to, head) != 0) {
        add_ref(x, &(struct apply_ref) { "HEAD", head, to,
                                         arena_printf(x->a, "commit: %s", x->o->commit) });
    }
    x->ret->made = strcmp(to, head) == 0 ? NULL : to;
    return 0;
}

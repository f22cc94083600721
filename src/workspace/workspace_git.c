/* SPDX-License-Identifier: MIT
 *
 * Views that need git: a commit checked out, a worktree made independent, and the source as it is
 * kept in a commit of ours. The user's repository is only read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/git.h"
#include "workspace/workspace_priv.h"

enum { SMALL_MAX = 1 << 20 };
#define INDEX_MAX ((size_t)1 << 30)

/* The commit that a name stands for in the user's repository. */
static int resolve(struct workspace *w, const char *ref, char out[REPO_ID_MAX], struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    const char *name = arena_printf(w->arena, "%s^{commit}", ref);
    const char *const args[] = {
        "rev-parse", "--verify", "--quiet", "--end-of-options", name, NULL
    };
    struct git_call c = { .args = args, .git_dir = w->repo.git_dir, .out = &text };
    int r = git_run(&c, e);
    struct str id = str_trim(buf_str(&text));
    if (r < 0 && (e == NULL || e->code != ERR_UNAVAILABLE)) {
        return ERR(e, ERR_INPUT, "'%s' has no commit '%s'", w->repo.root, ref);
    }
    if (r == 0 && (id.len == 0 || id.len >= REPO_ID_MAX)) {
        return ERR(e, ERR_INPUT, "git does not say what commit '%s' is", ref);
    }
    if (r == 0) {
        memcpy(out, id.ptr, id.len);
        out[id.len] = '\0';
    }
    return r;
}

/* Where the objects are is all that a tree needs; a remote's address helps the agent to understand
 * where it is. Not with a password in it. */
static int write_config(struct workspace *w, int git_fd, struct err *e)
{
    CLEANUP(buf) struct buf url = BUF_INIT(SMALL_MAX);
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    const char *const args[] = { "config", "--get", "remote.origin.url", NULL };
    struct git_call c = { .args = args, .git_dir = w->repo.git_dir, .out = &url, .ok_status = 1 };
    (void)!git_run(&c, NULL);
    struct str address = str_trim(buf_str(&url));
    size_t scheme = str_find(address, STR("://"));
    struct str rest = str_slice(address, scheme + 3, address.len);
    if (scheme < address.len && memchr(rest.ptr, '@', rest.len) != NULL) {
        (void)str_split(&rest, '@');
        address =
            str_n(arena_printf(w->arena, "%.*s://%.*s", (int)scheme, address.ptr, STR_ARG(rest)),
                  scheme + 3 + rest.len);
    }
    buf_addf(&text, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n",
             w->repo.sha256 ? 1 : 0);
    if (w->repo.sha256) {
        buf_adds(&text, "[extensions]\n\tobjectformat = sha256\n");
    }
    if (address.len > 0 && memchr(address.ptr, '\n', address.len) == NULL &&
        memchr(address.ptr, '"', address.len) == NULL) {
        buf_addf(&text,
                 "[remote \"origin\"]\n\turl = \"%.*s\"\n"
                 "\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
                 STR_ARG(address));
    }
    return file_write_atomic(git_fd, "config", buf_str(&text), 0644, e);
}

static void copy_small(const char *from_dir, const char *name, int to_fd, size_t max)
{
    char path[PATH_MAX];
    CLEANUP(buf) struct buf text = BUF_INIT(max);
    if (path_join(from_dir, name, path, sizeof path, NULL) == 0 &&
        file_read(AT_FDCWD, path, max, &text, NULL) == 0) {
        (void)!file_write_atomic(to_fd, name, buf_str(&text), 0644, NULL);
    }
}

/* Branches and tags as they are; what is packed and what is loose. */
static void copy_refs(struct workspace *w, int git_fd)
{
    char path[PATH_MAX];
    copy_small(w->repo.common_dir, "packed-refs", git_fd, INDEX_MAX);
    CLEANUP(fd) int to = openat(git_fd, "refs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (path_join(w->repo.common_dir, "refs", path, sizeof path, NULL) == 0) {
        CLEANUP(fd) int from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (from >= 0 && to >= 0) {
            (void)!file_remove_tree(git_fd, "refs/heads", NULL);
            (void)!tree_copy(from, to, NULL, NULL, NULL);
            (void)!file_mkdirs(git_fd, "refs/heads", 0755, NULL);
        }
    }
}

/* A git directory at `path` with the user's refs that borrows `objects` (NULL: has its own). */
static int make_git_dir(struct workspace *w, const char *path, const char *objects, struct str head,
                        int *ret_fd, struct err *e)
{
    int r = git_make_repo(path, objects, w->repo.sha256, e);
    if (r < 0) {
        return r;
    }
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd < 0) {
        return ERR_SYS(e, "open '%s'", path);
    }
    copy_refs(w, *ret_fd);
    r = write_config(w, *ret_fd, e);
    return r < 0 ? r : file_write_atomic(*ret_fd, "HEAD", head, 0644, e);
}

/* The view covers the user's repository, so that nothing could be borrowed from there. */
static int copy_objects(struct workspace *w, int git_fd, struct err *e)
{
    const char *path = arena_printf(w->arena, "%s/objects", w->repo.common_dir);
    CLEANUP(fd) int from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = file_remove_tree(git_fd, "objects", e);
    r = r < 0 ? r : file_mkdirs(git_fd, "objects", 0755, e);
    CLEANUP(fd) int to = r < 0 ? r : openat(git_fd, "objects", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r < 0 || from < 0 || to < 0) {
        return r < 0 ? r : ERR_SYS(e, "open '%s'", path);
    }
    return tree_copy(from, to, NULL, NULL, e);
}

static bool is_branch(struct workspace *w, const char *ref, char commit[REPO_ID_MAX])
{
    char other[REPO_ID_MAX];
    const char *full = arena_printf(w->arena, "refs/heads/%s", ref);
    return resolve(w, full, other, NULL) == 0 && strcmp(other, commit) == 0;
}

int workspace_checkout(struct workspace *w, struct err *e)
{
    char commit[REPO_ID_MAX];
    const char *base = workspace_place(w, "base");
    const char *git_dir = arena_printf(w->arena, "%s/.git", base);
    int r = resolve(w, w->ref == NULL ? "HEAD" : w->ref, commit, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, base, 0755, e);
    if (r < 0) {
        return r;
    }
    const char *branch = w->ref != NULL && is_branch(w, w->ref, commit)
                             ? arena_printf(w->arena, "refs/heads/%s", w->ref)
                         : w->ref == NULL ? w->repo.branch
                                          : NULL;
    const char *head = branch == NULL ? arena_printf(w->arena, "%s\n", commit)
                                      : arena_printf(w->arena, "ref: %s\n", branch);
    CLEANUP(fd) int git_fd = -1;
    r = make_git_dir(w, git_dir, NULL, str_of(head), &git_fd, e);
    r = r < 0 ? r : copy_objects(w, git_fd, e);
    const char *const args[] = { "read-tree", "--reset", "-u", commit, NULL };
    struct git_call c = { .args = args, .git_dir = git_dir, .work_tree = base, .cwd = base };
    r = r < 0 ? r : git_run(&c, e);
    if (r < 0) {
        return err_wrap(e, "check out '%s'", w->ref == NULL ? "HEAD" : w->ref);
    }
    w->base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->base = base;
    w->path = w->repo.root; /* all of the repository; the agent works in its part of it */
    w->within = w->repo.prefix;
    w->repo.prefix = "";
    w->baseline_commit = w->layered ? NULL : arena_dup(w->arena, str_of(commit));
    memcpy(w->head, commit, sizeof w->head);
    return w->base_fd < 0 ? ERR_SYS(e, "open '%s'", base) : 0;
}

int workspace_graft_git(struct workspace *w, struct err *e)
{
    CLEANUP(buf) struct buf head = BUF_INIT(SMALL_MAX);
    CLEANUP(fd) int git_fd = -1;
    if (!w->has_repo || !w->repo.linked || w->repo.prefix[0] != '\0' || w->base == NULL ||
        strcmp(w->base, w->source) != 0) {
        return 0;
    }
    const char *from = arena_printf(w->arena, "%s/HEAD", w->repo.git_dir);
    int r = file_read(AT_FDCWD, from, SMALL_MAX, &head, e);
    if (r == 0 && !w->layered && unlinkat(w->tree_fd, ".git", 0) < 0 && errno != ENOENT) {
        r = ERR_SYS(e, "replace '.git'");
    }
    const char *git_dir = arena_printf(w->arena, "%s/.git", w->tree);
    const char *objects = arena_printf(w->arena, "%s/objects", w->repo.common_dir);
    r = r < 0 ? r : make_git_dir(w, git_dir, objects, buf_str(&head), &git_fd, e);
    if (r == 0) {
        copy_small(w->repo.git_dir, "index", git_fd, INDEX_MAX);
    }
    return r < 0 ? err_wrap(e, "a git directory for the view") : 0;
}

int workspace_keep_contents(struct workspace *w, struct err *e)
{
    const char *git_dir = workspace_place(w, "git");
    const char *index = workspace_place(w, "git/index");
    int r = git_make_repo(git_dir, NULL, w->has_repo && w->repo.sha256, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int git_fd = open(git_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->has_repo && w->repo.prefix[0] == '\0') {
        copy_small(w->repo.git_dir, "index", git_fd, INDEX_MAX); /* spares reading every file */
    }
    if (w->inner != NULL) {
        const char *rule = arena_printf(w->arena, "/%s/\n", w->inner);
        r = file_write_atomic(git_fd, "info/exclude", str_of(rule), 0600, e);
    }
    const char *const add[] = { "add", "--all", "--ignore-errors", "--", ".", NULL };
    struct git_call c = { .args = add, .git_dir = git_dir, .index = index, .ok_status = 1 };
    c.work_tree = c.cwd = w->source;
    if (r == 0 && w->has_files) {
        r = git_run(&c, e);
    }
    return r < 0 ? err_wrap(e, "note what '%s' is like", w->source) : 0;
}

int workspace_name_contents(struct workspace *w, struct err *e)
{
    CLEANUP(buf) struct buf id = BUF_INIT(SMALL_MAX);
    const char *const write[] = { "write-tree", "--missing-ok", NULL };
    struct git_call c = { .args = write,
                          .git_dir = workspace_place(w, "git"),
                          .index = workspace_place(w, "git/index"),
                          .cwd = w->dir,
                          .out = &id };
    int r = git_run(&c, e);
    if (r < 0) {
        return err_wrap(e, "note what '%s' was like", w->source);
    }
    w->baseline_commit = arena_dup(w->arena, str_trim(buf_str(&id)));
    return 0;
}

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
#define INDEX_MAX    ((size_t)1 << 30)
#define OBJECTS_NAME "objects"

/* --- a foreign repository --- */

/* git keeps no symbolic links among its objects; one of another user's may lead anywhere. */
static bool is_link_or_info(void *arg, const char *path)
{
    struct stat st;
    return strcmp(path, "info") == 0 || fstatat(*(int *)arg, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
           S_ISLNK(st.st_mode);
}

/* Another user's objects are copied without links and alternates. */
static int copy_foreign_objects(struct workspace *w, struct err *e)
{
    const char *path = arena_printf(w->arena, "%s/objects", w->repo.git_dir);
    CLEANUP(fd) int from = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "open '%s'", path);
    }
    int r = file_mkdirs(w->dir_fd, OBJECTS_NAME, 0700, e);
    CLEANUP(fd)
    int to = r < 0 ? r : openat(w->dir_fd, OBJECTS_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct tree_copy_opts o = { .skip = { is_link_or_info, &from } };
    return r < 0    ? r
           : to < 0 ? ERR_SYS(e, "open '%s/" OBJECTS_NAME "'", w->dir)
                    : tree_copy(from, to, &o, NULL, e);
}

const char *workspace_objects(const struct workspace *w)
{
    return w->repo.foreign ? workspace_place(w, OBJECTS_NAME)
                           : arena_printf(w->arena, "%s/objects", w->repo.common_dir);
}

/* --- git directories of our own --- */

/* Where the objects are is all that a tree needs; a remote's address helps the agent to understand
 * where it is. Not with a password in it. */
static int write_config(struct workspace *w, int git_fd, struct err *e)
{
    CLEANUP(buf) struct buf url = BUF_INIT(SMALL_MAX);
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    const char *file = arena_printf(w->arena, "%s/config", w->repo.common_dir);
    const char *const args[] = { "config", "--no-includes",     "--file", file,
                                 "--get",  "remote.origin.url", NULL };
    struct git_call c = { .args = args, .git_dir = "/dev/null", .out = &url, .ok_status = 1 };
    if (!w->repo.foreign) {
        (void)!git_run(&c, NULL);
    }
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

/* Not through a link: it could lead to any file of this user's. */
static void copy_small(const char *from_dir, const char *name, int to_fd, size_t max)
{
    CLEANUP(buf) struct buf text = BUF_INIT(max);
    CLEANUP(fd) int dir = open(from_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd) int fd = dir < 0 ? -1 : file_open_below(dir, str_of(name));
    if (fd >= 0 && file_read_fd(fd, name, max, &text, NULL) == 0) {
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
        CLEANUP(fd) int from = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (from >= 0 && to >= 0) {
            (void)!file_remove_tree(git_fd, "refs/heads", NULL);
            (void)!tree_copy(from, to, NULL, NULL, NULL);
            (void)!file_mkdirs(git_fd, "refs/heads", 0755, NULL);
        }
    }
}

/* What HEAD of the user's repository says, if that is something that git could have written. */
static const char *head_of(const struct workspace *w)
{
    return w->repo.branch != NULL    ? arena_printf(w->arena, "ref: %s\n", w->repo.branch)
           : w->repo.head[0] != '\0' ? arena_printf(w->arena, "%s\n", w->repo.head)
                                     : "ref: refs/heads/none\n";
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
    const char *path = workspace_objects(w);
    CLEANUP(fd) int from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = file_remove_tree(git_fd, "objects", e);
    r = r < 0 ? r : file_mkdirs(git_fd, "objects", 0755, e);
    CLEANUP(fd) int to = r < 0 ? r : openat(git_fd, "objects", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r < 0 || from < 0 || to < 0) {
        return r < 0 ? r : ERR_SYS(e, "open '%s'", path);
    }
    return tree_copy(from, to, NULL, NULL, e);
}

/* The commit that a name stands for. Asked of a git directory of ours with the user's refs, so that
 * no configuration of the user's repository has a say. */
static int resolve(struct workspace *w, const char *git_dir, const char *ref, char out[REPO_ID_MAX],
                   struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    const char *name = arena_printf(w->arena, "%s^{commit}", ref);
    const char *const args[] = {
        "rev-parse", "--verify", "--quiet", "--end-of-options", name, NULL
    };
    struct git_call c = {
        .args = args, .git_dir = git_dir, .objects = workspace_objects(w), .out = &text
    };
    int r = git_run(&c, e);
    struct str id = str_trim(buf_str(&text));
    if (r < 0 && (e == NULL || e->code != ERR_UNAVAILABLE)) {
        return ERR(e, ERR_INPUT, "'%s' has no commit '%s'", w->repo.root, ref);
    }
    if (r == 0 && (id.len == 0 || id.len >= REPO_ID_MAX)) {
        return ERR(e, ERR_INPUT, "git cannot resolve commit '%s'", ref);
    }
    if (r == 0) {
        memcpy(out, id.ptr, id.len);
        out[id.len] = '\0';
    }
    return r;
}

static bool is_branch(struct workspace *w, const char *git_dir, char commit[REPO_ID_MAX])
{
    char other[REPO_ID_MAX];
    const char *full = arena_printf(w->arena, "refs/heads/%s", w->ref);
    return w->ref != NULL && resolve(w, git_dir, full, other, NULL) == 0 &&
           strcmp(other, commit) == 0;
}

/* The commit that is wanted, and HEAD of the new git directory such that it says so. */
static int resolve_and_point(struct workspace *w, const char *git_dir, int git_fd,
                             char commit[REPO_ID_MAX], struct err *e)
{
    static const char *const other_heads[] = { "ORIG_HEAD", "FETCH_HEAD" };
    const char *logs = arena_printf(w->arena, "%s/logs", w->repo.common_dir);
    for (size_t i = 0; i < ARRAY_LEN(other_heads); i++) {
        copy_small(w->repo.git_dir, other_heads[i], git_fd, SMALL_MAX);
    }
    /* For names like main@{1}, as long as it takes to look them up. */
    bool linked = !w->repo.foreign && symlinkat(logs, git_fd, "logs") == 0;
    int r = resolve(w, git_dir, w->ref == NULL ? "HEAD" : w->ref, commit, e);
    if (linked) {
        (void)unlinkat(git_fd, "logs", 0);
    }
    if (r < 0 || w->ref == NULL) {
        return r;
    }
    const char *head = is_branch(w, git_dir, commit)
                           ? arena_printf(w->arena, "ref: refs/heads/%s\n", w->ref)
                           : arena_printf(w->arena, "%s\n", commit);
    return file_write_atomic(git_fd, "HEAD", str_of(head), 0644, e);
}

int workspace_checkout(struct workspace *w, struct err *e)
{
    char commit[REPO_ID_MAX];
    const char *base = workspace_place(w, "base");
    const char *git_dir = arena_printf(w->arena, "%s/.git", base);
    CLEANUP(fd) int git_fd = -1;
    int r = file_mkdirs(AT_FDCWD, base, 0755, e);
    r = r < 0 || !w->repo.foreign ? r : copy_foreign_objects(w, e);
    r = r < 0 ? r : make_git_dir(w, git_dir, NULL, str_of(head_of(w)), &git_fd, e);
    r = r < 0 ? r : resolve_and_point(w, git_dir, git_fd, commit, e);
    if (r < 0) {
        return r;
    }
    r = copy_objects(w, git_fd, e);
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
    CLEANUP(fd) int git_fd = -1;
    int r = 0;
    if (!w->has_repo || !w->repo.linked || w->repo.prefix[0] != '\0' || w->base == NULL ||
        strcmp(w->base, w->source) != 0) {
        return 0;
    }
    if (!w->layered && unlinkat(w->tree_fd, ".git", 0) < 0 && errno != ENOENT) {
        r = ERR_SYS(e, "replace '.git'");
    }
    const char *git_dir = arena_printf(w->arena, "%s/.git", w->tree);
    const char *objects = arena_printf(w->arena, "%s/objects", w->repo.common_dir);
    r = r < 0 ? r : make_git_dir(w, git_dir, objects, str_of(head_of(w)), &git_fd, e);
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
    if (w->has_repo && !w->repo.foreign && w->repo.prefix[0] == '\0') {
        copy_small(w->repo.git_dir, "index", git_fd, INDEX_MAX); /* spares reading every file */
    }
    if (w->inner != NULL) {
        const char *rule = arena_printf(w->arena, "/%s/\n", w->inner);
        r = file_write_atomic(git_fd, "info/exclude", str_of(rule), 0600, e);
    }
    /* git would look into repositories within by starting a git there, with their configuration. */
    static const char *const add[] = {
        "add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul", NULL
    };
    CLEANUP(buf) struct buf which = BUF_INIT(INDEX_MAX);
    buf_add(&which, STR(".\0"));
    for (size_t i = 0; i < json_len(w->nested); i++) {
        buf_adds(&which, ":(top,exclude,literal)");
        buf_add(&which, json_str(json_item(w->nested, i), STR_EMPTY));
        buf_add(&which, STR("\0"));
    }
    struct git_call c = { .args = add, .git_dir = git_dir, .index = index, .ok_status = 1 };
    c.input = buf_str(&which);
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

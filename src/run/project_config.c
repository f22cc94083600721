/* SPDX-License-Identifier: MIT
 *
 * What a harness obeys of a workspace; see project_config.h.
 *
 * The workspace is somebody else's: nothing is followed out of it, and all that is read is bounded.
 */
#include "run/project_config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "run/agent_files.h"
#include "run/run_priv.h"
#include "skill/package.h"
#include "skill/skill_prose.h"

/* Of one file with instructions: a model that is given more reads none of it. */
#define PROSE_MAX ((size_t)256 << 10)
/* Reached by large monorepos only; instructions beyond are left out with a warning. */
enum { NESTED_MAX = 64, DEPTH_MAX = 12, ENTRIES_MAX = 20000 };
enum { SKILLS_MAX = 64, SKILL_FILES_MAX = 256 };
#define SKILL_BYTES_MAX ((uint64_t)4 << 20)
/* Layers below the view: the tree, and at most what was checked out over it. */
enum { ROOTS_MAX = 8 };

static const struct profile_project *project_of(const struct run *run)
{
    return &run->plan->settings.profile->project;
}

static bool is_trusted(const struct run *run)
{
    return run->plan->settings.trust_project;
}

/* Without a home of its own the harness has its skills and instructions in the user's. */
static bool takes_prose(const struct run *run)
{
    return !is_trusted(run) && run->plan->settings.home == HOME_PRIVATE;
}

/* An agent, and not just any program or an image with an entry point of its own. */
static bool is_harness(const struct profile *p)
{
    return p->image == NULL && (json_len(p->binary) > 0 || strcmp(p->driver, "acp") == 0);
}

void project_admit(struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    if (is_harness(p) && !p->project.declared && !is_trusted(run)) {
        run_warn(run,
                 "files of the workspace that configure the agent are not disabled: adapter '%s' "
                 "does not declare them (project_config)",
                 p->name);
    }
}

/* --- values of the profile --- */

/* Does the task bring a skill that makes the harness run programs? Then it has to be able to. */
static bool has_skill_commands(struct run *run)
{
    const struct definition *d = &run->definition;
    for (size_t i = 0; i < d->skills_len; i++) {
        const struct package_file *f = package_find(d->skills[i].skill->package, STR("SKILL.md"));
        if (f != NULL && skill_prose_has_commands(run->arena, f->content)) {
            return true;
        }
    }
    return false;
}

int project_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
                 struct err *e)
{
    const struct profile_project *p = project_of(run);
    const struct json *over = is_trusted(run) ? p->trusted_files : p->files;
    const struct placeholder list[] = {
        { .name = "workspace", .value = str_of(run->paths.view) },
        { .name = "home", .value = str_of(run->paths.home) },
    };
    struct placeholders vars = { list, ARRAY_LEN(list) };
    *ret = json_copy(run->arena, tree);
    int r = expand_over(run->arena, json_get(over, name), &vars, ret, e);
    if (r == 0 && !is_trusted(run) && p->skill_command_files != NULL && has_skill_commands(run)) {
        r = expand_over(run->arena, json_get(p->skill_command_files, name), &vars, ret, e);
    }
    return r < 0 ? err_wrap(e, "values of 'project_config' for '%s'", name) : 0;
}

int project_environment(struct run *run, const struct placeholders *vars, struct json *env,
                        struct err *e)
{
    const struct profile_project *p = project_of(run);
    return expand_env(run->arena, is_trusted(run) ? p->trusted_env : p->env, vars, env, e);
}

/* Files that shells read when they start, behind any command that a policy allows. */
static const char *const shell_files[] = {
    ".profile", ".bash_profile", ".bash_login", ".bashrc",
    ".zshenv",  ".zprofile",     ".zshrc",      ".zlogin",
};

/* Without policies the agent may run what it likes, and may have shells start as it likes. */
static bool locks_shells(const struct run *run)
{
    return run->plan->settings.home == HOME_PRIVATE && run->plan->settings.profile->image == NULL &&
           (json_len(run->plan->settings.policies) > 0 || run->opts->hooks.n_policies > 0);
}

int project_lock_shells(struct run *run, struct err *e)
{
    const struct json *dirs = project_of(run)->home_locked;
    int r = 0;
    for (size_t i = 0; locks_shells(run) && r == 0 && i < ARRAY_LEN(shell_files); i++) {
        const char *path = arena_printf(run->arena, "%s/%s", run->paths.home, shell_files[i]);
        r = file_exists(AT_FDCWD, path) ? 0 : home_write(run, shell_files[i], STR_EMPTY, e);
    }
    for (size_t i = 0; locks_shells(run) && r == 0 && i < json_len(dirs); i++) {
        const char *name = json_cstring(json_item(dirs, i), "");
        r = file_mkdirs(AT_FDCWD, arena_printf(run->arena, "%s/%s", run->paths.home, name), 0700,
                        e);
    }
    return r;
}

const char *const *project_locked(struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    const struct json *dirs = p->project.home_locked;
    size_t max = p->files_len + ARRAY_LEN(shell_files) + json_len(dirs) + 2;
    const char **list = arena_array(run->arena, max, sizeof *list);
    size_t n = 0;
    bool private_home = run->plan->settings.home == HOME_PRIVATE;
    for (size_t i = 0; locks_shells(run) && i < ARRAY_LEN(shell_files); i++) {
        list[n++] = arena_printf(run->arena, "%s/%s", run->paths.home, shell_files[i]);
    }
    for (size_t i = 0; locks_shells(run) && i < json_len(dirs); i++) {
        list[n++] = arena_printf(run->arena, "%s/%s", run->paths.home,
                                 json_cstring(json_item(dirs, i), ""));
    }
    for (size_t i = 0; i < p->files_len; i++) {
        if (p->files[i].locked && (private_home || p->files[i].always)) {
            list[n++] = arena_printf(run->arena, "%s/%s", run->paths.home, p->files[i].path);
        }
    }
    /* Where commands of skills are run, the agent must not write skills of its own. */
    if (private_home && run->paths.skills != NULL && p->project.skill_command_files != NULL &&
        !is_trusted(run) && has_skill_commands(run)) {
        list[n++] = run->paths.skills;
    }
    return list;
}

/* --- the workspace as it is at the start --- */

struct roots {
    int fds[ROOTS_MAX]; /* the first that has a file counts */
    size_t len;
};

static void add_root(struct roots *r, const char *path)
{
    int fd = r->len < ROOTS_MAX ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        r->fds[r->len++] = fd;
    }
}

/* The view itself does not stand yet: what it will be made of. */
static struct roots open_roots(const struct run *run)
{
    const struct sandbox_view *v = &run->confine.view;
    struct roots r = { .len = 0 };
    if (v->path == NULL) {
        add_root(&r, run->paths.view);
    } else if (v->bind != NULL) {
        add_root(&r, v->bind);
    }
    for (size_t i = 0; v->path != NULL && v->bind == NULL && v->lower[i] != NULL; i++) {
        add_root(&r, v->lower[i]);
    }
    return r;
}

static void close_roots(struct roots *r)
{
    for (size_t i = 0; i < r->len; i++) {
        (void)close(r->fds[i]);
    }
    r->len = 0;
}

/* A file or directory of the workspace, the first that is there. */
static int open_in(const struct roots *r, const char *path, uint64_t flags)
{
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < r->len; i++) {
        fd = agent_files_open(r->fds[i], path, flags);
    }
    return fd;
}

/* The text of a file with instructions; 0: there is none, or none that can be used. */
static int read_prose(struct run *run, int dir, const char *path, struct buf *ret)
{
    struct err e;
    struct stat st;
    CLEANUP(fd) int fd = agent_files_open(dir, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return 0;
    }
    if (file_read_fd(fd, path, PROSE_MAX, ret, &e) < 0) {
        run_warn(run, "'%s' of the workspace is not given to the agent: %s", path, e.msg);
        return 0;
    }
    return 1;
}

/* --- instructions --- */

/* The first of several names, which the harness would read in this order. */
static int copy_instructions(struct run *run, const struct roots *roots, const struct json *item,
                             struct err *e)
{
    const struct json *names = json_get(item, "from");
    const char *to = json_cstring(json_get(item, "to"), "");
    for (size_t i = 0; i < json_len(names); i++) {
        const char *name = json_cstring(json_item(names, i), "");
        for (size_t k = 0; k < roots->len; k++) {
            CLEANUP(buf) struct buf text = BUF_INIT(PROSE_MAX);
            if (read_prose(run, roots->fds[k], name, &text) > 0 && text.len > 0) {
                return home_append(run, to, buf_str(&text), e);
            }
        }
    }
    return 0;
}

struct nested_walk {
    struct run *run;
    const char *name; /* of the files */
    const char *to;   /* below the home */
    int root;
    size_t found, entries;
    bool cut; /* there is more */
};

/* In patterns these mean more than themselves. */
static bool is_plain_path(const char *path)
{
    return strpbrk(path, "*?[]{}()!\\|+@,") == NULL &&
           str_utf8_prefix(str_of(path)) == strlen(path);
}

/* A rule that Claude Code reads when it touches a file below the directory. */
static int write_rule(struct nested_walk *w, const char *dir, struct str text, struct err *e)
{
    struct run *run = w->run;
    CLEANUP(buf) struct buf rule = BUF_INIT(2 * PROSE_MAX);
    struct json *paths = json_array(run->arena);
    json_push(run->arena, paths, json_cstr(run->arena, arena_printf(run->arena, "%s/**", dir)));
    buf_add(&rule, STR("---\npaths: "));
    int r = json_write(paths, JSON_COMPACT, &rule, e);
    buf_addf(&rule, "\n---\nContents of %s/%s:\n\n", dir, w->name);
    buf_add(&rule, text);
    const char *path = arena_printf(run->arena, "%s/project-%zu.md", w->to, ++w->found);
    return r < 0 ? r : home_write(run, path, buf_str(&rule), e);
}

static int visit_dir(struct nested_walk *w, const char *dir, struct err *e)
{
    const char *path = arena_printf(w->run->arena, "%s/%s", dir, w->name);
    CLEANUP(buf) struct buf text = BUF_INIT(PROSE_MAX);
    if (read_prose(w->run, w->root, path, &text) == 0 || text.len == 0) {
        return 0;
    }
    if (w->found == NESTED_MAX) {
        w->cut = true;
        return 0;
    }
    if (!is_plain_path(dir)) {
        run_warn(w->run,
                 "'%s' of the workspace is not given to the agent: its path is not a pattern",
                 path);
        return 0;
    }
    return write_rule(w, dir, buf_str(&text), e);
}

static bool is_passed_over(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0 ||
           strcmp(name, ".claude") == 0 || strcmp(name, "node_modules") == 0;
}

/* Directories only, not through links; DEPTH_MAX bounds the recursion. */
static int walk_nested(struct nested_walk *w, int parent, const char *above, int depth,
                       struct err *e)
{
    DIR *d = fdopendir(parent);
    int r = 0;
    if (d == NULL) {
        (void)close(parent);
        return 0;
    }
    for (struct dirent *i = readdir(d); r == 0 && i != NULL; i = readdir(d)) {
        if (++w->entries > ENTRIES_MAX) {
            w->cut = true;
            break;
        }
        if ((i->d_type != DT_DIR && i->d_type != DT_UNKNOWN) || is_passed_over(i->d_name)) {
            continue;
        }
        int fd = openat(dirfd(d), i->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
            continue;
        }
        const char *dir = above[0] == '\0' ? arena_dup(w->run->arena, str_of(i->d_name))
                                           : arena_printf(w->run->arena, "%s/%s", above, i->d_name);
        r = visit_dir(w, dir, e);
        if (r < 0 || depth == DEPTH_MAX) {
            (void)close(fd);
        } else {
            r = walk_nested(w, fd, dir, depth + 1, e);
        }
    }
    (void)closedir(d);
    return r;
}

static int copy_nested(struct run *run, const struct roots *roots, const struct json *item,
                       struct err *e)
{
    struct nested_walk w = {
        .run = run,
        .name = json_cstring(json_get(item, "nested"), ""),
        .to = json_cstring(json_get(item, "to"), ""),
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < roots->len; i++) {
        w.root = roots->fds[i];
        int fd = openat(w.root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? 0 : walk_nested(&w, fd, "", 1, e);
    }
    if (w.cut) {
        run_warn(
            run,
            "not every %s in subdirectories of the workspace is given to the agent: the limits "
            "are %d files and %d directory entries",
            w.name, NESTED_MAX, ENTRIES_MAX);
    }
    return r;
}

/* --- skills --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t list_dir(struct run *run, int dir, const char *names[SKILLS_MAX])
{
    size_t n = 0;
    DIR *d = fdopendir(dir);
    for (struct dirent *i = d == NULL ? NULL : readdir(d); i != NULL; i = readdir(d)) {
        if (i->d_name[0] != '.' && n < SKILLS_MAX) {
            names[n++] = arena_dup(run->arena, str_of(i->d_name));
        } else if (i->d_name[0] != '.') {
            run_warn(run, "of the skills in the workspace %d are given to the agent", SKILLS_MAX);
            break;
        }
    }
    if (d == NULL) {
        (void)close(dir);
    } else {
        (void)closedir(d);
    }
    qsort(names, n, sizeof *names, by_name);
    return n;
}

static void copy_skill(struct run *run, const struct roots *roots, const char *folder,
                       const char *name, int skills_fd)
{
    struct err e;
    struct package *p = NULL;
    const struct package_limits limits = { .max_total = SKILL_BYTES_MAX,
                                           .max_files = SKILL_FILES_MAX };
    const char *path = arena_printf(run->arena, "%s/%s", folder, name);
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(fd) int fd = open_in(roots, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        return; /* a file beside the skills */
    }
    int r = package_read_dir(a, fd, path, &limits, &p, &e);
    r = r < 0 ? r : skill_prose_install(a, p, name, skills_fd, &e);
    if (r < 0 && e.code != ERR_EXISTS) { /* of two with the same name the task's counts */
        run_warn(run, "skill '%s' of the workspace is not given to the agent: %s", path, e.msg);
    }
}

static int copy_skills(struct run *run, const struct roots *roots, const char *folder,
                       struct err *e)
{
    const char *names[SKILLS_MAX];
    const struct profile *profile = run->plan->settings.profile;
    const char *to = arena_printf(run->arena, "%s/%s", run->paths.home, profile->skills);
    int dir = open_in(roots, folder, O_RDONLY | O_DIRECTORY);
    if (dir < 0) {
        return 0;
    }
    size_t n = list_dir(run, dir, names);
    int r = n == 0 ? 0 : file_mkdirs(AT_FDCWD, to, 0700, e);
    CLEANUP(fd)
    int fd = n == 0 || r < 0 ? -1 : open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (n > 0 && r == 0 && fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", to);
    }
    for (size_t i = 0; fd >= 0 && i < n; i++) {
        copy_skill(run, roots, folder, names[i], fd);
    }
    return r;
}

int project_prose(struct run *run, struct err *e)
{
    const struct profile *profile = run->plan->settings.profile;
    const struct profile_project *p = project_of(run);
    bool wanted = p->instructions != NULL || (p->skills != NULL && profile->skills != NULL);
    if (!takes_prose(run) || !wanted) {
        return 0;
    }
    struct roots roots = open_roots(run);
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(p->instructions); i++) {
        const struct json *item = json_item(p->instructions, i);
        r = json_get(item, "nested") != NULL ? copy_nested(run, &roots, item, e)
                                             : copy_instructions(run, &roots, item, e);
    }
    for (size_t i = 0; r == 0 && profile->skills != NULL && i < json_len(p->skills); i++) {
        r = copy_skills(run, &roots, json_cstring(json_item(p->skills, i), ""), e);
    }
    close_roots(&roots);
    return r < 0 ? err_wrap(e, "instructions of the workspace") : 0;
}

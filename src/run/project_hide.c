/* SPDX-License-Identifier: MIT
 *
 * Files of the workspace that a harness must not find when it starts; see project_config.h. They
 * are renamed beside their place, which costs nothing and keeps links, modes and times, and renamed
 * back when the first answer of a model has come: the harness has read its configuration by then,
 * and the agent can read and edit the files like all others.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "run/agent_files.h"
#include "run/project_config.h"
#include "run/run_priv.h"

/* A repository with more configuration files than this is up to no good. */
enum { HIDDEN_MAX = 256 };

static bool is_in_place(const struct run *run)
{
    return run->plan->settings.view.mode == WORKSPACE_IN_PLACE;
}

static bool has_patterns(const struct run *run)
{
    const struct profile_project *p = &run->plan->settings.profile->project;
    return !run->plan->settings.trust_project &&
           json_len(p->hide) + json_len(p->hide_whole_run) > 0;
}

bool project_hides(const struct run *run)
{
    return has_patterns(run) && !is_in_place(run);
}

/* --- which --- */

struct search {
    struct run *run;
    int root;           /* of the workspace */
    struct json *found; /* paths below the root: whether for the whole run */
    bool whole_run;
};

static int add_file(struct search *s, const char *dir, const char *name, struct err *e)
{
    if (json_len(s->found) == HIDDEN_MAX) {
        return ERR(e, ERR_DENIED,
                   "the workspace has more than %d files that configure the agent: look at them, "
                   "then use --trust-project",
                   HIDDEN_MAX);
    }
    const char *path = arena_printf(s->run->arena, "%s/%s", dir, name);
    json_set(s->run->arena, s->found, str_of(path), json_boolean(s->run->arena, s->whole_run));
    return 0;
}

static int search_dir(struct search *s, const char *dir, const char *pattern, struct err *e);

/* An entry of `dir` that matches the first name of a pattern; `rest` is what follows, or NULL. */
static int visit_entry(struct search *s, int dir_fd, const char *dir, const char *name,
                       const char *rest, struct err *e)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0;
    }
    if (rest == NULL) {
        return S_ISDIR(st.st_mode) ? 0 : add_file(s, dir, name, e);
    }
    bool leads_on = S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode);
    return !leads_on ? 0 : search_dir(s, arena_printf(s->run->arena, "%s/%s", dir, name), rest, e);
}

static bool is_dot_name(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Adds the files below `dir` that match `pattern`, one name of it per level. `dir` may lead through
 * links, but not out of the workspace. */
static int search_dir(struct search *s, const char *dir, const char *pattern, struct err *e)
{
    int fd = agent_files_open(s->root, dir, O_RDONLY | O_DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        cleanup_fd(&fd);
        return 0;
    }
    const char *slash = strchr(pattern, '/');
    const char *rest = slash == NULL ? NULL : slash + 1;
    const char *name = slash == NULL
                           ? pattern
                           : arena_dup(s->run->arena, str_n(pattern, (size_t)(slash - pattern)));
    int r = 0;
    if (strpbrk(name, "*?[\\") == NULL) {
        r = visit_entry(s, dirfd(d), dir, name, rest, e);
    } else {
        for (struct dirent *i = readdir(d); r == 0 && i != NULL; i = readdir(d)) {
            if (!is_dot_name(i->d_name) && fnmatch(name, i->d_name, 0) == 0) {
                r = visit_entry(s, dirfd(d), dir, i->d_name, rest, e);
            }
        }
    }
    (void)closedir(d);
    return r;
}

static int search_patterns(struct search *s, const struct json *patterns, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(patterns); i++) {
        r = search_dir(s, ".", json_cstring(json_item(patterns, i), ""), e);
    }
    return r;
}

/* Below the root as "./opencode.json", "./.opencode/plugin/a.js". */
static int find_files(struct run *run, int root, struct json **ret, struct err *e)
{
    const struct profile_project *p = &run->plan->settings.profile->project;
    struct search s = { .run = run, .root = root, .found = json_object(run->arena) };
    int r = search_patterns(&s, p->hide, e);
    s.whole_run = true;
    r = r < 0 ? r : search_patterns(&s, p->hide_whole_run, e);
    *ret = s.found;
    return r;
}

/* --- moving --- */

/* Where the file is meanwhile: in its directory, which is opened without leaving the workspace. */
struct place {
    int fd;
    const char *name, *aside;
};

static struct place place_of(struct arena *a, int root, const char *path, const char *run_id)
{
    const char *name = strrchr(path, '/') + 1;
    const char *dir = arena_dup(a, str_n(path, (size_t)(name - 1 - path)));
    return (struct place) {
        .fd = agent_files_open(root, dir, O_RDONLY | O_DIRECTORY),
        .name = name,
        .aside = arena_printf(a, "%s.hidden-%.8s", name, run_id),
    };
}

static int hide_file(struct run *run, int root, const char *path, struct err *e)
{
    struct place p = place_of(run->arena, root, path, run->record.state.run_id);
    int r = renameat2(p.fd, p.name, p.fd, p.aside, RENAME_NOREPLACE) == 0
                ? 0
                : ERR_SYS(e, "hide '%s' from the agent", path);
    cleanup_fd(&p.fd);
    return r;
}

/* What the agent made in its place stays. */
static int reveal_file(struct arena *a, int root, const char *path, const char *run_id)
{
    struct place p = place_of(a, root, path, run_id);
    int r = renameat2(p.fd, p.aside, p.fd, p.name, RENAME_NOREPLACE);
    if (r < 0 && errno == EEXIST) {
        r = unlinkat(p.fd, p.aside, 0);
    }
    cleanup_fd(&p.fd);
    return r;
}

/* On disk before the first file is moved: if this process is killed, project_recover() moves them
 * back. */
static int write_note(struct run *run, const struct json *list, struct err *e)
{
    struct arena *a = run->arena;
    struct json *note = json_object(a);
    struct json *paths = json_array(a);
    for (size_t i = 0; i < json_len(list); i++) {
        json_push(a, paths, json_string(a, list->object.members[i].key));
    }
    json_setc(a, note, "run_id", json_cstr(a, run->record.state.run_id));
    json_setc(a, note, "paths", paths);
    return json_len(list) == 0 ? 0 : record_write_json(&run->record, PROJECT_HIDDEN_NOTE, note, e);
}

void project_recover(int root, const struct json *note)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct json *paths = json_get(note, "paths");
    for (size_t i = 0; i < json_len(paths); i++) {
        const char *path = json_cstring(json_item(paths, i), "");
        if (strchr(path, '/') != NULL) {
            (void)reveal_file(a, root, path, json_cstring(json_get(note, "run_id"), ""));
        }
    }
}

int project_hide(struct run *run, struct err *e)
{
    int root = project_hides(run) && run->hidden == NULL ? agent_files_root(run) : -1;
    struct json *list = NULL;
    if (root < 0) {
        return 0;
    }
    int r = find_files(run, root, &list, e);
    r = r < 0 ? r : write_note(run, list, e);
    run->hidden = json_object(run->arena);
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        const struct json_member *m = &list->object.members[i];
        r = hide_file(run, root, m->key.ptr, e);
        if (r == 0) {
            json_set(run->arena, run->hidden, m->key, m->value);
        }
    }
    return r;
}

void project_reveal(struct run *run, bool over)
{
    int root = json_len(run->hidden) > 0 ? agent_files_root(run) : -1;
    struct json *rest = json_object(run->arena);
    for (size_t i = 0; root >= 0 && i < json_len(run->hidden); i++) {
        const struct json_member *m = &run->hidden->object.members[i];
        if (json_bool(m->value, false) && !over) {
            json_set(run->arena, rest, m->key, m->value);
        } else if (reveal_file(run->arena, root, m->key.ptr, run->record.state.run_id) < 0) {
            /* the agent has moved or removed it: that is a change like others */
            run_warn(run, "'%s' of the workspace was hidden from the agent and has disappeared",
                     m->key.ptr);
        }
    }
    if (root >= 0) {
        run->hidden = rest;
        if (json_len(rest) == 0) {
            (void)unlinkat(run->record.dir.dir_fd, PROJECT_HIDDEN_NOTE, 0);
        }
    }
}

int project_masked(struct run *run, const char *const **ret, struct err *e)
{
    const char *workspace = run->paths.view;
    struct json *list = NULL;
    const char **paths = arena_array(run->arena, HIDDEN_MAX + 1, sizeof *paths);
    bool wanted = is_in_place(run) && has_patterns(run);
    CLEANUP(fd)
    int root = wanted ? open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int r = root < 0 ? 0 : find_files(run, root, &list, e);
    for (size_t i = 0; i < json_len(list); i++) {
        const char *path = list->object.members[i].key.ptr;
        bool at_root = path[0] == '.' && path[1] == '/';
        paths[i] = arena_printf(run->arena, "%s/%s", workspace, at_root ? path + 2 : path);
    }
    *ret = (const char *const *)paths;
    return r;
}

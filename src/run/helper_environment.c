/* SPDX-License-Identifier: MIT
 *
 * From the agent's environment to that of programs that judge it.
 */
#include "run/helper_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "run/image_root.h"
#include "run/run_priv.h"
#include "workspace/workspace.h"

/* Lists of directories, separated by colons, from which programs load code. */
static const char *const lists[] = { "PATH",    "PYTHONPATH",      "NODE_PATH", "PERL5LIB",
                                     "RUBYLIB", "LD_LIBRARY_PATH", "CLASSPATH", "GOPATH" };

/* They name files or code to load, or configuration that does. A tool that needs one sets it in its
 * own `env`. */
static const char *const dropped[] = {
    "HOME",          "BASH_ENV",   "ENV",        "LD_PRELOAD",        "LD_AUDIT",
    "NODE_OPTIONS",  "PYTHONHOME", "PERL5OPT",   "PYTHONSTARTUP",     "PYTHONUSERBASE",
    "PYTHONINSPECT", "RUBYOPT",    "PERL5DB",    "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
    "ZDOTDIR",       "GIT_DIR",    "CARGO_HOME", "GEM_HOME",          "NPM_CONFIG_USERCONFIG",
    "CODEX_HOME",    "GNUPGHOME",
};
static const char *const dropped_prefixes[] = { "XDG_", "GIT_CONFIG" };

/* As many as a sandbox can show, by two names each. */
#define WRITABLE_MAX 512

struct making {
    struct run *run;
    const char *writable[WRITABLE_MAX]; /* directories that the agent can write */
    size_t n_writable;
    struct buf left_out;
};

static bool is_one_of(struct str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eqc(name, list[i])) {
            return true;
        }
    }
    return false;
}

static bool is_dropped(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(dropped_prefixes); i++) {
        if (str_starts(name, str_of(dropped_prefixes[i]))) {
            return true;
        }
    }
    return is_one_of(name, dropped, ARRAY_LEN(dropped));
}

/* --- what the agent can write --- */

/* By its name, and by where it really is. */
static void add_directory(struct making *m, const char *dir)
{
    char real[PATH_MAX];
    if (dir == NULL || dir[0] != '/' || m->n_writable + 2 > ARRAY_LEN(m->writable)) {
        return;
    }
    m->writable[m->n_writable++] = dir;
    if (realpath(dir, real) != NULL && strcmp(real, dir) != 0) {
        m->writable[m->n_writable++] = arena_dup(m->run->arena, str_of(real));
    }
}

static void find_writable(struct making *m)
{
    /* Also what is shown read-only below these: a directory above it can be moved away. */
    static const char *const shared[] = { "/tmp", "/var/tmp", "/run", "/dev/shm" };
    const struct run *run = m->run;
    add_directory(m, run->paths.view);
    add_directory(m, workspace_source(run->workspace));
    add_directory(m, run->paths.home);
    add_directory(m, run->paths.artifacts);
    for (size_t i = 0; sandbox_session_sandbox(run) != NULL && i < ARRAY_LEN(shared); i++) {
        add_directory(m, shared[i]);
    }
    for (const char *const *p = run->confine.policy.write; p != NULL && *p != NULL; p++) {
        add_directory(m, *p);
    }
}

static bool is_in_writable_place(const struct making *m, const char *path)
{
    for (size_t i = 0; i < m->n_writable; i++) {
        if (path_is_below(path, m->writable[i])) {
            return true;
        }
    }
    return false;
}

/* A relative entry is below the workspace. One that does not exist, or that is a whole shared home,
 * may be made by the agent; directories of a shared home that PATH names are read-only for it
 * (sandbox/toolchain_paths.h). */
static bool is_writable(const struct making *m, const char *path)
{
    char real[PATH_MAX];
    const char *home = m->run->plan->settings.home == HOME_SHARED ? getenv("HOME") : NULL;
    if (image_root_wanted(m->run)) { /* programs beside the agent see these as they were */
        return !sandbox_image_is_fixed(path) || is_in_writable_place(m, path);
    }
    return path[0] != '/' || realpath(path, real) == NULL || is_in_writable_place(m, path) ||
           is_in_writable_place(m, real) || (home != NULL && path_is_below(home, path));
}

/* --- variables --- */

static const char *filter_list(struct making *m, struct str name, struct str value)
{
    struct arena *a = m->run->arena;
    CLEANUP(buf) struct buf kept = BUF_INIT(BUF_TEXT);
    while (value.ptr != NULL) {
        const char *entry = arena_dup(a, str_split(&value, ':'));
        if (!is_writable(m, entry)) {
            buf_addf(&kept, "%s%s", kept.len > 0 ? ":" : "", entry);
        } else if (str_eqc(name, "PATH") && entry[0] != '\0') {
            buf_addf(&m->left_out, "%s'%s'", m->left_out.len > 0 ? ", " : "", entry);
        }
    }
    if (kept.len == 0) {
        return NULL;
    }
    return arena_printf(a, "%.*s=%.*s", STR_ARG(name), STR_ARG(buf_str(&kept)));
}

/* NULL: it is left out. */
static const char *filter_variable(struct making *m, const char *entry)
{
    struct str value = str_of(entry);
    struct str name = str_split(&value, '=');
    if (is_dropped(name)) {
        return NULL;
    }
    return is_one_of(name, lists, ARRAY_LEN(lists)) ? filter_list(m, name, value) : entry;
}

/* With a shared home and a sandbox, helpers outside of it are the user's own programs in the user's
 * own home, which the agent does not change. */
static int outside_home(struct run *run, const char **ret, bool *ret_own, struct err *e)
{
    const char *home = getenv("HOME");
    if (run->plan->settings.home == HOME_SHARED && sandbox_session_sandbox(run) != NULL &&
        home != NULL) {
        *ret = home;
        *ret_own = false;
        return 0;
    }
    if (mkdirat(run->record.dir.dir_fd, HELPER_HOME, 0700) < 0 && errno != EEXIST) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", HELPER_HOME);
    }
    *ret_own = true;
    *ret = arena_printf(run->arena, "%s/" HELPER_HOME, run->record.dir.path);
    return 0;
}

int helper_home_new(void *arg, char out[PATH_MAX], struct err *e)
{
    const struct run *run = arg;
    char id[ID_LEN];
    int n = snprintf(out, PATH_MAX, "%s/" HELPER_HOME "/%s", run->record.dir.path, id_new(id));
    if (n < 0 || n >= PATH_MAX) {
        return ERR(e, ERR_OUTPUT, "create '%s': the path is too long", HELPER_HOME);
    }
    /* without a sandbox the agent may have removed the directory, or put something else there */
    int r = mkdir(out, 0700);
    if (r < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        int at = run->record.dir.dir_fd;
        (void)!file_remove_tree(at, HELPER_HOME, NULL);
        r = mkdirat(at, HELPER_HOME, 0700) < 0 ? -1 : mkdir(out, 0700);
    }
    return r < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", out) : 0;
}

static const struct json *inside_environment(struct run *run)
{
    struct json *env = gateway_proxy_environment(run);
    struct json *all = env == NULL ? json_object(run->arena) : json_copy(run->arena, env);
    json_setc(run->arena, all, "HOME", json_cstr(run->arena, SANDBOX_HELPER_HOME));
    return all;
}

int helper_environment_make(struct run *run, struct helper_environment *ret, struct err *e)
{
    static const char *const git[] = {
        /* A repository that the agent made has a configuration of the agent's; this much of it
         * would be executed by any look at the repository. */
        "GIT_CONFIG_COUNT=1",
        "GIT_CONFIG_KEY_0=core.fsmonitor",
        "GIT_CONFIG_VALUE_0=false",
    };
    struct making m = { .run = run };
    struct environment agent;
    const char *home = NULL;
    bool own_home = false;
    size_t n = 0;
    size_t at = 0;
    int r = launch_environment(run, NULL, &agent, e);
    r = r < 0 ? r : outside_home(run, &home, &own_home, e);
    if (r < 0) {
        return r;
    }
    while (agent.envp[n] != NULL) {
        n++;
    }
    const char **envp = arena_array(run->arena, n + ARRAY_LEN(git) + 2, sizeof *envp);
    buf_init(&m.left_out, BUF_TEXT);
    find_writable(&m);
    for (size_t i = 0; i < n; i++) {
        const char *kept = filter_variable(&m, agent.envp[i]);
        if (kept != NULL) {
            envp[at++] = kept;
        }
    }
    envp[at++] = arena_printf(run->arena, "HOME=%s", home);
    for (size_t i = 0; i < ARRAY_LEN(git); i++) {
        envp[at++] = git[i];
    }
    *ret = (struct helper_environment) {
        .envp = envp,
        .home = home,
        .own_home = own_home,
        .inside = inside_environment(run),
        .left_out = m.left_out.len == 0 ? NULL : arena_dup(run->arena, buf_str(&m.left_out)),
    };
    buf_done(&m.left_out);
    return 0;
}

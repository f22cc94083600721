/* SPDX-License-Identifier: MIT
 *
 * The steps of an installation; see dependencies.h.
 */
#include "run/dependencies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "proc/locate.h"
#include "proc/proc.h"
#include "proc/which.h"
#include "run/image.h"
#include "run/image_root.h"
#include "run/run_priv.h"
#include "skill/skill_dependencies.h"

/* For each step: packages may be large. The caller can interrupt the run. */
#define STEP_TIME    (900 * NSEC_PER_SEC)
#define STAGE_PREFIX ".new-"
/* What a killed run leaves behind is removed after so long. */
enum { STAGE_DAYS = 2 };
enum { OUTPUT_MAX = 65536, CONFIG_MAX = 1 << 20, SWEEP_MAX = 10000 };

enum step { STEP_VERSION, STEP_VENV, STEP_WHEELS, STEP_SOURCES };

struct run_dependencies {
    const struct skill *skill;
    struct proc *proc;
    enum step step;
    struct buf output;  /* of the step */
    struct buf config;  /* pyvenv.cfg as uv wrote it */
    const char *uv;     /* its path */
    const char *python; /* NULL: uv's choice */
    const char *cache;
    const char *stage; /* directory that the environment is made in; NULL: none yet */
    const char *env;   /* there */
    const char *kept;  /* its name in the cache */
    const char *dir;   /* what the agent is shown; NULL: nothing (yet) */
};

const char *dependencies_dir(const struct run *run)
{
    return run->dependencies == NULL ? NULL : run->dependencies->dir;
}

/* --- cache --- */

static const char *cache_dir(struct arena *a)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        return arena_printf(a, "%s/cinch/dependencies", base);
    }
    return home == NULL || home[0] != '/' ? NULL
                                          : arena_printf(a, "%s/.cache/cinch/dependencies", home);
}

/* Its Python may have been removed since. */
static bool is_usable(struct arena *a, const char *dir)
{
    return file_exists(AT_FDCWD, arena_printf(a, "%s/pyvenv.cfg", dir)) &&
           access(arena_printf(a, "%s/bin/python", dir), X_OK) == 0;
}

static void sweep_stages(const char *cache)
{
    DIR *d = opendir(cache);
    struct stat st;
    int left = SWEEP_MAX;
    nsec now = clock_wall();
    for (struct dirent *i = d == NULL ? NULL : readdir(d); i != NULL && left > 0; i = readdir(d)) {
        left--;
        if (strncmp(i->d_name, STAGE_PREFIX, strlen(STAGE_PREFIX)) == 0 &&
            fstatat(dirfd(d), i->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_mtime < now / NSEC_PER_SEC - STAGE_DAYS * 86400L) {
            (void)!file_remove_tree(dirfd(d), i->d_name, NULL);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

static int open_stage(struct run *run, struct err *e)
{
    struct run_dependencies *x = run->dependencies;
    char *dir = arena_dup(run->arena,
                          str_of(arena_printf(run->arena, "%s/" STAGE_PREFIX "XXXXXX", x->cache)));
    int r = file_mkdirs(AT_FDCWD, x->cache, 0700, e);
    if (r < 0) {
        return r;
    }
    sweep_stages(x->cache);
    if (mkdtemp(dir) == NULL) {
        return ERR_SYS(e, "create a directory in '%s'", x->cache);
    }
    x->stage = dir;
    x->env = arena_printf(run->arena, "%s/env", dir);
    return file_mkdirs(AT_FDCWD, arena_printf(run->arena, "%s/work", dir), 0700, e);
}

static void remove_stage(struct run *run)
{
    struct run_dependencies *x = run->dependencies;
    if (x->stage != NULL) {
        (void)!file_remove_tree(AT_FDCWD, x->stage, NULL);
        x->stage = NULL;
    }
}

/* Of the environment: where the interpreter is. The sandbox shows what this file names. */
static int read_config(struct run *run, struct buf *ret, struct err *e)
{
    CLEANUP(fd)
    int env = open(run->dependencies->env, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(fd) int fd = env < 0 ? -1 : file_open_below(env, STR("pyvenv.cfg"));
    buf_reset(ret);
    return fd < 0 ? ERR_SYS(e, "open pyvenv.cfg of the new environment")
                  : file_read_fd(fd, "pyvenv.cfg", OUTPUT_MAX, ret, e);
}

static bool is_real_dir(struct run *run, const char *name)
{
    struct stat st;
    const char *path = arena_printf(run->arena, "%s%s", run->dependencies->env, name);
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Code of a package has worked in the environment: what decides about the view of later runs must
 * be as it was. */
static int check_built(struct run *run, struct err *e)
{
    struct run_dependencies *x = run->dependencies;
    CLEANUP(buf) struct buf now = BUF_INIT(OUTPUT_MAX);
    int r = read_config(run, &now, e);
    if (r == 0 && !(str_eq(buf_str(&now), buf_str(&x->config)) && is_real_dir(run, "") &&
                    is_real_dir(run, "/bin") && is_real_dir(run, "/lib"))) {
        r = ERR(e, ERR_DENIED, "the build of a package changed the virtual environment itself");
    }
    return r < 0 ? r : file_drop_setid(AT_FDCWD, x->env, e);
}

/* Another run may have been faster. */
static int keep_env(struct run *run, struct err *e)
{
    struct run_dependencies *x = run->dependencies;
    if (is_usable(run->arena, x->kept)) {
        return 0;
    }
    int r = file_remove_tree(AT_FDCWD, x->kept, e);
    if (r == 0 && rename(x->env, x->kept) < 0 && !is_usable(run->arena, x->kept)) {
        r = ERR_SYS(e, "rename '%s' to '%s'", x->env, x->kept);
    }
    return r;
}

/* --- end --- */

static void go_on(struct run *run)
{
    struct run_dependencies *x = run->dependencies;
    struct sandbox_policy *p = &run->confine.policy;
    struct err e;
    remove_stage(run);
    if (x->dir != NULL) {
        p->path = arena_printf(run->arena, "%s/bin:%s", x->dir, p->path == NULL ? "" : p->path);
    }
    int r = run->cause.reason == REASON_NONE ? sandbox_session_start(run, &e) : 0;
    if (r < 0) {
        run_fail_err(run, &e);
    }
    if (r <= 0) {
        run_phase_done(run);
    }
}

static void warn(struct run *run, const char *why)
{
    if (run->cause.reason == REASON_NONE) {
        run_warn(run,
                 "dependencies of skill '%s' are not installed: %s; the run continues without them",
                 run->dependencies->skill->name, why);
    }
}

/* --- steps --- */

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct run_dependencies *x = ((struct run *)arg)->dependencies;
    if ((x->step == STEP_VERSION) == (stream == PROC_STDOUT)) {
        size_t room = OUTPUT_MAX - x->output.len;
        (void)!buf_append(&x->output, str_slice(bytes, 0, room), NULL);
    }
}

static void on_done(void *arg, const struct proc_result *result);

static int start(struct run *run, enum step step, const char *const *argv, const char *const *envp,
                 struct err *e)
{
    struct run_dependencies *x = run->dependencies;
    struct proc_opts opts = {
        .argv = argv,
        .envp = envp,
        .cwd = x->stage == NULL ? run->paths.home : x->stage,
        .orphans = run->opts->orphans,
        .deadline = clock_now() + STEP_TIME,
        .port = { .on_output = on_output, .on_done = on_done, .arg = run },
    };
    x->step = step;
    buf_reset(&x->output);
    return proc_start(run->loop, &opts, &x->proc, e);
}

/* uv's own configuration: which indexes there are. */
static const char *uv_config(struct run *run, struct buf *ret)
{
    const char *given = getenv("UV_CONFIG_FILE");
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    const char *path =
        given != NULL && given[0] == '/' ? given
        : base != NULL && base[0] == '/' ? arena_printf(run->arena, "%s/uv/uv.toml", base)
        : home != NULL && home[0] == '/' ? arena_printf(run->arena, "%s/.config/uv/uv.toml", home)
                                         : NULL;
    return path != NULL && file_read(AT_FDCWD, path, CONFIG_MAX, ret, NULL) == 0 ? path : NULL;
}

static bool is_of_build(const char *variable)
{
    return strncmp(variable, "UV_", 3) == 0 && strncmp(variable, "UV_CACHE_DIR=", 13) != 0 &&
           strncmp(variable, "UV_CONFIG_FILE=", 15) != 0;
}

struct words {
    const char **items;
    size_t len, max;
};

static void push(struct run *run, struct words *w, const char *word)
{
    if (w->len + 1 >= w->max) {
        w->max = 2 * w->max + 64;
        const char **more = arena_array(run->arena, w->max, sizeof *more);
        if (w->len > 0) {
            memcpy(more, w->items, w->len * sizeof *more);
        }
        w->items = more;
    }
    w->items[w->len++] = word;
}

static void push_option(struct run *run, struct words *w, const char *option, const char *value)
{
    push(run, w, option);
    push(run, w, value);
}

/* `cinch run` of the same installation, with limits of its own: nothing but the index is reached
 * and nothing but the environment written. */
static const char *const *build_command(struct run *run, const char *cinch)
{
    struct run_dependencies *x = run->dependencies;
    struct arena *a = run->arena;
    struct words w = { 0 };
    struct skill_uv_sources sources;
    CLEANUP(buf) struct buf text = BUF_INIT(CONFIG_MAX);
    const char *config = uv_config(run, &text);
    skill_uv_sources(a, run->opts->environ, buf_str(&text), &sources);
    push_option(run, &w, cinch, "run");
    push_option(run, &w, "--adapter", "command");
    push_option(run, &w, "--output", arena_printf(a, "%s/record", x->stage));
    push_option(run, &w, "--workspace", arena_printf(a, "%s/work", x->stage));
    push_option(run, &w, "--timeout",
                arena_printf(a, "%llds", (long long)(STEP_TIME / NSEC_PER_SEC)));
    push_option(run, &w, "--write", x->env);
    push(run, &w, "--no-record");
    for (const char *const *h = sources.hosts; *h != NULL; h++) {
        push_option(run, &w, "--net", *h);
    }
    for (const char *const *p = sources.paths; *p != NULL; p++) {
        if (access(*p, R_OK) == 0) {
            push_option(run, &w, "--read", *p);
        }
    }
    for (const char *const *v = run->opts->environ; v != NULL && *v != NULL; v++) {
        struct str value = str_of(*v);
        if (is_of_build(*v)) {
            push_option(run, &w, "--env", arena_dup(a, str_split(&value, '=')));
        }
    }
    if (config != NULL) {
        push_option(run, &w, "--read", config);
        push_option(run, &w, "--env", arena_printf(a, "UV_CONFIG_FILE=%s", config));
    }
    push_option(run, &w, "--env", "UV_CACHE_DIR=/tmp/uv");
    push_option(run, &w, "--env", "NO_PROXY="); /* an index on this machine, too */
    push_option(run, &w, "--env", "no_proxy=");
    push(run, &w, "install packages");
    push_option(run, &w, "--", x->uv);
    const char *const *install = skill_uv_install(a, x->skill, x->env, false);
    for (size_t i = 1; install[i] != NULL; i++) {
        push(run, &w, install[i]);
    }
    return w.items;
}

/* The caller's, without settings of cinch: those of the run are not those of the build. */
static const char *const *build_environment(struct run *run)
{
    static const char *const own[] = { "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
                                       "CINCH_SITE_DIR" };
    struct words w = { 0 };
    for (const char *const *v = run->opts->environ; v != NULL && *v != NULL; v++) {
        bool kept = strncmp(*v, "CINCH_INIT=", 11) == 0 || strncmp(*v, "CINCH_", 6) != 0;
        if (kept && strncmp(*v, "XDG_", 4) != 0) {
            push(run, &w, *v);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        push(run, &w,
             arena_printf(run->arena, "%s=%s/%s", own[i], run->dependencies->stage, own[i]));
    }
    return w.items;
}

static int start_build(struct run *run, struct err *e)
{
    char cinch[PATH_MAX];
    int r = locate_cinch(cinch, e);
    return r < 0
               ? r
               : start(run, STEP_SOURCES, build_command(run, arena_dup(run->arena, str_of(cinch))),
                       build_environment(run), e);
}

static int start_venv(struct run *run, struct err *e)
{
    struct run_dependencies *x = run->dependencies;
    int r = open_stage(run, e);
    return r < 0 ? r
                 : start(run, STEP_VENV, skill_uv_venv(run->arena, x->python, x->env),
                         run->opts->environ, e);
}

/* 1: the next step has begun; 0: the environment is there. */
static int after_version(struct run *run, struct err *e)
{
    struct run_dependencies *x = run->dependencies;
    char real[PATH_MAX];
    const struct skill_dependencies_key key = {
        .uv_version = x->output.ptr == NULL ? "" : x->output.ptr,
        .python = x->python != NULL && realpath(x->python, real) != NULL ? real : NULL,
        .variables = run->opts->environ,
    };
    x->kept = arena_printf(run->arena, "%s/%s", x->cache,
                           skill_dependencies_key(run->arena, x->skill, &key));
    if (is_usable(run->arena, x->kept)) {
        return 0;
    }
    int r = start_venv(run, e);
    return r < 0 ? r : 1;
}

static int next_step(struct run *run, struct err *e)
{
    struct run_dependencies *x = run->dependencies;
    int r = 0;
    switch (x->step) {
    case STEP_VERSION:
        return after_version(run, e);
    case STEP_VENV:
        r = read_config(run, &x->config, e);
        r = r < 0 ? r
                  : start(run, STEP_WHEELS, skill_uv_install(run->arena, x->skill, x->env, true),
                          run->opts->environ, e);
        return r < 0 ? r : 1;
    case STEP_SOURCES:
        r = check_built(run, e);
        break;
    case STEP_WHEELS:
        break;
    }
    return r < 0 ? r : keep_env(run, e);
}

/* uv's own words, not those of the run that it was part of. */
static const char *failure_text(struct run *run)
{
    struct run_dependencies *x = run->dependencies;
    CLEANUP(buf) struct buf log = BUF_INIT(OUTPUT_MAX);
    const char *path =
        x->stage == NULL ? NULL : arena_printf(run->arena, "%s/record/stderr.log", x->stage);
    if (x->step == STEP_SOURCES && file_read(AT_FDCWD, path, OUTPUT_MAX, &log, NULL) == 0 &&
        log.len > 0) {
        return skill_uv_failure(run->arena, x->skill, buf_str(&log));
    }
    return skill_uv_failure(run->arena, x->skill, buf_str(&x->output));
}

static void on_done(void *arg, const struct proc_result *result)
{
    struct run *run = arg;
    struct run_dependencies *x = run->dependencies;
    struct err e;
    bool good = result->started && result->exit_known && !result->signaled && result->value == 0;
    x->proc = proc_free(x->proc);
    int r = 0;
    if (run->cause.reason != REASON_NONE) {
        go_on(run);
        return;
    }
    if (good) {
        r = next_step(run, &e);
        x->dir = r == 0 ? x->kept : NULL;
    } else if (x->step == STEP_WHEELS && skill_uv_lacks_wheel(buf_str(&x->output))) {
        r = start_build(run, &e);
        r = r < 0 ? r : 1;
    } else {
        warn(run, result->stopped ? "uv took too long" : failure_text(run));
    }
    if (r < 0) {
        warn(run, e.msg);
    }
    if (r <= 0) {
        go_on(run);
    }
}

static const char *find(struct run *run, const char *name)
{
    char found[PATH_MAX];
    return which_find(name, which_path(run->opts->environ), NULL, found, NULL) < 0
               ? NULL
               : arena_dup(run->arena, str_of(found));
}

static void list_requirements(struct buf *text, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        buf_addf(text, "%s%s", i > 0 ? ", " : "", json_cstring(json_item(list, i), ""));
    }
}

/* NULL: they can be installed. */
static const char *obstacle(struct run *run, const struct json *list)
{
    struct run_dependencies *x = run->dependencies;
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    list_requirements(&names, list);
    if (image_root_wanted(run)) {
        return arena_printf(run->arena, "the image has to contain %.*s", STR_ARG(buf_str(&names)));
    }
    if (x->uv == NULL) {
        return arena_printf(run->arena, "uv, which installs %.*s, is not in PATH",
                            STR_ARG(buf_str(&names)));
    }
    return x->cache == NULL ? "there is no cache for uv to install them to: set HOME" : NULL;
}

int dependencies_start(struct run *run, struct err *e)
{
    static const char *const version[] = { "uv", "--version", NULL };
    const struct skill *s = run->definition.package;
    const struct json *list = s == NULL ? NULL : skill_dependencies(s);
    struct err why;
    if (list == NULL || run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        return 0;
    }
    if (image_wanted(run)) {
        return ERR(e, ERR_UNSUPPORTED,
                   "skill '%s' has dependencies: an adapter image has to contain them", s->name);
    }
    struct run_dependencies *x = ARENA_NEW(run->arena, struct run_dependencies);
    *x = (struct run_dependencies) { .skill = s,
                                     .output = BUF_INIT(OUTPUT_MAX),
                                     .config = BUF_INIT(OUTPUT_MAX),
                                     .cache = cache_dir(run->arena) };
    run->dependencies = x;
    x->uv = find(run, "uv");
    x->python = find(run, "python3");
    const char *problem = obstacle(run, list);
    if (problem == NULL && start(run, STEP_VERSION, version, run->opts->environ, &why) == 0) {
        return 1;
    }
    warn(run, problem == NULL ? why.msg : problem);
    return 0;
}

void dependencies_interrupt(struct run *run)
{
    if (run->dependencies != NULL && run->dependencies->proc != NULL) {
        proc_kill(run->dependencies->proc);
    }
}

void dependencies_done(struct run *run)
{
    if (run->dependencies != NULL) {
        run->dependencies->proc = proc_free(run->dependencies->proc);
        buf_done(&run->dependencies->output);
        buf_done(&run->dependencies->config);
        remove_stage(run);
    }
}

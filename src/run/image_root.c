/* SPDX-License-Identifier: MIT
 *
 * From a reference to a root, and from a harness of the host to a command that works in it.
 */
#include "run/image_root.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "image/cache.h"
#include "image/recipe.h"
#include "image/runtime.h"
#include "proc/locate.h"
#include "proc/which.h"
#include "run/image.h"
#include "run/run_priv.h"
#include "run/run_tools.h"
#include "sandbox/toolchain_paths.h"

/* A large image on a slow disk, a build over a slow line; the deadline of the run counts, too. */
#define UNPACK_PATIENCE (1800 * NSEC_PER_SEC)
/* An engine that is told to stop removes what it has begun. */
#define BUILD_GRACE (5 * NSEC_PER_SEC)
enum { ANSWER_MAX = 65536 };

struct image_root {
    struct image_ref ref;
    const char *cache;
    struct image image;
    int hold; /* keeps it from being removed; -1: nothing to keep */
    struct runtime runtime;
    struct sandbox_image view;
    const char *const *argv; /* in place of the program; NULL: it is of the image */
    bool built;              /* the image has the harness in it */
    bool building;
    struct recipe recipe;
    const char *base, *key; /* of the build: the id below, and what it is known by */
    struct proc *proc;      /* cinch-unpack */
    struct buf answer;
};

bool image_root_wanted(const struct run *run)
{
    return run->plan->settings.sandbox.image != NULL;
}

int image_root_admit(struct run *run, struct err *e)
{
    if (!image_root_wanted(run)) {
        return 0;
    }
    if (image_wanted(run)) {
        return ERR(e, ERR_CONFIG, "--image cannot be combined with an adapter that is an image");
    }
    if (run->plan->settings.sandbox.mode == SANDBOX_OFF) {
        return ERR(e, ERR_CONFIG, "--image needs a sandbox: leave out --sandbox off");
    }
    struct image_root *x = ARENA_NEW(run->arena, struct image_root);
    *x = (struct image_root) { .cache = image_cache_dir(run->arena),
                               .hold = -1,
                               .answer = BUF_INIT(ANSWER_MAX) };
    if (x->cache == NULL) {
        return ERR(e, ERR_CONFIG, "--image needs a cache: set HOME or XDG_CACHE_HOME");
    }
    run->image_root = x;
    return image_ref_parse(run->arena, run->plan->settings.sandbox.image, "", &x->ref, e);
}

/* --- what is mounted beside the image --- */

static const char *image_path(const struct run *run)
{
    const struct json *env = image_root_env(run);
    const char *path = json_cstring(json_get(run->plan->settings.env_set, "PATH"), NULL);
    for (size_t i = 0; path == NULL && i < json_len(env); i++) {
        const char *text = json_cstring(json_item(env, i), "");
        path = strncmp(text, "PATH=", 5) == 0 ? text + 5 : NULL;
    }
    return path != NULL ? path : ENVIRONMENT_IMAGE_PATH;
}

/* A command is a program of the image, if it has it. */
static int find_command(struct run *run, bool *ret_of_host, struct err *e)
{
    const char *name = run->paths.program;
    char found[PATH_MAX];
    *ret_of_host = false;
    if (strchr(name, '/') != NULL && name[0] != '/') {
        return 0; /* of the workspace */
    }
    int r = which_find_in(run->image_root->image.root, name, image_path(run), found, e);
    if (r < 0 && name[0] == '/' && access(name, X_OK) == 0) {
        bool of_workspace = strncmp(name, run->paths.view, strlen(run->paths.view)) == 0;
        *ret_of_host = !of_workspace;
        return 0;
    }
    if (r == 0) {
        run->paths.program = arena_dup(run->arena, str_of(found));
    }
    return r < 0 ? err_wrap(e, "adapter '%s'", run->plan->settings.profile->name) : 0;
}

/* Harnesses run commands by bash; what an image without one has may not be enough for them. */
static int bring_shell(struct run *run, struct err *e)
{
    static const char *const shells[] = { "/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
                                          "/bin/zsh", "/usr/bin/zsh" };
    struct image_root *x = run->image_root;
    char found[PATH_MAX];
    const char *inside = NULL;
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (runtime_image_has(x->image.root, shells[i])) {
            return 0;
        }
    }
    if (which_find("bash", which_path(run->opts->environ), NULL, found, NULL) < 0) {
        return 0;
    }
    int r = runtime_add(&x->runtime, arena_dup(run->arena, str_of(found)), &inside, e);
    if (r == 0) {
        struct json *env = json_copy(run->arena, image_root_env(run));
        json_push(run->arena, env,
                  json_cstr(run->arena, arena_printf(run->arena, "SHELL=%s", inside)));
        struct json *about = x->image.about == NULL ? json_object(run->arena)
                                                    : json_copy(run->arena, x->image.about);
        struct json *config = json_get(about, "config");
        config = config == NULL ? json_object(run->arena) : config;
        json_setc(run->arena, config, "Env", env);
        json_setc(run->arena, about, "config", config);
        x->image.about = about;
    }
    return r;
}

/* --- a harness of the image --- */

bool image_root_brings_program(const struct run *run, bool found)
{
    enum image_build build = run->plan->settings.sandbox.image_build;
    bool harness = json_len(run->plan->settings.profile->binary) > 0;
    return image_root_wanted(run) && harness &&
           (build == IMAGE_BUILD_ALWAYS || (build == IMAGE_BUILD_AUTO && !found));
}

/* The first candidate of the profile that the image has. */
static bool find_harness(struct run *run)
{
    const struct json *candidates = run->plan->settings.profile->binary;
    char found[PATH_MAX];
    for (size_t i = 0; i < json_len(candidates); i++) {
        const char *name = json_cstring(json_item(candidates, i), "");
        if (which_find_in(run->image_root->image.root, name, image_path(run), found, NULL) == 0) {
            run->paths.program = arena_dup(run->arena, str_of(found));
            return true;
        }
    }
    return false;
}

/* 1: there is none, and it has to be built. */
static int use_harness_of_image(struct run *run, struct err *e)
{
    const struct image_root *x = run->image_root;
    bool always = run->plan->settings.sandbox.image_build == IMAGE_BUILD_ALWAYS;
    if (!x->built && always) {
        return 1;
    }
    if (find_harness(run)) {
        return 0;
    }
    const char *name = json_cstring(json_item(run->plan->settings.profile->binary, 0), "");
    return !x->built ? 1
                     : ERR(e, ERR_NOTFOUND,
                           "the layer has not installed '%s' in the PATH of the image: see %s",
                           name, image_build_log(run->arena, x->cache, x->key));
}

/* Whatever keeps a program of the host from working inside; a cache that cannot be written to keeps
 * a built image from it, too. */
static bool can_be_built_instead(const struct run *run, const struct err *why)
{
    return run->plan->settings.sandbox.image_build == IMAGE_BUILD_AUTO &&
           json_len(run->plan->settings.profile->binary) > 0 && why->code != ERR_OUTPUT;
}

/* --- both --- */

/* What cinch itself adds to any harness: the program that serves tools, and a shell. */
static int bring_helpers(struct run *run, struct err *e)
{
    struct image_root *x = run->image_root;
    const char *shim = NULL;
    char cinch[PATH_MAX];
    int r = 0;
    if (locate_cinch(cinch, NULL) == 0 && tools_shim(run) != NULL) {
        r = runtime_add(&x->runtime, arena_dup(run->arena, str_of(cinch)), &shim, e);
    }
    return r < 0 ? r : bring_shell(run, e);
}

static int use_harness_of_host(struct run *run, struct err *e)
{
    struct image_root *x = run->image_root;
    int r = runtime_program(&x->runtime, run->paths.program, which_path(run->opts->environ),
                            &x->argv, e);
    if (r < 0 && can_be_built_instead(run, e)) {
        run_warn(run, "adapter '%s' of this machine cannot be used in image '%s': %s",
                 run->plan->settings.profile->name, x->ref.text, e->msg);
        x->argv = NULL;
        return find_harness(run) ? 0 : 1;
    }
    return r;
}

/* 1: an image with the harness has to be built. */
static int bring_programs(struct run *run, struct err *e)
{
    struct image_root *x = run->image_root;
    bool harness = json_len(run->plan->settings.profile->binary) > 0;
    bool of_host = harness && strchr(run->paths.program, '/') != NULL && !x->built;
    int r = 0;
    if (run->plan->settings.profile->api.builtin_tools) {
        char tools[PATH_MAX];
        const char *inside = NULL;
        r = locate_tools(tools, e);
        r = r < 0 ? r : runtime_add(&x->runtime, arena_dup(run->arena, str_of(tools)), &inside, e);
        return r < 0 ? r : bring_shell(run, e);
    }
    if (run->plan->driver->kind == DRIVER_MODEL_LOOP) {
        return 0; /* no program is started */
    }
    if (!harness) {
        r = find_command(run, &of_host, e);
        if (r < 0 || !of_host) {
            return r;
        }
    }
    r = of_host ? use_harness_of_host(run, e) : use_harness_of_image(run, e);
    r = r != 0 ? r : bring_helpers(run, e);
    return r < 0 ? err_wrap(e, "adapter '%s' in image '%s'", run->plan->settings.profile->name,
                            x->ref.text)
                 : r;
}

static int start_build(struct run *run, struct err *e);

/* 1: it is being built. */
static int make_ready(struct run *run, struct err *e)
{
    struct image_root *x = run->image_root;
    cleanup_fd(&x->hold);
    int r = image_hold(run->arena, &x->image, &x->hold, e);
    if (r < 0) {
        return r;
    }
    runtime_begin(
        run->arena,
        &(struct runtime_opts) { .root = x->image.root,
                                 .dir = arena_printf(run->arena, "%s/runtime", x->cache) },
        &x->runtime);
    r = bring_programs(run, e);
    if (r > 0) {
        return start_build(run, e);
    }
    x->view = (struct sandbox_image) {
        .root = x->image.root,
        .mounts = x->runtime.mounts,
        .n_mounts = x->runtime.n_mounts,
        .programs = x->runtime.programs,
    };
    run->confine.policy.image = &x->view;
    return r;
}

/* --- unpacking and building --- */

static void go_on(struct run *run, int r, struct err *e)
{
    r = r < 0 || run->cause.reason != REASON_NONE ? r : make_ready(run, e);
    r = r != 0 || run->cause.reason != REASON_NONE ? r : prepare_sandbox(run, e);
    if (r < 0) {
        run_fail_err(run, e);
    }
    if (r <= 0) {
        run_phase_done(run);
    }
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct run *run = arg;
    if (stream == PROC_STDOUT) {
        (void)!buf_append(&run->image_root->answer, bytes, NULL);
    }
}

static int take_answer(struct run *run, struct err *e)
{
    struct image_root *x = run->image_root;
    struct json *answer = NULL;
    if (json_parse(run->arena, str_trim(buf_str(&x->answer)), NULL, &answer, NULL) < 0) {
        return ERR(e, ERR_UNAVAILABLE, "image '%s' could not be %s: cinch-unpack ended early",
                   x->ref.text, x->building ? "built" : "unpacked");
    }
    x->built = x->building;
    int64_t code = json_int(json_get(answer, "code"), 0);
    if (code > 0 && code < ERR_CODE_MAX) {
        return ERR(e, (enum err_code)code, "%s",
                   json_cstring(json_get(answer, "error"), "cinch-unpack failed"));
    }
    return image_open(run->arena, x->cache, json_cstring(json_get(answer, "id"), ""), &x->image, e);
}

static void on_done(void *arg, const struct proc_result *result)
{
    struct run *run = arg;
    struct err e;
    run->image_root->proc = proc_free(run->image_root->proc);
    (void)result;
    int r = run->cause.reason == REASON_NONE ? take_answer(run, &e) : 0;
    go_on(run, r, &e);
}

/* `words`: NULL-terminated, without the program itself. */
static int start_helper(struct run *run, const char *const *words, struct err *e)
{
    enum { WORDS_MAX = 8 };
    struct image_root *x = run->image_root;
    char program[PATH_MAX];
    int r = locate_unpack(program, e);
    if (r < 0) {
        return r;
    }
    const char **argv = arena_array(run->arena, WORDS_MAX + 1, sizeof *argv);
    argv[0] = arena_dup(run->arena, str_of(program));
    for (size_t i = 0; words[i] != NULL && i + 1 < WORDS_MAX; i++) {
        argv[i + 1] = words[i];
    }
    struct proc_opts opts = {
        .argv = argv,
        .envp = run->opts->environ,
        .cwd = run->paths.home,
        .orphans = run->opts->orphans,
        .deadline = clock_now() + UNPACK_PATIENCE,
        .grace = BUILD_GRACE,
        .port = { .on_output = on_output, .on_done = on_done, .arg = run },
    };
    buf_reset(&x->answer);
    r = proc_start(run->loop, &opts, &x->proc, e);
    return r < 0 ? r : 1;
}

static const char *engine_of(const struct run *run)
{
    const char *engine = run->plan->settings.sandbox.engine;
    return engine == NULL ? "" : engine;
}

static int start_unpack(struct run *run, struct err *e)
{
    const struct image_root *x = run->image_root;
    const char *const words[] = { x->cache, engine_of(run), x->ref.text, NULL };
    return start_helper(run, words, e);
}

/* 0: there is such an image already. */
static int start_build(struct run *run, struct err *e)
{
    struct image_root *x = run->image_root;
    const char *adapter = run->plan->settings.profile->name;
    const char *name = json_cstring(json_item(run->plan->settings.profile->binary, 0), "");
    int r = x->image.id == NULL
                ? ERR(e, ERR_UNSUPPORTED,
                      "adapter '%s': '%s' is not in '%s', and nothing can be built on a directory: "
                      "give an image or an archive, or install it on this machine",
                      adapter, name, x->ref.text)
                : recipe_find(run->arena, x->cache, adapter, &x->recipe, e);
    if (r > 0) {
        const char *dir = recipe_dir(run->arena, adapter);
        r = ERR(e, ERR_NOTFOUND,
                "adapter '%s': '%s' is neither on this machine nor in image '%s', and cinch knows "
                "no layer for it: install it, or write %s/install.sh",
                adapter, name, x->ref.text, dir == NULL ? "layers" : dir);
    }
    if (r < 0) {
        return r;
    }
    x->base = x->image.id;
    x->key = recipe_key(run->arena, x->base, &x->recipe);
    if (image_build_find(run->arena, x->cache, x->key, &x->image) == 0) {
        x->built = true;
        return make_ready(run, e);
    }
    x->building = true;
    const char *const words[] = { "--build", x->cache, engine_of(run), x->ref.text, x->base,
                                  adapter,   NULL };
    return start_helper(run, words, e);
}

int image_root_start(struct run *run, struct err *e)
{
    struct image_root *x = run->image_root;
    if (x == NULL) {
        return 0;
    }
    int r = image_find(run->arena, x->cache, &x->ref, &x->image, e);
    return r < 0 ? r : r > 0 ? start_unpack(run, e) : make_ready(run, e);
}

void image_root_interrupt(struct run *run)
{
    struct image_root *x = run->image_root;
    if (x != NULL && x->proc != NULL) {
        proc_stop(x->proc, x->building ? BUILD_GRACE : 0);
    }
}

void image_root_done(struct run *run)
{
    struct image_root *x = run->image_root;
    if (x != NULL) {
        x->proc = proc_free(x->proc);
        buf_done(&x->answer);
        cleanup_fd(&x->hold);
    }
}

/* --- execute --- */

const struct json *image_root_env(const struct run *run)
{
    static const struct json none = { .type = JSON_ARRAY };
    const struct image_root *x = run->image_root;
    const struct json *env = x == NULL ? NULL : json_get(json_get(x->image.about, "config"), "Env");
    return x == NULL ? NULL : json_is(env, JSON_ARRAY) ? env : &none;
}

const char *image_root_inside(struct run *run, const char *path)
{
    char real[PATH_MAX];
    if (!image_root_wanted(run) || !toolchain_is_system(path) || realpath(path, real) == NULL) {
        return path;
    }
    return arena_printf(run->arena, SANDBOX_RUNTIME "%s", real);
}

void image_root_launch(struct run *run)
{
    const struct image_root *x = run->image_root;
    size_t words = 0;
    size_t rest = 0;
    if (x == NULL || x->argv == NULL) {
        return;
    }
    while (x->argv[words] != NULL) {
        words++;
    }
    while (run->launch.argv[rest] != NULL) {
        rest++;
    }
    char **argv = arena_array(run->arena, words + rest + 1, sizeof *argv);
    for (size_t i = 0; i < words; i++) {
        argv[i] = arena_dup(run->arena, str_of(x->argv[i]));
    }
    /* The first argument was the program. */
    memcpy(argv + words, run->launch.argv + (rest > 0 ? 1 : 0),
           (rest > 0 ? rest - 1 : 0) * sizeof *argv);
    run->launch.argv = argv;
    run->paths.executable = x->argv[0];
}

void image_root_report(struct run *run)
{
    const struct image_root *x = run->image_root;
    struct err why;
    if (x == NULL || x->image.root == NULL) {
        return;
    }
    struct json *o =
        x->image.about == NULL ? json_object(run->arena) : json_copy(run->arena, x->image.about);
    json_setc(run->arena, o, "reference", json_cstr(run->arena, x->ref.text));
    json_setc(run->arena, o, "root", json_cstr(run->arena, x->image.root));
    if (x->built) {
        json_setc(run->arena, o, "build", recipe_describe(run->arena, &x->recipe, x->base, x->key));
    }
    if (record_write_json(&run->record, "evidence/image.json", o, &why) < 0) {
        run_warn(run, "%s", why.msg);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * A Containerfile, an engine, a log.
 */
#include "image/build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "image/cache.h"
#include "image/recipe.h"
#include "image/unpack.h"

extern char **environ;

/* Of the output of an engine: what an error shows, and where that is looked for. */
enum { LAST_LINES = 3, LAST_BYTES = 200, TAIL_BYTES = 8192, WORDS_MAX = 40 };
/* As for containers (sandbox/container_args.c): more than these fails where limits cannot be
 * raised. */
enum { OPEN_FILES = 65536, PROCESSES = 16384 };

struct build {
    struct arena *a;
    const struct build_opts *o;
    struct image_ref ref;
    struct recipe recipe;
    const char *key;
    const char *log;
    struct image_scratch scratch;
};

/* --- the context --- */

static int write_context(struct build *b, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    recipe_containerfile(b->o->base, &b->recipe, &text);
    if (mkdirat(b->scratch.fd, "context", 0755) != 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "use '%s'", b->scratch.path);
    }
    int r = file_write_atomic(b->scratch.fd, "Containerfile", buf_str(&text), 0644, e);
    return r < 0 ? r
                 : file_write_atomic(b->scratch.fd, "context/install.sh", recipe_script(), 0755, e);
}

/* --- the engine --- */

static const char *limit(struct arena *a, const char *name, int resource, rlim_t most)
{
    struct rlimit have = { .rlim_max = most };
    (void)getrlimit(resource, &have);
    uint64_t n = have.rlim_max < most ? have.rlim_max : most;
    return arena_printf(a, "--ulimit=%s=%" PRIu64 ":%" PRIu64, name, n, n);
}

static const char *const *engine_words(struct build *b, const char *engine)
{
    const char *dir = b->scratch.path;
    bool podman = strstr(path_base(str_of(engine)).ptr, "podman") != NULL;
    const char *fixed[] = {
        engine,
        podman ? "build" : "bud",
        "--pull=never",
        "--layers=false",
        "--force-rm",
        "--security-opt=label=disable",
        limit(b->a, "nofile", RLIMIT_NOFILE, OPEN_FILES),
        limit(b->a, "nproc", RLIMIT_NPROC, PROCESSES),
        arena_printf(b->a, "--file=%s/Containerfile", dir),
        arena_printf(b->a, "--tag=oci-archive:%s/built.tar", dir),
    };
    const char **list = arena_array(b->a, WORDS_MAX, sizeof *list);
    size_t n = 0;
    for (; n < ARRAY_LEN(fixed); n++) {
        list[n] = fixed[n];
    }
    if (b->recipe.vendored) {
        list[n++] = "--network=none";
    }
    if (b->recipe.dir != NULL) {
        list[n++] = arena_printf(b->a, "--volume=%s:" RECIPE_LAYER ":ro", b->recipe.dir);
    }
    list[n] = arena_printf(b->a, "%s/context", dir);
    return list;
}

/* Exit status; -1: it was killed, -2: there is no such program. */
static int run_engine(const char *const *words, const char *log)
{
    pid_t pid = -1;
    int status = 0;
    posix_spawn_file_actions_t files;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)posix_spawn_file_actions_adddup2(&files, 1, 2);
    int r = posix_spawnp(&pid, words[0], &files, NULL, (char *const *)words, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    if (r != 0) {
        return -2;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The engine repeats the step of the Containerfile before its reason; where the step itself failed,
 * what that printed says more. */
static struct str without_step(struct str line)
{
    if (str_starts(line, STR("STEP "))) {
        return STR_EMPTY;
    }
    if (str_starts(line, STR("Error: building at STEP"))) {
        size_t at = str_find(line, STR("\": "));
        line = at < line.len ? str_slice(line, at + 3, line.len) : line;
    }
    return str_starts(line, STR("while running runtime: exit status")) ? STR_EMPTY : line;
}

/* The last lines of the log, as one. */
static const char *last_lines(struct build *b)
{
    char tail[TAIL_BYTES];
    struct str lines[LAST_LINES] = { 0 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(fd) int fd = open(b->log, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    ssize_t n = fd < 0 ? -1 : pread(fd, tail, sizeof tail, from);
    struct str rest = str_n(tail, n < 0 ? 0 : (size_t)n);
    while (rest.ptr != NULL && rest.len > 0) {
        struct str line = without_step(str_trim(str_split(&rest, '\n')));
        if (line.len > 0) {
            memmove(lines, lines + 1, sizeof lines - sizeof *lines);
            lines[LAST_LINES - 1] = line;
        }
    }
    for (size_t i = 0; i < LAST_LINES; i++) {
        buf_addf(&out, "%s%.*s", out.len > 0 && lines[i].len > 0 ? "; " : "", STR_ARG(lines[i]));
    }
    struct str all = buf_str(&out);
    struct str end = all.len > LAST_BYTES ? str_slice(all, all.len - LAST_BYTES, all.len) : all;
    while (end.len > 0 &&
           ((unsigned char)end.ptr[0] & 0xc0) == 0x80) { /* in midst of a character */
        end = str_slice(end, 1, end.len);
    }
    return arena_dup(b->a, str_slice(end, 0, str_utf8_prefix(end)));
}

/* Finds an engine; the base has to be in its store. */
static int find_engine(struct build *b, const char **ret, struct err *e)
{
    static const char *const usual[] = { "podman", "buildah" };
    bool given = b->o->engine[0] != '\0';
    int status = -2;
    if (given && strstr(path_base(str_of(b->o->engine)).ptr, "docker") != NULL) {
        return ERR(e, ERR_UNAVAILABLE,
                   "building needs podman or buildah, and sandbox.engine is '%s'", b->o->engine);
    }
    for (size_t i = 0; status == -2 && i < (given ? 1 : ARRAY_LEN(usual)); i++) {
        *ret = given ? b->o->engine : usual[i];
        const char *const look[] = { *ret, "inspect", "--type=image", b->o->base, NULL };
        status = run_engine(look, "/dev/null");
    }
    if (status == -2) {
        return ERR(e, ERR_UNAVAILABLE, "building needs %s, which is not installed",
                   given ? b->o->engine : "podman or buildah");
    }
    if (status == 0) {
        return 0;
    }
    return b->ref.path != NULL
               ? ERR(e, ERR_UNAVAILABLE,
                     "building needs the image in the store of %s: podman load --input %s", *ret,
                     b->ref.path)
               : ERR(e, ERR_UNAVAILABLE,
                     "building needs the image in the store of %s: podman pull %s", *ret,
                     b->ref.name);
}

static int run_build(struct build *b, struct err *e)
{
    const char *engine = NULL;
    int r = find_engine(b, &engine, e);
    if (r < 0) {
        return r;
    }
    int status = run_engine(engine_words(b, engine), b->log);
    const char *how = status < 0 ? "killed" : arena_printf(b->a, "exit status %d", status);
    return status == 0 ? 0
                       : ERR(e, ERR_UNAVAILABLE, "%.*s build failed (%s, output: %s): %s",
                             STR_ARG(path_base(str_of(engine))), how, b->log, last_lines(b));
}

/* --- the result --- */

static int unpack_built(struct build *b, const char **ret_id, struct err *e)
{
    bool is_new = false;
    struct unpack_opts o = {
        .cache = b->o->cache,
        .engine = "",
        .reference = arena_printf(b->a, "oci-archive:%s/built.tar", b->scratch.path),
        .build = recipe_describe(b->a, &b->recipe, b->o->base, b->key),
        .title = arena_printf(b->a, "%s + %s%s%s", b->ref.text, b->recipe.adapter,
                              b->recipe.version[0] == '\0' ? "" : " ", b->recipe.version),
    };
    int r = unpack_image(b->a, &o, ret_id, &is_new, e);
    return r < 0 ? r : image_build_remember(b->a, b->o->cache, b->key, *ret_id, e);
}

static int build_new(struct build *b, const char **ret_id, struct err *e)
{
    b->log = image_build_log(b->a, b->o->cache, b->key);
    int r = file_mkdirs(AT_FDCWD, arena_printf(b->a, "%s/builds", b->o->cache), 0700, e);
    r = r < 0 ? r : image_scratch_open(b->a, b->o->cache, &b->scratch, e);
    r = r < 0 ? r : write_context(b, e);
    r = r < 0 ? r : run_build(b, e);
    r = r < 0 ? r : unpack_built(b, ret_id, e);
    image_scratch_close(&b->scratch);
    return r;
}

int build_image(struct arena *a, const struct build_opts *o, const char **ret_id, bool *ret_new,
                struct err *e)
{
    struct build b = { .a = a, .o = o, .scratch = { .fd = -1, .lock = -1 } };
    struct image there;
    CLEANUP(fd) int lock = -1;
    int r = image_ref_parse(a, o->reference, "", &b.ref, e);
    r = r < 0 ? r : recipe_find(a, o->cache, o->adapter, &b.recipe, e);
    if (r > 0) {
        r = ERR(e, ERR_UNSUPPORTED, "adapter '%s' has no layer", o->adapter);
    }
    if (r < 0) {
        return r;
    }
    b.key = recipe_key(a, o->base, &b.recipe);
    r = image_lock(a, o->cache, b.key, &lock, e);
    if (r < 0) {
        return r;
    }
    *ret_new = image_build_find(a, o->cache, b.key, &there) != 0;
    *ret_id = there.id;
    r = *ret_new ? build_new(&b, ret_id, e) : 0;
    return r < 0 ? err_wrap(e, "adapter '%s' on image '%.60s'", o->adapter, o->reference) : 0;
}

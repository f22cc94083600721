/* SPDX-License-Identifier: MIT
 *
 * Export, extract, apply the layers, rename.
 */
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "image/cache.h"
#include "image/layer.h"
#include "image/layout.h"

extern char **environ;

/* A file in an archive may be compressed, and the archive once more. */
#define ARCHIVE_MAX ((uint64_t)64 << 30)

struct work {
    struct arena *a;
    const struct unpack_opts *o;
    struct image_ref ref;
    struct image_scratch scratch;
};

static int begin_work(struct work *w, struct err *e)
{
    int r = image_scratch_open(w->a, w->o->cache, &w->scratch, e);
    if (r == 0 && (mkdirat(w->scratch.fd, "layout", 0700) != 0 ||
                   mkdirat(w->scratch.fd, "entry", 0700) != 0 ||
                   mkdirat(w->scratch.fd, "entry/root", 0755) != 0)) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "use '%s'", w->scratch.path);
    }
    return r;
}

/* --- the store of an engine --- */

static int run_engine(const char *const *argv, bool *ret_found)
{
    pid_t pid = -1;
    int status = 0;
    posix_spawn_file_actions_t files;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    int r = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    *ret_found = r == 0;
    if (r != 0) {
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* By its id where the store's table had it: a name may mean another one by now. */
static int export_image(struct work *w, const char *engine, bool *ret_found)
{
    const char *file = arena_printf(w->a, "%s/image.tar", w->scratch.path);
    bool podman = strstr(engine, "podman") != NULL;
    const char *name = w->ref.digest == NULL
                           ? w->ref.name
                           : arena_printf(w->a, "%s@sha256:%s", w->ref.name, w->ref.digest);
    const char *const with_podman[] = { engine,     "save", "--quiet", "--format", "oci-archive",
                                        "--output", file,   "--",      name,       NULL };
    const char *const with_docker[] = { engine, "save", "--output", file, "--", name, NULL };
    (void)unlink(file);
    return run_engine(podman ? with_podman : with_docker, ret_found);
}

static int fetch_from_store(struct work *w, struct err *e)
{
    static const char *const usual[] = { "podman", "docker" };
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        bool found = false;
        const char *engine = w->o->engine[0] == '\0' ? usual[i] : w->o->engine;
        if (export_image(w, engine, &found) == 0) {
            return 0;
        }
        any = any || found;
    }
    const char *engine = w->o->engine[0] == '\0' ? "podman" : w->o->engine;
    return any ? ERR(e, ERR_UNAVAILABLE, "image '%s' is not in the store of %s: %s pull %s",
                     w->ref.text, engine, engine, w->ref.name)
               : ERR(e, ERR_UNAVAILABLE,
                     "image '%s' is a name in the store of an engine, and there is no %s: install "
                     "podman, or give a file (oci-archive:FILE, docker-archive:FILE)",
                     w->ref.text, w->o->engine[0] == '\0' ? "podman or docker" : w->o->engine);
}

/* --- the layout --- */

static int open_source(struct work *w, int *ret_layout, struct err *e)
{
    int r = w->ref.kind == IMAGE_STORE ? fetch_from_store(w, e) : 0;
    if (r < 0) {
        return r;
    }
    if (w->ref.kind == IMAGE_LAYOUT) {
        *ret_layout = open(w->ref.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return *ret_layout < 0 ? ERR_SYS_AS(e, ERR_INPUT, "open '%s'", w->ref.path) : 0;
    }
    CLEANUP(fd)
    int file = w->ref.kind == IMAGE_STORE ? openat(w->scratch.fd, "image.tar", O_RDONLY | O_CLOEXEC)
                                          : open(w->ref.path, O_RDONLY | O_CLOEXEC);
    *ret_layout = openat(w->scratch.fd, "layout", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0 || *ret_layout < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "open image '%s'", w->ref.text);
    }
    r = layer_extract(*ret_layout, file, ARCHIVE_MAX, e);
    (void)unlinkat(w->scratch.fd, "image.tar", 0);
    return r;
}

static int apply_layer(struct work *w, struct layers *l, int layout, size_t i,
                       const struct layout_layer *layer, struct err *e)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    struct stat st;
    CLEANUP(fd) int fd = file_open_how(layout, layer->path, &how);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return ERR(e, ERR_PARSE, "layer %zu ('%s') is missing", i + 1, layer->path);
    }
    return layer_apply(l, fd, arena_printf(w->a, "layer %zu", i + 1), layer->digest, layer->diff_id,
                       e);
}

static int apply_layers(struct work *w, int layout, const struct layout_image *image,
                        struct layers *l, struct err *e)
{
    CLEANUP(fd) int root = openat(w->scratch.fd, "entry/root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return ERR_SYS(e, "open the new root");
    }
    layer_begin(l, root, &(struct layer_limits) { .bytes = w->o->max_bytes });
    int r = 0;
    for (size_t i = 0; r == 0 && i < image->n_layers; i++) {
        r = apply_layer(w, l, layout, i, &image->layers[i], e);
    }
    layer_end(l);
    return r;
}

static int write_about(struct work *w, const struct layout_image *image, const struct layers *l,
                       struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct arena *a = w->a;
    struct json *o = json_object(a);
    const struct json *config = json_get(image->config, "config");
    json_setc(a, o, "id", json_cstr(a, image->id));
    json_setc(a, o, "manifest", json_cstr(a, image->manifest));
    json_setc(a, o, "reference", json_cstr(a, w->o->title == NULL ? w->ref.text : w->o->title));
    if (w->o->build != NULL) {
        json_setc(a, o, "build", json_copy(a, w->o->build));
    }
    json_setc(
        a, o, "architecture",
        json_cstr(a, json_cstring(json_get(image->config, "architecture"), layout_architecture())));
    json_setc(a, o, "config", config == NULL ? json_object(a) : json_copy(a, config));
    json_setc(a, o, "layers", json_integer(a, (int64_t)image->n_layers));
    json_setc(a, o, "bytes", json_integer(a, (int64_t)l->bytes));
    json_setc(a, o, "files", json_integer(a, (int64_t)l->entries));
    json_setc(a, o, "left_out", json_integer(a, (int64_t)l->skipped));
    int r = json_write(o, JSON_PRETTY, &text, e);
    return r < 0 ? r
                 : file_write_atomic(w->scratch.fd, "entry/image.json", buf_str(&text), 0600, e);
}

static int put_entry(struct work *w, const char *id, struct err *e)
{
    const char *to = arena_printf(w->a, "%s/sha256-%s", w->o->cache, id);
    struct image there;
    if (renameat(w->scratch.fd, "entry", AT_FDCWD, to) == 0 ||
        image_open(w->a, w->o->cache, id, &there, NULL) == 0) {
        return 0; /* by another reference it may have been put there meanwhile */
    }
    return ERR_SYS_AS(e, ERR_OUTPUT, "put the image at '%s'", to);
}

static int unpack_new(struct work *w, const char **ret_id, bool *ret_new, struct err *e)
{
    CLEANUP(fd) int layout = -1;
    struct layout_image image;
    struct image there;
    struct layers l;
    struct layout_want want = { .name = w->ref.kind == IMAGE_STORE ? NULL : w->ref.name,
                                .digest = w->ref.digest,
                                .architecture = layout_architecture() };
    if (w->ref.kind == IMAGE_STORE) {
        want.digest = NULL; /* the engine has looked at it; its manifest was made anew */
    }
    int r = begin_work(w, e);
    r = r < 0 ? r : open_source(w, &layout, e);
    r = r < 0 ? r : layout_open(w->a, layout, &want, &image, e);
    if (r < 0) {
        return r;
    }
    *ret_id = image.id;
    *ret_new = image_open(w->a, w->o->cache, image.id, &there, NULL) < 0;
    if (*ret_new) {
        r = apply_layers(w, layout, &image, &l, e);
        r = r < 0 ? r : write_about(w, &image, &l, e);
        r = r < 0 ? r : put_entry(w, image.id, e);
    }
    return r < 0 || w->o->build != NULL ? r
                                        : image_remember(w->a, w->o->cache, &w->ref, image.id, e);
}

int unpack_image(struct arena *a, const struct unpack_opts *o, const char **ret_id, bool *ret_new,
                 struct err *e)
{
    struct work w = { .a = a, .o = o, .scratch = { .fd = -1, .lock = -1 } };
    struct image there;
    CLEANUP(fd) int lock = -1;
    int r = image_ref_parse(a, o->reference, "", &w.ref, e);
    r = r < 0 ? r : image_lock(a, o->cache, o->reference, &lock, e);
    r = r < 0 ? r : image_find(a, o->cache, &w.ref, &there, e);
    if (r < 0) {
        return r;
    }
    *ret_new = false;
    *ret_id = there.id;
    if (r > 0) {
        r = unpack_new(&w, ret_id, ret_new, e);
        image_scratch_close(&w.scratch);
        r = r < 0 ? err_wrap(e, "image '%.200s'", o->reference) : 0;
    }
    return r;
}

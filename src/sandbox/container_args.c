/* SPDX-License-Identifier: MIT
 *
 * What podman and docker are told, and what they tell of an image. Both take the same words but
 * for a few; an engine that is not called docker is taken for podman.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "init/inner_listener.h"
#include "sandbox/container_priv.h"

/* Words of one command: two for each mount, and far fewer than these for the rest. */
enum { WORDS_MAX = 2 * CONTAINER_MOUNTS_MAX + 128 };
/* An engine sets limits of its own choice, which fails where it may not raise them. Ours may be had
 * by everybody, and no container needs more. */
enum { OPEN_FILES = 65536, PROCESSES = 16384 };

struct words {
    struct arena *a;
    char **list;
    size_t n;
};

static struct words words_new(struct arena *a, const char *engine)
{
    struct words w = { .a = a, .list = arena_array(a, WORDS_MAX + 1, sizeof(char *)) };
    w.list[w.n++] = arena_dup(a, str_of(engine));
    return w;
}

static void add(struct words *w, const char *word)
{
    if (w->n < WORDS_MAX) {
        w->list[w->n++] = arena_dup(w->a, str_of(word));
    }
}

static void add_two(struct words *w, const char *option, const char *value)
{
    add(w, option);
    add(w, value);
}

bool container_engine_is_docker(const char *engine)
{
    struct str path = str_of(engine);
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/') {
        at--;
    }
    return str_starts(str_slice(path, at, path.len), STR("docker"));
}

bool container_image_is_file(const char *image)
{
    static const char *const kinds[] = { "oci-archive:", "docker-archive:", "oci:", "dir:" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_starts(str_of(image), str_of(kinds[i]))) {
            return true;
        }
    }
    return false;
}

char **container_args_load(struct arena *a, const struct container_opts *o)
{
    struct words w = words_new(a, o->engine);
    if (container_engine_is_docker(o->engine)) {
        struct str path = str_of(o->image);
        (void)str_split(&path, ':');
        add_two(&w, "load", "--quiet");
        add_two(&w, "--input", arena_dup(a, path));
    } else {
        add_two(&w, "pull", "--quiet");
        add(&w, o->image);
    }
    return w.list;
}

char **container_args_look(struct arena *a, const struct container_opts *o, const char *image)
{
    struct words w = words_new(a, o->engine);
    add_two(&w, "image", "inspect");
    add_two(&w, "--", image);
    return w.list;
}

char **container_args_remove(struct arena *a, const struct container_opts *o)
{
    struct words w = words_new(a, o->engine);
    add_two(&w, "rm", "--force");
    add_two(&w, "--", o->name);
    return w.list;
}

static void add_ulimit(struct words *w, const char *name, int resource, rlim_t most)
{
    struct rlimit have;
    if (getrlimit(resource, &have) != 0) {
        return;
    }
    uint64_t n = have.rlim_max < most ? have.rlim_max : most;
    add_two(w, "--ulimit", arena_printf(w->a, "%s=%" PRIu64 ":%" PRIu64, name, n, n));
}

static int add_mount(struct words *w, const char *from, const char *to, bool write, struct err *e)
{
    if (strpbrk(from, ",\"\n") != NULL || strpbrk(to, ",\"\n") != NULL) {
        return ERR(e, ERR_CONFIG,
                   "'%s' cannot be shown to a container: its path has a comma or a quote", from);
    }
    add_two(
        w, "--mount",
        arena_printf(w->a, "type=bind,source=%s,target=%s%s", from, to, write ? "" : ",readonly"));
    return 0;
}

static void add_limits(struct words *w, const struct container_opts *o)
{
    if (o->memory > 0) {
        add_two(w, "--memory", arena_printf(w->a, "%" PRIu64 "b", o->memory));
    }
    if (o->cpus > 0) {
        add_two(w, "--cpus", arena_printf(w->a, "%.6g", o->cpus));
    }
    add_two(w, "--pids-limit",
            arena_printf(w->a, "%" PRIu64, o->pids > 0 ? o->pids : SANDBOX_PIDS_DEFAULT));
    add_ulimit(w, "nofile", RLIMIT_NOFILE, OPEN_FILES);
    add_ulimit(w, "nproc", RLIMIT_NPROC, PROCESSES);
}

/* Who writes the files: root of podman's container is whoever started podman. */
static const char *user_of(struct arena *a, bool docker)
{
    return docker ? arena_printf(a, "%u:%u", (unsigned)geteuid(), (unsigned)getegid()) : "0:0";
}

int container_args_run(struct arena *a, const struct container_opts *o, const char *image,
                       const char *init, char ***ret, struct err *e)
{
    struct words w = words_new(a, o->engine);
    bool docker = container_engine_is_docker(o->engine);
    add_two(&w, "run", "--rm");
    add_two(&w, "--name", o->name);
    add(&w, "--pull=never");
    if (o->net != SANDBOX_NET_OPEN) {
        add_two(&w, "--network", "none");
    }
    if (!docker) {
        add(&w, "--http-proxy=false"); /* it hands the caller's proxies on, else */
    }
    add_two(&w, "--log-driver", "none"); /* there is nothing to log: output does not pass it */
    add_two(&w, "--cap-drop", "ALL");
    add_two(&w, "--security-opt", "no-new-privileges");
    add_two(&w, "--security-opt", "label=disable"); /* mounts are ours, without labels */
    add_two(&w, "--user", user_of(a, docker));
    add_two(&w, "--no-healthcheck", "--sig-proxy=false");
    add_limits(&w, o);
    int r = add_mount(&w, init, DOOR_INIT, false, e);
    r = r < 0 ? r : add_mount(&w, o->dir, DOOR_DIR, false, e);
    for (size_t i = 0; r == 0 && i < o->n_mounts; i++) {
        const struct container_mount *m = &o->mounts[i];
        r = add_mount(&w, m->from, m->to, m->write, e);
    }
    add_two(&w, "--entrypoint", DOOR_INIT);
    add_two(&w, "--", image);
    add(&w, "door");
    *ret = w.list;
    return r == 0 && w.n == WORDS_MAX ? ERR(e, ERR_LIMIT, "too many mounts for a container") : r;
}

/* --- what is started --- */

const char *container_program(void)
{
    return DOOR_INIT;
}

struct json *container_entry(struct arena *a, const struct json *info, const struct json *args)
{
    struct json *list = json_array(a);
    const struct json *const parts[] = {
        json_get(info, "entrypoint"),
        json_len(args) > 0 ? args : json_get(info, "command"),
    };
    json_push(a, list, json_cstr(a, "cinch-init"));
    json_push(a, list, json_cstr(a, "exec"));
    for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
        for (size_t i = 0; i < json_len(parts[k]); i++) {
            json_push(a, list, json_string(a, json_str(json_item(parts[k], i), STR_EMPTY)));
        }
    }
    return list;
}

/* --- what it says --- */

static struct json *strings_or_none(struct arena *a, const struct json *from)
{
    struct json *list = json_array(a);
    for (size_t i = 0; i < json_len(from); i++) {
        struct str word = json_str(json_item(from, i), STR_EMPTY);
        json_push(a, list, json_string(a, word));
    }
    return list;
}

int container_image_read(struct arena *a, struct str text, struct json **ret, struct err *e)
{
    struct json *all;
    int r = json_parse(a, text, NULL, &all, e);
    if (r < 0) {
        return err_wrap(e, "the engine's description of the image");
    }
    const struct json *first = json_is(all, JSON_ARRAY) ? json_item(all, 0) : NULL;
    const struct json *config = json_get(first, "Config");
    if (!json_is(first, JSON_OBJECT)) {
        return ERR(e, ERR_PROTO, "the engine's description of the image is not a list of objects");
    }
    struct json *o = json_object(a);
    const struct json *labels = json_get(config, "Labels");
    json_setc(a, o, "id", json_string(a, json_str(json_get(first, "Id"), STR_EMPTY)));
    json_setc(a, o, "digest", json_string(a, json_str(json_get(first, "Digest"), STR_EMPTY)));
    json_setc(a, o, "entrypoint", strings_or_none(a, json_get(config, "Entrypoint")));
    json_setc(a, o, "command", strings_or_none(a, json_get(config, "Cmd")));
    json_setc(a, o, "user", json_string(a, json_str(json_get(config, "User"), STR_EMPTY)));
    json_setc(a, o, "labels", json_is(labels, JSON_OBJECT) ? json_copy(a, labels) : json_object(a));
    *ret = o;
    return 0;
}

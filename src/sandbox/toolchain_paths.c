/* SPDX-License-Identifier: MIT
 *
 * Guessing installations from paths.
 */
#include "sandbox/toolchain_paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/path.h"

static const char *const system_dirs[] = { "/usr",   "/bin",   "/sbin", "/lib",
                                           "/lib32", "/lib64", "/opt",  "/nix/store" };

/* Directories of a home that hold more than a tool, or a tool together with its credentials: only
 * the part that is named is shown. */
static const char *const shared_dirs[] = {
    ".local", ".config", ".cache", ".ssh",    ".gnupg",  ".aws", ".azure",  ".kube",
    ".cargo", ".claude", ".codex", ".docker", ".gemini", ".gem", ".gcloud",
};

int toolchain_is_system(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(system_dirs); i++) {
        if (path_is_below(path, system_dirs[i])) {
            return 1;
        }
    }
    return 0;
}

static void add_dir(struct toolchain_paths *r, struct arena *a, struct str dir, const char *home);

static void add(struct toolchain_paths *r, struct arena *a, const char *path)
{
    struct stat st;
    if (r->n == REACH_MAX || stat(path, &st) != 0) {
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->paths[i], path) == 0) {
            return;
        }
    }
    r->paths[r->n++] = arena_dup(a, str_of(path));
}

/* A Python environment says where the Python is that it belongs to. */
static void add_python(struct toolchain_paths *r, struct arena *a, struct str prefix,
                       const char *home)
{
    CLEANUP(buf) struct buf text = BUF_INIT(65536);
    const char *file = arena_printf(a, "%.*s/pyvenv.cfg", STR_ARG(prefix));
    if (file_read(AT_FDCWD, file, 65536, &text, NULL) < 0) {
        return;
    }
    add(r, a, arena_dup(a, prefix));
    struct str rest = buf_str(&text);
    while (rest.ptr != NULL) {
        struct str value = str_split(&rest, '\n');
        struct str key = str_trim(str_split(&value, '='));
        if (str_eqc(key, "home") && value.ptr != NULL) {
            add_dir(r, a, str_of(arena_dup(a, str_trim(value))), home);
        }
    }
}

/* dir, and lib beside it when it is called bin. */
static void add_pair(struct toolchain_paths *r, struct arena *a, struct str dir, const char *home)
{
    add(r, a, arena_dup(a, dir));
    if (str_ends(dir, STR("/bin"))) {
        struct str above = str_slice(dir, 0, dir.len - 4);
        add(r, a, arena_printf(a, "%.*s/lib", STR_ARG(above)));
        add_python(r, a, above, home);
    }
}

/* ~/.nvm/versions/node/v22/bin → ~/.nvm. */
static void add_of_home(struct toolchain_paths *r, struct arena *a, struct str dir, struct str home)
{
    struct str rest = str_slice(dir, home.len + 1, dir.len);
    struct str first = str_split(&rest, '/');
    bool shared = rest.ptr == NULL || first.len == 0 || first.ptr[0] != '.';
    for (size_t i = 0; i < ARRAY_LEN(shared_dirs); i++) {
        shared = shared || str_eqc(first, shared_dirs[i]);
    }
    if (shared) {
        add_pair(r, a, dir, home.ptr);
    } else {
        add(r, a, arena_printf(a, "%.*s/%.*s", STR_ARG(home), STR_ARG(first)));
    }
}

static void add_dir(struct toolchain_paths *r, struct arena *a, struct str dir, const char *home)
{
    char name[PATH_MAX];
    while (dir.len > 1 && dir.ptr[dir.len - 1] == '/') {
        dir.len--;
    }
    if (dir.len < 2 || dir.len >= sizeof name || dir.ptr[0] != '/') {
        return;
    }
    memcpy(name, dir.ptr, dir.len);
    name[dir.len] = '\0';
    if (toolchain_is_system(name)) {
        return;
    }
    bool of_home = home != NULL && strlen(home) > 1 && path_is_below(name, home);
    if (of_home && strcmp(name, home) != 0) {
        add_of_home(r, a, str_of(arena_dup(a, str_of(name))), str_of(home));
    } else if (!of_home) {
        add_pair(r, a, str_of(arena_dup(a, str_of(name))), home);
    }
}

void toolchain_path(struct toolchain_paths *r, struct arena *a, const char *path, const char *home)
{
    struct str rest = str_of(path);
    while (rest.ptr != NULL) {
        add_dir(r, a, str_split(&rest, ':'), home);
    }
}

/* …/lib/node_modules/x/cli.js belongs to …, /srv/x/bin/tool to /srv/x/bin and /srv/x/lib. */
static void add_installation(struct toolchain_paths *r, struct arena *a, const char *file,
                             const char *home)
{
    const char *modules = strstr(file, "/node_modules/");
    const char *slash = strrchr(file, '/');
    if (toolchain_is_system(file) || slash == NULL || slash == file) {
        return;
    }
    if (modules != NULL) {
        add(r, a, arena_dup(a, str_n(file, (size_t)(modules - file) + strlen("/node_modules"))));
    }
    struct str dir = str_n(file, (size_t)(slash - file));
    if (str_ends(dir, STR("/bin"))) {
        add_dir(r, a, dir, home);
    } else if (modules == NULL) {
        add(r, a, file); /* a script somewhere is no reason to show all that lies around it */
    }
}

/* One step along a link; NULL: it is none. */
static const char *next_of(struct arena *a, const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0) {
        return NULL;
    }
    target[n] = '\0';
    const char *slash = strrchr(path, '/');
    return target[0] == '/' ? arena_dup(a, str_of(target))
                            : arena_printf(a, "%.*s/%s", (int)(slash - path), path, target);
}

void toolchain_program(struct toolchain_paths *r, struct arena *a, const char *program,
                       const char *home)
{
    char real[PATH_MAX];
    if (program == NULL || program[0] != '/') {
        return;
    }
    const char *at = program;
    for (int hops = 0; at != NULL && hops < 8; hops++) {
        const char *next = next_of(a, at);
        if (next != NULL && !toolchain_is_system(at) && r->n_links < REACH_MAX) {
            r->links[r->n_links++] = arena_dup(a, str_of(at));
        }
        at = next;
    }
    if (realpath(program, real) == NULL) {
        return;
    }
    add_installation(r, a, real, home);
    /* Beside a link there may be what belongs to it: node_modules/.bin/x, venv/bin/x. */
    if (strcmp(real, program) != 0 &&
        (strstr(program, "/node_modules/") != NULL || strstr(program, "/bin/") != NULL)) {
        add_installation(r, a, program, home);
    }
}

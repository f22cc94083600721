/* SPDX-License-Identifier: MIT
 *
 * From a program to its interpreter to its loader.
 */
#include "image/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/sha256.h"
#include "image/loader.h"
#include "proc/which.h"
#include "sandbox/toolchain_paths.h"

enum { HEAD_MAX = 512, WORDS_MAX = 16, CHAIN_MAX = 4, SETTINGS_MAX = 65536 };

/* --- mounts --- */

static int add_mount(struct runtime *rt, const char *from, const char *to, bool link, struct err *e)
{
    for (size_t i = 0; i < rt->n_mounts; i++) {
        if (strcmp(rt->mounts[i].to, to) == 0) {
            return 0;
        }
    }
    if (rt->n_mounts == RUNTIME_MOUNTS_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d mounts beside an image", RUNTIME_MOUNTS_MAX);
    }
    rt->mounts[rt->n_mounts++] = (struct sandbox_mount) { from, to, link };
    return 0;
}

static int add_system(struct runtime *rt, struct err *e)
{
    static const char *const dirs[] = { "/usr",   "/bin",   "/sbin",   "/lib",
                                        "/lib32", "/lib64", "/libx32", "/opt" };
    char target[PATH_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++) {
        const char *to = arena_printf(rt->a, SANDBOX_RUNTIME "%s", dirs[i]);
        ssize_t n = readlink(dirs[i], target, sizeof target - 1);
        if (n > 0) {
            /* From the top of the host to the top of its mount. */
            struct str link = str_n(target, (size_t)n);
            bool absolute = target[0] == '/';
            r = add_mount(
                rt, arena_printf(rt->a, "%s%.*s", absolute ? SANDBOX_RUNTIME : "", STR_ARG(link)),
                to, true, e);
        } else if (file_is_dir(AT_FDCWD, dirs[i])) {
            r = add_mount(rt, dirs[i], to, false, e);
        }
    }
    return r;
}

bool runtime_image_has(const char *root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    CLEANUP(fd) int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd) int fd = dir < 0 ? -1 : file_open_how(dir, path, &how);
    return fd >= 0;
}

/* --- the loader --- */

/* /lib64 may be a link of the image: then where it leads to. */
static const char *place_in_image(struct runtime *rt, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    char real[PATH_MAX];
    char top[PATH_MAX];
    const char *last = strrchr(path, '/');
    CLEANUP(fd) int dir = open(rt->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd)
    int fd = dir < 0
                 ? -1
                 : file_open_how(dir, arena_dup(rt->a, str_n(path, (size_t)(last - path))), &how);
    ssize_t n =
        fd < 0 ? -1 : readlink(arena_printf(rt->a, "/proc/self/fd/%d", fd), real, sizeof real - 1);
    if (n <= 0 || realpath(rt->root, top) == NULL || strncmp(real, top, strlen(top)) != 0) {
        return path;
    }
    real[n] = '\0';
    return arena_printf(rt->a, "%s%s", real + strlen(top), last);
}

static int bring_loader(struct runtime *rt, const char *loader, struct err *e)
{
    const char *made = NULL;
    const char *table = NULL;
    if (rt->loader != NULL) {
        return strcmp(rt->loader, loader) == 0
                   ? 0
                   : ERR(e, ERR_UNSUPPORTED, "programs with the loaders '%s' and '%s' together",
                         rt->loader, loader);
    }
    int r = loader_make(rt->a, rt->dir, loader, &made, &table, e);
    r = r < 0 ? r : add_mount(rt, made, LOADER_PATH, false, e);
    r = r < 0 ? r : add_mount(rt, table, LOADER_TABLE, false, e);
    rt->everywhere = !runtime_image_has(rt->root, loader);
    if (r == 0 && rt->everywhere) {
        r = add_mount(rt, made, place_in_image(rt, loader), false, e);
    }
    rt->loader = loader;
    return r;
}

/* --- programs --- */

static const char *inside(struct runtime *rt, const char *path)
{
    return toolchain_is_system(path) ? arena_printf(rt->a, SANDBOX_RUNTIME "%s", path) : path;
}

static void need(struct runtime *rt, const char *program)
{
    if (!toolchain_is_system(program) && rt->n_programs < RUNTIME_PROGRAMS_MAX) {
        rt->programs[rt->n_programs++] = program;
    }
}

/* `real`: without links. */
static int add_elf(struct runtime *rt, const char *real, struct err *e)
{
    const char *loader = NULL;
    const char *copy = NULL;
    bool elf = false;
    int r = loader_of(rt->a, real, &loader, &elf, e);
    if (r < 0 || loader == NULL) {
        return r;
    }
    r = bring_loader(rt, loader, e);
    if (r == 0 && !rt->everywhere) {
        r = loader_make_program(rt->a, rt->dir, real, &copy, e);
        r = r < 0 || copy == NULL ? r : add_mount(rt, copy, inside(rt, real), false, e);
    }
    return r;
}

/* --- Python environments --- */

static const char *venv_of(struct runtime *rt, const char *program)
{
    const char *last = strrchr(program, '/');
    struct str bin = str_n(program, (size_t)(last - program));
    if (!str_ends(bin, STR("/bin"))) {
        return NULL;
    }
    const char *dir = arena_dup(rt->a, str_slice(bin, 0, bin.len - 4));
    return file_exists(AT_FDCWD, arena_printf(rt->a, "%s/pyvenv.cfg", dir)) ? dir : NULL;
}

/* The line `home` says where the Python is. */
static int write_settings(struct runtime *rt, const char *venv, int to, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SETTINGS_MAX);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    int r = file_read(AT_FDCWD, arena_printf(rt->a, "%s/pyvenv.cfg", venv), SETTINGS_MAX, &text, e);
    struct str rest = buf_str(&text);
    while (r == 0 && rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        struct str value = line;
        struct str key = str_trim(str_split(&value, '='));
        const char *path = value.ptr == NULL ? "" : arena_dup(rt->a, str_trim(value));
        if (str_eqc(key, "home") && toolchain_is_system(path)) {
            buf_addf(&out, "home = " SANDBOX_RUNTIME "%s\n", path);
        } else {
            buf_addf(&out, "%.*s\n", STR_ARG(line));
        }
    }
    return r < 0 ? r : file_write_atomic(to, "pyvenv.cfg", buf_str(&out), 0644, e);
}

static int copy_program(int from, int to, const char *name, struct err *e)
{
    CLEANUP(fd) int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    CLEANUP(fd)
    int out = in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    return out < 0 ? ERR_SYS(e, "copy '%s'", name) : file_copy(in, out, 0, e);
}

/* The same names; links to the host's Python lead to where it is inside. */
static int write_programs(struct runtime *rt, int from, int to, struct err *e)
{
    DIR *d = fdopendir(dup(from));
    int r = d == NULL ? ERR_SYS(e, "read the programs of a Python environment") : 0;
    for (const struct dirent *i = r < 0 ? NULL : readdir(d); r == 0 && i != NULL; i = readdir(d)) {
        char target[PATH_MAX];
        struct stat st;
        if (fstatat(from, i->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISLNK(st.st_mode)) {
            ssize_t n = readlinkat(from, i->d_name, target, sizeof target - 1);
            target[n < 0 ? 0 : n] = '\0';
            r = symlinkat(inside(rt, target), to, i->d_name) == 0
                    ? 0
                    : ERR_SYS(e, "make link '%s'", i->d_name);
        } else if (S_ISREG(st.st_mode)) {
            r = copy_program(from, to, i->d_name, e);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return r;
}

static const char *venv_key(struct runtime *rt, const char *venv)
{
    struct stat bin = { 0 };
    struct stat settings = { 0 };
    char hash[SHA256_HEX];
    (void)!stat(arena_printf(rt->a, "%s/bin", venv), &bin);
    (void)!stat(arena_printf(rt->a, "%s/pyvenv.cfg", venv), &settings);
    sha256_hex(str_of(arena_printf(rt->a, "2 %s %llu %lld.%09ld %lld.%09ld", venv,
                                   (unsigned long long)bin.st_ino, (long long)bin.st_mtim.tv_sec,
                                   bin.st_mtim.tv_nsec, (long long)settings.st_mtim.tv_sec,
                                   settings.st_mtim.tv_nsec)),
               hash);
    return arena_printf(rt->a, "%s/venv-%.32s", rt->dir, hash);
}

static int make_venv(struct runtime *rt, const char *venv, const char *to, struct err *e)
{
    char *tmp = arena_printf(rt->a, "%s.XXXXXX", to);
    int r = file_mkdirs(AT_FDCWD, rt->dir, 0700, e);
    if (r == 0 && mkdtemp(tmp) == NULL) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "make '%s'", tmp);
    }
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int top = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(fd)
    int from = open(arena_printf(rt->a, "%s/bin", venv), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bin = top < 0 || mkdirat(top, "bin", 0755) != 0
                  ? -1
                  : openat(top, "bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = from < 0 || bin < 0 ? ERR_SYS(e, "copy the programs of '%s'", venv)
                            : write_settings(rt, venv, top, e);
    r = r < 0 ? r : write_programs(rt, from, bin, e);
    cleanup_fd(&bin);
    if (r == 0 && rename(tmp, to) != 0 && !file_is_dir(AT_FDCWD, to)) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "make '%s'", to);
    }
    (void)!file_remove_tree(AT_FDCWD, tmp, NULL);
    return r;
}

/* An environment of the host's own Python has links to /usr/bin, which is the image's inside. */
static int add_venv(struct runtime *rt, const char *venv, struct err *e)
{
    const char *made = venv_key(rt, venv);
    (void)utimensat(AT_FDCWD, made, NULL, 0); /* when it was used last */
    int r = file_is_dir(AT_FDCWD, made) ? 0 : make_venv(rt, venv, made, e);
    r = r < 0 ? r
              : add_mount(rt, arena_printf(rt->a, "%s/bin", made),
                          arena_printf(rt->a, "%s/bin", venv), false, e);
    return r < 0 ? r
                 : add_mount(rt, arena_printf(rt->a, "%s/pyvenv.cfg", made),
                             arena_printf(rt->a, "%s/pyvenv.cfg", venv), false, e);
}

/* --- what is started --- */

void runtime_begin(struct arena *a, const struct runtime_opts *o, struct runtime *ret)
{
    *ret = (struct runtime) { .a = a, .root = o->root, .dir = o->dir };
}

int runtime_add(struct runtime *rt, const char *program, const char **ret_inside, struct err *e)
{
    char real[PATH_MAX];
    if (realpath(program, real) == NULL) {
        return ERR_SYS_AS(e, ERR_NOTFOUND, "program '%s'", program);
    }
    const char *target = arena_dup(rt->a, str_of(real));
    const char *venv = toolchain_is_system(program) ? NULL : venv_of(rt, program);
    bool leads_out = !toolchain_is_system(program) && toolchain_is_system(target);
    int r = add_system(rt, e);
    r = r < 0 || venv == NULL || !leads_out ? r : add_venv(rt, venv, e);
    r = r < 0 ? r : add_elf(rt, target, e);
    need(rt, program);
    /* A link to the system of the host leads into the image, except in an environment. */
    *ret_inside = leads_out && venv == NULL      ? inside(rt, target)
                  : toolchain_is_system(program) ? inside(rt, target)
                                                 : program;
    return r;
}

const char *const *runtime_shebang(struct arena *a, struct str head)
{
    if (!str_starts(head, STR("#!"))) {
        return NULL;
    }
    struct str line = str_split(&head, '\n');
    struct str rest = str_trim(str_slice(line, 2, line.len));
    const char **words = arena_array(a, WORDS_MAX + 1, sizeof *words);
    size_t n = 0;
    while (rest.len > 0 && n < WORDS_MAX) {
        struct str word = str_split(&rest, ' ');
        if (word.len > 0) {
            words[n++] = arena_dup(a, word);
        }
        rest = rest.ptr == NULL ? STR_EMPTY : str_trim(rest);
    }
    if (n > 1 && str_eqc(path_base(str_of(words[0])), "env")) {
        size_t skip = 1; /* options and assignments of env */
        while (skip + 1 < n && (words[skip][0] == '-' || strchr(words[skip], '=') != NULL)) {
            skip++;
        }
        return words + skip;
    }
    return n == 0 ? NULL : words;
}

static int read_head(const char *path, char head[HEAD_MAX], struct str *ret, struct err *e)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, HEAD_MAX, 0);
    *ret = str_n(head, n < 0 ? 0 : (size_t)n);
    return n < 0 ? ERR_SYS_AS(e, ERR_NOEXEC, "read program '%s'", path) : 0;
}

/* Words come from the last to the first. */
static int add_word(const char **list, size_t *at, const char *word, struct err *e)
{
    if (*at == 0) {
        return ERR(e, ERR_NOEXEC, "a script whose interpreter is a script, and so on");
    }
    list[--*at] = word;
    return 0;
}

static const char *script_inside(struct runtime *rt, const char *script)
{
    char real[PATH_MAX];
    bool system = realpath(script, real) != NULL && toolchain_is_system(real);
    need(rt, script);
    return system ? inside(rt, arena_dup(rt->a, str_of(real))) : script;
}

int runtime_program(struct runtime *rt, const char *program, const char *path,
                    const char *const **ret, struct err *e)
{
    const size_t size = CHAIN_MAX * (WORDS_MAX + 1);
    const char **list = arena_array(rt->a, size + 1, sizeof *list);
    size_t at = size;
    const char *current = program;
    char head[HEAD_MAX];
    char found[PATH_MAX];
    struct str text;
    int r = read_head(current, head, &text, e);
    for (int depth = 0; r == 0; depth++) {
        const char *const *words = runtime_shebang(rt->a, text);
        if (words == NULL) {
            break;
        }
        size_t n = 0;
        while (words[n] != NULL) {
            n++;
        }
        r = depth == CHAIN_MAX ? ERR(e, ERR_NOEXEC, "'%s' has no interpreter", program)
                               : add_word(list, &at, script_inside(rt, current), e);
        for (size_t i = n; r == 0 && i > 1; i--) {
            r = add_word(list, &at, words[i - 1], e);
        }
        r = r < 0 ? r : which_find(words[0], path, NULL, found, e);
        current = r < 0 ? current : arena_dup(rt->a, str_of(found));
        r = r < 0 ? err_wrap(e, "interpreter of '%s'", program)
                  : read_head(current, head, &text, e);
    }
    const char *first = NULL;
    r = r < 0 ? r : runtime_add(rt, current, &first, e);
    r = r < 0 ? r : add_word(list, &at, first, e);
    *ret = list + at;
    return r;
}

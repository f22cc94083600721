/* SPDX-License-Identifier: MIT
 *
 * Inputs of an adapter written, outputs kept.
 */
#include "run/holon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "config/holon_spec.h"
#include "data/yaml.h"
#include "run/deliverables.h"
#include "run/image.h"
#include "run/run_priv.h"

/* What an adapter can leave; the rest is not kept, with a warning. */
enum { KEPT_FILES = 1000, KEPT_DEPTH = 8, KEPT_FILE = 8 << 20 };

static bool keeps_contract(const struct run *run)
{
    return run->plan->driver != NULL && run->plan->driver->kind == DRIVER_CONTRACT;
}

const char *holon_input_dir(struct run *run)
{
    return arena_printf(run->arena, "%s/" HOLON_INPUT, run->paths.dir);
}

const char *holon_input(struct run *run)
{
    return image_wanted(run) ? IMAGE_INPUT : holon_input_dir(run);
}

const char *holon_output(struct run *run)
{
    return image_wanted(run) ? IMAGE_OUTPUT
                             : arena_printf(run->arena, "%s/" HOLON_OUTPUT, run->paths.home);
}

int holon_prepare(struct run *run, struct err *e)
{
    if (!keeps_contract(run)) {
        return 0;
    }
    const char *dir = holon_input_dir(run);
    int r = file_mkdirs(AT_FDCWD, arena_printf(run->arena, "%s/prompts", dir), 0755, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, arena_printf(run->arena, "%s/context", dir), 0755, e);
    static const char *const own[] = { HOLON_OUTPUT, "state", "agent" };
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(own); i++) {
        const char *path = arena_printf(run->arena, "%s/%s", run->paths.home, own[i]);
        r = file_mkdirs(AT_FDCWD, path, 0700, e);
    }
    return r;
}

/* --- paths --- */

/* Where the files of `workspace.context` are: a directory, if there are any. */
static const char *context_dir(struct run *run)
{
    const char *first = json_cstring(json_item(run->plan->settings.view.context, 0), NULL);
    if (keeps_contract(run)) {
        return arena_printf(run->arena, "%s/context", holon_input(run));
    }
    const char *slash = first == NULL ? NULL : strrchr(first, '/');
    return slash == NULL ? NULL : arena_dup(run->arena, str_n(first, (size_t)(slash - first)));
}

int holon_name_paths(struct run *run, struct str *prompt, struct err *e)
{
    const char *output = keeps_contract(run) ? holon_output(run) : run->paths.artifacts;
    const char *workspace = image_workspace(run);
    const char *const paths[][2] = {
        { HOLON_OUTPUT_PATH, output },
        { "${HOLON_OUTPUT_DIR}", output },
        { "$HOLON_OUTPUT_DIR", output },
        { HOLON_WORKSPACE_PATH, workspace },
        { "${HOLON_WORKSPACE_DIR}", workspace },
        { "$HOLON_WORKSPACE_DIR", workspace },
        { "/holon/input/context", context_dir(run) },
    };
    int r = 0;
    for (size_t i = 0; r == 0 && !image_wanted(run) && i < ARRAY_LEN(paths); i++) {
        if (paths[i][1] != NULL) {
            r = holon_replace_path(run->arena, str_of(paths[i][0]), str_of(paths[i][1]), prompt, e);
        }
    }
    return r;
}

/* --- input --- */

static void add_artifact(struct arena *a, struct json *list, const char *path, bool required)
{
    struct json *o = json_object(a);
    json_setc(a, o, "path", json_cstr(a, path));
    json_setc(a, o, "required", json_boolean(a, required));
    json_push(a, list, o);
}

static bool names(const struct json *list, const char *path)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (str_eqc(json_str(json_get(json_item(list, i), "path"), STR_EMPTY), path)) {
            return true;
        }
    }
    return false;
}

/* The manifest is owed in any case; the rest is welcome, unless the task wants it. */
static struct json *artifacts(struct run *run)
{
    static const char *const usual[] = { "manifest.json", "diff.patch", "summary.md" };
    struct arena *a = run->arena;
    const struct json *wanted = run->plan->settings.artifacts;
    struct json *list = json_array(a);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        if (i == 0 || !names(wanted, usual[i])) {
            add_artifact(a, list, usual[i], i == 0);
        }
    }
    for (size_t i = 0; i < json_len(wanted); i++) {
        const struct json *item = json_item(wanted, i);
        const char *path = json_cstring(json_get(item, "path"), "");
        if (strcmp(path, usual[0]) != 0) {
            add_artifact(a, list, path, json_bool(json_get(item, "required"), true));
        }
    }
    return list;
}

static struct json *wrap(struct arena *a, const char *key, struct json *value)
{
    struct json *o = json_object(a);
    json_setc(a, o, key, value);
    return o;
}

static struct json *spec_of(struct run *run)
{
    struct arena *a = run->arena;
    const struct settings *s = &run->plan->settings;
    struct json *o = json_object(a);
    long long seconds = (long long)((run->timeout + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
    json_setc(a, o, "version", json_cstr(a, "v1"));
    json_setc(a, o, "kind", json_cstr(a, "Holon"));
    json_setc(a, o, "metadata", wrap(a, "name", json_cstr(a, s->name != NULL ? s->name : "adhoc")));
    json_setc(a, o, "context", wrap(a, "workspace", json_cstr(a, image_workspace(run))));
    json_setc(a, o, "goal", wrap(a, "description", json_string(a, run->prompt)));
    json_setc(a, o, "output", wrap(a, "artifacts", artifacts(run)));
    json_setc(a, o, "constraints",
              wrap(a, "timeout", json_cstr(a, arena_printf(a, "%llds", seconds))));
    return o;
}

static int write_input(struct run *run, const char *name, struct str text, struct err *e)
{
    const char *path = arena_printf(run->arena, "%s/%s", holon_input_dir(run), name);
    return file_write_atomic(AT_FDCWD, path, text, 0644, e);
}

/* Context files are shown where they are; here stand links to them. */
static void link_context(struct run *run)
{
    const struct json *context = run->plan->settings.view.context;
    for (size_t i = 0; i < json_len(context); i++) {
        const char *target = json_cstring(json_item(context, i), "/");
        struct str name = path_base(str_of(target));
        const char *path =
            arena_printf(run->arena, "%s/context/%.*s", holon_input_dir(run), STR_ARG(name));
        if (symlink(target, path) != 0 && errno != EEXIST) {
            run_warn(run, "context file '%s' has no link in the adapter's inputs", target);
        }
    }
}

int holon_write_input(struct run *run, struct err *e)
{
    CLEANUP(buf) struct buf spec = BUF_INIT(BUF_TEXT);
    if (!keeps_contract(run)) {
        return 0;
    }
    const char *system = run->plan->settings.tier_prompt;
    int r = yaml_write(spec_of(run), &spec, e);
    r = r < 0 ? r : write_input(run, "spec.yaml", buf_str(&spec), e);
    r = r < 0 ? r : write_input(run, "prompts/user.md", run->prompt, e);
    r = r < 0
            ? r
            : write_input(run, "prompts/system.md", system == NULL ? STR_EMPTY : str_of(system), e);
    if (r == 0) {
        link_context(run);
        run->spec_text = arena_str(run->arena, buf_str(&spec));
    }
    return r;
}

/* --- output --- */

struct keeping {
    struct run *run;
    size_t files;
    bool too_many;
};

static bool read_file(int dir, const char *name, struct buf *text)
{
    int fd = file_open_below(dir, str_of(name));
    bool good = fd >= 0 && file_read_fd(fd, name, text->max, text, NULL) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return good;
}

static void keep(struct keeping *k, int dir, const char *name, const char *as)
{
    CLEANUP(buf) struct buf text = BUF_INIT(KEPT_FILE);
    struct err why;
    if (!read_file(dir, name, &text)) {
        run_warn(k->run, "'%s' of the adapter is not kept: it is not a file, or larger than %d MiB",
                 name, KEPT_FILE >> 20);
    } else if (record_write_text(&k->run->record, as, buf_str(&text), &why) < 0) {
        run_warn(k->run, "%s", why.msg);
    }
}

/* Whatever is in the directory, links aside. */
static void keep_all(struct keeping *k, int fd, const char *as, int depth)
{
    struct run *run = k->run;
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        (void)close(fd);
        return;
    }
    (void)mkdirat(run->record.dir.dir_fd, as, 0700);
    for (struct dirent *e = readdir(d); e != NULL && !k->too_many; e = readdir(d)) {
        struct stat st;
        const char *path = arena_printf(run->arena, "%s/%s", as, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        k->too_many = ++k->files > KEPT_FILES;
        if (S_ISDIR(st.st_mode) && depth < KEPT_DEPTH) {
            int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
            int sub = openat(dirfd(d), e->d_name, flags);
            if (sub >= 0) {
                keep_all(k, sub, path, depth + 1);
            }
        } else if (S_ISREG(st.st_mode)) {
            keep(k, dirfd(d), e->d_name, path);
        }
    }
    (void)closedir(d);
}

/* What the task wants by name counts as delivered when it is among the outputs. */
static void keep_named(struct keeping *k, int output)
{
    const struct json *wanted = k->run->plan->settings.artifacts;
    for (size_t i = 0; i < json_len(wanted); i++) {
        const char *path = json_cstring(json_get(json_item(wanted, i), "path"), "");
        const char *as = arena_printf(k->run->arena, "artifacts/%s", path);
        CLEANUP(fd) int fd = file_open_below(output, str_of(path));
        if (fd >= 0 && !file_exists(k->run->record.dir.dir_fd, as)) {
            char *slash = strrchr(arena_dup(k->run->arena, str_of(as)), '/');
            const char *dir =
                arena_printf(k->run->arena, "%.*s", (int)(strlen(as) - strlen(slash)), as);
            (void)!file_mkdirs(k->run->record.dir.dir_fd, dir, 0700, NULL);
            keep(k, output, path, as);
        }
    }
}

/* They are mounted read-only; without a sandbox nothing but the contract keeps them as they are. */
static void check_input(struct run *run)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const char *path = arena_printf(run->arena, "%s/spec.yaml", holon_input_dir(run));
    if (run->spec_text.ptr != NULL && (file_read(AT_FDCWD, path, text.max, &text, NULL) < 0 ||
                                       !str_eq(buf_str(&text), run->spec_text))) {
        run_warn(run, "the adapter changed its inputs");
    }
}

static bool is_empty(int dir)
{
    bool empty = false;
    return file_dir_is_empty(dir, ".", &empty, NULL) == 0 && empty;
}

/* Succeeded without a word. */
static bool is_silent(const struct run *run)
{
    return run->cause.reason == REASON_NONE && run->record.out.received == 0 &&
           run->record.err.received == 0;
}

void holon_collect(struct run *run)
{
    struct keeping k = { .run = run };
    struct err why;
    if (!keeps_contract(run) || run->paths.home == NULL) {
        return;
    }
    check_input(run);
    int home = open(run->paths.home, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int output =
        home < 0 ? -1 : openat(home, HOLON_OUTPUT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (output >= 0 && run->exec.launched) {
        if (file_exists(output, "summary.md")) {
            keep(&k, output, "summary.md", "summary.md");
        }
        if (file_exists(output, NEEDS_HUMAN_FILE)) {
            keep(&k, output, NEEDS_HUMAN_FILE, "artifacts/" NEEDS_HUMAN_FILE);
        }
        if (!run->outcome.report.result_seen && is_empty(output) && is_silent(run)) {
            run_warn(run, "the adapter program exited with 0, but left no output, no event and no "
                          "file: it may not have done anything");
        }
        keep_named(&k, output);
        keep_all(&k, TAKE_FD(output), "evidence/adapter", 0);
    }
    if (k.too_many) {
        run_warn(run, "the adapter left more than %d files: the rest is not kept", KEPT_FILES);
    }
    cleanup_fd(&output);
    cleanup_fd(&home);
    if (file_remove_tree(run->record.dir.dir_fd, HOLON_INPUT, &why) < 0) {
        run_warn(run, "%s", why.msg);
    }
}

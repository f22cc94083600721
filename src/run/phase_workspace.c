/* SPDX-License-Identifier: MIT
 *
 * The workspace within a run: a view before the agent is started, the patch after it has ended, and
 * what stays on disk. Called by phases prepare and collect.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/file.h"
#include "data/shape.h"
#include "record/redact_patch.h"
#include "run/disk.h"
#include "run/image.h"
#include "run/run_priv.h"
#include "workspace/mount.h"
#include "workspace/txn.h"
#include "workspace/workspace.h"

#define PRIVATE_NAME "work"

/* --- prepare --- */

static bool kernel_has_overlay(void)
{
    CLEANUP(buf) struct buf text = BUF_INIT(1 << 16);
    return file_read(AT_FDCWD, "/proc/filesystems", 1 << 16, &text, NULL) == 0 &&
           str_find(buf_str(&text), STR("\toverlay\n")) < text.len;
}

/* An upper layer needs a file system that can keep whiteouts and attributes. Everything else is
 * tried: the sandbox mounts it, or the run is told why not. */
static bool can_hold_layer(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0) {
        return false;
    }
    switch ((unsigned long)fs.f_type) {
    case OVERLAYFS_SUPER_MAGIC:
    case NFS_SUPER_MAGIC:
    case V9FS_MAGIC:
    case FUSE_SUPER_MAGIC:
    case MSDOS_SUPER_MAGIC:
    case EXFAT_SUPER_MAGIC:
        return false;
    default:
        return true;
    }
}

static const char *const *strings_of(struct run *run, const struct json *list)
{
    const char **items = arena_array(run->arena, json_len(list) + 1, sizeof *items);
    for (size_t i = 0; i < json_len(list); i++) {
        items[i] = json_cstring(json_item(list, i), "");
    }
    return items;
}

static int copy_mounts(struct run *run, struct err *e)
{
    const struct json *mounts = run->plan->settings.view.mounts;
    const char *const *roots = strings_of(run, run->plan->settings.view.roots);
    for (size_t i = 0; i < json_len(mounts); i++) {
        const struct json *o = json_item(mounts, i);
        struct mount_report report;
        struct mount m = {
            .host_path = json_cstring(json_get(o, "source"), ""),
            .mount_path = json_cstring(json_get(o, "target"), NULL),
            .include = strings_of(run, json_get(o, "include")),
            .exclude = strings_of(run, json_get(o, "exclude")),
            .max_bytes = shape_size(json_get(o, "max_bytes"), 0),
            .follow_symlinks = json_bool(json_get(o, "follow_symlinks"), false),
        };
        int r = mount_copy(run->workspace, &m, roots, run->arena, &report, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* What the sandbox must show beside the view. */
static void grant(struct run *run)
{
    const char *const *more = workspace_also_read(run->workspace);
    const struct json *context = run->plan->settings.view.context;
    const char *const *old = run->confine.policy.read;
    size_t n = 0;
    size_t len = 0;
    while (old != NULL && old[n] != NULL) {
        n++;
    }
    while (more[len] != NULL) {
        len++;
    }
    const char **all = arena_array(run->arena, n + len + json_len(context) + 1, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        all[i] = old[i];
    }
    for (size_t i = 0; i < len; i++) {
        all[n++] = more[i];
    }
    for (size_t i = 0; i < json_len(context); i++) {
        all[n++] = json_cstring(json_item(context, i), "/");
    }
    run->confine.policy.read = all;
}

static void warn_not_copied(struct run *run)
{
    const struct json *list = workspace_not_copied(run->workspace);
    const struct json *first = json_item(list, 0);
    if (first != NULL) {
        run_warn(run, "%zu %s of the workspace could not be copied ('%s': %s%s)", json_len(list),
                 json_len(list) == 1 ? "entry" : "entries",
                 json_cstring(json_get(first, "path"), "?"),
                 json_cstring(json_get(first, "why"), "?"), json_len(list) > 1 ? ", …" : "");
    }
}

/* What the harness keeps in the workspace for itself is not work of the agent. */
static int leave_out_own_files(struct run *run, struct err *e)
{
    const struct profile *p = run->plan->settings.profile;
    const struct json *own = p == NULL ? NULL : p->own_files;
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(own); i++) {
        r = workspace_leave_out(run->workspace, json_cstring(json_item(own, i), ""), e);
    }
    return r;
}

static void warn_read_only(struct run *run)
{
    size_t n = workspace_read_only_repositories(run->workspace);
    if (n > 0) {
        run_warn(run,
                 "%zu git director%s of the workspace %s read-only for the agent: there are too "
                 "many to protect their files one by one",
                 n, n == 1 ? "y" : "ies", n == 1 ? "is" : "are");
    }
}

static int open_workspace(struct run *run, const char *source, bool overlay, const char *why_not,
                          struct err *e)
{
    const struct settings *s = &run->plan->settings;
    struct workspace_opts o = {
        .source = source,
        .kind = s->view.mode,
        .ref = s->view.ref,
        .dir = arena_printf(run->arena, "%s/%s", run->record.dir.path, PRIVATE_NAME),
        .pin = run->confine.policy.mode != SANDBOX_OFF || image_wanted(run),
        .overlay = overlay,
        .why_not = why_not,
        .marks = sandbox_userxattr() ? NODE_MARKS_USER : NODE_MARKS_TRUSTED,
    };
    int r = workspace_open(&o, &run->workspace, e);
    if (r == 0) {
        warn_not_copied(run);
        r = leave_out_own_files(run, e);
        warn_read_only(run);
    }
    r = r < 0 ? r : copy_mounts(run, e);
    if (r == 0 && run->confine.policy.mode != SANDBOX_OFF) {
        run->confine.view = *workspace_view(run->workspace);
    }
    return r;
}

/* From here on the workspace is where the agent works, whatever the user called it. */
static void work_at(struct run *run, const char *path)
{
    run->paths.view = arena_dup(run->arena, str_of(path));
    run->paths.workspace = run->paths.view;
}

int run_open_workspace(struct run *run, struct err *e)
{
    if (run->plan->settings.foreign_project != NULL) {
        run_warn(run,
                 "'%s' belongs to another user and was ignored: to trust the directory, add it to "
                 "safe.directory of git (git config --global --add safe.directory DIR)",
                 run->plan->settings.foreign_project);
    }
    bool confined = run->confine.policy.mode != SANDBOX_OFF;
    const char *why_not = image_wanted(run)                         ? "the agent is in a container"
                          : !confined                               ? "there is no sandbox"
                          : !kernel_has_overlay()                   ? "the kernel has no overlays"
                          : !can_hold_layer(run->record.dir.dir_fd) ? "the record is on a file "
                                                                      "system that cannot hold one"
                                                                    : NULL;
    int r = open_workspace(run, run->paths.view, why_not == NULL, why_not, e);
    if (r == 0 && (confined || image_wanted(run))) {
        grant(run);
    }
    if (r == 0) {
        work_at(run, confined ? workspace_path(run->workspace) : workspace_dir(run->workspace));
    }
    return r;
}

static int open_again(struct run *run, const char *why, struct err *e)
{
    const char *source = arena_dup(run->arena, str_of(workspace_source(run->workspace)));
    run->workspace = workspace_close(run->workspace, false);
    return open_workspace(run, source, false, why, e);
}

int run_workspace_copy(struct run *run, const struct err *why, struct err *e)
{
    if (run->plan->settings.view.mode == WORKSPACE_OVERLAY) {
        return 0;
    }
    run_warn(run, "the workspace is copied, which takes longer: the kernel refuses an overlay (%s)",
             why->msg);
    int r = open_again(run, why->msg, e);
    return r < 0 ? r : 1;
}

int run_workspace_outside(struct run *run, struct err *e)
{
    int r = workspace_dir(run->workspace) == NULL ? open_again(run, "there is no sandbox", e) : 0;
    if (r == 0) {
        work_at(run, workspace_dir(run->workspace));
    }
    return r;
}

/* --- transactions --- */

/* Copies for programs inside; made through the sandbox's own mount, so that owners come out as the
 * program sees them. */
#define COPIES_NAME "copies"

/* A descriptor of the directory, made if it is missing. */
static int open_copies(struct sandbox *box, struct err *e)
{
    static const char path[] = "disk/" COPIES_NAME;
    int at = sandbox_scratch(box);
    if (mkdirat(at, path, 0700) < 0 && errno != EEXIST) {
        return ERR_SYS(e, "create '%s'", path);
    }
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? ERR_SYS(e, "open '%s'", path) : fd;
}

static int open_inside(struct run *run, struct sandbox *box, struct txns **ret, struct err *e)
{
    struct txns_opts o = {
        .workspace_fd = sandbox_workspace(box),
        .dir = workspace_txn_dir(run->workspace),
        .layers_fd = sandbox_scratch(box),
        .overlay = sandbox_layers(box),
        .marks = sandbox_userxattr() ? NODE_MARKS_USER : NODE_MARKS_TRUSTED,
    };
    if (!sandbox_ready(box)) {
        return ERR(e, ERR_BUG, "transactions before the sandbox is mounted");
    }
    if (!o.overlay) {
        cleanup_fd(&run->confine.copies_fd);
        o.layers_fd = run->confine.copies_fd = open_copies(box, e);
        if (o.layers_fd < 0) {
            return o.layers_fd;
        }
    }
    return txns_open(&o, ret, e);
}

int run_txns_open(struct run *run, struct txns **ret, struct err *e)
{
    struct sandbox *box = sandbox_session_sandbox(run);
    if (run->workspace == NULL) {
        return ERR(e, ERR_BUG, "transactions without a workspace");
    }
    if (box != NULL) {
        return open_inside(run, box, ret, e);
    }
    struct txns_opts o = {
        .workspace_fd = workspace_fd(run->workspace),
        .dir = workspace_txn_dir(run->workspace),
        .layers_fd = -1,
    };
    return o.workspace_fd < 0 ? ERR(e, ERR_BUG, "an overlay without a sandbox")
                              : txns_open(&o, ret, e);
}

const char *run_txn_layer(struct run *run, struct arena *a, const struct txn *x)
{
    const char *layer = txn_layer(x);
    if (layer != NULL || sandbox_session_sandbox(run) == NULL) {
        return layer;
    }
    return arena_printf(a, "%sdisk/%s/%s", SANDBOX_LAYER_BIND, COPIES_NAME, txn_copy_name(x));
}

/* --- collect --- */

struct patch_copy {
    struct run *run;
    struct logfile out;
    struct diff_result *diff;
    size_t withheld;
};

/* Of one patch; the others are in left_out. */
#define WITHHELD_NAMED 32

static void write_patch(void *ctx, struct str bytes)
{
    struct patch_copy *c = ctx;
    logfile_write(&c->out, bytes);
}

/* A file that is not in the patch is listed beside those that are too large for one. */
static void leave_out_of_patch(void *ctx, const struct redact_withheld *file)
{
    struct patch_copy *c = ctx;
    struct arena *a = c->run->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "path", json_string(a, file->path));
    json_setc(a, o, "why", json_cstr(a, file->why));
    json_setc(a, o, "bytes", json_integer(a, file->bytes));
    json_push(a, c->diff->left_out, o);
    if (++c->withheld <= WITHHELD_NAMED) {
        run_warn(c->run, "'%.*s' is withheld from %s: %s", STR_ARG(file->path), c->out.name,
                 file->why);
    }
}

/* Copies what git wrote into the record, without secrets. */
static int copy_patch(struct run *run, const char *name, int fd, struct diff_result *d,
                      struct err *e)
{
    struct stat st;
    struct patch_copy c = { .run = run, .diff = d };
    const struct redact_patch_port port = { write_patch, leave_out_of_patch, &c };
    int r = fstat(fd, &st) < 0
                ? ERR_SYS(e, "read '%s'", name)
                : logfile_init(&c.out, &run->record.dir, name, NULL, &run->record.loss, e);
    if (r < 0) {
        return r;
    }
    size_t len = (size_t)st.st_size;
    void *text = len == 0 ? NULL : mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED) {
        r = ERR_SYS(e, "read '%s'", name);
    } else if (len > 0) {
        uint64_t removed = redact_patch(run->redactor, str_n(text, len), &port);
        if (removed > 0) {
            run_warn(run, "secrets were removed from %s", name);
        }
        if (c.out.written != c.out.received) {
            run_warn(run, "%s is not complete: the disk is full", name);
        }
        (void)munmap(text, len);
    }
    logfile_done(&c.out);
    return r;
}

/* git writes patches of inner repositories to files; these go to a private directory first. */
static int copy_nested(struct run *run, const char *raw, const char *to, struct diff_result *d,
                       struct err *e)
{
    struct arena *a = run->arena;
    int r = 0;
    if (json_len(d->nested) > 0) {
        r = file_mkdirs(run->record.dir.dir_fd, to, 0700, e);
    }
    for (size_t i = 0; r == 0 && i < json_len(d->nested); i++) {
        const char *patch = json_cstring(json_get(json_item(d->nested, i), "patch"), "");
        const char *from = arena_printf(a, "%s/%s", raw, patch);
        CLEANUP(fd) int fd = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? ERR_SYS(e, "open '%s'", from)
                   : copy_patch(run, arena_printf(a, "%s/%s", to, patch), fd, d, e);
    }
    return r;
}

/* "dist/a.html (1.2 KiB), dist/b.html (3 bytes) and 4 more" */
static const char *name_files(struct arena *a, const struct json *list, size_t total)
{
    enum { NAMED = 3 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    size_t n = 0;
    for (; n < json_len(list) && n < NAMED; n++) {
        const struct json *o = json_item(list, n);
        const char *why = json_cstring(json_get(o, "why"), NULL);
        buf_addf(&out, "%s%s (%s%s%s)", n == 0 ? "" : ", ", json_cstring(json_get(o, "path"), "?"),
                 disk_size_text(a, (uint64_t)json_int(json_get(o, "bytes"), 0)),
                 why == NULL ? "" : ", ", why == NULL ? "" : why);
    }
    if (total > n) {
        buf_addf(&out, " and %zu more", total - n);
    }
    return arena_dup(a, buf_str(&out));
}

/* Work that would be lost if nobody knew of it. */
static void warn_left_out(struct run *run, const struct diff_result *d, bool kept)
{
    const char *hint = !kept || d->beside.len == 0
                           ? ""
                           : "; `cinch apply --with-ignored` brings what is "
                             "kept of them";
    size_t large = json_len(d->left_out);
    size_t ignored = json_len(d->ignored_files);
    size_t all = (size_t)d->ignored;
    if (large > 0) {
        run_warn(run, "%zu changed file%s not in diff.patch: %s%s", large,
                 large == 1 ? " is" : "s are", name_files(run->arena, d->left_out, large), hint);
    }
    if (ignored > 0 && workspace_kind_of(run->workspace) != WORKSPACE_IN_PLACE) {
        run_warn(run, "%zu file%s not in diff.patch because git ignores %s: %s%s", all,
                 all == 1 ? " is" : "s are", all == 1 ? "it" : "them",
                 name_files(run->arena, d->ignored_files, all), hint);
    }
}

static void tell_changes(struct run *run, const struct diff_result *d)
{
    size_t changed = json_len(d->source_changed);
    size_t made = json_len(d->new_repositories);
    if (made > 0) {
        run_warn(run,
                 "the agent made %zu git %s that git will obey there: look at .git/config before "
                 "you run git ('%s'%s)",
                 made, made == 1 ? "repository" : "repositories",
                 json_cstring(json_item(d->new_repositories, 0), "?"), made > 1 ? ", …" : "");
    }
    if (changed > 0) {
        run_warn(run, "%zu file%s changed in '%s' while the agent worked on %s too (%s%s)", changed,
                 changed == 1 ? " was" : "s were",
                 json_cstring(json_get(workspace_json(run->workspace, run->arena), "source"), "?"),
                 changed == 1 ? "it" : "them", json_cstring(json_item(d->source_changed, 0), "?"),
                 changed > 1 ? ", …" : "");
    }
}

static int write_description(struct run *run, const struct diff_result *d, bool kept, struct err *e)
{
    struct arena *a = run->arena;
    struct json *o = workspace_json(run->workspace, a);
    json_setc(a, o, "kept", json_boolean(a, kept));
    json_setc(a, o, "no_changes", d == NULL ? json_null(a) : json_boolean(a, d->no_changes));
    json_setc(a, o, "files", d == NULL ? json_array(a) : d->files);
    json_setc(a, o, "left_out", d == NULL ? json_array(a) : d->left_out);
    json_setc(a, o, "source_changed", d == NULL ? json_array(a) : d->source_changed);
    json_setc(a, o, "nested", d == NULL ? json_array(a) : d->nested);
    json_setc(a, o, "ignored", json_integer(a, d == NULL ? 0 : d->ignored));
    json_setc(a, o, "ignored_bytes", json_integer(a, d == NULL ? 0 : d->ignored_bytes));
    json_setc(a, o, "ignored_files", d == NULL ? json_array(a) : d->ignored_files);
    return record_write_json(&run->record, "evidence/workspace.json", o, e);
}

int run_make_patch(struct run *run, const char *name, const char *nested_dir,
                   struct diff_result *ret, struct err *e)
{
    CLEANUP(fd)
    int fd = openat(run->record.dir.dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create a temporary file in '%s'", run->record.dir.path);
    }
    const char *private = arena_printf(run->arena, "%s/%s", run->record.dir.path, PRIVATE_NAME);
    const char *raw = arena_printf(run->arena, "%s/nested", private);
    struct workspace_diff_opts o = {
        .patch_fd = fd,
        .nested_dir = raw,
        .max_file = run->plan->settings.view.max_file,
    };
    int r = workspace_diff(run->workspace, run->arena, &o, ret, e);
    r = r < 0 ? r : copy_patch(run, name, fd, ret, e);
    r = r < 0 ? r : copy_nested(run, raw, nested_dir, ret, e);
    if (file_exists(AT_FDCWD, raw)) {
        (void)!file_remove_tree(AT_FDCWD, raw, NULL);
        (void)rmdir(private); /* if there is nothing else in it */
    }
    return r;
}

/* keep | keep-on-failure | remove */
static bool is_kept(const struct run *run)
{
    const char *word = run->plan->settings.view.keep;
    if (strcmp(word, "keep-on-failure") == 0) {
        return run->cause.reason != REASON_NONE;
    }
    return strcmp(word, "keep") == 0;
}

void run_collect_workspace(struct run *run)
{
    struct diff_result d;
    struct err why;
    if (run->workspace == NULL) {
        return;
    }
    bool known = false;
    if (run->exec.launched) {
        known = run_make_patch(run, "diff.patch", "evidence/nested", &d, &why) == 0;
        if (!known && run->record.damage.code != ERR_OK) {
            run_warn(run, "there is no patch: %s", why.msg); /* it went with the record */
        } else if (!known) {
            run_fail(run, REASON_INTERNAL, "%s", why.msg);
        } else {
            run->outcome.no_changes = d.no_changes ? FLAG_YES : FLAG_NO;
            run->outcome.changes = d.files;
            tell_changes(run, &d);
        }
    }
    bool keep = is_kept(run) && run->exec.launched;
    if (known && d.beside.len > 0 && workspace_kind_of(run->workspace) != WORKSPACE_IN_PLACE &&
        strcmp(run->plan->settings.view.keep, "remove") != 0) {
        int r = workspace_keep_beside(run->workspace, &d.beside, !keep, &why);
        if (r < 0) {
            run_warn(run, "files that are not in the patch cannot be kept: %s", why.msg);
        }
        keep = keep || r == 0;
    }
    if (known) {
        warn_left_out(run, &d, keep);
    }
    if (write_description(run, known ? &d : NULL, keep, &why) < 0) {
        run_warn(run, "%s", why.msg);
    }
    run->workspace = workspace_close(run->workspace, keep);
    if (keep && file_drop_setid(run->record.dir.dir_fd, PRIVATE_NAME, &why) < 0) {
        run_warn(run, "the kept workspace may hold setuid or setgid files: %s", why.msg);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * One call of git: a loop of its own for the time that it takes.
 */
#include "workspace/git.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "io/loop.h"
#include "proc/proc.h"

#define GIT_TIMEOUT (600 * NSEC_PER_SEC)
enum { COMPLAINT_MAX = 4096, ENV_MAX = 32, SAFE_MAX = 1 << 20 };

struct running {
    const struct git_call *call;
    struct loop *loop;
    struct proc *proc;
    struct buf complaint; /* standard error */
    int64_t written;
    int result; /* exit status or -code */
    struct err *e;
};

static void give_up(struct running *g, int r)
{
    g->result = r;
    proc_kill(g->proc);
}

static void take_output(struct running *g, struct str bytes)
{
    const struct git_call *c = g->call;
    if (g->result < 0) {
        return;
    }
    if (c->out != NULL) {
        int r = buf_append(c->out, bytes, g->e);
        if (r < 0) {
            give_up(g, r);
        }
        return;
    }
    if (c->out_fd == NULL) {
        return;
    }
    g->written += (int64_t)bytes.len;
    if (c->out_max > 0 && g->written > c->out_max) {
        give_up(g, ERR(g->e, ERR_LIMIT, "git %s: more than %lld bytes", c->args[0],
                       (long long)c->out_max));
        return;
    }
    int r = file_write_all(*c->out_fd, bytes, g->e);
    if (r < 0) {
        give_up(g, r);
    }
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct running *g = arg;
    if (stream == PROC_STDERR) {
        (void)!buf_append(&g->complaint, str_slice(bytes, 0, COMPLAINT_MAX - 1 - g->complaint.len),
                          NULL);
    } else {
        take_output(g, bytes);
    }
}

static void on_spawn_failed(void *arg, const struct err *why)
{
    struct running *g = arg;
    g->result =
        ERR(g->e, why->code == ERR_NOTFOUND ? ERR_UNAVAILABLE : why->code, "git: %s", why->msg);
}

static int judge(struct running *g, const struct proc_result *r)
{
    const struct git_call *c = g->call;
    if (!r->exit_known || r->signaled) {
        return ERR(g->e, r->stopped ? ERR_TIMEOUT : ERR_SYS, "git %s %s", c->args[0],
                   r->stopped ? "took too long" : "was killed");
    }
    if (r->value != 0 && r->value != c->ok_status) {
        struct str why = str_trim(buf_str(&g->complaint));
        return ERR(g->e, ERR_SYS, "git %s exited with %d: %.*s", c->args[0], r->value,
                   STR_ARG(str_slice(why, 0, 300)));
    }
    return r->value;
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct running *g = arg;
    if (g->result == 0) {
        g->result = judge(g, r);
    }
    g->proc = proc_free(g->proc);
    loop_stop(g->loop);
}

struct environment {
    const char *items[ENV_MAX];
    size_t len;
};

static void set(struct arena *a, struct environment *v, const char *name, const char *value)
{
    if (value != NULL) {
        v->items[v->len++] = arena_printf(a, "%s=%s", name, value);
    }
}

/* A list with colons between, whose members may be quoted. */
static const char *quote(struct arena *a, const char *path)
{
    if (strpbrk(path, ":\"\\") == NULL) {
        return path;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "\"");
    for (; *path != '\0'; path++) {
        buf_addf(&out, *path == '"' || *path == '\\' ? "\\%c" : "%c", *path);
    }
    buf_adds(&out, "\"");
    return arena_dup(a, buf_str(&out));
}

static void make_environment(struct arena *a, const struct git_call *c, struct environment *v)
{
    static const char *const fixed[][2] = {
        { "LC_ALL", "C" },
        { "GIT_ATTR_NOSYSTEM", "1" },
        { "GIT_TERMINAL_PROMPT", "0" },
        { "GIT_OPTIONAL_LOCKS", "0" },
        { "GIT_NO_REPLACE_OBJECTS", "1" },
        { "GIT_PAGER", "cat" },
        { "GIT_EDITOR", "false" },
        { "GIT_ASKPASS", "false" },
        /* A promisor remote is not asked for missing objects. git before 2.45 does not know the
         * first variable; the second one allows no transport at all, whatever is configured. */
        { "GIT_NO_LAZY_FETCH", "1" },
        { "GIT_ALLOW_PROTOCOL", "" },
        { "GIT_SSH_COMMAND", "false" },
    };
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        set(a, v, fixed[i][0], fixed[i][1]);
    }
    const char *path = getenv("PATH");
    set(a, v, "PATH", path == NULL ? "/usr/bin:/bin" : path);
    if (c->system_config) {
        set(a, v, "GIT_CONFIG_SYSTEM", getenv("GIT_CONFIG_SYSTEM"));
        set(a, v, "GIT_CONFIG_GLOBAL", getenv("GIT_CONFIG_GLOBAL"));
        set(a, v, "GIT_CONFIG_NOSYSTEM", getenv("GIT_CONFIG_NOSYSTEM"));
    } else {
        set(a, v, "GIT_CONFIG_NOSYSTEM", "1");
    }
    if (c->user_config) {
        set(a, v, "HOME", getenv("HOME"));
        set(a, v, "XDG_CONFIG_HOME", getenv("XDG_CONFIG_HOME"));
    } else {
        set(a, v, "HOME", "/nonexistent");
        set(a, v, "GIT_CONFIG_GLOBAL", "/dev/null");
    }
    if (c->git_dir == NULL && c->cwd != NULL) { /* nothing above cwd is a repository of this call */
        char above[PATH_MAX];
        if (path_join(c->cwd, "..", above, sizeof above, NULL) == 0) {
            set(a, v, "GIT_CEILING_DIRECTORIES", arena_dup(a, str_of(above)));
        }
    }
    set(a, v, "GIT_DIR", c->git_dir);
    set(a, v, "GIT_WORK_TREE", c->work_tree);
    set(a, v, "GIT_INDEX_FILE", c->index);
    set(a, v, "GIT_OBJECT_DIRECTORY", c->new_objects);
    if (c->objects != NULL) {
        set(a, v, "GIT_ALTERNATE_OBJECT_DIRECTORIES", quote(a, c->objects));
    }
}

/* These also override the configuration of a repository that git must look into. */
static const char *const *make_arguments(struct arena *a, const struct git_call *c)
{
    static const char *const fixed[] = {
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.untrackedCache=false",
        "core.pager=cat",
        "core.attributesFile=/dev/null",
        "core.quotePath=true",
        "core.precomposeUnicode=false",
        "core.sshCommand=false",
        "diff.ignoreSubmodules=all",
        "submodule.recurse=false",
        "commit.gpgSign=false",
        "commit.verbose=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "protocol.allow=never",
        "safe.bareRepository=explicit", /* a directory that looks like one is none */
    };
    size_t more = 0;
    size_t args = 0;
    while (c->config != NULL && c->config[more] != NULL) {
        more++;
    }
    while (c->args[args] != NULL) {
        args++;
    }
    const char **argv = arena_array(a, 4 + 2 * (ARRAY_LEN(fixed) + more) + args, sizeof *argv);
    size_t n = 0;
    argv[n++] = "git";
    for (size_t i = 0; i < ARRAY_LEN(fixed) + more; i++) {
        argv[n++] = "-c";
        argv[n++] = i < ARRAY_LEN(fixed) ? fixed[i] : c->config[i - ARRAY_LEN(fixed)];
    }
    if (c->safe != NULL) {
        argv[n++] = "-c";
        argv[n++] = arena_printf(a, "safe.directory=%s", c->safe);
    }
    for (size_t i = 0; i < args; i++) {
        argv[n++] = c->args[i];
    }
    argv[n] = NULL;
    return argv;
}

int git_run(const struct git_call *c, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(loop) struct loop *loop = NULL;
    struct err own = { 0 };
    struct environment env = { 0 };
    struct running g = { .call = c, .complaint = BUF_INIT(COMPLAINT_MAX) };
    g.e = e == NULL ? &own : e;
    int r = loop_new(&loop, g.e);
    if (r < 0) {
        return r;
    }
    g.loop = loop;
    make_environment(a, c, &env);
    struct proc_opts opts = {
        .argv = make_arguments(a, c),
        .envp = env.items,
        .cwd = c->cwd == NULL ? "/" : c->cwd,
        .stdin_mode = c->input_fd != NULL ? PROC_STDIN_FD
                      : c->input.len > 0  ? PROC_STDIN_BYTES
                                          : PROC_STDIN_CLOSED,
        .stdin_fd = c->input_fd != NULL ? *c->input_fd : -1,
        .stdin_bytes = c->input,
        .stdin_max = c->input.len + 1,
        .deadline = clock_now() + (c->timeout == 0 ? GIT_TIMEOUT : c->timeout),
        .port = { .on_spawn_failed = on_spawn_failed,
                  .on_output = on_output,
                  .on_done = on_done,
                  .arg = &g },
    };
    r = proc_start(loop, &opts, &g.proc, g.e);
    if (r == 0) {
        loop_run(loop);
        r = g.result;
    } else if (r == -ERR_NOTFOUND) {
        g.e->code = ERR_UNAVAILABLE;
        r = -ERR_UNAVAILABLE;
    }
    buf_done(&g.complaint);
    return r;
}

/* The rule of git's setup.c: the last entry that matches wins, and an empty one clears the list. */
static bool is_listed(struct str values, const char *dir)
{
    bool safe = false;
    while (values.ptr != NULL && values.len > 0) {
        struct str v = str_split(&values, '\0');
        bool below = v.len > 2 && str_ends(v, STR("/*"));
        struct str start = str_slice(v, 0, below ? v.len - 1 : 0); /* with the slash */
        if (v.len == 0) {
            safe = false;
        } else if (str_eqc(v, "*") || str_eqc(v, dir) ||
                   (below && str_starts(str_of(dir), start))) {
            safe = true;
        }
    }
    return safe;
}

bool git_lists_as_safe(const char *dir)
{
    static const char *const args[] = { "config",         "-z", "--type=path", "--get-all",
                                        "safe.directory", NULL };
    char real[PATH_MAX];
    CLEANUP(buf) struct buf out = BUF_INIT(SAFE_MAX);
    struct git_call c = {
        .args = args,
        .git_dir = "/dev/null", /* no repository */
        .user_config = true,
        .system_config = true,
        .out = &out,
        .ok_status = 1, /* there is no such key */
    };
    if (git_run(&c, NULL) != 0) {
        return false;
    }
    return is_listed(buf_str(&out), dir) ||
           (realpath(dir, real) != NULL && is_listed(buf_str(&out), real));
}

int git_make_repo(const char *dir, const char *objects, bool sha256, struct err *e)
{
    static const char *const dirs[] = { "objects/info", "objects/pack", "refs/heads", "info" };
    char path[PATH_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++) {
        r = path_join(dir, dirs[i], path, sizeof path, e);
        r = r < 0 ? r : file_mkdirs(AT_FDCWD, path, 0700, e);
    }
    CLEANUP(fd) int fd = r < 0 ? r : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return r < 0 ? r : ERR_SYS(e, "open '%s'", dir);
    }
    /* It lives for a moment: nothing need reach the disk, nothing need be taken out of its pack. */
#define SHORT_LIVED "\tbare = true\n\tfsync = none\n[fastimport]\n\tunpackLimit = 1\n"
    struct str config = sha256 ? STR("[core]\n\trepositoryformatversion = 1\n" SHORT_LIVED
                                     "[extensions]\n\tobjectformat = sha256\n")
                               : STR("[core]\n\trepositoryformatversion = 0\n" SHORT_LIVED);
    r = file_write_atomic(fd, "HEAD", STR("ref: refs/heads/none\n"), 0600, e);
    r = r < 0 ? r : file_write_atomic(fd, "config", config, 0600, e);
    if (r == 0 && objects != NULL) {
        CLEANUP(buf) struct buf text = BUF_INIT(PATH_MAX * 2);
        r = buf_printf(&text, e, "%s\n", objects);
        r = r < 0 ? r : file_write_atomic(fd, "objects/info/alternates", buf_str(&text), 0600, e);
    }
    return r;
}

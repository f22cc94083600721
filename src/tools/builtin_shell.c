/* SPDX-License-Identifier: MIT
 *
 * shell of the built-in agent: one command line, its output, how it ended.
 *
 * The shell is the leader of a new process group, with an empty standard input. Programs that it
 * leaves behind keep the output open; the call ends shortly after the shell all the same, and cinch
 * kills what is left of it. A call whose command fails is a failed call, so that its changes are
 * rolled back, unless the model has asked to keep them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "tools/builtin.h"

enum { TIMEOUT_SECONDS = 120, DRAIN_MS = 200, POLL_MS = 20 };
/* Before the call's own limit, so that the model gets the output up to then. */
#define MARGIN (2 * NSEC_PER_SEC)

struct command {
    pid_t pid;
    int out; /* -1: closed */
    nsec deadline;
    int status;
    bool ended, timed_out;
    struct builtin_excerpt excerpt;
};

static const char *find_shell(void)
{
    static const char *const shells[] = { "/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash" };
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (access(shells[i], X_OK) == 0) {
            return shells[i];
        }
    }
    return "/bin/sh";
}

static int spawn(pid_t *ret, const char *shell, const char *line, int out)
{
    const char *const argv[] = { shell, "-c", line, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int r = posix_spawn_file_actions_init(&files);
    if (r != 0) {
        return r;
    }
    r = posix_spawnattr_init(&attributes);
    if (r == 0) {
        r = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        r = r != 0 ? r : posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        r = r != 0 ? r : posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
        r = r != 0 ? r : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        r = r != 0 ? r : posix_spawn(ret, shell, &files, &attributes, (char *const *)argv, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    return r;
}

static bool start(struct command *c, const char *line, struct builtin_answer *ret)
{
    int ends[2];
    int r = pipe2(ends, O_CLOEXEC) < 0 ? errno : 0;
    if (r == 0) {
        r = spawn(&c->pid, find_shell(), line, ends[1]);
        (void)close(ends[1]);
        c->out = ends[0];
    }
    if (r != 0) {
        builtin_fail(ret, "the shell cannot be started: %s.", strerror(r));
        cleanup_fd(&c->out);
    }
    return r == 0;
}

/* At most `ms`, or until there is something. */
static void take_output(struct command *c, int ms)
{
    static char chunk[64 << 10];
    struct pollfd p = { .fd = c->out, .events = POLLIN };
    if (c->out < 0) {
        (void)poll(NULL, 0, ms);
        return;
    }
    if (poll(&p, 1, ms) <= 0) {
        return;
    }
    ssize_t n = read(c->out, chunk, sizeof chunk);
    if (n > 0) {
        builtin_excerpt_add(&c->excerpt, str_n(chunk, (size_t)n));
    } else if (n == 0 || errno != EINTR) {
        (void)close(c->out);
        c->out = -1;
    }
}

static void wait_for_end(struct command *c)
{
    while (!c->ended) {
        take_output(c, POLL_MS);
        c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
        if (!c->ended && clock_now() >= c->deadline) {
            c->timed_out = true;
            (void)kill(-c->pid, SIGKILL);
            (void)kill(c->pid, SIGKILL);
            c->ended = waitpid(c->pid, &c->status, 0) == c->pid || errno != EINTR;
        }
    }
    nsec until = clock_now() + DRAIN_MS * NSEC_PER_MS;
    while (c->out >= 0 && clock_now() < until) {
        take_output(c, POLL_MS);
    }
    if (c->out >= 0) {
        (void)close(c->out);
    }
}

static nsec limit_of(const struct json *arguments)
{
    const char *given = getenv("CINCH_TOOL_TIMEOUT_MS");
    nsec wish = json_int(json_get(arguments, "timeout_seconds"), TIMEOUT_SECONDS) * NSEC_PER_SEC;
    int64_t ms = 0;
    if (given == NULL || !str_to_i64(str_of(given), &ms) || ms <= 0) {
        return wish;
    }
    nsec most = ms * NSEC_PER_MS;
    most = most > 2 * MARGIN ? most - MARGIN : most / 2;
    return wish < most ? wish : most;
}

static void describe_end(const struct command *c, nsec limit, bool keep, struct builtin_answer *ret)
{
    struct buf *out = &ret->text;
    const char *undone = keep ? "" : ". Its changes to files of the workspace were undone";
    if (out->len > 0 && out->ptr[out->len - 1] != '\n') {
        buf_adds(out, "\n");
    }
    if (c->timed_out) {
        buf_addf(out, "[timed out after %lld s and was killed%s]\n",
                 (long long)((limit + NSEC_PER_SEC - 1) / NSEC_PER_SEC),
                 ". Its changes to files of the workspace were undone");
        ret->failed = true;
    } else if (WIFSIGNALED(c->status)) {
        buf_addf(out, "[ended by signal %d (%s)%s]\n", WTERMSIG(c->status),
                 strsignal(WTERMSIG(c->status)), undone);
        ret->failed = !keep;
    } else if (WEXITSTATUS(c->status) != 0) {
        buf_addf(out, "[exit status %d%s]\n", WEXITSTATUS(c->status), undone);
        ret->failed = !keep;
    } else if (out->len == 0) {
        buf_adds(out, "[exit status 0, no output]\n");
    }
}

void builtin_shell(const struct json *arguments, struct builtin_answer *ret)
{
    static struct command c;
    const struct json *line = json_get(arguments, "command");
    bool keep = json_bool(json_get(arguments, "keep_changes"), false);
    nsec limit = limit_of(arguments);
    if (str_trim(json_str(line, STR_EMPTY)).len == 0 || str_has_nul(json_str(line, STR_EMPTY))) {
        builtin_fail(ret, "'command' must be a command line for the shell.");
        return;
    }
    c = (struct command) { .deadline = clock_now() + limit, .out = -1 };
    if (!start(&c, json_cstring(line, ""), ret)) {
        return;
    }
    wait_for_end(&c);
    builtin_excerpt_write(&c.excerpt, &ret->text);
    describe_end(&c, limit, keep, ret);
}

/* SPDX-License-Identifier: MIT
 *
 * inside [OPTIONS] -- PROGRAM ARGS…: runs the program in a sandbox, copies its output, exits with
 * its code. What tests of the sandbox use where the whole of cinch would be in the way.
 *
 *   --workspace DIR        bound, writable
 *   --overlay DIR LAYER    DIR seen through an overlay that writes to LAYER/upper
 *   --read, --write, --deny PATH
 *   --net open             the host's network
 *   --memory BYTES, --pids N
 *   --nested               for programs with a sandbox of their own
 *   --read-only
 *   --degraded             go on without what the machine cannot give
 *   --listen               a socket on port 8080 inside that answers "hello" to whoever connects
 *   --layer NAME           a transaction's layer, made in the scratch directory
 *   --again                runs the program a second time in the same sandbox
 *   --time                 prints how long it took until the program had ended
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "io/loop.h"
#include "io/watch.h"
#include "sandbox/sandbox.h"

extern char **environ;

enum { LIST_MAX = 32 };

struct job {
    struct loop *loop;
    struct sandbox *box;
    struct proc *proc;
    struct watch *watch;
    int listener;
    char **argv;
    const char *layer;
    int rounds;
    int code;
    nsec started;
    bool timed;
    struct sandbox_policy policy;
    struct sandbox_view view;
    const char *lower[2];
    const char *read[LIST_MAX], *write[LIST_MAX], *deny[LIST_MAX];
};

static void say(const char *text)
{
    (void)!file_write_all(STDERR_FILENO, str_of(text), NULL);
    (void)!file_write_all(STDERR_FILENO, STR("\n"), NULL);
}

static int start(struct job *j, struct err *e);

static void on_output(void *arg, enum proc_stream s, struct str bytes)
{
    (void)arg;
    (void)!file_write_all(s == PROC_STDOUT ? STDOUT_FILENO : STDERR_FILENO, bytes, NULL);
}

static void on_spawn_failed(void *arg, const struct err *why)
{
    struct job *j = arg;
    j->code = err_exit_status(why->code);
    say(why->msg);
}

static void on_closed(void *arg)
{
    struct job *j = arg;
    loop_stop(j->loop);
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct job *j = arg;
    struct err e;
    if (r->started) {
        j->code = !r->exit_known ? 99 : r->signaled ? 128 + r->value : r->value;
    }
    j->proc = proc_free(j->proc);
    if (j->timed) {
        (void)printf("%lld\n", (long long)(clock_now() - j->started) / 1000);
    }
    if (--j->rounds > 0 && start(j, &e) == 0) {
        return;
    }
    sandbox_close(j->box);
}

static int start(struct job *j, struct err *e)
{
    struct proc_place in = sandbox_place(j->box, j->layer);
    struct proc_opts o = {
        .path = j->argv[0][0] == '/' ? j->argv[0] : NULL,
        .argv = (const char *const *)j->argv,
        .envp = (const char *const *)environ,
        .cwd = j->view.path,
        .place = &in,
        .port = { .on_spawn_failed = on_spawn_failed,
                  .on_output = on_output,
                  .on_done = on_done,
                  .arg = j },
    };
    return proc_start(j->loop, &o, &j->proc, e);
}

static void on_connect(void *arg, unsigned events)
{
    struct job *j = arg;
    (void)events;
    int c = accept4(j->listener, NULL, NULL, SOCK_CLOEXEC);
    if (c >= 0) {
        (void)!write(c, "hello", 5);
        (void)close(c);
    }
}

/* As the workspace layer does it for a transaction. */
static void make_layer(struct job *j)
{
    uid_t uid;
    gid_t gid;
    char name[256];
    int dir = sandbox_scratch(j->box);
    sandbox_owner(j->box, &uid, &gid);
    static const char *const parts[] = { "", "/upper", "/work" };
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s%s", j->layer, parts[i]);
        (void)!mkdirat(dir, name, 0755);
        (void)!fchownat(dir, name, uid, gid, 0);
    }
}

static void on_ready(void *arg, const struct sandbox_report *r, int listener)
{
    struct job *j = arg;
    struct err e;
    (void)r;
    j->listener = listener;
    if (listener >= 0 && watch_new(j->loop, listener, on_connect, j, &j->watch, &e) == 0) {
        watch_set(j->watch, WATCH_READ);
        watch_unref(j->watch);
    }
    if (j->layer != NULL) {
        make_layer(j);
        if (start(j, &e) < 0) {
            say(e.msg);
            sandbox_close(j->box);
        }
    }
}

static void on_failed(void *arg, const struct sandbox_report *r, const struct err *why)
{
    struct job *j = arg;
    (void)r;
    j->code = err_exit_status(why->code);
    say(why->msg);
    if (j->proc == NULL) {
        loop_stop(j->loop);
    }
}

static void push(const char **list, const char *value)
{
    size_t n = 0;
    while (list[n] != NULL) {
        n++;
    }
    if (n + 1 < LIST_MAX) {
        list[n] = value;
    }
}

/* Takes one option; returns how many words it had, 0: unknown. */
static int option(struct job *j, char **v, struct sandbox_opts *o)
{
    struct sandbox_policy *p = &j->policy;
    const char *name = v[0];
    if (strcmp(name, "--nested") == 0) {
        p->allow_nested = true;
    } else if (strcmp(name, "--read-only") == 0) {
        p->mode = SANDBOX_READ_ONLY;
    } else if (strcmp(name, "--degraded") == 0) {
        p->may_lose = SANDBOX_LOSE_ALL;
    } else if (strcmp(name, "--listen") == 0) {
        o->listen = true;
        o->listen_port = 8080;
    } else if (strcmp(name, "--again") == 0) {
        j->rounds = 2;
    } else if (strcmp(name, "--time") == 0) {
        j->timed = true;
    } else {
        return 0;
    }
    return 1;
}

static int option_with_value(struct job *j, char **v)
{
    struct sandbox_policy *p = &j->policy;
    const char *name = v[0];
    if (v[1] == NULL) {
        return 0;
    }
    if (strcmp(name, "--read") == 0) {
        push(j->read, v[1]);
    } else if (strcmp(name, "--write") == 0) {
        push(j->write, v[1]);
    } else if (strcmp(name, "--deny") == 0) {
        push(j->deny, v[1]);
    } else if (strcmp(name, "--workspace") == 0) {
        j->view.path = j->view.bind = v[1];
    } else if (strcmp(name, "--net") == 0) {
        p->net = SANDBOX_NET_OPEN;
    } else if (strcmp(name, "--memory") == 0) {
        p->memory = strtoull(v[1], NULL, 10);
    } else if (strcmp(name, "--pids") == 0) {
        p->pids = strtoull(v[1], NULL, 10);
    } else if (strcmp(name, "--layer") == 0) {
        j->layer = v[1];
    } else if (strcmp(name, "--overlay") == 0 && v[2] != NULL) {
        j->view.path = j->lower[0] = v[1];
        j->view.lower = j->lower;
        j->view.layer = v[2];
        return 3;
    } else {
        return 0;
    }
    return 2;
}

static int parse(struct job *j, char **argv, struct sandbox_opts *o)
{
    int at = 1;
    while (argv[at] != NULL && strcmp(argv[at], "--") != 0) {
        int n = option(j, argv + at, o);
        n = n > 0 ? n : option_with_value(j, argv + at);
        if (n == 0) {
            return -1;
        }
        at += n;
    }
    j->policy.read = j->read;
    j->policy.write = j->write;
    j->policy.deny = j->deny;
    j->policy.path = getenv("PATH");
    j->argv = argv[at] == NULL ? NULL : argv + at + 1;
    o->program = j->argv == NULL ? NULL : j->argv[0];
    return j->argv == NULL || j->argv[0] == NULL ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct job j = { .code = 98, .rounds = 1, .listener = -1, .started = clock_now() };
    struct err e = { .code = ERR_OK };
    struct sandbox_opts o = {
        .policy = &j.policy,
        .view = &j.view,
        .port = { .on_ready = on_ready, .on_failed = on_failed, .on_closed = on_closed, .arg = &j },
    };
    (void)argc;
    sandbox_policy_init(&j.policy);
    if (parse(&j, argv, &o) < 0 || loop_new(&j.loop, &e) < 0) {
        return 97;
    }
    int rc = sandbox_open(j.loop, &o, &j.box, &e);
    if (rc == 0 && j.layer == NULL) {
        rc = start(&j, &e);
    }
    if (rc == 0) {
        loop_run(j.loop);
    } else {
        say(e.msg);
        j.code = err_exit_status(e.code);
    }
    j.watch = watch_free(j.watch);
    cleanup_fd(&j.listener);
    j.proc = proc_free(j.proc);
    j.box = sandbox_free(j.box);
    (void)loop_free(j.loop);
    return j.code;
}

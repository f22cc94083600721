/* SPDX-License-Identifier: MIT
 *
 * The checks of the machine. Limits say who needs them: a run has about ten descriptors and one
 * supervisor of a few megabytes; the agents are what needs memory and disk.
 */
#include "cli/doctor_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "cli/run_request.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "gateway/price.h"
#include "proc/locate.h"
#include "proc/probe.h"
#include "proc/which.h"

#define PROBE_TIME (5 * NSEC_PER_SEC)

const char *check_state_word(enum check_state s)
{
    static const char *const words[] = {
        [CHECK_OK] = "ok", [CHECK_WARN] = "warn", [CHECK_FAIL] = "fail"
    };
    return words[s];
}

void check_found(struct check_result *r, enum check_state s, const char *fmt, ...)
{
    va_list ap;
    r->state = s;
    va_start(ap, fmt);
    (void)vsnprintf(r->detail, sizeof r->detail, fmt, ap);
    va_end(ap);
}

void check_advise(struct check_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(r->advice, sizeof r->advice, fmt, ap);
    va_end(ap);
}

/* --- the kernel --- */

static void look_at_kernel(struct check_result *r)
{
    struct utsname u;
    int major = 0;
    int minor = 0;
    if (uname(&u) != 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2) {
        check_found(r, CHECK_WARN, "cannot determine the version");
        return;
    }
    bool new_enough = major > 5 || (major == 5 && minor >= 10);
    check_found(r, new_enough ? CHECK_OK : CHECK_FAIL, "%s %s on %s", u.sysname, u.release,
                u.machine);
    if (!new_enough) {
        check_advise(r, "cinch needs Linux 5.10 or newer");
    }
}

static void look_at_pidfd(struct check_result *r)
{
    CLEANUP(fd) int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0) {
        check_found(r, CHECK_OK, "processes can be watched by file descriptor");
        return;
    }
    check_found(r, CHECK_FAIL, "pidfd_open: %s", strerrordesc_np(errno));
    check_advise(r, "allow the system call: a container's seccomp filter may forbid it");
}

static void look_at_subreaper(struct check_result *r)
{
    int value = 0;
    if (prctl(PR_GET_CHILD_SUBREAPER, &value) == 0) {
        check_found(r, CHECK_OK, "daemons that an agent starts can be found and stopped");
        return;
    }
    check_found(r, CHECK_FAIL, "PR_GET_CHILD_SUBREAPER: %s", strerrordesc_np(errno));
    check_advise(r, "allow prctl(2): a container's seccomp filter may forbid it");
}

/* --- programs --- */

/* First line of the output of "PROGRAM --version", or why there is none. */
static int ask_version(const char *path, struct buf *line, struct err *e)
{
    CLEANUP(buf) struct buf output = BUF_INIT(4096);
    const char *const argv[] = { path, "--version", NULL };
    int r = probe_program(argv, PROBE_TIME, &output, NULL, e);
    if (r > 0) {
        return ERR(e, ERR_UNAVAILABLE, "'%s --version' exited with status %d", path, r);
    }
    struct str rest = buf_str(&output);
    text_clean(line, str_trim(str_split(&rest, '\n')), TEXT_LINE);
    return r;
}

static void look_at_init(struct check_result *r)
{
    char path[PATH_MAX];
    struct err e;
    CLEANUP(buf) struct buf version = BUF_INIT(BUF_TEXT);
    if (locate_init(path, &e) < 0 || ask_version(path, &version, &e) < 0) {
        check_found(r, CHECK_FAIL, "%s", e.msg);
        check_advise(r, "reinstall cinch: the helper belongs in libexec/cinch/");
        return;
    }
    bool same = str_eqc(buf_str(&version), "cinch-init " CINCH_VERSION);
    check_found(r, same ? CHECK_OK : CHECK_FAIL, "%.*s, %s", STR_ARG(buf_str(&version)), path);
    if (!same) {
        check_advise(r, "reinstall cinch: its helper is of another version than " CINCH_VERSION);
    }
}

static void look_at_git(struct check_result *r)
{
    char path[PATH_MAX];
    struct err e;
    CLEANUP(buf) struct buf version = BUF_INIT(BUF_TEXT);
    if (which_find("git", getenv("PATH"), NULL, path, &e) < 0) {
        check_found(r, CHECK_WARN, "not in PATH");
        check_advise(r, "install git: it is used to compute diffs of the workspace");
    } else if (ask_version(path, &version, &e) < 0) {
        check_found(r, CHECK_WARN, "%s", e.msg);
        check_advise(r, "reinstall git");
    } else {
        check_found(r, CHECK_OK, "%.*s", STR_ARG(buf_str(&version)));
    }
}

/* --- resources --- */

static void format_limit(rlim_t n, char out[TEXT_SHORT])
{
    if (n == RLIM_INFINITY) {
        (void)snprintf(out, TEXT_SHORT, "unlimited");
    } else {
        (void)text_count((int64_t)n, out);
    }
}

static void look_at_files(struct check_result *r)
{
    enum { NEEDED = 64, COMFORTABLE = 1024 };
    struct rlimit limit;
    char soft[TEXT_SHORT];
    char hard[TEXT_SHORT];
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        check_found(r, CHECK_WARN, "cannot determine the limit");
        return;
    }
    format_limit(limit.rlim_cur, soft);
    format_limit(limit.rlim_max, hard);
    enum check_state s = limit.rlim_max < NEEDED        ? CHECK_FAIL
                         : limit.rlim_max < COMFORTABLE ? CHECK_WARN
                                                        : CHECK_OK;
    check_found(r, s, "limit %s, can be raised to %s", soft, hard);
    if (s != CHECK_OK) {
        check_advise(r, "raise the hard limit (ulimit -Hn 4096)");
    }
}

/* Kilobytes of a line of /proc/meminfo, -1 when there is none. */
static int64_t memory_line(struct str text, struct str name)
{
    int64_t kilobytes = -1;
    while (text.ptr != NULL) {
        struct str line = str_split(&text, '\n');
        if (str_starts(line, name)) {
            struct str value = str_trim(str_slice(line, name.len, line.len));
            (void)str_to_i64(str_split(&value, ' '), &kilobytes);
            return kilobytes;
        }
    }
    return -1;
}

static void look_at_memory(struct check_result *r)
{
    CLEANUP(buf) struct buf text = BUF_INIT(64 << 10);
    char available[TEXT_SHORT];
    char total[TEXT_SHORT];
    if (file_read(AT_FDCWD, "/proc/meminfo", text.max, &text, NULL) < 0) {
        check_found(r, CHECK_WARN, "cannot read /proc/meminfo");
        return;
    }
    int64_t free_kb = memory_line(buf_str(&text), STR("MemAvailable:"));
    int64_t total_kb = memory_line(buf_str(&text), STR("MemTotal:"));
    if (free_kb < 0 || total_kb < 0) {
        check_found(r, CHECK_WARN, "/proc/meminfo has no MemAvailable or MemTotal");
        return;
    }
    bool enough = free_kb >= 512 << 10; /* what one agent on node or python takes */
    check_found(r, enough ? CHECK_OK : CHECK_WARN, "%s available of %s",
                text_bytes((uint64_t)free_kb << 10, available),
                text_bytes((uint64_t)total_kb << 10, total));
    if (!enough) {
        check_advise(r, "free some memory: an agent often needs 500 MiB");
    }
}

/* Runs go to a directory that may not exist yet: the nearest one above it that does. */
static void nearest_directory(char path[PATH_MAX])
{
    while (!file_is_dir(AT_FDCWD, path)) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path) {
            (void)snprintf(path, PATH_MAX, "/");
            return;
        }
        *slash = '\0';
    }
}

static void look_at_prices(struct check_result *r)
{
    int64_t day = (int64_t)24 * 60 * 60;
    int64_t age = (clock_wall() / NSEC_PER_SEC - price_builtin_date()) / day;
    bool old = age > PRICE_OLD_DAYS;
    check_found(r, old ? CHECK_WARN : CHECK_OK, "the built-in price table is %lld days old",
                (long long)(age < 0 ? 0 : age));
    if (old) {
        check_advise(r,
                     "update cinch, or name a newer table with gateway.prices: costs may be wrong");
    }
}

static void look_at_disk(struct check_result *r)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const char *runs = request_runs_dir(a);
    char path[PATH_MAX];
    char room[TEXT_SHORT];
    struct statvfs fs;
    (void)snprintf(path, sizeof path, "%s", runs);
    nearest_directory(path);
    if (access(path, W_OK) != 0) {
        check_found(r, CHECK_FAIL, "'%s' is not writable", path);
        check_advise(r, "set XDG_STATE_HOME, or always use --output");
        return;
    }
    if (statvfs(path, &fs) != 0) {
        check_found(r, CHECK_WARN, "'%s': %s", path, strerrordesc_np(errno));
        return;
    }
    uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    enum check_state s = bytes < (uint64_t)64 << 20     ? CHECK_FAIL
                         : bytes < (uint64_t)1024 << 20 ? CHECK_WARN
                                                        : CHECK_OK;
    check_found(r, s, "%s free for %s", text_bytes(bytes, room), runs);
    if (s != CHECK_OK) {
        check_advise(r, "free some space, or use --output on another disk");
    }
}

static void look_at_terminal(struct check_result *r)
{
    struct terminal t;
    terminal_init(&t, stderr, TERMINAL_COLOR_AUTO);
    if (!t.tty) {
        check_found(r, CHECK_OK, "stderr is not a terminal: progress is printed as plain lines");
    } else if (!t.live) {
        check_found(r, CHECK_OK, "TERM is unset or dumb: progress is printed as plain lines");
    } else {
        check_found(r, CHECK_OK, "%zu columns, %s", terminal_width(&t),
                    t.color ? "colour" : "no colour");
    }
}

const struct check checks[] = {
    { "kernel", look_at_kernel },
    { "pidfd", look_at_pidfd },
    { "subreaper", look_at_subreaper },
    { "cinch-init", look_at_init },
    { "open files", look_at_files },
    { "memory", look_at_memory },
    { "disk", look_at_disk },
    { "git", look_at_git },
    { "terminal", look_at_terminal },
    { "prices", look_at_prices },
    { "user namespaces", check_user_namespaces },
    { "seccomp", check_seccomp },
    { "landlock", check_landlock },
    { "overlay", check_overlay },
    { "podman", check_podman },
    { 0 },
};

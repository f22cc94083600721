/* SPDX-License-Identifier: MIT
 *
 * What is there to be tried: the program of an adapter, its version, and what its profile declares.
 * An adapter that is not installed or cannot be started, and a capability that is not declared, are
 * skipped with the reason. A program that starts is tested.
 */
#include <stdlib.h>

#include "ack/contract_scenarios.h"
#include "ack/kit_priv.h"
#include "adapters/driver.h"
#include "adapters/node.h"
#include "adapters/version.h"
#include "proc/probe.h"
#include "proc/which.h"

/* Node programs take half a minute to say who they are on a machine that is busy with a kit. */
#define PROBE_TIME (60 * NSEC_PER_SEC)

enum { REASON_LONGEST = 200 };
/* Of a shell, and of env(1): the program, or its interpreter, cannot be started. */
enum { STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

const char *kit_variable(const char *const *env, const char *name)
{
    struct str wanted = str_of(name);
    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        struct str entry = str_of(env[i]);
        if (str_starts(entry, wanted) && entry.ptr[wanted.len] == '=') {
            return entry.ptr + wanted.len + 1;
        }
    }
    return NULL;
}

/* --- the program --- */

/* "node: not found", of many lines: it goes into tables. */
static const char *last_line(struct arena *a, struct str text)
{
    struct str last = STR_EMPTY;
    while (text.len > 0) {
        struct str line = str_trim(str_split(&text, '\n'));
        last = line.len > 0 ? line : last;
    }
    return arena_dup(a, str_slice(last, 0, REASON_LONGEST));
}

/* The profile's command, or `PROGRAM --version`. */
static const char *const *version_argv(struct arena *a, const struct profile *p,
                                       const char *program)
{
    size_t n = json_len(p->version_command);
    const char **argv = arena_array(a, n + 3, sizeof *argv);
    if (n == 0) {
        argv[0] = program;
        argv[1] = "--version";
        return argv;
    }
    for (size_t i = 0; i < n; i++) {
        const char *word = json_cstring(json_item(p->version_command, i), "");
        argv[i] = strcmp(word, "{binary}") == 0 ? program : word;
    }
    return argv;
}

/* A program that starts is tested, whatever it makes of the question. */
static int ask_version(struct arena *a, struct kit_adapter *adapter, const char *program,
                       struct err *e)
{
    CLEANUP(buf) struct buf output = BUF_INIT(4096);
    CLEANUP(buf) struct buf errors = BUF_INIT(4096);
    const char *const *argv = version_argv(a, adapter->profile, program);
    struct err why = { 0 };
    int r = probe_program(argv, PROBE_TIME, &output, &errors, &why);
    if (r == -ERR_CANCELLED) {
        return ERR(e, ERR_CANCELLED, "%s", why.msg);
    }
    const char *said = last_line(a, buf_str(&errors));
    adapter->available = true;
    if (r == STATUS_NOT_FOUND || r == STATUS_NOT_EXECUTABLE) {
        adapter->available = false;
        adapter->why_not = arena_printf(a, "'%s' cannot be started (status %d%s%s)", program, r,
                                        said[0] == '\0' ? "" : ": ", said);
    } else if (r == -ERR_NOTFOUND || r == -ERR_NOEXEC) {
        adapter->available = false;
        adapter->why_not = arena_dup(a, str_of(why.msg));
    } else if (r == 0) {
        adapter->version = version_of_output(a, buf_str(&output));
    }
    return 0;
}

/* Of the package that it belongs to, else as it says itself. */
static int find_version(struct arena *a, struct kit_adapter *adapter, const char *program,
                        struct err *e)
{
    const struct profile *p = adapter->profile;
    adapter->program = program;
    const char *installed = version_of_program(a, p, program);
    if (installed == NULL) {
        return ask_version(a, adapter, program, e);
    }
    adapter->available = true;
    adapter->version = installed;
    return 0;
}

const char *kit_path(struct arena *a, const struct kit_adapter *adapter, const char *const *env)
{
    const char *path = kit_variable(env, "PATH");
    return adapter->path == NULL ? path
           : path == NULL        ? adapter->path
                                 : arena_printf(a, "%s:%s", adapter->path, path);
}

static int find_command(struct arena *a, struct kit_adapter *adapter, const char *const *env,
                        struct err *e)
{
    const char *name = json_cstring(json_item(adapter->command, 0), "");
    char program[PATH_MAX];
    struct err why;
    if (which_find(name, kit_path(a, adapter, env), NULL, program, &why) < 0) {
        adapter->why_not = arena_dup(a, str_of(why.msg));
        return 0;
    }
    int r = find_version(a, adapter, arena_dup(a, str_of(program)), e);
    adapter->available = true;
    adapter->why_not = "";
    return r;
}

/* An agent without a node that it can run on is not installed. */
static int check_node(struct arena *a, struct kit_adapter *adapter, const char *const *env,
                      struct err *e)
{
    struct err why = { 0 };
    const char *dir;
    int r = adapter->profile->node == NULL
                ? 0
                : node_find(a, adapter->profile->node, kit_path(a, adapter, env), &dir, &why);
    if (r == -ERR_CANCELLED) {
        return ERR(e, ERR_CANCELLED, "%s", why.msg);
    }
    adapter->why_not = r < 0 ? arena_dup(a, str_of(why.msg)) : "";
    return r < 0 ? 1 : 0;
}

static int find_program(struct arena *a, struct kit_adapter *adapter, const char *const *env,
                        struct err *e)
{
    const struct json *candidates = adapter->profile->binary;
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    char program[PATH_MAX];
    struct err why;
    for (size_t i = 0; i < json_len(candidates); i++) {
        const char *name = json_cstring(json_item(candidates, i), "");
        if (which_find(name, kit_path(a, adapter, env), NULL, program, &why) < 0) {
            buf_addf(&names, "%s%s", i == 0 ? "" : ", ", name);
            continue;
        }
        /* A program that keeps the file contract need not know --version: it would begin a run. */
        if (contract_applies(adapter->profile)) {
            adapter->available = true;
            return 0;
        }
        int r = check_node(a, adapter, env, e);
        return r != 0 ? (r < 0 ? r : 0)
                      : find_version(a, adapter, arena_dup(a, str_of(program)), e);
    }
    bool path = json_len(candidates) == 1 && strchr(names.ptr, '/') != NULL;
    adapter->why_not = path ? arena_dup(a, str_of(why.msg))
                            : arena_printf(a, "not in PATH: %.*s", STR_ARG(buf_str(&names)));
    return 0;
}

static int probe(struct arena *a, struct kit_adapter *adapter, const char *const *env,
                 struct err *e)
{
    const struct profile *p = adapter->profile;
    adapter->available = false;
    adapter->version = "";
    adapter->why_not = "";
    if (driver_find(p->driver) == NULL) {
        return ERR(e, ERR_UNAVAILABLE, "adapter '%s': this cinch has no driver '%s'", adapter->name,
                   p->driver);
    }
    if (driver_is_kind(p, DRIVER_MODEL_LOOP)) {
        adapter->available = true;
        adapter->version = CINCH_VERSION;
    } else if (adapter->command != NULL) {
        return find_command(a, adapter, env, e);
    } else if (json_len(p->binary) == 0) {
        adapter->why_not = "takes its command from the task: name one by --command, or write a "
                           "profile with `binary` for it";
    } else {
        return find_program(a, adapter, env, e);
    }
    return 0;
}

int kit_probe(struct arena *a, struct kit_adapter *adapter, const char *const *env, struct err *e)
{
    const struct profile *p = adapter->profile;
    int r = probe(a, adapter, env, e);
    bool untested = r == 0 && adapter->available && adapter->version[0] != '\0' &&
                    version_warning(a, p, adapter->version) != NULL;
    adapter->untested =
        !untested ? NULL
                  : arena_printf(a, "%s %s is not among the tested versions of its profile (%s)",
                                 adapter->name, adapter->version, version_tested(a, p));
    return r;
}

/* --- what is skipped --- */

/* NULL: the profile declares it. */
static const char *lack_of(struct arena *a, const struct profile *p, const char *name)
{
    enum capability c;
    const char *why = capability_of(str_of(name), &c) ? capability_lack(&p->capabilities, c)
                                                      : "there is no such capability";
    return why == NULL ? NULL : arena_printf(a, "%s: %s", name, why);
}

const char *kit_skip(struct arena *a, const struct kit_opts *o, const struct kit_adapter *adapter,
                     const struct scenario *s)
{
    const char *key = adapter->profile->gateway.key;
    if (!adapter->available) {
        return adapter->why_not;
    }
    if (s->contract != NULL) {
        return !contract_applies(adapter->profile)
                   ? "it is no program or image of the file contract"
               : o->max_usd > 0 ? "its runs are not limited by --max-usd"
                                : NULL;
    }
    if (o->live && s->hermetic) {
        return "holds for a scripted model only";
    }
    if (o->live && key != NULL && kit_variable(o->environ, key) == NULL) {
        return arena_printf(a, "%s is not set: a real model needs it", key);
    }
    for (const char **c = s->capabilities; c != NULL && *c != NULL; c++) {
        const char *lack = lack_of(a, adapter->profile, *c);
        if (lack != NULL) {
            return lack;
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * The report of a sandbox.
 */
#include "sandbox/degraded.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "init/control.h"
#include "init/plan.h"
#include "sandbox/compose.h"

static const char *const remedies[] = {
    [SANDBOX_FILES] = ("allow user namespaces and overlays (kernel.unprivileged_userns_clone=1, "
                       "kernel.apparmor_restrict_unprivileged_userns=0), use Linux 5.12 or newer, "
                       "or start cinch as root"),
    [SANDBOX_IDENTITY] = "put the workspace on a file system with idmapped mounts (ext4, xfs, "
                         "btrfs, tmpfs), or start cinch as an ordinary user",
    [SANDBOX_PROCESSES] = "allow pid namespaces; inside a container, an unmasked /proc",
    [SANDBOX_NETWORK] = "allow network namespaces",
    [SANDBOX_IPC] = "allow IPC and UTS namespaces",
    [SANDBOX_SYSCALLS] = "use a kernel with CONFIG_SECCOMP_FILTER",
    [SANDBOX_LANDLOCK] = "boot with lsm=landlock,… (Linux 5.13 or newer)",
    [SANDBOX_MEMORY] = "delegate a cgroup with the memory controller to this user",
    [SANDBOX_PIDS] = "delegate a cgroup with the pids controller to this user",
    [SANDBOX_CPUS] = "delegate a cgroup with the cpu controller to this user",
};

static enum sandbox_guarantee of_namespace(uint32_t flags)
{
    if ((flags & CLONE_NEWNET) != 0) {
        return SANDBOX_NETWORK;
    }
    return (flags & CLONE_NEWIPC) != 0 ? SANDBOX_IPC : SANDBOX_FILES;
}

enum sandbox_guarantee loss_of(const struct control_refused *r, const struct compose *c)
{
    bool of_machine = r->error.code == ERR_UNSUPPORTED;
    bool owner = c->who.root && strstr(r->error.msg, "owner") != NULL;
    if (!of_machine) {
        return SANDBOX_GUARANTEE_MAX;
    }
    switch (r->op) {
    case PLAN_OP_NAMESPACES:
        return of_namespace(r->number);
    case PLAN_OP_LOOPBACK:
        return SANDBOX_NETWORK;
    case PLAN_OP_PROC:
        return SANDBOX_PROCESSES;
    case PLAN_OP_IDENTITY:
        return SANDBOX_IDENTITY;
    case PLAN_OP_BIND:
        return owner ? SANDBOX_IDENTITY : SANDBOX_FILES;
    case PLAN_OP_JOIN:
        return SANDBOX_MEMORY;
    default:
        return SANDBOX_FILES;
    }
}

void loss_note(struct sandbox_report *r, enum sandbox_guarantee g, const char *why)
{
    for (size_t i = 0; i < r->n_lost; i++) {
        if (r->lost[i].what == g) {
            return;
        }
    }
    struct sandbox_loss *l = &r->lost[r->n_lost++];
    l->what = g;
    (void)snprintf(l->why, sizeof l->why, "%.255s", why);
    (void)snprintf(l->remedy, sizeof l->remedy, "%s", remedies[g]);
}

static int refuse(const struct sandbox_loss *l, struct err *e)
{
    return ERR(e, ERR_UNSUPPORTED,
               "sandbox: '%s' is not possible here (%s): %s, or go on without it "
               "(--allow-degraded)",
               sandbox_guarantee_word(l->what), l->why, l->remedy);
}

int loss_check(const struct sandbox_report *r, uint32_t may_lose, struct err *e)
{
    for (size_t i = 0; i < r->n_lost; i++) {
        if ((may_lose & (1u << r->lost[i].what)) == 0) {
            return refuse(&r->lost[i], e);
        }
    }
    return 0;
}

void loss_explain(const struct sandbox_report *r, struct err *e)
{
    if (e->code == ERR_UNSUPPORTED && r->n_lost > 0) {
        (void)refuse(&r->lost[r->n_lost - 1], e);
    } else {
        (void)err_wrap(e, "sandbox");
    }
}

void loss_settle(struct sandbox_report *r)
{
    r->enforced = r->requested;
    for (size_t i = 0; i < r->n_lost; i++) {
        r->enforced &= ~(1u << r->lost[i].what);
    }
}

static struct json *words(struct arena *a, uint32_t bits)
{
    struct json *list = json_array(a);
    for (int g = 0; g < SANDBOX_GUARANTEE_MAX; g++) {
        if ((bits & (1u << g)) != 0) {
            json_push(a, list, json_cstr(a, sandbox_guarantee_word((enum sandbox_guarantee)g)));
        }
    }
    return list;
}

struct json *sandbox_report_json(struct arena *a, const struct sandbox_report *r)
{
    struct json *o = json_object(a);
    struct json *lost = json_array(a);
    for (size_t i = 0; i < r->n_lost; i++) {
        struct json *l = json_object(a);
        json_setc(a, l, "guarantee", json_cstr(a, sandbox_guarantee_word(r->lost[i].what)));
        json_setc(a, l, "why", json_cstr(a, r->lost[i].why));
        json_setc(a, l, "remedy", json_cstr(a, r->lost[i].remedy));
        json_push(a, lost, l);
    }
    json_setc(a, o, "mode", json_cstr(a, sandbox_mode_word(r->mode)));
    json_setc(a, o, "requested", words(a, r->requested));
    json_setc(a, o, "enforced", words(a, r->enforced));
    json_setc(a, o, "lost", lost);
    json_setc(a, o, "memory_bytes",
              r->memory == 0 ? json_null(a) : json_integer(a, (int64_t)r->memory));
    json_setc(a, o, "plan_sha256", json_cstr(a, r->plan_sha256[0] == '\0' ? NULL : r->plan_sha256));
    return o;
}

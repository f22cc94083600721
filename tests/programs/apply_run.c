/* SPDX-License-Identifier: MIT
 *
 * One apply from the command line, which can be killed at each call that changes a file.
 *
 *   apply_run [OPTION…] TARGET PATCH JOURNALS UNDO
 *   apply_run --undo [--die-at N] UNDO JOURNALS
 *   apply_run --recover [--die-at N] JOURNALS
 *
 *   --die-at N     SIGKILL at the N-th call that changes a file
 *   --branch NAME  --commit MESSAGE
 *
 * Exit status: 0, or 1 when it does not fit, or 2 with the reason on stderr. Prints what a recovery
 * has done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "countdown.h"
#include "workspace/apply.h"
#include "workspace/apply_txn.h"

COUNTED_ALL

static void print_recovered(void *arg, const struct apply_txn *t, enum apply_recovery what,
                            const char *why)
{
    static const char *const words[] = { "completed", "rolled back", "stuck" };
    (void)printf("%s%s%s\n", words[what], what == APPLY_STUCK ? ": " : "",
                 what == APPLY_STUCK ? why : "");
}

static int finish(int r, const struct apply_result *result, const struct err *e)
{
    if (r < 0) {
        (void)fprintf(stderr, "apply_run: %s\n", e->msg);
        return 2;
    }
    if (!result->fits) {
        (void)fprintf(stderr, "apply_run: %s\n", result->why);
    }
    return result->fits ? 0 : 1;
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct apply_opts o = { .branch = NULL };
    struct apply_result result = { .fits = true };
    struct err e = { 0 };
    bool undo = false;
    bool recover = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--undo") == 0) {
            undo = true;
        } else if (strcmp(argv[i], "--recover") == 0) {
            recover = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--die-at") == 0) {
            countdown = strtol(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--branch") == 0) {
            o.branch = argv[++i];
        } else if (i + 1 < argc && strcmp(argv[i], "--commit") == 0) {
            o.commit = argv[++i];
        }
    }
    int rest = argc - i;
    if (recover && rest == 1) {
        const struct apply_recover_port port = { print_recovered, NULL };
        apply_txn_recover(argv[i], &port);
        return 0;
    }
    if (undo && rest == 2) {
        struct apply_undo_opts u = { .undo = argv[i], .journals = argv[i + 1] };
        return finish(apply_undo(a, &u, &result, &e), &result, &e);
    }
    if (undo || recover || rest != 4) {
        return 2;
    }
    struct apply_patch one = { .path = "", .patch = argv[i + 1] };
    o.target = argv[i];
    o.patches = &one;
    o.patch_count = 1;
    o.journals = argv[i + 2];
    o.undo = argv[i + 3];
    return finish(apply_run(a, &o, &result, &e), &result, &e);
}

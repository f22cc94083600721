/* SPDX-License-Identifier: MIT
 *
 * Runs each cmocka test of a binary in a process of its own, for tests that start processes: what
 * one leaves behind or breaks cannot help or hurt the next.
 *
 *   int main(int argc, char **argv)
 *   {
 *       static const struct CMUnitTest tests[] = { cmocka_unit_test(a), … };
 *       return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
 *   }
 *
 * Without arguments the program starts itself once per test; with names it runs those. Each test
 * has 60 seconds. Include after cmocka.h.
 */
#pragma once

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static inline int isolated_run_one(const struct CMUnitTest *test)
{
    const struct CMUnitTest one[] = { *test };
    (void)alarm(60);
    return cmocka_run_group_tests_name(test->name, one, NULL, NULL) == 0 ? 0 : 1;
}

/* The runner is a subreaper: orphans of a test become its children. Returns how many it had to
 * kill. */
static inline int isolated_sweep(void)
{
    int killed = 0;
    char text[4096];
    while (waitpid(-1, NULL, WNOHANG) >= 0) {
        FILE *f = fopen("/proc/thread-self/children", "re");
        size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
        if (f != NULL) {
            (void)fclose(f);
        }
        text[n] = '\0';
        char *at = text;
        for (long pid = strtol(at, &at, 10); pid > 0; pid = strtol(at, &at, 10)) {
            killed += kill((pid_t)pid, SIGKILL) == 0;
        }
        (void)nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    }
    return killed;
}

static inline int isolated_spawn(const char *self, const char *name)
{
    char *argv[] = { (char *)(uintptr_t)self, (char *)(uintptr_t)name, NULL };
    pid_t pid = 0;
    int status = 0;
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid) {
        return 1;
    }
    if (WIFSIGNALED(status)) {
        (void)fprintf(stderr, "%s: ended by signal %d (%s)\n", name, WTERMSIG(status),
                      WTERMSIG(status) == SIGALRM ? "time is up" : strsignal(WTERMSIG(status)));
    }
    int left = isolated_sweep();
    if (left > 0) {
        (void)fprintf(stderr, "%s: left %d processes behind\n", name, left);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && left == 0 ? 0 : 1;
}

static inline int isolated_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    int failed = 0;
    int found = argc < 2;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (size_t i = 0; i < n; i++) {
        if (argc < 2) {
            failed += isolated_spawn(argv[0], tests[i].name);
        }
        for (int k = 1; k < argc; k++) {
            if (strcmp(argv[k], tests[i].name) == 0) {
                found = 1;
                failed += isolated_run_one(&tests[i]);
            }
        }
    }
    return found && failed == 0 ? 0 : 1;
}

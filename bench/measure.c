/* SPDX-License-Identifier: MIT
 *
 * measure [-o FILE] -- COMMAND…: runs a command and prints {"status", "seconds", "maxrss_kb"} as
 * JSON. Small on purpose: the peak RSS that the kernel reports for a process includes what its
 * parent had before exec.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const char *out = NULL;
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            out = argv[++i];
        }
    }
    if (i + 1 >= argc) {
        (void)fprintf(stderr, "usage: measure [-o FILE] -- COMMAND...\n");
        return 64;
    }
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    if (out != NULL) {
        (void)posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC,
                                               0644);
    }
    pid_t pid;
    double start = now();
    int failed = posix_spawnp(&pid, argv[i + 1], &actions, NULL, argv + i + 1, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        (void)fprintf(stderr, "measure: %s: %s\n", argv[i + 1], strerror(failed));
        return 127;
    }
    int status;
    struct rusage usage;
    if (wait4(pid, &status, 0, &usage) < 0) {
        return 70;
    }
    double seconds = now() - start;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    (void)printf("{\"status\": %d, \"seconds\": %.6f, \"cpu\": %.6f, \"maxrss_kb\": %ld}\n", code,
                 seconds, cpu, usage.ru_maxrss);
    return 0;
}

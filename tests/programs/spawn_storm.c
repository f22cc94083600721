/* SPDX-License-Identifier: MIT
 *
 * spawn_storm RUNNERS [setsid]: says "ready" and becomes RUNNERS chains of processes that fork and
 * exit without end, so that no pid lives for long; with `setsid` each in a session of its own. Each
 * chain ends by itself after 20 s, should nobody manage to kill it.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static time_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void run(int own_session, time_t end)
{
    while (now() < end) {
        if (own_session) {
            (void)setsid();
        }
        if (fork() != 0) {
            _exit(0);
        }
        /* A pid lives for two milliseconds: too short to be caught one by one, long enough that the
         * dead do not fill the table of processes of the whole machine before they are reaped. */
        (void)nanosleep(&(struct timespec) { .tv_nsec = 2000000 }, NULL);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    long runners = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
    int own_session = argc > 2 && strcmp(argv[2], "setsid") == 0;
    time_t end = now() + 20;
    for (long i = 0; i < runners; i++) {
        if (fork() == 0) {
            run(own_session, end);
        }
    }
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;) {
        (void)pause();
    }
}

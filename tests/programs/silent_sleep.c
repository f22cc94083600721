/* SPDX-License-Identifier: MIT
 *
 * silent_sleep [SECONDS]: says nothing and uses no CPU; for ever without an argument.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        for (;;) {
            (void)pause();
        }
    }
    double seconds = strtod(argv[1], NULL);
    struct timespec t = { .tv_sec = (time_t)seconds,
                          .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
    (void)nanosleep(&t, NULL);
    return 0;
}

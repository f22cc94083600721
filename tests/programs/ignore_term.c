/* SPDX-License-Identifier: MIT
 *
 * Ignores SIGTERM, SIGINT and SIGHUP, says "ready" and waits for ever.
 */
#include <signal.h>
#include <unistd.h>

int main(void)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void)sigaction(SIGTERM, &ignore, NULL);
    (void)sigaction(SIGINT, &ignore, NULL);
    (void)sigaction(SIGHUP, &ignore, NULL);
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;) {
        (void)pause();
    }
}

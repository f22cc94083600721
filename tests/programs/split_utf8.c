/* SPDX-License-Identifier: MIT
 *
 * Writes a text of two-, three- and four-byte characters one byte per write.
 */
#include <time.h>
#include <unistd.h>

int main(void)
{
    static const char text[] = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa7\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        if (write(STDOUT_FILENO, text + i, 1) != 1) {
            return 1;
        }
        (void)nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    }
    return 0;
}

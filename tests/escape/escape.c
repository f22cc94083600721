/* SPDX-License-Identifier: MIT
 *
 * escape ATTEMPT [ARG…]: tries one way out of a sandbox from inside. Exit code 0: held, 10:
 * escaped, 77: cannot be tried here. `escape list` prints the attempts.
 *
 * The test copies this static program into the workspace and runs each attempt twice: without a
 * sandbox, where it must get out (else it proves nothing), and with one, where it must not.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "escape.h"

__attribute__((format(printf, 3, 0))) static enum verdict say(enum verdict v, const char *word,
                                                              const char *fmt, va_list ap)
{
    (void)printf("%s: ", word);
    (void)vprintf(fmt, ap);
    (void)printf("\n");
    (void)fflush(stdout);
    return v;
}

enum verdict held(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum verdict v = say(HELD, "held", fmt, ap);
    va_end(ap);
    return v;
}

enum verdict held_errno(const char *what)
{
    return held("%s: %s", what, strerror(errno));
}

enum verdict escaped(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum verdict v = say(ESCAPED, "escaped", fmt, ap);
    va_end(ap);
    return v;
}

enum verdict not_applicable(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum verdict v = say(NOT_APPLICABLE, "not applicable", fmt, ap);
    va_end(ap);
    return v;
}

static const struct attempt *const groups[] = {
    file_attempts, process_attempts, kernel_attempts, network_attempts, resource_attempts,
};

static void list(void)
{
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        for (const struct attempt *a = groups[g]; a->name != NULL; a++) {
            (void)printf("%s %s\n", a->name, a->args);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "list") == 0) {
        list();
        return argc < 2 ? WRONG_CALL : 0;
    }
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        for (const struct attempt *a = groups[g]; a->name != NULL; a++) {
            if (strcmp(a->name, argv[1]) == 0 && argc - 2 >= a->n_args) {
                return a->run(argv + 2);
            }
        }
    }
    (void)fprintf(stderr, "escape: no attempt '%s' with %d arguments\n", argv[1], argc - 2);
    return WRONG_CALL;
}

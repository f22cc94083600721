/* SPDX-License-Identifier: MIT
 *
 * One attempt to get out of the sandbox: does it, looks at what came of it, says so in one line.
 *
 * An attempt that needs something the kernel does not have at all is NOT_APPLICABLE, with the
 * reason: a test that could not have failed proves nothing.
 */
#pragma once

enum verdict {
    HELD = 0,
    ESCAPED = 10,
    WRONG_CALL = 64,
    NOT_APPLICABLE = 77,
};

struct attempt {
    const char *name;
    const char *args; /* for the usage text */
    int n_args;
    enum verdict (*run)(char **args);
};

/* All print "held: …", "escaped: …" or "not applicable: …" and return the verdict. `held_errno`
 * names errno. */
enum verdict held(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
enum verdict held_errno(const char *what);
enum verdict escaped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
enum verdict not_applicable(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Ends with an entry without a name. */
extern const struct attempt file_attempts[];
extern const struct attempt process_attempts[];
extern const struct attempt kernel_attempts[];
extern const struct attempt network_attempts[];
extern const struct attempt resource_attempts[];

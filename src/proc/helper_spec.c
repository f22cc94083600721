/* SPDX-License-Identifier: MIT
 *
 * Programs as tasks name them, on the way to a helper.
 */
#include "proc/helper_spec.h"

#include <string.h>

#include "base/json.h"
#include "data/shape.h"
#include "proc/helper_program.h"

int helper_spec_check(const char *program, struct err *e)
{
    if (strncmp(program, "/proc/", strlen("/proc/")) == 0) {
        return ERR(
            e, ERR_CONFIG,
            "command: '%s' is a different file for each process: name the program by its own path",
            program);
    }
    return 0;
}

int helper_spec_read(struct arena *a, const struct json *definition, nsec otherwise,
                     struct helper_spec *ret, struct err *e)
{
    const struct json *command = json_get(definition, "command");
    size_t n = json_is(command, JSON_ARRAY) ? json_len(command) : 0;
    if (n == 0 || json_len(json_item(command, 0)) == 0) {
        return ERR(e, ERR_CONFIG, "'command' must be a list: a program and its arguments");
    }
    const char **argv = arena_array(a, n + 1, sizeof *argv);
    for (size_t i = 0; i < n; i++) {
        argv[i] = json_cstring(json_item(command, i), NULL);
        if (argv[i] == NULL) {
            return ERR(e, ERR_CONFIG, "item %zu of 'command' must be a string without NUL", i + 1);
        }
        argv[i] = arena_dup(a, str_of(argv[i]));
    }
    if (helper_spec_check(argv[0], e) < 0) {
        return -(int)ERR_CONFIG;
    }
    nsec timeout = shape_duration(json_get(definition, "timeout"), otherwise);
    if (timeout <= 0) {
        return ERR(e, ERR_CONFIG, "'timeout' must be greater than 0");
    }
    *ret = (struct helper_spec) {
        .argv = argv,
        .timeout = timeout,
        .outside = !json_bool(json_get(definition, "sandbox"), true),
    };
    return 0;
}

struct helper *helper_spec_start(const struct helper_spec *s, const struct helper_host *host,
                                 struct str input,
                                 void (*done)(void *arg, const struct helper_result *r), void *arg,
                                 struct err *e)
{
    struct helper *x = NULL;
    if (host == NULL) {
        (void)ERR(e, ERR_UNAVAILABLE, "there is nothing that could run a program");
        return NULL;
    }
    int r = helper_start(&(struct helper_opts) { .host = host,
                                                 .argv = s->argv,
                                                 .outside = s->outside,
                                                 .cwd = s->outside ? host->judge_cwd : NULL,
                                                 .input = input,
                                                 .max_output = s->max_output,
                                                 .timeout = s->timeout,
                                                 .done = done,
                                                 .arg = arg },
                         &x, e);
    return r < 0 ? NULL : x;
}

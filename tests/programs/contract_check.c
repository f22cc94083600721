/* SPDX-License-Identifier: MIT
 *
 * contract_check ADAPTER DIR [SECRET]…: what ack/contract_check.h finds, as JSON.
 * $CONTRACT_TIMEOUT: seconds for each run; $CONTRACT_ARGS: more arguments of each, in words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ack/contract_check.h"

enum { ARGS_MAX = 32 };

static const char *const *words(struct arena *a, const char *text)
{
    const char **list = arena_array(a, ARGS_MAX + 1, sizeof *list);
    struct str rest = text == NULL ? STR_EMPTY : str_of(text);
    for (size_t n = 0; n < ARGS_MAX && rest.len > 0; n++) {
        list[n] = arena_dup(a, str_split(&rest, ' '));
    }
    return list;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct contract_report r;
    struct err e;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const char *seconds = getenv("CONTRACT_TIMEOUT");
    if (argc < 3) {
        return 64;
    }
    struct contract_opts o = {
        .adapter = argv[1],
        .dir = argv[2],
        .environ = (const char *const *)environ,
        .args = words(a, getenv("CONTRACT_ARGS")),
        .secrets = (const char *const *)argv + 3,
        .timeout = seconds == NULL ? 0 : strtol(seconds, NULL, 10) * NSEC_PER_SEC,
    };
    int rc = contract_check(a, &o, &r, &e);
    if (rc < 0 || json_write(contract_report_json(a, &r), JSON_PRETTY, &text, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        (void)arena_free(a);
        return 70;
    }
    (void)fwrite(text.ptr, 1, text.len, stdout);
    (void)arena_free(a);
    return r.passed ? 0 : 1;
}

/* SPDX-License-Identifier: MIT
 *
 * A file of scenarios is read or refused. What is read is whole: it has a name, a capability, a run
 * and a check, and its checks can be looked at on an empty record.
 */
#include <stdint.h>
#include <stdlib.h>

#include "ack/check.h"
#include "ack/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t look(struct arena *a, const struct json *checks)
{
    struct findings f = { .text = BUF_INIT(1 << 16) };
    const struct evidence nothing = { .dir = "/nonexistent" };
    const char *const names[] = { "first" };
    struct check_scene scene = { .arena = a,
                                 .adapter = "fuzz",
                                 .run = &nothing,
                                 .runs = &nothing,
                                 .names = names,
                                 .runs_len = 1,
                                 .outside = "/nonexistent",
                                 .findings = &f };
    checks_apply(checks, &scene);
    for (size_t i = 0, lines = 0; i < f.text.len; i++) {
        lines += f.text.ptr[i] == '\n';
        must(lines < f.len); /* a line each */
    }
    buf_done(&f.text);
    return json_len(checks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct scenario_list list = { 0 };
    struct err e = { 0 };
    if (scenario_parse(a, str_n(data, size), "fuzz", &list, &e) < 0) {
        must(e.msg[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < list.len; i++) {
        const struct scenario *s = list.items[i];
        must(s->name != NULL);
        must(s->capabilities[0] != NULL && s->runs_len > 0 && s->task != NULL);
        must(s->tier >= TIER_BASIC && s->tier <= TIER_SPECIFIC);
        must(scenario_find(&list, s->name) == s);
        size_t checks = look(a, s->expect) + look(a, s->expect_script);
        for (size_t k = 0; k < s->runs_len; k++) {
            must(s->runs[k].copies > 0 && s->runs[k].signal.count > 0);
            checks += look(a, s->runs[k].expect) + look(a, s->runs[k].expect_script);
        }
        must(checks > 0);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Any texts as the files of a skill package: SKILL.md, then, each after a line "%%", the output
 * schema, the input schema, and an output. A skill that opens is patched (twice is once), its
 * contract compiles, and its output is searched for files.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/schema.h"
#include "skill/package.h"
#include "skill/skill.h"
#include "skill/skill_artifact.h"
#include "skill/skill_contract.h"
#include "skill/skill_input.h"
#include "skill/skill_patch.h"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static struct str next_part(struct str *rest)
{
    const struct str line = STR("\n%%\n");
    size_t at = str_find(*rest, line);
    struct str part = str_slice(*rest, 0, at);
    *rest = str_slice(*rest, at + line.len, rest->len);
    return part;
}

static void check_patch(const struct skill *s, enum skill_mode mode, struct str text)
{
    CLEANUP(buf) struct buf once = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf twice = BUF_INIT(BUF_TEXT);
    struct skill_patch p = { .mode = mode };
    struct err e = { 0 };
    if (skill_patch_write(s, &p, text, &once, &e) < 0) {
        must(e.code == ERR_CONFIG);
        return;
    }
    must(str_starts(buf_str(&once), text));
    must(skill_patch_write(s, &p, buf_str(&once), &twice, NULL) == 0);
    must(str_eq(buf_str(&once), buf_str(&twice)));
}

/* An answer that the package's schema takes is taken by the contract, too. */
static void check_contract(const struct skill *s, enum skill_mode mode, const struct json *output)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(schema) struct schema *contract = NULL;
    if (schema_compile(skill_contract(a, s, mode), NULL, &contract, NULL) < 0) {
        return;
    }
    struct schema_limits limits = { .max_steps = 100000 };
    if (output != NULL && json_is(output, JSON_OBJECT)) {
        struct skill_answer answer;
        skill_answer_read(a, s, output, &answer);
        (void)!schema_check(contract, output, &limits, NULL);
    }
}

static void check_artifacts(const struct skill *s, const struct json *output)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct skill_artifact_list list = { 0 };
    struct skill_root root = { .fd = -1, .path = "/run" };
    if (skill_artifacts(a, s, output, &root, &list, NULL) == 0) {
        for (size_t i = 0; i < list.len; i++) {
            must(list.items[i].fault != NULL); /* there is no such directory */
        }
    }
}

static void check_skill(struct skill *s, struct str text, const struct json *output)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct skill_request q = { .input = output };
    struct skill_values values;
    (void)!skill_bind(a, s, &q, &values, NULL);
    check_patch(s, SKILL_AUTO, text);
    check_patch(s, SKILL_INTERACTIVE, text);
    if (s->manifest != NULL) {
        check_contract(s, SKILL_AUTO, output);
        check_contract(s, SKILL_INTERACTIVE, output);
        check_artifacts(s, output);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(skill) struct skill *s = NULL;
    struct str rest = str_n(data, size);
    struct str text = next_part(&rest);
    struct str schema = next_part(&rest);
    struct str input = next_part(&rest);
    struct json *output = NULL;
    struct json_limits limits = { .max_values = 1000 };
    struct err e = { 0 };
    struct package *p = package_of_file(a, STR("SKILL.md"), text);
    if (schema.len > 0) {
        p = package_with(a, p, STR("assets/runner.json"),
                         STR("{\"id\": \"x\", \"execution_modes\": [\"auto\"]}"));
        p = package_with(a, p, STR("assets/output.schema.json"), schema);
    }
    if (input.len > 0) {
        p = package_with(a, p, STR("assets/input.schema.json"), input);
    }
    if (skill_open_package(p, "x", &s, &e) < 0) {
        must(e.code == ERR_CONFIG && strncmp(e.msg, "x/", 2) == 0);
        return 0;
    }
    if (json_parse(a, rest, &limits, &output, NULL) < 0) {
        output = NULL;
    }
    check_skill(s, text, output);
    return 0;
}

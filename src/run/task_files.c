/* SPDX-License-Identifier: MIT
 *
 * Files that a task brings for the harness; see task_files.h.
 */
#include "run/task_files.h"

#include <fcntl.h>

#include "base/file.h"
#include "run/run_priv.h"

enum { FILE_MAX = 1 << 20 /* bytes, of one file and of all instructions together */ };

static int read_file(const char *path, struct buf *out, struct err *e)
{
    int r = file_read(AT_FDCWD, path, FILE_MAX, out, e);
    if (r == -ERR_LIMIT) {
        e->code = ERR_INPUT;
    }
    return r;
}

/* All files, with an empty line between two of them. */
static int join_instructions(struct run *run, struct str *ret, struct err *e)
{
    const struct json *list = run->plan->settings.instructions;
    CLEANUP(buf) struct buf all = BUF_INIT(FILE_MAX);
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
        r = read_file(json_cstring(json_item(list, i), ""), &text, e);
        struct str trimmed = str_trim(buf_str(&text));
        r = r < 0 ? r : buf_printf(&all, e, "%s%.*s\n", i > 0 ? "\n" : "", STR_ARG(trimmed));
    }
    *ret = arena_str(run->arena, buf_str(&all));
    return r < 0 ? err_wrap(e, "instructions") : 0;
}

static int install_agents(struct run *run, struct err *e)
{
    const struct json *list = run->plan->settings.agents;
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
        struct str path = json_str(json_item(list, i), STR_EMPTY);
        r = read_file(path.ptr, &text, e);
        const char *to = arena_printf(run->arena, "%s/%.*s", run->plan->settings.profile->agents,
                                      STR_ARG(path_base(path)));
        r = r < 0 ? r : home_write(run, to, buf_str(&text), e);
    }
    return r < 0 ? err_wrap(e, "agents") : 0;
}

int task_files_install(struct run *run, struct err *e)
{
    const char *file = run->plan->settings.profile->instructions;
    struct str text = STR_EMPTY;
    int r = join_instructions(run, &text, e);
    if (r == 0 && file != NULL && text.len > 0) {
        r = home_append(run, file, text, e);
    }
    run->instructions = file == NULL ? text : STR_EMPTY;
    return r < 0 ? r : install_agents(run, e);
}

struct str task_files_prompt(struct run *run, struct str prompt)
{
    return run->instructions.len == 0
               ? prompt
               : str_of(arena_printf(run->arena, "%.*s\n%.*s", STR_ARG(run->instructions),
                                     STR_ARG(prompt)));
}

/* SPDX-License-Identifier: MIT
 *
 * Making the copy; see linger.h.
 */
#include "ack/hang_fixture.h"

#include <fcntl.h>
#include <limits.h>

#include "ack/kit_priv.h"
#include "base/buf.h"
#include "base/file.h"
#include "proc/which.h"

#define SHELL "/bin/sh"

static const char hang_fixture_script[] = "\"$@\"; exec sleep 86400";

/* The first of the names that is there, by its whole path. */
static int find_program(struct arena *a, const struct scenario_run_opts *o,
                        const struct json *names, const char **ret, struct err *e)
{
    const char *path = kit_variable(o->environ, "PATH");
    char program[PATH_MAX];
    int r = ERR(e, ERR_CONFIG, "adapter '%s' starts no program that could keep running",
                o->adapter_name);
    for (size_t i = 0; r < 0 && i < json_len(names); i++) {
        r = which_find(json_cstring(json_item(names, i), ""), path, NULL, program, e);
    }
    *ret = r < 0 ? NULL : arena_dup(a, str_of(program));
    return r;
}

/* The shell's words, the program, and those of its arguments that come after its name. */
static struct json *wrap(struct arena *a, const char *shell, const char *program,
                         const struct json *words)
{
    const char *const before[] = { shell, "-c", hang_fixture_script, "sh", program };
    struct json *list = json_array(a);
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        json_push(a, list, json_cstr(a, before[i]));
    }
    for (size_t i = 1; i < json_len(words); i++) {
        json_push(a, list, json_copy(a, json_item(words, i)));
    }
    return list;
}

static int write_profile(struct arena *a, const struct scenario_run_opts *o, const char *program,
                         const char *dir, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *doc = json_copy(a, o->adapter->doc);
    struct json *shell = json_array(a);
    json_push(a, shell, json_cstr(a, SHELL));
    json_setc(a, doc, "binary", shell);
    json_setc(a, doc, "argv", wrap(a, "{binary}", program, json_get(doc, "argv")));
    int r = json_write(doc, JSON_PRETTY, &text, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, dir, 0700, e);
    const char *path = arena_printf(a, "%s/%s.yaml", dir, o->adapter->name);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, path, buf_str(&text), 0600, e);
}

int hang_fixture_make(struct arena *a, const struct scenario_run_opts *o, const char *dir,
                      const char *home, struct hang_fixture *ret, struct err *e)
{
    const char *program;
    *ret = (struct hang_fixture) { 0 };
    if (o->adapter->image != NULL) {
        return ERR(e, ERR_CONFIG, "adapter '%s' is an image: no shell can start what is in it",
                   o->adapter_name);
    }
    int r = find_program(a, o, o->command != NULL ? o->command : o->adapter->binary, &program, e);
    if (r < 0) {
        return r;
    }
    toolchain_program(&ret->reach, a, program, home);
    if (o->command != NULL) {
        ret->command = wrap(a, SHELL, program, o->command);
        return 0;
    }
    ret->adapter_dir = arena_printf(a, "%s/profiles", dir);
    return write_profile(a, o, program, ret->adapter_dir, e);
}

/* SPDX-License-Identifier: MIT
 *
 * cinch-tools; see tools/builtin.h.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "tools/builtin.h"

void builtin_fail(struct builtin_answer *ret, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ret->failed = true;
    buf_reset(&ret->text);
    (void)!buf_vprintf(&ret->text, NULL, fmt, ap);
    va_end(ap);
}

builtin_function *builtin_find(const char *name)
{
    static const struct {
        const char *name;
        builtin_function *function;
    } table[] = {
        { "shell", builtin_shell }, { "read", builtin_read }, { "write", builtin_write },
        { "edit", builtin_edit },   { "list", builtin_list }, { "search", builtin_search },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(name, table[i].name) == 0) {
            return table[i].function;
        }
    }
    return NULL;
}

static int print_answer(struct arena *a, const struct builtin_answer *answer)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *o = json_object(a);
    json_setc(a, o, "message", json_string(a, buf_str(&answer->text)));
    json_setc(a, o, "success", json_boolean(a, !answer->failed));
    bool ok = json_write(o, JSON_COMPACT, &out, NULL) == 0 && buf_append_c(&out, '\n', NULL) == 0 &&
              file_write_all(STDOUT_FILENO, buf_str(&out), NULL) == 0;
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf in = BUF_INIT(BUF_TEXT);
    struct builtin_answer answer = { .text = BUF_INIT(BUF_TEXT) };
    struct json *arguments = NULL;
    struct err e;
    builtin_function *function = argc == 2 ? builtin_find(argv[1]) : NULL;
    if (function == NULL) {
        return 64; /* started by cinch only; see tools/builtin.h */
    }
    if (file_read_fd(STDIN_FILENO, "the arguments", BUF_TEXT, &in, &e) < 0 ||
        json_parse(a, buf_str(&in), NULL, &arguments, &e) < 0) {
        builtin_fail(&answer, "the arguments cannot be read: %s.", e.msg);
    } else {
        function(arguments, &answer);
    }
    int r = print_answer(a, &answer);
    buf_done(&answer.text);
    return r;
}

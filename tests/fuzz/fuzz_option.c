/* SPDX-License-Identifier: MIT
 *
 * Command lines out of any bytes: arguments are separated by newlines. Whatever parses, all getters
 * must answer; whatever does not, must be a usage error with a message.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/command.h"
#include "cli/text.h"

static const char *const words[] = { "text", "json", "quiet", NULL };

static const struct option options[] = {
    { "timeout", 't', OPTION_DURATION, .value = "TIME", .help = "h", .flags = OPTION_POSITIVE },
    { "count", 'n', OPTION_INT, .value = "N", .help = "h", .min = 1, .max = 99 },
    { "prompt", 'p', OPTION_PATH, .value = "FILE", .help = "h" },
    { "tag", 0, OPTION_STRING, .value = "TAG", .help = "h", .flags = OPTION_REPEAT },
    { "shape", 's', OPTION_ENUM, .words = words, .help = "h" },
    { "env", 'e', OPTION_PAIR, .value = "NAME[=VALUE]", .help = "h",
      .flags = OPTION_REPEAT | OPTION_BARE },
    { "tools", 0, OPTION_FLAG, .help = "h", .flags = OPTION_NEGATABLE },
    { 0 },
};

static const struct positional positionals[] = { { "TASK", "h", .optional = true }, { 0 } };

enum { ARGS_MAX = 64 };

static int split(struct arena *a, struct str text, const char **argv)
{
    int argc = 0;
    while (text.ptr != NULL && argc < ARGS_MAX) {
        struct str word = str_split(&text, '\n');
        argv[argc++] = arena_dup(a, word); /* ends at a NUL in it, as the kernel would */
    }
    argv[argc] = NULL;
    return argc;
}

static void look(const struct options *o)
{
    size_t total = 0;
    if (options_given(o, "timeout") && options_duration(o, "timeout", 0) <= 0) {
        abort();
    }
    if (options_given(o, "count") &&
        (options_int(o, "count", 0) < 1 || options_int(o, "count", 0) > 99)) {
        abort();
    }
    for (const char *const *p = options_list(o, "env"); *p != NULL; p++) {
        struct str name;
        struct str value;
        (void)option_pair(*p, &name, &value);
        total += name.len;
    }
    for (const char *const *p = options_list(o, "tag"); *p != NULL; p++) {
        total += strlen(*p);
    }
    for (size_t i = 0; i < options_arg_count(o); i++) {
        total += strlen(options_arg(o, i));
    }
    for (const char *const *p = options_rest(o); p != NULL && *p != NULL; p++) {
        total += strlen(*p);
    }
    total += strlen(options_string(o, "prompt", "")) + strlen(options_string(o, "shape", ""));
    (void)options_flag(o, "tools", total > 0);
    (void)options_count(o, "verbose");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    const char *argv[ARGS_MAX + 1];
    int argc = split(a, str_n(data + 1, size - 1), argv);
    struct option_spec spec = {
        .options = options,
        .globals = command_globals(),
        .positionals = positionals,
        .rest = (data[0] & 1) != 0 ? "COMMAND..." : NULL,
        .stop_early = (data[0] & 2) != 0,
    };
    struct options *o = NULL;
    struct err e = { 0 };
    int r = option_parse(&spec, a, argc, argv, &o, &e);
    if (r == 0) {
        look(o);
    } else if (r != -(int)ERR_USAGE || e.msg[0] == '\0') {
        abort();
    }
    CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
    text_clean(&clean, str_of(e.msg), TEXT_LINE);
    return 0;
}

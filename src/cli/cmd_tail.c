/* SPDX-License-Identifier: MIT
 *
 * cinch tail: what an agent does, one line per message and tool call, while it does it.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/run_name.h"
#include "cli/text.h"
#include "record/rundir.h"
#include "record/state.h"

enum {
    LINES_DEFAULT = 10,
    LINES_MAX = 10000,
    PIECE = 64 << 10,
    LINE_MAX_BYTES = 64 << 20, /* of transcript.jsonl */
};
/* How often a run that goes on is looked at. */
#define LOOK_EVERY (200 * NSEC_PER_MS)

static const struct option options[] = {
    { "follow", 'f', OPTION_FLAG, .help = "go on until the run has ended" },
    { "lines", 'n', OPTION_INT, .value = "N", .min = 0, .max = LINES_MAX, .shown = "10",
      .help = "begin with the last N entries" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN", "a run: path, last (default), or part of an id", .optional = true,
      .complete = COMPLETE_DIRECTORY },
    { 0 },
};

struct tail {
    struct cli *cli;
    struct buf line;              /* the part of a line that is there */
    const char *shown[LINES_MAX]; /* ring of the first reading, in the arena */
    size_t count, max;
    bool follows; /* the ring is printed; lines go out at once */
};

static void print_line(struct tail *t, const char *text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_addf(&out, "%s\n", text);
    cli_print(t->cli, &out);
    (void)fflush(t->cli->out.stream);
}

/* An entry as the line that is printed; empty if it is none for people. */
static void format_entry(struct tail *t, const struct json *entry, struct buf *out)
{
    CLEANUP(buf) struct buf clean = BUF_INIT(BUF_TEXT);
    size_t width = terminal_text_width(&t->cli->out);
    struct str time = str_slice(json_str(json_get(entry, "timestamp"), STR_EMPTY), 11, 19);
    if (t->cli->format == CLI_JSON) {
        if (json_get(entry, "entry_type") != NULL) {
            (void)!json_write(entry, JSON_COMPACT, out, NULL);
        }
        return;
    }
    conversation_line(entry, width - strlen("00:00:00 "), &clean);
    if (clean.len > 0 && json_get(entry, "entry_type") != NULL) {
        text_clean(out, time, TEXT_LINE);
        buf_addf(out, " %s", clean.ptr);
    }
}

static void take_line(struct tail *t)
{
    CLEANUP(arena) struct arena *scratch = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    struct json *entry = NULL;
    if (json_parse(scratch, buf_str(&t->line), NULL, &entry, NULL) == 0) {
        format_entry(t, entry, &text);
    }
    if (text.len > 0 && t->follows) {
        print_line(t, text.ptr);
    } else if (text.len > 0 && t->max > 0) {
        t->shown[t->count++ % t->max] = arena_dup(t->cli->arena, buf_str(&text));
    }
    buf_reset(&t->line);
}

/* All that is there now. */
static int read_entries(struct tail *t, int fd, struct err *e)
{
    char piece[PIECE];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? ERR_SYS(e, "cannot read transcript.jsonl") : 0;
        }
        struct str rest = str_n(piece, (size_t)n);
        while (rest.ptr != NULL && rest.len > 0) {
            struct str part = str_split(&rest, '\n');
            buf_add(&t->line, part);
            if (rest.ptr != NULL) {
                take_line(t);
            }
        }
    }
}

static void print_ring(struct tail *t)
{
    size_t from = t->count > t->max ? t->count - t->max : 0;
    for (size_t i = from; i < t->count; i++) {
        print_line(t, t->shown[i % t->max]);
    }
    t->follows = true;
}

static bool is_running(int dir_fd)
{
    CLEANUP(arena) struct arena *scratch = arena_new();
    struct rundir dir = { .dir_fd = dir_fd, .reserve_fd = -1 };
    struct state state;
    return state_read(&state, &dir, scratch, NULL) == 0 && state.reason == REASON_NONE &&
           owner_is_alive(&state.owner);
}

static int follow(struct tail *t, int dir_fd, int fd, struct err *e)
{
    bool running = true;
    int r = 0;
    while (r == 0 && running) {
        running = is_running(dir_fd); /* asked before the last look at the file */
        r = read_entries(t, fd, e);
        if (running) {
            (void)nanosleep(&(struct timespec) { .tv_nsec = LOOK_EVERY }, NULL);
        }
    }
    return r;
}

static int run_tail(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *path;
    int r = run_name_find(cli, options_arg(opt, 0), &path, e);
    if (r < 0) {
        return r;
    }
    /* No lock is taken: a run that goes on is not disturbed. */
    CLEANUP(fd) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "cannot open run directory '%s'", path);
    }
    CLEANUP(fd)
    int fd = openat(dir_fd, "transcript.jsonl",
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "cannot open '%s/transcript.jsonl'", path);
    }
    struct tail *t = ARENA_NEW(cli->arena, struct tail);
    *t = (struct tail) { .cli = cli,
                         .line = BUF_INIT(LINE_MAX_BYTES),
                         .max = (size_t)options_int(opt, "lines", LINES_DEFAULT) };
    r = read_entries(t, fd, e);
    if (r == 0) {
        print_ring(t);
    }
    if (r == 0 && options_flag(opt, "follow", false)) {
        r = follow(t, dir_fd, fd, e);
    }
    buf_done(&t->line);
    return r;
}

static const char *const description[] = {
    "Prints the last messages and tool calls of a run, one line each. With --follow it goes on "
    "until the run has ended; the run may be in another terminal. --format json prints the entries "
    "of the transcript as they are, one per line.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch tail -f last", "watch the newest run" },
    { "cinch tail -n 3 8f2a6c01", "see what another run did last" },
    { 0 },
};

const struct command cmd_tail = {
    .name = "tail",
    .minor = true,
    .summary = "follow what a run does",
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_tail,
};

/* SPDX-License-Identifier: MIT
 *
 * cinch cancel: ends a run that is in progress, as Ctrl-C in its terminal does.
 */
#include <fcntl.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/run_name.h"
#include "cli/text.h"
#include "record/rundir.h"
#include "record/state.h"

/* How often the state is looked at while waiting. */
#define LOOK_EVERY (100 * NSEC_PER_MS)

static const struct option options[] = {
    { "wait", 0, OPTION_FLAG, .flags = OPTION_NEGATABLE, .shown = "yes",
      .help = "wait until the run has ended" },
    { 0 },
};

static const struct positional positionals[] = {
    { "RUN", "a run: path, last, or part of an id", .complete = COMPLETE_DIRECTORY },
    { 0 },
};

static int read_state(struct cli *cli, const char *path, struct state *ret, struct err *e)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct rundir dir = { .dir_fd = fd, .reserve_fd = -1 };
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "cannot open run directory '%s'", path);
    }
    return state_read(ret, &dir, cli->arena, e);
}

static int run_cancel(struct cli *cli, const struct options *opt, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const char *path;
    struct state state;
    int r = run_name_find(cli, options_arg(opt, 0), &path, e);
    r = r < 0 ? r : read_state(cli, path, &state, e);
    if (r < 0) {
        return r;
    }
    if (state.reason != REASON_NONE || !owner_is_alive(&state.owner)) {
        return ERR(e, ERR_DENIED, "the run in '%s' is not in progress", path);
    }
    if (kill(state.owner.pid, SIGINT) != 0) {
        return ERR_SYS_AS(e, ERR_DENIED, "cannot cancel the run in '%s' (process %d)", path,
                          (int)state.owner.pid);
    }
    while (options_flag(opt, "wait", true) && owner_is_alive(&state.owner)) {
        (void)nanosleep(&(struct timespec) { .tv_nsec = LOOK_EVERY }, NULL);
    }
    if (cli->format == CLI_TEXT) {
        buf_adds(&out, options_flag(opt, "wait", true) ? "canceled " : "canceling ");
        text_clean(&out, str_of(path), TEXT_LINE);
        buf_adds(&out, "\n");
        cli_print(cli, &out);
    }
    return 0;
}

static const char *const description[] = {
    "Ends a run that is in progress, as Ctrl-C does in its terminal: the agent is interrupted, its "
    "processes end, and the record is complete. Waits until the run has ended, unless --no-wait is "
    "given. Exits with 1 if the run is not in progress.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch cancel last", "end the newest run" },
    { 0 },
};

const struct command cmd_cancel = {
    .name = "cancel",
    .minor = true,
    .summary = "end a run that is in progress",
    .description = description,
    .examples = examples,
    .options = options,
    .positionals = positionals,
    .run = run_cancel,
};

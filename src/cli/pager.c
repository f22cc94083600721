/* SPDX-License-Identifier: MIT
 */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

extern char **environ;

static const char *pager_command(void)
{
    const char *own = getenv("CINCH_PAGER");
    const char *general = getenv("PAGER");
    const char *command = own != NULL ? own : general != NULL ? general : "less";
    return command[0] == '\0' || strcmp(command, "cat") == 0 ? NULL : command;
}

static int start_pager(const char *command, int input, pid_t *ret_pid)
{
    const char *argv[] = { "sh", "-c", command, NULL };
    posix_spawn_file_actions_t actions;
    (void)setenv("LESS", "FRX", 0);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    int r = posix_spawnp(ret_pid, "sh", &actions, NULL, (char *const *)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return r;
}

void pager_print(struct cli *cli, const struct buf *text)
{
    const char *command = cli->out.tty ? pager_command() : NULL;
    int ends[2];
    pid_t pid;
    if (command == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        cli_print(cli, text);
        return;
    }
    (void)fflush(cli->out.stream);
    int failed = start_pager(command, ends[0], &pid);
    (void)close(ends[0]);
    if (failed != 0) {
        (void)close(ends[1]);
        cli_print(cli, text);
        return;
    }
    struct sigaction before;
    (void)sigaction(SIGPIPE, &(struct sigaction) { .sa_handler = SIG_IGN }, &before);
    (void)!file_write_all(ends[1], buf_str(text), NULL); /* the reader may have quit */
    (void)close(ends[1]);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    (void)sigaction(SIGPIPE, &before, NULL);
}

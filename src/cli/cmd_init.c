/* SPDX-License-Identifier: MIT
 *
 * cinch init: a commented task file for the repository in this directory. What it can find out (how
 * the tests are run) is filled in; all else are comments to choose from.
 */
#include <fcntl.h>

#include "base/file.h"
#include "cli/command.h"

#define DEFAULT_FILE "task.yaml"

/* The first file that is there says how this repository is tested. */
static const struct {
    const char *file;
    const char *command; /* as a YAML list */
} known_tests[] = {
    { "package.json", "[npm, test]" },
    { "Cargo.toml", "[cargo, test]" },
    { "go.mod", "[go, test, ./...]" },
    { "pyproject.toml", "[python3, -m, pytest, -q]" },
    { "pytest.ini", "[python3, -m, pytest, -q]" },
    { "Makefile", "[make, test]" },
    { "GNUmakefile", "[make, test]" },
    { "test.sh", "[sh, test.sh]" },
};

static const char *find_test(void)
{
    for (size_t i = 0; i < ARRAY_LEN(known_tests); i++) {
        if (file_exists(AT_FDCWD, known_tests[i].file)) {
            return known_tests[i].command;
        }
    }
    return NULL;
}

static void write_task(struct buf *out)
{
    const char *test = find_test();
    buf_adds(
        out,
        "# A task for cinch: cinch run " DEFAULT_FILE "\n"
        "# All keys: cinch help run, docs/task.md; check this file: cinch task check " DEFAULT_FILE
        "\n"
        "\n"
        "prompt: |\n"
        "  Describe here what the agent should do.\n"
        "\n"
        "agent:\n"
        "  adapter: basic                 # the built-in agent; others: cinch adapters\n"
        "  # model: claude-sonnet-4-5     # the name selects the provider and its key\n"
        "\n"
        "# A server of your own instead of a known provider:\n"
        "# gateway: {upstream: \"http://127.0.0.1:11434/v1\"}\n"
        "\n"
        "limits:\n"
        "  timeout: 30m\n"
        "  # usd: 2                       # stop before the cost exceeds two dollars\n"
        "\n"
        "# sandbox:\n"
        "#   net: [packages.example.org]  # hosts that commands may reach; default: none\n"
        "\n");
    buf_addf(out,
             "# The task is done when this exits with 0; until then the agent is asked to "
             "continue.\n%scompletion: {command: %s}\n",
             test == NULL ? "# " : "", test == NULL ? "[make, test]" : test);
}

static int run_init(struct cli *cli, const struct options *opt, struct err *e)
{
    const char *given = options_arg(opt, 0);
    const char *path = given == NULL ? DEFAULT_FILE : given;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (file_exists(AT_FDCWD, path)) {
        return ERR(e, ERR_EXISTS, "'%s' exists already", path);
    }
    write_task(&text);
    int r = file_write_output(path, buf_str(&text), 0644, e);
    if (r < 0) {
        return r;
    }
    buf_addf(&out, "wrote %s: set the prompt and the model in it, then cinch run %s\n", path, path);
    if (cli->format == CLI_TEXT) {
        cli_print(cli, &out);
    }
    return 0;
}

static const char *const usage[] = { "[FILE]", NULL };

static const char *const description[] = {
    "Writes a task file with comments for the repository in the current directory. The command "
    "that "
    "runs its tests is filled in if a file such as package.json, Cargo.toml or Makefile shows it.",
    NULL,
};

static const struct command_example examples[] = {
    { "cinch init", "write " DEFAULT_FILE },
    { 0 },
};

static const struct positional positionals[] = {
    { .name = "FILE", .help = "the file to write (default: " DEFAULT_FILE ")", .optional = true },
    { 0 },
};

const struct command cmd_init = {
    .name = "init",
    .summary = "write a task file with comments",
    .minor = true,
    .usage = usage,
    .description = description,
    .examples = examples,
    .positionals = positionals,
    .run = run_init,
};

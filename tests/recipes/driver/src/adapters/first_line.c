/* SPDX-License-Identifier: MIT
 *
 * Worked example of a driver: a program whose first line of output is its final answer.
 */
#include "adapters/driver.h"

#include <stdlib.h>

#include "base/buf.h"

struct first_line {
    struct buf output;
};

static void *first_line_open(const struct launch_spec *spec, struct entry_sink sink)
{
    struct first_line *f = xcalloc(1, sizeof *f);
    f->output = (struct buf)BUF_INIT(BUF_TEXT);
    return f;
}

static void first_line_feed(void *self, enum agent_stream stream, struct str bytes)
{
    struct first_line *f = self;
    if (stream == AGENT_STDOUT) {
        (void)!buf_append(&f->output, bytes, NULL); /* full: the first line is there */
    }
}

static void first_line_end(void *self, struct agent_report *ret)
{
    struct first_line *f = self;
    struct str all = buf_str(&f->output);
    const char *end = all.len == 0 ? NULL : memchr(all.ptr, '\n', all.len);
    ret->text = str_slice(all, 0, end == NULL ? all.len : (size_t)(end - all.ptr));
}

static void first_line_close(void *self)
{
    struct first_line *f = self;
    buf_done(&f->output);
    free(f);
}

static const struct driver_program_ops program_ops = {
    .plan = driver_plan,
    .feed = first_line_feed,
};

const struct driver driver_first_line = {
    .name = "first-line",
    .kind = DRIVER_PIPE,
    .open = first_line_open,
    .end = first_line_end,
    .close = first_line_close,
    .program = &program_ops,
};

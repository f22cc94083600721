/* SPDX-License-Identifier: MIT
 *
 * Recovery of a directory whose files hold anything. Input: any number of files, each as one byte
 * (which of the names below), two bytes (its length) and the content; files that are not given keep
 * the content of a run that died in phase execute. Whatever comes: no crash, and a record that
 * recovery closes is whole.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "record/event_kind.h"
#include "record/recover.h"
#include "record/rundir.h"
#include "record/transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *name, *content;
} files[] = {
    { "state.json",
      "{\"schema_version\":1,\"run_id\":\"01234567-89ab-7cde-8f01-23456789abcd\",\"adapter\":\"a\","
      "\"phase\":\"execute\",\"state\":\"running\",\"reason\":null,\"pid\":999999,\"pid_start\":5,"
      "\"boot_id\":null,\"started_at\":\"2026-11-15T20:29:35.123Z\","
      "\"heartbeat\":\"2026-11-15T20:29:36.123Z\",\"ended_at\":null}" },
    { "events.jsonl",
      "{\"timestamp\":\"2026-11-15T20:29:35.123Z\",\"level\":\"INFO\",\"logger\":\"cinch.run\","
      "\"event\":\"run.phase\",\"message\":\"m\",\"context\":{\"from\":\"admit\",\"to\":"
      "\"execute\","
      "\"duration_ms\":5},\"seq\":1,\"run_id\":\"01234567-89ab-7cde-8f01-23456789abcd\"}\n{"
      "\"torn" },
    { "transcript.jsonl", "{\"event\":\"transcript.start\",\"prompt_name\":\"p\",\"adapter\":\"a\","
                          "\"timestamp\":\"2026-11-15T20:29:35.123Z\"}\n" },
    { "manifest.json", "{\"status\":\"running\"}" },
    { "metrics.json", NULL },
    { "result.json", NULL },
    { "task.json", NULL },
    { "stdout.log", "hello\n" },
    { "evidence/open-calls.jsonl", NULL },
};

static void write_file(int dir, const char *name, struct str content)
{
    CLEANUP(fd) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || file_write_all(fd, content, NULL) < 0) {
        abort();
    }
}

static void fill(int dir, struct str in)
{
    if (mkdirat(dir, "evidence", 0700) < 0) {
        abort();
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (files[i].content != NULL) {
            write_file(dir, files[i].name, str_of(files[i].content));
        }
    }
    while (in.len >= 3) {
        size_t which = (uint8_t)in.ptr[0] % ARRAY_LEN(files);
        size_t len = (uint8_t)in.ptr[1] | (size_t)(uint8_t)in.ptr[2] << 8;
        write_file(dir, files[which].name, str_slice(in, 3, 3 + len));
        in = str_slice(in, 3 + len, in.len);
    }
}

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_lines(const struct rundir *d, const char *name,
                        bool (*is_valid)(const struct json *), struct arena *a)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    must(rundir_read(d, name, BUF_TEXT, &text, NULL) == 0);
    struct str rest = buf_str(&text);
    must(rest.len == 0 || rest.ptr[rest.len - 1] == '\n');
    while (rest.len > 0) {
        struct json *line;
        must(json_parse(a, str_split(&rest, '\n'), NULL, &line, NULL) == 0 && is_valid(line));
    }
}

static void check_closed(const char *path)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(rundir) struct rundir d;
    must(rundir_open(&d, path, NULL) == 0);
    struct state state;
    must(state_read(&state, &d, a, NULL) == 0 && state.reason != REASON_NONE);
    must(rundir_read_object(&d, "manifest.json", BUF_TEXT, a) != NULL);
    must(rundir_read_object(&d, "metrics.json", BUF_TEXT, a) != NULL);
    must(rundir_read_object(&d, "result.json", BUF_TEXT, a) != NULL);
    check_lines(&d, "events.jsonl", event_is_valid, a);
    check_lines(&d, "transcript.jsonl", transcript_is_valid, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256];
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%s/cinch-fuzz-recover-%d", tmp != NULL ? tmp : "/tmp",
                   (int)getpid());
    must(file_remove_tree(AT_FDCWD, path, NULL) == 0 && mkdir(path, 0700) == 0);
    CLEANUP(fd) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(dir >= 0);
    fill(dir, str_n(data, size));
    struct recover_report report;
    must(recover_run(path, &report, NULL) == 0);
    must(report.result == RECOVER_CLOSED || report.result == RECOVER_FINISHED);
    if (report.result == RECOVER_CLOSED) {
        check_closed(path);
        must(recover_run(path, &report, NULL) == 0 && report.result == RECOVER_FINISHED);
    }
    must(file_remove_tree(AT_FDCWD, path, NULL) == 0);
    return 0;
}

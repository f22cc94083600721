/* SPDX-License-Identifier: MIT
 *
 * The files of a record as a stranger left them. The first byte says which file the bytes are, the
 * others are whole. What is read has what its readers rely on: lists and no empty places; what is
 * not is refused with the name of the file.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ack/evidence.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *name, *text;
} files[] = {
    { "manifest.json", "{}" },
    { "metrics.json", "{}" },
    { "result.json", "{}" },
    { "events.jsonl", "{\"event\":\"a\"}\n" },
    { "transcript.jsonl", "{\"event\":\"transcript.entry\"}\n" },
    { "session/after.jsonl", "{\"slices\":[]}\n" },
    { "diff.patch", "diff\n" },
};

enum { FILES = sizeof files / sizeof *files };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void put(const char *dir, const char *name, struct str text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    must(file_write_atomic(AT_FDCWD, path, text, 0600, NULL) == 0);
}

static const char *scratch(void)
{
    static char dir[64]; /* one for all inputs: removed at the end of the process */
    if (dir[0] == '\0') {
        (void)snprintf(dir, sizeof dir, "/tmp/cinch-fuzz-evidence-XXXXXX");
        must(mkdtemp(dir) != NULL);
    }
    return dir;
}

static void remove_scratch(void)
{
    must(file_remove_tree(AT_FDCWD, scratch(), NULL) == 0);
}

static void look(const struct evidence *ev)
{
    must(json_is(ev->events, JSON_ARRAY) && json_is(ev->transcript, JSON_ARRAY));
    must(ev->manifest != NULL && ev->metrics != NULL && ev->result != NULL);
    must(ev->session == NULL || json_is(ev->session, JSON_OBJECT));
    for (size_t i = 0; i < ev->events->array.len; i++) {
        must(json_item(ev->events, i) != NULL);
    }
    for (size_t i = 0; i < ev->transcript->array.len; i++) {
        must(json_is(json_item(ev->transcript, i), JSON_OBJECT));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    if (!begun) {
        begun = true;
        must(atexit(remove_scratch) == 0);
        char session[96];
        (void)snprintf(session, sizeof session, "%s/session", scratch());
        must(file_mkdirs(AT_FDCWD, session, 0700, NULL) == 0);
    }
    if (size == 0) {
        return 0;
    }
    size_t which = data[0] % FILES;
    for (size_t i = 0; i < FILES; i++) {
        put(scratch(), files[i].name,
            i == which ? str_n(data + 1, size - 1) : str_of(files[i].text));
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct evidence ev;
    struct err e = { 0 };
    if (evidence_load(a, scratch(), &ev, &e) == 0) {
        look(&ev);
    } else {
        must(strstr(e.msg, files[which].name) != NULL);
    }
    return 0;
}

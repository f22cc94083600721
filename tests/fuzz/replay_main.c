/* SPDX-License-Identifier: MIT
 *
 * main() for a fuzz target without libFuzzer: feeds it every file named on the command line, and
 * every file below a directory named there. Each input is copied into a block of exactly its size,
 * so that a sanitizer build sees a read past the end. Replaying nothing is a failure: a corpus that
 * got lost must not look like a passed test.
 */
#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* Corpus files are kept small; a bigger one is a mistake, not an input. */
enum { INPUT_MAX = 16 * 1024 * 1024 };

static uint8_t *read_input(const char *path, size_t *ret_size)
{
    FILE *f = fopen(path, "rbe");
    if (f == NULL) {
        return NULL;
    }
    uint8_t *data = NULL;
    size_t size = 0;
    size_t room = 0;
    for (;;) {
        if (size == room) {
            room = room == 0 ? 4096 : room * 2;
            uint8_t *grown = room > INPUT_MAX ? NULL : realloc(data, room);
            if (grown == NULL) {
                errno = EFBIG;
                break;
            }
            data = grown;
        }
        size_t n = fread(data + size, 1, room - size, f);
        if (n == 0 && ferror(f) == 0) {
            /* malloc(0) may be NULL, and NULL is the answer for failure. */
            uint8_t *exact = malloc(size == 0 ? 1 : size);
            if (exact != NULL) {
                memcpy(exact, data, size);
            }
            free(data);
            (void)fclose(f);
            *ret_size = size;
            return exact;
        }
        if (n == 0) {
            break;
        }
        size += n;
    }
    free(data);
    (void)fclose(f);
    return NULL;
}

static int replay_file(const char *path)
{
    size_t size = 0;
    uint8_t *data = read_input(path, &size);
    if (data == NULL) {
        (void)fprintf(stderr, "cannot read '%s': %s\n", path, strerror(errno));
        return -1;
    }
    /* Named before the call: after a crash the last line is the culprit. */
    (void)fprintf(stderr, "replay %s (%zu bytes)\n", path, size);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

/* Returns the number of inputs, or -1. */
static long replay_tree(char *const *paths)
{
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (walk == NULL) {
        return -1;
    }
    long count = 0;
    for (;;) {
        FTSENT *entry = fts_read(walk);
        if (entry == NULL) {
            break;
        }
        if (entry->fts_info == FTS_F) {
            if (replay_file(entry->fts_path) != 0) {
                count = -1;
                break;
            }
            count++;
        } else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP) {
            (void)fprintf(stderr, "cannot read '%s': %s\n", entry->fts_path,
                          strerror(entry->fts_errno));
            count = -1;
            break;
        }
    }
    (void)fts_close(walk);
    return count;
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize != NULL) {
        (void)LLVMFuzzerInitialize(&argc, &argv);
    }
    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s FILE-OR-DIRECTORY...\n", argv[0]);
        return 2;
    }
    long count = replay_tree(argv + 1);
    if (count <= 0) {
        (void)fprintf(stderr, "%s: no input was replayed\n", argv[0]);
        return 1;
    }
    (void)printf("replayed %ld inputs\n", count);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Our TOML behind a pipe, for a test in another language. Reads requests
 * "<verb> <bytes>\n<payload>" from standard input until it ends, and answers each with
 * "ok <bytes>\n<payload>" or "no <bytes>\n<message>":
 *
 *   decode  TOML                        the document as tagged JSON
 *   plain   TOML                        the document as plain JSON
 *   encode  tagged JSON                 TOML
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/toml.h"

enum { PAYLOAD_MAX = 16 << 20 };

static int decode(struct arena *a, struct str in, bool tagged, struct buf *out, struct err *e)
{
    struct json *v = NULL;
    int r = toml_parse(a, in, &(struct toml_opts) { .name = "x", .tagged = tagged }, &v, e);
    return r < 0 ? r : json_write(v, JSON_COMPACT, out, e);
}

static int encode(struct arena *a, struct str in, struct buf *out, struct err *e)
{
    struct json *v = NULL;
    int r = json_parse(a, in, NULL, &v, e);
    return r < 0 ? r : toml_write(v, &(struct toml_opts) { .tagged = true }, out, e);
}

static int serve(const char *verb, struct arena *a, struct str in, struct buf *out, struct err *e)
{
    if (strcmp(verb, "decode") == 0 || strcmp(verb, "plain") == 0) {
        return decode(a, in, verb[0] == 'd', out, e);
    }
    return encode(a, in, out, e);
}

static void answer(const char *verb, struct str in)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    bool good = serve(verb, a, in, &out, &e) == 0;
    struct str payload = good ? buf_str(&out) : str_of(e.msg);
    printf("%s %zu\n", good ? "ok" : "no", payload.len);
    (void)fwrite(payload.ptr == NULL ? "" : payload.ptr, 1, payload.len, stdout);
    (void)fflush(stdout);
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char verb[16];
        size_t len = 0;
        if (sscanf(line, "%15s %zu", verb, &len) != 2 || len > PAYLOAD_MAX) {
            return EXIT_FAILURE;
        }
        /* Exactly the size, so that a sanitizer sees a read beyond the end. */
        char *payload = xmalloc(len == 0 ? 1 : len);
        if (fread(payload, 1, len, stdin) != len) {
            return EXIT_FAILURE;
        }
        answer(verb, str_n(payload, len));
        free(payload);
    }
    return EXIT_SUCCESS;
}

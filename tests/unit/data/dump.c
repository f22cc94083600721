/* SPDX-License-Identifier: MIT
 *
 * Reads JSON or YAML values from stdin and prints what base made of them, for comparison with a
 * foreign reader (oracle_*.py). Values are separated by NUL bytes; each answer is one line: compact
 * JSON, or "error: " and the message.
 *
 *   printf '[1]\0{"a":1}' | dump json
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "data/yaml.h"

static int dump(bool yaml, struct str text)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *v;
    struct err e = { 0 };
    int r = yaml ? yaml_parse(a, text, "stdin", NULL, &v, &e) : json_parse(a, text, NULL, &v, &e);
    r = r == 0 ? json_write(v, JSON_COMPACT, &out, &e) : r;
    return r == 0 ? printf("%s\n", out.ptr) : printf("error: %s\n", e.msg);
}

int main(int argc, char **argv)
{
    if (argc != 2 || (strcmp(argv[1], "json") != 0 && strcmp(argv[1], "yaml") != 0)) {
        (void)fprintf(stderr, "usage: dump json|yaml <values separated by NUL\n");
        return 64;
    }
    CLEANUP(buf) struct buf text = BUF_INIT((size_t)256 << 20);
    struct err e = { 0 };
    if (file_read(AT_FDCWD, "/dev/stdin", text.max, &text, &e) < 0) {
        (void)fprintf(stderr, "dump: %s\n", e.msg);
        return 1;
    }
    struct str rest = buf_str(&text);
    while (rest.ptr != NULL) {
        (void)dump(strcmp(argv[1], "yaml") == 0, str_split(&rest, '\0'));
    }
    return 0;
}

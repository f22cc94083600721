/* SPDX-License-Identifier: MIT
 *
 * Lines come back as they went in, frame by frame; damaged, torn and bloated data is told apart and
 * costs no more memory than a line may.
 */
#include "replay/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"

static void pack(struct buf *out, struct str text)
{
    CLEANUP(packer) struct packer *p = packer_new();
    assert_int_equal(packer_add(p, text, out, NULL), 0);
    assert_int_equal(packer_end(p, out, NULL), 0);
}

static void lines_come_back(void **state)
{
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    CLEANUP(packer) struct packer *p = packer_new();
    for (int f = 0; f < 3; f++) { /* one packer makes many frames */
        for (int i = 0; i < 1000; i++) {
            CLEANUP(buf) struct buf line = BUF_INIT(256);
            buf_addf(&line, "frame %d line %d\n", f, i);
            assert_int_equal(packer_add(p, buf_str(&line), &file, NULL), 0);
        }
        assert_int_equal(packer_end(p, &file, NULL), 0);
    }
    struct str rest = buf_str(&file);
    struct str frame;
    int frames = 0;
    while (pack_frame(&rest, &frame, NULL) == 1) {
        CLEANUP(unpacker) struct unpacker *u = unpacker_new(frame, 1 << 20);
        struct str line;
        char want[64];
        int n = 0;
        while (unpacker_line(u, &line, NULL) == 1) {
            (void)snprintf(want, sizeof want, "frame %d line %d", frames, n++);
            assert_true(str_eqc(line, want));
        }
        assert_int_equal(n, 1000);
        assert_int_equal(unpacker_line(u, &line, NULL), 0);
        frames++;
    }
    assert_int_equal(frames, 3);
    assert_int_equal(rest.len, 0);
}

static void a_long_line_and_an_empty_one(void **state)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    for (unsigned i = 0; i < 400000; i++) {
        buf_addf(&text, "%u,", i * 2654435761u);
    }
    size_t len = text.len;
    buf_adds(&text, "\n\nend\n");
    pack(&file, buf_str(&text));
    CLEANUP(unpacker) struct unpacker *u = unpacker_new(buf_str(&file), BUF_TEXT);
    struct str line;
    assert_int_equal(unpacker_line(u, &line, NULL), 1);
    assert_true(str_eq(line, str_slice(buf_str(&text), 0, len)));
    assert_int_equal(unpacker_line(u, &line, NULL), 1);
    assert_int_equal(line.len, 0);
    assert_int_equal(unpacker_line(u, &line, NULL), 1);
    assert_true(str_eqc(line, "end"));
    assert_int_equal(unpacker_line(u, &line, NULL), 0);
}

static void a_whole_text_is_a_frame_among_others(void **state)
{
    static const char *const texts[] = { "one\n", "two\nlines\n", "three\n" };
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
    assert_int_equal(pack_whole(str_of(texts[0]), &file, NULL), 0);
    pack(&file, str_of(texts[1]));
    assert_int_equal(pack_whole(str_of(texts[2]), &file, NULL), 0);
    struct str rest = buf_str(&file);
    struct str frame;
    struct str line;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(pack_frame(&rest, &frame, NULL), 1);
        CLEANUP(unpacker) struct unpacker *u = unpacker_new(frame, 1 << 20);
        buf_reset(&got);
        while (unpacker_line(u, &line, NULL) == 1) {
            buf_addf(&got, "%.*s\n", STR_ARG(line));
        }
        assert_true(str_eqc(buf_str(&got), texts[i]));
    }
    assert_int_equal(rest.len, 0);
    CLEANUP(buf) struct buf tight = BUF_INIT(8);
    assert_true(pack_whole(str_of(texts[1]), &tight, NULL) < 0);
}

static void a_torn_end_is_left_over(void **state)
{
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    pack(&file, STR("one\n"));
    size_t whole = file.len;
    pack(&file, STR("two\n"));
    for (size_t n = whole; n < file.len; n++) {
        struct str rest = str_slice(buf_str(&file), 0, n);
        struct str frame;
        assert_int_equal(pack_frame(&rest, &frame, NULL), 1);
        assert_int_equal(frame.len, whole);
        assert_int_equal(pack_frame(&rest, &frame, NULL), 0);
        assert_int_equal(rest.len, n - whole);
    }
}

static void damage_is_told(void **state)
{
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    struct str frame;
    struct str line;
    struct str no = STR("{\"type\":\"cassette\"}\n");
    assert_int_equal(pack_frame(&no, &frame, NULL), -(int)ERR_PARSE);
    no = STR("x");
    assert_int_equal(pack_frame(&no, &frame, NULL), -(int)ERR_PARSE);
    pack(&file, STR("some text that is packed\n"));
    file.ptr[file.len - 1] ^= 1; /* the checksum */
    struct str rest = buf_str(&file);
    assert_int_equal(pack_frame(&rest, &frame, NULL), 1);
    CLEANUP(unpacker) struct unpacker *u = unpacker_new(frame, 1 << 20);
    int r;
    do {
        r = unpacker_line(u, &line, NULL);
    } while (r == 1);
    assert_int_equal(r, -(int)ERR_PARSE);
    buf_reset(&file);
    pack(&file, STR("no line end"));
    CLEANUP(unpacker) struct unpacker *v = unpacker_new(buf_str(&file), 1 << 20);
    assert_int_equal(unpacker_line(v, &line, NULL), -(int)ERR_PARSE);
}

/* 3 GiB of zeros in 100 KB: neither a line without end nor endless lines get through. */
static void a_bomb_is_bounded(void **state)
{
    CLEANUP(buf) struct buf file = BUF_INIT(BUF_TEXT);
    CLEANUP(packer) struct packer *p = packer_new();
    CLEANUP(free) char *zeros = xcalloc(1, 1 << 20);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(packer_add(p, str_n(zeros, 1 << 20), &file, NULL), 0);
    }
    assert_int_equal(packer_end(p, &file, NULL), 0);
    assert_true(file.len < 64 << 10);
    struct str line;
    CLEANUP(unpacker) struct unpacker *u = unpacker_new(buf_str(&file), SIZE_MAX);
    assert_int_equal(unpacker_line(u, &line, NULL), -(int)ERR_LIMIT);
    CLEANUP(unpacker) struct unpacker *v = unpacker_new(buf_str(&file), 1 << 20);
    struct err e = { 0 };
    assert_int_equal(unpacker_line(v, &line, &e), -(int)ERR_LIMIT);
    assert_non_null(strstr(e.msg, "more than 1 MiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_back),
        cmocka_unit_test(a_long_line_and_an_empty_one),
        cmocka_unit_test(a_torn_end_is_left_over),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(a_bomb_is_bounded),
        cmocka_unit_test(a_whole_text_is_a_frame_among_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Patches without secrets: what passes byte for byte, what is redacted, which files are left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "record/redact_patch.h"

#define SECRET "hunter2-hunter2-hunter2"

struct outcome {
    struct buf patch;
    struct buf withheld; /* "path: why\n" */
};

static void on_write(void *ctx, struct str bytes)
{
    struct outcome *o = ctx;
    buf_add(&o->patch, bytes);
}

static void on_withheld(void *ctx, const struct redact_withheld *file)
{
    struct outcome *o = ctx;
    buf_addf(&o->withheld, "%.*s %lld: %s\n", STR_ARG(file->path), (long long)file->bytes,
             file->why);
}

static uint64_t clean(const char *patch, const char *expected, const char *withheld)
{
    struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR(SECRET), NULL), 0);
    redactor_compile(r);
    struct outcome o = { BUF_INIT(BUF_TEXT), BUF_INIT(BUF_TEXT) };
    const struct redact_patch_port port = { on_write, on_withheld, &o };
    uint64_t removed = redact_patch(r, str_of(patch), &port);
    buf_add(&o.patch, str_n("", 1));
    buf_add(&o.withheld, str_n("", 1));
    assert_string_equal(o.patch.ptr, expected);
    assert_string_equal(o.withheld.ptr, withheld);
    buf_done(&o.patch);
    buf_done(&o.withheld);
    redactor_free(r);
    return removed;
}

#define TEXT(content)                         \
    "diff --git a/t b/t\nindex 1..2 100644\n" \
    "--- a/t\n+++ b/t\n@@ -1 +1,4 @@\n one\n" content

static void text_is_redacted_and_keeps_its_lines(void **state)
{
    assert_int_equal(clean(TEXT("+x\n"), TEXT("+x\n"), ""), 0);
    assert_int_equal(clean(TEXT("+a " SECRET " b\n+c\n"), TEXT("+a [REDACTED:K] b\n+c\n"), ""), 1);
    /* printf hunter2-hunter2-hunter2 | base64 | fold -w 8 */
    assert_int_equal(clean(TEXT("+aHVudGVy\n+Mi1odW50\n+ZXIyLWh1\n+bnRlcjIx\n+end\n"),
                           TEXT("+[REDACTED:K]\n+\n+\n+Ix\n+end\n"), ""),
                     1);
    assert_int_equal(clean("", "", ""), 0);
    assert_int_equal(clean(SECRET, "[REDACTED:K]", ""), 1);
}

/* Made by git diff --binary. */
#define HEAD(name) "diff --git a/" name " b/" name "\nnew file mode 100644\nindex 0..1\n"
#define NOTHING    "literal 0\nHcmV?d00001\n\n"
/* printf 'x\0y\n' */
#define CLEAN HEAD("c.bin") "GIT binary patch\nliteral 4\nLcmb<msN@0w0^k7r\n\n" NOTHING
/* printf 'x\0hunter2-hunter2-hunter2\n' */
#define DIRTY HEAD("d.bin") "GIT binary patch\nliteral 26\nTcmb<m$SBP#Ni8zcMWeX@e{l&l\n\n" NOTHING
/* The secret put into the middle of 2000 bytes. */
#define DELTA                                                                     \
    "diff --git a/e.bin b/e.bin\nindex b..f 100644\nGIT binary patch\ndelta 36\n" \
    "ecmcb>|D1or3uf_*(!7$?A|qWidh-kB7t8<@3J${n\n\ndelta 12\nUcmaFPe}R9)3+B!LnO`si04Z$-5dZ)H\n\n"

static void binary_files_with_a_secret_are_left_out(void **state)
{
    assert_int_equal(clean(CLEAN, CLEAN, ""), 0);
    assert_int_equal(clean(DIRTY, "", "d.bin 26: it holds a secret\n"), 0);
    assert_int_equal(clean(DELTA, "", "e.bin 0: it holds a secret\n"), 0);
    assert_int_equal(clean(TEXT("+x\n") DIRTY CLEAN DELTA TEXT("+" SECRET "\n"),
                           TEXT("+x\n") CLEAN TEXT("+[REDACTED:K]\n"),
                           "d.bin 26: it holds a secret\ne.bin 0: it holds a secret\n"),
                     1);
}

/* Names of files are text. */
static void names_are_redacted(void **state)
{
    assert_int_equal(clean(HEAD("n-" SECRET) "GIT binary patch\nliteral 4\nLcmb<msN@0w0^k7r\n\n",
                           HEAD("n-[REDACTED:K]") "GIT binary patch\nliteral 4\n"
                                                  "Lcmb<msN@0w0^k7r\n\n",
                           ""),
                     2);
    assert_int_equal(clean("diff --git \"a/\\303\\244 b/x\" \"b/\\303\\244 b/x\"\nindex 0..1\n"
                           "GIT binary patch\nliteral 26\nTcmb<m$SBP#Ni8zcMWeX@e{l&l\n\n",
                           "", "\\303\\244 b/x 26: it holds a secret\n"),
                     0);
}

static void what_cannot_be_read_is_left_out(void **state)
{
    static const char *const bodies[] = {
        "GIT binary patch\nliteral 4\nLcmb<msN@0w0^k7\n\n",   /* a digit is missing */
        "GIT binary patch\nliteral 4\nLcmb<msN@0w0^k7\"\n\n", /* no digit */
        "GIT binary patch\nliteral 4\nzcmb<msN@0w0^k7r\n\n",  /* another length */
        "GIT binary patch\nliteral 4\nLcmb<msN@0w~~~~~\n\n",  /* more than 32 bits */
        "GIT binary patch\nliteral 4\nHcmV?d00002\n\n",       /* a wrong check sum */
        "GIT binary patch\nliteral 4\nEcmb<ms\n\n",           /* cut */
        "GIT binary patch\nsomething else\n\n",               /* no such kind */
        "GIT binary patch\nliteral 4\n\n",                    /* nothing */
        "GIT binary patch\ndelta 4\nLcmb<msN@0w0^k7r\n\n",    /* not a delta: op 0 */
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        const char *patch = arena_printf(a, "%s%s", HEAD("u.bin"), bodies[i]);
        struct redactor *r = redactor_new();
        assert_int_equal(redactor_add(r, STR("K"), STR(SECRET), NULL), 0);
        redactor_compile(r);
        struct outcome o = { BUF_INIT(BUF_TEXT), BUF_INIT(BUF_TEXT) };
        const struct redact_patch_port port = { on_write, on_withheld, &o };
        (void)redact_patch(r, str_of(patch), &port);
        assert_int_equal(o.patch.len, 0);
        assert_true(o.withheld.len > 0);
        buf_done(&o.patch);
        buf_done(&o.withheld);
        redactor_free(r);
    }
}

/* Without secrets nothing is looked at. */
static void without_secrets_everything_passes(void **state)
{
    static const char patch[] = "GIT binary patch\nliteral 4\nnonsense\n" DIRTY;
    struct outcome o = { BUF_INIT(BUF_TEXT), BUF_INIT(BUF_TEXT) };
    const struct redact_patch_port port = { on_write, on_withheld, &o };
    assert_int_equal(redact_patch(NULL, str_of(patch), &port), 0);
    assert_true(str_eqc(buf_str(&o.patch), patch));
    buf_done(&o.patch);
}

static void compressed_files_are_looked_into(void **state)
{
    /* printf hunter2-hunter2-hunter2 | gzip -n */
    static const char packed[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x28\xcd\x2b\x49\x2d"
                                 "\x32\xd2\xcd\x40\xa5\x01\x93\xab\xd3\xb5\x17\x00\x00\x00";
    struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR(SECRET), NULL), 0);
    redactor_compile(r);
    for (size_t cut = 3; cut < sizeof packed; cut++) {
        struct redact_probe p;
        redact_probe_init(&p, r);
        redact_probe_feed(&p, str_n(packed, cut));
        redact_probe_feed(&p, str_n(packed + cut, sizeof packed - 1 - cut));
        assert_int_equal(redact_probe_done(&p), REDACT_PROBE_SECRET);
    }
    redactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_redacted_and_keeps_its_lines),
        cmocka_unit_test(binary_files_with_a_secret_are_left_out),
        cmocka_unit_test(names_are_redacted),
        cmocka_unit_test(what_cannot_be_read_is_left_out),
        cmocka_unit_test(without_secrets_everything_passes),
        cmocka_unit_test(compressed_files_are_looked_into),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

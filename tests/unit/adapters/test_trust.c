/* SPDX-License-Identifier: MIT
 *
 * The trust life cycle within one process: which bytes are in the file at which time, and what is
 * left alone. Runs in other processes, and dead ones, are in test_trust_process.c.
 */
#include "trust_case.h"

#include "adapters/trust_priv.h"

/* --- one run --- */

struct text_case {
    enum trust_style style;
    const char *before;
    const char *during;
};

#define BLOCK(dir)                                           \
    "# cinch: trusted while a run uses it\n[projects.\"" dir \
    "\"]\ntrust_level = \"trusted\"\n# cinch: end"

static const struct text_case texts[] = {
    { TRUST_CODEX, "# my settings\nmodel = \"o3\" # the best\n\n[projects.\"/other\"]\nk = 'v'\n",
      "# my settings\nmodel = \"o3\" # the best\n\n[projects.\"/other\"]\nk = 'v'\n" BLOCK(
          "/w") "\n" },
    { TRUST_CODEX, "", BLOCK("/w") "\n" },
    { TRUST_CODEX, "[t]\r\nother = 1 # no newline at the end",
      "[t]\r\nother = 1 # no newline at the end\n" BLOCK("/w") },
    { TRUST_CODEX, "x = inf\r\n[projects]\r\n", "x = inf\r\n[projects]\r\n" BLOCK("/w") "\n" },
    { TRUST_GEMINI, "{}", "{\"/w\": \"TRUST_FOLDER\"}" },
    { TRUST_GEMINI, "{ }\n", "{\"/w\": \"TRUST_FOLDER\" }\n" },
    { TRUST_GEMINI, "{\n    \"/b\" : \"DO_NOT_TRUST\",\n    \"/a\" : \"TRUST_PARENT\"\n}",
      "{\n    \"/w\": \"TRUST_FOLDER\",\n    \"/b\" : \"DO_NOT_TRUST\",\n    \"/a\" : "
      "\"TRUST_PARENT\"\n}" },
    { TRUST_GEMINI, "{\r\n}\r\n", "{\n  \"/w\": \"TRUST_FOLDER\"\r\n}\r\n" },
    { TRUST_CLAUDE, "{\"n\":1.50,\"projects\":{}}",
      "{\"n\":1.50,\"projects\":{\"/w\": {\"hasTrustDialogAccepted\": true}}}" },
    { TRUST_CLAUDE, "{\"n\":1.50}",
      "{\"projects\": {\"/w\": {\"hasTrustDialogAccepted\": true}},\"n\":1.50}" },
    { TRUST_CLAUDE,
      "{\n  \"projects\": {\n    \"\\/w\": {\n      \"hasTrustDialogAccepted\": false\n    }\n  "
      "}\n}\n",
      "{\n  \"projects\": {\n    \"\\/w\": {\n      \"hasTrustDialogAccepted\": true\n    }\n  "
      "}\n}\n" },
    { TRUST_CLAUDE, "{\"projects\": {\"/x\": {}, \"/w\": {\"a\": [1, {\"}\": \"{\\\"\"}]}}}",
      "{\"projects\": {\"/x\": {}, \"/w\": {\"hasTrustDialogAccepted\": true,\"a\": [1, {\"}\": "
      "\"{\\\"\"}]}}}" },
};

static void test_bytes_come_back(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct text_case *c = &texts[i];
        use_style(c->style);
        write_text(file, c->before);
        enter(c->style, "/w", "r1", TRUST_ADDED);
        assert_text(file, c->during);
        leave(c->style, "/w", "r1");
        assert_text(file, c->before);
        assert_clean();
    }
}

static void test_odd_directories(void **state)
{
    static const char *const dirs[] = { "/a b",  "/q\"q",     "/b\\b",
                                        "/l'l",  "/d.d",      "/n\nn",
                                        "/t\tt", "/\xc3\xbc", "/\xf0\x9f\x98\x80",
                                        "/#]}",  "/" };
    static const char *const before[] = { "# c\nm = 1\n", "{\"/z\": \"TRUST_FOLDER\"}\n",
                                          "{\"projects\": {\"/z\": {}}}\n" };
    for (size_t i = 0; i < ARRAY_LEN(dirs) * 3; i++) {
        enum trust_style style = (enum trust_style)(i % 3);
        use_style(style);
        write_text(file, before[style]);
        enter(style, dirs[i / 3], "r1", TRUST_ADDED);
        enter(style, dirs[i / 3], "r2", TRUST_JOINED);
        leave(style, dirs[i / 3], "r1");
        leave(style, dirs[i / 3], "r2");
        assert_text(file, before[style]);
    }
    struct trust_entry bad = { TRUST_CODEX, file, "/\xff" };
    assert_int_equal(trust_register(&bad, "r1", NULL, NULL), -ERR_UNSUPPORTED);
    bad.dir = "relative";
    assert_int_equal(trust_register(&bad, "r1", NULL, NULL), -ERR_USAGE);
    assert_clean();
}

static void test_users_entry_survives(void **state)
{
    static const char *const own[] = {
        "[projects.'/w'] # mine\ntrust_level = \"trusted\"\n", "{\"/w\": \"TRUST_PARENT\"}",
        "{\"projects\":{\"/w\":{\"hasTrustDialogAccepted\":true}}}"
    };
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        use_style((enum trust_style)i);
        write_text(file, own[i]);
        enter((enum trust_style)i, "/w", "r1", TRUST_OWN);
        leave((enum trust_style)i, "/w", "r1");
        (void)sweep((enum trust_style)i, NULL);
        assert_text(file, own[i]);
        assert_clean();
    }
}

static void test_users_refusal_is_respected(void **state)
{
    static const char toml[] = "[projects.\"/w\"]\ntrust_level = \"untrusted\"\n";
    static const char json[] = "{\"/w\": \"DO_NOT_TRUST\"}";
    write_text(file, toml);
    assert_refused(TRUST_CODEX, ERR_DENIED, "marks '/w' as not trusted");
    assert_text(file, toml);
    use_style(TRUST_GEMINI);
    write_text(file, json);
    assert_refused(TRUST_GEMINI, ERR_DENIED, "trustedFolders.json' marks '/w'");
    assert_text(file, json);
    write_text(file, "{\"/w\": \"PERHAPS\"}");
    assert_refused(TRUST_GEMINI, ERR_UNSUPPORTED, "trustedFolders.json:1:8: the trust entry");
}

static void test_corrupt_file_is_untouched(void **state)
{
    static const struct {
        enum trust_style style;
        const char *text, *message;
        enum err_code code;
    } cases[] = {
        { TRUST_CODEX, "model = \"x\n[projects]\n", "config.toml:1:9: ", ERR_PARSE },
        { TRUST_CODEX, "projects = 1\n", "cannot be added", ERR_UNSUPPORTED },
        { TRUST_CODEX, "projects = {}\n", "cannot be added", ERR_UNSUPPORTED },
        { TRUST_CODEX, "[[projects]]\n", "cannot be added", ERR_UNSUPPORTED },
        { TRUST_CODEX, "[projects.'/w']\nother = 1\n", "cannot be added", ERR_UNSUPPORTED },
        { TRUST_GEMINI, "{ // mine\n \"/a\": \"TRUST_FOLDER\" }", "trustedFolders.json",
          ERR_PARSE },
        { TRUST_GEMINI, "{\"/a\": \"TRUST_FOLDER\"", "trustedFolders.json", ERR_PARSE },
        { TRUST_GEMINI, "", "trustedFolders.json", ERR_PARSE },
        { TRUST_GEMINI, "[]", "is not an object", ERR_UNSUPPORTED },
        { TRUST_CLAUDE, "{\"projects\": []}", "'projects' is not an object", ERR_UNSUPPORTED },
        { TRUST_CLAUDE, "{\"a\": 1, \"a\": 2}", ".claude.json", ERR_PARSE },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        use_style(cases[i].style);
        write_text(file, cases[i].text);
        assert_refused(cases[i].style, cases[i].code, cases[i].message);
        assert_text(file, cases[i].text);
    }
}

/* --- the file itself --- */

static void test_missing_file_comes_and_goes(void **state)
{
    for (size_t i = 0; i < 3; i++) {
        enum trust_style style = (enum trust_style)i;
        struct stat st;
        (void)snprintf(file, sizeof file, "%s/%zu/sub/%s", root, i, file_names[i]);
        leave(style, "/w", "r1"); /* nothing there: fine, and nothing made */
        assert_false(file_exists(AT_FDCWD, file));
        enter(style, "/w", "r1", TRUST_ADDED);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        enter(style, "/v", "r2", TRUST_ADDED);
        leave(style, "/w", "r1");
        assert_true(file_exists(AT_FDCWD, file));
        leave(style, "/v", "r2");
        assert_false(file_exists(AT_FDCWD, file));
        assert_false(file_exists(AT_FDCWD, with(".cinch.json")));
    }
    (void)snprintf(file, sizeof file, "%s/0/sub", root);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_made_file_stays_when_used(void **state)
{
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    write_text(file, "model = \"x\"\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n");
    leave(TRUST_CODEX, "/w", "r1");
    assert_text(file, "model = \"x\"\n\n");
    assert_clean();
}

/* A key that somebody has put behind the block would change its table with it. */
static void test_block_with_other_keys_stays(void **state)
{
    static const char text[] = "a = 1\n" BLOCK("/w") "\nother = 1\n";
    struct trust_entry t = { TRUST_CODEX, file, "/w" };
    struct err e = { 0 };
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    write_text(file, text);
    assert_int_equal(trust_remove(&t, "r1", &e), -ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "cannot be removed without changing others"));
    assert_text(file, text);
    write_text(file, "[projects]\n\"/w\".trust_level = \"trusted\"\n");
    assert_int_equal(trust_remove(&t, "r1", &e), -ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "remove it by hand"));
    write_text(file, "a = 1\n" BLOCK("/w"));
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    assert_text(file, "a = 1");
}

/* Directories of several runs come and go in any order. */
static void test_blocks_in_any_order(void **state)
{
    static const char *const before[] = { "", "a = 1\n", "a = 1", "[x]\r\ny = 1\r\n" };
    static const char *const dirs[] = { "/u", "/v", "/w" };
    for (size_t i = 0; i < ARRAY_LEN(before) * 3; i++) {
        write_text(file, before[i / 3]);
        for (size_t k = 0; k < 3; k++) {
            enter(TRUST_CODEX, dirs[k], "r1", TRUST_ADDED);
        }
        for (size_t k = 0; k < 3; k++) {
            leave(TRUST_CODEX, dirs[(k * 2 + i) % 3], "r1");
        }
        assert_text(file, before[i / 3]);
    }
}

/* Harnesses write their files anew, in their own layout. */
static void test_file_rewritten_meanwhile(void **state)
{
    use_style(TRUST_GEMINI);
    enter(TRUST_GEMINI, "/w", "r1", TRUST_ADDED);
    write_text(file, "{\"/w\":\"TRUST_FOLDER\"}");
    leave(TRUST_GEMINI, "/w", "r1");
    assert_false(file_exists(AT_FDCWD, file));

    use_style(TRUST_CLAUDE);
    write_text(file, "{}");
    enter(TRUST_CLAUDE, "/w", "r1", TRUST_ADDED);
    write_text(file, "{\"projects\":{\"/w\":{\"hasTrustDialogAccepted\":true,\"cost\":1}}}");
    leave(TRUST_CLAUDE, "/w", "r1");
    assert_text(file, "{\"projects\":{\"/w\":{\"cost\":1}}}");

    use_style(TRUST_CODEX);
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    write_text(file, "a = 2\n"); /* somebody restored an old version */
    enter(TRUST_CODEX, "/w", "r2", TRUST_ADDED);
    assert_true(text_has(file, "trusted"));
    write_text(file, "[projects.\"/w\"]\ntrust_level = \"untrusted\"\n"); /* the user decided */
    leave(TRUST_CODEX, "/w", "r1");
    leave(TRUST_CODEX, "/w", "r2");
    assert_text(file, "[projects.\"/w\"]\ntrust_level = \"untrusted\"\n");
    assert_clean();
}

static void test_link_mode_owner_stay(void **state)
{
    char target[256];
    struct stat st;
    (void)snprintf(target, sizeof target, "%s/dotfiles", root);
    assert_int_equal(mkdir(target, 0700), 0);
    (void)snprintf(target, sizeof target, "%s/dotfiles/codex.toml", root);
    write_text(target, "a = 1\n");
    assert_int_equal(chmod(target, 0640), 0);
    bool root_user = geteuid() == 0;
    if (root_user) {
        assert_int_equal(chown(target, 1234, 4321), 0);
    }
    assert_int_equal(symlink("dotfiles/codex.toml", file), 0);
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    assert_true(text_has(target, "trusted"));
    assert_int_equal(lstat(file, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    if (root_user) {
        assert_int_equal(st.st_uid, 1234);
        assert_int_equal(st.st_gid, 4321);
    }
    /* By its other name it is the same file with the same ledger. */
    struct trust_entry direct = { TRUST_CODEX, target, "/w" };
    enum trust_outcome outcome = TRUST_OWN;
    assert_int_equal(trust_register(&direct, "r2", &outcome, NULL), 0);
    assert_int_equal(outcome, TRUST_JOINED);
    leave(TRUST_CODEX, "/w", "r1");
    assert_int_equal(trust_remove(&direct, "r2", NULL), 0);
    assert_text(target, "a = 1\n");
    assert_int_equal(unlink(target), 0);
    assert_refused(TRUST_CODEX, ERR_CONFIG, "a symbolic link to nothing");
}

/* --- several runs --- */

static void test_last_run_removes(void **state)
{
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    enter(TRUST_CODEX, "/w", "r2", TRUST_JOINED);
    enter(TRUST_CODEX, "/w", "r2", TRUST_JOINED); /* twice is once */
    enter(TRUST_CODEX, "/v", "r3", TRUST_ADDED);
    leave(TRUST_CODEX, "/w", "r1");
    leave(TRUST_CODEX, "/w", "r1");
    leave(TRUST_CODEX, "/w", "unknown");
    assert_true(text_has(file, "[projects.\"/w\"]"));
    leave(TRUST_CODEX, "/w", "r2");
    assert_text(file, "a = 1\n" BLOCK("/v") "\n");
    leave(TRUST_CODEX, "/v", "r3");
    assert_text(file, "a = 1\n");
    assert_clean();
}

static void test_failed_removal_is_left_to_the_sweep(void **state)
{
    struct err e = { 0 };
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    write_text(file, "a = \n");
    struct trust_entry t = { TRUST_CODEX, file, "/w" };
    assert_int_equal(trust_remove(&t, "r1", &e), -ERR_PARSE);
    assert_non_null(strstr(e.msg, "config.toml:1:5: "));
    assert_text(file, "a = \n");
    assert_int_equal(trust_sweep(TRUST_CODEX, file, NULL, NULL, NULL), -ERR_PARSE);
    write_text(file, "a = 1\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n");
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    assert_text(file, "a = 1\n");
    assert_clean();
}

/* What could not be written must not be noted as written. */
static void test_failed_registration_leaves_no_note(void **state)
{
    char blocker[256];
    write_text(file, "a = 1\n");
    (void)snprintf(blocker, sizeof blocker, "%s", with(".cinch.tmp"));
    assert_int_equal(mkdir(blocker, 0700), 0);
    struct trust_entry t = { TRUST_CODEX, file, "/w" };
    assert_int_equal(trust_register(&t, "r1", NULL, NULL), -ERR_SYS);
    assert_text(file, "a = 1\n");
    assert_false(file_exists(AT_FDCWD, with(".cinch.json")));
    assert_int_equal(rmdir(blocker), 0);
    assert_clean();
}

/* A harness that writes between our reading and our writing wins, and we start over on its text. */
static void test_file_changed_under_the_edit(void **state)
{
    CLEANUP(trust_file) struct trust_file f = TRUST_FILE_INIT;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct stat st;
    bool absent = true;
    assert_int_equal(trust_file_open(&f, file, true, &absent, NULL), 0);
    assert_int_equal(trust_file_load(&f, &text, &st, NULL), 0);
    assert_int_equal(st.st_nlink, 0);
    write_text(file, "a = 1\n");
    assert_int_equal(trust_file_replace(&f, STR("b = 2\n"), &st, NULL), 0);
    assert_text(file, "a = 1\n");
    assert_int_equal(trust_file_load(&f, &text, &st, NULL), 0);
    assert_int_equal(unlink(file), 0);
    write_text(file, "c = 1\n");
    assert_int_equal(trust_file_replace(&f, STR("b = 2\n"), &st, NULL), 0);
    assert_int_equal(trust_file_unlink(&f, &st, NULL), 0);
    assert_text(file, "c = 1\n");
    assert_int_equal(trust_file_load(&f, &text, &st, NULL), 0);
    assert_int_equal(trust_file_replace(&f, STR("b = 2\n"), &st, NULL), 1);
    assert_text(file, "b = 2\n");
    assert_clean();
}

static void test_damaged_ledger_is_refused(void **state)
{
#define WITH_ENTRIES(entries) "{\"version\": 1, \"created\": false, \"entries\": " entries "}"
    static const char *const ledgers[] = {
        "",
        "[]",
        "{\"version\": 2}",
        WITH_ENTRIES("[]"),
        WITH_ENTRIES("{\"/w\": {\"made\": 0, \"was_false\": false, \"runs\": [{}]}}"),
        WITH_ENTRIES("{\"/w\": {\"made\": 0, \"was_false\": false, \"runs\": [{\"run\": \"r\", "
                     "\"pid\": 0, \"start\": 1, \"boot\": \"\", \"space\": \"\"}]}}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(ledgers); i++) {
        struct err e = { 0 };
        struct trust_entry t = { TRUST_CODEX, file, "/w" };
        write_text(file, "a = 1\n");
        write_text(with(".cinch.json"), ledgers[i]);
        assert_int_equal(trust_register(&t, "r1", NULL, &e), -ERR_PARSE);
        assert_non_null(strstr(e.msg, "is damaged"));
        assert_true(trust_remove(&t, "r1", NULL) < 0);
        assert_true(trust_sweep(TRUST_CODEX, file, NULL, NULL, NULL) < 0);
        assert_text(file, "a = 1\n");
        assert_text(with(".cinch.json"), ledgers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRUST_TEST(test_bytes_come_back),
        TRUST_TEST(test_odd_directories),
        TRUST_TEST(test_users_entry_survives),
        TRUST_TEST(test_users_refusal_is_respected),
        TRUST_TEST(test_corrupt_file_is_untouched),
        TRUST_TEST(test_missing_file_comes_and_goes),
        TRUST_TEST(test_made_file_stays_when_used),
        TRUST_TEST(test_block_with_other_keys_stays),
        TRUST_TEST(test_blocks_in_any_order),
        TRUST_TEST(test_file_rewritten_meanwhile),
        TRUST_TEST(test_link_mode_owner_stay),
        TRUST_TEST(test_last_run_removes),
        TRUST_TEST(test_failed_removal_is_left_to_the_sweep),
        TRUST_TEST(test_failed_registration_leaves_no_note),
        TRUST_TEST(test_file_changed_under_the_edit),
        TRUST_TEST(test_damaged_ledger_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

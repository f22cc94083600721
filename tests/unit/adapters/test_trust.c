/* SPDX-License-Identifier: MIT
 *
 * The trust life cycle on real files and with real processes: this program starts itself as a
 * worker (argv[1] is "worker") where a test needs runs that live in other processes, or die.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapters/trust.h"
#include "adapters/trust_priv.h"
#include "base/file.h"
#include "base/json.h"

extern char **environ;

static char root[64];
static char file[128]; /* the trust file of the test */

static const char *const style_names[] = { "codex", "gemini", "claude" };
static const char *const file_names[] = { "config.toml", "trustedFolders.json", ".claude.json" };

/* --- files --- */

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, str_of(text), NULL), 0);
    (void)close(fd);
}

static void assert_text(const char *path, const char *text)
{
    CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(AT_FDCWD, path, BUF_TEXT, &got, NULL), 0);
    if (!str_eqc(buf_str(&got), text)) {
        fail_msg("'%s' holds\n%.*s\ninstead of\n%s", path, STR_ARG(buf_str(&got)), text);
    }
}

static bool text_has(const char *path, const char *part)
{
    CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
    return file_read(AT_FDCWD, path, BUF_TEXT, &got, NULL) == 0 && got.len > 0 &&
           strstr(got.ptr, part) != NULL;
}

static const char *with(const char *suffix)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s%s", file, suffix);
    return path;
}

/* Nothing but the file and the lock may remain: no ledger, no temporary file, no <file>.lock. */
static void assert_clean(void)
{
    DIR *d = opendir(root);
    assert_non_null(d);
    for (const struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        struct str name = str_of(entry->d_name);
        if (str_ends(name, STR(".cinch.json")) || str_ends(name, STR(".tmp")) ||
            str_ends(name, STR(".json.lock")) || str_ends(name, STR(".toml.lock"))) {
            fail_msg("'%s' is left", entry->d_name);
        }
    }
    (void)closedir(d);
}

static void use_style(enum trust_style style)
{
    (void)snprintf(file, sizeof file, "%s/%s", root, file_names[style]);
}

static int set_up(void **state)
{
    (void)snprintf(root, sizeof root, "/tmp/cinch-trust-XXXXXX");
    if (mkdtemp(root) == NULL) {
        return -1;
    }
    use_style(TRUST_CODEX);
    return 0;
}

static int tear_down(void **state)
{
    return file_remove_tree(AT_FDCWD, root, NULL);
}

/* --- shorthands --- */

static void enter(enum trust_style style, const char *dir, const char *run, enum trust_outcome want)
{
    struct err e = { 0 };
    enum trust_outcome got = TRUST_OWN;
    struct trust_entry t = { style, file, dir };
    if (trust_register(&t, run, &got, &e) < 0) {
        fail_msg("register: %s", e.msg);
    }
    assert_int_equal(got, want);
}

static void leave(enum trust_style style, const char *dir, const char *run)
{
    struct err e = { 0 };
    struct trust_entry t = { style, file, dir };
    if (trust_remove(&t, run, &e) < 0) {
        fail_msg("remove: %s", e.msg);
    }
}

static void assert_refused(enum trust_style style, enum err_code code, const char *message)
{
    struct err e = { 0 };
    struct trust_entry t = { style, file, "/w" };
    assert_int_equal(trust_register(&t, "r1", NULL, &e), -(int)code);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' lacks '%s'", e.msg, message);
    }
    assert_clean();
}

static struct trust_swept sweep(enum trust_style style, const struct trust_port *port)
{
    struct err e = { 0 };
    struct trust_swept swept = { 0 };
    if (trust_sweep(style, file, port, &swept, &e) < 0) {
        fail_msg("sweep: %s", e.msg);
    }
    return swept;
}

/* --- one run --- */

struct text_case {
    enum trust_style style;
    const char *before;
    const char *during;
};

static const struct text_case texts[] = {
    { TRUST_CODEX,
      "# my settings\nmodel = \"o3\" # the best\n\n[projects.\"/other\"]\ntrust_level = "
      "'trusted'\n",
      "# my settings\nmodel = \"o3\" # the best\n\n[projects.\"/other\"]\ntrust_level = 'trusted'\n"
      "\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { TRUST_CODEX, "", "[projects.\"/w\"]\ntrust_level = \"trusted\"\n" },
    { TRUST_CODEX, "[projects.'/w']\r\nother = 1 # no newline at the end",
      "[projects.'/w']\r\nother = 1 # no newline at the end\r\ntrust_level = \"trusted\"" },
    { TRUST_CODEX, "projects = {}\nx = inf\n",
      "projects = {\"/w\".trust_level = \"trusted\"}\nx = inf\n" },
    { TRUST_GEMINI, "{}", "{\"/w\": \"TRUST_FOLDER\"}" },
    { TRUST_GEMINI, "{ }\n", "{\"/w\": \"TRUST_FOLDER\" }\n" },
    { TRUST_GEMINI, "{\n    \"/b\" : \"DO_NOT_TRUST\",\n    \"/a\" : \"TRUST_PARENT\"\n}",
      "{\n    \"/b\" : \"DO_NOT_TRUST\",\n    \"/a\" : \"TRUST_PARENT\",\n    \"/w\" : "
      "\"TRUST_FOLDER\"\n}" },
    { TRUST_GEMINI, "{\r\n}\r\n", "{\r\n  \"/w\": \"TRUST_FOLDER\"\r\n}\r\n" },
    { TRUST_CLAUDE, "{\"n\":1.50,\"projects\":{}}",
      "{\"n\":1.50,\"projects\":{\"/w\": {\"hasTrustDialogAccepted\": true}}}" },
    { TRUST_CLAUDE, "{\"n\":1.50}",
      "{\"n\":1.50,\"projects\":{\"/w\":{\"hasTrustDialogAccepted\":true}}}" },
    { TRUST_CLAUDE,
      "{\n  \"projects\": {\n    \"\\/w\": {\n      \"hasTrustDialogAccepted\": false\n    }\n  "
      "}\n}\n",
      "{\n  \"projects\": {\n    \"\\/w\": {\n      \"hasTrustDialogAccepted\": true\n    }\n  "
      "}\n}\n" },
    { TRUST_CLAUDE, "{\"projects\": {\"/w\": {\"a\": [1, {\"}\": \"{\\\"\"}]}, \"/x\": {}}}",
      "{\"projects\": {\"/w\": {\"a\": [1, {\"}\": \"{\\\"\"}],\"hasTrustDialogAccepted\": true}, "
      "\"/x\": {}}}" },
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
    assert_refused(TRUST_CODEX, ERR_DENIED, "says that '/w' is not to be trusted");
    assert_text(file, toml);
    use_style(TRUST_GEMINI);
    write_text(file, json);
    assert_refused(TRUST_GEMINI, ERR_DENIED, "trustedFolders.json' says that '/w'");
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
        { TRUST_CODEX, "projects = 1\n", "config.toml:1:12: cannot edit", ERR_UNSUPPORTED },
        { TRUST_CODEX, "[[projects]]\n", "cannot edit", ERR_UNSUPPORTED },
        { TRUST_GEMINI, "{ // mine\n \"/a\": \"TRUST_FOLDER\" }", "trustedFolders.json",
          ERR_PARSE },
        { TRUST_GEMINI, "{\"/a\": \"TRUST_FOLDER\"", "trustedFolders.json", ERR_PARSE },
        { TRUST_GEMINI, "", "trustedFolders.json", ERR_PARSE },
        { TRUST_GEMINI, "[]", "must be an object", ERR_PARSE },
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
    assert_text(file, "model = \"x\"\n");
    assert_clean();
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
    assert_text(file, "a = 1\n\n[projects.\"/v\"]\ntrust_level = \"trusted\"\n");
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
    write_text(file, "a = 1\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n");
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

/* --- processes --- */

static pid_t start_worker(const char *const args[], int *ret_pipe)
{
    char *argv[8] = { (char *)"test_trust", (char *)"worker" };
    posix_spawn_file_actions_t actions;
    int fds[2];
    pid_t pid = -1;
    for (size_t i = 0; args[i] != NULL; i++) {
        argv[i + 2] = (char *)args[i];
    }
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO), 0);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(fds[1]);
    *ret_pipe = fds[0];
    return pid;
}

/* A process that has registered "/w" and lives until it is killed. */
static pid_t start_holder(const char *run)
{
    int fd = -1;
    char byte = 0;
    const char *const args[] = { "hold", style_names[TRUST_CODEX], file, run, NULL };
    pid_t pid = start_worker(args, &fd);
    assert_int_equal(read(fd, &byte, 1), 1);
    (void)close(fd);
    return pid;
}

static void kill_and_reap(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_killed_run_is_swept(void **state)
{
    static const char before[] = "# mine\na = 1\n[projects.\"/own\"]\ntrust_level = \"trusted\"\n";
    write_text(file, before);
    enter(TRUST_CODEX, "/own", "r0", TRUST_OWN);
    pid_t one = start_holder("r1");
    pid_t two = start_holder("r2");
    enter(TRUST_CODEX, "/v", "r3", TRUST_ADDED);
    kill_and_reap(one);
    struct trust_swept swept = sweep(TRUST_CODEX, NULL);
    assert_int_equal(swept.runs, 1);
    assert_int_equal(swept.entries, 0);
    assert_int_equal(swept.kept, 2);
    assert_true(text_has(file, "[projects.\"/w\"]"));
    kill_and_reap(two);
    swept = sweep(TRUST_CODEX, NULL);
    assert_int_equal(swept.entries, 1);
    assert_int_equal(swept.kept, 1);
    assert_false(text_has(file, "[projects.\"/w\"]"));
    leave(TRUST_CODEX, "/v", "r3");
    assert_text(file, before);
    assert_clean();
}

static void test_zombie_is_dead(void **state)
{
    siginfo_t info;
    write_text(file, "a = 1\n");
    pid_t pid = start_holder("r1");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_text(file, "a = 1\n");
}

static void test_next_run_inherits_from_a_killed_one(void **state)
{
    write_text(file, "a = 1\n");
    kill_and_reap(start_holder("r1"));
    enter(TRUST_CODEX, "/w", "r2", TRUST_JOINED);
    leave(TRUST_CODEX, "/w", "r2");
    assert_text(file, "a = 1\n");
    assert_clean();
}

static bool nobody(void *self, const char *run_id, bool process_alive)
{
    assert_true(process_alive);
    assert_string_equal(run_id, "r1");
    return false;
}

static void test_port_overrules(void **state)
{
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    assert_int_equal(sweep(TRUST_CODEX, NULL).kept, 1);
    assert_int_equal(sweep(TRUST_CODEX, &(struct trust_port) { nobody, NULL }).entries, 1);
    assert_text(file, "a = 1\n");
}

/* Sets one field of the only run in the ledger. */
static void forge(const char *field, struct json *(*make)(struct arena *a))
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *doc = NULL;
    assert_int_equal(file_read(AT_FDCWD, with(".cinch.json"), BUF_TEXT, &text, NULL), 0);
    assert_int_equal(json_parse(a, buf_str(&text), NULL, &doc, NULL), 0);
    struct json *run = json_pointer(doc, STR("/entries/~1w/runs/0"));
    assert_non_null(run);
    assert_non_null(json_get(run, field));
    json_setc(a, run, field, make(a));
    buf_reset(&text);
    assert_int_equal(json_write(doc, JSON_PRETTY, &text, NULL), 0);
    write_text(with(".cinch.json"), text.ptr);
}

static struct json *other_start(struct arena *a)
{
    return json_integer(a, 1);
}

static struct json *other_word(struct arena *a)
{
    return json_cstr(a, "other");
}

/* A process id says little: it may be of another process by now, of another boot, of another
 * namespace. */
static void test_process_identity(void **state)
{
    write_text(file, "a = 1\n");
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    forge("space", other_word);
    forge("start", other_start); /* says nothing: in that namespace the id is somebody else's */
    assert_int_equal(sweep(TRUST_CODEX, NULL).kept, 1);
    forge("boot", other_word);
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED);
    assert_int_equal(sweep(TRUST_CODEX, NULL).kept, 1);
    forge("start", other_start);
    assert_int_equal(sweep(TRUST_CODEX, NULL).entries, 1);
    assert_text(file, "a = 1\n");
    assert_clean();
}

enum { WORKERS = 8, ROUNDS = 8 }; /* 4 operations in a round: 256 in all */

/* Eight processes, each with registrations and removals in the same directory and in its own. */
static void churn_in_parallel(enum trust_style style, const char *before)
{
    pid_t pids[WORKERS];
    int pipes[WORKERS];
    char count[16];
    use_style(style);
    (void)snprintf(count, sizeof count, "%d", ROUNDS);
    if (before != NULL) {
        write_text(file, before);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        const char *const args[] = { "churn", style_names[style], file, count, NULL };
        pids[i] = start_worker(args, &pipes[i]);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        (void)close(pipes[i]);
    }
    if (before != NULL) {
        assert_text(file, before);
    } else {
        assert_false(file_exists(AT_FDCWD, file));
    }
    assert_clean();
}

static void test_parallel_processes(void **state)
{
    churn_in_parallel(TRUST_CODEX,
                      "# mine\na = 1\n\n[projects.\"/x\"]\ntrust_level = 'trusted' # c");
    churn_in_parallel(TRUST_GEMINI, "{\n  \"/x\": \"DO_NOT_TRUST\"\n}\n");
    churn_in_parallel(TRUST_CLAUDE, NULL);
}

/* Workers die at any point; what they leave is always a good file and swept in the end. */
static void test_killed_anywhere(void **state)
{
    static const char before[] = "# mine\na = 1\n";
    write_text(file, before);
    for (long i = 0; i < 40; i++) {
        const char *const args[] = { "churn", style_names[TRUST_CODEX], file, "100000", NULL };
        int fd = -1;
        char byte = 0;
        pid_t pid = start_worker(args, &fd);
        assert_int_equal(read(fd, &byte, 1), 1);
        (void)close(fd);
        struct timespec t = { .tv_nsec = i * 137000 }; /* anywhere in its few operations a round */
        (void)nanosleep(&t, NULL);
        kill_and_reap(pid);
        if (i % 4 == 3) {
            (void)sweep(TRUST_CODEX, NULL);
            assert_text(file, before);
        }
    }
    enter(TRUST_CODEX, "/w", "r1", TRUST_ADDED); /* overwrites what lies around half-written */
    leave(TRUST_CODEX, "/w", "r1");
    assert_text(file, before);
    assert_clean();
}

/* --- the worker --- */

static bool registered(const struct trust_entry *t, const char *run)
{
    enum trust_outcome outcome = TRUST_OWN;
    struct err e = { 0 };
    if (trust_register(t, run, &outcome, &e) < 0 || outcome == TRUST_OWN) {
        (void)fprintf(stderr, "register: %s\n", e.msg);
        return false;
    }
    return text_has(t->file, t->dir);
}

static bool removed(const struct trust_entry *t, const char *run)
{
    struct err e = { 0 };
    if (trust_remove(t, run, &e) < 0) {
        (void)fprintf(stderr, "remove: %s\n", e.msg);
        return false;
    }
    return true;
}

/* Two runs, one in the directory of all and one in its own, in any order. */
static bool churn_once(enum trust_style style, const char *path, int i)
{
    char one[64];
    char two[64];
    char own[64];
    (void)snprintf(one, sizeof one, "run-%d-%d-one", (int)getpid(), i);
    (void)snprintf(two, sizeof two, "run-%d-%d-two", (int)getpid(), i);
    (void)snprintf(own, sizeof own, "/own-%d", (int)getpid());
    struct trust_entry a = { style, path, i % 2 == 0 ? "/w" : own };
    struct trust_entry b = { style, path, i % 2 == 0 ? own : "/w" };
    if (!registered(&a, one) || !registered(&b, two)) {
        return false;
    }
    return i % 4 < 2 ? removed(&a, one) && removed(&b, two) : removed(&b, two) && removed(&a, one);
}

static bool signal_ready(void)
{
    return write(STDOUT_FILENO, "r", 1) == 1;
}

static int worker(int argc, char **argv)
{
    enum trust_style style;
    int64_t count = 0;
    if (argc != 6 || !trust_style_of(argv[3], &style)) {
        return 2;
    }
    if (strcmp(argv[2], "hold") == 0) {
        struct trust_entry t = { style, argv[4], "/w" };
        if (trust_register(&t, argv[5], NULL, NULL) < 0 || !signal_ready()) {
            return 1;
        }
        for (;;) {
            (void)pause();
        }
    }
    if (!str_to_i64(str_of(argv[5]), &count)) {
        return 2;
    }
    (void)signal_ready();
    for (int i = 0; i < count; i++) {
        if (!churn_once(style, argv[4], i)) {
            return 1;
        }
    }
    return 0;
}

#define TRUST_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "worker") == 0) {
        return worker(argc, argv);
    }
    const struct CMUnitTest tests[] = {
        TRUST_TEST(test_bytes_come_back),
        TRUST_TEST(test_odd_directories),
        TRUST_TEST(test_users_entry_survives),
        TRUST_TEST(test_users_refusal_is_respected),
        TRUST_TEST(test_corrupt_file_is_untouched),
        TRUST_TEST(test_missing_file_comes_and_goes),
        TRUST_TEST(test_made_file_stays_when_used),
        TRUST_TEST(test_file_rewritten_meanwhile),
        TRUST_TEST(test_link_mode_owner_stay),
        TRUST_TEST(test_last_run_removes),
        TRUST_TEST(test_failed_removal_is_left_to_the_sweep),
        TRUST_TEST(test_failed_registration_leaves_no_note),
        TRUST_TEST(test_file_changed_under_the_edit),
        TRUST_TEST(test_damaged_ledger_is_refused),
        TRUST_TEST(test_killed_run_is_swept),
        TRUST_TEST(test_zombie_is_dead),
        TRUST_TEST(test_next_run_inherits_from_a_killed_one),
        TRUST_TEST(test_port_overrules),
        TRUST_TEST(test_process_identity),
        TRUST_TEST(test_parallel_processes),
        TRUST_TEST(test_killed_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

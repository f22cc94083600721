/* SPDX-License-Identifier: MIT
 *
 * A whole record from open to finish, held against the schemas while it runs and after; no secret
 * in any file; a full disk.
 */
#include "record/record.h"

#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "record/redact.h"
#include "scratch.h"

extern char **environ;

static void assert_valid(const char *dir, bool running)
{
    const char *const argv[] = { "/usr/bin/python3", VALIDATE, dir, running ? "--running" : NULL,
                                 NULL };
    pid_t pid;
    int status;
    assert_int_equal(
        posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ), 0);
    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    assert_int_equal(status, 0);
}

static const char secret[] = "x hunter2-secret y";

static void fill(struct record *rec, struct arena *a)
{
    struct event_prompt p = {
        .ns = secret, .key = "k", .adapter = "command", .session_id = secret
    };
    const char *const argv[] = { "/bin/agent", secret, NULL };
    char id[ID_LEN];
    struct json *tree = json_object(a);
    json_setc(a, tree, "text", json_cstr(a, secret));
    record_phase(rec, "execute");
    events_render_start(&rec->events, &p);
    events_render_complete(&rec->events, &p, 1, 0, 10);
    events_prompt_rendered(&rec->events, &p, str_of(secret), id);
    events_rendered_tools(&rec->events, &p, id, NULL);
    events_call_start(&rec->events, &p, secret, NSEC_PER_SEC);
    events_spawned(&rec->events, 4711, argv, secret);
    transcript_start(&rec->transcript, secret, "command");
    for (enum entry_type t = 0; t < ENTRY_TYPE_MAX; t++) {
        struct transcript_entry entry = { .type = t, .detail = tree, .raw = str_of(secret) };
        transcript_add(&rec->transcript, &entry);
    }
    logfile_write(&rec->out, STR("out hunter2-sec"));
    logfile_write(&rec->out, STR("ret\n"));
    logfile_write(&rec->err, STR("err hunter2-secret\n"));
    events_tool_invoked(&rec->events, &p,
                        &(struct event_tool) { secret, tree, tree, str_of(secret), secret });
    events_exited(&rec->events, 4711, (struct engine_exit) { ENGINE_EXITED, 0 }, NSEC_PER_SEC);
    events_warning(&rec->events, secret);
    events_call_complete(&rec->events, &p, &(struct event_call) { NSEC_PER_SEC, 1, 2, secret });
    events_executed(&rec->events, &p, &(struct event_executed) { str_of(secret), tree, 1, 2, -1 });
}

/* Of every file below the directory. */
static void assert_no_secret(struct scratch *s, const struct rundir *d)
{
    struct json *files = rundir_list(d, s->arena);
    json_push(s->arena, files, json_cstr(s->arena, "manifest.json"));
    json_push(s->arena, files, json_cstr(s->arena, "state.json"));
    assert_true(json_len(files) >= 10);
    for (size_t i = 0; i < json_len(files); i++) {
        const char *name = json_cstring(json_item(files, i), "");
        struct str text = scratch_read(s, arena_printf(s->arena, "%s/%s", d->path, name));
        if (str_find(text, STR("hunter2")) < text.len) {
            fail_msg("the secret is in %s", name);
        }
    }
}

static void a_whole_run_is_valid_and_clean(void **state)
{
    struct scratch *s = *state;
    struct arena *a = s->arena;
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("KEY"), STR("hunter2-secret"), NULL), 0);
    redactor_compile(r);
    struct record rec;
    const char *dir = scratch_path(s, "out");
    struct record_opts opts = { .path = dir, .adapter = "command", .redactor = r };
    assert_int_equal(record_open(&rec, &opts, NULL), 0);
    record_phase(&rec, "admit");
    assert_int_equal(record_write_json(
                         &rec, "task.json",
                         scratch_json(s, STR("{\"version\":1,\"name\":\"hunter2-secret\"}")), NULL),
                     0);
    assert_int_equal(record_write_text(&rec, "logs/prompt.txt", str_of(secret), NULL), 0);
    struct summary sum = { .adapter = "command",
                           .engine = { "agent", NULL, secret },
                           .text = STR("done") };
    assert_int_equal(record_announce(&rec, &sum, NULL), 0);
    fill(&rec, a);
    record_beat(&rec);
    assert_valid(dir, true);
    sum.reason = REASON_SUCCESS;
    sum.engine_exit = (struct engine_exit) { ENGINE_EXITED, 0 };
    sum.text = str_of(secret);
    sum.session_id = secret;
    assert_int_equal(record_finish(&rec, &sum, NULL), 0);
    assert_valid(dir, false);
    assert_no_secret(s, &rec.dir);
    assert_str_eq(scratch_read(s, "out/stdout.log"), "out [REDACTED:KEY]\n");
    assert_int_equal(sum.redactions, 2);
    assert_int_equal(sum.bytes.out, 19);
    struct json *metrics = scratch_json(s, scratch_read(s, "out/metrics.json"));
    assert_int_equal(json_len(json_pointer(metrics, STR("/ext/phase_ms"))), 2);
    record_done(&rec);
    record_done(&rec);
}

static void a_refused_run_has_a_record_too(void **state)
{
    struct scratch *s = *state;
    struct record rec;
    const char *dir = scratch_path(s, "out");
    struct record_opts opts = { .path = dir, .adapter = "none" };
    assert_int_equal(record_open(&rec, &opts, NULL), 0);
    record_phase(&rec, "admit");
    struct summary sum = { .reason = REASON_MISSING_INPUT, .error = "prompt file 'x' is missing" };
    assert_int_equal(record_finish(&rec, &sum, NULL), 0);
    record_done(&rec);
    assert_valid(dir, false);
    struct json *manifest = scratch_json(s, scratch_read(s, "out/manifest.json"));
    assert_int_equal(json_int(json_get(manifest, "exit_code"), 0), 66);
    struct json *metrics = scratch_json(s, scratch_read(s, "out/metrics.json"));
    assert_int_equal(json_int(json_get(metrics, "exit_code"), 0), 1);
}

/* A file system of 4 MiB, in a mount namespace of the test's own. */
static bool mount_small(const char *path)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("small", path, "tmpfs", 0, "size=4m") == 0;
}

static void a_full_disk_still_takes_the_verdict(void **state)
{
    struct scratch *s = *state;
    if (!mount_small(s->path)) {
        print_message("no mount namespace here: skipped\n");
        skip();
    }
    struct record rec;
    const char *dir = scratch_path(s, "out");
    struct record_opts opts = { .path = dir, .adapter = "command" };
    assert_int_equal(record_open(&rec, &opts, NULL), 0);
    record_phase(&rec, "execute");
    char chunk[65536];
    memset(chunk, 'x', sizeof chunk);
    for (int i = 0; i < 100; i++) {
        logfile_write(&rec.out, str_n(chunk, sizeof chunk));
    }
    assert_true(rec.loss.times > 0);
    struct summary sum = { .reason = REASON_SUCCESS, .engine_exit = { ENGINE_EXITED, 0 } };
    assert_int_equal(record_finish(&rec, &sum, NULL), 0);
    assert_int_equal(sum.bytes.out, 100 * (int64_t)sizeof chunk);
    assert_int_equal(sum.bytes.lost + (int64_t)rec.out.written, sum.bytes.out);
    record_done(&rec);
    assert_valid(dir, false);
    struct json *manifest = scratch_json(s, scratch_read(s, "out/manifest.json"));
    assert_int_equal(json_len(json_get(manifest, "warnings")), 1);
    assert_non_null(strstr(word(manifest, "/warnings/0"), "the record is not complete"));
    assert_int_equal(umount2(s->path, MNT_DETACH), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_whole_run_is_valid_and_clean),
        SCRATCH_TEST(a_refused_run_has_a_record_too),
        SCRATCH_TEST(a_full_disk_still_takes_the_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * By whose credential the agent is let in at the provider's. With `gateway` it is one that cinch
 * holds, and all of that is in gateway_plan.c. With `host` it is the user's own login: a copy of
 * its file goes into the run's home. With `env` it is variables of the caller's. In both the
 * gateway passes on what the harness sends.
 *
 * What is missing or has expired is told before anything starts, with the command that helps.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "config/login.h"
#include "record/redact.h"
#include "run/run_priv.h"

const char *auth_variable(const struct run *run, const char *name)
{
    size_t len = strlen(name);
    for (const char *const *p = run->opts->environ; p != NULL && *p != NULL; p++) {
        if (strncmp(*p, name, len) == 0 && (*p)[len] == '=' && (*p)[len + 1] != '\0') {
            return *p + len + 1;
        }
    }
    return json_cstring(json_get(run->plan->settings.api_keys, name), NULL);
}

static const char *date_of(struct arena *a, int64_t seconds)
{
    char iso[CLOCK_ISO_LEN];
    int64_t most = INT64_MAX / NSEC_PER_SEC;
    return arena_dup(a, str_of(clock_iso((seconds > most ? most : seconds) * NSEC_PER_SEC, iso)));
}

static bool is_over(int64_t seconds)
{
    return seconds <= clock_wall() / NSEC_PER_SEC;
}

/* --- host --- */

static void add_secret(void *arg, struct str value)
{
    struct run *run = arg;
    if (value.len <= REDACT_VALUE_MAX) {
        secrets_add(run->arena, &run->draft->secrets, "LOGIN", value);
    }
}

/* Where the user has it; NULL: nowhere, as nobody has a home. */
static const char *path_of(struct run *run, const struct profile_login *l)
{
    const char *moved = l->variable == NULL ? NULL : auth_variable(run, l->variable);
    const char *home = auth_variable(run, "HOME");
    if (moved != NULL) {
        struct str name = path_base(str_of(l->file));
        return arena_printf(run->arena, "%s/%.*s", moved, STR_ARG(name));
    }
    return home == NULL ? NULL : arena_printf(run->arena, "%s/%s", home, l->file);
}

static int check_expiry(struct run *run, const struct json *tree, struct err *e)
{
    const struct run_auth *auth = &run->plan->auth;
    int64_t when;
    const struct json *at =
        auth->login->expires == NULL ? NULL : json_pointer(tree, str_of(auth->login->expires));
    if (login_expires(run->arena, at, &when) && is_over(when)) {
        return ERR(e, ERR_SECRET, "the login in '%.200s' expired at %s: run `%s`", auth->path,
                   date_of(run->arena, when), run->plan->settings.profile->auth.login);
    }
    return 0;
}

/* 1: this is the login; 0: it is not there, or another kind. */
static int try_login(struct run *run, const struct profile_login *l, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(LOGIN_MAX);
    const char *path = path_of(run, l);
    if (path == NULL || !file_exists(AT_FDCWD, path)) {
        return 0;
    }
    if (file_read(AT_FDCWD, path, LOGIN_MAX, &text, e) < 0) {
        e->code = ERR_SECRET;
        return err_wrap(e, "login");
    }
    struct json *tree = login_read(run->arena, buf_str(&text));
    struct str credential =
        json_str(l->has == NULL ? NULL : json_pointer(tree, str_of(l->has)), STR_EMPTY);
    if (l->has != NULL && credential.len == 0) {
        return 0;
    }
    if (l->cannot != NULL) {
        return ERR(e, ERR_UNSUPPORTED, "the login in '%.200s' cannot be used: %s", path, l->cannot);
    }
    run->draft->auth.login = l;
    run->draft->auth.path = path;
    run->draft->auth.content = arena_str(run->arena, buf_str(&text));
    login_secrets(tree, add_secret, run);
    if (credential.len >= REDACT_VALUE_MIN) {
        add_secret(run, credential);
    }
    int r = check_expiry(run, tree, e);
    return r < 0 ? r : 1;
}

static int plan_host(struct run *run, struct err *e)
{
    const struct profile *p = run->plan->settings.profile;
    if (p->auth.logins_len == 0) {
        return ERR(e, ERR_UNSUPPORTED,
                   "adapter '%s' has no login to use: try --auth gateway or --auth env", p->name);
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->auth.logins_len; i++) {
        r = try_login(run, &p->auth.logins[i], e);
    }
    if (r == 0) {
        return ERR(e, ERR_SECRET, "you are not logged in for adapter '%s' (no '~/%s'): run `%s`",
                   p->name, p->auth.logins[0].file, p->auth.login);
    }
    return r < 0 ? r : 0;
}

/* --- env --- */

static int plan_env(struct run *run, struct err *e)
{
    const struct profile *p = run->plan->settings.profile;
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    size_t found = 0;
    for (size_t i = 0; i < json_len(p->auth.env); i++) {
        const char *name = json_cstring(json_item(p->auth.env, i), "");
        const char *value = auth_variable(run, name);
        int64_t when;
        buf_addf(&names, "%s%s", i == 0 ? "" : ", ", name);
        if (value == NULL) {
            continue;
        }
        found++;
        secrets_give(run->arena, &run->draft->secrets, name, str_of(value));
        if (login_expires(run->arena, json_cstr(run->arena, value), &when) && is_over(when)) {
            return ERR(e, ERR_SECRET,
                       "the token in %s expired at %s: set it again with 'export %s=…'", name,
                       date_of(run->arena, when), name);
        }
    }
    if (found > 0 || json_len(run->plan->settings.secret_names) > 0) {
        return 0; /* whether those are there is asked elsewhere */
    }
    if (names.len == 0) {
        return ERR(e, ERR_UNSUPPORTED,
                   "adapter '%s' does not declare which variables hold credentials: name them with "
                   "--secret NAME",
                   p->name);
    }
    return ERR(e, ERR_SECRET, "adapter '%s' needs a credential by environment (%s): export %s=…",
               p->name, names.ptr, json_cstring(json_item(p->auth.env, 0), ""));
}

/* --- for a run --- */

void auth_plan(struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    struct err *e = &run->draft->auth.error;
    if (p == NULL || run->plan->settings.auth == AUTH_GATEWAY) {
        return;
    }
    if (driver_is_kind(p, DRIVER_MODEL_LOOP)) {
        (void)!ERR(e, ERR_UNSUPPORTED,
                   "adapter '%s' starts no program: its credential is the gateway's", p->name);
    } else if (run->plan->settings.auth == AUTH_HOST) {
        (void)!plan_host(run, e);
    } else {
        (void)!plan_env(run, e);
    }
}

int auth_admit(const struct run *run, struct err *e)
{
    if (run->plan->auth.error.code != ERR_OK) {
        *e = run->plan->auth.error;
        return -(int)e->code;
    }
    return 0;
}

int auth_install(struct run *run, struct err *e)
{
    if (run->plan->auth.login == NULL || run->plan->settings.home != HOME_PRIVATE) {
        return 0;
    }
    int r = home_write(run, run->plan->auth.login->file, run->plan->auth.content, e);
    return r < 0 ? err_wrap(e, "login") : 0;
}

void auth_inspect(struct run *run)
{
    CLEANUP(buf) struct buf now = BUF_INIT(LOGIN_MAX);
    const struct profile_login *l = run->plan->auth.login;
    if (l == NULL || run->plan->settings.home != HOME_PRIVATE || run->paths.home == NULL) {
        return;
    }
    const char *path = arena_printf(run->arena, "home/%s", l->file);
    CLEANUP(fd) int fd = file_open_below(run->record.dir.dir_fd, str_of(path));
    if (fd < 0 || file_read_fd(fd, l->file, LOGIN_MAX, &now, NULL) < 0 ||
        str_eq(buf_str(&now), run->plan->auth.content)) {
        return;
    }
    run_warn(
        run,
        "the harness has renewed its login in this run's copy, which is not kept: should yours "
        "not be accepted any more, run `%s`",
        run->plan->settings.profile->auth.login);
}

const char *auth_advice(const struct run *run)
{
    const struct profile *p = run->plan->settings.profile;
    const char *key = gateway_key(run);
    switch (run->plan->settings.auth) {
    case AUTH_HOST:
        return arena_printf(run->arena, "run `%s`", p->auth.login);
    case AUTH_ENV:
        key = json_cstring(json_item(p->auth.env, 0), NULL);
        break;
    case AUTH_GATEWAY:
        break;
    }
    return key == NULL ? "no key is configured for it; name the variable that holds one with `key` "
                         "in gateway.routes"
                       : arena_printf(run->arena, "set %s to a valid one: `export %s=…`", key, key);
}

void auth_judge(struct run *run)
{
    enum { WORDS_MAX = 16 << 10 };
    CLEANUP(buf) struct buf last = BUF_INIT(WORDS_MAX);
    const struct profile *p = run->plan->settings.profile;
    if (run->cause.reason != REASON_FAILURE || p == NULL || json_len(p->auth.refused) == 0) {
        return;
    }
    last_output_read(run, "stderr.log", &last);
    for (size_t i = 0; i < json_len(p->auth.refused); i++) {
        struct str words = json_str(json_item(p->auth.refused, i), STR_EMPTY);
        const struct str said[] = { run->outcome.report.error, run->outcome.report.text,
                                    buf_str(&last) };
        for (size_t j = 0; j < ARRAY_LEN(said); j++) {
            if (words.len > 0 && str_find(said[j], words) < said[j].len) {
                run_fail(run, REASON_AUTH, "the agent is not logged in (it printed '%.*s'): %s",
                         STR_ARG(str_slice(words, 0, 80)), auth_advice(run));
                return;
            }
        }
    }
}

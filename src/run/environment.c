/* SPDX-License-Identifier: MIT
 *
 * Builds the child's environment as an ordered object of name -> {value, origin}, then flattens it.
 */
#include "run/environment.h"

#include <inttypes.h>
#include <stdio.h>

struct building {
    struct arena *a;
    struct json *vars; /* name -> {value, origin} */
    struct err *e;
};

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return s.len > 0;
}

static void put(struct building *b, struct str name, struct str value, const char *origin)
{
    struct json *var = json_object(b->a);
    json_setc(b->a, var, "value", json_string(b->a, value));
    json_setc(b->a, var, "origin", json_cstr(b->a, origin));
    json_set(b->a, b->vars, name, var);
}

static void putc_if(struct building *b, const char *name, const char *value, const char *origin)
{
    if (value != NULL) {
        put(b, str_of(name), str_of(value), origin);
    }
}

/* What a program needs to find its way about the machine, and nothing that tells who the user is to
 * a service. */
static bool allowed(struct str name)
{
    static const char *const names[] = { "PATH",     "LANG",          "LANGUAGE",    "TZ",
                                         "USER",     "LOGNAME",       "SHELL",       "TMPDIR",
                                         "HOSTNAME", "SSL_CERT_FILE", "SSL_CERT_DIR" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqc(name, names[i])) {
            return true;
        }
    }
    return str_starts(name, STR("LC_"));
}

/* Variables that would lead the child out of its own home, or make a harness believe that it runs
 * inside another session of itself. */
static bool never(struct str name, bool private_home)
{
    return str_eqc(name, "CLAUDECODE") ||
           (private_home &&
            (str_starts(name, STR("XDG_")) || str_eqc(name, "CODEX_HOME") ||
             str_eqc(name, "CLAUDE_CONFIG_DIR") || str_eqc(name, "GEMINI_CLI_HOME")));
}

/* A credential that the gateway uses stays out, also when somebody asks for it by name. */
static bool is_withheld(const struct environment_input *in, struct str name)
{
    for (const char *const *p = in->withheld; p != NULL && *p != NULL; p++) {
        if (str_eqc(name, *p)) {
            return true;
        }
    }
    return false;
}

/* What of the caller's is true everywhere. */
static bool is_universal(struct str name)
{
    return str_eqc(name, "LANG") || str_eqc(name, "LANGUAGE") || str_eqc(name, "TZ") ||
           str_starts(name, STR("LC_"));
}

static void add_caller(struct building *b, const struct environment_input *in)
{
    for (const char *const *p = in->caller; p != NULL && *p != NULL; p++) {
        struct str value = str_of(*p);
        struct str name = str_split(&value, '=');
        bool elsewhere = in->foreign || in->image_env != NULL;
        bool wanted = elsewhere ? is_universal(name) ||
                                      (in->home == NULL && !in->foreign && str_eqc(name, "HOME"))
                                : allowed(name) || in->settings->env_inherit ||
                                      (in->home == NULL && str_eqc(name, "HOME"));
        if (value.ptr != NULL && wanted && is_name(name) && !never(name, in->home != NULL) &&
            !is_withheld(in, name)) {
            put(b, name, value, "caller");
        }
    }
}

/* What an image sets for its programs: PATH above all. Its home and users are not there. */
static void add_image(struct building *b, const struct environment_input *in)
{
    if (in->image_env == NULL) {
        return;
    }
    putc_if(b, "PATH", ENVIRONMENT_IMAGE_PATH, "image");
    for (size_t i = 0; i < json_len(in->image_env); i++) {
        struct str value = json_str(json_item(in->image_env, i), STR_EMPTY);
        struct str name = str_split(&value, '=');
        bool ours = str_eqc(name, "HOME") || str_eqc(name, "USER") || str_eqc(name, "LOGNAME") ||
                    str_eqc(name, "TMPDIR") || str_eqc(name, "PWD") || str_eqc(name, "HOSTNAME");
        if (is_name(name) && value.ptr != NULL && !ours && !str_has_nul(value) &&
            !never(name, in->home != NULL) && !is_withheld(in, name)) {
            put(b, name, value, "image");
        }
    }
}

static void add_quiet(struct building *b)
{
    static const char *const quiet[][2] = {
        { "TERM", "dumb" },
        { "NO_COLOR", "1" },
        { "PAGER", "cat" },
        { "GIT_PAGER", "cat" },
        { "MANPAGER", "cat" },
        { "GIT_TERMINAL_PROMPT", "0" },
        { "GIT_EDITOR", "true" },
        { "GIT_SSH_COMMAND", "ssh -oBatchMode=yes" },
        { "SSH_ASKPASS_REQUIRE", "never" },
        { "DEBIAN_FRONTEND", "noninteractive" },
    };
    for (size_t i = 0; i < ARRAY_LEN(quiet); i++) {
        putc_if(b, quiet[i][0], quiet[i][1], "quiet");
    }
}

static const char *tristate_word(enum tristate t)
{
    return t == TRI_UNSET ? NULL : t == TRI_TRUE ? "true" : "false";
}

static void add_contract(struct building *b, const struct environment_input *in)
{
    const struct settings *s = in->settings;
    nsec seconds = (in->timeout + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
    int64_t number = s->run_number == 0 ? 1 : s->run_number;
    putc_if(b, "MODEL", s->model, "contract");
    putc_if(b, "TIER", s->tier, "contract");
    putc_if(b, "TIER_NAME", s->tier_name, "contract");
    putc_if(b, "RUN_NUMBER", arena_printf(b->a, "%02" PRId64, number), "contract");
    putc_if(b, "TEST_ID", s->test_id, "contract");
    putc_if(b, "TIMEOUT", arena_printf(b->a, "%" PRId64, seconds), "contract");
    putc_if(b, "TOOLS_ENABLED", tristate_word(s->tools_enabled), "contract");
    putc_if(b, "DELEGATION_ENABLED", tristate_word(s->delegation_enabled), "contract");
    putc_if(b, "CINCH_RUN_ID", in->run_id, "cinch");
    putc_if(b, "CINCH_PROMPT_FILE", in->prompt_file, "cinch");
    putc_if(b, "CINCH_WORKSPACE", in->workspace, "cinch");
    putc_if(b, "CINCH_OUTPUT_DIR", in->output_dir, "cinch");
    putc_if(b, "CINCH_CONFIG_FILE", in->config_file, "cinch");
    putc_if(b, "CINCH_ARTIFACTS_DIR", in->artifacts_dir, "cinch");
    putc_if(b, "CINCH_SKILLS_DIR", in->skills_dir, "cinch");
    putc_if(b, "CINCH_OUTPUT_SCHEMA", in->schema_file, "cinch");
    putc_if(b, "HOME", in->home, "cinch");
    if (in->user != NULL) {
        /* The caller's would lead nowhere: the sandbox has a /tmp and users of its own. */
        putc_if(b, "TMPDIR", "/tmp", "sandbox");
        putc_if(b, "USER", in->user, "sandbox");
        putc_if(b, "LOGNAME", in->user, "sandbox");
    }
}

static int check_name(struct str name, struct err *e)
{
    return is_name(name) ? 0
                         : ERR(e, ERR_CONFIG, "'%.*s' is not a name for an environment variable",
                               STR_ARG(name));
}

int environment_names(const struct settings *s, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(s->env_set); i++) {
        r = check_name(s->env_set->object.members[i].key, e);
    }
    for (size_t i = 0; r == 0 && i < json_len(s->env_pass); i++) {
        r = check_name(json_str(json_item(s->env_pass, i), STR_EMPTY), e);
    }
    return r;
}

/* Without the names in `in->withheld`; `in` may be NULL. */
static int add_object(struct building *b, const struct json *vars,
                      const struct environment_input *in, const char *origin)
{
    for (size_t i = 0; i < json_len(vars); i++) {
        const struct json_member *m = &vars->object.members[i];
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        int r = check_name(m->key, b->e);
        if (r < 0) {
            return r;
        }
        if (in != NULL && is_withheld(in, m->key)) {
            continue;
        }
        if (json_is(m->value, JSON_STRING)) {
            buf_add(&text, m->value->string);
        } else if (!json_is(m->value, JSON_NULL)) {
            (void)!json_write(m->value, JSON_COMPACT, &text, NULL);
        }
        if (str_has_nul(buf_str(&text))) {
            return ERR(b->e, ERR_CONFIG, "the value of '%.*s' contains a NUL byte",
                       STR_ARG(m->key));
        }
        put(b, m->key, buf_str(&text), origin);
    }
    return 0;
}

static int add_passed(struct building *b, const struct environment_input *in)
{
    const struct json *pass = in->settings->env_pass;
    for (size_t i = 0; i < json_len(pass); i++) {
        struct str name = json_str(json_item(pass, i), STR_EMPTY);
        int r = check_name(name, b->e);
        if (r < 0) {
            return r;
        }
        for (const char *const *p = in->caller; p != NULL && *p != NULL; p++) {
            struct str value = str_of(*p);
            if (str_eq(str_split(&value, '='), name) && value.ptr != NULL &&
                !is_withheld(in, name)) {
                put(b, name, value, "passed");
            }
        }
    }
    return 0;
}

static int add_secrets(struct building *b, const struct environment_input *in)
{
    const struct secrets *secrets = in->secrets;
    for (size_t i = 0; i < secrets->len; i++) {
        const struct secret *s = &secrets->items[i];
        if (!s->to_child || is_withheld(in, str_of(s->name))) {
            continue;
        }
        if (!is_name(str_of(s->name)) || str_has_nul(s->value)) {
            return ERR(b->e, ERR_CONFIG, "secret '%s' cannot be an environment variable", s->name);
        }
        put(b, str_of(s->name), s->value, "secret");
    }
    return 0;
}

static void flatten(struct building *b, struct environment *ret)
{
    size_t n = json_len(b->vars);
    ret->envp = arena_array(b->a, n + 1, sizeof *ret->envp);
    ret->names = json_array(b->a);
    for (size_t i = 0; i < n; i++) {
        const struct json_member *m = &b->vars->object.members[i];
        struct str value = json_str(json_get(m->value, "value"), STR_EMPTY);
        const char *origin = json_cstring(json_get(m->value, "origin"), "");
        ret->envp[i] = arena_printf(b->a, "%s=%s", m->key.ptr, value.ptr);
        bool hidden = strcmp(origin, "secret") == 0 || secret_like_name(m->key);
        struct json *shown = json_object(b->a);
        json_setc(b->a, shown, "name", json_string(b->a, m->key));
        json_setc(b->a, shown, "value", hidden ? json_null(b->a) : json_string(b->a, value));
        json_setc(b->a, shown, "origin", json_cstr(b->a, origin));
        json_push(b->a, ret->names, shown);
    }
}

/* As its `activate` does: its programs come before all others. */
static void add_python(struct building *b, const struct environment_input *in)
{
    const struct json *path = json_get(json_get(b->vars, "PATH"), "value");
    if (in->python_env != NULL) {
        putc_if(b, "VIRTUAL_ENV", in->python_env, "skill");
        putc_if(b, "PATH",
                arena_printf(b->a, "%s/bin:%s", in->python_env,
                             json_cstring(path, ENVIRONMENT_IMAGE_PATH)),
                "skill");
    }
}

int environment_build(struct arena *a, const struct environment_input *in, struct environment *ret,
                      struct err *e)
{
    struct building b = { .a = a, .vars = json_object(a), .e = e };
    add_caller(&b, in);
    add_image(&b, in);
    add_quiet(&b);
    add_contract(&b, in);
    int r = add_object(&b, in->adapter_env, NULL, "adapter");
    if (r == 0) {
        r = add_object(&b, in->resource_env, in, "resource");
    }
    if (r == 0) {
        r = add_passed(&b, in);
    }
    if (r == 0) {
        r = add_object(&b, in->settings->env_set, in, "task");
    }
    if (r < 0) {
        return r;
    }
    add_python(&b, in);
    r = add_secrets(&b, in);
    if (r == 0) {
        flatten(&b, ret);
    }
    return r;
}

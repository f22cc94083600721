/* SPDX-License-Identifier: MIT
 *
 * What the harness gets of the gateway: address and token, in variables and configuration files;
 * and what it never gets.
 */
#include "run/gateway_run_priv.h"
#include "run/image.h"

/* `cinch task render` asks for a run that is none, and has no gateway. */
const char *gateway_url(const struct run *run)
{
    if (run->gateway == NULL) {
        return NULL;
    }
    return run->plan->settings.auth == AUTH_GATEWAY ? run->gateway->url : run->gateway->pass_url;
}

const char *gateway_address(const struct run *run)
{
    return run->gateway == NULL ? NULL : run->gateway->url;
}

const char *gateway_key(const struct run *run)
{
    const struct run_gateway *g = run->gateway;
    if (g == NULL || g->len == 0) {
        return NULL;
    }
    return g->routes[g->blamed].target.key;
}

const char *gateway_token(const struct run *run)
{
    return gateway_url(run) == NULL ? NULL : run->gateway->token;
}

const char *const *gateway_withheld(const struct run *run)
{
    return run->gateway->withheld;
}

/* With a credential of its own, the harness gets nothing in that place: what mentions the token is
 * left out. */
static struct json *without_token(const struct run *run, const struct json *tree)
{
    struct json *copy = tree == NULL ? NULL : json_copy(run->arena, tree);
    for (size_t i = 0; json_is(copy, JSON_OBJECT) && i < json_len(copy);) {
        struct json_member *m = &copy->object.members[i];
        struct str text = json_str(m->value, STR_EMPTY);
        bool shown = str_find(text, STR("{gateway_token}")) < text.len;
        if (shown && run->plan->settings.auth != AUTH_GATEWAY) {
            (void)json_remove(copy, m->key);
        } else {
            m->value = json_is(m->value, JSON_OBJECT) ? without_token(run, m->value) : m->value;
            i++;
        }
    }
    return copy;
}

/* As curl, git, npm, pip and most others look for it. */
static void set_proxy(struct run *run, const char *token, struct json *env)
{
    static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy" };
    const struct run_gateway *g = run->gateway;
    const char *address = strrchr(g->url, '/') + 1;
    if (g->egress == NULL) {
        return;
    }
    const char *url = arena_printf(run->arena, "http://cinch:%s@%s", token, address);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_setc(run->arena, env, names[i], json_cstr(run->arena, url));
    }
    json_setc(run->arena, env, "NO_PROXY", json_cstr(run->arena, "localhost,127.0.0.1,::1"));
    json_setc(run->arena, env, "no_proxy", json_cstr(run->arena, "localhost,127.0.0.1,::1"));
}

struct json *gateway_proxy_environment(struct run *run)
{
    const struct run_gateway *g = run->gateway;
    struct json *env = json_object(run->arena);
    if (g->url != NULL && g->proxy_token != NULL && !image_wanted(run)) {
        set_proxy(run, g->proxy_token, env);
    }
    return env;
}

int gateway_environment(struct run *run, const struct placeholders *vars, struct json *env,
                        struct err *e)
{
    const struct profile *p = run->plan->settings.profile;
    if (run->gateway->url == NULL) {
        return 0;
    }
    json_setc(run->arena, env, "CINCH_GATEWAY_URL", json_cstr(run->arena, gateway_url(run)));
    json_setc(run->arena, env, TOKEN_NAME, json_cstr(run->arena, run->gateway->token));
    set_proxy(run, run->gateway->token, env);
    int r = expand_env(run->arena, without_token(run, p->gateway.env), vars, env, e);
    return r < 0 ? err_wrap(e, "gateway of adapter '%s'", p->name) : 0;
}

/* `tree` with `over` merged over it, filled in. */
static int merge_over(struct run *run, const struct json *over, struct json **tree, struct err *e)
{
    const struct placeholder vars[] = {
        { .name = "gateway_url", .value = str_of(gateway_url(run)) },
        { .name = "gateway_token", .value = str_of(run->gateway->token) },
        { .name = "home", .value = str_of(run->paths.home) },
        { .name = "model", .value = str_of(run->plan->settings.model) },
    };
    return expand_over(run->arena, over, &(struct placeholders) { vars, ARRAY_LEN(vars) }, tree, e);
}

int gateway_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
                 struct err *e)
{
    const struct profile_login *login = run->plan->auth.login;
    const struct json *over = json_get(run->plan->settings.profile->gateway.files, name);
    *ret = tree == NULL ? json_object(run->arena) : json_copy(run->arena, tree);
    if (run->gateway->url == NULL) {
        return 0;
    }
    int r = merge_over(run, without_token(run, over), ret, e);
    if (r == 0 && login != NULL) {
        r = merge_over(run, json_get(login->files, name), ret, e);
    }
    return r < 0 ? err_wrap(e, "gateway values of '%s'", name) : 0;
}

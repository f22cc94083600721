/* SPDX-License-Identifier: MIT
 *
 * What the harness gets of the gateway: address and token, in variables and configuration files;
 * and what it never gets.
 */
#include "run/gateway_run_priv.h"

/* `cinch task render` asks for a run that is none, and has no gateway. */
const char *gateway_url(const struct run *run)
{
    return run->gateway == NULL ? NULL : run->gateway->url;
}

const char *gateway_token(const struct run *run)
{
    return gateway_url(run) == NULL ? NULL : run->gateway->token;
}

const char *const *gateway_withheld(const struct run *run)
{
    return run->gateway->withheld;
}

/* As curl, git, npm, pip and most others look for it. */
static void set_proxy(struct run *run, struct json *env)
{
    static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy" };
    const struct run_gateway *g = run->gateway;
    const char *address = strrchr(g->url, '/') + 1;
    if (g->egress == NULL) {
        return;
    }
    const char *url = arena_printf(run->arena, "http://cinch:%s@%s", g->token, address);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_setc(run->arena, env, names[i], json_cstr(run->arena, url));
    }
    json_setc(run->arena, env, "NO_PROXY", json_cstr(run->arena, "localhost,127.0.0.1,::1"));
    json_setc(run->arena, env, "no_proxy", json_cstr(run->arena, "localhost,127.0.0.1,::1"));
}

int gateway_environment(struct run *run, const struct placeholders *vars, struct json *env,
                        struct err *e)
{
    const struct profile *p = run->settings.profile;
    if (run->gateway->url == NULL) {
        return 0;
    }
    json_setc(run->arena, env, "CINCH_GATEWAY_URL", json_cstr(run->arena, run->gateway->url));
    json_setc(run->arena, env, TOKEN_NAME, json_cstr(run->arena, run->gateway->token));
    set_proxy(run, env);
    int r = expand_env(run->arena, p->gateway.env, vars, env, e);
    return r < 0 ? err_wrap(e, "gateway of adapter '%s'", p->name) : 0;
}

int gateway_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
                 struct err *e)
{
    const struct json *over = json_get(run->settings.profile->gateway.files, name);
    struct placeholder vars[] = {
        { .name = "gateway_url", .value = str_of(run->gateway->url) },
        { .name = "gateway_token", .value = str_of(run->gateway->token) },
        { .name = "home", .value = str_of(run->paths.home) },
        { .name = "model", .value = str_of(run->settings.model) },
    };
    struct json *filled = NULL;
    if (over != NULL && run->gateway->url != NULL) {
        int r = expand_tree(run->arena, over, &(struct placeholders) { vars, ARRAY_LEN(vars) },
                            &filled, e);
        if (r < 0) {
            return err_wrap(e, "gateway values of '%s'", name);
        }
    }
    *ret = json_merge(run->arena, tree == NULL ? json_object(run->arena) : tree, filled);
    return 0;
}

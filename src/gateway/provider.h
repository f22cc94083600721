/* SPDX-License-Identifier: MIT
 *
 * struct provider: where an upstream over HTTP is, and how it is addressed. Shared by the two ways
 * to get there: upstream_curl.c (TLS, proxies) and upstream_http.c (plain).
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "llm/request.h"
#include "wire/http.h"

struct provider {
    char *origin;    /* "https://host:port" */
    char *host;      /* without brackets */
    char *authority; /* for the Host field */
    char *path;      /* of the base URL, without a slash at its end */
    int port;
    bool tls;
    bool loopback;
    char *key; /* NULL: none is sent */
};

/* ERR_CONFIG when it is no base URL. */
int provider_init(struct provider *p, const char *url, const char *key, struct err *e) MUST_USE;
void provider_done(struct provider *p); /* wipes the key; idempotent */

/* Path and query below the base URL. Where its end and the beginning of the target say the same
 * version ("…/v1" and "/v1/messages") it is said once. */
void provider_target(const struct provider *p, struct str target, struct buf *out);
/* The field that carries the key in this format; the value goes into `value`. False: no key. */
bool provider_key_field(const struct provider *p, enum llm_format f, struct str *ret_name,
                        struct buf *value);

/* SPDX-License-Identifier: MIT
 *
 * A provider over HTTP or HTTPS as an upstream, by libcurl. Any base URL that speaks one of the
 * four formats: a provider, a compatible server, another cinch gateway.
 *
 *   const struct upstream_curl_opts o = { .name = "anthropic", .format = LLM_ANTHROPIC,
 *                                         .url = "https://api.anthropic.com", .key = key };
 *   upstream_curl_new(loop, &o, &up, e);
 *   …
 *   up->ops->free(up);
 *
 * The key goes into the field that the format uses for it (x-api-key, Authorization: Bearer,
 * x-goog-api-key) and nowhere else; it is wiped with the upstream. Connections are kept and reused.
 * Redirects are not followed: a key must not travel. A base URL may have a path: where its end and
 * the beginning of a target say the same version ("…/v1" and "/v1/messages") it is said once.
 */
#pragma once

#include "gateway/upstream.h"

struct loop;

struct upstream_curl_opts {
    const char *name; /* copied, as everything here */
    const char *url;  /* "https://host[:port][/path]" */
    enum llm_format format;
    unsigned formats;        /* further ones, 1u << format each */
    bool any_format;         /* all of them: another gateway */
    const char *key;         /* NULL: none is sent */
    const char *unix_socket; /* connect here instead of to the host of the URL; may be NULL */
    const char *ca_file;     /* NULL: $SSL_CERT_FILE, else the system's */
    bool send_once;          /* each request on a connection of its own: where one is reused, a
                                request must be sent again if the server had just closed it */
    nsec connect;            /* 0: 15 s */
    nsec first_byte;         /* 0: 10 minutes; models think */
    nsec idle;               /* between two bytes; 0: 5 minutes */
};

/* ERR_CONFIG when the URL is none. */
int upstream_curl_new(struct loop *l, const struct upstream_curl_opts *o, struct upstream **ret,
                      struct err *e) MUST_USE;

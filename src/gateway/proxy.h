/* SPDX-License-Identifier: MIT
 *
 * struct proxy_rules: which hosts may be reached through the gateway's proxy. Everything else is
 * refused.
 *
 *   struct proxy_rules *rules = proxy_rules_new();
 *   proxy_rules_add(rules, "packages.example.org", e);    ports 80 and 443
 *   proxy_rules_add(rules, "*.example.org:8443", e);    every name below, not example.org itself
 *   proxy_rules_add(rules, "10.1.0.0/16:*", e);         addresses, any port
 *   proxy_rules_allow_host(rules, host, port)           before the name is looked up
 *   proxy_rules_allow_address(rules, &address, port)    for the address that will be connected to
 *
 * A name is allowed by its name. The address that it resolves to must be public, or be listed as an
 * address itself: so a name that somebody else controls cannot be pointed at this machine, its
 * network or a cloud's metadata service. "localhost" stands for 127.0.0.0/8 and ::1. A target
 * written as an address is allowed by address only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct address;
struct proxy_rules;

struct proxy_rules *proxy_rules_new(void);
struct proxy_rules *proxy_rules_free(struct proxy_rules *r); /* accepts NULL, returns NULL */
int proxy_rules_add(struct proxy_rules *r, const char *rule, struct err *e) MUST_USE;
bool proxy_rules_allow_host(const struct proxy_rules *r, struct str host, int port);
bool proxy_rules_allow_address(const struct proxy_rules *r, const struct address *a, int port);

/* Loopback, private, link-local, shared, multicast, reserved, and v6 forms that carry such a v4
 * address. */
bool proxy_address_is_private(const struct address *a);

/* "host:port", "[::1]:port"; without a port `otherwise` is taken (0: there must be one). The host
 * is without brackets; false when malformed. */
bool proxy_split_authority(struct str authority, int otherwise, struct str *ret_host,
                           int *ret_port);
/* "http://host:80/path?q" is the authority, and what its server is asked for: "/path?q", "?q" or
 * nothing. */
bool proxy_split_url(struct str url, struct str *ret_authority, struct str *ret_path);

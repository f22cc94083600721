/* SPDX-License-Identifier: MIT
 *
 * struct test_server: a web server with one page on a loopback address of the host, for scenarios
 * about the network. An agent can reach it through the gateway's proxy or not at all.
 *
 *   test_server_open(loop, &s, e);
 *   test_server_address(s);            "127.0.0.2:41234"
 *   test_server_visits(s);
 *   test_server_free(s);
 *
 * The address is not 127.0.0.1, because programs do not use a proxy for that one.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct loop;
struct test_server;

#define SITE_PAGE "the page of the compatibility kit\n"

int test_server_open(struct loop *l, struct test_server **ret, struct err *e) MUST_USE;
struct test_server *test_server_free(struct test_server *s); /* accepts NULL, returns NULL */
const char *test_server_address(const struct test_server *s);
size_t test_server_visits(const struct test_server *s); /* pages that were asked for */

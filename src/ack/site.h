/* SPDX-License-Identifier: MIT
 *
 * struct site: a web server of one page on a loopback address of the host, for scenarios about the
 * network: an agent can reach it through the gateway's proxy or not at all.
 *
 *   site_open(loop, &s, e); … site_address(s) "127.0.0.2:41234" … site_visits(s) … site_free(s)
 *
 * The address is not 127.0.0.1, which nobody asks a proxy for.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct loop;
struct site;

#define SITE_PAGE "the page of the compatibility kit\n"

int site_open(struct loop *l, struct site **ret, struct err *e) MUST_USE;
struct site *site_free(struct site *s); /* accepts NULL, returns NULL */
const char *site_address(const struct site *s);
size_t site_visits(const struct site *s); /* pages that were asked for */

/* SPDX-License-Identifier: MIT
 *
 * Who may come in: the checks that need the head of a request only. Pure.
 *
 *   admit_host(value, hosts)       is the request meant for us? A page in a browser that had its
 *                                  name pointed at this machine says another host
 *   admit_token(head, token)       does it show the token, wherever its format puts a key?
 *   admit_proxy_token(head, token) the same for a proxy's client
 *   admit_pass(&target, token)     the token as the beginning of the path, for clients that show
 *                                  the provider a credential of their own where a key goes
 *
 * Tokens are compared in a time that does not depend on how much of them is right.
 */
#pragma once

#include <stdbool.h>

#include "wire/http.h"

bool admit_host(struct str value, const char *const *hosts);
bool admit_is_here(struct str host); /* a name of this machine */
bool admit_token(const struct http_head *head, struct str token);
bool admit_proxy_token(const struct http_head *head, struct str token);
/* "/-/TOKEN/v1/messages" becomes "/v1/messages". False: it does not begin so, and stays. */
#define ADMIT_PASS "/-/"
bool admit_pass(struct str *target, struct str token);
/* The field carries a credential of the client's own, not the gateway's token. */
bool admit_is_own_key(const struct http_field *field, const char *token);
/* The field, or one of its kind, carries a credential and goes to nobody. */
bool admit_is_credential(struct str name);

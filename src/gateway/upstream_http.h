/* SPDX-License-Identifier: MIT
 *
 * An upstream over plain HTTP/1.1, on our own streams and parser: another gateway on this machine,
 * a local model server. Less than half of libcurl's cost for each call. upstream_curl_new() takes
 * this way by itself where it can.
 *
 * Connections are kept and reused. One that the server closed while it was idle is replaced unseen,
 * once, as long as nothing of an answer has come.
 */
#pragma once

#include "gateway/upstream_curl.h"

int upstream_http_new(struct loop *l, const struct upstream_curl_opts *o, struct upstream **ret,
                      struct err *e) MUST_USE;

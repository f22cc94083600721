/* SPDX-License-Identifier: MIT
 *
 * Base64 (RFC 4648, standard alphabet, with padding): bytes that must stand in JSON.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

int base64_write(struct str bytes, struct buf *out, struct err *e) MUST_USE;
/* ERR_PARSE for any other character, wrong padding, or bits that say nothing but are set. */
int base64_read(struct str text, struct buf *out, struct err *e) MUST_USE;

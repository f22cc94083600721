/* SPDX-License-Identifier: MIT
 *
 * Reading back what the record writes: timestamps and ids. Strict: exactly the form that
 * clock_iso() and id_new() give, because what reads them (recovery) must tell ours from damage.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* "2026-11-15T20:29:35.123Z" to nanoseconds since 1970; ret_wall may be NULL. */
bool stamp_parse(struct str s, int64_t *ret_wall);
/* 8-4-4-4-12 lower-case hexadecimal digits. */
bool stamp_is_id(struct str s);

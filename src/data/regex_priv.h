/* SPDX-License-Identifier: MIT
 *
 * Between regex_ecma.c, which knows the syntax of ECMA-262, and regex.c, which knows PCRE2.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Longest pattern; a schema author reaches it, and gets ERR_PARSE. */
enum { REGEX_PATTERN_MAX = 64 * 1024 };

/* Checks the pattern and appends what means the same to PCRE2 with the options that regex.c sets.
 * Every character that could mean something else there is written as \x{…}. */
int regex_translate(struct str pattern, struct buf *out, struct err *e) MUST_USE;

/* "pattern '^a…'", cut to a length fit for a message. */
#define REGEX_SHOW_LEN 96
const char *regex_show(struct str pattern, char out[REGEX_SHOW_LEN]);

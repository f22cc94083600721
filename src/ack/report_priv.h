/* SPDX-License-Identifier: MIT
 *
 * What reports share. Findings quote what agents wrote, so every report is a place where foreign
 * bytes meet a syntax.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

enum report_form {
    REPORT_XML,       /* text between tags, also of HTML */
    REPORT_ATTRIBUTE, /* a value in double quotes */
    REPORT_MARKDOWN,  /* within a line, also within a table */
};

/* Whatever it is, as text of that form: marks of the syntax escaped, control characters visible as
 * \x1b, bytes that are no UTF-8 and code points that XML forbids as U+FFFD. */
void report_text(struct buf *out, struct str s, enum report_form form);

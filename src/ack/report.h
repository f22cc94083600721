/* SPDX-License-Identifier: MIT
 *
 * What the kit found, for different readers: JSON for programs, JUnit for CI, one HTML page, and
 * the table of capabilities that the project publishes. Each writes a whole document into `out`.
 */
#pragma once

#include "ack/kit.h"
#include "base/buf.h"

int report_json(const struct kit_report *r, struct buf *out, struct err *e) MUST_USE;
int report_junit(const struct kit_report *r, struct buf *out, struct err *e) MUST_USE;
int report_html(const struct kit_report *r, struct buf *out, struct err *e) MUST_USE;

/* docs/compatibility.md and its JSON: a row for each adapter and version of its harness, a column
 * for each capability. Proven: at least one scenario of it ran, and all that ran passed; failed:
 * one did not (also when that is expected, or now and then); skipped: none ran, with the reason.
 * `before` is the JSON of last time: rows of other adapters and versions stay, with their date;
 * NULL: there is none. ERR_CONFIG when it is something else. */
int report_compatibility(const struct kit_report *r, const struct json *before,
                         struct buf *markdown, struct buf *json, struct err *e) MUST_USE;

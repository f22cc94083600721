/* SPDX-License-Identifier: MIT
 *
 * struct mapping: makes a report out of a harness' standard output by rules of its profile.
 *
 *   output:
 *     format: ndjson                          text | json | ndjson
 *     rules:                                  every rule whose `when` holds is applied, in order
 *       - when: {/type: result}               JSON pointer: value, all must be equal
 *         text: /result                       pointer to the final text
 *         session_id: /session_id
 *         failed: /is_error                   true, or a non-empty value
 *         usage: {input: /usage/input_tokens, output: /usage/output_tokens}
 *         entry: assistant_message            transcript entry with the document as detail
 *
 * A pointer can select an element of an array by a segment in brackets:
 *
 *     /[last]/text                            the last element, or [first]
 *     /content/[type=text]/text               the first element whose member `type` is "text"
 *     /content/[last type=text]/text          the last one
 *
 * text: the last 64 KiB of the output are the final text, without white space around it (`trim:
 * false` keeps it). `pattern` selects a part of it: the first group, or all, of the last match.
 * Where a harness prints words of its own around those of the model, marks are beginnings of lines
 * that tell them apart:
 *
 *     format: text
 *     marks:
 *       begin: "Ready."         the text begins after the first such line
 *       end: "Tokens: "         such a line ends an answer; the last one ended is the final text
 *       error: ["Error: "]      the harness failed, unless an answer ends after it
 *
 * json: the whole output is one document.
 * ndjson: one document per line; other lines are counted, not fatal. Memory is bounded in all
 * cases.
 */
#pragma once

#include "adapters/driver_report.h"
#include "base/err.h"

struct mapping;

struct mapping *mapping_new(const struct json *spec, struct entry_sink sink);
void mapping_feed(struct mapping *m, struct str bytes);
/* After the last byte. What the report points to lives as long as the mapping. */
void mapping_end(struct mapping *m, struct agent_report *ret);
struct mapping *mapping_free(struct mapping *m);

/* The value that a rule's pointer selects; NULL: there is none. */
const struct json *mapping_select(const struct json *doc, struct str pointer);

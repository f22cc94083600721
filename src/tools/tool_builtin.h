/* SPDX-License-Identifier: MIT
 *
 * The tools that cinch brings itself.
 *
 * structured_output gives the result of the task where the harness has no schema of its own. Its
 * argument `data` is checked against the output contract as any other answer would be; what does
 * not fit is told to the model, which may call again. The last valid value counts.
 *
 *   tool_output_new(&opts) → tool_output_tool(o, a, &tool, e) → bridge_add(); tool_output_value(o)
 *
 * open_sections and read_section show sections of the prompt that were summarised. Reading changes
 * nothing. Opening answers at once with the full text of what was opened and tells the port, so
 * that the run offers the tools of those sections (bridge_offer(), mcp_tools_changed()), or starts
 * a harness that does not look at a new list again with the new prompt. The session remembers what
 * is open in its slice "VisibilityOverrides": one item, {"guide.child": "full"}.
 *
 *   tool_sections_new(&opts) → tool_sections_open(s, a, &tool, e), tool_sections_read(…)
 *
 * Both objects must outlive the tools. A wrong key or a value that does not fit is a failed call
 * (TOOL_INVALID), never an error of the run.
 */
#pragma once

#include "tools/tool.h"

struct section_tree;
struct tool_output;
struct tool_sections;

/* --- structured_output --- */

struct tool_output_opts {
    const struct json *contract; /* the schema; must outlive it. NULL: any object or list */
    struct schema *schema;       /* the same, compiled; NULL: as above */
    /* A valid value, which lives until the next one; may be NULL. */
    void (*stored)(void *arg, const struct json *value);
    void *arg;
};

struct tool_output *tool_output_new(const struct tool_output_opts *o);
struct tool_output *tool_output_free(struct tool_output *o); /* accepts NULL, returns NULL */
int tool_output_tool(struct tool_output *o, struct arena *a, struct tool *ret,
                     struct err *e) MUST_USE;
/* NULL: there was no valid call yet. */
const struct json *tool_output_value(const struct tool_output *o);

/* --- ask_human --- */

/* The model has a question that only a person can answer: the run shall end with it. */
struct tool_ask;
struct tool_ask *tool_ask_new(void);
struct tool_ask *tool_ask_free(struct tool_ask *q); /* accepts NULL, returns NULL */
int tool_ask_tool(struct tool_ask *q, struct arena *a, struct tool *ret, struct err *e) MUST_USE;
/* The last question, cut at TOOL_ASK_MAX bytes; empty: none. */
#define TOOL_ASK_MAX 4096
struct str tool_ask_question(const struct tool_ask *q);

/* --- open_sections, read_section --- */

struct tool_sections_opts {
    struct section_tree *tree;     /* must outlive it */
    const struct json *params;     /* as the prompt was rendered; must outlive it. Or NULL */
    const struct json *visibility; /* the same; or NULL */
    /* Something was opened: how it is now, complete, and why the model wanted it. From within the
     * call, before its answer: offer more tools, do not stop the bridge. May be NULL. */
    void (*opened)(void *arg, const struct json *visibility, struct str reason);
    void *arg;
};

struct tool_sections *tool_sections_new(const struct tool_sections_opts *o);
struct tool_sections *tool_sections_free(struct tool_sections *s); /* accepts NULL, returns NULL */
int tool_sections_open(struct tool_sections *s, struct arena *a, struct tool *ret,
                       struct err *e) MUST_USE;
int tool_sections_read(struct tool_sections *s, struct arena *a, struct tool *ret,
                       struct err *e) MUST_USE;

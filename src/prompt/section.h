/* SPDX-License-Identifier: MIT
 *
 * Prompts made of sections: a tree of titled, numbered, individually switchable pieces.
 *
 *   struct section_tree *tree;
 *   section_tree_new(prompt, &(struct section_opts){ .file = "task.yaml" }, &tree, e);
 *   section_tree_override(tree, overrides, "latest", e);                    optional
 *   struct section_rendering out;
 *   section_tree_render(tree, &(struct section_request){ .params = params }, arena, &out, e);
 *   … out.text, out.tools …
 *   section_tree_free(tree);
 *
 * A prompt, as YAML. Of a section only key and title are needed, and unknown keys are errors; other
 * members of the prompt itself belong to the caller:
 *
 *   ns: demo                      lower-cased, [a-z0-9][a-z0-9._-]{0,63}, like every key
 *   key: review
 *   name: review                  what events call it
 *   sections:
 *     - key: guide
 *       title: Guidelines
 *       body: |                   a template (template/template.h), indentation removed
 *         Review {{ repo }} with care.
 *       summary: How to review.   a template too, for visibility summary
 *       visibility: summary       full (default), summary, or an expression giving one of them
 *       enabled: not quick        true (default), false, or an expression
 *       params: {repo: this}      defaults for this section and its children; bound ones win
 *       tools: [run_tests]        names; each may appear once in the whole prompt
 *       skills: [reviewing]       likewise
 *       accepts_overrides: true
 *       examples:                 how a task went, each a child section
 *         - {key: one, objective: …, steps: [{tool: run_tests, description: …, input: …,
 *            output: …}], outcome: …}
 *       children: [ … ]
 *
 * Rendering, depth first in the order written: "## 1. Guidelines (guide)", a blank line, the body,
 * then the examples of the section's tools; "### 1.1. Title (guide.child)" for children. Numbers
 * are given once, so a disabled section leaves a gap. A disabled section goes with all below it. A
 * summarised one shows its summary and how to see the rest; nothing below it is rendered, its tools
 * and skills are not offered. What can be opened needs the tool open_sections (when opening brings
 * tools or skills) or read_section (when it brings text only); they are added to the tools when
 * something in the prompt calls for them.
 *
 * Visibility is decided by, in this order: the request (what a session opened), the override file,
 * the section. summary without a summary is an error.
 *
 * Overrides replace texts without touching the task: see section_tree_override().
 *
 * Everything that is wrong is ERR_CONFIG (ERR_PARSE in a template, ERR_LIMIT beyond a limit) and
 * says file, position and section: "task.yaml:12:11: section 'a.b': body:3: 'x' is undefined".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/str.h"
#include "template/template.h"

struct json;
struct section_tree;

enum section_visibility { SECTION_FULL, SECTION_SUMMARY };

struct section_opts {
    const char *file; /* what messages call the task; NULL: "prompt" */
    /* Definitions of tools, a list of {name, description, input_schema, output_schema, examples:
     * [{description, input, output}], accepts_overrides}; other members are left alone. NULL: only
     * the names count and nothing is known about them. */
    const struct json *tools;
    struct template_loader loader; /* for include */
    struct template_limits limits;
};

/* The JSON must outlive the tree. */
int section_tree_new(const struct json *prompt, const struct section_opts *opts,
                     struct section_tree **ret, struct err *e) MUST_USE;
struct section_tree *section_tree_free(struct section_tree *tree); /* accepts and returns NULL */

struct str section_tree_ns(const struct section_tree *tree);
struct str section_tree_key(const struct section_tree *tree);
struct str section_tree_name(const struct section_tree *tree); /* the key where none is given */

/* --- rendering --- */

struct section_request {
    const struct json *params;     /* an object, or NULL */
    const struct json *visibility; /* {"guide.child": "full"}; unknown paths are ignored */
    bool everything;               /* all sections are full, whatever else says otherwise */
};

struct section_view {
    struct str path, number, title;
    enum section_visibility visibility;
    bool overridden;
    char hash[SHA256_HEX]; /* of the body as the task has it; empty without one */
};

struct section_tool {
    struct str name;
    struct str path;               /* of its section; empty when built in */
    const struct json *definition; /* with overrides applied; NULL when none was given */
};

struct section_skill {
    struct str name, path;
};

/* All of it lives in the arena given to section_tree_render(). */
struct section_rendering {
    struct str text;
    struct section_view *sections;
    size_t sections_len;
    struct section_tool *tools; /* in order, the built-in ones last */
    size_t tools_len;
    struct section_skill *skills;
    size_t skills_len;
};

int section_tree_render(struct section_tree *tree, const struct section_request *request,
                        struct arena *a, struct section_rendering *ret, struct err *e) MUST_USE;

/* --- disclosure: what the two built-in tools do --- */

/* open_sections: checks the keys ("guide.child"; there must be one, each must exist and at least
 * one not be full already) and gives `visibility` of the request with them set to full: render
 * with it.
 * The messages are for the model. */
int section_tree_open(struct section_tree *tree, const struct section_request *request,
                      const struct json *keys, struct arena *a, struct json **ret,
                      struct err *e) MUST_USE;
/* read_section: the text of a summarised section as if it were full, its children as they are. */
int section_tree_read(struct section_tree *tree, const struct section_request *request,
                      struct str key, struct arena *a, struct str *ret, struct err *e) MUST_USE;

/* The definition of open_sections, or of read_section, in the form of section_opts.tools. */
struct json *section_builtin(struct arena *a, bool open);

/* --- overrides (section_override.c) ---
 *
 * A file <root>/<ns>/<key>/<tag>.json replaces texts of one prompt:
 *
 *   {"version": 2, "ns": "demo", "prompt_key": "review", "tag": "latest",
 *    "sections": {"guide/child": {"expected_hash": "…", "body": "…", "summary": "…",
 *                                 "visibility": "full"}},
 *    "tools": {"run_tests": {"expected_contract_hash": "…", "description": "…",
 *                            "param_descriptions": {"path": "…"}, "example_overrides": [
 *                {"index": 0, "expected_hash": "…", "action": "modify", "description": "…",
 *                 "input_json": "{}", "output_json": "{}"}]}},
 *    "task_example_overrides": [
 *      {"path": ["guide"], "index": 0, "expected_hash": "…", "action": "modify", "objective": "…",
 *       "outcome": "…", "step_overrides": [{"index": 0, "description": "…"}],
 *       "steps_to_remove": [1], "steps_to_append": [{"index": -1, "tool_name": "…", …}]}]}
 *
 * Hashes are SHA-256: of a section its body as written; of a tool hash(description) "::"
 * hash(input schema) "::" hash(output schema), of examples their members, each as JSON with sorted
 * keys, no blanks and ASCII only. action is modify, remove or append (index -1). The path of a task
 * example is its section's, or its own. A wrong version, ns, key or tag, or a member of the wrong
 * type, is an error. An entry whose hash does not match what it was made for, or that names
 * nothing, is dropped and listed: the task has moved on. */

struct section_dropped {
    struct str what;    /* "section guide/child", "tool run_tests", … */
    const char *reason; /* "unknown", "stale", "not accepted" */
};

/* `overrides` (the parsed file, which must outlive the tree) is called `file` in messages. May be
 * called once per tree, before rendering. */
int section_tree_override(struct section_tree *tree, const struct json *overrides, const char *file,
                          const char *tag, struct err *e) MUST_USE;
const struct section_dropped *section_tree_dropped(const struct section_tree *tree,
                                                   size_t *ret_len);

/* The file with the texts as they are now, to be edited: {"version": 2, …}. */
struct json *section_tree_seed(const struct section_tree *tree, const char *tag, struct arena *a);
/* Hashes of all that can be overridden: {ns, key, sections: [{path, number, content_hash}], tools:
 * [{path, name, contract_hash, example_hashes}], task_examples: [{path, index, content_hash}]}. */
struct json *section_tree_describe(const struct section_tree *tree, struct arena *a);

struct section_overrides {
    const struct json *content; /* NULL: there is no file */
    const char *path;
};
/* Reads <root>/<ns>/<key>/<tag>.json. `root` NULL: .weakincentives/prompts/overrides below the
 * nearest directory with a .git, from the current one upwards. */
int section_overrides_load(const struct section_tree *tree, const char *root, const char *tag,
                           struct arena *a, struct section_overrides *ret, struct err *e) MUST_USE;

static inline void cleanup_section_tree(struct section_tree **tree)
{
    *tree = section_tree_free(*tree);
}

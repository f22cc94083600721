/* SPDX-License-Identifier: MIT
 *
 * The tree of sections as its files see it: an array in depth-first order, in which the subtree of
 * node i is [i, node.end).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "prompt/section.h"

/* An example of how a task went; a child section of its own kind. */
struct section_step {
    struct str tool, description;
    const struct json *input, *output;
};
struct section_example {
    struct str objective;
    const struct json *outcome; /* text or any value */
    struct section_step *steps;
    size_t steps_len;
    size_t index; /* among the examples of its section */
    bool removed; /* by an override */
    char hash[SHA256_HEX];
};

/* What a section switches by: a constant, or an expression. */
struct section_switch {
    bool constant; /* enabled, or summary */
    const struct template *expression;
    const struct json *source; /* for messages */
};

/* A template with where it stands: in the task, or in an override file. */
struct section_text {
    const struct json *source; /* NULL: none */
    const char *file;          /* NULL: the task */
    const struct template *template;
};

struct section {
    struct section *parent;
    const struct json *source;
    struct str key, path, number, title;
    struct str heading; /* "## 1. Title (path)" */
    unsigned depth;
    size_t at, end; /* in the array of nodes */
    const struct json *params;
    struct section_text body, summary;
    struct section_switch enabled, visibility;
    int override_visibility; /* -1: none */
    bool overridden, accepts_overrides;
    bool active; /* it or something below has tools or skills */
    struct str *tools, *skills;
    size_t tools_len, skills_len;
    struct section_example *example;
    char hash[SHA256_HEX];
};

struct section_definition {
    struct str name;
    const struct json *source;
    const struct json *effective; /* after overrides */
    bool accepts_overrides;
    char hash[SHA256_HEX];
};

struct section_tree {
    struct arena *arena;
    const char *file;
    struct template_set *set;
    struct str ns, key, name;
    struct section **nodes;
    size_t len, cap;
    struct section_definition *definitions;
    size_t definitions_len;
    bool has_definitions;
    struct section_dropped *dropped;
    size_t dropped_len, dropped_cap;
};

/* "file:3:7: section 'a.b': …"; `at` may be NULL. */
int section_fail(const struct section_tree *tree, const struct section *s, const struct json *at,
                 struct err *e, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The same in front of an error that is there already. */
int section_wrap(const struct section_tree *tree, const struct section *s, const char *file,
                 const struct json *at, struct err *e);

struct section *section_find(const struct section_tree *tree, struct str path);
struct section_definition *section_definition_find(const struct section_tree *tree,
                                                   struct str name);
/* Compiles text->source, without its common indentation. `what` is "body" or "summary". */
int section_compile(struct section_tree *tree, const struct section *s, const char *what,
                    struct section_text *text, struct err *e) MUST_USE;
/* Common leading blanks off every line, as textwrap.dedent(). */
struct str section_dedent(struct arena *a, struct str text);

/* --- section_json.c --- */

enum section_json {
    SECTION_JSON_CANONICAL, /* sorted, no blanks, ASCII: what is hashed */
    SECTION_JSON_PLAIN,     /* ", " and ": ", UTF-8, members that are null left out */
};
void section_json_write(struct buf *out, const struct json *v, enum section_json style);
void section_hash_json(const struct json *v, char out[SHA256_HEX]);

/* --- section_example.c --- */

int section_examples_new(struct section_tree *tree, struct section *owner,
                         const struct json *examples, struct err *e) MUST_USE;
int section_example_parse(struct section_tree *tree, const struct section *s,
                          const struct json *source, struct section_example *ret,
                          struct err *e) MUST_USE;
void section_example_hash(struct section_example *example);
void section_example_write(struct buf *out, const struct section_example *example);
/* Title of an example that has none: its objective, shortened. */
struct str section_example_title(struct arena *a, struct str objective);
/* "Tools:" and the examples of those that have some; nothing otherwise. */
void section_tools_write(struct buf *out, const struct section_tree *tree, const struct section *s);
void section_tool_example_hash(const struct json *example, char out[SHA256_HEX]);

/* --- section.c, for section_example.c --- */

struct section *section_add(struct section_tree *tree, struct section *parent,
                            const struct json *source);
/* A last child of owner, after the tree was built; section_tree_number() has to follow. */
struct section *section_insert(struct section_tree *tree, struct section *owner,
                               const struct json *source);
/* Numbers by position among siblings, and what is active below. */
void section_tree_number(struct section_tree *tree);
int section_set_key(struct section_tree *tree, struct section *s, const struct json *key,
                    struct err *e) MUST_USE;

/* --- section_render.c, for section_disclose.c --- */

struct section_pass; /* one walk over the tree with its variables */
int section_pass_new(struct section_tree *tree, const struct section_request *request,
                     struct section_pass **ret, struct err *e) MUST_USE;
struct section_pass *section_pass_free(struct section_pass *pass);
int section_pass_enabled(struct section_pass *pass, const struct section *s, bool *ret,
                         struct err *e) MUST_USE;
int section_pass_visibility(struct section_pass *pass, const struct section *s,
                            enum section_visibility *ret, struct err *e) MUST_USE;
/* Appends one section, with its suffix when summarised; a blank line before it unless first. */
int section_pass_write(struct section_pass *pass, const struct section *s,
                       enum section_visibility visibility, struct buf *out, struct err *e) MUST_USE;

/* SPDX-License-Identifier: MIT
 *
 * Jinja2-compatible templates: the text language of prompts.
 *
 *   struct template_set *set = template_set_new(&(struct template_opts){ .loader = dir.loader });
 *   const struct template *t;
 *   template_parse(set, "task.md", text, &t, e);             ERR_PARSE "task.md:3: …"
 *   struct template_vars *vars = template_vars_new(params);  any JSON object
 *   template_render(t, vars, &out, e);                       "task.md:3: 'x' is undefined"
 *   template_vars_free(vars);
 *   template_set_free(set);
 *
 *  1. A set owns the options, the limits, the loader of included files and every template parsed
 *     through it; templates live as long as their set. Parse once, render many times.
 *  2. Variables are read from a JSON object that must outlive them; they are converted on first
 *     use, so that a large object costs nothing until a template touches it. Templates cannot
 *     change them. One set of variables serves any number of renderings.
 *  3. Rendering appends to `out`; on failure `out` is as before.
 *  4. Nothing here is thread safe; a set and what belongs to it stay in one thread.
 *
 * The language is a subset of Jinja2 3.1 with its defaults (autoescape off, line statements off,
 * one trailing newline removed) in its ImmutableSandboxedEnvironment with StrictUndefined: an
 * undefined variable is an error wherever it is used, except for `is defined`, `default` and the
 * like (but see template_undefined).
 * docs/prompt.md lists what is supported; everything else is an error. What is supported renders as
 * in Jinja2 (tests/unit/template/template_against_jinja2.py compares them), except:
 *  - include takes relative paths below the loader's directory only.
 *  - integers have 64 bits, range() at most 100000 members; beyond that is ERR_LIMIT.
 *  - range() and the dict methods items, keys and values return lists.
 *  - text has no mark of being escaped: `e` always escapes, and `safe` only converts to text.
 *  - case is mapped code point by code point (template_unicode.h).
 *  - complex numbers do not exist: a negative number to a fractional power is an error.
 *  - string escapes know all but \N{…}.
 *  - a method that is not supported hides no member of a dict: `d.pop` is the member `pop`.
 *
 * Limits make every template end: each is an ERR_LIMIT with file and line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct json;
struct template;
struct template_set;
struct template_vars;

/* Where `include` finds text. ERR_INPUT means "no such template", for `ignore missing`. */
struct template_loader {
    int (*read)(void *self, const char *name, struct buf *ret, struct err *e);
    void *self;
};

/* Who can reach these: whoever writes the template or, through loops over parameters, the task. */
struct template_limits {
    size_t max_source;    /* 0: 1 MiB of text for one template */
    unsigned max_nesting; /* 0: 100 blocks and expressions inside each other */
    unsigned max_calls;   /* 0: 64 macros, includes and recursive loops inside each other */
    uint64_t max_rounds;  /* 0: 1 million rounds of for loops in one rendering */
    uint64_t max_steps;   /* 0: 20 million evaluated expressions and visited items */
    size_t max_output;    /* 0: 16 MiB, also for each string on the way */
    size_t max_memory;    /* 0: 256 MiB of values in one rendering */
};

/* Receives the name of a variable or member that was printed as nothing. */
struct template_undefined {
    void (*report)(void *self, struct str name);
    void *self;
};

struct template_opts {
    struct template_loader loader; /* without one, include is an error */
    struct template_limits limits;
    /* With `report`, what is undefined prints as nothing, as with Jinja2's own default; without
     * it, using it is an error. */
    struct template_undefined undefined;
    bool trim_blocks;           /* remove the newline after a block */
    bool lstrip_blocks;         /* remove white space before a block that starts its line */
    bool keep_trailing_newline; /* else one newline at the end of the text is removed */
};

/* Why the last call on a set failed, finer than the error code (see template_set_fault). */
enum template_fault {
    TEMPLATE_FAULT_NONE,
    TEMPLATE_FAULT_SYNTAX,    /* ERR_PARSE */
    TEMPLATE_FAULT_UNDEFINED, /* ERR_CONFIG: a variable, attribute or element that is not there */
    TEMPLATE_FAULT_VALUE,     /* ERR_CONFIG: wrong type or value for an operation */
    TEMPLATE_FAULT_MISSING,   /* ERR_INPUT: an included file */
    TEMPLATE_FAULT_UNSAFE,    /* ERR_DENIED: access that the sandbox forbids */
    TEMPLATE_FAULT_LIMIT,     /* ERR_LIMIT */
};

struct template_set *template_set_new(const struct template_opts *opts); /* NULL: all defaults */
struct template_set *template_set_free(struct template_set *set);        /* returns NULL */
enum template_fault template_set_fault(const struct template_set *set);

/* `name` is what messages call the text. The text need not outlive the call. */
int template_parse(struct template_set *set, const char *name, struct str text,
                   const struct template **ret, struct err *e) MUST_USE;
/* Reads through the loader; the second time from memory. */
int template_load(struct template_set *set, const char *name, const struct template **ret,
                  struct err *e) MUST_USE;

/* NULL or JSON null is no variables at all; anything but an object is a caller's bug. */
struct template_vars *template_vars_new(const struct json *object);
struct template_vars *template_vars_free(struct template_vars *vars);

int template_render(const struct template *t, struct template_vars *vars, struct buf *out,
                    struct err *e) MUST_USE;

/* A loader for the files of one directory: relative names only, no "..", and links are followed
 * only while they stay below the directory (the kernel checks: openat2 RESOLVE_BENEATH). The
 * descriptor is borrowed. */
struct template_dir {
    struct template_loader loader;
    int dir_fd;
    size_t max; /* bytes of one file */
};
void template_dir_init(struct template_dir *dir, int dir_fd);

/* Shortest form that reads back equal, written as Python writes it. */
enum { TEMPLATE_FLOAT_LEN = 40 };
size_t template_write_float(double d, char out[TEMPLATE_FLOAT_LEN]);

static inline void cleanup_template_set(struct template_set **set)
{
    *set = template_set_free(*set);
}
static inline void cleanup_template_vars(struct template_vars **vars)
{
    *vars = template_vars_free(*vars);
}

/* SPDX-License-Identifier: MIT
 *
 * What the files of the script share: the parsed form, and the steps of finding an answer.
 *
 *   script.c         life cycle        script_read.c    YAML → steps, all checks at load
 *   script_match.c   which step        script_auxiliary.c  titles, topics, summaries
 *   script_tool.c    names of tools    script_indirect.c   tools behind a program or a search
 *   script_expand.c  ${…}
 *   script_answer.c  step → events     script_render.c     events → bytes, faults
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "data/regex.h"
#include "replay/script.h"

/* Groups of a pattern that can be named in an answer, ${0} … ${31}. */
#define SCRIPT_GROUPS 32

struct script_group {
    struct str name;
    size_t index;
};

struct script_when {
    const struct json *turn;     /* integer, list of integers or NULL */
    const struct json *results;  /* the same */
    const struct json *request;  /* the same, from 1 */
    const struct json *text;     /* string or list of strings: all are in the last message */
    const struct json *system;   /* the same, in the system prompt */
    const struct json *tool;     /* the same, all are offered */
    const struct json *no_tool;  /* none is */
    const struct json *header;   /* name → glob */
    const struct json *side;     /* true, false or the kind of a side request */
    struct str model;            /* glob; empty: any */
    struct str format;           /* empty: any */
    struct regex *regex;         /* in the last message */
    const struct json *regex_at; /* for messages */
    struct script_group groups[SCRIPT_GROUPS];
    size_t n_groups; /* named ones */
    size_t n_spans;  /* of the pattern, with ${0} */
};

enum script_block_kind {
    SCRIPT_THINK,
    SCRIPT_SAY,
    SCRIPT_REFUSE,
    SCRIPT_CALL,
    SCRIPT_OUTPUT,
};

struct script_block {
    enum script_block_kind kind;
    const struct json *value; /* CALL: one call, an object */
};

/* How an answer goes out; a field that is not given (see script_read.c) comes from `defaults`. */
struct script_manner {
    int64_t chunk; /* bytes of text in an event, 0: all */
    nsec delay, pace;
    struct llm_usage usage;
    struct str model; /* that the answer names; empty: the request's */
};

struct script_step {
    const char *name;
    const struct json *at; /* for positions */
    bool has_when;
    struct script_when when;
    int64_t times; /* 0: any number */
    int64_t played;
    struct script_block *blocks;
    size_t n_blocks;
    struct script_manner manner;
    struct str stop; /* empty: by what was said */
    bool has_fault;
    struct script_fault fault;
};

struct script {
    struct arena *arena;
    const char *file;
    const char *name;
    bool strict;
    bool side_off;             /* side: false */
    struct script_step *side;  /* what side requests get; NULL: stock answers */
    struct script_step *steps; /* `steps`, then `turns` */
    size_t n_steps;
    struct script_step *otherwise;
    struct json *vars;
    struct json *aliases; /* of the script, or NULL */
    struct json *natives; /* built in; NULL: not read yet */
    int64_t requests;     /* seen so far, without side requests */
};

/* --- script_read.c --- */

int script_read(struct script *s, const struct json *root, struct err *e) MUST_USE;

/* --- what is known of a request while a step is looked for --- */

struct script_scene {
    struct script *script;
    const struct script_request *request;
    struct arena *arena;
    const struct llm_request *tools; /* the request, and what its program tool declares */
    const struct llm_tool *program;  /* code mode: the tool that runs programs */
    size_t turn;                     /* rounds of results since the last words of the user */
    size_t results;                  /* in the whole history */
    int64_t number;                  /* of this request, from 1; side requests do not count */
    struct str last;                 /* words of the last message */
    struct str system;               /* system prompt */
    const char *side;                /* NULL, or the kind */
    struct script_step *step;
    struct regex_span spans[SCRIPT_GROUPS];
};

void script_scene_init(struct script_scene *c, struct script *s, const struct script_request *r,
                       struct arena *a);
/* The step that fits, in `c->step`; ERR_CONFIG names the nearest. */
int script_choose(struct script_scene *c, struct err *e) MUST_USE;
/* A value that the schema accepts, for stock answers; small and dull. */
struct json *script_sample(struct arena *a, const struct json *schema);
/* What a side request of this kind gets when the script does not say. */
struct str script_auxiliary_text(const struct llm_request *r, const char *kind, struct arena *a);

/* '*' is any text, '?' one byte; letters of ASCII without regard to case. */
bool script_glob(struct str pattern, struct str text);

/* --- script_tool.c --- */

struct script_call {
    struct str name, ns;
    bool custom;
    struct json *args; /* custom: a string */
};

/* The tool that a script calls `name` (exact, native.… or bridged) and its input. `server` narrows
 * a bridged name and may be empty. ERR_CONFIG when it is not offered. */
int script_resolve(const struct script_scene *c, struct str name, struct str server,
                   struct json *args, struct script_call *ret, struct err *e) MUST_USE;
bool script_offers(const struct script_scene *c, struct str name);
/* native.…, or a name of `aliases` */
bool script_is_alias(const struct script_scene *c, struct str name);

/* --- script_indirect.c --- */

/* The request with the functions that its program tool declares added to its tools. */
const struct llm_request *script_declared_tools(const struct llm_request *r, struct arena *a,
                                                const struct llm_tool **ret_program);
/* A call of the program tool that calls the declared function. */
int script_write_program(const struct script_scene *c, struct str function, const struct json *args,
                         struct script_call *ret, struct err *e) MUST_USE;
/* A program may look for a tool that is not declared; whether there is one, only it sees. */
bool script_program_finds(const struct script_scene *c);
int script_write_lookup(const struct script_scene *c, struct str name, const struct json *args,
                        struct script_call *ret, struct err *e) MUST_USE;
/* The tool is not listed, but a search for tools of its server is offered and was not used yet. */
bool script_must_search(const struct script_scene *c, struct str name, struct str server);
/* The item of a Responses answer that searches for the tool. */
struct json *script_search_call(const struct script_scene *c, struct str name, size_t number);

/* --- script_expand.c --- */

/* Port: the value of a name in ${name}; NULL when there is none. */
typedef const struct json *script_lookup(const void *context, struct arena *a, struct str name);

struct script_names {
    script_lookup *lookup;
    const void *context;
};

int script_expand(struct arena *a, struct str text, struct script_names names, struct str *ret,
                  struct err *e) MUST_USE;
/* All strings of a tree; a string that is just "${name}" becomes the value itself. */
int script_expand_tree(struct arena *a, const struct json *v, struct script_names names,
                       struct json **ret, struct err *e) MUST_USE;
/* Names of a scene: groups, variables, turn, results, request, model, last, cwd. */
struct script_names script_scene_names(const struct script_scene *c);
/* Whether a step could know this name: for the check at load. */
bool script_name_known(const struct script *s, const struct script_when *w, struct str name);
/* Calls `fn` for each ${name} of the text; stops at the first that fails. */
int script_each_name(struct str text, int (*fn)(void *arg, struct str name, struct err *e),
                     void *arg, struct err *e) MUST_USE;

/* SPDX-License-Identifier: MIT
 *
 * struct profile: how cinch drives one harness, as data. One YAML file per harness, in adapters/ of
 * the source (compiled in) or in a directory of the user's, which may add or override.
 *
 *   struct profile *p;
 *   profile_parse(arena, text, "adapters/aider.yaml", &p, e);    ERR_CONFIG says file:line:column
 *   const struct profile *q = profile_find(list, "aider");
 *
 * To add a one-shot command line harness, write such a file; no C is needed. docs/adapters.md
 * explains every key, adapters/command.yaml is the smallest example.
 *
 * A profile lives in the arena it was parsed into and is never changed.
 */
#pragma once

#include <stdbool.h>

#include "adapters/capability.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum prompt_delivery {
    PROMPT_FILE,     /* the program is told the name of a file: {prompt_file}, CINCH_PROMPT_FILE */
    PROMPT_ARGUMENT, /* {prompt} in the arguments */
    PROMPT_STDIN,    /* written to its standard input, which is then closed */
};

enum home_kind {
    HOME_PRIVATE, /* HOME is a directory of the run's own */
    HOME_SHARED, /* HOME is the caller's; a trust entry is registered where the harness needs one */
};

/* In which dialect the harness takes the schema of an answer (llm/schema_convert.h). */
enum schema_form {
    SCHEMA_FORM_PLAIN,   /* as its author wrote it */
    SCHEMA_FORM_WRAPPED, /* an object at the root */
    SCHEMA_FORM_OPENAI,  /* that, in OpenAI's strict form */
    SCHEMA_FORM_CLAUDE,  /* that, with null folded into types */
};

/* What the system prompt of a task means for the harness' own, where the driver hands it over. */
enum system_prompt_style {
    SYSTEM_PROMPT_APPEND,
    SYSTEM_PROMPT_REPLACE,
    SYSTEM_PROMPT_NONE, /* the harness takes none */
};

enum config_format { CONFIG_JSON, CONFIG_TOML, CONFIG_YAML };

/* Arguments that are given only if the placeholder `when` has a value (NULL: always). */
struct profile_args {
    const char *when;
    const char *unless;
    struct json *args; /* list of strings with placeholders */
};

/* A configuration file of the harness, written below the run's home. */
struct profile_file {
    const char *name; /* its key under `files` in the settings */
    const char *path; /* relative to the home */
    enum config_format format;
    bool always; /* also with a shared home: it is then below {run_home} */
    bool locked; /* the agent may read and not write it, where there is a sandbox */
};

/* How a harness with a shared home must be told that it may trust the workspace. */
struct profile_trust {
    const char *style; /* "codex", "gemini", "claude"; NULL: not needed */
    const char *file;  /* relative to HOME */
};

/* How a harness is led to the gateway, and where the gateway leads its requests. */
struct profile_gateway {
    const char *format;    /* of its requests: "anthropic" …; NULL: not known, or several */
    const char *upstream;  /* unless the task names one; NULL: there is no gateway without that */
    const char *key;       /* variable of cinch's own environment with the credential for it */
    struct json *env;      /* variables for the child, values with placeholders */
    struct json *files;    /* by name of a file: merged over the settings', with placeholders */
    struct json *tools;    /* what native.… of a script means here, see replay/script.h */
    struct json *by_model; /* which provider serves which model, unless the task says it */
    struct json *volatile_fields; /* that differ from run to run, see replay/cassette.h */
};

/* A login of the user's with the harness: where it is, and what it is good for. */
struct profile_login {
    const char *file;     /* relative to the home, the user's and the run's */
    const char *variable; /* that may name another directory for it; NULL: none */
    const char *has;      /* JSON pointer: the credential; in lines NAME=value, "/NAME" */
    const char *expires;  /* JSON pointer: when, or a JSON Web Token that says it; NULL: not said */
    const char *upstream; /* where it is accepted; NULL: where the gateway leads to anyway */
    struct json *files;   /* by name of a file: merged over the gateway's */
    const char *cannot;   /* why it is of no use here; NULL: it is */
};

/* By which credentials the harness is let in, when they are not the gateway's. */
struct profile_auth {
    const char *login;            /* the command that makes a login; NULL: there is none */
    struct json *env;             /* names of variables that hold credentials */
    struct profile_login *logins; /* the first that is there is taken */
    size_t logins_len;
    struct json *refused; /* words by which the harness says that it has no (good) one */
};

/* How the harness gets the prompt of a tier. */
enum tier_prompt {
    TIER_PROMPT_NONE,
    TIER_PROMPT_SYSTEM, /* with its system prompt: by driver, arguments or files */
    TIER_PROMPT_TEXT,   /* before the prompt */
    TIER_PROMPT_TOLD,   /* by environment and task file; it does what it will */
};

/* Whether tools, or sub-agents, of the harness' own can be taken away. */
enum tier_switch {
    TIER_ALWAYS,   /* it has them */
    TIER_SWITCHED, /* they can be switched off */
    TIER_NEVER,    /* it has none */
    TIER_TOLD,     /* the program is told by environment, and does what it will */
};

/* What a tier of an evaluation asks for and the harness can do. Arguments for it stand in `argv`,
 * under `when: system_prompt`, `tools_off` and `delegation_off`. */
struct profile_tier {
    enum tier_prompt prompt;
    const char *prompt_file;   /* relative to the home: gets the tier's prompt; NULL: none */
    struct json *prompt_files; /* by name of a file: merged over the rest where there is one */
    enum tier_switch tools, delegation;
    struct json *tools_off, *delegation_off; /* the same, where they are switched off */
};

/* How a harness is led to the tools of the run, which cinch serves over MCP. Arguments for it stand
 * in `argv`, under `when: mcp_url`. */
struct profile_mcp {
    struct json *env;   /* variables for the child, values with placeholders */
    struct json *files; /* by name of a file: merged over the settings' and the gateway's */
    const char *prefix; /* what the harness puts before their names: "mcp__cinch__"; "": nothing */
    bool list_changed;  /* it looks at the list again when it is told to */
};

/* Deadlines of an ACP agent's first answers, in milliseconds. A node program needs half a minute to
 * start on a very busy machine. */
#define ACP_INITIALIZE_MS 120000
#define ACP_SESSION_MS    180000

/* How a model is chosen in a session of the Agent Client Protocol. */
enum acp_model {
    ACP_MODEL_AUTO,   /* by whichever of the two the agent offers */
    ACP_MODEL_OPTION, /* session/set_config_option */
    ACP_MODEL_METHOD, /* session/set_model */
    ACP_MODEL_NONE,   /* not: arguments or files say it */
};

/* What is particular about an agent that speaks the Agent Client Protocol (driver `acp`). */
struct profile_acp {
    const char *auth;          /* method of `authenticate`; NULL: none is needed */
    const char *mode;          /* of the session; NULL: the agent's own default */
    const char *governed_mode; /* the same when policies are to be asked about its tools */
    enum acp_model model;
    int64_t settle_ms;             /* words may come for so long after the end of a turn */
    int64_t load_settle_ms;        /* so long must it be silent after it loaded a session */
    bool stays;                    /* the end of its input is no end for it: a signal is */
    bool fs;                       /* it may read and write files through us */
    bool terminal;                 /* it may have us run programs */
    bool mcp_stdio;                /* it gets the tools through the shim even if it offers HTTP */
    int64_t initialize_ms;         /* deadline of each request before the session is open … */
    int64_t session_ms;            /* … and of the one that opens it */
    const char *tool_id_separator; /* ids of calls are NAME, this, and more; NULL: they are not */
    struct json *tool_name;        /* pointers to the name of a tool, in what tells of a call */
    struct json *tool_server;      /* the same for the MCP server that has it */
    struct json *noise;            /* beginnings of words that are not the model's */
};

/* What is particular about an agent that is cinch itself (driver `api`). */
struct profile_api {
    struct str system_prompt; /* with placeholders; empty: none */
    bool builtin_tools;       /* it has the tools of tools/builtin_tools.h */
    int64_t context;          /* tokens of a conversation, more is trimmed; 0: never */
    int64_t max_tokens;       /* of one response, unless the task says it; 0: the driver's */
};
#define PROFILE_CONTEXT_MIN 2000

/* What a harness reads of the workspace by itself, and how it is kept from obeying it unless the
 * user trusts the project. Arguments for it stand in `argv`, under `when` and `unless:
 * project_trusted`. */
struct profile_project {
    bool declared;                            /* the profile has the section, also if it is empty */
    struct json *env;                         /* for the child, values with placeholders */
    struct json *files;                       /* by name of a file: merged over all else */
    struct json *session;                     /* `_meta` of a session (driver acp) */
    struct json *trusted_env, *trusted_files; /* the same where it is trusted */
    /* The same as `files`, over them, when a skill of the task makes the harness run commands. */
    struct json *skill_command_files;
    /* Prose that it then does not read by itself: {from: [names], to: path below the home}, or
     * {nested: name, to: folder below the home}. */
    struct json *instructions;
    struct json *skills; /* folders of the workspace; their text goes to the profile's `skills` */
    /* For what it has no switch for: files (* and ? match within one name) that it does not find
     * until it asks a model for the first time, when it has read its configuration; or not at
     * all. */
    struct json *hide, *hide_whole_run;
    /* Directories of the workspace that it still reads after its first request to a model: where
     * one exists, that request waits until the harness is at rest. */
    struct json *settle;
    /* Directories below the home that it runs programs from: empty and read-only where policies
     * decide about its calls. */
    struct json *home_locked;
};

/* What a harness needs of the host beyond what every sandbox shows. */
struct profile_sandbox {
    struct json *read, *write; /* lists of paths, "~/" is the caller's home; what is missing is
                                  passed over */
    bool nested;               /* it brings a sandbox of its own */
};

/* How skill packages, which are made for many harnesses, see this one. */
struct profile_skill_packages {
    const char *engine;   /* the name that packages use; NULL: the profile's */
    const char *invoke;   /* first line of the prompt, with {skill}; NULL: a sentence */
    struct json *configs; /* files of a package with settings for it, relative to the package */
};

struct profile {
    const char *name;
    const char *title;
    const char *description;
    const char *driver;  /* "oneshot" */
    const char *source;  /* "built in", or the file it came from */
    struct json *binary; /* candidate program names; empty: the request brings the command */
    /* The adapter is an image, `binary` are engines that can run it; NULL: it is a program. */
    const char *image;
    struct profile_args *argv;
    size_t argv_len;
    enum prompt_delivery prompt;
    enum home_kind home;
    struct json *env;      /* variables for the child, values with placeholders */
    struct json *settings; /* configuration layer `adapter` */
    struct json *enforced; /* configuration layer `enforced` */
    struct profile_file *files;
    size_t files_len;
    const char *instructions; /* the file of instructions for all projects, as below; NULL: none */
    const char *agents;       /* the folder of sub-agents, as below; NULL: none */
    bool drops_system_prompt; /* {when: system_prompt_none}: it can go without one of its own */
    const char *skills; /* the folder where it looks for skills, relative to the home; NULL: none */
    struct profile_skill_packages skill_packages;
    enum system_prompt_style system_prompt;
    enum schema_form schema_form;
    bool schema_native; /* the driver hands the schema over, not the arguments */
    struct profile_trust trust;
    struct profile_gateway gateway;
    struct profile_auth auth;
    struct profile_tier tier;
    struct profile_mcp mcp;
    struct profile_acp acp;
    struct profile_api api;
    struct profile_project project;
    struct profile_sandbox sandbox;
    struct json *own_files;     /* paths in the workspace that it makes for itself: in no patch */
    struct json *known_models;  /* patterns of names that the harness knows; NULL: any */
    struct json *tool_names;    /* patterns of the names of all its native tools, as policies see
                                   them; NULL: not known */
    struct json *session_files; /* patterns of files below the home that a conversation needs to go
                                   on in another run; NULL: none */
    bool session_anywhere;      /* it does so in another directory, too */
    int64_t session_written_ms; /* its last words are there at most so long after the turn … */
    const char *session_written_as;        /* … in a line that holds this */
    const char *session_from, *session_to; /* beginning of their names, when they come back */
    struct json *output;                   /* mapping, see mapping.h; never NULL */
    struct capability_set capabilities;
    const char *tried; /* version of the harness that the profile was tried with; NULL: none */
    const char *tested_since, *tested_until; /* range of tested versions; NULL: none */
    const char *version_package;  /* of the program, for its version; NULL: the one that it is in */
    struct json *version_command; /* that prints it; NULL: `BINARY --version` */
    const char *node;             /* the oldest version of node that it runs on; NULL: any */
    /* Parts for some versions only, {since, until, …}; merged over the rest (profile_variant()). */
    struct json *versions;
    const char *install;    /* command that installs the harness; NULL: not known */
    const char *unverified; /* why it could not be tried; NULL: nothing is said */
    struct json *quirks;    /* what is particular about the harness, in sentences */
    struct json *doc;       /* the whole file, for `cinch adapters show` */
};

int profile_parse(struct arena *a, struct str text, const char *file, struct profile **ret,
                  struct err *e) MUST_USE;
/* The profile with the parts for that version of the program; itself if there are none, or if the
 * version is not known (NULL). */
const struct profile *profile_variant(struct arena *a, const struct profile *p,
                                      const char *version);

/* The profile with a section of it changed: members one by one, null removes one. */
int profile_override(struct arena *a, const struct profile *p, const char *key,
                     const struct json *over, const struct profile **ret, struct err *e) MUST_USE;

/* The profile with the upstream, format and key of the first entry of `gateway.by_model` that
 * matches; itself if none does. */
int profile_for_model(struct arena *a, const struct profile *p, const char *model,
                      const struct profile **ret, struct err *e) MUST_USE;

const char *prompt_delivery_word(enum prompt_delivery d); /* "file", "argument", "stdin" */
bool prompt_delivery_of(struct str word, enum prompt_delivery *ret);

/* The profiles that can be used: the built-in ones, then those of the directories, where a later
 * one of the same name replaces an earlier one. */
struct profile_list {
    const struct profile **items; /* sorted by name */
    size_t len;
    struct profile_shelf *shelf; /* built-in ones that are read when asked for; NULL: none */
    const char *path;            /* searched for programs that are adapters: PATH of the process */
    struct arena *arena;
};

/* Loads all built-in profiles and every *.yaml of the directories (NULL-terminated; a directory
 * that does not exist is skipped). A bad file is an error: a profile must not vanish silently. */
int profile_load_all(struct arena *a, const char *const *dirs, struct profile_list *ret,
                     struct err *e) MUST_USE;
/* The same for who wants one or two by name: of the built-in profiles only those are read that
 * profile_find() and profile_require() are asked for; `items` are those of the directories. */
int profile_load_named(struct arena *a, const char *const *dirs, struct profile_list *ret,
                       struct err *e) MUST_USE;
/* A program that is an adapter itself (driver `contract`) is a profile, too, unless one of that
 * name is there: `NAME` for a program cinch-adapter-NAME in PATH, `exec:PATH` for any; so is an
 * image of a container: `image:REFERENCE`. A profile with parts for some versions is the one for
 * the version that is installed. */
const struct profile *profile_find(const struct profile_list *list, struct str name);
/* Only what is built in or a file of the profile directories; no program in PATH, no exec:PATH, no
 * image:REFERENCE. */
const struct profile *profile_installed(const struct profile_list *list, struct str name);
/* The first of its programs that is in `path`; NULL: none is, or it has none of its own. */
const char *profile_program(struct arena *a, const struct profile *p, const char *path);
/* ERR_UNAVAILABLE with the nearest known name. */
int profile_require(const struct profile_list *list, struct str name, const struct profile **ret,
                    struct err *e) MUST_USE;

/* SPDX-License-Identifier: MIT
 *
 * struct setting: one row of the table of settings. Everything that cinch knows about a key of a
 * task is in its row, and everything that depends on keys is made from the rows:
 *
 *   check of keys, kinds and bounds      settings_shape()        every layer
 *   who may set a key                    settings_shape()        project files, skill packages
 *   typed fields and their defaults      settings_read_table()   struct settings
 *   the lowest layer                     settings_defaults()     task.json, `config --explain`
 *   shorthands, relative paths           settings_paths.c
 *   options of `run`, `task`, `config`   cli/run_request.c
 *   schema/task*.schema.json             settings_schema()       `cinch schema`
 *   the reference in docs/task.md        cli/settings_markdown.c `cinch config --markdown`
 *
 * To add a setting:
 *  1. add a row to settings_table.c, in its section:
 *         { "limits.idle", SHAPE_DURATION, .field = FIELD(idle), .fallback = "0",
 *           .help = "stop the run if the agent neither prints nor uses the CPU for TIME",
 *           .option = { "idle-timeout", .value = "TIME", .heading = HEADING_LIMITS },
 *           .since = "0.2.0" },
 *  2. add the member that FIELD() names to struct settings (settings.h);
 *  3. `ninja -C build docs-update` writes the schemas, docs/task.md and docs/cli.md anew.
 * Then use the member. The test `settings_table` checks the row, and does these steps with a table
 * of its own.
 *
 * Merging follows the kind: maps are merged, everything else is replaced, null removes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "data/shape.h"

/* The C type of the member, and where it is. A member of another type does not compile. */
enum setting_type {
    SETTING_NO_FIELD, /* read elsewhere */
    SETTING_BOOL,     /* bool; of words: by their values */
    SETTING_INT,      /* int64_t; a duration in nanoseconds, a size in bytes */
    SETTING_REAL,     /* double */
    SETTING_TEXT,     /* const char *, NULL: not given */
    SETTING_STR,      /* struct str, ptr NULL: not given */
    SETTING_JSON,     /* const struct json *, NULL: not given */
    SETTING_ENUM,     /* an enum, by the values of the words; of a boolean: enum tristate */
};

struct setting_field {
    enum setting_type type;
    size_t offset;
};

#define SETTING_FIELD(container, member)                                              \
    {                                                                                 \
        _Generic(((container *)NULL)->member, bool                                  \
                 : SETTING_BOOL, int64_t                                            \
                 : SETTING_INT, double                                              \
                 : SETTING_REAL, const char *                                       \
                 : SETTING_TEXT, struct str                                         \
                 : SETTING_STR, const struct json *                                 \
                 : SETTING_JSON, unsigned                                           \
                 : SETTING_ENUM), offsetof(container, member) \
    }

/* The words of a key in the order of their values: WORDS("private|shared", HOME_PRIVATE, …). */
#define SETTING_WORDS(text, ...)                              \
    .words = (text), .values = (const int[]) { __VA_ARGS__ }, \
    .values_len = sizeof((const int[]) { __VA_ARGS__ }) / sizeof(int)

enum setting_flag {
    /* The default is a value of the lowest layer: task.json and `cinch config` show it. */
    SETTING_RECORDED = 1u << 0,
    /* null switches it off (0, NULL) instead of restoring the default. */
    SETTING_REMOVABLE = 1u << 1,
};

/* Who may set a key besides the user, the site, the profile and the task. */
enum setting_writer {
    SETTING_BY_PROJECT = 1u << 0, /* .cinch/config.yaml of a workspace */
    SETTING_BY_SKILL = 1u << 1,   /* a skill package */
};

/* Headings of the options in the help, in this order. */
enum setting_heading {
    HEADING_TASK,
    HEADING_LIMITS,
    HEADING_GATEWAY,
    HEADING_ENVIRONMENT,
    HEADING_SANDBOX,
    HEADING_EVALUATION,
    HEADING_MAX
};
extern const char *const setting_headings[HEADING_MAX]; /* "Task", "Limits" … */

enum setting_complete { COMPLETE_BY_KIND, COMPLETE_DIRECTORIES, COMPLETE_ADAPTERS };

/* The option that sets the key. Its kind, words, bounds and default are those of the setting. */
struct setting_option {
    const char *name; /* long name; NULL: no option */
    char letter;
    const char *value; /* placeholder; NULL: a switch */
    enum setting_heading heading;
    bool negatable;       /* a switch that also exists as --no-NAME */
    bool positive;        /* 0 is refused */
    const char *on, *off; /* a switch for a key with words: the words of --NAME and --no-NAME */
    enum setting_complete complete;
};

struct setting {
    const char *key; /* dotted; NULL ends a table. The section of a key is a row of its own */
    enum shape_kind kind;
    const struct shape *inner; /* SHAPE_LIST: the items; SHAPE_OBJECT: members without rows */
    const char *words;         /* see SETTING_WORDS() */
    const int *values;
    size_t values_len;
    double min, max; /* bounds of a number, unless both are 0 */
    /* Members that a plain value stands for, as "path" or "text|sections": of a section, or of each
     * item of a list. */
    const char *shorthand;
    const char *fallback; /* the default, as YAML; NULL: none */
    const char *shown;    /* a default that is found out later, or how to show it; NULL: as above */
    double unset;         /* of a number that is not set and has no default */
    int64_t unit;         /* one of the key in units of the field; 0: 1 */
    unsigned flags;       /* enum setting_flag */
    unsigned writers;     /* enum setting_writer */
    struct setting_field field;
    struct setting_option option;
    const char *help;  /* lower case, no full stop; the help of the option, too */
    const char *since; /* the version that brought it; NULL: 0.1.0 */
};

extern const struct setting settings_table[];

/* NULL when there is no such key. */
const struct setting *setting_find(const struct setting *table, struct str key);
/* Is this a member of `section` ("": of the top)? The last part of its key, else NULL. */
const char *setting_member(const struct setting *s, struct str section);
/* The value at a dotted path, or NULL. */
struct json *setting_value(const struct json *tree, const char *key);
/* Sets it, making the sections on the way. */
void setting_put(struct arena *a, struct json *tree, const char *key, struct json *value);
/* The default as a value; NULL when there is none. */
struct json *setting_default(struct arena *a, const struct setting *s);
/* The default for people: "1h", "the adapter's choice"; NULL when there is none. */
const char *setting_shown(const struct setting *s);

/* --- what is made from a table --- */

/* The keys that a writer may set, for shape_check(); `writer` 0: all. */
const struct shape *settings_shape(struct arena *a, const struct setting *table, unsigned writer);
/* A tree of the defaults that are recorded. */
struct json *settings_defaults(struct arena *a, const struct setting *table);
/* The fields of `container` from a checked tree. */
void settings_read_table(struct arena *a, const struct setting *table, const struct json *tree,
                         void *container);
/* Leaves as of layers_explain() for the defaults of keys that no layer mentions; added to `list`.
 * The value of a default that is found out later is null, its source says what it will be. */
struct layers;
void settings_explain_defaults(struct arena *a, const struct setting *table,
                               const struct layers *layers, struct json *list);

/* "task" (what task.json holds) or "task-file" (what people write); NULL for another name. */
struct json *settings_schema(struct arena *a, const struct setting *table, const char *name);
extern const char *const settings_schema_names[]; /* NULL-terminated */

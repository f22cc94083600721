/* SPDX-License-Identifier: MIT
 *
 * What the manual says beyond commands and options: exit statuses, environment, files. Data for the
 * man page and docs/cli.md.
 */
#pragma once

struct manual_entry {
    const char *term; /* NULL ends a table */
    const char *text; /* lower case, no full stop */
};

struct manual_status {
    int status; /* -1 ends the table */
    const char *text;
};

extern const char *const manual_about[]; /* paragraphs, NULL-terminated */
extern const struct manual_status manual_statuses[];
extern const struct manual_entry manual_environment[];
extern const struct manual_entry manual_settings[]; /* files that are read */
extern const struct manual_entry manual_files[];    /* of a run directory */

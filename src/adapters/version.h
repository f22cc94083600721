/* SPDX-License-Identifier: MIT
 *
 * Versions of harness programs: which one is installed, and whether the profile was tested with it.
 *
 *   const char *v = version_installed(a, "/usr/local/bin/qwen", profile->version_package);
 *   version_compare(STR("0.24.4"), STR("0.9"))                > 0
 *   version_is_tested(profile, v)
 *
 * The installed version is read from the package that the program belongs to (package.json of npm,
 * *.dist-info of a Python environment); no program is started. Programs of other origin have to be
 * asked (proc/probe.h, with the profile's `version.command`).
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct profile;

/* Numbers are compared as numbers; a pre-release ("1.0-rc.1") comes before its release, and build
 * metadata ("+x") does not count. What is missing at the end counts as 0. */
int version_compare(struct str a, struct str b);
/* Both bounds are inclusive; NULL: none. A bound "0.24" includes 0.24.4 as `until`. */
bool version_within(struct str version, const char *since, const char *until);

/* Of the program at that path; NULL: not known. `package` is the name of the package, NULL: the one
 * that contains the program. */
const char *version_installed(struct arena *a, const char *program, const char *package);
/* The same for the program of a profile; NULL also where only the program knows its version
 * (`version.command`), since the package that it comes in has another one. */
const char *version_of_program(struct arena *a, const struct profile *p, const char *program);

/* From the output of `PROGRAM --version`: "codex-cli 0.166.0", "v1.2", "2.1.197 (Claude Code)": the
 * word that is a number, else the first line. Plain ASCII. */
const char *version_of_output(struct arena *a, struct str output);

/* False also for an unverified profile, and if the profile states no version. */
bool version_is_tested(const struct profile *p, const char *version);
/* "0.12.0 to 0.24.4", "0.24.4"; NULL: the profile states none. */
const char *version_tested(struct arena *a, const struct profile *p);
/* "qwen 0.25.0 has not been tested with this adapter (tested: 0.12.0 to 0.24.4); to test it: cinch
 * ack -a qwen --tier 1 --tier 2"; NULL: it has, or nothing is known. */
const char *version_warning(struct arena *a, const struct profile *p, const char *version);

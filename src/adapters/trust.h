/* SPDX-License-Identifier: MIT
 *
 * The trust table of a harness: some harnesses work in a directory only after the user has trusted
 * it, and keep that in a file of the user's home. For a run in a shared home cinch adds the
 * workspace to that table before the harness starts and takes it out again whatever happened.
 *
 *   struct trust_entry t = { TRUST_CODEX, "/home/u/.codex/config.toml", "/home/u/work" };
 *   trust_register(&t, run_id, &outcome, e);    before execute; a failure means: do not start
 *   …
 *   trust_remove(&t, run_id, e);                always; the caller only warns when it fails
 *
 *   style    file                        entry
 *   codex    .codex/config.toml          projects."<dir>".trust_level = "trusted"
 *   gemini   .gemini/trustedFolders.json "<dir>": "TRUST_FOLDER"
 *   claude   .claude.json                projects["<dir>"].hasTrustDialogAccepted = true
 *
 * The file is the user's:
 *  1. It is edited textually: codex gets a block of lines between two comments at the end of its
 *     file, the others one member. All other bytes stay; when the last run has left, the file is
 *     byte for byte what it was. A symbolic link stays one, mode and owner stay, readers see the
 *     old or the new file, never half of one.
 *  2. A file that does not parse (a JSON file with comments does not) is refused, never reset. So
 *     is one in which the edit would change anything else.
 *  3. An entry that the user has made is neither changed nor removed. If it says "do not trust",
 *     the registration is refused (ERR_DENIED).
 *  4. A file that did not exist is made (mode 0600), and removed again when it is empty after the
 *     last run.
 *
 * Beside the file, or beside its target if it is a link, lie
 *   <file>.cinch.lock   for flock(2), held for each edit; stays. Not <file>.lock: that name belongs
 *                       to the harnesses, which make a directory of it (Claude Code; npm's
 *                       proper-lockfile)
 *   <file>.cinch.json   who uses which entry: directory -> runs with process id and start time. The
 *                       first run adds the entry, the last one removes it. Gone when nobody is
 *                       left.
 *
 * A run whose process is dead does not count; the process id alone is not believed, since ids are
 * reused. Runs in another pid namespace cannot be judged and count as alive. A home shared between
 * machines is not supported: neither locks nor process ids cross over.
 *
 * All functions may wait for the lock, at most ten seconds (ERR_TIMEOUT). Against a harness that
 * rewrites its file without looking at our lock, the file is looked at once more right before it is
 * replaced; if it has changed, the edit starts over on the new text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum trust_style { TRUST_CODEX, TRUST_GEMINI, TRUST_CLAUDE };

/* From the word in a profile: "codex", "gemini", "claude". */
bool trust_style_of(const char *word, enum trust_style *ret);

struct trust_entry {
    enum trust_style style;
    const char *file; /* may be missing, its directories too */
    const char *dir;  /* absolute, as the harness will see it; must be UTF-8 */
};

enum trust_outcome {
    TRUST_ADDED,  /* the entry is ours, and new */
    TRUST_JOINED, /* the entry is ours, from another run that is still there or was killed */
    TRUST_OWN,    /* the user trusts this directory: nothing was written, nothing will be removed */
};

/* The run belongs to the calling process. Registering a run again is harmless. `ret` may be NULL.
 */
int trust_register(const struct trust_entry *t, const char *run_id, enum trust_outcome *ret,
                   struct err *e) MUST_USE;

/* The run leaves. Unknown runs, directories and files are fine. On failure the entry stays noted,
 * so that a sweep can remove it later. */
int trust_remove(const struct trust_entry *t, const char *run_id, struct err *e) MUST_USE;

/* Lets the caller of a sweep overrule what the process table says about a run. */
struct trust_port {
    bool (*alive)(void *self, const char *run_id, bool process_alive);
    void *self;
};

struct trust_swept {
    size_t runs;    /* dead runs that were dropped */
    size_t entries; /* entries that were removed */
    size_t kept;    /* entries that are still in use */
};

/* Removes what runs have left behind that died without trust_remove(). Only entries noted in
 * <file>.cinch.json are ever touched. `port` and `ret` may be NULL. If one entry cannot be removed,
 * the others still are, and the first error is returned. */
int trust_sweep(enum trust_style style, const char *file, const struct trust_port *port,
                struct trust_swept *ret, struct err *e) MUST_USE;

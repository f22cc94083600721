/* SPDX-License-Identifier: MIT
 *
 * Looking for a node that is new enough; see node.h.
 */
#include "adapters/node.h"

#include "adapters/version.h"
#include "proc/probe.h"
#include "proc/which.h"

/* It answers within 50 ms on a machine at rest. */
#define NODE_TIME (30 * NSEC_PER_SEC)
/* Directories of PATH that have a node; a longer PATH is an accident. */
enum { NODES_MAX = 16 };
enum { OTHERS_LONGEST = 300 };

/* Its version, or NULL if it does not say one. */
static int ask_node(struct arena *a, const char *program, const char **ret, struct err *e)
{
    const char *const argv[] = { program, "--version", NULL };
    CLEANUP(buf) struct buf output = BUF_INIT(4096);
    struct err why = { 0 };
    int r = probe_program(argv, NODE_TIME, &output, NULL, &why);
    if (r == -ERR_CANCELLED) {
        return ERR(e, ERR_CANCELLED, "%s", why.msg);
    }
    *ret = r == 0 && output.len > 0 ? version_of_output(a, buf_str(&output)) : NULL;
    return 0;
}

int node_find(struct arena *a, const char *wanted, const char *path, const char **ret_dir,
              struct err *e)
{
    struct str rest = str_of(path == NULL ? "" : path);
    CLEANUP(buf) struct buf found = BUF_INIT(BUF_TEXT);
    *ret_dir = NULL;
    for (size_t n = 0; rest.len > 0 && n < NODES_MAX;) {
        const char *dir = arena_dup(a, str_split(&rest, ':'));
        char program[PATH_MAX];
        const char *version = NULL;
        if (dir[0] != '/' || which_find("node", dir, NULL, program, NULL) < 0) {
            continue;
        }
        int r = ask_node(a, program, &version, e);
        if (r < 0) {
            return r;
        }
        if (version != NULL && version_compare(str_of(version), str_of(wanted)) >= 0) {
            *ret_dir = n == 0 ? NULL : dir;
            return 0;
        }
        n++;
        buf_addf(&found, "%s%s (%s)", found.len > 0 ? ", " : "", version == NULL ? "?" : version,
                 program);
    }
    struct str others = found.len > 0 ? buf_str(&found) : STR("none");
    return ERR(e, ERR_UNAVAILABLE, "it needs node %s or newer; PATH has %.*s", wanted,
               STR_ARG(str_slice(others, 0, OTHERS_LONGEST)));
}

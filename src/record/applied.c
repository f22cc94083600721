/* SPDX-License-Identifier: MIT
 *
 * apply/applied.json: written after a run has ended, by `cinch apply`.
 */
#include "record/applied.h"

#include <string.h>

#include "base/clock.h"
#include "base/file.h"

enum { APPLIED_MAX = 1 << 20 };

struct json *applied_read(const struct rundir *d, struct arena *a)
{
    struct json *o = rundir_read_object(d, APPLIED_FILE, APPLIED_MAX, a);
    struct json *list = json_get(o, "applied");
    return json_is(list, JSON_ARRAY) ? list : json_array(a);
}

struct json *applied_latest(struct json *list, const char *target)
{
    for (size_t i = json_len(list); i-- > 0;) {
        struct json *one = json_item(list, i);
        if (json_get(one, "undone_at") != NULL && !json_is(json_get(one, "undone_at"), JSON_NULL)) {
            continue;
        }
        if (target == NULL || strcmp(json_cstring(json_get(one, "target"), ""), target) == 0) {
            return one;
        }
    }
    return NULL;
}

static int write_list(const struct rundir *d, struct arena *a, struct json *list, struct err *e)
{
    struct json *o = json_object(a);
    json_setc(a, o, "applied", list);
    int r = file_mkdirs(d->dir_fd, "apply", 0700, e);
    return r < 0 ? r : rundir_write_json(d, APPLIED_FILE, o, e);
}

int applied_add(const struct rundir *d, struct arena *a, const struct applied *one, struct err *e)
{
    char iso[CLOCK_ISO_LEN];
    struct json *list = applied_read(d, a);
    struct json *o = json_object(a);
    json_setc(a, o, "at", json_cstr(a, clock_iso(clock_wall(), iso)));
    json_setc(a, o, "target", json_cstr(a, one->target));
    json_setc(a, o, "branch", json_cstr(a, one->branch));
    json_setc(a, o, "commit", json_cstr(a, one->commit));
    json_setc(a, o, "undo", json_cstr(a, one->undo));
    json_setc(a, o, "undone_at", json_null(a));
    json_push(a, list, o);
    return write_list(d, a, list, e);
}

int applied_mark_undone(const struct rundir *d, struct arena *a, struct json *list,
                        struct json *entry, struct err *e)
{
    char iso[CLOCK_ISO_LEN];
    json_setc(a, entry, "undone_at", json_cstr(a, clock_iso(clock_wall(), iso)));
    return write_list(d, a, list, e);
}

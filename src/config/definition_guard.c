/* SPDX-License-Identifier: MIT
 *
 * Policies, feedback and completion of a task, judged before anything is started: made once with
 * nothing to work on, and thrown away. A run makes them again with its session and its sandbox.
 */
#include "config/definition_priv.h"
#include "guard/completion_check.h"
#include "guard/feedback.h"
#include "guard/guard.h"

/* "a.b" of the keys of a section, at any depth. */
static bool is_path(const struct json *keys, struct str path)
{
    for (size_t i = 0; i < json_len(keys); i++) {
        if (path.ptr == NULL ||
            !str_eq(str_split(&path, '.'), json_str(json_item(keys, i), STR_EMPTY))) {
            return false;
        }
    }
    return path.ptr == NULL;
}

static bool has_section(void *arg, struct str path)
{
    const struct definition *d = arg;
    if (d->sections == NULL) {
        return false;
    }
    const struct json *all = json_get(section_tree_describe(d->sections, d->arena), "sections");
    for (size_t i = 0; i < json_len(all); i++) {
        if (is_path(json_get(json_item(all, i), "path"), path)) {
            return true;
        }
    }
    return false;
}

static const char *file_of(const struct definition *d, const char *key)
{
    return settings_origin(d->settings, d->arena, key, NULL).file;
}

int definition_check_guards(struct definition *d, struct err *e)
{
    const struct settings *s = d->settings;
    struct guard *guard = NULL;
    struct feedback *feedback = NULL;
    struct completion *completion = NULL;
    struct guard_opts policies = {
        .policies = s->policies,
        .section = has_section,
        .arg = d,
        .file = file_of(d, "policies"),
    };
    struct feedback_opts providers = { .providers = s->feedback, .file = file_of(d, "feedback") };
    struct completion_opts rules = { .rules = s->completion, .file = file_of(d, "completion") };
    int r = guard_new(&policies, &guard, e);
    r = r < 0 ? r : feedback_new(&providers, &feedback, e);
    r = r < 0 ? r : completion_new(&rules, &completion, e);
    (void)guard_free(guard);
    (void)feedback_free(feedback);
    (void)completion_free(completion);
    return r;
}

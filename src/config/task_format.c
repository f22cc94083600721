/* SPDX-License-Identifier: MIT
 *
 * The table of task formats; see task_format.h.
 */
#include "config/task_format.h"

#include <fcntl.h>

#include "base/file.h"
#include "config/holon_spec.h"
#include "config/scylla_test.h"
#include "data/yaml.h"

static const struct task_format formats[] = {
    { "holon", holon_spec_recognise, holon_spec_load },
    { "holon-config", holon_config_recognise, holon_config_load },
    { "scylla", scylla_test_recognise, scylla_test_load },
};

static const struct task_format *find_format(const struct task_source *src)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (formats[i].recognise(src)) {
            return &formats[i];
        }
    }
    return NULL;
}

bool task_is_directory(const char *path)
{
    struct task_source src = { .path = path, .is_dir = true };
    return file_is_dir(AT_FDCWD, path) && find_format(&src) != NULL;
}

static const char *parent_of(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return ".";
    }
    return slash == path ? "/" : arena_dup(a, str_n(path, (size_t)(slash - path)));
}

/* A file that is too large is wrong as a file, not a failure of cinch. */
static int read_source(struct arena *a, const struct json_limits *limits, struct task_source *src,
                       struct err *e)
{
    int r = src->is_dir ? 0 : yaml_load(a, src->path, limits, &src->tree, e);
    if (r == -ERR_LIMIT) {
        e->code = ERR_CONFIG;
        r = -ERR_CONFIG;
    }
    return r;
}

int task_load(struct arena *a, const char *path, const struct json_limits *limits,
              struct task_loaded *ret, struct err *e)
{
    struct task_source src = { .path = path, .is_dir = file_is_dir(AT_FDCWD, path) };
    *ret = (struct task_loaded) { .notes = json_array(a) };
    int r = read_source(a, limits, &src, e);
    if (r < 0) {
        return r;
    }
    const struct task_format *format = find_format(&src);
    ret->tree = src.tree;
    ret->dir = src.is_dir ? arena_dup(a, str_of(path)) : parent_of(a, path);
    if (format == NULL) {
        return src.is_dir ? ERR(e, ERR_CONFIG, "'%s' is a directory, not a task", path) : 0;
    }
    ret->format = format->name;
    return format->load(a, &src, ret->notes, &ret->tree, e);
}

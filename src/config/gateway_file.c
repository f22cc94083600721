/* SPDX-License-Identifier: MIT
 *
 * Reading `gateway` out of a file.
 */
#include "config/gateway_file.h"

#include <limits.h>

#include "base/file.h"
#include "config/settings_priv.h"
#include "data/yaml.h"

int gateway_file_load(struct arena *a, const char *path, struct json **ret, struct err *e)
{
    char absolute[PATH_MAX];
    struct json *tree;
    const struct shape *shape = settings_shape(a, settings_table, 0);
    int r = path_absolute(path, absolute, sizeof absolute, e);
    r = r < 0 ? r : yaml_load(a, path, NULL, &tree, e);
    if (r < 0) {
        return r;
    }
    r = settings_check_layer(a, tree, shape, path, e);
    if (r < 0) {
        return r;
    }
    struct str dir =
        str_slice(str_of(absolute), 0, strlen(absolute) - path_base(str_of(absolute)).len);
    *ret = json_get(tree, "gateway");
    if (!json_is(*ret, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "%s: the key 'gateway' is missing", path);
    }
    return settings_resolve_paths(a, tree, shape, arena_dup(a, dir), e);
}

/* SPDX-License-Identifier: MIT
 *
 * The list of drivers.
 */
#include "adapters/driver.h"

static const struct driver *const drivers[] = { &driver_acp, &driver_api, &driver_oneshot };

const struct driver *driver_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            return drivers[i];
        }
    }
    return NULL;
}

bool driver_is_internal(const struct profile *p)
{
    const struct driver *driver = driver_find(p->driver);
    return driver != NULL && driver->plan == NULL;
}

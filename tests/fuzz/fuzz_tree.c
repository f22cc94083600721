/* SPDX-License-Identifier: MIT
 *
 * Any bytes as /proc/<pid>/stat: the name in it is chosen by the process.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "init/process_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tree_proc p;
    if (tree_parse_stat(str_n(data, size), &p) && strlen(p.comm) >= sizeof p.comm) {
        abort();
    }
    return 0;
}

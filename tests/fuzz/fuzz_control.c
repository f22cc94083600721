/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a status message: what passes the checks can be printed and used.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "init/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct control_status s;
    struct control_command c;
    memset(&s, 0, sizeof s);
    memset(&c, 0, sizeof c);
    memcpy(&s, data, size < sizeof s ? size : sizeof s);
    memcpy(&c, data, size < sizeof c ? size : sizeof c);
    (void)control_command_ok(&c);
    if (!control_status_ok(&s)) {
        return 0;
    }
    struct err e;
    if (s.type == CONTROL_STATUS_START_FAILED || s.type == CONTROL_STATUS_ERROR) {
        control_err_to(&s.error, &e);
        if (strlen(e.msg) >= sizeof e.msg || strcmp(err_word(e.code), "ok") == 0) {
            abort();
        }
    }
    for (uint32_t i = 0; s.type == CONTROL_STATUS_FINISHED && i < s.finished.n_names; i++) {
        if (strlen(s.finished.names[i]) >= CONTROL_NAME_LEN) {
            abort();
        }
    }
    return 0;
}

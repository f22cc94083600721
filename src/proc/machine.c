/* SPDX-License-Identifier: MIT
 *
 * The transition table. An empty cell would be PROC_STATE_INVALID; tests/unit/proc/test_machine.c
 * sees that there is none, so each pair was thought of.
 */
#include "proc/machine.h"

#include <stdbool.h>
#include <stddef.h>

#define STARTING  PROC_STATE_STARTING
#define RUNNING   PROC_STATE_RUNNING
#define STOPPING  PROC_STATE_STOPPING
#define KILLING   PROC_STATE_KILLING
#define DRAINING  PROC_STATE_DRAINING
#define FINISHING PROC_STATE_FINISHING
#define SWEEPING  PROC_STATE_SWEEPING
#define CLOSING   PROC_STATE_CLOSING
#define DONE      PROC_STATE_DONE

/* clang-format off */
static const unsigned char next[PROC_STATE_MAX][PROC_EVENT_MAX] = {
    /*              started    failed     exited     empty      eof        init_done  init_lost  swept     stop       kill       deadline */
    [STARTING]  = { RUNNING,   FINISHING, DRAINING,  STARTING,  STARTING,  SWEEPING,  SWEEPING,  STARTING, STOPPING,  KILLING,   SWEEPING },
    [RUNNING]   = { RUNNING,   RUNNING,   DRAINING,  RUNNING,   RUNNING,   SWEEPING,  SWEEPING,  RUNNING,  STOPPING,  KILLING,   STOPPING },
    [STOPPING]  = { STOPPING,  FINISHING, DRAINING,  STOPPING,  STOPPING,  SWEEPING,  SWEEPING,  STOPPING, STOPPING,  KILLING,   KILLING },
    [KILLING]   = { KILLING,   FINISHING, DRAINING,  KILLING,   KILLING,   SWEEPING,  SWEEPING,  KILLING,  KILLING,   KILLING,   SWEEPING },
    [DRAINING]  = { DRAINING,  DRAINING,  DRAINING,  FINISHING, FINISHING, SWEEPING,  SWEEPING,  DRAINING, FINISHING, FINISHING, FINISHING },
    [FINISHING] = { FINISHING, FINISHING, FINISHING, FINISHING, FINISHING, CLOSING,   SWEEPING,  FINISHING, FINISHING, FINISHING, SWEEPING },
    [SWEEPING]  = { SWEEPING,  SWEEPING,  SWEEPING,  SWEEPING,  SWEEPING,  SWEEPING,  SWEEPING,  CLOSING,  SWEEPING,  SWEEPING,  CLOSING },
    [CLOSING]   = { CLOSING,   CLOSING,   CLOSING,   CLOSING,   DONE,      CLOSING,   CLOSING,   CLOSING,  CLOSING,   CLOSING,   DONE },
    [DONE]      = { DONE,      DONE,      DONE,      DONE,      DONE,      DONE,      DONE,      DONE,     DONE,      DONE,      DONE },
};
/* clang-format on */

static const char *const state_names[] = { [PROC_STATE_INVALID] = "invalid",
#define X(state, name) [state] = name,
                                           PROC_STATES(X)
#undef X
};

static const char *const event_names[] = {
#define X(event, name) [event] = name,
    PROC_EVENTS(X)
#undef X
};

enum proc_state machine_next(enum proc_state from, enum proc_event event)
{
    return (enum proc_state)next[from][event];
}

const char *machine_state_name(enum proc_state s)
{
    return state_names[s];
}

const char *machine_event_name(enum proc_event ev)
{
    return event_names[ev];
}

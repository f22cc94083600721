/* SPDX-License-Identifier: MIT
 *
 * The memory of a run: who keeps the bound (`sandbox.memory`), and what is reported when it is
 * reached.
 *
 *  1. memory_begin(run)   when the sandbox is ready, or there is none
 *  2. memory_exceeded(run, …)   when the use of the tree is known; only without a control group
 *  3. memory_end(run)   while the control group still exists: counts what the kernel killed
 *  4. memory_judge(run)   a failure after that is explained by it
 *
 * A control group (sandbox/cgroup.h) keeps the bound itself. Without one (an ordinary user without
 * delegation and --allow-degraded, or --sandbox off) the memory in use by the agent's tree is
 * looked at ten times a second, and beyond the bound the run ends: what is faster than that is not
 * bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run;

struct run_memory {
    int64_t limit; /* bytes; 0: none */
    bool polled;   /* no control group keeps it */
    int64_t kills; /* of the kernel's, so far as they were reported */
};

void memory_begin(struct run *run);
/* True: the tree uses more than it may; `text` says how much. */
bool memory_exceeded(struct run *run, int64_t used, char *text, size_t size);
void memory_end(struct run *run);
void memory_judge(struct run *run);

/* Where nobody says: three quarters of what the machine has. */
uint64_t memory_default(void);

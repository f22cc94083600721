/* SPDX-License-Identifier: MIT
 *
 * Inside of the sandbox: what its files share.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Connections and datagrams that nobody could take, in the network namespace of a process; -1: not
 * known. */
int64_t blocked_egress_count(pid_t inside);

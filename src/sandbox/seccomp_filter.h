/* SPDX-License-Identifier: MIT
 *
 * The system call filter: BPF programs made at build time (filter_generate.c, with libseccomp), so
 * that starting a sandbox costs no compiling.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* The instructions for the kernel. nested: for a harness that brings a sandbox of its own. setgid:
 * chmod() may set S_ISGID; creating such a file is refused in any case, and S_ISUID always. */
struct str sandbox_filter(bool nested, bool setgid);

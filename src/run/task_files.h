/* SPDX-License-Identifier: MIT
 *
 * Files that a task brings for the harness: instructions for all projects (`instructions`) and
 * sub-agents (`agents`), written into the run's home where the profile says. A harness without a
 * file for instructions gets their text in front of the prompt. config/support.c has refused what
 * the adapter cannot take.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct run;

/* Phase prepare. ERR_INPUT for a file that cannot be read. */
int task_files_install(struct run *run, struct err *e) MUST_USE;
/* The prompt of the first turn. */
struct str task_files_prompt(struct run *run, struct str prompt);

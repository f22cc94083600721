/* SPDX-License-Identifier: MIT
 *
 * As much of ELF as is needed to give a program another loader: which one it names, and where.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ELF_LOADER_MAX 128

struct elf_info {
    bool is_elf;        /* of this machine: 64 bits, its byte order */
    bool dynamic;       /* names a loader */
    uint64_t loader_at; /* where in the file, and how many bytes there are, the NUL included */
    uint64_t loader_len;
    char loader[ELF_LOADER_MAX];
};

/* is_elf false for anything else. ERR_PARSE: an ELF file that contradicts itself. */
int elf_look(int fd, struct elf_info *ret, struct err *e) MUST_USE;

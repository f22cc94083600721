/* SPDX-License-Identifier: MIT
 *
 * Header and program headers, nothing else.
 */
#include "image/elf.h"

#include <elf.h>
#include <endian.h>
#include <string.h>
#include <unistd.h>

enum { HEADERS_MAX = 256 };

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define OWN_ORDER ELFDATA2LSB
#else
#define OWN_ORDER ELFDATA2MSB
#endif

static int take_loader(int fd, const Elf64_Phdr *p, struct elf_info *ret, struct err *e)
{
    if (p->p_filesz < 2 || p->p_filesz > sizeof ret->loader ||
        pread(fd, ret->loader, p->p_filesz, (off_t)p->p_offset) != (ssize_t)p->p_filesz ||
        ret->loader[p->p_filesz - 1] != '\0' || ret->loader[0] != '/') {
        return ERR(e, ERR_PARSE, "the program names a loader that cannot be read");
    }
    ret->dynamic = true;
    ret->loader_at = p->p_offset;
    ret->loader_len = p->p_filesz;
    return 0;
}

int elf_look(int fd, struct elf_info *ret, struct err *e)
{
    Elf64_Ehdr h;
    *ret = (struct elf_info) { 0 };
    if (pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h ||
        memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != OWN_ORDER) {
        return 0;
    }
    ret->is_elf = true;
    if (h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum > HEADERS_MAX ||
        h.e_phoff > (uint64_t)1 << 40) {
        return ERR(e, ERR_PARSE, "the headers of the program cannot be read");
    }
    for (size_t i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        if (pread(fd, &p, sizeof p, (off_t)(h.e_phoff + i * sizeof p)) != (ssize_t)sizeof p) {
            return ERR(e, ERR_PARSE, "the headers of the program cannot be read");
        }
        if (p.p_type == PT_INTERP) {
            return take_loader(fd, &p, ret, e);
        }
    }
    return 0;
}

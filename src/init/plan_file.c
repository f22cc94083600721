/* SPDX-License-Identifier: MIT
 *
 * Mapping a plan.
 */
#include "init/plan_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

int plan_map(int fd, enum plan_kind kind, struct plan *ret, struct err *e)
{
    const int want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & want) != want || fstat(fd, &st) != 0) {
        return ERR(e, ERR_PROTO, "the plan is not in a sealed memfd");
    }
    if (st.st_size <= 0 || (uint64_t)st.st_size > PLAN_MAX) {
        return ERR(e, ERR_PROTO, "a plan of %lld bytes", (long long)st.st_size);
    }
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        return ERR_SYS(e, "map the plan");
    }
    int rc = plan_open(str_n(at, (size_t)st.st_size), kind, ret, e);
    if (rc < 0) {
        (void)munmap(at, (size_t)st.st_size);
    }
    return rc;
}

void plan_unmap(struct plan *p)
{
    if (p->bytes.ptr != NULL) {
        (void)munmap((void *)(uintptr_t)p->bytes.ptr, p->bytes.len);
    }
    *p = (struct plan) { 0 };
}

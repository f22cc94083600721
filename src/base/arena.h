/* SPDX-License-Identifier: MIT
 *
 * struct arena: memory that dies together. One per run, one per message, one per parsed document.
 *
 *   struct arena *a = arena_new();  …  char *s = arena_dup(a, STR("x"));  …  arena_free(a);
 *
 * Nothing is freed singly. Out of memory aborts (see xmalloc). Allocations are aligned for any type
 * and zeroed. Under AddressSanitizer every allocation is its own malloc, so that the arena does not
 * blind the sanitizer.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/str.h"

struct arena;

struct arena *arena_new(void);
struct arena *arena_free(struct arena *a); /* accepts NULL, returns NULL */
void arena_reset(struct arena *a);         /* forget all allocations, keep one block */
void *arena_alloc(struct arena *a, size_t size);
void *arena_array(struct arena *a, size_t count, size_t size); /* overflow aborts */
char *arena_dup(struct arena *a, struct str s);                /* NUL-terminated copy */
struct str arena_str(struct arena *a, struct str s);           /* the same as a str */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
size_t arena_used(const struct arena *a);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))

/* malloc and friends that abort with a message when memory is gone; for what cannot live in an
 * arena. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);

static inline void cleanup_arena(struct arena **a)
{
    *a = arena_free(*a);
}
void cleanup_free(void *p); /* for CLEANUP(free) char *s = …  (p is char **) */

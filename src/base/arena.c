/* SPDX-License-Identifier: MIT
 *
 * A chain of blocks with a bump pointer. Under AddressSanitizer the same interface is served by one
 * malloc per allocation, kept in a list, so that overruns and use after free are still seen.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_SINGLE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_SINGLE 1
#endif
#endif
#ifndef ARENA_SINGLE
#define ARENA_SINGLE 0
#endif

/* Small enough that an idle run costs little memory, large enough that a document of a few hundred
 * values is one or two blocks. */
enum { BLOCK_BYTES = 8192 - 64 };

struct block {
    struct block *next;
    size_t size;
    size_t used;
    alignas(max_align_t) char data[];
};

struct arena {
    struct block *head;
    size_t total;
};

static void oom(size_t size)
{
    (void)fprintf(stderr, "cinch: out of memory (%zu bytes wanted)\n", size);
    abort();
}

void *xmalloc(size_t size)
{
    void *p = malloc(size == 0 ? 1 : size);
    if (p == NULL) {
        oom(size);
    }
    return p;
}

void *xcalloc(size_t count, size_t size)
{
    /* calloc() of glibc before 2.41 does not know the cache of small pieces that malloc() has. */
    enum { SMALL = 1024 };
    if (size > 0 && count <= SMALL / size) {
        return memset(xmalloc(count * size), 0, count * size);
    }
    void *p = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);
    if (p == NULL) {
        oom(size);
    }
    return p;
}

void *xrealloc(void *p, size_t size)
{
    void *q = realloc(p, size == 0 ? 1 : size);
    if (q == NULL) {
        oom(size);
    }
    return q;
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(xmalloc(n), s, n);
}

void cleanup_free(void *p)
{
    void *owned; /* read and cleared as bytes: the variable behind p may have any pointer type */
    memcpy(&owned, p, sizeof owned);
    free(owned);
    memset(p, 0, sizeof owned);
}

struct arena *arena_new(void)
{
    return xcalloc(1, sizeof(struct arena));
}

static void free_blocks(struct block *b)
{
    while (b != NULL) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
}

struct arena *arena_free(struct arena *a)
{
    if (a != NULL) {
        free_blocks(a->head);
        free(a);
    }
    return NULL;
}

void arena_reset(struct arena *a)
{
    struct block *keep = a->head;
    if (ARENA_SINGLE || keep == NULL || keep->size > BLOCK_BYTES) {
        free_blocks(keep);
        a->head = NULL;
    } else {
        free_blocks(keep->next);
        keep->next = NULL;
        keep->used = 0;
    }
    a->total = 0;
}

/* Holds one piece, and is full. Its zeros come from calloc(): of fresh pages they cost nothing. */
static struct block *block_for(size_t size)
{
    struct block *b = xcalloc(1, sizeof *b + size);
    b->size = b->used = size;
    return b;
}

static struct block *push_block(struct arena *a, struct block *b)
{
    b->next = a->head;
    a->head = b;
    return b;
}

/* Its bytes are what they are: most arenas die with a block that is nearly unused. */
static struct block *block_to_fill(void)
{
    struct block *b = xmalloc(sizeof *b + BLOCK_BYTES);
    b->size = BLOCK_BYTES;
    b->used = 0;
    return b;
}

/* Room of its own for a large piece: behind the current block, which stays in use. */
static void *alloc_large(struct arena *a, size_t size)
{
    struct block *own = block_for(size);
    if (a->head == NULL) {
        return push_block(a, own)->data;
    }
    own->next = a->head->next;
    a->head->next = own;
    return own->data;
}

/* Bytes of any value. */
static void *arena_take(struct arena *a, size_t want)
{
    struct block *b = a->head;
    if (b == NULL || b->size - b->used < want) {
        b = push_block(a, block_to_fill());
    }
    void *p = b->data + b->used;
    b->used += want;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2) {
        oom(size);
    }
    a->total += size;
    if (ARENA_SINGLE) {
        return push_block(a, block_for(size == 0 ? 1 : size))->data;
    }
    size_t want = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    bool fits = a->head != NULL && want <= a->head->size - a->head->used;
    bool large = want > BLOCK_BYTES || (a->head != NULL && want > BLOCK_BYTES / 4);
    if (!fits && large) {
        return alloc_large(a, want);
    }
    return memset(arena_take(a, want), 0, want);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        oom(SIZE_MAX);
    }
    return arena_alloc(a, bytes);
}

char *arena_dup(struct arena *a, struct str s)
{
    char *p = arena_alloc(a, s.len + 1);
    if (s.len > 0) {
        memcpy(p, s.ptr, s.len);
    }
    p[s.len] = '\0';
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    return str_n(arena_dup(a, s), s.len);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    char *p = arena_alloc(a, size);
    if (n >= 0) {
        (void)vsnprintf(p, size, fmt, again);
    }
    va_end(again);
    return p;
}

size_t arena_used(const struct arena *a)
{
    return a->total;
}

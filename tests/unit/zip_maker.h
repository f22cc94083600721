/* SPDX-License-Identifier: MIT
 *
 * Writes zip archives byte by byte, also ones that no honest program would write.
 *
 *   struct zip_maker m = ZIP_MAKER;
 *   zip_add(&m, "a/SKILL.md", "text");
 *   zip_put(&m, &(struct zip_item){ .name = "a/link", .data = STR("target"), .mode = 0120777 });
 *   struct str bytes = zip_end(&m);
 *   zip_maker_done(&m);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

struct zip_maker {
    struct buf bytes, central;
    unsigned count;
};

#define ZIP_MAKER            \
    {                        \
        { .max = BUF_TEXT }, \
        {                    \
            .max = BUF_TEXT  \
        }                    \
    }

struct zip_item {
    const char *name;
    size_t name_len; /* 0: up to its NUL */
    struct str data;
    uint32_t mode;   /* 0: none, as from DOS */
    uint16_t method; /* 0: stored; `data` is as it stands in the archive */
    uint16_t flags;
    uint32_t size; /* unpacked, when it is not that of the data */
    uint32_t crc;  /* of what is unpacked, when `size` is given */
};

static inline uint32_t zip_crc(struct str s)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < s.len; i++) {
        crc ^= (unsigned char)s.ptr[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static inline void zip_le(struct buf *b, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        char c = (char)(value >> (8 * i));
        buf_add(b, str_n(&c, 1));
    }
}

/* What local header and central directory have in common. */
static inline void zip_common(struct buf *b, const struct zip_item *item, size_t name_len)
{
    zip_le(b, 20, 2);
    zip_le(b, item->flags, 2);
    zip_le(b, item->method, 2);
    zip_le(b, 0x58210000u, 4); /* time and date */
    zip_le(b, item->size > 0 ? item->crc : zip_crc(item->data), 4);
    zip_le(b, (uint32_t)item->data.len, 4);
    zip_le(b, item->size > 0 ? item->size : (uint32_t)item->data.len, 4);
    zip_le(b, (uint32_t)name_len, 2);
    zip_le(b, 0, 2);
}

static inline void zip_put(struct zip_maker *m, const struct zip_item *item)
{
    size_t name_len = item->name_len > 0 ? item->name_len : strlen(item->name);
    uint32_t offset = (uint32_t)m->bytes.len;
    buf_adds(&m->bytes, "PK\3\4");
    zip_common(&m->bytes, item, name_len);
    buf_add(&m->bytes, str_n(item->name, name_len));
    buf_add(&m->bytes, item->data);
    buf_adds(&m->central, "PK\1\2");
    zip_le(&m->central, item->mode != 0 ? 0x0314 : 20, 2);
    zip_common(&m->central, item, name_len);
    zip_le(&m->central, 0, 2); /* comment */
    zip_le(&m->central, 0, 2); /* disk */
    zip_le(&m->central, 0, 2);
    zip_le(&m->central, item->mode << 16, 4);
    zip_le(&m->central, offset, 4);
    buf_add(&m->central, str_n(item->name, name_len));
    m->count++;
}

static inline void zip_add(struct zip_maker *m, const char *name, const char *text)
{
    zip_put(m, &(struct zip_item) { .name = name, .data = str_of(text), .mode = 0100644 });
}

static inline struct str zip_end(struct zip_maker *m)
{
    uint32_t offset = (uint32_t)m->bytes.len;
    uint32_t size = (uint32_t)m->central.len;
    buf_add(&m->bytes, buf_str(&m->central));
    buf_adds(&m->bytes, "PK\5\6");
    zip_le(&m->bytes, 0, 4);
    zip_le(&m->bytes, m->count, 2);
    zip_le(&m->bytes, m->count, 2);
    zip_le(&m->bytes, size, 4);
    zip_le(&m->bytes, offset, 4);
    zip_le(&m->bytes, 0, 2);
    return buf_str(&m->bytes);
}

static inline void zip_maker_done(struct zip_maker *m)
{
    buf_done(&m->bytes);
    buf_done(&m->central);
}

/* One MiB of zeros, deflated to 1033 bytes. */
enum { ZIP_BOMB_SIZE = 1 << 20, ZIP_BOMB_LEN = 1033 };
static inline struct zip_item zip_bomb(const char *name, char out[ZIP_BOMB_LEN])
{
    static const unsigned char head[] = { 237, 193, 49, 1,   0, 0,  0,  194,
                                          160, 245, 79, 109, 8, 95, 160 };
    memset(out, 0, ZIP_BOMB_LEN);
    memcpy(out, head, sizeof head);
    out[1031] = 62;
    out[1032] = 3;
    char *zeros = xcalloc(1, ZIP_BOMB_SIZE);
    uint32_t crc = zip_crc(str_n(zeros, ZIP_BOMB_SIZE));
    free(zeros);
    return (struct zip_item) { .name = name,
                               .data = str_n(out, ZIP_BOMB_LEN),
                               .mode = 0100644,
                               .method = 8,
                               .size = ZIP_BOMB_SIZE,
                               .crc = crc };
}

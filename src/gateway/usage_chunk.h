/* SPDX-License-Identifier: MIT
 *
 * struct usage_chunk: removes the usage chunk from a Chat Completions stream. The gateway asks for
 * that chunk where a budget needs it (passthrough_ask_usage); a client that did not ask for it must
 * not receive it. All other bytes pass unchanged and in order.
 *
 *   struct usage_chunk *u = usage_chunk_new();
 *   usage_chunk_feed(u, bytes, &out);       appends what the client gets
 *   usage_chunk_end(u, &out);               the stream has ended
 *   usage_chunk_free(u);
 *
 * An event is held back until its empty line has arrived. An event above USAGE_CHUNK_MAX bytes is
 * not a usage chunk and passes as it comes.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

enum { USAGE_CHUNK_MAX = 16 << 10 };

struct usage_chunk;

struct usage_chunk *usage_chunk_new(void);
struct usage_chunk *usage_chunk_free(struct usage_chunk *u); /* accepts NULL, returns NULL */
void usage_chunk_feed(struct usage_chunk *u, struct str bytes, struct buf *out);
void usage_chunk_end(struct usage_chunk *u, struct buf *out);

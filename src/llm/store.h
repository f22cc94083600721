/* SPDX-License-Identifier: MIT
 *
 * struct llm_store: what the gateway remembers of the responses that it translated, because the
 * client's format has no place for it or the client does not send it back: signatures of thoughts
 * and calls, and the items that a Responses client may refer to by id. Keys and values are text;
 * what they mean is up to the users (codec_recall.c, responses_writer.c).
 *
 *   struct llm_store *s = llm_store_new(0);
 *   llm_store_put(s, STR("call:toolu_1"), value);      replaces what the key had
 *   struct str v = llm_store_get(s, STR("call:toolu_1"));
 *
 * Bounded: beyond its limit the oldest entries are dropped. llm_store_json() and llm_store_load()
 * carry it from a run to the one that continues its conversation.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct arena;
struct json;
struct llm_store;

#define LLM_STORE_MAX       ((size_t)4 << 20) /* bytes of all keys and values */
#define LLM_STORE_ENTRY_MAX ((size_t)1 << 20) /* of one; a larger one is not kept */

struct llm_store *llm_store_new(size_t max);           /* 0: LLM_STORE_MAX */
struct llm_store *llm_store_free(struct llm_store *s); /* accepts NULL, returns NULL */
void llm_store_put(struct llm_store *s, struct str key, struct str value);
/* Empty: unknown. Valid until the next change. `s` may be NULL. */
struct str llm_store_get(const struct llm_store *s, struct str key);
size_t llm_store_count(const struct llm_store *s);

/* A list of [key, value], oldest first. */
struct json *llm_store_json(const struct llm_store *s, struct arena *a);
/* Adds the entries of such a list; ERR_PARSE if it is none. */
int llm_store_load(struct llm_store *s, const struct json *v, struct err *e) MUST_USE;

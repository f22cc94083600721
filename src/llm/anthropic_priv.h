/* SPDX-License-Identifier: MIT
 *
 * What the files of the Anthropic Messages codec share.
 */
#pragma once

#include "llm/codec_priv.h"

/* Spellings. */
enum {
    ANTHROPIC_STRING = 1u << 0,     /* content or system is one string, not a list */
    ANTHROPIC_NO_CONTENT = 1u << 1, /* a result without content */
    ANTHROPIC_TYPED = 1u << 2,      /* a tool that says "type": "custom" */
    ANTHROPIC_FORMAT = 1u << 3,     /* the schema stood in `output_format`, as it first was */
};

int llm_anthropic_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                        struct json **ret, struct err *e);

struct llm_anthropic_index {
    int64_t index; /* on the wire */
    uint32_t block;
    enum llm_part_kind kind;
};
struct llm_anthropic_reader {
    LLM_LIST(struct llm_anthropic_index) indices;
};
struct llm_anthropic_writer {
    bool start_waits; /* for usage that may follow START */
    bool open;
    bool stopped;
    bool custom; /* the open call's input is text that becomes {"input": text} */
    uint32_t block;
    enum llm_part_kind kind;
    int64_t index; /* of the open block, or of the next */
};

int llm_anthropic_read_event(struct llm_read *rd, struct str name, struct str data, struct err *e);
int llm_anthropic_read_body(struct llm_read *rd, const struct json *body, struct err *e);
bool llm_anthropic_tap_wants(struct str name, struct str data);
int llm_anthropic_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e);
int llm_anthropic_write_body(struct llm_write *w, struct json **ret, struct err *e);

struct json *llm_anthropic_error(struct arena *a, const struct llm_error *error);
void llm_anthropic_error_read(const struct json *body, struct llm_error *ret);

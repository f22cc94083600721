/* SPDX-License-Identifier: MIT
 *
 * Files and patches without secrets.
 *
 * struct redact_probe looks for secrets in a file of any kind, also in what it holds compressed:
 *
 *   struct redact_probe p;
 *   redact_probe_init(&p, redactor);
 *   redact_probe_feed(&p, bytes);  …
 *   if (redact_probe_done(&p) != REDACT_PROBE_CLEAN) …
 *
 * redact_patch() writes a patch of git(1) without secrets. Text is redacted; the number of lines
 * stays, so that it is a patch in any case. Of a binary file (base85, zlib, delta) the content is
 * looked at: if it holds a secret, or cannot be read, the whole file is left out of the patch and
 * named. Everything else passes byte for byte.
 */
#pragma once

#include "base/str.h"
#include "record/redact.h"

struct inflate;

enum redact_probe_result {
    REDACT_PROBE_CLEAN,
    REDACT_PROBE_SECRET,  /* there is one in it */
    REDACT_PROBE_UNKNOWN, /* compressed data that is too large to be looked at */
};

struct redact_probe {
    struct redact_stream plain;  /* the bytes as they are */
    struct redact_stream inside; /* decompressed */
    struct inflate *inflate;     /* NULL: it is not compressed */
    uint64_t seen;
    bool binary; /* there is a NUL byte */
    bool too_large;
};

void redact_probe_init(struct redact_probe *p, const struct redactor *r);
void redact_probe_feed(struct redact_probe *p, struct str bytes);
enum redact_probe_result redact_probe_done(struct redact_probe *p);

/* A file that is left out of a patch. */
struct redact_withheld {
    struct str path;
    int64_t bytes; /* of the new file; 0: not known */
    const char *why;
};

struct redact_patch_port {
    void (*write)(void *ctx, struct str bytes); /* the clean patch */
    void (*withheld)(void *ctx, const struct redact_withheld *file);
    void *ctx;
};

/* Returns how many replacements were made in text. */
uint64_t redact_patch(const struct redactor *r, struct str patch,
                      const struct redact_patch_port *port);

/* SPDX-License-Identifier: MIT
 *
 * Diagnostics of cinch itself: one line per record, with fields. Library layers log at DEBUG only;
 * program code may warn. Off unless CINCH_LOG=debug|info|warn|error or log_init() says so; goes to
 * stderr as text, or as JSON lines with CINCH_LOG_FORMAT=json (keys timestamp, level, logger,
 * event, message, context).
 *
 *   LOG_DEBUG("proc", "spawned", LOG_INT("pid", pid), LOG_STR("argv0", argv[0]));
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR, LOG_LEVEL_OFF };

struct log_field {
    const char *key; /* NULL ends a list */
    const char *str; /* NULL: the value is num */
    int64_t num;
};

#define LOG_STR(k, v) ((struct log_field) { .key = (k), .str = (v) })
#define LOG_INT(k, v) ((struct log_field) { .key = (k), .num = (int64_t)(v) })

#define LOG_AT(level, logger, event, ...) \
    log_write((level), (logger), (event), \
              (const struct log_field[]) { __VA_ARGS__ __VA_OPT__(, ) { 0 } })
#define LOG_DEBUG(logger, event, ...) \
    LOG_AT(LOG_LEVEL_DEBUG, logger, event __VA_OPT__(, ) __VA_ARGS__)
#define LOG_WARN(logger, event, ...) \
    LOG_AT(LOG_LEVEL_WARN, logger, event __VA_OPT__(, ) __VA_ARGS__)

void log_init(enum log_level level, bool json); /* overrides the environment */
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *logger, const char *event,
               const struct log_field *fields);

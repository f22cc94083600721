/* SPDX-License-Identifier: MIT
 *
 * One record, one write(2), so that lines of several processes do not mix.
 */
#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

/* The log target is the one piece of process-wide state below cli. */
static struct {
    bool ready;
    bool json;
    enum log_level level;
} target;

static const char *const level_words[] = {
    [LOG_LEVEL_DEBUG] = "debug", [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_OFF] = "off",
};

void log_init(enum log_level level, bool json)
{
    target.ready = true;
    target.level = level;
    target.json = json;
}

static void init_from_environment(void)
{
    const char *word = getenv("CINCH_LOG");
    const char *format = getenv("CINCH_LOG_FORMAT");
    enum log_level level = LOG_LEVEL_OFF;
    for (size_t i = 0; word != NULL && i < ARRAY_LEN(level_words); i++) {
        if (strcmp(word, level_words[i]) == 0) {
            level = (enum log_level)i;
        }
    }
    log_init(level, format != NULL && strcmp(format, "json") == 0);
}

bool log_enabled(enum log_level level)
{
    if (!target.ready) {
        init_from_environment();
    }
    return level >= target.level && target.level != LOG_LEVEL_OFF;
}

static void add_json_string(struct buf *b, const char *s)
{
    (void)!json_write_string(str_of(s), b, NULL);
}

static void add_json_field(struct buf *b, const struct log_field *f, bool first)
{
    buf_adds(b, first ? "" : ",");
    add_json_string(b, f->key);
    buf_adds(b, ":");
    if (f->str != NULL) {
        add_json_string(b, f->str);
    } else {
        buf_addf(b, "%" PRId64, f->num);
    }
}

static void format_json(struct buf *b, enum log_level level, const char *logger, const char *event,
                        const struct log_field *fields)
{
    char iso[CLOCK_ISO_LEN];
    buf_addf(b, "{\"timestamp\":\"%s\",\"level\":\"%s\",\"logger\":", clock_iso(clock_wall(), iso),
             level_words[level]);
    add_json_string(b, logger);
    buf_adds(b, ",\"event\":");
    add_json_string(b, event);
    buf_adds(b, ",\"message\":\"\",\"context\":{");
    for (const struct log_field *f = fields; f->key != NULL; f++) {
        add_json_field(b, f, f == fields);
    }
    buf_adds(b, "}}\n");
}

/* Values that could be taken for something else, or break the line, are written as JSON strings. */
static void add_text_value(struct buf *b, const char *s)
{
    bool plain = s[0] != '\0';
    for (const char *p = s; plain && *p != '\0'; p++) {
        plain = *p > ' ' && *p < 0x7f && *p != '"' && *p != '=';
    }
    if (plain) {
        buf_adds(b, s);
    } else {
        add_json_string(b, s);
    }
}

static void format_text(struct buf *b, enum log_level level, const char *logger, const char *event,
                        const struct log_field *fields)
{
    char iso[CLOCK_ISO_LEN];
    buf_addf(b, "%s %-5s %s %s", clock_iso(clock_wall(), iso), level_words[level], logger, event);
    for (const struct log_field *f = fields; f->key != NULL; f++) {
        if (f->str != NULL) {
            buf_addf(b, " %s=", f->key);
            add_text_value(b, f->str);
        } else {
            buf_addf(b, " %s=%" PRId64, f->key, f->num);
        }
    }
    buf_adds(b, "\n");
}

void log_write(enum log_level level, const char *logger, const char *event,
               const struct log_field *fields)
{
    if (!log_enabled(level)) {
        return;
    }
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    if (target.json) {
        format_json(&line, level, logger, event, fields);
    } else {
        format_text(&line, level, logger, event, fields);
    }
    (void)!file_write_all(STDERR_FILENO, buf_str(&line), NULL);
}

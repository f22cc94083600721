/* SPDX-License-Identifier: MIT
 */
#include "cli/live.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "cli/conversation.h"
#include "cli/text.h"

static void print_line(struct live *l, const char *text, const char *end)
{
    char stamp[8] = "";
    struct tm tm;
    time_t now = time(NULL);
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    if (localtime_r(&now, &tm) != NULL) {
        (void)strftime(stamp, sizeof stamp, "%H:%M", &tm);
    }
    buf_addf(&line, "%s %s%s", stamp, text, end);
    progress_message(l->progress, line.ptr);
}

static size_t find_call(const struct live *l, const char *id)
{
    size_t i = 0;
    while (i < LIVE_CALLS && strcmp(l->calls[i].id, id) != 0) {
        i++;
    }
    return i;
}

static void begin_call(struct live *l, const char *id, const char *text, nsec now)
{
    size_t i = find_call(l, "");
    if (id[0] == '\0' || i == LIVE_CALLS) {
        print_line(l, text, "");
        return;
    }
    (void)snprintf(l->calls[i].id, sizeof l->calls[i].id, "%s", id);
    (void)snprintf(l->calls[i].text, sizeof l->calls[i].text, "%s", text);
    l->calls[i].began = now;
}

static void end_call(struct live *l, const char *id, bool failed, nsec now)
{
    size_t i = id[0] == '\0' ? LIVE_CALLS : find_call(l, id);
    char took[TEXT_SHORT];
    char end[TEXT_SHORT + 16];
    if (i == LIVE_CALLS) {
        return;
    }
    (void)snprintf(end, sizeof end, "  %s%s", failed ? "failed, " : "",
                   text_duration(now - l->calls[i].began, took));
    print_line(l, l->calls[i].text, end);
    l->calls[i].id[0] = '\0';
}

void live_entry(struct live *l, const struct json *entry, nsec now)
{
    const struct json *detail = json_get(entry, "detail");
    struct str type = json_str(json_get(entry, "entry_type"), STR_EMPTY);
    char id[LIVE_ID];
    size_t width = terminal_width(l->progress->terminal);
    width = width > LIVE_TEXT / 4 + 20 ? LIVE_TEXT / 4 : width > 40 ? width - 20 : 20;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    conversation_line(entry, width, &text);
    (void)snprintf(id, sizeof id, "%.*s",
                   STR_ARG(json_str(json_get(detail, "tool_call_id"), STR_EMPTY)));
    if (str_eqc(type, "tool_use")) {
        begin_call(l, id, text.len == 0 ? "tool" : text.ptr, now);
    } else if (str_eqc(type, "tool_result")) {
        end_call(l, id, str_starts(buf_str(&text), STR("failed: ")), now);
    } else if (text.len > 0) {
        print_line(l, text.ptr, "");
    }
}

const char *live_note(const struct live *l)
{
    const char *note = NULL;
    nsec latest = 0;
    for (size_t i = 0; i < LIVE_CALLS; i++) {
        if (l->calls[i].id[0] != '\0' && l->calls[i].began >= latest) {
            latest = l->calls[i].began;
            note = l->calls[i].text;
        }
    }
    return note;
}

/* SPDX-License-Identifier: MIT
 *
 * The table of kinds, and the check of a line against it.
 */
#include "record/event_kind.h"

#include <string.h>

#include "base/json.h"
#include "record/stamp.h"

static const struct event_kind_info kinds[EVENT_KIND_MAX] = {
#define X(kind, name, level, logger, fields) [kind] = { name, level, logger, fields },
    EVENT_LIST(X)
#undef X
};

static const char *const level_words[] = {
    [EVENT_DEBUG] = "DEBUG",
    [EVENT_INFO] = "INFO",
    [EVENT_WARNING] = "WARNING",
    [EVENT_ERROR] = "ERROR",
};

const struct event_kind_info *event_kind_info(enum event_kind kind)
{
    return &kinds[kind];
}

const char *event_level_word(enum event_level level)
{
    return level_words[level];
}

static bool has_type(const struct json *v, char type)
{
    switch (type) {
    case 's':
        return json_is(v, JSON_STRING);
    case 'i':
        return json_is(v, JSON_INT);
    case 'n':
        return json_is(v, JSON_INT) || json_is(v, JSON_REAL);
    case 'b':
        return json_is(v, JSON_BOOL);
    case 'o':
        return json_is(v, JSON_OBJECT);
    case 'a':
        return json_is(v, JSON_ARRAY);
    case 'z':
        return json_is(v, JSON_NULL);
    case '*':
        return v != NULL;
    default:
        return false;
    }
}

/* `fields` is the notation of EVENT_LIST. */
static bool has_fields(const struct json *object, const char *fields)
{
    struct str rest = str_of(fields);
    size_t count = 0;
    while (rest.ptr != NULL) {
        struct str types = str_split(&rest, ' ');
        struct str key = str_split(&types, ':');
        const struct json *v = json_find(object, key);
        bool fits = v == NULL && str_ends(types, STR("?"));
        count += fits ? 0 : 1;
        for (size_t i = 0; i < types.len; i++) {
            fits = fits || has_type(v, types.ptr[i]);
        }
        if (!fits) {
            return false;
        }
    }
    return json_len(object) == count;
}

/* Words of letters, digits and '_', joined by dots. */
static bool is_event_name(struct str s)
{
    bool word = false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool digit = c >= '0' && c <= '9';
        if (!letter && !(digit && word) && !(c == '.' && word)) {
            return false;
        }
        word = c != '.';
    }
    return word;
}

static bool is_level(struct str s)
{
    for (size_t i = 0; i < ARRAY_LEN(level_words); i++) {
        if (str_eqc(s, level_words[i])) {
            return true;
        }
    }
    return false;
}

bool event_is_valid(const struct json *line)
{
    static const char envelope[] =
        "timestamp:s level:s logger:s event:s message:s context:o seq:i run_id:s run_context:o?";
    if (!has_fields(line, envelope) ||
        !stamp_is_id(json_str(json_get(line, "run_id"), STR_EMPTY)) ||
        !stamp_parse(json_str(json_get(line, "timestamp"), STR_EMPTY), NULL) ||
        !is_level(json_str(json_get(line, "level"), STR_EMPTY)) ||
        json_int(json_get(line, "seq"), 0) < 1) {
        return false;
    }
    struct str name = json_str(json_get(line, "event"), STR_EMPTY);
    for (size_t i = 0; i < EVENT_KIND_MAX; i++) {
        if (str_eqc(name, kinds[i].name)) {
            return has_fields(json_get(line, "context"), kinds[i].fields);
        }
    }
    return is_event_name(name);
}

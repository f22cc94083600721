/* SPDX-License-Identifier: MIT
 *
 * What providers say: about time, about the budget, a fixed text, or the answer of a program.
 */
#include "data/shape.h"
#include "guard/feedback_priv.h"

#define NEAR_TIME    (120 * NSEC_PER_SEC)
#define NEAR_SHARE   0.2
#define PROGRAM_TIME (10 * NSEC_PER_SEC) /* the agent waits for it */
#define ANSWER_MAX   ((size_t)64 << 10)
#define LIST_MAX     64 /* observations, and suggestions */

const char *feedback_duration(struct arena *a, nsec t)
{
    int64_t seconds = t < 0 ? 0 : t / NSEC_PER_SEC;
    if (seconds < 60) {
        return arena_printf(a, "%d second%s", (int)seconds, seconds == 1 ? "" : "s");
    }
    if (seconds < 3600) {
        return arena_printf(a, "%d minute%s", (int)(seconds / 60), seconds / 60 == 1 ? "" : "s");
    }
    return arena_printf(a, "%.1f hours", (double)seconds / 3600);
}

struct json *feedback_record(struct arena *a, struct str summary, const char *severity,
                             const char *const *suggestions)
{
    struct json *record = json_object(a);
    struct json *list = json_array(a);
    for (; suggestions != NULL && *suggestions != NULL; suggestions++) {
        json_push(a, list, json_cstr(a, *suggestions));
    }
    json_setc(a, record, "summary", json_string(a, summary));
    json_setc(a, record, "observations", json_array(a));
    json_setc(a, record, "suggestions", list);
    json_setc(a, record, "severity", json_cstr(a, severity));
    return record;
}

/* --- deadline --- */

static int deadline_make(struct feedback_provider *p, struct arena *a,
                         const struct json *definition, struct err *e)
{
    p->time_threshold = shape_duration(json_get(definition, "threshold"), NEAR_TIME);
    return 0;
}

static bool deadline_ready(const struct feedback_left *left)
{
    return left->time != INT64_MAX;
}

static struct json *deadline_say(const struct feedback_provider *p, struct arena *a,
                                 const struct feedback_left *left)
{
    static const char *const late[] = {
        "Wrap up now: give your result as it stands.",
        NULL,
    };
    static const char *const near[] = {
        "Finish what matters most and leave out the rest.",
        "Give your result before the time is up, and say in it what is missing.",
        NULL,
    };
    if (left->time <= 0) {
        return feedback_record(a, STR("The deadline has passed."), "warning", late);
    }
    bool warn = left->time < p->time_threshold;
    const char *text =
        arena_printf(a, "%s%s left until the deadline, after %s of work.", warn ? "Only " : "",
                     feedback_duration(a, left->time), feedback_duration(a, left->elapsed));
    return feedback_record(a, str_of(text), warn ? "warning" : "info", warn ? near : NULL);
}

/* --- budget --- */

static int budget_make(struct feedback_provider *p, struct arena *a, const struct json *definition,
                       struct err *e)
{
    const struct json *threshold = json_get(definition, "threshold");
    p->share_threshold = NEAR_SHARE;
    if (threshold == NULL || json_is(threshold, JSON_NULL)) {
        return 0;
    }
    p->share_threshold = json_real(threshold, -1);
    return p->share_threshold >= 0 && p->share_threshold <= 1
               ? 0
               : ERR(e, ERR_CONFIG, "'threshold' of a budget is a share from 0 to 1, such as 0.2");
}

static bool budget_ready(const struct feedback_left *left)
{
    return left->budget >= 0;
}

static struct json *budget_say(const struct feedback_provider *p, struct arena *a,
                               const struct feedback_left *left)
{
    static const char *const none[] = {
        "Wrap up now: give your result as it stands.",
        NULL,
    };
    static const char *const near[] = {
        "Do only what the result needs.",
        "Give your result before the budget is used up, and say in it what is missing.",
        NULL,
    };
    if (left->budget <= 0) {
        return feedback_record(a, STR("The budget is used up."), "warning", none);
    }
    bool warn = left->budget < p->share_threshold;
    double percent = left->budget * 100;
    const char *text = arena_printf(a, "%s%.*f%% of the budget is left.", warn ? "Only " : "",
                                    percent < 1 ? 1 : 0, percent);
    return feedback_record(a, str_of(text), warn ? "warning" : "info", warn ? near : NULL);
}

/* --- a fixed text --- */

static int static_make(struct feedback_provider *p, struct arena *a, const struct json *definition,
                       struct err *e)
{
    p->text = arena_str(a, json_str(json_get(definition, "text"), STR_EMPTY));
    return str_trim(p->text).len > 0 ? 0 : ERR(e, ERR_CONFIG, "type 'static' needs a 'text'");
}

static struct json *static_say(const struct feedback_provider *p, struct arena *a,
                               const struct feedback_left *left)
{
    return feedback_record(a, p->text, "info", NULL);
}

/* --- programs --- */

static int program_make(struct feedback_provider *p, struct arena *a, const struct json *definition,
                        struct err *e)
{
    int r = helper_spec_read(a, definition, PROGRAM_TIME, &p->program, e);
    p->program.max_output = ANSWER_MAX;
    return r;
}

static bool is_severity(struct str s)
{
    return str_eqc(s, "info") || str_eqc(s, "caution") || str_eqc(s, "warning");
}

static const char *add_observations(struct arena *a, const struct json *list, struct json *record)
{
    struct json *out = json_array(a);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        const struct json *evidence = json_get(item, "evidence");
        struct json *kept = json_object(a);
        if (!json_is(json_get(item, "category"), JSON_STRING) ||
            !json_is(json_get(item, "description"), JSON_STRING)) {
            return "an observation needs a 'category' and a 'description'";
        }
        json_setc(a, kept, "category", json_get(item, "category"));
        json_setc(a, kept, "description", json_get(item, "description"));
        if (json_is(evidence, JSON_STRING)) {
            json_setc(a, kept, "evidence", (struct json *)evidence);
        }
        json_push(a, out, kept);
    }
    json_setc(a, record, "observations", out);
    return NULL;
}

static const char *add_suggestions(struct arena *a, const struct json *list, struct json *record)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (!json_is(json_item(list, i), JSON_STRING)) {
            return "a suggestion is a text";
        }
    }
    if (list != NULL) {
        json_setc(a, record, "suggestions", (struct json *)list);
    }
    return NULL;
}

static bool is_list(const struct json *v)
{
    return v == NULL || (json_is(v, JSON_ARRAY) && json_len(v) <= LIST_MAX);
}

static struct json *record_of(struct arena *a, const struct json *answer, const char **ret_why)
{
    struct str summary = json_str(json_get(answer, "summary"), STR_EMPTY);
    const struct json *severity = json_get(answer, "severity");
    const struct json *observations = json_get(answer, "observations");
    const struct json *suggestions = json_get(answer, "suggestions");
    if (str_trim(summary).len == 0) {
        *ret_why = "the answer has no 'summary'";
    } else if (severity != NULL && !is_severity(json_str(severity, STR_EMPTY))) {
        *ret_why = "'severity' of the answer is not info, caution or warning";
    } else if (!is_list(observations) || !is_list(suggestions)) {
        *ret_why = "observations and suggestions are lists of at most 64";
    } else {
        struct json *record = feedback_record(a, summary, "info", NULL);
        *ret_why = add_observations(a, observations, record);
        *ret_why = *ret_why != NULL ? *ret_why : add_suggestions(a, suggestions, record);
        if (severity != NULL) {
            json_setc(a, record, "severity", (struct json *)severity);
        }
        return *ret_why == NULL ? record : NULL;
    }
    return NULL;
}

struct json *feedback_reply_read(struct arena *a, struct str out, const char **ret_why)
{
    static const struct json_limits limits = { .max_bytes = ANSWER_MAX, .max_depth = 16 };
    struct json *answer;
    struct err e;
    *ret_why = NULL;
    out = str_trim(out);
    if (out.len == 0) {
        return NULL;
    }
    /* Half an object is not meant for the agent, whatever else it is. */
    if (out.ptr[0] != '{') {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        while (out.len > 0) {
            size_t good = str_utf8_prefix(out);
            buf_add(&text, str_slice(out, 0, good));
            buf_adds(&text, good < out.len ? "\xef\xbf\xbd" : "");
            out = str_slice(out, good + 1, out.len);
        }
        return feedback_record(a, buf_str(&text), "info", NULL);
    }
    if (json_parse(a, out, &limits, &answer, &e) < 0) {
        *ret_why = arena_printf(a, "the answer is no JSON: %s", e.msg);
        return NULL;
    }
    return record_of(a, answer, ret_why);
}

/* --- all of them --- */

static const struct feedback_kind kinds[] = {
    { "deadline", "Deadline", deadline_make, deadline_ready, deadline_say },
    { "budget", "Budget", budget_make, budget_ready, budget_say },
    { "static", "Static", static_make, NULL, static_say },
};
const struct feedback_kind feedback_kind_program = { "program", "Program", program_make, NULL,
                                                     NULL };
const struct feedback_kind feedback_kind_callback = { "callback", "Callback", NULL, NULL, NULL };

const struct feedback_kind *feedback_kind_find(struct str type)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_eqc(type, kinds[i].type)) {
            return &kinds[i];
        }
    }
    return str_eqc(type, feedback_kind_program.type) ? &feedback_kind_program : NULL;
}

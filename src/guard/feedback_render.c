/* SPDX-License-Identifier: MIT
 *
 * One block of feedback, as the model gets it. The severity is for the record only.
 */
#include "guard/feedback_priv.h"
#include "prompt/tagged.h"

#define TAG "feedback"

void feedback_render(struct buf *out, struct str name, const struct json *record)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const struct json *observations = json_get(record, "observations");
    const struct json *suggestions = json_get(record, "suggestions");
    buf_add(&text, str_trim(json_str(json_get(record, "summary"), STR_EMPTY)));
    for (size_t i = 0; i < json_len(observations); i++) {
        const struct json *o = json_item(observations, i);
        buf_addf(&text, "%s\n• %.*s: %.*s", i == 0 ? "\n" : "",
                 STR_ARG(json_str(json_get(o, "category"), STR_EMPTY)),
                 STR_ARG(json_str(json_get(o, "description"), STR_EMPTY)));
    }
    for (size_t i = 0; i < json_len(suggestions); i++) {
        buf_addf(&text, "%s\n→ %.*s", i == 0 ? "\n" : "",
                 STR_ARG(json_str(json_item(suggestions, i), STR_EMPTY)));
    }
    buf_addf(out, "<" TAG " provider='%.*s'>\n", STR_ARG(name));
    tagged_add(out, TAG, buf_str(&text), FEEDBACK_TEXT_MAX);
    buf_adds(out, "\n</" TAG ">");
}

/* SPDX-License-Identifier: MIT
 *
 * What the three completion writers share.
 */
#include "cli/shell_completion.h"

#include <stddef.h>

const struct completion_shell completion_shells[] = {
    { "bash", completion_bash },
    { "zsh", completion_zsh },
    { "fish", completion_fish },
    { 0 },
};

const char *const completion_shell_names[] = { "bash", "zsh", "fish", NULL };

enum option_complete completion_of(const struct option *o)
{
    if (o->complete != COMPLETE_FROM_KIND) {
        return o->complete;
    }
    return o->kind == OPTION_PATH   ? COMPLETE_FILE
           : o->kind == OPTION_ENUM ? COMPLETE_WORDS
                                    : COMPLETE_NOTHING;
}

void completion_words(const char *const *words, struct buf *out)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        buf_addf(out, "%s%s", i == 0 ? "" : " ", words[i]);
    }
}

void completion_quote_sh(const char *s, struct buf *out)
{
    buf_adds(out, "'");
    for (; *s != '\0'; s++) {
        if (*s == '\'') {
            buf_adds(out, "'\\''");
        } else {
            buf_add(out, str_n(s, 1));
        }
    }
    buf_adds(out, "'");
}

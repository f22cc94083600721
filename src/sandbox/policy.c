/* SPDX-License-Identifier: MIT
 *
 * The words of a policy, and its default.
 */
#include "sandbox/policy.h"

#include <ctype.h>

static const char *const modes[] = {
    [SANDBOX_WORKSPACE_WRITE] = "workspace-write",
    [SANDBOX_READ_ONLY] = "read-only",
    [SANDBOX_OFF] = "off",
};

static const struct {
    const char *word, *meaning;
} guarantees[] = {
#define X(id, word, text) [id] = { word, text },
    SANDBOX_GUARANTEES(X)
#undef X
};

void sandbox_policy_init(struct sandbox_policy *p)
{
    *p = (struct sandbox_policy) { .mode = SANDBOX_WORKSPACE_WRITE };
}

const char *sandbox_mode_word(enum sandbox_mode m)
{
    return modes[m];
}

bool sandbox_mode_find(struct str word, enum sandbox_mode *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (str_eqc(word, modes[i])) {
            *ret = (enum sandbox_mode)i;
            return true;
        }
    }
    return false;
}

const char *sandbox_guarantee_word(enum sandbox_guarantee g)
{
    return guarantees[g].word;
}

const char *sandbox_guarantee_meaning(enum sandbox_guarantee g)
{
    return guarantees[g].meaning;
}

/* The power of two behind a unit, -1: none of ours. */
static int unit_shift(struct str unit)
{
    static const char letters[] = "kmgt";
    if (unit.len == 0 || (unit.len == 1 && unit.ptr[0] == 'b')) {
        return 0;
    }
    const char *at = strchr(letters, tolower((unsigned char)unit.ptr[0]));
    struct str rest = str_slice(unit, 1, unit.len);
    bool tail = rest.len == 0 || str_eqc(rest, "b") || str_eqc(rest, "B") || str_eqc(rest, "iB") ||
                str_eqc(rest, "ib");
    return at == NULL || *at == '\0' || !tail ? -1 : (int)(at - letters + 1) * 10;
}

bool sandbox_size_parse(struct str text, uint64_t *ret)
{
    size_t digits = 0;
    while (digits < text.len && isdigit((unsigned char)text.ptr[digits])) {
        digits++;
    }
    int64_t number;
    int shift = unit_shift(str_slice(text, digits, text.len));
    if (shift < 0 || !str_to_i64(str_slice(text, 0, digits), &number) || number <= 0 ||
        number > (INT64_MAX >> shift)) {
        return false;
    }
    *ret = (uint64_t)number << shift;
    return true;
}

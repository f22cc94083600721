/* SPDX-License-Identifier: MIT
 *
 * A pattern and, after the first newline, a subject. Whatever they are: no crash, no endless match,
 * and a pattern that compiles is one that regex_check() calls good.
 */
#include <stdlib.h>

#include "data/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str subject = str_n(data, size);
    struct str pattern = str_split(&subject, '\n');
    CLEANUP(regex) struct regex *r = NULL;
    struct err e = { 0 };
    if (regex_compile(pattern, size % 2 == 0 ? 0 : REGEX_ICASE, &r, &e) != 0) {
        return 0;
    }
    if (regex_check(pattern, &e) != 0) {
        abort();
    }
    struct regex_span spans[3];
    int first = regex_match(r, subject, &e);
    int second = regex_find(r, subject, spans, 3, &e);
    if (first != second || (second == 1 && spans[0].to > subject.len)) {
        abort();
    }
    return 0;
}

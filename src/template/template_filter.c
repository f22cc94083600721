/* SPDX-License-Identifier: MIT
 *
 * Finding and applying filters. Their tables are in the template_filter_*.c files, by subject.
 */
#include "template/template_render_priv.h"

#include "template/template_unicode.h"

static const struct filter *find_in(const struct filter *table, size_t len, struct str name)
{
    for (size_t i = 0; i < len; i++) {
        if (str_eqc(name, table[i].name)) {
            return &table[i];
        }
    }
    return NULL;
}

const struct filter *tpl_filter_find(struct str name)
{
    const struct filter *f = find_in(tpl_filters_text, tpl_filters_text_len, name);
    f = f != NULL ? f : find_in(tpl_filters_select, tpl_filters_select_len, name);
    f = f != NULL ? f : find_in(tpl_filters_list, tpl_filters_list_len, name);
    return f != NULL ? f : find_in(tpl_filters_number, tpl_filters_number_len, name);
}

int tpl_filter_apply(struct render *r, const struct filter *f, const struct value *in,
                     const struct call_args *args, struct value *out)
{
    if (f->raw != NULL) {
        return f->raw(r, in, args, out);
    }
    struct value values[PARAMS_MAX];
    int rc = tpl_call_bind(r, args, &f->params, f->name, values);
    return rc < 0 ? rc : f->run(r, in, values, out);
}

int tpl_key_get(struct render *r, const struct key_of *k, const struct value *item,
                struct value *out)
{
    int rc = tpl_value_path(r, item, k->attribute, k->otherwise, out);
    if (rc == 0 && k->ignore_case && out->kind == VALUE_STRING) {
        struct buf *b = tpl_render_capture(r);
        rc = unicode_convert(b, out->string, UNICODE_LOWER, UNICODE_LOWER, NULL);
        *out = tpl_render_captured(r);
        rc = rc < 0 ? tpl_render_fail_output(r) : 0;
    }
    return rc;
}

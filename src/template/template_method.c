/* SPDX-License-Identifier: MIT
 *
 * Methods of strings and dicts, and the table of which values have which. Other methods of Python
 * do not exist here; the dot then looks for a member of that name. Arguments that Python takes by
 * position only have names with a blank, which no call can write.
 */
#include "template/template_render_priv.h"

#include "template/template_unicode.h"

/* --- strings --- */

static int convert_case(struct render *r, const struct value *self, enum unicode_case first,
                        enum unicode_case rest, struct value *out)
{
    int rc = unicode_convert(tpl_render_capture(r), self->string, first, rest, NULL);
    *out = tpl_render_captured(r);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

static int string_upper(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return convert_case(r, self, UNICODE_UPPER, UNICODE_UPPER, out);
}

static int string_lower(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return convert_case(r, self, UNICODE_LOWER, UNICODE_LOWER, out);
}

static int string_capitalize(struct render *r, const struct value *self, const struct value *args,
                             struct value *out)
{
    return convert_case(r, self, UNICODE_TITLE, UNICODE_LOWER, out);
}

/* Unlike the filter, which looks for blanks: a word begins after anything that is not a letter. */
static int string_title(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    struct buf *b = tpl_render_capture(r);
    bool inside = false;
    int rc = 0;
    for (size_t at = 0; at < self->string.len && rc == 0;) {
        uint32_t c = unicode_next(self->string, &at);
        rc = unicode_map(b, c, inside ? UNICODE_LOWER : UNICODE_TITLE, NULL);
        inside = unicode_is_lower(c) || unicode_is_upper(c) || unicode_is_title(c);
    }
    *out = tpl_render_captured(r);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

static int string_strip(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return tpl_text_strip(r, self, &args[0], STRIP_LEFT | STRIP_RIGHT, out);
}

static int string_lstrip(struct render *r, const struct value *self, const struct value *args,
                         struct value *out)
{
    return tpl_text_strip(r, self, &args[0], STRIP_LEFT, out);
}

static int string_rstrip(struct render *r, const struct value *self, const struct value *args,
                         struct value *out)
{
    return tpl_text_strip(r, self, &args[0], STRIP_RIGHT, out);
}

static int string_startswith(struct render *r, const struct value *self, const struct value *args,
                             struct value *out)
{
    struct str edge;
    int rc = tpl_arg_text(r, &args[0], "the text to look for", &edge);
    *out = value_bool(rc == 0 && str_starts(self->string, edge));
    return rc;
}

static int string_endswith(struct render *r, const struct value *self, const struct value *args,
                           struct value *out)
{
    struct str edge;
    int rc = tpl_arg_text(r, &args[0], "the text to look for", &edge);
    *out = value_bool(rc == 0 && str_ends(self->string, edge));
    return rc;
}

static int string_find(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    struct str what;
    int rc = tpl_arg_text(r, &args[0], "the text to look for", &what);
    if (rc < 0) {
        return rc;
    }
    size_t at = what.len == 0 ? 0 : str_find(self->string, what);
    bool found = what.len == 0 || at < self->string.len;
    *out = value_int(found ? (int64_t)unicode_len(str_slice(self->string, 0, at)) : -1);
    return 0;
}

static int string_count(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    struct str what;
    struct str s = self->string;
    int64_t n = 0;
    int rc = tpl_arg_text(r, &args[0], "the text to count", &what);
    if (rc == 0 && what.len == 0) {
        n = (int64_t)unicode_len(s) + 1;
    }
    for (size_t at; rc == 0 && what.len > 0 && (at = str_find(s, what)) < s.len; n++) {
        s = str_slice(s, at + what.len, s.len);
        rc = render_step(r);
    }
    *out = value_int(n);
    return rc;
}

static void add_part(struct render *r, struct list *l, struct str s)
{
    struct value v = value_text(s);
    tpl_list_add(r->arena, l, &v);
    r->steps++;
}

static void split_blanks(struct render *r, struct str s, int64_t max, struct list *l)
{
    for (s = unicode_strip(s, true, false); s.len > 0; max--) {
        size_t end = 0;
        for (size_t next = 0; end < s.len; end = next) {
            if (unicode_is_space(unicode_next(s, &next))) {
                break;
            }
        }
        end = max == 0 ? s.len : end;
        add_part(r, l, str_slice(s, 0, end));
        s = unicode_strip(str_slice(s, end, s.len), true, false);
    }
}

static int string_split(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    struct str sep = STR_EMPTY;
    int64_t max;
    bool blanks = args[0].kind == VALUE_MISSING || args[0].kind == VALUE_NONE;
    int rc = tpl_arg_int(r, &args[1], -1, &max);
    rc = rc < 0 || blanks ? rc : tpl_arg_text(r, &args[0], "the separator", &sep);
    if (rc == 0 && !blanks && sep.len == 0) {
        rc = tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the separator is empty");
    }
    struct list *l = tpl_list_new(r->arena, 4);
    *out = value_list(l);
    if (rc < 0) {
        return rc;
    }
    struct str s = self->string;
    if (blanks) {
        split_blanks(r, s, max, l);
        return 0;
    }
    for (size_t at; max != 0 && (at = str_find(s, sep)) < s.len; max--) {
        add_part(r, l, str_slice(s, 0, at));
        s = str_slice(s, at + sep.len, s.len);
    }
    add_part(r, l, s);
    return 0;
}

static int string_splitlines(struct render *r, const struct value *self, const struct value *args,
                             struct value *out)
{
    bool keep;
    int rc = tpl_arg_bool(r, &args[0], false, &keep);
    struct list *l = tpl_list_new(r->arena, 4);
    struct str rest = self->string;
    struct str line;
    while (rc == 0 && tpl_text_next_line(&rest, keep, &line)) {
        add_part(r, l, line);
    }
    *out = value_list(l);
    return rc;
}

static int string_replace(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    struct str old;
    struct str new;
    int64_t count;
    int rc = tpl_arg_text(r, &args[0], "the old text", &old);
    rc = rc < 0 ? rc : tpl_arg_text(r, &args[1], "the new text", &new);
    rc = rc < 0 ? rc : tpl_arg_int(r, &args[2], -1, &count);
    return rc < 0 ? rc : tpl_text_replace(r, self->string, old, new, count, out);
}

static int string_join(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    struct list *l = NULL;
    int rc = tpl_value_to_list(r, &args[0], &l);
    for (size_t i = 0; rc == 0 && i < l->len; i++) {
        if (l->items[i].kind != VALUE_STRING) { /* a TypeError in Python, also when undefined */
            rc = tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "join() needs strings, not a %s",
                                 tpl_value_type(&l->items[i]));
        }
    }
    struct value items = value_list(l);
    return rc < 0 ? rc : tpl_text_join(r, &items, self->string, out);
}

static const struct method methods_string[] = {
    { .name = "upper", .run = string_upper },
    { .name = "lower", .run = string_lower },
    { .name = "title", .run = string_title },
    { .name = "capitalize", .run = string_capitalize },
    { .name = "strip", .run = string_strip, .params = { { "a set" }, 1, 0 } },
    { .name = "lstrip", .run = string_lstrip, .params = { { "a set" }, 1, 0 } },
    { .name = "rstrip", .run = string_rstrip, .params = { { "a set" }, 1, 0 } },
    { .name = "startswith", .run = string_startswith, .params = { { "a text" }, 1, 1 } },
    { .name = "endswith", .run = string_endswith, .params = { { "a text" }, 1, 1 } },
    { .name = "find", .run = string_find, .params = { { "a text" }, 1, 1 } },
    { .name = "count", .run = string_count, .params = { { "a text" }, 1, 1 } },
    { .name = "split", .run = string_split, .params = { { "sep", "maxsplit" }, 2, 0 } },
    { .name = "splitlines", .run = string_splitlines, .params = { { "keepends" }, 1, 0 } },
    { .name = "replace",
      .run = string_replace,
      .params = { { "an old text", "a new text", "a count" }, 3, 2 } },
    { .name = "join", .run = string_join, .params = { { "the items" }, 1, 1 } },
};

/* --- dicts --- */

static int dict_keys(struct render *r, const struct value *self, const struct value *args,
                     struct value *out)
{
    return tpl_dict_list(r, self->dict, DICT_KEYS, out);
}

static int dict_values(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    return tpl_dict_list(r, self->dict, DICT_VALUES, out);
}

static int dict_items(struct render *r, const struct value *self, const struct value *args,
                      struct value *out)
{
    return tpl_dict_list(r, self->dict, DICT_ITEMS, out);
}

static int dict_get(struct render *r, const struct value *self, const struct value *args,
                    struct value *out)
{
    struct value *found;
    int rc = tpl_dict_find(r, self->dict, &args[0], &found);
    *out = rc == 0 && found != NULL        ? *found
           : args[1].kind == VALUE_MISSING ? VALUE_OF_NONE
                                           : args[1];
    return rc;
}

static const struct method methods_dict[] = {
    { .name = "keys", .run = dict_keys },
    { .name = "values", .run = dict_values },
    { .name = "items", .run = dict_items },
    { .name = "get", .run = dict_get, .params = { { "a key", "a default" }, 2, 1 } },
};

/* --- all of them --- */

const struct method *tpl_method_find(const struct value *self, struct str name)
{
    static const struct {
        enum value_kind kind;
        const struct method *methods;
        size_t len;
    } tables[] = {
        { VALUE_STRING, methods_string, ARRAY_LEN(methods_string) },
        { VALUE_DICT, methods_dict, ARRAY_LEN(methods_dict) },
        { VALUE_LOOP, tpl_methods_loop, TPL_METHODS_LOOP },
        { VALUE_CYCLER, tpl_methods_cycler, TPL_METHODS_CYCLER },
    };
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        for (size_t k = 0; tables[i].kind == self->kind && k < tables[i].len; k++) {
            if (str_eqc(name, tables[i].methods[k].name)) {
                return &tables[i].methods[k];
            }
        }
    }
    return NULL;
}

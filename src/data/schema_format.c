/* SPDX-License-Identifier: MIT
 *
 * The formats by name, and the small ones.
 */
#include "data/schema_priv.h"

static bool format_uuid(struct str s)
{
    if (s.len != 36) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (hyphen ? c != '-' : !hex) {
            return false;
        }
    }
    return true;
}

static bool format_regex(struct str s)
{
    return regex_check(s, NULL) == 0;
}

static bool format_json_pointer(struct str s)
{
    if (s.len > 0 && s.ptr[0] != '/') {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '~' && (i + 1 == s.len || (s.ptr[i + 1] != '0' && s.ptr[i + 1] != '1'))) {
            return false;
        }
    }
    return true;
}

static bool format_relative_json_pointer(struct str s)
{
    size_t digits = 0;
    while (digits < s.len && s.ptr[digits] >= '0' && s.ptr[digits] <= '9') {
        digits++;
    }
    if (digits == 0 || (digits > 1 && s.ptr[0] == '0')) {
        return false;
    }
    struct str rest = str_slice(s, digits, s.len);
    return str_eqc(rest, "#") || format_json_pointer(rest);
}

static const struct schema_format formats[] = {
    { "date-time", schema_format_date_time, "2026-01-31T12:00:00Z" },
    { "date", schema_format_date, "2026-01-31" },
    { "time", schema_format_time, "12:00:00Z" },
    { "duration", schema_format_duration, "P1DT12H" },
    { "email", schema_format_email, "joe@example.com" },
    { "idn-email", schema_format_idn_email, "joe@example.com" },
    { "hostname", schema_format_hostname, "www.example.com" },
    { "ipv4", schema_format_ipv4, "192.0.2.1" },
    { "ipv6", schema_format_ipv6, "2001:db8::1" },
    { "uri", schema_format_uri, "https://example.com/a" },
    { "uri-reference", schema_format_uri_reference, "/a/b" },
    { "iri", schema_format_iri, "https://example.com/a" },
    { "iri-reference", schema_format_iri_reference, "/a/b" },
    { "uri-template", schema_format_uri_template, "/a/{b}" },
    { "uuid", format_uuid, "2eb8aa08-aa98-11ea-b4aa-73b441d16380" },
    { "json-pointer", format_json_pointer, "/a/0" },
    { "relative-json-pointer", format_relative_json_pointer, "1/a" },
    { "regex", format_regex, "^a+$" },
};

const struct schema_format *schema_format_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (str_eqc(name, formats[i].name)) {
            return &formats[i];
        }
    }
    return NULL;
}

bool schema_format_ok(const char *format, struct str text)
{
    const struct schema_format *f = schema_format_find(str_of(format));
    return f == NULL || f->ok(text);
}

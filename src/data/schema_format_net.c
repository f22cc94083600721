/* SPDX-License-Identifier: MIT
 *
 * Addresses: IP, host names, e-mail, URIs and IRIs, URI templates. Host names are checked by their
 * letters and lengths; what a punycode label stands for is not looked at.
 */
#include "data/schema_priv.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_in(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* --- addresses --- */

bool schema_format_ipv4(struct str s)
{
    for (int part = 0; part < 4; part++) {
        struct str number = str_split(&s, '.');
        int value = 0;
        if (number.len == 0 || number.len > 3 || (number.len > 1 && number.ptr[0] == '0') ||
            (s.ptr == NULL) != (part == 3)) {
            return false;
        }
        for (size_t i = 0; i < number.len; i++) {
            if (!is_digit(number.ptr[i])) {
                return false;
            }
            value = value * 10 + (number.ptr[i] - '0');
        }
        if (value > 255) {
            return false;
        }
    }
    return true;
}

/* The groups of one side of "::"; an IPv4 address at the very end counts as two. -1: malformed. */
static int ipv6_groups(struct str s, bool last)
{
    int count = 0;
    if (s.len == 0) {
        return 0;
    }
    while (s.ptr != NULL) {
        struct str group = str_split(&s, ':');
        if (s.ptr == NULL && last && str_find(group, STR(".")) < group.len) {
            return schema_format_ipv4(group) ? count + 2 : -1;
        }
        if (group.len == 0 || group.len > 4) {
            return -1;
        }
        for (size_t i = 0; i < group.len; i++) {
            if (!is_hex(group.ptr[i])) {
                return -1;
            }
        }
        count++;
    }
    return count;
}

bool schema_format_ipv6(struct str s)
{
    size_t gap = str_find(s, STR("::"));
    if (gap == s.len) {
        return ipv6_groups(s, true) == 8;
    }
    int left = ipv6_groups(str_slice(s, 0, gap), false);
    int right = ipv6_groups(str_slice(s, gap + 2, s.len), true);
    return left >= 0 && right >= 0 && left + right <= 7;
}

/* --- host names and e-mail --- */

static bool is_label(struct str s, bool international)
{
    if (s.len == 0 || s.len > 63 || s.ptr[0] == '-' || s.ptr[s.len - 1] == '-') {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool foreign = international && (unsigned char)c >= 0x80;
        if (!is_alpha(c) && !is_digit(c) && c != '-' && !foreign) {
            return false;
        }
    }
    return true;
}

static bool is_host(struct str s, bool international)
{
    if (s.len > 253) {
        return false;
    }
    do {
        if (!is_label(str_split(&s, '.'), international)) {
            return false;
        }
    } while (s.ptr != NULL);
    return true;
}

bool schema_format_hostname(struct str s)
{
    return is_host(s, false);
}

static bool is_atom_char(char c, bool international)
{
    return is_alpha(c) || is_digit(c) || is_in(c, "!#$%&'*+-/=?^_`{|}~") ||
           (international && (unsigned char)c >= 0x80);
}

/* The length of the local part, "a.b" or "\"a b\""; 0 when there is none. */
static size_t local_part(struct str s, bool international)
{
    size_t i = 0;
    if (s.len > 0 && s.ptr[0] == '"') {
        for (i = 1; i < s.len && s.ptr[i] != '"'; i++) {
            unsigned char c = (unsigned char)s.ptr[i];
            if (c == '\\') {
                i++;
            } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !international)) {
                return 0;
            }
        }
        return i < s.len ? i + 1 : 0;
    }
    for (; i < s.len && s.ptr[i] != '@'; i++) {
        bool dot = s.ptr[i] == '.';
        bool dot_ok = i > 0 && s.ptr[i - 1] != '.' && i + 1 < s.len && s.ptr[i + 1] != '@';
        if (dot ? !dot_ok : !is_atom_char(s.ptr[i], international)) {
            return 0;
        }
    }
    return i;
}

static bool is_email(struct str s, bool international)
{
    size_t local = local_part(s, international);
    if (local == 0 || local > 64 || local >= s.len || s.ptr[local] != '@') {
        return false;
    }
    struct str domain = str_slice(s, local + 1, s.len);
    if (!str_starts(domain, STR("[")) || !str_ends(domain, STR("]"))) {
        return is_host(domain, international);
    }
    struct str address = str_slice(domain, 1, domain.len - 1);
    if (str_starts(address, STR("IPv6:"))) {
        return schema_format_ipv6(str_slice(address, 5, address.len));
    }
    return schema_format_ipv4(address);
}

bool schema_format_email(struct str s)
{
    return is_email(s, false);
}

bool schema_format_idn_email(struct str s)
{
    return str_is_utf8(s) && is_email(s, true);
}

/* --- URIs --- */

#define SUB_DELIMS "!$&'()*+,;="

/* Only unreserved characters, sub-delims, percent escapes, `extra`, and, in an IRI, what is beyond
 * U+009F. */
static bool is_made_of(struct str s, const char *extra, bool international)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '%') {
            if (i + 2 >= s.len || !is_hex(s.ptr[i + 1]) || !is_hex(s.ptr[i + 2])) {
                return false;
            }
            i += 2;
            continue;
        }
        bool control =
            (unsigned char)c == 0xc2 && i + 1 < s.len && (unsigned char)s.ptr[i + 1] < 0xa0;
        bool foreign = international && (unsigned char)c >= 0x80 && !control;
        if (!is_alpha(c) && !is_digit(c) && !is_in(c, "-._~" SUB_DELIMS) && !is_in(c, extra) &&
            !foreign) {
            return false;
        }
    }
    return true;
}

/* What stands in the brackets of a host: IPv6, or "v1.x" for what may come. */
static bool is_ip_literal(struct str s)
{
    if (s.len > 0 && (s.ptr[0] == 'v' || s.ptr[0] == 'V')) {
        struct str version = str_split(&s, '.');
        for (size_t i = 1; i < version.len; i++) {
            if (!is_hex(version.ptr[i])) {
                return false;
            }
        }
        return version.len > 1 && s.len > 0 && str_find(s, STR("%")) == s.len &&
               is_made_of(s, ":", false);
    }
    return schema_format_ipv6(s);
}

static bool is_authority(struct str s, bool international)
{
    size_t at = s.len;
    while (at > 0 && s.ptr[at - 1] != '@') {
        at--;
    }
    if (at > 0 && !is_made_of(str_slice(s, 0, at - 1), ":", international)) {
        return false;
    }
    struct str host = str_slice(s, at, s.len);
    size_t end = host.len; /* of the host: before the last colon that only digits follow */
    while (end > 0 && is_digit(host.ptr[end - 1])) {
        end--;
    }
    if (end > 0 && host.ptr[end - 1] == ':') {
        host = str_slice(host, 0, end - 1);
    }
    if (str_starts(host, STR("[")) && str_ends(host, STR("]"))) {
        return is_ip_literal(str_slice(host, 1, host.len - 1));
    }
    return is_made_of(host, "", international);
}

static bool is_uri(struct str s, bool relative_too, bool international)
{
    if (international && !str_is_utf8(s)) {
        return false;
    }
    struct schema_uri u = schema_uri_split(s);
    if (u.scheme.ptr == NULL) {
        struct str rest = u.path;
        struct str first = str_split(&rest, '/');
        bool colon = u.authority.ptr == NULL && str_find(first, STR(":")) < first.len;
        if (!relative_too || colon) {
            return false;
        }
    }
    return (u.authority.ptr == NULL || is_authority(u.authority, international)) &&
           is_made_of(u.path, ":@/", international) && is_made_of(u.query, ":@/?", international) &&
           is_made_of(u.fragment, ":@/?", international);
}

bool schema_format_uri(struct str s)
{
    return is_uri(s, false, false);
}

bool schema_format_uri_reference(struct str s)
{
    return is_uri(s, true, false);
}

bool schema_format_iri(struct str s)
{
    return is_uri(s, false, true);
}

bool schema_format_iri_reference(struct str s)
{
    return is_uri(s, true, true);
}

/* --- RFC 6570 --- */

static bool is_escape(struct str s, size_t i)
{
    return i + 2 < s.len && s.ptr[i] == '%' && is_hex(s.ptr[i + 1]) && is_hex(s.ptr[i + 2]);
}

/* "name", "name:3", "name*" */
static bool is_varspec(struct str s)
{
    size_t i = 0;
    bool dot = true; /* not at the beginning, nor two of them */
    for (; i < s.len && !is_in(s.ptr[i], ":*"); i++) {
        char c = s.ptr[i];
        if (is_escape(s, i)) {
            i += 2;
        } else if (!is_alpha(c) && !is_digit(c) && c != '_' && (c != '.' || dot)) {
            return false;
        }
        dot = c == '.';
    }
    struct str rest = str_slice(s, i, s.len);
    if (i == 0 || dot || rest.len == 0 || str_eqc(rest, "*")) {
        return i > 0 && !dot;
    }
    bool ok = rest.ptr[0] == ':' && rest.len >= 2 && rest.len <= 5 && rest.ptr[1] != '0';
    for (size_t k = 1; k < rest.len; k++) {
        ok = ok && is_digit(rest.ptr[k]);
    }
    return ok;
}

static bool is_expression(struct str s)
{
    if (s.len > 0 && is_in(s.ptr[0], "+#./;?&")) {
        s = str_slice(s, 1, s.len);
    }
    do {
        if (!is_varspec(str_split(&s, ','))) {
            return false;
        }
    } while (s.ptr != NULL);
    return true;
}

bool schema_format_uri_template(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '{') {
            struct str rest = str_slice(s, i + 1, s.len);
            size_t end = str_find(rest, STR("}"));
            if (end == rest.len || !is_expression(str_slice(rest, 0, end))) {
                return false;
            }
            i += end + 1;
        } else if (c <= 0x20 || c == 0x7f || is_in((char)c, "\"<>\\^`|}") ||
                   (c == '%' && !is_escape(s, i))) {
            return false;
        }
    }
    return str_is_utf8(s);
}

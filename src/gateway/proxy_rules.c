/* SPDX-License-Identifier: MIT
 *
 * Which hosts and addresses the proxy may connect to.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>

#include "base/arena.h"
#include "base/macro.h"
#include "gateway/proxy.h"
#include "io/dial.h"

enum { PORT_WEB = 0, PORT_ANY = -1 }; /* 80 and 443, or all of them */

/* v4 addresses are kept in their v6 form, ::ffff:a.b.c.d: one comparison for both. */
struct network {
    unsigned char bytes[16];
    unsigned bits;
};

struct rule {
    char *host; /* lower case; NULL: a network */
    bool below; /* "*.host" */
    struct network network;
    int port;
};

struct proxy_rules {
    struct rule *items;
    size_t len;
};

struct proxy_rules *proxy_rules_new(void)
{
    return xcalloc(1, sizeof(struct proxy_rules));
}

struct proxy_rules *proxy_rules_free(struct proxy_rules *r)
{
    for (size_t i = 0; r != NULL && i < r->len; i++) {
        free(r->items[i].host);
    }
    if (r != NULL) {
        free(r->items);
        free(r);
    }
    return NULL;
}

/* --- addresses --- */

static void map_v4(const struct in_addr *v4, unsigned char out[16])
{
    static const unsigned char prefix[12] = { [10] = 0xff, [11] = 0xff };
    memcpy(out, prefix, sizeof prefix);
    memcpy(out + sizeof prefix, v4, 4);
}

static bool parse_address(const char *text, struct network *ret)
{
    struct in_addr v4;
    ret->bits = 128;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        map_v4(&v4, ret->bytes);
        return true;
    }
    return inet_pton(AF_INET6, text, ret->bytes) == 1;
}

static bool within(const unsigned char a[16], const struct network *n)
{
    size_t whole = n->bits / 8;
    unsigned rest = n->bits % 8;
    unsigned mask = rest == 0 ? 0 : 0xffu << (8 - rest) & 0xffu;
    return memcmp(a, n->bytes, whole) == 0 &&
           (rest == 0 || ((a[whole] ^ n->bytes[whole]) & mask) == 0);
}

static bool bytes_of(const struct address *a, unsigned char out[16])
{
    if (a->addr.ss_family == AF_INET) {
        map_v4(&((const struct sockaddr_in *)&a->addr)->sin_addr, out);
        return true;
    }
    if (a->addr.ss_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)&a->addr)->sin6_addr, 16);
        return true;
    }
    return false;
}

static bool in_any(const unsigned char bytes[16], const char *const *networks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct network net;
        struct str rest = str_of(networks[i]);
        struct str address = str_split(&rest, '/');
        char text[48] = "";
        int64_t bits = 0;
        memcpy(text, address.ptr, address.len < sizeof text ? address.len : 0);
        (void)str_to_i64(rest, &bits);
        if (parse_address(text, &net)) {
            net.bits = (unsigned)bits;
            if (within(bytes, &net)) {
                return true;
            }
        }
    }
    return false;
}

/* The registries of special addresses (RFC 6890 and its updates). A v4 network has 96 bits more in
 * the common form. */
static bool is_special(const unsigned char bytes[16])
{
    static const char *const networks[] = {
        "0.0.0.0/104",     "10.0.0.0/104",    "100.64.0.0/106", "127.0.0.0/104",
        "169.254.0.0/112", "172.16.0.0/108",  "192.0.0.0/120",  "192.0.2.0/120",
        "192.88.99.0/120", "192.168.0.0/112", "198.18.0.0/111", "198.51.100.0/120",
        "203.0.113.0/120", "224.0.0.0/100",   "240.0.0.0/100",  "::/127",
        "100::/64",        "2001::/23",       "2001:db8::/32",  "3fff::/20",
        "5f00::/16",       "fc00::/7",        "fe80::/10",      "fec0::/10",
        "ff00::/8",
    };
    return in_any(bytes, networks, ARRAY_LEN(networks));
}

bool proxy_address_is_private(const struct address *a)
{
    unsigned char bytes[16], inner[16];
    struct in_addr v4;
    static const char *const carriers[] = { "64:ff9b::/96", "64:ff9b:1::/96", "::/96" };
    static const char *const sixtofour[] = { "2002::/16" };
    if (!bytes_of(a, bytes) || is_special(bytes)) {
        return true;
    }
    /* A v6 address may be a way to a v4 one: that one counts. */
    bool last = in_any(bytes, carriers, ARRAY_LEN(carriers));
    bool second = in_any(bytes, sixtofour, 1);
    if (!last && !second) {
        return false;
    }
    memcpy(&v4, bytes + (last ? 12 : 2), 4);
    map_v4(&v4, inner);
    return is_special(inner);
}

/* --- rules --- */

static bool split_port(struct str *rule, int *ret)
{
    struct str whole = *rule;
    size_t colons = 0, at = 0;
    for (size_t i = 0; i < whole.len; i++) {
        if (whole.ptr[i] == ':') {
            colons++;
            at = i;
        }
    }
    bool bracket = whole.len > 0 && whole.ptr[0] == '[';
    bool has_port = bracket ? at > 0 && whole.ptr[at - 1] == ']' : colons == 1;
    *ret = PORT_WEB;
    if (has_port) {
        int64_t n;
        struct str text = str_slice(whole, at + 1, whole.len);
        if (str_eqc(text, "*")) {
            *ret = PORT_ANY;
        } else if (str_to_i64(text, &n) && n > 0 && n < 65536) {
            *ret = (int)n;
        } else {
            return false;
        }
        whole = str_slice(whole, 0, at);
    }
    if (bracket) {
        if (whole.len < 2 || whole.ptr[whole.len - 1] != ']') {
            return false;
        }
        whole = str_slice(whole, 1, whole.len - 1);
    }
    *rule = whole;
    return true;
}

static bool parse_network(struct str text, struct network *ret)
{
    char address[64] = "";
    struct str rest = text;
    struct str first = str_split(&rest, '/');
    int64_t bits;
    if (first.len == 0 || first.len >= sizeof address) {
        return false;
    }
    memcpy(address, first.ptr, first.len);
    if (!parse_address(address, ret)) {
        return false;
    }
    if (rest.ptr == NULL) {
        return true;
    }
    bool v4 = memchr(first.ptr, ':', first.len) == NULL;
    if (!str_to_i64(rest, &bits) || bits < 0 || bits > (v4 ? 32 : 128)) {
        return false;
    }
    ret->bits = (unsigned)bits + (v4 ? 96 : 0);
    return true;
}

static bool is_name(struct str s)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\0' || strchr(allowed, s.ptr[i]) == NULL) {
            return false;
        }
    }
    return s.len > 0 && s.len < 254 && s.ptr[0] != '.' && s.ptr[0] != '-';
}

static void add(struct proxy_rules *r, const struct rule *rule)
{
    r->items = xrealloc(r->items, (r->len + 1) * sizeof *r->items);
    r->items[r->len++] = *rule;
}

int proxy_rules_add(struct proxy_rules *r, const char *text, struct err *e)
{
    struct rule rule = { 0 };
    struct str host = str_of(text);
    if (str_find(host, STR("://")) < host.len) {
        return ERR(e, ERR_CONFIG, "'%.100s' is a URL; write its host, or HOST:PORT", text);
    }
    if (!split_port(&host, &rule.port)) {
        return ERR(e, ERR_CONFIG, "'%.100s' has no port between 1 and 65535", text);
    }
    if (parse_network(host, &rule.network)) {
        add(r, &rule);
        return 0;
    }
    rule.below = str_starts(host, STR("*."));
    host = str_slice(host, rule.below ? 2 : 0, host.len);
    if (!is_name(host)) {
        return ERR(e, ERR_CONFIG,
                   "'%.100s' is neither a host name, '*.name', an address nor a network", text);
    }
    rule.host = xmalloc(host.len + 1);
    memcpy(rule.host, host.ptr, host.len);
    rule.host[host.len] = '\0';
    add(r, &rule);
    if (!rule.below && strcasecmp(rule.host, "localhost") == 0) {
        struct rule v4 = { .port = rule.port }, v6 = { .port = rule.port };
        (void)parse_network(STR("127.0.0.0/8"), &v4.network);
        (void)parse_network(STR("::1"), &v6.network);
        add(r, &v4);
        add(r, &v6);
    }
    return 0;
}

static bool port_fits(int rule, int port)
{
    return rule == PORT_ANY || rule == port || (rule == PORT_WEB && (port == 80 || port == 443));
}

static bool host_fits(const struct rule *rule, struct str host)
{
    struct str name = str_of(rule->host);
    if (!rule->below) {
        return host.len == name.len && strncasecmp(host.ptr, name.ptr, name.len) == 0;
    }
    return host.len > name.len + 1 && host.ptr[host.len - name.len - 1] == '.' &&
           strncasecmp(host.ptr + host.len - name.len, name.ptr, name.len) == 0;
}

static bool network_fits(const struct proxy_rules *r, const unsigned char bytes[16], int port)
{
    for (size_t i = 0; i < r->len; i++) {
        const struct rule *rule = &r->items[i];
        if (rule->host == NULL && port_fits(rule->port, port) && within(bytes, &rule->network)) {
            return true;
        }
    }
    return false;
}

bool proxy_rules_allow_host(const struct proxy_rules *r, struct str host, int port)
{
    struct network literal;
    if (parse_network(host, &literal)) {
        return literal.bits == 128 && network_fits(r, literal.bytes, port);
    }
    if (host.len > 1 && host.ptr[host.len - 1] == '.') {
        host.len--; /* "example.org." is the same name */
    }
    for (size_t i = 0; i < r->len && is_name(host); i++) {
        const struct rule *rule = &r->items[i];
        if (rule->host != NULL && port_fits(rule->port, port) && host_fits(rule, host)) {
            return true;
        }
    }
    return false;
}

bool proxy_rules_allow_address(const struct proxy_rules *r, const struct address *a, int port)
{
    unsigned char bytes[16];
    return bytes_of(a, bytes) && (!proxy_address_is_private(a) || network_fits(r, bytes, port));
}

bool proxy_split_authority(struct str authority, int otherwise, struct str *ret_host, int *ret_port)
{
    struct str host = authority;
    int port;
    if (!split_port(&host, &port) || port == PORT_ANY || host.len == 0) {
        return false;
    }
    bool v6 = authority.ptr[0] == '[';
    if (!v6 && !is_name(host)) {
        return false; /* user names, empty labels, bare v6 addresses */
    }
    struct network unused;
    if (v6 && !parse_network(host, &unused)) {
        return false;
    }
    *ret_host = host;
    *ret_port = port == PORT_WEB ? otherwise : port;
    return *ret_port != 0;
}

bool proxy_split_url(struct str url, struct str *ret_authority, struct str *ret_path)
{
    struct str scheme = STR("http://");
    if (!str_starts(url, scheme)) {
        return false;
    }
    struct str rest = str_slice(url, scheme.len, url.len);
    size_t end = 0;
    while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?') {
        end++;
    }
    *ret_authority = str_slice(rest, 0, end);
    *ret_path = str_slice(rest, end, rest.len);
    return true;
}

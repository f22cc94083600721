/* SPDX-License-Identifier: MIT
 *
 * Who may come in: hosts, tokens; and where the proxy may go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "base/buf.h"
#include "base/macro.h"
#include "gateway/admit.h"
#include "gateway/proxy.h"
#include "io/dial.h"

static void test_hosts(void **state)
{
    static const char *const more[] = { "gateway.test", NULL };
    assert_true(admit_host(STR("127.0.0.1:8080"), NULL));
    assert_true(admit_host(STR("localhost"), NULL));
    assert_true(admit_host(STR("LocalHost:1"), NULL));
    assert_true(admit_host(STR("[::1]:80"), NULL));
    assert_false(admit_host(STR("gateway.test"), NULL));
    assert_true(admit_host(STR("gateway.test:80"), more));
    static const char *const bad[] = { "",
                                       "evil.test",
                                       "127.0.0.1.evil.test",
                                       "localhost:",
                                       "localhost:x",
                                       "localhost:0",
                                       "localhost:99999",
                                       "user@localhost",
                                       "[::1",
                                       "::1",
                                       "localhost:80:80",
                                       "127.0.0.1/",
                                       "localhost, evil.test" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(admit_host(str_of(bad[i]), more));
    }
}

static bool with(const char *name, const char *value, const char *target, bool proxy)
{
    const struct http_field f = { str_of(name), str_of(value) };
    const struct http_head head = { .target = str_of(target), .fields = { &f, 1 } };
    return proxy ? admit_proxy_token(&head, STR("s3cret")) : admit_token(&head, STR("s3cret"));
}

static void test_tokens(void **state)
{
    assert_true(with("Authorization", "Bearer s3cret", "/", false));
    assert_true(with("authorization", "bearer  s3cret", "/", false));
    assert_true(with("x-api-key", "s3cret", "/", false));
    assert_true(with("X-Goog-Api-Key", "s3cret", "/", false));
    assert_true(with("a", "b", "/v1beta/x?alt=sse&key=s3cret", false));
    assert_false(with("Authorization", "s3cret", "/", false));
    assert_false(with("Authorization", "Basic s3cret", "/", false));
    assert_false(with("x-api-key", "s3cre", "/", false));
    assert_false(with("x-api-key", "s3crets3cret", "/", false));
    assert_false(with("x-api-key", "", "/", false));
    assert_false(with("a", "b", "/x?monkey=s3cret", false));
    const struct http_head none = { .target = STR("/") };
    assert_false(admit_token(&none, STR("s3cret")));
    assert_false(admit_token(&none, STR(""))); /* an empty secret lets nobody in */
}

/* Where a target leads once its pass is off; NULL: it has none that is good. */
static const char *passed(const char *target)
{
    static char left[64];
    struct str t = str_of(target);
    if (!admit_pass(&t, STR("s3cret"))) {
        assert_true(str_eqc(t, target));
        return NULL;
    }
    (void)snprintf(left, sizeof left, "%.*s", STR_ARG(t));
    return left;
}

static void test_passes(void **state)
{
    static const char *const wrong[] = {
        "/",      "/v1/messages",  "/-/",         "/-/s3cre/v1",  "/-/s3crets",
        "/-//v1", "/-/s3cret?x=1", "-/s3cret/v1", "/-/S3CRET/v1", "//-/s3cret/v1"
    };
    assert_string_equal(passed("/-/s3cret/v1/messages?beta=true"), "/v1/messages?beta=true");
    assert_string_equal(passed("/-/s3cret/"), "/");
    assert_string_equal(passed("/-/s3cret"), "/");
    assert_string_equal(passed("/-/s3cret/-/s3cret/x"), "/-/s3cret/x");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(passed(wrong[i]));
    }
    struct str t = STR("/-//x");
    assert_false(admit_pass(&t, STR(""))); /* an empty secret lets nobody in */
}

static bool is_own(const char *name, const char *value)
{
    return admit_is_own_key(&(struct http_field) { str_of(name), str_of(value) }, "s3cret");
}

static void test_keys_of_clients(void **state)
{
    assert_true(is_own("Authorization", "Bearer sk-ant"));
    assert_true(is_own("authorization", "Basic dTpw"));
    assert_true(is_own("x-api-key", "sk-ant"));
    assert_true(is_own("X-Goog-Api-Key", "AIza"));
    assert_false(is_own("Authorization", "Bearer s3cret")); /* the gateway's goes nowhere */
    assert_false(is_own("Authorization", "bearer   s3cret "));
    assert_false(is_own("x-api-key", "s3cret"));
    assert_false(is_own("Cookie", "a=b"));
    assert_false(is_own("Proxy-Authorization", "Bearer sk-ant"));
    assert_false(is_own("accept", "x"));
}

static void test_tokens_of_the_proxy(void **state)
{
    assert_true(with("Proxy-Authorization", "Basic dTpzM2NyZXQ=", "h:1", true)); /* u:s3cret */
    assert_true(with("Proxy-Authorization", "Basic czNjcmV0", "h:1", true));     /* s3cret */
    assert_true(with("Proxy-Authorization", "Basic czNjcmV0Og==", "h:1", true)); /* s3cret: */
    assert_true(with("Proxy-Authorization", "Bearer s3cret", "h:1", true));
    assert_false(with("Proxy-Authorization", "Basic !!!", "h:1", true));
    assert_false(with("Proxy-Authorization", "Basic dTpv", "h:1", true));
    assert_false(with("Authorization", "Bearer s3cret", "h:1", true));
}

static struct address address_of(const char *text)
{
    struct address a = { 0 };
    struct sockaddr_in *v4 = (struct sockaddr_in *)&a.addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a.addr;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
    }
    return a;
}

static void test_private_addresses(void **state)
{
    static const char *const private[] = {
        "127.0.0.1",
        "127.255.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fd00::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "ff02::1",
        "::127.0.0.1",
    };
    static const char *const public[] = { "1.1.1.1",        "172.32.0.1",       "172.15.0.1",
                                          "11.0.0.1",       "100.128.0.1",      "2606:4700::1",
                                          "::ffff:8.8.8.8", "64:ff9b::808:808", "192.167.0.1",
                                          "126.0.0.1" };
    for (size_t i = 0; i < ARRAY_LEN(private); i++) {
        struct address a = address_of(private[i]);
        if (!proxy_address_is_private(&a)) {
            print_error("%s\n", private[i]);
        }
        assert_true(proxy_address_is_private(&a));
    }
    for (size_t i = 0; i < ARRAY_LEN(public); i++) {
        struct address a = address_of(public[i]);
        if (proxy_address_is_private(&a)) {
            print_error("%s\n", public[i]);
        }
        assert_false(proxy_address_is_private(&a));
    }
}

static void test_rules(void **state)
{
    struct proxy_rules *r = proxy_rules_new();
    assert_int_equal(proxy_rules_add(r, "example.org", NULL), 0);
    assert_int_equal(proxy_rules_add(r, "*.wild.test:8443", NULL), 0);
    assert_int_equal(proxy_rules_add(r, "any.test:*", NULL), 0);
    assert_int_equal(proxy_rules_add(r, "10.1.0.0/16:5432", NULL), 0);
    assert_int_equal(proxy_rules_add(r, "[fd00::5]:443", NULL), 0);
    struct err e = { 0 };
    assert_int_equal(proxy_rules_add(r, "https://example.org", &e), -ERR_CONFIG);
    assert_string_equal(e.msg, "'https://example.org' is a URL; write its host, or HOST:PORT");
    assert_true(proxy_rules_allow_host(r, STR("example.org"), 443));
    assert_true(proxy_rules_allow_host(r, STR("EXAMPLE.org."), 80));
    assert_false(proxy_rules_allow_host(r, STR("example.org"), 22));
    assert_false(proxy_rules_allow_host(r, STR("www.example.org"), 443));
    assert_false(proxy_rules_allow_host(r, STR("evilexample.org"), 443));
    assert_true(proxy_rules_allow_host(r, STR("a.wild.test"), 8443));
    assert_true(proxy_rules_allow_host(r, STR("a.b.wild.test"), 8443));
    assert_false(proxy_rules_allow_host(r, STR("wild.test"), 8443));
    assert_false(proxy_rules_allow_host(r, STR(".wild.test"), 8443));
    assert_false(proxy_rules_allow_host(r, STR("a.wild.test"), 443));
    assert_true(proxy_rules_allow_host(r, STR("any.test"), 1));
    assert_true(proxy_rules_allow_host(r, STR("10.1.2.3"), 5432));
    assert_false(proxy_rules_allow_host(r, STR("10.2.2.3"), 5432));
    assert_false(proxy_rules_allow_host(r, STR("1.1.1.1"), 443)); /* addresses by address only */
    assert_true(proxy_rules_allow_host(r, STR("fd00::5"), 443));
    struct address inside = address_of("10.1.9.9"), outside = address_of("10.2.9.9");
    struct address metadata = address_of("169.254.169.254"), world = address_of("1.1.1.1");
    struct address mapped = address_of("::ffff:10.1.9.9");
    assert_true(proxy_rules_allow_address(r, &inside, 5432));
    assert_true(proxy_rules_allow_address(r, &mapped, 5432));
    assert_false(proxy_rules_allow_address(r, &inside, 443));
    assert_false(proxy_rules_allow_address(r, &outside, 5432));
    assert_false(proxy_rules_allow_address(r, &metadata, 80));
    assert_true(proxy_rules_allow_address(r, &world, 443));
    r = proxy_rules_free(r);
}

static void test_rules_that_are_none(void **state)
{
    static const char *const bad[] = { "",      "*",        "a b",         "host:0", "host:70000",
                                       "host:", "http://x", "10.0.0.0/33", "[::1",   "*.*.x y",
                                       "-x",    "a/b",      "::/129" };
    struct proxy_rules *r = proxy_rules_new();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e;
        if (proxy_rules_add(r, bad[i], &e) == 0) {
            print_error("%s\n", bad[i]);
        }
        assert_int_equal(proxy_rules_add(r, bad[i], &e), -ERR_CONFIG);
    }
    assert_int_equal(proxy_rules_add(r, "localhost:9", NULL), 0);
    struct address own = address_of("127.0.0.1"), own6 = address_of("::1");
    assert_true(proxy_rules_allow_address(r, &own, 9));
    assert_true(proxy_rules_allow_address(r, &own6, 9));
    assert_false(proxy_rules_allow_address(r, &own, 10));
    r = proxy_rules_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_keys_of_clients),
        cmocka_unit_test(test_tokens_of_the_proxy),
        cmocka_unit_test(test_private_addresses),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rules_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

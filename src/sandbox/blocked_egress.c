/* SPDX-License-Identifier: MIT
 *
 * What programs inside sent to where there is no way: the kernel counts, per network namespace,
 * connections and datagrams for which it found no route, and datagrams that nobody listens for.
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/file.h"
#include "sandbox/sandbox_priv.h"

enum { COUNTERS_MAX = 64 << 10 };

static int read_counters(pid_t pid, const char *name, struct buf *ret)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, name);
    return file_read(AT_FDCWD, path, COUNTERS_MAX, ret, NULL);
}

/* The n-th word, from 0, or nothing. */
static struct str word_at(struct str line, size_t n)
{
    struct str word = STR_EMPTY;
    for (size_t i = 0; i <= n; i++) {
        line = str_trim(line);
        word = str_split(&line, ' ');
    }
    return word;
}

/* "Ip: Forwarding … OutNoRoutes …" and, below it, "Ip: 1 … 3 …". */
static int64_t count_v4(struct str text, const char *group, const char *name)
{
    while (text.len > 0) {
        struct str names = str_split(&text, '\n');
        struct str values = str_split(&text, '\n');
        for (size_t i = 1; str_eqc(word_at(names, 0), group) && word_at(names, i).len > 0; i++) {
            int64_t n;
            if (str_eqc(word_at(names, i), name)) {
                return str_to_i64(word_at(values, i), &n) ? n : -1;
            }
        }
    }
    return -1;
}

/* "Ip6OutNoRoutes   3", somewhere. */
static int64_t count_v6(struct str text)
{
    int64_t n;
    while (text.len > 0) {
        struct str line = str_split(&text, '\n');
        if (str_starts(line, STR("Ip6OutNoRoutes"))) {
            return str_to_i64(str_trim(str_slice(line, 14, line.len)), &n) ? n : -1;
        }
    }
    return 0; /* a kernel without IPv6 */
}

int64_t blocked_egress_count(pid_t inside)
{
    CLEANUP(buf) struct buf v4 = BUF_INIT(COUNTERS_MAX + 1);
    CLEANUP(buf) struct buf v6 = BUF_INIT(COUNTERS_MAX + 1);
    if (read_counters(inside, "snmp", &v4) < 0) {
        return -1;
    }
    int64_t four = count_v4(buf_str(&v4), "Ip:", "OutNoRoutes");
    int64_t lost = count_v4(buf_str(&v4), "Udp:", "NoPorts"); /* resolvers that ask loopback */
    int64_t six = read_counters(inside, "snmp6", &v6) < 0 ? 0 : count_v6(buf_str(&v6));
    return four < 0 || lost < 0 || six < 0 ? -1 : four + lost + six;
}

/* SPDX-License-Identifier: MIT
 *
 * Ways out through sockets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "escape.h"

static struct sockaddr_in address(char **args)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    a.sin_port = htons((uint16_t)strtol(args[1], NULL, 10));
    (void)inet_pton(AF_INET, args[0], &a.sin_addr);
    return a;
}

static enum verdict connect_with(char **args, int protocol, const char *how)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);
    if (fd < 0) {
        return held_errno("socket");
    }
    struct timeval patience = { .tv_sec = 3 };
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    struct sockaddr_in a = address(args);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
        return held_errno(how);
    }
    return escaped("%s to %s:%s", how, args[0], args[1]);
}

static enum verdict tcp(char **args)
{
    return connect_with(args, 0, "connect");
}

static enum verdict multipath_tcp(char **args)
{
    return connect_with(args, 262 /* IPPROTO_MPTCP */, "MPTCP connect");
}

static enum verdict fast_open(char **args)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = address(args);
    if (fd < 0 || sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&a, sizeof(a)) < 0) {
        return held_errno("sendto with MSG_FASTOPEN");
    }
    return escaped("sent data to %s:%s", args[0], args[1]);
}

/* udp HOST PORT: a datagram leaves; the test's listener answers, so that going nowhere is told from
 * arriving. Also the shape of a DNS question. */
static enum verdict udp(char **args)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = address(args);
    static const char question[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07"
                                   "example\x03org\x00\x00\x01\x00\x01";
    if (fd < 0 ||
        sendto(fd, question, sizeof(question) - 1, 0, (struct sockaddr *)&a, sizeof(a)) < 0) {
        return held_errno("sendto");
    }
    struct timeval patience = { .tv_sec = 2 };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    char answer[512];
    return recv(fd, answer, sizeof(answer), 0) >= 0
               ? escaped("%s:%s answered a datagram", args[0], args[1])
               : held_errno("no answer");
}

static enum verdict unix_connect(const char *name, int abstract)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    if (fd < 0 || len + 1 >= sizeof(a.sun_path)) {
        return not_applicable("no such socket");
    }
    memcpy(a.sun_path + abstract, name, len);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    if (connect(fd, (struct sockaddr *)&a, size) != 0) {
        return held_errno("connect");
    }
    return escaped("connected to '%s'", name);
}

static enum verdict abstract_socket(char **args)
{
    return unix_connect(args[0], 1);
}

static enum verdict named_socket(char **args)
{
    return unix_connect(args[0], 0);
}

/* family NUMBER: a socket of an odd family can be made. */
static enum verdict odd_family(char **args)
{
    int family = (int)strtol(args[0], NULL, 10);
    static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        int fd = socket(family, types[i] | SOCK_CLOEXEC, 0);
        if (fd >= 0) {
            (void)close(fd);
            return escaped("a socket of family %d, type %d", family, types[i]);
        }
    }
    return held_errno("socket");
}

static enum verdict raw_socket(char **args)
{
    (void)args;
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    return fd >= 0 ? escaped("a raw socket") : held_errno("socket");
}

/* loopback: a server of our own on loopback still works; the verdict is turned round. */
static enum verdict own_loopback(char **args)
{
    (void)args;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(a);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || client < 0 || bind(server, (struct sockaddr *)&a, len) != 0 ||
        listen(server, 1) != 0 || getsockname(server, (struct sockaddr *)&a, &len) != 0 ||
        connect(client, (struct sockaddr *)&a, len) != 0) {
        return escaped("an own loopback server does not work: %s", strerror(errno));
    }
    return held("an own loopback server works");
}

const struct attempt network_attempts[] = {
    { "tcp", "HOST PORT", 2, tcp },
    { "mptcp", "HOST PORT", 2, multipath_tcp },
    { "fastopen", "HOST PORT", 2, fast_open },
    { "udp", "HOST PORT", 2, udp },
    { "abstract", "NAME", 1, abstract_socket },
    { "unix", "PATH", 1, named_socket },
    { "family", "NUMBER", 1, odd_family },
    { "raw", "", 0, raw_socket },
    { "loopback", "", 0, own_loopback },
    { NULL, NULL, 0, NULL },
};

// Sends NetFlow 9 to a collector: 24 flows a datagram, of 20,000 prefixes with a host each, 50 systems and the usual ports, of which few have most.
//   make_flows PORT SECONDS FLOWS_A_SECOND    to 127.0.0.1; 0 flows a second: as fast as this end can
// Prints how many flows it sent. The same flows each time.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { FLOWS = 24, DATAGRAMS = 4096, FIELDS = 18, BATCH = 32, TEMPLATE_EVERY = 64 };

// Information elements and their lengths: as routers announce them.
static const uint16_t fields[FIELDS][2] = {
    {8, 4}, {12, 4}, {15, 4}, {10, 4}, {14, 4}, {2, 4}, {1, 4}, {22, 4}, {21, 4},
    {7, 2}, {11, 2}, {6, 1}, {4, 1}, {5, 1}, {16, 4}, {17, 4}, {9, 1}, {13, 1}};

static uint64_t state = 88172645463325252u;
static uint32_t next(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % below;
}
// Few of them are much more frequent than the others.
static uint32_t skewed(uint32_t below) {
    double x = next(1 << 24) / (double)(1 << 24);
    return x * x * x * below;
}

static uint8_t *put(uint8_t *at, uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; i--) *at++ = value >> (8 * i);
    return at;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint8_t datagrams[DATAGRAMS][1500];
static size_t lengths[DATAGRAMS];

static void make(int number) {
    static const uint16_t ports[] = {443, 80, 53, 22, 123, 993, 8080, 3478, 25, 1194};
    uint8_t *begin = datagrams[number], *at = begin + 20;
    put(begin, 9, 2);
    int has_template = number % TEMPLATE_EVERY == 0;
    put(begin + 2, FLOWS + has_template, 2);
    put(begin + 4, 600000, 4);
    put(begin + 16, 1, 4);
    if (has_template) {
        at = put(put(at, 0, 2), 8 + FIELDS * 4, 2);
        at = put(put(at, 260, 2), FIELDS, 2);
        for (int i = 0; i < FIELDS; i++) at = put(put(at, fields[i][0], 2), fields[i][1], 2);
    }
    uint8_t *set = at;
    at = put(at, 260, 2) + 2;
    for (int i = 0; i < FLOWS; i++) {
        uint32_t packets = 1 + skewed(200);
        at = put(at, 0x0a000000 + (skewed(20000) << 8) + 1, 4);
        at = put(at, 0x64000000 + (skewed(20000) << 8) + 1, 4);
        at = put(at, 0x0a000001, 4);
        at = put(put(at, next(8), 4), next(8), 4);
        at = put(put(at, packets, 4), packets * (60 + next(1400)), 4);
        at = put(put(at, 590000 - next(60000), 4), 590000, 4);
        at = put(put(at, ports[skewed(10)], 2), 32768 + next(28000), 2);
        at = put(put(put(at, 0x18, 1), next(10) ? 6 : 17, 1), next(4) ? 0 : 0xb8, 1);
        at = put(put(at, 64500 + skewed(50), 4), 64500 + skewed(50), 4);
        at = put(put(at, 24, 1), 24, 1);
    }
    while ((at - set) % 4) *at++ = 0;
    put(set + 2, at - set, 2);
    lengths[number] = at - begin;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    for (int i = 0; i < DATAGRAMS; i++) make(i);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int out = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(out, (struct sockaddr *)&to, sizeof to)) return 1;
    double seconds = atof(arguments[2]), rate = atof(arguments[3]), begun = now();
    uint64_t sent = 0;
    struct iovec parts[BATCH];
    struct mmsghdr messages[BATCH] = {0};
    while (now() - begun < seconds) {
        if (rate > 0 && sent * FLOWS > rate * (now() - begun)) {
            nanosleep(&(struct timespec){0, 200000}, NULL);
            continue;
        }
        for (int i = 0; i < BATCH; i++) {
            int number = (sent + i) % DATAGRAMS;
            put(datagrams[number] + 8, time(NULL), 4);
            put(datagrams[number] + 12, sent + i, 4);
            parts[i] = (struct iovec){datagrams[number], lengths[number]};
            messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
        }
        int done = sendmmsg(out, messages, BATCH, 0);
        if (done > 0) sent += done;
    }
    printf("%llu\n", (unsigned long long)sent * FLOWS);
}

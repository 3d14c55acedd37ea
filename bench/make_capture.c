/* Writes a capture to standard output, for comparisons of its readers.
 *
 *   make_capture full N CONNECTIONS   N full-sized segments, captured at the sender: every second one is acknowledged a round
 *                                     trip later, one of 997 is lost on the path, reported by SACK and retransmitted
 *   make_capture idle N 1         N connections that are opened and stay silent
 *   make_capture small N FLOWS        N datagrams in the smallest frames of Ethernet (64 bytes with the check sequence)
 *
 * pcap with nanoseconds, Ethernet, IPv4. Checksums of TCP and UDP are zero, as an offloading card leaves them.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD = 1448, IN_FLIGHT = 64, LOSE_ONE_OF = 997 /* a prime: every connection loses */, HELD_SEGMENTS = 80, MOST_CONNECTIONS = 1 << 16 };

static uint64_t now_ns = 1700000000ull * 1000000000ull;

struct connection {
    uint32_t next, acked, lost; /* of the sender, from its initial number; 0: none is lost */
    unsigned since_loss, unacked;
};
static struct connection connections[MOST_CONNECTIONS];

static void put(const uint8_t *frame, uint32_t captured, uint32_t length) {
    uint32_t header[4] = {(uint32_t)(now_ns / 1000000000u), (uint32_t)(now_ns % 1000000000u), captured, length};
    if (fwrite(header, sizeof header, 1, stdout) != 1 || fwrite(frame, captured, 1, stdout) != 1) {
        perror("make_capture");
        exit(1);
    }
}

static void ip(uint8_t *frame, uint32_t from, uint32_t to, uint16_t length, uint8_t protocol) {
    memcpy(frame, "\x02\0\0\0\0\2\x02\0\0\0\0\1\x08\0", 14);
    uint8_t *p = frame + 14;
    memset(p, 0, 20);
    p[0] = 0x45, p[2] = length >> 8, p[3] = length & 255, p[6] = 0x40, p[8] = 64, p[9] = protocol;
    from = htonl(from), to = htonl(to);
    memcpy(p + 12, &from, 4);
    memcpy(p + 16, &to, 4);
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2) sum += p[i] << 8 | p[i + 1];
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    p[10] = ~sum >> 8 & 255, p[11] = ~sum & 255;
}

/* A segment of connection `c`; `sack` is the first byte of a block that ends at `sack_end`, 0 for none. */
static void segment(unsigned c, int from_server, uint32_t seq, uint32_t ack, uint8_t flags, unsigned payload,
                    uint32_t sack, uint32_t sack_end) {
    static uint8_t frame[2048];
    uint8_t options[40];
    unsigned size = 0;
    if (flags & 2) { /* SYN: MSS 1460, SACK permitted, timestamps, window scale 7 */
        memcpy(options, "\x02\x04\x05\xb4\x04\x02\x08\x0a\0\0\0\0\0\0\0\0\x01\x03\x03\x07", 20);
        size = 20;
    } else {
        memcpy(options, "\x01\x01\x08\x0a", 4);
        uint32_t ms = htonl((uint32_t)(now_ns / 1000000u));
        memcpy(options + 4, &ms, 4);
        memcpy(options + 8, &ms, 4);
        size = 12;
        if (sack) {
            memcpy(options + 12, "\x01\x01\x05\x0a", 4);
            uint32_t block[2] = {htonl(sack), htonl(sack_end)};
            memcpy(options + 16, block, 8);
            size = 24;
        }
    }
    uint32_t client = 0x0a000001 + (c & 0xffff), server = 0xc0000201;
    unsigned length = 20 + 20 + size + payload;
    ip(frame, from_server ? server : client, from_server ? client : server, length, 6);
    uint8_t *p = frame + 34;
    uint16_t ports[2] = {htons(20000 + c / 65536), htons(443)};
    memcpy(p, from_server ? &ports[1] : &ports[0], 2);
    memcpy(p + 2, from_server ? &ports[0] : &ports[1], 2);
    uint32_t numbers[2] = {htonl(seq), htonl(ack)};
    memcpy(p + 4, numbers, 8);
    p[12] = (20 + size) / 4 << 4, p[13] = flags, p[14] = 0xff, p[15] = 0xff, p[16] = p[17] = p[18] = p[19] = 0;
    memcpy(p + 20, options, size);
    put(frame, 14 + length, 14 + length);
}

static void open_one(unsigned c, uint64_t round_trip_ns) {
    segment(c, 0, 0, 0, 2, 0, 0, 0), now_ns += round_trip_ns;
    segment(c, 1, 0, 1, 0x12, 0, 0, 0), now_ns += 1000;
    segment(c, 0, 1, 1, 0x10, 0, 0, 0);
}

static void full(unsigned long count, unsigned number) {
    for (unsigned c = 0; c < number; c++) {
        open_one(c, 20000000);
        connections[c] = (struct connection){1, 1, 0, 0, 0};
    }
    for (unsigned long n = 0; n < count; n++) {
        unsigned c = n % number;
        struct connection *own = &connections[c];
        now_ns += 12000; /* 1 Gbit/s */
        if (own->lost && own->since_loss == HELD_SEGMENTS) {
            segment(c, 0, own->lost, 1, 0x18, PAYLOAD, 0, 0);
            own->lost = 0;
            continue;
        }
        segment(c, 0, own->next, 1, 0x18, PAYLOAD, 0, 0);
        if (!own->lost && n % LOSE_ONE_OF == LOSE_ONE_OF - 1) own->lost = own->next, own->since_loss = 0;
        own->next += PAYLOAD;
        uint32_t reached = own->next - own->acked > IN_FLIGHT * PAYLOAD ? own->next - IN_FLIGHT * PAYLOAD : own->acked;
        if (own->lost && own->since_loss++ > 0 && reached > own->lost) {
            segment(c, 1, 1, own->lost, 0x10, 0, own->lost + PAYLOAD, reached);
        } else if (++own->unacked == 2 && reached > own->acked) {
            own->acked = reached, own->unacked = 0;
            segment(c, 1, 1, reached, 0x10, 0, 0, 0);
        } else if (own->unacked > 2) {
            own->unacked = 1;
        }
    }
}

static void small(unsigned long count, unsigned number) {
    uint8_t frame[64] = {0};
    for (unsigned long n = 0; n < count; n++) {
        now_ns += 672;
        unsigned flow = n % number;
        ip(frame, 0x0a000001 + flow, 0xc0000201, 46, 17);
        uint16_t udp[4] = {htons(20000), htons(7), htons(26), 0};
        memcpy(frame + 34, udp, 8);
        put(frame, 60, 60);
    }
}

int main(int argc, char **argv) {
    if (argc != 4 || strtoul(argv[3], 0, 10) - 1 >= MOST_CONNECTIONS) {
        fprintf(stderr, "make_capture full|idle|small N FLOWS\n");
        return 2;
    }
    uint32_t header[6] = {0xa1b23c4d, 0x00040002, 0, 0, 262144, 1};
    fwrite(header, sizeof header, 1, stdout);
    unsigned long count = strtoul(argv[2], 0, 10);
    unsigned number = strtoul(argv[3], 0, 10);
    if (!strcmp(argv[1], "full")) full(count, number);
    if (!strcmp(argv[1], "small")) small(count, number);
    if (!strcmp(argv[1], "idle"))
        for (unsigned long c = 0; c < count; c++) open_one(c, 10000);
    return fflush(stdout) ? 1 : 0;
}

#include "sha1.h"

static uint32_t rotl(uint32_t x, int n) {
    return x << n | x >> (32 - n);
}

/* The function of round t and its constant (4.1.1 and 4.2.1), added. */
static uint32_t mix(int t, uint32_t b, uint32_t c, uint32_t d) {
    static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    const uint32_t choice = d ^ (b & (c ^ d)), parity = b ^ c ^ d,
                   majority = (b & c) | (d & (b | c));
    return k[t / 20] + (t < 20 ? choice : t / 20 == 2 ? majority : parity);
}

static void add_block(uint32_t *h, const unsigned char *p) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int t = 0; t < 16; t++, p += 4)
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int t = 16; t < 80; t++)
        w[t] = rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (int t = 0; t < 80; t++) {
        const uint32_t next = rotl(a, 5) + mix(t, b, c, d) + e + w[t];
        e = d;
        d = c;
        c = rotl(b, 30);
        b = a;
        a = next;
    }
    const uint32_t sums[5] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++)
        h[i] += sums[i];
}

void llm_sha1_begin(sha1 *s) {
    *s = (sha1){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void llm_sha1_add(sha1 *s, const void *data, size_t n) {
    sha_blocks_add(&s->bytes, s->h, add_block, data, n);
}

void llm_sha1_end(sha1 *s, char hex[SHA1_HEX]) {
    sha_blocks_end(&s->bytes, s->h, add_block, 5, hex);
}

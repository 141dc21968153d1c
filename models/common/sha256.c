#include "sha256.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

/* The schedule is kept as a ring of 16 words: word t depends on words t-2, t-7, t-15 and t-16. */
static uint32_t next_word(uint32_t w[16], int t) {
    const uint32_t a = w[(t + 1) & 15], b = w[(t + 14) & 15];
    w[t & 15] += (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[(t + 9) & 15] +
                 (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
    return w[t & 15];
}

/* One round, with the eight variables in the roles of this round: instead of moving them all, the
 * caller renames them. */
static void round_of(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                     uint32_t g, uint32_t *h, uint32_t k_and_w) {
    const uint32_t t =
        *h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + (g ^ (e & (f ^ g))) + k_and_w;
    *d += t;
    *h = t + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) | (c & (a | b)));
}

static void add_block(uint32_t *state, const unsigned char *p) {
    uint32_t w[16], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
                    f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 16; t++, p += 4)
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int t = 0; t < 64; t += 8) {
        uint32_t x[8];
        for (int i = 0; i < 8; i++)
            x[i] = K[t + i] + (t < 16 ? w[t + i] : next_word(w, t + i));
        round_of(a, b, c, &d, e, f, g, &h, x[0]);
        round_of(h, a, b, &c, d, e, f, &g, x[1]);
        round_of(g, h, a, &b, c, d, e, &f, x[2]);
        round_of(f, g, h, &a, b, c, d, &e, x[3]);
        round_of(e, f, g, &h, a, b, c, &d, x[4]);
        round_of(d, e, f, &g, h, a, b, &c, x[5]);
        round_of(c, d, e, &f, g, h, a, &b, x[6]);
        round_of(b, c, d, &e, f, g, h, &a, x[7]);
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += sums[i];
}

void llm_sha256_begin(sha256 *s) {
    *s = (sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                        0x1f83d9ab, 0x5be0cd19}};
}

void llm_sha256_add(sha256 *s, const void *data, size_t n) {
    sha_blocks_add(&s->bytes, s->h, add_block, data, n);
}

void llm_sha256_end(sha256 *s, char hex[SHA256_HEX]) {
    sha_blocks_end(&s->bytes, s->h, add_block, 8, hex);
}

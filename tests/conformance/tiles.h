/* AMX's tiles for processors without them: each instruction on tiles raises SIGILL there, and the
 * handler does in its place what the processor's manual says. So checks run the code that the
 * library ships. What a processor would refuse ends the program, as does any other instruction that
 * this one lacks. Needs Linux on x86-64; for one thread. */
#ifndef CONFORMANCE_TILES_H
#define CONFORMANCE_TILES_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* What ldtilecfg reads. */
typedef struct tiles_config {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tiles_config;

static struct tiles {
    tiles_config config; /* palette 0: none */
    uint8_t row[8][16][64];
} tiles;

static void tiles_need(bool right, const char *what) {
    if (!right) {
        (void)!write(2, what, strlen(what));
        (void)!write(2, "\n", 1);
        _exit(1);
    }
}

static void tiles_configure(const void *p) {
    static const uint8_t zero[14];
    tiles_config c;
    memcpy(&c, p, sizeof c);
    tiles_need(c.palette == 1 && c.start_row == 0 && !memcmp(c.zero, zero, sizeof zero),
               "ldtilecfg: not a configuration");
    for (int t = 0; t < 16; t++)
        tiles_need(t < 8 ? c.rows[t] <= 16 && c.bytes[t] <= 64 && !c.rows[t] == !c.bytes[t]
                         : c.rows[t] == 0 && c.bytes[t] == 0,
                   "ldtilecfg: a shape that no tile has");
    tiles.config = c;
    memset(tiles.row, 0, sizeof tiles.row);
}

static void tiles_need_shape(int t) {
    tiles_need(tiles.config.palette == 1 && tiles.config.rows[t] > 0, "a tile without a shape");
}

static void tiles_zero(int t) {
    tiles_need_shape(t);
    memset(tiles.row[t], 0, sizeof tiles.row[t]);
}

static void tiles_load(int t, const char *p, int64_t stride) {
    tiles_zero(t);
    for (int r = 0; r < tiles.config.rows[t]; r++)
        memcpy(tiles.row[t][r], p + r * stride, tiles.config.bytes[t]);
}

static void tiles_store(int t, char *p, int64_t stride) {
    tiles_need_shape(t);
    for (int r = 0; r < tiles.config.rows[t]; r++)
        memcpy(p + r * stride, tiles.row[t][r], tiles.config.bytes[t]);
}

/* tdpbssd: products of signed bytes. */
static void tiles_multiply(int c, int a, int b) {
    const tiles_config *s = &tiles.config;
    tiles_need_shape(c), tiles_need_shape(a), tiles_need_shape(b);
    tiles_need(c != a && c != b && a != b, "tdpbssd: a tile twice");
    tiles_need(s->rows[c] == s->rows[a] && s->bytes[c] == s->bytes[b] && s->bytes[c] % 4 == 0 &&
                   s->bytes[a] == 4 * s->rows[b],
               "tdpbssd: shapes that do not fit");
    for (int m = 0; m < s->rows[c]; m++) {
        int32_t sum[16];
        memcpy(sum, tiles.row[c][m], sizeof sum);
        for (int k = 0; k < s->rows[b]; k++)
            for (int n = 0; n < s->bytes[c] / 4; n++)
                for (int i = 0; i < 4; i++)
                    sum[n] +=
                        (int8_t)tiles.row[a][m][4 * k + i] * (int8_t)tiles.row[b][k][4 * n + i];
        memcpy(tiles.row[c][m], sum, sizeof sum);
    }
}

/* An instruction: | c4 | R X B 00010 | 0 vvvv 0 pp | opcode | mod reg rm | sib | offset |, where R,
 * X, B and v are inverted. */
typedef struct tiles_code {
    const uint8_t *p; /* at mod, reg, rm; then behind the instruction */
    int reg, rm, v;
    bool has_memory;
    int64_t base, index; /* the address, and the distance between rows */
} tiles_code;

static int64_t tiles_register(const ucontext_t *u, int r) {
    static const int place[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return u->uc_mcontext.gregs[place[r]];
}

/* Decodes the operands of the instruction at p. */
static tiles_code tiles_decode(const ucontext_t *u, const uint8_t *p) {
    const int high_index = p[1] & 0x40 ? 0 : 8, high_base = p[1] & 0x20 ? 0 : 8;
    tiles_code c = {.p = p + 5, .reg = p[4] >> 3 & 7, .rm = p[4] & 7, .v = ~p[2] >> 3 & 15};
    const int mod = p[4] >> 6;
    int base = c.rm;
    c.has_memory = mod != 3;
    if (!c.has_memory)
        return c;
    if (c.rm == 4) {
        const int sib = *c.p++, index = (sib >> 3 & 7) | high_index;
        base = sib & 7;
        c.index = index == 4 ? 0 : (int64_t)((uint64_t)tiles_register(u, index) << (sib >> 6));
    }
    if (mod == 1) {
        c.base = (int8_t)*c.p++;
    } else if (mod == 2 || base == 5) {
        int32_t offset;
        memcpy(&offset, c.p, sizeof offset);
        c.base = offset;
        c.p += sizeof offset;
    }
    if (mod == 0 && base == 5)
        c.base += c.rm == 4 ? 0 : (int64_t)(uintptr_t)c.p; /* no base; behind the instruction */
    else
        c.base += tiles_register(u, base | high_base);
    return c;
}

/* True if the code at p is an instruction on tiles: no other has these opcodes. */
static bool tiles_is_code(const uint8_t *p) {
    return p[0] == 0xc4 && (p[1] & 0x9f) == 0x82 && (p[2] & 0x84) == 0 &&
           (p[3] == 0x49 || p[3] == 0x4b || p[3] == 0x5e);
}

/* Does what the instruction at p says; returns the next one. */
static const uint8_t *tiles_step(const ucontext_t *u, const uint8_t *p) {
    enum { NONE = 0, F3 = 2, F2 = 3 }; /* pp */
    const tiles_code c = tiles_decode(u, p);
    const int pp = p[2] & 3;
    char *const at = (char *)(uintptr_t)c.base;
    if (p[3] == 0x49 && pp == NONE && c.has_memory && c.reg == 0)
        tiles_configure(at + c.index);
    else if (p[3] == 0x49 && pp == NONE && p[4] == 0xc0)
        tiles.config.palette = 0;
    else if (p[3] == 0x49 && pp == F2 && !c.has_memory && c.rm == 0)
        tiles_zero(c.reg);
    else if (p[3] == 0x4b && pp == F2 && c.has_memory && c.rm == 4)
        tiles_load(c.reg, at, c.index);
    else if (p[3] == 0x4b && pp == F3 && c.has_memory && c.rm == 4)
        tiles_store(c.reg, at, c.index);
    else if (p[3] == 0x5e && pp == F2 && !c.has_memory)
        tiles_multiply(c.reg, c.rm, c.v);
    else
        tiles_need(false, "an instruction on tiles that this test does not know");
    return c.p;
}

/* The handler of SIGILL. Signals take long, so it goes on as long as it can. */
static void tiles_run(int signal, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    const uint8_t *p = (const uint8_t *)(uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    (void)signal, (void)info;
    tiles_need(tiles_is_code(p), "an instruction that this processor lacks, and not one on tiles");
    while (tiles_is_code(p))
        p = tiles_step(u, p);
    u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)p;
}

/* From now on, this process has tiles. */
static void tiles_emulate(void) {
    struct sigaction s = {.sa_sigaction = tiles_run, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &s, NULL);
}

#endif

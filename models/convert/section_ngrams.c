/* Values of convert sections for tables whose rows hashes of tokens choose: which tokens are alike, the primes that hashes are taken modulo, and the numbers
 * that numpy's generator drew for them. */
#include <inttypes.h>

#include "conversion.h"
#include "ggl/internal/alloc.h"

enum { MOST_PRIMES = 4096, MOST_SEED = INT32_MAX };

static bool whole_argument(arch_eval *ev, const arch_expr *e, int k, double least, double most,
                           int64_t *out) {
    const arch_expr *x = e->arg[k].value;
    const arch_value v = llm_arch_eval_expr(ev, x);
    return v.kind != VAL_FAIL && llm_arch_want_whole(ev, x, &v, least, most, out);
}

static arch_value list_of(const arch_value *item, int64_t n) {
    return (arch_value){.kind = VAL_LIST, .item = item, .n = (size_t)n};
}

/* primes(n, from): the first n primes from a number on. */
arch_value llm_arch_convert_primes(arch_eval *ev, const arch_expr *e) {
    int64_t n, from;
    if (!whole_argument(ev, e, 0, 1, MOST_PRIMES, &n) ||
        !whole_argument(ev, e, 1, 2, (double)INT32_MAX, &from))
        return ARCH_FAIL;
    arch_value *item = ggl_arena_alloc(&ev->arena, (size_t)n, sizeof *item);
    if (!item)
        return llm_arch_nomem(ev);
    for (int64_t i = 0, x = from; i < n; x++) {
        int64_t by = 2;
        while (by * by <= x && x % by != 0)
            by++;
        if (!llm_arch_step(ev, e->mark, 1 + by / 64))
            return ARCH_FAIL;
        if (by * by > x)
            item[i++] = llm_arch_number((double)x);
    }
    return list_of(item, n);
}

/* --- numbers that numpy draws --------------------------------------------------------------------- */

/* A number of 128 bits. */
typedef struct wide {
    uint64_t hi, lo;
} wide;

static wide product(uint64_t a, uint64_t b) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)mid;
    return (wide){a1 * b1 + (mid >> 32) + (other >> 32), other << 32 | (uint32_t)low};
}

static wide sum(wide a, wide b) {
    const uint64_t lo = a.lo + b.lo;
    return (wide){a.hi + b.hi + (lo < a.lo), lo};
}

/* PCG64 (O'Neill 2014), as numpy.random.default_rng has it: XSL-RR of 128 bits. */
typedef struct generator {
    wide state, step;
} generator;

static uint64_t next(generator *g) {
    const wide by = {0x2360ed051fc65da4u, 0x4385df649fccf645u};
    wide s = product(g->state.lo, by.lo);
    s.hi += g->state.hi * by.lo + g->state.lo * by.hi;
    g->state = sum(s, g->step);
    const uint64_t x = g->state.hi ^ g->state.lo;
    const unsigned turn = (unsigned)(g->state.hi >> 58);
    return x >> turn | x << (-turn & 63);
}

static uint32_t mixed(uint32_t x, uint32_t *constant, uint32_t by) {
    x ^= *constant;
    *constant *= by;
    x *= *constant;
    return x ^ x >> 16;
}

/* Of a seed below 2^32, by numpy's SeedSequence. */
static generator seeded(uint32_t seed) {
    uint32_t pool[4], word[8], c = 0x43b0d7e5u;
    for (int i = 0; i < 4; i++)
        pool[i] = mixed(i == 0 ? seed : 0, &c, 0x931e8875u);
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            if (from == to)
                continue;
            const uint32_t x =
                0xca01f9ddu * pool[to] - 0x4973f715u * mixed(pool[from], &c, 0x931e8875u);
            pool[to] = x ^ x >> 16;
        }
    c = 0x8b51f9ddu;
    for (int i = 0; i < 8; i++)
        word[i] = mixed(pool[i % 4], &c, 0x58f38dedu);
    uint64_t part[4];
    for (int i = 0; i < 4; i++)
        part[i] = (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
    generator g = {.state = {0, 0}, .step = {part[2] << 1 | part[3] >> 63, part[3] << 1 | 1}};
    next(&g);
    g.state = sum(g.state, (wide){part[0], part[1]});
    next(&g);
    return g;
}

/* A number below `most`, which is above 2^32, with equal chances (Lemire 2019). */
static uint64_t below(generator *g, uint64_t most) {
    wide m = product(next(g), most);
    while (m.lo < most && m.lo < -most % most)
        m = product(next(g), most);
    return m.hi;
}

/* drawn(seed, i, most): number i of numpy.random.default_rng(seed).integers(0, most, n). */
arch_value llm_arch_convert_drawn(arch_eval *ev, const arch_expr *e) {
    int64_t seed, i, most;
    if (!whole_argument(ev, e, 0, 0, MOST_SEED, &seed) ||
        !whole_argument(ev, e, 1, 0, MOST_PRIMES, &i) ||
        !whole_argument(ev, e, 2, 4294967297.0, 9007199254740992.0, &most) ||
        !llm_arch_step(ev, e->mark, i + 1))
        return ARCH_FAIL;
    generator g = seeded((uint32_t)seed);
    for (; i > 0; i--)
        (void)below(&g, (uint64_t)most);
    return llm_arch_number((double)below(&g, (uint64_t)most));
}

/* --- tokens that are alike ------------------------------------------------------------------------ */

/* tokens_alike(n, kinds): for each of n tokens the number of its kind, in the order in which kinds appear. */
arch_value llm_arch_convert_alike(arch_eval *ev, const arch_expr *e) {
    int64_t n, kinds, n_kinds = 0;
    if (!whole_argument(ev, e, 0, 1, (double)(1 << 24), &n) ||
        !whole_argument(ev, e, 1, 1, (double)n, &kinds) || !llm_arch_step(ev, e->mark, n))
        return ARCH_FAIL;
    arch_value *item = ggl_arena_alloc(&ev->arena, (size_t)n, sizeof *item);
    int32_t *kind = ggl_calloc((size_t)n, sizeof *kind);
    if (!item || !kind) {
        ggl_free(kind);
        return llm_arch_nomem(ev);
    }
    const char *folder = ev->conv->folder ? ev->conv->folder : ".";
    ggl_error err = {0};
    ggl_status s = !ev->conv->alike
                       ? ggl_fail(&err, GGL_UNSUPPORTED, "there is no tokenizer")
                       : ev->conv->alike(folder, ev->conv->config, n, kind, &n_kinds, &err);
    if (s == GGL_OK && n_kinds != kinds)
        s = ggl_fail(&err, GGL_FORMAT,
                     "the tokenizer's tokens are of %" PRId64 " kinds, and of %" PRId64
                     " by config.json: hashes would choose other rows",
                     n_kinds, kinds);
    for (int64_t i = 0; i < n; i++)
        item[i] = llm_arch_number(kind[i]);
    ggl_free(kind);
    return s == GGL_OK ? list_of(item, n)
                       : llm_arch_error(ev, e->mark, "%s(..): %s", e->name, err.msg);
}

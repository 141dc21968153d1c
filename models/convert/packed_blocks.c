/* Numbers of packed types as blocks of GGUF's types; see packed.h. A type's codes q are those of the source:
 *
 *     type    elements   numbers
 *     q4_0       32      d * (q - 8)
 *     q4_1       32      d * q + m
 *     q5_0       32      d * (q - 16)
 *     q5_1       32      d * q + m
 *     q8_0       32      d * q
 *     mxfp4      32      2^(e - 127) * value(q)
 *     nvfp4      64      e4m3(e) * value(q), e for each 16
 *     tq2_0     256      q - 1; d is 1
 *
 * The last two leave out what all numbers of a matrix are multiplied by, which becomes a factor beside it. *
 * d and m are f16. */
#include <math.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/types.h"
#include "packed.h"

enum { MOST_BLOCK = 256 };
enum {
    LEAST_HALF = 0x3880,
    MOST_HALF = 0x477f
}; /* 2^-14 and the largest below 2^16, as bf16: between them f16 has all of its numbers */

/* --- types of numbers -------------------------------------------------------------------------- */

/* Sums of squares, for a relative error. */
typedef struct squares {
    double error, all;
} squares;

static double relative(const squares *s) {
    return s->all > 0 ? sqrt(s->error / s->all) : 0;
}

static void add_difference(squares *s, double x, double y) {
    s->error += (x - y) * (x - y);
    s->all += x * x;
}

/* Returns the first element of one of at most LOOKED_AT pieces of n elements, which are spread over the recipe; below 0: there
 * are no more. */
static int64_t sample(const recipe *r, int64_t n, int64_t k) {
    enum { LOOKED_AT = 64 };
    const int64_t n_piece = llm_recipe_count(r) / n;
    if (k >= LOOKED_AT || k >= n_piece)
        return -1;
    return (n_piece <= LOOKED_AT ? k : k * (n_piece / LOOKED_AT)) * n;
}

/* Adds the errors in f16 and bf16 of some of the numbers. */
static void add_sample(const recipe *r, squares *half, squares *brain) {
    float x[MOST_BLOCK];
    const int64_t all = llm_recipe_count(r), n = all < 64 ? all : 64;
    for (int64_t k = 0, at; n > 0 && (at = sample(r, n, k)) >= 0; k++) {
        llm_packed_read(r, at, n, x);
        for (int64_t i = 0; i < n; i++) {
            add_difference(half, x[i], ggl_f16_to_f32(ggl_f32_to_f16(x[i])));
            add_difference(brain, x[i], ggl_bf16_to_f32(ggl_f32_to_bf16(x[i])));
        }
    }
}

ggl_type llm_packed_number_type(const recipe *r) {
    const packed_factors *f = &r->packed->factor;
    squares half = {0}, brain = {0};
    if (f->t && f->kind == FACTOR_NUMBER && (f->t->type == GGL_F32 || f->t->type == GGL_F64))
        return GGL_F32;
    add_sample(r, &half, &brain);
    return half.error <= brain.error ? GGL_F16 : GGL_BF16; /* false if one is too large for f16 */
}

double llm_packed_number_error(const recipe *r) {
    squares half = {0}, brain = {0};
    if (r->nearest == GGL_F32)
        return 0;
    add_sample(r, &half, &brain);
    return relative(r->nearest == GGL_F16 ? &half : &brain);
}

const recipe *llm_packed_of(const recipe *r) {
    const recipe *found = r->kind == RECIPE_PACKED ? r : NULL;
    for (int k = 0; k < r->n_part && !found; k++)
        found = llm_packed_of(r->part[k]);
    return found;
}

/* Calls look(ctx, r, row, column) for the first element of each group of rows and columns, until it returns false. */
static bool each_group(const recipe *r,
                       bool (*look)(void *ctx, const recipe *r, int64_t row, int64_t column),
                       void *ctx) {
    const packed_numbers *p = r->packed;
    const int64_t n_row = p->n_column > 0 ? llm_recipe_count(r) / p->n_column : 0,
                  step = p->zero.t ? 1 : p->factor.rows;
    for (int64_t row = 0; row < n_row; row += step)
        for (int64_t column = 0; column < p->n_column; column += p->group ? 1 : p->factor.columns)
            if (!look(ctx, r, row, column))
                return false;
    return true;
}

/* False for a finite number that is infinite in f16. */
static bool fits_half(float x) {
    return !isfinite(x) || isfinite(ggl_f16_to_f32(ggl_f32_to_f16(x)));
}

/* The numbers of a group are between those of the first code and of the last one. */
static bool group_fits_half(void *ctx, const recipe *r, int64_t row, int64_t column) {
    (void)ctx;
    const packed_numbers *p = r->packed;
    const int last = (1 << p->code.bits) - 1, first = p->code.is_signed ? -(last + 1) / 2 : 0,
              zero = llm_packed_zero(p, row, column);
    const float factor = llm_packed_factor(p, row, column) * p->by,
                bias = llm_packed_bias(p, row, column);
    return fits_half((float)(first - zero) * factor + bias) &&
           fits_half((float)(first + last - zero) * factor + bias);
}

void llm_packed_settle(recipe *r) {
    for (int k = 0; k < r->n_part; k++)
        llm_packed_settle(r->part[k]);
    if (r->kind == RECIPE_PACKED && r->nearest == GGL_F16 && !r->packed->value &&
        !each_group(r, group_fits_half, NULL))
        r->nearest = GGL_BF16;
}

/* --- the choice of a block type ---------------------------------------------------------------- */

typedef struct zero_range {
    int least, most;
} zero_range;

static bool add_zero(void *ctx, const recipe *r, int64_t row, int64_t column) {
    zero_range *range = ctx;
    const int zero = llm_packed_zero(r->packed, row, column);
    range->least = zero < range->least ? zero : range->least;
    range->most = zero > range->most ? zero : range->most;
    return true;
}

/* The least and the largest zero of a source. */
static zero_range zeros_of(const recipe *r) {
    zero_range range = {r->packed->zero_of_all, r->packed->zero_of_all};
    if (r->packed->zero.t) {
        range = (zero_range){INT16_MAX, INT16_MIN}; /* of no rows */
        each_group(r, add_zero, &range);
    }
    return range;
}

/* Returns the block type that has a source's codes; -1: none. */
static int block_type(const recipe *r) {
    const packed_numbers *p = r->packed;
    if (p->value == llm_packed_e2m1 && p->factor.kind == FACTOR_E8M0 && p->factor.columns == 32 &&
        p->by == 1)
        return GGL_MXFP4;
    if (p->value == llm_packed_e2m1 && p->factor.kind == FACTOR_E4M3 && p->factor.columns == 16)
        return GGL_NVFP4;
    if (!p->value && !p->factor.t && p->code.bits == 2 && p->zero_of_all == 1 && !p->zero.t)
        return GGL_TQ2_0;
    if (p->value || p->factor.kind != FACTOR_NUMBER || p->factor.divides)
        return -1;
    const zero_range zero = zeros_of(r);
    const int last = (1 << p->code.bits) - 1, first = p->code.is_signed ? -(last + 1) / 2 : 0;
    const int least = first - zero.most, most = first + last - zero.least; /* of codes less zeros */
    const bool one_zero = zero.least == zero.most && !p->bias;
    if (one_zero && least >= -8 && most <= 7)
        return GGL_Q4_0;
    if (one_zero && least >= -16 && most <= 15)
        return GGL_Q5_0;
    if (!p->code.is_signed && p->code.bits <= 4)
        return GGL_Q4_1;
    if (!p->code.is_signed && p->code.bits == 5)
        return GGL_Q5_1;
    return !p->bias && least >= -128 && most <= 127 ? GGL_Q8_0 : -1;
}

/* Returns the number of elements before a step of the recipe breaks off: blocks stay whole if it is a multiple of their size.
 * 0: they never do. */
static int64_t unbroken(const recipe *r, ggl_type type) {
    switch (r->kind) {
    case RECIPE_PACKED: /* a block of nvfp4 has several groups */
        return r->packed->group    ? 0
               : type == GGL_NVFP4 ? r->packed->n_column
                                   : r->packed->factor.columns;
    case RECIPE_RESHAPE:
        return r->ne[0];
    case RECIPE_PAIRS:
    case RECIPE_REGROUP:
    case RECIPE_ROWS:
    case RECIPE_JOIN:
        return ggl_extents(r->ne, 0, r->dim, 1);
    default:
        return 0;
    }
}

/* True if each step leaves blocks of the type whole, which is that of all sources. It is known of the source `leaf`. */
static bool has_type(const recipe *r, ggl_type type, const recipe *leaf) {
    const int64_t block = ggl_type_get((int)type)->block, run = unbroken(r, type);
    bool same = run > 0 && run % block == 0 && r->ne[0] % block == 0 &&
                (r->kind != RECIPE_PACKED || r == leaf || block_type(r) == (int)type);
    for (int k = 0; k < r->n_part && same; k++)
        same = has_type(r->part[k], type, leaf);
    return same;
}

/* The numbers of a block that stand before its codes. */
typedef struct block_head {
    float d, m;
} block_head;

static block_head head_of(const packed_numbers *p, ggl_type type, int64_t row, int64_t column) {
    block_head h = {llm_packed_factor(p, row, column) * p->by, 0};
    if (type == GGL_Q4_1 || type == GGL_Q5_1)
        h.m = p->bias ? llm_packed_bias(p, row, column)
                      : -h.d * (float)llm_packed_zero(p, row, column);
    return h;
}

typedef struct rounding {
    ggl_type type;
    bool exact, fits;
} rounding;

/* Looks at how a group's numbers are rounded to f16. They must not move by more than a 64th of a step (a 16th in q8_0), which
 * is less than what numbers in f16 or bf16 would; and not at all if the folder has them in f32. */
static bool add_rounding(void *ctx, const recipe *r, int64_t row, int64_t column) {
    rounding *x = ctx;
    const packed_factors *f = &r->packed->factor;
    const block_head h = head_of(r->packed, x->type, row, column);
    if (!isfinite(h.d) || !isfinite(h.m))
        return true; /* found and told when the block is written */
    const double d = (double)ggl_f16_to_f32(ggl_f32_to_f16(h.d)),
                 m = (double)ggl_f16_to_f32(ggl_f32_to_f16(h.m));
    const bool bytes = x->type == GGL_Q8_0,
               wide = f->t && f->t->type != GGL_F16 && f->t->type != GGL_BF16;
    const double codes = bytes ? 127 : x->type == GGL_Q5_0 || x->type == GGL_Q5_1 ? 31 : 15;
    const double moved = fabs(d - (double)h.d) * codes + fabs(m - (double)h.m);
    const double most = bytes ? 0x1p-4 : wide ? 0 : 0x1p-6;
    x->exact = x->exact && moved == 0;
    x->fits = isfinite(d) && isfinite(m) && moved <= fabs((double)h.d) * most;
    return x->fits;
}

/* True if all factors of the tensor are the same number in f16: a bf16 whose exponent f16 has, or zero. Infinities and NaN are not. */
static bool all_halves(const st_tensor *t) {
    const size_t n = t->size / sizeof(uint16_t);
    const char *data = t->data;
    unsigned beyond = 0;
    for (size_t i = 0; t->type == GGL_BF16 && i < n; i++) {
        uint16_t x;
        memcpy(&x, data + i * sizeof x, sizeof x);
        x &= 0x7fff;
        beyond |= (x != 0) & ((x < LEAST_HALF) | (x > MOST_HALF));
    }
    return t->type == GGL_F16 || (t->type == GGL_BF16 && !beyond);
}

/* True if a block's numbers are factors that f16 has, so that nothing is rounded. */
static bool is_exact(const packed_numbers *p, ggl_type type) {
    return (type == GGL_Q4_0 || type == GGL_Q5_0 || type == GGL_Q8_0) && p->by == 1 &&
           p->factor.kind == FACTOR_NUMBER && !p->factor.divides && p->factor.t &&
           all_halves(p->factor.t);
}

/* Looks at all groups of all sources. */
static void look_at(rounding *x, const recipe *r) {
    if (r->kind == RECIPE_PACKED && !is_exact(r->packed, x->type))
        each_group(r, add_rounding, x);
    for (int k = 0; k < r->n_part && x->fits; k++)
        look_at(x, r->part[k]);
}

/* Returns the relative error of some blocks of a source. */
static double block_error(const recipe *r, const ggl_type_info *type) {
    float x[MOST_BLOCK], y[MOST_BLOCK];
    unsigned char block[MOST_BLOCK];
    squares s = {0};
    for (int64_t k = 0, at; (at = sample(r, type->block, k)) >= 0; k++) {
        size_t bad = 0;
        llm_packed_read(r, at, type->block, x);
        llm_packed_pack(r, type->type, at, type->block, block, &bad);
        type->to_float(block, y, type->block);
        for (int64_t i = 0; i < type->block && bad == 0; i++)
            add_difference(&s, x[i], y[i]);
    }
    return relative(&s);
}

/* Finds the source of element `first`; returns how many elements from there on it has in order. */
static int64_t find_run(const recipe *r, int64_t first, const recipe **source, int64_t *at) {
    if (r->kind == RECIPE_PACKED) {
        *source = r;
        *at = first;
        return llm_recipe_count(r) - first;
    }
    if (r->kind == RECIPE_RESHAPE)
        return find_run(r->part[0], first, source, at);
    int64_t left = 0;
    const recipe *part = NULL;
    const int64_t from = llm_recipe_place(r, first, &part, &left);
    const int64_t run = find_run(part, from, source, at);
    return run < left ? run : left;
}

/* False if a factor of 8 bits is below 0. */
static bool no_signs(const recipe *r) {
    bool none = true;
    const packed_factors *f = r->kind == RECIPE_PACKED ? &r->packed->factor : NULL;
    for (size_t i = 0; f && f->t && none && i < f->t->size; i++)
        none = (((const unsigned char *)f->t->data)[i] & 0x80) == 0;
    for (int k = 0; k < r->n_part && none; k++)
        none = no_signs(r->part[k]);
    return none;
}

/* Finds what the numbers of each matrix are multiplied by, and stores the first `most`. False: they differ within one. */
static bool each_matrix(const recipe *r, float *out, int64_t most) {
    const int64_t all = llm_recipe_count(r),
                  size = r->n_dims > 2 ? ggl_extents(r->ne, 0, 2, 1) : all;
    float by = 1;
    for (int64_t at = 0, run; at < all; at += run) {
        const recipe *source = NULL;
        int64_t place;
        run = find_run(r, at, &source, &place);
        const int64_t left = size - at % size;
        run = run < left ? run : left;
        if (at % size == 0)
            by = source->packed->by;
        if (source->packed->by != by)
            return false;
        if (at / size < most)
            out[at / size] = by;
    }
    return true;
}

bool llm_packed_has_factors(const recipe *r, ggl_type type, float *out, int64_t n) {
    bool any = false;
    if (type != GGL_NVFP4 && type != GGL_TQ2_0)
        return false;
    for (int64_t k = 0; k < n; k++)
        out[k] = 1;
    (void)each_matrix(r, out, n); /* true, or the recipe does not have the type */
    for (int64_t k = 0; k < n; k++)
        any = any || out[k] != 1;
    return any;
}

int llm_packed_block_type(const recipe *r, double *error) {
    const recipe *leaf = llm_packed_of(r);
    const int type = leaf ? block_type(leaf) : -1;
    float factor;
    *error = 0;
    if (type < 0 || !has_type(r, (ggl_type)type, leaf))
        return -1;
    if (type == GGL_NVFP4 || type == GGL_TQ2_0) /* scales of nvfp4 have no sign */
        return no_signs(r) && (llm_recipe_count(r) == 0 || each_matrix(r, &factor, 0)) ? type : -1;
    if (type == GGL_MXFP4)
        return type;
    rounding x = {(ggl_type)type, true, true};
    look_at(&x, r);
    if (!x.fits)
        return -1;
    *error = x.exact ? 0 : block_error(leaf, ggl_type_get(type));
    return type;
}

/* --- blocks ------------------------------------------------------------------------------------ */

static unsigned char *put_half(unsigned char *to, float x, bool *bad) {
    const uint16_t h = ggl_f32_to_f16(x);
    to[0] = (unsigned char)h;
    to[1] = (unsigned char)(h >> 8);
    *bad = *bad || !isfinite(x);
    return to + 2;
}

/* Writes n codes of four bits: the first half of them in the low ones. */
static void put_nibbles(unsigned char *to, const int *q, int n) {
    for (int j = 0; j < n / 2; j++)
        to[j] = (unsigned char)((q[j] & 15) | (q[j + n / 2] & 15) << 4);
}

/* Where codes of four bits from that column on lie as they are, two in a byte; NULL: they do not. */
static const unsigned char *pairs_at(const packed_numbers *p, int64_t row, int64_t column) {
    const packed_codes *c = &p->code;
    const bool plain = c->bits == 4 && !c->down && !c->is_signed && !c->high_first &&
                       c->next == 1 && column % 2 == 0;
    return plain ? (const unsigned char *)c->t->data + row * c->line * (c->unit / 8) + column / 2
                 : NULL;
}

/* Writes n such codes: puts the bytes' halves in another order. */
static void put_pairs(unsigned char *to, const unsigned char *from, int n) {
    for (int j = 0; j < n / 4; j++) {
        const unsigned a = from[j], b = from[n / 4 + j];
        to[2 * j] = (unsigned char)((a & 15) | (b & 15) << 4);
        to[2 * j + 1] = (unsigned char)(a >> 4 | (b & 0xf0));
    }
}

/* Puts the bytes of x into the low half of each 16 bits, those of y into the high one. */
static uint64_t woven(uint32_t x, uint32_t y) {
    const uint64_t pairs = 0x0000ffff0000ffff, bytes = 0x00ff00ff00ff00ff;
    uint64_t a = x, b = y;
    a = (a | a << 16) & pairs;
    b = (b | b << 16) & pairs;
    return ((a | a << 8) & bytes) | ((b | b << 8) & bytes) << 8;
}

/* The same for 32 codes, eight bytes at once. */
static void put_32_pairs(unsigned char *to, const unsigned char *from) {
    const uint64_t low = 0x0f0f0f0f0f0f0f0f;
    uint64_t a, b;
    memcpy(&a, from, 8);
    memcpy(&b, from + 8, 8);
    const uint64_t even = (a & low) | (b & low) << 4, odd = (a >> 4 & low) | (b & ~low);
    const uint64_t first = woven((uint32_t)even, (uint32_t)odd),
                   second = woven((uint32_t)(even >> 32), (uint32_t)(odd >> 32));
    memcpy(to, &first, 8);
    memcpy(to + 8, &second, 8);
}

/* Writes n codes of four bits, as they are in the source. */
static void put_codes(const packed_numbers *p, int64_t row, int64_t column, unsigned char *to,
                      int n) {
    const unsigned char *pairs = pairs_at(p, row, column);
    int q[32];
    if (pairs) {
        put_pairs(to, pairs, n);
        return;
    }
    llm_packed_read_codes(p, row, column, n, q);
    const int zero = llm_packed_zero(p, row, column);
    for (int j = 0; j < n; j++)
        q[j] += zero;
    put_nibbles(to, q, n);
}

/* Writes a block of 64 with a float of 8 bits for each 16. */
static void put_nvfp4(const packed_numbers *p, int64_t row, int64_t column, unsigned char *to,
                      bool *bad) {
    for (int k = 0; k < 4; k++) {
        to[k] = ((const unsigned char *)
                     p->factor.t->data)[llm_packed_factor_place(p, row, column + 16 * k)];
        *bad = *bad || to[k] == 0x7f;
        put_codes(p, row, column + 16 * k, to + 4 + 8 * k, 16);
    }
}

/* Writes a block of 256 numbers -1, 0 and 1: four codes in a byte, which are 32 elements apart. */
static void put_tq2_0(const packed_numbers *p, int64_t row, int64_t column, unsigned char *to,
                      bool *bad) {
    int q[256];
    llm_packed_read_codes(p, row, column, 256, q);
    for (int j = 0; j < 64; j++) {
        const int *from = q + j / 32 * 128 + j % 32;
        to[j] = (unsigned char)((from[0] + 1) | (from[32] + 1) << 2 | (from[64] + 1) << 4 |
                                (from[96] + 1) << 6);
    }
    put_half(to + 64, 1, bad);
}

/* The head of all blocks in a group: elements from .. end - 1 of r. */
typedef struct group_head {
    const recipe *r;
    int64_t from, end;
    block_head h;
} group_head;

static group_head group_at(const recipe *r, int64_t at, ggl_type type) {
    const packed_numbers *p = r->packed;
    const int64_t row = at / p->n_column, column = at % p->n_column;
    const int64_t first = column - column % p->factor.columns, end = first + p->factor.columns;
    return (group_head){r, at - column + first,
                        at - column + (end < p->n_column ? end : p->n_column),
                        head_of(p, type, row, column)};
}

/* Writes a block. One of 32 integers: its numbers, the fifth bits of q5_0 and q5_1, the codes. */
static void put_block(const recipe *r, int64_t at, ggl_type type, group_head *g, unsigned char *to,
                      bool *bad) {
    const packed_numbers *p = r->packed;
    const int64_t row = at / p->n_column, column = at % p->n_column;
    const bool above = type == GGL_Q4_1 || type == GGL_Q5_1,
               five = type == GGL_Q5_0 || type == GGL_Q5_1;
    int q[32];
    if (type == GGL_NVFP4 || type == GGL_TQ2_0) {
        (type == GGL_NVFP4 ? put_nvfp4 : put_tq2_0)(p, row, column, to, bad);
        return;
    }
    if (type == GGL_MXFP4) {
        *to = ((const unsigned char *)p->factor.t->data)[llm_packed_factor_place(p, row, column)];
        *bad = *to == 255;
        put_codes(p, row, column, to + 1, 32);
        return;
    }
    if (g->r != r || at < g->from || at >= g->end)
        *g = group_at(r, at, type);
    to = put_half(to, g->h.d, bad);
    if (above)
        to = put_half(to, g->h.m, bad);
    if (type == GGL_Q4_1 || (type == GGL_Q4_0 && p->zero_of_all == 8 && !p->zero.t)) {
        put_codes(p, row, column, to, 32);
        return;
    }
    llm_packed_read_codes(p, row, column, 32, q);
    if (type == GGL_Q8_0) {
        for (int j = 0; j < 32; j++)
            to[j] = (unsigned char)q[j];
        return;
    }
    const int add = above ? llm_packed_zero(p, row, column) : five ? 16 : 8;
    uint32_t high = 0;
    for (int j = 0; j < 32; j++) {
        q[j] += add;
        high |= (uint32_t)(q[j] >> 4 & 1) << j;
    }
    for (int k = 0; five && k < 4; k++)
        *to++ = (unsigned char)(high >> 8 * k);
    put_nibbles(to, q, 32);
}

/* Returns whether put_line writes blocks from that element on: q4_0 whose codes are the source's, as INT4 is published mostly. */
static bool has_line(const recipe *r, int64_t at, ggl_type type) {
    const packed_numbers *p = r->packed;
    return type == GGL_Q4_0 && p->zero_of_all == 8 && !p->zero.t && !p->group &&
           pairs_at(p, at / p->n_column, at % p->n_column) != NULL;
}

/* Writes a factor as a half. Those of bf16 that f16 has need no arithmetic. */
static void put_factor(const packed_numbers *p, int64_t place, int64_t row, int64_t column,
                       unsigned char *to, bool *bad) {
    const st_tensor *t = p->factor.t;
    uint16_t x = 0;
    if (t && t->type == GGL_BF16 && p->by == 1 && !p->factor.divides &&
        p->factor.kind == FACTOR_NUMBER)
        memcpy(&x, (const char *)t->data + place * 2, sizeof x);
    if ((x & 0x7fff) < LEAST_HALF || (x & 0x7fff) > MOST_HALF) {
        (void)put_half(to, llm_packed_factor(p, row, column) * p->by, bad);
        return;
    }
    const unsigned half = (x & 0x8000u) | ((x & 0x7fffu) - (112u << 7)) << 3;
    to[0] = (unsigned char)half;
    to[1] = (unsigned char)(half >> 8);
}

/* Codes are fetched so many bytes before they are read: an eighth less time to open a folder of INT4. */
enum { AHEAD = 2048 };

/* Writes blocks up to the end of a row; returns of how many elements, n at most. */
static int64_t put_line(const recipe *r, int64_t at, int64_t n, unsigned char *to, size_t *bad) {
    const packed_numbers *p = r->packed;
    const int64_t row = at / p->n_column, first = at % p->n_column;
    const int64_t end = p->n_column - first < n ? p->n_column : first + n;
    const unsigned char *from = pairs_at(p, row, first);
    unsigned char half[2] = {0};
    bool is_bad = false;
    int64_t place = llm_packed_factor_place(p, row, first);
    for (int64_t c = first, next = first; c < end; c += 32, from += 16, to += 18) {
        if (c >= next) {
            is_bad = false;
            put_factor(p, place, row, c, half, &is_bad);
            place += p->factor.next;
            next = c == first ? c - c % p->factor.columns : next;
            next += p->factor.columns;
        }
        __builtin_prefetch(from + AHEAD);
        memcpy(to, half, 2);
        put_32_pairs(to + 2, from);
        *bad += is_bad ? 32 : 0;
    }
    return end - first;
}

void llm_packed_pack(const recipe *r, ggl_type type, int64_t first, int64_t n, void *out,
                     size_t *bad) {
    const ggl_type_info *info = ggl_type_get((int)type);
    unsigned char *to = out;
    group_head head = {0};
    while (n > 0) {
        const recipe *source = NULL;
        int64_t at = 0, run = find_run(r, first, &source, &at);
        run = run < n ? run : n;
        if (has_line(source, at, type)) {
            run = put_line(source, at, run, to, bad);
            to += run / info->block * (int64_t)info->size;
            first += run;
            n -= run;
            continue;
        }
        for (int64_t k = 0; k < run; k += info->block, to += info->size) {
            bool is_bad = false;
            put_block(source, at + k, type, &head, to, &is_bad);
            *bad += is_bad ? (size_t)info->block : 0;
        }
        first += run;
        n -= run;
    }
}

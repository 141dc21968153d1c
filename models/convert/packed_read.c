/* Reads numbers of packed types; see packed.h. */
#include "packed.h"

#include <math.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/types.h"

const float llm_packed_e2m1[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                   -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

float llm_packed_e4m3(int code) {
    return ggl_f8_e4m3_to_f32((uint8_t)code);
}

static float e8m0(int e) {
    return e == 255 ? NAN : ldexpf(1, e - 127);
}

/* --- codes ------------------------------------------------------------------------------------- */

/* Returns unit `at` of the tensor. The file's bytes are in the order of the machine's. */
static uint32_t unit_at(const packed_codes *c, int64_t at) {
    const unsigned char *data = c->t->data;
    uint32_t wide;
    uint16_t half;
    if (c->unit == 8)
        return data[at];
    if (c->unit == 16) {
        memcpy(&half, data + 2 * at, sizeof half);
        return half;
    }
    memcpy(&wide, data + 4 * at, sizeof wide);
    return c->less_one && 32 % c->bits == 0 ? wide + UINT32_MAX / ((1u << c->bits) - 1) : wide;
}

/* Where a code is: `shift` bits from the lowest one of unit i of the line. */
typedef struct code_place {
    int64_t i;
    int shift;
} code_place;

static code_place place_of(const packed_codes *c, int64_t x) {
    if (c->plane > 0)
        return (code_place){x % c->plane, (int)(x / c->plane) * c->bits};
    if (c->high_first)
        x ^= c->unit / c->bits - 1;
    if (c->order)
        x = x - x % 8 + c->order[x % 8];
    if (c->gaps) {
        const int each = c->unit / c->bits;
        return (code_place){x / each, (int)(x % each) * c->bits};
    }
    return (code_place){x * c->bits / c->unit, (int)(x * c->bits % c->unit)};
}

static int signed_code(const packed_codes *c, uint32_t u) {
    const uint32_t half = 1u << (c->bits - 1);
    if (c->less_one && 32 % c->bits != 0)
        u++;
    u &= 2 * half - 1;
    return c->is_signed ? (int)(u ^ half) - (int)half : (int)u;
}

int llm_packed_code(const packed_codes *c, int64_t row, int64_t column) {
    const code_place p = place_of(c, c->down ? row : column);
    const int64_t at = (c->down ? column : row) * c->line + p.i * c->next;
    uint32_t u = unit_at(c, at) >> p.shift;
    if (p.shift + c->bits > c->unit)
        u |= unit_at(c, at + c->next) << (c->unit - p.shift);
    return signed_code(c, u);
}

/* The same for n adjacent columns. Loads a unit once for all its codes. */
static void read_codes(const packed_codes *c, int64_t row, int64_t column, int n, int *out) {
    const bool whole = c->unit % c->bits == 0 && !c->order && c->plane == 0;
    if (c->down) { /* all have the same place in their lines */
        const code_place p = place_of(c, row);
        const int64_t at = column * c->line + p.i * c->next;
        const bool more = p.shift + c->bits > c->unit;
        for (int k = 0; k < n; k++)
            out[k] = more ? llm_packed_code(c, row, column + k)
                          : signed_code(c, unit_at(c, at + k * c->line) >> p.shift);
    } else if (whole) {
        const int each = c->unit / c->bits;
        int64_t i = column / each, at = row * c->line + i * c->next;
        for (int k = 0, from = (int)(column % each); k < n; from = 0, i++, at += c->next) {
            const uint32_t u = unit_at(c, at);
            for (; from < each && k < n; from++, k++)
                out[k] = signed_code(c, u >> (c->high_first ? each - 1 - from : from) * c->bits);
        }
    } else {
        for (int k = 0; k < n; k++)
            out[k] = llm_packed_code(c, row, column + k);
    }
}

/* --- groups ------------------------------------------------------------------------------------ */

static int64_t group_of(const packed_numbers *p, int64_t column) {
    int32_t g;
    if (!p->group)
        return column / p->factor.columns;
    memcpy(&g, (const char *)p->group->data + 4 * column, sizeof g);
    return g;
}

int64_t llm_packed_factor_place(const packed_numbers *p, int64_t row, int64_t column) {
    const int64_t line = row / p->n_row * p->n_factor_row + row % p->n_row / p->factor.rows;
    return line * p->factor.line + group_of(p, column) * p->factor.next;
}

float llm_packed_number(const st_tensor *t, int64_t i) {
    uint16_t half;
    double wide;
    float x;
    switch (t->type) {
    case GGL_F16:
    case GGL_BF16:
        memcpy(&half, (const char *)t->data + 2 * i, sizeof half);
        return t->type == GGL_F16 ? ggl_f16_to_f32(half) : ggl_bf16_to_f32(half);
    case GGL_F32:
        memcpy(&x, (const char *)t->data + 4 * i, sizeof x);
        return x;
    default:
        memcpy(&wide, (const char *)t->data + 8 * i, sizeof wide);
        return (float)wide;
    }
}

static float factor_at(const packed_factors *f, int64_t i) {
    const unsigned char *byte = f->t ? f->t->data : NULL;
    float x = 1;
    if (!f->t)
        return 1;
    switch (f->kind) {
    case FACTOR_NUMBER:
        x = llm_packed_number(f->t, i);
        break;
    case FACTOR_E8M0:
        x = e8m0(byte[i]);
        break;
    case FACTOR_E4M3:
        x = llm_packed_e4m3(byte[i]);
        break;
    case FACTOR_MAPPED: /* in this order, with each step rounded: as the program that wrote it */
        x = f->map[byte[i]] * llm_packed_number(f->inner, i / f->inner_block);
        x += f->offset;
        break;
    }
    return f->divides ? 1.0f / x : x;
}

float llm_packed_factor(const packed_numbers *p, int64_t row, int64_t column) {
    return factor_at(&p->factor, llm_packed_factor_place(p, row, column));
}

int llm_packed_zero(const packed_numbers *p, int64_t row, int64_t column) {
    return p->zero_of_all + (p->zero.t ? llm_packed_code(&p->zero, row, group_of(p, column)) : 0);
}

float llm_packed_bias(const packed_numbers *p, int64_t row, int64_t column) {
    return p->bias ? llm_packed_number(p->bias, llm_packed_factor_place(p, row, column)) : 0;
}

void llm_packed_read_codes(const packed_numbers *p, int64_t row, int64_t column, int n, int *out) {
    const int zero = llm_packed_zero(p, row, column);
    read_codes(&p->code, row, column, n, out);
    for (int k = 0; k < n && zero != 0; k++)
        out[k] -= zero;
}

/* --- numbers ----------------------------------------------------------------------------------- */

enum { PIECE = 256 };

/* Returns how many columns from this one on, at most n, are in its group. */
static int run_of(const packed_numbers *p, int64_t column, int64_t n) {
    const int64_t most = p->n_column - column < n ? p->n_column - column : n;
    int64_t k = most;
    if (!p->group) {
        k = (column / p->factor.columns + 1) * p->factor.columns - column;
    } else {
        const int64_t group = group_of(p, column);
        for (k = 1; k < most && k < PIECE && group_of(p, column + k) == group;)
            k++;
    }
    k = k < most ? k : most;
    return (int)(k < PIECE ? k : PIECE);
}

void llm_packed_read(const recipe *r, int64_t first, int64_t n, float *out) {
    const packed_numbers *p = r->packed;
    int code[PIECE];
    for (int k; n > 0; n -= k, first += k, out += k) {
        const int64_t row = first / p->n_column, column = first % p->n_column;
        k = run_of(p, column, n);
        const float factor = llm_packed_factor(p, row, column),
                    bias = llm_packed_bias(p, row, column);
        llm_packed_read_codes(p, row, column, k, code);
        for (int i = 0; i < k; i++)
            out[i] = (p->value ? p->value[code[i]] : (float)code[i]) * factor;
        for (int i = 0; i < k && p->by != 1; i++)
            out[i] *= p->by;
        for (int i = 0; i < k && p->bias; i++)
            out[i] += bias;
    }
}

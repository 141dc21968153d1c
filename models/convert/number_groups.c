#include "number_groups.h"

#include <math.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/types.h"

enum { BLOCK = LLM_GROUPS_BLOCK };

/* Returns element i of a tensor of numbers, which is not aligned. */
static float number_at(const st_tensor *t, int64_t i) {
    const ggl_type_info *type = ggl_type_get(t->type);
    uint64_t bytes;
    float x;
    memcpy(&bytes, (const char *)t->data + (size_t)i * type->size, type->size);
    type->to_float(&bytes, &x, 1);
    return x;
}

static float bias_at(const recipe *r, int64_t group) {
    return r->bias ? number_at(r->bias, group) : 0;
}

/* Returns the code of element i: a signed byte, or some bits of the stream of words. */
static int code_at(const recipe *r, int64_t i) {
    const unsigned char *data = r->source->data;
    if (!r->bias)
        return ((const signed char *)data)[i];
    const size_t bit = (size_t)i * (size_t)r->bits, at = bit / 8;
    const unsigned next = bit % 8 + (unsigned)r->bits > 8 ? data[at + 1] : 0;
    return (int)((data[at] | next << 8) >> bit % 8 & ((1u << r->bits) - 1));
}

void llm_groups_read(const recipe *r, int64_t first, int64_t n, float *out) {
    for (int64_t k; n > 0; n -= k, first += k, out += k) {
        const int64_t group = first / r->x, left = (group + 1) * r->x - first;
        const float scale = number_at(r->scale, group), bias = bias_at(r, group);
        k = left < n ? left : n;
        for (int64_t i = 0; i < k; i++)
            out[i] = r->bias ? scale * (float)code_at(r, first + i) + bias
                             : scale * (float)code_at(r, first + i);
    }
}

/* --- the choice of a type --------------------------------------------------------------------- */

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

/* Adds the errors in f16 and bf16 of the numbers in some of the groups. */
static void add_sample(const recipe *r, squares *half, squares *brain) {
    enum { LOOKED_AT = 64 };
    const int64_t n_group = llm_recipe_count(r) / r->x;
    for (int64_t k = 0; k < LOOKED_AT && k < n_group; k++) {
        const int64_t group = n_group <= LOOKED_AT ? k : k * (n_group / LOOKED_AT);
        for (int64_t i = 0; i < r->x; i++) {
            float x;
            llm_groups_read(r, group * r->x + i, 1, &x);
            add_difference(half, x, ggl_f16_to_f32(ggl_f32_to_f16(x)));
            add_difference(brain, x, ggl_bf16_to_f32(ggl_f32_to_bf16(x)));
        }
    }
}

ggl_type llm_groups_number_type(const recipe *r) {
    squares half = {0}, brain = {0};
    if (r->scale->type == GGL_F32 || r->scale->type == GGL_F64)
        return GGL_F32;
    add_sample(r, &half, &brain);
    return half.error <= brain.error ? GGL_F16 : GGL_BF16; /* false if one is too large for f16 */
}

double llm_groups_number_error(const recipe *r) {
    squares half = {0}, brain = {0};
    if (r->nearest == GGL_F32)
        return 0;
    add_sample(r, &half, &brain);
    return relative(r->nearest == GGL_F16 ? &half : &brain);
}

/* False for a finite number that is infinite in f16. */
static bool fits_half(float x) {
    return !isfinite(x) || isfinite(ggl_f16_to_f32(ggl_f32_to_f16(x)));
}

void llm_groups_settle(recipe *r) {
    for (int k = 0; k < r->n_part; k++)
        llm_groups_settle(r->part[k]);
    if (r->kind != RECIPE_GROUPS || r->nearest != GGL_F16)
        return;
    /* the numbers of a group are between those of the first code and of the last one */
    const float last = (float)((1u << r->bits) - 1);
    const int64_t n = llm_recipe_count(r) / r->x;
    for (int64_t k = 0; k < n && r->nearest == GGL_F16; k++) {
        const float bias = bias_at(r, k);
        if (!fits_half(bias) || !fits_half(number_at(r->scale, k) * last + bias))
            r->nearest = GGL_BF16;
    }
}

const recipe *llm_groups_of(const recipe *r) {
    const recipe *found = r->kind == RECIPE_GROUPS ? r : NULL;
    for (int k = 0; k < r->n_part && !found; k++)
        found = llm_groups_of(r->part[k]);
    return found;
}

/* Returns the block type whose codes are those of a source; -1: none. */
static int block_type(const recipe *r) {
    if (!r->bias)
        return GGL_Q8_0;
    return r->bits <= 4 ? GGL_Q4_1 : r->bits == 5 ? GGL_Q5_1 : -1;
}

/* Returns the number of elements before a step of the recipe breaks off: blocks stay whole if it is a
 * multiple of their size. 0: they never do. */
static int64_t unbroken(const recipe *r) {
    const int64_t inner = ggl_extents(r->ne, 0, r->dim, 1);
    switch (r->kind) {
    case RECIPE_GROUPS:
        return r->x;
    case RECIPE_RESHAPE:
        return r->ne[0];
    case RECIPE_PAIRS:
    case RECIPE_REGROUP:
    case RECIPE_ROWS:
    case RECIPE_JOIN:
        return inner;
    default:
        return 0;
    }
}

/* Returns the block type of all sources, if each step leaves blocks whole; else -1. */
static int common_type(const recipe *r) {
    const int64_t run = unbroken(r);
    if (run == 0 || run % BLOCK != 0 || r->ne[0] % BLOCK != 0)
        return -1;
    if (r->kind == RECIPE_GROUPS)
        return block_type(r);
    const int type = common_type(r->part[0]);
    for (int k = 1; k < r->n_part; k++)
        if (common_type(r->part[k]) != type)
            return -1;
    return type;
}

/* Adds the errors of a tensor's numbers in f16. False: one of them is infinite there. */
static bool add_halves(squares *s, const st_tensor *t, int64_t n) {
    bool finite = true;
    for (int64_t i = 0; i < n && finite; i++) {
        const float x = number_at(t, i), y = ggl_f16_to_f32(ggl_f32_to_f16(x));
        finite = isfinite(y) || !isfinite(x);
        if (isfinite(x) && finite)
            add_difference(s, x, y);
    }
    return finite;
}

/* Adds the errors of all scales and biases in f16. False: they are too large for it. */
static bool add_scales(squares *s, const recipe *r) {
    bool fits = true;
    if (r->kind == RECIPE_GROUPS) {
        const int64_t n = llm_recipe_count(r) / r->x;
        return r->scale->type == GGL_F16 ||
               (add_halves(s, r->scale, n) && (!r->bias || add_halves(s, r->bias, n)));
    }
    for (int k = 0; k < r->n_part && fits; k++)
        fits = add_scales(s, r->part[k]);
    return fits;
}

int llm_groups_block_type(const recipe *r, double *error) {
    squares s = {0};
    *error = 0;
    const int type = llm_groups_of(r) ? common_type(r) : -1;
    if (type < 0 || !add_scales(&s, r))
        return -1;
    *error = relative(&s);
    /* a rounded scale of q8_0 is as good as numbers in f16, which have 2^-11; others must be exact */
    return *error <= (type == GGL_Q8_0 ? 0x1p-11 : 0) ? type : -1;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* Finds the source of element `first`; returns how many elements from there on it has in order. */
static int64_t find_run(const recipe *r, int64_t first, const recipe **source, int64_t *at) {
    if (r->kind == RECIPE_GROUPS) {
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

static void put_half(unsigned char *to, float x, bool *bad) {
    const uint16_t h = ggl_f32_to_f16(x);
    to[0] = (unsigned char)h;
    to[1] = (unsigned char)(h >> 8);
    *bad = *bad || !isfinite(x);
}

/* Writes a block: d, of types with a bias m, the high bits of q5_1, the codes. */
static void put_block(const recipe *r, int64_t at, ggl_type type, unsigned char *to, bool *bad) {
    const int64_t group = at / r->x;
    uint32_t high = 0;
    put_half(to, number_at(r->scale, group), bad);
    to += 2;
    if (type == GGL_Q8_0) {
        memcpy(to, (const char *)r->source->data + at, BLOCK);
        return;
    }
    put_half(to, bias_at(r, group), bad);
    to += 2;
    unsigned char *low = type == GGL_Q5_1 ? to + 4 : to;
    for (int j = 0; j < BLOCK / 2; j++) {
        const uint32_t a = (uint32_t)code_at(r, at + j),
                       b = (uint32_t)code_at(r, at + j + BLOCK / 2);
        low[j] = (unsigned char)((a & 15) | (b & 15) << 4);
        high |= a >> 4 << j | b >> 4 << (j + BLOCK / 2);
    }
    for (int k = 0; type == GGL_Q5_1 && k < 4; k++)
        to[k] = (unsigned char)(high >> 8 * k);
}

void llm_groups_pack(const recipe *r, ggl_type type, int64_t first, int64_t n, void *out,
                     size_t *bad) {
    const size_t size = ggl_type_get((int)type)->size;
    unsigned char *to = out;
    while (n > 0) {
        const recipe *source = NULL;
        int64_t at = 0, run = find_run(r, first, &source, &at);
        run = run < n ? run : n;
        for (int64_t k = 0; k < run; k += BLOCK, to += size) {
            bool is_bad = false;
            put_block(source, at + k, type, to, &is_bad);
            *bad += is_bad ? BLOCK : 0;
        }
        first += run;
        n -= run;
    }
}

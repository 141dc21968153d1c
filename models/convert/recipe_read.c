/* Reads the numbers of a recipe; see recipe.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/math.h"
#include "packed.h"

/* Converts numbers of a source to f32, through a buffer, because the file's bytes are not
 * aligned. */
static void read_source(const st_tensor *t, int64_t first, int64_t n, float *out) {
    const ggl_type_info *type = ggl_type_get(t->type);
    const int64_t block = type->block; /* of single numbers: 1 */
    union {
        double align;
        char bytes[4096];
    } buf;
    float whole[256]; /* a block of which only a part is wanted */
    const int64_t most = (int64_t)(sizeof buf / type->size);
    for (int64_t k; n > 0; n -= k, first += k, out += k) {
        const int64_t at = first % block, n_block = at > 0 || n < block ? 1
                                                    : n / block < most  ? n / block
                                                                        : most;
        const bool part = at > 0 || n < block;
        memcpy(buf.bytes, (const char *)t->data + (size_t)(first / block) * type->size,
               (size_t)n_block * type->size);
        type->to_float(buf.bytes, part ? whole : out, n_block * block);
        k = !part ? n_block * block : block - at < n ? block - at : n;
        if (part)
            memcpy(out, whole + at, (size_t)k * sizeof *out);
    }
}

/* --- other sources ----------------------------------------------------------------------------- */

/* Reads integers, e.g. indices of experts, each of them plus its index times `step`. They pass through f32, which holds
 * them exactly up to 2^24. */
static ggl_status read_whole(const st_tensor *t, int64_t step, int64_t first, int64_t n, float *out,
                             ggl_error *err) {
    const bool wide = strcmp(t->dtype, "I64") == 0;
    for (int64_t i = 0; i < n; i++) {
        const char *from = (const char *)t->data + (size_t)(first + i) * (wide ? 8 : 4);
        int64_t x = 0;
        int32_t narrow = 0;
        memcpy(wide ? (void *)&x : (void *)&narrow, from, wide ? 8 : 4);
        x = wide ? x : narrow;
        if (x > 1 << 24 || x < -(1 << 24))
            return ggl_fail(err, GGL_LIMIT,
                            "tensor %s has the number %" PRId64 "; at most %d is allowed",
                            t->name.s, x, 1 << 24);
        x += step * (first + i);
        if (step && (x < 0 || x > 1 << 24))
            return ggl_fail(err, GGL_FORMAT,
                            "tensor %s: element %" PRId64 " stands for the number %" PRId64
                            "; 0 to %d is allowed",
                            t->name.s, first + i, x, 1 << 24);
        out[i] = (float)x;
    }
    return GGL_OK;
}

/* --- rearrangements --------------------------------------------------------------------------- */

/* A transposition of dimensions a < b as a rearrangement of 4 dimensions: [inner, n_b, between,
 * n_a] from [inner, n_a, between, n_b]. Dimensions outside of b are separate blocks. */
typedef struct exchange {
    int64_t inner, a, between, b;
} exchange;

static exchange exchange_of(const recipe *r) {
    const int b = (int)r->x;
    return (exchange){ggl_extents(r->ne, 0, r->dim, 1), r->ne[b],
                      ggl_extents(r->ne, r->dim + 1, b, 1), r->ne[r->dim]};
}

static void exchange_tile(const exchange *x, const float *from, float *to, int64_t i0, int64_t j0) {
    for (int64_t i = i0; i < x->a && i < i0 + 16; i++)
        for (int64_t m = 0; m < x->between; m++)
            for (int64_t j = j0; j < x->b && j < j0 + 16; j++) {
                const float *f = from + x->inner * (i + x->a * (m + x->between * j));
                float *t = to + x->inner * (j + x->b * (m + x->between * i));
                if (x->inner == 1)
                    *t = *f;
                else
                    memcpy(t, f, (size_t)x->inner * sizeof *t);
            }
}

static int64_t exchange_count(const exchange *x) {
    return x->inner * x->a * x->between * x->b;
}

/* Transposes block m into r->held, in tiles that fit the cache. Holds one block at a time,
 * because a tensor may have many experts. */
static ggl_status hold_transposed(recipe *r, int64_t m, ggl_error *err) {
    const exchange of = exchange_of(r);
    const int64_t n = exchange_count(&of);
    float *x = ggl_calloc((size_t)n, sizeof *x);
    if (!r->held)
        r->held = ggl_calloc((size_t)n, sizeof *x);
    ggl_status s =
        x && r->held
            ? llm_recipe_read(r->part[0], m * n, n, x, err)
            : ggl_fail(err, GGL_NOMEM, "out of memory for transposing %lld numbers", (long long)n);
    for (int64_t i0 = 0; s == GGL_OK && i0 < of.a; i0 += 16)
        for (int64_t j0 = 0; j0 < of.b; j0 += 16)
            exchange_tile(&of, x, r->held, i0, j0);
    r->matrix = s == GGL_OK ? m + 1 : 0;
    ggl_free(x);
    return s;
}

static ggl_status read_transposed(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    const exchange of = exchange_of(r);
    const int64_t size = exchange_count(&of);
    ggl_status s = GGL_OK;
    for (int64_t k; s == GGL_OK && n > 0; n -= k) {
        const int64_t m = first / size, at = first % size;
        k = size - at < n ? size - at : n;
        if (r->matrix != m + 1)
            s = hold_transposed(r, m, err);
        if (s == GGL_OK)
            memcpy(out, r->held + at, (size_t)k * sizeof *out);
        first += k;
        out += k;
    }
    return s;
}

static ggl_status read_rows(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    ggl_status s = GGL_OK;
    const int64_t size = ggl_extents(r->ne, 0, r->dim, 1); /* of a row */
    for (int64_t k; s == GGL_OK && n > 0; n -= k) {
        int64_t row = first / size, at = first % size, from = llm_recipe_row(r, row, size) + at;
        k = size - at;
        /* extends the run over rows that stay adjacent */
        while (k < n && llm_recipe_row(r, (first + k) / size, size) == from + k)
            k += size;
        k = k < n ? k : n;
        s = llm_recipe_read(r->part[0], from, k, out, err);
        first += k;
        out += k;
    }
    return s;
}

/* Reads from parts joined along `dim`: for each index of the outer dimensions, one block of each
 * part. */
static ggl_status read_joined(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    const int64_t inner = ggl_extents(r->ne, 0, r->dim, 1), all = inner * r->ne[r->dim];
    int64_t turn = first / all, at = first % all;
    ggl_status s = GGL_OK;
    for (int i = 0; s == GGL_OK && n > 0; i = i + 1 < r->n_part ? i + 1 : 0) {
        const int64_t block = inner * r->part[i]->ne[r->dim];
        if (at < block) {
            const int64_t k = block - at < n ? block - at : n, from = turn * block + at;
            s = llm_recipe_read(r->part[i], from, k, out, err);
            if (from + k == llm_recipe_count(r->part[i]))
                llm_recipe_drop(r->part[i]);
            out += k;
            n -= k;
            at = 0;
        } else {
            at -= block;
        }
        turn += i + 1 == r->n_part;
    }
    return s;
}

/* Reads rows that numbers choose. */
static ggl_status read_picked(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    const int64_t row = r->ne[0], n_rows = r->part[0]->ne[r->part[0]->n_dims - 1];
    ggl_status s = GGL_OK;
    while (n > 0 && s == GGL_OK) {
        const int64_t at = first % row, some = row - at < n ? row - at : n;
        float chosen;
        s = llm_recipe_read(r->part[1], first / row, 1, &chosen, err);
        if (s == GGL_OK && !(chosen >= 0 && chosen < (float)n_rows))
            s = ggl_fail(err, GGL_FORMAT, "row %.0f of %" PRId64 " is chosen", (double)chosen,
                         n_rows);
        if (s == GGL_OK)
            s = llm_recipe_read(r->part[0], (int64_t)chosen * row + at, some, out, err);
        first += some;
        out += some;
        n -= some;
    }
    return s;
}

/* Returns what a recipe of two parts makes of a number of each. */
static float joined(recipe_kind kind, float a, float b) {
    return kind == RECIPE_TIMES ? a * b : kind == RECIPE_PLUS ? a + b : a - b;
}

/* Reads what two parts' numbers make. */
static ggl_status read_joint(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    enum { PIECE = 256 };
    float other[PIECE];
    ggl_status s = GGL_OK;
    while (n > 0 && s == GGL_OK) {
        const int64_t some = n < PIECE ? n : PIECE;
        s = llm_recipe_read(r->part[0], first, some, out, err);
        if (s == GGL_OK)
            s = llm_recipe_read(r->part[1], first, some, other, err);
        for (int64_t i = 0; i < some && s == GGL_OK; i++)
            out[i] = joined(r->kind, out[i], other[i]);
        first += some;
        out += some;
        n -= some;
    }
    return s;
}

/* Finds the number s of a TERNARY: the mean of the part's absolute numbers, at least 1e-5 (BitNet b1.58, Ma et al. 2024).
 * The published programs have it in f32. */
static ggl_status find_mean(recipe *r, ggl_error *err) {
    enum { PIECE = 1024 };
    float x[PIECE];
    const int64_t n = llm_recipe_count(r);
    double sum = 0;
    ggl_status s = GGL_OK;
    for (int64_t at = 0; at < n && s == GGL_OK; at += PIECE) {
        const int64_t some = n - at < PIECE ? n - at : PIECE;
        s = llm_recipe_read(r->part[0], at, some, x, err);
        for (int64_t i = 0; i < some && s == GGL_OK; i++)
            sum += fabs((double)x[i]);
    }
    r->number = (double)(float)(sum / (double)n);
    r->number = r->number < 1e-5 ? (double)1e-5f : r->number;
    r->matrix = s == GGL_OK;
    return s;
}

/* Returns x as a number of the recipe's type, which is that of the published programs' weights. */
static float in_type_of(const recipe *r, float x) {
    const ggl_type_info *t = ggl_type_get(llm_recipe_type(r));
    float of_type = x;
    t->from_float(&x, &of_type, 1);
    t->to_float(&of_type, &x, 1);
    return x;
}

/* Reads -s, 0 or s: x / s rounded, to even if between, within -1 and 1. */
static ggl_status read_ternary(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    ggl_status s = r->matrix ? GGL_OK : find_mean(r, err);
    if (s == GGL_OK)
        s = llm_recipe_read(r->part[0], first, n, out, err);
    const float up = 1 / (float)r->number, level = in_type_of(r, 1 / up);
    for (int64_t i = 0; i < n && s == GGL_OK; i++) {
        const float x = out[i] * up;
        out[i] = x > 0.5f ? level : x < -0.5f ? -level : x != x ? x : 0.0f;
    }
    return s;
}

/* --- all kinds -------------------------------------------------------------------------------- */

/* One number of a recipe that changes each by itself. */
static double changed(const recipe *r, double x) {
    switch (r->kind) {
    case RECIPE_EXP:
        return ggl_exp(x);
    case RECIPE_SOFTPLUS:
        return (x > 0 ? x : 0) + ggl_log(1 + ggl_exp(x > 0 ? -x : x));
    case RECIPE_ADD:
        return x + r->number;
    case RECIPE_POW:
        return ggl_pow(x, r->number);
    case RECIPE_MAX:
        return x > r->number || x != x ? x : r->number;
    case RECIPE_MIN:
        return x < r->number || x != x ? x : r->number;
    default:
        return x * r->number;
    }
}

ggl_status llm_recipe_read(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    ggl_status s = GGL_OK;
    switch (r->kind) {
    case RECIPE_SOURCE:
        read_source(r->source, first, n, out);
        return GGL_OK;
    case RECIPE_PACKED:
        llm_packed_read(r, first, n, out);
        return GGL_OK;
    case RECIPE_BYTES:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)((const int8_t *)r->source->data)[first + i];
        return GGL_OK;
    case RECIPE_WHOLE:
        return read_whole(r->source, 0, first, n, out, err);
    case RECIPE_OFFSETS:
        return read_whole(r->source, 1, first, n, out, err);
    case RECIPE_RESHAPE:
        return llm_recipe_read(r->part[0], first, n, out, err);
    case RECIPE_TRANSPOSE:
        return read_transposed(r, first, n, out, err);
    case RECIPE_HELD:
        memcpy(out, r->held + first, (size_t)n * sizeof *out);
        return GGL_OK;
    case RECIPE_PAIRS:
    case RECIPE_REGROUP:
    case RECIPE_ROWS:
        return read_rows(r, first, n, out, err);
    case RECIPE_PICK:
        return read_picked(r, first, n, out, err);
    case RECIPE_JOIN:
        return read_joined(r, first, n, out, err);
    case RECIPE_TERNARY:
        return read_ternary(r, first, n, out, err);
    case RECIPE_TIMES:
    case RECIPE_PLUS:
    case RECIPE_MINUS:
        return read_joint(r, first, n, out, err);
    default:
        break;
    }
    s = llm_recipe_read(r->part[0], first, n, out, err);
    for (int64_t i = 0; s == GGL_OK && i < n; i++)
        out[i] = (float)changed(r, out[i]);
    return s;
}

void llm_recipe_drop(recipe *r) {
    if (r->kind == RECIPE_TRANSPOSE) {
        ggl_free(r->held);
        r->held = NULL;
        r->matrix = 0;
    }
    for (int k = 0; k < r->n_part; k++)
        llm_recipe_drop(r->part[k]);
}

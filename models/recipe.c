#include "recipe.h"

#include <string.h>

#include "ggl/graph.h"
#include "ggl/math.h"

int64_t recipe_count(const recipe *r) {
    return ggl_extents(r->ne, 0, r->n_dims, 1);
}

ggl_type recipe_type(const recipe *r) {
    ggl_type type = GGL_F32;
    if (r->kind == RECIPE_SOURCE)
        return r->source->type == GGL_F16 || r->source->type == GGL_BF16 ? (ggl_type)r->source->type : GGL_F32;
    if (r->kind == RECIPE_HELD || r->kind == RECIPE_EXP || r->kind == RECIPE_ADD || r->kind == RECIPE_MUL)
        return GGL_F32;
    for (int k = 0; k < r->n_part; k++) {
        ggl_type t = recipe_type(r->part[k]);
        if (k > 0 && t != type)
            return GGL_F32;
        type = t;
    }
    return type;
}

/* The file's bytes are not aligned: they go through a buffer. */
static void read_source(const st_tensor *t, int64_t first, int64_t n, float *out) {
    const ggl_type_info *type = ggl_type_get(t->type);
    union {
        double align;
        char bytes[4096];
    } buf;
    const char *from = (const char *)t->data + (size_t)first * type->size;
    int64_t most = (int64_t)(sizeof buf / type->size);
    for (int64_t k; n > 0; n -= k) {
        k = n < most ? n : most;
        memcpy(buf.bytes, from, (size_t)k * type->size);
        type->to_float(buf.bytes, out, k);
        from += (size_t)k * type->size;
        out += k;
    }
}

/* Holds matrix m of r, transposed: held[j, i] = x[i, j], in squares that fit the cache. One matrix at a time: of experts there
 * are many. */
static ggl_status hold_transposed(recipe *r, int64_t m, ggl_error *err) {
    const int64_t a = r->ne[0], b = r->ne[1], n = ggl_extents(r->ne, 0, 2, 1);
    float *x = ggl_calloc((size_t)n, sizeof *x);
    if (!r->held)
        r->held = ggl_calloc((size_t)n, sizeof *x);
    ggl_status s =
        x && r->held
            ? recipe_read(r->part[0], m * n, n, x, err)
            : ggl_fail(err, GGL_NOMEM, "out of memory for transposing %lld numbers", (long long)n);
    for (int64_t i0 = 0; s == GGL_OK && i0 < a; i0 += 16)
        for (int64_t j0 = 0; j0 < b; j0 += 16)
            for (int64_t i = i0; i < a && i < i0 + 16; i++)
                for (int64_t j = j0; j < b && j < j0 + 16; j++)
                    r->held[j * a + i] = x[i * b + j];
    r->matrix = s == GGL_OK ? m + 1 : 0;
    ggl_free(x);
    return s;
}

static ggl_status read_transposed(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    const int64_t size = ggl_extents(r->ne, 0, 2, 1);
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

/* Which row of the part is this row. */
static int64_t row_of(const recipe *r, int64_t row) {
    int64_t n = r->ne[r->n_dims - 1];
    if (r->kind == RECIPE_ROWS)
        return row + r->x;
    if (r->kind == RECIPE_PAIRS) {
        int64_t d = n / r->x, at = row % d;
        return row - at + at % 2 * (d / 2) + at / 2;
    }
    int64_t rest = n / (r->x * r->y), j = row / rest / r->x, i = row / rest % r->x;
    return (i * r->y + j) * rest + row % rest;
}

static ggl_status read_rows(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    ggl_status s = GGL_OK;
    int64_t size = 1; /* of a row */
    for (int d = 0; d < r->n_dims - 1; d++)
        size *= r->ne[d];
    for (int64_t k; s == GGL_OK && n > 0; n -= k) {
        int64_t row = first / size, at = first % size, from = row_of(r, row) * size + at;
        k = size - at;
        while (k < n && row_of(r, (first + k) / size) * size == from + k) /* rows that stay neighbours */
            k += size;
        k = k < n ? k : n;
        s = recipe_read(r->part[0], from, k, out, err);
        first += k;
        out += k;
    }
    return s;
}

static ggl_status read_joined(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (int i = 0; i < r->n_part && s == GGL_OK && n > 0; i++) {
        int64_t count = recipe_count(r->part[i]), k = count - first;
        if (k > 0) {
            k = k < n ? k : n;
            s = recipe_read(r->part[i], first, k, out, err);
            if (first + k == count)
                recipe_drop(r->part[i]);
            out += k;
            n -= k;
            first += k;
        }
        first -= count;
    }
    return s;
}

ggl_status recipe_read(recipe *r, int64_t first, int64_t n, float *out, ggl_error *err) {
    ggl_status s = GGL_OK;
    switch (r->kind) {
    case RECIPE_SOURCE:
        read_source(r->source, first, n, out);
        return GGL_OK;
    case RECIPE_TRANSPOSE:
        return read_transposed(r, first, n, out, err);
    case RECIPE_HELD:
        memcpy(out, r->held + first, (size_t)n * sizeof *out);
        return GGL_OK;
    case RECIPE_PAIRS:
    case RECIPE_REGROUP:
    case RECIPE_ROWS:
        return read_rows(r, first, n, out, err);
    case RECIPE_JOIN:
        return read_joined(r, first, n, out, err);
    default:
        break;
    }
    s = recipe_read(r->part[0], first, n, out, err);
    for (int64_t i = 0; s == GGL_OK && i < n; i++)
        out[i] = (float)(r->kind == RECIPE_EXP   ? ggl_exp(out[i])
                         : r->kind == RECIPE_ADD ? out[i] + r->number
                                                 : out[i] * r->number);
    return s;
}

void recipe_drop(recipe *r) {
    if (r->kind == RECIPE_TRANSPOSE) {
        ggl_free(r->held);
        r->held = NULL;
        r->matrix = 0;
    }
    for (int k = 0; k < r->n_part; k++)
        recipe_drop(r->part[k]);
}

#include "encode.h"
#include "ggl/internal/types.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/work_share.h"
#include "ggl/alloc.h"
#include "ggl/graph.h"

/* Most elements of a piece: whole blocks of any type. A tensor is one sequence of blocks, so that a
 * piece need not consist of rows, unless there are directions. */
#define PIECE ((int64_t)QUANT_MAX_ROW)
enum { WAVE = 32 }; /* pieces between two writes */

struct quant_encoder {
    int n_threads;
    bool search;
    /* [n_threads][PIECE]: the source, the result read back, and the importance of each element */
    float *x, *y, *w;
    uint8_t *out; /* [WAVE][bytes of a piece], at most 4 bytes per element */
    quant_piece result[WAVE];
    /* the current wave */
    const ggl_type_info *from, *type;
    const uint8_t *source;
    quant_importance of;     /* mean NULL: none */
    int64_t piece;           /* elements of a piece */
    int64_t n_col, n_matrix; /* elements of a row, and of a matrix */
    int64_t first, n;        /* the wave's first element; the number of elements of the tensor */
};

void llm_quant_error_add(quant_error *to, const quant_error *e) {
    to->n += e->n;
    to->sum2 += e->sum2;
    to->error2 += e->error2;
    to->max = e->max > to->max ? e->max : to->max;
}

double llm_quant_error_rms(const quant_error *e) {
    return e->n > 0 ? sqrt(e->error2 / e->n) : 0;
}

double llm_quant_error_relative(const quant_error *e) {
    return e->sum2 > 0 ? sqrt(e->error2 / e->sum2) : 0;
}

quant_encoder *llm_quant_encoder_new(int n_threads, bool search) {
    quant_encoder *e = ggl_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->n_threads = n_threads;
    e->search = search;
    e->x = ggl_calloc((size_t)n_threads * PIECE, sizeof *e->x);
    e->y = ggl_calloc((size_t)n_threads * PIECE, sizeof *e->y);
    e->w = ggl_calloc((size_t)n_threads * PIECE, sizeof *e->w);
    e->out = ggl_calloc((size_t)WAVE * PIECE, 4);
    if (!e->x || !e->y || !e->w || !e->out) {
        llm_quant_encoder_free(e);
        return NULL;
    }
    return e;
}

void llm_quant_encoder_free(quant_encoder *e) {
    if (!e)
        return;
    ggl_free(e->x);
    ggl_free(e->y);
    ggl_free(e->w);
    ggl_free(e->out);
    ggl_free(e);
}

void llm_quant_importance_fini(quant_importance *of) {
    ggl_free(of->mean);
    ggl_free(of->dir);
    ggl_free(of->own);
    ggl_free(of->power);
    *of = (quant_importance){0};
}

static int64_t piece_size(const quant_encoder *e, int64_t first) {
    return e->n - first < e->piece ? e->n - first : e->piece;
}

/* Sets w[n] to the importance of the elements from `first` on. */
static void put_importance(const quant_encoder *e, int64_t first, int64_t n, float *w) {
    for (int64_t i = first, row; i < first + n; i += row) {
        const int64_t col = i % e->n_col;
        row = e->n_col - col < first + n - i ? e->n_col - col : first + n - i;
        memcpy(w + (i - first), e->of.mean + i / e->n_matrix * e->n_col + col,
               (size_t)row * sizeof *w);
    }
}

/* Adds the sums of n elements x and of their differences from y. Four sums of each kind are under
 * way, as one would wait for each addition. */
static void add_errors(quant_error *e, const float *x, const float *y, int64_t n) {
    enum { AT_ONCE = 4 };
    double sum2[AT_ONCE] = {0}, error2[AT_ONCE] = {0}, max[AT_ONCE] = {0};
    int64_t k = 0;
    for (; k + AT_ONCE <= n; k += AT_ONCE)
        for (int i = 0; i < AT_ONCE; i++) {
            const double a = (double)x[k + i], d = fabs(a - (double)y[k + i]);
            sum2[i] += a * a;
            error2[i] += d * d;
            max[i] = d > max[i] ? d : max[i];
        }
    for (; k < n; k++) {
        const double a = (double)x[k], d = fabs(a - (double)y[k]);
        sum2[0] += a * a;
        error2[0] += d * d;
        max[0] = d > max[0] ? d : max[0];
    }
    for (int i = 0; i < AT_ONCE; i++)
        llm_quant_error_add(e, &(quant_error){.sum2 = sum2[i], .error2 = error2[i], .max = max[i]});
    e->n += (double)n;
}

/* Finds the first element without a finite error. If a whole block is lost, that is the element
 * which is the cause: one that is not a number, else the largest. */
static void find_bad(const ggl_type_info *type, const float *x, const float *y, int64_t first,
                     int64_t n, quant_piece *r) {
    int64_t k = 0;
    while (k < n && isfinite((double)x[k] - (double)y[k]))
        k++;
    if (k == n)
        return;
    int64_t worst = k, block = type->block, start = k - k % block;
    for (int64_t j = start; j < start + block && j < n; j++)
        if (isfinite(x[worst]) && (!isfinite(x[j]) || fabsf(x[j]) > fabsf(x[worst])))
            worst = j;
    r->bad = first + worst;
    r->value = x[worst];
}

void llm_quant_from_float(const ggl_type_info *type, const float *x, const ggl_importance *of,
                          bool search, void *out, int64_t n) {
    if (type->from_float_weighted && (of || search || !type->from_float))
        type->from_float_weighted(x, of, out, n);
    else
        type->from_float(x, out, n);
}

void llm_quant_encode_piece(const ggl_type_info *type, const float *x, const ggl_importance *of,
                            bool search, int64_t first, int64_t n, void *out, float *y,
                            quant_piece *r) {
    llm_quant_from_float(type, x, of, search, out, n);
    type->to_float(out, y, n);
    *r = (quant_piece){.bad = -1};
    add_errors(&r->error, x, y, n);
    if (!isfinite(r->error.error2))
        find_bad(type, x, y, first, n, r);
}

/* Converts a piece of a wave. */
static void encode_piece(void *ctx, size_t i, int thread) {
    quant_encoder *e = ctx;
    float *x = e->x + (size_t)thread * PIECE, *y = e->y + (size_t)thread * PIECE;
    int64_t first = e->first + (int64_t)i * e->piece, n = piece_size(e, first);
    uint8_t *out = e->out + i * ggl_row_size(e->type->type, e->piece);
    float *w = e->w + (size_t)thread * PIECE;
    const ggl_importance of = {w, e->of.dir, e->of.own, e->of.power, e->n_col, e->of.n_dir};
    ggl_to_float(e->from, e->source, e->n_col, first, n, x);
    if (e->of.mean)
        put_importance(e, first, n, w);
    llm_quant_encode_piece(e->type, x, e->of.mean ? &of : NULL, e->search, first, n, out, y,
                           &e->result[i]);
}

ggl_status llm_quant_check_piece(const ggl_type_info *type, const quant_piece *r, ggl_error *err) {
    if (r->bad < 0)
        return GGL_OK;
    if (!isfinite(r->value))
        return ggl_fail(err, GGL_FORMAT,
                        "element %" PRId64 " is %s, which is not allowed in weights", r->bad,
                        isnan(r->value) ? "NaN" : "infinite");
    return ggl_fail(err, GGL_LIMIT, "element %" PRId64 ", %g, is too large for %s", r->bad,
                    (double)r->value, type->name);
}

static ggl_status stopped(ggl_error *err) {
    return ggl_fail(err, GGL_IO, "interrupted");
}

ggl_status llm_quant_encode(quant_encoder *e, const ggl_gguf_tensor *t, const ggl_type_info *type,
                            const quant_importance *of, ggl_gguf_sink *to, quant_error *error,
                            llm_quant_more *more, void *ctx, ggl_error *err) {
    ggl_status s = GGL_OK;
    e->from = ggl_type_get((int)t->type);
    e->type = type;
    e->source = t->data;
    e->of = of ? *of : (quant_importance){0};
    e->n_col = t->ne[0];
    e->piece = PIECE;
    if (e->of.dir)
        e->piece -= PIECE % e->n_col;
    e->n_matrix = ggl_extents(t->ne, 0, 2, 1);
    e->n = 1;
    for (int d = 0; d < t->n_dims; d++)
        e->n *= t->ne[d];
    *error = (quant_error){0};
    const int64_t wave = WAVE * e->piece;
    for (e->first = 0; s == GGL_OK && e->first < e->n; e->first += wave) {
        int64_t left = e->n - e->first, n = left < wave ? left : wave;
        size_t n_pieces = (size_t)((n + e->piece - 1) / e->piece);
        llm_work_share(e->n_threads, n_pieces, encode_piece, e);
        for (size_t i = 0; s == GGL_OK && i < n_pieces; i++) {
            s = llm_quant_check_piece(type, &e->result[i], err);
            llm_quant_error_add(error, &e->result[i].error);
        }
        if (s == GGL_OK)
            s = ggl_gguf_sink_write(to, e->out, ggl_row_size(type->type, n), err);
        const size_t at = ggl_bytes_before(e->from, e->n_col, e->first),
                     end = ggl_bytes_before(e->from, e->n_col, e->first + n);
        if (s == GGL_OK && !more(ctx, e->source + at, end - at))
            s = stopped(err);
    }
    return s;
}

ggl_status llm_quant_copy(const ggl_gguf_tensor *t, ggl_gguf_sink *to, llm_quant_more *more,
                          void *ctx, ggl_error *err) {
    const size_t step = (size_t)4 << 20;
    ggl_status s = GGL_OK;
    for (size_t at = 0, n; s == GGL_OK && at < t->size; at += n) {
        n = t->size - at < step ? t->size - at : step;
        s = ggl_gguf_sink_write(to, (const uint8_t *)t->data + at, n, err);
        if (s == GGL_OK && !more(ctx, (const uint8_t *)t->data + at, n))
            s = stopped(err);
    }
    return s;
}

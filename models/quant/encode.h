/* Converts a tensor to another type piece by piece, and measures the error. */
#ifndef LLM_QUANT_ENCODE_H
#define LLM_QUANT_ENCODE_H

#include <stdbool.h>

#include "ggl/internal/gguf.h"
#include "ggl/types.h"

/* Sums over elements. They are always added in the same order, so that the result does not
 * depend on the number of threads. */
typedef struct quant_error {
    /* number of elements; sums of squares of the values, and of their errors */
    double n, sum2, error2;
    double max; /* the largest |difference| */
} quant_error;

void llm_quant_error_add(quant_error *to, const quant_error *e);
double llm_quant_error_rms(const quant_error *e);      /* sqrt(error2 / n) */
double llm_quant_error_relative(const quant_error *e); /* sqrt(error2 / sum2) */

typedef struct quant_piece { /* the result of converting some elements */
    quant_error error;
    /* the first element that is lost, because it is not a number or cannot be one in the new
     * type; -1: none */
    int64_t bad;
    float value; /* its value */
} quant_piece;

/* Encodes n elements, whole blocks, at `out`. of: NULL: all count the same. Then `search` is whether scales are searched for all the
 * same: a model loses less (docs/types.md), and encoding takes four to eight times as long. */
void llm_quant_from_float(const ggl_type_info *type, const float *x, const ggl_importance *of,
                          bool search, void *out, int64_t n);
/* Converts elements first .. first + n - 1, whole blocks, from x to `type` at `out` by llm_quant_from_float, measures the
 * error, and looks for lost elements. y: [n], for the result read back. */
void llm_quant_encode_piece(const ggl_type_info *type, const float *x, const ggl_importance *of,
                            bool search, int64_t first, int64_t n, void *out, float *y,
                            quant_piece *r);
/* Fails if an element is lost: GGL_FORMAT if it is not a number, GGL_LIMIT if it is too large. */
ggl_status llm_quant_check_piece(const ggl_type_info *type, const quant_piece *r, ggl_error *err);

/* How much errors matter in the columns of a tensor. */
typedef struct quant_importance {
    float *mean; /* [matrices][n_col] as in ggl_importance; NULL: all count the same */
    /* [n_col][n_dir], [n_col] and [n_col], as there, of the only matrix; NULL: not known */
    float *dir, *own, *power;
    int n_dir;
} quant_importance;
enum { QUANT_MAX_ROW = 1 << 16 }; /* elements of the longest rows whose directions are used */
void llm_quant_importance_fini(quant_importance *of);

typedef bool llm_quant_more(void *ctx, const void *source, size_t n);
typedef struct quant_encoder quant_encoder; /* has a few megabytes of memory per thread */
quant_encoder *llm_quant_encoder_new(int n_threads, bool search);
void llm_quant_encoder_free(quant_encoder *e);

/* Writes the tensor's elements as `type` to the sink. of: NULL: all count the same. *error: the error of the conversion.
 * `more` is called from time to time with the n source bytes that were done since the last call and
 * are not read again; if it returns false, this ends with GGL_IO. GGL_FORMAT: an element is not a
 * number; GGL_LIMIT: an element is too large for the type. */
ggl_status llm_quant_encode(quant_encoder *e, const ggl_gguf_tensor *t, const ggl_type_info *type,
                            const quant_importance *of, ggl_gguf_sink *to, quant_error *error,
                            llm_quant_more *more, void *ctx, ggl_error *err);
/* The same for a tensor that keeps its type: copies its bytes. */
ggl_status llm_quant_copy(const ggl_gguf_tensor *t, ggl_gguf_sink *to, llm_quant_more *more,
                          void *ctx, ggl_error *err);

#endif

/* One tensor from one type to another, piece by piece, and how far off the result is. */
#ifndef TOOLS_QUANT_ENCODE_H
#define TOOLS_QUANT_ENCODE_H

#include <stdbool.h>

#include "ggl/gguf.h"

/* Sums over elements, always added in the same order: no bit depends on the threads. */
typedef struct quant_error {
    double n, sum2, error2; /* elements; squares of the values, and of what they are off by */
    double max;             /* the largest |difference| */
} quant_error;

void quant_error_add(quant_error *to, const quant_error *e);
double quant_error_rms(const quant_error *e);      /* sqrt(error2 / n) */
double quant_error_relative(const quant_error *e); /* sqrt(error2 / sum2) */

typedef struct quant_encoder quant_encoder; /* its memory: a few megabytes per thread */
quant_encoder *quant_encoder_new(int n_threads);
void quant_encoder_free(quant_encoder *e);

/* The tensor's elements as `type`, to the sink; *error is what that costs. `more` is called now and
 * then with the number of source bytes done since; false ends it with GGL_IO. GGL_FORMAT: an
 * element is no number; GGL_LIMIT: it is one, but too large for the type. */
ggl_status quant_encode(quant_encoder *e, const ggl_gguf_tensor *t, const ggl_type_info *type,
                        ggl_gguf_sink *to, quant_error *error, bool (*more)(void *ctx, size_t n),
                        void *ctx, ggl_error *err);
/* The same for a tensor that keeps its type: its bytes. */
ggl_status quant_copy(const ggl_gguf_tensor *t, ggl_gguf_sink *to,
                      bool (*more)(void *ctx, size_t n), void *ctx, ggl_error *err);

#endif

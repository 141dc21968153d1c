/* Writes a file of safetensors; its form is in safetensors.h. */
#ifndef LLM_SAFETENSORS_WRITE_H
#define LLM_SAFETENSORS_WRITE_H

#include "ggl/status.h"
#include "ggl/types.h"

typedef struct st_out {
    char *name;
    ggl_type type; /* f32, f16 or bf16 */
    int n_dims;
    int64_t ne[2];     /* innermost first */
    const float *data; /* rounded to the type as they are written */
} st_out;

/* Writes the tensors in their order, under a temporary name until the file is complete. Sets *size to the bytes of the file.
 * GGL_IO, GGL_NOMEM; GGL_FORMAT: a number is NaN or infinite, or too large for the type. */
GGL_NODISCARD ggl_status llm_safetensors_write(const char *path, const st_out *tensor, size_t n,
                                               size_t *size, ggl_error *err);

#endif

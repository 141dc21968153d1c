/* The memory of a file's weights. */
#ifndef LLM_HOST_RANGES_H
#define LLM_HOST_RANGES_H

#include "ggl/internal/gguf.h"
#include "ggl/sched.h"

/* Sets a range for each part of the file; returns how many there are (ggl_gguf_n_parts). */
static inline int llm_host_ranges(ggl_host_range *to, const ggl_gguf *file) {
    const int n = ggl_gguf_n_parts(file);
    for (int i = 0; i < n; i++) {
        to[i].data = ggl_gguf_part(file, i, &to[i].size);
        to[i].mapped = ggl_gguf_mapped(file, i);
    }
    return n;
}

#endif

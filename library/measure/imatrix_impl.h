/* What the files of imatrix.h share. */
#ifndef LIBRARY_IMATRIX_IMPL_H
#define LIBRARY_IMATRIX_IMPL_H

#include "imatrix.h"
#include "ggl/internal/index.h"

struct imatrix {
    imatrix_entry *entry;
    size_t n, cap;
    ggl_index by_name; /* of entry[] */
    char **dataset;
    size_t n_datasets, cap_datasets;
    int64_t chunk_size, n_chunks;
    bool tells_size; /* the chunk size is from the file */
};

#define IMATRIX_TYPE        "imatrix"
#define IMATRIX_DATASETS    "imatrix.datasets"
#define IMATRIX_CHUNK_COUNT "imatrix.chunk_count"
#define IMATRIX_CHUNK_SIZE  "imatrix.chunk_size"
#define IMATRIX_SUMS        ".in_sum2"
#define IMATRIX_COUNTS      ".counts"
#define IMATRIX_SKETCH      ".in_sketch"

/* Most columns and matrices of an entry, and most rows. Sums and products of these fit into int64_t. */
#define IMATRIX_MAX_VALUES ((int64_t)1 << 40)
#define IMATRIX_MAX_COUNT  ((int64_t)1 << 53)

/* Adds an entry whose name is not there yet. GGL_FORMAT: it is, or is no name. GGL_LIMIT, GGL_NOMEM. */
ggl_status llm_imatrix_add_new(imatrix *m, ggl_str name, int64_t n_col, int64_t n_mat,
                               imatrix_entry **out, ggl_error *err);
ggl_status llm_imatrix_add_text(imatrix *m, ggl_str name, ggl_error *err);

#endif

/* Importance matrices: for each weight of a model, how large the inputs of its columns are. Made by
 * llm-imatrix, read by llm-quantize. The files are llama.cpp's, in both of its formats.
 *
 * For a product y = W x, an entry has sum_t x_t[i]^2 for each column i of W, over all rows x_t that
 * were multiplied with W, and the number of these rows. For a stack of experts it has both for each
 * expert.
 *
 *     imatrix *m;
 *     if (llm_imatrix_open(&m, "imatrix.gguf", 0, &err) != GGL_OK) ...
 *     const imatrix_entry *e = llm_imatrix_find(m, "blk.0.ffn_down.weight");
 *     if (e && llm_imatrix_fits(e, n_col, n_mat))
 *         llm_imatrix_mean(e, n_col, i_mat, mean);    // float mean[n_col]
 *     llm_imatrix_free(m);
 *
 * GGUF: two tensors for each weight, NAME.in_sum2 [n_col, n_mat] and NAME.counts [1, n_mat], both f32, and a third one for
 * weights of one matrix, which other programs skip: NAME.in_sketch [n_sketch + 1, n_col], f32 (imatrix_sketch.h);
 * keys general.type ("imatrix"), imatrix.datasets (strings), imatrix.chunk_count and
 * imatrix.chunk_size (u32; tokens of a chunk).
 *
 * The old format, .dat, little-endian, which is read only. It has means, and counts in chunks, of a size that it does not tell:
 *
 *     | n_entries: i32 |
 *     | for each: len: i32 | name[len] | n_call: i32 | n_value: i32 | mean * n_call: f32[n_value] |
 *     | n_chunk: i32 | len: i32 | dataset[len] |        these may be absent
 *
 * Threads: one at a time may change a matrix; while none does, any number may read it. */
#ifndef LIBRARY_IMATRIX_H
#define LIBRARY_IMATRIX_H

#include <stdbool.h>

#include "ggl/status.h"
#include "ggl/str.h"

typedef struct imatrix imatrix;

typedef struct imatrix_entry {
    ggl_str name;   /* of the weight, "blk.0.ffn_down.weight"; a NUL follows it */
    int64_t n_col;  /* at least 1 */
    int64_t n_mat;  /* experts, else 1; at least 1 */
    float *sum2;    /* [n_mat][n_col]: sums of squares, finite, not negative */
    int64_t *count; /* [n_mat]: rows, not negative */
    /* [n_col][n_sketch + 1] of the same rows (imatrix_sketch.h), finite; NULL: none. Only with n_mat 1 */
    float *sketch;
    int n_sketch; /* a multiple of 4, at most GGL_MAX_DIRECTIONS; 0 if none */
} imatrix_entry;

enum { IMATRIX_CHUNK = 512 }; /* tokens of a chunk where nothing else is said */

/* Opens a file of either format. chunk_size: the tokens of a chunk for files that do not tell
 * (0: IMATRIX_CHUNK). On success the caller owns *out, which keeps no file open. GGL_IO, GGL_FORMAT,
 * GGL_NOMEM; the message begins with the path; *out is then NULL. */
GGL_NODISCARD ggl_status llm_imatrix_open(imatrix **out, const char *path, int64_t chunk_size,
                                          ggl_error *err);
/* The same for a file's bytes in memory, aligned to 8. `name` stands for the path in messages. */
GGL_NODISCARD ggl_status llm_imatrix_open_memory(imatrix **out, const void *data, size_t size,
                                                 const char *name, int64_t chunk_size,
                                                 ggl_error *err);
/* Makes an empty matrix. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_imatrix_new(imatrix **out, int64_t chunk_size, ggl_error *err);
void llm_imatrix_free(imatrix *m); /* NULL is fine */

size_t llm_imatrix_n(const imatrix *m);
/* Entry i, below imatrix_n, in the order of the file. Entries are valid until one is added. */
const imatrix_entry *llm_imatrix_at(const imatrix *m, size_t i);
const imatrix_entry *llm_imatrix_find(const imatrix *m, const char *name); /* NULL if none */
size_t llm_imatrix_n_datasets(const imatrix *m);
const char *llm_imatrix_dataset(const imatrix *m,
                                size_t i); /* the name of a text; NULL past the last */
int64_t llm_imatrix_chunk_size(const imatrix *m);
bool llm_imatrix_tells_chunk_size(const imatrix *m); /* the file that was opened has this size */
int64_t llm_imatrix_n_chunks(const imatrix *m);

/* True if the entry is for a weight of n_mat matrices with n_col columns each. The matrices of a
 * stack that all see every row, such as those of attention heads, may have one count in all: the
 * entry then has n_mat 1 and the columns of all matrices, and fits, too. */
bool llm_imatrix_fits(const imatrix_entry *e, int64_t n_col, int64_t n_mat);
/* Sets out[n_col] to the mean squares of the columns of matrix i_mat of a weight that fits; to ones
 * if the matrix has seen no row. */
void llm_imatrix_mean(const imatrix_entry *e, int64_t n_col, int64_t i_mat, float *out);

/* Adds an entry, or finds that of the name, and sets *out to it, for the caller to add to. A new one
 * is all zeros. GGL_USAGE: there is one of other sizes. GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_imatrix_add(imatrix *m, const char *name, int64_t n_col, int64_t n_mat,
                                         imatrix_entry **out, ggl_error *err);
/* Makes the entry ready to add a sketch with n directions: gives it one of zeros if it has seen no row, and takes away
 * directions that the other lacks: all of them if n is 0. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_imatrix_add_sketch(imatrix_entry *e, int n, ggl_error *err);
GGL_NODISCARD ggl_status llm_imatrix_add_dataset(imatrix *m, const char *name, ggl_error *err);
/* Sets the number of chunks to that of the longest entry. Call it after counts have changed. */
void llm_imatrix_count_chunks(imatrix *m);
/* Adds sums, counts, sketches and datasets of `from`. A weight has the directions that both have. Where only one of
 * the two has a count for each matrix, the other's count holds for all of them. GGL_USAGE: a weight has other sizes, or a
 * sum becomes too large; `into` may then have been changed in part. */
GGL_NODISCARD ggl_status llm_imatrix_merge(imatrix *into, const imatrix *from, ggl_error *err);

/* Writes a GGUF file, ordered by name, which appears when it is complete. GGL_USAGE: there is no entry. GGL_IO, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_imatrix_write(const imatrix *m, const char *path, ggl_error *err);

#endif

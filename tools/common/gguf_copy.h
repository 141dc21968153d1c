/* Reads and copies the tensors of GGUF files of any size in little memory. */
#ifndef TOOLS_GGUF_COPY_H
#define TOOLS_GGUF_COPY_H

#include "ggl/internal/gguf.h"

/* Reads bytes [0, t->size) of a tensor in order, in pieces of at most `step` bytes, and drops the
 * pages of each piece afterwards, so that a file of any size needs little memory. Shows progress, if
 * the caller has begun a job that counts bytes; *done are the bytes done so far. */
typedef ggl_status gguf_piece(void *ctx, const void *data, size_t n, ggl_error *err);
ggl_status gguf_stream(const ggl_gguf *f, const ggl_gguf_tensor *t, size_t step, double *done,
                       gguf_piece *piece, void *ctx, ggl_error *err);
enum { GGUF_STEP = 4 << 20 };

/* Copies tensors into a writer, as gguf_stream does. The job must live until the file is written. */
typedef struct gguf_copy_job {
    const ggl_gguf *file;
    double done;
    struct gguf_copy *copies;
    size_t n;
} gguf_copy_job;
/* Room for all tensors of the file; false: out of memory. */
bool gguf_copy_begin(gguf_copy_job *j, const ggl_gguf *f);
void gguf_copy_tensor(gguf_copy_job *j, ggl_gguf_writer *w, const ggl_gguf_tensor *t);
void gguf_copy_end(gguf_copy_job *j);
/* Writes the file with a line of progress, and frees the writer. `bytes`: of its tensors. Returns the
 * exit code; on failure there is no file. */
int gguf_write(const char *tool, ggl_gguf_writer *w, gguf_copy_job *j, double bytes,
               const char *path);
/* True if the key belongs to one file of a split model, not to the model. */
bool gguf_is_split_key(ggl_str key);
/* Puts all keys but those into the writer. */
void gguf_put_keys(ggl_gguf_writer *w, const ggl_gguf *f);
/* The bytes of all tensors. */
double gguf_bytes(const ggl_gguf *f);
/* Opens a model, all of whose data must be there. NULL after a message. */
ggl_gguf *gguf_open(const char *tool, const char *path);
/* The same for a file that is changed or taken apart: what would be converted while it is loaded is
 * refused. */
ggl_gguf *gguf_open_file(const char *tool, const char *path);

#endif

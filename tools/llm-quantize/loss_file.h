/* What has been measured of a model's tensors, so that another budget need not measure it again. JSON:
 *
 *     {"version": 1, "model": "0123456789abcdef", "imatrix": "", "text": "ba78..", "n_ctx": 512, "n_chunk": 8,
 *      "tensors": {"blk.0.attn_q.weight": {"errors": {"q3_k": 0.0137, ..}, "probe": "q3_k", "kl": 0.00021}, ..}}
 *
 * model: ggl_gguf_digest. imatrix: SHA-256 of its numbers; "": none. text: SHA-256; "" and no "probe": nothing
 * was measured on a text. errors: loss.h's. kl: the divergence with only this tensor in the type `probe`. */
#ifndef TOOLS_LOSS_FILE_H
#define TOOLS_LOSS_FILE_H

#include "ggl/internal/index.h"
#include "ggl/status.h"
#include "ggl/types.h"

enum { LOSS_MAX_TYPES = 40, LOSS_MAX_TENSORS = 65536 };

typedef struct loss_record {
    char
        name[128]; /* of the tensor; zeros follow it, as the name is the key of loss_list.by_name */
    int n;
    struct {
        const ggl_type_info *type;
        double error;
    } of[LOSS_MAX_TYPES];
    const ggl_type_info *probe; /* NULL: not measured */
    double kl;
} loss_record;

typedef struct loss_head {
    char model[17], imatrix[65], text[65]; /* hexadecimal digits */
    int64_t n_ctx, n_chunk;
} loss_head;

typedef struct loss_list {
    loss_head head;
    loss_record *record;
    size_t n, cap;
    ggl_index by_name;
} loss_list;

void loss_list_fini(loss_list *l);
/* Returns the record of a tensor, record[*index], which is added if it is new. Valid until the next
 * one is added. NULL: out of memory, or the name is too long. */
loss_record *loss_list_get(loss_list *l, const char *name, size_t *index);
const double *loss_record_error(const loss_record *r, const ggl_type_info *t); /* NULL: unknown */
/* Adds an error; there is room for every type of the table. */
void loss_record_add(loss_record *r, const ggl_type_info *t, double error);

/* Reads a file. GGL_IO, GGL_FORMAT, GGL_LIMIT (more than 64 MiB, or than LOSS_MAX_TENSORS), GGL_NOMEM: the
 * message begins with the path. */
GGL_NODISCARD ggl_status loss_file_read(loss_list *l, const char *path, ggl_error *err);
/* Writes it; it appears when it is complete. GGL_IO, GGL_USAGE, GGL_NOMEM. */
GGL_NODISCARD ggl_status loss_file_write(const loss_list *l, const char *path, ggl_error *err);

#endif

/* A NumPy array of float32, a row for each text. How many there will be is not known: the header is written again at the end. With
 * --resume the file is written in place, and at every moment it is an array of the rows that its header counts: rows are on
 * the disk before they are counted. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/npy.h"
#include "common/process.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "output.h"

enum { CHECKED = 16 }; /* rows of the file that are computed again */
static const double COUNT_SECONDS = 1;

typedef struct npy_output {
    output base;
    const char *path;
    FILE *f;
    ggl_new_file *file; /* NULL: in place */
    int64_t n_rows, n_columns;
    size_t begin;      /* of the data */
    int64_t n_has;     /* rows that the file had */
    double t_counted;  /* when the header last counted them */
    bool is_appending; /* what was behind the rows of the file is cut off */
} npy_output;

static ggl_status io_error(const npy_output *o, ggl_error *err) {
    return ggl_fail(err, GGL_IO, "%s: %s", o->path, strerror(errno ? errno : EIO));
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Says in the header how many rows there are, and leaves the stream at the end. */
static ggl_status count_rows(npy_output *o, ggl_error *err) {
    char header[NPY_HEADER];
    const size_t size = npy_header(header, (int64_t[]){o->n_rows, o->n_columns}, 2);
    const bool ok = fflush(o->f) == 0 && (o->file || ggl_os_sync(ggl_os_fileno(o->f))) &&
                    ggl_os_fseek(o->f, 0, SEEK_SET) && fwrite(header, 1, size, o->f) == size &&
                    fflush(o->f) == 0 && ggl_os_fseek(o->f, 0, SEEK_END);
    o->begin = size;
    o->t_counted = ggl_os_seconds();
    return ok ? GGL_OK : io_error(o, err);
}

/* Before the first row that is written. */
static ggl_status begin(npy_output *o, int64_t n_columns, ggl_error *err) {
    o->is_appending = true;
    o->n_columns = n_columns;
    const int64_t end = o->n_has == 0 ? 0 : (int64_t)o->begin + o->n_has * n_columns * 4;
    if (!o->file &&
        (!ggl_os_truncate(ggl_os_fileno(o->f), end) || !ggl_os_fseek(o->f, 0, SEEK_END)))
        return io_error(o, err);
    return o->n_has == 0 ? count_rows(o, err) : GGL_OK;
}

/* Compares a row with that of the file: the model computes the same bits each time. */
static ggl_status compare(npy_output *o, const result *r, ggl_error *err) {
    const int64_t at = (int64_t)o->begin + (int64_t)r->at * (int64_t)(r->n * 4);
    bool same = (int64_t)r->n == o->n_columns;
    if (same && !ggl_os_fseek(o->f, at, SEEK_SET))
        return io_error(o, err);
    for (size_t i = 0; i < r->n && same; i++) {
        unsigned char b[4];
        uint32_t u;
        if (fread(b, 1, 4, o->f) != 4)
            return io_error(o, err);
        memcpy(&u, &r->row[i], 4);
        same = u == (b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
    }
    return same ? GGL_OK
                : ggl_fail(err, GGL_FORMAT,
                           "--resume: %s: row %zu is not the vector of line %zu: the file is of "
                           "another model, other options or other lines; without --resume it is "
                           "replaced",
                           o->path, r->at + 1, r->at + 1);
}

static ggl_status take(output *base, const result *r, ggl_error *err) {
    npy_output *o = (npy_output *)base;
    ggl_status st = GGL_OK;
    if ((int64_t)r->at < o->n_has)
        return compare(o, r, err);
    if (!o->is_appending)
        st = begin(o, (int64_t)r->n, err);
    for (size_t i = 0; i < r->n_rows && st == GGL_OK; i++, o->n_rows++)
        if (!npy_put_row(o->f, r->row + i * r->n, (int64_t)r->n))
            st = io_error(o, err);
    return st;
}

static ggl_status flush(output *base, ggl_error *err) {
    npy_output *o = (npy_output *)base;
    return o->file || !o->is_appending || ggl_os_seconds() - o->t_counted < COUNT_SECONDS
               ? GGL_OK
               : count_rows(o, err);
}

static ggl_status end(output *base, ggl_error *err) {
    npy_output *o = (npy_output *)base;
    ggl_status st = o->is_appending ? count_rows(o, err) : GGL_OK;
    if (st == GGL_OK && !o->file && o->is_appending && !ggl_os_sync(ggl_os_fileno(o->f)))
        st = io_error(o, err);
    o->is_appending = false;
    if (st == GGL_OK && o->file) {
        ggl_new_file *file = o->file;
        o->file = NULL;
        o->f = NULL;
        st = ggl_new_file_commit(file, err);
    }
    return st;
}

static void close_npy(output *base) {
    npy_output *o = (npy_output *)base;
    if (o->f && !o->file) {
        if (o->is_appending) /* keeps what is whole */
            (void)count_rows(o, NULL);
        fclose(o->f);
    }
    ggl_new_file_discard(o->file);
    ggl_free(o);
}

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status open_new(npy_output *o, ggl_error *err) {
    const ggl_status st = ggl_new_file_open(&o->file, o->path, err);
    if (st != GGL_OK)
        return st;
    o->f = ggl_new_file_stream(o->file);
    return ggl_os_fseek(o->f, 0, SEEK_END)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          "%s: a NumPy array begins with the number of its rows, which is known at "
                          "the end: a pipe cannot take it",
                          o->path);
}

/* Reads how many rows the file has. */
static ggl_status look(npy_output *o, ggl_error *err) {
    npy_shape shape;
    char header[NPY_HEADER];
    const ggl_status st = npy_look(&shape, o->path, err);
    if (st != GGL_OK)
        return st;
    const int64_t row = shape.n_columns * 4;
    if (shape.begin != npy_header(header, (int64_t[]){1, 1}, 2) ||
        (int64_t)((shape.size - shape.begin) / (size_t)row) < shape.n_rows)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: it has %zu bytes of data, fewer than its %" PRId64 " rows of %" PRId64
                        " numbers, or another program has written it",
                        o->path, shape.size - shape.begin, shape.n_rows, shape.n_columns);
    o->n_has = o->n_rows = shape.n_rows;
    o->n_columns = shape.n_columns;
    o->begin = shape.begin;
    return GGL_OK;
}

/* Opens the file in place. It is empty if it was not there. */
static ggl_status open_again(npy_output *o, ggl_error *err) {
    const int fd = ggl_os_open(o->path, OS_READ | OS_WRITE | OS_CREATE);
    o->f = fd >= 0 ? ggl_os_fdopen(fd, "r+b") : NULL;
    if (!o->f) {
        const ggl_status st = io_error(o, err);
        if (fd >= 0)
            ggl_os_close(fd);
        return st;
    }
    if (!ggl_os_lock(fd, true, false))
        return ggl_fail(err, GGL_IO, "--resume: %s: another process writes it", o->path);
    if (!ggl_os_fseek(o->f, 0, SEEK_END))
        return io_error(o, err);
    const ggl_status st = ggl_os_ftell(o->f) > 0 ? look(o, err) : GGL_OK;
    return st == GGL_OK ? st : ggl_within(err, st, "--resume");
}

ggl_status output_npy(output **out, const output_params *p, ggl_error *err) {
    npy_output *o = ggl_calloc(1, sizeof *o);
    if (!o)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    o->base = (output){.take = take, .flush = flush, .end = end, .close = close_npy};
    o->path = p->o->out;
    *out = &o->base;
    return p->o->resume ? open_again(o, err) : open_new(o, err);
}

/* --- what the file has ------------------------------------------------------------------------ */

size_t output_npy_has(const output *o) {
    return o->take == take ? (size_t)((const npy_output *)o)->n_has : 0;
}

bool output_npy_wants(const output *o, size_t at) {
    const size_t n = output_npy_has(o);
    return at == 0 || at + 1 == n || at * CHECKED / n != (at - 1) * CHECKED / n;
}

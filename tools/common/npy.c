#include "npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"

enum { MOST_DIMS = 8 };

/* Padded with spaces so that the data start at a multiple of 64. */
size_t npy_header(char out[NPY_HEADER], const int64_t *shape, int n_dims) {
    char dims[MOST_DIMS * 22] = "";
    size_t used = 0;
    for (int d = 0; d < n_dims; d++) /* Python writes a tuple of one as (7,) */
        used += (size_t)snprintf(dims + used, sizeof dims - used, "%" PRId64 "%s", shape[d],
                                 n_dims == 1      ? ","
                                 : d + 1 < n_dims ? ", "
                                                  : "");
    memset(out, ' ', NPY_HEADER);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    const size_t size = used <= 44 ? 128 : NPY_HEADER; /* NumPy's for small shapes */
    out[8] = (char)(size - 10);
    out[9] = 0;
    int n = snprintf(out + 10, NPY_HEADER - 10,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", dims);
    out[10 + n] = ' '; /* replaces snprintf's NUL */
    out[size - 1] = '\n';
    return size;
}

static void write_header(npy_writer *w, const int64_t *shape, int n_dims) {
    char text[NPY_HEADER];
    const size_t size = npy_header(text, shape, n_dims);
    (void)fwrite(text, 1, size, ggl_new_file_stream(w->file));
    ggl_new_file_note(w->file);
}

ggl_status npy_open_shape(npy_writer *w, const char *path, const int64_t *shape, int n,
                          ggl_error *err) {
    if (n > MOST_DIMS)
        return ggl_fail(err, GGL_LIMIT, "%d dimensions, at most %d are supported", n, MOST_DIMS);
    ggl_status s = ggl_new_file_open(&w->file, path, err);
    if (s == GGL_OK)
        write_header(w, shape, n);
    return s;
}

ggl_status npy_open(npy_writer *w, const char *path, int64_t n_rows, int64_t n_columns,
                    ggl_error *err) {
    return npy_open_shape(w, path, (const int64_t[]){n_rows, n_columns}, 2, err);
}

bool npy_put_row(FILE *f, const float *row, int64_t n_columns) {
    /* little-endian on any machine */
    for (int64_t i = 0; i < n_columns; i++) {
        uint32_t u;
        memcpy(&u, &row[i], 4);
        unsigned char b[4] = {(unsigned char)u, (unsigned char)(u >> 8), (unsigned char)(u >> 16),
                              (unsigned char)(u >> 24)};
        if (fwrite(b, 1, 4, f) != 4)
            return false;
    }
    return true;
}

void npy_row(npy_writer *w, const float *row, int64_t n_columns) {
    if (!ggl_new_file_error(w->file) && !npy_put_row(ggl_new_file_stream(w->file), row, n_columns))
        ggl_new_file_note(w->file);
}

ggl_status npy_close(npy_writer *w, ggl_error *err) {
    ggl_status s = ggl_new_file_commit(w->file, err);
    w->file = NULL;
    return s;
}

void npy_abort(npy_writer *w) {
    ggl_new_file_discard(w->file);
    w->file = NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

enum { MAX_HEADER = 1000 }; /* NumPy writes less than 128 bytes for a two-dimensional array */

/* Returns how many bytes of a header's value a message shows. */
static int shown(const char *s, const char *end) {
    size_t n = strcspn(s, end);
    n += s[n] == ')';
    return (int)ggl_utf8_cut(s, n, 40);
}

/* Returns the text after 'name': in the header. */
static const char *header_value(const char *header, const char *name) {
    char key[32];
    snprintf(key, sizeof key, "'%s':", name);
    const char *s = strstr(header, key);
    return s ? s + strlen(key) + strspn(s + strlen(key), " ") : "none";
}

/* Parses "(48, 320)" as the array's shape. */
static bool read_shape(npy_shape *a, const char *s) {
    int64_t *const n[2] = {&a->n_rows, &a->n_columns};
    for (int i = 0; i < 2; i++) {
        s += *s == "(,"[i];
        s += strspn(s, " ");
        char *end;
        /* strtoll would accept a sign */
        if (*s < (i == 0 ? '0' : '1') || *s > '9')
            return false;
        /* on overflow it returns more than any file has */
        *n[i] = strtoll(s, &end, 10);
        s = end;
    }
    return s[strspn(s, ", ")] == ')';
}

static ggl_status read_header(npy_shape *a, const char *header, ggl_error *err) {
    const char *descr = header_value(header, "descr"), *shape = header_value(header, "shape");
    if (strncmp(descr, "'<f4'", 5) != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "has elements %.*s, not '<f4': save it as float32 (x.astype('<f4'))",
                        shown(descr, ","), descr);
    if (strncmp(header_value(header, "fortran_order"), "False", 5) != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "is in column-major order (Fortran's): save numpy.ascontiguousarray(x)");
    if (!read_shape(a, shape))
        return ggl_fail(err, GGL_FORMAT, "has the shape %.*s, not (rows, columns)",
                        shown(shape, ")"), shape);
    return GGL_OK;
}

/* Returns where the data begin and copies the header's text to `header`. 0: not a .npy file,
 * reported. */
static size_t find_data(const uint8_t *p, size_t size, char *header, ggl_error *err) {
    if (size < 12 || memcmp(p, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3) {
        (void)ggl_fail(err, GGL_FORMAT, "is not a .npy file");
        return 0;
    }
    size_t begin = p[6] == 1 ? 10 : 12, n = p[8] + 256u * p[9];
    if (p[6] > 1)
        n += 65536 * (p[10] + (size_t)256 * p[11]);
    if (n > size - begin || n > MAX_HEADER) {
        (void)ggl_fail(err, GGL_FORMAT,
                       "has a header of %zu bytes, which cannot be that of an array of numbers", n);
        return 0;
    }
    memcpy(header, p + begin, n);
    header[n] = '\0';
    return begin + n;
}

/* Reads the header of a file that is mapped at p. */
static ggl_status look(npy_shape *a, const uint8_t *p, size_t size, ggl_error *err) {
    char header[MAX_HEADER + 1];
    a->size = size;
    a->begin = find_data(p, size, header, err);
    return a->begin == 0 ? GGL_FORMAT : read_header(a, header, err);
}

static ggl_status read_array(npy_array *a, const uint8_t *p, size_t size, ggl_error *err) {
    npy_shape shape;
    size_t n, bytes;
    ggl_status s = look(&shape, p, size, err);
    if (s != GGL_OK)
        return s;
    if (shape.n_rows < 1)
        return ggl_fail(err, GGL_FORMAT,
                        "has the shape (%" PRId64 ", %" PRId64 "), which has no rows", shape.n_rows,
                        shape.n_columns);
    if (!ggl_size_mul((uint64_t)shape.n_rows, (uint64_t)shape.n_columns, &n) ||
        !ggl_size_mul(n, 4, &bytes) || bytes != size - shape.begin)
        return ggl_fail(err, GGL_FORMAT,
                        "has %zu bytes of data, but not those of %" PRId64 " rows of %" PRId64
                        " numbers: it is incomplete",
                        size - shape.begin, shape.n_rows, shape.n_columns);
    a->n_rows = shape.n_rows;
    a->n_columns = shape.n_columns;
    a->data = ggl_calloc(n, sizeof *a->data);
    if (!a->data)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu bytes", bytes);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *b = p + shape.begin + 4 * i;
        uint32_t u = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        memcpy(&a->data[i], &u, 4);
    }
    return GGL_OK;
}

ggl_status npy_look(npy_shape *out, const char *path, ggl_error *err) {
    ggl_file_map map;
    *out = (npy_shape){0};
    ggl_status s = ggl_file_map_open(&map, path, err);
    if (s != GGL_OK)
        return s;
    s = look(out, map.data, map.size, err);
    ggl_file_map_close(&map);
    return s == GGL_OK ? s : ggl_within(err, s, "%s", path);
}

ggl_status npy_read(npy_array *a, const char *path, ggl_error *err) {
    ggl_file_map map;
    *a = (npy_array){0};
    ggl_status s = ggl_file_map_open(&map, path, err);
    if (s != GGL_OK)
        return s;
    s = read_array(a, map.data, map.size, err);
    ggl_file_map_close(&map);
    if (s == GGL_OK)
        return s;
    npy_fini(a);
    return ggl_within(err, s, "%s", path);
}

void npy_fini(npy_array *a) {
    ggl_free(a->data);
    *a = (npy_array){0};
}

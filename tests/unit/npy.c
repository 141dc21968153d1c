/* .npy files: what is written is read, and what is no two-dimensional float32 array is refused with what it is. */
#include "common/npy.h"

#include <math.h>
#include <string.h>

#include "test.h"

#define DESCR   "{'descr': '<f4', 'fortran_order': False, 'shape': "
#define DATA_24 "\0\0\200?\0\0\0@\0\0@@\0\0\200@\0\0\240@\0\0\300@" /* 1 .. 6 */

/* A file of a version, a header and n bytes of data; its size. */
static size_t make(char *out, int version, const char *header, const char *data, size_t n) {
    size_t h = strlen(header), begin = version == 1 ? 10 : 12;
    memset(out, 0, begin);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[8] = (char)(h & 255);
    out[9] = (char)(h >> 8);
    memcpy(out + begin, header, h);
    memcpy(out + begin + h, data, n);
    return begin + h + n;
}

static ggl_status read_bytes(npy_array *a, const char *data, size_t n, ggl_error *err) {
    return test_write_file(test_path("x.npy"), data, n) ? npy_read(a, test_path("x.npy"), err)
                                                        : GGL_IO;
}

TEST(what_is_written_is_read) {
    const float row[2][3] = {{1, -2.5f, 3e-40f}, {INFINITY, 0, 1e38f}};
    npy_writer w;
    npy_array a;
    ggl_error err = {0};
    REQUIRE_OK(npy_open(&w, test_path("w.npy"), 2, 3, &err), &err);
    npy_row(&w, row[0], 3);
    npy_row(&w, row[1], 3);
    REQUIRE_OK(npy_close(&w, &err), &err);
    REQUIRE_OK(npy_read(&a, test_path("w.npy"), &err), &err);
    CHECK(a.n_rows == 2 && a.n_columns == 3 && memcmp(a.data, row, sizeof row) == 0);
    npy_fini(&a);
    CHECK(!a.data);
}

TEST(versions_and_forms) {
    static const char *const header[] = {
        DESCR "(2, 3), }          \n",
        DESCR "(2, 3)}",
        DESCR "( 2,3 ,) }",
        "{'fortran_order': False, 'shape': (2, 3), 'descr': '<f4'}",
    };
    char file[2000];
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof header / sizeof *header; i++) {
            npy_array a;
            ggl_error err = {0};
            size_t n = make(file, version, header[i], DATA_24, 24);
            if (!CHECK_OK(read_bytes(&a, file, n, &err), &err))
                continue;
            CHECK_MSG(a.n_rows == 2 && a.n_columns == 3, "%s", header[i]);
            for (int k = 0; k < 6; k++)
                CHECK(a.data[k] == (float)(k + 1));
            npy_fini(&a);
        }
}

TEST(others_are_refused) {
    static const struct {
        const char *header;
        size_t n;
        const char *words;
    } bad[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }", 24,
         "has elements '<f8', not '<f4'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", 24,
         "has elements [('a', not '<f4'"},
        {"{'fortran_order': False, 'shape': (2, 3), }", 24, "has elements none"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24, "ascontiguousarray"},
        {"{'descr': '<f4', 'shape': (2, 3), }", 24, "ascontiguousarray"},
        {DESCR "(1, 2, 3), }", 24, "has the shape (1, 2, 3), not (rows, columns)"},
        {DESCR "(6,), }", 24, "has the shape (6,)"},
        {DESCR "(), }", 4, "has the shape ()"},
        {DESCR "(0, 3), }", 0, "has the shape (0, 3)"},
        {DESCR "(-2, -3), }", 24, "has the shape (-2, -3)"},
        {DESCR, 24, "has the shape "},
        {DESCR "(2, 3", 24, "has the shape (2, 3"},
        {DESCR "(2, 3), }", 23, "has 23 bytes of data, but not those of 2 rows of 3 numbers"},
        {DESCR "(2, 3), }", 20, "incomplete"},
        {DESCR "(2, 2), }", 24, "has 24 bytes of data"},
        {DESCR "(4294967296, 4294967296), }", 24, "has 24 bytes of data"},
        {DESCR "(99999999999999999999, 1), }", 24, "has 24 bytes of data"},
        {DESCR "(3, 4611686018427387904), }", 24, "has 24 bytes of data"},
    };
    char file[2000];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        npy_array a;
        ggl_error err = {0};
        size_t n = make(file, 1, bad[i].header, DATA_24, bad[i].n);
        CHECK_INT(read_bytes(&a, file, n, &err), GGL_FORMAT);
        CHECK_HAS(err.msg, bad[i].words);
        CHECK_HAS(err.msg, "x.npy");
        CHECK(!a.data);
    }
}

/* Each beginning of a file, and each byte of its header changed: an error or an array, never a read beyond the end. */
TEST(cut_and_changed) {
    char file[2000];
    npy_array a;
    ggl_error err = {0};
    size_t n = make(file, 2, DESCR "(2, 3), }", DATA_24, 24);
    for (size_t k = 0; k < n; k++)
        CHECK_MSG(read_bytes(&a, file, k, &err) == GGL_FORMAT, "the first %zu bytes", k);
    for (size_t k = 0; k < n - 24; k++)
        for (int bit = 0; bit < 8; bit++) {
            file[k] = (char)(file[k] ^ 1 << bit);
            if (read_bytes(&a, file, n, &err) == GGL_OK)
                CHECK(a.n_rows * a.n_columns == 6);
            npy_fini(&a);
            file[k] = (char)(file[k] ^ 1 << bit);
        }
    CHECK_INT(npy_read(&a, test_path("none.npy"), &err), GGL_IO);
    CHECK_HAS(err.msg, "none.npy");
}

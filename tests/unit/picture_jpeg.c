/* unit.picture_jpeg: JPEG, in files that libjpeg has written. */
#include <stdio.h>

#include <jpeglib.h>

#include "picture/picture.h"
#include "picture_bytes.h"
#include "test.h"

enum { WIDTH = 40, HEIGHT = 24 };

typedef struct jpeg_how {
    J_COLOR_SPACE from, to;
    int n_channels, orientation, n_restart;
    bool is_progressive, is_many; /* scans */
    bool is_coarse;               /* coarse: colors of half the width and height */
} jpeg_how;

static picture_bytes b;

/* Smooth, so that little is lost. */
static int level(int x, int y, int c) {
    return (x * (3 + c) + y * (5 - c) + 40 * c) % 512 < 256
               ? (x * (3 + c) + y * (5 - c) + 40 * c) % 256
               : 255 - (x * (3 + c) + y * (5 - c) + 40 * c) % 256;
}

static void write_exif(struct jpeg_compress_struct *j, int orientation) {
    static picture_bytes e;
    e.n = 0;
    put(&e, "Exif\0\0", 6);
    put_exif(&e, orientation, orientation % 2 == 0, orientation > 4);
    jpeg_write_marker(j, JPEG_APP0 + 1, e.data, (unsigned)e.n);
}

/* The first coefficient of all blocks, and each other one in two scans: without its lowest bit, and that bit. */
static int list_scans(jpeg_scan_info *scan) {
    int n = 0;
    scan[n++] = (jpeg_scan_info){3, {0, 1, 2}, 0, 0, 0, 0};
    for (int c = 0; c < 3; c++)
        for (int k = 1; k < 64; k++)
            for (int low = 1; low >= 0; low--)
                scan[n++] = (jpeg_scan_info){1, {c}, k, k, low ? 0 : 1, low};
    return n;
}

static void write_jpeg(const jpeg_how *how) {
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL, row[WIDTH * 4], *rows[] = {row};
    unsigned long n = 0;
    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &data, &n);
    j.image_width = WIDTH;
    j.image_height = HEIGHT;
    j.input_components = how->n_channels;
    j.in_color_space = how->from;
    jpeg_set_defaults(&j);
    jpeg_set_colorspace(&j, how->to);
    jpeg_set_quality(&j, 100, TRUE);
    j.dct_method = JDCT_ISLOW;
    j.restart_interval = (unsigned)how->n_restart;
    for (int c = 0; c < j.num_components && !how->is_coarse; c++)
        j.comp_info[c].h_samp_factor = j.comp_info[c].v_samp_factor = 1;
    if (how->is_progressive)
        jpeg_simple_progression(&j);
    static jpeg_scan_info scans[400];
    if (how->is_many) {
        j.num_scans = list_scans(scans);
        j.scan_info = scans;
    }
    jpeg_start_compress(&j, TRUE);
    if (how->orientation)
        write_exif(&j, how->orientation);
    for (int y = 0; y < HEIGHT; y++) {
        for (int i = 0; i < WIDTH * how->n_channels; i++)
            row[i] = (unsigned char)level(i / how->n_channels, y, i % how->n_channels);
        jpeg_write_scanlines(&j, rows, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    b.n = 0;
    put(&b, data, n);
    free(data);
}

static llm_picture *read_b(int width, int height) {
    llm_picture *p;
    ggl_error err = {0};
    if (!CHECK_OK(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), &err))
        return NULL;
    CHECK_INT(p->width, width);
    CHECK_INT(p->height, height);
    return p;
}

static int want_of(const jpeg_how *how, int x, int y, int c) {
    if (how->n_channels == 1)
        return level(x, y, 0);
    if (how->n_channels == 3)
        return level(x, y, c);
    return level(x, y, c) * level(x, y, 3) / 255; /* inks, as what they leave over */
}

static const jpeg_how hows[] = {
    {JCS_RGB, JCS_YCbCr, 3, 0, 0, false, false, false},
    {JCS_RGB, JCS_YCbCr, 3, 0, 0, true, false, false},
    {JCS_RGB, JCS_YCbCr, 3, 0, 2, false, false, false},
    {JCS_RGB, JCS_YCbCr, 3, 0, 0, true, false, true},
    {JCS_RGB, JCS_RGB, 3, 0, 0, false, false, false},
    {JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 0, 0, false, false, false},
    {JCS_CMYK, JCS_CMYK, 4, 0, 0, false, false, false},
    {JCS_CMYK, JCS_YCCK, 4, 0, 0, false, false, false},
    {JCS_CMYK, JCS_YCCK, 4, 0, 0, true, false, false},
};

TEST(kinds_of_color) {
    for (size_t k = 0; k < sizeof hows / sizeof *hows; k++) {
        write_jpeg(&hows[k]);
        llm_picture *p = read_b(WIDTH, HEIGHT);
        int most = 0;
        for (int i = 0; i < WIDTH * HEIGHT * 3 && p; i++) {
            const int off = abs(p->rgb[i] - want_of(&hows[k], i / 3 % WIDTH, i / 3 / WIDTH, i % 3));
            most = off > most ? off : most;
        }
        CHECK_MSG(most <= (hows[k].is_coarse ? 40 : 4), "kind %zu is up to %d off", k, most);
        llm_picture_free(p);
    }
}

TEST(orientation) {
    jpeg_how how = hows[0];
    write_jpeg(&how);
    llm_picture *upright = read_b(WIDTH, HEIGHT);
    REQUIRE(upright);
    for (how.orientation = 1; how.orientation <= 8; how.orientation++) {
        write_jpeg(&how);
        const bool is_turned = how.orientation > 4;
        llm_picture *p = read_b(is_turned ? HEIGHT : WIDTH, is_turned ? WIDTH : HEIGHT);
        /* where the upper left corner of what is stored comes to lie: right for 2, 3, 6, 7; below for 3, 4, 7, 8 */
        const bool is_right = strchr("\2\3\6\7", how.orientation),
                   is_below = strchr("\3\4\7\10", how.orientation);
        if (p)
            CHECK(memcmp(p->rgb + ((is_below ? p->height - 1 : 0) * p->width +
                                   (is_right ? p->width - 1 : 0)) *
                                      3,
                         upright->rgb, 3) == 0);
        llm_picture_free(p);
    }
    llm_picture_free(upright);
}

/* Bounds of the block: each of its numbers becomes as large as it can be. */
TEST(orientation_that_lies) {
    const jpeg_how how = {JCS_RGB, JCS_YCbCr, 3, 6, 0, false, false, false};
    write_jpeg(&how);
    unsigned char *at = memmem(b.data, b.n, "Exif", 4);
    REQUIRE(at);
    for (size_t i = 4; i < 6 + 38; i++) {
        const unsigned char old = at[i];
        for (int value = 0; value < 256; value += 51) {
            llm_picture *p;
            ggl_error err = {0};
            at[i] = (unsigned char)value;
            if (CHECK_OK(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), &err))
                CHECK_INT(p->width * p->height, WIDTH * HEIGHT);
            llm_picture_free(p);
        }
        at[i] = old;
    }
}

TEST(cut) {
    for (size_t k = 0; k < sizeof hows / sizeof *hows; k++) {
        write_jpeg(&hows[k]);
        for (size_t n = 3; n < b.n; n += 1 + n / 100 * (size_t)(TEST_SANITIZED ? 4 : 1)) {
            unsigned char *copy = malloc(n);
            ggl_error err = {0};
            llm_picture *p;
            memcpy(copy, b.data, n);
            const ggl_status st = llm_picture_read(&p, copy, n, "x", NULL, &err);
            /* without its end marker, a file with one scan is complete */
            CHECK_MSG(st == GGL_FORMAT || n + 2 >= b.n, "kind %zu, cut to %zu of %zu bytes: %s", k,
                      n, b.n, err.msg);
            CHECK(st == GGL_OK || strncmp(err.msg, "x: JPEG that ", 13) == 0);
            llm_picture_free(p);
            free(copy);
        }
    }
}

TEST(damaged) {
    const jpeg_how how = hows[0];
    write_jpeg(&how);
    int n_errors = 0;
    for (size_t i = 2; i < b.n; i++) {
        const unsigned char old = b.data[i];
        llm_picture *p;
        ggl_error err = {0};
        b.data[i] ^= 0xff;
        n_errors += llm_picture_read(&p, b.data, b.n, "x", NULL, &err) != GGL_OK;
        llm_picture_free(p);
        b.data[i] = old;
    }
    CHECK(n_errors > 100);
}

/* A small file whose scans, one or two for each coefficient, would each go over all pixels of a large picture. */
TEST(many_scans) {
    jpeg_how how = hows[1];
    ggl_error err = {0};
    llm_picture *p;
    how.is_many = true;
    write_jpeg(&how);
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "x: JPEG with more than 200 scans, which no program writes");
    CHECK(p == NULL);
}

TEST(limits) {
    llm_picture *p;
    ggl_error err = {0};
    write_jpeg(&hows[0]);
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x",
                               &(llm_picture_limits){.pixels = WIDTH * HEIGHT - 1}, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "x: has 40 x 24 pixels, more than the 959 that are read");
    /* the numbers of the frame header */
    unsigned char *frame = memmem(b.data, b.n, "\xff\xc0", 2);
    REQUIRE(frame);
    memset(frame + 5, 0xfd, 4);
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), GGL_LIMIT);
    memset(frame + 5, 0, 2);
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), GGL_FORMAT);
}

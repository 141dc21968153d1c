/* unit.picture: pictures that this code reads by itself, what it refuses, and those that libpng reads. */
#include "picture/picture.h"

#include <math.h>

#include "alloc_fail.h"
#include "ggl/internal/text.h"
#include "picture/order.h"
#include "picture/prepare.h"
#include "picture/tiles.h"
#include "picture_bytes.h"
#include "test.h"

static picture_bytes b;

static uint32_t some_byte(int x, int y, int c) {
    return (uint32_t)(x * 37 + y * 101 + c * 53 + 11) & 0xff;
}

static const char *words_of(const void *data, size_t n, ggl_status want) {
    static ggl_error err;
    llm_picture *p;
    err = (ggl_error){0};
    CHECK_INT(llm_picture_read(&p, data, n, "x", NULL, &err), want);
    CHECK(p == NULL);
    return err.msg;
}

/* Reads b, and checks its size. */
static llm_picture *read_b(int width, int height) {
    llm_picture *p;
    ggl_error err = {0};
    if (!CHECK_OK(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), &err))
        return NULL;
    CHECK_INT(p->width, width);
    CHECK_INT(p->height, height);
    return p;
}

static void check_pixels(const llm_picture *p, uint32_t (*want)(int x, int y, int c)) {
    int64_t n_wrong = 0;
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++)
            for (int c = 0; c < 3; c++)
                n_wrong += p->rgb[(y * p->width + x) * 3 + c] != want(x, y, c);
    CHECK_INT(n_wrong, 0);
}

/* All beginnings of b are errors, and the allocation of what a header promises is never written beyond its bytes. */
static void check_cut(const char *words) {
    for (size_t n = 0; n < b.n; n++) {
        unsigned char *copy = malloc(n + 1); /* so that a sanitizer sees what is read behind it */
        ggl_error err = {0};
        llm_picture *p;
        memcpy(copy, b.data, n);
        if (CHECK_MSG(llm_picture_read(&p, copy, n, "x", NULL, &err) != GGL_OK,
                      "cut to %zu of %zu bytes: no error", n, b.n))
            CHECK(strncmp(err.msg, "x: ", 3) == 0);
        if (n + 4 >= b.n)
            CHECK_HAS(err.msg, words);
        llm_picture_free(p);
        free(copy);
    }
}

/* --- PPM and PGM ----------------------------------------------------------------------------- */

static uint32_t counted(int i, int y, int c) {
    (void)y, (void)c;
    return (uint32_t)(i * 29 + 7) % 256;
}

static uint32_t ppm_want(int x, int y, int c) {
    return counted((y * 5 + x) * 3 + c, 0, 0);
}

static uint32_t pgm_want(int x, int y, int c) {
    (void)c;
    return counted(y * 5 + x, 0, 0);
}

TEST(ppm) {
    put_ppm(&b, "P6\n# made here\n5 3 # and wide\r255\n", 45, 1, counted);
    llm_picture *p = read_b(5, 3);
    check_pixels(p, ppm_want);
    llm_picture_free(p);
    check_cut("PPM or PGM that ends early, after 4");
    put_ppm(&b, "P5 5 3 255 ", 15, 1, counted);
    p = read_b(5, 3);
    check_pixels(p, pgm_want);
    llm_picture_free(p);
}

static uint32_t wide_sample(int i, int y, int c) {
    (void)y, (void)c;
    return (uint32_t)i * 200;
}

TEST(ppm_is_scaled) {
    put_ppm(&b, "P5 6 1 1000\n", 6, 2, wide_sample);
    llm_picture *p = read_b(6, 1);
    for (int i = 0; i < 6 && p; i++)
        CHECK_INT(p->rgb[3 * i + 1], i * 51);
    llm_picture_free(p);
    put(&b, "trailing bytes are no fault", 10);
    llm_picture_free(read_b(6, 1));
    b.n = 0;
    put(&b, "P5 3 1 2\n\0\1\7", 12); /* the last one is larger than the largest */
    p = read_b(3, 1);
    CHECK_INT(p->rgb[0], 0);
    CHECK_INT(p->rgb[3], 128);
    CHECK_INT(p->rgb[6], 255);
    llm_picture_free(p);
}

TEST(ppm_headers) {
    static const struct {
        const char *text, *words;
        ggl_status st;
    } wrong[] = {
        {"P6", "without width", GGL_FORMAT},
        {"P65 5 255\n", "without width", GGL_FORMAT},
        {"P6 5 5 255", "without width", GGL_FORMAT},
        {"P6 5 5 255#\n", "without width", GGL_FORMAT},
        {"P6 5 x 255\n", "without width", GGL_FORMAT},
        {"P6 -5 5 255\n", "without width", GGL_FORMAT},
        {"P6 5 5 0\n", "largest value 0, not 1 to 65535", GGL_FORMAT},
        {"P6 5 5 65536\n", "largest value 65536", GGL_FORMAT},
        {"P6 0 5 255\n", "has 0 x 5 pixels", GGL_FORMAT},
        {"P6 99999999999 1 255\n", "without width", GGL_FORMAT},
        {"P6 999999999 999999999 255\n",
         "has 999999999 x 999999999 pixels, more than the 178956970", GGL_LIMIT},
        {"P6 20000 10000 255\n",
         "20000 x 10000 pixels, more than the 178956970 that are read: make it smaller", GGL_LIMIT},
        {"P6 13000 13000 255\n", "ends early, after 0 of 507000000 bytes", GGL_FORMAT},
        {"P3 1 1 255\n1 2 3", "as text, which is not read here: convert it: ffmpeg",
         GGL_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_HAS(words_of(wrong[i].text, strlen(wrong[i].text), wrong[i].st), wrong[i].words);
}

/* --- BMP ------------------------------------------------------------------------------------- */

TEST(bmp) {
    for (int k = 0; k < 6; k++) {
        const int bits = k < 3 ? 24 : 32, height = k % 2 ? -4 : 4;
        put_bmp(&b, 5 + k, height, bits, k == 5, some_byte);
        llm_picture *p = read_b(5 + k, 4);
        check_pixels(p, some_byte);
        llm_picture_free(p);
    }
    put_bmp(&b, 4, 4, 24, false, some_byte);
    check_cut("BMP that ends early, after ");
    put_bmp(&b, 4, 4, 32, true, some_byte);
    check_cut("BMP that ends early, after ");
}

/* A row that is not padded at the very end, and the oldest header. */
TEST(bmp_old_header) {
    b.n = 0;
    put(&b, "BM\0\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\x01\0\x02\0\x01\0\x18\0", 26);
    put(&b, "\1\2\3\0\4\5\6", 7);
    llm_picture *p = read_b(1, 2);
    CHECK(p && memcmp(p->rgb, "\6\5\4\3\2\1", 6) == 0);
    llm_picture_free(p);
}

static const char *changed_bmp(int at, uint32_t to, int n, ggl_status want) {
    picture_bytes c;
    put_bmp(&b, 4, 4, 24, false, some_byte);
    c.n = 0;
    put_little(&c, to, n);
    memcpy(b.data + at, c.data, (size_t)n);
    return words_of(b.data, b.n, want);
}

TEST(bmp_headers) {
    CHECK_HAS(changed_bmp(28, 8, 2, GGL_UNSUPPORTED),
              "8 bits for each pixel and compression 0; 24");
    CHECK_HAS(changed_bmp(30, 1, 4, GGL_UNSUPPORTED), "24 bits for each pixel and compression 1");
    CHECK_HAS(changed_bmp(30, 3, 4, GGL_UNSUPPORTED), "24 bits for each pixel and compression 3");
    CHECK_HAS(changed_bmp(10, 0xffffffff, 4, GGL_FORMAT), "begin at 4294967295");
    CHECK_HAS(changed_bmp(18, 0xffffffff, 4, GGL_FORMAT), "has -1 x 4 pixels");
    CHECK_HAS(changed_bmp(22, 0x80000000, 4, GGL_LIMIT), "has 4 x 2147483648 pixels");
    CHECK_HAS(changed_bmp(22, 0, 4, GGL_FORMAT), "has 4 x 0 pixels");
    CHECK_HAS(changed_bmp(14, 39, 4, GGL_FORMAT), "within its header");
    CHECK_HAS(changed_bmp(14, 0xffffffff, 4, GGL_FORMAT), "within its header");
    put_bmp(&b, 4, 4, 32, true, some_byte);
    b.data[54] = 0x7f; /* a mask */
    CHECK_HAS(words_of(b.data, b.n, GGL_UNSUPPORTED), "whose colors are not whole bytes");
}

/* --- other kinds, limits --------------------------------------------------------------------- */

TEST(kinds) {
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
        ggl_status st;
    } kinds[] = {
        {"", 0, "x: is empty", GGL_FORMAT},
        {"P", 1, "begins with \"P\", as no kind of picture that is known here; this build reads ",
         GGL_UNSUPPORTED},
        {"\0\1\2\3\4", 5, "begins with \"", GGL_UNSUPPORTED},
        {"GIF89a", 6, "x: is GIF, which is not read here: convert it: ffmpeg -i x out.ppm",
         GGL_UNSUPPORTED},
        {"II*\0\0\0\0\0", 8, "is TIFF", GGL_UNSUPPORTED},
        {"\0\0\0\x1c"
         "ftypheic",
         12, "is HEIC", GGL_UNSUPPORTED},
        {"\0\0\0\x1c"
         "ftypavif",
         12, "is AVIF", GGL_UNSUPPORTED},
        {"\0\0\0\x1c"
         "ftypisom",
         12, "is a video", GGL_UNSUPPORTED},
        {"<svg xmlns", 10, "SVG", GGL_UNSUPPORTED},
        {"<!DOCTYPE html>", 15, "HTML", GGL_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        CHECK_HAS(words_of(kinds[i].bytes, kinds[i].n, kinds[i].st), kinds[i].words);
    CHECK_HAS(llm_picture_kinds(), "PPM, BMP");
    static const struct {
        const char *name, *bytes, *package;
    } optional[] = {{"PNG", "\x89PNG\r\n\x1a\n\0\0\0\r", "libpng-dev"},
                    {"JPEG", "\xff\xd8\xff\xe0\0\x10JFIF\0\1", "libjpeg-dev"},
                    {"WebP", "RIFF\0\0\0\0WEBP", "libwebp-dev"}};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        const bool is_read = strstr(llm_picture_kinds(), optional[i].name) != NULL;
        const char *words = words_of(optional[i].bytes, 12, is_read ? GGL_FORMAT : GGL_UNSUPPORTED);
        CHECK_HAS(words, optional[i].name);
        if (!is_read)
            CHECK_HAS(words, optional[i].package);
    }
}

TEST(limits) {
    llm_picture *p;
    ggl_error err = {0};
    put_bmp(&b, 8, 8, 24, false, some_byte);
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", &(llm_picture_limits){.pixels = 63}, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "x: has 8 x 8 pixels, more than the 63 that are read");
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", &(llm_picture_limits){.bytes = 100}, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "x: has 246 bytes, more than the 100 that are read");
    CHECK_OK(llm_picture_read(&p, b.data, b.n, "x", &(llm_picture_limits){64, 246}, &err), &err);
    llm_picture_free(p);
    CHECK_INT(llm_picture_new(&p, 0, 1, "x", &err), GGL_USAGE);
    CHECK_INT(llm_picture_new(&p, 1, (1LL << 30) + 1, "x", &err), GGL_USAGE);
    llm_picture_free(NULL);
}

TEST(files) {
    llm_picture *p;
    ggl_error err = {0};
    const char *path = test_path("picture");
    put_bmp(&b, 8, 8, 24, false, some_byte);
    CHECK(test_write_file(path, b.data, b.n));
    if (CHECK_OK(llm_picture_read_file(&p, path, NULL, &err), &err))
        check_pixels(p, some_byte);
    llm_picture_free(p);
    CHECK_OK(llm_picture_read_file(&p, path, &(llm_picture_limits){.bytes = 246}, &err), &err);
    llm_picture_free(p);
    CHECK_INT(llm_picture_read_file(&p, path, &(llm_picture_limits){.bytes = 245}, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "has more than the 245 bytes that are read");
    CHECK(p == NULL);
    CHECK_INT(llm_picture_read_file(&p, test_path("none"), NULL, &err), GGL_IO);
    CHECK_INT(llm_picture_read_file(&p, test_folder(), NULL, &err), GGL_IO);
    CHECK_INT(llm_picture_read_file(&p, "/dev/zero", &(llm_picture_limits){.bytes = 200000}, &err),
              GGL_LIMIT);
    CHECK(test_write_file(path, "", 0));
    CHECK_INT(llm_picture_read_file(&p, path, NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "is empty");
}

/* --- PNG ------------------------------------------------------------------------------------- */

static png_how how; /* of the picture that is read */

static uint32_t png_sample(int x, int y, int c) {
    return (uint32_t)(x * 2311 + y * 977 + c * 12347 + 99) & ((1U << how.depth) - 1);
}

static uint32_t png_want(int x, int y, int c) {
    static const int times[] = {7, 5, 3};
    if (how.color == PNG_PALETTE)
        return png_sample(x, y, 0) * (uint32_t)times[c] & 0xff;
    const uint32_t value = png_sample(x, y, how.color & 2 ? c : 0);
    return how.depth == 16 ? value >> 8 : value * 255 / ((1U << how.depth) - 1);
}

static void need_png(void) {
    if (!strstr(llm_picture_kinds(), "PNG"))
        SKIP("a build without libpng");
}

TEST(png) {
    static const struct {
        int color, depth;
    } all[] = {{PNG_GREY, 1},      {PNG_GREY, 2},       {PNG_GREY, 4},       {PNG_GREY, 8},
               {PNG_GREY, 16},     {PNG_RGB, 8},        {PNG_RGB, 16},       {PNG_PALETTE, 1},
               {PNG_PALETTE, 2},   {PNG_PALETTE, 4},    {PNG_PALETTE, 8},    {PNG_GREY_ALPHA, 8},
               {PNG_RGB_ALPHA, 8}, {PNG_RGB_ALPHA, 16}, {PNG_GREY_ALPHA, 16}};
    need_png();
    if (test_skipped)
        return;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int i = 0; i < 4; i++) {
            how = (png_how){.width = i == 3 ? 1 : 13,
                            .height = i == 3 ? 1 : 9,
                            .depth = all[k].depth,
                            .color = all[k].color,
                            .interlaced = i > 1,
                            .transparent = i % 2 && all[k].color < PNG_GREY_ALPHA,
                            .sample = png_sample};
            put_png(&b, &how);
            llm_picture *p = read_b(how.width, how.height);
            if (p)
                check_pixels(p, png_want);
            llm_picture_free(p);
        }
}

TEST(png_damaged) {
    need_png();
    if (test_skipped)
        return;
    how = (png_how){.width = 7,
                    .height = 5,
                    .depth = 8,
                    .color = PNG_RGB,
                    .orientation = 6,
                    .sample = png_sample};
    put_png(&b, &how);
    check_cut("PNG that ends early");
    /* a wrong sum of the header, the pixels and the end; one of the chunk with the orientation counts for nothing */
    static const char *const names[] = {"IHDR", "IDAT", "IEND"};
    for (int i = 0; i < 3; i++) {
        put_png(&b, &how);
        unsigned char *at = ggl_find_bytes(b.data, b.n, names[i], 4);
        const size_t n = (size_t)at[-1] + ((size_t)at[-2] << 8);
        at[4 + n] ^= 1;
        const char *words = words_of(b.data, b.n, GGL_FORMAT);
        CHECK_HAS(words, "x: PNG that is damaged: ");
        CHECK_HAS(words, names[i]);
    }
    how.orientation = 0;
    how.sample = png_sample;
    put_png(&b, &how);
    b.data[16] = 0x7f; /* a width of two milliards; the limit is checked before the sum can be */
    const size_t at = 12;
    const uint32_t sum = png_sum(b.data + at, 17);
    for (int k = 0; k < 4; k++)
        b.data[at + 17 + (size_t)k] = (unsigned char)(sum >> (24 - 8 * k));
    CHECK_HAS(words_of(b.data, b.n, GGL_LIMIT), "more than the 178956970 that are read");
}

/* --- orientation ----------------------------------------------------------------------------- */

/* A picture of 3 x 2 pixels 1 to 6, and what is seen for each orientation, as the standard describes it: where its row 0 and column 0 are. */
static uint32_t numbered(int x, int y, int c) {
    (void)c;
    return (uint32_t)(y * 3 + x + 1);
}

TEST(orientation) {
    static const unsigned char want[][6] = {
        {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
        {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
    need_png();
    if (test_skipped)
        return;
    for (int o = 0; o <= 9; o++) {
        const bool is_turned = o >= 5 && o <= 8;
        how = (png_how){.width = 3,
                        .height = 2,
                        .depth = 8,
                        .color = PNG_GREY,
                        .orientation = o,
                        .sample = numbered};
        put_png(&b, &how);
        llm_picture *p = read_b(is_turned ? 2 : 3, is_turned ? 3 : 2);
        for (int i = 0; i < 6 && p; i++)
            CHECK_INT(p->rgb[3 * i], want[o >= 1 && o <= 8 ? o - 1 : 0][i]);
        llm_picture_free(p);
    }
}

/* --- preparing ------------------------------------------------------------------------------- */

static const llm_arch_picture follows = {.patch = 14,
                                         .block = 2,
                                         .fit = LLM_FIT_FOLLOW,
                                         .resize = LLM_RESIZE_PIL_CUBIC,
                                         .least = 56 * 56,
                                         .most = 28 * 28 * 1280,
                                         .std = {1, 1, 1}};

static void expect_fit(const llm_arch_picture *rule, int64_t width, int64_t height,
                       int64_t to_width, int64_t to_height) {
    llm_picture_fit f;
    ggl_error err = {0};
    if (!CHECK_OK(llm_picture_fit_for(&f, rule, width, height, "x", &err), &err))
        return;
    CHECK_INT(f.width, to_width);
    CHECK_INT(f.height, to_height);
    CHECK_INT(f.n_rows, rule->first + f.nx * f.ny);
}

TEST(fits) {
    llm_arch_picture rule = follows;
    expect_fit(&rule, 640, 480, 644, 476);
    expect_fit(&rule, 70, 42, 56, 56); /* 2.5 and 1.5: to the even multiple */
    expect_fit(&rule, 1, 1, 56, 56);
    expect_fit(&rule, 5, 1000, 28, 812); /* 0 wide at first, and so too small */
    expect_fit(&rule, 10000, 10000, 980, 980);
    rule.least = 28 * 28 + 100, rule.most = 28 * 28 + 700; /* not two whole blocks */
    expect_fit(&rule, 16, 17, 28, 28);
    rule = follows;
    rule.fit = LLM_FIT_FILL;
    expect_fit(&rule, 1, 1, 980, 980);
    expect_fit(&rule, 640, 480, 1148, 840); /* enlarged, and rounded down */
    expect_fit(&rule, 1000, 10, 9996, 84);
    rule.least = 28 * 28, rule.most = 9 * 28 * 28;
    expect_fit(&rule, 20, 1000, 28, 252);
    expect_fit(&rule, 100, 4, 252, 28);
    rule.fit = LLM_FIT_STEPS;
    rule.least = 1, rule.most = 28 * 28 * 4;
    expect_fit(&rule, 30, 20, 56, 28);
    expect_fit(&rule, 100, 50, 56, 28);     /* by 0.54 */
    expect_fit(&rule, 9000, 10000, 28, 56); /* no step is small enough */
    expect_fit(&rule, 60000, 1000, 112, 28);
    rule.fit = LLM_FIT_WITHIN;
    expect_fit(&rule, 30, 5, 56, 28);  /* not enlarged */
    expect_fit(&rule, 69, 69, 84, 84); /* 4 x 4 of its patches are whole */
    expect_fit(&rule, 140, 140, 56, 56);
    expect_fit(&rule, 1000, 10, 476, 28); /* a thin one counts as a patch high */
    rule.size = 28;
    expect_fit(&rule, 140, 70, 28, 28);
    rule.size = 0;
    rule.fit = LLM_FIT_LONGEST;
    rule.patch = 16, rule.block = 1, rule.size = 1024;
    expect_fit(&rule, 1024, 1024, 1024, 1024);
    expect_fit(&rule, 2000, 1000, 1024, 512);
    expect_fit(&rule, 17, 1, 32, 16);
    expect_fit(&rule, 10000, 1, 1024, 16);
    rule.fit = LLM_FIT_CROP;
    rule.size = 336, rule.first = 1;
    expect_fit(&rule, 1, 10000, 336, 336);
    rule.fit = LLM_FIT_PAD;
    expect_fit(&rule, 10000, 1, 336, 336);
}

/* Sizes and places as the processor of GLM-5.3-Flash in transformers 5.24 computes them. */
TEST(on_a_canvas) {
    static const int64_t size[][6] = {
        {30, 5, 140, 28, 140, 23},      {28, 28, 56, 56, 56, 56},
        {200, 20, 224, 28, 200, 20},    {100, 100, 112, 112, 100, 100},
        {140, 140, 112, 112, 112, 112}, {1000, 10, 504, 28, 504, 5},
        {10, 1000, 28, 560, 5, 560},    {300, 200, 140, 112, 140, 93},
        {57, 20, 112, 56, 112, 39},     {2000, 3000, 112, 140, 93, 140},
        {1, 200, 28, 224, 1, 224}};
    ggl_error err = {0};
    llm_arch_picture rule = follows;
    rule.fit = LLM_FIT_CANVAS;
    rule.least = 4 * 28 * 28, rule.most = 20 * 28 * 28;
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        llm_picture_fit f;
        expect_fit(&rule, size[k][0], size[k][1], size[k][2], size[k][3]);
        REQUIRE_OK(llm_picture_fit_for(&f, &rule, size[k][0], size[k][1], "x", &err), &err);
        CHECK_INT(f.inner_width, size[k][4]);
        CHECK_INT(f.inner_height, size[k][5]);
        CHECK_INT(f.left, 0);
        CHECK_INT(f.top, 0);
    }
    rule.least = 1, rule.most = 28 * 28; /* a thin one whose every size has two blocks */
    expect_fit(&rule, 190, 1, 28, 28);
}

TEST(rules_and_shapes_without_a_size) {
    llm_picture_fit f;
    ggl_error err = {0};
    llm_arch_picture rule = follows;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 201, 1, "x", &err), GGL_LIMIT);
    CHECK_HAS(
        err.msg,
        "x: has 201 x 1 pixels; the model reads pictures of which no side is more than 200 times");
    CHECK_INT(llm_picture_fit_for(&f, &rule, 1, 201, "x", &err), GGL_LIMIT);
    CHECK_OK(llm_picture_fit_for(&f, &rule, 200, 1, "x", &err), &err);
    CHECK_INT(llm_picture_fit_for(&f, &rule, 0, 1, "x", &err), GGL_USAGE);
    CHECK_INT(llm_picture_fit_for(&f, &rule, INT64_MAX, 1, "x", &err), GGL_USAGE);
    rule.least = rule.most = INT64_MAX;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 30, 30, "x", &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "the model would see");
    rule = follows;
    rule.patch = 1LL << 40;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 30, 30, "x", &err), GGL_USAGE);
    rule = follows;
    rule.least = rule.most + 1;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 30, 30, "x", &err), GGL_USAGE);
    rule.least = 1, rule.most = 28 * 28 - 1; /* no whole block */
    for (rule.fit = LLM_FIT_FOLLOW; rule.fit <= LLM_FIT_WITHIN; rule.fit++)
        if (llm_arch_fit_is_counted(rule.fit))
            CHECK_INT(llm_picture_fit_for(&f, &rule, 30, 30, "x", &err), GGL_USAGE);
    rule = follows;
    rule.fit = LLM_FIT_PAD;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 30, 30, "x", &err), GGL_USAGE);
    rule.size = 14 * 3;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 30, 30, "x", &err), GGL_USAGE);
    CHECK_HAS(err.msg, "3 x 3 patches, which are no blocks of 2 x 2");
}

/* What is cut off is not computed: it would be a gigabyte. */
TEST(cut_off_pictures_take_little_memory) {
    llm_picture *p, *seen;
    ggl_error err = {0};
    llm_arch_picture rule = {
        .patch = 14, .size = 336, .block = 1, .fit = LLM_FIT_CROP, .std = {1, 1, 1}};
    REQUIRE_OK(llm_picture_new(&p, 10000, 1, "x", &err), &err);
    for (int k = 0; k <= LLM_RESIZE_PIL_LANCZOS; k++) {
        const size_t before = alloc_bytes();
        rule.resize = (llm_arch_resize)k;
        if (CHECK_OK(llm_picture_seen(&seen, &rule, p, "x", &err), &err))
            CHECK_INT(seen->width, 336);
        CHECK(alloc_bytes() - before < 1000000);
        llm_picture_free(seen);
    }
    rule.resize = (llm_arch_resize)77;
    CHECK_INT(llm_picture_seen(&seen, &rule, p, "x", &err), GGL_USAGE);
    CHECK(seen == NULL);
    llm_picture_free(p);
}

/* A small file may hold a line of millions of pixels. Resizing first makes each of its pixels as wide as the new picture, so that such a line
 * would take hundreds of times the memory that the limit of pixels allows. */
TEST(long_sides) {
    CHECK_HAS(words_of("P5 65536 1 255\n", 15, GGL_LIMIT),
              "x: has 65536 x 1 pixels, but a side may have at most 65535: make it smaller");
    CHECK_HAS(words_of("P5 1 178956970 255\n", 19, GGL_LIMIT), "x: has 1 x 178956970 pixels");
    CHECK_HAS(words_of("P5 1 65535 255\n", 15, GGL_FORMAT), "ends early");
}

/* A color stays what it is, however it is resized. */
TEST(one_color) {
    llm_picture *p, *seen;
    ggl_error err = {0};
    llm_arch_picture rule = {.patch = 1, .size = 29, .block = 1, .std = {1, 1, 1}};
    REQUIRE_OK(llm_picture_new(&p, 100, 7, "x", &err), &err);
    memset(p->rgb, 200, 100 * 7 * 3);
    for (int k = 0; k <= LLM_RESIZE_PIL_LANCZOS; k++) {
        int n_wrong = 0;
        rule.resize = (llm_arch_resize)k;
        REQUIRE_OK(llm_picture_seen(&seen, &rule, p, "x", &err), &err);
        for (int i = 0; i < 29 * 29 * 3; i++)
            n_wrong += seen->rgb[i] != 200;
        CHECK_INT(n_wrong, 0);
        llm_picture_free(seen);
    }
    llm_picture_free(p);
}

TEST(rows_need_whole_blocks) {
    llm_picture *p;
    llm_picture_rows *r;
    ggl_error err = {0};
    REQUIRE_OK(llm_picture_new(&p, 28, 42, "x", &err), &err);
    CHECK_INT(llm_picture_rows_new(&r, &follows, p, "x", &err), GGL_USAGE);
    CHECK_HAS(err.msg, "28 x 42 pixels, which are no blocks of 2 x 2 patches of 14");
    CHECK(r == NULL);
    llm_picture_free(p);
}

/* Squares of 2 x 2 patches within blocks of 4 x 4. */
TEST(blocks_of_smaller_squares) {
    static const int y[] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
    static const int x[] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
    llm_picture *p;
    llm_picture_rows *r;
    llm_picture_fit f;
    ggl_error err = {0};
    llm_arch_picture rule = follows;
    rule.patch = 1, rule.block = 4, rule.inner[0] = 2;
    REQUIRE_OK(llm_picture_new(&p, 8, 8, "x", &err), &err);
    REQUIRE_OK(llm_picture_rows_new(&r, &rule, p, "x", &err), &err);
    for (int k = 0; k < 64; k++) {
        CHECK_INT(r->y[k], k / 32 * 4 + y[k % 16]);
        CHECK_INT(r->x[k], k / 16 % 2 * 4 + x[k % 16]);
    }
    llm_picture_rows_free(r);
    llm_picture_free(p);
    rule.inner[0] = 3;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 8, 8, "x", &err), GGL_USAGE);
}

static const llm_arch_picture windowed = {.patch = 2,
                                          .size = 48,
                                          .block = 2,
                                          .resize = LLM_RESIZE_PIL_LINEAR,
                                          .longest = 120,
                                          .thin = 32,
                                          .std = {1, 1, 1},
                                          .tiles = {.by = LLM_TILES_WINDOWS, .size = 32}};

static void expect_windows(int64_t width, int64_t height, int64_t nx, int64_t ny, int64_t window) {
    llm_picture_tiles t;
    ggl_error err = {0};
    REQUIRE_OK(llm_picture_tiles_for(&t, &windowed, width, height, "x", &err), &err);
    CHECK_INT(t.nx, nx);
    CHECK_INT(t.ny, ny);
    CHECK_INT(t.window, window);
    if (nx > 0) {
        CHECK_INT(t.width, 32);
        CHECK_INT(t.height, 32);
    }
}

static void expect_patches(int64_t width, int64_t height, int64_t then_width, int64_t then_height) {
    llm_picture_fit f;
    ggl_error err = {0};
    const llm_arch_picture rule = {.patch = 4,
                                   .block = 1,
                                   .fit = LLM_FIT_PATCHES,
                                   .least = 12 * 16,
                                   .most = 80 * 16,
                                   .std = {1, 1, 1}};
    REQUIRE_OK(llm_picture_fit_for(&f, &rule, width, height, "x", &err), &err);
    CHECK_INT(f.width, then_width);
    CHECK_INT(f.height, then_height);
}

/* As Siglip2's get_image_size_for_max_num_patches has them, of transformers 5.24. */
TEST(as_many_patches) {
    expect_patches(40, 30, 40, 28);
    expect_patches(60, 40, 44, 28);
    expect_patches(7, 5, 16, 12);
    expect_patches(41, 13, 40, 12);
    expect_patches(4000, 20, 320, 4);
}

TEST(windows) {
    expect_windows(48, 32, 0, 0, 0); /* as large as the whole, and not long */
    expect_windows(48, 31, 2, 1, 31);
    expect_windows(49, 33, 2, 1, 32);
    expect_windows(38, 64, 1, 2, 32); /* six of the 38 columns are less than a fifth of a window */
    expect_windows(39, 64, 2, 2, 32);
    expect_windows(120, 30, 4, 1, 32);
    expect_windows(120, 29, 4, 1, 29); /* four times as long, and more */
}

/* What is around a window has the color, and one of another size is resized. */
TEST(drawn_windows) {
    llm_picture *p, *tile;
    llm_picture_tiles t;
    ggl_error err = {0};
    llm_arch_picture rule = windowed;
    rule.tiles.color[1] = 9;
    REQUIRE_OK(llm_picture_new(&p, 64, 20, "x", &err), &err);
    memset(p->rgb, 100, (size_t)(64 * 20 * 3));
    REQUIRE_OK(llm_picture_tiles_for(&t, &rule, 64, 20, "x", &err), &err);
    REQUIRE_OK(llm_picture_tile(&tile, &rule, &t, p, 0, 1, "x", &err), &err);
    CHECK_INT(tile->width, 32);
    CHECK_INT(tile->rgb[19 * 32 * 3 + 1], 100);
    CHECK_INT(tile->rgb[20 * 32 * 3], 0);
    CHECK_INT(tile->rgb[20 * 32 * 3 + 1], 9);
    llm_picture_free(tile);
    rule.tiles.size = 40;
    REQUIRE_OK(llm_picture_tiles_for(&t, &rule, 44, 20, "x", &err), &err);
    CHECK_INT(t.window, 20);
    REQUIRE_OK(llm_picture_tile(&tile, &rule, &t, p, 0, 1, "x", &err), &err);
    CHECK_INT(tile->width, 40);
    CHECK_INT(tile->rgb[40 * 40 * 3 - 1], 100);
    llm_picture_free(tile);
    llm_picture_free(p);
}

static void expect_before(int64_t width, int64_t height, int64_t then_width, int64_t then_height) {
    llm_picture *p, *before;
    ggl_error err = {0};
    REQUIRE_OK(llm_picture_new(&p, width, height, "x", &err), &err);
    memset(p->rgb, 200, (size_t)(width * height * 3));
    REQUIRE_OK(llm_picture_before(&before, &windowed, p, "x", &err), &err);
    CHECK_INT(before ? before->width : 0, then_width);
    CHECK_INT(before ? before->height : 0, then_height);
    if (before) {
        const int64_t last = (before->width * before->height - 1) * 3;
        CHECK_INT(before->rgb[0], 200);
        CHECK_INT(before->rgb[last], 4 * height < width || 4 * width < height ? 0 : 200);
    }
    llm_picture_free(before);
    llm_picture_free(p);
}

TEST(before) {
    expect_before(120, 32, 0, 0);
    expect_before(120, 31, 0, 0);
    expect_before(125, 31, 120, 120); /* thin: a square, which is too large */
    expect_before(5, 60, 60, 60);
    expect_before(121, 60, 120, 59);
    expect_before(60, 240, 30, 120);
}

TEST(thin_pictures_take_little_memory) {
    llm_picture *p, *before;
    ggl_error err = {0};
    REQUIRE_OK(llm_picture_new(&p, 1, 9000, "x", &err), &err);
    CHECK_INT(llm_picture_before(&before, &windowed, p, "x", &err), GGL_LIMIT);
    CHECK(!before && strstr(err.msg, "a square of 9000 x 9000"));
    llm_picture_free(p);
}

/* Tiles of 4 x 4 patches, in these squares of 2 x 2: rows of squares stand line by line through all tiles. */
TEST(woven_tiles) {
    llm_picture *p, *all;
    llm_picture_tiles t;
    llm_picture_rows *r;
    llm_picture_order o;
    int32_t place[3 * 9];
    ggl_error err = {0};
    llm_arch_picture rule = {
        .patch = 1,
        .size = 4,
        .block = 4,
        .inner = {2},
        .first = 4,
        .table = 4,
        .std = {1, 1, 1},
        .n_marks = 1,
        .line_end = "{0}",
        .tiles = {
            .by = LLM_TILES_FIT, .n_grid = 1, .grid = {{2, 1}}, .fit = LLM_FIT_PAD, .woven = true}};
    REQUIRE_OK(llm_picture_new(&p, 4, 3, "x", &err), &err);
    REQUIRE_OK(llm_picture_tiles_for(&t, &rule, 4, 3, "x", &err), &err);
    CHECK_INT(t.nx, 0); /* as small as a tile */
    rule.tiles.always = true;
    REQUIRE_OK(llm_picture_tiles_for(&t, &rule, 4, 3, "x", &err), &err);
    REQUIRE_OK(llm_picture_all_tiles(&all, &rule, &t, p, "x", &err), &err);
    CHECK_INT(all->width, 8);
    CHECK_INT(all->height, 4);
    REQUIRE_OK(llm_picture_rows_new(&r, &rule, all, "x", &err), &err);
    CHECK_INT(r->n, 36);
    CHECK_INT(r->x[4 + 16], 4);           /* the second tile's first patch, */
    CHECK_INT(r->entry[4 * (4 + 16)], 0); /* with the first position */
    for (int k = 0; k < 9; k++) {
        place[3 * k] = k == 0 ? -1 : 0;
        place[3 * k + 1] = r->y[4 * k] / 2;
        place[3 * k + 2] = r->x[4 * k] / 2;
    }
    REQUIRE_OK(llm_picture_order_new(&o, &rule, place, 9, &err), &err);
    static const int want[] = {1, 2, 5, 6, LLM_PICTURE_LINE, 3, 4, 7, 8, LLM_PICTURE_LINE};
    CHECK_INT(o.n, 10);
    for (int k = 0; k < 10 && o.n == 10; k++)
        CHECK_INT(o.at[k], want[k]);
    llm_picture_order_fini(&o);
    llm_picture_rows_free(r);
    llm_picture_free(all);
    llm_picture_free(p);
}

/* Tiles that are parts of their own: rows stand line by line through those of a line. Their number follows from the picture's longer side. */
TEST(tiles_in_lines) {
    llm_picture_tiles t;
    llm_picture_order o;
    ggl_error err = {0};
    int32_t place[3 * 8];
    llm_arch_picture rule = {
        .patch = 2,
        .size = 16,
        .block = 1,
        .fit = LLM_FIT_PIL_PAD,
        .std = {1, 1, 1},
        .tiles = {.by = LLM_TILES_RATIO, .least = 2, .most = 9, .size = 10, .in_lines = true}};
    REQUIRE_OK(llm_picture_tiles_for(&t, &rule, 10, 3, "x", &err), &err);
    CHECK_INT(t.nx, 0);
    REQUIRE_OK(llm_picture_tiles_for(&t, &rule, 11, 4, "x", &err), &err);
    CHECK_INT(t.nx, 3);
    CHECK_INT(t.ny, 1);
    CHECK_INT(t.width, 10);
    for (int k = 0; k < 8; k++) { /* two tiles of 2 x 2 */
        place[3 * k] = 0;
        place[3 * k + 1] = k % 4 / 2;
        place[3 * k + 2] = k % 2 + k / 4 * 2;
    }
    REQUIRE_OK(llm_picture_order_new(&o, &rule, place, 8, &err), &err);
    static const int want[] = {0, 1, 4, 5, 2, 3, 6, 7};
    CHECK_INT(o.n, 8);
    for (int k = 0; k < 8 && o.n == 8; k++)
        CHECK_INT(o.at[k], want[k]);
    llm_picture_order_fini(&o);
}

/* As ImageOps.pad of Pillow: halves become even. */
TEST(padded_as_pillow) {
    static const int64_t size[][6] = {{40, 30, 64, 48, 0, 8}, {37, 80, 30, 64, 17, 0},
                                      {64, 5, 64, 5, 0, 30}, /* 29.5 above */
                                      {64, 3, 64, 3, 0, 30}, /* 30.5 */
                                      {9, 900, 1, 64, 32, 0}, {7, 7, 64, 64, 0, 0}};
    ggl_error err = {0};
    const llm_arch_picture rule = {
        .patch = 2, .size = 64, .block = 1, .fit = LLM_FIT_PIL_PAD, .std = {1, 1, 1}};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        llm_picture_fit f;
        REQUIRE_OK(llm_picture_fit_for(&f, &rule, size[k][0], size[k][1], "x", &err), &err);
        CHECK_INT(f.width, 64);
        CHECK_INT(f.inner_width, size[k][2]);
        CHECK_INT(f.inner_height, size[k][3]);
        CHECK_INT(f.left, size[k][4]);
        CHECK_INT(f.top, size[k][5]);
    }
}

/* As the authors of DeepSeek-V4-Flash-Vision compute them. */
TEST(sizes_for_so_many_tokens) {
    static const int64_t size[][4] = {
        {640, 480, 644, 490},   {4000, 3000, 882, 658}, {100, 100, 392, 392},
        {1, 190, 28, 5306},     {3000, 16, 1092, 140},  {160, 20, 1092, 140},
        {500, 3999, 252, 2002}, {997, 1003, 742, 756},  {30, 5000, 42, 5012}};
    llm_arch_picture rule = {.patch = 14,
                             .block = 3,
                             .fit = LLM_FIT_TOKENS,
                             .least = 147456,
                             .most = 384,
                             .pairs = 4,
                             .wide = 8,
                             .std = {1, 1, 1}};
    ggl_error err = {0};
    llm_picture_fit f;
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        REQUIRE_OK(llm_picture_fit_for(&f, &rule, size[k][0], size[k][1], "x", &err), &err);
        CHECK_INT(f.width, size[k][2]);
        CHECK_INT(f.height, size[k][3]);
        CHECK_INT(f.nx, (f.width + 41) / 42 * 3);
        CHECK(llm_arch_picture_tokens(&rule, f.nx / 3, f.ny / 3) <= rule.most);
    }
    for (rule.most = 16; rule.most < 60; rule.most++)
        for (int64_t w = 1; w < 2000; w = w * 3 + 1)
            for (int64_t h = (w + 199) / 200; h < 2000 && h <= 200 * w; h = h * 2 + 1) {
                REQUIRE_OK(llm_picture_fit_for(&f, &rule, w, h, "x", &err), &err);
                CHECK(f.nx > 0 && f.ny > 0 &&
                      llm_arch_picture_tokens(&rule, f.nx / 3, f.ny / 3) <= rule.most);
            }
    rule.pairs = 0;
    CHECK_INT(llm_picture_fit_for(&f, &rule, 30, 30, "x", &err), GGL_USAGE);
}

/* A block that lacks patches has rows of zeros, of which the places are negative. */
TEST(blocks_that_are_filled) {
    static uint8_t bytes[6 * 4 * 3];
    memset(bytes, 200, sizeof bytes);
    const llm_arch_picture rule = {.patch = 2,
                                   .block = 2,
                                   .fit = LLM_FIT_TOKENS,
                                   .least = 1,
                                   .most = 16,
                                   .pairs = 4,
                                   .std = {1, 1, 1}};
    const llm_picture p = {.width = 6, .height = 2, .rgb = bytes};
    ggl_error err = {0};
    llm_picture_rows *r;
    REQUIRE_OK(llm_picture_rows_new(&r, &rule, &p, "x", &err), &err);
    CHECK_INT(r->n, 8);
    for (int64_t k = 0; k < r->n; k++) {
        const bool there = k == 0 || k == 1 || k == 4;
        CHECK(there == (r->row[k * r->n_row] > 0) && there == (r->x[k] >= 0) &&
              there == (r->y[k] >= 0));
    }
    CHECK_INT(r->x[5], -4);
    CHECK_INT(r->y[7], -2);
    llm_picture_rows_free(r);
}

/* Two lines of two rows and one of two more, behind four rows with names. */
TEST(rows_in_pairs_of_lines) {
    static const int32_t place[10][3] = {{-1},      {-1},      {-1},      {-1},      {0, 0, 0},
                                         {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {0, 2, 0}, {0, 2, 1}},
                         want[] = {3, 0, 4, 6, 5, 7, 2, 2, 8, 3, 9, 3, 2, 3, 1};
    const llm_arch_picture rule = {
        .n_marks = 4, .pairs = 4, .begin = "{0}", .end = "{1}", .line_end = "{2}", .fill = "{3}"};
    ggl_error err = {0};
    llm_picture_order o;
    REQUIRE_OK(llm_picture_pairs_new(&o, &rule, place[0], 10, &err), &err);
    CHECK_INT(o.n, 15);
    for (int64_t k = 0; k < o.n && k < 15; k++)
        CHECK_INT(o.at[k], want[k]);
    llm_picture_order_fini(&o);
    REQUIRE_OK(llm_picture_pairs_new(&o, &rule, place[0], 6, &err),
               &err); /* one line: 6 rows, and 2 that fill */
    CHECK_INT(o.n, 11);
    llm_picture_order_fini(&o);
}

static void expect_seen(int64_t width, int64_t height, int64_t nx, int64_t ny, int64_t left,
                        int64_t right, int64_t top, int64_t bottom) {
    int64_t at[4];
    llm_picture_seen_cells(width, height, nx, ny, &at[0], &at[1], &at[2], &at[3]);
    CHECK_INT(at[0], left);
    CHECK_INT(at[1], right);
    CHECK_INT(at[2], top);
    CHECK_INT(at[3], bottom);
}

/* Places in a table of positions, of a picture that counts as a tenth of a patch larger. */
TEST(widened) {
    llm_picture *p = NULL;
    llm_picture_rows *r = NULL;
    ggl_error err = {0};
    const llm_arch_picture rule = {.patch = 1,
                                   .size = 2,
                                   .block = 1,
                                   .table = 3,
                                   .between = LLM_BETWEEN_LINEAR,
                                   .widened = 0.1,
                                   .std = {1, 1, 1}};
    REQUIRE_OK(llm_picture_new(&p, 2, 2, "x", &err), &err);
    REQUIRE_OK(llm_picture_rows_new(&r, &rule, p, "x", &err), &err);
    CHECK_INT(r->n, 4);
    for (int k = 0; k < 2; k++) { /* the first patch, and the last one */
        const double at = (k + 0.5) * 3 / 2.1 - 0.5 - k;
        CHECK_INT(r->entry[12 * k], 4 * k);
        CHECK_INT(r->entry[12 * k + 3], 4 * k + 4);
        CHECK(fabs((double)r->share[12 * k] - (1 - at) * (1 - at)) < 1e-6);
        CHECK(fabs((double)r->share[12 * k + 3] - at * at) < 1e-6);
    }
    llm_picture_rows_free(r);
    llm_picture_free(p);
}

TEST(cells_that_show_the_picture) {
    expect_seen(40, 30, 8, 4, 1, 7, 0, 4);   /* 5.3 columns: one around on each side */
    expect_seen(70, 20, 12, 4, 0, 12, 0, 4); /* 3.4 lines */
    expect_seen(30, 40, 6, 8, 0, 6, 0, 8);
    expect_seen(1, 100, 2, 4, 1, 1, 0, 4); /* less than a column: none */
}

static bool prepare(void *arg) {
    llm_picture *p = NULL, *seen = NULL;
    llm_picture_rows *r = NULL;
    ggl_error err = {0};
    llm_arch_picture rule = follows;
    rule.table = 3;
    rule.resize = *(llm_arch_resize *)arg;
    ggl_status st = llm_picture_read(&p, b.data, b.n, "x", NULL, &err);
    if (st == GGL_OK)
        st = llm_picture_seen(&seen, &rule, p, "x", &err);
    if (st == GGL_OK)
        st = llm_picture_rows_new(&r, &rule, seen, "x", &err);
    CHECK(st == GGL_OK || (st == GGL_NOMEM && strncmp(err.msg, "x: out of memory", 16) == 0));
    llm_picture_free(p);
    llm_picture_free(seen);
    llm_picture_rows_free(r);
    return st == GGL_OK;
}

TEST(without_memory) {
    put_bmp(&b, 30, 20, 24, false, some_byte);
    for (int k = 0; k <= LLM_RESIZE_PIL_LANCZOS; k++)
        CHECK(alloc_fail_each(prepare, &k) > 5);
}

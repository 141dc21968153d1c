/* unit.picture_webp: WebP, in files that libwebp has written. */
#include <webp/encode.h>

#include "picture/picture.h"
#include "picture_bytes.h"
#include "test.h"

enum { WIDTH = 20, HEIGHT = 12 };

static picture_bytes b;

static unsigned char level(int x, int y, int c) {
    return (unsigned char)(x * 5 + y * 3 + c * 40);
}

/* The chunks of a picture, without the header of a file; with alpha, colors are kept where nothing can be seen. */
static void write_chunks(picture_bytes *to, bool has_alpha, bool is_lossless) {
    static unsigned char x[WIDTH * HEIGHT * 4];
    WebPConfig config;
    WebPPicture p;
    WebPMemoryWriter w;
    const int n_channels = has_alpha ? 4 : 3;
    REQUIRE(WebPConfigInit(&config) && WebPPictureInit(&p));
    for (int i = 0; i < WIDTH * HEIGHT * n_channels; i++)
        x[i] = i % n_channels == 3
                   ? (unsigned char)(i * 11)
                   : level(i / n_channels % WIDTH, i / n_channels / WIDTH, i % n_channels);
    config.lossless = is_lossless;
    config.exact = 1;
    config.quality = is_lossless ? 50 : 95;
    p.use_argb = is_lossless;
    p.width = WIDTH;
    p.height = HEIGHT;
    WebPMemoryWriterInit(&w);
    p.writer = WebPMemoryWrite;
    p.custom_ptr = &w;
    CHECK(has_alpha ? WebPPictureImportRGBA(&p, x, WIDTH * 4)
                    : WebPPictureImportRGB(&p, x, WIDTH * 3));
    CHECK(WebPEncode(&config, &p));
    WebPPictureFree(&p);
    /* "RIFF", a size, "WEBP", and with alpha of a lossy picture a chunk "VP8X" of 18 bytes */
    const size_t skip = memcmp(w.mem + 12, "VP8X", 4) == 0 ? 30 : 12;
    put(to, w.mem + skip, w.size - skip);
    WebPMemoryWriterClear(&w);
}

static void end_file(void) {
    const size_t n = b.n - 8;
    for (int k = 0; k < 4; k++)
        b.data[4 + k] = (unsigned char)(n >> 8 * k);
}

static void begin_file(int flags, int width, int height) {
    b.n = 0;
    put(&b, "RIFF\0\0\0\0WEBP", 12);
    if (!flags)
        return;
    put(&b, "VP8X\12\0\0\0", 8);
    put_little(&b, (uint32_t)flags, 4);
    put_little(&b, (uint32_t)width - 1, 3);
    put_little(&b, (uint32_t)height - 1, 3);
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

/* Where the picture lies within p. */
static int largest_difference(const llm_picture *p, int left, int top) {
    int most = 0;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < 3; c++) {
                const int off =
                    abs(p->rgb[((y + top) * p->width + x + left) * 3 + c] - level(x, y, c));
                most = off > most ? off : most;
            }
    return most;
}

TEST(kinds) {
    for (int k = 0; k < 4; k++) {
        const bool is_lossless = k % 2, has_alpha = k / 2;
        begin_file(has_alpha && !is_lossless ? 0x10 : 0, WIDTH, HEIGHT);
        write_chunks(&b, has_alpha, is_lossless);
        end_file();
        llm_picture *p = read_b(WIDTH, HEIGHT);
        if (p)
            CHECK(largest_difference(p, 0, 0) <= (is_lossless ? 0 : 30));
        llm_picture_free(p);
        for (size_t n = 12; n < b.n; n++) {
            unsigned char *copy = malloc(n);
            ggl_error err = {0};
            memcpy(copy, b.data, n);
            const ggl_status st = llm_picture_read(&p, copy, n, "x", NULL, &err);
            CHECK_MSG(st == GGL_FORMAT || n + 4 >= b.n, "kind %d, cut to %zu of %zu: %d, %s", k, n,
                      b.n, (int)st, err.msg);
            CHECK(st == GGL_OK || strncmp(err.msg, "x: WebP that is damaged: ", 25) == 0);
            llm_picture_free(p);
            free(copy);
        }
    }
}

TEST(orientation) {
    for (int k = 0; k < 2; k++) {
        begin_file(0x08, WIDTH, HEIGHT);
        write_chunks(&b, false, true);
        const size_t at = b.n;
        put(&b, "EXIF\0\0\0\0", 8);
        if (k)
            put(&b, "Exif\0\0", 6);
        put_exif(&b, 8, true, false);
        b.data[at + 4] = (unsigned char)(b.n - at - 8);
        end_file();
        llm_picture *p = read_b(HEIGHT, WIDTH);
        if (p)
            CHECK_INT(p->rgb[(WIDTH - 1) * HEIGHT * 3], level(0, 0, 0));
        llm_picture_free(p);
    }
}

/* Two frames, of which the first covers a part of the canvas; the rest of that is black. */
static void write_animation(int left, int top, int width, int height) {
    begin_file(0x02, width, height);
    put(&b, "ANIM\6\0\0\0\xff\xff\xff\xff\0\0", 14);
    for (int k = 0; k < 2; k++) {
        put(&b, "ANMF", 4);
        const size_t at = b.n;
        put_little(&b, 0, 4);
        put_little(&b, (uint32_t)left / 2, 3);
        put_little(&b, (uint32_t)top / 2, 3);
        put_little(&b, WIDTH - 1, 3);
        put_little(&b, HEIGHT - 1, 3);
        put_little(&b, 100, 3);
        put_little(&b, 0, 1);
        write_chunks(&b, false, true);
        const size_t n = b.n - at - 4;
        for (int i = 0; i < 4; i++)
            b.data[at + (size_t)i] = (unsigned char)(n >> 8 * i);
        if (n % 2)
            put_little(&b, 0, 1);
    }
    end_file();
}

TEST(animation) {
    write_animation(6, 4, 40, 30);
    llm_picture *p = read_b(40, 30);
    if (p) {
        CHECK_INT(largest_difference(p, 6, 4), 0);
        CHECK(memcmp(p->rgb, "\0\0\0", 3) == 0);
    }
    llm_picture_free(p);
    write_animation(22, 4, 40, 30);
    ggl_error err = {0};
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg,
              "x: WebP whose first frame of 20 x 12 pixels at 22, 4 lies outside its 40 x 30");
    b.n = 30 + 14;
    end_file();
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), GGL_FORMAT);
}

TEST(limits) {
    llm_picture *p;
    ggl_error err = {0};
    begin_file(0, 0, 0);
    write_chunks(&b, false, true);
    end_file();
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x",
                               &(llm_picture_limits){.pixels = WIDTH * HEIGHT - 1}, &err),
              GGL_LIMIT);
    write_animation(0, 0, 1 << 16, 1 << 13);
    CHECK_INT(llm_picture_read(&p, b.data, b.n, "x", NULL, &err), GGL_LIMIT);
}

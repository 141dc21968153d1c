/* PNG, by libpng. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "decoder.h"

typedef struct reader {
    png_structp png;
    png_infop info;
    const picture_source *s;
    size_t at;
    llm_picture *p;
    ggl_status st;
    ggl_error *err;
} reader;

/* libpng leaves its functions through here only, so that nothing is printed. */
static void on_error(png_structp png, png_const_charp words) {
    reader *const r = png_get_error_ptr(png);
    if (r->st == GGL_OK)
        r->st = ggl_fail(r->err, GGL_FORMAT, "%s: PNG that is damaged: %s", r->s->name, words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words) {
    (void)png, (void)words; /* of chunks that do not change the pixels */
}

static void read_bytes(png_structp png, png_bytep to, size_t n) {
    reader *const r = png_get_io_ptr(png);
    if (n > r->s->n - r->at) {
        r->st = ggl_fail(r->err, GGL_FORMAT, "%s: PNG that ends early, after %zu bytes", r->s->name,
                         r->s->n);
        png_longjmp(png, 1);
    }
    memcpy(to, r->s->data + r->at, n);
    r->at += n;
}

/* 8 bits of each color, whatever the file has. Without `tRNS`, a transparent color is one like others. */
static void ask_for_rgb(reader *r) {
    const int color = png_get_color_type(r->png, r->info);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    if (!(color & PNG_COLOR_MASK_COLOR)) {
        png_set_expand_gray_1_2_4_to_8(r->png);
        png_set_gray_to_rgb(r->png);
    }
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png); /* a palette's, too */
}

/* What may leave through setjmp of `decode`; variables there would lose their values. */
static void read_picture(reader *r) {
    png_set_read_fn(r->png, r, read_bytes);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* `most` is the limit */
    png_read_info(r->png, r->info);
    r->st = llm_picture_sized(&r->p, r->s, png_get_image_width(r->png, r->info),
                              png_get_image_height(r->png, r->info), r->err);
    if (r->st != GGL_OK)
        return;
    ask_for_rgb(r);
    const int n_passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != (size_t)r->p->width * 3)
        png_error(r->png, "its rows have another length than its pixels");
    for (int pass = 0; pass < n_passes; pass++)
        for (int64_t y = 0; y < r->p->height; y++)
            png_read_row(r->png, r->p->rgb + y * r->p->width * 3, NULL);
    png_read_end(r->png, NULL);
}

static void decode(reader *r) {
    if (setjmp(png_jmpbuf(r->png)) == 0)
        read_picture(r);
}

bool llm_picture_has_png(void) {
    return true;
}

ggl_status llm_picture_png(llm_picture **out, const picture_source *s, ggl_error *err) {
    reader r = {.s = s, .err = err};
    *out = NULL;
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    if (r.info)
        decode(&r);
    else
        r.st = ggl_fail(err, GGL_NOMEM, "%s: out of memory for libpng %s", s->name,
                        PNG_LIBPNG_VER_STRING);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    if (r.st == GGL_OK)
        *out = r.p;
    else
        llm_picture_free(r.p);
    return r.st;
}

/* JPEG, by libjpeg or libjpeg-turbo. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "decoder.h"
#include "ggl/alloc.h"

enum {
    MOST_SCANS = 200
}; /* of a progressive file: each goes over all pixels, and programs write about ten */

typedef struct reader {
    struct jpeg_decompress_struct j;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    const picture_source *s;
    bool is_short; /* libjpeg wanted more bytes than there are */
    llm_picture *p;
    unsigned char *inks; /* a row of CMYK */
    ggl_status st;
    ggl_error *err;
} reader;

/* libjpeg leaves its functions through here, never by exit. */
_Noreturn static void leave(reader *r, const char *words) {
    if (r->st == GGL_OK)
        r->st = ggl_fail(r->err, GGL_FORMAT, "%s: JPEG %s", r->s->name, words);
    longjmp(r->back, 1);
}

_Noreturn static void leave_with_message(j_common_ptr j, const char *before) {
    char words[JMSG_LENGTH_MAX], all[JMSG_LENGTH_MAX + 32];
    j->err->format_message(j, words);
    snprintf(all, sizeof all, "%s%s", before, words);
    leave(j->client_data, all);
}

static void on_error(j_common_ptr j) {
    leave_with_message(j, "that is damaged: ");
}

/* After most warnings pixels are guesses. These are about what stands between the parts of a file. */
static void on_message(j_common_ptr j, int level) {
    static const int harmless[] = {JWRN_ADOBE_XFORM, JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR,
                                   JWRN_NOT_SEQUENTIAL, JWRN_TOO_MUCH_DATA};
    reader *const r = j->client_data;
    if (level >= 0)
        return;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (j->err->msg_code == harmless[i])
            return;
    if (r->is_short)
        leave(r, "that ends early");
    leave_with_message(j, "that is damaged: ");
}

static void on_progress(j_common_ptr j) {
    reader *const r = j->client_data;
    if (r->j.input_scan_number > MOST_SCANS)
        leave(r, "with more than 200 scans, which no program writes");
}

static void do_nothing(j_decompress_ptr j) {
    (void)j;
}

/* Behind the last byte there is an end marker, which is also what files without one get. */
static boolean on_end(j_decompress_ptr j) {
    static const JOCTET end[] = {0xff, JPEG_EOI};
    reader *const r = j->client_data;
    r->is_short = true;
    r->source.next_input_byte = end;
    r->source.bytes_in_buffer = sizeof end;
    return TRUE;
}

static void skip(j_decompress_ptr j, long n) {
    reader *const r = j->client_data;
    if (n > 0 && (size_t)n > r->source.bytes_in_buffer)
        on_end(j);
    else if (n > 0) {
        r->source.next_input_byte += n;
        r->source.bytes_in_buffer -= (size_t)n;
    }
}

/* The four inks are stored as what they leave over, as Adobe's programs do; a product with rounding. */
static uint8_t light(unsigned char ink, unsigned char black) {
    const int x = (255 - ink) * black + 128;
    return (uint8_t)(black - ((x + (x >> 8)) >> 8));
}

static void read_row(reader *r) {
    uint8_t *const to = r->p->rgb + (int64_t)r->j.output_scanline * r->p->width * 3;
    unsigned char *row = r->inks ? r->inks : to;
    jpeg_read_scanlines(&r->j, &row, 1);
    for (int64_t x = 0; r->inks && x < r->p->width; x++)
        for (int c = 0; c < 3; c++)
            to[3 * x + c] = light(r->inks[4 * x + c], r->inks[4 * x + 3]);
}

/* What may leave through setjmp of `decode`; variables there would lose their values. */
static void read_picture(reader *r) {
    jpeg_create_decompress(&r->j);
    r->j.src = &r->source;
    r->j.progress = &r->progress;
    jpeg_read_header(&r->j, TRUE);
    r->st = llm_picture_sized(&r->p, r->s, r->j.image_width, r->j.image_height, r->err);
    if (r->st != GGL_OK)
        return;
    const bool has_inks = r->j.jpeg_color_space == JCS_CMYK || r->j.jpeg_color_space == JCS_YCCK;
    r->j.out_color_space = has_inks ? JCS_CMYK : JCS_RGB;
    if (has_inks && !(r->inks = ggl_calloc((size_t)r->p->width, 4))) {
        r->st = ggl_fail(r->err, GGL_NOMEM, "%s: out of memory", r->s->name);
        return;
    }
    jpeg_start_decompress(&r->j);
    if (r->is_short &&
        jpeg_has_multiple_scans(&r->j)) /* scans may be missing: all is there, but blurred */
        leave(r, "that ends early");
    while (r->j.output_scanline < r->j.output_height)
        read_row(r);
}

static void decode(reader *r) {
    if (setjmp(r->back) == 0)
        read_picture(r);
    jpeg_destroy_decompress(&r->j);
}

bool llm_picture_has_jpeg(void) {
    return true;
}

ggl_status llm_picture_jpeg(llm_picture **out, const picture_source *s, ggl_error *err) {
    reader *const r = ggl_calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", s->name);
    r->s = s;
    r->err = err;
    r->j.err = jpeg_std_error(&r->errors);
    r->j.client_data = r;
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    r->progress.progress_monitor = on_progress;
    r->source = (struct jpeg_source_mgr){.next_input_byte = s->data,
                                         .bytes_in_buffer = s->n,
                                         .init_source = do_nothing,
                                         .fill_input_buffer = on_end,
                                         .skip_input_data = skip,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = do_nothing};
    decode(r);
    const ggl_status st = r->st;
    if (st == GGL_OK)
        *out = r->p;
    else
        llm_picture_free(r->p);
    ggl_free(r->inks);
    ggl_free(r);
    return st;
}

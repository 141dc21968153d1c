/* Pictures: read, prepared as the eye's descriptor says, run through its stages, and kept as rows that a text names by a mark. */
#include "seeing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/sha256.h"
#include "context.h"
#include "ggl/alloc.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "picture/prepare.h"

/* A mark is these two texts with the 64 hexadecimal digits of the picture's digest between them. */
static const char mark_begin[] = "<__media:", mark_end[] = "__>";
enum {
    MARK_BEGIN = sizeof mark_begin - 1,
    MARK_END = sizeof mark_end - 1,
    DIGITS = SHA256_HEX - 1,
    MARK = MARK_BEGIN + DIGITS + MARK_END
};
_Static_assert(MARK + 1 == LLM_IMAGE_MARK, "the public size");

/* Rows of pictures that nobody holds are kept as long as they are fewer bytes than this. */
#define KEPT_BYTES ((size_t)256 << 20)

struct llm_eye {
    llm_model *model;
    llm_arch_rows_of rows[LLM_ARCH_MAX_SOURCES];
    int n_rows, input;
    llm_media *media;
    llm_stages *stages;
    llm_marks marks;
    uint64_t digest; /* of the file: another eye makes other rows of the same picture */
};

static const llm_arch_picture *rule_of(const llm_eye *e) {
    return &e->rows[e->input].picture;
}

/* --- texts with marks ------------------------------------------------------------------------- */

static int hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads 64 hexadecimal digits. */
static bool read_digest(const char *hex, uint8_t id[LLM_MEDIA_ID]) {
    for (int i = 0; i < LLM_MEDIA_ID; i++) {
        const int high = hex_value(hex[2 * i]), low = high < 0 ? -1 : hex_value(hex[2 * i + 1]);
        if (low < 0)
            return false;
        id[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* Finds the first mark from *from on; *from becomes its place. */
static bool find_mark(const char *text, size_t n, size_t *from, uint8_t id[LLM_MEDIA_ID]) {
    const char *end = text + n, *at = text + *from;
    while ((size_t)(end - at) >= MARK && (at = memchr(at, '<', (size_t)(end - at) - MARK + 1))) {
        if (memcmp(at, mark_begin, MARK_BEGIN) == 0 &&
            memcmp(at + MARK_BEGIN + DIGITS, mark_end, MARK_END) == 0 &&
            read_digest(at + MARK_BEGIN, id)) {
            *from = (size_t)(at - text);
            return true;
        }
        at++;
    }
    return false;
}

static bool find_any(void *ctx, const char *text, size_t n, size_t *at, size_t *size) {
    uint8_t id[LLM_MEDIA_ID];
    (void)ctx;
    *size = MARK;
    return find_mark(text, n, at, id);
}

/* Appends what stands for a picture: the texts around it, and its rows. */
static ggl_status append_picture(void *ctx, const llm_tokenizer *t, const char *mark,
                                 llm_tokens *ids, ggl_error *err) {
    llm_eye *e = ctx;
    const llm_arch_picture *p = rule_of(e);
    uint8_t id[LLM_MEDIA_ID];
    int32_t first;
    int64_t n;
    (void)read_digest(mark + MARK_BEGIN, id);
    if (!llm_media_find(e->media, id, &first, &n))
        return ggl_fail(err, GGL_USAGE,
                        "the text names a picture that is not there any more: show it again");
    ggl_status st = llm_tokenize(t, p->begin, strlen(p->begin), LLM_TOKENIZE_SPECIAL, ids, err);
    for (int64_t i = 0; i < n && st == GGL_OK; i++)
        st = llm_tokens_append(ids, (int32_t)(first - i), err);
    if (st == GGL_OK)
        st = llm_tokenize(t, p->end, strlen(p->end), LLM_TOKENIZE_SPECIAL, ids, err);
    llm_media_release(e->media, first);
    return st;
}

const llm_marks *llm_eye_marks(const llm_eye *e) {
    return &e->marks;
}

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status find_input(llm_eye *e, ggl_error *err) {
    ggl_status st = llm_model_rows(e->model, e->rows, &e->n_rows, err);
    while (st == GGL_OK && e->input < e->n_rows && !e->rows[e->input].is_input)
        e->input++;
    const llm_arch *arch = llm_model_arch(e->model);
    const bool sees = st == GGL_OK && e->input < e->n_rows && rule_of(e)->patch > 0 &&
                      !llm_arch_reads_text(arch) && llm_arch_has_output(arch, "rows");
    return st == GGL_OK && !sees
               ? ggl_fail(err, GGL_UNSUPPORTED,
                          "%s makes no rows of pictures for a text model (%s): the file beside a "
                          "model's that does is mostly named mmproj-*.gguf",
                          ggl_gguf_name(llm_model_file(e->model)), llm_arch_name(arch))
               : st;
}

ggl_status llm_eye_open(llm_eye **out, const llm_loading *l, ggl_error *err) {
    llm_eye *e = *out = ggl_calloc(1, sizeof *e);
    if (!e)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    e->marks = (llm_marks){.find = find_any, .append = append_picture, .ctx = e};
    ggl_status st = llm_load_named(&e->model, l, err);
    if (st == GGL_OK)
        st = find_input(e, err);
    if (st == GGL_OK)
        e->digest = ggl_gguf_digest(llm_model_file(e->model));
    if (st == GGL_OK)
        st = llm_media_new(&e->media, KEPT_BYTES, err);
    if (st == GGL_OK)
        return st;
    llm_eye_close(e);
    *out = NULL;
    return st;
}

void llm_eye_close(llm_eye *e) {
    if (!e)
        return;
    llm_eye_stop(e);
    llm_media_free(e->media);
    llm_model_free(e->model);
    ggl_free(e);
}

void llm_eye_stop(llm_eye *e) {
    if (!e)
        return;
    llm_stages_free(e->stages);
    e->stages = NULL;
}

double llm_eye_bytes(const llm_eye *e) {
    const ggl_gguf *f = llm_model_file(e->model);
    double n = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        n += (double)ggl_gguf_tensor_at(f, i)->size;
    return n;
}

const llm_media *llm_eye_media(const llm_eye *e) {
    return e->media;
}

ggl_status llm_eye_start(llm_eye *e, const llm_session_params *p, int64_t n_given, ggl_error *err) {
    llm_session_params own = llm_session_default();
    own.backend = p->backend;
    own.n_backends = p->n_backends;
    own.fold = p->fold;
    own.fold_products = p->fold_products;
    own.no_repack = p->no_repack;
    own.cancelled = p->cancelled;
    own.cancelled_ctx = p->cancelled_ctx;
    const char *file = ggl_gguf_name(llm_model_file(e->model));
    ggl_status st = llm_stages_new(&e->stages, e->model, &own, 0, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", file);
    const int64_t n = llm_stages_n_row(e->stages);
    if (n == n_given)
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT,
                    "%s makes rows of %" PRId64 " numbers of a picture, but the text model takes "
                    "%" PRId64 ": it belongs to another model",
                    file, n, n_given);
}

/* --- pictures --------------------------------------------------------------------------------- */

static ggl_status need_eye(const llm_context *c, ggl_error *err) {
    return c->eye ? GGL_OK
                  : ggl_fail(err, GGL_UNSUPPORTED,
                             "the model was opened without an eye, so it sees no pictures: open it "
                             "with its file mmproj-*.gguf (mmproj, or --mmproj FILE)");
}

/* The picture as the eye sees it, of 8 bits. */
static ggl_status see(llm_picture **out, const llm_eye *e, const llm_image *image, ggl_error *err) {
    llm_picture *p = NULL;
    const char *name = image->path ? image->path : image->name ? image->name : "the picture";
    *out = NULL;
    if (!image->path == !image->data)
        return ggl_fail(err, GGL_USAGE, "llm_image needs a path or data, one of the two");
    ggl_status st = image->path ? llm_picture_read_file(&p, image->path, NULL, err)
                                : llm_picture_read(&p, image->data, image->n, name, NULL, err);
    if (st == GGL_OK)
        st = llm_picture_seen(out, rule_of(e), p, name, err);
    llm_picture_free(p);
    return st;
}

/* What the rows of a picture are made of. Slots that were saved to files know rows by the ids that follow from it. */
static void digest_of(const llm_eye *e, const llm_picture *p, char hex[SHA256_HEX]) {
    const int64_t size[2] = {p->width, p->height};
    sha256 sum;
    llm_sha256_begin(&sum);
    llm_sha256_add(&sum, &e->digest, sizeof e->digest);
    llm_sha256_add(&sum, size, sizeof size);
    llm_sha256_add(&sum, p->rgb, (size_t)(p->width * p->height * 3));
    llm_sha256_end(&sum, hex);
}

/* Returns which row of the input row i of the last stage stands for: the first one that it was made of. */
static int64_t origin(const llm_eye *e, int64_t i) {
    for (int k = e->n_rows - 1; k != e->input; k = e->rows[k].over)
        i = i * e->rows[k].every + e->rows[k].from;
    return i;
}

/* Sets the places of n rows in a text, [n][3]: all at one time, lines and columns from 0. Returns how many places they take. */
static int64_t places_of(const llm_eye *e, const llm_picture_rows *in, int64_t n, int32_t *place) {
    const int32_t block = (int32_t)rule_of(e)->block;
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = origin(e, i);
        int32_t *p = place + 3 * i;
        p[0] = 0;
        p[1] = at < in->n ? in->y[at] / block : 0;
        p[2] = at < in->n ? in->x[at] / block : 0;
        most = p[1] > most ? p[1] : most;
        most = p[2] > most ? p[2] : most;
    }
    return most + 1;
}

/* Runs the stages for a picture, whose rows are *row [*n], valid until the next one; *in is to be freed. */
static ggl_status look(llm_eye *e, const llm_picture *seen, const char *name, llm_picture_rows **in,
                       const float **row, int64_t *n, ggl_error *err) {
    ggl_status st = llm_picture_rows_new(in, rule_of(e), seen, name, err);
    if (st != GGL_OK)
        return st;
    const llm_picture_rows *r = *in;
    int32_t *yx = ggl_calloc((size_t)r->n * 2, sizeof *yx);
    if (!yx)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a picture of %" PRId64 " rows", r->n);
    for (int64_t i = 0; i < r->n; i++) {
        yx[2 * i] = r->y[i];
        yx[2 * i + 1] = r->x[i];
    }
    const llm_row_places places = {
        .yx = yx, .corner = r->entry ? r->entry[0] : NULL, .share = r->share ? r->share[0] : NULL};
    llm_stages_place(e->stages, &places);
    st = llm_stages_run(e->stages, r->row, r->n, row, n, err);
    llm_stages_place(e->stages, NULL);
    ggl_free(yx);
    return st;
}

static ggl_status look_and_keep(llm_eye *e, const llm_picture *seen, const char *name,
                                const uint8_t id[LLM_MEDIA_ID], ggl_error *err) {
    llm_picture_rows *in = NULL;
    const float *row;
    int64_t n = 0;
    int32_t first, *place = NULL;
    ggl_status st = look(e, seen, name, &in, &row, &n, err);
    if (st == GGL_OK && !(place = ggl_calloc((size_t)n * 3, sizeof *place)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a picture of %" PRId64 " rows", n);
    if (st == GGL_OK) {
        const int64_t n_pos = places_of(e, in, n, place);
        st = llm_media_add(e->media, id,
                           &(llm_media_rows){.row = row,
                                             .n = n,
                                             .n_row = llm_stages_n_row(e->stages),
                                             .place = place,
                                             .n_pos = n_pos},
                           &first, err);
    }
    ggl_free(place);
    llm_picture_rows_free(in);
    return st;
}

bool llm_context_sees(const llm_context *c) {
    return c->eye != NULL;
}

ggl_status llm_see(llm_context *c, const llm_image *image, char mark[LLM_IMAGE_MARK],
                   ggl_error *err) {
    llm_picture *seen = NULL;
    char hex[SHA256_HEX];
    uint8_t id[LLM_MEDIA_ID];
    int32_t first;
    int64_t n;
    *mark = 0;
    ggl_status st = need_eye(c, err);
    if (st == GGL_OK)
        st = see(&seen, c->eye, image, err);
    if (st != GGL_OK)
        return st;
    digest_of(c->eye, seen, hex);
    (void)read_digest(hex, id);
    if (!llm_media_find(c->eye->media, id, &first, &n))
        st = look_and_keep(c->eye, seen, image->path ? image->path : "the picture", id, err);
    llm_picture_free(seen);
    if (st == GGL_OK)
        snprintf(mark, LLM_IMAGE_MARK, "%s%s%s", mark_begin, hex, mark_end);
    return st;
}

void llm_unsee(llm_context *c, const char *mark) {
    uint8_t id[LLM_MEDIA_ID];
    size_t from = 0;
    int32_t first;
    int64_t n;
    if (!c->eye || !find_mark(mark, strlen(mark), &from, id) ||
        !llm_media_find(c->eye->media, id, &first, &n))
        return;
    llm_media_release(c->eye->media, first); /* the hold by llm_media_find */
    llm_media_release(c->eye->media, first);
}

ggl_status llm_image_pixels(llm_context *c, const llm_image *image, float **pixel, size_t *height,
                            size_t *width, ggl_error *err) {
    llm_picture *seen = NULL;
    *pixel = NULL;
    ggl_status st = need_eye(c, err);
    if (st == GGL_OK)
        st = see(&seen, c->eye, image, err);
    if (st != GGL_OK)
        return st;
    *width = (size_t)seen->width;
    *height = (size_t)seen->height;
    *pixel = ggl_calloc(*width * *height * 3, sizeof **pixel);
    if (*pixel)
        llm_picture_normalize(*pixel, rule_of(c->eye), seen);
    else
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a picture");
    llm_picture_free(seen);
    return st;
}

ggl_status llm_image_rows(llm_context *c, const llm_image *image, float **row, size_t *n,
                          size_t *n_row, ggl_error *err) {
    llm_picture *seen = NULL;
    llm_picture_rows *in = NULL;
    const float *got;
    int64_t n_got = 0;
    *row = NULL;
    ggl_status st = need_eye(c, err);
    if (st == GGL_OK)
        st = see(&seen, c->eye, image, err);
    if (st == GGL_OK)
        st = look(c->eye, seen, image->path ? image->path : "the picture", &in, &got, &n_got, err);
    if (st == GGL_OK) {
        *n = (size_t)n_got;
        *n_row = (size_t)llm_stages_n_row(c->eye->stages);
        if ((*row = ggl_calloc(*n * *n_row, sizeof **row)) != NULL)
            memcpy(*row, got, *n * *n_row * sizeof **row);
        else
            st = ggl_fail(err, GGL_NOMEM, "out of memory for %zu rows", *n);
    }
    llm_picture_rows_free(in);
    llm_picture_free(seen);
    return st;
}

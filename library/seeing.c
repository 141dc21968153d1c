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
#include "picture/tiles.h"

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

/* The parts of a picture that the eye looks at apart: the whole, then the tiles of a grid, line by line. A picture's id has the size of the grid in
 * its last four bytes, so that its mark is all that is needed to find them. */
static void put_grid(uint8_t id[LLM_MEDIA_ID], int64_t nx, int64_t ny) {
    const int64_t n[2] = {nx, ny};
    for (int k = 0; k < 4; k++)
        id[LLM_MEDIA_ID - 4 + k] = (uint8_t)(n[k / 2] >> (k % 2 * 8));
}

static void get_grid(const uint8_t id[LLM_MEDIA_ID], int64_t *nx, int64_t *ny) {
    const uint8_t *n = id + LLM_MEDIA_ID - 4;
    *nx = n[0] | n[1] << 8;
    *ny = n[2] | n[3] << 8;
    if (*nx * *ny > LLM_ARCH_MAX_TILES) /* of a mark that nobody has made */
        *nx = *ny = 0;
}

static int64_t n_parts(const uint8_t id[LLM_MEDIA_ID]) {
    int64_t nx, ny;
    get_grid(id, &nx, &ny);
    return 1 + nx * ny;
}

/* Writes the id of the rows of part k. */
static void part_id(const uint8_t id[LLM_MEDIA_ID], int64_t k, uint8_t out[LLM_MEDIA_ID]) {
    char hex[SHA256_HEX];
    sha256 sum;
    memcpy(out, id, LLM_MEDIA_ID);
    if (k == 0)
        return;
    llm_sha256_begin(&sum);
    llm_sha256_add(&sum, id, LLM_MEDIA_ID);
    llm_sha256_add(&sum, &k, sizeof k);
    llm_sha256_end(&sum, hex);
    (void)read_digest(hex, out);
}

/* Appends a text that stands beside rows; {n} in it is the end of a line, {y} and {x} are numbers. */
static ggl_status append_text(const llm_tokenizer *t, const char *text, int64_t y, int64_t x,
                              llm_tokens *ids, ggl_error *err) {
    char all[8 * LLM_ARCH_TEXT];
    size_t n = 0;
    for (; *text; text++) {
        const bool is_place = text[0] == '{' && text[1] && text[2] == '}';
        if (is_place && text[1] == 'n')
            all[n++] = '\n';
        else if (is_place && (text[1] == 'y' || text[1] == 'x'))
            n += (size_t)snprintf(all + n, sizeof all - n, "%d", (int)(text[1] == 'y' ? y : x));
        else
            all[n++] = *text;
        text += is_place && strchr("nyx", text[1]) ? 2 : 0;
    }
    return llm_tokenize(t, all, n, LLM_TOKENIZE_SPECIAL, ids, err);
}

/* Appends the rows of part k, with what stands between their lines. */
static ggl_status append_part(const llm_eye *e, const llm_tokenizer *t,
                              const uint8_t id[LLM_MEDIA_ID], int64_t k, llm_tokens *ids,
                              ggl_error *err) {
    const char *line = rule_of(e)->line;
    uint8_t own[LLM_MEDIA_ID];
    llm_media_row row;
    int32_t first, before = 0;
    int64_t n;
    part_id(id, k, own);
    if (!llm_media_find(e->media, own, &first, &n))
        return ggl_fail(err, GGL_USAGE,
                        "the text names a picture that is not there any more: show it again");
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < n && st == GGL_OK; i++) {
        const int32_t at = (int32_t)(first - i);
        if (*line && llm_media_get(e->media, at, &row)) {
            if (i > 0 && row.place[1] != before)
                st = append_text(t, line, 0, 0, ids, err);
            before = row.place[1];
        }
        if (st == GGL_OK)
            st = llm_tokens_append(ids, at, err);
    }
    llm_media_release(e->media, first);
    return st;
}

static ggl_status append_whole(const llm_eye *e, const llm_tokenizer *t,
                               const uint8_t id[LLM_MEDIA_ID], llm_tokens *ids, ggl_error *err) {
    const llm_arch_tiles *tiles = &rule_of(e)->tiles;
    ggl_status st = append_text(t, tiles->whole, 0, 0, ids, err);
    if (st == GGL_OK)
        st = append_part(e, t, id, 0, ids, err);
    return st == GGL_OK ? append_text(t, tiles->whole_end, 0, 0, ids, err) : st;
}

static ggl_status append_tiles(const llm_eye *e, const llm_tokenizer *t,
                               const uint8_t id[LLM_MEDIA_ID], llm_tokens *ids, ggl_error *err) {
    const llm_arch_tiles *tiles = &rule_of(e)->tiles;
    int64_t nx, ny;
    get_grid(id, &nx, &ny);
    if (nx * ny == 0)
        return GGL_OK;
    ggl_status st = append_text(t, tiles->begin, 0, 0, ids, err);
    for (int64_t k = 0; k < nx * ny && st == GGL_OK; k++) {
        const int64_t y = k / nx, x = k % nx;
        if (k > 0)
            st = append_text(t, x == 0 ? tiles->line : tiles->next, 0, 0, ids, err);
        if (st == GGL_OK)
            st = append_text(t, tiles->tile, y + 1, x + 1, ids, err);
        if (st == GGL_OK)
            st = append_part(e, t, id, 1 + k, ids, err);
        if (st == GGL_OK)
            st = append_text(t, tiles->tile_end, y + 1, x + 1, ids, err);
    }
    return st == GGL_OK ? append_text(t, tiles->end, 0, 0, ids, err) : st;
}

/* Appends what stands for a picture: its rows, and the texts around them. */
static ggl_status append_picture(void *ctx, const llm_tokenizer *t, const char *mark,
                                 llm_tokens *ids, ggl_error *err) {
    llm_eye *e = ctx;
    const llm_arch_picture *p = rule_of(e);
    uint8_t id[LLM_MEDIA_ID];
    (void)read_digest(mark + MARK_BEGIN, id);
    ggl_status st = append_text(t, p->begin, 0, 0, ids, err);
    if (st == GGL_OK && p->tiles.whole_first)
        st = append_whole(e, t, id, ids, err);
    if (st == GGL_OK)
        st = append_tiles(e, t, id, ids, err);
    if (st == GGL_OK && !p->tiles.whole_first)
        st = append_whole(e, t, id, ids, err);
    return st == GGL_OK ? append_text(t, p->end, 0, 0, ids, err) : st;
}

const char *llm_eye_unknown_token(const llm_eye *e, const llm_tokenizer *t) {
    const llm_arch_picture *p = rule_of(e);
    const char *const text[] = {p->begin, p->end, p->line, p->tiles.whole, p->tiles.whole_end};
    size_t k = 0;
    /* "<token>" or "[TOKEN]" alone */
    while (k < sizeof text / sizeof *text &&
           ((*text[k] != '<' && *text[k] != '[') || strpbrk(text[k] + 1, "<[{")))
        k++;
    if (k == sizeof text / sizeof *text)
        return NULL;
    ggl_error none = {0};
    llm_tokens ids = {0};
    const bool lacks =
        llm_tokenize(t, text[k], strlen(text[k]), LLM_TOKENIZE_SPECIAL, &ids, &none) == GGL_OK &&
        ids.n != 1;
    llm_tokens_fini(&ids);
    return lacks ? text[k] : NULL;
}

const char *llm_eye_family(const llm_eye *e) {
    return llm_arch_family(llm_model_arch(e->model), 0);
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

/* A picture as the eye sees it, of 8 bits: the whole, and its tiles. */
typedef struct parts {
    uint8_t id[LLM_MEDIA_ID];
    int64_t n;
    llm_picture *part[1 + LLM_ARCH_MAX_TILES];
} parts;

static void parts_free(parts *p) {
    for (int64_t k = 0; k < p->n; k++)
        llm_picture_free(p->part[k]);
    p->n = 0;
}

static const char *name_of(const llm_image *image) {
    return image->path ? image->path : image->name ? image->name : "the picture";
}

static ggl_status cut(parts *out, const llm_eye *e, const llm_picture *from, const char *name,
                      ggl_error *err) {
    llm_picture_tiles t;
    ggl_status st = llm_picture_tiles_for(&t, rule_of(e), from->width, from->height, name, err);
    if (st == GGL_OK)
        st = llm_picture_seen(&out->part[0], rule_of(e), from, name, err);
    if (st == GGL_OK)
        out->n = 1;
    for (int64_t k = 0; st == GGL_OK && k < t.nx * t.ny; k++) {
        st = llm_picture_tile(&out->part[out->n], rule_of(e), &t, from, k / t.nx, k % t.nx, name,
                              err);
        out->n += st == GGL_OK;
    }
    if (st != GGL_OK)
        return st;
    char hex[SHA256_HEX];
    sha256 sum;
    llm_sha256_begin(&sum);
    /* Slots that were saved to files know rows by the ids that follow from this, and another eye makes other rows. */
    llm_sha256_add(&sum, &e->digest, sizeof e->digest);
    for (int64_t k = 0; k < out->n; k++) {
        const llm_picture *p = out->part[k];
        const int64_t size[2] = {p->width, p->height};
        llm_sha256_add(&sum, size, sizeof size);
        llm_sha256_add(&sum, p->rgb, (size_t)(p->width * p->height * 3));
    }
    llm_sha256_end(&sum, hex);
    (void)read_digest(hex, out->id);
    put_grid(out->id, t.nx, t.ny);
    return GGL_OK;
}

/* Reads a picture. out is to be freed in any case. */
static ggl_status see(parts *out, const llm_eye *e, const llm_image *image, ggl_error *err) {
    llm_picture *p = NULL;
    out->n = 0;
    if (!image->path == !image->data)
        return ggl_fail(err, GGL_USAGE, "llm_image needs a path or data, one of the two");
    ggl_status st = image->path
                        ? llm_picture_read_file(&p, image->path, NULL, err)
                        : llm_picture_read(&p, image->data, image->n, name_of(image), NULL, err);
    if (st == GGL_OK)
        st = cut(out, e, p, name_of(image), err);
    llm_picture_free(p);
    return st;
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
    const llm_arch_picture *rule = rule_of(e);
    for (int64_t i = 0; i < r->n; i++) {
        const int32_t origin = i < rule->first ? 0 : (int32_t)rule->origin;
        yx[2 * i] = r->y[i] + origin;
        yx[2 * i + 1] = r->x[i] + origin;
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

/* Gives back so many holds of the first n parts. */
static void release(const llm_eye *e, const uint8_t id[LLM_MEDIA_ID], int64_t n, int holds) {
    for (int64_t k = 0; k < n; k++) {
        uint8_t own[LLM_MEDIA_ID];
        int32_t first;
        int64_t rows;
        part_id(id, k, own);
        if (!llm_media_find(e->media, own, &first, &rows))
            continue;
        for (int h = 0; h <= holds; h++) /* one is that of llm_media_find */
            llm_media_release(e->media, first);
    }
}

ggl_status llm_see(llm_context *c, const llm_image *image, char mark[LLM_IMAGE_MARK],
                   ggl_error *err) {
    parts p;
    *mark = 0;
    ggl_status st = need_eye(c, err);
    if (st != GGL_OK)
        return st;
    st = see(&p, c->eye, image, err);
    int64_t k = 0;
    for (; k < p.n && st == GGL_OK; k++) {
        uint8_t own[LLM_MEDIA_ID];
        int32_t first;
        int64_t n;
        part_id(p.id, k, own);
        if (!llm_media_find(c->eye->media, own, &first, &n))
            st = look_and_keep(c->eye, p.part[k], name_of(image), own, err);
    }
    if (st != GGL_OK && k > 0)
        release(c->eye, p.id, k - 1, 1);
    if (st == GGL_OK) {
        char hex[SHA256_HEX];
        for (int i = 0; i < LLM_MEDIA_ID; i++)
            snprintf(hex + 2 * i, 3, "%02x", p.id[i]);
        snprintf(mark, LLM_IMAGE_MARK, "%s%s%s", mark_begin, hex, mark_end);
    }
    parts_free(&p);
    return st;
}

void llm_unsee(llm_context *c, const char *mark) {
    uint8_t id[LLM_MEDIA_ID];
    size_t from = 0;
    if (c->eye && find_mark(mark, strlen(mark), &from, id))
        release(c->eye, id, n_parts(id), 1);
}

ggl_status llm_image_pixels(llm_context *c, const llm_image *image, float **pixel, size_t *height,
                            size_t *width, ggl_error *err) {
    parts p;
    *pixel = NULL;
    ggl_status st = need_eye(c, err);
    if (st != GGL_OK)
        return st;
    st = see(&p, c->eye, image, err);
    if (st == GGL_OK) {
        const llm_picture *seen = p.part[0];
        *width = (size_t)seen->width;
        *height = (size_t)seen->height;
        *pixel = ggl_calloc(*width * *height * 3, sizeof **pixel);
        if (*pixel)
            llm_picture_normalize(*pixel, rule_of(c->eye), seen);
        else
            st = ggl_fail(err, GGL_NOMEM, "out of memory for a picture");
    }
    parts_free(&p);
    return st;
}

/* Appends the rows of one part to *row, which has *n. */
static ggl_status add_rows(llm_eye *e, const llm_picture *part, const char *name, float **row,
                           size_t *n, size_t *cap, ggl_error *err) {
    llm_picture_rows *in = NULL;
    const size_t n_row = (size_t)llm_stages_n_row(e->stages);
    const float *got;
    int64_t n_got = 0;
    ggl_status st = look(e, part, name, &in, &got, &n_got, err);
    if (st == GGL_OK && !ggl_grow(row, cap, (*n + (size_t)n_got) * n_row, sizeof **row))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for %zu rows", *n + (size_t)n_got);
    if (st == GGL_OK) {
        memcpy(*row + *n * n_row, got, (size_t)n_got * n_row * sizeof **row);
        *n += (size_t)n_got;
    }
    llm_picture_rows_free(in);
    return st;
}

ggl_status llm_image_rows(llm_context *c, const llm_image *image, float **row, size_t *n,
                          size_t *n_row, ggl_error *err) {
    parts p;
    size_t cap = 0;
    *row = NULL;
    *n = 0;
    ggl_status st = need_eye(c, err);
    if (st != GGL_OK)
        return st;
    st = see(&p, c->eye, image, err);
    *n_row = (size_t)llm_stages_n_row(c->eye->stages);
    const bool first = rule_of(c->eye)->tiles.whole_first;
    for (int64_t k = 0; k < p.n && st == GGL_OK; k++) /* in the order of a text */
        st = add_rows(c->eye, p.part[first ? k : (k + 1) % p.n], name_of(image), row, n, &cap, err);
    parts_free(&p);
    if (st != GGL_OK) {
        ggl_free(*row);
        *row = NULL;
    }
    return st;
}

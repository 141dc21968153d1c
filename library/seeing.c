/* Pictures: read, prepared as the eye's descriptor says, run through its stages, and kept as rows. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "context.h"
#include "ggl/alloc.h"
#include "ggl/internal/alloc.h"
#include "llm/steps.h"
#include "noticing.h"
#include "picture/order.h"
#include "picture/prepare.h"
#include "picture/tiles.h"

static const llm_arch_picture *rule_of(const llm_eye *e) {
    return &e->rows[e->input].picture;
}

/* --- in a text -------------------------------------------------------------------------------- */

/* The parts of a picture that the eye looks at apart: the whole, then the tiles of a grid, line by line, or all of them as one part. A picture's id has the size of the grid in
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

/* The picture whose rows and texts are appended, and the ids that they are appended to. */
typedef struct writing {
    const llm_eye *e;
    const llm_tokenizer *t;
    const uint8_t *id;
    llm_tokens *ids;
    int64_t part; /* whose rows texts name */
} writing;

/* Appends a text; {y} and {x} in it are numbers, {0} a row of the part. */
static ggl_status append_text(const writing *w, const char *text, int64_t y, int64_t x,
                              ggl_error *err) {
    int32_t first = 0;
    int64_t n = 0;
    if (!*text)
        return GGL_OK;
    ggl_status st = rule_of(w->e)->n_marks > 0
                        ? llm_eye_find_part(w->e, w->id, w->part, &first, &n, err)
                        : GGL_OK;
    if (st == GGL_OK)
        st = llm_eye_append_text(w->t, text, y, x, n < rule_of(w->e)->n_marks ? 0 : first, w->ids,
                                 err);
    if (first != 0)
        llm_media_release(w->e->media, first);
    return st;
}

/* The text behind each line of the rows of part k. */
static const char *line_end_of(const llm_arch_picture *p, int64_t k) {
    return k > 0 && *p->tiles.line_end ? p->tiles.line_end : p->line_end;
}

/* The rows of parts that stand side by side, line by line through all of them: of the whole, of a tile, or of the tiles of a line. */
typedef struct beside {
    int64_t n_parts, n_each; /* the rows of each */
    int32_t *first;          /* [n_parts] ids */
    llm_picture_order order; /* of row i of part k as k * n_each + i */
} beside;

static void beside_free(beside *b, llm_media *media) {
    for (int64_t k = 0; b->first && k < b->n_parts; k++)
        if (b->first[k] != 0)
            llm_media_release(media, b->first[k]);
    ggl_free(b->first);
    llm_picture_order_fini(&b->order);
}

/* Moves the columns of n rows' places behind those of k other parts as wide as these. */
static void move_beside(int32_t *place, int64_t n, int64_t k) {
    int32_t across = 0;
    for (int64_t i = 0; i < n; i++)
        across = place[3 * i + 2] + 1 > across ? place[3 * i + 2] + 1 : across;
    for (int64_t i = 0; i < n; i++)
        place[3 * i + 2] += (int32_t)k * across;
}

/* Sets the places of part k's rows, `first`, first - 1 .. */
static void place_part(const writing *w, int32_t *place, int32_t first, int64_t n, int64_t k) {
    llm_media_row row;
    for (int64_t i = 0; i < n; i++)
        if (llm_media_get(w->e->media, (int32_t)(first - i), &row))
            memcpy(place + 3 * i, row.place, sizeof row.place);
    move_beside(place, n, k);
}

/* Finds the rows of n parts from w->part on. *b is to be freed in any case. */
static ggl_status find_beside(beside *b, const writing *w, int64_t n, ggl_error *err) {
    int32_t *place = NULL;
    *b = (beside){.n_parts = n, .first = ggl_calloc((size_t)n, sizeof *b->first)};
    ggl_status st = b->first ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a picture");
    for (int64_t k = 0; k < n && st == GGL_OK; k++) {
        const int64_t n_each = b->n_each;
        st = llm_eye_find_part(w->e, w->id, w->part + k, &b->first[k], &b->n_each, err);
        if (st == GGL_OK && k == 0 &&
            !(place = ggl_calloc((size_t)(b->n_each * n) * 3 + 1, sizeof *place)))
            st = ggl_fail(err, GGL_NOMEM, "out of memory for the rows of a picture");
        if (st == GGL_OK && k > 0 && b->n_each != n_each)
            st =
                ggl_fail(err, GGL_FORMAT, "parts of a picture side by side have %lld and %lld rows",
                         (long long)n_each, (long long)b->n_each);
        if (st == GGL_OK)
            place_part(w, place + 3 * k * b->n_each, b->first[k], b->n_each, k);
    }
    if (st == GGL_OK)
        st = llm_picture_order_new(&b->order, rule_of(w->e), place, b->n_each * n, err);
    ggl_free(place);
    return st;
}

/* Appends rows in their order, and what stands between and behind their lines. */
static ggl_status append_lines(const writing *w, const beside *b, ggl_error *err) {
    const llm_arch_picture *p = rule_of(w->e);
    const llm_picture_order *o = &b->order;
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < o->n && st == GGL_OK; i++) {
        const int64_t at = o->at[i];
        if (at != LLM_PICTURE_LINE) {
            st = llm_tokens_append(w->ids, b->first[at / b->n_each] - (int32_t)(at % b->n_each),
                                   err);
            continue;
        }
        st = append_text(w, line_end_of(p, w->part), 0, 0, err);
        if (st == GGL_OK && i + 1 < o->n)
            st = append_text(w, p->line, 0, 0, err);
    }
    return st;
}

/* Appends the rows of n parts from w->part on. */
static ggl_status append_parts(const writing *w, int64_t n, ggl_error *err) {
    beside b;
    ggl_status st = find_beside(&b, w, n, err);
    if (st == GGL_OK)
        st = append_lines(w, &b, err);
    beside_free(&b, w->e->media);
    return st;
}

static ggl_status append_whole(const writing *w, ggl_error *err) {
    const llm_arch_tiles *tiles = &rule_of(w->e)->tiles;
    int64_t nx, ny;
    get_grid(w->id, &nx, &ny);
    const bool is_beside = nx * ny > 0 && *tiles->beside;
    ggl_status st = append_text(w, is_beside ? tiles->beside : tiles->whole, 0, 0, err);
    if (st == GGL_OK)
        st = append_parts(w, 1, err);
    return st == GGL_OK ? append_text(w, tiles->whole_end, 0, 0, err) : st;
}

static ggl_status append_tiles(const writing *w, ggl_error *err) {
    const llm_arch_tiles *tiles = &rule_of(w->e)->tiles;
    int64_t nx, ny;
    get_grid(w->id, &nx, &ny);
    if (nx * ny == 0)
        return GGL_OK;
    ggl_status st = append_text(w, tiles->begin, 0, 0, err);
    const int64_t n = tiles->in_lines ? nx : 1; /* at once */
    for (int64_t k = 0; k < nx * ny && st == GGL_OK; k += n) {
        const int64_t y = k / nx, x = k % nx;
        writing of_tile = *w;
        of_tile.part = 1 + k;
        if (k > 0)
            st = append_text(w, x == 0 ? tiles->line : tiles->next, 0, 0, err);
        if (st == GGL_OK)
            st = append_text(&of_tile, tiles->tile, y + 1, x + 1, err);
        if (st == GGL_OK)
            st = append_parts(&of_tile, n, err);
        if (st == GGL_OK)
            st = append_text(&of_tile, tiles->tile_end, y + 1, x + 1, err);
    }
    return st == GGL_OK ? append_text(w, tiles->end, 0, 0, err) : st;
}

/* Appends the rows of a picture in pairs of lines. The first one fills what is before them, so that they begin, behind one that begins them, at a multiple of so many tokens. */
static ggl_status append_pairs(const writing *w, ggl_error *err) {
    const int64_t each = rule_of(w->e)->pairs;
    int32_t first = 0;
    int64_t n = 0;
    ggl_status st = llm_eye_find_part(w->e, w->id, 0, &first, &n, err);
    if (st != GGL_OK)
        return st;
    while (st == GGL_OK && ((int64_t)w->ids->n + 1) % each != 0)
        st = llm_tokens_append(w->ids, first, err);
    for (int64_t i = 1; i < n && st == GGL_OK; i++)
        st = llm_tokens_append(w->ids, (int32_t)(first - i), err);
    llm_media_release(w->e->media, first);
    return st;
}

/* Appends what stands for a picture: its rows, and the texts around them. */
static ggl_status append_picture(const llm_eye *e, const llm_tokenizer *t,
                                 const uint8_t id[LLM_MEDIA_ID], llm_tokens *ids, ggl_error *err) {
    const llm_arch_picture *p = rule_of(e);
    const writing w = {.e = e, .t = t, .id = id, .ids = ids};
    if (p->pairs > 0)
        return append_pairs(&w, err);
    ggl_status st = append_text(&w, p->begin, 0, 0, err);
    if (st == GGL_OK && p->tiles.whole_first)
        st = append_whole(&w, err);
    if (st == GGL_OK)
        st = append_tiles(&w, err);
    if (st == GGL_OK && !p->tiles.whole_first)
        st = append_whole(&w, err);
    return st == GGL_OK ? append_text(&w, p->end, 0, 0, err) : st;
}

/* --- pictures --------------------------------------------------------------------------------- */

/* A picture as the eye sees it, of 8 bits: the whole, and its tiles. */
typedef struct parts {
    uint8_t id[LLM_MEDIA_ID];
    int64_t n, width, height; /* of the picture, in pixels */
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
    const bool is_woven = rule_of(e)->tiles.woven;
    out->width = from->width;
    out->height = from->height;
    ggl_status st = llm_picture_tiles_for(&t, rule_of(e), from->width, from->height, name, err);
    if (st == GGL_OK)
        st = llm_picture_seen(&out->part[0], rule_of(e), from, name, err);
    if (st == GGL_OK)
        out->n = 1;
    if (st == GGL_OK && is_woven && t.nx > 0) {
        st = llm_picture_all_tiles(&out->part[1], rule_of(e), &t, from, name, err);
        out->n += st == GGL_OK;
        t.nx = t.ny = 1;
    }
    for (int64_t k = 0; st == GGL_OK && !is_woven && k < t.nx * t.ny; k++) {
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
    if (rule_of(e)->tiles.unpad)
        llm_sha256_add(&sum, &out->width, 2 * sizeof out->width);
    for (int64_t k = 0; k < out->n; k++) {
        const llm_picture *p = out->part[k];
        const int64_t size[2] = {p->width, p->height};
        llm_sha256_add(&sum, size, sizeof size);
        llm_sha256_add(&sum, p->rgb, (size_t)(p->width * p->height * 3));
    }
    llm_sha256_end(&sum, hex);
    (void)llm_eye_digest(hex, out->id);
    put_grid(out->id, t.nx, t.ny);
    return GGL_OK;
}

/* Reads a picture. out is to be freed in any case. */
static ggl_status see(parts *out, const llm_eye *e, const llm_image *image, ggl_error *err) {
    llm_picture *p = NULL, *before = NULL;
    out->n = 0;
    if (!image->path == !image->data)
        return ggl_fail(err, GGL_USAGE, "llm_image needs a path or data, one of the two");
    ggl_status st = image->path
                        ? llm_picture_read_file(&p, image->path, NULL, err)
                        : llm_picture_read(&p, image->data, image->n, name_of(image), NULL, err);
    if (st == GGL_OK)
        st = llm_picture_before(&before, rule_of(e), p, name_of(image), err);
    if (st == GGL_OK)
        st = cut(out, e, before ? before : p, name_of(image), err);
    llm_picture_free(before);
    llm_picture_free(p);
    return st;
}

/* Patches of a side of the square that a row stands for. */
static int64_t side_of_row(const llm_eye *e) {
    const int64_t block = rule_of(e)->block;
    int64_t n = 1;
    for (int k = e->n_rows - 1; k != e->input && n <= block * block; k = e->rows[k].over)
        n *= e->rows[k].every;
    const int64_t side = (int64_t)floor(sqrt((double)n) + 0.5);
    int64_t steps = 1;
    for (int k = e->n_rows - 1; k != e->input; k = e->rows[k].over)
        steps *= e->rows[k].step > 1 ? e->rows[k].step : 1;
    return steps * (side * side == n && block % side == 0 ? side : block);
}

/* The cells of a part that stand in a text: from left to before right, and from top to before bottom. */
typedef struct cells {
    int64_t left, right, top, bottom;
} cells;

static cells cells_of(const llm_eye *e, const parts *p, int64_t k) {
    const int64_t side = side_of_row(e),
                  nx = llm_picture_patches(rule_of(e), p->part[k]->width) / side,
                  ny = llm_picture_patches(rule_of(e), p->part[k]->height) / side;
    cells c = {.right = nx, .bottom = ny};
    if (k == 1 && rule_of(e)->tiles.unpad)
        llm_picture_seen_cells(p->width, p->height, nx, ny, &c.left, &c.right, &c.top, &c.bottom);
    return c;
}

/* True if a text behind lines names row i. */
static bool ends_lines(const llm_arch_picture *p, int64_t i) {
    bool ends = false;
    for (int k = 0; k < 2; k++)
        for (const char *text = k ? p->tiles.line_end : p->line_end; *text; text++)
            ends |= llm_arch_row_named(text) == i;
    return ends;
}

/* Sets the places of n rows in a text, [n][3]: all at one time, lines and columns from 0. Returns how many places they take. */
static int64_t places_of(const llm_eye *e, const llm_picture_rows *in, const cells *c, int64_t n,
                         int32_t *place) {
    const int32_t side = (int32_t)side_of_row(e);
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = llm_eye_origin(e, i, in->n);
        const bool is_patch = at >= 0 && at < in->n;
        int32_t *p = place + 3 * i;
        p[0] = 0;
        p[1] = is_patch ? in->y[at] / side : 0;
        p[2] = is_patch ? in->x[at] / side : 0;
        if (i < rule_of(e)->n_marks)
            p[0] = ends_lines(rule_of(e), i) ? LLM_MEDIA_ENDS_LINE : LLM_MEDIA_APART;
        else if (rule_of(e)->tiles.unpad &&
                 !(p[1] >= c->top && p[1] < c->bottom && p[2] >= c->left && p[2] < c->right))
            p[0] = LLM_MEDIA_APART;
        most = p[1] > most ? p[1] : most;
        most = p[2] > most ? p[2] : most;
    }
    return most + 1;
}

static void free_rows(llm_noticed_part *p) {
    llm_picture_rows_free(p->own[0]);
    ggl_free(p->own[1]);
    ggl_free(p->own[2]);
}

/* Prepares what the eye reads of a part. *out is to be freed in any case. */
static ggl_status prepare(llm_noticed_part *out, const llm_eye *e, const parts *all, int64_t k,
                          const char *name, ggl_error *err) {
    const llm_arch_picture *rule = rule_of(e);
    const llm_picture *seen = all->part[k];
    const cells c = cells_of(e, all, k);
    llm_picture_rows *r;
    *out = (llm_noticed_part){.free = free_rows};
    const ggl_status st = llm_picture_rows_new(&r, rule, seen, name, err);
    if (st != GGL_OK)
        return st;
    out->own[0] = r;
    out->row = r->row;
    out->n = r->n;
    out->n_made = llm_eye_rows_made(e, r->n);
    int32_t *yx = out->own[1] = ggl_calloc((size_t)r->n * 2, sizeof *yx),
            *place = out->own[2] = ggl_calloc((size_t)out->n_made * 3 + 1, sizeof *place);
    if (!yx || !place)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a picture of %" PRId64 " rows", r->n);
    for (int64_t i = 0; i < r->n; i++) {
        const int32_t origin = i < rule->first ? 0 : (int32_t)rule->origin;
        yx[2 * i] = r->y[i] + origin;
        yx[2 * i + 1] = r->x[i] + origin;
    }
    out->places = (llm_row_places){.yx = yx, .corner = r->entry, .share = r->share};
    out->n_pos = places_of(e, r, &c, out->n_made, place);
    out->place = rule->in_turn ? NULL : place;
    if (rule->in_turn || rule->at_once)
        out->n_pos = rule->in_turn ? out->n_made : 1;
    return GGL_OK;
}

/* Runs the stages for a picture, whose rows are *row [*n], valid until the next one; *in is to be freed. */
static ggl_status look(llm_eye *e, const parts *all, int64_t k, const char *name,
                       llm_noticed_part *in, const float **row, int64_t *n, ggl_error *err) {
    ggl_status st = prepare(in, e, all, k, name, err);
    if (st != GGL_OK)
        return st;
    llm_stages_place(e->stages, &in->places);
    st = llm_stages_run(e->stages, in->row, in->n, row, n, err);
    llm_stages_place(e->stages, NULL);
    return st;
}

/* How many rows a text names. */
static int64_t count_marks(const char *text) {
    int64_t n = 0;
    for (; *text; text++)
        n += llm_arch_row_named(text) >= 0;
    return n;
}

/* True if part k is a tile with others behind it in its lines. */
static bool goes_on(const llm_eye *e, const parts *p, int64_t k) {
    int64_t nx, ny;
    get_grid(p->id, &nx, &ny);
    return rule_of(e)->tiles.in_lines && k > 0 && k % nx != 0;
}

/* How many rows of part k stand in a text. */
static int64_t count_rows(const llm_eye *e, const parts *p, int64_t k) {
    const llm_arch_picture *rule = rule_of(e);
    const cells c = cells_of(e, p, k);
    const int64_t n =
        llm_eye_rows_made(e, rule->first + llm_picture_patches(rule, p->part[k]->width) *
                                               llm_picture_patches(rule, p->part[k]->height));
    if (rule->pairs > 0)
        return llm_arch_picture_tokens(rule, c.right, c.bottom) - 2;
    const int64_t in_lines =
        rule->tiles.unpad ? (c.right - c.left) * (c.bottom - c.top) : n - rule->n_marks;
    return in_lines +
           (goes_on(e, p, k) ? 0 : (c.bottom - c.top) * count_marks(line_end_of(rule, k)));
}

/* Refuses a picture whose rows alone are more than the context, before the eye takes its time for it. */
static ggl_status check_room(const llm_eye *e, const parts *p, const char *name, ggl_error *err) {
    const llm_arch_picture *rule = rule_of(e);
    int64_t n = count_marks(rule->begin) + count_marks(rule->end);
    for (int64_t k = 0; k < p->n; k++)
        n += count_rows(e, p, k);
    if (e->n_ctx < 1 || n <= e->n_ctx)
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "%s: the picture has %" PRId64 " tokens, but the context only %" PRId64
                    ": give a larger context (n_ctx, or -c N)%s",
                    name, n, e->n_ctx,
                    rule->most > 0
                        ? ", or a picture fewer tokens (image_max_tokens, or --image-max-tokens N)"
                        : "");
}

/* --- without stages --------------------------------------------------------------------------- */

static ggl_status notice_picture(const llm_eye *e, const llm_noticed_file *f, llm_noticed *out,
                                 ggl_error *err) {
    const llm_image image = {.path = f->path, .data = f->data, .n = f->n};
    parts *p = ggl_calloc(1, sizeof *p);
    *out = (llm_noticed){.name = name_of(&image), .of = p};
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a picture");
    ggl_status st = see(p, e, &image, err);
    if (st == GGL_OK)
        st = check_room(e, p, name_of(&image), err);
    memcpy(out->id, p->id, sizeof out->id);
    out->n_parts = p->n;
    return st;
}

static ggl_status part_of_picture(const llm_eye *e, llm_noticed *x, int64_t k,
                                  llm_noticed_part *out, ggl_error *err) {
    return prepare(out, e, x->of, k, x->name, err);
}

static void forget_picture(llm_noticed *x) {
    if (x->of)
        parts_free(x->of);
    ggl_free(x->of);
    x->of = NULL;
}

const llm_eye_kind llm_eye_pictures = {.organ = "eye",
                                       .senses = "sees",
                                       .what = "picture",
                                       .n_parts = n_parts,
                                       .append = append_picture,
                                       .notice = notice_picture,
                                       .part = part_of_picture,
                                       .forget = forget_picture};

/* --- calls ------------------------------------------------------------------------------------ */

/* A picture that is looked at. */
typedef struct looked {
    const parts *parts;
    const char *name;
} looked;

/* Keeps rows in pairs of lines, in their order. */
static ggl_status keep_pairs(llm_eye *e, llm_media_rows *rows, const uint8_t id[LLM_MEDIA_ID],
                             ggl_error *err) {
    const size_t n_row = (size_t)rows->n_row;
    llm_picture_order o;
    int32_t first;
    ggl_status st = llm_picture_pairs_new(&o, rule_of(e), rows->place, rows->n, err);
    float *all = st == GGL_OK ? ggl_calloc((size_t)o.n * n_row + 1, sizeof *all) : NULL;
    if (st == GGL_OK && !all)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for the rows of a picture");
    for (int64_t i = 0; st == GGL_OK && i < o.n; i++)
        memcpy(all + (size_t)i * n_row, rows->row + (size_t)o.at[i] * n_row, n_row * sizeof *all);
    *rows = (llm_media_rows){
        .row = all, .n = o.n, .n_row = rows->n_row, .n_pos = o.n - 1, .n_alone = 1};
    if (st == GGL_OK)
        st = llm_media_add(e->media, id, rows, &first, err);
    ggl_free(all);
    llm_picture_order_fini(&o);
    return st;
}

static ggl_status look_and_keep(llm_eye *e, void *ctx, int64_t k, const uint8_t id[LLM_MEDIA_ID],
                                ggl_error *err) {
    const looked *l = ctx;
    llm_noticed_part in;
    const float *row;
    int64_t n = 0;
    int32_t first;
    ggl_status st = look(e, l->parts, k, l->name, &in, &row, &n, err);
    llm_media_rows rows = {.row = row,
                           .n = n,
                           .n_row = llm_stages_n_row(e->stages),
                           .place = in.place,
                           .n_pos = in.n_pos};
    if (st == GGL_OK)
        st = rule_of(e)->pairs > 0 ? keep_pairs(e, &rows, id, err)
                                   : llm_media_add(e->media, id, &rows, &first, err);
    llm_noticed_part_fini(&in);
    return st;
}

ggl_status llm_eye_see(llm_context *c, const llm_image *image, char mark[LLM_IMAGE_MARK],
                       ggl_error *err) {
    parts p;
    llm_eye *e;
    *mark = 0;
    ggl_status st = llm_eye_need(c, &llm_eye_pictures, &e, err);
    if (st != GGL_OK)
        return st;
    st = see(&p, e, image, err);
    if (st == GGL_OK)
        st = check_room(e, &p, name_of(image), err);
    if (st == GGL_OK)
        st = llm_eye_keep(e, p.id, look_and_keep, &(looked){&p, name_of(image)}, mark, err);
    parts_free(&p);
    return st;
}

ggl_status llm_see(llm_context *c, const llm_image *image, char mark[LLM_IMAGE_MARK],
                   ggl_error *err) {
    llm_context_start_beside(c);
    return llm_context_end_beside(c, llm_eye_see(c, image, mark, err));
}

ggl_status llm_image_pixels(llm_context *c, const llm_image *image, float **pixel, size_t *height,
                            size_t *width, ggl_error *err) {
    parts p;
    llm_eye *e;
    *pixel = NULL;
    llm_context_start_beside(c);
    ggl_status st = llm_eye_need(c, &llm_eye_pictures, &e, err);
    if (st != GGL_OK)
        return st;
    st = see(&p, e, image, err);
    if (st == GGL_OK) {
        const llm_picture *seen = p.part[0];
        *width = (size_t)seen->width;
        *height = (size_t)seen->height;
        *pixel = ggl_calloc(*width * *height * 3, sizeof **pixel);
        if (*pixel)
            llm_picture_normalize(*pixel, rule_of(e), seen);
        else
            st = ggl_fail(err, GGL_NOMEM, "out of memory for a picture");
    }
    parts_free(&p);
    return llm_context_end_beside(c, st);
}

/* Rows of a picture, in the order of a text. */
typedef struct gathered {
    float *row;
    size_t n, n_row, cap;
} gathered;

static ggl_status add_row(gathered *to, const float *row, ggl_error *err) {
    if (!ggl_grow(&to->row, &to->cap, (to->n + 1) * to->n_row, sizeof *to->row))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu rows", to->n + 1);
    memcpy(to->row + to->n++ * to->n_row, row, to->n_row * sizeof *row);
    return GGL_OK;
}

/* Adds the rows that a text names, of a part's rows [n]. */
static ggl_status add_named(gathered *to, const char *text, const float *row, int64_t n,
                            ggl_error *err) {
    ggl_status st = GGL_OK;
    for (; st == GGL_OK && *text; text++) {
        const int k = llm_arch_row_named(text);
        if (k >= 0 && k < n)
            st = add_row(to, row + (size_t)k * to->n_row, err);
    }
    return st;
}

/* Rows that were made of parts that stand side by side: [n_parts][n_each][n_row], and their places. */
typedef struct made {
    int64_t n_parts, n_each;
    float *row;
    int32_t *place;
} made;

/* Looks at n parts from k on. *m is to be freed in any case. */
static ggl_status make_rows(made *m, llm_eye *e, const parts *p, int64_t k, int64_t n,
                            const char *name, ggl_error *err) {
    const size_t n_row = (size_t)llm_stages_n_row(e->stages);
    ggl_status st = GGL_OK;
    *m = (made){.n_parts = n};
    for (int64_t i = 0; i < n && st == GGL_OK; i++) {
        llm_noticed_part in;
        const float *got;
        st = look(e, p, k + i, name, &in, &got, &m->n_each, err);
        const size_t each = (size_t)m->n_each;
        if (st == GGL_OK && i == 0) {
            m->row = ggl_calloc(each * (size_t)n * n_row, sizeof *m->row);
            m->place = ggl_calloc(each * (size_t)n * 3, sizeof *m->place);
            if (!m->row || !m->place)
                st = ggl_fail(err, GGL_NOMEM, "%s: out of memory for its rows", name);
        }
        if (st == GGL_OK) {
            memcpy(m->row + (size_t)i * each * n_row, got, each * n_row * sizeof *got);
            for (size_t at = 0; at < 3 * each; at++)
                m->place[(size_t)i * each * 3 + at] = in.place ? in.place[at] : (int32_t)(at / 3);
            move_beside(m->place + (size_t)i * each * 3, m->n_each, i);
        }
        llm_noticed_part_fini(&in);
    }
    return st;
}

/* Adds the rows of n parts from k on, which stand side by side; `before` and `behind` are the texts around them. */
static ggl_status add_rows(llm_eye *e, const parts *p, int64_t k, int64_t n, const char *name,
                           const char *before, const char *behind, gathered *to, ggl_error *err) {
    const llm_arch_picture *rule = rule_of(e);
    llm_picture_order o = {0};
    made m;
    ggl_status st = make_rows(&m, e, p, k, n, name, err);
    if (st == GGL_OK)
        st = rule->pairs > 0 ? llm_picture_pairs_new(&o, rule, m.place, m.n_each, err)
                             : llm_picture_order_new(&o, rule, m.place, m.n_each * n, err);
    if (rule->pairs > 0)
        before = behind = ""; /* the order has them */
    if (st == GGL_OK)
        st = add_named(to, before, m.row, m.n_each, err);
    for (int64_t i = rule->pairs > 0; i < o.n && st == GGL_OK; i++) {
        if (o.at[i] != LLM_PICTURE_LINE) {
            st = add_row(to, m.row + (size_t)o.at[i] * to->n_row, err);
            continue;
        }
        st = add_named(to, line_end_of(rule, k), m.row, m.n_each, err);
        if (st == GGL_OK && i + 1 < o.n)
            st = add_named(to, rule->line, m.row, m.n_each, err);
    }
    if (st == GGL_OK)
        st = add_named(to, behind, m.row, m.n_each, err);
    llm_picture_order_fini(&o);
    ggl_free(m.row);
    ggl_free(m.place);
    return st;
}

ggl_status llm_image_rows(llm_context *c, const llm_image *image, float **row, size_t *n,
                          size_t *n_row, ggl_error *err) {
    parts p = {0};
    llm_eye *e;
    *row = NULL;
    *n = 0;
    llm_context_start_beside(c);
    ggl_status st = llm_eye_need(c, &llm_eye_pictures, &e, err);
    if (st != GGL_OK)
        return st;
    st = see(&p, e, image, err);
    *n_row = (size_t)llm_stages_n_row(e->stages);
    const llm_arch_picture *rule = rule_of(e);
    gathered to = {.n_row = *n_row};
    int64_t nx, ny, n_at_once;
    get_grid(p.id, &nx, &ny);
    for (int64_t i = 0; i < p.n && st == GGL_OK; i += n_at_once) { /* in the order of a text */
        const int64_t k = rule->tiles.whole_first ? i : (i + 1) % p.n;
        n_at_once = rule->tiles.in_lines && k > 0 ? nx : 1;
        st = add_rows(e, &p, k, n_at_once, name_of(image), i == 0 ? rule->begin : "",
                      i + n_at_once == p.n ? rule->end : "", &to, err);
    }
    parts_free(&p);
    *row = to.row;
    *n = to.n;
    if (st != GGL_OK) {
        ggl_free(to.row);
        *row = NULL;
    }
    return llm_context_end_beside(c, st);
}

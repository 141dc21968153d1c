#include "prepare.h"

#include <math.h>
#include <string.h>

#include "ggl/alloc.h"
#include "resize.h"

enum { LEVELS = 256, CHANNELS = 3 };

static void paint(llm_picture *p, const uint8_t color[CHANNELS]) {
    for (int64_t i = 0; i < p->width * p->height; i++)
        memcpy(p->rgb + i * CHANNELS, color, CHANNELS);
}

ggl_status llm_picture_draw(llm_picture **out, const llm_picture *from, const llm_picture_fit *f,
                            const llm_picture_part *part, llm_arch_resize resize,
                            const uint8_t color[CHANNELS], const char *name, ggl_error *err) {
    llm_picture *p = NULL;
    *out = NULL;
    ggl_status st = llm_picture_new(&p, part->width, part->height, name, err);
    if (st != GGL_OK)
        return st;
    paint(p, color);
    /* where the resized picture is, from the part's corner, and what of it is in the part */
    const int64_t x = f->left - part->x, y = f->top - part->y;
    const int64_t left = x > 0 ? x : 0, top = y > 0 ? y : 0;
    const int64_t right = x + f->inner_width < p->width ? x + f->inner_width : p->width,
                  bottom = y + f->inner_height < p->height ? y + f->inner_height : p->height;
    const picture_window w = {.x = left - x,
                              .y = top - y,
                              .width = right - left,
                              .height = bottom - top,
                              .to = p->rgb + (top * p->width + left) * CHANNELS,
                              .stride = p->width * CHANNELS};
    if (right > left && bottom > top)
        st = llm_picture_resize(&w, resize, from, f->inner_width, f->inner_height, name, err);
    if (st == GGL_OK)
        *out = p;
    else
        llm_picture_free(p);
    return st;
}

ggl_status llm_picture_before(llm_picture **out, const llm_arch_picture *rule,
                              const llm_picture *from, const char *name, ggl_error *err) {
    const int64_t longer = from->width > from->height ? from->width : from->height,
                  shorter = from->width + from->height - longer;
    const bool is_thin = shorter < rule->thin && shorter * 4 < longer;
    const bool is_large = rule->longest > 0 && longer > rule->longest;
    llm_picture_fit f = {.inner_width = from->width, .inner_height = from->height};
    llm_picture_part part = {.width = is_thin ? longer : from->width,
                             .height = is_thin ? longer : from->height};
    llm_picture *square = NULL;
    *out = NULL;
    if (is_thin && longer > LLM_PICTURE_SEEN / longer)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: has %lld x %lld pixels, of which the model would see a square of %lld "
                        "x %lld, more than %d pixels: cut it into parts",
                        name, (long long)from->width, (long long)from->height, (long long)longer,
                        (long long)longer, LLM_PICTURE_SEEN);
    ggl_status st =
        is_thin ? llm_picture_draw(&square, from, &f, &part, rule->resize, rule->color, name, err)
                : GGL_OK;
    if (st != GGL_OK || !is_large) {
        *out = square;
        return st;
    }
    const double by = (double)rule->longest / (double)longer;
    part.width = f.inner_width = (int64_t)fmax(floor((double)part.width * by), 1);
    part.height = f.inner_height = (int64_t)fmax(floor((double)part.height * by), 1);
    st = llm_picture_draw(out, square ? square : from, &f, &part, rule->resize, rule->color, name,
                          err);
    llm_picture_free(square);
    return st;
}

ggl_status llm_picture_seen(llm_picture **out, const llm_arch_picture *rule,
                            const llm_picture *from, const char *name, ggl_error *err) {
    llm_picture_fit f;
    *out = NULL;
    const ggl_status st = llm_picture_fit_for(&f, rule, from->width, from->height, name, err);
    const llm_picture_part all = {0, 0, f.width, f.height};
    return st == GGL_OK
               ? llm_picture_draw(out, from, &f, &all, rule->resize, rule->color, name, err)
               : st;
}

/* The numbers that the 256 values of each color become. */
typedef struct levels {
    float of[CHANNELS][LEVELS];
} levels;

static levels levels_of(const llm_arch_picture *rule) {
    levels l;
    for (int c = 0; c < CHANNELS; c++)
        for (int i = 0; i < LEVELS; i++)
            l.of[c][i] = ((float)i / 255.0F - (float)rule->mean[c]) / (float)rule->std[c];
    return l;
}

void llm_picture_normalize(float *to, const llm_arch_picture *rule, const llm_picture *seen) {
    const levels l = levels_of(rule);
    for (int64_t i = 0; i < seen->width * seen->height * CHANNELS; i++)
        to[i] = l.of[i % CHANNELS][seen->rgb[i]];
}

enum { MOST_TABLE = 1 << 12 }; /* entries of a table's side */

/* Which entries of a table's side the patch i of n has shares of. */
typedef struct side_shares {
    int64_t n, entry[4];
    double share[4];
} side_shares;

/* Keys' cubic convolution, by the distance. */
static double cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : (((x - 5) * x + 8) * x - 4) * a;
}

static side_shares shares_of(const llm_arch_picture *rule, int64_t i, int64_t n) {
    const int64_t last = rule->table - 1;
    const bool is_cubic = rule->between == LLM_BETWEEN_CUBIC;
    const double at = rule->between == LLM_BETWEEN_CORNERS
                          ? (n > 1 ? (double)(i * last) / (double)(n - 1) : 0)
                          : ((double)i + 0.5) * (double)rule->table / ((double)n + rule->widened) -
                                0.5,
                 low = floor(at), behind = at - low;
    side_shares s = {.n = is_cubic ? 4 : 2};
    for (int64_t k = 0; k < s.n; k++) {
        const double entry = low + (double)k - (is_cubic ? 1 : 0);
        s.entry[k] = entry < 0 ? 0 : entry > (double)last ? last : (int64_t)entry;
        const bool is_zero =
            rule->between == LLM_BETWEEN_LINEAR_ZERO && (entry < 0 || entry > (double)last);
        s.share[k] = is_zero ? 0 : is_cubic ? cubic(at - entry) : k == 0 ? 1 - behind : behind;
    }
    return s;
}

/* The cell of a table in which the patch begins. */
static void find_cell(llm_picture_rows *r, int64_t k, const llm_arch_picture *rule) {
    const int64_t side = rule->table;
    for (int i = 0; i < 4; i++)
        r->entry[4 * k + i] = (int32_t)(r->y[k] * side / r->ny * side + r->x[k] * side / r->nx);
    r->share[4 * k] = 1;
}

static void find_entries(llm_picture_rows *r, int64_t k, const llm_arch_picture *rule) {
    const int64_t number = r->y[k] * r->nx + r->x[k];
    const int64_t tile = rule->tiles.woven ? rule->size / rule->patch : 0; /* which has the table */
    const side_shares y = rule->crossed ? shares_of(rule, number / r->ny, r->nx)
                          : tile        ? shares_of(rule, r->y[k] % tile, tile)
                                        : shares_of(rule, r->y[k], r->ny),
                      x = rule->crossed ? shares_of(rule, number % r->ny, r->ny)
                          : tile        ? shares_of(rule, r->x[k] % tile, tile)
                                        : shares_of(rule, r->x[k], r->nx);
    const int64_t at = k * y.n * x.n;
    for (int64_t i = 0; i < y.n; i++)
        for (int64_t j = 0; j < x.n; j++) {
            r->entry[at + i * x.n + j] = (int32_t)(y.entry[i] * rule->table + x.entry[j]);
            r->share[at + i * x.n + j] = (float)(y.share[i] * x.share[j]);
        }
}

/* Shares of all entries, of which most are 0. */
static void find_wide(llm_picture_rows *r, int64_t k, const llm_arch_picture *rule) {
    double y[MOST_TABLE], x[MOST_TABLE];
    int64_t first_y, first_x;
    const int64_t side = rule->table,
                  ny = llm_picture_shares(LLM_RESIZE_PIL_LINEAR, r->y[k], side, r->ny, y, &first_y),
                  nx = llm_picture_shares(LLM_RESIZE_PIL_LINEAR, r->x[k], side, r->nx, x, &first_x);
    float *to = r->share + k * side * side;
    for (int64_t i = 0; i < ny; i++)
        for (int64_t j = 0; j < nx; j++)
            to[(first_y + i) * side + first_x + j] = (float)(y[i] * x[j]);
}

static void find_in_table(llm_picture_rows *r, int64_t k, const llm_arch_picture *rule) {
    (rule->cells                         ? find_cell
     : rule->between == LLM_BETWEEN_WIDE ? find_wide
                                         : find_entries)(r, k, rule);
}

static void fill_row(float *to, const llm_picture *p, int64_t patch, int64_t px, int64_t py,
                     const levels *l) {
    for (int c = 0; c < CHANNELS; c++)
        for (int64_t y = 0; y < patch; y++) {
            const uint8_t *from =
                p->rgb + ((py * patch + y) * p->width + px * patch) * CHANNELS + c;
            for (int64_t x = 0; x < patch; x++)
                *to++ = l->of[c][from[x * CHANNELS]];
        }
}

/* The patch j of a block: squares within it are in the order of lines, and so are those, or the patches, within each. */
static void find_patch(llm_picture_rows *r, int64_t k, const llm_arch_picture *rule, int64_t j) {
    int64_t around = rule->block;
    for (int i = 0; i <= LLM_ARCH_MAX_INNER; i++) {
        const int64_t own = i < LLM_ARCH_MAX_INNER ? rule->inner[i] : 1, side = own > 1 ? own : 1;
        const int64_t square = j / (side * side), across = around / side;
        r->x[k] += (int32_t)(square % across * side);
        r->y[k] += (int32_t)(square / across * side);
        j %= side * side;
        around = side;
    }
}

static void fill(llm_picture_rows *r, const llm_arch_picture *rule, const llm_picture *p) {
    const levels l = levels_of(rule);
    const int64_t block = rule->block, n_across = r->nx / block;
    for (int64_t k = rule->first; k < r->n; k++) {
        const int64_t i = k - rule->first, b = i / (block * block), j = i % (block * block);
        r->x[k] = (int32_t)(b % n_across * block);
        r->y[k] = (int32_t)(b / n_across * block);
        find_patch(r, k, rule, j);
        if (r->x[k] >= p->width / rule->patch || r->y[k] >= p->height / rule->patch) {
            r->x[k] = -1 - r->x[k];
            r->y[k] = -1 - r->y[k];
            continue;
        }
        fill_row(r->row + k * r->n_row, p, rule->patch, r->x[k], r->y[k], &l);
        if (r->share)
            find_in_table(r, k, rule);
    }
}

ggl_status llm_picture_rows_new(llm_picture_rows **out, const llm_arch_picture *rule,
                                const llm_picture *seen, const char *name, ggl_error *err) {
    const int64_t side = rule->patch * (rule->fit == LLM_FIT_TOKENS ? 1 : rule->block);
    *out = NULL;
    if (side < 1 || seen->width < side || seen->height < side ||
        llm_picture_patches(rule, seen->width) % rule->block ||
        llm_picture_patches(rule, seen->height) % rule->block)
        return ggl_fail(
            err, GGL_USAGE,
            "%s: %lld x %lld pixels, which are no blocks of %lld x %lld patches of %lld", name,
            (long long)seen->width, (long long)seen->height, (long long)rule->block,
            (long long)rule->block, (long long)rule->patch);
    llm_picture_rows *r = ggl_calloc(1, sizeof *r);
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    r->nx = llm_picture_patches(rule, seen->width);
    r->ny = llm_picture_patches(rule, seen->height);
    r->n = rule->first + r->nx * r->ny;
    r->n_row = CHANNELS * rule->patch * rule->patch;
    const size_t n = (size_t)r->n;
    r->row = ggl_calloc(n, (size_t)r->n_row * sizeof *r->row);
    r->y = ggl_calloc(n, sizeof *r->y);
    r->x = ggl_calloc(n, sizeof *r->x);
    const bool has_entries = rule->table > 0 && rule->between != LLM_BETWEEN_WIDE;
    r->n_entry = rule->table > 0 ? llm_arch_picture_entries(rule) : 0;
    if (has_entries)
        r->entry = ggl_calloc(n * (size_t)r->n_entry, sizeof *r->entry);
    if (rule->table > 0)
        r->share = ggl_calloc(n * (size_t)r->n_entry, sizeof *r->share);
    if (!r->row || !r->y || !r->x || (has_entries && !r->entry) || (rule->table > 0 && !r->share)) {
        llm_picture_rows_free(r);
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory for %zu rows", name, n);
    }
    fill(r, rule, seen);
    *out = r;
    return GGL_OK;
}

void llm_picture_rows_free(llm_picture_rows *r) {
    if (!r)
        return;
    ggl_free(r->row);
    ggl_free(r->y);
    ggl_free(r->x);
    ggl_free(r->entry);
    ggl_free(r->share);
    ggl_free(r);
}

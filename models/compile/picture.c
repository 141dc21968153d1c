/* Rows of an input that are made of a picture: how they are made, and the places that the descriptor asks for, those of patches in a
 * picture and those of tokens in a text with pictures. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "compile.h"

enum { MOST_PIXELS = 1 << 30 };

bool llm_arch_want_word(arch_eval *ev, const arch_expr *e, const arch_value *v,
                        const char *const *word, int n, int *out) {
    char text[256], all[256] = "";
    for (int k = 0; k < n; k++) {
        if (v->kind == VAL_STRING && v->str.n == strlen(word[k]) &&
            memcmp(v->str.s, word[k], v->str.n) == 0) {
            *out = k;
            return true;
        }
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s\"%s\"", k ? ", " : "", word[k]);
    }
    llm_arch_error(ev, e->place, "one of %s is expected: %s", all,
                   llm_arch_value_text(v, text, sizeof text));
    return false;
}

/* Reads a number for red, green and blue, or one for all of them. */
static bool read_colors(arch_eval *ev, const arch_expr *e, const arch_value *v, double least,
                        double most, double out[3]) {
    if (v->kind == VAL_LIST && v->n != 3) {
        llm_arch_error(ev, e->place,
                       "a number for red, green and blue is expected, but the list has %zu", v->n);
        return false;
    }
    for (int k = 0; k < 3; k++) {
        const arch_value x = v->kind == VAL_LIST ? llm_arch_list_item(ev, e, v, k) : *v;
        if (x.kind == VAL_FAIL || !llm_arch_want_number(ev, e, &x, &out[k]))
            return false;
        if (!(out[k] >= least && out[k] <= most)) {
            llm_arch_error(ev, e->place, "a number from %g to %g is expected, not %g", least, most,
                           out[k]);
            return false;
        }
    }
    return true;
}

bool llm_arch_want_row_text(arch_eval *ev, const arch_expr *e, const arch_value *v,
                            char out[LLM_ARCH_TEXT]) {
    char text[256];
    if (!v)
        return true;
    const bool fits = v->kind == VAL_STRING && v->str.n < LLM_ARCH_TEXT;
    if (fits)
        snprintf(out, LLM_ARCH_TEXT, "%.*s", (int)v->str.n, v->str.s);
    else
        llm_arch_error(ev, e->place, "a text of less than %d bytes is expected: %s", LLM_ARCH_TEXT,
                       llm_arch_value_text(v, text, sizeof text));
    return fits;
}

/* Reads a text that may stand in place of another one, and names no rows. */
static bool read_other_text(arch_eval *ev, const arch_expr *e, const arch_value *v,
                            char out[LLM_ARCH_TEXT]) {
    if (!llm_arch_want_row_text(ev, e, v, out))
        return false;
    bool names = false;
    for (const char *s = out; *s && !names; s++)
        names = llm_arch_row_named(s) >= 0;
    if (names)
        llm_arch_error(ev, e->place, "a text in place of another one names no rows");
    return !names;
}

/* Counts the rows that are named in texts: {0}, {1} .. */
static void count_marks(llm_arch_picture *p, const char *text) {
    for (; *text; text++)
        if (llm_arch_row_named(text) >= p->n_marks)
            p->n_marks = llm_arch_row_named(text) + 1;
}

/* Reads the sides of the squares within a block, the largest first: a number, or a list. */
static bool read_inner(arch_eval *ev, const arch_expr *e, const arch_value *v,
                       llm_arch_picture *p) {
    const size_t n = v->kind == VAL_LIST ? v->n : 1;
    int64_t around = p->block;
    if (n > LLM_ARCH_MAX_INNER) {
        llm_arch_error(ev, e->place, "at most %d squares one in the other, not %zu",
                       LLM_ARCH_MAX_INNER, n);
        return false;
    }
    for (size_t k = 0; k < n; k++) {
        const arch_value x = v->kind == VAL_LIST ? llm_arch_list_item(ev, e, v, k) : *v;
        if (x.kind == VAL_FAIL || !llm_arch_want_whole(ev, e, &x, 1, 64, &p->inner[k]))
            return false;
        if (around % p->inner[k] != 0) {
            llm_arch_error(ev, e->place,
                           "a square of %lld x %lld patches does not consist of squares of "
                           "%lld x %lld",
                           (long long)around, (long long)around, (long long)p->inner[k],
                           (long long)p->inner[k]);
            return false;
        }
        around = p->inner[k];
    }
    return true;
}

static const char *const resizes[] = {"linear", "cubic", "pil_linear", "pil_cubic", "pil_lanczos"};
enum { N_RESIZES = sizeof resizes / sizeof *resizes };

/* Arguments of picture(..), in the order of its signature. */
enum {
    ARG_PATCH,
    ARG_MEAN,
    ARG_STD,
    ARG_SIZE,
    ARG_FIT,
    ARG_RESIZE,
    ARG_BLOCK,
    ARG_LEAST,
    ARG_MOST,
    ARG_COLOR,
    ARG_FIRST,
    ARG_TABLE,
    ARG_BEGIN,
    ARG_END,
    ARG_LINE,
    ARG_ORIGIN,
    ARG_CELLS,
    ARG_BETWEEN,
    ARG_CROSSED,
    ARG_INNER,
    ARG_PLACES,
    ARG_LINE_END,
    ARG_LONGEST,
    ARG_THIN,
    ARG_PAIRS,
    ARG_FILL,
    ARG_WIDE,
    ARG_WIDENED,
    ARG_OR_BEGIN,
    ARG_OR_END,
    ARG_COUNT
};
_Static_assert(ARG_COUNT <= ARCH_MAX_SIG, "the signature has room for them");

/* Checks what goes with pairs of lines, which are made of rows that have names: one for each text. */
static bool check_pairs(arch_eval *ev, const arch_expr *const *e, const llm_arch_picture *p) {
    const char *const text[] = {p->begin, p->end, p->line_end, p->fill};
    bool are_rows = true;
    for (size_t k = 0; k < sizeof text / sizeof *text; k++)
        are_rows = are_rows && llm_arch_row_named(text[k]) >= 0 && !text[k][3];
    const char *wrong =
        p->pairs == 0 ? (p->fit == LLM_FIT_TOKENS
                             ? "a picture of so many tokens stands in pairs of lines: pairs"
                         : *p->fill ? "only pairs of lines are filled: pairs"
                                    : NULL)
        : !are_rows || *p->line
            ? "of pairs of lines, begin, end, line_end and fill are each the name of a row, as "
              "\"{0}\", and there is no line"
        : p->origin || p->table    ? "pairs of lines have no origin and no table of positions"
        : p->in_turn || p->at_once ? "rows in pairs of lines have places of their own: places = 1"
                                   : NULL;
    if (wrong)
        llm_arch_error(ev, e[ARG_PATCH]->place, "%s", wrong);
    return !wrong;
}

static bool read_widened(arch_eval *ev, const arch_expr *e, const arch_value *v,
                         llm_arch_picture *p) {
    if (!v)
        return true;
    if (!llm_arch_want_number(ev, e, v, &p->widened))
        return false;
    if (!(p->widened >= 0 && p->widened < 1))
        llm_arch_error(ev, e->place, "a picture is widened by less than a patch, not by %g",
                       p->widened);
    return p->widened >= 0 && p->widened < 1;
}

/* Reads the arguments that are given. */
static bool read_args(arch_eval *ev, const arch_value *const *v, const arch_expr *const *e,
                      llm_arch_picture *p) {
    static const char *const fits[] = {"stretch", "pad",    "crop",    "follow", "follow_pad",
                                       "longest", "area",   "aspect",  "fill",   "steps",
                                       "patches", "within", "pil_pad", "tokens", "canvas"};
    static const char *const ways[] = {"corners", "linear", "linear_zero", "cubic", "wide"};
    int64_t cells = 0, crossed = 0, places = 1;
    const struct {
        int64_t *to, least, most;
    } whole[ARG_COUNT] = {
        [ARG_PATCH] = {&p->patch, 1, 1024},
        [ARG_SIZE] = {&p->size, 1, 1 << 15},
        [ARG_BLOCK] = {&p->block, 1, 64},
        [ARG_LEAST] = {&p->least, 1, MOST_PIXELS},
        [ARG_MOST] = {&p->most, 1, MOST_PIXELS},
        [ARG_FIRST] = {&p->first, 0, 1024},
        [ARG_TABLE] = {&p->table, 1, 1 << 12},
        [ARG_ORIGIN] = {&p->origin, 0, 1},
        [ARG_CELLS] = {&cells, 0, 1},
        [ARG_CROSSED] = {&crossed, 0, 1},
        [ARG_PLACES] = {&places, 0, 2},
        [ARG_LONGEST] = {&p->longest, 0, 1 << 15},
        [ARG_THIN] = {&p->thin, 0, 1 << 15},
        [ARG_PAIRS] = {&p->pairs, 0, 64},
        [ARG_WIDE] = {&p->wide, 0, 200},
    };
    double color[3] = {0};
    int fit = LLM_FIT_STRETCH, resize = LLM_RESIZE_LINEAR, between = LLM_BETWEEN_CORNERS;
    for (int k = 0; k < ARG_COUNT; k++)
        if (v[k] && whole[k].to &&
            !llm_arch_want_whole(ev, e[k], v[k], whole[k].least, whole[k].most, whole[k].to))
            return false;
    if (!read_colors(ev, e[ARG_MEAN], v[ARG_MEAN], -1e3, 1e3, p->mean) ||
        !read_colors(ev, e[ARG_STD], v[ARG_STD], 1e-6, 1e6, p->std) ||
        (v[ARG_COLOR] && !read_colors(ev, e[ARG_COLOR], v[ARG_COLOR], 0, 255, color)) ||
        (v[ARG_FIT] &&
         !llm_arch_want_word(ev, e[ARG_FIT], v[ARG_FIT], fits, sizeof fits / sizeof *fits, &fit)) ||
        (v[ARG_RESIZE] &&
         !llm_arch_want_word(ev, e[ARG_RESIZE], v[ARG_RESIZE], resizes, N_RESIZES, &resize)) ||
        (v[ARG_BETWEEN] && !llm_arch_want_word(ev, e[ARG_BETWEEN], v[ARG_BETWEEN], ways,
                                               sizeof ways / sizeof *ways, &between)) ||
        !read_widened(ev, e[ARG_WIDENED], v[ARG_WIDENED], p) ||
        !llm_arch_want_row_text(ev, e[ARG_BEGIN], v[ARG_BEGIN], p->begin) ||
        !llm_arch_want_row_text(ev, e[ARG_END], v[ARG_END], p->end) ||
        !read_other_text(ev, e[ARG_OR_BEGIN], v[ARG_OR_BEGIN], p->or_begin) ||
        !read_other_text(ev, e[ARG_OR_END], v[ARG_OR_END], p->or_end) ||
        !llm_arch_want_row_text(ev, e[ARG_LINE], v[ARG_LINE], p->line) ||
        !llm_arch_want_row_text(ev, e[ARG_LINE_END], v[ARG_LINE_END], p->line_end) ||
        !llm_arch_want_row_text(ev, e[ARG_FILL], v[ARG_FILL], p->fill) ||
        (v[ARG_INNER] && !read_inner(ev, e[ARG_INNER], v[ARG_INNER], p)))
        return false;
    count_marks(p, p->begin);
    count_marks(p, p->end);
    count_marks(p, p->line);
    count_marks(p, p->line_end);
    count_marks(p, p->fill);
    for (int k = 0; k < 3; k++)
        p->color[k] = (uint8_t)color[k];
    if (cells == 1 && between != LLM_BETWEEN_CORNERS)
        return llm_arch_error(ev, e[ARG_BETWEEN]->place,
                              "cells of a table have nothing between them"),
               false;
    p->cells = cells == 1;
    p->in_turn = places == 0;
    p->at_once = places == 2;
    p->between = (llm_arch_between)between;
    p->crossed = crossed == 1;
    p->fit = (llm_arch_fit)fit;
    p->resize = (llm_arch_resize)resize;
    return check_pairs(ev, e, p);
}

/* How many blocks there are at most where both sides of a rectangle of n blocks are rounded, up by less than one: no side is more than 200 times
 * as long as the other. */
static int64_t rounded_blocks(double n) {
    return (int64_t)(n + sqrt(200 * n) + sqrt(n / 200) + 1);
}

/* How many patches a picture has at most, those of its edges included, of which so many are whole: one side is 400 times as long as the other. */
static double with_edges(double n) {
    return n + sqrt(400 * n) + 2 * sqrt(n) + 2;
}

int64_t llm_arch_picture_rows(const llm_arch_picture *p) {
    const int64_t unit = p->patch * p->block, side = (p->size + unit - 1) / unit,
                  each = p->block * p->block;
    const double area = (double)unit * (double)unit;
    if (p->fit == LLM_FIT_WITHIN)
        return p->first +
               rounded_blocks(with_edges((double)p->most / (double)(p->patch * p->patch)) /
                              (double)each) *
                   each;
    if (p->fit == LLM_FIT_TOKENS)
        return p->first + p->most * each;
    if (llm_arch_fit_is_counted(p->fit))
        return p->first + p->most / (p->patch * p->patch);
    if (p->fit == LLM_FIT_AREA)
        return p->first + rounded_blocks((double)p->size * (double)p->size / area) * each;
    return p->first + side * side * each;
}

arch_value llm_arch_from_picture(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                                 const arch_expr *const *arg) {
    llm_arch_picture p = {.block = 1};
    if (!read_args(ev, v, arg, &p))
        return ARCH_FAIL;
    const int64_t unit = p.patch * p.block;
    const bool is_counted = llm_arch_fit_is_counted(p.fit);
    if (p.fit == LLM_FIT_TOKENS ? p.most < llm_arch_picture_tokens(&p, 2, 2) || !p.least
        : is_counted
            ? !p.most || p.most < unit * unit || p.least > p.most
            : !p.size || p.size < unit ||
                  (p.fit != LLM_FIT_LONGEST && p.fit != LLM_FIT_AREA && p.size % unit != 0))
        return llm_arch_error(
            ev, e->mark,
            p.fit == LLM_FIT_TOKENS
                ? "a picture of %lld x %lld pixels a block that has `most` tokens needs those of "
                  "2 x 2 blocks in lines by `pairs`, and `least` pixels"
            : is_counted ? "a picture near its own size needs `most` pixels, at least those of a "
                           "block of %lld x %lld, and not less than `least`"
                         : "a picture needs a size that is a multiple of %lld x %lld pixels, the "
                           "patches of a block",
            (long long)unit, (long long)unit);
    const arch_value prepared = llm_arch_from_floats(ev, e, llm_arch_picture_rows(&p));
    if (prepared.kind == VAL_FAIL)
        return prepared;
    llm_arch_rows_of *row = &ev->preparing->row;
    if (row->n_dims != 3 || row->ne[0] != p.patch || row->ne[1] != p.patch || row->ne[2] != 3)
        return llm_arch_error(ev, e->mark,
                              "a picture becomes rows of [patch, patch, 3], here [%lld, %lld, 3]",
                              (long long)p.patch, (long long)p.patch);
    row->picture = p;
    return prepared;
}

/* --- tiles ------------------------------------------------------------------------------------ */

/* Arguments of tiles(..), in the order of its signature. */
enum {
    TILES_PICTURE,
    TILES_BY,
    TILES_LEAST,
    TILES_MOST,
    TILES_GRIDS,
    TILES_FIT,
    TILES_RESIZE,
    TILES_COLOR,
    TILES_WHOLE_FIRST,
    TILES_BEGIN,
    TILES_END,
    TILES_TILE,
    TILES_TILE_END,
    TILES_NEXT,
    TILES_LINE,
    TILES_WHOLE,
    TILES_WHOLE_END,
    TILES_BESIDE,
    TILES_SIZE,
    TILES_ABOVE,
    TILES_WOVEN,
    TILES_UNPAD,
    TILES_LINE_END,
    TILES_COUNT
};
_Static_assert(TILES_COUNT <= ARCH_MAX_SIG, "the signature has room for them");

static const char one_size[] = "tiles of one size go with a picture of one size: fit = "
                               "\"stretch\", \"pad\" or \"crop\"";

/* Reads a side of a grid, in pixels, as a number of tiles. */
static bool read_side(arch_eval *ev, const arch_expr *e, const arch_value *x, int64_t size,
                      int32_t *out) {
    int64_t pixels;
    if (x->kind == VAL_FAIL || !llm_arch_want_whole(ev, e, x, size, 1 << 20, &pixels))
        return false;
    if (pixels % size != 0)
        llm_arch_error(ev, e->place, "a side of %lld pixels does not consist of tiles of %lld",
                       (long long)pixels, (long long)size);
    *out = (int32_t)(pixels / size);
    return pixels % size == 0;
}

/* Reads pairs of widths and heights in pixels; one number is the side of a square. */
static bool read_grids(arch_eval *ev, const arch_expr *e, const arch_value *v, int64_t size,
                       llm_arch_tiles *t) {
    const bool is_list = v->kind == VAL_LIST;
    if (size < 1) {
        llm_arch_error(ev, e->place, "%s", one_size);
        return false;
    }
    if (is_list && (v->n % 2 != 0 || v->n < 2 || v->n > 2 * LLM_ARCH_MAX_GRIDS)) {
        llm_arch_error(ev, e->place,
                       "1 to %d pairs of a width and a height in pixels are expected, but the list "
                       "has %zu numbers",
                       LLM_ARCH_MAX_GRIDS, v->n);
        return false;
    }
    t->n_grid = is_list ? (int)(v->n / 2) : 1;
    for (int k = 0; k < 2 * t->n_grid; k++) {
        const arch_value x = is_list ? llm_arch_list_item(ev, e, v, k) : *v;
        if (!read_side(ev, e, &x, size, &t->grid[k / 2][k % 2]))
            return false;
    }
    return true;
}

/* How many tiles a grid has at most. */
static int64_t most_tiles(const llm_arch_picture *p) {
    const llm_arch_tiles *t = &p->tiles;
    int64_t most = t->most;
    if (t->by == LLM_TILES_LONGEST && p->size > 0) {
        const int64_t across = (t->most + p->size - 1) / p->size;
        most = across * across;
    }
    for (int k = 0; k < t->n_grid; k++) {
        const int64_t n = (int64_t)t->grid[k][0] * t->grid[k][1];
        most = n > most ? n : most;
    }
    return most;
}

/* Checks that no grid has more tiles than a picture may have. */
static bool check_tiles(arch_eval *ev, const arch_expr *e, const llm_arch_picture *p) {
    const llm_arch_tiles *t = &p->tiles;
    const int64_t most = most_tiles(p);
    if (t->by == LLM_TILES_FIT ? t->n_grid == 0 && t->most < 1
                               : t->by != LLM_TILES_WINDOWS && t->most < 1)
        llm_arch_error(ev, e->mark, "tiles need `most`%s",
                       t->by == LLM_TILES_FIT ? " or a list of grids" : "");
    else if (most > LLM_ARCH_MAX_TILES ||
             (t->n_grid == 0 && t->by != LLM_TILES_WINDOWS && t->least > t->most))
        llm_arch_error(ev, e->mark,
                       "%lld to %lld tiles: at most %d are possible, and no less than `least`",
                       (long long)t->least, (long long)most, LLM_ARCH_MAX_TILES);
    else if (llm_arch_tiles_sized(t) && (t->size < 1 || t->size % (p->patch * p->block) != 0))
        llm_arch_error(ev, e->mark,
                       "tiles by %s need a size that is a multiple of %lld pixels, the patches of "
                       "a block",
                       t->by == LLM_TILES_RATIO ? "ratio" : "windows",
                       (long long)(p->patch * p->block));
    else if (t->by == LLM_TILES_RATIO && !(t->above >= 0))
        llm_arch_error(ev, e->mark, "tiles by ratio have `above`, a number of pixels");
    else if (t->in_lines && !llm_arch_picture_is_plane(p))
        llm_arch_error(ev, e->mark, "%s", LLM_ARCH_NO_PLANE);
    else if (t->by == LLM_TILES_WINDOWS && p->fit != LLM_FIT_STRETCH)
        llm_arch_error(ev, e->mark, "tiles by windows go with fit = \"stretch\"");
    else if (t->woven && (t->by == LLM_TILES_SHAPE || llm_arch_tiles_sized(t)))
        llm_arch_error(ev, e->mark, "tiles that are woven have the size of the whole");
    else if (t->unpad && !(t->woven && t->fit == LLM_FIT_PAD))
        llm_arch_error(ev, e->mark, "unpad goes with woven = 1 and fit = \"pad\"");
    else if (t->by == LLM_TILES_SHAPE ? p->fit != LLM_FIT_AREA
                                      : !llm_arch_tiles_sized(t) && !llm_arch_fit_is_square(p->fit))
        llm_arch_error(ev, e->mark, "%s",
                       t->by == LLM_TILES_SHAPE ? "tiles by shape go with fit = \"area\""
                                                : one_size);
    else
        return true;
    return false;
}

arch_value llm_arch_in_tiles(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                             const arch_expr *const *arg) {
    static const char *const ways[] = {"none", "fit", "longest", "shape", "ratio", "windows"},
                             *const fits[] = {"stretch", "pad"};
    if (!ev->preparing || ev->preparing->row.picture.patch == 0 ||
        ev->preparing->row.picture.tiles.by != LLM_TILES_NONE)
        return llm_arch_error(ev, e->mark, "tiles(picture(..), ..) are of a picture, once");
    llm_arch_picture *p = &ev->preparing->row.picture;
    llm_arch_tiles t = {.least = 1};
    double color[3] = {0};
    int by, fit = LLM_FIT_STRETCH, resize = LLM_RESIZE_LINEAR;
    int64_t first = 0, woven = 0, unpad = 0;
    if (!llm_arch_want_word(ev, arg[TILES_BY], v[TILES_BY], ways, sizeof ways / sizeof *ways,
                            &by) ||
        (v[TILES_LEAST] &&
         !llm_arch_want_whole(ev, arg[TILES_LEAST], v[TILES_LEAST], 1, 1 << 20, &t.least)) ||
        (v[TILES_MOST] &&
         !llm_arch_want_whole(ev, arg[TILES_MOST], v[TILES_MOST], 1, 1 << 20, &t.most)) ||
        (v[TILES_SIZE] &&
         !llm_arch_want_whole(ev, arg[TILES_SIZE], v[TILES_SIZE], 1, 1 << 15, &t.size)) ||
        (v[TILES_ABOVE] && !llm_arch_want_number(ev, arg[TILES_ABOVE], v[TILES_ABOVE], &t.above)) ||
        (v[TILES_WHOLE_FIRST] &&
         !llm_arch_want_whole(ev, arg[TILES_WHOLE_FIRST], v[TILES_WHOLE_FIRST], 0, 1, &first)) ||
        (v[TILES_WOVEN] &&
         !llm_arch_want_whole(ev, arg[TILES_WOVEN], v[TILES_WOVEN], 0, 2, &woven)) ||
        (v[TILES_UNPAD] &&
         !llm_arch_want_whole(ev, arg[TILES_UNPAD], v[TILES_UNPAD], 0, 1, &unpad)) ||
        (v[TILES_GRIDS] && !read_grids(ev, arg[TILES_GRIDS], v[TILES_GRIDS], p->size, &t)) ||
        (v[TILES_FIT] && !llm_arch_want_word(ev, arg[TILES_FIT], v[TILES_FIT], fits, 2, &fit)) ||
        (v[TILES_RESIZE] && !llm_arch_want_word(ev, arg[TILES_RESIZE], v[TILES_RESIZE], resizes,
                                                N_RESIZES, &resize)) ||
        (v[TILES_COLOR] && !read_colors(ev, arg[TILES_COLOR], v[TILES_COLOR], 0, 255, color)))
        return ARCH_FAIL;
    char *const texts[TILES_COUNT] = {[TILES_BEGIN] = t.begin,   [TILES_END] = t.end,
                                      [TILES_TILE] = t.tile,     [TILES_NEXT] = t.next,
                                      [TILES_LINE] = t.line,     [TILES_TILE_END] = t.tile_end,
                                      [TILES_WHOLE] = t.whole,   [TILES_WHOLE_END] = t.whole_end,
                                      [TILES_BESIDE] = t.beside, [TILES_LINE_END] = t.line_end};
    for (int k = 0; k < TILES_COUNT; k++) {
        if (texts[k] && !llm_arch_want_row_text(ev, arg[k], v[k], texts[k]))
            return ARCH_FAIL;
        if (texts[k])
            count_marks(p, texts[k]);
    }
    for (int k = 0; k < 3; k++)
        t.color[k] = (uint8_t)color[k];
    t.by = (llm_arch_tiling)by;
    t.fit = (llm_arch_fit)fit;
    t.resize = (llm_arch_resize)resize;
    t.whole_first = first == 1;
    t.always = v[TILES_ABOVE] && t.above == 0;
    t.woven = woven == 1;
    t.in_lines = woven == 2;
    t.unpad = unpad == 1;
    p->tiles = t;
    if (t.by == LLM_TILES_NONE)
        return *v[TILES_PICTURE];
    if (p->pairs > 0)
        return llm_arch_error(ev, e->mark, "tiles do not stand in pairs of lines");
    if (!check_tiles(ev, e, p))
        return ARCH_FAIL;
    const int64_t n_whole = llm_arch_picture_rows(p),
                  n_tile = t.woven ? p->first + most_tiles(p) * (n_whole - p->first)
                                   : p->first + t.size / p->patch * (t.size / p->patch);
    ev->preparing->row.most = n_tile > n_whole ? n_tile : n_whole;
    return *v[TILES_PICTURE];
}

/* --- places ----------------------------------------------------------------------------------- */

/* How many lines, or columns, of patches a picture has at most, counted from 0: a thin one is a block wide. window: the side of those that are filled, or 0. */
static int64_t most_in_line(const llm_arch_rows_of *row, int64_t window) {
    const llm_arch_picture *p = &row->picture;
    const bool is_square = !llm_arch_fit_is_counted(p->fit) && p->fit != LLM_FIT_AREA;
    const int64_t unit = p->patch * p->block;
    if (is_square && row->is_plane) {
        const int64_t side = llm_arch_plane_of(row->most).ny, step = window > 0 ? window : 1;
        return llm_arch_steps(side, step) * step;
    }
    if (p->tiles.woven && is_square) /* all tiles in one line */
        return p->origin + most_tiles(p) * (p->size / p->patch);
    return p->origin +
           (is_square ? (p->size + unit - 1) / unit * p->block : (row->most - p->first) / p->block);
}

/* The number of lines or columns of the picture, or of the plane that the stage is over. */
static arch_value lines_of(arch_eval *ev, const arch_expr *e, const arch_source *from) {
    const llm_arch_picture *p = &from->row.picture;
    char name[2 * ARCH_MAX_NAME + 64];
    const bool is_picture = from->row.is_input && p->patch > 0;
    if (!from->row.is_plane && !is_picture)
        return llm_arch_error(ev, e->mark, "%s", LLM_ARCH_NO_PLANE);
    if (is_picture && p->origin > 0)
        return llm_arch_error(ev, e->mark,
                              "lines and columns are counted where the first is 0: origin = 0");
    snprintf(name, sizeof name, "%srows.%s.%s", ev->arch->has_tokens ? "stage." : "",
             from->row.name, e->name);
    arch_value v = llm_arch_tensor_value(llm_arch_input(ev, e->mark, name, GGL_I32, 0, NULL));
    v.range = from->row.is_plane ? llm_arch_plane_of(from->row.most).ny + 1
                                 : most_in_line(&from->row, 0) + 1;
    v.number_too = true;
    return v;
}

/* 1 for a patch of the picture, 0 for a row of zeros in its place: the input rows.NAME.there. */
static arch_value is_patch(arch_eval *ev, const arch_expr *e, const arch_source *from) {
    char name[2 * ARCH_MAX_NAME + 64];
    if (!from->row.is_input || from->row.picture.patch == 0)
        return llm_arch_error(ev, e->mark, "only a row of an input from a picture is .there");
    snprintf(name, sizeof name, "%srows.%s.there", ev->arch->has_tokens ? "stage." : "",
             from->row.name);
    return llm_arch_tensor_value(llm_arch_input(ev, e->mark, name, GGL_F32, 0, NULL));
}

/* The number of a row in the whole sound. */
static arch_value number_in_sound(arch_eval *ev, const arch_expr *e, const arch_source *from) {
    char name[2 * ARCH_MAX_NAME + 64];
    const arch_source *in = from;
    while (!in->row.is_input)
        in = &ev->source[in->row.over];
    if (in->row.sound.rate == 0 || ev->arch->has_tokens)
        return llm_arch_error(
            ev, e->mark, "%s",
            ev->arch->has_tokens
                ? "a model whose tokens read rows hears a sound from anywhere: only rows of an "
                  "ear have a number in the whole sound, .t"
                : "only a row of an input from sound, or of a stage over it, has a number in the "
                  "whole sound, .t");
    snprintf(name, sizeof name, "%srows.%s.t", ev->arch->has_tokens ? "stage." : "",
             from->row.name);
    return llm_arch_tensor_value(llm_arch_input(ev, e->mark, name, GGL_I32, 0, NULL));
}

/* True for places that only tokens have. */
static bool is_of_text(const char *part) {
    return strcmp(part, "line") == 0 || strcmp(part, "column") == 0 || strcmp(part, "picture") == 0;
}

/* The place of a row of a picture: the input rows.NAME.PART, which the caller fills. */
static arch_value place_of_row(arch_eval *ev, const arch_expr *e, const arch_source *from) {
    const llm_arch_picture *p = &from->row.picture;
    char name[2 * ARCH_MAX_NAME + 64];
    const bool share = strcmp(e->name, "share") == 0, window = strcmp(e->name, "window") == 0,
               in_table = share || strcmp(e->name, "corner") == 0;
    const int64_t n = window ? 2 : llm_arch_picture_entries(p);
    const llm_arch_rows_of *own = ev->stage ? &ev->source[ev->n_sources - 1].row : NULL;
    if (strcmp(e->name, "lines") == 0 || strcmp(e->name, "columns") == 0)
        return lines_of(ev, e, from);
    if (strcmp(e->name, "there") == 0)
        return is_patch(ev, e, from);
    if (strcmp(e->name, "t") == 0)
        return number_in_sound(ev, e, from);
    if (window && (!ev->stage || ev->source[ev->n_sources - 1].row.windows == 0))
        return llm_arch_error(ev, e->mark, "only rows of a stage with windows = N have a window");
    const bool has_place = (from->row.is_input && p->patch > 0) ||
                           (from->row.is_plane && (window || strlen(e->name) == 1));
    if (!has_place || is_of_text(e->name) ||
        (in_table && (p->table == 0 || (!share && p->between == LLM_BETWEEN_WIDE))))
        return llm_arch_error(
            ev, e->mark,
            in_table && p->table > 0 ? "with between = \"wide\", a patch has shares of all entries "
                                       "of the table, and no corners"
            : in_table               ? "only a row of an input from a picture(.., table = n) has "
                                       "a place in a table"
                                     : "only a row of an input from a picture has places .x and "
                                       ".y");
    snprintf(name, sizeof name, "%srows.%s.%s", ev->arch->has_tokens ? "stage." : "",
             from->row.name, e->name);
    arch_value v = llm_arch_tensor_value(llm_arch_input(
        ev, e->mark, name, share || window ? GGL_F32 : GGL_I32, in_table || window, &n));
    if (v.t && !share && !window)
        v.range = in_table ? p->table * p->table
                           : most_in_line(&from->row, own && own->filled ? own->windows : 0);
    v.number_too = !in_table && !window;
    return v;
}

arch_value llm_arch_place_of(arch_eval *ev, const arch_expr *e, const arch_value *v) {
    char name[2 * ARCH_MAX_NAME];
    if (v->kind == VAL_TENSOR && v->source)
        return place_of_row(ev, e, &ev->source[v->source - 1]);
    const bool in_text = strlen(e->name) == 1 || is_of_text(e->name);
    if (!in_text || v->kind != VAL_TENSOR || ev->stage || v->t != ev->global[SLOT_POS].v.t)
        return llm_arch_error(ev, e->mark,
                              "only a row of a picture, and `pos` outside of stages, have places: "
                              "pos.t, pos.y, pos.x, pos.line, pos.column and pos.picture");
    ev->has_places = true;
    if (!ev->params || !ev->params->given)
        return llm_arch_none("a text without pictures has one position for each token, pos");
    snprintf(name, sizeof name, "pos.%s", e->name);
    arch_value place = llm_arch_tensor_value(llm_arch_input(ev, e->mark, name, GGL_I32, 0, NULL));
    if (place.t)
        place.range = ev->n_ctx;
    return place;
}

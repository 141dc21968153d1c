/* Rows of an input that are made of a picture: how they are made, and the places that the descriptor asks for, those of patches in a
 * picture and those of tokens in a text with pictures. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "compile.h"

enum { MOST_PIXELS = 1 << 30 };

static bool read_word(arch_eval *ev, const arch_expr *e, const arch_value *v,
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

static bool read_text(arch_eval *ev, const arch_expr *e, const arch_value *v, char *out,
                      size_t size) {
    char text[256];
    const bool fits = v->kind == VAL_STRING && v->str.n < size;
    if (fits)
        snprintf(out, size, "%.*s", (int)v->str.n, v->str.s);
    else
        llm_arch_error(ev, e->place, "a text of less than %zu bytes is expected: %s", size,
                       llm_arch_value_text(v, text, sizeof text));
    return fits;
}

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
    ARG_COUNT
};
_Static_assert(ARG_COUNT <= ARCH_MAX_SIG, "the signature has room for them");

/* Reads the arguments that are given. */
static bool read_args(arch_eval *ev, const arch_value *const *v, const arch_expr *const *e,
                      llm_arch_picture *p) {
    static const char *const fits[] = {"stretch", "pad", "crop", "follow", "follow_pad", "longest"};
    static const char *const resizes[] = {"linear", "cubic", "pil_linear", "pil_cubic",
                                          "pil_lanczos"};
    const struct {
        int64_t *to, least, most;
    } whole[ARG_COUNT] = {
        [ARG_PATCH] = {&p->patch, 1, 1024},      [ARG_SIZE] = {&p->size, 1, 1 << 15},
        [ARG_BLOCK] = {&p->block, 1, 64},        [ARG_LEAST] = {&p->least, 1, MOST_PIXELS},
        [ARG_MOST] = {&p->most, 1, MOST_PIXELS}, [ARG_FIRST] = {&p->first, 0, 64},
        [ARG_TABLE] = {&p->table, 1, 1 << 12},
    };
    double color[3] = {0};
    int fit = LLM_FIT_STRETCH, resize = LLM_RESIZE_LINEAR;
    for (int k = 0; k < ARG_COUNT; k++)
        if (v[k] && whole[k].to &&
            !llm_arch_want_whole(ev, e[k], v[k], whole[k].least, whole[k].most, whole[k].to))
            return false;
    if (!read_colors(ev, e[ARG_MEAN], v[ARG_MEAN], -1e3, 1e3, p->mean) ||
        !read_colors(ev, e[ARG_STD], v[ARG_STD], 1e-6, 1e6, p->std) ||
        (v[ARG_COLOR] && !read_colors(ev, e[ARG_COLOR], v[ARG_COLOR], 0, 255, color)) ||
        (v[ARG_FIT] && !read_word(ev, e[ARG_FIT], v[ARG_FIT], fits, 6, &fit)) ||
        (v[ARG_RESIZE] && !read_word(ev, e[ARG_RESIZE], v[ARG_RESIZE], resizes, 5, &resize)) ||
        (v[ARG_BEGIN] && !read_text(ev, e[ARG_BEGIN], v[ARG_BEGIN], p->begin, sizeof p->begin)) ||
        (v[ARG_END] && !read_text(ev, e[ARG_END], v[ARG_END], p->end, sizeof p->end)))
        return false;
    for (int k = 0; k < 3; k++)
        p->color[k] = (uint8_t)color[k];
    p->fit = (llm_arch_fit)fit;
    p->resize = (llm_arch_resize)resize;
    return true;
}

int64_t llm_arch_picture_rows(const llm_arch_picture *p) {
    const int64_t unit = p->patch * p->block, side = (p->size + unit - 1) / unit * p->block;
    const bool follows = p->fit == LLM_FIT_FOLLOW || p->fit == LLM_FIT_FOLLOW_PAD;
    return p->first + (follows ? p->most / (p->patch * p->patch) : side * side);
}

arch_value llm_arch_from_picture(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                                 const arch_expr *const *arg) {
    llm_arch_picture p = {.block = 1};
    if (!read_args(ev, v, arg, &p))
        return ARCH_FAIL;
    const int64_t unit = p.patch * p.block;
    const bool follows = p.fit == LLM_FIT_FOLLOW || p.fit == LLM_FIT_FOLLOW_PAD;
    if (follows ? !p.most || p.most < unit * unit || p.least > p.most
                : !p.size || p.size < unit || (p.fit != LLM_FIT_LONGEST && p.size % unit != 0))
        return llm_arch_error(
            ev, e->mark,
            follows ? "a picture near its own size needs `most` pixels, at least those of a "
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

/* --- places ----------------------------------------------------------------------------------- */

/* The place of a row of a picture: the input rows.NAME.PART, which the caller fills. */
static arch_value place_of_row(arch_eval *ev, const arch_expr *e, const arch_source *from) {
    const llm_arch_picture *p = &from->row.picture;
    char name[2 * ARCH_MAX_NAME + 64];
    const int64_t four = 4;
    const bool share = strcmp(e->name, "share") == 0,
               in_table = share || strcmp(e->name, "corner") == 0;
    if (!from->row.is_input || p->patch == 0 || strcmp(e->name, "t") == 0 ||
        (in_table && p->table == 0))
        return llm_arch_error(ev, e->mark,
                              in_table ? "only a row of an input from a picture(.., table = n) has "
                                         "a place in a table"
                                       : "only a row of an input from a picture has places .x and "
                                         ".y");
    snprintf(name, sizeof name, "%srows.%s.%s", ev->arch->has_tokens ? "stage." : "",
             from->row.name, e->name);
    arch_value v = llm_arch_tensor_value(llm_arch_input(
        ev, e->mark, name, share ? GGL_F32 : GGL_I32, in_table, in_table ? &four : NULL));
    if (v.t && !share)
        v.range = in_table ? p->table * p->table : from->row.most;
    v.number_too = !in_table;
    return v;
}

arch_value llm_arch_place_of(arch_eval *ev, const arch_expr *e, const arch_value *v) {
    char name[16];
    if (v->kind == VAL_TENSOR && v->source)
        return place_of_row(ev, e, &ev->source[v->source - 1]);
    const bool in_text = strlen(e->name) == 1;
    if (!in_text || v->kind != VAL_TENSOR || ev->stage || v->t != ev->global[SLOT_POS].v.t)
        return llm_arch_error(ev, e->mark,
                              "only a row of a picture, and `pos` outside of stages, have places: "
                              "pos.t, pos.y and pos.x");
    ev->has_places = true;
    if (!ev->params || !ev->params->given)
        return llm_arch_none("a text without pictures has one position for each token, pos");
    snprintf(name, sizeof name, "pos.%s", e->name);
    arch_value place = llm_arch_tensor_value(llm_arch_input(ev, e->mark, name, GGL_I32, 0, NULL));
    if (place.t)
        place.range = ev->n_ctx;
    return place;
}

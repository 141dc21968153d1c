/* Rows of an input that are made of sound: how they are made, and what stands around them in a text. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "compile.h"

/* Arguments of sound(..), in the order of its signature. */
enum {
    ARG_RATE,
    ARG_WINDOW,
    ARG_STEP,
    ARG_SECONDS,
    ARG_RANGE,
    ARG_FILTERS,
    ARG_WHOLE,
    ARG_BEGIN,
    ARG_END,
    ARG_FFT,
    ARG_SCALE,
    ARG_POWER,
    ARG_LOG,
    ARG_LEAST,
    ARG_LEVEL,
    ARG_EMPHASIS,
    ARG_EDGES,
    ARG_SYMMETRIC,
    ARG_TAPER,
    ARG_NEEDS,
    ARG_APART,
    ARG_SHORTEST,
    ARG_AFTER,
    ARG_LARGEST,
    ARG_LEAD,
    ARG_UNIT,
    ARG_TRAIL,
    ARG_ADDED,
    ARG_COUNT
};
_Static_assert(ARG_COUNT <= ARCH_MAX_SIG, "the signature has room for them");

/* Arguments of samples(..). */
enum { SAMPLES_RATE, SAMPLES_SECONDS, SAMPLES_BEGIN, SAMPLES_END };

enum { MOST_SAMPLES = 1 << 20 };

static arch_value prepared(arch_eval *ev, const arch_expr *e, const llm_arch_sound *s,
                           double seconds) {
    /* 0.58 seconds are 58 rows, and not 57.99999 */
    const double rows = seconds * (double)s->rate / (double)s->step + 1e-6;
    if (!(rows >= 1 && rows <= ARCH_MAX_DIM))
        return llm_arch_error(ev, e->mark, "%g seconds of sound are %g rows, not 1 to %.0f",
                              seconds, rows, ARCH_MAX_DIM);
    const arch_value v = llm_arch_from_floats(ev, e, (int64_t)rows);
    if (v.kind == VAL_FAIL)
        return v;
    if (ev->preparing->row.n_dims != 1)
        return llm_arch_error(ev, e->mark, "sound becomes rows of one dimension");
    ev->preparing->row.sound = *s;
    return v;
}

/* Takes a weight of the file. The graph's result counts as made of it. */
static bool take_weight(arch_eval *ev, const arch_expr *e, const arch_value *v, const char *what,
                        int n_dims, const int64_t *ne, llm_arch_weights *out) {
    char shape[128], want[64], text[256];
    const ggl_tensor *t = v->kind == VAL_TENSOR ? v->t : NULL;
    bool fits = t && t->op == GGL_OP_WEIGHT && t->n_dims == n_dims;
    for (int d = 0; d < n_dims && fits; d++)
        fits = t->ne[d] == ne[d];
    if (!fits) {
        if (n_dims == 1)
            snprintf(want, sizeof want, "[%lld]", (long long)ne[0]);
        else
            snprintf(want, sizeof want, "[%lld, %lld]", (long long)ne[0], (long long)ne[1]);
        llm_arch_error(ev, e->place, "%s must be a tensor of the file, %s, but %s %s", what, want,
                       n_dims == 1 ? "is" : "are",
                       t ? ggl_shape_text(t, shape, sizeof shape)
                         : llm_arch_value_text(v, text, sizeof text));
        return false;
    }
    *out = (llm_arch_weights){t->data, t->type};
    return llm_arch_add_edge(ev, NULL, v->t);
}

static bool read_whole(arch_eval *ev, const arch_value *const *v, const arch_expr *const *e,
                       llm_arch_sound *s) {
    int64_t whole = 1, power = 2, symmetric = 0, apart = 0;
    const struct {
        int arg;
        int64_t *to, least, most;
    } number[] = {{ARG_RATE, &s->rate, 1, MOST_SAMPLES},
                  {ARG_WINDOW, &s->window, 1, MOST_SAMPLES},
                  {ARG_STEP, &s->step, 1, MOST_SAMPLES},
                  {ARG_WHOLE, &whole, 0, 1},
                  {ARG_FFT, &s->fft, 1, MOST_SAMPLES},
                  {ARG_POWER, &power, 1, 2},
                  {ARG_SYMMETRIC, &symmetric, 0, 1},
                  {ARG_NEEDS, &s->needs, 0, MOST_SAMPLES},
                  {ARG_APART, &apart, 0, 1},
                  {ARG_SHORTEST, &s->shortest, 0, MOST_SAMPLES},
                  {ARG_AFTER, &s->after, 0, MOST_SAMPLES},
                  {ARG_LEAD, &s->lead, 0, MOST_SAMPLES},
                  {ARG_UNIT, &s->unit, 1, MOST_SAMPLES},
                  {ARG_TRAIL, &s->trail, 0, MOST_SAMPLES},
                  {ARG_ADDED, &s->added, 0, MOST_SAMPLES}};
    for (size_t k = 0; k < sizeof number / sizeof *number; k++) {
        const int i = number[k].arg;
        if (v[i] &&
            !llm_arch_want_whole(ev, e[i], v[i], number[k].least, number[k].most, number[k].to))
            return false;
    }
    s->fft = s->fft ? s->fft : s->window;
    s->whole = whole == 1;
    s->magnitude = power == 1;
    s->symmetric = symmetric == 1;
    s->apart = apart == 1;
    return true;
}

static bool read_numbers(arch_eval *ev, const arch_value *const *v, const arch_expr *const *e,
                         llm_arch_sound *s, double *seconds) {
    const struct {
        int arg;
        double *to;
    } number[] = {{ARG_SECONDS, seconds},
                  {ARG_RANGE, &s->range},
                  {ARG_LEAST, &s->least},
                  {ARG_EMPHASIS, &s->emphasis},
                  {ARG_LARGEST, &s->largest}};
    for (size_t k = 0; k < sizeof number / sizeof *number; k++) {
        const int i = number[k].arg;
        if (v[i] && !llm_arch_want_number(ev, e[i], v[i], number[k].to))
            return false;
    }
    if (!(s->least > 0 && s->range >= 0))
        llm_arch_error(ev, e[v[ARG_LEAST] ? ARG_LEAST : ARG_SECONDS]->place,
                       "a sound's least power is above 0 and its range not below it, but they are "
                       "%g and %g",
                       s->least, s->range);
    return s->least > 0 && s->range >= 0;
}

static bool read_words(arch_eval *ev, const arch_value *const *v, const arch_expr *const *e,
                       llm_arch_sound *s) {
    static const char *const scales[] = {[LLM_SCALE_SLANEY] = "slaney", [LLM_SCALE_HTK] = "htk"},
                             *const logs[] = {"ten", "e", "e_added"},
                             *const levels[] = {"largest", "bands", "none"},
                             *const edges[] = {"begin", "both", "zeros"};
    int scale = 0, log = 0, level = 0, edge = 0;
    const struct {
        int arg, n, *to;
        const char *const *word;
    } word[] = {{ARG_SCALE, 2, &scale, scales},
                {ARG_LOG, 3, &log, logs},
                {ARG_LEVEL, 3, &level, levels},
                {ARG_EDGES, 3, &edge, edges}};
    for (size_t k = 0; k < sizeof word / sizeof *word; k++) {
        const int i = word[k].arg;
        if (v[i] && !llm_arch_want_word(ev, e[i], v[i], word[k].word, word[k].n, word[k].to))
            return false;
    }
    s->scale = (llm_arch_sound_scale)scale;
    s->log = (llm_arch_sound_log)log;
    s->level = (llm_arch_sound_level)level;
    s->edges = (llm_arch_sound_edges)edge;
    return true;
}

arch_value llm_arch_from_sound(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                               const arch_expr *const *arg) {
    llm_arch_sound s = {.range = 8, .least = 1e-10, .largest = NAN, .unit = 1, .needs = 1};
    double seconds = 0;
    if (!read_whole(ev, v, arg, &s) || !read_numbers(ev, v, arg, &s, &seconds) ||
        !read_words(ev, v, arg, &s) ||
        !llm_arch_want_row_text(ev, arg[ARG_BEGIN], v[ARG_BEGIN], s.begin) ||
        !llm_arch_want_row_text(ev, arg[ARG_END], v[ARG_END], s.end))
        return ARCH_FAIL;
    if (s.window % 2 != 0 || s.fft % 2 != 0 || s.fft < s.window)
        return llm_arch_error(ev, e->mark,
                              "a window of sound and its transform have even numbers of samples, "
                              "the transform not less than the window: %lld and %lld",
                              (long long)s.window, (long long)s.fft);
    const arch_value rows = prepared(ev, e, &s, seconds);
    if (rows.kind == VAL_FAIL)
        return rows;
    llm_arch_rows_of *row = &ev->preparing->row;
    const int64_t bands[] = {s.fft / 2 + 1, row->ne[0]};
    if ((v[ARG_FILTERS] && !take_weight(ev, arg[ARG_FILTERS], v[ARG_FILTERS], "filters", 2, bands,
                                        &row->sound.filters)) ||
        (v[ARG_TAPER] && !take_weight(ev, arg[ARG_TAPER], v[ARG_TAPER], "a taper", 1, &s.window,
                                      &row->sound.taper)))
        return ARCH_FAIL;
    return rows;
}

arch_value llm_arch_from_samples(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                                 const arch_expr *const *arg) {
    llm_arch_sound s = {.is_samples = true, .unit = 1, .needs = 1};
    double seconds = 0;
    if (!ev->preparing)
        return llm_arch_from_floats(ev, e, 1); /* which says what is wrong */
    s.step = s.window = ev->preparing->row.ne[0];
    if (!llm_arch_want_whole(ev, arg[SAMPLES_RATE], v[SAMPLES_RATE], 1, MOST_SAMPLES, &s.rate) ||
        !llm_arch_want_number(ev, arg[SAMPLES_SECONDS], v[SAMPLES_SECONDS], &seconds) ||
        !llm_arch_want_row_text(ev, arg[SAMPLES_BEGIN], v[SAMPLES_BEGIN], s.begin) ||
        !llm_arch_want_row_text(ev, arg[SAMPLES_END], v[SAMPLES_END], s.end))
        return ARCH_FAIL;
    return prepared(ev, e, &s, seconds);
}

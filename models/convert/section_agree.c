/* Values of a folder that have to be those by which the descriptor makes rows of sound: `agree "step", processor.hop_length`. */
#include <inttypes.h>
#include <math.h>

#include "conversion.h"

/* Returns the part of a ?? b .. that has a value, and the value. */
static const arch_expr *first_there(arch_eval *ev, const arch_expr *e, arch_value *v) {
    for (; e->kind == EX_OR_ELSE; e = e->b) {
        *v = llm_arch_eval_expr(ev, e->a);
        if (v->kind != VAL_NONE)
            return e->a;
    }
    *v = llm_arch_eval_expr(ev, e);
    return e;
}

/* Returns the argument's value in the input; NAN: an input of samples has none. */
static double value_of(const llm_arch_rows_of *of, int argument) {
    const llm_arch_sound *s = &of->sound;
    const double step = (double)s->step, rate = (double)s->rate;
    const double value[SOUND_ARGUMENTS] = {[SOUND_RATE] = rate,
                                           [SOUND_STEP] = step,
                                           [SOUND_WINDOW] = (double)s->window,
                                           [SOUND_FFT] = s->is_samples ? NAN : (double)s->fft,
                                           [SOUND_SECONDS] = (double)of->most * step / rate,
                                           [SOUND_EMPHASIS] = s->emphasis,
                                           [SOUND_BANDS] = (double)of->ne[0]};
    return value[argument];
}

static bool check_line(arch_eval *ev, const arch_mapping *m, const llm_arch_rows_of *of) {
    char quote[128], text[256];
    arch_value v;
    const arch_expr *e = first_there(ev, m->expr, &v);
    const double want = value_of(of, m->argument);
    if (v.kind == VAL_NONE || isnan(want))
        return true;
    if (v.kind == VAL_FAIL)
        return false;
    const bool is_number = v.kind == VAL_NUMBER;
    if (is_number && fabs(v.num - want) <= 1e-9 * fabs(want))
        return true;
    llm_arch_error_hint(ev, GGL_UNSUPPORTED, e->place, NULL,
                        "%s: %s, but the descriptor reads sound with %s = %.12g; accepted: "
                        "%.12g",
                        llm_arch_quote(e->place, quote, sizeof quote),
                        llm_arch_value_text(&v, text, sizeof text),
                        llm_arch_sound_arguments[m->argument], want, want);
    return false;
}

bool llm_arch_convert_agree(arch_eval *ev) {
    const llm_arch_rows_of *of = NULL;
    for (int k = 0; k < ev->n_sources; k++)
        if (ev->source[k].row.is_input && ev->source[k].row.sound.rate > 0)
            of = &ev->source[k].row;
    for (const arch_mapping *m = ev->conv->section->map; of && m; m = m->next)
        if (m->kind == MAP_AGREE && !check_line(ev, m, of) && !ev->convert->forgive(ev))
            return false;
    return true;
}

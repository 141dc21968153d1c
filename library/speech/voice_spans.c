#include "voice_spans.h"

#include <math.h>
#include <stdbool.h>

#include "ggl/internal/alloc.h"

enum { LEAST_PAUSE_MS = 98 }; /* of a silence at which long speech is cut */

/* Speech that may go on, piece after piece. */
typedef struct finder {
    const voice_rules *r;
    voice_spans *out;
    double below, most,
        pause; /* the probability that may end speech; the longest speech; the shortest pause */
    bool is_speech,
        has_start; /* has_start: `start` is where speech begins that is not in the list yet */
    int64_t start;
    int64_t quiet; /* where the silence begins that may end it; 0: there is none */
    int64_t longest,
        at; /* of the pauses of this speech, and where it begins; longest 0: it has none */
    bool failed;
} finder;

static void add(finder *f, int64_t from, int64_t to) {
    voice_spans *s = f->out;
    if (!ggl_grow(&s->span, &s->cap, s->n + 1, sizeof *s->span)) {
        f->failed = true;
        return;
    }
    s->span[s->n++] = (voice_span){from, to};
}

static void forget(finder *f) {
    f->quiet = f->longest = f->at = 0;
}

/* Speech is longer than it may be: it is cut in its longest pause, or here. Returns true if this piece needs no further look. */
static bool cut(finder *f, int64_t now) {
    const bool has_pause = f->longest > 0;
    add(f, f->start, has_pause ? f->at : now);
    f->has_start = false;
    if (has_pause) {
        f->start = f->at + f->longest;
        f->has_start = f->start < f->at + now;
    }
    f->is_speech = f->has_start;
    forget(f);
    return !has_pause;
}

static void hear(finder *f, double p, int64_t now) {
    const bool is_loud = p >= f->r->threshold;
    if (is_loud && f->quiet > 0) {
        const int64_t n = now - f->quiet;
        if ((double)n > f->pause && n > f->longest) {
            f->longest = n;
            f->at = f->quiet;
        }
        f->quiet = 0;
    }
    if (is_loud && !f->is_speech) {
        f->is_speech = f->has_start = true;
        f->start = now;
        return;
    }
    if (f->is_speech && (double)(now - f->start) > f->most && cut(f, now))
        return;
    if (!(p < f->below) || !f->is_speech)
        return;
    f->quiet = f->quiet > 0 ? f->quiet : now;
    if ((double)(now - f->quiet) < f->r->least_silence)
        return;
    if ((double)(f->quiet - f->start) > f->r->least_speech)
        add(f, f->start, f->quiet);
    f->is_speech = f->has_start = false;
    forget(f);
}

/* Makes the spans longer, but not into each other. */
static void pad(voice_spans *s, double pad, int64_t n_samples) {
    for (size_t k = 0; k < s->n; k++) {
        voice_span *x = &s->span[k], *next = k + 1 < s->n ? x + 1 : NULL;
        const int64_t gap = next ? next->from - x->to : 0;
        if (k == 0)
            x->from = (int64_t)fmax(0, (double)x->from - pad);
        if (next && (double)gap < 2 * pad) {
            x->to += gap / 2;
            next->from = next->from > gap / 2 ? next->from - gap / 2 : 0;
            continue;
        }
        x->to = (int64_t)fmin((double)n_samples, (double)x->to + pad);
        if (next)
            next->from = (int64_t)fmax(0, (double)next->from - pad);
    }
}

ggl_status llm_voice_spans_find(voice_spans *out, const float *probability, size_t n,
                                int64_t n_samples, const voice_rules *r, ggl_error *err) {
    finder f = {.r = r,
                .out = out,
                .below = fmax(r->threshold - 0.15, 0.01),
                .most = r->most_speech - (double)r->chunk - 2 * r->pad,
                .pause = (double)(r->rate * LEAST_PAUSE_MS) / 1000};
    *out = (voice_spans){0};
    for (size_t k = 0; k < n; k++)
        hear(&f, (double)probability[k], (int64_t)k * r->chunk);
    if (f.has_start && (double)(n_samples - f.start) > r->least_speech)
        add(&f, f.start, n_samples);
    pad(out, r->pad, n_samples);
    return f.failed ? ggl_fail(err, GGL_NOMEM, "out of memory for where speech is") : GGL_OK;
}

void llm_voice_spans_fini(voice_spans *s) {
    ggl_free(s->span);
    *s = (voice_spans){0};
}

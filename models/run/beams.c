/* Beam search. In each step, of all continuations of n texts by one token, the 2 n likeliest are looked at, in their order. One
 * that ends its text is kept as a hypothesis if it is among the first n; of the others, the first n are the next beams. The search
 * ends if no beam can become better than the worst of n hypotheses, or, if it is to end early, as soon as there are n of them.
 *
 * The first child of a beam stays in its place, others get those of beams without children: so n places are enough. */
#include "llm/internal/beams.h"

#include <math.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/math.h"

/* A continuation of a beam by a token. */
typedef struct continuation {
    double score;
    int32_t beam, token;
} continuation;

/* The likeliest n continuations of a kind, in their order. */
typedef struct likeliest {
    continuation x[LLM_MAX_BEAMS];
    int32_t n;
} likeliest;

typedef struct hypothesis {
    int32_t *id;
    size_t n;
    double score; /* with the penalty */
    int32_t end;  /* the token that ended it; -1: none did */
} hypothesis;

/* A token of a beam's text, and which beam of the step before it continues. */
typedef struct written {
    int32_t token, beam;
} written;

struct llm_beams {
    llm_beams_params p;
    int32_t n_vocab;
    bool *is_end; /* [n_vocab] */
    const uint32_t *writable;
    llm_beam beam[LLM_MAX_BEAMS];
    double score[LLM_MAX_BEAMS]; /* of the beams */
    int32_t n_beams;
    written *text; /* [n][p.n]: what the beams wrote in each step */
    size_t text_cap;
    size_t n;             /* tokens that each beam has written */
    likeliest ends, goes; /* those that end a text, and those that go on */
    hypothesis kept[LLM_MAX_BEAMS];
    int32_t n_kept;
    bool has_nan;
};

ggl_status llm_beams_new(llm_beams **out, const llm_beams_params *p, const llm_tokenizer *t,
                         int32_t n_vocab, const uint32_t *writable, ggl_error *err) {
    *out = NULL;
    if (p->n < 1 || p->n > LLM_MAX_BEAMS || p->n_max < 1 || !isfinite(p->length_penalty))
        return ggl_fail(err, GGL_USAGE,
                        "%d beams, texts of %lld tokens and a length penalty of %g: 1 to %d beams, "
                        "1 or more tokens and a finite penalty are possible",
                        (int)p->n, (long long)p->n_max, p->length_penalty, LLM_MAX_BEAMS);
    llm_beams *b = *out = ggl_calloc(1, sizeof *b);
    if (b)
        b->is_end = ggl_calloc((size_t)n_vocab, sizeof *b->is_end);
    if (!b || !b->is_end) {
        llm_beams_free(b);
        *out = NULL;
        return ggl_fail(err, GGL_NOMEM, "out of memory for %d beams", (int)p->n);
    }
    b->p = *p;
    b->n_vocab = n_vocab;
    b->writable = writable;
    b->n_beams = 1;
    for (int32_t k = 0; k < n_vocab && t && !p->ignore_end; k++)
        b->is_end[k] = llm_tokenizer_is_eog(t, k);
    return GGL_OK;
}

void llm_beams_free(llm_beams *b) {
    if (!b)
        return;
    for (int32_t k = 0; k < b->n_kept; k++)
        ggl_free(b->kept[k].id);
    ggl_free(b->text);
    ggl_free(b->is_end);
    ggl_free(b);
}

/* --- continuations ---------------------------------------------------------------------------- */

/* Of equals, the one of the beam and the token with the lesser number comes first. */
static bool is_before(const continuation *x, const continuation *y) {
    return x->score != y->score ? x->score > y->score
           : x->beam != y->beam ? x->beam < y->beam
                                : x->token < y->token;
}

static void consider(likeliest *l, int32_t most, const continuation *x) {
    int32_t at = l->n;
    if (at == most && !is_before(x, &l->x[at - 1]))
        return;
    at -= at == most;
    l->n = at + 1;
    for (; at > 0 && is_before(x, &l->x[at - 1]); at--)
        l->x[at] = l->x[at - 1];
    l->x[at] = *x;
}

void llm_beams_logits(llm_beams *b, int32_t place, const float *logits) {
    int32_t i = 0;
    while (b->beam[i].place != place)
        i++;
    double top = -INFINITY, sum = 0;
    for (int32_t k = 0; k < b->n_vocab; k++) {
        b->has_nan |= isnan(logits[k]);
        top = fmax(top, (double)logits[k]);
    }
    b->has_nan |= isinf(top);
    for (int32_t k = 0; k < b->n_vocab && !b->has_nan; k++)
        sum += ggl_exp((double)logits[k] - top);
    const double base = b->score[i] - top - ggl_log(sum);
    for (int32_t k = 0; k < b->n_vocab && !b->has_nan; k++)
        if (logits[k] > -INFINITY && (!b->writable || b->writable[k / 32] >> k % 32 & 1))
            consider(b->is_end[k] ? &b->ends : &b->goes, b->p.n,
                     &(continuation){base + (double)logits[k], i, k});
}

void llm_beams_again(llm_beams *b) {
    b->ends.n = b->goes.n = 0;
}

/* --- hypotheses ------------------------------------------------------------------------------- */

/* The score of a text of n tokens, the one that ends it included. */
static double penalized(const llm_beams *b, double score, size_t n) {
    return score / pow((double)n, b->p.length_penalty);
}

/* Keeps the text of a beam as a hypothesis, if it is better than the worst of n. */
static ggl_status keep(llm_beams *b, int32_t beam, double score, int32_t end, ggl_error *err) {
    int32_t worst = 0;
    for (int32_t k = 1; k < b->n_kept; k++)
        worst = b->kept[k].score < b->kept[worst].score ? k : worst;
    if (b->n_kept == b->p.n && !(score > b->kept[worst].score))
        return GGL_OK;
    int32_t *id = ggl_calloc(b->n + 1, sizeof *id);
    if (!id)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu tokens", b->n);
    for (size_t i = b->n; i > 0; i--) {
        const written *w = &b->text[(i - 1) * (size_t)b->p.n + (size_t)beam];
        id[i - 1] = w->token;
        beam = w->beam;
    }
    hypothesis *to = b->n_kept < b->p.n ? &b->kept[b->n_kept++] : &b->kept[worst];
    ggl_free(to->id);
    *to = (hypothesis){id, b->n, score, end};
    return GGL_OK;
}

/* True if no beam can become better than the hypotheses. best: of the continuations. */
static bool is_done(const llm_beams *b, double best) {
    double worst = INFINITY;
    for (int32_t k = 0; k < b->n_kept; k++)
        worst = fmin(worst, b->kept[k].score);
    return b->n_kept == b->p.n && (b->p.early || worst >= penalized(b, best, b->n + 1));
}

/* Keeps those of the n likeliest continuations that end their text. */
static ggl_status keep_ended(llm_beams *b, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int32_t k = 0, n_before = 0; k < b->ends.n && st == GGL_OK; k++) {
        const continuation *x = &b->ends.x[k];
        while (n_before < b->goes.n && is_before(&b->goes.x[n_before], x))
            n_before++;
        if (k + n_before >= b->p.n)
            break;
        st = keep(b, x->beam, penalized(b, x->score, b->n + 1), x->token, err);
    }
    return st;
}

/* --- steps ------------------------------------------------------------------------------------ */

/* The next beams are the continuations that go on. */
static ggl_status go_on(llm_beams *b, ggl_error *err) {
    const size_t n = (size_t)b->p.n;
    llm_beam next[LLM_MAX_BEAMS];
    bool is_used[LLM_MAX_BEAMS] = {false};
    if (!ggl_grow(&b->text, &b->text_cap, (b->n + 1) * n, sizeof *b->text))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu texts of %zu tokens", n, b->n + 1);
    for (int32_t k = 0; k < b->goes.n; k++) {
        const continuation *x = &b->goes.x[k];
        const int32_t from = b->beam[x->beam].place;
        next[k] = (llm_beam){is_used[from] ? -1 : from, from, x->token};
        is_used[from] = true;
        b->score[k] = x->score;
        b->text[b->n * n + (size_t)k] = (written){x->token, x->beam};
    }
    for (int32_t k = 0, free = 0; k < b->goes.n; k++) {
        while (next[k].place < 0 && is_used[free])
            free++;
        if (next[k].place < 0) {
            next[k].place = free;
            is_used[free] = true;
        }
        b->beam[k] = next[k];
    }
    b->n_beams = b->goes.n;
    b->n++;
    return GGL_OK;
}

ggl_status llm_beams_cut(llm_beams *b, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int32_t k = 0; k < b->n_beams && b->n > 0 && st == GGL_OK; k++)
        st = keep(b, k, penalized(b, b->score[k], b->n), -1, err);
    return st;
}

ggl_status llm_beams_step(llm_beams *b, bool *done, ggl_error *err) {
    *done = false;
    if (b->has_nan)
        return ggl_fail(err, GGL_FORMAT, "the model's logits are not finite");
    double best = -INFINITY;
    if (b->goes.n > 0)
        best = b->goes.x[0].score;
    if (b->ends.n > 0)
        best = fmax(best, b->ends.x[0].score);
    ggl_status st = keep_ended(b, err);
    *done = b->goes.n == 0 || is_done(b, best);
    if (st == GGL_OK && !*done)
        st = go_on(b, err);
    llm_beams_again(b);
    if (st == GGL_OK && !*done && (int64_t)b->n == b->p.n_max) {
        st = llm_beams_cut(b, err);
        *done = true;
    }
    return st;
}

/* --- results ---------------------------------------------------------------------------------- */

int32_t llm_beams_n(const llm_beams *b) {
    return b->n_beams;
}

llm_beam llm_beams_at(const llm_beams *b, int32_t i) {
    return b->beam[i];
}

/* True if hypothesis i is better than k; of equals, the one that was found before is. */
static bool is_better(const llm_beams *b, int32_t i, int32_t k) {
    return b->kept[i].score > b->kept[k].score || (b->kept[i].score == b->kept[k].score && i < k);
}

const int32_t *llm_beams_best(const llm_beams *b, int32_t rank, size_t *n, int32_t *end) {
    *n = 0;
    *end = -1;
    for (int32_t k = 0; k < b->n_kept; k++) {
        int32_t n_better = 0;
        for (int32_t i = 0; i < b->n_kept; i++)
            n_better += is_better(b, i, k);
        if (n_better != rank)
            continue;
        *n = b->kept[k].n;
        *end = b->kept[k].end;
        return b->kept[k].id;
    }
    return NULL;
}

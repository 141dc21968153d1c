/* Beam search as transformers defines it (BeamSearchScorer): in each step, of all continuations of n texts by one token, the 2 n
 * likeliest are looked at, in their order. One that ends its text is kept as a hypothesis if it is among the first n; of the others,
 * the first n are the next beams. The search ends if no beam can become better than the worst of n hypotheses, or, if it is to end early, as
 * soon as there are n of them.
 *
 * A beam is a slot. The first child of a beam stays in its slot, others get those of beams without children: so n slots are
 * enough, and a copy shares the pages of the KV cache. */
#include "beams.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/clock.h"
#include "ggl/alloc.h"
#include "ggl/internal/math.h"

typedef struct beam {
    int32_t *id; /* [cap]: what was written */
    int32_t slot;
    double score;
} beam;

/* A continuation of a beam by a token. */
typedef struct continuation {
    double score;
    int32_t beam, token;
} continuation;

typedef struct hypothesis {
    int32_t *id;
    size_t n;
    double score; /* with the penalty */
    bool has_ended;
} hypothesis;

typedef struct search {
    llm_context *c;
    const llm_beams_params *p;
    beam *beam, *next; /* [p->n] */
    int32_t n_beams;
    size_t n;            /* tokens that each beam has written */
    continuation *found; /* [most]: the likeliest, in their order */
    int32_t n_found, most;
    hypothesis *kept; /* [p->n] */
    int32_t n_kept;
    int32_t n_vocab;
    bool has_nan;
} search;

static bool ends(const search *s, int32_t id) {
    return !s->p->ignore_end && s->c->tokenizer && llm_tokenizer_is_eog(s->c->tokenizer, id);
}

/* Adds a continuation if it is among the likeliest; of equals, the one found before stays before. */
static void consider(search *s, continuation x) {
    int32_t at = s->n_found;
    if (at == s->most && !(x.score > s->found[at - 1].score))
        return;
    at -= at == s->most;
    s->n_found = at + 1;
    for (; at > 0 && x.score > s->found[at - 1].score; at--)
        s->found[at] = s->found[at - 1];
    s->found[at] = x;
}

/* Takes the logits after beam `at`; those after the prompt, which has more tokens, are of the only one. */
static void on_logits(void *ctx, int64_t at, const float *logits) {
    search *s = ctx;
    const int64_t i = s->n > 0 ? at : 0;
    double top = -INFINITY, sum = 0;
    for (int32_t k = 0; k < s->n_vocab; k++) {
        s->has_nan |= isnan(logits[k]);
        top = fmax(top, (double)logits[k]);
    }
    s->has_nan |= isinf(top);
    for (int32_t k = 0; k < s->n_vocab && !s->has_nan; k++)
        sum += ggl_exp((double)logits[k] - top);
    const double base = s->beam[i].score - top - ggl_log(sum);
    for (int32_t k = 0; k < s->n_vocab && !s->has_nan; k++)
        if (logits[k] > -INFINITY)
            consider(s, (continuation){base + (double)logits[k], (int32_t)i, k});
}

/* The score of a text of n tokens, the one that ends it included. */
static double penalized(const search *s, double score, size_t n) {
    return score / pow((double)n, s->p->length_penalty);
}

/* Keeps a text as a hypothesis, if it is better than the worst of n. */
static ggl_status keep(search *s, const int32_t *id, size_t n, double score, bool has_ended,
                       ggl_error *err) {
    int32_t worst = 0;
    for (int32_t k = 1; k < s->n_kept; k++)
        worst = s->kept[k].score < s->kept[worst].score ? k : worst;
    if (s->n_kept == s->p->n && !(score > s->kept[worst].score))
        return GGL_OK;
    int32_t *own = ggl_calloc(n + 1, sizeof *own);
    if (!own)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu tokens", n);
    memcpy(own, id, n * sizeof *id);
    hypothesis *to = s->n_kept < s->p->n ? &s->kept[s->n_kept++] : &s->kept[worst];
    ggl_free(to->id);
    *to = (hypothesis){own, n, score, has_ended};
    return GGL_OK;
}

/* True if no beam can become better than the hypotheses. best: of the continuations. */
static bool is_done(const search *s, double best) {
    double worst = INFINITY;
    for (int32_t k = 0; k < s->n_kept; k++)
        worst = fmin(worst, s->kept[k].score);
    return s->n_kept == s->p->n && (s->p->early || worst >= penalized(s, best, s->n + 1));
}

/* Chooses the next beams of the continuations, and keeps those that end. */
static ggl_status choose(search *s, ggl_error *err) {
    int32_t n_next = 0;
    ggl_status st = GGL_OK;
    for (int32_t k = 0; k < s->n_found && n_next < s->p->n && st == GGL_OK; k++) {
        const continuation *x = &s->found[k];
        if (ends(s, x->token) && k < s->p->n)
            st = keep(s, s->beam[x->beam].id, s->n, penalized(s, x->score, s->n + 1), true, err);
        if (ends(s, x->token))
            continue;
        beam *to = &s->next[n_next++];
        memcpy(to->id, s->beam[x->beam].id, s->n * sizeof *to->id);
        to->id[s->n] = x->token;
        to->score = x->score;
        to->slot = -1 - x->beam; /* its parent, until it has a slot */
    }
    s->n_beams = n_next;
    return st;
}

/* Gives each of the next beams the slot of its parent, or a copy of that. */
static ggl_status place(search *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    bool is_used[LLM_MAX_BEAMS] = {false};
    int32_t parent[LLM_MAX_BEAMS];
    for (int32_t k = 0; k < s->n_beams; k++) {
        parent[k] = -1 - s->next[k].slot;
        const int32_t slot = s->beam[parent[k]].slot;
        s->next[k].slot = is_used[slot] ? -1 : slot;
        is_used[slot] = true;
    }
    for (int32_t k = 0, free = 0; k < s->n_beams && st == GGL_OK; k++) {
        if (s->next[k].slot >= 0)
            continue;
        while (is_used[free])
            free++;
        is_used[free] = true;
        s->next[k].slot = free;
        /* before the parent's own child runs */
        st = llm_session_copy(s->c->session, free, s->beam[parent[k]].slot, err);
    }
    beam *swap = s->beam;
    s->beam = s->next;
    s->next = swap;
    return st;
}

/* Runs the last token of each beam. */
static ggl_status run(search *s, ggl_error *err) {
    int32_t token[LLM_MAX_BEAMS], slot[LLM_MAX_BEAMS];
    bool want[LLM_MAX_BEAMS];
    for (int32_t k = 0; k < s->n_beams; k++) {
        token[k] = s->beam[k].id[s->n - 1];
        slot[k] = s->beam[k].slot;
        want[k] = true;
    }
    s->n_found = 0;
    return llm_session_eval(s->c->session,
                            &(llm_batch){.n = s->n_beams,
                                         .token = token,
                                         .slot = slot,
                                         .want = want,
                                         .each = on_logits,
                                         .ctx = s},
                            err);
}

static ggl_status search_on(search *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (bool done = false; st == GGL_OK && !done;) {
        if (s->has_nan)
            return ggl_fail(err, GGL_FORMAT, "the model's logits are not finite");
        if (llm_context_is_cancelled(s->c))
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        st = choose(s, err);
        done = s->n_beams == 0 || is_done(s, s->found[0].score);
        if (st == GGL_OK && !done)
            st = place(s, err);
        s->n += !done;
        if (st == GGL_OK && !done && (int64_t)s->n == s->p->n_max) {
            for (int32_t k = 0; k < s->n_beams && st == GGL_OK; k++)
                st = keep(s, s->beam[k].id, s->n, penalized(s, s->beam[k].score, s->n), false, err);
            done = true;
        }
        if (st == GGL_OK && !done)
            st = run(s, err);
    }
    return st;
}

static bool alloc(search *s) {
    const size_t n = (size_t)s->p->n, cap = (size_t)s->p->n_max + 1;
    int32_t n_ends = 0;
    for (int32_t k = 0; k < s->n_vocab; k++)
        n_ends += ends(s, k);
    s->most = s->p->n * (n_ends > 1 ? 1 + n_ends : 2);
    s->beam = ggl_calloc(n, sizeof *s->beam);
    s->next = ggl_calloc(n, sizeof *s->next);
    s->found = ggl_calloc((size_t)s->most, sizeof *s->found);
    s->kept = ggl_calloc(n, sizeof *s->kept);
    bool ok = s->beam && s->next && s->found && s->kept;
    for (size_t k = 0; k < n && ok; k++) {
        s->beam[k].id = ggl_calloc(cap, sizeof(int32_t));
        s->next[k].id = ggl_calloc(cap, sizeof(int32_t));
        ok = s->beam[k].id && s->next[k].id;
    }
    return ok;
}

static void fini(search *s) {
    for (int32_t k = 0; k < s->p->n; k++) {
        if (s->beam)
            ggl_free(s->beam[k].id);
        if (s->next)
            ggl_free(s->next[k].id);
        if (s->kept)
            ggl_free(s->kept[k].id);
    }
    ggl_free(s->beam);
    ggl_free(s->next);
    ggl_free(s->found);
    ggl_free(s->kept);
}

ggl_status llm_beams_search(llm_context *c, const int32_t *id, size_t n, const llm_beams_params *p,
                            int32_t **out, size_t *n_out, bool *has_ended, double *prompt_seconds,
                            ggl_error *err) {
    search s = {.c = c, .p = p, .n_beams = 1, .n_vocab = (int32_t)llm_session_n_vocab(c->session)};
    *out = NULL;
    *n_out = 0;
    *has_ended = false;
    const double begin = llm_seconds();
    ggl_status st = alloc(&s) ? llm_session_clear(c->session, 0, err)
                              : ggl_fail(err, GGL_NOMEM, "out of memory for %d beams", (int)p->n);
    if (st == GGL_OK)
        st = llm_session_eval(
            c->session, &(llm_batch){.n = (int64_t)n, .token = id, .each = on_logits, .ctx = &s},
            err);
    *prompt_seconds = llm_seconds() - begin;
    if (st == GGL_OK)
        st = search_on(&s, err);
    const hypothesis *best = NULL;
    for (int32_t k = 0; k < s.n_kept; k++)
        best = !best || s.kept[k].score > best->score ? &s.kept[k] : best;
    if (st == GGL_OK && best) {
        *out = best->id;
        *n_out = best->n;
        *has_ended = best->has_ended;
        s.kept[best - s.kept].id = NULL;
    }
    for (int32_t k = 0; k < p->n; k++)
        if (llm_session_clear(c->session, k, NULL) != GGL_OK && st == GGL_OK)
            st = ggl_fail(err, GGL_DEVICE, "slot %d cannot be cleared", (int)k);
    fini(&s);
    return st;
}

/* DRY ("don't repeat yourself"): a token that would continue a repetition is penalized, the more the
 * longer the repetition is.
 *
 * Where a repetition may begin is decided by breakers. They are searched in the text of the accepted
 * tokens, by an automaton that goes from token to token, so their spelling by tokens does not
 * matter. A breaker costs only its own bytes. */
#include "sampler_impl.h"

#include <float.h>

#include "ggl/alloc.h"
#include "ggl/internal/math.h"
#include "ggl/internal/steps.h"
#include "llm/internal/tokenizer.h"

static ggl_status add_breakers(sampler_dry *d, const llm_sampler_params *p, ggl_error *err) {
    ggl_status st = llm_automaton_init(&d->breakers, false, err);
    d->has_breakers = st == GGL_OK;
    for (size_t i = 0; i < p->n_dry_breakers && st == GGL_OK; i++)
        st = llm_automaton_add(&d->breakers, p->dry_breakers[i], (int32_t)i, err);
    return st == GGL_OK ? llm_automaton_finish(&d->breakers, err) : st;
}

ggl_status llm_dry_init(llm_sampler *s, size_t last_n, ggl_error *err) {
    sampler_dry *d = &s->dry;
    if (!(s->p.dry_multiplier > 0) || last_n == 0)
        return GGL_OK;
    d->last_n = last_n;
    d->recent = ggl_calloc(last_n, sizeof *d->recent);
    d->match = ggl_calloc(last_n, sizeof *d->match);
    d->touched = ggl_calloc(last_n, sizeof *d->touched);
    d->longest = ggl_calloc((size_t)s->n_vocab, sizeof *d->longest);
    if (!d->recent || !d->match || !d->touched || !d->longest)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the sampler");
    if (s->like) {
        d->breakers = s->like->dry.breakers;
        d->has_breakers = s->like->dry.has_breakers;
        return GGL_OK;
    }
    return s->p.tokenizer && s->p.n_dry_breakers > 0 ? add_breakers(d, &s->p, err) : GGL_OK;
}

void llm_dry_fini(llm_sampler *s) {
    sampler_dry *d = &s->dry;
    ggl_free(d->recent);
    ggl_free(d->match);
    ggl_free(d->touched);
    ggl_free(d->longest);
    if (!s->like)
        llm_automaton_fini(&d->breakers);
}

/* Reads a text from *state on; returns whether a breaker ends in it. */
static bool read_text(const automaton *x, ggl_str text, int32_t *state) {
    bool found = false;
    for (size_t i = 0; i < text.n; i++) {
        *state = llm_automaton_step(x, *state, (unsigned char)text.s[i]);
        found = found || x->node[*state].found != 0;
    }
    return found;
}

bool llm_dry_accept(llm_sampler *s, int32_t id) {
    sampler_dry *d = &s->dry;
    int32_t alone = 0;
    d->since_break++;
    if (!d->has_breakers)
        return false;
    const ggl_str text = llm_token_text(s->p.tokenizer, id, true);
    if (!read_text(&d->breakers, text, &d->state))
        return false;
    d->since_break = 0;
    return read_text(&d->breakers, text, &alone);
}

/* Fills match[k] for 0 < k < n: how many of the newest tokens, at most `most`, equal those that end
 * k tokens earlier. (The Z algorithm: recent[k + i] = recent[i] is known for k + i < end from an
 * earlier k, and each comparison that succeeds moves `end`.) */
static void find_repetitions(sampler_dry *d, size_t n, size_t most) {
    const uint32_t *x = d->recent;
    size_t begin = 0, end = 0;
    for (size_t k = 1; k < n; k++) {
        size_t z = 0;
        if (k < end) {
            z = (size_t)d->match[k - begin];
            z = z < end - k ? z : end - k;
        }
        while (z < most && k + z < n && x[z] == x[k + z]) {
            GGL_STEPS(1);
            z++;
        }
        GGL_STEPS(1);
        d->match[k] = (int32_t)z;
        if (k + z > end) {
            begin = k;
            end = k + z;
        }
    }
}

/* Fills longest[] for the tokens that would continue a repetition. */
static void find_continuations(llm_sampler *s) {
    sampler_dry *d = &s->dry;
    const size_t n = s->history.n < d->last_n ? s->history.n : d->last_n,
                 most = d->since_break < n ? d->since_break : n,
                 least = (size_t)s->p.dry_allowed_length;
    d->n_touched = 0;
    if (most < least)
        return;
    for (size_t i = 0; i < n; i++)
        d->recent[i] = llm_history_at(&s->history, i);
    find_repetitions(d, n, most);
    for (size_t k = 1; k < n; k++) {
        const uint32_t next = d->recent[k - 1];
        if ((size_t)d->match[k] < least || next & SAMPLER_BREAKER_BIT)
            continue;
        if (d->longest[next] == 0)
            d->touched[d->n_touched++] = (int32_t)next;
        if (d->longest[next] <= d->match[k])
            d->longest[next] = d->match[k] + 1;
    }
}

/* Returns the logit x of a token that would continue a repetition of `length` tokens. Finite logits
 * stay finite, and others as they are. */
static float penalize(const llm_sampler_params *p, float x, int32_t length) {
    const double y = x - p->dry_multiplier * ggl_pow(p->dry_base, length - p->dry_allowed_length);
    return !isfinite(x) ? x : y < -FLT_MAX ? -FLT_MAX : (float)y;
}

void llm_sample_dry(llm_sampler *s) {
    sampler_dry *d = &s->dry;
    llm_candidates_scale(s);
    find_continuations(s);
    for (size_t i = 0; !s->is_list && i < d->n_touched; i++) {
        const int32_t id = d->touched[i];
        s->copy[id] = penalize(&s->p, s->copy[id], d->longest[id] - 1);
    }
    for (size_t i = 0; s->is_list && i < s->n; i++) {
        const int32_t id = llm_candidate_id(s->key[i]);
        if (d->longest[id] > 0)
            s->key[i] = llm_candidate_key(
                penalize(&s->p, llm_candidate_logit(s->key[i]), d->longest[id] - 1), id);
    }
    for (size_t i = 0; i < d->n_touched; i++)
        d->longest[d->touched[i]] = 0;
    s->is_sorted = s->is_sorted && d->n_touched == 0;
    s->is_weighed = s->is_weighed && s->is_sorted;
}

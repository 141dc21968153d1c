/* The sampler: its parameters, memory and history, and the chain. docs/sampling.md defines it. */
#include "sampler_impl.h"

#include <float.h>
#include <stddef.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"

/* --- the chain -------------------------------------------------------------------------------- */

/* Greedy: only the stages that change logits count. */
static int32_t next_greedy(llm_sampler *s) {
    for (int i = 0; i < s->n_stages; i++)
        if (llm_sampler_rows[s->stage[i]].effect == CHANGES)
            llm_sampler_rows[s->stage[i]].apply(s);
    const int32_t id = llm_candidates_best(s);
    s->key[0] = llm_candidate_key(s->logits[id], id);
    s->n = 1;
    s->is_list = s->is_sorted = true;
    return id;
}

static int32_t draw(llm_sampler *s, const float *logits, const uint32_t *allowed) {
    if (!llm_candidates_begin(s, logits, allowed))
        return -1;
    if (s->p.temp <= 0)
        return next_greedy(s);
    for (int i = 0; i < s->n_stages; i++)
        llm_sampler_rows[s->stage[i]].apply(s);
    const size_t i = s->p.mirostat ? llm_sample_mirostat(s) : llm_sample_draw(s);
    return llm_candidate_id(s->key[i]);
}

/* The next of the forced tokens. If it is not allowed, the rest is given up. */
static int32_t next_forced(llm_sampler *s, const uint32_t *allowed) {
    const int32_t id = s->forced[s->i_forced++];
    if (!allowed || allowed[id / 32] >> id % 32 & 1)
        return id;
    s->n_forced = s->i_forced = 0;
    return -1;
}

int32_t llm_sampler_next(llm_sampler *s, const float *logits, const uint32_t *allowed) {
    const int32_t drawn = draw(s, logits, allowed);
    const int32_t forced = s->i_forced < s->n_forced ? next_forced(s, allowed) : -1;
    return forced >= 0 ? forced : drawn;
}

ggl_status llm_sampler_force(llm_sampler *s, const int32_t *id, size_t n, ggl_error *err) {
    s->n_forced = s->i_forced = 0;
    for (size_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= s->n_vocab)
            return ggl_fail(err, GGL_USAGE, "token %d is not in the vocabulary of %d", (int)id[i],
                            (int)s->n_vocab);
    if (!ggl_grow(&s->forced, &s->cap_forced, n, sizeof *s->forced))
        return ggl_fail(err, GGL_NOMEM, "out of memory for tokens");
    if (n > 0)
        memcpy(s->forced, id, n * sizeof *id);
    s->n_forced = n;
    return GGL_OK;
}

size_t llm_sampler_candidates(const llm_sampler *s, llm_candidate *out, size_t most) {
    const bool greedy = s->p.temp <= 0;
    double sum = 0;
    for (size_t i = 0; i < s->n && !greedy; i++)
        sum += s->weight[i];
    for (size_t i = 0; i < s->n && i < most; i++) {
        out[i].id = llm_candidate_id(s->key[i]);
        out[i].p = greedy ? 1 : s->weight[i] / sum;
    }
    return s->n;
}

/* --- history ---------------------------------------------------------------------------------- */

void llm_sampler_accept(llm_sampler *s, int32_t id) {
    sampler_history *h = &s->history;
    if (h->cap == 0 || id < 0 || id >= s->n_vocab)
        return;
    if (s->penalty_last_n > 0) {
        if (h->n >= s->penalty_last_n) /* the window's oldest leaves it */
            s->count[llm_history_at(h, s->penalty_last_n - 1) & ~SAMPLER_BREAKER_BIT]--;
        s->count[id]++;
    }
    const bool is_breaker = s->dry.last_n > 0 && llm_dry_accept(s, id);
    h->entry[h->next] = (uint32_t)id | (is_breaker ? SAMPLER_BREAKER_BIT : 0);
    h->next = (h->next + 1) % h->cap;
    h->n += h->n < h->cap;
}

void llm_sampler_forget(llm_sampler *s) {
    s->history.n = s->history.next = 0;
    if (s->count)
        memset(s->count, 0, (size_t)s->n_vocab * sizeof *s->count);
    s->dry.state = 0;
    s->dry.since_break = 0;
}

void llm_sampler_reset(llm_sampler *s) {
    llm_sampler_forget(s);
    s->mu = 2.0 * s->p.mirostat_tau;
    s->n = 0;
    s->n_forced = s->i_forced = 0;
    llm_rng_seed(s->rng, s->p.seed);
}

void llm_sampler_reseed(llm_sampler *s, uint64_t seed) {
    s->p.seed = seed;
    llm_sampler_reset(s);
}

ggl_status llm_sampler_copy(llm_sampler *to, const llm_sampler *from, ggl_error *err) {
    if (to->n_vocab != from->n_vocab || to->history.cap != from->history.cap ||
        to->penalty_last_n != from->penalty_last_n || to->dry.last_n != from->dry.last_n ||
        to->dry.breakers.n != from->dry.breakers.n)
        return ggl_fail(err, GGL_USAGE,
                        "the samplers were made with different parameters, vocabularies or sizes");
    memcpy(to->rng, from->rng, sizeof to->rng);
    to->mu = from->mu;
    to->history.n = from->history.n;
    to->history.next = from->history.next;
    if (to->history.cap > 0)
        memcpy(to->history.entry, from->history.entry,
               from->history.cap * sizeof *to->history.entry);
    if (to->count)
        memcpy(to->count, from->count, (size_t)to->n_vocab * sizeof *to->count);
    to->dry.state = from->dry.state;
    to->dry.since_break = from->dry.since_break;
    to->n = 0;
    return GGL_OK;
}

/* --- parameters ------------------------------------------------------------------------------- */

static ggl_status check_lists(const llm_sampler_params *p, int32_t n_vocab, ggl_error *err) {
    unsigned seen = 0;
    if (p->n_stages < 0 || p->n_stages > LLM_SAMPLER_N_STAGES)
        return ggl_fail(err, GGL_USAGE, "n_stages is %d, but must be from 0 to %d",
                        (int)p->n_stages, LLM_SAMPLER_N_STAGES);
    for (int i = 0; i < p->n_stages; i++) {
        if (p->stage[i] >= LLM_SAMPLER_N_STAGES || seen >> p->stage[i] & 1)
            return ggl_fail(err, GGL_USAGE, "stage[%d] is %d: no stage, or one named before", i,
                            p->stage[i]);
        seen |= 1u << p->stage[i];
    }
    for (size_t i = 0; i < p->n_bias; i++) {
        const llm_logit_bias *b = &p->bias[i];
        if (b->id < 0 || b->id >= n_vocab)
            return ggl_fail(err, GGL_USAGE, "the bias for token %d: the vocabulary has only %d",
                            (int)b->id, (int)n_vocab);
        if (!(b->bias < INFINITY))
            return ggl_fail(err, GGL_USAGE,
                            "the bias for token %d is %g, but must be finite, or minus infinity",
                            (int)b->id, b->bias);
    }
    for (size_t i = 0; i < p->n_dry_breakers && p->dry_multiplier > 0; i++)
        if (p->dry_breakers[i].n == 0)
            return ggl_fail(err, GGL_USAGE, "dry_breakers[%zu] is empty", i);
    return GGL_OK;
}

static ggl_status check(const llm_sampler_params *p, int32_t n_vocab, int32_t n_last,
                        ggl_error *err) {
    if (n_vocab < 1)
        return ggl_fail(err, GGL_USAGE, "n_vocab is %d, but must be at least 1", (int)n_vocab);
    if (n_last < 0)
        return ggl_fail(err, GGL_USAGE, "n_last is %d, but must be at least 0", (int)n_last);
    if (p->mirostat != 0 && p->mirostat != 2)
        return ggl_fail(err, GGL_USAGE, "mirostat is %d, but must be 0 (off) or 2",
                        (int)p->mirostat);
    if (p->dry_multiplier > 0 && !(p->dry_base >= 1 && p->dry_base <= FLT_MAX))
        return ggl_fail(err, GGL_USAGE, "dry_base is %.9g, but must be at least 1 and finite",
                        p->dry_base);
    const ggl_status st = llm_sampler_check_numbers(p, err);
    return st == GGL_OK ? check_lists(p, n_vocab, err) : st;
}

/* --- creation --------------------------------------------------------------------------------- */

static size_t window(int32_t last_n, int32_t n_last) {
    return (size_t)(last_n >= 0 && last_n < n_last ? last_n : n_last);
}

/* Takes over the order, without the stages that have no effect. */
static void choose_stages(llm_sampler *s) {
    const int n = s->p.n_stages > 0 ? s->p.n_stages : LLM_SAMPLER_N_STAGES;
    for (int i = 0; i < n; i++) {
        const uint8_t stage = s->p.n_stages > 0 ? s->p.stage[i] : (uint8_t)i;
        const sampler_row *row = &llm_sampler_rows[stage];
        if (row->is_on(s) && !(row->effect == REMOVES && s->p.mirostat))
            s->stage[s->n_stages++] = stage;
    }
}

/* Finds out how many candidates there can be, and whether logits change before the list is made. */
static size_t plan_list(llm_sampler *s) {
    const bool greedy = s->p.temp <= 0;
    const size_t top_k = (size_t)s->p.top_k, n_vocab = (size_t)s->n_vocab;
    for (int i = 0; i < s->n_stages; i++) {
        if (llm_sampler_rows[s->stage[i]].effect == CHANGES)
            s->changes_logits = true;
        else if (greedy || (s->stage[i] == LLM_SAMPLER_TEMPERATURE && !(s->p.dynatemp_range > 0)))
            continue;
        else if (s->stage[i] == LLM_SAMPLER_TOP_K && top_k <= SAMPLER_HEAP_MAX)
            return top_k < n_vocab ? top_k : n_vocab;
        else
            return n_vocab;
    }
    return greedy ? 1 : n_vocab;
}

static bool alloc_lists(llm_sampler *s) {
    const size_t n_vocab = (size_t)s->n_vocab;
    s->cap = plan_list(s);
    s->key = ggl_calloc(s->cap, sizeof *s->key);
    s->weight = ggl_calloc(s->cap, sizeof *s->weight);
    s->copy = ggl_calloc(n_vocab, sizeof *s->copy);
    if (s->cap > SAMPLER_HEAP_MAX)
        s->swap = ggl_calloc(s->cap, sizeof *s->swap);
    return s->key && s->weight && s->copy && (s->swap || s->cap <= SAMPLER_HEAP_MAX);
}

static bool alloc_history(llm_sampler *s) {
    sampler_history *h = &s->history;
    h->cap = s->penalty_last_n > s->dry.last_n ? s->penalty_last_n : s->dry.last_n;
    if (h->cap > 0)
        h->entry = ggl_calloc(h->cap, sizeof *h->entry);
    if (s->penalty_last_n > 0)
        s->count = ggl_calloc((size_t)s->n_vocab, sizeof *s->count);
    return (h->cap == 0 || h->entry) && (s->penalty_last_n == 0 || s->count);
}

static bool alloc_bias(llm_sampler *s) {
    s->n_bias = s->p.n_bias;
    if (s->like)
        s->bias = s->like->bias;
    else if (s->n_bias > 0)
        s->bias = ggl_calloc(s->n_bias, sizeof *s->bias);
    if (s->bias && !s->like)
        memcpy(s->bias, s->p.bias, s->n_bias * sizeof *s->bias);
    return s->n_bias == 0 || s->bias;
}

static ggl_status init(llm_sampler *s, ggl_error *err) {
    const llm_sampler_params *p = &s->p;
    const int32_t n_last = s->n_last;
    if (p->repeat_penalty != 1 || p->frequency_penalty != 0 || p->presence_penalty != 0)
        s->penalty_last_n = window(p->repeat_last_n, n_last);
    const ggl_status st = llm_dry_init(s, window(p->dry_last_n, n_last), err);
    if (st != GGL_OK)
        return st;
    choose_stages(s);
    if (!alloc_lists(s) || !alloc_history(s) || !alloc_bias(s))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the sampler");
    llm_sampler_reset(s);
    return GGL_OK;
}

/* Makes a sampler whose parameters were checked. */
static ggl_status make(llm_sampler **out, llm_sampler with, ggl_error *err) {
    llm_sampler *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the sampler");
    *s = with;
    const ggl_status st = init(s, err);
    if (st != GGL_OK)
        llm_sampler_free(s);
    else
        *out = s;
    return st;
}

ggl_status llm_sampler_new(llm_sampler **out, const llm_sampler_params *params, int32_t n_vocab,
                           int32_t n_last, ggl_error *err) {
    llm_sampler_params own = llm_sampler_default();
    const llm_sampler_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_sampler_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    const ggl_status st = check(p, n_vocab, n_last, err);
    const llm_sampler with = {.p = *p, .n_vocab = n_vocab, .n_last = n_last};
    return st == GGL_OK ? make(out, with, err) : st;
}

ggl_status llm_sampler_new_like(llm_sampler **out, const llm_sampler *like, ggl_error *err) {
    *out = NULL;
    const llm_sampler with = {
        .p = like->p, .n_vocab = like->n_vocab, .n_last = like->n_last, .like = like};
    return make(out, with, err);
}

void llm_sampler_free(llm_sampler *s) {
    if (!s)
        return;
    llm_dry_fini(s);
    ggl_free(s->key);
    ggl_free(s->swap);
    ggl_free(s->weight);
    ggl_free(s->copy);
    ggl_free(s->history.entry);
    ggl_free(s->count);
    ggl_free(s->forced);
    if (!s->like)
        ggl_free(s->bias);
    ggl_free(s);
}

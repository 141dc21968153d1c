#include "llm/internal/diffuse.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/math.h"

/* A mask, the token drawn for it, and how soon it is replaced: the largest first. */
typedef struct candidate {
    int64_t at;
    int32_t token;
    double key;
} candidate;

typedef struct ranked {
    double p;
    int32_t token;
} ranked;

typedef struct diffuser {
    llm_session *s;
    const llm_diffusion *d;
    int32_t *id;
    int64_t n_vocab;
    uint64_t random;
    candidate *found; /* [n_length] */
    int64_t n_found;
    bool *want;     /* [n_length] */
    double *p;      /* [n_vocab]: probabilities of a token */
    ranked *order;  /* [n_vocab]: tokens, likeliest first */
    float *without; /* with cfg_scale: logits without the prompt, of the wanted rows */
    int64_t n_without, at_without;
    bool has_nan;
    int32_t *masked; /* [n_length]: the text without the prompt */
} diffuser;

/* --- chance ----------------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014); from 0 on, below 1. */
static double next_random(diffuser *f) {
    uint64_t x = f->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/* --- the token of a mask ---------------------------------------------------------------------- */

static int by_probability(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    return x->p != y->p ? (x->p < y->p) - (x->p > y->p)
                        : (x->token > y->token) - (x->token < y->token);
}

/* Sets p to the probabilities of logits / temp. A mask is never written: it would stay in the text. */
static void softmax(diffuser *f, const float *logits, double temp) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < f->n_vocab; i++) {
        f->has_nan |= isnan(logits[i]);
        if (i != f->d->mask)
            top = fmax(top, (double)logits[i]);
    }
    f->has_nan |= isinf(top);
    for (int64_t i = 0; i < f->n_vocab; i++)
        sum += f->p[i] = i == f->d->mask ? 0 : ggl_exp(((double)logits[i] - top) / temp);
    for (int64_t i = 0; i < f->n_vocab; i++)
        f->p[i] /= sum;
}

/* Leaves the top_k likeliest tokens, and of these the fewest whose probabilities reach top_p. */
static void limit(diffuser *f) {
    const llm_diffusion *d = f->d;
    if (d->top_k == 0 && d->top_p >= 1)
        return;
    for (int32_t i = 0; i < f->n_vocab; i++)
        f->order[i] = (ranked){f->p[i], i};
    qsort(f->order, (size_t)f->n_vocab, sizeof *f->order, by_probability);
    double sum = 0;
    int64_t n = 0;
    const int64_t most = d->top_k > 0 && d->top_k < f->n_vocab ? d->top_k : f->n_vocab;
    while (n < most && (n == 0 || sum < d->top_p))
        sum += f->order[n++].p;
    for (int64_t i = n; i < f->n_vocab; i++)
        f->p[f->order[i].token] = 0;
    for (int64_t i = 0; i < n; i++)
        f->p[f->order[i].token] /= sum;
}

/* Draws a token by p; with a temperature of 0, the likeliest, of equals the first. */
static int32_t draw(diffuser *f) {
    int32_t best = 0;
    for (int32_t i = 1; i < f->n_vocab; i++)
        best = f->p[i] > f->p[best] ? i : best;
    if (f->d->temp <= 0)
        return best;
    double x = next_random(f);
    for (int32_t i = 0; i < f->n_vocab; i++) {
        x -= f->p[i];
        if (x < 0 && f->p[i] > 0)
            return i;
    }
    return best;
}

/* Returns how soon the mask for which `token` was drawn is to be replaced. */
static double key_of(diffuser *f, int32_t token) {
    double entropy = 0, first = 0, second = 0;
    switch (f->d->order) {
    case LLM_DIFFUSE_ENTROPY:
        for (int64_t i = 0; i < f->n_vocab; i++)
            entropy += f->p[i] * ggl_log(f->p[i] + 1e-10);
        return entropy;
    case LLM_DIFFUSE_MARGIN:
        for (int64_t i = 0; i < f->n_vocab; i++) {
            second = fmax(second, fmin(first, f->p[i]));
            first = fmax(first, f->p[i]);
        }
        return first - second;
    case LLM_DIFFUSE_CONFIDENCE:
        return f->p[token];
    default:
        return next_random(f);
    }
}

/* Takes the logits of a mask. */
static void on_logits(void *ctx, int64_t i, const float *logits) {
    diffuser *f = ctx;
    const llm_diffusion *d = f->d;
    float *other = f->without ? f->without + f->at_without++ * f->n_vocab : NULL;
    for (int64_t k = 0; other && k < f->n_vocab; k++) /* away from the logits without a prompt */
        other[k] += (1 + (float)d->cfg_scale) * (logits[k] - other[k]);
    softmax(f, other ? other : logits, d->temp > 0 ? d->temp : 1);
    limit(f);
    candidate *c = &f->found[f->n_found++];
    *c = (candidate){.at = i + (d->shift ? 1 : 0)};
    c->token = draw(f);
    c->key = key_of(f, c->token);
}

static void keep_logits(void *ctx, int64_t i, const float *logits) {
    diffuser *f = ctx;
    (void)i;
    memcpy(f->without + f->n_without++ * f->n_vocab, logits, (size_t)f->n_vocab * sizeof *logits);
}

/* --- a step ----------------------------------------------------------------------------------- */

static ggl_status eval(diffuser *f, const int32_t *id, void (*each)(void *, int64_t, const float *),
                       ggl_error *err) {
    const llm_batch b = {.n = f->d->n_length, .token = id, .want = f->want, .each = each, .ctx = f};
    ggl_status st = llm_session_clear(f->s, 0, err);
    return st == GGL_OK ? llm_session_eval(f->s, &b, err) : st;
}

/* Computes candidates for the masks of from .. to-1. */
static ggl_status find(diffuser *f, int64_t from, int64_t to, ggl_error *err) {
    const llm_diffusion *d = f->d;
    const int64_t back = d->shift ? 1 : 0;
    ggl_status st = GGL_OK;
    memset(f->want, 0, (size_t)d->n_length * sizeof *f->want);
    for (int64_t i = from; i < to; i++)
        f->want[i - back] |= f->id[i] == d->mask;
    f->n_found = f->n_without = f->at_without = 0;
    if (f->without) {
        memcpy(f->masked, f->id, (size_t)d->n_length * sizeof *f->id);
        for (int64_t i = 0; i < d->n_prompt; i++)
            f->masked[i] = d->mask;
        st = eval(f, f->masked, keep_logits, err);
    }
    if (st == GGL_OK)
        st = eval(f, f->id, on_logits, err);
    if (st == GGL_OK && f->has_nan)
        st = ggl_fail(err, GGL_FORMAT, "the model's logits are not finite");
    return st;
}

static int by_key(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key) - (x->key > y->key)
                            : (x->at > y->at) - (x->at < y->at);
}

/* Replaces n of the masks found. With order_temp they are drawn by softmax of their keys, without putting back: the
 * largest of key / temp plus Gumbel noise. */
static void replace(diffuser *f, int64_t n) {
    for (int64_t i = 0; i < f->n_found && f->d->order_temp > 0; i++)
        f->found[i].key = f->found[i].key / f->d->order_temp -
                          ggl_log(-ggl_log(next_random(f) + 1e-300) + 1e-300);
    qsort(f->found, (size_t)f->n_found, sizeof *f->found, by_key);
    for (int64_t i = 0; i < n && i < f->n_found; i++)
        f->id[f->found[i].at] = f->found[i].token;
}

static int64_t n_masks(const diffuser *f, int64_t from, int64_t to) {
    int64_t n = 0;
    for (int64_t i = from; i < to; i++)
        n += f->id[i] == f->d->mask;
    return n;
}

static ggl_status tell(const diffuser *f, int64_t n_done, ggl_error *err) {
    return f->d->step && !f->d->step(f->d->ctx, n_done, f->id)
               ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
               : GGL_OK;
}

/* --- schedules -------------------------------------------------------------------------------- */

/* Dream's: step i of n leaves the share of masks that t - s of t are, for times t from 1 to eps. */
static ggl_status by_time(diffuser *f, ggl_error *err) {
    const llm_diffusion *d = f->d;
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < d->n_steps && st == GGL_OK; i++) {
        const double share = (1 - d->eps) / (double)d->n_steps, t = 1 - (double)i * share,
                     s = t - share, p = i + 1 < d->n_steps ? 1 - s / t : 1;
        const int64_t masks = n_masks(f, d->n_prompt, d->n_length);
        if (masks == 0)
            break;
        st = find(f, d->n_prompt, d->n_length, err);
        int64_t n = (int64_t)((double)masks * p);
        if (st == GGL_OK && d->order == LLM_DIFFUSE_ORIGIN) { /* each by chance */
            n = 0;
            for (int64_t k = 0; k < f->n_found; k++)
                n += next_random(f) < p;
            n = i + 1 < d->n_steps ? n : masks;
        }
        if (st == GGL_OK) {
            replace(f, n);
            st = tell(f, i + 1, err);
        }
    }
    return st;
}

/* LLaDA's: the same number of masks in each step of a block. */
static ggl_status by_blocks(diffuser *f, ggl_error *err) {
    const llm_diffusion *d = f->d;
    const int64_t n_new = d->n_length - d->n_prompt,
                  n_blocks = (n_new + d->n_block - 1) / d->n_block,
                  each = d->n_steps / n_blocks > 0 ? d->n_steps / n_blocks : 1;
    ggl_status st = GGL_OK;
    for (int64_t b = 0; b < n_blocks && st == GGL_OK; b++) {
        const int64_t from = d->n_prompt + b * d->n_block,
                      to = from + d->n_block < d->n_length ? from + d->n_block : d->n_length;
        for (int64_t i = 0; i < each && st == GGL_OK; i++) {
            const int64_t masks = n_masks(f, from, to), left = each - i;
            if (masks == 0)
                break;
            st = find(f, from, to, err);
            if (st == GGL_OK) {
                replace(f, (masks + left - 1) / left);
                st = tell(f, b * each + i + 1, err);
            }
        }
    }
    return st;
}

/* --- all -------------------------------------------------------------------------------------- */

static ggl_status check(const llm_session *s, const llm_diffusion *d, ggl_error *err) {
    if (!llm_session_sees_all(s) || !llm_session_has_logits(s))
        return ggl_fail(err, GGL_USAGE, "the model is not of the diffusion kind");
    if (d->n_prompt < (d->shift ? 1 : 0) || d->n_length <= d->n_prompt)
        return ggl_fail(err, GGL_USAGE,
                        "a text of %" PRId64 " tokens after a prompt of %" PRId64
                        ": it must be longer%s",
                        d->n_length, d->n_prompt, d->shift ? ", and the prompt needs a token" : "");
    if (d->n_length > llm_session_n_ctx(s))
        return ggl_fail(err, GGL_LIMIT, "a text of %" PRId64 " tokens, but the context is %" PRId64,
                        d->n_length, llm_session_n_ctx(s));
    if (d->n_steps < 1 || d->n_block < 0 || !(d->eps > 0 && d->eps < 1) || !(d->temp >= 0) ||
        !(d->order_temp >= 0) || d->top_k < 0 || !(d->top_p > 0) || !(d->cfg_scale >= 0) ||
        (unsigned)d->order >= LLM_DIFFUSE_N_ORDERS)
        return ggl_fail(err, GGL_USAGE,
                        "a number of the diffusion is out of range: steps from 1 on, eps between 0 "
                        "and 1, top_p above 0, all others from 0 on");
    if (d->mask < 0 || d->mask >= llm_session_n_vocab(s))
        return ggl_fail(err, GGL_USAGE, "the mask token %" PRId32 " is not in the vocabulary",
                        d->mask);
    return llm_check_tokens(d->prompt, (size_t)d->n_prompt, llm_session_n_vocab(s), err);
}

ggl_status llm_diffusion_of(llm_diffusion *d, const llm_model *m, ggl_error *err) {
    const ggl_gguf *file = llm_model_file(m);
    int64_t id = -1;
    const int found = ggl_gguf_get_integer(file, "tokenizer.ggml.mask_token_id", &id, err);
    if (found < 0)
        return GGL_FORMAT;
    if (found == 0 || id < 0 || id > INT32_MAX)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: there is no key tokenizer.ggml.mask_token_id, the token that is "
                        "replaced",
                        ggl_gguf_name(file));
    d->mask = (int32_t)id;
    d->shift = true; /* as in programs that read these files, if the file does not say */
    const int said = ggl_gguf_get_bool(file, "diffusion.shift_logits", &d->shift, err);
    return said < 0 ? GGL_FORMAT : GGL_OK;
}

static bool alloc(diffuser *f) {
    const size_t n = (size_t)f->d->n_length, n_vocab = (size_t)f->n_vocab;
    f->found = ggl_calloc(n, sizeof *f->found);
    f->want = ggl_calloc(n, sizeof *f->want);
    f->p = ggl_calloc(n_vocab, sizeof *f->p);
    f->order = ggl_calloc(n_vocab, sizeof *f->order);
    bool ok = f->found && f->want && f->p && f->order;
    if (ok && f->d->cfg_scale > 0) {
        f->masked = ggl_calloc(n, sizeof *f->masked);
        f->without = ggl_calloc(n * n_vocab, sizeof *f->without);
        ok = f->masked && f->without;
    }
    return ok;
}

ggl_status llm_diffuse(llm_session *s, const llm_diffusion *d, int32_t *id, ggl_error *err) {
    ggl_status st = check(s, d, err);
    if (st != GGL_OK)
        return st;
    diffuser f = {.s = s, .d = d, .id = id, .n_vocab = llm_session_n_vocab(s), .random = d->seed};
    memcpy(id, d->prompt, (size_t)d->n_prompt * sizeof *id);
    for (int64_t i = d->n_prompt; i < d->n_length; i++)
        id[i] = d->mask;
    st = alloc(&f) ? tell(&f, 0, err) : ggl_fail(err, GGL_NOMEM, "out of memory for the diffusion");
    if (st == GGL_OK)
        st = d->n_block > 0 ? by_blocks(&f, err) : by_time(&f, err);
    ggl_free(f.found);
    ggl_free(f.want);
    ggl_free(f.p);
    ggl_free(f.order);
    ggl_free(f.masked);
    ggl_free(f.without);
    return st;
}

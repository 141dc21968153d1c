#include "llm/internal/diffuse.h"

#include <float.h>
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

struct llm_diffuser {
    llm_diffusion d; /* its prompt is the beginning of id */
    int32_t *id;     /* [n_length] */
    int64_t n_vocab;
    const uint32_t *writable; /* llm_session_writable */
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
    /* The pass that is next: step i_step (of block i_block) replaces masks of from .. to-1, n_masks of them. */
    int64_t i_step, i_block, from, to, n_masks;
    bool is_without; /* it is the one without the prompt, which comes first */
};
typedef llm_diffuser diffuser;

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

/* False for a mask, which would stay in the text, and for what the model's file suppresses. */
static bool may_write(const diffuser *f, int64_t i) {
    return i != f->d.mask && (!f->writable || f->writable[i / 32] >> i % 32 & 1);
}

/* Sets p to the probabilities of logits / temp. */
static void softmax(diffuser *f, const float *logits, double temp) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < f->n_vocab; i++) {
        f->has_nan |= isnan(logits[i]);
        if (may_write(f, i))
            top = fmax(top, (double)logits[i]);
    }
    f->has_nan |= isinf(top);
    for (int64_t i = 0; i < f->n_vocab; i++)
        sum += f->p[i] = may_write(f, i) ? ggl_exp(((double)logits[i] - top) / temp) : 0;
    for (int64_t i = 0; i < f->n_vocab; i++)
        f->p[i] /= sum;
}

/* Sets order to the n likeliest tokens, likeliest first. It is a heap with the last of them on top until all were seen. */
static void rank(diffuser *f, int64_t n) {
    ranked *o = f->order;
    int64_t n_held = 0;
    for (int32_t i = 0; i < f->n_vocab; i++) {
        const ranked x = {f->p[i], i};
        int64_t at = 0;
        if (n_held < n) {
            for (at = n_held++; at > 0 && by_probability(&o[(at - 1) / 2], &x) < 0;
                 at = (at - 1) / 2)
                o[at] = o[(at - 1) / 2];
        } else if (by_probability(&x, &o[0]) < 0) {
            for (int64_t k; (k = 2 * at + 1) < n; at = k) {
                k += k + 1 < n && by_probability(&o[k], &o[k + 1]) < 0;
                if (by_probability(&o[k], &x) < 0)
                    break;
                o[at] = o[k];
            }
        } else {
            continue;
        }
        o[at] = x;
    }
    qsort(o, (size_t)n, sizeof *o, by_probability);
}

/* Leaves the top_k likeliest tokens, and of these the fewest whose probabilities reach top_p. */
static void limit(diffuser *f) {
    const llm_diffusion *d = &f->d;
    if (d->top_k == 0 && d->top_p >= 1)
        return;
    double sum = 0;
    int64_t n = 0;
    const int64_t most = d->top_k > 0 && d->top_k < f->n_vocab ? d->top_k : f->n_vocab;
    rank(f, most);
    while (n < most && (n == 0 || sum < d->top_p))
        sum += f->order[n++].p;
    memset(f->p, 0, (size_t)f->n_vocab * sizeof *f->p);
    for (int64_t i = 0; i < n; i++)
        f->p[f->order[i].token] = f->order[i].p / sum;
}

/* Draws a token by p; with a temperature of 0, the likeliest, of equals the first. */
static int32_t draw(diffuser *f) {
    int32_t best = 0;
    for (int32_t i = 1; i < f->n_vocab; i++)
        best = f->p[i] > f->p[best] ? i : best;
    if (f->d.temp <= 0)
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
    switch (f->d.order) {
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

void llm_diffuser_logits(void *ctx, int64_t i, const float *logits) {
    diffuser *f = ctx;
    const llm_diffusion *d = &f->d;
    if (f->is_without) {
        memcpy(f->without + f->n_without++ * f->n_vocab, logits,
               (size_t)f->n_vocab * sizeof *logits);
        return;
    }
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

/* --- a step ----------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key) - (x->key > y->key)
                            : (x->at > y->at) - (x->at < y->at);
}

/* Replaces n of the masks found. With order_temp they are drawn by softmax of their keys, without putting back: the
 * largest of key / temp plus Gumbel noise. */
static void replace(diffuser *f, int64_t n) {
    for (int64_t i = 0; i < f->n_found && f->d.order_temp > 0; i++)
        f->found[i].key =
            f->found[i].key / f->d.order_temp - ggl_log(-ggl_log(next_random(f) + 1e-300) + 1e-300);
    qsort(f->found, (size_t)f->n_found, sizeof *f->found, by_key);
    for (int64_t i = 0; i < n && i < f->n_found; i++)
        f->id[f->found[i].at] = f->found[i].token;
}

static int64_t n_masks(const diffuser *f, int64_t from, int64_t to) {
    int64_t n = 0;
    for (int64_t i = from; i < to; i++)
        n += f->id[i] == f->d.mask;
    return n;
}

static ggl_status tell(const diffuser *f, int64_t n_done, ggl_error *err) {
    return f->d.step && !f->d.step(f->d.ctx, n_done, f->id)
               ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
               : GGL_OK;
}

/* --- schedules -------------------------------------------------------------------------------- */

/* Dream's: step i of n leaves the share of masks that t - s of t are, for times t from 1 to eps. Finds the masks of the next step;
 * false: there is none. */
static bool next_by_time(diffuser *f) {
    f->from = f->d.n_prompt;
    f->to = f->d.n_length;
    f->n_masks = n_masks(f, f->from, f->to);
    return f->n_masks > 0 && f->i_step < f->d.n_steps;
}

/* Returns how many masks the step replaces. */
static int64_t n_by_time(diffuser *f) {
    const llm_diffusion *d = &f->d;
    const bool is_last = f->i_step + 1 >= d->n_steps;
    const double share = (1 - d->eps) / (double)d->n_steps, t = 1 - (double)f->i_step * share,
                 s = t - share, p = is_last ? 1 : 1 - s / t;
    int64_t n = (int64_t)((double)f->n_masks * p);
    if (d->order == LLM_DIFFUSE_ORIGIN) { /* each by chance */
        n = 0;
        for (int64_t k = 0; k < f->n_found; k++)
            n += next_random(f) < p;
        n = is_last ? f->n_masks : n;
    }
    return n;
}

static int64_t n_blocks(const llm_diffusion *d) {
    return (d->n_length - d->n_prompt + d->n_block - 1) / d->n_block;
}

/* Steps of each block. */
static int64_t n_each(const llm_diffusion *d) {
    const int64_t each = d->n_steps / n_blocks(d);
    return each > 0 ? each : 1;
}

/* LLaDA's: the same number of masks in each step of a block. */
static bool next_by_blocks(diffuser *f) {
    const llm_diffusion *d = &f->d;
    for (; f->i_block < n_blocks(d); f->i_block++, f->i_step = 0) {
        f->from = d->n_prompt + f->i_block * d->n_block;
        f->to = f->from + d->n_block < d->n_length ? f->from + d->n_block : d->n_length;
        f->n_masks = n_masks(f, f->from, f->to);
        if (f->n_masks > 0 && f->i_step < n_each(d))
            return true;
    }
    return false;
}

static int64_t n_by_blocks(const diffuser *f) {
    const int64_t left = n_each(&f->d) - f->i_step;
    return (f->n_masks + left - 1) / left;
}

/* --- passes ----------------------------------------------------------------------------------- */

const int32_t *llm_diffuser_pass(llm_diffuser *f, const bool **want) {
    const llm_diffusion *d = &f->d;
    const int64_t back = d->shift ? 1 : 0;
    *want = f->want;
    if (f->n_without > 0 && !f->is_without) /* the second one of a step */
        return f->id;
    if (!(d->n_block > 0 ? next_by_blocks(f) : next_by_time(f)))
        return NULL;
    memset(f->want, 0, (size_t)d->n_length * sizeof *f->want);
    for (int64_t i = f->from; i < f->to; i++)
        f->want[i - back] |= f->id[i] == d->mask;
    f->n_found = f->n_without = f->at_without = 0;
    f->is_without = f->without != NULL;
    if (!f->without)
        return f->id;
    memcpy(f->masked, f->id, (size_t)d->n_length * sizeof *f->id);
    for (int64_t i = 0; i < d->n_prompt; i++)
        f->masked[i] = d->mask;
    return f->masked;
}

ggl_status llm_diffuser_end_pass(llm_diffuser *f, ggl_error *err) {
    if (f->is_without) {
        f->is_without = false;
        return GGL_OK;
    }
    f->n_without = 0;
    if (f->has_nan)
        return ggl_fail(err, GGL_FORMAT, "the model's logits are not finite");
    replace(f, f->d.n_block > 0 ? n_by_blocks(f) : n_by_time(f));
    f->i_step++;
    return tell(f, (f->d.n_block > 0 ? f->i_block * n_each(&f->d) : 0) + f->i_step, err);
}

const int32_t *llm_diffuser_text(const llm_diffuser *f) {
    return f->id;
}

int64_t llm_diffuser_n_settled(const llm_diffuser *f) {
    int64_t n = f->d.n_prompt;
    while (n < f->d.n_length && f->id[n] != f->d.mask)
        n++;
    return n;
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
        return ggl_fail(err, GGL_LIMIT,
                        "a prompt of %" PRId64 " tokens and an answer of %" PRId64
                        ", but the context is %" PRId64,
                        d->n_prompt, d->n_length - d->n_prompt, llm_session_n_ctx(s));
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

/* By llm_diffusion_order. */
static const char *const orders[LLM_DIFFUSE_N_ORDERS] = {"origin", "entropy", "margin", "random",
                                                         "confidence"};

const char *llm_diffusion_order_name(llm_diffusion_order order) {
    return orders[order];
}

ggl_status llm_diffusion_order_find(const char *name, llm_diffusion_order *out, ggl_error *err) {
    for (int k = 0; k < LLM_DIFFUSE_N_ORDERS; k++)
        if (strcmp(orders[k], name) == 0) {
            *out = (llm_diffusion_order)k;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_USAGE,
                    "order '%.40s' is none of origin, entropy, margin, random and confidence",
                    name);
}

llm_diffusion llm_diffusion_default(void) {
    return (llm_diffusion){.eps = 0.001, .order = LLM_DIFFUSE_CONFIDENCE, .top_p = 1};
}

void llm_diffusion_sample(llm_diffusion *d, const llm_sampler_params *s) {
    d->temp = s->temp > 0 ? (double)s->temp : 0;
    d->top_k = s->top_k > 0 ? s->top_k : 0;
    d->top_p = s->top_p > 0 ? (double)s->top_p : DBL_MIN; /* 0: the likeliest, as of a sampler */
    d->seed = s->seed;
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
    const size_t n = (size_t)f->d.n_length, n_vocab = (size_t)f->n_vocab;
    f->id = ggl_calloc(n, sizeof *f->id);
    f->found = ggl_calloc(n, sizeof *f->found);
    f->want = ggl_calloc(n, sizeof *f->want);
    f->p = ggl_calloc(n_vocab, sizeof *f->p);
    f->order = ggl_calloc(n_vocab, sizeof *f->order);
    bool ok = f->id && f->found && f->want && f->p && f->order;
    if (ok && f->d.cfg_scale > 0) {
        const size_t n_new = n - (size_t)f->d.n_prompt, n_block = (size_t)f->d.n_block,
                     n_rows = n_block > 0 && n_block < n_new ? n_block : n_new;
        f->masked = ggl_calloc(n, sizeof *f->masked);
        f->without = ggl_calloc(n_rows * n_vocab, sizeof *f->without);
        ok = f->masked && f->without;
    }
    return ok;
}

ggl_status llm_diffuser_new(llm_diffuser **out, const llm_session *s, const llm_diffusion *d,
                            ggl_error *err) {
    llm_diffusion own = *d;
    *out = NULL;
    own.n_steps = own.n_steps == 0 ? own.n_length - own.n_prompt : own.n_steps;
    const ggl_status st = check(s, &own, err);
    if (st != GGL_OK)
        return st;
    diffuser *f = ggl_calloc(1, sizeof *f);
    if (f)
        *f = (diffuser){.d = own,
                        .n_vocab = llm_session_n_vocab(s),
                        .writable = llm_session_writable(s),
                        .random = d->seed};
    if (!f || !alloc(f)) {
        llm_diffuser_free(f);
        return ggl_fail(err, GGL_NOMEM, "out of memory for the diffusion");
    }
    memcpy(f->id, d->prompt, (size_t)d->n_prompt * sizeof *f->id);
    for (int64_t i = d->n_prompt; i < d->n_length; i++)
        f->id[i] = d->mask;
    f->d.prompt = f->id;
    const ggl_status told = tell(f, 0, err);
    if (told != GGL_OK)
        llm_diffuser_free(f);
    else
        *out = f;
    return told;
}

void llm_diffuser_free(llm_diffuser *f) {
    if (!f)
        return;
    ggl_free(f->id);
    ggl_free(f->found);
    ggl_free(f->want);
    ggl_free(f->p);
    ggl_free(f->order);
    ggl_free(f->masked);
    ggl_free(f->without);
    ggl_free(f);
}

#include "speech_decoder.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/math.h"
#include "speech_ratio.h"

enum { ENTROPY_TOKENS = 32 };

/* A text that is being written, in a slot of its own. */
typedef struct written {
    int32_t *id; /* [most] */
    size_t n;
    double sum; /* of the log-probabilities */
    int slot;
    bool has_ended; /* by its last token, which is not among id */
} written;

/* A text and the token that may follow. */
typedef struct step_of {
    int text;
    int32_t token;
    double sum;
} step_of;

struct speech_decoder {
    llm_session *s;
    int32_t n_vocab;
    bool *want;  /* [n_ctx]: of a prompt */
    size_t most; /* tokens of a text: half of the context, as published */
    written text[SPEECH_MOST_TEXTS], next[SPEECH_MOST_TEXTS];
    int n_texts; /* that are being written */
    written done[SPEECH_MOST_TEXTS];
    int n_done;
    float *logits; /* [n_vocab]: of one text, changed by the rules */
    float *share;  /* [n_vocab]: of the probabilities, for draw */
    step_of found[2 * SPEECH_MOST_TEXTS + 2];
    int n_found, most_found;
    uint64_t random;
    /* the trial under way */
    const speech_decoding *p;
    double temperature, no_speech;
    int64_t n_written;          /* tokens of all trials */
    bool is_prompt, is_damaged; /* is_damaged: a number is not finite */
    int64_t at_start;
};

/* --- memory ----------------------------------------------------------------------------------- */

ggl_status llm_speech_decoder_new(speech_decoder **out, llm_session *s, ggl_error *err) {
    speech_decoder *d = *out = ggl_calloc(1, sizeof *d);
    if (!d)
        return ggl_fail(err, GGL_NOMEM, "out of memory for what is heard");
    d->s = s;
    d->n_vocab = (int32_t)llm_session_n_vocab(s);
    d->most = (size_t)(llm_session_n_ctx(s) / 2);
    d->logits = ggl_calloc((size_t)d->n_vocab, sizeof *d->logits);
    d->share = ggl_calloc((size_t)d->n_vocab, sizeof *d->share);
    d->want = ggl_calloc((size_t)llm_session_n_ctx(s), sizeof *d->want);
    bool ok = d->logits && d->share && d->want;
    written *const all[] = {d->text, d->next, d->done};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < SPEECH_MOST_TEXTS && i < llm_session_n_slots(s) && ok; i++) {
            all[k][i].id = ggl_calloc(d->most + 1, sizeof *all[k][i].id);
            ok = all[k][i].id;
        }
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for what is heard");
}

void llm_speech_decoder_free(speech_decoder *d) {
    if (!d)
        return;
    written *const all[] = {d->text, d->next, d->done};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < SPEECH_MOST_TEXTS; i++)
            ggl_free(all[k][i].id);
    ggl_free(d->logits);
    ggl_free(d->share);
    ggl_free(d->want);
    ggl_free(d);
}

/* --- choosing --------------------------------------------------------------------------------- */

/* A number from 0 to below 1: splitmix64 (Steele, Lea and Flood 2014). */
static double draw_number(speech_decoder *d) {
    uint64_t z = d->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Draws a token by its probability at the temperature. */
static int32_t draw(speech_decoder *d, const float *logits) {
    int32_t last = 0;
    double left = draw_number(d) * llm_speech_shares(logits, d->n_vocab, d->temperature, d->share);
    for (int32_t k = 0; k < d->n_vocab && left >= 0; k++)
        if (d->share[k] > 0) {
            last = k;
            left -= (double)d->share[k];
        }
    return last;
}

/* Keeps a step if it is among the likeliest; of equals, the one found before stays before. */
static void consider(speech_decoder *d, step_of x) {
    int at = d->n_found;
    if (at == d->most_found && !(x.sum > d->found[at - 1].sum))
        return;
    at -= at == d->most_found;
    d->n_found = at + 1;
    for (; at > 0 && x.sum > d->found[at - 1].sum; at--)
        d->found[at] = d->found[at - 1];
    d->found[at] = x;
}

/* Finds the steps of text i after its logits, which the rules have changed: one, or those that are among the likeliest of all. */
static void find_steps(speech_decoder *d, int i, const float *logits) {
    const double all = llm_speech_log_sum(logits, d->n_vocab);
    const written *x = &d->text[i];
    if (isinf(all) && d->temperature == 0) { /* the rules leave nothing */
        consider(d, (step_of){i, d->p->rules.tokens->end, x->sum});
        return;
    }
    if (isinf(all)) {
        d->found[d->n_found++] = (step_of){i, d->p->rules.tokens->end, x->sum};
        return;
    }
    if (d->temperature > 0) {
        const int32_t id = draw(d, logits);
        d->found[d->n_found++] = (step_of){i, id, x->sum + (double)logits[id] - all};
        return;
    }
    for (int32_t k = 0; k < d->n_vocab; k++) {
        const double sum = x->sum + (double)logits[k] - all;
        if (logits[k] > -INFINITY && /* most are no better than the last that was found */
            (d->n_found < d->most_found || sum > d->found[d->n_found - 1].sum))
            consider(d, (step_of){i, k, sum});
    }
}

static void on_logits(void *ctx, int64_t i, const float *logits) {
    speech_decoder *d = ctx;
    const speech_tokens *t = d->p->rules.tokens;
    int n_finite = 0;
    for (int32_t k = 0; k < d->n_vocab; k++)
        n_finite += fabsf(logits[k]) <= FLT_MAX;
    d->is_damaged |= n_finite < d->n_vocab;
    if (d->is_damaged)
        return;
    if (d->is_prompt && i == d->at_start && t->no_speech >= 0)
        d->no_speech =
            ggl_exp((double)logits[t->no_speech] - llm_speech_log_sum(logits, d->n_vocab));
    memcpy(d->logits, logits, (size_t)d->n_vocab * sizeof *logits);
    if (!d->is_prompt) {
        llm_speech_rules_apply(&d->p->rules, d->text[i].id, d->text[i].n, d->logits);
        find_steps(d, (int)i, d->logits);
    }
}

/* --- running ---------------------------------------------------------------------------------- */

static ggl_status eval(speech_decoder *d, llm_batch *b, ggl_error *err) {
    b->each = on_logits;
    b->ctx = d;
    d->n_found = 0;
    ggl_status st = llm_session_eval(d->s, b, err);
    if (st == GGL_OK && d->is_damaged)
        st = ggl_fail(err, GGL_FORMAT,
                      "the model's numbers are not finite: its file may be damaged");
    return st;
}

/* Runs the prompt in slot 0, and begins n texts with it; d->logits are those after it. */
static ggl_status begin(speech_decoder *d, const int32_t *prompt, size_t n, int n_texts,
                        ggl_error *err) {
    if (n < 1 || (int64_t)n >= llm_session_n_ctx(d->s))
        return ggl_fail(err, GGL_LIMIT, "a prompt of %zu tokens in a context of %" PRId64, n,
                        llm_session_n_ctx(d->s));
    memset(d->want, 0, n * sizeof *d->want);
    d->want[d->at_start] = d->want[n - 1] = true;
    ggl_status st = llm_session_clear(d->s, 0, err);
    d->is_prompt = true;
    llm_batch b = {.n = (int64_t)n, .token = prompt, .want = d->want};
    if (st == GGL_OK)
        st = eval(d, &b, err);
    d->is_prompt = false;
    for (int k = 0; k < n_texts && st == GGL_OK; k++) {
        d->text[k].n = 0;
        d->text[k].sum = 0;
        d->text[k].slot = k;
        d->text[k].has_ended = false;
        if (k > 0)
            st = llm_session_share(d->s, k, 0, (int64_t)n, err);
    }
    d->n_texts = n_texts;
    d->n_done = 0;
    return st;
}

static void copy_text(written *to, const written *from) {
    memcpy(to->id, from->id, from->n * sizeof *from->id);
    to->n = from->n;
    to->sum = from->sum;
    to->slot = from->slot;
}

/* Keeps a text that has ended, or is as long as it may be. */
static void finish(speech_decoder *d, const written *x, double sum, bool has_ended, int most) {
    if (d->n_done >= most)
        return;
    written *to = &d->done[d->n_done++];
    copy_text(to, x);
    to->sum = sum;
    to->has_ended = has_ended;
}

/* Gives each new text a slot: the first child of a text stays in its slot, others get a copy in a slot that is free. */
static ggl_status give_slots(speech_decoder *d, const int *parent, int n, ggl_error *err) {
    bool is_taken[SPEECH_MOST_TEXTS] = {false}, stays[SPEECH_MOST_TEXTS] = {false};
    ggl_status st = GGL_OK;
    for (int k = 0; k < n; k++) {
        const int slot = d->text[parent[k]].slot;
        stays[k] = !is_taken[slot];
        is_taken[slot] = true;
        d->next[k].slot = slot;
    }
    for (int k = 0, free_one = 0; k < n && st == GGL_OK; k++) {
        if (stays[k])
            continue;
        while (is_taken[free_one])
            free_one++;
        is_taken[free_one] = true;
        const int from = d->next[k].slot;
        d->next[k].slot = free_one;
        st = llm_session_share(d->s, free_one, from, llm_session_n_past(d->s, from), err);
    }
    return st;
}

/* Chooses the next texts of the steps that were found. n: how many are written side by side. */
static ggl_status choose(speech_decoder *d, int n, ggl_error *err) {
    const int32_t end = d->p->rules.tokens->end;
    int parent[SPEECH_MOST_TEXTS], n_next = 0;
    for (int k = 0; k < d->n_found && n_next < n; k++) {
        const step_of *x = &d->found[k];
        const written *from = &d->text[x->text];
        if (x->token == end) {
            finish(d, from, x->sum, true, n);
            continue;
        }
        parent[n_next] = x->text;
        written *to = &d->next[n_next++];
        copy_text(to, from);
        to->id[to->n++] = x->token;
        to->sum = x->sum;
    }
    ggl_status st = give_slots(d, parent, n_next, err);
    for (int k = 0; k < n_next; k++) {
        const written old = d->text[k];
        d->text[k] = d->next[k];
        d->next[k] = old;
    }
    d->n_texts = n_next;
    return st;
}

/* Runs the last tokens of all texts. */
static ggl_status run(speech_decoder *d, ggl_error *err) {
    int32_t token[SPEECH_MOST_TEXTS], slot[SPEECH_MOST_TEXTS];
    bool want[SPEECH_MOST_TEXTS];
    for (int k = 0; k < d->n_texts; k++) {
        token[k] = d->text[k].id[d->text[k].n - 1];
        slot[k] = d->text[k].slot;
        want[k] = true;
    }
    d->n_written += d->n_texts;
    llm_batch b = {.n = d->n_texts, .token = token, .slot = slot, .want = want};
    return eval(d, &b, err);
}

/* True if no text goes on: n texts have ended, or those that were drawn all have. */
static bool is_over(const speech_decoder *d, int n) {
    return d->n_texts == 0 || (d->temperature == 0 && d->n_done >= n);
}

/* Writes n texts side by side at the temperature. */
static ggl_status write_texts(speech_decoder *d, int n, ggl_error *err) {
    const speech_decoding *p = d->p;
    const int64_t n_ctx = llm_session_n_ctx(d->s);
    ggl_status st = GGL_OK;
    d->most_found = d->temperature > 0 ? SPEECH_MOST_TEXTS : n > 1 ? n + n : 1;
    /* all begin after the same logits; beams begin with different tokens */
    llm_speech_rules_apply(&p->rules, NULL, 0, d->logits);
    d->n_found = 0;
    for (int k = 0; k < (d->temperature > 0 ? n : 1); k++)
        find_steps(d, k, d->logits);
    d->n_texts = d->temperature > 0 ? n : 1;
    while (st == GGL_OK) {
        st = choose(d, n, err);
        if (st != GGL_OK || is_over(d, n))
            break;
        if (d->text[0].n >= d->most || llm_session_n_past(d->s, d->text[0].slot) >= n_ctx)
            break;
        if (p->cancelled && p->cancelled(p->ctx))
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        st = run(d, err);
    }
    for (int k = 0; k < d->n_texts && st == GGL_OK; k++)
        finish(d, &d->text[k], d->text[k].sum, false, n);
    return st;
}

/* --- judging ---------------------------------------------------------------------------------- */

static double entropy_of(const int32_t *id, size_t n) {
    double h = 0;
    if (n <= ENTROPY_TOKENS)
        return INFINITY;
    id += n - ENTROPY_TOKENS;
    for (int i = 0; i < ENTROPY_TOKENS; i++) {
        int count = 0;
        for (int k = 0; k < ENTROPY_TOKENS; k++)
            count += id[k] == id[i];
        h -= ggl_log((double)count / ENTROPY_TOKENS) / ENTROPY_TOKENS;
    }
    return h;
}

/* The best of the texts that are done: that with the highest mean, as published for texts without a length penalty. */
static const written *best_of(const speech_decoder *d) {
    const written *best = &d->done[0];
    for (int k = 1; k < d->n_done; k++) {
        const written *x = &d->done[k];
        if (x->sum / (double)(x->n ? x->n : 1) > best->sum / (double)(best->n ? best->n : 1))
            best = x;
    }
    return best;
}

static ggl_status keep(const speech_decoder *d, const written *x, speech_text *out,
                       ggl_error *err) {
    if (!ggl_grow(&out->ids.id, &out->ids.cap, x->n + 1, sizeof *out->ids.id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for what is heard");
    memcpy(out->ids.id, x->id, x->n * sizeof *x->id);
    out->ids.n = x->n;
    out->mean = x->sum / (double)(x->n + 1);
    out->entropy = entropy_of(x->id, x->n);
    out->no_speech = d->no_speech;
    out->temperature = d->temperature;
    return llm_speech_ratio(d->p->rules.tokens, x->id, x->n, &out->ratio, err);
}

static bool is_good(const speech_decoding *p, const speech_text *x) {
    if (x->no_speech > p->no_speech && x->mean < p->least)
        return true; /* silence, which no other temperature makes speech */
    return !(x->mean < p->least) && !(x->ratio > p->most_ratio) && !(x->entropy < p->least_entropy);
}

static int fewer(int64_t a, int64_t b) {
    return (int)(a < b ? a : b);
}

ggl_status llm_speech_decode(speech_decoder *d, const speech_decoding *p, const int32_t *prompt,
                             size_t n, size_t at_start, speech_text *out, ggl_error *err) {
    const int64_t n_slots = llm_session_n_slots(d->s);
    const int room = fewer(SPEECH_MOST_TEXTS, n_slots);
    ggl_status st = GGL_OK;
    d->p = p;
    d->at_start = (int64_t)at_start;
    d->no_speech = 0;
    d->is_damaged = false;
    d->random = p->seed;
    d->n_written = 0;
    bool is_done = false;
    for (double t = p->temperature; st == GGL_OK && !is_done; t += p->step) {
        d->temperature = t < 1e-6 ? 0 : t;
        const int n_texts = fewer(room, d->temperature > 0 ? p->n_best : p->n_beams);
        st = begin(d, prompt, n, n_texts < 1 ? 1 : n_texts, err);
        if (st == GGL_OK)
            st = write_texts(d, n_texts < 1 ? 1 : n_texts, err);
        if (st == GGL_OK)
            st = keep(d, best_of(d), out, err);
        is_done = is_good(p, out) || !(p->step > 0) || t + p->step > 1 + 1e-6;
    }
    out->n_written = d->n_written;
    for (int k = 0; k < n_slots; k++) {
        ggl_error *why = st == GGL_OK ? err : NULL;
        const ggl_status cleared =
            k > 0 ? llm_session_unread(d->s, k, why) : llm_session_clear(d->s, k, why);
        st = st == GGL_OK ? cleared : st;
    }
    return st;
}

ggl_status llm_speech_detect(speech_decoder *d, const speech_tokens *t, int32_t *id, double *p,
                             ggl_error *err) {
    const speech_decoding plain = {.rules = {.tokens = t}};
    *id = t->first_language;
    *p = 1;
    if (t->n_languages == 0)
        return GGL_OK;
    d->p = &plain;
    d->at_start = 0;
    d->is_damaged = false;
    ggl_status st = begin(d, &t->start, 1, 1, err);
    if (st != GGL_OK)
        return st;
    const float *x = d->logits + t->first_language;
    for (int32_t k = 1; k < t->n_languages; k++)
        *id = x[k] > d->logits[*id] ? t->first_language + k : *id;
    *p = ggl_exp((double)d->logits[*id] - llm_speech_log_sum(x, t->n_languages));
    return llm_session_clear(d->s, 0, err);
}

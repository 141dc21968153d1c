#include "speech_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/math.h"
#include "speech_rules.h"
#include "word_path.h"
#include "word_split.h"

enum { FILTER = 7 }; /* rows whose median counts */

/* The tokens that are run, and what is found. */
typedef struct table {
    int32_t *id; /* [n_ids]: orders, <|notimestamps|>, words, <|endoftext|> */
    bool *want;
    bool *want_logits;
    size_t n_ids, n_orders, n_text;
    size_t n_heads, n_given, n_rows; /* rows of an alignment, and those that count */
    float *share;                    /* [n_ids][n_heads][n_rows] */
    double *probability;             /* [n_text] */
    double *line, *filtered;         /* [n_rows] */
    double *cost;                    /* [n_text + 1][n_rows] */
    size_t
        *first; /* [n_text + 1]: the row in which each token begins; then the end of the last one */
    int32_t end; /* <|endoftext|>: ids below it are words */
    bool has_nan;
} table;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the times of words");
}

static void table_fini(table *t) {
    ggl_free(t->id);
    ggl_free(t->want);
    ggl_free(t->want_logits);
    ggl_free(t->share);
    ggl_free(t->probability);
    ggl_free(t->line);
    ggl_free(t->filtered);
    ggl_free(t->cost);
    ggl_free(t->first);
}

/* Makes room for the table, and its tokens. */
static ggl_status table_init(table *t, const llm_session *s, const speech_tokens *tokens,
                             const speech_window *w, ggl_error *err) {
    size_t size;
    t->end = tokens->end;
    t->n_orders = w->n_orders;
    for (size_t k = 0; k < w->n; k++)
        t->n_text += w->id[k] < t->end;
    t->n_ids = t->n_orders + 1 + t->n_text + 1;
    t->n_heads = (size_t)llm_session_n_aligned_heads(s);
    t->n_given = (size_t)llm_session_n_aligned_rows(s);
    t->n_rows = w->n_rows < (int64_t)t->n_given ? (size_t)w->n_rows : t->n_given;
    if ((int64_t)t->n_ids > llm_session_n_ctx(s))
        return ggl_fail(err, GGL_LIMIT,
                        "the times of words need a context of %zu tokens, but it has %" PRId64,
                        t->n_ids, llm_session_n_ctx(s));
    if (!ggl_size_mul(t->n_ids, t->n_heads, &size))
        return no_memory(err);
    t->id = ggl_calloc(t->n_ids, sizeof *t->id);
    t->want = ggl_calloc(t->n_ids, sizeof *t->want);
    t->want_logits = ggl_calloc(t->n_ids, sizeof *t->want_logits);
    t->share = ggl_calloc(size, t->n_rows * sizeof *t->share);
    t->probability = ggl_calloc(t->n_text, sizeof *t->probability);
    t->line = ggl_calloc(t->n_rows, sizeof *t->line);
    t->filtered = ggl_calloc(t->n_rows, sizeof *t->filtered);
    t->cost = ggl_calloc(t->n_text + 1, t->n_rows * sizeof *t->cost);
    t->first = ggl_calloc(t->n_text + 1, sizeof *t->first);
    if (!t->id || !t->want || !t->want_logits || !t->share || !t->probability || !t->line ||
        !t->filtered || !t->cost || !t->first)
        return no_memory(err);
    size_t n = 0;
    memcpy(t->id, w->order, t->n_orders * sizeof *t->id);
    n = t->n_orders;
    t->id[n++] = tokens->no_times;
    for (size_t k = 0; k < w->n; k++)
        if (w->id[k] < t->end)
            t->id[n++] = w->id[k];
    t->id[n] = t->end;
    for (size_t k = 0; k < t->n_ids; k++) {
        t->want[k] = true;
        t->want_logits[k] = k >= t->n_orders && k < t->n_orders + t->n_text;
    }
    return GGL_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Notes the probability of the next word's token, among those of words. */
static void on_logits(void *ctx, int64_t i, const float *logits) {
    table *t = ctx;
    const size_t k = (size_t)i - t->n_orders;
    const double p = ggl_exp((double)logits[t->id[i + 1]] - llm_speech_log_sum(logits, t->end));
    t->has_nan |= isnan(p);
    t->probability[k] = p;
}

/* Keeps the shares of the rows that count, as shares of these alone. */
static void on_shares(void *ctx, int64_t i, const float *share) {
    table *t = ctx;
    float *to = t->share + (size_t)i * t->n_heads * t->n_rows;
    for (size_t h = 0; h < t->n_heads; h++, share += t->n_given, to += t->n_rows) {
        double sum = 0;
        for (size_t j = 0; j < t->n_rows; j++)
            sum += (double)share[j];
        t->has_nan |= isnan(sum);
        for (size_t j = 0; j < t->n_rows; j++)
            to[j] = sum > 0 ? (float)((double)share[j] / sum) : 0.0f;
    }
}

static ggl_status run(table *t, llm_session *s, ggl_error *err) {
    const llm_batch b = {.n = (int64_t)t->n_ids,
                         .token = t->id,
                         .want = t->want_logits,
                         .want_alignment = t->want,
                         .each = on_logits,
                         .each_alignment = on_shares,
                         .ctx = t};
    ggl_status st = llm_session_clear(s, 0, err);
    if (st == GGL_OK)
        st = llm_session_eval(s, &b, err);
    const ggl_status cleared = llm_session_clear(s, 0, st == GGL_OK ? err : NULL);
    if (st == GGL_OK && t->has_nan)
        return ggl_fail(err, GGL_FORMAT,
                        "the model's numbers are not finite: its file may be damaged");
    return st == GGL_OK ? cleared : st;
}

/* --- the table -------------------------------------------------------------------------------- */

/* Row k of a line that is mirrored at both ends. */
static double mirrored(const double *x, size_t n, ptrdiff_t k) {
    const ptrdiff_t last = (ptrdiff_t)n - 1;
    k = k < 0 ? -k : k;
    return x[k > last ? 2 * last - k : k];
}

/* Sets y to the medians of x around each row. Lines that are too short for a mirror stay. */
static void filter(const double *x, size_t n, double *y) {
    for (size_t j = 0; j < n; j++) {
        double near[FILTER];
        if (n <= FILTER / 2) {
            y[j] = x[j];
            continue;
        }
        for (int k = 0; k < FILTER; k++) {
            const double v = mirrored(x, n, (ptrdiff_t)j + k - FILTER / 2);
            int at = k;
            for (; at > 0 && near[at - 1] > v; at--)
                near[at] = near[at - 1];
            near[at] = v;
        }
        y[j] = near[FILTER / 2];
    }
}

/* In place of each share of a head: by how many standard deviations it is above the mean of all tokens' in this row. */
static void normalise(table *t, size_t head) {
    const size_t step = t->n_heads * t->n_rows;
    for (size_t j = 0; j < t->n_rows; j++) {
        float *const x = t->share + head * t->n_rows + j;
        double mean = 0, square = 0;
        for (size_t i = 0; i < t->n_ids; i++)
            mean += (double)x[i * step] / (double)t->n_ids;
        for (size_t i = 0; i < t->n_ids; i++) {
            const double d = (double)x[i * step] - mean;
            square += d * d / (double)t->n_ids;
        }
        const double deviation = sqrt(square);
        for (size_t i = 0; i < t->n_ids; i++)
            x[i * step] = deviation > 0 ? (float)(((double)x[i * step] - mean) / deviation) : 0.0f;
    }
}

/* Makes the costs: the mean of all heads, negative, of <|notimestamps|>, after which the first word comes, and of the words. */
static void make_costs(table *t) {
    for (size_t h = 0; h < t->n_heads; h++) {
        normalise(t, h);
        for (size_t i = 0; i <= t->n_text; i++) {
            const float *x = t->share + ((t->n_orders + i) * t->n_heads + h) * t->n_rows;
            double *cost = t->cost + i * t->n_rows;
            for (size_t j = 0; j < t->n_rows; j++)
                t->line[j] = (double)x[j];
            filter(t->line, t->n_rows, t->filtered);
            for (size_t j = 0; j < t->n_rows; j++)
                cost[j] -= t->filtered[j] / (double)t->n_heads;
        }
    }
}

/* --- words ------------------------------------------------------------------------------------ */

/* Copies the text of the words' tokens. at [n_text + 1]: where each begins. */
static ggl_status write_text(speech_words *w, const table *t, const llm_tokenizer *tokenizer,
                             size_t *at, ggl_error *err) {
    w->n_text = 0;
    for (size_t k = 0; k < t->n_text; k++) {
        const ggl_str s = llm_token_text(tokenizer, t->id[t->n_orders + 1 + k], false);
        if (!ggl_grow(&w->text, &w->cap_text, w->n_text + s.n + 1, 1))
            return no_memory(err);
        if (s.n > 0) /* s.s may be NULL */
            memcpy(w->text + w->n_text, s.s, s.n);
        w->n_text += s.n;
        at[k + 1] = w->n_text;
    }
    return GGL_OK;
}

/* Sets the words to those of the parts of tokens. */
static ggl_status set_words(speech_words *w, const table *t, const speech_window *window,
                            const word_part *part, size_t n, ggl_error *err) {
    size_t token = 0;
    if (!ggl_grow(&w->word, &w->cap, n, sizeof *w->word))
        return no_memory(err);
    for (w->n = 0; w->n < n; w->n++) {
        const word_part *x = &part[w->n];
        const size_t end = token + x->n_tokens;
        double sum = 0;
        for (size_t i = token; i < end; i++)
            sum += t->probability[i];
        w->word[w->n] = (speech_word){.start = window->row_seconds * (double)t->first[token],
                                      .end = window->row_seconds * (double)t->first[end],
                                      .probability = sum / (double)x->n_tokens,
                                      .text = x->text,
                                      .n_text = x->n_text};
        token = end;
    }
    return GGL_OK;
}

static ggl_status make_words(speech_words *w, const table *t, const speech_tokens *tokens,
                             const speech_window *window, ggl_error *err) {
    size_t *at = ggl_calloc(t->n_text + 1, sizeof *at), n = 0, token = 0;
    word_part *part = ggl_calloc(t->n_text, sizeof *part);
    ggl_status st = at && part ? write_text(w, t, tokens->tokenizer, at, err) : no_memory(err);
    for (size_t k = 0; k < window->n_pieces && st == GGL_OK; k++) {
        speech_piece *p = &window->piece[k];
        llm_word_split(w->text, at + token, p->n_text, window->no_spaces, part + n, &p->n_words);
        p->first = n;
        n += p->n_words;
        token += p->n_text;
    }
    if (st == GGL_OK)
        st = set_words(w, t, window, part, n, err);
    ggl_free(at);
    ggl_free(part);
    return st;
}

ggl_status llm_speech_words_find(speech_words *w, llm_session *s, const speech_tokens *tokens,
                                 const speech_window *window, ggl_error *err) {
    table t = {0};
    w->n = w->n_text = 0;
    for (size_t k = 0; k < window->n_pieces; k++)
        window->piece[k].n_words = 0;
    ggl_status st = table_init(&t, s, tokens, window, err);
    const bool has_words = t.n_text > 0 && t.n_rows > 0;
    if (st == GGL_OK && has_words)
        st = run(&t, s, err);
    if (st == GGL_OK && has_words) {
        make_costs(&t);
        st = llm_word_path(t.cost, t.n_text + 1, t.n_rows, t.first, err);
    }
    if (st == GGL_OK && has_words)
        st = make_words(w, &t, tokens, window, err);
    table_fini(&t);
    return st;
}

void llm_speech_words_fini(speech_words *w) {
    ggl_free(w->word);
    ggl_free(w->text);
    *w = (speech_words){0};
}

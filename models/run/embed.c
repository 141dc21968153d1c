/* Texts to vectors or scores. As many whole texts as fit make a batch, each in a slot of its own. */
#include "llm/internal/embed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"

/* A text of the batch. */
typedef struct packed {
    size_t text;
    int64_t at;         /* its first token in the batch */
    int64_t first, end; /* the tokens whose rows are wanted */
    size_t row;         /* its first row in embedder.row */
    int64_t n_rows;
} packed;

typedef struct embedder {
    llm_session *s;
    const llm_embedding_params *p;
    bool scores;
    int64_t n_out; /* numbers of a row */
    llm_arch_output out;
    packed *of; /* [n_slots] */
    int n_packed;
    int64_t n, n_wanted;                 /* tokens of the batch, and wanted ones */
    int64_t n_needed;                    /* positions of the pages that its slots take */
    int32_t *token, *type, *slot, *seen; /* [cap] */
    const float **share;
    bool *want;
    size_t cap_token, cap_type, cap_slot, cap_share, cap_seen, cap_want;
    float *row; /* the wanted rows of the batch */
    size_t cap_row;
    const llm_head *head; /* NULL: rows are given as they are */
    llm_head *own;        /* owned; the same, of the pooling alone */
    double *sum;          /* of `head` */
    float *vector;        /* [llm_head_n_out] */
} embedder;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for embeddings");
}

void llm_output_range(const llm_arch_output *out, bool sees_all, llm_pooling pooling,
                      int64_t n_before, int64_t n, int64_t *first, int64_t *end) {
    if (out->one_row) {
        *first = out->row < 0 ? n - 1 : out->row < n ? out->row : n - 1;
        *end = *first + 1;
    } else if (pooling == LLM_POOL_RANK && !sees_all) {
        *first = n - 1;
        *end = n;
    } else {
        llm_pooling_range(pooling, n_before, n, first, end);
    }
}

void llm_embed_range(const llm_session *s, llm_pooling pooling, int64_t n_before, int64_t n,
                     int64_t *first, int64_t *end) {
    const llm_arch_result *built = llm_session_built(s);
    llm_output_range(pooling == LLM_POOL_RANK ? &built->score : &built->embedding,
                     llm_session_sees_all(s), pooling, n_before, n, first, end);
}

/* How messages call text k: as programs count, from 0. */
typedef struct text_name {
    char s[64];
} text_name;

static text_name name_of(const llm_embedding_params *p, size_t k) {
    text_name name;
    const size_t at = p->first + k;
    if (at == 0 && p->n_texts == 1)
        snprintf(name.s, sizeof name.s, "the text");
    else
        snprintf(name.s, sizeof name.s, "%s[%zu]", p->name ? p->name : "texts", at);
    return name;
}

/* Adds a text to the batch. */
static ggl_status pack(embedder *e, size_t k, ggl_error *err) {
    const llm_embed_text *t = &e->p->text[k];
    const size_t end = (size_t)e->n + t->n;
    if (!ggl_grow(&e->token, &e->cap_token, end, sizeof *e->token) ||
        !ggl_grow(&e->type, &e->cap_type, end, sizeof *e->type) ||
        !ggl_grow(&e->slot, &e->cap_slot, end, sizeof *e->slot) ||
        !ggl_grow(&e->share, &e->cap_share, end, sizeof *e->share) ||
        !ggl_grow(&e->seen, &e->cap_seen, end, sizeof *e->seen) ||
        !ggl_grow(&e->want, &e->cap_want, end, sizeof *e->want))
        return no_memory(err);
    packed *to = &e->of[e->n_packed];
    *to = (packed){.text = k, .at = e->n, .row = (size_t)e->n_wanted};
    if (t->n == 0) {
        e->n_packed++;
        return GGL_OK;
    }
    llm_embed_range(e->s, e->p->pooling, t->n_before, (int64_t)t->n, &to->first, &to->end);
    memcpy(e->token + e->n, t->token, t->n * sizeof *t->token);
    if (llm_session_reads_text(
            e->s)) { /* the decoder's tokens are those before it; the text is read in run() */
        memmove(e->token + e->n + 1, e->token + e->n, (t->n - 1) * sizeof *t->token);
        e->token[e->n] = llm_session_start_token(e->s);
    }
    for (int64_t i = 0; i < (int64_t)t->n; i++) {
        e->type[e->n + i] = t->type ? t->type[i] : 0;
        e->slot[e->n + i] = e->n_packed;
        e->share[e->n + i] = t->share;
        e->seen[e->n + i] = t->n_seen;
        e->want[e->n + i] = i >= to->first && i < to->end;
    }
    e->n_wanted += to->end - to->first;
    e->n += (int64_t)t->n;
    e->n_needed += llm_session_n_needed(e->s, e->n_packed, (int64_t)t->n);
    e->n_packed++;
    return GGL_OK;
}

/* True if the next text fits into the batch. A text alone always does. */
static bool fits(const embedder *e, size_t k) {
    const int64_t n = (int64_t)e->p->text[k].n;
    return e->n_packed == 0 ||
           (e->n_packed < llm_session_n_slots(e->s) && e->n + n <= llm_session_n_ubatch(e->s) &&
            e->n_needed + llm_session_n_needed(e->s, e->n_packed, n) <= llm_session_n_free(e->s));
}

static void keep_row(void *ctx, int64_t i, const float *row) {
    embedder *e = ctx;
    packed *to = &e->of[e->slot[i]];
    memcpy(e->row + (to->row + (size_t)to->n_rows++) * (size_t)e->n_out, row,
           (size_t)e->n_out * sizeof *row);
}

/* Returns the numbers of a result, before it is cut to n_dims. */
static int64_t n_whole(const embedder *e) {
    return e->head ? llm_head_n_out(e->head) : e->n_out;
}

/* Returns how many numbers of each vector are given. */
static int64_t kept_dims(const embedder *e) {
    return e->p->n_dims > 0 && !e->scores ? e->p->n_dims : n_whole(e);
}

/* Makes one vector of a text's rows. */
static ggl_status pool(embedder *e, const packed *t, ggl_error *err) {
    const float *row = e->row + t->row * (size_t)e->n_out;
    llm_head_begin(e->head, e->sum);
    for (int64_t r = 0; r < t->n_rows; r++)
        llm_head_add(e->head, e->sum, t->first + r, row + r * e->n_out);
    return llm_head_end(e->head, e->sum, kept_dims(e), e->p->normalize, e->vector, err);
}

/* Leaves only the first numbers of each row. */
static void cut_rows(const embedder *e, const packed *t) {
    float *row = e->row + t->row * (size_t)e->n_out;
    const size_t n = (size_t)kept_dims(e);
    for (int64_t r = 1; r < t->n_rows && (int64_t)n < e->n_out; r++)
        memmove(row + (size_t)r * n, row + r * e->n_out, n * sizeof *row);
}

static ggl_status check_finite(const embedder *e, const packed *t, ggl_error *err) {
    const float *row = e->row + t->row * (size_t)e->n_out;
    for (int64_t k = 0; k < t->n_rows * e->n_out; k++)
        if (!isfinite(row[k]))
            return ggl_fail(err, GGL_FORMAT,
                            "the %s of %s has numbers that are not finite%s: the model's "
                            "numbers or its descriptor are wrong",
                            e->scores ? "score" : "embedding", name_of(e->p, t->text).s,
                            llm_session_adapters_text(e->s));
    return GGL_OK;
}

/* Hands a text's result on. */
static ggl_status give_text(embedder *e, const packed *t, ggl_error *err) {
    ggl_status st = check_finite(e, t, err);
    if (st == GGL_OK && e->head)
        st = pool(e, t, err);
    else if (st == GGL_OK)
        cut_rows(e, t);
    if (st == GGL_OK &&
        !e->p->each(e->p->ctx, e->p->first + t->text, e->head ? 1 : t->n_rows,
                    e->head ? e->vector : e->row + t->row * (size_t)e->n_out, kept_dims(e)))
        st = ggl_fail(err, GGL_CANCELLED, "stopped after %s", name_of(e->p, t->text).s);
    return st;
}

/* Gives the batch's results to the caller. */
static ggl_status give(embedder *e, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < e->n_packed && st == GGL_OK; i++)
        st = give_text(e, &e->of[i], err);
    return st;
}

/* Runs the batch, and empties it and the slots. */
static ggl_status run(embedder *e, ggl_error *err) {
    if (!ggl_grow(&e->row, &e->cap_row, (size_t)(e->n_wanted * e->n_out) + 1, sizeof *e->row))
        return no_memory(err);
    const llm_batch b = {.n = e->n,
                         .token = e->token,
                         .type = e->type,
                         .slot = e->slot,
                         .share = e->share,
                         .seen = e->seen,
                         .want_embedding = e->scores ? NULL : e->want,
                         .want_score = e->scores ? e->want : NULL,
                         .each_embedding = keep_row,
                         .each_score = keep_row,
                         .ctx = e};
    ggl_status st = GGL_OK;
    for (int k = 0; k < e->n_packed && st == GGL_OK && llm_session_reads_text(e->s); k++) {
        const llm_embed_text *t = &e->p->text[e->of[k].text];
        st = llm_session_read(e->s, k, t->token, (int64_t)t->n, err);
    }
    if (st == GGL_OK && e->n > 0)
        st = llm_session_eval(e->s, &b, err);
    if (st == GGL_OK)
        st = give(e, err);
    for (int i = 0; i < e->n_packed; i++) {
        const ggl_status cleared = llm_session_clear(e->s, i, st == GGL_OK ? err : NULL);
        st = st == GGL_OK ? cleared : st;
    }
    e->n = e->n_wanted = e->n_needed = e->n_packed = 0;
    return st;
}

/* Checks a text's length; a stage cannot cut it. */
static ggl_status check_text(const llm_session *s, const llm_embedding_params *p, size_t k,
                             ggl_error *err) {
    const size_t n = p->text[k].n;
    if (n == 0)
        return p->empty ? GGL_OK : ggl_fail(err, GGL_USAGE, "%s has no tokens", name_of(p, k).s);
    if ((int64_t)n <= llm_session_n_ctx(s))
        return GGL_OK;
    return ggl_fail(
        err, GGL_LIMIT,
        "%s has %zu tokens, but the longest text has %" PRId64 " (%s): truncate cuts it",
        name_of(p, k).s, n, llm_session_n_ctx(s), p->limit ? p->limit : "n_ctx, or -c N");
}

static ggl_status run_all(embedder *e, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t k = 0; k < e->p->n_texts && st == GGL_OK; k++) {
        if (!fits(e, k))
            st = run(e, err);
        if (st == GGL_OK)
            st = pack(e, k, err);
    }
    return st == GGL_OK && e->n_packed > 0 ? run(e, err) : st;
}

/* What is wanted of the session's graph. */
static llm_arch_output output_of(const llm_session *s, const llm_embedding_params *p) {
    const llm_arch_result *built = llm_session_built(s);
    return p->pooling == LLM_POOL_RANK ? built->score : built->embedding;
}

ggl_status llm_embed_check(const llm_session *s, const llm_embedding_params *p, ggl_error *err) {
    const bool scores = p->pooling == LLM_POOL_RANK;
    int64_t n_out = output_of(s, p).n;
    ggl_status st = GGL_OK;
    if (p->head && n_out > 0 && !scores && p->pooling != LLM_POOL_NONE)
        n_out = llm_head_n_out(p->head);
    if (n_out == 0)
        return ggl_fail(err, GGL_USAGE, "the model gives no %s",
                        scores ? "score: it is no reranker or classifier" : "embeddings");
    if (p->n_dims < 0 || (p->n_dims > n_out && !scores))
        return ggl_fail(err, GGL_USAGE, "%" PRId64 " dimensions of vectors that have %" PRId64,
                        p->n_dims, n_out);
    for (size_t k = 0; k < p->n_texts && st == GGL_OK; k++)
        st = check_text(s, p, k, err);
    return st;
}

size_t llm_embed_some(const llm_session *s, const llm_embedding_params *p, size_t begin,
                      int n_batches) {
    const int64_t most = llm_session_n_ubatch(s);
    int64_t n = 0, n_packed = 0;
    size_t k = begin;
    for (
        ; k < p->n_texts;
        k++) { /* as fits(), but for the pages of a cache that is smaller than the slots' contexts */
        const int64_t n_text = (int64_t)p->text[k].n;
        if (n_packed > 0 && (n_packed == llm_session_n_slots(s) || n + n_text > most)) {
            n = n_packed = 0;
            if (--n_batches == 0)
                break;
        }
        n += n_text;
        n_packed++;
    }
    return k - begin;
}

/* Makes what pools the rows. */
static ggl_status find_head(embedder *e, ggl_error *err) {
    if (e->scores || e->p->pooling == LLM_POOL_NONE)
        return GGL_OK;
    e->head = e->p->head;
    if (!e->head) {
        const ggl_status st = llm_head_new(&e->own, e->p->pooling, NULL, e->n_out, err);
        if (st != GGL_OK)
            return st;
        e->head = e->own;
    }
    e->sum = ggl_calloc(llm_head_sum_size(e->head), sizeof *e->sum);
    e->vector = ggl_calloc((size_t)llm_head_n_out(e->head), sizeof *e->vector);
    return e->sum && e->vector ? GGL_OK : no_memory(err);
}

ggl_status llm_embed_all(llm_session *s, const llm_embedding_params *p, ggl_error *err) {
    embedder e = {.s = s, .p = p, .scores = p->pooling == LLM_POOL_RANK};
    ggl_status st = llm_embed_check(s, p, err);
    if (st != GGL_OK)
        return st;
    e.out = output_of(s, p);
    e.n_out = e.out.n;
    e.of = ggl_calloc((size_t)llm_session_n_slots(s), sizeof *e.of);
    st = e.of ? find_head(&e, err) : no_memory(err);
    if (st == GGL_OK)
        st = run_all(&e, err);
    llm_head_free(e.own);
    ggl_free(e.vector);
    ggl_free(e.of);
    ggl_free(e.token);
    ggl_free(e.type);
    ggl_free(e.slot);
    ggl_free(e.share);
    ggl_free(e.seen);
    ggl_free(e.want);
    ggl_free(e.row);
    ggl_free(e.sum);
    return st;
}

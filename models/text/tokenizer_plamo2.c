/* PLaMo 2's tokenizer: splits the text into the tokens whose scores have the highest sum,
 * working from its end to its beginning. Nothing is normalized. Scores are rounded to 1/10000.
 * Any character may become the tokens of its bytes, with score -1000. */
#include <math.h>
#include <string.h>

#include "best_path.h"
#include "ggl/internal/show.h"
#include "tokenizer_impl.h"

typedef struct plamo2 {
    automaton tokens;
    double *score;     /* in units of 1 / UNIT */
    const float *read; /* as the file has them */
    int32_t byte[256];
} plamo2;

static const double UNIT = 1e4, UNKNOWN = -1000 * 1e4, NEVER = -2000 * 1e4;

static bool is_used(const llm_tokenizer *t, int32_t id) {
    return llm_may_be_spelled(t, id) && t->type[id] != TOKEN_UNUSED &&
           ((const plamo2 *)t->state)->score[id] > NEVER;
}

static ggl_status add_tokens(llm_tokenizer *t, plamo2 *m, const float *score, ggl_error *err) {
    ggl_status s = llm_automaton_init(&m->tokens, true, err);
    m->read = score;
    for (int32_t id = 0; id < t->n_vocab && s == GGL_OK; id++) {
        m->score[id] = round((double)score[id] * UNIT);
        if (is_used(t, id))
            s = llm_automaton_add(&m->tokens, t->piece[id], id, err);
    }
    if (s == GGL_OK)
        s = llm_automaton_finish(&m->tokens, err);
    return s == GGL_OK ? llm_best_path_check(&m->tokens, err) : s;
}

static ggl_status plamo2_init(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    float *score;
    plamo2 *m = ggl_arena_alloc(&t->arena, 1, sizeof *m);
    t->state = m;
    if (m)
        m->score = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->score);
    if (!m || !m->score)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    ggl_status s = llm_read_scored_pieces(t, file, &score, m->byte, err);
    return s == GGL_OK ? add_tokens(t, m, score, err) : s;
}

static void plamo2_free(llm_tokenizer *t) {
    plamo2 *m = t->state; /* is in the arena */
    if (m)
        llm_automaton_fini(&m->tokens);
    t->state = NULL;
}

/* A piece is its own text, including spaces. */
static ggl_str plamo2_text(llm_tokenizer *t, int32_t id) {
    return t->type[id] == TOKEN_BYTE ? llm_spaced_text(t, id) : t->piece[id];
}

typedef struct plamo2_run {
    const llm_tokenizer *t;
    llm_tokens *out;
    ggl_error *err;
} plamo2_run;

static void reverse(int32_t *id, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        int32_t swap = id[i];
        id[i] = id[n - 1 - i];
        id[n - 1 - i] = swap;
    }
}

/* Tokens arrive from the last to the first, so the bytes of a character are reversed, too. */
static ggl_status emit(void *context, int32_t id, const char *s, size_t n) {
    plamo2_run *r = context;
    const plamo2 *m = r->t->state;
    if (id >= 0)
        return llm_tokens_append(r->out, id, r->err);
    size_t first = r->out->n;
    ggl_status status = llm_append_bytes(r->t, m->byte, s, n, r->out, r->err);
    if (status == GGL_OK)
        reverse(r->out->id + first, r->out->n - first);
    return status;
}

/* Returns the length of the last character of s[0..n), n > 0. */
static size_t last_length(const char *s, size_t n) {
    for (size_t len = 1; len <= 4 && len <= n; len++)
        if (ggl_utf8_length(s + n - len, len) == len)
            return len;
    return 1;
}

static ggl_status plamo2_encode(const llm_tokenizer *t, const char *text, size_t n,
                                const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    (void)how;
    const plamo2 *m = t->state;
    plamo2_run r = {t, out, err};
    best_path path = {.tokens = &m->tokens,
                      .score = m->score,
                      .unknown = UNKNOWN,
                      .unknown_always = true,
                      .backward = true,
                      .emit = emit,
                      .context = &r};
    const size_t first = out->n;
    ggl_status s = GGL_OK;
    while (n > 0 && s == GGL_OK) {
        size_t len = last_length(text, n);
        n -= len;
        s = llm_best_path_add(&path, text + n, len, err);
    }
    if (s == GGL_OK)
        s = llm_best_path_end(&path);
    if (s == GGL_OK)
        reverse(out->id + first, out->n - first);
    llm_best_path_fini(&path);
    return s;
}

static bool plamo2_key(const llm_tokenizer *t, int32_t id, bool begins, char *out, size_t *n) {
    (void)begins;
    *n = t->piece[id].n;
    if (!is_used(t, id))
        return false;
    memcpy(out, t->piece[id].s, *n);
    return true;
}

static double plamo2_score(const llm_tokenizer *t, int32_t id) {
    return (double)((const plamo2 *)t->state)->read[id];
}

/* The runtime adds scores up from the end of the whole text, and this file from where no token spans a place. The sums are equal as long as
 * they are exact. */
static const char *plamo2_tables(const llm_tokenizer *t, llm_tokenizer_tables *out) {
    enum { MOST = 1 << 30 };
    const plamo2 *m = t->state;
    bool is_exact = true;
    for (int32_t id = 0; id < t->n_vocab; id++)
        is_exact = is_exact && (!is_used(t, id) || m->score[id] < MOST);
    *out = (llm_tokenizer_tables){
        .encode = "best_back", .key = plamo2_key, .score = plamo2_score, .byte = m->byte};
    return is_exact ? NULL : "tokenizer.ggml.scores has a score above 107374";
}

const llm_tokenizer_kind llm_tokenizer_plamo2 = {
    .name = "plamo2",
    .init = plamo2_init,
    .text = plamo2_text,
    .encode = plamo2_encode,
    .free = plamo2_free,
    .tables = plamo2_tables,
};

/* The outputs of a session's graph: which are wanted of a token, and who gets them. */
#include <string.h>

#include "ggl/internal/graph.h"
#include "session_impl.h"

typedef void (*each_output)(void *ctx, int64_t i, const float *value);

/* Offsets of members of llm_batch: the tokens of which the output is wanted, and the function that gets it; and the sentence that
 * refuses the former in a session that lacks the output. */
static const struct {
    const char *name;
    size_t want, each;
    const char *lack;
} table[LLM_N_OUTPUTS] = {
    [LLM_OUT_EMBEDDING] = {"embedding", offsetof(llm_batch, want_embedding),
                           offsetof(llm_batch, each_embedding),
                           "the session gives no embeddings: it was made without "
                           "llm_session_params.embeddings"},
    [LLM_OUT_ROWS] = {"rows", offsetof(llm_batch, want), offsetof(llm_batch, each_row), NULL},
    [LLM_OUT_SCORE] = {"score", offsetof(llm_batch, want_score), offsetof(llm_batch, each_score),
                       "the model gives no scores to texts"},
    [LLM_OUT_ALIGNMENT] = {"alignment", offsetof(llm_batch, want_alignment),
                           offsetof(llm_batch, each_alignment),
                           "the session gives no alignments: it was made without "
                           "llm_session_params.alignment"},
    [LLM_OUT_LOGITS] = {"logits", offsetof(llm_batch, want), offsetof(llm_batch, each), NULL},
};

enum { OF_LOGITS = 1 << LLM_OUT_LOGITS | 1 << LLM_OUT_ROWS }; /* they have the same `want` */

/* --- which there are ---------------------------------------------------------------------------- */

static int find(const ggl_graph *g, const char *name) {
    int i = ggl_graph_n_outputs(g) - 1;
    while (i >= 0 && strcmp(ggl_graph_get_output(g, i)->name, name) != 0)
        i--;
    return i;
}

void llm_outputs_find(llm_session *s, const llm_session_params *p) {
    const bool is_guess = p->only && strcmp(p->only, "guess") == 0;
    for (int o = 0; o < LLM_N_OUTPUTS; o++)
        s->output[o] = find(s->graph, o == LLM_OUT_LOGITS && is_guess ? p->only : table[o].name);
    s->guesses = is_guess;
    /* of layers that guess, those before the last one tell theirs to the next */
    s->tells = llm_has_output(s, LLM_OUT_ROWS) &&
               (!is_guess || (!s->built.guess_apart && !s->built.guess_in_turn &&
                              p->guess_layer + 1 < s->built.n_guess_layers));
    /* what mostly is wanted, and then costs no more than in a session without the others */
    if (llm_has_output(s, LLM_OUT_LOGITS) && llm_has_output(s, LLM_OUT_ALIGNMENT))
        s->early = OF_LOGITS;
    else if (llm_has_output(s, LLM_OUT_LOGITS) && llm_has_output(s, LLM_OUT_EMBEDDING))
        s->early = 1 << LLM_OUT_EMBEDDING;
}

/* --- which are wanted --------------------------------------------------------------------------- */

static const bool *want_of(const llm_batch *b, int o) {
    const bool *want;
    memcpy(&want, (const char *)b + table[o].want, sizeof want);
    return want;
}

uint32_t llm_outputs_wanted(const llm_batch *b, int64_t i) {
    bool is_said = b->input != NULL; /* the rows of a stage have no logits */
    uint32_t set = 0;
    for (int o = 0; o < LLM_N_OUTPUTS; o++) {
        const bool *want = want_of(b, o);
        is_said = is_said || want;
        set |= (uint32_t)(want && want[i]) << o;
    }
    return is_said || i != b->n - 1 ? set : OF_LOGITS;
}

ggl_status llm_outputs_check(const llm_session *s, const llm_batch *b, ggl_error *err) {
    for (int o = 0; o < LLM_N_OUTPUTS; o++)
        if (table[o].lack && want_of(b, o) && !llm_has_output(s, o))
            return ggl_fail(err, GGL_USAGE, "%s", table[o].lack);
    const bool has_any =
        llm_has_output(s, LLM_OUT_LOGITS) || (s->guesses && s->built.guess_in_turn);
    for (int64_t i = 0; !has_any && i < b->n; i++)
        if (llm_outputs_wanted(b, i) & OF_LOGITS)
            return ggl_fail(
                err, GGL_USAGE,
                "the model gives no logits, so it cannot write texts: it makes %s of them",
                llm_has_output(s, LLM_OUT_EMBEDDING) ? "vectors" : "scores");
    return GGL_OK;
}

/* --- who gets them ------------------------------------------------------------------------------ */

static each_output each_of(const llm_batch *b, int o) {
    each_output each;
    memcpy(&each, (const char *)b + table[o].each, sizeof each);
    return each;
}

/* Tells the rows of all elements (llm_session_hear). */
static void tell(const llm_session *s, const session_flight *f, const float *row) {
    for (int64_t i = 0; s->tells && s->hear && i < f->n; i++) {
        const session_element *e = &f->element[i];
        s->hear(s->hear_ctx, e->slot, e->pos, e->token, row + i * s->built.n_row);
    }
}

void llm_outputs_give(llm_session *s, const session_flight *f) {
    const float *value[LLM_N_OUTPUTS] = {0};
    int64_t n[LLM_N_OUTPUTS] = {0};
    for (int o = 0; o < LLM_N_OUTPUTS; o++)
        if (llm_has_output(s, o)) {
            value[o] = ggl_sched_output(s->sched, s->output[o]);
            n[o] = ggl_count(ggl_graph_get_output(s->graph, s->output[o]));
        }
    tell(s, f, value[LLM_OUT_ROWS]);
    if (!s->guesses)
        value[LLM_OUT_ROWS] = NULL;
    for (int64_t k = 0; k < f->n_rows; k++) {
        const session_element *e = &f->element[f->row[k]];
        for (int o = 0; o < LLM_N_OUTPUTS; o++) {
            if (!value[o] || !(e->wanted >> o & 1))
                continue;
            const int64_t at = o == LLM_OUT_ROWS && s->tells ? f->row[k] : k;
            const float *own = value[o] + at * n[o];
            s->logits = o == LLM_OUT_LOGITS ? own : s->logits;
            if (each_of(&f->of, o))
                each_of(&f->of, o)(f->of.ctx, e->i, own);
        }
    }
}

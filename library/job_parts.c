#include "job_parts.h"

#include <string.h>

#include "ggl/internal/text.h"

/* --- grammars --------------------------------------------------------------------------------- */

ggl_status llm_job_grammar_new(llm_grammar **out, const llm_job_form *f, ggl_error *err) {
    const llm_schema_params schema = {.size = sizeof schema,
                                      .note = f->note,
                                      .note_arg = f->user,
                                      .compact = !f->spaces,
                                      .max_steps = f->max_steps,
                                      .max_bytes = f->max_bytes,
                                      .thought = f->thought,
                                      .n_thoughts = f->n_thoughts};
    const llm_gbnf_params gbnf = {.size = sizeof gbnf,
                                  .max_steps = f->max_steps,
                                  .max_bytes = f->max_bytes,
                                  .thought = f->thought,
                                  .n_thoughts = f->n_thoughts};
    return f->is_schema ? llm_grammar_from_schema_with(out, f->text, f->n, f->name, &schema, err)
                        : llm_grammar_from_gbnf_with(out, f->text, f->n, f->name, &gbnf, err);
}

/* True if a mark is a single control token. */
static bool is_control(const llm_tokenizer *t, const char *mark) {
    llm_tokens ids = {0};
    const bool is =
        llm_tokenize(t, mark, strlen(mark), LLM_TOKENIZE_SPECIAL, &ids, NULL) == GGL_OK &&
        ids.n > 0 && llm_tokenizer_is_control(t, ids.id[0]);
    llm_tokens_fini(&ids);
    return is;
}

ggl_status llm_job_thoughts(llm_thought thought[LLM_THOUGHTS], size_t *n,
                            const llm_calls_params *answers, const llm_tokenizer *t,
                            ggl_str grammar, ggl_error *err) {
    size_t n_all;
    const ggl_status st = llm_calls_thoughts(thought, &n_all, answers, err);
    *n = 0;
    for (size_t i = 0; i < n_all; i++) {
        const llm_thought *x = &thought[i];
        const bool is_free =
            grammar.n > 0
                ? x->is_begun && !ggl_find_bytes(grammar.s, grammar.n, x->close, strlen(x->close))
                : x->is_begun || !is_control(t, x->open);
        if (is_free && !is_control(t, x->close))
            thought[(*n)++] = *x;
    }
    return st;
}

/* --- parts ------------------------------------------------------------------------------------ */

static ggl_status make_sampler(llm_job_parts *x, const llm_job_params *p, const llm_job_parts *like,
                               ggl_error *err) {
    const int64_t n_last = p->n_ctx < INT32_MAX ? p->n_ctx : INT32_MAX;
    if (!p->sampling)
        return GGL_OK;
    llm_diffusion_sample(&x->way.diffusion, p->sampling);
    return like && like->sampler ? llm_sampler_new_like(&x->sampler, like->sampler, err)
                                 : llm_sampler_new(&x->sampler, p->sampling, (int32_t)p->n_vocab,
                                                   (int32_t)n_last, err);
}

ggl_status llm_job_parts_new(llm_job_parts *out, const llm_job_params *p, const llm_job_parts *like,
                             ggl_error *err) {
    *out = (llm_job_parts){.n_ctx = p->n_ctx, .way = p->way};
    ggl_status st = make_sampler(out, p, like, err);
    if (st == GGL_OK && p->matcher)
        st = llm_matcher_copy(&out->matcher, p->matcher, err);
    if (st == GGL_OK && p->n_stop > 0)
        st = llm_stop_new(&out->stop, p->stop, p->n_stop, err);
    return st;
}

void llm_job_parts_begin(llm_job_parts *x, uint64_t seed) {
    x->way.diffusion.seed = seed;
    if (x->sampler)
        llm_sampler_reseed(x->sampler, seed);
    if (x->matcher)
        llm_matcher_reset(x->matcher);
    if (x->stop)
        llm_stop_reset(x->stop);
}

void llm_job_parts_fini(llm_job_parts *x) {
    llm_sampler_free(x->sampler);
    llm_matcher_free(x->matcher);
    llm_stop_free(x->stop);
    *x = (llm_job_parts){0};
}

int64_t llm_job_n_diffused(int64_t n_max, int64_t n_ctx, int64_t n_prompt) {
    const int64_t room = n_ctx - n_prompt;
    return n_max >= 0                                ? n_max
           : room > 0 && room < LLM_DIFFUSION_LENGTH ? room
                                                     : LLM_DIFFUSION_LENGTH;
}

void llm_job_describe(const llm_job_parts *x, llm_sequence_params *s) {
    const llm_job_way *way = &x->way;
    s->sampler = way->diffuses ? NULL : x->sampler;
    s->matcher = x->matcher;
    s->is_unsteered = way->is_unsteered;
    s->n_max =
        way->diffuses ? llm_job_n_diffused(way->n_max, x->n_ctx, (int64_t)s->n_prompt) : way->n_max;
    s->ignore_eog = way->ignore_end;
    s->shift = way->shift && !way->diffuses && way->beams.n == 0;
    s->n_keep = way->n_keep;
    s->beams = way->beams.n > 0 ? &way->beams : NULL;
    s->diffusion = way->diffuses ? &way->diffusion : NULL;
}

#include "generation.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "arrays.h"
#include "beams.h"
#include "demand.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "job_rules.h"

/* --- parameters ------------------------------------------------------------------------------- */

static llm_generate_params defaults(void) {
    const llm_sampler_params s = llm_sampler_default();
    llm_generate_params p = {.size = sizeof p, .length_penalty = 1};
#define MEMBER(member)                                         p.member =
#define BY_NAME                                                (void)
#define SAMPLER_NUMBER(kind, name, by_default, at_0, set, ...) set s.name;
#include "llm/internal/samplers.def"
#undef MEMBER
#undef BY_NAME
    return p;
}

void llm_generate_fill_default(llm_generate_params *p, size_t size) {
    const llm_generate_params d = defaults();
    ggl_params_fill(p, size, &d, sizeof d);
}

static ggl_status check(const llm_context *c, const llm_generate_params *p, ggl_error *err) {
    const bool is_text = p->n_stop > 0 || p->grammar || p->json_schema || p->tool_choice;
    if (!c->tokenizer && (!p->token || is_text))
        return ggl_pass(err, &c->why_no_tokenizer);
    if (p->n_keep < -1 || p->n_stop_shown > p->n_stop)
        return ggl_fail(err, GGL_USAGE,
                        "n_keep must be -1 or more, and n_stop_shown at most n_stop, but they are "
                        "%" PRId64 " and %zu",
                        p->n_keep, p->n_stop_shown);
    if (p->n_max < 0)
        return ggl_fail(err, GGL_USAGE, "n_max must be 0 (no limit) or more, but is %" PRId64,
                        p->n_max);
    ggl_status st = llm_need_texts("stop", p->stop, p->n_stop, err);
    if (st == GGL_OK)
        st = llm_need_texts("dry_breakers", p->dry_breakers, p->n_dry_breakers, err);
    if (st != GGL_OK)
        return st;
    if (p->n_bias > 0 && !p->bias)
        return ggl_fail(err, GGL_USAGE, "bias is NULL; n_bias is %zu", p->n_bias);
    for (size_t i = 0; i < p->n_numbers; i++)
        if (!p->number || !p->number[i].name)
            return ggl_fail(err, GGL_USAGE, "number[%zu] is NULL; n_numbers is %zu", i,
                            p->n_numbers);
    return p->tools ? llm_demand_check(c, p->tools, err) : GGL_OK;
}

/* --- the sampler ------------------------------------------------------------------------------ */

static ggl_status set_numbers(llm_sampler_params *s, const llm_generate_params *p, ggl_error *err) {
    ggl_status st = GGL_OK;
    s->seed = p->seed;
#define MEMBER(member) p->member
#define BY_NAME        0
#define SAMPLER_NUMBER(kind, name, by_default, at_0, member, ...)                                  \
    s->name = (member) != 0 ? (llm_sampler_##kind)(member) : (llm_sampler_##kind)(at_0);
#include "llm/internal/samplers.def"
    for (size_t i = 0; i < p->n_numbers && st == GGL_OK; i++)
        st = llm_sampler_set_number(s, p->number[i].name, p->number[i].value, err);
    return st;
}

const char *llm_number_name(size_t i) {
    return i < LLM_SAMPLER_N_NUMBERS ? llm_sampler_numbers[i].field : NULL;
}

static ggl_status new_sampler(generation *g, const llm_context *c, const llm_sampler_params *s,
                              ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(c->session);
    return llm_sampler_new(&g->sampler, s, (int32_t)llm_session_n_vocab(c->session),
                           (int32_t)(n_ctx < INT32_MAX ? n_ctx : INT32_MAX), err);
}

/* strings, bias: room for p->n_dry_breakers and p->n_bias elements. */
static ggl_status make_sampler(generation *g, const llm_context *c, ggl_str *strings,
                               llm_logit_bias *bias, ggl_error *err) {
    const llm_generate_params *p = &g->p;
    llm_sampler_params s = c->sampling ? *c->sampling : llm_sampler_default();
    s.tokenizer = c->tokenizer;
    if (c->sampling)
        return new_sampler(g, c, &s, err);
    ggl_status st = set_numbers(&s, p, err);
    for (size_t i = 0; i < p->n_dry_breakers; i++)
        strings[i] = (ggl_str){p->dry_breakers[i], strlen(p->dry_breakers[i])};
    if (p->dry_breakers) {
        s.dry_breakers = strings;
        s.n_dry_breakers = p->n_dry_breakers;
    }
    for (size_t i = 0; i < p->n_bias; i++)
        bias[i] = (llm_logit_bias){p->bias[i].id, p->bias[i].bias};
    s.bias = bias;
    s.n_bias = p->n_bias;
    if (st == GGL_OK && p->samplers)
        st = llm_sampler_read_names(&s, p->samplers, err);
    return st == GGL_OK ? new_sampler(g, c, &s, err) : st;
}

static ggl_status set_sampler(generation *g, const llm_context *c, ggl_error *err) {
    if (g->p.same_sampler && c->has_sampler)
        return GGL_OK;
    ggl_str *strings = ggl_calloc(g->p.n_dry_breakers, sizeof *strings);
    llm_logit_bias *bias = ggl_calloc(g->p.n_bias, sizeof *bias);
    const ggl_status st = strings && bias ? make_sampler(g, c, strings, bias, err)
                                          : ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_free(strings);
    ggl_free(bias);
    return st;
}

/* --- stops and grammars ----------------------------------------------------------------------- */

static ggl_status set_stops(generation *g, ggl_error *err) {
    if (g->p.n_stop == 0)
        return GGL_OK;
    ggl_str *strings = ggl_calloc(g->p.n_stop, sizeof *strings);
    if (!strings)
        return ggl_fail(err, GGL_NOMEM, "out of memory for stop strings");
    for (size_t i = 0; i < g->p.n_stop; i++)
        strings[i] = (ggl_str){g->p.stop[i], strlen(g->p.stop[i])};
    g->text.n_shown = g->p.n_stop_shown;
    const ggl_status st = llm_stop_new(&g->text.stop, strings, g->p.n_stop, err);
    ggl_free(strings);
    return st;
}

/* The text of the grammar or schema; NULL: none is given. */
static const char *grammar_text(const llm_generate_params *p) {
    return p->grammar ? p->grammar : p->json_schema;
}

/* True if k was made of the same text. */
static bool is_kept(const kept_grammar *k, const llm_generate_params *p) {
    const char *text = grammar_text(p);
    return k && text && k->text && strcmp(k->text, text) == 0 &&
           k->is_schema == (p->json_schema != NULL) && k->spaces == p->json_spaces;
}

static ggl_status make_grammar(kept_grammar *k, const llm_context *c, const llm_generate_params *p,
                               const int32_t *id, size_t n, ggl_error *err) {
    const llm_schema_params how = {
        .size = sizeof how, .note = p->note, .note_arg = p->user, .compact = !p->json_spaces};
    const char *text = grammar_text(p), *name = p->grammar_name;
    if (!text)
        return llm_demand_grammar(&k->grammar, c, p->tools, p->tool_choice, id, n, err);
    k->is_schema = p->json_schema != NULL;
    k->spaces = p->json_spaces;
    k->text = ggl_calloc(strlen(text) + 1, 1);
    if (!k->text)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    memcpy(k->text, text, strlen(text));
    return k->is_schema ? llm_grammar_from_schema_with(&k->grammar, text, strlen(text),
                                                       name ? name : "json_schema", &how, err)
                        : llm_grammar_from_gbnf(&k->grammar, text, strlen(text),
                                                name ? name : "grammar", err);
}

static ggl_status new_grammar(generation *g, llm_context *c, const int32_t *id, size_t n,
                              ggl_error *err) {
    kept_grammar *k = g->kept = ggl_calloc(1, sizeof *k);
    if (!k)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    ggl_status st = make_grammar(k, c, &g->p, id, n, err);
    if (st == GGL_OK && !c->vocab)
        st = llm_vocab_new(&c->vocab, c->tokenizer, err);
    return st == GGL_OK ? llm_matcher_new(&k->matcher, k->grammar, c->vocab, err) : st;
}

static ggl_status set_grammar(generation *g, llm_context *c, const int32_t *id, size_t n,
                              ggl_error *err) {
    const llm_generate_params *p = &g->p;
    if (!grammar_text(p) && !llm_demands_call(p->tool_choice))
        return GGL_OK;
    if (!is_kept(c->kept, p))
        return new_grammar(g, c, id, n, err);
    g->kept = c->kept;
    c->kept = NULL;
    llm_matcher_reset(g->kept->matcher);
    return GGL_OK;
}

/* --- diffusion -------------------------------------------------------------------------------- */

/* True if the model writes texts by diffusion. */
static bool diffuses(const llm_context *c) {
    return llm_session_sees_all(c->session) && llm_session_has_logits(c->session);
}

/* Sets g->diffusion for a prompt of n tokens, if the model writes by diffusion. */
static ggl_status set_diffusion(generation *g, const llm_context *c, const int32_t *id, size_t n,
                                ggl_error *err) {
    const llm_generate_params *p = &g->p;
    llm_diffuse_params schedule = {.size = sizeof schedule};
    llm_sampler_params s = c->sampling ? *c->sampling : llm_sampler_default();
    if (!diffuses(c) && p->diffuse)
        return ggl_fail(err, GGL_USAGE,
                        "diffuse is set, but the model does not write by diffusion");
    if (!diffuses(c) || p->prompt_logits) /* else the logits of the text are all that is wanted */
        return GGL_OK;
    ggl_status st = GGL_READ_PARAMS(llm_diffuse_params, &schedule, p->diffuse, err);
    if (st == GGL_OK && !c->sampling)
        st = set_numbers(&s, p, err);
    if (st == GGL_OK)
        st = llm_diffusion_read(&g->diffusion, c, &schedule, err);
    if (st != GGL_OK)
        return st;
    const int64_t room = llm_session_n_ctx(c->session) - (int64_t)n;
    int64_t n_new = p->n_max;
    if (n_new == 0)
        n_new = room < LLM_DIFFUSION_LENGTH && room > 0 ? room : LLM_DIFFUSION_LENGTH;
    llm_diffusion *d = &g->diffusion;
    d->prompt = id;
    d->n_prompt = (int64_t)n;
    d->n_length = n_new < INT64_MAX - d->n_prompt ? d->n_prompt + n_new : INT64_MAX;
    llm_diffusion_sample(d, &s);
    return GGL_OK;
}

/* --- beams ------------------------------------------------------------------------------------ */

llm_beams_params llm_generation_beams(const generation *g) {
    return (llm_beams_params){.n = g->p.n_beams,
                              .length_penalty = (double)g->p.length_penalty,
                              .early = g->p.early_stopping,
                              .n_max = g->p.n_max,
                              .ignore_end = g->p.ignore_end};
}

/* --- the beginning of the text ---------------------------------------------------------------- */

/* True if what is generated goes on in the text of the tokens before it. Those are id[0 .. n), unless the model reads a text and writes
 * another: then without `read`, that is the text to read, and what is written begins a text. */
static bool goes_on(const llm_context *c, const llm_generate_params *p, const int32_t *id,
                    size_t n) {
    bool has_begun = !llm_session_reads_text(c->session);
    for (size_t i = 0; i < n && p->read && c->tokenizer; i++)
        (void)llm_token_next_text(c->tokenizer, id[i], false, &has_begun);
    return has_begun;
}

/* --- what is asked for ------------------------------------------------------------------------ */

static uint32_t wishes(const llm_context *c, const llm_generate_params *p) {
    /* If the logits of the prompt are asked for, nothing is written by diffusion after it. */
    return LLM_JOB_ASKS(DIFFUSION, diffuses(c) && !p->prompt_logits) |
           LLM_JOB_ASKS(BEAMS, p->n_beams > 1) | LLM_JOB_ASKS(GRAMMAR, p->grammar) |
           LLM_JOB_ASKS(SCHEMA, p->json_schema) |
           LLM_JOB_ASKS(CALL, llm_demands_call(p->tool_choice)) |
           LLM_JOB_ASKS(BIAS, (c->sampling ? c->sampling->n_bias : p->n_bias) > 0) |
           LLM_JOB_ASKS(FORCE, p->force) | LLM_JOB_ASKS(PROMPT_LOGITS, p->prompt_logits) |
           LLM_JOB_ASKS(READ, p->read) | LLM_JOB_ASKS(SHIFT, p->shift) |
           LLM_JOB_ASKS(FULL, p->full);
}

static ggl_status check_wishes(const llm_context *c, const llm_generate_params *p, ggl_error *err) {
    if (!isfinite(p->length_penalty))
        return ggl_fail(err, GGL_USAGE, "length_penalty is %g, but must be finite",
                        (double)p->length_penalty);
    const ggl_status st =
        llm_job_check_beams(p->n_beams, llm_session_n_slots(c->session), LLM_JOB_MEMBERS, err);
    return st == GGL_OK ? llm_job_check(wishes(c, p), LLM_JOB_MEMBERS, NULL, err) : st;
}

/* --- all -------------------------------------------------------------------------------------- */

ggl_status llm_generation_new(generation **out, llm_context *c, const llm_generate_params *params,
                              const int32_t *id, size_t n, ggl_error *err) {
    generation *g = *out = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    g->p = defaults();
    g->text.found = -1;
    ggl_status st = GGL_READ_PARAMS(llm_generate_params, &g->p, params, err);
    if (st == GGL_OK)
        st = check_wishes(c, &g->p, err);
    if (st == GGL_OK)
        st = check(c, &g->p, err);
    if (st == GGL_OK)
        st = llm_need_array("id", id, n, err);
    if (st == GGL_OK)
        st = set_stops(g, err);
    g->has_begun = st == GGL_OK && goes_on(c, &g->p, id, n);
    if (st == GGL_OK)
        st = set_grammar(g, c, id, n, err);
    if (st == GGL_OK)
        st = set_sampler(g, c, err);
    return st == GGL_OK ? set_diffusion(g, c, id, n, err) : st;
}

void llm_kept_grammar_free(kept_grammar *k) {
    if (!k)
        return;
    llm_matcher_free(k->matcher);
    llm_grammar_free(k->grammar);
    ggl_free(k->text);
    ggl_free(k);
}

void llm_generation_free(llm_context *c, generation *g) {
    if (!g)
        return;
    kept_grammar *drop = g->kept;
    if (drop && drop->matcher && drop->text) {
        drop = c->kept;
        c->kept = g->kept;
    }
    llm_kept_grammar_free(drop);
    llm_sampler_free(g->sampler);
    llm_stopped_text_fini(&g->text);
    llm_diffuser_free(g->diffuser);
    llm_beams_free(g->beams);
    ggl_free(g);
}

bool llm_generation_is_incomplete(const generation *g) {
    return g && g->kept && g->kept->matcher && !llm_matcher_is_complete(g->kept->matcher);
}

ggl_status llm_check_params(llm_context *c, const llm_generate_params *params, ggl_error *err) {
    generation *g;
    const ggl_status st = llm_generation_new(&g, c, params, NULL, 0, err);
    llm_generation_free(c, g);
    return st;
}

ggl_status llm_context_make_generator(llm_generator **out, llm_context *c, llm_session *session,
                                      ggl_error *err) {
    const llm_guesser *const *guesser = llm_guessing_guessers(c->guessing);
    const llm_generator_params gp = {.size = sizeof gp,
                                     .session = session,
                                     .sampler = c->sampler,
                                     .tokenizer = c->tokenizer,
                                     .guesser = guesser ? guesser[0] : NULL,
                                     .n_guess_max = c->n_guess_max};
    return llm_generator_new(out, &gp, err);
}

void llm_context_end(llm_context *c) {
    generation *g = c->generation;
    if (!g)
        return;
    const ggl_status st = llm_generator_constrain(c->generator, NULL, -1, NULL);
    (void)st; /* without a matcher it cannot fail */
    llm_generator_set_run(c->generator, false, 0, NULL, NULL);
    llm_generation_free(c, g);
    c->generation = NULL;
    c->is_ending = false;
}

/* --- tokens ---------------------------------------------------------------------------------- */

static ggl_status put_token(generation *g, const llm_context *c, int32_t id, ggl_error *err) {
    const bool is_special = llm_token_text(c->tokenizer, id, false).n == 0;
    const ggl_str text = llm_token_next_text(c->tokenizer, id, is_special, &g->has_begun);
    const bool shown = !is_special || (g->p.shows ? g->p.shows(g->p.user, id) : g->p.show_special);
    return llm_stopped_text_put(&g->text, text, !shown, err);
}

ggl_status llm_generation_take(generation *g, const llm_context *c, int32_t id, const float *logits,
                               ggl_error *err) {
    if (id < 0 || (!g->p.ignore_end && c->tokenizer && llm_tokenizer_is_eog(c->tokenizer, id))) {
        g->finish = LLM_FINISH_END;
        return GGL_OK;
    }
    g->n_generated++;
    if (g->p.token && !g->p.token(g->p.user, id, logits))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    const ggl_status st = c->tokenizer ? put_token(g, c, id, err) : GGL_OK;
    if (g->text.found >= 0)
        g->finish = LLM_FINISH_STOP;
    else if (g->p.n_max > 0 && g->n_generated == g->p.n_max)
        g->finish = LLM_FINISH_LENGTH;
    return st;
}

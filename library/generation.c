#include "generation.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "arrays.h"
#include "demand.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/sched.h"
#include "job_rules.h"

/* --- parameters ------------------------------------------------------------------------------- */

/* A number that counts as 0 in a member in which 0 stands for another one: the least that is none, or a mark. */
#define LEAST_FLOAT    FLT_MIN
#define LEAST_INT      LLM_NO_TOKENS
#define LEAST_TOP_K    0
#define LEAST_MIROSTAT 0

static llm_generate_params defaults(const llm_file_sampling *f) {
    const llm_sampler_params s = f->p;
    llm_generate_params p = {.size = sizeof p, .length_penalty = 1};
#define MEMBER(member) p.member =
#define BY_NAME        (void)
#define SAMPLER_NUMBER(kind, name, by_default, at_0, set, ...)                                     \
    set(s.name != 0 || (at_0) == 0 ? s.name : LEAST_##kind);
#include "llm/internal/samplers.def"
#undef MEMBER
#undef BY_NAME
    p.samplers = f->order[0] ? f->order : NULL;
    return p;
}

void llm_generate_fill_default_of(const llm_context *c, llm_generate_params *p, size_t size) {
    llm_file_sampling none;
    llm_file_sampling_read(&none, NULL, NULL, NULL);
    const llm_generate_params d = defaults(c ? &c->file_sampling : &none);
    ggl_params_fill(p, size, &d, sizeof d);
}

void llm_generate_fill_default(llm_generate_params *p, size_t size) {
    llm_generate_fill_default_of(NULL, p, size);
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
    llm_json *doc;
    st = llm_demand_read(&doc, p->tools, err);
    llm_json_free(doc);
    return st;
}

/* True if the model writes texts by diffusion. */
static bool diffuses(const llm_context *c) {
    return llm_session_sees_all(c->session) && llm_session_has_logits(c->session);
}

/* --- the sampler ------------------------------------------------------------------------------ */

static ggl_status set_numbers(llm_sampler_params *s, const llm_generate_params *p, ggl_error *err) {
    ggl_status st = GGL_OK;
    s->seed = p->seed;
#define MEMBER(member)                                            p->member
#define BY_NAME                                                   0
#define OR_FLOAT(x, at_0)                                         ((x) != 0 ? (float)(x) : (float)(at_0))
#define OR_INT(x, at_0)                                           ((x) == LLM_NO_TOKENS ? 0 : (x) != 0 ? (int32_t)(x) : (int32_t)(at_0))
#define OR_TOP_K                                                  OR_INT
#define OR_MIROSTAT                                               OR_INT
#define SAMPLER_NUMBER(kind, name, by_default, at_0, member, ...) s->name = OR_##kind(member, at_0);
#include "llm/internal/samplers.def"
    for (size_t i = 0; i < p->n_numbers && st == GGL_OK; i++)
        st = llm_sampler_set_number(s, p->number[i].name, p->number[i].value, err);
    return st;
}

const char *llm_number_name(size_t i) {
    return i < LLM_SAMPLER_N_NUMBERS ? llm_sampler_numbers[i].field : NULL;
}

/* What llm_job_parts_new needs, made of llm_generate_params. Freed when the parts are made. */
typedef struct making {
    llm_job_params job;
    llm_sampler_params sampling;
    ggl_str *breakers, *stop; /* [p->n_dry_breakers], [p->n_stop] */
    llm_logit_bias *bias;     /* [p->n_bias] */
    llm_matcher *demanded;    /* of a demanded call; NULL: none */
} making;

static ggl_str *strings_of(const char *const *text, size_t n) {
    ggl_str *s = ggl_calloc(n, sizeof *s);
    for (size_t i = 0; i < n && s; i++)
        s[i] = (ggl_str){text[i], strlen(text[i])};
    return s;
}

static void making_fini(making *m) {
    ggl_free(m->breakers);
    ggl_free(m->stop);
    ggl_free(m->bias);
    llm_matcher_free(m->demanded);
}

static ggl_status set_sampling(making *m, const llm_context *c, const llm_generate_params *p,
                               ggl_error *err) {
    llm_sampler_params *s = &m->sampling;
    const bool has_one = p->same_sampler && c->sampler;
    *s = c->sampling ? *c->sampling : llm_sampler_default();
    s->tokenizer = c->tokenizer;
    m->job.sampling = has_one ? NULL : s;
    if (c->sampling || (has_one && !diffuses(c)))
        return GGL_OK;
    const ggl_status st = set_numbers(s, p, err);
    if (p->dry_breakers) {
        s->dry_breakers = m->breakers;
        s->n_dry_breakers = p->n_dry_breakers;
    }
    for (size_t i = 0; i < p->n_bias; i++)
        m->bias[i] = (llm_logit_bias){p->bias[i].id, p->bias[i].bias};
    s->bias = m->bias;
    s->n_bias = p->n_bias;
    return st == GGL_OK && p->samplers ? llm_sampler_read_names(s, p->samplers, err) : st;
}

/* --- grammars --------------------------------------------------------------------------------- */

/* The text of the grammar or schema; NULL: none is given. */
static const char *grammar_text(const llm_generate_params *p) {
    return p->grammar ? p->grammar : p->json_schema;
}

/* Finds the reasoning that may come before it. */
static ggl_status find_thoughts(kept_grammar *wanted, const llm_context *c,
                                const llm_generate_params *p, ggl_error *err) {
    llm_thought thought[LLM_THOUGHTS] = {0};
    if (!c->answers)
        return GGL_OK;
    const ggl_status st = llm_job_thoughts(thought, &wanted->n_thoughts, c->answers, c->tokenizer,
                                           llm_text_or_empty(p->grammar), err);
    memcpy(wanted->thought, thought, wanted->n_thoughts * sizeof *thought);
    return st;
}

/* True if k was made of the same text. */
static bool is_kept(const kept_grammar *k, const kept_grammar *wanted, const char *text) {
    return k && strcmp(k->text, text) == 0 && k->is_schema == wanted->is_schema &&
           k->spaces == wanted->spaces && k->n_thoughts == wanted->n_thoughts &&
           memcmp(k->thought, wanted->thought, sizeof k->thought) == 0;
}

/* Makes a matcher of a grammar, which it frees. */
static ggl_status new_matcher(llm_matcher **out, llm_context *c, llm_grammar *grammar,
                              ggl_error *err) {
    ggl_status st = c->vocab ? GGL_OK : llm_vocab_new(&c->vocab, c->tokenizer, err);
    if (st == GGL_OK)
        st = llm_matcher_new(out, grammar, c->vocab, err);
    llm_grammar_free(grammar);
    return st;
}

/* Makes what is kept of p's grammar or schema; *k has all but the text and the matcher. */
static ggl_status make_kept(kept_grammar *k, llm_context *c, const llm_generate_params *p,
                            ggl_error *err) {
    const char *text = grammar_text(p), *name = p->grammar_name;
    const size_t n = strlen(text);
    const llm_job_form form = {.text = text,
                               .n = n,
                               .name = name           ? name
                                       : k->is_schema ? "json_schema"
                                                      : "grammar",
                               .is_schema = k->is_schema,
                               .spaces = k->spaces,
                               .note = p->note,
                               .user = p->user,
                               .thought = k->thought,
                               .n_thoughts = k->n_thoughts};
    llm_grammar *grammar;
    k->text = ggl_calloc(n + 1, 1);
    if (!k->text)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    memcpy(k->text, text, n);
    const ggl_status st = llm_job_grammar_new(&grammar, &form, err);
    return st == GGL_OK ? new_matcher(&k->matcher, c, grammar, err) : st;
}

static ggl_status keep_grammar(llm_context *c, const llm_generate_params *p,
                               const kept_grammar *wanted, ggl_error *err) {
    kept_grammar *k = ggl_calloc(1, sizeof *k);
    if (k)
        *k = *wanted;
    const ggl_status st =
        k ? make_kept(k, c, p, err) : ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    if (st != GGL_OK) {
        llm_kept_grammar_free(k);
        return st;
    }
    llm_kept_grammar_free(c->kept);
    c->kept = k;
    return GGL_OK;
}

/* Finds what the text after the prompt must fit. */
static ggl_status set_matcher(making *m, llm_context *c, const llm_generate_params *p,
                              const int32_t *id, size_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    llm_grammar *grammar;
    if (llm_demands_call(p->tool_choice)) {
        st = llm_demand_grammar(&grammar, c, p->tools, p->tool_choice, id, n, err);
        if (st == GGL_OK)
            st = new_matcher(&m->demanded, c, grammar, err);
        m->job.matcher = m->demanded;
    } else if (grammar_text(p)) {
        kept_grammar wanted = {.is_schema = p->json_schema != NULL, .spaces = p->json_spaces};
        st = find_thoughts(&wanted, c, p, err);
        if (st == GGL_OK && !is_kept(c->kept, &wanted, grammar_text(p)))
            st = keep_grammar(c, p, &wanted, err);
        m->job.matcher = st == GGL_OK ? c->kept->matcher : NULL;
    }
    return st;
}

/* --- diffusion -------------------------------------------------------------------------------- */

static bool tell_step(void *ctx, int64_t n_done, const int32_t *id) {
    const generation *g = ctx;
    const llm_diffusion *d = &g->diffusion;
    return g->schedule.step(g->schedule.user, (int32_t)n_done, (int32_t)d->n_steps,
                            id + d->n_prompt, (size_t)(d->n_length - d->n_prompt), d->mask);
}

/* Sets how a model of the diffusion kind unmasks a text. */
static ggl_status read_schedule(llm_diffusion *d, const llm_context *c, const llm_diffuse_params *p,
                                ggl_error *err) {
    *d = llm_diffusion_default();
    d->n_steps = p->n_steps;
    d->n_block = p->n_block;
    d->eps = p->eps == 0 ? d->eps : p->eps;
    d->order_temp = p->order_temp;
    d->cfg_scale = p->cfg_scale;
    const ggl_status st = p->order ? llm_diffusion_order_find(p->order, &d->order, err) : GGL_OK;
    return st == GGL_OK ? llm_diffusion_of(d, c->model, err) : st;
}

/* Sets g->diffusion for a prompt of n tokens, if the model writes by diffusion. */
static ggl_status set_diffusion(generation *g, const llm_context *c, const llm_sampler_params *s,
                                const int32_t *id, size_t n, ggl_error *err) {
    const llm_generate_params *p = &g->p;
    g->schedule = (llm_diffuse_params){.size = sizeof g->schedule};
    if (!diffuses(c) && p->diffuse)
        return ggl_fail(err, GGL_USAGE,
                        "diffuse is set, but the model does not write by diffusion");
    if (!diffuses(c) || p->prompt_logits) /* else the logits of the text are all that is wanted */
        return GGL_OK;
    ggl_status st = GGL_READ_PARAMS(llm_diffuse_params, &g->schedule, p->diffuse, err);
    if (st == GGL_OK)
        st = read_schedule(&g->diffusion, c, &g->schedule, err);
    if (st != GGL_OK)
        return st;
    const int64_t n_new =
        llm_job_n_diffused(p->n_max > 0 ? p->n_max : -1, llm_session_n_ctx(c->session), (int64_t)n);
    llm_diffusion *d = &g->diffusion;
    d->prompt = id;
    d->n_prompt = (int64_t)n;
    d->n_length = n_new < INT64_MAX - d->n_prompt ? d->n_prompt + n_new : INT64_MAX;
    d->n_steps = d->n_steps == 0 ? n_new : d->n_steps;
    d->step = g->schedule.step ? tell_step : NULL;
    d->ctx = g;
    llm_diffusion_sample(d, s);
    return GGL_OK;
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

static llm_job_way way_of(const generation *g) {
    const llm_generate_params *p = &g->p;
    return (llm_job_way){.n_max = p->n_max > 0 ? p->n_max : -1,
                         .ignore_end = p->ignore_end,
                         .shift = p->shift,
                         .n_keep = p->n_keep,
                         .beams = {.n = p->n_beams > 1 ? p->n_beams : 0,
                                   .length_penalty = (double)p->length_penalty,
                                   .early = p->early_stopping,
                                   .n_max = p->n_max,
                                   .ignore_end = p->ignore_end},
                         .diffuses = g->diffusion.n_length > 0,
                         .diffusion = g->diffusion};
}

static ggl_status make_parts(generation *g, llm_context *c, const int32_t *id, size_t n,
                             ggl_error *err) {
    const llm_generate_params *p = &g->p;
    making m = {.breakers = strings_of(p->dry_breakers, p->n_dry_breakers),
                .stop = strings_of(p->stop, p->n_stop),
                .bias = ggl_calloc(p->n_bias, sizeof *m.bias),
                .job = {.n_vocab = llm_session_n_vocab(c->session),
                        .n_ctx = llm_session_n_ctx(c->session),
                        .n_stop = p->n_stop}};
    ggl_status st =
        m.breakers && m.stop && m.bias ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = set_matcher(&m, c, p, id, n, err);
    if (st == GGL_OK)
        st = set_sampling(&m, c, p, err);
    if (st == GGL_OK)
        st = set_diffusion(g, c, &m.sampling, id, n, err);
    m.job.stop = m.stop;
    m.job.way = way_of(g);
    if (st == GGL_OK)
        st = llm_job_parts_new(&g->parts, &m.job, NULL, err);
    making_fini(&m);
    llm_stopped_text_begin(&g->text, g->parts.stop);
    g->text.n_shown = p->n_stop_shown;
    return st;
}

ggl_status llm_generation_new(generation **out, llm_context *c, const llm_generate_params *params,
                              const int32_t *id, size_t n, ggl_error *err) {
    generation *g = *out = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    g->p = defaults(&c->file_sampling);
    g->text.found = -1;
    ggl_status st = GGL_READ_PARAMS(llm_generate_params, &g->p, params, err);
    if (st == GGL_OK)
        st = check_wishes(c, &g->p, err);
    if (st == GGL_OK)
        st = check(c, &g->p, err);
    if (st == GGL_OK)
        st = llm_need_array("id", id, n, err);
    if (st != GGL_OK)
        return st;
    g->has_begun = goes_on(c, &g->p, id, n);
    return make_parts(g, c, id, n, err);
}

void llm_kept_grammar_free(kept_grammar *k) {
    if (!k)
        return;
    llm_matcher_free(k->matcher);
    ggl_free(k->text);
    ggl_free(k);
}

void llm_generation_free(generation *g) {
    if (!g)
        return;
    llm_job_parts_fini(&g->parts);
    llm_stopped_text_fini(&g->text);
    llm_tokens_fini(&g->found);
    ggl_free(g);
}

llm_finish llm_generation_finish(llm_end why) {
    static const llm_finish finish_of[] = {[LLM_END_EOG] = LLM_FINISH_END,
                                           [LLM_END_MAX] = LLM_FINISH_LENGTH,
                                           [LLM_END_CONTEXT] = LLM_FINISH_CONTEXT,
                                           [LLM_END_STOPPED] = LLM_FINISH_CANCELLED,
                                           [LLM_END_CANCELLED] = LLM_FINISH_CANCELLED,
                                           [LLM_END_DEADLINE] = LLM_FINISH_CANCELLED,
                                           [LLM_END_FAILED] = LLM_FINISH_ERROR};
    return finish_of[why];
}

bool llm_generation_is_incomplete(const generation *g) {
    return g && g->parts.matcher && !llm_matcher_is_complete(g->parts.matcher);
}

ggl_status llm_check_params(llm_context *c, const llm_generate_params *params, ggl_error *err) {
    generation *g;
    const ggl_status st = llm_generation_new(&g, c, params, NULL, 0, err);
    llm_generation_free(g);
    return st;
}

/* Bytes of one snapshot of a model with states, that at the end of the last prompt, with its header. */
static size_t snapshot_bytes(llm_session *s) {
    enum { HEADER = 4096 };
    const int64_t n_ctx = llm_session_n_ctx(s), n_words = n_ctx + llm_session_n_tasks(s);
    return (size_t)ggl_sched_slot_size(llm_session_sched(s), n_ctx, true) + 4 * (size_t)n_words +
           HEADER;
}

ggl_status llm_context_make_engine(llm_engine **out, const llm_context *c, llm_session *session,
                                   ggl_error *err) {
    const int64_t n_slots = llm_session_n_slots(session);
    const llm_engine_params p = {.size = sizeof p,
                                 .session = session,
                                 .tokenizer = c->tokenizer,
                                 .n_parallel = (int)n_slots,
                                 .n_snapshot_bytes = n_slots > 1 ? 0 : snapshot_bytes(session),
                                 .guesser = llm_guessing_guessers(c->guessing),
                                 .n_guessers = 1,
                                 .n_guess_max = c->n_guess_max,
                                 .whole_prompts = true};
    return llm_engine_new(out, &p, err);
}

ggl_status llm_context_erase(llm_context *c, ggl_error *err) {
    ggl_status st = GGL_OK;
    int64_t n;
    for (int k = 0; k < (int)llm_session_n_slots(c->session); k++) {
        const ggl_status erased = llm_engine_erase_slot(
            c->engine, k, &n, st == GGL_OK ? err : NULL); /* the first failure counts */
        st = st == GGL_OK ? erased : st;
    }
    return st;
}

void llm_context_end(llm_context *c) {
    generation *g = c->generation;
    if (c->live)
        c->drop_live(c);
    if (!g)
        return;
    if (c->engine)
        llm_engine_cancel(c->engine, g->id);
    llm_generation_free(g);
    c->generation = NULL;
    c->is_ending = false;
}

/* --- tokens ---------------------------------------------------------------------------------- */

static ggl_status put_token(generation *g, const llm_context *c, int32_t id, ggl_error *err) {
    const bool is_special = llm_token_text(c->tokenizer, id, false).n == 0;
    const ggl_str text = llm_token_next_text(c->tokenizer, id, is_special, &g->has_begun);
    const bool shown = !is_special || (g->p.shows ? g->p.shows(g->p.user, id)
                                       : c->asked ? llm_calls_is_text(c->asked->tokens, text)
                                                  : g->p.show_special);
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

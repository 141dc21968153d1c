#include "generation.h"

#include <inttypes.h>
#include <string.h>

#include "demand.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"

/* --- parameters ------------------------------------------------------------------------------- */

static llm_generate_params defaults(void) {
    const llm_sampler_params s = llm_sampler_default();
    return (llm_generate_params){.size = sizeof(llm_generate_params),
                                 .temp = s.temp,
                                 .top_k = s.top_k,
                                 .top_p = s.top_p,
                                 .min_p = s.min_p,
                                 .repeat_penalty = s.repeat_penalty};
}

void llm_generate_fill_default(llm_generate_params *p, size_t size) {
    const llm_generate_params d = defaults();
    ggl_params_fill(p, size, &d, sizeof d);
}

static ggl_status check(const llm_context *c, const llm_generate_params *p, ggl_error *err) {
    if (!c->tokenizer)
        return ggl_fail(err, c->why_no_tokenizer.status, "%s", c->why_no_tokenizer.msg);
    if (p->n_max < 0)
        return ggl_fail(err, GGL_USAGE, "n_max must be 0 or more, but is %" PRId64, p->n_max);
    for (size_t i = 0; i < p->n_stop; i++)
        if (!p->stop || !p->stop[i])
            return ggl_fail(err, GGL_USAGE, "stop[%zu] is NULL; n_stop is %zu", i, p->n_stop);
    for (size_t i = 0; i < p->n_dry_breakers; i++)
        if (!p->dry_breakers || !p->dry_breakers[i])
            return ggl_fail(err, GGL_USAGE, "dry_breakers[%zu] is NULL; n_dry_breakers is %zu", i,
                            p->n_dry_breakers);
    if (p->n_bias > 0 && !p->bias)
        return ggl_fail(err, GGL_USAGE, "bias is NULL; n_bias is %zu", p->n_bias);
    return GGL_OK;
}

/* --- the sampler ------------------------------------------------------------------------------ */

/* Sets *to to a member of the caller's, unless that is 0, which stands for the default. */
#define UNLESS_0(to, from)                                                                         \
    do {                                                                                           \
        if ((from) != 0)                                                                           \
            (to) = (from);                                                                         \
    } while (0)

static void set_numbers(llm_sampler_params *s, const llm_generate_params *p) {
    s->temp = p->temp;
    s->top_k = p->top_k;
    s->top_p = p->top_p == 0 ? 1 : p->top_p;
    s->min_p = p->min_p;
    s->repeat_penalty = p->repeat_penalty == 0 ? 1 : p->repeat_penalty;
    s->seed = p->seed;
    UNLESS_0(s->repeat_last_n, p->repeat_last_n);
    s->frequency_penalty = p->frequency_penalty;
    s->presence_penalty = p->presence_penalty;
    s->dynatemp_range = p->dynatemp_range;
    UNLESS_0(s->dynatemp_exponent, p->dynatemp_exponent);
    s->typ_p = p->typical_p == 0 ? 1 : p->typical_p;
    s->top_n_sigma = p->top_n_sigma;
    s->xtc_probability = p->xtc_probability;
    UNLESS_0(s->xtc_threshold, p->xtc_threshold);
    s->dry_multiplier = p->dry_multiplier;
    UNLESS_0(s->dry_base, p->dry_base);
    UNLESS_0(s->dry_allowed_length, p->dry_allowed_length);
    UNLESS_0(s->dry_last_n, p->dry_last_n);
    s->mirostat = p->mirostat;
    UNLESS_0(s->mirostat_tau, p->mirostat_tau);
    UNLESS_0(s->mirostat_eta, p->mirostat_eta);
}

/* strings, bias: room for p->n_dry_breakers and p->n_bias elements. */
static ggl_status make_sampler(generation *g, const llm_context *c, ggl_str *strings,
                               llm_logit_bias *bias, ggl_error *err) {
    const llm_generate_params *p = &g->p;
    llm_sampler_params s = llm_sampler_default();
    set_numbers(&s, p);
    s.tokenizer = c->tokenizer;
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
    const ggl_status st = p->samplers ? llm_sampler_read_names(&s, p->samplers, err) : GGL_OK;
    return st == GGL_OK ? llm_sampler_new(&g->sampler, &s, (int32_t)llm_session_n_vocab(c->session),
                                          (int32_t)llm_session_n_ctx(c->session), err)
                        : st;
}

static ggl_status set_sampler(generation *g, const llm_context *c, ggl_error *err) {
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
    const ggl_status st = llm_stop_new(&g->stop, strings, g->p.n_stop, err);
    ggl_free(strings);
    return st;
}

static ggl_status make_grammar(generation *g, const llm_context *c, const int32_t *id, size_t n,
                               ggl_error *err) {
    const llm_generate_params *p = &g->p;
    const llm_schema_params compact = {.size = sizeof compact, .compact = !p->json_spaces};
    const bool calls = llm_demands_call(p->tool_choice);
    if ((p->grammar != NULL) + (p->json_schema != NULL) + calls > 1)
        return ggl_fail(err, GGL_USAGE, "%s cannot be used together",
                        !calls ? "grammar and json_schema"
                               : "a tool_choice that demands a call, and grammar or json_schema,");
    if (p->grammar)
        return llm_grammar_from_gbnf(&g->grammar, p->grammar, strlen(p->grammar), "grammar", err);
    if (p->json_schema)
        return llm_grammar_from_schema_with(&g->grammar, p->json_schema, strlen(p->json_schema),
                                            "json_schema", &compact, err);
    return calls ? llm_demand_grammar(&g->grammar, c, p->tools, p->tool_choice, id, n, err)
                 : GGL_OK;
}

static ggl_status set_grammar(generation *g, llm_context *c, const int32_t *id, size_t n,
                              ggl_error *err) {
    ggl_status st = make_grammar(g, c, id, n, err);
    if (st != GGL_OK || !g->grammar)
        return st;
    if (!c->vocab)
        st = llm_vocab_new(&c->vocab, c->tokenizer, err);
    return st == GGL_OK ? llm_matcher_new(&g->matcher, g->grammar, c->vocab, err) : st;
}

ggl_status llm_generation_new(generation **out, llm_context *c, const llm_generate_params *params,
                              const int32_t *id, size_t n, ggl_error *err) {
    generation *g = *out = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    g->p = defaults();
    g->found = -1;
    ggl_status st = GGL_READ_PARAMS(llm_generate_params, &g->p, params, err);
    if (st == GGL_OK)
        st = check(c, &g->p, err);
    if (st == GGL_OK)
        st = set_stops(g, err);
    if (st == GGL_OK)
        st = set_grammar(g, c, id, n, err);
    return st == GGL_OK ? set_sampler(g, c, err) : st;
}

void llm_generation_free(generation *g) {
    if (!g)
        return;
    llm_sampler_free(g->sampler);
    llm_stop_free(g->stop);
    llm_matcher_free(g->matcher);
    llm_grammar_free(g->grammar);
    ggl_free(g->waiting);
    ggl_free(g);
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
    llm_generation_free(g);
    c->generation = NULL;
}

/* --- text ------------------------------------------------------------------------------------- */

/* The length of the longest beginning of s[0 .. n) that does not end within a character of UTF-8. */
static size_t whole_characters(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char b = (unsigned char)s[n - back];
        if ((b & 0xc0) == 0x80)
            continue;
        const size_t need = b >= 0xf0 && b < 0xf8 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 1;
        return b < 0xf8 && need > back ? n - back : n;
    }
    return n;
}

static ggl_status put(generation *g, ggl_str text, ggl_error *err) {
    if (text.n == 0)
        return GGL_OK;
    if (!ggl_grow(&g->waiting, &g->cap, g->n_waiting + text.n, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the text");
    memcpy(g->waiting + g->n_waiting, text.s, text.n);
    g->n_waiting += text.n;
    g->n_ready += g->stop ? llm_stop_read(g->stop, text.s, text.n) : text.n;
    return GGL_OK;
}

ggl_status llm_generation_take(generation *g, const llm_context *c, int32_t id, ggl_error *err) {
    if (id < 0 || (!g->p.ignore_end && llm_tokenizer_is_eog(c->tokenizer, id))) {
        g->finish = LLM_FINISH_END;
        return GGL_OK;
    }
    g->n_generated++;
    const ggl_status st = put(g, llm_token_text(c->tokenizer, id, g->p.show_special), err);
    g->found = g->stop ? llm_stop_found(g->stop) : -1;
    if (g->found >= 0)
        g->finish = LLM_FINISH_STOP;
    else if (g->p.n_max > 0 && g->n_generated == g->p.n_max)
        g->finish = LLM_FINISH_LENGTH;
    return st;
}

bool llm_generation_has_text(const generation *g) {
    return g->n_ready > g->n_given &&
           whole_characters(g->waiting + g->n_given, g->n_ready - g->n_given) > 0;
}

void llm_generation_release(generation *g) {
    if (g->finish != LLM_FINISH_STOP)
        g->n_ready = g->n_waiting;
}

const char *llm_generation_give(generation *g, size_t *n) {
    if (g->n_given > 0)
        memmove(g->waiting, g->waiting + g->n_given, g->n_waiting - g->n_given);
    g->n_waiting -= g->n_given;
    g->n_ready -= g->n_given;
    g->n_given = g->n_ready > 0 ? whole_characters(g->waiting, g->n_ready) : 0;
    if (g->n_given == 0 && g->finish != LLM_FINISH_NONE)
        g->n_given = g->n_ready; /* the text ends within a character */
    *n = g->n_given;
    return g->n_given ? g->waiting : NULL;
}

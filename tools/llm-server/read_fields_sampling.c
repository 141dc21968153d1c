/* Readers of the fields that several APIs share. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api_scales.h"
#include "fields_sampling.h"

enum { MOST_TOP = 128 }; /* log-probabilities of other tokens */

static ggl_status wrong(ggl_error *err, const char *name, const char *wanted) {
    return ggl_fail(err, GGL_USAGE, "\"%s\" must be %s", name, wanted);
}

ggl_status ask_keep(ask *a, llm_json_out *out, ggl_str *s, ggl_error *err) {
    const size_t n = out->n;
    const char *copy = out->failed ? NULL : ggl_arena_strndup(&a->arena, n ? out->s : "", n);
    ggl_free(out->s);
    *out = (llm_json_out){0};
    *s = (ggl_str){copy, n};
    return copy ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

/* --- sampling ----------------------------------------------------------------------------------- */

static bool is_int(const json_value *v, double least) {
    return v->kind == JSON_NUMBER && v->whole && v->number >= least && v->number <= INT32_MAX;
}

/* -1, too, is "all" for some clients. */
ggl_status field_top_k(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    if (!is_int(v, -1))
        return wrong(err, "top_k", "an integer, at least 0 (all)");
    a->sampling.top_k = v->number < 0 ? 0 : (int32_t)v->number;
    return GGL_OK;
}

ggl_status field_mirostat(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    if (!is_int(v, 0) || v->number > 2)
        return wrong(err, "mirostat", "0 (off) or 2");
    if (v->number == 1)
        return ggl_fail(err, GGL_UNSUPPORTED, "\"mirostat\" 1 is not supported; use 2");
    a->sampling.mirostat = (int32_t)v->number;
    return GGL_OK;
}

ggl_status field_dry_breakers(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_ARRAY)
        return wrong(err, "dry_sequence_breakers", "a list of strings");
    ggl_str *s = ggl_arena_alloc(&a->arena, (size_t)v->n + 1, sizeof *s);
    if (!s)
        return ggl_fail(err, GGL_NOMEM, "out of memory for \"dry_sequence_breakers\"");
    for (size_t i = 0; i < v->n; i++) {
        if (v->item[i].kind != JSON_STRING || v->item[i].n == 0)
            return wrong(err, "dry_sequence_breakers", "a list of strings, none of them empty");
        s[i] = json_str(&v->item[i]);
    }
    a->sampling.dry_breakers = s;
    a->sampling.n_dry_breakers = v->n;
    return GGL_OK;
}

/* A list of names is joined as llm_sampler_read_names has it. */
static ggl_status join_names(const json_value *v, char *text, size_t size, ggl_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        const json_value *name = &v->item[i];
        if (name->kind != JSON_STRING || memchr(name->s, 0, name->n) || n + name->n + 2 > size)
            return wrong(err, "samplers", "a list of stages such as \"top_k\", each at most once");
        if (i > 0)
            text[n++] = ';';
        memcpy(text + n, name->s, name->n);
        n += name->n;
    }
    text[n] = '\0';
    return GGL_OK;
}

/* Names in a list, or letters in a string. */
ggl_status field_samplers(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    char text[512];
    (void)facts;
    if (v->kind == JSON_ARRAY) {
        ggl_status st = join_names(v, text, sizeof text, err);
        if (st == GGL_OK && (st = llm_sampler_read_names(&a->sampling, text, err)) != GGL_OK)
            (void)ggl_within(err, st, "samplers");
        return st;
    }
    if (v->kind != JSON_STRING || v->n >= sizeof text || memchr(v->s, 0, v->n))
        return wrong(err, "samplers", "a list of stages, or a string of their letters");
    memcpy(text, v->s, v->n);
    text[v->n] = '\0';
    const ggl_status st = llm_sampler_read_letters(&a->sampling, text, err);
    return st == GGL_OK ? st : ggl_within(err, st, "samplers");
}

/* --- diffusion ---------------------------------------------------------------------------------- */

static ggl_status check_diffuses(const char *name, const server_facts *facts, ggl_error *err) {
    return facts->diffuses ? GGL_OK
                           : ggl_fail(err, GGL_USAGE,
                                      "\"%s\" is for models that write by diffusion, and this one "
                                      "does not",
                                      name);
}

static ggl_status read_diffusion(const char *name, const json_value *v, double low, double high,
                                 bool whole, double *out, const server_facts *facts,
                                 ggl_error *err) {
    const ggl_status st = check_diffuses(name, facts, err);
    if (st != GGL_OK)
        return st;
    if (v->kind != JSON_NUMBER || !(v->number >= low && v->number <= high) || (whole && !v->whole))
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be %s from %g to %g", name,
                        whole ? "an integer" : "a number", low, high);
    *out = v->number;
    return GGL_OK;
}

#define DIFFUSION_FIELD(fn, name, member, type, low, high, whole)                                  \
    ggl_status fn(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {        \
        double x = 0;                                                                              \
        const ggl_status st = read_diffusion(name, v, low, high, whole, &x, facts, err);           \
        if (st == GGL_OK)                                                                          \
            a->diffusion.member = (type)x;                                                         \
        return st;                                                                                 \
    }
/* The longest answer has fewer tokens; each step computes all of a text, even if it settles none of them. */
DIFFUSION_FIELD(field_diffusion_steps, "diffusion_steps", n_steps, int64_t, 0, (double)facts->n_ctx,
                true)
DIFFUSION_FIELD(field_diffusion_block, "diffusion_block_length", n_block, int64_t, 0, 1 << 20, true)
DIFFUSION_FIELD(field_diffusion_eps, "diffusion_eps", eps, double, 1e-9, 0.999999, false)
DIFFUSION_FIELD(field_diffusion_order_temp, "diffusion_alg_temp", order_temp, double, 0, 100, false)
DIFFUSION_FIELD(field_diffusion_cfg, "diffusion_cfg_scale", cfg_scale, double, 0, 100, false)

/* A name, or its number. */
ggl_status field_diffusion_order(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err) {
    char name[16];
    ggl_status st = check_diffuses("diffusion_algorithm", facts, err);
    if (st != GGL_OK)
        return st;
    if (is_int(v, 0) && v->number < LLM_DIFFUSE_N_ORDERS) {
        a->diffusion.order = (llm_diffusion_order)v->number;
        return GGL_OK;
    }
    const bool fits = v->kind == JSON_STRING && v->n < sizeof name && !memchr(v->s, 0, v->n);
    snprintf(name, sizeof name, "%.*s", fits ? (int)v->n : 0, fits ? v->s : "");
    return llm_diffusion_order_find(name, &a->diffusion.order, NULL) == GGL_OK
               ? GGL_OK
               : wrong(err, "diffusion_algorithm",
                       "origin, entropy, margin, random or confidence, or their numbers from 0 on");
}

/* --- the answer --------------------------------------------------------------------------------- */

ggl_status ask_set_form(ask *a, ask_form form, const json_value *v, ggl_error *err) {
    if (a->form != ASK_ANY)
        return ggl_fail(err, GGL_USAGE,
                        "more than one field says what the answer must fit; keep one of "
                        "\"response_format\", \"json_schema\" and \"grammar\"");
    a->form = form;
    if (form == ASK_GBNF)
        a->form_text = json_str(v);
    if (form != ASK_SCHEMA)
        return GGL_OK;
    llm_json_out out = {0};
    llm_json_put_value(&out, v);
    return ask_keep(a, &out, &a->form_text, err);
}

ggl_status field_grammar(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_STRING)
        return wrong(err, "grammar", "a string");
    return v->n == 0 ? GGL_OK : ask_set_form(a, ASK_GBNF, v, err);
}

ggl_status field_json_schema(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_OBJECT && v->kind != JSON_BOOL)
        return wrong(err, "json_schema", "a schema: an object, true or false");
    return ask_set_form(a, ASK_SCHEMA, v, err);
}

ggl_status field_guided_json(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_OBJECT)
        return wrong(err, "guided_json", "a schema: an object");
    return ask_set_form(a, ASK_SCHEMA, v, err);
}

/* 0: no log-probabilities. */
ggl_status field_n_probs(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    if (!is_int(v, 0) || v->number > MOST_TOP)
        return ggl_fail(err, GGL_USAGE, "\"n_probs\" must be an integer from 0 to %d", MOST_TOP);
    if (v->number > 0)
        a->n_top = (int)v->number;
    return GGL_OK;
}

ggl_status field_cache_prompt(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_BOOL)
        return wrong(err, "cache_prompt", "true or false");
    a->no_cache = !v->flag;
    return GGL_OK;
}

/* 0 or less: no limit. */
ggl_status field_time_limit(ask *a, const json_value *v, const server_facts *facts,
                            ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_NUMBER || !isfinite(v->number))
        return wrong(err, "t_max_predict_ms", "a number of milliseconds");
    a->seconds = v->number > 0 ? v->number / 1000 : 0;
    return GGL_OK;
}

/* --- values that are accepted ------------------------------------------------------------------- */

static ggl_status accept(bool yes, ggl_error *err) {
    return yes ? GGL_OK : ggl_fail(err, GGL_UNSUPPORTED, "not supported");
}

ggl_status field_any(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)a, (void)v, (void)facts, (void)err;
    return GGL_OK;
}

ggl_status field_is_zero(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)a, (void)facts;
    return accept(v->kind == JSON_NUMBER && v->number == 0, err);
}

ggl_status field_is_negative(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)a, (void)facts;
    return accept(v->kind == JSON_NUMBER && v->number < 0, err);
}

ggl_status field_is_false(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)a, (void)facts;
    return accept(v->kind == JSON_BOOL && !v->flag, err);
}

ggl_status field_is_true(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)a, (void)facts;
    return accept(v->kind == JSON_BOOL && v->flag, err);
}

ggl_status field_lora(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    a->lora = v;
    const ggl_status st = api_check_scales(v, &a->ignored, err);
    return st == GGL_OK ? st : ggl_within(err, st, "\"lora\"");
}

ggl_status field_is_empty(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)a, (void)facts;
    const bool has_n = v->kind == JSON_STRING || v->kind == JSON_ARRAY || v->kind == JSON_OBJECT;
    return accept(has_n && v->n == 0, err);
}

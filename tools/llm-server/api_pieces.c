#include "api_pieces.h"

#include <math.h>
#include <stdio.h>

#include "ggl/internal/number.h"
#include "llm/internal/tokenizer.h"

bool keep_text(kept_text *t, ggl_arena *arena, const char *s, size_t n) {
    if (n > t->cap - t->n) {
        const size_t cap = 2 * (t->n + n) + 64;
        char *more = ggl_arena_alloc(arena, cap, 1);
        if (!more)
            return false;
        if (t->n > 0)
            memcpy(more, t->s, t->n);
        t->s = more;
        t->cap = cap;
    }
    if (n > 0)
        memcpy(t->s + t->n, s, n);
    t->n += n;
    return true;
}

void put_bytes(llm_json_out *out, ggl_str s) {
    llm_json_put_text(out, "[");
    for (size_t i = 0; i < s.n; i++)
        llm_json_format(out, "%s%d", i ? ", " : "", (unsigned char)s.s[i]);
    llm_json_put_text(out, "]");
}

void put_shortest(llm_json_out *out, float x) {
    char text[GGL_NUMBER_TEXT];
    llm_json_put_text(out, isfinite(x) ? ggl_number_shortest(text, (double)x, true) : "null");
}

static void put_stages(llm_json_out *out, const llm_sampler_params *p) {
    llm_json_put_text(out, "\"samplers\": [");
    const int n = p->n_stages ? p->n_stages : LLM_SAMPLER_N_STAGES;
    for (int i = 0; i < n; i++) {
        const int stage = p->n_stages ? p->stage[i] : i;
        llm_json_format(out, "%s'%s'", i ? ", " : "",
                        llm_sampler_stage_name((llm_sampler_stage)stage));
    }
    llm_json_put_text(out, "]");
}

static void put_biases(llm_json_out *out, const llm_sampler_params *p) {
    llm_json_put_text(out, "\"logit_bias\": [");
    for (size_t i = 0; i < p->n_bias; i++) {
        llm_json_format(out, "%s{'token': %d, 'bias': ", i ? ", " : "", (int)p->bias[i].id);
        if (isfinite(p->bias[i].bias))
            llm_json_format(out, "%.9g}", (double)p->bias[i].bias);
        else
            llm_json_put_text(out, "false}");
    }
    llm_json_put_text(out, "], ");
}

static void put_breakers(llm_json_out *out, const llm_sampler_params *p) {
    llm_json_put_text(out, "\"dry_sequence_breakers\": [");
    for (size_t i = 0; i < p->n_dry_breakers; i++)
        llm_json_format(out, "%s%.*s", i ? ", " : "", LLM_JSON_STR(p->dry_breakers[i]));
    llm_json_put_text(out, "], ");
}

void put_sampling(llm_json_out *out, const llm_sampler_params *p) {
    for (size_t i = 0; i < LLM_SAMPLER_N_NUMBERS; i++) {
        const llm_sampler_number *n = &llm_sampler_numbers[i];
        const double x = llm_sampler_get_number(p, n);
        llm_json_format(out, n->is_int ? "\"%s\": %.0f" : "\"%s\": ", n->field, x);
        if (!n->is_int)
            put_shortest(out, (float)x);
        llm_json_put_text(out, ", ");
    }
    put_breakers(out, p);
    put_biases(out, p);
    put_stages(out, p);
}

ggl_str token_text(const server_facts *facts, int32_t id) {
    return facts->tokenizer ? llm_token_text(facts->tokenizer, id, true) : (ggl_str){"", 0};
}

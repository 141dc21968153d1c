/* The table of stages, and orders of them by name or by letter. */
#include "ggl/internal/params.h"
#include "sampler_impl.h"

#include <stdio.h>

#define SAMPLER_STAGE(id, name, other_names, letter, effect, is_on)                                \
    static bool is_on_##name(const llm_sampler *s) {                                               \
        return is_on;                                                                              \
    }
#include "llm/internal/samplers.def"

const sampler_row llm_sampler_rows[LLM_SAMPLER_N_STAGES] = {
#define SAMPLER_STAGE(id, name, other_names, letter, effect, is_on)                                \
    {#name, other_names, letter[0], effect, is_on_##name, llm_sample_##name},
#include "llm/internal/samplers.def"
};

const char *llm_sampler_stage_name(llm_sampler_stage stage) {
    return llm_sampler_rows[stage].name;
}

char llm_sampler_stage_letter(llm_sampler_stage stage) {
    return llm_sampler_rows[stage].letter;
}

/* --- orders ----------------------------------------------------------------------------------- */

static bool is_name(const char *s, size_t n, const char *name, size_t n_name) {
    return n == n_name && memcmp(s, name, n) == 0;
}

/* Returns the stage with that name, or -1. */
static int by_name(const char *s, size_t n) {
    for (int i = 0; i < LLM_SAMPLER_N_STAGES && n > 0; i++) {
        const sampler_row *row = &llm_sampler_rows[i];
        if (is_name(s, n, row->name, strlen(row->name)))
            return i;
        for (const char *other = row->other_names; *other;) {
            const size_t n_other = strcspn(other, " ");
            if (is_name(s, n, other, n_other))
                return i;
            other += n_other + (other[n_other] == ' ');
        }
    }
    return -1;
}

static int by_letter(const char *s, size_t n) {
    for (int i = 0; i < LLM_SAMPLER_N_STAGES && n == 1; i++)
        if (llm_sampler_rows[i].letter == *s)
            return i;
    return -1;
}

int llm_sampler_find_stage(const char *s, size_t n, bool letter) {
    return letter ? by_letter(s, n) : by_name(s, n);
}

/* Adds the stage spelled s[0..n) to the order. */
static ggl_status add_stage(llm_sampler_params *p, int stage, const char *s, size_t n,
                            ggl_error *err) {
    char known[LLM_SAMPLER_N_STAGES * 40] = "";
    size_t used = 0;
    for (int i = 0; i < LLM_SAMPLER_N_STAGES; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s (%c)", i > 0 ? ", " : "",
                                 llm_sampler_rows[i].name, llm_sampler_rows[i].letter);
    if (stage < 0)
        return ggl_fail(err, GGL_USAGE, "'%.*s' is not a stage; there are %s", (int)n, s, known);
    for (int i = 0; i < p->n_stages; i++)
        if (p->stage[i] == stage)
            return ggl_fail(err, GGL_USAGE, "stage %s is named twice, but can run only once",
                            llm_sampler_rows[stage].name);
    p->stage[p->n_stages++] = (uint8_t)stage;
    return GGL_OK;
}

static ggl_status read_order(llm_sampler_params *p, const char *s, bool letters, ggl_error *err) {
    llm_sampler_params order = {.size = sizeof order};
    ggl_status st = GGL_READ_PARAMS(llm_sampler_params, &order, p, err);
    order.n_stages = 0;
    while (*s && st == GGL_OK) {
        const size_t n = letters ? 1 : strcspn(s, ";");
        st = add_stage(&order, llm_sampler_find_stage(s, n, letters), s, n, err);
        s += n + (s[n] == ';' && !letters);
    }
    if (st == GGL_OK && order.n_stages == 0)
        st = add_stage(&order, -1, "", 0, err);
    return st == GGL_OK ? GGL_WRITE_PARAMS(llm_sampler_params, p, &order, err) : st;
}

ggl_status llm_sampler_read_names(llm_sampler_params *p, const char *names, ggl_error *err) {
    return read_order(p, names, false, err);
}

ggl_status llm_sampler_read_letters(llm_sampler_params *p, const char *letters, ggl_error *err) {
    return read_order(p, letters, true, err);
}

/* The numbers among the sampler's parameters: their table, defaults and ranges. */
#include <float.h>
#include <stddef.h>

#include "ggl/internal/nearest.h"
#include "ggl/internal/params.h"
#include "sampler_impl.h"

static const ggl_str default_breakers[] = {{"\n", 1}, {":", 1}, {"\"", 1}, {"*", 1}};

void llm_sampler_fill_default(llm_sampler_params *p, size_t size) {
    const llm_sampler_params d = {
        .size = sizeof(llm_sampler_params),
#define SAMPLER_NUMBER(kind, name, value, ...) .name = (llm_sampler_##kind)(value),
#include "llm/internal/samplers.def"
        .dry_breakers = default_breakers,
        .n_dry_breakers = sizeof default_breakers / sizeof *default_breakers,
    };
    ggl_params_fill(p, size, &d, sizeof d);
}

/* Whether a kind is an integer. */
enum { FLOAT = 0, INT = 1, TOP_K = 1, MIROSTAT = 1 };

const llm_sampler_number llm_sampler_numbers[LLM_SAMPLER_N_NUMBERS] = {
#define SAMPLER_NUMBER(kind, name, value, at_0, member, low, high, must_be, field, ...)            \
    {#name, field, offsetof(llm_sampler_params, name), kind, low, high, must_be},
#include "llm/internal/samplers.def"
};

double llm_sampler_get_number(const llm_sampler_params *p, const llm_sampler_number *number) {
    const char *at = (const char *)p + number->at;
    return number->is_int ? *(const int32_t *)at : (double)*(const float *)at;
}

static ggl_status check_range(const llm_sampler_number *n, const char *name, double x,
                              ggl_error *err) {
    return x >= n->low && x <= n->high
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "%s is %.9g, but must be %s", name, x, n->must_be);
}

ggl_status llm_sampler_check_numbers(const llm_sampler_params *p, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < LLM_SAMPLER_N_NUMBERS && st == GGL_OK; i++) {
        const llm_sampler_number *n = &llm_sampler_numbers[i];
        st = check_range(n, n->name, llm_sampler_get_number(p, n), err);
    }
    return st;
}

static ggl_status no_number(const char *field, ggl_error *err) {
    ggl_nearest near = ggl_nearest_to(field);
    for (size_t i = 0; i < LLM_SAMPLER_N_NUMBERS; i++)
        ggl_nearest_try(&near, llm_sampler_numbers[i].field, strlen(llm_sampler_numbers[i].field));
    return ggl_fail(err, GGL_USAGE, "the sampler has no number '%s'%s%s%s", field,
                    near.best ? "; did you mean '" : "", near.best ? near.best : "",
                    near.best ? "'?" : "");
}

ggl_status llm_sampler_set_number(llm_sampler_params *p, const char *field, double x,
                                  ggl_error *err) {
    const llm_sampler_number *n = llm_sampler_numbers, *end = n + LLM_SAMPLER_N_NUMBERS;
    while (n < end && strcmp(n->field, field) != 0)
        n++;
    if (n == end)
        return no_number(field, err);
    if (n->is_int && x != floor(x))
        return ggl_fail(err, GGL_USAGE, "%s is %.9g, but must be an integer", field, x);
    const ggl_status st = check_range(n, field, x, err);
    if (st == GGL_OK && n->is_int)
        *(int32_t *)((char *)p + n->at) = (int32_t)x;
    else if (st == GGL_OK)
        *(float *)((char *)p + n->at) = (float)x;
    return st;
}

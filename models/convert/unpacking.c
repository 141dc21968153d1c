/* Helpers for making descriptions of packed numbers; see unpacking.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unpacking.h"

bool llm_unpack_odd(const unpacking *u, const char *fmt, ...) {
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    llm_arch_error(u->ev, u->e->place, "%s", text);
    return false;
}

bool llm_unpack_no_memory(const unpacking *u) {
    llm_arch_nomem(u->ev);
    return false;
}

bool llm_unpack_no_factors(const unpacking *u) {
    return llm_unpack_odd(u, "tensor %s does not have the factors for the blocks of %s",
                          u->scale->name.s, u->t->name.s);
}

void llm_unpack_add_tensor(unpacking *u, st_tensor *t) {
    if (u->p->n_tensor < PACKED_TENSORS)
        u->p->tensor[u->p->n_tensor++] = t;
    llm_arch_convert_use(u->ev->conv, t);
}

st_tensor *llm_unpack_beside(unpacking *u, const char *end) {
    char name[700];
    snprintf(name, sizeof name, "%.*s%s", (int)u->stem.n, u->stem.s, end);
    st_tensor *t = llm_safetensors_find(u->ev->conv->source, name);
    if (t)
        llm_unpack_add_tensor(u, t);
    return t;
}

bool llm_unpack_is(const st_tensor *t, const char *dtype) {
    return strcmp(t->dtype, dtype) == 0;
}

int64_t llm_unpack_count(const st_tensor *t) {
    int64_t n = 1;
    for (int d = 0; d < t->n_dims; d++)
        n *= t->ne[d];
    return n;
}

const json_value *llm_unpack_setting(const unpacking *u, const char *name, json_kind kind) {
    return llm_json_get_kind(llm_json_get(u->ev->conv->config, "quantization_config"), name, kind);
}

int64_t llm_unpack_whole_setting(const unpacking *u, const char *name, int64_t most) {
    const json_value *v = llm_unpack_setting(u, name, JSON_NUMBER);
    return v && v->whole && v->number >= 1 && v->number <= (double)most ? (int64_t)v->number : 0;
}

bool llm_unpack_same_rows(const st_tensor *a, const st_tensor *b) {
    bool same = a->n_dims == b->n_dims;
    for (int d = 1; d < LLM_ST_MAX_DIMS; d++)
        same = same && a->ne[d] == b->ne[d];
    return same;
}

void llm_unpack_set_rows(unpacking *u, int64_t n_column, int64_t columns) {
    packed_numbers *p = u->p;
    p->n_column = n_column;
    p->n_row = p->n_factor_row = n_column > 0 ? llm_recipe_count(u->r) / n_column : 1;
    p->factor.columns = columns;
    p->factor.rows = 1;
    p->factor.next = 1;
    p->factor.line = columns > 0 ? (n_column + columns - 1) / columns : 1;
}

packed_codes llm_unpack_row_codes(const st_tensor *t, int bits, int unit, int64_t units) {
    return (packed_codes){.t = t, .bits = bits, .unit = unit, .next = 1, .line = units};
}

void llm_unpack_set_e2m1(unpacking *u) {
    u->p->code = llm_unpack_row_codes(u->t, 4, 8, u->p->n_column / 2);
    u->p->value = llm_packed_e2m1;
}

bool llm_unpack_set_e4m3(unpacking *u) {
    float *value = ggl_arena_alloc(&u->ev->conv->arena, 256, sizeof *value);
    for (int k = 0; value && k < 256; k++)
        value[k] = llm_packed_e4m3(k);
    u->p->code = llm_unpack_row_codes(u->t, 8, 8, u->p->n_column);
    u->p->value = value;
    return value || llm_unpack_no_memory(u);
}

bool llm_unpack_set_by(unpacking *u, const st_tensor *t, bool divide) {
    if (t->type < 0 || llm_unpack_count(t) != 1)
        return llm_unpack_odd(u, "tensor %s is not one number, by which %s is multiplied",
                              t->name.s, u->t->name.s);
    const float x = llm_packed_number(t, 0);
    u->p->by = divide ? 1.0f / x : x;
    return (isfinite(x) && x != 0 && isfinite(u->p->by)) ||
           llm_unpack_odd(u, "tensor %s is %g, by which %s cannot be %s", t->name.s, (double)x,
                          u->t->name.s, divide ? "divided" : "multiplied");
}

#include "shape_source.h"

#include <string.h>

#include "shape_types.h"

static bool find_key(void *ctx, const char *name, llm_arch_key *out) {
    static const bench_key arch = {.kind = BENCH_KEY_STRING};
    const bench_shape *s = ((const bench_shape_source *)ctx)->shape;
    if (strcmp(name, "general.architecture") == 0) {
        *out = (llm_arch_key){LLM_ARCH_STRING, false, 1, &arch};
        return true;
    }
    for (int i = 0; i < s->n_keys; i++) {
        const bench_key *k = &s->key[i];
        if (strcmp(k->name, name) != 0)
            continue;
        llm_arch_type type = k->kind == BENCH_KEY_STRING ? LLM_ARCH_STRING
                             : k->kind == BENCH_KEY_BOOL ? LLM_ARCH_BOOL
                                                         : LLM_ARCH_NUMBER;
        bool is_list = k->kind == BENCH_KEY_LIST;
        *out = (llm_arch_key){type, is_list, is_list ? (uint64_t)k->n : 1, k};
        return true;
    }
    return false;
}

static bool get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const bench_shape *shape = ((const bench_shape_source *)ctx)->shape;
    const bench_key *k = key->handle;
    const char *s = k->name[0] ? k->string : shape->arch;
    *out = (llm_arch_item){.number = k->number, .flag = k->number != 0, .string = {s, strlen(s)}};
    if (k->kind == BENCH_KEY_LIST)
        out->number = shape->list[k->first + (int)i];
    else if (k->kind == BENCH_KEY_FLOAT)
        out->number = (double)(float)k->number;
    return true;
}

static bool key_at(void *ctx, size_t i, ggl_str *name) {
    const bench_shape *s = ((const bench_shape_source *)ctx)->shape;
    if (i >= (size_t)s->n_keys)
        return false;
    *name = (ggl_str){s->key[i].name, strlen(s->key[i].name)};
    return true;
}

static bool find_tensor(void *ctx, llm_arch_tensor *t) {
    const bench_shape_source *s = ctx;
    if (t->optional && !bench_shape_with(BENCH_SHAPES, s->shape->name, t->name))
        return false;
    t->type = bench_shape_f32(BENCH_SHAPES, t->name)
                  ? GGL_F32
                  : bench_type_of(s->wanted, t->name, t->n_dims, t->ne);
    t->data = NULL;
    if (s->each)
        s->each(s->ctx, t);
    return true;
}

llm_arch_source bench_shape_source_of(bench_shape_source *s) {
    return (llm_arch_source){.ctx = s,
                             .name = s->shape->name,
                             .find_key = find_key,
                             .get_item = get_item,
                             .find_tensor = find_tensor,
                             .key_at = key_at};
}

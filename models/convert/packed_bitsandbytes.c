/* Forms of bitsandbytes. */
#include "unpacking.h"

/* Reads a table of n numbers. NULL: reported. */
static const float *read_map(unpacking *u, const char *end, int n) {
    st_tensor *t = llm_unpack_beside(u, end);
    float *map = ggl_arena_alloc(&u->ev->conv->arena, 256, sizeof *map);
    if (!map)
        return llm_unpack_no_memory(u), NULL;
    if (!t || t->type != GGL_F32 || llm_unpack_count(t) != n)
        return llm_unpack_odd(u, "tensor %.*s%s, %d numbers of F32, is missing or another",
                              (int)u->stem.n, u->stem.s, end, n),
               NULL;
    for (int k = 0; k < n; k++)
        map[k] = llm_packed_number(t, k);
    return map;
}

/* Reads the numbers of one byte that stand for factors. */
static bool set_mapped(unpacking *u, const json_value *state, int64_t n_block) {
    packed_factors *f = &u->p->factor;
    const json_value *block = llm_json_get_kind(state, "nested_blocksize", JSON_NUMBER),
                     *offset = llm_json_get_kind(state, "nested_offset", JSON_NUMBER);
    st_tensor *inner = llm_unpack_beside(u, ".nested_absmax");
    f->kind = FACTOR_MAPPED;
    f->map = read_map(u, ".nested_quant_map", 256);
    f->inner = inner;
    f->inner_block = block && block->whole && block->number >= 1 && block->number <= 65536
                         ? (int64_t)block->number
                         : 0;
    f->offset = offset ? (float)offset->number : 0;
    if (!f->map)
        return false;
    return (inner && inner->type == GGL_F32 && f->inner_block > 0 && offset &&
            llm_unpack_count(inner) == (n_block + f->inner_block - 1) / f->inner_block) ||
           llm_unpack_odd(
               u,
               "the factors of tensor %s are packed, but nested_absmax, nested_blocksize or "
               "nested_offset do not fit them",
               u->t->name.s);
}

/* Takes the shape, the size of blocks and the type of numbers from the JSON that bitsandbytes stores in a tensor. False: reported. */
static bool set_state(unpacking *u, const json_value *state) {
    static const struct {
        const char *name;
        ggl_type type;
    } types[] = {{"float16", GGL_F16}, {"bfloat16", GGL_BF16}, {"float32", GGL_F32}};
    const json_value *shape = llm_json_get_kind(state, "shape", JSON_ARRAY),
                     *block = llm_json_get_kind(state, "blocksize", JSON_NUMBER);
    int64_t n = 1;
    recipe *r = u->r;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = 1;
    for (size_t d = 0; shape && d < shape->n && d < GGL_MAX_DIMS; d++) {
        const json_value *v = &shape->item[shape->n - 1 - d];
        r->ne[d] = v->kind == JSON_NUMBER && v->whole && v->number >= 1 && v->number < 0x1p40
                       ? (int64_t)v->number
                       : 0;
        n = r->ne[d] > 0 && n <= INT64_MAX / 2 / r->ne[d] ? n * r->ne[d] : 0;
    }
    if (!shape || shape->n < 1 || shape->n > GGL_MAX_DIMS || n == 0 ||
        (int64_t)u->t->size != (n + 1) / 2)
        return llm_unpack_odd(u, "the shape in quant_state of tensor %s does not fit its %zu bytes",
                              u->t->name.s, u->t->size);
    r->n_dims = (int)shape->n;
    const int64_t size = block && block->whole && block->number >= 1 && block->number <= 65536
                             ? (int64_t)block->number
                             : 0,
                  n_block = size > 0 ? (n + size - 1) / size : 0;
    if (n_block == 0 || llm_unpack_count(u->scale) != n_block)
        return llm_unpack_no_factors(u);
    llm_unpack_set_rows(u, n, size);
    u->p->code = llm_unpack_row_codes(u->t, 4, 8, (n + 1) / 2);
    u->p->code.high_first = true;
    u->p->of_linear = true;
    r->nearest = GGL_F32;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (llm_json_has(state, "dtype", types[k].name))
            r->nearest = types[k].type;
    if (!(u->p->value = read_map(u, ".quant_map", 16)))
        return false;
    return u->scale->type == GGL_F32 ||
           (llm_unpack_is(u->scale, "U8") ? set_mapped(u, state, n_block)
                                          : llm_unpack_no_factors(u));
}

bool llm_unpack_bnb4(unpacking *u) {
    static const char *const ends[] = {".quant_state.bitsandbytes__nf4",
                                       ".quant_state.bitsandbytes__fp4"};
    ggl_error err = {0};
    llm_json *doc = NULL;
    st_tensor *state = NULL;
    for (int k = 0; k < 2 && !state; k++)
        state = llm_unpack_beside(u, ends[k]);
    if (!state || !llm_unpack_is(state, "U8"))
        return llm_unpack_odd(u, "tensor %s.quant_state.bitsandbytes__nf4 or __fp4 is missing",
                              u->t->name.s);
    if (llm_json_parse(&doc, state->data, state->size, state->name.s, &err) != GGL_OK)
        return llm_unpack_odd(u, "%s", err.msg);
    const bool ok = set_state(u, &doc->root);
    llm_json_free(doc);
    return ok;
}

/* Bytes, and the largest number of each row, which stands for 127. */
bool llm_unpack_bnb8(unpacking *u) {
    const st_tensor *format = llm_unpack_beside(u, ".weight_format");
    if (format && (format->size != 1 || *(const char *)format->data != 0))
        return llm_unpack_odd(u, "tensor %s says that the bytes of %s are not in rows",
                              format->name.s, u->t->name.s);
    if (u->scale->type != GGL_F32 || u->t->n_dims != 2 || llm_unpack_count(u->scale) != u->t->ne[1])
        return llm_unpack_no_factors(u);
    llm_unpack_set_rows(u, u->t->ne[0], u->t->ne[0]);
    u->p->code = llm_unpack_row_codes(u->t, 8, 8, u->t->ne[0]);
    u->p->code.is_signed = true;
    u->p->of_linear = true;
    u->p->by = 7.874015718698502e-3f; /* 1/127, as that program writes it */
    u->r->nearest = GGL_F16;
    return true;
}

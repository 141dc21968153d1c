/* Writes the file: the tensors' types, the keys and the tensors. */
#include <string.h>

#include "convert_impl.h"
#include "ggl/internal/pass.h"
#include "keys.h"
#include "packed.h"
#include "pieces.h"

/* --- types ------------------------------------------------------------------------------------ */

ggl_type llm_converter_type(const llm_converter *c, const converted_tensor *t) {
    static const ggl_type types[] = {
        [LLM_CONVERT_F32] = GGL_F32, [LLM_CONVERT_F16] = GGL_F16, [LLM_CONVERT_BF16] = GGL_BF16};
    const ggl_type own = llm_recipe_type(t->recipe);
    if (own == GGL_I32 || own == GGL_I64)
        return own;
    if (t->only_f32)
        return GGL_F32;
    if (c->params.type == LLM_CONVERT_AUTO && t->block_type >= 0)
        return (ggl_type)t->block_type;
    if (c->params.type == LLM_CONVERT_NUMBERS && llm_recipe_has_factors(t->recipe))
        return GGL_F32; /* quantizing must not begin with a rounding to f16 or bf16 */
    return c->params.type == LLM_CONVERT_AUTO || c->params.type == LLM_CONVERT_NUMBERS
               ? llm_recipe_type(t->recipe)
               : types[c->params.type];
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Types that most numbers of a file may have, with llama.cpp's values of general.file_type. Of types with
 * as many numbers, the later one counts. */
static const struct {
    ggl_type type;
    uint32_t value;
} file_types[] = {{GGL_F32, 0},   {GGL_Q8_0, 7},  {GGL_Q5_1, 9},  {GGL_Q4_1, 3},  {GGL_Q5_0, 8},
                  {GGL_Q4_0, 2},  {GGL_Q2_K, 10}, {GGL_Q3_K, 11}, {GGL_Q4_K, 14}, {GGL_Q5_K, 16},
                  {GGL_Q6_K, 18}, {GGL_BF16, 32}, {GGL_F16, 1}};
enum { N_FILE_TYPES = sizeof file_types / sizeof *file_types };

/* Returns general.file_type, by the type of most numbers. *blocks: some tensors are quantized. */
static uint32_t file_type(const llm_converter *c, bool *blocks) {
    int64_t n[N_FILE_TYPES] = {0};
    int most = 0;
    *blocks = false;
    for (size_t i = 0; i < c->conv.n_tensor; i++) {
        ggl_type type = llm_converter_type(c, &c->conv.tensor[i]);
        int k = N_FILE_TYPES - 1;
        while (k > 0 && file_types[k].type != type)
            k--;
        n[k] += llm_recipe_count(c->conv.tensor[i].recipe);
        *blocks = *blocks || ggl_type_get((int)type)->quantized;
    }
    for (int k = 1; k < N_FILE_TYPES; k++)
        most = n[k] > n[0] && n[k] >= n[most] ? k : most;
    return file_types[most].value;
}

ggl_status llm_converter_put_keys(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    bool blocks;
    uint32_t type = file_type(c, &blocks);
    if (c->lora)
        llm_lora_put_keys(c->lora, w);
    ggl_gguf_put_string(w, "general.architecture", c->conv.family, strlen(c->conv.family));
    if (c->name[0])
        ggl_gguf_put_string(w, "general.name", c->name, strlen(c->name));
    if (!c->params.vocab_only)
        ggl_gguf_put(w, "general.file_type", GGL_GGUF_U32, false, &type, 1);
    if (blocks)
        ggl_gguf_put(w, "general.quantization_version", GGL_GGUF_U32, false, &(uint32_t){2}, 1);
    ggl_status s = GGL_OK;
    for (size_t i = 0; s == GGL_OK && i < c->conv.n_key && !c->lora; i++)
        s = llm_convert_put_key(w, &c->conv.key[i], err);
    if (s == GGL_OK && !c->lora)
        s = llm_converter_put_modules(c, w, err);
    if (s == GGL_OK)
        s = llm_converter_take_generation(c, w, err);
    if (s == GGL_OK && c->tokenizer)
        llm_hf_tokenizer_put(c->tokenizer, w);
    if (s == GGL_OK && c->borrows_tokenizer)
        llm_converter_put_borrowed(c, w);
    return s;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static void tell(llm_converter *c, size_t n) {
    const llm_converter *all = c->whole ? c->whole : c, *eye = all->eye;
    c->done += n;
    if (c->params.progress)
        c->params.progress(c->params.progress_ctx, all->done + (eye ? eye->done : 0),
                           all->size + (eye ? eye->size : 0));
}

/* Bytes of the file between two calls of drop_pages. */
#define DROP_AFTER ((size_t)32 << 20)

/* Frees the memory of what was read of the recipe's sources, so that memory stays small, however large
 * the folder is. */
static void drop_pages(const llm_converter *c, const recipe *r) {
    if (r->source)
        llm_safetensors_drop(c->source, r->source);
    for (int k = 0; r->packed && k < r->packed->n_tensor; k++)
        llm_safetensors_drop(c->source, r->packed->tensor[k]);
    for (int k = 0; k < r->n_part; k++)
        drop_pages(c, r->part[k]);
}

/* Tells of n more bytes of the file, and drops pages from time to time. */
static void written(llm_converter *c, const recipe *r, size_t n) {
    if (c->done / DROP_AFTER != (c->done + n) / DROP_AFTER)
        drop_pages(c, r);
    tell(c, n);
}

/* Copies the bytes of a source that is written unchanged. */
static ggl_status copy_tensor(llm_converter *c, const recipe *r, ggl_gguf_sink *to, size_t *bad,
                              ggl_error *err) {
    const st_tensor *t = r->source;
    const char *data = t->data;
    const ggl_type_info *type = ggl_type_get(t->type);
    const size_t most = ((size_t)4 << 20) / type->size * type->size;
    ggl_status s = GGL_OK;
    for (size_t at = 0, n; s == GGL_OK && at < t->size; at += n) {
        n = t->size - at < most ? t->size - at : most;
        *bad += llm_convert_count_bad(data + at, n / type->size * (size_t)type->block, type->type);
        s = ggl_gguf_sink_write(to, data + at, n, err);
        written(c, r, n);
    }
    return s;
}

static ggl_status convert_tensor(const tensor_turn *turn, ggl_gguf_sink *to, ggl_error *err) {
    llm_converter *c = turn->c;
    const converted_tensor *t = &c->conv.tensor[turn->i];
    const ggl_type_info *type = ggl_type_get(llm_converter_type(c, t));
    size_t bad = 0;
    if (t->recipe->kind == RECIPE_SOURCE && t->recipe->source->type == (int)type->type) {
        ggl_status copied = copy_tensor(c, t->recipe, to, &bad, err);
        drop_pages(c, t->recipe);
        return copied == GGL_OK ? llm_convert_check_bad(t->recipe, bad, err) : copied;
    }
    int64_t count = llm_recipe_count(t->recipe), n;
    float *x = ggl_calloc((size_t)LLM_CONVERT_PIECE, sizeof *x);
    void *y = ggl_calloc(ggl_row_size(type->type, LLM_CONVERT_PIECE), 1);
    ggl_status s = x && y ? GGL_OK : llm_converter_no_memory(err);
    for (int64_t at = 0; s == GGL_OK && at < count; at += n) {
        n = count - at < LLM_CONVERT_PIECE ? count - at : LLM_CONVERT_PIECE;
        s = llm_convert_piece(t->recipe, type, at, n, x, y, &bad, err);
        if (s != GGL_OK)
            break;
        const size_t size = ggl_row_size(type->type, n);
        s = ggl_gguf_sink_write(to, y, size, err);
        written(c, t->recipe, size);
    }
    llm_recipe_drop(t->recipe);
    drop_pages(c, t->recipe);
    if (s == GGL_OK)
        s = llm_convert_check_bad(t->recipe, bad, err);
    ggl_free(x);
    ggl_free(y);
    return s;
}

/* The writer's callback for a tensor's data. The writer's message would name the output file, so
 * errors of the folder's weights are kept in bad_input. */
static ggl_status fill_tensor(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const tensor_turn *turn = ctx;
    llm_converter *c = turn->c;
    ggl_error own = {0};
    ggl_status s = convert_tensor(turn, to, &own);
    if (s == GGL_FORMAT || s == GGL_LIMIT)
        ggl_fail(&c->bad_input, s, "%s: tensor '%s': %s", c->folder, c->conv.tensor[turn->i].name,
                 own.msg);
    return s == GGL_OK ? s : ggl_pass(err, &own);
}

/* Lists the tensors in the file. */
static ggl_status put_tensors(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    if (!c->turn)
        c->turn = ggl_calloc(c->conv.n_tensor + 1, sizeof *c->turn);
    c->done = 0;
    c->bad_input = (ggl_error){0};
    for (size_t i = 0; c->turn && i < c->conv.n_tensor; i++) {
        const converted_tensor *t = &c->conv.tensor[i];
        c->turn[i] = (tensor_turn){c, i};
        ggl_gguf_put_tensor_later(w, t->name, llm_converter_type(c, t), t->n_dims, t->ne,
                                  fill_tensor, &c->turn[i]);
    }
    return c->turn ? GGL_OK : llm_converter_no_memory(err);
}

ggl_status llm_converter_write(llm_converter *c, const char *path, ggl_error *err) {
    if (c->params.dry_run)
        return ggl_fail(err, GGL_USAGE, "a dry run writes nothing");
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_status s = w ? llm_converter_put_keys(c, w, err) : llm_converter_no_memory(err);
    for (size_t i = 0; s == GGL_OK && c->eye && c->params.eye && i < c->eye->conv.n_key; i++)
        if (strncmp(c->eye->conv.key[i].name, "general.", 8) != 0)
            s = llm_convert_put_key(w, &c->eye->conv.key[i], err);
    if (s == GGL_OK)
        s = put_tensors(c, w, err);
    if (s == GGL_OK && c->eye)
        s = put_tensors(c->eye, w, err);
    if (s == GGL_OK)
        s = ggl_gguf_writer_write(w, path, err);
    if (err && c->bad_input.msg[0])
        *err = c->bad_input;
    else if (err && c->eye && c->eye->bad_input.msg[0])
        *err = c->eye->bad_input;
    ggl_gguf_writer_free(w);
    return s;
}

/* What the conversion of a draft takes from the model for which it guesses: keys, which are the section's target.a, and the tokenizer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "convert_impl.h"
#include "ggl/internal/text.h"
#include "llm/internal/tokenizer.h"

#define TOKENS "tokenizer.ggml.tokens"
#define SIZE   "vocab_size"
enum { MOST_NUMBERS = 4096 }; /* in a list */

bool llm_converter_is_draft(const llm_converter *c) {
    return llm_arch_is_draft(c->arch);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Sets *out to a number, or to a list of numbers. Other values, and long lists, stay null. */
static bool take_value(llm_converter *c, const ggl_gguf_value *v, json_value *out) {
    json_value *item = out;
    *out = (json_value){.kind = JSON_NULL};
    if (v->n > MOST_NUMBERS)
        return true;
    if (v->is_array && !(item = ggl_arena_alloc(&c->arena, (size_t)v->n + 1, sizeof *item)))
        return false;
    for (uint64_t i = 0; i < v->n; i++) {
        double x;
        if (!ggl_gguf_number(v, i, &x))
            return true;
        const bool whole = fabs(x) <= 0x1p53 && x == floor(x);
        item[i] = (json_value){.kind = JSON_NUMBER, .whole = whole, .number = x};
    }
    if (v->is_array)
        *out = (json_value){.kind = JSON_ARRAY, .n = (uint32_t)v->n, .item = item};
    return true;
}

/* Makes the object of the keys that begin with the family's name, without it. */
static ggl_status take_keys(llm_converter *c, json_value *root, ggl_error *err) {
    const ggl_gguf *file = c->params.target;
    const size_t n = ggl_gguf_n_values(file);
    ggl_str family;
    const int found = ggl_gguf_get_string(file, "general.architecture", &family, err);
    if (found == 0)
        return ggl_fail(err, GGL_FORMAT, "%s: the key general.architecture is missing",
                        c->conv.target_name);
    if (found < 0)
        return GGL_FORMAT;
    const char *begin = ggl_arena_printf(&c->arena, "%.*s.", (int)family.n, family.s);
    json_value *item = ggl_arena_alloc(&c->arena, 2 * n + 2, sizeof *item);
    uint32_t used = 0;
    if (!begin || !item)
        return llm_converter_no_memory(err);
    const size_t skip = strlen(begin);
    json_value *name = item + n + 1;
    const ggl_gguf_value *tokens = ggl_gguf_find(file, TOKENS);
    bool has_size = false;
    for (size_t i = 0; i < n; i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(file, i);
        if (v->key.n <= skip || memcmp(v->key.s, begin, skip) != 0)
            continue;
        if (!take_value(c, v, &item[used]))
            return llm_converter_no_memory(err);
        has_size |= ggl_str_is((ggl_str){v->key.s + skip, v->key.n - skip}, SIZE);
        name[used++] = (json_value){
            .kind = JSON_STRING, .n = (uint32_t)(v->key.n - skip), .s = v->key.s + skip};
    }
    if (!has_size && tokens) { /* most files tell it by their tokens alone */
        item[used] = (json_value){.kind = JSON_NUMBER, .whole = true, .number = (double)tokens->n};
        name[used++] = (json_value){.kind = JSON_STRING, .n = sizeof SIZE - 1, .s = SIZE};
    }
    memmove(item + used, name, used * sizeof *name); /* names follow the values */
    *root = (json_value){.kind = JSON_OBJECT, .n = used, .item = item};
    return GGL_OK;
}

ggl_status llm_converter_read_target(llm_converter *c, ggl_error *err) {
    if (!c->params.target || !llm_converter_is_draft(c))
        return GGL_OK;
    json_value *root = ggl_arena_alloc(&c->arena, 1, sizeof *root);
    if (!root)
        return llm_converter_no_memory(err);
    c->conv.target_name = ggl_gguf_name(c->params.target);
    const ggl_status s = take_keys(c, root, err);
    c->conv.target = s == GGL_OK ? root : NULL;
    return s;
}

/* --- the tokenizer ---------------------------------------------------------------------------- */

ggl_status llm_converter_borrow_tokenizer(llm_converter *c, int64_t n_vocab, ggl_error *err) {
    if (!c->conv.target)
        return llm_converter_note(c, "the folder has no tokenizer, as the model guesses for "
                                     "another one; with llm-convert --target MODEL, which names "
                                     "that one, its file gets the tokenizer of that")
                   ? GGL_OK
                   : llm_converter_no_memory(err);
    const char *name = c->conv.target_name;
    const ggl_gguf_value *v = ggl_gguf_find(c->params.target, TOKENS);
    if (!v || !v->is_array || v->type != GGL_GGUF_STRING)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "neither the folder nor the model that it guesses for, %s, has a tokenizer",
                        name);
    if (n_vocab > 0 && v->n != (uint64_t)n_vocab)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "it guesses for a model of %" PRId64 " tokens, and %s has %" PRIu64
                        ": it is for another model",
                        n_vocab, name, v->n);
    llm_tokenizer *t; /* only to see that programs can open it */
    const ggl_status s = llm_tokenizer_new(&t, c->params.target, err);
    if (s != GGL_OK)
        return ggl_within(err, s, "the tokenizer of the model that it guesses for, %s", name);
    llm_tokenizer_free(t);
    c->borrows_tokenizer = true;
    return GGL_OK;
}

void llm_converter_put_borrowed(const llm_converter *c, ggl_gguf_writer *w) {
    static const char begin[] = "tokenizer.";
    for (size_t i = 0; i < ggl_gguf_n_values(c->params.target); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(c->params.target, i);
        bool made = false; /* by a line of the section */
        for (size_t k = 0; k < c->conv.n_key && !made; k++)
            made = ggl_str_is(v->key, c->conv.key[k].name);
        if (!made && ggl_str_begins_with(v->key, begin))
            ggl_gguf_put_value(w, v);
    }
}

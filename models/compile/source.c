/* A GGUF file as a source of keys and tensors. */
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/os_fs.h"

static bool file_find_key(void *ctx, const char *name, llm_arch_key *out) {
    const ggl_gguf_value *v = ggl_gguf_find(ctx, name);
    if (!v)
        return false;
    llm_arch_type type = v->type == GGL_GGUF_STRING ? LLM_ARCH_STRING
                         : v->type == GGL_GGUF_BOOL ? LLM_ARCH_BOOL
                                                    : LLM_ARCH_NUMBER;
    *out = (llm_arch_key){type, v->is_array, v->n, v};
    return true;
}

static bool file_get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    (void)ctx;
    switch (key->type) {
    case LLM_ARCH_NUMBER:
        return ggl_gguf_number(key->handle, i, &out->number);
    case LLM_ARCH_BOOL:
        return ggl_gguf_bool(key->handle, i, &out->flag);
    case LLM_ARCH_STRING:
        return ggl_gguf_string(key->handle, i, &out->string);
    }
    return false;
}

static bool file_find_tensor(void *ctx, llm_arch_tensor *t) {
    const ggl_gguf_tensor *f = ggl_gguf_find_tensor(ctx, t->name);
    if (!f)
        return false;
    t->type = f->type;
    t->n_dims = f->n_dims;
    memcpy(t->ne, f->ne, sizeof t->ne);
    t->data = f->data;
    return true;
}

static bool file_key_at(void *ctx, size_t i, ggl_str *name) {
    if (i >= ggl_gguf_n_values(ctx))
        return false;
    *name = ggl_gguf_value_at(ctx, i)->key;
    return true;
}

static bool file_is_changed(void *ctx, size_t i) {
    return ggl_gguf_is_changed(ggl_gguf_value_at(ctx, i));
}

static bool file_tensor_at(void *ctx, size_t i, ggl_str *name) {
    if (i >= ggl_gguf_n_tensors(ctx))
        return false;
    *name = ggl_gguf_tensor_at(ctx, i)->name;
    return true;
}

llm_arch_source llm_arch_source_gguf(const ggl_gguf *file) {
    const char *path = ggl_gguf_name(file), *slash = ggl_os_last_separator(path);
    return (llm_arch_source){
        .ctx = (ggl_gguf *)file, /* read only */
        .name = slash ? slash + 1 : path,
        .find_key = file_find_key,
        .get_item = file_get_item,
        .find_tensor = file_find_tensor,
        .key_at = file_key_at,
        .tensor_at = file_tensor_at,
        .is_changed = file_is_changed,
    };
}

/* --- two files -------------------------------------------------------------------------------- */

static bool find_in_two(void *ctx, llm_arch_tensor *t) {
    const llm_arch_two *x = ctx;
    const char *name = t->name;
    if (!llm_arch_is_of_target(name))
        return x->own.find_tensor(x->own.ctx, t) ||
               (strcmp(name, "token_embd.weight") == 0 && x->other.find_tensor(x->other.ctx, t));
    t->name = name + strlen(LLM_ARCH_OF_TARGET);
    const bool found = x->other.find_tensor(x->other.ctx, t);
    t->name = name;
    return found;
}

static bool is_lent_in_two(void *ctx, const char *name) {
    const llm_arch_two *x = ctx;
    llm_arch_tensor t = {.name = name, .optional = true};
    return !x->own.find_tensor(x->own.ctx, &t);
}

static bool find_key_in_two(void *ctx, const char *name, llm_arch_key *out) {
    const llm_arch_two *x = ctx;
    return x->own.find_key(x->own.ctx, name, out);
}

static bool get_item_of_two(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const llm_arch_two *x = ctx;
    return x->own.get_item(x->own.ctx, key, i, out);
}

static bool key_of_two(void *ctx, size_t i, ggl_str *name) {
    const llm_arch_two *x = ctx;
    return x->own.key_at(x->own.ctx, i, name);
}

static bool tensor_of_two(void *ctx, size_t i, ggl_str *name) {
    const llm_arch_two *x = ctx;
    return x->own.tensor_at(x->own.ctx, i, name);
}

static bool is_changed_in_two(void *ctx, size_t i) {
    const llm_arch_two *x = ctx;
    return x->own.is_changed(x->own.ctx, i);
}

llm_arch_source llm_arch_source_two(llm_arch_two *x) {
    return (llm_arch_source){.ctx = x,
                             .name = x->own.name,
                             .find_key = find_key_in_two,
                             .get_item = get_item_of_two,
                             .find_tensor = find_in_two,
                             .key_at = key_of_two,
                             .tensor_at = tensor_of_two,
                             .is_changed = is_changed_in_two,
                             .other = &x->other,
                             .is_lent = is_lent_in_two};
}

/* What of the modules of sentence-transformers goes into the file: tensors of those that the descriptor does not compute, and
 * keys. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "convert_impl.h"
#include "ggl/internal/pass.h"
#include "pickle.h"

#define KEYS "sentence_transformers."

/* --- tensors ---------------------------------------------------------------------------------- */

/* A module's tensors, as the folder and as the file call them. */
static const char *const names[][2] = {{"linear.weight", "weight"},
                                       {"linear.bias", "bias"},
                                       {"norm.weight", "weight"},
                                       {"norm.bias", "bias"},
                                       {"residual.weight", "residual.weight"}};
enum { N_NAMES = sizeof names / sizeof *names };

/* Marks those of module k as read, before the section reports what no line reads. */
static void mark_used(const llm_converter *c, int k) {
    char name[64];
    for (int i = 0; i < N_NAMES; i++) {
        snprintf(name, sizeof name, "sentence.%d.%s", k, names[i][0]);
        st_tensor *t = llm_safetensors_find(c->source, name);
        if (t)
            t->used = true;
    }
}

/* Adds the tensors of a folder in the folder. GGL_IO if it has none: GGL_NOT_FOUND would mean that the model has none. */
static ggl_status add_folder(llm_converter *c, ggl_str folder, const char *prefix, ggl_error *err) {
    char pickle[256];
    const char *name = ggl_arena_strndup(&c->arena, folder.s, folder.n),
               *path = ggl_arena_printf(&c->arena, "%s/%.*s", c->folder, (int)folder.n, folder.s);
    ggl_error of_folder = {0};
    if (!name || !path || !prefix)
        return llm_converter_no_memory(err);
    const ggl_status s = llm_safetensors_add(c->source, c->folder, name, prefix, &of_folder);
    if (s == GGL_NOT_FOUND && !llm_pickle_in(path, pickle, sizeof pickle))
        return ggl_fail(err, GGL_IO,
                        "%s; the model needs the weights of this folder, too: download them",
                        of_folder.msg);
    of_folder.status = s == GGL_NOT_FOUND ? GGL_IO : s;
    return s == GGL_OK ? s : ggl_pass(err, &of_folder);
}

/* Returns a tensor of a module; NULL: it has none of that name. */
static const st_tensor *find_of(const llm_converter *c, const char *prefix, const char *name) {
    char text[100];
    return (size_t)snprintf(text, sizeof text, "%s%s", prefix, name) < sizeof text
               ? llm_safetensors_find(c->source, text)
               : NULL;
}

/* Checks that a module has a matrix of that name with n_out rows of n_in numbers. Of packed ones the shape is not known here. */
static ggl_status check_matrix(const llm_converter *c, const st_module *m, const char *prefix,
                               const char *name, const char *at, ggl_error *err) {
    const st_tensor *w = find_of(c, prefix, name);
    if (!w)
        return ggl_fail(err, GGL_FORMAT, "%s: its safetensors have no tensor %s", at, name);
    if (w->type < 0 || (w->n_dims == 2 && w->ne[0] == m->n_in && w->ne[1] == m->n_out))
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT,
                    "%s/config.json: in_features = %" PRId64 ", out_features = %" PRId64
                    ", but tensor %s of %s has %" PRId64 " rows of %" PRId64 " numbers",
                    at, m->n_in, m->n_out, name, c->source->file[w->file].s, w->ne[1], w->ne[0]);
}

/* The same of a list of n numbers, which is what `what` of its config.json says. */
static ggl_status check_list(const llm_converter *c, const char *prefix, const char *name,
                             const char *what, int64_t n, const char *at, ggl_error *err) {
    const st_tensor *b = find_of(c, prefix, name);
    if (!b)
        return ggl_fail(err, GGL_FORMAT, "%s: its safetensors have no tensor %s", at, name);
    if (b->n_dims == 1 && b->ne[0] == n)
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT,
                    "%s/config.json: %s = %" PRId64
                    ", but tensor %s of %s is not a list of so many numbers",
                    at, what, n, name, c->source->file[b->file].s);
}

/* Checks that a module's tensors are those that its config.json describes: PyTorch would not load others. */
static ggl_status check_tensors(const llm_converter *c, const st_module *m, const char *prefix,
                                ggl_error *err) {
    char at[600];
    snprintf(at, sizeof at, "%s/%.*s", c->folder, (int)m->folder.n, m->folder.s);
    if (strcmp(m->kind, "dense") != 0) {
        const ggl_status s = check_list(c, prefix, "norm.weight", "dimension", m->n_out, at, err);
        return s == GGL_OK ? check_list(c, prefix, "norm.bias", "dimension", m->n_out, at, err) : s;
    }
    ggl_status s = check_matrix(c, m, prefix, "linear.weight", at, err);
    const bool has_bias = find_of(c, prefix, "linear.bias") != NULL;
    if (s == GGL_OK && m->biased != has_bias)
        s = ggl_fail(err, GGL_FORMAT,
                     "%s/config.json: bias = %s, but there is %s tensor linear.bias", at,
                     m->biased ? "true" : "false", has_bias ? "a" : "no");
    if (s == GGL_OK && has_bias)
        s = check_list(c, prefix, "linear.bias", "out_features", m->n_out, at, err);
    if (s == GGL_OK && m->adds_input && m->n_in != m->n_out)
        s = check_matrix(c, m, prefix, "residual.weight", at, err);
    return s;
}

ggl_status llm_converter_add_modules(llm_converter *c, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (int k = 0; k < llm_converter_n_after(c) && s == GGL_OK; k++) {
        if (strcmp(c->after[k].kind, "normalize") == 0)
            continue;
        const char *prefix =
            ggl_arena_printf(&c->arena, c->has_head ? "sentence.%d." : "modules.Dense_%d.", k);
        s = add_folder(c, c->after[k].folder, prefix, err);
        if (s == GGL_OK)
            s = check_tensors(c, &c->after[k], prefix, err);
        if (s == GGL_OK && c->has_head)
            mark_used(c, k);
    }
    for (const arch_mapping *m = c->conv.section->map; m && s == GGL_OK; m = m->next)
        if (m->kind == MAP_FOLDER)
            s = add_folder(c, (ggl_str){m->name, strlen(m->name)},
                           ggl_arena_printf(&c->arena, "modules.%s.", m->name), err);
    return s;
}

/* Adds a tensor of the head, which is as the folder has it. It may be absent. */
static ggl_status make_tensor(llm_converter *c, int k, const char *from, const char *to,
                              ggl_error *err) {
    const char *source = ggl_arena_printf(&c->arena, "sentence.%d.%s", k, from),
               *name = ggl_arena_printf(&c->arena, "sentence.%d.%s", k, to);
    st_tensor *t = source && name ? llm_safetensors_find(c->source, source) : NULL;
    if (!source || !name)
        return llm_converter_no_memory(err);
    if (!t)
        return GGL_OK;
    if (t->type < 0 || t->n_dims > 2)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: tensor %s has the type %s and %d dimensions: a matrix of numbers is "
                        "expected",
                        c->source->file[t->file].s, from, t->dtype, t->n_dims);
    recipe *r = ggl_arena_alloc(&c->conv.arena, 1, sizeof *r);
    arch_conversion *v = &c->conv;
    if (!r || !ggl_grow(&v->tensor, &v->cap_tensor, v->n_tensor + 1, sizeof *v->tensor))
        return llm_converter_no_memory(err);
    *r = (recipe){.kind = RECIPE_SOURCE,
                  .n_dims = t->n_dims,
                  .ne = {t->ne[0], t->n_dims > 1 ? t->ne[1] : 1, 1, 1},
                  .source = t};
    converted_tensor *made = &v->tensor[v->n_tensor++];
    *made = (converted_tensor){
        .name = name, .n_dims = t->n_dims, .recipe = r, .only_f32 = true, .block_type = -1};
    memcpy(made->ne, r->ne, sizeof made->ne);
    return GGL_OK;
}

ggl_status llm_converter_make_modules(llm_converter *c, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (int k = 0; c->has_head && k < llm_converter_n_after(c); k++)
        for (int i = 0; i < N_NAMES && s == GGL_OK; i++)
            s = make_tensor(c, k, names[i][0], names[i][1], err);
    return s;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void put_text(ggl_gguf_writer *w, const char *key, const json_value *v) {
    if (v && v->kind == JSON_STRING && v->n > 0)
        ggl_gguf_put_string(w, key, v->s, v->n);
}

/* Returns what PyLate, which has ColBERT's models, puts before a text instead of the prompt of this name; NULL: nothing. */
static const json_value *prefix_of(const json_value *root, ggl_str prompt) {
    const char *name = ggl_str_is(prompt, "query")      ? "query_prefix"
                       : ggl_str_is(prompt, "document") ? "document_prefix"
                                                        : NULL;
    const json_value *v = name ? llm_json_get_kind(root, name, JSON_STRING) : NULL;
    return v && v->n > 0 ? v : NULL;
}

/* Puts how ColBERT's models fill up queries: with masks, up to a length. PyLate has it in its configuration, ColBERT's own program in a
 * file of its own. */
static void put_expansion(const llm_converter *c, ggl_gguf_writer *w) {
    static const char *const lengths[2][2] = {{"query_length", "attend_to_expansion_tokens"},
                                              {"query_maxlen", "attend_to_mask_tokens"}};
    const json_value *own = c->prompts ? &c->prompts->root : NULL, *root = own;
    const bool is_pylate = own && llm_json_get(own, lengths[0][0]);
    if (!is_pylate)
        root = c->artifact ? &c->artifact->root : NULL;
    const char *const *name = lengths[!is_pylate];
    const json_value *length = root ? llm_json_get_kind(root, name[0], JSON_NUMBER) : NULL,
                     *does = root ? llm_json_get_kind(root, "do_query_expansion", JSON_BOOL) : NULL,
                     *seen = root ? llm_json_get_kind(root, name[1], JSON_BOOL) : NULL;
    if (!length || !length->whole || length->number < 1 || length->number > 512 ||
        (does && !does->flag))
        return;
    ggl_gguf_put(w, KEYS "query_length", GGL_GGUF_U32, false, &(uint32_t){(uint32_t)length->number},
                 1);
    ggl_gguf_put(w, KEYS "attend_to_expansion_tokens", GGL_GGUF_BOOL, false,
                 &(uint8_t){seen && seen->flag}, 1);
}

static ggl_status put_prompts(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    const json_value *root = c->prompts ? &c->prompts->root : NULL;
    const json_value *all = root ? llm_json_get_kind(root, "prompts", JSON_OBJECT) : NULL;
    put_text(w, KEYS "prompt.query", prefix_of(root, (ggl_str){"query", 5}));
    put_text(w, KEYS "prompt.document", prefix_of(root, (ggl_str){"document", 8}));
    for (size_t i = 0; all && i < all->n; i++) {
        const ggl_str name = json_name(all, i);
        const char *key = ggl_arena_printf(&c->arena, KEYS "prompt.%.*s", (int)name.n, name.s);
        if (!key)
            return llm_converter_no_memory(err);
        if (all->item[i].kind == JSON_STRING && !prefix_of(root, name)) /* also an empty one */
            ggl_gguf_put_string(w, key, all->item[i].s, all->item[i].n);
    }
    put_expansion(c, w);
    put_text(w, KEYS "default_prompt", llm_json_get(root, "default_prompt_name"));
    put_text(w, KEYS "similarity", llm_json_get(root, "similarity_fn_name"));
    if (c->n_dims > 0)
        ggl_gguf_put(w, KEYS "truncate_dim", GGL_GGUF_U32, false, &(uint32_t){(uint32_t)c->n_dims},
                     1);
    return GGL_OK;
}

/* Puts what comes after the pooling and the descriptor does not compute. */
static ggl_status put_head(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    ggl_str kind[ST_MOST_MODULES], activation[ST_MOST_MODULES];
    const int n = llm_converter_n_after(c);
    for (int k = 0; k < n; k++) {
        const st_module *m = &c->after[k];
        const char *name = m->adds_input ? ggl_arena_printf(&c->arena, "%s+", m->kind) : m->kind;
        if (!name)
            return llm_converter_no_memory(err);
        kind[k] = (ggl_str){name, strlen(name)};
        activation[k] = (ggl_str){m->activation, strlen(m->activation)};
    }
    if (c->has_head) {
        ggl_gguf_put_strings(w, KEYS "modules", kind, (uint64_t)n);
        ggl_gguf_put_strings(w, KEYS "activations", activation, (uint64_t)n);
    }
    if (c->n_poolings > 0 && c->pooling < 0)
        ggl_gguf_put_string(w, KEYS "pooling", c->poolings, strlen(c->poolings));
    if (c->skips_prompt)
        ggl_gguf_put(w, KEYS "include_prompt", GGL_GGUF_BOOL, false, &(uint8_t){0}, 1);
    if (c->longest > 0)
        ggl_gguf_put(w, KEYS "max_seq_length", GGL_GGUF_U32, false,
                     &(uint32_t){(uint32_t)c->longest}, 1);
    return GGL_OK;
}

ggl_status llm_converter_put_modules(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    char key[2 * ARCH_MAX_NAME];
    snprintf(key, sizeof key, "%s.pooling_type", c->conv.family);
    /* without a module for pooling it is 0: each row is a vector */
    if (c->modules && c->pooling >= 0 && !llm_arch_converted_key(&c->conv, key))
        ggl_gguf_put(w, key, GGL_GGUF_U32, false, &(uint32_t){(uint32_t)c->pooling}, 1);
    if (c->modules && !llm_arch_converted_key(&c->conv, KEYS "normalize"))
        ggl_gguf_put(w, KEYS "normalize", GGL_GGUF_BOOL, false,
                     &(uint8_t){llm_converter_normalizes(c)}, 1);
    const ggl_status s = put_head(c, w, err);
    return s == GGL_OK ? put_prompts(c, w, err) : s;
}

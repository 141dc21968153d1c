/* Values of generation_config.json that become keys of every family: defaults of sampling, as llama.cpp's converter writes them, and tokens that are
 * never chosen. Values of other types than theirs are left out, with a note; the sampler checks the range of numbers when it reads the keys. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "convert_impl.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/file_sampling.h"
#include "llm/internal/token_list.h"

#define FILE_NAME "generation_config.json"
#define SUPPRESS  "suppress_tokens"

/* What a value is written as. */
typedef enum kind { KIND_FLOAT, KIND_INT, KIND_TEXT, KIND_TOKENS } kind;

static bool is_i32(const json_value *v) {
    return v->kind == JSON_NUMBER && v->whole && v->number >= INT32_MIN && v->number <= INT32_MAX;
}

static bool fits(const json_value *v, kind k) {
    bool ok = v->kind == JSON_ARRAY;
    for (size_t i = 0; ok && k == KIND_TOKENS && i < v->n; i++)
        ok = is_i32(&v->item[i]);
    return k == KIND_TOKENS ? ok
           : k == KIND_TEXT ? v->kind == JSON_STRING
           : k == KIND_INT  ? is_i32(v)
                            : v->kind == JSON_NUMBER && fabs(v->number) <= FLT_MAX;
}

/* Finds the first of the names whose value is not null; name: [64], is set to it. */
static const json_value *find(const llm_converter *c, const char *names, char *name) {
    const json_value *v = NULL;
    for (size_t n; *names && !v; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        snprintf(name, 64, "%.*s", (int)n, names);
        v = llm_json_get(&c->generation->root, name);
        v = v && v->kind == JSON_NULL ? NULL : v;
    }
    return v;
}

static void put(ggl_gguf_writer *w, const char *key, const json_value *v, kind k) {
    if (k == KIND_TEXT)
        ggl_gguf_put_string(w, key, v->s, v->n);
    else if (k == KIND_INT)
        ggl_gguf_put(w, key, GGL_GGUF_I32, false, &(int32_t){(int32_t)v->number}, 1);
    else if (k == KIND_FLOAT)
        ggl_gguf_put(w, key, GGL_GGUF_F32, false, &(float){(float)v->number}, 1);
}

static ggl_status put_tokens(ggl_gguf_writer *w, const char *key, const json_value *v,
                             ggl_error *err) {
    int32_t *id = ggl_calloc((size_t)v->n + 1, sizeof *id);
    if (!id)
        return llm_converter_no_memory(err);
    for (size_t i = 0; i < v->n; i++)
        id[i] = (int32_t)v->item[i].number;
    if (v->n > 0)
        ggl_gguf_put(w, key, GGL_GGUF_I32, true, id, v->n);
    ggl_free(id);
    return GGL_OK;
}

static ggl_status note(llm_converter *c, const char *name, const json_value *v, kind k,
                       const char *key, ggl_error *err) {
    static const char *const what[] = {[KIND_FLOAT] = "number",
                                       [KIND_INT] = "integer of 32 bits",
                                       [KIND_TEXT] = "text",
                                       [KIND_TOKENS] = "list of tokens"};
    char text[400], value[120];
    snprintf(text, sizeof text, FILE_NAME ": %s is %s, which is no %s, so there is no key %s", name,
             llm_arch_json_text(v, value, sizeof value), what[k], key);
    return llm_converter_note(c, text) ? GGL_OK : llm_converter_no_memory(err);
}

/* Writes a value to w; NULL: it is only looked at, and a note says if it cannot be written. */
static ggl_status take(llm_converter *c, const char *names, kind k, const char *key,
                       ggl_gguf_writer *w, ggl_error *err) {
    char name[64];
    const json_value *v = find(c, names, name);
    if (!v || fits(v, k) == !w)
        return GGL_OK;
    if (!w)
        return note(c, name, v, k, key, err);
    if (k == KIND_TOKENS)
        return put_tokens(w, key, v, err);
    put(w, key, v, k);
    return GGL_OK;
}

/* True if the section has made the list a key of the family, which models of speech read. */
static bool has_own_list(const llm_converter *c) {
    char key[2 * ARCH_MAX_NAME];
    snprintf(key, sizeof key, "%s." SUPPRESS, c->conv.family);
    return llm_arch_converted_key(&c->conv, key) != NULL;
}

ggl_status llm_converter_take_generation(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    ggl_status s = GGL_OK;
    if (!c->generation || c->params.eye || c->params.adapter || c->params.task)
        return GGL_OK;
    for (int i = 0; i < LLM_N_SAMPLING_KEYS && s == GGL_OK; i++) {
        const llm_sampling_key *k = &llm_sampling_keys[i];
        s = take(c, k->config, llm_sampler_numbers[k->number].is_int ? KIND_INT : KIND_FLOAT,
                 k->key, w, err);
    }
    if (s == GGL_OK)
        s = take(c, "sequence", KIND_TEXT, LLM_SAMPLING_SEQUENCE, w, err);
    return s == GGL_OK && !has_own_list(c)
               ? take(c, SUPPRESS, KIND_TOKENS, LLM_SUPPRESS_TOKENS, w, err)
               : s;
}

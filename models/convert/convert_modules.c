/* The modules of a folder of sentence-transformers: what its programs do with the rows that the model gives. modules.json
 * lists them:
 *
 *     [{"path": "", "type": "sentence_transformers.models.Transformer"},
 *      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, ..]
 *
 * Each has a folder with a config.json, and a Dense one also has tensors. The convert section sees the latter as if config.json
 * had "modules": {"Dense_0": {..}, ..}. Pooling, prompts and the kind of similarity become keys here, as they have nothing to
 * do with what the model is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "common/text_file.h"
#include "convert_impl.h"

#define MAX_FILE ((size_t)1 << 20)

/* The values of {arch}.pooling_type, by the names that configurations have, of older and newer programs. */
static const struct {
    const char *flag, *mode;
    int type;
} poolings[] = {{"pooling_mode_mean_tokens", "mean", 1},
                {"pooling_mode_cls_token", "cls", 2},
                {"pooling_mode_lasttoken", "lasttoken", 3}};
enum { N_POOLINGS = sizeof poolings / sizeof *poolings };

/* Returns the path of a file of the folder, in the arena; NULL: out of memory. */
static char *path_of(llm_converter *c, ggl_str module, const char *name) {
    return ggl_arena_printf(&c->arena, "%s/%.*s%s%s", c->folder, (int)module.n, module.s,
                            module.n ? "/" : "", name);
}

/* Returns the last word of a type, as of a.b.Pooling. */
static ggl_str kind_of(const json_value *module) {
    const json_value *type = llm_json_get_kind(module, "type", JSON_STRING);
    ggl_str s = type ? json_str(type) : (ggl_str){"", 0};
    for (size_t i = s.n; i-- > 0;)
        if (s.s[i] == '.')
            return (ggl_str){s.s + i + 1, s.n - i - 1};
    return s;
}

/* Returns the folder of a module; empty: it has none of its own. Only plain names are folders of this folder. */
static ggl_str folder_of(const json_value *module) {
    const json_value *path = llm_json_get_kind(module, "path", JSON_STRING);
    const bool plain =
        path && path->n < 256 && path->s[0] != '.' && !ggl_os_has_separator(path->s, path->n);
    return plain ? json_str(path) : (ggl_str){"", 0};
}

/* --- pooling ---------------------------------------------------------------------------------- */

/* True if a configuration says that this pooling is used. */
static bool uses(const json_value *config, int k) {
    const json_value *flag = llm_json_get_kind(config, poolings[k].flag, JSON_BOOL);
    return (flag && flag->flag) ||
           llm_json_is(llm_json_get(config, "pooling_mode"), poolings[k].mode);
}

/* True if it says that another one is used. */
static bool uses_another(const json_value *config) {
    static const char head[] = "pooling_mode_";
    const json_value *mode = llm_json_get_kind(config, "pooling_mode", JSON_STRING);
    bool known = !mode;
    for (int k = 0; k < N_POOLINGS; k++)
        known = known || llm_json_is(mode, poolings[k].mode);
    for (size_t i = 0; i < config->n; i++) {
        const ggl_str name = json_name(config, i);
        bool listed = name.n < sizeof head || memcmp(name.s, head, sizeof head - 1) != 0;
        for (int k = 0; k < N_POOLINGS; k++)
            listed = listed || ggl_str_is(name, poolings[k].flag);
        known = known && (listed || config->item[i].kind != JSON_BOOL || !config->item[i].flag);
    }
    return !known;
}

static ggl_status read_pooling(llm_converter *c, const json_value *config, const char *path,
                               ggl_error *err) {
    int n = 0;
    for (int k = 0; config->kind == JSON_OBJECT && k < N_POOLINGS; k++)
        if (uses(config, k)) {
            c->pooling = poolings[k].type;
            n++;
        }
    if (n != 1 || uses_another(config))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: rows are pooled in another way than by one of the mean, the first row "
                        "and the last one",
                        path);
    const json_value *prompt = llm_json_get_kind(config, "include_prompt", JSON_BOOL);
    return prompt && !prompt->flag &&
                   !llm_converter_note(c, "the rows of prompts are pooled, too, "
                                          "which the model's own programs leave "
                                          "out (include_prompt)")
               ? llm_converter_no_memory(err)
               : GGL_OK;
}

/* --- the text of config.modules --------------------------------------------------------------- */

typedef struct text {
    char *s;
    size_t n, cap;
} text;

static bool put(text *t, ggl_str s) {
    if (!ggl_grow(&t->s, &t->cap, t->n + s.n + 1, 1))
        return false;
    memcpy(t->s + t->n, s.s, s.n);
    t->n += s.n;
    return true;
}

static bool put_word(text *t, const char *s) {
    return put(t, (ggl_str){s, strlen(s)});
}

/* Reads the config.json of a module for pooling, or appends that of a Dense one. */
static ggl_status read_module(llm_converter *c, text *t, const json_value *module, ggl_error *err) {
    const char *path = path_of(c, folder_of(module), "config.json");
    llm_json *config;
    char *own = NULL, name[40];
    size_t n = 0;
    if (!path)
        return llm_converter_no_memory(err);
    if (folder_of(module).n == 0)
        return ggl_fail(err, GGL_FORMAT, "%s/modules.json: a module has no folder of its own",
                        c->folder);
    ggl_status s = llm_json_read(&config, path, MAX_FILE, err); /* its errors name this file */
    if (s != GGL_OK)
        return s;
    if (ggl_str_is(kind_of(module), "Pooling"))
        s = read_pooling(c, &config->root, path, err);
    else
        s = llm_read_text_file(path, MAX_FILE, &own, &n, err);
    llm_json_free(config);
    for (size_t i = 0; i < n; i++) /* so that the lines of config.json keep their numbers */
        if (own[i] == '\n' || own[i] == '\r')
            own[i] = ' ';
    if (own)
        snprintf(name, sizeof name, "%s\"Dense_%d\": ", t->n ? ", " : "", c->n_dense++);
    if (s == GGL_OK && own && !(put_word(t, name) && put(t, (ggl_str){own, n})))
        s = llm_converter_no_memory(err);
    ggl_free(own);
    return s;
}

static ggl_status check_kinds(const llm_converter *c, ggl_error *err) {
    static const char *const known[] = {"Transformer", "Pooling", "Dense", "Normalize"};
    const json_value *list = &c->modules->root;
    if (list->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_FORMAT, "%s/modules.json is no list of modules", c->folder);
    for (size_t i = 0; i < list->n; i++) {
        const ggl_str kind = kind_of(&list->item[i]);
        bool found = false;
        for (int k = 0; k < 4; k++)
            found = found || ggl_str_is(kind, known[k]);
        if (!found)
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s/modules.json has a module of the kind '%.*s'; Transformer, "
                            "Pooling, Dense and Normalize are supported",
                            c->folder, (int)ggl_utf8_cut(kind.s, kind.n, 60), kind.s);
    }
    return GGL_OK;
}

/* Puts "modules": {"Dense_0": {..}, ..} into the text of config.json, as its first value, and parses it anew. */
static ggl_status extend_config(llm_converter *c, const char *path, const text *dense,
                                ggl_error *err) {
    text t = {0};
    char *own = NULL;
    size_t n = 0;
    ggl_status s = llm_read_text_file(path, (size_t)16 << 20, &own, &n, err);
    const char *brace = s == GGL_OK ? memchr(own, '{', n) : NULL;
    if (!brace) {
        ggl_free(own);
        return s;
    }
    const size_t head = (size_t)(brace - own) + 1;
    const bool ok = put(&t, (ggl_str){own, head}) && put_word(&t, "\"modules\": {") &&
                    put(&t, (ggl_str){dense->s, dense->n}) &&
                    put_word(&t, c->config->root.n > 0 ? "}, " : "}") &&
                    put(&t, (ggl_str){own + head, n - head});
    ggl_free(own);
    llm_json *config = NULL;
    s = ok ? llm_json_parse(&config, t.s, t.n, path, err) : llm_converter_no_memory(err);
    if (s != GGL_OK) {
        ggl_free(t.s);
        return s;
    }
    llm_json_free(c->config);
    c->config = config;
    c->config->text = t.s; /* which it borrows */
    return GGL_OK;
}

/* Reads a file of the folder that may be missing. */
static ggl_status read_optional(llm_converter *c, const char *name, llm_json **out,
                                ggl_error *err) {
    const char *path = path_of(c, (ggl_str){"", 0}, name);
    if (!path)
        return llm_converter_no_memory(err);
    return ggl_file_exists(path) ? llm_json_read(out, path, MAX_FILE, err) : GGL_OK;
}

ggl_status llm_converter_read_modules(llm_converter *c, const char *config, ggl_error *err) {
    text t = {0};
    ggl_status s = read_optional(c, "modules.json", &c->modules, err);
    if (s == GGL_OK)
        s = read_optional(c, "config_sentence_transformers.json", &c->prompts, err);
    if (s == GGL_OK)
        s = read_optional(c, "artifact.metadata", &c->artifact, err);
    if (s != GGL_OK || !c->modules)
        return s;
    s = check_kinds(c, err);
    for (size_t i = 0; i < c->modules->root.n && s == GGL_OK; i++) {
        const json_value *module = &c->modules->root.item[i];
        if (ggl_str_is(kind_of(module), "Pooling") || ggl_str_is(kind_of(module), "Dense"))
            s = read_module(c, &t, module, err);
    }
    if (s == GGL_OK && t.n > 0)
        s = extend_config(c, config, &t, err);
    ggl_free(t.s);
    return s;
}

/* --- tensors ---------------------------------------------------------------------------------- */

ggl_status llm_converter_add_modules(llm_converter *c, ggl_error *err) {
    int n = 0;
    ggl_status s = GGL_OK;
    for (size_t i = 0; c->modules && i < c->modules->root.n && s == GGL_OK; i++) {
        const json_value *module = &c->modules->root.item[i];
        if (!ggl_str_is(kind_of(module), "Dense"))
            continue;
        const ggl_str folder = folder_of(module);
        const char *name = ggl_arena_printf(&c->arena, "%.*s/model.safetensors", (int)folder.n,
                                            folder.s),
                   *prefix = ggl_arena_printf(&c->arena, "modules.Dense_%d.", n++);
        s = name && prefix ? llm_safetensors_add(c->source, c->folder, name, prefix, err)
                           : llm_converter_no_memory(err);
    }
    return s;
}

/* --- keys ------------------------------------------------------------------------------------- */

#define KEYS "sentence_transformers."

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
    static const char *const names[2][2] = {{"query_length", "attend_to_expansion_tokens"},
                                            {"query_maxlen", "attend_to_mask_tokens"}};
    const json_value *own = c->prompts ? &c->prompts->root : NULL, *root = own;
    const bool is_pylate = own && llm_json_get(own, names[0][0]);
    if (!is_pylate)
        root = c->artifact ? &c->artifact->root : NULL;
    const char *const *name = names[!is_pylate];
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
    return GGL_OK;
}

ggl_status llm_converter_put_modules(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    char key[2 * ARCH_MAX_NAME];
    bool normalizes = false;
    snprintf(key, sizeof key, "%s.pooling_type", c->conv.family);
    /* without a module for pooling it is 0: each row is a vector */
    if (c->modules && !llm_arch_converted_key(&c->conv, key))
        ggl_gguf_put(w, key, GGL_GGUF_U32, false, &(uint32_t){(uint32_t)c->pooling}, 1);
    for (size_t i = 0; c->modules && i < c->modules->root.n; i++)
        normalizes = normalizes || ggl_str_is(kind_of(&c->modules->root.item[i]), "Normalize");
    if (c->modules)
        ggl_gguf_put(w, KEYS "normalize", GGL_GGUF_BOOL, false, &(uint8_t){normalizes}, 1);
    return put_prompts(c, w, err);
}

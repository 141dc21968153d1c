/* PEFT folders: the config, the pairs, and the weights that they are for. See lora_recipe.c for the
 * recipes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "lora_impl.h"

#define MAX_CONFIG ((size_t)1 << 20)

/* --- the config ------------------------------------------------------------------------------- */

/* True for null, false, "none", and for what is empty: values that ask for nothing. */
static bool asks_nothing(const json_value *v) {
    return v->kind == JSON_NULL || (v->kind == JSON_BOOL && !v->flag) ||
           (v->kind == JSON_STRING && (v->n == 0 || llm_json_is(v, "none"))) ||
           ((v->kind == JSON_ARRAY || v->kind == JSON_OBJECT) && v->n == 0);
}

/* Values that are read here, or without effect on what the adapter computes. */
static const char *const known[] = {"peft_type",
                                    "r",
                                    "lora_alpha",
                                    "use_rslora",
                                    "use_dora",
                                    "fan_in_fan_out",
                                    "rank_pattern",
                                    "alpha_pattern",
                                    "init_lora_weights", /* read */
                                    "auto_mapping",
                                    "base_model_class",
                                    "base_model_name_or_path",
                                    "corda_config",
                                    "ensure_weight_tying",
                                    "eva_config",
                                    "exclude_modules",
                                    "inference_mode",
                                    "layers_pattern",
                                    "layers_to_transform",
                                    "loftq_config",
                                    "lora_dropout",
                                    "megatron_config",
                                    "megatron_core",
                                    "parent_library",
                                    "peft_version",
                                    "qalora_group_size",
                                    "revision",
                                    "runtime_config",
                                    "target_modules",
                                    "task_type"};

#define MERGE "; " LORA_MERGE_INSTEAD

/* Values that change what is computed in a way that pairs cannot express. */
static const struct {
    const char *name, *why;
} refused[] = {
    {"modules_to_save", "the adapter replaces whole weights of these modules" MERGE},
    {"bias", "the adapter changes biases" MERGE},
    {"lora_bias", "lora_B has a bias" MERGE},
    {"target_parameters", "the adapter changes parameters of joined experts" MERGE},
    {"trainable_token_indices", "the adapter replaces rows of the embedding" MERGE},
    {"layer_replication", "the adapter is for a model with repeated layers"},
    {"alora_invocation_tokens", "the adapter works only after certain tokens (activated LoRA)"},
    {"use_qalora", "QALoRA averages groups of the inputs"},
};

static ggl_status check_value(const llm_lora *l, ggl_str name, const json_value *v,
                              const llm_arch_ignore *ignore, ggl_error *err) {
    char text[80];
    const char *why = "this version does not know it";
    if (asks_nothing(v) || (ignore && arch_match_any(ignore->key, ignore->n_key, name)))
        return GGL_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ggl_str_is(name, known[i]))
            return GGL_OK;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (ggl_str_is(name, refused[i].name))
            why = refused[i].why;
    return ggl_fail(err, GGL_UNSUPPORTED, "%s: \"%.*s\" is %s: %s", l->config_path,
                    (int)(name.n < 100 ? name.n : 100), name.s,
                    llm_arch_json_text(v, text, sizeof text), why);
}

/* Refuses initial weights that PEFT subtracts from the model's: the pairs are right only with the
 * changed model. */
static ggl_status check_init(const llm_lora *l, ggl_error *err) {
    static const char *const residual[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};
    const json_value *v = llm_json_get_kind(&l->config->root, "init_lora_weights", JSON_STRING);
    for (size_t i = 0; v && i < sizeof residual / sizeof *residual; i++)
        if (v->n >= strlen(residual[i]) && memcmp(v->s, residual[i], strlen(residual[i])) == 0)
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: \"init_lora_weights\" is \"%s\", which changes the model's own "
                            "weights, too: save the adapter as an ordinary one "
                            "(path_initial_model_for_weight_conversion)",
                            l->config_path, residual[i]);
    return GGL_OK;
}

static bool flag_of(const llm_lora *l, const char *name) {
    const json_value *v = llm_json_get_kind(&l->config->root, name, JSON_BOOL);
    return v && v->flag;
}

static ggl_status read_config(llm_lora *l, const llm_arch_ignore *ignore, ggl_error *err) {
    l->config_path = ggl_arena_printf(&l->arena, "%s/adapter_config.json", l->folder);
    if (!l->config_path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = llm_json_read(&l->config, l->config_path, MAX_CONFIG, err);
    if (st != GGL_OK)
        return st;
    const json_value *root = &l->config->root, *type = llm_json_get(root, "peft_type");
    const json_value *r = llm_json_get_kind(root, "r", JSON_NUMBER);
    const json_value *alpha = llm_json_get_kind(root, "lora_alpha", JSON_NUMBER);
    if (!type || !llm_json_is(type, "LORA"))
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: \"peft_type\" is not \"LORA\"", l->config_path);
    if (!r || !r->whole || r->number < 1 || !alpha || !isfinite(alpha->number))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: \"r\" must be a whole number of at least 1, and \"lora_alpha\" a "
                        "finite number",
                        l->config_path);
    for (size_t i = 0; i < root->n && st == GGL_OK; i++)
        st = check_value(l, json_name(root, i), &root->item[i], ignore, err);
    l->rank = (int64_t)r->number;
    l->alpha = alpha->number;
    l->rslora = flag_of(l, "use_rslora");
    l->fan_in = flag_of(l, "fan_in_fan_out");
    l->dora = flag_of(l, "use_dora");
    return st == GGL_OK ? check_init(l, err) : st;
}

/* Finds the value of a pattern's table for a module: PEFT matches regular expressions with the end of
 * the module's name; here they must be plain names. *out is unchanged if none matches. */
static ggl_status find_pattern(const llm_lora *l, const char *table, ggl_str module, double *out,
                               ggl_error *err) {
    const json_value *v = llm_json_get_kind(&l->config->root, table, JSON_OBJECT);
    for (size_t i = 0; v && i < v->n; i++) {
        const ggl_str name = json_name(v, i);
        const json_value *x = &v->item[i];
        for (size_t k = 0; k < name.n; k++)
            if (strchr("\\^$*+?()[]{}|", name.s[k]))
                return ggl_fail(err, GGL_UNSUPPORTED,
                                "%s: \"%s\" has the regular expression \"%.*s\"; only names of "
                                "modules, or the ends of such names, are supported",
                                l->config_path, table, (int)(name.n < 100 ? name.n : 100), name.s);
        if (x->kind != JSON_NUMBER || !isfinite(x->number))
            return ggl_fail(err, GGL_FORMAT, "%s: \"%s\" has a value that is not a number",
                            l->config_path, table);
        const size_t at = module.n - name.n;
        if (name.n <= module.n && memcmp(module.s + at, name.s, name.n) == 0 &&
            (at == 0 || module.s[at - 1] == '.')) {
            *out = x->number;
            return GGL_OK;
        }
    }
    return GGL_OK;
}

/* --- pairs ------------------------------------------------------------------------------------ */

/* The ends of the names of halves, and of the lengths of rows (DoRA). */
static const struct {
    const char *end;
    enum { HALF_A, HALF_B, MAGNITUDE } part;
    bool embedding;
} halves[] = {{".lora_A.weight", HALF_A, false},
              {".lora_B.weight", HALF_B, false},
              {".lora_embedding_A", HALF_A, true},
              {".lora_embedding_B", HALF_B, true},
              {".lora_magnitude_vector", MAGNITUDE, false},
              {".lora_magnitude_vector.weight", MAGNITUDE, false}};

/* Notes a tensor that is no part of a pair (lora_copies.c); name: in the model. */
static ggl_status add_copy(llm_lora *l, const st_tensor *t, const char *name, ggl_error *err) {
    static const char base[] = ".base_layer.";
    const char *at = strstr(name, base);
    const char *own =
        at ? ggl_arena_printf(&l->arena, "%.*s.%s", (int)(at - name), name, at + strlen(base))
           : name;
    if (!own || !ggl_grow(&l->copy, &l->cap_copy, l->n_copy + 1, sizeof *l->copy))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    l->copy[l->n_copy++] = (lora_copy){.name = own, .tensor = t, .has_pair = at != NULL};
    return GGL_OK;
}

/* Adds a tensor of the folder to its pair. */
static ggl_status add_half(llm_lora *l, const st_tensor *t, ggl_error *err) {
    static const char prefix[] = "base_model.model.";
    const size_t at = strncmp(t->name.s, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
    size_t k = 0, n = 0;
    for (; k < sizeof halves / sizeof *halves; k++) {
        n = strlen(halves[k].end);
        if (t->name.n > at + n && strcmp(t->name.s + t->name.n - n, halves[k].end) == 0)
            break;
    }
    if (k == sizeof halves / sizeof *halves)
        return add_copy(l, t, t->name.s + at, err);
    const char *own =
        ggl_arena_printf(&l->arena, "%.*s.weight", (int)(t->name.n - n - at), t->name.s + at);
    if (!own)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    l->weight[l->n] = (lora_weight){.name = {own, strlen(own)}};
    const size_t i = ggl_index_put(&l->by_name, l->weight, l->n); /* of the pair's first part */
    l->n += i == l->n;
    lora_weight *w = &l->weight[i];
    const bool is_half = halves[k].part != MAGNITUDE;
    if (is_half && (w->a || w->b) && w->embedding != halves[k].embedding)
        return ggl_fail(err, GGL_FORMAT, "%s: %.300s has halves of two kinds", l->file_path, own);
    if (is_half) {
        w->embedding = halves[k].embedding;
        w->flipped = w->embedding || l->fan_in;
    }
    const st_tensor **half = (const st_tensor **[]){&w->a, &w->b, &w->magnitude}[halves[k].part];
    if (*half)
        return ggl_fail(err, GGL_FORMAT, "%s: %.300s has the same part twice, also as %.*s",
                        l->file_path, own, (int)t->name.n, t->name.s);
    *half = t;
    return GGL_OK;
}

/* Checks the lengths of a pair's rows, if there are some. */
static ggl_status check_magnitude(const llm_lora *l, const lora_weight *w, ggl_error *err) {
    const int n = (int)(w->name.n - strlen(".weight"));
    const st_tensor *m = w->magnitude;
    if (l->dora != (m != NULL))
        return ggl_fail(err, GGL_FORMAT, "%s: %.*s has %s lora_magnitude_vector, but %s says %s",
                        l->file_path, n, w->name.s, m ? "a" : "no", l->config_path,
                        l->dora ? "\"use_dora\": true" : "nothing of \"use_dora\": true");
    if (m && w->embedding)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: %.*s is an embedding: the magnitudes that PEFT gives it, one for each "
                        "column of the table (\"use_dora\"), have no form in GGUF",
                        l->file_path, n, w->name.s);
    if (!m || (m->n_dims == 1 && m->type >= 0 && m->ne[0] == w->b->ne[1]))
        return GGL_OK;
    return ggl_fail(err, GGL_SHAPE,
                    "%s: %.*s has a lora_magnitude_vector %s with %d dimension%s and %" PRId64
                    " numbers; a vector of f32, f16, bf16 or f64 with one for each of %" PRId64
                    " rows is expected",
                    l->file_path, n, w->name.s, m->dtype, m->n_dims, m->n_dims == 1 ? "" : "s",
                    m->ne[0], w->b->ne[1]);
}

/* Checks a pair and sets its rank and factor. */
static ggl_status check_pair(llm_lora *l, lora_weight *w, ggl_error *err) {
    const size_t n = w->name.n - strlen(".weight");
    double alpha = l->alpha, rank = (double)l->rank;
    if (!w->a || !w->b)
        return ggl_fail(err, GGL_FORMAT, "%s: %.*s has no lora_%c: half of a pair", l->file_path,
                        (int)n, w->name.s, w->a ? 'B' : 'A');
    const st_tensor *a = w->a, *b = w->b;
    const ggl_status lengths = check_magnitude(l, w, err);
    if (lengths != GGL_OK)
        return lengths;
    w->rank = b->ne[0];
    if (a->n_dims != 2 || b->n_dims != 2 || a->type < 0 || b->type < 0 || a->ne[1] != w->rank ||
        w->rank < 1)
        return ggl_fail(err, GGL_SHAPE,
                        "%s: %.*s has lora_A %s with %d dimensions and lora_B %s with %d: two "
                        "matrices of f32, f16, bf16 or f64 with the same rank are expected",
                        l->file_path, (int)n, w->name.s, a->dtype, a->n_dims, b->dtype, b->n_dims);
    ggl_status st = find_pattern(l, "rank_pattern", (ggl_str){w->name.s, n}, &rank, err);
    if (st == GGL_OK)
        st = find_pattern(l, "alpha_pattern", (ggl_str){w->name.s, n}, &alpha, err);
    if (st == GGL_OK && rank != (double)w->rank)
        st = ggl_fail(err, GGL_SHAPE, "%s: %.*s has the rank %" PRId64 ", but %s says %g",
                      l->file_path, (int)n, w->name.s, w->rank, l->config_path, rank);
    /* the file's reader computes key / rank; the key is that of the config's own r and alpha */
    const double own = l->rslora ? alpha / sqrt(rank) : alpha / rank;
    const double read = llm_lora_alpha(l) / rank;
    w->factor = read != 0 ? own / read : 1;
    if (st == GGL_OK && read == 0 && own != 0)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "%s: \"lora_alpha\" is 0, but %.*s has another one by \"alpha_pattern\"",
                      l->config_path, (int)n, w->name.s);
    return st;
}

double llm_lora_alpha(const llm_lora *l) {
    return l->rslora ? l->alpha * sqrt((double)l->rank) : l->alpha;
}

/* Makes the weights as tensors without data, under their names in the model's folder. */
static ggl_status make_weights(llm_lora *l, ggl_error *err) {
    llm_safetensors *st = l->weights = ggl_calloc(1, sizeof *st);
    l->model = st;
    if (!st || !(st->tensor = ggl_calloc(l->n, sizeof *st->tensor)))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status s = ggl_index_init(&st->by_name, l->n, sizeof *st->tensor, GGL_INDEX_STRINGS, err);
    for (size_t i = 0; i < l->n && s == GGL_OK; i++) {
        const lora_weight *w = &l->weight[i];
        st_tensor *t = &st->tensor[st->n_tensor++];
        *t = (st_tensor){.name = w->name, .dtype = "F32", .type = GGL_F32, .n_dims = 2};
        for (int d = 0; d < LLM_ST_MAX_DIMS; d++)
            t->ne[d] = 1;
        t->ne[w->flipped] = w->a->ne[0];
        t->ne[!w->flipped] = w->b->ne[1];
        (void)ggl_index_put(&st->by_name, st->tensor, i);
    }
    return s;
}

static ggl_status open_pairs(llm_lora *l, ggl_error *err) {
    l->file_path = ggl_arena_printf(&l->arena, "%s/adapter_model.safetensors", l->folder);
    if (!l->file_path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = ggl_file_map_open(&l->map, l->file_path, err);
    if (st == GGL_OK)
        st = llm_safetensors_open_memory(&l->file, l->map.data, l->map.size, l->file_path, err);
    if (st != GGL_OK)
        return st;
    if (l->file->n_tensor == 0)
        return ggl_fail(err, GGL_FORMAT, "%s has no tensors", l->file_path);
    if (!(l->weight = ggl_calloc(l->file->n_tensor + 1, sizeof *l->weight)))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    st = ggl_index_init(&l->by_name, l->file->n_tensor, sizeof *l->weight, GGL_INDEX_STRINGS, err);
    for (size_t i = 0; i < l->file->n_tensor && st == GGL_OK; i++)
        st = add_half(l, &l->file->tensor[i], err);
    for (size_t i = 0; i < l->n && st == GGL_OK; i++)
        st = check_pair(l, &l->weight[i], err);
    if (st == GGL_OK && l->n == 0)
        st = ggl_fail(err, GGL_FORMAT, "%s has no pairs (lora_A, lora_B)", l->file_path);
    return st == GGL_OK ? make_weights(l, err) : st;
}

/* True if the weight may be the embedding of the model's tokens: no other table has as many rows. n_vocab 0: not known. */
static bool is_of_tokens(const lora_weight *w, uint64_t n_vocab) {
    return w->embedding && (n_vocab == 0 || (uint64_t)w->a->ne[0] == n_vocab);
}

/* True if the section makes a matrix for the output of some models. */
static bool has_output(const arch_convert *section) {
    bool any = false;
    for (const arch_mapping *m = section->map; m && !any; m = m->next)
        any = m->kind == MAP_WEIGHT && strcmp(m->name, "output") == 0;
    return any;
}

bool llm_lora_is_head(const char *name) {
    return ggl_ends_with(name, "lm_head.weight");
}

ggl_status llm_lora_check_model(llm_lora *l, const json_value *config, const arch_convert *section,
                                bool writes, ggl_error *err) {
    const json_value *tied = llm_json_get_kind(config, "tie_word_embeddings", JSON_BOOL);
    const json_value *vocab = llm_json_get_kind(config, "vocab_size", JSON_NUMBER);
    uint64_t n_vocab = 0;
    bool negative;
    if (vocab && !llm_json_integer(vocab, &n_vocab, &negative))
        n_vocab = 0;
    l->tied = writes && tied && tied->flag && has_output(section);
    for (size_t i = 0; i < l->n && writes && !l->tied; i++)
        if (is_of_tokens(&l->weight[i], n_vocab) && !(tied && !tied->flag))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: %.300s is the embedding, and config.json does not say that the "
                            "output has a matrix of its own (\"tie_word_embeddings\": false): PEFT "
                            "changes the embedding only, the engine would change both uses",
                            l->file_path, l->weight[i].name.s);
    return GGL_OK;
}

/* Finds NAME.weight, or in a quantized folder its codes. */
static const st_tensor *find_weight(const llm_safetensors *model, const char *name) {
    static const char end[] = ".weight";
    static const char *const others[] = {".weight_packed", ".qweight"};
    char buf[700];
    const size_t n = strlen(name), m = sizeof end - 1;
    const st_tensor *t = llm_safetensors_find(model, name);
    for (int k = 0; k < 2 && !t && n > m && strcmp(name + n - m, end) == 0; k++) {
        snprintf(buf, sizeof buf, "%.*s%s", (int)(n - m), name, others[k]);
        t = llm_safetensors_find(model, buf);
    }
    return t;
}

const st_tensor *llm_lora_find_in(const llm_safetensors *model, const arch_convert *section,
                                  const char *name) {
    char buf[700];
    const st_tensor *t = find_weight(model, name);
    for (const arch_mapping *m = section->map; m && !t; m = m->next)
        for (int k = 0; k < 2 && m->kind == MAP_PREFIX && !t; k++) {
            const char *from = k ? m->other : m->name, *to = k ? m->name : m->other;
            const size_t n = strlen(from);
            if (strncmp(name, from, n) != 0)
                continue;
            snprintf(buf, sizeof buf, "%s%s", to, name + n);
            t = find_weight(model, buf);
        }
    return t;
}

/* Finds the weights among the tensors of the model's folder. */
static ggl_status match(llm_lora *l, const arch_convert *section, const llm_safetensors *model,
                        ggl_error *err) {
    l->model = model;
    if (!(l->pair_of = ggl_calloc(model->n_tensor + 1, sizeof *l->pair_of)))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < l->n; i++) {
        const st_tensor *w = &l->weights->tensor[i],
                        *t = llm_lora_find_in(model, section, w->name.s);
        if (t) /* llm_lora_check_used reports others */
            l->pair_of[t - model->tensor] = i + 1;
    }
    return GGL_OK;
}

/* --- the folder ------------------------------------------------------------------------------- */

ggl_status llm_lora_open(llm_lora **out, const char *folder, const llm_arch_ignore *ignore,
                         ggl_error *err) {
    *out = NULL;
    llm_lora *l = ggl_calloc(1, sizeof *l);
    if (!l)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    l->folder = ggl_arena_strndup(&l->arena, folder, strlen(folder));
    ggl_status st =
        l->folder ? read_config(l, ignore, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = open_pairs(l, err);
    if (st == GGL_OK)
        *out = l;
    else
        llm_lora_free(l);
    return st;
}

void llm_lora_free(llm_lora *l) {
    if (!l)
        return;
    llm_safetensors_close(l->weights);
    llm_safetensors_close(l->file);
    ggl_file_map_close(&l->map);
    llm_json_free(l->config);
    ggl_index_fini(&l->by_name);
    ggl_free(l->weight);
    ggl_free(l->copy);
    ggl_free(l->pair_of);
    ggl_arena_fini(&l->arena);
    ggl_free(l);
}

ggl_status llm_lora_choose_source(llm_lora *l, arch_conversion *c, llm_safetensors **source,
                                  ggl_status opened, ggl_error *err) {
    c->only_some = true;
    if (l->task) {
        ggl_status st = opened == GGL_OK ? llm_lora_find_tasks(l, *source, err) : opened;
        if (st == GGL_OK)
            st = make_weights(l, err);
        return st == GGL_OK ? match(l, c->section, *source, err) : st;
    }
    c->partial = opened == GGL_NOT_FOUND;
    if (c->partial)
        *source = l->weights;
    return opened == GGL_OK ? match(l, c->section, *source, err) : c->partial ? GGL_OK : opened;
}

void llm_lora_put_keys(const llm_lora *l, ggl_gguf_writer *w) {
    const float alpha = (float)llm_lora_alpha(l);
    ggl_gguf_put_string(w, "general.type", "adapter", strlen("adapter"));
    ggl_gguf_put_string(w, "adapter.type", "lora", strlen("lora"));
    ggl_gguf_put(w, "adapter.lora.alpha", GGL_GGUF_F32, false, &alpha, 1);
    if (l->task)
        ggl_gguf_put_string(w, "adapter.lora.task_name", l->task, strlen(l->task));
    if (l->task && *l->prompt)
        ggl_gguf_put_string(w, "adapter.lora.prompt_prefix", l->prompt, strlen(l->prompt));
}

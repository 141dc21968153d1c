#include "hf_layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- tensors ---------------------------------------------------------------------------------- */

static int64_t count_of(const layout_tensor *t) {
    int64_t n = 1;
    for (int d = 0; d < t->n_dims; d++)
        n *= t->ne[d];
    return n;
}

static layout_tensor *add(layout *l, const char *name, int n_dims, const int64_t *ne,
                          bool with_data) {
    if (!l->tensor)
        l->tensor = calloc(MAX_TENSORS, sizeof *l->tensor);
    if (l->n == MAX_TENSORS)
        abort();
    layout_tensor *t = &l->tensor[l->n++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->n_dims = n_dims;
    memcpy(t->ne, ne, (size_t)n_dims * sizeof *ne);
    t->data = with_data ? calloc((size_t)count_of(t) + 1, sizeof *t->data) : NULL;
    return t;
}

void layout_free(layout *l) {
    for (int i = 0; i < l->n; i++)
        free(l->tensor[i].data);
    free(l->tensor);
    *l = (layout){0};
}

layout_tensor *layout_find(const layout *l, const char *name) {
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->tensor[i].name, name) == 0)
            return &l->tensor[i];
    return NULL;
}

static const char *key_text(const layout *l, const char *name) {
    size_t n = strlen(name);
    for (const char *s = l->keys; s && *s; s += strspn(s, " ")) {
        if (strncmp(s, name, n) == 0 && s[n] == '=')
            return s + n + 1;
        s += strcspn(s, " ");
    }
    return NULL;
}

double layout_key(const layout *l, const char *name) {
    const char *s = key_text(l, name);
    return s ? strtod(s, NULL) : NAN;
}

/* --- from a descriptor ------------------------------------------------------------------------ */

typedef struct making {
    layout *l;
    const char *family, *optional;
    bool with_data;
    uint64_t seed;
} making;

static bool find_key(void *ctx, const char *name, llm_arch_key *out) {
    making *m = ctx;
    size_t n = strlen(m->family);
    const char *s = strcmp(name, "general.architecture") == 0 ? m->family : NULL;
    if (strncmp(name, m->family, n) == 0 && name[n] == '.')
        s = key_text(m->l, name + n + 1);
    *out = (llm_arch_key){
        .type = s && *s >= 'a' ? LLM_ARCH_STRING : LLM_ARCH_NUMBER, .n = 1, .handle = s};
    return s != NULL;
}

static bool get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    (void)ctx;
    (void)i;
    *out = (llm_arch_item){.number = strtod(key->handle, NULL),
                           .string = {key->handle, strcspn(key->handle, " ")}};
    return true;
}

static bool has_word(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *s = list; s && (s = strstr(s, name)); s++)
        if ((s[n] == 0 || s[n] == ' ') && (s == list || s[-1] == ' '))
            return true;
    return false;
}

static bool find_tensor(void *ctx, llm_arch_tensor *t) {
    making *m = ctx;
    const char *dot = strncmp(t->name, "blk.", 4) == 0 ? strchr(t->name + 4, '.') + 1 : t->name;
    if (t->optional && !has_word(m->optional, dot))
        return false;
    layout_tensor *x = layout_find(m->l, t->name);
    if (!x) {
        x = add(m->l, t->name, t->n_dims, t->ne, m->with_data);
        for (int64_t i = 0; m->with_data && i < count_of(x); i++) {
            m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
            x->data[i] = (float)((int)(m->seed >> 33) % 1021 - 510) / 256; /* f16 can hold it */
        }
    }
    t->type = GGL_F32;
    t->n_dims = x->n_dims;
    t->data = x->data;
    return true;
}

bool layout_make(layout *l, const char *family, const char *keys, const char *optional,
                 bool with_data) {
    *l = (layout){.keys = keys};
    making m = {l, family, optional, with_data, 1};
    llm_arch_source src = {.ctx = &m,
                           .name = "made",
                           .find_key = find_key,
                           .get_item = get_item,
                           .find_tensor = find_tensor};
    llm_arch *arch;
    ggl_error err = {0};
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_status s = llm_arch_open(&arch, family, &err);
    if (s == GGL_OK)
        s = llm_arch_build(arch, &src,
                           &(llm_arch_params){.size = sizeof(llm_arch_params),
                                              .n_ctx = (int64_t)layout_key(l, "context_length")},
                           g, NULL, &err);
    if (s != GGL_OK)
        fprintf(stderr, "%s: %s\n", family, err.msg);
    ggl_graph_free(g);
    llm_arch_free(arch);
    return s == GGL_OK;
}

bool layout_read(layout *l, const ggl_gguf *f, const char *keys) {
    *l = (layout){.keys = keys};
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        memcpy(add(l, name, t->n_dims, t->ne, true)->data, t->data, t->size);
    }
    return l->n > 0;
}

/* --- to Hugging Face's ------------------------------------------------------------------------ */

typedef struct inverse {
    const layout *from;
    layout *to;
    int layer;
    int64_t n_embd, n_head, n_kv;
} inverse;

static const char *format(const char *s, int layer, int e) {
    static char buf[4][160];
    static int next;
    char *to = buf[next = (next + 1) % 4], *end = to + 140;
    for (; *s && to < end; s++) {
        if (strncmp(s, "{l}", 3) == 0 || strncmp(s, "{e}", 3) == 0) {
            to += snprintf(to, 8, "%d", s[1] == 'l' ? layer : e);
            s += 2;
        } else {
            *to++ = *s;
        }
    }
    *to = 0;
    return buf[next];
}

/* Which row (of the last dimension) of the GGUF tensor is row r of Hugging Face's. */
typedef int64_t (*row_map)(const inverse *v, int64_t r, int64_t n_rows, int64_t a, int64_t b);

static int64_t same_row(const inverse *v, int64_t r, int64_t n, int64_t a, int64_t b) {
    (void)v, (void)n, (void)a, (void)b;
    return r;
}

/* a heads: the first half of a head's rows are the even ones, the second the odd ones. */
static int64_t half_row(const inverse *v, int64_t r, int64_t n, int64_t a, int64_t b) {
    (void)v, (void)b;
    int64_t d = n / a, head = r / d, i = r % d;
    return head * d + (i < d / 2 ? 2 * i : 2 * (i - d / 2) + 1);
}

/* Hugging Face has a x b x rest, GGUF b x a x rest; of the last `n - from` rows where from is given in v->layer's place. */
static int64_t first_grouped;
static int64_t group_row(const inverse *v, int64_t r, int64_t n, int64_t a, int64_t b) {
    (void)v;
    if (r < first_grouped)
        return r;
    int64_t at = r - first_grouped, rest = (n - first_grouped) / (a * b);
    int64_t i = at / rest / b, j = at / rest % b, k = at % rest;
    return first_grouped + (j * a + i) * rest + k;
}

/* One tensor, its rows rearranged; absent: nothing. */
static layout_tensor *put(inverse *v, const char *hf, const char *gguf, row_map map, int64_t a,
                          int64_t b) {
    const layout_tensor *t = layout_find(v->from, format(gguf, v->layer, 0));
    if (!t)
        return NULL;
    layout_tensor *x = add(v->to, format(hf, v->layer, 0), t->n_dims, t->ne, t->data != NULL);
    int64_t rows = t->ne[t->n_dims - 1], size = count_of(t) / rows;
    for (int64_t r = 0; t->data && r < rows; r++)
        memcpy(x->data + r * size, t->data + map(v, r, rows, a, b) * size,
               (size_t)size * sizeof(float));
    return x;
}

/* A weight with its bias, if it has one: "stem" to "stem". */
static layout_tensor *put_both(inverse *v, const char *hf, const char *gguf, row_map map, int64_t a,
                               int64_t b) {
    char to[2][160], from[2][160];
    for (int k = 0; k < 2; k++) {
        snprintf(to[k], sizeof to[k], "%s.%s", hf, k ? "bias" : "weight");
        snprintf(from[k], sizeof from[k], "%s.%s", gguf, k ? "bias" : "weight");
    }
    put(v, to[1], from[1], map, a, b);
    return put(v, to[0], from[0], map, a, b);
}

static layout_tensor *same(inverse *v, const char *hf, const char *gguf) {
    return put_both(v, hf, gguf, same_row, 1, 1);
}

static void less_one(inverse *v, const char *hf, const char *gguf) {
    layout_tensor *t = same(v, hf, gguf);
    for (int64_t i = 0; t && t->data && i < count_of(t); i++)
        t->data[i] -= 1;
}

static void transposed(layout_tensor *t) {
    int64_t a = t->ne[0], b = t->ne[1];
    float *x = t->data ? malloc((size_t)(a * b) * sizeof *x) : NULL;
    for (int64_t i = 0; x && i < a * b; i++)
        x[i % a * b + i / a] = t->data[i];
    free(t->data);
    t->data = x;
    t->ne[0] = b;
    t->ne[1] = a;
}

/* The last dimension's matrices, each a tensor of its own. */
static void unstacked(inverse *v, const char *hf, const char *gguf) {
    const layout_tensor *t = layout_find(v->from, format(gguf, v->layer, 0));
    for (int e = 0; t && e < t->ne[2]; e++) {
        layout_tensor *x = add(v->to, format(hf, v->layer, e), 2, t->ne, t->data != NULL);
        if (t->data)
            memcpy(x->data, t->data + e * count_of(x), (size_t)count_of(x) * sizeof(float));
    }
}

#define L "model.layers.{l}."
#define B "blk.{l}."

static void llama_layer(inverse *v, bool half) {
    row_map map = half ? same_row : half_row;
    same(v, L "input_layernorm", B "attn_norm");
    put_both(v, L "self_attn.q_proj", B "attn_q", map, v->n_head, 1);
    put_both(v, L "self_attn.k_proj", B "attn_k", map, v->n_kv, 1);
    same(v, L "self_attn.v_proj", B "attn_v");
    same(v, L "self_attn.o_proj", B "attn_output");
    same(v, L "self_attn.q_norm", B "attn_q_norm");
    same(v, L "self_attn.k_norm", B "attn_k_norm");
    same(v, L "post_attention_layernorm", B "ffn_norm");
    same(v, L "mlp.gate_proj", B "ffn_gate");
    same(v, L "mlp.up_proj", B "ffn_up");
    same(v, L "mlp.down_proj", B "ffn_down");
}

static void llama(inverse *v) {
    llama_layer(v, false);
    same(v, L "block_sparse_moe.gate", B "ffn_gate_inp");
    unstacked(v, L "block_sparse_moe.experts.{e}.w1.weight", B "ffn_gate_exps.weight");
    unstacked(v, L "block_sparse_moe.experts.{e}.w3.weight", B "ffn_up_exps.weight");
    unstacked(v, L "block_sparse_moe.experts.{e}.w2.weight", B "ffn_down_exps.weight");
}

static void qwen(inverse *v) {
    llama_layer(v, true);
    same(v, L "mlp.gate", B "ffn_gate_inp");
    unstacked(v, L "mlp.experts.{e}.gate_proj.weight", B "ffn_gate_exps.weight");
    unstacked(v, L "mlp.experts.{e}.up_proj.weight", B "ffn_up_exps.weight");
    unstacked(v, L "mlp.experts.{e}.down_proj.weight", B "ffn_down_exps.weight");
}

static void gemma2(inverse *v) {
    less_one(v, L "input_layernorm", B "attn_norm");
    same(v, L "self_attn.q_proj", B "attn_q");
    same(v, L "self_attn.k_proj", B "attn_k");
    same(v, L "self_attn.v_proj", B "attn_v");
    same(v, L "self_attn.o_proj", B "attn_output");
    less_one(v, L "post_attention_layernorm", B "post_attention_norm");
    less_one(v, L "pre_feedforward_layernorm", B "ffn_norm");
    same(v, L "mlp.gate_proj", B "ffn_gate");
    same(v, L "mlp.up_proj", B "ffn_up");
    same(v, L "mlp.down_proj", B "ffn_down");
    less_one(v, L "post_feedforward_layernorm", B "post_ffw_norm");
}

static void phi3(inverse *v) {
    same(v, L "input_layernorm", B "attn_norm");
    same(v, L "self_attn.qkv_proj", B "attn_qkv");
    same(v, L "self_attn.o_proj", B "attn_output");
    same(v, L "post_attention_layernorm", B "ffn_norm");
    same(v, L "mlp.gate_up_proj", B "ffn_up");
    same(v, L "mlp.down_proj", B "ffn_down");
}

static void gpt2(inverse *v) {
    same(v, "transformer.h.{l}.ln_1", B "attn_norm");
    transposed(same(v, "transformer.h.{l}.attn.c_attn", B "attn_qkv"));
    transposed(same(v, "transformer.h.{l}.attn.c_proj", B "attn_output"));
    same(v, "transformer.h.{l}.ln_2", B "ffn_norm");
    transposed(same(v, "transformer.h.{l}.mlp.c_fc", B "ffn_up"));
    transposed(same(v, "transformer.h.{l}.mlp.c_proj", B "ffn_down"));
    add(v->to, format("transformer.h.{l}.attn.bias", v->layer, 0), 2, (int64_t[]){4, 4},
        v->from->tensor->data != NULL);
}

static void bloom(inverse *v) {
    same(v, "h.{l}.input_layernorm", B "attn_norm");
    first_grouped = 0;
    put_both(v, "h.{l}.self_attention.query_key_value", B "attn_qkv", group_row, v->n_head, 3);
    same(v, "h.{l}.self_attention.dense", B "attn_output");
    same(v, "h.{l}.post_attention_layernorm", B "ffn_norm");
    same(v, "h.{l}.mlp.dense_h_to_4h", B "ffn_up");
    same(v, "h.{l}.mlp.dense_4h_to_h", B "ffn_down");
}

static void qwen35(inverse *v) {
    int64_t k = (int64_t)layout_key(v->from, "ssm.group_count"),
            d = (int64_t)layout_key(v->from, "ssm.state_size");
    int64_t times = (int64_t)layout_key(v->from, "ssm.time_step_rank") / k;
    less_one(v, L "input_layernorm", B "attn_norm");
    same(v, L "self_attn.q_proj", B "attn_q");
    same(v, L "self_attn.k_proj", B "attn_k");
    same(v, L "self_attn.v_proj", B "attn_v");
    same(v, L "self_attn.o_proj", B "attn_output");
    less_one(v, L "self_attn.q_norm", B "attn_q_norm");
    less_one(v, L "self_attn.k_norm", B "attn_k_norm");
    first_grouped = 2 * k * d;
    put_both(v, L "linear_attn.in_proj_qkv", B "attn_qkv", group_row, k, times);
    layout_tensor *t = put_both(v, L "linear_attn.conv1d", B "ssm_conv1d", group_row, k, times);
    if (t) { /* [channels, 1, taps] */
        t->n_dims = 3;
        t->ne[2] = t->ne[1];
        t->ne[1] = 1;
    }
    first_grouped = 0;
    put_both(v, L "linear_attn.in_proj_z", B "attn_gate", group_row, k, times);
    put_both(v, L "linear_attn.in_proj_a", B "ssm_alpha", group_row, k, times);
    put_both(v, L "linear_attn.in_proj_b", B "ssm_beta", group_row, k, times);
    put(v, L "linear_attn.dt_bias", B "ssm_dt.bias", group_row, k, times);
    t = put(v, L "linear_attn.A_log", B "ssm_a", group_row, k, times);
    for (int64_t i = 0; t && t->data && i < count_of(t); i++)
        t->data[i] = logf(-t->data[i]);
    same(v, L "linear_attn.norm", B "ssm_norm");
    layout out = {.n = 0}; /* columns: rows of the transposed */
    const layout_tensor *o = layout_find(v->from, format(B "ssm_out.weight", v->layer, 0));
    if (o) {
        layout_tensor *x = add(&out, o->name, 2, o->ne, o->data != NULL);
        if (o->data)
            memcpy(x->data, o->data, (size_t)count_of(o) * sizeof(float));
        transposed(x);
        inverse w = {&out, v->to, v->layer, 0, 0, 0};
        transposed(put_both(&w, L "linear_attn.out_proj", B "ssm_out", group_row, k, times));
        layout_free(&out);
    }
    less_one(v, L "post_attention_layernorm", B "post_attention_norm");
    same(v, L "mlp.gate_proj", B "ffn_gate");
    same(v, L "mlp.up_proj", B "ffn_up");
    same(v, L "mlp.down_proj", B "ffn_down");
}

static const struct {
    const char *name;
    void (*layer)(inverse *v);
    bool old_names, one_less;
    const char *prefix; /* old_names: before each */
} classes[] = {{"LlamaForCausalLM", llama, false, false, ""},
               {"MixtralForCausalLM", llama, false, false, ""},
               {"MistralForCausalLM", llama, false, false, ""},
               {"Qwen2ForCausalLM", qwen, false, false, ""},
               {"Qwen3ForCausalLM", qwen, false, false, ""},
               {"Qwen3MoeForCausalLM", qwen, false, false, ""},
               {"Gemma2ForCausalLM", gemma2, false, true, ""},
               {"Phi3ForCausalLM", phi3, false, false, ""},
               {"GPT2LMHeadModel", gpt2, true, false, "transformer."},
               {"BloomForCausalLM", bloom, true, false, ""},
               {"Qwen3_5ForCausalLM", qwen35, false, true, ""}};

/* Appends "name": the key's value. */
static void put_key(const layout *l, char *buf, const char *name, const char *key) {
    if (!isnan(layout_key(l, key)))
        sprintf(buf + strlen(buf), ",\n  \"%s\": %.*s", name, (int)strcspn(key_text(l, key), " "),
                key_text(l, key));
}

static void put_numbers(char *buf, const char *name, const layout_tensor *t) {
    sprintf(buf + strlen(buf), "\"%s\": [", name);
    for (int64_t i = 0; i < count_of(t); i++)
        sprintf(buf + strlen(buf), "%s%.9g", i ? ", " : "", (double)t->data[i]);
    strcat(buf, "]");
}

static void put_config(const layout *l, const char *class_name, char *buf) {
    bool gpt = strncmp(class_name, "GPT2", 4) == 0, is_bloom = strncmp(class_name, "Bloom", 5) == 0;
    bool is_gemma = strncmp(class_name, "Gemma", 5) == 0;
    sprintf(buf, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"x\"", class_name);
    static const char *const keys[][3] = {
        /* others', gpt2's and bloom's, GGUF's */
        {"num_hidden_layers", "n_layer", "block_count"},
        {"hidden_size", "n_embd", "embedding_length"},
        {"intermediate_size", "n_inner", "feed_forward_length"},
        {"num_attention_heads", "n_head", "attention.head_count"},
        {"num_key_value_heads", "", "attention.head_count_kv"},
        {"head_dim", "", "attention.key_length"},
        {"rms_norm_eps", "layer_norm_epsilon", "attention.layer_norm_rms_epsilon"},
        {"rms_norm_eps", "layer_norm_epsilon", "attention.layer_norm_epsilon"},
        {"max_position_embeddings", "n_positions", "context_length"},
        {"vocab_size", "vocab_size", "vocab_size"},
        {"num_local_experts", "", "expert_count"},
        {"num_experts_per_tok", "", "expert_used_count"},
        {"moe_intermediate_size", "", "expert_feed_forward_length"},
        {"sliding_window", "", "attention.sliding_window"},
        {"attn_logit_softcapping", "", "attn_logit_softcapping"},
        {"final_logit_softcapping", "", "final_logit_softcapping"},
        {"query_pre_attn_scalar", "", "attention.key_length"},
        {"full_attention_interval", "", "full_attention_interval"},
        {"linear_conv_kernel_dim", "", "ssm.conv_kernel"},
        {"linear_key_head_dim", "", "ssm.state_size"},
        {"linear_value_head_dim", "", "ssm.state_size"},
        {"linear_num_key_heads", "", "ssm.group_count"},
        {"linear_num_value_heads", "", "ssm.time_step_rank"},
    };
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const char *name = keys[k][gpt || is_bloom];
        bool moe = strcmp(name, "num_local_experts") == 0 && strncmp(class_name, "Qwen3", 5) == 0;
        if (is_bloom && strcmp(name, "n_embd") == 0)
            name = "hidden_size";
        if (is_bloom && strcmp(name, "n_positions") == 0)
            name = "seq_length";
        if (name[0] && (is_gemma || strcmp(name, "query_pre_attn_scalar") != 0))
            put_key(l, buf, moe ? "num_experts" : name, keys[k][2]);
    }
    if (strncmp(class_name, "Qwen3Moe", 8) == 0)
        strcat(buf, ",\n  \"norm_topk_prob\": true");
    sprintf(buf + strlen(buf), ",\n  \"tie_word_embeddings\": %s",
            layout_find(l, "output.weight") ? "false" : "true");
}

/* As transformers 4 has it; of Qwen 3.5 as 5 has it. */
static void put_rotation(const layout *l, const char *class_name, char *buf) {
    if (strncmp(class_name, "Qwen3_5", 7) != 0)
        put_key(l, buf, "rope_theta", "rope.freq_base");
    else
        sprintf(buf + strlen(buf),
                ",\n  \"rope_parameters\": {\"rope_theta\": %g, \"partial_rotary_factor\": %g}",
                layout_key(l, "rope.freq_base"),
                layout_key(l, "rope.dimension_count") / layout_key(l, "attention.key_length"));
    if (!isnan(layout_key(l, "rope.scaling.factor")))
        sprintf(buf + strlen(buf),
                ",\n  \"rope_scaling\": {\"rope_type\": \"%.*s\", \"factor\": %g",
                (int)strcspn(key_text(l, "rope.scaling.type"), " "),
                key_text(l, "rope.scaling.type"), layout_key(l, "rope.scaling.factor"));
    const bool scaled = !isnan(layout_key(l, "rope.scaling.factor"));
    if (scaled && !isnan(layout_key(l, "rope.scaling.original_context_length")))
        sprintf(buf + strlen(buf), ", \"original_max_position_embeddings\": %.0f",
                layout_key(l, "rope.scaling.original_context_length"));
    strcat(buf, scaled ? "}" : "");
    const layout_tensor *factors = layout_find(l, "rope_factors_long.weight");
    if (factors && factors->data) {
        strcat(buf, ",\n  \"rope_scaling\": {\"type\": \"longrope\", ");
        put_numbers(buf, "long_factor", factors);
        put_numbers(strcat(buf, ", "), "short_factor", layout_find(l, "rope_factors_short.weight"));
        strcat(buf, "}");
    }
    if (factors)
        put_key(l, buf, "original_max_position_embeddings", "rope.scaling.original_context_length");
    if (layout_find(l, "rope_freqs.weight"))
        strcat(buf, ",\n  \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 32.0, "
                    "\"low_freq_factor\": 1.0, "
                    "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64}");
}

char *layout_config(const layout *l, const char *class_name, const char *rotation) {
    char *buf = calloc(1 << 16, 1);
    put_config(l, class_name, buf);
    if (rotation)
        sprintf(buf + strlen(buf), "%s%s", rotation[0] ? ",\n  " : "", rotation);
    else
        put_rotation(l, class_name, buf);
    strcat(buf, "\n}\n");
    return buf;
}

bool layout_to_hf(const layout *l, const char *class_name, layout *hf, char **config) {
    *hf = (layout){0};
    size_t k = 0;
    while (k < sizeof classes / sizeof *classes && strcmp(classes[k].name, class_name) != 0)
        k++;
    if (k == sizeof classes / sizeof *classes)
        return false;
    double kv = layout_key(l, "attention.head_count_kv"),
           head = layout_key(l, "attention.head_count");
    inverse v = {l,
                 hf,
                 0,
                 (int64_t)layout_key(l, "embedding_length"),
                 (int64_t)head,
                 (int64_t)(isnan(kv) ? head : kv)};
    if (classes[k].old_names) {
        char name[3][64];
        bool is_bloom = classes[k].prefix[0] == 0;
        snprintf(name[0], 64, "%s%s", classes[k].prefix, is_bloom ? "word_embeddings" : "wte");
        snprintf(name[1], 64, "%s%s", classes[k].prefix, "ln_f");
        same(&v, name[0], "token_embd");
        same(&v, "word_embeddings_layernorm", "token_embd_norm");
        same(&v, "transformer.wpe", "position_embd");
        same(&v, name[1], "output_norm");
    } else {
        same(&v, "model.embed_tokens", "token_embd");
        if (classes[k].one_less)
            less_one(&v, "model.norm", "output_norm");
        else
            same(&v, "model.norm", "output_norm");
    }
    same(&v, "lm_head", "output");
    for (v.layer = 0; v.layer < (int)layout_key(l, "block_count"); v.layer++)
        classes[k].layer(&v);
    *config = layout_config(l, class_name, NULL);
    return true;
}

/* --- safetensors ------------------------------------------------------------------------------ */

bool layout_write(const layout *hf, const char *path, const char *dtype) {
    const ggl_type_info *type = ggl_type_find(strcmp(dtype, "F32") == 0   ? "f32"
                                              : strcmp(dtype, "F16") == 0 ? "f16"
                                                                          : "bf16");
    FILE *f = fopen(path, "wb");
    char *head = calloc((size_t)hf->n + 1, 512);
    uint64_t at = 0, n;
    if (!f || !head)
        return false;
    char *to = head + sprintf(head, "{\"__metadata__\": {\"format\": \"pt\"}");
    for (int i = 0; i < hf->n; i++) {
        const layout_tensor *t = &hf->tensor[i];
        to += sprintf(to, ", \"%s\": {\"dtype\": \"%s\", \"shape\": [", t->name, dtype);
        for (int d = t->n_dims - 1; d >= 0; d--)
            to += sprintf(to, "%" PRId64 "%s", t->ne[d], d ? ", " : "");
        uint64_t end = at + (uint64_t)count_of(t) * type->size;
        to += sprintf(to, "], \"data_offsets\": [%" PRIu64 ", %" PRIu64 "]}", at, end);
        at = end;
    }
    to += sprintf(to, "}");
    while ((to - head) % 8 != 0) /* as the safetensors library aligns the data */
        *to++ = ' ';
    n = (uint64_t)(to - head);
    bool ok = fwrite(&n, 8, 1, f) == 1 && fwrite(head, 1, n, f) == n;
    for (int i = 0; ok && i < hf->n && hf->tensor[i].data; i++) {
        int64_t count = count_of(&hf->tensor[i]);
        void *data = malloc((size_t)count * type->size + 1);
        type->from_float(hf->tensor[i].data, data, count);
        ok = fwrite(data, type->size, (size_t)count, f) == (size_t)count;
        free(data);
    }
    ok = fflush(f) == 0 && ok && ftruncate(fileno(f), (off_t)(8 + n + at)) == 0;
    free(head);
    return fclose(f) == 0 && ok;
}

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

/* --- to Hugging Face's ------------------------------------------------------------------------ */

/* How a tensor differs: its halves of each head's rows are the even and the odd ones; its two dimensions are swapped; its matrices are
 * tensors of their own. */
typedef enum how { SAME, HALVES, SWAPPED, APART } how;

typedef struct layout_name {
    const char *hf, *gguf; /* without ".weight"; {l}: the layer, {e}: the expert */
    how how;
} layout_name;

#define L "model.layers.{l}."
#define E L "mlp.experts.{e}."
#define H "transformer.h.{l}."
#define B "blk.{l}."

static const layout_name llama[] = {{"model.embed_tokens", "token_embd", SAME},
                                    {"model.norm", "output_norm", SAME},
                                    {"lm_head", "output", SAME},
                                    {L "input_layernorm", B "attn_norm", SAME},
                                    {L "self_attn.q_proj", B "attn_q", HALVES},
                                    {L "self_attn.k_proj", B "attn_k", HALVES},
                                    {L "self_attn.v_proj", B "attn_v", SAME},
                                    {L "self_attn.o_proj", B "attn_output", SAME},
                                    {L "self_attn.q_norm", B "attn_q_norm", SAME},
                                    {L "self_attn.k_norm", B "attn_k_norm", SAME},
                                    {L "post_attention_layernorm", B "ffn_norm", SAME},
                                    {L "mlp.gate_proj", B "ffn_gate", SAME},
                                    {L "mlp.up_proj", B "ffn_up", SAME},
                                    {L "mlp.down_proj", B "ffn_down", SAME},
                                    {L "mlp.gate", B "ffn_gate_inp", SAME},
                                    {E "gate_proj", B "ffn_gate_exps", APART},
                                    {E "up_proj", B "ffn_up_exps", APART},
                                    {E "down_proj", B "ffn_down_exps", APART},
                                    {0}};
static const layout_name gpt2[] = {{"transformer.wte", "token_embd", SAME},
                                   {"transformer.wpe", "position_embd", SAME},
                                   {"transformer.ln_f", "output_norm", SAME},
                                   {"lm_head", "output", SAME},
                                   {H "ln_1", B "attn_norm", SAME},
                                   {H "attn.c_attn", B "attn_qkv", SWAPPED},
                                   {H "attn.c_proj", B "attn_output", SWAPPED},
                                   {H "ln_2", B "ffn_norm", SAME},
                                   {H "mlp.c_fc", B "ffn_up", SWAPPED},
                                   {H "mlp.c_proj", B "ffn_down", SWAPPED},
                                   {0}};

static void fill_in(char buf[160], const char *s, int layer, int e, const char *end) {
    char *to = buf;
    for (; *s; s++)
        if (strncmp(s, "{l}", 3) == 0 || strncmp(s, "{e}", 3) == 0) {
            to += sprintf(to, "%d", s[1] == 'l' ? layer : e);
            s += 2;
        } else {
            *to++ = *s;
        }
    strcpy(to, end);
}

/* The row of the GGUF tensor that is row r, of n in n_head heads, of Hugging Face's. */
static int64_t row_of(int64_t r, int64_t n, int64_t n_head) {
    const int64_t d = n / n_head, i = r % d;
    return r / d * d + (i < d / 2 ? 2 * i : 2 * (i - d / 2) + 1);
}

static void put_rows(layout_tensor *x, const layout_tensor *t, int64_t n_head) {
    const int64_t rows = t->ne[t->n_dims - 1], size = count_of(t) / rows;
    for (int64_t r = 0; r < rows; r++)
        memcpy(x->data + r * size, t->data + (n_head ? row_of(r, rows, n_head) : r) * size,
               (size_t)size * sizeof(float));
}

static void put_swapped(layout_tensor *x, const layout_tensor *t) {
    const int64_t a = t->ne[0], b = t->ne[1];
    x->ne[0] = b;
    x->ne[1] = a;
    for (int64_t i = 0; i < a * b; i++)
        x->data[i % a * b + i / a] = t->data[i];
}

/* A weight or a bias of a layer; absent: nothing. */
static void put(layout *to, const layout *from, const layout_name *r, int layer, const char *end,
                bool half) {
    char name[160];
    fill_in(name, r->gguf, layer, 0, end);
    const layout_tensor *t = layout_find(from, name);
    const int n = t && r->how == APART ? (int)t->ne[2] : 1;
    for (int e = 0; t && e < n; e++) {
        fill_in(name, r->hf, layer, e, end);
        layout_tensor *x = add(to, name, r->how == APART ? 2 : t->n_dims, t->ne, t->data != NULL);
        const bool of_keys = strstr(r->gguf, "attn_k") != NULL;
        if (!t->data)
            continue;
        if (r->how == APART)
            memcpy(x->data, t->data + e * count_of(x), (size_t)count_of(x) * sizeof(float));
        else if (r->how == SWAPPED && t->n_dims == 2)
            put_swapped(x, t);
        else
            put_rows(x, t,
                     r->how != HALVES || half
                         ? 0
                         : (int64_t)layout_key(from, of_keys ? "attention.head_count_kv"
                                                             : "attention.head_count"));
    }
}

/* Appends members for the keys that are there. */
static void put_config(const layout *l, bool gpt, bool moe, char *buf) {
    static const char *const keys[][3] = {
        /* others', gpt2's, GGUF's */
        {"num_hidden_layers", "n_layer", "block_count"},
        {"hidden_size", "n_embd", "embedding_length"},
        {"intermediate_size", "n_inner", "feed_forward_length"},
        {"num_attention_heads", "n_head", "attention.head_count"},
        {"num_key_value_heads", "", "attention.head_count_kv"},
        {"head_dim", "", "attention.key_length"},
        {"rms_norm_eps", "", "attention.layer_norm_rms_epsilon"},
        {"", "layer_norm_epsilon", "attention.layer_norm_epsilon"},
        {"max_position_embeddings", "n_positions", "context_length"},
        {"vocab_size", "vocab_size", "vocab_size"},
        {"num_experts", "", "expert_count"},
        {"num_experts_per_tok", "", "expert_used_count"},
        {"moe_intermediate_size", "", "expert_feed_forward_length"},
        {"rope_theta", "", "rope.freq_base"},
    };
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const char *name = keys[k][gpt], *value = key_text(l, keys[k][2]);
        if (name[0] && value)
            sprintf(buf + strlen(buf), ",\n  \"%s\": %.*s", name, (int)strcspn(value, " "), value);
    }
    strcat(buf, moe ? ",\n  \"norm_topk_prob\": true" : "");
    if (layout_find(l, "rope_freqs.weight"))
        strcat(buf, ",\n  \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 32.0, "
                    "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
                    "\"original_max_position_embeddings\": 64}");
    sprintf(buf + strlen(buf), ",\n  \"tie_word_embeddings\": %s",
            layout_find(l, "output.weight") ? "false" : "true");
}

bool layout_to_hf(const layout *l, const char *class_name, const char *more, layout *hf,
                  char **config) {
    const bool gpt = strncmp(class_name, "GPT2", 4) == 0, moe = strstr(class_name, "Moe") != NULL;
    *hf = (layout){0};
    for (const layout_name *r = gpt ? gpt2 : llama; r->hf; r++)
        for (int layer = 0; layer < (strchr(r->gguf, '{') ? (int)layout_key(l, "block_count") : 1);
             layer++)
            for (int k = 0; k < 2; k++)
                put(hf, l, r, layer, k ? ".bias" : ".weight", class_name[0] == 'Q');
    *config = calloc(1 << 16, 1);
    sprintf(*config, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"x\"", class_name);
    put_config(l, gpt, moe, *config);
    strcat(strcat(*config, more), "\n}\n");
    return hf->n > 0;
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

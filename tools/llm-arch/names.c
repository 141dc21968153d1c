#include "ggl/internal/number.h"
#include "names.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/glob.h"
#include "tensors.h"

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
enum { SIZE = 1, WHOLE = 2 }; /* as in arch_name */
enum { MOST_WORD = 60 };      /* bytes of a word of a key; the language takes 64 */

/* In the order in which a descriptor has them: `missing` uses only names above. */
static const struct {
    const char *name, *key, *missing;
    int flags;
} usual[] = {
    {"n_layer", "block_count", NULL, 0},
    {"n_embd", "embedding_length", NULL, SIZE},
    {"n_ff", "feed_forward_length", NULL, SIZE},
    {"n_head", "attention.head_count", NULL, SIZE},
    {"n_kv", "attention.head_count_kv", "n_head", SIZE},
    {"d", "attention.key_length", "n_embd / n_head", SIZE},
    {"dv", "attention.value_length", "d", SIZE},
    {"n_rot", "rope.dimension_count", "d", SIZE},
    {"eps", "attention.layer_norm_rms_epsilon", NULL, 0},
    {"eps", "attention.layer_norm_epsilon", NULL, 0},
    {"n_expert", "expert_count", NULL, SIZE},
    {"n_ff_exp", "expert_feed_forward_length", "n_ff", SIZE},
    {"n_shared", "expert_shared_count", NULL, 0},
    {"n_ff_sh", "expert_shared_feed_forward_length", NULL, SIZE},
    {"n_dense", "leading_dense_block_count", NULL, 0},
    {"r_q", "attention.q_lora_rank", NULL, SIZE},
    {"r_kv", "attention.kv_lora_rank", NULL, SIZE},
    {"d_mla", "attention.key_length_mla", "d", SIZE},
    {"dv_mla", "attention.value_length_mla", "dv", SIZE},
    {"d_swa", "attention.key_length_swa", "d", SIZE},
    {"dv_swa", "attention.value_length_swa", "dv", SIZE},
    {"n_taps", "ssm.conv_kernel", NULL, SIZE},
    {"n_taps", "shortconv.l_cache", NULL, SIZE},
    {"n_in", "ssm.inner_size", NULL, SIZE},
    {"n_st", "ssm.state_size", NULL, SIZE},
    {"n_dt", "ssm.time_step_rank", NULL, SIZE},
    {"n_group", "ssm.group_count", "1", SIZE},
    {"d_wkv", "wkv.head_size", NULL, SIZE},
    {"n_each", "embedding_length_per_layer_input", NULL, SIZE},
    {"n_pos", "context_length", NULL, 0},
    {"n_mel", "audio.mel_count", NULL, SIZE},
    {"n_mel", "num_mel_bins", NULL, SIZE},
    {"n_sound", "audio.context_length", NULL, 0},
    {"pattern", "attention.sliding_window_pattern", NULL, WHOLE},
};

/* The usual expressions for the dimensions of usual tensors; the first one that has the right
 * value is used. '*' at either end of the stem matches anything. */
static const struct {
    const char *stem;
    int dim;
    const char *expr;
} shapes[] = {
    {"token_embd", 0, "n_embd"},
    {"token_embd", 1, "n_vocab"},
    {"output", 0, "n_embd"},
    {"output", 1, "n_vocab"},
    {"position_embd", 0, "n_embd"},
    {"position_embd", 1, "n_pos"},
    {"position_embd", 1, "n_sound"},
    {"rope_freqs", 0, "n_rot/2"},
    {"rope_factors_*", 0, "n_rot/2"},
    {"attn_q", 0, "n_embd"},
    {"attn_q", 1, "n_head*d"},
    {"attn_q", 1, "n_head*d_mla"},
    {"attn_q", 1, "n_head*d_swa"},
    {"attn_q", 1, "2*n_head*d"},
    {"attn_k", 0, "n_embd"},
    {"attn_k", 1, "n_kv*d"},
    {"attn_k", 1, "n_kv*d_swa"},
    {"attn_v", 0, "n_embd"},
    {"attn_v", 1, "n_kv*dv"},
    {"attn_v", 1, "n_kv*dv_swa"},
    {"attn_qkv", 0, "n_embd"},
    {"attn_qkv", 1, "(n_head + 2*n_kv)*d"},
    {"attn_qkv", 1, "n_head*d + n_kv*(d + dv)"},
    {"attn_qkv", 1, "2*n_group*n_st + n_in"},
    {"attn_output", 0, "n_head*dv"},
    {"attn_output", 0, "n_head*dv_mla"},
    {"attn_output", 0, "n_head*dv_swa"},
    {"attn_output", 1, "n_embd"},
    {"attn_gate", 0, "n_embd"},
    {"attn_gate", 1, "n_head"},
    {"attn_gate", 1, "n_head*d"},
    {"attn_gate", 1, "n_in"},
    {"attn_sinks", 0, "n_head"},
    {"attn_q_norm", 0, "d"},
    {"attn_q_norm", 0, "n_head*d"},
    {"attn_q_norm", 0, "d_swa"},
    {"attn_q_norm", 1, "n_head"},
    {"attn_k_norm", 0, "d"},
    {"attn_k_norm", 0, "n_kv*d"},
    {"attn_k_norm", 0, "d_swa"},
    {"attn_k_norm", 1, "n_kv"},
    {"attn_q_a", 0, "n_embd"},
    {"attn_q_a", 1, "r_q"},
    {"attn_q_a_norm", 0, "r_q"},
    {"attn_q_b", 0, "r_q"},
    {"attn_q_b", 1, "n_head*d_mla"},
    {"attn_q_b", 1, "n_head*d"},
    {"attn_kv_a_mqa", 0, "n_embd"},
    {"attn_kv_a_mqa", 1, "r_kv + n_rot"},
    {"attn_kv_a_norm", 0, "r_kv"},
    {"attn_kv_b", 0, "r_kv"},
    {"attn_kv_b", 1, "n_head*(d_mla - n_rot + dv_mla)"},
    {"attn_k_b", 0, "d_mla - n_rot"},
    {"attn_k_b", 1, "r_kv"},
    {"attn_k_b", 2, "n_head"},
    {"attn_v_b", 0, "r_kv"},
    {"attn_v_b", 1, "dv_mla"},
    {"attn_v_b", 2, "n_head"},
    {"ffn_gate_inp", 0, "n_embd"},
    {"ffn_gate_inp", 1, "n_expert"},
    {"exp_probs_b", 0, "n_expert"},
    {"ffn_gate_inp_shexp", 0, "n_embd"},
    {"ffn_gate_exps", 1, "n_ff_exp"},
    {"ffn_up_exps", 1, "n_ff_exp"},
    {"ffn_down_exps", 0, "n_ff_exp"},
    {"ffn_gate_up_exps", 1, "2*n_ff_exp"},
    {"ffn_gate_exps", 0, "n_embd"},
    {"ffn_up_exps", 0, "n_embd"},
    {"ffn_down_exps", 1, "n_embd"},
    {"ffn_gate_up_exps", 0, "n_embd"},
    {"ffn_*_exps", 2, "n_expert"},
    {"ffn_norm_exps", 0, "n_embd"},
    {"ffn_gate_shexp", 0, "n_embd"},
    {"ffn_up_shexp", 0, "n_embd"},
    {"ffn_down_shexp", 1, "n_embd"},
    {"ffn_gate_shexp", 1, "n_ff_sh"},
    {"ffn_up_shexp", 1, "n_ff_sh"},
    {"ffn_down_shexp", 0, "n_ff_sh"},
    {"ffn_gate_shexp", 1, "n_ff_exp*n_shared"},
    {"ffn_up_shexp", 1, "n_ff_exp*n_shared"},
    {"ffn_down_shexp", 0, "n_ff_exp*n_shared"},
    {"ffn_gate_shexp", 1, "n_ff_exp"},
    {"ffn_up_shexp", 1, "n_ff_exp"},
    {"ffn_down_shexp", 0, "n_ff_exp"},
    {"ffn_gate", 0, "n_embd"},
    {"ffn_up", 0, "n_embd"},
    {"ffn_down", 1, "n_embd"},
    {"ffn_gate", 1, "n_ff"},
    {"ffn_up", 1, "n_ff"},
    {"ffn_down", 0, "n_ff"},
    {"ffn_up", 1, "2*n_ff"},
    {"ssm_in", 0, "n_embd"},
    {"ssm_in", 1, "2*n_in + 2*n_group*n_st + n_dt"},
    {"ssm_in", 1, "2*n_in"},
    {"ssm_conv1d", 0, "n_taps"},
    {"ssm_conv1d", 1, "n_in + 2*n_group*n_st"},
    {"ssm_conv1d", 1, "n_in"},
    {"ssm_x", 0, "n_in"},
    {"ssm_x", 1, "n_dt + 2*n_st"},
    {"ssm_dt", 0, "n_dt"},
    {"ssm_dt", 1, "n_in"},
    {"ssm_dt_norm", 0, "n_dt"},
    {"ssm_b_norm", 0, "n_st"},
    {"ssm_c_norm", 0, "n_st"},
    {"ssm_a", 0, "n_st"},
    {"ssm_a", 0, "n_dt"},
    {"ssm_a", 1, "n_dt"},
    {"ssm_a", 1, "n_in"},
    {"ssm_d", 0, "n_in"},
    {"ssm_d", 0, "n_dt"},
    {"ssm_d", 1, "n_dt"},
    {"ssm_norm", 0, "n_in/n_group"},
    {"ssm_norm", 0, "n_in/n_dt"},
    {"ssm_norm", 0, "n_in"},
    {"ssm_norm", 1, "n_group"},
    {"ssm_out", 0, "n_in"},
    {"ssm_out", 1, "n_embd"},
    {"ssm_alpha", 0, "n_embd"},
    {"ssm_alpha", 1, "n_dt"},
    {"ssm_beta", 0, "n_embd"},
    {"ssm_beta", 1, "n_dt"},
    {"ssm_ba", 0, "n_embd"},
    {"ssm_ba", 1, "2*n_dt"},
    {"shortconv.conv", 0, "n_taps"},
    {"shortconv.conv", 1, "n_embd"},
    {"shortconv.in_proj", 0, "n_embd"},
    {"shortconv.in_proj", 1, "3*n_embd"},
    {"shortconv.out_proj", 0, "n_embd"},
    {"shortconv.out_proj", 1, "n_embd"},
    {"per_layer_token_embd", 0, "n_each*n_layer"},
    {"per_layer_model_proj", 1, "n_each*n_layer"},
    {"time_mix_receptance", 0, "n_embd"},
    {"time_mix_receptance", 1, "n_embd"},
    {"time_mix_key", 1, "n_embd"},
    {"time_mix_value", 1, "n_embd"},
    {"time_mix_output", 0, "n_embd"},
    {"channel_mix_key", 1, "n_ff"},
    {"channel_mix_value", 0, "n_ff"},
    {"channel_mix_value", 1, "n_embd"},
    {"time_mix_*", 0, "n_embd"},
    {"channel_mix_*", 0, "n_embd"},
    {"attn_o", 0, "n_head*d"},
    {"attn_o", 1, "n_embd"},
    {"cross_attn_q", 0, "n_embd"},
    {"cross_attn_q", 1, "n_head*d"},
    {"cross_attn_k", 0, "n_embd"},
    {"cross_attn_k", 1, "n_head*d"},
    {"cross_attn_v", 0, "n_embd"},
    {"cross_attn_v", 1, "n_head*d"},
    {"cross_attn_o", 0, "n_head*d"},
    {"cross_attn_o", 1, "n_embd"},
    {"attn_rel_b", 0, "n_head"},
    {"attn_rel_b", 1, "relative_buckets_count"},
    {"attn_out", 0, "n_head*d"},
    {"attn_out", 1, "n_embd"},
    {"ln1", 0, "n_embd"},
    {"ln2", 0, "n_embd"},
    {"patch_embd", 0, "patch_size"},
    {"patch_embd", 1, "patch_size"},
    {"patch_embd", 3, "n_embd"},
    {"mel_filters", 0, "201"},
    {"mel_filters", 1, "n_mel"},
    {"conv*", 0, "3"}, /* rows of which a convolution makes one; its bias follows */
    {"conv*", 0, "n_embd"},
    {"conv*", 1, "n_mel"},
    {"conv*", 1, "n_embd"},
    {"conv*", 2, "n_embd"},
    {"*_norm", 0, "n_embd"},
};

/* Products that a dimension of other tensors may be. */
static const char *const products[] = {"2*n_embd", "3*n_embd", "2*n_ff",
                                       "n_head*d", "n_kv*d",   "n_vocab"};

/* --- keys ------------------------------------------------------------------------------------- */

arch_name *arch_names_find(arch_names *m, const char *name) {
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->at[i].name, name) == 0)
            return &m->at[i];
    return NULL;
}

const arch_name *arch_names_of_key(const arch_names *m, const char *key) {
    for (int i = 0; i < m->n; i++)
        if (m->at[i].value && strcmp(m->at[i].key, key) == 0)
            return &m->at[i];
    return NULL;
}

/* Finds out whether the numbers of a list differ, and how many of them are not 0. */
static void look_at_list(arch_name *a) {
    double first = 0, x = 0;
    a->varies = false;
    for (uint64_t i = 0; a->value && a->value->is_array && i < a->value->n; i++) {
        if (!ggl_gguf_number(a->value, i, &x))
            return;
        first = i == 0 ? x : first;
        a->varies |= x != first && !a->whole;
        a->n_above += x != 0;
    }
}

static arch_name *add(arch_names *m, const char *name, const char *key,
                      const ggl_gguf_value *value) {
    if (m->n == ARCH_MAX_NAMES)
        return NULL;
    arch_name *a = &m->at[m->n++];
    *a = (arch_name){.value = value};
    snprintf(a->name, sizeof a->name, "%.60s", name);
    snprintf(a->key, sizeof a->key, "%.120s", key);
    return a;
}

/* True if a name in an expression varies from layer to layer. */
static bool mentions_varying(arch_names *m, const char *expr) {
    for (const char *s = expr; s && *s;) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz_");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), s);
        const arch_name *a = n ? arch_names_find(m, name) : NULL;
        if (a && a->varies)
            return true;
        s += n ? n : 1;
    }
    return false;
}

/* Returns whether all names in an expression are known. */
static bool is_known(arch_names *m, const char *expr) {
    for (const char *s = expr; s && *s;) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz_");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), s);
        if (n && !arch_names_find(m, name))
            return false;
        s += n ? n : 1;
    }
    return expr != NULL;
}

/* Returns what is between the family and the usual keys: "" or, of a model that sees or hears alone, "vision." or "audio.". */
static const char *before_keys(const arch_names *m, const char *family) {
    static const char *const before[] = {"", "vision.", "audio."};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        char full[256];
        snprintf(full, sizeof full, "%s.%sblock_count", family, before[i]);
        if (ggl_gguf_find(m->f, full))
            return before[i];
    }
    return "";
}

static void add_usual(arch_names *m, const char *family) {
    const char *before = before_keys(m, family);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        char full[256], key[128];
        snprintf(key, sizeof key, "%s%s", before, usual[i].key);
        snprintf(full, sizeof full, "%s.%s", family, key);
        const ggl_gguf_value *v = ggl_gguf_find(m->f, full);
        const char *missing = is_known(m, usual[i].missing) ? usual[i].missing : NULL;
        if ((!v && !missing) || arch_names_find(m, usual[i].name))
            continue;
        arch_name *a = add(m, usual[i].name, key, v);
        a->missing = missing;
        a->size = (usual[i].flags & SIZE) != 0;
        a->whole = (usual[i].flags & WHOLE) != 0;
        look_at_list(a);
        /* such an expression holds in layers only; it is not needed if the key is there */
        if (mentions_varying(m, a->missing)) {
            a->varies |= !v;
            a->missing = v ? NULL : a->missing;
        }
    }
}

bool arch_names_is_taken(const char *word) {
    static const char *const taken[] = {
        "if",      "elif", "else",   "and",     "or",      "not",   "in",  "true",
        "false",   "none", "has",    "return",  "require", "token", "pos", "n_ctx",
        "n_vocab", "arch", "pi",     "inf",     "type",    "l",     "x",   "h",
        "freq",    "mag",  "logits", "factors", "n_orig"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(word, taken[i]) == 0)
            return true;
    return false;
}

/* Makes a name of the last word of a key. False: the language cannot write the key, or the name is taken. */
static bool word_of(const char *key, char *name, size_t size) {
    size_t n = 0; /* of a word */
    for (const char *c = key; *c; c++) {
        n = *c == '.' ? 0 : n + 1;
        if (n > MOST_WORD || !(isalnum((unsigned char)*c) || *c == '_' || *c == '.') ||
            ((c == key || c[-1] == '.') && !(isalpha((unsigned char)*c) || *c == '_')))
            return false;
    }
    snprintf(name, size, "%.*s", MOST_WORD, strrchr(key, '.') ? strrchr(key, '.') + 1 : key);
    return name[0] && !arch_names_is_taken(name);
}

/* Adds names for other keys whose values may be sizes. */
static void add_others(arch_names *m, const char *family) {
    size_t n_family = strlen(family);
    for (size_t i = 0; i < ggl_gguf_n_values(m->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(m->f, i);
        char key[128], name[64];
        int64_t x;
        if (v->key.n <= n_family + 1 || v->key.n - n_family > sizeof key ||
            memcmp(v->key.s, family, n_family) != 0 || v->key.s[n_family] != '.')
            continue;
        snprintf(key, sizeof key, "%.*s", (int)(v->key.n - n_family - 1), v->key.s + n_family + 1);
        if (strncmp(key, "rope.", 5) != 0 && strcmp(key, "vocab_size") != 0 &&
            !arch_names_of_key(m, key) && v->n > 0 && v->type != GGL_GGUF_F32 &&
            v->type != GGL_GGUF_F64 && ggl_gguf_integer(v, 0, &x) && x > 1 &&
            word_of(key, name, sizeof name) && !arch_names_find(m, name)) {
            arch_name *a = add(m, name, key, v);
            if (a) {
                a->size = true;
                look_at_list(a);
            }
        }
    }
}

void arch_names_init(arch_names *m, const ggl_gguf *f, const char *family) {
    const ggl_gguf_value *tokens = ggl_gguf_find(f, "tokenizer.ggml.tokens");
    const ggl_gguf_tensor *embd = ggl_gguf_find_tensor(f, "token_embd.weight");
    char key[128];
    int64_t n = 0;
    *m = (arch_names){.f = f};
    snprintf(key, sizeof key, "%s.vocab_size", family);
    if (ggl_gguf_get_integer(f, key, &n, NULL) != 1)
        n = tokens ? (int64_t)tokens->n : embd ? embd->ne[1] : 0;
    m->n_vocab = (double)n;
    add_usual(m, family);
    add_others(m, family);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        ggl_str rest;
        int layer = tensor_layer(ggl_gguf_tensor_at(f, i)->name, &rest);
        m->n_layer = layer >= m->n_layer ? layer + 1 : m->n_layer;
    }
    snprintf(key, sizeof key, "%s.block_count", family);
    if (ggl_gguf_get_integer(f, key, &n, NULL) == 1 && n > m->n_layer && n <= 4096)
        /* no model has more layers */
        m->n_layer = (int)n;
}

/* --- expressions ------------------------------------------------------------------------------ */

typedef struct reader {
    const arch_names *m;
    const char *s;
    int layer, depth;
    bool ok;
} reader;

static double sum_of(reader *r);

static double value_in(reader *r, const arch_name *a) {
    double x = 0;
    if (a->value) {
        uint64_t i = a->value->is_array && a->varies ? (uint64_t)r->layer : 0;
        r->ok &=
            (!a->varies || r->layer >= 0) && i < a->value->n && ggl_gguf_number(a->value, i, &x);
        return x;
    }
    reader of = {r->m, a->missing, r->layer, r->depth + 1, a->missing && r->depth < 16};
    x = of.ok ? sum_of(&of) : 0;
    r->ok &= of.ok;
    return x;
}

static double atom_of(reader *r) {
    while (*r->s == ' ')
        r->s++;
    if (*r->s == '(') {
        r->s++;
        double x = sum_of(r);
        r->s += *r->s == ')';
        return x;
    }
    size_t n = strspn(r->s, WORD);
    const char *name = r->s;
    r->s += n;
    if (isdigit((unsigned char)name[0]))
        return ggl_number_value(name, n);
    if (n == 7 && memcmp(name, "n_vocab", 7) == 0)
        return r->m->n_vocab;
    for (int i = 0; i < r->m->n; i++)
        if (strlen(r->m->at[i].name) == n && memcmp(r->m->at[i].name, name, n) == 0)
            return value_in(r, &r->m->at[i]);
    r->ok = false;
    return 0;
}

static double product_of(reader *r) {
    double x = atom_of(r);
    for (;;) {
        while (*r->s == ' ')
            r->s++;
        if (*r->s != '*' && *r->s != '/')
            return x;
        bool times = *r->s++ == '*';
        double y = atom_of(r);
        r->ok &= times || (y != 0 && fmod(x, y) == 0);
        x = times ? x * y : y != 0 ? x / y : 0;
    }
}

static double sum_of(reader *r) {
    double x = product_of(r);
    while (*r->s == '+' || *r->s == '-') {
        bool plus = *r->s++ == '+';
        double y = product_of(r);
        x = plus ? x + y : x - y;
    }
    return x;
}

bool arch_names_value(const arch_names *m, const char *expr, int layer, double *out) {
    reader r = {m, expr, layer, 0, true};
    *out = sum_of(&r);
    return r.ok;
}

void arch_names_use(arch_names *m, const char *expr) {
    char at[ARCH_EXPR];
    arch_names_expand(m, expr ? expr : "", at, sizeof at);
    for (const char *s = at; *s;) {
        size_t n = strspn(s, WORD);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), s);
        arch_name *a = n ? arch_names_find(m, name) : NULL;
        if (a && !a->used) {
            a->used = true;
            arch_names_use(m, a->missing);
        }
        s += n ? n : 1;
    }
}

/* The name that stands for one that the file lacks: "d" for "dv". */
static const arch_name *stands_for(const arch_names *m, const char *name) {
    for (int depth = 0; depth < 16; depth++) {
        const arch_name *a = NULL;
        for (int i = 0; i < m->n && !a; i++)
            a = strcmp(m->at[i].name, name) == 0 ? &m->at[i] : NULL;
        if (!a || a->value || !a->missing || isdigit((unsigned char)a->missing[0]) ||
            a->missing[strspn(a->missing, WORD)])
            return a;
        name = a->missing;
    }
    return NULL;
}

void arch_names_expand(const arch_names *m, const char *expr, char *buf, size_t size) {
    buf[0] = '\0';
    for (const char *s = expr; *s;) {
        const size_t n = strspn(s, WORD), done = strlen(buf);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), s);
        const arch_name *a = n ? stands_for(m, name) : NULL;
        if (a)
            snprintf(buf + done, size - done, "%s", a->name);
        else
            snprintf(buf + done, size - done, "%.*s", (int)(n ? n : 1), s);
        s += n ? n : 1;
    }
}

/* --- dimensions --------------------------------------------------------------------------------------------------------- */

static bool fits_stem(const char *pattern, const char *stem) {
    return llm_stars_match((ggl_str){pattern, strlen(pattern)}, 0, (ggl_str){stem, strlen(stem)});
}

const char *arch_names_usual(const char *stem, int dim, int i) {
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        if (shapes[k].dim == dim && fits_stem(shapes[k].stem, stem) && i-- == 0)
            return shapes[k].expr;
    return NULL;
}

const char *arch_names_any(const arch_names *m, int i) {
    if (i < m->n)
        return m->at[i].size && m->at[i].value ? m->at[i].name : "";
    i -= m->n;
    return i < (int)(sizeof products / sizeof *products) ? products[i] : NULL;
}

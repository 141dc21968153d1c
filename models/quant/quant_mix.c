/* The tables of quant_mix.h, and the code that reads them. They follow llama.cpp's
 * llama-quant.cpp; where its versions differ, attn_qkv has the separate rules that it had before
 * 2026. */
#include "quant_mix.h"
#include "ggl/internal/text.h"
#include "ggl/internal/types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const quant_mix mixes[] = {
    {"F32",       NULL,   "f32",     0}, {"F16",    NULL,   "f16",    1}, {"BF16",   NULL,   "bf16",  32},
    {"Q4_0",      NULL,   "q4_0",    2}, {"Q4_1",   NULL,   "q4_1",   3}, {"Q5_0",   NULL,   "q5_0",   8},
    {"Q5_1",      NULL,   "q5_1",    9}, {"Q8_0",   NULL,   "q8_0",   7},
    {"Q2_K",      NULL,   "q2_k",   10}, {"Q2_K_S", NULL,   "q2_k",  21},
    {"Q3_K_S",    NULL,   "q3_k",   11}, {"Q3_K_M", "Q3_K", "q3_k",  12}, {"Q3_K_L", NULL,   "q3_k",  13},
    {"Q4_K_S",    NULL,   "q4_k",   14}, {"Q4_K_M", "Q4_K", "q4_k",  15},
    {"Q5_K_S",    NULL,   "q5_k",   16}, {"Q5_K_M", "Q5_K", "q5_k",  17}, {"Q6_K",   NULL,   "q6_k",  18},
    {"IQ1_S",     NULL,   "iq1_s",  24}, {"IQ1_M",  NULL,   "iq1_m",  31},
    {"IQ2_XXS",   NULL,   "iq2_xxs", 19}, {"IQ2_XS", NULL,  "iq2_xs", 20},
    {"IQ2_S",     NULL,   "iq2_xs", 28}, {"IQ2_M",  NULL,   "iq2_s",  29},
    {"IQ3_XXS",   NULL,   "iq3_xxs", 23}, {"IQ3_XS", NULL,  "iq3_s",  22},
    {"IQ3_S",     NULL,   "iq3_s",  26}, {"IQ3_M",  NULL,   "iq3_s",  27},
    {"IQ4_NL",    NULL,   "iq4_nl", 25}, {"IQ4_XS", NULL,   "iq4_xs", 30},
    {"TQ1_0",     NULL,   "tq1_0",  36}, {"TQ2_0",  NULL,   "tq2_0",  37},
    {"MXFP4_MOE", NULL,   "mxfp4",  38}, {"NVFP4",  NULL,   "nvfp4",  39},
    {"Q1_0",      NULL,   "q1_0",   40}, {"Q2_0",   NULL,   "q2_0",   41}, {"F8_E4M3", NULL, "f8_e4m3", 42},
};

typedef enum role { OTHER, EVERY, OUTPUT, EMBEDDING, QKV, VALUE, KEY, QUERY, ATTN_OUT, FFN_UP, FFN_GATE,
               FFN_DOWN } role;

/* The first row whose text is in the tensor's name (after '=': is the name) determines its role. */
static const struct { const char *text; role role; } roles[] = {
    {"=output.weight",              OUTPUT},
    {"=token_embd.weight",          EMBEDDING},
    {"=per_layer_token_embd.weight", EMBEDDING},
    {"attn_qkv.weight",             QKV},
    {"attn_kv_b.weight",            VALUE},
    {"attn_v.weight",               VALUE},
    {"attn_k.weight",               KEY},
    {"attn_q.weight",               QUERY},
    {"attn_output.weight",          ATTN_OUT},
    {"ffn_up",                      FFN_UP},
    {"ffn_gate",                    FFN_GATE},
    {"ffn_down",                    FFN_DOWN},
};

/* llm_quant_error_weight of a layer's tensor, times the number of layers, of models that are [0] not sure and [1] sure of
 * the next token: rounded means of the measured ones (docs/types.md). `first` and `last` times that in these layers. */
static const struct { double weight[2], first, last[2]; } layer_weights[] = {
    [OTHER]    = {{0.10,  0.50}, 1, {1, 1}}, [QKV]      = {{0.10, 0.50}, 2, {1, 1}},   [QUERY]  = {{0.035, 0.25}, 2, {1, 1}},
    [KEY]      = {{0.05,  0.35}, 2, {1, 1}}, [VALUE]    = {{0.10, 0.70}, 2, {1, 1}},   [FFN_UP] = {{0.11,  0.50}, 1, {1, 1}},
    [FFN_GATE] = {{0.12,  0.60}, 1, {1, 1}}, [FFN_DOWN] = {{0.20, 0.90}, 1, {2.5, 8}}, [ATTN_OUT] = {{0.10, 0.45}, 2, {1, 1}},
};
static const double embedding_weight[2] = {0.13, 0.9};

/* Matrices that are not quantized: small ones, and ones where small errors do much harm. */
static const char *const kept[] = {
    "_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
    "=position_embd.weight", "=token_types.weight", "=rel_embd.weight", ".position_embd", "ssm_conv1d", "shortconv.conv.weight",
    "indexer.k_proj.weight", "indexer.q_proj.weight", "attn_rel_b.weight",
    "time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight",
    "time_mix_v1.weight", "time_mix_v2.weight", "time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight",
    "time_mix_g1.weight", "time_mix_g2.weight", "time_mix_decay_w1.weight", "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight", ".rel_pos", ".patch_embd", ".patch_merger", "sam.pos_embd", "sam.neck.", "sam.net_",
    "a.rvq.codebook", "mm.a.code_embd",
};

typedef enum when {
    ALWAYS,
    ODD_ROWS,    /* the rows are not whole blocks of the mix's type */
    EXPERTS,     /* a tensor of several matrices (experts) */
    EIGHT,       /* the model has 8 experts */
    SHARED4,     /* 4 heads or more share their values */
    SHARED4_OR_EXPERTS4, /* that, or the model has 4 experts or more */
    SHARED80,    /* a model of 80 layers with shared values ("70B") */
    FIRST2,      /* of the tensors that make values: the first two.. */
    FIRST4,
    VALUE_MORE,  /* ..those near the ends, and every third between */
    FIRST_8TH,   /* of the layers: the first eighth.. */
    FIRST_16TH,
    MIDDLE,      /* ..those that are in neither the first nor the last eighth.. */
    LAYER_MORE,  /* ..those near the ends, and every third between.. */
    EIGHT_LAYER_MORE,    /* ..the same, if the model has 8 experts */
    NO_MATRIX,           /* there is no importance matrix.. */
    FIRST_8TH_NO_MATRIX, /* ..and of the layers, the first eighth */
    FIRST_8TH_MATRIX,    /* there is one; of the layers, the first eighth */
} when;

#define ANY NULL
#define BASE NULL

/* The first row that matches gives the type. Mixes: names with spaces around; ANY: all of
 * quantized types. */
static const struct { const char *mixes; role role; when when; const char *type; } rules[] = {
    {" MXFP4_MOE ", OUTPUT, ALWAYS,  "q8_0"},
    {" MXFP4_MOE ", EVERY,  EXPERTS, BASE},
    {" MXFP4_MOE ", EVERY,  ALWAYS,  "q8_0"},

    {ANY,                OUTPUT,    ODD_ROWS, "q8_0"},
    {" IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ3_XXS ", OUTPUT, ALWAYS, "q5_k"},
    {" Q8_0 ",           OUTPUT,    ALWAYS,   BASE},
    {ANY,                OUTPUT,    ALWAYS,   "q6_k"},
    {" TQ1_0 TQ2_0 Q2_0 ", EMBEDDING, ALWAYS,   "q4_k"},
    {" IQ1_S IQ1_M IQ2_XXS IQ2_XS ", EMBEDDING, ALWAYS, "q2_k"},
    {" IQ2_S IQ2_M IQ3_XXS ", EMBEDDING, ALWAYS, "iq3_s"},

    /* the smallest mixes */
    {" IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M ", VALUE, SHARED4_OR_EXPERTS4, "q4_k"},
    {" IQ2_S IQ2_M ",                            VALUE, ALWAYS,    "iq3_s"},
    {" IQ1_S IQ1_M IQ2_XXS IQ2_XS ",             VALUE, ALWAYS,    "q2_k"},
    {" IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M ", KEY,   EIGHT,     "q4_k"},
    {" IQ2_S IQ2_M ",                            FFN_DOWN, FIRST_8TH, "iq3_s"},
    {" IQ1_S IQ1_M IQ2_XXS IQ2_XS ",             FFN_DOWN, FIRST_8TH, "q2_k"},
    {" IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M ", ATTN_OUT, EIGHT,  "q5_k"},
    {" IQ1_S IQ1_M ",                            ATTN_OUT, ALWAYS, "iq2_xxs"},
    {" IQ2_S IQ2_M ",                            ATTN_OUT, ALWAYS, "iq3_s"},

    {ANY,                VALUE, EIGHT,      "q8_0"},
    {" Q4_K_M ",         VALUE, VALUE_MORE, "q6_k"},
    {" Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M IQ3_XXS IQ3_XS IQ3_S IQ3_M ",
                         VALUE, SHARED80,   "q5_k"},
    {" IQ3_XXS IQ3_XS IQ3_S ", VALUE, SHARED4, "q4_k"},
    {" IQ3_XXS ",        VALUE, NO_MATRIX,  "iq3_s"},
    {" IQ3_M ",          VALUE, ALWAYS,     "q4_k"},
    {" Q2_K Q2_K_S ",    VALUE, SHARED4,    "q4_k"},
    {" Q2_K ",           VALUE, ALWAYS,     "q3_k"},
    {" Q3_K_M ",         VALUE, FIRST2,     "q5_k"},
    {" Q3_K_M ",         VALUE, ALWAYS,     "q4_k"},
    {" Q3_K_L ",         VALUE, ALWAYS,     "q5_k"},
    {" IQ4_NL IQ4_XS ",  VALUE, SHARED4,    "q5_k"},
    {" Q5_K_M ",         VALUE, VALUE_MORE, "q6_k"},
    {" Q4_K_S ",         VALUE, FIRST4,     "q5_k"},

    {ANY,                KEY,   EIGHT,      "q8_0"},
    {" IQ3_XS ",         KEY,   ALWAYS,     "iq3_xxs"},
    {" IQ3_XS ",         QUERY, ALWAYS,     "iq3_xxs"},
    {" IQ3_XXS ",        KEY,   ALWAYS,     "iq2_s"},
    {" IQ3_XXS ",        QUERY, ALWAYS,     "iq2_s"},

    {" IQ3_XS ",         FFN_UP,   MIDDLE,  "iq3_xxs"},
    {" IQ3_XS ",         FFN_GATE, MIDDLE,  "iq3_xxs"},

    {" Q2_K ",           FFN_DOWN, ALWAYS,     "q3_k"},
    {" Q2_K_S ",         FFN_DOWN, FIRST_8TH,  "q4_k"},
    {" Q3_K_M ",         FFN_DOWN, FIRST_16TH, "q5_k"},
    {" Q3_K_M ",         FFN_DOWN, ALWAYS,     "q4_k"},
    {" Q3_K_L ",         FFN_DOWN, ALWAYS,     "q5_k"},
    {" Q4_K_M Q5_K_M ",  FFN_DOWN, LAYER_MORE, "q6_k"},
    {" Q4_K_S ",         FFN_DOWN, FIRST_8TH,  "q5_k"},
    {" IQ4_NL IQ4_XS ",  FFN_DOWN, FIRST_8TH_NO_MATRIX, "q5_k"},
    {" IQ3_XXS ",        FFN_DOWN, FIRST_8TH_NO_MATRIX, "q4_k"},
    {" IQ3_XXS ",        FFN_DOWN, NO_MATRIX,  "q3_k"},
    {" IQ3_M ",          FFN_DOWN, FIRST_8TH,  "q4_k"},
    {" IQ3_M ",          FFN_DOWN, EIGHT_LAYER_MORE, "q4_k"},
    {" Q4_0 ",           FFN_DOWN, FIRST_8TH_MATRIX, "q4_1"},
    {" Q5_0 ",           FFN_DOWN, FIRST_8TH_MATRIX, "q5_1"},

    {" Q2_K Q3_K_S Q3_K_M Q4_K_S Q4_K_M IQ3_XXS IQ3_XS IQ3_S IQ3_M IQ4_NL IQ4_XS ",
                         ATTN_OUT, EIGHT,  "q5_k"},
    {ANY,                ATTN_OUT, EIGHT,  BASE},
    {" Q2_K ",           ATTN_OUT, ALWAYS, "q3_k"},
    {" Q3_K_M IQ3_M ",   ATTN_OUT, ALWAYS, "q4_k"},
    {" IQ3_XXS ",        ATTN_OUT, ALWAYS, "iq3_s"},
    {" Q3_K_L ",         ATTN_OUT, ALWAYS, "q5_k"},

    {" Q3_K_M Q3_K_L IQ3_M ", QKV, ALWAYS, "q4_k"},
    {" Q4_K_M ",         QKV, ALWAYS, "q5_k"},
    {" Q5_K_M ",         QKV, ALWAYS, "q6_k"},
};

/* Types with blocks of several elements, and the type that narrower rows get instead. */
static const struct { const char *type; int block; const char *instead; } blocks[] = {
    {"q2_k",    256, "q4_0"},   {"q3_k",   256, "q4_0"},   {"q4_k",  256, "q5_0"},   {"q5_k",    256, "q5_1"},
    {"q6_k",    256, "q8_0"},   {"tq1_0",  256, "q4_0"},   {"tq2_0", 256, "q4_0"},   {"iq4_xs",  256, "iq4_nl"},
    {"iq1_s",   256, "iq4_nl"}, {"iq1_m",  256, "iq4_nl"}, {"iq2_s", 256, "iq4_nl"}, {"iq2_xs",  256, "iq4_nl"},
    {"iq2_xxs", 256, "iq4_nl"}, {"iq3_s",  256, "iq4_nl"}, {"iq3_xxs", 256, "iq4_nl"},
    {"q1_0",    128, "q4_0"},   {"q2_0",    64, "q4_0"},   {"nvfp4",  64, "mxfp4"},
    {"q4_0",     32, "f16"},    {"q4_1",    32, "f16"},    {"q5_0",   32, "f16"},    {"q5_1",     32, "f16"},
    {"q8_0",     32, "f16"},    {"iq4_nl",  32, "f16"},    {"mxfp4",  32, "f16"},
};
/* clang-format on */

#define N(array) (sizeof(array) / sizeof *(array))

static bool has(const char *name, const char *text) {
    return text[0] == '=' ? strcmp(name, text + 1) == 0 : strstr(name, text) != NULL;
}

static role role_of(const char *name) {
    for (size_t k = 0; k < N(roles); k++)
        if (has(name, roles[k].text))
            return roles[k].role;
    return OTHER;
}

/* Returns N of "blk.N."; -1: not in the name. */
static int64_t layer_of(const char *name) {
    const char *s = strstr(name, "blk.");
    char *end;
    if (!s || s[4] < '0' || s[4] > '9')
        return -1;
    unsigned long n = strtoul(s + 4, &end, 10);
    return *end == '.' && n < INT32_MAX ? (int64_t)n : -1;
}

void llm_quant_model_add(quant_model *m, const char *name) {
    role r = role_of(name);
    int64_t layer = layer_of(name);
    m->has_output |= r == OUTPUT;
    m->n_value += r == VALUE || r == QKV;
    m->n_named = layer >= m->n_named ? layer + 1 : m->n_named;
    if (r == VALUE && layer >= 0 && layer < QUANT_MAX_LAYERS)
        m->value_in[layer] = true;
}

/* Returns how many layers before this one make values: in hybrid models only some do. */
static int64_t value_index(const quant_model *m, int64_t layer) {
    int64_t n = 0;
    for (int64_t i = 0; i < layer && i < QUANT_MAX_LAYERS; i++)
        n += m->value_in[i];
    return n;
}

/* True if the i-th of n is in the first or last eighth, or every third between: it gets more
 * bits. */
static bool needs_more(int64_t i, int64_t n) {
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

const quant_mix *llm_quant_mix_at(int k) {
    return k >= 0 && (size_t)k < N(mixes) ? &mixes[k] : NULL;
}

const quant_mix *llm_quant_mix_find(const char *name) {
    for (size_t k = 0; k < N(mixes); k++)
        if (ggl_case_compare(mixes[k].name, name) == 0 ||
            (mixes[k].alias && ggl_case_compare(mixes[k].alias, name) == 0))
            return &mixes[k];
    return NULL;
}

bool llm_quant_wanted(const char *name, int n_dims, const int64_t *ne) {
    size_t n = strlen(name);
    while (n_dims > 0 && ne[n_dims - 1] == 1) /* a shape [n, 1] counts as a vector */
        n_dims--;
    if (n_dims < 2 || n < 6 || strcmp(name + n - 6, "weight") != 0)
        return false;
    for (size_t k = 0; k < N(kept); k++)
        if (has(name, kept[k]))
            return false;
    return true;
}

static int64_t block_of(const char *type) {
    for (size_t k = 0; k < N(blocks); k++)
        if (strcmp(blocks[k].type, type) == 0)
            return blocks[k].block;
    const ggl_type_info *t = ggl_type_find(type);
    return t ? t->block : 1;
}

const char *llm_quant_fit(const char *type, int64_t n) {
    while (n % block_of(type) != 0) {
        const char *instead = "f16";
        for (size_t k = 0; k < N(blocks); k++)
            if (strcmp(blocks[k].type, type) == 0)
                instead = blocks[k].instead;
        type = instead;
    }
    return type;
}

/* Returns whether a rule's list of mixes, NULL for all, has the mix. */
static bool in_mix(const char *list, const quant_mix *mix) {
    const char *at = list ? strstr(list, mix->name) : NULL;
    for (size_t n = strlen(mix->name); at; at = strstr(at + 1, mix->name))
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    return !list;
}

/* Returns whether a rule's condition is true of a tensor. */
static bool holds(when w, const quant_mix *mix, const quant_model *m, const char *name, int n_dims,
                  const int64_t *ne) {
    int64_t layer = layer_of(name), i = value_index(m, layer);
    int64_t n_layer = m->n_layer > 0 ? m->n_layer : m->n_named;
    int64_t shared = m->n_head_kv > 0 ? m->n_head / m->n_head_kv : 0;
    const bool first_8th = layer >= 0 && layer < n_layer / 8;
    switch (w) {
    case ALWAYS:
        return true;
    case ODD_ROWS:
        return ne[0] % block_of(mix->base) != 0;
    case EXPERTS:
        return n_dims > 2 && ne[2] > 1;
    case EIGHT:
        return m->n_expert == 8;
    case SHARED4:
        return shared >= 4;
    case SHARED4_OR_EXPERTS4:
        return shared >= 4 || m->n_expert >= 4;
    case SHARED80:
        return n_layer == 80 && shared > 1;
    case FIRST2:
        return i < 2;
    case FIRST4:
        return i < 4;
    case VALUE_MORE:
        return needs_more(i, m->n_value);
    case FIRST_8TH:
        return first_8th;
    case FIRST_16TH:
        return layer >= 0 && layer < n_layer / 16;
    case MIDDLE:
        return layer >= n_layer / 8 && layer < 7 * n_layer / 8;
    case LAYER_MORE:
        return layer >= 0 && needs_more(layer, n_layer);
    case EIGHT_LAYER_MORE:
        return m->n_expert == 8 && layer >= 0 && needs_more(layer, n_layer);
    case NO_MATRIX:
        return !m->has_matrix;
    case FIRST_8TH_NO_MATRIX:
        return !m->has_matrix && first_8th;
    case FIRST_8TH_MATRIX:
        return m->has_matrix && first_8th;
    }
    return false;
}

const char *llm_quant_mix_type(const quant_mix *mix, const quant_model *m, const char *name,
                               int n_dims, const int64_t *ne) {
    const ggl_type_info *base = ggl_type_find(mix->base);
    role r = role_of(name);
    if (!llm_quant_wanted(name, n_dims, ne))
        return NULL;
    if (base && !base->quantized)
        return mix->base;
    if (r == EMBEDDING && !m->has_output) /* it also makes the logits */
        r = OUTPUT;
    for (size_t k = 0; k < N(rules); k++)
        if ((rules[k].role == r || rules[k].role == EVERY) && in_mix(rules[k].mixes, mix) &&
            holds(rules[k].when, mix, m, name, n_dims, ne))
            return rules[k].type ? rules[k].type : mix->base;
    return mix->base;
}

double llm_quant_error_weight(const quant_model *m, const char *name, double sure) {
    const int64_t n_layer = m->n_layer > 0 ? m->n_layer : m->n_named, layer = layer_of(name);
    const role r = role_of(name);
    double weight[2];
    if (r == OUTPUT || (r == EMBEDDING && !m->has_output))
        return 1;
    for (int k = 0; k < 2; k++)
        weight[k] = r == EMBEDDING || layer < 0 || n_layer == 0
                        ? embedding_weight[k]
                        : layer_weights[r].weight[k] / (double)n_layer *
                              (layer == 0 ? layer_weights[r].first : 1) *
                              (layer == n_layer - 1 ? layer_weights[r].last[k] : 1);
    return weight[0] * pow(weight[1] / weight[0], sure);
}

bool llm_quant_type_needs_matrix(const ggl_type_info *t) {
    return t->from_float_weighted && 8.0 * (double)t->size / (double)t->block < 3.5;
}

bool llm_quant_type_usable(const ggl_type_info *t) {
    return (t->from_float || t->from_float_weighted) && ggl_type_has_products(t->type);
}

const ggl_type_info *llm_quant_type_find(const char *name, ggl_error *err) {
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *t = ggl_type_at(k);
        if (ggl_case_compare(t->name, name) != 0)
            continue;
        if (llm_quant_type_usable(t))
            return t;
        ggl_fail(err, GGL_UNSUPPORTED, "type %s can only be read%s", t->name,
                 t->quantized ? "" : ": it is not a type of weights");
        return NULL;
    }
    bool foreign = false;
    for (int id = 0; id < 400 && !foreign; id++)
        foreign =
            ggl_type_foreign_name(id) && ggl_case_compare(ggl_type_foreign_name(id), name) == 0;
    ggl_fail(err, foreign ? GGL_UNSUPPORTED : GGL_NOT_FOUND, "this build does not have type %s",
             name);
    return NULL;
}

/* Which type each tensor gets, by mix: whole models, against counts that are published for them or
 * worked out by hand. */
#include "quant/quant_mix.h"

#include <ctype.h>
#include <strings.h>

#include "ggl/internal/types.h"
#include "test.h"

typedef struct shape {
    const char *name; /* "%d" is the layer */
    int64_t n, m, k;  /* k = 0: two dimensions; m = 0: one */
} shape;

static const shape llama[] = {{"blk.%d.attn_norm.weight", 2048, 0, 0},
                              {"blk.%d.attn_q.weight", 2048, 2048, 0},
                              {"blk.%d.attn_k.weight", 2048, 256, 0},
                              {"blk.%d.attn_v.weight", 2048, 256, 0},
                              {"blk.%d.attn_output.weight", 2048, 2048, 0},
                              {"blk.%d.ffn_norm.weight", 2048, 0, 0},
                              {"blk.%d.ffn_gate.weight", 2048, 5632, 0},
                              {"blk.%d.ffn_up.weight", 2048, 5632, 0},
                              {"blk.%d.ffn_down.weight", 5632, 2048, 0},
                              {"token_embd.weight", 2048, 32000, 0},
                              {"output_norm.weight", 2048, 0, 0},
                              {"output.weight", 2048, 32000, 0},
                              {0}};

static const shape gpt2[] = {{"token_embd.weight", 768, 50257, 0},
                             {"position_embd.weight", 768, 1024, 0},
                             {"blk.%d.attn_norm.weight", 768, 0, 0},
                             {"blk.%d.attn_qkv.weight", 768, 2304, 0},
                             {"blk.%d.attn_qkv.bias", 2304, 0, 0},
                             {"blk.%d.attn_output.weight", 768, 768, 0},
                             {"blk.%d.ffn_up.weight", 768, 3072, 0},
                             {"blk.%d.ffn_down.weight", 3072, 768, 0},
                             {0}};

static const shape moe[] = {{"token_embd.weight", 4096, 32000, 0},
                            {"output.weight", 4096, 32000, 0},
                            {"blk.%d.attn_q.weight", 4096, 4096, 0},
                            {"blk.%d.attn_k.weight", 4096, 1024, 0},
                            {"blk.%d.attn_v.weight", 4096, 1024, 0},
                            {"blk.%d.attn_output.weight", 4096, 4096, 0},
                            {"blk.%d.ffn_gate_inp.weight", 4096, 8, 0},
                            {"blk.%d.ffn_gate_exps.weight", 4096, 14336, 8},
                            {"blk.%d.ffn_up_exps.weight", 4096, 14336, 8},
                            {"blk.%d.ffn_down_exps.weight", 14336, 4096, 8},
                            {0}};

/* Keeps what is asked of every model: known names of types. */
static const char *type_of(const char *mix, const quant_model *m, const char *name,
                           const shape *s) {
    const int64_t ne[3] = {s->n, s->m, s->k};
    const char *type = llm_quant_mix_type(llm_quant_mix_find(mix), m, name,
                                          s->k   ? 3
                                          : s->m ? 2
                                                 : 1,
                                          ne);
    bool known = !type || ggl_type_find(type);
    for (int id = 0; id < 64 && !known; id++)
        known = ggl_type_foreign_name(id) && strcasecmp(ggl_type_foreign_name(id), type) == 0;
    CHECK_MSG(known, "%s gives %s the type %s, which there is not", mix, name, type);
    return type;
}

static void name_of(char *to, const shape *s, int layer) {
    const char *at = strstr(s->name, "%d");
    if (at)
        snprintf(to, 64, "%.*s%d%s", (int)(at - s->name), s->name, layer, at + 2);
    else
        snprintf(to, 64, "%s", s->name);
}

static bool each_layer(const shape *s) {
    return strstr(s->name, "%d") != NULL;
}

static quant_model model_of(const shape *shapes, int n_layer, int n_head, int n_head_kv,
                            int n_expert) {
    quant_model m = {
        .n_layer = n_layer, .n_head = n_head, .n_head_kv = n_head_kv, .n_expert = n_expert};
    char name[64];
    for (const shape *s = shapes; s->name; s++)
        for (int i = 0; i < (each_layer(s) ? n_layer : 1); i++) {
            name_of(name, s, i);
            llm_quant_model_add(&m, name);
        }
    return m;
}

/* How many tensors of the model get `type` (NULL: stay). */
static int count(const char *mix, const shape *shapes, const quant_model *m, const char *type) {
    char name[64];
    int n = 0;
    for (const shape *s = shapes; s->name; s++)
        for (int i = 0; i < (each_layer(s) ? m->n_layer : 1); i++) {
            name_of(name, s, i);
            const char *t = type_of(mix, m, name, s);
            n += type ? t && strcmp(t, type) == 0 : !t;
        }
    return n;
}

/* The layers in which tensors of that name get `type`: "0 1 4". */
static const char *layers(const char *mix, const shape *shapes, const quant_model *m,
                          const char *tensor, const char *type) {
    static char list[512];
    char name[64];
    list[0] = '\0';
    for (const shape *s = shapes; s->name; s++)
        for (int i = 0; strstr(s->name, tensor) && i < m->n_layer; i++) {
            name_of(name, s, i);
            const char *t = type_of(mix, m, name, s);
            if (t && strcmp(t, type) == 0)
                snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d",
                         list[0] ? " " : "", i);
        }
    return list;
}

TEST(names) {
    for (int k = 0; llm_quant_mix_at(k); k++) {
        const quant_mix *mix = llm_quant_mix_at(k);
        CHECK(llm_quant_mix_find(mix->name) == mix);
        if (mix->alias)
            CHECK(llm_quant_mix_find(mix->alias) == mix);
        for (int i = 0; i < k; i++)
            CHECK(llm_quant_mix_at(i)->file_type != mix->file_type);
    }
    CHECK_STR(llm_quant_mix_find("q4_k")->name, "Q4_K_M");
    CHECK_INT(llm_quant_mix_find("MXFP4_MOE")->file_type, 38);
    CHECK(!llm_quant_mix_find("Q4"));
    CHECK(!llm_quant_mix_find(""));
}

TEST(llama_22_layers) {
    quant_model m = model_of(llama, 22, 32, 4, 0);
    /* as the published file of TinyLlama 1.1B: 45 f32, 135 q4_K, 21 q6_K */
    CHECK_INT(count("Q4_K_M", llama, &m, NULL), 45);
    CHECK_INT(count("Q4_K_M", llama, &m, "q4_k"), 135);
    CHECK_INT(count("Q4_K_M", llama, &m, "q6_k"), 21);
    CHECK_STR(layers("Q4_K_M", llama, &m, "attn_v", "q6_k"), "0 1 4 7 10 13 16 19 20 21");
    CHECK_STR(layers("Q4_K_M", llama, &m, "ffn_down", "q6_k"), "0 1 4 7 10 13 16 19 20 21");
    CHECK_STR(layers("Q5_K_M", llama, &m, "ffn_down", "q6_k"), "0 1 4 7 10 13 16 19 20 21");
    CHECK_STR(layers("Q4_K_S", llama, &m, "attn_v", "q5_k"), "0 1 2 3");
    CHECK_STR(layers("Q4_K_S", llama, &m, "ffn_down", "q5_k"), "0 1");
    CHECK_STR(layers("Q3_K_M", llama, &m, "attn_v", "q5_k"), "0 1");
    CHECK_STR(layers("Q3_K_M", llama, &m, "ffn_down", "q5_k"), "0");
    CHECK_STR(layers("Q2_K_S", llama, &m, "ffn_down", "q4_k"), "0 1");
    CHECK_INT(count("Q2_K", llama, &m, "q4_k"), 22); /* attn_v: 8 heads share it */
    CHECK_INT(count("Q2_K", llama, &m, "q3_k"), 44); /* attn_output, ffn_down */
    CHECK_INT(count("Q3_K_L", llama, &m, "q5_k"), 66);
    CHECK_INT(count("Q5_K_S", llama, &m, "q5_k"), 155);
    CHECK_INT(count("Q6_K", llama, &m, "q6_k"), 156);
    CHECK_INT(count("IQ4_XS", llama, &m, "q5_k"), 24);
    CHECK_INT(count("IQ4_NL", llama, &m, "iq4_nl"), 131);
    CHECK_INT(count("Q8_0", llama, &m, "q8_0"), 156);
    CHECK_INT(count("Q4_0", llama, &m, "q4_0"), 155);
    CHECK_INT(count("Q5_1", llama, &m, "q6_k"), 1);
    CHECK_INT(count("F16", llama, &m, "f16"), 156);
    CHECK_INT(count("TQ2_0", llama, &m, "q4_k"), 1);
    CHECK_INT(count("MXFP4_MOE", llama, &m, "q8_0"), 156);
}

/* Worked out by hand from llama.cpp's rules of August 2026. */
TEST(small_mixes) {
    quant_model m = model_of(llama, 22, 32, 4, 0);
    CHECK_INT(count("IQ2_XS", llama, &m, "q5_k"), 1);  /* output */
    CHECK_INT(count("IQ2_XS", llama, &m, "q4_k"), 22); /* attn_v: 8 heads share it */
    CHECK_INT(count("IQ2_XS", llama, &m, "q2_k"), 3);  /* token_embd, ffn_down of two layers */
    CHECK_INT(count("IQ2_XS", llama, &m, "iq2_xs"), 130);
    CHECK_INT(count("IQ2_S", llama, &m, "iq3_s"), 25); /* the same, and attn_output */
    CHECK_INT(count("IQ2_M", llama, &m, "iq2_s"), 108);
    CHECK_INT(count("IQ1_M", llama, &m, "iq2_xxs"), 22);
    CHECK_STR(layers("IQ3_XS", llama, &m, "ffn_up", "iq3_xxs"),
              "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18");
    CHECK_INT(count("IQ3_XS", llama, &m, "iq3_xxs"), 78);
    CHECK_INT(count("IQ3_M", llama, &m, "q4_k"), 46);
    CHECK_INT(count("IQ3_XXS", llama, &m, "iq2_s"), 44); /* attn_q, attn_k */
    CHECK_INT(count("IQ3_XXS", llama, &m, "q3_k"), 20);
    CHECK_INT(count("IQ3_XXS", llama, &m, "iq3_s"), 23);
    m.has_matrix = true;
    CHECK_INT(count("IQ3_XXS", llama, &m, "q3_k"), 0);
    CHECK_INT(count("IQ3_XXS", llama, &m, "iq3_xxs"), 66);
    CHECK_STR(layers("Q4_0", llama, &m, "ffn_down", "q4_1"), "0 1");
    CHECK_STR(layers("Q5_0", llama, &m, "ffn_down", "q5_1"), "0 1");
    CHECK_INT(count("IQ4_XS", llama, &m, "q5_k"), 22);
    quant_model eight = model_of(moe, 32, 32, 8, 8);
    CHECK_INT(count("IQ2_XXS", moe, &eight, "q5_k"), 33);
    CHECK_INT(count("IQ2_XXS", moe, &eight, "q4_k"), 64);
    CHECK_INT(count("IQ3_S", moe, &eight, "q8_0"), 64);
}

TEST(mistral_32_layers) {
    quant_model m = model_of(llama, 32, 32, 8, 0);
    /* as the published files of Mistral 7B */
    CHECK_INT(count("Q3_K_M", llama, &m, "q3_k"), 129);
    CHECK_INT(count("Q3_K_M", llama, &m, "q4_k"), 92);
    CHECK_INT(count("Q3_K_M", llama, &m, "q5_k"), 4);
    CHECK_INT(count("Q4_K_M", llama, &m, "q4_k"), 193);
    CHECK_INT(count("Q4_K_M", llama, &m, "q6_k"), 33);
}

TEST(no_shared_values) {
    quant_model m = model_of(llama, 32, 32, 32, 0);
    CHECK_INT(count("Q2_K", llama, &m, "q4_k"), 0);
    CHECK_INT(count("Q2_K", llama, &m, "q3_k"), 96);
    CHECK_INT(count("IQ4_XS", llama, &m, "q5_k"), 4); /* ffn_down of the first eighth */
}

TEST(llama_70b) {
    quant_model m = model_of(llama, 80, 64, 8, 0);
    /* as the published file of Llama 2 70B: 161 f32, 441 q4_K, 40 q5_K, 81 q6_K */
    CHECK_INT(count("Q4_K_M", llama, &m, NULL), 161);
    CHECK_INT(count("Q4_K_M", llama, &m, "q4_k"), 441);
    CHECK_INT(count("Q4_K_M", llama, &m, "q5_k"), 40);
    CHECK_INT(count("Q4_K_M", llama, &m, "q6_k"), 81);
    CHECK_STR(layers("Q3_K_S", llama, &m, "attn_k", "q5_k"), "");
    CHECK_INT(count("Q3_K_S", llama, &m, "q5_k"), 80);
    CHECK_INT(count("Q2_K", llama, &m, "q5_k"), 80);
    CHECK_INT(count("Q5_K_S", llama, &m, "q6_k"), 1);
    quant_model plain = model_of(llama, 80, 64, 64, 0); /* "65B" */
    CHECK_INT(count("Q3_K_S", llama, &plain, "q5_k"), 0);
}

TEST(gpt2_12_layers) {
    quant_model m = model_of(gpt2, 12, 12, 12, 0);
    CHECK_INT(count("Q4_K_M", gpt2, &m, NULL), 1 + 24); /* positions, norms, biases */
    CHECK_INT(count("Q4_K_M", gpt2, &m, "q5_k"), 12);   /* attn_qkv */
    CHECK_STR(layers("Q4_K_M", gpt2, &m, "ffn_down", "q6_k"), "0 3 6 9 10 11");
    CHECK_INT(count("Q4_K_M", gpt2, &m, "q6_k"), 7); /* and the embedding, which makes the logits */
    CHECK_INT(count("Q5_K_M", gpt2, &m, "q6_k"), 19);
    CHECK_INT(count("Q3_K_L", gpt2, &m, "q4_k"), 12);
    CHECK_INT(count("BF16", gpt2, &m, "bf16"), 49);
}

TEST(eight_experts) {
    quant_model m = model_of(moe, 32, 32, 8, 8);
    CHECK_INT(count("Q4_K_M", moe, &m, NULL), 32); /* routers */
    CHECK_INT(count("Q4_K_M", moe, &m, "q8_0"), 64);
    CHECK_INT(count("Q4_K_M", moe, &m, "q5_k"), 32);
    CHECK_INT(count("Q4_K_M", moe, &m, "q6_k"), 17);
    CHECK_INT(count("Q3_K_L", moe, &m, "q3_k"),
              32 * 4 + 1); /* attn_output has no more bits there */
    CHECK_INT(count("MXFP4_MOE", moe, &m, "mxfp4"), 96);
    CHECK_INT(count("MXFP4_MOE", moe, &m, "q8_0"), 32 * 4 + 2);
    quant_model many = model_of(moe, 32, 32, 4, 128);
    CHECK_INT(count("Q4_K_M", moe, &many, "q8_0"), 0);
    CHECK_INT(count("Q4_K_M", moe, &many, "q6_k"), 33);
}

/* Some layers only have attention: what counts is how many have it before. */
TEST(hybrid) {
    quant_model m = {.n_layer = 16, .n_head = 16, .n_head_kv = 8};
    const int64_t ne[2] = {1024, 512};
    char name[64];
    for (int i = 3; i < 16; i += 4) {
        snprintf(name, sizeof name, "blk.%d.attn_v.weight", i);
        llm_quant_model_add(&m, name);
    }
    CHECK_INT(m.n_value, 4);
    const quant_mix *mix = llm_quant_mix_find("Q3_K_M");
    CHECK_STR(llm_quant_mix_type(mix, &m, "blk.7.attn_v.weight", 2, ne), "q5_k");
    CHECK_STR(llm_quant_mix_type(mix, &m, "blk.11.attn_v.weight", 2, ne), "q4_k");
    CHECK_STR(llm_quant_mix_type(llm_quant_mix_find("Q4_K_M"), &m, "blk.15.attn_v.weight", 2, ne),
              "q6_k");
    /* numbers that a name may hold but no model has */
    CHECK(llm_quant_mix_type(mix, &m, "blk.99999999999999999999.attn_v.weight", 2, ne) != NULL);
    CHECK(llm_quant_mix_type(mix, &m, "blk.2147483646.ffn_down.weight", 2, ne) != NULL);
    CHECK(llm_quant_mix_type(mix, &m, "blk.x.ffn_down.weight", 2, ne) != NULL);
}

TEST(what_stays) {
    const int64_t vector[2] = {64, 1}, matrix[2] = {64, 64};
    CHECK(llm_quant_wanted("blk.0.attn_q.weight", 2, matrix));
    CHECK(!llm_quant_wanted("blk.0.attn_q.weight", 2, vector));
    CHECK(!llm_quant_wanted("blk.0.attn_q.weight", 1, matrix));
    CHECK(!llm_quant_wanted("blk.0.attn_q.bias", 2, matrix));
    CHECK(!llm_quant_wanted("blk.0.attn_q_norm.weight", 2, matrix));
    CHECK(!llm_quant_wanted("blk.0.ffn_gate_inp.weight", 2, matrix));
    CHECK(!llm_quant_wanted("blk.0.ssm_conv1d.weight", 2, matrix));
    CHECK(!llm_quant_wanted("blk.0.shortconv.conv.weight", 2, matrix));
    CHECK(llm_quant_wanted("blk.0.shortconv.in_proj.weight", 2, matrix));
    CHECK(!llm_quant_wanted("position_embd.weight", 2, matrix));
    CHECK(!llm_quant_wanted("", 2, matrix));
}

TEST(rows_that_do_not_fit) {
    static const char *const pairs[][2] = {
        {"q2_k", "q4_0"}, {"q3_k", "q4_0"},     {"q4_k", "q5_0"},  {"q5_k", "q5_1"},
        {"q6_k", "q8_0"}, {"iq4_xs", "iq4_nl"}, {"tq1_0", "q4_0"}, {"tq2_0", "q4_0"}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        CHECK_STR(llm_quant_fit(pairs[k][0], 512), pairs[k][0]);
        CHECK_STR(llm_quant_fit(pairs[k][0], 96), pairs[k][1]);
        CHECK_STR(llm_quant_fit(pairs[k][0], 172), "f16");
    }
    CHECK_STR(llm_quant_fit("q8_0", 33), "f16");
    CHECK_STR(llm_quant_fit("bf16", 33), "bf16");
    for (int k = 0; ggl_type_at(k); k++) { /* the table of blocks agrees with that of types */
        const ggl_type_info *t = ggl_type_at(k);
        CHECK_STR(llm_quant_fit(t->name, t->block), t->name);
        if (t->block > 32 && llm_quant_type_usable(t))
            CHECK_MSG(strcmp(llm_quant_fit(t->name, 96), "f16") != 0,
                      "%s has no row in quant_mix.c's table of blocks: rows of 96 became f16",
                      t->name);
        if (t->block > 1)
            CHECK(strcmp(llm_quant_fit(t->name, t->block + 1), t->name) != 0);
    }
    /* the logits' matrix is q8_0 where its rows do not fit */
    quant_model m = {.n_layer = 2, .n_head = 2, .n_head_kv = 2};
    const int64_t narrow[2] = {96, 1000};
    CHECK_STR(llm_quant_mix_type(llm_quant_mix_find("Q4_K_M"), &m, "token_embd.weight", 2, narrow),
              "q8_0");
    CHECK_STR(llm_quant_mix_type(llm_quant_mix_find("Q4_0"), &m, "token_embd.weight", 2, narrow),
              "q6_k");
    llm_quant_model_add(&m, "output.weight");
    CHECK_STR(llm_quant_mix_type(llm_quant_mix_find("Q4_K_M"), &m, "token_embd.weight", 2, narrow),
              "q4_k");
}

TEST(error_weights) {
    quant_model m = {.n_layer = 4};
    CHECK(llm_quant_error_weight(&m, "token_embd.weight", 0) == 1); /* it makes the logits */
    llm_quant_model_add(&m, "output.weight");
    CHECK(llm_quant_error_weight(&m, "output.weight", 1) == 1);
    static const char *const names[] = {"token_embd.weight",     "blk.0.attn_q.weight",
                                        "blk.3.ffn_down.weight", "blk.1.ffn_gate_exps.weight",
                                        "blk.2.ssm_in.weight",   "other.weight"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const double least = llm_quant_error_weight(&m, names[k], 0),
                     most = llm_quant_error_weight(&m, names[k], 1),
                     middle = llm_quant_error_weight(&m, names[k], 0.5);
        CHECK_MSG(least > 0 && least < middle && middle < most && most < 2, "%s: %g, %g, %g",
                  names[k], least, middle, most);
    }
    CHECK(llm_quant_error_weight(&m, "blk.0.attn_v.weight", 0) >
          llm_quant_error_weight(&m, "blk.1.attn_v.weight", 0));
    const double before = llm_quant_error_weight(&m, "blk.1.attn_v.weight", 0);
    m.n_layer = 8;
    CHECK(llm_quant_error_weight(&m, "blk.1.attn_v.weight", 0) < before);
}

TEST(types) {
    ggl_error err = {0};
    CHECK(llm_quant_type_find("Q8_0", &err) == ggl_type_get(GGL_Q8_0));
    CHECK(llm_quant_type_needs_matrix(ggl_type_get(GGL_Q2_K)) &&
          llm_quant_type_needs_matrix(ggl_type_get(GGL_IQ3_S)) &&
          !llm_quant_type_needs_matrix(ggl_type_get(GGL_IQ4_XS)) &&
          !llm_quant_type_needs_matrix(ggl_type_get(GGL_TQ1_0)));
    CHECK(!llm_quant_type_find("i32", &err));
    CHECK_HAS(err.msg, "type i32 can only be read");
    CHECK(!llm_quant_type_find("q9_9", &err));
    CHECK_HAS(err.msg, "this build does not have type q9_9");
}

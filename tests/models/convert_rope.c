/* llm-convert and the rotation: the forms that transformers 4 and 5 write, each way to scale it, rope.x in sections. */
#include <math.h>

#include "config_test.h"
#include "hf_layout.h"

/* --- the rotation in both forms --------------------------------------------------------------- */

typedef struct family {
    const char *name, *class_name, *keys, *optional;
    double theta;
} family;

#define SIZES                                                                                      \
    "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=96 "  \
    "attention.head_count=4 "
#define GQA "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=0.01 "
#define D32 "attention.key_length=32 attention.value_length=32 "

static const family families[] = {
    {"llama", "LlamaForCausalLM", SIZES GQA "rope.dimension_count=16 ", "", 10000},
    {"llama", "MistralForCausalLM", SIZES GQA "rope.dimension_count=16 ", "output.weight", 1e6},
    {"llama", "MixtralForCausalLM",
     SIZES GQA "rope.dimension_count=16 expert_count=4 expert_used_count=2 ", "output.weight", 1e6},
    {"qwen2", "Qwen2ForCausalLM", SIZES GQA, "", 1e6},
    {"qwen3", "Qwen3ForCausalLM", SIZES GQA D32, "", 1e6},
    {"qwen3moe", "Qwen3MoeForCausalLM",
     SIZES GQA D32 "expert_count=4 expert_used_count=2 expert_feed_forward_length=32 ",
     "output.weight", 1e6},
    {"gemma2", "Gemma2ForCausalLM",
     SIZES GQA D32
     "attention.sliding_window=16 attn_logit_softcapping=3 final_logit_softcapping=4 ",
     "", 10000},
    {"phi3", "Phi3ForCausalLM", SIZES GQA "rope.dimension_count=16 ", "output.weight", 10000},
    {"qwen35", "Qwen3_5ForCausalLM",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=4 feed_forward_length=96 "
     "attention.head_count=4 " GQA D32
     "rope.dimension_count=32 ssm.conv_kernel=4 ssm.state_size=16 ssm.group_count=2 "
     "ssm.time_step_rank=4 ssm.inner_size=64 "
     "full_attention_interval=4 ",
     "", 1e7},
};
#define N_FAMILIES ((int)(sizeof families / sizeof *families))

/* The contents of rope_scaling, the resulting keys, the descriptors that have it. */
static const struct {
    const char *type, *old_type, *values, *keys, *who;
} scalings[] = {
    {"default", NULL, "", "", "llama qwen2 qwen3 qwen3moe gemma2 phi3 qwen35"},
    {"linear", NULL, ", \"factor\": 4.0", "rope.scaling.type=linear rope.scaling.factor=4",
     "llama qwen2 qwen3 qwen3moe gemma2 qwen35"},
    {"llama3", NULL,
     ", \"factor\": 32.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
     "\"original_max_position_embeddings\": 64",
     "", "llama"},
    {"yarn", NULL, ", \"factor\": 4.0, \"original_max_position_embeddings\": 64",
     "rope.scaling.type=yarn rope.scaling.factor=4 rope.scaling.original_context_length=64",
     "llama qwen2 qwen3 qwen3moe gemma2 qwen35"},
    /* 1.25 / (1 + 0.1 ln 4) */
    {"yarn", NULL,
     ", \"factor\": 4.0, \"attention_factor\": 1.25, \"beta_fast\": 64, \"beta_slow\": 2",
     "rope.scaling.type=yarn rope.scaling.factor=4 rope.scaling.original_context_length=256 "
     "rope.scaling.attn_factor=1.0978111 "
     "rope.scaling.yarn_beta_fast=64 rope.scaling.yarn_beta_slow=2",
     "llama qwen2 qwen3 qwen3moe gemma2 qwen35"},
    /* equal mscales leave a magnitude of 1, which is 1 / (1 + 0.1 ln 4) times yarn's */
    {"yarn", NULL, ", \"factor\": 4.0, \"mscale\": 1.0, \"mscale_all_dim\": 1.0",
     "rope.scaling.factor=4 rope.scaling.attn_factor=0.87824887",
     "llama qwen2 qwen3 qwen3moe gemma2 qwen35"},
    /* sqrt(1 + ln 4 / ln 64) */
    {"longrope", "su",
     ", \"long_factor\": [1, 2, 3, 4, 5, 6, 7, 8], \"short_factor\": [1, 1, 1, 1, 1, 1, 1, 2]",
     "rope.scaling.original_context_length=64 rope.scaling.attn_factor=1.1547005", "phi3 llama"},
    {"dynamic", NULL, ", \"factor\": 2.0", "", ""},
    {"proportional", NULL, ", \"factor\": 2.0", "", ""},
};
#define N_SCALINGS ((int)(sizeof scalings / sizeof *scalings))

static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *s = list; (s = strstr(s, word)); s++)
        if ((s == list || s[-1] == ' ') && (s[n] == 0 || s[n] == ' '))
            return true;
    return false;
}

static void check_keys(const char *file, const char *arch, const char *keys, double theta) {
    ggl_gguf *f;
    REQUIRE_OK(ggl_gguf_open(&f, test_path(file), NULL, &err), &err);
    char all[512];
    snprintf(all, sizeof all, "rope.freq_base=%.0f %s", theta, keys);
    for (char *s = strtok(all, " "); s; s = strtok(NULL, " ")) {
        char key[128], *value = strchr(s, '=');
        double x;
        ggl_str text;
        snprintf(key, sizeof key, "%s.%.*s", arch, (int)(value - s), s);
        const ggl_gguf_value *v = ggl_gguf_find(f, key);
        if (!CHECK_MSG(v, "no key %s", key))
            continue;
        if (*++value >= 'a')
            CHECK_MSG(ggl_gguf_string(v, 0, &text) && text.n == strlen(value) &&
                          memcmp(text.s, value, text.n) == 0,
                      "%s", key);
        else
            CHECK_MSG(ggl_gguf_number(v, 0, &x) && fabs(x - strtod(value, NULL)) <= 1e-6 * x,
                      "%s is %.9g, not %s", key, x, value);
    }
    snprintf(all, sizeof all, "%s.rope.scaling.type", arch);
    CHECK(strstr(keys, "rope.scaling.") || !ggl_gguf_find(f, all));
    ggl_gguf_close(f);
}

static bool same_bytes(const char *a, const char *b) {
    size_t n[2];
    unsigned char *x = test_read_file(test_path(a), &n[0]),
                  *y = test_read_file(test_path(b), &n[1]);
    bool same = x && y && n[0] == n[1] && memcmp(x, y, n[0]) == 0;
    free(x);
    free(y);
    return same;
}

/* The rotation's values: transformers 4, 4 with the older name `type`, 5; longrope's original length stood outside. */
static void rotation(char *buf, size_t size, int form, int k, double theta, bool part) {
    const char *type = scalings[k].type, *values = scalings[k].values,
               *share = part ? "\"partial_rotary_factor\": 1.0, " : "";
    const bool outside = strcmp(type, "longrope") == 0;
    const char *orig = outside ? "\"original_max_position_embeddings\": 64" : "";
    if (form == 2)
        snprintf(buf, size,
                 "\"rope_parameters\": {%s\"rope_theta\": %.1f, \"rope_type\": \"%s\"%s%s%s}",
                 share, theta, type, values, outside ? ", " : "", orig);
    else if (strcmp(type, "default") == 0)
        snprintf(buf, size, "%s\"rope_theta\": %.1f, \"rope_scaling\": null", share, theta);
    else
        snprintf(buf, size, "%s%s%s\"rope_theta\": %.1f, \"rope_scaling\": {\"%s\": \"%s\"%s}",
                 share, orig, outside ? ", " : "", theta, form ? "type" : "rope_type",
                 form && scalings[k].old_type ? scalings[k].old_type : type, values);
}

static void check_forms(const family *a, const layout *l, int k) {
    static const char *const file[] = {"a.gguf", "b.gguf", "c.gguf"};
    const bool known = has_word(scalings[k].who, a->name);
    for (int form = 0; form < 3; form++) {
        char text[1024], words[128];
        rotation(text, sizeof text, form, k, a->theta, strcmp(a->name, "qwen35") == 0);
        char *config = layout_config(l, a->class_name, text);
        put_config(config);
        free(config);
        bool ok = convert_config(NULL, file[form], false);
        CHECK_MSG(ok == known, "%s with %s in form %d: %s", a->class_name, scalings[k].type, form,
                  ok ? "converted" : err.msg);
        snprintf(words, sizeof words, "unknown rope_type \"%s\"", scalings[k].type);
        if (!ok)
            CHECK_HAS(err.msg, words);
        if (!ok || !known)
            continue;
        check_keys(file[form], a->name, scalings[k].keys, a->theta);
        CHECK_MSG(form == 0 || same_bytes(file[0], file[form]),
                  "%s, %s: form %d gives another file", a->class_name, scalings[k].type, form);
    }
}

/* Each class, each scaling, each form: the same file, to the byte, so the same logits; or refused by name. */
TEST(forms_of_the_rotation) {
    for (int i = 0; i < N_FAMILIES; i++)
        for (int k = 0; k < N_SCALINGS; k++) {
            const family *a = &families[i];
            layout l, hf;
            char *config;
            const char *optional =
                strcmp(scalings[k].type, "llama3") == 0 && strcmp(a->name, "llama") == 0
                    ? "rope_freqs.weight"
                    : a->optional;
            char keys[600];
            snprintf(keys, sizeof keys, "%srope.freq_base=%.0f", a->keys, a->theta);
            REQUIRE(layout_make(&l, a->name, keys, optional, true));
            for (int t = 0; t < l.n; t++) /* -exp(A_log) is negative */
                for (int64_t n = 0; strstr(l.tensor[t].name, ".ssm_a") && l.tensor[t].n_dims == 1 &&
                                    n < l.tensor[t].ne[0];
                     n++)
                    l.tensor[t].data[n] = -1;
            REQUIRE(layout_to_hf(&l, a->class_name, &hf, &config));
            REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
            check_forms(a, &l, k);
            free(config);
            layout_free(&l);
            layout_free(&hf);
        }
}

/* Factors that are not above zero make frequencies that are infinite, or turn backwards. */
TEST(odd_factors) {
    static const char *const list[] = {"0", "-2", "1e39"};
    const family *a = &families[7];
    layout l, hf;
    char *config, text[600];
    REQUIRE(strcmp(a->name, "phi3") == 0 && layout_make(&l, a->name, a->keys, a->optional, true) &&
            layout_to_hf(&l, a->class_name, &hf, &config));
    free(config);
    REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        snprintf(text, sizeof text,
                 "\"original_max_position_embeddings\": 64, \"rope_theta\": 10000.0, "
                 "\"rope_scaling\": {\"type\": \"longrope\", "
                 "\"long_factor\": [1, 2, 3, %s, 5, 6, 7, 8], \"short_factor\": [1, 1, 1, 1, 1, 1, "
                 "1, 1]}",
                 list[k]);
        put_config(config = layout_config(&l, a->class_name, text));
        free(config);
        CHECK(!convert_config(NULL, "odd.gguf", false));
        CHECK_HAS(err.msg, "tensor rope_factors_long.weight has the value ");
        CHECK_HAS(err.msg, "which cannot be right");
    }
    layout_free(&l);
    layout_free(&hf);
}

/* --- rope.x ----------------------------------------------------------------------------------- */

/* The values that rope.x in a section reads. */
static const struct {
    const char *lines, *config;
    double k;          /* 0: no key */
    const char *words; /* it is refused with these */
} readings[] = {
    {OWN("  .k <- rope.theta\n"), BEGIN "\"rope_theta\": 5}", 5, NULL},
    {OWN("  .k <- rope.theta\n"),
     BEGIN "\"rope_parameters\": {\"rope_theta\": 6}, \"rope_theta\": 6}", 6, NULL},
    {OWN("  .k <- rope.theta\n"),
     BEGIN "\"rope_parameters\": {\"rope_theta\": 6}, \"rope_theta\": 5}", 0,
     "config.json has two different values of rope_theta, in rope_parameters and in rope_theta"},
    {OWN("  .k <- rope.theta\n"), BEGIN "\"rotary_emb_base\": 8}", 8, NULL},
    {OWN("  .k <- rope.partial_rotary_factor\n"), BEGIN "\"rotary_pct\": 0.25}", 0.25, NULL},
    {OWN("  .k <- rope.theta\n"), BEGIN "\"z\": null}", 0, "rope.theta is missing in config.json"},
    {OWN("  .k <- rope.theta ?? none\n"), BEGIN "\"rope_theta\": null}", 0, NULL},
    {OWN("  .k <- 1 if rope.type == \"default\" else 2\n"), BEGIN "\"rope_scaling\": null}", 1,
     NULL},
    {OWN("  .k <- 1 if rope.type == \"longrope\" else 2\n"),
     BEGIN "\"rope_scaling\": {\"type\": \"su\"}}", 1, NULL},
    {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n"),
     BEGIN "\"rope_scaling\": {\"type\": \"su\", \"rope_type\": \"yarn\"}}", 0,
     "rope_scaling in config.json has different values of rope_type and type"},
    {OWN("  .k <- 1 if rope.type == \"longrope\" else 2\n"),
     BEGIN "\"rope_scaling\": {\"type\": \"su\", \"rope_type\": \"longrope\"}}", 1, NULL},
    /* flat values beside those of a kind of layers: neither is dropped */
    {OWN("  .k <- rope.factor ?? 1\n"),
     BEGIN "\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"odd\": {\"x\": 1}}}", 0,
     "rope_parameters in config.json has values for one kind of layers ('odd') and values outside "
     "of it ('factor')"},
    {OWN("  .k <- rope.full_attention.theta\n"),
     BEGIN "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, \"rope_theta\": 6}}", 0,
     "values outside of it ('rope_theta')"},
    {OWN("  .k <- rope.full_attention.theta\n"),
     BEGIN "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, \"rope_theta\": null}}",
     6, NULL},
    {OWN("  .k <- rope.theta\n"), BEGIN "\"rope_parameters\": {\"odd\": {}, \"rope_theta\": 6}}", 6,
     NULL},
    {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n  ignore config.rope_scaling\n"),
     BEGIN "\"rope_scaling\": {\"factor\": 2}}", 0,
     "rope_scaling in config.json has no rope_type or type"},
    {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n"),
     BEGIN "\"rope_scaling\": {\"type\": \"yarn\"}, \"rope_parameters\": {\"rope_type\": "
           "\"linear\"}}",
     0, "two different values of rope_type, in"},
    {OWN("  .k <- rope.factor\n"),
     BEGIN "\"rope_scaling\": {\"factor\": 4}, \"rope_parameters\": {\"factor\": 4}}", 4, NULL},
    {OWN("  .k <- rope.other\n"), BEGIN "\"rope_parameters\": {\"other\": 7}}", 7, NULL},
    {OWN("  .k <- rope.factor\n"),
     BEGIN "\"rope_parameters\": {\"factor\": 7, \"odd\": 2, \"rope_type\": \"default\"}}", 0,
     "rope_parameters.odd = 2, rope_parameters.rope_type = \"default\""},
    /* an object for each kind of layers */
    {OWN("  .k <- rope.full_attention.theta\n  ignore "
         "config.rope_parameters.sliding_attention\n"),
     BEGIN "\"rope_theta\": 9, \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, "
           "\"sliding_attention\": {\"rope_theta\": 7}}}",
     6, NULL},
    {OWN("  .k <- rope.full_attention.theta\n"),
     BEGIN "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, "
           "\"sliding_attention\": {\"rope_theta\": 7}}}",
     0, "rope_parameters.sliding_attention.rope_theta = 7"},
    {OWN("  .k <- rope.sliding_attention.theta + 10 * rope.full_attention.theta\n"),
     BEGIN "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, "
           "\"sliding_attention\": {\"rope_theta\": 7}}}",
     67, NULL},
    {OWN("  .k <- rope.theta\n"),
     BEGIN "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, "
           "\"sliding_attention\": {\"rope_theta\": 6}}}",
     6, NULL},
    {OWN("  .k <- rope.theta\n"),
     BEGIN "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, "
           "\"sliding_attention\": {\"rope_theta\": 7}}}",
     0, "two different values of rope_theta, in rope_parameters and in rope_parameters"},
    {OWN("  .k <- rope.sliding_attention.theta + 10 * rope.full_attention.theta\n"),
     BEGIN "\"rope_theta\": 6, \"rope_local_base_freq\": 7}", 67, NULL},
    {OWN("  .k <- (rope.sliding_attention.factor ?? 1) + 10 * rope.full_attention.factor\n"),
     BEGIN "\"rope_scaling\": {\"factor\": 8}}", 81, NULL},
    {OWN("  .k <- rope.a.b.c\n"), BEGIN "\"z\": null}", 0, "the rotation has values rope.x"},
};

TEST(rope) {
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        double k;
        bool ok = own(readings[i].lines, readings[i].config, &k);
        CHECK_MSG(ok == !readings[i].words, "case %zu: %s", i, ok ? "converted" : err.msg);
        if (!ok && readings[i].words)
            CHECK_HAS(err.msg, readings[i].words);
        CHECK_MSG(k == readings[i].k, "case %zu: %g, not %g", i, k, readings[i].k);
    }
}

/* llm-convert and config.json: the forms that transformers 4 and 5 write, each way to scale the rotation, and values that no line
 * of a section reads. */
#include <math.h>

#include "ggl/backends.h"
#include "ggl/show.h"
#include "hf_layout.h"
#include "llm/convert.h"
#include "test.h"

static ggl_error err;
static ggl_backend *reference;

/* The test's folder to NAME there. */
static bool convert(const char *arch_text, const char *name, bool vocab_only) {
    llm_convert_params p = llm_convert_default();
    char arch[512];
    llm_converter *c;
    if (!reference && ggl_backend_open(&reference, "reference", NULL, &err) != GGL_OK)
        exit(1);
    snprintf(arch, sizeof arch, "%s", test_path("own.arch"));
    if (arch_text && !test_write_file(arch, arch_text, strlen(arch_text)))
        exit(1);
    p.backend = reference;
    p.arch_path = arch_text ? arch : NULL;
    p.vocab_only = vocab_only;
    err = (ggl_error){0};
    if (llm_converter_open(&c, test_folder(), &p, &err) != GGL_OK)
        return false;
    bool ok = llm_converter_write(c, test_path(name), &err) == GGL_OK;
    llm_converter_free(c);
    return ok;
}

static void put_config(const char *text) {
    REQUIRE(test_write_file(test_path("config.json"), text, strlen(text)));
}

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

/* What stands in rope_scaling; the keys that it becomes; the descriptors that have it. */
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
     "rope.scaling.original_context_length=64 rope.scaling.attn_factor=1.1547005", "phi3"},
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
        bool ok = convert(NULL, file[form], false);
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
                for (int64_t n = 0; strstr(l.tensor[t].name, ".ssm_a") && l.tensor[t].n_dims == 1 && n < l.tensor[t].ne[0]; n++)
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
        CHECK(!convert(NULL, "odd.gguf", false));
        CHECK_HAS(err.msg, "tensor rope_factors_long.weight has the value ");
        CHECK_HAS(err.msg, "which makes no sense");
    }
    layout_free(&l);
    layout_free(&hf);
}

/* --- rope.x ----------------------------------------------------------------------------------- */

#define OWN(lines)                                                                                 \
    "arch t\nlanguage 1\na [2, n_vocab]\nlogits = linear(a[token] * (.k ?? 1), a)\nconvert Own:\n" \
    "  .vocab_size <- config.v\n  a <- \"a\"\n" lines
#define BEGIN "{\"architectures\": [\"Own\"], \"v\": 3, "

static bool own(const char *lines, const char *config, double *k) {
    ggl_gguf *f;
    put_config(config);
    *k = 0;
    if (!convert(lines, "own.gguf", true))
        return false;
    if (!CHECK_OK(ggl_gguf_open(&f, test_path("own.gguf"), NULL, &err), &err))
        return true;
    const ggl_gguf_value *v = ggl_gguf_find(f, "t.k");
    CHECK(!v || ggl_gguf_number(v, 0, k));
    ggl_gguf_close(f);
    return true;
}

TEST(rope) {
    static const struct {
        const char *lines, *config;
        double k;          /* 0: no key */
        const char *words; /* it is refused with these */
    } list[] = {
        {OWN("  .k <- rope.theta\n"), BEGIN "\"rope_theta\": 5}", 5, NULL},
        {OWN("  .k <- rope.theta\n"),
         BEGIN "\"rope_parameters\": {\"rope_theta\": 6}, \"rope_theta\": 6}", 6, NULL},
        {OWN("  .k <- rope.theta\n"),
         BEGIN "\"rope_parameters\": {\"rope_theta\": 6}, \"rope_theta\": 5}", 0,
         "config.json has two values of rope_theta that differ, in rope_parameters and in "
         "rope_theta"},
        {OWN("  .k <- rope.theta\n"), BEGIN "\"rotary_emb_base\": 8}", 8, NULL},
        {OWN("  .k <- rope.partial_rotary_factor\n"), BEGIN "\"rotary_pct\": 0.25}", 0.25, NULL},
        {OWN("  .k <- rope.theta\n"), BEGIN "\"z\": null}", 0,
         "rope.theta is missing in config.json"},
        {OWN("  .k <- rope.theta ?? none\n"), BEGIN "\"rope_theta\": null}", 0, NULL},
        {OWN("  .k <- 1 if rope.type == \"default\" else 2\n"), BEGIN "\"rope_scaling\": null}", 1,
         NULL},
        {OWN("  .k <- 1 if rope.type == \"longrope\" else 2\n"),
         BEGIN "\"rope_scaling\": {\"type\": \"su\"}}", 1, NULL},
        {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n"),
         BEGIN "\"rope_scaling\": {\"type\": \"su\", \"rope_type\": \"yarn\"}}", 0,
         "rope_scaling in config.json has a rope_type and a type that differ"},
        {OWN("  .k <- 1 if rope.type == \"longrope\" else 2\n"),
         BEGIN "\"rope_scaling\": {\"type\": \"su\", \"rope_type\": \"longrope\"}}", 1, NULL},
        /* flat values beside those of a kind of layers: neither is dropped */
        {OWN("  .k <- rope.factor ?? 1\n"),
         BEGIN
         "\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"odd\": {\"x\": 1}}}",
         0,
         "rope_parameters in config.json has values for one kind of layers ('odd') and values "
         "beside "
         "them ('factor')"},
        {OWN("  .k <- rope.full_attention.theta\n"),
         BEGIN "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, \"rope_theta\": 6}}",
         0, "values beside them ('rope_theta')"},
        {OWN("  .k <- rope.full_attention.theta\n"),
         BEGIN
         "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 6}, \"rope_theta\": null}}",
         6, NULL},
        {OWN("  .k <- rope.theta\n"),
         BEGIN "\"rope_parameters\": {\"odd\": {}, \"rope_theta\": 6}}", 6, NULL},
        {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n  ignore config.rope_scaling\n"),
         BEGIN "\"rope_scaling\": {\"factor\": 2}}", 0,
         "rope_scaling in config.json has no rope_type or type"},
        {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n"),
         BEGIN "\"rope_scaling\": {\"type\": \"yarn\"}, \"rope_parameters\": {\"rope_type\": "
               "\"linear\"}}",
         0, "two values of rope_type that differ"},
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
         0, "two values of rope_theta that differ, in rope_parameters and in rope_parameters"},
        {OWN("  .k <- rope.sliding_attention.theta + 10 * rope.full_attention.theta\n"),
         BEGIN "\"rope_theta\": 6, \"rope_local_base_freq\": 7}", 67, NULL},
        {OWN("  .k <- (rope.sliding_attention.factor ?? 1) + 10 * rope.full_attention.factor\n"),
         BEGIN "\"rope_scaling\": {\"factor\": 8}}", 81, NULL},
        {OWN("  .k <- rope.a.b.c\n"), BEGIN "\"z\": null}", 0, "the rotation has values rope.x"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double k;
        bool ok = own(list[i].lines, list[i].config, &k);
        CHECK_MSG(ok == !list[i].words, "case %zu: %s", i, ok ? "converted" : err.msg);
        if (!ok && list[i].words)
            CHECK_HAS(err.msg, list[i].words);
        CHECK_MSG(k == list[i].k, "case %zu: %g, not %g", i, k, list[i].k);
    }
}

/* --- what no line reads ----------------------------------------------------------------------- */

TEST(unread) {
    static const struct {
        const char *lines, *config, *words; /* NULL: it is converted */
    } list[] = {
        {OWN(""), BEGIN "\"clip\": 8}",
         "clip = 8. If it changes what the model computes, the convert section in "},
        {OWN(""), BEGIN "\"clip\": 8}",
         "own.arch:5 lacks a line for it; if not, say there: ignore config.clip"},
        {OWN(""),
         BEGIN "\"a\": true, \"b\": {\"c\": [1, 2], \"d\": \"x\", \"e\": null}, \"f\": 0.5}",
         "a = true, b.c = [1, 2], b.d = \"x\", f = 0.5."},
        {OWN(""), BEGIN "\"a\": null, \"b\": [], \"c\": {}, \"d\": {\"e\": null}}", NULL},
        {OWN("  ignore config.clip\n"), BEGIN "\"clip\": 8}", NULL},
        {OWN("  ignore config.a.b, \"x\"\n"), BEGIN "\"a\": {\"b\": {\"c\": 1}}}", NULL},
        {OWN("  ignore config.a.b\n"), BEGIN "\"a\": {\"b\": 1, \"bc\": 2}}",
         "does not read: a.bc = 2. If"},
        {OWN("  require (config.a ?? 1) == 1\n"), BEGIN "\"a\": 1}", NULL},
        {OWN("  .k <- 1 if true else config.a\n"), BEGIN "\"a\": 1}",
         NULL}, /* in a branch that is not taken */
        {OWN("  .k <- config.a.b ?? 1\n"), BEGIN "\"a\": 5}",
         "does not read: a = 5. If"}, /* a.b is no a */
        {OWN("  .k <- 1 if has(config.a) else 2\n"), BEGIN "\"a\": {\"b\": 1}}",
         "does not read: a.b = 1. If"},
        {OWN("  .k <- config.l[1]\n"), BEGIN "\"l\": [1, 2]}", NULL},
        {OWN(""),
         BEGIN "\"torch_dtype\": \"x\", \"hidden_dropout\": 0.5, \"task_specific_params\": {\"a\": "
               "{\"b\": 1}}}",
         NULL},
        {OWN(""),
         BEGIN "\"logit_scale\": 1.0, \"rope_interleaved\": false, \"activation\": \"swiglu\"}",
         NULL},
        {OWN(""),
         BEGIN "\"logit_scale\": 16, \"rope_interleaved\": true, \"activation\": \"swiglux\"}",
         "logit_scale = 16, rope_interleaved = true, activation = \"swiglux\"."},
        {OWN(""), BEGIN "\"quantization_config\": {\"quant_method\": \"gptq\"}}",
         "config.json has quantization_config.quant_method: the weights are quantized in a way "
         "that is not read"},
        {OWN(""),
         BEGIN "\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", "
               "\"activation_scheme\": \"static\"}}",
         "config.json has quantization_config.activation_scheme: the folder's weights are "
         "quantized"},
        {OWN("  require config.quantization_config.quant_method == \"none\"\n"),
         BEGIN "\"quantization_config\": {\"quant_method\": \"none\"}}", NULL},
        /* a name may have dots, brackets, NULs: it is no path */
        {OWN("  .k <- config.a.b ?? 1\n"), BEGIN "\"a.b\": 5}", "does not read: a\\.b = 5. If"},
        {OWN("  .k <- config.a.b\n"), BEGIN "\"a\": {\"b\": 5}, \"a.b\": 5}",
         "does not read: a\\.b = 5. If"},
        {OWN("  ignore config.a.b\n"), BEGIN "\"a.b\": 5}", "does not read: a\\.b = 5. If"},
        {OWN(""), BEGIN "\"torch_dtype\\u0000\": 5}", "does not read: torch_dtype\\u0000 = 5. If"},
        {OWN(""), BEGIN "\"task_specific_params.x\": 5}", "task_specific_params\\.x = 5"},
        {OWN(""), BEGIN "\"transformers.js_config\": {\"x\": 1}}", NULL},
        {OWN(""), BEGIN "\"transformers\": {\"js_config\": 1}}", "transformers.js_config = 1"},
        /* lists of objects */
        {OWN(""), BEGIN "\"l\": [1, {\"x\": 2, \"dropout\": 1}, [3]]}",
         "l[] = 1, l[].x = 2, l[] = [3]. If"},
        {OWN(""), BEGIN "\"l\": [{\"x\": 2}]}",
         "ignore config.l. To go on at your own risk: --ignore-config 'l[].x'"},
        {OWN("  ignore config.l\n"), BEGIN "\"l\": [1, {\"x\": 2}]}", NULL},
        /* switches: off is harmless, on is not */
        {OWN(""),
         BEGIN "\"alibi\": false, \"parallel_attn\": false, \"use_parallel_residual\": false, "
               "\"sliding_window\": -0.0}",
         NULL},
        {OWN(""),
         BEGIN "\"alibi\": true, \"parallel_attn\": true, \"use_parallel_residual\": true}",
         "alibi = true, parallel_attn = true, use_parallel_residual = true. If"},
        {OWN(""), BEGIN "\"alibi\": \"false\", \"rope_ratio\": \"1\"}",
         "alibi = \"false\", rope_ratio = \"1\". If"},
        {OWN(""), BEGIN "\"logit_scale\": 1.0000000000001}",
         "logit_scale = 1.0000000000000999. If"},
        {OWN("  ignore config\n"), BEGIN "\"a\": 1}",
         "'ignore' takes names of source tensors in quotes, and values config.x"},
        {OWN("  ignore config.a + 1\n"), BEGIN "\"a\": 1}",
         "'ignore' takes values by their names alone"},
        {OWN("  use nothing\n"), BEGIN "\"a\": 1}", "the prelude has no lines 'nothing' to use"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double k;
        bool ok = own(list[i].lines, list[i].config, &k);
        CHECK_MSG(ok == !list[i].words, "case %zu: %s", i, ok ? "converted" : err.msg);
        if (!ok && list[i].words)
            CHECK_HAS(err.msg, list[i].words);
    }
}

/* Many values, long names, deep objects: the message stays in its bounds. */
TEST(many_unread) {
    char *text = malloc(1 << 20), *to = text + sprintf(text, "%s", BEGIN);
    double k;
    for (int i = 0; i < 5000; i++)
        to += sprintf(to, "\"name_%d\": %d, ", i, i + 1);
    for (int i = 0; i < 60; i++)
        to += sprintf(to, "\"%0100d\": {", i);
    to += sprintf(to, "\"x\": 1");
    memset(to, '}', 61);
    to[61] = 0;
    CHECK(!own(OWN(""), text, &k));
    CHECK_HAS(err.msg, "name_0 = 1, name_1 = 2, ");
    CHECK_HAS(err.msg, " more. If it changes");
    free(text);
}

static void check_utf8(const char *text) {
    for (const char *s = text; *s; s += ggl_utf8_length(s, strlen(s)))
        if (!CHECK_MSG(ggl_utf8_length(s, strlen(s)) > 0, "no UTF-8 at '%.12s' in: %s", s, text))
            break;
    CHECK_MSG(!strstr(text, "\\x"), "half of a character is shown as bytes: %s", text);
}

/* Messages cut values and names between characters. */
TEST(cut_messages) {
    static const char *const lines[] = {
        OWN("  require config.x in [\"a\"], \"odd x\"\n"), OWN("  require config.x == \"a\"\n"),
        OWN("  .k <- 1 + config.x\n"), OWN("  .k <- value(\"a\xc3\xb6\")\n"),
        OWN("  .k <- config.x.y\n")};
    char text[1000];
    double k;
    for (int shift = 0; shift < 2; shift++)
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            char *to = text + sprintf(text, BEGIN "\"x\": \"%s", shift ? "a" : "");
            for (int n = 0; n < 150; n++)
                to += sprintf(to, "\xc3\xb6");
            sprintf(to, "\"}");
            CHECK(!own(lines[i], text, &k));
            check_utf8(err.msg);
        }
}

/* A long path is not looked up by its beginning, and is cut between characters. */
TEST(long_paths) {
    char text[8000], *to = text + sprintf(text, "%s", BEGIN), word[600];
    double k;
    memset(word, 'a', 600);
    sprintf(to, "\"%.500s\": 1}", word);
    CHECK(!own(OWN(""), text, &k));
    CHECK_HAS(err.msg, ".. = 1. If it changes");
    sprintf(to, "\"x\": {\"%.510s_dropout\": 1}}", word); /* a pattern of the table would fit */
    CHECK(!own(OWN(""), text, &k));
    CHECK_HAS(err.msg, "x.aaaaa");
    to = text + sprintf(text, "%s\"", BEGIN);
    for (int i = 0; i < 300; i++)
        to += sprintf(to, i == 0 ? "b" : "\xc3\xb6");
    sprintf(to, "\": \"%s\"}",
            "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6"
            "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6z\xc3\xb6\xc3"
            "\xb6\xc3\xb6"
            "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3"
            "\xb6\xc3\xb6");
    CHECK(!own(OWN(""), text, &k));
    check_utf8(err.msg);
}

/* --- folders as they are published ------------------------------------------------------------ */

#define COMMON4                                                                                    \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 1, \"eos_token_id\": [2, 3], "                  \
    "\"initializer_range\": 0.02, "                                                                \
    "\"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.51.0\", \"use_cache\": true, "
#define COMMON5                                                                                    \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 1, \"eos_token_id\": [2, 3], "                  \
    "\"initializer_range\": 0.02, \"pad_token_id\": null, "                                        \
    "\"dtype\": \"bfloat16\", \"transformers_version\": \"5.0.0\", \"use_cache\": true, "
#define SIZE SHAPE ", \"hidden_act\": \"silu\""
#define SHAPE                                                                                      \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"max_position_embeddings\": 256, "           \
    "\"num_attention_heads\": 4, "                                                                 \
    "\"num_hidden_layers\": 4, \"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-05, "              \
    "\"vocab_size\": 320"
#define FULL                                                                                       \
    "\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\", "               \
    "\"full_attention\"]"
#define MIXED                                                                                      \
    "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\", "         \
    "\"full_attention\"]"
#define ROPE4             ", \"rope_theta\": 10000.0, \"rope_scaling\": null}"
#define ROPE5             ", \"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": \"default\"}}"
#define CLASS(name, type) "{\"architectures\": [\"" name "\"], \"model_type\": \"" type "\", "

/* Every value that such a file has: none is in the way. The sizes are small. */
TEST(published) {
    static const char *const list[] = {
        CLASS("LlamaForCausalLM", "llama") COMMON4 SIZE
        ", \"attention_bias\": false, \"mlp_bias\": false, \"head_dim\": 16, \"pretraining_tp\": "
        "1, "
        "\"tie_word_embeddings\": false, \"is_llama_config\": true, \"rope_interleaved\": false, "
        "\"_name_or_path\": \"x\", "
        "\"transformers.js_config\": {\"dtype\": \"q4\", \"kv_cache_dtype\": {\"q4f16\": "
        "\"float16\"}}" ROPE4,
        CLASS("LlamaForCausalLM", "llama") COMMON5 SIZE
        ", \"attention_bias\": false, \"mlp_bias\": false, \"head_dim\": 16, \"pretraining_tp\": "
        "1, "
        "\"tie_word_embeddings\": false" ROPE5,
        CLASS("LlamaForCausalLM",
              "llama") "\"bos_token_id\": 0, \"eos_token_id\": 1, \"hidden_act\": \"silu\", "
                       "\"hidden_size\": 64, \"intermediate_size\": 96, "
                       "\"initializer_range\": 0.02, \"max_sequence_length\": 2048, "
                       "\"max_position_embeddings\": 2048, \"num_attention_heads\": 4, "
                       "\"num_hidden_layers\": 4, \"pad_token_id\": -1, \"rms_norm_eps\": 1e-06, "
                       "\"torch_dtype\": \"float16\", "
                       "\"transformers_version\": \"4.27.0.dev0\", \"use_cache\": true, "
                       "\"vocab_size\": 320}",
        CLASS("MistralForCausalLM", "mistral") COMMON4 SIZE
        ", \"head_dim\": 16, \"sliding_window\": null, \"tie_word_embeddings\": false" ROPE4,
        CLASS("MistralForCausalLM", "mistral") COMMON5 SIZE
        ", \"head_dim\": 16, \"sliding_window\": 4096, \"tie_word_embeddings\": false" ROPE5,
        CLASS("MixtralForCausalLM", "mixtral") COMMON4 SIZE
        ", \"num_experts_per_tok\": 2, \"num_local_experts\": 4, \"output_router_logits\": false, "
        "\"router_aux_loss_coef\": 0.02, \"router_jitter_noise\": 0.0, \"sliding_window\": null, "
        "\"tie_word_embeddings\": false" ROPE4,
        CLASS("MixtralForCausalLM", "mixtral") COMMON5 SIZE
        ", \"head_dim\": null, \"num_experts_per_tok\": 2, \"num_local_experts\": 4, "
        "\"output_router_logits\": false, \"router_aux_loss_coef\": 0.02, \"router_jitter_noise\": "
        "0.0, \"tie_word_embeddings\": false" ROPE5,
        CLASS(
            "GPT2LMHeadModel",
            "gpt2") "\"activation_function\": \"gelu_new\", \"attn_pdrop\": 0.1, \"bos_token_id\": "
                    "50256, \"embd_pdrop\": 0.1, "
                    "\"eos_token_id\": 50256, \"initializer_range\": 0.02, \"layer_norm_epsilon\": "
                    "1e-05, \"n_ctx\": 256, \"n_embd\": 64, \"n_head\": 4, \"n_inner\": null, "
                    "\"n_layer\": 2, \"n_positions\": 256, \"reorder_and_upcast_attn\": false, "
                    "\"resid_pdrop\": 0.1, \"scale_attn_by_inverse_layer_idx\": false, "
                    "\"scale_attn_weights\": true, \"summary_activation\": null, "
                    "\"summary_first_dropout\": 0.1, \"summary_proj_to_labels\": true, "
                    "\"summary_type\": \"cls_index\", \"summary_use_proj\": true, "
                    "\"task_specific_params\": {\"text-generation\": {\"do_sample\": true, "
                    "\"max_length\": 50}}, "
                    "\"transformers_version\": \"4.37.2\", \"use_cache\": true, \"vocab_size\": "
                    "320}",
        CLASS("GPT2LMHeadModel",
              "gpt2") "\"activation_function\": \"gelu_new\", \"add_cross_attention\": false, "
                      "\"attn_pdrop\": 0.1, \"bos_token_id\": 50256, "
                      "\"dtype\": \"float32\", \"embd_pdrop\": 0.1, \"eos_token_id\": 50256, "
                      "\"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"n_ctx\": 256, "
                      "\"n_embd\": 64, "
                      "\"n_head\": 4, \"n_inner\": null, \"n_layer\": 2, \"n_positions\": 256, "
                      "\"pad_token_id\": null, \"reorder_and_upcast_attn\": false, "
                      "\"resid_pdrop\": 0.1, "
                      "\"scale_attn_by_inverse_layer_idx\": false, \"scale_attn_weights\": true, "
                      "\"summary_first_dropout\": 0.1, \"summary_proj_to_labels\": true, "
                      "\"summary_type\": \"cls_index\", \"summary_use_proj\": true, "
                      "\"tie_word_embeddings\": true, \"transformers_version\": \"5.0.0\", "
                      "\"use_cache\": true, "
                      "\"vocab_size\": 320}",
        CLASS("Qwen2ForCausalLM", "qwen2") COMMON4 SIZE
        ", \"max_window_layers\": 21, \"sliding_window\": 32768, \"use_sliding_window\": false, "
        "\"use_mrope\": false, \"head_dim\": 16, \"tie_word_embeddings\": true" ROPE4,
        CLASS("Qwen2ForCausalLM", "qwen2") COMMON5 SIZE
        ", \"max_window_layers\": 28, \"sliding_window\": null, \"use_sliding_window\": false, "
        "\"tie_word_embeddings\": true, " FULL ROPE5,
        CLASS("Qwen3ForCausalLM", "qwen3") COMMON4 SIZE
        ", \"attention_bias\": false, \"head_dim\": 16, \"max_window_layers\": 28, "
        "\"sliding_window\": null, "
        "\"use_sliding_window\": false, \"tie_word_embeddings\": true" ROPE4,
        CLASS("Qwen3ForCausalLM", "qwen3") COMMON5 SIZE
        ", \"attention_bias\": false, \"head_dim\": 16, \"max_window_layers\": 28, "
        "\"sliding_window\": null, "
        "\"use_sliding_window\": false, \"tie_word_embeddings\": true, " FULL ROPE5,
        CLASS("Qwen3MoeForCausalLM", "qwen3_moe") COMMON4 SIZE
        ", \"attention_bias\": false, \"decoder_sparse_step\": 1, \"head_dim\": 16, "
        "\"max_window_layers\": 48, "
        "\"mlp_only_layers\": [], \"moe_intermediate_size\": 32, \"norm_topk_prob\": true, "
        "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
        "\"output_router_logits\": false, \"router_aux_loss_coef\": 0.001, \"sliding_window\": "
        "null, \"use_sliding_window\": false, \"tie_word_embeddings\": false" ROPE4,
        CLASS("Qwen3MoeForCausalLM", "qwen3_moe") COMMON5 SIZE
        ", \"attention_bias\": false, \"decoder_sparse_step\": 1, \"head_dim\": 16, "
        "\"mlp_only_layers\": [], \"moe_intermediate_size\": 32, \"norm_topk_prob\": true, "
        "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
        "\"output_router_logits\": false, \"router_aux_loss_coef\": 0.001, \"sliding_window\": "
        "null, \"use_sliding_window\": false, \"tie_word_embeddings\": false" ROPE5,
        CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SIZE
        ", \"attention_bias\": false, \"attn_logit_softcapping\": 50.0, \"cache_implementation\": "
        "\"hybrid\", "
        "\"final_logit_softcapping\": 30.0, \"head_dim\": 16, \"hidden_activation\": "
        "\"gelu_pytorch_tanh\", \"query_pre_attn_scalar\": 16, \"sliding_window\": 64, "
        "\"sliding_window_size\": 64, \"pad_token_id\": 0" ROPE4,
        CLASS("Gemma2ForCausalLM", "gemma2") COMMON5 SIZE
        ", \"attention_bias\": false, \"attn_logit_softcapping\": 50.0, "
        "\"final_logit_softcapping\": 30.0, "
        "\"head_dim\": 16, \"hidden_activation\": \"gelu_pytorch_tanh\", "
        "\"query_pre_attn_scalar\": 16, \"sliding_window\": 64, "
        "\"tie_word_embeddings\": true, \"use_bidirectional_attention\": false, " MIXED ROPE5,
        CLASS("Phi3ForCausalLM", "phi3") COMMON4 SIZE
        ", \"attention_bias\": false, \"auto_map\": {\"AutoConfig\": "
        "\"configuration_phi3.Phi3Config\"}, \"embd_pdrop\": 0.0, "
        "\"full_attn_mod\": 1, \"interpolate_factor\": 1, \"lm_head_bias\": false, \"mlp_bias\": "
        "false, \"original_max_position_embeddings\": 256, "
        "\"partial_rotary_factor\": 0.75, \"resid_pdrop\": 0.0, \"sliding_window\": 2047, "
        "\"tie_word_embeddings\": false" ROPE4,
        CLASS("Phi3ForCausalLM", "phi3") COMMON5 SIZE
        ", \"embd_pdrop\": 0.0, \"original_max_position_embeddings\": 256, \"resid_pdrop\": 0.0, "
        "\"sliding_window\": 2047, \"tie_word_embeddings\": false, \"rope_parameters\": "
        "{\"partial_rotary_factor\": 0.75, \"rope_theta\": 10000.0, "
        "\"rope_type\": \"default\"}}",
        CLASS("BloomForCausalLM",
              "bloom") "\"apply_residual_connection_post_layernorm\": false, "
                       "\"attention_dropout\": 0.0, \"attention_softmax_in_fp32\": true, "
                       "\"bias_dropout_fusion\": true, \"bos_token_id\": 1, \"eos_token_id\": 2, "
                       "\"hidden_dropout\": 0.0, \"hidden_size\": 64, \"initializer_range\": 0.02, "
                       "\"layer_norm_epsilon\": 1e-05, \"masked_softmax_fusion\": true, "
                       "\"n_head\": 4, \"n_inner\": null, \"n_layer\": 2, \"offset_alibi\": 100, "
                       "\"pad_token_id\": 3, "
                       "\"pretraining_tp\": 4, \"seq_length\": 256, \"skip_bias_add\": true, "
                       "\"skip_bias_add_qkv\": false, \"slow_but_exact\": false, \"unk_token_id\": "
                       "0, "
                       "\"use_cache\": true, \"vocab_size\": 320}",
        CLASS("BloomForCausalLM",
              "bloom") "\"apply_residual_connection_post_layernorm\": false, "
                       "\"attention_dropout\": 0.0, \"bos_token_id\": 1, \"dtype\": \"float16\", "
                       "\"eos_token_id\": 2, \"hidden_dropout\": 0.0, \"hidden_size\": 64, "
                       "\"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"n_head\": 4, "
                       "\"n_layer\": 2, "
                       "\"pretraining_tp\": 1, \"slow_but_exact\": false, \"tie_word_embeddings\": "
                       "true, \"transformers_version\": \"5.0.0\", \"use_cache\": true, "
                       "\"vocab_size\": 320}",
        CLASS("Qwen3_5ForCausalLM", "qwen3_5_text") COMMON5 SIZE
        ", \"attention_bias\": false, \"attn_output_gate\": true, \"full_attention_interval\": 4, "
        "\"head_dim\": 32, "
        "\"layer_types\": [\"linear_attention\", \"linear_attention\", \"linear_attention\", "
        "\"full_attention\"], \"linear_conv_kernel_dim\": 4, "
        "\"linear_key_head_dim\": 16, \"linear_num_key_heads\": 2, \"linear_num_value_heads\": 4, "
        "\"linear_value_head_dim\": 16, \"mamba_ssm_dtype\": \"float32\", "
        "\"mlp_only_layers\": [], \"mtp_num_hidden_layers\": 1, \"mtp_use_dedicated_embeddings\": "
        "false, \"tie_word_embeddings\": true, "
        "\"rope_parameters\": {\"mrope_interleaved\": true, \"mrope_section\": [2, 1, 1], "
        "\"partial_rotary_factor\": 0.25, \"rope_theta\": 10000000, "
        "\"rope_type\": \"default\"}}",
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        put_config(list[i]);
        CHECK_MSG(convert(NULL, "out.gguf", true), "%.60s: %s", list[i], err.msg);
    }
}

/* Options that a descriptor does not have are refused by name. */
TEST(refused_options) {
    static const struct {
        const char *config, *words;
    } list[] = {
        {CLASS("Qwen2ForCausalLM", "qwen2") COMMON4 SIZE
         ", \"use_sliding_window\": true, \"sliding_window\": 16" ROPE4,
         "qwen2.arch has no sliding window"},
        {CLASS("Qwen3ForCausalLM", "qwen3") COMMON5 SIZE ", \"head_dim\": 16, " MIXED ROPE5,
         "layer_types = [\"sliding_attention\", \"full_attention\", \"sliding_attention\", ..] of "
         "4. If"},
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SHAPE
         ", \"tie_word_embeddings\": false" ROPE4,
         "gemma2.arch has no output of its own"},
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SIZE
         ", \"hidden_activation\": \"gelu_pytorch_tanh\", " FULL ROPE4,
         "other layers have a window"},
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SHAPE
         ", \"hidden_activation\": \"gelu_pytorch_tanh\", \"layer_types\": [\"sliding_attention\", "
         "\"full_attention\", "
         "\"sliding_attention\", \"sliding_attention\"]" ROPE4,
         "other layers have a window"}, /* the last one */
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SHAPE
         ", \"hidden_activation\": \"gelu_pytorch_tanh\", \"layer_types\": [\"sliding_attention\", "
         "\"full_attention\"]" ROPE4,
         "'e' is 2, and the list has 2 elements"},
        {CLASS("LlamaForCausalLM", "llama") COMMON4 SIZE
         ", \"quantization_config\": {\"bits\": 4, \"quant_method\": \"gptq\"}" ROPE4,
         "config.json has quantization_config.bits: the weights are quantized in a way that is not "
         "read: "
         "convert the folder of the original weights"},
        {CLASS("LlamaForCausalLM", "llama") COMMON4 SIZE
         ", \"clip_qkv\": 8.0, \"logits_scaling\": 16" ROPE4,
         "clip_qkv = 8, logits_scaling = 16. If"},
        {CLASS("Qwen3MoeForCausalLM", "qwen3_moe") COMMON4 SIZE
         ", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "
         "\"norm_topk_prob\": true, \"mlp_only_layers\": [0]" ROPE4,
         "mlp_only_layers = [0]. If"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        put_config(list[i].config);
        CHECK_MSG(!convert(NULL, "out.gguf", true), "case %zu", i);
        CHECK_HAS(err.msg, list[i].words);
    }
}

/* A `note` line speaks where its condition holds. */
TEST(notes) {
    static const char *const windows[] = {"64", "null", "256"};
    for (int k = 0; k < 3; k++) {
        char text[1024];
        llm_convert_params p = llm_convert_default();
        llm_converter *c;
        p.vocab_only = true;
        snprintf(text, sizeof text,
                 CLASS("MistralForCausalLM", "mistral") COMMON4 SIZE
                 ", \"sliding_window\": %s" ROPE4,
                 windows[k]);
        put_config(text);
        REQUIRE_OK(llm_converter_open(&c, test_folder(), &p, &err), &err);
        CHECK_MSG((strstr(llm_converter_notes(c), "context_length is cut to sliding_window") !=
                   NULL) == (k == 0),
                  "window %s: %s", windows[k], llm_converter_notes(c));
        CHECK_HAS(llm_converter_notes(c), "keys are all that is written");
        CHECK(!llm_converter_has_tokenizer(c));
        llm_converter_free(c);
    }
}

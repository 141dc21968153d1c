/* llm-convert and the rotation: rope.x in sections. All forms and ways to scale it: convert_classes.c. */
#include <math.h>

#include "config_test.h"
#include "hf_layout.h"

/* Factors that are not above zero make frequencies that are infinite, or turn backwards. */
TEST(odd_factors) {
    static const char *const list[] = {"0", "-2", "1e39"};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        layout l, hf;
        char *config, text[400];
        REQUIRE(layout_make(
            &l, "llama",
            "vocab_size=320 context_length=256 embedding_length=64 block_count=1 "
            "feed_forward_length=96 attention.head_count=4 attention.head_count_kv=2 "
            "attention.layer_norm_rms_epsilon=0.01 rope.freq_base=10000 rope.dimension_count=16",
            "", true));
        snprintf(
            text, sizeof text,
            ", 'original_max_position_embeddings': 64, 'rope_scaling': {'type': 'longrope', "
            "'long_factor': [1, 2, 3, %s, 5, 6, 7, 8], 'short_factor': [1, 1, 1, 1, 1, 1, 1, 1]}",
            list[k]);
        REQUIRE(layout_to_hf(&l, "LlamaForCausalLM", text, &hf, &config) &&
                layout_write(&hf, test_path("model.safetensors"), "F32"));
        put_config(config);
        CHECK(!convert_config(NULL, "odd.gguf", false));
        CHECK_HAS(err.msg, "tensor rope_factors_long.weight has the value ");
        CHECK_HAS(err.msg, "which cannot be right");
        free(config);
        layout_free(&l);
        layout_free(&hf);
    }
}

/* --- rope.x ----------------------------------------------------------------------------------- */

/* The values that rope.x in a section reads. */
static const struct {
    const char *lines, *config;
    double k;          /* 0: no key */
    const char *words; /* it is refused with these */
} readings[] = {
    {OWN("  .k <- rope.theta\n"), BEGIN "'rope_theta': 5}", 5, NULL},
    {OWN("  .k <- rope.theta\n"), BEGIN "'rope_parameters': {'rope_theta': 6}, 'rope_theta': 6}", 6,
     NULL},
    {OWN("  .k <- rope.theta\n"), BEGIN "'rope_parameters': {'rope_theta': 6}, 'rope_theta': 5}", 0,
     "config.json has two different values of rope_theta, in rope_parameters and in rope_theta"},
    {OWN("  .k <- rope.theta\n"), BEGIN "'rotary_emb_base': 8}", 8, NULL},
    {OWN("  .k <- rope.partial_rotary_factor\n"), BEGIN "'rotary_pct': 0.25}", 0.25, NULL},
    {OWN("  .k <- rope.theta\n"), BEGIN "'z': null}", 0, "rope.theta is missing in config.json"},
    {OWN("  .k <- rope.theta ?? none\n"), BEGIN "'rope_theta': null}", 0, NULL},
    {OWN("  .k <- 1 if rope.type == \"default\" else 2\n"), BEGIN "'rope_scaling': null}", 1, NULL},
    {OWN("  .k <- 1 if rope.type == \"longrope\" else 2\n"),
     BEGIN "'rope_scaling': {'type': 'su'}}", 1, NULL},
    {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n"),
     BEGIN "'rope_scaling': {'type': 'su', 'rope_type': 'yarn'}}", 0,
     "rope_scaling in config.json has different values of rope_type and type"},
    {OWN("  .k <- 1 if rope.type == \"longrope\" else 2\n"),
     BEGIN "'rope_scaling': {'type': 'su', 'rope_type': 'longrope'}}", 1, NULL},
    /* flat values beside those of a kind of layers: neither is dropped */
    {OWN("  .k <- rope.factor ?? 1\n"),
     BEGIN "'rope_parameters': {'rope_type': 'yarn', 'factor': 4, 'odd': {'x': 1}}}", 0,
     "rope_parameters in config.json has values for one kind of layers ('odd') and values outside "
     "of it ('factor')"},
    {OWN("  .k <- rope.full_attention.theta\n"),
     BEGIN "'rope_parameters': {'full_attention': {'rope_theta': 6}, 'rope_theta': 6}}", 0,
     "values outside of it ('rope_theta')"},
    {OWN("  .k <- rope.full_attention.theta\n"),
     BEGIN "'rope_parameters': {'full_attention': {'rope_theta': 6}, 'rope_theta': null}}", 6,
     NULL},
    {OWN("  .k <- rope.theta\n"), BEGIN "'rope_parameters': {'odd': {}, 'rope_theta': 6}}", 6,
     NULL},
    {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n  ignore config.rope_scaling\n"),
     BEGIN "'rope_scaling': {'factor': 2}}", 0,
     "rope_scaling in config.json has no rope_type or type"},
    {OWN("  .k <- 1 if rope.type == \"yarn\" else 2\n"),
     BEGIN "'rope_scaling': {'type': 'yarn'}, 'rope_parameters': {'rope_type': 'linear'}}", 0,
     "two different values of rope_type, in"},
    {OWN("  .k <- rope.factor\n"),
     BEGIN "'rope_scaling': {'factor': 4}, 'rope_parameters': {'factor': 4}}", 4, NULL},
    {OWN("  .k <- rope.other\n"), BEGIN "'rope_parameters': {'other': 7}}", 7, NULL},
    {OWN("  .k <- rope.factor\n"),
     BEGIN "'rope_parameters': {'factor': 7, 'odd': 2, 'rope_type': 'default'}}", 0,
     "rope_parameters.odd = 2, rope_parameters.rope_type = \"default\""},
    /* an object for each kind of layers */
    {OWN("  .k <- rope.full_attention.theta\n  ignore config.rope_parameters.sliding_attention\n"),
     BEGIN "'rope_theta': 9, 'rope_parameters': {'full_attention': {'rope_theta': 6}, "
           "'sliding_attention': {'rope_theta': 7}}}",
     6, NULL},
    {OWN("  .k <- rope.full_attention.theta\n"),
     BEGIN "'rope_parameters': {'full_attention': {'rope_theta': 6}, 'sliding_attention': "
           "{'rope_theta': 7}}}",
     0, "rope_parameters.sliding_attention.rope_theta = 7"},
    {OWN("  .k <- rope.sliding_attention.theta + 10 * rope.full_attention.theta\n"),
     BEGIN "'rope_parameters': {'full_attention': {'rope_theta': 6}, 'sliding_attention': "
           "{'rope_theta': 7}}}",
     67, NULL},
    {OWN("  .k <- rope.theta\n"),
     BEGIN "'rope_parameters': {'full_attention': {'rope_theta': 6}, 'sliding_attention': "
           "{'rope_theta': 6}}}",
     6, NULL},
    {OWN("  .k <- rope.theta\n"),
     BEGIN "'rope_parameters': {'full_attention': {'rope_theta': 6}, 'sliding_attention': "
           "{'rope_theta': 7}}}",
     0, "two different values of rope_theta, in rope_parameters and in rope_parameters: 6 and 7;"},
    {OWN("  .k <- rope.sliding_attention.theta + 10 * rope.full_attention.theta\n"),
     BEGIN "'rope_theta': 6, 'rope_local_base_freq': 7}", 67, NULL},
    {OWN("  .k <- (rope.sliding_attention.factor ?? 1) + 10 * rope.full_attention.factor\n"),
     BEGIN "'rope_scaling': {'factor': 8}}", 81, NULL},
    {OWN("  .k <- rope.a.b.c\n"), BEGIN "'z': null}", 0, "the rotation has values rope.x"},
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

/* llm-arch init: what it writes for models whose layers differ, whose numbers are equal, whose keys it cannot place. */
#include "ggl/internal/gguf.h"
#include "llm-arch/tool.h"
#include "seed.h"
#include "test.h"

typedef struct tensor {
    const char *name;
    int64_t ne[4];
} tensor;

static void put_number(ggl_gguf_writer *w, const char *key, uint32_t x) {
    ggl_gguf_put(w, key, GGL_GGUF_U32, false, &x, 1);
}

static void put_float(ggl_gguf_writer *w, const char *key, float x) {
    ggl_gguf_put(w, key, GGL_GGUF_F32, false, &x, 1);
}

static void put_list(ggl_gguf_writer *w, const char *key, const uint32_t *x, uint64_t n) {
    ggl_gguf_put(w, key, GGL_GGUF_U32, true, x, n);
}

/* A model of family t with 3 layers, n_embd = 64, n_head = 4, n_ff = 96, 40 tokens. */
static ggl_gguf_writer *begin(void) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "t", 1);
    put_number(w, "t.block_count", 3);
    put_number(w, "t.vocab_size", 40);
    put_number(w, "t.embedding_length", 64);
    put_number(w, "t.feed_forward_length", 96);
    put_float(w, "t.attention.layer_norm_rms_epsilon", 1e-5f);
    return w;
}

/* Writes the model, ended by a tensor without a name, and returns what init prints of it; the caller frees that. */
static char *init_of(ggl_gguf_writer *w, const tensor *t) {
    static const char zeros[1 << 18];
    char model[1100], out[1100], tool[] = "llm-arch", name[] = "-",
                                 *argv[] = {tool, name, model, NULL};
    ggl_error err = {0};
    snprintf(model, sizeof model, "%s", test_path("model.gguf"));
    snprintf(out, sizeof out, "%s", test_path("out.arch"));
    for (; t->name; t++) {
        int n = 4;
        while (n > 1 && t->ne[n - 1] == 0)
            n--;
        ggl_gguf_put_tensor(w, t->name, GGL_F32, n, t->ne, zeros);
    }
    bool written = CHECK_OK(ggl_gguf_writer_write(w, model, &err), &err);
    ggl_gguf_writer_free(w);
    char *text = calloc(1, 1 << 16);
    if (!written || !CHECK(text && freopen(out, "wb", stdout)))
        return text;
    CHECK_INT(arch_init(3, argv), 0);
    fflush(stdout);
    FILE *f = fopen(out, "rb");
    if (CHECK(f)) {
        CHECK(fread(text, 1, (1 << 16) - 1, f) > 0);
        fclose(f);
    }
    return text;
}

/* A line that begins with these words, and whether its comment marks an open shape. */
static void check_line(const char *text, const char *begin, bool open) {
    char at[256];
    snprintf(at, sizeof at, "\n%s ", begin);
    const char *s = strstr(text, at);
    if (!CHECK_MSG(s, "no line '%s' in %s", begin, text))
        return;
    size_t n = strcspn(s + 1, "\n");
    CHECK_MSG((s[n] == '?') == open, "%.*s", (int)n, s + 1);
}

TEST(heads_of_each_layer) {
    ggl_gguf_writer *w = begin();
    put_list(w, "t.attention.head_count", (uint32_t[]){4, 6, 4}, 3);
    put_list(w, "t.attention.head_count_kv", (uint32_t[]){2, 2, 2}, 3);
    put_number(w, "t.attention.key_length", 16);
    put_number(w, "t.rope.dimension_count", 8);
    put_float(w, "t.rope.freq_base", 5e5f);
    put_float(w, "t.rope.scaling.factor", 4);
    static const tensor t[] = {
        {"token_embd.weight", {64, 40}},        {"blk.0.attn_q.weight", {64, 64}},
        {"blk.1.attn_q.weight", {64, 96}},      {"blk.2.attn_q.weight", {64, 64}},
        {"blk.0.attn_k.weight", {64, 32}},      {"blk.1.attn_k.weight", {64, 32}},
        {"blk.2.attn_k.weight", {64, 32}},      {"blk.0.attn_output.weight", {64, 64}},
        {"blk.1.attn_output.weight", {96, 64}}, {"blk.2.attn_output.weight", {64, 64}},
        {"output_norm.weight", {64}},           {NULL, {0}}};
    char *text = init_of(w, t);
    check_line(text, "  n_head   = .attention.head_count[l]", false);
    check_line(text, "n_kv     = .attention.head_count_kv", false);
    check_line(text, "  attn_q [n_embd, n_head*d]", false);
    check_line(text, "  attn_k [n_embd, n_kv*d]", false);
    check_line(text, "  attn_output [n_head*d, n_embd]", false); /* the file has no value_length */
    check_line(text, "output [n_embd, n_vocab] ?? token_embd", false);
    check_line(text, "freq, mag = rope_scaled(n_rot, .rope.freq_base ?? 10000)", false);
    check_line(text, "#   .rope.scaling.factor", false);
    check_line(text, "#   n_ff = .feed_forward_length", false);
    CHECK_HAS(text, "\nx = token_embd[token]\n");
    CHECK_HAS(text, "\nlogits = linear(rms_norm(x, output_norm, eps), output)\n");
    free(text);
}

TEST(kinds_of_layers) {
    ggl_gguf_writer *w = begin();
    put_number(w, "t.attention.head_count", 4);
    put_list(w, "t.attention.head_count_kv", (uint32_t[]){0, 4, 0}, 3);
    put_number(w, "t.ssm.inner_size", 128);
    put_number(w, "t.ssm.state_size", 16);
    put_number(w, "t.ssm.time_step_rank", 8);
    put_number(w, "t.ssm.group_count", 2);
    put_number(w, "t.ssm.conv_kernel", 4);
    static const tensor t[] = {{"token_embd.weight", {64, 40}},
                               {"blk.0.attn_norm.weight", {64}},
                               {"blk.1.attn_norm.weight", {64}},
                               {"blk.2.attn_norm.weight", {64}},
                               {"blk.0.ssm_in.weight", {64, 328}},
                               {"blk.2.ssm_in.weight", {64, 328}},
                               {"blk.0.ssm_conv1d.weight", {4, 192}},
                               {"blk.2.ssm_conv1d.weight", {4, 192}},
                               {"blk.0.ssm_a", {1, 8}},
                               {"blk.2.ssm_a", {1, 8}},
                               {"blk.0.ssm_dt.bias", {8}},
                               {"blk.2.ssm_dt.bias", {8}},
                               {"blk.0.ssm_norm.weight", {64, 2}},
                               {"blk.2.ssm_norm.weight", {64, 2}},
                               {"blk.1.attn_q.weight", {64, 64}},
                               {"blk.1.attn_v.weight", {64, 64}},
                               {"blk.1.attn_v.bias", {64}},
                               {NULL, {0}}};
    char *text = init_of(w, t);
    check_line(text, "  attn_norm [n_embd]", false);
    check_line(text, "  if n_kv == 0:", false);
    check_line(text, "    ssm_in [n_embd, 2*n_in + 2*n_group*n_st + n_dt]", false);
    check_line(text, "    ssm_conv1d [n_taps, n_in + 2*n_group*n_st]", false);
    check_line(text, "    ssm_a [1, n_dt] from \"blk.{l}.ssm_a\"", false);
    check_line(text, "    ssm_dt [n_dt] from \"blk.{l}.ssm_dt.bias\"", false);
    check_line(text, "    ssm_norm [n_in/n_group, n_group]", false);
    check_line(text, "  else:", false);
    CHECK(!strstr(text, "n_kv > 0"));
    check_line(text, "    attn_q [n_embd, n_head*d]", false);
    check_line(text, "    attn_v [n_embd, n_kv*d] bias", false);
    free(text);
}

/* The usual tensors go by their names where numbers are equal; others are open, and so are numbers that no key gives. */
TEST(equal_numbers) {
    ggl_gguf_writer *w = begin();
    put_number(w, "t.attention.head_count", 4);
    put_number(w, "t.expert_count", 4);
    put_number(w, "t.clip_rank", 24);
    put_float(w, "t.logit_scale", 0.25f);
    put_float(w, "xielu.alpha", 0.25f);
    static const tensor t[] = {{"token_embd.weight", {64, 40}},
                               {"output.weight", {64, 40}},
                               {"blk.0.attn_sinks.weight", {4}},
                               {"blk.1.attn_sinks.weight", {4}},
                               {"blk.2.attn_sinks.weight", {4}},
                               {"blk.0.exp_probs_b.bias", {4}},
                               {"blk.1.exp_probs_b.bias", {4}},
                               {"blk.2.exp_probs_b.bias", {4}},
                               {"blk.1.clip.weight", {64, 24}},
                               {"blk.2.clip.weight", {64, 24}},
                               {"blk.0.odd.weight", {4, 77}},
                               {"blk.0.ffn_up.weight", {64, 77}},
                               {"blk.1.ffn_up.weight", {64, 80}},
                               {"blk.2.ffn_up.weight", {64, 80}},
                               {NULL, {0}}};
    char *text = init_of(w, t);
    check_line(text, "output [n_embd, n_vocab] ?? token_embd", false);
    check_line(text, "  attn_sinks [n_head]", false);
    check_line(text, "  exp_probs_b [n_expert] from \"blk.{l}.exp_probs_b.bias\"", false);
    check_line(text, "  if l >= 1:", false);
    check_line(text, "    clip [n_embd, clip_rank]", false);
    check_line(text, "  else:", false);
    check_line(text, "    odd [n_head, 77]", true);
    check_line(text, "    ffn_up [n_embd, 77]", true);
    check_line(text, "    ffn_up [n_embd, 80]", true);
    check_line(text, "clip_rank = .clip_rank", false);
    CHECK_HAS(text, "\n# freq, mag = rope_scaled(d, .rope.freq_base ?? 10000)");
    check_line(text, "#   .logit_scale", false);
    check_line(text, "#   key(\"xielu.alpha\")", false);
    CHECK(!strstr(text, "logit_scale ="));
    free(text);
}

/* A model that sees a text as a whole gets a stage, and no logits. */
TEST(encoder) {
    static const tensor t[] = {{"token_embd.weight", {64, 40}},   {"output_norm.weight", {64}},
                               {"cls.weight", {64, 2}},           {"blk.0.attn_q.weight", {64, 64}},
                               {"blk.2.attn_q.weight", {64, 64}}, {NULL, {0}}};
    ggl_gguf_writer *w = begin();
    put_number(w, "t.attention.head_count", 4);
    ggl_gguf_put(w, "t.attention.causal", GGL_GGUF_BOOL, false, &(uint8_t){0}, 1);
    char *text = init_of(w, t);
    CHECK_HAS(text, "\nstage text:\n  x = token_embd[token]\n\n  layer l < n_layer:\n");
    check_line(text, "    if l in [0, 2]:", false);
    check_line(text, "      attn_q [n_embd, n_head*d]", false);
    CHECK_HAS(text, "\n  return rms_norm(x, output_norm, eps)\n\nembedding = text ");
    CHECK(!strstr(text, "logits") && !strstr(text, "\noutput "));
    free(text);
}

/* Two parts by their prefixes, which number their layers alone. */
TEST(encoder_and_decoder) {
    static const tensor t[] = {{"token_embd.weight", {64, 40}},
                               {"enc.blk.0.attn_q.weight", {64, 64}},
                               {"enc.blk.1.attn_q.weight", {64, 64}},
                               {"enc.blk.2.attn_q.weight", {64, 64}},
                               {"enc.output_norm.weight", {64}},
                               {"dec.odd name", {64}},
                               {"dec.blk.0.attn_q.weight", {64, 64}},
                               {"dec.blk.1.cross_attn_q.weight", {64, 64}},
                               {"dec.output_norm.weight", {64}},
                               {"dec.output.bias", {40}},
                               {NULL, {0}}};
    llm_arch *arch;
    ggl_error err = {0};
    ggl_gguf_writer *w = begin();
    put_number(w, "t.attention.head_count", 4);
    char *text = init_of(w, t);
    CHECK_HAS(text, "\nstage enc \"enc.\":\n  output_norm [n_embd] ");
    CHECK_HAS(text,
              "\n  x = token_embd[token]\n\n  layer l < n_layer:\n    attn_q [n_embd, n_head*d] ");
    CHECK_HAS(text, "\n  return rms_norm(x, output_norm, eps)\n\nembedding = enc ");
    CHECK_HAS(text, "\nprefix \"dec.\"\n");
    check_line(text, "odd_name [n_embd] from \"dec.odd name\"", false);
    CHECK_HAS(text, "\nx = token_embd[token]\n\nlayer l < 2:\n  if l == 0:");
    check_line(text, "    cross_attn_q [n_embd, n_head*d]", false);
    CHECK_HAS(text, "\nlogits = linear(rms_norm(x, output_norm, eps), output)\n");
    CHECK_OK(llm_arch_parse(&arch, text, strlen(text), "new.arch", &err), &err);
    llm_arch_free(arch);
    free(text);
}

/* An eye, whose numbers have keys of their own, and another stage, about whose rows nothing is known. */
TEST(eye_and_more) {
    static const tensor t[] = {{"v.patch_embd.weight", {7, 7, 3, 64}},
                               {"v.position_embd.weight", {64, 16}},
                               {"v.blk.0.ln1.weight", {64}},
                               {"v.blk.0.attn_q.weight", {64, 64}},
                               {"mm.0.weight", {64, 32}},
                               {"a.blk.0.attn_q.weight", {64, 64}},
                               {NULL, {0}}};
    llm_arch *arch;
    ggl_error err = {0};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "t", 1);
    ggl_gguf_put_string(w, "t.projector_type", "mlp", 3);
    put_number(w, "t.vision.block_count", 1);
    put_number(w, "t.vision.embedding_length", 64);
    put_number(w, "t.vision.attention.head_count", 4);
    put_number(w, "t.vision.patch_size", 7);
    put_number(w, "t.vision.image_size", 30);
    char *text = init_of(w, t);
    CHECK_HAS(text, "\narch \"t:mlp\"\n");
    check_line(text, "n_embd   = .vision.embedding_length", false);
    CHECK_HAS(text,
              "\ninput patch [patch_size, patch_size, 3] from picture(patch = patch_size, size = "
              "patch_size * floor(.vision.image_size / patch_size), mean = 0.5, std = "
              "0.5)\n\nstage eye over patch \"v.\":\n");
    CHECK_HAS(
        text,
        "\n  x = linear(flat(patch), reshape(patch_embd, count(patch), size(patch_embd, 3)))\n");
    check_line(text, "    attn_q [n_embd, n_head*d]", false);
    CHECK_HAS(text, "\n# The rows that enter a. are no tokens.");
    CHECK_HAS(text, "\nstage a over seen \"a.\":\n  x = seen\n");
    CHECK_HAS(text, "\nrows = eye ");
    CHECK_OK(llm_arch_parse(&arch, text, strlen(text), "new.arch", &err), &err);
    llm_arch_free(arch);
    free(text);
}

static void check_parses(const char *text) {
    llm_arch *arch = NULL;
    ggl_error err = {0};
    if (CHECK_MSG(llm_arch_parse(&arch, text, strlen(text), "new.arch", &err) == GGL_OK, "%s\n%s",
                  err.msg, text))
        llm_arch_free(arch);
}

/* Numbers of a sound's encoder, whose convolutions are as wide as it has heads. */
static ggl_gguf_writer *begin_ear(const char *before) {
    char key[64];
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "t", 1);
    const struct {
        const char *name;
        uint32_t x;
    } number[] = {{"block_count", 2}, {"embedding_length", 48}, {"attention.head_count", 3}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        snprintf(key, sizeof key, "t.%s%s", before, number[i].name);
        put_number(w, key, number[i].x);
    }
    return w;
}

/* An encoder that hears, and a decoder that writes: the rows of the sound are no tokens, although there are tokens. */
TEST(ear_and_decoder) {
    static const tensor t[] = {{"token_embd.weight", {48, 40}},
                               {"mel_filters", {201, 20}},
                               {"enc.conv2.weight", {3, 48, 48}},
                               {"enc.conv1.weight", {3, 20, 48}},
                               {"enc.conv1.bias", {48}},
                               {"enc.position_embd.weight", {48, 100}},
                               {"enc.blk.0.attn_q.weight", {48, 48}},
                               {"enc.blk.1.attn_q.weight", {48, 48}},
                               {"dec.position_embd.weight", {48, 32}},
                               {"dec.blk.0.cross_attn_q.weight", {48, 48}},
                               {NULL, {0}}};
    ggl_gguf_writer *w = begin_ear("");
    put_number(w, "t.context_length", 32);
    put_number(w, "t.audio.context_length", 100);
    put_number(w, "t.audio.mel_count", 20);
    char *text = init_of(w, t);
    check_line(text, "mel_filters [201, n_mel] from \"mel_filters\"", false);
    CHECK_HAS(text,
              "\ninput mel [n_mel] from sound(rate = 16000, window = 400, step = 160, seconds = "
              "n_sound / 50, filters = mel_filters)\n\nstage ear over mel \"enc.\":\n");
    check_line(text, "  conv1 [3, n_mel, n_embd]", false);
    check_line(text, "  conv1_bias [n_embd] from \"enc.conv1.bias\"", false);
    check_line(text, "  conv2 [3, n_embd, n_embd]", false);
    check_line(text, "  position_embd [n_embd, n_sound]", false);
    CHECK_HAS(text, "\n  x = conv_rows(mel, conv1) ");
    check_line(text, "    attn_q [n_embd, n_head*d]", false);
    CHECK_HAS(text, "made of the rows ear\nx = token_embd[token]\n");
    check_line(text, "position_embd [n_embd, n_pos]", false);
    CHECK(!strstr(text, "embedding = "));
    check_parses(text);
    free(text);
}

/* An ear alone, with numbers of its own, and one whose tensors have no prefix. A width that a name happens to have is a guess. */
TEST(ear) {
    static const tensor prefixed[] = {{"a.conv1d.1.weight", {3, 20, 48}},
                                      {"a.conv1d.1.bias", {1, 48}},
                                      {"a.blk.0.ln1.weight", {48}},
                                      {"mm.a.fc.weight", {48, 16}},
                                      {NULL, {0}}},
                        plain[] = {{"conv1.weight", {5, 20, 48}},
                                   {"blk.0.attn_norm.weight", {48}},
                                   {"blk.1.attn_norm.weight", {48}},
                                   {NULL, {0}}};
    ggl_gguf_writer *w = begin_ear("audio.");
    put_number(w, "t.audio.num_mel_bins", 20);
    char *text = init_of(w, prefixed);
    CHECK_HAS(text,
              "\ninput mel [n_mel] from sound(rate = 16000, window = 400, step = 160, seconds = "
              "30)\n\nstage ear over mel \"a.\":\n");
    check_line(text, "  conv1d_1 [3, n_mel, n_embd] from \"a.conv1d.1.weight\"", false);
    check_line(text, "  conv1d_1_bias [1, n_embd] from \"a.conv1d.1.bias\"", false);
    CHECK_HAS(text, "\n  x = conv_rows(mel, conv1d_1) ");
    CHECK_HAS(text, "\nrows = ear ");
    check_parses(text);
    free(text);
    w = begin_ear("");
    put_number(w, "t.something", 5);
    text = init_of(w, plain);
    CHECK_HAS(text, "\ninput mel [20] from sound(");
    CHECK_HAS(text, "\nstage ear over mel:\n  x = conv_rows(mel, conv1) ");
    check_line(text, "conv1 [something, 20, n_embd]", true);
    CHECK(!strstr(text, "token"));
    check_parses(text);
    free(text);
}

/* A default that names a number which the file lacks is not written. */
TEST(defaults_without_their_key) {
    static const tensor t[] = {{"blk.0.ffn_up_exps.weight", {64, 32, 4}}, {NULL, {0}}};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "t", 1);
    put_number(w, "t.embedding_length", 64);
    put_number(w, "t.expert_count", 4);
    put_number(w, "t.expert_feed_forward_length", 32);
    char *text = init_of(w, t);
    check_line(text, "  ffn_up_exps [n_embd, n_ff_exp, n_expert]", false);
    CHECK(!strstr(text, "?? n_ff"));
    CHECK_HAS(text, "\nn_ff_exp = .expert_feed_forward_length");
    free(text);
}

/* Names of tensors that the language, the engine, a number or another tensor has. */
TEST(names_that_are_taken) {
    static const tensor t[] = {{"token_embd.weight", {64, 40}},
                               {"token.embd", {64}},
                               {"output.weight", {64, 40}},
                               {"if.weight", {64}},
                               {"none", {64}},
                               {"n_embd.weight", {64}},
                               {"a\"b", {64}},
                               {"blk.0.if.weight", {64, 64}},
                               {"blk.0.if.bias", {64}},
                               {"blk.0.return.weight", {64}},
                               {"blk.0.output.weight", {64}},
                               {"blk.0.a.b.weight", {64}},
                               {"blk.0.a.b.bias", {64}},
                               {"blk.0.a_b.weight", {64}},
                               {"blk.0.a-b.weight", {64}},
                               {"blk.0.x.weight", {64}},
                               {"blk.1.{n}.weight", {64}},
                               {NULL, {0}}};
    llm_arch *arch;
    ggl_error err = {0};
    ggl_gguf_writer *w = begin();
    put_number(w, "t.else", 77);
    char *text = init_of(w, t);
    check_line(text, "token_embd [n_embd, n_vocab]", false);
    check_line(text, "token_embd_tensor [n_embd] from \"token.embd\"", false);
    check_line(text, "if_weight [n_embd] from \"if.weight\"", false);
    check_line(text, "none_tensor [n_embd] from \"none\"", false);
    check_line(text, "n_embd_weight [n_embd] from \"n_embd.weight\"", false);
    check_line(text, "    if_8 [n_embd, n_embd] bias from \"blk.{l}.if.weight\"", false);
    check_line(text, "    return_weight [n_embd] from \"blk.{l}.return.weight\"", false);
    check_line(text, "    output_weight [n_embd] from \"blk.{l}.output.weight\"", false);
    check_line(text, "    a_b_weight [n_embd] bias from \"blk.{l}.a.b.weight\"", false);
    check_line(text, "    a_b [n_embd]", false);
    check_line(text, "    x_weight [n_embd] from \"blk.{l}.x.weight\"", false);
    CHECK_OK(llm_arch_parse(&arch, text, strlen(text), "new.arch", &err), &err);
    llm_arch_free(arch);
    free(text);
}

/* Parts whose prefixes are words of the language or of the text, or are alike; and what is alike in several. */
TEST(parts_that_are_alike) {
    static const tensor t[] = {{"enc", {64}},
                               {"enc.blk.0.attn_q.weight", {64, 64}},
                               {"enc_.blk.0.attn_q.weight", {64, 64}},
                               {"if.blk.0.attn_q.weight", {64, 64}},
                               {"rows.blk.0.attn_q.weight", {64, 64}},
                               {"v.patch_embd.weight", {7, 7, 3, 64}},
                               {"v.blk.0.attn_q.weight", {64, 64}},
                               {"w.patch_embd.weight", {7, 7, 3, 64}},
                               {"w.blk.0.\"q\".weight", {64, 64}},
                               {NULL, {0}}};
    char *text = init_of(begin(), t);
    CHECK_HAS(text, "\nstage enc over seen \"enc.\":\n");
    CHECK_HAS(text, "\nstage enc_2 over seen_2 \"enc_.\":\n");
    CHECK_HAS(text, "\nstage if_2 over seen_3 \"if.\":\n");
    CHECK_HAS(text, "\nstage rows_2 over seen_4 \"rows.\":\n");
    CHECK_HAS(text, "\nstage eye over patch \"v.\":\n");
    CHECK_HAS(text, "\nstage eye_2 over patch_2 \"w.\":\n");
    CHECK_HAS(text, "\n  # layer l < 1:\n    # _q_ [");
    check_parses(text);
    free(text);
}

/* The first five are names that no descriptor can have; others stand as they are, in quotes if need be. */
TEST(odd_architectures) {
#define LONG "abcdefghijklmnopqrstuvwxyzabcd"
    static const struct {
        const char *name, *line;
    } odd[] = {{"a\"b", "\narch a_b\n"},
               {"", "\narch _\n"},
               {"a:b", "\narch a_b\n"},
               {"a\nb", "\narch a_b\n"},
               {LONG LONG LONG, "\narch " LONG LONG},
               {"a b", "\narch \"a b\"\n"},
               {"a\\", "\narch \"a\\\"\n"},
               {"9", "\narch \"9\"\n"},
               {"if", "\narch if\n"},
               {"\xc3\xa4", "\narch \"\xc3\xa4\"\n"}};
    static const tensor t[] = {{"token_embd.weight", {64, 40}}, {NULL, {0}}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        ggl_gguf_put_string(w, "general.architecture", odd[i].name, strlen(odd[i].name));
        put_number(w, LONG LONG LONG ".rope.dimension_count", 8);
        char *text = init_of(w, t);
        CHECK_HAS(text, odd[i].line);
        CHECK_INT(strstr(text, "cannot name this architecture") != NULL, i < 5);
        check_parses(text);
        free(text);
    }
}

/* Whatever tensors and keys are called, what init writes is a descriptor. */
LONG_TEST(random_names) {
    static const char *const
        prefix[] = {"",      "enc.", "dec.",    "v.",      "a-.",  "a_.",
                    "rows.", "if.",  "linear.", "output.", "mel.", "x."},
        *const block[] = {"", "", "blk.0.", "blk.1."},
        *const word[] =
            {"if",    "layer",      "l",          "x",
             "eps",   "n_head",     "output",     "rows",
             "seen",  "mel",        "token_embd", "output_norm",
             "conv1", "patch_embd", "attn_q",     "a.b",
             "a_b",   "a-b",        "a b",        "a\"b",
             "a\\b",  "{l}",        "\xc3\xa4",   "1a",
             "a\nb",  "#",          "from",       "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"},
        *const end[] = {".weight", ".bias", ""};
    static const int64_t shape[][4] = {{64},        {64, 64},      {64, 40},
                                       {3, 40, 64}, {7, 7, 3, 64}, {1, 3}};
    uint64_t seed = sample_seed();
#define ANY(list) list[test_random(&seed) % (sizeof(list) / sizeof *(list))]
    for (int round = 0; round < 200; round++) {
        static char name[24][128];
        tensor t[24] = {{"token_embd.weight", {64, 40}}};
        ggl_gguf_writer *w = begin();
        for (int i = 0; i < 4; i++) {
            snprintf(name[i], sizeof name[i], "t.k%d.%s%s", i, ANY(prefix), ANY(word));
            put_number(w, name[i], (uint32_t)ANY(shape)[0]);
        }
        for (int i = 1, n = 1; i < 23; i++) {
            snprintf(name[n], sizeof name[n], "%s%s%s%s", ANY(prefix), ANY(block), ANY(word),
                     ANY(end));
            bool is_new = true;
            for (int k = 0; k < n; k++)
                is_new = is_new && strcmp(t[k].name, name[n]) != 0;
            if (is_new) {
                t[n].name = name[n];
                memcpy(t[n++].ne, ANY(shape), sizeof t[0].ne);
            }
        }
        char *text = init_of(w, t);
        check_parses(text);
        free(text);
    }
#undef ANY
}

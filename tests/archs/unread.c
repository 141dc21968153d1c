/* Keys and tensors that a descriptor does not read: what is harmless, ignored on request, noted,
 * refused, and what is said about it. And what a key's value may serve as. */
#include "arch_test.h"
#include "test.h"

static float zeros[80];

static ggl_status build_ignoring(const char *top, const char *lines, const llm_arch_ignore *ignore,
                                 char **notes, ggl_error *err) {
    model m;
    llm_arch *arch;
    llm_arch_result result = {0};
    char *text = arch_text(top, "");
    ggl_graph_params p = ggl_graph_default();
    ggl_graph *g = ggl_graph_new(&p);
    *err = (ggl_error){0};
    *notes = NULL;
    bool ok = model_new(&m, lines, "model.gguf");
    ggl_status s = ok ? llm_arch_parse(&arch, text, strlen(text), "t.arch", err) : GGL_IO;
    if (s == GGL_OK) {
        llm_arch_source src = llm_arch_source_gguf(m.file);
        llm_arch_params ap = {.size = sizeof ap, .ignore = ignore ? *ignore : (llm_arch_ignore){0}};
        s = llm_arch_build(arch, &src, &ap, g, &result, err);
        *notes = strdup(result.notes ? result.notes : "");
        llm_arch_result_fini(&result);
        llm_arch_free(arch);
    }
    ggl_graph_free(g);
    model_free(&m);
    free(text);
    return s;
}

/* Builds, or the error holds `words`; the notes are `notes`. */
static void check(const char *top, const char *lines, const char *words, const char *notes) {
    ggl_error err;
    char *got;
    ggl_status s = build_ignoring(top, lines, NULL, &got, &err);
    if (words) {
        CHECK_MSG(s == GGL_FORMAT, "accepted: %s%s", top, lines);
        CHECK_HAS(err.msg, words);
    } else {
        CHECK_OK(s, &err);
        CHECK_STR(got, notes ? notes : "");
    }
    free(got);
}

TEST(harmless_keys) {
    check("",
          "t.logit_scale = 1\nt.attention.causal = true\nt.ssm.state_size = 16\nt.pooling_type = 3",
          NULL, NULL);
    check("", "t.attention.sliding_window = 32\nt.context_length = 32", NULL, NULL);
    check("", "t.attention.sliding_window = 31\nt.context_length = 32",
          "  t.attention.sliding_window = 31: attention sees only that many tokens", NULL);
    check("", "t.attention.sliding_window = [0, 0]", NULL, NULL);
    check("", "t.attention.sliding_window = [0, 4]\nt.context_length = 4",
          "  t.attention.sliding_window = [0, 4]: ", NULL);
    /* what the descriptor names anywhere is its own */
    check("if n_vocab == 3: require .logit_scale == 7\n", "t.logit_scale = 16", NULL, NULL);
    check("ignore .logit_scale\n", "t.logit_scale = 16", NULL, NULL);
    check("ignore \".logit_*\"\n", "t.logit_scale = 16\nt.logit_x = 1", NULL, NULL);
    check("ignore .logit_scale if .logit_scale == 16, \"scales\"\n", "t.logit_scale = 16", NULL,
          NULL);
    check("ignore .logit_scale if .logit_scale == 16, \"scales\"\n", "t.logit_scale = 1",
          "key t.logit_scale = 1 is ignored only if .logit_scale == 16: scales", NULL);
    check("ignore key(\"u.v\")\n", "u.v = 1", NULL, NULL);
}

/* A key of another namespace can say what the weights mean, as prism.hadamard.* does, so that only known ones are harmless. */
TEST(keys_of_other_namespaces) {
    static const char *const harmless[] = {"mradermacher.quantized_by = \"x\"",
                                           "duynt.note = 1",
                                           "unsloth.version = \"2\"",
                                           "ollama.created = \"x\"",
                                           "training.type = 1",
                                           "imatrix.chunk_count = 7",
                                           "clip.has_vision_encoder = true",
                                           "adapter.type = 1",
                                           "quantize.imatrix.file = \"x\"",
                                           "general.of_nobody = 1",
                                           "split.of = 1",
                                           "tokenizer.ggml.eog = 1"};
    static const char *const refused[] = {"prism.other = 1",
                                          "acme.rotated = true",
                                          "comfy.gguf.shape = [2]",
                                          "mradermacher = 1",
                                          "xmradermacher.note = 1",
                                          "onebit.hadamard = 32",
                                          "u.v = 1",
                                          "Ollama.created = 1",
                                          "generals.of = 1",
                                          "tt.logit_scale = 1",
                                          "nodot = 1",
                                          "clips.x = \"y\""};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        check("", harmless[i], NULL, NULL);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char want[100];
        snprintf(want, sizeof want, "  %.*s", (int)strcspn(refused[i], " ="), refused[i]);
        check("", refused[i], want, NULL);
        check("", refused[i], "To continue at your own risk: --ignore-key '", NULL);
    }
    check("", "prism.a = 1\nprism.b = 1\nt.c = 1\nprism.d = 2",
          "--ignore-key 'prism.*' --ignore-key 't.*'\n", NULL);
    check("", "a.a = 1\nb.b = 1\nc.c = 1\nd.d = 2\nt.e = 1", "  a.a = 1\n", NULL);
    check("v = key(\"u.v\")\nrequire v == 1\n", "u.v = 1", NULL, NULL);
}

/* A tensor that is only a bias says how it is declared. */
TEST(biases_without_a_weight) {
    check("layer i < 2:\n  a = 1\n  require a == 1\n", "blk.0.probs.bias [4]\nblk.1.probs.bias [4]",
          "  blk.{0..1}.probs.bias (2 tensors): it has no weight; declared by probs [4] from "
          "\"blk.{i}.probs.bias\"\n",
          NULL);
    check("", "probs.bias [4, 2]",
          "  probs.bias: it has no weight; declared by probs [4, 2] from \"probs.bias\"\n", NULL);
    check("", "probs.bias [4]\nprobs.weight [4]", "  probs.bias\n", NULL);
}

/* Rows that depend on each other's keys. */
TEST(harmless_beside_others) {
    const char *yarn = "t.rope.scaling.yarn_beta_fast = 7\n";
    check("", yarn, NULL, NULL);
    check("ignore .rope.scaling.type\n",
          "t.rope.scaling.type = \"yarn\"\nt.rope.scaling.yarn_beta_fast = 7", "where YaRN begins",
          NULL);
    check("",
          "t.embedding_length = 8\nt.attention.head_count = 2\nt.attention.key_length = 4\n"
          "t.attention.value_length = 4",
          "  t.embedding_length = 8\n", NULL);
    const char *known = "ignore .embedding_length\n";
    check(known, "t.embedding_length = 8\nt.attention.key_length = 4", "t.attention.key_length = 4",
          NULL);
    check(known, "t.use_parallel_residual = false", "t.use_parallel_residual = false: whether",
          NULL);
    check(known, "t.use_parallel_residual = false\nt.swin_norm = false\nt.wkv.head_size = 0", NULL,
          NULL);
}

/* Keys for the layers with a window, and for their rotation, matter only if there is a window. */
TEST(windows) {
    static const char *const keys[] = {"attention.sliding_window_pattern = 4",
                                       "attention.sliding_window_pattern = [true, false]",
                                       "rope.freq_base_swa = 5",
                                       "rope.freq_base_local = 5",
                                       "rope.local.freq_base = 5",
                                       "rope.dimension_count_swa = 5"};
    const char *reads = "w = .attention.sliding_window \?\? 16\nrequire w > 0\n";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char lines[200];
        snprintf(lines, sizeof lines, "t.%s\n", keys[i]);
        check("", lines, NULL, NULL);
        check("ignore .attention.sliding_window\n", lines, NULL, NULL);
        check(reads, lines, keys[i], NULL); /* the descriptor has a window all the same */
        snprintf(lines, sizeof lines,
                 "t.%s\nt.attention.sliding_window = 31\nt.context_length = 32\n", keys[i]);
        check(reads, lines, keys[i], NULL);
        snprintf(lines, sizeof lines,
                 "t.%s\nt.attention.sliding_window = 32\nt.context_length = 32\n", keys[i]);
        check("", lines, NULL, NULL);
        check(reads, lines, NULL, NULL);
    }
    check("", "t.attention.sliding_window_pattern = [false, false]", NULL, NULL);
    check(reads, "t.attention.sliding_window_pattern = [false, false]", "the layers that", NULL);
}

/* An epsilon concerns nothing where the other one is read. */
TEST(epsilons) {
    const char *lines = "t.attention.layer_norm_epsilon = 0.01\n"
                        "t.attention.layer_norm_rms_epsilon = 0.01\n";
    check("", lines, "2 keys", NULL);
    check("require .attention.layer_norm_rms_epsilon > 0\n", lines, NULL, NULL);
    check("require .attention.layer_norm_epsilon > 0\n", lines, NULL, NULL);
    check("ignore .attention.layer_norm_epsilon\n", lines, "1 key", NULL);
    lines = "t.attention.layer_norm_epsilon = 0.02\nt.attention.layer_norm_rms_epsilon = 0.01";
    check("require .attention.layer_norm_rms_epsilon > 0\n", lines, NULL, NULL);
    check("require .attention.layer_norm_epsilon > 0\n", lines, NULL, NULL);
    check("", "t.attention.layer_norm_epsilon = 0.02", "the epsilon of LayerNorm (it would", NULL);
    check("require (.attention.layer_norm_rms_epsilon \?\? 0.5) > 0\n",
          "t.attention.layer_norm_epsilon = 0.02", "the epsilon of LayerNorm", NULL);
    static const char *const odd[] = {"nan", "-0.01"};
    for (int i = 0; i < 2; i++) {
        char both[160];
        snprintf(both, sizeof both,
                 "t.attention.layer_norm_epsilon = %s\n"
                 "t.attention.layer_norm_rms_epsilon = 0.01",
                 odd[i]);
        check("require .attention.layer_norm_rms_epsilon > 0\n", both,
              "  t.attention.layer_norm_epsilon = ", NULL);
    }
    lines = "t.attention.layer_norm_epsilon = 0\nt.attention.layer_norm_rms_epsilon = 0.01";
    check("require .attention.layer_norm_rms_epsilon > 0\n", lines, NULL, NULL);
}

TEST(values_that_only_look_harmless) {
    static const char *const refused[] = {
        "rope.scaling.factor = nan",
        "rope.scaling.factor = -4",
        "rope.scaling.factor = 4",
        "attention.layer_norm_epsilon = nan",
        "attention.layer_norm_epsilon = -1",
        "rope.dimension_sections = [8, 12, 12, 4]",
        "rope.mrope_section = [8, 12, 12, 4]",
        "mrope_sections = [8, 12, 12, 4]",
        "mrope_section = [8, 12, 12, 4]",
        "attention.indexer.top_k = 31",
        "attention.indexer.odd = 1",
        "wkv.odd = 1",
        "kda.odd = 1",
        "rope.scaling.yarn_ext_factor = 1\nt.rope.scaling.factor = 1.5"};
    static const char *const accepted[] = {
        "rope.scaling.factor = 4\nt.rope.scaling.type = \"none\"",
        "rope.dimension_sections = [8, 12, 12, 0]",
        "rope.dimension_sections = [8, 12, 12]",
        "rope.mrope_section = [8, 12, 12]",
        "mrope_sections = [8, 12, 12]",
        "rope.mrope_interleaved = true",
        "attention.indexer.top_k = 32",
        "attention.indexer.top_k = 0",
        "attention.indexer.head_count = 8",
        "attention.indexer.key_length = 8",
        "wkv.head_size = 64",
        "kda.head_dim = 64",
        "rope.scaling.yarn_ext_factor = 1",
        "rope.scaling.yarn_ext_factor = 0",
        "rope.scaling.yarn_ext_factor = -1"};
    char lines[200], top[200];
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(lines, sizeof lines, "t.%s\nt.context_length = 32", refused[i]);
        snprintf(top, sizeof top, "  t.%.*s", (int)strcspn(refused[i], " "), refused[i]);
        check("", lines, top, NULL);
    }
    check("", "t.rope.scaling.factor = -4\nt.rope.scaling.type = \"none\"", "rope.scaling.factor",
          NULL);
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        snprintf(lines, sizeof lines, "t.%s\nt.context_length = 32", accepted[i]);
        check("", lines, NULL, NULL);
    }
}

/* The functions of the prelude judge as the table does. */
TEST(yarn_in_part) {
    static const struct {
        const char *keys;
        bool right;
    } c[] = {
        {"yarn_ext_factor = 1", true},
        {"yarn_ext_factor = 0\nt.rope.scaling.factor = 4", true},
        {"yarn_ext_factor = -1\nt.rope.scaling.factor = 4", true},
        {"yarn_ext_factor = 1\nt.rope.scaling.factor = 4", true},
        {"yarn_ext_factor = 1\nt.rope.scaling.type = \"longrope\"\nt.rope.scaling.factor = 4",
         false},
        {"yarn_ext_factor = 1\nt.rope.scaling.type = \"longrope\"\nt.rope.scaling.factor = 1",
         true},
        {"yarn_ext_factor = nan\nt.rope.scaling.factor = 4", false},
        {"yarn_ext_factor = 1\nt.rope.scaling.type = \"yarn\"\nt.rope.scaling.factor = 4", true},
        {"yarn_ext_factor = 0\nt.rope.scaling.type = \"yarn\"\nt.rope.scaling.factor = 4", true}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        ggl_error err;
        char lines[200];
        snprintf(lines, sizeof lines, "t.context_length = 32\nt.rope.scaling.%s", c[i].keys);
        ggl_status s = arch_try("f, m = rope_scaled(8, 10000)\n",
                                "x = flat(rope_half(heads(x, 1), f, m))\n", lines, NULL, &err);
        CHECK_MSG((s == GGL_OK) == c[i].right, "%s: %s", c[i].keys, err.msg);
        if (!c[i].right)
            CHECK_HAS(err.msg, "yarn_ext_factor");
    }
}

TEST(parts_that_text_does_not_need) {
    check("", "v.blk.0.q.weight [4]\nv.blk.1.q.weight [4]\nmm.x [2]\n", NULL,
          "model.gguf: 2 tensors of a vision tower are not used\n"
          "model.gguf: 1 tensor of a projector of images or sound is not used\n");
    check("", "v.blk.0.q.weight [4]\nblk.0.q.weight [4]", "1 tensor of this file is not read",
          NULL);
    check("ignore \"v.*\"\n", "v.blk.0.q.weight [4]\n", NULL, NULL);
    check("n = .nextn_predict_layers\nrequire n > 0\n",
          "blk.3.nextn.eh_proj.weight [4]\nt.nextn_predict_layers = 1", NULL,
          "model.gguf: 1 tensor of a draft layer is not used\n");
    check("", "blk.3.nextn.eh_proj.weight [4]", "blk.3.nextn.eh_proj.weight", NULL);
    check("ignore \"x.*\" if .with_x \?\? false\n", "x.w [4]\nt.with_x = true", NULL, NULL);
    check("ignore \"x.*\" if .with_x \?\? false\n", "x.w [4]\nt.with_x = false", "  x.w\n", NULL);
}

/* All of them in one message, which ends with how to go on. */
TEST(many) {
    char *lines = calloc(1, 1 << 16), *s = lines;
    ggl_error err;
    char *notes;
    REQUIRE(lines);
    for (int i = 0; i < 60; i++)
        s += sprintf(s, "t.odd_%d = %d\n", i, i);
    for (int l = 0; l < 24; l++)
        s += sprintf(s, "blk.%d.attn_k.bias [4]\nblk.%d.e.%d.w [4]\n", l, l, l % 3);
    CHECK(build_ignoring("", lines, NULL, &notes, &err) == GGL_FORMAT);
    CHECK_HAS(err.msg,
              "model.gguf: error: 60 keys and 48 tensors of this file are not read by t.arch:\n"
              "  t.odd_0 = 0\n  t.odd_1 = 1\n");
    CHECK_HAS(err.msg, "\n  and 42 more ('llm-arch show' lists all)\nWithout them");
    CHECK_HAS(
        err.msg,
        "--ignore-key 't.*' --ignore-tensor 'blk.*.attn_k.bias' --ignore-tensor 'blk.*.e.*.w'\nIf "
        "you write the descriptor, read, ignore or require each of them in t.arch.");
    free(notes);
    CHECK(build_ignoring("", strstr(lines, "blk."), NULL, &notes, &err) == GGL_FORMAT);
    CHECK_HAS(err.msg,
              "\n  blk.{0..23}.attn_k.bias (24 tensors)\n  blk.{0..23}.e.{0..2}.w (24 tensors)\n");
    free(notes);
    free(lines);
}

/* Names and values of a file are shown, not printed. */
TEST(control_characters) {
    ggl_error err;
    char *notes;
    CHECK(build_ignoring("", "t.odd\x1b[31m = \"\x1b[0m\"", NULL, &notes, &err) == GGL_FORMAT);
    CHECK_HAS(err.msg, "  t.odd\\x1b[31m = \"\\x1b[0m\"\n");
    CHECK(!strchr(err.msg, '\x1b'));
    free(notes);
}

/* Only text that is safe to paste into a shell is suggested; a few names are all listed. */
TEST(advice) {
    static const struct {
        const char *lines, *want;
    } c[] = {{"t.odd = 1\nt.other_-9 = 2", "--ignore-key 't.odd' --ignore-key 't.other_-9'\n"},
             {"t.odd = 1\nt.b = 2\nt.c = 2\nt.d = 3", "--ignore-key 't.*'\n"},
             {"t.o'; rm x; ' = 1", "--ignore-key 't.*'\n"},
             {"t.\x1b[31m = 1", "--ignore-key 't.*'\n"},
             {"t.\xc3\xa9 = 1", "--ignore-key 't.*'\n"},
             {"it's [4]", "--ignore-tensor '*'\n"},
             {"one [4]\ntwo.w [4]\nblk.0.a.w [4]\nblk.1.a.w [4]",
              "--ignore-tensor 'one' --ignore-tensor 'two.w' --ignore-tensor 'blk.*.a.w'\n"},
             {"one [4]\ntwo [4]\nthree [4]\nfour [4]", "--ignore-tensor '*'\n"}};
    char name[200] = "t.";
    memset(name + 2, 'a', 100);
    strcpy(name + 102, " = 1");
    check("", name, "--ignore-key 't.*'\n", NULL); /* a long name would be cut */
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        check("", c[i].lines, c[i].want, NULL);
}

/* Long names are cut between characters, and their values. */
TEST(long_names) {
    ggl_error err;
    char *notes, lines[1000];
    for (int n = 70; n < 90; n++) {
        char *s = lines + sprintf(lines, "t.%.*s", n % 4, "abcd");
        for (int i = 0; i < n; i++)
            s += sprintf(s, "\xc3\xa9");
        s += sprintf(s, " = \"%.*s", n % 3, "abc");
        for (int i = 0; i < n; i++)
            s += sprintf(s, "\xe2\x82\xac");
        sprintf(s, "\"\n%.*s\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9.0.w [4]\n", n % 2, "x");
        CHECK(build_ignoring("", lines, NULL, &notes, &err) == GGL_FORMAT);
        CHECK_MSG(!strchr(err.msg, '\\'), "%s", err.msg);
        CHECK_HAS(err.msg, "..");
        free(notes);
        const char *all = "*";
        const llm_arch_ignore ignore = {.key = &all, .tensor = &all, .n_key = 1, .n_tensor = 1};
        CHECK_OK(build_ignoring("", lines, &ignore, &notes, &err), &err);
        CHECK_MSG(!strchr(notes, '\\'), "%s", notes);
        free(notes);
    }
}

static void ignoring(const char *key, const char *tensor, const char *lines, const char *error,
                     const char *want) {
    ggl_error err;
    char *notes;
    const llm_arch_ignore ignore = {
        .key = &key, .tensor = &tensor, .n_key = key != NULL, .n_tensor = tensor != NULL};
    ggl_status s = build_ignoring("", lines, &ignore, &notes, &err);
    if (error) {
        CHECK(s == GGL_FORMAT);
        CHECK_HAS(err.msg, error);
    } else {
        CHECK_OK(s, &err);
    }
    CHECK_STR(notes, want);
    free(notes);
}

TEST(on_request) {
    ignoring("t.logit_scale", NULL, "t.logit_scale = 16", NULL,
             "ignored at your request: t.logit_scale = 16\n");
    ignoring("t.*", "blk.*.foo", "t.a = 16\nt.b = 1\nblk.0.foo [4]\nblk.1.foo [4]\nblk.2.foo [4]",
             NULL, "ignored at your request: 2 keys t.*, 3 tensors blk.*.foo\n");
    ignoring("t.a", "one", "t.a = 16\none [4]", NULL, "ignored at your request: t.a = 16, one\n");
    /* a key that is read is read all the same, and not among those ignored */
    ignoring("t.*", NULL, "t.a = 1", NULL, "ignored at your request: t.a = 1\n");
    ignoring("t.n_embd", NULL, "", NULL,
             "model.gguf: no unread key matches the pattern 't.n_embd' to ignore\n");
    ignoring("t.logit_skale", NULL, "t.logit_scale = 1", NULL,
             "model.gguf: no unread key matches the pattern 't.logit_skale' to ignore\n");
    ignoring("t.a", "x", "t.b = 1", "  t.b = 1\n",
             "model.gguf: no unread key matches the pattern 't.a' to ignore\nmodel.gguf: no unread "
             "tensor matches the pattern 'x' to ignore\n");
    ignoring("u.*", NULL, "u.v = 1", NULL, "ignored at your request: u.v = 1\n");
    ignoring("ollama.*", NULL, "ollama.v = 1", NULL,
             "model.gguf: no unread key matches the pattern 'ollama.*' to ignore\n");
}

static void ignoring_keys(const char *const *key, size_t n, const char *top, const char *lines,
                          const char *error, const char *want) {
    ggl_error err;
    char *notes;
    const llm_arch_ignore ignore = {.key = key, .n_key = n};
    ggl_status s = build_ignoring(top, lines, &ignore, &notes, &err);
    CHECK_MSG((s == GGL_OK) == !error, "%s", err.msg);
    if (error)
        CHECK_HAS(err.msg, error);
    CHECK_STR(notes, want);
    free(notes);
}

TEST(several_patterns_on_request) {
    const char *both[] = {"t.*", "t.a"}, *twice[] = {"t.x", "t.x"};
    ignoring_keys(both, 2, "", "t.a = 1", NULL, "ignored at your request: t.a = 1\n");
    ignoring_keys(both, 2, "", "t.a = 1\nt.b = 2", NULL, "ignored at your request: 2 keys t.*\n");
    ignoring_keys(twice, 2, "", "", NULL,
                  "model.gguf: no unread key matches the pattern 't.x' to ignore\n");
    /* what `ignore .. if` would refuse */
    ignoring_keys(both + 1, 1, "ignore .a if .a == 2, \"odd\"\n", "t.a = 1", NULL,
                  "ignored at your request: t.a = 1\n");
    ignoring_keys(both + 1, 1, "ignore .a if .a == 1, \"odd\"\n", "t.a = 1", NULL,
                  "model.gguf: no unread key matches the pattern 't.a' to ignore\n");
    /* a slip is named where the error is seen */
    ignoring_keys(twice, 1, "", "t.b = 1", "\nNothing unread matches --ignore-key 't.x'.\n",
                  "model.gguf: no unread key matches the pattern 't.x' to ignore\n");
}

/* None is left out, however many there are. */
TEST(many_patterns_on_request) {
    enum { N = 60 };
    static char name[N][40];
    const char *key[N];
    char lines[N * 50], *s = lines, *notes;
    ggl_error err;
    for (int i = 0; i < N; i++) {
        sprintf(name[i], "t.a_key_that_is_not_short_%d", i);
        key[i] = name[i];
        s += sprintf(s, "%s = %d\n", name[i], i);
    }
    const llm_arch_ignore ignore = {.key = key, .n_key = N};
    CHECK_OK(build_ignoring("", lines, &ignore, &notes, &err), &err);
    for (int i = 0; i < N; i++) {
        char want[80];
        snprintf(want, sizeof want, "%.40s = %d", name[i], i);
        CHECK_HAS(notes, want);
    }
    free(notes);
}

typedef struct hostile {
    size_t n_keys, n_tensors;
    char name[64];
} hostile;

static bool h_find_key(void *ctx, const char *name, llm_arch_key *out) {
    *out = (llm_arch_key){LLM_ARCH_STRING, false, 1, ctx};
    return strcmp(name, "general.architecture") == 0;
}

static bool h_get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    (void)ctx, (void)key, (void)i;
    *out = (llm_arch_item){.string = {"t", 1}};
    return true;
}

static bool h_find_tensor(void *ctx, llm_arch_tensor *t) {
    (void)ctx;
    t->type = GGL_F32;
    t->data = zeros;
    return strcmp(t->name, "token_embd.weight") == 0;
}

static bool h_key_at(void *ctx, size_t i, ggl_str *name) {
    hostile *h = ctx;
    *name = (ggl_str){h->name, (size_t)snprintf(h->name, sizeof h->name, "t.%zu", i)};
    return i < h->n_keys;
}

static bool h_tensor_at(void *ctx, size_t i, ggl_str *name) {
    hostile *h = ctx;
    *name = (ggl_str){h->name, (size_t)snprintf(h->name, sizeof h->name, "%zu.w", i)};
    return i < h->n_tensors;
}

static void limited(const hostile *shape, const char *top, const llm_arch_ignore *ignore) {
    hostile h = *shape;
    const llm_arch_source src = {.ctx = &h,
                                 .name = "hostile",
                                 .find_key = h_find_key,
                                 .get_item = h_get_item,
                                 .find_tensor = h_find_tensor,
                                 .key_at = h_key_at,
                                 .tensor_at = h_tensor_at};
    llm_arch *arch;
    ggl_error err = {0};
    char *text = malloc(strlen(top) + 200);
    REQUIRE(text);
    sprintf(text,
            "arch t\nlanguage 1\n%stoken_embd [8, n_vocab]\n"
            "logits = linear(token_embd[token], token_embd)\n",
            top);
    REQUIRE_OK(llm_arch_parse(&arch, text, strlen(text), "t.arch", &err), &err);
    ggl_graph_params p = ggl_graph_default();
    ggl_graph *g = ggl_graph_new(&p);
    llm_arch_params ap = {.size = sizeof ap, .n_vocab = 10};
    if (ignore)
        ap.ignore = *ignore;
    ggl_status s = llm_arch_build(arch, &src, &ap, g, NULL, &err);
    CHECK_MSG(s == GGL_LIMIT, "%s", err.msg);
    CHECK_HAS(err.msg, "steps");
    ggl_graph_free(g);
    llm_arch_free(arch);
    free(text);
}

/* Patterns times names count as steps: a file can have many of both. */
LONG_TEST(steps_of_patterns) {
    enum { N = 1000 };
    char *top = malloc(N * 40), *s = top;
    const char *pattern[N];
    REQUIRE(top);
    for (int i = 0; i < N; i++)
        s += sprintf(s, "ignore \".*x*y%d*\"\n", i);
    limited(&(hostile){.n_keys = 20000}, top, NULL);
    for (int i = 0; i < N; i++)
        pattern[i] = "*x*y";
    limited(&(hostile){.n_keys = 20000}, "", &(llm_arch_ignore){.key = pattern, .n_key = N});
    limited(&(hostile){.n_tensors = 20000}, "",
            &(llm_arch_ignore){.tensor = pattern, .n_tensor = N});
    free(top);
}

typedef struct told {
    char text[200];
} told;

static void on_unread(void *ctx, size_t i, const char *part) {
    told *t = ctx;
    size_t n = strlen(t->text);
    snprintf(t->text + n, sizeof t->text - n, "%zu %s, ", i, part ? part : "-");
}

/* Tensor by tensor, for listings. */
TEST(unread_tensors_are_reported) {
    static const char *const all[] = {"*"};
    model m;
    llm_arch *arch;
    ggl_error err = {0};
    told t = {.text = ""};
    char *text = arch_text("ignore \"x.*\"\n", "");
    REQUIRE(model_new(&m, "odd [4]\nx.w [4]\nv.blk.0.w [4]\nmtp.w [4]\nodd2 [2]", "model.gguf"));
    REQUIRE_OK(llm_arch_parse(&arch, text, strlen(text), "t.arch", &err), &err);
    const llm_arch_source src = llm_arch_source_gguf(m.file);
    for (int ignore = 0; ignore < 2; ignore++) {
        ggl_graph_params p = ggl_graph_default();
        ggl_graph *g = ggl_graph_new(&p);
        t.text[0] = 0;
        const llm_arch_params ap = {
            .size = sizeof ap,
            .unread = on_unread,
            .ctx = &t,
            .ignore = {
                .key = all, .tensor = all, .n_key = (size_t)ignore, .n_tensor = (size_t)ignore}};
        ggl_status s = llm_arch_build(arch, &src, &ap, g, NULL, &err);
        CHECK_INT(s, ignore ? GGL_OK : GGL_FORMAT);
        CHECK_STR(t.text, "1 -, 3 a vision tower, 4 a draft layer, 5 -, ");
        ggl_graph_free(g);
    }
    llm_arch_free(arch);
    model_free(&m);
    free(text);
}

typedef struct verdicts {
    char text[400];
} verdicts;

static void on_key(void *ctx, const llm_arch_judged *k) {
    static const char *const names[] = {"engine",   "read",   "ignored",
                                        "harmless", "unread", "foreign"};
    verdicts *v = ctx;
    size_t n = strlen(v->text);
    if (k->key.n == 3 && memcmp(k->key.s, "t.", 2) == 0)
        snprintf(v->text + n, sizeof v->text - n, "%c %s:%d %s; ", k->key.s[2], names[k->use],
                 k->line, k->reason ? k->reason : "");
}

/* Conditions of keys alone are evaluated, so that a listing says what a build will. */
TEST(conditions_of_ignore) {
    model m;
    llm_arch *arch;
    ggl_error err = {0};
    verdicts v = {.text = ""};
    char *text = arch_text("n = 2\nignore .a if .a == 1, \"odd\"\nignore .b if .b in [3, 4]\n"
                           "ignore .c if .c == n\nignore .d if .d > 1 and not has(.e)\n"
                           "if n == 3: ignore .f if .f == 1\n",
                           "");
    REQUIRE_OK(llm_arch_parse(&arch, text, strlen(text), "t.arch", &err), &err);
    REQUIRE(model_new(&m, "t.a = 1\nt.b = 4\nt.c = 2\nt.d = 2\nt.f = 9", "model.gguf"));
    llm_arch_source src = llm_arch_source_gguf(m.file);
    CHECK_OK(llm_arch_judge_keys(arch, &src, on_key, &v, &err), &err);
    CHECK_STR(v.text, "a ignored:4 ; b ignored:5 ; c ignored:6 if .c == n; d ignored:7 ; "
                      "f ignored:8 if .f == 1; ");
    model_free(&m);
    REQUIRE(model_new(&m, "t.a = 2\nt.b = 5\nt.d = \"x\"\nt.e = 2", "model.gguf"));
    src = llm_arch_source_gguf(m.file);
    v.text[0] = 0;
    CHECK_OK(llm_arch_judge_keys(arch, &src, on_key, &v, &err), &err);
    CHECK_STR(v.text, "a unread:4 odd; b unread:5 ignored only if .b in [3, 4]; d unread:7 ignored "
                      "only if .d > 1 and not has(.e); e read:7 ; ");
    model_free(&m);
    llm_arch_free(arch);
    free(text);
}

/* --- what values serve as --------------------------------------------------------------------- */

TEST(lists_of_equal_values) {
    check("require .a == 3\n", "t.a = [3, 3, 3]", NULL, NULL);
    check("require .a + 1 == 4 and -.a == -3 and .a in [2, 3] and max(.a, 1) == 3\n",
          "t.a = [3, 3]", NULL, NULL);
    check("a = .a\nrequire a == 3 and size(.a) == 2 and 3 in .a and .a[1] == 3\n", "t.a = [3, 3]",
          NULL, NULL);
    check("def f(x) = x * 2\nrequire f(.a) == 6\n", "t.a = [3]", NULL, NULL);
    check("require .a == 3\n", "t.a = [3, 3, 4]",
          "key t.a is a list of 3, of which [0] is 3 and [2] is 4: pick one with [i]", NULL);
    check("require [3, 3] == 3\n", "", "a list of 2", NULL); /* a key's only */
}

TEST(truth_of_keys) {
    check("require .a and not .b and .a == true and .b != true and .a in [true]\n",
          "t.a = 1\nt.b = 0", NULL, NULL);
    check("require .a\n", "t.a = [1, 1]", NULL, NULL);
    check("if .a: require .b[1] == true\n", "t.a = 1\nt.b = [0, 1]", NULL, NULL);
    check("require .a == 1\n", "t.a = true", "'==' of true or false and a number", NULL);
    check("require .a\n", "t.a = 2", "true or false is expected here", NULL);
    check("require 1\n", "", "true or false is expected here", NULL);
    check("require true == 1\n", "", "'==' of true or false and a number", NULL);
    check("require .a + 0\n", "t.a = 1", "true or false is expected here", NULL); /* computed */
}

TEST(zero_means_absent) {
    check("require (.attention.scale \?\? 5) == 5 and not has(.expert_weights_scale)\n",
          "t.attention.scale = 0\nt.expert_weights_scale = 0", NULL, NULL);
    check("require (.attention.scale \?\? 5) == 2\n", "t.attention.scale = 2", NULL, NULL);
    check("require .logit_scale == 0\n", "t.logit_scale = 0", NULL, NULL);
    check("require (.expert_gating_func \?\? 7) == 7\n", "t.expert_gating_func = 0", NULL, NULL);
    check("require (.attention.scale \?\? 5) == 5\n", "t.attention.scale = [0, 0]", NULL, NULL);
    check("require .attention.scale[1] == 3\n", "t.attention.scale = [0, 3]", NULL, NULL);
}

/* llama.cpp writes false where a family does not use the key, and all keys at once. */
TEST(false_of_a_file_saved_whole) {
    const char *top = "require .expert_weights_norm \?\? true\n";
    check(top, "t.expert_weights_norm = true", NULL, NULL);
    check(top, "t.expert_weights_norm = false", "this requirement does not hold", NULL);
    check(top, "t.expert_weights_norm = false\nt.swin_norm = false\nt.wkv.head_size = 0", NULL,
          NULL);
}

TEST(second_names) {
    const char *top = "w [8] from \"a\" \?\? \"b\"\n";
    check(top, "", "tensor a is missing in model.gguf", NULL);
    check(top, "a [8]\nb [8]", "tensor a is declared but does not reach the logits", NULL);
    check(top, "b [8]", "tensor b is declared but does not reach the logits", NULL);
}

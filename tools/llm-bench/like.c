#include "like.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/shape_source.h"
#include "costs.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/model.h"

/* What a llama is made of. */
typedef struct like {
    int64_t n_layer, n_embd, n_head, n_kv, n_ff, n_vocab;
} like;

/* Returns {arch}.name, of a list the largest number; 0 if the file lacks it. */
static int64_t number_of(const ggl_gguf *f, const char *name) {
    char key[160];
    ggl_str arch = {"", 0};
    (void)ggl_gguf_get_string(f, "general.architecture", &arch, NULL);
    snprintf(key, sizeof key, "%.*s.%s", (int)(arch.n < 80 ? arch.n : 80), arch.s, name);
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    int64_t most = 0;
    for (uint64_t i = 0; v && i < v->n; i++) {
        int64_t x;
        if (ggl_gguf_integer(v, i, &x) && x > most)
            most = x;
    }
    return most;
}

/* Chooses heads of an even size that divide the width: those of the model, if they do. */
static void choose_heads(like *l, const ggl_gguf *f) {
    l->n_head = number_of(f, "attention.head_count");
    for (int64_t d = 128;
         l->n_head < 1 || l->n_head > l->n_embd / 2 || l->n_embd % (2 * l->n_head) != 0; d -= 2)
        l->n_head = d > 2 && l->n_embd % d == 0 ? l->n_embd / d : d <= 2 ? l->n_embd / 2 : 0;
    l->n_kv = number_of(f, "attention.head_count_kv");
    if (l->n_kv < 1 || l->n_head % l->n_kv != 0)
        l->n_kv = l->n_head;
}

/* Chooses the width of the feed-forward parts, in whole blocks of all types if it is large. */
static void choose_ff(like *l, double macs) {
    const double n = (double)l->n_embd, kv = n * (double)l->n_kv / (double)l->n_head;
    const double rest = macs / (double)l->n_layer - n * (2 * n + 2 * kv);
    const int64_t block = rest / (3 * n) < 256 ? 32 : 256;
    l->n_ff = (int64_t)(rest / (3 * n) / (double)block + 0.5) * block;
    if (l->n_ff < block)
        l->n_ff = block;
}

/* first: the architecture to make. */
static ggl_status choose(like *l, const llm_model *m, const char *first, ggl_error *err) {
    static bench_costs c;
    const ggl_gguf *f = llm_model_file(m);
    const int64_t most = number_of(f, "context_length"), n = most > 0 && most < 512 ? most : 512;
    const llm_arch_params params = {.size = sizeof params, .n_ctx = n};
    *l = (like){.n_layer = number_of(f, "block_count"), .n_embd = number_of(f, "embedding_length")};
    const ggl_gguf_value *tokens = ggl_gguf_find(f, "tokenizer.ggml.tokens");
    l->n_vocab = tokens ? (int64_t)tokens->n : number_of(f, "vocab_size");
    if (l->n_layer < 1 || l->n_embd < 2 || l->n_embd % 2 || l->n_vocab < 1)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "a %s like it needs layers, an even width and tokens: the file has "
                        "block_count %" PRId64 ", embedding_length %" PRId64 ", %" PRId64 " tokens",
                        first, l->n_layer, l->n_embd, l->n_vocab);
    choose_heads(l, f);
    ggl_status st = bench_costs_count(&c, m, &params, n, GGL_F16, GGL_F16, err);
    if (st == GGL_OK)
        choose_ff(l, c.trunk_macs + c.tail_macs + c.stage_macs -
                         (llm_arch_has_output(llm_model_arch(m), "logits")
                              ? (double)l->n_embd * (double)l->n_vocab
                              : 0));
    return st;
}

ggl_status bench_shape_like(bench_shape *out, const char *path, ggl_error *err) {
    char text[1024], name[BENCH_SHAPE_NAME] = "";
    llm_model *m = NULL;
    like l;
    static bench_shape first; /* shapes.txt says of which architecture models are made to compare */
    (void)bench_shape_at(BENCH_SHAPES, 0, name);
    ggl_status st = bench_shape_find(&first, BENCH_SHAPES, name, err);
    if (st == GGL_OK)
        st = llm_model_open(&m, path, NULL, err);
    if (st == GGL_OK && (st = choose(&l, m, first.arch, err)) != GGL_OK)
        st = ggl_within(err, st, "%s", path);
    llm_model_free(m);
    if (st != GGL_OK)
        return st;
    const int n = snprintf(
        text, sizeof text,
        "shape like %s\nvocab %" PRId64 " %s\n"
        ".context_length = 131072\n.block_count = %" PRId64 "\n.embedding_length = %" PRId64
        "\n.feed_forward_length = %" PRId64 "\n.attention.head_count = %" PRId64
        "\n.attention.head_count_kv = %" PRId64
        "\n.attention.layer_norm_rms_epsilon = 1e-5\n.rope.dimension_count = %" PRId64 "\n",
        first.arch, l.n_vocab, first.tokenizer, l.n_layer, l.n_embd, l.n_ff, l.n_head, l.n_kv,
        l.n_embd / l.n_head);
    return bench_shape_find(out, text, (size_t)n, "like", err);
}

/* Files that are whole but wrong: the built-in model with one thing changed. Each is answered by a
 * sentence that names it. */
#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/session.h"
#include "test.h"

#include <math.h>

typedef struct change {
    const char *architecture;       /* instead of the model's */
    const char *drop_key, *add_key; /* keys; the one added has the value 7 */
    const char *text_key;           /* becomes a string */
    const char *number_key;         /* becomes this number, */
    double number;
    bool list;             /* or a list of it */
    size_t architecture_n; /* bytes of it, if it holds a NUL */
    bool no_tensors;
    const char *drop, *add; /* tensors; the one added is [32] f32 */
    const char *flip;       /* a tensor whose two dimensions change places */
    const char *descriptor; /* general.descriptor */
} change;

static bool is(ggl_str s, const char *name) {
    return name && s.n == strlen(name) && memcmp(s.s, name, s.n) == 0;
}

/* Writes the changed model; returns its path. */
static const char *changed(const change *c) {
    static const float zeros[32];
    ggl_error err = {0};
    ggl_gguf *f;
    if (!CHECK_OK(ggl_gguf_open(&f, BUILTIN_MODEL, NULL, &err), &err))
        return NULL;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        if (is(v->key, "general.architecture") && c->architecture)
            ggl_gguf_put_string(w, "general.architecture", c->architecture,
                                c->architecture_n ? c->architecture_n : strlen(c->architecture));
        else if (is(v->key, c->text_key))
            ggl_gguf_put_string(w, c->text_key, "many", 4);
        else if (is(v->key, c->number_key))
            ggl_gguf_put(w, c->number_key, GGL_GGUF_F64, c->list, &c->number, 1);
        else if (!is(v->key, c->drop_key))
            ggl_gguf_put_value(w, v);
    }
    uint32_t seven = 7;
    if (c->add_key)
        ggl_gguf_put(w, c->add_key, GGL_GGUF_U32, false, &seven, 1);
    if (c->descriptor)
        ggl_gguf_put_string(w, "general.descriptor", c->descriptor, strlen(c->descriptor));
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        int64_t ne[4];
        memcpy(ne, t->ne, sizeof ne);
        if (is(t->name, c->flip)) {
            ne[0] = t->ne[1];
            ne[1] = t->ne[0];
        }
        if (!is(t->name, c->drop) && !c->no_tensors)
            ggl_gguf_put_tensor(w, name, t->type, t->n_dims, ne, t->data);
    }
    if (c->add)
        ggl_gguf_put_tensor(w, c->add, GGL_F32, 1, (int64_t[]){32}, zeros);
    const char *path = test_path("changed.gguf");
    CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    ggl_gguf_close(f);
    return path;
}

/* Opens the changed model and makes a session; the message has the words. words NULL: it works. */
static void check(change c, const char *words, const char *more) {
    ggl_error err = {0};
    ggl_backend *b = NULL, *r = NULL;
    llm_model *m = NULL;
    llm_session *s = NULL;
    const char *path = changed(&c);
    REQUIRE(path);
    REQUIRE_OK(ggl_backend_open(&b, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&r, "reference", NULL, &err), &err);
    llm_session_params p = llm_session_default();
    p.backend = &b;
    p.n_backends = 1;
    p.fold = r;
    ggl_status st = llm_model_open(&m, path, NULL, &err);
    if (st == GGL_OK)
        st = llm_session_new(&s, m, &p, &err);
    if (words) {
        CHECK(st != GGL_OK);
        CHECK_HAS(err.msg, words);
        CHECK_HAS(err.msg, more);
    } else {
        CHECK_OK(st, &err);
    }
    llm_session_free(s);
    llm_model_free(m);
    ggl_backend_close(b);
    ggl_backend_close(r);
}

TEST(unchanged) {
    check((change){0}, NULL, NULL);
}

TEST(unknown_architecture) {
    check((change){.architecture = "lama"}, "the architecture 'lama' (did you mean 'llama'?)",
          "--arch FILE");
}

TEST(no_architecture) {
    check((change){.drop_key = "general.architecture"}, "general.architecture", "missing");
}

TEST(tensor_missing) {
    check((change){.drop = "blk.1.attn_k.weight"}, "blk.1.attn_k.weight", "changed.gguf");
}

TEST(tensor_too_many) {
    check((change){.add = "blk.0.attn_odd.weight"}, "blk.0.attn_odd.weight", "changed.gguf");
}

TEST(bias_too_many) {
    check((change){.add = "blk.0.attn_norm.bias"}, "blk.0.attn_norm.bias", "");
}

TEST(tensor_of_a_layer_too_many) {
    check((change){.add = "blk.99.attn_norm.weight"},
          "  blk.99.attn_norm.weight: the last layer is blk.4, by llama.block_count = 5\n", "");
}

TEST(wrong_shape) {
    check((change){.flip = "blk.0.ffn_up.weight"}, "blk.0.ffn_up.weight", "n_ff");
}

TEST(key_missing) {
    check((change){.drop_key = "llama.embedding_length"}, "llama.embedding_length", "changed.gguf");
}

TEST(key_of_a_wrong_type) {
    check((change){.text_key = "llama.block_count"}, "llama.block_count", "");
}

/* The engine reads two keys itself, and is as strict with them. */
TEST(context_length_and_vocab_size) {
    static const double numbers[] = {2.5, 0, -1, NAN, INFINITY};
    static const char *const keys[] = {"llama.context_length", "llama.vocab_size"};
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            check((change){.number_key = keys[k], .number = numbers[i]}, keys[k],
                  isinf(numbers[i]) ? ", but at most "
                                    : ", but a whole number of at least 1 is expected");
        check((change){.number_key = keys[k], .number = 512, .list = true}, keys[k],
              "is a list, but a whole number is expected");
        check((change){.text_key = keys[k]}, keys[k],
              "is a string, but a whole number is expected");
        check((change){.drop_key = keys[k]}, NULL, NULL);
    }
    check((change){.number_key = keys[0], .number = 256}, NULL, NULL); /* an f64, but whole */
}

/* A message that leads to the cause. */
TEST(zeros_and_sizes) {
    check((change){.number_key = "llama.block_count", .number = 0}, "does not reach the logits",
          "the model has no layers (n_layer is 0)");
    check((change){.number_key = "llama.attention.head_count", .number = 0}, "; n_head is 0", "");
    check((change){.number_key = "llama.context_length", .number = 0x1p31},
          "changed.gguf: the model's own context", "2147483648 tokens");
    check((change){.no_tensors = true}, "this file has only a vocabulary", "changed.gguf");
    check((change){.architecture = "llama\0evil", .architecture_n = 10},
          "no built-in descriptor for the architecture 'llama\\x00evil'", "");
    check((change){.number_key = "llama.block_count", .number = 4000}, "is missing", "");
}

/* A built-in descriptor is right, and the file wrong: the message begins with the file, the keys at fault and their values, and the
 * descriptor's line follows. */
TEST(names_the_keys_at_fault) {
    static const struct {
        const char *key;
        double number;
        const char *says[2];
    } cases[] = {
        {"llama.block_count",
         4259844,
         {"changed.gguf: llama.block_count = 4259844: llama.arch:",
          "'n_layer' is 4259844; 0 to 4096 is allowed"}},
        {"llama.block_count", 6, {"changed.gguf: llama.block_count = 6: llama.arch:", "blk.5."}},
        {"llama.block_count",
         3,
         {"changed.gguf: error: 18 tensors of this file are not read by llama.arch:\n"
          "  blk.{3..4}.* (18 tensors): the last layer is blk.2, by llama.block_count = 3\n",
          "--ignore-tensor 'blk.*.*'"}},
        {"llama.block_count", 0, {"changed.gguf: llama.block_count = 0: llama.arch:", "no layers"}},
        {"llama.attention.head_count",
         3,
         {"changed.gguf: llama.attention.head_count_kv = 2, llama.embedding_length = 128, "
          "llama.attention.head_count = 3: llama.arch:",
          "whole number"}},
        {"llama.attention.head_count_kv",
         3,
         {"changed.gguf: llama.attention.head_count_kv = 3, ", "[128, 64], declared"}},
        {"llama.embedding_length",
         100,
         {"changed.gguf: llama.embedding_length = 100: llama.arch:", "[100, 2048]"}},
        {"llama.rope.dimension_count",
         31,
         {"changed.gguf: llama.rope.dimension_count = 31: llama.arch:", "whole number"}},
        {"llama.rope.dimension_count", 64, {"llama.rope.dimension_count = 64", "at most half"}},
        {"llama.rope.freq_base", 0, {"llama.rope.freq_base = 0", "the base of the rotation"}},
        {"llama.vocab_size",
         4096,
         {"changed.gguf: llama.vocab_size = 4096: llama.arch:", "[n_embd, n_vocab]"}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check((change){.number_key = cases[k].key, .number = cases[k].number}, cases[k].says[0],
              cases[k].says[1]);
}

/* Fails to build the graph of the changed model, and returns the message, which lives until the next call. */
static const char *build_error(change c) {
    static ggl_error err;
    const char *path = changed(&c);
    llm_model *m = NULL;
    err = (ggl_error){0};
    CHECK(path);
    CHECK_OK(llm_model_open(&m, path, NULL, &err), &err);
    if (!m)
        return err.msg;
    ggl_graph *g = ggl_graph_new(NULL);
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    CHECK(llm_arch_build(llm_model_arch(m), &source, NULL, g, NULL, &err) != GGL_OK);
    ggl_graph_free(g);
    llm_model_free(m);
    return err.msg;
}

/* A user of a built-in descriptor gets no advice on how to change a descriptor. */
TEST(no_advice_for_authors) {
    static const struct {
        change c;
        const char *says, *not_said;
    } cases[] = {
        {{.add = "blk.0.attn_odd.weight"}, "not read by llama.arch", "If you write the descriptor"},
        {{.drop = "blk.1.attn_k.weight"}, "blk.1.attn_k.weight is missing", "add '?'"},
        {{.flip = "blk.0.attn_k.weight"}, "declared [n_embd, n_kv*d]", " here is "},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *msg = build_error(cases[k].c);
        CHECK_HAS(msg, cases[k].says);
        CHECK_MSG(!strstr(msg, cases[k].not_said), "%s", msg);
    }
}

/* A tensor of a layer that is missing is not misspelled as that of another one. */
TEST(no_guess_at_another_layer) {
    const char *msg = build_error((change){.drop = "blk.1.attn_k.weight"});
    CHECK_HAS(msg, "blk.1.attn_k.weight is missing");
    CHECK_MSG(!strstr(msg, "did you mean blk.0."), "%s", msg);
}

TEST(key_not_known) {
    check((change){.add_key = "llama.attention.odd"}, "llama.attention.odd", "not read by");
}

/* A key outside of the family's says what the weights mean, unless the table knows it as a note. */
TEST(key_of_another_namespace) {
    check((change){.add_key = "somebody.else"}, "somebody.else", "not read by");
    check((change){.add_key = "mradermacher.quantize_version"}, NULL, NULL);
}

TEST(descriptor_in_the_file) {
    check((change){.descriptor = "arch llama\nlanguage 1\nlogits = nonsense\n"},
          "general.descriptor:3:10", "nonsense");
}

TEST(descriptor_of_a_newer_language) {
    check((change){.descriptor = "arch llama\nlanguage 3\nlogits = nonsense\n"}, "language", "3");
}

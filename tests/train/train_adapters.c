/* llm_trainer with adapters: they learn beside a model that stays as it is, with magnitudes (DoRA) or without. */
#include "train_test.h"

/* An adapter learns beside a quantized model, which stays as it is; at first it changes nothing; written and opened again, it gives the
 * same loss. */
TEST(adapters_learn) {
    char learned[600];
    void *data = NULL;
    size_t size = 0;
    static const char *const learn[] = {"*.lora_a", "*.lora_b"}, *const matrix[] = {
                                                                     "blk.*.attn_q.weight",
                                                                     "blk.*.ffn_down.weight"};
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    llm_arch *arch = NULL;
    llm_adapter *a[2] = {NULL};
    llm_adapter_use use[2]; /* as long as the trainers */
    ggl_backend *cpu = NULL, *reference = NULL;
    snprintf(learned, sizeof learned, "%s/learned.gguf", test_folder());
    REQUIRE_OK(ggl_gguf_open(&f, BUILTIN_MODEL, NULL, &err), &err);
    REQUIRE_OK(llm_arch_open(&arch, "llama", &err), &err);
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    llm_arch_source source = llm_arch_source_gguf(f);
    llm_trainer *plain = of_file(f, arch, &source, cpu, reference), *t[2] = {NULL};
    const llm_train_pairs pairs = {
        .size = sizeof pairs, .rank = 4, .matrix = matrix, .n_matrices = 2, .seed = 7};
    REQUIRE_OK(llm_train_new_adapter(arch, &source, &pairs, &data, &size, &err), &err);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(i ? llm_adapter_open(&a[i], learned, NULL, &err)
                     : llm_adapter_open_memory(&a[i], data, size, "new", &err),
                   &err);
        use[i] = (llm_adapter_use){.adapter = a[i], .scale = 1};
        const llm_train_params p = {.size = sizeof p,
                                    .backend = cpu,
                                    .reference = reference,
                                    .n_ctx = N_CTX,
                                    .n_batch = N_BATCH,
                                    .learn = learn,
                                    .n_learn = 2,
                                    .adapter = &use[i],
                                    .n_adapters = 1};
        REQUIRE_OK(llm_trainer_new(&t[i], arch, &source, &p, &err), &err);
        if (i == 0) {
            CHECK_INT(llm_trainer_n_weights(t[0]), 20); /* pairs of 2 matrices of 5 layers */
            const double before = loss_of(t[0]);
            CHECK_MSG(fabs(before - loss_of(plain)) < 0.05 * before, "%g, %g", before,
                      loss_of(plain));
            double loss;
            const llm_train_batch b = batch();
            for (int k = 0; k < 20; k++) {
                CHECK_OK(llm_trainer_add(t[0], &b, &loss, &err), &err);
                CHECK_OK(llm_trainer_step(t[0], 1e-2, NULL, &err), &err);
            }
            CHECK_MSG(loss_of(t[0]) < 0.8 * before, "%g, from %g", loss_of(t[0]), before);
            CHECK_OK(llm_trainer_write(t[0], llm_adapter_file(a[0]), false, learned, &err), &err);
        } else {
            CHECK(same_weights(t[0], t[1]));
            CHECK(loss_of(t[0]) == loss_of(t[1]));
        }
    }
    /* by default: the matrices of layers, not the embedding, which is the output, too */
    llm_adapter *own = NULL;
    void *of_all = NULL;
    REQUIRE_OK(llm_train_new_adapter(arch, &source, NULL, &of_all, &size, &err), &err);
    CHECK_OK(llm_adapter_open_memory(&own, of_all, size, "new", &err), &err);
    CHECK_INT((int64_t)llm_adapter_describe(own).n_pairs, 35);
    llm_adapter_free(own);
    ggl_free(of_all);
    /* a rank that some have no room for: pairs of their own */
    llm_train_pairs high = {.size = sizeof high, .rank = 100};
    REQUIRE_OK(llm_train_new_adapter(arch, &source, &high, &of_all, &size, &err), &err);
    REQUIRE_OK(llm_adapter_open_memory(&own, of_all, size, "new", &err), &err);
    CHECK_INT((int64_t)llm_adapter_describe(own).n_pairs, 35);
    llm_adapter_free(own);
    ggl_free(of_all);
    /* a rank that none has room for */
    high.rank = 129;
    CHECK_INT(llm_train_new_adapter(arch, &source, &high, &of_all, &size, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "rank (--rank) is 129, but ranks above 128 add nothing");
    /* two adapters with weights of the same names */
    llm_trainer *none = NULL;
    const llm_train_params p2 = {.size = sizeof p2,
                                 .backend = cpu,
                                 .reference = reference,
                                 .n_ctx = N_CTX,
                                 .n_batch = N_BATCH,
                                 .learn = learn,
                                 .n_learn = 2,
                                 .adapter = use,
                                 .n_adapters = 2};
    CHECK_INT(llm_trainer_new(&none, arch, &source, &p2, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "two weights have the name blk.0.attn_q.weight.lora_");
    llm_train_pairs wrong = pairs;
    void *nothing = NULL;
    wrong.rank = 1000;
    CHECK_INT(llm_train_new_adapter(arch, &source, &wrong, &nothing, &size, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "rank 1000 is larger than a side of blk.0.attn_q.weight, 128 x 128");
    wrong = pairs;
    wrong.matrix = learn;
    CHECK_INT(llm_train_new_adapter(arch, &source, &wrong, &nothing, &size, &err), GGL_NOT_FOUND);
    static const char *const embedding[] = {"token_embd.weight"};
    wrong.matrix = embedding;
    wrong.n_matrices = 1;
    CHECK_INT(llm_train_new_adapter(arch, &source, &wrong, &nothing, &size, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "token_embd.weight is not only multiplied with");
    for (int i = 0; i < 2; i++) {
        llm_trainer_free(t[i]);
        llm_adapter_free(a[i]);
    }
    llm_trainer_free(plain);
    ggl_free(data);
    llm_arch_free(arch);
    ggl_gguf_close(f);
    ggl_backend_close(cpu);
    ggl_backend_close(reference);
}

/* A pair with magnitudes that learns, in double: what its gradients hold constant is how long the changed rows are. */
typedef struct sized {
    llm_train_weight a, b, m;
    const float *w;
    double scale;
    double *over; /* [rows]: magnitude / length */
    float *was;   /* [rows]: the magnitudes */
} sized;

/* The length of a row of W + scale * B A. */
static double length(const sized *x, int64_t row) {
    const int64_t in = x->a.ne[0], rank = x->a.ne[1],
                  matrix = x->a.n_dims > 2 ? row / x->b.ne[1] : 0;
    double sum = 0;
    for (int64_t k = 0; k < in; k++) {
        double v = (double)x->w[row * in + k];
        for (int64_t r = 0; r < rank; r++)
            v += x->scale * (double)x->b.data[row * rank + r] *
                 (double)x->a.data[(matrix * rank + r) * in + k];
        sum += v * v;
    }
    return sqrt(sum);
}

/* Sets the magnitudes so that, with the pair as it is now, the rows are multiplied by what they were. */
static void hold(const sized *x) {
    for (int64_t i = 0; i < count(&x->m); i++)
        x->m.data[i] = (float)(x->over[i] * length(x, i));
}

/* The difference of the loss by a number of A or B while the lengths are held. */
static double held_difference(llm_trainer *t, const sized *x, float *at, float h) {
    const float was = *at, up = was + h, down = was - h;
    *at = up;
    hold(x);
    const double above = loss_of(t);
    *at = down;
    hold(x);
    const double below = loss_of(t);
    *at = was;
    memcpy(x->m.data, x->was, (size_t)count(&x->m) * sizeof(float));
    return (above - below) / ((double)up - (double)down);
}

/* The adapter's tensor that learns, by the name of its matrix. */
static llm_train_weight part_of(llm_trainer *t, const char *name, const char *end) {
    char full[128];
    snprintf(full, sizeof full, "%s%s", name, end);
    for (int k = 0; k < llm_trainer_n_weights(t); k++)
        if (strcmp(llm_trainer_weight(t, k).name, full) == 0)
            return llm_trainer_weight(t, k);
    CHECK_MSG(full[0] == '\0', "%s does not learn", full);
    return (llm_train_weight){0};
}

/* Writes an adapter of rank 3 for a stack of experts, of which llm_train_new_adapter makes none. */
static void *sized_stack(llm_trainer *plain, const char *family, const char *name, size_t *size) {
    const llm_train_weight w = part_of(plain, name, "");
    const int64_t ne_a[] = {w.ne[0], 3, w.ne[2], 1}, ne_b[] = {3, w.ne[1], w.ne[2], 1},
                  ne_m[] = {w.ne[1], w.ne[2], 1, 1}, n_a = ggl_extents(ne_a, 0, 3, 1),
                  n_b = ggl_extents(ne_b, 0, 3, 1), n_m = ne_m[0] * ne_m[1];
    float *x = calloc((size_t)(n_a + n_b + n_m), sizeof *x), *m = x + n_a + n_b;
    const float alpha = 4;
    char full[128];
    void *data = NULL;
    ggl_error err = {0};
    ggl_gguf_writer *g = ggl_gguf_writer_new();
    for (int64_t i = 0; i < n_a; i++)
        x[i] = (float)((double)(i * 53 % 97) / 97 - 0.5);
    for (int64_t i = 0; i < n_m * w.ne[0]; i++)
        m[i / w.ne[0]] += w.data[i] * w.data[i];
    for (int64_t i = 0; i < n_m; i++)
        m[i] = sqrtf(m[i]);
    ggl_gguf_put_string(g, "general.type", "adapter", 7);
    ggl_gguf_put_string(g, "adapter.type", "lora", 4);
    ggl_gguf_put_string(g, "general.architecture", family, strlen(family));
    ggl_gguf_put(g, "adapter.lora.alpha", GGL_GGUF_F32, false, &alpha, 1);
    snprintf(full, sizeof full, "%s.lora_a", name);
    ggl_gguf_put_tensor(g, full, GGL_F32, 3, ne_a, x);
    snprintf(full, sizeof full, "%s.lora_b", name);
    ggl_gguf_put_tensor(g, full, GGL_F32, 3, ne_b, x + n_a);
    snprintf(full, sizeof full, "%s.lora_magnitude", name);
    ggl_gguf_put_tensor(g, full, GGL_F32, 2, ne_m, m);
    CHECK_OK(ggl_gguf_writer_write_memory(g, &data, size, &err), &err);
    ggl_gguf_writer_free(g);
    free(x);
    return data;
}

static void check_sized(const char *family, const char *const *matrix, size_t n, bool stack) {
    model m;
    ggl_error err = {0};
    void *data = NULL;
    size_t size;
    llm_adapter *adapter = NULL;
    const llm_train_batch b = batch();
    REQUIRE(open_model(&m, family));
    const llm_arch_source *source = llm_arch_toy_source(m.toy);
    const llm_train_pairs pairs = {.size = sizeof pairs,
                                   .rank = 3,
                                   .alpha = 4,
                                   .matrix = matrix,
                                   .n_matrices = n,
                                   .seed = 5,
                                   .magnitudes = true};
    llm_trainer *plain = new_trainer(&m, m.reference, NULL);
    REQUIRE(plain);
    if (stack)
        data = sized_stack(plain, family, matrix[0], &size);
    else
        CHECK_OK(llm_train_new_adapter(m.arch, source, &pairs, &data, &size, &err), &err);
    REQUIRE_OK(llm_adapter_open_memory(&adapter, data, size, "new", &err), &err);
    CHECK_INT((int64_t)llm_adapter_describe(adapter).n_magnitudes, (int64_t)n);
    const llm_adapter_use use = {.adapter = adapter, .scale = 1};
    const llm_train_params p = {.adapter = &use, .n_adapters = 1, .only_adapters = true};
    llm_trainer *t = new_trainer(&m, m.reference, &p);
    REQUIRE(t);
    CHECK_INT(llm_trainer_n_weights(t), 3 * (int64_t)n);
    const double before = loss_of(t);
    CHECK_MSG(fabs(before - loss_of(plain)) < 1e-6 * before, "%s: %.9g becomes %.9g", family,
              loss_of(plain), before);
    for (size_t i = 0; i < n; i++) { /* no zeros, and other lengths than at first */
        const llm_train_weight rows = part_of(t, matrix[i], ".lora_b"),
                               m_of = part_of(t, matrix[i], ".lora_magnitude");
        for (int64_t k = 0; k < count(&rows); k++)
            rows.data[k] = (float)((double)(k * 37 % 101) / 101 - 0.5);
        for (int64_t k = 0; k < count(&m_of); k++)
            m_of.data[k] *= (float)(1.2 - 0.4 * (double)(k % 3));
    }
    CHECK_OK(llm_trainer_add(t, &b, NULL, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const llm_train_weight w = part_of(plain, matrix[i], ""); /* which is f32 there */
        sized x = {.a = part_of(t, matrix[i], ".lora_a"),
                   .b = part_of(t, matrix[i], ".lora_b"),
                   .m = part_of(t, matrix[i], ".lora_magnitude"),
                   .scale = 4.0 / 3};
        const int64_t n_rows = count(&x.m);
        CHECK_INT(n_rows, count(&w) / w.ne[0]);
        CHECK_INT(x.m.n_dims, 1);
        x.w = w.data;
        x.over = malloc((size_t)n_rows * sizeof *x.over);
        x.was = malloc((size_t)n_rows * sizeof *x.was);
        REQUIRE(x.over && x.was);
        for (int64_t k = 0; k < n_rows; k++) {
            x.was[k] = x.m.data[k];
            x.over[k] = (double)x.m.data[k] / length(&x, k);
        }
        const llm_train_weight part[] = {x.a, x.b, x.m};
        for (int k = 0; k < 3; k++) {
            double largest = 0;
            for (int64_t e = 0; e < count(&part[k]); e++)
                largest = fmax(largest, fabs((double)part[k].grad[e]));
            CHECK(largest > 0);
            for (int s = 0; s < 6; s++) {
                float *at = &part[k].data[(s * 7919) % count(&part[k])];
                const double have = (double)part[k].grad[at - part[k].data];
                double error = INFINITY;
                for (float h = 1e-2f; h > 5e-4f && error > 2e-3 * largest; h /= 4)
                    error = fmin(
                        error, fabs((k < 2 ? held_difference(t, &x, at, h) : difference(t, at, h)) -
                                    have));
                CHECK_MSG(error <= 2e-3 * largest, "%s: %s[%d]: gradient %g, largest %g, off by %g",
                          family, part[k].name, (int)(at - part[k].data), have, largest, error);
            }
        }
        free(x.over);
        free(x.was);
    }
    /* threads */
    int64_t n_all;
    float *first = NULL;
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    for (int threads = 1; threads <= 2; threads++) {
        ggl_backend *cpu = NULL;
        const ggl_backend_params on = {.size = sizeof on, .n_threads = threads};
        REQUIRE_OK(ggl_backend_open(&cpu, "cpu", &on, &err), &err);
        llm_trainer *c = new_trainer(&m, cpu, &p);
        for (int k = 0; k < llm_trainer_n_weights(t); k++) {
            const llm_train_weight from = llm_trainer_weight(t, k);
            memcpy(llm_trainer_weight(c, k).data, from.data, (size_t)count(&from) * sizeof(float));
        }
        CHECK_OK(llm_trainer_add(c, &b, NULL, &err), &err);
        float *all = gradients(c, &n_all);
        if (first)
            CHECK(memcmp(first, all, (size_t)n_all * sizeof *all) == 0);
        if (first)
            free(all);
        else
            first = all;
        llm_trainer_free(c);
        ggl_backend_close(cpu);
    }
    unsetenv("GGL_CPU_SHARE_ALL");
    free(first);
    llm_trainer_free(t);
    llm_trainer_free(plain);
    llm_adapter_free(adapter);
    ggl_free(data);
    close_model(&m);
}

LONG_TEST(gradients_with_magnitudes) {
    static const char *const dense[] = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight"},
                             *const biased[] = {"blk.0.ffn_up.weight"},
                             *const experts[] = {"blk.0.ffn_down_exps.weight"};
    check_sized("llama", dense, 2, false);
    check_sized("gpt2", biased, 1, false);
    check_sized("olmoe", experts, 1, true);
}

/* Beside a quantized model: at first nothing changes; written and opened again, it gives the same loss. */
TEST(magnitudes_learn) {
    char learned[600];
    void *data = NULL;
    size_t size = 0;
    static const char *const matrix[] = {"blk.*.attn_q.weight", "blk.*.ffn_down.weight"},
                             *const norm[] = {"output_norm.weight"};
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    llm_arch *arch = NULL;
    llm_adapter *a[2] = {NULL};
    llm_adapter_use use[2];
    ggl_backend *cpu = NULL, *reference = NULL;
    snprintf(learned, sizeof learned, "%s/sized.gguf", test_folder());
    REQUIRE_OK(ggl_gguf_open(&f, BUILTIN_MODEL, NULL, &err), &err);
    REQUIRE_OK(llm_arch_open(&arch, "llama", &err), &err);
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    llm_arch_source source = llm_arch_source_gguf(f);
    llm_trainer *t[2] = {NULL};
    const llm_train_pairs pairs = {.size = sizeof pairs,
                                   .rank = 4,
                                   .matrix = matrix,
                                   .n_matrices = 2,
                                   .seed = 7,
                                   .magnitudes = true};
    REQUIRE_OK(llm_train_new_adapter(arch, &source, &pairs, &data, &size, &err), &err);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(i ? llm_adapter_open(&a[i], learned, NULL, &err)
                     : llm_adapter_open_memory(&a[i], data, size, "new", &err),
                   &err);
        for (int scale = 0; scale < 2; scale++) { /* at scale 0 it is not there */
            llm_trainer_free(t[i]);
            use[i] = (llm_adapter_use){.adapter = a[i], .scale = scale};
            const llm_train_params p = {.size = sizeof p,
                                        .backend = cpu,
                                        .reference = reference,
                                        .n_ctx = N_CTX,
                                        .n_batch = N_BATCH,
                                        .only_adapters = scale == 1,
                                        .learn = norm, /* the rest stays as the file has it */
                                        .n_learn = scale == 0,
                                        .adapter = &use[i],
                                        .n_adapters = 1};
            REQUIRE_OK(llm_trainer_new(&t[i], arch, &source, &p, &err), &err);
            static double plain;
            plain = scale == 0 && i == 0 ? loss_of(t[i]) : plain;
            if (scale == 0)
                CHECK(loss_of(t[i]) == plain);
            else if (i == 0)
                CHECK_MSG(loss_of(t[0]) == plain, "%.9g, %.9g", loss_of(t[0]), plain);
        }
        if (i == 0) {
            CHECK_INT(llm_trainer_n_weights(t[0]), 30); /* of 2 matrices of 5 layers */
            const double before = loss_of(t[0]);
            const llm_train_weight m = part_of(t[0], "blk.0.attn_q.weight", ".lora_magnitude");
            const float was = m.data[3];
            double loss;
            const llm_train_batch b = batch();
            for (int k = 0; k < 20; k++) {
                CHECK_OK(llm_trainer_add(t[0], &b, &loss, &err), &err);
                CHECK_OK(llm_trainer_step(t[0], 1e-2, NULL, &err), &err);
            }
            CHECK_MSG(loss_of(t[0]) < 0.8 * before, "%g, from %g", loss_of(t[0]), before);
            CHECK(m.data[3] != was);
            CHECK_OK(llm_trainer_write(t[0], llm_adapter_file(a[0]), false, learned, &err), &err);
        } else {
            CHECK(same_weights(t[0], t[1]));
            CHECK(loss_of(t[0]) == loss_of(t[1]));
            CHECK_INT((int64_t)llm_adapter_describe(a[1]).n_magnitudes, 10);
        }
    }
    for (int i = 0; i < 2; i++) {
        llm_trainer_free(t[i]);
        llm_adapter_free(a[i]);
    }
    ggl_free(data);
    llm_arch_free(arch);
    ggl_gguf_close(f);
    ggl_backend_close(cpu);
    ggl_backend_close(reference);
}

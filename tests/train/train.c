/* llm_trainer: gradients of made-up models of families against differences, both by the reference backend; the same bits for any
 * threads and runs; and steps after which the loss is lower. */
#include "train_test.h"

/* Compares the gradient of some numbers of each weight with differences of the loss. */
static void check_family(const char *family) {
    model m;
    ggl_error err = {0};
    llm_trainer *t = open_model(&m, family) ? new_trainer(&m, m.reference, NULL) : NULL;
    const llm_train_batch b = batch();
    double loss = NAN, largest = 0;
    if (!t) {
        close_model(&m);
        return;
    }
    CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
    CHECK_MSG(loss > 0 && fabs(loss - loss_of(t)) < 1e-6 * loss, "%s: %g, %g", family, loss,
              loss_of(t));
    for (int k = 0; k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        for (int64_t i = 0; i < count(&w); i++)
            largest = fmax(largest, fabs((double)w.grad[i]));
    }
    for (int s = 0; s < SAMPLES; s++) {
        const llm_train_weight w = llm_trainer_weight(t, s * llm_trainer_n_weights(t) / SAMPLES);
        float *x = &w.data[(s * 7919) % count(&w)];
        const double have = (double)w.grad[x - w.data];
        double error =
            INFINITY; /* a step that lets another expert be chosen tells nothing: the next one is smaller */
        for (float h = 1e-2f; h > 5e-4f && error > 2e-3 * largest; h /= 4)
            error = fmin(error, fabs(difference(t, x, h) - have));
        CHECK_MSG(error <= 2e-3 * largest, "%s: %s[%d]: gradient %g, largest %g, off by %g", family,
                  w.name, (int)(x - w.data), have, largest, error);
    }
    llm_trainer_free(t);
    close_model(&m);
}

TEST(gradients_of_families) {
    static const char *const family[] = {"llama", "gpt2",  "qwen3moe", "gemma",
                                         "phi3",  "llada", "qwen35",   "mamba"};
    for (size_t i = 0; i < sizeof family / sizeof *family; i++)
        check_family(family[i]);
}

TEST(any_threads_and_runs_give_the_same_bits) {
    static const struct {
        int threads;
        int64_t n_batch;
        bool apart;
    } way[] = {{1, N_BATCH, false}, {2, N_BATCH, false}, {1, N_CTX, false}, {2, 4 * N_CTX, true}};
    float *first = NULL;
    model m;
    REQUIRE(open_model(&m, "llama"));
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    for (int i = 0; i < 4; i++) {
        ggl_error err = {0};
        ggl_backend *cpu = NULL;
        const ggl_backend_params on = {.size = sizeof on, .n_threads = way[i].threads};
        const llm_train_params p = {.n_batch = way[i].n_batch};
        REQUIRE_OK(ggl_backend_open(&cpu, "cpu", &on, &err), &err);
        llm_trainer *t = new_trainer(&m, cpu, &p);
        llm_train_batch b = batch();
        double loss;
        int64_t n;
        if (!way[i].apart)
            CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
        for (b.n_seq = 1; way[i].apart && b.length < batch().length + N_SEQ; b.length++) {
            CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
            b.token += *b.length;
            b.target += *b.length;
            b.weight += *b.length;
        }
        float *all = gradients(t, &n);
        const float *at = first;
        for (int k = 0; first && k < llm_trainer_n_weights(t); k++) {
            const llm_train_weight w = llm_trainer_weight(t, k);
            /* the embedding is the output, too: in other runs, its two sums are added in another order */
            if (i < 2 || strcmp(w.name, "token_embd.weight") != 0)
                CHECK_MSG(memcmp(at, w.grad, (size_t)count(&w) * sizeof *at) == 0, "way %d: %s", i,
                          w.name);
            at += count(&w);
        }
        llm_trainer_free(t);
        ggl_backend_close(cpu);
        if (first)
            free(all);
        else
            first = all;
    }
    unsetenv("GGL_CPU_SHARE_ALL");
    free(first);
    close_model(&m);
}

static float *gradients_on(const model *m, bool bf16, int threads, const char *mask, int64_t *n,
                           double *loss) {
    ggl_error err = {0};
    ggl_backend *cpu = NULL;
    const ggl_backend_params on = {.size = sizeof on, .n_threads = threads, .mask = mask};
    const llm_train_params p = {.bf16 = bf16};
    const llm_train_batch b = batch();
    float *all = NULL;
    if (!CHECK_OK(ggl_backend_open(&cpu, "cpu", &on, &err), &err))
        return NULL;
    llm_trainer *t = new_trainer(m, cpu, &p);
    if (t && CHECK_OK(llm_trainer_add(t, &b, loss, &err), &err)) {
        CHECK(fabs(loss_of(t) - *loss) < 1e-6 * *loss);
        all = gradients(t, n);
    }
    llm_trainer_free(t);
    ggl_backend_close(cpu);
    return all;
}

/* In bf16, each factor has 8 bits, so that gradients differ from those of f32 by some thousandths of their length, and the loss by less. Their bits are
 * the same for all threads and instruction sets. */
TEST(products_in_bf16) {
    static const char *const family[] = {"llama", "qwen3moe", "gpt2", "phi3", "gemma"};
    static const struct {
        int threads;
        const char *mask;
    } way[] = {{1, NULL}, {2, NULL}, {1, "avx512bf16,bf16"}, {1, "all"}};
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    for (size_t f = 0; f < sizeof family / sizeof *family; f++) {
        model m;
        int64_t n = 0, n_f32 = 0;
        double loss = NAN, loss_f32 = NAN, off = 0, length = 0;
        REQUIRE(open_model(&m, family[f]));
        float *f32 = gradients_on(&m, false, 1, NULL, &n_f32, &loss_f32), *first = NULL;
        for (int i = 0; i < 4; i++) {
            float *all = gradients_on(&m, true, way[i].threads, way[i].mask, &n, &loss);
            REQUIRE(f32 && all && n == n_f32);
            if (first)
                CHECK_MSG(memcmp(first, all, (size_t)n * sizeof *all) == 0, "%s, way %d", family[f],
                          i);
            if (first)
                free(all);
            else
                first = all;
        }
        for (int64_t i = 0; i < n; i++) {
            off += pow((double)first[i] - (double)f32[i], 2);
            length += pow((double)f32[i], 2);
        }
        CHECK_MSG(off > 0 && sqrt(off) < 0.02 * sqrt(length), "%s: off by %g of %g", family[f],
                  sqrt(off), sqrt(length));
        CHECK_MSG(loss != loss_f32 && fabs(loss - loss_f32) < 2e-3 * loss_f32, "%s: %g, in f32 %g",
                  family[f], loss, loss_f32);
        free(f32);
        free(first);
        close_model(&m);
    }
    unsetenv("GGL_CPU_SHARE_ALL");
}

/* Many short sequences beside a long one share the pages of a run: their losses are those of one after the other. */
TEST(short_sequences_share_a_run) {
    enum { SEQ = 19, CTX = 150, ALL = CTX + 7 * (SEQ - 1) };
    int32_t token[ALL + 1];
    int64_t length[SEQ];
    double each[SEQ], alone[SEQ], all = NAN, added = NAN, sum = 0;
    model m;
    ggl_error err = {0};
    ggl_backend *cpu = NULL;
    REQUIRE(open_model(&m, "llama"));
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    const llm_train_params p = {.n_ctx = CTX, .n_batch = ALL, .n_slots = SEQ};
    llm_trainer *t = new_trainer(&m, cpu, &p), *one = new_trainer(&m, cpu, &p);
    REQUIRE(t && one);
    for (int i = 0; i <= ALL; i++)
        token[i] = (i * 11 + i / 3) % 29;
    for (int i = 0; i < SEQ; i++)
        length[i] = i == 4 ? CTX : 7;
    llm_train_batch b = {.token = token, .target = token + 1, .length = length, .n_seq = SEQ};
    CHECK_OK(llm_trainer_evaluate(t, &b, &all, each, &err), &err);
    CHECK_OK(llm_trainer_add(t, &b, &added, &err), &err);
    CHECK(all == added);
    b.n_seq = 1;
    for (int i = 0; i < SEQ; i++, b.length++) {
        CHECK_OK(llm_trainer_evaluate(one, &b, &alone[i], NULL, &err), &err);
        CHECK_OK(llm_trainer_add(one, &b, NULL, &err), &err);
        CHECK_MSG(alone[i] == each[i], "%d: %g, %g", i, alone[i], each[i]);
        sum += each[i];
        b.token += *b.length;
        b.target += *b.length;
    }
    CHECK(sum == all);
    for (int k = 0; k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight x = llm_trainer_weight(t, k), y = llm_trainer_weight(one, k);
        if (strcmp(x.name, "token_embd.weight") != 0)
            CHECK_MSG(memcmp(x.grad, y.grad, (size_t)count(&x) * sizeof(float)) == 0, "%s", x.name);
    }
    llm_trainer_free(t);
    llm_trainer_free(one);
    ggl_backend_close(cpu);
    close_model(&m);
}

/* The cross entropy with shares of all tokens, [n_vocab] for each token. */
static ggl_tensor *by_shares(void *ctx, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target) {
    ggl_tensor *share = ggl_graph_input(g, "share", GGL_F32, 1, logits->ne, true),
               *all = ggl_binary(g, GGL_OP_ADD, ggl_cross_entropy(g, logits, target),
                                 ggl_binary(g, GGL_OP_PICK, logits, target)),
               *dot = ggl_binary(g, GGL_OP_MUL, share, logits);
    *(int64_t *)ctx = logits->ne[0];
    return ggl_binary(g, GGL_OP_SUB, all, ggl_unary(g, GGL_OP_SUM, dot));
}

/* A loss of the program's own, with an input: shares that are all of the target have the gradients of the cross entropy. */
TEST(a_loss_is_a_graph) {
    static const char *const input[] = {"share"};
    int64_t n_vocab = 0;
    model m;
    ggl_error err = {0};
    ggl_backend *cpu = NULL;
    double want = NAN, have = NAN, largest = 0, off = 0;
    REQUIRE(open_model(&m, "llama"));
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    const llm_train_params p = {.loss = by_shares, .ctx = &n_vocab, .input = input, .n_inputs = 1};
    llm_trainer *plain = new_trainer(&m, cpu, NULL), *t = new_trainer(&m, cpu, &p);
    llm_train_batch b = batch();
    REQUIRE(plain && t && n_vocab > 0);
    float *share = calloc((size_t)(N * n_vocab), sizeof *share);
    REQUIRE(share);
    for (int i = 0; i < N; i++)
        share[i * n_vocab + b.target[i]] = 1;
    CHECK_INT(llm_trainer_add(t, &b, &have, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "the batch lacks the loss's input 'share'");
    b.input = (const void *const[]){share};
    CHECK_OK(llm_trainer_add(plain, &b, &want, &err), &err);
    CHECK_OK(llm_trainer_add(t, &b, &have, &err), &err);
    CHECK_MSG(fabs(want - have) < 1e-5 * want, "%g, %g", want, have);
    for (int k = 0; k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight x = llm_trainer_weight(plain, k), y = llm_trainer_weight(t, k);
        for (int64_t i = 0; i < count(&x); i++) {
            largest = fmax(largest, fabs((double)x.grad[i]));
            off = fmax(off, fabs((double)x.grad[i] - (double)y.grad[i]));
        }
    }
    CHECK_MSG(largest > 0 && off < 1e-5 * largest, "%g of %g", off, largest);
    free(share);
    llm_trainer_free(plain);
    llm_trainer_free(t);
    ggl_backend_close(cpu);
    close_model(&m);
}

TEST(steps_lower_the_loss) {
    model m;
    ggl_error err = {0};
    ggl_backend *cpu = NULL;
    const llm_train_params p = {.max_norm = 1, .decay = 0.01};
    REQUIRE(open_model(&m, "llama"));
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    llm_trainer *t = new_trainer(&m, cpu, &p);
    const llm_train_batch b = batch();
    double first = NAN, loss = NAN, norm;
    for (int i = 0; i < 40; i++) {
        CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
        CHECK_OK(llm_trainer_step(t, 1e-2, &norm, &err), &err);
        CHECK(norm > 0);
        first = i == 0 ? loss : first;
    }
    CHECK_MSG(loss < 0.2 * first, "%g, from %g", loss, first);
    CHECK_INT(llm_trainer_n_steps(t), 40);
    llm_trainer_free(t);
    ggl_backend_close(cpu);
    close_model(&m);
}

/* --- optimizers ------------------------------------------------------------------------------- */

/* A step of SGD is what its formula says; a second one has the momentum of the first. */
/* A run ends between two nodes, wherever it is; then it can be done again, with the same bits. A step, which changes weights, is never ended. */
TEST(a_run_ends_when_it_is_told) {
    model m;
    REQUIRE(open_model(&m, "llama"));
    ggl_error err = {0};
    int left = -1;
    const llm_train_params p = {.cancelled = ends_at_zero, .cancelled_ctx = &left};
    llm_trainer *t = new_trainer(&m, m.reference, &p), *whole = new_trainer(&m, m.reference, NULL);
    REQUIRE(t && whole);
    const llm_train_batch b = batch();
    double loss = NAN, wanted = NAN;
    CHECK_OK(llm_trainer_add(whole, &b, &wanted, &err), &err);
    int n_ended = 0;
    for (int at = 0; at < 1000000; at += at < 4 ? 1 : 2 * at) {
        left = at;
        const ggl_status st = llm_trainer_add(t, &b, &loss, &err);
        CHECK_INT(st, left < 0 ? GGL_CANCELLED : GGL_OK);
        llm_trainer_forget(t);
        if (left >= 0) /* the run was over before */
            break;
        n_ended++;
    }
    CHECK_MSG(n_ended > 5, "%d runs were ended", n_ended);
    left = -1;
    CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
    CHECK_MSG(loss == wanted, "%g, not %g", loss, wanted);
    left = 0;
    CHECK_OK(llm_trainer_step(t, 1e-2, NULL, &err), &err);
    CHECK_INT(left, 0);
    left = -1;
    CHECK_OK(llm_trainer_step(whole, 1e-2, NULL, &err), &err);
    CHECK(loss_of(t) == loss_of(whole));
    left = 0;
    CHECK_INT(llm_trainer_evaluate(t, &b, &loss, NULL, &err), GGL_CANCELLED);
    llm_trainer_free(t);
    llm_trainer_free(whole);
    close_model(&m);
}

TEST(sgd) {
    model m;
    ggl_error err = {0};
    ggl_backend *cpu = NULL;
    const llm_train_params p = {.optimizer = LLM_TRAIN_SGD, .beta1 = 0.5};
    REQUIRE(open_model(&m, "llama"));
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    llm_trainer *t = new_trainer(&m, cpu, &p);
    REQUIRE(t);
    const llm_train_weight w = llm_trainer_weight(t, 1);
    const llm_train_batch b = batch();
    double was = (double)w.data[3], momentum = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(llm_trainer_add(t, &b, NULL, &err), &err);
        momentum = 0.5 * momentum + (double)w.grad[3];
        was -= 0.25 * momentum;
        CHECK_OK(llm_trainer_step(t, 0.25, NULL, &err), &err);
        CHECK_MSG(fabs((double)w.data[3] - was) < 1e-6, "%g, %g", (double)w.data[3], was);
    }
    llm_trainer_free(t);
    ggl_backend_close(cpu);
    close_model(&m);
}

/* x [n_out][n_in] becomes what five steps of Newton and Schulz make of it, by plain loops. */
static void newton_schulz(double *x, int64_t n_in, int64_t n_out) {
    double *a = calloc((size_t)(n_out * n_out), sizeof *a),
           *b = calloc((size_t)(n_out * n_out), sizeof *b),
           *y = calloc((size_t)(n_in * n_out), sizeof *y), length = 0;
    if (!CHECK(a && b && y))
        abort();
    for (int64_t i = 0; i < n_in * n_out; i++)
        length += x[i] * x[i];
    for (int64_t i = 0; i < n_in * n_out; i++)
        x[i] /= sqrt(length) + 1e-7;
    for (int step = 0; step < 5; step++) {
        for (int64_t r = 0; r < n_out; r++)
            for (int64_t c = 0; c < n_out; c++) {
                a[r * n_out + c] = 0;
                for (int64_t i = 0; i < n_in; i++)
                    a[r * n_out + c] += x[r * n_in + i] * x[c * n_in + i];
            }
        for (int64_t r = 0; r < n_out; r++)
            for (int64_t c = 0; c < n_out; c++) {
                b[r * n_out + c] = -4.775 * a[r * n_out + c];
                for (int64_t i = 0; i < n_out; i++)
                    b[r * n_out + c] += 2.0315 * a[r * n_out + i] * a[i * n_out + c];
            }
        for (int64_t r = 0; r < n_out; r++)
            for (int64_t i = 0; i < n_in; i++) {
                y[r * n_in + i] = 3.4445 * x[r * n_in + i];
                for (int64_t c = 0; c < n_out; c++)
                    y[r * n_in + i] += b[r * n_out + c] * x[c * n_in + i];
            }
        memcpy(x, y, (size_t)(n_in * n_out) * sizeof *x);
    }
    free(a);
    free(b);
    free(y);
}

/* Compares a first step of Muon with its formula. */
static void check_muon(const llm_train_weight *w, const float *before, const float *grad,
                       double rate) {
    const int64_t n_in = w->ne[0], n_out = w->ne[1], longer = n_in > n_out ? n_in : n_out;
    double *x = calloc((size_t)(n_in * n_out), sizeof *x), most = 0;
    if (!CHECK(x))
        return;
    for (int64_t i = 0; i < n_in * n_out; i++)
        x[n_out > n_in ? i % n_in * n_out + i / n_in : i] = (double)grad[i] * 1.95;
    newton_schulz(x, longer, n_in * n_out / longer);
    for (int64_t i = 0; i < n_in * n_out; i++) {
        const double by = 0.2 * sqrt((double)longer) *
                          x[n_out > n_in ? i % n_in * n_out + i / n_in : i],
                     have = ((double)before[i] - (double)w->data[i]) / rate;
        most = fmax(most, fabs(by - have));
    }
    CHECK_MSG(most < 2e-3, "%s: off by %g", w->name, most);
    free(x);
}

TEST(muon) {
    model m;
    ggl_error err = {0};
    ggl_backend *cpu = NULL;
    int n = 0;
    const llm_train_params p = {.optimizer = LLM_TRAIN_MUON};
    REQUIRE(open_model(&m, "llama"));
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    llm_trainer *t = new_trainer(&m, cpu, &p);
    REQUIRE(t);
    const llm_train_batch b = batch();
    double first = NAN, loss = NAN;
    for (int k = 0; k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        if (w.n_dims != 2 || strncmp(w.name, "blk.0.ffn", 9) != 0)
            continue;
        llm_trainer *one = new_trainer(&m, cpu, &p);
        REQUIRE(one);
        const llm_train_weight x = llm_trainer_weight(one, k);
        float *grad = calloc((size_t)count(&x), sizeof *grad);
        REQUIRE(grad);
        CHECK_OK(llm_trainer_add(one, &b, NULL, &err), &err);
        memcpy(grad, x.grad, (size_t)count(&x) * sizeof *grad);
        CHECK_OK(llm_trainer_step(one, 0.01, NULL, &err), &err);
        check_muon(&x, w.data, grad, 0.01);
        free(grad);
        llm_trainer_free(one);
        n++;
    }
    CHECK(n >= 3);
    for (int i = 0; i < 30; i++) {
        CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
        CHECK_OK(llm_trainer_step(t, 1e-2, NULL, &err), &err);
        first = i == 0 ? loss : first;
    }
    CHECK_MSG(loss < 0.3 * first, "%g, from %g", loss, first);
    llm_trainer_free(t);
    ggl_backend_close(cpu);
    close_model(&m);
}

/* --- files ------------------------------------------------------------------------------------ */

/* Three steps, saved and gone on with two more, give the bits of five; and the written model has the loss of the trainer. */
TEST(saved_and_gone_on) {
    char state[600], file[600];
    ggl_error err = {0};
    ggl_gguf *f = NULL, *g = NULL;
    llm_arch *arch = NULL;
    ggl_backend *cpu = NULL, *reference = NULL;
    llm_arch_source source[4];
    ggl_gguf *saved = NULL;
    ggl_str own;
    snprintf(state, sizeof state, "%s/state.gguf", test_folder());
    snprintf(file, sizeof file, "%s/model.gguf", test_folder());
    REQUIRE_OK(ggl_gguf_open(&f, BUILTIN_MODEL, NULL, &err), &err);
    REQUIRE_OK(llm_arch_open(&arch, "llama", &err), &err);
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    llm_trainer *a = of_file(f, arch, &source[0], cpu, reference),
                *b = of_file(f, arch, &source[1], cpu, reference), *c, *d;
    REQUIRE(a && b);
    const double before = loss_of(a);
    train(a, 3);
    CHECK_OK(llm_trainer_write_state(a, (ggl_str){"step three", 10}, state, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&saved, state, NULL, &err), &err);
    CHECK_OK(llm_trainer_read_state(b, saved, &err), &err);
    const ggl_gguf_value *text = ggl_gguf_find(saved, "training.own");
    REQUIRE(text && ggl_gguf_string(text, 0, &own));
    CHECK(own.n == 10 && memcmp(own.s, "step three", 10) == 0);
    CHECK(llm_trainer_n_steps(b) == 3 && same_weights(a, b));
    ggl_gguf_close(saved);
    train(a, 2);
    train(b, 2);
    CHECK(same_weights(a, b));

    CHECK_OK(llm_trainer_write(a, f, true, file, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&g, file, NULL, &err), &err);
    c = of_file(g, arch, &source[2], cpu, reference);
    CHECK(c && same_weights(a, c));
    llm_trainer_free(c);
    ggl_gguf_close(g);
    CHECK_OK(llm_trainer_write(a, f, false, file, &err), &err); /* q8_0, as the file is */
    REQUIRE_OK(ggl_gguf_open(&g, file, NULL, &err), &err);
    CHECK_INT(ggl_gguf_find_tensor(g, "blk.0.attn_q.weight")->type, GGL_Q8_0);
    d = of_file(g, arch, &source[3], cpu, reference);
    REQUIRE(d);
    CHECK_MSG(fabs(loss_of(d) - loss_of(a)) < 0.05 * fabs(before - loss_of(a)), "%g, %g, before %g",
              loss_of(d), loss_of(a), before);

    CHECK_INT(llm_trainer_read_state(d, g, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "it is not the state of a trainer");
    llm_trainer_free(d);
    ggl_gguf_close(g);
    llm_trainer_free(a);
    llm_trainer_free(b);
    llm_arch_free(arch);
    ggl_gguf_close(f);
    ggl_backend_close(cpu);
    ggl_backend_close(reference);
}

/* Weights that are rounded while they learn: the written file has that type, and the loss that the trainer had. */
TEST(rounded_while_it_learns) {
    char file[600], state[600];
    ggl_error err = {0};
    ggl_gguf *f = NULL, *g = NULL, *saved = NULL;
    llm_arch *arch = NULL;
    ggl_backend *cpu = NULL, *reference = NULL;
    snprintf(file, sizeof file, "%s/rounded.gguf", test_folder());
    snprintf(state, sizeof state, "%s/rounded.state", test_folder());
    REQUIRE_OK(ggl_gguf_open(&f, BUILTIN_MODEL, NULL, &err), &err);
    REQUIRE_OK(llm_arch_open(&arch, "llama", &err), &err);
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    llm_arch_source source = llm_arch_source_gguf(f), of_g;
    const llm_train_params p = {.size = sizeof p,
                                .backend = cpu,
                                .reference = reference,
                                .n_ctx = N_CTX,
                                .n_batch = N_BATCH,
                                .rounded = GGL_Q4_0};
    llm_trainer *t = NULL, *again = NULL, *u = NULL;
    REQUIRE_OK(llm_trainer_new(&t, arch, &source, &p, &err), &err);
    const double first = loss_of(t);
    train(t, 6);
    const double loss = loss_of(t);
    CHECK_MSG(loss < first, "%g, from %g", loss, first);
    CHECK_OK(llm_trainer_write(t, f, false, file, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&g, file, NULL, &err), &err);
    CHECK_INT(ggl_gguf_find_tensor(g, "blk.0.attn_q.weight")->type, GGL_Q4_0);
    CHECK_INT(ggl_gguf_find_tensor(g, "blk.0.attn_norm.weight")->type, GGL_F32);
    u = of_file(g, arch, &of_g, cpu, reference);
    CHECK_MSG(fabs(loss_of(u) - loss) < 1e-6 * loss, "%g, %g", loss_of(u), loss);
    CHECK_OK(llm_trainer_write_state(t, (ggl_str){"", 0}, state, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&saved, state, NULL, &err), &err);
    REQUIRE_OK(llm_trainer_new(&again, arch, &source, &p, &err), &err);
    CHECK_OK(llm_trainer_read_state(again, saved, &err), &err);
    train(t, 2);
    train(again, 2);
    CHECK(same_weights(t, again));
    llm_trainer_free(t);
    llm_trainer_free(again);
    llm_trainer_free(u);
    ggl_gguf_close(saved);
    ggl_gguf_close(g);
    ggl_gguf_close(f);
    llm_arch_free(arch);
    ggl_backend_close(cpu);
    ggl_backend_close(reference);
}

/* --- mistakes --------------------------------------------------------------------------------- */

TEST(mistakes) {
    model m;
    ggl_error err = {0};
    llm_trainer *t = NULL;
    REQUIRE(open_model(&m, "llama"));
    static const char *const none[] = {"blk.*.attn_q.weight", "blk.7.nothing"};
    const llm_train_params wrong[] = {
        {.size = sizeof wrong[0],
         .backend = m.reference,
         .reference = m.reference,
         .n_ctx = 32,
         .n_batch = 16},
        {.size = sizeof wrong[0],
         .backend = m.reference,
         .reference = m.reference,
         .learn = none,
         .n_learn = 2},
        {.size = sizeof wrong[0], .backend = m.reference, .reference = m.reference, .beta1 = 1},
        {.size = sizeof wrong[0]}};
    static const char *const words[] = {"a sequence must fit into a batch",
                                        "'blk.7.nothing' fits the name of no weight", "beta1 1",
                                        "needs a backend"};
    for (int i = 0; i < 4; i++) {
        CHECK(llm_trainer_new(&t, m.arch, llm_arch_toy_source(m.toy), &wrong[i], &err) != GGL_OK);
        CHECK_HAS(err.msg, words[i]);
        CHECK(!t);
    }
    t = new_trainer(&m, m.reference, &(llm_train_params){.learn = none, .n_learn = 1});
    REQUIRE(t);
    for (int k = 0; k < llm_trainer_n_weights(t); k++)
        CHECK_HAS(llm_trainer_weight(t, k).name, "attn_q");
    int32_t token[2] = {1, 1000000};
    int64_t length = 2, long_one = N_CTX + 1;
    CHECK_INT(
        llm_trainer_add(
            t, &(llm_train_batch){.token = token, .target = token, .length = &length, .n_seq = 1},
            NULL, &err),
        GGL_USAGE);
    CHECK_HAS(err.msg, "token 1 of the batch is 1000000");
    CHECK_INT(
        llm_trainer_add(
            t, &(llm_train_batch){.token = token, .target = token, .length = &long_one, .n_seq = 1},
            NULL, &err),
        GGL_USAGE);
    CHECK_HAS(err.msg, "has 25 tokens; it must have 1 to 24");

    /* no step by a gradient that is no number */
    const llm_train_weight w = llm_trainer_weight(t, 0);
    const float was = w.data[0];
    double norm;
    w.grad[3] = NAN;
    CHECK_OK(llm_trainer_step(t, 1, &norm, &err), &err);
    CHECK(isnan(norm) && w.data[0] == was && w.grad[3] == 0 && llm_trainer_n_steps(t) == 0);
    llm_trainer_free(t);
    close_model(&m);
}

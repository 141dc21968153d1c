/* Control vectors on made-up models of every built-in descriptor: what leaves a layer has scale * direction more in it, what later layers make of that reaches the
 * logits, the bits do not depend on threads, pieces and splits, and scale 0 changes no bit. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/adapter.h"
#include "sample.h"
#include "test.h"
#include "toy_ways.h"

#define N 12

/* --- vectors ---------------------------------------------------------------------------------- */

enum { MOST_LAYERS = 64 };

typedef struct vector {
    float *row[MOST_LAYERS]; /* by layer; NULL: none */
    int64_t n_embd;
    llm_adapter *control;
    void *bytes;
} vector;

static void vector_free(vector *v) {
    llm_adapter_free(v->control);
    ggl_free(v->bytes);
    for (int l = 0; l < MOST_LAYERS; l++)
        free(v->row[l]);
    *v = (vector){0};
}

/* Random directions for the layers first to last. */
static bool vector_open(vector *v, int64_t n_embd, int first, int last, uint64_t seed,
                        ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    size_t size = 0;
    *v = (vector){.n_embd = n_embd};
    ggl_gguf_put_string(w, "general.architecture", "controlvector", 13);
    for (int l = first; l <= last; l++) {
        char name[32];
        const int64_t ne[4] = {n_embd, 1, 1, 1};
        v->row[l] = malloc((size_t)n_embd * sizeof(float));
        for (int64_t i = 0; i < n_embd; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            v->row[l][i] = (float)((double)(seed >> 40) / 0x1p24 - 0.5);
        }
        snprintf(name, sizeof name, "direction.%d", l);
        ggl_gguf_put_tensor(w, name, GGL_F32, 1, ne, v->row[l]);
    }
    const ggl_status st = ggl_gguf_writer_write_memory(w, &v->bytes, &size, err);
    ggl_gguf_writer_free(w);
    return st == GGL_OK &&
           llm_control_open_memory(&v->control, v->bytes, size, "happy.gguf", err) == GGL_OK;
}

/* Builds the toy's graph, with the vector if use is not NULL. *n_layer (may be NULL): its turns. */
static ggl_status build(const toy_model *t, const llm_adapter_use *use, int *n_layer,
                        ggl_error *err) {
    ggl_graph_params p = {.size = sizeof p, .n_pos = TOY_CTX, .n_batch = 1, .n_slots = 1};
    llm_arch_params ap = {.size = sizeof ap, .adapter = use, .n_adapters = use ? 1 : 0};
    llm_arch_result built = {0};
    ggl_graph *g = ggl_graph_new(&p);
    const ggl_status st = llm_arch_build(t->arch, llm_arch_toy_source(t->toy), &ap, g, &built, err);
    if (n_layer)
        *n_layer = (int)built.n_layer;
    llm_arch_result_fini(&built);
    ggl_graph_free(g);
    return st;
}

/* The key that ends like that; 0: there is none. */
static int64_t find_number(const toy_model *t, const char *end) {
    const llm_arch_source *s = llm_arch_toy_source(t->toy);
    const size_t n_end = strlen(end);
    llm_arch_key k;
    llm_arch_item item;
    ggl_str name = {0};
    for (size_t i = 0; s->key_at(s->ctx, i, &name); i++) {
        char key[128];
        if (name.n < n_end || name.n >= sizeof key ||
            memcmp(name.s + name.n - n_end, end, n_end) != 0)
            continue;
        snprintf(key, sizeof key, "%.*s", (int)name.n, name.s);
        if (s->find_key(s->ctx, key, &k) && s->get_item(s->ctx, &k, 0, &item))
            return (int64_t)item.number;
    }
    return 0;
}

/* --- logits ----------------------------------------------------------------------------------- */

typedef struct fixture {
    toy_backends on;
    toy_model t;
    const char *name; /* of the descriptor */
} fixture;

static void setup(fixture *f) {
    ggl_error err = {0};
    *f = (fixture){.name = NULL};
    CHECK_OK(toy_backends_open(&f->on, &err), &err);
}

static void teardown(fixture *f) {
    toy_backends_close(&f->on);
}

/* Copies the output "rows" of the last run. */
static void take_rows(const toy_run *r, toy_logits *rows) {
    for (int k = 0; k < ggl_graph_n_outputs(r->graph); k++) {
        const ggl_tensor *t = ggl_graph_get_output(r->graph, k);
        if (strcmp(t->name, "rows") != 0)
            continue;
        rows->n = N * (size_t)ggl_count(t);
        rows->at = realloc(rows->at, rows->n * sizeof *rows->at);
        memcpy(rows->at, ggl_sched_output(r->sched, k), rows->n * sizeof *rows->at);
    }
}

/* rows: NULL, or as t.tap asks. */
static ggl_status prompt(const fixture *f, ggl_backend *const *b, int n_b, int split, int chunk,
                         toy_logits *out, toy_logits *rows, ggl_error *err) {
    toy_run r;
    if (!toy_start(&r, &f->t, b, n_b, f->on.reference, split, GGL_F32, err))
        return err->status;
    out->n = (size_t)N * (size_t)r.n_vocab;
    out->at = realloc(out->at, out->n * sizeof *out->at);
    const bool ok = toy_prompt(&r, 1, N, chunk, out->at, err);
    if (ok && rows)
        take_rows(&r, rows);
    toy_stop(&r);
    return ok ? GGL_OK : err->status;
}

/* The same, which has to succeed. */
static bool run(const fixture *f, ggl_backend *const *b, int n_b, int split, int chunk,
                toy_logits *out, const char *what) {
    ggl_error err = {0};
    return CHECK_MSG(prompt(f, b, n_b, split, chunk, out, NULL, &err) == GGL_OK, "%s (%s), %s: %s",
                     f->name, llm_arch_toy_text(f->t.toy), what, err.msg);
}

/* --- checks ----------------------------------------------------------------------------------- */

#define SCALE 0.75f

/* Near the reference, and the same bits in every way. plain: the logits without a vector, in pieces of 8. */
static void check_ways(fixture *f, const toy_logits *plain) {
    toy_way ways[TOY_WAYS];
    toy_ways(&f->on, ways);
    toy_logits want = {0}, got = {0};
    if (run(f, f->on.cpu, 1, -1, 8, &want, "steered") &&
        run(f, &f->on.reference, 1, -1, 8, &got, "reference")) {
        const double d = toy_distance(&want, &got), far = toy_distance(&want, plain);
        CHECK_MSG(d <= TOY_BOUND, "%s (%s): the CPU is %g away from the reference", f->name,
                  llm_arch_toy_text(f->t.toy), d);
        CHECK_MSG(far > 0.001, "%s (%s): only %g away from the plain model", f->name,
                  llm_arch_toy_text(f->t.toy), far);
        for (size_t i = 0; i < TOY_WAYS; i++)
            if (run(f, ways[i].backend, ways[i].n_backends, ways[i].split, ways[i].chunk, &got,
                    ways[i].what))
                CHECK_MSG(toy_other_bits(&want, &got) == 0, "%s, %s: %zu logits have other bits",
                          f->name, ways[i].what, toy_other_bits(&want, &got));
    }
    free(want.at);
    free(got.at);
}

/* What enters layer 1 stays as it is, and what leaves it has scale * direction more, exactly, or, if it is the mean of several rows, but for their
 * rounding. Returns false if the model cannot show these rows, or reads a text
 * before, which is steered, too. */
static bool check_rows(fixture *f, const llm_adapter_use *use, const float *direction,
                       int64_t n_embd) {
    static const int32_t tap[] = {1, 2};
    toy_logits out = {0}, plain = {0}, steered = {0};
    ggl_error err = {0};
    if (llm_arch_reads_text(f->t.arch))
        return false;
    f->t.tap = tap;
    f->t.n_taps = 2;
    f->t.n_adapters = 0;
    ggl_status st = prompt(f, f->on.cpu, 1, -1, TOY_BATCH, &out, &plain, &err);
    f->t.adapter = use;
    f->t.n_adapters = 1;
    const bool shows = st == GGL_OK;
    if (shows)
        st = prompt(f, f->on.cpu, 1, -1, TOY_BATCH, &out, &steered, &err);
    CHECK_MSG(st == GGL_OK || (!shows && st == GGL_UNSUPPORTED), "%s: %s", f->name, err.msg);
    size_t n_wrong = 0;
    const float rounding = find_number(&f->t, ".hyper_connection.count") > 1 ? 1e-6f : 0;
    for (size_t i = 0; st == GGL_OK && i < steered.n; i++) {
        const int64_t at = (int64_t)(i % (size_t)(2 * n_embd));
        const float more = SCALE * direction[at % n_embd];
        const float want = at < n_embd ? plain.at[i] : plain.at[i] + more;
        n_wrong += !(fabsf(steered.at[i] - want) <= rounding * (1 + fabsf(want)));
    }
    CHECK_MSG(n_wrong == 0 && steered.n == plain.n, "%s: %zu of %zu numbers of rows are wrong",
              f->name, n_wrong, steered.n);
    f->t.n_taps = 0;
    free(out.at);
    free(plain.at);
    free(steered.at);
    return shows;
}

/* Eyes, ears and models that guess for others hand on no row of each token; nor does one without layers. */
static bool may_be_refused(const char *name) {
    static const char *const names[] = {"clip-",       "dflash", "eagle3.", "gemma4-assistant.",
                                        "silero-vad.", "static."};
    bool may = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        may |= strncmp(name, names[i], strlen(names[i])) == 0;
    return may;
}

/* Returns 1 if the rows of layers were compared, too. */
static int run_toy(fixture *f) {
    toy_logits plain = {0}, nothing = {0};
    vector one = {0}, all = {0};
    ggl_error err = {0};
    int n_layer = 0, shows = 0;
    const int64_t n_embd = find_number(&f->t, ".embedding_length");
    if (!CHECK_MSG(build(&f->t, NULL, &n_layer, &err) == GGL_OK, "%s: %s", f->name, err.msg))
        return 0;
    CHECK_MSG(vector_open(&one, n_embd > 0 ? n_embd : 1, 1, 1, 1, &err), "%s", err.msg);
    llm_adapter_use use = {.adapter = one.control, .scale = SCALE};
    const ggl_status st = build(&f->t, &use, NULL, &err);
    if (may_be_refused(f->name)) {
        CHECK_MSG(st == GGL_UNSUPPORTED &&
                      strstr(err.msg, "happy.gguf: models of the architecture "),
                  "%s: %s", f->name, err.msg);
        vector_free(&one);
        return 0;
    }
    bool ok =
        CHECK_MSG(st == GGL_OK, "%s (%s): %s", f->name, llm_arch_toy_text(f->t.toy), err.msg) &&
        CHECK(n_layer >= 2 && n_layer <= MOST_LAYERS) &&
        CHECK_MSG(vector_open(&all, n_embd, 1, n_layer - 1, 2, &err), "%s", err.msg);
    f->t.adapter = &use;
    f->t.n_adapters = 1;
    use.adapter = all.control;
    ok = ok && CHECK_MSG(toy_settle(&f->t, N, &err), "%s: %s", f->name, err.msg);
    f->t.n_adapters = 0;
    ok = ok && run(f, f->on.cpu, 1, -1, 8, &plain, "plain");
    f->t.n_adapters = 1;
    use.adapter = one.control;
    if (ok)
        shows = check_rows(f, &use, one.row[1], n_embd);
    use.adapter = all.control;
    if (ok)
        check_ways(f, &plain);
    use.scale = 0;
    if (ok && run(f, f->on.cpu, 1, -1, 8, &nothing, "scale 0"))
        CHECK_MSG(toy_other_bits(&plain, &nothing) == 0, "%s: scale 0 changes bits", f->name);
    f->t.n_adapters = 0;
    vector_free(&one);
    vector_free(&all);
    free(plain.at);
    free(nothing.at);
    return shows;
}

static void run_descriptor(int k, int *n_shown) {
    fixture f;
    const char *text;
    size_t n;
    setup(&f);
    REQUIRE(llm_arch_builtin(k, &f.name, &text, &n));
    for (int variant = 0; variant < 2; variant++) {
        ggl_error err = {0};
        if (!CHECK_MSG(toy_open(&f.t, f.name, text, n, variant, &err), "%s: %s", f.name, err.msg))
            continue;
        llm_arch_toy_freeze(f.t.toy); /* so that it has a list of keys */
        *n_shown += run_toy(&f);
        toy_close(&f.t);
    }
    teardown(&f);
}

static void run_share(int share, int shares) {
    int n_shown = 0, n = 0;
    for (int k = share; k < sample_n(); k += shares)
        if (!TEST_SANITIZED || sampled(k, 16)) {
            run_descriptor(k, &n_shown);
            n += 2;
        }
    printf("%d of %d models show the rows that layers hand on\n", n_shown, n);
    if (!TEST_SANITIZED)
        CHECK(2 * n_shown > n);
}

/* A few, others each day. */
TEST(some_descriptors) {
    int n_shown = 0;
    for (int k = 0; k < sample_n(); k++)
        if (sampled(k, 12))
            run_descriptor(k, &n_shown);
}

/* All of them, in cases that run side by side; under a sanitizer 16, others each day. */
TEST(descriptors_0) {
    run_share(0, 4);
}
TEST(descriptors_1) {
    run_share(1, 4);
}
TEST(descriptors_2) {
    run_share(2, 4);
}
TEST(descriptors_3) {
    run_share(3, 4);
}

/* --- several vectors, ranges and mistakes --------------------------------------------------------- */

static bool open_llama(fixture *f, ggl_error *err) {
    const char *text;
    size_t n;
    setup(f);
    const bool ok = llm_arch_builtin_named("llama", &f->name, &text, &n) &&
                    toy_open(&f->t, f->name, text, n, 0, err);
    if (ok)
        llm_arch_toy_freeze(f->t.toy);
    return CHECK_MSG(ok, "%s", err->msg);
}

/* Two vectors are added like their sum; a range leaves the other layers as they are; and each has its scale. */
TEST(sum_and_range) {
    fixture f;
    vector a = {0}, b = {0}, one = {0};
    toy_logits both = {0}, sum = {0}, ranged = {0}, plain = {0}, opposite = {0};
    ggl_error err = {0};
    if (!open_llama(&f, &err))
        return;
    const int64_t n_embd = find_number(&f.t, ".embedding_length");
    int n_layer = 0;
    REQUIRE(build(&f.t, NULL, &n_layer, &err) == GGL_OK && n_layer >= 2);
    REQUIRE(vector_open(&a, n_embd, 1, n_layer - 1, 3, &err));
    REQUIRE(vector_open(&b, n_embd, 1, n_layer - 1, 3, &err)); /* the same toy_logits */
    REQUIRE(vector_open(&one, n_embd, 1, 1, 3, &err));
    llm_adapter_use use[2] = {{.adapter = a.control, .scale = 0.5},
                              {.adapter = b.control, .scale = 0.25}};
    f.t.adapter = use;
    bool ok = run(&f, f.on.cpu, 1, -1, 8, &plain, "plain");
    f.t.n_adapters = 2;
    ok = ok && run(&f, f.on.cpu, 1, -1, 8, &both, "both");
    use[1].scale = -0.5;
    ok = ok && run(&f, f.on.cpu, 1, -1, 8, &opposite, "opposite");
    f.t.n_adapters = 1;
    use[0].scale = 0.75;
    ok = ok && run(&f, f.on.cpu, 1, -1, 8, &sum, "sum");
    CHECK(ok && toy_distance(&both, &sum) < 1e-5 && toy_distance(&sum, &plain) > 1e-2);
    CHECK(ok && toy_distance(&opposite, &plain) == 0); /* a sum of zeros is added */
    use[0] = (llm_adapter_use){.adapter = a.control, .scale = 2, .first = 1, .last = 1};
    ok = ok && run(&f, f.on.cpu, 1, -1, 8, &ranged, "layer 1 alone");
    use[0] = (llm_adapter_use){.adapter = one.control, .scale = 2};
    ok = ok && run(&f, f.on.cpu, 1, -1, 8, &sum, "a vector of layer 1");
    CHECK(ok && toy_other_bits(&ranged, &sum) == 0 && toy_distance(&sum, &plain) > 1e-2);
    toy_logits *const all[] = {&both, &sum, &ranged, &plain, &opposite};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->at);
    vector_free(&a);
    vector_free(&b);
    vector_free(&one);
    toy_close(&f.t);
    teardown(&f);
}

/* What does not fit the model is named with both numbers. */
TEST(does_not_fit) {
    fixture f;
    ggl_error err = {0};
    if (!open_llama(&f, &err))
        return;
    const int64_t n_embd = find_number(&f.t, ".embedding_length");
    int n_layer = 0;
    REQUIRE(build(&f.t, NULL, &n_layer, &err) == GGL_OK);
    const struct {
        int64_t n_embd;
        int layer;
        int64_t first, last;
        double scale;
        ggl_status want;
        const char *text;
    } cases[] = {
        {n_embd + 1, 1, 0, 0, 0, GGL_SHAPE,
         "happy.gguf: direction.1 has %lld numbers, but the rows that layer 1 of"},
        {n_embd, n_layer, 0, 0, 1, GGL_SHAPE, "is for layer %lld, but"},
        {n_embd, 1, n_layer, 0, 1, GGL_USAGE, "the range of layers is %lld to"},
        {n_embd, 1, 1, n_layer + 1, 1, GGL_USAGE, "the range of layers is 1 to %lld, but"},
        {n_embd, 1, 2, n_layer, 1, GGL_USAGE, "none of which is in the range of layers, %lld to"},
        {n_embd, 1, 1, n_layer, 1, GGL_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vector v;
        char want[128];
        const long long number = i == 0 ? n_embd + 1 : i == 3 ? n_layer + 1 : i == 4 ? 2 : n_layer;
        REQUIRE(vector_open(&v, cases[i].n_embd, cases[i].layer, cases[i].layer, 1, &err));
        const llm_adapter_use use = {v.control, cases[i].scale, .first = cases[i].first,
                                     .last = cases[i].last};
        err.msg[0] = 0;
        CHECK_INT(build(&f.t, &use, NULL, &err), cases[i].want);
        snprintf(want, sizeof want, cases[i].text, number);
        CHECK_HAS(err.msg, want);
        vector_free(&v);
    }
    toy_close(&f.t);
    teardown(&f);
}

/* Files that are no control vectors, or broken ones. */
TEST(files) {
    static const float x[4] = {1, 2, 3, 4}, nan[2] = {0, NAN};
    const struct {
        const char *architecture, *type, *name[2];
        ggl_type of;
        int64_t ne[2][2];
        const float *data;
        ggl_status want;
        const char *text;
    } cases[] = {
        {"llama",
         NULL,
         {"direction.1"},
         GGL_F32,
         {{2, 1}},
         x,
         GGL_FORMAT,
         "v.gguf is not a control vector: its key general.architecture is \"llama\"; "
         "\"controlvector\" is expected"},
        {"llama",
         "adapter",
         {"direction.1"},
         GGL_F32,
         {{2, 1}},
         x,
         GGL_FORMAT,
         "v.gguf is an adapter (general.type), not a control vector"},
        {"controlvector", NULL, {NULL}, GGL_F32, {{0}}, x, GGL_FORMAT, "v.gguf has no directions"},
        {"controlvector",
         NULL,
         {"blk.1.weight"},
         GGL_F32,
         {{2, 1}},
         x,
         GGL_FORMAT,
         "tensor blk.1.weight is not a direction: direction.N is expected"},
        {"controlvector",
         NULL,
         {"direction.1x"},
         GGL_F32,
         {{2, 1}},
         x,
         GGL_FORMAT,
         "tensor direction.1x is not a direction"},
        {"controlvector",
         NULL,
         {"direction.99999999999"},
         GGL_F32,
         {{2, 1}},
         x,
         GGL_FORMAT,
         "is not a direction"},
        {"controlvector",
         NULL,
         {"direction.0"},
         GGL_F32,
         {{2, 1}},
         x,
         GGL_FORMAT,
         "tensor direction.0: nothing is added to layer 0"},
        {"controlvector",
         NULL,
         {"direction.1"},
         GGL_F16,
         {{2, 1}},
         x,
         GGL_UNSUPPORTED,
         "direction.1 has the type f16; f32 is expected"},
        {"controlvector",
         NULL,
         {"direction.1"},
         GGL_F32,
         {{2, 2}},
         x,
         GGL_SHAPE,
         "direction.1 is [2, 2]; one row of numbers is expected"},
        {"controlvector",
         NULL,
         {"direction.1", "direction.2"},
         GGL_F32,
         {{2, 1}, {3, 1}},
         x,
         GGL_SHAPE,
         "direction.2 has 3 numbers, but direction.1 has 2"},
        {"controlvector",
         NULL,
         {"direction.3"},
         GGL_F32,
         {{2, 1}},
         nan,
         GGL_FORMAT,
         "number 1 of direction.3, counted from 0, is nan"},
        {NULL, NULL, {"direction.2", "direction.1"}, GGL_F32, {{2, 1}, {2, 1}}, x, GGL_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        void *bytes = NULL;
        size_t size = 0;
        llm_adapter *a = NULL;
        ggl_error err = {0};
        if (cases[i].architecture)
            ggl_gguf_put_string(w, "general.architecture", cases[i].architecture,
                                strlen(cases[i].architecture));
        if (cases[i].type)
            ggl_gguf_put_string(w, "general.type", cases[i].type, strlen(cases[i].type));
        for (int k = 0; k < 2 && cases[i].name[k]; k++)
            ggl_gguf_put_tensor(w, cases[i].name[k], cases[i].of, cases[i].ne[k][1] > 1 ? 2 : 1,
                                (int64_t[]){cases[i].ne[k][0], cases[i].ne[k][1], 1, 1},
                                cases[i].data);
        CHECK_OK(ggl_gguf_writer_write_memory(w, &bytes, &size, &err), &err);
        ggl_gguf_writer_free(w);
        CHECK_INT(llm_control_open_memory(&a, bytes, size, "v.gguf", &err), cases[i].want);
        CHECK_HAS(err.msg, cases[i].text);
        CHECK((a != NULL) == (cases[i].want == GGL_OK));
        if (a) {
            const llm_adapter_info info = llm_adapter_describe(a);
            CHECK(info.n_directions == 2 && info.layer_min == 1 && info.layer_max == 2 &&
                  info.bytes == 16);
            const llm_adapter_use use = {.adapter = a, .scale = 1},
                                  half = {.adapter = a, .scale = 0.5},
                                  ranged = {.adapter = a, .scale = 1, .last = 1};
            CHECK(llm_adapter_digest(use, 0) != 0 &&
                  llm_adapter_digest(use, 0) != llm_adapter_digest(half, 0));
            CHECK(llm_adapter_digest(use, 0) != llm_adapter_digest(ranged, 0));
            llm_adapter_free(a);
        }
        /* cut off anywhere before the zeros behind the last numbers, it is an error */
        for (size_t n = 0; cases[i].want == GGL_OK && n < size - 24; n++) {
            CHECK_MSG(llm_control_open_memory(&a, bytes, n, "v.gguf", &err) != GGL_OK,
                      "%zu of %zu bytes", n, size);
            CHECK(a == NULL);
        }
        ggl_free(bytes);
    }
}

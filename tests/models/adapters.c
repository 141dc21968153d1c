/* Adapters on made-up models of every built-in descriptor: random ones on all matrices that can be
 * adapted give the logits of a model whose weights have the same change merged into them; the bits do
 * not depend on threads, pieces and splits; and adapters that change nothing change no bit. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "sample.h"
#include "test.h"
#include "toy_adapter.h"
#include "toy_ways.h"

#define N 20

typedef struct fixture {
    toy_backends on;
    toy_model t;
    const char *name; /* of the descriptor */
    toy_adapter x;
    double scale;
    const toy_adapter *second; /* merged, too; NULL: none */
    double second_scale;
    bool second_first;   /* before x */
    char scaled[64][64]; /* names of weights whose products are multiplied by a factor */
    int n_scaled;
} fixture;

/* The factors of weights, if there are some. */
#define FACTOR 0.5

static void setup(fixture *f) {
    ggl_error err = {0};
    *f = (fixture){.scale = 0};
    CHECK_OK(toy_backends_open(&f->on, &err), &err);
}

static void teardown(fixture *f) {
    toy_backends_close(&f->on);
}

static void add_scaled(void *ctx, const char *weight, const char *factor) {
    fixture *f = ctx;
    if (factor && CHECK(f->n_scaled < 64))
        snprintf(f->scaled[f->n_scaled++], sizeof f->scaled[0], "%.63s", weight);
}

/* Returns the factor of a weight. */
static double factor_of(const fixture *f, const char *weight) {
    for (int i = 0; i < f->n_scaled; i++)
        if (strcmp(f->scaled[i], weight) == 0)
            return FACTOR;
    return 1;
}

/* Sets factors of weights. */
static void set_factor(void *ctx, const ggl_tensor *w, float *data) {
    const fixture *f = ctx;
    const size_t end = strlen(".scale"), n = strlen(w->name);
    char weight[96];
    if (n <= end || strcmp(w->name + n - end, ".scale") != 0)
        return;
    snprintf(weight, sizeof weight, "%.*s.weight", (int)(n - end), w->name);
    for (int64_t i = 0; i < w->ne[0] && factor_of(f, weight) != 1; i++)
        data[i] = FACTOR;
}

static void merge(void *ctx, const ggl_tensor *w, float *data) {
    const fixture *f = ctx;
    set_factor(ctx, w, data);
    const size_t n = (size_t)ggl_extents(w->ne, 0, GGL_MAX_DIMS, 1);
    float *base = malloc(n * sizeof *base);
    if (base)
        memcpy(base, data, n * sizeof *base);
    if (f->second && f->second_first)
        toy_adapter_merge_on(f->second, f->second_scale, w->name, base, data);
    toy_adapter_merge_on(&f->x, f->scale / factor_of(f, w->name), w->name, base, data);
    if (f->second && !f->second_first)
        toy_adapter_merge_on(f->second, f->second_scale, w->name, base, data);
    free(base);
}

/* --- which weights can be adapted ------------------------------------------------------------- */

/* Builds the toy's graph; NULL with err: it cannot be built. The caller frees it. */
static ggl_graph *build(fixture *f, const llm_adapter_use *use, size_t n, char *family,
                        ggl_error *err) {
    ggl_graph_params p = {.size = sizeof p, .n_pos = TOY_CTX, .n_batch = 1, .n_slots = 1};
    llm_arch_params ap = {.size = sizeof ap, .adapter = use, .n_adapters = n, .ctx = f};
    llm_arch_result built = {0};
    if (n == 0) {
        f->n_scaled = 0;
        ap.scaled = add_scaled;
    }
    p.type_k = p.type_v = GGL_F32;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_status st = llm_arch_build(f->t.arch, llm_arch_toy_source(f->t.toy), &ap, g, &built, err);
    if (family && built.family)
        snprintf(family, 64, "%s", built.family);
    llm_arch_result_fini(&built);
    if (st == GGL_OK)
        return g;
    ggl_graph_free(g);
    return NULL;
}

/* Weights that no adapter can change, by a part of their names: they are not used in products, but
 * for example as a convolution's taps. Any other refusal is a failure. */
static bool may_be_refused(const char *name, const ggl_error *err) {
    static const char *const part[] = {
        "conv.weight", "conv1.weight", "conv2.weight", "conv_base",      "conv1d",
        "ssm_a",       "ssm_d",        "_norm.",       "time_mix_first", "compressor_ape",
        "token_types", "attn_rel_b",   "rel_embd"};
    if (strcmp(name, "mel_filters.weight") ==
        0) /* no graph has it: a sound's rows are made with it */
        return strstr(err->msg, "has no tensor") != NULL;
    if (strstr(err->msg, "only products and lookups of rows can be adapted") == NULL)
        return false;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (strstr(name, part[i]))
            return true;
    return false;
}

/* True if a pair for the weight can be used, with sizes one with magnitudes. */
static bool can_adapt(fixture *f, const ggl_tensor *w, const char *family, bool sizes,
                      ggl_error *err) {
    toy_adapter one = {.sizes = sizes ? 2 : 0};
    toy_adapter_add(&one, w->name, w->n_dims, w->ne, 1, false);
    ggl_graph *g = NULL;
    if (CHECK_MSG(toy_adapter_open(&one, family, err), "%s: %s", w->name, err->msg)) {
        const llm_adapter_use use = {.adapter = one.adapter, .scale = 1};
        g = build(f, &use, 1, NULL, err);
    }
    ggl_graph_free(g);
    toy_adapter_free(&one);
    return g != NULL;
}

/* Adds a pair for the weight if it can be adapted, maybe with magnitudes. Returns 1 if so. */
static int try_weight(fixture *f, const ggl_tensor *w, const char *family) {
    ggl_error err = {0};
    if (!can_adapt(f, w, family, false, &err)) {
        CHECK_MSG(may_be_refused(w->name, &err), "%s: %s: %s", f->name, w->name, err.msg);
        printf("  %s is refused\n", w->name);
        return 0;
    }
    const int sizes = f->x.sizes;
    if (sizes && !can_adapt(f, w, family, true, &err)) {
        CHECK_MSG(strstr(err.msg, "(.lora_magnitude)"), "%s: %s: %s", f->name, w->name, err.msg);
        printf("  %s: magnitudes are refused\n", w->name);
        f->x.sizes = 0;
    }
    toy_adapter_add(&f->x, w->name, w->n_dims, w->ne, 7, false);
    f->x.sizes = sizes;
    return 1;
}

/* Makes f->x: pairs for all weights of the toy that can be adapted. */
static void adapt_all(fixture *f) {
    char family[64] = "";
    ggl_error err = {0};
    ggl_graph *g = build(f, NULL, 0, family, &err);
    int n = 0, tried = 0;
    if (!CHECK_MSG(g, "%s", err.msg))
        return;
    f->x = (toy_adapter){.alpha = 3, .sizes = f->x.sizes};
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *w = ggl_graph_node(g, i);
        if (w->op != GGL_OP_WEIGHT || w->n_dims < 2 || w->n_dims > 3)
            continue;
        tried++;
        n += try_weight(f, w, family);
    }
    ggl_graph_free(g);
    printf("%s (%s): %d of %d matrices adapted\n", f->name, llm_arch_toy_text(f->t.toy), n, tried);
    CHECK_MSG(2 * n > tried, "%s: only %d of %d matrices can be adapted", f->name, n, tried);
    CHECK_MSG(toy_adapter_open(&f->x, family, &err), "%s", err.msg);
}

/* --- logits ----------------------------------------------------------------------------------- */

static bool prompt(const fixture *f, ggl_backend *const *b, int n_b, int split, int chunk,
                   toy_logits *out, const char *what) {
    toy_run r;
    ggl_error err = {0};
    bool ok = toy_start(&r, &f->t, b, n_b, f->on.reference, split, GGL_F32, &err);
    if (ok) {
        out->n = (size_t)N * (size_t)r.n_vocab;
        out->at = realloc(out->at, out->n * sizeof *out->at);
        ok = toy_prompt(&r, 1, N, chunk, out->at, &err);
        toy_stop(&r);
    }
    return CHECK_MSG(ok, "%s (%s), %s: %s", f->name, llm_arch_toy_text(f->t.toy), what, err.msg);
}

/* The adapted model is near the merged one, and not near the plain one. */
static void check_merged(fixture *f, toy_logits *adapted) {
    const llm_adapter_use use = {.adapter = f->x.adapter, .scale = f->scale};
    toy_logits merged = {0}, plain = {0};
    toy_model t = f->t;
    f->t.change = merge;
    f->t.change_ctx = f;
    ggl_error err = {0};
    /* weights with which f32 would not do for the merged model prove nothing about adapters */
    const bool settled = toy_settle(&f->t, N, &err);
    CHECK_MSG(settled, "%s: %s", f->name, err.msg);
    t.draw = f->t.draw;
    bool ok = settled && prompt(f, &f->on.reference, 1, -1, TOY_BATCH, &merged, "merged");
    f->t = t;
    ok = ok && prompt(f, &f->on.reference, 1, -1, TOY_BATCH, &plain, "plain");
    f->t.adapter = &use;
    f->t.n_adapters = 1;
    ok = ok && prompt(f, &f->on.reference, 1, -1, TOY_BATCH, adapted, "adapted");
    if (ok) {
        const double near = toy_distance(adapted, &merged), far = toy_distance(adapted, &plain);
        CHECK_MSG(near <= TOY_BOUND, "%s (%s): %g away from merged weights", f->name,
                  llm_arch_toy_text(f->t.toy), near);
        CHECK_MSG(far >= 100 * near && far > 0.001, "%s (%s): only %g away from the plain model",
                  f->name, llm_arch_toy_text(f->t.toy), far);
    }
    f->t.adapter = NULL;
    f->t.n_adapters = 0;
    free(merged.at);
    free(plain.at);
}

/* On the CPU: near the reference, and the same bits in every way. */
static void check_ways(fixture *f, const toy_logits *exact) {
    const llm_adapter_use use = {.adapter = f->x.adapter, .scale = f->scale};
    toy_way ways[TOY_WAYS];
    toy_ways(&f->on, ways);
    toy_logits want = {0}, got = {0};
    f->t.adapter = &use;
    f->t.n_adapters = 1;
    if (prompt(f, f->on.cpu, 1, -1, TOY_BATCH, &want, "cpu")) {
        const double d = toy_distance(&want, exact);
        CHECK_MSG(d <= TOY_BOUND, "%s: the CPU is %g away from the reference", f->name, d);
        for (size_t i = 0; i < TOY_WAYS; i++)
            if (prompt(f, ways[i].backend, ways[i].n_backends, ways[i].split, ways[i].chunk, &got,
                       ways[i].what))
                CHECK_MSG(toy_other_bits(&want, &got) == 0, "%s, %s: %zu logits have other bits",
                          f->name, ways[i].what, toy_other_bits(&want, &got));
    }
    f->t.adapter = NULL;
    f->t.n_adapters = 0;
    free(want.at);
    free(got.at);
}

/* Scale 0 changes no bit; lora_b = 0 changes no value. */
static void check_nothing(fixture *f) {
    toy_adapter zero = {.alpha = 2};
    toy_logits plain = {0}, got = {0};
    ggl_error err = {0};
    llm_adapter_use use = {.adapter = f->x.adapter, .scale = 0};
    const ggl_str family = llm_adapter_describe(f->x.adapter).architecture;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)family.n, family.s);
    for (size_t i = 0; i < f->x.n; i++)
        toy_adapter_add(&zero, f->x.pair[i].name, f->x.pair[i].n_dims, f->x.pair[i].ne, 3, true);
    bool ok = CHECK_MSG(toy_adapter_open(&zero, name, &err), "%s", err.msg) &&
              prompt(f, f->on.cpu, 1, -1, 8, &plain, "plain");
    f->t.adapter = &use;
    f->t.n_adapters = 1;
    if (ok && prompt(f, f->on.cpu, 1, -1, 8, &got, "scale 0"))
        CHECK_MSG(toy_other_bits(&plain, &got) == 0, "%s: scale 0 changes bits", f->name);
    use = (llm_adapter_use){.adapter = zero.adapter, .scale = 1};
    if (ok && prompt(f, f->on.cpu, 1, -1, 8, &got, "lora_b = 0"))
        CHECK_MSG(!(toy_distance(&got, &plain) > 0), "%s: lora_b = 0 changes logits", f->name);
    f->t.adapter = NULL;
    f->t.n_adapters = 0;
    toy_adapter_free(&zero);
    free(plain.at);
    free(got.at);
}

/* --- tensors that a file has under another name ------------------------------------------------- */

/* A toy as a file with attn_q, attn_k and attn_v in one tensor. */
typedef struct joined {
    const llm_arch_source *toy;
    const fixture *merge; /* merges the adapter into the joined tensors; NULL: no */
    float *data[64];      /* to free */
    int n;
} joined;

static bool joined_key(void *ctx, const char *name, llm_arch_key *out) {
    const joined *x = ctx;
    return x->toy->find_key(x->toy->ctx, name, out);
}

static bool joined_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const joined *x = ctx;
    return x->toy->get_item(x->toy->ctx, key, i, out);
}

static bool find_part(const joined *x, const char *whole, char part, llm_arch_tensor *t) {
    static char name[64];
    snprintf(name, sizeof name, "%.*s%c.weight", (int)(strstr(whole, "qkv") - whole), whole, part);
    *t = (llm_arch_tensor){.name = name, .n_dims = 2, .ne = {1, 1, 1, 1}};
    return x->toy->find_tensor(x->toy->ctx, t);
}

static bool joined_tensor(void *ctx, llm_arch_tensor *t) {
    joined *x = ctx;
    llm_arch_tensor part[3];
    if (!strstr(t->name, ".attn_qkv.weight"))
        return !strstr(t->name, ".attn_q.") && !strstr(t->name, ".attn_k.") &&
               !strstr(t->name, ".attn_v.") && x->toy->find_tensor(x->toy->ctx, t);
    for (int k = 0; k < 3; k++)
        if (!find_part(x, t->name, "qkv"[k], &part[k]))
            return false;
    t->type = GGL_F32;
    t->n_dims = 2;
    memcpy(t->ne, part[0].ne, sizeof t->ne);
    t->ne[1] += part[1].ne[1] + part[2].ne[1];
    float *all = malloc((size_t)ggl_extents(t->ne, 0, 2, 1) * sizeof *all), *at = all;
    for (int k = 0; k < 3; at += ggl_extents(part[k].ne, 0, 2, 1), k++)
        memcpy(at, part[k].data, (size_t)ggl_extents(part[k].ne, 0, 2, 1) * sizeof *all);
    if (x->merge)
        toy_adapter_merge(&x->merge->x, x->merge->scale, t->name, all);
    t->data = all;
    if (CHECK(x->n < 64))
        x->data[x->n++] = all;
    return true;
}

static bool no_tensor_at(void *ctx, size_t i, ggl_str *name) {
    (void)ctx, (void)i, (void)name;
    return false;
}

static void open_family(fixture *f, const char *family, int variant) {
    const char *text;
    size_t n;
    ggl_error err = {0};
    setup(f);
    REQUIRE(llm_arch_builtin_named(family, &f->name, &text, &n));
    REQUIRE(toy_open(&f->t, f->name, text, n, variant, &err));
    llm_arch_toy_freeze(f->t.toy);
    f->scale = 1.5;
    f->x.alpha = 2;
}

static void close_family(fixture *f) {
    toy_adapter_free(&f->x);
    toy_close(&f->t);
    teardown(f);
}

/* Adapters for the joined tensor of a file, for one of its parts, and for both. */
static void check_joined(bool whole, bool part, int sizes) {
    fixture f;
    ggl_error err = {0};
    toy_logits merged = {0}, adapted = {0}, plain = {0};
    open_family(&f, "llama", 0);
    joined x = {.toy = llm_arch_toy_source(f.t.toy)};
    const llm_arch_source source = {.ctx = &x,
                                    .name = "joined",
                                    .find_key = joined_key,
                                    .get_item = joined_item,
                                    .find_tensor = joined_tensor,
                                    .tensor_at = no_tensor_at};
    llm_arch_tensor w = {.name = "blk.1.attn_qkv.weight"}, k;
    REQUIRE(joined_tensor(&x, &w) && find_part(&x, w.name, 'k', &k));
    f.x.sizes = sizes;
    if (whole)
        toy_adapter_add(&f.x, w.name, 2, w.ne, 5, false);
    if (part)
        toy_adapter_add(&f.x, k.name, 2, k.ne, 5, false);
    REQUIRE_OK(toy_adapter_open(&f.x, "llama", &err) ? GGL_OK : err.status, &err);
    f.t.source = &source;
    const llm_adapter_use use = {.adapter = f.x.adapter, .scale = f.scale};
    bool ok = prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &plain, "plain");
    f.t.adapter = &use;
    f.t.n_adapters = 1;
    ok = ok && prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &adapted, "adapted");
    f.t.n_adapters = 0;
    f.t.change = merge;
    f.t.change_ctx = &f;
    x.merge = &f;
    ok = ok && prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &merged, "merged");
    CHECK_MSG(ok && toy_distance(&adapted, &merged) < 1e-5, "%g", toy_distance(&adapted, &merged));
    CHECK_MSG(ok && toy_distance(&adapted, &plain) > 1e-3, "%g", toy_distance(&adapted, &plain));
    close_family(&f);
    for (int i = 0; i < x.n; i++)
        free(x.data[i]);
    free(merged.at);
    free(adapted.at);
    free(plain.at);
}

TEST(joined_tensors) {
    for (int sizes = 0; sizes <= 2; sizes += 2) {
        check_joined(true, false, sizes);
        check_joined(false, true, sizes);
    }
    check_joined(true, true, 0);
}

/* The embedding's pair, merged into output.weight alone. */
static void merge_output(void *ctx, const ggl_tensor *w, float *data) {
    const fixture *f = ctx;
    if (strcmp(w->name, "output.weight") == 0)
        toy_adapter_merge(&f->x, f->scale, w->name, data);
}

static bool tied_tensor(void *ctx, llm_arch_tensor *t) {
    const joined *x = ctx;
    return strcmp(t->name, "output.weight") != 0 && x->toy->find_tensor(x->toy->ctx, t);
}

static bool untied_tensor(void *ctx, llm_arch_tensor *t) {
    const joined *x = ctx;
    llm_arch_tensor e = *t;
    e.name = strcmp(t->name, "output.weight") == 0 ? "token_embd.weight" : t->name;
    if (!x->toy->find_tensor(x->toy->ctx, &e))
        return false;
    e.name = t->name;
    *t = e;
    return true;
}

/* A pair for output.weight, where the file has none and the embedding makes the logits: it changes
 * the logits' matrix, and not the embedding. */
static void check_tied(int sizes) {
    fixture f;
    ggl_error err = {0};
    toy_logits merged = {0}, adapted = {0};
    open_family(&f, "llama", 0);
    joined x = {.toy = llm_arch_toy_source(f.t.toy)};
    llm_arch_source source = {.ctx = &x,
                              .name = "tied",
                              .find_key = joined_key,
                              .get_item = joined_item,
                              .find_tensor = tied_tensor};
    llm_arch_tensor w = {.name = "token_embd.weight", .n_dims = 2, .ne = {1, 1, 1, 1}};
    REQUIRE(tied_tensor(&x, &w));
    f.x.sizes = sizes;
    toy_adapter_add(&f.x, "output.weight", 2, w.ne, 5, false);
    REQUIRE_OK(toy_adapter_open(&f.x, "llama", &err) ? GGL_OK : err.status, &err);
    f.t.source = &source;
    const llm_adapter_use use = {.adapter = f.x.adapter, .scale = f.scale};
    f.t.adapter = &use;
    f.t.n_adapters = 1;
    bool ok = prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &adapted, "adapted");
    f.t.n_adapters = 0;
    source.find_tensor = untied_tensor;
    f.t.change = merge_output;
    f.t.change_ctx = &f;
    ok = ok && prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &merged, "merged");
    CHECK_MSG(ok && toy_distance(&adapted, &merged) < 1e-5, "%g", toy_distance(&adapted, &merged));
    close_family(&f);
    free(merged.at);
    free(adapted.at);
}

TEST(output_of_tied_embedding) {
    check_tied(0);
    check_tied(2);
}

/* The result for a pair that is `more` rows too large for the family's weight `name`. */
static ggl_status open_pair(fixture *f, const char *family, const char *name, int64_t more,
                            ggl_error *err) {
    llm_arch_tensor w = {.name = name, .n_dims = 2, .ne = {1, 1, 1, 1}};
    const llm_arch_source *source = llm_arch_toy_source(f->t.toy);
    if (!CHECK(source->find_tensor(source->ctx, &w)))
        return GGL_NOT_FOUND;
    w.ne[1] += more;
    toy_adapter_add(&f->x, name, 2, w.ne, 5, false);
    if (!CHECK_MSG(toy_adapter_open(&f->x, family, err), "%s", err->msg))
        return err->status;
    const llm_adapter_use use = {.adapter = f->x.adapter, .scale = f->scale};
    ggl_graph *g = build(f, &use, 1, NULL, err);
    ggl_graph_free(g);
    return g ? GGL_OK : err->status;
}

/* Pairs for matrices that this graph has, and does not read, change no bit; they must fit. */
TEST(weights_that_nothing_reads) {
    static const char family[] = "cogvlm";
    ggl_error err = {0};
    toy_logits plain = {0}, adapted = {0};
    for (int64_t more = 0; more < 2; more++) {
        fixture f;
        open_family(&f, family, 0);
        const ggl_status st = open_pair(&f, family, "blk.0.vis_up.weight", more, &err);
        if (more) {
            CHECK_INT(st, GGL_SHAPE);
            CHECK_HAS(err.msg, "does not fit blk.0.vis_up.weight");
        } else if (CHECK_OK(st, &err)) {
            prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &plain, "plain");
            const llm_adapter_use use = {.adapter = f.x.adapter, .scale = f.scale};
            f.t.adapter = &use;
            f.t.n_adapters = 1;
            prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &adapted, "adapted");
            CHECK(plain.n > 0 && plain.n == adapted.n &&
                  memcmp(plain.at, adapted.at, plain.n * sizeof *plain.at) == 0);
        }
        close_family(&f);
    }
    free(plain.at);
    free(adapted.at);
}

/* Magnitudes multiply what the adapters before them have made, and are divided by the lengths of the model's rows with their own adapter's
 * change alone: so the order counts. */
TEST(magnitudes_in_their_order) {
    fixture f;
    ggl_error err = {0};
    toy_logits merged = {0}, adapted = {0}, first = {0};
    open_family(&f, "llama", 0);
    f.x.sizes = 1;
    adapt_all(&f);
    toy_adapter second = {.alpha = 5, .sizes = 1};
    for (size_t i = 0; i < f.x.n; i += 2)
        toy_adapter_add(&second, f.x.pair[i].name, f.x.pair[i].n_dims, f.x.pair[i].ne, 11, false);
    REQUIRE_OK(toy_adapter_open(&second, "llama", &err) ? GGL_OK : err.status, &err);
    f.scale = 0.75;
    f.second = &second;
    f.second_scale = -0.25;
    for (int swap = 0; swap < 2; swap++) {
        llm_adapter_use use[2];
        use[swap] = (llm_adapter_use){.adapter = f.x.adapter, .scale = f.scale};
        use[!swap] = (llm_adapter_use){.adapter = second.adapter, .scale = f.second_scale};
        f.t.adapter = use;
        f.t.n_adapters = 2;
        bool ok = prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &adapted, "adapted");
        f.t.n_adapters = 0;
        f.second_first = swap;
        f.t.change = merge;
        f.t.change_ctx = &f;
        ok = ok && prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &merged, "merged");
        f.t.change = NULL;
        CHECK_MSG(ok && toy_distance(&adapted, &merged) < 1e-4, "%g",
                  toy_distance(&adapted, &merged));
        if (swap)
            CHECK_MSG(toy_distance(&adapted, &first) > 1e-3, "%g", toy_distance(&adapted, &first));
        else
            first = adapted, adapted = (toy_logits){0};
    }
    toy_adapter_free(&second);
    close_family(&f);
    free(merged.at);
    free(adapted.at);
    free(first.at);
}

/* Two adapters at once are both merged; in either order, with scales of their own. */
TEST(several_at_once) {
    fixture f;
    ggl_error err = {0};
    toy_logits merged = {0}, adapted = {0}, swapped = {0};
    open_family(&f, "llama", 0);
    adapt_all(&f);
    toy_adapter second = {.alpha = 5};
    for (size_t i = 0; i < f.x.n; i += 2)
        toy_adapter_add(&second, f.x.pair[i].name, f.x.pair[i].n_dims, f.x.pair[i].ne, 11, false);
    REQUIRE_OK(toy_adapter_open(&second, "llama", &err) ? GGL_OK : err.status, &err);
    llm_adapter_use use[] = {{.adapter = f.x.adapter, .scale = 0.5},
                             {.adapter = second.adapter, .scale = -0.25},
                             {.adapter = f.x.adapter, .scale = 0.25}};
    f.t.adapter = use;
    f.t.n_adapters = 3;
    bool ok = prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &adapted, "adapted");
    use[0] = use[1];
    use[1] = (llm_adapter_use){.adapter = f.x.adapter, .scale = 0.75};
    f.t.n_adapters = 2;
    ok = ok && prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &swapped, "swapped");
    f.t.n_adapters = 0;
    f.scale = 0.75;
    f.second = &second;
    f.second_scale = -0.25;
    f.t.change = merge;
    f.t.change_ctx = &f;
    ok = ok && prompt(&f, &f.on.reference, 1, -1, TOY_BATCH, &merged, "merged");
    CHECK_MSG(ok && toy_distance(&adapted, &merged) < 1e-4, "%g", toy_distance(&adapted, &merged));
    CHECK_MSG(ok && toy_distance(&swapped, &merged) < 1e-4, "%g", toy_distance(&swapped, &merged));
    toy_adapter_free(&second);
    close_family(&f);
    free(merged.at);
    free(adapted.at);
    free(swapped.at);
}

/* --- all descriptors -------------------------------------------------------------------------- */

static void run_descriptor(int k) {
    fixture f;
    const char *text;
    size_t n;
    setup(&f);
    REQUIRE(llm_arch_builtin(k, &f.name, &text, &n));
    for (int variant = 0; variant < 2; variant++) {
        ggl_error err = {0};
        toy_logits adapted = {0};
        if (!CHECK_MSG(toy_open(&f.t, f.name, text, n, variant, &err), "%s: %s", f.name, err.msg))
            continue;
        if (llm_arch_has_output(f.t.arch, "rows")) { /* nobody adapts an eye */
            toy_close(&f.t);
            continue;
        }
        f.scale = variant ? -0.5 : 0.75;
        f.x.sizes = 1;
        f.t.change = set_factor;
        f.t.change_ctx = &f;
        adapt_all(&f);
        if (f.x.adapter) {
            check_merged(&f, &adapted);
            if (adapted.at)
                check_ways(&f, &adapted);
            check_nothing(&f);
        }
        toy_adapter_free(&f.x);
        toy_close(&f.t);
        free(adapted.at);
    }
    teardown(&f);
}

static void run_share(int share, int shares) {
    for (int k = share; k < sample_n(); k += shares)
        if (!TEST_SANITIZED || sampled(k, 16))
            run_descriptor(k);
}

/* All of them, in six cases, so that they run side by side; under a sanitizer 16, others each day. */
#define CASE(i)                                                                                    \
    TEST(merged_##i) {                                                                             \
        run_share(i, 6);                                                                           \
    }
CASE(0)
CASE(1)
CASE(2)
CASE(3)
CASE(4)
CASE(5)

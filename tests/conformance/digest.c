/* Digests of whole models: `digest` prints a line for each model, with a hash of the logits of all
 * tokens of a fixed text. They are the same wherever the numeric contract holds: the tests of label
 * `emulated` compare the lines of other processors with this one's.
 *
 *     digest [all | quick | few]
 *
 * The models: those of models/builtin and tests/data as they are; one with its matrices in every
 * type that can be written (of rows that are no multiple of a block: as they are); every built-in
 * descriptor with made-up weights. Each is run with every instruction set, 1 .. 5 threads and
 * prompts in several pieces, and has to give one digest; the portable definition, which takes most
 * of the time, with one number of threads and size of pieces, those of the model's turn. `quick`, for emulators: some of the types,
 * every descriptor once, each model once, with the best instruction set; pieces and threads take
 * turns. `few`: the same with a third of the descriptors, another one each day, where other
 * tests run all of them on that kind of processor.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backends/cpu/cpu_features.h"
#include "../models/toy_run.h"
#include "ggl/alloc.h"
#include "sample.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/types.h"
#include "llm/internal/session.h"

enum { N_TOKENS = 70 }; /* beyond a page of 64 positions */
#ifdef __wasi__
enum { MOST_THREADS = 1 };
#else
enum { MOST_THREADS = 5 };
#endif

static bool quick, few, failed;
static ggl_backend *reference;

/* How a model is run. */
typedef struct way {
    char mask[64];
    int threads;
    int64_t ubatch;
} way;

static uint64_t hash_logits(uint64_t h, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = 0x7fc00000; /* any NaN equals any NaN */
        if (!isnan(x[i]))
            memcpy(&u, x + i, sizeof u);
        h = (h ^ u) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

/* Digest of a model in one way; false after a message. */
typedef bool run_fn(const void *model, const way *w, ggl_backend *cpu, uint64_t *digest,
                    ggl_error *err);

static void in_all_ways(const char *name, run_fn *run, const void *model) {
    static const int64_t ubatches[] = {512, 1, 3, 16, 33};
    uint32_t set[CPU_MAX_SETS];
    const int n_sets = ggl_cpu_features_sets(set);
    static int turn;
    const int mine = turn++;
    bool none = true;
    uint64_t first = 0;
    for (int k = 0; k < (quick ? 1 : n_sets * 5); k++) {
        const int i = quick ? n_sets - 1 + n_sets * mine : k;
        if (!quick && n_sets > 1 && !set[i % n_sets] && i / n_sets != mine % 5)
            continue;
        way w = {.threads = 1 + (i * 2 + i / n_sets) % MOST_THREADS,
                 .ubatch = ubatches[(i + i / n_sets) % 5]};
        char left[64], *p = w.mask;
        /* a mask that leaves the set: the names of the features that are not in it */
        const uint32_t without = ggl_cpu_features_detect() & ~set[i % n_sets];
        ggl_cpu_features_text(without, left, sizeof left);
        snprintf(w.mask, sizeof w.mask, "%s", !set[i % n_sets] ? "all" : without ? left : "");
        while ((p = strchr(p, ' ')))
            *p++ = ',';
        ggl_backend *cpu = NULL;
        ggl_error err = {0};
        uint64_t digest = 0x243f6a8885a308d3;
        bool ok = ggl_backend_open(&cpu, "cpu",
                                   &(ggl_backend_params){.size = sizeof(ggl_backend_params),
                                                         .n_threads = w.threads,
                                                         .mask = w.mask},
                                   &err) == GGL_OK &&
                  run(model, &w, cpu, &digest, &err);
        ggl_backend_close(cpu);
        if (!ok || (!none && digest != first)) {
            failed = true;
            fprintf(stderr, "%s: %s (without \"%s\", %d threads, pieces of %d)\n", name,
                    ok ? "another digest" : err.msg, w.mask, w.threads, (int)w.ubatch);
        }
        if (none)
            first = digest;
        none = false;
    }
    printf("%-32s %016" PRIx64 "\n", name, first);
    fflush(stdout);
}

/* --- files ---------------------------------------------------------------------------------- */

static void add_row(void *ctx, int64_t i, const float *logits) {
    void **p = ctx;
    (void)i;
    *(uint64_t *)p[0] = hash_logits(*(uint64_t *)p[0], logits, *(const int64_t *)p[1]);
}

static bool run_file(const void *model, const way *w, ggl_backend *cpu, uint64_t *digest,
                     ggl_error *err) {
    llm_session *s = NULL;
    llm_session_params p = llm_session_default();
    p.n_ubatch = p.n_rows = w->ubatch; /* outputs limit a batch, too */
    p.backend = &cpu;
    p.n_backends = 1;
    p.fold = reference;
    p.n_ctx = 128;
    bool ok = llm_session_new(&s, model, &p, err) == GGL_OK && llm_session_alloc(s, err) == GGL_OK;
    if (ok) {
        int64_t n_vocab = llm_session_n_vocab(s);
        int32_t token[N_TOKENS];
        bool want[N_TOKENS];
        for (int i = 0; i < N_TOKENS; i++) {
            token[i] = (int32_t)((uint32_t)i * 7919u % (uint32_t)n_vocab);
            want[i] = true;
        }
        llm_batch b = {.n = N_TOKENS,
                       .token = token,
                       .want = want,
                       .each = add_row,
                       .ctx = (void *[]){digest, &n_vocab}};
        ok = llm_session_eval(s, &b, err) == GGL_OK;
    }
    llm_session_free(s);
    return ok;
}

/* The file with its matrices in another type, in memory (ggl_free); NULL after a message. */
static void *rewritten(const ggl_gguf *f, ggl_type type, size_t *size, bool *changed) {
    const ggl_type_info *to = ggl_type_get((int)type);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    size_t n = ggl_gguf_n_tensors(f);
    void **made = calloc(n + 1, sizeof *made), *out = NULL;
    ggl_error err = {0};
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
    for (size_t i = 0; i < n; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        if (t->n_dims < 2 || t->ne[0] % to->block) {
            ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
            continue;
        }
        int64_t k = t->ne[0], rows = t->ne[1] * t->ne[2] * t->ne[3];
        size_t row = ggl_row_size(type, k);
        float *x = malloc((size_t)k * sizeof *x);
        made[i] = malloc(row * (size_t)rows);
        for (int64_t r = 0; r < rows; r++) {
            ggl_type_get((int)t->type)
                ->to_float((const char *)t->data + (size_t)r * ggl_row_size(t->type, k), x, k);
            to->from_float(x, (char *)made[i] + (size_t)r * row, k);
        }
        free(x);
        ggl_gguf_put_tensor(w, name, type, t->n_dims, t->ne, made[i]);
        *changed = true;
    }
    if (ggl_gguf_writer_write_memory(w, &out, size, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        failed = true;
    }
    ggl_gguf_writer_free(w);
    for (size_t i = 0; i < n; i++)
        free(made[i]);
    free(made);
    return out;
}

static void digest_file(const char *path, bool all_types) {
    llm_model *m = NULL;
    ggl_error err = {0};
    const char *slash = strrchr(path, '/');
    char name[96];
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    if (llm_model_open(&m, path, NULL, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        failed = true;
        return;
    }
    in_all_ways(name, run_file, m);
    for (int i = 0; all_types && ggl_type_at(i); i++) {
        const ggl_type_info *t = ggl_type_at(i);
        size_t size = 0;
        bool changed = false;
        llm_model *other = NULL;
        if (!t->from_float || !ggl_type_has_products(t->type) || (quick && i % 4 != 1))
            continue;
        void *data = rewritten(llm_model_file(m), t->type, &size, &changed);
        snprintf(name, sizeof name, "%s %s", slash ? slash + 1 : path, t->name);
        if (data && changed) {
            if (llm_model_open_memory(&other, data, size, name, NULL, &err) == GGL_OK)
                in_all_ways(name, run_file, other);
            else
                failed = fprintf(stderr, "%s\n", err.msg) != 0;
        }
        llm_model_free(other);
        ggl_free(data);
    }
    llm_model_free(m);
}

/* --- made-up models ------------------------------------------------------------------------- */

static bool run_toy(const void *model, const way *w, ggl_backend *cpu, uint64_t *digest,
                    ggl_error *err) {
    toy_run r;
    int chunk = (int)(w->ubatch < TOY_BATCH ? w->ubatch : TOY_BATCH);
    if (!toy_start(&r, model, &cpu, 1, reference, -1, GGL_F16, err))
        return false;
    size_t n = (size_t)N_TOKENS * (size_t)r.n_vocab;
    float *logits = malloc(n * sizeof *logits);
    bool ok = logits && toy_prompt(&r, 0, N_TOKENS, chunk, logits, err);
    if (ok)
        *digest = hash_logits(*digest, logits, (int64_t)n);
    free(logits);
    toy_stop(&r);
    return ok;
}

/* Nine, the same ones everywhere. */
static bool chosen(int k) {
    const int place = sample_place(k, 1);
    return place < 9 && (!few || (uint64_t)place % 3 == sample_turn(3));
}

static void digest_descriptors(void) {
    const char *name, *text;
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (int variant = quick; variant < 2 && chosen(k);
             variant++) { /* all that is optional absent; there */
            toy_model t;
            ggl_error err = {0};
            char what[96];
            snprintf(what, sizeof what, "%s, made up %d", name, variant);
            if (toy_open(&t, name, text, n, variant, &err)) {
                in_all_ways(what, run_toy, &t);
                toy_close(&t);
            } else {
                failed = fprintf(stderr, "%s: %s\n", what, err.msg) != 0;
            }
        }
}

int main(int argc, char **argv) {
    ggl_error err = {0};
    few = argc > 1 && strcmp(argv[1], "few") == 0;
    quick = few || (argc > 1 && strcmp(argv[1], "quick") == 0);
    if (ggl_backend_open(&reference, "reference", NULL, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    digest_file(MODELS "/models/builtin/stories.gguf", false);
    digest_file(MODELS "/tests/data/stories-gpt2.gguf", false);
    digest_file(MODELS "/tests/data/stories-qwen2.gguf", false);
    digest_file(MODELS "/tests/data/stories-qwen3.gguf", true); /* feed-forward: 256 */
    digest_descriptors();
    ggl_backend_close(reference);
    return failed;
}

/* conformance.cpu: every operator of ops.def, and every named composite, on the CPU backend: equal
 * bits for any threads, instruction set, chunking, with and without the composite's name; and the
 * reference backend's values within a bound. The cases are those of llm-bench conform. */
#include <math.h>

#include "conform/case.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/types.h"
#include "seed.h"
#include "test.h"

/* The thread sanitizer sees each third variant: the threads and what they share are the same in all. */
enum { EACH = TEST_TSAN ? 3 : 1 };

typedef struct way {
    ggl_backend_params params;
    int64_t chunk; /* as conform_form.chunk */
    bool unnamed;
} way;

/* false: a failure was reported. */
static bool run(const conform_case *info, const conform_form *f, const char *backend,
                const ggl_backend_params *params, conform_output *out) {
    ggl_error err = {0};
    ggl_status st = conform_run_on(info, f, backend, params, out, &err);
    return CHECK_MSG(st == GGL_OK, "%s, %s, on %s: %s", info->name, out->text, backend, err.msg) &&
           CHECK_MSG(!out->refused, "%s is refused: %s", out->text, out->refused);
}

static void compare_bits(const conform_case *info, const way *w, const conform_output *got,
                         const conform_output *want) {
    for (int64_t i = 0; i < want->n * want->row; i++)
        if (memcmp(got->y + i, want->y + i, 4) != 0 && !(isnan(got->y[i]) && isnan(want->y[i]))) {
            (void)TEST_SAY(
                "%s, %s: element %d is %a with %d threads, mask %s, chunk %d%s; expected %a",
                info->name, want->text, (int)i, (double)got->y[i], w->params.n_threads,
                w->params.mask ? w->params.mask : "none", (int)w->chunk,
                w->unnamed ? ", as its body says" : "", (double)want->y[i]);
            return;
        }
}

static void check_variant(const conform_case *info, const conform_form *f, ggl_backend *portable) {
    const way others[] = {
        {{.size = sizeof(ggl_backend_params), .n_threads = 1}, 0, false},
        {{.size = sizeof(ggl_backend_params), .n_threads = 2}, 0, false},
        {{.size = sizeof(ggl_backend_params), .n_threads = 3}, 3, false},
        {{.size = sizeof(ggl_backend_params), .n_threads = 7}, -2, false},
        {{.size = sizeof(ggl_backend_params), .n_threads = 1, .mask = "avx512"}, 1, false},
        {{.size = sizeof(ggl_backend_params), .n_threads = 2}, 2, true},
        {{.size = sizeof(ggl_backend_params), .n_threads = 1, .mask = "all"}, 0, true},
#if TEST_TSAN /* the kernels of the definition, too, on several threads */
        {{.size = sizeof(ggl_backend_params), .n_threads = 3, .mask = "all"}, 0, false},
#endif
    };
    conform_output want, got;
#if TEST_TSAN /* bits of one thread; that they are right is seen without it */
    (void)portable;
    (void)run(info, f, "cpu", &others[0].params, &want);
#else
    conform_result r;
    CHECK_MSG(conform_check_keep(info, f, portable, &r, &want) == CONFORM_RIGHT, "%s, %s: %s",
              info->name, r.form_text, r.text);
#endif
    if (!want.y)
        return;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const way *w = &others[i];
        if (TEST_TSAN && w->params.n_threads == 1)
            continue;
        if ((w->unnamed && !info->call) || (f->n > 100 && (w->chunk == 1 || w->chunk == 3)))
            continue;
        if (w->params.mask && w->params.n_threads > 1 && info->op != GGL_OP_LINEAR)
            continue;
        conform_form g = *f;
        g.chunk =
            f->with & CONFORM_SEES_ALL ? 0 : w->chunk; /* a text that is seen whole is not cut */
        g.unnamed = w->unnamed;
        g.pages =
            i; /* another order of pages for each, and the one that slots have by themselves */
        if (run(info, &g, "cpu", &w->params, &got))
            compare_bits(info, w, &got, &want);
        conform_output_fini(&got);
    }
    conform_output_fini(&want);
}

/* Variants first, first + step, .. */
static void check_some(const conform_case *info, int first, int step) {
    ggl_backend *portable = NULL;
    ggl_error err = {0};
    const ggl_backend_params params = {.size = sizeof params, .n_threads = 1, .mask = "all"};
    setenv("GGL_CPU_SHARE_ALL", "1", 1); /* the graphs are too small for threads to pay */
    REQUIRE_OK(ggl_backend_open(&portable, "cpu", &params, &err), &err);
    for (int v = first; v < conform_n_variants(info); v += step) {
        const conform_form f = conform_variant(info, v);
        check_variant(info, &f, portable);
    }
    ggl_backend_close(portable);
}

/* Operators that backends/cpu/ops.def says are refused; C has no empty arrays. */
static const bool refused[GGL_OP_COUNT + 1] = {
    [GGL_OP_COUNT] = true,
#define REFUSED(ID) [GGL_OP_##ID] = true,
#include "../../backends/cpu/ops.def"
};

static void check_kind(const conform_kind *k) {
    for (int i = 0; i < k->n_cases; i++)
        if (!refused[k->cases[i].op])
            check_some(&k->cases[i], 0, EACH);
}

TEST(elementwise) {
    check_kind(&conform_elementwise);
}
TEST(along_rows) {
    check_kind(&conform_rows);
}
LONG_TEST(moves) {
    check_kind(&conform_moves);
}
TEST(linear) {
    check_kind(&conform_products);
}
TEST(rope_and_attend) {
    check_kind(&conform_attention);
}
/* The reference reads the same rows wherever they lie: a bit of its double precision that changed would
 * not show in a comparison within bounds. */
static void check_pages(const conform_case *info, int first, int step) {
    for (int v = first; v < conform_n_variants(info); v += step) {
        conform_form f = conform_variant(info, v);
        const way w = {{.size = sizeof(ggl_backend_params), .n_threads = 1}, 0, false};
        conform_output got = {0}, want = {0};
        if (run(info, &f, "reference", &w.params, &want)) {
            f.pages = 5 + (uint64_t)v;
            if (run(info, &f, "reference", &w.params, &got))
                compare_bits(info, &w, &got, &want);
        }
        conform_output_fini(&got);
        conform_output_fini(&want);
    }
}
TEST(pages_of_the_reference) {
    for (int i = 0; i < conform_attention.n_cases; i++)
        check_pages(&conform_attention.cases[i], 0, 1);
    check_pages(&conform_kept.cases[0], 0, 7);
}
/* By type of the keys, as variants have them in turn. A sanitizer sees a third of the types of values and forms, other ones on
 * each day: attention runs the same code for all. */
static void check_kept(int type) {
    enum { N_TYPES = 5, PART = TEST_SANITIZED ? 3 : 1 };
    const int skip = PART > 1 ? (int)sample_turn(PART) : 0;
    check_some(&conform_kept.cases[0], type + N_TYPES * skip, N_TYPES * PART);
}
LONG_TEST(attend_kept_f16) {
    check_kept(0);
}
TEST(attend_kept_f32) {
    check_kept(1);
}
TEST(attend_kept_bf16) {
    check_kept(2);
}
LONG_TEST(attend_kept_q8_0) {
    check_kept(3);
}
LONG_TEST(attend_kept_q4_0) {
    check_kept(4);
}
TEST(attend_spans) {
    check_kind(&conform_spans);
}
TEST(composites) {
    check_kind(&conform_composites);
}
TEST(recurrences) {
    check_kind(&conform_recurrences);
}

/* Each type that a weight can have is a product's, and each variant is another. */
TEST(every_type_has_a_case) {
    const conform_case *linear = &conform_products.cases[0];
    int seen[GGL_TYPE_LIMIT] = {0};
    for (int v = 0; v < conform_n_variants(linear); v++)
        seen[conform_variant(linear, v).type]++;
    for (int i = 0; ggl_type_at(i); i++) {
        const ggl_type_info *t = ggl_type_at(i);
        CHECK_MSG(seen[t->type] > 1 || !ggl_type_has_products(t->type),
                  "no product has weights of %s", t->name);
    }
}

TEST(backends_by_name) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    CHECK(ggl_backend_open(&b, "abacus", NULL, &err) == GGL_NOT_FOUND && !b);
    CHECK_HAS(err.msg, "cpu, reference");
    CHECK(ggl_backend_open(
              &b, "cpu", &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = -1},
              &err) == GGL_USAGE);
    for (int i = 0; ggl_backend_name(i); i++) {
        ggl_status st = ggl_backend_open(
            &b, ggl_backend_name(i),
            &(ggl_backend_params){.size = sizeof(ggl_backend_params), .mask = "all"}, &err);
        CHECK(ggl_backend_text(i) && ggl_backend_text(i)[0]);
        if (st == GGL_UNSUPPORTED) /* this machine has no such device, and the sentence says so */
            CHECK(!b && err.msg[0]);
        else if (CHECK_OK(st, &err))
            CHECK(b && b->description[0]);
        ggl_backend_close(b);
    }
    ggl_backend_close(NULL);
}

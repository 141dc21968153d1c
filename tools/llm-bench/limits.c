#include "limits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../backends/cpu/cpu_features.h"
#include "common/machine.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_process.h"
#include "ggl/internal/os_thread.h"

enum { ROUNDS = 8, BRIEF_PART = 64, MAX_THREADS = 512, HUGE_PAGE = 2 << 20 };

uint32_t bench_features(const char *mask) {
    return ggl_cpu_features_ask(ggl_cpu_features_mask(
        ggl_cpu_features_mask(ggl_cpu_features_detect(), mask), getenv("GGL_CPU_MASK")));
}

const bench_peak *bench_peak_best(uint32_t f) {
    (void)f;
#if defined(__x86_64__)
    if (f & CPU_AMX) { /* tiles multiply bytes only */
        static bench_peak tiles;
        tiles = *bench_peak_best(f & ~(uint32_t)CPU_AMX);
        tiles.name = "amx";
        tiles.int8 = bench_amx_int8;
        return &tiles;
    }
    if (f & CPU_AVX512VNNI && f & CPU_AVX512BF16)
        return &bench_peak_avx512bf16;
    if (f & CPU_AVX512VNNI)
        return &bench_peak_avx512vnni;
    if (f & CPU_AVX512)
        return &bench_peak_avx512;
    if (f & CPU_AVX2)
        return &bench_peak_avx2;
#endif
    return &bench_peak_portable;
}

typedef enum work_kind { READ, READ_IN_ORDER, INT8, F32, BF16 } work_kind;

typedef struct crew {
    const bench_peak *peak;
    work_kind kind;
    int64_t turns;
    char *data;
    size_t each;   /* bytes per thread */
    atomic_int go; /* 1: begin; -1: not enough threads, end */
} crew;

typedef struct worker {
    crew *crew;
    int i;
    int64_t begin, end;
    double done;
} worker;

static double do_work(const crew *c, int i) {
    if (c->kind == READ || c->kind == READ_IN_ORDER) {
        (c->kind == READ ? c->peak->read : c->peak->read_in_order)(c->data + (size_t)i * c->each,
                                                                   c->each);
        return (double)c->each;
    }
    return (c->kind == INT8  ? c->peak->int8
            : c->kind == F32 ? c->peak->f32
                             : c->peak->bf16)(c->turns);
}

static void *work(void *ctx) {
    worker *w = ctx;
    int go;
    while ((go = atomic_load(&w->crew->go)) == 0)
        ggl_os_thread_yield();
    if (go < 0)
        return NULL;
    w->begin = ggl_os_clock();
    w->done = do_work(w->crew, w->i);
    w->end = ggl_os_clock();
    return NULL;
}

/* Runs all workers once. Returns the work per nanosecond from the first's begin to the last's
 * end; 0: threads could not be started. */
static double round_of(crew *c, int n) {
    static worker w[MAX_THREADS];
    os_thread thread[MAX_THREADS];
    int started = 1;
    atomic_store(&c->go, 0);
    for (int i = 0; i < n; i++)
        w[i] = (worker){.crew = c, .i = i};
    while (started < n && ggl_os_thread_start_bare(&thread[started], work, &w[started]))
        started++;
    atomic_store(&c->go, started == n ? 1 : -1);
    work(&w[0]);
    double done = w[0].done;
    int64_t begin = w[0].begin, end = w[0].end;
    for (int i = 1; i < started; i++) {
        ggl_os_thread_join(thread[i]);
        done += w[i].done;
        begin = w[i].begin < begin ? w[i].begin : begin;
        end = w[i].end > end ? w[i].end : end;
    }
    return started == n && end > begin ? done / (double)(end - begin) : 0;
}

/* Returns the best rate of several rounds. */
static double best_of(crew *c, work_kind kind, int n) {
    double best = 0;
    c->kind = kind;
    for (int i = 0, n_rounds = bench_brief() ? 1 : ROUNDS; i < n_rounds; i++) {
        double rate = round_of(c, n);
        best = rate > best ? rate : best;
    }
    return best;
}

/* Returns four times the last cache, but at least 256 MiB, and at most a quarter of the memory. */
static size_t buffer_size(void) {
    const size_t least = (size_t)256 << 20;
    size_t size = least;
    if (4 * bench_last_cache() > size)
        size = 4 * bench_last_cache();
    const uint64_t quarter = ggl_os_memory() / 4;
    if (quarter > 0 && size > quarter)
        size = (size_t)quarter;
    size = size > least ? size : least;
    return bench_brief() ? size / BRIEF_PART : size;
}

bench_limits bench_limits_measure(int n_threads, uint32_t features) {
    crew c = {.peak = bench_peak_best(features),
              .turns = (1 << 22) / (bench_brief() ? BRIEF_PART : 1)};
    bench_limits l = {.isa = c.peak->name};
    int n = n_threads < 1 ? 1 : n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
    c.each = buffer_size() / (size_t)n / 4096 * 4096;
    c.data = ggl_aligned_calloc(HUGE_PAGE, c.each * (size_t)n);
    if (c.data) {
        /* as the limit is the best case */
        ggl_prefer_huge_pages(c.data, c.each * (size_t)n);
        memset(c.data, 1, c.each * (size_t)n);
        l.read_gb = best_of(&c, READ, n);
        const double in_order = c.peak->read_in_order ? best_of(&c, READ_IN_ORDER, n) : 0;
        l.read_gb = in_order > l.read_gb ? in_order : l.read_gb;
    }
    ggl_aligned_free(c.data);
    if (c.peak->int8)
        l.int8_gmac = best_of(&c, INT8, n);
    if (c.peak->f32)
        l.f32_gmac = best_of(&c, F32, n);
    l.bf16_gmac = c.peak->bf16 ? best_of(&c, BF16, n) : l.f32_gmac;
    if (l.bf16_gmac < l.f32_gmac) /* floats can be multiplied in its place */
        l.bf16_gmac = l.f32_gmac;
    return l;
}

bench_peak_kind bench_peak_of(ggl_type type) {
    const ggl_type_info *t = ggl_type_get(type);
    return t && t->quantized ? BENCH_INT8 : type == GGL_BF16 ? BENCH_BF16 : BENCH_F32;
}

double bench_peak_gmac(const bench_limits *l, bench_peak_kind kind) {
    const double peak[BENCH_PEAKS] = {
        [BENCH_INT8] = l->int8_gmac, [BENCH_BF16] = l->bf16_gmac, [BENCH_F32] = l->f32_gmac};
    return peak[kind];
}

double bench_limit_of(const bench_limits *l, ggl_type type) {
    return bench_peak_gmac(l, bench_peak_of(type));
}

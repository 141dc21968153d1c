/* One measured test: what was measured, and what came out; as a list of named values. */
#ifndef TOOLS_BENCH_ROW_H
#define TOOLS_BENCH_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "limits.h"
#include "profile.h"
#include "stats.h"

typedef struct bench_where { /* one of the placements that are compared */
    char *devices;           /* "vulkan0,cpu"; NULL: not said. The options' */
    const char *split;       /* NULL: not said */
    int64_t n_gpu_layers;    /* negative: not said */
} bench_where;

typedef struct bench_test { /* one combination of what the command line asks for */
    const char *model;      /* the path, or the built-in model's name */
    int64_t n_prompt, n_gen, n_depth, n_batch, n_ubatch, n_threads, n_sequences;
    int type_k, type_v; /* ggl_type */
    const bench_where *where;
} bench_test;

typedef struct bench_row {
    bench_test test;
    char model_type[96], cpu[96], isa[64], time[32], types[2][8];
    char backend[96], device[160]; /* "vulkan0=20,cpu=12"; what those are, but for the CPU */
    double n_gpu_layers;
    double model_size, n_params;
    int n; /* samples */
    double ns[BENCH_MAX_SAMPLES], ts[BENCH_MAX_SAMPLES];
    bench_summary s_ns, s_ts; /* of ns and ts */
    double gb, gmac;          /* 1e9 bytes, multiply-adds per second; 0: does not apply */
    bench_limits limit;       /* none where layers are on several backends */
    char limit_of[96];        /* "2 threads (avx512vnni)", "vulkan0" */
    double percent;           /* 0: not known */
    double peak_memory, load_ns, first_token_ns;
    bench_profile *profile; /* [2]: of the prompt, of generation; NULL: not asked for */
} bench_row;

typedef enum bench_field_kind {
    BENCH_TEXT,
    BENCH_INTEGER,
    BENCH_NUMBER, /* BENCH_INTEGER, BENCH_NUMBER: `number` */
    BENCH_NUMBERS /* number[n] in `numbers` */
} bench_field_kind;

typedef struct bench_field {
    const char *key;
    bench_field_kind kind;
    const char *text;
    double number; /* NaN: not known, or does not apply */
    const double *numbers;
    int n;
} bench_field;

enum { BENCH_MAX_FIELDS = 64 };

/* Returns how many; they borrow from the row. Keys that another benchmark has too are called as
 * there. */
int bench_row_fields(const bench_row *r, bench_field out[BENCH_MAX_FIELDS]);
/* "pp512", "tg128 @ d4096", "pp512+tg128", "tg64 x4"; returns buf. */
const char *bench_test_text(const bench_test *t, char *buf, unsigned size);

#endif

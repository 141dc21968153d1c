/* llm-bench ops: what its files share. ops.c reads the arguments; ops_products.c and ops_kernels.c
 * measure; ops_rows.c has what both need; ops_report.c prints and draws. */
#ifndef LLM_BENCH_OPS_H
#define LLM_BENCH_OPS_H

#include "../../backends/cpu/cpu_features.h"
#include "../../backends/cpu/kernels.h"
#include "../../backends/cpu/threads.h"
#include "roofline.h"

enum { OPS_MAX_ROWS = 4096, OPS_MAX_COLS = 512 };

typedef struct isa_set { /* a table of kernels, and the machine's limits with its features */
    uint32_t features;
    cpu_kernels k;
    bench_roof roof;
} isa_set;

typedef enum op_series { /* the picture's colors */
                         ONE_COLUMN,
                         FEW_COLUMNS,
                         SOME_COLUMNS,
                         MANY_COLUMNS,
                         ATTENTION,
                         OTHER_KERNELS,
                         N_SERIES
} op_series;

typedef struct ops_row {
    char kernel[48], type[16], shape[48];
    int set, n_cols;
    double ns, bytes, macs; /* per call; macs 0: it does not multiply */
    double percent;         /* of the limit; 0: not known */
    op_series series;
    bench_peak_kind peak; /* of its arithmetic */
    bool equal, cached;   /* cached: its data fits in the caches */
} ops_row;

typedef struct ops {
    isa_set set[CPU_MAX_SETS];
    int n_sets;
    ops_row row[OPS_MAX_ROWS];
    size_t n_rows;
    cpu_pool *pool;
    int64_t n_threads, k, m, n_cols;
    double seconds;
    const char *only, *type; /* a part of kernels' names; types' names, with commas; NULL: all */
    bool exact;              /* the matrix has the size given, even for one column */
    bool best;               /* only the last set is measured */
    bool counts;             /* nothing is measured, only counted: */
    size_t n_planned, n_planned_large, n_done; /* measurements; those of products */
} ops;

/* Lists the tables of kernels, from the portable one to the best that GGL_CPU_MASK leaves. */
void ops_find_sets(ops *o);
/* True if --kernel and --type select a kernel's name, and a type's. */
bool ops_wanted(const ops *o, const char *kernel);
bool ops_wanted_type(const ops *o, const ggl_type_info *t);
bool ops_wanted_set(const ops *o, int set);
/* Checks the names of --type. Returns -1, or an exit code. */
int ops_check_types(const ops *o);
/* Returns whether a measurement is to be made now; if only counted: counts it. */
bool ops_begins(ops *o, bool large, const char *kernel, const char *type);
void ops_add_row(ops *o, ops_row r, ggl_type type);
/* Returns the shortest time of a call, in nanoseconds, of those within the time allowed. */
double ops_best_ns(const ops *o, void (*call)(void *ctx), void *ctx);
/* The next made-up number, from -1 to 1. */
float ops_number(uint64_t *state);
/* True if n numbers are the same bits; all NaN are the same. */
bool ops_same_bits(const float *a, const float *b, int64_t n);

/* True if --kernel selects any product, or any other kernel. */
bool ops_any_product(const ops *o);
bool ops_any_kernel(const ops *o);
/* Measures the products. False: out of memory. */
bool ops_measure_products(ops *o);
/* Measures the other kernels, on data in the inner caches. */
void ops_measure_kernels(ops *o);

enum { OPS_MD, OPS_CSV, OPS_JSON };
void ops_print(const ops *o, int format);
/* Draws the roofline. Returns an exit code; an error was reported. */
int ops_draw(const ops *o, const char *path);

#endif

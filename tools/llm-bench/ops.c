/* llm-bench ops: measures every kernel of every instruction set of this machine: its speed, its
 * part of what the machine allows, and whether its bits equal those of the portable definition. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/machine.h"
#include "common/paths.h"
#include "common/progress.h"
#include "limits.h"
#include "ops.h"
#include "tool.h"

#define TOOL "llm-bench ops"

#define LARGE_SECONDS                                                                              \
    0.3 /* that a product takes beside its measurement: to make its weights, and check it */
#define LIMIT_SECONDS 1.5 /* of a set of instructions, for the machine's limits */

/* --- instruction sets ------------------------------------------------------------------------- */

void ops_find_sets(ops *o) {
    uint32_t set[CPU_MAX_SETS];
    int n = ggl_cpu_features_sets(set);
    for (int i = 0; i < n; i++) {
        uint32_t f = ggl_cpu_features_mask(set[i], getenv("GGL_CPU_MASK"));
        isa_set *s = &o->set[o->n_sets];
        int k = 0;
        while (k < o->n_sets && o->set[k].features != f)
            k++;
        if (k < o->n_sets) /* same features as an earlier set, because of the mask */
            continue;
        s->features = f;
        ggl_cpu_kernels_init(&s->k, f);
        ggl_cpu_features_text(f, s->roof.name, sizeof s->roof.name);
        o->n_sets++;
    }
}

static void find_limits(ops *o) {
    progress_begin("sets of instructions", o->n_sets, "limits of this machine");
    for (int i = 0; i < o->n_sets; i++) {
        progress_set(i);
        o->set[i].roof.limit = bench_limits_measure((int)o->n_threads, o->set[i].features);
    }
    progress_end();
}
static void keep_most(double *a, double b) {
    *a = fmax(*a, b);
}

/* Measures the limits once more, and keeps the higher ones: on a shared machine a moment can be
 * bad. */
static void measure_limits_again(ops *o) {
    for (int s = 0; s < o->n_sets; s++) {
        bench_limits *l = &o->set[s].roof.limit;
        const bench_limits more = bench_limits_measure((int)o->n_threads, o->set[s].features);
        keep_most(&l->read_gb, more.read_gb);
        keep_most(&l->int8_gmac, more.int8_gmac);
        keep_most(&l->f32_gmac, more.f32_gmac);
        keep_most(&l->bf16_gmac, more.bf16_gmac);
    }
}

/* Sets each row's part of what the machine allows. */
static void find_percents(ops *o) {
    for (size_t i = 0; i < o->n_rows; i++) {
        ops_row *r = &o->row[i];
        const bench_limits *limit = &o->set[r->set].roof.limit;
        double peak = bench_peak_gmac(limit, r->peak);
        if (r->macs > 0 && peak > 0) {
            double memory = r->cached ? peak : r->macs / r->bytes * limit->read_gb;
            r->percent = 100 * r->macs / r->ns / fmin(peak, memory);
        }
    }
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Measures everything. False: out of memory. */
static bool measure_all(ops *o) {
    const bool ok = ops_measure_products(o);
    ops_measure_kernels(o);
    return ok;
}

/* Says how long the measurements will take. */
static void say_time(ops *o, bool limits) {
    char text[AMOUNT_TEXT];
    o->counts = true;
    (void)measure_all(o);
    o->counts = false;
    const double seconds = o->seconds * (double)o->n_planned +
                           LARGE_SECONDS * (double)o->n_planned_large +
                           (limits && !bench_brief() ? LIMIT_SECONDS * o->n_sets : 0);
    if (o->n_planned > 0)
        tool_say(TOOL, "%zu measurements of %g s (--seconds), about %s in all", o->n_planned,
                 o->seconds, llm_amount_time(text, seconds));
}

/* --- arguments ------------------------------------------------------------------------------ */

static bool read_shape(const char *s, ops *o) {
    char more;
    return sscanf(s, "%" SCNd64 "x%" SCNd64 "%c", &o->k, &o->m, &more) == 2 && o->k >= 32 &&
           o->k <= 1 << 20 && o->k % 32 == 0 && o->m >= 1 && o->m <= 1 << 20;
}

int bench_ops(int argc, char **argv) {
    static const char *const formats[] = {"md", "csv", "json", NULL};
    static ops o = {.n_threads = 1, .n_cols = OPS_MAX_COLS, .seconds = 0.1};
    const char *shape = NULL, *svg = NULL;
    int format = 0;
    bool no_limits = false;
    const arg_option options[] = {
        {"-t --threads", ARG_INT, &o.n_threads, .value = "N",
         .help = "threads for matrix products; other kernels run on one thread (default 1)",
         .min = 1, .max = TOOL_MAX_THREADS},
        {"--shape", ARG_STRING, &shape, .value = "KxM",
         .help = "size of the matrices: M rows of K elements (default 2048x2048; products with few "
                 "columns use 96 MiB of such matrices)"},
        {"--type", ARG_STRING, &o.type, .value = "TYPE,..",
         .help = "only weights and stores of these types"},
        {"--columns", ARG_INT, &o.n_cols, .value = "N",
         .help = "columns in products with many columns (default 512)", .min = 2,
         .max = OPS_MAX_COLS},
        {"--kernel", ARG_STRING, &o.only, .value = "TEXT",
         .help = "only kernels whose name contains this"},
        {"--seconds", ARG_FLOAT, &o.seconds, .value = "S",
         .help = "duration of each measurement (default 0.1)", .min = 0.0001, .max = 60},
        {"--no-limits", ARG_FLAG, &no_limits, .help = "do not measure the machine's limits"},
        {"-o --output", ARG_CHOICE, &format, .value = "FORMAT", .help = "md (default), csv, json",
         .choices = formats},
        {"--svg", ARG_STRING, &svg, .value = "FILE", .help = "draw the roofline"},
        {0}};
    static const args_example examples[] = {
        {"llm-bench ops --kernel product --type q4_K -t 8",
         "products with weights in q4_K, on 8 threads"},
        {"llm-bench ops --svg roofline.svg", "times all, and draws the roofline"},
        {0}};
    const args_spec spec = {
        TOOL,
        "[options]",
        "Times every kernel of every instruction set that this machine has, and "
        "compares its bits with the portable definition. Exit code 1: they differ.",
        options,
        NULL,
        NULL,
        .examples = examples};
    ggl_error err = {0};
    int code = args_parse(&spec, argc, argv);
    if (code >= 0)
        return code;
    o.exact = shape != NULL;
    code = ops_check_types(&o);
    if (code >= 0)
        return code;
    if (!read_shape(shape ? shape : "2048x2048", &o))
        return tool_error(TOOL, 2,
                          "--shape: '%s' is not a shape such as 2048x5632: the length of rows must "
                          "be a multiple of 32, and there are at most 1048576 rows",
                          shape);
    if (!ops_any_product(&o) && !ops_any_kernel(&o))
        return tool_error(TOOL, 2, "--kernel: no kernel's name contains '%s'", o.only);
    code = tool_check_paths(TOOL, &(tool_path){"--svg", svg, .written = true}, 1);
    if (code >= 0)
        return code;
    if (ggl_cpu_pool_open(&o.pool, (int)o.n_threads, NULL, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    ops_find_sets(&o);
    say_time(&o, !no_limits);
    if (!no_limits)
        find_limits(&o);
    progress_begin("measurements", (double)o.n_planned, "measuring");
    const bool ok = measure_all(&o);
    progress_end();
    ggl_cpu_pool_close(o.pool);
    if (!no_limits)
        measure_limits_again(&o);
    find_percents(&o);
    if (!ok)
        return tool_error(TOOL, 1, "out of memory");
    if (o.n_rows == 0)
        return tool_error(TOOL, 2, "nothing to measure: no kernel%s%s%s%s%s", o.type ? " of " : "",
                          o.type ? o.type : "", o.only ? " has '" : "", o.only ? o.only : "",
                          o.only ? "' in its name" : "");
    ops_print(&o, format);
    code = svg ? ops_draw(&o, svg) : 0;
    for (size_t i = 0; i < o.n_rows; i++)
        code = o.row[i].equal ? code : 1;
    return code;
}

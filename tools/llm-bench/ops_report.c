/* llm-bench ops: tables, and the picture. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/machine.h"
#include "ops.h"
#include "tool.h"

/* The width of a column. */
static int wider(int width, const char *text) {
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

/* Prints the sets of instructions above the table, with the numbers that they have in it, so that a line fits 100
 * columns. */
static void print_sets(const ops *o) {
    for (int s = 0; s < o->n_sets; s++) {
        const bench_limits *l = &o->set[s].roof.limit;
        printf("%d: %s\n", s + 1, o->set[s].roof.name);
        if (l->read_gb > 0)
            printf(
                "   limits: memory %.1f GB/s, int8 %.1f, f32 %.1f, bf16 %.1f GMAC/s (0: unknown)\n",
                l->read_gb, l->int8_gmac, l->f32_gmac, l->bf16_gmac);
    }
    printf("%" PRId64 " thread%s\n", o->n_threads, o->n_threads == 1 ? "" : "s");
}

static void print_md(const ops *o) {
    static const char rule[] = "----------------------------------------------";
    int kernel = 6, shape = 5;
    bool differ = false;
    for (size_t i = 0; i < o->n_rows; i++) {
        kernel = wider(kernel, o->row[i].kernel);
        shape = wider(shape, o->row[i].shape);
        differ = differ || !o->row[i].equal;
    }
    print_sets(o);
    if (!differ)
        puts("all results have the bits of the portable definition");
    printf("\n| %-*s | %-5s | set | %-*s | %9s | %5s | %6s | %5s |%s\n", kernel, "kernel", "type",
           shape, "shape", "us", "GB/s", "GMAC/s", "limit", differ ? " equal |" : "");
    printf("| %.*s | ----- | --: | %.*s | --------: | ----: | -----: | ----: |%s\n", kernel, rule,
           shape, rule, differ ? " ----- |" : "");
    for (size_t i = 0; i < o->n_rows; i++) {
        const ops_row *r = &o->row[i];
        char gmac[32] = "", percent[32] = "";
        if (r->macs > 0)
            snprintf(gmac, sizeof gmac, "%.1f", r->macs / r->ns);
        if (r->percent > 0)
            snprintf(percent, sizeof percent, r->percent < 999.5 ? "%.0f %%" : ">999%%",
                     r->percent);
        printf("| %-*s | %-5s | %3d | %-*s | %9.*f | %5.1f | %6s | %5s |%s\n", kernel, r->kernel,
               r->type, r->set + 1, shape, r->shape, r->ns < 1e6 ? 3 : 0, r->ns * 1e-3,
               r->bytes / r->ns, gmac, percent,
               !differ    ? ""
               : r->equal ? " yes   |"
                          : " NO    |");
    }
}

static void print_csv(const ops *o) {
    puts("kernel,type,isa,shape,n_threads,ns,gb_per_s,gmac_per_s,percent_of_limit,equal");
    for (size_t i = 0; i < o->n_rows; i++) {
        const ops_row *r = &o->row[i];
        printf("\"%s\",\"%s\",\"%s\",\"%s\",%" PRId64 ",%.1f,%.4f,%.4f,%.2f,%d\n", r->kernel,
               r->type, o->set[r->set].roof.name, r->shape, o->n_threads, r->ns, r->bytes / r->ns,
               r->macs / r->ns, r->percent, r->equal);
    }
}

static void print_json(const ops *o) {
    for (size_t i = 0; i < o->n_rows; i++) {
        const ops_row *r = &o->row[i];
        printf("%s\n  {\"kernel\": \"%s\", \"type\": \"%s\", \"isa\": \"%s\", \"shape\": \"%s\", "
               "\"n_threads\": %" PRId64
               ", \"ns\": %.1f, \"gb_per_s\": %.4f, \"gmac_per_s\": %.4f, "
               "\"percent_of_limit\": %.2f, \"equal\": %s}",
               i ? "," : "[", r->kernel, r->type, o->set[r->set].roof.name, r->shape, o->n_threads,
               r->ns, r->bytes / r->ns, r->macs / r->ns, r->percent, r->equal ? "true" : "false");
    }
    puts(o->n_rows ? "\n]" : "[]");
}

void ops_print(const ops *o, int format) {
    (format == OPS_MD ? print_md : format == OPS_CSV ? print_csv : print_json)(o);
}

int ops_draw(const ops *o, const char *path) {
    static bench_point point[OPS_MAX_ROWS];
    char many[64];
    const char *const series[N_SERIES] = {[ONE_COLUMN] = "products with 1 column",
                                          [FEW_COLUMNS] = "4 columns",
                                          [SOME_COLUMNS] = "16 columns",
                                          [MANY_COLUMNS] = many,
                                          [ATTENTION] = "attention",
                                          [OTHER_KERNELS] = "other kernels"};
    bench_roof roof[CPU_MAX_SETS];
    char title[128], cpu[96];
    size_t n = 0;
    for (size_t i = 0; i < o->n_rows; i++) {
        const ops_row *r = &o->row[i];
        if (r->macs <= 0 || r->bytes <= 0)
            continue;
        bench_point *p = &point[n++];
        *p = (bench_point){.roof = r->set,
                           .series = (int)r->series,
                           .peak = r->peak,
                           .cached = r->cached,
                           .intensity = r->macs / r->bytes,
                           .gmac = r->macs / r->ns};
        const char *kernel = r->kernel; /* that it is a product is said by its color */
        kernel += strncmp(kernel, "product ", 8) == 0 ? 8 : 0;
        snprintf(p->label, sizeof p->label, "%s%s%s", r->type, r->type[0] ? " " : "", kernel);
    }
    for (int s = 0; s < o->n_sets; s++)
        roof[s] = o->set[s].roof;
    bench_cpu_name(cpu, sizeof cpu);
    snprintf(many, sizeof many, "%" PRId64 " columns", o->n_cols);
    snprintf(title, sizeof title, "Kernels on %.80s, %" PRId64 " thread%s", cpu, o->n_threads,
             o->n_threads == 1 ? "" : "s");
    drawing d = {0};
    bench_roofline_plot(&d, &(bench_roofline){title, roof, o->n_sets, series, N_SERIES, point, n});
    return drawing_save(&d, "llm-bench ops", "--svg", path);
}

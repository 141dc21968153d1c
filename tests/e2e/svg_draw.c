/* Draws pictures of random figures and measurements, for svg_check.py: svg_draw SEED FOLDER. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/types.h"
#include "llm-arch/plot.h"
#include "llm-bench/plot.h"
#include "llm-imatrix/plot.h"
#include "llm-bench/roofline.h"
#include "llm-bench/serve_plot.h"
#include "llm-perplexity/ppl_plot.h"
#include "llm-quantize/report_plot.h"

enum { PICTURES = 40 };

static uint64_t state;

static uint64_t below(uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Returns a number whose logarithm is anywhere between those of low and high. */
static double between(double low, double high) {
    return low * pow(high / low, (double)below(1000001) * 1e-6);
}

/* Returns x, or seldom a number that no clock should give. */
static double measured(double x) {
    static const double absurd[] = {NAN,    INFINITY, -INFINITY, -1,     0,
                                    4e-324, 1e-200,   1e200,     1.7e308};
    return below(60) ? x : absurd[below(sizeof absurd / sizeof *absurd)];
}

/* Writes up to size - 1 bytes of text, of characters that break files and widths. */
static void text(char *buf, size_t size) {
    static const char *const part[] = {"q4_0", " ",  "x",     "<",     "&", "\"",    "W",
                                       "中",   "é",  "\xff",  "\x1b[", "/", "i",     ".",
                                       "-",    "mm", "model", "2048",  "×", "avx512"};
    size_t most = below(4) ? below(16) : below(size), used = 0;
    buf[0] = '\0';
    for (;;) {
        const char *p = part[below(sizeof part / sizeof *part)];
        if (used + strlen(p) > most || used + strlen(p) >= size)
            return;
        memcpy(buf + used, p, strlen(p) + 1);
        used += strlen(p);
    }
}

static FILE *open_picture(const char *folder, const char *kind, int i) {
    char path[1200];
    snprintf(path, sizeof path, "%s/%s-%d.svg", folder, kind, i);
    FILE *out = fopen(path, "w");
    if (!out) {
        perror(path);
        exit(1);
    }
    return out;
}

/* What the plots need of row.c and serve_row.c, which are much more. */
const char *bench_test_text(const bench_test *t, char *buf, unsigned size) {
    snprintf(buf, size, "pp%d", (int)t->n_prompt);
    return buf;
}

double serve_load_size(const serve_load *l) {
    return l->n_clients > 0 ? (double)l->n_clients : l->rate;
}

const char *serve_load_text(const serve_load *l, char *buf, size_t size) {
    snprintf(buf, size, "%g", serve_load_size(l));
    return buf;
}

/* Writes a picture, and frees its description. */
static void write_picture(FILE *out, drawing *d) {
    ggl_error err = {0};
    if (drawing_write(d, out, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    drawing_fini(d);
}

/* --- each kind of picture --------------------------------------------------------------------- */

static const ggl_tensor tensor; /* shown by all nodes, which have titles of their own */

static void random_block(figure_block *b, figure_node *node, int n, int n_layers) {
    *b = (figure_block){.node = node, .n = n, .n_layers = n_layers, .params = below(1u << 31)};
    text(b->title, sizeof b->title);
    for (int i = 0; i < n; i++) {
        figure_node *t = &node[i];
        /* only the last one may be a port where a value leaves: nothing reads it */
        *t = (figure_node){.kind = (figure_kind)below(FIGURE_MOVE + 1),
                           .t = i == n - 1 && below(2) ? NULL : &tensor};
        text(t->title, sizeof t->title);
        if (below(2))
            text(t->origin, 12);
        t->n_lines = (int)below(FIGURE_LINES + 1);
        for (int k = 0; k < t->n_lines; k++)
            text(t->line[k], sizeof t->line[k]);
        t->n_in = i == 0 ? 0 : (int)below(4);
        for (int k = 0; k < t->n_in; k++) {
            t->in[k] =
                below(3) ? i - 1 - (int)below(i < 3 ? (uint64_t)i : 3) : (int)below((uint64_t)i);
            text(t->in_shape[k], sizeof t->in_shape[k]);
        }
    }
}

static void draw_figure(FILE *out) {
    enum { BLOCKS = 4, NODES = 30 };
    static figure_block block[BLOCKS];
    static figure_node node[BLOCKS][NODES];
    char name[200], of[200];
    figure f = {.block = block, .n = 2 + (int)below(BLOCKS - 1)};
    ggl_error err = {0};
    for (int k = 0; k < f.n; k++)
        random_block(&block[k], node[k], 1 + (int)below(NODES),
                     k == 0 || k == f.n - 1 ? 0 : 1 + (int)below(3));
    text(name, sizeof name);
    text(of, sizeof of);
    if (figure_draw(out, &f, 1, name, of, "cpu", &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
}

static void draw_roofline(FILE *out) {
    enum { ROOFS = 4, SERIES = 7, POINTS = 300 };
    static bench_point point[POINTS];
    static char names[SERIES][80];
    bench_roof roof[ROOFS];
    const char *series[SERIES];
    char title[300];
    const double scale = between(1e-3, 1e6), wide = between(1, 1e5);
    bench_roofline r = {title,
                        roof,
                        (int)below(ROOFS + 1),
                        series,
                        1 + (int)below(SERIES),
                        point,
                        below(2) ? below(POINTS) : below(5)};
    text(title, sizeof title);
    for (int i = 0; i < r.n_series; i++) {
        text(names[i], sizeof names[i]);
        series[i] = names[i];
    }
    for (int i = 0; i < r.n_roofs; i++) {
        text(roof[i].name, sizeof roof[i].name);
        roof[i].limit =
            (bench_limits){.read_gb = below(5) ? measured(between(scale, scale * 10)) : 0,
                           .int8_gmac = below(5) ? measured(between(scale, scale * wide)) : 0,
                           .f32_gmac = below(5) ? measured(between(scale, scale * wide)) : 0,
                           .bf16_gmac = below(5) ? measured(between(scale, scale * wide)) : 0};
    }
    r.n_points = r.n_roofs == 0 ? 0 : r.n_points;
    for (size_t k = 0; k < r.n_points; k++) {
        point[k] = (bench_point){.roof = (int)below((uint64_t)r.n_roofs),
                                 .series = (int)below((uint64_t)r.n_series),
                                 .peak = (bench_peak_kind)below(BENCH_PEAKS),
                                 .cached = below(2),
                                 .intensity = between(0.01, 0.1 * wide),
                                 .gmac = measured(between(scale, scale * wide))};
        text(point[k].label, sizeof point[k].label);
    }
    drawing d = {0};
    bench_roofline_plot(&d, &r);
    write_picture(out, &d);
}

static void draw_plot(FILE *out) {
    enum { ROWS = 24 };
    static bench_row rows[ROWS];
    bench_row *row[ROWS];
    const double scale = between(1e-3, 1e6);
    size_t n = below(ROWS + 1);
    for (size_t i = 0; i < n; i++) {
        bench_row *r = row[i] = &rows[i];
        *r = (bench_row){.test = {.n_prompt = (int64_t)below(3) * 16, .n_gen = 8},
                         .n = 1 + (int)below(5),
                         .percent = below(2) ? between(0.1, 1e5) : 0};
        r->test.n_threads = 1 + (int64_t)below(300);
        r->s_ts.q1 = between(scale, scale * 100);
        r->s_ts.median = r->s_ts.q1 * between(1, 2);
        r->s_ts.q3 = r->s_ts.median * between(1, 2);
        r->s_ts.median = measured(r->s_ts.median);
        r->s_ts.q3 = measured(r->s_ts.q3);
        text(r->model_type, below(4) ? 2 : sizeof r->model_type);
        text(r->backend, sizeof r->backend);
        text(r->cpu, sizeof r->cpu);
    }
    drawing d = {0};
    bench_plot(&d, row, n);
    write_picture(out, &d);
}

static void draw_serve(FILE *out) {
    enum { ROWS = 40, SERVERS = 3 };
    static serve_server server[SERVERS];
    static serve_row row[ROWS];
    static char name[SERVERS][300], url[SERVERS][900];
    const bool rates = below(2);
    const double scale = between(1e-3, 1e6);
    size_t n = below(ROWS + 1);
    for (int i = 0; i < SERVERS; i++) {
        text(name[i], sizeof name[i]);
        text(url[i], sizeof url[i]);
        server[i] = (serve_server){.url = url[i], .name = below(2) ? name[i] : NULL};
        text(server[i].model, below(2) ? 2 : sizeof server[i].model);
    }
    for (size_t i = 0; i < n; i++) {
        serve_row *r = &row[i];
        const bool fails = below(6) == 0;
        *r = (serve_row){.server = &server[below(SERVERS)],
                         .n_prompt = 1 + (int64_t)below(2),
                         .answer_rate = fails ? NAN : measured(between(scale, scale * 100))};
        r->load.n_answer = 8;
        r->load.n_clients = rates ? 0 : 1 + below(below(2) ? 8 : 1000);
        r->load.rate = rates ? measured(between(0.01, 100)) : 0;
        r->first = (serve_times){fails ? NAN : between(1, 1e4), fails ? NAN : between(1, 1e6)};
        r->between = (serve_times){fails || below(4) == 0 ? NAN : between(0.1, 100),
                                   fails ? NAN : between(1, 1000)};
    }
    drawing d = {0};
    serve_plot(&d, row, n);
    write_picture(out, &d);
}

/* Some kinds of tensors in some layers, and some outside of layers. */
static void draw_importance(FILE *out) {
    enum { MOST = 13 * 201 };
    const int n_kinds = 1 + (int)below(12), n_layers = (int)below(below(3) ? 9 : 200);
    const bool absurd = below(8) == 0;
    static llm_imatrix_entry e[MOST];
    static char name[MOST][200];
    static float sum2[MOST][8];
    static int64_t count[MOST];
    char kind[100], title[300];
    size_t n = 0;
    for (int k = 0; k < n_kinds; k++) {
        text(kind, sizeof kind);
        for (int i = -1; i < n_layers; i++) {
            if (below(i < 0 ? 2 : 8) == 0)
                continue;
            if (i < 0)
                snprintf(name[n], sizeof name[n], "%s", kind[0] ? kind : "o");
            else
                snprintf(name[n], sizeof name[n], "blk.%d.%s%d.weight", absurd ? 90000 + i : i,
                         kind, k);
            count[n] = (int64_t)below(3);
            for (int c = 0; c < 8; c++)
                sum2[n][c] = (float)between(1e-9, 1);
            e[n] = (llm_imatrix_entry){name[n], 8, 1, sum2[n], &count[n], 0};
            n++;
        }
    }
    tensor_stats *s = stats_of(e, n);
    text(title, sizeof title);
    drawing d = {0};
    d.title = title;
    if (s)
        imatrix_plot(&d, s, n);
    write_picture(out, &d);
    free(s);
}

static void draw_report(FILE *out) {
    enum { TENSORS = 200 };
    static report_tensor t[TENSORS];
    static char name[TENSORS][120];
    char title[200];
    ggl_error err = {0};
    const size_t n = below(2) ? below(TENSORS) : below(4);
    const int layers = 1 + (int)below(below(2) ? 40 : 2048), kinds = 1 + (int)below(12);
    int n_type = 0;
    while (ggl_type_at(n_type))
        n_type++;
    for (size_t i = 0; i < n; i++) {
        text(name[i], sizeof name[i]);
        if (below(8))
            snprintf(name[i], sizeof name[i], "blk.%d.kind_%d.weight", (int)below((uint64_t)layers),
                     (int)below((uint64_t)kinds));
        t[i] = (report_tensor){name[i], ggl_type_at((int)below((uint64_t)n_type)), between(1, 1e12),
                               between(1, 1e12), measured(between(1e-6, 1))};
    }
    text(title, sizeof title);
    drawing d = {0};
    d.title = title;
    if (report_plot(&d, t, n, &err) != GGL_OK)
        exit(1);
    write_picture(out, &d);
}

static void draw_ppl(FILE *out) {
    enum { CHUNKS = 900 };
    static ppl_chunk chunk[CHUNKS];
    double kld[LLM_N_QUANTILES];
    char title[200];
    const double scale = between(1, 1e5);
    const int64_t n_chunk = 1 + (int64_t)below(below(2) ? CHUNKS : 4);
    const bool compared = below(2);
    drawing d = {0};
    text(title, sizeof title);
    for (int64_t i = 0; i < n_chunk; i++)
        chunk[i] = (ppl_chunk){measured(between(scale, 3 * scale)),
                               measured(between(scale, 3 * scale)), measured(scale / 10)};
    for (int i = 0; i < LLM_N_QUANTILES; i++)
        kld[i] = (i ? kld[i - 1] : -1e-6) + between(1e-7, 1e-1);
    d.title = title;
    ppl_plot(&d, chunk, n_chunk, compared ? kld : NULL);
    write_picture(out, &d);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*draw)(FILE *out);
    } kind[] = {{"figure", draw_figure}, {"roofline", draw_roofline},     {"plot", draw_plot},
                {"serve", draw_serve},   {"importance", draw_importance}, {"report", draw_report},
                {"perplexity", draw_ppl}};
    if (argc != 3)
        return 2;
    state = strtoull(argv[1], NULL, 0);
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
        for (int i = 0; i < PICTURES; i++) {
            FILE *out = open_picture(argv[2], kind[k].name, i);
            kind[k].draw(out);
            if (fclose(out) != 0)
                return 1;
        }
    return 0;
}

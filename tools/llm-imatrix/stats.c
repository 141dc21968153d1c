#include "stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/show.h"

#define ACTIVE 1e-5 /* as in llama.cpp's table */

/* Sets *layer and kind from a name: "blk.3.ffn_down.weight" is ffn_down of layer 3. */
static void read_name(const char *name, int *layer, char *kind, size_t size) {
    int n = 0;
    *layer = -1;
    if (sscanf(name, "blk.%5d.%n", layer, &n) == 1 && n > 0 && *layer >= 0)
        name += n;
    else
        *layer = -1;
    const char *end = strstr(name, ".weight");
    const size_t length = end && end > name ? (size_t)(end - name) : strlen(name);
    snprintf(kind, size, "%.*s", (int)(length < size ? length : size - 1), name);
}

/* Calls add(s, m) for the mean square of each column of a matrix that has seen rows. */
static void each_mean(tensor_stats *s, void (*add)(tensor_stats *, double)) {
    const llm_imatrix_entry *e = s->e;
    for (int64_t i = 0; i < e->n_mat; i++)
        for (int64_t k = 0; e->count[i] > 0 && k < e->n_col; k++)
            add(s, (double)e->sum2[i * e->n_col + k] / (double)e->count[i]);
}

static void add_first(tensor_stats *s, double m) {
    s->min = s->n == 0 || m < s->min ? m : s->min;
    s->max = s->n == 0 || m > s->max ? m : s->max;
    s->sum += m;
    s->active += m > ACTIVE;
    s->n++;
}

static void add_second(tensor_stats *s, double m) {
    s->sigma += (m - s->mean) * (m - s->mean);
    if (m > 0)
        s->entropy -= m / s->sum * log2(m / s->sum);
}

static void add_third(tensor_stats *s, double m) {
    s->high += s->sigma > 0 && m - s->mean > s->sigma;
}

/* Returns the cosine of the angle between the sums of two entries; NaN: there is no such angle. */
static double cosine_of(const llm_imatrix_entry *a, const llm_imatrix_entry *b) {
    double ab = 0, aa = 0, bb = 0;
    const int64_t n = a->n_col * a->n_mat;
    if (!b || b->n_col * b->n_mat != n)
        return NAN;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a->sum2[i] * (double)b->sum2[i];
        aa += (double)a->sum2[i] * (double)a->sum2[i];
        bb += (double)b->sum2[i] * (double)b->sum2[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

/* The matrix of a model: e[n]. */
typedef struct entries {
    const llm_imatrix_entry *e;
    size_t n;
} entries;

static double cosine_before(const entries *all, const tensor_stats *s) {
    const char *rest = strchr(s->e->name, '.');
    char name[512];
    if (s->layer < 1 || !rest || !(rest = strchr(rest + 1, '.')))
        return NAN;
    snprintf(name, sizeof name, "blk.%d%s", s->layer - 1, rest);
    size_t i = 0;
    while (i < all->n && strcmp(all->e[i].name, name) != 0)
        i++;
    return cosine_of(s->e, i < all->n ? &all->e[i] : NULL);
}

static tensor_stats stats_one(const entries *all, const llm_imatrix_entry *e) {
    tensor_stats s = {.e = e};
    read_name(e->name, &s.layer, s.kind, sizeof s.kind);
    each_mean(&s, add_first);
    if (s.n > 0) {
        s.mean = s.sum / (double)s.n;
        each_mean(&s, add_second);
        s.sigma = sqrt(s.sigma / (double)s.n);
        each_mean(&s, add_third);
        s.active /= (double)s.n;
        s.high /= (double)s.n;
    }
    s.cosine = cosine_before(all, &s);
    return s;
}

/* For qsort. */
static int by_kind(const void *a, const void *b) {
    const tensor_stats *x = a, *y = b;
    const int order = strcmp(x->kind, y->kind);
    return order              ? order
           : x->sum != y->sum ? (x->sum < y->sum) - (x->sum > y->sum)
                              : (x->layer > y->layer) - (x->layer < y->layer);
}

tensor_stats *stats_of(const llm_imatrix_entry *e, size_t n) {
    const entries all = {e, n};
    tensor_stats *s = ggl_calloc(n, sizeof *s);
    for (size_t i = 0; s && i < n; i++)
        s[i] = stats_one(&all, &e[i]);
    if (s && n > 1)
        qsort(s, n, sizeof *s, by_kind);
    return s;
}

double stats_effective(const tensor_stats *s) {
    const double share = s->n > 0 ? exp2(s->entropy) / (double)s->n : 0;
    return share < 1 ? share : 1;
}

/* --- tables ----------------------------------------------------------------------------------- */

enum { NUMBER = 6, KIND = 16 }; /* columns of a number, and most of a tensor's name: 80 in all */

/* Prints a number with at most four digits, as many as fit into its column. */
static void print_short(FILE *out, double x) {
    char text[32];
    for (int digits = 4; digits > 0; digits--)
        if (snprintf(text, sizeof text, "%.*g", digits, x) <= NUMBER)
            break;
    fprintf(out, " %*s", NUMBER, text);
}

static void print_cosine(FILE *out, double x) {
    if (isnan(x))
        fprintf(out, " %6s", "-");
    else
        fprintf(out, " %6.3f", x);
}

static void print_tensor(const tensor_stats *s, int width, FILE *out) {
    char layer[16] = "-";
    if (s->layer >= 0)
        snprintf(layer, sizeof layer, "%d", s->layer);
    ggl_fprint(out, "%3s %-*.*s", layer, width, width, s->kind);
    if (s->n == 0) {
        fputs("  has seen no rows\n", out);
        return;
    }
    const double entropy = s->n > 1 ? s->entropy / log2((double)s->n) : 1;
    const double number[] = {s->sum, s->min, s->max, s->mean, s->sigma};
    for (int i = 0; i < 5; i++)
        print_short(out, number[i]);
    fprintf(out, " %5.1f %5.1f %5.1f", 100 * s->active, 100 * entropy, 100 * s->high);
    print_cosine(out, s->cosine);
    fputc('\n', out);
}

/* Means over the tensors of a layer, weighted by their columns. */
typedef struct layer_stats {
    double n, sum, high, cosine, n_cosine;
} layer_stats;

static void print_layers(const tensor_stats *s, size_t n, FILE *out) {
    int n_layers = 0;
    for (size_t i = 0; i < n; i++)
        n_layers = s[i].layer >= n_layers ? s[i].layer + 1 : n_layers;
    layer_stats *l = ggl_calloc((size_t)n_layers, sizeof *l);
    for (size_t i = 0; l && i < n; i++) {
        layer_stats *to = s[i].layer >= 0 ? &l[s[i].layer] : NULL;
        const double w = (double)s[i].n;
        if (!to)
            continue;
        to->n += w;
        to->sum += w * s[i].sum;
        to->high += w * s[i].high;
        to->n_cosine += isnan(s[i].cosine) ? 0 : w;
        to->cosine += isnan(s[i].cosine) ? 0 : w * s[i].cosine;
    }
    if (l && n_layers > 0)
        fputs("\nblk    mean sum  >sig% cosine\n", out);
    for (int i = 0; l && i < n_layers; i++) {
        if (l[i].n <= 0)
            continue;
        fprintf(out, "%3d %11.5g %6.1f", i, l[i].sum / l[i].n, 100 * l[i].high / l[i].n);
        print_cosine(out, l[i].n_cosine > 0 ? l[i].cosine / l[i].n_cosine : NAN);
        fputc('\n', out);
    }
    ggl_free(l);
}

void stats_print(const tensor_stats *s, size_t n, FILE *out) {
    int width = (int)strlen("tensor");
    for (size_t i = 0; i < n; i++)
        width = (int)strlen(s[i].kind) > width ? (int)strlen(s[i].kind) : width;
    width = width < KIND ? width : KIND;
    fprintf(out, "blk %-*s %6s %6s %6s %6s %6s %5s %5s %5s %6s\n", width, "tensor", "sum", "min",
            "max", "mean", "sigma", "act%", "ent%", ">sig%", "cosine");
    for (size_t i = 0; i < n; i++)
        print_tensor(&s[i], width, out);
    print_layers(s, n, out);
}

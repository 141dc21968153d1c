/* A text's rows become its vector: several poolings side by side, then modules. */
#include "llm/internal/head.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/types.h"
#include "ggl/types.h"

#define KEYS "sentence_transformers."

enum {
    MOST_MODULES = 16,
    NAME = 64,
    COUNT = 0,  /* sum[COUNT]: the rows that were added */
    WEIGHT = 1, /* their weights, for LLM_POOL_WEIGHTED */
    PARTS = 2
};
#define MOST_NUMBERS ((int64_t)1 << 20) /* of a vector */
#define NORM_EPS     1e-5               /* of PyTorch's LayerNorm */
#define LENGTH_EPS   1e-12              /* of its normalize */

typedef enum module_kind { MODULE_DENSE, MODULE_LAYER_NORM, MODULE_NORMALIZE, N_KINDS } module_kind;
static const char *const kind_names[N_KINDS] = {"dense", "layer_norm", "normalize"};

typedef double activation(double x);
#define ACTIVATION(name, class, f)                                                                 \
    static double act_##name(double x) {                                                           \
        return f;                                                                                  \
    }
#include "common/activations.def"

static const struct {
    const char *name;
    activation *f;
} activations[] = {
#define ACTIVATION(name, class, f) {#name, act_##name},
#include "common/activations.def"
};
enum { N_ACTIVATIONS = sizeof activations / sizeof *activations };

typedef struct module {
    module_kind kind;
    int64_t n_in, n_out;
    activation *f;
    float *weight, *bias, *residual; /* [n_out][n_in]; bias, residual: NULL if there is none */
    bool adds_input; /* the input is added to the output; through `residual` if there is one */
} module;

struct llm_head {
    int64_t n; /* numbers of a row */
    llm_pooling part[LLM_POOL_MOST_PARTS];
    int n_parts;
    module of[MOST_MODULES];
    int n_modules;
    int64_t widest; /* most numbers between two modules */
    bool skips_prompt;
    char name[NAME];
};

/* --- reading ---------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the modules after the pooling");
}

/* Copies a tensor as floats. *out: NULL if the file has none and `optional`. */
static ggl_status read_tensor(float **out, const ggl_gguf *file, const char *name, int64_t n_in,
                              int64_t n_out, bool optional, ggl_error *err) {
    const ggl_gguf_tensor *t = ggl_gguf_find_tensor(file, name);
    *out = NULL;
    if (!t && optional)
        return GGL_OK;
    if (!t || !t->data)
        return ggl_fail(err, GGL_FORMAT, "%s: the tensor %s, which %smodules names, is missing",
                        ggl_gguf_name(file), name, KEYS);
    if (t->ne[0] != n_in || t->ne[1] != n_out || t->ne[2] != 1 || t->ne[3] != 1)
        return ggl_fail(
            err, GGL_SHAPE,
            "%s: tensor %s has %" PRId64 " rows of %" PRId64 " numbers%s, but %" PRId64
            " of %" PRId64 " are expected",
            ggl_gguf_name(file), name, t->ne[1], t->ne[0],
            ggl_extents(t->ne, 2, GGL_MAX_DIMS, 1) == 1 ? "" : " in each of several matrices",
            n_out, n_in);
    *out = ggl_calloc((size_t)(n_in * n_out), sizeof **out);
    if (!*out)
        return no_memory(err);
    ggl_to_float(ggl_type_get((int)t->type), t->data, n_in, 0, n_in * n_out, *out);
    return GGL_OK;
}

/* Finds the activation of module k; a file without the list has none. */
static ggl_status find_activation(activation **out, const ggl_gguf *file, uint64_t k,
                                  ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, KEYS "activations");
    ggl_str name = {"identity", 8};
    if (v && k < v->n && !ggl_gguf_string(v, k, &name))
        return ggl_fail(err, GGL_FORMAT, "%s: key " KEYS "activations is no list of names",
                        ggl_gguf_name(file));
    for (int i = 0; i < N_ACTIVATIONS; i++)
        if (ggl_str_is(name, activations[i].name)) {
            *out = activations[i].f;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_UNSUPPORTED, "%s: key " KEYS "activations: '%.*s' is unknown",
                    ggl_gguf_name(file), (int)(name.n < 40 ? name.n : 40), name.s);
}

/* A Dense module has as many outputs as rows. */
static ggl_status size_of(const ggl_gguf *file, const char *name, int64_t *n_out, ggl_error *err) {
    const ggl_gguf_tensor *t = ggl_gguf_find_tensor(file, name);
    *n_out = t ? t->ne[1] : 0;
    return t && *n_out >= 1 && *n_out <= MOST_NUMBERS
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT,
                          "%s: the tensor %s is missing, or makes vectors of more than %" PRId64
                          " numbers",
                          ggl_gguf_name(file), name, MOST_NUMBERS);
}

static ggl_status read_module(module *m, const ggl_gguf *file, uint64_t k, ggl_error *err) {
    char weight[NAME], bias[NAME], residual[NAME];
    snprintf(weight, sizeof weight, "sentence.%" PRIu64 ".weight", k);
    snprintf(bias, sizeof bias, "sentence.%" PRIu64 ".bias", k);
    snprintf(residual, sizeof residual, "sentence.%" PRIu64 ".residual.weight", k);
    ggl_status st = find_activation(&m->f, file, k, err);
    m->n_out = m->n_in;
    if (st != GGL_OK || m->kind == MODULE_NORMALIZE)
        return st;
    if (m->kind == MODULE_DENSE)
        st = size_of(file, weight, &m->n_out, err);
    if (st == GGL_OK)
        st = m->kind == MODULE_DENSE
                 ? read_tensor(&m->weight, file, weight, m->n_in, m->n_out, false, err)
                 : read_tensor(&m->weight, file, weight, m->n_in, 1, false, err);
    if (st == GGL_OK)
        st = read_tensor(&m->bias, file, bias, m->n_out, 1, m->kind == MODULE_DENSE, err);
    if (st == GGL_OK && m->adds_input && m->n_in != m->n_out)
        st = read_tensor(&m->residual, file, residual, m->n_in, m->n_out, false, err);
    return st;
}

/* Finds the kind of a module. "dense+": a dense one whose input is added to its output. */
static ggl_status find_kind(module *m, const ggl_gguf *file, ggl_str name, ggl_error *err) {
    for (int kind = 0; kind < N_KINDS; kind++)
        if (ggl_str_is(name, kind_names[kind])) {
            m->kind = (module_kind)kind;
            return GGL_OK;
        }
    m->kind = MODULE_DENSE;
    m->adds_input = ggl_str_is(name, "dense+");
    return m->adds_input ? GGL_OK
                         : ggl_fail(err, GGL_UNSUPPORTED,
                                    "%s: key " KEYS "modules: '%.*s' is unknown; dense, dense+, "
                                    "layer_norm and normalize are supported",
                                    ggl_gguf_name(file), (int)(name.n < 40 ? name.n : 40), name.s);
}

static ggl_status read_modules(llm_head *h, const ggl_gguf *file, ggl_error *err) {
    const ggl_gguf_value *v = file ? ggl_gguf_find(file, KEYS "modules") : NULL;
    int64_t n = h->n_parts * h->n;
    ggl_status st = GGL_OK;
    h->widest = n;
    if (v && v->n > MOST_MODULES)
        return ggl_fail(err, GGL_LIMIT, "%s: key " KEYS "modules has %" PRIu64 " names, at most %d",
                        ggl_gguf_name(file), v->n, MOST_MODULES);
    for (uint64_t k = 0; v && k < v->n && st == GGL_OK; k++) {
        ggl_str name;
        module *m = &h->of[h->n_modules++];
        m->n_in = n;
        st = ggl_gguf_string(v, k, &name)
                 ? find_kind(m, file, name, err)
                 : ggl_fail(err, GGL_FORMAT, "%s: key " KEYS "modules is no list of names",
                            ggl_gguf_name(file));
        if (st == GGL_OK)
            st = read_module(m, file, k, err);
        n = m->n_out;
        h->widest = n > h->widest ? n : h->widest;
    }
    return st;
}

/* Refuses a pooling that was asked for if the file's modules are for vectors of several poolings side by side, which are longer. */
static ggl_status check_width(const llm_head *h, llm_pooling pooling, const ggl_gguf *file,
                              ggl_error *err) {
    const ggl_gguf_value *v = file ? ggl_gguf_find(file, KEYS "modules") : NULL;
    llm_pooling own, part[LLM_POOL_MOST_PARTS];
    ggl_str name, said = {"", 0};
    int n = 1;
    bool sized = false;
    for (uint64_t k = 0; v && k < v->n; k++)
        sized = sized ||
                (ggl_gguf_string(v, k, &name) && !ggl_str_is(name, kind_names[MODULE_NORMALIZE]));
    if (!sized || pooling == LLM_POOL_SEVERAL ||
        llm_pooling_find(&own, NULL, file, NULL) != GGL_OK || own != LLM_POOL_SEVERAL ||
        llm_pooling_parts(part, &n, file, NULL) != GGL_OK || n == 1)
        return GGL_OK;
    (void)ggl_gguf_get_string(file, KEYS "pooling", &said, NULL);
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "pooling %s: it makes vectors of %" PRId64 " numbers, but the "
                    "model's modules are for the %" PRId64 " of its own pooling, %.*s",
                    llm_pooling_name(pooling), h->n, n * h->n, (int)said.n, said.s);
}

ggl_status llm_head_new(llm_head **out, llm_pooling pooling, const ggl_gguf *file, int64_t n,
                        ggl_error *err) {
    llm_head *h = ggl_calloc(1, sizeof *h);
    bool includes = true;
    *out = NULL;
    if (!h)
        return no_memory(err);
    h->n = n;
    h->part[0] = pooling;
    h->n_parts = 1;
    ggl_status st = GGL_OK;
    if (pooling == LLM_POOL_SEVERAL)
        st = llm_pooling_parts(h->part, &h->n_parts, file, err);
    const bool pools = pooling != LLM_POOL_NONE && pooling != LLM_POOL_RANK;
    if (st == GGL_OK && pools)
        st = check_width(h, pooling, file, err);
    if (st == GGL_OK && pools)
        st = read_modules(h, file, err);
    if (st == GGL_OK && file && ggl_gguf_get_bool(file, KEYS "include_prompt", &includes, err) < 0)
        st = GGL_FORMAT;
    h->skips_prompt = !includes;
    for (int k = 0; k < h->n_parts; k++) {
        const size_t used = strlen(h->name);
        snprintf(h->name + used, sizeof h->name - used, "%s%s", k > 0 ? "+" : "",
                 llm_pooling_name(h->part[k]));
    }
    if (st != GGL_OK) {
        llm_head_free(h);
        return st;
    }
    *out = h;
    return GGL_OK;
}

void llm_head_free(llm_head *h) {
    for (int k = 0; h && k < h->n_modules; k++) {
        ggl_free(h->of[k].weight);
        ggl_free(h->of[k].bias);
        ggl_free(h->of[k].residual);
    }
    ggl_free(h);
}

int64_t llm_head_n_out(const llm_head *h) {
    return h->n_modules > 0 ? h->of[h->n_modules - 1].n_out : h->n_parts * h->n;
}

const char *llm_head_pooling_name(const llm_head *h) {
    return h->name;
}

bool llm_head_skips_prompt(const llm_head *h) {
    return h->skips_prompt;
}

/* --- pooling ---------------------------------------------------------------------------------- */

size_t llm_head_sum_size(const llm_head *h) {
    return PARTS + (size_t)(h->n_parts * h->n) + 2 * (size_t)h->widest;
}

void llm_head_begin(const llm_head *h, double *sum) {
    memset(sum, 0, llm_head_sum_size(h) * sizeof *sum);
}

/* Adds a row to what one pooling has. */
static void add_row(llm_pooling how, double *to, bool is_first, double weight, const float *row,
                    int64_t n) {
    const bool sets = is_first || how == LLM_POOL_LAST;
    if (how == LLM_POOL_CLS && !is_first)
        return;
    for (int64_t k = 0; k < n; k++) {
        const double x = how == LLM_POOL_WEIGHTED ? weight * (double)row[k] : (double)row[k];
        to[k] = sets ? x : how == LLM_POOL_MAX ? (x > to[k] ? x : to[k]) : to[k] + x;
    }
}

void llm_head_add(const llm_head *h, double *sum, int64_t pos, const float *row) {
    const double weight = (double)(pos + 1);
    for (int k = 0; k < h->n_parts; k++)
        add_row(h->part[k], sum + PARTS + k * h->n, sum[COUNT] == 0, weight, row, h->n);
    sum[COUNT]++;
    sum[WEIGHT] += weight;
}

/* By what the sum of a pooling is divided. */
static double divisor(llm_pooling how, const double *sum) {
    return how == LLM_POOL_MEAN       ? sum[COUNT]
           : how == LLM_POOL_SQRT     ? sqrt(sum[COUNT])
           : how == LLM_POOL_WEIGHTED ? sum[WEIGHT]
                                      : 1;
}

/* --- modules ---------------------------------------------------------------------------------- */

static double product(const float *w, const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)w[i] * x[i];
    return sum;
}

static void run_dense(const module *m, const double *x, double *y) {
    for (int64_t o = 0; o < m->n_out; o++) {
        const double bias = m->bias ? (double)m->bias[o] : 0;
        y[o] = m->f(product(m->weight + o * m->n_in, x, m->n_in) + bias);
        if (m->residual)
            y[o] += product(m->residual + o * m->n_in, x, m->n_in);
        else if (m->adds_input)
            y[o] += x[o];
    }
}

static void run_layer_norm(const module *m, const double *x, double *y) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < m->n_in; i++)
        mean += x[i] / (double)m->n_in;
    for (int64_t i = 0; i < m->n_in; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    const double by = 1 / sqrt(squares / (double)m->n_in + NORM_EPS);
    for (int64_t i = 0; i < m->n_in; i++)
        y[i] = (x[i] - mean) * by * (double)m->weight[i] + (double)m->bias[i];
}

static void run_normalize(const module *m, const double *x, double *y) {
    double length = 0;
    for (int64_t i = 0; i < m->n_in; i++)
        length += x[i] * x[i];
    length = sqrt(length);
    for (int64_t i = 0; i < m->n_in; i++)
        y[i] = x[i] / (length > LENGTH_EPS ? length : LENGTH_EPS);
}

static void run_module(const module *m, const double *x, double *y) {
    static void (*const run[N_KINDS])(const module *m, const double *x,
                                      double *y) = {run_dense, run_layer_norm, run_normalize};
    run[m->kind](m, x, y);
}

ggl_status llm_head_end(const llm_head *h, double *sum, int64_t n_dims, bool normalize, float *out,
                        ggl_error *err) {
    double *x = sum + PARTS, *made[2] = {x + h->n_parts * h->n, x + h->n_parts * h->n + h->widest};
    if (h->n_modules == 0 &&
        h->n_parts == 1) /* the length of 1 does not ask by what it is divided */
        return llm_pooling_result(x, n_dims, normalize ? 0 : divisor(h->part[0], sum), out, err);
    for (int k = 0; k < h->n_parts && sum[COUNT] > 0; k++)
        for (int64_t i = 0; i < h->n; i++)
            x[k * h->n + i] /= divisor(h->part[k], sum);
    for (int k = 0; k < h->n_modules; k++) {
        run_module(&h->of[k], x, made[k % 2]);
        x = made[k % 2];
    }
    return llm_pooling_result(x, n_dims, normalize ? 0 : 1, out, err);
}

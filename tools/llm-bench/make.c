/* llm-bench make: writes a model file of a published shape with random weights. The tensors'
 * names and shapes come from the descriptor: it is built with the shape's keys, and the tensors
 * that it asks for are listed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/paths.h"
#include "common/progress.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/types.h"
#include "like.h"
#include "common/shape_source.h"
#include "tool.h"
#include "common/shape_types.h"
#include "vocab.h"
#include "weights.h"

#define TOOL "llm-bench make"

typedef struct make_tensor {
    struct make *make;
    char name[128];
    ggl_type type;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS], n;
} make_tensor;

typedef struct make {
    bench_shape shape;
    ggl_type wanted;
    make_tensor **tensor; /* each allocated on its own, as the writer keeps its address */
    size_t n_tensors, cap;
    bench_weights *weights;
    bool failed;
    double done; /* bytes of the tensors that are written */
} make;

/* --- the tensors of a shape -------------------------------------------------------------------- */

/* Adds a tensor that the descriptor asks for. */
static void add_tensor(void *ctx, const llm_arch_tensor *t) {
    make *m = ctx;
    for (size_t i = 0; i < m->n_tensors; i++)
        if (strcmp(m->tensor[i]->name, t->name) == 0)
            return;
    make_tensor *own = calloc(1, sizeof *own);
    if (!own || strlen(t->name) >= sizeof own->name ||
        !ggl_grow(&m->tensor, &m->cap, m->n_tensors + 1, sizeof *m->tensor)) {
        free(own);
        m->failed = true;
        return;
    }
    *own = (make_tensor){.make = m, .type = t->type, .n_dims = t->n_dims, .n = 1};
    snprintf(own->name, sizeof own->name, "%s", t->name);
    memcpy(own->ne, t->ne, sizeof own->ne);
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        own->n *= own->ne[d];
    m->tensor[m->n_tensors++] = own;
}

/* Builds the descriptor with the shape's keys, to list its tensors. */
static ggl_status list_tensors(make *m, ggl_error *err) {
    llm_arch *arch = NULL;
    bench_shape_source shape = {
        .shape = &m->shape, .wanted = m->wanted, .each = add_tensor, .ctx = m};
    llm_arch_source source = bench_shape_source_of(&shape);
    llm_arch_params p = {.size = sizeof p, .n_ctx = 64, .n_vocab = m->shape.n_vocab};
    ggl_graph_params gp = ggl_graph_default();
    gp.n_pos = 64;
    ggl_graph *g = ggl_graph_new(&gp);
    ggl_status st =
        g ? llm_arch_open(&arch, m->shape.arch, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = llm_arch_build(arch, &source, &p, g, NULL, err);
    if (st == GGL_OK && m->failed)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for the list of tensors");
    ggl_graph_free(g);
    llm_arch_free(arch);
    return st == GGL_OK ? st : ggl_within(err, st, "%s", m->shape.name);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_key(ggl_gguf_writer *w, const bench_shape *s, const bench_key *k) {
    uint32_t whole = (uint32_t)k->number;
    float number = (float)k->number;
    uint8_t flag = k->number != 0;
    switch (k->kind) {
    case BENCH_KEY_INTEGER:
        ggl_gguf_put(w, k->name, GGL_GGUF_U32, false, &whole, 1);
        break;
    case BENCH_KEY_FLOAT:
        ggl_gguf_put(w, k->name, GGL_GGUF_F32, false, &number, 1);
        break;
    case BENCH_KEY_BOOL:
        ggl_gguf_put(w, k->name, GGL_GGUF_BOOL, false, &flag, 1);
        break;
    case BENCH_KEY_STRING:
        ggl_gguf_put_string(w, k->name, k->string, strlen(k->string));
        break;
    case BENCH_KEY_LIST:
        ggl_gguf_put(w, k->name, GGL_GGUF_I32, true, s->list + k->first, (uint64_t)k->n);
        break;
    }
}

static double bytes_of(const make_tensor *t) {
    const ggl_type_info *info = ggl_type_get((int)t->type);
    return (double)t->n / (double)info->block * (double)info->size;
}

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const make_tensor *t = ctx;
    double mean, sigma;
    bench_shape_values(BENCH_SHAPES, t->name, &mean, &sigma);
    const ggl_status st =
        bench_weights_write(t->make->weights, t->name, t->type, t->n, mean, sigma, to, err);
    progress_set(t->make->done += bytes_of(t));
    return st;
}

static ggl_status write_file(make *m, const char *path, ggl_error *err) {
    const bench_shape *s = &m->shape;
    const uint32_t quantization_version = 2;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_gguf_put_string(w, "general.architecture", s->arch, strlen(s->arch));
    ggl_gguf_put_string(w, "general.name", s->name, strlen(s->name));
    ggl_gguf_put(w, "general.quantization_version", GGL_GGUF_U32, false, &quantization_version, 1);
    for (int i = 0; i < s->n_keys; i++)
        put_key(w, s, &s->key[i]);
    ggl_status st = bench_vocab_put(w, s, err);
    for (size_t i = 0; i < m->n_tensors; i++)
        ggl_gguf_put_tensor_later(w, m->tensor[i]->name, m->tensor[i]->type, m->tensor[i]->n_dims,
                                  m->tensor[i]->ne, fill, m->tensor[i]);
    if (st == GGL_OK)
        st = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return st;
}

/* --- the command ------------------------------------------------------------------------------ */

static void make_fini(make *m) {
    for (size_t i = 0; i < m->n_tensors; i++)
        free(m->tensor[i]);
    ggl_free(m->tensor);
    bench_weights_free(m->weights);
}

static void sizes(const make *m, double *params, double *bytes) {
    *params = *bytes = 0;
    for (size_t i = 0; i < m->n_tensors; i++) {
        *params += (double)m->tensor[i]->n;
        *bytes += bytes_of(m->tensor[i]);
    }
}

static int list_shapes(void) {
    char name[BENCH_SHAPE_NAME];
    ggl_error err = {0};
    for (int k = 0; bench_shape_at(BENCH_SHAPES, k, name); k++) {
        make m = {.wanted = GGL_F16};
        double params, bytes;
        ggl_status st = bench_shape_find(&m.shape, BENCH_SHAPES, name, &err);
        if (st == GGL_OK)
            st = list_tensors(&m, &err);
        sizes(&m, &params, &bytes);
        if (st == GGL_OK)
            printf("%-20s %-10s %5zu tensors %10.1f M parameters\n", name, m.shape.arch,
                   m.n_tensors, params * 1e-6);
        make_fini(&m);
        if (st != GGL_OK)
            return tool_error(TOOL, 1, "%s", err.msg);
    }
    return 0;
}

typedef struct make_options {
    int64_t n_layer, n_vocab;
    uint64_t seed;
    const char *like; /* a model; NULL: a shape has a name */
    bool list;
} make_options;

static int make_model(const char *shape, const char *type, const char *path,
                      const make_options *o) {
    make m = {.n_tensors = 0};
    ggl_error err = {0};
    ggl_status st = bench_type_find(type, &m.wanted, &err);
    if (st == GGL_OK && o->like) {
        st = bench_shape_like(&m.shape, o->like, &err);
        if (st != GGL_OK)
            return tool_error(TOOL, 1, "--like: %s", err.msg);
    } else if (st == GGL_OK) {
        st = bench_shape_find(&m.shape, BENCH_SHAPES, shape, &err);
    }
    if (st == GGL_OK && o->n_layer > 0)
        st = bench_shape_set_layers(&m.shape, o->n_layer, &err);
    if (o->n_vocab > 0)
        m.shape.n_vocab = o->n_vocab;
    if (st != GGL_OK)
        return tool_error(TOOL, 2, "%s", err.msg);
    st = list_tensors(&m, &err);
    m.weights = bench_weights_new(o->seed);
    if (st == GGL_OK && !m.weights)
        st = ggl_fail(&err, GGL_NOMEM, "out of memory");
    double params, bytes;
    sizes(&m, &params, &bytes);
    progress_begin(PROGRESS_BYTES, bytes, "writing %s", path);
    if (st == GGL_OK)
        st = write_file(&m, path, &err);
    progress_end();
    if (st == GGL_OK)
        printf("%s: %s, %zu tensor%s, %.1f M parameters, %.1f MiB\n", path, m.shape.arch,
               m.n_tensors, llm_amount_s((int64_t)m.n_tensors), params * 1e-6, bytes / 1048576);
    else
        tool_error(TOOL, 1, "%s", err.msg);
    make_fini(&m);
    return st == GGL_OK ? 0 : 1;
}

enum { MOST_NAMES = 64 };

/* The names of shapes, and those of types that models may have, for completion; end with NULL. */
static const char *const *shape_names(void) {
    static char text[MOST_NAMES][BENCH_SHAPE_NAME];
    static const char *name[MOST_NAMES + 1];
    for (int k = 0; k < MOST_NAMES && bench_shape_at(BENCH_SHAPES, k, text[k]); k++)
        name[k] = text[k];
    return name;
}

static const char *const *type_names(void) {
    static const char *name[MOST_NAMES + 1];
    for (int k = 0; k < MOST_NAMES && ggl_type_at(k); k++)
        name[k] = ggl_type_at(k)->name;
    return name;
}

int bench_make(int argc, char **argv) {
    make_options o = {.seed = 1};
    arg_list given = {0};
    const arg_option options[] = {
        {"--seed", ARG_UINT64, &o.seed, .value = "N",
         .help = "the same seed gives the same file (default 1)"},
        {"--layers", ARG_INT, &o.n_layer, .value = "N",
         .help = "use N layers instead of all layers of the shape", .min = 1, .max = 100000},
        {"--vocab", ARG_INT, &o.n_vocab, .value = "N",
         .help = "use N tokens of vocabulary instead of the shape's number", .min = 1,
         .max = 1 << 24},
        {"--like", ARG_STRING, &o.like, .value = "FILE",
         .help = "in place of a SHAPE: a plain model as wide as this one, with as many layers and "
                 "about as many multiply-adds for a token"},
        {"--list", ARG_FLAG, &o.list, .help = "print the known shapes"},
        {0}};
    static const args_example examples[] = {
        {"llm-bench make --list", "prints the known shapes"},
        {"llm-bench make tinyllama-1.1b q8_0 random.gguf",
         "writes a model of 1.1 billion parameters in q8_0"},
        {"llm-bench make --like model.gguf q4_0 like.gguf",
         "writes a plain model that costs as much as model.gguf"},
        {0}};
    const args_operand operands[] = {{"SHAPE", shape_names()}, {"TYPE", type_names()}, {0}};
    const args_spec spec = {
        TOOL,
        "SHAPE TYPE OUT.gguf",
        "Writes a model of a published shape with random weights, for measuring speed only.",
        options,
        &given,
        NULL,
        .examples = examples,
        .operands = operands};
    int code = args_parse(&spec, argc, argv);
    if (code < 0 && o.list)
        code = list_shapes();
    const size_t first = o.like ? 0 : 1; /* a SHAPE comes before */
    if (code < 0 && given.n != first + 2)
        code = tool_error(TOOL, 2,
                          o.like ? "TYPE and OUT.gguf are needed beside --like, and no SHAPE"
                                 : "SHAPE, TYPE and OUT.gguf are needed; --list prints the shapes");
    if (code < 0)
        code = tool_check_paths(
            TOOL,
            (const tool_path[]){{"--like", o.like, .needed = o.like != NULL, .model = true},
                                {"OUT.gguf", given.s[first + 1], .written = true}},
            2);
    if (code < 0)
        code = make_model(given.s[0], given.s[first], given.s[first + 1], &o);
    args_list_fini(&given);
    return code;
}

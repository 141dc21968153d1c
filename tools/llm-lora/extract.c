/* llm-lora extract: an adapter that turns one model into another, as nearly as its rank allows. For
 * each matrix, D = tuned - base ~ U S V^T; lora_b is U sqrt(S), lora_a sqrt(S) V^T. If a model multiplies
 * its products with a matrix by a factor, that matrix times the factor is meant. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/gguf_text.h"
#include "common/hints.h"
#include "common/load.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/work_share.h"
#include "common/work_threads.h"
#include "ggl/alloc.h"
#include "ggl/internal/show.h"
#include "ggl/internal/types.h"
#include "low_rank.h"
#include "tool.h"

static const char TOOL[] = "llm-lora extract";

/* A pair of the adapter, whose numbers are in memory. */
typedef struct extract_pair {
    char name[256]; /* of the weight */
    int n_dims;     /* 2, or 3: a stack */
    int64_t n_in, n_out, n, rank;
    bool flipped; /* an embedding: the file has both the other way round */
    float *a, *b; /* as in the file: [n][rank][in] and [n][out][rank]; of an embedding, the halves
                   * are [out][rank] and [in][rank] */
    void *data_a, *data_b; /* the same in the file's type */
} extract_pair;

typedef struct extract_job {
    const char *out;
    int64_t rank;
    double energy; /* 1: exactly `rank` values */
    int type, n_threads;
    const ggl_gguf *base, *tuned;
    extract_pair *pair;
    size_t n_pairs, n_left_out;
    double norm2, kept2; /* of all differences: sums of squares, and the part that the pairs have */
    double done;
    lora_factors factors[2]; /* of base and tuned */
    /* the matrix that is being read, and its factors */
    const ggl_gguf_tensor *x, *y;
    const lora_factor *by_x, *by_y;
    int64_t first;
    int64_t m;
    float *row; /* [n_threads][in]: rows of the base */
    /* the rows that are being read, and their difference */
    const char *rows_x, *rows_y;
    float *piece;
} extract_job;

/* --- differences ------------------------------------------------------------------------------ */

static const ggl_gguf_tensor *find(const ggl_gguf *f, ggl_str name) {
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)name.n, name.s);
    return ggl_gguf_find_tensor(f, text);
}

/* Computes a row of the piece: tuned - base. */
static void difference_row(void *ctx, size_t i, int thread) {
    const extract_job *j = ctx;
    const int64_t in = j->x->ne[0];
    float *base = j->row + (size_t)thread * (size_t)in, *to = j->piece + i * (size_t)in;
    ggl_type_get((int)j->x->type)->to_float(j->rows_x + i * ggl_row_size(j->x->type, in), base, in);
    ggl_type_get((int)j->y->type)->to_float(j->rows_y + i * ggl_row_size(j->y->type, in), to, in);
    if (j->by_x || j->by_y) {
        const int64_t row = j->first + (int64_t)i;
        const double x = lora_factor_at(j->by_x, j->x, j->m, row);
        const double y = lora_factor_at(j->by_y, j->y, j->m, row);
        for (int64_t e = 0; e < in; e++)
            to[e] = (float)(y * (double)to[e] - x * (double)base[e]);
        return;
    }
    for (int64_t e = 0; e < in; e++)
        to[e] -= base[e];
}

/* Returns the bytes of the first n elements of a tensor, whole rows. */
static size_t bytes_of(const ggl_gguf_tensor *t, int64_t n) {
    return ggl_bytes_before(ggl_type_get((int)t->type), t->ne[0], n);
}

static bool difference_rows(void *ctx, int64_t first, int64_t n, float *out) {
    extract_job *j = ctx;
    const int64_t in = j->x->ne[0], at = (j->m * j->x->ne[1] + first) * in;
    j->rows_x = (const char *)j->x->data + bytes_of(j->x, at);
    j->rows_y = (const char *)j->y->data + bytes_of(j->y, at);
    j->piece = out;
    j->first = first;
    llm_work_share(j->n_threads, (size_t)n, difference_row, j);
    ggl_gguf_drop(j->base, j->rows_x, bytes_of(j->x, n * in));
    ggl_gguf_drop(j->tuned, j->rows_y, bytes_of(j->y, n * in));
    return !process_stopped;
}

/* True if both tensors have the same bytes and factors. */
static bool is_same(const extract_job *j) {
    const lora_factor *x = j->by_x, *y = j->by_y;
    const bool same_factor =
        x && y ? x->n == y->n && memcmp(x->value, y->value, (size_t)x->n * sizeof *x->value) == 0
               : !x && !y;
    return same_factor && j->x->type == j->y->type &&
           memcmp(j->x->data, j->y->data, j->x->size) == 0;
}

/* Puts matrix m of a decomposition into the pair, and frees it. `rank` columns are used, fewer of it are
 * zeros. */
static void put_matrix(extract_pair *p, int64_t m, low_rank *d) {
    float *a = p->a + m * p->rank * p->n_in, *b = p->b + m * p->rank * p->n_out;
    for (int64_t r = 0; r < d->rank && r < p->rank; r++) {
        const double s = sqrt(d->sigma[r]);
        for (int64_t i = 0; i < p->n_in; i++)
            *(p->flipped ? &b[i * p->rank + r] : &a[r * p->n_in + i]) =
                (float)(s * d->v[r * p->n_in + i]);
        for (int64_t o = 0; o < p->n_out; o++)
            *(p->flipped ? &a[o * p->rank + r] : &b[o * p->rank + r]) =
                (float)(s * d->u[r * p->n_out + o]);
    }
    low_rank_fini(d);
}

static ggl_status fail_memory(ggl_error *err) {
    return process_stopped ? ggl_fail(err, GGL_IO, "interrupted")
                           : ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Decomposes all matrices of the tensor x, and adds a pair unless they are equal. */
static ggl_status decompose(extract_job *j, ggl_error *err) {
    const ggl_gguf_tensor *t = j->x;
    extract_pair *p = &j->pair[j->n_pairs];
    *p = (extract_pair){.n_dims = t->n_dims, .n_in = t->ne[0], .n_out = t->ne[1], .n = t->ne[2]};
    snprintf(p->name, sizeof p->name, "%.*s", (int)t->name.n, t->name.s);
    p->flipped = strcmp(p->name, "token_embd.weight") == 0;
    low_rank *d = ggl_calloc((size_t)p->n, sizeof *d);
    j->row = ggl_calloc((size_t)j->n_threads, (size_t)p->n_in * sizeof *j->row);
    const low_rank_source source = {p->n_out, p->n_in, difference_rows, j, j->n_threads};
    double norm2 = 0, kept2 = 0;
    bool ok = d && j->row;
    for (j->m = 0; ok && j->m < p->n; j->m++) {
        ok = low_rank_new(&d[j->m], &source, j->rank, j->energy);
        p->rank = ok && d[j->m].rank > p->rank ? d[j->m].rank : p->rank;
        norm2 += d ? d[j->m].norm2 : 0;
        kept2 += d ? d[j->m].kept * d[j->m].norm2 : 0;
    }
    ggl_status s = ok ? GGL_OK : fail_memory(err);
    if (s == GGL_OK && !isfinite(norm2))
        s = ggl_fail(err, GGL_FORMAT, "a difference of tensor '%s' of %s and %s is NaN or infinite",
                     p->name, ggl_gguf_name(j->base), ggl_gguf_name(j->tuned));
    if (s == GGL_OK && p->rank > 0) {
        p->a = ggl_calloc((size_t)(p->n * p->rank), (size_t)(p->flipped ? p->n_out : p->n_in) * 4);
        p->b = ggl_calloc((size_t)(p->n * p->rank), (size_t)(p->flipped ? p->n_in : p->n_out) * 4);
        s = p->a && p->b ? GGL_OK : fail_memory(err);
    }
    for (int64_t m = 0; d && m < p->n; m++) {
        if (s == GGL_OK && p->rank > 0)
            put_matrix(p, m, &d[m]);
        low_rank_fini(&d[m]);
    }
    ggl_free(d);
    ggl_free(j->row);
    if (s != GGL_OK || p->rank == 0) {
        ggl_free(p->a);
        ggl_free(p->b);
        return s;
    }
    tool_begin_line();
    ggl_fprint(stdout, "%-28s rank %4" PRId64 "  %6.2f %% of the energy, error %.2e\n", p->name,
               p->rank, 100 * kept2 / norm2, sqrt(fmax(0, 1 - kept2 / norm2)));
    j->norm2 += norm2;
    j->kept2 += kept2;
    j->n_pairs++;
    return GGL_OK;
}

/* --- the models ------------------------------------------------------------------------------- */

/* Compares a tensor of both models. */
static ggl_status extract_tensor(extract_job *j, const ggl_gguf_tensor *t, ggl_error *err) {
    j->x = t;
    j->y = find(j->tuned, t->name);
    if (!j->y || memcmp(t->ne, j->y->ne, sizeof t->ne) != 0)
        return ggl_fail(err, GGL_SHAPE,
                        "tensor '%.*s' of %s %s in %s: these are not a model and its tuned copy",
                        (int)t->name.n, t->name.s, ggl_gguf_name(j->base),
                        j->y ? "has another shape" : "is missing", ggl_gguf_name(j->tuned));
    ggl_status s = lora_factor_of(&j->factors[0], t, &j->by_x, err);
    if (s == GGL_OK)
        s = lora_factor_of(&j->factors[1], j->y, &j->by_y, err);
    if (s != GGL_OK || t->size == 0 || is_same(j) || lora_is_factor(&j->factors[0], t->name))
        return s;
    if (t->n_dims == 2 || t->n_dims == 3)
        return decompose(j, err);
    j->n_left_out++;
    tool_warning(TOOL, "%.*s differs, but is not a matrix: an adapter cannot change it",
                 (int)t->name.n, t->name.s);
    return GGL_OK;
}

/* Encodes a half in the file's type. False: out of memory. */
static bool encode(const extract_job *j, const float *x, int64_t n, void **out) {
    const ggl_type_info *t = ggl_type_get(j->type);
    *out = ggl_calloc(1, ggl_row_size(t->type, n));
    if (*out)
        t->from_float(x, *out, n);
    return *out != NULL;
}

static void put_pair(const extract_job *j, ggl_gguf_writer *w, const extract_pair *p) {
    char name[300];
    const ggl_type type = ggl_type_get(j->type)->type;
    const int64_t a[3] = {p->flipped ? p->rank : p->n_in, p->flipped ? p->n_out : p->rank, p->n};
    const int64_t b[3] = {p->rank, p->flipped ? p->n_in : p->n_out, p->n};
    snprintf(name, sizeof name, "%s.lora_a", p->name);
    ggl_gguf_put_tensor(w, name, type, p->n_dims, a, p->data_a);
    snprintf(name, sizeof name, "%s.lora_b", p->name);
    ggl_gguf_put_tensor(w, name, type, p->n_dims, b, p->data_b);
}

static ggl_status write_adapter(const extract_job *j, ggl_str architecture, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status s = GGL_OK;
    ggl_gguf_put_string(w, "general.type", "adapter", 7);
    ggl_gguf_put_string(w, "general.architecture", architecture.s, architecture.n);
    ggl_gguf_put_string(w, "adapter.type", "lora", 4);
    for (size_t i = 0; i < j->n_pairs && s == GGL_OK; i++) {
        extract_pair *p = &j->pair[i];
        if (!encode(j, p->a, p->n * p->rank * (p->flipped ? p->n_out : p->n_in), &p->data_a) ||
            !encode(j, p->b, p->n * p->rank * (p->flipped ? p->n_in : p->n_out), &p->data_b))
            s = ggl_fail(err, GGL_NOMEM, "out of memory");
        else
            put_pair(j, w, p);
    }
    if (s == GGL_OK)
        s = ggl_gguf_writer_write(w, j->out, err);
    ggl_gguf_writer_free(w);
    return s;
}

/* Returns false with an error if the file does not say its architecture. */
static bool architecture_of(const ggl_gguf *f, ggl_str *out, ggl_error *err) {
    const int found = ggl_gguf_get_string(f, "general.architecture", out, err);
    if (found == 0)
        (void)ggl_fail(err, GGL_FORMAT, "the key general.architecture is missing in %s",
                       ggl_gguf_name(f));
    return found == 1;
}

static ggl_status extract(extract_job *j, ggl_error *err) {
    ggl_str architecture, other;
    if (!architecture_of(j->base, &architecture, err) || !architecture_of(j->tuned, &other, err))
        return GGL_FORMAT;
    if (llm_arch_is_file_rotated(j->base) || llm_arch_is_file_rotated(j->tuned))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "weights are stored rotated (prism.hadamard.*): an adapter is for weights "
                        "as the model computes with them");
    if (architecture.n != other.n || memcmp(architecture.s, other.s, other.n) != 0)
        return ggl_fail(err, GGL_FORMAT, "%s has the architecture '%.*s', %s '%.*s'",
                        ggl_gguf_name(j->base), (int)architecture.n, architecture.s,
                        ggl_gguf_name(j->tuned), (int)other.n, other.s);
    const size_t n = ggl_gguf_n_tensors(j->base);
    ggl_status s = GGL_OK;
    j->pair = ggl_calloc(n + 1, sizeof *j->pair);
    if (!j->pair)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    progress_begin("tensors", (double)n, "decomposing");
    for (size_t i = 0; i < n && s == GGL_OK; i++) {
        progress_set((double)i);
        s = extract_tensor(j, ggl_gguf_tensor_at(j->base, i), err);
    }
    progress_end();
    if (s == GGL_OK && j->n_pairs == 0)
        s = ggl_fail(err, GGL_NOT_FOUND,
                     "no matrix of %s differs from that of %s: there is nothing to extract",
                     ggl_gguf_name(j->tuned), ggl_gguf_name(j->base));
    if (s == GGL_OK)
        s = write_adapter(j, architecture, err);
    return s;
}

/* --- the command ------------------------------------------------------------------------------ */

/* Finds the factors of a model that may have some. Only its descriptor tells. */
static ggl_status find_factors(extract_job *j, int k, const char *path, llm_model **m,
                               ggl_error *err) {
    const llm_model_params p = {.size = sizeof p};
    if (!lora_has_scales(k ? j->tuned : j->base))
        return GGL_OK;
    const ggl_status s = tool_load_model(m, path, &p, 0, err);
    return s == GGL_OK ? lora_factors_find(&j->factors[k], *m, err) : s;
}

static int open_and_extract(extract_job *j, const arg_list *files) {
    ggl_error err = {0};
    ggl_gguf *f[2] = {NULL, NULL};
    ggl_status s = GGL_OK;
    for (int k = 0; k < 2 && s == GGL_OK; k++)
        s = tool_load_file(&f[k], files->s[k], NULL, false, &err);
    j->base = f[0];
    j->tuned = f[1];
    llm_model *m[2] = {NULL, NULL};
    for (int k = 0; k < 2 && s == GGL_OK; k++)
        s = find_factors(j, k, files->s[k], &m[k], &err);
    if (s == GGL_OK)
        s = extract(j, &err);
    int code = 0;
    if (s != GGL_OK)
        code = tool_error(TOOL, process_stopped ? process_stop_code() : 1, "%s%s%s", err.msg,
                          process_stopped ? "; nothing was written to " : "",
                          process_stopped ? j->out : "");
    else
        ggl_fprint(stdout, "%s: %zu pair%s, %.2f %% of the energy of the differences\n", j->out,
                   j->n_pairs, j->n_pairs == 1 ? "" : "s",
                   j->norm2 > 0 ? 100 * j->kept2 / j->norm2 : 100);
    for (size_t i = 0; i < j->n_pairs; i++) {
        void *all[] = {j->pair[i].a, j->pair[i].b, j->pair[i].data_a, j->pair[i].data_b};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            ggl_free(all[k]);
    }
    ggl_free(j->pair);
    for (int k = 0; k < 2; k++) {
        lora_factors_fini(&j->factors[k]);
        llm_model_free(m[k]);
        ggl_gguf_close(f[k]);
    }
    return code;
}

/* Reads --rank, --energy and --max-rank. Returns -1, or an exit code. */
static int read_rank(extract_job *j, const char *rank, double energy, int64_t max_rank) {
    bool range;
    if (rank && strcmp(rank, "auto") != 0) {
        if (!args_read_int(rank, &j->rank, &range) || j->rank < 1 || j->rank > 1 << 16)
            return tool_error(TOOL, 2, "--rank: '%s' is neither a number from 1 to 65536 nor auto",
                              rank);
        j->energy = 1;
        return energy > 0 ? tool_error(TOOL, 2, "--energy needs --rank auto") : -1;
    }
    j->energy = energy > 0 ? energy : 0.9;
    j->rank = max_rank;
    return -1;
}

int lora_extract(int argc, char **argv) {
    static const char *const types[] = {"f32", "f16", "bf16", NULL};
    static const int type_ids[] = {GGL_F32, GGL_F16, GGL_BF16};
    arg_list files = {0};
    extract_job j = {0};
    const char *rank = "16";
    double energy = 0;
    int64_t max_rank = 128, n_threads = work_threads();
    int type = 0;
    const arg_option options[] = {
        {"-o --output", ARG_STRING, &j.out, .value = "ADAPTER", .help = "the adapter to write"},
        {"-r --rank", ARG_STRING, &rank, .value = "N",
         .help =
             "the rank of all pairs (default: 16); auto: for each the least that --energy needs"},
        {"--energy", ARG_FLOAT, &energy, .value = "E",
         .help = "with --rank auto: the part of a difference's squares that is kept (default: 0.9)",
         .min = 0.001, .max = 1},
        {"--max-rank", ARG_INT, &max_rank, .value = "N",
         .help = "with --rank auto: the largest rank (default: 128)", .min = 1, .max = 1 << 16},
        {"--type", ARG_CHOICE, &type, .value = "TYPE", .choices = types,
         .help = "the type of the halves: f32 (default), f16 or bf16"},
        {"-t --threads", ARG_INT, &n_threads, .value = "N",
         .help = "threads (default: the number of processors); the file is the same for any number",
         .min = 1, .max = TOOL_MAX_THREADS},
        {0}};
    static const args_example examples[] = {
        {"llm-lora extract base.gguf tuned.gguf -o tuned-lora.gguf --rank 32",
         "what fine-tuning changed, as an adapter"},
        {"llm-lora extract base.gguf tuned.gguf -o lora.gguf -r auto --energy 0.95",
         "as small as possible for 95 % of the difference"},
        {0}};
    const args_spec spec = {
        TOOL,
        "BASE TUNED -o ADAPTER [options]",
        "Makes a LoRA adapter of the difference of two models: the best "
        "approximation of each matrix's difference by one of low rank. Prints how "
        "much of it each pair has.",
        options,
        &files,
        &lora_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    const tool_path paths[] = {{"BASE", files.s[0], .needed = true, .model = true},
                               {"TUNED", files.s[1], .needed = true, .model = true},
                               {"-o", j.out, .written = true}};
    code = j.out ? read_rank(&j, rank, energy, max_rank)
                 : tool_error(TOOL, 2, "-o ADAPTER is missing");
    if (code < 0)
        code = tool_check_paths(TOOL, paths, 3);
    j.type = type_ids[type];
    j.n_threads = (int)n_threads;
    process_wait_for_stop();
    if (code < 0)
        code = open_and_extract(&j, &files);
    args_list_fini(&files);
    return code;
}

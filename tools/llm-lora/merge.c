/* llm-lora merge: writes a model whose weights are W + scale * B * A, so that it needs no adapter.
 *
 * Row o of a weight becomes W[o] + sum_r (scale * B[o][r]) * A[r], computed in double precision and
 * rounded once; with magnitudes (DoRA), this times magnitude[o] / |W[o] + sum_r ..|. If the model multiplies the product with W by a factor s, W + (scale * B A) / s is written. Rows are divided among threads; the result does not depend on their number. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/gguf_text.h"
#include "common/hints.h"
#include "common/load.h"
#include "common/model_folder.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/work_share.h"
#include "common/work_threads.h"
#include "ggl/internal/os_fs.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/number.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "llm/internal/adapter.h"
#include "llm/internal/lora_folder.h"
#include "llm/internal/model.h"
#include "quant/quant_mix.h"
#include "tool.h"

static const char TOOL[] = "llm-lora merge";

enum { STEP = 1 << 20 }; /* elements that are computed at a time, at least a row */

typedef struct merge_use {
    llm_adapter *adapter;
    const ggl_gguf *file;
    double scale;
} merge_use;

typedef struct merge_job {
    const char *out;
    const ggl_gguf *model;
    merge_use *use;
    size_t n_use;
    const ggl_type_info *type; /* of changed tensors; NULL: their own */
    int n_threads;
    lora_factors factors;
    gguf_copy_job copy;
    size_t n_changed;
    bool is_sense; /* the model is an eye or an ear */
    size_t
        n_other; /* pairs that another file has the weights of: an eye, or the text model beside this one */
    /* the matrix that is being changed */
    const ggl_gguf_tensor *t;
    const lora_factor *factor; /* NULL: none */
    const ggl_type_info *from, *to;
    const uint8_t *source; /* its rows */
    int64_t n_in, m, first;
    llm_lora_matrix *change; /* [2 * n_use] */
    size_t n_change;
    int64_t most_rank;
    uint8_t *result;
    double *acc;  /* [n_threads][2][in] */
    float *row;   /* [n_threads][in] */
    float *ranks; /* [n_threads][most_rank] */
    bool *bad;    /* [n_threads]: a result is no finite number */
    /* sums of squares, for llm_lora_keep: of each row of a step, as the sum does not depend on threads, and of the tensor */
    double *row_change, *row_lost;
    double change2, lost2;
    llm_lora_kept kept;
    bool loses_blocks; /* a tensor of a quantized type keeps too little */
} merge_job;

/* A tensor to write. */
typedef struct merge_tensor {
    merge_job *job;
    const ggl_gguf_tensor *from;
    ggl_str name; /* of the result, which is `from`'s except for an output made of the embedding */
} merge_tensor;

/* --- rows ------------------------------------------------------------------------------------- */

static void merge_row(void *ctx, size_t i, int thread) {
    merge_job *j = ctx;
    const size_t in = (size_t)j->n_in, k = (size_t)thread;
    double *acc = j->acc + 2 * k * in;
    float *row = j->row + k * in, *ranks = j->ranks + k * (size_t)j->most_rank;
    const double weight = lora_factor_at(j->factor, j->t, j->m, j->first + (int64_t)i);
    j->from->to_float(j->source + i * ggl_row_size(j->from->type, j->n_in), row, j->n_in);
    llm_lora_change_row(j->change, j->n_change, j->m, j->first + (int64_t)i, weight, row, ranks, in,
                        acc);
    bool finite = true;
    double lost2 = 0;
    j->row_change[i] = llm_lora_change(acc, row, in);
    for (size_t e = 0; e < in; e++) {
        row[e] = (float)acc[e];
        finite &= isfinite(row[e]) != 0;
    }
    char *to = (char *)j->result + i * ggl_row_size(j->to->type, j->n_in);
    j->to->from_float(row, to, j->n_in);
    /* a finite number, or the scale of a block, can be beyond the type's range */
    j->to->to_float(to, row, j->n_in);
    for (size_t e = 0; e < in; e++) {
        lost2 += ((double)row[e] - acc[e]) * ((double)row[e] - acc[e]);
        finite &= isfinite(row[e]) != 0;
    }
    j->row_lost[i] = lost2;
    j->bad[k] |= !finite;
}

static ggl_status merge_matrix(merge_job *j, const ggl_gguf_tensor *t, ggl_gguf_sink *to,
                               ggl_error *err) {
    const size_t from_size = ggl_row_size(j->from->type, j->n_in);
    const size_t to_size = ggl_row_size(j->to->type, j->n_in);
    const int64_t step = STEP / j->n_in > 0 ? STEP / j->n_in : 1;
    ggl_status s = GGL_OK;
    for (int64_t n; s == GGL_OK && j->first < t->ne[1]; j->first += n) {
        n = t->ne[1] - j->first < step ? t->ne[1] - j->first : step;
        j->source = (const uint8_t *)t->data + (size_t)(j->m * t->ne[1] + j->first) * from_size;
        llm_work_share(j->n_threads, (size_t)n, merge_row, j);
        for (int k = 0; k < j->n_threads && s == GGL_OK; k++)
            if (j->bad[k])
                s = ggl_fail(err, GGL_FORMAT,
                             "a merged weight is NaN or infinite in %s, in rows %" PRId64
                             " to %" PRId64 ": the adapter, or its scale, does not fit this model",
                             j->to->name, j->first, j->first + n - 1);
        for (int64_t i = 0; i < n; i++) {
            j->change2 += j->row_change[i];
            j->lost2 += j->row_lost[i];
        }
        if (s == GGL_OK)
            s = ggl_gguf_sink_write(to, j->result, (size_t)n * to_size, err);
        ggl_gguf_drop(j->model, j->source, (size_t)n * from_size);
        j->copy.done += (double)((size_t)n * from_size);
        progress_set(j->copy.done);
        if (s == GGL_OK && process_stopped)
            s = ggl_fail(err, GGL_IO, "interrupted");
    }
    return s;
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* Adds the changes of a weight to j->change. */
static void add_changes(merge_job *j, ggl_str name) {
    for (size_t i = 0; i < j->n_use; i++) {
        llm_lora_matrix *c = &j->change[j->n_change];
        if (!llm_adapter_find_pair(j->use[i].file, name, &c->pair))
            continue;
        const double alpha = llm_adapter_describe(j->use[i].adapter).alpha;
        c->scale = alpha != 0 ? j->use[i].scale * alpha / (double)c->pair.rank : j->use[i].scale;
        if (c->scale == 0)
            continue;
        j->most_rank = c->pair.rank > j->most_rank ? c->pair.rank : j->most_rank;
        j->n_change++;
    }
}

/* Finds the changes of the tensor `name`, which is made of t: sets j->change and j->n_change. */
static void find_changes(merge_job *j, const ggl_gguf_tensor *t, ggl_str name) {
    j->n_change = 0;
    j->most_rank = 1;
    add_changes(j, name);
    if (name.n != t->name.n || memcmp(name.s, t->name.s, name.n) !=
                                   0) /* an output made of the embedding has the changes of both */
        add_changes(j, t->name);
}

static bool allocate(merge_job *j, const ggl_gguf_tensor *t) {
    const size_t in = (size_t)t->ne[0], n = (size_t)j->n_threads;
    const size_t rows = STEP / in > 0 ? STEP / in : 1;
    j->n_in = t->ne[0];
    j->result = ggl_calloc(rows, ggl_row_size(j->to->type, j->n_in));
    j->acc = ggl_calloc(2 * n, in * sizeof *j->acc);
    j->row = ggl_calloc(n, in * sizeof *j->row);
    j->ranks = ggl_calloc(n, (size_t)j->most_rank * sizeof *j->ranks);
    j->bad = ggl_calloc(n, sizeof *j->bad);
    j->row_change = ggl_calloc(rows, sizeof *j->row_change);
    j->row_lost = ggl_calloc(rows, sizeof *j->row_lost);
    bool ok = j->result && j->acc && j->row && j->ranks && j->bad && j->row_change && j->row_lost;
    for (size_t c = 0; c < j->n_change; c++) {
        llm_lora_matrix *x = &j->change[c];
        x->columns = ggl_calloc((size_t)x->pair.rank, in * sizeof *x->columns);
        ok &= x->columns != NULL;
    }
    return ok;
}

static void release(merge_job *j) {
    void *all[] = {j->result, j->acc, j->row, j->ranks, j->bad, j->row_change, j->row_lost};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ggl_free(all[i]);
    for (size_t c = 0; c < j->n_change; c++)
        ggl_free(j->change[c].columns);
}

static const ggl_type_info *type_of(const merge_job *j, const ggl_gguf_tensor *t) {
    return j->type ? j->type : ggl_type_get((int)t->type);
}

/* Writes a changed tensor: a matrix, or a stack of them. */
static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const merge_tensor *x = ctx;
    merge_job *j = x->job;
    const ggl_gguf_tensor *t = x->from;
    find_changes(j, t, x->name);
    j->t = t;
    ggl_status s = lora_factor_of(&j->factors, t, &j->factor, err);
    j->from = ggl_type_get((int)t->type);
    j->to = type_of(j, t);
    j->change2 = j->lost2 = 0;
    if (s == GGL_OK && !allocate(j, t))
        s = ggl_fail(err, GGL_NOMEM, "out of memory");
    for (j->m = 0; s == GGL_OK && j->m < t->ne[2]; j->m++) {
        for (size_t c = 0; c < j->n_change && s == GGL_OK; c++)
            if (!llm_adapter_columns(&j->change[c].pair, j->m, j->n_in, j->change[c].columns))
                s = ggl_fail(err, GGL_NOMEM, "out of memory");
        j->first = 0;
        if (s == GGL_OK)
            s = merge_matrix(j, t, to, err);
    }
    release(j);
    if (s == GGL_OK) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)x->name.n, x->name.s);
        llm_lora_keep(&j->kept, name, j->change2, j->lost2);
        j->loses_blocks |= j->to->block > 1 && llm_lora_share(j->change2, j->lost2) < LORA_ENOUGH;
    }
    return s;
}

/* Refuses a type that cannot hold the result. */
static ggl_status check_type(const merge_job *j, const ggl_gguf_tensor *t, ggl_error *err) {
    const ggl_type_info *type = type_of(j, t);
    if (!type->from_float)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "tensor '%.*s' has type %s, which can only be read: --type q4_k, for "
                        "example, chooses another one for changed tensors",
                        (int)t->name.n, t->name.s, type->name);
    if (t->ne[0] % type->block != 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "tensor '%.*s' has rows of %" PRId64
                        ", which are not whole blocks of %s: --type chooses another one",
                        (int)t->name.n, t->name.s, t->ne[0], type->name);
    return GGL_OK;
}

/* Refuses a factor of 0: it would hide any change of the weight. */
static ggl_status check_factor(const merge_job *j, const ggl_gguf_tensor *t, ggl_error *err) {
    for (int64_t i = 0; j->factor && i < j->factor->n; i++)
        if (j->factor->value[i] == 0)
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "tensor '%.*s', by which products with '%.*s' are multiplied, has a 0: "
                            "no change of the weight could show. --lora adds it after that",
                            (int)j->factor->from->name.n, j->factor->from->name.s, (int)t->name.n,
                            t->name.s);
    return GGL_OK;
}

static ggl_status put_tensor(merge_job *j, ggl_gguf_writer *w, merge_tensor *x,
                             const ggl_gguf_tensor *t, ggl_str name, ggl_error *err) {
    char text[256];
    *x = (merge_tensor){j, t, name};
    find_changes(j, t, name);
    if (j->n_change == 0) {
        gguf_copy_tensor(&j->copy, w, t);
        return GGL_OK;
    }
    ggl_status s = lora_factor_of(&j->factors, t, &j->factor, err);
    if (s == GGL_OK)
        s = check_factor(j, t, err);
    if (s == GGL_OK)
        s = check_type(j, t, err);
    if (s != GGL_OK)
        return s;
    snprintf(text, sizeof text, "%.*s", (int)name.n, name.s);
    ggl_gguf_put_tensor_later(w, text, type_of(j, t)->type, t->n_dims, t->ne, fill, x);
    j->n_changed++;
    return GGL_OK;
}

/* --- adapters --------------------------------------------------------------------------------- */

/* Refuses "FILE=SCALE" or "FILE:SCALE" if the file is there, but the scale is no number. Returns -1,
 * or an exit code. */
static int check_scale(const char *word) {
    const char *at = word + strlen(word);
    while (at > word && at[-1] != '=' && at[-1] != ':' && !ggl_os_separates(at[-1]))
        at--;
    const size_t n = strlen(at);
    if (at == word || ggl_os_separates(at[-1]) || ggl_file_exists(word) ||
        ggl_number_length(at, n) == n)
        return -1;
    char *path = ggl_copy_text_n(word, (size_t)(at - word) - 1);
    const int code =
        path && ggl_file_exists(path)
            ? tool_error(TOOL, 2, "%s: '%s' is not a number: the scale of %s, as in %s=0.5", word,
                         at, path, path)
            : -1;
    free(path);
    return code;
}

/* Every pair must belong to a tensor of the file, or of that of an eye beside it: the engine also applies those for parts of joined
 * tensors, which have other names. */
static int check_pairs(const merge_job *j, const merge_use *u, const char *path) {
    for (size_t i = 0; i < ggl_gguf_n_tensors(u->file); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(u->file, i);
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        *strrchr(name, '.') =
            '\0'; /* the adapter's reader knows that it ends in .lora_a or another such end */
        const bool output = strcmp(name, "output.weight") == 0 &&
                            ggl_gguf_find_tensor(j->model, "token_embd.weight");
        if (!ggl_gguf_find_tensor(j->model, name) && !output &&
            llm_adapter_is_of_sense(name) == j->is_sense)
            return tool_error(
                TOOL, 1,
                "%s changes %s, which is not a tensor of the model's file, but a part "
                "or a whole of others; --lora applies it when the model runs",
                path, name);
    }
    return -1;
}

static int open_adapter(merge_job *j, const llm_model *m, const char *given) {
    ggl_error err = {0};
    char *path = ggl_copy_text(given);
    if (!path)
        return tool_error(TOOL, 1, "out of memory");
    merge_use *u = &j->use[j->n_use];
    u->scale = lora_read_scale(path);
    int code = -1;
    if (!isfinite(u->scale))
        code = tool_error(TOOL, 2, "%s: the scale is not a finite number", given);
    else if (llm_adapter_open(&u->adapter, path, NULL, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    j->n_use += u->adapter != NULL;
    size_t n_own = 0;
    if (code < 0 && llm_adapter_count(u->adapter, m, &n_own, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0) {
        j->n_other += llm_adapter_describe(u->adapter).n_pairs - n_own;
        u->file = llm_adapter_file(u->adapter);
        code = check_pairs(j, u, path);
    }
    free(path);
    return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static int write_model(merge_job *j) {
    ggl_error err = {0};
    const size_t n = ggl_gguf_n_tensors(j->model);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    merge_tensor *x = calloc(n + 1, sizeof *x);
    ggl_status s = GGL_OK;
    if (!w || !x || !gguf_copy_begin(&j->copy, j->model))
        s = ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK)
        gguf_put_keys(w, j->model);
    for (size_t i = 0; s == GGL_OK && i < n; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(j->model, i);
        s = put_tensor(j, w, &x[i], t, t->name, &err);
    }
    /* a model without an output matrix uses the embedding, which a pair for the output does not change */
    const ggl_str output = {"output.weight", 13};
    j->n_change = 0;
    add_changes(j, output);
    if (s == GGL_OK && j->n_change > 0 && !ggl_gguf_find_tensor(j->model, output.s))
        s = put_tensor(j, w, &x[n], ggl_gguf_find_tensor(j->model, "token_embd.weight"), output,
                       &err);
    int code;
    if (s == GGL_OK) {
        code = gguf_write(TOOL, w, &j->copy, gguf_bytes(j->model), j->out);
    } else {
        ggl_gguf_writer_free(w);
        code = tool_error(TOOL, 1, "%s", err.msg);
    }
    gguf_copy_end(&j->copy);
    free(x);
    return code;
}

static int merge(merge_job *j, const arg_list *words) {
    ggl_error err = {0};
    llm_model *m;
    const llm_model_params p = {.size = sizeof p};
    if (tool_load_model(&m, words->s[0], &p, 0, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    j->model = llm_model_file(m);
    j->is_sense = llm_arch_is_sense(llm_model_arch(m));
    j->use = calloc(words->n, sizeof *j->use);
    j->change = calloc(2 * words->n, sizeof *j->change);
    int code = j->use && j->change ? -1 : tool_error(TOOL, 1, "out of memory");
    if (code < 0 && llm_arch_is_file_rotated(j->model))
        code = tool_error(TOOL, 1,
                          "%s: its weights are stored rotated (prism.hadamard.*), so that nothing "
                          "can be merged into them; --lora applies the adapter",
                          ggl_gguf_name(j->model));
    for (size_t i = 1; code < 0 && i < words->n; i++)
        code = open_adapter(j, m, words->s[i]);
    if (code < 0 && lora_factors_find(&j->factors, m, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0)
        code = write_model(j);
    if (code == 0)
        ggl_fprint(stdout, "%s: %zu of %zu tensor%s changed\n", j->out, j->n_changed,
                   ggl_gguf_n_tensors(j->model),
                   llm_amount_s((int64_t)ggl_gguf_n_tensors(j->model)));
    if (code == 0 && j->n_other > 0)
        ggl_fprint(stdout, "%zu pair%s of the adapters belong%s to %s, and %s not merged here\n",
                   j->n_other, llm_amount_s((int64_t)j->n_other), j->n_other == 1 ? "s" : "",
                   j->is_sense ? "the text model" : "the eye or the ear",
                   j->n_other == 1 ? "is" : "are");
    if (code == 0)
        lora_print_kept(TOOL, &j->kept,
                        j->loses_blocks
                            ? "--type f16 gives changed tensors a type with more digits"
                            : "--type f32 gives changed tensors a type with all digits");
    for (size_t i = 0; i < j->n_use; i++)
        llm_adapter_free(j->use[i].adapter);
    lora_factors_fini(&j->factors);
    free(j->use);
    free(j->change);
    llm_model_free(m);
    return code;
}

/* True if the result is a folder. A folder can also be converted, into a GGUF file. */
static bool makes_folder(const char *model, const char *out) {
    return llm_is_folder(model) && !ggl_ends_with(out, ".gguf");
}

static int check_files(const merge_job *j, const arg_list *words) {
    if (!j->out)
        return tool_error(TOOL, 2, "-o OUT is missing");
    int code = -1;
    for (size_t i = 0; code < 0 && i < words->n; i++) {
        char *path = ggl_copy_text(words->s[i]);
        if (!path)
            return tool_error(TOOL, 1, "out of memory");
        code = i > 0 ? check_scale(path) : -1;
        if (i > 0)
            (void)lora_read_scale(path);
        const tool_path paths[] = {{i ? "ADAPTER" : "MODEL", path, .needed = true, .model = true},
                                   {"-o", j->out, .written = true}};
        if (code < 0) /* llm_lora_merge checks a folder */
            code = tool_check_paths(TOOL, paths, makes_folder(words->s[0], j->out) ? 1 : 2);
        free(path);
    }
    return code;
}

int lora_merge(int argc, char **argv) {
    arg_list words = {0};
    merge_job j = {0};
    const char *type = NULL;
    int64_t n_threads = work_threads();
    const arg_option options[] = {
        {"-o --output", ARG_STRING, &j.out, .value = "OUT", .help = "the model to write"},
        {"--type", ARG_STRING, &type, .value = "TYPE",
         .help = "the type of changed tensors (default: the one that they have); f16 keeps small "
                 "changes that quantized types round away"},
        {"-t --threads", ARG_INT, &n_threads, .value = "N",
         .help = "threads (default: the number of processors); the file is the same for any number",
         .min = 1, .max = TOOL_MAX_THREADS},
        {0}};
    static const args_example examples[] = {
        {"llm-lora merge model.gguf style.gguf=0.5 facts.gguf -o merged.gguf",
         "two adapters, one of them at half its scale"},
        {"llm-lora merge SmolLM2-135M style.gguf -o SmolLM2-style",
         "a Hugging Face folder with the adapter in its weights"},
        {0}};
    const args_spec spec = {
        TOOL,
        "MODEL ADAPTER[=SCALE] .. -o OUT [options]",
        "Adds LoRA adapters to the weights of a model. The result computes what "
        "the model does with --lora, as far as rounding to the types of its tensors "
        "leaves the change: how much is printed, and quantized types may leave nothing "
        "of a small one (--type f16). Tensors that no adapter changes are copied. If MODEL is a "
        "Hugging Face folder, "
        "OUT becomes one, too, with the other files of MODEL, unless it ends in .gguf.",
        options,
        &words,
        &lora_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 2, SIZE_MAX, argc, argv);
    if (code >= 0)
        return code;
    code = check_files(&j, &words);
    j.n_threads = (int)n_threads;
    ggl_error err = {0};
    j.type = type ? llm_quant_type_find(type, &err) : NULL;
    if (code < 0 && type && !j.type)
        code = tool_error(TOOL, 2, "--type: %s", err.msg);
    process_wait_for_stop();
    const bool is_folder = code < 0 && makes_folder(words.s[0], j.out);
    if (code < 0 && is_folder && type)
        code = tool_error(TOOL, 2,
                          "--type is for GGUF files; the weights of a folder keep their type");
    if (code < 0)
        code = is_folder ? lora_merge_folder(words.s[0], &words, j.out, j.n_threads)
                         : merge(&j, &words);
    args_list_fini(&words);
    return code;
}

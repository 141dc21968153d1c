/* Merges adapters into the weights of a Hugging Face folder; see llm/internal/lora_folder.h.
 *
 * A file of safetensors is written as it is, but for the numbers of the weights that change: row by row, the change of a tensor of
 * the model is computed, and each number of it is added where it comes from. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/work_share.h"
#include "ggl/graph.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "lora_back.h"

enum { MOST_DEPTH = 16 }; /* folders within each other */

typedef struct merging {
    lora_back back;
    const llm_adapter_use *use;
    size_t n_use;
    const char *base, *out; /* out: the path while it is written */
    const llm_lora_folder_params *params;
    llm_lora_folder_result *result;
    size_t done, all;  /* bytes */
    bool *changed;     /* [n_tensor] of the text model's folder, */
    bool *changed_eye; /* and of the eye's, which are the same ones */
    /* the weight that is being written */
    const st_tensor *weight;
    char *data; /* its bytes */
    /* the tensor that changes it */
    const converted_tensor *t;
    int64_t m;
    llm_lora_matrix *change; /* [n_use] */
    size_t n_change;
    bool has_magnitude;
    int64_t most_rank;
    int n_threads;
    double *acc;           /* [n_threads][2][in] */
    float *row;            /* [n_threads][in] */
    float *ranks;          /* [n_threads][most_rank] */
    ggl_error *thread_err; /* [n_threads] */
    /* sums of squares, for llm_lora_keep: of each row, as the sum does not depend on threads, and of the weight */
    double *row_change, *row_lost;
    double change2, lost2;
} merging;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct row_walk {
    merging *j;
    const double *delta; /* of the row */
    double change, lost; /* sums of squares so far */
} row_walk;

/* Adds a run of the change to the weight, if it is the weight's. */
static ggl_status add_run(void *ctx, int64_t row, int64_t first, int64_t n, const recipe_spot *at,
                          ggl_error *err) {
    row_walk *w = ctx;
    merging *j = w->j;
    const ggl_type_info *type = ggl_type_get(j->weight->type);
    float x[256];
    double sum[256];
    (void)row;
    if (at->leaf->source != j->weight)
        return GGL_OK;
    for (int64_t i = 0, k; i < n; i += k) {
        k = n - i < 256 ? n - i : 256;
        char *to = j->data + (size_t)(at->at + i) * type->size;
        type->to_float(to, x, k);
        for (int64_t e = 0; e < k; e++) {
            const double delta = w->delta[first + i + e] / at->factor;
            w->change += delta * delta;
            sum[e] = (double)x[e] + delta;
            x[e] = (float)sum[e];
        }
        type->from_float(x, to, k);
        type->to_float(to, x, k); /* a finite number can be beyond the type's range */
        for (int64_t e = 0; e < k; e++) {
            w->lost += ((double)x[e] - sum[e]) * ((double)x[e] - sum[e]);
            if (!isfinite(x[e]))
                return ggl_fail(err, GGL_FORMAT,
                                "a merged weight is NaN or infinite in %s, in %.300s: the adapter, "
                                "or its scale, does not fit this model",
                                type->name, j->weight->name.s);
        }
    }
    return GGL_OK;
}

/* Sets acc[n] to the change of row o of the matrix, whose numbers are row[n]. acc has room for another n. */
static void change_row(const merging *j, int64_t o, const float *row, float *ranks, double *acc) {
    const size_t n = (size_t)j->t->ne[0];
    llm_lora_change_row(j->change, j->n_change, j->m, o, 1, row, ranks, n, acc);
    for (size_t e = 0; e < n; e++)
        acc[e] -= (double)row[e];
}

/* True if a number of the row is the weight's. */
static bool has_part(const merging *j, int64_t row) {
    const int64_t n = j->t->ne[0];
    recipe_spot at;
    bool any = false;
    for (int64_t i = 0; i < n && !any && llm_recipe_find(j->t->recipe, row * n + i, &at);
         i += at.run)
        any = at.leaf->source == j->weight;
    return any;
}

static void merge_row(void *ctx, size_t i, int thread) {
    merging *j = ctx;
    ggl_error *err = &j->thread_err[thread];
    const size_t k = (size_t)thread, n = (size_t)j->t->ne[0];
    const int64_t row = j->m * j->t->ne[1] + (int64_t)i;
    double *acc = j->acc + 2 * k * n;
    float *own = j->row + k * n;
    row_walk w = {.j = j, .delta = acc};
    j->row_change[i] = j->row_lost[i] = 0;
    if (err->status != GGL_OK || !has_part(j, row))
        return;
    ggl_status s = GGL_OK;
    if (j->has_magnitude) /* else zeros: the change does not depend on the row */
        s = llm_recipe_read(j->t->recipe, row * (int64_t)n, (int64_t)n, own, err);
    if (s != GGL_OK)
        return;
    change_row(j, (int64_t)i, own, j->ranks + k * (size_t)j->most_rank, acc);
    s = llm_lora_back_row(&j->back, j->t, row, add_run, &w, err);
    assert(s == err->status); /* at which the caller looks */
    (void)s;
    j->row_change[i] = w.change;
    j->row_lost[i] = w.lost;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static bool allocate(merging *j) {
    const size_t in = (size_t)j->t->ne[0], n = (size_t)j->n_threads;
    j->acc = ggl_calloc(2 * n, in * sizeof *j->acc);
    j->row = ggl_calloc(n, in * sizeof *j->row);
    j->ranks = ggl_calloc(n, (size_t)j->most_rank * sizeof *j->ranks);
    j->thread_err = ggl_calloc(n, sizeof *j->thread_err);
    j->row_change = ggl_calloc((size_t)j->t->ne[1], sizeof *j->row_change);
    j->row_lost = ggl_calloc((size_t)j->t->ne[1], sizeof *j->row_lost);
    bool ok = j->acc && j->row && j->ranks && j->thread_err && j->row_change && j->row_lost;
    for (size_t c = 0; c < j->n_change; c++) {
        llm_lora_matrix *x = &j->change[c];
        x->columns = ggl_calloc((size_t)x->pair.rank, in * sizeof *x->columns);
        ok &= x->columns != NULL;
    }
    return ok;
}

static void release(merging *j) {
    void *all[] = {j->acc, j->row, j->ranks, j->thread_err, j->row_change, j->row_lost};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ggl_free(all[i]);
    for (size_t c = 0; c < j->n_change; c++)
        ggl_free(j->change[c].columns);
}

/* Sets the changes of j->t. */
static void find_changes(merging *j) {
    j->n_change = 0;
    j->most_rank = 1;
    j->has_magnitude = false;
    for (size_t i = 0; i < j->n_use; i++) {
        const llm_adapter *a = j->use[i].adapter;
        llm_lora_matrix *c = &j->change[j->n_change];
        if (!llm_adapter_find_pair(llm_adapter_file(a), (ggl_str){j->t->name, strlen(j->t->name)},
                                   &c->pair))
            continue;
        const double alpha = llm_adapter_describe(a).alpha;
        c->scale = j->use[i].scale * (alpha != 0 ? alpha / (double)c->pair.rank : 1);
        if (j->use[i].scale == 0) /* nor are its lengths there */
            continue;
        j->has_magnitude |= c->pair.magnitude != NULL;
        j->most_rank = c->pair.rank > j->most_rank ? c->pair.rank : j->most_rank;
        j->n_change++;
    }
}

static bool reads(const recipe *r, const st_tensor *weight) {
    bool any = r->source == weight;
    for (int k = 0; k < r->n_part && !any; k++)
        any = reads(r->part[k], weight);
    return any;
}

/* True if matrix m of the tensor may be made from the weight: of stacks, whose parts are many, only some are looked at. */
static bool may_read(const merging *j, int64_t m) {
    const recipe *r = j->t->recipe;
    return r->kind != RECIPE_JOIN || r->dim != 2 || r->n_part != j->t->ne[2] ||
           reads(r->part[m], j->weight);
}

/* Adds the changes of a tensor to the weight. */
static ggl_status merge_tensor(merging *j, ggl_error *err) {
    find_changes(j);
    if (j->n_change == 0)
        return GGL_OK;
    const bool alone = j->has_magnitude && llm_recipe_holds(j->t->recipe);
    j->n_threads = alone || j->params->n_threads < 1 ? 1 : j->params->n_threads;
    ggl_status s = allocate(j) ? GGL_OK : no_memory(err);
    for (j->m = 0; j->m < j->t->ne[2] && s == GGL_OK; j->m++) {
        if (!may_read(j, j->m))
            continue;
        for (size_t c = 0; c < j->n_change && s == GGL_OK; c++)
            if (!llm_adapter_columns(&j->change[c].pair, j->m, j->t->ne[0], j->change[c].columns))
                s = no_memory(err);
        if (s == GGL_OK)
            llm_work_share(j->n_threads, (size_t)j->t->ne[1], merge_row, j);
        for (int k = 0; k < j->n_threads && s == GGL_OK; k++)
            if (j->thread_err[k].status != GGL_OK)
                s = ggl_pass(err, &j->thread_err[k]);
        for (int64_t i = 0; i < j->t->ne[1] && s == GGL_OK; i++) {
            j->change2 += j->row_change[i];
            j->lost2 += j->row_lost[i];
        }
    }
    llm_recipe_drop(j->t->recipe);
    release(j);
    return s;
}

/* Sets j->data to the bytes of the changed weight i of the folder; c: the converter that reads it. */
static ggl_status merge_weight(merging *j, const llm_converter *c, size_t i, ggl_error *err) {
    j->weight = &c->source->tensor[i];
    j->data = ggl_calloc(j->weight->size, 1);
    if (!j->data)
        return no_memory(err);
    memcpy(j->data, j->weight->data, j->weight->size);
    j->change2 = j->lost2 = 0;
    ggl_status s = GGL_OK;
    size_t n;
    const size_t *reader = llm_lora_back_readers(&j->back, c, j->weight, &n);
    for (size_t k = 0; k < n && s == GGL_OK; k++) {
        j->t = &c->conv.tensor[reader[k]];
        s = merge_tensor(j, err);
    }
    return s;
}

/* Makes the bytes of j->data, of the changed weight, those of its copy, which may be of another type. */
static ggl_status copy_weight(merging *j, const st_tensor *copy, ggl_error *err) {
    const ggl_type_info *from = ggl_type_get(j->weight->type),
                        *to = copy->type < 0 ? NULL : ggl_type_get(copy->type);
    if (strcmp(copy->dtype, j->weight->dtype) == 0 && copy->size == j->weight->size)
        return GGL_OK;
    if (!to || to->block != 1 || !to->from_float ||
        copy->size / to->size != j->weight->size / from->size)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: %.300s, a copy of %.300s, has the type %s, which cannot follow it",
                        j->base, copy->name.s, j->weight->name.s, copy->dtype);
    char *data = ggl_calloc(copy->size, 1);
    if (!data)
        return no_memory(err);
    float x[256];
    const size_t n = copy->size / to->size;
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < 256 ? n - at : 256;
        from->to_float(j->data + at * from->size, x, (int64_t)k);
        to->from_float(x, data + at * to->size, (int64_t)k);
    }
    ggl_free(j->data);
    j->data = data;
    return GGL_OK;
}

/* --- files ------------------------------------------------------------------------------------ */

static ggl_status put(merging *j, ggl_new_file *f, const void *data, size_t n, ggl_error *err) {
    const char *from = data;
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < (size_t)4 << 20 ? n - at : (size_t)4 << 20;
        fwrite(from + at, 1, k, ggl_new_file_stream(f));
        ggl_new_file_note(f);
        j->done += k;
        if (ggl_new_file_error(f))
            return GGL_OK; /* the commit reports it */
        if (j->params->progress && !j->params->progress(j->params->progress_ctx, j->done, j->all))
            return ggl_fail(err, GGL_CANCELLED, "interrupted");
    }
    return GGL_OK;
}

static int by_place(const void *a, const void *b) {
    const st_tensor *x = *(const st_tensor *const *)a, *y = *(const st_tensor *const *)b;
    const char *p = x->data, *q = y->data;
    return p != q ? (p < q ? -1 : 1) : 0;
}

/* Writes the tensor of the text model's folder, changed or as it is. */
static ggl_status put_tensor(merging *j, ggl_new_file *f, const st_tensor *t, ggl_error *err) {
    const llm_converter *text = j->back.text, *eye = j->back.eye;
    const size_t i = (size_t)(t - text->source->tensor);
    const bool of_eye = eye && j->changed_eye[i];
    const st_tensor *own =
        j->changed[i] || of_eye ? NULL : llm_arch_convert_original(&text->conv, t);
    ggl_status s = GGL_OK;
    if (own && j->changed[own - text->source->tensor]) {
        s = merge_weight(j, text, (size_t)(own - text->source->tensor), err);
        if (s == GGL_OK)
            s = copy_weight(j, t, err);
    } else if (j->changed[i] || of_eye) {
        s = merge_weight(j, of_eye ? eye : text, i, err);
        if (s == GGL_OK)
            llm_lora_keep(&j->result->kept, j->weight->name.s, j->change2, j->lost2);
        j->result->n_modules++;
    } else {
        s = put(j, f, t->data, t->size, err);
        llm_safetensors_drop(text->source, t);
        return s;
    }
    if (s == GGL_OK)
        s = put(j, f, j->data, t->size, err);
    ggl_free(j->data);
    j->data = NULL;
    llm_safetensors_drop(text->source, t);
    return s;
}

/* Writes file k of safetensors. */
static ggl_status write_weights(merging *j, int k, const char *path, ggl_error *err) {
    const llm_safetensors *st = j->back.text->source;
    const st_tensor **list = ggl_calloc(st->n_tensor + 1, sizeof *list);
    ggl_new_file *f = NULL;
    size_t n = 0;
    ggl_status s = list ? ggl_new_file_open(&f, path, err) : no_memory(err);
    for (size_t i = 0; i < st->n_tensor && list; i++)
        if (st->tensor[i].file == k)
            list[n++] = &st->tensor[i];
    if (n > 1)
        qsort(list, n, sizeof *list, by_place);
    const ggl_file_map *map = &st->map[k];
    const size_t header =
        n > 0 ? (size_t)((const char *)list[0]->data - (const char *)map->data) : map->size;
    if (s == GGL_OK)
        s = put(j, f, map->data, header, err);
    for (size_t i = 0; i < n && s == GGL_OK; i++)
        s = put_tensor(j, f, list[i], err);
    ggl_free(list);
    if (s == GGL_OK)
        return ggl_new_file_commit(f, err);
    ggl_new_file_discard(f);
    return s;
}

static ggl_status copy_file(const char *from, const char *to, ggl_error *err) {
    char buf[1 << 16];
    ggl_new_file *f = NULL;
    errno = 0;
    FILE *in = ggl_os_fopen_plain(from);
    if (!in)
        return ggl_fail(err, GGL_IO, "%s: %s", from,
                        errno ? strerror(errno) : "it is no file that can be read");
    ggl_status s = ggl_new_file_open(&f, to, err);
    for (size_t n; s == GGL_OK && (n = fread(buf, 1, sizeof buf, in)) > 0;) {
        fwrite(buf, 1, n, ggl_new_file_stream(f));
        ggl_new_file_note(f);
    }
    if (s == GGL_OK && ferror(in))
        s = ggl_fail(err, GGL_IO, "%s: it cannot be read", from);
    fclose(in);
    if (s == GGL_OK)
        return ggl_new_file_commit(f, err);
    ggl_new_file_discard(f);
    return s;
}

/* True for files that have weights which the model does not read here: they would be those of the old model. Folders within the folder
 * have safetensors of modules of their own. */
static bool has_old_weights(const char *name, int depth) {
    static const char *const end[] = {".bin",  ".pt", ".pth",     ".ckpt", ".gguf",
                                      ".onnx", ".h5", ".msgpack", ".ot",   ".onnx_data"};
    const size_t n = strlen(name);
    bool any = depth == 0 && ggl_ends_with(name, ".safetensors");
    for (size_t k = 0; k < sizeof end / sizeof *end; k++)
        any |= n > strlen(end[k]) && strcmp(name + n - strlen(end[k]), end[k]) == 0;
    return any;
}

static bool is_shown(const char *name) {
    return name[0] != '.';
}

/* Returns the file of safetensors that the model reads and whose name, in the folder, this is; -1: it is another file. */
static int file_of(const merging *j, const char *name) {
    const llm_safetensors *st = j->back.text->source;
    for (int k = 0; k < st->n_file; k++)
        if (ggl_str_is(st->file[k], name))
            return k;
    return -1;
}

/* True for the folder that is written, if it lies in the model's own. */
static bool is_own_result(const merging *j, const char *folder) {
    os_stat own, of_out;
    return ggl_os_stat(folder, &own) && ggl_os_stat(j->out, &of_out) &&
           ggl_os_is_same(&own, &of_out);
}

static ggl_status copy_folder(merging *j, const char *inside, int depth, ggl_error *err);

/* Copies a folder in the folder, whose path ends in a '/'. Links may make circles. */
static ggl_status copy_inner(merging *j, const char *inside, int depth, ggl_error *err) {
    return depth < MOST_DEPTH
               ? copy_folder(j, inside, depth + 1, err)
               : ggl_fail(err, GGL_LIMIT, "%s/%s: more than %d folders within each other", j->base,
                          inside, MOST_DEPTH);
}

/* Writes one name of the folder; inside: the path in it, which ends in a '/' or is empty. */
static ggl_status copy_name(merging *j, const char *inside, const char *name, int depth,
                            ggl_error *err) {
    char own[1024], from[4096], to[4096];
    const int n = snprintf(own, sizeof own, "%s%s", inside, name);
    const int n_from = snprintf(from, sizeof from, "%s/%s", j->base, own);
    const int n_to = snprintf(to, sizeof to, "%s/%s", j->out, own);
    if (n < 0 || (size_t)n + 1 >= sizeof own /* a '/' */ || (size_t)n_from >= sizeof from ||
        (size_t)n_to >= sizeof to)
        return ggl_fail(err, GGL_USAGE, "%s/%s: the path is too long", j->base, inside);
    const int k = file_of(j, own);
    if (k >= 0)
        return write_weights(j, k, to, err);
    if (ggl_os_is_folder(from)) {
        memcpy(own + n, "/", 2);
        return is_own_result(j, from) ? GGL_OK : copy_inner(j, own, depth, err);
    }
    if (!has_old_weights(name, depth))
        return copy_file(from, to, err);
    if (j->result->n_left_out++ == 0)
        snprintf(j->result->left_out, sizeof j->result->left_out, "%.*s",
                 (int)ggl_utf8_cut(own, strlen(own), sizeof j->result->left_out - 1), own);
    return GGL_OK;
}

static ggl_status copy_folder(merging *j, const char *inside, int depth, ggl_error *err) {
    char path[4096];
    char **name = NULL;
    snprintf(path, sizeof path, "%s/%s", j->base, inside);
    const int64_t n = ggl_os_folder_list(path, is_shown, &name);
    ggl_status s = n < 0 ? ggl_fail(err, GGL_IO, "%s: %s", path, strerror(errno)) : GGL_OK;
    snprintf(path, sizeof path, "%s/%s", j->out, inside);
    if (s == GGL_OK && depth > 0 && !ggl_os_make_folder(path, false) && !ggl_os_is_folder(path))
        s = ggl_fail(err, GGL_IO, "%s: cannot make this folder: %s", path, strerror(errno));
    for (int64_t i = 0; i < n; i++) {
        if (s == GGL_OK)
            s = copy_name(j, inside, name[i], depth, err);
        free(name[i]);
    }
    free(name);
    return s;
}

/* --- checks ----------------------------------------------------------------------------------- */

static ggl_status pass_run(void *ctx, int64_t row, int64_t first, int64_t n, const recipe_spot *at,
                           ggl_error *err) {
    const merging *j = ctx;
    const st_tensor *w = at->leaf->source;
    (void)row;
    (void)first;
    (void)n;
    const bool plain = at->leaf->kind == RECIPE_SOURCE && w->type >= 0 &&
                       ggl_type_get(w->type)->block == 1 && ggl_type_get(w->type)->from_float;
    return plain ? GGL_OK
                 : ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: %.300s has the type %s, to which no change can be added; convert "
                            "the folder, and merge into the GGUF file",
                            j->base, w->name.s, w->dtype);
}

/* Checks that all changes can be written, before anything is. */
static ggl_status check(merging *j, const llm_converter *c, bool *changed, ggl_error *err) {
    if (!c)
        return GGL_OK;
    llm_lora_back_changed(c, j->use, j->n_use, changed);
    ggl_status s = llm_lora_back_check_alone(&j->back, c, j->use, j->n_use, err);
    for (size_t i = 0; i < c->conv.n_tensor && s == GGL_OK; i++) {
        const converted_tensor *t = &c->conv.tensor[i];
        if (!llm_lora_back_changes(t, j->use, j->n_use))
            continue;
        const int64_t n_rows = ggl_extents(t->ne, 1, 3, 1);
        for (int64_t row = 0; row < n_rows && s == GGL_OK; row++)
            s = llm_lora_back_row(&j->back, t, row, pass_run, j, err);
    }
    return s;
}

static ggl_status begin(merging *j, ggl_error *err) {
    for (size_t i = 0; i < j->n_use; i++)
        if (!isfinite(j->use[i].scale))
            return ggl_fail(err, GGL_USAGE, "the scale of %s must be finite, but is %g",
                            ggl_gguf_name(llm_adapter_file(j->use[i].adapter)), j->use[i].scale);
    ggl_status s = llm_lora_back_open(&j->back, j->base, j->use, j->n_use, j->params, err);
    if (s != GGL_OK)
        return s;
    const llm_safetensors *st = j->back.text->source;
    const size_t n = st->n_tensor + 1;
    j->changed = ggl_calloc(n, sizeof *j->changed);
    j->changed_eye = ggl_calloc(n, sizeof *j->changed_eye);
    j->change = ggl_calloc(j->n_use + 1, sizeof *j->change);
    if (!j->changed || !j->changed_eye || !j->change)
        return no_memory(err);
    for (int k = 0; k < st->n_file; k++)
        j->all += st->map[k].size;
    j->result->bytes = j->all;
    j->result->n_weights = st->n_tensor;
    s = check(j, j->back.text, j->changed, err);
    if (s == GGL_OK)
        s = check(j, j->back.eye, j->changed_eye, err);
    for (size_t i = 0; i < st->n_tensor && s == GGL_OK; i++)
        if (j->changed[i] && j->changed_eye[i])
            s = ggl_fail(err, GGL_UNSUPPORTED,
                         "%s: %.300s is both the text model's and the eye's or ear's", j->base,
                         st->tensor[i].name.s);
    return s;
}

ggl_status llm_lora_merge(const llm_adapter_use *use, size_t n_use, const char *base,
                          const char *out, const llm_lora_folder_params *params,
                          llm_lora_folder_result *result, ggl_error *err) {
    ggl_error own = {0};
    merging j = {.use = use, .n_use = n_use, .base = base, .params = params, .result = result};
    llm_new_folder folder = {0};
    err = err ? err : &own;
    *result = (llm_lora_folder_result){0};
    ggl_status s = begin(&j, err);
    if (s == GGL_OK)
        s = llm_lora_back_make(&folder, out, base, err);
    j.out = folder.path;
    if (s == GGL_OK)
        s = copy_folder(&j, "", 0, err);
    if (s == GGL_OK)
        s = llm_new_folder_commit(&folder, err);
    llm_new_folder_discard(&folder);
    ggl_free(j.changed);
    ggl_free(j.changed_eye);
    ggl_free(j.change);
    llm_lora_back_fini(&j.back);
    return s;
}

/* Writing OUT: keys, tensors, parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/process.h"
#include "common/progress.h"
#include "ggl/internal/os_fs.h"
#include "job.h"

/* The context of `fill` for tensor i. */
typedef struct tensor_job {
    job *j;
    size_t i;
} tensor_job;

/* Releases the source's pages after they were read, so that memory stays small for any file, and
 * shows the progress. False: the user has stopped the process. */
static bool on_read(void *ctx, const void *source, size_t n) {
    job *j = ctx;
    ggl_gguf_drop(j->file, source, n);
    j->done += n;
    progress_set((double)j->done);
    return !process_stopped;
}

static ggl_status encode_part(job *j, size_t i, size_t k, ggl_gguf_sink *to, quant_error *error,
                              ggl_error *err) {
    const quant_tensor *x = &j->plan.tensor[i];
    quant_importance of;
    ggl_status s = importance_of(j, i, k, &of, err);
    if (s == GGL_OK)
        s = llm_quant_encode(j->encoder, x->part[k], x->type, &of, to, error, on_read, j, err);
    llm_quant_importance_fini(&of);
    return s;
}

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const tensor_job *t = ctx;
    job *j = t->j;
    const quant_tensor *x = &j->plan.tensor[t->i];
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < x->n_part && s == GGL_OK; k++) {
        quant_error error = {0};
        if (x->type->type == x->from->type)
            s = llm_quant_copy(x->part[k], to, on_read, j, err);
        else
            s = encode_part(j, t->i, k, to, &error, err);
        llm_quant_error_add(&j->error[t->i], &error);
    }
    if (s == GGL_FORMAT || s == GGL_LIMIT) /* the writer's message would name OUT */
        ggl_fail(&j->bad_input, s, "%s: tensor '%s': %s", j->o.in, x->shown, err->msg);
    return s;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Puts the keys: those of IN, about the importance matrix, and of --override-kv. */
static ggl_status put_keys(ggl_gguf_writer *w, const job *j, ggl_error *err) {
    quant_key *own = calloc(j->o.override_kv.n + 4, sizeof *own);
    size_t n = 0;
    if (!own)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (j->matrix) {
        const char *text = llm_imatrix_dataset(j->matrix, 0);
        own[n++] = (quant_key){"quantize.imatrix.file", GGL_GGUF_STRING, {.text = j->o.imatrix}};
        if (text)
            own[n++] = (quant_key){"quantize.imatrix.dataset", GGL_GGUF_STRING, {.text = text}};
        own[n++] = (quant_key){
            "quantize.imatrix.entries_count", GGL_GGUF_U32, {.u32 = (uint32_t)j->n_used}};
        own[n++] = (quant_key){"quantize.imatrix.chunks_count",
                               GGL_GGUF_U32,
                               {.u32 = (uint32_t)llm_imatrix_n_chunks(j->matrix)}};
    }
    for (size_t i = 0; i < j->o.override_kv.n; i++)
        own[n++] = j->key[i];
    const ggl_status s = llm_quant_put_keys(w, j->file, &j->choice, j->plan.n_layer, own, n, err);
    free(own);
    return s;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Adds the tensors of a part of IN; part -1: all. */
static void put_tensors(ggl_gguf_writer *w, job *j, int part) {
    for (size_t i = 0; i < j->plan.n; i++) {
        const quant_tensor *t = &j->plan.tensor[i];
        if (part >= 0 && t->from->part != part)
            continue;
        j->tensor_job[i] = (tensor_job){j, i};
        ggl_gguf_put_tensor_later(w, t->name, t->type->type, t->from->n_dims, t->from->ne, fill,
                                  &j->tensor_job[i]);
    }
}

/* Makes a file of OUT, without writing it. NULL: out of memory. */
static ggl_gguf_writer *make_file(job *j, int part, int n_parts, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w || (part <= 0 && put_keys(w, j, err) != GGL_OK)) {
        ggl_gguf_writer_free(w);
        ggl_fail(err, GGL_NOMEM, "out of memory");
        return NULL;
    }
    if (n_parts > 1) {
        const uint16_t no = (uint16_t)part, count = (uint16_t)n_parts;
        const int32_t n = (int32_t)j->plan.n;
        ggl_gguf_put(w, "split.no", GGL_GGUF_U16, false, &no, 1);
        ggl_gguf_put(w, "split.count", GGL_GGUF_U16, false, &count, 1);
        ggl_gguf_put(w, "split.tensors.count", GGL_GGUF_I32, false, &n, 1);
    }
    put_tensors(w, j, n_parts > 1 ? part : -1);
    return w;
}

static ggl_status write_one(job *j, int part, int n_parts, ggl_error *err) {
    ggl_gguf_writer *w = make_file(j, part, n_parts, err);
    char path[OS_MOST_PATH];
    if (!w)
        return GGL_NOMEM;
    if (n_parts > 1)
        out_part_path(path, sizeof path, j->o.out, part, n_parts);
    else
        snprintf(path, sizeof path, "%s", j->o.out);
    ggl_status s = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return s;
}

/* Returns the error that writing OUT would give. */
static ggl_status why_not_written(const job *j, const ggl_gguf_writer *w, ggl_error *err) {
    const ggl_gguf_memory nothing = {.size = 0};
    const ggl_gguf_composition c = {
        .size = sizeof c, .name = j->o.in, .part = &nothing, .n_parts = 1};
    ggl_gguf *f;
    const ggl_status s = ggl_gguf_compose(&f, w, &c, err);
    ggl_gguf_close(f);
    return s == GGL_OK ? ggl_fail(err, GGL_LIMIT, "%s: OUT would be too large", j->o.in) : s;
}

ggl_status measure_head(job *j, uint64_t *head, uint64_t *alignment, ggl_error *err) {
    const int n_parts = out_parts(j);
    int64_t given = 32; /* the format's default */
    (void)ggl_gguf_get_integer(j->file, "general.alignment", &given, NULL);
    for (size_t i = 0; i < j->o.override_kv.n; i++)
        if (strcmp(j->key[i].key, "general.alignment") == 0 && j->key[i].type == GGL_GGUF_U32)
            given = j->key[i].is.u32;
    *alignment = given > 0 ? (uint64_t)given : 32;
    *head = 0;
    free(j->tensor_job);
    j->tensor_job = calloc(j->plan.n + 1, sizeof *j->tensor_job);
    if (!j->tensor_job)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int part = 0; part < n_parts; part++) {
        ggl_gguf_writer *w = make_file(j, part, n_parts, err);
        if (!w)
            return GGL_NOMEM;
        const uint64_t size = ggl_gguf_writer_size(w);
        const ggl_status st = size > 0 ? GGL_OK : why_not_written(j, w, err);
        ggl_gguf_writer_free(w);
        if (st != GGL_OK)
            return st;
        *head += size;
    }
    for (size_t i = 0; i < j->plan.n; i++)
        *head -= (j->plan.tensor[i].size + *alignment - 1) / *alignment * *alignment;
    return GGL_OK;
}

void out_part_path(char *to, size_t size, const char *out, int part, int n_parts) {
    const size_t n = strlen(out);
    const bool suffix = n > 5 && strcmp(out + n - 5, ".gguf") == 0;
    snprintf(to, size, "%.*s-%05d-of-%05d.gguf", (int)(suffix ? n - 5 : n), out, part + 1, n_parts);
}

int out_parts(const job *j) {
    return j->o.keep_split ? ggl_gguf_n_parts(j->file) : 1;
}

ggl_status write_model(job *j, ggl_error *err) {
    const int n_parts = out_parts(j);
    j->encoder = llm_quant_encoder_new((int)j->o.n_threads, !j->o.budget.no_search);
    j->error = calloc(j->plan.n + 1, sizeof *j->error);
    free(j->tensor_job);
    j->tensor_job = calloc(j->plan.n + 1, sizeof *j->tensor_job);
    ggl_status s = j->encoder && j->error && j->tensor_job
                       ? GGL_OK
                       : ggl_fail(err, GGL_NOMEM, "out of memory");
    int part = n_parts - 1; /* the first part, which a model is opened with, comes last */
    for (; s == GGL_OK && part >= 0; part--)
        s = write_one(j, part, n_parts, err);
    for (part += 2; s != GGL_OK && n_parts > 1 && part < n_parts; part++) {
        char path[OS_MOST_PATH];
        out_part_path(path, sizeof path, j->o.out, part, n_parts);
        ggl_os_remove(path);
    }
    return s;
}

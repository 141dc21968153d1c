/* Writing OUT: keys, tensors, parts. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/process.h"
#include "common/progress.h"
#include "job.h"

enum { QUANTIZATION_VERSION = 2 }; /* of the block formats, as in general.quantization_version */

typedef struct turn {
    job *j;
    size_t i;
} turn;

/* Pages that were read are not needed again: memory stays small, however large the file is. */
static bool more(void *ctx, const void *source, size_t n) {
    job *j = ctx;
    ggl_gguf_drop(j->file, source, n);
    j->done += n;
    progress_set((double)j->done);
    return !process_stopped;
}

static ggl_status encode_part(job *j, size_t i, size_t k, ggl_gguf_sink *to, quant_error *error,
                              ggl_error *err) {
    const quant_tensor *x = &j->plan.tensor[i];
    float *importance;
    ggl_status s = importance_of(j, i, k, &importance, err);
    if (s == GGL_OK)
        s = llm_quant_encode(j->encoder, x->part[k], x->type, importance, to, error, more, j, err);
    free(importance);
    return s;
}

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const turn *t = ctx;
    job *j = t->j;
    const quant_tensor *x = &j->plan.tensor[t->i];
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < x->n_part && s == GGL_OK; k++) {
        quant_error error = {0};
        if (x->type->type == x->from->type)
            s = llm_quant_copy(x->part[k], to, more, j, err);
        else
            s = encode_part(j, t->i, k, to, &error, err);
        llm_quant_error_add(&j->error[t->i], &error);
    }
    if (s == GGL_FORMAT || s == GGL_LIMIT) /* the writer's message would name OUT */
        ggl_fail(&j->bad_input, s, "%s: tensor '%s': %s", j->o.in, x->shown, err->msg);
    return s;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void put_u32(ggl_gguf_writer *w, const char *key, uint32_t value) {
    ggl_gguf_put(w, key, GGL_GGUF_U32, false, &value, 1);
}

/* Keys that are written anew, with the value of this run. */
typedef struct own_key {
    const char *key;
    enum { OWN_U32, OWN_TEXT } type;
    uint32_t number;
    const char *text;
    bool left_out; /* the file's value goes, and there is no new one */
    bool put;
} own_key;

enum { MAX_OWN = 6 };

/* Lists the keys about the types and the importance matrix; returns how many. */
static int list_own(const job *j, own_key own[MAX_OWN]) {
    const quant_mix *mix = j->choice.mix;
    int n = 0;
    if (mix || j->choice.type ||
        j->choice.pick) { /* after COPY, what the file says is still true of most tensors */
        own[n++] = (own_key){
            "general.quantization_version", OWN_U32, QUANTIZATION_VERSION, NULL, false, false};
        /* a type without a number gets no key, rather than a wrong one */
        own[n++] = (own_key){
            "general.file_type", OWN_U32, mix ? (uint32_t)mix->file_type : 0, NULL, !mix, false};
    }
    if (!j->matrix)
        return n;
    own[n++] = (own_key){"quantize.imatrix.file", OWN_TEXT, 0, j->o.imatrix, false, false};
    if (imatrix_n_datasets(j->matrix) > 0)
        own[n++] = (own_key){"quantize.imatrix.dataset",    OWN_TEXT, 0,
                             imatrix_dataset(j->matrix, 0), false,    false};
    own[n++] = (own_key){
        "quantize.imatrix.entries_count", OWN_U32, (uint32_t)j->n_used, NULL, false, false};
    own[n++] = (own_key){"quantize.imatrix.chunks_count",
                         OWN_U32,
                         (uint32_t)imatrix_n_chunks(j->matrix),
                         NULL,
                         false,
                         false};
    return n;
}

static void put_own(ggl_gguf_writer *w, own_key *k) {
    if (!k->put && !k->left_out && k->type == OWN_TEXT)
        ggl_gguf_put_string(w, k->key, k->text, strlen(k->text));
    else if (!k->put && !k->left_out)
        put_u32(w, k->key, k->number);
    k->put = true;
}

static void put_override(ggl_gguf_writer *w, const key_override *k) {
    char key[256];
    snprintf(key, sizeof key, "%.*s", (int)k->n, k->key);
    if (k->type == GGL_GGUF_STRING)
        ggl_gguf_put_string(w, key, k->is.text, strlen(k->is.text));
    else
        ggl_gguf_put(w, key, k->type, false, &k->is, 1);
}

/* Returns the last --override-kv of the key; NULL: none. */
static const key_override *override_of(const job *j, ggl_str key) {
    const key_override *found = NULL;
    for (size_t i = 0; i < j->o.override_kv.n; i++)
        if (j->key[i].n == key.n && memcmp(j->key[i].key, key.s, key.n) == 0)
            found = &j->key[i];
    return found;
}

/* Writes the keys in order. Those that change do so in place; new ones are added at the end. */
static void put_keys(ggl_gguf_writer *w, const job *j) {
    own_key own[MAX_OWN];
    const int n_own = list_own(j, own);
    for (size_t i = 0; i < ggl_gguf_n_values(j->file); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(j->file, i);
        const key_override *other = override_of(j, v->key);
        int k = 0;
        if (v->key.n > 6 && memcmp(v->key.s, "split.", 6) == 0)
            continue;
        while (k < n_own && !ggl_str_is(v->key, own[k].key))
            k++;
        if (other)
            put_override(w, other);
        else if (k < n_own)
            put_own(w, &own[k]);
        else
            llm_quant_prune_put(&j->prune, w, v, j->plan.n_layer);
    }
    for (int k = 0; k < n_own; k++)
        if (!override_of(j, (ggl_str){own[k].key, strlen(own[k].key)}))
            put_own(w, &own[k]);
    for (size_t i = 0; i < j->o.override_kv.n; i++) {
        const ggl_str key = {j->key[i].key, j->key[i].n};
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)key.n, key.s);
        if (override_of(j, key) == &j->key[i] && !ggl_gguf_find(j->file, name))
            put_override(w, &j->key[i]);
    }
}

/* --- files ------------------------------------------------------------------------------------ */

/* Adds the tensors of a part of IN; part -1: all. */
static void put_tensors(ggl_gguf_writer *w, job *j, int part) {
    for (size_t i = 0; i < j->plan.n; i++) {
        const quant_tensor *t = &j->plan.tensor[i];
        if (part >= 0 && t->from->part != part)
            continue;
        j->turn[i] = (turn){j, i};
        ggl_gguf_put_tensor_later(w, t->name, t->type->type, t->from->n_dims, t->from->ne, fill,
                                  &j->turn[i]);
    }
}

/* Makes a file of OUT, without writing it. */
static ggl_gguf_writer *make_file(job *j, int part, int n_parts) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return NULL;
    if (part <= 0)
        put_keys(w, j);
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
    ggl_gguf_writer *w = make_file(j, part, n_parts);
    char path[PATH_MAX];
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (n_parts > 1)
        out_part_path(path, sizeof path, j->o.out, part, n_parts);
    else
        snprintf(path, sizeof path, "%s", j->o.out);
    ggl_status s = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return s;
}

ggl_status measure_head(job *j, uint64_t *head, uint64_t *alignment, ggl_error *err) {
    const int n_parts = out_parts(j);
    int64_t given = 32; /* the format's default */
    (void)ggl_gguf_get_integer(j->file, "general.alignment", &given, NULL);
    *alignment = given > 0 ? (uint64_t)given : 32;
    *head = 0;
    free(j->turn);
    j->turn = calloc(j->plan.n + 1, sizeof *j->turn);
    for (int part = 0; part < n_parts; part++) {
        ggl_gguf_writer *w = j->turn ? make_file(j, part, n_parts) : NULL;
        if (!w)
            return ggl_fail(err, GGL_NOMEM, "out of memory");
        const uint64_t size = ggl_gguf_writer_size(w);
        ggl_gguf_writer_free(w);
        if (size == 0)
            return ggl_fail(err, GGL_USAGE, "%s: a key cannot be written, or OUT is too large",
                            j->o.in);
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
    j->encoder = llm_quant_encoder_new((int)j->o.n_threads);
    j->error = calloc(j->plan.n + 1, sizeof *j->error);
    free(j->turn);
    j->turn = calloc(j->plan.n + 1, sizeof *j->turn);
    ggl_status s =
        j->encoder && j->error && j->turn ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    int part = n_parts - 1; /* the first part, by which a model is opened, comes last */
    for (; s == GGL_OK && part >= 0; part--)
        s = write_one(j, part, n_parts, err);
    for (part += 2; s != GGL_OK && n_parts > 1 && part < n_parts; part++) {
        char path[PATH_MAX];
        out_part_path(path, sizeof path, j->o.out, part, n_parts);
        unlink(path);
    }
    return s;
}

#include "recorded.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/types.h"
#include "ggl/internal/xxh64.h"

#define TYPE       "probabilities"
#define VOCAB      TYPE ".vocab_size"
#define VOCABULARY TYPE ".vocabulary"
#define TEMP       TYPE ".temperature"
#define TEACHER    TYPE ".teacher"

/* Where a sequence is. */
typedef struct place {
    uint64_t digest;
    int64_t first, n;
} place;

struct train_recorded {
    ggl_gguf *file;
    place *at; /* [n], by their digests */
    int64_t n, n_vocab, top;
    const int32_t *id;
    const uint16_t *share;
    uint64_t teacher;
};

static uint64_t digest_of(const int32_t *token, int64_t n) {
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    ggl_xxh64_add(&h, token, (size_t)n * sizeof *token);
    return ggl_xxh64_end(&h);
}

static uint64_t digest_of_vocabulary(const llm_tokenizer *t) {
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    for (int32_t i = 0; i < llm_tokenizer_n_vocab(t); i++) {
        const ggl_str s = llm_token_piece(t, i);
        ggl_xxh64_add(&h, s.s, s.n);
        ggl_xxh64_add(&h, "", 1);
    }
    return ggl_xxh64_end(&h);
}

/* --- reading ---------------------------------------------------------------------------------- */

bool llm_train_is_recorded(const char *path) {
    const ggl_gguf_params meta = {.size = sizeof meta, .meta_only = true};
    ggl_gguf *f = NULL;
    ggl_str type;
    const bool is = ggl_gguf_open(&f, path, &meta, NULL) == GGL_OK &&
                    ggl_gguf_get_string(f, "general.type", &type, NULL) > 0 &&
                    ggl_str_is(type, TYPE);
    ggl_gguf_close(f);
    return is;
}

static int by_digest(const void *a, const void *b) {
    const place *x = a, *y = b;
    return x->digest < y->digest ? -1 : x->digest > y->digest;
}

/* Gets a tensor of that type, whose extents must be these; ne[1] 0: any. NULL: that is wrong, and reported. */
static const ggl_gguf_tensor *tensor_of(const ggl_gguf *f, const char *name, ggl_type type,
                                        int64_t n0, int64_t n1, ggl_error *err) {
    const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, name);
    if (t && t->type == type && (n0 == 0 || t->ne[0] == n0) && (n1 == 0 || t->ne[1] == n1) &&
        t->ne[2] == 1 && t->ne[3] == 1)
        return t;
    (void)ggl_fail(err, GGL_FORMAT, "%s: the tensor %s is missing, or has another type or shape",
                   ggl_gguf_name(f), name);
    return NULL;
}

/* Lists the sequences. */
static ggl_status list_places(train_recorded *r, const int64_t *digest, const int64_t *first,
                              int64_t n_rows, ggl_error *err) {
    r->at = ggl_calloc((size_t)r->n, sizeof *r->at);
    if (!r->at)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %s", ggl_gguf_name(r->file));
    for (int64_t i = 0; i < r->n; i++) {
        if (first[i] < 0 || first[i + 1] <= first[i] || first[i + 1] > n_rows)
            return ggl_fail(err, GGL_FORMAT,
                            "%s: sequence %" PRId64 " has the rows %" PRId64 " to %" PRId64
                            " of %" PRId64 ": the file is damaged",
                            ggl_gguf_name(r->file), i, first[i], first[i + 1], n_rows);
        r->at[i] = (place){(uint64_t)digest[i], first[i], first[i + 1] - first[i]};
    }
    qsort(r->at, (size_t)r->n, sizeof *r->at, by_digest);
    return GGL_OK;
}

static ggl_status check_tokens(const train_recorded *r, const llm_tokenizer *t, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(r->file, VOCABULARY);
    uint64_t digest = 0;
    if (v && ggl_gguf_unsigned(v, 0, &digest) && digest == digest_of_vocabulary(t))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "%s has the probabilities of other tokens than the model's: they were recorded "
                    "for a model with another vocabulary",
                    ggl_gguf_name(r->file));
}

static ggl_status check_temp(const train_recorded *r, double temp, ggl_error *err) {
    double own = 0;
    if (ggl_gguf_get_number(r->file, TEMP, &own, err) <= 0 || !(own > 0))
        return ggl_fail(err, GGL_FORMAT, "%s: the key " TEMP " is missing, or wrong",
                        ggl_gguf_name(r->file));
    return own == temp ? GGL_OK
                       : ggl_fail(err, GGL_USAGE,
                                  "%s has probabilities at the temperature %g, and teacher_temp "
                                  "(--teacher-temp) "
                                  "is %g: record the teacher at that one",
                                  ggl_gguf_name(r->file), own, temp);
}

static ggl_status read_file(train_recorded *r, const llm_tokenizer *t, double temp,
                            ggl_error *err) {
    const ggl_gguf *f = r->file;
    const ggl_gguf_tensor *digest = tensor_of(f, "sequence.digest", GGL_I64, 0, 1, err), *first,
                          *id, *share;
    if (!digest || !(first = tensor_of(f, "sequence.first", GGL_I64, digest->ne[0] + 1, 1, err)) ||
        !(id = tensor_of(f, "token.id", GGL_I32, 0, 0, err)) ||
        !(share = tensor_of(f, "token.share", GGL_F16, id->ne[0], id->ne[1], err)))
        return GGL_FORMAT;
    if (ggl_gguf_get_integer(f, VOCAB, &r->n_vocab, err) <= 0 || r->n_vocab < id->ne[0] ||
        r->n_vocab > INT32_MAX)
        return ggl_fail(err, GGL_FORMAT, "%s: the key " VOCAB " is missing, or wrong",
                        ggl_gguf_name(f));
    r->n = digest->ne[0];
    r->top = id->ne[0];
    r->id = id->data;
    r->share = share->data;
    const ggl_gguf_value *v = ggl_gguf_find(f, TEACHER);
    ggl_status st = check_tokens(r, t, err);
    if (st == GGL_OK)
        st = check_temp(r, temp, err);
    if (st == GGL_OK && (!v || !ggl_gguf_unsigned(v, 0, &r->teacher)))
        st = ggl_fail(err, GGL_FORMAT, "%s: the key " TEACHER " is missing, or wrong",
                      ggl_gguf_name(f));
    return st == GGL_OK ? list_places(r, digest->data, first->data, id->ne[1], err) : st;
}

ggl_status llm_train_recorded_open(train_recorded **out, const char *path, const llm_tokenizer *t,
                                   double temp, ggl_error *err) {
    train_recorded *r = ggl_calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    ggl_status st = ggl_gguf_open(&r->file, path, NULL, err);
    if (st == GGL_OK)
        st = read_file(r, t, temp, err);
    if (st != GGL_OK)
        llm_train_recorded_close(r);
    else
        *out = r;
    return st;
}

void llm_train_recorded_close(train_recorded *r) {
    if (!r)
        return;
    ggl_gguf_close(r->file);
    ggl_free(r->at);
    ggl_free(r);
}

int64_t llm_train_recorded_n_vocab(const train_recorded *r) {
    return r->n_vocab;
}

int64_t llm_train_recorded_top(const train_recorded *r) {
    return r->top;
}

uint64_t llm_train_recorded_teacher(const train_recorded *r) {
    return r->teacher;
}

const ggl_gguf *llm_train_recorded_file(const train_recorded *r) {
    return r->file;
}

/* Sets to[n_vocab] to the probabilities of a row. */
static ggl_status unpack(const train_recorded *r, int64_t row, float *to, ggl_error *err) {
    const int32_t *id = r->id + row * r->top;
    const uint16_t *share = r->share + row * r->top;
    const double n_rest = (double)(r->n_vocab - r->top);
    double known = 0;
    for (int64_t k = 0; k < r->top; k++) {
        const double p = (double)ggl_f16_to_f32(share[k]);
        if (id[k] < 0 || id[k] >= r->n_vocab || !(p >= 0 && p <= 1))
            return ggl_fail(err, GGL_FORMAT,
                            "%s: row %" PRId64 " has token %d with the probability %g, of %" PRId64
                            " tokens: the file is damaged",
                            ggl_gguf_name(r->file), row, (int)id[k], p, r->n_vocab);
        known += p;
    }
    const double rest = n_rest > 0 && known < 1 ? 1 - known : 0,
                 scale = known > 0 ? (1 - rest) / known : 0;
    for (int64_t k = 0; k < r->n_vocab; k++)
        to[k] = rest > 0 ? (float)(rest / n_rest) : 0;
    for (int64_t k = 0; k < r->top; k++)
        to[id[k]] = (float)((double)ggl_f16_to_f32(share[k]) * scale);
    return GGL_OK;
}

static const place *find(const train_recorded *r, const int32_t *token, int64_t n, ggl_error *err) {
    const place key = {.digest = digest_of(token, n)},
                *p = r->n > 0 ? bsearch(&key, r->at, (size_t)r->n, sizeof key, by_digest) : NULL;
    if (p && p->n == n)
        return p;
    (void)ggl_fail(err, GGL_NOT_FOUND,
                   "%s has no probabilities of a sequence of %" PRId64
                   " tokens: they were recorded of other texts, or with another context",
                   ggl_gguf_name(r->file), n);
    return NULL;
}

ggl_status llm_train_recorded_check(const train_recorded *r, const int32_t *token, int64_t length,
                                    ggl_error *err) {
    return find(r, token, length, err) ? GGL_OK : GGL_NOT_FOUND;
}

ggl_status llm_train_recorded_teach(void *recorded, const int32_t *token, const int64_t *length,
                                    int64_t n_seq, float *share, ggl_error *err) {
    const train_recorded *r = recorded;
    ggl_status st = GGL_OK;
    for (int64_t i = 0, at = 0; i < n_seq && st == GGL_OK; at += length[i++]) {
        const place *p = find(r, token + at, length[i], err);
        st = p ? GGL_OK : GGL_NOT_FOUND;
        for (int64_t k = 0; k < length[i] && st == GGL_OK; k++)
            st = unpack(r, p->first + k, share + (at + k) * r->n_vocab, err);
    }
    return st;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A file that is being written. */
typedef struct recorder {
    const train_recording *p;
    int32_t *token; /* [longest] */
    float *share;   /* [longest][n_vocab] */
    int32_t *id;    /* [top] */
    uint16_t *half; /* [top] */
    FILE *halves;   /* what is written behind the ids, while these are */
} recorder;

/* Puts the n likeliest tokens into id[n], the likeliest first; equal ones by their numbers. */
static void find_top(const float *share, int64_t n_vocab, int32_t *id, int64_t n) {
    int64_t used = 0;
    for (int64_t k = 0; k < n_vocab; k++) {
        if (used == n && share[k] <= share[id[n - 1]])
            continue;
        int64_t at = used < n ? used++ : n - 1;
        for (; at > 0 && share[id[at - 1]] < share[k]; at--)
            id[at] = id[at - 1];
        id[at] = (int32_t)k;
    }
}

static bool is_probability(const float *share, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += (double)share[k];
    return fabs(sum - 1) < 1e-3; /* not if one is NaN */
}

/* Writes the ids of all sequences, and keeps their shares. */
static ggl_status fill_ids(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    recorder *r = ctx;
    const train_recording *p = r->p;
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < p->n_seq && st == GGL_OK; i++) {
        p->get(p->ctx, i, r->token);
        st = p->teach(p->ctx, i, r->token, r->share, err);
        for (int64_t k = 0; k < p->length(p->ctx, i) && st == GGL_OK; k++) {
            const float *share = r->share + k * p->n_vocab;
            if (!is_probability(share, p->n_vocab))
                return ggl_fail(err, GGL_FORMAT,
                                "the teacher says something that is no probability after token "
                                "%" PRId64 " of sequence %" PRId64 ": its numbers are wrong",
                                k + 1, i + 1);
            find_top(share, p->n_vocab, r->id, p->top);
            for (int64_t j = 0; j < p->top; j++)
                r->half[j] = ggl_f32_to_f16(share[r->id[j]]);
            st = ggl_gguf_sink_write(to, r->id, (size_t)p->top * sizeof *r->id, err);
            if (st == GGL_OK &&
                fwrite(r->half, sizeof *r->half, (size_t)p->top, r->halves) != (size_t)p->top)
                st = ggl_fail(err, GGL_IO, "a temporary file cannot be written: is the disk full?");
        }
    }
    return st;
}

static ggl_status fill_shares(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const recorder *r = ctx;
    char piece[1 << 14];
    size_t n;
    ggl_status st = GGL_OK;
    rewind(r->halves);
    while (st == GGL_OK && (n = fread(piece, 1, sizeof piece, r->halves)) > 0)
        st = ggl_gguf_sink_write(to, piece, n, err);
    return st;
}

static ggl_status write_all(recorder *r, const int64_t *digest, const int64_t *first,
                            const char *path, ggl_error *err) {
    const train_recording *p = r->p;
    const uint64_t n_vocab = (uint64_t)p->n_vocab, vocabulary = digest_of_vocabulary(p->tokenizer);
    const int64_t n_digests[] = {p->n_seq, 1}, n_firsts[] = {p->n_seq + 1, 1},
                  rows[] = {p->top, first[p->n_seq]};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    ggl_gguf_put_string(w, "general.type", TYPE, sizeof TYPE - 1);
    ggl_gguf_put(w, VOCAB, GGL_GGUF_U64, false, &n_vocab, 1);
    ggl_gguf_put(w, VOCABULARY, GGL_GGUF_U64, false, &vocabulary, 1);
    ggl_gguf_put(w, TEMP, GGL_GGUF_F64, false, &p->temp, 1);
    ggl_gguf_put(w, TEACHER, GGL_GGUF_U64, false, &p->teacher, 1);
    ggl_gguf_put_tensor(w, "sequence.digest", GGL_I64, 1, n_digests, digest);
    ggl_gguf_put_tensor(w, "sequence.first", GGL_I64, 1, n_firsts, first);
    ggl_gguf_put_tensor_later(w, "token.id", GGL_I32, 2, rows, fill_ids, r);
    ggl_gguf_put_tensor_later(w, "token.share", GGL_F16, 2, rows, fill_shares, r);
    const ggl_status st = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return st;
}

/* Lists the sequences, and writes the file. */
static ggl_status record(recorder *r, int64_t *digest, int64_t *first, const char *path,
                         ggl_error *err) {
    const train_recording *p = r->p;
    for (int64_t i = 0; i < p->n_seq; i++) {
        const int64_t n = p->length(p->ctx, i);
        p->get(p->ctx, i, r->token);
        digest[i] = (int64_t)digest_of(r->token, n);
        first[i + 1] = first[i] + n;
    }
    return write_all(r, digest, first, path, err);
}

ggl_status llm_train_record(const train_recording *p, const char *path, ggl_error *err) {
    recorder r = {.p = p};
    int64_t *digest = ggl_calloc((size_t)p->n_seq, sizeof *digest),
            *first = ggl_calloc((size_t)p->n_seq + 1, sizeof *first);
    r.token = ggl_calloc((size_t)p->longest, sizeof *r.token);
    r.share = ggl_calloc((size_t)p->longest, (size_t)p->n_vocab * sizeof *r.share);
    r.id = ggl_calloc((size_t)p->top, sizeof *r.id);
    r.half = ggl_calloc((size_t)p->top, sizeof *r.half);
    ggl_status st =
        digest && first && r.token && r.share && r.id && r.half
            ? GGL_OK
            : ggl_fail(err, GGL_NOMEM, "out of memory for the probabilities of the teacher");
    if (st == GGL_OK && !(r.halves = ggl_os_tmpfile()))
        st = ggl_fail(err, GGL_IO, "a temporary file cannot be made");
    if (st == GGL_OK)
        st = record(&r, digest, first, path, err);
    if (r.halves)
        fclose(r.halves);
    ggl_free(digest);
    ggl_free(first);
    ggl_free(r.token);
    ggl_free(r.share);
    ggl_free(r.id);
    ggl_free(r.half);
    return st;
}

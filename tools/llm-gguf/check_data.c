/* Decodes all weights of a file and looks for numbers that are NaN or infinite. A scale that is NaN or
 * infinite makes its whole block so. And looks for matrices of zero bytes: programs that download reserve space first, and
 * what they have not written when they end is zero, a whole matrix or its last rows. Rows of unused tokens may be zero, and biases, and a factor of an
 * adapter that has learned nothing; but not both of them, and no norm of the output. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "common/amounts.h"
#include "common/gguf_text.h"
#include "common/progress.h"
#include "common/work_share.h"
#include "ggl/alloc.h"
#include "ggl/internal/types.h"

enum { PIECE = 1 << 14 }; /* elements: whole blocks of every type */

/* What a thread has found in its share of a tensor's elements. */
typedef struct scan_result {
    int64_t n_bad, first_bad;
    float value;
    bool is_written;      /* a byte is not zero */
    int64_t last_written; /* the last element in whose block that is so */
} scan_result;

typedef struct scan {
    const ggl_type_info *type;
    int n_threads;
    bool is_model;
    float *x; /* [n_threads][PIECE] */
    /* the current step */
    const uint8_t *data;
    int64_t first, n; /* elements before it, and of it */
    int64_t n_row;    /* elements of a row */
    /* of each thread: bad elements, and the first of them */
    scan_result *result;
    bool *blank; /* [n_tensors]: those of an adapter that are zero */
} scan;

/* Returns how many bytes there are to the end of the last that is not zero. */
static size_t written(const uint8_t *s, size_t n) {
    while (n > 0 && s[n - 1] == 0)
        n--;
    return n;
}

static void scan_piece(void *ctx, size_t i, int thread) {
    scan *s = ctx;
    const int64_t at = (int64_t)i * PIECE, n = s->n - at < PIECE ? s->n - at : PIECE;
    float *x = s->x + (size_t)thread * PIECE;
    scan_result *r = &s->result[thread];
    const size_t before = ggl_bytes_before(s->type, s->n_row, at),
                 after = ggl_bytes_before(s->type, s->n_row, at + n);
    const size_t n_written = written(s->data + before, after - before);
    if (n_written > 0) {
        const int64_t block = (int64_t)((n_written - 1) / s->type->size),
                      end = (block + 1) * s->type->block, /* rows' own scales make it too many */
            last = s->first + at + (end < n ? end : n) - 1;
        r->last_written = last > r->last_written ? last : r->last_written;
        r->is_written = true;
    }
    ggl_to_float(s->type, s->data, s->n_row, at, n, x);
    for (int64_t k = 0; k < n; k++) {
        if (isfinite(x[k]))
            continue;
        if (r->n_bad++ == 0 || s->first + at + k < r->first_bad) {
            r->first_bad = s->first + at + k;
            r->value = x[k];
        }
    }
}

static ggl_status scan_step(void *ctx, const void *data, size_t n, ggl_error *err) {
    scan *s = ctx;
    (void)err;
    s->data = data;
    s->n = s->type->row_meta ? (int64_t)(n / ggl_row_size(s->type->type, s->n_row)) * s->n_row
                             : (int64_t)(n / s->type->size) * s->type->block;
    llm_work_share(s->n_threads, (size_t)((s->n + PIECE - 1) / PIECE), scan_piece, s);
    s->first += s->n;
    return GGL_OK;
}

/* True for a model's matrix, of which no byte is written. */
static bool is_blank(const scan *s, const ggl_gguf_tensor *t, const scan_result *all) {
    return s->is_model && s->first == (int64_t)tensor_elements(t) && !all->is_written &&
           t->ne[0] > 1 && s->first > t->ne[0];
}

static bool has_name(const ggl_gguf_tensor *t, const char *part) {
    char name[512];
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
    return strstr(name, part) != NULL;
}

/* Returns how many rows of a model's matrix are zero at its end, if these are more than half; else 0. Rows of tokens that nothing uses may be zero. */
static int64_t blank_rows(const scan *s, const ggl_gguf_tensor *t, const scan_result *all) {
    const int64_t n = t->ne[0] > 1 ? s->first / t->ne[0] : 0;
    const int64_t n_blank = n > 1 ? n - 1 - all->last_written / t->ne[0] : 0;
    return s->is_model && s->first == (int64_t)tensor_elements(t) && all->is_written &&
                   2 * n_blank > n && !has_name(t, "embd") && !ggl_str_is(t->name, "output.weight")
               ? n_blank
               : 0;
}

static void report(gguf_findings *c, const scan *s, const ggl_gguf_tensor *t) {
    scan_result all = {0};
    for (int k = 0; k < s->n_threads; k++) {
        const scan_result *r = &s->result[k];
        if (r->n_bad > 0 && (all.n_bad == 0 || r->first_bad < all.first_bad)) {
            all.first_bad = r->first_bad;
            all.value = r->value;
        }
        all.n_bad += r->n_bad;
        all.is_written |= r->is_written;
        all.last_written = r->last_written > all.last_written ? r->last_written : all.last_written;
    }
    const int64_t n_blank = blank_rows(s, t, &all);
    if (n_blank > 0)
        gguf_find(c,
                  "tensor '%.*s' of type %s has only zero bytes in its last %" PRId64 " of %" PRId64
                  " rows: so does space that a download has reserved and not filled; download or "
                  "convert the file again",
                  (int)t->name.n, t->name.s, s->type->name, n_blank, s->first / t->ne[0]);
    if (s->is_model && !all.is_written && s->first > 1 && ggl_str_is(t->name, "output_norm.weight"))
        gguf_find(c, "tensor 'output_norm.weight' has only zeros, so that all tokens are equally "
                     "likely: convert the model again");
    if (is_blank(s, t, &all))
        gguf_find(c,
                  "tensor '%.*s' of type %s has only zero bytes, %zu of them: so does space that a "
                  "download has reserved and not filled; download or convert the file again",
                  (int)t->name.n, t->name.s, s->type->name, t->size);
    if (all.n_bad > 0)
        gguf_find(c,
                  "tensor '%.*s' of type %s has %" PRId64 " element%s NaN or infinite; the "
                  "first is element %" PRId64 ", %s",
                  (int)t->name.n, t->name.s, s->type->name, all.n_bad,
                  all.n_bad == 1 ? " that is" : "s that are", all.first_bad,
                  isnan(all.value) ? "NaN" : "infinite");
}

static ggl_status scan_tensor(gguf_findings *c, scan *s, const ggl_gguf *f, size_t i, double *done,
                              ggl_error *err) {
    const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
    s->type = ggl_type_get((int)t->type);
    s->first = 0;
    for (int k = 0; k < s->n_threads; k++)
        s->result[k] = (scan_result){0};
    if (!s->type || !t->data)
        return GGL_OK;
    /* a step has whole pieces, or whole rows */
    s->n_row = t->ne[0];
    const size_t piece = ggl_row_size(t->type, s->type->row_meta ? t->ne[0] : PIECE);
    const size_t step = GGUF_STEP / piece * piece;
    ggl_status st = gguf_stream(f, t, step > 0 ? step : piece, done, scan_step, s, err);
    report(c, s, t);
    s->blank[i] = st == GGL_OK;
    for (int k = 0; k < s->n_threads; k++)
        s->blank[i] &= !s->result[k].is_written;
    return st;
}

/* Finds pairs of an adapter whose halves are both zero. */
static void report_pairs(gguf_findings *c, const scan *s, const ggl_gguf *f) {
    static const char end[] = ".lora_a";
    char other[512];
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        const size_t n = t->name.n - (t->name.n >= sizeof end ? sizeof end - 1 : 0);
        if (!s->blank[i] || n == t->name.n || memcmp(t->name.s + n, end, sizeof end - 1) != 0)
            continue;
        snprintf(other, sizeof other, "%.*s.lora_b", (int)n, t->name.s);
        const ggl_gguf_tensor *b = ggl_gguf_find_tensor(f, other);
        if (b && s->blank[b - ggl_gguf_tensor_at(f, 0)])
            gguf_find(c,
                      "both halves of the pair '%.*s' have only zeros: it changes nothing, and can "
                      "learn nothing",
                      (int)n, t->name.s);
    }
}

/* True for models and their eyes; adapters and importance matrices have other general.type. */
static bool is_model(const ggl_gguf *f) {
    ggl_str type = {"model", 5};
    (void)ggl_gguf_get_string(f, "general.type", &type, NULL);
    return ggl_str_is(type, "model") || ggl_str_is(type, "mmproj");
}

bool gguf_check_data(gguf_findings *c, const ggl_gguf *f, int n_threads) {
    ggl_error err = {0};
    double done = 0;
    scan s = {.n_threads = n_threads, .is_model = is_model(f)};
    s.x = ggl_calloc((size_t)n_threads * PIECE, sizeof *s.x);
    s.result = ggl_calloc((size_t)n_threads, sizeof *s.result);
    s.blank = ggl_calloc(ggl_gguf_n_tensors(f) + 1, sizeof *s.blank);
    ggl_status st =
        s.x && s.result && s.blank ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory");
    progress_begin(PROGRESS_BYTES, gguf_bytes(f), "checking %s", ggl_gguf_name(f));
    for (size_t i = 0; st == GGL_OK && i < ggl_gguf_n_tensors(f); i++)
        st = scan_tensor(c, &s, f, i, &done, &err);
    progress_end();
    if (st == GGL_OK && !s.is_model)
        report_pairs(c, &s, f);
    ggl_free(s.x);
    ggl_free(s.blank);
    ggl_free(s.result);
    return st == GGL_OK || tool_error("llm-gguf check", 1, "%s", err.msg) < 0;
}

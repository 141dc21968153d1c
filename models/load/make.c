/* Makes the tensors that a conversion or a new type changes: threads take pieces of all tensors, one
 * after the other. A tensor whose recipe holds something in memory is one piece. */
#include <stdlib.h>
#include <string.h>

#include "common/work_share.h"
#include "convert/pieces.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/pass.h"
#include "load_impl.h"
#include "quant/encode.h"

typedef struct job {
    load_tensor *t;
    int64_t first, n; /* elements */
} job;

/* Numbers of a piece on their way. */
typedef struct scratch {
    float x[LLM_CONVERT_PIECE];         /* as floats */
    uint64_t source[LLM_CONVERT_PIECE]; /* in the type before quantizing: f64 at most */
    float y[LLM_CONVERT_PIECE];         /* the quantized ones, read back */
} scratch;

typedef struct making {
    loaded *l;
    job *job; /* [n] */
    size_t n, cap;
    scratch *thread; /* [n_threads] */
    atomic_size_t done;
    size_t total;              /* bytes */
    atomic_bool stop;          /* cancelled */
    atomic_size_t first_error; /* jobs after it need not run */
    bool cancelled;
    os_mutex lock;
    size_t i_error; /* the first job that failed, and its error */
    ggl_error error;
} making;

static bool add_job(making *m, load_tensor *t, int64_t first, int64_t n) {
    if (!ggl_grow(&m->job, &m->cap, m->n + 1, sizeof *m->job))
        return false;
    m->job[m->n++] = (job){t, first, n};
    return true;
}

static bool add_jobs(making *m, load_tensor *t) {
    const int64_t n = t->count;
    const int64_t step = t->recipe && llm_recipe_holds(t->recipe) ? n : LLM_CONVERT_PIECE;
    bool ok = true;
    m->total += t->size;
    for (int64_t at = 0; ok && at < n; at += step)
        ok = add_job(m, t, at, n - at < step ? n - at : step);
    return ok;
}

static void keep_error(making *m, size_t i, const ggl_error *err) {
    ggl_os_mutex_lock(&m->lock);
    if (i < m->i_error) { /* the first one, so that the message does not depend on the threads */
        m->i_error = i;
        m->error = *err;
        atomic_store(&m->first_error, i);
    }
    ggl_os_mutex_unlock(&m->lock);
}

static void tell(making *m, size_t n, int thread) {
    const llm_load_params *p = &m->l->params;
    const size_t done = atomic_fetch_add(&m->done, n) + n;
    if (thread != 0 || !p->progress || p->progress(p->ctx, done, m->total))
        return;
    m->cancelled = true;
    atomic_store(&m->stop, true);
}

/* Reads elements of another file. */
static void read_bytes(const load_tensor *t, int64_t first, int64_t n, void *to) {
    memcpy(to, (const char *)t->from + (size_t)first * t->source->size,
           (size_t)n * t->source->size);
}

/* Writes elements first .. first + n - 1 to their place. */
static ggl_status make_piece(load_tensor *t, int64_t first, int64_t n, scratch *s, ggl_error *err) {
    char *to = (char *)t->to + ggl_row_size(t->type->type, first);
    void *source = t->type == t->source ? to : (void *)s->source;
    size_t bad = 0;
    ggl_status st = GGL_OK;
    if (t->recipe)
        st = llm_convert_piece(t->recipe, t->source, first, n, s->x, source, &bad, err);
    else
        read_bytes(t, first, n, source);
    if (bad > 0) /* reported when they are all known */
        atomic_fetch_add(&t->n_bad, bad);
    if (st != GGL_OK || bad > 0 || t->type == t->source)
        return st;
    quant_piece result;
    t->source->to_float(source, s->x, n);
    llm_quant_encode_piece(t->type, s->x, NULL, false, first, n, to, s->y, &result);
    return llm_quant_check_piece(t->type, &result, err);
}

/* Jobs before one that failed go on, as one of them may fail, too. */
static bool goes_on(making *m, size_t i) {
    return !atomic_load(&m->stop) && i < atomic_load(&m->first_error);
}

static void run_job(void *ctx, size_t i, int thread) {
    making *m = ctx;
    const job *j = &m->job[i];
    ggl_error err = {0};
    ggl_status s = GGL_OK;
    for (int64_t at = 0, n; s == GGL_OK && at < j->n && goes_on(m, i); at += n) {
        n = j->n - at < LLM_CONVERT_PIECE ? j->n - at : LLM_CONVERT_PIECE;
        s = make_piece(j->t, j->first + at, n, &m->thread[thread], &err);
        tell(m, ggl_row_size(j->t->type->type, n), thread);
    }
    if (j->t->recipe && llm_recipe_holds(j->t->recipe)) /* the job is the whole tensor */
        llm_recipe_drop(j->t->recipe);
    if (s != GGL_OK) {
        ggl_within(&err, s, "tensor '%s'", j->t->name);
        keep_error(m, i, &err);
    }
}

/* Returns the error of the first tensor with weights that are no numbers. */
static ggl_status check(const loaded *l, ggl_error *err) {
    for (size_t i = 0; i < l->n; i++) {
        const load_tensor *t = &l->tensor[i];
        const ggl_status s = t->to && t->recipe
                                 ? llm_convert_check_bad(t->recipe, atomic_load(&t->n_bad), err)
                                 : GGL_OK;
        if (s != GGL_OK)
            return ggl_within(err, s, "tensor '%s'", t->name);
    }
    return GGL_OK;
}

/* Gives the system back what was read of the source's files. What is used in place is still in its cache. */
static void drop_sources(const loaded *l) {
    const llm_safetensors *st = l->converter ? l->converter->source : NULL;
    for (int n = 0; st && n < st->n_file; n++)
        ggl_file_map_drop(&st->map[n], st->map[n].data, st->map[n].size);
}

ggl_status llm_load_make(loaded *l, ggl_error *err) {
    const int n = l->params.n_threads < 1                  ? 1
                  : l->params.n_threads > WORK_MAX_THREADS ? WORK_MAX_THREADS
                                                           : l->params.n_threads;
    making m = {.l = l, .i_error = SIZE_MAX, .first_error = SIZE_MAX, .lock = OS_MUTEX_INIT};
    bool ok = true;
    for (size_t i = 0; ok && i < l->n; i++)
        ok = !l->tensor[i].to || add_jobs(&m, &l->tensor[i]);
    m.thread = ok ? ggl_calloc((size_t)n, sizeof *m.thread) : NULL;
    if (m.thread)
        llm_work_share(n, m.n, run_job, &m);
    if (m.n > 0)
        drop_sources(l);
    ggl_status s = m.thread ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (m.error.status != GGL_OK)
        s = ggl_pass(err, &m.error);
    else if (m.cancelled)
        s = ggl_fail(err, GGL_CANCELLED, "interrupted");
    ggl_free(m.thread);
    ggl_free(m.job);
    ggl_os_mutex_destroy(&m.lock);
    return s == GGL_OK ? check(l, err) : s;
}

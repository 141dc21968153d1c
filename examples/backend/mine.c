/* A backend from nothing: 32-bit floats, one thread, plain loops, and what a Llama needs of the
 * operators. It is read beside docs/backends.md, and built into a shared object that any program of
 * the library can be told to use:
 *
 *     cc -shared -fPIC -o libmine.so mine.c $(pkg-config --cflags --libs ggml-lite)
 *     llm-cli --backend ./libmine.so -p "Once upon a time"
 */
#include <math.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/program.h"

/* --- memory: the host's ----------------------------------------------------------------------- */

struct ggl_buffer {
    char *data;
};

/* It could use the host's memory in place; that it cannot is simpler: weights are uploaded. */
static ggl_status mine_alloc(ggl_backend *b, int region, size_t size, const void *host,
                             ggl_buffer **out, ggl_error *err) {
    (void)b, (void)region;
    if (host)
        return GGL_UNSUPPORTED;
    *out = ggl_calloc(1, sizeof **out);
    if (*out && ((*out)->data = ggl_calloc(size, 1)))
        return GGL_OK;
    ggl_free(*out);
    return ggl_fail(err, GGL_NOMEM, "out of memory for %zu bytes", size);
}

static void mine_free(ggl_backend *b, ggl_buffer *buf) {
    (void)b;
    ggl_free(buf->data);
    ggl_free(buf);
}

static ggl_status mine_upload(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                              size_t size, ggl_error *err) {
    (void)b, (void)err;
    memcpy(dst->data + offset, src, size);
    return GGL_OK;
}

static ggl_status mine_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                                size_t size, ggl_error *err) {
    (void)b, (void)err;
    memcpy(dst, src->data + offset, size);
    return GGL_OK;
}

static ggl_status mine_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                            const ggl_copy_range *range, size_t n, ggl_error *err) {
    (void)b, (void)err;
    for (size_t i = 0; i < n; i++)
        memcpy(dst->data + range[i].to, src->data + range[i].from, range[i].size);
    return GGL_OK;
}

static ggl_status mine_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                             ggl_error *err) {
    (void)b, (void)err;
    memset(buf->data + offset, 0, size);
    return GGL_OK;
}

/* --- operators -------------------------------------------------------------------------------- */

typedef struct view { /* an operand in memory */
    ggl_type type;
    char *data; /* NULL: the operand is absent */
    int64_t ne[GGL_MAX_DIMS];
    size_t nb[GGL_MAX_DIMS];
} view;

typedef struct task { /* a step of a run */
    const ggl_tensor *node;
    view dst, src[GGL_MAX_SRC];
    ggl_buffer *const *region; /* of the run */
    const ggl_loc *store_loc;
    float *row; /* scratch for the longest row there is, behind the values of the arena */
} task;

/* Rows are dense; any other dimension may be 1, and is broadcast then. */
static void *row(const view *v, int64_t j, int64_t k, int64_t l) {
    return v->data + (size_t)(v->ne[1] == 1 ? 0 : j) * v->nb[1] +
           (size_t)(v->ne[2] == 1 ? 0 : k) * v->nb[2] + (size_t)(v->ne[3] == 1 ? 0 : l) * v->nb[3];
}

#define FOR_ROWS(v)                                                                                \
    for (int64_t l = 0; l < (v)->ne[3]; l++)                                                       \
        for (int64_t k = 0; k < (v)->ne[2]; k++)                                                   \
            for (int64_t j = 0; j < (v)->ne[1]; j++)

static float apply(ggl_op op, float a, float b) {
    return op == GGL_OP_ADD    ? a + b
           : op == GGL_OP_SUB  ? a - b
           : op == GGL_OP_MUL  ? a * b
           : op == GGL_OP_DIV  ? a / b
           : op == GGL_OP_SQRT ? sqrtf(a)
           : op == GGL_OP_TANH ? tanhf(a)
                               : 1 / (1 + expf(-a)); /* SIGMOID */
}

static void run_elementwise(const task *t) {
    const view *dst = &t->dst, *a = &t->src[0], *b = t->node->n_src > 1 ? &t->src[1] : a;
    FOR_ROWS(dst) {
        float *y = row(dst, j, k, l), *p = row(a, j, k, l), *q = row(b, j, k, l);
        for (int64_t i = 0; i < dst->ne[0]; i++)
            y[i] = apply(t->node->op, p[a->ne[0] == 1 ? 0 : i], q[b->ne[0] == 1 ? 0 : i]);
    }
}

static float dot(const float *a, const float *b, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * (b ? b[i] : 1);
    return sum;
}

static void run_sum(const task *t) {
    FOR_ROWS(&t->dst)
    *(float *)row(&t->dst, j, k, l) = dot(row(&t->src[0], j, k, l), NULL, t->src[0].ne[0]);
}

/* The same elements in order, in another shape. */
static void run_copy(const task *t) {
    const view *dst = &t->dst, *x = &t->src[0];
    FOR_ROWS(dst)
    for (int64_t i = 0; i < dst->ne[0]; i++) {
        int64_t e = i + dst->ne[0] * (j + dst->ne[1] * k), r = e / x->ne[0];
        const float *from = row(x, r % x->ne[1], r / x->ne[1], l);
        ((float *)row(dst, j, k, l))[i] = from[e % x->ne[0]];
    }
}

/* y[.., j] = table[.., index[j]], such as the embeddings of tokens. Outside of the table: NaN. */
static void run_pick(const task *t) {
    const view *table = &t->src[0];
    FOR_ROWS(&t->dst) {
        float *y = row(&t->dst, j, k, l);
        int64_t at = ((int32_t *)row(&t->src[1], 0, 0, l))[j];
        if (at >= 0 && at < table->ne[1])
            ggl_type_get(table->type)->to_float(row(table, at, 0, 0), y, table->ne[0]);
        else
            for (int64_t i = 0; i < t->dst.ne[0]; i++)
                y[i] = NAN;
    }
}

/* y[r] = sum_e w[e, r] x[e] + bias[r]. A row of weights is decoded once, and meets all columns. */
static void run_linear(const task *t) {
    const view *x = &t->src[0], *w = &t->src[1], *bias = &t->src[2];
    for (int64_t r = 0; r < t->dst.ne[0]; r++) {
        ggl_type_get(w->type)->to_float(row(w, r, 0, 0), t->row, w->ne[0]);
        FOR_ROWS(&t->dst) {
            float *y = row(&t->dst, j, k, l), *b = bias->data ? row(bias, j, k, l) : NULL;
            y[r] = dot(t->row, row(x, j, k, l), w->ne[0]) + (b ? b[r] : 0);
        }
    }
}

/* Pairs (i, i + r), or (2i, 2i + 1), turn by pos f[i] and grow by num[0]; the rest of a row passes.
 * The frequencies are the only doubles there are, unless they come from a file. */
static void run_rope(const task *t) {
    const view *f = &t->src[1];
    int64_t r = f->ne[0];
    double mag = t->node->num[0];
    bool half = t->node->op == GGL_OP_ROPE_HALF;
    FOR_ROWS(&t->dst) {
        float *y = row(&t->dst, j, k, l), *x = row(&t->src[0], j, k, l);
        double pos = *(int32_t *)row(&t->src[2], 0, 0, l);
        memcpy(y, x, (size_t)t->dst.ne[0] * sizeof *y);
        for (int64_t i = 0; i < r; i++) {
            int64_t a = half ? i : 2 * i, b = half ? i + r : a + 1;
            double angle =
                pos * (f->type == GGL_F64 ? ((double *)f->data)[i] : ((float *)f->data)[i]);
            double c = cos(angle) * mag, s = sin(angle) * mag;
            y[a] = (float)((double)x[a] * c - (double)x[b] * s);
            y[b] = (float)((double)x[a] * s + (double)x[b] * c);
        }
    }
}

/* The page of a store that holds position pos of the sequence that the l-th of the batch belongs to.
 * The operand after the slot is the table of pages. */
static char *page_of(const task *t, const ggl_store *s, const view *slot, int64_t l, int64_t pos) {
    int64_t k = *(int32_t *)row(slot, 0, 0, l);
    const int32_t *table = slot[1].data ? row(&slot[1], k, 0, 0) : NULL;
    const ggl_loc at = t->store_loc[s->id];
    return t->region[at.region]->data + at.offset +
           (size_t)ggl_store_page(s, table, k, pos) * at.step;
}

static void run_cache(const task *t) {
    for (int part = 0; part < 2; part++) { /* keys, values */
        const ggl_store *s = t->node->store[part];
        const view *x = &t->src[part];
        for (int64_t l = 0; s && l < x->ne[3]; l++) {
            int64_t pos = *(int32_t *)row(&t->src[2], 0, 0, l);
            char *page = page_of(t, s, &t->src[3], l, pos);
            for (int64_t j = 0; j < x->ne[1]; j++)
                ggl_store_put(s, page, pos, j, row(x, j, 0, l));
        }
    }
}

/* Softmax as it goes: when a larger score comes, what was summed so far shrinks. */
static void run_attend(const task *t) {
    const ggl_store *keys = t->node->src[1]->store[0], *values = t->node->src[1]->store[1];
    int64_t n = t->src[0].ne[0], n_y = t->dst.ne[0], n_head = t->dst.ne[1];
    double scale = isnan(t->node->num[0]) ? 1 / sqrt((double)n) : t->node->num[0];
    values = values ? values : keys;
    FOR_ROWS(&t->dst) {
        float *y = row(&t->dst, j, 0, l), *q = row(&t->src[0], j, 0, l), top = -INFINITY, total = 0;
        int64_t pos = *(int32_t *)row(&t->src[4], 0, 0, l), head = j * keys->ne[1] / n_head;
        memset(y, 0, (size_t)n_y * sizeof *y);
        for (int64_t p = 0; p <= pos; p++) {
            ggl_store_get(keys, page_of(t, keys, &t->src[5], l, p), p, head, t->row);
            float score = dot(q, t->row, n) * (float)scale, old = top;
            top = fmaxf(top, score);
            float shrink = expf(old - top), share = expf(score - top);
            total = total * shrink + share;
            ggl_store_get(values, page_of(t, values, &t->src[5], l, p), p, head, t->row);
            for (int64_t i = 0; i < n_y; i++)
                y[i] = y[i] * shrink + share * t->row[i];
        }
        for (int64_t i = 0; i < n_y; i++)
            y[i] /= total;
    }
}

typedef void run_fn(const task *t);
static run_fn *const operators[GGL_OP_COUNT] = {
    [GGL_OP_ADD] = run_elementwise,     [GGL_OP_SUB] = run_elementwise,
    [GGL_OP_MUL] = run_elementwise,     [GGL_OP_DIV] = run_elementwise,
    [GGL_OP_SQRT] = run_elementwise,    [GGL_OP_TANH] = run_elementwise,
    [GGL_OP_SIGMOID] = run_elementwise, [GGL_OP_SUM] = run_sum,
    [GGL_OP_RESHAPE] = run_copy,        [GGL_OP_SPLIT] = run_copy,
    [GGL_OP_PICK] = run_pick,           [GGL_OP_LINEAR] = run_linear,
    [GGL_OP_ROPE_HALF] = run_rope,      [GGL_OP_ROPE_PAIR] = run_rope,
    [GGL_OP_CACHE] = run_cache,         [GGL_OP_ATTEND] = run_attend,
};

/* --- what it has ------------------------------------------------------------------------------ */

static const char *mine_refuses(const ggl_backend *b, const ggl_tensor *node) {
    (void)b;
    const ggl_tensor *const *src = (const ggl_tensor *const *)node->src;
    bool product = node->op == GGL_OP_LINEAR, pick = node->op == GGL_OP_PICK;
    if (!operators[node->op]) /* a composite, too: then its body is asked for, node by node */
        return "there is no loop for it";
    if (product && (src[1]->n_dims > 2 || ggl_is_batched(src[1])))
        return "products are with one matrix";
    if (pick && (src[0]->n_dims != 2 || ggl_is_batched(src[0])))
        return "only rows of a matrix are picked";
    if (node->op == GGL_OP_ATTEND &&
        (node->src[2] || node->src[3] || node->src[7] || node->src[8] || node->src[11] ||
         node->src[12] || !isnan(node->num[1]) || !isnan(node->num[2])))
        return "attention is plain: no window, cap, sinks, alibi, bias or relative "
               "positions, and only to earlier tokens, all of them";
    if (run_rope == operators[node->op] && src[1]->type != GGL_F32 && src[1]->type != GGL_F64)
        return "frequencies are f32 or f64";
    if (node->op == GGL_OP_SUM && node->num[0] != 0)
        return "only rows are summed";
    return node->type != GGL_F32 ? "only f32 is computed" : NULL;
}

/* --- plans ------------------------------------------------------------------------------------ */

typedef struct plan {
    ggl_plan base; /* first: what the scheduler sees of it */
    ggl_program program;
    const ggl_loc *store_loc;
} plan;

static void mine_plan_free(ggl_backend *b, ggl_plan *base) {
    (void)b;
    ggl_program_fini(&((plan *)base)->program);
    ggl_free(base);
}

static size_t longest_row(const ggl_program *program) {
    int64_t n = 1;
    for (int i = 0; i < program->n_step; i++) {
        const ggl_step *s = &program->step[i];
        n = s->dst.ne[0] > n ? s->dst.ne[0] : n;
        for (int k = 0; k < s->n_src; k++)
            n = s->src[k].ne[0] > n ? s->src[k].ne[0] : n;
    }
    return (size_t)n;
}

static ggl_status mine_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out,
                               ggl_error *err) {
    const ggl_program_params params = {
        .refuses = b->v->refuses, .backend = b, .value_type = GGL_F32};
    plan *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    ggl_status st = ggl_program_build(&p->program, s, &params, err);
    if (st != GGL_OK) {
        mine_plan_free(b, &p->base);
        return st;
    }
    p->store_loc = s->store_loc;
    p->base.arena_size = p->program.arena_size + longest_row(&p->program) * sizeof(float);
    *out = &p->base;
    return GGL_OK;
}

/* Where an operand is in this run, and how much of the batch it has. */
static view view_of(const ggl_operand *o, ggl_buffer *const *region, int64_t n) {
    view v = {.type = o->type};
    if (o->region < 0)
        return v;
    v.data = region[o->region]->data + o->offset;
    memcpy(v.ne, o->ne, sizeof v.ne);
    memcpy(v.nb, o->nb, sizeof v.nb);
    v.ne[GGL_BATCH_DIM] = v.ne[GGL_BATCH_DIM] == GGL_N ? n : v.ne[GGL_BATCH_DIM];
    return v;
}

/* No step is a loop: those are for recurrent bodies, whose states this backend refuses. */
static ggl_status mine_run(ggl_backend *b, ggl_plan *base, ggl_buffer *const *region, int64_t n,
                           ggl_error *err) {
    (void)b, (void)err;
    const plan *p = (const plan *)base;
    for (int i = 0; i < p->program.n_step; i++) {
        const ggl_step *s = &p->program.step[i];
        task t = {.node = s->node, .region = region, .store_loc = p->store_loc};
        t.row = (float *)(region[GGL_REGION_ARENA]->data + p->program.arena_size);
        t.dst = view_of(&s->dst, region, n);
        for (int k = 0; k < s->n_src; k++)
            t.src[k] = view_of(&s->src[k], region, n);
        operators[s->node->op](&t);
    }
    return GGL_OK;
}

static ggl_status mine_wait(ggl_backend *b, ggl_error *err) {
    (void)b, (void)err;
    return GGL_OK;
}

/* --- the backend ------------------------------------------------------------------------------ */

static void mine_close(ggl_backend *b) {
    ggl_free(b);
}

static const ggl_backend_vtable vtable = {
    .close = mine_close,
    .alloc = mine_alloc,
    .free = mine_free,
    .upload = mine_upload,
    .download = mine_download,
    .copy = mine_copy,
    .clear = mine_clear,
    .refuses = mine_refuses,
    .compile = mine_compile,
    .run = mine_run,
    .wait = mine_wait,
    .plan_free = mine_plan_free,
};

static ggl_status mine_open(ggl_backend **out, const struct ggl_backend_params *params,
                            ggl_error *err) {
    (void)params;
    *out = ggl_calloc(1, sizeof **out);
    if (!*out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    **out = (ggl_backend){.v = &vtable, .name = "mine", .description = "plain loops", .lazy = true};
    return GGL_OK;
}

/* What ggl_backend_open looks for. */
GGL_API extern const ggl_plugin ggl_backend_plugin;
const ggl_plugin ggl_backend_plugin = {GGL_PLUGIN_VERSION, "mine", mine_open};

#include "profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "costs.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/show.h"

/* --- collecting ------------------------------------------------------------------------------- */

/* Returns the slot; NULL: out of memory. */
static struct bench_collected *slot_for(bench_collector *c, size_t i) {
    if (i >= c->cap) {
        size_t cap = i + 1024;
        struct bench_collected *grown = realloc(c->slot, cap * sizeof *grown);
        if (!grown) {
            c->failed = true;
            return NULL;
        }
        memset(grown + c->cap, 0, (cap - c->cap) * sizeof *grown);
        c->slot = grown;
        c->cap = cap;
    }
    return &c->slot[i];
}

void bench_collect(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                   uint64_t end) {
    static os_mutex one_at_a_time = OS_MUTEX_INIT; /* backends call it */
    bench_collector *c = ctx;
    if (!c->on || !node)
        return;
    ggl_os_mutex_lock(&one_at_a_time);
    struct bench_collected *s = slot_for(c, 2 * (size_t)node->id + !prepares);
    if (s) {
        s->node = node;
        s->ns += (double)(end - begin);
        s->calls++;
        s->tokens += (double)n;
        s->past += (double)n * c->n_past;
    }
    ggl_os_mutex_unlock(&one_at_a_time);
}

void bench_collector_reset(bench_collector *c) {
    if (c->cap)
        memset(c->slot, 0, c->cap * sizeof *c->slot);
}

void bench_collector_fini(bench_collector *c) {
    free(c->slot);
    *c = (bench_collector){.slot = NULL};
}

/* --- putting together ------------------------------------------------------------------------- */

static double count(const ggl_tensor *t) {
    return (double)ggl_count(t);
}

/* "blk.3.attn_q.weight" -> "blk.*.attn_q.weight" */
static void fold_name(const char *name, char *out, size_t size) {
    size_t digits = strncmp(name, "blk.", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    char folded[256];
    if (digits > 0)
        snprintf(folded, sizeof folded, "blk.*%s", name + 4 + digits);
    else
        snprintf(folded, sizeof folded, "%s", name);
    ggl_show(out, size, folded, strlen(folded));
}

/* Writes numbers only, so that equal shapes with different names share a line. */
static void put_shape(const ggl_tensor *t, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "[");
    for (int d = 0; d < t->n_dims && n < size; d++)
        n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, d ? ", " : "", t->ne[d]);
    if (n < size)
        snprintf(buf + n, size - n, "]");
}

static void describe_product(bench_profile_line *l, const struct bench_collected *s) {
    const ggl_tensor *part, *x = s->node->src[1], *w = bench_weight_of(x, &part);
    if (!w)
        return;
    const ggl_type_info *t = ggl_type_get((int)w->type);
    fold_name(w->name ? w->name : "", l->weight, sizeof l->weight);
    snprintf(l->type, sizeof l->type, "%s", t ? t->name : "?");
    snprintf(l->shape, sizeof l->shape, "[%" PRId64 ", %" PRId64 "%s]", x->ne[0], x->ne[1],
             part ? ", experts" : "");
    double used = count(x);
    l->macs = used * s->tokens;
    l->bytes = (double)w->size * s->calls;
    if (part) { /* as many experts as random choices select */
        double each = used / count(w), n = s->tokens / s->calls;
        l->bytes *= 1 - pow(1 - each, n);
    }
}

/* Describes scores and values: every query meets every row before it. */
static void describe_attention(bench_profile_line *l, const struct bench_collected *s) {
    const ggl_tensor *q = s->node->src[0], *kv = s->node->src[1];
    const ggl_store *keys = kv->store[0], *values = kv->store[1];
    if (!keys || s->tokens == 0)
        return;
    double past = fmin(s->past / s->tokens, (double)keys->n_pos), row = 0;
    for (int i = 0; i < 2; i++)
        if (kv->store[i])
            row += (double)ggl_row_size(kv->store[i]->type, kv->store[i]->ne[0]) *
                   (double)kv->store[i]->ne[1];
    const ggl_type_info *t = ggl_type_get((int)keys->type);
    snprintf(l->type, sizeof l->type, "%s", t ? t->name : "?");
    snprintf(l->shape, sizeof l->shape, "[%" PRId64 ", %" PRId64 "] past %.0f", q->ne[0], q->ne[1],
             past);
    l->macs = (count(q) + (values ? count(s->node) : count(q))) * past * s->tokens;
    l->bytes = s->tokens == s->calls ? row * past * s->calls : 0; /* for one query by itself */
}

static bench_profile_line describe(const struct bench_collected *s, bool prepares,
                                   const ggl_backend *on) {
    bench_profile_line l = {.calls = s->calls, .ns = s->ns};
    const ggl_tensor *t = s->node;
    snprintf(l.device, sizeof l.device, "%s", on ? on->name : "");
    const char *op = t->op == GGL_OP_CALL ? (t->call ? t->call : "call") : ggl_op_get(t->op).name;
    snprintf(l.op, sizeof l.op, "%s%s", prepares ? "prepare " : "", op);
    put_shape(t, l.shape, sizeof l.shape);
    if (prepares && t->src[0]) {
        put_shape(t->src[0], l.shape, sizeof l.shape);
    } else if (t->op == GGL_OP_LINEAR) {
        describe_product(&l, s);
    } else if (t->op == GGL_OP_ATTEND) {
        describe_attention(&l, s);
    }
    return l;
}

static bool same(const bench_profile_line *a, const bench_profile_line *b) {
    return strcmp(a->device, b->device) == 0 && strcmp(a->op, b->op) == 0 &&
           strcmp(a->weight, b->weight) == 0 && strcmp(a->type, b->type) == 0 &&
           strcmp(a->shape, b->shape) == 0;
}

static bool add_line(bench_profile *p, const bench_profile_line *l) {
    p->ns += l->ns;
    for (size_t i = 0; i < p->n; i++)
        if (same(&p->line[i], l)) {
            p->line[i].ns += l->ns;
            p->line[i].calls += l->calls;
            p->line[i].bytes += l->bytes;
            p->line[i].macs += l->macs;
            return true;
        }
    if (p->n == p->cap) {
        size_t cap = 2 * p->cap + 32;
        bench_profile_line *grown = realloc(p->line, cap * sizeof *grown);
        if (!grown)
            return false;
        p->line = grown;
        p->cap = cap;
    }
    p->line[p->n++] = *l;
    return true;
}

static bool add_busy(bench_profile *p, const bench_profile_line *l) {
    size_t i = 0;
    while (i < p->n_devices && strcmp(p->busy[i].device, l->device) != 0)
        i++;
    if (i == p->n_devices) {
        if (!ggl_grow(&p->busy, &p->cap_devices, i + 1, sizeof *p->busy))
            return false;
        snprintf(p->busy[i].device, sizeof p->busy[i].device, "%s", l->device);
        p->n_devices++;
    }
    p->busy[i].ns += l->ns;
    return true;
}

static int by_device_time(const void *a, const void *b) {
    double x = ((const bench_busy *)a)->ns, y = ((const bench_busy *)b)->ns;
    return (x < y) - (x > y);
}

static int by_time(const void *a, const void *b) {
    double x = ((const bench_profile_line *)a)->ns, y = ((const bench_profile_line *)b)->ns;
    return (x < y) - (x > y);
}

bool bench_profile_make(bench_profile *out, const bench_collector *c, const ggl_sched *s,
                        double wall_ns) {
    bool ok = !c->failed;
    *out = (bench_profile){.wall_ns = wall_ns};
    for (size_t i = 0; i < c->cap && ok; i++)
        if (c->slot[i].node) {
            bench_profile_line l =
                describe(&c->slot[i], i % 2 == 0, ggl_sched_runs_on(s, c->slot[i].node));
            ok = add_line(out, &l) && add_busy(out, &l);
        }
    if (out->n > 0)
        qsort(out->line, out->n, sizeof *out->line, by_time);
    if (out->n_devices > 0)
        qsort(out->busy, out->n_devices, sizeof *out->busy, by_device_time);
    return ok;
}

void bench_profile_fini(bench_profile *p) {
    free(p->line);
    ggl_free(p->busy);
    *p = (bench_profile){.line = NULL};
}

#include "placement_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/divide.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/sched.h"
#include "llm/internal/stage_rows.h"
#include "ggl/internal/memory_left.h"

/* --- layers ----------------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Writes what the devices' numbers of layers are in proportion to: what `shares` says, else their memory if all
 * of them report it, else 1. Returns the sum. */
static double weigh_devices(const llm_placement *p, const int *at, int n, double *weight) {
    double sum = 0;
    bool known = true;
    for (int i = 0; i < n; i++)
        known = known && p->backend[at[i]]->memory > 0;
    for (int i = 0; i < n; i++) {
        weight[i] = p->n_shares > 0 ? p->share[i] /* 0 past the end */
                    : known         ? (double)p->backend[at[i]]->memory
                                    : 1;
        sum += weight[i];
    }
    return sum;
}

/* Assigns the last n of n_layer layers to the devices; the CPU has the others. */
static void give_devices(llm_placement *p, int64_t n, int64_t n_layer) {
    int at[PLACEMENT_MOST], n_dev = llm_placement_devices(p, at);
    double weight[PLACEMENT_MOST], before = 0;
    const double sum = weigh_devices(p, at, n_dev, weight);
    n = n_dev > 0 ? smaller(n, n_layer) : 0;
    p->n_parts = 0;
    if (n < n_layer) {
        p->part[p->n_parts] = p->host;
        p->count[p->n_parts++] = n_layer - n;
    }
    int64_t given = 0;
    for (int i = 0; i < n_dev; i++) {
        before += weight[i] / sum;
        int64_t end = i + 1 == n_dev ? n : (int64_t)(before * (double)n + 0.5);
        if (end > given) {
            p->part[p->n_parts] = at[i];
            p->count[p->n_parts++] = end - given;
        }
        given = end;
    }
}

/* Returns the backend that has a part of the rows, by the name of its weight: the CPU the first one, then the devices; -1: it is no
 * part's name, as names come from the file. */
static int row_backend(const llm_placement *p, const char *weight) {
    int at[PLACEMENT_MOST];
    const int n = llm_placement_devices(p, at);
    const char *mark = strrchr(weight, GGL_PART_MARK);
    const size_t digits = mark ? strspn(mark + 1, "0123456789") : 0;
    if (digits == 0 || digits > 3 || mark[1 + digits])
        return -1;
    const int k = atoi(mark + 1);
    return k == 0 ? p->host : k <= n ? at[k - 1] : -1;
}

/* Returns the bytes of weights in the products of a group: of stacks of matrices, from which tokens pick some, those that a token picks,
 * or all of them. */
static double product_bytes(const ggl_graph *g, int64_t group, bool all) {
    double sum = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        const ggl_tensor *w =
            t->op == GGL_OP_LINEAR && t->needed && t->group == group ? t->src[LINEAR_W] : NULL;
        const ggl_tensor *stack = w && w->gather ? w->src[PICK_T] : w;
        size_t size;
        if (stack && ggl_value_bytes(stack, 1, &size))
            sum += (double)size * (stack == w || all ? 1 : (double)w->ne[2] / (double)stack->ne[2]);
    }
    return sum;
}

/* Weighs the layers of a model for a job: how many of them take as long as what follows the last one, because it reads as many weights; and
 * what a batch costs, which reads more than a token does if there are experts. */
static void weigh_layers(llm_placement *p, const llm_session *s) {
    const ggl_graph *g = llm_session_graph(s);
    const int64_t n_layer = llm_session_n_layer(s);
    double used = 0, all = 0;
    for (int64_t i = 0; i < n_layer; i++) {
        used += product_bytes(g, i, false);
        all += product_bytes(g, i, true);
    }
    p->after = used > 0 ? product_bytes(g, n_layer, false) * (double)n_layer / used : 0;
    p->batch_cost = used > 0 ? LLM_PROCESSOR_BATCH_COST * all / used : 0;
}

/* True if other ranks have layers, and the CPU of this one is there. */
static bool is_over_ranks(const llm_placement *p) {
    bool any = false;
    for (int i = 0; i < p->n; i++)
        any = any || ggl_rank_is_name(p->names[i]);
    return any && p->host >= 0;
}

/* True if these are processors, too. */
static bool only_processors(const llm_placement *p) {
    bool all = is_over_ranks(p);
    for (int i = 0; i < p->n; i++)
        all = all && strcmp(p->backend[i]->alike, "cpu") == 0;
    return all;
}

/* llm_session_params.place. The part before the first layer runs where the first layer does, and
 * the part after the last where the last does; with layers on other ranks on the CPU of rank 0, which needs the logits: they are much longer
 * than what they are computed from. */
static int place(void *ctx, int layer, int n_layer, const char *weight) {
    llm_placement *p = ctx;
    const int of_part = p->by_rows && weight ? row_backend(p, weight) : -1;
    if (of_part >= 0)
        return of_part;
    const place_rule *rule = weight ? llm_place_rules_find(&p->rules, weight) : NULL;
    if (weight)
        return rule ? rule->at : -1;
    if (p->n_last >= 0)
        give_devices(p, p->n_last, n_layer);
    p->n_last = -1;
    if (layer >= n_layer && is_over_ranks(p))
        return p->host;
    int64_t at = layer < 0 ? 0 : layer >= n_layer ? n_layer - 1 : layer, end = 0;
    for (int i = 0; i < p->n_parts; i++) {
        end += p->count[i];
        if (at < end)
            return p->part[i];
    }
    return p->n_parts ? p->part[p->n_parts - 1] : 0;
}

void llm_placement_lend(llm_placement *p, llm_session_params *sp) {
    sp->backend = p->backend;
    sp->n_backends = p->n;
    sp->fold = p->reference;
    sp->fold_products = p->host >= 0 ? p->traced[p->host] : p->trusted;
}

static ggl_status session_new(llm_placement *p, llm_session **out, const llm_model *m,
                              llm_session_params *sp, ggl_error *err) {
    llm_placement_lend(p, sp);
    sp->place = place;
    sp->place_ctx = p;
    sp->strict = p->o.strict;
    sp->batch_cost = !only_processors(p) ? 0
                     : p->batch_cost > 0 ? p->batch_cost
                                         : LLM_PROCESSOR_BATCH_COST;
    double share[PLACEMENT_MOST];
    if (p->by_rows) {
        const int n = llm_placement_devices(p, (int[PLACEMENT_MOST]){0});
        share[0] = 1;
        for (int i = 0; i < n; i++)
            share[1 + i] = i < p->n_shares ? p->share[i] : 1;
        sp->divided = share;
        sp->n_divided = 1 + n;
    }
    const ggl_status st = llm_session_new(out, m, sp, err);
    sp->divided = NULL; /* it ends here; the parameters may be copied */
    sp->n_divided = 0;
    return st;
}

void llm_placement_reserve(llm_placement *p, int k, const ggl_memory *m) {
    p->reserved[k] = *m;
}

const ggl_memory *llm_placement_reserved(const llm_placement *p, int k) {
    return &p->reserved[k];
}

double llm_placement_taken(const ggl_memory *m) {
    return (double)m->weights_copied + (double)m->weights_repacked + (double)m->stores_rows +
           (double)m->stores_states + (double)m->arena + (double)m->io;
}

/* Returns whether the session's part on a device fits its memory beside what is reserved there, with a twentieth left for
 * the driver, and whether the values, which are one buffer, do. */
static bool fits_on(const ggl_backend *b, const ggl_memory *m, const ggl_memory *reserved) {
    const size_t part[] = {m->weights_copied,
                           m->weights_repacked,
                           m->stores_rows,
                           m->stores_states,
                           m->arena,
                           m->io,
                           (size_t)llm_placement_taken(reserved)};
    size_t all = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!ggl_size_add(all, part[i], &all))
            return false;
    bool small = !b->max_buffer || m->arena <= b->max_buffer;
    return small && (!b->memory || all <= b->memory - b->memory / 20);
}

/* fits_on for all devices of the session. */
static bool fits(const llm_placement *p, const llm_session *s) {
    int at[PLACEMENT_MOST], n = llm_placement_devices(p, at);
    ggl_memory m;
    for (int i = 0; i < n; i++)
        if (ggl_sched_memory(llm_session_sched(s), at[i], &m) &&
            !fits_on(p->backend[at[i]], &m, &p->reserved[at[i]]))
            return false;
    return true;
}

/* Reserves what the model's stages take that run before those of the session, such as the first one of Whisper; of a model without such
 * stages, nothing changes. */
static ggl_status reserve_stages(llm_placement *p, const llm_model *m, const llm_session_params *sp,
                                 llm_session *s, ggl_error *err) {
    llm_stages *before = NULL;
    if (!llm_arch_reads_rows(llm_model_arch(m)))
        return GGL_OK;
    const ggl_status st = llm_stages_plan_before(&before, m, sp, s, err);
    for (int k = 0; k < p->n && st == GGL_OK; k++) {
        llm_stages_memory(before, k, &p->reserved[k]);
        if (llm_placement_is_host(p->backend[k]))
            p->reserved[k].io += llm_stages_row_bytes(before);
    }
    llm_stages_free(before);
    return st;
}

/* Returns the largest number of layers that fit on the devices, and assigns them; -1: *err. */
static int64_t most_that_fit(llm_placement *p, const llm_model *m, llm_session_params *sp,
                             int64_t n_layer, ggl_error *err) {
    int64_t low = 0, high = n_layer;
    while (low < high) {
        int64_t n = (low + high + 1) / 2;
        llm_session *s = NULL;
        give_devices(p, n, n_layer);
        ggl_status st = session_new(p, &s, m, sp, err);
        if (st == GGL_OK)
            st = reserve_stages(p, m, sp, s, err);
        bool ok = st == GGL_OK && fits(p, s);
        llm_session_free(s);
        if (st != GGL_OK && st != GGL_LIMIT)
            return -1;
        *(ok ? &low : &high) = ok ? n : n - 1;
    }
    give_devices(p, low, n_layer);
    return low;
}

/* Returns the seconds that a token takes with the layers as assigned; 0: *err. */
static double measure(llm_placement *p, const llm_model *m, const llm_session_params *sp,
                      ggl_error *err) {
    llm_session_params trial = *sp;
    llm_session *s = NULL;
    trial.n_slots = 1;
    trial.repack_cache = NULL;
    const int32_t token = 0;
    ggl_status st = session_new(p, &s, m, &trial, err);
    if (st == GGL_OK)
        st = llm_session_alloc(s, err);
    double begin = 0, taken = 0;
    int n = -1; /* -1: the first run is not counted, because pages are loaded and shaders made */
    for (; st == GGL_OK && n < 200 && (n < 3 || taken < 1); n++) {
        if (llm_session_n_past(s, 0) == llm_session_n_ctx(s))
            st = llm_session_clear(s, 0, err);
        if (st == GGL_OK)
            st = llm_session_eval(s, &(llm_batch){.n = 1, .token = &token}, err);
        begin = n < 0 ? ggl_os_seconds() : begin;
        taken = ggl_os_seconds() - begin;
    }
    llm_session_free(s);
    return st == GGL_OK && n > 0 ? taken / n : 0;
}

/* Reports what "auto" has found out about a device. */
GGL_PRINTF(2, 3)
static void report(const llm_placement *p, const char *fmt, ...) {
    char text[sizeof((ggl_error *)0)->msg + 200];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    if (p->o.measured)
        p->o.measured(p->o.ctx, text);
}

/* Returns the seconds that a token takes with all layers on the CPU, and sets all devices apart, to be tried one by one; 0: *err. */
static double measure_host(llm_placement *p, const llm_model *m, llm_session_params *sp,
                           int64_t n_layer, ggl_error *err) {
    int at[PLACEMENT_MOST];
    const int n_dev = llm_placement_devices(p, at);
    give_devices(p, 0, n_layer);
    const double host = measure(p, m, sp, err);
    if (host > 0)
        report(p, "%9.2f ms a token with all layers on cpu", host * 1e3);
    for (int i = 0; i < n_dev && host > 0; i++)
        p->apart[at[i]] = true;
    return host;
}

/* For "auto": measures each device alone and assigns as many layers as fit to the devices
 * that are faster than the CPU. A token passes through one layer after the other, so its time is
 * a sum over layers, and more layers on a faster device never make it slower. */
static ggl_status choose(llm_placement *p, const llm_model *m, llm_session_params *sp,
                         int64_t n_layer, ggl_error *err) {
    bool fast[PLACEMENT_MOST] = {false};
    int at[PLACEMENT_MOST], n_dev = llm_placement_devices(p, at);
    const double host = measure_host(p, m, sp, n_layer, err);
    if (host <= 0)
        return err->status;
    for (int i = 0; i < n_dev; i++) {
        const char *name = p->names[at[i]];
        p->apart[at[i]] = false;
        int64_t n = most_that_fit(p, m, sp, n_layer, err);
        double t = n > 0 ? measure(p, m, sp, err) : 0;
        if (n < 0)
            return err->status;
        if (t > 0)
            report(p, "%9.2f ms a token with %" PRId64 " of %" PRId64 " layers on %s", t * 1e3, n,
                   n_layer, name);
        else
            report(p, "not on %s: %s", name, n > 0 ? err->msg : "no layer fits into its memory");
        p->apart[at[i]] = true;
        fast[at[i]] = t > 0 && t < host;
    }
    for (int i = 0; i < n_dev; i++)
        p->apart[at[i]] = !fast[at[i]];
    return most_that_fit(p, m, sp, n_layer, err) < 0 ? err->status : GGL_OK;
}

/* Divides the layers among the CPU, whose share is `host`, and the devices by their shares. What follows the last layer, on the CPU, counts
 * half: each generated token passes it, but of a prompt only the last one. A share whose layers do not fit becomes smaller by an eighth, again
 * and again. */
static ggl_status shrink_to_fit(llm_placement *p, const llm_model *m, llm_session_params *sp,
                                int64_t n_layer, double host, ggl_error *err) {
    enum { STEPS = 32 };
    ggl_status st = GGL_OK;
    for (int step = 0; step < STEPS; step++) {
        int at[PLACEMENT_MOST], n_dev = llm_placement_devices(p, at);
        double sum = host;
        const double n_all = (double)n_layer + p->after / 2;
        bool all = true;
        llm_session *s = NULL;
        for (int i = 0; i < n_dev; i++)
            sum += p->share[i];
        give_devices(p, sum > 0 ? (int64_t)(n_all * (1 - host / sum) + 0.5) : 0, n_layer);
        st = session_new(p, &s, m, sp, err);
        if (st == GGL_OK)
            st = reserve_stages(p, m, sp, s, err);
        for (int i = 0; i < n_dev && st == GGL_OK; i++) {
            ggl_memory use;
            if (ggl_sched_memory(llm_session_sched(s), at[i], &use) &&
                !fits_on(p->backend[at[i]], &use, &p->reserved[at[i]])) {
                p->share[i] *= 7.0 / 8;
                all = false;
            }
        }
        llm_session_free(s);
        if (st != GGL_OK || all)
            break;
    }
    return st;
}

/* For a job, without "auto": ranks are alike. */
static ggl_status share_in_job(llm_placement *p, const llm_model *m, llm_session_params *sp,
                               int64_t n_layer, ggl_error *err) {
    p->n_shares = llm_placement_devices(p, (int[PLACEMENT_MOST]){0});
    for (int i = 0; i < p->n_shares; i++)
        p->share[i] = 1;
    return shrink_to_fit(p, m, sp, n_layer, 1, err);
}

/* For a job: a batch passes one rank after the other, while the batches behind it are on those before. So all are busy if each
 * takes as long as the others: the layers are divided by the ranks' speed, as a token's time shows it, with what travels. Each
 * is tried with its fair part, which then stays there. */
static ggl_status choose_in_job(llm_placement *p, const llm_model *m, llm_session_params *sp,
                                int64_t n_layer, ggl_error *err) {
    int at[PLACEMENT_MOST], n_dev = llm_placement_devices(p, at);
    double speed[PLACEMENT_MOST];
    const int64_t part = n_layer / (n_dev + 1) > 0 ? n_layer / (n_dev + 1) : 1;
    const double n_all = (double)n_layer + p->after;
    const double host = measure_host(p, m, sp, n_layer, err);
    if (host <= 0)
        return err->status;
    for (int i = 0; i < n_dev; i++) {
        p->apart[at[i]] = false;
        give_devices(p, part, n_layer);
        const double t = measure(p, m, sp, err);
        p->apart[at[i]] = true;
        if (t <= 0)
            return ggl_within(err, err->status, "%s", p->names[at[i]]);
        report(p, "%9.2f ms a token with %" PRId64 " of %" PRId64 " layers on %s", t * 1e3, part,
               n_layer, p->names[at[i]]);
        const double here = host * (double)part / n_all, /* the same part on rank 0 */
            own = t - (host - here), least = here / 8;
        speed[i] = 1 / (own > least ? own : least); /* noise must not make it endless */
    }
    for (int i = 0; i < n_dev; i++) {
        p->apart[at[i]] = false;
        p->share[i] = speed[i];
    }
    const double host_speed = n_all / host / (double)part;
    p->n_shares = n_dev;
    ggl_status st = shrink_to_fit(p, m, sp, n_layer, host_speed, err);
    if (st != GGL_OK || sp->n_slots > 1) /* several sequences keep all ranks busy by layers */
        return st;
    const double by_layers = measure(p, m, sp, err);
    for (int i = 0; i < n_dev; i++)
        p->share[i] = speed[i] / host_speed;
    p->by_rows = true;
    give_devices(p, 0, n_layer);
    const double by_rows = by_layers > 0 ? measure(p, m, sp, err) : 0;
    if (by_rows <= 0)
        return err->status;
    report(p, "%9.2f ms a token by layers, %.2f by rows", by_layers * 1e3, by_rows * 1e3);
    p->by_rows = by_rows < by_layers && by_rows < host;
    if (p->by_rows || host < by_layers) { /* or the other ranks make a single sequence slower */
        give_devices(p, 0, n_layer);
        return GGL_OK;
    }
    for (int i = 0; i < n_dev; i++)
        p->share[i] = speed[i];
    return shrink_to_fit(p, m, sp, n_layer, host_speed, err);
}

/* Assigns the layers if that takes trial sessions (`fit`, "auto"). Otherwise place()
 * assigns them when it learns the number of layers. */
static ggl_status settle(llm_placement *p, const llm_model *m, llm_session_params *sp,
                         ggl_error *err) {
    const llm_placement_choice *o = &p->o;
    const bool automatic = o->split && (p->by_rows || strcmp(o->split, "auto") == 0);
    p->n_last = o->n_gpu_layers_given                          ? o->n_gpu_layers
                : p->n_shares > 0 && !p->is_job && !p->by_rows ? INT64_MAX
                                                               : -1;
    if (!o->split || automatic)
        p->n_parts = 0; /* all on the first backend */
    if (!o->fit && !automatic && !p->is_job)
        return GGL_OK;
    llm_session *s = NULL;
    ggl_status st = session_new(p, &s, m, sp, err);
    int64_t n_layer = st == GGL_OK ? llm_session_n_layer(s) : 0;
    if (st == GGL_OK && p->is_job)
        weigh_layers(p, s);
    llm_session_free(s);
    if (st != GGL_OK)
        return st;
    if (p->by_rows) { /* all else is on the CPU */
        give_devices(p, 0, n_layer);
        return GGL_OK;
    }
    if (p->is_job)
        return automatic ? choose_in_job(p, m, sp, n_layer, err)
                         : share_in_job(p, m, sp, n_layer, err);
    if (automatic)
        return choose(p, m, sp, n_layer, err);
    return most_that_fit(p, m, sp, n_layer, err) < 0 ? err->status : GGL_OK;
}

/* Checks that the counts of `split` add up to the model's layers, and that each rule matches a
 * weight. */
static ggl_status check_use(const llm_placement *p, const llm_session *s, ggl_error *err) {
    int64_t sum = 0, n_layer = llm_session_n_layer(s);
    for (int i = 0; i < p->n_parts; i++)
        sum += p->count[i];
    if (p->n_parts > 0 && sum != n_layer)
        return ggl_fail(err, GGL_USAGE, "%s %s: that is %" PRId64 " layers; the model has %" PRId64,
                        p->o.names.split, p->o.split, sum, n_layer);
    return llm_place_rules_check(&p->rules, err);
}

/* True if the session can be made with other parameters. */
static bool would_work(llm_placement *p, const llm_model *m, llm_session_params sp) {
    ggl_error err = {0};
    llm_session *s = NULL;
    const bool works = session_new(p, &s, m, &sp, &err) == GGL_OK;
    llm_session_free(s);
    return works;
}

/* If a session cannot be made, the compiler's error names a line of the descriptor, which the user may never
 * have seen. If other parameters can be had, the error is about these, without that line. */
static ggl_status explain(llm_placement *p, const llm_model *m, const llm_session_params *sp,
                          ggl_error *err) {
    static const char before[] = ": error: ";
    const int64_t n_most = llm_model_n_ctx(m);
    const ggl_status why = err->status;
    const char *reason = strstr(err->msg, before);
    const char *context = p->o.names.context;
    llm_session_params shorter = *sp, plain = *sp;
    shorter.n_ctx = n_most;
    plain.type_k = plain.type_v = GGL_F16;
    if (!reason)
        return why;
    if (n_most > 0 && sp->n_ctx > n_most && would_work(p, m, shorter))
        return ggl_fail(err, why,
                        "the context has %" PRId64 " tokens, but this model only %" PRId64
                        " positions%s%s%s",
                        sp->n_ctx, n_most, context ? "; " : "", context ? context : "",
                        context ? " sets a shorter one" : "");
    if ((sp->type_k != GGL_F16 || sp->type_v != GGL_F16) && would_work(p, m, plain)) {
        const ggl_error told = *err;
        reason = told.msg + (reason - err->msg) + strlen(before);
        const char *end = strstr(reason, "  (in "); /* where the descriptor calls an operation */
        const int n = end ? (int)(end - reason) : (int)strcspn(reason, "\n");
        return ggl_fail(err, why, "%s: %.*s", p->o.names.cache_types, n, reason);
    }
    return why;
}

ggl_status llm_placement_session(llm_placement *p, llm_session **out, const llm_model *m,
                                 llm_session_params *sp, ggl_error *err) {
    *out = NULL;
    llm_place_rules_begin(&p->rules);
    ggl_status st = settle(p, m, sp, err);
    if (st == GGL_OK)
        st = session_new(p, out, m, sp, err);
    /* The CPU runs what other backends refuse; it is opened only if that happens. */
    if (st == GGL_UNSUPPORTED && p->host < 0 && !p->o.strict) {
        if (llm_placement_need_host(p, err) < 0)
            return err->status;
        st = settle(p, m, sp, err);
        if (st == GGL_OK)
            st = session_new(p, out, m, sp, err);
    }
    st = st == GGL_OK ? reserve_stages(p, m, sp, *out, err) : explain(p, m, sp, err);
    if (st == GGL_OK)
        st = check_use(p, *out, err);
    if (st != GGL_OK) {
        llm_session_free(*out);
        *out = NULL;
    }
    return st;
}

/* Returns the largest context, rounded down, whose cache fits into the memory of the CPU beside all
 * else; 0: none, or it is not known. n_ctx: that of sp. */
static int64_t context_that_fits(llm_placement *p, const llm_model *m, llm_session_params *sp,
                                 int64_t n_ctx) {
    enum { MULTIPLE = 256 };
    ggl_error err = {0};
    ggl_memory use = {0};
    llm_session *s = NULL;
    if (p->host < 0 || session_new(p, &s, m, sp, &err) != GGL_OK)
        return 0;
    const bool known = ggl_sched_memory(llm_session_sched(s), p->host, &use);
    llm_session_free(s);
    const double row = (double)use.stores_rows / (double)n_ctx;
    const size_t all = p->backend[p->host]->memory, left = ggl_memory_left_addresses();
    const double memory = (double)(left > 0 && left < all ? left : all);
    const double other = (double)use.weights_copied + (double)use.weights_repacked +
                         (double)use.stores_states + (double)use.arena + (double)use.io;
    const double room = memory - memory / 20 - other;
    if (!known || row <= 0 || room < MULTIPLE * row)
        return 0;
    const int64_t n = (int64_t)(room / row) / MULTIPLE * MULTIPLE;
    return n < n_ctx ? n : 0;
}

const char *llm_placement_advice(llm_placement *p, const llm_model *m, llm_session_params *sp,
                                 ggl_status why, char *buf, size_t size) {
    ggl_error err = {0};
    int at[PLACEMENT_MOST];
    llm_session *s = NULL;
    *buf = 0;
    if (why != GGL_NOMEM && why != GGL_LIMIT)
        return buf;
    int64_t n_ctx = sp->n_ctx > 0 ? sp->n_ctx : llm_model_n_ctx(m);
    const llm_placement_names names = p->o.names;
    const int64_t n_fits = n_ctx > 1 ? context_that_fits(p, m, sp, n_ctx) : 0;
    if (names.context && n_fits > 0)
        snprintf(buf, size, "; the context is %" PRId64 " tokens; %s %" PRId64 " would fit", n_ctx,
                 names.context, n_fits);
    else if (names.context && n_ctx > 1)
        snprintf(buf, size, "; the context is %" PRId64 " tokens, %s sets a smaller one", n_ctx,
                 names.context);
    if (llm_placement_devices(p, at) == 0 || llm_placement_need_host(p, &err) < 0 ||
        session_new(p, &s, m, sp, &err) != GGL_OK)
        return buf;
    int64_t n_layer = llm_session_n_layer(s);
    llm_session_free(s);
    int64_t n = most_that_fit(p, m, sp, n_layer, &err);
    if (n >= 0 && n < n_layer)
        snprintf(buf, size, "; %" PRId64 " of %" PRId64 " layers would fit: %s %" PRId64 "%s%s", n,
                 n_layer, names.n_gpu_layers, n, names.fit ? ", or " : "",
                 names.fit ? names.fit : "");
    return buf;
}

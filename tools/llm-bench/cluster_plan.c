#include "cluster_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llm/internal/session.h"

/* Bytes of the orders for a segment, and of their answer, beside values: measured. */
enum { ORDER_BYTES = 200, ANSWER_BYTES = 32 };

const char *const cluster_limit_name[CLUSTER_LIMITS] = {"memory", "arithmetic", "latency",
                                                        "bandwidth"};

/* --- which layers each rank has ------------------------------------------------------------------ */

/* As shrink_to_fit and give_devices in library/place/placement_layers.c. after: what follows the last layer, in layers; it
 * counts half. */
static void give_layers(cluster_plan *p, const double *share, int64_t n_layers, double after) {
    double sum = 1, before = 0;
    for (int r = 1; r < p->n_ranks; r++)
        sum += share[r];
    const int64_t wanted = (int64_t)(((double)n_layers + after / 2) * (1 - 1 / sum) + 0.5),
                  n = wanted < n_layers ? wanted : n_layers;
    int64_t given = 0;
    p->rank[0].first = 0;
    p->rank[0].n_layers = n_layers - n;
    for (int r = 1; r < p->n_ranks; r++) {
        before += share[r] / (sum - 1);
        const int64_t end = r + 1 == p->n_ranks ? n : (int64_t)(before * (double)n + 0.5);
        p->rank[r].first = n_layers - n + given;
        p->rank[r].n_layers = end > given ? end - given : 0;
        given = end > given ? end : given;
    }
}

/* The part before the first layer is where the first one is, that after the last one on rank 0. */
static int rank_of_group(const cluster_plan *p, int64_t layer) {
    const int64_t at = layer < 0 ? 0 : layer;
    for (int r = 0; r < p->n_ranks; r++)
        if (at >= p->rank[r].first && at < p->rank[r].first + p->rank[r].n_layers)
            return r;
    return 0;
}

/* Adds the bytes of weights that a token uses, or all of a part. */
static double weights_of(const cluster_layer *l, bool all) {
    return all ? cluster_weights(&l->trunk) + cluster_weights(&l->tail)
               : cluster_used(&l->trunk) + cluster_used(&l->tail);
}

static double weights_of_layers(const cluster_model *m, bool all) {
    double sum = 0;
    for (int64_t i = 0; i < m->n_layers; i++)
        sum += weights_of(&m->layer[i + 1], all);
    return sum;
}

/* How many layers take as long as what follows the last one. */
static double layers_after(const cluster_model *m) {
    const double used = weights_of_layers(m, false);
    return used > 0 ? weights_of(&m->layer[m->n_layers + 1], false) * (double)m->n_layers / used
                    : 0;
}

/* As weigh_layers in library/place/placement_layers.c. */
static double batch_cost(const cluster_model *m) {
    const double used = weights_of_layers(m, false);
    return used > 0 ? LLM_PROCESSOR_BATCH_COST * weights_of_layers(m, true) / used : 0;
}

static double bytes_of(const cluster_rank *r) {
    return r->weights + r->cache + r->values;
}

static ggl_status weigh(cluster_plan *p, const cluster_setup *s, ggl_error *err) {
    const cluster_model *m = s->m;
    const int n_groups = m->n_layers + 2;
    int *rank_of = malloc((size_t)n_groups * sizeof *rank_of);
    cluster_traffic *traffic = calloc((size_t)p->n_ranks, sizeof *traffic);
    ggl_status st = rank_of && traffic ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    p->n_used = 0;
    for (int r = 0; r < p->n_ranks; r++) {
        p->n_used += p->rank[r].n_layers > 0;
        p->rank[r].weights = p->rank[r].cache = p->rank[r].values = 0;
    }
    p->n_lanes = p->n_used < PIPELINE_MOST_LANES ? p->n_used : PIPELINE_MOST_LANES;
    for (int i = 0; i < n_groups && st == GGL_OK; i++)
        rank_of[i] = rank_of_group(p, i - 1);
    if (st == GGL_OK)
        st = cluster_model_traffic(m, rank_of, p->n_ranks, traffic, err);
    for (int i = 0; i < n_groups && st == GGL_OK; i++) {
        const cluster_layer *l = &m->layer[i];
        cluster_rank *r = &p->rank[rank_of[i]];
        r->weights += cluster_weights(&l->trunk) + cluster_weights(&l->tail);
        r->cache += (double)s->n_sequences * cluster_cache(&l->trunk, (double)s->n_ctx);
        r->values = fmax(r->values, l->widest * (double)s->n_ubatch);
    }
    p->most = 0;
    p->fits = true;
    for (int r = 0; r < p->n_ranks && st == GGL_OK; r++) {
        cluster_rank *k = &p->rank[r];
        k->traffic = traffic[r];
        k->values += (double)p->n_lanes * (double)s->n_ubatch * (traffic[r].in + traffic[r].out);
        const double all = bytes_of(k);
        p->most = fmax(p->most, all);
        p->fits = p->fits && (s->memory <= 0 || all <= s->memory);
    }
    free(rank_of);
    free(traffic);
    return st;
}

/* Divides the layers by the shares, and weighs the ranks. */
static ggl_status divide(cluster_plan *p, const cluster_setup *s, const double *share,
                         ggl_error *err) {
    give_layers(p, share, s->m->n_layers, layers_after(s->m));
    return weigh(p, s, err);
}

ggl_status cluster_plan_init(cluster_plan *p, const cluster_setup *s, int n_ranks, ggl_error *err) {
    enum { STEPS = 32 };
    const size_t size = (size_t)n_ranks * sizeof(double);
    *p = (cluster_plan){.n_ranks = n_ranks, .rank = calloc((size_t)n_ranks, sizeof *p->rank)};
    double *share = malloc(size), *best = malloc(size), least = INFINITY;
    ggl_status st = p->rank && share && best ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int r = 0; r < n_ranks && st == GGL_OK; r++)
        share[r] = 1;
    for (int step = 0; step < STEPS && st == GGL_OK; step++) {
        bool all = true;
        st = divide(p, s, share, err);
        if (st == GGL_OK && p->most < least) {
            least = p->most;
            memcpy(best, share, size);
        }
        for (int r = 1; r < n_ranks && st == GGL_OK && s->memory > 0; r++)
            if (bytes_of(&p->rank[r]) > s->memory) {
                share[r] *= 7.0 / 8;
                all = false;
            }
        if (all)
            break;
    }
    if (st == GGL_OK && !p->fits) /* what was taken from others does not fit into rank 0 */
        st = divide(p, s, best, err);
    free(share);
    free(best);
    return st;
}

void cluster_plan_fini(cluster_plan *p) {
    free(p->rank);
}

/* --- how fast it is ------------------------------------------------------------------------------- */

/* The parts of a batch, in their order. */
typedef enum work_part { TRUNK, TAIL, AFTER, N_WORK_PARTS } work_part;

/* A rank's time for a part of a batch, of n tokens: for its layers, what these compute only for tokens whose logits are wanted, and
 * what follows the last layer. */
static double seconds_of(const cluster_setup *s, const cluster_plan *p, int rank, work_part part,
                         double n, double n_sequences, double past) {
    const int64_t n_layers = s->m->n_layers;
    double sum = 0;
    for (int64_t i = -1; i <= n_layers; i++) {
        const cluster_layer *l = &s->m->layer[i + 1];
        const bool counts =
            (part == TRUNK || (i == n_layers) == (part == AFTER)) && rank_of_group(p, i) == rank;
        if (counts)
            sum += cluster_seconds(part == TRUNK ? &l->trunk : &l->tail, &s->speed, n, n_sequences,
                                   past);
    }
    return sum;
}

/* Writes what a batch passes, [N_WORK_PARTS * n_ranks]; returns how many segments. */
static int make_segments(pipeline_segment *out, const cluster_setup *s, const cluster_plan *p,
                         double n, double n_rows, double n_sequences, double past) {
    int k = 0;
    for (int part = 0; part < (n_rows > 0 ? N_WORK_PARTS : 1); part++)
        for (int r = 0; r < p->n_ranks; r++) {
            const bool tail = part != TRUNK, goes_on = k > 0 && out[k - 1].rank == r;
            const cluster_traffic *t = &p->rank[r].traffic;
            const double seconds = seconds_of(s, p, r, (work_part)part, tail ? n_rows : n,
                                              n_sequences, past),
                         in = tail ? n_rows * t->tail_in : n * t->in,
                         back = tail ? n_rows * t->tail_out : n * t->out;
            if (seconds <= 0)
                continue;
            if (!goes_on)
                out[k++] = (pipeline_segment){r, 0, r ? ORDER_BYTES : 0, r ? ANSWER_BYTES : 0};
            out[k - 1].seconds += seconds;
            out[k - 1].in += r ? in : 0;
            out[k - 1].out += r ? back : 0;
        }
    return k;
}

static int64_t parts_of(const cluster_plan *p, int64_t n_sequences) {
    enum { FEWEST = 4 }; /* as llm_session_n_parts */
    return n_sequences < 2 * FEWEST            ? 1
           : n_sequences / FEWEST < p->n_lanes ? n_sequences / FEWEST
                                               : p->n_lanes;
}

static ggl_status simulate(pipeline_result *out, const cluster_setup *s, const cluster_plan *p,
                           const cluster_work *w, ggl_error *err) {
    const bool is_prompt = w->n_prompt > 0;
    const int64_t piece = llm_session_piece(w->n_prompt, s->n_ubatch, p->n_lanes, batch_cost(s->m)),
                  n_parts =
                      is_prompt ? (w->n_prompt + piece - 1) / piece : parts_of(p, w->n_sequences),
                  n_batches = is_prompt ? n_parts : n_parts * w->n_gen;
    pipeline_segment *segment =
        calloc((size_t)n_parts * N_WORK_PARTS * (size_t)p->n_ranks, sizeof *segment);
    pipeline_batch *batch = calloc((size_t)n_batches, sizeof *batch);
    ggl_status st = segment && batch ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int64_t i = 0; i < n_parts && st == GGL_OK; i++) {
        pipeline_segment *own = segment + i * N_WORK_PARTS * p->n_ranks;
        const int64_t left = w->n_prompt - i * piece,
                      n = is_prompt
                              ? left < piece ? left : piece
                              : w->n_sequences * (i + 1) / n_parts - w->n_sequences * i / n_parts,
                      rows = is_prompt ? i + 1 == n_parts : n;
        const double past = (double)w->n_depth + (is_prompt ? (double)(i * piece) + (double)n / 2
                                                            : (double)w->n_gen / 2);
        batch[i] = (pipeline_batch){
            own, make_segments(own, s, p, (double)n, (double)rows, is_prompt ? 1 : (double)n, past),
            -1};
    }
    for (int64_t i = n_parts; i < n_batches && st == GGL_OK; i++) {
        batch[i] = batch[i - n_parts];
        batch[i].after = i - n_parts;
    }
    if (st == GGL_OK)
        st = pipeline_run(out, &s->link, p->n_ranks, p->n_lanes, batch, n_batches, err);
    free(segment);
    free(batch);
    return st;
}

/* Leaves a limit out. */
static cluster_setup without(const cluster_setup *s, cluster_limit limit) {
    cluster_setup other = *s;
    switch (limit) {
    case CLUSTER_MEMORY:
        other.speed = cluster_speed_without_memory(&s->speed);
        break;
    case CLUSTER_ARITHMETIC:
        other.speed = cluster_speed_without_arithmetic(&s->speed);
        break;
    case CLUSTER_LATENCY:
        other.link.latency = other.link.message = 0;
        break;
    default:
        other.link.bandwidth = INFINITY;
    }
    return other;
}

ggl_status cluster_run(cluster_result *out, const cluster_setup *s, const cluster_plan *p,
                       const cluster_work *w, ggl_error *err) {
    const double n = (double)(w->n_prompt > 0 ? w->n_prompt : w->n_gen * w->n_sequences);
    pipeline_result r;
    ggl_status st = simulate(&r, s, p, w, err);
    if (st != GGL_OK)
        return st;
    *out = (cluster_result){.tokens_per_second = n / r.seconds,
                            .bytes_per_token = (r.in + r.out) / n,
                            .messages_per_token = (double)r.n_messages / n,
                            .busy = r.computed / r.seconds / p->n_ranks};
    for (int k = 0; k < CLUSTER_LIMITS && st == GGL_OK; k++) {
        const cluster_setup other = without(s, (cluster_limit)k);
        pipeline_result without_it = {0};
        st = simulate(&without_it, &other, p, w, err);
        out->share[k] = 1 - without_it.seconds / r.seconds;
        if (out->share[k] > out->share[out->limit])
            out->limit = (cluster_limit)k;
    }
    return st;
}

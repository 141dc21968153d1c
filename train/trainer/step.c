#include "step.h"

#include <string.h>

#include "common/work_share.h"
#include "ggl/internal/alloc.h"

/* A piece is much for a thread beside what it takes to begin it. A room of many pieces keeps all threads busy, and little of the caches. */
enum { PIECE = 64 * LLM_TRAIN_BLOCK, MOST_ROOM = 64 * PIECE };

enum { MEAN, SQUARE }; /* of train_step.codes */

static int64_t whole_blocks(int64_t n) {
    return (n + LLM_TRAIN_BLOCK - 1) / LLM_TRAIN_BLOCK * LLM_TRAIN_BLOCK;
}

/* --- what goes where -------------------------------------------------------------------------- */

static bool add_piece(train_step *s, const llm_train_weight *w, int64_t first, int64_t n,
                      int64_t at) {
    if (!ggl_grow(&s->piece, &s->cap_pieces, s->n_pieces + 1, sizeof *s->piece))
        return false;
    s->piece[s->n_pieces++] = (struct step_piece){w, first, n, at};
    struct step_job *job = &s->job[s->n_jobs - 1];
    struct step_plan *plan = &s->plan[job->plan];
    const int64_t end = at + whole_blocks(n);
    job->n++;
    plan->room = plan->room < end ? end : plan->room;
    s->room = s->room < end ? end : s->room;
    return true;
}

static bool add_job(train_step *s, int64_t plan) {
    if (!ggl_grow(&s->job, &s->cap_jobs, s->n_jobs + 1, sizeof *s->job))
        return false;
    s->job[s->n_jobs++] = (struct step_job){plan, (int64_t)s->n_pieces, 0};
    return true;
}

/* Returns the plan for matrices of the shape; NULL: for any blocks. -1: out of memory. */
static int64_t plan_for(train_step *s, const int64_t *ne, bool has_square) {
    const int64_t want[2] = {ne ? ne[0] : 0, ne ? ne[1] : 0};
    for (size_t k = 0; k < s->n_plans; k++)
        if (memcmp(s->plan[k].ne, want, sizeof want) == 0)
            return (int64_t)k;
    if (!ggl_grow(&s->plan, &s->cap_plans, s->n_plans + 1, sizeof *s->plan))
        return -1;
    s->plan[s->n_plans] = (struct step_plan){.ne = {want[0], want[1]}, .has_square = has_square};
    return (int64_t)s->n_plans++;
}

/* Lays out a matrix as a job of its own. */
static bool place_whole(train_step *s, const llm_train_weight *w) {
    const int64_t n = llm_train_weight_count(w), plan = plan_for(s, w->ne, false);
    bool done = plan >= 0 && add_job(s, plan);
    for (int64_t first = 0; first < n && done; first += PIECE)
        done = add_piece(s, w, first, n - first < PIECE ? n - first : PIECE, first);
    return done;
}

/* Adds the blocks of a weight to the last job, and to new ones when it is full. *used: numbers in its room; MOST_ROOM: there is none yet. */
static bool place_blocks(train_step *s, const llm_train_weight *w, bool has_square, int64_t *used) {
    const int64_t n = llm_train_weight_count(w), plan = plan_for(s, NULL, has_square);
    bool done = plan >= 0;
    for (int64_t first = 0, take; first < n && done; first += take) {
        if (*used == MOST_ROOM) {
            done = add_job(s, plan);
            *used = 0;
        }
        const int64_t left = MOST_ROOM - *used, most = left < PIECE ? left : PIECE;
        take = n - first < most ? n - first : most;
        done = done && add_piece(s, w, first, take, *used);
        *used += whole_blocks(take);
    }
    return done;
}

static ggl_status place(train_step *s, const train_weights *list, const llm_train_params *p,
                        ggl_error *err) {
    int64_t used = MOST_ROOM;
    bool done = true;
    /* first those that are blocks, so that a job's pieces follow each other */
    for (int whole = 0; whole < 2; whole++)
        for (int k = 0; k < list->n && done; k++) {
            const llm_train_weight *w = &list->at[k].w;
            if (!w->mean && llm_train_steps_whole(w, p) == whole)
                done = whole ? place_whole(s, w)
                             : place_blocks(s, w, p->optimizer != LLM_TRAIN_SGD, &used);
        }
    return done ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
}

/* --- making ----------------------------------------------------------------------------------- */

static ggl_status make_here(train_step *s, const train_weights *list, const llm_train_params *p,
                            ggl_error *err) {
    llm_train_weight *w = ggl_calloc((size_t)list->n, sizeof *w);
    int n = 0;
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    for (int k = 0; k < list->n; k++)
        if (list->at[k].w.mean)
            w[n++] = list->at[k].w;
    const ggl_status st = llm_train_optimizer(&s->here, w, n, p, err);
    ggl_free(w);
    return st;
}

/* Makes the plan over what lies in the room. */
static ggl_status make_plan(train_step *s, struct step_plan *to, const llm_train_params *p,
                            ggl_error *err) {
    const bool whole = to->ne[0] > 0;
    const llm_train_weight w = {.name = whole ? LLM_TRAIN_LAYER "weight" : "blocks",
                                .n_dims = 2, /* a matrix: it decays */
                                .ne = {whole ? to->ne[0] : to->room, whole ? to->ne[1] : 1, 1, 1},
                                .data = s->x,
                                .master = s->x,
                                .grad = s->grad,
                                .mean = s->mean,
                                .square = s->square};
    return llm_train_optimizer(&to->plan, &w, 1, p, err);
}

ggl_status llm_train_step_init(train_step *s, const train_weights *list, const llm_train_params *p,
                               ggl_error *err) {
    *s = (train_step){.n_threads = p->n_threads > 1 ? p->n_threads : 1};
    ggl_status st = place(s, list, p, err);
    if (st == GGL_OK)
        st = make_here(s, list, p, err);
    if (st != GGL_OK || s->n_jobs == 0)
        return st;
    const size_t n = (size_t)s->room;
    s->x = ggl_calloc(n, sizeof *s->x);
    s->grad = ggl_calloc(n, sizeof *s->grad);
    s->mean = ggl_calloc(n, sizeof *s->mean);
    s->square = ggl_calloc(n, sizeof *s->square);
    s->codes = ggl_calloc(2, sizeof *s->codes);
    if (!s->x || !s->grad || !s->mean || !s->square || !s->codes)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the steps of %zu numbers", n);
    llm_dynamic_init(&s->codes[MEAN], true);
    llm_dynamic_init(&s->codes[SQUARE], false);
    for (size_t k = 0; k < s->n_plans && st == GGL_OK; k++)
        st = make_plan(s, &s->plan[k], p, err);
    return st;
}

void llm_train_step_fini(train_step *s) {
    llm_train_plan_fini(&s->here);
    for (size_t k = 0; k < s->n_plans; k++)
        llm_train_plan_fini(&s->plan[k].plan);
    ggl_free(s->plan);
    ggl_free(s->piece);
    ggl_free(s->job);
    ggl_free(s->x);
    ggl_free(s->grad);
    ggl_free(s->mean);
    ggl_free(s->square);
    ggl_free(s->codes);
    *s = (train_step){0};
}

/* --- runs ------------------------------------------------------------------------------------- */

/* What threads do with the pieces of a job. */
typedef struct move {
    const train_step *s;
    const struct step_piece *piece;
    bool has_square;
} move;

static void clear_rest(float *x, int64_t n) {
    memset(x + n, 0, (size_t)(whole_blocks(n) - n) * sizeof *x);
}

static void bring(void *ctx, size_t i, int thread) {
    const move *m = ctx;
    const train_step *s = m->s;
    const struct step_piece *p = &m->piece[i];
    (void)thread;
    memcpy(s->x + p->at, p->w->master + p->first, (size_t)p->n * sizeof *s->x);
    memcpy(s->grad + p->at, p->w->grad + p->first, (size_t)p->n * sizeof *s->grad);
    clear_rest(s->x + p->at, p->n);
    clear_rest(s->grad + p->at, p->n);
    for (int64_t k = 0; k < p->n; k += LLM_TRAIN_BLOCK) {
        const int64_t block = (p->first + k) / LLM_TRAIN_BLOCK;
        llm_dynamic_unpack(&s->codes[MEAN], &p->w->packed_mean[block], s->mean + p->at + k);
        if (m->has_square)
            llm_dynamic_unpack(&s->codes[SQUARE], &p->w->packed_square[block],
                               s->square + p->at + k);
    }
}

static void take_back(void *ctx, size_t i, int thread) {
    const move *m = ctx;
    const train_step *s = m->s;
    const struct step_piece *p = &m->piece[i];
    (void)thread;
    memcpy(p->w->master + p->first, s->x + p->at, (size_t)p->n * sizeof *s->x);
    for (int64_t k = 0; k < p->n; k += LLM_TRAIN_BLOCK) {
        const int64_t block = (p->first + k) / LLM_TRAIN_BLOCK,
                      n = p->n - k < LLM_TRAIN_BLOCK ? p->n - k : LLM_TRAIN_BLOCK;
        llm_dynamic_pack(&s->codes[MEAN], s->mean + p->at + k, n, &p->w->packed_mean[block]);
        if (m->has_square)
            llm_dynamic_pack(&s->codes[SQUARE], s->square + p->at + k, n,
                             &p->w->packed_square[block]);
    }
}

static ggl_status run_plan(const train_plan *p, const float in[STEP_INPUTS], ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < STEP_INPUTS && st == GGL_OK; k++)
        st = ggl_sched_set(p->s, llm_train_step_input[k], &in[k], sizeof in[k], 1, err);
    return st == GGL_OK ? ggl_sched_run(p->s, 1, NULL, 0, err) : st;
}

ggl_status llm_train_step_run(train_step *s, const float in[STEP_INPUTS], ggl_error *err) {
    ggl_status st = run_plan(&s->here, in, err);
    for (size_t k = 0; k < s->n_jobs && st == GGL_OK; k++) {
        const struct step_job *j = &s->job[k];
        const struct step_plan *plan = &s->plan[j->plan];
        move m = {s, s->piece + j->first, plan->has_square};
        llm_work_share(s->n_threads, (size_t)j->n, bring, &m);
        st = run_plan(&plan->plan, in, err);
        if (st == GGL_OK)
            llm_work_share(s->n_threads, (size_t)j->n, take_back, &m);
    }
    return st;
}

size_t llm_train_step_bytes(const train_step *s) {
    size_t sum = llm_train_plan_bytes(&s->here) + (size_t)s->room * 4 * sizeof *s->x;
    for (size_t k = 0; k < s->n_plans; k++)
        sum += llm_train_plan_bytes(&s->plan[k].plan);
    return sum;
}

/* Trainings by several processes: parts of a step, and the orders of rank 0. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/xxh64.h"
#include "training.h"

/* What rank 0 sends before the sum of all parts. */
typedef struct sum_head {
    int64_t status; /* not GGL_OK: there is no sum, and no step */
    train_sum sum;
} sum_head;

/* What another rank sends before the gradients of a part. Not GGL_OK: it sends none of this step. */
typedef struct part_head {
    int64_t status;
    train_sum sum;
    char why[2048]; /* of a ggl_error */
} part_head;

static ggl_status send_to(const llm_training *t, int rank, const void *data, size_t size,
                          ggl_error *err) {
    return t->group->send(t->group->ctx, rank, data, size, err);
}

static ggl_status receive(const llm_training *t, int rank, void *data, size_t size,
                          ggl_error *err) {
    return t->group->receive(t->group->ctx, rank, data, size, err);
}

static bool leads(const llm_training *t) {
    return t->group && t->group->rank == 0;
}

static ggl_status order_all(const llm_training *t, train_order_kind kind, ggl_error *err) {
    const train_order_sent o = {.kind = kind,
                                .n_steps = t->n_steps,
                                .step = t->step,
                                .draw = t->draw,
                                .n_tokens = t->n_tokens,
                                .n_updates = llm_trainer_n_steps(t->trainer)};
    ggl_status st = GGL_OK;
    for (int r = 1; r < t->group->n_ranks && st == GGL_OK; r++)
        st = send_to(t, r, &o, sizeof o, err);
    return st;
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* What all processes must have in common; or why one could not begin. */
typedef struct identity {
    uint64_t settings, digest[TRAIN_DIGESTS], n_numbers;
    char why[2048]; /* of a ggl_error */
} identity;

static identity identity_of(const llm_training *t) {
    identity id = {.n_numbers = (uint64_t)t->n_numbers};
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    ggl_xxh64_add(&h, t->settings, strlen(t->settings));
    id.settings = ggl_xxh64_end(&h);
    llm_train_digests(t, id.digest);
    return id;
}

static ggl_status check_rank(const llm_training *t, int rank, ggl_error *err) {
    const identity own = identity_of(t);
    identity theirs = {0};
    const ggl_status st = receive(t, rank, &theirs, sizeof theirs, err);
    theirs.why[sizeof theirs.why - 1] = '\0';
    if (st == GGL_OK && theirs.why[0])
        return ggl_fail(err, GGL_DEVICE, "rank %d: %s", rank, theirs.why);
    if (st != GGL_OK || memcmp(&own, &theirs, sizeof own) == 0)
        return st;
    const char *other = "other weights that learn";
    for (int i = TRAIN_DIGESTS; i-- > 0;)
        if (own.digest[i] != theirs.digest[i])
            other = llm_train_digest_other[i];
    return ggl_fail(err, GGL_USAGE,
                    "rank %d has %s: all ranks must run the same command, and see the same files",
                    rank, own.settings != theirs.settings ? "other settings" : other);
}

static ggl_status make_room(llm_training *t, ggl_error *err) {
    if (t->p.n_parts == 1)
        return GGL_OK;
    /* rank 0 adds each part up when it has come; the others keep theirs until then */
    const int64_t ranks = t->group ? t->group->n_ranks : 1,
                  own = leads(t) || !t->group ? 1 : (t->p.n_parts + ranks - 1) / ranks;
    t->part_bytes = (size_t)t->n_numbers * (size_t)(1 + own) * sizeof *t->part;
    t->all = ggl_calloc((size_t)t->n_numbers, sizeof *t->all);
    t->part = ggl_calloc((size_t)t->n_numbers, (size_t)own * sizeof *t->part);
    return t->all && t->part
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory for the gradients of %" PRId64 " parts",
                          t->p.n_parts);
}

ggl_status llm_train_group_begin(llm_training *t, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (t->group && t->p.n_parts < t->group->n_ranks)
        return ggl_fail(err, GGL_USAGE,
                        "a step of %" PRId64 " parts for %d processes: each needs one at least",
                        t->p.n_parts, t->group->n_ranks);
    st = make_room(t, err);
    if (st != GGL_OK || !t->group)
        return st;
    t->has_begun = true;
    if (!leads(t)) {
        const identity own = identity_of(t);
        return send_to(t, 0, &own, sizeof own, err);
    }
    for (int r = 1; r < t->group->n_ranks && st == GGL_OK; r++)
        st = check_rank(t, r, err);
    return st;
}

void llm_train_group_end(llm_training *t) {
    ggl_error ignored;
    if (leads(t) && t->has_begun)
        (void)!order_all(t, TRAIN_ORDER_END, &ignored); /* who cannot be reached has ended, too */
    t->has_begun = false;
}

void llm_train_group_fail(const train_group *g, const char *why) {
    const train_order_sent end = {.kind = TRAIN_ORDER_END};
    identity id = {0};
    ggl_error ignored;
    snprintf(id.why, sizeof id.why, "%s", why);
    if (g->rank > 0)
        (void)!g->send(g->ctx, 0, &id, sizeof id, &ignored);
    for (int r = 1; g->rank == 0 && r < g->n_ranks; r++)
        (void)!g->send(g->ctx, r, &end, sizeof end, &ignored);
}

/* --- the parts of a step ---------------------------------------------------------------------- */

/* The first item of a part: they are divided as evenly as they can be, and groups stay together. */
static int64_t first_of(const llm_training *t, const int64_t *item, int64_t n, int64_t part) {
    const bool alone = t->kind < TRAIN_PAIRS;
    int64_t i = 0,
            left = (alone ? n : llm_train_data_n_groups(t->data, item, n)) * part / t->p.n_parts;
    for (; left > 0; left--)
        i += llm_train_data_group(t->data, item[i]);
    return i;
}

/* The first part of a rank. */
static int64_t first_part(const llm_training *t, int rank) {
    return t->p.n_parts * rank / t->group->n_ranks;
}

static void take(llm_training *t, float *to) {
    for (int k = 0; k < llm_trainer_n_weights(t->trainer); k++) {
        const llm_train_weight w = llm_trainer_weight(t->trainer, k);
        const int64_t n = llm_train_weight_count(&w);
        memcpy(to, w.grad, (size_t)n * sizeof *to);
        to += n;
    }
    llm_trainer_forget(t->trainer);
}

static void give(llm_training *t, const float *from) {
    for (int k = 0; k < llm_trainer_n_weights(t->trainer); k++) {
        const llm_train_weight w = llm_trainer_weight(t->trainer, k);
        const int64_t n = llm_train_weight_count(&w);
        memcpy(w.grad, from, (size_t)n * sizeof *from);
        from += n;
    }
}

/* Makes the gradients of a part, from zeros, and moves them to `to`. */
static ggl_status make_part(llm_training *t, const int64_t *item, int64_t n, int64_t part,
                            float *to, train_sum *sum, ggl_error *err) {
    const int64_t first = first_of(t, item, n, part), end = first_of(t, item, n, part + 1);
    *sum = (train_sum){0};
    const train_step_items of = {.item = item, .n = n, .first = first, .end = end};
    const ggl_status st =
        end > first ? llm_train_learn(t, &of, llm_train_total(t, item, n), sum, err) : GGL_OK;
    take(t, to);
    return st;
}

static void add_part(llm_training *t, const float *part, const train_sum *of, train_sum *sum) {
    for (int64_t i = 0; i < t->n_numbers; i++)
        t->all[i] += part[i];
    sum->loss += of->loss;
    sum->n += of->n;
    sum->guessing += of->guessing;
    sum->n_right += of->n_right;
    sum->n_judged += of->n_judged;
}

/* Rank 0: receives the parts of a rank, and adds them up. */
static ggl_status receive_parts(llm_training *t, int rank, train_sum *sum, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int64_t k = first_part(t, rank); k < first_part(t, rank + 1) && st == GGL_OK; k++) {
        part_head h;
        st = receive(t, rank, &h, sizeof h, err);
        h.why[sizeof h.why - 1] = '\0';
        if (st == GGL_OK && h.status != GGL_OK)
            return ggl_fail(err, GGL_DEVICE, "rank %d: %s", rank, h.why);
        if (st == GGL_OK)
            st = receive(t, rank, t->part, (size_t)t->n_numbers * sizeof *t->part, err);
        if (st == GGL_OK)
            add_part(t, t->part, &h.sum, sum);
    }
    return st;
}

/* Rank 0, or one process alone: makes its parts, adds up all, and lets the others have the sum. What the others send is received in any
 * case: they wait for that. */
static ggl_status lead(llm_training *t, const int64_t *item, int64_t n, train_sum *sum,
                       ggl_error *err) {
    const int n_ranks = t->group ? t->group->n_ranks : 1;
    const int64_t own = t->group ? first_part(t, 1) : t->p.n_parts;
    ggl_status st = GGL_OK;
    ggl_error later;
    *sum = (train_sum){0};
    memset(t->all, 0, (size_t)t->n_numbers * sizeof *t->all);
    for (int64_t k = 0; k < own && st == GGL_OK; k++) {
        train_sum of;
        st = make_part(t, item, n, k, t->part, &of, err);
        if (st == GGL_OK)
            add_part(t, t->part, &of, sum);
    }
    for (int r = 1; r < n_ranks; r++) {
        const ggl_status theirs = receive_parts(t, r, sum, st == GGL_OK ? err : &later);
        st = st == GGL_OK ? theirs : st;
    }
    for (int r = 1; r < n_ranks; r++) {
        const sum_head h = {.status = st, .sum = *sum};
        ggl_status sent = send_to(t, r, &h, sizeof h, st == GGL_OK ? err : &later);
        if (st == GGL_OK && sent == GGL_OK)
            sent = send_to(t, r, t->all, (size_t)t->n_numbers * sizeof *t->all, err);
        st = st == GGL_OK ? sent : st;
    }
    return st;
}

/* Another rank: makes its parts, sends them, and receives the sum. */
static ggl_status help(llm_training *t, const int64_t *item, int64_t n, train_sum *sum,
                       ggl_error *err) {
    const int64_t begin = first_part(t, t->group->rank), end = first_part(t, t->group->rank + 1);
    const size_t size = (size_t)t->n_numbers * sizeof *t->part;
    part_head h = {0};
    ggl_status st = GGL_OK, failed = GGL_OK;
    train_sum *of = ggl_calloc((size_t)(end - begin), sizeof *of);
    failed = of ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a step");
    for (int64_t k = begin; k < end && failed == GGL_OK; k++)
        failed =
            make_part(t, item, n, k, t->part + (k - begin) * t->n_numbers, &of[k - begin], err);
    h.status = failed;
    if (failed != GGL_OK)
        snprintf(h.why, sizeof h.why, "%s", err->msg);
    for (int64_t k = begin; k < end && st == GGL_OK; k++) {
        h.sum = failed == GGL_OK ? of[k - begin] : (train_sum){0};
        st = send_to(t, 0, &h, sizeof h, err);
        if (failed != GGL_OK)
            break;
        if (st == GGL_OK)
            st = send_to(t, 0, t->part + (k - begin) * t->n_numbers, size, err);
    }
    ggl_free(of);
    if (failed != GGL_OK || st != GGL_OK)
        return failed != GGL_OK ? failed : st;
    sum_head all;
    st = receive(t, 0, &all, sizeof all, err);
    *sum = all.sum;
    if (st == GGL_OK && all.status != GGL_OK)
        return ggl_fail(err, GGL_CANCELLED, "rank 0 takes no step");
    return st == GGL_OK ? receive(t, 0, t->all, size, err) : st;
}

ggl_status llm_train_group_learn(llm_training *t, const int64_t *item, int64_t n, train_sum *sum,
                                 ggl_error *err) {
    const train_step_items all = {.item = item, .n = n, .end = n};
    llm_train_contrast_forget(t);
    if (t->p.n_parts == 1)
        return llm_train_learn(t, &all, llm_train_total(t, item, n), sum, err);
    const ggl_status st =
        t->group && !leads(t) ? help(t, item, n, sum, err) : lead(t, item, n, sum, err);
    if (st == GGL_OK)
        give(t, t->all);
    return st;
}

/* --- orders ----------------------------------------------------------------------------------- */

ggl_status llm_train_group_step(llm_training *t, ggl_error *err) {
    return leads(t) ? order_all(t, TRAIN_ORDER_STEP, err) : GGL_OK;
}

ggl_status llm_train_move_state(llm_training *t, int rank, bool sends, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < llm_trainer_n_weights(t->trainer); i++) {
        const llm_train_weight w = llm_trainer_weight(t->trainer, i);
        for (int k = 0; k < LLM_TRAIN_STATES && st == GGL_OK; k++) {
            const llm_train_state s = llm_train_weight_state(&w, k);
            st = sends ? send_to(t, rank, s.data, s.size, err)
                       : receive(t, rank, s.data, s.size, err);
        }
    }
    return st;
}

ggl_status llm_train_group_resume(llm_training *t, ggl_error *err) {
    ggl_status st = leads(t) ? order_all(t, TRAIN_ORDER_RESUME, err) : GGL_OK;
    for (int r = 1; leads(t) && r < t->group->n_ranks && st == GGL_OK; r++)
        st = llm_train_move_state(t, r, true, err);
    return st;
}

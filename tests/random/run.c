#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build.h"
#include "faulty.h"
#include "gen.h"
#include "ggl/internal/divide.h"
#include "ggl/internal/fold.h"
#include "ggl/sched.h"
#include "weights.h"

/* Of a process of its own: its exit code if something was wrong, and how long it may take. */
enum { WRONG = 77, MOST_SECONDS = 60 };
enum { MOST_LANES = 16 /* of a scheduler */ };

const r_variant r_variants[] = {
    {"cpu", {R_CPU}, 1, JUDGE_CPU, 0, NULL},
    {"reference", {R_REFERENCE}, 1, JUDGE_EXACT, R_FOLD, NULL},
    {"rows of the reference", {R_REFERENCE}, 1, JUDGE_EXACT, R_FOLD | R_PIECES, "reference"},
    {"portable", {R_PORTABLE}, 1, JUDGE_CPU, R_CHUNKS, "cpu"},
    {"rows", {R_CPU_3}, 1, JUDGE_CPU, R_PIECES, "cpu"},
    {"not repacked", {R_CPU}, 1, JUDGE_CPU, R_PIECES | R_NO_REPACK, "cpu"},
    {"folded the other way", {R_CPU_3}, 1, JUDGE_CPU, R_FOLD | R_CHUNKS, NULL},
    {"split", {R_CPU, R_PORTABLE, R_CPU_3}, 3, JUDGE_CPU, R_PIECES, "cpu"},
    {"split, not repacked", {R_PORTABLE, R_CPU}, 2, JUDGE_CPU, R_CHUNKS | R_NO_REPACK, "cpu"},
    {"flights", {R_CPU, R_PORTABLE, R_CPU_3}, 3, JUDGE_CPU, R_PIECES | R_FLIGHTS, "cpu"},
    {"flights, one late", {R_CPU_3, R_LATE}, 2, JUDGE_CPU, R_PIECES | R_FLIGHTS, "cpu"},
    {"rank", {R_RANK_1}, 1, JUDGE_CPU, R_PIECES, "cpu"},
    {"ranks", {R_RANK_1, R_CPU, R_RANK_2}, 3, JUDGE_CPU, R_PIECES | R_FLIGHTS, "cpu"},
    {"divided", {R_CPU, R_PORTABLE, R_LATE}, 3, JUDGE_CPU, R_PIECES | R_DIVIDED, "cpu"},
    {"divided among ranks", {R_CPU, R_RANK_1, R_RANK_2}, 3, JUDGE_CPU, R_CHUNKS | R_DIVIDED, "cpu"},
    {"cpu and reference", {R_CPU, R_REFERENCE, R_PORTABLE}, 3, JUDGE_EITHER, R_PIECES, NULL},
    {"reference and cpu", {R_REFERENCE, R_CPU_3}, 2, JUDGE_EITHER, R_FOLD | R_PIECES, NULL},
};
const int r_n_variants = sizeof r_variants / sizeof *r_variants;

/* --- the backends ----------------------------------------------------------------------------- */

bool r_bench_open(r_bench *b, ggl_error *err) {
    const ggl_backend_params params[R_ENGINES] = {
        [R_CPU] = {.size = sizeof(ggl_backend_params), .n_threads = 1},
        [R_CPU_3] = {.size = sizeof(ggl_backend_params), .n_threads = 3},
        [R_PORTABLE] = {.size = sizeof(ggl_backend_params), .n_threads = 2, .mask = "all"},
        [R_REFERENCE] = {.size = sizeof(ggl_backend_params)}};
    ggl_status st = GGL_OK;
    memset(b, 0, sizeof *b);
    for (int k = 0; k <= R_REFERENCE && st == GGL_OK; k++) {
        if (params[k].n_threads > 1) /* steps as small as these would be left to one thread */
            setenv("GGL_CPU_SHARE_ALL", "1", 1);
        if (k == R_CPU_3) /* two nodes of memory, of the same CPUs */
            setenv("GGL_CPU_ROOT", TWO_NODES, 1);
        st = ggl_backend_open(&b->engine[k], k == R_REFERENCE ? "reference" : "cpu", &params[k],
                              err);
        unsetenv("GGL_CPU_SHARE_ALL");
        unsetenv("GGL_CPU_ROOT");
    }
    if (st == GGL_OK) /* a backend of its own: two may not share one */
        st = ggl_backend_open(&b->under_late, "cpu", &params[R_CPU], err);
    if (st == GGL_OK && !(b->engine[R_LATE] = faulty_open(b->under_late, FAULT_ASYNC, GGL_OP_COUNT,
                                                          GGL_TYPE_LIMIT)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK && !(b->job = local_job_open(3, err)))
        st = err->status;
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    for (int k = R_RANK_1; k <= R_RANK_2 && st == GGL_OK; k++)
        st = ggl_backend_open(&b->engine[k], k == R_RANK_1 ? "rank1" : "rank2",
                              &params[k == R_RANK_1 ? R_CPU : R_CPU_3], err);
    unsetenv("GGL_CPU_SHARE_ALL");
    return st == GGL_OK;
}

void r_bench_close(r_bench *b) {
    for (int k = 0; k <= R_REFERENCE; k++)
        ggl_backend_close(b->engine[k]);
    faulty_close(b->engine[R_LATE]);
    ggl_backend_close(b->under_late);
    ggl_backend_close(b->engine[R_RANK_1]);
    ggl_backend_close(b->engine[R_RANK_2]);
    if (b->job && !local_job_close(b->job))
        fprintf(stderr, "a rank did not end as it must\n");
}

static bool has_threads(const r_variant *v) {
    for (int k = 0; k < v->n_engines; k++)
        if (v->engine[k] == R_CPU_3 || v->engine[k] == R_PORTABLE || v->engine[k] == R_RANK_2)
            return true;
    return false;
}

/* --- one variant ------------------------------------------------------------------------------ */

typedef struct outputs { /* of all tokens */
    float *at;           /* [token][all outputs' elements] */
    bool there[R_MOST_TOKENS];
    int size;
} outputs;

/* A batch, or one under way. */
typedef struct batch {
    uint64_t ticket;
    int first, n_rows; /* its first token; the wanted rows */
    int32_t row[R_MOST_TOKENS];
} batch;

typedef struct runner {
    const r_program *p;
    const r_variant *v;
    ggl_sched *s;
    outputs *out;
    void *saved[R_MOST_SAVES];
    uint64_t n_changes, salt, n_collected;
    batch under_way[MOST_LANES];
    int n_under_way;
    ggl_error *err;
} runner;

static bool is_folded(const r_program *p, const r_variant *v) {
    return !(v->how & R_FOLD) != !(p->seed % 2 == 0);
}

static int place(void *ctx, int group, const char *name) {
    const runner *r = ctx;
    uint64_t h = r_mix(r->salt, (uint64_t)(group + 2));
    for (const char *c = name; c && *c; c++)
        h = r_mix(h, (uint64_t)*c);
    if (name && h % 3 == 0)
        return -1;
    return (int)((h >> 8) % (uint64_t)r->v->n_engines);
}

static ggl_status set_input(runner *r, int i, int first, int n) {
    const r_node *t = &r->p->node[i];
    int count = r_count(t), rows = t->batched ? n : 1;
    int32_t *data = calloc((size_t)(count * rows), sizeof *data);
    char name[16];
    if (!data)
        return ggl_fail(r->err, GGL_NOMEM, "out of memory");
    for (int k = 0; k < rows; k++)
        for (int e = 0; e < count; e++) {
            double v = r_input_value(t, t->batched ? r->p->token[first + k].salt : r->n_changes, e);
            float f = (float)v;
            if (t->integer)
                data[k * count + e] = (int32_t)v;
            else
                memcpy(&data[k * count + e], &f, sizeof f);
        }
    ggl_status st = ggl_sched_set(r->s, r_input_name(i, name), data,
                                  (size_t)(rows * count) * sizeof *data, rows, r->err);
    free(data);
    return st;
}

static ggl_status set_inputs(runner *r, int first, int n) {
    int32_t pos[R_MOST_TOKENS], slot[R_MOST_TOKENS];
    for (int k = 0; k < n; k++) {
        pos[k] = r->p->token[first + k].pos;
        slot[k] = r->p->token[first + k].slot;
    }
    ggl_status st = ggl_sched_set(r->s, "pos", pos, (size_t)n * sizeof *pos, n, r->err);
    if (st == GGL_OK)
        st = ggl_sched_set(r->s, "slot", slot, (size_t)n * sizeof *slot, n, r->err);
    for (int i = 0; i < r->p->n && st == GGL_OK; i++)
        if (r->p->node[i].op == R_INPUT && !r->p->node[i].position)
            st = set_input(r, i, first, n);
    return st;
}

static ggl_status act(runner *r, const r_action *a) {
    switch (a->kind) {
    case R_CLEAR:
        return ggl_sched_clear_slot(r->s, a->slot, r->err);
    case R_COPY:
        return ggl_sched_copy_slot(r->s, a->slot, a->other, INT64_MAX, r->err);
    case R_SAVE:
        free(r->saved[a->other]);
        r->saved[a->other] = malloc(ggl_sched_slot_size(r->s, a->n_pos, false) +
                                    ggl_sched_slot_size(r->s, 0, true) + 1);
        if (!r->saved[a->other])
            return ggl_fail(r->err, GGL_NOMEM, "out of memory");
        /* then the states again: a snapshot without rows */
        ggl_status st =
            ggl_sched_save_slot(r->s, a->slot, a->n_pos, false, r->saved[a->other], r->err);
        return st == GGL_OK ? ggl_sched_save_slot(r->s, a->slot, a->n_pos, true,
                                                  (char *)r->saved[a->other] +
                                                      ggl_sched_slot_size(r->s, a->n_pos, false),
                                                  r->err)
                            : st;
    case R_RESTORE:
        return ggl_sched_restore_slot(r->s, a->slot, a->n_pos, false, r->saved[a->other], r->err);
    case R_RESTORE_STATES:
        return ggl_sched_restore_slot(
            r->s, a->slot, a->n_pos, true,
            (char *)r->saved[a->other] + ggl_sched_slot_size(r->s, a->n_pos, false), r->err);
    case R_CHANGE:
        r->n_changes++;
        break;
    case R_CUT:
        break;
    }
    return GGL_OK;
}

/* How many tokens from `first` on go as one batch: no more than up to the next action. */
static int piece(const runner *r, int first) {
    const r_program *p = r->p;
    int n = p->n_tokens - first < p->n_batch ? p->n_tokens - first : p->n_batch;
    for (int i = 0; i < p->n_actions; i++)
        if (p->action[i].before > first && p->action[i].before - first < n)
            n = p->action[i].before - first;
    return (r->v->how & R_CHUNKS) ? 1 + (int)(r_mix(r->salt, (uint64_t)first) % (uint64_t)n) : n;
}

/* Rows of outputs in one run. */
static int most_rows(const runner *r) {
    return (r->v->how & R_SOME) ? 1 + (int)(r_mix(r->salt, 3) % (uint64_t)r->p->n_batch)
                                : r->p->n_batch;
}

/* Copies the outputs of the batch that was run or collected last. */
static void take_outputs(runner *r, const batch *b) {
    for (int k = 0; k < b->n_rows; k++) {
        float *to = r->out->at + (size_t)(b->first + b->row[k]) * (size_t)r->out->size;
        r->out->there[b->first + b->row[k]] = true;
        for (int o = 0; o < r->p->n_outputs; o++) {
            int count = r_count(&r->p->node[r->p->output[o]]);
            memcpy(to, ggl_sched_output(r->s, o) + k * count, (size_t)count * sizeof *to);
            to += count;
        }
    }
}

/* Collects one of the batches under way: mostly the oldest. */
static ggl_status collect_one(runner *r) {
    const uint64_t h = r_mix(r->salt, 0x3000 + ++r->n_collected);
    const int k = h % 3 ? 0 : (int)((h >> 8) % (uint64_t)r->n_under_way);
    const batch b = r->under_way[k];
    r->under_way[k] = r->under_way[--r->n_under_way];
    for (int i = k; h % 3 && i + 1 < r->n_under_way; i++) { /* keeps their order */
        const batch x = r->under_way[i];
        r->under_way[i] = r->under_way[i + 1];
        r->under_way[i + 1] = x;
    }
    const ggl_status st = ggl_sched_collect(r->s, b.ticket, r->err);
    if (st == GGL_OK)
        take_outputs(r, &b);
    return st;
}

/* Submits the batch, which some will collect later. */
static ggl_status submit(runner *r, batch *b, int n) {
    ggl_status st = ggl_sched_submit(r->s, n, b->row, b->n_rows, false, &b->ticket, r->err);
    if (st == GGL_OK)
        r->under_way[r->n_under_way++] = *b;
    return st;
}

static ggl_status run_piece(runner *r, int first, int n) {
    batch b = {.first = first};
    uint64_t h = r_mix(r->salt, 0x1000 + (uint64_t)first);
    bool none = r->v->how & R_SOME && h % 3 == 0;
    for (int k = 0; k < n; k++)
        if (!(r->v->how & R_SOME) || (!none && b.n_rows < most_rows(r) && (h >> k % 48 & 1)))
            b.row[b.n_rows++] = k;
    ggl_status st = set_inputs(r, first, n);
    while (st == GGL_OK && r->n_under_way == ggl_sched_n_lanes(r->s))
        st = collect_one(r);
    if (st == GGL_OK && none && h & 0x100)
        return ggl_sched_submit(r->s, n, NULL, 0, false, NULL, r->err);
    if (st == GGL_OK && r->v->how & R_FLIGHTS)
        return submit(r, &b, n);
    if (st == GGL_OK)
        st = ggl_sched_run(r->s, n, b.n_rows == n ? NULL : b.row, b.n_rows, r->err);
    if (st == GGL_OK)
        take_outputs(r, &b);
    return st;
}

static ggl_status run_script(runner *r) {
    ggl_status st = GGL_OK;
    for (int first = 0, n; first < r->p->n_tokens && st == GGL_OK; first += n) {
        for (int i = 0; i < r->p->n_actions && st == GGL_OK; i++)
            if (r->p->action[i].before == first)
                st = act(r, &r->p->action[i]);
        n = piece(r, first);
        if (st == GGL_OK)
            st = run_piece(r, first, n);
    }
    while (st == GGL_OK && r->n_under_way > 0)
        st = collect_one(r);
    bool finish = r->salt % 2 == 0 || r_avoid >> R_AVOID_UNFINISHED & 1;
    return st == GGL_OK && finish ? ggl_sched_finish(r->s, r->err) : st;
}

/* Lets the slots' rows lie in any pages; with the first variant, where they are by themselves. */
static ggl_status mix_pages(runner *r, const ggl_graph *g) {
    const int64_t n = r->v == r_variants ? 0 : ggl_graph_n_pages(g);
    int32_t *page = calloc((size_t)n + 1, sizeof *page);
    if (!page)
        return ggl_fail(r->err, GGL_NOMEM, "out of memory");
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = (int64_t)(r_mix(r->salt, 0x2000 + (uint64_t)i) % (uint64_t)(i + 1));
        page[i] = page[k];
        page[k] = (int32_t)i;
    }
    ggl_status st =
        n ? ggl_sched_set(r->s, "page", page, (size_t)n * sizeof *page, 1, r->err) : GGL_OK;
    free(page);
    return st;
}

/* Makes the scheduler. With several backends, their buffers are as small as the graph allows, within a
 * factor of two, so that stores and weights lie in several of them. */
static ggl_status make_sched(runner *r, ggl_graph *g, const ggl_sched_params *params) {
    enum { SMALLEST = 4096, DOUBLINGS = 24 };
    ggl_status st = GGL_LIMIT;
    for (int i = params->n_backends > 1 ? 0 : DOUBLINGS; i <= DOUBLINGS && st == GGL_LIMIT; i++) {
        for (int k = 0; k < params->n_backends; k++)
            params->backend[k]->max_buffer = i < DOUBLINGS ? (size_t)SMALLEST << i : 0;
        ggl_sched_free(r->s);
        r->s = NULL;
        st = ggl_sched_new(&r->s, g, params, r->err);
        if (st == GGL_OK)
            st = ggl_sched_alloc(r->s, r->err);
    }
    return st;
}

static ggl_status run_variant(r_bench *b, const r_program *p, const r_variant *v, outputs *out,
                              ggl_error *err) {
    r_built built;
    ggl_backend *list[R_MOST_BACKENDS];
    if (b->instead)
        p = b->instead;
    runner r = {
        .p = p, .v = v, .out = out, .err = err, .salt = r_mix(p->seed, (uint64_t)(v - r_variants))};
    for (int k = 0; k < v->n_engines; k++)
        list[k] = b->engine[v->engine[k]] == b->engine[R_CPU] && b->engine[R_SPOILED]
                      ? b->engine[R_SPOILED]
                      : b->engine[v->engine[k]];
    ggl_sched_params params = {.size = sizeof params,
                               .backend = list,
                               .n_backends = v->n_engines,
                               .no_repack = v->how & R_NO_REPACK,
                               .n_rows = most_rows(&r),
                               .place = v->n_engines > 1 ? place : NULL,
                               .ctx = &r};
    ggl_status st = r_build(&built, p, err);
    if (st == GGL_OK && is_folded(p, v))
        st = ggl_graph_fold(built.g, b->engine[R_REFERENCE], err);
    if (st == GGL_OK && (v->how & R_DIVIDED)) {
        const double share[] = {1, 2, 1};
        int n;
        st = ggl_graph_divide(built.g, share, v->n_engines, 1, 1, &n, err);
        params.side_by_side = true;
    }
    if (st == GGL_OK)
        st = make_sched(&r, built.g, &params);
    if (st == GGL_OK)
        st = mix_pages(&r, built.g);
    if (st == GGL_OK)
        st = run_script(&r);
    ggl_sched_free(r.s);
    r_built_free(&built);
    for (int k = 0; k < R_MOST_SAVES; k++)
        free(r.saved[k]);
    return st;
}

/* --- what must hold --------------------------------------------------------------------------- */

typedef struct check {
    const r_program *p;
    outputs out[R_MOST_VARIANTS];
    bool done[R_MOST_VARIANTS];
    number *want[3][2]; /* by kind of judge, not folded and folded: [token][element] */
    int size;
    r_result *result;
} check;

static bool fail(check *c, int variant, r_fault fault, const char *fmt, ...) GGL_PRINTF(4, 5);
static bool fail(check *c, int variant, r_fault fault, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->result->text, sizeof c->result->text, fmt, args);
    va_end(args);
    c->result->fault = fault;
    c->result->variant = variant;
    return false;
}

static bool judge_all(check *c, judge_kind kind, bool folded) {
    if (c->want[kind][folded])
        return true;
    judge *j = judge_new(c->p, kind, folded);
    number *to = c->want[kind][folded] = calloc((size_t)(c->p->n_tokens * c->size), sizeof *to);
    for (int k = 0; k < c->p->n_tokens && j && to; k++) {
        judge_token(j, k);
        for (int o = 0; o < c->p->n_outputs; o++) {
            int count = r_count(&c->p->node[c->p->output[o]]);
            memcpy(to, judge_value(j, c->p->output[o]), (size_t)count * sizeof *to);
            to += count;
        }
    }
    bool ok = j && to;
    judge_free(j);
    return ok;
}

/* The place of element e of a token's outputs. */
static int output_of(const check *c, int *e) {
    int o = 0;
    while (*e >= r_count(&c->p->node[c->p->output[o]]))
        *e -= r_count(&c->p->node[c->p->output[o++]]);
    return c->p->output[o];
}

static bool agrees(number want, double got) {
    if (isnan(want.v) || isnan(got))
        return isnan(want.v) && isnan(got);
    return fabs(got - want.v) <= want.e + 0x1p-24 * fabs(want.v) + 1e-44;
}

static bool hold_against_judge(check *c, const r_bench *b, int k) {
    const r_variant *v = &r_variants[k];
    bool folded = is_folded(c->p, v);
    judge_kind kind = b->other_judge ? JUDGE_EXACT : v->judge;
    if (!judge_all(c, kind, folded))
        return fail(c, k, R_REFUSED, "out of memory");
    for (int t = 0; t < c->p->n_tokens; t++)
        for (int e = 0; e < c->size && c->out[k].there[t]; e++) {
            int at = t * c->size + e, of = e;
            number want = c->want[kind][folded][at];
            double got = (double)c->out[k].at[at];
            c->result->n_numbers++;
            c->result->n_unknown += !isfinite(want.e);
            c->result->n_loose += isfinite(want.e) && want.e > 0.02 && want.e > 0.05 * fabs(want.v);
            if (!isfinite(want.e) || agrees(want, got))
                continue;
            int node = output_of(c, &of);
            return fail(c, k, R_WRONG,
                        "%s: token %d, t%d[%d] is %.9g; the judge has %.9g, at most %.3g off",
                        v->name, t, node, of, got, want.v, want.e);
        }
    return true;
}

static bool same_bits(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool hold_against(check *c, int k, int other) {
    for (int t = 0; t < c->p->n_tokens; t++)
        for (int e = 0; e < c->size && c->out[k].there[t] && c->out[other].there[t]; e++) {
            int at = t * c->size + e, of = e;
            if (same_bits(c->out[k].at[at], c->out[other].at[at]))
                continue;
            int node = output_of(c, &of);
            return fail(c, k, R_DIFFERS, "%s: token %d, t%d[%d] is %.9g; '%s' has %.9g",
                        r_variants[k].name, t, node, of, (double)c->out[k].at[at],
                        r_variants[other].name, (double)c->out[other].at[at]);
        }
    return true;
}

static int find_variant(const char *name) {
    int k = 0;
    while (strcmp(r_variants[k].name, name) != 0)
        k++;
    return k;
}

static bool check_variant(check *c, r_bench *b, int k) {
    ggl_error err = {0};
    if (c->done[k])
        return true;
    c->result->variant = k;
    const char *equal = r_variants[k].equal;
    if (equal && !check_variant(c, b, find_variant(equal)))
        return false;
    c->done[k] = true;
    c->out[k].size = c->size;
    c->out[k].at = calloc((size_t)(c->p->n_tokens * c->size), sizeof(float));
    if (!c->out[k].at)
        return fail(c, k, R_REFUSED, "out of memory");
    if (run_variant(b, c->p, &r_variants[k], &c->out[k], &err) != GGL_OK)
        return fail(c, k, R_REFUSED, "%s: %s", r_variants[k].name, err.msg);
    return (!equal || hold_against(c, k, find_variant(equal))) &&
           (b->only_threads || hold_against_judge(c, b, k));
}

bool r_check(r_bench *b, const r_program *p, const char *only, r_result *result) {
    check *c = calloc(1, sizeof *c);
    *result = (r_result){0};
    if (!c)
        return false;
    c->p = p;
    c->result = result;
    for (int o = 0; o < p->n_outputs; o++)
        c->size += r_count(&p->node[p->output[o]]);
    bool ok = true;
    for (int k = 0; k < r_n_variants && ok; k++)
        if ((!only || strcmp(only, r_variants[k].name) == 0) &&
            (!b->only_threads || has_threads(&r_variants[k])))
            ok = check_variant(c, b, k);
    for (int k = 0; k < R_MOST_VARIANTS; k++)
        free(c->out[k].at);
    for (int k = 0; k < 6; k++)
        free(c->want[k / 2][k % 2]);
    free(c);
    return ok;
}

bool r_check_apart(const r_program *p, const char *only, r_result *out) {
    r_result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    *out = (r_result){.fault = R_REFUSED, .text = "no process"};
    if (shared == MAP_FAILED)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        r_bench b;
        ggl_error err;
        alarm(MOST_SECONDS);
        bool ok = r_bench_open(&b, &err) && r_check(&b, p, only, shared);
        _exit(ok ? 0 : WRONG);
    }
    if (child > 0 && waitpid(child, &status, 0) == child) {
        *out = *shared;
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != WRONG)) {
            out->fault = R_CRASHED;
            snprintf(out->text, sizeof out->text, "%s: %s %d", r_variants[out->variant].name,
                     WIFEXITED(status) ? "exit code" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        }
    }
    munmap(shared, sizeof *shared);
    return out->fault == R_RIGHT;
}

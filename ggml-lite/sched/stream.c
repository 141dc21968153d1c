#include "stream.h"

#include <math.h>
#include <stdlib.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/memory_left.h"
#include "repack.h"
#include "ggl/internal/os_process.h"

enum {
    CUT = 2 << 20,       /* bytes of a part: a huge page, and enough for a disk */
    MOST_KEPT = 8192,    /* parts in private memory: the system has a limit of */
    MOST_CHOSEN = 12288, /* some 65,000 stretches of addresses for a process */
    HALF_LIFE = 64,      /* runs after which a use counts half */
    MARGIN = 10, /* a tenth of the memory is left to other programs, as by library/place/fit.c; */
    CLOSE = 32   /* but what fits with a thirty-second of it left is not streamed */
};

/* --- lists of parts; the lock is held ------------------------------------------------------------------ */

static void count(stream *s, const stream_part *p, bool more) {
    size_t *of = p->kind == PART_PASSING ? &s->passing : p->kind == PART_CHOSEN ? &s->chosen : NULL;
    s->n_chosen += p->kind != PART_CHOSEN ? 0 : more ? 1 : -1;
    if (of)
        *of = more ? *of + p->size : *of - p->size;
}

static void spend(stream *s, int i) {
    s->part[i].state = PART_SPENT;
    s->part[i].next_spent = s->spent;
    s->spent = i;
}

/* True if a step that is not over reads the part. */
static bool is_current(const stream *s, const stream_part *p) {
    for (int k = 0; k < s->n_readers; k++)
        if (p->step == s->reader[k].step)
            return true;
    return false;
}

static size_t most_of(const stream *s, part_kind kind) {
    return kind == PART_PASSING ? s->plan.window : kind == PART_CHOSEN ? s->plan.chosen : SIZE_MAX;
}

static bool has_room(const stream *s, const stream_part *p) {
    const size_t used = p->kind == PART_PASSING  ? s->passing
                        : p->kind == PART_CHOSEN ? s->chosen
                                                 : 0;
    return used + p->size <= most_of(s, p->kind) &&
           (p->kind != PART_CHOSEN || s->n_chosen < MOST_CHOSEN);
}

/* How well memory is used by what the part holds; the least gives way. Of those that pass, what is needed last. */
static double worth_of(const stream *s, const stream_part *p) {
    const int ahead = (p->place - s->cursor + s->n_order) % (s->n_order > 0 ? s->n_order : 1);
    return p->kind == PART_CHOSEN ? p->worth : -ahead;
}

/* Gives up the part of this kind that is worth least, and less than that; false if there is none. */
static bool give_up_one(stream *s, part_kind kind, double than) {
    int least = -1;
    for (int i = 0; i < s->n; i++) {
        const stream_part *p = &s->part[i];
        if (p->kind == kind && p->state == PART_READY && !p->is_wanted && !is_current(s, p) &&
            worth_of(s, p) < than && (least < 0 || worth_of(s, p) < worth_of(s, &s->part[least])))
            least = i;
    }
    if (least >= 0)
        spend(s, least);
    return least >= 0;
}

/* Returns a part that a step waits for; -1: none. */
static int urgent(const stream *s) {
    for (int k = 0; k < s->n_readers; k++)
        for (int i = 0; i < s->reader[k].n_now; i++)
            if (s->part[s->reader[k].now[i]].state == PART_ABSENT)
                return s->reader[k].now[i];
    return -1;
}

/* Returns the next part that runs need; -1: none that has room. What is needed later gives way to it. */
static int ahead(stream *s) {
    for (int k = 0; k < s->n_order; k++) {
        const int i = s->order[(s->cursor + k) % s->n_order];
        if (s->part[i].state != PART_ABSENT)
            continue;
        if (has_room(s, &s->part[i]))
            return i;
        if (s->spent < 0)
            give_up_one(s, PART_PASSING, worth_of(s, &s->part[i]));
        return -1;
    }
    return -1;
}

/* Returns the next part to fill, after making room for it if it is needed now; -1: none. */
static int next_to_fill(stream *s) {
    int i = urgent(s);
    if (i >= 0 && has_room(s, &s->part[i]))
        return i;
    if (i >= 0 && (s->spent >= 0 || give_up_one(s, s->part[i].kind, INFINITY)))
        return -1;
    if (i >= 0 && s->n_busy > 0)
        return -1; /* there may be room when that is done */
    if (i >= 0 && !s->is_full) {
        s->is_full = true;
        ggl_os_cond_broadcast(&s->done);
    }
    while (s->n_wanted > 0) {
        i = s->wanted[s->wanted_from];
        stream_part *p = &s->part[i];
        if (p->state == PART_ABSENT && !has_room(s, p))
            return s->spent < 0 && give_up_one(s, PART_CHOSEN, INFINITY) ? -1 : ahead(s);
        s->wanted_from = (s->wanted_from + 1) % s->n;
        s->n_wanted--;
        p->is_wanted = false;
        if (p->state == PART_ABSENT)
            return i;
    }
    return ahead(s);
}

/* --- the threads --------------------------------------------------------------------------------------- */

/* Empties the first spent part. The lock is held, but not meanwhile. */
static void empty_one(stream *s) {
    stream_part *p = &s->part[s->spent];
    s->spent = p->next_spent;
    s->n_busy++;
    ggl_os_mutex_unlock(&s->lock);
    ggl_os_part_empty(p->file, p->at, p->size);
    ggl_os_mutex_lock(&s->lock);
    s->n_busy--;
    p->state = PART_ABSENT;
    count(s, p, false);
    ggl_os_cond_broadcast(&s->work); /* there is room */
}

static void fill_one(stream *s, int i) {
    stream_part *p = &s->part[i];
    p->state = PART_LOADING;
    s->n_busy++;
    count(s, p, true);
    ggl_os_mutex_unlock(&s->lock);
    const bool ok = ggl_os_part_fill(p->file, p->at, p->size);
    ggl_os_mutex_lock(&s->lock);
    p->state = ok ? PART_READY : PART_FAILED;
    s->n_busy--;
    if (!ok)
        count(s, p, false);
    ggl_os_cond_broadcast(&s->done);
}

static void *fill_all(void *arg) {
    stream *s = arg;
    ggl_os_mutex_lock(&s->lock);
    while (!s->stops) {
        const int i = s->spent >= 0 ? -1 : next_to_fill(s);
        if (i >= 0)
            fill_one(s, i);
        else if (s->spent >= 0)
            empty_one(s);
        else
            ggl_os_cond_wait(&s->work, &s->lock);
    }
    ggl_os_mutex_unlock(&s->lock);
    return NULL;
}

/* --- what backends read -------------------------------------------------------------------------------- */

/* Returns the index of the first part that ends after `at`; s->n: none. */
static int find(const stream *s, const char *at) {
    int from = 0, to = s->n;
    while (from < to) {
        const int i = from + (to - from) / 2;
        if (s->part[i].at + s->part[i].size <= at)
            from = i + 1;
        else
            to = i;
    }
    return from;
}

/* Once in a run. */
static void count_use(const stream *s, stream_part *p) {
    const double now = (double)s->run / HALF_LIFE;
    if (p->counted == s->run)
        return;
    p->worth = now + log2(exp2(p->worth - now) + 1);
    p->counted = s->run;
}

static void use(stream *s, stream_reader *r, int i) {
    stream_part *p = &s->part[i];
    if (p->kind == PART_CHOSEN)
        count_use(s, p);
    else
        s->cursor = (p->place + 1) % s->n_order;
    if (p->step != r->step && r->n_now < s->n)
        r->now[r->n_now++] = i;
    p->step = r->step;
}

static void want(stream *s, const char *at, size_t size) {
    for (int i = find(s, at); i < s->n && s->part[i].at < at + size; i++) {
        stream_part *p = &s->part[i];
        if (p->state != PART_ABSENT || p->is_wanted)
            continue;
        p->is_wanted = true;
        count_use(s, p);
        s->wanted[(s->wanted_from + s->n_wanted++) % s->n] = i;
    }
}

/* The matrices of other stacks that the same index chooses are read soon. */
static void want_others(stream *s, const char *at) {
    for (size_t k = 0; k < s->n_stacks; k++) {
        const stream_stack *of = &s->stack[k];
        if (at < of->at || at >= of->at + of->size || !of->index)
            continue;
        const size_t m = (size_t)(at - of->at) / of->matrix;
        for (size_t j = 0; j < s->n_stacks; j++) {
            const stream_stack *other = &s->stack[j];
            if (j != k && other->index == of->index && (m + 1) * other->matrix <= other->size)
                want(s, other->at + m * other->matrix, other->matrix);
        }
        return;
    }
}

/* Begins the next step of the device. */
static void open_step(stream *s, stream_reader *r) {
    int *const before = r->before;
    r->before = r->now;
    r->n_before = r->n_now;
    r->now = before;
    r->n_now = 0;
    r->step = ++s->last_step;
    r->is_open = true;
    s->is_full = false;
}

/* What has passed is spent, now that the step after it is known not to read it. */
static void leave_before(stream *s, stream_reader *r) {
    for (int i = 0; i < r->n_before; i++) {
        const stream_part *p = &s->part[r->before[i]];
        if (p->kind == PART_PASSING && p->state == PART_READY && !is_current(s, p))
            spend(s, r->before[i]);
    }
    r->n_before = 0;
}

/* Waits until all that the step reads is filled, or can not be. */
static void await_step(stream *s, const stream_reader *r) {
    for (bool waits = true; waits;) {
        bool is_loading = false, is_absent = false;
        for (int i = 0; i < r->n_now; i++) {
            const part_state state = s->part[r->now[i]].state;
            is_loading |= state == PART_LOADING;
            is_absent |= state == PART_ABSENT || state == PART_SPENT;
        }
        waits = is_loading || (is_absent && !s->is_full);
        if (waits)
            ggl_os_cond_wait(&s->done, &s->lock);
    }
}

/* ggl_backend.reads */
static void reads(void *ctx, const void *data, size_t size) {
    stream_reader *r = ctx;
    stream *s = r->s;
    const char *at = data, *end = size > 0 ? at + size : at;
    ggl_os_mutex_lock(&s->lock);
    if (!r->is_open)
        open_step(s, r);
    if (size > 0) {
        for (int i = find(s, at); i < s->n && s->part[i].at < end; i++)
            use(s, r, i);
        want_others(s, at);
    } else {
        r->is_open = false;
        leave_before(s, r);
        ggl_os_cond_broadcast(&s->work);
        await_step(s, r);
    }
    ggl_os_mutex_unlock(&s->lock);
}

void ggl_stream_lend(stream *s, ggl_backend *b, int k, bool lent) {
    if (!ggl_stream_is_on(s))
        return;
    b->reads = lent ? reads : NULL;
    b->reads_ctx = lent ? &s->reader[k] : NULL;
    ggl_os_mutex_lock(&s->lock);
    s->run += lent;
    ggl_os_mutex_unlock(&s->lock);
}

/* --- parts --------------------------------------------------------------------------------------------- */

/* Whole pages of a weight or a matrix. */
typedef struct span {
    const char *from, *to;
    part_kind kind;
} span;

typedef struct spans {
    span *at;
    size_t n, cap;
} spans;

static uintptr_t down(uintptr_t x, size_t to) {
    return x - x % to;
}

static bool add_span(spans *l, uintptr_t from, uintptr_t to, part_kind kind) {
    if (!ggl_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at))
        return false;
    l->at[l->n++] = (span){(const char *)from, (const char *)to, kind};
    return true;
}

/* Adds the pages that lie wholly in [at, at + size), cut at addresses that are multiples of `cut`. */
static bool add_inner(spans *l, const char *at, size_t size, size_t page, size_t cut,
                      part_kind kind) {
    const uintptr_t end = down((uintptr_t)at + size, page);
    bool ok = true;
    for (uintptr_t p = down((uintptr_t)at + page - 1, page); p < end && ok;) {
        const uintptr_t next = down(p, cut) + cut, to = next < end ? next : end;
        ok = add_span(l, p, to, kind);
        p = to;
    }
    return ok;
}

/* Adds the pages that the weight shares with what is beside it. They are few, and stay. */
static bool add_edges(spans *l, const char *at, size_t size, size_t page) {
    const uintptr_t from = (uintptr_t)at, to = from + size;
    bool ok = true;
    if (from % page > 0)
        ok = add_span(l, down(from, page), down(from, page) + page, PART_KEPT);
    if (to % page > 0 && ok)
        ok = add_span(l, down(to, page), down(to, page) + page, PART_KEPT);
    return ok;
}

/* For qsort. */
static int by_address(const void *a, const void *b) {
    const span *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* True if the device reads the weight in the mapped file, and no copy of it will ever be read in its place. */
static bool stays_in_file(const schedule *s, const ggl_tensor *t) {
    for (int i = 0; i < s->n_dev; i++)
        if (s->dev[i].repack.loc[t->id].region >= 0)
            return false;
    return ggl_sched_still_read(s, t, NULL);
}

/* True if an earlier one of the list is the same weight. */
static bool is_known(const node_list *l, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (l->at[k]->data == l->at[i]->data)
            return true;
    return false;
}

static size_t matrix_of(const ggl_tensor *t) {
    return t->size / (size_t)ggl_extents(t->ne, 2, GGL_MAX_DIMS, 1);
}

/* Adds up the weights of `reads` and `stacks`. */
static stream_needs needs_of(const schedule *s) {
    stream_needs n = {0};
    for (size_t i = 0; i < s->reads.n; i++) {
        const ggl_tensor *t = s->reads.at[i];
        if (is_known(&s->reads, i) || !stays_in_file(s, t))
            continue;
        n.each += t->size;
        n.largest = t->size > n.largest ? t->size : n.largest;
    }
    for (size_t i = 0; i < s->stacks.n; i++)
        if (!is_known(&s->stacks, i) && stays_in_file(s, s->stacks.at[i]))
            n.chosen += s->stacks.at[i]->size;
    return n;
}

/* Returns the bytes that are left for weights, once what the scheduler has allocated is in use; 0: not known. */
static size_t memory_for(const schedule *s, size_t *close) {
    const size_t left = ggl_memory_left("");
    size_t taken = s->host_size * (size_t)s->n_lanes;
    for (int i = 0; i < s->n_dev; i++) {
        const device *d = &s->dev[i];
        if (d->weights.mapped_size > 0)
            taken += d->arena_size + d->stores.rows_size + d->stores.states_size + d->repack.size;
    }
    *close = left - left / CLOSE > taken ? left - left / CLOSE - taken : 1;
    return left == 0 ? 0 : left - left / MARGIN > taken ? left - left / MARGIN - taken : 1;
}

/* Lists the pages of all weights, and the stacks. */
static bool list_spans(stream *s, const schedule *plan, size_t cut, spans *l) {
    bool ok = true;
    for (size_t i = 0; i < plan->reads.n && ok; i++) {
        const ggl_tensor *t = plan->reads.at[i];
        if (!is_known(&plan->reads, i) && stays_in_file(plan, t))
            ok = add_inner(l, t->data, t->size, s->page, cut, PART_PASSING) &&
                 add_edges(l, t->data, t->size, s->page);
    }
    for (size_t i = 0; i < plan->stacks.n && ok; i++) {
        const ggl_tensor *t = plan->stacks.at[i];
        const size_t each = matrix_of(t);
        if (is_known(&plan->stacks, i) || !stays_in_file(plan, t))
            continue;
        s->stack[s->n_stacks++] = (stream_stack){t->data, t->size, each, plan->stack_index.at[i]};
        for (size_t at = 0; at + each <= t->size && ok; at += each)
            ok = add_inner(l, (const char *)t->data + at, each, s->page, cut, PART_CHOSEN);
    }
    return ok;
}

/* Claims the file around `at`, once; NULL: it cannot be. */
static os_parts *file_of(stream *s, const schedule *plan, const char *at) {
    for (int i = 0; i < plan->params.n_host; i++) {
        const char *data = plan->params.host[i].data;
        if (at < data || at >= data + plan->params.host[i].size)
            continue;
        if (!s->file[i])
            s->file[i] = ggl_os_parts_claim(data);
        return s->file[i];
    }
    return NULL;
}

/* Makes parts of the spans, and adds up what runs read of them. */
static void make_parts(stream *s, const schedule *plan, spans *l, stream_needs *needs) {
    qsort(l->at, l->n, sizeof *l->at, by_address);
    for (size_t i = 0; i < l->n; i++) {
        const span *x = &l->at[i];
        const bool is_known = i > 0 && x->from == x[-1].from; /* a page of two weights */
        os_parts *file = is_known ? NULL : file_of(s, plan, x->from);
        if (!file)
            continue;
        const size_t size = (size_t)(x->to - x->from);
        s->part[s->n++] =
            (stream_part){.at = x->from, .size = size, .file = file, .kind = x->kind, .place = -1};
        needs->each += x->kind != PART_CHOSEN ? size : 0;
        needs->chosen += x->kind == PART_CHOSEN ? size : 0;
    }
    s->size = needs->each + needs->chosen;
}

/* Gives the parts that each run reads their places, in the order of the first readers. */
static void place_parts(stream *s, const schedule *plan) {
    for (size_t k = 0; k < plan->reads.n; k++) {
        const ggl_tensor *t = plan->reads.at[k];
        const char *at = t->data, *end = at + t->size;
        if (is_known(&plan->reads, k) || !stays_in_file(plan, t))
            continue;
        for (int i = find(s, at); i < s->n && s->part[i].at < end; i++) {
            stream_part *p = &s->part[i];
            if (p->kind == PART_CHOSEN || p->place >= 0)
                continue;
            p->place = s->n_order;
            s->order[s->n_order++] = i;
        }
    }
}

/* Chooses which of the parts in order stay. False: out of memory. */
static bool keep_parts(stream *s) {
    size_t *size = ggl_calloc((size_t)s->n_order + 1, sizeof *size);
    bool *is_kept = ggl_calloc((size_t)s->n_order + 1, sizeof *is_kept);
    const bool ok = size && is_kept;
    for (int k = 0; k < s->n_order && ok; k++)
        size[k] = s->part[s->order[k]].size;
    if (ok)
        ggl_stream_keep(&s->plan, size, (size_t)s->n_order, is_kept);
    for (int k = 0; k < s->n_order && ok; k++)
        if (is_kept[k] || s->part[s->order[k]].kind == PART_KEPT) {
            s->part[s->order[k]].kind = PART_KEPT;
            s->kept_size += size[k];
        }
    ggl_free(size);
    ggl_free(is_kept);
    return ok;
}

static bool make_lists(stream *s, const schedule *plan, size_t n) {
    const size_t n_dev = (size_t)plan->n_dev;
    s->part = ggl_calloc(n + 1, sizeof *s->part);
    s->order = ggl_calloc(n + 1, sizeof *s->order);
    s->wanted = ggl_calloc(n + 1, sizeof *s->wanted);
    s->n_files = (size_t)plan->params.n_host;
    s->file = ggl_calloc(s->n_files + 1, sizeof(os_parts *));
    s->reader = ggl_calloc(n_dev, sizeof *s->reader);
    bool ok = s->part && s->order && s->wanted && s->file && s->reader;
    s->n_readers = s->reader ? plan->n_dev : 0;
    for (int k = 0; k < s->n_readers; k++) {
        stream_reader *r = &s->reader[k];
        r->s = s;
        r->step = UINT64_MAX;
        r->now = ggl_calloc(n + 1, sizeof *r->now);
        r->before = ggl_calloc(n + 1, sizeof *r->before);
        ok = ok && r->now && r->before;
    }
    return ok;
}

static bool prepare(stream *s, const schedule *plan, size_t memory) {
    const size_t cut = (memory / MOST_KEPT / CUT + 1) * CUT;
    stream_needs needs = {.memory = memory, .largest = needs_of(plan).largest};
    spans l = {0};
    s->page = ggl_os_page_size();
    s->stack = ggl_calloc(plan->stacks.n + 1, sizeof *s->stack);
    bool ok = s->stack && list_spans(s, plan, cut, &l) && make_lists(s, plan, l.n);
    if (ok) {
        make_parts(s, plan, &l, &needs);
        place_parts(s, plan);
        s->plan = ggl_stream_plan(&needs);
        ok = keep_parts(s);
    }
    ggl_free(l.at);
    return ok;
}

bool ggl_stream_start(stream *s, const schedule *plan) {
    size_t close;
    const size_t memory = memory_for(plan, &close);
    const stream_needs needs = needs_of(plan);
    if (memory == 0 || needs.each + needs.chosen <= close)
        return true;
    if (!prepare(s, plan, memory)) {
        ggl_stream_stop(s);
        return false;
    }
    for (size_t i = 0; i < s->n_stacks; i++)
        ggl_os_parts_alone(s->stack[i].at, s->stack[i].size, true);
    s->spent = -1;
    ggl_os_mutex_init(&s->lock);
    ggl_os_cond_init(&s->work);
    ggl_os_cond_init(&s->done);
    s->has_lock = true;
    const bool lacks =
        s->plan.kept + s->plan.window + s->plan.chosen > 0; /* files may be claimed already */
    while (lacks && s->n_threads < STREAM_THREADS &&
           ggl_os_thread_start(&s->thread[s->n_threads], fill_all, s, 0))
        s->n_threads++;
    if (s->n_threads == 0)
        ggl_stream_stop(s);
    return true;
}

void ggl_stream_stop(stream *s) {
    if (s->has_lock) {
        ggl_os_mutex_lock(&s->lock);
        s->stops = true;
        ggl_os_cond_broadcast(&s->work);
        ggl_os_mutex_unlock(&s->lock);
        for (int i = 0; i < s->n_threads; i++)
            ggl_os_thread_join(s->thread[i]);
        ggl_os_cond_destroy(&s->work);
        ggl_os_cond_destroy(&s->done);
        ggl_os_mutex_destroy(&s->lock);
    }
    for (int i = 0; i < s->n; i++)
        if (s->part[i].state == PART_READY || s->part[i].state == PART_SPENT)
            ggl_os_part_empty(s->part[i].file, s->part[i].at, s->part[i].size);
    for (size_t i = 0; i < s->n_stacks; i++)
        ggl_os_parts_alone(s->stack[i].at, s->stack[i].size, false);
    for (size_t i = 0; i < s->n_files && s->file; i++)
        if (s->file[i])
            ggl_os_parts_release(s->file[i]);
    for (int k = 0; k < s->n_readers; k++) {
        ggl_free(s->reader[k].now);
        ggl_free(s->reader[k].before);
    }
    ggl_free(s->reader);
    ggl_free(s->file);
    ggl_free(s->stack);
    ggl_free(s->wanted);
    ggl_free(s->order);
    ggl_free(s->part);
    *s = (stream){0};
}

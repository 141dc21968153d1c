/* Labels after a sequence: a tree of their tokens, and the runs of its nodes. */
#include "llm/internal/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/graph.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/math.h"
#include "llm/internal/logprobs.h"

enum { ROOT = -1 };

/* A token after those of its parents. Nodes stand in the order of a walk that goes to the first child first. */
typedef struct node {
    int32_t token, depth;              /* depth: 1 after the root */
    int32_t parent, next, first_child; /* next: of the same parent; ROOT: there is none */
    bool is_last;                      /* of a label */
    bool is_run;                       /* what comes after it is wanted */
    int32_t wave, place;               /* the last wave that it was in, and its place there */
    double logprob;                    /* after its parent */
    double end;                        /* of the end after it */
} node;

struct llm_labels {
    size_t n, n_nodes, n_run;
    node *node;            /* [n_nodes] */
    int32_t *last;         /* [n]: the last node of each label */
    int32_t *tip;          /* [n_tips]: nodes that run and have no child that does */
    int32_t *row;          /* [n_nodes]: the nodes of a wave, by depth */
    int32_t *token, *slot; /* [n]: a batch */
    bool *want;            /* [n] */
    int32_t *ends;         /* [n_ends]: tokens that end a text */
    size_t n_tips, n_ends;
    int32_t n_vocab, max_depth;
    bool with_end, is_bad; /* is_bad: logits were not finite */
};

/* --- the tree --------------------------------------------------------------------------------- */

typedef struct sorted {
    llm_label label;
    size_t k;
} sorted;

static int by_tokens(const void *a, const void *b) {
    const sorted *x = a, *y = b;
    const size_t n = x->label.n < y->label.n ? x->label.n : y->label.n;
    for (size_t i = 0; i < n; i++)
        if (x->label.id[i] != y->label.id[i])
            return x->label.id[i] < y->label.id[i] ? -1 : 1;
    if (x->label.n != y->label.n)
        return x->label.n < y->label.n ? -1 : 1;
    return (x->k > y->k) - (x->k < y->k);
}

static size_t n_common(const llm_label *a, const llm_label *b) {
    size_t n = 0;
    while (n < a->n && n < b->n && a->id[n] == b->id[n])
        n++;
    return n;
}

static ggl_status check(const llm_label *label, size_t n, int32_t n_vocab, ggl_error *err) {
    if (n == 0)
        return ggl_fail(err, GGL_USAGE, "there are no labels");
    for (size_t k = 0; k < n; k++) {
        if (label[k].n == 0)
            return ggl_fail(err, GGL_USAGE, "label[%zu] has no token", k);
        for (size_t i = 0; i < label[k].n; i++)
            if (label[k].id[i] < 0 || label[k].id[i] >= n_vocab)
                return ggl_fail(err, GGL_USAGE,
                                "label[%zu]: token %zu is %" PRId32 "; the vocabulary has %" PRId32,
                                k, i, label[k].id[i], n_vocab);
    }
    return GGL_OK;
}

/* Makes the nodes of a label that it does not share with the one before it in the order. path: the nodes of that one. */
static void add_label(llm_labels *l, const sorted *s, size_t common, int32_t *path) {
    for (size_t d = common; d < s->label.n; d++) {
        const int32_t at = (int32_t)l->n_nodes++;
        const int32_t parent = d > 0 ? path[d - 1] : ROOT, before = d == common ? path[d] : ROOT;
        l->node[at] = (node){.token = s->label.id[d],
                             .depth = (int32_t)d + 1,
                             .parent = parent,
                             .next = ROOT,
                             .first_child = ROOT,
                             .wave = -1};
        if (before != ROOT)
            l->node[before].next = at;
        else if (parent != ROOT)
            l->node[parent].first_child = at;
        path[d] = at;
    }
    path[s->label.n] = ROOT; /* nothing of the label before follows there */
    l->last[s->k] = path[s->label.n - 1];
    l->node[path[s->label.n - 1]].is_last = true;
}

static ggl_status add_all(llm_labels *l, sorted *s, int32_t *path, ggl_error *err) {
    qsort(s, l->n, sizeof *s, by_tokens);
    path[0] = ROOT;
    for (size_t i = 0; i < l->n; i++) {
        const size_t common = i > 0 ? n_common(&s[i - 1].label, &s[i].label) : 0;
        const bool is_longer = i > 0 && common == s[i - 1].label.n;
        if (is_longer && common == s[i].label.n)
            return ggl_fail(err, GGL_USAGE, "label[%zu] and label[%zu] are the same", s[i - 1].k,
                            s[i].k);
        l->with_end = l->with_end || is_longer;
        add_label(l, &s[i], common, path);
    }
    return GGL_OK;
}

static ggl_status build(llm_labels *l, const llm_label *label, ggl_error *err) {
    size_t most = 0, n = 0;
    for (size_t k = 0; k < l->n; k++) {
        most = label[k].n > most ? label[k].n : most;
        n += label[k].n;
    }
    sorted *s = ggl_calloc(l->n, sizeof *s);
    int32_t *path = ggl_calloc(most + 1, sizeof *path);
    l->node = ggl_calloc(n, sizeof *l->node);
    l->row = ggl_calloc(n, sizeof *l->row);
    l->tip = ggl_calloc(n, sizeof *l->tip);
    l->last = ggl_calloc(l->n, sizeof *l->last);
    l->token = ggl_calloc(l->n, sizeof *l->token);
    l->slot = ggl_calloc(l->n, sizeof *l->slot);
    l->want = ggl_calloc(l->n, sizeof *l->want);
    ggl_status st = GGL_OK;
    if (!s || !path || !l->node || !l->row || !l->tip || !l->last || !l->token || !l->slot ||
        !l->want || n > INT32_MAX)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for %zu labels", l->n);
    for (size_t k = 0; k < l->n && st == GGL_OK; k++) {
        s[k] = (sorted){label[k], k};
        l->want[k] = true;
    }
    if (st == GGL_OK)
        st = add_all(l, s, path, err);
    ggl_free(s);
    ggl_free(path);
    return st;
}

static void find_tips(llm_labels *l) {
    for (size_t i = 0; i < l->n_nodes; i++) {
        node *x = &l->node[i];
        x->is_run = x->first_child != ROOT || (l->with_end && x->is_last);
        l->n_run += x->is_run;
        if (x->is_run && x->depth > l->max_depth)
            l->max_depth = x->depth;
    }
    for (size_t i = 0; i < l->n_nodes; i++) {
        bool is_tip = l->node[i].is_run;
        for (int32_t c = l->node[i].first_child; c != ROOT && is_tip; c = l->node[c].next)
            is_tip = !l->node[c].is_run;
        if (is_tip)
            l->tip[l->n_tips++] = (int32_t)i;
    }
}

static ggl_status find_ends(llm_labels *l, const llm_tokenizer *t, ggl_error *err) {
    const int32_t n = t ? (int32_t)llm_tokenizer_n_vocab(t) : 0;
    size_t cap = 0;
    for (int32_t id = 0; id < n && id < l->n_vocab; id++) {
        if (!llm_tokenizer_is_eog(t, id))
            continue;
        if (!ggl_grow(&l->ends, &cap, l->n_ends + 1, sizeof *l->ends))
            return ggl_fail(err, GGL_NOMEM, "out of memory for labels");
        l->ends[l->n_ends++] = id;
    }
    return l->n_ends > 0 ? GGL_OK
                         : ggl_fail(err, GGL_USAGE,
                                    "the ends of labels count, but no token of the model ends a "
                                    "text");
}

ggl_status llm_labels_new(llm_labels **out, const llm_label *label, size_t n, bool with_end,
                          const llm_tokenizer *t, int32_t n_vocab, ggl_error *err) {
    *out = NULL;
    ggl_status st = check(label, n, n_vocab, err);
    if (st != GGL_OK)
        return st;
    llm_labels *l = ggl_calloc(1, sizeof *l);
    if (!l)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu labels", n);
    *l = (llm_labels){.n = n, .n_vocab = n_vocab, .with_end = with_end};
    st = build(l, label, err);
    if (st == GGL_OK && l->with_end)
        st = find_ends(l, t, err);
    if (st != GGL_OK) {
        llm_labels_free(l);
        return st;
    }
    find_tips(l);
    *out = l;
    return GGL_OK;
}

void llm_labels_free(llm_labels *l) {
    if (!l)
        return;
    ggl_free(l->node);
    ggl_free(l->row);
    ggl_free(l->tip);
    ggl_free(l->last);
    ggl_free(l->token);
    ggl_free(l->slot);
    ggl_free(l->want);
    ggl_free(l->ends);
    ggl_free(l);
}

/* --- logits ----------------------------------------------------------------------------------- */

/* Gives the children of a node their probabilities, and its end. */
static void take_logits(llm_labels *l, int32_t at, const float *logits) {
    const llm_logprobs_base base = llm_logprobs_base_of(logits, l->n_vocab);
    l->is_bad = l->is_bad || !base.is_finite;
    for (int32_t c = at == ROOT ? 0 : l->node[at].first_child; c != ROOT; c = l->node[c].next)
        l->node[c].logprob = llm_logprob_at(&base, logits, l->node[c].token);
    double end = 0;
    for (size_t i = 0; i < l->n_ends; i++)
        end += ggl_exp(llm_logprob_at(&base, logits, l->ends[i]));
    if (at != ROOT)
        l->node[at].end = end > 0 ? ggl_log(end) : -INFINITY;
}

/* The nodes of a batch. */
typedef struct batch {
    llm_labels *l;
    const int32_t *row;
} batch;

static void on_logits(void *ctx, int64_t i, const float *logits) {
    const batch *b = ctx;
    take_logits(b->l, b->row[i], logits);
}

/* --- runs ------------------------------------------------------------------------------------- */

/* Slots in which tips run, one each. */
typedef struct lanes {
    const llm_labels_place *at;
    const int *slot;
    size_t n;
    int64_t n_past; /* tokens before the labels */
    bool is_own;    /* the only one is at->slot */
    void *saved;    /* of that slot, if it cannot be cut; NULL: it can */
    size_t n_saved;
} lanes;

/* How many spare slots have room at the same time: each takes a copy of the last page. */
static size_t n_with_room(const llm_labels *l, const llm_labels_place *at, int64_t n_past) {
    const int64_t n_free = llm_session_n_free(at->session);
    const int64_t n_each = (n_past % GGL_PAGE + l->max_depth + GGL_PAGE - 1) / GGL_PAGE;
    size_t n = at->n_spare < l->n_tips ? at->n_spare : l->n_tips;
    if (n_free < INT64_MAX && (uint64_t)(n_free / GGL_PAGE / n_each) < n)
        n = (size_t)(n_free / GGL_PAGE / n_each);
    return n;
}

static ggl_status lanes_init(lanes *x, const llm_labels *l, const llm_labels_place *at,
                             ggl_error *err) {
    llm_session *s = at->session;
    const int64_t n_past = llm_session_n_past(s, at->slot);
    *x = (lanes){.at = at, .slot = at->spare, .n_past = n_past};
    if (n_past + l->max_depth > llm_session_n_ctx(s))
        return ggl_fail(err, GGL_LIMIT,
                        "%" PRId64 " tokens and a label of which %" PRId32
                        " run exceed the context of %" PRId64,
                        n_past, l->max_depth, llm_session_n_ctx(s));
    x->n = l->n_tips > 0 ? n_with_room(l, at, n_past) : 0;
    if (x->n > 0 || l->n_tips == 0)
        return GGL_OK;
    x->slot = &at->slot;
    x->n = 1;
    x->is_own = true;
    if (!llm_session_has_states(s) && llm_session_cut_limit(s) == INT64_MAX)
        return GGL_OK;
    return llm_session_save(s, at->slot, false, &x->saved, &x->n_saved, err);
}

/* Empties the slots, or lets the own one hold what it did. */
static ggl_status leave(const lanes *x, size_t n, ggl_error *err) {
    llm_session *s = x->at->session;
    if (x->saved)
        return llm_session_restore(s, x->at->slot, x->saved, x->n_saved, err);
    if (x->is_own)
        return llm_session_cut(s, x->at->slot, x->n_past, err);
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < n; i++) {
        const ggl_status cleared = llm_session_clear(s, x->slot[i], st == GGL_OK ? err : NULL);
        st = st == GGL_OK ? cleared : st;
    }
    return st;
}

/* Gives the tips of a wave places, and each node that they need the place of its first tip. l->row gets these nodes, sorted by
 * depth; n_at[d]: where those of depth d + 1 begin. */
static void gather(llm_labels *l, size_t first, size_t n, int32_t wave, size_t *n_at) {
    memset(n_at, 0, ((size_t)l->max_depth + 1) * sizeof *n_at);
    for (size_t i = 0; i < n; i++)
        for (int32_t v = l->tip[first + i]; v != ROOT && l->node[v].wave != wave;
             v = l->node[v].parent) {
            l->node[v].wave = wave;
            l->node[v].place = (int32_t)i;
            n_at[l->node[v].depth]++;
        }
    for (int32_t d = 0; d < l->max_depth; d++)
        n_at[d + 1] += n_at[d];
    for (size_t i = 0; i < n; i++)
        for (int32_t v = l->tip[first + i]; v != ROOT && l->node[v].place == (int32_t)i;
             v = l->node[v].parent)
            l->row[n_at[l->node[v].depth - 1]++] = v;
    for (int32_t d = l->max_depth; d > 0; d--)
        n_at[d] = n_at[d - 1];
    n_at[0] = 0;
}

/* Runs n nodes of one depth. */
static ggl_status run_depth(llm_labels *l, const lanes *x, const int32_t *row, size_t n,
                            ggl_error *err) {
    llm_session *s = x->at->session;
    const llm_labels_place *at = x->at;
    ggl_status st = GGL_OK;
    if (at->is_cancelled && at->is_cancelled(at->ctx))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        const node *v = &l->node[row[i]];
        const int to = x->slot[v->place];
        const int from = v->parent == ROOT ? at->slot : x->slot[l->node[v->parent].place];
        l->token[i] = v->token;
        l->slot[i] = to;
        if (from != to)
            st = llm_session_share(s, to, from, x->n_past + v->depth - 1, err);
    }
    batch b = {l, row};
    return st == GGL_OK ? llm_session_eval(s,
                                           &(llm_batch){.n = (int64_t)n,
                                                        .token = l->token,
                                                        .slot = l->slot,
                                                        .want = l->want,
                                                        .each = on_logits,
                                                        .ctx = &b},
                                           err)
                        : st;
}

static ggl_status run_wave(llm_labels *l, const lanes *x, size_t first, size_t n, int32_t wave,
                           size_t *n_at, ggl_error *err) {
    ggl_status st = GGL_OK;
    gather(l, first, n, wave, n_at);
    for (int32_t d = 0; d < l->max_depth && st == GGL_OK; d++)
        if (n_at[d + 1] > n_at[d])
            st = run_depth(l, x, l->row + n_at[d], n_at[d + 1] - n_at[d], err);
    const ggl_status left = leave(x, n, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? left : st;
}

void llm_labels_begin(llm_labels *l, const float *logits) {
    l->is_bad = false;
    take_logits(l, ROOT, logits);
}

ggl_status llm_labels_run(llm_labels *l, const llm_labels_place *at, ggl_error *err) {
    lanes x;
    if (at->logits)
        llm_labels_begin(l, at->logits);
    for (size_t i = 0; i < l->n_nodes; i++)
        l->node[i].wave = -1;
    ggl_status st = lanes_init(&x, l, at, err);
    size_t *n_at = ggl_calloc((size_t)l->max_depth + 1, sizeof *n_at);
    if (st == GGL_OK && !n_at)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for labels");
    int32_t wave = 0;
    for (size_t i = 0; i < l->n_tips && st == GGL_OK; i += x.n) {
        const size_t n = l->n_tips - i < x.n ? l->n_tips - i : x.n;
        st = run_wave(l, &x, i, n, wave++, n_at, err);
    }
    ggl_free(n_at);
    ggl_free(x.saved);
    return st == GGL_OK && l->is_bad
               ? ggl_fail(err, GGL_FORMAT, "the model's logits are not finite")
               : st;
}

/* --- results ---------------------------------------------------------------------------------- */

bool llm_labels_end(const llm_labels *l) {
    return l->with_end;
}

double llm_labels_logprob(const llm_labels *l, size_t k) {
    double sum = l->with_end ? l->node[l->last[k]].end : 0;
    for (int32_t v = l->last[k]; v != ROOT; v = l->node[v].parent)
        sum += l->node[v].logprob;
    return sum;
}

size_t llm_labels_n(const llm_labels *l, size_t k) {
    return (size_t)l->node[l->last[k]].depth + (l->with_end ? 1 : 0);
}

int64_t llm_labels_depth(const llm_labels *l) {
    return l->max_depth;
}

size_t llm_labels_width(const llm_labels *l) {
    return l->n_tips;
}

size_t llm_labels_n_run(const llm_labels *l) {
    return l->n_run;
}

void llm_labels_shares(const double *logprob, const size_t *n_tokens, size_t n, double *share) {
    double largest = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) {
        share[i] = n_tokens ? logprob[i] / (double)n_tokens[i] : logprob[i];
        largest = share[i] > largest ? share[i] : largest;
    }
    for (size_t i = 0; i < n; i++) {
        share[i] = share[i] == largest ? 1 : ggl_exp(share[i] - largest);
        sum += share[i];
    }
    for (size_t i = 0; i < n; i++)
        share[i] /= sum;
}

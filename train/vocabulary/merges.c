/* Learns byte-pair merges (Sennrich et al. 2016): again and again the most frequent pair of neighbours in the words becomes a
 * token; of equally frequent pairs, that with the lowest ids, the left one first. Every place counts, also in a run: aaa has aa
 * twice. If a token with the spelling of the two is there, the pair becomes that token. A pair does not count if the two are longer than
 * allowed, or spelled like a special token or a token of a byte.
 *
 * Words that differ are stored once, with their counts, as lists of places:
 *
 *     place:    0    1    2   3      4     5
 *               l -- o -- w   l ---- ow -- er      each knows its neighbours, its word's weight, and its pair: it and its right
 *                                                  neighbour
 *
 * A pair has the list of its places (doubly linked, in no order), and its count: the sum of their weights. To join a pair, the
 * places of its list are visited from left to right; each changes three pairs at most. The best pair comes from a heap in which
 * every pair has an entry with at least its count: where a count has fallen since, the entry goes back with what it is now. All places that are
 * joined are gone, so all joins together take n log n steps for n symbols, for any text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/steps.h"
#include "trainer_impl.h"

#define NOWHERE UINT32_MAX

/* A symbol of a word. */
typedef struct place {
    int32_t id;           /* its token; -1: it was joined to its left neighbour */
    uint32_t left, right; /* neighbours; NOWHERE at the ends of the word */
    uint32_t word;
    uint32_t pair;          /* that of it and its right neighbour; NOWHERE: none that counts */
    uint32_t before, after; /* in the list of that pair */
} place;

/* Two tokens side by side. They are the key. */
typedef struct pair {
    int32_t left, right;
    int64_t count;
    uint32_t first;  /* of its places */
    uint32_t raised; /* the round of the last merge that raised its count */
    bool never;      /* it must not become a token */
} pair;

/* An entry of the heap; the count may be more than the pair's. */
typedef struct candidate {
    int64_t count;
    int32_t left, right;
    uint32_t pair;
} candidate;

typedef struct merging {
    llm_tokenizer_trainer *t;
    const int64_t *weight;
    place *at;
    size_t n_at;
    pair *pairs;
    size_t n_pairs, cap_pairs;
    ggl_index by_ids;
    candidate *heap;
    size_t n_heap, cap_heap;
    uint32_t *raised; /* pairs whose count the current merge has raised */
    size_t n_raised, cap_raised;
    uint32_t *visit; /* the places of the pair that is joined */
    size_t cap_visit;
    uint32_t round;
    char *joined; /* the spelling of two tokens */
    size_t cap_joined;
} merging;

/* --- the heap --------------------------------------------------------------------------------- */

static bool is_better(const candidate *a, const candidate *b) {
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static bool push(merging *m, uint32_t i) {
    const pair *p = &m->pairs[i];
    const candidate c = {p->count, p->left, p->right, i};
    if (m->n_heap == m->cap_heap &&
        !ggl_grow(&m->heap, &m->cap_heap, m->n_heap + 1, sizeof *m->heap))
        return false;
    size_t at = m->n_heap++;
    for (; at > 0 && is_better(&c, &m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = c;
    return true;
}

static candidate pop(merging *m) {
    const candidate best = m->heap[0], last = m->heap[--m->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < m->n_heap; at = child) {
        if (child + 1 < m->n_heap && is_better(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!is_better(&m->heap[child], &last))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = last;
    return best;
}

/* --- pairs ------------------------------------------------------------------------------------ */

/* Returns the pair of two tokens, a new one if need be; NOWHERE: out of memory. */
static uint32_t find_pair(merging *m, int32_t left, int32_t right) {
    const int32_t key[2] = {left, right};
    const size_t known =
        ggl_index_find(&m->by_ids, m->pairs, (ggl_str){(const char *)key, sizeof key});
    if (known != SIZE_MAX)
        return (uint32_t)known;
    if (!ggl_grow(&m->pairs, &m->cap_pairs, m->n_pairs + 1, sizeof *m->pairs) ||
        ggl_index_reserve(&m->by_ids, m->pairs, m->n_pairs + 1, NULL) != GGL_OK)
        return NOWHERE;
    const train_token *token = m->t->token;
    m->pairs[m->n_pairs] =
        (pair){.left = left,
               .right = right,
               .first = NOWHERE,
               .never = (uint64_t)token[left].n + token[right].n > (uint64_t)m->t->p.max_length};
    (void)ggl_index_put(&m->by_ids, m->pairs, m->n_pairs);
    return (uint32_t)m->n_pairs++;
}

/* Counts the pair of a place and its right neighbour, if it has one. False: out of memory. */
static bool add_place(merging *m, uint32_t i) {
    place *p = &m->at[i];
    p->pair = NOWHERE;
    if (p->right == NOWHERE)
        return true;
    const uint32_t k = find_pair(m, p->id, m->at[p->right].id);
    if (k == NOWHERE)
        return false;
    pair *x = &m->pairs[k];
    if (x->never)
        return true;
    p->pair = k;
    p->before = NOWHERE;
    p->after = x->first;
    if (x->first != NOWHERE)
        m->at[x->first].before = i;
    x->first = i;
    x->count += m->weight[p->word];
    if (x->raised == m->round)
        return true;
    x->raised = m->round;
    if (!ggl_grow(&m->raised, &m->cap_raised, m->n_raised + 1, sizeof *m->raised))
        return false;
    m->raised[m->n_raised++] = k;
    return true;
}

/* Takes a place from the list of its pair. */
static void remove_place(merging *m, uint32_t i) {
    const place *p = &m->at[i];
    if (p->pair == NOWHERE)
        return;
    pair *x = &m->pairs[p->pair];
    x->count -= m->weight[p->word];
    if (p->before == NOWHERE)
        x->first = p->after;
    else
        m->at[p->before].after = p->after;
    if (p->after != NOWHERE)
        m->at[p->after].before = p->before;
    m->at[i].pair = NOWHERE;
}

/* Puts the pairs whose counts have risen into the heap. */
static bool push_raised(merging *m) {
    bool ok = true;
    for (size_t i = 0; i < m->n_raised && ok; i++)
        ok = m->pairs[m->raised[i]].count == 0 || push(m, m->raised[i]);
    m->n_raised = 0;
    return ok;
}

/* --- merges ----------------------------------------------------------------------------------- */

static int lower_place(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Joins all places of a pair, from left to right: in aaa the first two. */
static bool join_places(merging *m, uint32_t k, int32_t id) {
    const int32_t left = m->pairs[k].left, right = m->pairs[k].right;
    size_t n = 0;
    for (uint32_t i = m->pairs[k].first; i != NOWHERE; i = m->at[i].after) {
        if (n == m->cap_visit && !ggl_grow(&m->visit, &m->cap_visit, n + 1, sizeof *m->visit))
            return false;
        m->visit[n++] = i;
    }
    qsort(m->visit, n, sizeof *m->visit, lower_place);
    GGL_STEPS(n);
    for (size_t v = 0; v < n; v++) {
        const uint32_t i = m->visit[v];
        place *p = &m->at[i];
        /* it may have been joined with its left neighbour, or that one with it */
        if (p->id != left || p->pair != k)
            continue;
        const uint32_t gone = p->right;
        place *q = &m->at[gone];
        if (q->id != right)
            continue;
        if (p->left != NOWHERE)
            remove_place(m, p->left);
        remove_place(m, i);
        remove_place(m, gone);
        p->id = id;
        p->right = q->right;
        q->id = -1;
        if (p->right != NOWHERE)
            m->at[p->right].left = i;
        if ((p->left != NOWHERE && !add_place(m, p->left)) || !add_place(m, i))
            return false;
    }
    return true;
}

/* Spells the token of a pair in m->joined; returns its bytes, or 0: out of memory. */
static size_t spell(merging *m, const pair *x) {
    const ggl_str a = m->t->token[x->left].s, b = m->t->token[x->right].s;
    if (!ggl_grow(&m->joined, &m->cap_joined, a.n + b.n, 1))
        return 0;
    memcpy(m->joined, a.s, a.n);
    memcpy(m->joined + a.n, b.s, b.n);
    return a.n + b.n;
}

/* Makes the merge of a pair. */
static ggl_status merge_pair(merging *m, uint32_t k, ggl_error *err) {
    llm_tokenizer_trainer *t = m->t;
    const pair x = m->pairs[k];
    const size_t n = spell(m, &x);
    if (n == 0)
        return llm_vocabulary_no_memory(err);
    int32_t id = llm_vocabulary_find_token(t, (ggl_str){m->joined, n});
    if (id >= 0 && t->token[id].n == 0) { /* spelled like a special token, or <0xNN> */
        m->pairs[k].never = true;
        return GGL_OK;
    }
    if (id < 0)
        id = llm_vocabulary_add_token(t,
                                      (train_token){.s = {m->joined, n},
                                                    .score = -(float)t->n_merge,
                                                    .type = TRAINED_NORMAL,
                                                    .n = t->token[x.left].n + t->token[x.right].n});
    if (id < 0 || !ggl_grow(&t->merge, &t->cap_merge, t->n_merge + 1, sizeof *t->merge))
        return llm_vocabulary_no_memory(err);
    t->merge[t->n_merge++] = (train_merge){x.left, x.right, id};
    m->round++;
    return join_places(m, k, id) && push_raised(m) ? GGL_OK : llm_vocabulary_no_memory(err);
}

/* Makes the places of the words, and counts their pairs. */
static ggl_status make_places(merging *m, const train_text *x, ggl_error *err) {
    uint32_t word = 0, n = 0;
    m->at = ggl_calloc(x->n_at + 1, sizeof *m->at);
    bool ok = m->at != NULL;
    for (size_t i = 0; i < x->n_at && ok; i++) {
        if (x->at[i] == 0) {
            word++;
            continue;
        }
        const bool begins = i == 0 || x->at[i - 1] == 0, ends = x->at[i + 1] == 0;
        m->at[n] = (place){.id = x->token[x->at[i] - 1],
                           .left = begins ? NOWHERE : n - 1,
                           .right = ends ? NOWHERE : n + 1,
                           .word = word};
        n++;
    }
    m->n_at = n;
    m->round = 1;
    for (uint32_t i = 0; i < n && ok; i++)
        ok = add_place(m, i);
    return ok && push_raised(m) ? GGL_OK : llm_vocabulary_no_memory(err);
}

static ggl_status merge_all(merging *m, ggl_error *err) {
    llm_tokenizer_trainer *t = m->t;
    const size_t wanted = (size_t)t->p.n_vocab, begin = t->n;
    ggl_status s = GGL_OK;
    while (t->n < wanted && m->n_heap > 0 && s == GGL_OK) {
        const candidate c = pop(m);
        const pair *x = &m->pairs[c.pair];
        GGL_STEPS(1);
        if (x->never || x->count < t->p.min_count) /* if it grows again, it comes again */
            continue;
        if (x->count < c.count)
            s = push(m, c.pair) ? GGL_OK : llm_vocabulary_no_memory(err);
        else
            s = merge_pair(m, c.pair, err);
        if (s == GGL_OK &&
            !llm_vocabulary_go_on(t, "learning merges", t->n - begin, wanted - begin))
            s = llm_vocabulary_cancelled(err);
    }
    for (size_t i = 0; i < m->n_at; i++)
        t->n_tokens += m->at[i].id >= 0 ? (uint64_t)m->weight[m->at[i].word] : 0;
    return s;
}

ggl_status llm_vocabulary_merges(llm_tokenizer_trainer *t, const train_text *x, ggl_error *err) {
    merging m = {.t = t, .weight = x->weight};
    ggl_status s = ggl_index_init(&m.by_ids, 4096, sizeof *m.pairs, 2 * sizeof(int32_t), err);
    if (s == GGL_OK)
        s = make_places(&m, x, err);
    if (s == GGL_OK)
        s = merge_all(&m, err);
    ggl_free(m.at);
    ggl_free(m.pairs);
    ggl_index_fini(&m.by_ids);
    ggl_free(m.heap);
    ggl_free(m.raised);
    ggl_free(m.visit);
    ggl_free(m.joined);
    return s;
}

/* The pieces with which unigram's training begins.
 *
 * All suffixes of the words are sorted by their first characters, as many as a piece may have. Then the places where the words
 * have a string are neighbours in that order: an interval. The intervals of strings that cannot be made longer without losing a place are
 * found in one pass, with a stack (as the inner nodes of a suffix tree); there are at most twice as many as places. From their
 * intervals the pieces also get the list of places where they begin, so nothing is looked up later. */
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/math.h"
#include "unigram_impl.h"

void llm_unigram_fini(unigram_pieces *u) {
    ggl_free(u->piece);
    ggl_free(u->first);
    ggl_free(u->begins);
    ggl_free(u->word_at);
    *u = (unigram_pieces){0};
}

void llm_unigram_keep(unigram_pieces *u, const uint32_t *number, size_t n) {
    size_t used = 0, begin = 0;
    for (size_t i = 0; i < u->n; i++)
        if (number[i] != UINT32_MAX)
            u->piece[number[i]] = u->piece[i];
    u->n = n;
    for (size_t i = 0; i < u->x->n_at; i++) {
        const size_t end = u->first[i + 1];
        for (size_t k = begin; k < end; k++)
            if (number[u->begins[k]] != UINT32_MAX)
                u->begins[used++] = number[u->begins[k]];
        begin = end;
        u->first[i + 1] = used;
    }
}

/* --- sorting ---------------------------------------------------------------------------------- */

typedef struct sorting {
    const uint32_t *at; /* the words */
    uint32_t longest;
    uint64_t random;
} sorting;

static uint32_t next_random(sorting *s, size_t n) {
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (uint32_t)(s->random % n);
}

static uint32_t middle(uint32_t a, uint32_t b, uint32_t c) {
    return a < b ? (b < c ? b : a < c ? c : a) : a < c ? a : b < c ? c : b;
}

/* Compares two suffixes from character `depth` on. */
static bool is_less(const sorting *s, uint32_t a, uint32_t b, uint32_t depth) {
    for (; depth < s->longest; depth++) {
        const uint32_t x = s->at[a + depth], y = s->at[b + depth];
        if (x != y)
            return x < y;
        if (x == 0)
            return false;
    }
    return false;
}

static void swap(uint32_t *a, uint32_t *b) {
    const uint32_t t = *a;
    *a = *b;
    *b = t;
}

/* Sorts suffixes that have their first `depth` characters in common (Bentley and Sedgewick's multikey quicksort). */
static void sort(sorting *s, uint32_t *v, size_t n, uint32_t depth) {
    while (n > 12 && depth < s->longest) {
        const uint32_t pivot =
            middle(s->at[v[next_random(s, n)] + depth], s->at[v[next_random(s, n)] + depth],
                   s->at[v[next_random(s, n)] + depth]);
        size_t low = 0, high = n; /* v[0..low) are less, v[high..n) greater */
        for (size_t i = 0; i < high;) {
            const uint32_t c = s->at[v[i] + depth];
            if (c < pivot)
                swap(&v[i++], &v[low++]);
            else if (c > pivot)
                swap(&v[i], &v[--high]);
            else
                i++;
        }
        if (pivot != 0) /* else these suffixes end here */
            sort(s, v + low, high - low, depth + 1);
        if (low < n - high) { /* the longer part in this loop */
            sort(s, v, low, depth);
            v += high;
            n -= high;
        } else {
            sort(s, v + high, n - high, depth);
            n = low;
        }
    }
    for (size_t i = 1; i < n && depth < s->longest; i++)
        for (size_t k = i; k > 0 && is_less(s, v[k], v[k - 1], depth); k--)
            swap(&v[k], &v[k - 1]);
}

/* --- strings ---------------------------------------------------------------------------------- */

/* A string of n characters, which the suffixes [low, high) of the order begin with. */
typedef struct candidate {
    double score; /* its characters times how often the texts have it */
    uint32_t low, high, n;
} candidate;

typedef struct seeding {
    const llm_tokenizer_trainer *t;
    const train_text *x;
    uint32_t longest;
    uint32_t *order; /* [n] places of the words, sorted */
    size_t n;
    uint32_t *word; /* [x->n_at]: of each place */
    candidate *c;   /* [cap]; those kept so far */
    size_t n_c, cap;
    char *spelled; /* a piece */
} seeding;

static int better(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n);
}

/* Keeps the n_seed best candidates. */
static void keep_best(seeding *s) {
    const size_t most = (size_t)s->t->p.n_seed;
    qsort(s->c, s->n_c, sizeof *s->c, better);
    s->n_c = s->n_c < most ? s->n_c : most;
}

/* True if the token has the spelling of a special token or of a byte. */
static bool is_taken(const seeding *s, uint32_t place, uint32_t n) {
    size_t size = 0;
    for (uint32_t i = 0; i < n; i++)
        size += llm_vocabulary_spell(s->x->code[s->x->at[place + i] - 1], s->spelled + size);
    return llm_vocabulary_find_token(s->t, (ggl_str){s->spelled, size}) >= 0;
}

static void add_candidate(seeding *s, uint32_t n, uint32_t low, uint32_t high, int64_t weight) {
    if (n < 2 || weight < s->t->p.min_count || is_taken(s, s->order[low], n))
        return;
    if (s->n_c == s->cap)
        keep_best(s);
    s->c[s->n_c++] = (candidate){(double)n * (double)weight, low, high, n};
}

/* Returns how many characters two suffixes have in common, at most `longest`. */
static uint32_t common(const seeding *s, uint32_t a, uint32_t b) {
    uint32_t n = 0;
    while (n < s->longest && s->x->at[a + n] == s->x->at[b + n] && s->x->at[a + n] != 0)
        n++;
    return n;
}

/* A string whose interval is not complete yet. */
typedef struct open_string {
    uint32_t n, low;
    int64_t weight;
} open_string;

/* Finds the strings. Each open one begins with the one below it on the stack. */
static void find_strings(seeding *s) {
    open_string stack[2 * 64 + 2]; /* their lengths differ */
    size_t n = 0;
    for (size_t i = 0; i <= s->n; i++) {
        const uint32_t both = i > 0 && i < s->n ? common(s, s->order[i - 1], s->order[i]) : 0;
        uint32_t low = (uint32_t)i;
        int64_t weight = 0;
        while (n > 0 && stack[n - 1].n > both) {
            const open_string *top = &stack[--n];
            weight += top->weight;
            low = top->low;
            add_candidate(s, top->n, low, (uint32_t)i, weight);
        }
        if (n > 0 && stack[n - 1].n == both)
            stack[n - 1].weight += weight;
        else if (both > 0)
            stack[n++] = (open_string){both, low, weight};
        if (i == s->n)
            break;
        const uint32_t place = s->order[i], all = common(s, place, place);
        if (n > 0 && stack[n - 1].n == all)
            stack[n - 1].weight += s->x->weight[s->word[place]];
        else
            stack[n++] = (open_string){all, (uint32_t)i, s->x->weight[s->word[place]]};
    }
    keep_best(s);
}

/* --- the pieces ------------------------------------------------------------------------------- */

static int shorter(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

/* Sets how many pieces begin at each place, or with `begins` which. `first` has the next free entry of each place. */
static void list_pieces(const seeding *s, size_t *first, uint32_t *begins) {
    for (size_t i = 0; i < s->x->n_at; i++)
        if (s->x->at[i] != 0) {
            if (begins)
                begins[first[i]] = s->x->at[i] - 1;
            first[i]++;
        }
    for (size_t k = 0; k < s->n_c; k++)
        for (uint32_t i = s->c[k].low; i < s->c[k].high; i++) {
            const uint32_t place = s->order[i];
            if (begins)
                begins[first[place]] = (uint32_t)(s->x->n_symbols + k);
            first[place]++;
        }
}

/* Turns numbers into their sums up to each one; returns the sum of all. */
static size_t add_up(size_t *first, size_t n) {
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t here = first[i];
        first[i] = sum;
        sum += here;
    }
    return sum;
}

static ggl_status make_lists(const seeding *s, unigram_pieces *u) {
    const size_t n_at = s->x->n_at;
    u->first = ggl_calloc(n_at + 2, sizeof *u->first);
    if (!u->first)
        return GGL_NOMEM;
    list_pieces(s, u->first + 1, NULL);
    const size_t n = add_up(u->first + 1, n_at);
    u->begins = ggl_calloc(n + 1, sizeof *u->begins);
    if (!u->begins)
        return GGL_NOMEM;
    list_pieces(s, u->first + 1, u->begins); /* now first[i + 1] is the end of place i, */
    return GGL_OK;                           /* which is the beginning of place i + 1 */
}

static ggl_status make_pieces(seeding *s, unigram_pieces *u) {
    const train_text *x = s->x;
    double sum = 0;
    u->n = x->n_symbols + s->n_c;
    u->piece = ggl_calloc(u->n + 1, sizeof *u->piece);
    if (!u->piece)
        return GGL_NOMEM;
    qsort(s->c, s->n_c, sizeof *s->c, shorter);
    for (size_t i = 0; i < x->n_symbols; i++)
        u->piece[i] = (unigram_piece){.n = 1, .p = x->count[i] > 0 ? (double)x->count[i] : 0.5};
    for (size_t i = x->n_at; i-- > 0;)
        if (x->at[i] != 0)
            u->piece[x->at[i] - 1].at = (uint32_t)i;
    for (size_t k = 0; k < s->n_c; k++)
        u->piece[x->n_symbols + k] =
            (unigram_piece){.at = s->order[s->c[k].low], .n = s->c[k].n, .p = s->c[k].score};
    for (size_t i = 0; i < u->n; i++)
        sum += u->piece[i].p;
    for (size_t i = 0; i < u->n; i++) {
        u->piece[i].p /= sum;
        u->piece[i].score = ggl_log(u->piece[i].p);
    }
    return make_lists(s, u);
}

/* Finds the words of all places, and the places of all words. */
static void find_words(seeding *s, unigram_pieces *u) {
    uint32_t word = 0;
    u->word_at[0] = 0;
    for (size_t i = 0; i < s->x->n_at; i++) {
        s->word[i] = word;
        if (s->x->at[i] != 0)
            s->order[s->n++] = (uint32_t)i;
        else
            u->word_at[++word] = (uint32_t)i + 1;
    }
}

ggl_status llm_unigram_seed(const llm_tokenizer_trainer *t, const train_text *x, unigram_pieces *u,
                            ggl_error *err) {
    seeding s = {.t = t, .x = x, .longest = (uint32_t)t->p.max_length};
    *u = (unigram_pieces){.x = x, .longest = s.longest};
    s.cap = 2 * (size_t)t->p.n_seed;
    s.cap = s.cap < 2 * x->n_at + 1 ? s.cap : 2 * x->n_at + 1;
    s.cap = s.cap > (size_t)t->p.n_seed ? s.cap : (size_t)t->p.n_seed + 1;
    s.order = ggl_calloc(x->n_at + 1, sizeof *s.order);
    s.word = ggl_calloc(x->n_at + 1, sizeof *s.word);
    s.c = ggl_calloc(s.cap, sizeof *s.c);
    s.spelled = ggl_calloc((size_t)s.longest + 1, 4);
    u->word_at = ggl_calloc(x->n_words + 1, sizeof *u->word_at);
    ggl_status st = s.order && s.word && s.c && s.spelled && u->word_at ? GGL_OK : GGL_NOMEM;
    if (st == GGL_OK) {
        sorting by = {x->at, s.longest, 0x9e3779b97f4a7c15u};
        find_words(&s, u);
        sort(&by, s.order, s.n, 0);
        find_strings(&s);
        st = make_pieces(&s, u);
    }
    ggl_free(s.order);
    ggl_free(s.word);
    ggl_free(s.c);
    ggl_free(s.spelled);
    return st == GGL_OK ? st : llm_vocabulary_no_memory(err);
}

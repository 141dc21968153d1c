/* The size follows from two steps, both of which must choose as zlib does (RFC 1950, RFC 1951; deflate.c and trees.c of zlib 1.2 and 1.3): which
 * matches are taken, and how long the codes are. No compressed byte is written. */
#include "zlib_size.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ggl/internal/alloc.h"

enum { LEAST_MATCH = 3, MOST_MATCH = 258, FAR = 4096 };
enum { GOOD = 8, LAZY = 16, NICE = 128, CHAIN = 128 }; /* of level 6 */
enum { HASH = 1 << 15, BLOCK = 16383 /* symbols */ };
enum { N_LITERAL = 286, N_DISTANCE = 30, N_LENGTH = 19, END_OF_BLOCK = 256 };
enum { MOST_CODES = 2 * N_LITERAL + 1, LEAST_HEAP = 573 };

/* --- codes ------------------------------------------------------------------------------------ */

/* The codes of an alphabet: how often each symbol occurs, and how many bits its code has. */
typedef struct alphabet {
    int n, most_bits;           /* symbols; bits of a code */
    int first_extra;            /* symbols from here on are followed by extra bits */
    const unsigned char *extra; /* [n - first_extra] */
    uint32_t count[MOST_CODES];
    int bits[MOST_CODES], parent[MOST_CODES], depth[MOST_CODES];
    int most;      /* the largest symbol that occurs */
    uint64_t size; /* bits of all symbols with these codes */
} alphabet;

typedef struct heap {
    int at[LEAST_HEAP + 1];
    int n,
        top; /* at[1 .. n] is the heap; at[top ..] the nodes that were taken off, the last one first */
} heap;

static const unsigned char length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0},
                           distance_extra[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                               6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13},
                           code_extra[] = {2, 3, 7};

static bool is_before(const alphabet *a, int x, int y) {
    return a->count[x] < a->count[y] || (a->count[x] == a->count[y] && a->depth[x] <= a->depth[y]);
}

static void sink(const alphabet *a, heap *h, int k) {
    const int x = h->at[k];
    for (int j = 2 * k; j <= h->n; j *= 2) {
        j += j < h->n && is_before(a, h->at[j + 1], h->at[j]);
        if (is_before(a, x, h->at[j]))
            break;
        h->at[k] = h->at[j];
        k = j;
    }
    h->at[k] = x;
}

/* Puts the symbols that occur on the heap, and others, so that there are two. */
static void fill_heap(alphabet *a, heap *h) {
    a->most = -1;
    *h = (heap){.top = LEAST_HEAP};
    for (int k = 0; k < a->n; k++) {
        a->bits[k] = a->depth[k] = 0;
        if (a->count[k] > 0)
            h->at[++h->n] = a->most = k;
    }
    while (h->n < 2) {
        const int x = a->most < 2 ? ++a->most : 0;
        h->at[++h->n] = x;
        a->count[x] = 1;
        a->size--;
    }
    for (int k = h->n / 2; k >= 1; k--)
        sink(a, h, k);
}

/* Makes codes shorter that are longer than most_bits, as zlib does: shortest first, which costs least. */
static void shorten(alphabet *a, const heap *h, int by_bits[17], int overflow) {
    int at = LEAST_HEAP;
    for (; overflow > 0; overflow -= 2) {
        int bits = a->most_bits - 1;
        while (by_bits[bits] == 0)
            bits--;
        by_bits[bits]--;
        by_bits[bits + 1] += 2;
        by_bits[a->most_bits]--;
    }
    for (int bits = a->most_bits; bits > 0; bits--)
        for (int n = by_bits[bits]; n > 0;) {
            const int x = h->at[--at];
            if (x > a->most)
                continue;
            a->size += (uint64_t)((int64_t)(bits - a->bits[x]) * (int64_t)a->count[x]);
            a->bits[x] = bits;
            n--;
        }
}

static void find_bits(alphabet *a, const heap *h) {
    int by_bits[17] = {0}, overflow = 0;
    a->bits[h->at[h->top]] = 0;
    for (int k = h->top + 1; k < LEAST_HEAP; k++) {
        const int x = h->at[k], bits = a->bits[a->parent[x]] + 1;
        overflow += bits > a->most_bits;
        a->bits[x] = bits < a->most_bits ? bits : a->most_bits;
        if (x > a->most)
            continue;
        by_bits[a->bits[x]]++;
        const int extra = x >= a->first_extra ? a->extra[x - a->first_extra] : 0;
        a->size += (uint64_t)a->count[x] * (uint64_t)(a->bits[x] + extra);
    }
    if (overflow > 0)
        shorten(a, h, by_bits, overflow);
}

/* Finds the lengths of Huffman's codes, and adds what all symbols take to a->size. */
static void make_codes(alphabet *a) {
    heap h;
    int next = a->n;
    fill_heap(a, &h);
    while (h.n >= 2) {
        const int x = h.at[1];
        h.at[1] = h.at[h.n--];
        sink(a, &h, 1);
        const int y = h.at[1];
        h.at[--h.top] = x;
        h.at[--h.top] = y;
        a->count[next] = a->count[x] + a->count[y];
        a->depth[next] = (a->depth[x] > a->depth[y] ? a->depth[x] : a->depth[y]) + 1;
        a->parent[x] = a->parent[y] = next;
        h.at[1] = next++;
        sink(a, &h, 1);
    }
    h.at[--h.top] = h.at[1];
    find_bits(a, &h);
}

/* Counts the symbols by which the lengths of codes are written: 16, 17 and 18 repeat. */
static void count_lengths(alphabet *to, const alphabet *of) {
    int last = -1, next = of->bits[0], count = 0;
    int most = next == 0 ? 138 : 7, least = next == 0 ? 3 : 4;
    for (int k = 0; k <= of->most; k++) {
        const int bits = next;
        next = k < of->most ? of->bits[k + 1] : -1;
        if (++count < most && bits == next)
            continue;
        if (count < least)
            to->count[bits] += (uint32_t)count;
        else if (bits != 0)
            to->count[bits] += bits != last, to->count[16]++;
        else
            to->count[count <= 10 ? 17 : 18]++;
        count = 0;
        last = bits;
        most = next == 0 ? 138 : bits == next ? 6 : 7;
        least = next == 0 || bits == next ? 3 : 4;
    }
}

/* --- blocks ----------------------------------------------------------------------------------- */

typedef struct packer {
    const unsigned char *s; /* [n], and zeros */
    int n;
    uint16_t *head;   /* [HASH]: the last place with the hash; 0: none, also for place 0 */
    uint16_t *before; /* [n]: the place before with the same hash */
    alphabet literal, distance;
    uint64_t fixed; /* bits of the block with the codes of the format itself */
    int n_symbols;  /* of the block */
    int block;      /* its first byte */
    uint64_t bits;  /* of the blocks before */
} packer;

static int fixed_bits(int symbol) {
    return symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
}

static void begin_block(packer *p, int at) {
    p->literal =
        (alphabet){.n = N_LITERAL, .most_bits = 15, .first_extra = 257, .extra = length_extra};
    p->distance = (alphabet){.n = N_DISTANCE, .most_bits = 15, .extra = distance_extra};
    p->literal.count[END_OF_BLOCK] = 1;
    p->fixed = (uint64_t)fixed_bits(END_OF_BLOCK);
    p->n_symbols = 0;
    p->block = at;
}

/* Adds the block up to byte `end` in the form that is shortest. */
static void end_block(packer *p, int end, bool is_last) {
    static const int order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    alphabet length = {.n = N_LENGTH, .most_bits = 7, .first_extra = 16, .extra = code_extra};
    make_codes(&p->literal);
    make_codes(&p->distance);
    count_lengths(&length, &p->literal);
    count_lengths(&length, &p->distance);
    make_codes(&length);
    int last = N_LENGTH - 1;
    while (last >= 3 && length.bits[order[last]] == 0)
        last--;
    const uint64_t own =
        p->literal.size + p->distance.size + length.size + 3 * (uint64_t)(last + 1) + 14;
    const uint64_t n_own = (own + 3 + 7) >> 3, n_fixed = (p->fixed + 3 + 7) >> 3,
                   n = n_fixed <= n_own ? n_fixed : n_own, n_stored = (uint64_t)(end - p->block);
    if (n_stored + 4 <= n)
        p->bits = ((p->bits + 3 + 7) & ~(uint64_t)7) + 32 + 8 * n_stored;
    else
        p->bits += 3 + (n_fixed == n ? p->fixed : own);
    if (is_last)
        p->bits = (p->bits + 7) & ~(uint64_t)7;
    begin_block(p, end);
}

static int code_of(int value, const unsigned char *extra, int n) {
    int k = 0, first = 0;
    while (k + 1 < n && value >= first + (1 << extra[k]))
        first += 1 << extra[k++];
    return k;
}

/* Returns true if the block is full. */
static bool add_literal(packer *p, int byte) {
    p->literal.count[byte]++;
    p->fixed += (uint64_t)fixed_bits(byte);
    return ++p->n_symbols == BLOCK;
}

static bool add_match(packer *p, int length, int distance) {
    const int of_length =
                  length == MOST_MATCH ? 28 : code_of(length - LEAST_MATCH, length_extra, 28),
              of_distance = code_of(distance - 1, distance_extra, N_DISTANCE);
    p->literal.count[257 + of_length]++;
    p->distance.count[of_distance]++;
    p->fixed += (uint64_t)(fixed_bits(257 + of_length) + length_extra[of_length] + 5 +
                           distance_extra[of_distance]);
    return ++p->n_symbols == BLOCK;
}

/* --- matches ---------------------------------------------------------------------------------- */

/* Notes the three bytes at `at`. Returns the place before with the same hash; 0: none. */
static int note_place(packer *p, int at) {
    const unsigned char *s = p->s + at;
    const int hash = (s[0] << 10 ^ s[1] << 5 ^ s[2]) & (HASH - 1);
    const int found = p->head[hash];
    p->before[at] = (uint16_t)found;
    p->head[hash] = (uint16_t)at;
    return found;
}

/* Returns the length of the longest match of the bytes at `at` with those at `from` or before it that is longer than `best`, and sets *start; or
 * `best`. */
static int longest_match(const packer *p, int at, int from, int best, int *start) {
    const unsigned char *s = p->s + at;
    const int left = p->n - at, nice = NICE < left ? NICE : left;
    int chain = best >= GOOD ? CHAIN / 4 : CHAIN;
    for (; from > 0 && chain > 0; from = p->before[from], chain--) {
        const unsigned char *x = p->s + from;
        int n = 0;
        if (x[best] != s[best] || x[best - 1] != s[best - 1])
            continue;
        while (n < MOST_MATCH && x[n] == s[n])
            n++;
        if (n <= best)
            continue;
        *start = from;
        best = n;
        if (n >= nice)
            break;
    }
    return best < left ? best : left;
}

/* A match is taken if none that begins one byte later is longer. */
static void pack(packer *p) {
    int length = LEAST_MATCH - 1, start = 0, at = 0;
    bool has_byte = false; /* the one before is undecided */
    while (at < p->n) {
        const int found = p->n - at >= LEAST_MATCH ? note_place(p, at) : 0, last = length,
                  last_start = start;
        length = LEAST_MATCH - 1;
        if (found > 0 && last < LAZY) {
            length = longest_match(p, at, found, last, &start);
            if (length == LEAST_MATCH && at - start > FAR)
                length = LEAST_MATCH - 1;
        }
        if (last >= LEAST_MATCH && length <= last) {
            const bool is_full = add_match(p, last, at - 1 - last_start);
            const int end = at - 1 + last;
            while (++at < end)
                if (p->n - at >= LEAST_MATCH)
                    (void)note_place(p, at);
            has_byte = false;
            length = LEAST_MATCH - 1;
            if (is_full)
                end_block(p, at, false);
            continue;
        }
        if (has_byte && add_literal(p, p->s[at - 1]))
            end_block(p, at, false);
        has_byte = true;
        at++;
    }
    if (has_byte)
        (void)add_literal(p, p->s[at - 1]);
    end_block(p, p->n, true);
}

ggl_status llm_zlib_size(const void *text, size_t n, size_t *size, ggl_error *err) {
    enum { HEADER = 2, CHECKSUM = 4 };
    n = n < ZLIB_SIZE_MOST ? n : ZLIB_SIZE_MOST;
    *size = 0;
    packer *p = ggl_calloc(1, sizeof *p);
    unsigned char *s = ggl_calloc(n + MOST_MATCH + 1, 1);
    uint16_t *place = ggl_calloc(HASH + n + 1, sizeof *place);
    if (p && s && place) {
        memcpy(s, text ? text : "", n);
        p->s = s;
        p->n = (int)n;
        p->head = place;
        p->before = place + HASH;
        begin_block(p, 0);
        pack(p);
        *size = HEADER + (size_t)(p->bits / 8) + CHECKSUM;
    }
    const bool ok = p && s && place;
    ggl_free(p);
    ggl_free(s);
    ggl_free(place);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a text's size");
}

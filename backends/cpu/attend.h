/* What the files of attention share: op_cache.c stores rows; op_attend.c divides queries into groups
 * and takes each through its pages; attend_panels.c does a page for many queries; attend.c weighs scores, adds
 * values and merges results for both. The arithmetic is
 * that of docs/numeric.md, section 6. */
#ifndef CPU_ATTEND_H
#define CPU_ATTEND_H

#include "cpu.h"
#include "ggl/internal/graph.h"

/* Most queries of a group, a multiple of CPU_TILE. With more of them, decoding a page costs less for
 * each, but what a group needs must fit into the L2 cache. */
enum { CPU_MOST_QUERIES = 96 };

/* For each query the result so far: a partial softmax of max m of the scores, sum l of the weights
 * exp(score - m), and o[e], the sum of weights times values. */
typedef struct partial {
    float m[CPU_MOST_QUERIES], l[CPU_MOST_QUERIES];
    bool any[CPU_MOST_QUERIES]; /* false: the query has seen no position yet; m, l, o are not set */
    float *o; /* [queries][group.step]; of a page only [CPU_QUERIES][group.step] */
} partial;

/* How two partial results of each query become one. */
typedef struct shares {
    float factor[CPU_MOST_QUERIES][2]; /* of both o */
    bool first[CPU_MOST_QUERIES];      /* the second is taken as it is */
} shares;

/* What relative positions add to the scores of a group, all in the thread's scratch. Products with a row are for 64 queries or
 * keys side by side. */
typedef struct cpu_relative {
    int32_t *row;   /* [2 m + 1]: the row of each distance from least .. most; others are not set */
    float *queries; /* [d][64] */
    float *by_query,
        *by_key; /* [rows][64]: rows of rel_k times queries; rows of rel_q times a page of keys */
    int64_t first_row, last_row; /* the rows that by_query has */
} cpu_relative;

/* Queries that read the same head of the store. */
typedef struct group {
    const cpu_task *t;
    int n; /* number of queries */
    int64_t token[CPU_MOST_QUERIES], head[CPU_MOST_QUERIES];
    int64_t pos[CPU_MOST_QUERIES];
    int64_t from[CPU_MOST_QUERIES],
        end[CPU_MOST_QUERIES]; /* a query sees positions from .. end-1 */
    int64_t first, last;       /* the positions that any of them sees */
    int64_t all_from, all_end; /* all of them see positions all_from .. all_end-1 */
    int64_t store_head, e, slot;
    int64_t step;                  /* floats from one o to the next: e, padded to sixteens */
    const int32_t *table;          /* the slot's pages; NULL: the stores are rings */
    const char *keys, *values;     /* the store head's rows in page 0 of both stores */
    size_t keys_step, values_step; /* bytes from a page of these to the next one */
    const float *query[CPU_MOST_QUERIES];
    cpu_qblock *rounded[CPU_QUERIES]; /* scratch: the queries, if keys are quantized */
    float *panel_keys;                /* scratch of many queries, [d][64]: a page of keys */
    float
        *panel_values; /* scratch, [64][step]: a page of values; also of few queries, if the values
                            are part of the keys: [64][e] */
    cpu_relative relative;
    const float *
        chosen; /* of one token: the positions of rows 0 .. last; all above counts these rows. NULL: rows are positions */
    float *panel_rows; /* scratch, [64][d]: chosen keys */
} group;

/* Where rows that lie apart are: of one head of a slot. */
typedef struct cpu_apart {
    const int32_t *table; /* NULL: the store is a ring */
    int64_t slot, head;
} cpu_apart;

/* Returns e, padded to sixteens. */
static inline int64_t cpu_attend_step(int64_t e) {
    return (e + 15) / 16 * 16;
}

/* Returns the rows of head h in page 0 of the store of keys (part 0) or values (part 1). */
static inline char *cpu_attend_rows(const cpu_task *t, int part, int64_t h) {
    const cpu_kept *k = &t->step->attend.kept[part];
    return cpu_store(t, k) + (size_t)h * GGL_PAGE * ggl_row_size(k->store->type, k->store->ne[0]);
}

/* Returns the i32 of token l in v: a position or a slot. */
static inline int64_t cpu_attend_number(const cpu_view *v, int64_t l) {
    return *(const int32_t *)(v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]));
}

/* Returns v[head] at token l: a sink or an ALiBi slope. v may have one element for all heads or
 * tokens. */
static inline float cpu_attend_per_head(const cpu_view *v, int64_t head, int64_t l) {
    return ((const float *)(v->p +
                            (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3])))[v->ne[0] == 1 ? 0 : head];
}

/* Returns the positions of head g of the store that token l reads alone; NULL: it sees all up to its own. */
static inline const float *cpu_attend_chosen(const cpu_task *t, int64_t l, int64_t g) {
    const cpu_view *v = &t->src[ATTEND_CHOSEN];
    const size_t list = v->ne[1] == 1 ? 0 : (size_t)g * v->nb[1];
    return v->p ? (const float *)(v->p + list + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3])) : NULL;
}

/* Returns the rows of head g of the store that token l sees; if they are chosen, by their places among them. */
static inline ggl_visible cpu_attend_visible(const cpu_task *t, int64_t l, int64_t g) {
    const float *chosen = cpu_attend_chosen(t, l, g);
    if (chosen)
        return (ggl_visible){cpu_attend_number(&t->src[ATTEND_SLOT], l), 0,
                             ggl_n_chosen(chosen, t->src[ATTEND_CHOSEN].ne[0])};
    const cpu_view *end = &t->src[ATTEND_END], *within = &t->src[ATTEND_WITHIN];
    const ggl_visible v = ggl_visible_rows(
        cpu_attend_number(&t->src[ATTEND_POS], l), cpu_attend_number(&t->src[ATTEND_SLOT], l),
        t->step->attend.window, end->p ? cpu_attend_number(end, l) : 0);
    const size_t at = within->ne[3] == 1 ? 0 : (size_t)l * within->nb[3];
    return ggl_visible_within(v, within->p ? (const float *)(within->p + at) : NULL);
}

/* Returns the slot's row of the page table; NULL if the stores are rings, which have no table. */
static inline const int32_t *cpu_attend_table(const cpu_view *page, int64_t slot) {
    return page->p ? (const int32_t *)(page->p + (size_t)slot * page->nb[1]) : NULL;
}

/* Returns the number of the page that has the position. */
static inline size_t cpu_attend_page(const group *g, int64_t pos) {
    return (size_t)ggl_store_page(g->t->step->attend.kept[0].store, g->table, g->slot, pos);
}

/* Checks the types of a cache's stores, and sets s->attend.kept. */
ggl_status ggl_cpu_attend_stores(cpu_compiler *c, cpu_step *s, const ggl_tensor *cache,
                                 ggl_error *err);

/* Turns the scores of the page that begins with position `first` into weights, w[q], and sets m, l
 * and any of all queries in `out`. A query sees positions lo[q] .. hi[q]-1 of the page; its weights
 * of all others become 0. Returns true if all queries see the whole page. */
bool ggl_cpu_attend_weigh(const group *g, int64_t first, float (*w)[GGL_PAGE], int *lo, int *hi,
                          partial *out);

/* Adds weights times values of a page, rows of `e` elements, to o[q * e_o] for n queries, over the
 * positions that each sees. `next` is prefetched. */
void ggl_cpu_attend_values(const cpu_kernels *k, int n, float (*w)[GGL_PAGE], const int *lo,
                           const int *hi, const void *page, ggl_type type, int64_t e,
                           const void *next, float *o, int64_t o_step);

/* Merges m, l and any of `part` into those of `total` for queries first .. last - 1. Sets these of
 * *share. */
void ggl_cpu_attend_shares(const group *g, partial *total, const partial *part, int first, int last,
                           shares *share);

/* Merges the rows at o into those of `total` for queries first .. last - 1 that part has. */
void ggl_cpu_attend_merge(const group *g, partial *total, const partial *part, const float *o,
                          int first, int last, const shares *share);

/* attend_panels.c: merges the page that begins with position `first` into `total`, for more than
 * CPU_QUERIES queries and stores that panels serve. page: scratch. */
void ggl_cpu_attend_panels(const group *g, int64_t first, partial *page, partial *total);

/* attend_chosen.c. Decodes the rows of keys (part 0) or values at n positions, at most 64, to rows[64][step]; what is left of a row and the
 * rows left become 0. */
void ggl_cpu_rows_apart(const cpu_task *t, int part, const cpu_apart *from, const int64_t *pos,
                        int n, float *rows, int64_t step);
/* Turns rows[64][d] into columns[d][64]. */
void ggl_cpu_rows_to_columns(const float *rows, int64_t d, float *columns);
/* Sets the group's panels to the chosen rows first .. first + 63. */
void ggl_cpu_attend_chosen(const group *g, int64_t first);

/* attend_relative.c. Returns the floats of scratch that relative positions need; 0: the node has none. */
int64_t ggl_cpu_attend_relative_floats(const cpu_step *s);
/* Divides the scratch at `memory`, and multiplies the group's queries with the rows of all distances that they see. */
void ggl_cpu_attend_relative_begin(group *g, float *memory);
/* Decodes a page of keys to [d][64]. */
void ggl_cpu_attend_decode_keys(const group *g, const char *page);
/* Adds to w[q] what relative positions add to the products of the queries with the page of keys in g->panel_keys, whose first
 * position is `first`. */
void ggl_cpu_attend_relative_add(const group *g, int64_t first, float (*w)[GGL_PAGE]);

static inline bool cpu_attend_is_relative(const group *g) {
    return g->t->src[ATTEND_REL_ROW].p != NULL;
}

static inline bool cpu_attend_is_chosen(const cpu_step *s) {
    return s->src[ATTEND_CHOSEN].region >= 0;
}

/* Returns true if panels serve these stores: their types have no blocks, or rows are decoded one by one. */
static inline bool cpu_attend_has_panels(const cpu_step *s) {
    const cpu_kept *k = s->attend.kept;
    if (cpu_attend_is_chosen(s))
        return true;
    return !ggl_type_get(k[0].store->type)->quantized &&
           (!k[1].store || !ggl_type_get(k[1].store->type)->quantized);
}

#endif

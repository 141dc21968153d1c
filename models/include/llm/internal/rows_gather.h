/* What stages over rows read (docs/architectures.md, "Stages"): the inputs of a stage's graph, by name; what they have for rows of the input or of
 * the stage before; and the way back, for gradients.
 *
 * Threads: any number may use these functions at the same time, each with memory of its own. */
#ifndef LLM_ROWS_GATHER_H
#define LLM_ROWS_GATHER_H

#include "llm/internal/arch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An input of a stage over rows: for its row i, the k rows from i * every + from + first on of llm_arch_result.source[source]; those
 * that do not exist are zeros. */
typedef enum llm_rows_part {
    LLM_ROWS_SELF,   /* the rows themselves, f32 */
    LLM_ROWS_Y,      /* i32: the places of patches in the picture's grid */
    LLM_ROWS_X,      /* i32 */
    LLM_ROWS_CORNER, /* i32 [llm_arch_picture_entries]: those in a table around them, */
    LLM_ROWS_SHARE,  /* f32 [llm_arch_picture_entries]: and the share of each */
    LLM_ROWS_WINDOW, /* f32 [2]: of the stage's rows, the first one in the window of a row, and the one behind the last */
    LLM_ROWS_THERE,  /* f32: 1 for a patch of a picture, 0 for a row of zeros that fills a block */
    LLM_ROWS_LINES, /* i32: how many lines a picture's grid or the plane has; 0 where that is no square */
    LLM_ROWS_COLUMNS, /* the same of its columns */
    LLM_ROWS_NUMBER, /* i32: the number of a row in the whole sound, whose windows run one after the other */
    LLM_ROWS_PLANE /* f32: the rows of the square of k x k lines and columns of the plane around each; zeros beyond its edges */
} llm_rows_part;
typedef struct llm_rows_input {
    const char *name; /* of the graph's input */
    int source;
    int64_t first, k;
    llm_rows_part part; /* what of them; with a place, k is 1 and first 0 */
    int64_t n;          /* numbers for each row of the stage */
    bool of_stage;      /* the source is a stage, whose places are those of its plane */
    int64_t n_window;   /* rows that the source has for a whole window of a sound */
} llm_rows_input;
enum { LLM_MAX_ROWS_INPUTS = LLM_ARCH_MAX_SOURCES * 2 };

/* Lists the inputs of rows that the graph of a stage needs, built with this result: "rows.NAME", "rows.NAME.FIRST.K", "rows.NAME.plane.K" and "rows.NAME.PART". Returns their
 * number; -1: there are more than LLM_MAX_ROWS_INPUTS. The names are the graph's. */
GGL_INTERNAL_API int llm_rows_inputs(const ggl_graph *g, const llm_arch_result *built,
                                     llm_rows_input out[LLM_MAX_ROWS_INPUTS]);

/* Where the rows of a picture are, for what a descriptor reads of them (NAME.y ..): of its n rows, in the order of llm_rows_part; or those of a sound. */
typedef struct llm_row_places {
    const int32_t
        *yx; /* [n][2]; of a row that fills a block, both less than 0: -1 - y and -1 - x */
    const int32_t *
        corner; /* [n][llm_arch_picture_entries], and their shares; NULL: the picture has no table, or (corner) shares of all its entries */
    const float *share;
    int64_t window; /* which one of a sound this is, from 0 */
} llm_row_places;

/* Of the list of a model's inputs and stages: returns how many of the rows that stage k makes of n rows of the input are made of rows that there are, and not only of
 * those that fill the last block or follow a sound. */
static inline int64_t llm_rows_real(const llm_arch_rows_of *of, int k, int64_t n) {
    if (of[k].is_input)
        return n;
    const int64_t below = llm_rows_real(of, of[k].over, n);
    return of[k].block == 0 ? llm_arch_rows_over(&of[k], below)
                            : below / of[k].block * llm_arch_rows_each(&of[k]) +
                                  (below % of[k].block + of[k].every - 1) / of[k].every;
}
/* Returns the input that stage k's rows come from. */
static inline int llm_rows_input_of(const llm_arch_rows_of *of, int k) {
    while (!of[k].is_input)
        k = of[k].over;
    return k;
}
/* Returns how many rows an input of n rows has with those that follow a sound. */
static inline int64_t llm_rows_with_after(const llm_arch_rows_of *of, int64_t n) {
    const int64_t all = n + of->sound.after;
    return all > of->most && of->sound.after > 0 ? (of->most > n ? of->most : n) : all;
}
static inline bool llm_rows_reads_all(const llm_arch_rows_of *of) {
    return of->block > 0 || of->beyond > 0;
}
/* Returns how many it makes; of an input, how many rows whoever runs the stages gives. */
static inline int64_t llm_rows_made(const llm_arch_rows_of *of, int k, int64_t n) {
    const int below = of[k].over;
    if (of[k].is_input)
        return llm_rows_with_after(&of[k], n);
    return llm_arch_rows_over(&of[k], llm_rows_reads_all(&of[k]) ? llm_rows_made(of, below, n)
                                                                 : llm_rows_real(of, below, n));
}
/* Returns how many rows of what it is over it reads. */
static inline int64_t llm_rows_readable(const llm_arch_rows_of *of, int k, int64_t n) {
    return llm_rows_reads_all(&of[k]) ? llm_rows_made(of, of[k].over, n)
                                      : llm_rows_real(of, of[k].over, n);
}

/* Returns the row of what the stage is over, of n, at which its i-th row is, but of one in blocks; negative: none. */
static inline int64_t llm_rows_below(const llm_arch_rows_of *of, int64_t i, int64_t n) {
    if (i >= 0 && of->step > 1) {
        const llm_arch_plane all = llm_arch_plane_of(n);
        const int64_t across = llm_arch_steps(all.nx, of->step);
        return (i / across * all.nx + i % across) * of->step;
    }
    return i < 0 ? i : (i - of->ends) * of->every + of->from;
}

/* Returns how many rows run in the stage for the n that it makes: with those that fill its windows, and those that are asked. */
static inline int64_t llm_rows_run(const llm_arch_rows_of *of, int64_t n) {
    const llm_arch_plane p = llm_arch_plane_of(n);
    const int64_t w = of->windows;
    return of->filled ? llm_arch_steps(p.ny, w) * llm_arch_steps(p.nx, w) * w * w
           : of->asks ? 2 * n
                      : n;
}

/* The order of rows in windows of a picture; all NULL and 0: they are in their own. */
typedef struct llm_rows_windows {
    int64_t *
        order; /* the number of the k-th row in the order of what the stage is over; -1: a row that fills a window */
    float (*window)
        [2]; /* the first row in the window of the k-th one, and the one behind the last, counted in this order */
    int32_t (*yx)[2]; /* of windows that are filled: the line and column of the k-th row */
    size_t cap_order, cap_window, cap_yx;
} llm_rows_windows;
/* Finds it for a stage that makes n rows over `below`; without places, all rows are in one window, but of windows that are filled. GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_rows_find_windows(const llm_arch_rows_of *of,
                                                                const llm_arch_rows_of *below,
                                                                const llm_row_places *places,
                                                                int64_t n, llm_rows_windows *out,
                                                                ggl_error *err);
GGL_INTERNAL_API void llm_rows_windows_fini(llm_rows_windows *w);
/* Returns the number of the stage's k-th row in the order of what it is over. */
static inline int64_t llm_rows_number(const llm_rows_windows *w, int64_t k) {
    return w->order ? w->order[k] : k;
}

/* Returns which of the n rows that the stage makes its k-th row is, of those that run; negative: none. */
static inline int64_t llm_rows_kept(const llm_arch_rows_of *of, const llm_rows_windows *w,
                                    int64_t k, int64_t n) {
    return of->asks ? k - n : llm_rows_number(w, k);
}

/* Rows first .. first + m - 1 of those that run in a stage. */
typedef struct llm_rows_piece {
    const llm_arch_rows_of *of;
    const llm_rows_windows *windows;
    int64_t first, m;
} llm_rows_piece;
/* Copies what the input has for these rows of the stage to `to`, [m][in->n]: of row[n][n_row] of its source, or of their places (NULL: all 0). Whole
 * numbers are i32, in the memory of floats. */
GGL_INTERNAL_API void llm_rows_gather(const llm_rows_piece *p, const llm_rows_input *in,
                                      const llm_row_places *places, const float *row, int64_t n,
                                      int64_t n_row, float *to);
/* The other way: adds the gradient of such an input, d[m][in->n], to that of the rows that it has, drow[n][n_row]. */
GGL_INTERNAL_API void llm_rows_scatter(const llm_rows_piece *p, const llm_rows_input *in,
                                       const float *d, int64_t n, int64_t n_row, float *drow);

#ifdef __cplusplus
}
#endif
#endif

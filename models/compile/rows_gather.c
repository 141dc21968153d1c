#include "llm/internal/rows_gather.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"

/* --- inputs ----------------------------------------------------------------------------------- */

#define PLANE ".plane."

/* Returns the part that the end of an input's name stands for. */
static llm_rows_part part_named(const char *end) {
    static const char *const name[] = {"",        ".y",     ".x",     ".corner",  ".share",
                                       ".window", ".there", ".lines", ".columns", ".t"};
    int k = LLM_ROWS_NUMBER;
    if (strncmp(end, PLANE, sizeof PLANE - 1) == 0)
        return LLM_ROWS_PLANE;
    while (k > 0 && strcmp(name[k], end) != 0)
        k--;
    return (llm_rows_part)k;
}

int llm_rows_inputs(const ggl_graph *g, const llm_arch_result *built,
                    llm_rows_input out[LLM_MAX_ROWS_INPUTS]) {
    int n = 0;
    for (int i = 0; i < ggl_graph_n_inputs(g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(g, i);
        const char *name = t->name + (strncmp(t->name, "stage.", 6) == 0 ? 6 : 0), *end;
        if (!t->needed || strncmp(name, "rows.", 5) != 0)
            continue;
        if (n == LLM_MAX_ROWS_INPUTS)
            return -1;
        llm_rows_input *x = &out[n++];
        *x = (llm_rows_input){.name = t->name, .k = 1, .n = ggl_count(t)};
        name += 5;
        end = name + strcspn(name, ".");
        while (strncmp(built->source[x->source].name, name, (size_t)(end - name)) != 0 ||
               built->source[x->source].name[end - name])
            x->source++;
        x->of_stage = !built->source[x->source].is_input;
        x->n_window =
            llm_rows_real(built->source, x->source,
                          built->source[llm_rows_input_of(built->source, x->source)].most);
        x->part = part_named(end);
        if (*end && x->part == LLM_ROWS_SELF) {
            char *rest;
            x->first = strtoll(end + 1, &rest, 10);
            x->k = strtoll(rest + 1, NULL, 10);
        }
        if (x->part == LLM_ROWS_PLANE)
            x->k = strtoll(end + sizeof PLANE - 1, NULL, 10);
    }
    return n;
}

/* --- windows ---------------------------------------------------------------------------------- */

void llm_rows_windows_fini(llm_rows_windows *w) {
    ggl_free(w->order);
    ggl_free(w->window);
    ggl_free(w->yx);
    *w = (llm_rows_windows){0};
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the windows of a picture");
}

/* Windows that are all whole, of a plane of n rows. */
static ggl_status find_filled(const llm_arch_rows_of *of, int64_t n, llm_rows_windows *out,
                              ggl_error *err) {
    const llm_arch_plane p = llm_arch_plane_of(n);
    const int64_t w = of->windows, across = llm_arch_steps(p.nx, w), n_run = llm_rows_run(of, n);
    if (!ggl_grow(&out->order, &out->cap_order, (size_t)n_run, sizeof *out->order) ||
        !ggl_grow(&out->window, &out->cap_window, (size_t)n_run, sizeof *out->window) ||
        !ggl_grow(&out->yx, &out->cap_yx, (size_t)n_run, sizeof *out->yx))
        return no_memory(err);
    for (int64_t k = 0; k < n_run; k++) {
        const int64_t window = k / (w * w), in = k % (w * w);
        const int64_t y = window / across * w + in / w, x = window % across * w + in % w;
        out->order[k] = y < p.ny && x < p.nx ? y * p.nx + x : -1;
        out->window[k][0] = (float)(window * w * w);
        out->window[k][1] = (float)((window + 1) * w * w);
        out->yx[k][0] = (int32_t)y;
        out->yx[k][1] = (int32_t)x;
    }
    return GGL_OK;
}

ggl_status llm_rows_find_windows(const llm_arch_rows_of *of, const llm_arch_rows_of *below,
                                 const llm_row_places *places, int64_t n, llm_rows_windows *out,
                                 ggl_error *err) {
    if (of->filled)
        return find_filled(of, n, out, err);
    const int32_t *yx = places ? places->yx : NULL;
    const int64_t origin = below->picture.origin;
    int64_t n_across = 0, n_windows = 0, *number = NULL, *begin = NULL;
    if (!ggl_grow(&out->order, &out->cap_order, (size_t)n, sizeof *out->order) ||
        !ggl_grow(&out->window, &out->cap_window, (size_t)n, sizeof *out->window))
        return no_memory(err);
    for (int64_t k = 0; yx && k < n; k++) {
        const int64_t w = (yx[2 * (k * of->every + of->from) + 1] - origin) / of->windows + 1;
        n_across = w > n_across ? w : n_across;
    }
    number = ggl_calloc((size_t)n, sizeof *number);
    for (int64_t k = 0; number && k < n; k++) {
        const int32_t *at = yx ? yx + 2 * (k * of->every + of->from) : NULL;
        number[k] =
            at ? (at[0] - origin) / of->windows * n_across + (at[1] - origin) / of->windows : 0;
        n_windows = number[k] + 1 > n_windows ? number[k] + 1 : n_windows;
    }
    begin = ggl_calloc((size_t)n_windows + 1, sizeof *begin);
    for (int64_t k = 0; number && begin && k < n; k++)
        begin[number[k] + 1]++;
    for (int64_t w = 0; begin && w < n_windows; w++)
        begin[w + 1] += begin[w];
    for (int64_t w = 0; begin && w < n_windows; w++)
        for (int64_t i = begin[w]; i < begin[w + 1]; i++) {
            out->window[i][0] = (float)begin[w];
            out->window[i][1] = (float)begin[w + 1];
        }
    for (int64_t k = 0; number && begin && k < n; k++)
        out->order[begin[number[k]]++] = k;
    const bool done = number && begin;
    ggl_free(number);
    ggl_free(begin);
    return done ? GGL_OK : no_memory(err);
}

/* --- what an input has ------------------------------------------------------------------------ */

enum { NO_ROW = -1 };

/* Returns the row of what the stage is over, of n, that its row k stands for; NO_ROW, or less: none. */
static int64_t row_below(const llm_rows_piece *p, int64_t k, int64_t n) {
    if (p->of->block > 0) {
        const int64_t each = llm_arch_rows_each(p->of);
        return k / each * p->of->block + k % each * p->of->every;
    }
    return p->of->asks && k >= n ? NO_ROW
                                 : llm_rows_below(p->of, llm_rows_number(p->windows, k), n);
}

/* The lines or columns, in the plane of n rows that the stage is over. */
static void gather_in_plane(const llm_rows_piece *p, const llm_rows_input *in, int64_t n,
                            float *to) {
    const llm_arch_plane all = llm_arch_plane_of(n);
    for (int64_t i = p->first; i < p->first + p->m; i++, to++) {
        const int64_t at = row_below(p, i, n) * (all.nx == all.ny);
        const int32_t *yx = p->windows->yx ? p->windows->yx[i] : NULL;
        const int32_t place = yx ? yx[in->part == LLM_ROWS_X]
                              : at <= 0
                                  ? 0
                                  : (int32_t)(in->part == LLM_ROWS_X ? at % all.nx : at / all.nx);
        memcpy(to, &place, sizeof place);
    }
}

/* The line or column of a row's place, which is stored below 0 for a row that fills a block. */
static int32_t own_place(int32_t stored) {
    return stored < 0 ? -1 - stored : stored;
}

/* Copies places of the rows that the stage reads of the input. They are i32 or f32, and moved as they are. */
static void gather_places(const llm_rows_piece *p, const llm_rows_input *in,
                          const llm_row_places *places, int64_t n, float *to) {
    const bool in_table = in->part >= LLM_ROWS_CORNER;
    const void *all = !places                       ? NULL
                      : in->part == LLM_ROWS_SHARE  ? (const void *)places->share
                      : in->part == LLM_ROWS_CORNER ? (const void *)places->corner
                                                    : (const void *)places->yx;
    const int64_t each = in_table ? in->n : 2, take = in_table ? in->n : 1,
                  first = in->part == LLM_ROWS_X ? 1 : 0;
    for (int64_t i = p->first; i < p->first + p->m; i++, to += take) {
        const int64_t at = row_below(p, i, n);
        if (all && at >= 0 && at < n)
            memcpy(to, (const char *)all + (size_t)(at * each + first) * sizeof *to,
                   (size_t)take * sizeof *to);
        else
            memset(to, 0, (size_t)take * sizeof *to);
        int32_t place;
        if (!in_table) {
            memcpy(&place, to, sizeof place);
            place = own_place(place);
            memcpy(to, &place, sizeof place);
        }
    }
}

/* Which rows that the stage reads of the input are patches of the picture. */
static void gather_there(const llm_rows_piece *p, const llm_row_places *places, int64_t n,
                         float *to) {
    for (int64_t i = p->first; i < p->first + p->m; i++, to++) {
        const int64_t at = row_below(p, i, n);
        *to = at >= 0 && at < n && (!places || places->yx[2 * at] >= 0) ? 1 : 0;
    }
}

/* How many lines or columns the grid of a picture's n rows has, or a plane of them. */
static void gather_lines(const llm_rows_piece *p, const llm_rows_input *in,
                         const llm_row_places *places, int64_t n, float *to) {
    const llm_arch_plane all = llm_arch_plane_of(n);
    const bool is_picture = !in->of_stage && places;
    int32_t lines = !is_picture && all.nx == all.ny ? (int32_t)all.ny : 0;
    for (int64_t i = in->part == LLM_ROWS_COLUMNS; is_picture && i < 2 * n; i += 2) {
        const int32_t at = own_place(places->yx[i]);
        lines = at >= lines ? at + 1 : lines;
    }
    for (int64_t i = 0; i < p->m; i++)
        memcpy(to + i, &lines, sizeof lines);
}

/* The numbers of rows in a whole sound. */
static void gather_numbers(const llm_rows_piece *p, const llm_rows_input *in,
                           const llm_row_places *places, int64_t n, float *to) {
    const int64_t before = places ? places->window * in->n_window : 0;
    for (int64_t i = 0; i < p->m; i++) {
        const int64_t at = row_below(p, p->first + i, n);
        const int32_t number = (int32_t)(before + (at > 0 ? at : 0));
        memcpy(to + i, &number, sizeof number);
    }
}

/* Returns the row of the n below that is the j-th one of what input `in` has for the stage's row k; NO_ROW: zeros. */
static int64_t row_seen(const llm_rows_piece *p, const llm_rows_input *in, int64_t k, int64_t j,
                        int64_t n) {
    const int64_t own = row_below(p, k, n), block = p->of->block;
    if (in->part == LLM_ROWS_PLANE) {
        const llm_arch_plane all = llm_arch_plane_of(n);
        const int64_t y = own / all.nx + j / in->k - in->k / 2,
                      x = own % all.nx + j % in->k - in->k / 2;
        return own >= 0 && y >= 0 && y < all.ny && x >= 0 && x < all.nx ? y * all.nx + x : NO_ROW;
    }
    const int64_t at = own + in->first + j;
    return at >= 0 && at < n && (block == 0 || at / block == own / block) ? at : NO_ROW;
}

/* Rows of what an input has for each row of the stage. */
static int64_t rows_each(const llm_rows_input *in) {
    return in->part == LLM_ROWS_PLANE ? in->k * in->k : in->k;
}

void llm_rows_gather(const llm_rows_piece *p, const llm_rows_input *in,
                     const llm_row_places *places, const float *row, int64_t n, int64_t n_row,
                     float *to) {
    if (in->part == LLM_ROWS_WINDOW) {
        memcpy(to, p->windows->window + p->first, (size_t)p->m * sizeof *p->windows->window);
        return;
    }
    if (in->part == LLM_ROWS_THERE) {
        gather_there(p, places, n, to);
        return;
    }
    if (in->part == LLM_ROWS_LINES || in->part == LLM_ROWS_COLUMNS) {
        gather_lines(p, in, places, n, to);
        return;
    }
    if (in->part == LLM_ROWS_NUMBER) {
        gather_numbers(p, in, places, n, to);
        return;
    }
    if ((in->part == LLM_ROWS_Y || in->part == LLM_ROWS_X) && (in->of_stage || p->windows->yx)) {
        gather_in_plane(p, in, n, to);
        return;
    }
    if (in->part != LLM_ROWS_SELF && in->part != LLM_ROWS_PLANE) {
        gather_places(p, in, places, n, to);
        return;
    }
    for (int64_t i = p->first; i < p->first + p->m; i++)
        for (int64_t k = 0; k < rows_each(in); k++, to += n_row) {
            const int64_t at = row_seen(p, in, i, k, n);
            if (at >= 0)
                memcpy(to, row + at * n_row, (size_t)n_row * sizeof *to);
            else
                memset(to, 0, (size_t)n_row * sizeof *to);
        }
}

void llm_rows_scatter(const llm_rows_piece *p, const llm_rows_input *in, const float *d, int64_t n,
                      int64_t n_row, float *drow) {
    if (in->part != LLM_ROWS_SELF && in->part != LLM_ROWS_PLANE)
        return;
    for (int64_t i = p->first; i < p->first + p->m; i++)
        for (int64_t k = 0; k < rows_each(in); k++, d += n_row) {
            const int64_t at = row_seen(p, in, i, k, n);
            for (int64_t j = 0; at >= 0 && j < n_row; j++)
                drow[at * n_row + j] += d[j];
        }
}

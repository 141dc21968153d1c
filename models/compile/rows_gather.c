#include "llm/internal/rows_gather.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"

/* --- inputs ----------------------------------------------------------------------------------- */

/* Returns the part that the end of an input's name stands for. */
static llm_rows_part part_named(const char *end) {
    static const char *const name[] = {"", ".y", ".x", ".corner", ".share", ".window"};
    int k = LLM_ROWS_WINDOW;
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
        x->part = part_named(end);
        if (*end && x->part == LLM_ROWS_SELF) {
            char *rest;
            x->first = strtoll(end + 1, &rest, 10);
            x->k = strtoll(rest + 1, NULL, 10);
        }
    }
    return n;
}

/* --- windows ---------------------------------------------------------------------------------- */

void llm_rows_windows_fini(llm_rows_windows *w) {
    ggl_free(w->order);
    ggl_free(w->window);
    *w = (llm_rows_windows){0};
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the windows of a picture");
}

ggl_status llm_rows_find_windows(const llm_arch_rows_of *of, const llm_arch_rows_of *below,
                                 const llm_row_places *places, int64_t n, llm_rows_windows *out,
                                 ggl_error *err) {
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

/* Returns the row of what the stage is over that its row k stands for. */
static int64_t row_below(const llm_rows_piece *p, int64_t k) {
    if (p->of->block > 0) {
        const int64_t each = llm_arch_rows_each(p->of);
        return k / each * p->of->block + k % each * p->of->every;
    }
    return (llm_rows_number(p->windows, k) - p->of->ends) * p->of->every + p->of->from;
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
        const int64_t at = row_below(p, i);
        if (all && at >= 0 && at < n)
            memcpy(to, (const char *)all + (size_t)(at * each + first) * sizeof *to,
                   (size_t)take * sizeof *to);
        else
            memset(to, 0, (size_t)take * sizeof *to);
    }
}

/* True if row `at` of the n below is one that the stage's row k can see. */
static bool is_seen(const llm_rows_piece *p, int64_t k, int64_t at, int64_t n) {
    const int64_t block = p->of->block;
    return at >= 0 && at < n && (block == 0 || at / block == row_below(p, k) / block);
}

void llm_rows_gather(const llm_rows_piece *p, const llm_rows_input *in,
                     const llm_row_places *places, const float *row, int64_t n, int64_t n_row,
                     float *to) {
    if (in->part == LLM_ROWS_WINDOW) {
        memcpy(to, p->windows->window + p->first, (size_t)p->m * sizeof *p->windows->window);
        return;
    }
    if (in->part != LLM_ROWS_SELF) {
        gather_places(p, in, places, n, to);
        return;
    }
    for (int64_t i = p->first; i < p->first + p->m; i++)
        for (int64_t k = 0; k < in->k; k++, to += n_row) {
            const int64_t at = row_below(p, i) + in->first + k;
            if (is_seen(p, i, at, n))
                memcpy(to, row + at * n_row, (size_t)n_row * sizeof *to);
            else
                memset(to, 0, (size_t)n_row * sizeof *to);
        }
}

void llm_rows_scatter(const llm_rows_piece *p, const llm_rows_input *in, const float *d, int64_t n,
                      int64_t n_row, float *drow) {
    if (in->part != LLM_ROWS_SELF)
        return;
    for (int64_t i = p->first; i < p->first + p->m; i++)
        for (int64_t k = 0; k < in->k; k++, d += n_row) {
            const int64_t at = row_below(p, i) + in->first + k;
            for (int64_t j = 0; is_seen(p, i, at, n) && j < n_row; j++)
                drow[at * n_row + j] += d[j];
        }
}

/* What tokens read, as runs: forward through the stages before a run of the tokens, and back after it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "trainer_impl.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for what tokens read");
}

/* --- checks ------------------------------------------------------------------------------------- */

static ggl_status check_reading(const llm_trainer *t, const llm_train_reading *x, int64_t k,
                                ggl_error *err) {
    const train_reader *r = &t->reader;
    const char *what = r->is.of_text ? "tokens" : "rows";
    if (x->n < 1 || x->n > r->is.n_most || llm_trainer_n_rows(t, x->n) < 1)
        return ggl_fail(err, GGL_USAGE,
                        "reading %" PRId64 " has %" PRId64 " %s; there must be 1 to %" PRId64
                        ", and enough for each stage",
                        k, x->n, what, r->is.n_most);
    if (!(r->is.of_text ? (const void *)x->token : (const void *)x->row))
        return ggl_fail(err, GGL_USAGE, "reading %" PRId64 " has no %s", k, what);
    for (int64_t i = 0; r->is.of_text && i < x->n; i++)
        if (x->token[i] < 0 || x->token[i] >= t->n_vocab)
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId64 " of reading %" PRId64
                            " is %d; the vocabulary has 0 to %" PRId64,
                            i, k, x->token[i], t->n_vocab - 1);
    return GGL_OK;
}

ggl_status llm_reader_check(const llm_trainer *t, const llm_train_batch *b, ggl_error *err) {
    const train_reader *r = &t->reader;
    int64_t n = 0, n_rows = 0;
    ggl_status st = GGL_OK;
    if (!r->is.is_there)
        return GGL_OK;
    if (b->n_readings < 0 || (b->n_readings > 0 && !b->reading) || (r->is.is_own && !b->read))
        return ggl_fail(err, GGL_USAGE, "the batch lacks what its tokens read");
    for (int64_t k = 0; k < b->n_readings && st == GGL_OK; k++) {
        st = check_reading(t, &b->reading[k], k, err);
        n_rows += st == GGL_OK ? llm_trainer_n_rows(t, b->reading[k].n) : 0;
    }
    for (int64_t i = 0; i < b->n_seq; i++)
        n += b->length[i];
    for (int64_t i = 0; i < b->n_seq && r->is.is_own && st == GGL_OK; i++)
        if (b->read[i] < 0 || b->read[i] >= b->n_readings)
            st = ggl_fail(err, GGL_USAGE,
                          "sequence %" PRId64 " reads %d; there are readings 0 to %" PRId64, i,
                          b->read[i], b->n_readings - 1);
    for (int64_t i = 0; i < n && !r->is.is_own && b->place && st == GGL_OK; i++)
        if (b->place[i] >= n_rows)
            st = ggl_fail(err, GGL_USAGE,
                          "row %d stands in the place of token %" PRId64
                          "; the readings have rows 0 to %" PRId64,
                          b->place[i], i, n_rows - 1);
    return st;
}

/* --- one stage ---------------------------------------------------------------------------------- */

/* Sets an input of a graph that has one number, or row, for each of n elements, if it reads it. */
static ggl_status give(const train_plan *p, const char *name, const void *data, int64_t n,
                       ggl_error *err) {
    const ggl_tensor *x = ggl_graph_find_input(p->g, name);
    return x && x->needed ? ggl_sched_set(p->s, name, data, (size_t)(n * ggl_count(x)) * 4, n, err)
                          : GGL_OK;
}

/* The same of a stage's graph. */
static ggl_status set(const train_reader *r, const train_plan *p, const char *name,
                      const void *data, int64_t n, ggl_error *err) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", r->is.is_own ? "stage." : "", name);
    return give(p, full, data, n, err);
}

static ggl_status set_numbers(const train_reader *r, const train_plan *p, const train_read *x,
                              int64_t n, ggl_error *err) {
    int32_t *number = ggl_calloc((size_t)n * 3, sizeof *number);
    if (!number)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++) {
        number[i] = (int32_t)i;
        number[2 * n + i] = (int32_t)n;
    }
    ggl_status st = set(r, p, "pos", number, n, err);
    if (st == GGL_OK)
        st = set(r, p, "slot", number + n, n, err);
    if (st == GGL_OK)
        st = set(r, p, "type", number + n, n, err);
    if (st == GGL_OK)
        st = set(r, p, "end", number + 2 * n, n, err);
    if (st == GGL_OK && r->is.of_text)
        st = set(r, p, "token", x->of->token, n, err);
    ggl_free(number);
    return st;
}

/* How many rows run in stage k. */
static int64_t n_run(const train_reader *r, int k, const train_read *x) {
    return r->is.of_text ? x->n[k] : llm_rows_run(&r->of[k], x->n[k]);
}

/* Sets what the stage reads of those before. */
static ggl_status set_rows(train_reader *r, int k, int which, train_read *x, ggl_error *err) {
    const train_stage *s = &r->stage[k];
    const int64_t n = n_run(r, k, x);
    const llm_rows_piece piece = {&r->of[k], &x->windows[k], 0, n};
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->n_inputs[which] && st == GGL_OK; i++) {
        const llm_rows_input *in = &s->input[which][i];
        float *to = ggl_calloc((size_t)(n * in->n), sizeof *to);
        if (!to)
            return no_memory(err);
        llm_rows_gather(&piece, in, x->of->places, x->row[in->source],
                        llm_rows_readable(r->of, k, x->of->n), r->stage[in->source].n_row, to);
        st =
            ggl_sched_set(s->plan[which].s, in->name, to, (size_t)(n * in->n) * sizeof *to, n, err);
        ggl_free(to);
    }
    return st;
}

static ggl_status run_stage(train_reader *r, int k, int which, train_read *x, int64_t n_rows,
                            ggl_error *err) {
    const train_plan *p = &r->stage[k].plan[which];
    const int64_t n = n_run(r, k, x);
    ggl_status st = ggl_graph_n_stores(p->g) > 0 ? ggl_sched_clear_slot(p->s, 0, err) : GGL_OK;
    if (st == GGL_OK)
        st = set_numbers(r, p, x, n, err);
    if (st == GGL_OK && !r->is.of_text)
        st = set_rows(r, k, which, x, err);
    if (st == GGL_OK && which == READ_LEARN)
        st = set(r, p, "gradient", x->drow[k], n, err);
    static const int32_t none = 0;
    return st == GGL_OK ? ggl_sched_run(p->s, n, n_rows ? NULL : &none, n_rows, err) : st;
}

/* Puts rows that came in the order of windows back to where they belong, or the other way round. */
static void reorder(const train_reader *r, int k, const train_read *x, const float *from, float *to,
                    bool back) {
    const int64_t n_row = r->stage[k].n_row;
    for (int64_t i = 0; i < n_run(r, k, x); i++) {
        const int64_t at = r->is.of_text ? i : llm_rows_kept(&r->of[k], &x->windows[k], i, x->n[k]);
        if (at < 0)
            continue;
        memcpy(to + (back ? at : i) * n_row, from + (back ? i : at) * n_row,
               (size_t)n_row * sizeof *to);
    }
}

/* Runs stage k forward. */
static ggl_status look(train_reader *r, int k, train_read *x, ggl_error *err) {
    ggl_status st = GGL_OK;
    x->row[k] = ggl_calloc((size_t)(x->n[k] * r->stage[k].n_row), sizeof(float));
    if (!x->row[k])
        return no_memory(err);
    if (!r->is.of_text && r->of[k].windows > 0)
        st = llm_rows_find_windows(&r->of[k], &r->of[r->of[k].over], x->of->places, x->n[k],
                                   &x->windows[k], err);
    if (st == GGL_OK)
        st = run_stage(r, k, READ_LOOK, x, n_run(r, k, x), err);
    if (st == GGL_OK)
        reorder(r, k, x, ggl_sched_output(r->stage[k].plan[READ_LOOK].s, 0), x->row[k], true);
    return st;
}

/* Adds the gradients of stage k's weights, and those by the rows that it reads. */
static ggl_status learn(train_reader *r, int k, train_read *x, ggl_error *err) {
    const train_stage *s = &r->stage[k];
    const train_plan *p = &s->plan[READ_LEARN];
    float *own = x->drow[k];
    if (x->windows[k].order || n_run(r, k, x) != x->n[k]) {
        if (!(x->drow[k] = ggl_calloc((size_t)(n_run(r, k, x) * s->n_row), sizeof(float)))) {
            x->drow[k] = own;
            return no_memory(err);
        }
        reorder(r, k, x, own, x->drow[k], false);
        ggl_free(own);
    }
    ggl_status st =
        run_stage(r, k, READ_LEARN, x, ggl_graph_n_outputs(p->g) > 1 ? n_run(r, k, x) : 0, err);
    for (int o = 1; o < ggl_graph_n_outputs(p->g) && st == GGL_OK; o++)
        for (int i = 0; i < s->n_inputs[READ_LEARN]; i++) {
            const llm_rows_input *in = &s->input[READ_LEARN][i];
            if (strcmp(in->name, ggl_graph_get_output(p->g, o)->name) != 0)
                continue;
            const llm_rows_piece piece = {&r->of[k], &x->windows[k], 0, n_run(r, k, x)};
            llm_rows_scatter(&piece, in, ggl_sched_output(p->s, o),
                             llm_rows_readable(r->of, k, x->of->n), r->stage[in->source].n_row,
                             x->drow[in->source]);
        }
    return st;
}

/* --- a reading ---------------------------------------------------------------------------------- */

static ggl_status read_one(llm_trainer *t, const llm_train_reading *of, train_read *x,
                           ggl_error *err) {
    train_reader *r = &t->reader;
    ggl_status st = GGL_OK;
    x->of = of;
    for (int k = 0; k < r->n_sources && st == GGL_OK; k++) {
        const bool is_input = !r->is.of_text && r->of[k].is_input;
        x->n[k] = r->is.of_text ? of->n : llm_rows_made(r->of, k, of->n);
        if (is_input)
            x->row[k] = (float *)of->row;
        else
            st = look(r, k, x, err);
    }
    return st;
}

/* Makes room for the gradients by the reading's rows, zeros. */
static ggl_status begin_gradients(train_reader *r, train_read *x, ggl_error *err) {
    for (int k = 0; k < r->n_sources; k++)
        if (!(x->drow[k] = ggl_calloc((size_t)(x->n[k] * r->stage[k].n_row) + 1, sizeof(float))))
            return no_memory(err);
    return GGL_OK;
}

static ggl_status learn_one(train_reader *r, train_read *x, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = r->n_sources - 1; k >= 0 && st == GGL_OK; k--)
        if (r->stage[k].plan[READ_LEARN].g)
            st = learn(r, k, x, err);
    return st;
}

static void forget(train_reader *r, train_read *x) {
    for (int k = 0; k < r->n_sources; k++) {
        if (r->is.of_text || !r->of[k].is_input)
            ggl_free(x->row[k]);
        ggl_free(x->drow[k]);
        llm_rows_windows_fini(&x->windows[k]);
    }
    *x = (train_read){0};
}

void llm_reader_forget(llm_trainer *t, const llm_train_batch *b) {
    train_reader *r = &t->reader;
    for (int64_t k = 0; k < b->n_readings && r->read; k++)
        forget(r, &r->read[k]);
    ggl_free(r->read);
    r->read = NULL;
}

/* --- keys and values of a stage ----------------------------------------------------------------- */

/* Moves what slot i of the stacks has from or to the rows of a reading, which have keys and values of each cache side by side: of a row, all heads of the keys,
 * one behind the other, and then those of the values. back: adds gradients to those of the rows. */
static void move_kept(train_reader *r, int64_t slot, train_read *x, bool back) {
    const int last = r->n_sources - 1;
    const int64_t n_row = r->stage[last].n_row, n = x->n[last];
    int64_t first = 0;
    for (int k = 0; k < r->n_kept; k++) {
        const train_kept *of = &r->kept[k];
        const int64_t n_rows = of->is_values ? of->ne[0] : of->ne[1],
                      d = of->is_values ? of->ne[1] : of->ne[0];
        for (int64_t h = 0; h < of->n_heads; h++) {
            const int64_t at = (slot * of->n_heads + h) * ggl_extents(of->ne, 0, 2, 1);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < d; j++) {
                    const int64_t in = of->is_values ? at + j * n_rows + i : at + i * d + j,
                                  out = i * n_row + first + h * d + j;
                    if (back)
                        x->drow[last][out] += of->grad[in];
                    else
                        of->data[in] = x->row[last][out];
                }
            /* what is left of a longer text has a share of 0, but must be numbers */
            for (int64_t i = n; i < n_rows && !back; i++)
                for (int64_t j = 0; j < d; j++)
                    of->data[of->is_values ? at + j * n_rows + i : at + i * d + j] = 0;
        }
        first += of->n_heads * d;
    }
}

/* --- rows in place of tokens -------------------------------------------------------------------- */

/* Returns the reading that the row is of, and *row counted in it. */
static int64_t reading_of(const llm_trainer *t, const llm_train_batch *b, int64_t *row) {
    int64_t k = 0;
    for (int64_t n; k < b->n_readings && *row >= (n = llm_trainer_n_rows(t, b->reading[k].n)); k++)
        *row -= n;
    return k;
}

/* --- a run -------------------------------------------------------------------------------------- */

/* Runs the stages for reading k, if it has not been read. */
static ggl_status need(llm_trainer *t, const llm_train_batch *b, int64_t k, ggl_error *err) {
    train_reader *r = &t->reader;
    if (!r->read && !(r->read = ggl_calloc((size_t)b->n_readings + 1, sizeof *r->read)))
        return no_memory(err);
    return r->read[k].of ? GGL_OK : read_one(t, &b->reading[k], &r->read[k], err);
}

ggl_status llm_reader_read(llm_trainer *t, const llm_train_batch *b, int64_t first, int64_t n_seq,
                           int64_t at, int64_t n, ggl_error *err) {
    train_reader *r = &t->reader;
    ggl_status st = GGL_OK;
    if (!r->is.is_there)
        return GGL_OK;
    for (int k = 0; k < r->n_kept && r->learns; k++)
        memset(r->kept[k].grad, 0, (size_t)ggl_extents(r->kept[k].ne, 0, 3, 1) * sizeof(float));
    for (int64_t i = 0; i < n_seq && r->is.is_own && st == GGL_OK; i++) {
        st = need(t, b, b->read[first + i], err);
        if (st == GGL_OK)
            move_kept(r, i, &r->read[b->read[first + i]], false);
    }
    if (r->is.is_own)
        return st;
    const int64_t n_row = r->stage[r->n_sources - 1].n_row;
    for (int64_t i = 0; i < n && st == GGL_OK; i++) {
        int64_t row = b->place ? b->place[at + i] : -1;
        float *given = r->given + i * r->n_given, *more = r->more + i * r->n_more;
        r->is_given[i] = row >= 0;
        memset(given, 0, (size_t)r->n_given * sizeof *given);
        memset(more, 0, (size_t)r->n_more * sizeof *more);
        if (row < 0)
            continue;
        const int64_t k = reading_of(t, b, &row);
        st = need(t, b, k, err);
        if (st != GGL_OK)
            break;
        const float *from = r->read[k].row[r->n_sources - 1] + row * n_row;
        memcpy(given, from, (size_t)r->n_given * sizeof *given);
        memcpy(more, from + r->n_given, (size_t)r->n_more * sizeof *more);
    }
    return st;
}

static ggl_status set_own(llm_trainer *t, const train_plan *p, const llm_train_batch *b,
                          int64_t first, int64_t n, ggl_error *err) {
    train_reader *r = &t->reader;
    ggl_status st = GGL_OK;
    for (int i = 0; i < ggl_graph_n_inputs(p->g) && st == GGL_OK; i++) {
        const ggl_tensor *x = ggl_graph_get_input(p->g, i);
        long long h, groups;
        if (!x->needed || strncmp(x->name, "read.", 5) != 0)
            continue;
        const bool is_end = strcmp(x->name, "read.end") == 0,
                   is_heads = sscanf(x->name, "read.heads.%lld.%lld", &h, &groups) == 2;
        if (!is_end && !is_heads)
            continue;
        const int64_t m = is_heads ? h : 1;
        int32_t *value = ggl_calloc((size_t)(n * m), sizeof *value);
        if (!value)
            return no_memory(err);
        for (int64_t l = 0; l < n; l++)
            for (int64_t j = 0; j < m; j++)
                value[l * m + j] =
                    is_end ? (int32_t)r->read[b->read[first + t->slot[l]]].n[r->n_sources - 1]
                           : (int32_t)(t->slot[l] * groups + j / (h / groups));
        st = ggl_sched_set(p->s, x->name, value, (size_t)(n * m) * sizeof *value, n, err);
        ggl_free(value);
    }
    return st;
}

ggl_status llm_reader_set(llm_trainer *t, const train_plan *p, const llm_train_batch *b,
                          int64_t first, int64_t at, int64_t n, ggl_error *err) {
    train_reader *r = &t->reader;
    if (!r->is.is_there)
        return GGL_OK;
    if (r->is.is_own)
        return set_own(t, p, b, first, n, err);
    for (int64_t i = 0; i < n; i++)
        r->seen[i] = b->seen ? b->seen[at + i] : t->pos[i] + 1;
    const struct {
        const char *name;
        const void *data;
    } of[] = {{"given_row", r->given},
              {"given_more", r->more},
              {"is_given", r->is_given},
              {"end", r->seen}};
    static const char *const places[] = {
        [LLM_PLACE_T] = "pos.t",           [LLM_PLACE_Y] = "pos.y",
        [LLM_PLACE_X] = "pos.x",           [LLM_PLACE_LINE] = "pos.line",
        [LLM_PLACE_COLUMN] = "pos.column", [LLM_PLACE_PICTURE] = "pos.picture"};
    ggl_status st = GGL_OK;
    for (int k = 0; k < (r->is.together ? 4 : 3) && st == GGL_OK; k++)
        st = give(p, of[k].name, of[k].data, n, err);
    for (int k = 0; k < LLM_N_PLACES && st == GGL_OK; k++)
        st = give(p, places[k], b->pos ? b->pos[k] + at : t->pos, n, err);
    return st;
}

/* Adds the gradient of what was given to that by the rows. */
static void take_given(llm_trainer *t, const llm_train_batch *b, int64_t at, int64_t n,
                       const float *d, int64_t offset, int64_t count) {
    train_reader *r = &t->reader;
    const int last = r->n_sources - 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = b->place ? b->place[at + i] : -1;
        if (row < 0)
            continue;
        const int64_t k = reading_of(t, b, &row);
        float *to = r->read[k].drow[last] + row * r->stage[last].n_row + offset;
        for (int64_t j = 0; j < count; j++)
            to[j] += d[i * count + j];
    }
}

ggl_status llm_reader_learn(llm_trainer *t, const train_plan *p, const llm_train_batch *b,
                            int64_t first, int64_t n_seq, int64_t at, int64_t n, ggl_error *err) {
    train_reader *r = &t->reader;
    ggl_status st = GGL_OK;
    if (!r->learns || !r->read)
        return GGL_OK;
    for (int64_t k = 0; k < b->n_readings && st == GGL_OK; k++)
        if (r->read[k].of)
            st = begin_gradients(r, &r->read[k], err);
    for (int64_t i = 0; i < n_seq && r->is.is_own && st == GGL_OK; i++)
        move_kept(r, i, &r->read[b->read[first + i]], true);
    for (int o = 1; o < ggl_graph_n_outputs(p->g) && !r->is.is_own && st == GGL_OK; o++) {
        const bool more = strcmp(ggl_graph_get_output(p->g, o)->name, MORE_GRADIENT) == 0;
        take_given(t, b, at, n, ggl_sched_output(p->s, o), more ? r->n_given : 0,
                   more ? r->n_more : r->n_given);
    }
    for (int64_t k = 0; k < b->n_readings && st == GGL_OK; k++)
        if (r->read[k].of)
            st = learn_one(r, &r->read[k], err);
    return st;
}

/* The inputs of a session's graph: for each token, by a table, and for the rows of a stage. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "session_impl.h"

/* Returns the id of the token's row; 0: it has none. Where rows are added to tokens, the one behind that of the token before is its row,
 * whatever the token is. */
static int32_t row_id(const session_token *x) {
    if (!x->s->built.given_added || !x->s->places)
        return x->e->id < 0 ? x->e->id : 0;
    llm_places *at = x->s->places + x->e->slot * x->s->n_ctx + x->e->pos;
    llm_media_row row;
    if (x->e->id < 0)
        at->added = x->e->id;
    else if (x->e->pos > 0 && at[-1].added < 0 && llm_media_get(x->s->media, at[-1].added, &row) &&
             row.i + 1 < row.n)
        at->added = at[-1].added - 1;
    else
        at->added = 0;
    return at->added;
}

/* The row that stands for the token, or is added to it; without numbers, it is a token, in a place of its own. */
static llm_media_row media_of(const session_token *x) {
    llm_media_row row = {.n = 1, .n_pos = 1};
    const int32_t id = row_id(x);
    if (id < 0)
        (void)llm_media_get(x->s->media, id, &row);
    return row;
}

static int32_t token_of(const session_token *x) {
    llm_media_row row;
    return x->e->id < 0 && x->s->built.given_added && llm_media_get(x->s->media, x->e->id, &row)
               ? row.token
               : x->e->token;
}

static int32_t pos_of(const session_token *x) {
    return x->e->pos;
}

static int32_t slot_of(const session_token *x) {
    return x->e->slot;
}

static ggl_status check_type(const llm_session *s, const llm_batch *b, int64_t i, ggl_error *err) {
    return !b->type || (b->type[i] >= 0 && b->type[i] < s->built.n_token_types)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          "token %" PRId64 " has the type %" PRId32
                          "; the model knows the types 0 to %" PRId64,
                          i, b->type[i], s->built.n_token_types - 1);
}

static int32_t type_of(const session_token *x) {
    return x->b && x->b->type ? x->b->type[x->e->i] : 0;
}

/* How many elements of its slot it sees: all of a text, or fewer if llm_batch.seen says so; of a block of guesses; or, of a picture whose
 * rows see each other, those up to its last row. */
static int32_t end_of(const session_token *x) {
    const slot_table *slots = &x->s->slots;
    const int32_t all = (int32_t)slots->n_new[x->e->slot],
                  seen = x->b && x->b->seen ? x->b->seen[x->e->i] : 0;
    if (x->b && x->s->guesses)
        return x->b->is_block ? (int32_t)(slots->state[x->e->slot].n_past + x->b->n) : 0;
    if (!x->b || !x->s->media || !x->s->built.given_together)
        return seen > 0 && seen < all ? seen : all;
    const llm_media_row row = media_of(x);
    return (int32_t)(x->e->pos - row.i + row.n);
}

/* Where the rows of its picture begin, or its own position. */
static int32_t begin_of(const session_token *x) {
    return (int32_t)(x->e->pos - (x->b && x->s->media ? media_of(x).i : 0));
}

/* --- what tokens read apart from their slot ---------------------------------------------------- */

static ggl_status check_read(const llm_session *s, const llm_batch *b, int64_t i, ggl_error *err) {
    const int slot = llm_batch_slot(b, i);
    if (!s->reads_text || llm_n_read(s, slot) > 0)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    s->n_inputs > 0 ? "the model reads rows of an input before it writes, and slot "
                                      "%d has none (llm_stages_read gives it some)"
                                    : "the model reads a text before it writes, and slot %d has "
                                      "none (llm_generate and llm_session_read give it one)",
                    slot);
}

static int32_t read_slot_of(const session_token *x) {
    return llm_text_slot(x->s, x->e->slot);
}

static int32_t read_end_of(const session_token *x) {
    return (int32_t)llm_n_read(x->s, x->e->slot);
}

/* --- guesses ---------------------------------------------------------------------------------- */

/* Checks a block of guesses: its tokens see each other, so they run in one ubatch and one slot. */
static ggl_status check_block(const llm_session *s, const llm_batch *b, ggl_error *err) {
    int64_t n_wanted = 0;
    bool is_one_slot = true;
    for (int64_t i = 0; i < b->n; i++) {
        n_wanted += llm_outputs_wanted(b, i) >> LLM_OUT_LOGITS & 1;
        is_one_slot = is_one_slot && llm_batch_slot(b, i) == llm_batch_slot(b, 0);
    }
    if (s->built.n_guess_block > 0 && !b->row && !b->feature && b->n <= s->n_ubatch &&
        n_wanted <= s->n_rows && is_one_slot)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "a block of %" PRId64 " guesses, of which %" PRId64
                    " are wanted: the session makes %s, in one slot, of at most %" PRId64
                    " tokens and %" PRId64 " wanted ones, without rows",
                    b->n, n_wanted, s->built.n_guess_block ? "blocks" : "no blocks", s->n_ubatch,
                    s->n_rows);
}

static ggl_status accept_feature(const llm_session *s, const llm_batch *b, ggl_error *err) {
    return !b->feature || (s->guesses && s->built.n_feature > 0)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          "the session reads no rows of another model (llm_batch.feature)");
}

static ggl_status accept_row(const llm_session *s, const llm_batch *b, ggl_error *err) {
    if (b->is_block)
        return check_block(s, b, err);
    const bool is_right = !s->guesses            ? !b->row
                          : s->built.guess_stays ? b->feature != NULL
                                                 : (b->row != NULL) != (b->feature != NULL);
    return is_right
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          s->guesses ? "a session of guesses needs the rows of the tokens before "
                                       "(llm_batch.row)"
                                     : "the session reads no rows (llm_batch.row)");
}

static const float *feature_of(const session_token *x) {
    return x->b->feature ? x->b->feature + x->e->i * x->n : NULL;
}

static const float *row_of(const session_token *x) {
    return x->b->row ? x->b->row + x->e->i * x->n : NULL;
}

/* 1: the row counts, or it is in a block; 0: what is made from the other model's does. */
static int32_t has_row(const session_token *x) {
    return x->b->row || x->b->is_block;
}

/* --- rows in place of tokens ------------------------------------------------------------------- */

bool llm_session_may_want(const llm_session *s, int32_t id) {
    llm_media_row row;
    return id >= 0 || !s->built.given_together || !llm_media_get(s->media, id, &row) ||
           row.i + 1 == row.n;
}

/* Checks that a row of a picture whose rows see each other has the next one behind it, and is not one of the rows for which something is
 * wanted: these end a ubatch when there are enough of them. */
static ggl_status check_together(const llm_session *s, const llm_batch *b, int64_t i,
                                 ggl_error *err) {
    const int32_t id = b->token[i];
    llm_media_row row;
    if (llm_session_may_want(s, id) || !llm_media_get(s->media, id, &row))
        return GGL_OK;
    if (i + 1 == b->n || b->token[i + 1] != id - 1 ||
        llm_batch_slot(b, i + 1) != llm_batch_slot(b, i))
        return ggl_fail(err, GGL_USAGE,
                        "row %" PRId64 " of a picture of %" PRId64
                        " ends a text, but all of its rows see each other",
                        row.i, row.n);
    return llm_outputs_wanted(b, i)
               ? ggl_fail(err, GGL_UNSUPPORTED,
                          "of a picture whose rows see each other, only the last one has an output")
               : GGL_OK;
}

bool llm_session_adds(const llm_session *s) {
    return s->built.given_added;
}

int64_t llm_session_rows_left(const llm_session *s, const int32_t *id, int64_t n) {
    int64_t last = s->media && s->built.given_added ? n - 1 : -1;
    llm_media_row row;
    while (last >= 0 && id[last] >= 0)
        last--;
    if (last < 0 || !llm_media_get(s->media, id[last], &row))
        return INT64_MAX;
    return row.n - row.i - (n - last);
}

static int32_t is_given(const session_token *x) {
    return media_of(x).row != NULL;
}

static const float *given_row(const session_token *x) {
    return media_of(x).row;
}

static const float *given_more(const session_token *x) {
    const float *row = media_of(x).row;
    return row ? row + x->s->built.n_given : NULL;
}

/* Its place, from what is known of those before, which is noted for the next one. */
static int32_t place_of(const session_token *x) {
    const llm_media_row row = media_of(x);
    llm_places *own = x->s->places + x->e->slot * x->s->n_ctx + x->e->pos;
    const int32_t added = own->added;
    int32_t place[LLM_N_PLACES];
    *own = x->e->pos > 0 ? own[-1] : (llm_places){0};
    own->added = added;
    llm_places_next(own, x->e->pos, &row, place);
    return place[x->axis];
}

/* --- tasks of adapters -------------------------------------------------------------------------- */

static const float *share_of(const llm_session *s, const llm_batch *b, int64_t i) {
    return b->share && b->share[i] ? b->share[i] : s->share;
}

static ggl_status check_share(const llm_session *s, const llm_batch *b, int64_t i, ggl_error *err) {
    const float *share = share_of(s, b, i);
    for (int64_t k = 0; k < s->n_tasks; k++)
        if (!isfinite(share[k]))
            return ggl_fail(err, GGL_USAGE, "share %" PRId64 " of a token is %g", k,
                            (double)share[k]);
    return GGL_OK;
}

static const float *shares_of(const session_token *x) {
    return share_of(x->s, x->b, x->e->i);
}

/* --- the table ---------------------------------------------------------------------------------- */

static const session_input table[] = {
    {"token", .of_text = true, .number = token_of},
    {"pos", .of_text = true, .number = pos_of},
    {"slot", .of_text = true, .number = slot_of},
    {"end", .of_text = true, .number = end_of},
    {"begin", .of_text = true, .number = begin_of},
    {"type", .of_text = true, .check = check_type, .number = type_of},
    {"read.slot", .check = check_read, .number = read_slot_of},
    {"read.end", .number = read_end_of},
    {"features", .accept = accept_feature, .values = feature_of},
    {"row", .accept = accept_row, .values = row_of},
    {"before", .number = token_of},
    {"given", .number = has_row},
    {"given_row", .check = check_together, .values = given_row},
    {"given_more", .values = given_more},
    {"is_given", .number = is_given},
    {"pos.t", .number = place_of, .axis = LLM_PLACE_T},
    {"pos.y", .number = place_of, .axis = LLM_PLACE_Y},
    {"pos.x", .number = place_of, .axis = LLM_PLACE_X},
    {"pos.line", .number = place_of, .axis = LLM_PLACE_LINE},
    {"pos.column", .number = place_of, .axis = LLM_PLACE_COLUMN},
    {"pos.picture", .number = place_of, .axis = LLM_PLACE_PICTURE},
    {"task", .check = check_share, .values = shares_of},
};
enum { N_ROWS = sizeof table / sizeof *table };
_Static_assert((int)N_ROWS <= (int)LLM_MAX_TOKEN_INPUTS, "raise LLM_MAX_TOKEN_INPUTS");

const session_input *llm_session_input(int k) {
    return k < N_ROWS ? &table[k] : NULL;
}

void llm_inputs_find(llm_session *s) {
    for (int k = 0; k < N_ROWS; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", table[k].of_text ? s->prefix : "", table[k].name);
        s->inputs[k] = ggl_graph_find_input(s->graph, name);
        snprintf(name, sizeof name, "stage.%s", table[k].name);
        if (table[k].of_text && s->reads_text)
            s->stage_inputs[k] = ggl_graph_find_input(s->graph, name);
    }
}

ggl_status llm_inputs_accept(const llm_session *s, const llm_batch *b, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < N_ROWS && st == GGL_OK; k++)
        st = table[k].accept ? table[k].accept(s, b, err) : GGL_OK;
    const bool runs_rows = s->n_inputs > 0 && !s->reads_text;
    return st != GGL_OK || (b->input != NULL) == runs_rows
               ? st
               : ggl_fail(err, GGL_USAGE,
                          runs_rows ? "a stage over rows needs them (llm_batch.input)"
                                    : "the session has no stage over rows (llm_batch.input)");
}

ggl_status llm_inputs_check(const llm_session *s, const llm_batch *b, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < N_ROWS; k++)
        for (int64_t i = 0; s->inputs[k] && table[k].check && i < b->n && st == GGL_OK; i++)
            st = table[k].check(s, b, i, err);
    return st;
}

/* Writes what the token has for an input of this type; what it has not is left from before, and does not count. */
static void fill(const session_input *row, const session_token *x, ggl_type type, void *to) {
    const int32_t number = row->number ? row->number(x) : 0;
    const float *values = row->values ? row->values(x) : NULL, as_float = (float)number;
    if (row->number)
        memcpy(to, type == GGL_F32 ? (const void *)&as_float : &number, sizeof number);
    else if (values)
        memcpy(to, values, (size_t)x->n * sizeof *values);
}

ggl_status llm_inputs_set(llm_session *s, const ggl_tensor *const *in, const llm_batch *b,
                          const session_element *e, int64_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < N_ROWS && st == GGL_OK; k++) {
        if (!in[k] || !in[k]->needed)
            continue;
        session_token x = {s, b, e, ggl_count(in[k]), table[k].axis};
        const size_t size = (size_t)x.n * sizeof(float);
        char *to = ggl_sched_input_place(s->sched, in[k]->name);
        for (; x.e < e + n; x.e++)
            fill(&table[k], &x, in[k]->type, to + (size_t)(x.e - e) * size);
        st = ggl_sched_set(s->sched, in[k]->name, to, (size_t)n * size, n, err);
    }
    return st;
}

ggl_status llm_inputs_set_rows(llm_session *s, const float *const *input, int64_t n,
                               ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; n > 0 && k < s->n_inputs && st == GGL_OK; k++)
        st = ggl_sched_set(s->sched, s->input[k].name, input[k],
                           (size_t)(n * s->input[k].n) * sizeof(float), n, err);
    return st;
}

/* What the tokens of a slot read: a text or rows of numbers, which a stage sees whole before the tokens are written. */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "session_impl.h"

/* A text of n tokens, or n rows for each of the stage's inputs. */
typedef struct reading {
    const int32_t *id; /* [llm_id_words(n)]: the tokens, or what identifies the rows */
    const float *const *input;
    int64_t n;
} reading;

static ggl_status check(const llm_session *s, int slot, const reading *r, ggl_error *err) {
    const bool rows = llm_session_reads_rows(s);
    const char *what = rows ? "rows" : "tokens";
    if (!s->reads_text || rows != (r->input != NULL))
        return ggl_fail(err, GGL_USAGE, "the model reads %s apart from its tokens",
                        !s->reads_text ? "nothing"
                        : rows         ? "rows of numbers, and no text"
                                       : "a text, and no rows of numbers");
    if (slot < 0 || slot >= s->n_slots)
        return ggl_fail(err, GGL_USAGE, "slot %d of %" PRId64, slot, s->n_slots);
    if (r->n < 1 || !r->id)
        return ggl_fail(err, GGL_USAGE, "%s that the model is to read has no %s",
                        rows ? "the input" : "the text", what);
    if (r->n > s->n_read)
        return ggl_fail(err, GGL_LIMIT,
                        rows ? "the model is to read %" PRId64 " rows, but it was made for %" PRId64
                               " (n_read)"
                             : "the text that the model is to read has %" PRId64
                               " tokens, but the context is %" PRId64 " (n_ctx, or -c N)",
                        r->n, s->n_read);
    return rows ? GGL_OK : llm_check_tokens(r->id, (size_t)r->n, s->built.n_vocab, err);
}

/* Empties the slot and what it reads. */
static ggl_status clear(llm_session *s, int slot, ggl_error *err) {
    const ggl_status st = llm_slots_clear(&s->slots, slot, err);
    return st == GGL_OK ? llm_slots_clear(&s->slots, llm_text_slot(s, slot), err) : st;
}

ggl_status llm_session_unread(llm_session *s, int slot, ggl_error *err) {
    if (slot < 0 || slot >= s->n_slots)
        return ggl_fail(err, GGL_USAGE, "slot %d of %" PRId64, slot, s->n_slots);
    return s->reads_text ? clear(s, slot, err) : llm_slots_clear(&s->slots, slot, err);
}

/* Appends the tokens or rows to the slot, and makes room for them. */
static ggl_status prepare(llm_session *s, int to, const reading *r, ggl_error *err) {
    session_element *e = s->flight[0].element;
    llm_slots_begin(&s->slots);
    for (int64_t i = 0; i < r->n; i++)
        e[i] = (session_element){.i = i,
                                 .token = r->input ? 0 : r->id[i],
                                 .slot = to,
                                 .pos = llm_slots_append(&s->slots, to)};
    const ggl_status st = llm_slots_check_room(&s->slots, r->n, err);
    return st == GGL_OK ? llm_slots_take_pages(&s->slots, err) : st;
}

static ggl_status run(llm_session *s, const reading *r, ggl_error *err) {
    ggl_status st = llm_inputs_set(s, s->stage_inputs, NULL, s->flight[0].element, r->n, err);
    if (st == GGL_OK && r->input)
        st = llm_inputs_set_rows(s, r->input, r->n, err);
    if (st == GGL_OK) {
        llm_slots_start(&s->slots);
        st = ggl_sched_run_stage(s->sched, r->n, err);
    }
    return st;
}

static ggl_status read_rows(llm_session *s, int slot, const reading *r, ggl_error *err) {
    ggl_status st = llm_session_check_collected(s, err);
    if (st == GGL_OK)
        st = check(s, slot, r, err);
    if (st == GGL_OK)
        st = clear(s, slot, err);
    if (st != GGL_OK)
        return st;
    st = prepare(s, llm_text_slot(s, slot), r, err);
    if (st == GGL_OK)
        st = run(s, r, err);
    llm_slots_settle(&s->slots, 0, st == GGL_OK);
    if (st == GGL_OK)
        memcpy(llm_read_id(s, slot), r->id, (size_t)llm_id_words(s, r->n) * sizeof *r->id);
    return st;
}

ggl_status llm_session_read(llm_session *s, int slot, const int32_t *token, int64_t n,
                            ggl_error *err) {
    return read_rows(s, slot, &(reading){.id = token, .n = n}, err);
}

ggl_status llm_session_read_rows(llm_session *s, int slot, const float *const *input, int64_t n,
                                 const int32_t id[LLM_ROWS_ID], ggl_error *err) {
    return read_rows(s, slot, &(reading){.id = id, .input = input, .n = n}, err);
}

/* --- what slots have read ----------------------------------------------------------------------- */

const int32_t *llm_session_text(const llm_session *s, int slot, int64_t *n) {
    const bool has = s->reads_text && !llm_session_reads_rows(s) && slot >= 0 && slot < s->n_slots;
    *n = has ? llm_n_read(s, slot) : 0;
    return *n > 0 ? llm_read_id(s, slot) : NULL;
}

/* True if the slot has read what these words identify. */
static bool has_read(const llm_session *s, int slot, const int32_t *id, int64_t n_words) {
    return n_words > 0 && llm_id_words(s, llm_n_read(s, slot)) == n_words &&
           memcmp(llm_read_id(s, slot), id, (size_t)n_words * sizeof *id) == 0;
}

ggl_status llm_session_share_read(llm_session *s, int dst, int src, ggl_error *err) {
    const int64_t n = llm_n_read(s, src), n_words = llm_id_words(s, n);
    const ggl_status st =
        llm_slots_share(&s->slots, llm_text_slot(s, dst), llm_text_slot(s, src), n, err);
    if (st == GGL_OK && dst != src)
        memcpy(llm_read_id(s, dst), llm_read_id(s, src), (size_t)n_words * sizeof *s->read_id);
    return st;
}

ggl_status llm_session_find_read(llm_session *s, int slot, const int32_t *id, int64_t n_words,
                                 bool *is_found, ggl_error *err) {
    *is_found = false;
    if (!s->reads_text || slot < 0 || slot >= s->n_slots || !id)
        return GGL_OK;
    *is_found = has_read(s, slot, id, n_words);
    int from = 0;
    while (!*is_found && from < s->n_slots && !has_read(s, from, id, n_words))
        from++;
    if (*is_found || from == s->n_slots)
        return GGL_OK;
    ggl_status st = llm_slots_clear(&s->slots, slot, err);
    if (st == GGL_OK)
        st = llm_session_share_read(s, slot, from, err);
    *is_found = st == GGL_OK;
    return st;
}

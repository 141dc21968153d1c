/* Which rows a value belongs to: each row of a text or a stage, or one row that was picked, as by S[0]. Operators
 * compute each row alone, and a picked row is another one than the row that is being computed; so a node must
 * not mix them. Only attention reads other rows. */
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/graph.h"

static int rows_of(const arch_eval *ev, const ggl_tensor *t) {
    while (t && t->op == GGL_OP_CAST && t->n_src > 0) /* the builder adds casts */
        t = t->src[0];
    if (!t)
        return ROWS_NONE;
    if (t == ev->turn_row || t == ev->turn_before)
        return ROWS_TURN;
    if (t->op == GGL_OP_INPUT && ggl_is_batched(t))
        return t->rows == GGL_ROWS_STAGE ? ROWS_STAGE
               : t == ev->row || (ev->stage && arch_guesses(ev->stage) && t != ev->features)
                   ? ROWS_GUESS
                   : ROWS_EACH;
    return (size_t)t->id < ev->cap_rows_of ? ev->rows_of[t->id] : ROWS_NONE;
}

/* What a model reads of another one is known in the elements in which it guesses, and nowhere else. */
int llm_arch_rows(const arch_eval *ev, const ggl_tensor *t) {
    const int rows = rows_of(ev, t);
    return rows == ROWS_EACH && ev->features && ev->over ? ROWS_GUESS : rows;
}

/* Describes rows for messages; returns buf. */
static const char *rows_text(const arch_eval *ev, int rows, char *buf, size_t size) {
    if (rows == ROWS_EACH)
        return ev->arch->has_tokens ? "each token" : "each row";
    if (rows == ROWS_STAGE)
        return "each row of the stage";
    if (rows == ROWS_GUESS)
        return "each guess";
    if (rows == ROWS_TURN)
        return "each guess in its turn";
    const long long i = ev->picked[rows - ROWS_PICKED];
    if (i < 0)
        snprintf(buf, size, "the last row");
    else
        snprintf(buf, size, "row %lld", i);
    return buf;
}

bool llm_arch_set_rows(arch_eval *ev, const ggl_tensor *t, int rows) {
    const size_t old = ev->cap_rows_of;
    if (!llm_arch_push(ev, &ev->rows_of, &ev->cap_rows_of, (size_t)t->id + 1, sizeof *ev->rows_of))
        return false;
    memset(ev->rows_of + old, 0, (ev->cap_rows_of - old) * sizeof *ev->rows_of);
    ev->rows_of[t->id] = (uint8_t)rows;
    return true;
}

/* Checks what stores keep and what is read from them. */
static bool check_store(arch_eval *ev, arch_place p, const ggl_tensor *t, int rows) {
    char a[32], b[32];
    const bool stores = t->op == GGL_OP_CACHE || t->op == GGL_OP_STATE || t->op == GGL_OP_KEEP;
    if (rows == ROWS_TURN && (t->op == GGL_OP_CACHE || t->op == GGL_OP_ATTEND)) {
        llm_arch_error(ev, p, "a value of %s is not stored", rows_text(ev, rows, a, sizeof a));
        return false;
    }
    if (stores && rows >= ROWS_PICKED) {
        llm_arch_error(ev, p, "the value belongs to %s, but what is stored belongs to each row",
                       rows_text(ev, rows, a, sizeof a));
        return false;
    }
    const int stored = ggl_cache_of(t) ? llm_arch_rows(ev, ggl_cache_of(t)) : rows;
    const bool crosses = rows == ROWS_EACH && stored == ROWS_STAGE;
    if ((rows == ROWS_GUESS) != (stored == ROWS_GUESS)) {
        llm_arch_error(ev, p, "a value of %s cannot read what is stored of %s",
                       rows_text(ev, rows, a, sizeof a), rows_text(ev, stored, b, sizeof b));
        return false;
    }
    if (crosses && ggl_attend_window(t) > 0) {
        llm_arch_error(ev, p,
                       "a token has no place among the rows of the stage, so a window of "
                       "them around it cannot be given");
        return false;
    }
    return true;
}

/* True for a position that the descriptor gives: at = .. */
static bool is_given_position(const ggl_tensor *t, int k) {
    const bool is_rope = t->op == GGL_OP_ROPE_HALF || t->op == GGL_OP_ROPE_PAIR;
    const char *name = t->src[k] && t->src[k]->op == GGL_OP_INPUT ? t->src[k]->name : "";
    return is_rope && k == ROPE_HALF_AT && strcmp(name, "pos") != 0 &&
           strcmp(name, "stage.pos") != 0;
}

bool llm_arch_note_rows(arch_eval *ev, arch_place p, const ggl_tensor *t) {
    char a[32], b[32];
    int rows = ROWS_NONE;
    if (ev->status != GGL_OK)
        return false;
    for (int k = 0; k < t->n_src; k++) {
        /* attention reads rows by their cache, and supplied inputs belong to whatever reads them */
        const ggl_tensor *x = t->src[k];
        const bool supplied = ggl_op_supplies(t->op, k) && !is_given_position(t, k);
        if (!x || x->op == GGL_OP_CACHE ||
            (t->op == GGL_OP_ATTEND && k != ATTEND_Q && k != ATTEND_WITHIN && k != ATTEND_CHOSEN) ||
            supplied)
            continue;
        const int own = llm_arch_rows(ev, x);
        if (own != ROWS_NONE && rows != ROWS_NONE && own != rows) {
            llm_arch_error(
                ev, p, "this mixes a value of %s with one of %s: only attention reads other rows",
                rows_text(ev, rows, a, sizeof a), rows_text(ev, own, b, sizeof b));
            return false;
        }
        rows = own != ROWS_NONE ? own : rows;
    }
    return check_store(ev, p, t, rows) && llm_arch_set_rows(ev, t, rows);
}

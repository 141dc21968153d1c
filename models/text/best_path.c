#include "best_path.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/steps.h"

ggl_status llm_best_path_check(const automaton *tokens, ggl_error *err) {
    if (tokens->most_found <= BEST_PATH_NESTED)
        return GGL_OK;
    return ggl_fail(
        err, GGL_LIMIT,
        "token %d is the last of %u tokens that are each at the end of the next one, at most %d "
        "are supported: each place of a text would have to be compared with all",
        (int)tokens->found_most, (unsigned)tokens->most_found, BEST_PATH_NESTED);
}

/* Reverses the path, so that each place knows the next one. Returns the first place after 0. */
static uint32_t turn_around(best_path *p) {
    uint32_t next = UINT32_MAX, at = (uint32_t)p->n;
    while (at > 0) {
        uint32_t from = p->step[at].from;
        p->step[at].from = next;
        next = at;
        at = from;
    }
    return next;
}

/* Emits the tokens of the best path through the current part, and empties it. */
static ggl_status give_out(best_path *p) {
    ggl_status s = GGL_OK;
    uint32_t from = 0;
    if (p->goes_on)
        p->score_before = p->step[p->n].score;
    for (uint32_t at = turn_around(p); at != UINT32_MAX && s == GGL_OK; at = p->step[at].from) {
        s = p->emit(p->context, p->step[at].id, p->text + from, at - from);
        from = at;
    }
    p->n = 0;
    return s;
}

/* Finds the best path to place `end`, where a character of n bytes ends. */
static void find_way(best_path *p, size_t end, size_t n) {
    best_path_step best = {.from = UINT32_MAX, .id = -1};
    bool known = false;
    for (int32_t i = p->tokens->node[p->state].found; i != 0;
         i = llm_automaton_next(p->tokens, i)) {
        const automaton_node *token = &p->tokens->node[i];
        GGL_STEPS(1);
        if (token->depth > end)
            continue;
        size_t from = end - token->depth;
        if (p->step[from].from == UINT32_MAX)
            continue;
        double score = p->step[from].score + p->score[token->id];
        if (best.from == UINT32_MAX || score > best.score)
            best = (best_path_step){score, (uint32_t)from, token->id};
        known = known || token->depth == n;
    }
    double score = p->step[end - n].score + p->unknown;
    if ((!known || p->unknown_always) && (best.from == UINT32_MAX || score > best.score))
        best = (best_path_step){score, (uint32_t)(end - n), -1};
    p->step[end] = best;
}

ggl_status llm_best_path_add(best_path *p, const char *s, size_t n, ggl_error *err) {
    for (size_t i = 0; i < n; i++)
        p->state =
            llm_automaton_step(p->tokens, p->state, (unsigned char)s[p->backward ? n - 1 - i : i]);
    if (p->n > 0 && p->tokens->node[p->state].depth <= n) { /* no token spans place p->n */
        ggl_status status = give_out(p);
        if (status != GGL_OK)
            return status;
    }
    size_t end = p->n + n;
    if (end >= UINT32_MAX)
        return ggl_fail(err, GGL_LIMIT,
                        "a stretch of text that cannot be split between tokens has %zu bytes or "
                        "more, at most %u are supported",
                        end, UINT32_MAX - 1);
    if (!ggl_grow(&p->text, &p->cap_text, end, 1) ||
        !ggl_grow(&p->step, &p->cap_step, end + 1, sizeof *p->step))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", end);
    if (n > 0)
        memcpy(p->text + p->n, s, n);
    if (p->n == 0)
        p->step[0] = (best_path_step){.score = p->score_before, .id = -1};
    for (size_t i = p->n + 1; i < end; i++) /* places inside the character */
        p->step[i].from = UINT32_MAX;
    find_way(p, end, n);
    p->n = end;
    return GGL_OK;
}

ggl_status llm_best_path_end(best_path *p) {
    ggl_status s = p->n > 0 ? give_out(p) : GGL_OK;
    p->state = 0;
    p->score_before = 0;
    return s;
}

void llm_best_path_fini(best_path *p) {
    ggl_free(p->text);
    ggl_free(p->step);
}

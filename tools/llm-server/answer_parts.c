#include "answer_parts.h"

#include <string.h>

static bool copy_str(answer_parts *l, ggl_str *to, ggl_str from) {
    *to = (ggl_str){ggl_arena_strndup(&l->arena, from.n > 0 ? from.s : "", from.n), from.n};
    return to->s != NULL;
}

static bool copy_tokens(answer_parts *l, own_part *to, const answer_token *from, size_t n) {
    answer_part *p = &to->part;
    if (!ggl_grow(&to->token, &to->cap_tokens, p->n_tokens + n, sizeof *to->token))
        return false;
    for (size_t i = 0; i < n; i++) {
        answer_token *t = &to->token[p->n_tokens++];
        *t = from[i];
        if (t->n_top == 0)
            continue;
        llm_logprob *top = ggl_arena_alloc(&l->arena, t->n_top, sizeof *top);
        if (!top)
            return false;
        memcpy(top, t->top, t->n_top * sizeof *top);
        t->top = top;
    }
    return true;
}

static own_part *new_part(answer_parts *l, const answer_part *part) {
    if (!ggl_grow(&l->own, &l->cap, l->n + 1, sizeof *l->own))
        return NULL;
    own_part *own = &l->own[l->n++];
    *own = (own_part){
        .part = {
            .kind = part->kind, .call = part->call, .begins = part->begins, .joins = part->joins}};
    return own;
}

/* Returns where a piece of text belongs. NULL: out of memory. */
static own_part *part_for_text(answer_parts *l, const answer_part *part) {
    own_part *last = l->n > 0 ? &l->own[l->n - 1] : NULL;
    const bool goes_on = last && last->part.kind == part->kind && !part->begins;
    return goes_on ? last : new_part(l, part);
}

static bool add_call(answer_parts *l, const answer_part *part) {
    own_part *own = new_part(l, part);
    return own && copy_str(l, &own->part.name, part->name) &&
           copy_str(l, &own->part.arguments, part->arguments) &&
           copy_str(l, &own->part.id, part->id) && copy_tokens(l, own, part->token, part->n_tokens);
}

/* Tokens without a text belong to what was given last. */
static own_part *part_for_tokens(answer_parts *l, const answer_part *part) {
    const bool has_place = l->n > 0 && l->own[l->n - 1].part.kind != PART_REASONING;
    return has_place ? &l->own[l->n - 1] : new_part(l, part);
}

bool answer_parts_add(answer_parts *l, const answer_part *part) {
    if (part->kind == PART_CALL)
        return add_call(l, part);
    own_part *own = part->text.n > 0 ? part_for_text(l, part) : part_for_tokens(l, part);
    return own && answer_bytes_add(&own->text, part->text.s, part->text.n) &&
           copy_tokens(l, own, part->token, part->n_tokens);
}

answer_part *answer_parts_end(answer_parts *l, size_t *n) {
    *n = l->n;
    if (!l->part)
        l->part = ggl_calloc(l->n + 1, sizeof *l->part);
    for (size_t i = 0; l->part && i < l->n; i++) {
        own_part *own = &l->own[i];
        own->part.text = (ggl_str){own->text.n > 0 ? own->text.s : "", own->text.n};
        own->part.token = own->token;
        l->part[i] = own->part;
    }
    return l->part;
}

void answer_parts_fini(answer_parts *l) {
    for (size_t i = 0; i < l->n; i++) {
        ggl_free(l->own[i].text.s);
        ggl_free(l->own[i].token);
    }
    ggl_free(l->own);
    ggl_free(l->part);
    ggl_arena_fini(&l->arena);
    *l = (answer_parts){0};
}

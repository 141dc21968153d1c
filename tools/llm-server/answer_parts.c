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

/* Returns where a piece of text belongs. NULL: out of memory. */
static own_part *part_for_text(answer_parts *l, part_kind kind) {
    own_part *last = l->n_texts > 0 ? &l->texts[l->n_texts - 1] : NULL;
    if (last && last->part.kind == kind)
        return last;
    if (!ggl_grow(&l->texts, &l->cap_texts, l->n_texts + 1, sizeof *l->texts))
        return NULL;
    last = &l->texts[l->n_texts++];
    last->part.kind = kind;
    return last;
}

static bool add_call(answer_parts *l, const answer_part *part) {
    if (!ggl_grow(&l->calls, &l->cap_calls, l->n_calls + 1, sizeof *l->calls))
        return false;
    own_part *own = &l->calls[l->n_calls++];
    own->part.kind = PART_CALL;
    own->part.call = part->call;
    return copy_str(l, &own->part.name, part->name) &&
           copy_str(l, &own->part.arguments, part->arguments) &&
           copy_str(l, &own->part.id, part->id) && copy_tokens(l, own, part->token, part->n_tokens);
}

bool answer_parts_add(answer_parts *l, const answer_part *part) {
    if (part->kind == PART_CALL)
        return add_call(l, part);
    own_part *own = part_for_text(l, part->kind);
    return own && answer_bytes_add(&own->text, part->text.s, part->text.n) &&
           copy_tokens(l, own, part->token, part->n_tokens);
}

answer_part *answer_parts_end(answer_parts *l, size_t *n) {
    *n = l->n_texts + l->n_calls;
    if (!l->part)
        l->part = ggl_calloc(*n + 1, sizeof *l->part);
    for (size_t i = 0; l->part && i < *n; i++) {
        own_part *own = i < l->n_texts ? &l->texts[i] : &l->calls[i - l->n_texts];
        own->part.text = (ggl_str){own->text.n > 0 ? own->text.s : "", own->text.n};
        own->part.token = own->token;
        l->part[i] = own->part;
    }
    return l->part;
}

static void free_parts(own_part *own, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ggl_free(own[i].text.s);
        ggl_free(own[i].token);
    }
    ggl_free(own);
}

void answer_parts_fini(answer_parts *l) {
    free_parts(l->texts, l->n_texts);
    free_parts(l->calls, l->n_calls);
    ggl_free(l->part);
    ggl_arena_fini(&l->arena);
    *l = (answer_parts){0};
}

#include "shortest.h"

#include <string.h>

#include "ggl/internal/alloc.h"

/* --- the shortest text ------------------------------------------------------------------------ */

/* A part of the output that is still to be written: a shortest text of the expression e; or, if e is
 * AGAIN, `times` copies of the output's bytes from `from` on. */
enum { AGAIN = -1 };
typedef struct job {
    int32_t e, times;
    size_t from;
} job;

typedef struct writer {
    llm_bx_pool *p;
    llm_bytes *out;
    job *job;
    size_t n, cap, end; /* end: the most bytes of the output */
} writer;

static void later(writer *w, int32_t e) {
    llm_bx_count(w->p, 1);
    if (!ggl_grow(&w->job, &w->cap, w->n + 1, sizeof *w->job))
        w->p->status = GGL_NOMEM;
    else
        w->job[w->n++] = (job){.e = e};
}

/* Lets a text of e be written, then times - 1 copies of it. */
static void later_often(writer *w, int32_t e, int32_t times) {
    later(w, AGAIN);
    if (w->p->status != GGL_OK)
        return;
    w->job[w->n - 1].times = times - 1;
    w->job[w->n - 1].from = w->out->n;
    later(w, e);
}

static void put(writer *w, unsigned byte) {
    if (w->out->n >= w->end)
        w->p->status = GGL_LIMIT;
    else if (llm_bx_grow(w->p, &w->out->s, &w->out->cap, w->out->n + 1, 1))
        w->out->s[w->out->n++] = (char)byte;
}

static void put_again(writer *w, job j) {
    llm_bytes *out = w->out;
    const size_t n = out->n - j.from, times = (size_t)j.times;
    if (n > 0 && times > (w->end - out->n) / n)
        w->p->status = GGL_LIMIT;
    else
        (void)llm_bx_grow(w->p, &out->s, &out->cap, out->n + n * times, 1);
    for (size_t i = 0; i < times && n > 0 && w->p->status == GGL_OK; i++, out->n += n)
        memcpy(out->s + out->n, out->s + j.from, n);
}

/* Returns a byte of a set: a readable one, if there is any. */
static unsigned choose(const llm_byte_set *set) {
    static const char liked[] = "0a \"]}AxX1";
    for (const char *c = liked; *c; c++)
        if (llm_byte_in(set, (unsigned char)*c))
            return (unsigned char)*c;
    unsigned b = 0;
    while (b < 255 && !llm_byte_in(set, b))
        b++;
    return b;
}

/* Writes the first byte of a shortest text of an AND or a NOT; its rest follows later. */
static void follow(writer *w, int32_t e, int32_t len) {
    llm_byte_span span;
    for (unsigned b = 0; b < 256 && w->p->status == GGL_OK; b = span.last + 1) {
        span = (llm_byte_span){b, 255};
        const int32_t d = llm_bx_derive(w->p, e, b, &span);
        const int32_t rest = w->p->node[d].min_len;
        if (rest == len - 1) { /* min_len was set along a shortest text when `len` was computed */
            put(w, b);
            later(w, d);
            return;
        }
    }
}

static void write_alt(writer *w, const llm_bx *x, int32_t len) {
    int32_t chosen = LLM_BX_NONE, rank = INT32_MAX;
    for (int32_t i = 0; i < x->b; i++) {
        const int32_t part = w->p->arg[x->a + i];
        const int32_t part_len = llm_bx_min_len(w->p, part);
        if (part_len == len && w->p->node[part].rank < rank) {
            chosen = part;
            rank = w->p->node[part].rank;
        }
    }
    later(w, chosen);
}

static void write_one(writer *w, int32_t e) {
    const int32_t len = llm_bx_min_len(w->p, e);
    const llm_bx x = w->p->node[e];
    if (len == 0 || len == LLM_BX_DEAD)
        return;
    switch ((llm_bx_kind)x.kind) {
    case LLM_BX_KIND_BYTES:
        put(w, choose(&w->p->set[x.a]));
        break;
    case LLM_BX_KIND_SEQ:
        later(w, x.b);
        later(w, x.a);
        break;
    case LLM_BX_KIND_ALT:
        write_alt(w, &x, len);
        break;
    case LLM_BX_KIND_REPEAT:
        later_often(w, x.a, x.min);
        break;
    case LLM_BX_KIND_CALL:
        later(w, w->p->rule[x.a].body);
        break;
    case LLM_BX_KIND_MEMBERS:
        later(w, llm_bx_unfold(w->p, e));
        break;
    default:
        follow(w, e, len);
    }
}

void llm_shortest_text(llm_bx_pool *p, int32_t e, llm_bytes *out) {
    writer w = {.p = p, .out = out, .end = out->n + LLM_SHORTEST_MAX};
    if (llm_bx_min_len(p, e) > LLM_SHORTEST_MAX && p->status == GGL_OK)
        p->status = GGL_LIMIT;
    later(&w, e);
    while (w.n > 0 && p->status == GGL_OK) {
        const job next = w.job[--w.n];
        if (next.e == AGAIN)
            put_again(&w, next);
        else
            write_one(&w, next.e);
    }
    ggl_free(w.job);
}

/* --- the fewest tokens ------------------------------------------------------------------------ */

/* Returns the child of node `at` for a byte; 0 if none. */
static int32_t child_of(const llm_trie *t, int32_t at, uint8_t byte) {
    if (at == 0)
        return t->first[byte];
    const int32_t end = t->node[at].end;
    int32_t child = at + 1;
    while (child < end && t->node[child].byte != byte)
        child = t->node[child].end;
    return child < end ? child : 0;
}

/* Tries each token that begins at byte i as the last one of s[0..k + 1), where it ends. It is recorded if
 * that takes fewer tokens than are known. */
static void relax(const llm_trie *t, const char *s, size_t n, size_t i, llm_spelled *out) {
    int32_t at = 0;
    for (size_t k = i; k < n; k++) {
        at = child_of(t, at, (uint8_t)s[k]);
        if (at == 0)
            return;
        if (t->node[at + 1].first > t->node[at].first && out->best[i] + 1 < out->best[k + 1]) {
            out->best[k + 1] = out->best[i] + 1;
            out->from[k + 1] = (int32_t)i;
            out->token[k + 1] = t->id[t->node[at].first];
        }
    }
}

bool llm_spell(llm_bx_pool *p, const llm_vocab *v, const char *s, size_t n, llm_spelled *out) {
    out->n = 0;
    if (!llm_bx_grow(p, &out->best, &out->cap_best, n + 1, sizeof *out->best) ||
        !llm_bx_grow(p, &out->from, &out->cap_from, n + 1, sizeof *out->from) ||
        !llm_bx_grow(p, &out->token, &out->cap_token, n + 1, sizeof *out->token))
        return false;
    out->best[0] = 0;
    for (size_t i = 1; i <= n; i++)
        out->best[i] = INT32_MAX;
    for (size_t i = 0; i < n; i++)
        if (out->best[i] != INT32_MAX)
            relax(&v->trie, s, n, i, out);
    if (out->best[n] == INT32_MAX)
        return false;
    const size_t n_ids = (size_t)out->best[n];
    if (!llm_bx_grow(p, &out->id, &out->cap_id, n_ids + 1, sizeof *out->id))
        return false;
    out->n = n_ids;
    for (size_t at = n, k = n_ids; k > 0; at = (size_t)out->from[at])
        out->id[--k] = out->token[at];
    return true;
}

void llm_spelled_fini(llm_spelled *s) {
    ggl_free(s->id);
    ggl_free(s->best);
    ggl_free(s->from);
    ggl_free(s->token);
    *s = (llm_spelled){0};
}

/* --- how many tokens -------------------------------------------------------------------------- */

/* Returns the fewest tokens that spell s[0..n). tokens[k] must be known for its last k bytes, k < n. */
static int32_t count_first(const llm_trie *t, const char *s, size_t n, const int32_t *tokens) {
    int32_t at = 0, least = LLM_BX_DEAD;
    for (size_t k = 0; k < n; k++) {
        at = child_of(t, at, (uint8_t)s[k]);
        if (at == 0)
            break;
        const int32_t rest = tokens[n - k - 1];
        if (t->node[at + 1].first > t->node[at].first && rest < least - 1)
            least = rest + 1;
    }
    return least;
}

int32_t llm_count_tokens(llm_bx_pool *p, const llm_vocab *v, const char *s, size_t n,
                         llm_suffixes *x, size_t *n_new) {
    llm_bytes *text = &x->text;
    size_t same = 0;
    if (!llm_bx_grow(p, &text->s, &text->cap, n + 1, 1) ||
        !llm_bx_grow(p, &x->tokens, &x->cap_tokens, n + 1, sizeof *x->tokens))
        return -1;
    x->tokens[0] = 0;
    while (same < n && same < text->n && text->s[same] == s[n - 1 - same])
        same++;
    for (size_t i = same; i < n; i++) {
        text->s[i] = s[n - 1 - i];
        x->tokens[i + 1] = count_first(&v->trie, s + (n - 1 - i), i + 1, x->tokens);
    }
    if (same < n)
        text->n = n; /* else s is an end of the text before, which is kept */
    *n_new += n - same;
    return x->tokens[n];
}

void llm_suffixes_fini(llm_suffixes *x) {
    ggl_free(x->text.s);
    ggl_free(x->tokens);
    *x = (llm_suffixes){0};
}

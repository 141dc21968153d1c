/* Derivatives of expressions, which decide whether a text belongs to one (Brzozowski 1964). */
#include "expr_text.h"

#include "ggl/alloc.h"
#include "text/unicode.h"

int32_t llm_expr_any_char(llm_exprs *g) {
    return llm_expr_range(g, 0, 0x10ffff);
}

int32_t llm_expr_any_text(llm_exprs *g) {
    return llm_expr_repeat(g, llm_expr_any_char(g), 0, LLM_EXPR_MANY);
}

static bool class_has(const llm_exprs *g, const llm_expr *e, uint32_t c) {
    for (int32_t i = 0; i < e->n; i++)
        if (c >= g->range[e->first + i].first && c <= g->range[e->first + i].last)
            return true;
    return false;
}

static bool alt_has(const llm_exprs *g, int32_t alt, int32_t part) {
    const llm_expr *e = &g->node[alt];
    if (alt == part || e->kind != LLM_EXPR_KIND_ALT)
        return alt == part;
    for (int32_t i = 0; i < e->n; i++)
        if (g->arg[e->first + i] == part)
            return true;
    return false;
}

/* a or b, without the alternatives of b that a has: derivatives would pile them up. */
static int32_t join(llm_exprs *g, int32_t a, int32_t b) {
    if (b == LLM_EXPR_NONE || g->status != GGL_OK)
        return a;
    const llm_expr e = g->node[b];
    if (e.kind != LLM_EXPR_KIND_ALT)
        return alt_has(g, a, b) ? a : llm_expr_alt2(g, a, b);
    for (int32_t i = 0; i < e.n && g->status == GGL_OK; i++)
        if (!alt_has(g, a, g->arg[e.first + i]))
            a = llm_expr_alt2(g, a, g->arg[e.first + i]);
    return a;
}

/* The sequence of the arguments from i on. */
static int32_t tail(llm_exprs *g, const llm_expr *e, int32_t i) {
    return llm_expr_seq(g, &g->arg[e->first + i], e->n - i);
}

static int32_t after_seq(llm_exprs *g, const llm_expr *e, uint32_t c) {
    int32_t all = LLM_EXPR_NONE;
    for (int32_t i = 0; i < e->n; i++) {
        const int32_t part = g->arg[e->first + i];
        const int32_t rest = llm_expr_after(g, part, c);
        if (rest != LLM_EXPR_NONE)
            all = join(g, all, llm_expr_seq2(g, rest, tail(g, e, i + 1)));
        if (!llm_expr_nullable(g, part))
            break;
    }
    return all;
}

static int32_t after_each(llm_exprs *g, const llm_expr *e, uint32_t c) {
    int32_t all = LLM_EXPR_NONE;
    for (int32_t i = 0; i < e->n && g->status == GGL_OK; i++) {
        const int32_t rest = llm_expr_after(g, g->arg[e->first + i], c);
        if (e->kind == LLM_EXPR_KIND_ALT)
            all = join(g, all, rest);
        else
            all = i == 0 ? rest : llm_expr_and(g, (int32_t[]){all, rest}, 2);
    }
    return all;
}

static int32_t after_repeat(llm_exprs *g, const llm_expr *e, uint32_t c) {
    const int32_t what = g->arg[e->first];
    const int32_t max = e->max == LLM_EXPR_MANY ? LLM_EXPR_MANY : e->max - 1;
    const int32_t more = llm_expr_repeat(g, what, e->min > 0 ? e->min - 1 : 0, max);
    return llm_expr_seq2(g, llm_expr_after(g, what, c), more);
}

static int32_t after_multiple(llm_exprs *g, const llm_expr *e, uint32_t c) {
    const llm_multiple m = llm_expr_as_multiple(e);
    llm_multiple next;
    return llm_multiple_after(&m, c, &next) ? llm_expr_multiple(g, &next) : LLM_EXPR_NONE;
}

int32_t llm_expr_after(llm_exprs *g, int32_t id, uint32_t c) {
    if (g->status != GGL_OK || id == LLM_EXPR_NONE)
        return LLM_EXPR_NONE;
    const llm_expr e = g->node[id]; /* a copy: the pool moves */
    switch (e.kind) {
    case LLM_EXPR_KIND_CLASS:
        return class_has(g, &e, c) ? LLM_EXPR_EMPTY : LLM_EXPR_NONE;
    case LLM_EXPR_KIND_SEQ:
        return after_seq(g, &e, c);
    case LLM_EXPR_KIND_ALT:
    case LLM_EXPR_KIND_AND:
        return after_each(g, &e, c);
    case LLM_EXPR_KIND_REPEAT:
        return after_repeat(g, &e, c);
    case LLM_EXPR_KIND_NOT:
        return llm_expr_not(g, llm_expr_after(g, g->arg[e.first], c));
    case LLM_EXPR_KIND_MULTIPLE:
        return after_multiple(g, &e, c);
    default:
        return LLM_EXPR_NONE;
    }
}

bool llm_expr_matches(llm_exprs *g, int32_t e, ggl_str text) {
    for (size_t i = 0, len; i < text.n && e != LLM_EXPR_NONE; i += len) {
        const unsigned char first = (unsigned char)text.s[i];
        len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        e = llm_expr_after(g, e, llm_unicode_decode(text.s + i, len));
    }
    return g->status == GGL_OK && llm_expr_nullable(g, e);
}

enum { LONGEST = 40, VISITS = 24 }; /* VISITS: beginnings for each of the texts that may be found */

/* What is left of an expression after the text so far. */
typedef struct listing {
    llm_exprs *g;
    const char *chars;
    int32_t *out, n, most;
    int64_t left; /* beginnings that may still be tried: many may lead nowhere */
    char text[LONGEST];
} listing;

static bool list_texts(listing *l, int32_t e, size_t len) {
    if (e == LLM_EXPR_NONE || l->g->status != GGL_OK)
        return true;
    if (len == LONGEST || l->left-- == 0 || (llm_expr_nullable(l->g, e) && l->n == l->most))
        return false;
    if (llm_expr_nullable(l->g, e))
        l->out[l->n++] = llm_expr_text(l->g, (ggl_str){l->text, len});
    for (const char *c = l->chars; *c; c++) {
        l->text[len] = *c;
        if (!list_texts(l, llm_expr_after(l->g, e, (unsigned char)*c), len + 1))
            return false;
    }
    return true;
}

bool llm_expr_texts(llm_exprs *g, int32_t e, const char *chars, int32_t *out, int32_t *n,
                    int32_t most) {
    listing l = {.g = g,
                 .chars = chars,
                 .out = out,
                 .n = *n,
                 .most = most,
                 .left = VISITS * ((int64_t)most + 1)};
    const bool ok = list_texts(&l, e, 0);
    *n = l.n;
    return ok;
}

/* --- lists ------------------------------------------------------------------------------------ */

static bool is_single_char(const llm_exprs *g, int32_t id) {
    const llm_expr *e = &g->node[id];
    return e->kind == LLM_EXPR_KIND_CLASS && e->n == 1 &&
           g->range[e->first].first == g->range[e->first].last;
}

static bool is_single_text(const llm_exprs *g, int32_t id) {
    const llm_expr *e = &g->node[id];
    if (e->kind != LLM_EXPR_KIND_SEQ)
        return id == LLM_EXPR_EMPTY || is_single_char(g, id);
    for (int32_t i = 0; i < e->n; i++)
        if (!is_single_char(g, g->arg[e->first + i]))
            return false;
    return true;
}

bool llm_expr_is_list(const llm_exprs *g, int32_t id) {
    if (id == LLM_EXPR_NONE || g->status != GGL_OK)
        return true;
    const llm_expr *e = &g->node[id];
    if (e->kind != LLM_EXPR_KIND_ALT)
        return is_single_text(g, id);
    for (int32_t i = 0; i < e->n; i++)
        if (!is_single_text(g, g->arg[e->first + i]))
            return false;
    return true;
}

/* True if the single text belongs to `of`. */
static bool single_in(llm_exprs *g, int32_t single, int32_t of) {
    const llm_expr e = g->node[single];
    if (e.kind == LLM_EXPR_KIND_EMPTY)
        return llm_expr_nullable(g, of);
    if (e.kind == LLM_EXPR_KIND_CLASS)
        return llm_expr_nullable(g, llm_expr_after(g, of, g->range[e.first].first));
    for (int32_t i = 0; i < e.n && of != LLM_EXPR_NONE; i++)
        of = llm_expr_after(g, of, g->range[g->node[g->arg[e.first + i]].first].first);
    return llm_expr_nullable(g, of);
}

int32_t llm_expr_list_filter(llm_exprs *g, int32_t list, int32_t of, bool keep) {
    if (list == LLM_EXPR_NONE || g->status != GGL_OK)
        return LLM_EXPR_NONE;
    const llm_expr e = g->node[list];
    if (e.kind != LLM_EXPR_KIND_ALT)
        return single_in(g, list, of) == keep ? list : LLM_EXPR_NONE;
    int32_t *kept = ggl_calloc((size_t)e.n, sizeof *kept), n = 0;
    if (!kept) {
        g->status = GGL_NOMEM;
        return LLM_EXPR_NONE;
    }
    for (int32_t i = 0; i < e.n; i++) {
        const int32_t single = g->arg[e.first + i];
        if (single_in(g, single, of) == keep)
            kept[n++] = single;
    }
    const int32_t all = llm_expr_alt(g, kept, n);
    ggl_free(kept);
    return all;
}

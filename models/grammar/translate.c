/* Characters to bytes, rules to calls. Nodes are visited after those they refer to. A node that leads
 * back to itself is cut out as a rule of its own (a frame); every circle has one. */
#include "translate.h"

#include "follow.h"
#include "ggl/internal/alloc.h"
#include "text/unicode.h"

#define OUT_OF_MEMORY "out of memory for a grammar"

enum {
    INLINE_HEIGHT = 300 /* higher rules are called, not put in place */
};

typedef struct translation {
    llm_bx_pool *p;
    const llm_exprs *g;
    const llm_spelling *spelling;
    ggl_error *err;
    int32_t *order; /* [n_order] nodes, after those they refer to */
    size_t n_order;
    uint8_t *seen;  /* [n_nodes] NEW, OPEN or DONE */
    bool *framed;   /* [n_nodes] becomes a rule of the pool */
    bool *circular; /* [n_nodes] refers to a frame, directly or not */
    bool *nullable; /* [n_nodes] */
    int32_t *frame; /* [n_nodes] its rule in the pool */
    int32_t *bytes; /* [n_nodes] the result */
    bool *dead;     /* [n_nodes] frames without texts */
} translation;

enum { NEW, OPEN, DONE };

/* --- the order of nodes ----------------------------------------------------------------------- */

/* How many nodes a node refers to, and which. */
static int32_t n_refs(const llm_expr *e) {
    return e->kind == LLM_EXPR_KIND_RULE                                      ? 1
           : e->kind >= LLM_EXPR_KIND_SEQ && e->kind <= LLM_EXPR_KIND_MEMBERS ? e->n
                                                                              : 0;
}

static int32_t ref(const llm_exprs *g, const llm_expr *e, int32_t i) {
    return e->kind == LLM_EXPR_KIND_RULE ? g->rule[e->first].body : g->arg[e->first + i];
}

typedef struct open_node {
    int32_t node, next;
} open_node;

static ggl_status no_body(const translation *t, const llm_expr *e) {
    return ggl_fail(t->err, GGL_FORMAT, "rule '%s' is used but not defined",
                    t->g->rule[e->first].name);
}

/* Fills `order` and `framed`, from the root down without recursion. */
static ggl_status find_order(translation *t, int32_t root) {
    open_node *stack = NULL;
    size_t n = 0, cap = 0;
    ggl_status st = GGL_OK;
    int32_t next = root;
    while (st == GGL_OK && (next >= 0 || n > 0)) {
        if (next >= 0) {
            if (!ggl_grow(&stack, &cap, n + 1, sizeof *stack)) {
                st = ggl_fail(t->err, GGL_NOMEM, OUT_OF_MEMORY);
                break;
            }
            stack[n++] = (open_node){next, 0};
            t->seen[next] = OPEN;
        }
        open_node *top = &stack[n - 1];
        const llm_expr *e = &t->g->node[top->node];
        next = -1;
        if (top->next == n_refs(e)) {
            t->seen[top->node] = DONE;
            t->order[t->n_order++] = top->node;
            n--;
            continue;
        }
        const int32_t r = ref(t->g, e, top->next++);
        if (r < 0)
            st = no_body(t, e);
        else if (t->seen[r] == NEW)
            next = r;
        else if (t->seen[r] == OPEN)
            t->framed[r] = true;
    }
    ggl_free(stack);
    return st;
}

/* --- facts ------------------------------------------------------------------------------------ */

/* From the nodes it refers to, as far as they are known. */
static bool is_nullable(const translation *t, const llm_expr *e) {
    const bool all = e->kind == LLM_EXPR_KIND_SEQ || e->kind == LLM_EXPR_KIND_AND;
    if (e->kind == LLM_EXPR_KIND_EMPTY || (e->kind == LLM_EXPR_KIND_REPEAT && e->min == 0))
        return true;
    if (e->kind == LLM_EXPR_KIND_NOT)
        return !t->nullable[ref(t->g, e, 0)];
    if (e->kind == LLM_EXPR_KIND_MEMBERS || e->kind == LLM_EXPR_KIND_MULTIPLE)
        return e->nullable;
    for (int32_t i = 0; i < n_refs(e); i++)
        if (t->nullable[ref(t->g, e, i)] != all)
            return !all;
    return all;
}

/* Finds the nodes that refer to frames. AND and NOT must not, because their parts have to be
 * regular. A node that is referred to before it is done is a frame, so one pass finds all. The pass
 * also finds the nodes that have the empty text, except those that have it through such a
 * reference. */
static ggl_status find_circular(translation *t) {
    for (size_t i = 0; i < t->n_order; i++) {
        const int32_t id = t->order[i];
        const llm_expr *e = &t->g->node[id];
        /* members in any order have too many states to be intersected with others */
        bool circular = t->framed[id] || e->kind == LLM_EXPR_KIND_MEMBERS;
        for (int32_t k = 0; k < n_refs(e) && !circular; k++)
            circular = t->circular[ref(t->g, e, k)] || t->framed[ref(t->g, e, k)];
        if (circular && (e->kind == LLM_EXPR_KIND_AND || e->kind == LLM_EXPR_KIND_NOT))
            return ggl_fail(t->err, GGL_FORMAT,
                            "an intersection or complement holds a rule that leads back to itself, "
                            "or members in any order; only regular expressions can be in one");
        t->circular[id] = circular;
        t->nullable[id] = is_nullable(t, e);
    }
    return GGL_OK;
}

/* Where nodes are referred to: node id in user[first[id + 1]] .. user[first[id + 2]]. */
typedef struct users {
    int32_t *first, *user; /* [n_nodes + 2], [number of references] */
    int32_t *
        lacks; /* [n_nodes] how many more references must have the empty text, so that the node has it */
    int32_t *todo; /* [n_nodes] nodes whose users are to be looked at */
} users;

static void list_users(const translation *t, users *u) {
    for (size_t i = 0; i < t->n_order; i++) {
        const llm_expr *e = &t->g->node[t->order[i]];
        for (int32_t k = 0; k < n_refs(e); k++)
            u->first[ref(t->g, e, k) + 1]++;
    }
    for (size_t i = 0; i < t->g->n_nodes; i++)
        u->first[i + 1] += u->first[i];
    u->first[t->g->n_nodes + 1] = u->first[t->g->n_nodes];
    for (size_t i = t->n_order; i > 0;
         i--) { /* lists are filled from their ends, `first` moves there */
        const llm_expr *e = &t->g->node[t->order[i - 1]];
        for (int32_t k = 0; k < n_refs(e); k++)
            u->user[--u->first[ref(t->g, e, k) + 1]] = t->order[i - 1];
    }
}

/* Hands on which nodes have the empty text, each reference once. */
static void spread_nullable(translation *t, users *u) {
    size_t n_todo = 0;
    for (size_t i = 0; i < t->n_order; i++) {
        const int32_t id = t->order[i];
        const llm_expr *e = &t->g->node[id];
        const bool all = e->kind == LLM_EXPR_KIND_SEQ || e->kind == LLM_EXPR_KIND_AND;
        const bool fixed =
            n_refs(e) == 0 || e->kind == LLM_EXPR_KIND_NOT || e->kind == LLM_EXPR_KIND_MEMBERS;
        u->lacks[id] = t->nullable[id] || fixed ? 0 : all ? n_refs(e) : 1;
        if (t->nullable[id])
            u->todo[n_todo++] = id;
    }
    while (n_todo > 0) {
        const int32_t id = u->todo[--n_todo];
        for (int32_t i = u->first[id + 1]; i < u->first[id + 2]; i++) {
            const int32_t user = u->user[i];
            if (u->lacks[user] > 0 && --u->lacks[user] == 0) {
                t->nullable[user] = true;
                u->todo[n_todo++] = user;
            }
        }
    }
}

static ggl_status find_nullable(translation *t) {
    const size_t n = t->g->n_nodes;
    size_t n_users = 1;
    for (size_t i = 0; i < t->n_order; i++)
        n_users += (size_t)n_refs(&t->g->node[t->order[i]]);
    users u = {.first = ggl_calloc(n + 2, sizeof *u.first),
               .user = ggl_calloc(n_users, sizeof *u.user),
               .lacks = ggl_calloc(n, sizeof *u.lacks),
               .todo = ggl_calloc(n, sizeof *u.todo)};
    const bool ok = u.first && u.user && u.lacks && u.todo;
    if (ok) {
        list_users(t, &u);
        spread_nullable(t, &u);
    }
    ggl_free(u.first);
    ggl_free(u.user);
    ggl_free(u.lacks);
    ggl_free(u.todo);
    return ok ? GGL_OK : ggl_fail(t->err, GGL_NOMEM, OUT_OF_MEMORY);
}

/* --- characters ------------------------------------------------------------------------------- */

/* Sequences of ranges of bytes under construction. */
typedef struct parts {
    llm_bx_pool *p;
    int32_t *id;
    size_t n, cap;
} parts;

/* Characters whose UTF-8 differs only in bytes that run through whole ranges. */
static void add_sequence(parts *l, uint32_t first, uint32_t last) {
    char a[4], b[4];
    const int n = (int)llm_unicode_encode(first, a);
    llm_unicode_encode(last, b);
    int32_t e = LLM_BX_EMPTY;
    for (int i = n - 1; i >= 0; i--)
        e = llm_bx_seq(l->p, llm_bx_range(l->p, (unsigned char)a[i], (unsigned char)b[i]), e);
    if (!ggl_grow(&l->id, &l->cap, l->n + 1, sizeof *l->id))
        l->p->status = GGL_NOMEM;
    else
        l->id[l->n++] = e;
}

/* Cuts a range where the lengths of UTF-8 change, and where last bytes begin or end within their
 * range while bytes before them differ. */
static void add_range(parts *l, uint32_t first, uint32_t last) {
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xffff};
    for (int i = 0; i < 3; i++)
        if (first <= ends[i] && last > ends[i]) {
            add_range(l, first, ends[i]);
            add_range(l, ends[i] + 1, last);
            return;
        }
    for (int i = 1; i < 4 && last > 0x7f; i++) {
        const uint32_t m = ((uint32_t)1 << 6 * i) - 1;
        if ((first & ~m) == (last & ~m))
            continue;
        if (first & m) {
            add_range(l, first, first | m);
            add_range(l, (first | m) + 1, last);
            return;
        }
        if ((last & m) != m) {
            add_range(l, first, (last & ~m) - 1);
            add_range(l, last & ~m, last);
            return;
        }
    }
    add_sequence(l, first, last);
}

int32_t llm_translate_class(llm_bx_pool *p, const llm_char_range *range, int32_t n,
                            const llm_spelling *given) {
    const llm_char_range all = {0, 0x10ffff};
    const llm_spelling spelling = given ? *given : (llm_spelling){&all, 1};
    parts l = {.p = p};
    for (int32_t i = 0, k = 0; i < n && k < spelling.n;) { /* both ascend */
        const llm_char_range a = range[i], b = spelling.range[k];
        const uint32_t first = a.first > b.first ? a.first : b.first;
        const uint32_t last = a.last < b.last ? a.last : b.last;
        if (first <= last)
            add_range(&l, first, last);
        if (a.last < b.last)
            i++;
        else
            k++;
    }
    const int32_t e = llm_bx_alt(p, l.id, (int32_t)l.n);
    ggl_free(l.id);
    return e;
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* What a reference to a node becomes. */
static int32_t bytes_of(const translation *t, int32_t id) {
    if (t->dead[id])
        return LLM_BX_NONE;
    return t->framed[id] ? llm_bx_call_rule(t->p, t->frame[id]) : t->bytes[id];
}

/* Parts of a sequence or of alternatives. */
static int32_t list_bytes(translation *t, const llm_expr *e) {
    const int32_t *arg = &t->g->arg[e->first];
    if (e->kind == LLM_EXPR_KIND_SEQ) {
        int32_t x = LLM_BX_EMPTY;
        for (int32_t i = e->n - 1; i >= 0; i--)
            x = llm_bx_seq(t->p, bytes_of(t, arg[i]), x);
        return x;
    }
    int32_t *part = ggl_calloc((size_t)e->n, sizeof *part);
    if (!part) {
        t->p->status = GGL_NOMEM;
        return LLM_BX_NONE;
    }
    for (int32_t i = 0; i < e->n; i++)
        part[i] = bytes_of(t, arg[i]);
    const int32_t x =
        e->kind == LLM_EXPR_KIND_ALT ? llm_bx_alt(t->p, part, e->n) : llm_bx_and(t->p, part, e->n);
    ggl_free(part);
    return x;
}

/* Replaces an AND or NOT without texts by NONE. A call in it can only be one of a rule that is too
 * high to be put in place. */
static int32_t settled(translation *t, int32_t x) {
    if (t->p->node[x].has_call && t->p->status == GGL_OK)
        t->p->status = GGL_LIMIT;
    return llm_bx_min_len(t->p, x) == LLM_BX_DEAD ? LLM_BX_NONE : x;
}

/* Members without texts are left out, unless they are required. */
static int32_t members_bytes(translation *t, const llm_expr *e) {
    const int32_t *arg = &t->g->arg[e->first];
    int32_t *member = ggl_calloc((size_t)e->n, sizeof *member);
    llm_bx_list list = {.member = member,
                        .n_required = e->required,
                        .comma = bytes_of(t, arg[0]),
                        .rest = bytes_of(t, arg[1]),
                        .min = e->min,
                        .max = e->max};
    bool fails = false;
    if (list.comma == LLM_BX_NONE) { /* then there is one member at most */
        list.comma = LLM_BX_EMPTY;
        list.max = list.max == 0 ? 0 : 1;
        fails = list.min > 1;
    }
    if (!member) {
        t->p->status = GGL_NOMEM;
        return LLM_BX_NONE;
    }
    for (int32_t i = 2; i < e->n; i++) {
        member[list.n] = bytes_of(t, arg[i]);
        fails = fails || (member[list.n] == LLM_BX_NONE && i - 2 < e->required);
        list.n += member[list.n] != LLM_BX_NONE;
    }
    const int32_t x = fails ? LLM_BX_NONE : llm_bx_members(t->p, &list);
    ggl_free(member);
    return x;
}

static int32_t node_bytes(translation *t, const llm_expr *e) {
    switch (e->kind) {
    case LLM_EXPR_KIND_EMPTY:
        return LLM_BX_EMPTY;
    case LLM_EXPR_KIND_CLASS:
        return llm_translate_class(t->p, &t->g->range[e->first], e->n, t->spelling);
    case LLM_EXPR_KIND_SEQ:
    case LLM_EXPR_KIND_ALT:
        return list_bytes(t, e);
    case LLM_EXPR_KIND_REPEAT:
        return llm_bx_repeat(t->p, bytes_of(t, t->g->arg[e->first]), e->min, e->max);
    case LLM_EXPR_KIND_AND:
        return settled(t, list_bytes(t, e));
    case LLM_EXPR_KIND_NOT: {
        const int32_t x = llm_bx_not(t->p, bytes_of(t, t->g->arg[e->first]));
        return settled(t, llm_bx_and(t->p, (int32_t[]){t->p->all_text, x}, 2));
    }
    case LLM_EXPR_KIND_MEMBERS:
        return members_bytes(t, e);
    case LLM_EXPR_KIND_RULE:
        return bytes_of(t, t->g->rule[e->first].body);
    case LLM_EXPR_KIND_MULTIPLE: {
        const llm_multiple m = llm_expr_as_multiple(e);
        return llm_bx_multiple(t->p, &m);
    }
    default:
        return LLM_BX_NONE;
    }
}

static bool add_rule(translation *t, int32_t id) {
    llm_bx_pool *p = t->p;
    if (!ggl_grow(&p->rule, &p->cap_rules, p->n_rules + 1, sizeof *p->rule)) {
        p->status = GGL_NOMEM;
        return false;
    }
    t->frame[id] = (int32_t)p->n_rules;
    p->rule[p->n_rules++] =
        (llm_bx_rule){.body = LLM_BX_NONE, .min_len = LLM_BX_UNKNOWN, .nullable = t->nullable[id]};
    return true;
}

static void translate_nodes(translation *t) {
    llm_bx_pool *p = t->p;
    const llm_char_range text[] = {{0, 0xd7ff}, {0xe000, 0x10ffff}};
    if (!llm_bx_pool_init(p))
        return;
    p->all_text = llm_bx_repeat(p, llm_translate_class(p, text, 2, t->spelling), 0, -1);
    for (size_t i = 0; i < t->n_order && p->status == GGL_OK; i++)
        if (t->framed[t->order[i]])
            add_rule(t, t->order[i]);
    for (size_t i = 0; i < t->n_order && p->status == GGL_OK; i++) {
        const int32_t id = t->order[i];
        const llm_expr *e = &t->g->node[id];
        const int32_t x = node_bytes(t, e);
        const bool high =
            e->kind == LLM_EXPR_KIND_RULE && p->node[x].height > INLINE_HEIGHT && !t->framed[id];
        if (high && add_rule(t, id))
            t->framed[id] = true;
        t->bytes[id] = x;
        if (t->framed[id] && p->status == GGL_OK)
            p->rule[t->frame[id]].body = x;
    }
}

/* Computes lengths of nodes with calls from those of rules, until both agree. Nodes come after their
 * parts, so that this takes few rounds. */
static void find_lengths(translation *t) {
    llm_bx_pool *p = t->p;
    for (size_t k = 0; k < p->n_rules; k++)
        p->rule[k].min_len = LLM_BX_DEAD;
    bool changed = p->n_rules > 0;
    while (changed && p->status == GGL_OK) {
        changed = false;
        llm_bx_count(p, (p->n_nodes + p->n_args) / 4);
        for (int32_t i = LLM_BX_EMPTY + 1; i < (int32_t)p->n_nodes; i++)
            if (p->node[i].has_call)
                llm_bx_measure(p, i);
        for (size_t k = 0; k < p->n_rules; k++) {
            llm_bx_rule *r = &p->rule[k];
            const llm_bx *body = &p->node[r->body];
            changed = changed || body->min_len != r->min_len || body->rank != r->rank;
            r->min_len = body->min_len;
            r->rank = body->rank;
        }
    }
}

/* Marks frames without texts. Returns true if there are any. */
static bool find_dead(translation *t) {
    bool any = false;
    for (size_t i = 0; i < t->n_order; i++) {
        const int32_t id = t->order[i];
        if (t->framed[id] && !t->dead[id] && t->p->rule[t->frame[id]].min_len == LLM_BX_DEAD)
            any = t->dead[id] = true;
    }
    return any;
}

static ggl_status translate(translation *t, int32_t root, int32_t *start) {
    ggl_status st = find_order(t, root);
    if (st == GGL_OK)
        st = find_circular(t);
    if (st == GGL_OK)
        st = find_nullable(t);
    for (bool again = true; again && st == GGL_OK;) {
        llm_bx_pool_fini(t->p);
        translate_nodes(t);
        find_lengths(t);
        st = t->p->status;
        again = st == GGL_OK && find_dead(t);
        if (st == GGL_NOMEM)
            ggl_fail(t->err, st, OUT_OF_MEMORY);
        else if (t->p->use.is_exceeded)
            llm_budget_fail(&t->p->use, "the grammar", t->err);
        else if (st != GGL_OK)
            ggl_fail(t->err, st,
                     "the grammar is nested too deeply, or its intersections and complements are "
                     "too large; make it smaller");
    }
    if (st == GGL_OK)
        *start = bytes_of(t, root);
    llm_find_follow(t->p);
    if (st == GGL_OK && t->p->status != GGL_OK)
        st = t->p->use.is_exceeded ? llm_budget_fail(&t->p->use, "the grammar", t->err)
                                   : ggl_fail(t->err, t->p->status, OUT_OF_MEMORY);
    return st;
}

ggl_status llm_translate(llm_bx_pool *p, const llm_exprs *g, int32_t root,
                         const llm_spelling *spelling, int32_t *start, ggl_error *err) {
    *start = root == LLM_EXPR_EMPTY ? LLM_BX_EMPTY : LLM_BX_NONE;
    const size_t n = g->n_nodes;
    if (n == 0)
        return llm_bx_pool_init(p) ? GGL_OK : ggl_fail(err, GGL_NOMEM, OUT_OF_MEMORY);
    translation t = {.p = p, .g = g, .spelling = spelling, .err = err};
    t.order = ggl_calloc(n, sizeof *t.order);
    t.seen = ggl_calloc(n, sizeof *t.seen);
    t.framed = ggl_calloc(n, sizeof *t.framed);
    t.circular = ggl_calloc(n, sizeof *t.circular);
    t.nullable = ggl_calloc(n, sizeof *t.nullable);
    t.frame = ggl_calloc(n, sizeof *t.frame);
    t.bytes = ggl_calloc(n, sizeof *t.bytes);
    t.dead = ggl_calloc(n, sizeof *t.dead);
    ggl_status st = GGL_OK;
    if (!t.order || !t.seen || !t.framed || !t.circular || !t.nullable || !t.frame || !t.bytes ||
        !t.dead)
        st = ggl_fail(err, GGL_NOMEM, OUT_OF_MEMORY);
    else
        st = translate(&t, root, start);
    ggl_free(t.order);
    ggl_free(t.seen);
    ggl_free(t.framed);
    ggl_free(t.circular);
    ggl_free(t.nullable);
    ggl_free(t.frame);
    ggl_free(t.bytes);
    ggl_free(t.dead);
    return st;
}

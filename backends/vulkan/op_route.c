/* The choice of experts and their shares: a loose chain (ggl_step.n_links) from the scores to the indices of the k largest,
 * and to their shares, as one dispatch. */
#include <string.h>

#include "rows.h"
#include "shaders/kinds.h"

enum { MOST_SCORES = 1024, MOST_CHOSEN = 32 /* shaders/route.comp */ };

/* The links of the chain, in order. All but TOPK and PICK may be absent. After PICK, the chain ends where
 * another step reads a result. */
typedef enum role {
    FIRST,  /* makes scores of x */
    SECOND, /* makes other scores of these */
    BIAS,   /* is added for the choice */
    TOPK,   /* the choice */
    PICK,   /* the scores of the chosen: the shares */
    SHARES, /* makes other shares of these */
    SUM,    /* of the shares */
    LEAST,  /* raises the sum, so that it is not 0 */
    RATIO,  /* divides the shares by the sum */
    TIMES,  /* multiplies the shares by a number */
    N_ROLES
} role;

typedef struct route {
    const ggl_step *link[N_ROLES]; /* NULL: absent */
    const ggl_step *last;          /* so far; NULL: none */
} route;

/* True if source k of the step is the result of this link. */
static bool reads(const ggl_step *step, int k, const ggl_step *link) {
    return link && k < step->n_src && step->src[k].region < 0 &&
           ggl_read(step->node, k) == link->node;
}

/* True if the operand is in memory. */
static bool is_given(const ggl_operand *o) {
    return o->region >= 0 && o->type == GGL_F32;
}

/* Returns the kind (shaders/kinds.h) of what makes a row of another of the same size; ROUTE_NONE: something else. */
static uint32_t kind_of(const ggl_step *step) {
    if (ggl_vk_is_unary(step->node))
        return ggl_vk_kind_of(step->node);
    switch (ggl_composite_of(step->node)) {
    case GGL_COMPOSITE_SOFTMAX:
        return ROUTE_SOFTMAX;
    case GGL_COMPOSITE_NORMALISED:
        return ROUTE_NORMALISED;
    default:
        return ROUTE_NONE;
    }
}

/* True if the step's first source is the last result, or a value in memory if there is no link yet. */
static bool goes_on(const route *r, const ggl_step *step) {
    return r->last ? reads(step, 0, r->last) : is_given(&step->src[0]);
}

static bool makes_scores(const route *r, const ggl_step *step) {
    const uint32_t kind = kind_of(step);
    return goes_on(r, step) && kind != ROUTE_NONE && kind != ROUTE_NORMALISED;
}

/* True if the step applies the operator to the link's result and to a value in memory, and its result has the link's shape. */
static bool is_binary(const ggl_step *step, ggl_op op, const ggl_step *link) {
    return step->node->op == op && memcmp(step->dst.ne, link->dst.ne, sizeof step->dst.ne) == 0 &&
           ((reads(step, 0, link) && is_given(&step->src[1])) ||
            (reads(step, 1, link) && is_given(&step->src[0])));
}

static bool is_bias(const route *r, const ggl_step *step) {
    return r->last && is_binary(step, GGL_OP_ADD, r->last);
}

static bool is_topk(const route *r, const ggl_step *step) {
    return step->node->op == GGL_OP_TOPK && ggl_read(step->node, 0)->ne[0] <= MOST_SCORES &&
           step->dst.ne[0] <= MOST_CHOSEN && goes_on(r, step);
}

/* Returns the link that makes the scores; NULL: they are in memory. */
static const ggl_step *scores_of(const route *r) {
    return r->link[SECOND] ? r->link[SECOND] : r->link[FIRST];
}

static bool is_pick(const route *r, const ggl_step *step) {
    return step->node->op == GGL_OP_PICK && reads(step, 1, r->link[TOPK]) &&
           ggl_read(step->node, 0)->n_dims == 1 &&
           step->dst.ne[GGL_BATCH_DIM] == r->last->dst.ne[GGL_BATCH_DIM] &&
           (reads(step, 0, scores_of(r)) || is_given(&step->src[0]));
}

static bool makes_shares(const route *r, const ggl_step *step) {
    return reads(step, 0, r->last) && kind_of(step) != ROUTE_NONE;
}

static bool is_sum(const route *r, const ggl_step *step) {
    const ggl_step *shares = r->link[SHARES];
    return (!shares || kind_of(shares) != ROUTE_NORMALISED) && step->node->op == GGL_OP_SUM &&
           step->node->num[SUM_DIM] == 0 && reads(step, 0, r->last);
}

static bool is_least(const route *r, const ggl_step *step) {
    return r->link[SUM] &&
           (is_binary(step, GGL_OP_ADD, r->link[SUM]) || is_binary(step, GGL_OP_MAX, r->link[SUM]));
}

static bool is_ratio(const route *r, const ggl_step *step) {
    const ggl_step *shares = r->link[SHARES] ? r->link[SHARES] : r->link[PICK];
    return r->link[SUM] && step->node->op == GGL_OP_DIV && reads(step, 0, shares) &&
           reads(step, 1, r->last);
}

static bool is_times(const route *r, const ggl_step *step) {
    return is_binary(step, GGL_OP_MUL, r->last);
}

static bool (*const fits[N_ROLES])(const route *, const ggl_step *) = {
    [FIRST] = makes_scores, [SECOND] = makes_scores, [BIAS] = is_bias, [TOPK] = is_topk,
    [PICK] = is_pick,       [SHARES] = makes_shares, [SUM] = is_sum,   [LEAST] = is_least,
    [RATIO] = is_ratio,     [TIMES] = is_times,
};

/* Finds the roles of the n steps. Returns how many have one; 0: they are no such chain. The indices are always stored, so another step
 * has to read them. */
static int find_roles(const ggl_step *step, int n, route *r) {
    int at = 0;
    *r = (route){.last = NULL};
    for (role k = FIRST; k < N_ROLES; k++) {
        if (r->last && r->last->dst.region >= 0 && k > PICK)
            break; /* others read the last result, so it is the chain's */
        if (at < n && step[at].kind == GGL_STEP_NODE && fits[k](r, &step[at])) {
            if (k < TOPK && step[at].dst.region >= 0)
                return 0;
            r->last = r->link[k] = &step[at++];
        } else if (k == TOPK || k == PICK) {
            return 0;
        }
    }
    if (r->link[SUM] && !r->link[RATIO])
        at = (int)(r->link[SUM] - step);
    return at == n && r->link[TOPK]->dst.region < 0 ? 0 : at;
}

static int route_chain(const vk_backend *b, const ggl_step *step, int n) {
    route r;
    (void)b;
    const int links = find_roles(step, n, &r);
    return links > 0 ? links : 1;
}

/* --- emitting --------------------------------------------------------------------------------- */

/* Binds an operand, and sets where it is. */
#define BIND_PLACE(e, c, place, o, write)                                                          \
    ((place).at = ggl_vk_bind(e, c, o, write), (place).stride[0] = ggl_vk_stride(e, o, 0),         \
     (place).stride[1] = ggl_vk_stride(e, o, GGL_BATCH_DIM))

/* Returns the operand of a link that is in memory; absent if the link is, or has none. */
static const ggl_operand *given(const ggl_step *link) {
    static const ggl_operand absent = {.region = -1};
    for (int k = 0; link && k < link->n_src; k++)
        if (link->src[k].region >= 0)
            return &link->src[k];
    return &absent;
}

static ggl_status route_emit(vk_emit *e, ggl_error *err) {
    const ggl_step *step = e->step;
    route r;
    find_roles(step, step->n_links, &r);
    const ggl_step *const *l = r.link, *first = l[FIRST] ? l[FIRST] : l[TOPK];
    const ggl_operand *x = given(first), *chosen = &l[TOPK]->dst;
    const int64_t rows = ggl_vk_extent(e, chosen, GGL_BATCH_DIM);
    vk_call c = {.shader = e->b->features.subgroup ? VK_SHADER_ROUTE_SUBGROUP : VK_SHADER_ROUTE,
                 VK_SPEC(route, .local = ggl_vk_row_local(e->b, x->ne[0]),
                         .first = l[FIRST] ? kind_of(l[FIRST]) : ROUTE_NONE,
                         .second = l[SECOND] ? kind_of(l[SECOND]) : ROUTE_NONE,
                         .bias = l[BIAS] != NULL, .table = given(l[PICK])->region >= 0,
                         .shares = l[SHARES] ? kind_of(l[SHARES]) : ROUTE_NONE,
                         .sum = l[SUM] != NULL,
                         .least = l[LEAST] ? ggl_vk_kind_of(l[LEAST]->node) : ROUTE_NONE,
                         .times = l[TIMES] != NULL),
                 .groups = {ggl_vk_groups(rows, 1)}};
    vk_push_route *p = VK_PUSH(&c, route);
    p->rows = (uint32_t)rows;
    p->n = (uint32_t)x->ne[0];
    p->k = (uint32_t)chosen->ne[0];
    BIND_PLACE(e, &c, p->to_e, chosen, true);
    BIND_PLACE(e, &c, p->to_w, &r.last->dst, true);
    BIND_PLACE(e, &c, p->of_x, x, false);
    BIND_PLACE(e, &c, p->of_bias, given(l[BIAS]), false);
    BIND_PLACE(e, &c, p->of_table, given(l[PICK]), false);
    BIND_PLACE(e, &c, p->of_least, given(l[LEAST]), false);
    BIND_PLACE(e, &c, p->of_times, given(l[TIMES]), false);
    return ggl_vk_dispatch(e, &c, err);
}

const vk_op ggl_vk_op_route = {.emit = route_emit, .chain = route_chain};

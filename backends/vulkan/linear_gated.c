/* Two products of the same columns whose results are multiplied, one of them after an activation: gate and
 * up. For few columns all of it is one dispatch (linear_vec.comp), and the two results get no memory.
 * For many, the products write to scratch, from which a second dispatch reads (elementwise.comp).
 *
 * The result may be rounded to bytes. Several workgroups compute the 32 numbers of a block, and the one that ends
 * last rounds them, so they meet in memory: in the scratch, if nothing else reads the numbers. */
#include <assert.h>
#include <string.h>

#include "linear.h"
#include "shaders/kinds.h"
#include "weights.h"

enum { MEMBERS = 2, LINKS = 2, MOST_LINKS = 3, BLOCK = 32 };

/* Returns the number of the member whose result is source k of the node; -1: none is. */
static int member_of(const ggl_step *const *member, const ggl_tensor *node, int k) {
    for (int m = 0; m < MEMBERS; m++)
        if (ggl_read(node, k) == member[m]->node)
            return m;
    return -1;
}

/* Sets *gate to the number of the member that the chain activates. Returns whether the chain is the
 * product of that with the other member. */
static bool find_gate(const ggl_step *const *member, const ggl_step *chain, int *gate) {
    const int other = 1 - chain[1].link;
    *gate = member_of(member, chain[0].node, 0);
    return *gate >= 0 && member_of(member, chain[1].node, other) == 1 - *gate;
}

/* True if there is a counter for each block of the result that linear_vec.comp rounds: for columns that have the same matrix,
 * or for each column of n tokens if its matrix is chosen. */
static bool has_counters(const ggl_step *member, int64_t n) {
    const int64_t apart =
        ggl_vk_is_chosen(member) ? ggl_extents(member->dst.ne, 1, GGL_MAX_DIMS, n) : 1;
    return member->dst.ne[0] / BLOCK <= VK_MOST_COUNTERS / apart;
}

/* True if products, chain and rounding of n tokens are one dispatch. */
static bool is_one(const ggl_step *step, int64_t n) {
    return ggl_vk_step_is_narrow(step, n) &&
           (!ggl_vk_form_link(ggl_vk_tail_of(step)) || has_counters(step, n));
}

bool ggl_vk_linear_tail(const vk_backend *b, const ggl_step *const *member, int n,
                        const ggl_step *chain) {
    (void)b;
    int gate;
    const bool rounds = ggl_vk_form_link(chain) != NULL;
    return n == MEMBERS && chain->n_links - rounds == LINKS &&
           (!rounds || has_counters(member[0], 1)) && chain[0].kind == GGL_STEP_NODE &&
           chain[1].kind == GGL_STEP_NODE && ggl_vk_is_unary(chain[0].node) &&
           chain[1].node->op == GGL_OP_MUL && chain[0].dst.region < 0 &&
           find_gate(member, chain, &gate) &&
           memcmp(member[0]->dst.ne, member[1]->dst.ne, sizeof member[0]->dst.ne) == 0 &&
           memcmp(member[0]->dst.ne, chain[1].dst.ne, sizeof member[0]->dst.ne) == 0;
}

/* True if the chain's result has no memory, because only its rounded form is read. */
static bool needs_memory(const ggl_step *chain) {
    return ggl_vk_form_link(chain) && chain[1].dst.region < 0;
}

size_t ggl_vk_gated_scratch(const ggl_step *step, int64_t n) {
    if (!step->has_tail)
        return 0;
    const int results = !is_one(step, n) ? MEMBERS : needs_memory(ggl_vk_tail_of(step)) ? 1 : 0;
    return (size_t)results * ggl_vk_result_size(&step->dst, n);
}

/* Emits both products to the scratch, and then the chain. */
static ggl_status emit_apart(vk_emit *e, const ggl_step *tail, int gate, ggl_error *err) {
    ggl_step product[MEMBERS] = {e->step[0], e->step[1]}, chain[MOST_LINKS];
    const size_t each = ggl_vk_result_size(&e->step->dst, e->n);
    for (int m = 0; m < MEMBERS; m++)
        ggl_vk_place_in_scratch(e, (size_t)m * each, &product[m].dst);
    product[0].has_tail = false;
    memcpy(chain, tail, (size_t)tail->n_links * sizeof *chain);
    chain[0].src[0] = product[gate].dst;
    chain[1].src[1 - chain[1].link] = product[1 - gate].dst;
    vk_emit part = *e;
    part.step = product;
    part.scratch += MEMBERS * each;
    ggl_status st = ggl_vk_emit_plain(&part, err);
    part.step = chain;
    return st == GGL_OK ? ggl_vk_op_unary.emit(&part, err) : st;
}

ggl_status ggl_vk_emit_gated(vk_emit *e, ggl_error *err) {
    const ggl_step *tail = ggl_vk_tail_of(e->step), *round = ggl_vk_form_link(tail),
                   *member[MEMBERS] = {&e->step[0], &e->step[1]};
    int gate = 0;
    vk_product p[MEMBERS];
    const bool found = find_gate(member, tail, &gate);
    assert(found);
    (void)found;
    ggl_operand y = tail[1].dst;
    if (needs_memory(tail))
        ggl_vk_place_in_scratch(e, 0, &y);
    for (int m = 0; m < MEMBERS; m++) {
        p[m] = ggl_vk_product_of(e, member[m == 0 ? gate : 1 - gate]);
        p[m].y = &y;
    }
    if (!is_one(e->step, e->n))
        return emit_apart(e, tail, gate, err);
    p->n_members = MEMBERS;
    p->gated = true;
    p->gate = ggl_vk_kind_of(tail->node);
    p->blocks = round ? &round->dst : NULL;
    return ggl_vk_emit_products(e, p, err);
}

/* Tails: a chain that a backend runs together with the group whose results it reads, such as gate and
 * up with the activation and the product of both. The results of the group then need no memory. */
#include <string.h>

#include "program_impl.h"

enum { MOST_LINKS = 8 };

/* A group from item `first` on, and a chain of `n_links` items from item `tail` on. */
typedef struct candidate {
    size_t first, tail;
    int n, n_links; /* n: members, which are single steps */
    unsigned hidden[MOST_LINKS];
} candidate;

/* Counts the reads of each root, by its id. NULL: out of memory. */
static size_t *count_reads(builder *b) {
    const ggl_tensor *src[GGL_MAX_SRC];
    size_t *count = ggl_calloc(b->n_values + 1, sizeof *count);
    for (size_t i = 0; i < b->n && count; i++)
        for (int n = ggl_plan_sources(&b->at[i], src), k = 0; k < n; k++)
            if (src[k])
                count[ggl_plan_source_value(b, &b->at[i], src[k])->root->id]++;
    return count;
}

/* True if the items from i on are a group of single steps whose results are each read once, and only
 * by steps of this program. Sets c->n. */
static bool is_group(const builder *b, const size_t *reads, size_t i, candidate *c) {
    c->first = i;
    c->n = b->at[i].n_members;
    for (size_t k = i; c->n > 1 && k < i + (size_t)c->n; k++) {
        const item *it = &b->at[k];
        const ggl_tensor *t = it->node;
        if (it->kind != GGL_STEP_NODE || it->n_links > 0 || it->copy_of ||
            !ggl_plan_has_value(it) || b->value[t->id].root != t || b->root[t->id].placed ||
            reads[t->id] != 1)
            return false;
    }
    return c->n > 1;
}

/* True if t is the result of a member. */
static bool is_result(const builder *b, const candidate *c, const ggl_tensor *t) {
    for (size_t k = c->first; k < c->first + (size_t)c->n; k++)
        if (b->at[k].node == t)
            return true;
    return false;
}

/* True if the chain from item i on reads all results of the group, and nothing else that is written as
 * late as these. Sets c->tail, c->n_links and c->hidden. */
static bool is_tail(builder *b, candidate *c, size_t i) {
    const ggl_tensor *src[GGL_MAX_SRC];
    int n_hidden = 0;
    c->tail = i;
    c->n_links = b->at[i].n_links;
    if (c->n_links < 2 || c->n_links > MOST_LINKS || b->at[i].nth > 0 || b->at[i].joined ||
        b->at[i].n_members > 1)
        return false;
    for (int e = 0; e < c->n_links; e++) {
        const item *it = &b->at[i + (size_t)e];
        c->hidden[e] = it->hidden;
        if (ggl_plan_uses_stores(it))
            return false;
        for (int n = ggl_plan_sources(it, src), k = 0; k < n; k++) {
            if (!src[k])
                continue;
            if (is_result(b, c, src[k])) {
                c->hidden[e] |= 1u << k;
                n_hidden++;
            } else if (b->root[ggl_plan_source_value(b, it, src[k])->root->id].wave >=
                       b->at[c->first].wave) {
                return false;
            }
        }
    }
    return n_hidden == c->n;
}

/* Asks the backend whether the chain is a tail of the group. */
static bool ask(builder *b, const candidate *c) {
    ggl_step step[GGL_MAX_GROUP] = {{0}}, chain[MOST_LINKS] = {{0}};
    const ggl_step *member[GGL_MAX_GROUP];
    for (int k = 0; k < c->n; k++) {
        ggl_plan_make_step(b, &b->at[c->first + (size_t)k], &step[k]);
        step[k].dst.region = -1;
        member[k] = &step[k];
    }
    for (int e = 0; e < c->n_links; e++) {
        item it = b->at[c->tail + (size_t)e];
        it.hidden = c->hidden[e];
        ggl_plan_make_step(b, &it, &chain[e]);
    }
    return b->p->tail(b->p->backend, member, c->n, chain);
}

/* Moves the chain after the group's members. */
static void attach(builder *b, const candidate *c) {
    item tail[MOST_LINKS];
    const size_t n = (size_t)c->n_links, to = c->first + (size_t)c->n;
    for (size_t e = 0; e < n; e++) {
        tail[e] = b->at[c->tail + e];
        tail[e].hidden = c->hidden[e];
        tail[e].joined = true;
        tail[e].wave = b->root[tail[e].node->id].wave = b->at[c->first].wave;
    }
    memmove(&b->at[to + n], &b->at[to], (c->tail - to) * sizeof *b->at);
    memcpy(&b->at[to], tail, n * sizeof *tail);
    b->at[c->first].has_tail = true;
    for (size_t k = c->first; k < to; k++) {
        root *r = &b->root[b->at[k].node->id];
        r->fused = true;
        r->loc.region = -1;
    }
}

bool ggl_plan_find_tails(builder *b) {
    if (!b->p->tail)
        return true;
    size_t *reads = count_reads(b);
    for (size_t i = 0; i < b->n && reads; i++) {
        candidate c;
        if (!is_group(b, reads, i, &c))
            continue;
        /* the chain is in the next wave, because it reads nothing later; no step moves past a loop */
        for (size_t k = i + (size_t)c.n;
             k < b->n && b->at[k].wave <= b->at[i].wave + 1 && b->at[k].kind != GGL_STEP_LOOP; k++)
            if (is_tail(b, &c, k) && ask(b, &c)) {
                attach(b, &c);
                break;
            }
    }
    ggl_free(reads);
    return reads != NULL;
}
